/* A finished set of trees that predicts: walking the trees, or an exact table of cells. Read ensemble_masks.c
 * next. */
#include "predictors/trees/ensemble.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"

#define BLOCK 32 /* rows whose ranks are held at once: the nodes of a tree are read once per block */
#define WALK_SLOTS                                                                                           \
	512 /* ranks of a row on the stack, twice the number of features; else the trees as grown */

static int prepare(struct ensemble *e, struct err *err);

int ensemble_new(const struct tree *tree, size_t n_trees, size_t n_features, double base, double divisor,
		 struct ensemble **out, struct err *err)
{
	struct ensemble *e = mem_calloc(1, sizeof *e);
	size_t at = 0;
	int status;

	if (!e)
		return err_nomem(err, "%zu trees", n_trees);
	e->n_features = n_features;
	e->n_trees = n_trees;
	e->base = base;
	e->divisor = divisor;
	for (size_t t = 0; t < n_trees; t++)
		e->n_nodes += tree[t].n_nodes;
	if (e->n_nodes > ENSEMBLE_MAX_NODES) {
		size_t n = e->n_nodes;
		ensemble_free(e);
		return err_fail(err, ERR_ARG,
				"the trees would have %zu nodes, more than %d: limit depth or "
				"raise min_samples_leaf",
				n, ENSEMBLE_MAX_NODES);
	}
	e->first = mem_array(n_trees + 1, sizeof *e->first);
	e->node = mem_array(e->n_nodes, sizeof *e->node);
	e->value = mem_array(e->n_nodes, sizeof *e->value);
	if (!e->first || !e->node || !e->value) {
		ensemble_free(e);
		return err_nomem(err, "%zu trees", n_trees);
	}
	for (size_t t = 0; t < n_trees; t++) {
		e->first[t] = (uint32_t)at;
		memcpy(e->node + at, tree[t].node, tree[t].n_nodes * sizeof *e->node);
		memcpy(e->value + at, tree[t].value, tree[t].n_nodes * sizeof *e->value);
		at += tree[t].n_nodes;
	}
	e->first[n_trees] = (uint32_t)at;
	status = prepare(e, err);
	if (status) {
		ensemble_free(e);
		return status;
	}
	*out = e;
	return 0;
}

void ensemble_free(struct ensemble *e)
{
	if (!e)
		return;
	for (size_t f = 0; e->cut && f < e->n_features; f++)
		free(e->cut[f]);
	free(e->cut);
	free(e->n_cuts);
	free(e->first);
	free(e->node);
	free(e->value);
	free(e->walk);
	free(e->tree_depth);
	leaf_masks_free(e->masks);
	free(e->cell);
	free(e->stride);
	free(e);
}

/* ---- the derived form ---- */

#define CUTS_IN_ORDER 512 /* up to so many distinct thresholds are kept sorted while they are collected */

/* Forests on designed experiments repeat a few thresholds thousands of times: most are found at once. The
 * first `sorted` entries are in order; others wait behind them until the end. */
static void note_cut(double *cut, uint32_t *n, uint32_t *sorted, double threshold)
{
	uint32_t at = ensemble_rank(cut, *sorted, threshold);

	if (at < *sorted && cut[at] == threshold)
		return;
	if (*sorted < CUTS_IN_ORDER) {
		memmove(cut + at + 1, cut + at, (*sorted - at) * sizeof *cut);
		cut[at] = threshold;
		(*sorted)++;
	} else {
		cut[*n] = threshold;
	}
	(*n)++;
}

