/* The local executor across deaths: of the daemon, of the supervisor, of the machine (as far as a record can
 * tell), and races between them. A job runs once or not at all, and its end is known or it is lost with a
 * reason. */
#define _GNU_SOURCE
#include <sched.h>
#include <spawn.h>

#include "scheduler/process/identity.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/test_exec_harness.h"

extern char **environ;

static int set_up(void **state)
{
	*state = world_new("run");
	return 0;
}

static int tear_down(void **state)
{
	io_fail_at(0, 0);
	world_free(*state);
	return 0;
}

/* The executor of this process has a thread. While it starts up it may hold a lock of the sanitizer's
 * allocator, which a child would inherit and wait for for ever; a little later it sleeps and holds
 * nothing. */
static pid_t fork_when_calm(void)
{
	const struct timespec moment = { .tv_nsec = 50000000 };

	nanosleep(&moment, NULL);
	return fork();
}

/* A daemon in a process of its own that starts a job and turns its loop; -9 ends it. It tells when it has
 * heard of the job's start; with a grace, it asks the job to stop then. */
static pid_t daemon_that_stops(const char *jobs, uint64_t id, const char *script, double grace_s)
{
	int fd[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = fork_when_calm();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct world *w = world_new("run");

		start_script(w, jobs, id, script);
		wait_started(w, 1);
		if (grace_s >= 0.0 && stop_job(w, id, grace_s))
			_exit(1);
		if (write(fd[1], "s", 1) != 1)
			_exit(1);
		for (;;)
			turn(w, 0.1);
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], &byte, 1), 1);
	close(fd[0]);
	return pid;
}

static pid_t daemon_that_starts(const char *jobs, uint64_t id, const char *script)
{
	return daemon_that_stops(jobs, id, script, -1.0);
}

