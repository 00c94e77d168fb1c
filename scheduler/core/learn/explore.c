/* Which jobs take the second-best candidate: explore.h says why. */
#include "scheduler/core/learn/explore.h"

#include <math.h>

#include "common/rng.h"

#define STREAM_EXPLORE 0x6578706c6f726573ULL /* another than that of policies that draw */

static bool has_headroom(const struct candidate *c, double limit_s)
{
	return c->feasible && !isnan(c->delays_s) &&
	       c->wait_upper_s + c->guard_s <= limit_s; /* no bound: no */
}

/* As decide() puts them: the more accurate, or, alike or not known, the faster. */
static bool before(const struct candidate *a, const struct candidate *b)
{
	if (!isnan(a->accuracy) && !isnan(b->accuracy) && a->accuracy != b->accuracy)
		return a->accuracy > b->accuracy;
	return a->time_s < b->time_s;
}

int explore_pick(const struct explore_params *p, const struct decision *d, uint64_t job_id, double slo_s)
{
	struct rng rng = rng_stream(p->seed ^ STREAM_EXPLORE, job_id);
	double limit_s = (p->headroom > 0.0 ? p->headroom : EXPLORE_HEADROOM) * slo_s;
	int second = -1;

	if (d->chosen < 0 || !(rng_uniform(&rng) < p->share) ||
	    !has_headroom(&d->candidate[d->chosen], limit_s))
		return d->chosen;
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if ((int)i != d->chosen && has_headroom(c, limit_s) &&
		    (second < 0 || before(c, &d->candidate[second])))
			second = (int)i;
	}
	return second < 0 ? d->chosen : second;
}
