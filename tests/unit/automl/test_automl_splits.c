/* automl/folds, pyrandom: the rows that aMLLibrary holds out. The expected values are Python's:
 * of its module random, and of generators that seed and copy one another as those of aMLLibrary do. */
#include "common/strbuf.h"
#include "automl/folds.h"
#include "automl/pyrandom.h"
#include "tests/support/test.h"

TEST(test_random_numbers_are_those_of_python)
{
	static const double of_float[][2] = { { 0.8444218515250481, 0.7315406243670213 },
					      { 1e-5, 0.23590574739014447 },
					      { 0.5, 0.2794930785867423 } };
	struct pyrandom r = pyrandom_of_int(0);

	assert_true(pyrandom_next(&r) == 0.8444218515250481);
	r = pyrandom_of_int(123456789012345);
	assert_true(pyrandom_next(&r) == 0.6744750084019356);
	for (size_t i = 0; i < 3; i++) {
		r = pyrandom_of_float(of_float[i][0]);
		assert_true(pyrandom_next(&r) == of_float[i][1]);
	}
}

static void sample_is(size_t n, size_t k, const uint32_t *expected)
{
	struct pyrandom r = pyrandom_of_int(7);
	uint32_t pool[1000];
	uint8_t taken[1000];
	size_t found = 0;

	pyrandom_sample(&r, n, k, pool, taken);
	for (size_t i = 0; i < n; i++)
		found += taken[i];
	assert_int_equal(found, k);
	for (size_t i = 0; i < k; i++)
		assert_true(taken[expected[i]]);
}

TEST(test_samples_are_those_of_python)
{
	sample_is(20, 3, (uint32_t[]){ 10, 4, 12 });
	sample_is(86, 6, (uint32_t[]){ 41, 19, 50, 83, 6, 9 });
	sample_is(1000, 9, (uint32_t[]){ 331, 970, 154, 404, 666, 49, 74, 840, 548 });
}

static void rows_are(const struct row_list *rows, const char *expected)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < rows->n; i++)
		strbuf_printf(&b, "%s%u", i ? " " : "", rows->row[i]);
	assert_string_equal(strbuf_text(&b), expected);
	strbuf_release(&b);
}

TEST(test_rows_that_are_held_out_are_those_of_the_reference)
{
	static const struct {
		enum holdout hp, validation;
		bool normalization;
		size_t wrapped;
		bool by_xgboost;
		size_t run, fold, hp_fold;
		const char *held, *hp_rows;
	} split[] = {
		{ HOLD_OUT, HOLD_OUT, 0, 0, 0, 0, 0, 0, "7 12", "2 9" },
		{ HOLD_OUT, HOLD_OUT, 0, 0, 0, 1, 0, 0, "5 11", "3 10" },
		{ HOLD_OUT, HOLD_OUT, 0, 0, 0, 2, 0, 0, "8 13", "0 2" },
		{ HOLD_OUT, HOLD_KFOLD, 0, 0, 0, 0, 0, 0, "5 7 8 13", "11 12" },
		{ HOLD_OUT, HOLD_KFOLD, 0, 0, 0, 0, 2, 0, "1 2 3 4 11 12", "9" },
		{ HOLD_OUT, HOLD_KFOLD, 0, 0, 0, 2, 1, 0, "0 1 5 12", "7 9" },
		{ HOLD_KFOLD, HOLD_OUT, 0, 0, 0, 0, 0, 1, "7 12", "1 4 8 11" },
		{ HOLD_KFOLD, HOLD_OUT, 0, 0, 0, 1, 0, 2, "5 11", "0 3 10 12" },
		{ HOLD_KFOLD, HOLD_KFOLD, 0, 0, 0, 0, 0, 1, "5 7 8 13", "0 4 12" },
		{ HOLD_KFOLD, HOLD_KFOLD, 0, 0, 0, 0, 1, 2, "0 6 9 10", "2 5 8 12" },
		{ HOLD_KFOLD, HOLD_KFOLD, 0, 0, 0, 1, 0, 0, "4 5 7 10", "3 12 13" },
		{ HOLD_KFOLD, HOLD_KFOLD, 0, 0, 0, 2, 2, 1, "2 7 9 10 11 13", "1 6" },
		{ HOLD_OUT, HOLD_OUT, 1, 0, 0, 0, 0, 0, "2 6", "9 12" },
		{ HOLD_OUT, HOLD_OUT, 0, 2, 0, 0, 0, 0, "11 13", "2 6" },
		{ HOLD_OUT, HOLD_OUT, 0, 0, 1, 1, 0, 0, "3 11", "4 10" },
		{ HOLD_KFOLD, HOLD_KFOLD, 0, 0, 1, 1, 1, 0, "0 1 7 12", "2 5 8" },
	};
	uint32_t row[14];

	for (uint32_t i = 0; i < 14; i++)
		row[i] = i;
	for (size_t k = 0; k < sizeof split / sizeof *split; k++) {
		struct prepared p = { .training = { row, 14 } };
		struct campaign c = { .seed = 5,
				      .runs = 3,
				      .folds = 3,
				      .hold_out_ratio = 0.2,
				      .hp_selection = split[k].hp,
				      .validation = split[k].validation,
				      .normalization = split[k].normalization,
				      .tune = split[k].wrapped > 0,
				      .n_plans = split[k].wrapped,
				      .selection = split[k].by_xgboost ? SELECT_XGBOOST : SELECT_NONE };
		struct fold_rows f;

		assert_int_equal(
			fold_rows_make(&c, &p, (struct fold){ split[k].run, split[k].fold, split[k].hp_fold },
				       &f, NULL),
			0);
		rows_are(&f.validation, split[k].held);
		rows_are(&f.hp_selection, split[k].hp_rows);
		assert_int_equal(f.both.n + f.validation.n, 14);
		fold_rows_release(&f);
	}
}

