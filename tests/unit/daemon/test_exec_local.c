/* The local executor, with real processes: what runs, how it ends, and what is told of it. Restarts of the
 * daemon are in test_exec_adopt.c, the thread that starts supervisors in test_exec_spawn.c. */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <sys/resource.h>

#include "scheduler/process/record_format.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/test_exec_harness.h"

#define SECRET "SECRET_OF_THE_DAEMON"

static int set_up(void **state)
{
	*state = world_new("run");
	return 0;
}

static int tear_down(void **state)
{
	io_fail_at(0, 0);
	mem_fail_at(0, false);
	world_free(*state);
	return 0;
}

/* ---- how it ends ---- */

TEST_WITH(test_exit_code_is_told, set_up, tear_down)
{
	static const int code[] = { 0, 1, 7, 127, 255 };
	struct world *w = *state;

	for (size_t i = 0; i < sizeof code / sizeof code[0]; i++) {
		char script[32];
		int64_t before_ns = real_ns();
		struct told *t;

		snprintf(script, sizeof script, "exit %d", code[i]);
		t = run_script(w, script);
		assert_int_equal(t->n_started, 1);
		assert_int_equal(t->n_finished, 1);
		assert_false(t->outcome.lost);
		assert_int_equal(t->outcome.exit_code, code[i]);
		assert_int_equal(t->outcome.exit_signal, 0);
		assert_true(t->started_ns >= before_ns && t->started_ns <= real_ns());
		assert_true(t->outcome.started_ns == t->started_ns);
		assert_true(t->outcome.ended_ns >= t->started_ns);
		assert_true(t->outcome.run_s >= 0.0 && t->outcome.run_s < PATIENCE_S);
		assert_true(isnan(t->outcome.accuracy));
		assert_int_equal(t->outcome.reason[0] == '\0', code[i] == 0);
	}
	assert_int_equal(w->ops->running(w->self), 0);
}

TEST_WITH(test_signal_that_ended_it_is_told, set_up, tear_down)
{
	struct told *t = run_script(*state, "kill -SEGV $$");

	assert_false(t->outcome.lost);
	assert_int_equal(t->outcome.exit_code, -1);
	assert_int_equal(t->outcome.exit_signal, SIGSEGV);
	assert_non_null(strstr(t->outcome.reason, "signal 11"));
}

TEST_WITH(test_run_time_and_cpu_time_are_measured, set_up, tear_down)
{
	struct told *t = run_script(*state, "sleep 0.3; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");

	assert_true(t->outcome.run_s >= 0.3 && t->outcome.run_s < PATIENCE_S);
	assert_true(t->outcome.cpu_s > 0.001 && t->outcome.cpu_s < t->outcome.run_s);
	assert_true(t->outcome.max_rss_mb > 0.1 && t->outcome.max_rss_mb < 1000.0);
}

/* It never ran: no start is told, and the reason names the file. */
static void expect_not_run(struct world *w, char *program, const char *reason)
{
	static uint64_t id = 1;
	struct job_spec s = spec_of(jobs_dir(), id++, "");
	struct err err = { 0 };
	struct told *t;

	s.argv[0] = program;
	s.argv[1] = NULL;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, w->n_finished + 1);
	t = told_of(w, s.job.id);
	assert_int_equal(t->n_started, 0);
	assert_false(t->outcome.lost);
	assert_int_equal(t->outcome.exit_code, -1);
	assert_int_equal(t->outcome.exit_signal, 0);
	assert_int_equal(t->outcome.started_ns, 0);
	assert_true(isnan(t->outcome.run_s));
	if (!strstr(t->outcome.reason, reason))
		fail_msg("'%s' does not say '%s'", t->outcome.reason, reason);
}

TEST_WITH(test_program_that_cannot_run_gives_the_reason, set_up, tear_down)
{
	char file[600], script[600];

	snprintf(file, sizeof file, "%s/data", support_temp_dir());
	put_text(file, "no program\n", 11);
	snprintf(script, sizeof script, "%s/script", support_temp_dir());
	put_text(script, "#!/nowhere/interpreter\n", 23);
	assert_int_equal(chmod(script, 0755), 0);
	expect_not_run(*state, "build/no-such-program", "no such file: build/no-such-program");
	expect_not_run(*state, "no-such-program", "no such program in ");
	expect_not_run(*state, file, "not executable: ");
	expect_not_run(*state, script, "interpreter");
	expect_not_run(*state, "/etc", "not executable: /etc");
}

