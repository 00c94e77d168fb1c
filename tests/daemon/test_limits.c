/* One user cannot harm another: the queue, slots and memory have limits for each user, and a newcomer finds a
 * place. Needs root, to be several users. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/daemon/hostile.h"
#include "tests/support/test.h"

#define ADVISED ",\"type\":\"advised\",\"mode\":\"advise\""
#define FIRST_UID 70001

static struct health d;

static void start(const char *settings)
{
	if (geteuid()) {
		printf("skipped: needs root, to be other users\n");
		skip();
	}
	health_start(&d, NULL, settings);
}

static int stop(void **state)
{
	(void)state;
	if (d.fixture.pid > 0)
		health_stop(&d);
	return 0;
}

/* A connection of another user: the kernel takes down who connects. */
static struct talk *open_as(uid_t uid)
{
	struct talk *t;

	if (seteuid(uid))
		die("cannot be uid %u: %s", (unsigned)uid, strerror(errno));
	t = talk_open(&d.fixture);
	if (seteuid(0))
		die("cannot be root again: %s", strerror(errno));
	return t;
}

/* How many jobs are taken before the first is refused, and with which code. */
static int submit_until_refused(struct talk *t, int most, char code[64])
{
	int n = 0;

	code[0] = 0;
	for (; n < most && !code[0]; n++) {
		struct json *v = talk_ask(t, "{\"op\":\"submit\"" ADVISED "}");

		snprintf(code, 64, "%s", error_of(v));
		json_free(v);
	}
	return code[0] ? n - 1 : n;
}

TEST_WITH(test_one_user_cannot_fill_the_queue, NULL, stop)
{
	struct talk *user[4], *root;
	char code[64];
	int taken[4];

	start("\"slots\":1,\"max_queued\":40,\"max_unstarted_cpus_per_uid\":1,");
	for (uid_t i = 0; i < 4; i++) {
		user[i] = open_as(FIRST_UID + i);
		taken[i] = submit_until_refused(user[i], 100, code);
		assert_string_equal(code, "queue_full");
	}
	/* Half of what the ones before have left, each time; the first has a slot in addition, and it starts
	 * as a job whose turn has come, which does not wait in the scheduler's queue. */
	assert_in_range(taken[0], 20, 21);
	assert_in_range(taken[1], 9, 11);
	assert_in_range(taken[2], 4, 6);
	assert_in_range(taken[3], 2, 3);
	root = talk_open(&d.fixture); /* admins may have all that is left, and it is not nothing */
	assert_true(submit_until_refused(root, 100, code) >= 2);
	for (int i = 0; i < 4; i++)
		talk_close(user[i]);
	talk_close(root);
}

TEST_WITH(test_a_limit_of_queued_jobs_is_told, NULL, stop)
{
	struct talk *t;
	struct json *v;
	char code[64];

	start("\"slots\":1,\"max_queued\":100,\"max_queued_per_uid\":7,");
	t = open_as(FIRST_UID);
	assert_in_range(submit_until_refused(t, 100, code), 7, 8);
	v = talk_ask(t, "{\"op\":\"submit\"" ADVISED "}");
	assert_non_null(strstr(text_at(v, "error.message"), "as many as one user may"));
	json_free(v);
	v = talk_ask(t, "{\"op\":\"list\",\"state\":\"queued\",\"mine\":true,\"limit\":1}");
	json_free(talk_ask(t, "{\"op\":\"cancel\",\"job\":\"%s\"}",
			   json_string(json_get(json_first(json_get(v, "jobs")), "job"), "")));
	json_free(v);
	assert_int_equal(submit_until_refused(t, 100, code), 1); /* the place is free again */
	talk_close(t);
}

/* How long a turn of the loop took at most while 10,000 tenants came and were listed. */
static double busiest_ms(void)
{
	const uid_t tenants = (uid_t)effort(10000);
	struct talk *root;
	double busy_ms;

	start("\"slots\":1,\"max_queued\":1000000,\"durability\":\"none\",");
	for (uid_t i = 0; i < tenants; i++) {
		struct talk *t = open_as(FIRST_UID + i);

		assert_true(submit(t, ADVISED) > 0);
		talk_close(t);
	}
	root = talk_open(&d.fixture);
	for (int i = 0; i < 20; i++) {
		struct json *v = talk_ask(root, "{\"op\":\"stats\"}");

		assert_true(json_size(json_get(v, "tenants")) >= tenants);
		json_free(v);
	}
	busy_ms = stat_of(root, "loop.max_busy_ms");
	printf("stats of %u tenants: the loop was busy for %.2f ms at most\n", tenants, busy_ms);
	talk_close(root);
	return busy_ms;
}

