/* Starts the copies of one run, measures them and judges the result. See run.h. */
#define _GNU_SOURCE
#include "scheduler/profiler/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/text/template.h"
#include "common/text/text.h"
#include "scheduler/process/demand.h"
#include "scheduler/process/next.h"
#include "scheduler/process/output.h"
#include "scheduler/process/proc.h"
#include "scheduler/profiler/stamps.h"

#define GRACE_S 2.0 /* from the request to end to the end */
#define TICK_S 1.0
#define LOOK_S 0.25 /* between two looks at what others want of the cpus; the first ones come sooner */
#define FIRST_LOOK_S 0.05

struct child {
	pid_t pid; /* 0: not started, or reaped */
	double from_s;
	int status;
};

struct running {
	const struct profile_run_params *p;
	struct profile_outcome *out;
	pid_t watchman; /* 0: none */
	int watch_fd; /* tells it the process groups to kill if we die */
	struct child child[PROFILE_MAX_JOBS]; /* the copies first, then those beside them */
	struct profile_point beside; /* of a mixed run */
	int null_fd; /* for those that are started again; -1: none */
	size_t n_started, n_alive; /* n_alive: of the copies */
	double begun_s, kill_at_s; /* kill_at_s: INFINITY unless we asked them to end */
	bool timed_out;
	size_t failed; /* the job that failed by itself, from 1, before we ended the others; 0: none */
	int failed_status; /* as wait() tells it */
	int signal; /* that asked us to stop */
	struct demand demand; /* of the machine and of our copies */
	double look_at_s, tick_at_s; /* when to look next, and to call on_tick */
	struct stamps *stamps; /* of their epochs */
	struct {
		double from_s, until_s; /* 0: not yet; when we give up waiting for an epoch */
		double poll_at_s;
		bool ended; /* we have ended the copies */
		size_t before[PROFILE_MAX_JOBS]; /* epochs of each copy at from_s */
		double time_s[PROFILE_MAX_JOBS]; /* of those it has had since; 0: none */
	} cut;
};

/* ---- signals ---- */

static bool is_ignored(int number)
{
	struct sigaction old;

	return !sigaction(number, NULL, &old) && old.sa_handler == SIG_IGN;
}

static const int stop_signal[PROFILE_STOP_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* A library may have its own threads, which block no signals: a signal that comes to one of them is noted. */
static volatile sig_atomic_t came;

static void note_signal(int number)
{
	came = number;
}

void profile_signals_hold(struct profile_signals *s)
{
	struct sigaction noted = { .sa_handler = note_signal, .sa_flags = SA_RESTART };

	came = 0;
	sigemptyset(&s->watched);
	sigaddset(&s->watched, SIGCHLD);
	for (size_t i = 0; i < PROFILE_STOP_SIGNALS; i++) {
		if (is_ignored(stop_signal[i]))
			continue; /* nohup and background jobs ignore them on purpose */
		sigaddset(&s->watched, stop_signal[i]);
		sigaction(stop_signal[i], &noted, &s->old[i]);
	}
	signal(SIGCHLD, SIG_DFL); /* ignored, as we may inherit it, it would reap the copies before us */
	sigprocmask(SIG_BLOCK, &s->watched, &s->before);
}

void profile_signals_release(const struct profile_signals *s)
{
	for (size_t i = 0; i < PROFILE_STOP_SIGNALS; i++) {
		if (sigismember(&s->watched, stop_signal[i]))
			sigaction(stop_signal[i], &s->old[i], NULL);
	}
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

bool profile_signals_came(void)
{
	sigset_t pending;
	bool any = came != 0;

	for (size_t i = 0; i < PROFILE_STOP_SIGNALS && !any && !sigpending(&pending); i++)
		any = sigismember(&pending, stop_signal[i]);
	return any;
}

int profile_signals_wait(const struct profile_signals *s, double wait_s)
{
	struct timespec t = { .tv_sec = (time_t)wait_s };
	int number;

	t.tv_nsec = (long)((wait_s - (double)t.tv_sec) * 1e9);
	number = came ? 0 : sigtimedwait(&s->watched, NULL, &t);
	if (number <= 0) {
		number = came;
		came = 0;
	}
	return number;
}

int profile_signals_pending(const struct profile_signals *s)
{
	int number;

	do
		number = profile_signals_wait(s, 0.0);
	while (number == SIGCHLD);
	return number;
}

/* ---- the watchman ---- */

/* A process that only waits for our death. Whatever kills us, it kills the process groups of the copies, so
 * that they do not run beside the next measurement. A 0 means that all went well. */
static void watch(int fd)
{
	pid_t group[PROFILE_MAX_JOBS], one;
	size_t n = 0;

	setsid(); /* Ctrl-C is not for it */
	for (int i = 0; i < 1024; i++) { /* the lock of the journal, above all, must not outlive us here */
		if (i != fd)
			close(i);
	}
	while (read(fd, &one, sizeof one) == (ssize_t)sizeof one) {
		if (one == 0)
			_exit(0);
		for (size_t i = 0; i < n && one < 0;
		     i++) { /* it has ended: its number may be another's soon */
			if (group[i] == -one)
				group[i--] = group[--n];
		}
		if (one > 0 && n < PROFILE_MAX_JOBS)
			group[n++] = one;
	}
	while (n > 0)
		kill(-group[--n], SIGKILL);
	_exit(0);
}

/* Without a watchman the first process of each copy still dies with us, so an error here is ignored. */
static void watch_begin(struct running *r)
{
	int fd[2];

	r->watch_fd = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
		       fd)) /* no pipe: send() can do without SIGPIPE */
		return;
	r->watchman = fork();
	if (r->watchman == 0) {
		close(fd[1]);
		watch(fd[0]);
	}
	close(fd[0]);
	if (r->watchman > 0) {
		r->watch_fd = fd[1];
	} else {
		r->watchman = 0;
		close(fd[1]);
	}
}

