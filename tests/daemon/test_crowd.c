/* Clients that are many, slow, silent or gone: the others are served, limits are told in words, and nothing
 * is left of them afterwards. POSTRIDER_TEST_CONNECTIONS: how many are held open (2,000). */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "tests/daemon/hostile.h"
#include "tests/support/test.h"

#define ADVISED ",\"type\":\"advised\",\"mode\":\"advise\""

static struct health d;

static void start(const char *settings)
{
	health_start(&d, NULL, settings);
}

static int stop(void **state)
{
	(void)state;
	if (d.fixture.pid > 0) /* not where the test was skipped */
		health_stop(&d);
	return 0;
}

static struct json *hear(struct talk *t)
{
	struct json *v = talk_hear_json(t, PATIENCE_S);

	if (!v)
		die("nothing came, or the connection has ended");
	return v;
}

/* The code that a new connection is turned away with; "": it was greeted. */
static const char *turned_away(void)
{
	static char code[64];
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char line[512] = "";
	struct json *v = NULL;
	ssize_t n;

	snprintf(at.sun_path, sizeof at.sun_path, "%.107s", d.fixture.socket);
	if (connect(fd, (struct sockaddr *)&at, sizeof at))
		die("%s: %s", d.fixture.socket, strerror(errno));
	n = read(fd, line, sizeof line - 1); /* one line, sent at once */
	if (n <= 0 || json_parse("first line", line, (size_t)n, &v, NULL))
		die("turned away with '%s'", line);
	snprintf(code, sizeof code, "%s", error_of(v));
	if (*code)
		assert_int_equal(read(fd, line, sizeof line), 0); /* and then the end */
	json_free(v);
	close(fd);
	return code;
}

/* The longest of `n` submissions, s. */
static double slowest_submit(struct talk *t, int n)
{
	double worst = 0.0;

	for (int i = 0; i < n; i++) {
		double began = now_s();

		assert_true(submit(t, ADVISED) > 0);
		worst = now_s() - began > worst ? now_s() - began : worst;
	}
	return worst;
}

/* ---- many ---- */

TEST_WITH(test_thousands_of_idle_connections_do_not_disturb, NULL, stop)
{
	const char *asked = getenv("POSTRIDER_TEST_CONNECTIONS");
	size_t n = asked && atoi(asked) > 0 ? (size_t)atoi(asked) : 2000, open;
	struct rlimit files;
	struct talk **held, *t;
	double began, connected_s, worst, grown;
	char settings[128];

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < n + 100) {
		n = files.rlim_cur - 100;
		printf("# the system allows %zu connections\n", n);
	}
	snprintf(settings, sizeof settings, "\"max_connections\":%zu,\"max_connections_per_uid\":%zu,",
		 n + 10, n + 10);
	start(settings);
	held = mem_calloc(n, sizeof *held);
	assert_non_null(held);
	began = now_s();
	for (open = 0; open < n; open++)
		held[open] = talk_open(&d.fixture);
	connected_s = now_s() - began;
	t = talk_open(&d.fixture);
	assert_true(stat_of(t, "connections") == (double)n + 1);
	worst = slowest_submit(t, 100);
	grown = rss_mb(d.fixture.pid) - d.rss_mb;
	printf("# %zu connections in %.2f s, %.1f MB; the slowest of 100 submits beside them %.1f ms\n", n,
	       connected_s, grown, 1e3 * worst);
	assert_true(sanitized() || grown < 8.0 + 0.004 * (double)n); /* 4 kB each: no buffers of their own */
	assert_true(worst < 2.0);
	for (size_t i = 0; i < n; i += n / 10) { /* any of them can still ask */
		struct json *v = talk_ask(held[i], "{\"op\":\"hello\"}");

		assert_true(is_ok(v));
		json_free(v);
	}
	for (size_t i = 0; i < n; i++)
		talk_close(held[i]);
	free(held);
	talk_close(t);
	health_check(&d, 8.0 + 0.004 * (double)n);
}

