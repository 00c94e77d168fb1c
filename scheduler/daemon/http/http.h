/* The page and the metrics over HTTP, by libevent's evhttp. Off unless the configuration says where to
 * listen.
 *
 *   http.c     listening, limits, which request goes where
 *   api.c      requests of the protocol over HTTP
 *   events.c   what open pages get
 *   token.c    which user sends a request
 *   page/      the files of the page; the build makes them part of the program (embed.sh)
 *   guard.c    who may ask: Host and Origin, loopback, tokens; headers that every answer has
 *
 * A TCP connection has no peer credentials. So without a token a client sees only sums, and no job. From
 * another machine, and over a Unix socket (behind which there is a proxy), everything except the page's own
 * files needs a token. All of it runs in the loop's thread. */
#ifndef SCHEDULER_DAEMON_HTTP_HTTP_H
#define SCHEDULER_DAEMON_HTTP_HTTP_H

#include "common/err.h"
#include "scheduler/daemon/http/token.h"

struct daemon;
struct http;

/* *out is NULL where the configuration has no `http.listen`. ERR_BUSY: the address is in use. */
int http_new(struct daemon *d, struct http **out, struct err *err);
void http_free(struct http *h);
void http_changed(struct http *h); /* something happened: open pages get it soon. NULL: nothing is done */
struct tokens *http_tokens(struct http *h); /* NULL: no page is served */
/* Where the page is, with the token behind the mark that no browser sends; NULL: behind a proxy. */
const char *http_url(const struct http *h, const char *token, char *out, size_t size);

#endif
