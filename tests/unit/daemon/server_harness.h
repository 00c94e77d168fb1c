/* A server with a handler that does what its lines say, and clients in the same thread: whoever waits for a
 * line runs the loop meanwhile, so that everything happens in a known order.
 *
 *   H         the reply is held until the test fills it      T<n> ...  the reply waits for ticket n
 *   C         closes its connection, then answers            X         closes all other connections
 *   W, U      watches, does not any more                     B<n>      answers n bytes
 * Anything else is answered by its length and text, "4:text". */
#ifndef TESTS_UNIT_DAEMON_SERVER_HARNESS_H
#define TESTS_UNIT_DAEMON_SERVER_HARNESS_H

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/strbuf.h"
#include "scheduler/daemon/net/server.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define MAX_REPLIES 4096
#define GREETING "hello\n"

struct rig {
	struct event_base *base;
	struct server *server;
	char path[108];
	struct conn *conn[MAX_REPLIES]; /* as greeted; NULL: closed */
	size_t n_conns, n_closed, n_lines, n_turns;
	struct reply *held[MAX_REPLIES];
	size_t n_held;
	uint64_t commit; /* on_turn makes this durable, then forgets it */
	struct strbuf text;
};

struct client {
	int fd;
	struct rig *rig;
	struct strbuf got;
	size_t read; /* of got */
	bool eof;
};

static inline double rig_clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void rig_line(void *owner, struct conn *c, char *line, size_t len)
{
	struct rig *r = owner;

	r->n_lines++;
	assert_int_equal(line[len], '\0');
	strbuf_reset(&r->text);
	if (strcmp(line, "H") == 0) {
		assert_true(r->n_held < MAX_REPLIES);
		r->held[r->n_held] = conn_hold(c);
		r->n_held += r->held[r->n_held] != NULL;
		return;
	}
	if (strcmp(line, "C") == 0)
		conn_close(c);
	if (strcmp(line, "X") == 0)
		for (size_t i = 0; i < r->n_conns; i++)
			if (r->conn[i] && r->conn[i] != c)
				conn_close(r->conn[i]);
	if (strcmp(line, "W") == 0 || strcmp(line, "U") == 0)
		conn_set_watching(c, line[0] == 'W');
	if (line[0] == 'B')
		for (long i = atol(line + 1); i > 1; i--)
			strbuf_add(&r->text, "b", 1);
	else
		strbuf_printf(&r->text, "%zu:%.40s", len, line);
	strbuf_add(&r->text, "\n", 1);
	if (!r->text.failed)
		conn_reply(c, r->text.text, r->text.len, line[0] == 'T' ? strtoull(line + 1, NULL, 10) : 0);
	memset(line, '!', len); /* lines may be scribbled on */
}

static inline const char *rig_greeting(void *owner, struct conn *c, size_t *out_len)
{
	struct rig *r = owner;

	if (r->n_conns < MAX_REPLIES)
		r->conn[r->n_conns++] = c;
	*out_len = strlen(GREETING);
	return GREETING;
}

static inline const char *rig_refusal(void *owner, const char *code, const char *message, size_t *out_len)
{
	static char text[256];

	(void)owner;
	*out_len = (size_t)snprintf(text, sizeof text, "!%s %s\n", code, message);
	return text;
}

static inline void rig_close(void *owner, struct conn *c)
{
	struct rig *r = owner;

	r->n_closed++;
	conn_reply(c, "too late\n", 9, 0); /* must do no harm */
	for (size_t i = 0; i < r->n_conns; i++)
		if (r->conn[i] == c)
			r->conn[i] = NULL;
}

static inline void rig_turn(void *owner)
{
	struct rig *r = owner;

	r->n_turns++;
	if (r->commit)
		server_durable(r->server, r->commit);
	r->commit = 0;
}

static inline struct server_params rig_params(struct rig *r)
{
	return (struct server_params){ .base = r->base,
				       .path = r->path,
				       .mode = 0600,
				       .listen_fd = -1,
				       .handler = { r, rig_line, rig_greeting, rig_refusal, rig_close,
						    rig_turn } };
}

