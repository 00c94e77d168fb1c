/* One tree: known answers worked by hand, and the vector loop against a plain search. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "predictors/trees/grow.h"
#include "tests/support/test.h"

static const struct grow_params plain = { .criterion = CRITERION_SQUARED,
					  .max_depth = UINT32_MAX,
					  .max_features = UINT32_MAX,
					  .min_split = 2,
					  .min_leaf = 1 };

static struct tree grow_weighted(const double *x, const double *y, const uint32_t *weight, size_t n, size_t p,
				 struct grow_params params, uint64_t key)
{
	struct dataset d = { .n_rows = n, .n_features = p, .x = (double *)x, .y = (double *)y };
	struct bins *bins;
	struct grower *g;
	struct tree t = { 0 };
	uint32_t *order = malloc(n * sizeof *order), *ones = malloc(n * sizeof *ones);

	for (size_t i = 0; i < n; i++)
		ones[i] = 1;
	if (params.max_features > p)
		params.max_features = (uint32_t)p;
	assert_int_equal(bins_new(&d, NULL, &bins, NULL), 0);
	assert_int_equal(bins_order(y, n, order, NULL), 0);
	assert_int_equal(
		grower_new(bins, &params, params.criterion == CRITERION_ABSOLUTE ? order : NULL, &g, NULL),
		0);
	assert_int_equal(grower_tree(g, y, weight ? weight : ones, key, &t, NULL), 0);
	grower_free(g);
	bins_free(bins);
	free(order);
	free(ones);
	return t;
}

static struct tree grow(const double *x, const double *y, size_t n, size_t p, struct grow_params params)
{
	return grow_weighted(x, y, NULL, n, p, params, 1);
}

static double predict(const struct tree *t, const double *x)
{
	return t->value[tree_leaf(t->node, x)];
}

TEST(test_tree_of_four_rows_is_the_one_worked_by_hand)
{
	/* Squared error: cutting {1, 1.2} from {9, 9.4} leaves 0.02 + 0.08; every other cut leaves more. */
	double x[] = { 1, 2, 4, 8 }, y[] = { 1, 1.2, 9, 9.4 };
	struct tree t = grow(
		x, y, 4, 1,
		(struct grow_params){ .max_depth = 1, .max_features = 1, .min_split = 2, .min_leaf = 1 });

	assert_int_equal(t.n_nodes, 3);
	assert_true(t.node[0].threshold == 3.0);
	assert_true(fabs(t.value[0] - 5.15) < 1e-12);
	assert_true(fabs(t.value[1] - 1.1) < 1e-12);
	assert_true(fabs(t.value[2] - 9.2) < 1e-12);
	assert_true(fabs(t.importance[0] - (64.99 + 0.1 - 0.2)) < 1.0); /* total minus what is left */
	tree_release(&t);
}

TEST(test_value_at_the_threshold_goes_left)
{
	double x[] = { 1, 3 }, y[] = { 10, 20 }, at = 2.0, above = nextafter(2.0, 3.0);
	struct tree t = grow(x, y, 2, 1, plain);

	assert_true(predict(&t, &at) == 10.0);
	assert_true(predict(&t, &above) == 20.0);
	tree_release(&t);
}

TEST(test_full_tree_reproduces_distinct_rows)
{
	double x[200], y[200];
	struct rng rng = rng_stream(3, 7);

	for (int i = 0; i < 200; i++) {
		x[i] = rng_uniform(&rng);
		y[i] = rng_normal(&rng);
	}
	for (int c = 0; c < 2; c++) {
		struct grow_params p = plain;
		struct tree t;
		p.criterion = (enum criterion)c;
		t = grow(x, y, 200, 1, p);
		for (int i = 0; i < 200; i++) /* a leaf of one row: w*y/w may round once */
			assert_true(fabs(predict(&t, &x[i]) - y[i]) < 1e-12);
		assert_int_equal(t.n_nodes, 399);
		tree_release(&t);
	}
}

