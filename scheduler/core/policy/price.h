/* The price of capacity: what a second of one process on the machine costs the jobs that come later.
 *
 * A job that stays longer takes time from others: processes share the cores and the disk (queueing/fluid.h),
 * and slots are taken. Its effect on the jobs that run and wait is played (lookahead.c). Jobs that will
 * arrive while it runs cannot be played. But every job slows others when it comes and is slowed by others
 * later, and over time the two are equal. So the cost of the last arrivals to the jobs that were there, over
 * the process-seconds that the arrivals wanted, estimates the cost of a process-second to later jobs. A job
 * that is slowed down stays longer and slows more jobs in turn; the factor in price.c accounts for that.
 *
 * The price is 0 as long as jobs do not harm each other, rises with the load, and fades when none arrives; it
 * is gone then if none runs or waits, because those who made it are no longer there. It reads no clock and
 * allocates nothing. */
#ifndef SCHEDULER_CORE_PRICE_H
#define SCHEDULER_CORE_PRICE_H

#include <stdbool.h>
#include <stdint.h>

struct price {                  /* all zero: no arrival yet */
	double harm;            /* of a process-second, as a mean over the last arrivals */
	double gap_s;           /* between them, as such a mean */
	int64_t last_ns;        /* of the last one that counts */
	unsigned n;             /* arrivals that count */
	double next_harm;       /* the last arrival, which counts from the next one on */
	int64_t next_ns;
	bool has_next;
};

/* A job has arrived. harm: what it would have cost the others for each process-second it wants. It counts
 * from the next call at a later time on, so that a job which is refused finds the same price when it asks for
 * the limit that it was offered. */
void price_see(struct price *p, int64_t now_ns, double harm);
/* The price of a process-second at this moment, in the unit of values. */
double price_at(const struct price *p, int64_t now_ns);
/* No job has arrived for long. A machine on which none runs or waits then has no price. */
bool price_lull(const struct price *p, int64_t now_ns);

#endif
