/* The disk is full: the daemon says so, takes nothing it cannot keep, and goes on where it was once there is
 * room. A small file system of its own is filled up, for which root is needed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/daemon/harness.h"
#include "tests/support/test.h"

#define MAX_JOBS 2000

static struct fixture fixture;
static bool mounted;

static int open_small(void **state)
{
	(void)state;
	fixture_open(&fixture);
	fixture_configure(&fixture, "\"slots\":2,\"kill_grace_s\":1,", "");
	mounted = false;
	if (mkdir(fixture.state, 0711) || mount("tmpfs", fixture.state, "tmpfs", 0, "size=4m,mode=0711")) {
		printf("skipped: no small file system can be mounted: %s\n", strerror(errno));
		return 0;
	}
	mounted = true;
	return 0;
}

static int close_small(void **state)
{
	(void)state;
	fixture_close(&fixture);
	if (mounted)
		umount2(fixture.state, MNT_DETACH);
	return 0;
}

static void filler(char out[160])
{
	snprintf(out, 160, "%s/filler", fixture.state);
}

static void fill_up(void)
{
	static const char block[4096];
	size_t step = sizeof block;
	char path[160];
	int fd;

	filler(path);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	while (step > 0) {
		if (write(fd, block, step) != (ssize_t)step)
			step /= 2;
	}
	close(fd);
}

static void make_room(void)
{
	char path[160];

	filler(path);
	assert_int_equal(unlink(path), 0);
}

/* Submits until the storage fails; the ids that were acknowledged. The connection of the one that met the
 * failure waits for its answer: *out_pending. */
static size_t submit_until_failed(uint64_t *id, struct talk **out_pending)
{
	struct talk *t = talk_open(&fixture);
	unsigned tries = 0;

	*out_pending = NULL;
	for (size_t n = 0; n < MAX_JOBS;) {
		struct json *v;

		assert_true(talk_say(
			t,
			"{\"op\":\"submit\",\"type\":\"line\",\"key\":\"k%u\",\"params\":{\"seconds\":0.1}}",
			tries++));
		v = talk_hear_json(t, 2.0);
		if (!v) {
			assert_null(*out_pending); /* only the first can be caught half-way */
			*out_pending = t;
			t = talk_open(&fixture);
			continue;
		}
		if (is_ok(v)) {
			id[n++] = strtoull(text_at(v, "job.job"), NULL, 10);
			json_free(v);
			continue;
		}
		assert_string_equal(error_of(v), "storage_failed");
		json_free(v);
		talk_close(t);
		return n;
	}
	fail_msg("%d jobs were acknowledged by a daemon whose disk is full", MAX_JOBS);
	return 0;
}

static void await_event(struct talk *t, const char *event)
{
	double until = now_s() + PATIENCE_S;

	while (now_s() < until) {
		struct json *v = talk_hear_json(t, PATIENCE_S);
		bool found;

		assert_non_null(v);
		found = !strcmp(text_at(v, "event"), event);
		json_free(v);
		if (found)
			return;
	}
	fail_msg("no event '%s'", event);
}

static void check_jobs(const uint64_t *id, size_t n)
{
	struct talk *t = talk_open(&fixture);

	await_idle(t, PATIENCE_S);
	for (size_t i = 0; i < n; i++) {
		struct json *v =
			talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)id[i]);
		const char *state = text_at(v, "job.state");
		char name[24];

		snprintf(name, sizeof name, "%llu", (unsigned long long)id[i]);
		/* One that was started on the full disk may not have got its folder; it must say so. */
		if (!strcmp(state, "done"))
			assert_int_equal(fixture_runs(&fixture, 'E', name), 1);
		else if (strcmp(state, "failed") || !text_at(v, "job.reason")[0])
			fail_msg("job %s is '%s' (%s)", name, state, text_at(v, "job.reason"));
		assert_true(fixture_runs(&fixture, 'B', name) <= 1);
		json_free(v);
	}
	talk_close(t);
}

