/* From features to coordinates. See axes.h. */
#include "predictors/models/axes.h"

#include <math.h>

double axis_at(const struct axis *a, double v)
{
	if (a->logarithm)
		v = v > 0.0 ? log(v) : NAN;
	return (v - a->centre) / a->scale;
}

bool axis_make(const struct dataset *d, size_t f, struct axis *out)
{
	bool category = d->role && d->role[f] == ROLE_CATEGORY;
	double low = INFINITY, high = -INFINITY, mean = 0.0, squares = 0.0;
	struct axis a = { .feature = (uint32_t)f, .category = category, .scale = 1.0 };
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++) {
		double v = d->x[i * d->n_features + f];

		low = fmin(low, v); /* NaN is passed over */
		high = fmax(high, v);
	}
	a.logarithm = !category && low > 0.0;
	for (size_t i = 0; i < d->n_rows; i++) {
		double v = d->x[i * d->n_features + f], e;

		v = a.logarithm ? log(v) : v;
		if (isnan(v))
			continue;
		e = v - mean;
		mean += e / (double)++n;
		squares += e * (v - mean);
	}
	if (!(high > low) || !isfinite(squares) || !(squares > 0.0))
		return false;
	a.centre = mean;
	if (!category)
		a.scale = sqrt(squares / (double)n);
	a.low = axis_at(&a, low);
	a.high = axis_at(&a, high);
	*out = a;
	return true;
}
