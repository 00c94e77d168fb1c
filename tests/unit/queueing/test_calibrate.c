/* queueing/calibrate: known costs are found again, and unknown ones are named. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/rng.h"
#include "queueing/calibrate.h"
#include "queueing/calibrate_internal.h"
#include "tests/support/test.h"

#define ROWS 480

/* A truth with awkward numbers, its terms large enough to be told apart. */
static const struct calibrated truth = {
	.value = { 0.031, 2.37e-4, 0.83, 0.0213, 1.71e-4, 17.3, INFINITY },
	.n_categories = 1,
	.factor_log = { [CALIBRATE_OF_RECORD] = { -1.13 }, [CALIBRATE_OF_FIXED] = { 0.19 } },
};

static double parameter(const struct calibrated *m, enum calibrate_parameter p)
{
	return m->value[p];
}

/* Replications of the paper's 96 settings. */
static size_t world(const struct calibrated *m, size_t replications, double noise, uint64_t seed,
		    struct calibrate_job *job, double *time_s)
{
	static const double batch[] = { 64, 128, 256, 512 }, cpus[] = { 1, 2, 4, 8 }, njobs[] = { 1, 3, 5 };
	struct rng rng = rng_stream(seed, 11);
	size_t n = 0;

	for (size_t r = 0; r < replications; r++)
		for (size_t s = 0; s < 96; s++, n++) {
			job[n] = (struct calibrate_job){ .batch = batch[s / 24],
							 .cpus = cpus[s / 2 % 4],
							 .category = { (double)(s % 2) } };
			job[n].processes = job[n].cpus * njobs[s / 8 % 3];
			job[n].iterations = 600000.0 / job[n].batch;
			time_s[n] = calibrate_time_s(m, &job[n]) * exp(noise * rng_normal(&rng));
		}
	return n;
}

static struct calibrated fit(const struct calibrate_job *job, const double *time_s, size_t n,
			     size_t n_categories, double cores)
{
	struct calibrate_params p = {
		.job = job, .n = n, .time_s = time_s, .n_categories = n_categories, .cores = cores
	};
	struct calibrated m;
	struct err err = { 0 };

	if (calibrate_fit(&p, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

/* Runs of 1 to 8 epochs, by one or two processes each, among 1 to 8 on two cores: a computing network,
 * and one that waits (category 1). */
static size_t two_cores(const struct calibrated *m, size_t most, double noise, uint64_t seed,
			struct calibrate_job *job, double *time_s)
{
	static const double batch[] = { 16, 32, 64, 128, 256 };
	struct rng rng = rng_stream(seed, 12);

	for (size_t n = 0; n < most; n++) {
		job[n] = (struct calibrate_job){ .batch = batch[rng_below(&rng, 5)],
						 .cpus = 1 + rng_below(&rng, 2),
						 .category = { rng_below(&rng, 2) } };
		job[n].processes = job[n].cpus * (1 + rng_below(&rng, 4));
		job[n].iterations = 6000.0 / job[n].batch * (1 << rng_below(&rng, 4));
		time_s[n] = calibrate_time_s(m, &job[n]) * exp(noise * rng_normal(&rng));
	}
	return most;
}

static double worst_error(const struct calibrated *m, const struct calibrated *of)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = two_cores(of, ROWS, 0.0, 99, job, time_s);
	double worst = 0.0;

	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(log(calibrate_time_s(m, &job[i]) / time_s[i])));
	return worst;
}

/* Runs of two networks with no, one, two or four devices, among others; `all`: every run has one. */
static size_t with_devices(const struct calibrated *m, double noise, bool all, struct calibrate_job *job,
			   double *time_s)
{
	static const double batch[] = { 32, 64, 128, 256 }, devices[] = { 0, 1, 2, 4 };
	struct rng rng = rng_stream(4, 13);
	size_t n = 0;

	for (size_t s = 0; s < 4 * 4 * 3 * 5; s++, n++) {
		job[n] = (struct calibrate_job){ .batch = batch[s % 4],
						 .devices = all ? 1.0 : devices[s / 4 % 4],
						 .cpus = 1 << s / 16 % 3,
						 .category = { (double)(s / 48 % 2) } };
		job[n].processes = job[n].cpus * (1 + rng_below(&rng, 2));
		job[n].iterations = 24000.0 / job[n].batch * (1 + rng_below(&rng, 3));
		time_s[n] = calibrate_time_s(m, &job[n]) * exp(noise * rng_normal(&rng));
	}
	return n;
}

TEST(test_devices_are_a_station_of_their_own)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated of = { .value = { 2.1e-3, 3.1e-4, 0.87, 0, 0, 9, 16 }, .uses_devices = 1 }, m;
	struct calibrate_job one = { .iterations = 100,
				     .batch = 64,
				     .cpus = 2,
				     .processes = 2,
				     .devices = 1 },
			     four = one, none = one;
	struct calibrate_parts p;
	size_t n;

	of.value[CALIBRATE_DELAY] = 1.3e-3;
	of.value[CALIBRATE_DELAY_RECORD] = 4.3e-5;
	n = with_devices(&of, 0.02, false, job, time_s);
	m = fit(job, time_s, n, 0, 16);
	printf("record %g, at devices %g and %g per record, sd %g\n", m.value[CALIBRATE_RECORD],
	       m.value[CALIBRATE_DELAY], m.value[CALIBRATE_DELAY_RECORD], m.sd);
	assert_true(m.uses_devices && m.sd < 0.03);
	assert_true(fabs(m.value[CALIBRATE_DELAY_RECORD] / 4.3e-5 - 1.0) < 0.05);
	assert_true(fabs(m.value[CALIBRATE_RECORD] / 3.1e-4 - 1.0) < 0.05);
	assert_true(fabs(m.value[CALIBRATE_EXPONENT] - 0.87) < 0.05);
	/* with devices records are computed there, faster with more of them; without there is no delay */
	four.devices = 4;
	none.devices = 0;
	p = calibrate_parts_of(&of, &one);
	assert_true(fabs(p.delay_s - 100 * (1.3e-3 + 4.3e-5 * 64)) < 1e-12);
	assert_true(fabs(p.cpu_s - 100 * 2.1e-3) < 1e-12);
	p = calibrate_parts_of(&of, &four);
	assert_true(fabs(p.delay_s - 100 * (1.3e-3 + 4.3e-5 * 64 / 4)) < 1e-12);
	p = calibrate_parts_of(&of, &none);
	assert_true(p.delay_s == 0.0 && p.cpu_s > 100 * (2.1e-3 + 3.1e-4 * 64 / 2));
	/* nobody stretches the time at the devices */
	one.processes = 64;
	assert_true(calibrate_parts_of(&of, &one).delay_s == 100 * (1.3e-3 + 4.3e-5 * 64));
}

