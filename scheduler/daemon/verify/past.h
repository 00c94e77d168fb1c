/* What a state folder says of a daemon's past: its jobs, the decisions about them, and what these were made
 * from (daemon/inputs.h), read as of one moment and put into the order of time. Read-only; the daemon may
 * run. */
#ifndef SCHEDULER_DAEMON_VERIFY_PAST_H
#define SCHEDULER_DAEMON_VERIFY_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/jobs/jobs.h"

/* What a decision says, as far as two of them are compared. */
struct past_choice {
	double batch, epochs;        /* chosen; NaN: none, or not said */
	double wait_s, time_s, upper_s, accuracy; /* of it; without one, of the first candidate */
	double slo_s, other_load, price, confidence;
	size_t n_candidates;
	double first_batch, last_batch; /* of the candidates */
	char policy[64], model[64];  /* "": none */
	double accuracy_error;
	char *rest;                  /* the candidates' numbers, for the first that differs */
};
/* false: it is damaged. */
bool past_choice_read(const char *json, struct past_choice *out);
void past_choice_release(struct past_choice *c);

struct past_decision {
	uint64_t job;
	int64_t at_ns;
	bool start;                  /* else at arrival */
	bool judged;                 /* a start: the replay got there */
	size_t again;                /* which of the starts of the job in the replay it is then */
	struct past_choice choice;
	bool damaged;
};

struct past_input {
	int64_t at_ns;
	const char *what;            /* kept with the names */
	uint64_t job;
	double number;
	char *text;                  /* NULL: none */
};

struct past_job {
	struct job *is;              /* the row, as it was when it was read */
	int64_t arrived_ns;          /* a job that waited has another moment in its row */
	bool waits;                  /* it was submitted to wait for others */
	bool ends;                   /* its last run ended, by an input */
};

enum past_kind { PAST_INPUT, PAST_SUBMIT, PAST_START };
struct past_moment {
	int64_t at_ns;
	enum past_kind kind;
	size_t i;                    /* of input[], job[] or decision[] */
};

struct past {
	struct names names;
	struct past_job *job; size_t n_jobs, jobs_cap;         /* by id */
	struct past_input *input; size_t n_inputs, inputs_cap; /* those of `loads` one by one */
	struct past_decision *decision; size_t n_decisions, decisions_cap; /* in their order */
	struct past_moment *moment; size_t n_moments;
	bool clock_went_back;
};
int past_read(const char *path, struct past *out, struct err *err);
void past_release(struct past *p);
struct past_job *past_job(const struct past *p, uint64_t id); /* NULL: none */
/* The first moment from `from` on at which a daemon began; n_moments: none. */
size_t past_next_daemon(const struct past *p, size_t from);

#endif
