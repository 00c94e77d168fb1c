/* How long it takes from the turn of a job until its command runs: a commit, a supervisor, its records on
 * the disk, or an engine's queue. It is measured on the latest starts. Limits allow for it
 * (sched_set_lag()). */
#ifndef SCHEDULER_CORE_START_LAG_H
#define SCHEDULER_CORE_START_LAG_H

#include <stddef.h>

#define START_LAG_LATEST 64 /* starts that count */

struct start_lag { /* all zero: nothing is known */
	double lag_s[START_LAG_LATEST];
	size_t n; /* ever */
};

void start_lag_add(struct start_lag *l, double lag_s); /* one that is not a number, or below 0, is left out */
/* What `percent` (at most 95) of the starts take at most. While they are too few to leave out the slowest,
 * `guess_s` stands for those that are missing. So one start that the disk held up does not count: if it did,
 * the daemon would refuse all jobs with less time to spare, none would start, and none could show that it was
 * an accident. Two do count. */
double start_lag_most_s(const struct start_lag *l, double percent, double guess_s);

#endif