TEST_WITH(test_folder_that_cannot_be_made_gives_the_reason, set_up, tear_down)
{
	struct world *w = *state;
	struct job_spec s = spec_of("/proc/nowhere", 5, "true");
	const char *jobs = jobs_dir();
	struct err err = { 0 };

	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	assert_int_equal(told_of(w, 5)->n_started, 0);
	assert_false(told_of(w, 5)->outcome.lost);
	assert_non_null(strstr(told_of(w, 5)->outcome.reason, "/proc/nowhere/5"));

	put_text(in_job(jobs, 6, ""), "a file in its place", 19);
	start_script(w, jobs, 6, "true");
	wait_finished(w, 2);
	assert_int_equal(told_of(w, 6)->n_started, 0);
	assert_non_null(strstr(told_of(w, 6)->outcome.reason, "/6"));
}

/* ---- what it runs in ---- */

TEST_WITH(test_output_is_kept_apart_in_the_folder, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct stat st;

	start_script(w, jobs, 3, "echo out; echo err >&2; cat");
	wait_finished(w, 1);
	assert_string_equal(file_text(in_job(jobs, 3, "/stdout")), "out\n");
	assert_string_equal(file_text(in_job(jobs, 3, "/stderr")), "err\n");
	assert_int_equal(stat(in_job(jobs, 3, ""), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, getuid());
}

TEST_WITH(test_environment_is_clean_and_has_the_types_words, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct job_spec s = spec_of(jobs, 4, "pwd; env | sort");
	char *env[] = { "OMP_NUM_THREADS=3", "LANG=C" }, want[2000], *got;
	struct job_type type = { .env = env, .n_env = 2 };
	struct err err = { 0 };

	s.job.type = &type;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	got = file_text(in_job(jobs, 4, "/stdout"));
	snprintf(want, sizeof want, "%s\nHOME=", s.dir);
	assert_memory_equal(got, want, strlen(want));
	snprintf(want, sizeof want,
		 "\nLANG=C\nOMP_NUM_THREADS=3\nPATH=/usr/local/bin:/usr/bin:/bin\n"
		 "POSTRIDER_DIR=%s\nPOSTRIDER_JOB=4\nPWD=%s\n",
		 s.dir, s.dir);
	assert_non_null(strstr(got, want));
	assert_non_null(getenv(SECRET)); /* had by the executor, and by the supervisor */
	assert_null(strstr(got, SECRET));
}

/* How many descriptors a process has, and how many of them lead nowhere. */
static void look_at_descriptors(const char *folder, int *out_n, int *out_null)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	assert_non_null(d);
	*out_n = *out_null = 0;
	while ((e = readdir(d))) {
		char link[600], to[64];
		ssize_t len;

		snprintf(link, sizeof link, "%s/%s", folder, e->d_name);
		len = readlink(link, to, sizeof to - 1);
		if (len < 0)
			continue;
		to[len] = '\0';
		++*out_n;
		*out_null += strcmp(to, "/dev/null") == 0;
	}
	closedir(d);
}

/* Soon after the start a supervisor has three streams that lead nowhere, and nothing else. */
static void expect_no_descriptors(const char *jobs, uint64_t id)
{
	char folder[64];
	int n = 0, null = 0;

	snprintf(
		folder, sizeof folder, "/proc/%d/fd",
		atoi(strstr(file_text(in_job(jobs, id, ".started")), "supervisor ") + strlen("supervisor ")));
	for (int i = 0; i < 200 && !(n == 3 && null == 3); i++) {
		usleep(2000);
		look_at_descriptors(folder, &n, &null);
	}
	assert_int_equal(n, 3);
	assert_int_equal(null, 3);
}

