/* The members of predictor_ops that all tree models share: they differ in how the trees are grown,
 * not in what is done with them. */
#ifndef PREDICTORS_TREES_ENSEMBLE_MODEL_H
#define PREDICTORS_TREES_ENSEMBLE_MODEL_H

#include "predictors/trees/ensemble.h"
#include "predictors/predictor.h"

struct ensemble_model {
	struct ensemble *ensemble;
	double *importance;     /* n_features; NULL after loading: the bundle keeps them */
	double *oob;            /* n_rows; NULL unless asked for */
};

/* Sums up the trees (which stay the caller's) and their importances. */
int ensemble_model_new(const struct tree *tree, size_t n_trees, size_t n_features, double base,
                       double divisor, struct ensemble_model **out, struct err *err);
void ensemble_model_free(void *self);

#define ENSEMBLE_MODEL_OPS                              \
	.predict = ensemble_model_predict,              \
	.compile = ensemble_model_compile,              \
	.oob = ensemble_model_oob,                      \
	.importances = ensemble_model_importances,      \
	.describe = ensemble_model_describe,            \
	.save = ensemble_model_save,                    \
	.load = ensemble_model_load,                    \
	.destroy = ensemble_model_free

void ensemble_model_predict(const void *self, const double *x, size_t n_rows, double *out);
int ensemble_model_compile(void *self, struct err *err);
const double *ensemble_model_oob(const void *self);
void ensemble_model_importances(const void *self, double *out);
void ensemble_model_describe(const void *self, const struct dataset *names, struct json_writer *w);
int ensemble_model_save(const void *self, struct writer *w, struct err *err);
int ensemble_model_load(struct reader *r, size_t n_features, void **out_self, struct err *err);

#endif
