/* predictors/data/split: folds, groups, levels held out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/split.h"
#include "tests/support/test.h"

#define MAX_ROWS 300

/* Rows with x = (level, row number) and the groups given. */
struct fixture {
	double x[2 * MAX_ROWS], y[MAX_ROWS];
	uint32_t group[MAX_ROWS];
	struct dataset d;
};
static const char *const names[] = { "batch", "row" };

static struct dataset *make(struct fixture *f, size_t n, uint32_t (*group)(size_t), double (*level)(size_t))
{
	for (size_t i = 0; i < n; i++) {
		f->x[2 * i] = level ? level(i) : 1.0;
		f->x[2 * i + 1] = (double)i;
		f->y[i] = (double)i;
		f->group[i] = group ? group(i) : 0;
	}
	f->d = (struct dataset){ .n_rows = n,
				 .n_features = 2,
				 .x = f->x,
				 .y = f->y,
				 .group = group ? f->group : NULL,
				 .name = names };
	return &f->d;
}

static uint32_t by_three(size_t i)
{
	return (uint32_t)(1000000007u * (uint32_t)(i / 3)); /* labels far apart, in no order */
}

static uint32_t uneven(size_t i)
{
	return i < 50 ? 7 : (uint32_t)(100 + i / 2);
}

static double powers(size_t i)
{
	return 64.0 * (double)(1 << (i % 4));
}

static double with_gaps(size_t i)
{
	return i % 5 == 4 ? NAN : powers(i);
}

static struct split *must(const struct dataset *d, struct split_params p)
{
	struct split *s = NULL;
	struct err err = { 0 };

	if (split_make(d, &p, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static void fails(const struct dataset *d, struct split_params p, int rc, const char *say)
{
	struct split *s = NULL;
	struct err err = { 0 };

	assert_int_equal(split_make(d, &p, &s, &err), rc);
	assert_null(s);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

/* Every row on exactly one side (or, for `most`, at most one), ascending, no group on both. */
static void honest(const struct dataset *d, const struct split *s, bool whole)
{
	for (size_t k = 0; k < s->n_folds; k++) {
		const struct fold *f = &s->fold[k];
		int side[MAX_ROWS] = { 0 };

		assert_true(f->n_train && f->n_test);
		for (size_t i = 0; i < f->n_train; i++) {
			assert_true(!i || f->train[i] > f->train[i - 1]);
			side[f->train[i]] += 1;
		}
		for (size_t i = 0; i < f->n_test; i++) {
			assert_true(!i || f->test[i] > f->test[i - 1]);
			side[f->test[i]] += 2;
		}
		for (size_t i = 0; i < d->n_rows; i++)
			assert_true(side[i] == 1 || side[i] == 2 || (!whole && !side[i]));
		for (size_t i = 0; d->group && i < d->n_rows; i++)
			for (size_t j = 0; j < i; j++)
				assert_false(d->group[i] == d->group[j] && side[i] + side[j] == 3);
	}
}

static void each_row_held_out_once(const struct dataset *d, const struct split *s)
{
	int held[MAX_ROWS] = { 0 };

	for (size_t k = 0; k < s->n_folds; k++)
		for (size_t i = 0; i < s->fold[k].n_test; i++)
			held[s->fold[k].test[i]]++;
	for (size_t i = 0; i < d->n_rows; i++)
		assert_int_equal(held[i], 1);
}

TEST(test_kfold_holds_each_row_out_once_in_even_parts)
{
	struct fixture f;
	struct dataset *d = make(&f, 103, NULL, NULL);
	struct split *s = must(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 5, .seed = 9 });

	assert_int_equal(s->n_folds, 5);
	honest(d, s, true);
	each_row_held_out_once(d, s);
	for (size_t k = 0; k < 5; k++)
		assert_in_range(s->fold[k].n_test, 20, 21);
	split_free(s);
}

TEST(test_kfold_keeps_groups_together)
{
	struct fixture f;
	struct dataset *d = make(&f, 90, by_three, NULL);
	struct split *s = must(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 4, .seed = 1 });

	honest(d, s, true);
	each_row_held_out_once(d, s);
	for (size_t k = 0; k < 4; k++)
		assert_in_range(s->fold[k].n_test, 21, 24);
	split_free(s);
	d = make(&f, 150, uneven, NULL); /* one group of 50, 50 of 2 */
	s = must(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 3, .seed = 1 });
	honest(d, s, true);
	each_row_held_out_once(d, s);
	for (size_t k = 0; k < 3; k++)
		assert_int_equal(s->fold[k].n_test, 50);
	split_free(s);
}

TEST(test_as_many_folds_as_groups_leave_each_out)
{
	struct fixture f;
	struct dataset *d = make(&f, 30, by_three, NULL);
	struct split *s = must(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 10 });

