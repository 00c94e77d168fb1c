/* What a connection sends: replies in the order of the requests, events between them. `out` holds what may be
 * sent; replies that wait for a commit or an answer, and those behind them, are queued until then. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/daemon/net/server_internal.h"

#define FEW_BYTES 4096
#define KEEP_OUTPUT ((size_t)512 << 10) /* a larger buffer is not worth keeping for the next who writes */

static size_t unsent(const struct conn *c)
{
	return c->out.len + c->waiting_bytes;
}

void conn_count(struct conn *c)
{
	c->user->bytes += unsent(c) - c->counted;
	c->counted = unsent(c);
}

/* Its user has too much unread output. A connection with little of it goes on: it may be the one that is
 * read. */
static bool user_is_full(const struct conn *c)
{
	size_t max = c->server->limit.max_output_bytes_per_uid;

	return max && c->user->bytes > max && unsent(c) > FEW_BYTES;
}

bool conn_is_full(const struct conn *c)
{
	return user_is_full(c) || unsent(c) > c->server->limit.max_output_bytes / 4 ||
	       c->n_waiting >= SERVER_MAX_WAITING || c->n_held >= SERVER_MAX_HELD;
}

bool conn_has_room(const struct conn *c)
{
	return !user_is_full(c) && unsent(c) <= c->server->limit.max_output_bytes / 8 &&
	       c->n_waiting <= SERVER_MAX_WAITING / 2 && c->n_held <= SERVER_MAX_HELD / 2;
}

/* ---- output ---- */

void conn_out_release(struct conn *c)
{
	struct server *s = c->server;

	if (c->out.bytes && s->n_spare < SERVER_SPARE_OUTPUTS && c->out.cap <= KEEP_OUTPUT)
		s->spare[s->n_spare++] = c->out;
	else
		free(c->out.bytes);
	c->out = (struct output){ 0 };
}

void conn_break_off(struct conn *c)
{
	c->broken = c->closing = true;
	conn_out_release(c);
	server_add_dirty(c);
}

static void out_add(struct conn *c, const char *text, size_t len)
{
	struct output *o = &c->out;
	struct server *s = c->server;
	void *bytes;

	if (c->broken || len == 0)
		return;
	if (!o->bytes && s->n_spare > 0) {
		*o = s->spare[--s->n_spare];
		o->start = o->len = 0;
	}
	if (o->cap - o->start - o->len < len) {
		if (o->bytes &&
		    o->start >= o->len) { /* moving less than was sent since the last time stays cheap */
			memmove(o->bytes, o->bytes + o->start, o->len);
			o->start = 0;
		}
		bytes = o->bytes;
		if (len > SIZE_MAX / 4 || mem_grow(&bytes, &o->cap, o->start + o->len + len, 1)) {
			conn_break_off(c); /* leaving a reply out would shift all that follow */
			return;
		}
		o->bytes = bytes;
	}
	memcpy(o->bytes + o->start + o->len, text, len);
	o->len += len;
	server_add_dirty(c);
}

