/* A plain client on a Unix stream socket: asks, and takes whole replies out of what came. The very same code
 * talks to postriderd, whose replies are lines, and to redis-server, whose replies to GET are bulk strings,
 * so that what differs between them is the server. */
#ifndef TESTS_BENCH_BENCH_CLIENT_H
#define TESTS_BENCH_BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum bench_framing {
	FRAMING_LINE, /* until a newline */
	FRAMING_BULK, /* "$5\r\nhello\r\n" */
};

struct bench_client {
	int fd; /* -1: not connected */
	enum bench_framing framing;
	char *in; /* what was read: from..len is not taken yet */
	size_t from, len;
};

/* Tries again for within_s seconds: a server that was just started does not listen yet. */
int bench_client_open(struct bench_client *c, const char *path, enum bench_framing framing, double within_s,
                      struct err *err);
void bench_client_close(struct bench_client *c);

/* All of it; waits until the server has taken it. */
int bench_client_send(struct bench_client *c, const char *text, size_t len, struct err *err);
/* Reads what is there, waiting for something (ten seconds at most) if `wait`. */
int bench_client_read(struct bench_client *c, bool wait, struct err *err);
/* The next reply if it is whole, without what ends it; valid until the next read. */
bool bench_client_take(struct bench_client *c, const char **out, size_t *out_len);

/* Sends, and waits for one reply. */
int bench_client_ask(struct bench_client *c, const char *text, size_t len, const char **out, size_t *out_len,
                     struct err *err);

#endif
