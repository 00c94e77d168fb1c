/* The treap of job_order.h. */
#include "scheduler/core/job_order.h"

#include <assert.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"

#define NONE JOB_ORDER_NONE

struct order_node {
	uint32_t left, right, up;
	uint32_t draw; /* above all below it */
	struct order_item item;
	/* of the subtree */
	struct order_sum sum;
	int64_t soonest_wake_ns;
	int64_t latest_turn_ns; /* of those with the lowest priority */
	int32_t lowest; /* priority */
	uint32_t narrowest; /* cpus */
	uint32_t narrowest_plain; /* of those that want no devices; UINT32_MAX: none */
};

int job_order_init(struct job_order *o, size_t max_jobs)
{
	*o = (struct job_order){ .node = mem_array(max_jobs, sizeof *o->node) };
	return o->node ? 0 : -1;
}

void job_order_release(struct job_order *o)
{
	free(o->node);
	*o = (struct job_order){ 0 };
}

/* ---- subtrees ---- */

void order_sum_add(struct order_sum *to, const struct order_sum *s)
{
	to->slot_ns += s->slot_ns;
	to->slot_cpus += s->slot_cpus;
	to->cpus += s->cpus;
	to->n += s->n;
	to->n_by_chance += s->n_by_chance;
	to->n_unknown += s->n_unknown;
}

static void take_in(struct order_node *n, const struct order_node *c)
{
	order_sum_add(&n->sum, &c->sum);
	if (c->soonest_wake_ns < n->soonest_wake_ns)
		n->soonest_wake_ns = c->soonest_wake_ns;
	if (c->lowest < n->lowest || (c->lowest == n->lowest && c->latest_turn_ns > n->latest_turn_ns))
		n->latest_turn_ns = c->latest_turn_ns;
	if (c->lowest < n->lowest)
		n->lowest = c->lowest;
	if (c->narrowest < n->narrowest)
		n->narrowest = c->narrowest;
	if (c->narrowest_plain < n->narrowest_plain)
		n->narrowest_plain = c->narrowest_plain;
}

static struct order_sum sum_of_one(const struct order_item *i)
{
	return (struct order_sum){ .slot_ns = i->slot_ns,
				   .slot_cpus = i->slot_cpus,
				   .cpus = i->cpus,
				   .n = 1,
				   .n_by_chance = i->by_chance,
				   .n_unknown = i->unknown };
}

static void add_up(struct job_order *o, uint32_t at)
{
	struct order_node *n = &o->node[at];
	const struct order_item *i = &n->item;

	n->sum = sum_of_one(i);
	n->soonest_wake_ns = i->wake_ns;
	n->latest_turn_ns = i->turn_ns;
	n->lowest = i->priority;
	n->narrowest = i->cpus;
	n->narrowest_plain = i->devices ? UINT32_MAX : i->cpus;
	if (n->left != NONE)
		take_in(n, &o->node[n->left]);
	if (n->right != NONE)
		take_in(n, &o->node[n->right]);
}

static void add_up_from(struct job_order *o, uint32_t at)
{
	for (; at != NONE; at = o->node[at].up)
		add_up(o, at);
}

static size_t size_of(const struct job_order *o, uint32_t at)
{
	return at == NONE ? 0 : o->node[at].sum.n;
}

/* The link that points to a node. */
static uint32_t *link_to(struct job_order *o, uint32_t *root, uint32_t at)
{
	uint32_t up = o->node[at].up;

	if (up == NONE)
		return root;
	return o->node[up].left == at ? &o->node[up].left : &o->node[up].right;
}

/* The child changes places with its parent. */
static void rotate_up(struct job_order *o, uint32_t *root, uint32_t child)
{
	struct order_node *c = &o->node[child];
	uint32_t parent = c->up, inner;
	struct order_node *p = &o->node[parent];

	*link_to(o, root, parent) = child;
	c->up = p->up;
	p->up = child;
	if (p->left == child) {
		inner = c->right;
		c->right = parent;
		p->left = inner;
	} else {
		inner = c->left;
		c->left = parent;
		p->right = inner;
	}
	if (inner != NONE)
		o->node[inner].up = parent;
	add_up(o, parent);
	add_up(o, child);
}

/* ---- changes ---- */

void job_order_insert(struct job_order *o, uint32_t *root, size_t position, uint32_t place,
		      const struct order_item *item)
{
	struct order_node *n = &o->node[place];
	uint32_t *at = root, up = NONE;

	assert(position <= size_of(o, *root));
	while (*at != NONE) {
		struct order_node *p = &o->node[*at];
		size_t before = size_of(o, p->left);

		up = *at;
		if (position <= before) {
			at = &p->left;
		} else {
			position -= before + 1;
			at = &p->right;
		}
	}
	*n = (struct order_node){
		.left = NONE, .right = NONE, .up = up, .draw = (uint32_t)rng_mix(++o->draws), .item = *item
	};
	*at = place;
	add_up_from(o, place);
	while (n->up != NONE && o->node[n->up].draw < n->draw)
		rotate_up(o, root, place);
}

void job_order_remove(struct job_order *o, uint32_t *root, uint32_t place)
{
	struct order_node *n = &o->node[place];
	uint32_t child;

	while (n->left != NONE && n->right != NONE)
		rotate_up(o, root, o->node[n->left].draw > o->node[n->right].draw ? n->left : n->right);
	child = n->left != NONE ? n->left : n->right;
	*link_to(o, root, place) = child;
	if (child != NONE)
		o->node[child].up = n->up;
	add_up_from(o, n->up);
}

void job_order_change(struct job_order *o, uint32_t place, const struct order_item *item)
{
	o->node[place].item = *item;
	add_up_from(o, place);
}

