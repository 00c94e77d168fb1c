/* T = T_queue * exp(F): the calibrated queueing model (queueing/calibrate.h) as the prior, and a forest on
 * the log residual, which learns what the prior gets wrong.
 *
 * Where a feature lies outside its training range, F is taken at the nearest point inside and shrunk by
 * 1 / (1 + d), d being how many training ranges it lies outside: far out the queueing model speaks alone. */
#ifndef PREDICTORS_MODELS_HYBRID_H
#define PREDICTORS_MODELS_HYBRID_H

#include "predictors/predictor.h"

extern const struct predictor_ops hybrid_ops;

#endif
