/* predictors/lsq: fits worked by hand, what is aliased and what is refused. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/models/lsq.h"
#include "tests/support/test.h"

/* lsq_prepare takes its design: hand it a copy. */
static int prepare(const double *x, const double *y, size_t n, size_t k, struct lsq_problem *p,
		   struct err *err)
{
	double *copy = malloc((n * k + 1) * sizeof *copy);

	memcpy(copy, x, n * k * sizeof *copy);
	return lsq_prepare(copy, y, n, k, true, p, err);
}

static struct lsq_fit fit(const double *x, const double *y, size_t n, size_t k)
{
	struct lsq_problem p;
	struct lsq_fit f;
	struct err err = { 0 };

	assert_int_equal(prepare(x, y, n, k, &p, &err), 0);
	assert_int_equal(lsq_solve(&p, NULL, 0, &f, &err), 0);
	lsq_problem_release(&p);
	return f;
}

static void near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* By hand: x = 1 2 4, y = 3.1 4.9 9.3. mean x 7/3, mean y 17.3/3; Sxx = 21 - 49/3 = 14/3,
 * Sxy = sum x y - n mean mean = 3.1 + 9.8 + 37.2 - 7 * 17.3 / 3 = 29.2/3; slope = 29.2 / 14;
 * RSS = Syy - Sxy^2 / Sxx; Syy = 120.11 - 17.3^2 / 3. Var slope = 3/14; var intercept = 1/3 + (7/3)^2
 * 3/14. */
TEST(test_line_through_three_points_as_by_hand)
{
	double x[] = { 1, 2, 4 }, y[] = { 3.1, 4.9, 9.3 };
	struct lsq_fit f = fit(x, y, 3, 1);

	near(f.coefficient[0], 29.2 / 14.0, 1e-13);
	near(f.intercept, 17.3 / 3.0 - 29.2 / 14.0 * 7.0 / 3.0, 1e-13);
	near(f.rss, 120.11 - 17.3 * 17.3 / 3.0 - 29.2 * 29.2 / 42.0, 1e-11); /* cancels two digits */
	near(f.variance[0], 3.0 / 14.0, 1e-13);
	near(f.intercept_variance, 1.0 / 3.0 + 49.0 / 9.0 * 3.0 / 14.0, 1e-13);
	assert_int_equal(f.rank, 1);
	assert_false(f.aliased[0]);
	lsq_fit_release(&f);
}

TEST(test_later_copy_of_a_column_is_the_aliased_one)
{
	double x[] = { 1, 2, 4, 7, 11, /**/ 3, 1, 4, 1, 5.5, /**/ 2, 4, 8, 14, 22, /**/ 4, 3, 8, 8, 16.5 };
	double y[] = { 2.37, 1.9, 5.1, 6.3, 12.2 };
	struct lsq_fit all = fit(x, y, 5, 4), two = fit(x, y, 5, 2);

	assert_int_equal(all.rank, 2);
	assert_false(all.aliased[0]);
	assert_false(all.aliased[1]);
	assert_true(all.aliased[2]); /* twice the first */
	assert_true(all.aliased[3]); /* first plus second */
	for (int j = 0; j < 2; j++)
		near(all.coefficient[j], two.coefficient[j], 1e-12);
	assert_true(all.coefficient[2] == 0.0 && all.variance[3] == 0.0);
	near(all.rss, two.rss, 1e-12);
	lsq_fit_release(&all);
	lsq_fit_release(&two);
}

TEST(test_constant_column_is_aliased_with_the_intercept)
{
	double x[] = { 0.1, 0.1, 0.1, 0.1, /**/ 1, 2, 3, 5 }, y[] = { 1, 2, 3, 5 };
	struct lsq_fit f = fit(x, y, 4, 2);

	assert_true(f.aliased[0]);
	near(f.coefficient[1], 1.0, 1e-14);
	assert_true(fabs(f.intercept) < 1e-14);
	lsq_fit_release(&f);
}

TEST(test_more_columns_than_rows_interpolates)
{
	double x[] = { 1, 2, 4, /**/ 1, 0, 0, /**/ 0, 0, 1, /**/ 7, 1, 3 }, y[] = { 3.1, 4.9, 9.3 };
	struct lsq_fit f = fit(x, y, 3, 4);

	assert_int_equal(f.rank, 2); /* and the intercept: three numbers for three rows */
	assert_false(f.aliased[0]);
	assert_false(f.aliased[1]);
	assert_true(f.rss < 1e-25);
	for (int i = 0; i < 3; i++)
		near(f.intercept + f.coefficient[0] * x[i] + f.coefficient[1] * x[3 + i], y[i], 1e-13);
	lsq_fit_release(&f);
}

