/* The scheduler: a state machine that reads no clock, opens no file and starts no process. Events and the
 * time go in; decisions and starts come out. The same input gives the same output to the byte. The daemon
 * drives it with real time and processes, the simulator with virtual ones.
 *
 * A job's batch (and epochs, if they are open) is decided when the job arrives, and again when it starts, for
 * the time that is left then.
 *
 * The plan. Promised jobs that wait form the plan, ordered by priority and then by deadline (earliest first).
 * The look-ahead plays the running jobs and the plan in strict order. An arriving job is promised its
 * limit only if, at its place in the plan, its bound is in time and it breaks no promise that would hold
 * without it. If it breaks one there, it is tried behind the end of the job whose promise it breaks (at most
 * 4 such steps); if that works, it waits for that end.
 *
 * Starts. Jobs are tried in this order: the plan; then jobs without a promise, beginning with the tenant of
 * the lowest standing (below), each tenant's jobs in order of arrival. Jobs below priority 0 come after all
 * others, in the same order among themselves. A job needs slots, memory, devices and room in its tenant's
 * quota. It then starts if starting it now is predicted to break no promise that would hold without it,
 * running or waiting, and to delay no job that is due. Otherwise it is held, and tried again at the next
 * event. So a job further back may start before one that cannot. If there is no promise to keep and no job is
 * due, whatever fits starts. One call looks at 16 jobs that would fit at most (4 if more than 256 jobs run or
 * are planned), and at 4 of a tenant.
 *
 * Due. A tenant's first waiting job without a promise is due once it has waited for the window, if the
 * tenant's standing is not above the mean. A job without a promise and with a priority above 0 is due at
 * once. At most one job of a tenant is due by waiting. A due job takes a place in the plan: before all
 * deadlines if that breaks no promise, else behind the promises made so far. From then on nothing starts, and
 * nothing is promised, that delays its start by the look-ahead (except jobs of a higher priority). So no job
 * starves. A tenant that has work which could run is not below its share for longer than the window, except
 * while running jobs, or jobs promised before that moment, bind the machine.
 *
 * Chance. A job may ask to be taken without a promise if its limit cannot be promised. It is taken if a
 * candidate has the chance it asked for, with the candidate of the largest chance x accuracy. It waits among
 * the jobs without a promise, by its tenant's standing, and is never due: its limit ends its wait. At its
 * start it gets the best candidate for the time that is left: one that is in time by its bound, else the
 * likeliest. Under a policy with a price it starts beside others only if it brings more than it costs them.
 * When no candidate has a chance of 2 % any more, it is not started, and sched_hopeless() names it. When it
 * runs and its deadline has passed, it is stopped (sched_chance_gone()).
 *
 * Standing: (usage + window x cpus that run now) / weight. Usage is in cpu-seconds and fades by 1/e in a
 * window, so that under a constant load it is window x cpus. The mean standing is the sum of usage + window x
 * cpus over the sum of weights, of the tenants that have jobs. A tenant whose standing is not above the mean
 * has not more than its weighted share.
 *
 * Policies that do not look ahead start jobs in the same order, strictly: no job is held, and no job passes
 * another, except one that waits for its tenant's quota.
 *
 * Unstarted. A job that its owner has to start (advised) holds its slots from its turn on. While unstarted
 * jobs of one owner hold max_unstarted_cpus, no other advised job of that owner has its turn.
 *
 * Only sched_new(), which makes room for max_jobs, and sched_set_tenants() allocate.
 *
 * Memory. A queued job waits for the memory of the batch it was admitted with. At its start no batch is taken
 * that needs more memory than is free. The look-ahead knows slots, devices and quotas, not memory, so it does
 * not foresee a wait for memory alone. Of a queue beyond 512 jobs it sees a part and a summary
 * (sched_scene.c).
 *
 * Devices. They are handed out whole, and how many a job wants may depend on its batch. A queued job waits
 * for as many as the batch it was admitted with wants; jobs that want none pass it. At its start no batch is
 * taken that wants more than are free. The scheduler only counts them; the caller chooses which ones a job
 * gets. */
