/* The operator's rule for a promise that is about to break, and the command of `notify`. jobs/life.c
 * has the rest: it stops jobs without a promise, the youngest first, one at a time until the late job is in
 * time again. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <math.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/daemon.h"

extern char **environ;

#define MAX_NOTICES 64 /* at a time: a thousand jobs may be cancelled in one moment */

struct notice { /* a command under way */
	struct event *ended;
	struct daemon *daemon;
	uint64_t job;
	int pidfd;
};

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct notice *n = arg;
	siginfo_t info = { 0 };

	(void)what;
	if (!waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) && info.si_status)
		log_warn("the command of notify for job %llu ended with %s %d", (unsigned long long)n->job,
			 info.si_code == CLD_EXITED ? "exit code" : "signal", info.si_status);
	n->daemon->n_notices--;
	event_free(n->ended);
	close(n->pidfd);
	free(n);
}

static void watch_for_end(struct daemon *d, pid_t pid, uint64_t job)
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
	n->job = job;
	n->daemon = d;
	d->n_notices++;
}

/* ---- as the job's user ---- */

struct user {
	uid_t uid;
	gid_t gid, group[256];
	int n_groups;
	char home[300], name[2][80]; /* of its environment; no other user may read the daemon's own */
};

static void find_user(const struct job *job, struct user *u)
{
	struct passwd entry, *found = NULL;
	char text[4096];

	*u = (struct user){ .uid = job->row.uid, .gid = job->row.gid, .n_groups = 256 };
	if (getpwuid_r(u->uid, &entry, text, sizeof text, &found))
		found = NULL;
	if (!found || getgrouplist(entry.pw_name, u->gid, u->group, &u->n_groups) < 0) {
		u->group[0] = u->gid;
		u->n_groups = 1;
	}
	snprintf(u->home, sizeof u->home, "HOME=%s", found ? entry.pw_dir : "/");
	snprintf(u->name[0], sizeof u->name[0], "USER=%s", found ? entry.pw_name : "");
	snprintf(u->name[1], sizeof u->name[1], "LOGNAME=%s", found ? entry.pw_name : "");
}

/* In the child, so no allocation and no lock. */
static _Noreturn void run_as(struct user *u, char **argv)
{
	char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	char *env[] = { path, u->home, u->name[0], u->name[1], NULL };

	if (!setgroups((size_t)u->n_groups, u->group) && !setgid(u->gid) && !setuid(u->uid) && !chdir("/") &&
	    setuid(0))
		execvpe(argv[0], argv, env);
	_exit(127);
}

static int start(const struct job *job, char **argv, pid_t *out)
{
	struct user u;

	if (geteuid() != 0 || job->row.uid == 0)
		return posix_spawnp(out, argv[0], NULL, NULL, argv, environ);
	if (job->row.uid == (uid_t)-1 || job->row.gid == (gid_t)-1)
		return EPERM; /* nobody knows whose it is: not root's, then */
	find_user(job, &u);
	*out = fork();
	if (*out == 0)
		run_as(&u, argv);
	return *out < 0 ? errno : 0;
}

static void notify(struct daemon *d, const struct job *job, const char *event, double late_s)
{
	struct config_notice notice = { .job = job->id,
					.type = job->row.type,
					.tenant = job->row.tenant,
					.event = event,
					.state = job_state_name[job->row.state],
					.slo_s = job->row.slo_s,
					.late_s = late_s };
	char **argv = NULL;
	struct err err = { 0 };
	pid_t pid;
	int rc = config_notify_argv(d->setup->config, &notice, &argv, &err);

	if (!rc && d->n_notices >= MAX_NOTICES) {
		argv_free(argv);
		rc = err_fail(&err, ERR_BUSY, "%d are under way", MAX_NOTICES);
	}
	if (rc) {
		if (rc != -ERR_NOTFOUND)
			log_warn("the command of notify for job %llu (%s) was not run: %s",
				 (unsigned long long)job->id, event, err.text);
		return;
	}
	rc = start(job, argv, &pid);
	if (rc)
		log_warn("the command of notify for job %llu (%s) was not run: %s: %s",
			 (unsigned long long)job->id, event, argv[0], strerror(rc));
	else
		watch_for_end(d, pid, job->id);
	argv_free(argv);
}

void late_notify(struct daemon *d, const struct job *job, double late_s)
{
	notify(d, job, "late", late_s);
}

void late_notify_ended(struct daemon *d, const struct job *job)
{
	bool lost = job->row.state == JOB_LOST;

	if (d->setup->config->notify_of >= (lost ? NOTIFY_OF_LOST : NOTIFY_OF_ENDED))
		notify(d, job, lost ? "lost" : "ended", NAN);
}

enum config_on_late late_rule(const struct config *c, const struct job *job)
{
	int at = job->row.tenant ? config_tenant_find(c, job->row.tenant) : -1;

	return at >= 0 ? c->tenant[at].on_late : c->on_late;
}
