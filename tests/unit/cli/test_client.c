/* scheduler/cli/client: every way a daemon can answer, answer badly, or not at all. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "scheduler/cli/client/client.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/cli/fake_daemon.h"

#define STEPS(...) ((const struct fake_step[]){ __VA_ARGS__, END })

static struct fake_daemon *daemon_now;
static struct client_fault fault;

static int open_with(const struct fake_step *step, double timeout_s, struct client **out)
{
	struct client_params p = { .timeout_s = timeout_s };

	*out = NULL;
	daemon_now = fake_start(step);
	p.socket = daemon_now->path;
	return client_open(&p, out, &fault);
}

static struct client *opened(const struct fake_step *step)
{
	struct client *c;

	if (open_with(step, NAN, &c))
		fail_msg("not opened: %s", fault.text);
	return c;
}

static void stop(struct client *c)
{
	const char *complaint;

	client_close(c);
	complaint = fake_stop(daemon_now);
	if (complaint[0])
		fail_msg("%s", complaint);
}

static void fault_says(int exit_code, const char *words)
{
	assert_int_equal(fault.exit_code, exit_code);
	if (!strstr(fault.text, words))
		fail_msg("'%s' is not in: %s", words, fault.text);
}

/* Opens, asks once, and expects failure. */
static void refuses(const struct fake_step *step, int exit_code, const char *words)
{
	struct json *reply = NULL;
	struct client *c;
	int rc = open_with(step, NAN, &c);

	fault.exit_code = rc ? fault.exit_code : 0;
	if (!rc) {
		client_begin(c, "stats");
		rc = client_call(c, &reply, &fault);
	}
	assert_int_equal(rc, exit_code);
	assert_null(reply);
	fault_says(exit_code, words);
	stop(c);
}

static void answers(const struct fake_step *step)
{
	struct client *c = opened(step);
	struct json *reply = NULL;

	json_kv_string(client_begin(c, "status"), "job", "12");
	if (client_call(c, &reply, &fault))
		fail_msg("%s", fault.text);
	assert_int_equal(json_number(json_get(reply, "n"), 0), 42);
	json_free(reply);
	stop(c);
}

TEST(test_client_sends_a_request_and_takes_its_reply)
{
	answers(STEPS(SAY(FAKE_GREETING), HEAR("{\"v\":1,\"op\":\"status\",\"id\":1,\"job\":\"12\"}\n"),
		      SAY("{\"v\":1,\"id\":1,\"ok\":true,\"n\":42}\n"), STAY));
}

TEST(test_client_takes_a_reply_in_pieces)
{
	answers(STEPS(SPELL(FAKE_GREETING), HEAR(NULL), SPELL("{\"v\":1,\"id\":1,\"ok\":true,"),
		      { FAKE_NAP, NULL, 20 }, SPELL("\"n\":42}\n"), STAY));
}

TEST(test_client_takes_a_reply_followed_by_hanging_up)
{
	answers(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"ok\":true,\"n\":42}\n")));
}

TEST(test_client_takes_a_reply_longer_than_a_request_may_be)
{
	char *text = malloc(400000);

	strcpy(text, "{\"v\":1,\"id\":1,\"ok\":true,\"n\":42,\"s\":\"");
	memset(text + strlen(text), 'y', 300000);
	strcpy(text + 300035, "\"}\n");
	answers(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY(text), STAY));
	free(text);
}

TEST(test_client_notices_hanging_up)
{
	refuses((const struct fake_step[]){ END }, 1, "without a greeting");
	refuses(STEPS(SAY("{\"v\":1,\"greet")), 1, "without a greeting");
	refuses(STEPS(SAY(FAKE_GREETING)), 1, "closed the connection before it answered");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"ok\":tr")), 1,
		"closed the connection before it answered");
}

TEST(test_client_refuses_what_is_no_protocol)
{
	refuses(STEPS(SAY("SSH-2.0-OpenSSH_9.2\n"), STAY), 1, "SSH-2.0");
	refuses(STEPS(SAY("\n"), STAY), 1, "does not speak");
	refuses(STEPS(SAY("{\"v\":1,\"greeting\":\"somebody\"}\n"), STAY), 1, "does not greet as postriderd");
	refuses(STEPS(SAY("{\"v\":2,\"greeting\":\"postriderd\"}\n"), STAY), 1, "version 1");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("[1,2]\n"), STAY), 1, "does not speak");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1}\n"), STAY), 1, "ok");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"ok\":\"yes\"}\n"), STAY), 1,
		"ok");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"ok\":true\n"), STAY), 1,
		"does not speak");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"id\":1,\"ok\":true}\n"), STAY),
		1, "does not speak");
}

