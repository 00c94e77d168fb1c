/* Running the client programs of an engine. See errand.h. */
#define _GNU_SOURCE
#include "scheduler/engines/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/template.h"
#include "common/text/text.h"

#define SLICE_MS 100 /* how often a wait looks whether we are leaving, and whether the program has ended */
#define CLOSED_MS 2 /* the same once its streams are closed: it is about to end */
#define LINGER_MS 500 /* for the first word of one that left a child to say it */
#define LEAVE_S 1.0

struct errands {
	struct orders orders; /* first */
	char *const *environment;
};

/* ---- one program ---- */

static int open_input(const struct strbuf *in)
{
	int fd = memfd_create("postrider-input", MFD_CLOEXEC);

	if (fd >= 0 && in->len &&
	    (write(fd, in->text, in->len) != (ssize_t)in->len || lseek(fd, 0, SEEK_SET))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* 0 or an error number. */
static int start(char *const *environment, const struct errand *e, const int fd[3], pid_t *out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int error = posix_spawnattr_init(&attr);

	if (error)
		return error;
	error = posix_spawn_file_actions_init(&files);
	if (error) {
		posix_spawnattr_destroy(&attr);
		return error;
	}
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0); /* so that its children can be killed with it */
	error = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							POSIX_SPAWN_SETPGROUP);
	for (int i = 0; i < 3 && !error; i++)
		error = posix_spawn_file_actions_adddup2(&files, fd[i], i);
	if (!error)
		error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	if (!error)
		error = posix_spawnp(out, e->argv[0], &files, &attr, e->argv, environment);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return error;
}

/* What there is of a stream. False: its end. */
static bool drain(int fd, struct strbuf *to, size_t max, bool *too_much)
{
	char piece[16384];
	ssize_t n;

	while ((n = read(fd, piece, sizeof piece)) > 0) {
		*too_much |= to->len + (size_t)n > max;
		if (!*too_much)
			strbuf_add(to, piece, (size_t)n);
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void keep_complaint(struct errand *e, const struct strbuf *said)
{
	char line[ERRAND_SAID];

	snprintf(line, sizeof line, "%.*s", (int)strcspn(strbuf_text(said), "\n"), strbuf_text(said));
	text_printable(line, e->said, sizeof e->said);
}

/* Its streams until it ends, its time is over or it says too much. */
static void attend(struct errand *e, bool (*leaving)(const void *owner), const void *owner, pid_t pid,
		   int out_fd, int err_fd)
{
	int64_t until_ns = clock_monotonic_ns() + (int64_t)(1e9 * e->timeout_s);
	struct pollfd p[] = { { .fd = out_fd, .events = POLLIN }, { .fd = err_fd, .events = POLLIN } };
	struct strbuf said = { 0 };
	bool too_much = false, enough = false, over = false, left = false, ended = false;
	int status = 0;

	while (!ended) {
		poll(p, 2, p[0].fd < 0 && p[1].fd < 0 ? CLOSED_MS : SLICE_MS);
		/* What it left behind may hold its streams open: its own end is what counts. */
		ended = waitpid(pid, &status, WNOHANG) == pid;
		if (p[0].fd >= 0 && !drain(out_fd, &e->output, e->max_output, &too_much))
			p[0].fd = -1;
		if (p[1].fd >= 0 && !drain(err_fd, &said, 4096, &enough))
			p[1].fd = -1;
		if (leaving(owner) && !left) {
			int64_t soon_ns = clock_monotonic_ns() + (int64_t)(1e9 * LEAVE_S);

			left = true;
			until_ns = soon_ns < until_ns ? soon_ns : until_ns;
		}
		if (!ended && (too_much || clock_monotonic_ns() > until_ns)) {
			over = !too_much;
			kill(-pid, SIGKILL);
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
			ended = true;
		}
	}
	/* A client that goes to the background may say the id from there. */
	if (!over && !too_much && p[0].fd >= 0 && !e->output.len && poll(p, 1, LINGER_MS) > 0)
		drain(out_fd, &e->output, e->max_output, &too_much);
	keep_complaint(e, &said);
	strbuf_release(&said);
	if (over)
		err_fail(&e->err, ERR_BUSY, "%s gave no answer within %g s", text_tail(e->argv[0], 80),
			 left ? LEAVE_S : e->timeout_s);
	else if (too_much)
		err_fail(&e->err, ERR_FORMAT, "%s said more than %zu bytes", text_tail(e->argv[0], 80),
			 e->max_output);
	else if (e->output.failed)
		err_nomem(&e->err, "what %s said", text_tail(e->argv[0], 80));
	else if (WIFSIGNALED(status))
		err_fail(&e->err, ERR_BUSY, "signal %d ended %s", WTERMSIG(status),
			 text_tail(e->argv[0], 80));
	else
		e->exit_code = WEXITSTATUS(status);
}

void errand_run(struct errand *e, char *const *environment, bool (*leaving)(const void *owner),
		const void *owner)
{
	int out[2] = { -1, -1 }, complaint[2] = { -1, -1 }, in = open_input(&e->input), error = 0;
	pid_t pid = 0;

	e->exit_code = -1;
	if (in < 0 || pipe2(out, O_CLOEXEC) || pipe2(complaint, O_CLOEXEC))
		error = errno;
	else
		error = start(environment, e, (const int[]){ in, out[1], complaint[1] }, &pid);
	if (in >= 0)
		close(in);
	if (out[1] >= 0)
		close(out[1]);
	if (complaint[1] >= 0)
		close(complaint[1]);
	if (error) {
		err_fail(&e->err, ERR_IO, "cannot run %s: %s", text_tail(e->argv[0], 120), strerror(error));
	} else {
		e->ran = true;
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		fcntl(complaint[0], F_SETFL, O_NONBLOCK);
		attend(e, leaving, owner, pid, out[0], complaint[0]);
	}
	if (out[0] >= 0)
		close(out[0]);
	if (complaint[0] >= 0)
		close(complaint[0]);
}

static bool is_leaving(const void *orders)
{
	return orders_leaving(orders);
}

static void carry_out(struct orders *q, struct order *order)
{
	struct errand *e = (struct errand *)order;

	e->exit_code = -1;
	if (!e->before || !e->before(e))
		errand_run(e, ((struct errands *)q)->environment, is_leaving, q);
	if (e->after)
		e->after(e);
}

void errand_free(struct errand *e)
{
	if (!e)
		return;
	argv_free(e->argv);
	strbuf_release(&e->input);
	strbuf_release(&e->output);
	free(e->path);
	free(e->text);
	free(e->result);
	free(e);
}

static void free_order(struct order *o)
{
	errand_free((struct errand *)o);
}

int errands_new(char *const *environment, struct errands **out, struct err *err)
{
	static const struct orders_work work = { NULL, carry_out, free_order };
	struct errands *s = mem_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return err_nomem(err, "the thread of an engine");
	s->environment = environment;
	rc = orders_start(&s->orders, &work, "an engine", err);
	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void errands_free(struct errands *s)
{
	if (s)
		orders_stop(&s->orders);
	free(s);
}

struct orders *errands_orders(struct errands *s)
{
	return &s->orders;
}
