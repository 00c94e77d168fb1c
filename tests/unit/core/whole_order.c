/* Estimates by a play of all jobs, and the order of starts by a walk through the whole queue: what the
 * scheduler's answers about long queues are compared with. */
#include "tests/unit/core/whole_order.h"

#include "scheduler/core/sched_internal.h"

/* Those of the plan whose priority is below 0, or the others. */
static void whole_planned(struct sched *s, bool below)
{
	for (uint32_t i = s->plan.first; i != NO_JOB; i = s->live[i].next)
		if ((s->live[i].r.priority < 0) == below)
			s->order.place[s->order.n++] = i;
}

/* The tenant with the lowest standing is next, and rises by what it will run. */
static void whole_waiting(struct sched *s, bool below)
{
	heap_reset(&s->standings);
	for (size_t i = 0; i < s->n_tenants; i++) {
		struct tenant *t = &s->tenant[i];

		t->cursor = t->waiting.first;
		if (below && t->cursor != NO_JOB)
			t->cursor = job_order_at(&s->queues, t->waiting.root,
						 job_order_below(&s->queues, t->waiting.root));
		if (t->cursor != NO_JOB)
			heap_push(&s->standings, tenant_standing(s, t), (uint32_t)i);
	}
	while (heap_top(&s->standings)) {
		const struct heap_entry *top = heap_top(&s->standings);
		struct tenant *t = &s->tenant[top->payload];
		uint32_t i = t->cursor;
		bool over = i == NO_JOB || (s->live[i].r.priority < 0) != below;
		struct heap_entry gone;

		if (over) {
			heap_pop(&s->standings, &gone);
			continue;
		}
		s->order.place[s->order.n++] = i;
		t->cursor = s->live[i].next;
		heap_replace(&s->standings, top->key + s->window_s * s->live[i].r.cpus / t->is.weight,
			     (uint32_t)(t - s->tenant));
	}
}

size_t whole_estimates(struct sched *s, int64_t now_ns, uint64_t *id, struct sched_estimate *out, size_t max)
{
	const struct fluid_times *t;
	size_t n = 0, streams;

	now_ns = live_clock(s, now_ns);
	s->order = (struct start_order){ .place = s->order.place };
	whole_planned(s, false);
	whole_waiting(s, false);
	whole_planned(s, true);
	whole_waiting(s, true);
	t = scene_play(s, now_ns, &streams);
	for (uint32_t i = s->running.first; i != NO_JOB && n < max; i = s->live[i].next, n++) {
		id[n] = s->live[i].r.id;
		out[n] = (struct sched_estimate){ .end_s = t[n].end_s };
	}
	for (size_t k = 0; k < s->order.n && n < max; k++, n++) {
		id[n] = s->live[s->order.place[k]].r.id;
		out[n] = (struct sched_estimate){ .start_s = t[n + s->n_guests].start_s,
						  .end_s = t[n + s->n_guests].end_s };
	}
	return n;
}
