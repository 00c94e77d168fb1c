/* The models that only a campaign fits (automl/techniques/): here they are read from a model file, asked and
 * written. They are reached through pipeline.h alone: inputs are finite and prepared when they get here, so
 * that none of them has a rule for missing values. */
#ifndef PREDICTORS_MODELS_CAMPAIGN_MODELS_H
#define PREDICTORS_MODELS_CAMPAIGN_MODELS_H

#include "predictors/predictor.h"
#include "predictors/trees/ensemble_model.h"

extern const struct setting_spec mean_spec[], nnls_spec[], stepwise_spec[], svr_spec[], xgboost_spec[],
	network_spec[];

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

/* ---- svr.c ---- */
enum kernel { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID }; /* as libsvm counts them */
struct svr {
	size_t n_features, n_vectors;
	uint8_t kernel; /* enum kernel */
	uint8_t degree;
	double gamma, coef0, rho;
	double *vector; /* n_vectors x n_features; of a linear kernel one: the weights */
	double *coefficient;
};
struct svr *svr_new(size_t n_features, size_t n_vectors); /* all 0; NULL when out of memory */
void svr_destroy(void *self);
void svr_predict(const void *self, const double *x, size_t n_rows, double *out);
void svr_describe(const void *self, const struct dataset *names, struct json_writer *w);
int svr_save(const void *self, struct writer *w, struct err *err);
int svr_load(struct reader *r, size_t n_features, void **out_self, struct err *err);

/* ---- network.c ---- */
#define NETWORK_MAX_LAYERS 4
enum activation { ACTIVATE_RELU, ACTIVATE_TANH, ACTIVATE_SIGMOID };
struct layer {
	uint32_t in, out;
	double *w, *b; /* w: in x out, row-major */
};
struct network {
	size_t n_features, n_layers; /* hidden ones and the output */
	uint8_t activation;
	struct layer layer[NETWORK_MAX_LAYERS + 1];
	double *weights; /* of all layers, in a row */
	size_t n_weights;
};
struct network *network_new(size_t n_features, const uint32_t *width, size_t n_hidden); /* as svr_new() */
void network_place(struct network *m, double *weights); /* points the layers into one array of weights */
double network_activate(uint8_t how, double v);
void network_destroy(void *self);
void network_predict(const void *self, const double *x, size_t n_rows, double *out);
void network_describe(const void *self, const struct dataset *names, struct json_writer *w);
int network_save(const void *self, struct writer *w, struct err *err);
int network_load(struct reader *r, size_t n_features, void **out_self, struct err *err);

/* ---- all of a model but its fit ---- */
#define AFFINE_OPS                                                                                           \
	.predict = affine_predict, .describe = affine_describe, .save = affine_save, .load = affine_load,    \
	.destroy = free
#define MEAN_MODEL .name = "mean", .title = "the mean", .spec = mean_spec, AFFINE_OPS
#define NNLS_MODEL                                                                                           \
	.name = "nnls", .title = "linear model without negative coefficients", .spec = nnls_spec, AFFINE_OPS
#define STEPWISE_MODEL .name = "stepwise", .title = "stepwise regression", .spec = stepwise_spec, AFFINE_OPS
#define SVR_MODEL                                                                                            \
	.name = "svr", .title = "support vector regression", .spec = svr_spec, .predict = svr_predict,       \
	.describe = svr_describe, .save = svr_save, .load = svr_load, .destroy = svr_destroy
#define XGBOOST_MODEL .name = "xgboost", .title = "XGBoost", .spec = xgboost_spec, ENSEMBLE_MODEL_OPS
#define NETWORK_MODEL                                                                                        \
	.name = "network", .title = "neural network", .spec = network_spec, .predict = network_predict,      \
	.describe = network_describe, .save = network_save, .load = network_load, .destroy = network_destroy

#endif
