/* The order of starts: the plan; then the jobs without a promise, beginning with the tenant of the lowest
 * standing; then the same for priorities below 0.
 *
 * A job sees SCENE_WINDOW others around its own position, and the sum of those before them. They are found
 * without a walk through the queue: each tenant's jobs stand on the scale of standings, at the standing of
 * the tenant plus what its jobs before them add. So the jobs before a point of the scale are counted tenant
 * by tenant, and the part is merged from there on in both directions. Where two tenants are at the same point
 * of the scale, the one with the lower number goes first. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

/* ---- which part of it ---- */

struct part {
	size_t first, last;
};

/* What a job at this position sees of n others. */
static struct part part_around(size_t n, size_t position)
{
	size_t behind = n - position, ahead;

	if (n <= SCENE_WINDOW)
		return (struct part){ 0, n };
	behind = behind < SCENE_WINDOW / 2 ? behind : SCENE_WINDOW / 2;
	ahead = position < SCENE_WINDOW - behind ? position : SCENE_WINDOW - behind;
	behind = SCENE_WINDOW - ahead < n - position ? SCENE_WINDOW - ahead : n - position;
	return (struct part){ position - ahead, position + behind };
}

/* Of the jobs [from, to) of an order. */
static struct order_sum sum_between(const struct sched *s, uint32_t root, size_t from, size_t to)
{
	struct order_sum sum = job_order_sum(&s->queues, root, to), skipped;

	if (!from)
		return sum;
	skipped = job_order_sum(&s->queues, root, from);
	sum.slot_ns -= skipped.slot_ns;
	sum.slot_cpus -= skipped.slot_cpus;
	sum.cpus -= skipped.cpus;
	sum.n -= skipped.n;
	sum.n_by_chance -= skipped.n_by_chance;
	sum.n_unknown -= skipped.n_unknown;
	return sum;
}

static void begin(struct sched *s, size_t first)
{
	s->order.n = 0;
	s->order.first = first;
	s->order.before = (struct order_sum){ 0 };
}

/* Jobs [first, last) of the plan, but for place `except`. */
static void write_planned(struct sched *s, size_t first, size_t last, uint32_t except)
{
	uint32_t i = first < last ? job_order_at(&s->queues, s->plan.root, first) : NO_JOB;

	for (; first < last && i != NO_JOB; i = s->live[i].next) {
		if (i == except)
			continue;
		s->order.place[s->order.n++] = i;
		first++;
	}
}

void order_plan(struct sched *s, uint32_t except, size_t position)
{
	size_t n = s->plan.n - (except != NO_JOB && s->live[except].planned);
	struct part p = part_around(n, position);

	begin(s, p.first);
	write_planned(s, p.first, p.last, except);
	if (p.first)
		s->order.before = job_order_sum(&s->queues, s->plan.root, p.first);
}

/* ---- all that wait ---- */

/* A long order in four stretches: planned and waiting, and the same below priority 0. */
struct stretches {
	size_t planned; /* of the plan; the rest of it is below */
	size_t waiting, below_waiting; /* how many */
};

static struct stretches stretches_of(const struct sched *s)
{
	struct stretches x = { .planned = job_order_below(&s->queues, s->plan.root) };

	for (size_t i = tenants_next_waiting(s, 0); i < s->n_tenants; i = tenants_next_waiting(s, i + 1)) {
		uint32_t root = s->tenant[i].waiting.root;
		size_t n = job_order_size(&s->queues, root), plain = job_order_below(&s->queues, root);

		x.waiting += plain;
		x.below_waiting += n - plain;
	}
	return x;
}

/* The jobs of a tenant in one of the stretches: [from, to) of its list. */
static struct part part_of(const struct sched *s, const struct tenant *t, bool below)
{
	size_t n = t->waiting.n, plain = job_order_below(&s->queues, t->waiting.root);

	return below ? (struct part){ plain, n } : (struct part){ 0, plain };
}

static struct order_scale scale_of(const struct sched *s, const struct tenant *t)
{
	return (struct order_scale){ tenant_standing(s, t), s->window_s / t->is.weight };
}

/* Sets the cursor of a tenant behind its first n jobs of the stretch. */
static void set_cursor(struct sched *s, struct tenant *t, struct part p, size_t n)
{
	t->cursor_at = p.first + n;
	t->cursor_cpus = n ? sum_between(s, t->waiting.root, p.first, p.first + n).cpus : 0;
}

