/* predictors/search/search: every point of a grid is scored, and shared trees change nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "predictors/search/search.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

static struct grid *grid_of(const char *text)
{
	struct json *v = NULL;
	struct grid *g = NULL;
	struct err err = { 0 };

	if (json_parse("test", text, strlen(text), &v, &err) || grid_from_json("test", v, &g, &err))
		fail_msg("%s", err.text);
	json_free(v);
	return g;
}

static struct split *folds_of(const struct dataset *d, size_t folds)
{
	struct split_params p = { .kind = SPLIT_KFOLD, .folds = folds, .seed = 3 };
	struct split *s = NULL;

	assert_int_equal(split_make(d, &p, &s, NULL), 0);
	return s;
}

/* The same score the long way: fit this one setting on each fold by itself. */
static struct score_summary by_itself(const struct dataset *d, const struct split *split,
				      const struct grid_point *g)
{
	struct score fold[16];

	for (size_t k = 0; k < split->n_folds; k++) {
		struct dataset *train, *test;
		struct fit_context ctx = { .seed = 21 };
		struct predictor p = { 0 };
		double *out;

		assert_int_equal(
			dataset_subset(d, split->fold[k].train, split->fold[k].n_train, &train, NULL), 0);
		assert_int_equal(dataset_subset(d, split->fold[k].test, split->fold[k].n_test, &test, NULL),
				 0);
		assert_int_equal(predictor_fit(g->ops, &g->settings, train, &ctx, &p, NULL), 0);
		out = malloc(test->n_rows * sizeof *out);
		predictor_predict(&p, test->x, test->n_rows, out);
		fold[k] = score_of(test->y, out, test->n_rows);
		free(out);
		predictor_release(&p);
		dataset_free(train);
		dataset_free(test);
	}
	return score_summarise(fold, split->n_folds);
}

TEST(test_shared_work_gives_the_scores_of_separate_fits)
{
	struct dataset *d = world_factorial(2, 0.05, 1);
	struct grid *g = grid_of("{\"forest\":{\"trees\":[5,12,30],\"depth\":[1,3,0],\"max_features\":["
				 "\"all\",\"sqrt\",\"log2\"],"
				 "\"criterion\":[\"squared\",\"absolute\"],\"min_samples_leaf\":[1,3]},"
				 "\"boost\":{\"trees\":[4,9],\"loss\":[\"squared\",\"absolute\"]},"
				 "\"tree\":{\"depth\":[2,4]}}");
	struct split *split = folds_of(d, 3);
	struct search_params p = { .data = d, .grid = g, .split = split, .ctx = { .seed = 21 } };
	struct search_result *r = NULL;

	assert_int_equal(g->n, 3 * 3 * 3 * 2 * 2 + 4 + 2);
	assert_int_equal(search_run(&p, &r, NULL), 0);
	for (size_t i = 0; i < g->n; i++) {
		struct score_summary want = by_itself(d, split, &g->point[i]);
		assert_false(r[i].failed);
		assert_true(r[i].score.mean.mse == want.mean.mse);
		assert_true(r[i].score.sd.mape == want.sd.mape);
	}
	free(r);
	split_free(split);
	grid_free(g);
	dataset_free(d);
}

TEST(test_best_is_the_least_mean_squared_error_and_never_a_failed_one)
{
	struct search_result r[4] = { { .score.mean.mse = 3 },
				      { .score.mean.mse = 1, .failed = true },
				      { .score.mean.mse = 2 },
				      { .score.mean.mse = 2 } };

	assert_int_equal(search_best(r, 4, false), 2);
	assert_true(search_best(r + 1, 1, false) == SIZE_MAX);
}

TEST(test_the_best_is_best_by_the_score_that_is_asked_for)
{
	struct search_result r[4] = {
		{ .score.mean = { .mse = 1, .r2 = 0.5, .mape = 0.4, .mae = 4, .log_mse = 3 } },
		{ .score.mean = { .mse = 2, .r2 = 0.6, .mape = 0.1, .mae = 3, .log_mse = 2 } },
		{ .score.mean = { .mse = 3, .r2 = 0.9, .mape = 0.2, .mae = 2, .log_mse = 4 } },
		{ .score.mean = { .mse = 4, .r2 = 0.8, .mape = 0.3, .mae = 1, .log_mse = 1 } },
	};

	assert_int_equal(search_best(r, 4, SEARCH_BY_MSE), 0);
	assert_int_equal(search_best(r, 4, SEARCH_BY_MAPE), 1);
	assert_int_equal(search_best(r, 4, SEARCH_BY_R2), 2);
	assert_int_equal(search_best(r, 4, SEARCH_BY_MAE), 3);
	assert_int_equal(search_best(r, 4, SEARCH_BY_LOG), 3);
}

