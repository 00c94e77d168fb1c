/* Grows a tree breadth first: the levels of a feature in a node, the best split, and the rows on its two
 * sides. */
#include "predictors/trees/grow_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

/* In a table that outgrows the cache the rows of a node lie further and further apart as the tree gets
 * deeper, until each code costs a line of memory. Every few levels the codes are therefore copied into
 * the order of the nodes. */
#define COMPACT_ROWS 32768
#define COMPACT_LEVELS 3

/* Nodes are sorted rather than counted where a feature has more than four times as many levels. */
#define SORTED_ROWS (BINS_MAX_LEVELS / 4 + 1)

#define SMALL_LEVELS 64 /* few enough levels to keep several copies of the histogram */
#define COPIES 4

int grower_new(const struct bins *bins, const struct grow_params *p, const uint32_t *order,
	       struct grower **out, struct err *err)
{
	struct grower *g = mem_calloc(1, sizeof *g);
	size_t n = bins->n_rows;
	bool absolute = p->criterion == CRITERION_ABSOLUTE, failed;
	size_t cells = SMALL_LEVELS * COPIES;

	if (!g)
		return err_fail(err, ERR_NOMEM, "out of memory to grow trees");
	g->bins = bins;
	g->p = *p;
	g->order = order;
	for (size_t f = 0; f < bins->n_features; f++)
		if (bins->feature[f].n_levels > g->max_levels)
			g->max_levels = bins->feature[f].n_levels;
	g->row = mem_array(n, sizeof *g->row);
	g->y = mem_array(n, sizeof *g->y);
	g->weight = mem_array(n, sizeof *g->weight);
	g->side = mem_array(n, sizeof *g->side);
	g->spill = mem_array(n, sizeof(double));
	failed = !g->row || !g->y || !g->weight || !g->side || !g->spill;
	if (cells <= g->max_levels)
		cells = (size_t)g->max_levels + 1;
	g->cell = mem_calloc(cells, sizeof *g->cell);
	g->level = mem_array(g->max_levels + 1 < n + 1 ? g->max_levels + 1 : n + 1, sizeof *g->level);
	g->sort_key = mem_array(n < SORTED_ROWS ? n : SORTED_ROWS, sizeof *g->sort_key);
	g->sort_spare = mem_array(n < SORTED_ROWS ? n : SORTED_ROWS, sizeof *g->sort_spare);
	failed |= !g->cell || !g->level || !g->sort_key || !g->sort_spare;
	if (n > COMPACT_ROWS)
		failed |= !(g->own_codes = mem_array(n * bins->n_features, sizeof *g->own_codes));
	if (absolute && !failed) {
		g->dense = mem_array(n, sizeof *g->dense);
		g->to_dense = mem_array(g->max_levels + 1, sizeof *g->to_dense);
		failed = !g->dense || !g->to_dense || grow_absolute_alloc(g) != 0;
	}
	if (failed) {
		grower_free(g);
		return err_fail(err, ERR_NOMEM, "out of memory to grow trees on %zu rows", n);
	}
	*out = g;
	return 0;
}

void grower_free(struct grower *g)
{
	if (!g)
		return;
	free(g->row);
	free(g->y);
	free(g->weight);
	free(g->side);
	free(g->spill);
	free(g->node_lo);
	free(g->node_hi);
	free(g->node_weight);
	free(g->node_key);
	free(g->node_constant);
	free(g->node_sum);
	free(g->cell);
	free(g->level);
	free(g->dense);
	free(g->to_dense);
	free(g->sort_key);
	free(g->sort_spare);
	free(g->own_codes);
	grow_absolute_release(g);
	free(g);
}

void tree_release(struct tree *t)
{
	free(t->node);
	free(t->value);
	free(t->importance);
	*t = (struct tree){ 0 };
}

