/* Made-up tables with known truth, for tests: a designed experiment and smooth surfaces with noise. */
#ifndef TESTS_WORLDS_H
#define TESTS_WORLDS_H

#include "common/rng.h"
#include "predictors/data/dataset.h"

/* The levels of the Courier paper: network 0/1, cpus, njobs, batch, processes; `replications` of the 96
 * settings, response time with multiplicative noise. Groups are the settings. */
struct dataset *world_factorial(size_t replications, double noise, uint64_t seed);

/* n rows of p uniform features; y = 10 sin(3 x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + noise * normal * (1 +
 * growth * x3). Needs p >= 4. */
struct dataset *world_smooth(size_t n, size_t p, double noise, double growth, uint64_t seed);

#endif
