/* predictors/data/score: MSE, R2, MAPE and MAE worked out by hand. */
#include <math.h>

#include "predictors/data/score.h"
#include "tests/support/test.h"

#define CLOSE 1e-12 /* a few roundings of numbers near 1 */

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fmax(1.0, fabs(want))))
		fail_msg("got %.17g, want %.17g", got, want);
}

TEST(test_scores_worked_by_hand)
{
	const double y[] = { 2.0, 4.0, 5.0, 9.0 }, p[] = { 2.5, 3.0, 5.0, 11.0 };
	struct score s = score_of(y, p, 4);

	close_to(s.mse, (0.25 + 1.0 + 0.0 + 4.0) / 4.0, CLOSE);
	close_to(s.mae, 3.5 / 4.0, CLOSE);
	close_to(s.mape, (0.25 + 0.25 + 0.0 + 2.0 / 9.0) / 4.0, CLOSE);
	close_to(s.r2, 1.0 - 5.25 / 26.0, CLOSE); /* mean 5: 9 + 1 + 0 + 16 */
}

TEST(test_mape_leaves_out_rows_that_are_zero)
{
	const double y[] = { 0.0, 2.0, 0.0 }, p[] = { 1.0, 3.0, 1.0 };

	close_to(score_of(y, p, 3).mape, 0.5, CLOSE);
	assert_true(isnan(score_of(y, p, 1).mape));
}

TEST(test_negative_values_count_by_their_size)
{
	const double y[] = { -2.0, -4.0 }, p[] = { -1.0, -5.0 };

	close_to(score_of(y, p, 2).mape, 0.375, CLOSE);
	close_to(score_of(y, p, 2).r2, 0.0, CLOSE);
}

TEST(test_r2_of_a_constant_is_not_a_number)
{
	/* ten times 0.1 does not sum to exactly 1 */
	const double y[] = { 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1 };
	const double p[] = { 0.1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1 };

	assert_true(isnan(score_of(y, p, 10).r2));
	assert_true(isnan(score_of(y, p, 1).r2));
	close_to(score_of(y, p, 10).mse, 0.001, CLOSE);
}

TEST(test_perfect_predictions_score_perfectly)
{
	const double y[] = { 2.37, 493.510662, 1e-3 };
	struct score s = score_of(y, y, 3);

	assert_true(s.mse == 0.0 && s.mae == 0.0 && s.mape == 0.0 && s.r2 == 1.0);
}

TEST(test_no_rows_have_no_score)
{
	struct score s = score_of(NULL, NULL, 0);

	assert_true(isnan(s.mse) && isnan(s.mae) && isnan(s.mape) && isnan(s.r2));
}

TEST(test_huge_values_do_not_spoil_what_has_an_answer)
{
	const double y[] = { 1e308, 1.2e308, 0.9e308 }, p[] = { 1.1e308, 1.2e308, 0.9e308 };
	struct score s = score_of(y, p, 3);

	close_to(s.mape, 0.1 / 3.0, CLOSE);
	close_to(s.mae / 1e307, 1.0 / 3.0, 1e-9); /* 1.1e308 - 1e308 cancels a digit */
}

TEST(test_a_missing_prediction_is_not_hidden)
{
	const double y[] = { 1.0, 2.0 }, p[] = { 1.0, NAN };
	struct score s = score_of(y, p, 2);

	assert_true(isnan(s.mse) && isnan(s.r2) && isnan(s.mape) && isnan(s.mae));
}

TEST(test_summary_is_mean_and_sd_over_folds)
{
	const struct score fold[] = { { 1.0, 0.5, 0.1, 3.0, 0 },
				      { 2.0, 0.7, 0.3, 3.0, 0 },
				      { 6.0, 0.9, 0.2, 3.0, 0 } };
	struct score_summary s = score_summarise(fold, 3);

	assert_int_equal(s.n_folds, 3);
	close_to(s.mean.mse, 3.0, CLOSE);
	close_to(s.sd.mse, sqrt(7.0), CLOSE); /* (4 + 1 + 9) / 2 */
	close_to(s.mean.r2, 0.7, CLOSE);
	close_to(s.sd.r2, 0.2, CLOSE);
	close_to(s.mean.mape, 0.2, CLOSE);
	close_to(s.sd.mae, 0.0, CLOSE);
}

TEST(test_summary_leaves_out_folds_without_the_measure)
{
	const struct score fold[] = { { 1.0, NAN, 0.1, 1.0, 0 },
				      { 3.0, 0.5, 0.1, 1.0, 0 },
				      { 2.0, NAN, 0.1, 1.0, 0 } };
	struct score_summary s = score_summarise(fold, 3), one = score_summarise(fold, 1);

	close_to(s.mean.mse, 2.0, CLOSE);
	assert_true(s.mean.r2 == 0.5 && s.sd.r2 == 0.0);
	assert_true(one.mean.mse == 1.0 && one.sd.mse == 0.0);
	assert_true(isnan(one.mean.r2) && isnan(one.sd.r2));
}