static void same_rows(const struct row_list *a, const struct row_list *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->row, b->row, a->n * sizeof *a->row);
}

TEST(test_kept_rows_are_those_of_the_fold_that_is_asked_for)
{
	/* each differs from the one before in one number, or in none */
	static const size_t asked[][3] = { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 1 }, { 0, 2, 1 },
					   { 1, 2, 1 }, { 1, 2, 1 }, { 1, 0, 1 }, { 1, 0, 0 } };
	uint32_t row[14];
	struct prepared p = { .training = { row, 14 } };
	struct campaign c = {
		.seed = 5, .runs = 3, .folds = 3, .hp_selection = HOLD_KFOLD, .validation = HOLD_KFOLD
	};
	struct fold_keeper keeper = { 0 };
	const struct fold_rows *kept;

	for (uint32_t i = 0; i < 14; i++)
		row[i] = i;
	for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
		const size_t *q = asked[k];
		struct fold_rows f;

		assert_int_equal(
			fold_keeper_rows(&keeper, &c, &p, (struct fold){ q[0], q[1], q[2] }, &kept, NULL), 0);
		assert_int_equal(fold_rows_make(&c, &p, (struct fold){ q[0], q[1], q[2] }, &f, NULL), 0);
		same_rows(&kept->training, &f.training);
		same_rows(&kept->hp_selection, &f.hp_selection);
		same_rows(&kept->validation, &f.validation);
		same_rows(&kept->both, &f.both);
		fold_rows_release(&f);
	}
	/* Rows that cannot be drawn leave nothing behind. */
	c.folds = 15;
	assert_int_equal(fold_keeper_rows(&keeper, &c, &p, (struct fold){ 0, 0, 2 }, &kept, NULL),
			 -ERR_NODATA);
	c.folds = 3;
	assert_int_equal(fold_keeper_rows(&keeper, &c, &p, (struct fold){ 0, 0, 2 }, &kept, NULL), 0);
	fold_keeper_release(&keeper);
}

TEST(test_every_fold_gets_a_group_where_there_are_enough)
{
	/* one group is two thirds of the rows; whatever comes first, three folds have one each */
	uint32_t row[18], group[18];
	struct prepared p = { .training = { row, 18 }, .group = group };
	struct campaign c = { .runs = 1, .folds = 3, .hp_selection = HOLD_ALL, .validation = HOLD_KFOLD };

	for (uint32_t i = 0; i < 18; i++) {
		row[i] = i;
		group[i] = i < 12 ? 0 : i < 15 ? 1 : 2;
	}
	for (c.seed = 0; c.seed < 20; c.seed++)
		for (size_t fold = 0; fold < 3; fold++) {
			struct fold_rows f;

			assert_int_equal(fold_rows_make(&c, &p, (struct fold){ 0, fold, 0 }, &f, NULL), 0);
			for (size_t i = 1; i < f.validation.n; i++)
				assert_int_equal(group[f.validation.row[i]], group[f.validation.row[0]]);
			fold_rows_release(&f);
		}
	c.folds = 4;
	for (size_t fold = 0; fold < 4; fold++) {
		struct fold_rows f;

		if (fold < 3)
			assert_int_equal(fold_rows_make(&c, &p, (struct fold){ 0, fold, 0 }, &f, NULL), 0);
		else
			assert_int_equal(fold_rows_make(&c, &p, (struct fold){ 0, fold, 0 }, &f, NULL),
					 -ERR_NODATA);
		if (fold < 3)
			fold_rows_release(&f);
	}
}