static int reserve_nodes(struct grower *g, struct tree *t, size_t need)
{
	size_t cap;

	if (need > t->cap) {
		size_t want = t->cap ? 2 * t->cap : 64;
		struct tree_node *node = mem_resize(t->node, want, sizeof *node);
		double *value;

		if (!node)
			return -1;
		t->node = node;
		value = mem_resize(t->value, want, sizeof *value);
		if (!value)
			return -1;
		t->value = value;
		t->cap = want;
	}
	if (need <= g->node_cap)
		return 0;
	/* These arrays grow together; the capacity is raised when all of them have. */
	cap = g->node_cap;
	if (mem_grow((void **)&g->node_lo, &cap, need, sizeof *g->node_lo))
		return -1;
	cap = g->node_cap;
	if (mem_grow((void **)&g->node_hi, &cap, need, sizeof *g->node_hi))
		return -1;
	cap = g->node_cap;
	if (mem_grow((void **)&g->node_weight, &cap, need, sizeof *g->node_weight))
		return -1;
	cap = g->node_cap;
	if (mem_grow((void **)&g->node_key, &cap, need, sizeof *g->node_key))
		return -1;
	cap = g->node_cap;
	if (mem_grow((void **)&g->node_constant, &cap, need, sizeof *g->node_constant))
		return -1;
	cap = g->node_cap;
	if (mem_grow((void **)&g->node_sum, &cap, need, sizeof *g->node_sum))
		return -1;
	g->node_cap = cap;
	return 0;
}

/* ---- the levels of a feature in a node ---- */

static void note_level(struct grower *g, uint32_t code, const struct histogram_cell *c, uint32_t n_all)
{
	uint32_t rows = (uint32_t)(c->count >> 32), weight = (uint32_t)c->count;

	if (code == n_all) {
		g->missing_rows = rows;
		g->missing_weight = weight;
		g->missing_sum = c->sum;
	} else {
		g->level[g->n_levels++] = (struct level){ code, rows, weight, c->sum };
	}
}

static const uint16_t *column(const struct grower *g, size_t f)
{
	return g->codes + f * g->bins->n_rows;
}

/* One pass over the rows of a node. Inlined for each case, so that the choice is made outside the loop. */
static inline __attribute__((always_inline)) void fill_histogram(struct histogram_cell *cell, size_t mask,
								 size_t width, const uint16_t *code,
								 const struct grower *g, bool want_sum,
								 size_t lo, size_t hi)
{
	const uint32_t *row = g->row, *weight = g->weight;
	const double *y = g->y;

	for (size_t i = lo; i < hi; i++) {
		struct histogram_cell *c = &cell[(i & mask) * width + code[row[i]]];
		if (want_sum)
			c->sum += y[i] * weight[i];
		c->count += ONE_ROW | weight[i];
	}
}

/* The histogram is left zeroed, so that the next call need not clear it. */
static void levels_by_histogram(struct grower *g, const uint16_t *code, uint32_t L, size_t lo, size_t hi)
{
	struct histogram_cell *cell = g->cell;
	/* Consecutive rows often meet in one cell, where each addition waits for the last one's result;
	 * four copies keep four additions under way. Not worth their merging where rows are few. */
	bool split = L < SMALL_LEVELS && hi - lo >= 8 * ((size_t)L + 1);
	size_t mask = split ? COPIES - 1 : 0, width = L + 1;

	if (g->p.criterion == CRITERION_ABSOLUTE && split)
		fill_histogram(cell, COPIES - 1, width, code, g, false, lo, hi);
	else if (g->p.criterion == CRITERION_ABSOLUTE)
		fill_histogram(cell, 0, width, code, g, false, lo, hi);
	else if (split)
		fill_histogram(cell, COPIES - 1, width, code, g, true, lo, hi);
	else
		fill_histogram(cell, 0, width, code, g, true, lo, hi);
	for (size_t k = 1; k <= mask; k++)
		for (size_t c = 0; c < width; c++) {
			struct histogram_cell *from = &cell[k * width + c];
			cell[c].sum += from->sum;
			cell[c].count += from->count;
			*from = (struct histogram_cell){ 0 };
		}
	for (uint32_t c = 0; c <= L; c++)
		if (cell[c].count) {
			if (g->to_dense)
				g->to_dense[c] = c == L ? UINT32_MAX : (uint32_t)g->n_levels;
			note_level(g, c, &cell[c], L);
			cell[c] = (struct histogram_cell){ 0 };
		}
}

