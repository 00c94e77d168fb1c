/* A whole daemon in the process of the test. See local_daemon.h. */
#define _GNU_SOURCE
#include "tests/unit/daemon/local_daemon.h"

#include <cblas.h>
#include <errno.h>
#include <grp.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/io.h"
#include "common/json/json.h"
#include "tests/support/support.h"

#define PATIENCE_S 30.0 /* for a loaded machine under a sanitizer; a test that passes does not wait */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void local_open(struct local_daemon *l)
{
	static int serial;

	*l = (struct local_daemon){ .settings = "", .types = "" };
	signal(SIGPIPE, SIG_IGN);
	gsl_set_error_handler_off();
	openblas_set_num_threads(1);
	support_find_supervisor();
	snprintf(l->dir, sizeof l->dir, "%.80s/d%d", support_temp_dir(), serial++);
	assert_int_equal(chmod(support_temp_dir(), 0711), 0); /* other users reach the socket */
	assert_int_equal(mkdir(l->dir, 0711), 0);
	assert_int_equal(chmod(l->dir, 0711), 0);
	snprintf(l->config, sizeof l->config, "%s/config.json", l->dir);
	snprintf(l->socket, sizeof l->socket, "%s/socket", l->dir);
	snprintf(l->state, sizeof l->state, "%s/state", l->dir);
}

void local_write_config(const struct local_daemon *l)
{
	struct strbuf b = { 0 };
	struct err err = { 0 };

	strbuf_printf(&b, "{\"socket\":\"%s\",\"socket_mode\":\"0666\",\"state_dir\":\"%s\",\"cores\":2,",
		      l->socket, l->state);
	if (l->model)
		strbuf_printf(&b, "\"model\":\"%s\",", l->model);
	else if (!strstr(l->settings, "\"policy\""))
		strbuf_puts(&b, "\"policy\":\"fixed:128\",");
	strbuf_printf(&b,
		      "%s\"outside_load\":false,\"memory_mb\":4000,\"log\":{\"level\":\"error\"},\"types\":{",
		      l->settings);
	strbuf_puts(&b, "\"advised\":{\"batches\":[64,128,256,512],\"params\":{"
			"\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},"
			"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":20,\"default\":2},"
			"\"samples\":{\"kind\":\"integer\",\"min\":1,\"default\":12000}}},");
	strbuf_puts(
		&b,
		"\"sleepy\":{\"batches\":[128],\"argv\":[\"/bin/sh\",\"-c\",\"sleep $1 # {batch}\",\"sh\","
		"\"{seconds}\"],\"params\":{\"seconds\":{\"kind\":\"number\",\"default\":0}}}");
	strbuf_printf(&b, "%s}}", l->types);
	assert_false(b.failed);
	if (io_write_file(l->config, b.text, b.len, &err))
		fail_msg("%s", err.text);
	strbuf_release(&b);
}

int local_try_start(struct local_daemon *l, struct err *err)
{
	struct daemon_params p = { .config_path = l->config };

	return daemon_new(&p, &l->d, err);
}

void local_start(struct local_daemon *l)
{
	struct err err = { 0 };

	local_write_config(l);
	if (local_try_start(l, &err))
		fail_msg("%s", err.text);
	daemon_changed(l->d);
}

void local_stop(struct local_daemon *l)
{
	daemon_free(l->d);
	l->d = NULL;
}

void local_restart(struct local_daemon *l)
{
	local_stop(l);
	local_start(l);
}

void local_close(struct local_daemon *l)
{
	local_stop(l);
}