static void kill_daemon(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST_WITH(test_job_survives_its_daemon_and_is_adopted, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	pid_t daemon = daemon_that_starts(jobs, 1,
					  "echo '{\"epoch\":1,\"accuracy\":0.25}'; sleep 0.6; "
					  "echo '{\"epoch\":2,\"accuracy\":0.75}'; exit 5");
	struct told *t = told_of(w, 1);

	kill_daemon(daemon);
	must_adopt(w, jobs, 1);
	assert_int_equal(w->ops->running(w->self), 1);
	wait_finished(w, 1);
	assert_int_equal(t->n_started, 1);
	assert_true(t->started_ns == number_after(file_text(in_job(jobs, 1, ".started")), "\nstarted ", 0));
	assert_int_equal(t->pid, number_after(file_text(in_job(jobs, 1, ".started")), "\njob ", 0));
	assert_false(t->outcome.lost);
	assert_int_equal(t->outcome.exit_code, 5);
	assert_true(t->outcome.run_s >= 0.6);
	assert_true(t->outcome.accuracy == 0.75);
	assert_true(t->n_progress >= 1 && t->progress[t->n_progress - 1].epoch == 2.0);
	assert_int_equal(w->ops->running(w->self), 0);
}

TEST_WITH(test_job_that_ended_unwatched_is_told_of, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	struct told *t = told_of(w, 2);

	kill_daemon(daemon_that_starts(jobs, 2, "echo '{\"accuracy\":0.875}'; exit 3"));
	wait_for_file(in_job(jobs, 2, ".exit"));
	must_adopt(w, jobs, 2);
	wait_finished(w, 1);
	assert_int_equal(t->n_started, 0);
	assert_int_equal(t->outcome.exit_code, 3);
	assert_true(t->outcome.started_ns > 0 && t->outcome.ended_ns >= t->outcome.started_ns);
	assert_true(t->outcome.accuracy == 0.875);
}

TEST_WITH(test_adopted_job_can_be_stopped, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	char command[600];

	snprintf(command, sizeof command, "trap '' TERM; : >%s; while :; do sleep 0.1; done",
		 in_job(jobs, 3, ".deaf"));
	kill_daemon(daemon_that_starts(jobs, 3, command));
	wait_for_file(in_job(jobs, 3, ".deaf"));
	must_adopt(w, jobs, 3);
	assert_int_equal(stop_job(w, 3, 0.1), 0);
	wait_finished(w, 1);
	assert_int_equal(told_of(w, 3)->outcome.exit_signal, SIGKILL);
	assert_true(told_of(w, 3)->outcome.stopped);
}

/* A daemon that dies before it has written down that it stopped the job leaves that to the job's record. */
TEST_WITH(test_stop_is_remembered_across_the_daemons_death, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	kill_daemon(daemon_that_stops(jobs, 16, "trap '' TERM; while :; do sleep 0.1; done", 0.3));
	must_adopt(w, jobs, 16);
	wait_finished(w, 1);
	assert_true(told_of(w, 16)->outcome.stopped);
	assert_true(told_of(w, 16)->outcome.exit_signal != 0);
	assert_string_equal(told_of(w, 16)->outcome.reason, "stopped on request");
}

/* Killed at any moment around the start: the command runs once, whoever starts it. */
TEST_WITH(test_daemon_killed_while_starting_runs_the_job_once, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	const char *script = "echo ran >> ../count-$POSTRIDER_JOB; exit 4";
	unsigned unstarted_jobs = 0;

	for (uint64_t id = 1; id <= 25; id++) {
		pid_t daemon = fork_when_calm();
		bool unstarted = false;
		struct err err = { 0 };
		char count[600];

		if (daemon == 0) {
			start_script(world_new("run"), jobs, id, script);
			usleep((useconds_t)(id * 400));
			kill(getpid(), SIGKILL);
		}
		assert_int_equal(waitpid(daemon, NULL, 0), daemon);
		assert_int_equal(adopt_job(w, jobs, id, &unstarted, &err), 0);
		unstarted_jobs += unstarted;
		if (unstarted)
			start_script(w, jobs, id, script);
		wait_finished(w, (size_t)id);
		assert_false(told_of(w, id)->outcome.lost);
		assert_int_equal(told_of(w, id)->outcome.exit_code, 4);
		snprintf(count, sizeof count, "%s/count-%d", jobs, (int)id);
		assert_string_equal(file_text(count), "ran\n");
	}
	print_message("%u of 25 had not begun when the daemon was killed\n", unstarted_jobs);
}

TEST_WITH(test_destroyed_executor_leaves_its_jobs, set_up, tear_down)
{
	struct world *w = *state, *first = world_new("run");
	const char *jobs = jobs_dir();

	start_script(first, jobs, 4, "sleep 0.4; exit 8");
	wait_started(first, 1);
	world_free(first);
	must_adopt(w, jobs, 4);
	wait_finished(w, 1);
	assert_int_equal(told_of(w, 4)->outcome.exit_code, 8);
}

TEST_WITH(test_pinned_cpus_are_remembered, set_up, tear_down)
{
	struct world *w = *state, *first = world_new("run");
	const char *jobs = jobs_dir();
	struct job_spec s = spec_of(jobs, 5, "grep Cpus_allowed_list /proc/self/status; sleep 0.5");
	struct err err = { 0 };
	cpu_set_t all;

	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	if (CPU_COUNT(&all) < 2) {
		world_free(first);
		print_message("skipped: needs 2 cpus\n");
		skip();
	}
	s.job.pin = true;
	assert_int_equal(start_spec(first, &s, &err), 0);
	wait_started(first, 1);
	world_free(first);
	must_adopt(w, jobs, 5);
	s = spec_of(jobs, 6, "grep Cpus_allowed_list /proc/self/status");
	s.job.pin = true;
	assert_int_equal(start_spec(w, &s, &err), 0);
	wait_finished(w, 2);
	assert_null(strpbrk(file_text(in_job(jobs, 6, "/stdout")), ",-"));
	assert_string_not_equal(file_text(in_job(jobs, 5, "/stdout")), file_text(in_job(jobs, 6, "/stdout")));
}

/* ---- the supervisor dies ---- */

TEST_WITH(test_job_dies_with_its_supervisor_and_is_lost, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	pid_t child;

	start_script(w, jobs, 7,
		     "sh -c 'echo $$ > child; while :; do sleep 1; done' & while :; do sleep 1; done");
	wait_started(w, 1);
	child = pid_in_file(in_job(jobs, 7, "/child"));
	assert_int_equal(kill(supervisor_of(jobs, 7), SIGKILL), 0);
	wait_finished(w, 1);
	assert_true(told_of(w, 7)->outcome.lost);
	assert_true(told_of(w, 7)->outcome.started_ns == told_of(w, 7)->started_ns);
	assert_int_equal(told_of(w, 7)->outcome.exit_code, -1);
	assert_non_null(strstr(told_of(w, 7)->outcome.reason, "is gone and left no report"));
	assert_true(dies_within(told_of(w, 7)->pid, 5.0));
	assert_true(dies_within(child, 5.0));
}

/* By the kernel, with no daemon to help; also where a change of user came between. */
TEST_WITH(test_job_dies_with_its_supervisor_unwatched, set_up, tear_down)
{
	struct world *first = world_new("run");
	const char *jobs = jobs_dir();
	struct job_spec s = spec_of(jobs, 15, "while :; do sleep 1; done");
	struct err err = { 0 };
	pid_t pid;

	if (geteuid() == 0)
		s.job.uid = s.job.gid = 65534;
	assert_int_equal(start_spec(first, &s, &err), 0);
	wait_started(first, 1);
	pid = told_of(first, 15)->pid;
	world_free(first);
	assert_false(is_dead(pid));
	assert_int_equal(kill(supervisor_of(jobs, 15), SIGKILL), 0);
	assert_true(dies_within(pid, 5.0));
}

TEST_WITH(test_supervisor_that_died_unwatched_is_noticed, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	pid_t child, supervisor;

	kill_daemon(daemon_that_starts(
		jobs, 8, "sh -c 'echo $$ > child; while :; do sleep 1; done' & while :; do sleep 1; done"));
	child = pid_in_file(in_job(jobs, 8, "/child"));
	supervisor = supervisor_of(jobs, 8);
	assert_int_equal(kill(supervisor, SIGKILL), 0);
	assert_true(dies_within(supervisor, 5.0));
	must_adopt(w, jobs, 8);
	wait_finished(w, 1);
	assert_true(told_of(w, 8)->outcome.lost);
	assert_int_equal(told_of(w, 8)->n_started, 0);
	assert_true(dies_within(child, 5.0));
}

/* ---- records that do not fit the world ---- */

static void put_started(const char *jobs, uint64_t id, const char *boot, long supervisor,
			unsigned long long ticks, long job, unsigned long long job_ticks)
{
	char text[600];
	int n = snprintf(text, sizeof text,
			 "postrider-started 1\nboot %s\nsupervisor %ld %llu\njob %ld %llu\nstarted "
			 "1700000000000000000 "
			 "5000000000\ncpus -\nend\n",
			 boot, supervisor, ticks, job, job_ticks);

	put_text(in_job(jobs, id, ".started"), text, (size_t)n);
}

static unsigned long long ticks_of(pid_t pid)
{
	unsigned long long ticks;
	char path[64], *at;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	at = strrchr(file_text(path), ')');
	assert_non_null(at);
	for (int field = 2; field < 22; field++)
		at = strchr(at + 1, ' ');
	ticks = strtoull(at, NULL, 10);
	assert_true(proc_lives(pid, ticks));
	return ticks;
}

TEST_WITH(test_pid_that_was_given_again_is_recognised, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	char boot[RECORD_BOOT_BYTES + 1];
	pid_t stranger = fork_when_calm();
	unsigned long long ticks;

	if (stranger == 0) {
		setsid();
		sleep(60);
		_exit(0);
	}
	assert_true(proc_boot_id(boot));
	usleep(20000);
	ticks = ticks_of(stranger);
	put_started(jobs, 9, boot, stranger, ticks - 1, stranger, ticks - 1);
	must_adopt(w, jobs, 9);
	wait_finished(w, 1);
	assert_true(told_of(w, 9)->outcome.lost);
	assert_non_null(strstr(told_of(w, 9)->outcome.reason, "is gone and left no report"));
	usleep(20000);
	assert_false(is_dead(stranger)); /* and did not suffer for the namesake */
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
}

/* A session's number may have a new owner: without the mark of the job nobody in it is touched. */
TEST_WITH(test_strangers_session_is_left_alone, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	char boot[RECORD_BOOT_BYTES + 1];
	pid_t stranger = fork_when_calm();

	if (stranger == 0) {
		setsid();
		sleep(60);
		_exit(0);
	}
	assert_true(proc_boot_id(boot));
	usleep(20000);
	put_started(jobs, 9, boot, 4194300, 1, stranger, ticks_of(stranger));
	must_adopt(w, jobs, 9);
	wait_finished(w, 1);
	assert_true(told_of(w, 9)->outcome.lost);
	usleep(20000);
	assert_false(is_dead(stranger));
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
}

TEST_WITH(test_machine_that_was_restarted_is_recognised, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	put_started(jobs, 10, "00000000-1111-2222-3333-444444444444", getpid(), ticks_of(getpid()), getpid(),
		    ticks_of(getpid()));
	must_adopt(w, jobs, 10);
	wait_finished(w, 1);
	assert_true(told_of(w, 10)->outcome.lost);
	assert_string_equal(told_of(w, 10)->outcome.reason, "the machine was restarted while it ran");
	assert_true(told_of(w, 10)->outcome.started_ns == INT64_C(1700000000000000000));
}

TEST_WITH(test_nothing_there_means_not_started, set_up, tear_down)
{
	struct world *w = *state;
	bool unstarted = false;
	struct err err = { 0 };

	assert_int_equal(adopt_job(w, jobs_dir(), 11, &unstarted, &err), 0);
	assert_true(unstarted);
	assert_int_equal(w->ops->running(w->self), 0);
	turn(w, 0.3);
	assert_int_equal(w->n_finished, 0);
}

/* Cut anywhere, a record makes its job lost, with the file's name, whatever the other one says. */
TEST_WITH(test_damaged_records_make_the_job_lost, set_up, tear_down)
{
	static const char *const suffix[] = { ".started", ".exit" };
	struct world *w = *state;
	const char *jobs = jobs_dir();
	uint64_t id = 1000;

	start_script(w, jobs, 12, "exit 1");
	wait_finished(w, 1);
	for (int which = 0; which < 2; which++) {
		char whole[4096];
		size_t len, made = 0;

		snprintf(whole, sizeof whole, "%s", file_text(in_job(jobs, 12, suffix[which])));
		len = strlen(whole);
		assert_true(len > 100);
		for (size_t cut = 0; cut < len; cut++, made++) {
			put_text(in_job(jobs, ++id, suffix[which]), whole, cut);
			must_adopt(w, jobs, id);
		}
		wait_finished(w, w->n_finished + made);
		for (uint64_t k = id - made + 1; k <= id; k++) {
			const struct exec_outcome *o = &told_of(w, k)->outcome;

			assert_true(o->lost);
			assert_int_equal(told_of(w, k)->n_finished, 1);
			assert_non_null(strstr(o->reason, suffix[which]));
			assert_non_null(strstr(o->reason, "damaged"));
		}
	}
	assert_int_equal(w->ops->running(w->self), 0);
}

TEST_WITH(test_adopting_survives_a_moment_without_descriptors, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	kill_daemon(daemon_that_starts(jobs, 13, "sleep 0.5; exit 6"));
	kill_daemon(daemon_that_starts(jobs, 14, "exit 7"));
	wait_for_file(in_job(jobs, 14, ".exit"));
	io_fail_at(1, EMFILE);
	must_adopt(w, jobs, 13);
	assert_true(io_failed());
	io_fail_at(1, EMFILE);
	must_adopt(w, jobs, 14);
	assert_true(io_failed());
	wait_finished(w, 2);
	assert_int_equal(told_of(w, 13)->outcome.exit_code, 6);
	assert_int_equal(told_of(w, 13)->n_started, 1);
	assert_int_equal(told_of(w, 14)->outcome.exit_code, 7);
}

/* ---- races ---- */

static pid_t spawn_supervisor_by_hand(char *dir, char *script)
{
	char *argv[] = { "postrider-supervisor", "--dir", dir, "--", "/bin/sh", "-c", script, NULL };
	posix_spawn_file_actions_t files;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	assert_int_equal(posix_spawn(&pid, getenv("POSTRIDER_SUPERVISOR"), &files, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&files);
	return pid;
}

TEST_WITH(test_two_supervisors_run_the_command_once, set_up, tear_down)
{
	const char *jobs = jobs_dir();

	for (int i = 0; i < 100; i++) {
		char dir[600], script[700], count[600];
		pid_t pid[2];
		int status[2];

		snprintf(dir, sizeof dir, "%s/%d", jobs, i);
		snprintf(count, sizeof count, "%s/count-%d", jobs, i);
		snprintf(script, sizeof script, "echo ran >> %s", count);
		for (int k = 0; k < 2; k++)
			pid[k] = spawn_supervisor_by_hand(dir, script);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(waitpid(pid[k], &status[k], 0), pid[k]);
			assert_true(WIFEXITED(status[k]));
		}
		assert_int_equal(WEXITSTATUS(status[0]) + WEXITSTATUS(status[1]), SUPERVISOR_LOST_RACE);
		assert_true(WEXITSTATUS(status[0]) == 0 || WEXITSTATUS(status[1]) == 0);
		assert_string_equal(file_text(count), "ran\n");
	}
}

/* Nothing but the two records and the folder may stay behind, from winners and losers alike. */
TEST_WITH(test_race_leaves_no_litter, set_up, tear_down)
{
	const char *jobs = jobs_dir();
	char dir[600];
	pid_t pid[4];
	DIR *d;
	int n = 0;

	snprintf(dir, sizeof dir, "%s/1", jobs);
	for (int k = 0; k < 4; k++)
		pid[k] = spawn_supervisor_by_hand(dir, "exit 0");
	for (int k = 0; k < 4; k++)
		waitpid(pid[k], NULL, 0);
	d = opendir(jobs);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	assert_int_equal(n, 2 + 3);
}

TEST_WITH(test_late_supervisor_is_adopted_by_the_one_who_came_second, set_up, tear_down)
{
	struct world *w = *state, *other = world_new("run");
	const char *jobs = jobs_dir();

	for (uint64_t id = 1; id <= 10; id++) {
		char count[600];

		start_script(other, jobs, id, "echo ran >> ../count-$POSTRIDER_JOB; sleep 0.05; exit 9");
		start_script(w, jobs, id, "echo ran >> ../count-$POSTRIDER_JOB; sleep 0.05; exit 9");
		wait_finished(other, (size_t)id);
		wait_finished(w, (size_t)id);
		for (int k = 0; k < 2; k++) {
			struct told *t = told_of(k ? other : w, id);

			assert_false(t->outcome.lost);
			assert_int_equal(t->outcome.exit_code, 9);
			assert_int_equal(t->n_started, 1);
			assert_int_equal(t->n_finished, 1);
		}
		snprintf(count, sizeof count, "%s/count-%d", jobs, (int)id);
		assert_string_equal(file_text(count), "ran\n");
	}
	world_free(other);
}
