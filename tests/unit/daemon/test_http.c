/* scheduler/daemon/http/, ops/op_token.c: who may ask what over HTTP, and what is answered. The page in a
 * browser: tests/cli/page.sh. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/daemon/http/http_internal.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/http_client.h"
#include "tests/unit/daemon/one_local.h"

#define OTHER 20001
#define TCP "\"http\":{\"listen\":\"127.0.0.1:0\",\"hosts\":[\"jobs.example\"]},"

static struct http_client h, h2;

static int open_all(void **state)
{
	umask(0077); /* as the daemon's main() */
	h.fd = h2.fd = -1;
	return open_one(state);
}

static int close_all(void **state)
{
	http_close(&h);
	http_close(&h2);
	return close_one(state);
}

#define HTTP_TEST(name) TEST_WITH(name, open_all, close_all)

static void begin(const char *settings)
{
	start(settings);
	http_open(&h, &l);
}

/* A header with a token of the client's user, in a ring of two. */
static const char *bearer_of(struct local_client *who)
{
	static char header[2][120];
	static int turn;
	struct json *v = client_ask(who, "{\"op\":\"token\"}");

	turn = !turn;
	assert_int_equal(strncmp(text_at(v, "token"), "prt_", 4), 0);
	snprintf(header[turn], sizeof header[turn], "Authorization: Bearer %.60s\r\n", text_at(v, "token"));
	json_free(v);
	return header[turn];
}

/* On a fresh connection: the status, and that the error has this code. */
static void refused(const char *method, const char *path, const char *headers, const char *body, int status,
		    const char *code)
{
	struct http_client one;
	struct json *v;

	http_open(&one, &l);
	if (http_ask(&one, method, path, headers, body) != status)
		fail_msg("%s %s %s: %d, not %d: %s", method, path, headers ? headers : "", one.status, status,
			 strbuf_text(&one.body));
	v = http_json(&one);
	assert_false(json_bool(json_get(v, "ok"), true));
	assert_string_equal(text_at(v, "error.code"), code);
	assert_string_equal(http_header(&one, "Content-Type"), "application/json");
	assert_string_equal(http_header(&one, "X-Content-Type-Options"), "nosniff"); /* of errors, too */
	json_free(v);
	http_close(&one);
}

static struct json *api(const char *token, const char *request)
{
	assert_int_equal(http_ask(&h, "POST", "/api", token, request), 200);
	assert_string_equal(http_header(&h, "Content-Type"), "application/json");
	return http_json(&h);
}

static void open_page(struct http_client *p, const char *token)
{
	http_open(p, &l);
	http_say(p, "GET", "/api/events", token, NULL);
	assert_int_equal(http_hear_head(p), 200);
	assert_string_equal(http_header(p, "Content-Type"), "text/event-stream");
	assert_string_equal(http_header(p, "X-Frame-Options"), "DENY");
}

/* ---- the page ---- */

HTTP_TEST(test_the_page_comes_with_headers_that_allow_nothing_from_elsewhere)
{
	const char *policy;

	begin(TCP);
	assert_int_equal(http_ask(&h, "GET", "/", NULL, NULL), 200);
	assert_non_null(strstr(http_header(&h, "Content-Type"), "text/html"));
	policy = http_header(&h, "Content-Security-Policy");
	assert_non_null(strstr(policy, "default-src 'none'"));
	assert_non_null(strstr(policy, "frame-ancestors 'none'"));
	assert_null(strstr(policy, "unsafe"));
	assert_string_equal(http_header(&h, "X-Content-Type-Options"), "nosniff");
	assert_string_equal(http_header(&h, "X-Frame-Options"), "DENY");
	assert_string_equal(http_header(&h, "Referrer-Policy"), "no-referrer");
	assert_string_equal(http_header(&h, "Cross-Origin-Opener-Policy"), "same-origin");
	assert_string_equal(http_header(&h, "Cross-Origin-Resource-Policy"), "same-origin");
	assert_string_equal(http_header(&h, "Cache-Control"), "no-store");
	assert_non_null(strstr(strbuf_text(&h.body), "<script"));
	assert_int_equal(http_ask(&h, "GET", "/app.js", NULL, NULL), 200); /* on the same connection */
	assert_non_null(strstr(http_header(&h, "Content-Type"), "javascript"));
}

