/* Random effects in log time: what numbers, categories and their pairs add to the logarithm of a time, each
 * kind of effect with a variance of its own that the table itself tells.
 *
 *   y = mean + numbers + categories + squares and products of numbers + a category's own slopes
 *            + pairs of categories + rest
 *
 * A kind of effect that the rows do not show gets a variance near 0, and so no say. For a combination that
 * was never measured the effects of what is known of it add up, and what is not known counts as 0, the mean
 * of its kind; its uncertainty is the sum of the variances that were not met. So an expected time stays
 * within what the table supports, and the spread says how far it may be off.
 *
 * Variances have the largest evidence (MacKay, Neural Computation 4, 1992, 448-472: "Bayesian interpolation";
 * the same as restricted maximum likelihood of a mixed model), with one pseudo-effect of EFFECTS_PRIOR_SD
 * each. Rows of one setting count as one point.
 *
 * Outside the training range, squares and products stay as they are at its end. `law`: numbers go on as the
 * straight line in logarithms that they are inside it (there is no other law); otherwise they stay, too,
 * because the model below (a queue) has a law of its own. */
#ifndef PREDICTORS_MODELS_EFFECTS_H
#define PREDICTORS_MODELS_EFFECTS_H

#include "predictors/models/axes.h"

#define EFFECTS_AXES 64
#define EFFECTS_COLUMNS 192 /* a kind of effect that does not fit any more is left out */

struct effects;
struct json_writer;

/* y: a value for each row of d, NaN: left out. */
int effects_fit(const struct dataset *d, const double *y, bool law, struct effects **out, struct err *err);
void effects_free(struct effects *e);

/* What to add to log time at row x. No allocation. */
double effects_at(const struct effects *e, const double *x);
/* The same of many rows. */
void effects_at_rows(const struct effects *e, const double *x, size_t n_rows, size_t n_features, double *out);
/* The standard deviation of that, with the rest of a point. */
double effects_spread(const struct effects *e, const double *x);

/* "3 numbers 0.41, categories 0.22, ...": standard deviations of the kinds of effects, for people. */
void effects_describe(const struct effects *e, struct json_writer *w);

void effects_save(const struct effects *e, struct writer *w);
int effects_load(struct reader *r, size_t n_features, struct effects **out, struct err *err);

#endif
