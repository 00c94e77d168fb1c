/* scheduler/process/other_load: the work of others on the machine, from the counts of the kernel. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/process/other_load.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

/* As a kernel of version 6 writes it, on two cpus. */
static const char stat_text[] = "cpu  1197390 208587 188319 1487747 9229 7 4081 14225 11 0\n"
				"cpu0 570740 98970 86285 789436 2010 3 145 7175 5 0\n"
				"cpu1 626649 109617 102033 698310 7218 4 3936 7049 6 0\n"
				"intr 10473304 0 0 0 1 1 16\n"
				"ctxt 20944821\n"
				"btime 1763252220\n"
				"processes 143217\n"
				"procs_running 3\n"
				"procs_blocked 0\n"
				"softirq 3284471 0 560912\n";
static const char pressure_text[] = "some avg10=26.08 avg60=29.55 avg300=44.38 total=3566875621\n"
				    "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";

static const struct other_load_ours nobody = { 0.0, NAN };

/* ---- reading ---- */

TEST(test_stat_is_read)
{
	struct proc_cpu r = { 0 };

	assert_int_equal(other_load_parse_stat(stat_text, &r, NULL), 0);
	assert_int_equal(r.cpus, 2);
	assert_true(r.running == 3.0);
	/* eight columns; guests are in user already */
	assert_true(r.user == 1197390 && r.nice == 208587 && r.system == 188319 && r.steal == 14225);
	assert_true(r.total == 1197390 + 208587 + 188319 + 14225 + 1487747 + 9229 + 7 + 4081);
	/* as kernels before 2.5 had it */
	assert_int_equal(other_load_parse_stat("cpu 1 2 3 4\ncpu0 1 2 3 4\nprocs_running 1\n", &r, NULL), 0);
	assert_true(r.cpus == 1 && r.user + r.nice + r.system == 6.0 && r.total == 10.0);
}

TEST(test_what_is_no_stat_is_refused)
{
	static const char *const bad[] = { "",
					   "\n",
					   "cpu\n",
					   "cpu  1 2 3\ncpu0 1 2 3\nprocs_running 1\n",
					   "cpu  1 2 x 4\ncpu0 1 2 3 4\nprocs_running 1\n",
					   "cpu  1 2 3 4\nprocs_running 1\n",
					   "cpu  1 2 3 4\ncpu0 1 2 3 4\n",
					   "cpu  1 2 3 4\ncpu0 1 2 3 4\nprocs_running\n",
					   "cpu  1 2 3 4\ncpu0 1 2 3 4\nprocs_running -1\n",
					   "cpu  1 2 3 1e999\ncpu0 1 2 3 4\nprocs_running 1\n" };
	struct proc_cpu r = { .cpus = 77 };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { 0 };

		if (other_load_parse_stat(bad[i], &r, &err) != -ERR_FORMAT || !err.text[0])
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(r.cpus, 77);
	}
}

TEST(test_pressure_is_read)
{
	static const char *const bad[] = { "",
					   "some avg10=1\n",
					   "some avg10=1\nfull total=3\n",
					   "full total=3\n",
					   "some total=\n",
					   "some total=x\n" };
	double s = 0.0;

	assert_int_equal(other_load_parse_pressure(pressure_text, &s, NULL), 0);
	assert_true(s == 3566.875621);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (other_load_parse_pressure(bad[i], &s, NULL) != -ERR_FORMAT)
			fail_msg("taken: %s", bad[i]);
	}
	assert_int_equal(other_load_parse_pressure(NULL, &s, NULL), -ERR_FORMAT);
	assert_true(s == 3566.875621);
}

/* ---- what proc.h reads ---- */

