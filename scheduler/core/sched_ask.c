/* Questions: when each job will start and end, why one waits, whether one should stop early. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* Below this chance, and if its last report of progress showed the delay, a job may be stopped, or another
 * one for its sake. A job between two reports may be about to give one. It is the point that 0.05 % of a
 * normal law was at, by which of 6,000 jobs 201 were called sure to be late, and 200 of these were. */
#define SURE_CHANCE 0.0025

/* ---- estimates ---- */

/* The load of others while a running job ends in end_s seconds: what it was on average for twice as long
 * until now. A burst of work that has just begun is not thought to last. */
static double load_to_come(struct sched *s, double end_s, int64_t now_ns)
{
	usual_load_pass(&s->usual, now_ns, s->other_load);
	if (s->policy.without & LAYER_USUAL_LOAD)
		return s->other_load;
	return usual_load_for(&s->usual, 2.0 * end_s);
}

/* Of the time to the end of a running job, by its reports. The spread was that of the work left at the last
 * one, and is all in what is left now. */
static double spread_left(const struct sched *s, const struct live *j, int64_t now_ns)
{
	double spread, then_s = progress_left_s(&j->progress, &spread);

	return spread * fmax(then_s / live_left_s(s, j, now_ns), 1.0);
}

double live_chance(const struct sched *s, const struct live *j, double end_s, double load, int64_t now_ns)
{
	double left_s = live_until_s(j->deadline_ns, now_ns), spread = j->spread;
	struct fluid_job f = decide_fluid_job(&j->taken, j->r.cpus);

	if (isinf(left_s))
		return NAN;
	if (!(left_s > 0.0 && end_s > 0.0))
		return left_s >= end_s ? 1.0 : 0.0;
	if (j->running)
		spread = spread_left(s, j, now_ns);
	if (j->running && !j->r.apart) {
		end_s *= decide_stretch(&s->fluid, &f, (double)(s->slots_used + s->guest_cpus) + load) *
			 j->speed * j->slowed;
	}
	return belief_chance((struct belief){ end_s, spread }, left_s);
}

/* Sure enough to stop a job: it will be late even if the others leave the machine now. */
static bool sure_late(const struct sched *s, const struct live *j, double end_s, int64_t now_ns)
{
	return (j->said_late || !j->progress.last.n) && live_chance(s, j, end_s, 0.0, now_ns) < SURE_CHANCE;
}

static struct sched_estimate estimate_of(struct sched *s, const struct live *j, const struct fluid_times *t,
					 int64_t now_ns)
{
	struct sched_estimate e = { .start_s = j->running ? 0.0 : NAN,
				    .end_s = NAN,
				    .end_low_s = NAN,
				    .end_high_s = NAN,
				    .chance = NAN };
	struct fluid_times own;
	double ratio = live_ratio(&j->taken, j->taken.guard_s);
	double told = live_ratio(&j->taken, j->taken.upper_s); /* what its user knows of */

	if (!t && j->running && j->progress.last.n) { /* there is no model to play the others by */
		own = (struct fluid_times){ .end_s = live_left_s(s, j, now_ns) / j->speed };
		t = &own;
	}
	if (!t || t->never || isnan(j->total_s))
		return e;
	e.start_s = t->start_s;
	e.end_s = t->end_s;
	e.chance = live_chance(s, j, t->end_s, load_to_come(s, t->end_s, now_ns), now_ns);
	e.late = j->promised && e.chance < 0.5;
	e.sure = e.late && sure_late(s, j, t->end_s, now_ns);
	if (isnan(ratio) && j->running && j->progress.last.n) { /* it is its own model */
		struct belief b = { t->end_s, spread_left(s, j, now_ns) };

		e.end_high_s = belief_bound(b, belief_asks(j->r.confidence));
		e.end_low_s = belief_bound(b, 1.0 - belief_asks(j->r.confidence));
	}
	if (isnan(ratio))
		return e;
	/* As the upper bound is a factor above, the lower is one below: times are never negative. A
	 * confidence below one half may have its bound below the expectation. */
	e.end_high_s = t->end_s * fmax(ratio, 1.0 / ratio);
	e.end_low_s = t->end_s * fmin(ratio, 1.0 / ratio);
	/* Later jobs may slow it down, but not past a promise that holds. */
	if (told > ratio && !e.late)
		e.end_high_s = fmax(
			e.end_high_s,
			fmin(t->end_s * told, j->promised ? live_until_s(j->deadline_ns, now_ns) : INFINITY));
	return e;
}