/* Sets all cursors where the jobs before this point of the scale end; returns how many jobs are before it.
 * `own` is at the point itself, with so many of its jobs before it. */
static size_t set_cursors(struct sched *s, bool below, const struct tenant *own, size_t own_before, double at)
{
	size_t before = 0;

	for (size_t i = tenants_next_waiting(s, 0); i < s->n_tenants; i = tenants_next_waiting(s, i + 1)) {
		struct tenant *t = &s->tenant[i];
		const struct order_scale scale = scale_of(s, t);
		struct part p = part_of(s, t, below);
		size_t n = own_before;

		if (t != own)
			n = job_order_until(&s->queues, t->waiting.root, p.first, p.last, &scale, at,
					    own && t < own);
		set_cursor(s, t, p, n);
		before += n;
	}
	return before;
}

/* Moves all cursors back by so many jobs of the merged order. */
static void go_back(struct sched *s, bool below, size_t steps)
{
	struct heap_entry top;

	heap_reset(&s->standings);
	for (size_t i = s->n_tenants; steps && i-- > 0;) {
		struct tenant *t = &s->tenant[i];
		struct order_scale scale = scale_of(s, t);
		uint32_t last;

		if (!t->waiting.n || t->cursor_at == part_of(s, t, below).first)
			continue;
		last = job_order_at(&s->queues, t->waiting.root, t->cursor_at - 1);
		t->cursor = last;
		heap_push(&s->standings,
			  -(scale.start + scale.step * (double)(t->cursor_cpus - s->live[last].r.cpus)),
			  (uint32_t)i);
	}
	for (; steps && heap_top(&s->standings); steps--) {
		struct tenant *t = &s->tenant[heap_top(&s->standings)->payload];
		struct order_scale scale = scale_of(s, t);

		t->cursor_cpus -= s->live[t->cursor].r.cpus;
		t->cursor = s->live[t->cursor].prev;
		if (--t->cursor_at == part_of(s, t, below).first)
			heap_pop(&s->standings, &top);
		else
			heap_replace(&s->standings,
				     -(scale.start +
				       scale.step * (double)(t->cursor_cpus - s->live[t->cursor].r.cpus)),
				     (uint32_t)(t - s->tenant));
	}
}

/* Writes down so many jobs of the merged order from the cursors on. */
static void write_waiting(struct sched *s, bool below, size_t steps)
{
	heap_reset(&s->standings);
	for (size_t i = tenants_next_waiting(s, 0); steps && i < s->n_tenants;
	     i = tenants_next_waiting(s, i + 1)) {
		struct tenant *t = &s->tenant[i];
		struct order_scale scale = scale_of(s, t);

		if (t->cursor_at >= part_of(s, t, below).last)
			continue;
		t->cursor = job_order_at(&s->queues, t->waiting.root, t->cursor_at);
		heap_push(&s->standings, scale.start + scale.step * (double)t->cursor_cpus, (uint32_t)i);
	}
	for (; steps && heap_top(&s->standings); steps--) {
		const struct heap_entry *top = heap_top(&s->standings);
		struct tenant *t = &s->tenant[top->payload];
		uint32_t i = t->cursor;
		struct heap_entry gone;

		s->order.place[s->order.n++] = i;
		t->cursor = s->live[i].next;
		if (t->cursor == NO_JOB || (s->live[t->cursor].r.priority < 0) != below)
			heap_pop(&s->standings, &gone);
		else
			heap_replace(&s->standings, top->key + s->window_s * s->live[i].r.cpus / t->is.weight,
				     (uint32_t)(t - s->tenant));
	}
}

/* Of the waiting jobs up to the cursors. */
static struct order_sum sum_to_cursors(const struct sched *s, bool below)
{
	struct order_sum sum = { 0 };

	for (size_t i = tenants_next_waiting(s, 0); i < s->n_tenants; i = tenants_next_waiting(s, i + 1)) {
		const struct tenant *t = &s->tenant[i];
		const struct order_sum own =
			sum_between(s, t->waiting.root, part_of(s, t, below).first, t->cursor_at);

		order_sum_add(&sum, &own);
	}
	return sum;
}

/* Where a job is. */
struct spot {
	size_t position;
	bool waiting, below; /* in which of the stretches; with `waiting` the cursors are set there */
	size_t in_stretch; /* its position there */
};

