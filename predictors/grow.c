#include "predictors/grow_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

#define SMALL_LEVELS 64 /* few enough levels to keep several copies of the histogram */
#define COPIES 4

int grower_new(const struct bins *bins, const struct grow_params *p, const uint32_t *order,
               struct grower **out, struct err *err)
{
	struct grower *g = mem_calloc(1, sizeof *g);
	size_t n = bins->n_rows;
	bool absolute = p->criterion == CRITERION_ABSOLUTE, failed;

	if (!g)
		return err_fail(err, ERR_NOMEM, "no memory to grow trees");
	g->bins = bins;
	g->p = *p;
	g->order = order;
	for (size_t f = 0; f < bins->n_features; f++)
		if (bins->feature[f].n_levels > g->max_levels)
			g->max_levels = bins->feature[f].n_levels;
	g->y = mem_array(n, sizeof *g->y);
	g->wy = absolute ? NULL : mem_array(n, sizeof *g->wy);
	g->weight = mem_array(n, sizeof *g->weight);
	g->side = mem_array(n, sizeof *g->side);
	g->spill = mem_array(n, sizeof(double));
	g->code = mem_calloc(bins->n_features, sizeof *g->code);
	failed = !g->y || (!absolute && !g->wy) || !g->weight || !g->side || !g->spill || !g->code;
	for (size_t f = 0; !failed && f < bins->n_features; f++)
		failed = !(g->code[f] = mem_array(n, sizeof **g->code));
	g->cell = mem_calloc((g->max_levels + 1 + SMALL_LEVELS) * COPIES, sizeof *g->cell);
	g->level = mem_array(g->max_levels + 1 < n + 1 ? g->max_levels + 1 : n + 1, sizeof *g->level);
	g->sort_key = mem_array(n, sizeof *g->sort_key);
	g->sort_spare = mem_array(n, sizeof *g->sort_spare);
	failed |= !g->cell || !g->level || !g->sort_key || !g->sort_spare;
	if (absolute && !failed) {
		g->dense = mem_array(n, sizeof *g->dense);
		g->to_dense = mem_array(g->max_levels + 1, sizeof *g->to_dense);
		failed = !g->dense || !g->to_dense || grow_absolute_alloc(g) != 0;
	}
	if (failed) {
		grower_free(g);
		return err_fail(err, ERR_NOMEM, "no memory to grow trees on %zu rows", n);
	}
	*out = g;
	return 0;
}

void grower_free(struct grower *g)
{
	if (!g)
		return;
	for (size_t f = 0; g->code && f < g->bins->n_features; f++)
		free(g->code[f]);
	free(g->code);
	free(g->y);
	free(g->wy);
	free(g->weight);
	free(g->side);
	free(g->spill);
	free(g->node_lo);
	free(g->node_hi);
	free(g->node_weight);
	free(g->node_key);
	free(g->node_sum);
	free(g->cell);
	free(g->level);
	free(g->dense);
	free(g->to_dense);
	free(g->sort_key);
	free(g->sort_spare);
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
	/* Five arrays grow together; the capacity is raised when all of them have. */
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
	if (mem_grow((void **)&g->node_sum, &cap, need, sizeof *g->node_sum))
		return -1;
	g->node_cap = cap;
	return 0;
}

/* ---- the levels of a feature in a node ---- */

static void note_level(struct grower *g, uint32_t code, const struct histogram_cell *c, uint32_t n_all)
{
	if (code == n_all) {
		g->missing_rows = c->n_rows;
		g->missing_weight = c->weight;
		g->missing_sum = c->sum;
	} else {
		g->level[g->n_levels++] = (struct level){ code, c->n_rows, c->weight, c->sum };
	}
}

