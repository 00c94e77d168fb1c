/* The models that campaigns add to those of predictor.h. They follow the same table of functions, but they
 * are reached through technique.h alone: inputs are finite and prepared when they get here, so that none of
 * them has a rule for missing values. */
#ifndef PREDICTORS_TECHNIQUES_MODELS_H
#define PREDICTORS_TECHNIQUES_MODELS_H

#include "predictors/predictor.h"

extern const struct predictor_ops mean_ops, nnls_ops, stepwise_ops, svr_ops, xgboost_ops, network_ops;

extern const char *const models_no_yes[];

/* Is Debian's library there? Without it `xgboost` is our own boosting (boost.h), which knows no gamma,
 * lambda, alpha and min_child_weight. */
bool xgboost_available(void);

/* ---- affine.c: y = intercept + sum coefficient * x, which several of them end in ---- */
struct affine {
	size_t n_features;
	double intercept;
	double coefficient[];
};
struct affine *affine_new(size_t n_features); /* all 0; NULL when out of memory */
void affine_predict(const void *self, const double *x, size_t n_rows, double *out);
void affine_describe(const void *self, const struct dataset *names, struct json_writer *w);
int affine_save(const void *self, struct writer *w, struct err *err);
int affine_load(struct reader *r, size_t n_features, void **out_self, struct err *err);
#define INTERCEPT_SETTING                                                                                    \
	{                                                                                                    \
		.name = "fit_intercept", .otherwise = 1, .max = 1, .words = models_no_yes,                   \
		.help = "fit an intercept"                                                                   \
	}
#define AFFINE_OPS                                                                                           \
	.predict = affine_predict, .describe = affine_describe, .save = affine_save, .load = affine_load,    \
	.destroy = free

/* A column-major copy of the features, for lsq_prepare(). To be freed; NULL when out of memory. */
double *models_columns(const struct dataset *d);

#endif