/* key = code << 32 | row; rows of equal code keep their order. */
static uint64_t *sort_by_code(uint64_t *a, uint64_t *spare, size_t n)
{
	if (n <= 32) {
		for (size_t i = 1; i < n; i++) {
			uint64_t v = a[i];
			size_t j = i;
			for (; j > 0 && a[j - 1] > v; j--)
				a[j] = a[j - 1];
			a[j] = v;
		}
		return a;
	}
	for (int shift = 32; shift < 48; shift += 8) {
		size_t count[256] = { 0 }, at = 0;
		uint64_t *t = a;

		for (size_t i = 0; i < n; i++)
			count[a[i] >> shift & 255]++;
		for (size_t d = 0; d < 256; d++) {
			size_t c = count[d];
			count[d] = at;
			at += c;
		}
		for (size_t i = 0; i < n; i++)
			spare[count[a[i] >> shift & 255]++] = a[i];
		a = spare;
		spare = t;
	}
	return a;
}

static void levels_by_sorting(struct grower *g, const uint16_t *code, uint32_t L, size_t lo, size_t hi)
{
	size_t n = hi - lo;
	uint64_t *key;

	for (size_t i = 0; i < n; i++)
		g->sort_key[i] = (uint64_t)code[g->row[lo + i]] << 32 | i;
	key = sort_by_code(g->sort_key, g->sort_spare, n);
	for (size_t i = 0; i < n;) {
		struct histogram_cell c = { 0 };
		uint32_t at = (uint32_t)(key[i] >> 32);

		for (; i < n && key[i] >> 32 == at; i++) {
			size_t at_row = (uint32_t)key[i];
			c.sum += g->y[lo + at_row] * g->weight[lo + at_row];
			c.count += ONE_ROW | g->weight[lo + at_row];
			if (g->dense)
				g->dense[at_row] = at == L ? UINT32_MAX : (uint32_t)g->n_levels;
		}
		note_level(g, at, &c, L);
	}
}

void grower_levels(struct grower *g, size_t f, size_t lo, size_t hi, bool want_dense)
{
	const uint16_t *code = column(g, f);
	uint32_t L = g->bins->feature[f].n_levels;
	size_t n = hi - lo;

	g->n_levels = 0;
	g->missing_rows = g->missing_weight = 0;
	g->missing_sum = 0.0;
	if (L <= 4 * n + 16) {
		levels_by_histogram(g, code, L, lo, hi);
		if (want_dense && g->n_levels + (g->missing_rows > 0) > 1)
			for (size_t i = 0; i < n; i++)
				g->dense[i] = g->to_dense[code[g->row[lo + i]]];
	} else {
		levels_by_sorting(g, code, L, lo, hi);
	}
	if (want_dense && g->missing_rows)
		for (size_t i = 0; i < n; i++)
			if (g->dense[i] == UINT32_MAX)
				g->dense[i] = (uint32_t)g->n_levels;
}

/* ---- one node ---- */

static struct split_choice find_split(struct grower *g, uint32_t node)
{
	size_t p = g->bins->n_features;
	bool absolute = g->p.criterion == CRITERION_ABSOLUTE;
	struct split_choice best = { 0 };
	struct rng rng = { g->node_key[node] };
	uint16_t feature[DATASET_MAX_FEATURES]; /* grower_tree checks */
	size_t usable = 0;

	for (size_t i = 0; i < p; i++)
		feature[i] = (uint16_t)i;
	if (absolute)
		grow_absolute_enter(g, node);
	for (size_t visited = 0; visited < p; visited++) {
		size_t j = visited + rng_below(&rng, (uint32_t)(p - visited));
		uint16_t f = feature[j];

		if (visited >= g->p.max_features && usable > 0)
			break;
		feature[j] = feature[visited];
		if (f < 64 && g->node_constant[node] >> f & 1)
			continue;
		if (absolute ? grow_absolute_search(g, f, node, &best)
			     : grow_squared_search(g, f, node, &best))
			usable++;
		else if (f < 64)
			g->node_constant[node] |= 1ULL << f;
	}
	return best;
}

