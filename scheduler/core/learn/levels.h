/* How far off the model is for families of jobs that its table has none of (predictors/models/spread.h): the
 * mean and variance of log(actual / predicted time) of the latest jobs of each. One short run of a new
 * family, a probe, tells what is off for all its jobs.
 *
 * Users do not trust each other, so a level is kept by user and job type, too: what one user runs says
 * nothing to others. Only levels_new() allocates; when it is full, the level unused for longest of a few is
 * forgotten. */
#ifndef SCHEDULER_CORE_LEVELS_H
#define SCHEDULER_CORE_LEVELS_H

#include <stdint.h>

#include "common/err.h"
#include "scheduler/core/learn/adapt.h"

#define LEVELS_RECENT 20 /* jobs behind a mean */

struct levels;

int levels_new(struct levels **out, struct err *err);
void levels_free(struct levels *l);

/* family: not 0. score: log(actual / predicted), finite. */
void levels_observe(struct levels *l, struct adapt_who who, uint64_t family, double score);
struct levels_runs {
	unsigned n; /* of the latest jobs, at most LEVELS_RECENT; 0: none */
	double mean, variance;
};
struct levels_runs levels_of(const struct levels *l, struct adapt_who who, uint64_t family);

#endif