static int collect_cuts(struct ensemble *e)
{
	uint32_t *sorted = mem_calloc(e->n_features, sizeof *sorted);

	e->cut = mem_calloc(e->n_features, sizeof *e->cut);
	e->n_cuts = mem_calloc(e->n_features, sizeof *e->n_cuts);
	if (!sorted || !e->cut || !e->n_cuts)
		goto failed;
	for (size_t i = 0; i < e->n_nodes; i++)
		if (e->node[i].left)
			e->n_cuts[e->node[i].feature]++;
	for (size_t f = 0; f < e->n_features; f++) {
		e->cut[f] = mem_array(e->n_cuts[f], sizeof **e->cut);
		if (!e->cut[f])
			goto failed;
		e->n_cuts[f] = 0;
	}
	for (size_t i = 0; i < e->n_nodes; i++) {
		size_t f = e->node[i].feature;
		if (e->node[i].left)
			note_cut(e->cut[f], &e->n_cuts[f], &sorted[f], e->node[i].threshold);
	}
	for (size_t f = 0; f < e->n_features; f++) {
		uint32_t n = e->n_cuts[f], kept = 0;
		if (n == sorted[f])
			continue;
		stats_sort(e->cut[f], n);
		for (uint32_t i = 0; i < n; i++)
			if (i == 0 || e->cut[f][i] != e->cut[f][kept - 1])
				e->cut[f][kept++] = e->cut[f][i];
		e->n_cuts[f] = kept;
	}
	free(sorted);
	return 0;
failed:
	free(sorted);
	return -1;
}

static int prepare(struct ensemble *e, struct err *err)
{
	bool fits = 2 * e->n_features <= WALK_SLOTS;

	e->tree_depth = mem_calloc(e->n_trees, sizeof *e->tree_depth);
	if (!e->tree_depth || collect_cuts(e))
		return err_nomem(err, "the thresholds of %zu trees", e->n_trees);
	for (size_t t = 0; t < e->n_trees; t++) {
		e->tree_depth[t] =
			e->node[e->first[t + 1] - 1].depth; /* breadth first: the last is deepest */
		fits &= e->tree_depth[t] < 255;
	}
	for (size_t f = 0; f < e->n_features; f++)
		fits &= e->n_cuts[f] < UINT16_MAX - 1;
	if (!fits)
		return 0;
	e->walk = mem_array(e->n_nodes, sizeof *e->walk);
	if (!e->walk)
		return err_nomem(err, "%zu nodes", e->n_nodes);
	for (size_t t = 0; t < e->n_trees; t++)
		for (uint32_t i = e->first[t]; i < e->first[t + 1]; i++) {
			const struct tree_node *n = &e->node[i];
			struct walk_node *w = &e->walk[i];

			if (!n->left) {
				*w = (struct walk_node){ .cut = UINT16_MAX, .left = i };
				continue;
			}
			w->cut = (uint16_t)ensemble_rank(e->cut[n->feature], e->n_cuts[n->feature],
							 n->threshold);
			w->slot = (uint16_t)(n->missing_left ? e->n_features + n->feature : n->feature);
			w->left = e->first[t] + n->left;
		}
	return 0;
}

/* ---- prediction ---- */

void ensemble_predict_trees(const struct ensemble *e, const double *x, size_t n_rows, double *out)
{
	for (size_t i = 0; i < n_rows; i++) {
		double sum = 0.0;
		for (size_t t = 0; t < e->n_trees; t++) {
			uint32_t first = e->first[t];
			sum += e->value[first + tree_leaf(e->node + first, x + i * e->n_features)];
		}
		out[i] = e->base + sum / e->divisor;
	}
}

/* Ranks of one row, twice: missing values rank above every threshold in the first half (they go
 * right) and below every one in the second (they go left). Rank UINT16_MAX never occurs otherwise. */
static void rank_row(const struct ensemble *e, const double *x, uint16_t *rank)
{
	for (size_t f = 0; f < e->n_features; f++) {
		uint16_t r = (uint16_t)ensemble_rank(e->cut[f], e->n_cuts[f], x[f]);
		bool missing = isnan(x[f]);
		rank[f] = missing ? UINT16_MAX - 1 : r;
		rank[e->n_features + f] = missing ? 0 : r;
	}
}

static inline uint32_t step(const struct walk_node *walk, uint32_t at, const uint16_t *rank)
{
	struct walk_node n = walk[at];

	return n.left + (rank[n.slot] > n.cut);
}

/* R rows through two trees at a time: the walks do not depend on each other, so they overlap in the
 * processor. A leaf points to itself, so that every row takes as many steps as the deeper tree has levels,
 * without a test. Sums are made tree after tree. */
