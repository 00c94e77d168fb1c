/* common/stats: answers worked by hand, edges, and sums where naive ways lose digits. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "common/stats.h"
#include "tests/support/test.h"

/* The last few bits may differ by order of operations. */
static void assert_close(double a, double b)
{
	if (!(fabs(a - b) <= 1e-14 * fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

TEST(test_stats_mean_and_sd_of_a_sample_worked_by_hand)
{
	/* sum 18.5, mean 3.7; squares of differences 1.69 + 0.64 + 0.04 + 1.21 + 1.44 = 5.02 */
	const double v[] = { 2.4, 2.9, 3.5, 4.8, 4.9 };
	double squares = 1.3 * 1.3 + 0.8 * 0.8 + 0.2 * 0.2 + 1.1 * 1.1 + 1.2 * 1.2;

	assert_close(stats_mean(v, 5), 3.7);
	assert_close(stats_sd(v, 5), sqrt(squares / 4.0));
}

TEST(test_stats_of_nothing_and_of_one)
{
	double one[] = { 2.37 };

	assert_true(isnan(stats_mean(one, 0)));
	assert_true(isnan(stats_median(one, 0)));
	assert_true(isnan(stats_percentile(one, 0, 50.0)));
	assert_true(stats_sd(one, 0) == 0.0);
	assert_true(stats_sd(one, 1) == 0.0);
	assert_true(stats_mean(one, 1) == 2.37);
	assert_true(stats_median(one, 1) == 2.37);
	assert_true(stats_percentile(one, 1, 0.0) == 2.37);
	assert_true(stats_percentile(one, 1, 100.0) == 2.37);
	stats_sort(one, 1);
	stats_sort(NULL, 0);
}

TEST(test_stats_sd_survives_a_large_offset)
{
	/* NIST NumAcc4's trouble: spread 0.1 on top of 1e7 costs E[x^2] - E[x]^2 all its digits. */
	double v[1001];

	v[0] = 10000000.2;
	for (int i = 1; i < 1001; i += 2) {
		v[i] = 10000000.1;
		v[i + 1] = 10000000.3;
	}
	assert_true(fabs(stats_mean(v, 1001) - 10000000.2) < 1e-8);
	assert_true(fabs(stats_sd(v, 1001) - 0.1) < 1e-8); /* the certified value; inputs are off by 1e-9 */
}

TEST(test_stats_equal_values_have_no_spread)
{
	double v[10];

	for (int i = 0; i < 10; i++)
		v[i] = 0.1;
	assert_true(stats_mean(v, 10) == 0.1); /* ten times 0.1 sums to 0.9999999999999999 */
	assert_true(stats_sd(v, 10) == 0.0);
}

/* Of any order, with equal ones and missing ones, it is what sorting says. */
TEST(test_stats_median_is_the_middle_of_the_sorted)
{
	struct rng rng = rng_stream(21, 0);

	for (int k = 0; k < 3000; k++) {
		size_t n = 1 + rng_below(&rng, 70);
		double v[70], sorted[70], want;

		for (size_t i = 0; i < n; i++)
			v[i] = k % 3 == 0 ? rng_below(&rng, 4) : k % 3 == 1 ? rng_normal(&rng) : (double)i;
		if (k % 11 == 0)
			v[rng_below(&rng, (uint32_t)n)] = NAN;
		memcpy(sorted, v, sizeof v);
		stats_sort(sorted, n);
		want = n % 2 ? sorted[n / 2] : 0.5 * sorted[n / 2 - 1] + 0.5 * sorted[n / 2];
		assert_true(stats_median(v, n) == want || (isnan(want) && k % 11 == 0));
	}
}

TEST(test_stats_median_of_even_and_odd_counts)
{
	double odd[] = { 9.1, -3.3, 4.7 }, even[] = { 9.1, -3.3, 4.7, 5.2 };
	double large[] = { DBL_MAX, DBL_MAX };

	assert_true(stats_median(odd, 3) == 4.7);
	assert_close(stats_median(even, 4), 4.95);
	assert_true(stats_median(large, 2) == DBL_MAX);
}

TEST(test_stats_percentile_is_the_nearest_rank)
{
	/* The textbook example: 15, 20, 35, 40, 50. */
	double v[] = { 40, 15, 50, 35, 20 };

	assert_true(stats_percentile(v, 5, 5.0) == 15);
	assert_true(stats_percentile(v, 5, 30.0) == 20);
	assert_true(stats_percentile(v, 5, 40.0) == 20);
	assert_true(stats_percentile(v, 5, 40.001) == 35);
	assert_true(stats_percentile(v, 5, 50.0) == 35);
	assert_true(stats_percentile(v, 5, 100.0) == 50);
	assert_true(stats_percentile(v, 5, 0.0) == 15);
	assert_true(stats_percentile(v, 5, -7.0) == 15);
	assert_true(stats_percentile(v, 5, 170.0) == 50);
	assert_true(isnan(stats_percentile(v, 5, NAN)));
}

TEST(test_stats_whole_percentages_hit_their_rank_exactly)
{
	double v[1000];

	for (int i = 0; i < 1000; i++)
		v[i] = i + 1;
	for (int p = 1; p <= 100; p++) /* rounding p / 100 first would overshoot for 55, 57, 7, ... */
		assert_true(stats_percentile(v, 1000, p) == p * 10);
}

TEST(test_stats_sort_puts_nan_last_and_the_rest_in_order)
{
	struct rng r = rng_stream(31, 4);
	double v[501];

	for (int i = 0; i < 501; i++)
		v[i] = i % 50 == 3 ? NAN : i == 77 ? -INFINITY : i == 78 ? INFINITY : rng_normal(&r);
	stats_sort(v, 501);
	assert_true(v[0] == -INFINITY);
	for (int i = 1; i < 491; i++)
		assert_true(v[i - 1] <= v[i]);
	assert_true(v[490] == INFINITY);
	for (int i = 491; i < 501; i++)
		assert_true(isnan(v[i]));
}

/* By hand: 3, 1 and 2 are one stretch of 2; 5 and 4 one of 4.5. */
TEST(test_stats_rising_pools_what_falls)
{
	double v[] = { 0.5, 3, 1, 2, 5, 4, 6 }, same[] = { 1, 1, 2 }, falling[] = { 3, 2, 1 };
	size_t scratch[7];

	stats_rising(v, 7, scratch);
	assert_true(v[0] == 0.5 && v[1] == 2.0 && v[2] == 2.0 && v[3] == 2.0);
	assert_true(v[4] == 4.5 && v[5] == 4.5 && v[6] == 6.0);
	stats_rising(same, 3, scratch);
	assert_true(same[0] == 1.0 && same[1] == 1.0 && same[2] == 2.0);
	stats_rising(falling, 3, scratch);
	assert_true(falling[0] == 2.0 && falling[2] == 2.0);
	stats_rising(v, 0, scratch);
}
