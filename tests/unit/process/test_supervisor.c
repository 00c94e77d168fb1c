/* postrider-supervisor, run as the daemon runs it: what it reports, which records it leaves, how the job is
 * started, stopped and cleaned up. */
#define _GNU_SOURCE
#include "common/clock.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/process/identity.h"
#include "scheduler/process/proc.h"
#include "scheduler/process/run_record.h"
#include "tests/support/support.h"

#define MAX_WORDS 32
#define PATIENCE_S 12.0

/* ---- a supervisor ---- */

struct job {
	char dir[300];
	pid_t pid; /* of the supervisor */
	int ear; /* its report */
	char report[2048]; /* up to where it hung up */
	int code; /* its exit code */
	long long go_ns; /* since the boot, says the report */
	struct job_started started;
	struct job_exit exit;
};

static const char *supervisor(void)
{
	static char path[4096];
	const char *bin = getenv("BIN");

	snprintf(path, sizeof path, "%s/postrider-supervisor", bin ? bin : "build");
	if (access(path, X_OK))
		fail_msg("%s is not built", path);
	return path;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(double s)
{
	nanosleep(&(struct timespec){ .tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9) }, NULL);
}

static const char *beside(const struct job *j, const char *suffix)
{
	static char ring[4][400];
	static unsigned turn;
	char *out = ring[turn++ % 4];

	snprintf(out, sizeof ring[0], "%s%s", j->dir, suffix);
	return out;
}

static const char *text_of(const char *path)
{
	static char *text;
	size_t len;

	free(text);
	text = NULL;
	return io_read_file(path, 1 << 20, &text, &len, NULL) ? "" : text;
}

static struct job job_new(void)
{
	static unsigned n;
	struct job j = { .code = -1 };

	snprintf(j.dir, sizeof j.dir, "%s/sup-%u", support_temp_dir(), n++);
	return j;
}

/* Between the start of the supervisor's process and that of its program. */
static double slow_exec_s;

/* Starts it with these options, separated by blanks, and a command; `script` NULL: the options have it
 * all. */
static bool without_override; /* root may not write to files of others */

static void begin(struct job *j, const char *options, const char *script)
{
	char copy[2048], *word[MAX_WORDS], *rest = copy;
	size_t n = 0;
	int fd[2];

	snprintf(copy, sizeof copy, "%s", options);
	word[n++] = (char *)supervisor();
	word[n++] = (char *)"--dir";
	word[n++] = j->dir;
	while ((word[n] = strsep(&rest, " ")) && n < MAX_WORDS - 6)
		n += word[n][0] != '\0';
	if (script) {
		word[n++] = (char *)"--";
		word[n++] = (char *)"/bin/sh";
		word[n++] = (char *)"-c";
		word[n++] = (char *)script;
	}
	word[n] = NULL;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	j->pid = fork();
	assert_true(j->pid >= 0);
	if (j->pid == 0) {
		/* A test in the background ignores some signals, and the supervisor would inherit that. */
		signal(SIGINT, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		if (geteuid() == 0 && setgroups(1, &(gid_t){ 4242 }))
			_exit(98);
		dup2(open("/dev/null", O_RDONLY), 20); /* a descriptor that the job must not have */
		dup2(fd[1], STDOUT_FILENO);
		nap(slow_exec_s);
		if (without_override && prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0))
			_exit(97);
		execv(word[0], word);
		_exit(99);
	}
	close(fd[1]);
	j->ear = fd[0];
}

