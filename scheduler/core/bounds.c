/* What a decision knows of the distribution of a time: its bound at the confidence asked for, and the chance
 * that it stays within a limit. Both come from the residuals of the model and from what was learnt since
 * (adapt.h). */
#include <math.h>

#include "scheduler/core/decide_internal.h"
#include "scheduler/core/policy/price.h"

#define USUAL_SPREAD 0.3 /* of the logarithm of a time without a bound */
#define LEAST_SPREAD 0.03
/* On a busy machine a time is so much less certain than the model is, because others arrive and leave. What
 * is decided hardly changes between 0.1 and 0.35 (docs/MEASURED.md). */
#define LATER_SPREAD 0.2

/* By the normal law; its quantile: Abramowitz and Stegun, 26.2.23. */
double decide_spread(double ratio, double confidence)
{
	double t, z;

	if (!(ratio > 1.0 && confidence > 0.5 && confidence < 1.0))
		return USUAL_SPREAD;
	t = sqrt(-2.0 * log(1.0 - confidence));
	z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			(1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
	return fmin(fmax(log(ratio) / fmax(z, 0.1), LEAST_SPREAD), 1.0);
}

double decide_spread_later(double spread, unsigned without)
{
	return without & LAYER_LATER ? spread : sqrt(spread * spread + LATER_SPREAD * LATER_SPREAD);
}

/* ---- bounds ---- */

void decide_bounds_init(struct decide_rows *r)
{
	const struct decide_params *p = r->p;

	r->adapt = p->scene && p->scene->adapt && !adapt_is_empty(p->scene->adapt) ? p->scene->adapt : NULL;
	r->bias = r->adapt ? adapt_bias(r->adapt, p->scene->who) : 1.0;
	if (p->scene)
		r->bias *= exp(p->scene->level.shift);
	r->narrow = p->scene && p->scene->level.narrow > 0.0 ? p->scene->level.narrow : 1.0;
	r->n_levels = -1;
	r->later = NAN;
	if (conformal_quantile(&p->model->time.conformal, p->confidence, &r->q, NULL))
		r->q = NAN;
}

/* What was learnt since the model was trained takes the place of its own quantile (model_q at this
 * confidence), as far as it carries. What was learnt is a factor on the time; the result is a score in the
 * model's own units, of which `scale` (model_scale()) make up the logarithm of a factor, or which are
 * differences. */
static double adapted_score(const struct decide_rows *r, double confidence, double model_q, double time_s,
			    double scale)
{
	const struct conformal *c = &r->p->model->time.conformal;
	double spread = c->base + c->slope * time_s, upper_s, q;
	enum adapt_source source;

	if (!(time_s > 0.0 && spread > 0.0))
		return model_q;
	upper_s = isnan(model_q) ? NAN : conformal_upper(c, c->log ? model_q * scale : model_q, time_s);
	if (!adapt_quantile(r->adapt, r->p->scene->who, confidence,
			    upper_s > 0.0 ? log(upper_s / time_s) : NAN, &q, &source))
		return model_q;
	/* What jobs of other families taught makes no bound of a new one tighter. */
	if (r->p->scene->new_family && upper_s > 0.0)
		q = confidence < 0.5 ? fmin(q, log(upper_s / time_s)) : fmax(q, log(upper_s / time_s));
	return c->log ? q / scale : time_s * expm1(q) / spread;
}

struct model_errors decide_errors_at(const struct decide_rows *r, const double *x)
{
	struct model_errors e = model_errors_at(r->p->model, &r->p->model->time, x);

	e.scale *= r->narrow;
	return e;
}

double decide_guard_s(const struct decide_rows *r, const struct model_errors *e, const struct candidate *c)
{
	double q, upper_s;

	if (isnan(c->time_s) || c->beyond >= 0)
		return NAN;
	q = r->adapt ? adapted_score(r, r->p->confidence, r->q, c->time_s, e->scale) : r->q;
	upper_s = isnan(q) ? NAN : errors_upper(&r->p->model->time, e, q, c->time_s);
	return upper_s > 0.0 ? upper_s : NAN; /* errors that are differences may be larger than the time */
}

/* ---- chances ---- */

/* The score at a confidence; NaN: neither the model nor what was learnt carries it. */
static double level_score(const struct decide_rows *r, double confidence, double time_s, double scale)
{
	double q;

	if (conformal_quantile(&r->p->model->time.conformal, confidence, &q, NULL))
		q = NAN;
	return adapted_score(r, confidence, q, time_s, scale);
}

#define GRID (DECIDE_LEVELS - 1)

/* Fills in the distribution at some confidences, the one asked for among them. What was learnt moves each of
 * them by itself (adapt.h), so the scores are made to rise; the one that promises rest on stays. */
static void find_levels(struct decide_rows *r, double time_s, double scale)
{
	static const double grid[GRID] = { 0.02, 0.05, 0.1,  0.2, 0.3,  0.4,  0.5, 0.6,
					   0.7,  0.8,  0.85, 0.9, 0.95, 0.98, 0.99 };
	double asked = r->p->confidence;
	bool inserted = false;
	int n = 0, own = 0;

	for (int k = 0; k < GRID || !inserted;) {
		bool is_own = !inserted && (k == GRID || asked <= grid[k]);
		double level = is_own ? asked : grid[k], score = level_score(r, level, time_s, scale);

		k += !is_own || (k < GRID && grid[k] == asked);
		inserted |= is_own;
		if (isnan(score))
			continue;
		own = is_own ? n : own;
		r->level[n] = level;
		r->score[n++] = score;
	}
	for (int i = own + 1; i < n; i++)
		r->score[i] = fmax(r->score[i], r->score[i - 1]);
	for (int i = own - 1; i >= 0; i--)
		r->score[i] = fmin(r->score[i], r->score[i + 1]);
	r->n_levels = n;
	r->levels_scale = scale;
}

/* What is left of a share after `past` beyond the outermost score, as in an exponential tail through that
 * score and a middle one, where the shares are `outer` and `inner`; without a spread: `flat`. */
static double tail_left(double distance, double inner, double outer, double past, double flat)
{
	double scale = distance / log(inner / outer);

	if (isinf(past))
		return 0.0;
	return scale > 0.0 ? outer * exp(-past / scale) : flat;
}

/* The share of times whose score is at most this. */
static double share_at(const struct decide_rows *r, double score)
{
	const double *level = r->level, *s = r->score;
	int n = r->n_levels, k = 0, middle = n / 2;

	if (!n)
		return NAN;
	while (k < n && s[k] <= score)
		k++;
	if (k == 0)
		return tail_left(s[middle] - s[0], level[middle], level[0], s[0] - score, 0.0);
	if (k == n)
		return 1.0 - tail_left(s[n - 1] - s[middle], 1.0 - level[middle], 1.0 - level[n - 1],
				       score - s[n - 1], 1.0 - level[n - 1]);
	return level[k - 1] + (level[k] - level[k - 1]) * (score - s[k - 1]) / (s[k] - s[k - 1]);
}

double decide_chance_of(const struct model *m, const struct adapt *adapt, struct adapt_who who,
			const struct decide_odds *odds, double time_s, double limit_s)
{
	const struct decide_scene scene = { .adapt = adapt, .who = who };
	const struct decide_params p = { .model = m, .confidence = odds->confidence, .scene = &scene };
	struct decide_rows r;
	double score, scale;

	if (!(time_s > 0.0) || isnan(limit_s))
		return NAN;
	if (!(limit_s > 0.0))
		return 0.0;
	r.p = &p;
	decide_bounds_init(&r);
	score = conformal_score_at(&m->time.conformal, time_s, limit_s);
	/* the bound at the start says how wide the errors of this job are */
	scale = m->time.conformal.log ? log(odds->ratio) / r.q : 1.0;
	if (!(scale > 0.0))
		scale = 1.0;
	if (!r.adapt)
		return conformal_confidence(&m->time.conformal, score / scale);
	find_levels(&r, time_s, scale);
	return share_at(&r, score / scale);
}

double decide_later(const struct decide_scene *s)
{
	if (s->policy->without & LAYER_LATER || !s->told || !s->adapt)
		return 1.0;
	return fmax(1.0, adapt_bias(s->told, s->who) / adapt_bias(s->adapt, s->who));
}

/* Where jobs disturb each other, the load that is foreseen is not the one that comes. */
static double chance_later(struct decide_rows *r, const struct candidate *c)
{
	double spread = decide_spread(c->guard_s / c->time_s, r->p->confidence);

	if (isnan(r->later))
		r->later = decide_later(r->p->scene);
	return price_chance((c->wait_s + c->time_s) * r->later, r->p->slo_s,
			    decide_spread_later(spread, r->p->scene->policy->without));
}

double decide_chance(struct decide_rows *r, const struct model_errors *e, const struct candidate *c)
{
	const struct model_target *t = &r->p->model->time;
	double slo_s = r->p->slo_s, limit_s, score;

	if (isnan(slo_s) || isnan(c->time_s) || c->beyond >= 0)
		return NAN;
	/* a wait is stretched as the time is (lookahead.c) */
	limit_s = c->time_s > 0.0 ? slo_s * (c->time_s / (c->wait_s + c->time_s)) : slo_s - c->wait_s;
	if (!(limit_s > 0.0))
		return t->conformal.n ? 0.0 : NAN;
	score = errors_score_at(t, e, c->time_s, limit_s);
	if (r->p->scene && r->p->scene->price > 0.0)
		return chance_later(r, c);
	if (!r->adapt)
		return conformal_confidence(&t->conformal, score);
	if (r->n_levels < 0 || r->levels_scale != e->scale || !t->conformal.log)
		find_levels(r, c->time_s, e->scale);
	return share_at(r, score);
}
