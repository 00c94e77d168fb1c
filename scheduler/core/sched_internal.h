/* Shared by the files of the scheduler only: sched.c (events), sched_start.c (which job starts),
 * sched_place.c (places in the plan), sched_tenant.c (shares and quotas), sched_scene.c (what a decision
 * sees), sched_order.c (the order of starts), sched_ask.c (questions), sched_live.c (the jobs and their
 * work), sched_steer.c (batches while they run), sched_guests.c (jobs of others), sched_learn.c (what ended
 * jobs teach, and earlier choices), sched_chance.c (jobs without a promise whose chance goes),
 * sched_change.c (restarts, other models). */
#ifndef SCHEDULER_CORE_SCHED_INTERNAL_H
#define SCHEDULER_CORE_SCHED_INTERNAL_H

#include <math.h>

#include "common/heap.h"
#include "scheduler/core/job_index.h"
#include "scheduler/core/job_order.h"
#include "scheduler/core/policy/price.h"
#include "scheduler/core/learn/own_curve.h"
#include "scheduler/core/learn/progress.h"
#include "scheduler/core/sched.h"
#include "scheduler/core/learn/usual_load.h"

#define NO_JOB UINT32_MAX

/* A decision looks at so many queued jobs one by one; the rest of a longer queue is merged (those far before
 * the job) or left out (those far behind it), so that a submit with 10,000 queued jobs takes about a
 * millisecond. */
#define SCENE_WINDOW 512
#define SCENE_STREAMS 64
#define MANY 256 /* running and planned jobs: with more, fewer plays are made in one call */
#define MOST_HOLDS 4 /* places behind the end of another job that are tried for one */

struct steered {                      /* of a running job that asks for its batch again (sched_steer.c) */
	uint32_t last;                /* the epoch to end after, as it was told; 0: it has not asked yet */
	uint32_t epoch;               /* reported last */
	/* What is left after from_epoch, as it was planned then: seconds of the model's work, the part of all
	 * the work that was done, and what each epoch adds to it. */
	double from_epoch, from_part, step, rest_s;
	double done_s, start_s;       /* the model's work of the epochs before; all of it with the batch that
	                                 it began with */
	double effort;                /* of these epochs (mixed_run.h) */
	double seen_low, seen_high;   /* the batches that it has run */
	double changes;
	int64_t counted_ns;           /* a job that was restored: its work is known at this time, and counts
	                                 from then on */
	struct own_curve curve;
	struct steer_answer answer;   /* the last one */
};

