/* The scheduler: a state machine that reads no clock, opens no file, starts no process. Events and the time go
 * in, decisions and starts come out; the same input gives the same output to the byte. The daemon drives it
 * with real time and processes, the simulator with virtual ones.
 *
 * A job's batch (and epochs, where they are open) is decided when it arrives and again when it starts, for the time
 * that is left then.
 *
 * The plan. Promised jobs that wait stand in the plan, by priority and then by deadline (earliest first). The
 * look-ahead plays the running jobs and the plan in strict order; an arriving job is promised its objective only if,
 * in its place in the plan, it is in time by its bound and no promise that would hold without it is broken.
 * Where its place breaks one, it is tried behind the end of the job it would break (at most 4 such steps), and then
 * waits for that end.
 *
 * Starts. Jobs are tried in the order: the plan; then jobs without a promise, of the tenant with the lowest standing
 * first (below), each tenant's in order of arrival. (Below priority 0: first the plan's, then the others'.) The next
 * one that finds its slots, its memory and room in its tenant's quota starts if starting it now is predicted to break no
 * promise that would hold without it, running or waiting, and not to delay a job that is due; otherwise it is held, and
 * tried again at the next event. So a job further back may start before one that cannot. With no promise to keep
 * and nobody due, whatever fits starts. Of those that would fit, at most 16 are looked at in a call
 * (4 where more than 256 jobs run or are planned), 4 of a tenant.
 *
 * Due. The first waiting job without a promise of a tenant is due once it has waited for the window, if the
 * tenant's standing is not above the mean; a job without a promise and with a priority above 0 is due at once. At most
 * one of a tenant is due by waiting. It then takes a place in the plan: before all deadlines if that breaks no
 * promise, else behind those promises made so far. From then on nothing starts, and nothing is promised, that by the
 * look-ahead delays its start (but jobs of a higher priority). So no job starves, and a tenant is not below its share
 * for longer than the window while it has work that could run, except while jobs that run, or were promised before
 * that moment, bind the machine.
 *
 * Standing: (usage + window x cpus that run now) / weight. Usage is in cpu-seconds and fades by 1/e in a window, so
 * that under a constant load it is window x cpus. A tenant whose standing is not above the mean of the tenants that
 * have jobs (sums over them, usage and weight apart) is not above its weighted share.
 *
 * Policies that do not look ahead start in the same order and strictly: nothing is held, nobody passes but over a
 * quota.
 *
 * Nothing allocates but sched_new(), which makes room for max_jobs, and sched_set_tenants().
 *
 * A queued job waits for the memory of the batch it was admitted with; at its start no batch is taken that needs more
 * memory than is free. The look-ahead knows slots and quotas, not memory: a wait for memory alone is not
 * foreseen. Of a queue beyond 512 jobs it sees a part and a summary (sched_scene.c). */
#ifndef SCHEDULER_CORE_SCHED_H
#define SCHEDULER_CORE_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "scheduler/core/decide.h"
#include "scheduler/core/policy.h"

#define SCHED_NEVER INT64_MAX
#define SCHED_DEFAULT_WINDOW_S 3600.0
#define SCHED_MAX_TENANTS 65536
#define SCHED_RECURRING 16384 /* recurring jobs remembered; the one not seen for longest is forgotten */

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
	double window_s;            /* of usage and of waiting without a promise; 0: SCHED_DEFAULT_WINDOW_S */
	bool adapt;                 /* times and bounds follow what sched_observe() says; policies with bounds only */
	double hysteresis;          /* a recurring job leaves its batch for one better by more than this part; 0: at once */
	double explore;             /* share of the promised jobs with headroom that start with the second best (explore.h); a
	                               recurring one is back at its own the next time; 0: none */
};
int sched_new(const struct sched_params *p, struct sched **out, struct err *err);
void sched_free(struct sched *s);

