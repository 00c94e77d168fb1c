/* Starting a supervisor. See spawn.h.
 *
 * posix_spawn() shares our memory with the child until that is another program: its cost does not grow with
 * the daemon. Whatever takes time (folders, files, users, syncing) is done by the supervisor. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/places.h"
#include "common/strbuf.h"
#include "common/text/text.h"

#define SUPERVISOR "postrider-supervisor"

/* ---- finding it ---- */

static int find_program(char **out, struct err *err)
{
	const char *named = getenv("POSTRIDER_SUPERVISOR");
	char path[PATH_MAX];
	char *found = NULL;

	if (named && *named) {
		if (access(named, X_OK))
			return err_fail(err, ERR_NOTFOUND, "POSTRIDER_SUPERVISOR: cannot run %s: %s",
					text_tail(named, 200), strerror(errno));
		found = mem_strdup(named);
	} else if (place_program(SUPERVISOR, path, sizeof path)) {
		found = mem_strdup(path);
	} else {
		return err_fail(
			err, ERR_NOTFOUND,
			SUPERVISOR
			" is neither beside this program, nor in ../libexec/postrider, nor in " PLACE_LIBEXEC
			"; POSTRIDER_SUPERVISOR may name it");
	}
	if (!found)
		return err_nomem(err, "a path");
	*out = found;
	return 0;
}

/* ---- its command line and its environment ---- */

__attribute__((format(printf, 2, 3))) static void add(struct spawn_words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&w->text, fmt, ap);
	va_end(ap);
	strbuf_add(&w->text, "", 1);
	w->n++;
}

static void add_word(struct spawn_words *w, const char *word)
{
	strbuf_add(&w->text, word, strlen(word) + 1);
	w->n++;
}

static uint64_t bytes_of(uint64_t mb)
{
	return mb < UINT64_MAX >> 20 ? mb << 20 : UINT64_MAX;
}

static void add_options(struct spawn_words *w, const char *program, const struct exec_job *j,
			const char *cpus)
{
	const struct job_type *t = j->type;

	add_word(w, program);
	add(w, "--dir=%s", j->dir);
	add(w, "--job=%" PRIu64, j->id);
	if (j->identity)
		add(w, "--identity=%s", j->identity);
	add(w, "--uid=%u", (unsigned)j->uid);
	add(w, "--gid=%u", (unsigned)j->gid);
	add(w, "--grace=%.3f", j->kill_grace_s);
	if (j->max_time_s > 0.0)
		add(w, "--max-time=%.3f", j->max_time_s);
	if (j->max_output_mb)
		add(w, "--max-output=%" PRIu64, bytes_of(j->max_output_mb));
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
	if (t->unbuffered) /* before the variables of the type, which win */
		add_word(w, "--env=" OUTPUT_UNBUFFERED "=1");
	if (t->terminal)
		add_word(w, "--terminal");
	for (size_t i = 0; i < t->n_env; i++) {
		add_word(w, "--env");
		add_word(w, t->env[i]);
	}
	if (j->device_variable) /* last, so that it counts; empty: it has none, and sees none */
		add(w, "--env=%s=%s", j->device_variable, j->devices ? j->devices : "");
	for (size_t i = 0; j->keep_env && j->keep_env[i]; i++)
		add(w, "--keep-env=%s", j->keep_env[i]);
	if (j->pass_code)
		add_word(w, "--pass-code");
	add_word(w, "--");
	for (size_t i = 0; j->argv[i]; i++)
		add_word(w, j->argv[i]);
}

/* The words as an array. False: no memory. */
static bool words_close(struct spawn_words *w)
{
	char *at = w->text.text;

	w->word = w->text.failed ? NULL : mem_array(w->n + 1, sizeof *w->word);
	if (!w->word)
		return false;
	for (size_t i = 0; i < w->n; i++) {
		w->word[i] = at;
		at += strlen(at) + 1;
	}
	w->word[w->n] = NULL;
	return true;
}

void spawn_words_release(struct spawn_words *w)
{
	free(w->word);
	strbuf_release(&w->text);
	*w = (struct spawn_words){ 0 };
}

bool spawn_words_supervisor(struct spawn_words *w, const char *program, const struct exec_job *j,
			    const char *cpus)
{
	add_options(w, program, j, cpus);
	return words_close(w);
}