static void mark_sides(struct grower *g, const struct split_choice *s, size_t lo, size_t hi)
{
	const uint16_t *code = column(g, s->feature);
	uint32_t missing = g->bins->feature[s->feature].n_levels;

	for (size_t i = lo; i < hi; i++) {
		uint16_t c = code[g->row[i]];
		g->side[i] = c == missing ? s->missing_left : c <= s->cut;
	}
}

/* Stable, without a branch: every value is stored on both sides, one of the two places moves on. */
#define PART(type, column)                                                                                   \
	do {                                                                                                 \
		type *c_ = (column), *s_ = g->spill;                                                         \
		size_t l_ = lo, r_ = 0;                                                                      \
		for (size_t i_ = lo; i_ < hi; i_++) {                                                        \
			type v_ = c_[i_];                                                                    \
			c_[l_] = v_;                                                                         \
			s_[r_] = v_;                                                                         \
			l_ += g->side[i_];                                                                   \
			r_ += !g->side[i_];                                                                  \
		}                                                                                            \
		memcpy(c_ + l_, s_, r_ * sizeof(type));                                                      \
	} while (0)

static void part_rows(struct grower *g, size_t lo, size_t hi)
{
	PART(uint32_t, g->row);
	PART(uint32_t, g->weight);
	PART(double, g->y);
}

/* The lower value where rounding would reach the upper one; halves first, so that huge values do not
 * overflow. */
static double midpoint(double a, double b)
{
	double m = a / 2.0 + b / 2.0;

	return m >= a && m < b ? m : a;
}

static bool is_pure(const struct grower *g, size_t lo, size_t hi)
{
	double first = g->y[lo];

	if (g->p.criterion == CRITERION_ABSOLUTE) /* ascending */
		return first == g->y[hi - 1];
	for (size_t i = lo + 1; i < hi; i++)
		if (g->y[i] != first)
			return false;
	return true;
}

static bool may_split(const struct grower *g, uint32_t rows, uint32_t depth)
{
	return depth < g->p.max_depth && rows >= g->p.min_split && rows / 2 >= g->p.min_leaf;
}

static void apply_split(struct grower *g, struct tree *t, uint32_t node, uint32_t depth,
			const struct split_choice *s)
{
	const struct bin_feature *feature = &g->bins->feature[s->feature];
	size_t lo = g->node_lo[node], hi = g->node_hi[node], mid = lo + s->left_rows;
	uint32_t left = (uint32_t)t->n_nodes, right = left + 1;
	uint32_t left_weight = s->left_weight, right_weight = g->node_weight[node] - left_weight;

	mark_sides(g, s, lo, hi);
	if (g->p.criterion == CRITERION_ABSOLUTE) {
		struct side_summary side[2];

		grow_absolute_sides(g, lo, hi, (uint32_t[2]){ right_weight, left_weight }, side);
		t->value[left] = side[1].median;
		t->value[right] = side[0].median;
		g->node_sum[left] = side[1].deviation;
		g->node_sum[right] = side[0].deviation;
		t->importance[s->feature] += g->node_sum[node] - g->node_sum[left] - g->node_sum[right];
	} else {
		g->node_sum[left] = s->left_sum;
		g->node_sum[right] = g->node_sum[node] - s->left_sum;
		t->value[left] = g->node_sum[left] / left_weight;
		t->value[right] = g->node_sum[right] / right_weight;
		t->importance[s->feature] += s->score -
					     g->node_sum[node] * g->node_sum[node] / g->node_weight[node];
	}
	t->node[node] = (struct tree_node){
		.threshold = s->cut == s->next ? feature->high[s->cut]
					       : midpoint(feature->high[s->cut], feature->low[s->next]),
		.left = left,
		.feature = s->feature,
		/* without missing rows in training, the heavier side is the better guess */
		.missing_left = s->missing_seen ? s->missing_left : left_weight >= right_weight,
		.depth = t->node[node].depth,
	};
	for (uint32_t c = left; c <= right; c++) {
		t->node[c] = (struct tree_node){ .depth = (uint8_t)(depth + 1 < 255 ? depth + 1 : 255) };
		g->node_key[c] = rng_mix(g->node_key[node] * 2 + (c == right) + 0x632be59bd9b4e019ULL);
	}
	g->node_constant[left] = g->node_constant[right] = g->node_constant[node];
	g->node_weight[left] = left_weight;
	g->node_weight[right] = right_weight;
	g->node_lo[left] = (uint32_t)lo;
	g->node_hi[left] = g->node_lo[right] = (uint32_t)mid;
	g->node_hi[right] = (uint32_t)hi;
	if (may_split(g, (uint32_t)(mid - lo), depth + 1) || may_split(g, (uint32_t)(hi - mid), depth + 1))
		part_rows(g, lo, hi); /* otherwise these rows are not looked at again */
	t->n_nodes += 2;
}