HTTP_TEST(test_a_head_has_the_length_and_no_body)
{
	static const char *const path[] = { "/style.css", "/metrics", "/nothing" };

	begin(TCP);
	for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
		char type[80];
		int status;

		http_say(&h, "HEAD", path[i], NULL, NULL);
		status = http_hear_head(&h);
		snprintf(type, sizeof type, "%s", http_header(&h, "Content-Type"));
		assert_true(strtoul(http_header(&h, "Content-Length"), NULL, 10) > 10);
		/* the next answer follows at once */
		assert_int_equal(http_ask(&h, "GET", path[i], NULL, NULL), status);
		assert_string_equal(http_header(&h, "Content-Type"), type);
	}
}

HTTP_TEST(test_there_is_nothing_at_other_places_and_other_methods_are_refused)
{
	begin(TCP);
	refused("GET", "/../state/tokens", NULL, NULL, 404, "not_found");
	refused("GET", "/index", NULL, NULL, 404, "not_found");
	refused("POST", "/", NULL, "{}", 404, "not_found");
	refused("POST", "/metrics", NULL, "{}", 405, "bad_method");
	refused("GET", "/api", NULL, NULL, 405, "bad_method");
	http_say(&h, "HEAD", "/api/events", NULL,
		 NULL); /* a stream has no end, so its head is not given alone */
	assert_int_equal(http_hear_head(&h), 405);
}

/* ---- who asks ---- */

HTTP_TEST(test_a_name_that_is_not_the_daemons_is_refused)
{
	char host[80];
	static const char *const wrong[] = { "evil.example",          "127.0.0.1",      "localhost",
					     "127.0.0.1:1",           "jobs.example:1", "",
					     "localhost.evil.example" };

	begin(TCP);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(host, sizeof host, "Host: %s\r\n", wrong[i]);
		refused("GET", "/", host, NULL, 421, "wrong_host");
		refused("GET", "/metrics", host, NULL, 421, "wrong_host");
	}
	snprintf(host, sizeof host, "Host: LocalHost:%d\r\n", l.d->http->port);
	assert_int_equal(http_ask(&h, "GET", "/metrics", host, NULL), 200);
	assert_int_equal(http_ask(&h, "GET", "/metrics", "Host: jobs.example\r\n", NULL), 200);
	snprintf(host, sizeof host, "Host: jobs.example:%d\r\n", l.d->http->port);
	assert_int_equal(http_ask(&h, "GET", "/metrics", host, NULL), 200);
}

HTTP_TEST(test_pages_of_other_sites_are_refused_also_with_a_token)
{
	char headers[400];
	const char *token;
	static const char *const wrong[] = { "Origin: http://evil.example\r\n", "Origin: null\r\n",
					     "Origin: ftp://127.0.0.1\r\n",
					     "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n",
					     "Sec-Fetch-Site: same-site\r\n" };

	begin(TCP);
	token = bearer_of(&c);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(headers, sizeof headers, "%s%s", token, wrong[i]);
		refused("GET", "/metrics", headers, NULL, 403, "wrong_origin");
		refused("GET", "/api/events", headers, NULL, 403, "wrong_origin");
		refused("POST", "/api", headers, "{\"op\":\"hello\"}", 403, "wrong_origin");
	}
	snprintf(headers, sizeof headers, "Origin: http://127.0.0.1:%d\r\nSec-Fetch-Site: same-origin\r\n",
		 l.d->http->port);
	assert_int_equal(http_ask(&h, "GET", "/metrics", headers, NULL), 200);
	assert_int_equal(http_ask(&h, "GET", "/metrics", "Origin: https://jobs.example\r\n", NULL), 200);
	assert_int_equal(http_ask(&h, "GET", "/", "Sec-Fetch-Site: none\r\n", NULL), 200);
	assert_int_equal(
		http_ask(&h, "GET", "/", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", NULL),
		200); /* a link */
}

HTTP_TEST(test_without_a_good_token_no_request_is_answered)
{
	static const char *const wrong[] = {
		"Authorization: Bearer prt_0000000000000000000000000000000000000000\r\n",
		"Authorization: Bearer x\r\n", "Authorization: Basic eDp5\r\n", "Authorization: Bearer\r\n"
	};

	begin(TCP);
	bearer_of(&c); /* there is one */
	refused("POST", "/api", NULL, "{\"op\":\"list\"}", 401, "no_token");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		refused("POST", "/api", wrong[i], "{\"op\":\"list\"}", 401, "bad_token");
		refused("GET", "/metrics", wrong[i], NULL, 401, "bad_token"); /* not as if it had none */
	}
}