TEST_WITH(test_coming_and_going_leaves_nothing, NULL, stop)
{
	start("");
	for (int i = 0; i < 3000; i++) {
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		snprintf(at.sun_path, sizeof at.sun_path, "%.107s", d.fixture.socket);
		assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
		if (i % 3 == 1)
			(void)!send(fd, "{\"op\":\"hel", 10, MSG_NOSIGNAL); /* gone in the middle of a line */
		if (i % 3 == 2)
			(void)!send(fd, "{\"op\":\"stats\"}\n", 15,
				    MSG_NOSIGNAL); /* gone before the answer */
		close(fd);
	}
	health_check(&d, 16.0);
}

TEST_WITH(test_over_the_limit_a_connection_is_turned_away_in_words, NULL, stop)
{
	struct talk *t[4];

	start("\"max_connections\":4,\"max_connections_per_uid\":4,");
	for (int i = 0; i < 4; i++)
		t[i] = talk_open(&d.fixture);
	for (int i = 0; i < 50; i++)
		assert_string_equal(turned_away(), "too_many_connections");
	json_free(talk_ask(t[3], "{\"op\":\"hello\"}")); /* those inside are served */
	for (int i = 0; i < 4; i++)
		talk_close(t[i]);
	health_check(&d, 8.0);
	assert_string_equal(turned_away(), "");
}

TEST_WITH(test_one_user_cannot_take_all_connections, NULL, stop)
{
	struct talk *t[2];

	if (geteuid() != 0) {
		printf("skipped: needs root, to be another user\n");
		skip();
	}
	start("\"max_connections\":3,\"max_connections_per_uid\":2,");
	for (int i = 0; i < 2; i++)
		t[i] = talk_open(&d.fixture);
	assert_string_equal(turned_away(), "too_many_connections");
	assert_int_equal(seteuid(65534), 0); /* somebody else */
	assert_string_equal(turned_away(), "");
	assert_int_equal(seteuid(0), 0);
	talk_close(t[0]);
	talk_close(t[1]);
	health_check(&d, 8.0);
}

/* ---- silent, slow ---- */

TEST_WITH(test_the_silent_are_closed_and_those_who_watch_are_not, NULL, stop)
{
	struct talk *silent, *half, *watcher;
	struct json *v;

	start("\"idle_timeout_s\":0.4,");
	silent = talk_open(&d.fixture);
	half = talk_open(&d.fixture);
	watcher = talk_open(&d.fixture);
	json_free(talk_ask(watcher, "{\"op\":\"watch\"}"));
	assert_true(send_bytes(half, "{\"op\":", 6)); /* half a line is no request */
	v = hear(silent);
	assert_string_equal(error_of(v), "idle_timeout");
	json_free(v);
	assert_null(talk_hear(silent, PATIENCE_S));
	v = hear(half);
	assert_string_equal(error_of(v), "idle_timeout");
	json_free(v);
	sleep_s(0.8);
	v = talk_ask(watcher, "{\"op\":\"hello\"}");
	assert_true(is_ok(v));
	json_free(v);
	talk_close(silent);
	talk_close(half);
	talk_close(watcher);
	health_check(&d, 8.0);
}

