/* Absolute error: the best split has the smallest sum of absolute deviations from the two medians.
 *
 * A node's rows stand in ascending order of y (parting is stable, so the order of the root is kept).
 * For a subset A of them with total weight W and cumulative weight C_i up to row i, the deviation
 * from its median is
 *
 *     D(A) = sum_i gap_i min(C_i, W - C_i)      with gap_i = y_{i+1} - y_i over all rows of the node,
 *
 * because each gap is crossed by the rows on its lighter side. With min(c, W-c) = (W - |2c - W|) / 2
 * and R the rest of the node (total weight V, cumulative weight T_i), and since (2c - W) + (2(T-c) - (V-W)) =
 * 2T - V:
 *
 *     D(A) + D(R) = (V sum_i gap_i - S) / 2,    S = sum_i gap_i (|z_i| + |t_i - z_i|),
 *     z_i = 2 C_i - W,  t_i = 2 T_i - V.
 *
 * So the best split has the largest S: no median, no branch, no cancellation, and all splits of a
 * feature are lanes of one vector loop. Where a feature has many levels, deleting rows from a linked
 * list while following its median costs O(rows) for all splits together instead. */
#include "predictors/trees/grow_internal.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"

#define MAX_LANES 32 /* beyond that many splits the linked list is faster (measured) */

/* Compiled twice, for processors with AVX2 and for all; the loader picks one. ThreadSanitizer cannot be
 * used with that: the picking runs before its start-up. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define WIDE_VECTORS
#endif

typedef double v4d __attribute__((vector_size(32)));
typedef int64_t v4i __attribute__((vector_size(32)));

int grow_absolute_alloc(struct grower *g)
{
	size_t n = g->bins->n_rows;

	g->weight2 = mem_array(n, sizeof *g->weight2);
	g->gap = mem_array(n, sizeof *g->gap);
	g->cumulative2 = mem_array(n, sizeof *g->cumulative2);
	g->next = mem_array(n + 2, sizeof *g->next);
	g->prev = mem_array(n + 2, sizeof *g->prev);
	g->by_level = mem_array(n, sizeof *g->by_level);
	g->level_end = mem_array(n + 2, sizeof *g->level_end);
	g->right_score = mem_array(n + 2, sizeof *g->right_score);
	g->lane_mask = mem_array((MAX_LANES + 2) * MAX_LANES, sizeof *g->lane_mask);
	g->missing_mask = mem_calloc((MAX_LANES + 2) * MAX_LANES, sizeof *g->missing_mask);
	if (!g->weight2 || !g->gap || !g->cumulative2 || !g->next || !g->prev || !g->by_level ||
	    !g->level_end || !g->right_score || !g->lane_mask || !g->missing_mask)
		return -1;
	for (int64_t level = 0; level < MAX_LANES + 2; level++)
		for (int64_t lane = 0; lane < MAX_LANES; lane++)
			g->lane_mask[level * MAX_LANES + lane] = -(int64_t)(level <= lane);
	return 0;
}

void grow_absolute_release(struct grower *g)
{
	free(g->weight2);
	free(g->gap);
	free(g->cumulative2);
	free(g->next);
	free(g->prev);
	free(g->by_level);
	free(g->level_end);
	free(g->right_score);
	free(g->lane_mask);
	free(g->missing_mask);
}

void grow_absolute_enter(struct grower *g, uint32_t node)
{
	size_t lo = g->node_lo[node], n = g->node_hi[node] - lo;
	const double *y = g->y + lo;
	double t = -(double)g->node_weight[node];

	for (size_t i = 0; i < n; i++) {
		g->weight2[i] = 2.0 * g->weight[lo + i];
		t += g->weight2[i];
		g->cumulative2[i] = t;
		g->gap[i] = i + 1 < n ? y[i + 1] - y[i] : 0.0;
	}
}

/* S of four or eight lanes at once; start[k] = -W of lane k. */
WIDE_VECTORS static void lanes4(const struct grower *g, size_t n, const int64_t *mask, const double *start,
				double *out)
{
	const v4i magnitude = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
	v4d z = { start[0], start[1], start[2], start[3] }, s = { 0 };

	for (size_t i = 0; i < n; i++) {
		v4i bits;
		v4d w = { g->weight2[i], g->weight2[i], g->weight2[i], g->weight2[i] };
		__builtin_memcpy(&bits, mask + (size_t)g->dense[i] * MAX_LANES, sizeof bits);
		z += (v4d)((v4i)w & bits);
		s += g->gap[i] *
		     ((v4d)((v4i)z & magnitude) + (v4d)((v4i)(g->cumulative2[i] - z) & magnitude));
	}
	__builtin_memcpy(out, &s, sizeof s);
}

