/* predictors/models/spread: what a table knows of a job, in memory and through a file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "predictors/data/dataset.h"
#include "predictors/models/spread.h"
#include "tests/support/test.h"

/* cpus, njobs, batch, other_load */
static const uint8_t role[] = { ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH, ROLE_OTHER };
static double x[] = { 1,  1,   64,     0.1, /**/ 1, 1,   128,    0.7, /**/ 1, 3,
		      64, 0.0, /**/ 2, 1,   64,     0.2, /**/ 2, 1,   64,     2.0 };
static double y[] = { 1, 2, 3, 4, 5 };
static const struct dataset table = { .n_rows = 5, .n_features = 4, .x = x, .y = y, .role = role };

static enum familiarity knows(const struct spread *s, double cpus, double njobs, double batch)
{
	double row[] = { cpus, njobs, batch, 9.0 };

	return spread_knows(s, row);
}

static void check(const struct spread *s)
{
	assert_int_equal(knows(s, 1, 1, 64), KNOWS_SETTING);
	assert_int_equal(knows(s, 1, 1, 256), KNOWS_CONTEXT);
	assert_int_equal(knows(s, 2, 3, 64),
			 KNOWS_NEITHER); /* both levels are known, together they are new */
	assert_int_equal(knows(s, 1.4, 1, 64), KNOWS_NEITHER); /* near the family of one cpu */
	assert_int_equal(knows(s, 3, 1, 64), KNOWS_NOTHING);
	assert_int_equal(knows(s, NAN, 1, 64), KNOWS_NOTHING);
	/* a load between levels is near one of them; one outside is near none */
	assert_int_equal(knows(s, 1, 1.4, 64), KNOWS_SETTING);
	assert_int_equal(knows(s, 1, 2.4, 128), KNOWS_CONTEXT);
	assert_int_equal(knows(s, 1, 3.1, 64), KNOWS_SETTING);
	assert_int_equal(knows(s, 1, 5, 64), KNOWS_NEITHER);
	assert_int_equal(knows(s, 1, 0.5, 64), KNOWS_NEITHER);
}

/* A category of three names as three 0/1 columns, one of two names as one, and a batch. */
TEST(test_a_name_that_the_other_rows_do_not_have_is_a_stranger)
{
	static const uint8_t named[] = { ROLE_CATEGORY, ROLE_CATEGORY, ROLE_CATEGORY, ROLE_CATEGORY,
					 ROLE_BATCH };
	static const uint16_t column[] = { 0, 0, 0, 1, 2 };
	double known[] = { 1, 0, 0, 0, 64, /**/ 0, 1, 0, 0, 64 };
	double asked[] = { 1, 0, 0, 0, 128, /**/ 0, 0, 1, 0, 64, /**/ 0, 1, 0, 1, 64, /**/ 0, 1, 0, NAN, 64 };
	double time[] = { 1, 2, 3, 4 };
	struct dataset train = { .n_rows = 2, .n_features = 5, .x = known, .y = time, .role = named };
	struct dataset test = { .n_rows = 4, .n_features = 5, .x = asked, .y = time, .role = named };
	struct spread *s;

	assert_int_equal(spread_make(&train, &s, NULL), 0);
	assert_int_equal(spread_knows(s, asked + 5), KNOWS_NOTHING); /* its 0/1 column is not looked at */
	assert_int_equal(dataset_forget_strangers(&train, &test, NULL), 0);
	assert_true(asked[7] == 1.0); /* which columns belong together is not said */
	test.column = column;
	assert_int_equal(dataset_forget_strangers(&train, &test, NULL), 0);
	assert_true(asked[0] == 1.0 && asked[3] == 0.0);
	assert_true(isnan(asked[5]) && isnan(asked[6]) && isnan(asked[7]) && asked[8] == 0.0);
	assert_true(asked[11] == 1.0 && isnan(asked[13]) && asked[14] == 64.0);
	assert_int_equal(spread_knows(s, asked), KNOWS_CONTEXT);
	for (size_t i = 1; i < 4; i++)
		assert_int_equal(spread_knows(s, asked + 5 * i), KNOWS_NO_NAME);
	spread_free(s);
}