static uint32_t take_rows(struct grower *g, const double *y, const uint32_t *weight)
{
	uint32_t n = 0;

	for (size_t i = 0; i < g->bins->n_rows; i++) {
		uint32_t row = g->order ? g->order[i] : (uint32_t)i;
		g->row[n] = row;
		g->y[n] = y[row];
		g->weight[n] = weight[row];
		n += weight[row] != 0;
	}
	return n;
}

static void compact_codes(struct grower *g, uint32_t n)
{
	uint16_t *moved = g->spill;

	for (size_t f = 0; f < g->bins->n_features; f++) {
		const uint16_t *code = column(g, f);
		for (uint32_t i = 0; i < n; i++)
			moved[i] = code[g->row[i]];
		memcpy(g->own_codes + f * g->bins->n_rows, moved, n * sizeof *moved);
	}
	g->codes = g->own_codes;
	for (uint32_t i = 0; i < n; i++)
		g->row[i] = i;
}

static void plant_root(struct grower *g, struct tree *t, uint32_t n, uint64_t key)
{
	uint32_t weight = 0;
	double sum = 0.0;

	for (uint32_t i = 0; i < n; i++)
		weight += g->weight[i];
	g->node_lo[0] = 0;
	g->node_hi[0] = n;
	g->node_weight[0] = weight;
	g->node_key[0] = rng_mix(key);
	g->node_constant[0] = 0;
	t->node[0] = (struct tree_node){ 0 };
	t->n_nodes = 1;
	if (g->p.criterion == CRITERION_ABSOLUTE) {
		struct side_summary all[2];

		memset(g->side, 1, n);
		grow_absolute_enter(g, 0);
		grow_absolute_sides(g, 0, n, (uint32_t[2]){ 0, weight }, all);
		t->value[0] = all[1].median;
		g->node_sum[0] = all[1].deviation;
	} else {
		for (uint32_t i = 0; i < n; i++)
			sum += g->y[i] * g->weight[i];
		g->node_sum[0] = sum;
		t->value[0] = sum / weight;
	}
}

int grower_tree(struct grower *g, const double *y, const uint32_t *weight, uint64_t key, struct tree *out,
		struct err *err)
{
	uint32_t n = take_rows(g, y, weight), depth = 0, depth_end = 1;

	g->codes = g->bins->code;
	if (!out->importance)
		out->importance = mem_array(g->bins->n_features, sizeof *out->importance);
	if (!out->importance || reserve_nodes(g, out, 64))
		return err_nomem(err, "a tree");
	memset(out->importance, 0, g->bins->n_features * sizeof *out->importance);
	plant_root(g, out, n, key);
	for (uint32_t node = 0; node < out->n_nodes; node++) {
		struct split_choice s;

		if (node == depth_end) { /* breadth first: everything before is shallower */
			depth++;
			depth_end = (uint32_t)out->n_nodes;
			if (g->own_codes && depth % COMPACT_LEVELS == 0 && depth < g->p.max_depth)
				compact_codes(g, n);
		}
		if (!may_split(g, g->node_hi[node] - g->node_lo[node], depth) ||
		    is_pure(g, g->node_lo[node], g->node_hi[node]))
			continue;
		s = find_split(g, node);
		if (!s.found)
			continue;
		if (reserve_nodes(g, out, out->n_nodes + 2))
			return err_nomem(err, "a tree of %zu nodes", out->n_nodes);
		apply_split(g, out, node, depth, &s);
	}
	return 0;
}