WIDE_VECTORS static void lanes8(const struct grower *g, size_t n, const int64_t *mask, const double *start,
				double *out)
{
	const v4i magnitude = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
	v4d za = { start[0], start[1], start[2], start[3] }, sa = { 0 };
	v4d zb = { start[4], start[5], start[6], start[7] }, sb = { 0 };

	for (size_t i = 0; i < n; i++) {
		const int64_t *m = mask + (size_t)g->dense[i] * MAX_LANES;
		v4i a, b;
		v4d w = { g->weight2[i], g->weight2[i], g->weight2[i], g->weight2[i] };
		double gap = g->gap[i], t = g->cumulative2[i];
		__builtin_memcpy(&a, m, sizeof a);
		__builtin_memcpy(&b, m + 4, sizeof b);
		za += (v4d)((v4i)w & a);
		zb += (v4d)((v4i)w & b);
		sa += gap * ((v4d)((v4i)za & magnitude) + (v4d)((v4i)(t - za) & magnitude));
		sb += gap * ((v4d)((v4i)zb & magnitude) + (v4d)((v4i)(t - zb) & magnitude));
	}
	__builtin_memcpy(out, &sa, sizeof sa);
	__builtin_memcpy(out + 4, &sb, sizeof sb);
}

/* Lanes in the order in which splits are considered: missing rows right, then missing rows left.
 * Lane k of the first kind has levels 0..k on the left: that mask is the same for every feature. */
static const int64_t *fill_lanes(struct grower *g, double *start, uint32_t *weight, uint32_t *rows)
{
	size_t P = g->n_levels, lane = 0;

	for (int missing_left = 0; missing_left <= (g->missing_rows > 0); missing_left++) {
		uint32_t w = missing_left ? g->missing_weight : 0, r = missing_left ? g->missing_rows : 0;
		size_t n = P - (missing_left || !g->missing_rows);

		for (size_t i = 0; i < n; i++, lane++) {
			w += g->level[i].weight;
			r += g->level[i].n_rows;
			weight[lane] = w;
			rows[lane] = r;
			start[lane] = -(double)w;
			if (!g->missing_rows)
				continue;
			for (size_t j = 0; j < P; j++)
				g->missing_mask[j * MAX_LANES + lane] = -(int64_t)(j <= i);
			g->missing_mask[P * MAX_LANES + lane] = -(int64_t)missing_left;
		}
	}
	return g->missing_rows ? g->missing_mask : g->lane_mask;
}

static void search_lanes(struct grower *g, size_t f, uint32_t node, size_t n_lanes, struct split_choice *best)
{
	size_t n = g->node_hi[node] - g->node_lo[node], k = 0;
	size_t first = g->n_levels - !g->missing_rows; /* lanes with missing rows on the right */
	double start[MAX_LANES] = { 0 }, score[MAX_LANES];
	uint32_t weight[MAX_LANES], rows[MAX_LANES];
	const int64_t *mask = fill_lanes(g, start, weight, rows);

	for (; k + 4 < n_lanes; k += 8)
		lanes8(g, n, mask + k, start + k, score + k);
	if (k < n_lanes)
		lanes4(g, n, mask + k, start + k, score + k);
	for (k = 0; k < n_lanes; k++) {
		struct split_choice left = { .missing_left = k >= first,
					     .left_weight = weight[k],
					     .left_rows = rows[k] };

		grower_consider(g, f, node, k < first ? k : k - first, &left, score[k], best);
	}
}

