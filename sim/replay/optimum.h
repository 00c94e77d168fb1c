/* The best that a scheduler could do with the jobs of a trace if it knew everything beforehand: all arrivals,
 * the time of every job under any load, and its accuracy. The value of a schedule is the sum of the
 * accuracies of the jobs that end in time; all others are worth 0. Memory is ignored.
 *
 *   exact  for few jobs: branch and bound over all schedules in which jobs start at an arrival or an end, as
 *          under every policy, and none runs in vain (optimum.c)
 *   bound  for many: no schedule is worth more, whenever it starts its jobs (optimum_bound.c)
 *
 * Both want a world with a law of sharing (world_run_law_s). Called by brain_optimum.c. */
#ifndef SIM_REPLAY_OPTIMUM_H
#define SIM_REPLAY_OPTIMUM_H

#include "sim/replay/replay.h"

#define OPTIMUM_EXACT_JOBS 8 /* with a limit; with more the bound is taken */
#define OPTIMUM_MAX_STEPS 100000000 /* of the exact search: twenty seconds; few instances take a hundredth */

struct optimum_option { /* a batch and a number of epochs with which a job could be in time */
	double batch, epochs; /* epochs NaN: not open */
	double accuracy;
	double least_s; /* its run time with the best load there could be */
	double share_s; /* the least of the machine that it takes: see optimum_bound.c */
};

struct optimum_job {
	size_t job; /* in the trace */
	int64_t arrival_ns, deadline_ns;
	uint32_t cpus;
	struct optimum_option *option;
	size_t n_options; /* by accuracy, the best first; at least one */
};

struct optimum_jobs {
	const struct replay_params *p; /* borrowed */
	struct optimum_job *job;
	size_t n; /* those that can be in time at all, by arrival */
	size_t objectives; /* jobs of the trace that have one */
	bool monotone; /* no job is faster beside more processes */
};
/* ERR_ARG: the world has no law of sharing, or does not know the accuracy of a job. To be released, also
 * after an error. */
int optimum_jobs_make(const struct replay_params *p, struct optimum_jobs *out, struct err *err);
void optimum_jobs_release(struct optimum_jobs *j);
struct world_job optimum_world_job(const struct replay_params *p, size_t job, double batch, double epochs);

struct optimum_start {
	int64_t at_ns;
	int option;
}; /* option -1: it is turned away */
struct optimum_plan {
	struct optimum_start *start; /* by job of struct optimum_jobs; to be freed */
	double value;
	uint64_t steps; /* decisions that were looked at */
	bool exact; /* false: the steps did not suffice, and the plan is only the best one found */
};
int optimum_exact(const struct optimum_jobs *j, uint64_t max_steps, struct optimum_plan *out,
		  struct err *err);

int optimum_bound(const struct optimum_jobs *j, double *out_value, struct err *err);

#endif
