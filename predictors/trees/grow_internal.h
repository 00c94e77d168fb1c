/* Shared by grow.c and its two criteria, grow_squared.c and grow_absolute.c. */
#ifndef PREDICTORS_TREES_GROW_INTERNAL_H
#define PREDICTORS_TREES_GROW_INTERNAL_H

#include <stdbool.h>

#include "predictors/trees/grow.h"

/* What the rows of one node have at one level of one feature. */
struct level {
	uint32_t code;
	uint32_t n_rows;
	uint32_t weight;
	double sum;        /* of weight * y; filled for the squared criterion only */
};

struct histogram_cell {
	double sum;
	uint64_t count; /* rows << 32 | weight: one addition for both */
};
#define ONE_ROW (1ULL << 32)

struct split_choice {
	double score;      /* larger is better; the scale belongs to the criterion */
	bool found;
	uint16_t feature;
	uint32_t cut, next;/* codes of the levels on either side of the threshold */
	bool missing_left, missing_seen; /* where missing rows go; were there any? */
	double left_sum;   /* squared only */
	uint32_t left_weight, left_rows;
};

struct grower {
	const struct bins *bins;
	struct grow_params p;
	const uint32_t *order;
	size_t max_levels;

	/* The rows of the tree, physically grouped by node: a node is the range [lo, hi). */
	const uint16_t *codes;   /* column-major; those of the bins, or own_codes */
	uint16_t *own_codes;     /* large tables only */
	uint32_t *row;           /* in `codes`: looked up through it, so that a split moves three columns */
	double *y;
	uint32_t *weight;
	uint8_t *side;           /* 1: goes left; for the node at hand */
	void *spill;             /* the right-hand rows while a column is being parted */

	/* Per node. */
	uint32_t *node_lo, *node_hi, *node_weight;
	uint64_t *node_key;
	uint64_t *node_constant; /* bit f (of the first 64): feature f has one value in this node and so below
	                          * it */
	double *node_sum;        /* squared: sum of weight*y; absolute: sum of weight*|y - median| */
	size_t node_cap;

	/* Per feature of the node at hand. */
	struct histogram_cell *cell;
	struct level *level;
	size_t n_levels;
	uint32_t missing_rows, missing_weight;
	double missing_sum;
	uint32_t *dense;         /* per row of the node: index into level[]; n_levels for missing */
	uint32_t *to_dense;      /* per code */
	uint64_t *sort_key, *sort_spare;

	/* Absolute criterion: see grow_absolute.c. */
	double *weight2, *gap, *cumulative2;
	uint32_t *next, *prev, *by_level, *level_end;
	double *right_score;
	int64_t *lane_mask, *missing_mask;
};

/* Fills level[], n_levels, missing_* (and dense[], if wanted) for feature f of the rows [lo, hi). */
void grower_levels(struct grower *g, size_t f, size_t lo, size_t hi, bool want_dense);

/* Is the split after level[i] admissible, and better than *best? A candidate replaces the best only if it is
 * strictly better. `left` says what lies on its left side. */
static inline void grower_consider(const struct grower *g, size_t f, uint32_t node, size_t i,
                                   const struct split_choice *left, double score, struct split_choice *best)
{
	uint32_t rows = g->node_hi[node] - g->node_lo[node], right_rows = rows - left->left_rows;

	if (left->left_rows < g->p.min_leaf || right_rows < g->p.min_leaf || !left->left_rows || !right_rows)
		return;
	if (best->found && !(score > best->score))
		return;
	*best = *left;
	best->score = score;
	best->found = true;
	best->feature = (uint16_t)f;
	best->cut = g->level[i].code;
	best->next = i + 1 < g->n_levels ? g->level[i + 1].code : g->level[i].code;
	best->missing_seen = g->missing_rows > 0;
}

/* The best split of feature f, if better than *best. False: the feature is constant in this node. */
bool grow_squared_search(struct grower *g, size_t f, uint32_t node, struct split_choice *best);
bool grow_absolute_search(struct grower *g, size_t f, uint32_t node, struct split_choice *best);

int grow_absolute_alloc(struct grower *g);
void grow_absolute_release(struct grower *g);
void grow_absolute_enter(struct grower *g, uint32_t node); /* before the features of a node */

/* Weighted medians and sums of weighted absolute deviations of the rows with side[i] == 0 and == 1 in
 * [lo, hi); each side has total weight weight[k], and gap[] is that of the node (grow_absolute_enter). */
struct side_summary {
	double median, deviation;
};
void grow_absolute_sides(const struct grower *g, size_t lo, size_t hi, const uint32_t weight[2],
                         struct side_summary out[2]);

#endif
