/* queueing/cycle.h: the closed cycle against known answers and the general solver, and its fit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "tests/support/closed.h"
#include "queueing/cycle.h"
#include "tests/support/test.h"

static void near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.12g, want %.12g", got, want);
}

TEST(test_one_process_waits_for_nobody)
{
	near(cycle_time_s(0.3, 2.0, 0.07, 0.11, 1.0), 0.48, 1e-12);
	near(cycle_time_s(0.3, INFINITY, 0.07, 0.11, 1.0), 0.48, 1e-12);
	near(cycle_time_s(0.3, 2.0, 0.0, 0.0, 2.0), 0.3, 1e-12); /* two processes, two cores */
	near(cycle_time_s(0.3, 2.0, 0.0, 0.0, 5.0), 0.75, 1e-12); /* five of them share two */
	near(cycle_time_s(0.0, 2.0, 0.07, 0.0, 9.0), 0.63, 1e-12); /* all at the disk */
	assert_true(cycle_time_s(0.0, 2.0, 0.0, 0.0, 3.0) == 0.0);
}

/* Two processes between one core and one disk with equal demands: by hand 1.5 + 1.5 demands. */
TEST(test_two_processes_between_two_equal_queues)
{
	near(cycle_time_s(0.2, 1.0, 0.2, 0.0, 2.0), 0.6, 1e-12);
}

/* More cores than are followed one by one (CYCLE_EXACT_CORES). */
TEST(test_many_cores_are_shared_evenly)
{
	near(cycle_time_s(0.3, 16.0, 0.0, 0.0, 10.0), 0.3, 1e-12);
	near(cycle_time_s(0.3, 16.0, 0.0, 0.0, 40.0), 0.75, 1e-12);
}

TEST(test_a_part_of_a_process_and_very_many_of_them)
{
	near(cycle_time_s(0.2, 1.0, 0.0, 0.0, 2.5), 0.5, 1e-12);
	near(cycle_time_s(0.3, 2.0, 0.0, 0.0, CYCLE_MOST + 904.0), 0.15 * (CYCLE_MOST + 904.0), 1e-9);
}

/* Mean value analysis of one core and one disk, written down as it is in the books, process after process. */
static double step_by_step(double cpu_s, double disk_s, double delay_s, int processes)
{
	double at_cpu = 0.0, at_disk = 0.0, cycle = 0.0;

	for (int n = 1; n <= processes; n++) {
		double cpu = cpu_s * (1.0 + at_cpu), disk = disk_s * (1.0 + at_disk);

		cycle = cpu + disk + delay_s;
		at_cpu = n / cycle * cpu;
		at_disk = n / cycle * disk;
	}
	return cycle;
}

/* Most of them are not followed one by one where the busiest place is all that counts. */
TEST(test_many_processes_take_what_they_take_step_by_step)
{
	struct rng rng = rng_stream(7, 3);

	for (int k = 0; k < 3000; k++) {
		double cpu_s = rng_uniform(&rng), delay_s = (k % 5) * 3.0 * rng_uniform(&rng);
		double disk_s = k % 7 == 0 ? cpu_s : cpu_s * exp(2.0 * rng_normal(&rng));
		int n = 1 + (int)rng_below(&rng, 2000);
		double all = step_by_step(cpu_s, disk_s, delay_s, n),
		       more = step_by_step(cpu_s, disk_s, delay_s, n + 1);

		near(cycle_time_s(cpu_s, 1.0, disk_s, delay_s, n), all, 1e-11);
		near(cycle_time_s(cpu_s, 1.0, disk_s, delay_s, n + 0.37), all + 0.37 * (more - all), 1e-11);
	}
}

