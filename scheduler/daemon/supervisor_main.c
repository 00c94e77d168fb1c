/* postrider-supervisor: runs one job, watches over it, and leaves a record of how it ended. Started by
 * exec_local_spawn.c; survives the daemon, so that a new one can adopt the job. docs/man/postrider-supervisor.8 is the
 * manual, exec_local_record.h has the format of the records.
 *
 * Single-threaded and linked with the C library alone: it is there at once, and after fork() all of that library
 * may be used.
 *
 * The order of things matters. The child is forked first, since the record names it, and waits; the record is
 * linked, which only one supervisor can do; only then is anything touched and the child let go. Whoever
 * dies on the way, the command runs once or not at all. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/daemon/exec_local_record.h"

#define NS_PER_S INT64_C(1000000000)
#define NEVER_NS INT64_MAX
#define MAX_SECONDS 1e9 /* 30 years: as good as for ever, and far from overflowing */
#define LEFTOVERS_NS (5 * NS_PER_S) /* processes that SIGKILL does not end so soon hang in the kernel */
#define RECORD_TRIES 30 /* a second apart: a full disk may be cleared */
#define KERNEL_SIGSET_BYTES 8
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

struct options {
	const char *dir, *job, *work_dir, *cpus, *cgroup;
	uid_t uid;
	gid_t gid;
	char *user, *home; /* of uid; user NULL: it has no name */
	double grace_s, max_time_s; /* max_time_s 0: none */
	rlim_t fsize, as, nofile; /* 0: as they are */
	int nice;
	char **env; /* "NAME=value" */
	size_t n_env;
	char **argv;
};

struct moment {
	int64_t real_ns, boot_ns;
};

struct run {
	const struct options *opt;
	pid_t pid; /* of the job: leader of its session and group */
	int go_fd, said_fd; /* the child waits at one, and says on the other why it cannot run the command */
	struct moment started, ended; /* started 0: it never ran */
	siginfo_t end;
	bool timed_out, stopped;
	int64_t kill_at_ns, out_of_time_ns; /* boot time */
	char reason[RECORD_MAX_TEXT + 1], note[RECORD_MAX_TEXT + 1];
};

/* ---- small tools ---- */

static int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static struct moment moment_now(void)
{
	return (struct moment){ .real_ns = clock_ns(CLOCK_REALTIME), .boot_ns = clock_ns(CLOCK_BOOTTIME) };
}

static int64_t after_s(int64_t from_ns, double s)
{
	return from_ns + (int64_t)(s * 1e9);
}

/* One line of text: a record and the report have a line for it. */
static void one_line(char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	}
}

static bool write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return true;
}

/* To the daemon, or whoever started us; if nobody listens any more, the records tell the same. */
static void report(const char *what, const char *text)
{
	char line[RECORD_MAX_TEXT + 32];
	int n = snprintf(line, sizeof line, "%s%s\n", what, text);

	if (n > 0 && (size_t)n < sizeof line)
		write_all(STDOUT_FILENO, line, (size_t)n);
}

/* Before anything was touched. */
__attribute__((format(printf, 2, 3), noreturn)) static void give_up(int code, const char *fmt, ...)
{
	char text[RECORD_MAX_TEXT + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	one_line(text);
	report(REPORT_FAILED, text);
	exit(code);
}

__attribute__((format(printf, 2, 3))) static void add_note(struct run *r, const char *fmt, ...)
{
	size_t at = strlen(r->note);
	va_list ap;

	if (at > 0 && at + 2 < sizeof r->note)
		at += (size_t)snprintf(r->note + at, sizeof r->note - at, "; ");
	va_start(ap, fmt);
	vsnprintf(r->note + at, sizeof r->note - at, fmt, ap);
	va_end(ap);
	one_line(r->note);
}

__attribute__((format(printf, 2, 3))) static void set_reason(struct run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof r->reason, fmt, ap);
	va_end(ap);
	one_line(r->reason);
}