TEST(test_a_setting_a_context_or_neither_is_known)
{
	struct spread *s;

	assert_int_equal(spread_make(&table, &s, NULL), 0);
	check(s);
	assert_true(spread_at(s, x) == 1.0 && spread_at(NULL, x) == 1.0);
	spread_set(s, (const double[]){ 0.1, 0.2, 0.4, 0.5, 0.9 }, 0.3, 1.0);
	assert_true(spread_at(s, x) == 0.1);
	assert_true(spread_at(s, (const double[]){ 3, 1, 64, 0 }) == 0.5);
	spread_free(s);
}

TEST(test_a_family_is_new_by_its_categories_and_cpus)
{
	/* network, batch, samples */
	static const uint8_t roles[] = { ROLE_CATEGORY, ROLE_BATCH, ROLE_SAMPLES };
	static double rows[] = { 0, 64, 1000, /**/ 1, 64, 2000 }, seconds[] = { 1, 2 };
	const struct dataset d = { .n_rows = 2, .n_features = 3, .x = rows, .y = seconds, .role = roles };
	struct spread *s;

	assert_int_equal(spread_make(&d, &s, NULL), 0);
	assert_int_equal(spread_new_family(s, (const double[]){ 1, 512, 777 }), 0);
	assert_true(spread_new_family(s, (const double[]){ 2, 64, 1000 }) != 0);
	assert_true(spread_new_family(s, (const double[]){ 2, 64, 1000 }) ==
		    spread_new_family(s, (const double[]){ 2, 128, 3000 }));
	/* names that the table does not have are one new name */
	assert_true(spread_new_family(s, (const double[]){ NAN, 64, 1000 }) != 0);
	assert_true(spread_new_family(s, (const double[]){ NAN, 64, 1000 }) ==
		    spread_family(s, (const double[]){ NAN, 512, 3000 }));
	assert_true(spread_family(s, rows) && spread_family(s, rows + 3) &&
		    spread_family(s, rows) !=
			    spread_family(s, rows + 3)); /* whether the table has it or not */
	assert_true(spread_family(s, (const double[]){ 2, 64, 1000 }) ==
		    spread_new_family(s, (const double[]){ 2, 64, 1000 }));
	assert_int_equal(spread_family(NULL, rows), 0);
	assert_int_equal(spread_new_family(NULL, rows), 0);
	spread_free(s);
}

TEST(test_cpus_that_are_not_given_leave_the_family_open)
{
	static const uint8_t roles[] = { ROLE_CATEGORY, ROLE_CPUS };
	static double rows[] = { 0, 2, /**/ 1, 4 }, seconds[] = { 1, 2 };
	const struct dataset d = { .n_rows = 2, .n_features = 2, .x = rows, .y = seconds, .role = roles };
	struct spread *s;

	assert_int_equal(spread_make(&d, &s, NULL), 0);
	assert_int_equal(spread_family(s, (const double[]){ 0, NAN }), 0);
	assert_int_equal(spread_new_family(s, (const double[]){ NAN, NAN }), 0);
	assert_true(spread_new_family(s, (const double[]){ NAN, 2 }) !=
		    spread_new_family(s, (const double[]){ NAN, 4 }));
	spread_free(s);
}

/* A random effect of variance 0.6 and noise of variance 0.4, by the formulas of a normal posterior. */
TEST(test_runs_of_a_family_tell_its_level)
{
	for (int n = 1; n <= 4; n++) {
		double weight = 1.0 / (1.0 / 0.6 + n / 0.4), shift = weight * n * 0.7 / 0.4;
		struct spread_level v = spread_level(0.6, n, 0.7);

		assert_true(fabs(v.shift - shift) <= 1e-12);
		assert_true(fabs(v.narrow - sqrt(weight + 0.4)) <= 1e-12);
	}
	assert_true(spread_level(0.6, 0, 0.7).shift == 0.0 && spread_level(0.6, 0, 0.7).narrow == 1.0);
	assert_true(spread_level(0.0, 3, 0.7).shift == 0.0 && spread_level(0.0, 3, 0.7).narrow == 1.0);
}