TEST(test_constant_target_gives_a_single_leaf)
{
	double x[] = { 1, 2, 3, 4, 5 }, y[] = { 2.37, 2.37, 2.37, 2.37, 2.37 };
	struct tree t = grow(x, y, 5, 1, plain);

	assert_int_equal(t.n_nodes, 1);
	assert_true(fabs(t.value[0] - 2.37) < 1e-15);
	tree_release(&t);
}

TEST(test_constant_feature_is_never_split)
{
	double x[] = { 7, 1, 7, 2, 7, 3 }, y[] = { 1, 2, 3 };
	struct tree t = grow(x, y, 3, 2, plain);

	for (size_t i = 0; i < t.n_nodes; i++)
		assert_true(!t.node[i].left || t.node[i].feature == 1);
	tree_release(&t);
}

TEST(test_one_row_is_a_leaf)
{
	double x[] = { 1.5 }, y[] = { 42.5 };
	struct tree t = grow(x, y, 1, 1, plain);

	assert_int_equal(t.n_nodes, 1);
	assert_true(t.value[0] == 42.5);
	tree_release(&t);
}

TEST(test_huge_values_have_a_finite_threshold_between_them)
{
	double x[] = { -1.7e308, 1.7e308 }, y[] = { 1, 2 };
	struct tree t = grow(x, y, 2, 1, plain);

	assert_true(isfinite(t.node[0].threshold) && t.node[0].threshold >= x[0] &&
		    t.node[0].threshold < x[1]);
	tree_release(&t);
}

TEST(test_neighbouring_doubles_are_told_apart)
{
	double x[] = { 1.0, 0 }, y[] = { 1, 2 };
	struct tree t;

	x[1] = nextafter(1.0, 2.0);
	t = grow(x, y, 2, 1, plain);
	assert_true(t.node[0].threshold == 1.0); /* the midpoint would round up to the upper value */
	assert_true(predict(&t, &x[0]) == 1.0 && predict(&t, &x[1]) == 2.0);
	tree_release(&t);
}

TEST(test_min_samples_leaf_counts_rows_not_weight)
{
	double x[] = { 1, 2, 3, 4 }, y[] = { 100, 1, 1, 1 };
	uint32_t weight[] = { 9, 1, 1, 1 };
	struct grow_params p = plain;
	struct tree t;

	p.min_leaf = 2;
	t = grow_weighted(x, y, weight, 4, 1, p, 1);
	assert_int_equal(t.n_nodes, 3); /* {1,2} | {3,4}, although row 1 weighs 9 */
	assert_true(t.node[0].threshold == 2.5);
	tree_release(&t);
	p.min_leaf = 3;
	t = grow_weighted(x, y, weight, 4, 1, p, 1);
	assert_int_equal(t.n_nodes, 1);
	tree_release(&t);
}

TEST(test_a_node_of_fewer_rows_than_min_samples_split_is_a_leaf)
{
	double x[] = { 1, 2, 3, 4 }, y[] = { 1, 2, 8, 9 };
	struct grow_params p = plain;

	for (p.min_split = 2; p.min_split <= 5; p.min_split++) {
		struct tree t = grow(x, y, 4, 1, p);

		assert_int_equal(t.n_nodes, p.min_split == 2 ? 7 : p.min_split <= 4 ? 3 : 1);
		tree_release(&t);
	}
}

/* The first feature explains the target, the second hardly. A node that looks at one of them only has to take
 * the second in half of the trees: 100 of 200, with a standard error of 7. */
TEST(test_a_node_looks_at_no_more_features_than_allowed)
{
	double x[] = { 1, 1, 1, 2, 2, 1, 2, 2 }, y[] = { 1, 1.2, 9, 9.4 };
	struct grow_params p = plain;
	size_t second = 0;

	p.max_features = 1;
	for (uint64_t key = 0; key < 200; key++) {
		struct tree t = grow_weighted(x, y, NULL, 4, 2, p, key);

		second += t.node[0].feature == 1;
		tree_release(&t);
	}
	assert_in_range(second, 70, 130);
}

