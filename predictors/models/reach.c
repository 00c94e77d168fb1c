/* How far outside its table a model may carry a promise. See reach.h. */
#include "predictors/models/reach.h"

#include <math.h>

#define HARDLY 0.1 /* of the largest load that was measured */

static bool is_work(const struct schema *s, size_t source)
{
	return (int)source == schema_role(s, ROLE_EPOCHS) || (int)source == schema_role(s, ROLE_SAMPLES);
}

bool reach_of(const struct model *m, size_t feature, double *out_least, double *out_most)
{
	const struct feature *f = &m->features->feature[feature];
	bool law = m->time.predictor.ops && m->time.predictor.ops->shares;
	double factor;

	if (feature_is_category(f) || f->source >= m->schema->n_columns || isnan(f->min))
		return false;
	if (f->min > 0.0) {
		factor = fmin(sqrt(f->max / f->min), law ? REACH_BY_LAW : REACH_BY_TABLE);
		if (law)
			factor = fmax(factor, REACH_BY_TABLE);
		if (law && is_work(m->schema, f->source))
			factor = REACH_OF_WORK;
		*out_least = f->min / factor;
		*out_most = f->max * factor;
	} else {
		factor = (f->max - f->min) / 2.0;
		*out_least = f->min - factor;
		*out_most = f->max + factor;
	}
	return true;
}

static bool is_load(const struct schema *s, size_t source)
{
	return (int)source == schema_role(s, ROLE_NJOBS) || (int)source == schema_role(s, ROLE_PROCESSES) ||
	       (int)source == schema_role(s, ROLE_OTHER);
}

int reach_beyond(const struct model *m, const double *x)
{
	for (size_t i = 0; i < m->features->n; i++) {
		const struct feature *f = &m->features->feature[i];
		double least, most;

		/* Inside the table, which is nearly always so, nothing is worked out. */
		if ((x[i] >= f->min && x[i] <= f->max) || isnan(x[i]))
			continue;
		if (!is_load(m->schema, f->source) && reach_of(m, i, &least, &most) &&
		    !(x[i] >= least && x[i] <= most))
			return (int)i;
	}
	return -1;
}

bool reach_is_notable(const struct model *m, const struct feature *f, double x)
{
	return feature_is_outside(f, x) && !(is_load(m->schema, f->source) && x <= f->max * (1.0 + HARDLY));
}

int reach_notable(const struct model *m, const double *x)
{
	for (size_t i = 0; i < m->features->n; i++)
		if (reach_is_notable(m, &m->features->feature[i], x[i]))
			return (int)i;
	return -1;
}
