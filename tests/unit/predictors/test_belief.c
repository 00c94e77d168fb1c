/* predictors/belief: one law for bounds and chances. */
#include <math.h>

#include "predictors/belief.h"
#include "tests/support/test.h"

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * (1.0 + fabs(b))))
		fail_msg("%.17g instead of %.17g", a, b);
}

TEST(test_a_bound_and_a_chance_are_inverses)
{
	for (double confidence = 0.01; confidence < 1.0; confidence += 0.01)
		for (double spread = 0.01; spread < 3.0; spread *= 1.7) {
			struct belief b = { 12.0, spread };

			near(belief_chance(b, belief_bound(b, confidence)), confidence);
		}
}

TEST(test_a_belief_has_the_bound_it_was_made_of)
{
	for (double confidence = 0.6; confidence < 0.999; confidence += 0.013) {
		struct belief b = belief_of_bound(10.0, 14.0, confidence);

		assert_true(belief_asks(confidence) == confidence);
		near(belief_bound(b, confidence), 14.0);
		near(belief_chance(b, 10.0), 0.5);
		assert_true(belief_bound(b, 0.5) == 10.0);
	}
	/* near one half a bound tells no spread: another one is asked for */
	assert_true(belief_asks(0.5) == 0.9 && belief_asks(0.04) == 0.9);
}

TEST(test_chances_rise_with_the_limit_from_none_to_all)
{
	struct belief b = { 20.0, 0.2 };
	double before = 0.0;

	for (double limit_s = 0.01; limit_s < 1e4; limit_s *= 1.1) {
		double chance = belief_chance(b, limit_s);

		assert_true(chance >= before && chance <= 1.0);
		before = chance;
	}
	assert_true(belief_chance(b, INFINITY) == 1.0 && belief_chance(b, 0.0) == 0.0);
	assert_true(belief_chance(b, -5.0) == 0.0); /* it is late already */
	assert_true(belief_chance((struct belief){ 0.0, 0.2 }, 20.0) == 1.0);
	assert_true(belief_chance((struct belief){ 10.0, 0.5 }, 20.0) <
		    belief_chance((struct belief){ 10.0, 0.2 }, 20.0));
}

TEST(test_without_errors_the_expected_time_is_the_bound)
{
	struct belief b = belief_of_bound(10.0, 9.5, 0.9); /* all residuals were on one side */

	assert_true(b.spread == 0.0 && belief_bound(b, 0.99) == 10.0);
	assert_true(belief_chance(b, 10.0) == 1.0 && belief_chance(b, 9.999) == 0.0);
}

TEST(test_what_is_not_known_stays_unknown)
{
	assert_true(isnan(belief_of_bound(10.0, NAN, 0.9).spread));
	assert_true(isnan(belief_of_bound(NAN, 12.0, 0.9).spread));
	assert_true(isnan(belief_bound((struct belief){ 10.0, NAN }, 0.9)));
	assert_true(isnan(belief_chance((struct belief){ 10.0, NAN }, 12.0)));
	assert_true(isnan(belief_chance((struct belief){ NAN, 0.1 }, 12.0)));
	assert_true(isnan(belief_chance((struct belief){ 10.0, 0.1 }, NAN)));
}

TEST(test_what_makes_a_time_longer_or_less_certain_shifts_or_widens_it)
{
	struct belief b = belief_with((struct belief){ 10.0, 0.3 }, log(1.5), 0.4);

	near(b.time_s, 15.0);
	near(b.spread, 0.5);
	assert_true(belief_with((struct belief){ 10.0, 0.3 }, 0.0, 0.0).spread == 0.3);
}
