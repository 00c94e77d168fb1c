/* How promises and load went over time, for pictures: what ended in each minute of the last day, and how
 * busy the machine was. After a restart the promises of the jobs in memory are there again; the load is
 * not. */
#ifndef SCHEDULER_DAEMON_HISTORY_H
#define SCHEDULER_DAEMON_HISTORY_H

#include <stdint.h>

#include "common/json/json.h"
#include "scheduler/jobs/record.h"

#define HISTORY_MINUTES 1440

struct history_minute {
	int64_t minute;              /* since 1970; another one: the place was not used in this one */
	uint32_t met, missed, samples;
	float slots, other;          /* sums over the samples */
};
struct history {
	struct history_minute ring[HISTORY_MINUTES]; /* by minute modulo their number */
};

void history_ended(struct history *h, const struct job_record *row, int64_t now_ns);
/* other NaN: not known */
void history_load(struct history *h, int64_t now_ns, double slots_used, double other);
/* Member "history": two lists of bins, the last hour by minute and the last day by quarter of an hour,
 * empty bins left out. Each has the share of promises kept with Wilson's 95 % interval. */
void history_json(const struct history *h, int64_t now_ns, struct json_writer *w);

#endif
