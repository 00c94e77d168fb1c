/* Listening, accepting, and the turns of the loop; server_internal.h says what a turn is. */
#define _GNU_SOURCE
#include "scheduler/daemon/net/server.h"

#include <errno.h>
#include <pwd.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/daemon/net/server_internal.h"

#define MAX_LINES_PER_TURN 256 /* of one connection */
#define SHARED_LINES_PER_TURN 512 /* of all that are ready, shared out equally, but at least a few each */
#define FEW_LINES 8
/* The loop looks at everything else after this long of lines, parts of replies, and writes. */
#define LINES_NS 1000000
#define PARTS_NS 1000000
#define WRITES_NS 2000000
#define ACCEPTS_PER_TURN 64
#define ACCEPT_AGAIN_US 100000 /* after the system had no descriptor or memory for a connection */
#define DEFAULT_OUTPUT ((size_t)8 << 20)
#define SWEEP_MIN_S 0.02
#define SWEEP_MAX_S 5.0

/* ---- lists ---- */

void server_want_turn(struct server *s)
{
	if (s->turn_due)
		return;
	s->turn_due = true;
	event_active(&s->turn_event, EV_TIMEOUT, 0);
}

void server_add_ready(struct conn *c)
{
	if (c->ready || c->dead)
		return;
	c->ready = true;
	TAILQ_INSERT_TAIL(&c->server->ready, c, ready_link);
	c->server->n_ready++;
	server_want_turn(c->server);
}

void server_add_dirty(struct conn *c)
{
	if (c->dirty || c->dead)
		return;
	c->dirty = true;
	TAILQ_INSERT_TAIL(&c->server->dirty, c, dirty_link);
	server_want_turn(c->server);
}

void server_add_streaming(struct conn *c)
{
	if (c->streaming || c->dead)
		return;
	c->streaming = true;
	TAILQ_INSERT_TAIL(&c->server->streaming, c, stream_link);
	server_want_turn(c->server);
}

static struct conn *take_ready(struct server *s)
{
	struct conn *c = TAILQ_FIRST(&s->ready);

	if (!c)
		return NULL;
	TAILQ_REMOVE(&s->ready, c, ready_link);
	c->ready = false;
	s->n_ready--;
	return c;
}

/* ---- turns ---- */

/* A round over those that are ready now; one that is not done, or whose time did not come, stays in the
 * list. */
static void serve_ready(struct server *s)
{
	size_t n = s->n_ready, share = n ? SHARED_LINES_PER_TURN / n : 0;
	int64_t until_ns = s->now_ns + LINES_NS;

	if (share > MAX_LINES_PER_TURN)
		share = MAX_LINES_PER_TURN;
	if (share < FEW_LINES)
		share = FEW_LINES;
	for (; n > 0; n--) {
		struct conn *c = take_ready(s);

		if (!c)
			break;
		if (conn_serve(c, share, until_ns))
			s->handled = true;
		server_add_dirty(c);
		if (n > 1 && clock_monotonic_ns() >= until_ns)
			break;
	}
}

/* One part for each connection in turn, as long as there is time and room. */
static void make_parts(struct server *s)
{
	int64_t until_ns = clock_monotonic_ns() + PARTS_NS;
	struct conn *c;

	while ((c = TAILQ_FIRST(&s->streaming))) {
		TAILQ_REMOVE(&s->streaming, c, stream_link);
		c->streaming = false;
		if (!conn_streams(c))
			continue; /* conn_settle() or reply_wake() comes back to it */
		conn_make_part(c);
		server_add_dirty(c);
		if (conn_streams(c))
			server_add_streaming(c);
		if (clock_monotonic_ns() >= until_ns)
			break;
	}
}

static void settle_dirty(struct server *s, int64_t until_ns)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(&s->dirty)) && clock_monotonic_ns() < until_ns) {
		TAILQ_REMOVE(&s->dirty, c, dirty_link);
		c->dirty = false;
		conn_settle(c);
	}
}

static void run_turn(struct server *s)
{
	s->turn_due = true; /* whatever is added below is part of this turn */
	s->now_ns = clock_monotonic_ns();
	s->handled = false;
	if (s->handler.turn_begins)
		s->handler.turn_begins(s->handler.owner);
	serve_ready(s);
	if (s->handled && s->handler.on_turn)
		s->handler.on_turn(s->handler.owner);
	make_parts(s);
	settle_dirty(s, clock_monotonic_ns() + WRITES_NS);
	if (s->handler.turn_ends)
		s->handler.turn_ends(s->handler.owner);
	s->turn_due = false;
	/* By a timer, so that the loop looks at descriptors and other timers first. */
	if (s->n_ready > 0 || TAILQ_FIRST(&s->streaming) || TAILQ_FIRST(&s->dirty)) {
		s->turn_due = true;
		event_add(&s->next_turn, &(struct timeval){ 0, 0 });
	}
}

