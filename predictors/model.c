/* A model bundle in memory. predictors/file/ writes and reads it. */
#include "predictors/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/stats.h"
#include "predictors/models/widening.h"

static void target_release(struct model_target *t)
{
	predictor_release(&t->predictor);
	conformal_release(&t->conformal);
	free(t->importance);
	free(t->permutation);
	free(t->widening);
	spread_free(t->spread);
}

void model_free(struct model *m)
{
	if (!m)
		return;
	target_release(&m->time);
	target_release(&m->accuracy);
	mixed_release(&m->mixed);
	features_free(m->features);
	schema_free(m->schema);
	free(m->candidate);
	free(m);
}

double model_scale(const struct model_target *t, const double *x)
{
	const struct predictor *p = &t->predictor;

	return (spread_asks(t->spread) && p->ops->spread
			? spread_believed(t->spread, p->ops->spread(p->self, x))
			: 1.0) *
	       spread_at(t->spread, x);
}

/* How much less certain a time is for more epochs or samples than the table has. Time adds up, so an error
 * of the table's ends becomes one of the slope between them, which is carried as far as x lies beyond:
 * sqrt(2) (x - high) / (high - low) errors of a time at the high end. That is little where all is work, and
 * much where nearly all of the measured time was a start. But more than in proportion to its work no time
 * grows. Work that never varied is in proportion as it is. */
static void widen_for_work(const struct model *m, const struct model_target *t, const double *x,
			   struct model_errors *e)
{
	const struct features *f = m->features;
	double inside[FEATURES_MAX], far = 0.0, times = 1.0, most, all;

	for (size_t i = 0; i < f->n; i++) {
		const struct feature *at = &f->feature[i];
		bool work = (int)at->source == schema_role(m->schema, ROLE_EPOCHS) ||
			    (int)at->source == schema_role(m->schema, ROLE_SAMPLES);

		if (!(x[i] > at->max && at->max > 0.0) || !work || feature_is_category(at))
			continue;
		if (far == 0.0)
			memcpy(inside, x, f->n * sizeof *x);
		inside[i] = at->max;
		times *= x[i] / at->max;
		if (at->max > at->min)
			far = fmax(far, (x[i] - at->max) / (at->max - at->min));
	}
	if (far == 0.0)
		return;
	predictor_predict(&t->predictor, inside, 1, &most);
	predictor_predict(&t->predictor, x, 1, &all);
	if (!(all > 0.0 && most > 0.0))
		return;
	if (t->spread) /* the ends are as well known as a setting of the table */
		far *= fmin(spread_scale(t->spread, KNOWS_SETTING) / spread_at(t->spread, x), 1.0);
	e->widening = fmax(e->widening, 1.0 + sqrt(2.0) * far * fmin(most / all, 1.0));
	e->room = fmax(log(times * most / all), 0.0);
}

struct model_errors model_errors_at(const struct model *m, const struct model_target *t, const double *x,
				    double runs)
{
	struct model_errors e = { .scale = model_scale(t, x) };
	double names, numbers = widening_at(t->widening, m->features, x, &names);

	if (runs > 0.0) {
		names *= spread_own_left(names, runs);
		e.scale *= spread_own_left(e.scale / spread_at(t->spread, x), runs);
	}
	e.widening = e.plain = fmax(numbers, names);
	if (t->widening)
		widen_for_work(m, t, x, &e);
	return e;
}

double model_widened(const struct model_errors *e, double above)
{
	double all = conformal_widened(above, e->widening);

	return e->widening > e->plain ? fmin(all, conformal_widened(above, e->plain) + e->room) : all;
}

/* A score below 0 is not multiplied by a widening: outside the table a bound may not fall. */
static double errors_upper(const struct model_target *t, const struct model_errors *e, double q,
			   double predicted)
{
	return conformal_upper(&t->conformal, model_widened(e, q * e->scale), predicted);
}

double model_upper(const struct model *m, const struct model_target *t, const double *x, double q,
		   double predicted)
{
	struct model_errors e = model_errors_at(m, t, x, 0.0);

	return errors_upper(t, &e, q, predicted);
}

struct belief model_belief(const struct model *m, const struct model_target *t, const double *x,
			   double predicted, double confidence)
{
	double asked = belief_asks(confidence), q;

	if (conformal_quantile(&t->conformal, asked, &q, NULL))
		return (struct belief){ predicted, NAN };
	return belief_of_bound(predicted, model_upper(m, t, x, q, predicted), asked);
}

/* ---- how wide bounds are, for people ---- */

/* The middle of each range; of each category the first name. */
static void middle_of(const struct features *f, double *x)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct feature *at = &f->feature[i];
		bool first = !i || f->feature[i - 1].source != at->source;

		if (feature_is_category(at))
			x[i] = at->category_zero ? 0.0 : first;
		else
			x[i] = at->min > 0.0 ? sqrt(at->min * at->max) : (at->min + at->max) / 2.0;
	}
}

/* What the model says of its own errors there: the median over the names of each category in turn; for a name
 * that the table does not have, without any. */
static double middle_scale(const struct model *m, const struct model_target *t, enum familiarity knows)
{
	const struct features *f = m->features;
	const struct predictor *p = &t->predictor;
	double x[FEATURES_MAX], own[FEATURES_MAX + 1];
	size_t n = 0;

	if (!spread_asks(t->spread) || !p->ops->spread)
		return 1.0;
	middle_of(f, x);
	for (size_t i = 0; knows == KNOWS_NO_NAME && i < f->n; i++)
		if (feature_is_category(&f->feature[i]))
			x[i] = NAN;
	own[n++] = p->ops->spread(p->self, x);
	for (size_t i = 0; knows != KNOWS_NO_NAME && i < f->n; i++) {
		if (!feature_is_category(&f->feature[i]) || !f->feature[i].category)
			continue;
		for (size_t k = 0; k < f->n; k++)
			if (f->feature[k].source == f->feature[i].source)
				x[k] = k == i;
		own[n++] = p->ops->spread(p->self, x);
		middle_of(f, x);
	}
	return spread_believed(t->spread, stats_median(own, n));
}

static double factor_of(const struct model *m, const struct model_target *t, enum familiarity knows,
			double widening, double confidence)
{
	struct model_errors e = { .widening = widening, .plain = widening };
	double q;

	if (!t->conformal.log || conformal_quantile(&t->conformal, confidence, &q, NULL))
		return NAN;
	e.scale = middle_scale(m, t, knows) * (t->spread ? spread_scale(t->spread, knows) : 1.0);
	return fmax(errors_upper(t, &e, q, 1.0), 1.0);
}

double model_bound_factor(const struct model *m, const struct model_target *t, enum familiarity knows,
			  double confidence)
{
	return factor_of(m, t, knows, 1.0, confidence);
}

double model_outside_factor(const struct model *m, const struct model_target *t, size_t feature,
			    double confidence)
{
	size_t source = m->features->feature[feature].source;
	bool choice = (int)source == schema_role(m->schema, ROLE_BATCH) ||
		      (int)source == schema_role(m->schema, ROLE_EPOCHS);

	return factor_of(m, t, choice ? KNOWS_CONTEXT : KNOWS_NEITHER,
			 t->widening ? t->widening[feature] : 1.0, confidence);
}

int model_compile(struct model *m, struct err *err)
{
	struct model_target *target[] = { &m->time, &m->accuracy };

	for (size_t i = 0; i < 2; i++) {
		struct predictor *p = &target[i]->predictor;
		int rc = p->ops && p->ops->compile ? p->ops->compile(p->self, err) : 0;

		if (rc)
			return rc;
	}
	return 0;
}
