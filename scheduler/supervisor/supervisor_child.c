/* The child until it becomes the command: its limits, user, files and environment. It waits for the parent's
 * signal before it changes anything. See supervisor.h. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL_SIGSET_BYTES 8
#define AGAIN '\001' /* before a reason that may be gone the next time */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* ---- in the child ---- */

__attribute__((format(printf, 2, 3), noreturn)) static void child_fail(int said_fd, const char *fmt, ...)
{
	char text[RECORD_MAX_TEXT + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	write_all(said_fd, text, strlen(text));
	_exit(127);
}

/* As child_fail(), but the machine lacks something, and may have it the next time. */
__attribute__((noreturn)) static void child_lacks(const struct options *o, int said_fd, const char *what,
						  const char *path, int error)
{
	/* its own limits may be too small */
	bool own = (error == ENOMEM && o->as) || (error == EMFILE && o->nofile);

	if (passes(error) && !own)
		child_fail(said_fd, "%ccannot %s %s: %s", AGAIN, what, path, strerror(error));
	child_fail(said_fd, "cannot %s %s: %s", what, path, strerror(error));
}

static void child_limits(const struct options *o, int said_fd)
{
	const struct {
		int what;
		rlim_t value;
		const char *name;
	} limit[] = { { RLIMIT_FSIZE, o->fsize, "file size" },
		      { RLIMIT_AS, o->as, "address space" },
		      { RLIMIT_NOFILE, o->nofile, "open files" } };

	for (size_t i = 0; i < sizeof limit / sizeof limit[0]; i++) {
		struct rlimit l = { .rlim_cur = limit[i].value, .rlim_max = limit[i].value };

		if (limit[i].value && setrlimit(limit[i].what, &l))
			child_fail(said_fd, "cannot limit its %s to %llu: %s", limit[i].name,
				   (unsigned long long)limit[i].value, strerror(errno));
	}
	if (o->nice) {
		errno = 0;
		if (nice(o->nice) == -1 && errno)
			child_fail(said_fd, "cannot set its niceness to %d: %s", o->nice, strerror(errno));
	}
}

static void child_become_user(const struct options *o, int said_fd)
{
	bool failed;

	if (geteuid() != 0)
		return; /* main() has checked that it is our own user */
	failed = o->user ? initgroups(o->user, o->gid) : setgroups(1, &o->gid);
	if (failed || setgid(o->gid) || setuid(o->uid))
		child_fail(said_fd, "cannot become user %u, group %u: %s", o->uid, o->gid, strerror(errno));
	if (o->uid != 0 && setuid(0) == 0)
		child_fail(said_fd, "cannot give up the powers of root for user %u", o->uid);
}

/* Opened as the user, so that a link or a device instead of the log harms only that user. O_NONBLOCK: a fifo
 * without a reader must not block us. */
static void child_log(const struct options *o, const char *name, int as_fd, int said_fd)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "%s/%s", o->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		child_lacks(o, said_fd, "write", path, errno);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		child_fail(said_fd, "%s is not a regular file", path);
	if (fcntl(fd, F_SETFL, O_APPEND) || dup2(fd, as_fd) < 0)
		child_lacks(o, said_fd, "use", path, errno);
	close(fd);
}

static void child_no_input(const struct options *o, int said_fd)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
		child_lacks(o, said_fd, "open", "/dev/null", errno);
	close(fd);
}

static void child_environment(const struct options *o, int said_fd)
{
	const char *lang = getenv("LANG");
	bool failed;

	if (!lang || !*lang)
		lang = "C.UTF-8";
	failed = (!o->all_env && (clearenv() || setenv("PATH", DEFAULT_PATH, 1) ||
				  setenv("HOME", o->home, 1) || setenv("LANG", lang, 1))) ||
		 setenv("POSTRIDER_DIR", o->dir, 1) || (o->job && setenv("POSTRIDER_JOB", o->job, 1));
	for (size_t i = 0; i < o->n_env && !failed; i++)
		failed = putenv(o->env[i]) != 0;
	if (failed)
		child_fail(said_fd, "cannot set its environment: %s", strerror(errno));
}

