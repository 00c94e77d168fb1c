/* Jobs that were taken without a promise for the chance they have: which of them have none any more. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* A job is asked again when this share of the time it had left has passed: often enough that one without a
 * chance does not wait for long, and cheap among thousands. */
#define ASK_AGAIN 0.0625
#define MOST_LOOKS 32 /* of one call: each is a decision */

/* Could it still be in time if it had the machine for itself from now on? A job that waits can do no
 * better. */
static bool may_hope(struct sched *s, const struct live *j, double left_s)
{
	struct policy_choice alone;
	struct decide_scene scene;
	struct decide_params p = { .model = model_of(s, &j->r),
				   .job = j->r.values,
				   .epochs = j->r.epochs,
				   .n_epochs = j->r.n_epochs,
				   .slo_s = left_s,
				   .confidence = j->r.confidence,
				   .scene = &scene };

	if (!(left_s > 0.0))
		return false;
	p.candidate = live_batches(s, &j->r, &p.n_candidates);
	scene_alone(s, &j->r, &alone, &scene);
	scene.other_load = s->foreseen.load;
	scene.other_spread = s->foreseen.spread;
	/* without a model nothing is known, and so it hopes until its time is over */
	return !p.model || decide(&p, s->trial, NULL) || s->trial->chosen >= 0 ||
	       decide_likeliest(s->trial, 0.0, 0) >= 0;
}

/* The position from `from` on of the next job that is to be asked, or that has no chance any more: such a job
 * is always awake. */
static size_t next_woken(const struct sched *s, const struct tenant *t, size_t from, int64_t now_ns)
{
	return job_order_woken(&s->queues, t->waiting.root, from, now_ns);
}

bool chance_look(struct sched *s, int64_t now_ns)
{
	size_t i = s->n_by_chance ? tenants_next_waiting(s, 0) : s->n_tenants;

	for (int looks = 0; i < s->n_tenants; i = tenants_next_waiting(s, i + 1)) {
		const struct tenant *t = &s->tenant[i];
		size_t at = next_woken(s, t, 0, now_ns);

		for (; at < t->waiting.n; at = next_woken(s, t, at + 1, now_ns)) {
			uint32_t k = job_order_at(&s->queues, t->waiting.root, at);
			struct live *j = &s->live[k];
			double left_s = live_until_s(j->deadline_ns, now_ns);

			if (j->gone)
				continue;
			if (looks++ == MOST_LOOKS)
				return false;
			j->gone = !may_hope(s, j, left_s);
			j->hopes_ns = isinf(left_s) ? SCHED_NEVER
						    : now_ns + (int64_t)(1e9 * ASK_AGAIN * left_s);
			live_reorder(s, k);
		}
	}
	return true;
}

bool sched_hopeless(struct sched *s, uint64_t *out_id)
{
	size_t i = s->n_by_chance ? tenants_next_waiting(s, 0) : s->n_tenants;

	for (; i < s->n_tenants; i = tenants_next_waiting(s, i + 1)) {
		const struct tenant *t = &s->tenant[i];
		size_t at = next_woken(s, t, 0, INT64_MIN);

		if (at < t->waiting.n) {
			*out_id = s->live[job_order_at(&s->queues, t->waiting.root, at)].r.id;
			return true;
		}
	}
	return false;
}

int64_t sched_overtime_ns(const struct sched *s, uint64_t *out_id)
{
	const uint32_t first[] = { s->running.first, s->apart.first };
	int64_t first_ns = SCHED_NEVER;

	for (size_t i = 0; i < 2 && s->n_by_chance; i++) {
		for (uint32_t k = first[i]; k != NO_JOB; k = s->live[k].next) {
			const struct live *j = &s->live[k];

			if (j->by_chance && live_limit_ns(j) < first_ns) {
				first_ns = live_limit_ns(j);
				*out_id = j->r.id;
			}
		}
	}
	return first_ns;
}

bool sched_chance_gone(struct sched *s, int64_t now_ns, uint64_t id)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);
	struct sched_estimate e;

	if (!j || !j->running || !j->by_chance)
		return false;
	if (live_limit_ns(j) <= now_ns) /* whatever it reports */
		return true;
	return j->progress.last.n && model_of(s, &j->r) && !sched_estimate(s, now_ns, id, &e, NULL) &&
	       e.chance < DECIDE_NO_CHANCE;
}
