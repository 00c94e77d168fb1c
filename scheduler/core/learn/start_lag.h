/* How long it takes from the turn of a job until its command runs: a commit, a supervisor, its records on
 * the disk, or an engine's queue. It is measured on the latest starts. Objectives allow for it
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
/* What `percent` of the starts take at most. `guess_s` counts as one of them while they are too few to leave
 * out the slowest. */
double start_lag_most_s(const struct start_lag *l, double percent, double guess_s);

#endif
