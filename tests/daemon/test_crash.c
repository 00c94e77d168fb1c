/* The daemon is killed, and nothing is lost: the drills of tests/daemon/drills.c in short. */
#include <stdio.h>

#include "tests/daemon/drills.h"
#include "tests/support/test.h"

static const struct drill *short_one(bool model)
{
	static struct drill d;

	d = (struct drill){ .model = model, .seed = 7, .to = stdout };
	return &d;
}

TEST(test_kill_9_under_load_loses_no_job_and_runs_none_twice)
{
	assert_int_equal(drill_kills(short_one(true), 15), 0);
}

TEST(test_an_engine_that_is_away_and_lies_holds_no_job_of_the_machine)
{
	assert_int_equal(drill_engine(short_one(true), 3), 0);
}

TEST(test_sigterm_and_sighup_under_load_harm_no_job)
{
	assert_int_equal(drill_signals(short_one(false), 6), 0);
}

TEST(test_a_start_with_ten_thousand_jobs_takes_less_than_a_second)
{
	assert_int_equal(drill_startup(short_one(false), 10000), 0);
}