/* Where all runs have as many devices, the table says nothing about them: they are not looked at. */
TEST(test_devices_that_never_differ_change_nothing)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated of = { .value = { 2.1e-3, 3.1e-4, 0.87, 0, 0, 9, 16 } }, m, without;
	size_t n = with_devices(&of, 0.02, true, job, time_s);

	m = fit(job, time_s, n, 0, 16);
	for (size_t i = 0; i < n; i++)
		job[i].devices = 0.0;
	without = fit(job, time_s, n, 0, 16);
	assert_false(m.uses_devices);
	assert_memory_equal(m.value, without.value, sizeof m.value);
}

TEST(test_a_start_up_is_found_whatever_its_length)
{
	static const double start_s[] = { 0.5, 3, 10 };
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];

	for (size_t k = 0; k < 3; k++) {
		struct calibrated of = { .value = { 2e-4, 5e-5, 0.9, 0, 0, 9, 2 }, .n_categories = 1 }, m;

		of.value[CALIBRATE_START] = start_s[k];
		m = fit(job, time_s, two_cores(&of, 80, 0.03, 1 + k, job, time_s), 1, 2);
		printf("%g s: %g +- %g\n", start_s[k], m.value[CALIBRATE_START], m.se[CALIBRATE_START]);
		assert_int_equal(m.state[CALIBRATE_START], CALIBRATE_FITTED);
		assert_true(fabs(m.value[CALIBRATE_START] - start_s[k]) < 3.0 * m.se[CALIBRATE_START]);
		assert_true(m.value[CALIBRATE_DELAY] == 0.0 && m.value[CALIBRATE_DELAY_RECORD] == 0.0);
		assert_true(m.sd < 0.04 && worst_error(&m, &of) < 0.06);
	}
}

TEST(test_each_category_has_its_own_start_up_where_it_shows)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated of = { .value = { 2e-4, 5e-5, 0.9, 0, 0, 9, 2 }, .n_categories = 1 }, m;

	of.value[CALIBRATE_START] = 0.5;
	of.factor_log[CALIBRATE_OF_START][0] = log(12.0);
	m = fit(job, time_s, two_cores(&of, 160, 0.03, 5, job, time_s), 1, 2);
	assert_true(fabs(m.factor_log[CALIBRATE_OF_START][0] - log(12.0)) <
		    3.0 * m.factor_se[CALIBRATE_OF_START][0]);
	assert_true(worst_error(&m, &of) < 0.06);
}