struct live {                         /* a job that waits or runs */
	struct sched_request r;
	const struct job_values *next_values; uint32_t next_model; /* of a change that is being checked */
	int64_t submitted_ns, started_ns;
	int64_t deadline_ns;          /* of its work: the end of its limit, before by what a start takes
	                                 until it has begun; SCHED_NEVER: no limit */
	bool promised, running;
	bool unstarted;               /* runs, as far as slots go: its owner has not started it yet */
	bool idle;                    /* the same: who runs it has not begun yet, and no work is done */
	bool by_chance;               /* taken without a promise for the chance it has */
	bool gone;                    /* it waits, and has no chance any more */
	int64_t hopes_ns;             /* until then its chance is not checked again */
	bool planned;                 /* waits in the plan; else, if it waits, with its tenant */
	bool due;                     /* waits in the plan without a promise */
	uint32_t prev, next;          /* in the list it is in */
	int64_t turn_ns;              /* in the plan: deadline, or when it was due; earlier ones go first */
	uint32_t after;               /* place of the job whose end it waits for, if after_id still lives
	                                 there */
	uint64_t after_id;            /* 0: none */
	uint64_t held_by, held_round; /* the job it would have harmed when it was tried last */
	bool too_costly;              /* then it harmed no promise, and would have cost the others too much */
	struct candidate taken;       /* what was decided last */
	double spread;                /* of the logarithm of its time */
	/* What arrivals to come do to it: its spread with them, and the part of a limit that they leave. */
	double spread_later, limit_part;
	/* Work, in seconds alone. Done is exact at sched.since_ns; speed is that since then. */
	double prior_s, total_s, done_s, speed;
	uint64_t kind;                /* what it is to its neighbours (pairs.h); 0: not known */
	uint16_t kind_number;         /* of a running one; 0: none */
	bool kind_watched;            /* what it meets is known from its start on */
	double slowed;                /* of `speed`: the factor by the kinds of its neighbours */
	double plain_s;               /* work done as the common law has it, without that factor */
	struct progress progress;     /* what its own reports say; begins when it starts */
	struct steered steer;
	bool said_late;               /* the last of them said that it will miss its limit */
	/* Waiting: what it will take of a full machine, slots x time; 0 if it never starts. Whole
	 * nanoseconds, so that sums of a long queue come out the same whatever came and went. */
	uint64_t slot_ns;
	uint32_t slot_cpus;           /* its cpus, or as large a part of the slots as it wants of the devices;
	                                 0 if it never starts */
	struct fluid_times plan;      /* by the play of the plan, from sched.plan_ns on */
	uint64_t seat_stamp;          /* of the scene it has a seat in, and that seat */
	uint32_t seat;
	struct fluid_times forecast;  /* by the forecast with this stamp */
	uint64_t forecast_stamp;
	uint32_t forecast_at;          /* of a waiting one: so many start before it */
};

struct live_list {
	uint32_t first, last;
	size_t n;
	uint32_t root;                /* of its order in sched.queues, if jobs wait in it */
};

struct tenant {
	struct sched_tenant is;
	double usage;                 /* cpu-seconds, faded up to sched.usage_ns */
	uint64_t cpus, devices;       /* of its running jobs */
	size_t n_queued, n_running;
	uint32_t due;                 /* its job that is due by waiting; NO_JOB */
	struct live_list waiting;     /* without a promise and not due: by priority, then arrival */
	uint32_t cursor;              /* scratch: how far an order has come in it, */
	size_t cursor_at;             /* its position, */
	uint64_t cursor_cpus;         /* and the cpus before it, of those of the same sign of priority */
};

/* The order of starts. Of a long one only a part is written down. */
struct start_order {
	uint32_t *place; size_t n;
	size_t first;                 /* so many go before place[0] */
	struct order_sum before;      /* of those before place[0] */
};

struct forecast {                     /* of sched_estimate() */
	uint64_t stamp, changes;      /* made when there had been so many changes, */
	int64_t now_ns;               /* at this time; stamp 0: never */
	bool known;                   /* the works of all are, so that those behind have times */
	uint32_t reach;               /* the last job that was played and will start; NO_JOB: none */
	unsigned __int128 reach_ns;   /* those before it take so much, slots x time */
};

/* A model, and what was learnt of the times of its jobs; both are there whether in use or not. */
struct learnt {
	const struct model *model;    /* NULL: none */
	struct adapt *adapt;
	struct ledger *families;      /* that it has never seen: how far off it is */
	struct ledger *later, *waits; /* later.h: of run times, and of jobs that had to wait */
	unsigned without;             /* of LAYERS_LEARNT: what it was learnt without */
};