struct sched_request {              /* a job as it arrives */
	uint64_t id;                /* > 0, unique among all jobs ever */
	const struct job_values *values; /* under the model's schema; borrowed until the job has ended. Columns of
	                               the load (njobs, processes) and the decision in it are ignored. */
	uint32_t cpus;              /* at least 1 */
	const double *batch; size_t n_batches; /* borrowed likewise, ascending; NULL: the model's candidates */
	const double *epochs; size_t n_epochs; /* to choose from, likewise; NULL: fixed by the values. At most
	                               DECIDE_MAX_CANDIDATES pairs. */
	uint32_t tenant;            /* index among those of sched_set_tenants(); ignored before it was called */
	int priority;               /* higher ones go before all lower ones; who may ask for one is the caller's business */
	bool may_stop;              /* rather stopped early than late: sched_should_stop() */
	int type;                   /* a number from 0 on that stays the job type's own (adapt.h); below 0: none */
	uint64_t recurring;         /* fingerprint of user, type and parameters (recurring.h); 0: none */
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
	SCHED_REJECTED,             /* not kept: d->smallest_slo_s says what could be promised (NaN: nothing was found).
	                               Best effort too, if it fits nowhere. */
};
const char *sched_verdict_name(enum sched_verdict v); /* "promised", "best_effort", "rejected" */

struct sched_estimate {             /* of one job, at the time of asking; seconds from then */
	double start_s;             /* 0: runs */
	double end_s;               /* expected; NaN: nothing is known (no model) */
	double end_low_s, end_high_s; /* at the job's confidence, both ways; NaN: no bound */
	bool late;                  /* promised, and end_high_s is behind the deadline */
};

/* ---- tenants ---- */
struct sched_tenant {
	const char *name;           /* for messages; borrowed until the next call; NULL: its number */
	double weight;              /* > 0 */
	size_t max_queued;          /* waiting jobs; 0: no limit */
	uint32_t max_cpus;          /* of its running jobs together; 0: no limit. What an owner starts himself counts, and
	                               is not refused. */
};
/* From now on; usage stays with the index. May be called again at any time, also with more of them; before the first
 * call all jobs are one tenant's. ERR_ARG: a live job is of a tenant that is not there any more. */
int sched_set_tenants(struct sched *s, int64_t now_ns, const struct sched_tenant *tenant, size_t n, struct err *err);

struct sched_share {                /* of a tenant, at the time of asking */
	double usage_cpu_s;
	double standing, mean_standing; /* see above; mean NaN: nobody has jobs */
	uint64_t cpus;              /* that run */
	size_t queued, running;
};
int sched_share(struct sched *s, int64_t now_ns, uint32_t tenant, struct sched_share *out, struct err *err);

/* ---- events ---- */
/* A job arrives. Unless rejected it is queued; sched_next() says when it may start, perhaps at once.
 * ERR_BUSY: max_jobs are there, or the tenant's max_queued wait; ERR_ARG: a value out of range; nothing has
 * changed then. */
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
/* Processes of others that keep the machine busy (a mean, not necessarily whole): from now on they count in every
 * look-ahead, and in the loads that predictions see, as jobs of one process each that never end. */
int sched_set_other_load(struct sched *s, int64_t now_ns, double processes, struct err *err);
/* It ended, was cancelled, or is lost: its slots are free, and it is forgotten. ERR_NOTFOUND: no such live job. */
int sched_remove(struct sched *s, int64_t now_ns, uint64_t id, struct err *err);

/* After a restart and before the first event: a job admitted earlier, in the order of arrival; running ones with the
 * batch they started with. No decision is made; where `taken` has no work, the model says what there is. Work done
 * is counted anew from the starts of those that still run: reports of progress, jobs that have ended since, the usage
 * of tenants, and which job waited for the end of another are not known. sched_set_tenants() comes first. */
struct sched_restored {
	struct sched_request request;
	int64_t submitted_ns;
	bool promised, running;
	int64_t started_ns;         /* running */
	struct candidate taken;     /* what was decided last; all zero: not known */
};
int sched_restore(struct sched *s, const struct sched_restored *r, struct err *err);

/* ---- learning ---- */
/* A running job has ended after actual_s seconds: those that it would have run under the load that was foreseen at its
 * start, without what later arrivals have added and early ends have saved. That is what guard_s was a bound of. Asked
 * before sched_remove(). NaN: not running, or nothing was foreseen. */
