/* What happened, counted once: how promises were kept, how good bounds and predictions were, how long jobs
 * waited and decisions took. `stats`, the metrics (metrics/), the history of the page and learning read it.
 * What counts as met, and as within a bound, is defined in core/outcome.h.
 *
 * After a restart the jobs that ended earlier are counted again, from the store. Counters of a monitoring
 * system begin at 0 with every start, because it takes a counter that falls for a restart: so ended jobs are
 * counted by one function into two equal structs. */
#ifndef SCHEDULER_DAEMON_TALLY_H
#define SCHEDULER_DAEMON_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "common/histogram.h"
#include "common/json/json.h"
#include "scheduler/config/config.h"
#include "scheduler/core/sched.h"
#include "scheduler/daemon/history.h"
#include "scheduler/jobs/record.h"

#define TALLY_RING 4096
#define TALLY_LEVELS 16   /* confidences told apart, to the whole percent */
#define TALLY_RECENT 200  /* jobs behind the latest share that was kept */
#define TALLY_CODES 24    /* of errors, of reasons; the last: another one */

struct tally_level {
	int percent;
	uint64_t n, inside;
	bool recent[TALLY_RECENT]; /* a ring */
};
struct tally_levels { struct tally_level item[TALLY_LEVELS]; size_t n; };

struct tally_type {
	char name[JOB_TYPE_MAX_NAME + 1];
	uint64_t ended, predicted, promised, met, with_accuracy;
	uint64_t bounded, inside; /* jobs done that had a bound, and those within it */
	double expected;          /* the sum of their confidences */
	double sum_ape, sum_log, sum_accuracy; /* |actual/predicted - 1|, log(actual/predicted), accuracy */
};

struct tally_counts { /* of ended jobs */
	uint64_t ended[N_JOB_STATES];
	uint64_t slo[2], chances[2]; /* met, missed: of promised jobs; of those taken by chance, given up ones
	                                included */
	struct tally_levels levels;
	struct tally_type type[CONFIG_MAX_TYPES]; size_t n_types; /* earlier ones may push a name out */
};

struct tally_ring { float value[TALLY_RING]; uint64_t n; };

struct tally {
	struct tally_counts ever, here; /* with the jobs before the start; without */
	struct tally_levels kept;       /* of jobs that something is learnt from: learn/observe.c */
	struct history history;
	/* since the start */
	uint64_t verdict[SCHED_CHANCE + 1], duplicates, late;
	uint64_t rejected[TALLY_CODES]; /* by bit of enum decide_reason; the last: another reason */
	uint64_t error[TALLY_CODES];    /* error replies, by tally_error_code[] */
	uint64_t steered[STEER_LATE]; /* changes of running jobs, by reason from STEER_FASTER on */
	uint64_t reloads[2];            /* done, refused */
	struct tally_ring wait_s, decision_us, submit_us;
	uint64_t decisions, submits; double decision_us_sum, submit_us_sum;
	double max_block_ms, max_busy_ms; /* of the loop with one thing: by the clock; of cpu time */
	struct histogram decision_h, wait_h, run_h, response_h, loop_busy_h, loop_lag_h, scrape_h;
	struct histogram error_ratio_h; /* |predicted - actual| / actual of run times */
};

extern const char *const tally_error_code[]; /* NULL after the last */

void tally_init(struct tally *t);
void tally_begins(struct tally *t); /* the jobs of the store are counted: from now on it is since the start */
/* d: what was decided, of a rejection. */
void tally_verdict(struct tally *t, enum sched_verdict v, const struct decision *d);
void tally_decision(struct tally *t, double took_us);
void tally_submit(struct tally *t, double cpu_us); /* processor time of one */
void tally_wait(struct tally *t, double wait_s);
void tally_ended(struct tally *t, const struct job_record *row, int64_t now_ns); /* any state but rejected */
void tally_kept(struct tally *t, const struct job_record *row); /* something is learnt from it */
void tally_error(struct tally *t, const char *code); /* an error reply of the protocol */

/* Members "slo", "coverage", "types", "wait", "decision", "submit", "submissions" of the open object. */
void tally_sums_json(const struct tally *t, struct json_writer *w);  /* without "types" */
void tally_types_json(const struct tally *t, struct json_writer *w); /* "types" alone */
void tally_kept_json(const struct tally *t, struct json_writer *w);  /* "kept" */

#endif