static void listen_to(struct job *j)
{
	size_t len = 0;
	ssize_t n;
	struct pollfd p = { .fd = j->ear, .events = POLLIN };

	do {
		if (poll(&p, 1, (int)(1000 * PATIENCE_S)) <= 0) {
			kill(j->pid, SIGKILL);
			fail_msg("the supervisor does not hang up");
		}
		n = read(j->ear, j->report + len, sizeof j->report - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	j->report[len] = '\0';
	close(j->ear);
}

static void start(struct job *j, const char *options, const char *script)
{
	int len = 0;

	*j = job_new();
	begin(j, options, script);
	listen_to(j);
	assert_int_equal(job_started_read(j->dir, "", &j->started, NULL), 0);
	if (sscanf(j->report, "go %*d %lld started%n", &j->go_ns, &len) != 1 || strcmp(j->report + len, "\n"))
		fail_msg("the report is: %s", j->report);
}

/* Waits for its end and reads the record. */
static void end(struct job *j)
{
	struct err err = { 0 };
	double until_s = now_s() + PATIENCE_S;
	int status;

	while (waitpid(j->pid, &status, WNOHANG) == 0) {
		if (now_s() > until_s) {
			kill(j->pid, SIGKILL);
			fail_msg("the supervisor does not end");
		}
		nap(0.005);
	}
	assert_true(WIFEXITED(status));
	j->code = WEXITSTATUS(status);
	if (j->code == SUPERVISOR_DONE && job_exit_read(j->dir, "", &j->exit, &err))
		fail_msg("no record of the end: %s", err.text);
}

static void run(struct job *j, const char *options, const char *script)
{
	*j = job_new();
	begin(j, options, script);
	listen_to(j);
	end(j);
}

static const char *said(const struct job *j)
{
	return text_of(beside(j, "/stdout"));
}

static void stop(const struct job *j, int grace_ms)
{
	assert_int_equal(sigqueue(j->pid, SIGTERM, (union sigval){ .sival_int = grace_ms }), 0);
}

static void wait_until_said(const struct job *j, const char *word)
{
	double until_s = now_s() + PATIENCE_S;

	while (!strstr(said(j), word)) {
		if (now_s() > until_s)
			fail_msg("the job does not say '%s'", word);
		nap(0.005);
	}
}

static bool lives(pid_t pid)
{
	struct proc_process p;

	return pid > 0 && proc_process_read(pid, &p) && p.state != 'Z' && p.state != 'X';
}

static bool contains(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	print_message("'%s' is not in: %s\n", part, text);
	return false;
}

/* ---- records ---- */

TEST(test_the_records_tell_who_ran_when_and_how_it_ended)
{
	char boot[RECORD_BOOT_BYTES + 1];
	int64_t before_ns, after_ns;
	struct timespec t;
	struct job j;

	clock_gettime(CLOCK_REALTIME, &t);
	before_ns = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
	slow_exec_s = 0.05; /* a few ticks, so that its start is not that of the job */
	start(&j, "--cpus 0", "echo $$; sleep 0.3; exit 7");
	slow_exec_s = 0.0;
	assert_true(proc_boot_id(boot));
	assert_string_equal(j.started.boot, boot);
	assert_int_equal(j.started.supervisor, j.pid);
	assert_true(proc_lives(j.started.supervisor, j.started.supervisor_ticks));
	assert_true(proc_lives(j.started.job, j.started.job_ticks));
	assert_string_equal(j.started.cpus, "0");
	end(&j);
	clock_gettime(CLOCK_REALTIME, &t);
	after_ns = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
	assert_int_equal(atoi(said(&j)), j.started.job);
	assert_true(j.exit.ran && j.exit.exit_code == 7 && j.exit.exit_signal == 0);
	assert_false(j.exit.timed_out || j.exit.stopped);
	/* the claim comes first; the record of the end and the report name the moment of the start */
	assert_true(j.started.at_ns <= j.exit.started_ns && j.started.at_boot_ns <= j.exit.started_boot_ns);
	assert_true(j.go_ns == j.exit.started_boot_ns);
	assert_true(before_ns <= j.exit.started_ns && j.exit.started_ns <= j.exit.ended_ns);
	assert_true(j.exit.ended_ns <= after_ns);
	assert_true(j.exit.run_s >= 0.3 && j.exit.run_s < PATIENCE_S);
	assert_string_equal(j.exit.reason, "");
	assert_string_equal(j.exit.note, "");
}

TEST(test_a_job_without_cpus_has_none_in_its_record)
{
	struct job j;

	run(&j, "", "exit 0");
	assert_int_equal(job_started_read(j.dir, "", &j.started, NULL), 0);
	assert_string_equal(j.started.cpus, "");
	assert_int_equal(j.exit.exit_code, 0);
}

TEST(test_a_signal_that_ends_the_job_is_not_an_exit_code)
{
	struct job j;

	run(&j, "", "kill -9 $$");
	assert_true(j.exit.ran && j.exit.exit_signal == SIGKILL && j.exit.exit_code == -1);
	assert_false(j.exit.stopped);
}

TEST(test_variables_that_are_kept_reach_the_job)
{
	struct job j;

	setenv("CUDA_VISIBLE_DEVICES", "0,3", 1);
	setenv("OTHER_THING", "x", 1);
	run(&j, "--keep-env CUDA_VISIBLE_DEVICES --keep-env NOT_SET --keep-env CUDA",
	    "echo \"$CUDA_VISIBLE_DEVICES|$OTHER_THING|${NOT_SET-unset}|${CUDA-unset}\"");
	assert_string_equal(said(&j), "0,3||unset|unset\n");
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("OTHER_THING");
}

TEST(test_all_of_the_environment_reaches_the_job)
{
	struct job j;

	setenv("OTHER_THING", "x y", 1);
	run(&j, "--all-env --job 7", "echo \"$OTHER_THING|$POSTRIDER_JOB|${HOME:+home}\"");
	assert_string_equal(said(&j), "x y|7|home\n");
	unsetenv("OTHER_THING");
}

TEST(test_the_code_of_the_job_is_passed_on)
{
	struct job j;

	run(&j, "--pass-code", "exit 37");
	assert_int_equal(j.code, 37);
	assert_int_equal(job_exit_read(j.dir, "", &j.exit, NULL), 0);
	assert_int_equal(j.exit.exit_code, 37);
	run(&j, "--pass-code", "kill -9 $$");
	assert_int_equal(j.code, 128 + SIGKILL);
	run(&j, "--pass-code", "true");
	assert_int_equal(j.code, 0);
	run(&j, "", "exit 37");
	assert_int_equal(j.code, SUPERVISOR_DONE);
}

TEST(test_a_job_waits_at_the_gate_and_that_is_not_its_time)
{
	char options[500];
	struct job j = job_new();
	double until_s = now_s() + PATIENCE_S;

	snprintf(options, sizeof options, "--gate=%s", beside(&j, ".go"));
	begin(&j, options, "echo gone");
	while (job_started_read(j.dir, "", &j.started, NULL) && now_s() < until_s)
		nap(0.005);
	nap(0.3);
	assert_string_equal(said(&j), "");
	assert_int_equal(io_write_file(beside(&j, ".go"), "", 0, NULL), 0);
	listen_to(&j);
	end(&j);
	assert_string_equal(said(&j), "gone\n");
	assert_true(j.exit.started_boot_ns - j.started.at_boot_ns > 250000000);
	/* stopped there, it never runs */
	j = job_new();
	snprintf(options, sizeof options, "--gate=%s", beside(&j, ".go"));
	begin(&j, options, "echo gone");
	while (job_started_read(j.dir, "", &j.started, NULL) && now_s() < until_s)
		nap(0.005);
	kill(j.pid, SIGTERM);
	listen_to(&j);
	end(&j);
	assert_false(j.exit.ran);
	assert_string_equal(j.exit.reason, "stopped before its command began");
	assert_string_equal(said(&j), "");
}

TEST(test_cpu_time_and_memory_are_those_of_all_processes)
{
	struct job j;

	run(&j, "", "(i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done) & wait");
	assert_true(j.exit.cpu_s > 0.02 && j.exit.cpu_s < PATIENCE_S);
	assert_true(j.exit.max_rss_mb > 0.5 && j.exit.max_rss_mb < 500.0);
}

TEST(test_records_appear_complete_and_leave_no_other_files)
{
	struct job j;
	char list[1000];

	run(&j, "", "true");
	snprintf(list, sizeof list, "test \"$(ls -d %s.* | tr '\\n' ' ')\" = '%s.exit %s.started '", j.dir,
		 j.dir, j.dir);
	assert_int_equal(system(list), 0);
}

TEST(test_a_record_that_cannot_be_written_at_first_is_written_later)
{
	struct job j;

	start(&j, "", "sleep 0.2");
	assert_int_equal(mkdir(beside(&j, ".exit.new"), 0700), 0);
	nap(0.8);
	assert_int_not_equal(access(beside(&j, ".exit"), F_OK), 0);
	assert_int_equal(rmdir(beside(&j, ".exit.new")), 0);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_DONE);
	assert_int_equal(j.exit.exit_code, 0);
}

/* ---- one of many ---- */

TEST(test_a_job_that_was_started_before_is_not_touched)
{
	struct job j, again;
	char before[2048];

	run(&j, "", "echo first");
	snprintf(before, sizeof before, "%s", text_of(beside(&j, ".started")));
	again = j;
	begin(&again, "", "echo second");
	listen_to(&again);
	end(&again);
	assert_int_equal(again.code, SUPERVISOR_LOST_RACE);
	assert_string_equal(again.report, "");
	assert_string_equal(said(&j), "first\n");
	assert_string_equal(text_of(beside(&j, ".started")), before);
}

/* Where nothing can be written any more, it is still known that the job was started. */
TEST(test_a_job_that_was_started_before_is_known_on_a_full_disk)
{
	struct rlimit as_it_was, none;
	struct job j, again;

	run(&j, "", "echo first");
	again = j;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &as_it_was), 0);
	none = as_it_was;
	none.rlim_cur = 0; /* the supervisor inherits it */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	begin(&again, "--job 7", "echo second");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &as_it_was), 0);
	listen_to(&again);
	end(&again);
	assert_int_equal(again.code, SUPERVISOR_LOST_RACE);
	assert_string_equal(again.report, "");
	assert_string_equal(said(&j), "first\n");
}