TEST(test_the_cpus_are_busy_for_a_share_of_the_time)
{
	struct proc_cpu a, b;
	double cpu, iowait;

	assert_true(proc_cpu_parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 ...", &a));
	assert_true(proc_cpu_parse("cpu  160 0 80 890 70 0 0 0 0 0\n", &b));
	proc_cpu_mean(&a, &b, &cpu, &iowait);
	assert_true(fabs(cpu - 45.0) < 1e-9 && fabs(iowait - 10.0) < 1e-9); /* 90 and 20 of 200 ticks */
	proc_cpu_mean(&a, &a, &cpu, &iowait);
	assert_true(isnan(cpu) && isnan(iowait));
	assert_false(proc_cpu_parse("intr 1 2 3", &a));
	assert_true(proc_cpu_read(&a) && a.cpus >= 1 && a.total > 0.0);
}

TEST(test_a_process_is_read_whatever_its_name)
{
	struct proc_process p;

	assert_true(proc_process_parse(
		"7 (a) b) c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 "
		"26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 4242 43",
		&p));
	assert_true(p.state == 'S' && p.session == 6);
	assert_true(p.start_ticks == 22 && p.blocked_ticks == 4242);
	assert_false(proc_process_parse("7 (a) S 4", &p));
	assert_false(proc_process_parse("nothing", &p));
	assert_true(proc_process_read(getpid(), &p) && p.state == 'R');
	assert_false(proc_process_read((pid_t)1 << 30, &p));
}

/* ---- a machine that is made up ---- */

struct machine {
	double busy, idle, waited_us; /* so far */
	double ours;
	bool ran; /* how much of ours did is known */
	double favour; /* ours run so many times as long as their number entitles them to; 0: once */
	double unseen; /* that wait when it is read, and not otherwise */
	bool no_pressure;
	struct other_load o;
};

/* Two cpus for dt seconds, with `processes` that want them all the time. */
static double play(struct machine *m, double processes, double dt)
{
	char text[256], pressure[128];
	double on_cpu = fmin(2.0, processes);

	m->busy += 100.0 * dt * on_cpu;
	m->idle += 100.0 * dt * (2.0 - on_cpu);
	m->waited_us += 1e6 * dt * fmin(1.0, fmax(0.0, processes - 2.0) / 2.0); /* a mean over the cpus */
	snprintf(text, sizeof text,
		 "cpu  %.0f 0 0 %.0f 0 0 0 0 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nprocs_running %.0f\n", m->busy,
		 m->idle, processes + m->unseen + 1.0);
	snprintf(pressure, sizeof pressure, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%.0f\n",
		 m->waited_us);
	return other_load_sample(
		&m->o, text, m->no_pressure ? NULL : pressure,
		(struct other_load_ours){ m->ours, m->ran ? on_cpu * fmin(1.0, m->ours / processes) *
								    (m->favour > 0.0 ? m->favour : 1.0)
							  : NAN },
		dt);
}

static double play_for(struct machine *m, double processes, double seconds)
{
	double v = 0.0;

	for (double t = 0.0; t < seconds; t += 1.0)
		v = play(m, processes, 1.0);
	return v;
}

TEST(test_a_load_that_stays_is_believed_and_forgotten_within_seconds)
{
	for (int pressure = 0; pressure <= 1; pressure++) {
		struct machine m = { .no_pressure = !pressure };

		assert_true(play_for(&m, 0.0, 5.0) == 0.0);
		play(&m, 1.0, 1.0);
		assert_in_range((long)(100.0 * play_for(&m, 1.0, 2.0)), 60, 85); /* after 3 s */
		assert_in_range((long)(100.0 * play_for(&m, 1.0, 3.0)), 90, 100);
		assert_true(fabs(play_for(&m, 1.0, 20.0) - 1.0) < 0.01);
		assert_true(play_for(&m, 0.0, 3.0) < 0.4);
		assert_true(play_for(&m, 0.0, 2.0) == 0.0); /* all of it: below a quarter of a process */
	}
}

TEST(test_our_own_processes_do_not_count)
{
	struct machine m = { .ours = 2.0 };

	assert_true(play_for(&m, 2.0, 30.0) == 0.0);
	assert_true(fabs(play_for(&m, 3.0, 30.0) - 1.0) < 0.05);
	assert_true(fabs(play_for(&m, 7.0, 30.0) - 5.0) < 0.2);
	m.ours = 7.0;
	assert_true(play_for(&m, 7.0, 30.0) == 0.0);
}

TEST(test_more_than_the_cpus_is_counted_with_and_without_pressure)
{
	struct machine with = { 0 }, without = { .no_pressure = true };

	assert_true(fabs(play_for(&with, 5.0, 40.0) - 5.0) < 0.05);
	assert_true(fabs(play_for(&without, 5.0, 40.0) - 5.0) < 0.05);
}

/* Threads of ours that wait for each other are seen waiting more often than they wait. */
TEST(test_nobody_else_wants_what_nobody_else_runs)
{
	struct machine m = { .ours = 4.0, .unseen = 2.0 };

	assert_true(play_for(&m, 4.0, 30.0) > 1.5); /* as the readings say */
	assert_true(other_load_mean(&m.o) > 1.5);
	m = (struct machine){ .ours = 4.0, .unseen = 2.0, .ran = true };
	assert_true(play_for(&m, 4.0, 30.0) == 0.0);
	assert_true(other_load_mean(&m.o) == 0.0);
	/* two others among six get two of six parts of the cpus */
	assert_true(fabs(play_for(&m, 6.0, 60.0) - 2.0) < 0.05);
	m = (struct machine){ .ours = 4.0, .unseen = 2.0, .ran = true };
	play_for(&m, 6.0, 60.0);
	assert_true(fabs(other_load_mean(&m.o) - 2.0) < 0.05);
}

/* The kernel shares between sessions first: eight others in one session leave ours as much as three would. */
TEST(test_what_ours_felt_of_others_holds_when_none_of_ours_runs)
{
	struct machine m = { .ours = 1.0, .ran = true, .favour = 2.25 };
	double sum_s;

	assert_true(fabs(play_for(&m, 9.0, 60.0) - 3.0) < 0.05);
	m.ours = 0.0;
	assert_true(fabs(play_for(&m, 8.0, 60.0) - 3.0) < 0.05);
	assert_true(play_for(&m, 0.0, 10.0) == 0.0);
	assert_true(fabs(play_for(&m, 16.0, 60.0) - 6.0) < 0.1); /* twice as many */
	play_for(&m, 8.0, 20.0);
	sum_s = m.o.estimate_s;
	play_for(&m, 8.0, 10.0);
	assert_true(fabs(m.o.estimate_s - sum_s - 30.0) < 1.0);
	/* ours that were alone on the machine have told nothing about others */
	m = (struct machine){ .ours = 4.0, .unseen = 2.0, .ran = true };
	play_for(&m, 4.0, 60.0);
	m.ours = m.unseen = 0.0;
	assert_true(fabs(play_for(&m, 5.0, 60.0) - 5.0) < 0.05);
}

TEST(test_a_short_burst_moves_little)
{
	struct machine m = { 0 };

	play_for(&m, 0.0, 5.0);
	for (int i = 0; i < 5; i++)
		play(&m, 2.0, 0.1);
	assert_true(other_load_processes(&m.o) == 0.0);
	assert_true(play(&m, 0.0, 0.1) == 0.0);
}

TEST(test_a_job_of_ours_that_sleeps_does_not_hide_others_for_long)
{
	struct machine m = { .ours = 8.0 };

	play_for(&m, 0.0, 100.0);
	assert_true(other_load_processes(&m.o) == 0.0);
	m.ours = 0.0;
	assert_true(play_for(&m, 2.0, 4.0) > 1.4);
}

TEST(test_the_rate_of_reading_does_not_matter)
{
	struct machine slow = { 0 }, quick = { 0 };
	double a, b = 0.0;

	play(&slow, 0.0, 1.0);
	play(&quick, 0.0, 1.0);
	a = play_for(&slow, 2.0, 6.0);
	for (int i = 0; i < 60; i++)
		b = play(&quick, 2.0, 0.1);
	assert_true(fabs(a - b) < 0.15);
}

TEST(test_bad_readings_change_nothing)
{
	struct machine m = { 0 };
	double before;
	char same[sizeof stat_text];

	before = play_for(&m, 1.0, 10.0);
	assert_true(before > 0.9);
	assert_true(other_load_sample(&m.o, "", NULL, nobody, 1.0) == before);
	assert_true(other_load_sample(&m.o, "rubbish", pressure_text, nobody, 1.0) == before);
	assert_true(other_load_sample(&m.o, stat_text, NULL, (struct other_load_ours){ NAN, NAN }, 1.0) ==
		    before);
	assert_true(other_load_sample(&m.o, stat_text, NULL, (struct other_load_ours){ -1.0, NAN }, 1.0) ==
		    before);
	assert_int_equal(m.o.n_bad, 4);
	memcpy(same, stat_text, sizeof same);
	other_load_sample(&m.o, stat_text, pressure_text, nobody,
			  100.0); /* a gap: new marks, the old estimate */
	assert_true(other_load_processes(&m.o) == before);
	assert_true(other_load_sample(&m.o, same, pressure_text, nobody, 1.0) ==
		    before); /* not a tick later */
	assert_true(other_load_sample(&m.o, same, pressure_text, nobody, 0.0) == before);
	assert_true(other_load_sample(&m.o, same, pressure_text, nobody, NAN) == before);
	assert_true(other_load_sample(&m.o, "cpu 1 1 1 1\ncpu0 1 1 1 1\nprocs_running 1\n", NULL, nobody,
				      1.0) == before);
	assert_true(isfinite(other_load_processes(&m.o)));
}

/* ---- this machine ---- */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For so many seconds; the mean of the estimates of the last one, and how far they lie apart in
 * *out_spread. */
static double watch(struct other_load *o, double seconds, double *out_spread)
{
	double begun = now_s(), last = begun, sum = 0.0, low = INFINITY, high = 0.0;
	int n = 0;

	while (now_s() < begun + seconds) {
		char *text = NULL, *pressure = NULL;
		double at, v;
		size_t len;

		usleep(50000);
		assert_int_equal(io_read_file("/proc/stat", (size_t)1 << 20, &text, &len, NULL), 0);
		io_read_file("/proc/pressure/cpu", 4096, &pressure, &len, NULL);
		at = now_s();
		v = other_load_sample(o, text, pressure, nobody, at - last);
		last = at;
		free(text);
		free(pressure);
		if (at > begun + seconds - 1.0) {
			sum += v;
			low = fmin(low, v);
			high = fmax(high, v);
			n++;
		}
	}
	*out_spread = high - low;
	return sum / n;
}

TEST(test_a_real_hog_is_one_process)
{
	struct other_load o = { 0 };
	double quiet, busy, after, spread;
	pid_t hog;

	if (sanitized()) { /* other tests run meanwhile: the files are read, and nothing is judged */
		assert_true(watch(&o, 1.2, &spread) >= 0.0);
		return;
	}
	quiet = watch(&o, 3.0, &spread);
	if (quiet > 0.5 || spread > 0.3) {
		printf("skipped: %.2f processes of others (+- %.2f) keep this machine busy\n", quiet, spread);
		skip();
	}
	hog = fork();
	assert_true(hog >= 0);
	if (hog == 0) {
		for (;;)
			__asm__ volatile("");
	}
	busy = watch(&o, 5.0, &spread);
	kill(hog, SIGKILL);
	waitpid(hog, NULL, 0);
	after = watch(&o, 4.0, &spread);
	printf("others: %.2f processes, with a hog %.2f, after it %.2f\n", quiet, busy, after);
	if (after > 0.6) {
		printf("skipped: others became busy meanwhile\n");
		skip();
	}
	assert_true(busy - quiet > 0.7 && busy - quiet < 1.6);
}
