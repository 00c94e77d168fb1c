/* accuracy = curve + F: the learning curve (learning_curve.h) as the prior, and a forest on what it gets
 * wrong. The same idea as the hybrid's, for accuracy.
 *
 * F sees a row's place on the curve instead of its epochs. So an error of the curve at some place is known
 * for every batch and number of epochs at that place, and more epochs than were ever run are within F's range
 * if smaller batches have come that far. Beyond, F is taken at the nearest point inside and shrunk by 1 / (1
 * + d), d being how many training ranges it lies outside. Answers stay within 0 and 1 where all of training
 * did. */
#ifndef PREDICTORS_MODELS_CURVE_MODEL_H
#define PREDICTORS_MODELS_CURVE_MODEL_H

#include "predictors/predictor.h"

extern const struct predictor_ops curve_ops;

#endif