TEST(test_absolute_leaf_is_the_weighted_median)
{
	double x[] = { 1, 1, 1, 1 }, y[] = { 4.5, 1.5, 10, 2.5 };
	uint32_t odd[] = { 1, 1, 1, 2 }, half[] = { 1, 1, 1, 1 };
	struct grow_params p = plain;
	struct tree t;

	p.criterion = CRITERION_ABSOLUTE;
	t = grow_weighted(x, y, odd, 4, 1, p, 1);
	assert_true(t.value[0] == 2.5);
	tree_release(&t);
	t = grow_weighted(x, y, half, 4, 1, p, 1);
	assert_true(t.value[0] == 3.5); /* the weight splits in half: midpoint of 2.5 and 4.5 */
	tree_release(&t);
}

/* The smallest sum of absolute deviations over all cuts of one feature, the slow and plain way. */
static double deviation(const double *y, const uint32_t *w, const int *in, size_t n)
{
	double best = INFINITY;

	for (size_t m = 0; m < n; m++) {
		double sum = 0.0;
		if (!in[m] || !w[m])
			continue;
		for (size_t i = 0; i < n; i++)
			if (in[i])
				sum += w[i] * fabs(y[i] - y[m]);
		best = sum < best ? sum : best;
	}
	return best;
}

static double best_cut(const double *x, const double *y, const uint32_t *w, size_t n, size_t min_leaf)
{
	double best = INFINITY;
	int left[128], right[128];

	for (size_t c = 0; c < n; c++) {
		size_t n_left = 0, n_right = 0;
		for (size_t i = 0; i < n; i++) {
			left[i] = w[i] && x[i] <= x[c];
			right[i] = w[i] && x[i] > x[c];
			n_left += (size_t)left[i];
			n_right += (size_t)right[i];
		}
		if (n_left >= min_leaf && n_right >= min_leaf) {
			double d = deviation(y, w, left, n) + deviation(y, w, right, n);
			best = d < best ? d : best;
		}
	}
	return best;
}

static void check_absolute_root(size_t n, uint32_t levels, uint32_t min_leaf, uint64_t seed)
{
	double x[128] = { 0 }, y[128] = { 0 }, got = 0.0, want;
	uint32_t w[128];
	int left[128], right[128];
	struct grow_params p = { .criterion = CRITERION_ABSOLUTE,
				 .max_depth = 1,
				 .max_features = 1,
				 .min_split = 2,
				 .min_leaf = min_leaf };
	struct rng rng = rng_stream(seed, n * 1000 + levels);
	struct tree t;

	for (size_t i = 0; i < n; i++) {
		x[i] = rng_below(&rng, levels);
		y[i] = 5.0 * x[i] / levels + rng_normal(&rng);
		w[i] = rng_below(&rng, 4);
	}
	w[0] = 1;
	t = grow_weighted(x, y, w, n, 1, p, 1);
	want = best_cut(x, y, w, n, min_leaf);
	if (isinf(want)) {
		assert_int_equal(t.n_nodes, 1);
	} else {
		assert_int_equal(t.n_nodes, 3);
		for (size_t i = 0; i < n; i++) {
			left[i] = x[i] <= t.node[0].threshold;
			right[i] = !left[i];
		}
		got = deviation(y, w, left, n) + deviation(y, w, right, n);
		assert_true(fabs(got - want) <= 1e-9 * want);
	}
	tree_release(&t);
}

TEST(test_absolute_split_is_optimal_for_few_and_many_levels)
{
	static const uint32_t levels[] = {
		2, 3, 5, 9, 12, 17, 33, 34, 60, 100000
	}; /* 33 | 34: vectors | list */

	for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
		for (uint64_t seed = 0; seed < 40; seed++) {
			check_absolute_root(2 + seed * 3, levels[k], 1, seed);
			check_absolute_root(2 + seed * 3, levels[k], 1 + (uint32_t)seed, seed);
		}
}

TEST(test_missing_values_take_the_side_that_suits_them)
{
	/* Missing rows behave like small x: they belong left, and a missing value at prediction follows. */
	double x[] = { 1, 2, 8, 9, NAN, NAN }, y[] = { 1, 1.1, 5, 5.1, 1.05, 1.02 }, missing = NAN;

	for (int c = 0; c < 2; c++) {
		struct grow_params p = plain;
		struct tree t;
		p.criterion = (enum criterion)c;
		p.max_depth = 1;
		t = grow(x, y, 6, 1, p);
		assert_int_equal(t.n_nodes, 3);
		assert_true(t.node[0].missing_left);
		assert_true(t.node[0].threshold == 5.0);
		assert_true(predict(&t, &missing) < 2.0);
		tree_release(&t);
	}
}

