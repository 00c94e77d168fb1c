/* Which rows an experiment trains on, chooses hyper-parameters on and validates on. They follow from the
 * seed, the run and the folds alone. */
#ifndef AUTOML_FOLDS_H
#define AUTOML_FOLDS_H

#include "common/rng.h"
#include "automl/prepare.h"

struct fold_rows {
	struct row_list training, hp_selection, validation;
	struct row_list both; /* training and hp_selection: what a chosen point is fitted to for validation */
};

struct fold { /* which split */
	size_t run, validation, hp;
};

size_t folds_of(const struct campaign *c, enum holdout how); /* c->folds for KFold, else 1 */

/* The rows of one experiment; ERR_NODATA where a set would be empty. */
int fold_rows_make(const struct campaign *c, const struct prepared *p, struct fold at, struct fold_rows *out,
                   struct err *err);
void fold_rows_release(struct fold_rows *f);

/* The rows that a thread asked for last, and the bins of their features: the experiments of a fold follow
 * each other, and either takes longer than many a fit. All zero: none yet. */
struct fold_keeper {
	bool has;
	struct fold at;
	struct fold_rows rows;
	struct bins *bins; /* of the training rows; NULL: no tree was fitted to them */
};

/* Like fold_rows_make; *out is the keeper's and good until the next call. */
int fold_keeper_rows(struct fold_keeper *k, const struct campaign *c, const struct prepared *p,
                     struct fold at, const struct fold_rows **out, struct err *err);
void fold_keeper_release(struct fold_keeper *k);

struct row_split {
	const struct row_list *from;
	const uint32_t *group; /* rows of a group stay together; NULL: each is its own */
	struct row_list *held, *rest;
};
/* Draws n of the rows (whole groups, as near as they come); `held` gets them and `rest` the others, both
 * ascending. */
int folds_draw(const struct row_split *s, size_t n, struct rng *rng, struct err *err);
/* Fold k of n contiguous parts of the rows, as scikit-learn's KFold without shuffling. */
int folds_contiguous(const struct row_list *from, size_t k, size_t n, struct row_list *held,
                     struct row_list *rest, struct err *err);

#endif
