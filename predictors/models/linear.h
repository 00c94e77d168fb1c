/* Linear models of features and their interactions: ordinary least squares, ridge, lasso. */
#ifndef PREDICTORS_MODELS_LINEAR_H
#define PREDICTORS_MODELS_LINEAR_H

#include "predictors/predictor.h"

#define LINEAR_MAX_TERMS 2000

extern const struct predictor_ops linear_ops, ridge_ops, lasso_ops;

#endif
