/* The decision: among the candidate values of one job, the best predicted accuracy that will meet
 * the objective, given everything else that runs. Pure: no clock, file, socket, thread or allocation. Called
 * with a bare model by `postrider predict`, and with a scene (sched.c) by the daemon and the simulator. */
#ifndef SCHEDULER_CORE_DECIDE_H
#define SCHEDULER_CORE_DECIDE_H

#include "predictors/model.h"
#include "queueing/fluid.h"
#include "scheduler/core/adapt.h"
#include "scheduler/core/policy.h"

#define DECIDE_MAX_CANDIDATES 256 /* batches x numbers of epochs; a struct decision has 37 kB */

/* Reason bits: why a candidate is not feasible, or lost against the chosen one. */
enum decide_reason {
	REASON_SLO_EXCEEDED = 1,      /* wait and time, at their bounds, above the objective */
	REASON_NO_BOUND = 2,          /* too few residuals for the confidence: no promise possible */
	REASON_EXTRAPOLATED = 4,      /* outside the training ranges: a notice, not a refusal */
	REASON_LOWER_ACCURACY = 8,    /* feasible, but another one is predicted more accurate */
	REASON_SLOWER = 16,           /* equal accuracy, another one is faster */
	REASON_UNSTABLE = 32,         /* the model has no time for it: a queue without a steady state */
	REASON_MEMORY = 64,           /* needs more memory than there is, or than the job allows */
	REASON_BREAKS_PROMISE = 128,  /* a job with a promise would miss it, or one that is due would start later */
	REASON_TOO_WIDE = 256,        /* wants more cpus than the machine hands out */
	REASON_NOT_PICKED = 512,      /* the policy chooses by another rule (naive, fixed) */
	REASON_NOT_TRIED = 1024,      /* of very many candidates on a full machine, not looked at: it has almost as much work
	                                 as one that failed */
};
const char *decide_reason_text(enum decide_reason one); /* stable code, e.g. "slo_exceeded" */

struct candidate {
	double decision;              /* the batch */
	double epochs;                /* NaN: not open, the job's own values say them */
	double wait_s, wait_upper_s;  /* until it can start; 0 without a scene */
	double time_s, guard_s;       /* from start to end, and its bound, both under the load that is foreseen: what promises
	                                 rest on, because whoever comes later is let in only if they hold. guard_s NaN when
	                                 there is no bound, both when unstable */
	double upper_s;               /* the bound to tell people: whoever comes later may slow it down, though not behind its
	                                 objective where that is promised. At least guard_s, NaN likewise */
	double model_s;               /* the time as the model has it, before what was learnt of its errors since (adapt.h) */
	double accuracy;              /* NaN without an accuracy model */
	double memory_mb;             /* NaN: not known */
	double work_s;                /* of the look-ahead: seconds it would take alone; NaN without a scene */
	double cpu_share, disk_share; /* of that */
	double delays_s;              /* by how much it would delay the job it delays most; 0: nobody. Among very many jobs
	                                 those count that end before it, and those whose promise could be in question.
	                                 NaN: it was not looked at (lookahead.c), and its numbers may be approximate */
	uint64_t breaks;              /* the first job whose promise it would break, or that is due and would start
	                                 later; 0: none */
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
	bool guarded;                 /* it waits, and may not start later than it would without */
};

struct decide_scratch;                /* memory for one look-ahead at a time */
int decide_scratch_new(size_t max_jobs, struct decide_scratch **out, struct err *err); /* in a scene */
void decide_scratch_free(struct decide_scratch *w);
/* A play in that memory, without a decision: the times stay valid until the next one. */
int decide_play(struct decide_scratch *w, const struct fluid_scene *f, const struct fluid_times **out,
                struct err *err);

/* Borrowed for the length of a call. Beside the others there is a seat for the job decided about: among the running
 * when it starts now (running[n_running], the last), else in the queue (queued[position]). Seats are counted over the
 * running and then the queued ones, its own included; `after` of the jobs counts in seats, too. */
struct decide_scene {
	const struct policy_choice *policy;
	struct fluid_machine machine;
	double other_load;               /* processes of others */
	struct fluid_group *group; size_t n_groups;
	struct fluid_job *running; size_t n_running; /* without it; there is room for it */
	struct fluid_job *queued; size_t n_queued; /* likewise */
	const struct decide_neighbour *neighbour; /* by seat; its own is not looked at */
	const struct fluid_times *before; /* by seat: what becomes of them without it; NULL: it is played */
	size_t position;              /* queued jobs that start before it */
	uint32_t after, own_group;    /* of it, as in a struct fluid_job */
	uint32_t cpus;                /* of the job decided about */
	uint32_t most_cpus;           /* that it may have: the slots, or a quota */
	bool starting;
	bool indifferent;             /* nobody has a promise or is guarded: what becomes of them matters little */
	double memory_mb, memory_mb_per_record; /* it needs; NaN: not known */
	double memory_limit_mb;       /* a candidate that needs more is not feasible; INFINITY: no limit */
	struct rng rng;               /* of a policy that draws */
	const struct adapt *adapt; int type; /* corrects times and bounds of jobs of this type; NULL: the model's own */
	const struct adapt *told;     /* likewise the bounds that are told, by times under whatever load came; NULL: guard_s */
	bool recalls;                 /* a recurring job: recurring_keep() comes after the decision, and takes this pair if */
	double recalled_batch, recalled_epochs, hysteresis; /* it can, so that it is the one to be looked at */
	struct decide_scratch *scratch; /* of a policy that looks ahead */
};

struct decide_params {
	const struct model *model;    /* NULL: only with a scene whose policy chooses without one; nothing is predicted */
	const struct job_values *job; /* the decision column in it is ignored */
	const double *candidate; size_t n_candidates; /* batches; NULL: the model's own */
	const double *epochs; size_t n_epochs; /* ascending; NULL: not open. All pairs are candidates: batch by batch,
	                                 of each the epochs ascending */
	double slo_s;                 /* NaN: no objective, every candidate that is stable is feasible */
	double confidence;            /* e.g. 0.9 */
	const struct decide_scene *scene; /* NULL: the job's own values say the load */
};

int decide(const struct decide_params *p, struct decision *out, struct err *err);

/* What a job with this work in the seat of the scene does to the others, without a decision: the id of the first
 * whose promise it breaks, or that is guarded and starts later; 0: nobody. out_own (may be NULL): its times. */
int decide_probe(const struct decide_scene *s, const struct fluid_job *job, uint64_t *out_breaks,
                 struct fluid_times *out_own, struct err *err);
/* A job with this deadline, at its bound, ends in time. */
bool decide_in_time(const struct decide_neighbour *n, double end_s);

/* By how much longer a second of work takes among `processes` than alone: S of queueing/fluid.h. */
double decide_stretch(const struct fluid_machine *m, const struct fluid_job *j, double processes);
/* The machine as the model knows it; one that does not knows the configured cores and no disk. */
struct fluid_machine decide_machine(const struct model *m, double cores, uint32_t slots);
/* What the work and the shares of a candidate taken make for a play; a work that is not known is 0. */
struct fluid_job decide_fluid_job(const struct candidate *c, uint32_t cpus);

#endif
