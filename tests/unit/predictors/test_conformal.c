/* predictors/models/conformal: ranks, bounds, and too few residuals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/models/conformal.h"
#include "tests/support/test.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fmax(1.0, fabs(want))))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* n residuals 1, 2, ... n around predictions of 10. */
static struct conformal ladder(size_t n)
{
	double y[200], p[200];
	struct conformal c;

	for (size_t i = 0; i < n; i++) {
		p[i] = 10.0;
		y[i] = 10.0 + (double)((i * 7) % n + 1); /* any order */
	}
	for (size_t i = 0; n % 7 == 0 && i < n; i++)
		y[i] = 10.0 + (double)(i + 1);
	assert_int_equal(conformal_fit(y, p, n, false, &c, NULL), 0);
	return c;
}

static double quantile(size_t n, double confidence)
{
	struct conformal c = ladder(n);
	double q = -1.0;

	if (conformal_quantile(&c, confidence, &q, NULL))
		q = -1.0;
	conformal_release(&c);
	return q;
}

TEST(test_with_many_residuals_the_rank_is_the_ceiling_of_n_plus_one_times_confidence)
{
	assert_true(quantile(99, 0.99) == 99.0);
	assert_true(quantile(99, 0.9) == 90.0);
	assert_true(quantile(100, 0.9) == 91.0); /* ceil(90.9) */
	assert_true(quantile(60, 0.9) == 55.0);
	assert_true(quantile(99, 1.0 - 0.1) == 90.0);
	assert_true(quantile(119, 1.0 - 0.05) == 114.0);
	assert_true(quantile(99, 0.7) == 70.0); /* 100 x 0.7 rounds above 70 in some orders */
	assert_true(quantile(99, 1e-6) == 1.0);
	assert_true(quantile(99, 0.905) == 91.0); /* not a whole percent */
}

TEST(test_with_few_residuals_the_quantile_is_that_of_student)
{
	/* 1 to 9: mean 5, standard deviation sqrt(7.5); t with 8 degrees of freedom has 1.39682 at 90 % */
	close_to(quantile(9, 0.9), 5.0 + 1.39682 * sqrt(7.5) * sqrt(10.0 / 9.0), 1e-5);
	close_to(quantile(9, 0.5), 5.0, 1e-9);
	/* t with 2 has 1.88562 */
	close_to(quantile(3, 0.9), 2.0 + 1.88562 * sqrt(4.0 / 3.0), 1e-5);
}

TEST(test_in_between_the_quantile_moves_from_one_to_the_other)
{
	/* 40 of 20 to 60: half and half. 1 to 40: mean 20.5, variance 136.67; t with 39 has 1.30364 at 90
	 * % */
	double student = 20.5 + 1.30364 * sqrt(40.0 * 41.0 / 12.0) * sqrt(41.0 / 40.0), rank = 37.0;

	close_to(quantile(40, 0.9), 0.5 * student + 0.5 * rank, 1e-4);
}

TEST(test_too_few_residuals_are_said_not_invented)
{
	struct conformal c = ladder(2);
	struct err err = { 0 };
	double q = 77.0;

	assert_int_equal(conformal_quantile(&c, 0.9, &q, &err), -ERR_NODATA);
	assert_true(q == 77.0);
	assert_non_null(strstr(err.text, "2 independent residuals"));
	assert_non_null(strstr(err.text, "3 are needed"));
	conformal_release(&c);
	assert_true(quantile(5, 0.95) == -1.0 && quantile(6, 0.95) > 0.0);
	assert_true(quantile(32, 0.99) == -1.0 && quantile(33, 0.99) > 0.0);
}

TEST(test_residuals_that_err_alike_count_as_one)
{
	struct conformal c = ladder(100);
	double q;

	conformal_set_groups(&c, 9);
	assert_int_equal(conformal_quantile(&c, 0.9, &q, NULL), 0);
	close_to(q, 50.5 + 1.39682 * sqrt(100.0 * 101.0 / 12.0) * sqrt(10.0 / 9.0), 1e-4);
	conformal_set_groups(&c, 2);
	assert_int_equal(conformal_quantile(&c, 0.9, &q, NULL), -ERR_NODATA);
	conformal_set_groups(&c, 1000); /* never more than there are residuals */
	assert_int_equal(c.groups, 100);
	conformal_release(&c);
}

