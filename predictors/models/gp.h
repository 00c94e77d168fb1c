/* T = T_queue * exp(G): the calibrated queueing model (queueing/calibrate.h) as the prior, and a Gaussian
 * process on the log residual. With few rows it is far nearer than the hybrid, whose trees need many, and it
 * knows how far off it may be: little where the table has measured, more between, most where it has not
 * (`spread`).
 *
 * Covariance of two settings, over the logarithms of positive numbers and 0/1 categories, in units of their
 * spread:
 *
 *   level + linear * sum z z' + smooth * exp(-sum (z - z')^2 / 2 l^2)   and  noise  of a run on the diagonal
 *
 * The variances and one length l a factor (one for all categories) have the largest posterior density, under
 * priors that say what times of jobs are like: errors of a queueing model of a fifth, noise of a few percent,
 * lengths of two or three spreads. Rows of one setting count as their mean with a smaller noise, which is
 * exact. The cost grows with the cube of the settings, so GP_POINTS of them, drawn at random, are used at
 * most. Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, MIT Press 2006, chapters 2
 * and 5. */
#ifndef PREDICTORS_MODELS_GP_H
#define PREDICTORS_MODELS_GP_H

#include "predictors/predictor.h"

#define GP_POINTS 400

extern const struct predictor_ops gp_ops;

#endif
