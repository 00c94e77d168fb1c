/* Caps the output of the job. The job writes its two logs itself, into files: a pipe through the
 * supervisor would cost a copy of every byte and a change of process for every line, and a job that only
 * prints must not be slowed down. Instead, the supervisor looks at their length now and then. Where a log
 * is longer than allowed, the disk gets the blocks in its middle back, by a hole. Its first and its last
 * part stay, so the daemon still finds the accuracy that the job prints last, and positions in the file
 * stay what they were. It is the supervisor that does it, because it outlives the daemon.
 *
 * The logs belong to the user of the job. They are opened once, and only where they are files of that
 * user. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096 /* holes begin and end at blocks */

int open_log(const struct options *o, const char *name, int flags)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "%s/%s", o->dir, name);
	/* As the user, because the service's root may not write to files of others. */
	if (geteuid() == 0 && seteuid(o->uid))
		return -1;
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	if (geteuid() != getuid() && seteuid(getuid()) && fd >= 0) {
		close(fd);
		return -1;
	}
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != o->uid)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void open_output(struct run *r)
{
	static const char *const name[2] = { JOB_STDOUT, JOB_STDERR };

	for (int i = 0; i < 2; i++)
		r->log[i] = (struct log){ .fd = r->opt->max_output ? open_log(r->opt, name[i], 0) : -1 };
}

/* A block with a sentence for people; zeros behind it, which `postrider logs` does not print. */
static void put_note(const struct log *l, off_t at, const struct options *o)
{
	char block[BLOCK] = "";

	snprintf(
		block, sizeof block,
		"\n[postrider: the output is longer than %llu MB, max_output_mb; what was here is removed]\n",
		(unsigned long long)(o->max_output >> 20));
	(void)!pwrite(l->fd, block, sizeof block, at);
}

static void cap(struct log *l, const struct options *o)
{
	off_t half = (off_t)(o->max_output / 2) / BLOCK * BLOCK, from = half + BLOCK, to;
	struct stat st;

	if (l->fd < 0 || fstat(l->fd, &st))
		return;
	if (st.st_size < l->hole_end)
		l->hole_end = 0; /* the job cut its own log */
	if (st.st_size - (l->hole_end ? l->hole_end - from : 0) <= (off_t)o->max_output)
		return;
	/* To three quarters of what is allowed, so that not every look makes a hole. */
	to = (st.st_size - half / 2) / BLOCK * BLOCK;
	if (to <= from)
		return;
	if (!l->hole_end)
		put_note(l, half, o);
	if (fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, l->hole_end ? l->hole_end : from,
		      to - (l->hole_end ? l->hole_end : from)) == 0)
		l->hole_end = to;
	else if (errno == EOPNOTSUPP) /* a file system without holes: what comes next goes behind the note */
		(void)!ftruncate(l->fd, from);
}

void cap_output(struct run *r)
{
	for (int i = 0; i < 2; i++)
		cap(&r->log[i], r->opt);
}
