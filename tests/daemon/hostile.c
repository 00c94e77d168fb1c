/* Clients that mean harm: half lines, floods, noise, connections that never read. See hostile.h. */
#define _GNU_SOURCE
#include "tests/daemon/hostile.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void say_hello(const struct health *h)
{
	struct talk *t = talk_open(&h->fixture);
	struct json *v = talk_ask(t, "{\"op\":\"hello\",\"id\":\"well?\"}");

	if (!is_ok(v) || strcmp(text_at(v, "id"), "well?"))
		die("the daemon does not answer hello as it should");
	json_free(v);
	talk_close(t);
}

void health_start(struct health *h, const char *model, const char *settings)
{
	/* Types that are wanted here beside those of every test: any batch, and names to be abused. */
	static const char types[] =
		",\"any\":{\"params\":{\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"}}},"
		"\"named\":{\"argv\":[\"/bin/sh\",\"-c\",\"exit 0\",\"sh\",\"{name}\",\"{batch}\"],"
		"\"batches\":[64],\"params\":{\"name\":{\"kind\":\"word\"},"
		"\"count\":{\"kind\":\"integer\",\"min\":1,\"max\":9,\"default\":1}}}";
	struct talk *t;

	fixture_open(&h->fixture);
	if (model)
		snprintf(h->fixture.model, sizeof h->fixture.model, "%s", model);
	fixture_configure(&h->fixture, settings, types);
	fixture_start(&h->fixture);
	/* Once everything that opens files at its first use; the connection is gone before they are
	 * counted. */
	t = talk_open(&h->fixture);
	json_free(talk_ask(t, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\"}"));
	json_free(talk_ask(t, "{\"op\":\"cancel\",\"job\":\"1\"}"));
	json_free(talk_ask(t, "{\"op\":\"explain\",\"job\":\"1\"}"));
	talk_close(t);
	say_hello(h);
	sleep_s(0.05);
	h->fds = count_fds(h->fixture.pid);
	h->rss_mb = rss_mb(h->fixture.pid);
}

/* It closes its side a moment after we closed ours. */
static void await_descriptors(const struct health *h)
{
	double until = now_s() + PATIENCE_S;

	while (count_fds(h->fixture.pid) > h->fds) {
		if (now_s() > until)
			die("the daemon has %zu descriptors, %zu at the start", count_fds(h->fixture.pid),
			    h->fds);
		sleep_s(0.005);
	}
}

void health_check(struct health *h, double more_mb)
{
	double grown;

	await_descriptors(h);
	say_hello(h);
	await_descriptors(h);
	grown = rss_mb(h->fixture.pid) - h->rss_mb;
	if (grown > more_mb && !sanitized()) /* a sanitizer keeps what was freed */
		die("the daemon has grown by %.1f MB, more than %g", grown, more_mb);
}

void health_stop(struct health *h)
{
	int code = fixture_stop(&h->fixture, SIGTERM);

	if (code)
		die("the daemon left with %d", code);
	fixture_close(&h->fixture);
}

bool send_bytes(struct talk *t, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = send(talk_fd(t), at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

struct json *ask_bytes(struct talk *t, const void *bytes, size_t len)
{
	struct json *v = send_bytes(t, bytes, len) && send_bytes(t, "\n", 1) ? talk_hear_json(t, PATIENCE_S)
									     : NULL;

	if (!v)
		die("no answer to a line of %zu bytes: %.200s", len, (const char *)bytes);
	return v;
}
