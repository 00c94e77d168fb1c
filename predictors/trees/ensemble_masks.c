/* Trees without walking. The leaves of a tree are the bits of a word; a node whose test goes right rules out
 * the leaves on its left, and the other way round. For each feature and each rank of its value the rulings
 * of all its nodes are combined beforehand into one word per tree, so that a prediction is: the word of every
 * feature, AND, and the one bit that is left. Words of one rank lie side by side over the trees. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/trees/ensemble.h"

#define MAX_LEAVES 64
#define MAX_WORDS 1048576 /* 8 MiB: still in reach of a cache that is shared */
#define BLOCK_TREES 256 /* trees whose words are combined before their leaves are added */
#define ROWS 4 /* predicted at once */

struct leaf_masks {
	size_t n_used; /* features with a threshold */
	uint16_t *used;
	size_t *offset; /* per used feature: its words in word[], (n_cuts + 2) rows of n_trees; the last row:
	                 * missing */
	uint64_t *word;
	double *value; /* of the leaves, tree after tree */
	uint32_t *first_leaf; /* per tree */
};

void leaf_masks_free(struct leaf_masks *m)
{
	if (!m)
		return;
	free(m->used);
	free(m->offset);
	free(m->word);
	free(m->value);
	free(m->first_leaf);
	free(m);
}

/* Leaves in the order of the nodes, which need not be left to right: a set of leaves is a set of bits. Nodes
 * come after their parents, so walking backwards meets children first. */
static void tree_leaf_sets(const struct tree_node *node, size_t n, uint64_t *set)
{
	unsigned leaf = 0;

	for (size_t i = 0; i < n; i++)
		set[i] = node[i].left ? 0 : 1ULL << leaf++;
	for (size_t i = n; i-- > 0;)
		if (node[i].left)
			set[i] = set[node[i].left] | set[node[i].left + 1];
}

static void rule_out(struct leaf_masks *m, const struct ensemble *e, size_t t, size_t used,
		     const struct tree_node *n, const uint64_t *set)
{
	uint64_t go_left = ~set[n->left + 1], go_right = ~set[n->left];
	uint32_t n_cuts = e->n_cuts[n->feature];
	uint32_t cut = ensemble_rank(e->cut[n->feature], n_cuts, n->threshold);
	uint64_t *word = m->word + m->offset[used] + t;

	for (uint32_t rank = 0; rank <= n_cuts; rank++)
		word[(size_t)rank * e->n_trees] &= rank > cut ? go_right : go_left;
	word[(size_t)(n_cuts + 1) * e->n_trees] &= n->missing_left ? go_left : go_right;
}

/* The number of words, or 0 where they do not fit. */
static size_t plan(const struct ensemble *e, size_t *out_used)
{
	size_t rows = 0;

	*out_used = 0;
	for (size_t t = 0; t < e->n_trees; t++)
		if (e->first[t + 1] - e->first[t] > 2 * MAX_LEAVES - 1)
			return 0;
	for (size_t f = 0; f < e->n_features; f++)
		if (e->n_cuts[f]) {
			rows += (size_t)e->n_cuts[f] + 2;
			(*out_used)++;
		}
	return rows && e->n_trees <= MAX_WORDS / rows ? rows * e->n_trees : 0;
}

int leaf_masks_build(struct ensemble *e, struct err *err)
{
	size_t n_used, words = plan(e, &n_used), at = 0, leaves = 0;
	uint64_t set[2 * MAX_LEAVES - 1];
	size_t *place = NULL; /* of a feature among the used ones */
	struct leaf_masks *m;

	if (!words)
		return 0;
	m = mem_calloc(1, sizeof *m);
	if (m) {
		m->n_used = n_used;
		m->used = mem_array(n_used, sizeof *m->used);
		m->offset = mem_array(n_used, sizeof *m->offset);
		m->word = mem_array(words, sizeof *m->word);
		m->value = mem_array(e->n_nodes, sizeof *m->value);
		m->first_leaf = mem_array(e->n_trees, sizeof *m->first_leaf);
		place = mem_array(e->n_features, sizeof *place);
	}
	if (!m || !m->used || !m->offset || !m->word || !m->value || !m->first_leaf || !place) {
		leaf_masks_free(m);
		free(place);
		return err_nomem(err, "the masks of %zu trees", e->n_trees);
	}
	n_used = 0;
	for (size_t f = 0; f < e->n_features; f++)
		if (e->n_cuts[f]) {
			place[f] = n_used;
			m->used[n_used] = (uint16_t)f;
			m->offset[n_used++] = at;
			at += ((size_t)e->n_cuts[f] + 2) * e->n_trees;
		}
	memset(m->word, 0xff, words * sizeof *m->word);
	for (size_t t = 0; t < e->n_trees; t++) {
		const struct tree_node *node = e->node + e->first[t];
		size_t n = e->first[t + 1] - e->first[t];

		tree_leaf_sets(node, n, set);
		m->first_leaf[t] = (uint32_t)leaves;
		for (size_t i = 0; i < n; i++)
			if (node[i].left)
				rule_out(m, e, t, place[node[i].feature], &node[i], set);
			else
				m->value[leaves++] = e->value[e->first[t] + i];
	}
	free(place);
	e->masks = m;
	return 0;
}