/* The table has two families, so it cannot tell what a third shares with its like: its runs do. */
TEST(test_runs_tell_the_level_where_the_table_cannot)
{
	struct spread *s;
	struct spread_level v;

	assert_int_equal(spread_make(&table, &s, NULL), 0);
	spread_set(s, (const double[]){ 0.1, 0.1, 0.1, 0.1, 0.1 }, 0.1, 1.0);
	assert_true(spread_shared(s) == 0.5);
	v = spread_level_of(s, KNOWS_NOTHING, 0, 0.0, 0.0);
	assert_true(v.shift == 0.0 && v.narrow == 1.0);
	v = spread_level_of(s, KNOWS_NOTHING, 1, 0.1, 0.0); /* as far off as any run: half of it counts */
	assert_true(fabs(v.shift - 0.05) <= 1e-12 && v.narrow > 1.0);
	v = spread_level_of(s, KNOWS_NOTHING, 1, 0.001, 0.0);
	assert_true(fabs(v.shift) < 1e-6 && v.narrow < 1.001);
	v = spread_level_of(s, KNOWS_NOTHING, 1, 1.0, 0.0); /* ten times that: nearly all of it */
	assert_true(v.shift > 0.98 && v.shift < 1.0 && v.narrow > 1.4 && v.narrow < 1.42);
	v = spread_level_of(s, KNOWS_NOTHING, 20, -1.0, 0.0);
	assert_true(v.shift < -0.999 && v.narrow > 1.0 && v.narrow < 1.03);
	v = spread_level_of(s, KNOWS_NOTHING, 20, -1.0,
			    0.04); /* runs that vary by twice the model's errors */
	assert_true(v.narrow > 1.8 && v.narrow < 2.1);
	spread_free(s);
}

/* By hand: at 3 errors 8/9 of the variance is the name's, and 4 runs leave 1/9 of it, times
 * 1 + (8/9) / (1 + 3 * 8/9). */
TEST(test_runs_take_away_the_width_of_a_name_that_a_model_does_not_know)
{
	assert_true(fabs(spread_own_left(3.0, 4.0) - sqrt(41.0 / 33.0) / 3.0) <= 1e-12);
	assert_true(spread_own_left(3.0, 0.0) == 1.0 && spread_own_left(1.0, 4.0) == 1.0);
	assert_true(spread_own_left(0.5, 4.0) == 1.0 && spread_own_left(NAN, 4.0) == 1.0);
}

/* A name's level is as far off as the model says itself: 6 errors. After some runs of the name a bound at
 * 90 % holds for 90 % of the next ones or a few more, and is no longer 6 times as wide. */
TEST(test_bounds_of_an_unknown_name_hold_after_its_runs)
{
	const double error = 0.1, own = 6.0, z = 1.2816;
	static const uint8_t roles[] = { ROLE_CATEGORY, ROLE_BATCH };
	static double rows[] = { 0, 64, 1, 64, 2, 64, 3, 64 }, seconds[] = { 1, 2, 3, 4 };
	const struct dataset four = { .n_rows = 4, .n_features = 2, .role = roles, .x = rows, .y = seconds };
	struct rng rng = rng_stream(20261119, 1);
	struct spread *s;

	assert_int_equal(spread_make(&four, &s, NULL), 0);
	spread_set(s, (const double[]){ 0.1, 0.1, 0.1, 0.1, 0.1 }, error, 1.0);
	spread_set_shared(s, 0.01); /* what names share that the table has: it says nothing about a new one */
	for (int n = 1; n <= 16; n *= 2) {
		enum { TRIES = 10000 };
		double width = 0.0;
		size_t held = 0;

		for (int i = 0; i < TRIES; i++) {
			double level = error * sqrt(own * own - 1.0) * rng_normal(&rng), mean = 0.0,
			       square = 0.0;
			struct spread_level v;

			for (int j = 0; j < n; j++) {
				double run = level + error * rng_normal(&rng);

				mean += run / n;
				square += run * run / n;
			}
			v = spread_level_of(s, KNOWS_NO_NAME, n, mean, square - mean * mean);
			width = own * spread_own_left(own, v.n) * v.narrow;
			held += level + error * rng_normal(&rng) <= v.shift + z * error * width;
		}
		if ((double)held / TRIES < 0.87 || (double)held / TRIES > (n < 4 ? 0.97 : 0.94) ||
		    width > 2.1)
			fail_msg("%d runs: %g, width %g", n, (double)held / TRIES, width);
	}
	spread_free(s);
}