TEST(test_client_refuses_another_requests_reply)
{
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":2,\"ok\":true}\n"), STAY), 1,
		"answered request 2 when 1 was next");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":\"1\",\"ok\":true}\n"), STAY), 1,
		"when 1 was next");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"ok\":true}\n"), STAY), 1,
		"when 1 was next");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
		      SAY("{\"v\":1,\"id\":9,\"ok\":false,\"error\":{\"code\":\"unknown_job\"}}\n"), STAY),
		1, "when 1 was next");
}

TEST(test_client_refuses_a_line_without_end)
{
	refuses(STEPS({ FAKE_FLOOD, NULL, CLIENT_MAX_REPLY + (1 << 20) }), 1, "more than 64 MiB");
}

TEST(test_client_tells_a_refusal_with_its_exit_code)
{
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
		      SAY("{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"not_permitted\",\"message\":"
			  "\"job 12 is "
			  "not yours\",\"field\":\"job\",\"hint\":\"ask\"}}\n"),
		      STAY),
		7, "job 12 is not yours");
	assert_string_equal(fault.code, "not_permitted");
	assert_string_equal(fault.hint, "ask");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
		      SAY("{\"v\":1,\"ok\":false,\"error\":{\"code\":\"bad_json\",\"message\":\"column "
			  "3\"}}\n"),
		      STAY),
		2, "column 3");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
		      SAY("{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"bad_field\",\"message\":"
			  "\"too "
			  "large\",\"field\":\"slo_s\"}}\n"),
		      STAY),
		2, "too large (slo_s)");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
		      SAY("{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"made_up\"}}\n"), STAY),
		1, "made_up");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"ok\":false}\n"), STAY), 1,
		"gave no reason");
	refuses(STEPS(SAY(FAKE_GREETING), HEAR(NULL), SAY("{\"v\":1,\"id\":1,\"ok\":false,\"error\":7}\n"),
		      STAY),
		1, "gave no reason");
}

TEST(test_client_understands_a_refusal_instead_of_a_greeting)
{
	refuses(STEPS(SAY("{\"v\":1,\"ok\":false,\"error\":{\"code\":\"too_many_connections\",\"message\":"
			  "\"64 are "
			  "here\"}}\n")),
		8, "64 are here");
	assert_string_equal(fault.code, ""); /* the connection is over */
}

TEST(test_client_goes_on_after_a_refusal)
{
	struct client *c = opened(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
					SAY("{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"unknown_"
					    "job\",\"message\":\"no\"}}\n"),
					HEAR("\"id\":2"), SAY("{\"v\":1,\"id\":2,\"ok\":true}\n"), STAY));
	struct json *reply = NULL;

	client_begin(c, "status");
	assert_int_equal(client_call(c, &reply, &fault), 4);
	client_begin(c, "status");
	assert_int_equal(client_call(c, &reply, &fault), 0);
	json_free(reply);
	stop(c);
}

/* The table of docs/PROTOCOL.md is the promise. */
TEST(test_exit_codes_are_those_of_the_protocol)
{
	FILE *doc = fopen("docs/PROTOCOL.md", "r");
	char line[512], code[64];
	int want, n = 0;

	assert_non_null(doc);
	while (fgets(line, sizeof line, doc)) {
		if (sscanf(line, "| `%63[a-z_]` | %d |", code, &want) != 2)
			continue;
		if (client_exit_code(code) != want)
			fail_msg("%s: %d, not the document's %d", code, client_exit_code(code), want);
		n++;
	}
	fclose(doc);
	assert_true(n >= 18);
	assert_int_equal(client_exit_code("made_up"), 1);
	assert_int_equal(client_exit_code(""), 1);
}

TEST(test_client_says_that_there_is_no_daemon)
{
	struct client_params p = { .timeout_s = NAN };
	struct client *c = NULL;
	char path[300];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	p.socket = support_path(support_temp_dir(), "nothing.sock");
	assert_int_equal(client_open(&p, &c, &fault), 5);
	fault_says(5, "nothing.sock");
	assert_non_null(strstr(fault.hint, "start postriderd"));

	snprintf(at.sun_path, sizeof at.sun_path, "%s", support_path(support_temp_dir(), "stale.sock"));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	close(fd); /* the file stays */
	p.socket = at.sun_path;
	assert_int_equal(client_open(&p, &c, &fault), 5);
	fault_says(5, "nothing listens");

	memset(path, 'p', sizeof path);
	path[0] = '/';
	path[sizeof path - 1] = '\0';
	p.socket = path;
	assert_int_equal(client_open(&p, &c, &fault), 2);
	assert_null(c);
}