/* Of /proc/PID/stat. The name of the program may hold anything, so fields are counted from its last ')'. */
static bool process_stat(pid_t pid, long *out_parent, unsigned long long *out_ticks)
{
	char path[64], text[1024];
	unsigned long long ticks;
	const char *after;
	long parent;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after,
		   ") %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &parent, &ticks) != 2)
		return false;
	*out_parent = parent;
	*out_ticks = ticks;
	return true;
}

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

static void sync_folder_of(const char *path)
{
	char dir[PATH_MAX];
	char *slash;
	int fd;

	snprintf(dir, sizeof dir, "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		return;
	slash[slash == dir] = '\0'; /* keep the root's own */
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

/* ---- the command line ---- */

static double seconds_arg(const char *name, const char *s)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v >= 0.0))
		give_up(SUPERVISOR_USAGE, "--%s %s: not a number of seconds", name, s);
	return v < MAX_SECONDS ? v : MAX_SECONDS;
}

static unsigned long long count_arg(const char *name, const char *s)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || errno)
		give_up(SUPERVISOR_USAGE, "--%s %s: not a number", name, s);
	return v;
}

static unsigned id_arg(const char *name, const char *s)
{
	unsigned long long v = count_arg(name, s);

	if (v >= UINT32_MAX) /* -1 means "leave it" to chown and setuid */
		give_up(SUPERVISOR_USAGE, "--%s %s: there is no such id", name, s);
	return (unsigned)v;
}

static int nice_arg(const char *s)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || *end || v < -20 || v > 19)
		give_up(SUPERVISOR_USAGE, "--nice %s: need -20 to 19", s);
	return (int)v;
}

/* "0-3,8" */
static bool parse_cpus(const char *s, cpu_set_t *out)
{
	CPU_ZERO(out);
	while (*s) {
		char *end;
		unsigned long from = strtoul(s, &end, 10), to = from;

		if (end == s || *s < '0' || *s > '9')
			return false;
		if (*end == '-') {
			s = end + 1;
			to = strtoul(s, &end, 10);
			if (end == s || *s < '0' || *s > '9')
				return false;
		}
		if (from > to || to >= CPU_SETSIZE || (*end && *end != ',') || (*end && !end[1]))
			return false;
		for (; from <= to; from++)
			CPU_SET(from, out);
		s = end + (*end == ',');
	}
	return CPU_COUNT(out) > 0;
}

static void usage(void)
{
	static const char text[] =
		"usage: postrider-supervisor --dir DIR [options] -- COMMAND [ARGUMENT...]\n"
		"\n"
		"Runs one job of postriderd and writes DIR.started and DIR.exit; see "
		"postrider-supervisor(8).\n"
		"\n"
		"  --dir DIR          the job's folder, an absolute path; made unless it is there\n"
		"  --job ID           its number, for POSTRIDER_JOB\n"
		"  --uid U --gid G    the user it runs as (our own)\n"
		"  --work-dir DIR     where it runs (its folder)\n"
		"  --env NAME=VALUE   added to its environment; may be repeated\n"
		"  --cpus LIST        the cpus it may use, as in 0-3,8\n"
		"  --cgroup PATH      a cgroup v2 folder to make for it\n"
		"  --nice N           niceness\n"
		"  --grace SECONDS    from SIGTERM to SIGKILL (30)\n"
		"  --max-time SECONDS stop it after so long (0: never)\n"
		"  --rlimit-fsize BYTES --rlimit-as BYTES --rlimit-nofile N\n";

	fputs(text, stdout);
}