/* ---- many levels: a linked list in order of y from which rows are deleted ---- */

struct median_list {
	const struct grower *g;
	const double *y;
	const uint32_t *w;
	double origin; /* y is taken relative to it, so that sums stay small */
	uint32_t at; /* the median's row + 1 (0 and n+1 are the ends of the list) */
	int64_t below, total; /* weight before the median, and of all rows left */
	double below_sum, sum;
};

/* All n rows are in the list. */
static void median_list_link(struct grower *g, size_t n)
{
	for (size_t i = 0; i <= n + 1; i++) {
		g->next[i] = (uint32_t)i + 1;
		g->prev[i] = (uint32_t)i - 1;
	}
}

static void median_list_init(struct median_list *m, const struct grower *g, uint32_t node)
{
	size_t lo = g->node_lo[node], n = g->node_hi[node] - lo;

	*m = (struct median_list){
		.g = g, .y = g->y + lo, .w = g->weight + lo, .at = 1, .total = g->node_weight[node]
	};
	m->origin = m->y[n / 2];
	for (size_t i = 0; i < n; i++)
		m->sum += m->w[i] * (m->y[i] - m->origin);
	while (2 * (m->below + m->w[m->at - 1]) < m->total) {
		m->below += m->w[m->at - 1];
		m->below_sum += m->w[m->at - 1] * (m->y[m->at - 1] - m->origin);
		m->at++;
	}
}

static void median_list_remove(struct median_list *m, uint32_t row, size_t n)
{
	const struct grower *g = m->g;
	uint32_t *next = g->next, *prev = g->prev, at = row + 1;
	double wy = m->w[row] * (m->y[row] - m->origin);

	m->total -= m->w[row];
	m->sum -= wy;
	if (at < m->at) {
		m->below -= m->w[row];
		m->below_sum -= wy;
	} else if (at == m->at) {
		m->at = next[at];
		if (m->at == n + 1 && prev[at] != 0) { /* past the end: the one before takes over */
			m->at = prev[at];
			m->below -= m->w[m->at - 1];
			m->below_sum -= m->w[m->at - 1] * (m->y[m->at - 1] - m->origin);
		}
	}
	next[prev[at]] = next[at];
	prev[next[at]] = prev[at];
	if (m->total == 0)
		return;
	while (2 * m->below >= m->total) {
		m->at = prev[m->at];
		m->below -= m->w[m->at - 1];
		m->below_sum -= m->w[m->at - 1] * (m->y[m->at - 1] - m->origin);
	}
	while (2 * (m->below + m->w[m->at - 1]) < m->total) {
		m->below += m->w[m->at - 1];
		m->below_sum += m->w[m->at - 1] * (m->y[m->at - 1] - m->origin);
		m->at = next[m->at];
	}
}

static double median_list_deviation(const struct median_list *m)
{
	double y = m->total ? m->y[m->at - 1] - m->origin : 0.0;
	double d = y * (double)(2 * m->below - m->total) + m->sum - 2.0 * m->below_sum;

	return d > 0.0 ? d : 0.0; /* rounding may leave -1e-17 */
}

/* Deviation of what is left after the groups before/after each level are gone. Groups are the levels,
 * with missing rows as one more group at either end. */
static void search_list(struct grower *g, size_t f, uint32_t node, bool missing_left,
			struct split_choice *best)
{
	size_t lo = g->node_lo[node], n = g->node_hi[node] - lo, P = g->n_levels, at = 0;
	size_t shift = missing_left && g->missing_rows ? 1 : 0, groups = P + (g->missing_rows > 0);
	size_t first = 0, end = groups - 1; /* splits behind these groups leave enough rows on both sides */
	double spread = (g->y[lo + n - 1] - g->y[lo]) * g->node_weight[node];
	struct split_choice left = { .missing_left = shift };
	struct median_list whole, m;

