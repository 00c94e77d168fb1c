/* How accuracy grows with training: a rising curve in the logarithm of the work done, with a handful of
 * parameters, fitted by nonlinear least squares. What the `curve` model, at the end, begins with.
 *
 *	position = log(epochs) + log(samples) - beta log(batch)
 *	accuracy = low + (high - low) / (1 + exp(-steep (position - middle)))
 *
 * With beta = 1 the position is the logarithm of the iterations, which is what counts for plain gradient
 * descent at a fixed learning rate; beta is fitted, because a learning rate that grows with the batch makes
 * up for the iterations it saves. The gap to `high` then closes like a power of the work (Hestness et al.,
 * Deep learning scaling is predictable, empirically, 2017) and early training has its slow start. Each
 * category has its own low, high, middle and steep.
 *
 * What the table does not tell stays near what is stated before: high and low at the extremes of training,
 * one shape for all categories, steep = 1, beta = 1. */
#ifndef PREDICTORS_MODELS_LEARNING_CURVE_H
#define PREDICTORS_MODELS_LEARNING_CURVE_H

#include <stdbool.h>

#include "predictors/file/bytes.h"
#include "predictors/data/dataset.h"
#include "predictors/predictor.h"

#define CURVE_MAX_CATEGORIES 16
#define CURVE_MAX_ROWS 4000 /* a few parameters need no more; larger tables are thinned evenly */

enum { CURVE_EPOCHS, CURVE_SAMPLES, CURVE_BATCH, CURVE_N_INPUTS };
enum { CURVE_LOW, CURVE_HIGH, CURVE_MIDDLE, CURVE_STEEP, CURVE_N_SHAPE }; /* steep as its logarithm */

struct learning_curve {
	int32_t at[CURVE_N_INPUTS];            /* feature; -1: none */
	double log_mean[CURVE_N_INPUTS];       /* over training: positions are relative to it */
	double log_low[CURVE_N_INPUTS], log_high[CURVE_N_INPUTS];
	uint32_t n_categories;
	uint32_t category[CURVE_MAX_CATEGORIES];
	double category_mean[CURVE_MAX_CATEGORIES]; /* stands in for a missing one */
	double base, range;                    /* accuracy = base + range * the curve; range 0: a constant */
	double beta;
	double shape[CURVE_N_SHAPE];
	double own[CURVE_MAX_CATEGORIES][CURVE_N_SHAPE]; /* what a category adds */
};

/* A table without roles, or in which nothing of the position varies, gets a constant: no failure. */
int learning_curve_fit(const struct dataset *d, struct learning_curve *out, struct err *err);

/* An input that is missing or not above 0 counts as the mean of training, one a thousand times outside its
 * range as that. */
double learning_curve_position(const struct learning_curve *c, const double *x);
double learning_curve_at(const struct learning_curve *c, const double *x, double position);

void learning_curve_save(const struct learning_curve *c, struct writer *w);
int learning_curve_load(struct reader *r, size_t n_features, struct learning_curve *out, struct err *err);

/* The model `curve` (curve_model.c): accuracy = curve + F, the learning curve as the prior and a forest on
 * what it gets wrong. The same idea as the hybrid's, for accuracy.
 *
 * F sees a row's place on the curve instead of its epochs. So an error of the curve at some place is known
 * for every batch and number of epochs at that place, and more epochs than were ever run are within F's range
 * if smaller batches have come that far. Beyond, F is taken at the nearest point inside and shrunk by 1 / (1
 * + d), d being how many training ranges it lies outside. Answers stay within 0 and 1 where all of training
 * did. */
extern const struct predictor_ops curve_ops;

#endif