void conn_send(struct conn *c)
{
	struct output *o = &c->out;
	ssize_t n;

	if (o->len == 0 || c->broken)
		return;
	do {
		n = send(c->fd, o->bytes + o->start, o->len, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		if (errno != EAGAIN && errno != ENOBUFS)
			conn_break_off(c);
		return;
	}
	if (n > 0)
		c->inside_line = o->bytes[o->start + (size_t)n - 1] != '\n';
	c->active_ns = clock_monotonic_ns();
	o->start += (size_t)n;
	o->len -= (size_t)n;
	if (o->len == 0)
		conn_out_release(c);
}

/* ---- replies ---- */

static void reply_free(struct reply *r)
{
	if (r->streamed)
		r->source.release(r->source.owner);
	if (r->text != (char *)(r + 1))
		free(r->text);
	free(r);
}

static struct reply *reply_queue(struct conn *c, const char *text, size_t len, uint64_t ticket)
{
	struct reply *r = mem_alloc(sizeof *r + len);

	if (!r)
		return NULL;
	*r = (struct reply){
		.conn = c, .ticket = ticket, .held = !text, .len = len, .text = (char *)(r + 1)
	};
	if (len)
		memcpy(r->text, text, len);
	TAILQ_INSERT_TAIL(&c->replies, r, link);
	c->n_waiting++;
	c->n_held += r->held;
	c->waiting_bytes += len;
	if (!c->waiting) {
		c->waiting = true;
		TAILQ_INSERT_TAIL(&c->server->waiting, c, waiting_link);
	}
	return r;
}

static void reply_unqueue(struct conn *c, struct reply *r)
{
	TAILQ_REMOVE(&c->replies, r, link);
	c->n_waiting--;
	c->n_held -= r->held;
	c->waiting_bytes -= r->len;
	r->conn = NULL;
	if (c->n_waiting == 0) {
		c->waiting = false;
		TAILQ_REMOVE(&c->server->waiting, c, waiting_link);
	}
}

void conn_release(struct conn *c)
{
	struct reply *r;

	while ((r = TAILQ_FIRST(&c->replies)) && !r->held && r->ticket <= c->server->durable) {
		if (r->streamed) {
			server_add_streaming(c);
			return;
		}
		reply_unqueue(c, r);
		out_add(c, r->text, r->len);
		reply_free(r);
		server_add_dirty(c);
	}
}

void conn_drop_replies(struct conn *c)
{
	struct reply *r;

	while ((r = TAILQ_FIRST(&c->replies))) {
		bool held = r->held;

		reply_unqueue(c, r);
		if (!held) /* else reply_fill() does */
			reply_free(r);
	}
}

void conn_reply(struct conn *c, const char *text, size_t len, uint64_t ticket)
{
	if (c->closing)
		return;
	if (c->n_waiting == 0 && ticket <= c->server->durable)
		out_add(c, text, len);
	else if (!reply_queue(c, len ? text : "", len, ticket))
		conn_break_off(c);
}

struct reply *conn_hold(struct conn *c)
{
	struct reply *r;

	if (c->closing) { /* no one will read it; the caller need not know */
		r = mem_calloc(1, sizeof *r);
		if (r)
			r->text = (char *)(r + 1);
		return r;
	}
	r = reply_queue(c, NULL, 0, 0);
	if (!r)
		conn_break_off(c);
	return r;
}

void reply_fill(struct reply *r, const char *text, size_t len)
{
	struct conn *c = r->conn;
	char *copy;

	if (!c) {
		reply_free(r);
		return;
	}
	assert(r->held);
	copy = len ? mem_strndup(text, len) : NULL;
	if (len && !copy) {
		reply_unqueue(c, r);
		reply_free(r);
		conn_break_off(c);
		return;
	}
	if (copy)
		r->text = copy;
	r->len = len;
	r->held = false;
	c->n_held--;
	c->waiting_bytes += len;
	c->active_ns = clock_monotonic_ns(); /* it waited for us */
	conn_release(c);
}

/* ---- replies in parts ---- */

void reply_stream(struct reply *r, const struct reply_source *source)
{
	struct conn *c = r->conn;

	r->streamed = true;
	r->source = *source;
	if (!c) {
		reply_free(r);
		return;
	}
	assert(r->held);
	r->held = false;
	c->n_held--;
	c->active_ns = clock_monotonic_ns();
	conn_release(c);
}

void reply_wake(struct reply *r)
{
	r->waits = false;
	if (r->conn && r == TAILQ_FIRST(&r->conn->replies))
		server_add_streaming(r->conn);
}

bool conn_streams(const struct conn *c)
{
	const struct reply *r = TAILQ_FIRST(&c->replies);

	return r && r->streamed && !r->waits && !c->broken && !user_is_full(c) &&
	       c->out.len < SERVER_PART_ROOM;
}

void conn_make_part(struct conn *c)
{
	struct reply *r = TAILQ_FIRST(&c->replies);
	struct strbuf *part = &c->server->part;
	enum reply_part state;

	strbuf_reset(part);
	state = r->source.make(r->source.owner, part);
	r->waits = state == REPLY_WAITS;
	if (state == REPLY_FAILED || part->failed) {
		strbuf_release(part);
		conn_break_off(c);
		return;
	}
	out_add(c, part->text, part->len);
	if (state != REPLY_COMPLETE || c->broken)
		return;
	reply_unqueue(c, r);
	reply_free(r);
	c->active_ns = clock_monotonic_ns();
	conn_release(c); /* those behind it */
}

void conn_refuse(struct conn *c, const char *code, const char *message)
{
	size_t len = 0;
	const char *text = c->server->handler.refusal(c->server->handler.owner, code, message, &len);

	if (text)
		conn_reply(c, text, len, 0);
}

/* Drops what was not sent yet, but for the rest of a line of which the peer has the beginning. */
static void drop_unsent(struct conn *c)
{
	struct output *o = &c->out;
	const char *end;

	conn_drop_replies(c);
	if (!c->inside_line) {
		conn_out_release(c);
		return;
	}
	end = o->len ? memchr(o->bytes + o->start, '\n', o->len) : NULL;
	if (end)
		o->len = (size_t)(end + 1 - (o->bytes + o->start));
	else
		out_add(c, "\n", 1); /* of a reply whose other parts were not made yet */
}

void conn_push(struct conn *c, const char *text, size_t len)
{
	const struct server_handler *h = &c->server->handler;
	size_t max = c->server->limit.max_output_bytes, last_len = 0;
	const char *last;

	if (c->closing)
		return;
	conn_count(c);
	if (len > max || unsent(c) > max - len || user_is_full(c))
		conn_send(c); /* much may have come up in one turn: the peer had no chance to read it yet */
	if (c->closing)
		return;
	conn_count(c);
	if (len <= max && unsent(c) <= max - len && !user_is_full(c)) {
		/* Behind replies that wait: that a job was taken is heard before what became of it. */
		conn_reply(c, text, len, 0);
		return;
	}
	drop_unsent(c);
	last = h->refusal(h->owner, "slow_reader", "too much output was not read", &last_len);
	if (last)
		out_add(c, last, last_len);
	conn_close(c);
}

void conn_close(struct conn *c)
{
	if (c->closing)
		return;
	c->closing = true;
	c->active_ns = clock_monotonic_ns(); /* from here the time to read the rest is counted */
	server_add_dirty(c);
}
