/* Numbers of jobs come again when the database is gone, restored from a copy, or loses its last commits to a
 * power cut. A record belongs to one job for good: what runs, runs once, by marks that the jobs leave. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/daemon/one_daemon.h"
#include "tests/support/test.h"

static void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *fmt, ...)
{
	char command[1000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static size_t runs(char mark, uint64_t job)
{
	char name[24];

	snprintf(name, sizeof name, "%llu", (unsigned long long)job);
	return fixture_runs(&fixture, mark, name);
}

/* How many files of the folder of jobs end like this. */
static size_t files(const char *end)
{
	char path[200];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof path, "%s/jobs", fixture.state);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		n += len > strlen(end) && !strcmp(e->d_name + len - strlen(end), end);
	}
	closedir(d);
	return n;
}

static void run_three(size_t before)
{
	for (uint64_t i = 1; i <= 3; i++) {
		uint64_t job = submit(t, ",\"type\":\"line\"");

		assert_int_equal(job, i);
		json_free(await(t, job, "done"));
		assert_int_equal(runs('B', job), before + 1);
		assert_int_equal(runs('E', job), before + 1);
	}
	assert_int_equal(files(".exit"), 3 * (before + 1));
}

TEST_WITH(test_jobs_run_again_after_the_database_is_gone, open_two_slots, close_one)
{
	run_three(0);
	leave(SIGTERM);
	shell("rm %s/postrider.db*", fixture.state);
	come_back();
	run_three(1); /* the numbers are the same, the jobs are not */
	/* What the earlier jobs have written is kept beside. */
	assert_int_equal(files(".old-1"), 3);
	leave(SIGKILL);
	shell("rm %s/postrider.db*", fixture.state);
	come_back();
	run_three(2);
	assert_int_equal(files(".old-2"), 3);
}

TEST_WITH(test_jobs_run_after_the_database_is_restored_from_a_copy, open_two_slots, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\"");

	json_free(await(t, job, "done"));
	leave(SIGTERM);
	shell("cp %s/postrider.db %s/copy", fixture.state, fixture.state);
	come_back();
	assert_int_equal(submit(t, ",\"type\":\"line\""), 2);
	json_free(await(t, 2, "done"));
	leave(SIGTERM);
	shell("rm -f %s/postrider.db-*; cp %s/copy %s/postrider.db", fixture.state, fixture.state,
	      fixture.state);
	come_back();
	assert_int_equal(submit(t, ",\"type\":\"line\""), 2);
	json_free(await(t, 2, "done"));
	assert_int_equal(runs('E', 1), 1); /* it is done, and stays so */
	assert_int_equal(runs('E', 2), 2);
}

/* The database goes while a job runs. Its supervisor writes its record all the same, and the next job of that
 * number must not take it for its own. */
TEST_WITH(test_a_job_that_runs_on_does_not_end_another, open_two_slots, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":2}");
	double until = now_s() + PATIENCE_S;
	struct json *v;

	while (!runs('B', job) && now_s() < until)
		sleep_s(0.01);
	leave(SIGKILL);
	shell("rm %s/postrider.db*", fixture.state);
	come_back();
	assert_int_equal(submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":4}"), job);
	while (files(".exit") == 0 && now_s() < until)
		sleep_s(0.05); /* the first has ended */
	v = await(t, job, "running");
	json_free(v);
	v = await(t, job, "done");
	assert_true(number_at(v, "job.run_s") >= 3.9);
	json_free(v);
	assert_int_equal(runs('E', job), 2);
}

/* Records as older versions wrote them bear no identity: no job of today takes them for its own. */
TEST_WITH(test_an_old_record_is_nobodys, open_two_slots, close_one)
{
	shell("printf 'postrider-exit 1\\nstarted 1 1\\nended 2 2\\nstatus exit 0\\ntimed_out 0\\nstopped "
	      "0\\n"
	      "max_rss_kb 1\\ncpu_us 1\\nreason -\\nnote -\\nend\\n' >%s/jobs/1.exit",
	      fixture.state);
	assert_int_equal(submit(t, ",\"type\":\"line\""), 1);
	json_free(await(t, 1, "done"));
	assert_int_equal(runs('B', 1), 1);
	assert_int_equal(runs('E', 1), 1);
}
