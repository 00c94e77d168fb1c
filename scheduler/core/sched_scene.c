/* What a decision or an estimate sees of the live jobs: the order in which those that wait start, the scene
 * made of it, and the play of the plan, which is kept until something changes.
 *
 * A queue longer than SCENE_WINDOW is not looked at job by job. The jobs far before the one decided about are
 * merged into at most SCENE_STREAMS equal streams: together as wide as they are, or as the machine, with the
 * slots x time they will take of a full machine. While a queue is there the machine is full, so the streams
 * end when those jobs would, but for the slots that lie idle where the next job does not fit; IDLE_SLOTS
 * allows for those. On random mixes of widths the waits came out between 2 % short and 4 % long; where all
 * are equally wide, 12 % long on two slots; where more run at a time than the window holds (984 running,
 * 1,000 queued), 12 % long. What the streams hide is which of those jobs a candidate could delay; those far
 * behind it are left out, and what it does to them is not seen. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

#define IDLE_SLOTS 0.25 /* at a time, on average, as random mixes of widths show */
#define KEEP_PLAN_FROM 64 /* jobs: a smaller play is made anew each time, exact to the bit */

/* ---- the order of starts ---- */

void order_plan(struct sched *s, uint32_t except)
{
	s->order_is_plan = except == NO_JOB;
	s->n_order = 0;
	for (size_t i = 0; i < s->plan.n; i++) {
		s->order[s->n_order] = s->rows.place[i];
		s->n_order += s->rows.place[i] != except;
	}
}

/* Those of the plan whose priority is below 0, or the others. */
static void order_planned(struct sched *s, bool below)
{
	for (size_t i = 0; i < s->plan.n; i++)
		if ((s->rows.priority[i] < 0) == below)
			s->order[s->n_order++] = s->rows.place[i];
}

/* Where a job is that joins its tenant now; SIZE_MAX: it is not among these. */
struct newcomer {
	const struct sched_request *r;
	size_t position;
};

/* The tenant with the lowest standing is next, and rises by what it will run. Jobs with priority 0, or
 * below. */
static void order_waiting(struct sched *s, bool below, struct newcomer *n)
{
	const struct tenant *own = n->r ? tenant_of(s, n->r) : NULL;
	bool due = n->r && (n->r->priority < 0) == below;

	heap_reset(&s->standings);
	for (size_t i = 0; i < s->n_tenants; i++) {
		struct tenant *t = &s->tenant[i];

		t->cursor = t->waiting.first;
		while (below && t->cursor != NO_JOB && s->live[t->cursor].r.priority >= 0)
			t->cursor = s->live[t->cursor].next;
		if (t->cursor != NO_JOB || (due && t == own))
			heap_push(&s->standings, tenant_standing(s, t), (uint32_t)i);
	}
	while (heap_top(&s->standings)) {
		const struct heap_entry *top = heap_top(&s->standings);
		struct tenant *t = &s->tenant[top->payload];
		uint32_t i = t->cursor;
		bool over = i == NO_JOB || (s->live[i].r.priority < 0) != below;
		struct heap_entry gone;

		if (due && t == own && (over || s->live[i].r.priority < n->r->priority)) {
			n->position = s->n_order;
			due = false;
		}
		if (over) {
			heap_pop(&s->standings, &gone);
			continue;
		}
		s->order[s->n_order++] = i;
		t->cursor = s->live[i].next;
		heap_replace(&s->standings, top->key + s->window_s * s->live[i].r.cpus / t->is.weight,
			     (uint32_t)(t - s->tenant));
	}
}

size_t order_all(struct sched *s, const struct sched_request *r)
{
	struct newcomer n = { .r = r, .position = SIZE_MAX };

	s->order_is_plan = false;
	s->n_order = 0;
	order_planned(s, false);
	order_waiting(s, false, &n);
	order_planned(s, true);
	order_waiting(s, true, &n);
	return n.position < s->n_order ? n.position : s->n_order;
}

/* ---- seats ---- */

static struct decide_neighbour neighbour_of(const struct live *j, int64_t now_ns, bool promises, int priority)
{
	return (struct decide_neighbour){
		.id = j->r.id,
		.ratio = j->ratio,
		.deadline_s = promises && j->promised ? live_until_s(j->deadline_ns, now_ns) : INFINITY,
		.guarded = promises && j->due && j->r.priority >= priority,
	};
}

static const struct decide_neighbour no_neighbour = { .ratio = NAN, .deadline_s = INFINITY };

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