HTTP_TEST(test_over_a_unix_socket_everything_but_the_page_needs_a_token)
{
	char settings[200], path[160];
	struct stat st;

	snprintf(path, sizeof path, "%s/http", l.dir);
	snprintf(settings, sizeof settings, "\"http\":{\"listen\":\"%s\"},", path);
	begin(settings);
	refused("GET", "/metrics", NULL, NULL, 401, "no_token");
	refused("GET", "/api/events", NULL, NULL, 401, "no_token");
	refused("GET", "/metrics", "Host: evil.example\r\n", NULL, 421, "wrong_host");
	assert_int_equal(http_ask(&h, "GET", "/", NULL, NULL), 200);
	assert_int_equal(http_ask(&h, "GET", "/metrics", bearer_of(&c), NULL), 200);
	assert_int_equal(stat(path, &st), 0);
	http_close(&h);
	client_close(&c);
	local_stop(&l);
	assert_int_not_equal(stat(path, &st), 0); /* it goes with the daemon */
}

HTTP_TEST(test_an_address_in_use_keeps_the_daemon_from_starting)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	char settings[120];
	struct err err = { 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, len) && !listen(fd, 1));
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	snprintf(settings, sizeof settings, "\"http\":{\"listen\":\"127.0.0.1:%d\"},", ntohs(at.sin_port));
	l.settings = settings;
	local_write_config(&l);
	assert_int_equal(local_try_start(&l, &err), -ERR_BUSY);
	assert_non_null(strstr(err.text, "http.listen"));
	close(fd);
}

/* ---- tokens ---- */

HTTP_TEST(test_without_a_page_there_are_no_tokens)
{
	start("");
	assert_string_equal(client_error(&c, "{\"op\":\"token\"}"), "wrong_state");
}

HTTP_TEST(test_a_token_ends_when_it_says_and_only_its_hash_is_kept)
{
	char path[160], url[80], *text = NULL;
	struct json *v;
	struct stat st;
	size_t len;

	begin(TCP);
	assert_string_equal(client_error(&c, "{\"op\":\"token\",\"days\":0}"), "bad_field");
	assert_string_equal(client_error(&c, "{\"op\":\"token\",\"days\":4000}"), "bad_field");
	assert_string_equal(client_error(&c, "{\"op\":\"token\",\"revoke\":1}"), "bad_field");
	v = client_ask(&c, "{\"op\":\"token\",\"days\":0.5}");
	snprintf(url, sizeof url, "http://127.0.0.1:%d/#token=prt_", l.d->http->port);
	assert_int_equal(strncmp(text_at(v, "url"), url, strlen(url)), 0);
	assert_true(number_at(v, "tokens") == 1.0);
	assert_int_equal(l.d->http->tokens.n, 1);
	assert_true(llabs((long long)l.d->http->tokens.one[0].expires_s - (long long)time(NULL) - 43200) <
		    60);
	snprintf(path, sizeof path, "%s/tokens", l.state);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(io_read_file(path, 65536, &text, &len, NULL), 0);
	assert_null(strstr(text, text_at(v, "token") + 4));
	free(text);
	json_free(v);
}

HTTP_TEST(test_a_token_is_that_of_its_user_and_of_no_other)
{
	struct local_client other;
	char mine[120], guest[120];
	struct json *v;
	uint64_t job;

	begin(TCP);
	client_open_as(&other, &l, OTHER, OTHER, OTHER);
	snprintf(mine, sizeof mine, "%s", bearer_of(&c));
	snprintf(guest, sizeof guest, "%s", bearer_of(&other));
	assert_string_not_equal(mine, guest);
	v = api(guest, "{\"op\":\"hello\"}");
	assert_true(number_at(v, "uid") == OTHER);
	assert_false(json_bool(json_get(v, "admin"), true));
	json_free(v);
	v = api(mine, "{\"op\":\"hello\"}");
	assert_true(number_at(v, "uid") == 0.0 && json_bool(json_get(v, "admin"), false));
	json_free(v);
	job = client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	assert_true(job == 1);
	v = api(guest, "{\"op\":\"cancel\",\"job\":\"1\"}");
	assert_string_equal(text_at(v, "error.code"), "not_permitted");
	json_free(v);
	/* a user revokes his own, and no other */
	v = client_ask(&other, "{\"op\":\"token\",\"revoke\":true}");
	assert_true(json_bool(json_get(v, "ok"), false) && number_at(v, "tokens") == 0.0);
	assert_string_equal(text_at(v, "token"), "");
	json_free(v);
	refused("POST", "/api", guest, "{\"op\":\"hello\"}", 401, "bad_token");
	v = api(mine, "{\"op\":\"cancel\",\"job\":\"1\"}");
	assert_string_equal(text_at(v, "job.state"), "cancelled");
	json_free(v);
	client_close(&other);
}