double sched_foreseen_s(struct sched *s, int64_t now_ns, uint64_t id, double actual_s);
/* A job has ended by itself. Ignored unless adapt is on. To restore what was learnt: the same calls in the same order. */
struct sched_observation {
	int type;
	double confidence;
	double model_s, guard_s, upper_s; /* of the candidate it started with; bounds NaN: nothing was promised */
	double foreseen_s;          /* sched_foreseen_s() at its end; NaN: not known, and actual_s stands for it */
	double actual_s;            /* that it ran */
};
void sched_observe(struct sched *s, const struct sched_observation *o);
/* What was learnt of run times under the load foreseen, which promises rest on, and of run times as they came, which is
 * told; NULL: adapt is off, or the policy has no bounds. */
const struct adapt *sched_adapt(const struct sched *s);
const struct adapt *sched_adapt_told(const struct sched *s);
/* After a restart: a recurring job that has ended since took this. Starts are remembered anyway. epochs NaN: not open. */
void sched_remember(struct sched *s, uint64_t recurring, double batch, double epochs);

/* ---- questions ---- */
/* Estimates of every live job in one play (or two): out[i] belongs to id[i]; returns how many (at most `max`). Order:
 * running jobs by start, then the queue in the order of starts. Nobody passes another in it, so that jobs may start
 * earlier. No allocation. The bounds are the expected end times and over the ratio of
 * bound and expectation at the job's decision. 2 ms for 10,000 jobs; sched_estimate() of one is cheaper, and of a
 * job behind more than 512 others approximate. */
size_t sched_estimates(struct sched *s, int64_t now_ns, uint64_t *id, struct sched_estimate *out, size_t max);
int sched_estimate(struct sched *s, int64_t now_ns, uint64_t id, struct sched_estimate *out, struct err *err);
/* Why a job waits. */
enum sched_wait {
	SCHED_WAIT_NOT,             /* it runs, or would start at the next call of sched_next() */
	SCHED_WAIT_SLOTS,           /* first in turn, and too few slots are free: needed, available */
	SCHED_WAIT_MEMORY,          /* likewise; MB */
	SCHED_WAIT_TURN,            /* `ahead` jobs go before it, and the machine is full or they are not to be passed */
	SCHED_WAIT_HELD,            /* starting now would break the promise of job `job`, or delay it if it is due */
	SCHED_WAIT_QUOTA,           /* its tenant's cpus: needed, available */
};
const char *sched_wait_name(enum sched_wait w); /* "not", "slots", "memory", "turn", "held", "quota" */
struct sched_waiting {
	enum sched_wait why;
	double needed, available;   /* NaN where it says nothing */
	uint64_t job;               /* held; 0 otherwise */
	size_t ahead;               /* in the order of starts */
	bool due;
};
int sched_waiting(struct sched *s, int64_t now_ns, uint64_t id, struct sched_waiting *out, struct err *err);

/* A running job with an objective that may be stopped early, and has done `done` of its `epochs`: after which epoch to
 * stop it, so that it ends in time as far as its own progress tells; 0: let it run. At least `done`, so that equal to
 * it means at once. Reports of progress come first (sched_progress()). */
uint32_t sched_should_stop(struct sched *s, int64_t now_ns, uint64_t id, uint32_t done, uint32_t epochs);

size_t sched_running(const struct sched *s);
size_t sched_queued(const struct sched *s);
uint32_t sched_slots_used(const struct sched *s);
bool sched_lives(const struct sched *s, uint64_t id);

/* ---- change ---- */
/* Another model, policy or machine from now on; jobs keep what was decided for them; max_jobs and the seed stay as
 * they were. With another model adaptation begins anew (adapt_reset()); recurring jobs are still remembered. The values of live jobs must be under the new model's schema: the caller hands them over by id (without
 * a model values_of may be NULL). A queued job that the new machine cannot hold is passed over until it can be.
 * On failure nothing has changed. Before the first event and without jobs it is no event: jobs may be restored after it. */
int sched_use(struct sched *s, int64_t now_ns, const struct sched_params *p,
              const struct job_values *(*values_of)(void *owner, uint64_t id), void *owner, struct err *err);

#endif
