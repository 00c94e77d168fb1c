/* See client.h. One socket that never blocks, a buffer each way, and poll() between them: what is sent and
 * what comes in move at the same time, so that neither side can wait for the other to read first. */
#define _GNU_SOURCE
#include "scheduler/cli/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/config.h"

#define NEVER_NS INT64_MAX
#define READ_BYTES 65536

struct client {
	int fd;
	char *path;
	int64_t deadline_ns; /* of --timeout, monotonic */
	double timeout_s;
	struct strbuf out; /* what is to be sent; `sent` of it is */
	size_t sent;
	struct strbuf in; /* what came; lines before `taken` were handed out */
	size_t taken, scanned; /* no newline between the two */
	bool ended; /* the other side will send no more */
	size_t max_request;
	uint64_t next_id, next_reply; /* ids are given out and come back in order */
	size_t request_at; /* where the request being written begins in `out` */
	struct json_writer writer;
	struct json **event; /* came while a reply was waited for */
	size_t n_events, event_at, event_cap;
};

static int no_memory(struct client_fault *f)
{
	return client_fail(f, CLIENT_FAILED, "out of memory while talking to the daemon");
}

/* ---- time ---- */

static int64_t after_s(double s)
{
	return isnan(s) || s > 1e9 ? NEVER_NS : clock_monotonic_ns() + (int64_t)(s * 1e9);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- bytes ---- */

/* Takes what has arrived; 0, or an exit code. */
static int take_bytes(struct client *c, struct client_fault *f)
{
	char buf[READ_BYTES];
	ssize_t n = recv(c->fd, buf, sizeof buf, 0);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return 0;
	if (n < 0 && errno != ECONNRESET && errno != EPIPE)
		return client_fail(f, CLIENT_FAILED, "reading from %s: %s", c->path, strerror(errno));
	if (n <= 0) {
		c->ended = true;
		return 0;
	}
	if (c->taken) { /* lines that were handed out make room */
		memmove(c->in.text, c->in.text + c->taken, c->in.len - c->taken);
		c->in.len -= c->taken;
		c->scanned -= c->taken;
		c->taken = 0;
	}
	strbuf_add(&c->in, buf, (size_t)n);
	return c->in.failed ? no_memory(f) : 0;
}

static int give_bytes(struct client *c, struct client_fault *f)
{
	ssize_t n = send(c->fd, c->out.text + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return 0;
	if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
		c->sent = c->out.len; /* why it hung up may still be there to read */
		return 0;
	}
	if (n < 0)
		return client_fail(f, CLIENT_FAILED, "writing to %s: %s", c->path, strerror(errno));
	c->sent += (size_t)n;
	if (c->sent == c->out.len) {
		c->sent = 0;
		strbuf_reset(&c->out);
	}
	return 0;
}

/* Waits for either direction to move. *out_late: `until_ns` came first. */
static int move_bytes(struct client *c, int64_t until_ns, bool *out_late, struct client_fault *f)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	struct timespec left;
	sigset_t stop, before;
	int64_t now = clock_monotonic_ns(), wait_ns = until_ns == NEVER_NS ? 0 : until_ns - now;
	int n, error;

	*out_late = false;
	if (until_ns != NEVER_NS && wait_ns < 0)
		wait_ns = 0;
	left = (struct timespec){ wait_ns / 1000000000, wait_ns % 1000000000 };
	if (c->sent < c->out.len)
		p.events |= POLLOUT;
	/* Held back from the question until poll() lets them in, so that none slips between the two. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGHUP);
	sigprocmask(SIG_BLOCK, &stop, &before);
	n = client_interrupted() ? -1 : ppoll(&p, 1, until_ns == NEVER_NS ? NULL : &left, &before);
	error = client_interrupted() ? EINTR : errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (client_interrupted())
		return client_fail(f, CLIENT_INTERRUPTED, "interrupted");
	if (n < 0 && error != EINTR)
		return client_fail(f, CLIENT_FAILED, "waiting for %s: %s", c->path, strerror(error));
	if (n == 0)
		*out_late = clock_monotonic_ns() >= until_ns;
	if (n <= 0)
		return 0;
	n = p.revents & POLLOUT ? give_bytes(c, f) : 0;
	if (!n && p.revents & (POLLIN | POLLHUP | POLLERR))
		n = take_bytes(c, f);
	return n;
}

/* The next whole line, NUL-terminated in place; *out is NULL when it is late or when the other side has
 * ended. */
static int next_line(struct client *c, int64_t until_ns, char **out, size_t *out_len, struct client_fault *f)
{
	bool late = false;
	char *end;
	int rc;

	*out = NULL;
	for (;;) {
		end = c->in.len > c->scanned ? memchr(c->in.text + c->scanned, '\n', c->in.len - c->scanned)
					     : NULL;
		if (end) {
			*out = c->in.text + c->taken;
			*out_len = (size_t)(end - *out);
			*end = '\0';
			c->taken = c->scanned = (size_t)(end - c->in.text) + 1;
			return *out_len > CLIENT_MAX_REPLY
				       ? client_fail(f, CLIENT_FAILED, "%s sends a line that is too long",
						     c->path)
				       : 0;
		}
		c->scanned = c->in.len;
		if (c->in.len - c->taken > CLIENT_MAX_REPLY)
			return client_fail(f, CLIENT_FAILED,
					   "%s sends a line of more than %zu MiB, which is too long", c->path,
					   CLIENT_MAX_REPLY >> 20);
		if (c->ended || late)
			return 0;
		rc = move_bytes(c, until_ns, &late, f);
		if (rc)
			return rc;
	}
}

/* ---- lines ---- */

static int timed_out(const struct client *c, const char *waited_for, struct client_fault *f)
{
	char buf[32];

	if (c->deadline_ns != NEVER_NS && clock_monotonic_ns() >= c->deadline_ns)
		return client_fail(f, CLIENT_TIMED_OUT, "%s did not come from %s within the %s of --timeout",
				   waited_for, c->path, text_seconds(c->timeout_s, buf));
	return client_fail(f, CLIENT_TIMED_OUT, "%s did not come from %s within %s", waited_for, c->path,
			   text_seconds(CLIENT_PATIENCE_S, buf));
}

static void refusal(const struct json *reply, struct client_fault *f)
{
	const struct json *e = json_get(reply, "error");
	const char *code = json_string(json_get(e, "code"), "");
	const char *message = json_string(json_get(e, "message"), "");
	const char *field = json_string(json_get(e, "field"), "");

	client_fail(f, client_exit_code(code), "%s", message[0] ? message : code);
	if (!f->text[0])
		snprintf(f->text, sizeof f->text, "the daemon refused and gave no reason");
	else if (field[0] && !strstr(f->text, field))
		client_fail(f, f->exit_code, "%.900s (%.100s)", message[0] ? message : code, field);
	/* An error without a code is still the daemon's answer. */
	snprintf(f->code, sizeof f->code, "%s", code[0] ? code : "unknown");
	snprintf(f->hint, sizeof f->hint, "%s", json_string(json_get(e, "hint"), ""));
}

/* A line as a JSON object of our protocol version. */
static int read_object(const struct client *c, const char *line, size_t len, struct json **out,
		       struct client_fault *f)
{
	struct err err = { 0 };
	char shown[64];

	if (json_parse("reply", line, len, out, &err))
		return client_fail(f, CLIENT_FAILED,
				   "%s does not speak the protocol of postriderd: %s (it said: %s)", c->path,
				   err.text, text_printable(line, shown, sizeof shown));
	if (json_type(*out) != JSON_OBJECT)
		client_fail(f, CLIENT_FAILED, "%s does not speak the protocol of postriderd (it said: %s)",
			    c->path, text_printable(line, shown, sizeof shown));
	else if (json_number(json_get(*out, "v"), 0.0) != 1.0)
		client_fail(f, CLIENT_FAILED,
			    "%s does not speak version 1 of the protocol, the one this program knows (it "
			    "said: %s)",
			    c->path, text_printable(line, shown, sizeof shown));
	else
		return 0;
	json_free(*out);
	*out = NULL;
	return CLIENT_FAILED;
}

static int keep_event(struct client *c, struct json *v, struct client_fault *f)
{
	void *all = c->event;

	if (c->n_events - c->event_at >= CLIENT_MAX_EVENTS)
		return client_fail(f, CLIENT_FAILED, "%s sends events and no reply", c->path);
	if (mem_grow(&all, &c->event_cap, c->n_events + 1, sizeof(struct json *)))
		return no_memory(f);
	c->event = all;
	c->event[c->n_events++] = v;
	return 0;
}

/* Whose answer is it? An error may lack an id where the request was too broken to have one. */
static int check_reply(const struct client *c, const struct json *v, struct client_fault *f)
{
	const struct json *ok = json_get(v, "ok"), *id = json_get(v, "id");
	bool refused = json_type(ok) == JSON_BOOL && !json_bool(ok, true);
	char got[32];

	if (json_type(ok) != JSON_BOOL)
		return client_bad_reply(f, "it does not say whether it is \"ok\"");
	if (refused && (json_type(id) == JSON_ABSENT || json_type(id) == JSON_NULL))
		return 0;
	if (json_type(id) != JSON_NUMBER || json_number(id, -1.0) != (double)c->next_reply)
		return client_fail(f, CLIENT_FAILED, "%s answered request %s when %llu was next", c->path,
				   json_type(id) == JSON_NUMBER ? text_shortest(json_number(id, 0.0), got)
								: "without a number",
				   (unsigned long long)c->next_reply);
	return 0;
}

int client_reply(struct client *c, struct json **out, struct client_fault *f)
{
	int64_t until_ns = c->deadline_ns;
	struct json *v = NULL;
	size_t len;
	char *line;
	int rc;

	if (until_ns == NEVER_NS)
		until_ns = after_s(CLIENT_PATIENCE_S);
	for (;;) {
		rc = next_line(c, until_ns, &line, &len, f);
		if (rc)
			return rc;
		if (!line && c->ended)
			return client_fail(f, CLIENT_FAILED,
					   "the daemon at %s closed the connection before it answered",
					   c->path);
		if (!line)
			return timed_out(c, "an answer", f);
		rc = read_object(c, line, len, &v, f);
		if (rc)
			return rc;
		if (json_type(json_get(v, "event")) != JSON_STRING)
			break;
		rc = keep_event(c, v, f);
		if (rc) {
			json_free(v);
			return rc;
		}
	}
	rc = check_reply(c, v, f);
	c->next_reply++;
	if (!rc && !json_bool(json_get(v, "ok"), false)) {
		refusal(v, f);
		rc = f->exit_code;
	}
	if (rc)
		json_free(v);
	else
		*out = v;
	return rc;
}

int client_event(struct client *c, double at_most_s, struct json **out, struct client_fault *f)
{
	int64_t until_ns = earlier(after_s(at_most_s), c->deadline_ns);
	struct json *v = NULL;
	size_t len;
	char *line;
	int rc;

	*out = NULL;
	if (c->event_at < c->n_events) {
		*out = c->event[c->event_at++];
		if (c->event_at == c->n_events)
			c->event_at = c->n_events = 0;
		return 0;
	}
	rc = next_line(c, until_ns, &line, &len, f);
	if (rc)
		return rc;
	if (!line && c->ended)
		return client_fail(
			f, CLIENT_UNREACHABLE,
			"the daemon at %s went away; running jobs continue, and it adopts them when it is "
			"started again",
			c->path);
	if (!line && c->deadline_ns != NEVER_NS && clock_monotonic_ns() >= c->deadline_ns)
		return timed_out(c, "what was waited for", f);
	if (!line)
		return 0;
	rc = read_object(c, line, len, &v, f);
	if (!rc && json_type(json_get(v, "event")) == JSON_STRING) {
		*out = v;
		return 0;
	}
	if (!rc && json_type(json_get(v, "ok")) == JSON_BOOL && !json_bool(json_get(v, "ok"), true)) {
		refusal(v, f); /* its last words before it hangs up: too slow a reader */
		rc = f->exit_code;
	} else if (!rc) {
		rc = client_bad_reply(f, "a line that is neither an event nor an answer");
	}
	json_free(v);
	return rc;
}

/* ---- requests ---- */

struct json_writer *client_begin(struct client *c, const char *op)
{
	c->request_at = c->out.len;
	json_begin(&c->writer, &c->out, false);
	json_open(&c->writer, '{');
	json_kv_int(&c->writer, "v", 1);
	json_kv_string(&c->writer, "op", op);
	json_kv_int(&c->writer, "id", (long long)c->next_id);
	return &c->writer;
}

int client_end(struct client *c, struct client_fault *f)
{
	size_t len;

	json_close(&c->writer, '}');
	if (c->out.failed)
		return no_memory(f);
	len = c->out.len - c->request_at;
	if (len > c->max_request) {
		c->out.len = c->request_at; /* nothing of it was sent, and those before it go on */
		client_fail(f, CLIENT_USAGE, "the request has %zu bytes; the daemon takes %zu", len,
			    c->max_request);
		snprintf(f->code, sizeof f->code, "line_too_long");
		return f->exit_code;
	}
	strbuf_puts(&c->out, "\n");
	if (c->out.failed)
		return no_memory(f);
	c->next_id++;
	return 0;
}

int client_call(struct client *c, struct json **out, struct client_fault *f)
{
	int rc = client_end(c, f);

	return rc ? rc : client_reply(c, out, f);
}

/* ---- connecting ---- */

static int unreachable(const char *path, int error, struct client_fault *f)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR: client_fail(f, CLIENT_UNREACHABLE, "no daemon: there is no socket %s", path); break;
	case ECONNREFUSED:
		client_fail(f, CLIENT_UNREACHABLE, "no daemon: nothing listens at %s", path);
		break;
	case EAGAIN:
		client_fail(f, CLIENT_UNREACHABLE, "the daemon at %s takes no more connections", path);
		return f->exit_code;
	case EACCES:
	case EPERM:
		client_fail(f, CLIENT_NOT_PERMITTED, "you may not talk to the daemon at %s: %s", path,
			    strerror(error));
		snprintf(f->hint, sizeof f->hint, "its operator can add you to the group of the socket");
		return f->exit_code;
	default:
		client_fail(f, CLIENT_UNREACHABLE, "no daemon: connecting to %s: %s", path, strerror(error));
		break;
	}
	snprintf(f->hint, sizeof f->hint,
		 "start postriderd, or set its socket with --socket or POSTRIDER_SOCKET");
	return f->exit_code;
}