static void parse_options(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "dir", 1, NULL, 'd' },       { "job", 1, NULL, 'j' },
		{ "uid", 1, NULL, 'u' },       { "gid", 1, NULL, 'g' },
		{ "work-dir", 1, NULL, 'w' },  { "env", 1, NULL, 'e' },
		{ "cpus", 1, NULL, 'c' },      { "cgroup", 1, NULL, 'G' },
		{ "nice", 1, NULL, 'n' },      { "grace", 1, NULL, 'k' },
		{ "max-time", 1, NULL, 't' },  { "rlimit-fsize", 1, NULL, 'F' },
		{ "rlimit-as", 1, NULL, 'A' }, { "rlimit-nofile", 1, NULL, 'N' },
		{ "help", 0, NULL, 'h' },      { NULL, 0, NULL, 0 },
	};
	cpu_set_t cpus;
	int c;

	while ((c = getopt_long(argc, argv, "+h", known, NULL)) != -1) {
		switch (c) {
		case 'd': o->dir = optarg; break;
		case 'j': o->job = optarg; break;
		case 'u': o->uid = id_arg("uid", optarg); break;
		case 'g': o->gid = id_arg("gid", optarg); break;
		case 'w': o->work_dir = optarg; break;
		case 'e': o->env[o->n_env++] = optarg; break;
		case 'c': o->cpus = optarg; break;
		case 'G': o->cgroup = optarg; break;
		case 'n': o->nice = nice_arg(optarg); break;
		case 'k': o->grace_s = seconds_arg("grace", optarg); break;
		case 't': o->max_time_s = seconds_arg("max-time", optarg); break;
		case 'F': o->fsize = count_arg("rlimit-fsize", optarg); break;
		case 'A': o->as = count_arg("rlimit-as", optarg); break;
		case 'N': o->nofile = count_arg("rlimit-nofile", optarg); break;
		case 'h': usage(); exit(0);
		default: give_up(SUPERVISOR_USAGE, "unknown option or missing value; see --help");
		}
	}
	o->argv = argv + optind;
	if (!o->argv[0])
		give_up(SUPERVISOR_USAGE, "there is no command to run");
	if (!o->dir || o->dir[0] != '/' || !o->dir[1])
		give_up(SUPERVISOR_USAGE, "--dir: need an absolute path");
	if (strlen(o->dir) + 64 > PATH_MAX)
		give_up(SUPERVISOR_USAGE, "--dir: the path is too long");
	if (o->cpus && (strlen(o->cpus) > RECORD_MAX_CPUS || !parse_cpus(o->cpus, &cpus)))
		give_up(SUPERVISOR_USAGE, "--cpus %.100s: not a list of cpus", o->cpus);
	for (size_t i = 0; i < o->n_env; i++) {
		if (!strchr(o->env[i], '=') || o->env[i][0] == '=')
			give_up(SUPERVISOR_USAGE, "--env %.100s: need NAME=VALUE", o->env[i]);
	}
}

/* Who the job's user is. Our own is known without asking, which may take a network. */
static void find_user(struct options *o)
{
	const char *home = getuid() != 0 && o->uid == getuid() ? getenv("HOME") : NULL;
	struct passwd *pw = home && *home ? NULL : getpwuid(o->uid);

	if (pw) {
		o->user = strdup(pw->pw_name);
		home = pw->pw_dir;
	}
	o->home = strdup(home && *home ? home : o->dir);
	if (!o->home || (pw && !o->user))
		give_up(SUPERVISOR_NOT_STARTED, "out of memory");
}

static void options_release(struct options *o)
{
	free(o->user);
	free(o->home);
	free(o->env);
}

/* ---- the child, until it is the command ---- */

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
		return; /* checked before: it is our own user */
	failed = o->user ? initgroups(o->user, o->gid) : setgroups(1, &o->gid);
	if (failed || setgid(o->gid) || setuid(o->uid))
		child_fail(said_fd, "cannot become user %u, group %u: %s", o->uid, o->gid, strerror(errno));
	if (o->uid != 0 && setuid(0) == 0)
		child_fail(said_fd, "cannot give up the powers of root for user %u", o->uid);
}

