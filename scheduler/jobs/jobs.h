/* The jobs in memory: all live ones and the latest that ended. They are found by id and by the idempotency
 * key of their user. This file does not schedule; life.h changes the states of jobs. */
#ifndef SCHEDULER_JOBS_JOBS_H
#define SCHEDULER_JOBS_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "predictors/data/features.h"
#include "scheduler/config/job_type.h"
#include "scheduler/core/learn/own_curve.h"
#include "scheduler/jobs/told_epochs.h"
#include "scheduler/jobs/names.h"
#include "scheduler/jobs/record.h"
#include "scheduler/jobs/users.h"

#define JOBS_MAX_KEYS 100000 /* remembered; the oldest is forgotten */
#define JOBS_MAX_KEY 128     /* bytes of one */
#define JOBS_MAX_TAG 128

/* What a live job says, under the present configuration and model. It is a separate block, so that a reload
 * changes a job by exchanging one pointer. */
struct job_bound {
	struct job_params params;      /* of its type */
	struct job_values values;      /* under the model's schema; all in one block at values.number */
};

/* How far a job is, finer than its row: what is true of it at the same time is one of these. */
enum job_step {
	STEP_NONE,                     /* the row says it all: it is queued, or has ended */
	STEP_READY,                    /* queued: an advised job whose turn it is, since ready_ns */
	/* the row says that it runs */
	STEP_STARTING,                 /* and is on its way to the disk */
	STEP_DELAYED,                  /* the machine lacks what starts it; it is tried again */
	STEP_SPAWNED,                  /* its executor has it, and has not said that it began */
	STEP_AT_ENGINE,                /* the same, and that executor is an engine, which lets it wait */
	STEP_BEGUN,
	/* it runs, and is to stop */
	STEP_EARLY_AWAITS,             /* after an epoch; the row that says so is on its way to the disk */
	STEP_EARLY,                    /* and it was told */
	STEP_CANCELLING,
	STEP_GIVEN_UP,                 /* because its chance had gone */
};

struct job {
	uint64_t id;
	struct job *before, *after;    /* in its list: live ones by id, ended ones by when they ended */

	/* of live jobs only; a reload changes these of all jobs at once, so they lie together */
	const struct job_type *type;   /* of the present configuration; NULL: it has no such type any more */
	struct job_bound *bound;       /* NULL: it is bound to no model */
	uint32_t slot;                 /* of its model: daemon/setup.h */
	bool apart;                    /* an engine beside the machine runs it (core/sched.h) */

	int type_number;               /* of its type's name: names_number() */
	struct job_record row;         /* as it is stored; its text is in the next line, or kept by names.h */
	char *key, *type_name, *params_text, *batches_text, *reason, *tag; /* text of the row, or NULL */
	char *identity, *devices, *after_more; /* the same */

	/* of live jobs only */
	double guess_s;                /* without a model: what such jobs took so far; NaN: not known */
	double *batch; size_t n_batches; /* allowed; none: the type's or the model's */
	double *epoch_choice; size_t n_epoch_choices; /* none: its epochs are fixed */
	uint32_t tenant;               /* tenants.h */
	bool limited;                  /* the limits of a user count for it: its owner is not an admin */
	enum job_step step;            /* written by life.c alone */
	char *waits_for;               /* why it has not begun: what the machine lacks or lacked, or what its
	                                  engine says; NULL: nothing, or it has begun */
	int64_t ready_ns;
	struct waiter *waiter;         /* it is not with the scheduler; NULL: it is. daemon/waiting.c */
	struct awaited *awaited;       /* the jobs that wait for its end; NULL: there was none */
	uint64_t after_ended;          /* bit i: the i-th of the jobs that it waits for has ended */
	uint64_t after_bad;            /* the first of them that did not end well, in this state; 0: none */
	enum job_state after_state;
	bool late_told;
	pid_t pid;
	char *decision_text;           /* of an advised job: what was decided for its start */
	double epoch, epochs, epoch_accuracy; /* progress; NaN: none */
	struct own_curve curve;      /* of the accuracies so far */
	struct told_epochs *told;    /* when its epochs ended; NULL: none was told, or there was no memory */
	int64_t counted_ns;            /* since when it is part of the load */
	double jobs_before_s, processes_before_s; /* integrals of the load at that time: see life.c */
	double other_before_s, other_span_before_s; /* the same of the work of others */
	double estimate_told_s;        /* the end last stored as an estimate, seconds since 1970 */
	uint32_t n_cursors;            /* that point to it */