static int connect_to(struct client *c, struct client_fault *f)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	double wait_s = isnan(c->timeout_s) || c->timeout_s > CLIENT_GREETING_S ? CLIENT_GREETING_S
										: c->timeout_s;
	/* A full queue of connections makes connect() wait, and this limits how long. */
	struct timeval limit = { (time_t)wait_s, (suseconds_t)(fmod(wait_s, 1.0) * 1e6) + 1 };
	int rc;

	if (strlen(c->path) >= sizeof at.sun_path)
		return client_fail(f, CLIENT_USAGE, "%s: the path of a socket has at most %zu bytes", c->path,
				   sizeof at.sun_path - 1);
	strcpy(at.sun_path, c->path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return client_fail(f, CLIENT_FAILED, "cannot make a socket: %s", strerror(errno));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	do
		rc = connect(c->fd, (struct sockaddr *)&at, sizeof at);
	while (rc && errno == EINTR && !client_interrupted());
	if (rc && errno == EINTR)
		return client_fail(f, CLIENT_INTERRUPTED, "interrupted");
	if (rc)
		return unreachable(c->path, errno, f);
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK))
		return client_fail(f, CLIENT_FAILED, "%s: %s", c->path, strerror(errno));
	return 0;
}

/* What a user's own daemon is told are commands that run as that user. */
static int check_own(const struct client *c, struct client_fault *f)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof peer;

	if (!getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid())
		return 0;
	return client_fail(f, CLIENT_NOT_PERMITTED,
			   "another user (uid %u, process %ld) listens at %s, where your own daemon would; "
			   "nothing was told to it",
			   (unsigned)peer.uid, (long)peer.pid, c->path);
}