/* Every user is a tenant of its own, so strangers can make as many as they like. A machine that stands still
 * for a moment shows in the longest of some ten thousand turns, so the quietest of three tries counts. */
TEST_WITH(test_stats_of_ten_thousand_tenants_do_not_hold_the_loop, NULL, stop)
{
	double busy_ms = busiest_ms();

	for (int i = 0; i < 2 && busy_ms >= 5.0 && !sanitized(); i++) {
		stop(NULL);
		busy_ms = fmin(busy_ms, busiest_ms());
	}
	assert_true(busy_ms < 5.0 || sanitized());
}

static const char *code_of(struct talk *t, uint64_t job)
{
	static char code[64];
	struct json *v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);

	snprintf(code, sizeof code, "%s", text_at(v, "job.waiting.code"));
	if (!strcmp(code, ""))
		snprintf(code, sizeof code, "%s", text_at(v, "job.state"));
	json_free(v);
	return code;
}

static void await_code(struct talk *t, uint64_t job, const char *code)
{
	double until = now_s() + PATIENCE_S;

	while (strcmp(code_of(t, job), code)) {
		if (now_s() > until)
			die("job %llu is %s, not %s", (unsigned long long)job, code_of(t, job), code);
		sleep_s(0.02);
	}
}

TEST_WITH(test_jobs_that_are_never_started_do_not_hold_all_slots, NULL, stop)
{
	struct talk *slow, *other;
	uint64_t job[6], theirs;

	start("\"slots\":4,\"advise_timeout_s\":600,");
	slow = open_as(FIRST_UID);
	other = open_as(FIRST_UID + 1);
	for (int i = 0; i < 6; i++)
		job[i] = submit(slow, ADVISED);
	await_code(slow, job[0], "owner"); /* it may start */
	await_code(slow, job[1], "owner");
	await_code(slow, job[2], "unstarted");
	json_free(talk_ask(other, "{\"op\":\"submit\"" ADVISED ",\"dry_run\":true}"));
	json_free(talk_ask(other, "{\"op\":\"predict\",\"type\":\"advised\"}")); /* says no mode */
	theirs = submit(other, ADVISED);
	await_code(other, theirs, "owner"); /* though the others were first */
	json_free(talk_ask(slow, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job[0]));
	await_code(slow, job[2], "owner"); /* who starts them gets the slots */
	talk_close(slow);
	talk_close(other);
}

TEST_WITH(test_the_turn_of_an_advised_job_expires, NULL, stop)
{
	struct talk *slow, *other;
	uint64_t job, theirs;

	start("\"slots\":1,\"advise_timeout_s\":1,");
	slow = open_as(FIRST_UID);
	other = open_as(FIRST_UID + 1);
	job = submit(slow, ADVISED);
	await_code(slow, job, "owner");
	theirs = submit(other, ADVISED);
	await_code(slow, job, "lost");
	await_code(other, theirs, "owner");
	talk_close(slow);
	talk_close(other);
}

/* Answers that are asked for and not read: 2,000 such connections once cost 980 MB. */
TEST_WITH(test_unread_answers_cost_little_memory, NULL, stop)
{
	enum { CONNECTIONS = 400, LISTS = 20 };
	struct talk *t[CONNECTIONS], *other;
	double before, grown;
	struct json *v;

	start("\"slots\":1,\"max_output_bytes_per_uid\":4194304,");
	t[0] = talk_open(&d.fixture);
	for (int i = 0; i < 1000; i++)
		assert_true(submit(t[0], ADVISED) > 0);
	talk_close(t[0]);
	before = rss_mb(d.fixture.pid);
	for (int i = 0; i < CONNECTIONS; i++) {
		t[i] = open_as(FIRST_UID);
		for (int k = 0; k < LISTS; k++)
			assert_true(talk_say(t[i], "{\"op\":\"list\",\"limit\":1000}"));
	}
	other = open_as(FIRST_UID + 1);
	v = talk_ask(other, "{\"op\":\"list\",\"limit\":1000}"); /* and others are served */
	assert_int_equal(json_size(json_get(v, "jobs")), 1000);
	json_free(v);
	grown = rss_mb(d.fixture.pid) - before;
	printf("# %d connections with %d unread lists of 1,000 jobs each: %.1f MB\n", CONNECTIONS, LISTS,
	       grown);
	if (!sanitized() && grown > 24.0)
		die("unread answers cost %.1f MB", grown);
	v = talk_hear_json(t[7], PATIENCE_S); /* one of them reads now, and gets a whole list */
	assert_int_equal(json_size(json_get(v, "jobs")), 1000);
	json_free(v);
	for (int i = 0; i < CONNECTIONS; i++)
		talk_close(t[i]);
	talk_close(other);
}