static const uint64_t *words_of(const struct ensemble *e, size_t k, const double *x)
{
	const struct leaf_masks *m = e->masks;
	size_t f = m->used[k];
	uint32_t rank = isnan(x[f]) ? e->n_cuts[f] + 1 : ensemble_rank(e->cut[f], e->n_cuts[f], x[f]);

	return m->word + m->offset[k] + (size_t)rank * e->n_trees;
}

/* The words of a few rows. The candidates of a decision differ in one feature or two; the words of all others
 * are combined once for all of them. */
struct rulings { /* of ROWS rows */
	const uint64_t *same[DATASET_MAX_FEATURES], *own[DATASET_MAX_FEATURES][ROWS];
	size_t n_same, n_own;
};

static void find_rulings(const struct ensemble *e, const double *x, size_t n_rows, struct rulings *out)
{
	out->n_same = out->n_own = 0;
	for (size_t k = 0; k < e->masks->n_used; k++) {
		const uint64_t **own = out->own[out->n_own];
		bool same = true;

		for (size_t r = 0; r < ROWS; r++) { /* where there are fewer, the last stands for the rest */
			own[r] = r < n_rows ? words_of(e, k, x + r * e->n_features) : own[r - 1];
			same &= own[r] == own[0];
		}
		if (same)
			out->same[out->n_same++] = own[0];
		else
			out->n_own++;
	}
}

static void and_words(uint64_t *restrict io, const uint64_t *restrict word, size_t n)
{
	for (size_t t = 0; t < n; t++)
		io[t] &= word[t];
}

/* Exactly one of a tree's own leaves is alive; bits beyond them may be set, but lie above it. */
static inline double leaf_alive(const struct leaf_masks *m, size_t tree, uint64_t alive)
{
	return m->value[m->first_leaf[tree] + (unsigned)__builtin_ctzll(alive)];
}

static void predict_few(const struct ensemble *e, const double *x, size_t n_rows, double *out)
{
	const struct leaf_masks *m = e->masks;
	double sum[ROWS] = { 0.0 };
	struct rulings rule;

	find_rulings(e, x, n_rows, &rule);
	for (size_t from = 0; from < e->n_trees; from += BLOCK_TREES) {
		size_t n = e->n_trees - from < BLOCK_TREES ? e->n_trees - from : BLOCK_TREES;
		uint64_t all[BLOCK_TREES], alive[ROWS][BLOCK_TREES];

		memset(all, 0xff, n * sizeof *all);
		for (size_t k = 0; k < rule.n_same; k++)
			and_words(all, rule.same[k] + from, n);
		if (!rule.n_own) {
			for (size_t t = 0; t < n; t++)
				sum[0] += leaf_alive(m, from + t, all[t]);
			continue;
		}
		for (size_t r = 0; r < ROWS; r++) {
			memcpy(alive[r], all, n * sizeof *all);
			for (size_t k = 0; k < rule.n_own; k++)
				and_words(alive[r], rule.own[k][r] + from, n);
		}
		/* Each sum waits for its last addition; those of four rows wait at the same time. */
		for (size_t t = 0; t < n; t++)
			for (size_t r = 0; r < ROWS; r++)
				sum[r] += leaf_alive(m, from + t, alive[r][t]);
	}
	for (size_t r = 0; r < n_rows; r++)
		out[r] = e->base + sum[rule.n_own ? r : 0] / e->divisor;
}

void ensemble_predict_masks(const struct ensemble *e, const double *x, size_t n_rows, double *out)
{
	for (size_t i = 0; i < n_rows; i += ROWS)
		predict_few(e, x + i * e->n_features, n_rows - i < ROWS ? n_rows - i : ROWS, out + i);
}