TEST(test_waiting_is_told_from_computing_by_a_crowd)
{
	static struct calibrate_job job[ROWS], alone = { .iterations = 100, .batch = 64, .cpus = 2 }, among;
	static double time_s[ROWS];
	struct calibrated of = { .value = { 5e-5, 5e-6, 0.9, 0, 0, 9, 2 }, .n_categories = 1 }, m;
	size_t n, quiet = 0;

	of.value[CALIBRATE_START] = 0.5;
	of.value[CALIBRATE_DELAY] = 4e-3;
	of.value[CALIBRATE_DELAY_RECORD] = 1e-4;
	n = two_cores(&of, 90, 0.03, 7, job, time_s);
	m = fit(job, time_s, n, 1, 2);
	assert_int_equal(m.state[CALIBRATE_DELAY], CALIBRATE_FITTED);
	assert_int_equal(m.state[CALIBRATE_DELAY_RECORD], CALIBRATE_FITTED);
	assert_true(fabs(m.value[CALIBRATE_DELAY] / 4e-3 - 1.0) < 0.2);
	assert_true(fabs(m.value[CALIBRATE_DELAY_RECORD] / 1e-4 - 1.0) < 0.2);
	assert_true(worst_error(&m, &of) < 0.06);
	among = alone;
	alone.processes = 2;
	among.processes = 8;
	assert_true(calibrate_time_s(&m, &among) < 1.2 * calibrate_time_s(&m, &alone));
	/* Without a crowd nothing can tell, and a neighbour is not thought to be harmless. */
	for (size_t i = 0; i < n; i++)
		if (job[i].processes <= 2) {
			job[quiet] = job[i];
			time_s[quiet++] = time_s[i];
		}
	m = fit(job, time_s, quiet, 1, 2);
	assert_int_equal(m.state[CALIBRATE_DELAY], CALIBRATE_STATED);
	assert_true(m.value[CALIBRATE_DELAY] == 0.0 && m.value[CALIBRATE_DELAY_RECORD] == 0.0);
	assert_true(calibrate_time_s(&m, &among) > 2.0 * calibrate_time_s(&m, &alone));
}

/* The runs of a table that have a core for every process, with the cores that they kept busy. */
static size_t measure_busy(const struct calibrated *of, double noise, uint64_t seed,
			   struct calibrate_job *job, double *time_s, size_t n)
{
	struct rng rng = rng_stream(seed, 13);
	size_t quiet = 0;

	for (size_t i = 0; i < n; i++) {
		struct calibrate_parts parts = calibrate_parts_of(of, &job[i]);
		double share = parts.cpu_s / calibrate_time_s(of, &job[i]);

		if (job[i].processes > 2)
			continue;
		job[quiet] = job[i];
		time_s[quiet] = time_s[i];
		job[quiet++].seen.cpu_used = job[i].cpus * share * exp(noise * rng_normal(&rng));
	}
	return quiet;
}

/* What the times of uncrowded runs cannot tell, the cores that they kept busy do. Held out: all crowded
 * runs. */
TEST(test_waiting_is_told_from_computing_by_the_cores_that_were_busy)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];

	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct calibrated of = { .value = { 5e-5, 5e-6, 0.9, 0, 0, 9, 2 }, .n_categories = 1 }, m,
				  blind;
		size_t n;

		of.value[CALIBRATE_START] = 0.5;
		of.value[CALIBRATE_DELAY] = seed % 2 ? 4e-3 : 1e-3; /* it waits nearly always, or much */
		n = measure_busy(&of, 0.05, seed, job, time_s, two_cores(&of, 240, 0.03, seed, job, time_s));
		m = fit(job, time_s, n, 1, 2);
		for (size_t i = 0; i < n; i++)
			job[i].seen.cpu_used = 0.0;
		blind = fit(job, time_s, n, 1, 2);
		printf("seed %d: delay %g ms, worst error %.3f; without what was busy %.3f\n", (int)seed,
		       1e3 * m.value[CALIBRATE_DELAY], worst_error(&m, &of), worst_error(&blind, &of));
		assert_int_equal(m.state[CALIBRATE_DELAY], CALIBRATE_FITTED);
		assert_true(fabs(m.value[CALIBRATE_DELAY] / of.value[CALIBRATE_DELAY] - 1.0) < 0.25);
		assert_true(worst_error(&m, &of) < 0.1 && worst_error(&blind, &of) > 0.5);
		assert_true(m.sd < 0.04 && m.r2 > 0.99); /* of the times alone */
	}
}

/* A job that keeps its cpus busy has no waiting; where a crowd tells, what was busy changes nothing. */
TEST(test_busy_cores_show_no_waiting_where_there_is_none)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated of = { .value = { 2e-4, 5e-5, 0.9, 0, 0, 9, 2 }, .n_categories = 1 }, m, same;
	size_t n = two_cores(&of, 160, 0.03, 3, job, time_s);

	same = fit(job, time_s, n, 1, 2);
	for (size_t i = 0; i < n; i++)
		job[i].seen.cpu_used = 0.01;
	m = fit(job, time_s, n, 1, 2);
	assert_memory_equal(m.value, same.value, sizeof m.value);
	n = measure_busy(&of, 0.05, 3, job, time_s, n);
	m = fit(job, time_s, n, 1, 2);
	assert_true(m.value[CALIBRATE_DELAY] == 0.0 && m.value[CALIBRATE_DELAY_RECORD] == 0.0);
	assert_true(worst_error(&m, &of) < 0.15);
}

