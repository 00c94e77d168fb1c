/* The operator's rule for a promise that is about to break, and the command that it may name. jobs/life.c
 * has the rest: it stops jobs without a promise, the youngest first, one at a time until the late job is in
 * time again. */
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

void late_notify(struct daemon *d, const struct job *job, double late_s)
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
			log_warn("the command for job %llu, which will be late, was not run: %s",
				 (unsigned long long)job->id, err.text);
		return;
	}
	rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (rc)
		log_warn("the command for job %llu, which will be late, was not run: %s: %s",
			 (unsigned long long)job->id, argv[0], strerror(rc));
	else
		watch_for_end(d, pid);
	argv_free(argv);
}

enum config_on_late late_rule(const struct config *c, const struct job *job)
{
	int at = job->row.tenant ? config_tenant_find(c, job->row.tenant) : -1;

	return at >= 0 ? c->tenant[at].on_late : c->on_late;
}
