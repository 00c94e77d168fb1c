/* What `stats` tells: how promises were kept, how good the bounds and predictions were, how long jobs waited and
 * decisions took. Counts of ended jobs are rebuilt from the store after a restart; rings of the latest waits and
 * decisions begin anew. */
#ifndef SCHEDULER_DAEMON_OUTCOME_STATS_H
#define SCHEDULER_DAEMON_OUTCOME_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/json/json.h"
#include "scheduler/core/sched.h"
#include "scheduler/jobs/jobs.h"

#define TALLY_RING 4096
#define TALLY_MAX_TYPES 256  /* the configuration has no more; earlier ones may push a name out */
#define TALLY_MAX_LEVELS 16  /* confidences told apart, to the whole percent */

struct tally_level { int percent; uint64_t n, inside; };
struct tally_type {
	char name[JOB_TYPE_MAX_NAME + 1];
	uint64_t ended, predicted, promised, met, with_accuracy;
	double sum_ape, sum_log, sum_accuracy; /* |actual/predicted - 1|, log(actual/predicted), accuracy */
};
struct tally_ring { float value[TALLY_RING]; uint64_t n; };

struct tally {
	uint64_t verdict[3], duplicates;
	uint64_t met, missed;
	struct tally_level level[TALLY_MAX_LEVELS]; size_t n_levels;
	struct tally_type type[TALLY_MAX_TYPES]; size_t n_types;
	struct tally_ring wait_s, decision_us;
	uint64_t decisions; double decision_us_sum;
	double max_block_ms;
};

void tally_verdict(struct tally *t, enum sched_verdict v);
void tally_decision(struct tally *t, double took_us);
void tally_ended(struct tally *t, const struct job_record *row); /* done, failed or lost */
void tally_wait(struct tally *t, double wait_s);
/* Members "slo", "coverage", "types", "wait", "decision", "submissions" of the open object. */
void tally_json(const struct tally *t, struct json_writer *w);

#endif
