/* The signed-rank test against known answers, and two models side by side. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "scheduler/core/learn/paired.h"
#include "tests/support/support.h"

static struct paired_result rank(const double *v, size_t n)
{
	struct paired_result r = { 0 };
	double copy[64];

	assert_true(n <= 64);
	memcpy(copy, v, n * sizeof *v);
	paired_signed_rank(copy, n, &r);
	return r;
}

/* p of wilcox.test(x, alternative = "greater") of R 4.2 */
TEST(test_exact_p_is_that_of_r)
{
	/* the depression scale of Hollander and Wolfe, Nonparametric Statistical Methods, table 3.1 */
	static const double scale[] = { 0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01 };
	static const double twelve[] = { 0.37, -0.12, 0.81, 0.05, -0.44, 0.93,
					 0.28, -0.03, 0.61, 0.74, -0.19, 0.52 };
	struct paired_result r = rank(scale, 9);

	assert_true(r.exact);
	assert_true(r.statistic == 40.0);
	assert_true(r.p == 0.01953125);
	r = rank(twelve, 12);
	assert_true(r.statistic == 63.0);
	assert_true(fabs(r.p - 0.031982421875) < 1e-15);
}

TEST(test_exact_p_counts_ties_and_leaves_out_zeros)
{
	static const double v[] = { 0.5, -0.5, 1, 1, 2, -1, 0, 3, 2, 2.5, -2, NAN };
	struct paired_result r = rank(v, 12);

	assert_int_equal(r.n, 11);
	assert_int_equal(r.n_different, 10);
	assert_true(r.statistic == 42.5);
	assert_true(r.p == 75.0 / 1024.0); /* of all 2^10 signs 75 give 42.5 or more: counted one by one */
	assert_true(rank((double[]){ 1.0 }, 1).p == 0.5);
	assert_true(rank((double[]){ -1.0 }, 1).p == 1.0);
	assert_true(rank((double[]){ 0.0, 0.0 }, 2).p == 1.0);
	assert_true(rank((double[]){ NAN }, 1).p == 1.0);
}

TEST(test_normal_p_is_that_of_r)
{
	double v[60];
	struct paired_result r;

	for (int i = 0; i < 60; i++)
		v[i] = sin((i + 1) * 1.7) + 0.3 + 0.001 * (i + 1);
	r = rank(v, 60);
	assert_false(r.exact);
	assert_true(r.statistic == 1363.0);
	assert_true(fabs(r.p / 0.00049330521667507326 - 1.0) < 1e-12);
	for (int i = 0; i < 60; i++)
		v[i] = nearbyint(v[i] * 4.0) / 4.0;
	r = rank(v, 60);
	assert_int_equal(r.n_different, 56);
	assert_true(r.statistic == 1209.5);
	assert_true(fabs(r.p / 0.00037402988397286209 - 1.0) < 1e-12);
	for (int i = 0; i < 60; i++)
		v[i] = -v[i];
	assert_true(fabs(rank(v, 60).p / 0.99963695526595009 - 1.0) < 1e-12);
}

TEST(test_normal_and_exact_meet_where_one_takes_over)
{
	double v[20];

	for (int i = 0; i < 20; i++)
		v[i] = (i % 3 ? 1.0 : -1.0) * (1.0 + 0.37 * i);
	/* 20 by the normal distribution; 19 of them exactly: alike, not equal */
	assert_false(rank(v, 20).exact);
	assert_true(rank(v, 19).exact);
	assert_true(fabs(rank(v, 20).p - rank(v + 1, 19).p) < 0.05);
}

/* If neither is better, p is below 5 % in about 5 % of the comparisons. */
TEST(test_equal_models_are_told_apart_as_rarely_as_p_says)
{
	const size_t sizes[] = { 12, 100 };

	for (size_t s = 0; s < 2; s++) {
		int found = 0;

		for (uint64_t k = 0; k < 2000; k++) {
			struct rng rng = rng_stream(21, k);
			struct paired_result r = { 0 };
			double v[100];

			for (size_t i = 0; i < sizes[s]; i++)
				v[i] = rng_normal(&rng);
			paired_signed_rank(v, sizes[s], &r);
			found += r.p <= 0.05;
		}
		assert_in_range(found, 60,
				135); /* 100 expected (fewer where exact), 3.5 standard deviations */
	}
}

TEST(test_a_model_that_follows_the_drift_wins)
{
	struct rng rng = rng_stream(support_seed(22), 1);
	double actual[100], old[100], new[100], work[100];
	struct paired_jobs j = { .n = 100, .actual_s = actual, .old_s = old, .new_s = new };
	struct paired_result r, back;

	for (int i = 0; i < 100; i++) {
		old[i] = 10.0 + i;
		new[i] = 1.2 * old[i];
		actual[i] = 1.2 * old[i] * exp(0.1 * rng_normal(&rng));
	}
	actual[3] = NAN;
	old[4] = 0.0;
	new[5] = INFINITY;
	assert_int_equal(paired_compare(&j, work, &r, NULL), 0);
	assert_int_equal(r.n, 97);
	/* Four standard errors each: a median of n has 1 / (2 f sqrt(n)), with f the density there. The new
	 * error is |0.1 z|: median 0.0674, f = 6.36. The old one is about log 1.2 + 0.1 z: f = 3.99. */
	assert_true(fabs(r.new_error - 0.0674) < 4.0 * 0.0080);
	assert_true(fabs(r.old_error - log(1.2)) < 4.0 * 0.0127);
	/* The new one is better where z > -0.91, in 82 of 100 jobs, and those have the larger differences. */
	assert_true(r.p < 1e-6);
	j.old_s = new;
	j.new_s = old;
	assert_int_equal(paired_compare(&j, work, &back, NULL), 0);
	assert_true(back.p > 0.999999);
	assert_true(back.old_error == r.new_error && back.new_error == r.old_error);
}

TEST(test_nothing_to_compare_is_said)
{
	const double bad[] = { NAN, -1.0 }, good[] = { 1.0, 2.0 };
	struct paired_jobs j = { .n = 2, .actual_s = bad, .old_s = good, .new_s = good };
	struct paired_result r = { .p = 7.0 };
	struct err err = { 0 };
	double work[2];

	assert_int_equal(paired_compare(&j, work, &r, &err), -ERR_NODATA);
	j.n = PAIRED_MAX + 1;
	assert_int_equal(paired_compare(&j, work, &r, &err), -ERR_ARG);
	assert_true(r.p == 7.0);
	j = (struct paired_jobs){ .n = 2, .actual_s = good, .old_s = good, .new_s = good };
	assert_int_equal(paired_compare(&j, work, &r, &err), 0);
	assert_true(r.p == 1.0 && r.n == 2 && r.n_different == 0);
}
