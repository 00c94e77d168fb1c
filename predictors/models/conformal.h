/* The distribution of a model's errors, from residuals of rows that it has not seen: upper bounds that hold.
 *
 * Score s_i = (y_i - p_i) / spread(p_i); bound U = p + q spread(p). For models that err by a factor s_i =
 * log(y_i / p_i) / scale, with the scale of the row (spread.h), and U = p exp(q scale). With many independent
 * residuals q is the score of rank ceil((n+1)(1-alpha)): split-conformal inference (Lei, G'Sell, Rinaldo,
 * Tibshirani, Wasserman, JASA 113, 2018). With few of them the outermost residual is far too wide or does not
 * exist, and q is a quantile of Student's t with the mean and the spread of the scores. In between
 * (CONFORMAL_FEW to CONFORMAL_MANY) it moves from one to the other. Residuals of one setting or context are
 * similar, so what counts is how many groups there are. */
#ifndef PREDICTORS_MODELS_CONFORMAL_H
#define PREDICTORS_MODELS_CONFORMAL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "predictors/file/bytes.h"

#define CONFORMAL_FEW 20  /* groups up to which Student's t counts alone */
#define CONFORMAL_MANY 60 /* groups from which the ranks count alone */
#define CONFORMAL_GRID 101

struct conformal {
	size_t n;
	double *score;      /* ascending */
	size_t groups;      /* that err independently; at most n */
	double base, slope; /* spread(p) = base + slope * max(p, 0); 1 and 0 when not normalised */
	bool log;           /* scores are in log time; base 1 and slope 0 then */
	double mean, sd;    /* of the scores */
	double at[CONFORMAL_GRID]; /* quantiles of 1 %, 2 %, ... 99 %, 99.5 %, 99.9 %; NaN: cannot be
	                              carried */
};

/* y and predicted: rows with NaN predictions are left out (all of them: n = 0, and no quantile will be
 * given); an infinite residual is ERR_NUMERIC. normalise: fit the spread to |residual|. */
int conformal_fit(const double *y, const double *predicted, size_t n, bool normalise,
                  struct conformal *out, struct err *err);
/* Takes scores in log time and in units of their scale, in any order. groups: how many of them err
 * independently. */
int conformal_take(double *score, size_t n, size_t groups, struct conformal *out, struct err *err);
/* The same residuals, with the number of groups whose errors are independent. */
void conformal_set_groups(struct conformal *c, size_t groups);
void conformal_release(struct conformal *c);

/* The score that goes with a confidence such as 0.9; ERR_NODATA (with the number needed) when there
 * are too few groups of residuals, ERR_ARG unless 0 < confidence < 1. */
int conformal_quantile(const struct conformal *c, double confidence, double *out_q, struct err *err);
/* Residuals that ranks need for a confidence: 9 for 90 %, 99 for 99 %; SIZE_MAX unless 0 < confidence < 1. */
size_t conformal_needed(double confidence);
/* Groups needed for a bound at all: a third of that, at least 3. */
size_t conformal_least(double confidence);

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