static void child_exec(const struct options *o, int said_fd)
{
	static const unsigned long default_action[8]; /* the kernel's struct sigaction: all zero is SIG_DFL */
	const char *program = o->argv[0];
	sigset_t none;
	int error;

	/* The system call itself: the C library hides two signals, which posix_spawn() may have left
	 * ignored. */
	for (int s = 1; s < NSIG; s++)
		syscall(SYS_rt_sigaction, s, default_action, NULL, KERNEL_SIGSET_BYTES);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(program, o->argv);
	error = errno;
	if (error == ENOENT && !strchr(program, '/'))
		child_fail(said_fd, "no such program in %s: %s", getenv("PATH"), program);
	if (error == ENOENT && access(program, F_OK) == 0)
		child_fail(said_fd, "the interpreter that %s asks for is missing", program);
	if (error == ENOENT || error == ENOTDIR)
		child_fail(said_fd, "no such file: %s", program);
	if (error == EACCES)
		child_fail(said_fd, "not executable: %s", program);
	child_lacks(o, said_fd, "run", program, error); /* EAGAIN: its user has as many processes as may be */
}

__attribute__((noreturn)) static void child_main(const struct run *r, pid_t parent, int go_fd, int said_fd)
{
	const struct options *o = r->opt;
	const char *work_dir = o->work_dir ? o->work_dir : o->dir;
	cpu_set_t cpus;
	char byte;

	setsid(); /* before the word to go, because the supervisor signals the whole group */
	while (read(go_fd, &byte, 1) != 1) {
		if (errno != EINTR) /* the pipe was closed: another supervisor was first, or ours is gone */
			_exit(127);
		errno = 0;
	}
	child_no_input(o, said_fd);
	child_limits(o, said_fd);
	if (o->cpus && parse_cpus(o->cpus, &cpus) && sched_setaffinity(0, sizeof cpus, &cpus))
		child_fail(said_fd, "cannot run on the cpus %.100s: %s", o->cpus, strerror(errno));
	child_become_user(o, said_fd);
	/* After the change of user, which clears it. The job must not outlive its supervisor: nothing would
	 * stop it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(127);
	child_log(o, JOB_STDOUT, STDOUT_FILENO, said_fd);
	child_log(o, JOB_STDERR, STDERR_FILENO, said_fd);
	if (o->terminal && (dup2(r->slave, STDOUT_FILENO) < 0 || dup2(r->slave, STDERR_FILENO) < 0))
		child_fail(said_fd, "cannot use its terminal: %s", strerror(errno));
	if (chdir(work_dir))
		child_fail(said_fd, "cannot enter %s as user %u: %s", work_dir, o->uid, strerror(errno));
	umask(077);
	child_environment(o, said_fd);
	close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	child_exec(o, said_fd);
	_exit(127);
}

/* ---- in the supervisor ---- */

void fork_child(struct run *r)
{
	int go[2], said[2];
	pid_t parent = getpid();

	if (r->opt->terminal)
		terminal_open(r);
	if (pipe2(go, O_CLOEXEC) || pipe2(said, O_CLOEXEC))
		give_up(code_of(errno), "cannot open a pipe: %s", strerror(errno));
	r->pid = fork();
	if (r->pid < 0)
		give_up(code_of(errno), "cannot start a process: %s", strerror(errno));
	if (r->pid == 0) {
		close(go[1]);
		close(said[0]);
		child_main(r, parent, go[0], said[1]);
	}
	close(go[0]);
	close(said[1]);
	r->go_fd = go[1];
	r->said_fd = said[0];
}

/* The child has changed nothing yet. It ends when its pipe is closed. */
void abandon_child(struct run *r)
{
	close(r->go_fd);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Reads why the child could not run the command; false: it runs it. */
bool child_refused(struct run *r)
{
	char text[RECORD_MAX_TEXT + 1];
	size_t len = 0;
	ssize_t n;

	do {
		n = read(r->said_fd, text + len, sizeof text - 1 - len);
		if (n > 0)
			len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	close(r->said_fd);
	text[len] = '\0';
	r->again = text[0] == AGAIN;
	if (len)
		set_reason(r, "%s", text + r->again);
	return len > 0;
}
