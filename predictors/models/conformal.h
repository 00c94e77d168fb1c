/* Upper bounds that hold: split-conformal inference on residuals of rows a model has not seen.
 * Score s_i = (y_i - p_i) / spread(p_i); bound U = p + q spread(p) with q the score of rank
 * ceil((n+1)(1-alpha)). For models that err by a factor s_i = log(y_i / p_i) and U = p exp(q). Fewer than 9 /
 * 19 / 99 residuals cannot carry 90 / 95 / 99 %. Source: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, JASA
 * 113 (2018). */
#ifndef PREDICTORS_MODELS_CONFORMAL_H
#define PREDICTORS_MODELS_CONFORMAL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "predictors/file/bytes.h"

struct conformal {
	size_t n;
	double *score;      /* ascending */
	double base, slope; /* spread(p) = base + slope * max(p, 0); 1 and 0 when not normalised */
	bool log;           /* scores are in log time; base 1 and slope 0 then */
};

/* y and predicted: rows with NaN predictions are left out (all of them: n = 0, and no quantile will be
 * given); an infinite residual is ERR_NUMERIC. normalise: fit the spread to |residual|. */
int conformal_fit(const double *y, const double *predicted, size_t n, bool normalise,
                  struct conformal *out, struct err *err);
/* Scores in log time. Rows with a NaN prediction are left out; one that is not above 0 is ERR_NUMERIC. */
int conformal_fit_log(const double *y, const double *predicted, size_t n, struct conformal *out,
                      struct err *err);
void conformal_release(struct conformal *c);

/* The score that goes with a confidence such as 0.9; ERR_NODATA (with the number needed) when there
 * are too few residuals, ERR_ARG unless 0 < confidence < 1. */
int conformal_quantile(const struct conformal *c, double confidence, double *out_q, struct err *err);
size_t conformal_needed(double confidence); /* residuals needed for it; SIZE_MAX unless 0 < confidence < 1 */

static inline double conformal_upper(const struct conformal *c, double q, double predicted)
{
	if (c->log)
		return predicted * exp(q);
	return predicted + q * (c->base + c->slope * (predicted > 0.0 ? predicted : 0.0));
}

/* The score of a bound `times` as wide (>= 1): never a lower one, also where q is negative. */
static inline double conformal_widened(double q, double times)
{
	return q + (times - 1.0) * fabs(q);
}

int conformal_save(const struct conformal *c, struct writer *w);
int conformal_load(struct reader *r, struct conformal *out, struct err *err);

#endif
