/* The policies that choose without a prediction: the paper's naive scheduler, and one batch for all jobs. */
#include "scheduler/core/policy/policy_baseline.h"

#include <math.h>

#include "scheduler/core/decide.h"

/* One that neither fits the memory nor the slots would never start, and all behind it would wait for ever. */
static bool can_run(const struct candidate *c)
{
	return !(c->reasons & REASONS_NO_ROOM);
}

int policy_choose_naive(const struct policy_choice *by, const struct decision *d, double noise,
			struct rng *rng)
{
	uint32_t n = 0, pick;

	(void)by;
	(void)noise;
	for (size_t i = 0; i < d->n_candidates; i++)
		n += can_run(&d->candidate[i]);
	if (!n)
		return -1;
	pick = rng_below(rng, n);
	for (size_t i = 0; i < d->n_candidates; i++)
		if (can_run(&d->candidate[i]) && pick-- == 0)
			return (int)i;
	return -1;
}

int policy_choose_fixed(const struct policy_choice *by, const struct decision *d, double noise,
			struct rng *rng)
{
	double least = INFINITY;
	int nearest = -1;

	(void)noise;
	(void)rng;
	for (size_t i = 0; i < d->n_candidates; i++) {
		double off = fabs(d->candidate[i].decision - by->batch);

		/* candidates ascend, so of two as near the smaller one is taken */
		if (can_run(&d->candidate[i]) && (nearest < 0 || off < least)) {
			nearest = (int)i;
			least = off;
		}
	}
	return nearest;
}
