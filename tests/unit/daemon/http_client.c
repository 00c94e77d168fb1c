/* A client of the daemon's HTTP. See http_client.h. */
#define _GNU_SOURCE
#include "tests/unit/daemon/http_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "scheduler/daemon/http/http_internal.h"
#include "tests/support/support.h"

#define PATIENCE_NS INT64_C(30000000000)

void http_open(struct http_client *h, struct local_daemon *l)
{
	const struct http *s = l->d->http;
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	struct sockaddr_in port = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)s->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int rc;

	*h = (struct http_client){ .l = l };
	h->fd = socket(s->is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(h->fd >= 0);
	if (s->is_unix) {
		snprintf(path.sun_path, sizeof path.sun_path, "%.107s", l->d->setup->config->http.listen);
		snprintf(h->host, sizeof h->host, "localhost");
		rc = connect(h->fd, (struct sockaddr *)&path, sizeof path);
	} else {
		snprintf(h->host, sizeof h->host, "127.0.0.1:%d", s->port);
		rc = connect(h->fd, (struct sockaddr *)&port, sizeof port);
	}
	if (rc)
		fail_msg("http: %s", strerror(errno));
}

void http_close(struct http_client *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
	strbuf_release(&h->in);
	strbuf_release(&h->head);
	strbuf_release(&h->body);
}

void http_say(struct http_client *h, const char *method, const char *path, const char *headers,
	      const char *body)
{
	struct strbuf text = { 0 };

	strbuf_printf(&text, "%s %s HTTP/1.1\r\n", method, path);
	if (!headers || !strcasestr(headers, "host:"))
		strbuf_printf(&text, "Host: %s\r\n", h->host);
	if (headers)
		strbuf_puts(&text, headers);
	if (body)
		strbuf_printf(&text, "Content-Length: %zu\r\n", strlen(body));
	strbuf_printf(&text, "\r\n%s", body ? body : "");
	assert_false(text.failed);
	send(h->fd, text.text, text.len, MSG_NOSIGNAL); /* a daemon that refuses it may close at once */
	strbuf_release(&text);
}

static void take_in(struct http_client *h)
{
	char chunk[65536];
	ssize_t n;

	local_run(h->l, 0.0);
	while (!h->closed && (n = recv(h->fd, chunk, sizeof chunk, MSG_DONTWAIT)) != -1) {
		h->closed = n == 0;
		strbuf_add(&h->in, chunk, (size_t)n);
	}
	if (!h->closed && errno != EAGAIN)
		h->closed = true;
}

/* Runs the loop until `n` bytes are there. False: the daemon closes before. */
static bool has_bytes(struct http_client *h, size_t n)
{
	int64_t until_ns = clock_monotonic_ns() + PATIENCE_NS;

	while (h->in.len < n) {
		if (h->closed)
			return false;
		if (clock_monotonic_ns() > until_ns)
			fail_msg("the daemon does not answer over HTTP");
		take_in(h);
	}
	return true;
}

/* The first `n` bytes, to the end of `out` if there is one. */
static void take(struct http_client *h, size_t n, struct strbuf *out)
{
	if (out)
		strbuf_add(out, h->in.text, n);
	memmove(h->in.text, h->in.text + n, h->in.len - n);
	h->in.len -= n;
	h->in.text[h->in.len] = '\0';
}

/* Up to and with `mark`. 0: the daemon closed before it came. */
static size_t until_mark(struct http_client *h, const char *mark)
{
	const char *at;

	while (!h->in.len || !(at = memmem(h->in.text, h->in.len, mark, strlen(mark)))) {
		if (!has_bytes(h, h->in.len + 1))
			return 0;
	}
	return (size_t)(at - h->in.text) + strlen(mark);
}

int http_hear_head(struct http_client *h)
{
	size_t n = until_mark(h, "\r\n\r\n");

	strbuf_reset(&h->head);
	strbuf_reset(&h->body);
	h->status = 0;
	if (!n)
		return 0;
	take(h, n, &h->head);
	assert_int_equal(sscanf(h->head.text, "HTTP/1.%*d %d", &h->status), 1);
	return h->status;
}

const char *http_header(const struct http_client *h, const char *name)
{
	static char value[400];
	size_t len = strlen(name);

	value[0] = '\0';
	for (const char *s = strbuf_text(&h->head); (s = strstr(s, "\r\n"));) {
		s += 2;
		if (!strncasecmp(s, name, len) && s[len] == ':')
			snprintf(value, sizeof value, "%.*s", (int)strcspn(s + len + 2, "\r\n"), s + len + 2);
	}
	return value;
}

int http_hear(struct http_client *h)
{
	size_t len;

	if (!http_hear_head(h))
		return 0;
	assert_string_equal(http_header(h, "Transfer-Encoding"), "");
	len = strtoul(http_header(h, "Content-Length"), NULL, 10);
	assert_true(has_bytes(h, len));
	take(h, len, &h->body);
	return h->status;
}

int http_ask(struct http_client *h, const char *method, const char *path, const char *headers,
	     const char *body)
{
	http_say(h, method, path, headers, body);
	return http_hear(h);
}

struct json *http_json(const struct http_client *h)
{
	struct json *v = NULL;
	struct err err = { 0 };

	if (json_parse("answer", strbuf_text(&h->body), h->body.len, &v, &err))
		fail_msg("%s: %.300s", err.text, strbuf_text(&h->body));
	return v;
}

/* A chunk is one event: "data: {...}\n\n". */
struct json *http_event(struct http_client *h)
{
	size_t n = until_mark(h, "\r\n"), len;

	assert_true(n > 0);
	len = strtoul(h->in.text, NULL, 16);
	take(h, n, NULL);
	assert_true(len > 8 && has_bytes(h, len + 2));
	strbuf_reset(&h->body);
	take(h, len, &h->body);
	take(h, 2, NULL);
	assert_memory_equal(h->body.text, "data: ", 6);
	assert_memory_equal(h->body.text + len - 2, "\n\n", 2);
	memmove(h->body.text, h->body.text + 6, len - 6);
	h->body.len = len - 6;
	return http_json(h);
}