TEST(test_one_row_gives_its_target)
{
	double x[] = { 3, 4 }, y[] = { 2.37 };
	struct lsq_fit f = fit(x, y, 1, 2);

	assert_int_equal(f.rank, 0);
	assert_true(f.intercept == 2.37);
	assert_true(f.rss == 0.0);
	lsq_fit_release(&f);
}

TEST(test_values_near_the_ends_of_double_do_not_overflow)
{
	double x[] = { 1e300, 2e300, 4e300, 5e300, /**/ 3e-300, 1e-300, 2e-300, 2e-300 };
	double y[] = { 3e200, 1e200, 9e200, 7e200 };
	double one[] = { DBL_MAX, -DBL_MAX, DBL_MAX }, yone[] = { DBL_MAX, -DBL_MAX, DBL_MAX };
	struct lsq_problem p;
	struct err err = { 0 };
	struct lsq_fit f;

	/* the second coefficient is 1e500: an error that says so, and no infinity */
	assert_int_equal(prepare(x, y, 4, 2, &p, &err), 0);
	assert_int_equal(lsq_solve(&p, NULL, 0, &f, &err), -ERR_NUMERIC);
	assert_non_null(strstr(err.text, "does not fit"));
	assert_int_equal(lsq_solve(&p, (size_t[]){ 0 }, 1, &f, &err), 0);
	assert_true(isfinite(f.coefficient[0]) && isfinite(f.intercept));
	assert_true(isinf(f.rss)); /* about 1e401 */
	lsq_problem_release(&p);
	lsq_fit_release(&f);
	f = fit(one, yone, 3, 1);
	near(f.coefficient[0], 1.0, 1e-14);
	lsq_fit_release(&f);
}

TEST(test_column_far_from_zero_keeps_its_slope)
{
	double x[50], y[50];
	struct lsq_fit f;

	for (int i = 0; i < 50; i++) {
		x[i] = 1.6e9 + 3.0 * i; /* seconds since 1970 */
		y[i] = 0.25 * (3.0 * i) + 7.0;
	}
	f = fit(x, y, 50, 1);
	near(f.coefficient[0], 0.25, 1e-12);
	lsq_fit_release(&f);
}

/* Folding the rows into a triangle must not change an answer: the same rows once (not folded) and 40
 * times over (folded). Coefficients stay, RSS grows 40-fold, variances shrink 40-fold. */
TEST(test_folded_problem_answers_like_the_plain_one)
{
	enum { N = 7, K = 3, TIMES = 40 };
	double x[N * K], y[N], wide_x[N * K * TIMES], wide_y[N * TIMES];
	struct rng r = rng_stream(7, 1);
	struct lsq_fit a, b;

	for (int i = 0; i < N * K; i++)
		x[i] = rng_normal(&r) * (i % 2 ? 100.0 : 1.0) + 3.0;
	for (int i = 0; i < N; i++)
		y[i] = rng_normal(&r);
	for (int t = 0; t < TIMES; t++)
		for (int i = 0; i < N; i++) {
			wide_y[t * N + i] = y[i];
			for (int j = 0; j < K; j++)
				wide_x[j * N * TIMES + t * N + i] = x[j * N + i];
		}
	a = fit(x, y, N, K);
	b = fit(wide_x, wide_y, (size_t)N * TIMES, K);
	for (int j = 0; j < K; j++) {
		near(b.coefficient[j], a.coefficient[j], 1e-11);
		near(b.variance[j], a.variance[j] / TIMES, 1e-11);
	}
	near(b.intercept, a.intercept, 1e-11);
	near(b.intercept_variance, a.intercept_variance / TIMES, 1e-11);
	near(b.rss, a.rss * TIMES, 1e-11);
	lsq_fit_release(&a);
	lsq_fit_release(&b);
}

TEST(test_subset_is_fitted_as_if_alone)
{
	double x[] = { 1, 2, 4, 7, 3, 9, /**/ 5, 1, 1, 0, 2, 2, /**/ 1, 1, 0, 0, 1, 0 };
	double y[] = { 2.37, 1.1, 5.2, 8, 3.3, 9.1 }, alone[12];
	struct lsq_problem p;
	struct lsq_fit part, whole;
	struct err err = { 0 };

	memcpy(alone, x + 12, 6 * sizeof *x);
	memcpy(alone + 6, x, 6 * sizeof *x);
	assert_int_equal(prepare(x, y, 6, 3, &p, &err), 0);
	assert_int_equal(lsq_solve(&p, (size_t[]){ 2, 0 }, 2, &part, &err), 0);
	whole = fit(alone, y, 6, 2);
	for (int j = 0; j < 2; j++)
		near(part.coefficient[j], whole.coefficient[j], 1e-13);
	near(part.rss, whole.rss, 1e-13);
	lsq_problem_release(&p);
	lsq_fit_release(&part);
	lsq_fit_release(&whole);
}