struct sched {
	struct policy rule;           /* as its settings change it; policy.policy points here */
	struct policy_choice policy;
	struct learnt *learnt; size_t n_learnt; /* by sched_request.model; at least one */
	bool predicts;                /* there is a model */
	struct sched_machine machine;
	struct fluid_machine fluid;   /* the machine as the first model knows it */
	double other_load, window_s;
	struct usual_load usual;      /* of the other load */
	struct load_foreseen foreseen; /* of the other load, while a job of the usual length runs */
	double usual_run_s;           /* how long the latest jobs ran, a geometric mean; 0: none has ended */
	bool looks_ahead;             /* the policy does, and there is a model */
	bool adapts;                  /* the policy has bounds, and there is a model */
	uint32_t max_unstarted_cpus;
	uint64_t arrived_id;          /* the last job that the price has seen */
	struct pairs *pairs;          /* what kinds of jobs do to each other */
	bool untaught;                /* sched_untaught() */
	bool kinds;                   /* that counts: the policy looks ahead and adapts */
	struct pairs_clock met;       /* what running jobs meet, exact at since_ns */
	struct pairs_start *met_from; /* by place: the same when the job started */
	struct price *price;          /* of capacity, as the last arrivals tell it */
	struct sched *beside;         /* whose learning, price and scratch these are; NULL: its own */
	size_t n_beside;              /* schedulers that use ours */
	size_t max_jobs;
	uint64_t seed;

	struct live *live;            /* max_jobs */
	size_t live_end;              /* no job ever lived at a place from here on */
	uint32_t *spare;              /* places not in use */
	size_t n_spare;
	struct job_index index;
	struct live_list plan, running;
	struct live_list apart, apart_waiting; /* of engines beside it: those that run, those that wait */
	struct job_order queues;      /* the plan and the waiting jobs of each tenant */
	size_t n_queued, n_promised;  /* waiting, in the plan or not; promised, waiting or running */
	size_t n_due;                 /* waiting */
	size_t n_by_chance;           /* waiting or running */
	uint64_t slots_used;          /* cpus of those that run */
	uint64_t devices_used;        /* and their devices */
	struct sched_guest guest[SCHED_MAX_GUESTS]; /* the first to end first */
	size_t n_guests;
	uint64_t guest_cpus;
	double lag_s;                 /* sched_set_lag() */
	uint32_t most_slots, cluster_slots; /* machine.slots is the lesser; as configured; 0: no cluster */

	struct tenant *tenant;
	size_t n_tenants, tenants_cap;
	bool tenants_given, quotas;   /* there are some */
	uint64_t *has_waiting;        /* a bit for each tenant */
	struct fluid_group *group;    /* n_tenants */
	struct heap standings;        /* of tenants, to go through them */
	int64_t usage_ns;
	struct {
		uint64_t changes;     /* right after so many, + 1; 0: not known */
		int64_t usage_ns;     /* and at this time */
		double value;
	} mean_standing;

	int64_t last_ns;              /* of the last event; INT64_MIN: there was none */
	int64_t since_ns;             /* of the last change of who runs */
	int64_t changed_ns;           /* of the last change at all */
	bool unsettled;               /* running jobs were restored, and their work is not counted yet */

	/* what becomes of the plan (sched_scene.c) */
	int64_t plan_ns;              /* live.plan counts from here; INT64_MIN: not known */
	double plan_first_s;          /* the first start or end in it */
	bool plan_holds;              /* every promise in it */

	bool looked, unfinished;      /* sched_looked(), sched_unfinished() */
	int64_t quiet_ns;             /* sched_next() had nothing to start then, and nothing has changed;
	                                 INT64_MIN: it may */
	uint64_t round, stamp;        /* counts tries of sched_next() after a change; scenes */
	uint64_t changes;             /* counts live_changed() */
	struct forecast forecast;

	/* scratch of one decision or estimate */
	struct start_order order;
	struct fluid_job *scene_running, *scene_queued;
	struct decide_neighbour *neighbour;
	struct fluid_times *before;
	struct decide_scratch *scratch;
	struct decision *trial;
};

struct seat {                         /* in the plan */
	size_t position;              /* so many go before */
	uint32_t after;               /* place of the job whose end it waits for; NO_JOB */
};

/* ---- sched.c ---- */
int sched_check_params(const struct sched_params *p, struct err *err);
int sched_check_request(const struct sched *s, const struct sched_request *r, struct err *err);
void sched_set(struct sched *s, const struct sched_params *p); /* policy and machine, after learn_use() */
int sched_not_found(uint64_t id, struct err *err);
/* Adds the lag to a decision whose limit was shorter by it, for users: a start takes at most that
 * long. */