TEST_WITH(test_a_full_disk_refuses_jobs_and_loses_none, open_small, close_small)
{
	static uint64_t id[MAX_JOBS + 1];
	const char *submit_one[] = {
		program("postrider"), "submit", "line", "--socket", fixture.socket, NULL
	};
	struct talk *watcher, *t, *pending;
	uint64_t running;
	struct json *v;
	char *count;
	size_t n;

	if (!mounted)
		skip();
	fixture_start(&fixture);
	t = talk_open(&fixture);
	watcher = talk_open(&fixture);
	json_free(talk_ask(watcher, "{\"op\":\"watch\"}"));
	running = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":3}");
	json_free(await(t, running, "running"));
	while (fixture_runs(&fixture, 'B', "1") == 0)
		sleep_s(0.01);
	fill_up();
	n = submit_until_failed(id, &pending);
	await_event(watcher, "storage_failed");
	assert_int_equal(run_program(submit_one, NULL), 8);
	v = talk_ask(t, "{\"op\":\"stats\"}"); /* questions are answered */
	assert_true(json_bool(json_get(json_get(v, "store"), "failed"), false));
	json_free(v);
	while (fixture_runs(&fixture, 'E', "1") == 0) /* what runs goes on */
		sleep_s(0.05);
	make_room();
	await_event(watcher, "storage_repaired");
	if (pending) {
		v = talk_hear_json(pending, PATIENCE_S);
		assert_non_null(v);
		if (is_ok(v))
			id[n++] = strtoull(text_at(v, "job.job"), NULL, 10);
		json_free(v);
		talk_close(pending);
	}
	json_free(await(t, running, "done"));
	id[n++] = submit(t, ",\"type\":\"line\"");
	assert_true(id[n - 1] > 0);
	check_jobs(id, n);
	talk_close(t);
	talk_close(watcher);
	fixture_stop(&fixture, SIGKILL);
	fixture_start(&fixture);
	check_jobs(id, n);
	assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	count = ask_database(&fixture, "PRAGMA integrity_check");
	assert_string_equal(count, "ok");
	free(count);
}

TEST_WITH(test_a_job_can_be_cancelled_while_the_disk_is_full, open_small, close_small)
{
	static uint64_t id[MAX_JOBS + 1];
	struct talk *t, *pending;
	uint64_t running;
	struct json *v;
	pid_t pid;

	if (!mounted)
		skip();
	fixture_start(&fixture);
	t = talk_open(&fixture);
	running = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":60}");
	v = await(t, running, "running");
	while (!(number_at(v, "job.pid") > 1.0)) {
		json_free(v);
		sleep_s(0.01);
		v = await(t, running, "running");
	}
	pid = (pid_t)number_at(v, "job.pid");
	json_free(v);
	fill_up();
	submit_until_failed(id, &pending);
	talk_say(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)running);
	for (double until = now_s() + 10.0; kill(pid, 0) == 0;) {
		assert_true(now_s() < until); /* the user's way to stop what fills the disk */
		sleep_s(0.02);
	}
	make_room();
	v = talk_hear_json(t, PATIENCE_S);
	assert_non_null(v);
	assert_true(is_ok(v));
	json_free(v);
	json_free(await(t, running, "cancelled"));
	talk_close(t);
	talk_close(pending);
}

TEST_WITH(test_a_daemon_that_dies_on_a_full_disk_comes_back_with_every_job, open_small, close_small)
{
	static uint64_t id[MAX_JOBS + 1];
	struct talk *pending, *t;
	uint64_t running;
	size_t n;

	if (!mounted)
		skip();
	fixture_start(&fixture);
	t = talk_open(&fixture);
	running = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":2}");
	json_free(await(t, running, "running"));
	while (fixture_runs(&fixture, 'B', "1") == 0)
		sleep_s(0.01);
	talk_close(t);
	fill_up();
	n = submit_until_failed(id, &pending);
	talk_close(pending);
	fixture_stop(&fixture, SIGKILL);
	/* Whether it starts without room for a single write or refuses to, it must not harm anything. */
	fixture_spawn(&fixture);
	if (fixture_greeted(&fixture, 5.0))
		fixture_stop(&fixture, SIGTERM);
	else if (fixture.pid > 0)
		fixture_stop(&fixture, SIGKILL);
	make_room();
	fixture_start(&fixture);
	id[n++] = running;
	check_jobs(id, n);
}
