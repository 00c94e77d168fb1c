/* predictors/trees/forest: predictions, out-of-bag rows, the four forms of an ensemble. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/trees/ensemble_model.h"
#include "predictors/trees/forest.h"
#include "predictors/data/score.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

static struct predictor fit(const struct predictor_ops *ops, const char *set, const struct dataset *d,
			    bool oob)
{
	struct fit_context ctx = { .seed = 17, .want_oob = oob };
	struct settings s;
	struct predictor p;
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if (settings_parse(&s, set, &err))
		fail_msg("%s", err.text);
	if (predictor_fit(ops, &s, d, &ctx, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static const struct ensemble *ensemble_of(const struct predictor *p)
{
	return ((const struct ensemble_model *)p->self)->ensemble;
}

TEST(test_forest_is_the_plain_mean_of_its_trees)
{
	struct dataset *d = world_factorial(2, 0.05, 1);
	struct predictor p = fit(&forest_ops, "trees=25,depth=5", d, false);
	const struct ensemble *e = ensemble_of(&p);
	double sum = 0.0, got;

	assert_int_equal(e->n_trees, 25);
	for (size_t t = 0; t < 25; t++)
		sum += e->value[e->first[t] + tree_leaf(e->node + e->first[t], d->x + 50)];
	predictor_predict(&p, d->x + 50, 1, &got);
	assert_true(got == sum / 25);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_first_trees_of_a_large_forest_are_the_small_forest)
{
	struct dataset *d = world_factorial(1, 0.05, 2);
	struct predictor small = fit(&forest_ops, "trees=10", d, false),
			 large = fit(&forest_ops, "trees=40", d, false);
	const struct ensemble *a = ensemble_of(&small), *b = ensemble_of(&large);

	assert_memory_equal(a->value, b->value, a->n_nodes * sizeof *a->value);
	predictor_release(&small);
	predictor_release(&large);
	dataset_free(d);
}

TEST(test_bins_are_made_once_for_many_fits_and_change_no_model)
{
	static const char *const set[] = { "trees=4,criterion=absolute", "trees=4,depth=3", "trees=9" };
	struct dataset *d = world_factorial(1, 0.05, 2);
	struct bins *bins = NULL, *first = NULL;
	struct fit_context ctx = { .seed = 17, .bins = &bins };

	for (size_t k = 0; k < 3; k++) {
		struct predictor alone = fit(&forest_ops, set[k], d, false), again = { 0 };
		const struct ensemble *a = ensemble_of(&alone), *b;

		assert_int_equal(predictor_fit(&forest_ops, &alone.settings, d, &ctx, &again, NULL), 0);
		b = ensemble_of(&again);
		first = first ? first : bins;
		assert_true(bins && bins == first);
		assert_int_equal(a->n_nodes, b->n_nodes);
		assert_memory_equal(a->value, b->value, a->n_nodes * sizeof *a->value);
		predictor_release(&alone);
		predictor_release(&again);
	}
	bins_free(bins);
	dataset_free(d);
}

TEST(test_prediction_stays_within_the_labels)
{
	struct dataset *d = world_smooth(300, 4, 1.0, 0.0, 3);
	double low = INFINITY, high = -INFINITY, x[4], got;
	struct rng rng = rng_stream(1, 1);

	for (size_t i = 0; i < d->n_rows; i++) {
		low = fmin(low, d->y[i]);
		high = fmax(high, d->y[i]);
	}
	for (int c = 0; c < 2; c++) {
		struct predictor p =
			fit(&forest_ops, c ? "trees=30,criterion=absolute" : "trees=30", d, false);
		for (int k = 0; k < 500; k++) {
			for (int f = 0; f < 4; f++)
				x[f] = 3 * rng_normal(&rng);
			predictor_predict(&p, x, 1, &got);
			assert_true(got >= low - 1e-9 && got <= high + 1e-9); /* means round */
		}
		predictor_release(&p);
	}
	dataset_free(d);
}