TEST_WITH(test_job_inherits_nothing_of_the_daemon, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	int pid, leak = open("/dev/zero", O_RDONLY); /* not close-on-exec, as a library might do it */
	char want[300];
	sigset_t blocked, before;

	assert_true(leak > 2);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	signal(SIGUSR2, SIG_IGN);
	start_script(w, jobs, 5,
		     "umask; ls /proc/self/fd | wc -l; readlink /proc/self/fd/0; "
		     "grep -E 'SigBlk|SigIgn' /proc/self/status; cut -d' ' -f5,6 /proc/$$/stat; echo $$ $$; "
		     "sleep 0.3");
	wait_started(w, 1);
	expect_no_descriptors(jobs, 5);
	wait_finished(w, 1);
	pid = (int)told_of(w, 5)->pid;
	/* 0, 1, 2 and the one that ls lists with. */
	snprintf(want, sizeof want,
		 "0077\n4\n/dev/null\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n%d %d\n%d %d\n",
		 pid, pid, pid, pid);
	assert_string_equal(file_text(in_job(jobs, 5, "/stdout")), want);
	signal(SIGUSR2, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(leak);
}

TEST_WITH(test_limits_of_the_type_hold, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct job_spec s = spec_of(jobs, 6, "ulimit -n; ulimit -v; ulimit -f; nice; pwd");
	struct job_type type = {
		.max_file_mb = 3, .max_address_mb = 2000, .max_open_files = 37, .nice = 5, .work_dir = "/"
	};
	struct err err = { 0 };
	char want[100];
	int ours = getpriority(PRIO_PROCESS, 0);

	s.job.type = &type;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	snprintf(want, sizeof want, "37\n2048000\n6144\n%d\n/\n", ours + 5 < 19 ? ours + 5 : 19);
	assert_string_equal(file_text(in_job(jobs, 6, "/stdout")), want);
}

TEST_WITH(test_pinned_jobs_get_cpus_of_their_own, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	cpu_set_t all;
	int n;

	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	n = CPU_COUNT(&all);
	if (n < 2 || n > 64) {
		print_message("skipped: needs 2 to 64 cpus\n");
		skip();
	}
	/* One more than there are: the last has to do without, and after an end there is room again. */
	for (int i = 0; i <= n + 1; i++) {
		struct job_spec s = spec_of(jobs, (uint64_t)(i + 1),
					    "grep Cpus_allowed_list /proc/self/status; sleep 0.4");
		struct err err = { 0 };

		s.job.pin = true;
		if (i == n + 1)
			wait_finished(w, (size_t)n + 1);
		assert_int_equal(start_spec(w, &s, &err), 0);
	}
	wait_finished(w, (size_t)n + 2);
	for (int i = 1; i < n; i++)
		assert_string_not_equal(file_text(in_job(jobs, (uint64_t)i, "/stdout")),
					file_text(in_job(jobs, (uint64_t)i + 1, "/stdout")));
	assert_non_null(strpbrk(file_text(in_job(jobs, (uint64_t)n + 1, "/stdout")), ",-"));
	assert_string_equal(file_text(in_job(jobs, (uint64_t)n + 2, "/stdout")),
			    file_text(in_job(jobs, 1, "/stdout")));
}

TEST_WITH(test_jobs_of_others_need_root, set_up, tear_down)
{
	struct world *w = *state;
	struct job_spec s = spec_of(jobs_dir(), 7, "id -u");
	struct err err = { 0 };

	if (geteuid() == 0) {
		if (seteuid(65534))
			fail_msg("%s", strerror(errno));
		s.job.uid = 0;
		assert_int_equal(start_spec(w, &s, &err), -ERR_PERM);
		assert_int_equal(seteuid(0), 0);
	} else {
		s.job.uid = 0;
		assert_int_equal(start_spec(w, &s, &err), -ERR_PERM);
	}
	assert_non_null(strstr(err.text, "jobs run as the daemon's own user only"));
	assert_int_equal(w->ops->running(w->self), 0);
}

TEST_WITH(test_root_runs_jobs_as_their_user, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct job_spec s = spec_of(
		jobs, 8, "id -u; id -g; id -G; echo $HOME; echo x > file; cat ../8.started ../8.exit");
	struct err err = { 0 };
	struct stat st;

	if (geteuid() != 0) {
		print_message("skipped: needs root\n");
		skip();
	}
	s.job.uid = 65534;
	s.job.gid = 65534;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	/* Its records it can neither read nor replace. */
	assert_string_equal(file_text(in_job(jobs, 8, "/stdout")), "65534\n65534\n65534\n/nonexistent\n");
	assert_int_equal(told_of(w, 8)->outcome.exit_code, 1);
	for (int i = 0; i < 3; i++) {
		static const char *const name[] = { "", "/stdout", "/file" };

		assert_int_equal(stat(in_job(jobs, 8, name[i]), &st), 0);
		assert_int_equal(st.st_uid, 65534);
		assert_int_equal(st.st_gid, 65534);
	}
	assert_int_equal(stat(in_job(jobs, 8, ".exit"), &st), 0);
	assert_int_equal(st.st_uid, 0);
}

/* A link that the user left in place of a log must not lead root's pen elsewhere. */
TEST_WITH(test_log_that_is_a_link_is_refused, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	char victim[600];

	snprintf(victim, sizeof victim, "%s/victim", jobs);
	put_text(victim, "whole\n", 6);
	assert_int_equal(mkdir(in_job(jobs, 9, ""), 0750), 0);
	assert_int_equal(symlink(victim, in_job(jobs, 9, "/stdout")), 0);
	start_script(w, jobs, 9, "echo broken");
	assert_int_equal(mkdir(in_job(jobs, 10, ""), 0750), 0);
	assert_int_equal(mkfifo(in_job(jobs, 10, "/stdout"), 0600), 0);
	start_script(w, jobs, 10, "echo broken");
	wait_finished(w, 2);
	assert_int_equal(told_of(w, 9)->n_started, 0);
	assert_non_null(strstr(told_of(w, 9)->outcome.reason, "stdout"));
	assert_int_equal(told_of(w, 10)->n_started, 0);
	assert_string_equal(file_text(victim), "whole\n");
}

TEST_WITH(test_cgroup_is_made_and_removed, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir(), *group = "/sys/fs/cgroup/unified/postrider-test";
	struct job_spec s = spec_of(jobs, 11, "grep ^0: /proc/self/cgroup");
	struct err err = { 0 };

	if (mkdir(group, 0755)) {
		group = "/sys/fs/cgroup/postrider-test";
		if (access("/sys/fs/cgroup/cgroup.procs", W_OK) || mkdir(group, 0755)) {
			print_message("skipped: no cgroup v2 that we may write\n");
			skip();
		}
	}
	s.job.cgroup = group;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	assert_non_null(strstr(file_text(in_job(jobs, 11, "/stdout")), "postrider-test/job-11\n"));
	assert_int_equal(rmdir(group), 0); /* so job-11 is gone */
}

TEST_WITH(test_missing_cgroup_is_noted_and_does_no_harm, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct job_spec s = spec_of(jobs, 12, "exit 3");
	struct err err = { 0 };

	s.job.cgroup = "/nowhere";
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	assert_int_equal(told_of(w, 12)->outcome.exit_code, 3);
	assert_non_null(strstr(file_text(in_job(jobs, 12, ".exit")), "note no cgroup /nowhere/job-12: "));
}

/* ---- being stopped ---- */

TEST_WITH(test_stop_ends_a_job_that_listens, set_up, tear_down)
{
	struct world *w = *state;

	start_script(w, jobs_dir(), 13, "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done");
	wait_started(w, 1);
	turn(w, 0.3);
	assert_int_equal(stop_job(w, 13, 20.0), 0);
	assert_int_equal(w->ops->running(w->self), 1);
	wait_finished(w, 1);
	assert_int_equal(told_of(w, 13)->outcome.exit_code, 9);
	assert_false(told_of(w, 13)->outcome.timed_out);
	assert_true(told_of(w, 13)->outcome.run_s < 10.0);
	assert_string_equal(told_of(w, 13)->outcome.reason, "stopped on request");
	assert_true(told_of(w, 13)->outcome.stopped);
	assert_int_equal(stop_job(w, 13, 1.0), -ERR_NOTFOUND);
}

/* The job, its child and a grandchild in a session of its own all turn a deaf ear. */
TEST_WITH(test_stop_kills_a_deaf_family_after_the_grace, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	double from_s;
	pid_t escaped, child;

	start_script(w, jobs, 14,
		     "trap '' TERM; setsid sh -c 'echo $$ > escaped; while :; do sleep 1; done' & "
		     "sh -c 'echo $$ > child; while :; do sleep 1; done' & while :; do sleep 1; done");
	wait_started(w, 1);
	escaped = pid_in_file(in_job(jobs, 14, "/escaped"));
	child = pid_in_file(in_job(jobs, 14, "/child"));
	from_s = now_s();
	assert_int_equal(stop_job(w, 14, 0.25), 0);
	wait_finished(w, 1);
	assert_true(now_s() - from_s >= 0.25 && now_s() - from_s < 5.0);
	assert_int_equal(told_of(w, 14)->outcome.exit_signal, SIGKILL);
	assert_true(is_dead(escaped));
	assert_true(is_dead(child));
	assert_true(is_dead(told_of(w, 14)->pid));
}

TEST_WITH(test_stop_right_after_start_is_not_missed, set_up, tear_down)
{
	struct world *w = *state;

	for (uint64_t id = 20; id < 30; id++) {
		start_script(w, jobs_dir(), id, "sleep 60");
		if (id % 2)
			turn(w, 0.002);
		assert_int_equal(stop_job(w, id, 5.0), 0);
	}
	wait_finished(w, 10);
	for (uint64_t id = 20; id < 30; id++) {
		const struct exec_outcome *o = &told_of(w, id)->outcome;

		assert_true(o->stopped);
		assert_false(o->lost);
		assert_int_equal(o->exit_signal, o->started_ns ? SIGTERM : 0); /* else it was caught before */
		assert_int_equal(o->exit_code, -1);
	}
}

/* Whoever shuts the machine down, or a mistaken user: the job ends as nicely, but nobody cancelled it. */
TEST_WITH(test_sigterm_of_a_stranger_is_no_stop, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	start_script(w, jobs, 18, "exec sleep 60");
	wait_started(w, 1);
	assert_int_equal(kill(supervisor_of(jobs, 18), SIGTERM), 0);
	wait_finished(w, 1);
	assert_false(told_of(w, 18)->outcome.stopped);
	assert_int_equal(told_of(w, 18)->outcome.exit_signal, SIGTERM);
	assert_non_null(strstr(told_of(w, 18)->outcome.reason, "ended by signal 15"));
	assert_non_null(strstr(file_text(in_job(jobs, 18, ".exit")), "\nstopped 0\n"));
	assert_non_null(strstr(file_text(in_job(jobs, 18, ".exit")), "\nnote " NOTE_TERMINATED "\n"));
}

TEST_WITH(test_stopped_job_that_ends_well_is_stopped_all_the_same, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	start_script(w, jobs, 19, "trap 'exit 0' TERM; echo $$ > ready; while :; do sleep 0.05; done");
	pid_in_file(in_job(jobs, 19, "/ready"));
	assert_int_equal(stop_job(w, 19, 20.0), 0);
	wait_finished(w, 1);
	assert_true(told_of(w, 19)->outcome.stopped);
	assert_int_equal(told_of(w, 19)->outcome.exit_code, 0);
	assert_string_equal(told_of(w, 19)->outcome.reason, "stopped on request");
}

TEST_WITH(test_longest_time_is_enforced, set_up, tear_down)
{
	struct world *w = *state;
	struct job_spec s = spec_of(jobs_dir(), 15, "trap '' TERM; while :; do sleep 0.1; done");
	struct err err = { 0 };
	struct told *t;

	s.job.max_time_s = 0.4;
	s.job.kill_grace_s = 0.2;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	t = told_of(w, 15);
	assert_true(t->outcome.timed_out);
	assert_false(t->outcome.stopped);
	assert_int_equal(t->outcome.exit_signal, SIGKILL);
	assert_true(t->outcome.run_s >= 0.6 && t->outcome.run_s < 5.0);
	assert_string_equal(t->outcome.reason, "stopped: it ran longer than 400 ms");
}

TEST_WITH(test_what_outlives_the_job_is_killed, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	pid_t left;

	start_script(
		w, jobs, 16,
		"setsid sh -c 'echo $$ > left; sleep 60' & while [ ! -s left ]; do sleep 0.01; done; exit 4");
	wait_finished(w, 1);
	left = pid_in_file(in_job(jobs, 16, "/left"));
	assert_int_equal(told_of(w, 16)->outcome.exit_code, 4);
	assert_true(is_dead(left));
}

/* ---- progress ---- */

TEST_WITH(test_progress_and_accuracy_are_read_from_the_output, set_up, tear_down)
{
	struct world *w = *state;
	struct job_spec s =
		spec_of(jobs_dir(), 17,
			"echo starting; echo '{\"at\":{\"epoch\":1},\"test\":{\"top1\":0.37}}'; sleep 1.3; "
			"echo '{\"at\":{\"epoch\":2},\"test\":{\"top1\":0.52}}'; "
			"echo '{\"at\":{\"epoch\":3}}'; printf '{\"test\":{\"top1\":0.625}}'");
	struct job_type type = { .result = { .accuracy = "test.top1", .epoch = "at.epoch" } };
	struct err err = { 0 };
	struct told *t;

	s.job.type = &type;
	s.job.epochs = 3;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 1);
	t = told_of(w, 17);
	assert_int_equal(t->n_progress, 2); /* the second and the third epoch came within a moment */
	assert_true(t->progress[0].epoch == 1.0 && t->progress[0].accuracy == 0.37 &&
		    t->progress[0].epochs == 3.0);
	assert_true(t->progress[0].elapsed_s >= 0.0 && t->progress[0].elapsed_s < 1.0);
	assert_true(t->progress[1].epoch == 3.0 && isnan(t->progress[1].accuracy));
	assert_true(t->progress[1].elapsed_s >= 1.25 && t->progress[1].elapsed_s <= t->outcome.run_s);
	assert_true(t->outcome.accuracy == 0.625);
}

