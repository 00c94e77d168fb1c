/* Random forests (Breiman 2001) and single trees. The ops are in the table of predictor.c; the rest is
 * what the grid search needs to share trees between settings. */
#ifndef PREDICTORS_FOREST_H
#define PREDICTORS_FOREST_H

#include "predictors/ensemble.h"
#include "predictors/predictor.h"

extern const struct predictor_ops forest_ops, tree_ops;

struct forest_params {
	struct grow_params grow;
	size_t n_trees;
	bool bootstrap;
};

/* What the settings mean for a table of n rows and p features. */
struct forest_params forest_params_of(const struct settings *s, size_t n_rows, size_t n_features);

/* The weights of tree t: how often each row was drawn (1 each without bootstrap). Returns the tree's key. */
uint64_t forest_draw(uint64_t seed, size_t tree, bool bootstrap, size_t n_rows, uint32_t *weight);

#endif