	each_row_held_out_once(d, s);
	for (size_t k = 0; k < 10; k++)
		assert_int_equal(s->fold[k].n_test, 3);
	split_free(s);
	fails(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 11 }, -ERR_NODATA,
	      "10 groups cannot fill 11 folds");
}

static bool same(const struct split *a, const struct split *b)
{
	bool equal = a->n_folds == b->n_folds;

	for (size_t k = 0; equal && k < a->n_folds; k++)
		equal = a->fold[k].n_test == b->fold[k].n_test &&
			!memcmp(a->fold[k].test, b->fold[k].test, a->fold[k].n_test * sizeof(uint32_t));
	return equal;
}

TEST(test_the_seed_decides)
{
	struct fixture f;
	struct dataset *d = make(&f, 60, by_three, NULL);
	static const enum split_kind kind[] = { SPLIT_KFOLD, SPLIT_HOLDOUT };

	for (int i = 0; i < 2; i++) {
		struct split_params p = { .kind = kind[i], .folds = 3, .share = 0.25, .seed = 42 };
		struct split *a = must(d, p), *b = must(d, p);
		struct split *c = must(
			d, (struct split_params){ .kind = kind[i], .folds = 3, .share = 0.25, .seed = 43 });

		assert_true(same(a, b));
		assert_false(same(a, c));
		split_free(a);
		split_free(b);
		split_free(c);
	}
}

TEST(test_holdout_holds_its_share_each_time)
{
	struct fixture f;
	struct dataset *d = make(&f, 50, NULL, NULL);
	struct split *s =
		must(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 8, .share = 0.2, .seed = 3 });
	struct split *more =
		must(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 20, .share = 0.2, .seed = 3 });

	assert_int_equal(s->n_folds, 8);
	honest(d, s, true);
	for (size_t k = 0; k < 8; k++) {
		assert_int_equal(s->fold[k].n_test, 10);
		assert_memory_equal(s->fold[k].test, more->fold[k].test, 10 * sizeof(uint32_t));
	}
	assert_memory_not_equal(s->fold[0].test, s->fold[1].test, 10 * sizeof(uint32_t));
	split_free(s);
	split_free(more);
	d = make(&f, 60, by_three, NULL);
	s = must(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 2, .share = 0.25 });
	honest(d, s, true);
	assert_int_equal(s->fold[0].n_test, 15); /* 5 of 20 groups of 3 */
	split_free(s);
}

TEST(test_leave_group_out_takes_each_once)
{
	struct fixture f;
	struct dataset *d = make(&f, 31, by_three, NULL);
	struct split *s = must(d, (struct split_params){ .kind = SPLIT_LEAVE_GROUP });

	assert_int_equal(s->n_folds, 11);
	honest(d, s, true);
	each_row_held_out_once(d, s);
	split_free(s);
	d = make(&f, 5, NULL, NULL);
	s = must(d, (struct split_params){ .kind = SPLIT_LEAVE_GROUP });
	assert_int_equal(s->n_folds, 5);
	split_free(s);
}

TEST(test_leave_group_out_meets_its_limit)
{
	double *x = calloc(10001, sizeof *x);
	struct dataset d = { .n_rows = 10001, .n_features = 1, .x = x, .y = x };

	fails(&d, (struct split_params){ .kind = SPLIT_LEAVE_GROUP }, -ERR_ARG, "at most 10000");
	fails(&d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 10001 }, -ERR_ARG, "at most 10000");
	fails(&d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = SIZE_MAX, .share = 0.5 }, -ERR_ARG,
	      "at most 10000");
	free(x);
}

TEST(test_interpolation_holds_inner_levels_out)
{
	struct fixture f;
	struct dataset *d = make(&f, 40, NULL, with_gaps);
	struct split *s = must(d, (struct split_params){ .kind = SPLIT_INTERPOLATE, .feature = 0 });
	const double level[] = { 128.0, 256.0 };

	assert_int_equal(s->n_folds, 2);
	honest(d, s, true); /* a row without the level stays in training */
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < s->fold[k].n_test; i++)
			assert_true(d->x[2 * s->fold[k].test[i]] == level[k]);
	assert_int_equal(s->fold[0].n_test, 8);
	split_free(s);
}

