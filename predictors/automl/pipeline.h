/* The model `automl` of a bundle: the preparation of a campaign and its fitted technique, from the columns of
 * the table to the target. It is made by bundle.c; `postrider train` cannot fit it. */
#ifndef PREDICTORS_AUTOML_PIPELINE_H
#define PREDICTORS_AUTOML_PIPELINE_H

#include "predictors/automl/fitted.h"

extern const struct predictor_ops automl_ops;

struct pipe_column {
	enum made_by by;
	uint32_t feature; /* NUMBER, CLASS: of the bundle's features */
	/* CLASS: the value of the feature that gives 1 (a category of two values is one feature, 0 or 1) */
	double equals;
	uint32_t *of;
	uint32_t n_of;
};

struct pipeline {
	size_t n_features;          /* of the bundle */
	double *fill;               /* n_features: the training mean, for a missing value */
	struct pipe_column *column; size_t n_columns;
	uint32_t *x; size_t n_x;    /* what the technique sees */
	struct scaling *scale;      /* n_x; NULL: none */
	struct scaling y;
	struct predictor inner;
	char technique[32];
};
void pipeline_free(void *self);

#endif