static void on_turn_event(evutil_socket_t fd, short what, void *server)
{
	(void)fd;
	(void)what;
	run_turn(server);
}

static void on_sweep(evutil_socket_t fd, short what, void *server)
{
	struct server *s = server;
	int64_t now_ns = clock_monotonic_ns();

	(void)fd;
	(void)what;
	for (struct conn *c = TAILQ_FIRST(&s->conns); c; c = TAILQ_NEXT(c, link))
		conn_sweep(c, now_ns);
}

/* Four looks per idle timeout: a connection is closed at most a quarter of it late. */
static void set_sweep(struct server *s)
{
	double period_s = s->limit.idle_timeout_s > 0.0 ? s->limit.idle_timeout_s / 4.0 : SWEEP_MAX_S;
	struct timeval tv;

	if (!(period_s < SWEEP_MAX_S))
		period_s = SWEEP_MAX_S;
	if (period_s < SWEEP_MIN_S)
		period_s = SWEEP_MIN_S;
	tv.tv_sec = (time_t)period_s;
	tv.tv_usec = (suseconds_t)((period_s - (double)tv.tv_sec) * 1e6);
	event_add(&s->sweep, &tv);
}

/* ---- accepting ---- */

static struct uid_count **find_uid(struct server *s, uid_t uid)
{
	struct uid_count **p = &s->uids[uid % SERVER_UID_BUCKETS];

	while (*p && (*p)->uid != uid)
		p = &(*p)->next;
	return p;
}

void server_uncount(struct server *s, uid_t uid)
{
	struct uid_count **p = find_uid(s, uid), *u = *p;

	if (u && --u->n == 0) {
		*p = u->next;
		free(u);
	}
}

static int count_uid(struct server *s, uid_t uid)
{
	struct uid_count **p = find_uid(s, uid);

	if (!*p) {
		*p = mem_calloc(1, sizeof **p);
		if (!*p)
			return -1;
		(*p)->uid = uid;
	}
	(*p)->n++;
	return 0;
}

/* Says why and closes. A socket without a reader's attention has room for a line, so nothing blocks. */
static void turn_away(struct server *s, int fd, const char *code, const char *message)
{
	size_t len = 0;
	const char *text = s->handler.refusal(s->handler.owner, code, message, &len);

	if (text && len)
		(void)!send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static void take_connection(struct server *s, int fd)
{
	const struct server_params *l = &s->limit;
	struct ucred peer = { 0 };
	socklen_t size = sizeof peer;
	struct uid_count *u;
	char message[128];

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
		close(fd);
		return;
	}
	u = *find_uid(s, peer.uid);
	if (l->max_connections && s->n_conns >= l->max_connections) {
		snprintf(message, sizeof message, "%zu connections are open, as many as are allowed",
			 s->n_conns);
		turn_away(s, fd, "too_many_connections", message);
		return;
	}
	if (l->max_connections_per_uid && u && u->n >= l->max_connections_per_uid) {
		snprintf(message, sizeof message, "uid %u has %zu connections, as many as are allowed",
			 (unsigned)peer.uid, u->n);
		turn_away(s, fd, "too_many_connections", message);
		return;
	}
	if (count_uid(s, peer.uid)) {
		close(fd);
		return;
	}
	if (conn_new(s, fd, &peer, *find_uid(s, peer.uid))) {
		server_uncount(s, peer.uid);
		close(fd);
	}
}