static void fill_running(struct sched *s, int64_t now_ns, bool promises, int priority)
{
	size_t n = 0;

	s->stamp++;
	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next, n++) {
		struct live *j = &s->live[i];

		s->scene_running[n] = decide_fluid_job(&j->taken, j->r.cpus);
		s->scene_running[n].work_s = fmin(live_left_s(s, j, now_ns), FLUID_MAX_WORK_S);
		s->scene_running[n].group = group_of(s, &j->r);
		s->neighbour[n] = neighbour_of(j, now_ns, promises, priority);
		take_seat(s, j, n);
	}
}

struct queue_view {
	size_t first, last; /* of s->order, those seen one by one */
	size_t n_streams;
	size_t gap; /* index in the order before which a seat is left free; SIZE_MAX: none */
};

/* The streams have their seats in front, the others follow; returns the number of seats, without the free
 * one. */
static size_t fill_queued(struct sched *s, int64_t now_ns, const struct queue_view *v, size_t first_seat,
			  bool promises, int priority)
{
	size_t at = v->n_streams;

	for (size_t k = v->first; k <= v->last; k++) {
		struct live *j;

		if (k == v->gap)
			s->neighbour[first_seat + at++] = no_neighbour;
		if (k == v->last)
			break;
		j = &s->live[s->order[k]];
		s->scene_queued[at] = decide_fluid_job(&j->taken, j->r.cpus);
		s->scene_queued[at].group = group_of(s, &j->r);
		s->scene_queued[at].after = after_of(s, j, first_seat + at);
		s->neighbour[first_seat + at] = neighbour_of(j, now_ns, promises, priority);
		take_seat(s, j, first_seat + at);
		at++;
	}
	return at - (v->gap != SIZE_MAX);
}

/* The first of the order as streams; returns how many. */
static size_t fill_streams(struct sched *s, size_t n_merged, size_t first_seat)
{
	unsigned __int128 slot_ns = 0;
	uint64_t cpus = 0, width;
	size_t n;
	double work_s;

	for (size_t k = 0; s->order_is_plan && k < n_merged; k++) {
		slot_ns += s->rows.slot_ns[k];
		cpus += s->rows.slot_cpus[k];
	}
	for (size_t k = 0; !s->order_is_plan && k < n_merged; k++) {
		slot_ns += s->live[s->order[k]].slot_ns;
		cpus += s->live[s->order[k]].slot_cpus;
	}
	width = cpus < s->machine.slots ? cpus : s->machine.slots;
	n = width < SCENE_STREAMS ? (size_t)width : SCENE_STREAMS;
	if (!n)
		return 0;
	work_s = 1e-9 * (double)slot_ns / (double)width;
	if (s->machine.slots > 1)
		work_s *= 1.0 + IDLE_SLOTS / s->machine.slots;
	work_s = fmin(work_s, FLUID_MAX_WORK_S);
	for (size_t i = 0; i < n; i++) {
		/* No slot is left over, or those behind would pass the streams in it. The work is as
		 * stretched as it will be: none of it is the cpus' or the disk's. */
		s->scene_queued[i] = (struct fluid_job){ .work_s = work_s,
							 .cpus = (uint32_t)(width / n + (i < width % n)) };
		s->neighbour[first_seat + i] = no_neighbour;
	}
	return n;
}

/* The part of the order that a job at this position sees. */
static struct queue_view view_from(struct sched *s, size_t position, bool gap, size_t first_seat)
{
	struct queue_view v = { .last = s->n_order, .gap = gap ? position : SIZE_MAX };
	size_t behind = s->n_order - position, ahead;

	if (s->n_order <= SCENE_WINDOW)
		return v;
	behind = behind < SCENE_WINDOW / 2 ? behind : SCENE_WINDOW / 2;
	ahead = position < SCENE_WINDOW - behind ? position : SCENE_WINDOW - behind;
	behind = SCENE_WINDOW - ahead < s->n_order - position ? SCENE_WINDOW - ahead : s->n_order - position;
	v.first = position - ahead;
	v.last = position + behind;
	v.n_streams = fill_streams(s, v.first, first_seat);
	return v;
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
				       .other_load = s->other_load };
	const struct fluid_times *t;

	return !s->model || decide_play(s->scratch, &f, &t, NULL) ? NULL : t;
}