/* A link to nowhere is not seen by the look before the fork, but it cannot be replaced by link(2). */
TEST(test_the_loser_of_a_race_changes_nothing)
{
	struct job j = job_new();

	assert_int_equal(symlink("/no/such/file", beside(&j, ".started")), 0);
	begin(&j, "", "echo ran");
	listen_to(&j);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_LOST_RACE);
	assert_string_equal(j.report, "");
	assert_int_not_equal(access(j.dir, F_OK), 0);
	assert_int_not_equal(access(beside(&j, ".exit"), F_OK), 0);
}

TEST(test_of_many_supervisors_one_runs_the_command)
{
	struct job j[8];
	int done = 0, lost = 0;

	for (int round = 0; round < 5; round++) {
		struct job one = job_new();

		for (size_t i = 0; i < 8; i++) {
			j[i] = one;
			begin(&j[i], "", "echo ran");
		}
		for (size_t i = 0; i < 8; i++) {
			listen_to(&j[i]);
			end(&j[i]);
			done += j[i].code == SUPERVISOR_DONE;
			lost += j[i].code == SUPERVISOR_LOST_RACE;
		}
		assert_string_equal(said(&one), "ran\n");
	}
	assert_int_equal(done, 5);
	assert_int_equal(lost, 35);
}

/* The folder has a name so long that its record cannot be made, which the supervisor finds out after the
 * fork. */
TEST(test_without_its_record_the_command_does_not_run)
{
	struct job j = { .code = -1 };
	size_t len;

	snprintf(j.dir, sizeof j.dir, "%s/", support_temp_dir());
	len = strlen(j.dir);
	assert_true(len + 250 < sizeof j.dir);
	memset(j.dir + len, 'x', 250);
	j.dir[len + 250] = '\0';
	assert_int_equal(mkdir(j.dir, 0700), 0);
	begin(&j, "", "echo ran");
	listen_to(&j);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_NOT_STARTED);
	assert_true(contains(j.report, "failed cannot make"));
	assert_int_not_equal(access(beside(&j, "/stdout"), F_OK), 0);
	assert_int_equal(rmdir(j.dir), 0);
}

/* ---- options ---- */

static void refuses(const char *options, const char *want)
{
	struct job j;

	run(&j, options, "echo ran");
	if (j.code != SUPERVISOR_USAGE)
		fail_msg("%s: exit code %d", options, j.code);
	assert_int_equal(strncmp(j.report, "failed ", 7), 0);
	assert_true(contains(j.report, want));
	assert_int_not_equal(access(beside(&j, ".started"), F_OK), 0);
	assert_int_not_equal(access(j.dir, F_OK), 0);
}

TEST(test_a_wrong_command_line_is_refused_before_anything_is_changed)
{
	struct job j;

	refuses("--what", "unknown option");
	refuses("--uid 4294967295", "no such id");
	refuses("--uid -1", "not a number");
	refuses("--gid x", "not a number");
	refuses("--nice 20", "-20 to 19");
	refuses("--nice 1x", "-20 to 19");
	refuses("--grace -1", "seconds");
	refuses("--grace soon", "seconds");
	refuses("--max-time nan", "seconds");
	refuses("--rlimit-as 1k", "not a number");
	refuses("--env NAME", "NAME=VALUE");
	refuses("--env =x", "NAME=VALUE");
	refuses("--cpus 3-1", "list of cpus");
	refuses("--cpus 0,", "list of cpus");
	refuses("--cpus 0,3-1", "list of cpus");
	refuses("--cpus -1", "list of cpus");
	refuses("--cpus 0-", "list of cpus");
	refuses("--cpus 99999", "list of cpus");
	refuses("--cpus 0;1", "list of cpus");
	run(&j, "", NULL);
	assert_int_equal(j.code, SUPERVISOR_USAGE);
	assert_true(contains(j.report, "no command"));
}

