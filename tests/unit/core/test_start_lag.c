/* scheduler/core/learn/start_lag: what most starts take. */
#include <math.h>

#include "scheduler/core/learn/start_lag.h"
#include "tests/support/test.h"

TEST(test_a_guess_stands_in_for_the_slowest_while_few_are_known)
{
	struct start_lag l = { 0 };

	assert_true(start_lag_most_s(&l, 95.0, 0.5) == 0.5);
	for (int i = 0; i < 19; i++)
		start_lag_add(&l, 0.01);
	assert_true(start_lag_most_s(&l, 95.0, 0.5) == 0.01); /* one of 20 may be slower */
	start_lag_add(&l, 0.02);
	assert_true(start_lag_most_s(&l, 95.0, 0.5) == 0.01);
	start_lag_add(&l, 0.02);
	assert_true(start_lag_most_s(&l, 95.0, 0.5) == 0.02);
}

/* Else the daemon would refuse all that comes, none would start, and none could show the accident. */
TEST(test_one_slow_start_is_an_accident_and_two_are_not)
{
	static const double percent[] = { 90.0, 95.0 };

	for (int i = 0; i < 2; i++) {
		struct start_lag l = { 0 };

		start_lag_add(&l, 0.3);
		assert_true(start_lag_most_s(&l, percent[i], 0.005) == 0.005);
		start_lag_add(&l, 0.001);
		assert_true(start_lag_most_s(&l, percent[i], 0.005) == 0.005);
		start_lag_add(&l, 0.03);
		assert_true(start_lag_most_s(&l, percent[i], 0.005) == 0.03);
	}
}

TEST(test_only_the_latest_count)
{
	struct start_lag l = { 0 };

	for (int i = 0; i < 100; i++)
		start_lag_add(&l, 9.0);
	for (int i = 0; i < START_LAG_LATEST; i++)
		start_lag_add(&l, 0.001 * (i + 1));
	assert_true(fabs(start_lag_most_s(&l, 95.0, 0.5) - 0.061) <= 1e-12); /* the 61st of 64 */
	assert_true(fabs(start_lag_most_s(&l, 90.0, 0.5) - 0.058) <= 1e-12);
	start_lag_add(&l, NAN);
	start_lag_add(&l, -1.0);
	assert_true(fabs(start_lag_most_s(&l, 95.0, 0.5) - 0.061) <= 1e-12);
}
