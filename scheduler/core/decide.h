/* The decision: among the candidate values of one job, the best predicted accuracy that will meet
 * the objective, given everything else that runs. Pure: no clock, file, socket, thread or allocation. Called
 * with a bare model by `postrider predict`, and with a scene (sched.c) by the daemon and the simulator. */
#ifndef SCHEDULER_CORE_DECIDE_H
#define SCHEDULER_CORE_DECIDE_H

#include "predictors/model.h"
#include "queueing/fluid.h"
#include "scheduler/core/policy.h"

#define DECIDE_MAX_CANDIDATES 64

/* Reason bits: why a candidate is not feasible, or lost against the chosen one. */
enum decide_reason {
	REASON_SLO_EXCEEDED = 1,      /* wait and time, at their bounds, above the objective */
	REASON_NO_BOUND = 2,          /* too few residuals for the confidence: no promise possible */
	REASON_EXTRAPOLATED = 4,      /* outside the training ranges: a notice, not a refusal */
	REASON_LOWER_ACCURACY = 8,    /* feasible, but another one is predicted more accurate */
	REASON_SLOWER = 16,           /* equal accuracy, another one is faster */
	REASON_UNSTABLE = 32,         /* the model has no time for it: a queue without a steady state */
	REASON_MEMORY = 64,           /* needs more memory than there is, or than the job allows */
	REASON_BREAKS_PROMISE = 128,  /* a job with a promise would miss it */
	REASON_TOO_WIDE = 256,        /* wants more cpus than the machine hands out */
	REASON_NOT_PICKED = 512,      /* the policy chooses by another rule (naive, fixed) */
};
const char *decide_reason_text(enum decide_reason one); /* stable code, e.g. "slo_exceeded" */

struct candidate {
	double decision;              /* the batch */
	double wait_s, wait_upper_s;  /* until it can start; 0 without a scene */
	double time_s, upper_s;       /* from start to end; upper_s NaN when there is no bound, both when unstable */
	double accuracy;              /* NaN without an accuracy model */
	double memory_mb;             /* NaN: not known */
	double work_s;                /* of the look-ahead: seconds it would take alone; NaN without a scene */
	double cpu_share, disk_share; /* of that */
	double delays_s;              /* by how much it would delay the job it delays most; 0: nobody; NaN: it was not
	                                 played (lookahead.c), and its numbers are approximate */
	uint64_t breaks;              /* the first job whose promise it would break; 0: none */
	bool extrapolated, feasible;
	unsigned reasons;             /* enum decide_reason, or-ed */
};

struct decision {
	struct candidate candidate[DECIDE_MAX_CANDIDATES];
	size_t n_candidates;
	int chosen;                   /* index, -1: none feasible */
	double smallest_slo_s;        /* the smallest objective that could have been promised; NaN: none */
	double confidence;
};

/* ---- what else runs ---- */

struct decide_neighbour {             /* a job that runs or waits */
	uint64_t id;
	double ratio;                 /* its upper bound over its expected time; NaN: it has no bound */
	double deadline_s;            /* of its promise, from now on; INFINITY: it has none */
};

struct decide_scratch;                /* memory for one look-ahead at a time */
int decide_scratch_new(size_t max_jobs, struct decide_scratch **out, struct err *err); /* in a scene */
void decide_scratch_free(struct decide_scratch *w);
/* A play in that memory, without a decision: the times stay valid until the next one. */
int decide_play(struct decide_scratch *w, const struct fluid_scene *f, const struct fluid_times **out,
                struct err *err);

struct decide_scene {                 /* borrowed for the length of a call */
	const struct policy_choice *policy;
	struct fluid_machine machine;
	struct fluid_job *running; size_t n_running; /* with room for one more: a job about to start */
	const struct fluid_job *queued; size_t n_queued;
	const struct decide_neighbour *neighbour; /* n_running + n_queued, in that order */
	uint32_t cpus;                /* of the job decided about */
	bool starting;                /* it starts now, among those that run; else it joins the end of the queue */
	double memory_mb, memory_mb_per_record; /* it needs; NaN: not known */
	double memory_limit_mb;       /* a candidate that needs more is not feasible; INFINITY: no limit */
	struct rng rng;               /* of a policy that draws */
	struct decide_scratch *scratch; /* of a policy that looks ahead */
};

struct decide_params {
	const struct model *model;    /* NULL: only with a scene whose policy chooses without one; nothing is predicted */
	const struct job_values *job; /* the decision column in it is ignored */
	const double *candidate; size_t n_candidates; /* NULL: the model's own */
	double slo_s;                 /* NaN: no objective, every candidate that is stable is feasible */
	double confidence;            /* e.g. 0.9 */
	const struct decide_scene *scene; /* NULL: the job's own values say the load */
};

int decide(const struct decide_params *p, struct decision *out, struct err *err);

/* By how much longer a second of work takes among `processes` than alone: S of queueing/fluid.h. */
double decide_stretch(const struct fluid_machine *m, const struct fluid_job *j, double processes);
/* The machine as the model knows it; one that does not knows the configured cores and no disk. */
struct fluid_machine decide_machine(const struct model *m, double cores, uint32_t slots);
/* What the work and the shares of a candidate taken make for a play; a work that is not known is 0. */
struct fluid_job decide_fluid_job(const struct candidate *c, uint32_t cpus);

#endif