TEST(test_the_folder_must_be_an_absolute_path)
{
	struct job j = { .dir = "sup-relative" };

	begin(&j, "", "true");
	listen_to(&j);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_USAGE);
	strcpy(j.dir, "/");
	begin(&j, "", "true");
	listen_to(&j);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_USAGE);
}

/* ---- how the job is started ---- */

TEST(test_the_job_has_a_clean_environment_and_its_own_words)
{
	struct job j;

	setenv("POSTRIDER_SECRET", "of the daemon", 1);
	setenv("LANG", "de_DE.UTF-8", 1);
	run(&j, "--job 42 --env A=1 --env B=2=3", "env | sort; pwd");
	unsetenv("POSTRIDER_SECRET");
	assert_null(strstr(said(&j), "POSTRIDER_SECRET"));
	assert_true(contains(said(&j), "A=1\nB=2=3\nHOME=/"));
	assert_true(contains(said(&j), "LANG=de_DE.UTF-8\n"));
	assert_true(contains(said(&j), "PATH=/usr/local/bin:/usr/bin:/bin\n"));
	assert_true(contains(said(&j), "POSTRIDER_JOB=42\n"));
	assert_true(contains(said(&j), j.dir));
	setenv("LANG", "", 1);
	run(&j, "--work-dir /usr", "echo $LANG; pwd");
	assert_string_equal(said(&j), "C.UTF-8\n/usr\n");
}