TEST(test_one_network_waits_while_the_other_computes)
{
	for (int waits = 0; waits < 2; waits++) { /* the first category, or the second */
		static struct calibrate_job job[ROWS];
		static double time_s[ROWS];
		struct calibrate_job a = { .iterations = 1e3, .batch = 64, .cpus = 2, .processes = 2 }, b = a;
		struct calibrated of = { .value = { 1e-3, 5e-5, 0.9, 0, 0, 9, 2 }, .n_categories = 1 }, m;
		double sign = waits ? 1.0 : -1.0;

		of.value[CALIBRATE_START] = 0.5;
		of.value[CALIBRATE_DELAY] = waits ? 4e-3 * exp(-9.0) : 4e-3;
		of.value[CALIBRATE_DELAY_RECORD] = of.value[CALIBRATE_DELAY] / 40.0;
		of.factor_log[CALIBRATE_OF_DELAY][0] = sign * 9.0;
		of.value[CALIBRATE_FIXED] *= waits ? 1.0 : exp(-9.0);
		of.value[CALIBRATE_RECORD] *= waits ? 1.0 : exp(-9.0);
		of.factor_log[CALIBRATE_OF_RECORD][0] = of.factor_log[CALIBRATE_OF_FIXED][0] = -sign * 9.0;
		m = fit(job, time_s, two_cores(&of, 120, 0.03, 8, job, time_s), 1, 2);
		assert_true(m.sd < 0.04 && worst_error(&m, &of) < 0.08);
		a.category[0] = waits;
		b.category[0] = !waits;
		assert_true(calibrate_parts_of(&m, &a).cpu_s < 0.02 * calibrate_parts_of(&m, &a).delay_s);
		assert_true(calibrate_parts_of(&m, &b).delay_s < 0.02 * calibrate_parts_of(&m, &b).cpu_s);
	}
}

TEST(test_a_table_without_either_shows_neither)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated of = { .value = { 2e-4, 5e-5, 0.9, 0, 0, 9, 2 }, .n_categories = 1 };
	int starts = 0, delays = 0;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct calibrated m = fit(job, time_s, two_cores(&of, 96, 0.05, seed, job, time_s), 1, 2);

		starts += m.value[CALIBRATE_START] > 0.0;
		delays += m.value[CALIBRATE_DELAY] > 0.0 || m.value[CALIBRATE_DELAY_RECORD] > 0.0;
		assert_true(worst_error(&m, &of) < 0.2);
	}
	printf("of 30 tables without, %d show a start-up and %d a delay\n", starts, delays);
	assert_true(starts <= 3 && delays <= 3);
}

TEST(test_a_fixed_cost_that_the_cpus_share_is_told_from_one_that_they_do_not)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	int found[2] = { 0 };

	for (uint8_t shared = 0; shared < 2; shared++) {
		struct calibrated of = { .value = { 3e-3, 5e-5, 0.86, 0, 0, 9, 2 },
					 .n_categories = 1,
					 .share_fixed = shared };

		of.value[CALIBRATE_START] = 0.5;
		for (uint64_t seed = 1; seed <= 20; seed++) {
			struct calibrated m =
				fit(job, time_s, two_cores(&of, 90, 0.02, seed, job, time_s), 1, 2);

			found[shared] += m.share_fixed;
			assert_true(m.share_fixed != shared || worst_error(&m, &of) < 0.1);
		}
	}
	printf("shared by %d of 20 where it is, by %d where it is not\n", found[1], found[0]);
	assert_true(found[1] >= 19 && found[0] <= 1);
}

TEST(test_what_errs_is_the_work_or_the_whole_time)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	int found[2] = { 0 };

	for (int of_work = 0; of_work < 2; of_work++)
		for (uint64_t seed = 1; seed <= 20; seed++) {
			struct calibrated of = { .value = { 3e-3, 5e-5, 0.86, 0, 0, 9, 2 } }, m;
			size_t n = two_cores(&of, 90, of_work ? 0.03 : 0.0, seed, job, time_s);
			struct rng rng = rng_stream(seed, 13);

			for (size_t i = 0; i < n; i++) {
				time_s[i] += 3.0; /* to start */
				if (!of_work)
					time_s[i] *= exp(0.03 * rng_normal(&rng));
			}
			m = fit(job, time_s, n, 0, 2);
			found[of_work] += m.work_errs;
			/* a short run errs by less of its time than a long one, or by as much */
			job[0].iterations = 10.0;
			job[1] = job[0];
			job[1].iterations = 1e6;
			assert_true(m.work_errs
					    ? calibrate_errs(&m, &job[0]) < 0.5 * calibrate_errs(&m, &job[1])
					    : calibrate_errs(&m, &job[0]) == 1.0);
			assert_true(calibrate_errs(&m, &job[1]) > 0.98);
		}
	printf("the work errs in %d of 20 tables where it does, in %d where all of the time does\n", found[1],
	       found[0]);
	assert_true(found[1] >= 18 && found[0] <= 2);
}