#ifndef SCHEDULER_CORE_SCHED_H
#define SCHEDULER_CORE_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "scheduler/core/decide.h"
#include "scheduler/core/learn/pairs.h"
#include "scheduler/core/policy/policy.h"
#include "scheduler/core/steer.h"

#define SCHED_NEVER INT64_MAX
#define SCHED_DEFAULT_WINDOW_S 3600.0
#define SCHED_MAX_TENANTS 65536
#define SCHED_MAX_GUESTS 256

struct sched;

struct sched_machine {
	double cores;               /* > 0 */
	uint32_t slots;             /* cpus handed out; may exceed the cores */
	double memory_mb;           /* INFINITY: no limit */
	uint32_t devices;
	double device_memory_mb;    /* of each; 0 or INFINITY: not known */
};

struct sched_params {
	struct policy_choice policy;
	const struct model *model;  /* borrowed until sched_use() replaces it; NULL: nothing is predicted,
	                               which suits only policies that want no model */
	/* Models of jobs that have another one: sched_request.model is 1 + the index here. NULL entries: none
	 * yet. All of them share the machine and the look-ahead. */
	const struct model *const *own_model; size_t n_own_models;
	bool may_lack;              /* jobs without a model are taken, without a promise, although the policy
	                               wants one */
	struct sched_machine machine;
	size_t max_jobs;            /* the most live jobs, queued and running */
	uint64_t seed;              /* of naive's draws: those of a job depend on seed and id alone */
	double window_s;            /* of usage and of waiting without a promise; 0: SCHED_DEFAULT_WINDOW_S */
	bool adapt;                 /* times and bounds follow sched_observe(); for policies with bounds
	                               only */
	uint32_t max_unstarted_cpus; /* of advised jobs of one owner whose turn has come and that are not
	                               started; one job may have as many as it wants; 0: no limit */
};
int sched_new(const struct sched_params *p, struct sched **out, struct err *err);
/* A scheduler of another machine, with the models of `first` and room for at most as many jobs. The two share
 * what is learnt, the price of capacity and scratch memory, so both belong to one thread; jobs and plans are
 * its own. To be freed before `first`. Neither takes sched_use(). */
int sched_new_beside(struct sched *first, const struct sched_params *p, struct sched **out, struct err *err);
void sched_free(struct sched *s);

struct sched_request {              /* a job as it arrives */
	uint64_t id;                /* > 0, unique among all jobs ever */
	uint32_t model;             /* 0: sched_params.model; else 1 + the index of one of own_model */
	double guess_s;             /* without a model: the time that such a job will take, alone; 0 or NaN:
	                               not known, and it counts as one that does not end */
	const struct job_values *values; /* under that model's schema; borrowed until the job has ended. The
	                                    load (njobs, processes) and the decision in it are ignored. */
	uint32_t cpus;              /* at least 1 */
	const double *batch; size_t n_batches; /* ascending; borrowed until the job has ended; NULL: the
	                                          model's */
	const double *epochs; size_t n_epochs; /* the same for epochs; NULL: the values say them. At most
	                               DECIDE_MAX_CANDIDATES pairs of batch and epochs. */
	bool apart;                 /* an engine beside the machine runs it: it takes none of the machine's
	                               slots, memory and devices, meets none of its jobs, and no promise to
	                               one of these counts on its end (sched_apart.c) */
	uint32_t tenant;            /* index among those of sched_set_tenants(); ignored before that call */
	uint64_t owner;             /* the user who starts it when its turn has come; until then it counts
	                               for the user's max_unstarted_cpus; 0: it does not */
	int priority;               /* higher ones go before all lower ones; the caller decides who may ask
	                               for it */
	bool steer;                 /* it asks for its batch before each epoch: steer.h */
	struct steer_rate rate;     /* of one that does: its learning rate */
	bool may_stop;              /* rather stop it early than let it be late: sched_should_stop() */
	int type;                   /* a number from 0 on that stays with the job type (adapt.h); below 0:
	                               none */
	uint32_t user;              /* whose it is: what is learnt of one user's jobs moves the bounds of
	                               others little */
	double slo_s;               /* from arrival to end; NaN: no limit */
	double confidence;
	bool best_effort;           /* take it without a promise rather than reject it */
	double chance;              /* take it without a promise if it has at least this chance to be in time;
	                               0: reject it */
	double value;               /* what it is worth in time, where 1 is usual; 0 counts as 1 */
	double memory_mb, memory_mb_per_record; /* NaN: not known */
	double max_memory_mb;       /* the job's own limit; NaN: none */
	struct device_need device;
};