TEST(test_the_job_runs_in_its_folder_with_its_own_files)
{
	struct job j;
	struct stat st;
	char want[400];

	run(&j, "", "pwd; cat; echo oops >&2; umask; ls /proc/self/fd | wc -l; echo x >made");
	snprintf(want, sizeof want, "%s\n0077\n4\n",
		 j.dir); /* 0, 1, 2, and the one ls reads the folder with */
	assert_string_equal(said(&j), want);
	assert_string_equal(text_of(beside(&j, "/stderr")), "oops\n");
	assert_int_equal(stat(beside(&j, "/made"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(j.dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

TEST(test_the_job_has_no_signal_blocked_or_ignored)
{
	struct job j;

	signal(SIGUSR1, SIG_IGN);
	run(&j, "", "grep -E '^Sig(Blk|Ign)' /proc/self/status");
	signal(SIGUSR1, SIG_DFL);
	assert_string_equal(said(&j), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(test_the_job_leads_a_session)
{
	struct job j;

	run(&j, "",
	    "read -r pid name state parent group session rest </proc/self/stat; "
	    "test $session = $$ && test $group = $$ && echo leads");
	assert_string_equal(said(&j), "leads\n");
}

TEST(test_limits_niceness_and_cpus_are_those_asked_for)
{
	int ours = getpriority(PRIO_PROCESS, 0); /* it is added to; 19 is the most */
	struct job j;
	cpu_set_t set;
	char wanted[64];

	snprintf(wanted, sizeof wanted, "2048\n524288\n77\n%d\n", ours + 5 < 19 ? ours + 5 : 19);
	run(&j, "--rlimit-fsize 1048576 --rlimit-as 536870912 --rlimit-nofile 77 --nice 5",
	    "ulimit -f; ulimit -v; ulimit -n; nice");
	assert_string_equal(said(&j), wanted); /* blocks of 512 bytes, kilobytes, files, niceness */
	CPU_ZERO(&set);
	assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
	if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		return;
	run(&j, "--cpus 1", "grep Cpus_allowed_list /proc/self/status");
	assert_string_equal(said(&j), "Cpus_allowed_list:\t1\n");
	run(&j, "--cpus 0-1", "grep Cpus_allowed_list /proc/self/status");
	assert_string_equal(said(&j), "Cpus_allowed_list:\t0-1\n");
}

/* A power cut must not find a job that ran and has no record: it would run twice. */
TEST(test_the_start_is_on_the_disk_before_the_job_is_let_go)
{
	const char *build = getenv("BUILD_DIR");
	char library[512], order[300], *text, *record, *folder, *go;
	struct job j = job_new();

	snprintf(library, sizeof library, "%s/tests/daemon/sync_order.so", build ? build : "build/plain");
	if (sanitized() || access(library, R_OK))
		skip(); /* a sanitizer's own library has to be the first to load */
	snprintf(order, sizeof order, "%s", beside(&j, ".order"));
	setenv("LD_PRELOAD", library, 1);
	setenv("POSTRIDER_ORDER", order, 1);
	begin(&j, "", "true");
	unsetenv("LD_PRELOAD");
	unsetenv("POSTRIDER_ORDER");
	listen_to(&j);
	end(&j);
	text = (char *)text_of(order);
	record = strstr(text, ".started\n");
	folder = record ? strstr(record, "fsync ") : NULL; /* which has its name */
	go = strstr(text, "go \n");
	if (!record || !folder || !go || folder > go)
		fail_msg("the order is:\n%s", text);
}

/* `postrider profile` measures a command without a record, and models learn from that. */
TEST(test_a_slow_disk_is_not_the_time_of_the_job)
{
	const char *build = getenv("BUILD_DIR");
	char library[512];
	struct job j;

	snprintf(library, sizeof library, "%s/tests/daemon/sync_order.so", build ? build : "build/plain");
	if (sanitized() || access(library, R_OK))
		skip();
	setenv("LD_PRELOAD", library, 1);
	setenv("POSTRIDER_SYNC_MS", "300", 1);
	start(&j, "", "true");
	unsetenv("LD_PRELOAD");
	unsetenv("POSTRIDER_SYNC_MS");
	end(&j);
	assert_true(j.exit.started_boot_ns - j.started.at_boot_ns >= INT64_C(600000000));
	assert_true(j.exit.ended_boot_ns - j.exit.started_boot_ns < INT64_C(600000000));
	assert_true(j.exit.run_s < 0.6);
}

static long long disk_bytes(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (long long)st.st_blocks * 512;
}

/* 24 MB in pieces, so that the supervisor looks in between; it says first what it says last. */
#define PRINTS_MUCH                                                                                          \
	"echo first; for i in 1 2 3 4 5 6; do head -c 4000000 /dev/zero | tr '\\0' x | fold -w 100; "        \
	"sleep 0.3; done; echo; echo last"

TEST(test_output_is_capped_and_the_job_goes_on)
{
	struct job j;
	char text[70000];
	const char *path;
	struct stat st;
	int fd;

	run(&j, "--max-output 1048576", PRINTS_MUCH);
	assert_int_equal(j.exit.exit_code, 0);
	path = beside(&j, "/stdout");
	if (disk_bytes(path) > 1048576)
		fail_msg("%lld bytes are kept", disk_bytes(path));
	assert_true(disk_bytes(path) > 500000);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 24000000); /* positions stay */
	assert_int_equal(pread(fd, text, 6, 0), 6);
	assert_memory_equal(text, "first\n", 6);
	assert_int_equal(pread(fd, text, 6, st.st_size - 6), 6);
	assert_memory_equal(text, "\nlast\n", 6);
	memset(text, 0, sizeof text);
	assert_true(pread(fd, text, sizeof text - 1, 524288) > 0);
	assert_non_null(strstr(text, "longer than 1 MB, max_output_mb"));
	close(fd);
	run(&j, "", PRINTS_MUCH);
	assert_true(disk_bytes(beside(&j, "/stdout")) > 24000000);
}

/* The systemd unit leaves root no right to write to files of others. */
TEST(test_root_of_the_service_caps_the_output_of_users)
{
	struct job j;

	if (geteuid()) {
		printf("skipped: needs root\n");
		skip();
	}
	chmod(support_temp_dir(), 0755);
	without_override = true;
	run(&j, "--uid 70001 --gid 70001 --max-output 1048576", PRINTS_MUCH);
	without_override = false;
	assert_int_equal(j.exit.exit_code, 0);
	if (disk_bytes(beside(&j, "/stdout")) > 1048576)
		fail_msg("%lld bytes are kept", disk_bytes(beside(&j, "/stdout")));
}

TEST(test_output_goes_through_a_terminal_where_that_is_asked_for)
{
	struct job j;

	run(&j, "", "test -t 1 || echo none; echo talk >&2");
	assert_string_equal(text_of(beside(&j, "/stdout")), "none\n");
	assert_string_equal(text_of(beside(&j, "/stderr")), "talk\n");
	run(&j, "--terminal",
	    "test -t 1 && echo one; echo talk >&2; (sleep 0.1; echo child) & printf 'a\\rb'; wait");
	assert_int_equal(j.exit.exit_code, 0);
	assert_string_equal(text_of(beside(&j, "/stdout")), "one\ntalk\na\rbchild\n");
	assert_string_equal(text_of(beside(&j, "/stderr")), "");
	/* More than a terminal holds, and nothing is lost at the end. */
	run(&j, "--terminal --max-output 1048576", "seq 1 40000");
	assert_int_equal(j.exit.exit_code, 0);
	assert_non_null(strstr(text_of(beside(&j, "/stdout")), "39999\n40000\n"));
	run(&j, "--terminal --max-time 0.2 --grace 0.1", "sleep 30 & sleep 30");
	assert_true(j.exit.timed_out);
}

/* A log that the job has changed for a link to a file of somebody else. */
TEST(test_capping_touches_no_other_file)
{
	struct job j;
	char script[800], other[300];

	j = job_new();
	snprintf(other, sizeof other, "%s", beside(&j, ".other"));
	snprintf(script, sizeof script,
		 "head -c 3000000 /dev/zero | tr '\\0' y >%s; rm stdout; ln -s %s stdout; sleep 0.6", other,
		 other);
	begin(&j, "--max-output 1048576", script);
	listen_to(&j);
	end(&j);
	assert_true(disk_bytes(other) >= 3000000);
}

static bool may_enter(uid_t uid, const char *dir)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setgroups(0, NULL) || setuid(uid) || access(dir, X_OK));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

TEST(test_root_gives_up_its_powers_for_the_user_of_the_job)
{
	struct job j;
	struct stat st;

	if (geteuid() != 0) {
		run(&j, "--uid 1", "true");
		assert_int_equal(j.code, SUPERVISOR_NOT_STARTED);
		assert_true(contains(j.report, "own user"));
		return;
	}
	chmod(support_temp_dir(), 0755);
	if (!may_enter(65534, support_temp_dir())) {
		print_message("skipped: the temporary folder lies where only root may go\n");
		return;
	}
	run(&j, "--uid 65534 --gid 65533", "id -u; id -g; id -G; test -r /etc/shadow || echo no");
	assert_string_equal(j.exit.reason, "");
	assert_string_equal(said(&j), "65534\n65533\n65533\nno\n");
	assert_int_equal(stat(j.dir, &st), 0);
	assert_true(st.st_uid == 65534 && st.st_gid == 65533);
}

/* ---- what keeps a job from running ---- */

static void does_not_run(const char *options, const char *want)
{
	struct job j;

	run(&j, options, NULL);
	assert_int_equal(j.code, SUPERVISOR_DONE);
	assert_false(j.exit.ran);
	assert_true(j.exit.started_ns == 0 && j.exit.ended_ns > 0);
	assert_int_equal(j.exit.exit_code, -1);
	assert_true(contains(j.exit.reason, want));
	assert_int_equal(strncmp(j.report, "failed ", 7), 0);
	assert_true(contains(j.report, want));
}

TEST(test_a_program_that_cannot_run_is_the_reason)
{
	char path[500], options[600];
	FILE *f;

	does_not_run("-- no-such-program-anywhere",
		     "no such program in /usr/local/bin:/usr/bin:/bin: no-such");
	does_not_run("-- /no/such/file", "no such file: /no/such/file");
	does_not_run("-- /etc/passwd", "not executable: /etc/passwd");
	does_not_run("-- /etc/passwd/x", "no such file: /etc/passwd/x");
	does_not_run("-- /no/such\nfile", "no such file: /no/such?file");
	snprintf(path, sizeof path, "%s/script", support_temp_dir());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("#!/no/such/interpreter\n", f);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
	snprintf(options, sizeof options, "-- %s", path);
	does_not_run(options, "interpreter");
	does_not_run("--work-dir /no/such -- true", "cannot enter /no/such");
	does_not_run("--rlimit-nofile 18446744073709551615 -- true", "open files");
}

/* The user of the job has as many processes as the limit allows. This leaves no trace, and the job runs
 * the next time. */
TEST(test_a_job_that_cannot_be_started_for_now_can_be_started_later)
{
	struct rlimit as_it_was, none;
	struct job j = job_new();
	int fd[2];
	pid_t other;
	char byte;

	if (geteuid()) {
		printf("skipped: needs root\n");
		skip();
	}
	chmod(support_temp_dir(), 0755);
	if (!may_enter(70002, support_temp_dir())) {
		print_message("skipped: the temporary folder lies where only root may go\n");
		skip();
	}
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	other = fork();
	assert_true(other >= 0);
	if (other == 0) {
		if (setuid(70002) == 0 && write(fd[1], "u", 1) == 1)
			pause();
		_exit(1);
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], &byte, 1), 1);
	close(fd[0]);
	assert_int_equal(getrlimit(RLIMIT_NPROC, &as_it_was), 0);
	none = as_it_was;
	none.rlim_cur = 0; /* the supervisor inherits it, and root may have more all the same */
	assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0);
	begin(&j, "--uid 70002 --gid 70002", "echo ran");
	assert_int_equal(setrlimit(RLIMIT_NPROC, &as_it_was), 0);
	listen_to(&j);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_TRY_AGAIN);
	assert_true(contains(j.report, "failed cannot run /bin/sh: Resource temporarily unavailable"));
	assert_int_not_equal(access(beside(&j, ".started"), F_OK), 0);
	assert_int_not_equal(access(beside(&j, ".exit"), F_OK), 0);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	begin(&j, "--uid 70002 --gid 70002", "echo ran");
	listen_to(&j);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_DONE);
	assert_string_equal(said(&j), "ran\n");
}

