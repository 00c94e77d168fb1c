/* What a decision or an estimate sees of the live jobs: the scene made of the order of starts, and the play
 * of the plan, which is kept until something changes.
 *
 * A queue longer than SCENE_WINDOW is not looked at job by job. The jobs far before the one decided about are
 * merged into at most SCENE_STREAMS equal streams: together as wide as they are, or as the machine, with the
 * slots x time they will take of a full machine. While jobs wait the machine is full, so the streams end when
 * those jobs would, except for slots that stay idle because the next job does not fit; IDLE_SLOTS allows for
 * those. On random mixes of widths the waits came out between 2 % short and 4 % long; where all are equally
 * wide, 12 % long on two slots; where more run at a time than the window holds (984 running, 1,000 queued),
 * 12 % long. What the streams hide is which of those jobs a candidate could delay; those far behind it are
 * left out, and what it does to them is not seen. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

#define IDLE_SLOTS 0.25 /* at a time, on average, as random mixes of widths show */
#define KEEP_PLAN_FROM 64 /* jobs: a smaller play is made anew each time, exact to the bit */

double scene_idle(const struct sched *s)
{
	return s->machine.slots > 1 ? 1.0 + IDLE_SLOTS / s->machine.slots : 1.0;
}

/* ---- seats: of the running jobs, of the guests, of the one that starts now, of the queue ---- */

size_t scene_seated(const struct sched *s)
{
	return s->running.n + s->n_guests;
}

static struct decide_neighbour neighbour_of(const struct live *j, int64_t now_ns, bool promises, int priority)
{
	return (struct decide_neighbour){
		.id = j->r.id,
		.ratio = live_ratio(&j->taken, j->taken.guard_s),
		.deadline_s = promises && j->promised ? live_until_s(j->deadline_ns, now_ns) : INFINITY,
		.guarded = promises && j->due && j->r.priority >= priority,
		.until_s = live_until_s(j->deadline_ns, now_ns) * j->limit_part,
		.worth = price_value(&j->r) * (isfinite(j->taken.accuracy) ? j->taken.accuracy : 1.0),
		.way = j->taken.way,
		.per_s = price_value(&j->r) * j->taken.way_per_s,
		.spread = j->spread_later,
	};
}

static const struct decide_neighbour no_neighbour = { .ratio = NAN,
						      .deadline_s = INFINITY,
						      .until_s = INFINITY };

static void take_seat(struct sched *s, struct live *j, size_t seat)
{
	j->seat = (uint32_t)seat;
	j->seat_stamp = s->stamp;
}

/* The seat of the job whose end it waits for, as a fluid_job says it. One without a promise that was held
 * waits for the one it was held for, as far as is known. */
static uint32_t after_of(const struct sched *s, const struct live *j, size_t own_seat)
{
	const struct live *a = live_after(s, j);

	if (!a && !j->planned && j->held_by && j->held_round == s->round) {
		uint32_t place = job_index_find(&s->index, j->held_by);

		a = place == JOB_INDEX_NONE ? NULL : &s->live[place];
	}
	return a && a->seat_stamp == s->stamp && a->seat < own_seat ? a->seat + 1 : 0;
}

static uint32_t group_of(const struct sched *s, const struct sched_request *r)
{
	return s->quotas ? (uint32_t)(tenant_of(s, r) - s->tenant) + 1 : 0;
}

/* What the kinds of running and waiting jobs do to each other; NULL: nothing is known of it. */
static const struct fluid_kinds *kinds_of(const struct sched *s)
{
	return s->kinds ? pairs_learnt(s->pairs) : NULL;
}

static void set_kind(const struct sched *s, const struct live *j, uint16_t number, struct fluid_job *out)
{
	out->kind = number;
	out->feels = pairs_felt(s->pairs, number, j->r.user);
}

static void fill_running(struct sched *s, int64_t now_ns, bool promises, int priority)
{
	bool learnt = kinds_of(s) != NULL;
	size_t n = 0;

	s->stamp++;
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next, n++) {
		struct live *j = &s->live[i];

		s->scene_running[n] = decide_fluid_job(&j->taken, j->r.cpus);
		s->scene_running[n].work_s = fmin(live_left_s(s, j, now_ns), FLUID_MAX_WORK_S);
		s->scene_running[n].group = group_of(s, &j->r);
		if (learnt)
			set_kind(s, j, j->kind_number, &s->scene_running[n]);
		s->neighbour[n] = neighbour_of(j, now_ns, promises, priority);
		take_seat(s, j, n);
	}
	for (size_t k = 0; k < s->n_guests; k++, n++) {
		s->scene_running[n] = guest_job(&s->guest[k], now_ns);
		s->neighbour[n] = no_neighbour;
	}
}