HTTP_TEST(test_a_token_that_cannot_be_kept_is_not_given)
{
	begin(TCP);
	io_fail_at(1, 28); /* ENOSPC */
	assert_string_equal(client_error(&c, "{\"op\":\"token\"}"), "internal");
	io_fail_at(0, 0);
	assert_int_equal(l.d->http->tokens.n, 0);
	assert_string_equal(client_error(&c, "{\"op\":\"token\"}"), "");
}

HTTP_TEST(test_a_token_is_good_after_a_restart)
{
	char token[120];
	struct json *v;

	begin(TCP);
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	http_close(&h);
	client_close(&c);
	local_restart(&l);
	http_open(&h, &l);
	v = api(token, "{\"op\":\"hello\"}");
	assert_true(json_bool(json_get(v, "ok"), false));
	json_free(v);
}

/* ---- requests ---- */

static void same_answer(const char *token, const char *request)
{
	struct json *v = api(token, request);
	char *over_http = NULL;

	over_http = strndup(strbuf_text(&h.body), h.body.len);
	json_free(v);
	client_say(&c, "%s", request);
	json_free(client_hear(&c));
	/* the line as it came */
	assert_true(c.read >= h.body.len + 1);
	assert_memory_equal(c.in.text + c.read - h.body.len - 1, over_http, h.body.len);
	assert_true(c.read == h.body.len + 1 || c.in.text[c.read - h.body.len - 2] == '\n');
	free(over_http);
}

HTTP_TEST(test_a_request_is_answered_as_over_the_socket)
{
	char token[120];
	struct json *v;

	begin(TCP);
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\",\"tag\":\"<b>\"");
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	json_free(client_ask(&c, "{\"op\":\"cancel\",\"job\":\"2\"}"));
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	same_answer(token, "{\"op\":\"status\",\"job\":\"2\"}");
	same_answer(token, "{\"op\":\"list\",\"state\":\"cancelled\"}");
	same_answer(token, "{\"op\":\"explain\",\"job\":\"2\"}");
	same_answer(token, "{\"op\":\"status\",\"job\":\"77\",\"id\":9}");
	same_answer(token, "{\"op\":\"list\",\"limit\":0}");
	v = api(token, "{\"op\":\n\"stats\"}"); /* line ends between words are fine */
	assert_true(number_at(v, "jobs.queued") == 1.0 && number_at(v, "jobs.cancelled") == 1.0);
	json_free(v);
}

HTTP_TEST(test_a_page_may_ask_and_cancel_but_not_operate_the_daemon)
{
	static const char *const op[] = { "submit", "drain",    "reload",   "retrain", "token",
					  "watch",  "finished", "rollback", "started", "" };
	char token[120], request[80];
	struct json *v;

	begin(TCP);
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
		snprintf(request, sizeof request, "{\"op\":\"%s\"}", op[i]);
		refused("POST", "/api", token, request, 403, "not_permitted");
	}
	/* a line end in a string is no JSON before it is a blank, and the request of another op afterwards */
	refused("POST", "/api", token, "{\"op\":\"token\",\"x\":\"\n\"}", 403, "not_permitted");
	refused("POST", "/api", token, "{\"op\":\"watch\",\"x\":\"\r\"}", 403, "not_permitted");
	refused("POST", "/api", token, "", 400, "bad_json");
	/* two requests in a body are no request: the second is not smuggled past the check of the first */
	v = api(token, "{\"op\":\"hello\"}\n{\"op\":\"drain\"}");
	assert_string_equal(text_at(v, "error.code"), "bad_json");
	json_free(v);
	assert_false(l.d->draining);
}

HTTP_TEST(test_where_the_daemon_has_no_connection_left_a_page_is_told_so)
{
	char token[120];

	begin(TCP "\"max_connections\":1,");
	snprintf(token, sizeof token, "%s", bearer_of(&c)); /* c is the one */
	refused("POST", "/api", token, "{\"op\":\"hello\"}", 503, "too_many_connections");
	client_close(&c);
	local_run(&l, 0.02);
	json_free(api(token, "{\"op\":\"hello\"}"));
}

static size_t expected_connections;

static bool connections_are(const struct local_daemon *at)
{
	return server_connections(at->d->server) == expected_connections;
}

