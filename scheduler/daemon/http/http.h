/* The page and the metrics over HTTP, by libevent's evhttp. Off unless the configuration says where to
 * listen.
 *
 *   http.c     listening, limits, which request goes where
 *   guard.c    who may ask: Host and Origin, loopback, tokens; headers that every answer has
 *
 * A TCP connection has no peer credentials. So without a token nothing is told of any job: only sums. From
 * beyond loopback, and over a Unix socket (behind which there is a proxy), everything but the page's own
 * files needs a token. All of it runs in the loop's thread. */
#ifndef SCHEDULER_DAEMON_HTTP_HTTP_H
#define SCHEDULER_DAEMON_HTTP_HTTP_H

#include "common/err.h"

struct daemon;
struct http;

/* *out is NULL where the configuration has no `http.listen`. ERR_BUSY: the address is in use. */
int http_new(struct daemon *d, struct http **out, struct err *err);
void http_free(struct http *h);

#endif
