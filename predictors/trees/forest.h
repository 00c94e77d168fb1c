/* Random forests (Breiman 2001) and single trees. The ops are in the table of predictor.c; the rest is
 * what the grid search needs to share trees between settings. */
#ifndef PREDICTORS_TREES_FOREST_H
#define PREDICTORS_TREES_FOREST_H

#include "predictors/trees/ensemble.h"
#include "predictors/predictor.h"

extern const struct predictor_ops forest_ops, tree_ops;

/* The settings of every model that has trees of this kind in it, by the names that forest_params_of() reads.
 * They differ in the default number of trees and the default size of leaves. */
extern const char *const forest_criterion_words[], *const forest_max_features_words[], *const forest_no_yes[];
#define FOREST_GROWTH_SETTINGS(LEAF)                                                                         \
	{ .name = "depth",                                                                                   \
	  .otherwise = 0,                                                                                    \
	  .min = 0,                                                                                          \
	  .max = 10000,                                                                                      \
	  .integer = true,                                                                                   \
	  .help = "levels below the root; 0: no limit" },                                                    \
	{ .name = "criterion",                                                                               \
	  .otherwise = 0,                                                                                    \
	  .min = 0,                                                                                          \
	  .max = 1,                                                                                          \
	  .words = forest_criterion_words,                                                                   \
	  .help = "what a split minimises: squared or absolute error" },                                     \
	{ .name = "max_features",                                                                            \
	  .otherwise = -1,                                                                                   \
	  .min = 0,                                                                                          \
	  .max = DATASET_MAX_FEATURES,                                                                      \
	  .words = forest_max_features_words,                                                                \
	  .words_or_number = true,                                                                           \
	  .help = "features looked at per split: all, sqrt, log2, a number, or a share below 1" },           \
	{ .name = "min_samples_split",                                                                       \
	  .otherwise = 2,                                                                                    \
	  .min = 0,                                                                                          \
	  .max = 1e9,                                                                                        \
	  .help = "rows a node needs to be split; a share of all rows if below 1" },                         \
	{ .name = "min_samples_leaf",                                                                        \
	  .otherwise = (LEAF),                                                                               \
	  .min = 0,                                                                                          \
	  .max = 1e9,                                                                                        \
	  .help = "rows each side of a split must keep; a share of all rows if below 1" }
#define FOREST_SETTINGS(TREES, LEAF, HELP)                                                                   \
	{ .name = "trees",                                                                                   \
	  .otherwise = (TREES),                                                                              \
	  .min = 1,                                                                                          \
	  .max = ENSEMBLE_MAX_TREES,                                                                         \
	  .integer = true,                                                                                   \
	  .help = (HELP) },                                                                                  \
	FOREST_GROWTH_SETTINGS(LEAF),                                                                        \
	{ .name = "bootstrap",                                                                               \
	  .otherwise = 1,                                                                                    \
	  .min = 0,                                                                                          \
	  .max = 1,                                                                                          \
	  .words = forest_no_yes,                                                                            \
	  .help = "grow each tree on a sample drawn with replacement" }

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