/* As the user: what somebody put in place of a log harms nobody else. Not waiting for the reader of a fifo. */
static void child_log(const struct options *o, const char *name, int as_fd, int said_fd)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "%s/%s", o->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
	if (fd < 0)
		child_fail(said_fd, "cannot write %s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		child_fail(said_fd, "%s is no regular file", path);
	if (fcntl(fd, F_SETFL, O_APPEND) || dup2(fd, as_fd) < 0)
		child_fail(said_fd, "cannot use %s: %s", path, strerror(errno));
	close(fd);
}

static void child_no_input(int said_fd)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
		child_fail(said_fd, "cannot open /dev/null: %s", strerror(errno));
	close(fd);
}

static void child_environment(const struct options *o, int said_fd)
{
	const char *lang = getenv("LANG");
	bool failed;

	if (!lang || !*lang)
		lang = "C.UTF-8";
	failed = clearenv() || setenv("PATH", DEFAULT_PATH, 1) || setenv("HOME", o->home, 1) ||
		 setenv("LANG", lang, 1) || setenv("POSTRIDER_DIR", o->dir, 1) ||
		 (o->job && setenv("POSTRIDER_JOB", o->job, 1));
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

	/* Past the C library, which keeps two signals to itself and lets posix_spawn() leave them ignored. */
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
	child_fail(said_fd, "cannot run %s: %s", program, strerror(error));
}

