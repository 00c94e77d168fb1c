/* What jobs that arrive later do to the time of one that runs. A time is foreseen under the load that is
 * known at the start; the load that comes is another one. Ended jobs teach two numbers about
 * log(actual / foreseen):
 *
 *   shift   its mean
 *   spread  what it adds to the spread of a time. A job that took longer than the bound its user was told
 *           raises it by STEP times the confidence, one within the bound lowers it by STEP times the rest
 *           (adaptive conformal inference: Gibbs and Candes, NeurIPS 2021), so that such bounds hold as
 *           often as they say.
 *
 * Before the first jobs have ended nobody knows what arrivals will do, and that is not the same as nothing:
 * the spread is UNKNOWN at first, and falls to the learnt one within LEDGER_RECENT jobs.
 *
 * A job that has to wait is also overtaken: jobs that arrive later with less time to spare start before it,
 * which no look-ahead knows. They may take all that is left until its limit, and no more, as its promise
 * holds; and where the limit is far away, not without end, as a queue runs empty now and then. So what such
 * jobs teach is the part of that time which they took (waits_observe()), in a ledger of its own. Only the
 * bound that users see has it in it.
 *
 * Chances and costs of decisions allow for it, and the bound that users see has it in it. The guard that
 * promises rest on has not: later jobs are admitted only if promises hold. Both numbers are kept by user and
 * type; those who have none yet begin with what all users together have. */
#ifndef SCHEDULER_CORE_LATER_H
#define SCHEDULER_CORE_LATER_H

#include <stdbool.h>

#include "scheduler/core/learn/ledger.h"

struct later_effect {
	double shift, spread;
};

/* A job has ended. foreseen_s: what it would have taken under the load foreseen. upper_s: the bound its
 * user was told; NaN: none. All times above 0. */
void later_observe(struct ledger *l, struct adapt_who who, double confidence, double foreseen_s,
                   double upper_s, double actual_s);
struct later_effect later_of(const struct ledger *l, struct adapt_who who);

/* The time that later jobs may take of a job which has to wait: what is left from the end that is foreseen
 * (since its arrival) until its limit, but at most WAITS_REACH times as long as that end is away. */
double waits_room_s(double end_s, double limit_s);
/* A job with a promise that had to wait has ended. share: the part of the room it had at its arrival that
 * passed. held: it ended within the bound that its user was told. */
void waits_observe(struct ledger *l, struct adapt_who who, double confidence, double share, bool held);
/* The part, in 0..1, that is not exceeded with this confidence. */
double waits_share(const struct ledger *l, struct adapt_who who, double confidence);

#endif
