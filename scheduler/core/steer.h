/* Steering: a running job that asks before each epoch gets its batch decided again, by what it has shown of
 * itself since. How the work goes:
 *
 *	sched_submit(), sched_next()   as for any job; sched_request.steer says that it will ask
 *	sched_progress()               its report of an epoch, as of any job: done / (the last epoch told)
 *	sched_steer()                  the answer; the scheduler has taken it over when it returns
 *	sched_steer_kept()             what is to be on disk before the job is told
 *	sched_restored.steer           the same text, after a restart: the next answers are the same
 *
 * It reads no clock, draws no random number and allocates nothing. Daemon and simulator call it alike.
 *
 * A job whose request does not say so, or under a policy without the layer `steer`, is answered "keeps". */
#ifndef SCHEDULER_CORE_STEER_H
#define SCHEDULER_CORE_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct sched;

/* How the learning rate follows the batch. */
enum steer_rule {
	STEER_RATE_NONE,    /* it stays as it is */
	STEER_RATE_LINEAR,  /* twice the batch, twice the rate (Goyal et al., 2017) */
	STEER_RATE_SQRT,    /* twice the batch, the rate times the square root of two */
};
extern const char *const steer_rule_name[]; /* "none", "linear", "sqrt"; then NULL */

struct steer_rate {             /* all zero: no learning rate is known */
	enum steer_rule rule;
	double lr, batch;       /* the rate that goes with this batch; batch 0: it goes with any */
};
/* The rate with another batch; NaN: none is known. */
double steer_lr(const struct steer_rate *r, double batch);

struct steer_report {           /* an epoch of a running job is over */
	uint32_t epoch;         /* so many are behind it */
	uint32_t epochs;        /* it would end after so many, as it was told last */
	double accuracy;        /* told after that epoch; NaN: not known */
};

enum steer_reason {
	STEER_KEEPS,        /* as it was */
	STEER_FASTER,       /* the promise is kept so */
	STEER_ACCURATE,     /* there is time for a more accurate end */
	STEER_GIVES_BACK,   /* the others gain more by its time than it loses */
	STEER_LATE,         /* no continuation is in time: the soonest */
};
const char *steer_reason_name(enum steer_reason r); /* "keeps", "faster", "accurate", "gives_back", "late" */
/* "faster to keep the promise" */
const char *steer_reason_text(enum steer_reason r);

struct steer_answer {
	double batch;           /* of the next epoch */
	double lr;              /* that goes with it; NaN: none is known */
	uint32_t last;          /* the epoch to end after, from 1 */
	bool changed;           /* batch or last are others than before */
	enum steer_reason reason;
	double end_s, end_upper_s; /* from now on: expected, and the bound at the job's confidence; NaN: not
	                              known */
	double accuracy;        /* that it will end with; NaN: not known */
};

/* To be called after each report of an epoch of a running job, sched_progress() first. ERR_NOTFOUND,
 * ERR_ARG: no such job, or it does not run. The same report once more is answered as before. */
int sched_steer(struct sched *s, int64_t now_ns, uint64_t id, const struct steer_report *r,
		struct steer_answer *out, struct err *err);

/* A job has run for actual_s seconds, perhaps with several batches: the seconds that it would have run with
 * the one that it began with, by the model, for sched_observe() and what goes with it (sched_foreseen_s()).
 * To be asked before sched_remove(). */
double sched_as_started_s(const struct sched *s, uint64_t id, double actual_s);

#define STEER_TEXT 2048
/* What a restart needs to know of how the job was steered, a text without spaces at its ends; "" for a job
 * that does not steer. Returns out, which has room for STEER_TEXT. */
const char *sched_steer_kept(const struct sched *s, uint64_t id, char *out);
/* ERR_FORMAT unless that text is one of those, or empty. */
int steer_check(const char *kept, struct err *err);

#endif