TEST(test_category_without_a_cost_keeps_a_finite_factor)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated without = truth, m;
	size_t n;

	without.factor_log[CALIBRATE_OF_RECORD][0] =
		-700.0; /* one network costs nothing per record: its factor has no best value */
	for (uint64_t seed = 1; seed <= 5; seed++) {
		n = world(&without, 2, 0.05, seed, job, time_s);
		m = fit(job, time_s, n, 1, 0);
		assert_true(fabs(m.factor_log[CALIBRATE_OF_RECORD][0]) <= CALIBRATE_MAX_LOG &&
			    fabs(m.factor_log[CALIBRATE_OF_FIXED][0]) <= CALIBRATE_MAX_LOG);
		for (size_t i = 0; i < n; i++)
			assert_true(calibrate_time_s(&m, &job[i]) > 0.0);
	}
}

TEST(test_time_is_the_sum_worked_by_hand)
{
	struct calibrated m = { .value = { 0.03, 2e-4, 0.5, 0.007, 1e-5, 23, 8 } };
	struct calibrate_job j = { .iterations = 237, .batch = 100, .cpus = 4, .processes = 16 };

	/* 16 processes on 8 cores: the CPU's part takes twice as long; 100 records by 4^0.5 = 2 */
	assert_true(fabs(calibrate_time_s(&m, &j) -
			 237 * ((0.03 + 2e-4 * 100 / 2) * 2 + (0.007 + 1e-3) * (1 + 16.0 / 23))) < 1e-9);
	/* a start-up and delays are not stretched */
	m.value[CALIBRATE_START] = 11;
	m.value[CALIBRATE_DELAY] = 0.003;
	m.value[CALIBRATE_DELAY_RECORD] = 4e-5;
	assert_true(fabs(calibrate_time_s(&m, &j) -
			 (11 + 237 * ((0.03 + 2e-4 * 100 / 2) * 2 + (0.007 + 1e-3) * (1 + 16.0 / 23) + 0.003 +
				      4e-5 * 100))) < 1e-9);
	m.share_fixed = 1;
	assert_true(fabs(calibrate_time_s(&m, &j) -
			 (11 + 237 * ((0.03 / 2 + 2e-4 * 100 / 2) * 2 + (0.007 + 1e-3) * (1 + 16.0 / 23) +
				      0.003 + 4e-5 * 100))) < 1e-9);
}

TEST(test_more_processes_than_cores_share_them_once)
{
	/* 16 processes on 8 cores: each has half a core, and the job is as fast as with 8 */
	struct calibrated m = { .value = { 0, 2e-4, 1, 0, 0, 23, 8 } };
	struct calibrate_job eight = { .iterations = 1, .batch = 100, .cpus = 8, .processes = 8 };
	struct calibrate_job sixteen = { .iterations = 1, .batch = 100, .cpus = 16, .processes = 16 };

	assert_true(fabs(calibrate_time_s(&m, &eight) - calibrate_time_s(&m, &sixteen)) < 1e-12);
	m.share_within_cores = 1; /* as models of version 1 had it: at most 8 share, and wait for 16 */
	assert_true(fabs(2.0 * calibrate_time_s(&m, &eight) - calibrate_time_s(&m, &sixteen)) < 1e-12);
}

TEST(test_parameters_of_noisy_times_are_found_within_their_errors)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = world(&truth, 5, 0.02, 3, job, time_s);
	struct calibrated m = fit(job, time_s, n, 1, 0);

	for (int p = CALIBRATE_FIXED; p <= CALIBRATE_SATURATION; p++) {
		printf("%-14s %-9.4g true %-9.4g +- %.2g %s\n", calibrate_name[p], m.value[p], truth.value[p],
		       m.se[p], calibrate_state_name[m.state[p]]);
		assert_int_equal(m.state[p], CALIBRATE_FITTED);
		/* eight estimates: one of them beyond three standard errors would be a one-in-fifty
		 * accident */
		assert_true(fabs(m.value[p] - truth.value[p]) < 3.0 * m.se[p]);
		assert_true(m.se[p] > 0.0 && m.se[p] < 0.6 * m.value[p]);
	}
	assert_true(fabs(m.factor_log[CALIBRATE_OF_RECORD][0] - truth.factor_log[CALIBRATE_OF_RECORD][0]) <
		    3.0 * m.factor_se[CALIBRATE_OF_RECORD][0]);
	assert_true(fabs(m.factor_log[CALIBRATE_OF_FIXED][0] - truth.factor_log[CALIBRATE_OF_FIXED][0]) <
		    3.0 * m.factor_se[CALIBRATE_OF_FIXED][0]);
	assert_int_equal(m.state[CALIBRATE_CORES], CALIBRATE_ABSENT);
	assert_true(m.sd > 0.017 && m.sd < 0.023 && m.r2 > 0.99 && m.mape < 0.02);
	assert_int_equal(m.n_rows, n);
	assert_int_equal(m.n_free, 8);
}

TEST(test_no_more_cpus_than_records_share_a_batch)
{
	struct calibrated m = { .value = { 0, 2e-4, 1, 0, 0, 23, INFINITY } };
	struct calibrate_job eight = { .iterations = 37, .batch = 2, .cpus = 8, .processes = 8 }, two = eight;

	two.cpus = 2;
	assert_true(fabs(calibrate_time_s(&m, &eight) - 37 * 2e-4) < 1e-12);
	assert_true(calibrate_time_s(&m, &two) == calibrate_time_s(&m, &eight));
}

