/* The price of capacity: what a second of one process on the machine is worth to the jobs that come next.
 *
 * A job that stays longer takes time from others: processes share the cores and the disk (queueing/fluid.h),
 * and slots are taken. The one number that this depends on is P, the processes that run, so the capacity a
 * candidate uses is cpus x time, in process-seconds, and there is one price for it.
 *
 * How it is found. The last arrivals are kept, each with its cpus, objective, value and what its candidates
 * would do (work, shares, accuracy). The future is taken to mirror the past: the next arrival comes after as
 * long a time as has passed since the last one, and so on backwards, so that a burst is thought to go on for
 * as long as it has lasted, and an idle hour for an hour. Those arrivals are played on the machine as it is
 * now, with the jobs that run and wait, once for each price of a short list: each takes the candidate of the
 * largest value x chance x accuracy - price x cpus x time, and none if that is below 0. The price whose play
 * is worth most in total is the price. If no price is worth more than none, it is 0.
 *
 * It reads no clock and is a function of the arrivals seen and of the jobs handed in; only price_new()
 * allocates. */
#ifndef SCHEDULER_CORE_PRICE_H
#define SCHEDULER_CORE_PRICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "queueing/fluid.h"

#define PRICE_WINDOW 64 /* arrivals remembered */
#define PRICE_CANDIDATES 8 /* of each */
#define PRICE_LIVE 32 /* jobs that run or wait, seen one by one; more count as load that stays */

struct price_candidate {
	double work_s, cpu_share, disk_share; /* as in a struct fluid_job */
	double accuracy;        /* NaN: not known, counts as 1 */
};

struct price_arrival {          /* a job as it came */
	int64_t at_ns;
	uint32_t cpus;
	double slo_s;           /* INFINITY: no objective */
	double value;
	double spread;          /* of the logarithm of its time */
	struct price_candidate candidate[PRICE_CANDIDATES]; size_t n_candidates;
};

struct price_live {             /* a job that runs or waits */
	struct price_candidate is; /* work left */
	uint32_t cpus;
	double left_s;          /* until its deadline; INFINITY: none */
	double value, spread;
	bool running;
};

struct price;
int price_new(struct price **out, struct err *err);
void price_free(struct price *p);
/* An arrival, whatever became of it. */
void price_see(struct price *p, const struct price_arrival *a);
size_t price_seen(const struct price *p);

struct price_scene {
	struct fluid_machine machine;
	double other_load;      /* processes that are not ours, and jobs beyond PRICE_LIVE that run */
	const struct price_live *live; size_t n_live; /* at most PRICE_LIVE; those that wait in order */
	int64_t now_ns;
};
/* The price of a process-second, in the unit of values, at which the jobs to come are worth most. */
double price_find(struct price *p, const struct price_scene *s);
/* What a process-second taken now by a job so wide costs the others, if they pay this price: the play with
 * and without a job like the last one of that width. 0 on an idle machine. */
double price_at_once(struct price *p, const struct price_scene *s, double price, uint32_t cpus);

#endif