int spawn_program_init(struct spawn_program *p, struct err *err)
{
	int rc;

	*p = (struct spawn_program){ .sched_class = sched_getscheduler(0) };
	rc = find_program(&p->path, err);
	if (rc)
		return rc;
	for (char **e = environ; e && *e; e++)
		add_word(&p->environment, *e);
	if (!words_close(&p->environment)) {
		spawn_program_release(p);
		return err_nomem(err, "a copy of the environment");
	}
	return 0;
}

void spawn_program_release(struct spawn_program *p)
{
	if (!p)
		return;
	free(p->path);
	spawn_words_release(&p->environment);
	p->path = NULL;
}

/* ---- starting it ---- */

/* Jobs get the class of the daemon; the thread we run on may have changed its own. */
static int set_class(posix_spawnattr_t *attr, int daemon_class, short *flags)
{
	const struct sched_param none = { 0 };
	int error;

	if (daemon_class != SCHED_OTHER || sched_getscheduler(0) == SCHED_OTHER)
		return 0;
	*flags |= POSIX_SPAWN_SETSCHEDULER;
	error = posix_spawnattr_setschedpolicy(attr, SCHED_OTHER);
	return error ? error : posix_spawnattr_setschedparam(attr, &none);
}

static int set_attributes(posix_spawnattr_t *attr, const struct spawn_program *p)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t all;
	int error;

	/* Blocked until it is ready for them: a stop may come early, and Ctrl-C in our terminal before it has
	 * its own session. It makes that session itself, because that takes the kernel milliseconds on a busy
	 * machine, and the next start waits here. */
	sigfillset(&all);
	error = posix_spawnattr_setsigmask(attr, &all);
	if (!error)
		error = posix_spawnattr_setsigdefault(attr, &all);
	if (!error)
		error = set_class(attr, p->sched_class, &flags);
	if (!error)
		error = posix_spawnattr_setflags(attr, flags);
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
static int spawn(const struct spawn_order *o, int report_fd, pid_t *out_pid)
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
	error = set_attributes(&attr, o->program);
	if (!error)
		error = set_files(&files, report_fd);
	if (!error)
		error = posix_spawn(out_pid, o->program->path, &files, &attr, o->argv.word,
				    o->program->environment.word);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return error;
}

/* From the table of the process into that of this thread. Only for pipes: it is opened again. Not by way of
 * the C library, because ThreadSanitizer watches that and assumes that a number means the same on all
 * threads. */
static int fetch_report(const struct spawn_order *o)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", o->report[1]);
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

void spawn_order_run(struct spawn_order *o, bool own_table)
{
	int fd = own_table ? fetch_report(o) : o->report[1];
	pid_t pid = 0;

	if (fd < 0) {
		o->error = errno;
		return;
	}
	o->error = spawn(o, fd, &pid);
	if (!o->error)
		o->pid = pid;
	if (own_table)
		syscall(SYS_close, fd);
}

/* ---- what it takes ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Above the standard streams, which set_files() writes over. 0 or an error number. */
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
	return error;
}

bool spawn_error_passes(int error)
{
	return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM || error == ENOSPC ||
	       error == EDQUOT || error == EIO;
}

int spawn_order_new(const struct spawn_program *p, const struct exec_job *j, const char *cpus,
		    struct spawn_order **out, struct err *err)
{
	struct spawn_order *o = mem_calloc(1, sizeof *o);
	int error;

	if (!o)
		return err_fail(err, ERR_NOMEM, "job %" PRIu64 ": out of memory", j->id);
	o->program = p;
	o->report[0] = o->report[1] = -1;
	if (!spawn_words_supervisor(&o->argv, p->path, j, cpus)) {
		spawn_order_free(o);
		return err_fail(err, ERR_NOMEM, "job %" PRIu64 ": out of memory, or a path is too long",
				j->id);
	}
	error = open_report(o->report);
	if (error) {
		spawn_order_free(o);
		return err_fail(err, spawn_error_passes(error) ? ERR_BUSY : ERR_IO, "cannot open a pipe: %s",
				strerror(error));
	}
	*out = o;
	return 0;
}

int spawn_order_take_report(struct spawn_order *o)
{
	int fd = o->report[0];

	o->report[0] = -1;
	return fd;
}

void spawn_order_empty(struct spawn_order *o)
{
	close_fd(&o->report[0]);
	close_fd(&o->report[1]);
	spawn_words_release(&o->argv);
}

void spawn_order_free(struct spawn_order *o)
{
	if (!o)
		return;
	spawn_order_empty(o);
	free(o);
}
