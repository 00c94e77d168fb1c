/* Squared error: the best split has the largest sum_L^2/w_L + sum_R^2/w_R. */
#include "predictors/trees/grow_internal.h"

static void scan(const struct grower *g, size_t f, uint32_t node, bool missing_left,
		 struct split_choice *best)
{
	struct split_choice left = { .missing_left = missing_left };
	/* With missing rows on the right there is one more split: everything known against missing. */
	size_t n = g->n_levels - (missing_left || !g->missing_rows);

	if (missing_left) {
		left.left_sum = g->missing_sum;
		left.left_weight = g->missing_weight;
		left.left_rows = g->missing_rows;
	}
	for (size_t i = 0; i < n; i++) {
		double right_sum;

		left.left_sum += g->level[i].sum;
		left.left_weight += g->level[i].weight;
		left.left_rows += g->level[i].n_rows;
		right_sum = g->node_sum[node] - left.left_sum;
		grower_consider(g, f, node, i, &left,
				left.left_sum * left.left_sum / left.left_weight +
					right_sum * right_sum / (g->node_weight[node] - left.left_weight),
				best);
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
