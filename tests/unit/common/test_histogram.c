/* common/histogram: where a value falls, at a bound and beside it. */
#include <math.h>

#include "common/histogram.h"
#include "tests/support/test.h"

static const double bounds[] = { 0.5, 2.37, 10.0 };

TEST(test_a_value_at_a_bound_is_within_it)
{
	struct histogram h;

	histogram_init(&h, bounds, 3);
	histogram_add(&h, 2.37);
	histogram_add(&h, nextafter(2.37, 3.0));
	histogram_add(&h, 0.0);
	histogram_add(&h, 11.0);
	assert_int_equal(h.count[0], 1);
	assert_int_equal(h.count[1], 1);
	assert_int_equal(h.count[2], 1);
	assert_int_equal(h.count[3], 1);
	assert_int_equal(h.total, 4);
	assert_true(fabs(h.sum - 15.74) < 1e-9);
}

TEST(test_what_is_no_number_is_left_out_and_less_than_nothing_is_nothing)
{
	struct histogram h;

	histogram_init(&h, bounds, 3);
	histogram_add(&h, NAN);
	histogram_add(&h, INFINITY);
	histogram_add(&h, -3.0);
	assert_int_equal(h.total, 1);
	assert_int_equal(h.count[0], 1);
	assert_true(h.sum == 0.0);
}

TEST(test_the_usual_bounds_ascend)
{
	assert_true(histogram_n_short <= HISTOGRAM_MAX && histogram_n_long <= HISTOGRAM_MAX);
	for (size_t i = 1; i < histogram_n_short; i++)
		assert_true(histogram_short_s[i] > histogram_short_s[i - 1]);
	for (size_t i = 1; i < histogram_n_long; i++)
		assert_true(histogram_long_s[i] > histogram_long_s[i - 1]);
}
