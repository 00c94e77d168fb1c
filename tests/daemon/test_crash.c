/* The daemon is killed, and nothing is lost: the drills of tests/daemon/drills.c in short. */
#include <stdio.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/daemon/drills.h"

static const struct drill *short_one(bool model)
{
	static struct drill d;

	d = (struct drill){ .model = model, .seed = 7, .to = stdout };
	return &d;
}

static void test_kill_9_under_load_loses_no_job_and_runs_none_twice(void **state)
{
	(void)state;
	assert_int_equal(drill_kills(short_one(true), 15), 0);
}

static void test_sigterm_and_sighup_under_load_harm_no_job(void **state)
{
	(void)state;
	assert_int_equal(drill_signals(short_one(false), 6), 0);
}

static void test_a_start_with_ten_thousand_jobs_takes_less_than_a_second(void **state)
{
	(void)state;
	assert_int_equal(drill_startup(short_one(false), 10000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kill_9_under_load_loses_no_job_and_runs_none_twice),
		cmocka_unit_test(test_sigterm_and_sighup_under_load_harm_no_job),
		cmocka_unit_test(test_a_start_with_ten_thousand_jobs_takes_less_than_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
