/* All-reduce between processes over TCP: what allreduce.c does in shared memory, across machines. Every
 * worker has a connection to every other. A sum has two rounds. In the first, each worker gets 1/N of the
 * places of all vectors and adds them up in the order of the ranks (reduce-scatter). In the second, it sends
 * its part of the sum to all (all-gather). So a worker sends and receives 2 (N-1)/N vectors, and the sum has
 * the same bits as in shared memory.
 *
 * When a worker fails or dies, its connections close, and the others stop. The kernel closes the connections
 * to a machine that no longer answers. */
#define _GNU_SOURCE
#include "workloads/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "workloads/kernel.h"
#include "workloads/stop.h"

#define MAGIC "postrider all-reduce 1"
#define WAIT_S 60 /* for all workers to be there */
#define GREETING_S 5 /* for a connection to say who it is */
#define DEAD_MS 60000 /* a machine that acknowledges nothing for so long is gone */
#define RETRY_NS 50000000

/* The first thing that both ends of a connection send. Byte orders differ: the magic tells. */
struct hello {
	char magic[28];
	uint32_t order; /* 1 */
	uint32_t n, from, to;
	uint64_t n_floats;
};

/* Before every piece of a vector. */
struct head {
	uint32_t round; /* counted by both: two that are not in the same round have other options */
	int32_t signal; /* that the sender got; 0: none */
	uint64_t bytes;
};

struct peer {
	char *name, *host, *port; /* name: as the list has it */
	int fd;
	struct head out_head, in_head;
	const void *out;
	void *in;
	size_t sent, got; /* bytes of this round, head included */
};

static struct {
	struct peer *peer;
	unsigned n, rank;
} job;

struct tcp {
	float *sum;
	float *parts; /* what the others sent of this worker's places, one after the other */
	size_t part; /* floats from one to the next */
	double doubles[TCP_MAX_WORKERS][COMM_MAX_DOUBLES];
	uint32_t round;
	struct pollfd *poll;
};

/* ---- the list of workers ---- */

void tcp_release(void)
{
	for (unsigned k = 0; k < job.n; k++) {
		free(job.peer[k].name);
		free(job.peer[k].host);
		if (job.peer[k].fd >= 0)
			close(job.peer[k].fd);
	}
	free(job.peer);
	memset(&job, 0, sizeof job);
}

static int peer_init(struct peer *p, const char *text, size_t len, struct err *err)
{
	char *colon;

	p->fd = -1;
	p->name = mem_strndup(text, len);
	p->host = mem_strndup(text, len);
	if (!p->name || !p->host)
		return err_nomem(err, "the list of workers");
	colon = strrchr(p->host, ':');
	if (!colon || colon == p->host || !colon[1])
		return err_fail(err, ERR_ARG, "--peers: '%s' is no HOST:PORT", p->name);
	*colon = '\0';
	p->port = colon + 1;
	if (p->host[0] == '[' && colon[-1] == ']') { /* the address of IPv6 is between them */
		colon[-1] = '\0';
		memmove(p->host, p->host + 1, strlen(p->host));
	}
	return 0;
}

int tcp_setup(const char *peers, unsigned rank, unsigned *out_n, struct err *err)
{
	size_t n = 1;
	int rc = 0;

	for (const char *s = peers; *s; s++)
		n += *s == ',';
	if (n < 2 || n > TCP_MAX_WORKERS)
		return err_fail(err, ERR_ARG, "--peers: %zu workers: from 2 to %u", n, TCP_MAX_WORKERS);
	if (rank >= n)
		return err_fail(err, ERR_ARG, "--rank %u: --peers names %zu workers, so it is 0 to %zu", rank,
				n, n - 1);
	job.peer = mem_calloc(n, sizeof *job.peer);
	if (!job.peer)
		return err_nomem(err, "%zu workers", n);
	job.rank = rank;
	while (!rc && job.n < n) {
		size_t len = strcspn(peers, ",");

		rc = peer_init(&job.peer[job.n++], peers, len, err);
		peers += len + 1;
	}
	for (unsigned k = 0; !rc && k < job.n; k++)
		for (unsigned i = 0; !rc && i < k; i++)
			if (!strcmp(job.peer[i].name, job.peer[k].name))
				rc = err_fail(err, ERR_ARG, "--peers: workers %u and %u are both at '%s'", i,
					      k, job.peer[k].name);
	*out_n = job.n;
	if (rc)
		tcp_release();
	return rc;
}