TEST(test_needed_counts)
{
	assert_int_equal(conformal_needed(0.9), 9);
	assert_int_equal(conformal_needed(0.95), 19);
	assert_int_equal(conformal_needed(0.99), 99);
	assert_int_equal(conformal_needed(0.999), 999);
	assert_int_equal(conformal_needed(0.5), 1);
	assert_int_equal(conformal_needed(0.01), 1);
	assert_true(conformal_needed(1.0) == SIZE_MAX);
	assert_true(conformal_needed(0.0) == SIZE_MAX);
	assert_true(conformal_needed(NAN) == SIZE_MAX);
	for (int i = 1; i < 1000; i++) { /* a third of it, and at least 3, is the smallest that works */
		double c = i / 1000.0;
		size_t n = conformal_least(c);

		if (n > 190)
			continue;
		if (quantile(n, c) == -1.0 || quantile(n - 1, c) != -1.0)
			fail_msg("confidence %g: %zu", c, n);
	}
}

/* A table of one row: nothing can be held out, and a model file has no residuals. */
TEST(test_without_residuals_there_is_no_bound)
{
	struct conformal none = { .base = 1.0 };
	double q = 7.0;

	assert_int_equal(conformal_quantile(&none, 0.9, &q, NULL), -ERR_NODATA);
	assert_int_equal(conformal_quantile(&none, 0.123456, &q, NULL), -ERR_NODATA);
	assert_true(q == 7.0);
}

TEST(test_a_confidence_outside_0_to_1_is_an_argument_error)
{
	static const double bad[] = { 0.0, 1.0, -0.1, 90.0, NAN };
	struct conformal c = ladder(9);
	double q;

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(conformal_quantile(&c, bad[i], &q, NULL), -ERR_ARG);
	conformal_release(&c);
}

TEST(test_rows_without_a_prediction_are_left_out)
{
	const double y[] = { 1.0, 2.0, 3.0 }, p[] = { NAN, 1.5, NAN }, none[] = { NAN, NAN, NAN };
	struct conformal c;

	assert_int_equal(conformal_fit(y, p, 3, true, &c, NULL), 0);
	assert_int_equal(c.n, 1);
	conformal_release(&c);
	assert_int_equal(conformal_fit(y, none, 3, true, &c, NULL), 0);
	assert_int_equal(c.n, 0);
	assert_true(c.base == 1.0 && c.slope == 0.0);
	assert_true(conformal_upper(&c, 0.0, 5.0) == 5.0);
	conformal_release(&c);
	assert_int_equal(conformal_fit(NULL, NULL, 0, false, &c, NULL), 0);
	assert_int_equal(c.n, 0);
	conformal_release(&c);
	conformal_release(&c);
	conformal_release(NULL);
}

TEST(test_spread_finds_base_and_slope)
{
	double y[40], p[40];
	struct conformal c;

	for (int i = 0; i < 40; i++) { /* |residual| = 2 + 0.25 p exactly */
		p[i] = i * 3.7;
		y[i] = p[i] + (i % 2 ? 1.0 : -1.0) * (2.0 + 0.25 * p[i]);
	}
	assert_int_equal(conformal_fit(y, p, 40, true, &c, NULL), 0);
	close_to(c.base, 2.0, 1e-9);
	close_to(c.slope, 0.25, 1e-9);
	close_to(c.score[0], -1.0, 1e-9);
	close_to(c.score[39], 1.0, 1e-9);
	close_to(conformal_upper(&c, 1.0, 100.0), 127.0, 1e-9);
	close_to(conformal_upper(&c, 1.0, -100.0), -98.0, 1e-9); /* below 0 the spread stays at its base */
	conformal_release(&c);
}

