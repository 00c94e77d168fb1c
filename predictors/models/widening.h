/* How much wider bounds must be outside the training ranges. Residuals of held-out rows inside the table say
 * nothing about that, so whole levels are held out: for every factor the lowest and the highest ones, a
 * seventh of the rows or so at a time. The factor of a feature is the root mean square of the log residuals
 * at its two ends over the scale that such a row has (spread.h), at least 1.
 *
 * An end that nothing can exceed is not held out: a job cannot have fewer devices than none.
 *
 * A factor with two levels cannot show what happens beyond them: with one of them held out it does not vary
 * any more. The largest residual at any end of the other factors then counts as its 90 % point. Derived
 * columns have no widening: where a product is outside its range and its factors are each inside theirs, a
 * combination is new and not a level. How far to trust these rules: docs/ARCHITECTURE.md, "Bounds". */
#ifndef PREDICTORS_MODELS_WIDENING_H
#define PREDICTORS_MODELS_WIDENING_H

#include "predictors/data/features.h"
#include "predictors/models/spread.h"
#include "predictors/search/search.h"

#define WIDENING_UNKNOWN 2.0 /* stated where no level could be held out */
#define WIDENING_LEVELS 3 /* of a factor: with fewer none can be held out, and two be left */

/* spread: the scales of the ordinary log residuals, and how far the model's own spread counts. q90: the 90 %
 * point of their scores. A level of a
 * batch or of epochs that is new is a setting that is new; a level of any other factor is a context that is
 * new. out: d->n_features factors, all >= 1. */
int widening_estimate(const struct grid_point *model, const struct dataset *d, const struct fit_context *ctx,
                      const struct spread *spread, double q90, double *out, struct err *err);

/* What was never held out counts as the worst of all: gives categories that factor, for names that the table
 * does not have. */
void widening_of_names(double *widening, const struct features *f);

/* The largest factor among the numbers that lie outside their training range; 1 inside, and in full from a
 * quarter of the range beyond its end on, by the logarithm. A missing number counts as the worst of all.
 * *out_names: that of categories which are missing. widening NULL: 1. */
double widening_at(const double *widening, const struct features *f, const double *x, double *out_names);

#endif