TEST(test_a_folder_or_log_that_is_something_else_is_refused)
{
	struct job j = job_new();
	FILE *f = fopen(j.dir, "w");

	assert_non_null(f);
	fclose(f);
	begin(&j, "", "true");
	listen_to(&j);
	end(&j);
	assert_true(!j.exit.ran && contains(j.exit.reason, "cannot give the folder"));

	j = job_new();
	assert_int_equal(symlink("/tmp", j.dir), 0);
	begin(&j, "", "true");
	listen_to(&j);
	end(&j);
	assert_true(!j.exit.ran && contains(j.exit.reason, "cannot give the folder"));

	j = job_new();
	assert_int_equal(mkdir(j.dir, 0700), 0);
	assert_int_equal(symlink("/dev/null", beside(&j, "/stdout")), 0);
	begin(&j, "", "true");
	listen_to(&j);
	end(&j);
	assert_true(!j.exit.ran && contains(j.exit.reason, "cannot write"));

	j = job_new();
	assert_int_equal(mkdir(j.dir, 0700), 0);
	assert_int_equal(mkfifo(beside(&j, "/stderr"), 0600), 0);
	begin(&j, "", "true");
	listen_to(&j);
	end(&j);
	assert_true(!j.exit.ran && contains(j.exit.reason, "/stderr")); /* and did not wait for a reader */

	if (geteuid() == 0) {
		j = job_new();
		assert_int_equal(mkdir(j.dir, 0700), 0);
		assert_int_equal(chown(j.dir, 12345, 12345), 0);
		begin(&j, "--uid 65534 --gid 65534", "true");
		listen_to(&j);
		end(&j);
		assert_true(!j.exit.ran && contains(j.exit.reason, "cannot give the folder"));
	}
}

TEST(test_a_log_is_appended_to)
{
	struct job j = job_new();
	FILE *f;

	assert_int_equal(mkdir(j.dir, 0700), 0);
	f = fopen(beside(&j, "/stdout"), "w");
	assert_non_null(f);
	fputs("before\n", f);
	fclose(f);
	begin(&j, "", "echo after");
	listen_to(&j);
	end(&j);
	assert_string_equal(said(&j), "before\nafter\n");
}

TEST(test_a_cgroup_that_cannot_be_made_is_noted_and_the_job_runs)
{
	struct job j;

	run(&j, "--cgroup /no/such/cgroup", "echo ran");
	assert_true(contains(j.report, "note no cgroup /no/such/cgroup"));
	assert_true(contains(j.report, "\nstarted\n"));
	assert_true(contains(j.exit.note, "no cgroup /no/such/cgroup"));
	assert_string_equal(said(&j), "ran\n");
}

TEST(test_a_cgroup_holds_the_job_is_killed_with_it_and_removed)
{
	struct job j = job_new();
	char path[400], options[500];
	FILE *f;

	/* A plain folder behaves like a cgroup as far as the supervisor writes to it. */
	snprintf(path, sizeof path, "%s.cgroup", j.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(options, sizeof options, "%s/cgroup.%s", path, i ? "kill" : "procs");
		f = fopen(options, "w");
		assert_non_null(f);
		fclose(f);
	}
	snprintf(options, sizeof options, "--cgroup %s", path);
	begin(&j, options, "echo $$");
	listen_to(&j);
	end(&j);
	assert_string_equal(j.exit.note, "");
	snprintf(options, sizeof options, "%s/cgroup.procs", path);
	assert_int_equal(atoi(text_of(options)), atoi(said(&j)));
	snprintf(options, sizeof options, "%s/cgroup.kill", path);
	assert_string_equal(text_of(options), "1");
	j = job_new();
	snprintf(path, sizeof path, "%s.cgroup", j.dir);
	snprintf(options, sizeof options, "--cgroup %s", path);
	begin(&j, options, "true");
	listen_to(&j);
	end(&j);
	assert_int_not_equal(access(path, F_OK), 0); /* made, of no use here, and removed */
}

