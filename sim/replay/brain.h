/* Who decides in a replay: a policy of scheduler/core (brain_sched.c), the oracle (brain_oracle.c), the
 * best schedule there is (brain_optimum.c), or a queue with the paper's models (brain_queue.c).
 * replay.c feeds them the same events and starts what they say. Jobs go by their index in the trace. */
#ifndef SIM_REPLAY_BRAIN_H
#define SIM_REPLAY_BRAIN_H

#include "scheduler/core/steer.h"
#include "sim/replay/replay.h"
#include "sim/world/nodes.h"

struct brain_start {              /* a job to start now */
	size_t job;
	uint32_t node;
	double batch, epochs;
	double run_s, run_upper_s, predicted_accuracy; /* NaN: not predicted */
};

struct brain_ops {
	bool places;                  /* it can choose a node for a job; others take one machine alone */
	/* `nodes` is what really happens; the oracle looks at it. Borrowed. */
	int (*make)(const struct replay_params *p, struct world_nodes *nodes, void **out_self,
	            struct err *err);
	void (*destroy)(void *self);  /* accepts NULL */
	/* Fills state (rejected or refused, else untouched), node, promised, by_chance, promised_s and
	 * promised_upper_s. */
	int (*arrive)(void *self, int64_t now_ns, size_t job, struct outcome *io, struct err *err);
	/* The next job to start; false: none for now. */
	bool (*next)(void *self, int64_t now_ns, struct brain_start *out);
	/* A waiting job that is given up; false: none. Called when no job is to start. May be NULL. */
	bool (*dropped)(void *self, int64_t now_ns, size_t *out_job);
	/* When the next job that runs is to be stopped, and which; WORLD_NEVER: none. May be NULL. */
	int64_t (*stops_ns)(void *self, size_t *out_job);
	/* After how many epochs a running job is to end, which has done this part of its `epochs` and may be
	 * stopped; 0: let it run. May be NULL. */
	uint32_t (*gives_back)(void *self, int64_t now_ns, size_t job, double part, uint32_t epochs);
	/* After how many epochs a job that has started and asks for its batch will end, as things are; 0: it
	 * is not steered. NULL: no job is. */
	uint32_t (*steers)(void *self, size_t job, double epochs);
	/* What it is told after an epoch. */
	int (*steer)(void *self, int64_t now_ns, size_t job, const struct steer_report *r,
	             struct steer_answer *out, struct err *err);
	/* It was stopped. */
	int (*stopped)(void *self, int64_t now_ns, size_t job, struct err *err);
	int (*ended)(void *self, int64_t now_ns, size_t job, bool failed, double run_s, struct err *err);
	size_t (*waiting)(void *self);                  /* jobs; asked after every event */
	/* False: jobs are played. True: none are, and this is the mean accuracy, a miss as 0, that no
	 * schedule exceeds. NULL: they are always played. */
	bool (*bound)(const void *self, double *out);
};
extern const struct brain_ops brain_sched, brain_oracle, brain_optimum, brain_queue;

static inline double replay_confidence(const struct replay_params *p, const struct trace_job *j)
{
	return isnan(j->confidence) ? p->settings.confidence : j->confidence;
}

static inline int64_t brain_deadline_ns(const struct trace_job *j) /* WORLD_NEVER: it has no limit */
{
	double ns = (double)j->arrival_ns + 1e9 * j->slo_s;

	return ns < 9e18 ? (int64_t)ns : WORLD_NEVER;
}

#endif