TEST(test_interpolation_holds_a_list_of_levels_out_at_once)
{
	static const double some[] = { 256.0, 64.0 }, none[] = { 64.0, 100.0 }, all[] = { 64, 128, 256, 512 };
	struct fixture f;
	struct dataset *d = make(&f, 40, NULL, with_gaps);
	struct split_params p = { .kind = SPLIT_INTERPOLATE, .level = some, .n_levels = 2 };
	struct split *s = must(d, p);
	struct err err = { 0 };

	assert_int_equal(s->n_folds, 1);
	honest(d, s, true);
	for (size_t i = 0; i < s->fold[0].n_test; i++) {
		double x = d->x[2 * s->fold[0].test[i]];

		assert_true(x == 64.0 || x == 256.0);
	}
	for (size_t i = 0; i < s->fold[0].n_train; i++) {
		double x = d->x[2 * s->fold[0].train[i]];

		assert_true(x != 64.0 && x != 256.0);
	}
	assert_int_equal(s->fold[0].n_test, 16);
	split_free(s);
	p.level = none;
	assert_int_equal(split_make(d, &p, &s, &err), -ERR_NODATA);
	assert_non_null(strstr(err.text, "no level 100: its levels run from 64 to 512"));
	p.level = all;
	p.n_levels = 4;
	assert_int_equal(split_make(d, &p, &s, &err), -ERR_NODATA);
}

TEST(test_extrapolation_holds_high_levels_out)
{
	struct fixture f;
	struct dataset *d = make(&f, 40, NULL, with_gaps);
	struct split *s =
		must(d, (struct split_params){ .kind = SPLIT_EXTRAPOLATE, .feature = 0, .bound = NAN });

	assert_int_equal(s->n_folds, 1);
	honest(d, s, true);
	assert_int_equal(s->fold[0].n_test, 8);
	assert_true(d->x[2 * s->fold[0].test[0]] == 512.0);
	split_free(s);
	s = must(d, (struct split_params){ .kind = SPLIT_EXTRAPOLATE, .feature = 0, .bound = 128.0 });
	assert_int_equal(s->fold[0].n_test, 16); /* above the bound, not at it */
	split_free(s);
	fails(d, (struct split_params){ .kind = SPLIT_EXTRAPOLATE, .feature = 0, .bound = 512.0 },
	      -ERR_NODATA, "batch > 512 holds out no row: its levels run from 64 to 512");
	fails(d, (struct split_params){ .kind = SPLIT_EXTRAPOLATE, .feature = 0, .bound = 63.0 }, -ERR_NODATA,
	      "holds out every row");
}

static uint32_t in_pairs(size_t i)
{
	return (uint32_t)(i / 2);
}

TEST(test_a_group_across_levels_does_not_leak)
{
	struct fixture f;
	/* rows 2k, 2k+1 share a group and have different levels */
	struct dataset *d = make(&f, 40, in_pairs, powers);
	struct split *s =
		must(d, (struct split_params){ .kind = SPLIT_EXTRAPOLATE, .feature = 0, .bound = NAN });

	honest(d, s, false);
	assert_int_equal(s->fold[0].n_test, 10);
	assert_int_equal(s->fold[0].n_train, 20); /* ten rows lost with their partners */
	split_free(s);
}

static uint32_t all_one(size_t i)
{
	(void)i;
	return 5;
}

TEST(test_what_cannot_be_split_says_why)
{
	struct fixture f;
	struct dataset *d = make(&f, 4, NULL, NULL);

	fails(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 5 }, -ERR_NODATA,
	      "4 rows cannot fill 5 folds");
	fails(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 1 }, -ERR_ARG, "at least 2");
	fails(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 0 }, -ERR_ARG, "at least 2");
	fails(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 1, .share = 0.1 }, -ERR_NODATA,
	      "a share of 0.1 of 4 rows holds out 0");
	fails(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 1, .share = 0.9 }, -ERR_NODATA,
	      "holds out 4");
	fails(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 1, .share = 0.0 }, -ERR_ARG,
	      "share 0");
	fails(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 1, .share = 1.0 }, -ERR_ARG,
	      "share 1");
	fails(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 1, .share = NAN }, -ERR_ARG, "share");
	fails(d, (struct split_params){ .kind = SPLIT_HOLDOUT, .folds = 0, .share = 0.5 }, -ERR_ARG,
	      "repetition");
	fails(d, (struct split_params){ .kind = SPLIT_INTERPOLATE, .feature = 2 }, -ERR_ARG,
	      "no feature number 2");
	fails(d, (struct split_params){ .kind = SPLIT_INTERPOLATE, .feature = 0 }, -ERR_NODATA,
	      "batch has 1 levels");
	fails(d, (struct split_params){ .kind = SPLIT_EXTRAPOLATE, .feature = 0, .bound = NAN }, -ERR_NODATA,
	      "batch has 1 levels");
	fails(d, (struct split_params){ .kind = 99 }, -ERR_ARG, "kind 99");
	d = make(&f, 4, all_one, powers);
	fails(d, (struct split_params){ .kind = SPLIT_LEAVE_GROUP }, -ERR_NODATA, "there is 1");
	fails(d, (struct split_params){ .kind = SPLIT_INTERPOLATE, .feature = 0 }, -ERR_NODATA,
	      "train on 0 rows");
	d = make(&f, 1, NULL, NULL);
	fails(d, (struct split_params){ .kind = SPLIT_LEAVE_GROUP }, -ERR_NODATA, "needs 2 groups");
	fails(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 2 }, -ERR_NODATA, "1 rows");
	d = make(&f, 0, NULL, NULL);
	fails(d, (struct split_params){ .kind = SPLIT_KFOLD, .folds = 2 }, -ERR_NODATA, "no rows");
}

