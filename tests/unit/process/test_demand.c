/* scheduler/process/demand: what programs of ours want of the cpus, on this machine. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "scheduler/process/demand.h"
#include "tests/support/test.h"

/* The kernel counts a wait when it ends, and on a machine full of others one may last a fifth of a second. */
#define SLACK_S 0.25

static void spin(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a claim that fails leaves nothing behind */
	for (;;)
		__asm__ volatile("");
}

/* Its first process sleeps; so many children of it spin. */
static pid_t start(int spinning)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < spinning; i++) {
		if (fork() == 0)
			spin();
	}
	for (;;)
		pause();
}

static void stop(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool kernel_tells(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
	return !access("/proc/self/schedstat", R_OK) && !access(path, R_OK);
}

/* What the program wants, as a mean over a second. */
static double ours(pid_t pid, double cpus)
{
	struct demand d = { 0 };
	struct demand_program program = { pid, cpus };
	double begun_s = clock_monotonic_s(), wanted_s;

	for (int i = 0; i <= 10; i++) {
		demand_look(&d, &program, 1, clock_monotonic_s());
		usleep(100000);
	}
	wanted_s = d.ours_s / (d.at_s - begun_s);
	demand_release(&d);
	return wanted_s;
}

TEST(test_a_program_wants_what_its_descendants_want)
{
	pid_t pid;
	double two;

	if (!kernel_tells()) {
		printf("skipped: this kernel does not count how long a process waits for a cpu\n");
		skip();
	}
	pid = start(2);
	usleep(50000);
	two = ours(pid, 7.0); /* what it asked for does not count */
	stop(pid);
	printf("two that spin: %.2f\n", two);
	assert_true(fabs(two - 2.0) < 2.0 * SLACK_S);
}

TEST(test_a_program_that_waits_wants_nothing)
{
	pid_t pid;
	double none;

	if (!kernel_tells())
		skip();
	pid = start(0);
	none = ours(pid, 3.0);
	stop(pid);
	assert_true(none < 0.05);
}

TEST(test_a_program_that_nobody_knows_wants_what_it_asked_for)
{
	assert_true(fabs(ours(0, 3.0) - 3.0) < 0.01);
}

static void *sleeping(void *unused)
{
	for (;;)
		pause();
	return unused;
}

TEST(test_the_threads_of_the_largest_process_are_counted)
{
	struct demand d = { 0 };
	struct demand_program program = { 0, 1.0 };
	size_t seen = 0;

	if (!kernel_tells())
		skip();
	program.pid = fork();
	assert_true(program.pid >= 0);
	if (program.pid == 0) {
		pthread_t t;

		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pthread_create(&t, NULL, sleeping, NULL);
			pthread_create(&t, NULL, sleeping, NULL);
			pthread_create(&t, NULL, sleeping, NULL);
		}
		for (;;)
			pause();
	}
	for (int tries = 0; tries < 500 && seen < 4;
	     tries++) { /* its start takes a while on a busy machine */
		usleep(30000);
		demand_look(&d, &program, 1, clock_monotonic_s());
		seen = demand_threads(&d, program.pid);
	}
	stop(program.pid);
	assert_int_equal(seen, 4);
	assert_int_equal(demand_threads(&d, 1), 0);
	demand_release(&d);
}

TEST(test_the_last_moments_of_a_program_are_ours)
{
	struct demand d = { 0 };
	struct demand_program program;
	double at_s = clock_monotonic_s(), owed_s;

	if (!kernel_tells())
		skip();
	program = (struct demand_program){ start(1), 1.0 };
	demand_look(&d, &program, 1, at_s);
	usleep(300000);
	demand_leaves(&d, program.pid);
	owed_s = d.owed_s;
	stop(program.pid);
	assert_true(owed_s > 0.02 && owed_s < clock_monotonic_s() - at_s + SLACK_S);
	demand_look(&d, NULL, 0, clock_monotonic_s());
	assert_true(d.owed_s == 0.0 && d.n_tasks == 0 && d.n_roots == 0);
	demand_release(&d);
}

TEST(test_what_a_program_did_before_we_knew_it_does_not_count)
{
	struct demand d = { 0 };
	struct demand_program program;
	double before_s, owed_s;

	if (!kernel_tells())
		skip();
	program = (struct demand_program){ start(1), 1.0 };
	demand_look(&d, NULL, 0, clock_monotonic_s());
	usleep(600000);
	demand_look(&d, NULL, 0, clock_monotonic_s());
	usleep(100000);
	before_s = clock_monotonic_s();
	demand_look(&d, &program, 1, before_s); /* it ran for 0.7 s, 0.1 s of it since the last reading */
	assert_true(d.ours_s < 0.01);
	usleep(300000);
	demand_look(&d, &program, 1, clock_monotonic_s());
	assert_true(fabs(d.ours_s - (d.at_s - before_s)) < SLACK_S);
	demand_left(&d, program.pid, 100.0); /* it says that it took 100 s on a cpu */
	assert_true(d.owed_s > 99.0);
	owed_s = d.owed_s;
	demand_left(&d, program.pid, 100.0); /* which is no news */
	assert_true(d.owed_s == owed_s);
	stop(program.pid);
	demand_release(&d);
}