/* ---- connecting ---- */

static int stopped(struct err *err)
{
	return err_fail(err, ERR_STOPPED, "stopped while worker %u waited for the others", job.rank);
}

static int address(const struct peer *p, int flags, struct addrinfo **out, struct err *err)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	int rc = getaddrinfo(p->host, p->port, &want, out);

	if (rc)
		return err_fail(err, rc == EAI_SERVICE ? ERR_ARG : ERR_IO, "worker at %s: %s", p->name,
				rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	return 0;
}

static int listen_here(int *out_fd, struct err *err)
{
	const struct peer *me = &job.peer[job.rank];
	struct addrinfo *a;
	int on = 1, rc = address(me, AI_PASSIVE, &a, err);

	if (rc)
		return rc;
	*out_fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*out_fd >= 0)
		setsockopt(*out_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (*out_fd < 0 || bind(*out_fd, a->ai_addr, a->ai_addrlen) || listen(*out_fd, (int)job.n))
		rc = err_fail(err, ERR_IO, "worker %u cannot listen at %s: %s%s", job.rank, me->name,
			      strerror(errno),
			      errno == EADDRNOTAVAIL ? "; is this machine the one that --rank means?" : "");
	freeaddrinfo(a);
	return rc;
}

/* A machine that is switched off says nothing: the kernel has to ask. */
static void notice_death(int fd)
{
	int on = 1, idle = 10, times = 3, dead = DEAD_MS;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof dead);
}