/* A table that counts fewer processes than the job has cpus: the job alone crowds two cores. */
TEST(test_a_job_s_own_cpus_crowd_the_cores)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated of = { .value = { 2e-4, 5e-5, 0.9, 0, 0, 9, 2 }, .n_categories = 1 }, m;
	size_t n = two_cores(&of, 120, 0.0, 21, job, time_s);

	for (size_t i = 0; i < n; i++) {
		job[i].cpus = 1 << i % 4;
		job[i].processes = 1;
		time_s[i] = calibrate_time_s(&of, &job[i]);
	}
	m = fit(job, time_s, n, 1, 2);
	for (size_t i = 0; i < n; i++)
		assert_true(fabs(log(calibrate_time_s(&m, &job[i]) / time_s[i])) < 0.01);
}

/* A single run of a category may be an accident. */
TEST(test_one_row_makes_no_category)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated of = truth, m;
	size_t n;

	of.n_categories = 0;
	n = world(&of, 1, 0.02, 4, job, time_s);
	for (size_t i = 0; i < n; i++)
		job[i].category[0] = i == 17;
	time_s[17] *= 3.0;
	m = fit(job, time_s, n, 1, 0);
	for (int f = 0; f < CALIBRATE_FACTORS; f++)
		assert_true(m.factor_log[f][0] == 0.0 && isnan(m.factor_se[f][0]));
}

/* The exponent is found as its logit; its error is told on its own scale. */
TEST(test_the_exponent_s_error_is_what_it_varies_by)
{
	enum { SEEDS = 10 };
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	double sum = 0.0, squares = 0.0, se = 0.0, sd;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct calibrated m = fit(job, time_s, world(&truth, 1, 0.02, seed, job, time_s), 1, 0);
		double a = m.value[CALIBRATE_EXPONENT];

		sum += a / SEEDS;
		squares += a * a / SEEDS;
		se += m.se[CALIBRATE_EXPONENT] / SEEDS;
	}
	sd = sqrt((squares - sum * sum) * SEEDS / (SEEDS - 1));
	printf("the exponent varies by %.3g, its error is %.3g\n", sd, se);
	/* The sd of ten has a relative error of 24 %; on the scale of the logit it would be 7 times that. */
	assert_true(se > 0.4 * sd && se < 2.5 * sd);
}

TEST(test_akaike_s_criterion_is_corrected_for_few_rows)
{
	/* 20 rows, three parameters and the spread: 20 ln(5/20) + 2 4 + 2 4 5 / 15 */
	assert_true(fabs(calibrate_aicc(20, 3, 5.0) - (20.0 * log(0.25) + 8.0 + 40.0 / 15.0)) < 1e-12);
	assert_true(isinf(calibrate_aicc(5, 3, 5.0)));
}

TEST(test_predictions_are_within_the_noise)
{
	static struct calibrate_job job[ROWS], fresh[ROWS];
	static double time_s[ROWS], fresh_s[ROWS];
	size_t n = world(&truth, 2, 0.02, 4, job, time_s);
	struct calibrated m = fit(job, time_s, n, 1, 0);
	double off = 0.0;

	world(&truth, 1, 0.0, 5, fresh, fresh_s);
	for (size_t i = 0; i < 96; i++)
		off = fmax(off, fabs(log(calibrate_time_s(&m, &fresh[i]) / fresh_s[i])));
	assert_true(off < 0.02); /* the mean of two replications errs by 1.4 %, the fit by less */
}

TEST(test_cores_are_found_where_they_show)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated crowded = truth, m;
	size_t n;

	crowded.value[CALIBRATE_CORES] = 12;
	n = world(&crowded, 3, 0.02, 6, job, time_s);
	m = fit(job, time_s, n, 1, 0);
	assert_int_equal(m.state[CALIBRATE_CORES], CALIBRATE_FITTED);
	assert_true(parameter(&m, CALIBRATE_CORES) == 12); /* one of the loads that occurred */
	m = fit(job, time_s, n, 1, 12);
	assert_int_equal(m.state[CALIBRATE_CORES], CALIBRATE_GIVEN);
	assert_true(fabs(parameter(&m, CALIBRATE_FIXED) / 0.031 - 1.0) < 0.5 && m.sd < 0.023);
}

TEST(test_categories_that_do_not_differ_share_their_costs)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	struct calibrated alike = truth, m;
	size_t n;

	alike.factor_log[CALIBRATE_OF_RECORD][0] = alike.factor_log[CALIBRATE_OF_FIXED][0] = 0.0;
	n = world(&alike, 3, 0.02, 8, job, time_s);
	m = fit(job, time_s, n, 1, 0);
	assert_int_equal(m.n_free, 6);
	assert_true(m.factor_log[CALIBRATE_OF_FIXED][0] == 0.0 &&
		    m.factor_log[CALIBRATE_OF_RECORD][0] == 0.0);
}

