/* A linear model, for linear.c, which fits it, and linear_io.c, which describes, writes and reads it. */
#ifndef PREDICTORS_MODELS_LINEAR_INTERNAL_H
#define PREDICTORS_MODELS_LINEAR_INTERNAL_H

#include "predictors/models/linear.h"

#define MAX_ORDER 10 /* order k needs 2^k - 1 terms at least: 11 would break LINEAR_MAX_TERMS */
#define MAX_EXPONENT 1000
#define MAX_SCALED 0x1p60 /* features are held at so many times their training range: 10 still multiply */
#define MAX_COEFFICIENT 1e100 /* in scaled units; more is not a model but a division by nearly nothing */

struct term {
	uint16_t index[MAX_ORDER]; /* features, ascending */
	uint8_t order;
	bool aliased;
	double mean, sd; /* over the training rows, scaled units */
	double coefficient;
};

struct linear {
	size_t n_features, n_terms;
	double *fill; /* per feature: training mean, stands in for a missing value */
	double *scale; /* per feature: 2^-exponent */
	int *exponent;
	struct term *term;
	double y_mean;
	int y_exponent;
	bool log; /* fitted to the logarithm of the target */
	bool converged;
};

struct linear *linear_new(size_t n_features, size_t n_terms); /* NULL when out of memory */
void linear_destroy(void *self);

/* As in predictor.h. */
void linear_describe(const void *self, const struct dataset *names, struct json_writer *w);
void linear_remark(const void *self, const struct dataset *names, char *out, size_t size);
int linear_save(const void *self, struct writer *w, struct err *err);
int linear_load(struct reader *r, size_t n_features, void **out_self, struct err *err);

#endif
