/* The model `automl` of a bundle: the preparation of a campaign and its fitted technique, from the columns of
 * the table to the target. `postrider automl` makes it (automl/bundle.c); `postrider train` cannot fit it. */
#ifndef PREDICTORS_MODELS_PIPELINE_H
#define PREDICTORS_MODELS_PIPELINE_H

#include "predictors/predictor.h"

extern const struct predictor_ops automl_ops;

#define PREPARE_MAX_COLUMNS DATASET_MAX_FEATURES

enum made_by {
	MADE_NUMBER,     /* a column of the table */
	MADE_CLASS,      /* 1 where a column of the table has a value, else 0 */
	MADE_INVERSE,    /* 1 / a */
	MADE_LOG,
	MADE_PRODUCT,    /* a b c ... */
	MADE_RATIO,      /* a / b */
	MADE_ROOT_RATIO, /* sqrt(a / b) */
	MADE_ROOT_OVER,  /* sqrt(a) / b */
	N_MADE,
};
/* What a made column is for a row whose columns before it are in `v`. */
double made_value(enum made_by by, const uint32_t *of, size_t n_of, const double *v);

struct scaling { /* (x - mean) / scale */
	double mean, scale;
};

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
