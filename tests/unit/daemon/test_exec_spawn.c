/* The local executor while supervisors are being started, which its own thread does: stops, ends and failures
 * in between. posix_spawn() is ours here: it waits at a gate, so that a case can look at a start that is
 * under way for as long as it likes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdatomic.h>

#include "tests/support/test.h"
#include "tests/unit/daemon/test_exec_harness.h"

/* ---- the gate ---- */

static struct {
	atomic_bool closed;
	atomic_uint arrived; /* calls of posix_spawn() since the case began */
	atomic_int error; /* what the next ones return; 0: what they did */
	atomic_int foreign; /* a descriptor that a child must not have, not even for a moment; 0: none */
	sem_t let_in; /* one call each, while it is closed */
	pthread_t loop;
} gate;

int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *files,
		const posix_spawnattr_t *restrict attr, char *const *restrict argv,
		char *const *restrict envp)
{
	int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
		    char *const *, char *const *);
	int error;

	*(void **)&real = dlsym(RTLD_NEXT, "posix_spawn");
	assert_false(pthread_equal(pthread_self(), gate.loop)); /* it would hold up the loop */
	if (atomic_load(&gate.foreign)) {
		char link[64];

		snprintf(link, sizeof link, "/proc/thread-self/fd/%d", atomic_load(&gate.foreign));
		atomic_store(&gate.foreign, access(link, F_OK) ? -1 : 0);
	}
	atomic_fetch_add(&gate.arrived, 1);
	while (atomic_load(&gate.closed) && sem_wait(&gate.let_in))
		;
	error = atomic_load(&gate.error);
	return error ? error : real(pid, path, files, attr, argv, envp);
}

static void wait_arrived(unsigned n)
{
	double until_s = now_s() + PATIENCE_S;

	while (atomic_load(&gate.arrived) < n) {
		if (now_s() > until_s)
			fail_msg("%u of %u starts were tried", atomic_load(&gate.arrived), n);
		usleep(500);
	}
}

static void open_gate(void)
{
	atomic_store(&gate.closed, false);
	sem_post(&gate.let_in);
}

static int set_up(void **state)
{
	gate.loop = pthread_self();
	atomic_store(&gate.closed, false);
	atomic_store(&gate.arrived, 0);
	atomic_store(&gate.error, 0);
	atomic_store(&gate.foreign, 0);
	sem_init(&gate.let_in, 0, 0);
	*state = world_new("run");
	return 0;
}

static int tear_down(void **state)
{
	open_gate();
	world_free(*state);
	sem_destroy(&gate.let_in);
	return 0;
}

static void expect_no_record(const char *jobs, uint64_t id)
{
	assert_int_equal(access(in_job(jobs, id, ".started"), F_OK), -1);
	assert_int_equal(access(in_job(jobs, id, ""), F_OK), -1);
}

/* ---- many ---- */

/* This case comes first: it counts zombies, and others leave some. Every third is stopped, at whatever moment
 * of its start; each ends once, and as it should. */