	bool unsaved;                  /* its last change is not in the store, which has failed */
	struct job *same_hash;         /* chain of the index */
};

struct job_list { struct job *first, *last; size_t n; };

/* A place in the list of live jobs that stays good while jobs come and go: a walk that takes more than one
 * turn of the loop. */
struct job_cursor {
	struct job *at;                /* the next one; NULL: the walk is over */
	bool upwards;                  /* to higher ids */
	struct job_cursor *next;       /* all that are in use */
};

struct jobs {
	struct names names;            /* of tenants, types, policies and models */
	struct job **bucket; size_t n_buckets, n;
	struct job_list live, ended;
	size_t count[N_JOB_STATES];    /* of jobs in memory */
	struct job_cursor *cursor;
	struct users users;            /* their jobs that wait */
	uint64_t *claimed; size_t n_claimed, claimed_cap; /* by the number of a tenant's name */
	struct key_entry *key; uint32_t *key_bucket; size_t n_keys, first_key; /* a ring, and its index */
};

int jobs_init(struct jobs *j, struct err *err);
void jobs_release(struct jobs *j);
/* This many jobs will come: the index is made large enough now, because growing it later takes
 * milliseconds. */
void jobs_expect(struct jobs *j, size_t n);

/* A job with `row` copied, not in any list yet. ERR_NOMEM also where `names` is full. */
int job_new(struct names *names, const struct job_record *row, struct job **out, struct err *err);
void job_free(struct job *job);
int job_set_reason(struct job *job, const char *reason); /* NULL: none; -1 without memory */
int job_set_devices(struct job *job, const char *devices); /* the same */
void job_set_waits(struct job *job, const char *why); /* without memory: none */
/* type: whose parameters they are; NULL: it has none */
void job_bound_free(struct job_bound *b, const struct job_type *type);
/* The number of epochs that the user gave, or the type's usual one; NaN: it has none, or they are open. */
double job_epochs_given(const struct job *job);
const struct job_values *job_values(const struct job *job); /* without any if it is bound to no model */
void job_drop_live_parts(struct job *job); /* what only a live job needs */

/* Takes the job, into the list that fits its state. */
int jobs_add(struct jobs *j, struct job *job, struct err *err);
void jobs_take_out(struct jobs *j, struct job *job); /* the caller's again */
struct job *jobs_find(const struct jobs *j, uint64_t id);
void jobs_set_state(struct jobs *j, struct job *job, enum job_state state); /* moves it between lists */
void jobs_trim(struct jobs *j, size_t max_ended);
/* What the live jobs of a tenant state together of value above the usual 1. */
double jobs_claimed(struct jobs *j, const char *tenant);

/* At the oldest live job, or the newest. The cursor is in use until its walk is over or it is closed. */
void jobs_cursor_open(struct jobs *j, struct job_cursor *c, bool upwards);
struct job *jobs_cursor_next(struct jobs *j, struct job_cursor *c); /* NULL: the walk is over */
void jobs_cursor_close(struct jobs *j, struct job_cursor *c); /* also one that was never opened, all zero */

/* 0: no such key. */
uint64_t jobs_key_find(const struct jobs *j, uid_t uid, const char *key);
int jobs_key_add(struct jobs *j, uid_t uid, const char *key, uint64_t id, struct err *err);
/* The key of a job that is kept no longer is free again. */
void jobs_key_void(struct jobs *j, uid_t uid, const char *key, uint64_t id);
void jobs_key_forget_newest(struct jobs *j, uint64_t id); /* if it is the key of this job */

#endif
