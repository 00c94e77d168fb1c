/* What must survive: jobs, decisions with all their candidates, every estimate ever made, observations. It is
 * an SQLite database in WAL mode, <state_dir>/postrider.db, with three threads: a writer commits what one
 * turn of the loop collected while the next turn collects; a checkpointer moves the log into the database
 * meanwhile; a reader answers questions about old jobs from a snapshot. The loop itself never waits for the
 * disk.
 *
 * All functions are called from the loop's thread. Tickets say what is durable: what was added before
 * store_commit() returned ticket t is on disk once store_durable() >= t. After a failed write or sync the
 * store is `failed`: it takes no more rows, tickets stop, and store_repair() tries again with everything that
 * is pending. */
#ifndef SCHEDULER_STORE_STORE_H
#define SCHEDULER_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/histogram.h"
#include "common/strbuf.h"
#include "scheduler/jobs/observation.h"
#include "scheduler/jobs/record.h"
#include "scheduler/store/durability.h"
#include "scheduler/store/keep.h"

#define STORE_SCHEMA_VERSION 10
#define STORE_MODEL_LINK "model" /* in the folder: a link to the model that the daemon decides by */

struct store;

struct store_params {
	const char *dir;             /* must exist */
	enum store_durability durability;
	double interval_s;           /* of DURABLE_INTERVAL */
	double read_limit_s;         /* a question that takes longer is given up; 0: 5 s */
};
/* Opens or makes the database, checks it (a damaged one is ERR_FORMAT with the file and SQLite's reason),
 * migrates older versions, refuses newer ones, and locks it: a second daemon gets ERR_BUSY. */
int store_open(const struct store_params *p, struct store **out, struct err *err);
/* Commits what is pending (a failed store tries once more, and logs what it could not save), joins the
 * threads. Questions still open are answered with ERR_BUSY from inside this call. */
void store_close(struct store *s);

/* Collecting; 0, or ERR_BUSY when the store is failed, ERR_NOMEM. Nothing is written before store_commit().
 * Text is copied. */
int store_add_job(struct store *s, const struct job_record *j, struct err *err);
int store_update_job(struct store *s, const struct job_record *j, struct err *err); /* whole row by id */
/* when: "arrival" or "start". */
int store_add_decision(struct store *s, uint64_t job, int64_t at_ns, const char *when,
                       const char *json, struct err *err);
int store_add_estimate(struct store *s, uint64_t job, int64_t at_ns, double start_s, double end_s,
                       double end_low_s, double end_high_s, const char *why, struct err *err);
/* One finished job as a row of the observation table. */
struct store_seen {
	uint64_t job;
	int64_t at_ns;
	const char *type;
	const struct observed *value; size_t n_values; /* what it ran with: at most OBSERVED_MAX - 2 */
	double time_s, accuracy;
	const char *doubt;           /* why nothing is to be learnt from it; NULL: it is plausible */
};
int store_add_observation(struct store *s, const struct store_seen *o, struct err *err);

/* What came from the world and a decision was made from, in the order in which the daemon took note of it:
 * scheduler/daemon/inputs.h says what there is. */
struct store_input {
	int64_t at_ns;
	const char *what;
	uint64_t job;                /* 0: it is about no job */
	double number;               /* NaN: none */
	const char *text;            /* NULL: none */
};
int store_add_input(struct store *s, const struct store_input *in, struct err *err);

/* Deletes an ended job with its decisions and estimates, and its observation where that is in doubt; or the
 * observation of a job. One that is not there, or lives, is left alone. The space is given back to the file
 * system by and by. */
struct store_expired;
int store_forget(struct store *s, const struct store_expired *e, struct err *err);

/* Hands everything collected to the writer; the ticket it will be durable with (the last one, if nothing was
 * collected). Never blocks. */
uint64_t store_commit(struct store *s);
/* The ticket that what is collected now will get; the last one, if nothing is. */
uint64_t store_ticket(const struct store *s);
bool store_collected(const struct store *s); /* there are rows for the next commit */
uint64_t store_durable(const struct store *s);
bool store_failed(const struct store *s, struct err *out_why);
/* Tries again what failed, in the writer; the answer comes by the descriptor. */
void store_repair(struct store *s);
size_t store_pending(const struct store *s); /* rows not durable yet */

struct store_stats {
	uint64_t commits, rows;      /* transactions since the start, and the rows they carried */
	double mean_commit_ms, max_commit_ms;
	struct histogram commit_s;
	uint64_t checkpoints;
	double max_checkpoint_ms;
	uint64_t wal_bytes;          /* the log as of the last commit */
	size_t pending;              /* rows not durable yet */
};
void store_stats(const struct store *s, struct store_stats *out);

