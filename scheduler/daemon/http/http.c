/* Listening, limits, and which request goes where. See http.h. */
#include <errno.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/http/http_internal.h"

#define SWEEP_S 1

/* ---- connections ---- */

/* evhttp has no limit of connections and does not report their end. So we hold a reference to each: evhttp
 * removes its callbacks when it gives a connection up, and we see that. The one for events stays until
 * then; those for reading and writing come and go. With our reference goes the descriptor. If evhttp
 * closed it before, its events would still be there, and the next descriptor of that number, perhaps a
 * job's, would not be heard. */
static void sweep(struct http *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->n_open; i++) {
		bufferevent_event_cb on_event;

		bufferevent_getcb(h->open[i].bev, NULL, NULL, &on_event, NULL);
		if (on_event)
			h->open[kept++] = h->open[i]; /* in the order in which they were last used */
		else
			bufferevent_decref(h->open[i].bev);
	}
	h->n_open = kept;
}

static size_t n_going(const struct http *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_open; i++)
		n += h->open[i].going;
	return n;
}

/* Whoever has shown no token goes first for one that comes, the longest unused of them: connections that say
 * nothing, or listen without a token, keep nobody out. False: all have shown one. */
static bool close_one(struct http *h)
{
	for (size_t i = 0; i < h->n_open; i++) {
		struct place *p = &h->open[i];

		if (p->known || p->going)
			continue;
		p->going = true;
		/* evhttp hears that the peer has gone */
		shutdown(bufferevent_getfd(p->bev), SHUT_RDWR);
		return true;
	}
	return false;
}

/* While there is no room, nothing is accepted: who comes waits in the kernel's queue. */
static void set_accepting(struct http *h)
{
	bool room = h->n_open < h->max_open + HTTP_GOING;

	if (room && h->n_open - n_going(h) >= h->max_open) {
		room = false;
		for (size_t i = 0; i < h->n_open; i++)
			room |= !h->open[i].known && !h->open[i].going;
	}
	if (room == h->accepting)
		return;
	h->accepting = room;
	if (room)
		evconnlistener_enable(h->listener);
	else
		evconnlistener_disable(h->listener);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	sweep(arg);
	set_accepting(arg);
}

static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct http *h = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	if (bev) /* nobody takes what comes while an answer or events are sent: it must not pile up */
		bufferevent_setwatermark(bev, EV_READ, 0, HTTP_MAX_HEADERS + HTTP_MAX_BODY);
	if (h->n_open >= h->max_open)
		sweep(h);
	/* evhttp makes one that is not counted: the listener is off */
	if (!bev || h->n_open == h->max_open + HTTP_GOING)
		return bev;
	if (h->n_open - n_going(h) >= h->max_open)
		close_one(h);
	bufferevent_incref(bev);
	h->open[h->n_open++] = (struct place){ .bev = bev };
	set_accepting(h);
	return bev;
}

size_t http_share(const struct http *h)
{
	return h->max_open / HTTP_SHARE ? h->max_open / HTTP_SHARE : 1;
}

/* Its place is the last one now: it was used. NULL: by a request that asks for no token. */
static void note_use(struct http *h, struct evhttp_request *r, const struct http_who *who)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(r));
	struct place own = { 0 };
	size_t kept = 0, of_user = 0;

	for (size_t i = 0; i < h->n_open; i++) {
		if (h->open[i].bev == bev) {
			own = h->open[i];
			continue;
		}
		of_user += who && who->known && h->open[i].known && h->open[i].uid == who->token.uid;
		h->open[kept++] = h->open[i];
	}
	if (!own.bev)
		return;
	if (who) {
		own.known = who->known && of_user < http_share(h);
		own.uid = who->token.uid;
	}
	h->open[kept] = own;
	set_accepting(h);
}

/* ---- requests ---- */

static void send_text(struct evhttp_request *r, const char *type, struct strbuf *text)
{
	struct evbuffer *body = evbuffer_new();

	if (!body || text->failed || evbuffer_add(body, strbuf_text(text), text->len))
		http_error(r, 500, "internal", "out of memory");
	else
		http_send(r, 200, type, body);
	if (body)
		evbuffer_free(body);
	strbuf_release(text);
}