static int greeting(struct client *c, struct client_fault *f)
{
	int64_t until_ns = earlier(after_s(CLIENT_GREETING_S), c->deadline_ns);
	struct json *v = NULL;
	double max_line;
	size_t len;
	char *line;
	int rc = next_line(c, until_ns, &line, &len, f);

	if (rc)
		return rc;
	if (!line && c->ended)
		return client_fail(f, CLIENT_FAILED, "%s closed the connection without a greeting", c->path);
	if (!line && until_ns == c->deadline_ns)
		return timed_out(c, "a greeting", f);
	if (!line)
		return client_fail(
			f, CLIENT_UNREACHABLE,
			"something listens at %s but sends no greeting within %g s; is postriderd stuck?",
			c->path, CLIENT_GREETING_S);
	rc = read_object(c, line, len, &v, f);
	if (rc)
		return rc;
	if (json_type(json_get(v, "ok")) == JSON_BOOL && !json_bool(json_get(v, "ok"), true)) {
		refusal(v, f);
		f->code[0] = '\0'; /* for any reason, the connection is over */
		rc = f->exit_code;
	} else if (strcmp(json_string(json_get(v, "greeting"), ""), "postriderd")) {
		rc = client_fail(f, CLIENT_FAILED, "%s does not greet as postriderd", c->path);
	}
	max_line = json_number(json_get(v, "max_line"), CLIENT_MAX_REQUEST);
	if (max_line >= 1024.0 && max_line < CLIENT_MAX_REQUEST)
		c->max_request = (size_t)max_line;
	json_free(v);
	return rc;
}