TEST(test_out_of_bag_error_is_near_that_on_new_rows)
{
	struct dataset *d = world_smooth(600, 5, 1.0, 0.0, 4), *fresh = world_smooth(2000, 5, 1.0, 0.0, 5);
	struct predictor p = fit(&forest_ops, "trees=200", d, true);
	const double *oob = p.ops->oob(p.self);
	double *predicted = malloc(fresh->n_rows * sizeof *predicted), in_bag, out_of_bag, on_new;

	assert_non_null(oob);
	out_of_bag = score_of(d->y, oob, d->n_rows).mse;
	predictor_predict(&p, fresh->x, fresh->n_rows, predicted);
	on_new = score_of(fresh->y, predicted, fresh->n_rows).mse;
	predictor_predict(&p, d->x, d->n_rows, predicted);
	in_bag = score_of(d->y, predicted, d->n_rows).mse;
	assert_true(out_of_bag > 0.85 * on_new &&
		    out_of_bag < 1.25 * on_new); /* spread of 600 squared errors: 6 % */
	assert_true(in_bag < 0.5 * out_of_bag);
	free(predicted);
	predictor_release(&p);
	dataset_free(d);
	dataset_free(fresh);
}

TEST(test_out_of_bag_is_not_a_number_where_no_tree_left_the_row_out)
{
	struct dataset *d = world_factorial(1, 0.05, 2);
	struct predictor p = fit(&forest_ops, "trees=1", d, true);
	const double *oob = p.ops->oob(p.self);
	size_t in_bag = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		in_bag += isnan(oob[i]);
	/* 1 - (1 - 1/96)^96 = 63.4 % of 96 rows are drawn: 61 +- 3 standard deviations of 3.1 */
	assert_in_range(in_bag, 51, 71);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_importances_find_the_features_that_matter)
{
	struct dataset *d = world_smooth(800, 8, 0.5, 0.0, 6);
	double importance[8], sum = 0.0;

	for (int c = 0; c < 2; c++) {
		struct predictor p = fit(&forest_ops,
					 c ? "trees=50,depth=8,criterion=absolute" : "trees=50,depth=8", d,
					 false);
		p.ops->importances(p.self, importance);
		sum = 0.0;
		for (int f = 0; f < 8; f++) {
			assert_true(importance[f] >= 0.0);
			sum += importance[f];
		}
		assert_true(fabs(sum - 1.0) < 1e-12);
		for (int f = 4; f < 8; f++) /* no say in the truth */
			assert_true(importance[f] < importance[3] / 5);
		predictor_release(&p);
	}
	dataset_free(d);
}

TEST(test_max_features_words_mean_what_they_mean_in_scikit_learn)
{
	static const struct {
		const char *set;
		size_t p, want;
	} row[] = { { "max_features=all", 5, 5 },  { "max_features=sqrt", 5, 2 },
		    { "max_features=log2", 5, 2 }, { "max_features=sqrt", 10, 3 },
		    { "max_features=log2", 1, 1 }, { "max_features=3", 5, 3 },
		    { "max_features=0.5", 5, 2 },  { "max_features=99", 5, 5 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct settings s;
		settings_init(&s, forest_ops.spec);
		assert_int_equal(settings_parse(&s, row[i].set, NULL), 0);
		assert_int_equal(forest_params_of(&s, 100, row[i].p).grow.max_features, row[i].want);
	}
}

TEST(test_min_samples_may_be_a_share_of_the_rows)
{
	struct settings s;
	struct forest_params p;

	settings_init(&s, tree_ops.spec);
	assert_int_equal(settings_parse(&s, "min_samples_split=0.1,min_samples_leaf=0.05", NULL), 0);
	p = forest_params_of(&s, 71, 3);
	assert_int_equal(p.grow.min_split, 8); /* ceil(7.1) */
	assert_int_equal(p.grow.min_leaf, 4); /* ceil(3.55) */
}

/* Masks take four rows at once, fewer at the end, and rows that differ in one feature together. */
static void check_few_rows(const struct ensemble *e, const double *x)
{
	size_t p = e->n_features;
	double alike[4 * 8], want[7], have[7];

	for (size_t n = 1; n <= 7; n++) {
		ensemble_predict_trees(e, x, n, want);
		ensemble_predict_masks(e, x, n, have);
		assert_memory_equal(want, have, n * sizeof *want);
	}
	for (size_t f = 0; f < p; f++) {
		for (size_t i = 0; i < 4; i++) {
			memcpy(alike + i * p, x, p * sizeof *x);
			alike[i * p + f] = x[i * p + f];
		}
		ensemble_predict_trees(e, alike, 4, want);
		ensemble_predict_masks(e, alike, 4, have);
		assert_memory_equal(want, have, 4 * sizeof *want);
	}
}

static void check_all_ways(const struct predictor *p, size_t n_features, uint64_t seed)
{
	struct ensemble *e = (struct ensemble *)ensemble_of(p);
	double x[64 * 8], trees[64], walks[64], masks[64], table[64];
	struct rng rng = rng_stream(seed, 0);

	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < 64 * n_features; i++) {
			/* on thresholds, between them, far outside, missing */
			size_t f = i % n_features;
			uint32_t kind = rng_below(&rng, 8);
			x[i] = kind == 0                  ? NAN
			       : kind == 1                ? 1e300 * rng_normal(&rng)
			       : kind < 5 && e->n_cuts[f] ? e->cut[f][rng_below(&rng, e->n_cuts[f])]
							  : 10 * rng_normal(&rng);
		}
		ensemble_predict_trees(e, x, 64, trees);
		ensemble_predict_walks(e, x, 64, walks);
		assert_memory_equal(trees, walks, sizeof trees);
		if (e->masks) {
			ensemble_predict_masks(e, x, 64, masks);
			assert_memory_equal(trees, masks, sizeof trees);
			check_few_rows(e, x);
		}
		assert_int_equal(ensemble_compile(e, NULL), 0);
		assert_non_null(e->cell);
		ensemble_predict(e, x, 64, table);
		assert_memory_equal(trees, table, sizeof trees);
	}
}