/* Plays the plan as it was at a moment, nothing having changed since. Of s->order nothing stays. */
static bool play_plan(struct sched *s, int64_t at_ns)
{
	struct queue_view v = { .gap = SIZE_MAX };
	const struct fluid_times *t;
	size_t n;

	order_plan(s, NO_JOB);
	v.last = s->n_order < SCENE_WINDOW ? s->n_order : SCENE_WINDOW;
	fill_running(s, at_ns, true, INT32_MIN);
	n = s->running.n + fill_queued(s, at_ns, &v, s->running.n, true, INT32_MIN);
	t = play(s, s->running.n, n - s->running.n);
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
	for (size_t k = 0; k < v.last; k++, t++) {
		s->live[s->order[k]].plan = *t;
		if (!t->never)
			s->plan_first_s = fmin(s->plan_first_s, t->start_s);
		s->plan_holds &= decide_in_time(&s->neighbour[s->running.n + k], t->end_s);
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
	if (s->running.n + s->plan.n >= KEEP_PLAN_FROM) {
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
	size_t n = 0, running = s->running.n + at->starting;

	for (uint32_t i = s->running.first; i != NO_JOB; i = s->live[i].next)
		s->before[n++] = s->live[i].plan;
	for (size_t k = 0; k < n_queued; k++) {
		n += n == own_seat;
		s->before[n++] = s->live[s->order[k]].plan;
	}
	n = s->running.n + n_queued + 1;
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
	size_t first_seat = s->running.n + at->starting;
	size_t position = at->starting ? 0 : at->seat.position;
	struct queue_view v = view_from(s, position, !at->starting, first_seat);
	const struct live *after = at->starting || at->seat.after == NO_JOB ? NULL : &s->live[at->seat.after];

	if (at->starting) {
		s->neighbour[s->running.n] = no_neighbour;
		take_seat(s, &s->live[at->place], s->running.n);
	}
	out->n_queued = fill_queued(s, now_ns, &v, first_seat, at->promises, r->priority);
	out->position = v.n_streams + position - v.first;
	if (after && after->seat_stamp == s->stamp)
		out->after = after->seat + 1;
}

void scene_make(struct sched *s, int64_t now_ns, const struct sched_request *r, const struct scene_place *at,
		struct decide_scene *out)
{
	double limit_mb = s->machine.memory_mb, shift_s = 0.0;
	bool known = false;

	if (at->starting && isfinite(limit_mb))
		limit_mb -= live_memory_used_mb(s);
	if (!isnan(r->max_memory_mb))
		limit_mb = fmin(limit_mb, r->max_memory_mb);
	*out = (struct decide_scene){
		.policy = &s->policy,
		.machine = s->fluid,
		.other_load = s->other_load,
		.group = s->group,
		.n_groups = s->n_tenants,
		.running = s->scene_running,
		.n_running = s->running.n,
		.queued = s->scene_queued,
		.neighbour = s->neighbour,
		.own_group = group_of(s, r),
		.cpus = r->cpus,
		.most_cpus = tenant_most_cpus(s, r),
		.starting = at->starting,
		.price = price_now(s, now_ns, r),
		.value = price_value(r),
		.indifferent = !at->promises,
		.by_chance = at->by_chance,
		.memory_mb = r->memory_mb,
		.memory_mb_per_record = r->memory_mb_per_record,
		.memory_limit_mb = limit_mb,
		.rng = rng_stream(s->seed, r->id),
		.scratch = s->scratch,
	};
	learn_in_scene(s, r, out);
	if (s->looks_ahead && at->promises) {
		if (s->plan.n <= SCENE_WINDOW)
			known = plan_know(s, now_ns, &shift_s); /* overwrites s->order */
		order_plan(s, at->starting ? at->place : NO_JOB);
	}
	fill_running(s, now_ns, at->promises, r->priority);
	if (!s->looks_ahead)
		return;
	fill_future(s, now_ns, r, at, out);
	if (known &&
	    know_before(s, shift_s, at, s->running.n + (at->starting ? 0 : out->position), out->n_queued))
		out->before = s->before;
}

const struct fluid_times *scene_play(struct sched *s, int64_t now_ns, size_t around, size_t *out_seat)
{
	struct queue_view v = { .last = s->n_order, .gap = SIZE_MAX };

	if (around != SIZE_MAX)
		v = view_from(s, around, false, s->running.n);
	fill_running(s, now_ns, false, 0);
	if (out_seat)
		*out_seat = s->running.n + v.n_streams + around - v.first;
	return play(s, s->running.n, fill_queued(s, now_ns, &v, s->running.n, false, 0));
}