TEST(test_client_gives_up_after_its_timeout)
{
	struct json *reply = NULL;
	struct client *c;

	assert_int_equal(open_with(STEPS(STAY), 0.1, &c), 124);
	fault_says(124, "100 ms of --timeout");
	stop(c);
	assert_int_equal(open_with(STEPS(SAY(FAKE_GREETING), STAY), 0.2, &c), 0);
	client_begin(c, "stats");
	assert_int_equal(client_call(c, &reply, &fault), 124);
	fault_says(124, "an answer did not come");
	stop(c);
	assert_int_equal(open_with(STEPS(SAY(FAKE_GREETING), STAY), 0.2, &c), 0);
	assert_int_equal(client_event(c, NAN, &reply, &fault), 124);
	stop(c);
}

TEST(test_client_counts_the_timeout_over_all_requests)
{
	struct json *reply = NULL;
	struct client *c;
	int rc = 0, n = 0;

	assert_int_equal(
		open_with(STEPS(SAY(FAKE_GREETING), HEAR(NULL), { FAKE_NAP, NULL, 120 },
				SAY("{\"v\":1,\"id\":1,\"ok\":true}\n"), HEAR(NULL), { FAKE_NAP, NULL, 400 }),
			  0.3, &c),
		0);
	while (!rc && n < 5) {
		client_begin(c, "stats");
		rc = client_call(c, &reply, &fault);
		json_free(rc ? NULL : reply);
		n++;
	}
	assert_int_equal(rc, 124);
	assert_int_equal(n, 2);
	stop(c);
}

TEST(test_events_that_overtake_a_reply_are_kept_in_order)
{
	struct client *c =
		opened(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
			     SAY("{\"v\":1,\"event\":\"submitted\"}\n{\"v\":1,\"event\":\"started\"}\n"
				 "{\"v\":1,\"id\":1,\"ok\":true}\n{\"v\":1,\"event\":\"finished\"}\n"),
			     STAY));
	static const char *const want[] = { "submitted", "started", "finished" };
	struct json *v = NULL;

	client_begin(c, "submit");
	assert_int_equal(client_call(c, &v, &fault), 0);
	json_free(v);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(client_event(c, 5.0, &v, &fault), 0);
		assert_non_null(v);
		assert_string_equal(json_string(json_get(v, "event"), ""), want[i]);
		json_free(v);
	}
	assert_int_equal(client_event(c, 0.02, &v, &fault), 0);
	assert_null(v); /* time went by without one */
	stop(c);
}

TEST(test_events_left_over_are_freed)
{
	struct client *c = opened(STEPS(SAY(FAKE_GREETING), HEAR(NULL),
					SAY("{\"v\":1,\"event\":\"a\"}\n{\"v\":1,\"event\":\"b\"}\n"
					    "{\"v\":1,\"id\":1,\"ok\":true}\n"),
					STAY));
	struct json *v = NULL;

	client_begin(c, "watch");
	assert_int_equal(client_call(c, &v, &fault), 0);
	json_free(v);
	stop(c); /* the leak checker is the judge */
}

TEST(test_a_watch_notices_that_the_daemon_went_away)
{
	struct client *c = opened(STEPS(SAY(FAKE_GREETING), SAY("{\"v\":1,\"event\":\"started\"}\n")));
	struct json *v = NULL;

	assert_int_equal(client_event(c, NAN, &v, &fault), 0);
	json_free(v);
	assert_int_equal(client_event(c, NAN, &v, &fault), 5);
	fault_says(5, "went away");
	stop(c);
}

TEST(test_a_watch_tells_the_daemons_last_words)
{
	struct client *c =
		opened(STEPS(SAY(FAKE_GREETING), SAY("{\"v\":1,\"ok\":false,\"error\":{\"code\":\"slow_"
						     "reader\",\"message\":\"you read too slowly\"}}\n")));
	struct json *v = NULL;

	assert_int_equal(client_event(c, NAN, &v, &fault), 1);
	fault_says(1, "too slowly");
	stop(c);
	c = opened(STEPS(SAY(FAKE_GREETING), SAY("{\"v\":1,\"id\":1,\"ok\":true}\n"), STAY));
	assert_int_equal(client_event(c, NAN, &v, &fault), 1);
	fault_says(1, "neither an event");
	stop(c);
}