/* The histogram is left zeroed, so that the next call need not clear it. */
static void levels_by_histogram(struct grower *g, const uint16_t *code, uint32_t L, size_t lo, size_t hi)
{
	struct histogram_cell *cell = g->cell;
	/* Consecutive rows often meet in one cell, where each addition waits for the last one's result;
	 * four copies keep four additions under way. The order of summation stays fixed. */
	size_t copies = L < SMALL_LEVELS ? COPIES : 1, width = L + 1;
	const double *wy = g->wy;

	if (copies == 1) {
		for (size_t i = lo; i < hi; i++) {
			struct histogram_cell *c = &cell[code[i]];
			c->sum += wy ? wy[i] : 0.0;
			c->weight += g->weight[i];
			c->n_rows++;
		}
	} else {
		for (size_t i = lo; i < hi; i++) {
			struct histogram_cell *c = &cell[(i & (COPIES - 1)) * width + code[i]];
			c->sum += wy ? wy[i] : 0.0;
			c->weight += g->weight[i];
			c->n_rows++;
		}
		for (size_t k = 1; k < COPIES; k++)
			for (size_t c = 0; c < width; c++) {
				struct histogram_cell *from = &cell[k * width + c];
				cell[c].sum += from->sum;
				cell[c].weight += from->weight;
				cell[c].n_rows += from->n_rows;
				*from = (struct histogram_cell){ 0 };
			}
	}
	for (uint32_t c = 0; c <= L; c++)
		if (cell[c].n_rows) {
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
		g->sort_key[i] = (uint64_t)code[lo + i] << 32 | i;
	key = sort_by_code(g->sort_key, g->sort_spare, n);
	for (size_t i = 0; i < n;) {
		struct histogram_cell c = { 0 };
		uint32_t at = (uint32_t)(key[i] >> 32);

		for (; i < n && key[i] >> 32 == at; i++) {
			size_t row = (uint32_t)key[i];
			c.sum += g->wy ? g->wy[lo + row] : 0.0;
			c.weight += g->weight[lo + row];
			c.n_rows++;
			if (g->dense)
				g->dense[row] = at == L ? UINT32_MAX : (uint32_t)g->n_levels;
		}
		note_level(g, at, &c, L);
	}
}

void grower_levels(struct grower *g, size_t f, size_t lo, size_t hi, bool want_dense)
{
	const uint16_t *code = g->code[f];
	uint32_t L = g->bins->feature[f].n_levels;
	size_t n = hi - lo;

	g->n_levels = 0;
	g->missing_rows = g->missing_weight = 0;
	g->missing_sum = 0.0;
	if (L <= 4 * n + 16) {
		levels_by_histogram(g, code, L, lo, hi);
		if (want_dense && g->n_levels + (g->missing_rows > 0) > 1)
			for (size_t i = 0; i < n; i++)
				g->dense[i] = g->to_dense[code[lo + i]];
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
	size_t p = g->bins->n_features, lo = g->node_lo[node], hi = g->node_hi[node];
	bool absolute = g->p.criterion == CRITERION_ABSOLUTE;
	struct split_choice best = { 0 };
	struct rng rng = { g->node_key[node] };
	uint16_t feature[1024]; /* FEATURES_MAX; grower_tree checks */
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
		grower_levels(g, f, lo, hi, absolute);
		if (g->n_levels + (g->missing_rows > 0) < 2)
			continue; /* constant here */
		usable++;
		if (g->n_levels == 0)
			continue;
		if (absolute)
			grow_absolute_search(g, f, node, &best);
		else
			grow_squared_search(g, f, node, &best);
	}
	return best;
}

static void mark_sides(struct grower *g, const struct split_choice *s, size_t lo, size_t hi)
{
	const uint16_t *code = g->code[s->feature];
	uint32_t missing = g->bins->feature[s->feature].n_levels;

	for (size_t i = lo; i < hi; i++)
		g->side[i] = code[i] == missing ? s->missing_left : code[i] <= s->cut;
}

/* Stable, without a branch: every value is stored on both sides, one of the two places moves on. */
#define PART(type, column)                                              \
	do {                                                            \
		type *c_ = (column), *s_ = g->spill;                    \
		size_t l_ = lo, r_ = 0;                                 \
		for (size_t i_ = lo; i_ < hi; i_++) {                   \
			type v_ = c_[i_];                               \
			c_[l_] = v_;                                    \
			s_[r_] = v_;                                    \
			l_ += g->side[i_];                              \
			r_ += !g->side[i_];                             \
		}                                                       \
		memcpy(c_ + l_, s_, r_ * sizeof(type));                 \
	} while (0)

static void part_rows(struct grower *g, size_t lo, size_t hi)
{
	for (size_t f = 0; f < g->bins->n_features; f++)
		PART(uint16_t, g->code[f]);
	PART(double, g->y);
	if (g->wy)
		PART(double, g->wy);
	PART(uint32_t, g->weight);
}

/* The lower value where rounding would reach the upper one; halves first, so that huge values do not overflow. */
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

static void apply_split(struct grower *g, struct tree *t, uint32_t node, uint32_t depth, const struct split_choice *s)
{
	const struct bin_feature *feature = &g->bins->feature[s->feature];
	size_t lo = g->node_lo[node], hi = g->node_hi[node], mid = lo + s->left_rows;
	uint32_t left = (uint32_t)t->n_nodes, right = left + 1;
	uint32_t left_weight = s->left_weight, right_weight = g->node_weight[node] - left_weight;
	bool missing_seen = false;

	for (size_t i = lo; i < hi && !missing_seen; i++)
		missing_seen = g->code[s->feature][i] == feature->n_levels;
	mark_sides(g, s, lo, hi);
	if (g->p.criterion == CRITERION_ABSOLUTE) {
		grow_absolute_side(g, lo, hi, 1, left_weight, &t->value[left], &g->node_sum[left]);
		grow_absolute_side(g, lo, hi, 0, right_weight, &t->value[right], &g->node_sum[right]);
		t->importance[s->feature] += g->node_sum[node] - g->node_sum[left] - g->node_sum[right];
	} else {
		g->node_sum[left] = s->left_sum;
		g->node_sum[right] = g->node_sum[node] - s->left_sum;
		t->value[left] = g->node_sum[left] / left_weight;
		t->value[right] = g->node_sum[right] / right_weight;
		t->importance[s->feature] += s->score - g->node_sum[node] * g->node_sum[node] / g->node_weight[node];
	}
	t->node[node] = (struct tree_node){
		.threshold = s->cut == s->next ? feature->high[s->cut] : midpoint(feature->high[s->cut], feature->low[s->next]),
		.left = left,
		.feature = s->feature,
		/* without missing rows in training, the heavier side is the better guess */
		.missing_left = missing_seen ? s->missing_left : left_weight >= right_weight,
		.depth = t->node[node].depth,
	};
	for (uint32_t c = left; c <= right; c++) {
		t->node[c] = (struct tree_node){ .depth = (uint8_t)(depth + 1 < 255 ? depth + 1 : 255) };
		g->node_key[c] = rng_mix(g->node_key[node] * 2 + (c == right) + 0x632be59bd9b4e019ULL);
	}
	g->node_weight[left] = left_weight;
	g->node_weight[right] = right_weight;
	g->node_lo[left] = (uint32_t)lo;
	g->node_hi[left] = g->node_lo[right] = (uint32_t)mid;
	g->node_hi[right] = (uint32_t)hi;
	if (may_split(g, (uint32_t)(mid - lo), depth + 1) || may_split(g, (uint32_t)(hi - mid), depth + 1))
		part_rows(g, lo, hi); /* otherwise nobody looks at these rows again */
	t->n_nodes += 2;
}

static uint32_t take_rows(struct grower *g, const double *y, const uint32_t *weight)
{
	const struct bins *b = g->bins;
	uint32_t n = 0;
	uint32_t *picked = g->spill; /* a row number is smaller than a double */

	for (size_t i = 0; i < b->n_rows; i++) {
		uint32_t row = g->order ? g->order[i] : (uint32_t)i;
		picked[n] = row;
		n += weight[row] != 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		g->y[i] = y[picked[i]];
		g->weight[i] = weight[picked[i]];
	}
	if (g->wy)
		for (uint32_t i = 0; i < n; i++)
			g->wy[i] = g->y[i] * g->weight[i];
	for (size_t f = 0; f < b->n_features; f++) {
		const uint16_t *code = b->code + f * b->n_rows;
		for (uint32_t i = 0; i < n; i++)
			g->code[f][i] = code[picked[i]];
	}
	return n;
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
	t->node[0] = (struct tree_node){ 0 };
	t->n_nodes = 1;
	if (g->p.criterion == CRITERION_ABSOLUTE) {
		memset(g->side, 1, n);
		grow_absolute_side(g, 0, n, 1, weight, &t->value[0], &g->node_sum[0]);
	} else {
		for (uint32_t i = 0; i < n; i++)
			sum += g->wy[i];
		g->node_sum[0] = sum;
		t->value[0] = sum / weight;
	}
}

int grower_tree(struct grower *g, const double *y, const uint32_t *weight, uint64_t key, struct tree *out,
                struct err *err)
{
	uint32_t n = take_rows(g, y, weight), depth = 0, depth_end = 1;

	if (!out->importance)
		out->importance = mem_array(g->bins->n_features, sizeof *out->importance);
	if (!out->importance || reserve_nodes(g, out, 64))
		return err_fail(err, ERR_NOMEM, "no memory for a tree");
	memset(out->importance, 0, g->bins->n_features * sizeof *out->importance);
	plant_root(g, out, n, key);
	for (uint32_t node = 0; node < out->n_nodes; node++) {
		struct split_choice s;

		if (node == depth_end) { /* breadth first: everything before is shallower */
			depth++;
			depth_end = (uint32_t)out->n_nodes;
		}
		if (!may_split(g, g->node_hi[node] - g->node_lo[node], depth) ||
		    is_pure(g, g->node_lo[node], g->node_hi[node]))
			continue;
		s = find_split(g, node);
		if (!s.found)
			continue;
		if (reserve_nodes(g, out, out->n_nodes + 2))
			return err_fail(err, ERR_NOMEM, "no memory for a tree of %zu nodes", out->n_nodes);
		apply_split(g, out, node, depth, &s);
	}
	return 0;
}