void sched_add_lag(const struct sched *s, struct decision *d);
/* The candidate that is first by time (by its bound where it has one and `bounds` says so) among those with
 * none of these reasons; -1: there is none. */
int sched_soonest(const struct decision *d, unsigned reasons, bool bounds);

/* ---- sched_live.c ---- */
struct live *live_find(struct sched *s, uint64_t id, uint32_t *out_place); /* NULL: no such job */
int live_find_running(struct sched *s, uint64_t id, struct live **out, struct err *err);
uint32_t live_add(struct sched *s, const struct sched_request *r, int64_t submitted_ns); /* there is room */
void live_forget(struct sched *s, uint32_t place); /* neither queued nor running any more */
int64_t live_deadline_ns(int64_t submitted_ns, double slo_s); /* SCHED_NEVER: none */
int64_t live_limit_ns(const struct live *j); /* when its limit ends, whatever its start takes */
/* Its command runs: what its start takes is behind it, and all of its limit is left for the work. */
void live_begun(struct live *j);

void live_link(struct sched *s, struct live_list *l, uint32_t before, uint32_t place); /* NO_JOB: first */
void live_unlink(struct sched *s, struct live_list *l, uint32_t place);
/* Into a list of waiting jobs and its order, behind so many. */
void live_enlist(struct sched *s, struct live_list *l, size_t position, uint32_t place);
void live_wait(struct sched *s, uint32_t place); /* joins the waiting ones of its tenant */
void live_plan(struct sched *s, uint32_t place, size_t position, uint32_t after); /* joins the plan behind so
                                                                                     many */
size_t live_plan_position(const struct sched *s, uint32_t place); /* so many go before it; it is there */
void live_reorder(struct sched *s, uint32_t place);  /* what its queue knows of it has changed */
void live_dequeue(struct sched *s, uint32_t place);
void live_run(struct sched *s, uint32_t place);      /* joins those that run, by the time of its start */
/* The chance that a job which is expected to end in end_s seconds as things are now ends by its
 * deadline, with that other load from now on; NaN: it has none. */
double live_chance(const struct sched *s, const struct live *j, double end_s, double load, int64_t now_ns);
void live_end(struct sched *s, uint32_t place);      /* leaves them */

/* A bound over the expected time, under the load foreseen; NaN: no bound. */
static inline double live_ratio(const struct candidate *c, double bound_s)
{
	return c->time_s > 0.0 && bound_s > 0.0 ? bound_s / c->time_s : NAN;
}
/* Takes over what was decided: work, shares, spread. */
void live_take(const struct sched *s, struct live *j, const struct candidate *c);
/* The work of a job that none was decided for, by the model; it stays unknown without one. */
void live_measure(struct sched *s, struct live *j);
/* What the model says of its batch with these epochs (NULL: as its values say), alone on the machine; in
 * s->trial. NULL: nothing. */
const struct decision *live_ask_epochs(struct sched *s, const struct live *j, const double *epochs,
				       size_t n_epochs);
void live_measure_start(struct sched *s, struct live *j); /* its start-up, where that is not known */

int64_t live_clock(struct sched *s, int64_t now_ns); /* the time, never before that of an earlier event */
void live_changed(struct sched *s);                  /* what was known of the future is not any more */
void live_settle(struct sched *s, int64_t now_ns);   /* counts work done up to now */
void live_set_speeds(struct sched *s);               /* after a change of who runs */
double live_left_s(const struct sched *s, const struct live *j, int64_t now_ns);
uint64_t live_free_slots(const struct sched *s);
double live_memory_mb(const struct sched_request *r, double batch); /* 0: not known */
double live_memory_used_mb(const struct sched *s);
/* Of the batch it was admitted with; or of its smallest, where a change of the machine has left no room for
 * that. */