static void watch_tell(const struct running *r, pid_t group)
{
	if (r->watch_fd >= 0 && send(r->watch_fd, &group, sizeof group, MSG_NOSIGNAL) < 0) {
		/* It is gone: as if there had been none. */
	}
}

static void watch_end(struct running *r)
{
	watch_tell(r, 0);
	if (r->watch_fd >= 0)
		close(r->watch_fd);
	if (r->watchman > 0)
		waitpid(r->watchman, NULL, 0);
}

/* ---- starting ---- */

int profile_log_path(const struct profile_run_params *p, size_t copy, const char *end, char *out,
		     struct err *err)
{
	int n = snprintf(out, PATH_MAX, "%s/logs/%s.copy-%zu.%s", p->dir, p->name, copy, end);

	return n < PATH_MAX ? 0
			    : err_fail(err, ERR_ARG, "%s: the path of the logs is too long",
				       text_tail(p->dir, 200));
}

static int log_open(const struct profile_run_params *p, size_t copy, const char *end, int *out_fd,
		    struct err *err)
{
	char path[PATH_MAX];
	int rc = profile_log_path(p, copy, end, path, err);

	if (rc)
		return rc;
	*out_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (*out_fd < 0)
		return err_fail(err, errno == EACCES || errno == EROFS ? ERR_PERM : ERR_IO,
				"cannot write %s: %s", text_tail(path, 300), strerror(errno));
	return 0;
}