/* A whole struct hello, or false when it does not come until `until`. */
static bool read_hello(int fd, double until, struct hello *out)
{
	size_t got = 0;

	while (got < sizeof *out) {
		double left = until - clock_monotonic_s();
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (left <= 0.0 || stop_signal())
			return false;
		if (poll(&p, 1, (int)(left * 1e3) + 1) < 1)
			continue;
		n = recv(fd, (char *)out + got, sizeof *out - got, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		got += n > 0 ? (size_t)n : 0;
	}
	return !memcmp(out->magic, MAGIC, sizeof MAGIC) && out->order == 1;
}

static bool send_hello(int fd, unsigned to, size_t n_floats)
{
	struct hello h = {
		.magic = MAGIC, .order = 1, .n = job.n, .from = job.rank, .to = to, .n_floats = n_floats
	};

	return send(fd, &h, sizeof h, MSG_NOSIGNAL) == (ssize_t)sizeof h; /* fits into an empty buffer */
}

/* Two workers that would never agree: 0, or why. */
static int agree(const struct hello *h, size_t n_floats, struct err *err)
{
	const char *name = job.peer[h->from].name;

	if (h->n_floats != n_floats)
		return err_fail(err, ERR_ARG, "worker %u at %s trains another network", h->from, name);
	if (h->n != job.n)
		return err_fail(err, ERR_ARG, "worker %u at %s was told of %u workers, this one of %u",
				h->from, name, h->n, job.n);
	return 0;
}

/* One try. *out_fd is -1 when there is no answer yet. */
static int try_connect(const struct peer *p, int *out_fd, struct err *err)
{
	struct timeval patience = { .tv_sec = GREETING_S };
	struct addrinfo *a;
	int rc = address(p, 0, &a, err);

	*out_fd = -1;
	if (rc)
		return rc;
	for (struct addrinfo *i = a; i && *out_fd < 0; i = i->ai_next) {
		*out_fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (*out_fd >= 0) /* connect() heeds it, too */
			setsockopt(*out_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
		if (*out_fd >= 0 && connect(*out_fd, i->ai_addr, i->ai_addrlen)) {
			close(*out_fd);
			*out_fd = -1;
		}
	}
	freeaddrinfo(a);
	return 0;
}

static int connect_to(unsigned k, size_t n_floats, double until, struct err *err)
{
	struct timespec pause = { .tv_nsec = RETRY_NS };
	struct peer *p = &job.peer[k];

	for (;;) {
		struct hello h;
		int fd, rc = try_connect(p, &fd, err);

		if (rc)
			return rc;
		/* Its answer may take as long as its own waiting. */
		if (fd >= 0 && send_hello(fd, k, n_floats) && read_hello(fd, until, &h) && h.from == k) {
			p->fd = fd;
			return agree(&h, n_floats, err);
		}
		if (fd >= 0)
			close(fd);
		if (stop_signal())
			return stopped(err);
		if (clock_monotonic_s() > until)
			return err_fail(err, ERR_IO, "worker %u at %s did not answer within %d s", k, p->name,
					WAIT_S);
		nanosleep(&pause, NULL);
	}
}

/* Takes one connection, if it is of a worker that is awaited; others are closed without a word. */
static int take(int listener, size_t n_floats, unsigned *missing, struct err *err)
{
	int rc, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct hello h;

	if (fd < 0)
		return 0;
	if (!read_hello(fd, clock_monotonic_s() + GREETING_S, &h) || h.to != job.rank || h.from <= job.rank ||
	    h.from >= job.n || job.peer[h.from].fd >= 0 || !send_hello(fd, h.from, n_floats)) {
		close(fd);
		return 0;
	}
	rc = agree(&h, n_floats, err);
	job.peer[h.from].fd = fd;
	--*missing;
	return rc;
}

/* Connects to the workers before this one and is connected to by those after it. */
static int meet(size_t n_floats, struct err *err)
{
	double until = clock_monotonic_s() + WAIT_S;
	unsigned missing = job.n - job.rank - 1;
	int listener = -1, rc = listen_here(&listener, err);

	for (unsigned k = 0; !rc && k < job.rank; k++)
		rc = connect_to(k, n_floats, until, err);
	while (!rc && missing) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		double left = until - clock_monotonic_s();

		if (stop_signal())
			rc = stopped(err);
		else if (left <= 0.0)
			rc = err_fail(err, ERR_IO, "worker %u: %u of %u workers did not come within %d s",
				      job.rank, missing, job.n, WAIT_S);
		else if (poll(&p, 1, (int)(left * 1e3) + 1) > 0)
			rc = take(listener, n_floats, &missing, err);
	}
	if (listener >= 0)
		close(listener);
	for (unsigned k = 0; k < job.n; k++)
		if (job.peer[k].fd >= 0)
			notice_death(job.peer[k].fd);
	return rc;
}

/* ---- a round: a piece to everyone, a piece from everyone ---- */

static int gone(unsigned k, struct err *err)
{
	return err_fail(err, ERR_IO, "worker %u at %s has gone", k, job.peer[k].name);
}

/* What is left of a head and a body after the first `done` bytes. */
static int rest(struct head *head, void *body, size_t bytes, size_t done, struct iovec out[2])
{
	if (done >= sizeof *head) {
		out[0] = (struct iovec){ (char *)body + (done - sizeof *head), sizeof *head + bytes - done };
		return 1;
	}
	out[0] = (struct iovec){ (char *)head + done, sizeof *head - done };
	out[1] = (struct iovec){ body, bytes };
	return bytes ? 2 : 1;
}

static int move(unsigned k, bool out, struct err *err)
{
	struct peer *p = &job.peer[k];
	size_t *done = out ? &p->sent : &p->got, bytes = (out ? &p->out_head : &p->in_head)->bytes;
	struct iovec iov[2];
	struct msghdr m = { .msg_iov = iov };
	ssize_t n;

	/* The body of what comes is read only after its head was looked at. */
	if (!out && p->got < sizeof p->in_head)
		bytes = 0;
	m.msg_iovlen = (size_t)rest(out ? &p->out_head : &p->in_head, out ? (void *)p->out : p->in, bytes,
				    *done, iov);
	n = out ? sendmsg(p->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) : recvmsg(p->fd, &m, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 || (n == 0 && !out))
		return gone(k, err);
	*done += (size_t)n;
	return 0;
}

/* p->in has room for `room` bytes: the head must announce as many. */
static int check_head(unsigned k, size_t room, uint32_t round, struct err *err)
{
	struct peer *p = &job.peer[k];

	if (p->in_head.round != round || p->in_head.bytes != room)
		return err_fail(err, ERR_ARG,
				"worker %u at %s is at another step than this one: all need the same options",
				k, p->name);
	return 0;
}

/* Every peer's `out` goes out, and its `in` comes in: in_bytes[k] of it. */
static int exchange(struct comm *c, const size_t *in_bytes, struct err *err)
{
	struct tcp *t = c->self;
	int rc = 0;

	t->round++;
	for (unsigned k = 0; k < job.n; k++) {
		job.peer[k].sent = job.peer[k].got = 0;
		job.peer[k].out_head.round = t->round;
		job.peer[k].out_head.signal = stop_signal();
	}
	while (!rc) {
		unsigned busy = 0;

		for (unsigned k = 0; k < job.n; k++) {
			struct peer *p = &job.peer[k];
			bool out = p->sent < sizeof p->out_head + p->out_head.bytes;
			bool in = p->got < sizeof p->in_head + in_bytes[k];

			t->poll[k] =
				(struct pollfd){ .fd = k != job.rank && (out || in) ? p->fd : -1,
						 .events = (short)((out ? POLLOUT : 0) | (in ? POLLIN : 0)) };
			busy += t->poll[k].fd >= 0;
		}
		if (!busy)
			break;
		if (poll(t->poll, job.n, -1) < 0) {
			if (errno != EINTR)
				rc = err_fail(err, ERR_IO, "cannot wait for the other workers: %s",
					      strerror(errno));
			continue;
		}
		for (unsigned k = 0; !rc && k < job.n; k++) {
			struct pollfd *e = &t->poll[k];
			bool lost = e->revents & (POLLERR | POLLHUP | POLLNVAL);

			if (e->fd < 0 || !e->revents)
				continue;
			if ((e->events & POLLIN) && (e->revents & POLLIN || lost)) {
				size_t before = job.peer[k].got;

				rc = move(k, false, err);
				if (!rc && before < sizeof(struct head) &&
				    job.peer[k].got >= sizeof(struct head))
					rc = check_head(k, in_bytes[k], t->round, err);
			}
			if (!rc && (e->events & POLLOUT) && (e->revents & POLLOUT || lost))
				rc = move(k, true, err);
		}
	}
	return rc;
}

/* The signal that all act on: that of the lowest rank that got one before this round. */
static int agreed_signal(void)
{
	for (unsigned k = 0; k < job.n; k++) {
		int number = k == job.rank ? job.peer[k].out_head.signal : job.peer[k].in_head.signal;

		if (number)
			return number;
	}
	return 0;
}

/* ---- sums ---- */

static size_t part_begin(const struct comm *c, unsigned k)
{
	return c->n_floats * k / c->size;
}

static int tcp_sum(struct comm *c, const float **out_sum, struct err *err)
{
	struct tcp *t = c->self;
	size_t from = part_begin(c, c->rank), n = part_begin(c, c->rank + 1) - from;
	size_t bytes[TCP_MAX_WORKERS];
	int rc;

	for (unsigned k = 0; k < c->size; k++) {
		size_t begin = part_begin(c, k);

		job.peer[k].out = c->vector + begin;
		job.peer[k].out_head.bytes = (part_begin(c, k + 1) - begin) * sizeof(float);
		job.peer[k].in = t->parts + k * t->part;
		bytes[k] = n * sizeof(float);
	}
	rc = exchange(c, bytes, err);
	if (rc)
		return rc;
	c->stop = agreed_signal();
	memcpy(t->parts + c->rank * t->part, c->vector + from, n * sizeof(float));
	for (size_t i = 0; i < n; i++)
		t->sum[from + i] = t->parts[i] + t->parts[t->part + i];
	for (unsigned k = 2; k < c->size; k++)
		for (size_t i = 0; i < n; i++)
			t->sum[from + i] += t->parts[k * t->part + i];
	for (unsigned k = 0; k < c->size; k++) {
		size_t begin = part_begin(c, k);

		job.peer[k].out = t->sum + from;
		job.peer[k].out_head.bytes = n * sizeof(float);
		job.peer[k].in = t->sum + begin;
		bytes[k] = (part_begin(c, k + 1) - begin) * sizeof(float);
	}
	rc = exchange(c, bytes, err);
	if (!rc)
		*out_sum = t->sum;
	return rc;
}

static int tcp_sum_doubles(struct comm *c, double *v, size_t n, struct err *err)
{
	struct tcp *t = c->self;
	size_t bytes[TCP_MAX_WORKERS];
	int rc;

	memcpy(t->doubles[c->rank], v, n * sizeof *v);
	for (unsigned k = 0; k < c->size; k++) {
		job.peer[k].out = t->doubles[c->rank];
		job.peer[k].in = t->doubles[k];
		job.peer[k].out_head.bytes = bytes[k] = n * sizeof *v;
	}
	rc = exchange(c, bytes, err);
	if (rc)
		return rc;
	memset(v, 0, n * sizeof *v);
	for (unsigned k = 0; k < c->size; k++)
		for (size_t i = 0; i < n; i++)
			v[i] += t->doubles[k][i];
	return 0;
}

static int run(struct comm *c, comm_work *work, void *ctx, struct err *err)
{
	struct tcp *t = mem_calloc(1, sizeof *t);
	int rc;

	if (!t)
		return err_nomem(err, "a worker");
	t->part = c->n_floats / c->size + 1;
	t->sum = mem_calloc(c->n_floats + KERNEL_SLACK, sizeof(float));
	t->parts = mem_calloc(c->size * t->part, sizeof(float));
	t->poll = mem_calloc(c->size, sizeof *t->poll);
	c->vector = mem_calloc(c->n_floats + KERNEL_SLACK, sizeof(float));
	c->self = t;
	if (!t->sum || !t->parts || !t->poll || !c->vector)
		rc = err_nomem(err, "a gradient of %zu numbers", c->n_floats);
	else
		rc = meet(c->n_floats, err);
	if (!rc)
		rc = work(c, ctx, err);
	for (unsigned k = 0; k < job.n; k++) {
		if (job.peer[k].fd >= 0)
			close(job.peer[k].fd);
		job.peer[k].fd = -1;
	}
	free(t->sum);
	free(t->parts);
	free(t->poll);
	free(c->vector);
	free(t);
	return rc;
}

int tcp_run(unsigned n_workers, size_t n_floats, comm_work *work, void *ctx, int *out_signal, struct err *err)
{
	static const struct comm_ops ops = { tcp_sum, tcp_sum_doubles };
	struct comm c = { .rank = job.rank, .size = n_workers, .n_floats = n_floats, .ops = &ops };
	int rc = stop_begin(err);

	if (rc)
		return rc;
	rc = run(&c, work, ctx, err);
	*out_signal = stop_signal();
	stop_end();
	return rc;
}