/* A play of all jobs does not hold those without a promise, as sched_next() will. A promise that they would
 * break is therefore judged by the plan. */
static struct sched_estimate with_holding(struct sched *s, const struct live *j, struct sched_estimate e,
					  int64_t now_ns)
{
	double shift_s;
	struct fluid_times t;
	struct sched_estimate planned;

	if (!e.late || !s->looks_ahead || s->plan.n > SCENE_WINDOW || !plan_know(s, now_ns, &shift_s))
		return e;
	t = j->plan;
	t.start_s = fmax(t.start_s - shift_s, 0.0);
	t.end_s = fmax(t.end_s - shift_s, 0.0);
	planned = estimate_of(s, j, &t, now_ns);
	return planned.late ? e : planned;
}

/* A queued job behind one whose work is not known has no times either. */
static bool works_known(const struct sched *s)
{
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next)
		if (isnan(s->live[i].total_s))
			return false;
	if (job_order_sum(&s->queues, s->plan.root, s->plan.n).n_unknown)
		return false;
	for (size_t i = tenants_next_waiting(s, 0); i < s->n_tenants; i = tenants_next_waiting(s, i + 1))
		if (job_order_sum(&s->queues, s->tenant[i].waiting.root, SIZE_MAX).n_unknown)
			return false;
	return true;
}

/* One play of the running jobs and the first SCENE_WINDOW of the queue serves all questions at the same time,
 * as long as nothing changes. */
static void look(struct sched *s, int64_t now_ns)
{
	struct forecast *o = &s->forecast;
	const struct fluid_times *t;
	unsigned __int128 sum_ns = 0;
	uint64_t stamp = o->stamp + 1;
	size_t streams;

	if (o->stamp && o->changes == s->changes && o->now_ns == now_ns)
		return;
	order_around(s, NULL);
	t = scene_play(s, now_ns, &streams);
	*o = (struct forecast){ .stamp = stamp,
				.changes = s->changes,
				.now_ns = now_ns,
				.known = works_known(s),
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

/* Of a job that was not played: it starts when the slots x time of the jobs between it and the last one that
 * was played have gone by on a full machine, as the streams in sched_scene.c do. */
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

static bool is_played(const struct sched *s, const struct live *j, int64_t now_ns)
{
	const struct forecast *o = &s->forecast;

	return o->stamp && j->forecast_stamp == o->stamp && o->changes == s->changes && o->now_ns == now_ns;
}

int sched_estimate(struct sched *s, int64_t now_ns, uint64_t id, struct sched_estimate *out, struct err *err)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);
	struct fluid_times times;
	struct order_sum before;
	bool known;

	if (!j)
		return sched_not_found(id, err);
	now_ns = live_clock(s, now_ns);
	if (j->r.apart) {
		times = apart_times(s, j, now_ns);
		*out = estimate_of(s, j, &times, now_ns);
		return 0;
	}
	look(s, now_ns);
	times = j->forecast;
	known = is_played(s, j, now_ns);
	if (!known && !j->running && s->forecast.reach != NO_JOB) {
		order_position(s, place, &before);
		times = behind(s, j, before.slot_ns);
		known = true;
	}
	known &= j->running || s->forecast.known;
	*out = with_holding(s, j, estimate_of(s, j, known ? &times : NULL, now_ns), now_ns);
	return 0;
}

/* ---- waiting ---- */

const char *sched_wait_name(enum sched_wait w)
{
	switch (w) {
	case SCHED_WAIT_NOT: return "not";
	case SCHED_WAIT_SLOTS: return "slots";
	case SCHED_WAIT_MEMORY: return "memory";
	case SCHED_WAIT_TURN: return "turn";
	case SCHED_WAIT_HELD: return "held";
	case SCHED_WAIT_QUOTA: return "quota";
	case SCHED_WAIT_DEVICES: return "devices";
	case SCHED_WAIT_DEVICE_QUOTA: return "device_quota";
	case SCHED_WAIT_PRICE: return "price";
	case SCHED_WAIT_UNSTARTED: return "unstarted";
	}
	return "unknown";
}