TEST(test_spread_never_slopes_down_nor_vanishes)
{
	double y[20], p[20], mean = 0.0;
	struct conformal c;

	for (int i = 0; i < 20; i++) { /* falling: the flat spread is the best allowed */
		p[i] = i;
		y[i] = p[i] + 30.0 - i;
		mean += (30.0 - i) / 20.0;
	}
	assert_int_equal(conformal_fit(y, p, 20, true, &c, NULL), 0);
	assert_true(c.slope == 0.0);
	close_to(c.base, mean, 1e-12);
	conformal_release(&c);
	mean = 0.0;
	for (int i = 0; i < 20; i++) { /* the free line crosses 0 before p does: through the origin then */
		p[i] = 10.0 + i;
		y[i] = p[i] + i * i;
		mean += i * i / 20.0;
	}
	assert_int_equal(conformal_fit(y, p, 20, true, &c, NULL), 0);
	assert_true(c.slope > 0.0);
	close_to(c.base, 1e-3 * mean, 1e-12);
	conformal_release(&c);
	for (int i = 0; i < 20; i++) /* nothing positive to slope with */
		p[i] = y[i] = -5.0 - i;
	y[3] += 2.0;
	assert_int_equal(conformal_fit(y, p, 20, true, &c, NULL), 0);
	assert_true(c.slope == 0.0);
	close_to(c.base, 0.1, 1e-12);
	conformal_release(&c);
}

TEST(test_perfect_predictions_bound_themselves)
{
	const double y[] = { 1.0, 2.0, 3.5 };
	struct conformal c;

	assert_int_equal(conformal_fit(y, y, 3, true, &c, NULL), 0);
	assert_true(c.base == 1.0 && c.slope == 0.0);
	assert_true(c.score[0] == 0.0 && c.score[2] == 0.0);
	conformal_release(&c);
}

TEST(test_huge_and_tiny_values_keep_the_spread_positive_and_finite)
{
	static const double scale[] = { 1e-320, 1e-300, 1e-150, 1.0, 1e150, 1e300 };
	const double shape[] = { 1.0, 2.0, 3.0, 5.0 }, error[] = { 0.1, -0.3, 0.2, 0.7 };

	for (size_t a = 0; a < 6; a++) {
		for (size_t b = 0; b < 6; b++) {
			double y[4], p[4];
			struct conformal c;

			for (int i = 0; i < 4; i++) {
				p[i] = shape[i] * scale[a];
				y[i] = p[i] + error[i] * scale[b];
			}
			if (conformal_fit(y, p, 4, true, &c, NULL))
				continue; /* no finite score: said so */
			assert_true(c.base > 0.0 && isfinite(c.base) && c.slope >= 0.0 && isfinite(c.slope));
			for (size_t i = 0; i < 4; i++)
				assert_true(isfinite(c.score[i]));
			conformal_release(&c);
		}
	}
}

TEST(test_an_infinite_residual_is_refused)
{
	const double y[] = { 1e308, 1.0 }, p[] = { -1e308, 1.0 };
	struct conformal c;

	assert_int_equal(conformal_fit(y, p, 2, false, &c, NULL), -ERR_NUMERIC);
}

TEST(test_scores_in_log_time_bound_by_a_factor)
{
	double *score = mem_array(8, sizeof *score), q, nan[1] = { NAN };
	struct conformal c;

	for (int i = 0; i < 8; i++)
		score[i] = 0.01 * (i < 4 ? 9 - i : i - 3);
	assert_int_equal(conformal_take(score, 8, 8, &c, NULL), 0);
	assert_true(c.log && c.n == 8 && c.base == 1.0 && c.slope == 0.0);
	assert_int_equal(conformal_quantile(&c, 0.8, &q, NULL), 0);
	/* t with 7 degrees of freedom has 0.896030 at 80 %; the eight scores have a variance of 6 / 7 *
	 * 0.001 */
	close_to(q, 0.05 + 0.896030 * sqrt(6e-3 / 7.0) * sqrt(9.0 / 8.0), 1e-6);
	q = 0.09;
	close_to(conformal_upper(&c, q, 237.0), 237.0 * exp(0.09), 1e-9);
	close_to(conformal_upper(&c, conformal_widened(q, 2.5), 237.0), 237.0 * exp(0.225), 1e-9);
	close_to(conformal_widened(-0.1, 2.5), 0.05, 1e-12); /* wider is never lower */
	conformal_release(&c);
	assert_int_equal(conformal_take(nan, 1, 1, &c, NULL), -ERR_NUMERIC);
}

