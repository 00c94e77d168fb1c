/* Starting a supervisor. See exec_local_spawn.h.
 *
 * posix_spawn() shares our memory with the child until that is another program: its cost does not grow with the
 * daemon. Whatever takes time (folders, files, users, syncing) is done by the supervisor. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec_local_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text.h"

#define SUPERVISOR "postrider-supervisor"
#ifndef LIBEXEC
#define LIBEXEC "/usr/local/libexec/postrider"
#endif

extern char **environ;

/* ---- finding it ---- */

/* A path from the folder of our own program. */
static bool from_our_folder(const char *rest, char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	if (n <= 0)
		return false;
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (!slash || (size_t)(slash - out) + strlen(rest) + 2 > size)
		return false;
	strcpy(slash + 1, rest);
	return access(out, X_OK) == 0;
}

int spawn_find_supervisor(char **out, struct err *err)
{
	const char *named = getenv("POSTRIDER_SUPERVISOR");
	char path[PATH_MAX];
	char *found = NULL;

	if (named && *named) {
		if (access(named, X_OK))
			return err_fail(err, ERR_NOTFOUND, "POSTRIDER_SUPERVISOR: cannot run %s: %s",
					text_tail(named, 200), strerror(errno));
		found = mem_strdup(named);
	} else if (from_our_folder(SUPERVISOR, path, sizeof path) ||
		   from_our_folder("../libexec/postrider/" SUPERVISOR, path, sizeof path)) {
		found = mem_strdup(path);
	} else if (!access(LIBEXEC "/" SUPERVISOR, X_OK)) {
		found = mem_strdup(LIBEXEC "/" SUPERVISOR);
	} else {
		return err_fail(
			err, ERR_NOTFOUND,
			SUPERVISOR
			" is neither beside this program, nor in ../libexec/postrider, nor in " LIBEXEC
			"; POSTRIDER_SUPERVISOR may name it");
	}
	if (!found)
		return err_fail(err, ERR_NOMEM, "out of memory for a path");
	*out = found;
	return 0;
}

/* ---- its command line ---- */

struct words { /* one text, words ending in NUL; as an array at the end */
	struct strbuf text;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *w, const char *fmt, ...)
{
	char word[PATH_MAX + 64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(word, sizeof word, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof word)
		w->text.failed = true;
	else
		strbuf_add(&w->text, word, (size_t)n + 1);
	w->n++;
}

static void add_word(struct words *w, const char *word)
{
	strbuf_add(&w->text, word, strlen(word) + 1);
	w->n++;
}

static uint64_t bytes_of(uint64_t mb)
{
	return mb < UINT64_MAX >> 20 ? mb << 20 : UINT64_MAX;
}

static void add_options(struct words *w, const char *program, const struct exec_job *j, const char *cpus)
{
	const struct job_type *t = j->type;

	add_word(w, program);
	add(w, "--dir=%s", j->dir);
	add(w, "--job=%" PRIu64, j->id);
	add(w, "--uid=%u", (unsigned)j->uid);
	add(w, "--gid=%u", (unsigned)j->gid);
	add(w, "--grace=%.3f", j->kill_grace_s);
	if (j->max_time_s > 0.0)
		add(w, "--max-time=%.3f", j->max_time_s);
	if (cpus)
		add(w, "--cpus=%s", cpus);
	if (j->cgroup)
		add(w, "--cgroup=%s/job-%" PRIu64, j->cgroup, j->id);
	if (t->max_file_mb)
		add(w, "--rlimit-fsize=%" PRIu64, bytes_of(t->max_file_mb));
	if (t->max_address_mb)
		add(w, "--rlimit-as=%" PRIu64, bytes_of(t->max_address_mb));
	if (t->max_open_files)
		add(w, "--rlimit-nofile=%" PRIu32, t->max_open_files);
	if (t->nice)
		add(w, "--nice=%d", t->nice);
	if (t->work_dir)
		add(w, "--work-dir=%s", t->work_dir);
	for (size_t i = 0; i < t->n_env; i++) {
		add_word(w, "--env");
		add_word(w, t->env[i]);
	}
	add_word(w, "--");
	for (size_t i = 0; j->argv[i]; i++)
		add_word(w, j->argv[i]);
}

/* The words as an array, pointing into their text; NULL: no memory, or a word that is too long. */
static char **as_array(struct words *w)
{
	char **argv = w->text.failed ? NULL : mem_array(w->n + 1, sizeof *argv);
	char *at = w->text.text;

	if (!argv)
		return NULL;
	for (size_t i = 0; i < w->n; i++) {
		argv[i] = at;
		at += strlen(at) + 1;
	}
	argv[w->n] = NULL;
	return argv;
}

/* ---- starting it ---- */

static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t all;
	int error;

	/* Held until it is ready for them: a stop may come early, and Ctrl-C in our terminal before it has a session
	 * of its own. It makes that itself, as it takes the kernel milliseconds on a busy machine and we wait here. */
	sigfillset(&all);
	error = posix_spawnattr_setsigmask(attr, &all);
	if (!error)
		error = posix_spawnattr_setsigdefault(attr, &all);
	if (!error)
		error = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return error;
}

/* Its standard output is the report; of our other descriptors it gets none. */
static int set_files(posix_spawn_file_actions_t *files, int report_fd)
{
	int error = posix_spawn_file_actions_adddup2(files, report_fd, STDOUT_FILENO);

	if (!error)
		error = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
	return error;
}

/* 0 or an error number. */
static int spawn(const char *program, char **argv, int report_fd, pid_t *out_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int error = posix_spawnattr_init(&attr);

	if (error)
		return error;
	error = posix_spawn_file_actions_init(&files);
	if (error) {
		posix_spawnattr_destroy(&attr);
		return error;
	}
	error = set_attributes(&attr);
	if (!error)
		error = set_files(&files, report_fd);
	if (!error)
		error = posix_spawn(out_pid, program, &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return error;
}

/* Above the standard streams, which set_files() writes over. */
static int open_report(int fd[2])
{
	int low[2], error = 0;

	if (pipe2(low, O_CLOEXEC | O_NONBLOCK))
		return errno;
	for (int i = 0; i < 2; i++) {
		fd[i] = fcntl(low[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (fd[i] < 0)
			error = errno;
		close(low[i]);
	}
	for (int i = 0; i < 2 && error; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	return error;
}

int spawn_supervisor(const char *program, const struct exec_job *j, const char *cpus, pid_t *out_pid,
		     int *out_report_fd, struct err *err)
{
	struct words w = { 0 };
	char **argv;
	int report[2], error, rc = 0;

	add_options(&w, program, j, cpus);
	argv = as_array(&w);
	if (!argv) {
		rc = err_fail(err, ERR_NOMEM, "job %" PRIu64 ": out of memory, or a path is too long", j->id);
		goto out;
	}
	error = open_report(report);
	if (error) {
		rc = err_fail(err, ERR_IO, "job %" PRIu64 ": cannot open a pipe: %s", j->id, strerror(error));
		goto out;
	}
	error = spawn(program, argv, report[1], out_pid);
	close(report[1]);
	if (error) {
		close(report[0]);
		rc = err_fail(err, ERR_IO, "job %" PRIu64 ": cannot start %s: %s", j->id,
			      text_tail(program, 200), strerror(error));
		goto out;
	}
	*out_report_fd = report[0];
out:
	free(argv);
	strbuf_release(&w.text);
	return rc;
}
