/* Squared error: the best split has the largest sum_L^2/w_L + sum_R^2/w_R. */
#include "predictors/grow_internal.h"

static void consider(const struct grower *g, size_t f, uint32_t node, size_t i, double left_sum,
		     uint32_t left_weight, uint32_t left_rows, bool missing_left, struct split_choice *best)
{
	uint32_t rows = g->node_hi[node] - g->node_lo[node], right_rows = rows - left_rows;
	double right_sum = g->node_sum[node] - left_sum;
	double score;

	if (left_rows < g->p.min_leaf || right_rows < g->p.min_leaf || !left_rows || !right_rows)
		return;
	score = left_sum * left_sum / left_weight +
		right_sum * right_sum / (g->node_weight[node] - left_weight);
	if (best->found && !(score > best->score))
		return;
	*best = (struct split_choice){
		.score = score,
		.found = true,
		.feature = (uint16_t)f,
		.cut = g->level[i].code,
		.next = i + 1 < g->n_levels ? g->level[i + 1].code : g->level[i].code,
		.missing_left = missing_left,
		.missing_seen = g->missing_rows > 0,
		.left_sum = left_sum,
		.left_weight = left_weight,
		.left_rows = left_rows,
	};
}

static void scan(const struct grower *g, size_t f, uint32_t node, bool missing_left,
		 struct split_choice *best)
{
	double sum = missing_left ? g->missing_sum : 0.0;
	uint32_t weight = missing_left ? g->missing_weight : 0;
	uint32_t rows = missing_left ? g->missing_rows : 0;
	/* With missing rows on the right there is one more split: everything known against missing. */
	size_t n = g->n_levels - (missing_left || !g->missing_rows);

	for (size_t i = 0; i < n; i++) {
		sum += g->level[i].sum;
		weight += g->level[i].weight;
		rows += g->level[i].n_rows;
		consider(g, f, node, i, sum, weight, rows, missing_left, best);
	}
}

bool grow_squared_search(struct grower *g, size_t f, uint32_t node, struct split_choice *best)
{
	grower_levels(g, f, g->node_lo[node], g->node_hi[node], false);
	if (g->n_levels + (g->missing_rows > 0) < 2)
		return false;
	scan(g, f, node, false, best);
	if (g->missing_rows)
		scan(g, f, node, true, best);
	return true;
}