enum sched_verdict {
	SCHED_PROMISED,             /* admitted, and its limit is predicted to hold */
	SCHED_BEST_EFFORT,          /* admitted without a promise: it has no limit, or asked for this; or
	                               the policy admits all, and its limit is not predicted to hold */
	SCHED_REJECTED,             /* not kept. d->smallest_slo_s is what could be promised; NaN: nothing was
	                               found. d->offer is what it could take without a promise. Best effort is
	                               rejected, too, if it never fits. */
	SCHED_CHANCE,               /* admitted without a promise, because its chance is what it asked for */
};
const char *sched_verdict_name(enum sched_verdict v); /* "promised", "best_effort", "rejected", "chance" */

struct sched_estimate {             /* of one job, in seconds from the time of asking */
	double start_s;             /* 0: it runs */
	double end_s;               /* expected; NaN: not known, for want of a model */
	double end_low_s, end_high_s; /* bounds at the job's confidence; NaN: none */
	double chance;              /* that it ends by its deadline; NaN: it has none, or nothing is known */
	bool late;                  /* promised, and that chance is below one half */
	bool sure;                  /* late, its last report of progress said so, and the chance is next to
	                               none: enough to stop a job */
};

/* ---- tenants ---- */
struct sched_tenant {
	const char *name;           /* for messages; borrowed until the next call; NULL: its number */
	double weight;              /* > 0 */
	size_t max_queued;          /* waiting jobs; 0: no limit */
	uint32_t max_cpus;          /* of its running jobs together; 0: no limit. Jobs that their owner starts
	                               count, and are not refused. */
	uint32_t max_devices;       /* the same; 0: no limit */
};
/* Sets the tenants from now on. Without a call all jobs belong to one tenant; the first call comes before the
 * first job. It may be repeated at any time, also with more tenants. Usage stays with the index. */
int sched_set_tenants(struct sched *s, int64_t now_ns, const struct sched_tenant *tenant, size_t n,
		      struct err *err);

struct sched_share {                /* of a tenant, at the time of asking */
	double usage_cpu_s;
	double standing, mean_standing; /* see above; mean NaN: no tenant has jobs */
	uint64_t cpus, devices;     /* of its running jobs */
	size_t queued, running;
};
int sched_share(struct sched *s, int64_t now_ns, uint32_t tenant, struct sched_share *out, struct err *err);
/* ---- events ---- */
/* A job arrives. Unless it is rejected it is queued; sched_next() says when it may start, perhaps at once.
 * ERR_BUSY: there are max_jobs already, or max_queued of the tenant wait. ERR_ARG: a value is out of range.
 * After an error nothing has changed. */
int sched_submit(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		 enum sched_verdict *out_verdict, struct err *err);
/* The same decision without keeping the job: `predict` and --dry-run. */
int sched_what_if(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		  enum sched_verdict *out_verdict, struct err *err);

/* Starts the next job whose turn it is, with its batch decided again for the time that is left; from now on
 * it counts as running. False: no job starts. To be called after every event until it returns false. A
 * promise once made is kept as well as possible: if no candidate is in time, the one with the smallest bound
 * is taken. */
bool sched_next(struct sched *s, int64_t now_ns, uint64_t *out_id, struct decision *out);
/* The last call found jobs that might have started, or became due: it has changed something although it
 * returned false. */
