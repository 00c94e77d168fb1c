/* What the daemon says and does rests on what is on the disk: a library loaded into it keeps the files as
 * they were last synced (preload/disk_image.c). Nothing is answered, and no job is started, before the copy
 * has it; after a power cut the copy is all there is. */
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/daemon/harness.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static struct fixture fixture;
static char disk[104];

static int open_traced(void **state)
{
	char now[160];

	(void)state;
	fixture_open(&fixture);
	snprintf(disk, sizeof disk, "%s/disk", fixture.dir);
	snprintf(now, sizeof now, "%s/now", disk);
	if (mkdir(disk, 0700) || mkdir(now, 0700))
		die("cannot make %s", now);
	return 0;
}

static int close_traced(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
}

static void start_traced(const char *settings)
{
	const char *build = getenv("BUILD_DIR");
	char library[512];

	if (sanitized())
		skip(); /* a sanitizer's own library has to be the first to load */
	fixture_configure(&fixture, settings, "");
	snprintf(library, sizeof library, "%s/tests/daemon/disk_image.so", build ? build : "build/plain");
	if (access(library, R_OK))
		die("%s is not there", library);
	setenv("LD_PRELOAD", library, 1);
	setenv("POSTRIDER_DISK", disk, 1);
	fixture_start(&fixture);
	unsetenv("LD_PRELOAD");
	unsetenv("POSTRIDER_DISK");
}

/* The first value that a copy of the disk gives. */
static void assert_on_disk(const char *copy, const char *want, const char *sql, uint64_t job)
{
	struct fixture image = fixture;
	char query[200], *found;

	snprintf(image.state, sizeof image.state, "%s/%.20s", disk, copy);
	snprintf(query, sizeof query, sql, (unsigned long long)job);
	found = ask_database(&image, query);
	if (strcmp(found, want))
		fail_msg("%s, of job %llu in the copy '%s': '%s' instead of '%s'", sql,
			 (unsigned long long)job, copy, found, want);
	free(found);
}

/* The daemon and the power go at the same moment: it comes back with what was synced. */
static void cut_power(void)
{
	static const char *const file[] = { "postrider.db", "postrider.db-wal", "postrider.db-shm" };
	char from[200], to[200];

	if (fixture.pid)
		fixture_stop(&fixture, SIGKILL);
	for (size_t i = 0; i < 3; i++) {
		snprintf(from, sizeof from, "%s/now/%s", disk, file[i]);
		snprintf(to, sizeof to, "%s/%s", fixture.state, file[i]);
		unlink(to);
		if (rename(from, to) && i == 0)
			die("%s: nothing was ever synced", from);
	}
	fixture_start(&fixture);
}

TEST_WITH(test_a_job_starts_only_when_the_disk_knows_that_it_runs, open_traced, close_traced)
{
	struct talk *t;

	start_traced("\"slots\":1,");
	t = talk_open(&fixture);
	for (int i = 1; i <= 4; i++) { /* the second of a pair waits for the end of the first */
		uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":0.2}");

		assert_int_equal(job, i);
		if (i % 2 == 0)
			json_free(await(t, job, "done"));
	}
	for (int i = 1; i <= 4; i++) {
		char copy[32];

		snprintf(copy, sizeof copy, "spawn-%d", i);
		assert_on_disk(copy, "running", "SELECT state FROM jobs WHERE id=%llu", (uint64_t)i);
		assert_on_disk(copy, "1", "SELECT started_ns > 0 FROM jobs WHERE id=%llu", (uint64_t)i);
		assert_on_disk(copy, "1", "SELECT count(*) FROM decisions WHERE job=%llu AND moment='start'",
			       (uint64_t)i);
		if (i % 2 == 0) /* what ended before it has its slot is on the disk as well */
			assert_on_disk(copy, "done", "SELECT state FROM jobs WHERE id=%llu", (uint64_t)i - 1);
	}
	talk_close(t);
}

TEST_WITH(test_an_answered_submit_survives_a_power_cut, open_traced, close_traced)
{
	struct talk *t;
	uint64_t job;

	start_traced("\"slots\":1,");
	t = talk_open(&fixture);
	assert_true(submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":30}") == 1);
	job = submit(t, ",\"type\":\"line\",\"key\":\"once\"");
	fixture_stop(&fixture, SIGKILL);
	talk_close(t);
	assert_on_disk("now", "queued", "SELECT state FROM jobs WHERE id=%llu", job);
	assert_on_disk("now", "1", "SELECT count(*) FROM decisions WHERE job=%llu", job);
	cut_power();
	t = talk_open(&fixture);
	assert_true(submit(t, ",\"type\":\"line\",\"key\":\"once\"") == job);
	talk_close(t);
}

