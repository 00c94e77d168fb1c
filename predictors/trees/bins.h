/* The features of a dataset as small codes, sorted once for every tree that will be grown on them.
 * A code is the rank of a value among the feature's distinct values, so `code <= c` and
 * `x <= threshold` are the same question. Up to BINS_MAX_LEVELS distinct values are kept exactly; a
 * feature with more (a table with as many rows) is cut into BINS_QUANTILES parts of equal row count. */
#ifndef PREDICTORS_TREES_BINS_H
#define PREDICTORS_TREES_BINS_H

#include "common/pool.h"
#include "predictors/data/dataset.h"

#define BINS_MAX_LEVELS 65534 /* the code after the last level stands for a missing value */
#define BINS_QUANTILES 4096   /* a histogram of 4096 entries of 16 bytes fits a 512 KiB L2 cache many times */

struct bin_feature {
	uint32_t n_levels;  /* codes 0..n_levels-1; n_levels itself: missing */
	double *low, *high; /* smallest and largest value of each level (equal unless cut into quantiles) */
};

struct bins {
	size_t n_rows, n_features;
	uint16_t *code;     /* column-major: code[f * n_rows + row] */
	struct bin_feature *feature;
};

int bins_new(const struct dataset *d, struct pool *pool, struct bins **out, struct err *err);
void bins_free(struct bins *b);

/* Row numbers in ascending order of v (ties by row); NaN last. out has room for n. */
int bins_order(const double *v, size_t n, uint32_t *out, struct err *err);

#endif
