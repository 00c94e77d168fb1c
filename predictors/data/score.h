/* How far predictions are from what happened. */
#ifndef PREDICTORS_DATA_SCORE_H
#define PREDICTORS_DATA_SCORE_H

#include <stddef.h>

struct score {
	double mse, r2, mape, mae; /* mape as a fraction, rows with y = 0 left out; r2 NaN for constant y */
	double log_mse; /* of the logarithms; INFINITY where a prediction is not above 0, NaN where a y is
	                   not */
}; /* all NaN for no rows */

struct score score_of(const double *y, const double *predicted, size_t n);

/* Over the folds of a split: each measure over the folds where it is a number (r2 has none in a fold
 * of one row); NaN where it is one in no fold. sd has n-1 below the line, 0 for a single fold. */
struct score_summary {
	struct score mean, sd;
	size_t n_folds;
};
struct score_summary score_summarise(const struct score *fold, size_t n_folds);

#endif
