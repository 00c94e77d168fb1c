/* One connection: its life, and how bytes become lines. What it sends is in conn_out.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/daemon/net/server_internal.h"

#define CLOCK_EVERY 4 /* lines between two looks at the clock */
#define KEEP_INPUT 4096 /* a larger buffer is given back as soon as it is empty */

/* ---- input ---- */

/* May lines be handed over now? */
static bool may_take(struct conn *c)
{
	if (!c->throttled && conn_is_full(c))
		c->throttled = true;
	return !c->throttled && !c->closing;
}

/* A line of len bytes, its newline taken off; there is a byte behind it. */
static void take_line(struct conn *c, char *line, size_t len)
{
	const struct server_handler *h = &c->server->handler;

	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len == 0)
		return;
	c->active_ns = c->server->now_ns;
	if (len > SERVER_MAX_LINE) {
		conn_refuse(c, "line_too_long", "a line has at most 65536 bytes");
		return;
	}
	line[len] = '\0';
	h->on_line(h->owner, c, line, len);
}

/* Without its newline yet; a carriage return at the end may turn out to belong to that. */
static bool is_too_long(const char *line, size_t len)
{
	return len > SERVER_MAX_LINE + 1 || (len == SERVER_MAX_LINE + 1 && line[len - 1] != '\r');
}

struct slice {
	size_t lines, max_lines;
	int64_t until_ns;
};

static bool slice_left(struct slice *s)
{
	if (s->lines && s->lines % CLOCK_EVERY == 0 && clock_monotonic_ns() >= s->until_ns)
		s->max_lines = s->lines;
	return s->lines < s->max_lines;
}

/* Hands over the whole lines at the start of buf; returns how many bytes are done with. */
static size_t take_lines(struct conn *c, char *buf, size_t len, struct slice *slice)
{
	size_t at = 0;

	while (at < len && may_take(c) && slice_left(slice)) {
		char *line = buf + at, *end = memchr(line + c->in_scanned, '\n', len - at - c->in_scanned);

		if (!end) {
			c->in_scanned = len - at;
			if (c->skipping)
				at = len;
			if (!c->skipping && is_too_long(line, len - at)) {
				c->skipping = true;
				at = len;
				slice->lines++;
				conn_refuse(c, "line_too_long", "a line has at most 65536 bytes");
			}
			break;
		}
		c->in_scanned = 0;
		at += (size_t)(end - line) + 1;
		slice->lines++;
		if (c->skipping)
			c->skipping = false;
		else
			take_line(c, line, (size_t)(end - line));
	}
	if (at == len)
		c->in_scanned = 0;
	return at;
}

/* The rest of what was read stays with the connection until there is more; `rest` may lie in c->in. */
static void keep_rest(struct conn *c, const char *rest, size_t len)
{
	void *in = c->in;

	if (len == 0) {
		if (c->in_cap > KEEP_INPUT) {
			free(c->in);
			c->in = NULL;
			c->in_cap = 0;
		}
		c->in_len = 0;
		return;
	}
	if (len + 1 > c->in_cap) { /* then rest lies elsewhere */
		if (mem_grow(&in, &c->in_cap, len + 1, 1)) {
			c->in_len = 0;
			conn_break_off(c);
			return;
		}
		c->in = in;
	}
	memmove(c->in, rest, len);
	c->in_len = len;
}

/* Has the peer closed the connection, and not just its own side? */
static bool is_gone(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}

/* One read behind what is there. Small rests go through the server's buffer, so that an idle connection keeps
 * no buffer. The rest of a long line stays where it is, so that it is not copied for every few bytes that
 * come. */
