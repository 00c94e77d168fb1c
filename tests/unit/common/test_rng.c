/* common/rng: known first numbers, streams that do not touch, and the moments the names promise. */
#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "tests/support/test.h"

#define N 200000

TEST(test_rng_next_gives_the_published_splitmix64_numbers)
{
	/* The reference generator's first outputs from state 1234567. */
	static const uint64_t known[] = { 6457827717110365317ULL, 3203168211198807973ULL,
					  9817491932198370423ULL, 4593380528125082431ULL,
					  16408922859458223821ULL };
	struct rng r = { 1234567 };

	for (size_t i = 0; i < 5; i++)
		assert_true(rng_next(&r) == known[i]);
}

TEST(test_rng_same_seed_and_id_give_the_same_stream)
{
	struct rng a = rng_stream(20231, 17), b = rng_stream(20231, 17);

	for (int i = 0; i < 1000; i++)
		assert_true(rng_next(&a) == rng_next(&b));
}

TEST(test_rng_streams_of_neighbouring_ids_are_unrelated)
{
	struct rng a = rng_stream(7, 0), b = rng_stream(7, 1);
	double covariance = 0.0;
	int equal = 0;

	for (int i = 0; i < N; i++) {
		double u = rng_uniform(&a), v = rng_uniform(&b);

		covariance += (u - 0.5) * (v - 0.5);
		equal += u == v;
	}
	assert_int_equal(equal, 0);
	/* the mean of N products of sd 1/12: five of its standard errors */
	assert_true(fabs(covariance / N) < 5.0 / 12.0 / sqrt(N));
}

TEST(test_rng_below_stays_below_and_is_even)
{
	struct rng r = rng_stream(3, 1);
	int seen[7] = { 0 };

	for (int i = 0; i < N; i++) {
		uint32_t v = rng_below(&r, 7);

		assert_true(v < 7);
		seen[v]++;
	}
	for (int i = 0; i < 7; i++) /* binomial: five standard deviations */
		assert_true(fabs(seen[i] - N / 7.0) < 5.0 * sqrt(N * (1.0 / 7.0) * (6.0 / 7.0)));
	for (int i = 0; i < 100; i++)
		assert_int_equal(rng_below(&r, 1), 0);
}

TEST(test_rng_below_has_no_bias_where_a_remainder_would)
{
	/* For n = 3 * 2^30 taking a remainder would hit the lowest third of the range half of the time. */
	const uint32_t n = 3221225472u;
	struct rng r = rng_stream(3, 2);
	int low = 0;

	for (int i = 0; i < N; i++)
		low += rng_below(&r, n) < n / 3;
	assert_true(fabs(low - N / 3.0) < 5.0 * sqrt(N * (1.0 / 3.0) * (2.0 / 3.0)));
}

TEST(test_rng_uniform_lies_in_its_half_open_interval)
{
	struct rng r = rng_stream(5, 23);
	double sum = 0.0;

	for (int i = 0; i < N; i++) {
		double u = rng_uniform(&r);

		assert_true(u >= 0.0 && u < 1.0);
		sum += u;
	}
	assert_true(fabs(sum / N - 0.5) < 5.0 * sqrt(1.0 / 12.0 / N));
}

TEST(test_rng_normal_has_mean_zero_and_variance_one)
{
	struct rng r = rng_stream(5, 24);
	double sum = 0.0, squares = 0.0;

	for (int i = 0; i < N; i++) {
		double z = rng_normal(&r);

		assert_true(isfinite(z));
		sum += z;
		squares += z * z;
	}
	assert_true(fabs(sum / N) < 5.0 / sqrt(N));
	assert_true(fabs(squares / N - 1.0) < 5.0 * sqrt(2.0 / N)); /* Var z^2 = 2 */
}

TEST(test_rng_exponential_has_mean_one_and_is_never_negative)
{
	struct rng r = rng_stream(5, 25);
	double sum = 0.0;

	for (int i = 0; i < N; i++) {
		double x = rng_exponential(&r);

		assert_true(x >= 0.0 && isfinite(x));
		sum += x;
	}
	assert_true(fabs(sum / N - 1.0) < 5.0 / sqrt(N));
}

TEST(test_rng_shuffle_keeps_every_element_once)
{
	struct rng r = rng_stream(11, 0);
	uint32_t v[97];
	unsigned char seen[97] = { 0 };
	int in_place = 0;

	for (uint32_t i = 0; i < 97; i++)
		v[i] = i;
	rng_shuffle(&r, v, 97);
	for (uint32_t i = 0; i < 97; i++) {
		assert_true(v[i] < 97);
		assert_int_equal(seen[v[i]]++, 0);
		in_place += v[i] == i;
	}
	assert_true(in_place < 12); /* one is expected */
	rng_shuffle(&r, v, 0);
	rng_shuffle(&r, v, 1);
	rng_shuffle(&r, NULL, 0);
}

TEST(test_rng_shuffle_makes_all_orders_alike)
{
	struct rng r = rng_stream(11, 1);
	int seen[3][3] = { { 0 } };

	for (int i = 0; i < 60000; i++) {
		uint32_t v[3] = { 0, 1, 2 };

		rng_shuffle(&r, v, 3);
		seen[v[0]][v[1]]++;
	}
	for (int a = 0; a < 3; a++)
		for (int b = 0; b < 3; b++)
			if (a != b) /* six orders, 10000 each, five standard deviations */
				assert_true(fabs(seen[a][b] - 10000.0) <
					    5.0 * sqrt(60000.0 / 6.0 * 5.0 / 6.0));
}
