/* The scheduler: a state machine that reads no clock, opens no file, starts no process. Events and the time go
 * in, decisions and starts come out; the same input gives the same output to the byte. The daemon drives it
 * with real time and processes, the simulator with virtual ones.
 *
 * First come, first served, with capacity in cpu slots. A job's batch is decided when it arrives and again when
 * it starts. Every running and queued job has an estimate by the fluid look-ahead, and a job that was promised
 * its objective keeps the promise before others are admitted.
 *
 * Nothing allocates but sched_new(), which makes room for max_jobs.
 *
 * A queued job waits for its turn, for slots, and for the memory of the batch it was admitted with; at its start no
 * batch is taken that needs more memory than is free. The look-ahead knows slots, not memory: a wait for memory
 * alone is not foreseen. Of a queue beyond 512 jobs it sees a summary (sched_scene.c). */
#ifndef SCHEDULER_CORE_SCHED_H
#define SCHEDULER_CORE_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "scheduler/core/decide.h"
#include "scheduler/core/policy.h"

#define SCHED_NEVER INT64_MAX

struct sched;

struct sched_machine {
	double cores;        /* > 0 */
	uint32_t slots;      /* cpus handed out; may exceed the cores */
	double memory_mb;    /* INFINITY: no limit */
};

struct sched_params {
	struct policy_choice policy;
	const struct model *model;  /* borrowed until sched_use() replaces it; NULL: only for policies that want
	                               none, and then nothing is predicted */
	struct sched_machine machine;
	size_t max_jobs;            /* live ones (queued and running) at most */
	uint64_t seed;              /* of naive's draws: job i's depend on seed and id alone */
};
int sched_new(const struct sched_params *p, struct sched **out, struct err *err);
void sched_free(struct sched *s);

struct sched_request {              /* a job as it arrives */
	uint64_t id;                /* > 0, unique among all jobs ever */
	const struct job_values *values; /* under the model's schema; borrowed until the job has ended. Columns of
	                               the load (njobs, processes) and the decision in it are ignored. */
	uint32_t cpus;              /* at least 1 */
	const double *batch; size_t n_batches; /* borrowed likewise, ascending; NULL: the model's candidates */
	double slo_s;               /* from arrival to end; NaN: no objective */
	double confidence;
	bool best_effort;           /* take it without a promise rather than reject it */
	double memory_mb, memory_mb_per_record; /* NaN: not known */
	double max_memory_mb;       /* the job's own limit; NaN: none */
};

enum sched_verdict {
	SCHED_PROMISED,             /* admitted, and its objective is predicted to hold */
	SCHED_BEST_EFFORT,          /* admitted without a promise: it has no objective, or asked for it; or a policy
	                               that admits all does not predict that its objective will hold */
	SCHED_REJECTED,             /* not kept: d->smallest_slo_s says what could have been promised. Best effort too, if
	                               it fits nowhere or every candidate would break somebody's promise. */
};
const char *sched_verdict_name(enum sched_verdict v); /* "promised", "best_effort", "rejected" */

struct sched_estimate {             /* of one job, at the time of asking; seconds from then */
	double start_s;             /* 0: runs */
	double end_s;               /* expected; NaN: nothing is known (no model) */
	double end_low_s, end_high_s; /* at the job's confidence, both ways; NaN: no bound */
	bool late;                  /* promised, and end_high_s is behind the deadline */
};

/* ---- events ---- */
/* A job arrives. Unless rejected it is queued; sched_next() says when it may start, perhaps at once.
 * ERR_BUSY: max_jobs are there; ERR_ARG: a value out of range; nothing has changed then. */
int sched_submit(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
                 enum sched_verdict *out_verdict, struct err *err);
/* The same decision without keeping the job: `predict` and --dry-run. */
int sched_what_if(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
                  enum sched_verdict *out_verdict, struct err *err);

/* The next job whose turn it is, with its batch decided anew for the time that is left: true, and it runs from
 * now on as far as this machine is concerned. Called until false after every event. With SCHED_REJECTED never:
 * a promise once made is kept as well as can be, with the candidate of the smallest bound if none is in time. */
bool sched_next(struct sched *s, int64_t now_ns, uint64_t *out_id, struct decision *out);
/* An advised job was started by its owner, whatever our order said: decided anew, and running. */
int sched_start_now(struct sched *s, int64_t now_ns, uint64_t id, struct decision *out, struct err *err);

/* A running job reports that `done` (0..1) of its work is behind it. */
int sched_progress(struct sched *s, int64_t now_ns, uint64_t id, double done, struct err *err);
/* It ended, was cancelled, or is lost: its slots are free, and it is forgotten. ERR_NOTFOUND: no such live job. */
int sched_remove(struct sched *s, int64_t now_ns, uint64_t id, struct err *err);

/* After a restart and before the first event: a job admitted earlier, in the order of arrival; running ones with the
 * batch they started with. No decision is made; where `taken` has no work, the model says what there is. Work done
 * is counted anew from the starts of those that still run: reports of progress, and jobs that have ended since, are
 * not known. */
struct sched_restored {
	struct sched_request request;
	int64_t submitted_ns;
	bool promised, running;
	int64_t started_ns;         /* running */
	struct candidate taken;     /* what was decided last; all zero: not known */
};
int sched_restore(struct sched *s, const struct sched_restored *r, struct err *err);

/* ---- questions ---- */
/* Estimates of every live job in one play: out[i] belongs to id[i]; returns how many (at most `max`). Order:
 * running jobs by start, then the queue. No allocation. The bounds are the expected end times and over the ratio of
 * bound and expectation at the job's decision. 2 ms for 10,000 jobs; sched_estimate() of one is cheaper, and of a
 * job behind more than 512 others approximate. */
size_t sched_estimates(struct sched *s, int64_t now_ns, uint64_t *id, struct sched_estimate *out, size_t max);
int sched_estimate(struct sched *s, int64_t now_ns, uint64_t id, struct sched_estimate *out, struct err *err);
size_t sched_running(const struct sched *s);
size_t sched_queued(const struct sched *s);
uint32_t sched_slots_used(const struct sched *s);
bool sched_lives(const struct sched *s, uint64_t id);

/* ---- change ---- */
/* Another model, policy or machine from now on; jobs keep what was decided for them; max_jobs and the seed stay as
 * they were. The values of live jobs must be under the new model's schema: the caller hands them over by id (without
 * a model values_of may be NULL). A queued job that the new machine cannot hold is passed over until it can be.
 * On failure nothing has changed. */
int sched_use(struct sched *s, int64_t now_ns, const struct sched_params *p,
              const struct job_values *(*values_of)(void *owner, uint64_t id), void *owner, struct err *err);

#endif