bool sched_looked(const struct sched *s);
/* The last call left some jobs for the next one, so that it would not take long: call again soon. */
bool sched_unfinished(const struct sched *s);
/* The next waiting job taken by chance that has no chance any more; false: none. The caller removes it
 * (sched_remove()), which is an event like any other. To be called when sched_next() has returned false. */
bool sched_hopeless(struct sched *s, uint64_t *out_id);
/* The owner of an advised job has started it, perhaps before its turn: it is decided again, and runs.
 * ERR_BUSY: its devices are not free, and no device is handed out twice. */
int sched_start_now(struct sched *s, int64_t now_ns, uint64_t id, struct decision *out, struct err *err);

/* The owner of a job whose turn has come (sched_next()) has started it. */
int sched_owner_started(struct sched *s, int64_t now_ns, uint64_t id, struct err *err);

/* A running job reports that `done` (0..1) of its work is behind it. Differences between reports tell
 * its rate, so that a start-up does not count as slowness (progress.h). */
int sched_progress(struct sched *s, int64_t now_ns, uint64_t id, double done, struct err *err);
/* Other processes keep the machine busy (a mean, not necessarily whole). From now on they count in every
 * look-ahead, and in the loads that predictions see, as jobs of one process each that never end. */
int sched_set_other_load(struct sched *s, int64_t now_ns, double processes, struct err *err);
/* What a cluster that others use as well has for us from now on: so many slots, if that is less than the
 * machine has, and jobs of others, which hold some of them. They count in every look-ahead and in the loads
 * that predictions see, as jobs that end when the cluster says. One that is past its end is expected to end
 * in a few seconds. The guests are as sched_fit_guests() leaves them. */
struct sched_guest { uint32_t cpus; int64_t end_ns; }; /* SCHED_NEVER: not known */
int sched_set_cluster(struct sched *s, int64_t now_ns, uint32_t slots, const struct sched_guest *guest,
		      size_t n, struct err *err);
/* Guests in any order, of a cluster that has `spare` cpus beyond our slots. Those that stay longest take
 * the spare cpus, so that slots become free as early as they can. The others are sorted by their ends, at
 * most SCHED_MAX_GUESTS: of more, neighbours become one guest, which ends with the last of them. Returns
 * how many. */
size_t sched_fit_guests(struct sched_guest *guest, size_t n, uint64_t spare);
/* The executor begins with a job at most this long after its turn. From now on the limits of jobs that
 * arrive are shorter by it, and the bounds of their waits longer. */
int sched_set_lag(struct sched *s, double lag_s, struct err *err);
uint64_t sched_guest_cpus(const struct sched *s);
uint32_t sched_slots(const struct sched *s);
/* A job whose turn has come waits at the executor: it holds its slots, and no work is done. False: it has
 * begun, and its work is counted from now on. */
int sched_set_idle(struct sched *s, int64_t now_ns, uint64_t id, bool idle, struct err *err);
/* A job has ended, was cancelled, or is lost: its slots are free, and it is forgotten. ERR_NOTFOUND: no such
 * job. */
int sched_remove(struct sched *s, int64_t now_ns, uint64_t id, struct err *err);

/* After a restart and before the first event: a job admitted earlier. Jobs come in order of arrival, running
 * ones with the batch they started with. Nothing is decided; if `taken` has no work, the model predicts it.
 * Work done is counted again, from the starts of the jobs that still run. Reports of progress, jobs that have
 * ended meanwhile, the usage of tenants, and which job waited for the end of another are not restored.
 * sched_set_tenants() comes first. */
struct sched_restored {
	struct sched_request request;
	int64_t submitted_ns;
	bool promised, running;
	bool by_chance;             /* its verdict was SCHED_CHANCE */
	int64_t started_ns;         /* of a running job */
	struct candidate taken;     /* what was decided last; all zero: not known */
	const char *steer;          /* sched_steer_kept() of a running job; NULL or empty: it was not
	                               steered */
};
int sched_restore(struct sched *s, const struct sched_restored *r, struct err *err);

/* ---- learning ---- */
/* A running job has ended after actual_s seconds. Returns the seconds it would have run under the load that
 * was foreseen at its start, without what later arrivals added and early ends saved: guard_s was a bound of
 * that. To be asked before sched_remove(). NaN: it does not run, or nothing was foreseen. */