/* Until the job has a process, and all that was said of its start is on the disk. */
static void await_running(struct talk *t, uint64_t job)
{
	struct json *v = await(t, job, "running");

	while (!(number_at(v, "job.pid") > 1.0)) {
		json_free(v);
		sleep_s(0.01);
		v = await(t, job, "running");
	}
	json_free(v);
	sleep_s(0.2);
}

static void cancel(struct talk *t, uint64_t job)
{
	struct json *v = talk_ask(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)job);

	assert_true(is_ok(v));
	json_free(v);
}

static size_t begun(uint64_t job)
{
	char id[24];

	snprintf(id, sizeof id, "%llu", (unsigned long long)job);
	return fixture_runs(&fixture, 'B', id);
}

static void await_begun(uint64_t job, size_t n)
{
	for (double give_up = now_s() + PATIENCE_S; begun(job) < n; sleep_s(0.01))
		if (now_s() > give_up)
			die("job %llu did not run", (unsigned long long)job);
}

/* Waits until the copy, of which a part may be missing at first, says so; false: it never does. */
static bool becomes_on_disk(const char *want, const char *sql, double patience_s)
{
	char path[200];
	bool is = false;

	snprintf(path, sizeof path, "%s/now/postrider.db", disk);
	for (double give_up = now_s() + patience_s; !is && now_s() < give_up; sleep_s(0.01)) {
		sqlite3_stmt *st = NULL;
		sqlite3 *db = NULL;

		is = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
		     sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
		     sqlite3_step(st) == SQLITE_ROW &&
		     !strcmp((const char *)sqlite3_column_text(st, 0), want);
		sqlite3_finalize(st);
		sqlite3_close(db);
	}
	return is;
}

/* With `interval` the disk is behind: it calls jobs queued that have run, and does not know others at all,
 * whose numbers come again. A job that ran has a record, and does not run again; its number is another job's
 * now, and that one does run. */
TEST_WITH(test_with_an_interval_a_power_cut_makes_nothing_run_twice, open_traced, close_traced)
{
	struct talk *t;
	uint64_t first, second, third;

	start_traced("\"slots\":1,\"durability\":\"interval\",\"durability_interval_s\":3,");
	t = talk_open(&fixture);
	first = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":5}");
	second = submit(t, ",\"type\":\"line\"");
	if (!becomes_on_disk("queued", "SELECT state FROM jobs WHERE id=2", PATIENCE_S))
		die("the second job is not on the disk");
	json_free(await(t, second, "done"));
	third = submit(t, ",\"type\":\"line\""); /* it ran, and the disk has never heard of it */
	json_free(await(t, third, "done"));
	fixture_stop(&fixture, SIGKILL);
	talk_close(t);
	if (!becomes_on_disk("queued", "SELECT state FROM jobs WHERE id=2", 0.1) ||
	    !becomes_on_disk("0", "SELECT count(*) FROM jobs WHERE id=3", 0.1)) {
		printf("skipped: the machine was too slow, and the disk was synced meanwhile\n");
		skip();
	}
	assert_true(begun(first) == 1 && begun(second) == 1 && begun(third) == 1);
	cut_power();
	t = talk_open(&fixture);
	json_free(await(t, first, "done"));
	json_free(await(t, second, "done")); /* by its record */
	assert_int_equal(submit(t, ",\"type\":\"line\""), third); /* the number comes again */
	json_free(await(t, third, "done"));
	await_begun(third, 2);
	assert_true(begun(first) == 1 && begun(second) == 1 && begun(third) == 2);
	talk_close(t);
}

TEST_WITH(test_an_answered_cancel_of_a_running_job_survives_a_power_cut, open_traced, close_traced)
{
	struct talk *t;
	uint64_t job;

	start_traced("\"slots\":1,\"kill_grace_s\":20,");
	t = talk_open(&fixture);
	job = submit(t, ",\"type\":\"stubborn\"");
	await_running(t, job);
	cancel(t, job);
	fixture_stop(&fixture, SIGKILL);
	talk_close(t);
	assert_on_disk("now", "cancelled", "SELECT reason FROM jobs WHERE id=%llu", job);
	cut_power();
	t = talk_open(&fixture);
	json_free(await(t, job, "cancelled"));
	talk_close(t);
}

TEST_WITH(test_an_answered_cancel_of_a_waiting_job_survives_a_power_cut, open_traced, close_traced)
{
	struct talk *t;
	uint64_t first, job;

	start_traced("\"slots\":1,");
	t = talk_open(&fixture);
	first = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":30}");
	job = submit(t, ",\"type\":\"line\"");
	await_running(t, first);
	cancel(t, job);
	fixture_stop(&fixture, SIGKILL);
	talk_close(t);
	assert_on_disk("now", "cancelled", "SELECT state FROM jobs WHERE id=%llu", job);
	cut_power();
	assert_int_equal(fixture_runs(&fixture, 'B', "2"), 0);
}