static void on_metrics(struct http *h, struct evhttp_request *r, const struct http_who *who)
{
	struct strbuf text = { 0 };

	(void)who;
	metrics_text(h->d, &text);
	send_text(r, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static const struct route {
	const char *path;
	enum evhttp_cmd_type method;
	bool sums; /* without a token it tells sums, to programs on this machine */
	void (*answer)(struct http *h, struct evhttp_request *r, const struct http_who *who);
} route_all[] = {
	{ "/metrics", EVHTTP_REQ_GET, true, on_metrics },
	{ "/api/events", EVHTTP_REQ_GET, true, events_open },
	{ "/api", EVHTTP_REQ_POST, false, api_request },
};

static const struct route *find_route(const char *path)
{
	for (size_t i = 0; i < sizeof route_all / sizeof *route_all; i++) {
		if (!strcmp(route_all[i].path, path))
			return &route_all[i];
	}
	return NULL;
}

/* The page itself has nothing that is secret. */
static bool send_file(struct evhttp_request *r, const char *path)
{
	struct evbuffer *body;

	for (const struct page_file *f = page_file; f->path; f++) {
		if (strcmp(f->path, path))
			continue;
		body = evbuffer_new();
		if (body)
			evbuffer_add_reference(body, f->bytes, f->len, NULL, NULL);
		http_send(r, body ? 200 : 500, f->type, body);
		if (body)
			evbuffer_free(body);
		return true;
	}
	return false;
}

static bool method_fits(enum evhttp_cmd_type given, enum evhttp_cmd_type wanted)
{
	return given == wanted || (given == EVHTTP_REQ_HEAD && wanted == EVHTTP_REQ_GET);
}

static void answer(struct http *h, struct evhttp_request *r)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(r);
	const char *path = uri && evhttp_uri_get_path(uri) ? evhttp_uri_get_path(uri) : "";
	const struct route *route = find_route(path);
	enum evhttp_cmd_type method = evhttp_request_get_command(r);
	struct http_who who;

	if (!guard_allows(h, r))
		return;
	note_use(h, r, NULL);
	if (!route && method_fits(method, EVHTTP_REQ_GET) && send_file(r, path))
		return;
	if (!route) {
		http_error(r, 404, "not_found", "there is nothing here");
		return;
	}
	if (!method_fits(method, route->method) ||
	    (method == EVHTTP_REQ_HEAD && route->answer == events_open)) {
		http_error(r, 405, "bad_method", "this address needs another method");
		return;
	}
	if (!guard_who(h, r, &who))
		return;
	note_use(h, r, &who);
	if (!who.known && !(route->sums && guard_is_local(h, r)))
		http_error(r, 401, "no_token", "a token is needed: postrider token");
	else
		route->answer(h, r, &who);
}

static void on_request(struct evhttp_request *r, void *arg)
{
	struct http *h = arg;
	struct daemon_span span = daemon_span_begin();

	answer(h, r);
	daemon_span_end(h->d, span);
}

/* ---- listening ---- */

static int listen_tcp(const struct sockaddr_storage *address, size_t len, int *out_fd, struct err *err)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	int error;

	/* Connections inherit TCP_NODELAY: without it the end of an answer waits 40 ms for the peer. */
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
	    !setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) &&
	    !bind(fd, (const struct sockaddr *)address, (socklen_t)len) && !listen(fd, 128)) {
		*out_fd = fd;
		return 0;
	}
	error = errno;
	if (fd >= 0)
		close(fd);
	return err_fail(err, error == EADDRINUSE ? ERR_BUSY : ERR_IO, "http.listen: %s", strerror(error));
}

