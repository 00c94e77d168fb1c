/* queueing/mm1: closed forms, and no steady state at a load of one. */
#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "queueing/mm1.h"
#include "tests/support/des.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

static const double loads[] = { 0.05, 0.1, 0.25, 0.37, 0.5, 0.62, 0.75, 0.88, 0.95, 0.99 };
enum { N_LOADS = sizeof loads / sizeof loads[0] };

TEST(test_mm1_known_answers)
{
	double response_s;

	/* 0.25 arrivals a second, 2.4 s each: a load of 0.6 and 6 s of response */
	assert_int_equal(mm1_mean_response_s(0.25, 2.4, &response_s, NULL), 0);
	close_to(response_s, 6.0, 1e-15);

	/* the same in the other usual form, 1 / (mu - lambda) */
	assert_int_equal(mm1_mean_response_s(0.3131, 2.37, &response_s, NULL), 0);
	close_to(response_s, 1.0 / (1.0 / 2.37 - 0.3131), 1e-14);

	/* without arrivals or service nobody waits */
	assert_int_equal(mm1_mean_response_s(0.0, 7.3, &response_s, NULL), 0);
	assert_true(response_s == 7.3);
	assert_int_equal(mm1_mean_response_s(7.3, 0.0, &response_s, NULL), 0);
	assert_true(response_s == 0.0);
}

/* rho / (1 - rho) are in the system. */
TEST(test_mm1_obeys_littles_law_at_every_load)
{
	double before_s = 0.0;

	for (size_t i = 0; i < N_LOADS; i++) {
		double service_s = 0.0371, rate = loads[i] / service_s, response_s;

		assert_int_equal(mm1_mean_response_s(rate, service_s, &response_s, NULL), 0);
		close_to(rate * response_s, loads[i] / (1.0 - loads[i]), 1e-13);
		assert_true(response_s > before_s);
		before_s = response_s;
	}
}

TEST(test_mm1_refuses_load_of_one_and_more)
{
	static const double over[] = { 1.0, 1.0625, 1.5, 17.0, 1e300 };

	for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
		double out = 77.0;
		struct err err = { 0 };

		assert_int_equal(mm1_mean_response_s(over[i] / 4.0, 4.0, &out, &err), -ERR_UNSTABLE);
		assert_true(out == 77.0);
		if (i == 1)
			assert_non_null(strstr(err.text, "1.06"));
	}
}

TEST(test_mm1_refuses_numbers_that_make_no_sense)
{
	static const double bad[] = { NAN, -1e-9, -3.0, INFINITY, -INFINITY };
	double out = 77.0;

	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(mm1_mean_response_s(bad[i], 0.1, &out, NULL), -ERR_ARG);
		assert_int_equal(mm1_mean_response_s(0.1, bad[i], &out, NULL), -ERR_ARG);
		assert_int_equal(mm1_implied_service_s(bad[i], 0.1, &out, NULL), -ERR_ARG);
	}
	assert_int_equal(mm1_implied_service_s(0.1, NAN, &out, NULL), -ERR_ARG);
	assert_int_equal(mm1_implied_service_s(0.1, INFINITY, &out, NULL), -ERR_ARG);
	assert_int_equal(mm1_mean_response_s(9.9e-309, 1e308, &out, NULL), -ERR_NUMERIC); /* 1e310 s */
	assert_true(out == 77.0);
}

TEST(test_mm1_implied_service_undoes_the_response)
{
	struct err err = { 0 };
	double response_s, service_s = 77.0;

	assert_int_equal(mm1_implied_service_s(22.2, -0.013, &service_s, &err), -ERR_UNSTABLE);
	assert_non_null(strstr(err.text, "-0.013"));
	assert_non_null(strstr(err.text, "load -0.2886"));
	assert_true(service_s == 77.0);
	for (size_t i = 0; i < N_LOADS; i++) {
		assert_int_equal(mm1_mean_response_s(loads[i] / 0.0371, 0.0371, &response_s, NULL), 0);
		assert_int_equal(mm1_implied_service_s(loads[i] / 0.0371, response_s, &service_s, NULL), 0);
		close_to(service_s, 0.0371, 1e-13);
	}
	assert_int_equal(mm1_implied_service_s(22.2, 0.0, &service_s, NULL), 0);
	assert_true(service_s == 0.0);
	assert_int_equal(mm1_implied_service_s(1e200, 1e200, &service_s, NULL), 0);
	close_to(service_s, 1e-200, 1e-12);
}

TEST(test_mm1_never_answers_with_anything_but_a_finite_number)
{
	struct rng rng = rng_stream(support_seed(5), 0);

	for (int i = 0; i < 200000; i++) {
		double rate = pow(10.0, 620.0 * rng_uniform(&rng) - 310.0);
		double service_s = pow(10.0, 620.0 * rng_uniform(&rng) - 310.0), response_s = 0.0;

		if (i % 2) /* half of them near saturation */
			rate = (1.0 - pow(10.0, -17.0 * rng_uniform(&rng))) / service_s;
		if (!mm1_mean_response_s(rate, service_s, &response_s, NULL) &&
		    !(isfinite(response_s) && response_s >= service_s))
			fail_msg("rate %g, service %g s: %g s", rate, service_s, response_s);
	}
}

/* The interval is a promise of 99 %; the seeds are fixed. Near saturation a mean over 1e7 events is itself
 * uncertain by more than 1 % (by 25 % at a load of 0.99), so there only the interval is asked for. */
TEST(test_mm1_agrees_with_the_simulation)
{
	static const struct {
		double load, share;
	} run[] = { { 0.05, 0.01 }, { 0.45, 0.01 }, { 0.7, 0.01 }, { 0.9, 0.05 }, { 0.99, 0.35 } };

	for (size_t i = 0; i < 5; i++) {
		struct des_station s = { .service_s = 2.37 };
		struct des_params p = { .station = &s,
					.n_stations = 1,
					.arrivals_per_s = run[i].load / 2.37,
					.within_s = 5.1,
					.events = 10000000 / des_thrift(),
					.seed = support_seed(42) };
		struct des_result r;
		double response_s;

		assert_int_equal(des_run(&p, &r, NULL), 0);
		assert_int_equal(mm1_mean_response_s(p.arrivals_per_s, 2.37, &response_s, NULL), 0);
		assert_true(des_agrees(r.response_s, response_s, run[i].share));
		/* the response time is exponential (Kleinrock I, section 5.7) */
		assert_true(des_agrees(r.within, -expm1(-5.1 / response_s), run[i].share));
		assert_true(des_agrees(r.throughput_per_s, p.arrivals_per_s, 0.01));
		/* Little's law in the simulator: it holds but for the customers at the two ends */
		close_to(r.number[0], r.throughput_per_s.mean * r.response_s.mean,
			 0.002 * sqrt(des_thrift()));
		close_to(r.busy[0], run[i].load, 0.01 * sqrt(des_thrift()));
	}
}
