/* Searches the least value of a what-if that reaches a target, by bisection. */
#include "sim/compare/capacity.h"

#include <math.h>
#include <string.h>

/* ---- the search ---- */

static struct capacity_point *capacity_try(const struct capacity_params *p, struct capacity *c, double v,
					   struct err *err)
{
	struct capacity_point made = { .value = v };
	size_t at = 0;

	while (at < c->n && c->point[at].value < v)
		at++;
	if (at < c->n && c->point[at].value == v)
		return &c->point[at];
	if (c->n == CAPACITY_MAX_POINTS) {
		err_fail(err, ERR_ARG, "more than %d values were tried", CAPACITY_MAX_POINTS);
		return NULL;
	}
	if (p->measure(p->owner, v, &made.metric, err))
		return NULL;
	made.holds = p->better > 0 ? made.metric.mean >= p->target : made.metric.mean <= p->target;
	memmove(&c->point[at + 1], &c->point[at], (c->n - at) * sizeof *c->point);
	c->point[at] = made;
	c->n++;
	return &c->point[at];
}

/* The largest value fails: perhaps more is not better here, so a few in between are asked before giving up.
 * *out_low fails and *out_high holds then; NaN: none did. */
static int capacity_look_below(const struct capacity_params *p, struct capacity *c, double *out_low,
			       double *out_high, struct err *err)
{
	double low = p->from;

	*out_high = NAN;
	for (int i = 1; i <= 3; i++) {
		double v = floor(p->from + (p->to - p->from) * i / 4.0);
		const struct capacity_point *t;

		if (v <= low || v >= p->to)
			continue;
		t = capacity_try(p, c, v, err);
		if (!t)
			return -(int)err->code;
		if (t->holds) {
			*out_high = v;
			break;
		}
		low = v;
	}
	*out_low = low;
	return 0;
}

static int capacity_bisect(const struct capacity_params *p, struct capacity *c, struct err *err)
{
	const struct capacity_point *t = capacity_try(p, c, p->to, err);
	double low = p->from, high = p->to;
	bool top_holds = t && t->holds;

	if (!t || !(t = capacity_try(p, c, p->from, err)))
		return -(int)err->code;
	if (t->holds) {
		c->answer = p->from;
		return 0;
	}
	if (!top_holds) {
		int rc = capacity_look_below(p, c, &low, &high, err);

		if (rc || isnan(high))
			return rc;
	}
	while (high - low > 1.0) {
		double v = floor(low + (high - low) / 2.0);

		t = capacity_try(p, c, v, err);
		if (!t)
			return -(int)err->code;
		*(t->holds ? &high : &low) = v;
	}
	c->answer = high;
	return 0;
}

int capacity_search(const struct capacity_params *p, struct capacity *out, struct err *err)
{
	struct err own = { 0 };
	bool held = false;
	int rc;

	if (!err)
		err = &own; /* its code is what a failed measure is known by */
	*out = (struct capacity){ .answer = NAN };
	if (!(p->from > 0.0 && p->from <= p->to && p->from == floor(p->from) && p->to == floor(p->to)))
		return err_fail(err, ERR_ARG, "from %g to %g: need whole numbers above 0 that rise", p->from,
				p->to);
	rc = capacity_bisect(p, out, err);
	if (!rc && out->answer < p->to && !capacity_try(p, out, out->answer + 1.0, err))
		rc = -(int)err->code;
	for (size_t i = 0; i < out->n; i++) {
		held |= out->point[i].holds;
		out->contradicts |= held && !out->point[i].holds;
	}
	return rc;
}

/* ---- the question ---- */

int capacity_check(const struct capacity_question *q, struct err *err)
{
	const char *name = metric_info[q->of].name;

	if (!metric_info[q->of].better)
		return err_fail(err, ERR_ARG,
				"%s: no target is possible, because neither more nor less is better", name);
	if (q->of == METRIC_ATTAINMENT_ORACLE || q->of == METRIC_REGRET)
		return err_fail(
			err, ERR_ARG,
			"%s: it compares with the oracle, which gets the larger machine as well; ask for "
			"attainment_all or accuracy_zero",
			name);
	if (q->by > WHAT_MEMORY)
		return err_fail(
			err, ERR_ARG,
			"%s: the search is for whole numbers of a machine: cluster.cores, cluster.slots, "
			"cluster.nodes or cluster.memory_mb",
			what_key_name[q->by]);
	if (!strcmp(metric_info[q->of].unit, "share") && !(q->target > 0.0 && q->target <= 1.0))
		return err_fail(err, ERR_ARG, "%s is a share, and %g%% is not between 0 and 100%%", name,
				100.0 * q->target);
	return 0;
}

int capacity_fill_range(struct capacity_question *q, const struct cluster *machine, struct err *err)
{
	const double now[] = { [WHAT_CORES] = machine->cores,
			       [WHAT_NODES] = machine->nodes,
			       [WHAT_SLOTS] = machine->slots,
			       [WHAT_MEMORY] = isfinite(machine->memory_mb) ? machine->memory_mb : 1e6 };
	struct what_if probe = { 0 };

	q->from = q->from > 0.0 ? q->from : 1.0;
	q->to = q->to > 0.0 ? q->to : fmax(q->from, ceil(8.0 * now[q->by]));
	if (q->from > q->to)
		return err_fail(err, ERR_ARG, "--from %g is above --to %g", q->from, q->to);
	return what_if_set(&probe, q->by, q->to, err);
}

struct searching {
	struct compare_params p; /* of the one policy */
	const struct capacity_question *q;
};

static int measure(void *owner, double value, struct interval *out, struct err *err)
{
	struct searching *s = owner;
	struct compare_result *r = NULL;
	int rc = what_if_set(&s->p.what, s->q->by, value, err);

	if (!rc)
		rc = compare_run(&s->p, &r, err);
	if (!rc)
		*out = r->policy[0].metric[s->q->of];
	compare_free(r);
	return rc;
}

int capacity_of_policy(const struct compare_params *p, const struct capacity_question *q, size_t policy,
		       struct capacity *out, struct err *err)
{
	struct searching s = { .p = *p, .q = q };
	int rc = compare_cache_new(&s.p.cache, err);

	s.p.policy = &p->policy[policy];
	s.p.n_policies = 1;
	s.p.baseline = 0;
	s.p.keep_outcomes = false;
	if (!rc)
		rc = capacity_search(&(struct capacity_params){ .from = q->from,
								.to = q->to,
								.target = q->target,
								.better = metric_info[q->of].better,
								.measure = measure,
								.owner = &s },
				     out, err);
	compare_cache_free(s.p.cache);
	return rc;
}