static inline __attribute__((always_inline)) void
walk_pair(const struct ensemble *e, size_t t, const uint16_t *rank, size_t stride, size_t R, double *sum)
{
	uint32_t depth = e->tree_depth[t] > e->tree_depth[t + 1] ? e->tree_depth[t] : e->tree_depth[t + 1];
	uint32_t a[4], b[4];

#pragma GCC unroll 4
	for (size_t r = 0; r < R; r++) {
		a[r] = e->first[t];
		b[r] = e->first[t + 1];
	}
	for (uint32_t k = 0; k < depth; k++) {
#pragma GCC unroll 4
		for (size_t r = 0; r < R; r++) {
			a[r] = step(e->walk, a[r], rank + r * stride);
			b[r] = step(e->walk, b[r], rank + r * stride);
		}
	}
#pragma GCC unroll 4
	for (size_t r = 0; r < R; r++) {
		sum[r] += e->value[a[r]];
		sum[r] += e->value[b[r]];
	}
}

static void walk_block(const struct ensemble *e, const uint16_t *rank, size_t stride, size_t n, double *sum)
{
	size_t t = 0;

	for (; t + 2 <= e->n_trees; t += 2) {
		size_t i = 0;

		for (; i + 4 <= n; i += 4)
			walk_pair(e, t, rank + i * stride, stride, 4, sum + i);
		for (; i < n; i++)
			walk_pair(e, t, rank + i * stride, stride, 1, sum + i);
	}
	for (size_t i = 0; t < e->n_trees && i < n; i++) { /* the last of an odd number of trees */
		uint32_t at = e->first[t];

		for (uint32_t k = 0; k < e->tree_depth[t]; k++)
			at = step(e->walk, at, rank + i * stride);
		sum[i] += e->value[at];
	}
}

void ensemble_predict_walks(const struct ensemble *e, const double *x, size_t n_rows, double *out)
{
	uint16_t rank[BLOCK * WALK_SLOTS];
	size_t stride = 2 * e->n_features;
	double sum[BLOCK];

	for (size_t done = 0; done < n_rows; done += BLOCK) {
		size_t n = n_rows - done < BLOCK ? n_rows - done : BLOCK;
		for (size_t i = 0; i < n; i++) {
			rank_row(e, x + (done + i) * e->n_features, rank + i * stride);
			sum[i] = 0.0;
		}
		walk_block(e, rank, stride, n, sum);
		for (size_t i = 0; i < n; i++)
			out[done + i] = e->base + sum[i] / e->divisor;
	}
}

static double look_up(const struct ensemble *e, const double *x)
{
	size_t at = 0;

	for (size_t f = 0; f < e->n_features; f++) {
		if (e->n_cuts[f] == 0)
			continue;
		if (isnan(x[f])) { /* the table has no cells for missing values; the walk gives the same
		                    * bits */
			double out;
			(e->walk ? ensemble_predict_walks : ensemble_predict_trees)(e, x, 1, &out);
			return out;
		}
		at += (size_t)e->stride[f] * ensemble_rank(e->cut[f], e->n_cuts[f], x[f]);
	}
	return e->cell[at];
}

void ensemble_predict(const struct ensemble *e, const double *x, size_t n_rows, double *out)
{
	if (e->cell)
		for (size_t i = 0; i < n_rows; i++)
			out[i] = look_up(e, x + i * e->n_features);
	else if (e->masks)
		ensemble_predict_masks(e, x, n_rows, out);
	else if (e->walk)
		ensemble_predict_walks(e, x, n_rows, out);
	else
		ensemble_predict_trees(e, x, n_rows, out);
}

/* ---- the look-up table ---- */

size_t ensemble_cells(const struct ensemble *e)
{
	size_t cells = 1;

	for (size_t f = 0; f < e->n_features; f++)
		if (__builtin_mul_overflow(cells, (size_t)e->n_cuts[f] + 1, &cells))
			return SIZE_MAX;
	return cells;
}

struct box { /* ranks from..to-1 of every feature that is cut at all */
	uint32_t from[DATASET_MAX_FEATURES], to[DATASET_MAX_FEATURES];
	uint16_t feature[DATASET_MAX_FEATURES]; /* by falling stride: the last is contiguous */
	size_t n;
};