TEST(test_redundant_and_constant_categories_do_no_harm)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = world(&truth, 2, 0.02, 9, job, time_s);
	struct calibrated m;

	for (size_t i = 0; i < n; i++) {
		job[i].category[1] = 1.0 - job[i].category[0]; /* one-hot: the second says the same */
		job[i].category[2] = 1.0;
	}
	m = fit(job, time_s, n, 3, 0);
	assert_true(m.sd < 0.023);
	assert_true(m.factor_log[CALIBRATE_OF_RECORD][1] == 0.0 &&
		    m.factor_log[CALIBRATE_OF_RECORD][2] == 0.0 &&
		    isnan(m.factor_se[CALIBRATE_OF_RECORD][1]));
}

TEST(test_what_never_varied_is_stated_and_named)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = 0, all = world(&truth, 2, 0.02, 10, job, time_s);
	struct calibrated m;

	for (size_t i = 0; i < all; i++) /* one job of one cpu alone: nothing but the batch varies */
		if (job[i].cpus == 1 && job[i].processes == 1) {
			job[n] = job[i];
			time_s[n++] = time_s[i];
		}
	m = fit(job, time_s, n, 1, 0);
	assert_int_equal(m.state[CALIBRATE_EXPONENT], CALIBRATE_STATED);
	assert_int_equal(m.state[CALIBRATE_SATURATION], CALIBRATE_STATED);
	assert_int_equal(m.state[CALIBRATE_DISK], CALIBRATE_STATED);
	assert_int_equal(m.state[CALIBRATE_RECORD], CALIBRATE_FITTED);
	assert_true(isnan(m.se[CALIBRATE_EXPONENT]) && parameter(&m, CALIBRATE_EXPONENT) == 0.8);
	assert_true(m.mape < 0.03);
}

TEST(test_any_number_of_rows_gives_a_model)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = world(&truth, 1, 0.02, 12, job, time_s);
	struct rng rng = rng_stream(5, 5);

	for (size_t i = n - 1; i > 0; i--) { /* in random order: the first few are no slice of the design */
		size_t k = rng_below(&rng, (uint32_t)i + 1);
		struct calibrate_job j = job[i];
		double t = time_s[i];

		job[i] = job[k];
		job[k] = j;
		time_s[i] = time_s[k];
		time_s[k] = t;
	}
	for (size_t k = 1; k <= n; k += k < 20 ? 1 : 7) {
		struct calibrated m = fit(job, time_s, k, 1, 0);
		double worst = 0.0;

		assert_true(m.n_free >= 1 && (m.n_free <= k / 2 || m.n_free == 1));
		for (size_t i = 0; i < n; i++) {
			double t = calibrate_time_s(&m, &job[i]);

			assert_true(t > 0.0 && isfinite(t));
			worst = fmax(worst, fabs(log(t / time_s[i])));
		}
		assert_true(worst < 2.5); /* from a single row on it is right within a factor of twelve */
		if (k == 1)
			assert_true(fabs(calibrate_time_s(&m, &job[0]) / time_s[0] - 1.0) < 1e-6);
		if (k > 40)
			assert_true(worst < 0.25);
	}
}

TEST(test_rows_that_make_no_sense_are_left_out)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = world(&truth, 1, 0.02, 13, job, time_s);
	struct calibrate_params p = { .job = job, .time_s = time_s, .n_categories = 1 };
	struct calibrated m;
	struct err err = { 0 };

	time_s[0] = 0.0;
	time_s[1] = NAN;
	job[2].batch = -64;
	job[3].cpus = INFINITY;
	job[4].category[0] = NAN;
	m = fit(job, time_s, n, 1, 0);
	assert_int_equal(m.n_skipped, 5);
	assert_int_equal(m.n_rows, n - 5);
	p.n = 2; /* the two without a time */
	assert_int_equal(calibrate_fit(&p, &m, &err), -ERR_NODATA);
	p.n = 0;
	assert_int_equal(calibrate_fit(&p, &m, &err), -ERR_NODATA);
	p.n_categories = CALIBRATE_MAX_CATEGORIES + 1;
	assert_int_equal(calibrate_fit(&p, &m, &err), -ERR_ARG);
}

TEST(test_same_rows_same_model)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = world(&truth, 1, 0.02, 14, job, time_s);
	struct calibrated a = fit(job, time_s, n, 1, 0), b = fit(job, time_s, n, 1, 0);

	assert_memory_equal(a.value, b.value, sizeof a.value);
	assert_memory_equal(a.se, b.se, sizeof a.se);
	assert_memory_equal(a.factor_log, b.factor_log, sizeof a.factor_log);
}

/* A search asks for the stop flag before each descent, so a fit that succeeds with the flag set was
 * remembered. Whatever differs in the rows is another fit. */
