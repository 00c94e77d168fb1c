/* A client of the daemon's HTTP, for tests: it turns the daemon's loop while it waits for an answer. The
 * address is that of the daemon's configuration: a port of this machine, or a Unix socket. */
#ifndef TESTS_UNIT_DAEMON_HTTP_CLIENT_H
#define TESTS_UNIT_DAEMON_HTTP_CLIENT_H

#include <stdbool.h>

#include "tests/unit/daemon/local_daemon.h"

struct http_client {
	struct local_daemon *l;
	int fd; /* -1: closed */
	char host[80]; /* the header Host of requests that do not have one */
	struct strbuf in; /* what came and was not taken yet */
	bool closed; /* by the daemon */
	/* the last answer */
	int status;
	struct strbuf head, body;
};

void http_open(struct http_client *h, struct local_daemon *l);
void http_close(struct http_client *h);
/* `headers` and `body` may be NULL; each header ends with "\r\n". */
void http_say(struct http_client *h, const char *method, const char *path, const char *headers,
	      const char *body);
/* The whole answer: its status. 0: the daemon closed the connection instead. */
int http_hear(struct http_client *h);
int http_ask(struct http_client *h, const char *method, const char *path, const char *headers,
	     const char *body);
const char *http_header(const struct http_client *h, const char *name); /* of the answer; "": it has none */
struct json *http_json(const struct http_client *h); /* of the body; to be freed */
/* Of a stream: its head, and the next event; both run the loop until it is there. */
int http_hear_head(struct http_client *h);
struct json *http_event(struct http_client *h); /* to be freed */

#endif