/* A process that is traced stays until its tracer has looked at it, even if it was killed. */
TEST(test_processes_that_do_not_end_are_noted_beside_what_was_noted_before)
{
	struct job j = job_new();
	pid_t left;

	begin(&j, "--cgroup /no/such/cgroup", "sleep 60 & echo $!; sleep 0.5");
	listen_to(&j);
	wait_until_said(&j, "\n");
	left = atoi(said(&j));
	if (ptrace(PTRACE_SEIZE, left, NULL, NULL)) {
		end(&j);
		print_message("skipped: other processes cannot be traced here\n");
		skip();
	}
	end(&j);
	assert_int_equal(waitpid(left, NULL, __WALL), left);
	assert_true(contains(j.exit.note, "no cgroup /no/such/cgroup"));
	assert_true(contains(j.exit.note, "; processes of the job do not end"));
	assert_int_equal(j.exit.exit_code, 0);
}

/* ---- stopping ---- */

TEST(test_a_stop_of_the_daemon_is_told_from_other_signals)
{
	struct job j;

	start(&j, "", "exec sleep 60");
	stop(&j, 10000);
	end(&j);
	assert_true(j.exit.stopped && !j.exit.timed_out && j.exit.exit_signal == SIGTERM);
	start(&j, "", "exec sleep 60");
	kill(j.pid, SIGTERM);
	end(&j);
	assert_true(!j.exit.stopped && j.exit.exit_signal == SIGTERM);
}

TEST(test_a_deaf_job_is_killed_after_the_grace_that_was_sent)
{
	double from_s;
	struct job j;

	start(&j, "--grace 50", "trap '' TERM; echo deaf; while :; do sleep 0.05; done");
	wait_until_said(&j, "deaf");
	from_s = now_s();
	stop(&j, 300);
	end(&j);
	assert_true(j.exit.stopped && j.exit.exit_signal == SIGKILL);
	assert_true(now_s() - from_s >= 0.3 && now_s() - from_s < 8.0);
}

TEST(test_without_a_grace_in_the_request_that_of_the_command_line_counts)
{
	double from_s;
	struct job j;

	start(&j, "--grace 0.3", "trap '' TERM; echo deaf; while :; do sleep 0.05; done");
	wait_until_said(&j, "deaf");
	from_s = now_s();
	stop(&j, -1);
	end(&j);
	assert_true(j.exit.stopped && j.exit.exit_signal == SIGKILL);
	assert_true(now_s() - from_s >= 0.3 && now_s() - from_s < 8.0);
}

TEST(test_a_second_stop_does_not_give_more_time)
{
	double from_s;
	struct job j;

	start(&j, "", "trap '' TERM; echo deaf; while :; do sleep 0.05; done");
	wait_until_said(&j, "deaf");
	from_s = now_s();
	stop(&j, 400);
	nap(0.1);
	stop(&j, 60000);
	end(&j);
	assert_true(now_s() - from_s < 8.0);
}