/* In the child, from fork to exec: async-signal-safe calls only. */
static void become(char **word, const char *dir, const sigset_t *mask, pid_t parent, int in, int out,
		   int err_fd, int tell)
{
	int error;

	/* A new session, as the daemon gives each job: the kernel may share the cpus between sessions first
	 * (autogroups), and a run is to be measured as a job will run. */
	setsid();
	/* If we are killed, no copy may disturb the next measurement. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err_fd, 2) >= 0 && (!dir || !chdir(dir)))
		execvp(word[0], word);
	error = errno;
	if (write(tell, &error, sizeof error) < 0)
		_exit(126);
	_exit(127);
}

static bool is_measured(const struct running *r, size_t i)
{
	return i < r->out->n_copies;
}

/* The setting of a job of the run: the jobs beside the copies have another one. */
static const struct profile_point *point_of(const struct running *r, size_t i)
{
	return is_measured(r, i) ? r->p->point : &r->beside;
}

static const struct profile_design *design_of(const struct running *r, size_t i)
{
	return is_measured(r, i) ? r->p->design : profile_beside(r->p->design, r->p->point);
}

static double level_of(const struct profile_design *d, const uint16_t *level, const char *name)
{
	const char *text = profile_value(d, level, name);
	double v = NAN;

	return text && text_number(text, &v) ? v : NAN;
}

/* A script that asks how to run its epochs hears the same from its environment as from its command. */
static void tell_start(const struct profile_design *d, const uint16_t *level)
{
	char line[JOB_NEXT_MAX + 1];
	struct next n = { .batch = level_of(d, level, "batch"),
			  .lr = level_of(d, level, "lr"),
			  .last = level_of(d, level, "epochs"),
			  .after = NAN };

	setenv(ENV_START, next_line(&n, line), 1);
	unsetenv(ENV_NEXT); /* of a job that runs us */
}

static int start_copy(struct running *r, size_t copy, int in, int tell, struct err *err)
{
	const struct profile_run_params *p = r->p;
	struct child *c = &r->child[copy - 1];
	int out_fd = -1, err_fd = -1;
	char **word = NULL;
	pid_t parent = getpid();
	const struct profile_design *d = design_of(r, copy - 1);
	int rc = profile_argv(d, point_of(r, copy - 1), copy, &word, err);

	if (!rc)
		rc = log_open(p, copy, "out", &out_fd, err);
	if (!rc)
		rc = log_open(p, copy, "err", &err_fd, err);
	if (!rc) {
		tell_start(d, point_of(r, copy - 1)->level);
		c->from_s = clock_monotonic_s();
		c->pid = fork();
		if (c->pid == 0)
			become(word, d->work_dir, &p->signals->before, parent, in, out_fd, err_fd, tell);
		if (c->pid < 0) {
			c->pid = 0;
			rc = err_fail(err, ERR_IO, "cannot start a process: %s", strerror(errno));
		} else {
			watch_tell(r, c->pid);
			r->n_started = copy > r->n_started ? copy : r->n_started;
			r->n_alive += is_measured(r, copy - 1);
		}
	}
	if (out_fd >= 0)
		close(out_fd);
	if (err_fd >= 0)
		close(err_fd);
	argv_free(word);
	return rc;
}

static int start_all(struct running *r, struct err *err)
{
	int tell[2], in = open("/dev/null", O_RDONLY | O_CLOEXEC), error = 0, rc = 0;
	size_t n = profile_jobs(r->p->design, r->p->point->level);
	ssize_t got;

	if (in < 0 || pipe2(tell, O_CLOEXEC)) {
		if (in >= 0)
			close(in);
		return err_fail(err, ERR_IO, "cannot open a pipe or /dev/null: %s", strerror(errno));
	}
	r->begun_s = clock_monotonic_s();
	for (size_t i = 1; i <= n && !rc; i++)
		rc = start_copy(r, i, in, tell[1], err);
	close(in);
	close(tell[1]);
	do /* ends when the last copy has become the program, or says why it has not */
		got = read(tell[0], &error, sizeof error);
	while (got < 0 && errno == EINTR);
	close(tell[0]);
	if (!rc && got == (ssize_t)sizeof error)
		rc = err_fail(err,
			      error == ENOENT   ? ERR_NOTFOUND
			      : error == EACCES ? ERR_PERM
						: ERR_IO,
			      "cannot run '%s': %s", text_tail(r->p->design->command[0], 200),
			      strerror(error));
	return rc;
}

/* ---- what others want of the cpus meanwhile ---- */

static void look(struct running *r)
{
	struct demand_program program[PROFILE_MAX_JOBS];
	double now_s = clock_monotonic_s();
	size_t n = 0;

	for (size_t i = 0; i < r->n_started; i++) {
		const char *cpus = profile_value(design_of(r, i), point_of(r, i)->level, "cpus");

		if (r->child[i].pid > 0)
			program[n++] = (struct demand_program){ r->child[i].pid,
								cpus ? fmax(1.0, atof(cpus)) : 1.0 };
	}
	demand_look(&r->demand, program, n, now_s);
	stamps_look(r->stamps, false);
	for (size_t i = 0; i < r->n_started && is_measured(r, i); i++) {
		size_t threads = r->child[i].pid > 0 ? demand_threads(&r->demand, r->child[i].pid) : 0;

		if (threads > r->out->copy[i].threads)
			r->out->copy[i].threads = threads;
	}
	r->look_at_s = now_s + fmin(LOOK_S, fmax(FIRST_LOOK_S, now_s - r->begun_s));
}

/* ---- waiting ---- */

static void signal_all(struct running *r, int number)
{
	for (size_t i = 0; i < r->n_started; i++) {
		if (r->child[i].pid > 0)
			kill(-r->child[i].pid, number);
	}
}

/* Asks all to end; the second time at once. */
static void end_all(struct running *r)
{
	bool again = isfinite(r->kill_at_s);

	signal_all(r, again ? SIGKILL : SIGTERM);
	if (!again)
		r->kill_at_s = clock_monotonic_s() + GRACE_S;
}

/* One beside the copies has ended: the next one takes its place, so that the load stays. */
static void start_again(struct running *r, size_t i)
{
	bool well = WIFEXITED(r->child[i].status) && !WEXITSTATUS(r->child[i].status);

	if (isfinite(r->kill_at_s) || !r->n_alive || r->failed)
		return;
	if (!well || start_copy(r, i + 1, r->null_fd, r->null_fd, NULL)) {
		r->failed = i + 1;
		r->failed_status = r->child[i].status;
		end_all(r);
	}
}

/* ---- a run that takes longer than there is time for ---- */

#define CUT_POLL_S 0.05

/* What a copy has told so far: how many epochs, and which was the last. */
static size_t epochs_told(const struct running *r, size_t i, double *out_last)
{
	struct profile_copy c = { 0 };
	char path[PATH_MAX];
	size_t n = 0;

	if (!profile_log_path(r->p, i + 1, "out", path, NULL) &&
	    !profile_result_read(r->p->design, path, &c, NULL))
		n = c.n_epochs;
	if (n)
		*out_last = c.epoch[n - 1].epoch;
	free(c.epoch);
	return n;
}

static void cut_begin(struct running *r, double now)
{
	double ran_s = now - r->begun_s, epoch_s = 0.0, last;

	r->cut.from_s = r->cut.poll_at_s = now;
	for (size_t i = 0; i < r->out->n_copies; i++) {
		r->cut.before[i] = epochs_told(r, i, &last);
		epoch_s = fmax(epoch_s, ran_s / fmax(1.0, (double)r->cut.before[i]));
	}
	/* One more epoch, and half of one for a slow one. An epoch that was never told of is waited for in
	 * the first run alone, without which nothing is known at all. */
	r->cut.until_s = now;
	if (profile_value(r->p->design, r->p->point->level, "epochs") && (r->cut.before[0] || r->p->first))
		r->cut.until_s = now + 1.5 * epoch_s;
}

static void cut_look(struct running *r, double now)
{
	bool all = true;

	r->cut.poll_at_s = now + CUT_POLL_S;
	for (size_t i = 0; i < r->out->n_copies; i++) {
		double last = 0.0;

		if (r->child[i].pid <= 0 || r->cut.time_s[i] > 0.0)
			continue;
		if (epochs_told(r, i, &last) > r->cut.before[i]) {
			r->cut.time_s[i] = now - r->child[i].from_s;
			r->out->copy[i].cut_epochs = last;
		} else {
			all = false;
		}
	}
	if (!all && now < r->cut.until_s)
		return;
	r->out->dropped = !all;
	r->cut.ended = true;
	r->kill_at_s = now + GRACE_S;
	signal_all(r, SIGKILL); /* there is no time left for goodbyes */
}

/* The copy was ended by us after an epoch that was seen; one that ended by itself is whole. */
static void cut_measure(struct running *r, size_t i)
{
	struct profile_copy *m = &r->out->copy[i];

	if (!(r->cut.time_s[i] > 0.0))
		return;
	if (!r->cut.ended && !m->exit_code && !m->signal) {
		m->cut_epochs = 0.0;
		return;
	}
	m->time_s = r->cut.time_s[i];
	m->exit_code = m->signal = 0;
}

/* What it printed while it was being ended is not part of it. */
static void cut_results(struct profile_outcome *o)
{
	for (size_t i = 0; i < o->n_copies; i++) {
		struct profile_copy *c = &o->copy[i];

		while (c->cut_epochs > 0.0 && c->n_epochs && c->epoch[c->n_epochs - 1].epoch > c->cut_epochs)
			c->n_epochs--;
		if (c->cut_epochs > 0.0 && c->n_epochs && !isnan(c->epoch[c->n_epochs - 1].accuracy))
			c->accuracy = c->epoch[c->n_epochs - 1].accuracy;
	}
}

static void measure(struct profile_copy *m, const struct child *c, double to_s, double blocked_s,
		    const struct rusage *use)
{
	double cpu_s = (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
		       1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);

	m->time_s = to_s - c->from_s;
	m->max_rss_mb = (double)use->ru_maxrss / 1024.0;
	m->job_cpu_mean = 100.0 * cpu_s / m->time_s;
	m->job_iowait_mean = 100.0 * blocked_s / m->time_s;
	m->exit_code = WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 0;
	m->signal = WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0;
}

static void reap(struct running *r)
{
	for (size_t i = 0; i < r->n_started; i++) {
		struct child *c = &r->child[i];
		struct profile_copy *m = is_measured(r, i) ? &r->out->copy[i] : NULL;
		siginfo_t info = { 0 };
		struct rusage use;
		double to_s, blocked_s;

		if (c->pid == 0 || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
		    info.si_pid != c->pid)
			continue;
		to_s = clock_monotonic_s();
		blocked_s = proc_blocked_s(c->pid); /* before it is reaped */
		demand_leaves(&r->demand, c->pid);
		kill(-c->pid, SIGKILL); /* its remaining processes would disturb the next measurement */
		wait4(c->pid, &c->status, 0, &use);
		watch_tell(r, -c->pid);
		c->pid = 0;
		if (!m) {
			start_again(r, i);
			continue;
		}
		measure(m, c, to_s, blocked_s, &use);
		cut_measure(r, i);
		r->n_alive--;
		/* With one job less on the machine the others would measure another setting. */
		if ((m->exit_code || m->signal) && !isfinite(r->kill_at_s) && !r->failed) {
			r->failed = i + 1;
			r->failed_status = c->status;
			end_all(r);
		}
	}
}

/* The copies have ended, and those beside them have done their work. */
static void end_beside(struct running *r)
{
	for (size_t i = r->out->n_copies; i < r->n_started; i++) {
		struct child *c = &r->child[i];

		if (c->pid <= 0)
			continue;
		demand_leaves(&r->demand, c->pid);
		kill(-c->pid, SIGKILL);
		kill(c->pid, SIGKILL); /* it may not lead its group yet */
		waitpid(c->pid, NULL, 0);
		c->pid = 0;
	}
}

static void wait_all(struct running *r)
{
	double limit_s = r->begun_s + r->p->design->timeout_s, cut_at_s = r->p->cut_at_s;

	while (r->n_alive) {
		double now = clock_monotonic_s(),
		       until = fmin(fmin(r->look_at_s, r->tick_at_s),
				    isfinite(r->kill_at_s) ? r->kill_at_s : limit_s);
		int number;

		if (cut_at_s > 0.0 && !isfinite(r->kill_at_s))
			until = fmin(until, r->cut.from_s > 0.0 ? r->cut.poll_at_s : cut_at_s);
		number = profile_signals_wait(r->p->signals, fmax(until - now, 0.0));

		reap(r);
		if (number && number != SIGCHLD) {
			r->signal = number;
			end_all(r);
		}
		now = clock_monotonic_s();
		if (r->n_alive && !isfinite(r->kill_at_s) && now >= limit_s) {
			r->timed_out = true;
			end_all(r);
		} else if (r->n_alive && now >= r->kill_at_s) {
			signal_all(r, SIGKILL);
			r->kill_at_s = now + GRACE_S; /* a process in a system call may take its time */
		}
		if (r->n_alive && !isfinite(r->kill_at_s) && cut_at_s > 0.0 && now >= cut_at_s) {
			if (!(r->cut.from_s > 0.0))
				cut_begin(r, now);
			if (now >= r->cut.poll_at_s)
				cut_look(r, now);
		}
		if (now >= r->look_at_s)
			look(r);
		if (now >= r->tick_at_s) {
			r->tick_at_s = now + TICK_S;
			if (r->p->on_tick)
				r->p->on_tick(r->p->owner, now - r->begun_s);
		}
	}
}

/* ---- judging ---- */

void profile_run_failed(const struct profile_run_params *p, size_t copy, const char *what,
			struct profile_outcome *o)
{
	char path[PATH_MAX], words[128] = "";

	o->status = PROFILE_FAILED;
	if (!profile_log_path(p, copy, "err", path, NULL))
		output_last_words(path, words, sizeof words);
	snprintf(o->why, sizeof o->why, "copy %zu %s%s%s", copy, what, words[0] ? ": " : "", words);
}

void profile_run_timed_out(const struct profile_run_params *p, struct profile_outcome *o)
{
	char seconds[32];

	o->status = PROFILE_TIMEOUT;
	snprintf(o->why, sizeof o->why, "took longer than %s", text_seconds(p->design->timeout_s, seconds));
}

int profile_run_results(const struct profile_run_params *p, struct profile_outcome *o, struct err *err)
{
	char path[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; i < o->n_copies && !rc; i++) {
		struct err why = { 0 };

		rc = profile_log_path(p, i + 1, "out", path, err);
		if (rc)
			break;
		if (profile_result_read(p->design, path, &o->copy[i], &why)) {
			if (why.code == ERR_NOMEM)
				return err_fail(err, ERR_NOMEM, "%s", why.text);
			o->status = PROFILE_FAILED;
			snprintf(o->why, sizeof o->why, "copy %zu: its output cannot be read: %.150s", i + 1,
				 why.text);
		} else if (isnan(o->copy[i].accuracy) && p->design->result_given && !o->why[0]) {
			profile_run_failed(p, i + 1, "succeeded but printed no accuracy at the given place",
					   o);
		}
	}
	return rc;
}

static int judge(struct running *r, struct err *err)
{
	char text[96];

	if (r->timed_out) {
		profile_run_timed_out(r->p, r->out);
		return 0;
	}
	if (r->out->dropped)
		return 0;
	if (!r->failed) {
		int rc = profile_run_results(r->p, r->out, err);

		cut_results(r->out);
		return rc;
	}
	if (WIFSIGNALED(r->failed_status))
		snprintf(text, sizeof text, "was ended by signal %d (%s)", WTERMSIG(r->failed_status),
			 strsignal(WTERMSIG(r->failed_status)));
	else
		snprintf(text, sizeof text, "%sended with exit code %d",
			 is_measured(r, r->failed - 1) ? "" : "(beside the one that is measured) ",
			 WEXITSTATUS(r->failed_status));
	profile_run_failed(r->p, r->failed, text, r->out);
	return 0;
}

int profile_run_prepare(const struct profile_run_params *p, struct profile_outcome *out, struct err *err)
{
	size_t n = profile_copies(p->design, p->point);
	char path[PATH_MAX];
	time_t now = time(NULL);
	struct tm tm;

	if (snprintf(path, sizeof path, "%s/logs", p->dir) >= (int)sizeof path)
		return err_fail(err, ERR_ARG, "%s: the path is too long", text_tail(p->dir, 200));
	if (mkdir(path, 0777) && errno != EEXIST)
		return err_fail(err, ERR_IO, "cannot make the folder %s: %s", text_tail(path, 300),
				strerror(errno));
	out->copy = mem_calloc(n, sizeof *out->copy);
	if (!out->copy)
		return err_nomem(err, "a run");
	out->n_copies = n;
	for (size_t i = 0; i < n; i++)
		out->copy[i].accuracy = NAN;
	gmtime_r(&now, &tm);
	strftime(out->started_at, sizeof out->started_at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return 0;
}

int profile_run(const struct profile_run_params *p, struct profile_outcome *out, int *out_signal,
		struct err *err)
{
	struct running r = { .p = p, .out = out, .kill_at_s = INFINITY, .null_fd = -1 };
	struct proc_cpu from = { 0 }, to = { 0 };
	int rc;

	*out = (struct profile_outcome){ 0 };
	*out_signal = 0;
	setenv(OUTPUT_UNBUFFERED, "1", 0); /* as the daemon starts a job; what the user has set counts */
	rc = profile_run_prepare(p, out, err);
	r.beside = *p->point;
	memcpy(r.beside.level, p->point->beside, sizeof r.beside.level);
	if (!rc && p->point->mixed && (r.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
		rc = err_fail(err, ERR_IO, "cannot open /dev/null: %s", strerror(errno));
	if (!rc) {
		watch_begin(&r);
		look(&r);
		proc_cpu_read(&from);
		r.stamps = stamps_new(p, out->n_copies);
		rc = start_all(&r, err);
		r.look_at_s = r.begun_s + FIRST_LOOK_S;
		r.tick_at_s = r.begun_s + TICK_S;
		if (rc)
			signal_all(&r, SIGKILL);
		wait_all(&r);
		end_beside(&r);
		proc_cpu_read(&to);
		watch_end(&r);
		proc_cpu_mean(&from, &to, &out->cpu_mean, &out->iowait_mean);
		look(&r);
		out->other_load = other_load_mean(&r.demand.other);
		demand_release(&r.demand);
		stamps_look(r.stamps, true);
	}
	if (r.null_fd >= 0)
		close(r.null_fd);
	*out_signal = r.signal;
	if (!rc && !r.signal)
		rc = judge(&r, err);
	if (!rc && !r.signal)
		stamps_give(r.stamps, out);
	stamps_free(r.stamps);
	if (rc || r.signal)
		profile_outcome_release(out);
	return rc;
}