TEST_WITH(test_many_starts_and_stops_at_once, set_up, tear_down)
{
	enum { JOBS = 200 };
	struct world *w = *state;
	const char *jobs = jobs_dir();
	size_t descriptors = count_descriptors();
	unsigned caught = 0, stopped = 0;

	for (uint64_t id = 1; id <= JOBS; id++) {
		start_script(w, jobs, id, id % 3 ? "exit 2" : "exec sleep 60");
		if (id % 10 == 0)
			turn(w, 0.02);
		if (id > 30)
			stop_job(w, (id - 5 * (id % 6)) / 3 * 3, 10.0);
	}
	for (uint64_t id = 3; id <= JOBS; id += 3)
		stop_job(w, id, 10.0); /* again, some of them */
	wait_finished(w, JOBS);
	for (uint64_t id = 1; id <= JOBS; id++) {
		const struct told *t = told_of(w, id);

		assert_int_equal(t->n_finished, 1);
		assert_false(t->outcome.lost);
		assert_int_equal(t->outcome.stopped, id % 3 == 0);
		assert_int_equal(t->outcome.exit_code, id % 3 ? 2 : -1);
		assert_int_equal(t->n_started, t->outcome.started_ns != 0);
		stopped += t->outcome.stopped;
		caught += t->outcome.stopped && !t->n_started;
	}
	print_message("%u of %u stops came before the start\n", caught, stopped);
	assert_int_equal(w->ops->running(w->self), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(count_descriptors(), descriptors);
}

/* ---- the loop goes on ---- */

TEST_WITH(test_start_returns_while_the_machine_is_slow, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	atomic_store(&gate.closed, true);
	for (uint64_t id = 1; id <= 20; id++)
		start_script(w, jobs, id, "exit 3");
	wait_arrived(1);
	turn(w, 0.25); /* longer than a tick */
	assert_int_equal(atomic_load(&gate.arrived), 1);
	assert_int_equal(w->ops->running(w->self), 20);
	assert_int_equal(w->n_started + w->n_finished, 0);
	open_gate();
	wait_finished(w, 20);
	for (uint64_t id = 1; id <= 20; id++) {
		assert_int_equal(told_of(w, id)->n_started, 1);
		assert_int_equal(told_of(w, id)->outcome.exit_code, 3);
	}
}

TEST_WITH(test_jobs_are_started_in_order, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	atomic_store(&gate.closed, true);
	for (uint64_t id = 1; id <= 5; id++)
		start_script(w, jobs, id, "exit 0");
	for (uint64_t id = 1; id <= 5; id++) {
		sem_post(&gate.let_in);
		wait_started(w, id);
		assert_int_equal(told_of(w, id)->n_started, 1);
	}
	wait_finished(w, 5);
}

/* Its own thread steps back for the loop; what it starts must not. */
TEST_WITH(test_jobs_have_the_scheduling_of_the_daemon, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	start_script(w, jobs, 1, "sleep 0.3");
	wait_started(w, 1);
	assert_int_equal(sched_getscheduler(told_of(w, 1)->pid), sched_getscheduler(0));
	assert_int_equal(sched_getscheduler(supervisor_of(jobs, 1)), sched_getscheduler(0));
	wait_finished(w, 1);
}

/* A daemon that is killed while a child of it is not yet another program must not live on in that child: its
 * lock would keep the next daemon out. */
TEST_WITH(test_child_never_has_the_descriptors_of_the_daemon, set_up, tear_down)
{
	struct world *w = *state;
	int lock = open("/dev/null", O_RDONLY);

	assert_true(lock > 2);
	atomic_store(&gate.foreign, lock);
	start_script(w, jobs_dir(), 1, "exit 3");
	wait_finished(w, 1);
	assert_int_equal(told_of(w, 1)->outcome.exit_code, 3);
	assert_int_equal(atomic_load(&gate.foreign), -1);
	assert_int_equal(fcntl(lock, F_GETFD), 0); /* and the daemon still has it */
	close(lock);
}

/* ---- stopping ---- */

TEST_WITH(test_job_that_waits_for_its_start_is_stopped_at_once, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	size_t descriptors = count_descriptors();

	atomic_store(&gate.closed, true);
	start_script(w, jobs, 1, "exit 5");
	start_script(w, jobs, 2, "exit 6");
	start_script(w, jobs, 3, "exit 7");
	wait_arrived(1);
	assert_int_equal(stop_job(w, 2, 1.0), 0);
	assert_int_equal(stop_job(w, 2, 1.0), 0); /* twice does no harm */
	wait_finished(w, 1);
	assert_int_equal(told_of(w, 2)->n_finished, 1);
	assert_int_equal(told_of(w, 2)->n_started, 0);
	assert_true(told_of(w, 2)->outcome.stopped);
	assert_false(told_of(w, 2)->outcome.lost);
	assert_int_equal(told_of(w, 2)->outcome.exit_code, -1);
	assert_int_equal(told_of(w, 2)->outcome.started_ns, 0);
	assert_true(told_of(w, 2)->outcome.ended_ns > 0);
	assert_non_null(strstr(told_of(w, 2)->outcome.reason, "before it was started"));
	assert_int_equal(stop_job(w, 2, 1.0), -ERR_NOTFOUND);
	open_gate();
	wait_finished(w, 3);
	assert_int_equal(told_of(w, 1)->outcome.exit_code, 5);
	assert_int_equal(told_of(w, 3)->outcome.exit_code, 7);
	expect_no_record(jobs, 2);
	assert_int_equal(count_descriptors(), descriptors);
}

/* Its number is free again at once, and what comes back of the first try must not be taken for the second. */
TEST_WITH(test_stopped_job_may_be_started_again, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();

	atomic_store(&gate.closed, true);
	start_script(w, jobs, 1, "exit 5");
	start_script(w, jobs, 2, "exit 6");
	wait_arrived(1);
	assert_int_equal(stop_job(w, 2, 1.0), 0);
	wait_finished(w, 1);
	told_of(w, 2)->n_finished = 0;
	start_script(w, jobs, 2, "exit 7");
	open_gate();
	wait_finished(w, 3);
	assert_int_equal(told_of(w, 2)->n_finished, 1);
	assert_int_equal(told_of(w, 2)->n_started, 1);
	assert_int_equal(told_of(w, 2)->outcome.exit_code, 7);
	assert_int_equal(atomic_load(&gate.arrived), 2);
}

TEST_WITH(test_job_that_is_being_started_is_stopped_once_it_is, set_up, tear_down)
{
	struct world *w = *state;
	const char *jobs = jobs_dir();
	double from_s;

	atomic_store(&gate.closed, true);
	start_script(w, jobs, 1, "trap '' TERM; while :; do sleep 0.1; done");
	wait_arrived(1);
	assert_int_equal(stop_job(w, 1, 0.2), 0);
	assert_int_equal(stop_job(w, 1, 60.0), 0); /* the shorter grace holds */
	turn(w, 0.25);
	assert_int_equal(w->n_finished, 0);
	assert_int_equal(w->ops->running(w->self), 1);
	from_s = now_s();
	open_gate();
	wait_finished(w, 1);
	assert_true(now_s() - from_s < 20.0);
	assert_true(told_of(w, 1)->outcome.stopped);
	assert_true(told_of(w, 1)->outcome.exit_signal != 0);
	assert_string_equal(told_of(w, 1)->outcome.reason, "stopped on request");
}

/* Ours hears of the stop, and finds that another supervisor has the job: that one must hear of it, too. */
TEST_WITH(test_stop_reaches_the_supervisor_that_came_first, set_up, tear_down)
{
	struct world *w = *state, *other = world_new("run");
	const char *jobs = jobs_dir();

	start_script(other, jobs, 1, "exec sleep 60");
	wait_started(other, 1);
	atomic_store(&gate.closed, true);
	start_script(w, jobs, 1, "exec sleep 60");
	wait_arrived(2);
	assert_int_equal(stop_job(w, 1, 5.0), 0);
	open_gate();
	wait_finished(w, 1);
	wait_finished(other, 1);
	assert_true(told_of(w, 1)->outcome.stopped);
	assert_int_equal(told_of(w, 1)->outcome.exit_signal, SIGTERM);
	assert_true(told_of(other, 1)->outcome.stopped);
	world_free(other);
}

/* ---- leaving ---- */

static void *open_gate_soon(void *unused)
{
	usleep(50000);
	open_gate();
	return unused;
}

TEST_WITH(test_executor_that_leaves_starts_nothing_more, set_up, tear_down)
{
	struct world *w = *state, *first;
	size_t descriptors = count_descriptors();
	const char *jobs = jobs_dir();
	pthread_t opener;
	double from_s;

	first = world_new("run");
	atomic_store(&gate.closed, true);
	for (uint64_t id = 1; id <= 50; id++)
		start_script(first, jobs, id, "exit 8");
	wait_arrived(1);
	assert_int_equal(stop_job(first, 50, 1.0), 0); /* withdrawn and not told of */
	assert_int_equal(pthread_create(&opener, NULL, open_gate_soon, NULL), 0);
	from_s = now_s();
	world_free(first);
	assert_true(now_s() - from_s < 5.0);
	assert_int_equal(pthread_join(opener, NULL), 0);
	assert_int_equal(atomic_load(&gate.arrived), 1);
	assert_int_equal(count_descriptors(), descriptors);

	/* The one that was under way runs; the others are found as if nobody had begun with them. */
	wait_for_file(in_job(jobs, 1, ".exit"));
	must_adopt(w, jobs, 1);
	for (uint64_t id = 2; id <= 50; id++) {
		struct err err = { 0 };
		bool unstarted = false;

		assert_int_equal(adopt_job(w, jobs, id, &unstarted, &err), 0);
		assert_true(unstarted);
		expect_no_record(jobs, id);
	}
	start_script(w, jobs, 2, "exit 9");
	wait_finished(w, 2);
	assert_int_equal(told_of(w, 1)->outcome.exit_code, 8);
	assert_int_equal(told_of(w, 2)->outcome.exit_code, 9);
}

TEST_WITH(test_executor_leaves_with_results_that_nobody_took, set_up, tear_down)
{
	struct world *w = *state, *first;
	size_t descriptors = count_descriptors();
	const char *jobs = jobs_dir();

	first = world_new("run");
	for (uint64_t id = 1; id <= 3; id++)
		start_script(first, jobs, id, "exit 4");
	wait_for_file(in_job(jobs, 3, ".exit"));
	world_free(first); /* its loop never turned */
	assert_int_equal(count_descriptors(), descriptors);
	for (uint64_t id = 1; id <= 3; id++) {
		wait_for_file(in_job(jobs, id, ".exit"));
		must_adopt(w, jobs, id);
	}
	wait_finished(w, 3);
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(told_of(w, id)->outcome.exit_code, 4);
}

/* ---- failing ---- */

static void expect_not_started(struct world *w, uint64_t id, const char *why)
{
	const struct told *t = told_of(w, id);

	assert_int_equal(t->n_started, 0);
	assert_int_equal(t->n_finished, 1);
	assert_false(t->outcome.lost);
	assert_int_equal(t->outcome.exit_code, -1);
	assert_int_equal(t->outcome.exit_signal, 0);
	assert_int_equal(t->outcome.started_ns, 0);
	if (!strstr(t->outcome.reason, "could not be started") || !strstr(t->outcome.reason, why))
		fail_msg("'%s' does not say '%s'", t->outcome.reason, why);
}

TEST_WITH(test_missing_supervisor_is_the_jobs_reason, set_up, tear_down)
{
	struct world *w = *state, *late = world_new("run");
	struct executor_sink sink = {
		.owner = late, .started = on_started, .progress = on_progress, .finished = on_finished
	};
	size_t descriptors;
	const char *jobs = jobs_dir();
	char path[600];
	struct err err = { 0 };

	(void)w;
	snprintf(path, sizeof path, "%s/supervisor", jobs);
	assert_int_equal(symlink(getenv("POSTRIDER_SUPERVISOR"), path), 0);
	setenv("POSTRIDER_SUPERVISOR", path, 1);
	late->ops->destroy(late->self);
	assert_int_equal(late->ops->create(late->base, &sink, &late->self, &err), 0);
	descriptors = count_descriptors();
	assert_int_equal(unlink(path), 0); /* as an upgrade of the package might */
	start_script(late, jobs, 1, "true");
	wait_finished(late, 1);
	expect_not_started(late, 1, path);
	expect_not_started(late, 1, "No such file");
	assert_false(told_of(late, 1)->outcome.stopped);
	assert_int_equal(late->ops->running(late->self), 0);
	assert_int_equal(count_descriptors(), descriptors);
	world_free(late);
}

/* EAGAIN: the machine has no process to spare. The job is given back, to be started again. */
static void failed_start_gives_cpus_back(struct world *w, int error)
{
	const char *jobs = jobs_dir();
	cpu_set_t all;
	uint64_t n;

	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	n = (uint64_t)CPU_COUNT(&all);
	atomic_store(&gate.error, error);
	for (uint64_t id = 1; id <= n; id++) {
		struct job_spec s = spec_of(jobs, id, "true");
		struct err err = { 0 };

		s.job.pin = true;
		assert_int_equal(start_spec(w, &s, &err), 0);
	}
	if (error == EAGAIN) {
		for (double until_s = now_s() + PATIENCE_S; w->n_delayed < n && now_s() < until_s;)
			turn(w, 0.01);
		for (uint64_t id = 1; id <= n; id++)
			assert_non_null(strstr(told_of(w, id)->delayed, strerror(EAGAIN)));
		assert_int_equal(w->ops->running(w->self), 0);
	} else {
		wait_finished(w, n);
		for (uint64_t id = 1; id <= n; id++)
			expect_not_started(w, id, strerror(error));
	}
	atomic_store(&gate.error, 0);
	for (uint64_t id = 1; id <= n; id++) {
		struct job_spec s = spec_of(jobs, 1000 + id, "sleep 0.2");
		struct err err = { 0 };

		s.job.pin = true;
		assert_int_equal(start_spec(w, &s, &err), 0);
	}
	wait_finished(w, error == EAGAIN ? n : 2 * n);
	for (uint64_t id = 1; id <= n; id++)
		assert_null(strstr(file_text(in_job(jobs, 1000 + id, ".started")), "cpus -\n"));
}

TEST_WITH(test_failed_start_gives_its_cpus_back, set_up, tear_down)
{
	failed_start_gives_cpus_back(*state, EACCES);
}

TEST_WITH(test_delayed_start_gives_its_cpus_back, set_up, tear_down)
{
	failed_start_gives_cpus_back(*state, EAGAIN);
}

TEST_WITH(test_stop_of_a_start_that_fails_is_answered, set_up, tear_down)
{
	struct world *w = *state;

	atomic_store(&gate.closed, true);
	atomic_store(&gate.error, ENOMEM);
	start_script(w, jobs_dir(), 1, "true");
	wait_arrived(1);
	assert_int_equal(stop_job(w, 1, 1.0), 0);
	open_gate();
	wait_finished(w, 1);
	expect_not_started(w, 1, strerror(ENOMEM));
}
