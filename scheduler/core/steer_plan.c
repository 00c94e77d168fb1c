/* Plans of two batches on the upper hull of time and effective iterations. See steer_plan.h. */
#include "scheduler/core/steer_plan.h"

#include <math.h>

#include "predictors/belief.h"

#define ALIKE 0.97 /* of the steepest way to more effort: as good */
#define SPLITS 8 /* of an edge of the hull, where time has a price: the best one may lie within */

static bool usable(const struct steer_pace *p)
{
	return p->epoch_s > 0.0 && isfinite(p->epoch_s) && p->effort > 0.0;
}

size_t steer_fastest(const struct steer_case *c)
{
	size_t best = c->n;

	for (size_t i = 0; i < c->n; i++)
		if (usable(&c->pace[i]) && (best == c->n || c->pace[i].epoch_s < c->pace[best].epoch_s))
			best = i;
	return best;
}

/* ---- one plan ---- */

static struct steer_plan plan_of(const struct steer_case *c, size_t first, unsigned n_first, size_t then)
{
	const struct steer_pace *a = &c->pace[first], *b = &c->pace[then];
	unsigned n_then = c->epochs_left - n_first;
	double a_s = n_first * a->epoch_s, b_s = n_then * b->epoch_s;
	double unseen = c->unseen * ((a->seen ? 0.0 : a_s) + (b->seen ? 0.0 : b_s)) / (a_s + b_s);
	unsigned changes = (n_first && first != c->now) +
			   (n_then && (n_first ? then != first : then != c->now));
	struct steer_plan p = { .first = n_first ? first : then, .then = then, .n_first = n_first };
	double effort = c->effort_done + n_first * a->effort + n_then * b->effort;

	p.end_s = c->offset_s + a_s + b_s + changes * c->change_s;
	p.upper_s = belief_bound((struct belief){ p.end_s, hypot(c->spread, unseen) }, c->confidence);
	p.accuracy = mixed_run_at(c->curve, effort);
	p.worth = c->value * (isnan(p.accuracy) ? log(effort) : p.accuracy) - c->cost_per_s * p.end_s;
	return p;
}

static void find_way(const struct steer_case *c, size_t fastest, struct steer_plan *io)
{
	const struct steer_plan way = plan_of(c, io->first, 1, fastest);

	io->way_s = way.upper_s;
	io->way = fmin(way.end_s / io->end_s, 1.0);
	io->per_s = io->accuracy > way.accuracy && io->end_s > way.end_s
			    ? (io->accuracy - way.accuracy) / (io->end_s - way.end_s)
			    : 0.0;
}

/* The bound with the fastest after the next epoch. */
static double way_s(const struct steer_case *c, size_t next, size_t fastest)
{
	return plan_of(c, next, 1, fastest).upper_s;
}

static bool is_safe(const struct steer_case *c, size_t next, size_t fastest)
{
	return way_s(c, next, fastest) <= c->left_s;
}

/* ---- the hull ---- */

/* What an epoch with batch i has more than one with batch `at`, for each second more; 0: it is not slower, or
 * may not be taken. */
static double slope_of(const struct steer_case *c, size_t at, size_t i)
{
	double more_s = c->pace[i].epoch_s - c->pace[at].epoch_s;

	return usable(&c->pace[i]) && more_s > 0.0 ? (c->pace[i].effort - c->pace[at].effort) / more_s : 0.0;
}

/* The usable batches that no mix of others exceeds by much, the fastest first. Often they lie on a line; then
 * neighbours are better than extremes, which the job may never have run. */
static size_t find_hull(const struct steer_case *c, size_t *hull)
{
	size_t n = 0, at = steer_fastest(c);

	while (at < c->n) {
		double steepest = 0.0;
		size_t next = c->n;

		hull[n++] = at;
		for (size_t i = 0; i < c->n; i++)
			steepest = fmax(steepest, slope_of(c, at, i));
		for (size_t i = 0; i < c->n && steepest > 0.0; i++)
			if (slope_of(c, at, i) >= ALIKE * steepest &&
			    (next == c->n || c->pace[i].epoch_s < c->pace[next].epoch_s))
				next = i;
		at = next;
	}
	return n;
}

