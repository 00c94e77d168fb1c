/* The accuracy of a run whose batch changes. The law of the learning curve (learning_curve.h) counts
 * effective iterations: an epoch with batch b is samples / b^beta of them. They add up, whatever the order,
 * so that a run of several batches is as accurate as a run of one batch with as many:
 *
 *	effort(run) = sum over its epochs of 1 / b^beta
 *
 * The samples of an epoch are the same for every batch, and left out. What runs of one batch reach is asked
 * of the accuracy model, or taken from a table; between their efforts the accuracy is a straight line in the
 * logarithm of the effort. Whoever steers a job asks this, and so do the worlds of the simulator, each with
 * its own beta. */
#ifndef PREDICTORS_MODELS_MIXED_RUN_H
#define PREDICTORS_MODELS_MIXED_RUN_H

#include <stddef.h>

#define MIXED_RUN_BETA 1.0      /* where nothing tells: plain iterations count */
#define MIXED_RUN_POINTS 256

/* NaN beta: MIXED_RUN_BETA. */
double mixed_run_effort(double epochs, double batch, double beta);
/* The epochs at this batch that are as much. */
double mixed_run_epochs(double effort, double batch, double beta);

struct mixed_run_curve {              /* what runs of one batch reach, all zero: nothing is known */
	double log_effort[MIXED_RUN_POINTS], accuracy[MIXED_RUN_POINTS];
	size_t n;
};
/* Adds a run of one batch; one that is not a number, or one too many, is left out. */
void mixed_run_add(struct mixed_run_curve *m, double effort, double accuracy);
/* To be called when all are added: sorts them, and lets the accuracy rise with the effort (pooling adjacent
 * violators). */
void mixed_run_settle(struct mixed_run_curve *m);
/* NaN: nothing is known. Outside the runs that were added it is that of the nearest. */
double mixed_run_at(const struct mixed_run_curve *m, double effort);

#endif
