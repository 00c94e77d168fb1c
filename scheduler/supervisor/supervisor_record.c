/* Writes the two records beside the job's folder. record_format.h has their format; see also supervisor.h. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_TRIES 30 /* a second apart: somebody may free space on a full disk */

static void sync_folder_of(const char *path)
{
	char dir[PATH_MAX];
	char *slash;
	int fd;

	snprintf(dir, sizeof dir, "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		return;
	slash[slash == dir] = '\0'; /* keep the slash of the root */
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

bool record_path(const struct options *o, const char *suffix, char *out, size_t size)
{
	int n = snprintf(out, size, "%s%s%s%s", o->dir, o->identity ? "." : "",
			 o->identity ? o->identity : "", suffix);

	return n > 0 && (size_t)n < size;
}

/* ---- the start ---- */

static bool boot_id(char out[RECORD_BOOT_BYTES + 1])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, RECORD_BOOT_BYTES);

	if (fd >= 0)
		close(fd);
	if (n != RECORD_BOOT_BYTES)
		return false;
	out[n] = '\0';
	return true;
}

/* Links DIR.started with all its content, or ends this process because another supervisor was first. */
void win_the_race(struct run *r)
{
	char path[PATH_MAX], temp[PATH_MAX + 32], text[RECORD_MAX_BYTES], boot[RECORD_BOOT_BYTES + 1];
	unsigned long long ticks, job_ticks;
	long parent;
	int fd, n, error = 0;

	record_path(r->opt, RECORD_STARTED, path, sizeof path);
	snprintf(temp, sizeof temp, "%s.%ld", path, (long)getpid());
	if (!boot_id(boot) || !process_stat(getpid(), &parent, &ticks) ||
	    !process_stat(r->pid, &parent, &job_ticks)) {
		error = errno;
		abandon_child(r);
		give_up(code_of(error), "cannot read /proc: %s", strerror(error));
	}
	r->started = moment_now();
	n = snprintf(text, sizeof text,
		     RECORD_STARTED_MAGIC "\nidentity %s\nboot %s\nsupervisor %ld %llu\njob %ld "
					  "%llu\nstarted %lld %lld\ncpus %s\nend\n",
		     r->opt->identity ? r->opt->identity : "-", boot, (long)getpid(), ticks, (long)r->pid,
		     job_ticks, (long long)r->started.real_ns, (long long)r->started.boot_ns,
		     r->opt->cpus ? r->opt->cpus : "-");
	unlink(temp); /* left by a supervisor with the same pid that was killed here */
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || !write_all(fd, text, (size_t)n) || link(temp, path))
		error = errno;
	if (fd >= 0) {
		close(fd);
		unlink(temp);
	}
	if (!error)
		return;
	abandon_child(r);
	if (error == EEXIST)
		exit(SUPERVISOR_LOST_RACE);
	give_up(code_of(error), "cannot make %s: %s", path, strerror(error));
}

/* Brings the record to the disk before the command begins: after a power cut the daemon must know that the
 * job was started, or it would run twice. */
void sync_started(const struct run *r)
{
	char path[PATH_MAX];
	int fd;

	record_path(r->opt, RECORD_STARTED, path, sizeof path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	sync_folder_of(path);
}

void withdraw_started(const struct run *r)
{
	char path[PATH_MAX];

	record_path(r->opt, RECORD_STARTED, path, sizeof path);
	unlink(path);
	sync_folder_of(path);
}

/* ---- the end ---- */

static int format_exit(const struct run *r, char *text, size_t size)
{
	bool ran = r->started.real_ns != 0, by_exit = r->end.si_code == CLD_EXITED;
	char status[64] = "none";
	char boot[RECORD_BOOT_BYTES + 1];
	struct rusage use;

	if (!boot_id(boot))
		snprintf(boot, sizeof boot, "-"); /* no boot has this id: the wall clock counts then */
	getrusage(RUSAGE_CHILDREN, &use);
	if (ran)
		snprintf(status, sizeof status, "%s %d", by_exit ? "exit" : "signal", r->end.si_status);
	return snprintf(text, size,
			RECORD_EXIT_MAGIC "\nidentity %s\nboot %s\nstarted %lld %lld\nended %lld "
					  "%lld\nstatus %s\ntimed_out %d\nstopped %d\nmax_rss_kb %ld\n"
					  "cpu_us %lld\nreason %s\nnote %s\nend\n",
			r->opt->identity ? r->opt->identity : "-", boot, (long long)r->started.real_ns,
			(long long)r->started.boot_ns, (long long)r->ended.real_ns,
			(long long)r->ended.boot_ns, status, r->timed_out, r->stopped, use.ru_maxrss,
			(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000LL + use.ru_utime.tv_usec +
				use.ru_stime.tv_usec,
			r->reason[0] ? r->reason : "-", r->note[0] ? r->note : "-");
}

static bool write_exit(const struct run *r)
{
	char path[PATH_MAX], temp[PATH_MAX + 32], text[RECORD_MAX_BYTES];
	int n = format_exit(r, text, sizeof text), fd;
	bool done;

	record_path(r->opt, RECORD_EXIT, path, sizeof path);
	snprintf(temp, sizeof temp, "%s.new", path);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	done = write_all(fd, text, (size_t)n);
	fsync(fd); /* if it fails, the record still lasts as long as the machine runs */
	close(fd);
	if (!done || rename(temp, path)) {
		unlink(temp);
		return false;
	}
	sync_folder_of(path);
	return true;
}

int finish(struct run *r)
{
	for (int try = 1; !write_exit(r); try++) {
		if (try == RECORD_TRIES)
			return SUPERVISOR_NO_RECORD;
		sleep(1);
	}
	return SUPERVISOR_DONE;
}