int client_open(const struct client_params *p, struct client **out, struct client_fault *f)
{
	struct client *c = mem_calloc(1, sizeof *c);
	struct err err = { 0 };
	int rc;

	*f = (struct client_fault){ 0 };
	if (!c)
		return no_memory(f);
	c->fd = -1;
	c->timeout_s = p->timeout_s;
	c->deadline_ns = after_s(p->timeout_s);
	c->max_request = CLIENT_MAX_REQUEST;
	c->next_id = c->next_reply = 1;
	rc = config_socket(p->socket, &c->path, &err);
	if (rc)
		rc = client_fail(f, err_exit_code(err.code), "cannot find the daemon's socket: %s", err.text);
	if (!rc)
		rc = connect_to(c, f);
	if (!rc && p->own)
		rc = check_own(c, f);
	if (!rc)
		rc = greeting(c, f);
	if (rc)
		client_close(c);
	else
		*out = c;
	return rc;
}

void client_close(struct client *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	for (size_t i = c->event_at; i < c->n_events; i++)
		json_free(c->event[i]);
	free(c->event);
	strbuf_release(&c->out);
	strbuf_release(&c->in);
	free(c->path);
	free(c);
}

int client_ask(const struct client_params *at, const struct client_question *q, struct json **out)
{
	struct client *c = NULL;
	struct client_fault f;
	struct json_writer *w;
	char what[80];
	int rc = client_open(at, &c, &f);

	if (!rc) {
		w = client_begin(c, q->op);
		if (q->job)
			json_kv_string(w, "job", q->job);
		if (q->version)
			json_kv_int(w, "version", (long long)*q->version);
		if (q->type)
			json_kv_string(w, "type", q->type);
		if (q->days)
			json_kv_int(w, "days", (long long)q->days);
		if (q->flag)
			json_kv_bool(w, q->flag, true);
		rc = client_call(c, out, &f);
	}
	if (!rc && q->expects && json_type(json_get(*out, q->expects)) == JSON_ABSENT) {
		snprintf(what, sizeof what, "it has no \"%s\"", q->expects);
		rc = client_bad_reply(&f, what);
		json_free(*out);
		*out = NULL;
	}
	client_close(c);
	return rc ? client_say(&f) : 0;
}
