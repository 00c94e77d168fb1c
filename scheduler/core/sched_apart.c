/* Jobs of an engine beside the machine. It may be away, and holds what it was given for as long as it likes. So
 * its jobs have nothing to do with the machine: no slots of it, no seat in its plan, no neighbours. It has its
 * own slots and its own queue: jobs go there at once, as far as their tenant's quota allows. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* ---- waiting and running ---- */

void apart_wait(struct sched *s, uint32_t place)
{
	live_link(s, &s->apart_waiting, s->apart_waiting.last, place);
	tenant_of(s, &s->live[place].r)->n_queued++;
	live_changed(s);
}

void apart_dequeue(struct sched *s, uint32_t place)
{
	live_unlink(s, &s->apart_waiting, place);
	tenant_of(s, &s->live[place].r)->n_queued--;
	live_changed(s);
}

void apart_run(struct sched *s, uint32_t place)
{
	struct live *j = &s->live[place];
	struct tenant *t = tenant_of(s, &j->r);

	live_link(s, &s->apart, s->apart.last, place);
	j->running = true;
	j->said_late = false;
	j->kind_number = 0;
	j->kind_watched = false;
	j->slowed = j->speed = 1.0;
	progress_begin(&j->progress, j->prior_s, j->taken.start_share, j->spread);
	t->cpus += j->r.cpus;
	t->n_running++;
	live_changed(s);
}

void apart_end(struct sched *s, uint32_t place)
{
	struct live *j = &s->live[place];
	struct tenant *t = tenant_of(s, &j->r);

	live_unlink(s, &s->apart, place);
	j->running = false;
	t->cpus -= j->r.cpus;
	t->n_running--;
	live_changed(s);
}

uint32_t apart_next(const struct sched *s)
{
	for (uint32_t i = s->apart_waiting.first; i != NO_JOB; i = s->live[i].next) {
		const struct sched_request *r = &s->live[i].r;
		const struct tenant *t = tenant_of(s, r);

		if (!t->is.max_cpus || t->cpus + r->cpus <= t->is.max_cpus)
			return i;
	}
	return NO_JOB;
}

/* ---- decisions and work ---- */

void apart_scene(const struct sched *s, const struct sched_request *r, struct decide_scene *out)
{
	const struct tenant *t = tenant_of(s, r);

	out->other_load = out->other_spread = out->price = 0.0;
	out->kinds = NULL;
	out->n_running = out->n_queued = out->position = 0;
	out->machine.slots = r->cpus > s->fluid.slots ? r->cpus : s->fluid.slots;
	out->machine.devices = out->most_devices = UINT32_MAX;
	out->most_cpus = t->is.max_cpus ? t->is.max_cpus : UINT32_MAX;
	out->memory_limit_mb = isnan(r->max_memory_mb) ? INFINITY : r->max_memory_mb;
}

void apart_settle(struct sched *s, double for_s)
{
	for (uint32_t i = s->apart.first; i != NO_JOB; i = s->live[i].next) {
		struct live *j = &s->live[i];

		if (!j->idle)
			j->done_s += for_s * j->speed;
	}
}

/* One that waits does so for other jobs of its tenant, and until when is not known. */
struct fluid_times apart_times(const struct sched *s, const struct live *j, int64_t now_ns)
{
	if (!j->running)
		return (struct fluid_times){ .never = true };
	return (struct fluid_times){ .end_s = live_left_s(s, j, now_ns) / j->speed };
}