/* Readable when tickets advanced, the store failed or recovered, or a question was answered: then call
 * store_dispatch(), which clears it and calls the callbacks of answered questions. */
int store_fd(const struct store *s);
void store_dispatch(struct store *s);

/* ---- questions, answered by the reader thread ---- */
enum store_question {
	STORE_JOB,           /* one job: its row as a JSON object; empty text: no such job */
	STORE_EXPLAIN,       /* {"job":{...},"decisions":[...],"estimates":[...]}; empty text: no such job */
	STORE_LIST,          /* JSON objects, one a line, newest first */
	STORE_OBSERVATIONS,  /* the plausible rows for store_observation_next(), by job; of the filter, type,
	                        except, since_ns and limit (the latest so many; 0: all) count */
	STORE_EXPIRED,       /* an array of struct store_expired; of the filter, keep and now_ns count */
};
struct store_filter { /* of STORE_LIST; NULL: the newest 100 */
	uint64_t before_id;  /* 0: from the newest */
	size_t limit;        /* at most 10,000; 0: 100; of STORE_LIST */
	char state[80];      /* "": any; one, or several separated by commas */
	char type[72];       /* "": any */
	const char *except;  /* not these types, ",a,b,"; borrowed until the answer; NULL: any */
	int64_t uid;         /* -1: any */
	int64_t since_ns;    /* 0: always */
	struct store_keep keep;
	int64_t now_ns;
};
#define STORE_MAX_EXPIRED 125 /* jobs, and observations, of an answer: there may be more */
struct store_expired {       /* what is not to be kept */
	uint64_t job;
	bool observation;    /* of the job, and not the job itself */
	bool started;        /* it has a folder */
	uid_t uid;
	char identity[40], key[136]; /* "": none */
};
#define STORE_MAX_QUESTIONS 1000 /* asked and not dispatched; more: ERR_BUSY */
/* `text` is the answer, valid during the call; err->code is set when it failed. May ask again, not close. */
typedef void store_answer(void *owner, uint64_t token, const struct strbuf *text, const struct err *err);
int store_ask(struct store *s, enum store_question q, uint64_t job, const struct store_filter *f,
              store_answer *fn, void *owner, uint64_t token, struct err *err);

/* One observation: what the job ran with, then "time_s" and "accuracy". */
struct store_observation {
	uint64_t job;
	int64_t at_ns;
	int64_t uid;         /* whose job it was; -1: the job is not kept any more */
	struct observed value[OBSERVED_MAX]; size_t n;
};
/* The row at *at of an answer to STORE_OBSERVATIONS, or of a copy of it, and *at moved behind it; false: that
 * was all. Text is borrowed from the answer. */
bool store_observation_next(const char *answer, size_t len, size_t *at, struct store_observation *out);
/* Puts a row behind the others: its head, then its values one by one. Returns where it begins. */
size_t store_observation_put(struct strbuf *out, uint64_t job, int64_t at_ns, int64_t uid);
void store_observation_put_value(struct strbuf *out, size_t row, const struct observed *v);

/* ---- start-up: before the threads have anything to do ---- */
/* Every job that is queued or running, by id; the row is valid during the call. Not 0 from fn stops. */
int store_each_live(struct store *s, int (*fn)(void *owner, const struct job_record *j, struct err *err),
                    void *owner, struct err *err);
/* The latest `n` finished ones (by id), oldest first. */
int store_each_finished(struct store *s, size_t n,
                        int (*fn)(void *owner, const struct job_record *j, struct err *err), void *owner,
                        struct err *err);
/* Keys not older than `since_ns`: so that a retried submit finds its job. */
int store_each_key(struct store *s, int64_t since_ns,
                   int (*fn)(void *owner, uid_t uid, const char *key, uint64_t job, struct err *err),
                   void *owner, struct err *err);
uint64_t store_last_id(struct store *s); /* highest id ever given; 0: none */

/* ---- another program reads a daemon's jobs ---- */
/* Nothing is changed, and a daemon may be using the file. Jobs come by id; what an older version of the file
 * does not have is as job_record_init() leaves it. begin() gets the path of the database; it is called again,
 * to read all jobs again, if a daemon opened the file meanwhile. */
struct store_visitor {
	int (*begin)(void *owner, const char *path, struct err *err);
	int (*job)(void *owner, const struct job_record *j, struct err *err);
	/* NULL: not asked for. After the jobs, of the same moment; in the order in which they were made. */
	int (*input)(void *owner, const struct store_input *in, struct err *err);
	int (*decision)(void *owner, uint64_t job, int64_t at_ns, const char *moment, const char *json,
	                struct err *err);
	void *owner;
};
/* path: of the file or its folder. */
int store_visit(const char *path, const struct store_visitor *v, struct err *err);

#endif