/* Families whose levels differ by 0 to 10 times the errors of runs: after one run of a new one, a bound that
 * would hold for 90 % of known jobs holds for as many of its next runs. Without the run it is 55 to 90 %. */
TEST(test_bounds_of_a_third_family_hold_after_one_run)
{
	const double error = 0.1, levels[] = { 0.0, 0.05, 0.1, 0.3, 1.0 }, z = 1.2816;
	struct rng rng = rng_stream(20261118, 1);
	struct spread *s;

	assert_int_equal(spread_make(&table, &s, NULL), 0);
	spread_set(s, (const double[]){ 0.1, 0.1, 0.1, 0.1, 0.1 }, error, 1.0);
	for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
		for (int n = 1; n <= 9; n += 4) {
			enum { TRIES = 10000 };
			size_t held = 0;

			for (int i = 0; i < TRIES; i++) {
				double level = levels[k] * rng_normal(&rng), mean = 0.0, square = 0.0;
				struct spread_level v;

				for (int j = 0; j < n; j++) {
					double run = level + error * rng_normal(&rng);

					mean += run / n;
					square += run * run / n;
				}
				v = spread_level_of(s, KNOWS_NOTHING, n, mean, square - mean * mean);
				held += level + error * rng_normal(&rng) <= v.shift + z * error * v.narrow;
			}
			/* 0.877 at worst, by a simulation of its own; the standard error is 0.0033 */
			if ((double)held / TRIES < 0.86 || (double)held / TRIES > 0.94)
				fail_msg("levels %g, %d runs: %g", levels[k], n, (double)held / TRIES);
		}
	spread_free(s);
}

TEST(test_labels_are_contexts_and_settings)
{
	struct spread *s;
	uint32_t label[5];

	assert_int_equal(spread_make(&table, &s, NULL), 0);
	assert_int_equal(spread_label(s, &table, KNOWS_NEITHER, label), 3);
	assert_true(label[0] == 0 && label[1] == 0 && label[2] == 1 && label[3] == 2 && label[4] == 2);
	assert_int_equal(spread_label(s, &table, KNOWS_NOTHING, label), 2);
	assert_true(label[0] == 0 && label[1] == 0 && label[2] == 0 && label[3] == 1 && label[4] == 1);
	assert_int_equal(spread_label(s, &table, KNOWS_CONTEXT, label), 4);
	assert_true(label[0] == 0 && label[1] == 1 && label[2] == 2 && label[3] == 3 && label[4] == 3);
	spread_free(s);
}

TEST(test_a_file_keeps_what_is_known_and_refuses_damage)
{
	struct writer w = { 0 };
	struct spread *s, *again = NULL;
	struct reader r;

	assert_int_equal(spread_make(&table, &s, NULL), 0);
	spread_set(s, (const double[]){ 0.1, 0.2, 0.4, 0.5, 0.9 }, 0.3, 1.0);
	spread_set_shared(s, 0.6);
	spread_save(s, &w);
	r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(spread_load(&r, 4, &again, NULL), 0);
	assert_int_equal(r.at, r.len);
	check(again);
	assert_true(spread_at(again, x) == 0.1 && spread_typical(again) == 0.3);
	assert_true(spread_shared(again) == 0.6);
	spread_free(again);
	for (size_t len = 0; len < w.out.len; len++) {
		r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = len };
		assert_int_equal(spread_load(&r, 4, &again, NULL), -ERR_FORMAT);
	}
	w.out.text[7] = (char)0xff; /* a negative scale */
	r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(spread_load(&r, 4, &again, NULL), -ERR_FORMAT);
	spread_free(s);
	strbuf_release(&w.out);
}
