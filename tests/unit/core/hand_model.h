/* A model whose every answer can be worked out by hand, for the tests of the scheduler.
 *
 * A job of batch b has 6400 / b seconds of work, all of it on the cpus of a machine with 2 cores, so that
 * among P processes it takes 6400 / b * max(2, P) / max(2, cpus). Bounds are 1.2 times as long. Accuracy is 1
 * - b / 10000: a smaller batch is slower and better. */
#ifndef TESTS_HAND_MODEL_H
#define TESTS_HAND_MODEL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/core/sched.h"
#include "tests/support/test.h"

enum { HAND_CPUS = 1, HAND_NJOBS, HAND_BATCH, HAND_PROCESSES, HAND_FEATURES };

/* The share of the work that is at the disk, which 4 processes saturate. 0 unless a test sets it. */
extern double hand_disk;
/* The share of it that is start-up; NaN, not known, unless a test sets it. */
extern double hand_start;

extern const struct predictor_ops hand_hybrid; /* says what the machine is and which shares a job has */
extern const struct predictor_ops hand_forest; /* says neither */

struct model *hand_model(const struct predictor_ops *time); /* batches 32, 64, ... 512 */
struct job_values hand_values(const struct model *m);
struct policy_choice hand_policy(const char *name);

/* A number that differs if two decisions do; h: that of what came before. */
uint64_t hand_digest(uint64_t h, const struct decision *d);

#endif
