/* Creates the job's folder and its cgroup. See supervisor.h. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool move_away(const char *dir)
{
	char old[PATH_MAX];
	struct stat st;
	int n;

	if (lstat(dir, &st))
		return errno == ENOENT;
	for (int i = 1; i < 1000; i++) {
		n = snprintf(old, sizeof old, "%s.old-%d", dir, i);
		if (n < 0 || (size_t)n >= sizeof old) {
			errno = ENAMETOOLONG;
			return false;
		}
		if (renameat2(AT_FDCWD, dir, AT_FDCWD, old, RENAME_NOREPLACE) == 0)
			return true;
		if (errno != EEXIST)
			return false;
	}
	return false;
}

bool make_folder(struct run *r)
{
	const struct options *o = r->opt;
	struct stat st;
	int fd, error = 0;

	/* The record was ours to make, so a folder that is there already belongs to a job that had the number
	 * before. Its output must not be taken for this one's. */
	if (o->identity && !move_away(o->dir)) {
		r->again = passes(errno);
		set_reason(r, "cannot move the folder %s of an earlier job away: %s", o->dir,
			   strerror(errno));
		return false;
	}
	if (mkdir(o->dir, 0700) && errno != EEXIST) {
		r->again = passes(errno);
		set_reason(r, "cannot make the folder %s: %s", o->dir, strerror(errno));
		return false;
	}
	r->made = true;
	fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		error = errno;
	else if (st.st_uid != o->uid && st.st_uid != geteuid())
		error = EEXIST; /* it belongs to another user */
	else if (geteuid() == 0 && fchown(fd, o->uid, o->gid))
		error = errno;
	if (fd >= 0)
		close(fd);
	r->again = passes(error);
	if (error)
		set_reason(r, "cannot give the folder %s to user %u: %s", o->dir, o->uid, strerror(error));
	return !error;
}

void remove_folder(const struct run *r)
{
	int fd = r->made ? open(r->opt->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	unlinkat(fd, JOB_STDOUT, 0);
	unlinkat(fd, JOB_STDERR, 0);
	close(fd);
	rmdir(r->opt->dir); /* not if the job's user has put something into it */
}

static bool put_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd, n = snprintf(path, sizeof path, "%s/%s", dir, name);
	bool done;

	if (n < 0 || (size_t)n >= sizeof path) {
		errno = ENAMETOOLONG;
		return false;
	}
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write_all(fd, text, strlen(text));
	n = errno;
	close(fd);
	errno = n;
	return done;
}

/* A cgroup helps but is not needed: without it, processes are found by their group and their parents. */
void enter_cgroup(struct run *r)
{
	const char *path = r->opt->cgroup;
	char pid[32];

	if (!path)
		return;
	snprintf(pid, sizeof pid, "%ld", (long)r->pid);
	if ((mkdir(path, 0755) && errno != EEXIST) || !put_file(path, "cgroup.procs", pid))
		add_note(r, "no cgroup %s: %s", path, strerror(errno));
}

void kill_cgroup(const struct run *r)
{
	if (r->opt->cgroup)
		put_file(r->opt->cgroup, "cgroup.kill", "1"); /* kernels before 5.14 do not have it */
}

void remove_cgroup(const struct run *r)
{
	if (r->opt->cgroup)
		rmdir(r->opt->cgroup);
}
