/* The price of capacity as the scheduler sees it: which jobs it is found from, and when (price.h). */
#include <math.h>

#include "scheduler/core/sched_internal.h"

#define FEW 8 /* arrivals: fewer say nothing about those to come */
#define EVERY 2 /* arrivals: then the price is found anew */
#define SHARE 0.3 /* of the price found last in the mean */

double price_value(const struct sched_request *r)
{
	return r->value > 0.0 ? r->value : 1.0;
}

/* ---- arrivals ---- */

/* The spread of the logarithm of a time whose bound at a confidence is known (Abramowitz and Stegun,
 * 26.2.23). */
static double spread_of(const struct candidate *c, double confidence)
{
	struct live j = { .ratio = c->time_s > 0.0 ? c->guard_s / c->time_s : NAN,
			  .r.confidence = confidence };

	return live_spread(&j);
}

static struct price_arrival arrival_of(int64_t now_ns, const struct sched_request *r,
				       const struct decision *d)
{
	struct price_arrival a = { .at_ns = now_ns,
				   .cpus = r->cpus,
				   .slo_s = isnan(r->slo_s) ? INFINITY : r->slo_s,
				   .value = price_value(r) };
	size_t n = d->n_candidates, kept = n < PRICE_CANDIDATES ? n : PRICE_CANDIDATES;

	for (size_t k = 0; k < kept; k++) { /* spread evenly, with the first and the last */
		const struct candidate *c = &d->candidate[kept > 1 ? k * (n - 1) / (kept - 1) : 0];

		if (!(c->work_s > 0.0 && c->work_s < INFINITY) || (c->reasons & REASONS_NO_ROOM))
			continue;
		a.spread = fmax(a.spread, spread_of(c, r->confidence));
		a.candidate[a.n_candidates++] = (struct price_candidate){ .work_s = c->work_s,
									  .cpu_share = c->cpu_share,
									  .disk_share = c->disk_share,
									  .accuracy = c->accuracy };
	}
	return a;
}

/* ---- the price ---- */

static struct price_live seen_live(const struct sched *s, const struct live *j, int64_t now_ns)
{
	struct fluid_job f = decide_fluid_job(&j->taken, j->r.cpus);

	return (struct price_live){ .is = { .work_s = j->running ? live_left_s(s, j, now_ns) : f.work_s,
					    .cpu_share = f.cpu_share,
					    .disk_share = f.disk_share,
					    .accuracy = j->taken.accuracy },
				    .cpus = j->r.cpus,
				    .left_s = live_until_s(j->deadline_ns, now_ns),
				    .value = price_value(&j->r),
				    .spread = live_spread(j),
				    .running = j->running };
}

/* The jobs that run and wait, as they are now. */
static const struct price_scene *scene_of(struct sched *s, int64_t now_ns)
{
	struct price_scene *scene = &s->price_scene;

	if (s->price_ns == now_ns)
		return scene;
	*scene = (struct price_scene){
		.machine = s->fluid, .other_load = s->other_load, .live = s->price_live, .now_ns = now_ns
	};
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next) {
		if (scene->n_live < PRICE_LIVE)
			s->price_live[scene->n_live++] = seen_live(s, &s->live[i], now_ns);
		else
			scene->other_load += s->live[i].r.cpus;
	}
	for (size_t k = 0; k < s->plan.n && scene->n_live < PRICE_LIVE; k++)
		s->price_live[scene->n_live++] =
			seen_live(s, &s->live[job_order_at(&s->queues, s->plan.root, k)], now_ns);
	s->price_ns = now_ns;
	s->price_cpus = 0;
	return scene;
}

void price_count(struct sched *s, int64_t now_ns)
{
	if (!s->price_next.n_candidates)
		return;
	price_see(s->price, &s->price_next);
	s->price_next.n_candidates = 0;
	s->price_cpus = 0;
	if (price_seen(s->price) < FEW || ++s->price_skipped < EVERY)
		return;
	s->price_skipped = 0;
	s->price_mean += SHARE * (price_find(s->price, scene_of(s, now_ns)) - s->price_mean);
}

void price_arrived(struct sched *s, int64_t now_ns, const struct sched_request *r, const struct decision *d)
{
	if (!s->rule.priced || !s->looks_ahead || s->policy.price > 0.0)
		return;
	price_count(s, now_ns);
	s->price_next = arrival_of(now_ns, r, d);
}

double price_now(struct sched *s, int64_t now_ns, const struct sched_request *r)
{
	const struct price_scene *scene;

	if (!s->rule.priced || !s->looks_ahead)
		return 0.0;
	if (s->policy.price > 0.0)
		return s->policy.price;
	if (!(s->price_mean > 0.0))
		return 0.0;
	scene = scene_of(s, now_ns);
	if (s->price_cpus != r->cpus) {
		double once = price_at_once(s->price, scene, s->price_mean, r->cpus);

		s->price_cpus = r->cpus;
		s->price_now = sqrt(s->price_mean * once);
	}
	return s->price_now;
}