/* The best plan whose expected end is in time: the slower batch of an edge first, as many epochs as there is
 * time for. */
static struct steer_plan best_plan(const struct steer_case *c, const size_t *hull, size_t n_hull)
{
	struct steer_plan best = plan_of(c, hull[0], c->epochs_left, hull[0]);

	for (size_t k = 0; k + 1 < n_hull; k++) {
		size_t fast = hull[k], slow = hull[k + 1];
		double more_s = c->pace[slow].epoch_s - c->pace[fast].epoch_s;
		double spare_s = c->left_s - plan_of(c, slow, 1, fast).end_s + more_s;
		double most = fmin(floor(spare_s / more_s), c->epochs_left);
		unsigned splits = c->cost_per_s > 0.0 ? SPLITS : 1, last = 0;

		for (unsigned i = 1; most >= 1.0 && i <= splits; i++) {
			unsigned m = (unsigned)ceil(most * i / splits);
			struct steer_plan p;

			if (m == last)
				continue;
			last = m;
			p = plan_of(c, slow, m, m == c->epochs_left ? slow : fast);
			if (p.worth > best.worth && p.end_s <= c->left_s)
				best = p;
		}
	}
	return best;
}

/* ---- the choice ---- */

/* The batch of the next epoch, which is one of the plan's if that is safe, or the slowest that is. */
static size_t next_of(const struct steer_case *c, const struct steer_plan *p, const size_t *hull,
		      size_t n_hull)
{
	bool in_plan = c->now == p->first || (c->now == p->then && p->n_first < c->epochs_left);
	size_t want = in_plan && usable(&c->pace[c->now]) ? c->now : p->first;

	if (is_safe(c, want, hull[0]))
		return want;
	for (size_t k = n_hull; k-- > 0;)
		if (c->pace[hull[k]].epoch_s < c->pace[want].epoch_s && is_safe(c, hull[k], hull[0]))
			return hull[k];
	return hull[0];
}

static enum steer_reason reason_of(const struct steer_case *c, size_t next, size_t fastest,
				   const struct steer_plan *free_of_cost)
{
	const struct steer_pace *p = c->pace;

	if (!is_safe(c, fastest, fastest) && plan_of(c, fastest, c->epochs_left, fastest).end_s > c->left_s)
		return STEER_LATE;
	if (next == c->now)
		return STEER_KEEPS;
	if (p[next].epoch_s > p[c->now].epoch_s)
		return STEER_ACCURATE;
	return p[next].epoch_s < p[free_of_cost->first].epoch_s && is_safe(c, free_of_cost->first, fastest)
		       ? STEER_GIVES_BACK
		       : STEER_FASTER;
}

bool steer_plan(const struct steer_case *c, struct steer_plan *out)
{
	struct steer_case free_of_cost = *c;
	size_t hull[STEER_MOST_BATCHES], n_hull = find_hull(c, hull), next;
	struct steer_plan best, kept, without;

	if (!n_hull)
		return false;
	best = best_plan(c, hull, n_hull);
	if (usable(&c->pace[c->now])) {
		kept = plan_of(c, c->now, c->epochs_left, c->now);
		if (kept.end_s <= c->left_s && best.worth - kept.worth <= c->least_gain &&
		    is_safe(c, c->now, hull[0])) {
			*out = kept;
			out->reason = STEER_KEEPS;
			find_way(c, hull[0], out);
			return true;
		}
	}
	next = next_of(c, &best, hull, n_hull);
	free_of_cost.cost_per_s = 0.0;
	without = c->cost_per_s > 0.0 ? best_plan(&free_of_cost, hull, n_hull) : best;
	if (next == best.then && next != best.first) { /* the faster one first, as long as the plan has it */
		best = plan_of(c, next, c->epochs_left - best.n_first, best.first);
	} else if (next != best.first) { /* no more is safe: one epoch so, and the fastest after it */
		best = plan_of(c, next, 1, hull[0]);
	}
	*out = best;
	out->reason = reason_of(c, next, hull[0], &without);
	find_way(c, hull[0], out);
	return true;
}