static void add_to_box(double *cell, const uint32_t *stride, const struct box *b, size_t level, double v)
{
	size_t f = b->n ? b->feature[level] : 0;

	if (b->n == 0) {
		cell[0] += v;
	} else if (level + 1 == b->n) {
		for (uint32_t i = b->from[f]; i < b->to[f]; i++)
			cell[i] += v;
	} else {
		for (uint32_t i = b->from[f]; i < b->to[f]; i++)
			add_to_box(cell + (size_t)i * stride[f], stride, b, level + 1, v);
	}
}

/* Each leaf adds its value to the box of cells that reach it; tree after tree, so that every cell sums
 * in the order in which the walk does. */
static void add_subtree(struct ensemble *e, uint32_t root, uint32_t at, struct box *b)
{
	const struct tree_node *n = &e->node[root + at];
	uint32_t rank, from, to;

	if (!n->left) {
		add_to_box(e->cell, e->stride, b, 0, e->value[root + at]);
		return;
	}
	rank = ensemble_rank(e->cut[n->feature], e->n_cuts[n->feature], n->threshold);
	from = b->from[n->feature];
	to = b->to[n->feature];
	if (from <= rank) { /* ranks up to `rank` go left */
		b->to[n->feature] = rank + 1 < to ? rank + 1 : to;
		add_subtree(e, root, n->left, b);
		b->to[n->feature] = to;
	}
	if (to > rank + 1) {
		b->from[n->feature] = rank + 1 > from ? rank + 1 : from;
		add_subtree(e, root, n->left + 1, b);
		b->from[n->feature] = from;
	}
}

int ensemble_compile(struct ensemble *e, struct err *err)
{
	size_t cells = ensemble_cells(e), at = 1;
	struct box *b;

	if (e->cell || cells > LOOKUP_MAX_CELLS || e->n_trees > LOOKUP_MAX_ADDITIONS / cells)
		return 0;
	for (size_t t = 0; t < e->n_trees; t++)
		if (e->tree_depth[t] == 255)
			return 0; /* deeper than the recursion below should go */
	b = mem_calloc(1, sizeof *b);
	e->stride = mem_calloc(e->n_features, sizeof *e->stride);
	e->cell = mem_calloc(cells, sizeof *e->cell);
	if (!b || !e->stride || !e->cell) {
		free(b);
		free(e->stride);
		free(e->cell);
		e->stride = NULL;
		e->cell = NULL;
		return err_nomem(err, "a look-up table of %zu cells", cells);
	}
	/* The feature with the most thresholds innermost: long runs of contiguous cells. */
	for (size_t f = 0; f < e->n_features; f++) {
		size_t j = b->n;
		if (e->n_cuts[f] == 0)
			continue;
		for (; j > 0 && e->n_cuts[b->feature[j - 1]] > e->n_cuts[f]; j--)
			b->feature[j] = b->feature[j - 1];
		b->feature[j] = (uint16_t)f;
		b->n++;
		b->to[f] = e->n_cuts[f] + 1;
	}
	for (size_t j = b->n; j > 0; j--) {
		e->stride[b->feature[j - 1]] = (uint32_t)at;
		at *= e->n_cuts[b->feature[j - 1]] + 1;
	}
	for (size_t t = 0; t < e->n_trees; t++)
		add_subtree(e, e->first[t], 0, b);
	for (size_t c = 0; c < cells; c++)
		e->cell[c] = e->base + e->cell[c] / e->divisor;
	free(b);
	return 0;
}

/* ---- file ---- */

int ensemble_save(const struct ensemble *e, struct writer *w, struct err *err)
{
	write_u32(w, (uint32_t)e->n_trees);
	write_f64(w, e->base);
	write_f64(w, e->divisor);
	for (size_t t = 0; t < e->n_trees; t++) {
		write_u32(w, e->first[t + 1] - e->first[t]);
		for (uint32_t i = e->first[t]; i < e->first[t + 1]; i++) {
			const struct tree_node *n = &e->node[i];
			write_u32(w, n->left);
			if (n->left) {
				write_u16(w, n->feature);
				write_u8(w, n->missing_left);
				write_f64(w, n->threshold);
			} else {
				write_f64(w, e->value[i]);
			}
		}
	}
	return w->out.failed ? err_fail(err, ERR_NOMEM, "out of memory to write %zu trees", e->n_trees) : 0;
}

