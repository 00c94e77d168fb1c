/* A model bundle in memory. predictors/file/ writes and reads it. */
#include "predictors/model.h"

#include <stdlib.h>

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

struct model_errors model_errors_at(const struct model *m, const struct model_target *t, const double *x)
{
	return (struct model_errors){ model_scale(t, x), widening_at(t->widening, m->features, x) };
}

/* A score below 0 is not multiplied by a widening: outside the table a bound may not fall. */
double errors_upper(const struct model_target *t, const struct model_errors *e, double q, double predicted)
{
	return conformal_upper(&t->conformal, conformal_widened(q * e->scale, e->widening), predicted);
}

double model_upper(const struct model *m, const struct model_target *t, const double *x, double q,
		   double predicted)
{
	struct model_errors e = model_errors_at(m, t, x);

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
