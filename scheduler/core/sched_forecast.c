/* What is known of many jobs at once, for lists of them. One play of the running jobs and the first
 * SCENE_WINDOW of the queue serves all questions at the same time, as long as nothing changes.
 *
 * A job behind those starts when the slots x time of the jobs between it and the last one that was played
 * have gone by on a full machine: the arithmetic of the streams in sched_scene.c. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

static void look(struct sched *s, int64_t now_ns)
{
	struct forecast *o = &s->forecast;
	const struct fluid_times *t;
	unsigned __int128 sum_ns = 0;
	uint64_t stamp = o->stamp + 1;
	size_t streams;

	if (o->stamp && o->changes == s->changes && o->now_ns == now_ns)
		return;
	order_around(s, NULL, NO_JOB);
	t = scene_play(s, now_ns, &streams);
	*o = (struct forecast){ .stamp = stamp,
				.changes = s->changes,
				.now_ns = now_ns,
				.known = estimate_works_known(s),
				.reach = NO_JOB };
	if (!t)
		return;
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next) {
		s->live[i].forecast = *t++;
		s->live[i].forecast_stamp = stamp;
	}
	t += s->n_guests;
	for (size_t k = 0; k < s->order.n; k++) {
		struct live *j = &s->live[s->order.place[k]];

		j->forecast = *t++;
		j->forecast_stamp = stamp;
		j->forecast_at = (uint32_t)k;
		if (!j->forecast.never) {
			o->reach = s->order.place[k];
			o->reach_ns = sum_ns;
		}
		sum_ns += j->slot_ns;
	}
}

/* Of one that was not played. */
static struct fluid_times behind(const struct sched *s, const struct live *j, unsigned __int128 before_ns)
{
	const struct forecast *o = &s->forecast;
	const struct live *reach = &s->live[o->reach];
	const struct fluid_job f = decide_fluid_job(&j->taken, j->r.cpus);
	double used = s->machine.slots, past_s;

	if (!j->slot_cpus || j->r.cpus > tenant_most_cpus(s, &j->r) ||
	    live_devices_wanted(s, j) > tenant_most_devices(s, &j->r))
		return (struct fluid_times){ .never = true };
	past_s = before_ns > o->reach_ns ? 1e-9 * (double)(before_ns - o->reach_ns) / used * scene_idle(s)
					 : 0.0;
	past_s += reach->forecast.start_s;
	return (struct fluid_times){ .start_s = past_s,
				     .end_s = past_s + f.work_s * decide_stretch(&s->fluid, &f,
										 used + s->other_load) };
}

int sched_forecast(struct sched *s, int64_t now_ns, uint64_t id, struct sched_estimate *out,
		   struct sched_waiting *out_waiting, struct err *err)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);
	struct fluid_times times;
	struct order_sum before;
	bool known;

	if (!j)
		return sched_not_found(id, err);
	now_ns = live_clock(s, now_ns);
	look(s, now_ns);
	times = j->forecast;
	known = j->forecast_stamp == s->forecast.stamp;
	if (j->running) {
		*out_waiting = (struct sched_waiting){ .needed = NAN, .available = NAN };
	} else if (known) {
		*out_waiting = waiting_of(s, j, j->forecast_at);
	} else {
		*out_waiting = waiting_of(s, j, order_position(s, place, &before));
		known = s->forecast.reach != NO_JOB;
		if (known)
			times = behind(s, j, before.slot_ns);
	}
	known &= j->running || s->forecast.known;
	*out = estimate_with_holding(s, j, estimate_of(s, j, known ? &times : NULL, now_ns), now_ns);
	return 0;
}
