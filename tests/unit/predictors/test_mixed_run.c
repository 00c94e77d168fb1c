/* The accuracy of runs whose batch changes, worked out by hand. */
#include <math.h>

#include "predictors/models/mixed_run.h"
#include "tests/support/test.h"

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-12 * fmax(1.0, fabs(b))))
		fail_msg("%.17g is not %.17g", a, b);
}

/* 2 epochs at 32 and 3 at 128 are 2 x 4 + 3 = 11 epochs at 128 where iterations count, and 2 x 2 + 3 = 7
 * where the learning rate makes up for half of what a larger batch saves. */
TEST(test_efforts_add_up_over_the_batches_of_a_run)
{
	double plain = mixed_run_effort(2, 32, NAN) + mixed_run_effort(3, 128, 1.0);
	double half = mixed_run_effort(2, 32, 0.5) + mixed_run_effort(3, 128, 0.5);

	near(mixed_run_epochs(plain, 128, 1.0), 11.0);
	near(mixed_run_epochs(plain, 32, NAN), 2.75);
	near(mixed_run_epochs(half, 128, 0.5), 7.0);
	near(mixed_run_epochs(mixed_run_effort(2, 32, 0.0) + mixed_run_effort(3, 128, 0.0), 64, 0.0), 5.0);
}

/* 4 epochs each: with 128 there are a quarter of the iterations of 32. Half of the way between them in
 * logarithms is as 64; two epochs of each are 2 + 0.5 = 2.5 of 4 epochs at 32. */
TEST(test_a_mixed_run_lies_between_runs_of_one_batch)
{
	struct mixed_run_curve m = { 0 };
	double both = mixed_run_effort(2, 32, 1.0) + mixed_run_effort(2, 128, 1.0);

	assert_true(isnan(mixed_run_at(&m, both)));
	mixed_run_add(&m, mixed_run_effort(4, 32, 1.0), 0.9);
	mixed_run_add(&m, NAN, 0.1);
	mixed_run_add(&m, mixed_run_effort(4, 128, 1.0), 0.7);
	mixed_run_settle(&m);
	assert_int_equal(m.n, 2);
	near(mixed_run_at(&m, mixed_run_effort(4, 64, 1.0)), 0.8);
	near(mixed_run_at(&m, both), 0.7 + 0.2 * log(2.5) / log(4.0));
	near(mixed_run_at(&m, mixed_run_effort(4, 128, 1.0)), 0.7);
	near(mixed_run_at(&m, mixed_run_effort(9, 32, 1.0)), 0.9);
	near(mixed_run_at(&m, mixed_run_effort(1, 128, 1.0)), 0.7);
}

TEST(test_a_dip_of_the_model_is_spread_over_both_of_its_sides)
{
	struct mixed_run_curve m = { 0 };

	mixed_run_add(&m, 4.0, 0.8);
	mixed_run_add(&m, 1.0, 0.5);
	mixed_run_add(&m, 2.0, 0.7);
	mixed_run_add(&m, 3.0, 0.6);
	mixed_run_settle(&m);
	near(mixed_run_at(&m, 1.0), 0.5);
	near(mixed_run_at(&m, 2.0), 0.65);
	near(mixed_run_at(&m, 3.0), 0.65);
	near(mixed_run_at(&m, 4.0), 0.8);
}