/* ---- questions ---- */

size_t job_order_size(const struct job_order *o, uint32_t root)
{
	return size_of(o, root);
}

size_t job_order_position(const struct job_order *o, uint32_t place)
{
	size_t position = size_of(o, o->node[place].left);

	for (uint32_t at = place, up = o->node[at].up; up != NONE; at = up, up = o->node[at].up)
		if (o->node[up].right == at)
			position += size_of(o, o->node[up].left) + 1;
	return position;
}

uint32_t job_order_at(const struct job_order *o, uint32_t root, size_t position)
{
	while (root != NONE) {
		const struct order_node *n = &o->node[root];
		size_t before = size_of(o, n->left);

		if (position == before)
			return root;
		if (position < before) {
			root = n->left;
		} else {
			position -= before + 1;
			root = n->right;
		}
	}
	return NONE;
}

struct order_sum job_order_sum(const struct job_order *o, uint32_t root, size_t n)
{
	struct order_sum sum = { 0 };

	while (root != NONE && n) {
		const struct order_node *r = &o->node[root];
		size_t before = size_of(o, r->left);
		struct order_sum own;

		if (n >= r->sum.n) {
			order_sum_add(&sum, &r->sum);
			break;
		}
		if (n <= before) {
			root = r->left;
			continue;
		}
		if (r->left != NONE)
			order_sum_add(&sum, &o->node[r->left].sum);
		own = sum_of_one(&r->item);
		order_sum_add(&sum, &own);
		n -= before + 1;
		root = r->right;
	}
	return sum;
}

/* What is looked for. */
struct wanted {
	enum { LATER, NARROW, NARROW_PLAIN, BELOW, NOT_BY_CHANCE, WOKEN } what;
	int priority;
	int64_t ns;
	uint64_t cpus;
};

static bool is_wanted(const struct order_item *i, const struct wanted *w)
{
	switch (w->what) {
	case LATER: return i->priority < w->priority || (i->priority == w->priority && i->turn_ns > w->ns);
	case NARROW: return i->cpus <= w->cpus;
	case NARROW_PLAIN: return i->cpus <= w->cpus && !i->devices;
	case BELOW: return i->priority < 0;
	case NOT_BY_CHANCE: return !i->by_chance;
	case WOKEN: return i->wake_ns <= w->ns;
	}
	return false;
}

/* Is one in this subtree? */
static bool holds_one(const struct order_node *n, const struct wanted *w)
{
	switch (w->what) {
	case LATER: return n->lowest < w->priority || (n->lowest == w->priority && n->latest_turn_ns > w->ns);
	case NARROW: return n->narrowest <= w->cpus;
	case NARROW_PLAIN: return n->narrowest_plain != UINT32_MAX && n->narrowest_plain <= w->cpus;
	case BELOW: return n->lowest < 0;
	case NOT_BY_CHANCE: return n->sum.n_by_chance < n->sum.n;
	case WOKEN: return n->soonest_wake_ns <= w->ns;
	}
	return false;
}

/* The first from `from` on in the subtree that is wanted; its size: none is. */
static size_t first_from(const struct job_order *o, uint32_t root, size_t from, const struct wanted *w)
{
	const struct order_node *n;
	size_t before, at;

	if (root == NONE || from >= size_of(o, root) || !holds_one(&o->node[root], w))
		return size_of(o, root);
	n = &o->node[root];
	before = size_of(o, n->left);
	at = first_from(o, n->left, from, w);
	if (at < before)
		return at;
	if (from <= before && is_wanted(&n->item, w))
		return before;
	return before + 1 + first_from(o, n->right, from > before ? from - before - 1 : 0, w);
}

size_t job_order_later(const struct job_order *o, uint32_t root, size_t from, int priority, int64_t turn_ns)
{
	return first_from(o, root, from,
			  &(struct wanted){ .what = LATER, .priority = priority, .ns = turn_ns });
}

size_t job_order_narrow(const struct job_order *o, uint32_t root, size_t from, uint64_t most_cpus, bool plain)
{
	return first_from(o, root, from,
			  &(struct wanted){ .what = plain ? NARROW_PLAIN : NARROW, .cpus = most_cpus });
}

size_t job_order_below(const struct job_order *o, uint32_t root)
{
	return first_from(o, root, 0, &(struct wanted){ .what = BELOW });
}

size_t job_order_not_by_chance(const struct job_order *o, uint32_t root)
{
	return first_from(o, root, 0, &(struct wanted){ .what = NOT_BY_CHANCE });
}

size_t job_order_woken(const struct job_order *o, uint32_t root, size_t from, int64_t now_ns)
{
	return first_from(o, root, from, &(struct wanted){ .what = WOKEN, .ns = now_ns });
}

size_t job_order_until(const struct job_order *o, uint32_t root, size_t from, size_t to,
		       const struct order_scale *scale, double at, bool including)
{
	uint64_t skipped = from ? job_order_sum(o, root, from).cpus : 0, cpus = 0;
	size_t position = 0;

	if (to > size_of(o, root))
		to = size_of(o, root);
	/* Those before `from` are never above: they end up left of the answer, which is at least `from`. */
	while (root != NONE) {
		const struct order_node *n = &o->node[root];
		uint64_t before = cpus + (n->left == NONE ? 0 : o->node[n->left].sum.cpus);
		size_t own = position + size_of(o, n->left);
		double own_at = own <= from ? scale->start
					    : scale->start + scale->step * (double)(before - skipped);

		if (own < from || own_at < at || (including && own_at == at)) {
			position = own + 1;
			cpus = before + n->item.cpus;
			root = n->right;
		} else {
			root = n->left;
		}
	}
	if (position > to)
		position = to;
	return position > from ? position - from : 0;
}
