/* Plays the best schedule there is, where it can be found; where there are too many jobs for that, every
 * job is turned away, and the result has an upper bound of the value instead (struct replay_result). */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "sim/replay/brain.h"
#include "sim/replay/optimum.h"

struct brain_best {
	struct optimum_jobs jobs;
	struct optimum_plan plan; /* start NULL: there is only a bound */
	double bound;
	bool arrived[OPTIMUM_EXACT_JOBS]; /* at the moment of an end a job may still be about to arrive */
	size_t waiting; /* arrived, will be started, not yet */
};

static void best_destroy(void *self)
{
	struct brain_best *b = self;

	if (!b)
		return;
	optimum_jobs_release(&b->jobs);
	free(b->plan.start);
	free(b);
}

static int best_make(const struct replay_params *p, struct world_nodes *nodes, void **out_self,
		     struct err *err)
{
	struct brain_best *b = mem_calloc(1, sizeof *b);
	int status = b ? optimum_jobs_make(p, &b->jobs, err) : err_nomem(err, "a replay");

	(void)nodes;
	if (!status && p->trace->n_jobs <= OPTIMUM_EXACT_JOBS)
		status = optimum_exact(&b->jobs, OPTIMUM_MAX_STEPS, &b->plan, err);
	if (!status && !b->plan.exact) {
		free(b->plan.start);
		b->plan.start = NULL;
		status = optimum_bound(&b->jobs, &b->bound, err);
	}
	if (status)
		best_destroy(b);
	else
		*out_self = b;
	return status;
}

static int best_arrive(void *self, int64_t now_ns, size_t job, struct outcome *io, struct err *err)
{
	struct brain_best *b = self;

	(void)now_ns, (void)err;
	io->state = OUTCOME_REJECTED;
	for (size_t i = 0; b->plan.start && i < b->jobs.n; i++)
		if (b->jobs.job[i].job == job && b->plan.start[i].option >= 0) {
			io->promised = b->arrived[i] = true;
			b->waiting++;
		}
	return 0;
}

static bool best_next(void *self, int64_t now_ns, struct brain_start *out)
{
	struct brain_best *b = self;

	for (size_t i = 0; b->plan.start && i < b->jobs.n; i++) {
		struct optimum_start *s = &b->plan.start[i];
		const struct optimum_option *o;

		if (s->option < 0 || s->at_ns != now_ns || !b->arrived[i])
			continue;
		o = &b->jobs.job[i].option[s->option];
		*out = (struct brain_start){ .job = b->jobs.job[i].job,
					     .batch = o->batch,
					     .epochs = o->epochs,
					     .run_s = NAN,
					     .run_upper_s = NAN,
					     .predicted_accuracy = o->accuracy };
		s->option = -1;
		b->waiting--;
		return true;
	}
	return false;
}

static int best_ended(void *self, int64_t now_ns, size_t job, bool failed, double run_s, struct err *err)
{
	(void)self, (void)now_ns, (void)job, (void)failed, (void)run_s, (void)err;
	return 0;
}

static size_t best_waiting(void *self)
{
	return ((const struct brain_best *)self)->waiting;
}

static bool best_bound(const void *self, double *out)
{
	const struct brain_best *b = self;

	*out = b->jobs.objectives ? b->bound / (double)b->jobs.objectives : 0.0;
	return !b->plan.start;
}

const struct brain_ops brain_optimum = {
	.make = best_make,
	.destroy = best_destroy,
	.arrive = best_arrive,
	.next = best_next,
	.ended = best_ended,
	.waiting = best_waiting,
	.bound = best_bound,
};