__attribute__((noreturn)) static void child_main(const struct options *o, pid_t parent, int go_fd,
						 int said_fd)
{
	const char *work_dir = o->work_dir ? o->work_dir : o->dir;
	cpu_set_t cpus;
	char byte;

	setsid(); /* before the word to go: the supervisor signals the whole group */
	while (read(go_fd, &byte, 1) != 1) {
		if (errno != EINTR) /* the end of the pipe: another supervisor was first, or ours is gone */
			_exit(127);
		errno = 0;
	}
	child_no_input(said_fd);
	child_limits(o, said_fd);
	if (o->cpus && parse_cpus(o->cpus, &cpus) && sched_setaffinity(0, sizeof cpus, &cpus))
		child_fail(said_fd, "cannot run on the cpus %.100s: %s", o->cpus, strerror(errno));
	child_become_user(o, said_fd);
	/* After the change of user, which clears it. It does not outlive its supervisor: nobody would stop it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(127);
	child_log(o, JOB_STDOUT, STDOUT_FILENO, said_fd);
	child_log(o, JOB_STDERR, STDERR_FILENO, said_fd);
	if (chdir(work_dir))
		child_fail(said_fd, "cannot enter %s as user %u: %s", work_dir, o->uid, strerror(errno));
	umask(077);
	child_environment(o, said_fd);
	close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	child_exec(o, said_fd);
	_exit(127);
}

/* ---- starting ---- */

static void fork_child(struct run *r)
{
	int go[2], said[2];
	pid_t parent = getpid();

	if (pipe2(go, O_CLOEXEC) || pipe2(said, O_CLOEXEC))
		give_up(SUPERVISOR_NOT_STARTED, "cannot open a pipe: %s", strerror(errno));
	r->pid = fork();
	if (r->pid < 0)
		give_up(SUPERVISOR_NOT_STARTED, "cannot start a process: %s", strerror(errno));
	if (r->pid == 0) {
		close(go[1]);
		close(said[0]);
		child_main(r->opt, parent, go[0], said[1]);
	}
	close(go[0]);
	close(said[1]);
	r->go_fd = go[1];
	r->said_fd = said[0];
}

/* The child has touched nothing yet, and ends when its pipe does. */
static void abandon_child(struct run *r)
{
	close(r->go_fd);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* DIR.started with the whole of its content, or the end: another supervisor was first. */
static void win_the_race(struct run *r)
{
	char path[PATH_MAX], temp[PATH_MAX + 32], text[RECORD_MAX_BYTES], boot[RECORD_BOOT_BYTES + 1];
	unsigned long long ticks, job_ticks;
	long parent;
	int fd, n, error = 0;

	snprintf(path, sizeof path, "%s%s", r->opt->dir, RECORD_STARTED);
	snprintf(temp, sizeof temp, "%s.%ld", path, (long)getpid());
	if (!boot_id(boot) || !process_stat(getpid(), &parent, &ticks) ||
	    !process_stat(r->pid, &parent, &job_ticks)) {
		abandon_child(r);
		give_up(SUPERVISOR_NOT_STARTED, "cannot read /proc: is it mounted?");
	}
	r->started = moment_now();
	n = snprintf(text, sizeof text,
		     RECORD_STARTED_MAGIC
		     "\nboot %s\nsupervisor %ld %llu\njob %ld %llu\nstarted %lld %lld\ncpus %s\nend\n",
		     boot, (long)getpid(), ticks, (long)r->pid, job_ticks, (long long)r->started.real_ns,
		     (long long)r->started.boot_ns, r->opt->cpus ? r->opt->cpus : "-");
	unlink(temp); /* of a namesake that was killed here, before the pids went round */
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
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
	give_up(SUPERVISOR_NOT_STARTED, "cannot make %s: %s", path, strerror(error));
}

static bool make_folder(struct run *r)
{
	const struct options *o = r->opt;
	struct stat st;
	int fd, error = 0;

	if (mkdir(o->dir, 0750) && errno != EEXIST) {
		set_reason(r, "cannot make the folder %s: %s", o->dir, strerror(errno));
		return false;
	}
	fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		error = errno;
	else if (st.st_uid != o->uid && st.st_uid != geteuid())
		error = EEXIST; /* somebody else's */
	else if (geteuid() == 0 && fchown(fd, o->uid, o->gid))
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error)
		set_reason(r, "cannot give the folder %s to user %u: %s", o->dir, o->uid, strerror(error));
	return !error;
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

/* Good to have, not needed: without one, processes are found by their group and their parents. */
static void enter_cgroup(struct run *r)
{
	const char *path = r->opt->cgroup;
	char pid[32];

	if (!path)
		return;
	snprintf(pid, sizeof pid, "%ld", (long)r->pid);
	if ((mkdir(path, 0755) && errno != EEXIST) || !put_file(path, "cgroup.procs", pid))
		add_note(r, "no cgroup %s: %s", path, strerror(errno));
}

static void leave_cgroup(const struct run *r)
{
	if (r->opt->cgroup)
		put_file(r->opt->cgroup, "cgroup.kill", "1"); /* kernels before 5.14 do not know it */
}

/* The child's own words on why it could not run the command; false where it could. */
static bool child_refused(struct run *r)
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
	if (len)
		set_reason(r, "%s", text);
	return len > 0;
}

/* The record on disk, so that after a crash of the machine the job is not taken for one that never started. The
 * job does not wait for it: a disk takes longer for this than all the rest. */
static void sync_started(const struct run *r)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof path, "%s%s", r->opt->dir, RECORD_STARTED);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	sync_folder_of(path);
}

/* ---- watching ---- */

static void signal_group(const struct run *r, int number)
{
	kill(-r->pid, number);
	if (number == SIGTERM)
		kill(-r->pid, SIGCONT); /* one that is stopped could not hear it */
}

static void ask_to_end(struct run *r, double grace_s)
{
	int64_t at_ns = after_s(clock_ns(CLOCK_BOOTTIME), grace_s);

	signal_group(r, SIGTERM);
	if (at_ns < r->kill_at_ns)
		r->kill_at_ns = at_ns;
}

/* Asked by the daemon, which sends its grace in milliseconds along, or by hand. */
static void on_stop(struct run *r, const siginfo_t *info)
{
	double grace_s = r->opt->grace_s;

	if (info->si_code == SI_QUEUE && info->si_value.sival_int >= 0)
		grace_s = 1e-3 * info->si_value.sival_int;
	r->stopped = true;
	ask_to_end(r, grace_s);
}