static void open_spare(struct server *s)
{
	if (s->spare_fd < 0)
		s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Descriptors ran out: the spare one makes room to say so. False: there is none, wait a little. */
static bool refuse_without_descriptor(struct server *s)
{
	int fd;

	if (s->spare_fd < 0)
		return false;
	close(s->spare_fd);
	s->spare_fd = -1;
	fd = accept4(s->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		turn_away(s, fd, "too_many_connections", "the daemon has no file descriptor left");
	open_spare(s);
	return fd >= 0;
}

static void on_acceptable(evutil_socket_t listen_fd, short what, void *server)
{
	struct server *s = server;

	(void)what;
	open_spare(s);
	for (int i = 0; i < ACCEPTS_PER_TURN && s->accept_on; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take_connection(s, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			return;
		if ((errno == EMFILE || errno == ENFILE) && refuse_without_descriptor(s))
			continue;
		/* Nothing can be done about it now, and the descriptor would stay readable: look again
		 * later. */
		event_del(&s->accept_event);
		event_add(&s->accept_again, &(struct timeval){ 0, ACCEPT_AGAIN_US });
		return;
	}
}

static void on_accept_again(evutil_socket_t fd, short what, void *server)
{
	struct server *s = server;

	(void)fd;
	(void)what;
	if (s->accept_on)
		event_add(&s->accept_event, NULL);
}

/* ---- life ---- */

static void raise_file_limit(void)
{
	struct rlimit l;

	/* If this is not allowed, connections are refused earlier. */
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)!setrlimit(RLIMIT_NOFILE, &l);
	}
}

int server_adopt(struct server *s, int fd, uid_t uid)
{
	const struct server_params *l = &s->limit;
	struct uid_count *u = *find_uid(s, uid);
	struct ucred peer = { .pid = getpid(), .uid = uid, .gid = (gid_t)-1 };
	struct passwd entry, *found = NULL;
	char text[4096];

	if ((l->max_connections && s->n_conns >= l->max_connections) ||
	    (l->max_connections_per_uid && u && u->n >= l->max_connections_per_uid) || count_uid(s, uid))
		return -1;
	if (!getpwuid_r(uid, &entry, text, sizeof text, &found) && found)
		peer.gid = entry.pw_gid;
	if (conn_new(s, fd, &peer, *find_uid(s, uid))) {
		server_uncount(s, uid);
		return -1;
	}
	TAILQ_LAST(&s->conns, conn_list)->adopted = true;
	return 0;
}

void server_set_limits(struct server *s, const struct server_params *p)
{
	s->limit.max_connections = p->max_connections;
	s->limit.max_connections_per_uid = p->max_connections_per_uid;
	s->limit.max_output_bytes_per_uid = p->max_output_bytes_per_uid;
	s->limit.max_output_bytes = p->max_output_bytes ? p->max_output_bytes : DEFAULT_OUTPUT;
	s->limit.idle_timeout_s = p->idle_timeout_s > 0.0 ? p->idle_timeout_s : 0.0; /* NaN: never */
	set_sweep(s);
}

int server_new(const struct server_params *p, struct server **out, struct err *err)
{
	struct server *s = mem_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return err_nomem(err, "the server");
	s->base = p->base;
	s->handler = p->handler;
	s->spare_fd = -1;
	s->socket = (struct server_socket){ .fd = -1, .lock_fd = -1 };
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->ready);
	TAILQ_INIT(&s->dirty);
	TAILQ_INIT(&s->waiting);
	TAILQ_INIT(&s->streaming);
	raise_file_limit();
	rc = server_socket_open(p, &s->socket, err);
	if (rc) {
		server_free(s);
		return rc;
	}
	event_assign(&s->accept_event, s->base, s->socket.fd, EV_READ | EV_PERSIST, on_acceptable, s);
	event_assign(&s->accept_again, s->base, -1, 0, on_accept_again, s);
	event_assign(&s->turn_event, s->base, -1, 0, on_turn_event, s);
	event_assign(&s->next_turn, s->base, -1, 0, on_turn_event, s);
	event_assign(&s->sweep, s->base, -1, EV_PERSIST, on_sweep, s);
	s->events_made = true;
	open_spare(s);
	server_set_limits(s, p);
	if (event_add(&s->accept_event, NULL) < 0) {
		server_free(s);
		return err_fail(err, ERR_IO, "the event loop does not take the listening socket");
	}
	s->accept_on = true;
	*out = s;
	return 0;
}

void server_stop_accepting(struct server *s)
{
	if (!s->accept_on)
		return;
	s->accept_on = false;
	event_del(&s->accept_event);
	event_del(&s->accept_again);
	close(s->socket.fd); /* a client that tries now fails at once, instead of waiting in the backlog */
	s->socket.fd = -1;
}

void server_free(struct server *s)
{
	struct conn *c;

	if (!s)
		return;
	if (s->events_made) {
		s->turn_due = true; /* no more turns */
		settle_dirty(s, INT64_MAX);
		event_del(&s->accept_event);
		event_del(&s->accept_again);
		event_del(&s->turn_event);
		event_del(&s->next_turn);
		event_del(&s->sweep);
	}
	while ((c = TAILQ_FIRST(&s->conns)))
		conn_free(c);
	for (size_t i = 0; i < s->n_spare; i++)
		free(s->spare[i].bytes);
	strbuf_release(&s->part);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	server_socket_close(&s->socket);
	free(s);
}

size_t server_connections(const struct server *s)
{
	return s->n_conns;
}

void server_durable(struct server *s, uint64_t ticket)
{
	struct conn *c, *next;

	if (ticket <= s->durable)
		return;
	s->durable = ticket;
	for (c = TAILQ_FIRST(&s->waiting); c; c = next) {
		next = TAILQ_NEXT(c, waiting_link); /* c may leave the list */
		conn_release(c);
	}
}
