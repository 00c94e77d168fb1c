/* POST /api: one request of the protocol (docs/PROTOCOL.md) in the body, its reply in the answer. It goes
 * through a connection of the daemon's own server that has the identity of the token's user, so that
 * rights, limits and every number are those of the Unix socket. Only ops that a page needs are let
 * through. See http.h. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "scheduler/daemon/http/http_internal.h"

static const char *const allowed[] = { "hello",  "stats",  "list",    "status", "explain",
				       "output", "models", "predict", "cancel" };

struct bridge {
	struct http *h;
	struct evhttp_request *request; /* NULL: the browser has gone */
	struct evhttp_connection *connection;
	struct bufferevent *bev; /* our end */
	bool greeted;
};

static void bridge_free(struct bridge *b)
{
	if (b->request)
		evhttp_connection_set_closecb(b->connection, NULL, NULL);
	bufferevent_free(b->bev); /* closes; the server notices */
	free(b);
}

static void on_gone(struct evhttp_connection *connection, void *arg)
{
	struct bridge *b = arg;

	(void)connection;
	http_drop(b->request);
	b->request = NULL;
	bridge_free(b);
}

static void on_reply(struct bufferevent *bev, void *arg)
{
	struct bridge *b = arg;
	struct evbuffer *in = bufferevent_get_input(bev), *body;
	size_t len;
	char *line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);

	if (line && !b->greeted) {
		b->greeted = true;
		free(line);
		line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);
	}
	if (!line)
		return;
	body = evbuffer_new();
	if (body && !evbuffer_add(body, line, len))
		http_send(b->request, 200, "application/json", body);
	else
		http_error(b->request, 500, "internal", "out of memory");
	if (body)
		evbuffer_free(body);
	free(line);
	bridge_free(b);
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
	struct bridge *b = arg;

	(void)bev;
	(void)what;
	http_error(b->request, 503, "too_many_connections", "the daemon has no connection left for this");
	bridge_free(b);
}

static bool is_allowed(const char *body, size_t len)
{
	struct json *v = NULL;
	const char *op;
	bool found = false;

	if (json_parse("request", body, len, &v, NULL))
		return true; /* the server says what is wrong with it */
	op = json_string(json_get(v, "op"), "");
	for (size_t i = 0; !found && i < sizeof allowed / sizeof *allowed; i++)
		found = !strcmp(op, allowed[i]);
	json_free(v);
	return found;
}

static struct bridge *bridge_new(struct http *h, struct evhttp_request *r, uid_t uid)
{
	struct bridge *b = mem_calloc(1, sizeof *b);
	int end[2];

	if (!b || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, end)) {
		free(b);
		return NULL;
	}
	b->bev = bufferevent_socket_new(h->d->base, end[0], BEV_OPT_CLOSE_ON_FREE);
	if (!b->bev || server_adopt(h->d->server, end[1], uid)) {
		if (b->bev)
			bufferevent_free(b->bev);
		else
			close(end[0]);
		close(end[1]);
		free(b);
		return NULL;
	}
	b->h = h;
	b->request = r;
	b->connection = evhttp_request_get_connection(r);
	return b;
}

void api_request(struct http *h, struct evhttp_request *r, const struct http_who *who)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(r);
	size_t len = evbuffer_get_length(in);
	char *body = (char *)evbuffer_pullup(in, -1);
	struct bridge *b;

	if (!len || !body || len > SERVER_MAX_LINE) {
		http_error(r, 400, "bad_json", "the body is one request of the protocol, as JSON");
		return;
	}
	/* One line; inside of a JSON string a raw line end is no JSON. First, so that what is checked is
	 * what will be parsed. */
	for (size_t i = 0; i < len; i++) {
		if (body[i] == '\n' || body[i] == '\r')
			body[i] = ' ';
	}
	if (!is_allowed(body, len)) {
		http_error(r, 403, "not_permitted", "this op is not for pages; use the socket");
		return;
	}
	b = bridge_new(h, r, who->token.uid);
	if (!b) {
		http_error(r, 503, "too_many_connections", "the daemon has no connection left for this");
		return;
	}
	evhttp_connection_set_closecb(b->connection, on_gone, b);
	bufferevent_setcb(b->bev, on_reply, NULL, on_end, b);
	bufferevent_enable(b->bev, EV_READ | EV_WRITE);
	bufferevent_write(b->bev, body, len);
	bufferevent_write(b->bev, "\n", 1);
}
