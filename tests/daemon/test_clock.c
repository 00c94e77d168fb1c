/* The wall clock is set by a day, forward and back, while a job runs, with the daemon there and away. Times
 * and outcomes are what they would have been. faketime (a Debian package) sets the clock of the daemon and of
 * its supervisors only; without it the tests are skipped. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/daemon/one_daemon.h"
#include "tests/support/test.h"

static char clock_file[128];

static const char *library(void)
{
	static const char *const at[] = { "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
					  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
					  "/usr/lib/faketime/libfaketime.so.1" };

	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
		if (!access(at[i], R_OK))
			return at[i];
	return NULL;
}

static void set_clock(const char *by)
{
	FILE *f = fopen(clock_file, "w");

	assert_non_null(f);
	fprintf(f, "%s\n", by);
	fclose(f);
}

static void come_back_faked(void)
{
	setenv("LD_PRELOAD", library(), 1);
	come_back();
	unsetenv("LD_PRELOAD"); /* of the daemon alone */
}

static int open_one(void **state)
{
	(void)state;
	if (!library() || sanitized())
		return 0;
	fixture_open(&fixture);
	snprintf(clock_file, sizeof clock_file, "%s/clock-set-by", fixture.dir);
	setenv("FAKETIME_TIMESTAMP_FILE", clock_file, 1);
	setenv("FAKETIME_NO_CACHE", "1", 1);
	setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
	setenv("DONT_FAKE_MONOTONIC", "1", 1);
	setenv("NO_FAKE_STAT", "1", 1);
	set_clock("+0");
	fixture_configure(&fixture, TWO_SLOTS, "");
	come_back_faked();
	return 0;
}

static int close_faked(void **state)
{
	if (!library() || sanitized())
		return 0;
	return close_one(state);
}

static void need_faketime(void)
{
	if (!library() || sanitized()) {
		printf("skipped: %s\n",
		       library() ? "a sanitizer wants to be the first library" : "faketime is not installed");
		skip();
	}
}

static uint64_t begin(double seconds)
{
	double until = now_s() + PATIENCE_S;
	char members[100], name[24];
	uint64_t job;

	snprintf(members, sizeof members, ",\"type\":\"line\",\"slo_s\":60,\"params\":{\"seconds\":%g}",
		 seconds);
	job = submit(t, members);
	snprintf(name, sizeof name, "%llu", (unsigned long long)job);
	while (!fixture_runs(&fixture, 'B', name) && now_s() < until)
		sleep_s(0.01);
	return job;
}

/* It took as long as it took, by our own monotonic clock. */
static void check(uint64_t job, double began_s, double seconds)
{
	struct json *v = await(t, job, "done");
	double most_s = now_s() - began_s;

	assert_true(number_at(v, "job.run_s") >= seconds - 0.01 &&
		    number_at(v, "job.run_s") <= most_s + 0.01);
	assert_true(number_at(v, "job.wait_s") >= 0.0 && number_at(v, "job.wait_s") <= most_s + 0.01);
	assert_true(number_at(v, "job.response_s") >= seconds - 0.01);
	assert_true(number_at(v, "job.response_s") <= most_s + 0.01);
	assert_string_equal(text_at(v, "job.slo_outcome"), "met");
	json_free(v);
}

TEST_WITH(test_a_clock_set_during_a_job_changes_nothing, open_one, close_faked)
{
	static const char *const by[] = { "+86400", "-86400", "+0" };

	need_faketime();
	for (size_t i = 0; i < 3; i++) {
		double began_s = now_s();
		uint64_t job = begin(1.0);

		set_clock(by[i]);
		check(job, began_s, 1.0);
	}
}

TEST_WITH(test_a_clock_set_while_the_daemon_is_away_changes_nothing, open_one, close_faked)
{
	static const char *const by[] = { "+86400", "-86400" };

	need_faketime();
	for (size_t i = 0; i < 2; i++) {
		double began_s = now_s();
		uint64_t job = begin(2.0), waits;

		begin(2.0); /* the other slot */
		waits = submit(t, ",\"type\":\"line\",\"slo_s\":60");
		leave(SIGKILL);
		set_clock(by[i]);
		come_back_faked();
		check(job, began_s, 2.0);
		check(waits, began_s, 0.0);
	}
}

/* Without jobs of this boot the time line begins anew at the wall clock, as people expect to see it. */
TEST_WITH(test_an_idle_daemon_takes_the_clock_as_it_is, open_one, close_faked)
{
	struct json *v;
	uint64_t job;
	char day[16];
	time_t then = time(NULL) - 5 * 86400;

	need_faketime();
	leave(SIGTERM);
	set_clock("-432000");
	come_back_faked();
	job = begin(0.0);
	v = await(t, job, "done");
	strftime(day, sizeof day, "%Y-%m-%dT%H", gmtime(&then));
	assert_true(!strncmp(text_at(v, "job.submitted_at"), day, strlen(day)) || then % 3600 > 3500 ||
		    then % 3600 < 100);
	json_free(v);
}
