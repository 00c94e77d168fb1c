/* common/clock: clocks run forward and agree with the system. */
#include <time.h>

#include "common/clock.h"
#include "tests/support/test.h"

TEST(test_monotonic_readings_never_go_back_and_agree)
{
	int64_t before = clock_monotonic_ns(), after;
	double us = clock_monotonic_us(), s = clock_monotonic_s();

	after = clock_monotonic_ns();
	assert_true(before <= after);
	/* a double of nanoseconds since the start is good to well under a microsecond */
	assert_true(us >= (double)before / 1e3 - 1.0 && us <= (double)after / 1e3 + 1.0);
	assert_true(s >= (double)before / 1e9 - 1e-6 && s <= (double)after / 1e9 + 1e-6);
}

TEST(test_the_boot_clock_is_not_behind_the_monotonic_one)
{
	int64_t monotonic = clock_monotonic_ns();

	assert_true(clock_boot_ns() >= monotonic);
}

TEST(test_the_wall_clock_counts_from_1970)
{
	int64_t before = (int64_t)time(NULL);

	/* time() may read a coarser clock, which lags by some milliseconds */
	assert_in_range(clock_wall_ns() / 1000000000 - before + 1, 0, 5);
}