double sched_foreseen_s(struct sched *s, int64_t now_ns, uint64_t id, double actual_s);
/* A job has ended by itself. Ignored unless adapt is on, or if it cannot have taken such a time
 * (sched_plausible()). The same calls in the same order restore what was learnt. */
/* What a running job has met of other kinds up to now, for its observation (pairs.h); kind 0: not known. */
void sched_met(struct sched *s, int64_t now_ns, uint64_t id, struct pairs_met *out);
struct sched_observation {
	uint32_t model;             /* as in the request */
	int type;
	uint32_t user;
	bool stranger;              /* the model does not know such jobs */
	const struct job_values *values; uint32_t cpus; /* as in the request: the family follows from them */
	double confidence;
	double model_s, upper_s;    /* of the candidate it started with; the bound NaN: none was told */
	double foreseen_s;          /* sched_foreseen_s() at its end; NaN: not known, and actual_s is used */
	double actual_s;            /* how long it ran */
	/* From its arrival on, if that is to be learnt from (else all 0): until it started, until it ended,
	 * and what was foreseen of that: the middle, and the bound that was told (NaN: none). */
	double waited_s, response_s, told_s, told_upper_s;
	double limit_s;             /* that was promised; NaN or 0: none */
	const struct pairs_met *met; /* sched_met() at its end; NULL: not known */
};
/* Returns whether the error says something of the model: false for a stranger, or a family that its table
 * does not have. */
bool sched_observe(struct sched *s, const struct sched_observation *o);
/* A run of a table beside jobs of another kind (predictors/models/mixed.h), or one of the same job without
 * them (held 0). Of the requests, model, type, values and cpus count. */
struct sched_mixed {
	const struct sched_request *of, *beside;
	double held, processes, score;
};
void sched_teach(struct sched *s, const struct sched_mixed *m);
/* True once after what was learnt of kinds was forgotten, at the start and where another model came: the runs
 * of the tables are to be taught again. */
bool sched_untaught(struct sched *s);
/* After a restart, before the first event: the starts and ends of jobs that ran before, in the order of time.
 * The end of one gives what it met, for its observation. Of a request, model, values (NULL: not known), cpus,
 * id, type and user count. */
struct sched_past;
int sched_past_new(struct sched *s, struct sched_past **out, struct err *err);
void sched_past_free(struct sched_past *p);
int sched_past_start(struct sched_past *p, int64_t at_ns, const struct sched_request *r, struct err *err);
void sched_past_end(struct sched_past *p, int64_t at_ns, uint64_t id, struct pairs_met *out);
/* False: a time so far from what the model says that it is not to be learnt from. Without a model: any time
 * above 0 is plausible. */
bool sched_plausible(const struct sched *s, const struct sched_observation *o);
/* What was learnt about run times under the load foreseen: promises rest on it. NULL: adapt is off, or the
 * policy has no bounds. */
const struct adapt *sched_adapt(const struct sched *s, uint32_t model);
/* The family of jobs with these values (predictors/models/spread.h), which are off alike (adapt.h); 0: the
 * model cannot tell. *out_new: its table has none of it. Such jobs teach how far off their family is, and
 * what later arrivals do. model: as in a request. */
uint64_t sched_family(const struct sched *s, uint32_t model, const struct job_values *v, uint32_t cpus,
		      bool *out_new);
/* How many jobs of the request's family have taught its level; UINT_MAX: the model knows the family, or
 * nothing is learnt. */
unsigned sched_family_known(const struct sched *s, const struct sched_request *r);

/* ---- questions ---- */
/* When a job starts and ends: by one play of the running jobs and the first 512 of the queue, which serves
 * all questions at the same time until something changes; approximate for a job behind these. No job passes
 * another in that play, so jobs may start earlier. The bounds are the expected end multiplied and divided by
 * the ratio of bound and expectation at the job's decision. It allocates nothing. */