TEST(test_missing_alone_can_be_split_off)
{
	double x[] = { 1, 2, 3, NAN, NAN }, y[] = { 1, 1, 1, 7, 7 }, missing = NAN, known = 99;

	for (int c = 0; c < 2; c++) {
		struct grow_params p = plain;
		struct tree t;
		p.criterion = (enum criterion)c;
		p.max_depth = 1;
		t = grow(x, y, 5, 1, p);
		assert_int_equal(t.n_nodes, 3);
		assert_true(predict(&t, &missing) == 7.0);
		assert_true(predict(&t, &x[2]) == 1.0);
		(void)known;
		tree_release(&t);
	}
}

TEST(test_missing_never_seen_goes_with_the_heavier_side)
{
	double x[] = { 1, 2, 3, 8 }, y[] = { 1, 1, 1, 9 }, missing = NAN;
	struct tree t = grow(x, y, 4, 1, plain);

	assert_true(predict(&t, &missing) == 1.0);
	tree_release(&t);
}

TEST(test_deep_tree_contains_its_shallow_self)
{
	double x[60 * 3], y[60];
	struct rng rng = rng_stream(5, 5);
	struct grow_params p = plain;
	struct tree deep, shallow;

	for (int i = 0; i < 60; i++) {
		for (int f = 0; f < 3; f++)
			x[3 * i + f] = rng_below(&rng, 4);
		y[i] = rng_normal(&rng);
	}
	p.max_features = 1; /* the order of looking at features matters most here */
	deep = grow(x, y, 60, 3, p);
	for (uint32_t depth = 1; depth < 6; depth++) {
		p.max_depth = depth;
		shallow = grow(x, y, 60, 3, p);
		for (size_t i = 0; i < shallow.n_nodes; i++) {
			assert_true(shallow.value[i] == deep.value[i]);
			if (shallow.node[i].left)
				assert_memory_equal(&shallow.node[i], &deep.node[i], sizeof deep.node[i]);
		}
		tree_release(&shallow);
	}
	tree_release(&deep);
}

TEST(test_large_table_is_compacted_without_changing_the_tree)
{
	/* 40,000 rows pass the limit at which codes are copied into node order; a tree on levels 0..9 has a
	 * known shape: it must reproduce the level means whatever was moved. */
	size_t n = 40000;
	double *x = malloc(2 * n * sizeof *x), *y = malloc(n * sizeof *y);
	struct rng rng = rng_stream(11, 2);
	struct tree t;

	for (size_t i = 0; i < n; i++) {
		x[2 * i] = rng_below(&rng, 10);
		x[2 * i + 1] = rng_below(&rng, 7);
		y[i] = 3.5 * x[2 * i] + 100 * x[2 * i + 1];
	}
	t = grow(x, y, n, 2, plain);
	assert_int_equal(t.n_nodes, 2 * 70 - 1);
	for (size_t i = 0; i < n; i++)
		assert_true(fabs(predict(&t, x + 2 * i) - y[i]) < 1e-8);
	tree_release(&t);
	free(x);
	free(y);
}

TEST(test_more_values_than_codes_are_cut_into_quantiles)
{
	size_t n = 70000; /* past the 65,534 levels that are kept exactly */
	double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y), worst = 0.0;
	struct grow_params p = plain;
	struct tree t;

	for (size_t i = 0; i < n; i++) {
		x[i] = (double)((i * 48271) % n);
		y[i] = x[i] < 35000 ? 1.0 : 2.0;
	}
	p.max_depth = 1;
	t = grow(x, y, n, 1, p);
	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(predict(&t, &x[i]) - y[i]));
	/* the cut is at most one quantile, 1/4096 of the rows, away from the best */
	assert_true(fabs(t.node[0].threshold - 34999.5) <= 70000.0 / 4096 + 1);
	tree_release(&t);
	free(x);
	free(y);
}
