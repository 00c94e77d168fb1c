/* queueing/calibrate_phases: what runs tell of their phases splits their time where few rows cannot. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "queueing/calibrate.h"
#include "tests/support/test.h"

#define HELD_OUT 240
#define SEEDS 12

struct runs {
	struct calibrate_job job[HELD_OUT];
	double time_s[HELD_OUT];
	size_t n;
};

/* Runs of 1 to 8 epochs by one or two processes each, among up to `most` times as many on two cores. */
static void measure(const struct calibrated *of, size_t n, size_t most, double noise, uint64_t seed,
		    struct runs *out)
{
	static const double batch[] = { 16, 32, 64, 128, 256 };
	struct rng rng = rng_stream(seed, 21);

	*out = (struct runs){ .n = n };
	for (size_t i = 0; i < n; i++) {
		struct calibrate_job *j = &out->job[i];
		struct calibrate_parts p;
		double slow = exp(noise * rng_normal(&rng));

		j->batch = batch[rng_below(&rng, 5)];
		j->cpus = 1 + rng_below(&rng, 2);
		j->processes = j->cpus * (1 + rng_below(&rng, most));
		j->iterations = 6000.0 / j->batch * (1 << rng_below(&rng, 4));
		p = calibrate_parts_of(of, j);
		out->time_s[i] = slow * (p.start_s + p.cpu_s + p.disk_s + p.delay_s);
		j->seen.phase_s[PHASE_FETCH] = slow * p.disk_s * exp(0.1 * rng_normal(&rng));
		j->seen.phase_s[PHASE_COMPUTE] = slow * 0.9 * p.cpu_s;
		j->seen.phase_s[PHASE_TEST] = slow * 0.1 * p.cpu_s;
		j->seen.phase_s[PHASE_SYNC] = slow * p.delay_s * exp(0.1 * rng_normal(&rng));
	}
}

static struct calibrated fit(const struct runs *r, bool phases)
{
	static struct runs copy;
	struct calibrate_params p = { .job = copy.job, .n = r->n, .time_s = copy.time_s, .cores = 2 };
	struct calibrated m;
	struct err err = { 0 };