int sched_estimate(struct sched *s, int64_t now_ns, uint64_t id, struct sched_estimate *out, struct err *err);
/* Why a job waits. */
enum sched_wait {
	SCHED_WAIT_NOT,             /* it runs, or would start at the next call of sched_next() */
	SCHED_WAIT_SLOTS,           /* first in turn, and too few slots are free: needed, available */
	SCHED_WAIT_MEMORY,          /* too little memory is free: needed, available, in MB */
	SCHED_WAIT_TURN,            /* `ahead` jobs go first, and the machine is full or they may not be
	                               passed */
	SCHED_WAIT_HELD,            /* starting now would break the promise of `job`, or delay it if it is
	                               due */
	SCHED_WAIT_QUOTA,           /* its tenant's cpus: needed, available */
	SCHED_WAIT_DEVICES,         /* too few devices are free: needed, available */
	SCHED_WAIT_DEVICE_QUOTA,    /* its tenant's devices: needed, available */
	SCHED_WAIT_PRICE,           /* taken by chance: starting now would cost other jobs more than it
	                               brings */
	SCHED_WAIT_UNSTARTED,       /* its owner has not started other jobs whose turn has come */
};
const char *sched_wait_name(enum sched_wait w); /* "not", "slots", "memory", "turn", "held", "quota",
                                                   "devices", "device_quota", "price", "unstarted" */
struct sched_waiting {
	enum sched_wait why;
	double needed, available;   /* NaN: does not apply */
	uint64_t job;               /* with SCHED_WAIT_HELD; else 0 */
	size_t ahead;               /* in the order of starts */
	bool due;
};
int sched_waiting(struct sched *s, int64_t now_ns, uint64_t id, struct sched_waiting *out, struct err *err);
/* For a running job with a limit that may be stopped early and has done `done` of its `epochs`: the
 * epoch after which to stop it, so that it ends in time as far as its progress tells. 0: let it run, as
 * long as it is not sure to be late (struct sched_estimate). `done`: stop it at once. Reports of
 * progress come first (sched_progress()). */
uint32_t sched_should_stop(struct sched *s, int64_t now_ns, uint64_t id, uint32_t done, uint32_t epochs);

/* For a running job that left its epochs open, may be stopped early and has done `done` of its `epochs`: the
 * epoch after which to end it, because the jobs that run and wait, and those to come, gain more by it than it
 * loses (sched_give.c). It is one of those it was submitted with. 0: let it run. `done`: stop it at once.
 * Only under a policy with a price. */
uint32_t sched_gives_back(struct sched *s, int64_t now_ns, uint64_t id, uint32_t done, uint32_t epochs);

/* A running job that was taken by chance has no chance any more to be in time: its deadline has passed, or
 * its own reports of progress say so. */
bool sched_chance_gone(struct sched *s, int64_t now_ns, uint64_t id);
/* The first deadline of the running jobs that were taken by chance, and whose it is; SCHED_NEVER: there is
 * none. */
int64_t sched_overtime_ns(const struct sched *s, uint64_t *out_id);

size_t sched_running(const struct sched *s);
size_t sched_queued(const struct sched *s);
uint32_t sched_slots_used(const struct sched *s);
uint32_t sched_devices_used(const struct sched *s);
bool sched_lives(const struct sched *s, uint64_t id);

/* ---- change ---- */
/* Another model, policy or machine from now on. Jobs keep what was decided for them; max_jobs and the seed
 * stay as they were. With another model (at another address) adaptation starts again (adapt_reset()); that of
 * the other models goes on. values_of gives each live job's number of its model, and its values under the
 * schema of that (without a model NULL is fine; without any it may be NULL itself). A queued job that the new
 * machine cannot hold is passed over until it can. After an error nothing has changed. Before the first event
 * and without jobs this is not an event: jobs may be restored after it. */
typedef const struct job_values *sched_values_fn(void *owner, uint64_t id, uint32_t *out_model);
int sched_use(struct sched *s, int64_t now_ns, const struct sched_params *p,
	      sched_values_fn *values_of, void *owner, struct err *err);

#endif