TEST_WITH(test_a_slow_watcher_is_closed_while_others_are_served, NULL, stop)
{
	struct talk *slow, *busy, *quick;
	unsigned long long job;
	double worst = 0.0, grown = 0.0;
	size_t heard = 0;
	char last[64] = "";
	struct json *v;

	start("\"max_output_bytes\":65536,");
	slow = talk_open(&d.fixture);
	quick = talk_open(&d.fixture);
	busy = talk_open(&d.fixture);
	json_free(talk_ask(slow, "{\"op\":\"watch\"}"));
	json_free(talk_ask(quick, "{\"op\":\"watch\"}"));
	job = submit(busy, ADVISED);
	json_free(talk_ask(busy, "{\"op\":\"started\",\"job\":\"%llu\"}", job));
	for (int i = 0; i < 3000; i++) { /* an event each, about 1 kB: more than any socket holds */
		double began = now_s();

		v = talk_ask(busy, "{\"op\":\"progress\",\"job\":\"%llu\",\"done\":0.5}", job);
		assert_true(is_ok(v));
		json_free(v);
		worst = now_s() - began > worst ? now_s() - began : worst;
		do {
			v = hear(quick);
			heard += !strcmp(text_at(v, "event"), "progress");
			json_free(v);
		} while (heard <= (size_t)i);
		if (rss_mb(d.fixture.pid) - d.rss_mb > grown)
			grown = rss_mb(d.fixture.pid) - d.rss_mb;
	}
	assert_true(worst < 2.0);
	assert_true(sanitized() || grown < 8.0);
	while ((v = talk_hear_json(slow,
				   PATIENCE_S))) { /* what it was sent is whole, and ends with the reason */
		snprintf(last, sizeof last, "%s", error_of(v));
		json_free(v);
	}
	assert_string_equal(last, "slow_reader");
	printf("# the slowest of 3000 requests beside a slow watcher: %.1f ms\n", 1e3 * worst);
	talk_close(slow);
	talk_close(quick);
	talk_close(busy);
	health_check(&d, 8.0);
}

/* ---- gone ---- */

TEST_WITH(test_a_submit_whose_client_has_gone_is_kept, NULL, stop)
{
	enum { N = 50 };
	struct talk *t;
	struct json *v;

	start("");
	for (int i = 0; i < N;
	     i++) { /* the daemon reads the line, and nobody is there when the disk has it */
		t = talk_open(&d.fixture);
		assert_true(talk_say(t, "{\"op\":\"submit\"" ADVISED ",\"key\":\"gone-%d\",\"tag\":\"gone\"}",
				     i));
		talk_close(t);
	}
	t = talk_open(&d.fixture);
	for (int i = 0; i < N; i++) { /* a retry finds it, whether the answer was lost or not */
		v = talk_ask(t, "{\"op\":\"submit\"" ADVISED ",\"key\":\"gone-%d\"}", i);
		assert_true(json_bool(json_get(v, "duplicate"), false));
		assert_string_equal(text_at(v, "job.tag"), "gone");
		json_free(v);
	}
	v = talk_ask(t, "{\"op\":\"list\",\"limit\":1000}"); /* and the one of health_start() */
	assert_int_equal(json_size(json_get(v, "jobs")), N + 1);
	json_free(v);
	talk_close(t);
	fixture_stop(&d.fixture, SIGKILL); /* and they are on disk */
	fixture_start(&d.fixture);
	t = talk_open(&d.fixture);
	v = talk_ask(t, "{\"op\":\"list\",\"limit\":1000}");
	assert_int_equal(json_size(json_get(v, "jobs")), N + 1);
	json_free(v);
	talk_close(t);
}

TEST_WITH(test_clients_that_go_while_the_database_is_asked_leave_nothing, NULL, stop)
{
	struct talk *t;
	uint64_t job;

	start("");
	t = talk_open(&d.fixture);
	job = submit(t, ADVISED);
	talk_close(t);
	for (int i = 0; i < 300; i++) {
		t = talk_open(&d.fixture);
		for (int k = 0; k < 20; k++)
			assert_true(talk_say(t, "{\"op\":\"%s\",\"job\":\"%llu\"}",
					     k % 2 ? "explain" : "status", (unsigned long long)job));
		assert_true(talk_say(t, "{\"op\":\"list\"}"));
		talk_close(t);
	}
	health_check(&d, 16.0);
}