TEST(test_a_job_may_end_well_after_a_stop)
{
	struct job j;

	start(&j, "", "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
	wait_until_said(&j, "ready");
	stop(&j, 10000);
	end(&j);
	assert_true(j.exit.stopped && j.exit.exit_code == 0);
	assert_true(contains(said(&j), "saved"));
}

TEST(test_all_processes_of_the_job_are_asked_to_end)
{
	struct job j;

	start(&j, "",
	      "trap 'wait; exit 0' TERM; (trap 'echo heard; exit 0' TERM; echo ready; "
	      "while :; do sleep 0.05; done) & wait; wait");
	wait_until_said(&j, "ready");
	stop(&j, 5000);
	end(&j);
	assert_true(contains(said(&j), "heard"));
}

TEST(test_a_job_that_is_suspended_can_be_stopped)
{
	double until_s = now_s() + PATIENCE_S;
	struct proc_process p = { 0 };
	struct job j;

	start(&j, "--grace 15", "kill -STOP $$; exec sleep 60");
	while (proc_process_read(j.started.job, &p) && p.state != 'T' && now_s() < until_s)
		nap(0.005);
	stop(&j, -1);
	end(&j);
	assert_int_equal(j.exit.exit_signal, SIGTERM); /* not the SIGKILL after the grace */
}

TEST(test_a_job_ends_when_its_time_is_over)
{
	struct job j;

	run(&j, "--max-time 0.3", "exec sleep 60");
	assert_true(j.exit.timed_out && !j.exit.stopped && j.exit.exit_signal == SIGTERM);
	assert_true(j.exit.run_s >= 0.3 && j.exit.run_s < 8.0);
	run(&j, "--max-time 0.2 --grace 0.3", "trap '' TERM; while :; do sleep 0.05; done");
	assert_true(j.exit.timed_out && j.exit.exit_signal == SIGKILL);
	assert_true(j.exit.run_s >= 0.5 && j.exit.run_s < 8.0);
	run(&j, "--max-time 30", "true");
	assert_false(j.exit.timed_out);
}

TEST(test_signals_of_a_terminal_do_not_end_the_supervisor)
{
	static const int number[] = { SIGINT, SIGHUP, SIGQUIT, SIGPIPE };
	struct job j;

	start(&j, "", "sleep 0.3; echo went on");
	for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
		kill(j.pid, number[i]);
	end(&j);
	assert_int_equal(j.code, SUPERVISOR_DONE);
	assert_string_equal(said(&j), "went on\n");
}

/* ---- what a job leaves behind ---- */

TEST(test_no_process_of_the_job_survives_it)
{
	struct job j;
	int pid[3] = { 0 };

	run(&j, "",
	    "sleep 61 & echo $!; setsid sleep 62 & echo $!; (setsid sh -c 'trap \"\" TERM; echo $$; sleep "
	    "63') & "
	    "sleep 0.3; exit 4");
	assert_int_equal(j.exit.exit_code, 4);
	assert_string_equal(j.exit.note, "");
	assert_int_equal(sscanf(said(&j), "%d\n%d\n%d\n", &pid[0], &pid[1], &pid[2]), 3);
	for (int i = 0; i < 3; i++)
		assert_false(lives(pid[i]));
}

TEST(test_orphans_that_end_do_not_end_the_job)
{
	struct job j;

	run(&j, "", "(sleep 0.05 &) ; (sleep 0.1 &) ; sleep 0.4; echo last; exit 5");
	assert_string_equal(said(&j), "last\n");
	assert_int_equal(j.exit.exit_code, 5);
	assert_true(j.exit.run_s >= 0.4);
}

/* Slurm signals all processes of a job at its time limit, and reaches the supervisor last. */
TEST(test_a_stop_that_comes_just_after_the_end_is_noted_under_slurm)
{
	static const char late[] = "(sleep 0.03; kill $PPID) & exit 0";
	struct job j;

	assert_int_equal(setenv("SLURM_JOB_ID", "7", 1), 0);
	run(&j, "", late);
	assert_true(!j.exit.stopped && j.exit.exit_code == 0);
	assert_true(contains(j.exit.note, NOTE_TERMINATED));
	run(&j, "", "exit 0");
	assert_string_equal(j.exit.note, "");
	unsetenv("SLURM_JOB_ID");
}

TEST(test_the_job_dies_with_its_supervisor)
{
	double until_s = now_s() + PATIENCE_S;
	struct job j;
	int status;

	start(&j, "", "exec sleep 60");
	kill(j.pid, SIGKILL);
	assert_int_equal(waitpid(j.pid, &status, 0), j.pid);
	while (lives(j.started.job) && now_s() < until_s)
		nap(0.005);
	assert_false(lives(j.started.job));
	assert_false(proc_lives(j.started.job, j.started.job_ticks));
	assert_int_equal(job_exit_read(j.dir, "", &j.exit, NULL), -ERR_NOTFOUND);
}

/* ---- identity.h ---- */

TEST(test_a_process_is_known_by_its_start_time)
{
	struct proc_process p;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(proc_process_read(child, &p));
	assert_true(proc_lives(child, p.start_ticks));
	assert_false(proc_lives(child, p.start_ticks + 1));
	assert_false(proc_lives(0, p.start_ticks));
	kill(child, SIGKILL);
	while (proc_process_read(child, &p) && p.state != 'Z')
		nap(0.001);
	assert_false(proc_lives(child, p.start_ticks)); /* a zombie does not live */
	waitpid(child, NULL, 0);
}

/* A session of two: its leader and a child, both with this word in their environment. */
static pid_t session_new(const char *mark, pid_t *out_member)
{
	int fd[2];
	pid_t leader;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	leader = fork();
	assert_true(leader >= 0);
	if (leader == 0) {
		char *env[] = { (char *)"OTHER=1", (char *)mark, NULL };
		char *word[] = { (char *)"sleep", (char *)"60", NULL };
		pid_t member;

		setsid();
		member = fork();
		if (member > 0 && write(fd[1], &member, sizeof member) < 0)
			_exit(1);
		execve("/bin/sleep", word, env);
		_exit(1);
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], out_member, sizeof *out_member), sizeof *out_member);
	while (read(fd[0], fd, 1) > 0) /* both have become sleep: the pipe is closed */
		;
	close(fd[0]);
	return leader;
}

static bool dies(pid_t pid)
{
	double until_s = now_s() + PATIENCE_S;

	while (lives(pid) && now_s() < until_s)
		nap(0.002);
	return !lives(pid);
}

TEST(test_only_the_session_that_is_meant_is_killed)
{
	struct proc_process p;
	pid_t member, leader = session_new("POSTRIDER_JOB=7", &member);

	assert_true(proc_process_read(leader, &p));
	proc_kill_session(leader, p.start_ticks + 1, NULL); /* a leader of another time */
	proc_kill_session(leader, p.start_ticks - 1, NULL); /* the number was given again */
	proc_kill_session(leader, p.start_ticks, "POSTRIDER_JOB=8");
	proc_kill_session(leader, p.start_ticks, "POSTRIDER_JOB="); /* a word counts as a whole */
	proc_kill_session(1, p.start_ticks, NULL);
	proc_kill_session(0, p.start_ticks, NULL);
	nap(0.05);
	assert_true(lives(leader) && lives(member));
	proc_kill_session(leader, p.start_ticks, "POSTRIDER_JOB=7");
	assert_true(dies(leader) && dies(member));
	waitpid(leader, NULL, 0);
	leader = session_new("POSTRIDER_JOB=7", &member);
	assert_true(proc_process_read(leader, &p));
	proc_kill_session(leader, p.start_ticks, NULL);
	assert_true(dies(leader) && dies(member));
	waitpid(leader, NULL, 0);
}

/* A grandchild in a session of its own traces the leader: a leader that is killed then stays a zombie for its
 * tracer, and is not seen to end. All of the tree is killed, again and again. */
TEST(test_a_grandchild_that_traces_its_leader_does_not_keep_the_job_alive)
{
	struct job j;
	int64_t began_ns = clock_boot_ns();

	if (access("/usr/bin/python3", X_OK))
		skip();
	run(&j, "--max-time=1 --grace=0.2",
	    "leader=$$; setsid /usr/bin/python3 -c \"import ctypes, signal, time\n"
	    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
	    "libc = ctypes.CDLL(None)\n"
	    "open('traced', 'w').write(str(libc.ptrace(0x4206, $leader, 0, 0)))\n"
	    "time.sleep(60)\" & exec sleep 60");
	assert_string_equal(text_of(beside(&j, "/traced")), "0");
	assert_true(j.exit.timed_out && j.exit.exit_signal != 0);
	assert_true(clock_boot_ns() - began_ns < INT64_C(20000000000));
	assert_string_equal(j.exit.note, "");
}
