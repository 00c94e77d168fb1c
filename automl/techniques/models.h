/* The models that campaigns add to those of predictor.h, as they are fitted. What is fitted is in
 * predictors/models/campaign_models.h: every program reads it. */
#ifndef AUTOML_TECHNIQUES_MODELS_H
#define AUTOML_TECHNIQUES_MODELS_H

#include "predictors/models/campaign_models.h"

extern const struct predictor_ops mean_ops, nnls_ops, stepwise_ops, svr_ops, xgboost_ops, network_ops;

/* Is Debian's library there? Without it `xgboost` is our own boosting (boost.h), which knows no gamma,
 * lambda, alpha and min_child_weight. */
bool xgboost_available(void);

/* A column-major copy of the features, for lsq_prepare(). To be freed; NULL when out of memory. */
double *models_columns(const struct dataset *d);

#endif
