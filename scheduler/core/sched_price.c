/* The price of capacity as the scheduler uses it: which arrivals it comes from, and which jobs pay it
 * (price.h). */
#include <math.h>

#include "scheduler/core/sched_internal.h"

double price_value(const struct sched_request *r)
{
	return r->value > 0.0 ? r->value : 1.0;
}

void price_arrived(struct sched *s, int64_t now_ns, const struct sched_request *r, const struct decision *d)
{
	const struct candidate *least = NULL;

	/* A job may be asked for again, with less, when it was rejected: it has arrived once. */
	if (!s->rule.priced || !s->looks_ahead || r->id == s->arrived_id)
		return;
	s->arrived_id = r->id;
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *c = &d->candidate[i];

		if (c->time_s > 0.0 && c->time_s < INFINITY && !isnan(c->delays_s) &&
		    (!least || c->time_s < least->time_s))
			least = c;
	}
	if (least)
		price_see(s->price, now_ns, least->harm / (r->cpus * least->time_s));
}

/* Does no job run or wait but this one? Of several schedulers that share a price none knows the others. */
static bool is_alone(const struct sched *s, const struct sched_request *r)
{
	uint32_t own = job_index_find(&s->index, r->id);

	return s->running.n + s->n_queued == (own != JOB_INDEX_NONE) && !s->n_guests && !s->beside &&
	       !s->n_beside;
}

double price_now(const struct sched *s, int64_t now_ns, const struct sched_request *r)
{
	if (!s->rule.priced || !s->looks_ahead)
		return 0.0;
	if (s->policy.price > 0.0)
		return s->policy.price;
	return is_alone(s, r) && price_lull(s->price, now_ns) ? 0.0 : price_at(s->price, now_ns);
}
