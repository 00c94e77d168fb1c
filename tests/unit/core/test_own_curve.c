/* The accuracy that a running job will end with, by its own epochs. */
#include <math.h>
#include <stdio.h>

#include "common/rng.h"
#include "scheduler/core/learn/own_curve.h"
#include "tests/support/test.h"

TEST(test_a_power_law_is_found_again)
{
	struct own_curve c = { 0 };

	for (int e = 1; e <= 4; e++) {
		assert_true(e > 3 || isnan(own_curve_at(&c, 14)));
		own_curve_add(&c, e, 1.0 - 0.37 * pow(e, -0.7));
	}
	assert_true(fabs(own_curve_at(&c, 14) - (1.0 - 0.37 * pow(14, -0.7))) < 1e-9);
}

/* Curves that level off, as real ones do, with noise: nearer the end than the accuracy of the moment. */
TEST(test_it_is_nearer_than_the_accuracy_of_the_moment)
{
	struct rng rng = rng_stream(5, 0);
	double wrong = 0.0, as_now = 0.0;
	int n = 400;

	for (int i = 0; i < n; i++) {
		double floor_ = 0.02 + 0.1 * rng_uniform(&rng), from = 0.2 + 0.4 * rng_uniform(&rng);
		double power = 0.4 + rng_uniform(&rng), end = 1.0 - floor_ - from * pow(14, -power);
		struct own_curve c = { 0 };

		for (int e = 1; e <= 5; e++)
			own_curve_add(&c, e, 1.0 - floor_ - from * pow(e, -power) + 0.005 * rng_normal(&rng));
		wrong += fabs(own_curve_at(&c, 14) - end) / n;
		as_now += fabs(c.last - end) / n;
	}
	printf("after 5 of 14 epochs: wrong by %.4f in the mean, the accuracy of the moment by %.4f\n", wrong,
	       as_now);
	assert_true(wrong < 0.5 * as_now);
}

TEST(test_numbers_that_are_no_accuracy_do_no_harm)
{
	struct own_curve c = { 0 };

	for (int e = 1; e <= 3; e++)
		own_curve_add(&c, e, 1.0);
	assert_true(own_curve_at(&c, 10) > 0.99 && own_curve_at(&c, 10) <= 1.0);
	own_curve_add(&c, NAN, 0.5);
	own_curve_add(&c, 4, NAN);
	own_curve_add(&c, 4, 77.0);
	own_curve_add(&c, -1, 0.5);
	assert_int_equal(c.n, 3);
	c = (struct own_curve){ 0 };
	for (int e = 1; e <= 4; e++) /* it becomes worse: nobody says that it goes on so */
		own_curve_add(&c, e, 0.9 - 0.1 * e);
	assert_true(own_curve_at(&c, 100) >= 0.5 && own_curve_at(&c, 100) <= 0.8);
}