/* A node's children must come later in the tree and each node must have exactly one parent: then
 * there is no cycle and no walk leaves the tree. In breadth-first order that means: the k-th inner
 * node's children are the next two nodes not yet claimed. */
static int load_tree(struct reader *r, struct ensemble *e, size_t n, size_t tree, struct err *err)
{
	struct tree_node *node = e->node + e->n_nodes;
	double *value = e->value + e->n_nodes;
	size_t claimed = 1;

	node[0].depth = 0;
	for (size_t i = 0; i < n; i++) {
		uint8_t depth = node[i].depth;
		struct tree_node v = { .left = read_u32(r), .depth = depth };

		if (v.left) {
			v.feature = read_u16(r);
			v.missing_left = read_u8(r);
			v.threshold = read_f64(r);
			value[i] = 0.0;
			if (v.left != claimed || n - claimed < 2)
				return err_fail(err, ERR_FORMAT,
						"tree %zu, node %zu: children at %u of %zu nodes", tree, i,
						v.left, n);
			if (v.feature >= e->n_features || v.missing_left > 1 || !isfinite(v.threshold))
				return err_fail(err, ERR_FORMAT,
						"tree %zu, node %zu: bad split on feature %u of %zu", tree, i,
						v.feature, e->n_features);
			node[claimed].depth = node[claimed + 1].depth = depth < 255 ? depth + 1 : 255;
			claimed += 2;
		} else {
			value[i] = read_f64(r);
			if (!isfinite(value[i]))
				return err_fail(err, ERR_FORMAT,
						"tree %zu, node %zu: the leaf is not a number", tree, i);
		}
		node[i] = v;
	}
	if (claimed != n || r->failed)
		return err_fail(err, ERR_FORMAT, "tree %zu: %zu of %zu nodes have a parent", tree, claimed,
				n);
	return 0;
}

int ensemble_load(struct reader *r, size_t n_features, struct ensemble **out, struct err *err)
{
	struct ensemble *e = mem_calloc(1, sizeof *e);
	/* A leaf takes 12 bytes, the smallest node there is: so no count can ask for more memory than a
	 * small multiple of the file's own size. */
	size_t most = read_left(r) / 12;
	int status;

	if (!e)
		return err_nomem(err, "trees");
	e->n_features = n_features;
	e->n_trees = read_u32(r);
	e->base = read_f64(r);
	e->divisor = read_f64(r);
	if (r->failed || e->n_trees == 0 || e->n_trees > ENSEMBLE_MAX_TREES || e->n_trees > most ||
	    n_features == 0 || n_features > DATASET_MAX_FEATURES || !isfinite(e->base) ||
	    !(e->divisor >= 1.0) || !isfinite(e->divisor)) {
		status = err_fail(err, ERR_FORMAT,
				  "%zu trees on %zu features, base %g, divisor %g: out of range", e->n_trees,
				  n_features, e->base, e->divisor);
		goto failed;
	}
	e->first = mem_calloc(e->n_trees + 1, sizeof *e->first);
	e->node = mem_array(most, sizeof *e->node);
	e->value = mem_array(most, sizeof *e->value);
	if (!e->first || !e->node || !e->value) {
		status = err_nomem(err, "%zu trees", e->n_trees);
		goto failed;
	}
	for (size_t t = 0; t < e->n_trees; t++) {
		size_t n = read_u32(r);

		if (r->failed || n == 0 || n > most - e->n_nodes || n > ENSEMBLE_MAX_NODES - e->n_nodes) {
			status = err_fail(err, ERR_FORMAT, "tree %zu: %zu nodes, but only %zu bytes are left",
					  t, n, read_left(r));
			goto failed;
		}
		e->first[t] = (uint32_t)e->n_nodes;
		status = load_tree(r, e, n, t, err);
		if (status)
			goto failed;
		e->n_nodes += n;
	}
	e->first[e->n_trees] = (uint32_t)e->n_nodes;
	status = prepare(e, err);
	if (!status)
		status = leaf_masks_build(e, err);
	if (status)
		goto failed;
	*out = e;
	return 0;
failed:
	ensemble_free(e);
	return status;
}
