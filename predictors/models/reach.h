/* How far outside its table a model may carry a promise. Bounds are wider out there (widening.h), but that
 * was tested only a level or two beyond the rest, so there is an end to it. It lies beyond either end of a
 * column's range by half of the range: by the root of the ratio of its ends where all values are above 0, by
 * half of the distance elsewhere. Two kinds of models differ:
 *
 *   a model that has nothing but the table (trees, linear): at most a factor of 2, and from a column that
 *   never varied nowhere;
 *   a model that knows how time comes about (queueing, hybrid, gp): 2 at least, 10 at most; but a thousand
 *   times less and more epochs and samples, because work is a sum of parts that were measured. How well they
 *   are known is in the width of the bound.
 *
 * Categories, derived columns and columns that are missing have no such end: features.h and spread.h see to
 * them. */
#ifndef PREDICTORS_MODELS_REACH_H
#define PREDICTORS_MODELS_REACH_H

#include "predictors/model.h"

#define REACH_BY_TABLE 2.0
#define REACH_BY_LAW 10.0
#define REACH_OF_WORK 1000.0

/* From where to where the time model may be asked for a promise. False: the feature has no end. */
bool reach_of(const struct model *m, size_t feature, double *out_least, double *out_most);
/* The first feature of row x that lies beyond; -1: none. A load (njobs, processes and other_load) has no end:
 * less is no danger, and with more the bound is wider. */
int reach_beyond(const struct model *m, const double *x);
/* Is this value of a feature outside its range and worth a word? Less load than was measured is not, and
 * neither is hardly more. */
bool reach_is_notable(const struct model *m, const struct feature *f, double x);
/* The first feature of row x that is; -1: none. */
int reach_notable(const struct model *m, const double *x);

#endif