/* Orphans of the job come to us. The job itself stays a zombie for now: that keeps its number from being given
 * to somebody else while we signal its group. True: it has ended. */
static bool reap_orphans(struct run *r)
{
	for (;;) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0)
			return false;
		if (info.si_pid == r->pid) {
			r->end = info;
			return true;
		}
		waitpid(info.si_pid, NULL, 0);
	}
}

/* By name first: waitid(P_ALL) may show another zombie again and again. */
static bool job_ended(struct run *r)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == r->pid) {
		r->end = info;
		return true;
	}
	return reap_orphans(r);
}

static void on_time(struct run *r)
{
	int64_t now_ns = clock_ns(CLOCK_BOOTTIME);

	if (now_ns >= r->out_of_time_ns) {
		r->out_of_time_ns = NEVER_NS;
		r->timed_out = true;
		ask_to_end(r, r->opt->grace_s);
	}
	if (now_ns >= r->kill_at_ns) {
		signal_group(r, SIGKILL);
		r->kill_at_ns = NEVER_NS;
	}
}

/* The next signal, or 0 at the time given. Slept in pieces: sigtimedwait() does not count a suspended machine. */
static int next_signal(int64_t until_ns, siginfo_t *info)
{
	int64_t left_ns = until_ns == NEVER_NS ? 3600 * NS_PER_S : until_ns - clock_ns(CLOCK_BOOTTIME);
	struct timespec t = { 0 };
	sigset_t set;
	int number;

	if (left_ns > 3600 * NS_PER_S)
		left_ns = 3600 * NS_PER_S;
	if (left_ns > 0)
		t = (struct timespec){ .tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S };
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	number = sigtimedwait(&set, info, &t);
	return number > 0 ? number : 0;
}

static void watch(struct run *r)
{
	r->kill_at_ns = NEVER_NS;
	r->out_of_time_ns = r->opt->max_time_s > 0.0 ? after_s(r->started.boot_ns, r->opt->max_time_s)
						     : NEVER_NS;
	while (!job_ended(r)) {
		int64_t until_ns = r->kill_at_ns < r->out_of_time_ns ? r->kill_at_ns : r->out_of_time_ns;
		siginfo_t info;

		if (next_signal(until_ns, &info) == SIGTERM)
			on_stop(r, &info);
		on_time(r);
	}
}

/* ---- the end ---- */

/* Children of ours, by walking all processes: only when something is left. */
static void kill_orphans(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		unsigned long long ticks;
		long parent, pid = strtol(e->d_name, NULL, 10);

		if (pid > 0 && process_stat((pid_t)pid, &parent, &ticks) && parent == getpid())
			kill((pid_t)pid, SIGKILL); /* ours to reap: the number cannot be another's */
	}
	if (d)
		closedir(d);
}

/* Nothing of the job may go on after its end: its cpus will be given to the next one. */
static void end_leftovers(struct run *r)
{
	int64_t until_ns = clock_ns(CLOCK_BOOTTIME) + LEFTOVERS_NS;
	siginfo_t info;
	pid_t pid;

	signal_group(r, SIGKILL);
	leave_cgroup(r);
	waitpid(r->pid, NULL, 0);
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (pid > 0)
			continue;
		if (clock_ns(CLOCK_BOOTTIME) >= until_ns) {
			add_note(r, "processes of the job do not end");
			break;
		}
		kill_orphans();
		next_signal(clock_ns(CLOCK_BOOTTIME) + NS_PER_S / 50, &info);
	}
	if (r->opt->cgroup)
		rmdir(r->opt->cgroup);
}

