/* scheduler/core/outcome.h: what every figure about promises, bounds and errors rests on. */
#include "tests/support/test.h"

#include "scheduler/core/outcome.h"

TEST(an_objective_is_met_up_to_the_very_moment)
{
	assert_true(outcome_met(true, 2.37, 2.37));
	assert_true(outcome_met(true, 2.36, 2.37));
	assert_false(outcome_met(true, 2.38, 2.37));
}

TEST(a_job_without_a_result_has_missed_its_objective)
{
	assert_false(outcome_met(false, 1.0, 2.37));
}

TEST(a_time_that_is_not_known_meets_nothing)
{
	assert_false(outcome_met(true, NAN, 2.37));
	assert_false(outcome_met(true, 1.0, NAN));
}

TEST(coverage_counts_run_times_within_their_bound)
{
	bool within = false;

	assert_true(outcome_bounded(2.37, 2.37, &within));
	assert_true(within);
	assert_true(outcome_bounded(2.38, 2.37, &within));
	assert_false(within);
}

TEST(coverage_leaves_out_jobs_without_a_bound_or_a_time)
{
	bool within;

	assert_false(outcome_bounded(2.37, NAN, &within));
	assert_false(outcome_bounded(2.37, INFINITY, &within));
	assert_false(outcome_bounded(NAN, 2.37, &within));
}

TEST(the_error_is_relative_to_what_happened)
{
	assert_true(fabs(outcome_error(8.0, 10.0) - 0.2) < 1e-15);
	assert_true(fabs(outcome_error(12.0, 10.0) - 0.2) < 1e-15);
	assert_true(fabs(outcome_error(10.0, 8.0) - 0.25) <
		    1e-15); /* not symmetric: the actual time divides */
}

TEST(there_is_no_error_without_a_time)
{
	assert_true(isnan(outcome_error(8.0, 0.0)));
	assert_true(isnan(outcome_error(8.0, -1.0)));
	assert_true(isnan(outcome_error(NAN, 8.0)));
}