void local_run(struct local_daemon *l, double seconds)
{
	double until = now_s() + seconds;

	do {
		event_base_loop(l->d->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		usleep(200);
	} while (now_s() < until);
}

void local_until(struct local_daemon *l, bool (*done)(const struct local_daemon *l))
{
	double until = now_s() + 5.0 * PATIENCE_S; /* a training has the lowest priority */

	while (!done(l)) {
		assert_true(now_s() < until);
		local_run(l, 0.0);
	}
}

/* ---- a client ---- */

static void connect_to(struct local_client *c, struct local_daemon *l)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	*c = (struct local_client){ .l = l,
				    .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
	assert_true(c->fd >= 0);
	snprintf(at.sun_path, sizeof at.sun_path, "%.107s", l->socket);
	if (connect(c->fd, (struct sockaddr *)&at, sizeof at))
		fail_msg("%s: %s", l->socket, strerror(errno));
}

void client_open(struct local_client *c, struct local_daemon *l)
{
	connect_to(c, l);
	json_free(client_hear(c));
}

void client_open_as(struct local_client *c, struct local_daemon *l, uid_t uid, gid_t gid, gid_t group)
{
	if (geteuid() != 0) {
		printf("skipped: needs root, to be another user\n");
		skip();
	}
	/* The kernel notes who connects. The calls of the C library would change the daemon's threads as
	 * well. */
	assert_int_equal(syscall(SYS_setgroups, 1, &group), 0);
	assert_int_equal(syscall(SYS_setresgid, -1, gid, -1), 0);
	assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
	connect_to(c, l);
	assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
	assert_int_equal(syscall(SYS_setresgid, -1, 0, -1), 0);
	assert_int_equal(syscall(SYS_setgroups, 0, NULL), 0);
	json_free(client_hear(c));
}

void client_close(struct local_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	strbuf_release(&c->in);
}

static void say(struct local_client *c, const char *fmt, va_list args)
{
	char line[65536];
	int len = vsnprintf(line, sizeof line - 1, fmt, args);

	assert_true(len > 0 && (size_t)len < sizeof line - 1);
	line[len++] = '\n';
	assert_int_equal(send(c->fd, line, (size_t)len, MSG_NOSIGNAL), len);
}

void client_say(struct local_client *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(c, fmt, args);
	va_end(args);
}

static void take_in(struct local_client *c)
{
	char chunk[65536];
	ssize_t n;

	while (!c->closed && (n = recv(c->fd, chunk, sizeof chunk, 0)) != -1) {
		c->closed = n == 0;
		strbuf_add(&c->in, chunk, (size_t)n);
	}
}

struct json *client_hear(struct local_client *c)
{
	double until = now_s() + PATIENCE_S;

	for (;;) {
		char *start = c->in.text ? c->in.text + c->read : NULL;
		char *end = start ? memchr(start, '\n', c->in.len - c->read) : NULL;
		struct json *v = NULL;
		struct err err = { 0 };

		if (end) {
			if (json_parse("line", start, (size_t)(end - start), &v, &err))
				fail_msg("%s", err.text);
			c->read += (size_t)(end - start) + 1;
			return v;
		}
		if (c->closed)
			return NULL;
		if (now_s() > until)
			fail_msg("the daemon does not answer");
		if (c->l->d)
			local_run(c->l, 0.0);
		take_in(c);
	}
}

static struct json *hear_answer(struct local_client *c)
{
	struct json *v;

	while ((v = client_hear(c)) && json_get(v, "event"))
		json_free(v);
	assert_non_null(v);
	return v;
}

struct json *client_ask(struct local_client *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(c, fmt, args);
	va_end(args);
	return hear_answer(c);
}

const char *client_error(struct local_client *c, const char *fmt, ...)
{
	static char code[64];
	struct json *v;
	va_list args;

	va_start(args, fmt);
	say(c, fmt, args);
	va_end(args);
	v = hear_answer(c);
	snprintf(code, sizeof code, "%s", text_at(v, "error.code"));
	assert_true(json_bool(json_get(v, "ok"), false) == !code[0]);
	json_free(v);
	return code;
}

struct json *client_event(struct local_client *c, const char *name)
{
	struct json *v;

	while ((v = client_hear(c)) && strcmp(text_at(v, "event"), name))
		json_free(v);
	assert_non_null(v);
	return v;
}

uint64_t client_submit(struct local_client *c, const char *members)
{
	struct json *v = client_ask(c, "{\"op\":\"submit\"%s}", members);
	uint64_t id = strtoull(text_at(v, "job.job"), NULL, 10);

	json_free(v);
	return id;
}

const char *text_at(const struct json *v, const char *path)
{
	return json_string(json_path(v, path), "");
}

double number_at(const struct json *v, const char *path)
{
	return json_number(json_path(v, path), NAN);
}
