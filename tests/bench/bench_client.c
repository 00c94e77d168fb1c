/* The client of the daemon benches: a raw socket, so that what is measured is the daemon. */
#define _GNU_SOURCE
#include "tests/bench/bench_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/bench/bench.h"

#define IN_SIZE ((size_t)2 << 20) /* a list of 1,000 jobs is more than one MiB */
#define PATIENCE_S 10

static int try_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	strcpy(address.sun_path, path);
	if (!connect(fd, (struct sockaddr *)&address, sizeof address))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int bench_client_open(struct bench_client *c, const char *path, enum bench_framing framing, double within_s,
		      struct err *err)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	double until_s = bench_now_s() + within_s;

	*c = (struct bench_client){ .fd = -1, .framing = framing };
	if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
		return err_fail(err, ERR_ARG, "%s is too long for a socket: set TMPDIR to a shorter folder",
				path);
	while ((c->fd = try_connect(path)) < 0) {
		if (bench_now_s() > until_s)
			return err_fail(err, ERR_IO, "cannot connect to %s: %s", path, strerror(errno));
		nanosleep(&pause, NULL);
	}
	c->in = mem_alloc(IN_SIZE);
	if (c->in)
		return 0;
	close(c->fd);
	c->fd = -1;
	return err_fail(err, ERR_NOMEM, "no memory for a client");
}

void bench_client_close(struct bench_client *c)
{
	if (c->in) /* else it was never open */
		close(c->fd);
	free(c->in);
	*c = (struct bench_client){ .fd = -1 };
}

int bench_client_send(struct bench_client *c, const char *text, size_t len, struct err *err)
{
	while (len) {
		ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_fail(err, ERR_IO, "the server took no request: %s", strerror(errno));
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

int bench_client_read(struct bench_client *c, bool wait, struct err *err)
{
	ssize_t n;

	if (c->from == c->len) {
		c->from = c->len = 0;
	} else if (c->len > IN_SIZE / 2) { /* seldom, so that a rest is not moved for every read */
		memmove(c->in, c->in + c->from, c->len - c->from);
		c->len -= c->from;
		c->from = 0;
	}
	if (c->len == IN_SIZE)
		return err_fail(err, ERR_FORMAT, "a reply of more than %zu bytes", IN_SIZE);
	do {
		n = recv(c->fd, c->in + c->len, IN_SIZE - c->len, wait ? 0 : MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		c->len += (size_t)n;
	if (n > 0 || (n < 0 && errno == EAGAIN && !wait))
		return 0;
	return err_fail(err, ERR_IO, "the server sends no reply: %s",
			n ? strerror(errno) : "it closed the connection");
}

/* Bytes of the reply at the start of `text` and of what ends it; 0: it is not whole. */
static size_t whole_line(const char *text, size_t len, size_t *out_ending)
{
	const char *end = memchr(text, '\n', len);

	*out_ending = 1;
	return end ? (size_t)(end - text) + 1 : 0;
}

static size_t whole_bulk(const char *text, size_t len, size_t *out_ending)
{
	const char *end = memchr(text, '\n', len);
	size_t size;

	*out_ending = 2;
	if (!end)
		return 0;
	if (*text != '$') /* +OK or -ERR: a line */
		return (size_t)(end - text) + 1;
	size = (size_t)(end - text) + 1 + strtoul(text + 1, NULL, 10) + 2;
	return size <= len ? size : 0;
}

bool bench_client_take(struct bench_client *c, const char **out, size_t *out_len)
{
	const char *text = c->in + c->from;
	size_t ending, len = c->len - c->from;
	size_t n = c->framing == FRAMING_LINE ? whole_line(text, len, &ending)
					      : whole_bulk(text, len, &ending);

	if (!n)
		return false;
	*out = text;
	*out_len = n - ending;
	c->from += n;
	return true;
}

int bench_client_ask(struct bench_client *c, const char *text, size_t len, const char **out, size_t *out_len,
		     struct err *err)
{
	int status = bench_client_send(c, text, len, err);

	while (!status && !bench_client_take(c, out, out_len))
		status = bench_client_read(c, true, err);
	return status;
}
