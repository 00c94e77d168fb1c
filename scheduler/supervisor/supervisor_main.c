/* postrider-supervisor: runs one job, watches it, and leaves a record of how it ended. The daemon's executor
 * starts it. It survives the daemon, so that a new daemon can adopt the job. docs/man/postrider-supervisor.8
 * is the manual, scheduler/process/record_format.h has the format of the records.
 *
 * It is single-threaded and linked with the C library alone: it starts at once, and it may use all of that
 * library after fork().
 *
 * The order of things matters. The child is forked first and waits, because the record names it. Then the
 * record is linked, which only one supervisor can do. Only then is anything changed and the command begun. If
 * any of the processes dies on the way, the command runs once or not at all. */
#define _GNU_SOURCE
#include "scheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define GATE_NS 20000000 /* between two looks for the file */

static int not_run(struct run *r)
{
	r->started = (struct moment){ 0 };
	r->ended = moment_now();
	report(REPORT_FAILED, r->reason);
	return finish(r);
}

/* The daemon listens to the start only. After it the supervisor keeps no descriptor of the daemon open. */
static void hang_up(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO && null_fd >= 0; fd++)
		dup2(null_fd, fd);
	if (null_fd > STDERR_FILENO)
		close(null_fd);
}

static int try_again(struct run *r)
{
	remove_folder(r); /* or the next attempt moves it away, and there is one more each time */
	withdraw_started(r);
	remove_cgroup(r);
	report(REPORT_FAILED, r->reason);
	return SUPERVISOR_TRY_AGAIN;
}

/* For those who see no records: a workload manager keeps the code. */
static int code_for_others(const struct run *r, int code)
{
	if (!r->opt->pass_code || (code != SUPERVISOR_DONE && code != SUPERVISOR_NO_RECORD))
		return code;
	return r->end.si_code == CLD_EXITED ? r->end.si_status : 128 + r->end.si_status;
}

/* Until the file exists, or the job is to end; then false. */
static bool pass_gate(struct run *r)
{
	const struct timespec slice = { .tv_nsec = GATE_NS };
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	while (access(r->opt->gate, F_OK)) {
		if (sigtimedwait(&stop, NULL, &slice) == SIGTERM) {
			set_reason(r, "stopped before its command began");
			return false;
		}
	}
	return true;
}

static int supervise(struct run *r)
{
	char go[64];

	fork_child(r);
	win_the_race(r);
	if (!make_folder(r)) {
		abandon_child(r);
		return r->again ? try_again(r) : not_run(r);
	}
	enter_cgroup(r);
	if (r->note[0])
		report(REPORT_NOTE, r->note);
	sync_started(r);
	if (r->opt->gate && !pass_gate(r)) {
		abandon_child(r);
		return not_run(r);
	}
	/* The disk's time is not the command's: a run is measured as `postrider profile` measures it. */
	r->started = moment_now();
	snprintf(go, sizeof go, "%lld %lld", (long long)r->started.real_ns, (long long)r->started.boot_ns);
	write_all(r->go_fd, "g", 1); /* if it died already, the wait shows it */
	close(r->go_fd);
	if (child_refused(r)) {
		end_leftovers(r);
		return r->again ? try_again(r) : not_run(r);
	}
	report(REPORT_GO, go);
	report(REPORT_STARTED, "");
	hang_up();
	watch(r);
	r->ended = moment_now();
	end_leftovers(r);
	if (r->opt->terminal)
		terminal_end(r);
	cap_output(r);
	return code_for_others(r, finish(r));
}

static void settle_in(void)
{
	sigset_t held;

	setsid();
	umask(0);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN); /* the daemon may be gone and read no report */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored, as we may inherit it, it would lose the end of the job */
	sigemptyset(&held);
	sigaddset(&held, SIGCHLD);
	sigaddset(&held, SIGTERM);
	sigprocmask(SIG_SETMASK, &held, NULL); /* the daemon blocked all signals until here */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* Descriptors 0 to 2 are always open, so that no pipe gets a number that the job's streams need. */
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			exit(code_of(errno));
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
		give_up(SUPERVISOR_TRY_AGAIN, "out of memory");
	parse_options(argc, argv, &o);
	if (geteuid() != 0 && o.uid != geteuid())
		give_up(SUPERVISOR_NOT_STARTED, "jobs run as the daemon's own user only");
	if (!record_path(&o, RECORD_STARTED, path, sizeof path))
		give_up(SUPERVISOR_USAGE, "--dir: the path is too long");
	if (access(path, F_OK) == 0) {
		rc = SUPERVISOR_LOST_RACE;
	} else {
		find_user(&o);
		rc = supervise(&r);
	}
	options_release(&o);
	return rc;
}