static int open_socket(struct http *h, const struct config *c, int *out_fd, struct err *err)
{
	struct sockaddr_storage address;
	struct server_params p = { .mode = c->socket_mode, .listen_fd = -1 };
	const char *path;
	socklen_t bound = sizeof address;
	size_t len;
	int rc = config_http_address(c->http.listen, &address, &len, &path, err);

	if (rc)
		return rc;
	h->is_unix = path != NULL;
	if (h->is_unix) {
		p.path = path;
		rc = config_socket_group(c, &p.group, &p.set_group, err);
		if (!rc)
			rc = server_socket_open(&p, &h->unix_socket, err);
		/* evhttp closes what it is given; the path and its lock stay ours. */
		if (!rc && (*out_fd = fcntl(h->unix_socket.fd, F_DUPFD_CLOEXEC, 0)) < 0)
			rc = err_fail(err, ERR_IO, "http.listen: %s", strerror(errno));
		return rc;
	}
	rc = listen_tcp(&address, len, out_fd, err);
	if (!rc && !getsockname(*out_fd, (struct sockaddr *)&address, &bound))
		h->port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
							      : ((struct sockaddr_in *)&address)->sin_port);
	return rc;
}

static int serve(struct http *h, int fd, struct err *err)
{
	struct timeval every = { .tv_sec = SWEEP_S };
	struct evhttp_bound_socket *bound;

	h->server = evhttp_new(h->d->base);
	bound = h->server ? evhttp_accept_socket_with_handle(h->server, fd) : NULL;
	if (!bound) {
		close(fd);
		return err_nomem(err, "the HTTP server");
	}
	h->listener = evhttp_bound_socket_get_listener(bound);
	h->accepting = true;
	h->max_open = h->d->setup->config->http.max_connections;
	h->open = mem_calloc(h->max_open + HTTP_GOING, sizeof *h->open);
	h->sweep = event_new(h->d->base, -1, EV_PERSIST, on_sweep, h);
	h->tick = event_new(h->d->base, -1, 0, events_tick, h);
	if (!h->open || !h->sweep || !h->tick || event_add(h->sweep, &every))
		return err_nomem(err, "the HTTP server");
	evhttp_set_bevcb(h->server, on_connection, h);
	evhttp_set_gencb(h->server, on_request, h);
	evhttp_set_allowed_methods(h->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
	evhttp_set_max_headers_size(h->server, HTTP_MAX_HEADERS);
	evhttp_set_max_body_size(h->server, HTTP_MAX_BODY);
	evhttp_set_timeout(h->server, HTTP_TIMEOUT_S);
	return 0;
}

int http_new(struct daemon *d, struct http **out, struct err *err)
{
	const struct config *c = d->setup->config;
	struct http *h;
	int rc, fd = -1;

	*out = NULL;
	if (!c->http.listen)
		return 0;
	h = mem_calloc(1, sizeof *h);
	if (!h)
		return err_nomem(err, "the HTTP server");
	h->d = d;
	h->unix_socket.fd = h->unix_socket.lock_fd = -1;
	rc = tokens_open(&h->tokens, c->state_dir, err);
	if (!rc)
		rc = open_socket(h, c, &fd, err);
	if (!rc)
		rc = serve(h, fd, err);
	if (rc) {
		http_free(h);
		return rc;
	}
	if (h->is_unix)
		log_info("HTTP on the socket %s", c->http.listen);
	else
		log_info("HTTP on %s, port %d", c->http.listen, h->port);
	*out = h;
	return 0;
}

struct tokens *http_tokens(struct http *h)
{
	return h ? &h->tokens : NULL;
}

const char *http_url(const struct http *h, const char *token, char *out, size_t size)
{
	const char *listen = h->d->setup->config->http.listen, *colon = strrchr(listen, ':');

	if (h->is_unix)
		return NULL;
	snprintf(out, size, "http://%.*s:%d/#token=%s", (int)(colon - listen), listen, h->port, token);
	return out;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	if (h->sweep)
		event_free(h->sweep);
	events_close(h);
	if (h->tick)
		event_free(h->tick);
	tokens_close(&h->tokens);
	/* before evhttp closes their descriptors, so that their events are gone by then */
	for (size_t i = 0; i < h->n_open; i++)
		bufferevent_decref(h->open[i].bev);
	if (h->server)
		evhttp_free(h->server);
	free(h->open);
	if (h->is_unix)
		server_socket_close(&h->unix_socket);
	free(h);
}
