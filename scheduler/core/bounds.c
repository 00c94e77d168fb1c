/* What a decision believes of the time of a candidate (predictors/belief.h): how wide by the residuals of
 * the model and by what was learnt since (adapt.h), the bound that follows, and the chance that it stays
 * within the limit. */
#include <math.h>

#include "scheduler/core/decide_internal.h"

void decide_bounds_init(struct decide_rows *r)
{
	const struct decide_params *p = r->p;

	r->adapt = p->scene && p->scene->adapt && !adapt_is_empty(p->scene->adapt) ? p->scene->adapt : NULL;
	r->bias = r->adapt ? adapt_bias(r->adapt, p->scene->who) : 1.0;
	if (p->scene)
		r->bias *= exp(p->scene->level.shift);
	r->narrow = p->scene && p->scene->level.narrow > 0.0 ? p->scene->level.narrow : 1.0;
	r->runs = p->scene ? p->scene->level.n : 0.0;
	r->asked = belief_asks(p->confidence);
	r->spreads = belief_spreads(p->confidence);
	r->spreads_asked = r->asked == p->confidence ? r->spreads : belief_spreads(r->asked);
	r->scored = NAN;
	if (conformal_quantile(&p->model->time.conformal, r->asked, &r->q, NULL))
		r->q = NAN;
}

struct model_errors decide_errors_at(const struct decide_rows *r, const double *x)
{
	struct model_errors e = model_errors_at(r->p->model, &r->p->model->time, x, r->runs);

	e.scale *= r->narrow;
	return e;
}

/* The logarithm of the bound over the time, within the table. What was learnt since the model was trained
 * takes the place of its own quantile, as far as it carries. */
static double above_of(struct decide_rows *r, const struct model_errors *e, double time_s)
{
	const struct conformal *of = &r->p->model->time.conformal;
	double model_q = r->q * e->scale, upper_s, q;

	if (!of->log) {
		upper_s = conformal_upper(of, model_q, time_s);
		model_q = upper_s > 0.0 ? log(upper_s / time_s) : NAN;
	}
	if (!r->adapt || model_q == r->scored)
		return r->adapt ? r->above : model_q;
	r->scored = r->above = model_q;
	/* What jobs of other families taught makes no bound of a new one tighter. */
	q = adapt_quantile(r->adapt, r->p->scene->who, r->asked, model_q);
	if (!isnan(q) && !(r->p->scene->new_family && model_q > q))
		r->above = q;
	return r->above;
}

/* What an error of the load of others that is foreseen does to the logarithm of the time. */
static double by_other_load(const struct decide_rows *r, const struct candidate *c)
{
	const struct decide_scene *s = r->p->scene;
	struct fluid_job job;
	double more, ratio;

	if (!s || !(s->other_spread > 0.0))
		return 0.0;
	job = decide_fluid_job(c, s->cpus);
	more = expm1(log1p(s->other_load) + s->other_spread);
	ratio = decide_stretch(&s->machine, &job, s->cpus + more) /
		decide_stretch(&s->machine, &job, s->cpus + s->other_load);
	return ratio > 1.0 && isfinite(ratio) ? log(ratio) : 0.0; /* NaN: its shares are not known */
}

void decide_bound(struct decide_rows *r, const struct model_errors *e, struct candidate *c)
{
	double above = NAN;

	if (c->time_s > 0.0 && c->beyond < 0)
		above = model_widened(e, above_of(r, e, c->time_s));
	c->spread = hypot(belief_spread(above, r->spreads_asked), by_other_load(r, c));
	c->guard_s = belief_bound_at((struct belief){ c->time_s, c->spread }, r->spreads);
}

double decide_chance(const struct decide_rows *r, const struct candidate *c)
{
	const struct decide_scene *s = r->p->scene;
	struct belief b = { c->wait_s + c->time_s, c->spread }; /* a wait is stretched as the time is */

	if (s)
		b = belief_with(b, s->later.shift, s->later.spread);
	return belief_chance(b, r->p->slo_s);
}