TEST(test_trees_walks_masks_and_table_agree_to_the_last_bit)
{
	struct dataset *d = world_factorial(3, 0.05, 7);
	static const char *const set[] = { "trees=200,depth=6", "trees=60,criterion=absolute",
					   "trees=2,depth=1", "trees=33,max_features=1", "trees=1,depth=6" };

	for (size_t i = 0; i < d->n_rows; i += 11)
		d->x[5 * i + i % 5] = NAN; /* missing values in training too */
	for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
		struct predictor p = fit(&forest_ops, set[k], d, false);
		/* depth 6 has at most 64 leaves, so there are masks, but not for a single tree; 288 rows
		 * grown out have more */
		assert_true((ensemble_of(&p)->masks != NULL) == (k == 0 || k == 2));
		check_all_ways(&p, 5, k);
		predictor_release(&p);
	}
	dataset_free(d);
}

TEST(test_table_that_would_be_large_is_not_built)
{
	struct dataset *d = world_smooth(400, 6, 1.0, 0.0, 8);
	struct predictor p = fit(&forest_ops, "trees=50", d, false);

	assert_true(ensemble_cells(ensemble_of(&p)) > LOOKUP_MAX_CELLS);
	assert_int_equal(p.ops->compile(p.self, NULL), 0);
	assert_null(ensemble_of(&p)->cell);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_running_out_of_memory_anywhere_leaves_nothing_behind)
{
	struct dataset *d = world_factorial(1, 0.05, 9);
	struct fit_context ctx = { .seed = 1, .want_oob = true };
	unsigned long k = 1;

	for (;; k++) {
		struct settings s;
		struct predictor p = { 0 };
		struct err err = { 0 };
		int status;

		settings_init(&s, forest_ops.spec);
		settings_parse(&s, "trees=3,depth=4,criterion=absolute", NULL);
		mem_fail_at(k, false);
		status = predictor_fit(&forest_ops, &s, d, &ctx, &p, &err);
		if (!status)
			status = p.ops->compile(p.self, &err);
		mem_fail_at(0, false);
		predictor_release(&p);
		if (!status)
			break;
		assert_int_equal(err.code, ERR_NOMEM);
	}
	assert_true(k > 20);
	dataset_free(d);
}

TEST(test_a_bag_draws_as_many_rows_as_there_are_from_all_of_them)
{
	uint32_t weight[7], seen[7] = { 0 };

	for (size_t tree = 0; tree < 60; tree++) {
		uint32_t drawn = 0;

		forest_draw(5, tree, true, 7, weight);
		for (size_t i = 0; i < 7; i++) {
			drawn += weight[i];
			seen[i] += weight[i];
		}
		assert_int_equal(drawn, 7);
	}
	for (size_t i = 0; i < 7; i++) /* 60 expected; never drawn in 60 bags is (6/7)^420 = 1e-28 */
		assert_true(seen[i] > 0);
}