double live_memory_wanted_mb(const struct sched *s, const struct live *j);
/* The same of devices. */
uint32_t live_devices_wanted(const struct sched *s, const struct live *j);
uint32_t live_devices_free(const struct sched *s);
/* The batches the job may have. */
const double *live_batches(const struct sched *s, const struct sched_request *r, size_t *out_n);
void live_weigh(struct sched *s, struct live *j);    /* fills in slot_ns and slot_cpus */
const struct live *live_after(const struct sched *s, const struct live *j); /* NULL: it waits for no end */

/* Seconds until a moment; INFINITY for SCHED_NEVER. */
double live_until_s(int64_t moment_ns, int64_t now_ns);

/* ---- sched_learn.c ---- */
void learn_release(struct sched *s);
/* The models of p; what was learnt stays with those that were there. After an error nothing has changed. */
int learn_use(struct sched *s, const struct sched_params *p, struct err *err);
static inline const struct model *model_of(const struct sched *s, const struct sched_request *r)
{
	return s->learnt[r->model].model;
}
/* What a job is to its neighbours: its type and categories. Never 0. */
uint64_t learn_kind(const struct sched *s, const struct sched_request *r);
/* What arrivals to come do to the time of such a job. */
struct later_effect learn_later(const struct sched *s, const struct sched_request *r);
/* What was learnt, as the scene of a job sees it. */
void learn_in_scene(const struct sched *s, const struct sched_request *r, struct decide_scene *scene);

/* ---- sched_tenant.c ---- */
int tenants_init(struct sched *s); /* one for all; 0, or -1 without memory */
void sched_tenants_release(struct sched *s);
struct tenant *tenant_of(const struct sched *s, const struct sched_request *r);
uint32_t tenant_most_cpus(const struct sched *s, const struct sched_request *r); /* of the machine's slots */
uint32_t tenant_most_devices(const struct sched *s, const struct sched_request *r); /* of the machine's */
/* That its quota leaves it now. */
uint32_t tenant_free_devices(const struct tenant *t);
void tenants_settle(struct sched *s, int64_t now_ns); /* usage up to now */
double tenant_standing(const struct sched *s, const struct tenant *t);
double tenants_mean(struct sched *s);
/* Into s->standings: those with jobs in `waiting`, the lowest standing first. */
void tenants_rank(struct sched *s);
/* The next tenant from `i` on with jobs in `waiting`; n_tenants: there is none. */
size_t tenants_next_waiting(const struct sched *s, size_t i);
void tenants_note_waiting(struct sched *s, const struct tenant *t); /* its list has changed */

/* ---- sched_order.c ---- */
/* Into s->order: the plan, but for place `except` (NO_JOB), as far as a job at this position sees it. */
void order_plan(struct sched *s, uint32_t except, size_t position);
/* Into s->order: all that wait, in the order of starts, as far as a new job without a promise (r) sees them,
 * or the first one (r NULL). Returns its position. */
size_t order_around(struct sched *s, const struct sched_request *r);
/* How many start before the job that lives at `place`, and what they take together. */
size_t order_position(struct sched *s, uint32_t place, struct order_sum *out_before);

struct scene_place {                  /* of the job decided about, beside the jobs in s->order */
	bool starting;                /* it starts now; `place` is where it lives, and it is not in the
	                                 order */
	uint32_t place;
	struct seat seat;             /* otherwise */
	bool promises;                /* those of the others count */
	bool by_chance;               /* it will go without one itself */
};
void scene_make(struct sched *s, int64_t now_ns, const struct sched_request *r, const struct scene_place *at,
		struct decide_scene *out);
/* The job alone on the machine, judged by its bound; alone: room for the policy of that. */
void scene_alone(const struct sched *s, const struct sched_request *r, struct policy_choice *alone,
		 struct decide_scene *out);
