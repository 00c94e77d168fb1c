/* Trees that are summed: what a single tree, a forest and a boosted model predict with.
 * prediction(x) = base + (sum over trees, in order, of the leaf reached by x) / divisor.
 *
 * Four ways to evaluate it, which agree to the last bit because all add the same leaves in the same
 * order: the trees as grown; "walks", where features become the ranks of their value among the thresholds
 * and a node is eight bytes; "masks", for trees of at most 64 leaves, where each rank of each feature says
 * which leaves of a tree it leaves possible (after Lucchese et al., QuickScorer, SIGIR 2015); and an exact
 * look-up table over the grid of all thresholds. */
#ifndef PREDICTORS_TREES_ENSEMBLE_H
#define PREDICTORS_TREES_ENSEMBLE_H

#include <stdbool.h>

#include "predictors/file/bytes.h"
#include "predictors/trees/grow.h"

#define ENSEMBLE_MAX_TREES 100000
#define ENSEMBLE_MAX_NODES 200000000 /* over all trees */
#define LOOKUP_MAX_CELLS 262144      /* 2 MiB of doubles */
#define LOOKUP_MAX_ADDITIONS 2000000000 /* cells x trees: about a second of compiling */

struct walk_node {
	uint16_t cut;      /* rank of the threshold: right if rank(x) > cut */
	uint16_t slot;     /* feature, or n_features + feature where missing values go left */
	uint32_t left;     /* absolute index; a leaf points to itself and has cut = UINT16_MAX */
};

struct ensemble {
	size_t n_features, n_trees, n_nodes;
	uint32_t *first;              /* n_trees + 1: where each tree begins in node[] */
	struct tree_node *node;
	double *value;
	double base, divisor;

	/* Derived when made or loaded. */
	double **cut;                 /* per feature: its thresholds, ascending, distinct */
	uint32_t *n_cuts;
	struct walk_node *walk;       /* NULL: too many thresholds for 16 bits */
	uint8_t *tree_depth;
	struct leaf_masks *masks;     /* NULL: a tree has too many leaves, or the masks would be large */

	/* Derived by ensemble_compile(); NULL: the grid is too large. */
	double *cell;
	uint32_t *stride;
};

/* Copies the trees and prepares them for prediction. leaf_masks_build() makes that faster: it is for what
 * will be asked often, because a few rows are predicted sooner than it takes. */
int ensemble_new(const struct tree *tree, size_t n_trees, size_t n_features, double base, double divisor,
                 struct ensemble **out, struct err *err);
void ensemble_free(struct ensemble *e);

/* Number of cells a look-up table would have (SIZE_MAX: more than fit in a size_t). */
size_t ensemble_cells(const struct ensemble *e);
int ensemble_compile(struct ensemble *e, struct err *err); /* does nothing where the table is too large */

/* The fastest way there is: look-up, walks, trees. No allocation. */
void ensemble_predict(const struct ensemble *e, const double *x, size_t n_rows, double *out);
/* Each way by itself, for tests and benches. */
void ensemble_predict_trees(const struct ensemble *e, const double *x, size_t n_rows, double *out);
void ensemble_predict_walks(const struct ensemble *e, const double *x, size_t n_rows, double *out);
void ensemble_predict_masks(const struct ensemble *e, const double *x, size_t n_rows, double *out);

/* For the files of the ensemble: number of thresholds below x, which is the rank of x, 0..n. */
static inline uint32_t ensemble_rank(const double *cut, uint32_t n, double x)
{
	uint32_t at = 0;

	while (n > 0) { /* branchless halving: the compiler makes the choice a conditional move */
		uint32_t half = (n + 1) / 2;
		at = cut[at + half - 1] < x ? at + half : at;
		n -= half;
	}
	return at;
}
/* Leaves e->masks NULL where they do not fit. Loading does it. */
int leaf_masks_build(struct ensemble *e, struct err *err);
void leaf_masks_free(struct leaf_masks *m);

int ensemble_save(const struct ensemble *e, struct writer *w, struct err *err);
int ensemble_load(struct reader *r, size_t n_features, struct ensemble **out, struct err *err);

#endif