/* Residuals of a least-squares fit are orthogonal to every column, whatever the data. */
TEST(test_residuals_are_orthogonal_to_the_columns)
{
	enum { N = 30, K = 6 };
	double x[N * K], y[N];
	struct rng r = rng_stream(11, 0);

	for (int round = 0; round < 20; round++) {
		struct lsq_fit f;

		for (int i = 0; i < N * K; i++)
			x[i] = ldexp(rng_normal(&r), i / N * 3);
		for (int i = 0; i < N; i++)
			y[i] = 5.0 + rng_normal(&r);
		f = fit(x, y, N, K);
		for (int j = -1; j < K; j++) {
			double dot = 0.0, size = 0.0;

			for (int i = 0; i < N; i++) {
				double e = y[i] - f.intercept, v = j < 0 ? 1.0 : x[j * N + i];

				for (int k = 0; k < K; k++)
					e -= f.coefficient[k] * x[k * N + i];
				dot += e * v;
				size += fabs(v) * 5.0;
			}
			assert_true(fabs(dot) < 1e-13 * size);
		}
		lsq_fit_release(&f);
	}
}

TEST(test_bad_input_is_refused_with_a_reason)
{
	double x[] = { 1, NAN, 3 }, ok[] = { 1, 2, 3 }, y[] = { 1, 2, INFINITY };
	struct lsq_problem p;
	struct err err = { 0 };

	assert_int_equal(prepare(x, ok, 3, 1, &p, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "row 1"));
	assert_int_equal(prepare(ok, y, 3, 1, &p, &err), -ERR_ARG);
	assert_int_equal(prepare(ok, ok, 0, 1, &p, &err), -ERR_NODATA);
	assert_int_equal(lsq_prepare(NULL, ok, (size_t)1 << 20, (size_t)1 << 20, true, &p, &err),
			 -ERR_NUMERIC);
	assert_int_equal(lsq_prepare(NULL, ok, SIZE_MAX / 2, 1, true, &p, &err), -ERR_NUMERIC);
}

TEST(test_no_memory_is_reported_at_every_allocation)
{
	double x[40], y[20];
	struct rng r = rng_stream(3, 0);
	bool met = true;

	for (int i = 0; i < 40; i++)
		x[i] = rng_normal(&r);
	for (int i = 0; i < 20; i++)
		y[i] = rng_normal(&r);
	for (unsigned long k = 1; met; k++) {
		struct lsq_problem p = { 0 };
		struct lsq_fit f = { 0 };
		struct err err = { 0 };
		double c[2], weight[2] = { 0.5, 0.5 };
		bool converged;
		int rc;

		mem_fail_at(k, false);
		rc = prepare(x, y, 20, 2, &p, &err);
		if (!rc)
			rc = lsq_solve(&p, NULL, 0, &f, &err);
		if (!rc)
			rc = lsq_ridge_scaled(&p, weight, c, &err);
		if (!rc)
			rc = lsq_lasso_scaled(&p, weight, 1e-10, 100, c, &converged, &err);
		met = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, met ? -ERR_NOMEM : 0);
		lsq_problem_release(&p);
		lsq_fit_release(&f);
	}
}

/* One unit column: the ridge answer is b'a / (1 + w^2), the lasso answer b'a minus w towards 0. */
TEST(test_penalised_fits_of_one_column_as_by_hand)
{
	double x[] = { 1, 2, 4 }, y[] = { 3.1, 4.9, 9.3 }, c, weight = 0.7;
	double ab = 29.2 / 3.0 / sqrt(14.0 / 3.0); /* Sxy / sqrt(Sxx), in units of y; y is halved 4 times */
	struct lsq_problem p;
	struct err err = { 0 };
	bool converged;

	assert_int_equal(prepare(x, y, 3, 1, &p, &err), 0);
	assert_int_equal(p.y_exponent, 4);
	assert_int_equal(lsq_ridge_scaled(&p, &weight, &c, &err), 0);
	near(c, ab / 16.0 / (1.0 + weight * weight), 1e-13);
	weight = 0.1;
	assert_int_equal(lsq_lasso_scaled(&p, &weight, 1e-12, 10, &c, &converged, &err), 0);
	assert_true(converged);
	near(c, ab / 16.0 - weight, 1e-13);
	weight = 1.0; /* more than b'a = 0.28: nothing is left */
	assert_int_equal(lsq_lasso_scaled(&p, &weight, 1e-12, 10, &c, &converged, &err), 0);
	assert_true(c == 0.0 && converged);
	weight = INFINITY;
	assert_int_equal(lsq_ridge_scaled(&p, &weight, &c, &err), 0);
	assert_true(c == 0.0);
	lsq_problem_release(&p);
}
