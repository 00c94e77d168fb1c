/* What `stats` reports: how promises were kept, how good the bounds and predictions were, how long jobs
 * waited and decisions took. After a restart the counts of ended jobs come back from the store; the latest
 * waits and decisions do not. */
#ifndef SCHEDULER_DAEMON_OUTCOME_STATS_H
#define SCHEDULER_DAEMON_OUTCOME_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/json/json.h"
#include "scheduler/core/sched.h"
#include "scheduler/jobs/jobs.h"

#define OUTCOME_STATS_RING 4096
#define OUTCOME_STATS_MAX_TYPES 256  /* the configuration has no more; earlier ones may push a name out */
#define OUTCOME_STATS_MAX_LEVELS 16  /* confidences told apart, to the whole percent */

struct stats_level { int percent; uint64_t n, inside; };
struct stats_type {
	char name[JOB_TYPE_MAX_NAME + 1];
	uint64_t ended, predicted, promised, met, with_accuracy;
	double sum_ape, sum_log, sum_accuracy; /* |actual/predicted - 1|, log(actual/predicted), accuracy */
};
struct stats_ring { float value[OUTCOME_STATS_RING]; uint64_t n; };

struct outcome_stats {
	uint64_t verdict[SCHED_CHANCE + 1], duplicates;
	uint64_t met, missed;
	uint64_t chances_met, chances_missed; /* of jobs taken by chance, those given up included */
	struct stats_level level[OUTCOME_STATS_MAX_LEVELS]; size_t n_levels;
	struct stats_type type[OUTCOME_STATS_MAX_TYPES]; size_t n_types;
	struct stats_ring wait_s, decision_us, submit_us;
	uint64_t decisions, submits; double decision_us_sum, submit_us_sum;
	double max_block_ms, max_busy_ms; /* of the loop with one thing: by the clock; of cpu time */
};

void outcome_stats_verdict(struct outcome_stats *t, enum sched_verdict v);
void outcome_stats_decision(struct outcome_stats *t, double took_us);
void outcome_stats_submit(struct outcome_stats *t, double cpu_us); /* processor time of one */
void outcome_stats_ended(struct outcome_stats *t, const struct job_record *row); /* done, failed, lost or
                                                                                    given up */
void outcome_stats_wait(struct outcome_stats *t, double wait_s);
/* Members "slo", "coverage", "types", "wait", "decision", "submit", "submissions" of the open object. */
void outcome_stats_sums_json(const struct outcome_stats *t, struct json_writer *w);  /* without "types" */
void outcome_stats_types_json(const struct outcome_stats *t, struct json_writer *w); /* "types" alone */

#endif
