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
	r->asked = belief_asks(p->confidence);
	if (conformal_quantile(&p->model->time.conformal, r->asked, &r->q, NULL))
		r->q = NAN;
}

struct model_errors decide_errors_at(const struct decide_rows *r, const double *x)
{
	struct model_errors e = model_errors_at(r->p->model, &r->p->model->time, x);

	e.scale *= r->narrow;
	return e;
}

/* The logarithm of the bound over the time, within the table. What was learnt since the model was trained
 * takes the place of its own quantile, as far as it carries. */
static double above_of(const struct decide_rows *r, const struct model_errors *e, double time_s)
{
	const struct model_errors inside = { .scale = e->scale, .widening = 1.0 };
	double upper_s = isnan(r->q) ? NAN : errors_upper(&r->p->model->time, &inside, r->q, time_s);
	double model_q = upper_s > 0.0 ? log(upper_s / time_s) : NAN, q;
	enum adapt_source source;

	if (!r->adapt || !adapt_quantile(r->adapt, r->p->scene->who, r->asked, model_q, &q, &source))
		return model_q;
	/* What jobs of other families taught makes no bound of a new one tighter. */
	return r->p->scene->new_family && model_q > q ? model_q : q;
}

void decide_bound(const struct decide_rows *r, const struct model_errors *e, struct candidate *c)
{
	struct belief b = { c->time_s, NAN };

	if (c->time_s > 0.0 && c->beyond < 0)
		b = belief_of_bound(
			c->time_s, c->time_s * exp(conformal_widened(above_of(r, e, c->time_s), e->widening)),
			r->asked);
	c->spread = b.spread;
	c->guard_s = belief_bound(b, r->p->confidence);
}

double decide_chance(const struct decide_rows *r, const struct candidate *c)
{
	const struct decide_scene *s = r->p->scene;
	struct belief b = { c->wait_s + c->time_s, c->spread }; /* a wait is stretched as the time is */

	if (s)
		b = belief_with(b, s->later.shift, s->later.spread);
	return belief_chance(b, r->p->slo_s);
}
