/* MSE, R2, MAPE, MAE, and their mean and spread over folds. */
#include "predictors/data/score.h"

#include <math.h>

struct score score_of(const double *y, const double *predicted, size_t n)
{
	double mean = 0.0, squares = 0.0, absolute = 0.0, relative = 0.0, total = 0.0;
	double low = INFINITY, high = -INFINITY;
	size_t n_relative = 0;
	double logs = 0.0;
	struct score s = { NAN, NAN, NAN, NAN, NAN };

	if (!n)
		return s;
	for (size_t i = 0; i < n; i++) {
		mean += (y[i] - mean) / (double)(i + 1); /* a plain sum of huge values would overflow */
		low = fmin(low, y[i]);
		high = fmax(high, y[i]);
	}
	for (size_t i = 0; i < n; i++) {
		double e = y[i] - predicted[i], d = y[i] - mean;
		double ratio = y[i] > 0.0 ? (predicted[i] > 0.0 ? log(y[i] / predicted[i]) : INFINITY) : NAN;

		squares += e * e;
		logs += ratio * ratio;
		total += d * d;
		absolute += fabs(e);
		if (y[i] != 0.0) {
			relative += fabs(e / y[i]);
			n_relative++;
		}
	}
	s.mse = squares / (double)n;
	s.mae = absolute / (double)n;
	s.log_mse = logs / (double)n;
	if (n_relative)
		s.mape = relative / (double)n_relative;
	if (low < high) /* not total > 0: the mean of equal values may be off by a rounding */
		s.r2 = 1.0 - squares / total;
	return s;
}

#define MEASURES 5

static void summarise_one(const struct score *fold, size_t n_folds, size_t member, struct score_summary *out)
{
	double mean = 0.0, squares = 0.0;
	size_t n = 0;

	for (size_t i = 0; i < n_folds; i++) {
		const double v[MEASURES] = { fold[i].mse, fold[i].r2, fold[i].mape, fold[i].mae,
					     fold[i].log_mse };
		double d = v[member] - mean;

		if (isnan(v[member]))
			continue;
		if (isinf(v[member]) ||
		    isinf(mean)) { /* one fold without a measure that is finite is enough */
			mean = INFINITY;
			squares = NAN;
			n++;
			continue;
		}
		n++;
		mean += d / (double)n; /* Welford: one pass, no cancellation */
		squares += d * (v[member] - mean);
	}
	double sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0.0;
	double *m[MEASURES] = { &out->mean.mse, &out->mean.r2, &out->mean.mape, &out->mean.mae,
				&out->mean.log_mse };
	double *s[MEASURES] = { &out->sd.mse, &out->sd.r2, &out->sd.mape, &out->sd.mae, &out->sd.log_mse };

	*m[member] = n ? mean : NAN;
	*s[member] = n ? sd : NAN; /* NaN where the mean is infinite */
}

struct score_summary score_summarise(const struct score *fold, size_t n_folds)
{
	struct score_summary out = { .n_folds = n_folds };

	for (size_t member = 0; member < MEASURES; member++)
		summarise_one(fold, n_folds, member, &out);
	return out;
}