size_t scene_seated(const struct sched *s); /* seats of jobs that run, ours and guests */
/* Fills in live.plan; false: it cannot be known. out_shift_s: the seconds since plan_ns. */
bool plan_know(struct sched *s, int64_t now_ns, double *out_shift_s);
/* A full machine takes so many times longer for a queue, because of slots that lie idle. */
double scene_idle(const struct sched *s);
/* A play of the running jobs and s->order; NULL: nothing is known. By seat: the running ones, *out_streams
 * seats of jobs that are merged, those in s->order. */
const struct fluid_times *scene_play(struct sched *s, int64_t now_ns, size_t *out_streams);
/* The same scene once more, with other work left for the running job in a seat. */
const struct fluid_times *scene_play_with(struct sched *s, size_t streams, size_t seat, double work_s);

/* ---- sched_guests.c ---- */
uint32_t guest_slots(const struct sched *s); /* that there are for us */
struct fluid_job guest_job(const struct sched_guest *g, int64_t now_ns);

/* ---- sched_place.c ---- */
int place_ask(struct sched *s, int64_t now_ns, const struct sched_request *r, double slo_s,
	      const struct scene_place *at, struct decision *out, struct err *err);
/* Decides about a job that arrives, and finds its seat if it is to be promised. If it cannot be, and has the
 * chance it asks for, the decision is the one without a promise, and *out_by_chance is set. */
int place_arrival(struct sched *s, int64_t now_ns, const struct sched_request *r, struct decision *out,
		  struct seat *out_seat, bool *out_by_chance, struct err *err);
void place_take(struct sched *s, uint32_t place, const struct seat *seat); /* takes that seat */
void place_restored(struct sched *s, uint32_t place);
/* Seats for those that are due by now. False: there are more of them than one event has time for. */
bool place_due(struct sched *s, int64_t now_ns);
/* A seat for a job without a promise that waits nowhere at the moment. */
void place_unpromised(struct sched *s, int64_t now_ns, uint32_t place);

/* ---- sched_apart.c ---- */
void apart_wait(struct sched *s, uint32_t place);
void apart_dequeue(struct sched *s, uint32_t place);
void apart_run(struct sched *s, uint32_t place);
void apart_end(struct sched *s, uint32_t place);
/* The next of them that may start; NO_JOB: none. */
uint32_t apart_next(const struct sched *s);
/* A scene without other jobs. */
void apart_scene(const struct sched *s, const struct sched_request *r, struct decide_scene *out);
void apart_settle(struct sched *s, double for_s);
struct fluid_times apart_times(const struct sched *s, const struct live *j, int64_t now_ns);

/* ---- sched_start.c ---- */
/* An advised job whose owner has left as many earlier ones unstarted as one user may. */
bool start_owner_is_slow(const struct sched *s, const struct live *j);

/* ---- sched_give.c ---- */
/* What the jobs in the scene are worth with these ends, one seat left out. */
double give_worth_of_others(const struct sched *s, const struct fluid_times *t, size_t n, size_t seat);

/* ---- sched_steer.c ---- */
bool steer_on(const struct sched *s, const struct live *j); /* its batch may be decided again */
/* The part of the work that is done, of one that reports this part of its epochs. */
double steer_part(const struct steered *t, double done);
int steer_restore(struct live *j, const char *kept, struct err *err);

/* ---- sched_price.c ---- */
/* The price of a process-second to this job now; 0: the policy has none, or no other job runs or waits. */
double price_now(const struct sched *s, int64_t now_ns, const struct sched_request *r);
double price_value(const struct sched_request *r);
/* A job has arrived, and this was decided about it. */
void price_arrived(struct sched *s, int64_t now_ns, const struct sched_request *r, const struct decision *d);

/* ---- sched_chance.c ---- */
/* Marks waiting jobs that have no chance any more. False: not all were looked at. */
bool chance_look(struct sched *s, int64_t now_ns);

#endif
