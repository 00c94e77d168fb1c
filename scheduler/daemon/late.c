/* What the operator wants done when a promise is about to break: nothing, a command, or stopping jobs that were promised
 * nothing, the youngest first, one at a look until the late job is in time again. See daemon.h. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/daemon.h"

extern char **environ;

struct notice { /* a command under way */
	struct event *ended;
	int pidfd;
};

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct notice *n = arg;
	siginfo_t info;

	(void)what;
	waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG);
	event_free(n->ended);
	close(n->pidfd);
	free(n);
}

static void watch_for_end(struct daemon *d, pid_t pid)
{
	struct notice *n = mem_calloc(1, sizeof *n);
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (n && fd >= 0)
		n->ended = event_new(d->base, fd, EV_READ, on_ended, n);
	if (!n || fd < 0 || !n->ended || event_add(n->ended, NULL)) {
		/* It stays a zombie until the daemon leaves: better than waiting for it. */
		if (n && n->ended)
			event_free(n->ended);
		if (fd >= 0)
			close(fd);
		free(n);
		return;
	}
	n->pidfd = fd;
}

static void notify(struct daemon *d, const struct job *job, double late_s)
{
	struct config_notice notice = { .job = job->id,
					.type = job->row.type,
					.tenant = job->row.tenant,
					.event = "late",
					.slo_s = job->row.slo_s,
					.late_s = late_s };
	char **argv = NULL;
	struct err err = { 0 };
	pid_t pid;
	int rc = config_notify_argv(d->setup->config, &notice, &argv, &err);

	if (rc) {
		if (rc != -ERR_NOTFOUND)
			log_warn("nobody was notified of job %llu: %s", (unsigned long long)job->id,
				 err.text);
		return;
	}
	rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (rc)
		log_warn("nobody was notified of job %llu: %s: %s", (unsigned long long)job->id, argv[0],
			 strerror(rc));
	else
		watch_for_end(d, pid);
	argv_free(argv);
}

/* Of jobs that run without a promise the one that came last. */
static void stop_youngest(struct daemon *d, const struct job *late)
{
	struct err err = { 0 };

	for (struct job *job = d->jobs.live.last; job; job = job->before) {
		bool promised = job->row.verdict == VERDICT_PROMISED;

		if (job->row.state != JOB_RUNNING || promised || job->cancelling || job->row.priority > 0)
			continue;
		log_warn("job %llu, which was promised nothing, is stopped for job %llu",
			 (unsigned long long)job->id, (unsigned long long)late->id);
		watch_tell(d, "stopping", job);
		if (life_cancel(d, job, &err))
			log_warn("job %llu: %s", (unsigned long long)job->id, err.text);
		return;
	}
}

void react_late(struct daemon *d, struct job *job, double late_s, bool first_time)
{
	const struct config *c = d->setup->config;
	int at = job->row.tenant ? config_tenant_find(c, job->row.tenant) : -1;
	enum config_on_late what = at >= 0 ? c->tenant[at].on_late : c->on_late;

	if (what == ON_LATE_NOTHING)
		return;
	if (first_time)
		notify(d, job, late_s);
	if (what == ON_LATE_STOP_BEST_EFFORT)
		stop_youngest(d, job);
}