TEST(test_a_request_that_is_too_long_is_not_sent)
{
	struct client *c = opened(STEPS(SAY(FAKE_GREETING), HEAR("{\"v\":1,\"op\":\"stats\",\"id\":1}\n"),
					SAY("{\"v\":1,\"id\":1,\"ok\":true}\n"), STAY));
	char *text = calloc(1, CLIENT_MAX_REQUEST + 1);
	struct json *v = NULL;

	memset(text, 'k', CLIENT_MAX_REQUEST);
	json_kv_string(client_begin(c, "submit"), "key", text);
	assert_int_equal(client_end(c, &fault), 2);
	fault_says(2, "the daemon takes 65536");
	client_begin(c, "stats");
	assert_int_equal(client_call(c, &v, &fault), 0);
	json_free(v);
	free(text);
	stop(c);
}

/* A server that answers before it reads on: a client that sends everything first would wait for ever. */
TEST(test_pipelined_requests_do_not_wait_for_each_other)
{
	enum { N = 12, SIZE = 60000 };
	struct fake_step step[2 * N + 3] = { SAY(FAKE_GREETING) };
	char *text = calloc(1, SIZE + 1), *reply[N];
	struct client *c;
	struct json *v = NULL;

	memset(text, 'k', SIZE);
	for (size_t i = 0; i < N; i++) {
		reply[i] = malloc(SIZE + 100);
		sprintf(reply[i], "{\"v\":1,\"id\":%zu,\"ok\":true,\"s\":\"%s\"}\n", i + 1, text);
		step[1 + 2 * i] = (struct fake_step)HEAR("\"tag\"");
		step[2 + 2 * i] = (struct fake_step)SAY(reply[i]);
	}
	step[2 * N + 1] = (struct fake_step)STAY;
	c = opened(step);
	for (size_t i = 0; i < N; i++) {
		json_kv_string(client_begin(c, "submit"), "tag", text);
		assert_int_equal(client_end(c, &fault), 0);
	}
	for (size_t i = 0; i < N; i++) {
		if (client_reply(c, &v, &fault))
			fail_msg("reply %zu: %s", i, fault.text);
		json_free(v);
	}
	stop(c);
	for (size_t i = 0; i < N; i++)
		free(reply[i]);
	free(text);
}

TEST(test_client_survives_missing_memory)
{
	int rc = 1;

	for (unsigned long k = 1; rc && k < 200; k++) {
		const struct fake_step *step = STEPS(SAY(FAKE_GREETING), SAY("{\"v\":1,\"event\":\"a\"}\n"),
						     SAY("{\"v\":1,\"id\":1,\"ok\":true}\n"), STAY);
		struct json *v = NULL;
		struct client *c = NULL;

		daemon_now = fake_start(step);
		mem_fail_at(k, true);
		rc = client_open(&(struct client_params){ .socket = daemon_now->path, .timeout_s = 5.0 }, &c,
				 &fault);
		if (!rc) {
			client_begin(c, "stats");
			rc = client_call(c, &v, &fault);
			json_free(rc ? NULL : v);
		}
		mem_fail_at(0, false);
		if (rc)
			assert_int_equal(rc, 1);
		stop(c);
	}
	assert_int_equal(rc, 0);
}

static int interrupted_child(void)
{
	struct client *c;
	struct json *v = NULL;

	client_catch_signals();
	if (open_with(STEPS(SAY(FAKE_GREETING), STAY), NAN, &c))
		return 99;
	alarm(20); /* a hang ends the child, and the test fails */
	if (fork() == 0) {
		usleep(100000);
		kill(getppid(), SIGINT);
		_exit(0);
	}
	return client_event(c, NAN, &v, &fault);
}

TEST(test_ctrl_c_ends_a_wait)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(interrupted_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 130);
}

TEST(test_words_of_others_cannot_move_the_terminal)
{
	const char *path = support_path(support_temp_dir(), "stderr");
	int before = dup(STDERR_FILENO);
	char text[256] = "";
	FILE *f;

	client_fail(&fault, 1, "evil \033[2J text\nmore");
	snprintf(fault.hint, sizeof fault.hint, "hint \a\x9b");
	assert_non_null(freopen(path, "w", stderr));
	assert_int_equal(client_say(&fault), 1);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	assert_non_null(strstr(text, "postrider: evil \\x1b[2J text\\x0amore\npostrider: hint: hint \\x"));
	assert_null(strchr(text, '\033'));
}
