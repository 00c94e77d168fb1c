/* Inside the scheduler: shared by sched.c (events), sched_change.c, sched_live.c (the jobs and their work), sched_scene.c (what a
 * decision or an estimate sees), and by nobody else. */
#ifndef SCHEDULER_CORE_SCHED_INTERNAL_H
#define SCHEDULER_CORE_SCHED_INTERNAL_H

#include "scheduler/core/job_index.h"
#include "scheduler/core/sched.h"

#define NOBODY UINT32_MAX

/* A decision looks at so many queued jobs one by one. Of a longer queue, a job that arrives sees the last ones as
 * they are (they may still run when it starts: only they can be delayed by it) and those before them merged; one
 * that starts sees the first. Chosen so that a submit with 10,000 queued jobs stays well below 1 ms. */
#define SCENE_WINDOW 512
#define SCENE_STREAMS 64

struct live {                         /* a job that waits or runs */
	struct sched_request r;
	int64_t submitted_ns, started_ns, deadline_ns; /* SCHED_NEVER: no objective */
	bool promised, running;
	uint32_t prev, next;          /* in the queue, or among those that run */
	struct candidate taken;       /* what was decided last */
	double ratio;                 /* of that: upper bound over expected time; NaN: no bound */
	/* Work, in seconds alone. Done is exact at sched.since_ns; speed is that since then. */
	double prior_s, total_s, done_s, speed;
	double reported;              /* largest share of it that was reported as done */
	/* Waiting: what it will take of a full machine, slots x time; 0 if it never starts. Whole nanoseconds, so
	 * that sums of a long queue come out the same whatever came and went. */
	uint64_t slot_ns;
	uint32_t slot_cpus;           /* its cpus, or 0 likewise */
};

struct live_list {
	uint32_t first, last;
	size_t n;
};

struct sched {
	struct policy_choice policy;
	const struct model *model;
	struct sched_machine machine;
	struct fluid_machine fluid;   /* the machine as the model knows it */
	size_t max_jobs;
	uint64_t seed;

	struct live *live;            /* max_jobs */
	uint32_t *spare;              /* places not in use */
	size_t n_spare;
	struct job_index index;
	struct live_list queue, running;
	uint64_t slots_used;          /* processes that run: the P of the moment */
	unsigned __int128 queue_slot_ns;
	uint64_t queue_cpus;

	int64_t last_ns;              /* of the last event; INT64_MIN: there was none */
	int64_t since_ns;             /* of the last change of who runs */
	bool unsettled;               /* running jobs were restored, and their work is not counted yet */

	/* scratch of one decision or estimate */
	struct fluid_job *scene_running, *scene_queued;
	struct decide_neighbour *neighbour;
	struct decide_scratch *scratch;
};

/* ---- sched.c ---- */
int sched_check_params(const struct sched_params *p, struct err *err);
int sched_check_request(const struct sched *s, const struct sched_request *r, struct err *err);
void sched_set(struct sched *s, const struct sched_params *p); /* policy, model and machine */

/* ---- sched_live.c ---- */
struct live *live_find(struct sched *s, uint64_t id, uint32_t *out_place); /* NULL: no such job */
uint32_t live_add(struct sched *s, const struct sched_request *r, int64_t submitted_ns); /* there is room */
void live_forget(struct sched *s, uint32_t place); /* neither queued nor running any more */

void live_append(struct sched *s, struct live_list *l, uint32_t place);
void live_unlink(struct sched *s, struct live_list *l, uint32_t place);
void live_enqueue(struct sched *s, uint32_t place); /* to the end of the queue */
void live_dequeue(struct sched *s, uint32_t place);

/* Takes over what was decided: work, shares, ratio. */
void live_take(struct live *j, const struct candidate *c);
/* The work of a job that none was decided for, by the model; it stays unknown without one. */
void live_measure(struct sched *s, struct live *j);

int64_t live_clock(struct sched *s, int64_t now_ns); /* the time, never before that of an earlier event */
void live_settle(struct sched *s, int64_t now_ns);   /* counts work done up to now */
void live_set_speeds(struct sched *s);               /* after a change of who runs */
void live_insert_running(struct sched *s, uint32_t place); /* restored: by the time of its start */
double live_left_s(const struct sched *s, const struct live *j, int64_t now_ns);
double live_memory_mb(const struct sched_request *r, double batch); /* 0: not known */
double live_memory_used_mb(const struct sched *s);
/* The batches the job may have. */
const double *live_batches(const struct sched *s, const struct sched_request *r, size_t *out_n);
void live_weigh(struct sched *s, struct live *j);    /* fills in slot_ns and slot_cpus */

/* Seconds until a moment; INFINITY for SCHED_NEVER. */
double live_until_s(int64_t moment_ns, int64_t now_ns);

/* ---- sched_scene.c ---- */
/* A scene for a job that arrives, or that starts (and is in no list at the moment). */
void scene_make(struct sched *s, int64_t now_ns, const struct sched_request *r, bool starting,
                struct decide_scene *out);

#endif