/* Where the jobs of s->order have their seats. */
struct queue_view {
	size_t n; /* jobs of it that are seen */
	size_t n_streams;
	size_t gap; /* index in it before which a seat is left free; SIZE_MAX: none */
};

/* The streams have their seats in front, the others follow; returns the number of seats, without the free
 * one. */
static size_t fill_queued(struct sched *s, int64_t now_ns, const struct queue_view *v, size_t first_seat,
			  bool promises, int priority)
{
	bool learnt = kinds_of(s) != NULL;
	size_t at = v->n_streams;

	for (size_t k = 0; k <= v->n; k++) {
		struct live *j;

		if (k == v->gap)
			s->neighbour[first_seat + at++] = no_neighbour;
		if (k == v->n)
			break;
		j = &s->live[s->order.place[k]];
		s->scene_queued[at] = decide_fluid_job(&j->taken, j->r.cpus);
		s->scene_queued[at].group = group_of(s, &j->r);
		if (learnt)
			set_kind(s, j, pairs_find(s->pairs, j->kind), &s->scene_queued[at]);
		s->scene_queued[at].after = after_of(s, j, first_seat + at);
		s->neighbour[first_seat + at] = neighbour_of(j, now_ns, promises, priority);
		take_seat(s, j, first_seat + at);
		at++;
	}
	return at - (v->gap != SIZE_MAX);
}

/* Those before s->order as streams; returns how many. */
static size_t fill_streams(struct sched *s, size_t first_seat)
{
	const struct order_sum *merged = &s->order.before;
	uint64_t width = merged->slot_cpus < s->machine.slots ? merged->slot_cpus : s->machine.slots;
	size_t n = width < SCENE_STREAMS ? (size_t)width : SCENE_STREAMS;
	double work_s;

	if (!n)
		return 0;
	work_s = fmin(1e-9 * (double)merged->slot_ns / (double)width * scene_idle(s), FLUID_MAX_WORK_S);
	for (size_t i = 0; i < n; i++) {
		/* No slot is left over, or those behind would pass the streams in it. The work is as
		 * stretched as it will be: none of it is the cpus' or the disk's. */
		s->scene_queued[i] = (struct fluid_job){ .work_s = work_s,
							 .cpus = (uint32_t)(width / n + (i < width % n)) };
		s->neighbour[first_seat + i] = no_neighbour;
	}
	return n;
}

static struct queue_view view_of(struct sched *s, size_t gap, size_t first_seat)
{
	return (struct queue_view){ .n = s->order.n,
				    .n_streams = s->order.first ? fill_streams(s, first_seat) : 0,
				    .gap = gap };
}

/* ---- the plan ---- */

/* Plays the first jobs of the scene; NULL: nothing is known. */
static const struct fluid_times *play(struct sched *s, size_t n_running, size_t n_queued)
{
	const struct fluid_scene f = { .machine = s->fluid,
				       .running = s->scene_running,
				       .n_running = n_running,
				       .queued = s->scene_queued,
				       .n_queued = n_queued,
				       .group = s->group,
				       .n_groups = s->n_tenants,
				       .other_load = s->foreseen.load,
				       .kinds = kinds_of(s) };
	const struct fluid_times *t;

	return !s->predicts || decide_play(s->scratch, &f, &t, NULL) ? NULL : t;
}