TEST(test_bad_grids_are_refused_with_what_is_wrong)
{
	static const struct {
		const char *text, *says;
	} bad[] = { { "{\"forrest\":{}}", "forrest" },
		    { "{\"forest\":{\"tres\":[1]}}", "tres" },
		    { "{\"forest\":{\"trees\":[]}}", "trees" },
		    { "{\"forest\":{\"trees\":[-1]}}", "trees" },
		    { "{\"forest\":[]}", "forest" },
		    { "{}", "grid" },
		    { "[]", "grid" },
		    { "{\"forest\":{\"criterion\":[\"mad\"]}}", "criterion" } };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct json *v = NULL;
		struct grid *g = NULL;
		struct err err = { 0 };

		assert_int_equal(json_parse("t", bad[i].text, strlen(bad[i].text), &v, NULL), 0);
		assert_int_equal(grid_from_json("bad.json", v, &g, &err), -ERR_FORMAT);
		assert_non_null(strstr(err.text, bad[i].says));
		assert_non_null(strstr(err.text, "bad.json"));
		json_free(v);
	}
}

TEST(test_grid_without_end_is_refused)
{
	struct strbuf b = { 0 };
	struct json *v = NULL;
	struct grid *g = NULL;
	struct err err = { 0 };

	strbuf_puts(&b, "{\"forest\":{\"trees\":[1");
	for (int i = 2; i <= 400; i++)
		strbuf_printf(&b, ",%d", i);
	strbuf_puts(&b, "],\"depth\":[1");
	for (int i = 2; i <= 400; i++)
		strbuf_printf(&b, ",%d", i);
	strbuf_puts(&b, "]}}");
	assert_int_equal(json_parse("t", strbuf_text(&b), b.len, &v, NULL), 0);
	assert_int_equal(grid_from_json("t", v, &g, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "100000"));
	json_free(v);
	strbuf_release(&b);
}

TEST(test_shipped_default_grid_is_the_built_in_one)
{
	struct json *v = NULL;
	struct grid *a = NULL, *b = NULL;
	struct err err = { 0 };

	if (json_read_file("configs/grids/default.json", 1 << 20, &v, &err) ||
	    grid_from_json("default.json", v, &a, &err))
		fail_msg("%s", err.text);
	assert_int_equal(grid_default(&b, NULL), 0);
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_ptr_equal(a->point[i].ops, b->point[i].ops);
		assert_memory_equal(a->point[i].settings.value, b->point[i].settings.value,
				    sizeof a->point[i].settings.value);
	}
	grid_free(a);
	grid_free(b);
	json_free(v);
}

TEST(test_paper_grid_has_252_settings)
{
	struct json *v = NULL;
	struct grid *g = NULL;

	assert_int_equal(json_read_file("configs/grids/paper.json", 1 << 20, &v, NULL), 0);
	assert_int_equal(grid_from_json("paper.json", v, &g, NULL), 0);
	assert_int_equal(g->n, 252);
	grid_free(g);
	json_free(v);
}

TEST(test_running_out_of_memory_in_a_search_is_reported)
{
	struct dataset *d = world_factorial(1, 0.05, 9);
	struct grid *g = grid_of("{\"forest\":{\"trees\":[2],\"criterion\":[\"absolute\"]},\"boost\":{"
				 "\"trees\":[1,2]},\"ridge\":{}}");
	struct split *split = folds_of(d, 2);
	unsigned long k = 1;

	for (;; k++) {
		struct search_params p = { .data = d, .grid = g, .split = split };
		struct search_result *r = NULL;
		bool all = true;
		int status;

		mem_fail_at(k, false);
		status = search_run(&p, &r, NULL);
		mem_fail_at(0, false);
		for (size_t i = 0; !status && i < g->n; i++)
			all &= !r[i].failed;
		free(r);
		if (!status && all)
			break;
	}
	assert_true(k > 40);
	split_free(split);
	grid_free(g);
	dataset_free(d);
}