	copy = *r;
	for (size_t i = 0; i < r->n && !phases; i++)
		memset(&copy.job[i].seen, 0, sizeof copy.job[i].seen);
	if (calibrate_fit(&p, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

/* Of jobs that were not measured: the mean relative error of times, and the mean share of the time that is
 * put in the wrong place. */
static void judge(const struct calibrated *m, const struct calibrated *of, double *out_time,
		  double *out_split)
{
	static struct runs r;

	measure(of, HELD_OUT, 4, 0.0, 99, &r);
	for (size_t i = 0; i < r.n; i++) {
		struct calibrate_parts a = calibrate_parts_of(m, &r.job[i]),
				       b = calibrate_parts_of(of, &r.job[i]);
		double t = calibrate_time_s(m, &r.job[i]);

		*out_time += fabs(t / r.time_s[i] - 1.0) / HELD_OUT;
		*out_split += 0.5 *
			      (fabs(a.start_s / t - b.start_s / r.time_s[i]) +
			       fabs(a.cpu_s / t - b.cpu_s / r.time_s[i]) +
			       fabs(a.disk_s / t - b.disk_s / r.time_s[i]) +
			       fabs(a.delay_s / t - b.delay_s / r.time_s[i])) /
			      HELD_OUT;
	}
}

static struct calibrated truth(void)
{
	struct calibrated of = { .value = { 2.1e-3, 1.3e-4, 0.87, 2.9e-3, 1.7e-5, 5.3, 2 } };

	of.value[CALIBRATE_START] = 0.43;
	of.value[CALIBRATE_DELAY] = 2.3e-3;
	return of;
}

TEST(test_phases_split_the_time_of_few_runs)
{
	static const size_t rows[] = { 16, 24, 32 };
	struct calibrated of = truth();

	for (size_t most = 1; most <= 4; most += 3)
		for (size_t k = 0; k < 3; k++) {
			double time[2] = { 0 }, split[2] = { 0 };

			for (uint64_t seed = 1; seed <= SEEDS; seed++) {
				static struct runs r;

				measure(&of, rows[k], most, 0.05, seed, &r);
				for (int phases = 0; phases < 2; phases++) {
					struct calibrated m = fit(&r, phases);

					judge(&m, &of, &time[phases], &split[phases]);
				}
			}
			printf("%zu rows, up to %zu jobs: MAPE %.1f %% without phases, %.1f %% with; "
			       "misplaced %.1f %%, %.1f %%\n",
			       rows[k], most, 100.0 * time[0] / SEEDS, 100.0 * time[1] / SEEDS,
			       100.0 * split[0] / SEEDS, 100.0 * split[1] / SEEDS);
			/* Held out are runs among up to 8 processes, also for a table without. */
			assert_true(time[1] < 0.75 * time[0]);
			assert_true(split[1] / SEEDS < (most > 1 ? 0.03 : 0.08) &&
				    split[1] < 0.25 * split[0]);
		}
}

/* What cannot be true changes nothing: longer than the run, less than nothing, or told by too few. */
TEST(test_phases_that_cannot_be_true_are_not_looked_at)
{
	struct calibrated of = truth(), m, blind;
	static struct runs r;

	for (int wrong = 0; wrong < 3; wrong++) {
		measure(&of, 24, 4, 0.05, 5, &r);
		for (size_t i = 0; i < r.n; i++) {
			double *s = r.job[i].seen.phase_s;

			if (wrong == 0)
				s[PHASE_COMPUTE] = 1.1 * r.time_s[i]; /* a sum over workers, perhaps */
			else if (wrong == 1)
				s[PHASE_SYNC] = i % 2 ? -0.1 : NAN;
			else if (i > 3)
				memset(s, 0, sizeof r.job[i].seen.phase_s);
		}
		m = fit(&r, true);
		blind = fit(&r, false);
		assert_memory_equal(m.value, blind.value, sizeof m.value);
	}
}

/* Phases that contradict the times count for little: computing is told as fetching, alone and in a crowd
 * that stretches it by the cores. */
TEST(test_phases_that_contradict_the_times_do_little_harm)
{
	struct calibrated of = { .value = { 2.1e-3, 1.3e-4, 0.87, 0, 0, 9, 2 } };
	double time[2] = { 0 }, split[2] = { 0 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct runs r;

		measure(&of, 48, 4, 0.03, seed, &r);
		for (size_t i = 0; i < r.n; i++) {
			double *s = r.job[i].seen.phase_s;

			s[PHASE_FETCH] = 0.5 * s[PHASE_COMPUTE];
			s[PHASE_COMPUTE] *= 0.5;
		}
		for (int phases = 0; phases < 2; phases++) {
			struct calibrated m = fit(&r, phases);

			judge(&m, &of, &time[phases], &split[phases]);
		}
	}
	printf("MAPE %.2f %% without wrong phases, %.2f %% with\n", 100.0 * time[0] / SEEDS,
	       100.0 * time[1] / SEEDS);
	assert_true(time[1] < time[0] + 0.03 * SEEDS);
}

/* A program that calls computing what it waits for: the cores that it kept busy tell. */
TEST(test_what_keeps_no_core_busy_is_waiting)
{
	struct calibrated of = { .value = { 1e-4, 1e-6, 0.87, 0, 0, 9, 2 } }, m;
	struct calibrate_job among = { .iterations = 400, .batch = 64, .cpus = 2, .processes = 8 };
	static struct runs r;

	of.value[CALIBRATE_START] = 0.43;
	of.value[CALIBRATE_DELAY] = 2.3e-3;
	measure(&of, 24, 1, 0.03, 7, &r);
	for (size_t i = 0; i < r.n; i++) {
		double *s = r.job[i].seen.phase_s;

		r.job[i].seen.cpu_used = r.job[i].cpus * (s[PHASE_COMPUTE] + s[PHASE_TEST]) / r.time_s[i];
		s[PHASE_COMPUTE] += s[PHASE_SYNC];
		s[PHASE_SYNC] = 0.0;
	}
	m = fit(&r, true);
	assert_true(fabs(m.value[CALIBRATE_DELAY] / 2.3e-3 - 1.0) < 0.15);
	assert_true(fabs(calibrate_time_s(&m, &among) / calibrate_time_s(&of, &among) - 1.0) < 0.1);
}

/* Records that come out of memory are copied by the cpu, whatever the program calls it. */
TEST(test_what_keeps_a_core_busy_is_no_disk)
{
	struct calibrated of = { .value = { 2.1e-3, 1.3e-4, 0.87, 0, 0, 9, 2 } }, m;
	struct calibrate_job among = { .iterations = 400, .batch = 64, .cpus = 2, .processes = 8 };
	static struct runs r;

	measure(&of, 32, 1, 0.03, 7, &r);
	for (size_t i = 0; i < r.n; i++) {
		double *s = r.job[i].seen.phase_s;

		r.job[i].seen.cpu_used = r.job[i].cpus;
		s[PHASE_FETCH] = 0.3 * s[PHASE_COMPUTE];
		s[PHASE_COMPUTE] *= 0.7;
	}
	m = fit(&r, true);
	assert_true(calibrate_parts_of(&m, &among).disk_s < 0.05 * calibrate_time_s(&m, &among));
	assert_true(fabs(calibrate_time_s(&m, &among) / calibrate_time_s(&of, &among) - 1.0) < 0.1);
}

/* Among more processes than cores a worker waits at the barrier for those that have no core: the run calls it
 * waiting, and it is the stretch of their computing. */
TEST(test_a_barrier_in_a_crowd_is_no_delay)
{
	struct calibrated of = truth();
	struct calibrate_job alone = { .iterations = 400, .batch = 64, .cpus = 2, .processes = 2 };
	double cpu_s = 0.0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct runs r;
		struct calibrated m;

		measure(&of, 32, 4, 0.03, seed, &r);
		for (size_t i = 0; i < r.n; i++) {
			double *s = r.job[i].seen.phase_s, stretch = fmax(1.0, r.job[i].processes / 2.0);

			s[PHASE_SYNC] += s[PHASE_COMPUTE] * (1.0 - 1.0 / stretch);
			s[PHASE_COMPUTE] /= stretch;
		}
		m = fit(&r, true);
		cpu_s += calibrate_parts_of(&m, &alone).cpu_s / SEEDS;
	}
	assert_true(fabs(cpu_s / calibrate_parts_of(&of, &alone).cpu_s - 1.0) < 0.05);
}