TEST(test_it_is_the_solution_of_the_general_solver)
{
	struct rng rng = rng_stream(7, 1);

	for (int k = 0; k < 2000; k++) {
		struct closed_station station[] = { { CLOSED_QUEUE, 1 + rng_below(&rng, 8) },
						    { CLOSED_QUEUE, 1 } };
		uint32_t population = 1 + rng_below(&rng, 60);
		double demand[] = { rng_uniform(&rng), 0.2 * rng_uniform(&rng) }, think = rng_uniform(&rng);
		struct closed_network net = { 2, 1, station, demand, &population, &think };
		struct closed_solution s;

		assert_int_equal(closed_exact(&net, NULL, &s, NULL), 0);
		near(cycle_time_s(demand[0], station[0].servers, demand[1], think, population),
		     s.response_s[0] + think, 1e-2); /* as cycle.h says */
		closed_solution_release(&s);
	}
}

TEST(test_more_processes_never_make_it_faster)
{
	for (double cores = 1.0; cores <= 200.0; cores *= 2.7)
		for (double n = 1.0, before = 0.0; n < 9000.0; n += 0.25 + n / 7.0) {
			double t = cycle_time_s(0.31, cores, 0.013, 0.05, n);

			assert_true(isfinite(t) && t >= before * (1.0 - 1e-9));
			before = t;
		}
}

/* Eight cpus on four cores: the start-up once, and every iteration at half speed. */
TEST(test_a_job_wider_than_the_machine_is_stretched_once)
{
	const struct calibrated c = { .value = { [CALIBRATE_FIXED] = 0.02,
						 [CALIBRATE_START] = 5.0,
						 [CALIBRATE_SATURATION] = 10.0,
						 [CALIBRATE_CORES] = 4.0 } };
	const struct cycle m = { .cpu = 1.0, .disk = 1.0, .rest = 1.0 };
	const struct calibrate_job job = {
		.iterations = 1000.0, .batch = 64.0, .cpus = 8.0, .processes = 8.0
	};

	near(cycle_job_s(&c, &m, &job), 5.0 + 1000.0 * 0.04, 1e-9);
}

/* Times that come from such a cycle are explained to their last digits. */
TEST(test_the_fit_finds_the_cycle_that_made_the_times)
{
	struct calibrated c = { .value = { [CALIBRATE_FIXED] = 0.02,
					   [CALIBRATE_RECORD] = 1e-3,
					   [CALIBRATE_EXPONENT] = 0.8,
					   [CALIBRATE_DISK] = 0.01,
					   [CALIBRATE_SATURATION] = 10.0,
					   [CALIBRATE_CORES] = 4.0 } };
	struct cycle truth = { .cpu = 1.3, .disk = 0.7, .rest = 0.4 }, found;
	struct calibrate_job job[96];
	double time_s[96];
	struct calibrate_params p = { .job = job, .time_s = time_s, .n = 96 };

	for (size_t i = 0; i < 96; i++) {
		double cpus = (double)(1 << i % 4);

		job[i] = (struct calibrate_job){ .iterations = 1000.0,
						 .batch = 64 << i / 4 % 4,
						 .cpus = cpus,
						 .processes = cpus * (double)(1 + 2 * (i / 16 % 3)) };
		time_s[i] = cycle_job_s(&c, &truth, &job[i]);
	}
	assert_int_equal(cycle_fit(&p, &c, &found, NULL), 0);
	assert_true(found.sd < 1e-3);
	near(found.cpu, truth.cpu, 0.01);
	near(found.disk, truth.disk, 0.02);
	for (size_t i = 0; i < 48;
	     i++) { /* each job twice, a tenth too long and too short: that is the spread */
		double mean_s = cycle_job_s(&c, &truth, &job[i]);

		job[95 - i] = job[i];
		time_s[i] = mean_s * exp(0.1);
		time_s[95 - i] = mean_s * exp(-0.1);
	}
	assert_int_equal(cycle_fit(&p, &c, &found, NULL), 0);
	near(found.sd, 0.1, 1e-3);
	p.n = 0;
	assert_int_equal(cycle_fit(&p, &c, &found, NULL), -ERR_NODATA);
}