static void read_more(struct conn *c, struct slice *slice)
{
	struct server *s = c->server;
	char *buf = s->read_buffer;
	size_t len = c->in_len, done;
	ssize_t n;

	if (len > SERVER_SMALL_REST) {
		void *in = c->in;

		if (mem_grow(&in, &c->in_cap, len + SERVER_READ_CHUNK + 1, 1)) {
			conn_break_off(c);
			return;
		}
		buf = c->in = in;
	}
	do {
		n = recv(c->fd, buf + len, SERVER_READ_CHUNK, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	c->readable = false;
	if (n < 0) {
		if (errno != EAGAIN)
			conn_break_off(c);
		return;
	}
	if (n == 0) {
		c->eof = true;
		if (c->watching && is_gone(c)) /* else it closed its side only, and listens on */
			conn_break_off(c);
		return;
	}
	if (buf != c->in && len)
		memcpy(buf, c->in, len);
	len += (size_t)n;
	c->in_len = 0;
	done = take_lines(c, buf, len, slice);
	keep_rest(c, buf + done, len - done);
}

size_t conn_serve(struct conn *c, size_t max_lines, int64_t until_ns)
{
	struct slice slice = { .max_lines = max_lines, .until_ns = until_ns };

	/* Lines left over from the last turn come first; in_scanned says when none is. */
	if (c->in_len > c->in_scanned) {
		size_t done = take_lines(c, c->in, c->in_len, &slice);

		keep_rest(c, c->in + done, c->in_len - done);
	}
	if (c->in_len == c->in_scanned && c->readable && !c->eof && may_take(c) && slice_left(&slice))
		read_more(c, &slice);
	/* The end, and the last line has no newline. */
	if (c->eof && c->in_len > 0 && c->in_len == c->in_scanned && may_take(c) && slice_left(&slice)) {
		size_t len = c->in_len;

		slice.lines++;
		c->in_len = c->in_scanned = 0;
		if (!c->skipping)
			take_line(c, c->in, len);
	}
	if (c->closing)
		c->in_len = c->in_scanned = 0;
	else if (!c->throttled && (c->in_len > c->in_scanned || (c->eof && c->in_len)))
		server_add_ready(c); /* lines are left */
	return slice.lines;
}

/* ---- life ---- */

static void on_readable(evutil_socket_t fd, short what, void *conn)
{
	struct conn *c = conn;

	(void)fd;
	(void)what;
	c->readable = true;
	server_add_ready(c);
}

static void on_writable(evutil_socket_t fd, short what, void *conn)
{
	(void)fd;
	(void)what;
	server_add_dirty(conn);
}

static void set_event(struct conn *c, struct event *e, bool *is_on, bool on)
{
	if (*is_on == on)
		return;
	*is_on = on;
	if (!on)
		event_del(e);
	else if (event_add(e, NULL) < 0)
		conn_break_off(c);
}

static bool is_finished(const struct conn *c)
{
	if (c->broken)
		return true;
	if (c->n_waiting || c->out.len)
		return false;
	return c->closing || (c->eof && c->in_len == 0 && !c->watching);
}

void conn_settle(struct conn *c)
{
	conn_send(c);
	conn_count(c);
	if (conn_streams(c))
		server_add_streaming(c);
	if (c->throttled && conn_has_room(c)) {
		c->throttled = false;
		server_add_ready(c); /* lines may be left over */
	}
	if (!is_finished(c)) {
		set_event(c, &c->write_event, &c->write_on, c->out.len > 0);
		set_event(c, &c->read_event, &c->read_on, !c->throttled && !c->closing && !c->eof);
	}
	if (is_finished(c))
		conn_free(c);
}

void conn_sweep(struct conn *c, int64_t now_ns)
{
	double idle_s = c->server->limit.idle_timeout_s;

	/* One that waits for us has its time once that is there; of a reply in parts, when there is a part.
	 * */
	if (c->n_waiting && !c->out.len)
		return;
	if (c->closing) {
		if (now_ns - c->active_ns > SERVER_LINGER_NS)
			conn_break_off(c);
		return;
	}
	if (c->watching) {
		/* One that closed its side and watches on is not read, so only asking shows that it is
		 * gone. */
		if (c->eof && is_gone(c))
			conn_break_off(c);
		return;
	}
	if (idle_s > 0.0 && (double)(now_ns - c->active_ns) > idle_s * 1e9) {
		conn_refuse(c, "idle_timeout", "nothing was asked for too long");
		conn_close(c);
	}
}

int conn_new(struct server *s, int fd, const struct ucred *peer, struct uid_count *user)
{
	struct conn *c = mem_calloc(1, sizeof *c);
	const char *text;
	size_t len = 0;

	if (!c)
		return -1;
	c->server = s;
	c->fd = fd;
	c->uid = peer->uid;
	c->gid = peer->gid;
	c->user = user;
	c->active_ns = clock_monotonic_ns();
	TAILQ_INIT(&c->replies);
	event_assign(&c->read_event, s->base, fd, EV_READ | EV_PERSIST, on_readable, c);
	event_assign(&c->write_event, s->base, fd, EV_WRITE | EV_PERSIST, on_writable, c);
	if (event_add(&c->read_event, NULL) < 0) {
		free(c);
		return -1;
	}
	c->read_on = true;
	TAILQ_INSERT_TAIL(&s->conns, c, link);
	s->n_conns++;
	text = s->handler.greeting ? s->handler.greeting(s->handler.owner, c, &len) : NULL;
	if (text)
		conn_reply(c, text, len, 0);
	return 0;
}

void conn_free(struct conn *c)
{
	struct server *s = c->server;

	c->closing = c->broken = c->dead = true; /* whatever the handler still says about it is dropped */
	if (s->handler.on_close)
		s->handler.on_close(s->handler.owner, c);
	conn_drop_replies(c);
	set_event(c, &c->read_event, &c->read_on, false);
	set_event(c, &c->write_event, &c->write_on, false);
	if (c->ready) {
		TAILQ_REMOVE(&s->ready, c, ready_link);
		s->n_ready--;
	}
	if (c->dirty)
		TAILQ_REMOVE(&s->dirty, c, dirty_link);
	if (c->streaming)
		TAILQ_REMOVE(&s->streaming, c, stream_link);
	TAILQ_REMOVE(&s->conns, c, link);
	s->n_conns--;
	conn_out_release(c);
	conn_count(c);
	server_uncount(s, c->uid);
	close(c->fd);
	free(c->in);
	free(c);
}

/* ---- what a handler may ask ---- */

uid_t conn_uid(const struct conn *c)
{
	return c->uid;
}

gid_t conn_gid(const struct conn *c)
{
	return c->gid;
}

/* By the tables of the system: the other end of the socket is the daemon itself. */
static bool adopted_in_group(const struct conn *c, gid_t group)
{
	struct passwd entry, *found = NULL;
	gid_t gid[256];
	int n = 256;
	char text[4096];

	if (getpwuid_r(c->uid, &entry, text, sizeof text, &found) || !found ||
	    getgrouplist(entry.pw_name, entry.pw_gid, gid, &n) < 0)
		return false;
	for (int i = 0; i < n; i++) {
		if (gid[i] == group)
			return true;
	}
	return false;
}

bool conn_in_group(const struct conn *c, gid_t group)
{
	gid_t few[64], *gid = few;
	socklen_t size = sizeof few;
	bool found = c->gid == group;
	int rc;

	if (found || c->adopted)
		return found || adopted_in_group(c, group);
	rc = getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, gid, &size);
	if (rc < 0 && errno == ERANGE) { /* size is now what it takes */
		gid = mem_alloc(size);
		if (!gid)
			return false;
		rc = getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, gid, &size);
	}
	for (size_t i = 0; rc == 0 && !found && i < size / sizeof *gid; i++)
		found = gid[i] == group;
	if (gid != few)
		free(gid);
	return found;
}

void conn_set_watching(struct conn *c, bool on)
{
	c->watching = on;
	if (!on) {
		c->active_ns = clock_monotonic_ns();
		server_add_dirty(c); /* it may be the last thing that kept it open */
	}
}