/* The promise itself: over fresh draws the bound at 90 % holds 90 times in 100. 4000 draws give a
 * standard error of 0.5 %; four of them on either side. */
TEST(test_bounds_hold_as_often_as_promised)
{
	struct rng rng = rng_stream(20240711, 0);
	size_t held = 0, tries = 4000;

	for (size_t k = 0; k < tries; k++) {
		double y[49], p[49], q, next;
		struct conformal c;

		for (int i = 0; i < 49; i++) {
			p[i] = 10.0 + 90.0 * rng_uniform(&rng);
			y[i] = p[i] * (1.0 + 0.1 * rng_normal(&rng));
		}
		assert_int_equal(conformal_fit(y, p, 49, true, &c, NULL), 0);
		assert_int_equal(conformal_quantile(&c, 0.9, &q, NULL), 0);
		next = 10.0 + 90.0 * rng_uniform(&rng);
		held += next * (1.0 + 0.1 * rng_normal(&rng)) <= conformal_upper(&c, q, next);
		conformal_release(&c);
	}
	close_to((double)held / (double)tries, 0.9, 0.02);
}

TEST(test_what_is_saved_loads_to_the_bit)
{
	double y[30], p[30];
	struct rng rng = rng_stream(1, 2);
	struct conformal c, d;
	struct writer w = { 0 };
	struct reader r;

	for (int i = 0; i < 30; i++) {
		p[i] = 100.0 * rng_uniform(&rng);
		y[i] = p[i] + rng_normal(&rng);
	}
	assert_int_equal(conformal_fit(y, p, 30, true, &c, NULL), 0);
	assert_int_equal(conformal_save(&c, &w), 0);
	r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(conformal_load(&r, &d, NULL), 0);
	assert_int_equal(read_left(&r), 0);
	assert_int_equal(d.n, c.n);
	assert_true(c.base == d.base && c.slope == d.slope);
	assert_memory_equal(c.score, d.score, c.n * sizeof *c.score);
	conformal_release(&d);
	for (size_t len = 0; len < w.out.len; len++) {
		r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = len };
		assert_int_equal(conformal_load(&r, &d, NULL), -ERR_FORMAT);
	}
	conformal_release(&c);
	strbuf_release(&w.out);
}

TEST(test_loading_refuses_what_fitting_never_makes)
{
	static const struct {
		uint64_t n;
		double v[4];
	} bad[] = {
		{ UINT64_MAX, { 1, 0, 1, 2 } }, { 3, { 1, 0, 1, 2 } },
		{ 2, { 0, 0, 1, 2 } },          { 2, { -1, 0, 1, 2 } },
		{ 2, { 1, -1, 1, 2 } },         { 2, { 1, 0, 2, 1 } },
		{ 2, { 1, 0, 1, INFINITY } },   { 2, { INFINITY, 0, 1, 2 } },
		{ 2, { 1, INFINITY, 1, 2 } },   { UINT64_C(1) << 61, { 1, 0, 1, 2 } }, /* times 8 is 0 */
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct writer w = { 0 };
		struct reader r;
		struct conformal c;

		write_u64(&w, bad[i].n);
		for (int k = 0; k < 4; k++)
			write_f64(&w, bad[i].v[k]);
		r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = w.out.len };
		assert_int_equal(conformal_load(&r, &c, NULL), -ERR_FORMAT);
		strbuf_release(&w.out);
	}
}

TEST(test_running_out_of_memory_leaks_nothing)
{
	const double y[] = { 1.0, 2.0, 4.0 }, p[] = { 1.5, 2.5, 3.5 };
	bool more = true;

	for (unsigned long k = 1; more; k++) {
		struct conformal c = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = conformal_fit(y, p, 3, true, &c, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		conformal_release(&c);
	}
}