TEST(test_replicates_on_both_sides_are_a_leak)
{
	struct fixture f;
	struct dataset *d = make(&f, 60, NULL, NULL);
	struct split_params p = { .kind = SPLIT_KFOLD, .folds = 5 };
	struct split *s = must(d, p);

	assert_false(split_leaks(d, s)); /* the row number tells all rows apart */
	for (size_t i = 0; i < 60; i++) {
		f.x[2 * i] = i % 2 ? 0.0 : -0.0; /* equal, though their bits differ */
		f.x[2 * i + 1] = i % 3 ? (double)(i / 6) : NAN; /* and so are missing values */
	}
	assert_true(split_leaks(d, s));
	split_free(s);
	for (size_t i = 0; i < 60; i++) {
		f.x[2 * i] = (double)(i / 3);
		f.x[2 * i + 1] = 1.0;
		f.group[i] = by_three(i);
	}
	d->group = f.group; /* the same replicates, kept together */
	s = must(d, p);
	assert_false(split_leaks(d, s));
	split_free(s);
}

TEST(test_running_out_of_memory_is_an_error_and_leaks_nothing)
{
	struct fixture f;
	struct dataset *d = make(&f, 60, by_three, powers);
	static const enum split_kind kind[] = { SPLIT_KFOLD, SPLIT_HOLDOUT, SPLIT_LEAVE_GROUP,
						SPLIT_EXTRAPOLATE };

	for (size_t i = 0; i < 4; i++) {
		bool more = true;

		for (size_t r = 0; kind[i] == SPLIT_EXTRAPOLATE && r < 60; r++)
			f.group[r] = (uint32_t)r;
		for (unsigned long k = 1; more; k++) {
			struct split_params p = { .kind = kind[i], .folds = 3, .share = 0.3, .bound = NAN };
			struct split *s = NULL;
			int rc;

			mem_fail_at(k, false);
			rc = split_make(d, &p, &s, NULL);
			more = mem_failed();
			mem_fail_at(0, false);
			assert_int_equal(rc, more ? -ERR_NOMEM : 0);
			split_free(s);
		}
	}
	struct split *s = must(d, (struct split_params){ .kind = SPLIT_LEAVE_GROUP });
	for (unsigned long k = 1; k <= 3; k++) {
		mem_fail_at(k, false);
		assert_true(split_leaks(d, s));
		mem_fail_at(0, false);
	}
	split_free(s);
}

/* ---- dataset ---- */

TEST(test_a_subset_copies_the_rows_asked_for)
{
	struct fixture f;
	struct dataset *d = make(&f, 10, by_three, powers), *s = NULL;
	const uint32_t row[] = { 9, 0, 9, 4 };

	assert_int_equal(dataset_subset(d, row, 4, &s, NULL), 0);
	assert_int_equal(s->n_rows, 4);
	assert_int_equal(s->n_features, 2);
	for (size_t i = 0; i < 4; i++) {
		assert_memory_equal(&s->x[2 * i], &d->x[2 * row[i]], 2 * sizeof(double));
		assert_true(s->y[i] == d->y[row[i]]);
		assert_int_equal(s->group[i], d->group[row[i]]);
	}
	assert_ptr_equal(s->name, d->name);
	dataset_free(s);
	assert_int_equal(dataset_subset(d, NULL, 0, &s, NULL), 0);
	assert_int_equal(s->n_rows, 0);
	dataset_free(s);
	d->group = NULL;
	assert_int_equal(dataset_subset(d, row, 1, &s, NULL), 0);
	assert_null(s->group);
	dataset_free(s);
	dataset_free(NULL);
}

TEST(test_a_subset_without_memory_is_an_error)
{
	struct fixture f;
	struct dataset *d = make(&f, 10, by_three, powers);
	const uint32_t row[] = { 1, 2 };
	bool more = true;

	for (unsigned long k = 1; more; k++) {
		struct dataset *s = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = dataset_subset(d, row, 2, &s, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		dataset_free(s);
	}
}