HTTP_TEST(test_a_browser_that_goes_before_its_answer_leaves_nothing_behind)
{
	char token[120];
	struct json *v;

	begin(TCP);
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	http_say(&h, "POST", "/api", token, "{\"op\":\"list\"}");
	expected_connections = 2; /* c, and that of the request */
	while (!connections_are(&l))
		event_base_loop(l.d->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	http_close(&h);
	expected_connections = 1;
	local_until(&l, connections_are);
	http_open(&h, &l);
	v = api(token, "{\"op\":\"hello\"}");
	assert_true(json_bool(json_get(v, "ok"), false));
	json_free(v);
}

static int complaints;

static void count_complaint(int severity, const char *message)
{
	(void)message;
	complaints += severity >= EVENT_LOG_WARN;
}

/* libevent complains of descriptors that are closed while their events are still there. */
HTTP_TEST(test_a_daemon_that_leaves_while_a_request_is_under_way_ends_well)
{
	char token[120];

	begin(TCP);
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	http_open(&h2, &l);
	http_say(&h2, "GET", "/api/events", token, NULL);
	assert_int_equal(http_hear_head(&h2), 200);
	http_say(&h, "POST", "/api", token, "{\"op\":\"list\"}");
	expected_connections = 2;
	while (!connections_are(&l))
		event_base_loop(l.d->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	client_close(&c);
	event_set_log_callback(count_complaint);
	local_stop(&l); /* a sanitizer looks at what is left */
	event_set_log_callback(NULL);
	assert_int_equal(complaints, 0);
}

/* ---- limits ---- */

HTTP_TEST(test_requests_without_end_are_cut_off)
{
	struct http_client one;
	char *much = malloc(80001);

	assert_non_null(much);
	memset(much, 'x', 80000);
	much[80000] = '\0';
	begin(TCP);
	http_open(&one, &l);
	assert_int_equal(http_ask(&one, "POST", "/api", bearer_of(&c), much), 413);
	http_close(&one);
	much[20000] = '\0';
	much[0] = '/';
	http_open(&one, &l);
	http_say(&one, "GET", much, NULL, NULL);
	assert_int_not_equal(http_hear_head(&one), 200);
	http_close(&one);
	free(much);
	assert_int_equal(http_ask(&h, "GET", "/", NULL, NULL), 200);
}

HTTP_TEST(test_connections_beyond_the_limit_wait_until_one_is_closed)
{
	char token[120];

	begin("\"http\":{\"listen\":\"127.0.0.1:0\",\"max_connections\":1},");
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	assert_int_equal(http_ask(&h, "POST", "/api", token, "{\"op\":\"hello\"}"), 200);
	assert_false(l.d->http->accepting);
	http_open(&h2, &l); /* in the kernel's queue */
	http_say(&h2, "GET", "/app.js", NULL, NULL);
	local_run(&l, 0.05);
	assert_int_equal(h2.in.len, 0);
	assert_int_equal(l.d->http->n_open, 1);
	http_close(&h);
	assert_int_equal(http_hear(&h2), 200);
	http_close(&h2);
	while (l.d->http->n_open)
		local_run(&l, 0.01);
	assert_true(l.d->http->accepting);
}

#define CROWD 60 /* more than are allowed, and than are being closed at a time */

/* Connections that say nothing, and pages without a token: a program that shows a token, and one that asks
 * for what needs none, are served beside them, and a page with a token stays open. */
HTTP_TEST(test_idle_connections_shut_nobody_out)
{
	struct http_client idle[CROWD];
	char token[120];

	start("\"http\":{\"listen\":\"127.0.0.1:0\",\"max_connections\":16},");
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	open_page(&h, token);
	json_free(http_event(&h));
	for (int i = 0; i < CROWD; i++) {
		http_open(&idle[i], &l);
		if (i % 2)
			http_say(&idle[i], "GET", "/api/events", NULL, NULL);
		local_run(&l, 0.002);
	}
	for (int i = 0; i < 10; i++) {
		http_open(&h2, &l);
		assert_int_equal(http_ask(&h2, i % 2 ? "GET" : "POST", i % 2 ? "/metrics" : "/api",
					  i % 2 ? NULL : token, i % 2 ? NULL : "{\"op\":\"hello\"}"),
				 200);
		http_close(&h2);
	}
	assert_true(l.d->http->n_open <= 16 + HTTP_GOING);
	json_free(http_event(&h)); /* still */
	http_open(&h2, &l);
	http_say(&h2, "GET", "/api/events", token, NULL);
	assert_int_equal(http_hear_head(&h2), 200);
	for (int i = 0; i < CROWD; i++)
		http_close(&idle[i]);
}

/* A quarter of the places each. */
HTTP_TEST(test_one_user_does_not_take_the_places_of_all_pages)
{
	struct http_client page[4];
	char token[120];

	start("\"http\":{\"listen\":\"127.0.0.1:0\",\"max_connections\":16},");
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	for (int i = 0; i < 4; i++)
		open_page(&page[i], token);
	refused("GET", "/api/events", token, NULL, 503, "too_many_connections");
	for (int i = 0; i < 4; i++)
		http_close(&page[i]);
}

static bool two_are_done(const struct local_daemon *at)
{
	return at->d->jobs.count[JOB_DONE] == 2;
}

static int look_for_closed(const struct event_base *base, const struct event *e, void *n)
{
	(void)base;
	if (event_get_fd(e) >= 0 && !(event_get_events(e) & EV_SIGNAL) && fcntl(event_get_fd(e), F_GETFD) < 0)
		++*(int *)n;
	return 0;
}

/* The next descriptor has the same number. Events that are left on it would be those of a job or a client. */
HTTP_TEST(test_a_connection_that_the_daemon_closed_leaves_no_event_on_its_descriptor)
{
	int n = 0;

	begin(TCP);
	assert_int_equal(http_ask(&h, "GET", "/app.js", "Connection: close\r\n", NULL), 200);
	while (!h.closed)
		http_hear_head(&h);
	event_base_foreach_event(l.d->base, look_for_closed, &n);
	assert_int_equal(n, 0);
	client_submit(&c, ",\"type\":\"sleepy\"");
	client_submit(&c, ",\"type\":\"sleepy\"");
	local_until(&l, two_are_done);
	http_close(&h);
	http_open(&h, &l);
	assert_int_equal(http_ask(&h, "GET", "/", NULL, NULL), 200);
}

/* ---- metrics ---- */

static double sample(const char *name)
{
	const char *at;
	char line[120];

	assert_int_equal(http_ask(&h, "GET", "/metrics", NULL, NULL), 200);
	assert_non_null(strstr(http_header(&h, "Content-Type"), "text/plain; version=0.0.4"));
	snprintf(line, sizeof line, "\n%s ", name);
	at = strstr(strbuf_text(&h.body), line);
	assert_non_null(at);
	return strtod(at + strlen(line), NULL);
}

HTTP_TEST(test_counters_rise_with_what_happens)
{
	begin(TCP);
	assert_true(sample("postrider_jobs_ended_total{state=\"cancelled\"}") == 0.0);
	assert_true(sample("postrider_request_errors_total{code=\"unknown_type\"}") == 0.0);
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	assert_true(sample("postrider_jobs{state=\"queued\"}") == 1.0);
	json_free(client_ask(&c, "{\"op\":\"cancel\",\"job\":\"1\"}"));
	client_error(&c, "{\"op\":\"submit\",\"type\":\"gone\"}");
	assert_true(sample("postrider_jobs_ended_total{state=\"cancelled\"}") == 1.0);
	assert_true(sample("postrider_request_errors_total{code=\"unknown_type\"}") == 1.0);
	assert_true(sample("postrider_scrape_duration_seconds_count") >= 4.0);
}

/* ---- events ---- */

HTTP_TEST(test_an_open_page_hears_at_once_that_a_job_has_ended)
{
	struct json *v;
	int64_t began_ns;

	start(TCP);
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\",\"tag\":\"mine\"");
	open_page(&h, bearer_of(&c));
	v = http_event(&h); /* the present state, without waiting for a tick */
	assert_true(json_bool(json_get(v, "known"), false));
	assert_int_equal(json_size(json_get(v, "next")) + json_size(json_get(v, "running")), 1);
	assert_int_equal(json_size(json_get(v, "ended")), 0);
	assert_true(number_at(v, "stats.jobs.cancelled") == 0.0);
	json_free(v);
	began_ns = daemon_now_ns(l.d);
	json_free(client_ask(&c, "{\"op\":\"cancel\",\"job\":\"1\"}"));
	do {
		v = http_event(&h);
		if (json_size(json_get(v, "ended")))
			break;
		json_free(v);
	} while (daemon_now_ns(l.d) - began_ns < INT64_C(20000000000));
	assert_string_equal(text_at(json_first(json_get(v, "ended")), "tag"), "mine");
	assert_string_equal(text_at(json_first(json_get(v, "ended")), "state"), "cancelled");
	assert_int_equal(json_size(json_get(v, "next")), 0);
	assert_true(number_at(v, "stats.jobs.cancelled") == 1.0);
	json_free(v);
	v = http_event(&h); /* and a tick later again, though nothing happens */
	assert_true(number_at(v, "stats.jobs.cancelled") == 1.0);
	json_free(v);
}

HTTP_TEST(test_running_jobs_and_the_next_in_their_order_are_shown)
{
	struct json *v;
	const struct json *job;

	start(TCP "\"slots\":1,");
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	json_free(client_ask(&c, "{\"op\":\"started\",\"job\":\"1\"}"));
	for (int i = 0; i < 3; i++)
		client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	open_page(&h, bearer_of(&c));
	v = http_event(&h);
	assert_int_equal(json_size(json_get(v, "running")), 1);
	assert_string_equal(text_at(json_first(json_get(v, "running")), "job"), "1");
	assert_int_equal(json_size(json_get(v, "next")), 3);
	job = json_first(json_get(v, "next"));
	for (int i = 2; i < 5; i++, job = json_next(job))
		assert_int_equal(atoi(text_at(job, "job")), i);
	json_free(v);
}

/* At most 60, and of more those that start first; no more than 64 that run and 30 that ended. */
HTTP_TEST(test_a_long_queue_is_shown_in_part)
{
	struct json *v;

	start(TCP "\"slots\":1,");
	for (int i = 0; i < 104; i++)
		client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	for (int i = 0; i < 35; i++)
		json_free(client_ask(&c, "{\"op\":\"cancel\",\"job\":\"%d\"}", 104 - i));
	open_page(&h, bearer_of(&c));
	v = http_event(&h);
	assert_int_equal(json_size(json_get(v, "next")), 60);
	assert_string_equal(text_at(json_first(json_get(v, "next")), "job"), "1");
	assert_int_equal(json_size(json_get(v, "ended")), 30);
	assert_string_equal(text_at(json_first(json_get(v, "ended")), "job"), "70"); /* the latest first */
	assert_true(number_at(v, "stats.jobs.queued") == 69.0);
	json_free(v);
}

HTTP_TEST(test_without_a_token_a_page_sees_sums_alone)
{
	struct json *v;

	start(TCP);
	client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\",\"tag\":\"secret\"");
	open_page(&h, NULL);
	v = http_event(&h);
	assert_int_equal(json_size(v), 3);
	assert_false(json_bool(json_get(v, "known"), true));
	assert_true(number_at(v, "stats.jobs.queued") + number_at(v, "stats.jobs.running") == 1.0);
	assert_null(strstr(strbuf_text(&h.body), "secret"));
	assert_null(strstr(strbuf_text(&h.body), "advised"));
	assert_null(strstr(strbuf_text(&h.body), "lenet5"));
	json_free(v);
}

