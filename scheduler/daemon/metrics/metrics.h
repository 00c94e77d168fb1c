/* What a monitoring system reads: counters since the start, histograms, and the present state, in the text
 * format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). docs/METRICS.md lists
 * every name; a test holds the two together.
 *
 * Counters begin at 0 with every start, because a monitoring system takes a counter that falls for a restart.
 * So they are kept apart from the counts of `stats`, which come back from the database. What counts as met,
 * and as within a bound, is defined in core/outcome.h. No label is made of users, jobs or parameters: label
 * sets are as large as the configuration at most. */
#ifndef SCHEDULER_DAEMON_METRICS_METRICS_H
#define SCHEDULER_DAEMON_METRICS_METRICS_H

#include <stdint.h>

#include "common/histogram.h"
#include "common/strbuf.h"
#include "scheduler/core/decide.h"
#include "scheduler/core/sched.h"
#include "scheduler/config/config.h"
#include "scheduler/jobs/record.h"

#define METRICS_MAX_LEVELS 16 /* confidences told apart, to the whole percent */
#define METRICS_ERROR_CODES 24

struct daemon;
struct http;

struct metrics_level { int percent; uint64_t n, inside; };
struct metrics_type {
	char name[JOB_TYPE_MAX_NAME + 1];
	uint64_t n, inside; /* jobs done that had a bound, and those within it */
	double expected;    /* the sum of their confidences */
};

struct metrics { /* since the start */
	uint64_t verdict[SCHED_CHANCE + 1];
	uint64_t rejected[METRICS_ERROR_CODES]; /* by bit of enum decide_reason; the last: another reason */
	uint64_t error[METRICS_ERROR_CODES];    /* error replies, by metrics_error_code[] */
	uint64_t ended[N_JOB_STATES];
	uint64_t met, missed, chances_met, chances_missed;
	struct metrics_level level[METRICS_MAX_LEVELS]; size_t n_levels;
	struct metrics_type type[CONFIG_MAX_TYPES]; size_t n_types; /* that jobs of have ended */
	struct histogram decision_s, wait_s, run_s, response_s, loop_busy_s, loop_lag_s, scrape_s;
	struct histogram error_ratio; /* |predicted - actual| / actual of run times */
	uint64_t reloads, reloads_failed, late;
};

void metrics_init(struct metrics *m); /* also: forgets everything */
void metrics_decided(struct metrics *m, enum sched_verdict v, const struct decision *d);
void metrics_ended(struct metrics *m, const struct job_record *row); /* any final state but rejected */
void metrics_error(struct metrics *m, const char *code); /* an error reply of the protocol */

/* The whole text. A failed strbuf: out of memory. */
void metrics_text(struct daemon *d, struct strbuf *out);

/* ---- textfile.c: the same text as a file, for node_exporter ---- */
struct textfile;
/* Writes now and then every few seconds, in a thread. NULL path: returns NULL. If the file cannot be written,
 * the log says so, once until it can be written again. */
struct textfile *textfile_new(struct daemon *d, const char *path);
void textfile_free(struct textfile *t); /* removes the file: numbers of a daemon that is gone mislead */

#endif