/* Plays the plan as it was at a moment, nothing having changed since. Of s->order nothing stays. */
static bool play_plan(struct sched *s, int64_t at_ns)
{
	struct queue_view v = { .gap = SIZE_MAX };
	const struct fluid_times *t;
	size_t n;

	order_plan(s, NO_JOB, 0);
	v.n = s->order.n;
	fill_running(s, at_ns, true, INT32_MIN);
	n = fill_queued(s, at_ns, &v, scene_seated(s), true, INT32_MIN);
	t = play(s, scene_seated(s), n);
	if (!t)
		return false;
	s->plan_ns = at_ns;
	s->plan_first_s = INFINITY;
	s->plan_holds = true;
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next, t++) {
		s->live[i].plan = *t;
		s->plan_first_s = fmin(s->plan_first_s, t->end_s);
		s->plan_holds &= decide_in_time(&s->neighbour[s->live[i].seat], t->end_s);
	}
	for (size_t k = 0; k < s->n_guests; k++, t++)
		s->plan_first_s = fmin(s->plan_first_s, t->end_s);
	for (size_t k = 0; k < v.n; k++, t++) {
		s->live[s->order.place[k]].plan = *t;
		if (!t->never)
			s->plan_first_s = fmin(s->plan_first_s, t->start_s);
		s->plan_holds &= decide_in_time(&s->neighbour[scene_seated(s) + k], t->end_s);
	}
	return true;
}

/* Between two events a play stays right, seen from later. The play that is kept is that of the moment of the
 * last change, not of the first question, so that answers do not depend on questions. */
bool plan_know(struct sched *s, int64_t now_ns, double *out_shift_s)
{
	double since_s = live_until_s(now_ns, s->changed_ns);

	*out_shift_s = 0.0;
	if (s->plan_ns == now_ns)
		return true;
	if (scene_seated(s) + s->plan.n >= KEEP_PLAN_FROM) {
		if (s->plan_ns != s->changed_ns && s->plan_ns == INT64_MIN && !play_plan(s, s->changed_ns))
			return false;
		if (s->plan_ns == s->changed_ns && since_s < s->plan_first_s) {
			*out_shift_s = since_s;
			return true;
		}
	}
	return play_plan(s, now_ns);
}

/* What becomes of those in the scene without the job decided about, by seat. One that starts now stands in
 * the plan until then; where the plan breaks promises as it is, they are also looked at without it: a promise
 * that would hold either way is not to be broken. */
static bool know_before(struct sched *s, double shift_s, const struct scene_place *at, size_t own_seat,
			size_t n_queued)
{
	const struct live *own = at->starting ? &s->live[at->place] : NULL;
	const struct fluid_times *absent = NULL;
	size_t n = 0, running = scene_seated(s) + at->starting;

	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next)
		s->before[n++] = s->live[i].plan;
	for (size_t k = 0; k < s->n_guests; k++) { /* nothing changes their ends */
		s->before[n] = (struct fluid_times){ 0 };
		s->before[n++].end_s = shift_s + s->scene_running[s->running.n + k].work_s;
	}
	for (size_t k = 0; k < n_queued; k++) {
		n += n == own_seat;
		s->before[n++] = s->live[s->order.place[k]].plan;
	}
	n = scene_seated(s) + n_queued + 1;
	s->before[own_seat] = (struct fluid_times){ 0 };
	if (own && own->planned && !s->plan_holds) {
		s->scene_running[own_seat] = (struct fluid_job){ .cpus = 1 };
		absent = play(s, running, n_queued);
		if (!absent)
			return false;
	}
	for (size_t i = 0; i < n; i++) {
		struct fluid_times *t = &s->before[i];

		if (t->never || i == own_seat)
			continue;
		t->start_s = fmax(t->start_s - shift_s, 0.0);
		t->end_s = fmax(t->end_s - shift_s, 0.0);
		if (absent && absent[i].end_s < t->end_s)
			t->end_s = absent[i].end_s;
	}
	return true;
}

/* ---- scenes ---- */

static void fill_future(struct sched *s, int64_t now_ns, const struct sched_request *r,
			const struct scene_place *at, struct decide_scene *out)
{
	size_t first_seat = scene_seated(s) + at->starting;
	size_t position = at->starting ? 0 : at->seat.position - s->order.first;
	struct queue_view v = view_of(s, at->starting ? SIZE_MAX : position, first_seat);
	const struct live *after = at->starting || at->seat.after == NO_JOB ? NULL : &s->live[at->seat.after];

	if (at->starting) {
		s->neighbour[scene_seated(s)] = no_neighbour;
		take_seat(s, &s->live[at->place], scene_seated(s));
	}
	out->n_queued = fill_queued(s, now_ns, &v, first_seat, at->promises, r->priority);
	out->position = v.n_streams + position;
	if (after && after->seat_stamp == s->stamp)
		out->after = after->seat + 1;
}

