/* Ways to hold rows back: k-fold, repeated hold-out, leave-one-group-out, and by level of a column.
 * Groups (replicates of one setting) stay on one side whenever the dataset has group labels. */
#ifndef PREDICTORS_DATA_SPLIT_H
#define PREDICTORS_DATA_SPLIT_H

#include <stdbool.h>

#include "predictors/data/dataset.h"

#define SPLIT_MAX_FOLDS 10000
#define SPLIT_MAX_INDEXES ((size_t)1 << 28) /* over all folds: 1 GiB */

enum split_kind {
	SPLIT_KFOLD,          /* `folds` parts, each held out once */
	SPLIT_HOLDOUT,        /* `folds` repetitions that hold out `share` of the rows (or groups) */
	SPLIT_LEAVE_GROUP,    /* each group (or row) held out once */
	SPLIT_INTERPOLATE,    /* each inner level of `feature` held out once, or the levels given, at once */
	SPLIT_EXTRAPOLATE,    /* rows with `feature` > `bound` held out (bound NaN: the highest level) */
};

struct split_params {
	enum split_kind kind;
	size_t folds;         /* KFOLD, HOLDOUT */
	double share;         /* HOLDOUT: of the rows, 0 < share < 1 */
	size_t feature;       /* INTERPOLATE, EXTRAPOLATE */
	const double *level; size_t n_levels; /* INTERPOLATE: held out at once; none: each inner one */
	double bound;
	uint64_t seed;
};

struct fold {
	uint32_t *train, *test;
	size_t n_train, n_test;
};

struct split {
	struct fold *fold;
	size_t n_folds;
};

/* ERR_NODATA with the reason where a fold would be empty or there are fewer groups than folds; ERR_ARG
 * past SPLIT_MAX_FOLDS folds or SPLIT_MAX_INDEXES row numbers. Rows are in ascending order on both
 * sides. A group that lies on both sides of a level (INTERPOLATE, EXTRAPOLATE) keeps its held-out rows
 * and loses the others. */
int split_make(const struct dataset *d, const struct split_params *p, struct split **out, struct err *err);
void split_free(struct split *s);

/* True when equal rows of features lie on both sides of a fold: replicates leak. Also when memory for
 * the check ran out: better a warning too many. */
bool split_leaks(const struct dataset *d, const struct split *s);

#endif