/* Of the job that lives at `place`; or, with NO_JOB, of a new one. */
static struct spot spot_of(struct sched *s, const struct stretches *x, const struct sched_request *r,
			   uint32_t place)
{
	struct spot at = { .below = r->priority < 0 };
	const struct tenant *t = tenant_of(s, r);
	const struct order_scale scale = scale_of(s, t);
	struct part p;
	size_t own;
	uint64_t cpus;

	if (place != NO_JOB && s->live[place].planned) {
		own = job_order_position(&s->queues, place);
		at.below = own >= x->planned;
		at.in_stretch = at.below ? own - x->planned : own;
		at.position = at.below ? own + x->waiting : own;
		return at;
	}
	p = part_of(s, t, at.below);
	own = place != NO_JOB ? job_order_position(&s->queues, place)
			      : job_order_later(&s->queues, t->waiting.root, p.first, r->priority, INT64_MAX);
	cpus = sum_between(s, t->waiting.root, p.first, own).cpus;
	at.waiting = true;
	at.in_stretch = set_cursors(s, at.below, t, own - p.first, scale.start + scale.step * (double)cpus);
	at.position = at.in_stretch + (at.below ? s->plan.n + x->waiting : x->planned);
	return at;
}

/* The part of the plan's stretch that begins at `start` in the order and holds [from, to) of the plan. */
static void take_planned(struct sched *s, size_t start, struct part stretch, const struct part *p)
{
	size_t n = stretch.last - stretch.first, from = p->first > start ? p->first - start : 0, to;
	struct order_sum before;

	from = from < n ? from : n;
	to = p->last > start ? p->last - start : 0;
	to = to < n ? to : n;
	if (from) {
		before = sum_between(s, s->plan.root, stretch.first, stretch.first + from);
		order_sum_add(&s->order.before, &before);
	}
	if (from < to)
		write_planned(s, stretch.first + from, stretch.first + to, NO_JOB);
}

/* The same of waiting jobs. */
static void take_waiting(struct sched *s, bool below, size_t start, size_t n, const struct part *p,
			 const struct spot *at)
{
	size_t from = p->first > start ? p->first - start : 0, anchor = 0, to;
	struct order_sum before;

	if (!n || p->last <= start)
		return;
	from = from < n ? from : n;
	to = p->last - start < n ? p->last - start : n;
	if (at->waiting && at->below == below && from < n) {
		anchor = at->in_stretch; /* the cursors are there */
	} else {
		anchor = from ? n : 0;
		set_cursors(s, below, NULL, 0, from ? INFINITY : -INFINITY);
	}
	if (anchor > from)
		go_back(s, below, anchor - from);
	if (from) {
		before = sum_to_cursors(s, below);
		order_sum_add(&s->order.before, &before);
	}
	write_waiting(s, below, to - from);
}

size_t order_around(struct sched *s, const struct sched_request *r)
{
	const struct stretches x = stretches_of(s);
	const struct spot at = r ? spot_of(s, &x, r, NO_JOB) : (struct spot){ 0 };
	const struct part p = part_around(s->n_queued, at.position);

	begin(s, p.first);
	take_planned(s, 0, (struct part){ 0, x.planned }, &p);
	take_waiting(s, false, x.planned, x.waiting, &p, &at);
	take_planned(s, x.planned + x.waiting, (struct part){ x.planned, s->plan.n }, &p);
	if (at.waiting && at.below)
		spot_of(s, &x, r, NO_JOB); /* the other stretch has moved the cursors */
	take_waiting(s, true, s->plan.n + x.waiting, x.below_waiting, &p, &at);
	return at.position;
}

size_t order_position(struct sched *s, uint32_t place, struct order_sum *out_before)
{
	const struct stretches x = stretches_of(s);
	const struct spot at = spot_of(s, &x, &s->live[place].r, place);
	struct order_sum sum;
	size_t planned = at.waiting ? (at.below ? s->plan.n : x.planned)
				    : (at.below ? x.planned : 0) + at.in_stretch;

	*out_before = job_order_sum(&s->queues, s->plan.root, planned);
	if (at.waiting) {
		sum = sum_to_cursors(s, at.below);
		order_sum_add(out_before, &sum);
	}
	if (at.below) {
		set_cursors(s, false, NULL, 0, INFINITY);
		sum = sum_to_cursors(s, false);
		order_sum_add(out_before, &sum);
	}
	return at.position;
}