TEST(test_the_same_rows_are_fitted_once_with_a_memo)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS], h[2][ROWS];
	size_t n = two_cores(&truth, 96, 0.02, 14, job, time_s);
	atomic_bool stop = false;
	struct calibrate_params p = {
		.job = job, .n = n, .time_s = time_s, .n_categories = 1, .stop = &stop, .leverage = h[0]
	};
	double *const told[] = { &job[0].iterations, &job[0].batch,         &job[0].cpus,
				 &job[0].processes,  &job[0].seen.cpu_used, &job[0].seen.phase_s[PHASE_FETCH],
				 &job[0].category[0] };
	struct calibrated first, again;

	assert_int_equal(calibrate_memo_new(&p.memo, NULL), 0);
	assert_int_equal(calibrate_fit(&p, &first, NULL), 0);
	stop = true;
	p.leverage = h[1];
	assert_int_equal(calibrate_fit(&p, &again, NULL), 0);
	assert_memory_equal(&first, &again, sizeof first);
	assert_memory_equal(h[0], h[1], n * sizeof h[0][0]);
	p.cores = 2.0;
	assert_int_equal(calibrate_fit(&p, &again, NULL), -ERR_STOPPED);
	p.cores = 0.0;
	for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
		double before = *told[i];

		*told[i] += 0.25;
		assert_int_equal(calibrate_fit(&p, &again, NULL), -ERR_STOPPED);
		*told[i] = before;
		assert_int_equal(calibrate_fit(&p, &again, NULL), 0);
	}
	time_s[n - 1] *= 1.0 + 1e-15;
	assert_int_equal(calibrate_fit(&p, &again, NULL), -ERR_STOPPED);
	time_s[n - 1] = NAN; /* a row less */
	assert_int_equal(calibrate_fit(&p, &again, NULL), -ERR_STOPPED);
	calibrate_memo_free(p.memo);
	p.memo = NULL;
	assert_int_equal(calibrate_fit(&p, &again, NULL), -ERR_STOPPED);
}

TEST(test_leverages_add_up_to_the_parameters)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS], h[ROWS];
	size_t n = world(&truth, 2, 0.02, 15, job, time_s);
	struct calibrate_params p = {
		.job = job, .n = n, .time_s = time_s, .n_categories = 1, .leverage = h
	};
	struct calibrated m;
	double sum = 0.0;

	time_s[7] = -1.0;
	assert_int_equal(calibrate_fit(&p, &m, NULL), 0);
	assert_true(isnan(h[7]));
	for (size_t i = 0; i < n; i++)
		sum += i == 7 ? 0.0 : h[i];
	assert_true(fabs(sum - (double)m.n_free) < 1e-6); /* the trace of a projection */
}

TEST(test_sentence_says_what_a_person_wants_to_know)
{
	struct calibrated m = { .value = { 0.041, 1.1e-4, 0.84, 0.0074, 0, 23, INFINITY } };
	char text[300], tiny[8];

	assert_string_equal(calibrate_sentence(&m, text, sizeof text),
			    "0.041 s per iteration fixed, 0.11 ms per record per cpu (shared by cpus^0.84), "
			    "disk 7.4 ms, saturation at 23 processes");
	m.value[CALIBRATE_CORES] = 48;
	assert_non_null(
		strstr(calibrate_sentence(&m, text, sizeof text), "shared evenly beyond 48 processes"));
	m.value[CALIBRATE_START] = 0.5;
	m.value[CALIBRATE_DELAY_RECORD] = 3.1e-3;
	assert_non_null(strstr(calibrate_sentence(&m, text, sizeof text), "0.5 s to start, 0.041 s per"));
	assert_non_null(strstr(text, ", waiting elsewhere 3.1 ms per record,"));
	m.value[CALIBRATE_DISK] = 0;
	assert_null(strstr(calibrate_sentence(&m, text, sizeof text), "saturation"));
	assert_int_equal(strlen(calibrate_sentence(&m, tiny, sizeof tiny)), sizeof tiny - 1);
}

TEST(test_prediction_takes_well_under_a_microsecond)
{
	struct calibrate_job j = {
		.iterations = 1000, .batch = 64, .cpus = 2, .processes = 6, .category = { 1 }
	};
	struct timespec a, b;
	double sum = 0.0, each_ns;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < 200000; i++) {
		j.batch = 64 + i % 7;
		sum += calibrate_time_s(&truth, &j);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	each_ns = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 200000;
	printf("%.0f ns a prediction\n", each_ns);
	assert_true(sum > 0.0);
	assert_true(each_ns < 5000.0); /* sanitizers and a busy machine are allowed for; it takes about 50 */
}

TEST(test_memory_failures_are_survived)
{
	static struct calibrate_job job[ROWS];
	static double time_s[ROWS];
	size_t n = world(&truth, 1, 0.02, 16, job, time_s);

	for (unsigned long k = 1;; k++) {
		struct calibrate_params p = { .job = job, .n = n, .time_s = time_s, .n_categories = 1 };
		struct calibrated m;
		int rc;

		mem_fail_at(k, false);
		rc = calibrate_fit(&p, &m, NULL);
		mem_fail_at(0, false);
		if (!rc) {
			assert_true(k > 3);
			break;
		}
		assert_int_equal(rc, -ERR_NOMEM);
	}
}
