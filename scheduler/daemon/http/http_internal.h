/* What the files of this folder share. See http.h. */
#ifndef SCHEDULER_DAEMON_HTTP_HTTP_INTERNAL_H
#define SCHEDULER_DAEMON_HTTP_HTTP_INTERNAL_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdbool.h>
#include <stddef.h>

#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/http/http.h"
#include "scheduler/daemon/net/server_internal.h"

#define HTTP_MAX_HEADERS 16384 /* bytes of a request's line and headers */
#define HTTP_MAX_BODY SERVER_MAX_LINE
#define HTTP_SPARE 8           /* connections kept for requests beside those of open pages */
#define HTTP_GOING 32          /* connections beyond the limit, while those that are closed for them end */
#define HTTP_SHARE 4           /* a user's tokens keep one place in so many */
#define HTTP_TIMEOUT_S 30      /* for a request to arrive, and between two of them */

struct place {                 /* of a connection */
	struct bufferevent *bev;
	bool known;            /* its last request had a token of this user: it is not closed for others */
	uid_t uid;
	bool going;            /* it was closed for another one, and evhttp does not know yet */
};

struct http {
	struct daemon *d;
	struct evhttp *server;
	struct server_socket unix_socket;
	bool is_unix;
	int port;
	struct evconnlistener *listener;
	bool accepting;
	struct place *open; size_t n_open, max_open; /* connections */
	struct event *sweep, *tick;
	struct tokens tokens;
	struct page *pages; size_t n_pages; /* events.c */
	int64_t told_ns;       /* the last update */
	bool changed;          /* another one is due soon */
};

struct http_who {              /* asks */
	bool known;            /* by this token */
	struct token token;
};

struct page_file { const char *path, *type; const unsigned char *bytes; size_t len; };
extern const struct page_file page_file[]; /* made by embed.sh; path NULL after the last */

/* ---- http.c ---- */
/* How many places of connections the tokens of a user keep. */
size_t http_share(const struct http *h);

/* ---- api.c, events.c ---- */
void api_request(struct http *h, struct evhttp_request *r, const struct http_who *who);
void events_open(struct http *h, struct evhttp_request *r, const struct http_who *who);
void events_tick(evutil_socket_t fd, short what, void *http);
void events_close(struct http *h);

/* ---- guard.c ---- */
/* The user who sends the request, by the header Authorization. False: its token is not valid; answered. */
bool guard_who(struct http *h, struct evhttp_request *r, struct http_who *out);
/* Is the request from a page of ours, or from no page at all? False: answered. */
bool guard_allows(struct http *h, struct evhttp_request *r);
/* The peer is a program on this machine, as far as the address says. */
bool guard_is_local(struct http *h, struct evhttp_request *r);
void guard_headers(struct evhttp_request *r, const char *type); /* of every answer */
/* An answer with these headers; takes the bytes out of `body`, which may be NULL. */
void http_send(struct evhttp_request *r, int status, const char *type, struct evbuffer *body);
/* Its connection has gone before its end. If the peer closed it, evhttp leaves the request to us; at the end
 * of the server it frees it. */
void http_drop(struct evhttp_request *r);
/* A short answer, its text in JSON. */
void http_error(struct evhttp_request *r, int status, const char *code, const char *message);

#endif