static int format_exit(const struct run *r, char *text, size_t size)
{
	bool ran = r->started.real_ns != 0, by_exit = r->end.si_code == CLD_EXITED;
	char status[64] = "none";
	struct rusage use;

	getrusage(RUSAGE_CHILDREN, &use);
	if (ran)
		snprintf(status, sizeof status, "%s %d", by_exit ? "exit" : "signal", r->end.si_status);
	return snprintf(
		text, size,
		RECORD_EXIT_MAGIC
		"\nstarted %lld %lld\nended %lld %lld\nstatus %s\ntimed_out %d\nstopped %d\nmax_rss_kb %ld\n"
		"cpu_us %lld\nreason %s\nnote %s\nend\n",
		(long long)r->started.real_ns, (long long)r->started.boot_ns, (long long)r->ended.real_ns,
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

	snprintf(path, sizeof path, "%s%s", r->opt->dir, RECORD_EXIT);
	snprintf(temp, sizeof temp, "%s.new", path);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0)
		return false;
	done = write_all(fd, text, (size_t)n);
	fsync(fd); /* where it fails, the record is at least there for as long as the machine runs */
	close(fd);
	if (!done || rename(temp, path)) {
		unlink(temp);
		return false;
	}
	sync_folder_of(path);
	return true;
}

static int finish(struct run *r)
{
	for (int try = 1; !write_exit(r); try++) {
		if (try == RECORD_TRIES)
			return SUPERVISOR_NO_RECORD;
		sleep(1);
	}
	return SUPERVISOR_DONE;
}

static int not_run(struct run *r)
{
	r->started = (struct moment){ 0 };
	r->ended = moment_now();
	report(REPORT_FAILED, r->reason);
	return finish(r);
}

/* The daemon's ear is for the start alone; nothing of the daemon's is held after it. */
static void hang_up(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO && null_fd >= 0; fd++)
		dup2(null_fd, fd);
	if (null_fd > STDERR_FILENO)
		close(null_fd);
}

static int supervise(struct run *r)
{
	fork_child(r);
	win_the_race(r);
	if (!make_folder(r)) {
		abandon_child(r);
		return not_run(r);
	}
	enter_cgroup(r);
	if (r->note[0])
		report(REPORT_NOTE, r->note);
	write_all(r->go_fd, "g", 1); /* if it died already, the wait will tell */
	close(r->go_fd);
	if (child_refused(r)) {
		end_leftovers(r);
		return not_run(r);
	}
	report(REPORT_STARTED, "");
	hang_up();
	sync_started(r);
	watch(r);
	r->ended = moment_now();
	end_leftovers(r);
	return finish(r);
}

static void settle_in(void)
{
	sigset_t held;

	setsid();
	umask(0);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN); /* a daemon that is gone reads no report */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would lose the job's end */
	sigemptyset(&held);
	sigaddset(&held, SIGCHLD);
	sigaddset(&held, SIGTERM);
	sigprocmask(SIG_SETMASK, &held, NULL); /* all others were held until here */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* Below 3 there is always something, so that no pipe of ours gets a number the job's streams will have. */
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			exit(SUPERVISOR_NOT_STARTED);
	}
}

int main(int argc, char **argv)
{
	struct options o = { .uid = getuid(), .gid = getgid(), .grace_s = 30.0 };
	struct run r = { .opt = &o };
	char path[PATH_MAX];
	int rc;

	settle_in();
	opterr = 0;
	o.env = calloc((size_t)argc + 1, sizeof *o.env);
	if (!o.env)
		give_up(SUPERVISOR_NOT_STARTED, "out of memory");
	parse_options(argc, argv, &o);
	if (geteuid() != 0 && o.uid != geteuid())
		give_up(SUPERVISOR_NOT_STARTED, "jobs run as the daemon's own user only");
	snprintf(path, sizeof path, "%s%s", o.dir, RECORD_STARTED);
	if (access(path, F_OK) == 0) {
		rc = SUPERVISOR_LOST_RACE;
	} else {
		find_user(&o);
		rc = supervise(&r);
	}
	options_release(&o);
	return rc;
}
