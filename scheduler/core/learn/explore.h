/* Exploration: a model that always gets its best answer never learns what the others would have done. So a
 * given share of the jobs with ample headroom (0 by default: none) takes the second-best feasible candidate.
 * Which jobs explore depends on the seed and the job's id alone, so a replay explores the same jobs. */
#ifndef SCHEDULER_CORE_EXPLORE_H
#define SCHEDULER_CORE_EXPLORE_H

#include <stdint.h>

#include "scheduler/core/decide.h"

#define EXPLORE_HEADROOM 0.5 /* default: the bound is at most half of the objective */

struct explore_params {
	double share;        /* of the jobs with headroom; 0 (or not a number): none; 1: all */
	double headroom;     /* wait and time at their bounds, over the objective, at most; 0:
	                        EXPLORE_HEADROOM */
	uint64_t seed;
};

/* The candidate to take: d->chosen, or the second best. slo_s: the objective as the decision saw it; without
 * one (NaN) there is no headroom, and nothing is explored. Both candidates must have the headroom, so that no
 * promise is at risk. The second best must have been played, so that its numbers are not approximate. */
int explore_pick(const struct explore_params *p, const struct decision *d, uint64_t job_id, double slo_s);

#endif
