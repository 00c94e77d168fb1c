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
#define HTTP_TIMEOUT_S 30      /* for a request to arrive, and between two of them */

struct http {
	struct daemon *d;
	struct evhttp *server;
	struct server_socket unix_socket;
	bool is_unix;
	int port;
	struct evconnlistener *listener;
	bool accepting;
	struct bufferevent **open; size_t n_open, max_open; /* connections */
	struct event *sweep;
};

/* ---- guard.c ---- */
/* Is the request from a page of ours, or from no page at all? False: answered. */
bool guard_allows(struct http *h, struct evhttp_request *r);
/* The peer is a program on this machine, as far as the address says. */
bool guard_is_local(struct http *h, struct evhttp_request *r);
void guard_headers(struct evhttp_request *r, const char *type); /* of every answer */
/* A short answer, its text in JSON. */
void http_error(struct evhttp_request *r, int status, const char *code, const char *message);

#endif