	for (size_t j = 0; j <= groups; j++)
		g->level_end[j] = 0;
	for (size_t i = 0; i < n; i++)
		g->level_end[(g->dense[i] == P ? (shift ? 0 : P) : g->dense[i] + shift) + 1]++;
	for (size_t j = 0; j < groups; j++)
		g->level_end[j + 1] += g->level_end[j];
	for (size_t i = 0; i < n; i++)
		g->by_level[g->level_end[g->dense[i] == P ? (shift ? 0 : P) : g->dense[i] + shift]++] =
			(uint32_t)i;
	/* Now level_end[j] is where group j ends. */
	while (first < end && g->level_end[first] < g->p.min_leaf)
		first++;
	while (first < end && n - g->level_end[end - 1] < g->p.min_leaf)
		end--;
	if (first == end)
		return;
	median_list_init(&whole, g, node);
	median_list_link(g, n);
	m = whole;
	for (size_t j = 0; j < end; j++) {
		for (; at < g->level_end[j]; at++)
			median_list_remove(&m, g->by_level[at], n);
		if (j >= first)
			g->right_score[j] = median_list_deviation(&m);
	}
	median_list_link(g, n);
	m = whole;
	at = n;
	for (size_t j = groups - 1; j > first; j--) {
		for (; at > g->level_end[j - 1]; at--)
			median_list_remove(&m, g->by_level[at - 1], n);
		if (j <= end)
			g->right_score[j - 1] += median_list_deviation(&m);
	}
	for (size_t j = 0; j < end; j++) {
		if (j < shift) { /* missing rows alone on the left: the same as alone on the right */
			left.left_weight = g->missing_weight;
			left.left_rows = g->missing_rows;
			continue;
		}
		left.left_weight += g->level[j - shift].weight;
		left.left_rows += g->level[j - shift].n_rows;
		/* on the scale of S, so that features of few and of many levels compare */
		if (j >= first)
			grower_consider(g, f, node, j - shift, &left, spread - 2.0 * g->right_score[j], best);
	}
}

/* ---- few levels, none missing: the usual case of a designed experiment, in two passes over the rows ---- */

#define FEW_LEVELS (MAX_LANES + 1)

/* Counts per code, rows << 32 | weight, and the codes themselves in dense[]. Two sets of counters, because
 * neighbours in y often share a level and one addition would wait for the other. */
static void count_few(struct grower *g, const uint16_t *code, size_t lo, size_t n, uint32_t L,
		      uint64_t *count)
{
	uint64_t odd[FEW_LEVELS + 1];
	const uint32_t *row = g->row + lo, *weight = g->weight + lo;
	size_t i = 0;

	for (uint32_t c = 0; c <= L; c++) /* only these: clearing whole arrays took a fifth of the time */
		count[c] = odd[c] = 0;
	for (; i + 2 <= n; i += 2) {
		uint32_t a = code[row[i]], b = code[row[i + 1]];

		g->dense[i] = a;
		g->dense[i + 1] = b;
		count[a] += ONE_ROW | weight[i];
		odd[b] += ONE_ROW | weight[i + 1];
	}
	if (i < n) {
		g->dense[i] = code[row[i]];
		count[g->dense[i]] += ONE_ROW | weight[i];
	}
	for (uint32_t c = 0; c <= L; c++)
		count[c] += odd[c];
}

/* Lane k cuts after code first + k. Codes that do not occur make lanes equal to their neighbour's, which
 * are not considered. Returns false where the feature is constant, and sets *out_missing where rows are
 * missing, which this way does not handle. */
static bool search_few(struct grower *g, size_t f, uint32_t node, bool *out_missing,
		       struct split_choice *best)
{
	uint32_t L = g->bins->feature[f].n_levels, first = 0, last = L - 1;
	size_t lo = g->node_lo[node], n = g->node_hi[node] - lo, n_lanes, k = 0, best_lane = SIZE_MAX;
	uint64_t count[FEW_LEVELS + 1], sum = 0, left[MAX_LANES];
	double start[MAX_LANES + 8], score[MAX_LANES + 8], most = best->score;
	const int64_t *mask;