static bool no_page(const struct local_daemon *at)
{
	return at->d->http->n_pages == 0;
}

static bool one_page(const struct local_daemon *at)
{
	return at->d->http->n_pages == 1;
}

HTTP_TEST(test_a_page_hears_nothing_after_its_token_has_gone)
{
	char token[120];
	struct json *v;

	start(TCP);
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	open_page(&h, token);
	http_open(&h2, &l);
	http_say(&h2, "GET", "/api/events", NULL, NULL); /* without one, and not touched */
	assert_int_equal(http_hear_head(&h2), 200);
	v = client_ask(&c, "{\"op\":\"token\",\"revoke\":true}");
	assert_true(json_bool(json_get(v, "ok"), false));
	json_free(v);
	local_until(&l, one_page);
	json_free(http_event(&h2));
	v = http_event(&h2);
	assert_false(json_bool(json_get(v, "known"), true));
	json_free(v);
	http_close(&h2);
	/* one that expires */
	http_close(&h);
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	open_page(&h, token);
	json_free(http_event(&h));
	l.d->clock_offset_ns += INT64_C(31) * 86400 * 1000000000;
	local_until(&l, no_page);
}

HTTP_TEST(test_a_request_with_two_lengths_is_refused)
{
	begin(TCP);
	refused("POST", "/api", "Content-Length: 5\r\n", "{\"op\":\"hello\"}", 400, "bad_request");
	refused("POST", "/api", "Content-Length: 14\r\n", "{\"op\":\"hello\"}", 400, "bad_request");
}

