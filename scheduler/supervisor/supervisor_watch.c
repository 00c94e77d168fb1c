/* Waits until the job ends, is asked to stop, or runs out of time, and kills what it left behind. See
 * supervisor.h. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NEVER_NS INT64_MAX
#define KILL_AGAIN_NS (NS_PER_S / 10)
#define OUTPUT_LOOK_NS (NS_PER_S / 4)
#define MAX_DEPTH 1000 /* of a tree of processes */
#define LEFTOVERS_NS (5 * NS_PER_S) /* a process that survives SIGKILL for longer hangs in the kernel */

/* ---- signals ---- */

/* Is it a process of ours, in whatever session? */
static bool descends(pid_t pid)
{
	unsigned long long ticks;
	long parent = pid;

	for (int depth = 0; depth < MAX_DEPTH && parent > 1; depth++) {
		if (!process_stat((pid_t)parent, &parent, &ticks))
			return false;
		if (parent == getpid())
			return true;
	}
	return false;
}

/* Kills everything the job has started, wherever it hides: its group may not hold a process that keeps the
 * leader from ending, as one does that traces it. The descriptor makes sure that the process that was looked
 * at is the one that is killed. */
static void kill_tree(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		int fd = pid > 1 && pid != getpid() ? pidfd_open(pid, 0) : -1;

		if (fd < 0)
			continue;
		if (descends(pid))
			pidfd_send_signal(fd, SIGKILL, NULL, 0);
		close(fd);
	}
	if (d)
		closedir(d);
}

/* ---- until it ends ---- */

static void signal_group(const struct run *r, int number)
{
	kill(-r->pid, number);
	if (number == SIGTERM)
		kill(-r->pid, SIGCONT); /* a process that is stopped could not react */
}

static void ask_to_end(struct run *r, double grace_s)
{
	int64_t at_ns = after_s(clock_ns(CLOCK_BOOTTIME), grace_s);

	signal_group(r, SIGTERM);
	if (at_ns < r->kill_at_ns)
		r->kill_at_ns = at_ns;
}

/* A SIGTERM from the daemon has a value: the grace in milliseconds. The daemon will call the job cancelled. A
 * SIGTERM from elsewhere, for example at a shutdown of the machine, ends the job but does not cancel it. */
static void on_stop(struct run *r, const siginfo_t *info)
{
	double grace_s = r->opt->grace_s;

	if (info->si_code == SI_QUEUE) {
		r->stopped = true;
		if (info->si_value.sival_int >= 0)
			grace_s = 1e-3 * info->si_value.sival_int;
	} else if (!strstr(r->note, NOTE_TERMINATED)) {
		add_note(r, NOTE_TERMINATED);
	}
	ask_to_end(r, grace_s);
}

/* Orphans of the job become our children. The job itself stays a zombie for now, so that its number is not
 * given to another process while we signal its group. Returns true if the job has ended. */
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

/* Asks for the job first: waitid(P_ALL) may show another zombie again and again. */
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
		kill_cgroup(r);
		kill_tree();
		r->kill_at_ns = now_ns + KILL_AGAIN_NS; /* until it is gone */
	}
}

/* Returns the next signal, or 0 at the time given. It sleeps an hour at most: sigtimedwait() does not count
 * the time in which the machine is suspended. */
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

/* Who sends SIGTERM to all processes of a job may reach us last, as Slurm does at its time limit: a job that
 * has ended with 0 by then did not do its work. A stop of the daemon that comes so late is too late. */
static void take_late_stop(struct run *r)
{
	int64_t until_ns = clock_ns(CLOCK_BOOTTIME) + (getenv("SLURM_JOB_ID") ? NS_PER_S / 10 : 0);
	siginfo_t info;
	int number;

	do {
		number = next_signal(until_ns, &info);
		if (number == SIGTERM && info.si_code != SI_QUEUE)
			on_stop(r, &info);
	} while (number == SIGCHLD);
}

void watch(struct run *r)
{
	r->kill_at_ns = NEVER_NS;
	r->out_of_time_ns = r->opt->max_time_s > 0.0 ? after_s(r->started.boot_ns, r->opt->max_time_s)
						     : NEVER_NS;
	open_output(r);
	if (r->opt->terminal)
		terminal_begin(r);
	while (!job_ended(r)) {
		int64_t until_ns = r->kill_at_ns < r->out_of_time_ns ? r->kill_at_ns : r->out_of_time_ns;
		siginfo_t info;

		if (r->opt->max_output) {
			int64_t look_ns = clock_ns(CLOCK_BOOTTIME) + OUTPUT_LOOK_NS;

			cap_output(r);
			until_ns = look_ns < until_ns ? look_ns : until_ns;
		}
		if (r->opt->terminal) {
			terminal_wait(r, until_ns);
			until_ns = 0;
		}
		if (next_signal(until_ns, &info) == SIGTERM)
			on_stop(r, &info);
		on_time(r);
	}
	take_late_stop(r);
}

/* ---- what is left ---- */

/* No process of the job may run after its end: the next job gets its cpus. */
void end_leftovers(struct run *r)
{
	int64_t until_ns = clock_ns(CLOCK_BOOTTIME) + LEFTOVERS_NS;
	siginfo_t info;
	pid_t pid;

	signal_group(r, SIGKILL);
	kill_cgroup(r);
	waitpid(r->pid, NULL, 0);
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (pid > 0)
			continue;
		if (clock_ns(CLOCK_BOOTTIME) >= until_ns) {
			add_note(r, "processes of the job do not end");
			break;
		}
		kill_tree();
		next_signal(clock_ns(CLOCK_BOOTTIME) + NS_PER_S / 50, &info);
	}
	remove_cgroup(r);
}