	count_few(g, g->codes + f * g->bins->n_rows, lo, n, L, count);
	*out_missing = count[L] != 0;
	if (*out_missing)
		return false;
	while (!count[first])
		first++;
	while (!count[last])
		last--;
	n_lanes = last - first;
	if (n_lanes == 0)
		return false;
	for (k = 0; k < n_lanes; k++) {
		sum += count[first + k];
		left[k] = sum;
		start[k] = -(double)(uint32_t)sum;
	}
	for (; k % 8; k++)
		start[k] = 0.0; /* lanes past the last are computed and ignored */
	mask = g->lane_mask - (ptrdiff_t)first * MAX_LANES;
	for (k = 0; k + 4 < n_lanes; k += 8)
		lanes8(g, n, mask + k, start + k, score + k);
	if (k < n_lanes)
		lanes4(g, n, mask + k, start + k, score + k);
	for (k = 0; k < n_lanes; k++) {
		uint32_t rows = (uint32_t)(left[k] >> 32);

		if (!count[first + k] || rows < g->p.min_leaf || n - rows < g->p.min_leaf)
			continue;
		if ((best->found || best_lane != SIZE_MAX) && !(score[k] > most))
			continue;
		best_lane = k;
		most = score[k];
	}
	if (best_lane != SIZE_MAX) {
		uint32_t next = first + (uint32_t)best_lane + 1;

		while (!count[next])
			next++;
		*best = (struct split_choice){ .score = most,
					       .found = true,
					       .feature = (uint16_t)f,
					       .cut = first + (uint32_t)best_lane,
					       .next = next,
					       .left_weight = (uint32_t)left[best_lane],
					       .left_rows = (uint32_t)(left[best_lane] >> 32) };
	}
	return true;
}

bool grow_absolute_search(struct grower *g, size_t f, uint32_t node, struct split_choice *best)
{
	uint32_t L = g->bins->feature[f].n_levels;
	size_t lanes;

	if (L > 0 && L <= FEW_LEVELS) {
		bool missing, usable = search_few(g, f, node, &missing, best);
		if (!missing)
			return usable;
	}
	grower_levels(g, f, g->node_lo[node], g->node_hi[node], true);
	if (g->n_levels + (g->missing_rows > 0) < 2)
		return false;
	lanes = g->missing_rows ? 2 * g->n_levels - 1 : g->n_levels - 1;
	if (lanes <= MAX_LANES) {
		search_lanes(g, f, node, lanes, best);
		return true;
	}
	search_list(g, f, node, false, best);
	if (g->missing_rows)
		search_list(g, f, node, true, best);
	return true;
}

/* Along the rows z = 2C - W of a side rises from -W to W; the median is where it reaches 0. If it stays
 * 0 for a while the weight splits exactly in half, and the row that ends the while is the other neighbour:
 * counting the rows with z < 0 and with z <= 0 finds both without a branch. */
void grow_absolute_sides(const struct grower *g, size_t lo, size_t hi, const uint32_t weight[2],
			 struct side_summary out[2])
{
	const double *y = g->y + lo;
	const uint8_t *side = g->side + lo;
	size_t n = hi - lo, below0 = 0, upto0 = 0, below1 = 0, upto1 = 0;
	double z0 = -(double)weight[0], z1 = -(double)weight[1], w0 = weight[0], w1 = weight[1];
	double sum0 = 0.0, sum1 = 0.0;

	for (size_t i = 0; i < n; i++) {
		double right = side[i] ? 0.0 : g->weight2[i];

		z0 += right;
		z1 += g->weight2[i] - right;
		sum0 += g->gap[i] * (w0 - fabs(z0));
		sum1 += g->gap[i] * (w1 - fabs(z1));
		below0 += z0 < 0.0;
		upto0 += z0 <= 0.0;
		below1 += z1 < 0.0;
		upto1 += z1 <= 0.0;
	}
	out[0] = (struct side_summary){ 0.0, sum0 / 2.0 };
	out[1] = (struct side_summary){ 0.0, sum1 / 2.0 };
	if (weight[0])
		out[0].median = upto0 > below0 ? y[below0] / 2.0 + y[upto0] / 2.0 : y[below0];
	if (weight[1])
		out[1].median = upto1 > below1 ? y[below1] / 2.0 + y[upto1] / 2.0 : y[below1];
}