static void say(struct sched_waiting *w, enum sched_wait why, double needed, double available)
{
	w->why = why;
	w->needed = needed;
	w->available = fmax(available, 0.0);
}

/* The first reason that holds, the nearest to the job first. */
static struct sched_waiting waiting_of(const struct sched *s, const struct live *j, size_t ahead)
{
	struct sched_waiting out = { .needed = NAN, .available = NAN, .ahead = ahead, .due = j->due };
	struct sched_waiting *w = &out;
	const struct tenant *t = tenant_of(s, &j->r);
	double used_mb = live_memory_used_mb(s), wanted_mb = live_memory_wanted_mb(s, j);
	double free_slots = (double)live_free_slots(s);
	bool narrow = j->r.cpus <= tenant_most_cpus(s, &j->r);
	uint32_t devices = live_devices_wanted(s, j);

	if (t->is.max_cpus && t->cpus + j->r.cpus > t->is.max_cpus)
		say(w, SCHED_WAIT_QUOTA, j->r.cpus, (double)t->is.max_cpus - (double)t->cpus);
	else if (j->r.apart)
		return out;
	else if (j->r.cpus > free_slots)
		say(w, w->ahead && narrow ? SCHED_WAIT_TURN : SCHED_WAIT_SLOTS, j->r.cpus, free_slots);
	else if (devices > tenant_free_devices(t))
		say(w, SCHED_WAIT_DEVICE_QUOTA, devices, tenant_free_devices(t));
	else if (devices > live_devices_free(s))
		say(w, SCHED_WAIT_DEVICES, devices, live_devices_free(s));
	else if (wanted_mb > s->machine.memory_mb ||
		 (s->running.n && used_mb + wanted_mb > s->machine.memory_mb))
		say(w, SCHED_WAIT_MEMORY, wanted_mb, s->machine.memory_mb - used_mb);
	else if (start_owner_is_slow(s, j))
		w->why = SCHED_WAIT_UNSTARTED;
	else if (j->held_by && j->held_round == s->round &&
		 job_index_find(&s->index, j->held_by) != JOB_INDEX_NONE)
		w->why = SCHED_WAIT_HELD;
	else if (j->by_chance && j->too_costly && j->held_round == s->round)
		w->why = SCHED_WAIT_PRICE;
	else if (s->quiet_ns != INT64_MIN) /* it was not tried: too many tries, or jobs may not pass */
		w->why = SCHED_WAIT_TURN;
	if (w->why == SCHED_WAIT_HELD)
		w->job = j->held_by;
	return out;
}

int sched_waiting(struct sched *s, int64_t now_ns, uint64_t id, struct sched_waiting *out, struct err *err)
{
	uint32_t place;
	struct order_sum before;
	const struct live *j = live_find(s, id, &place);

	if (!j)
		return sched_not_found(id, err);
	now_ns = live_clock(s, now_ns);
	if (j->running)
		*out = (struct sched_waiting){ .needed = NAN, .available = NAN };
	else
		*out = waiting_of(s, j,
				  j->r.apart                ? 0
				  : is_played(s, j, now_ns) ? j->forecast_at
							    : order_position(s, place, &before));
	return 0;
}

/* ---- stopping early ---- */

uint32_t sched_should_stop(struct sched *s, int64_t now_ns, uint64_t id, uint32_t done, uint32_t epochs)
{
	uint32_t place;
	const struct live *j = live_find(s, id, &place);
	struct sched_estimate e;
	double left_s, more;

	if (!j || !j->running || !j->r.may_stop || j->deadline_ns == SCHED_NEVER || !done || done >= epochs)
		return 0;
	if (sched_estimate(s, now_ns, id, &e, NULL) || isnan(e.end_s))
		return 0;
	left_s = live_until_s(j->deadline_ns, s->last_ns);
	if (e.end_s <= left_s || !sure_late(s, j, e.end_s, s->last_ns))
		return 0;
	/* epochs are alike, so the time to the end is spread evenly over those to come */
	more = floor(left_s / e.end_s * (double)(epochs - done));
	return more > 0.0 ? done + (uint32_t)more : done;
}
