/* queueing/paper: the Courier paper's model on numbers worked out by hand, and where it is unstable. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "queueing/paper.h"
#include "tests/support/test.h"

#define S_CPU 0.045
#define ROWS 48

/* The paper's levels; mu_D is a plane that stays above lambda_D everywhere. */
static size_t world(struct paper_job *job, double *time_s, double noise)
{
	static const double batch[] = { 64, 128, 256, 512 }, cpus[] = { 1, 2, 4, 8 }, njobs[] = { 1, 3, 5 };
	struct rng rng = rng_stream(7, 7);
	size_t n = 0;

	for (int b = 0; b < 4; b++)
		for (int c = 0; c < 4; c++)
			for (int j = 0; j < 3; j++, n++) {
				double processes = cpus[c] * njobs[j];
				double lambda = fmax(1.0, processes / 3.0) / S_CPU;
				double mu = 137.0 - 0.0731 * batch[b] + 7.9 * processes;

				job[n] = (struct paper_job){ 600000.0 / batch[b], batch[b], processes };
				time_s[n] = job[n].iterations * (S_CPU + 1.0 / (mu - lambda)) *
					    (1.0 + noise * rng_normal(&rng));
			}
	return n;
}

TEST(test_plane_of_exact_times_is_found)
{
	struct paper_job job[ROWS];
	double time_s[ROWS], t;
	struct paper m;
	size_t n = world(job, time_s, 0.0);

	assert_int_equal(paper_fit(job, time_s, n, S_CPU, 3.0, &m, NULL), 0);
	assert_int_equal(m.n_used, ROWS);
	assert_int_equal(m.n_negative, 0);
	/* the inversion divides by a difference of about 5 ms of 50: three digits are lost */
	assert_true(fabs(m.mu[0] - 137.0) < 1e-9 * 137.0);
	assert_true(fabs(m.mu[1] + 0.0731) < 1e-10);
	assert_true(fabs(m.mu[2] - 7.9) < 1e-9);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(paper_time_s(&m, &job[i], &t, NULL), 0);
		assert_true(fabs(t / time_s[i] - 1.0) < 1e-9);
	}
}

TEST(test_known_answer_worked_by_hand)
{
	struct paper m = { .cpu_service_s = 0.05, .workers = 3, .mu = { 100, -0.1, 2 } };
	struct paper_job j = { .iterations = 237, .batch = 200, .processes = 12 };
	double t;

	/* lambda = 12 / 3 * 20 = 80, mu = 100 - 20 + 24 = 104: 237 (0.05 + 1 / 24) */
	assert_int_equal(paper_time_s(&m, &j, &t, NULL), 0);
	assert_true(fabs(t - 237.0 * (0.05 + 1.0 / 24.0)) < 1e-9);
	j.processes = 2; /* fewer than the workers: lambda is that of one, 20; mu = 84 */
	assert_int_equal(paper_time_s(&m, &j, &t, NULL), 0);
	assert_true(fabs(t - 237.0 * (0.05 + 1.0 / 64.0)) < 1e-9);
}

TEST(test_disk_slower_than_its_arrivals_is_unstable_with_the_load)
{
	struct paper m = { .cpu_service_s = 0.05, .workers = 3, .mu = { 100, -0.1, 2 } };
	struct paper_job busy = { .iterations = 237, .batch = 200, .processes = 18 }; /* lambda 120, mu 116 */
	struct paper_job hopeless = { .iterations = 237, .batch = 5000, .processes = 1 }; /* mu below 0 */
	struct err err = { 0 };
	double t = 42.0;

	assert_int_equal(paper_time_s(&m, &busy, &t, &err), -ERR_UNSTABLE);
	assert_non_null(strstr(err.text, "1.034"));
	assert_int_equal(paper_time_s(&m, &hopeless, &t, &err), -ERR_UNSTABLE);
	assert_non_null(strstr(err.text, "load"));
	assert_true(t == 42.0); /* no number is invented */
}

TEST(test_times_faster_than_the_cpu_are_left_out_and_counted)
{
	struct paper_job job[ROWS];
	double time_s[ROWS];
	struct paper m;
	struct err err = { 0 };
	size_t n = world(job, time_s, 0.0);

	time_s[3] = job[3].iterations * S_CPU; /* not a moment for the disk */
	time_s[17] = job[17].iterations * 0.01;
	time_s[20] = NAN;
	assert_int_equal(paper_fit(job, time_s, n, S_CPU, 3.0, &m, NULL), 0);
	assert_int_equal(m.n_negative, 2);
	assert_int_equal(m.n_used, ROWS - 3);
	assert_true(fabs(m.mu[2] - 7.9) < 1e-9);
	for (size_t i = 0; i < n; i++)
		time_s[i] = 1e-6;
	assert_int_equal(paper_fit(job, time_s, n, S_CPU, 3.0, &m, &err), -ERR_UNSTABLE);
	assert_non_null(strstr(err.text, "negative"));
}

TEST(test_service_of_the_cpu_can_be_estimated)
{
	struct paper_job job[ROWS];
	double time_s[ROWS], off = 0.0, t;
	struct paper m;
	size_t n = world(job, time_s, 0.02);

	assert_int_equal(paper_fit(job, time_s, n, 0.0, 3.0, &m, NULL), 0);
	assert_true(m.cpu_service_s > 0.2 * S_CPU && m.cpu_service_s < 1.1 * S_CPU);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(paper_time_s(&m, &job[i], &t, NULL), 0);
		off += fabs(t / time_s[i] - 1.0) / (double)n;
	}
	assert_true(off < 0.03); /* 2 % of noise, and a grid of 19 service times */
}

TEST(test_few_and_equal_rows)
{
	struct paper_job job[3] = { { 1000, 64, 4 }, { 1000, 64, 4 }, { 1000, 64, 4 } };
	double time_s[3] = { 60, 70, 80 }, t;
	struct paper m;

	for (size_t n = 1; n <= 3; n++) {
		assert_int_equal(paper_fit(job, time_s, n, S_CPU, 3.0, &m, NULL), 0);
		assert_true(m.mu[1] == 0.0 && m.mu[2] == 0.0);
		assert_int_equal(paper_time_s(&m, &job[0], &t, NULL), 0);
		assert_true(t >= 60 - 1e-9 && t <= 80);
	}
	assert_int_equal(paper_fit(job, time_s, 0, S_CPU, 3.0, &m, NULL), -ERR_NODATA);
}

TEST(test_senseless_arguments_are_refused)
{
	struct paper_job good = { 1000, 64, 4 };
	struct paper_job bad[] = { { -1, 64, 4 }, { 1000, 0, 4 }, { 1000, 64, NAN }, { INFINITY, 64, 4 } };
	double time_s = 60, t;
	struct paper m;

	assert_int_equal(paper_fit(&good, &time_s, 1, -1.0, 3.0, &m, NULL), -ERR_ARG);
	assert_int_equal(paper_fit(&good, &time_s, 1, NAN, 3.0, &m, NULL), -ERR_ARG);
	assert_int_equal(paper_fit(&good, &time_s, 1, S_CPU, 0.0, &m, NULL), -ERR_ARG);
	assert_int_equal(paper_fit(&good, &time_s, 1, S_CPU, 3.0, &m, NULL), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(paper_time_s(&m, &bad[i], &t, NULL), -ERR_ARG);
		assert_int_equal(paper_fit(&bad[i], &time_s, 1, S_CPU, 3.0, &m, NULL), -ERR_NODATA);
	}
}