HTTP_TEST(test_pages_leave_room_for_requests)
{
	struct http_client third;
	char token[120];

	/* of nine connections eight are kept for requests */
	start("\"http\":{\"listen\":\"127.0.0.1:0\",\"max_connections\":9},");
	snprintf(token, sizeof token, "%s", bearer_of(&c));
	open_page(&h, token);
	refused("GET", "/api/events", token, NULL, 503, "too_many_connections");
	http_open(&third, &l);
	assert_int_equal(http_ask(&third, "POST", "/api", token, "{\"op\":\"hello\"}"), 200);
	http_close(&third);
	http_close(&h); /* a page that has gone makes room */
	while (l.d->http->n_pages)
		local_run(&l, 0.0);
	open_page(&h, token);
	assert_int_equal(l.d->http->n_pages, 1);
}

HTTP_TEST(test_a_page_is_a_connection_for_as_long_as_it_is_open)
{
	start(TCP);
	open_page(&h, NULL);
	json_free(http_event(&h));
	local_run(&l, 1.2); /* over a sweep of those that have gone */
	assert_int_equal(l.d->http->n_open, 1);
	http_close(&h);
	while (l.d->http->n_open)
		local_run(&l, 0.01);
}

HTTP_TEST(test_what_a_page_sends_while_it_listens_does_not_pile_up)
{
	static char much[1 << 20];
	size_t held, most = 0;

	start(TCP);
	open_page(&h, NULL);
	for (int i = 0; i < 200; i++) {
		send(h.fd, much, sizeof much, MSG_NOSIGNAL | MSG_DONTWAIT);
		event_base_loop(l.d->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		assert_int_equal(l.d->http->n_open, 1);
		held = evbuffer_get_length(bufferevent_get_input(l.d->http->open[0].bev));
		most = held > most ? held : most;
	}
	assert_in_range(most, 1, 2 * (HTTP_MAX_HEADERS + HTTP_MAX_BODY));
	json_free(http_event(&h)); /* and it is served all the same */
	json_free(http_event(&h));
}

/* Over a Unix socket, whose buffer does not grow: the kernel takes less of what is not read. h2 reads
 * nothing but the first event, h reads all. */
static void open_slow_page(char token[120])
{
	static char settings[200];
	struct json *v;

	snprintf(settings, sizeof settings, "\"slots\":1,\"http\":{\"listen\":\"%s/http\"},", l.dir);
	start(settings);
	for (int i = 0; i < 60; i++)
		client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	snprintf(token, 120, "%s", bearer_of(&c));
	open_page(&h2, token);
	open_page(&h, token);
	json_free(http_event(&h));
	for (int i = 0; i < 60; i++) {
		events_tick(-1, 0, l.d->http);
		v = http_event(&h); /* the other page hears every update */
		assert_true(number_at(v, "stats.jobs.queued") == 60.0);
		json_free(v);
	}
}

static size_t most_unread(void)
{
	size_t most = 0;

	for (size_t i = 0; i < l.d->http->n_open; i++) {
		size_t n = evbuffer_get_length(bufferevent_get_output(l.d->http->open[i].bev));

		most = n > most ? n : most;
	}
	return most;
}

HTTP_TEST(test_a_page_that_does_not_read_holds_up_nobody_and_costs_a_megabyte_at_most)
{
	char token[120];
	struct json *v;

	open_slow_page(token);
	assert_true(most_unread() > 1 << 20); /* it was passed over only then */
	assert_true(most_unread() < (1 << 20) + 2 * h.body.len);
	json_free(http_event(&h2)); /* when it reads again it hears what was kept, each event whole */
	v = http_event(&h2);
	assert_true(number_at(v, "stats.jobs.queued") == 60.0);
	json_free(v);
}

/* What it did not read must not reach the one that gets its descriptor next. */
HTTP_TEST(test_a_page_that_goes_with_much_unread_leaves_nothing_to_the_next_connection)
{
	char token[120];

	open_slow_page(token);
	http_close(&h2);
	while (l.d->http->n_pages == 2)
		event_base_loop(l.d->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	http_open(&h2, &l);
	assert_int_equal(http_ask(&h2, "GET", "/app.js", NULL, NULL), 200);
	assert_non_null(strstr(http_header(&h2, "Content-Type"), "javascript"));
	assert_int_equal(h2.in.len, 0);
	assert_int_equal(http_ask(&h2, "GET", "/", NULL, NULL), 200);
	assert_int_equal(h2.in.len, 0);
}
