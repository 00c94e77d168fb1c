/* Growing one regression tree on binned features, after Breiman, Friedman, Olshen and Stone (CART, 1984),
 * with the choices of scikit-learn where CART leaves them open: rows count once for the min_samples limits,
 * with any weight; a split of zero gain is made; the threshold is the midpoint, the first best candidate
 * wins. One deliberate difference: the random order in which a node looks at the features depends only on the
 * tree's key and the node's place in the tree. So a tree grown to depth 9 contains its depth-4 self exactly,
 * which the grid search relies on. Called by forest.c and boost.c; the two criteria live in grow_squared.c
 * and grow_absolute.c. */
#ifndef PREDICTORS_TREES_GROW_H
#define PREDICTORS_TREES_GROW_H

#include "predictors/trees/bins.h"

enum criterion { CRITERION_SQUARED, CRITERION_ABSOLUTE };

struct tree_node {
	double threshold;     /* x <= threshold goes left */
	uint32_t left;        /* index in the tree; the right child is left + 1; 0: a leaf */
	uint16_t feature;
	uint8_t missing_left; /* where a missing (NaN) value goes */
	uint8_t depth;        /* 255: that or more */
};

struct tree {
	size_t n_nodes, cap;
	struct tree_node *node; /* breadth first: cutting at a depth is taking a prefix */
	double *value;          /* what the node would predict as a leaf; inner nodes too */
	double *importance;     /* per feature: total decrease of the weighted impurity */
};

struct grow_params {
	enum criterion criterion;
	uint32_t max_depth;     /* UINT32_MAX: no limit */
	uint32_t max_features;  /* looked at per node, 1..n_features */
	uint32_t min_split, min_leaf; /* in rows */
};

struct grower; /* the scratch of one thread; reusable for any number of trees on the same bins */

/* `order`: rows by ascending y; needed for CRITERION_ABSOLUTE, otherwise NULL. Borrows everything. */
int grower_new(const struct bins *bins, const struct grow_params *p, const uint32_t *order,
               struct grower **out, struct err *err);
void grower_free(struct grower *g);

/* Rows with weight 0 are left out; at least one must be in. Fills `out` (all zero or used before;
 * its memory is reused). */
int grower_tree(struct grower *g, const double *y, const uint32_t *weight, uint64_t key,
                struct tree *out, struct err *err);
void tree_release(struct tree *t);

/* The leaf (or node at max_depth) where row x ends. */
static inline uint32_t tree_leaf(const struct tree_node *node, const double *x)
{
	uint32_t at = 0;

	while (node[at].left) {
		double v = x[node[at].feature];
		at = node[at].left + (v != v ? !node[at].missing_left : v > node[at].threshold);
	}
	return at;
}

#endif