void scene_make(struct sched *s, int64_t now_ns, const struct sched_request *r, const struct scene_place *at,
		struct decide_scene *out)
{
	double limit_mb = s->machine.memory_mb, shift_s = 0.0;
	uint32_t devices = tenant_most_devices(s, r);
	bool known = false;

	if (at->starting && isfinite(limit_mb))
		limit_mb -= live_memory_used_mb(s);
	if (at->starting) {
		uint32_t quota = tenant_free_devices(tenant_of(s, r)), left = live_devices_free(s);

		devices = quota < left ? quota : left;
	}
	if (!isnan(r->max_memory_mb))
		limit_mb = fmin(limit_mb, r->max_memory_mb);
	*out = (struct decide_scene){
		.policy = &s->policy,
		.machine = s->fluid,
		.other_load = s->foreseen.load,
		.other_spread = s->foreseen.spread,
		.kinds = kinds_of(s),
		.group = s->group,
		.n_groups = s->n_tenants,
		.running = s->scene_running,
		.n_running = scene_seated(s),
		.queued = s->scene_queued,
		.neighbour = s->neighbour,
		.own_group = group_of(s, r),
		.cpus = r->cpus,
		.most_cpus = tenant_most_cpus(s, r),
		.starting = at->starting,
		.price = price_now(s, now_ns, r),
		.value = price_value(r),
		.guess_s = r->guess_s > 0.0 ? r->guess_s : NAN,
		.indifferent = !at->promises,
		.by_chance = at->by_chance,
		.steers = r->steer && !r->apart && s->looks_ahead && !(s->policy.without & LAYER_STEER),
		.memory_mb = r->memory_mb,
		.memory_mb_per_record = r->memory_mb_per_record,
		.memory_limit_mb = limit_mb,
		.device = r->device,
		.most_devices = devices,
		.device_memory_mb = s->machine.device_memory_mb,
		.rng = rng_stream(s->seed, r->id),
		.scratch = s->scratch,
	};
	learn_in_scene(s, r, out);
	if (r->apart) {
		apart_scene(s, r, out);
		return;
	}
	if (out->kinds) {
		out->own_kind = pairs_find(s->pairs, learn_kind(s, r));
		out->own_feels = pairs_felt(s->pairs, out->own_kind, r->user);
	}
	if (s->looks_ahead && at->promises) {
		if (s->plan.n <= SCENE_WINDOW)
			known = plan_know(s, now_ns, &shift_s); /* overwrites s->order */
		order_plan(s, at->starting ? at->place : NO_JOB, at->starting ? 0 : at->seat.position);
	}
	fill_running(s, now_ns, at->promises, r->priority);
	if (!s->looks_ahead)
		return;
	fill_future(s, now_ns, r, at, out);
	if (known &&
	    know_before(s, shift_s, at, scene_seated(s) + (at->starting ? 0 : out->position), out->n_queued))
		out->before = s->before;
}

void scene_alone(const struct sched *s, const struct sched_request *r, struct policy_choice *alone,
		 struct decide_scene *out)
{
	static const struct policy by_bound = { .name = "none", .bounds = true };

	*alone = (struct policy_choice){ .policy = &by_bound, .batch = NAN };
	*out = (struct decide_scene){ .policy = alone,
				      .machine = s->fluid,
				      .cpus = r->cpus,
				      .most_cpus = UINT32_MAX,
				      .memory_mb = NAN,
				      .memory_mb_per_record = NAN,
				      .memory_limit_mb = INFINITY,
				      .device = r->device,
				      .most_devices = UINT32_MAX };
	learn_in_scene(s, r, out);
}

const struct fluid_times *scene_play(struct sched *s, int64_t now_ns, size_t *out_streams)
{
	struct queue_view v = view_of(s, SIZE_MAX, scene_seated(s));

	*out_streams = v.n_streams;
	fill_running(s, now_ns, false, 0);
	return play(s, scene_seated(s), fill_queued(s, now_ns, &v, scene_seated(s), false, 0));
}

const struct fluid_times *scene_play_with(struct sched *s, size_t streams, size_t seat, double work_s)
{
	s->scene_running[seat].work_s = work_s;
	return play(s, scene_seated(s), streams + s->order.n);
}