TEST_WITH(test_progress_is_told_once_a_second_at_most, set_up, tear_down)
{
	struct told *t = run_script(*state,
				    "i=0; while [ $i -lt 30 ]; do i=$((i+1)); "
				    "echo \"{\\\"epoch\\\":$i,\\\"accuracy\\\":0.$i}\"; sleep 0.05; done");

	assert_in_range(t->n_progress, 2, 1 + (unsigned)(t->outcome.run_s + 1.0));
	assert_true(t->progress[t->n_progress - 1].epoch == 30.0); /* the last one is told in any case */
	assert_true(t->outcome.accuracy == 0.30);
}

/* ---- under pressure ---- */

TEST_WITH(test_many_jobs_at_once_leave_nothing_open, set_up, tear_down)
{
	enum { JOBS = 200 };
	struct world *w = *state;
	const char *jobs = jobs_dir();
	size_t before = count_descriptors();

	for (uint64_t id = 1; id <= JOBS; id++) {
		char script[100];

		snprintf(script, sizeof script, "echo '{\"accuracy\":0.%03d}'; exit %d", (int)id,
			 (int)(id % 5));
		start_script(w, jobs, id, script);
	}
	wait_finished(w, JOBS);
	assert_int_equal(w->ops->running(w->self), 0);
	assert_int_equal(count_descriptors(), before);
	for (uint64_t id = 1; id <= JOBS; id++) {
		struct told *t = told_of(w, id);

		assert_int_equal(t->n_started, 1);
		assert_int_equal(t->n_finished, 1);
		assert_int_equal(t->outcome.exit_code, id % 5);
		assert_true(fabs(t->outcome.accuracy - (double)id / 1000.0) < 1e-12);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombies either */
}

/* Any single allocation may fail: the job is refused and nothing runs, or it runs and is told of as ever. */
TEST_WITH(test_start_survives_every_failing_allocation, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	size_t before = count_descriptors(), begun = 0;
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		struct job_spec s = spec_of(jobs, k, "exit 2");
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = start_spec(w, &s, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		if (rc) {
			assert_int_equal(rc, -ERR_NOMEM);
			assert_true(failed);
		} else {
			begun++;
		}
		assert_true(k < 100);
	}
	assert_true(begun >= 1);
	wait_finished(w, begun);
	for (size_t i = 0; i < w->n_told; i++)
		assert_int_equal(w->told[i].outcome.exit_code, 2);
	assert_int_equal(count_descriptors(), before);
}

TEST_WITH(test_record_that_cannot_be_read_at_first_is_read_later, set_up, tear_down)
{
	struct world *w = *state;
	size_t failures = 0;

	for (unsigned long k = 1; k <= 6; k++) {
		start_script(w, jobs_dir(), 40 + k, "exit 6");
		io_fail_at(k, EMFILE);
		wait_finished(w, k);
		failures += io_failed();
		io_fail_at(0, 0);
		assert_false(told_of(w, 40 + k)->outcome.lost);
		assert_int_equal(told_of(w, 40 + k)->outcome.exit_code, 6);
		assert_int_equal(told_of(w, 40 + k)->n_started, 1);
	}
	assert_true(failures >= 2); /* the start's record and the end's */
}

TEST_WITH(test_start_without_descriptors_is_refused, set_up, tear_down)
{
	struct world *w = *state;
	struct job_spec s = spec_of(jobs_dir(), 50, "exit 5");
	struct rlimit before, few;
	struct err err = { 0 };
	int fd[200], n = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 200;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < 200 && (fd[n] = dup(0)) >= 0)
		n++;
	assert_true(n < 200);
	assert_int_equal(start_spec(w, &s, &err), -ERR_BUSY); /* try again */
	assert_non_null(strstr(err.text, "pipe"));
	/* Four will do for the pipe, on its way to numbers above 2, but what is read later waits for room. */
	for (int i = 0; i < 4; i++)
		close(fd[--n]);
	assert_int_equal(start_spec(w, &s, &err), 0);
	while ((fd[n] = dup(0)) >= 0)
		n++;
	turn(w, 0.5);
	while (n > 0)
		close(fd[--n]);
	wait_finished(w, 1);
	assert_false(told_of(w, 50)->outcome.lost);
	assert_int_equal(told_of(w, 50)->outcome.exit_code, 5);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_WITH(test_same_job_twice_is_refused, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct job_spec s = spec_of(jobs, 51, "sleep 0.2");
	struct err err = { 0 };

	assert_int_equal(start_spec(w, &s, &err), 0);
	assert_int_equal(start_spec(w, &s, &err), -ERR_ARG);
	s.argv[0] = NULL;
	s.job.id = 52;
	assert_int_equal(start_spec(w, &s, &err), -ERR_ARG);
	s = spec_of("relative/path", 53, "true");
	assert_int_equal(start_spec(w, &s, &err), -ERR_ARG);
	s = spec_of(jobs, 54, "true");
	s.job.kill_grace_s = NAN;
	assert_int_equal(start_spec(w, &s, &err), -ERR_ARG);
	assert_int_equal(stop_job(w, 51, NAN), -ERR_ARG);
	wait_finished(w, 1);
}

/* The sink may start the next job when it hears of an end. */
struct chain {
	struct world *w;
	const char *jobs;
	int left;
};
static struct chain chain;

static void on_finished_start_next(void *owner, const struct exec_outcome *o)
{
	(void)o;
	((struct world *)owner)->n_finished++;
	if (chain.left-- > 0) {
		struct job_spec s = spec_of(chain.jobs, (uint64_t)chain.left + 1, "true");
		struct err err = { 0 };

		assert_int_equal(start_spec(chain.w, &s, &err), 0);
	}
}

TEST_WITH(test_sink_may_start_jobs, set_up, tear_down)
{
	struct world *w = *state;
	struct executor_sink sink = {
		.owner = w, .started = on_started, .progress = on_progress, .finished = on_finished_start_next
	};
	struct err err = { 0 };

	w->ops->destroy(w->self);
	assert_int_equal(w->ops->create(w->base, &sink, &w->self, &err), 0);
	chain = (struct chain){ .w = w, .jobs = jobs_dir(), .left = 20 };
	for (uint64_t id = 101; id <= 103; id++)
		start_script(w, chain.jobs, id, "true");
	wait_finished(w, 23);
	assert_int_equal(w->ops->running(w->self), 0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Not a claim about a loaded machine: only that starting does not wait for a disk or a process. */
TEST_WITH(test_start_does_not_hold_up_the_loop, set_up, tear_down)
{
	enum { N = 41 };
	struct world *w = *state;
	const char *jobs = jobs_dir();
	double call_s[N], exec_s[N];

	for (int i = 0; i < N; i++) {
		char script[600];
		double from_s = now_s();
		struct timespec t;

		/* The start of the command, by its own first act. */
		snprintf(script, sizeof script, "exec cut -d' ' -f1 /proc/uptime");
		clock_gettime(CLOCK_REALTIME, &t);
		start_script(w, jobs, (uint64_t)i + 1, script);
		call_s[i] = now_s() - from_s;
		w->n_started = 0;
		while (w->n_started == 0)
			event_base_loop(w->base, EVLOOP_ONCE);
		exec_s[i] = now_s() - from_s;
		wait_finished(w, (size_t)i + 1);
	}
	qsort(call_s, N, sizeof call_s[0], compare);
	qsort(exec_s, N, sizeof exec_s[0], compare);
	print_message("start() %.0f us (median; %.0f us at most), from start() to a started command %.0f us "
		      "(%.0f us)\n",
		      1e6 * call_s[N / 2], 1e6 * call_s[N - 1], 1e6 * exec_s[N / 2], 1e6 * exec_s[N - 1]);
	assert_true(call_s[N / 2] < 0.005);
}

static int keep_a_secret(void **state)
{
	(void)state;
	setenv(SECRET, "1", 1);
	return 0;
}

TEST_GROUP(keep_a_secret, NULL);