/* Without a server yet. */
static inline void rig_init(struct rig *r)
{
	static int serial;

	*r = (struct rig){ .base = event_base_new() };
	assert_non_null(r->base);
	snprintf(r->path, sizeof r->path, "%s/s%d.sock", support_temp_dir(), serial++);
}

static inline void rig_start(struct rig *r, const struct server_params *p)
{
	struct err err = { 0 };

	if (server_new(p, &r->server, &err))
		fail_msg("%s", err.text);
}

static inline void rig_release(struct rig *r)
{
	server_free(r->server);
	for (size_t i = 0; i < r->n_held; i++) /* every reply held is filled, also when all is over */
		reply_fill(r->held[i], "late\n", 5);
	event_base_free(r->base);
	strbuf_release(&r->text);
	assert_int_equal(r->n_closed, r->n_conns);
}

/* One turn of the loop, without waiting. */
static inline void rig_pump(struct rig *r)
{
	event_base_loop(r->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static inline void rig_pump_for(struct rig *r, double s)
{
	double until = rig_clock_s() + s;

	do {
		rig_pump(r);
		usleep(500);
	} while (rig_clock_s() < until);
}

/* Until the server has noticed who went. */
static inline void rig_wait_for(struct rig *r, size_t n_conns)
{
	double until = rig_clock_s() + 20.0;

	while (server_connections(r->server) != n_conns) {
		assert_true(rig_clock_s() < until);
		rig_pump(r);
	}
}

static inline int client_try(struct rig *r, struct client *c)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*c = (struct client){ .rig = r,
			      .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) };
	assert_true(c->fd >= 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", r->path);
	return connect(c->fd, (struct sockaddr *)&address, sizeof address);
}

/* Sends all, running the loop while the socket is full. */
static inline void client_send(struct client *c, const void *bytes, size_t len)
{
	const char *p = bytes;
	double until = rig_clock_s() + 20.0;

	while (len > 0) {
		ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);

		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_true(rig_clock_s() < until);
			rig_pump(c->rig);
			continue;
		}
		p += n;
		len -= (size_t)n;
	}
}

static inline void client_puts(struct client *c, const char *text)
{
	client_send(c, text, strlen(text));
}

/* Takes what is there. */
static inline void client_read(struct client *c)
{
	char buf[65536];
	ssize_t n;

	while (!c->eof && (n = recv(c->fd, buf, sizeof buf, 0)) != -1) {
		c->eof = n == 0;
		strbuf_add(&c->got, buf, (size_t)n);
	}
	if (!c->eof)
		c->eof = errno != EAGAIN;
}

/* The next line without its newline, valid until the next call; NULL: the server closed. */
static inline const char *client_line(struct client *c)
{
	double until = rig_clock_s() + 20.0;

	if (c->read == c->got.len)
		c->read = c->got.len = 0;
	for (;;) {
		char *start = c->got.text ? c->got.text + c->read : NULL;
		char *end = start ? memchr(start, '\n', c->got.len - c->read) : NULL;

		if (end) {
			*end = '\0';
			c->read += (size_t)(end - start) + 1;
			return start;
		}
		if (c->eof)
			return NULL;
		assert_true(rig_clock_s() < until);
		rig_pump(c->rig);
		client_read(c);
	}
}

static inline void expect_line(struct client *c, const char *want)
{
	const char *got = client_line(c);

	if (!got)
		fail_msg("the server closed instead of saying '%s'", want);
	assert_string_equal(got, want);
}

static inline void expect_end(struct client *c)
{
	const char *got = client_line(c);

	if (got)
		fail_msg("'%s' instead of the end", got);
	assert_int_equal(c->read, c->got.len); /* and no half line */
}

/* Nothing more is said, for now. */
static inline void expect_silence(struct client *c)
{
	for (int i = 0; i < 5; i++)
		rig_pump(c->rig);
	client_read(c);
	assert_false(c->eof);
	assert_int_equal(c->read, c->got.len);
}

static inline void client_open(struct rig *r, struct client *c)
{
	assert_int_equal(client_try(r, c), 0);
	expect_line(c, "hello");
}

static inline void client_close(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	strbuf_release(&c->got);
}

#endif
