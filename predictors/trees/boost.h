/* Gradient boosting of trees (Friedman, Annals of Statistics 29(5), 2001). */
#ifndef PREDICTORS_TREES_BOOST_H
#define PREDICTORS_TREES_BOOST_H

#include "predictors/predictor.h"

extern const struct predictor_ops boost_ops;

/* For the grid search: fits once with `most` trees and predicts the test rows as after each of the
 * `n_stages` ascending tree counts in `stage`; out: n_stages x test->n_rows, row-major. */
int boost_staged(const struct settings *s, const struct dataset *train, const struct dataset *test,
                 const struct fit_context *ctx, const size_t *stage, size_t n_stages, double *out,
                 struct err *err);

#endif