TEST_WITH(test_watchers_that_go_are_noticed_at_once, NULL, stop)
{
	struct talk *t[50], *half;
	struct json *v;
	double began;

	start("");
	for (int i = 0; i < 50; i++) {
		t[i] = talk_open(&d.fixture);
		json_free(talk_ask(t[i], "{\"op\":\"watch\"}"));
	}
	half = talk_open(&d.fixture);
	json_free(talk_ask(half, "{\"op\":\"watch\"}"));
	shutdown(talk_fd(half), SHUT_WR); /* has nothing more to ask, and listens on */
	for (int i = 0; i < 50; i++)
		talk_close(t[i]);
	began = now_s();
	while (count_fds(d.fixture.pid) > d.fds + 1) {
		assert_true(now_s() - began < 3.0); /* before the server would look for them by itself */
		sleep_s(0.01);
	}
	t[0] = talk_open(&d.fixture);
	assert_true(submit(t[0], ADVISED) > 0);
	v = hear(half);
	assert_string_equal(text_at(v, "event"), "submitted");
	json_free(v);
	talk_close(half);
	talk_close(t[0]);
	health_check(&d, 16.0);
}

/* More than the store's reader takes at a time. */
TEST_WITH(test_thousands_of_questions_wait_their_turn, NULL, stop)
{
	enum { CLIENTS = 60, QUESTIONS = 40 };
	struct talk *t[CLIENTS];
	double began;

	start("");
	for (int i = 0; i < CLIENTS; i++) {
		t[i] = talk_open(&d.fixture);
		assert_true(submit(t[i], ADVISED) > 0);
	}
	began = now_s();
	for (int i = 0; i < CLIENTS; i++) {
		char lines[QUESTIONS * 32];
		size_t len = 0;

		for (int k = 0; k < QUESTIONS; k++)
			len += (size_t)snprintf(lines + len, sizeof lines - len,
						"{\"op\":\"explain\",\"job\":\"%d\"}\n", 1 + k);
		assert_true(send_bytes(t[i], lines, len));
	}
	for (int i = 0; i < CLIENTS; i++) {
		for (int k = 0; k < QUESTIONS; k++) {
			struct json *v = hear(t[i]);

			assert_true(is_ok(v));
			json_free(v);
		}
		talk_close(t[i]);
	}
	printf("# %d questions at once answered in %.2f s\n", CLIENTS * QUESTIONS, now_s() - began);
	health_check(&d, 16.0);
}

/* ---- reloads ---- */

static void await_log(const char *text)
{
	double until = now_s() + PATIENCE_S;

	while (!fixture_logged(&d.fixture, text)) {
		if (now_s() > until)
			die("the log does not say '%s'", text);
		sleep_s(0.01);
	}
}

TEST_WITH(test_a_bad_reload_by_signal_disturbs_nobody, NULL, stop)
{
	static const char bad[] = "{\"slots\":2,";
	struct talk *t, *watcher;
	struct err err = { 0 };
	struct json *v;

	start("\"slots\":2,");
	t = talk_open(&d.fixture);
	watcher = talk_open(&d.fixture);
	json_free(talk_ask(watcher, "{\"op\":\"watch\"}"));
	assert_int_equal(io_write_file(d.fixture.config, bad, sizeof bad - 1, &err), 0);
	kill(d.fixture.pid, SIGHUP);
	for (int i = 0; i < 100; i++)
		assert_true(submit(t, ADVISED) > 0);
	await_log("the configuration stays as it was");
	assert_true(stat_of(t, "queue.slots") == 2.0);
	fixture_configure(&d.fixture, "\"slots\":3,", "");
	kill(d.fixture.pid, SIGHUP);
	await_log("reloaded");
	assert_true(stat_of(t, "queue.slots") == 3.0);
	do {
		v = hear(watcher);
		assert_true(json_get(v, "event") != NULL); /* it was never thrown out */
		if (!strcmp(text_at(v, "event"), "reloaded"))
			break;
		json_free(v);
	} while (true);
	json_free(v);
	talk_close(t);
	talk_close(watcher);
	health_check(&d, 16.0);
}
