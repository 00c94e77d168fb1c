/* queueing/mg1: Pollaczek-Khinchine against special cases and the simulator. */
#include <math.h>
#include <string.h>

#include "queueing/mg1.h"
#include "queueing/mm1.h"
#include "tests/support/des.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

TEST(test_mg1_known_answers)
{
	struct mg1 q;

	/* load 0.6, mean 2.4 s, C^2 = 3: W = 0.6 x 2.4 x 4 / (2 x 0.4) = 7.2 s */
	assert_int_equal(mg1_solve(0.25, 2.4, 3.0, &q, NULL), 0);
	close_to(q.load, 0.6, 1e-15);
	close_to(q.wait_s, 7.2, 1e-14);
	close_to(q.response_s, 9.6, 1e-14);
	close_to(q.in_queue, 1.8, 1e-14);
	close_to(q.in_system, 2.4, 1e-14);
}

TEST(test_mg1_lies_between_its_special_cases)
{
	static const double loads[] = { 0.0, 0.05, 0.31, 0.5, 0.77, 0.95, 0.99 };

	for (size_t i = 0; i < 7; i++) {
		double rate = loads[i] / 0.37;
		struct mg1 exponential, constant, wild;
		struct mm1 q;

		assert_int_equal(mg1_solve(rate, 0.37, 1.0, &exponential, NULL), 0);
		assert_int_equal(mg1_solve(rate, 0.37, 0.0, &constant, NULL), 0);
		assert_int_equal(mg1_solve(rate, 0.37, 12.3, &wild, NULL), 0);
		assert_int_equal(mm1_solve(rate, 0.37, &q, NULL), 0);
		close_to(exponential.wait_s, q.wait_s, 1e-13);
		close_to(exponential.response_s, q.response_s, 1e-13);
		close_to(exponential.in_system, q.in_system, 1e-12);
		close_to(constant.wait_s, 0.5 * q.wait_s, 1e-13); /* M/D/1 waits half as long */
		close_to(wild.wait_s, 6.65 * q.wait_s, 1e-13);
		close_to(wild.in_queue, rate * wild.wait_s, 1e-13);
		close_to(wild.in_system, rate * wild.response_s, 1e-13);
	}
}

TEST(test_ps_slows_every_job_by_the_same_factor)
{
	double mean_s, response_s;

	assert_int_equal(mg1_ps_mean_response_s(0.25, 2.4, &mean_s, NULL), 0);
	close_to(mean_s, 6.0, 1e-15);
	for (double size_s = 0.0; size_s < 50.0; size_s += 3.7) {
		assert_int_equal(mg1_ps_response_of_size_s(0.25, 2.4, size_s, &response_s, NULL), 0);
		close_to(response_s, 2.5 * size_s, 1e-15);
	}
}

TEST(test_mg1_refuses_overload_and_nonsense)
{
	static const double bad[] = { NAN, -0.1, INFINITY };
	struct mg1 q = { .wait_s = 77.0 };
	struct err err = { 0 };
	double out = 77.0;

	assert_int_equal(mg1_solve(0.5, 2.0, 1.0, &q, NULL), -ERR_UNSTABLE);
	assert_int_equal(mg1_solve(0.5, 2.5, 1.0, &q, &err), -ERR_UNSTABLE);
	assert_non_null(strstr(err.text, "load 1.25"));
	assert_int_equal(mg1_ps_mean_response_s(0.5, 2.0, &out, NULL), -ERR_UNSTABLE);
	assert_int_equal(mg1_ps_response_of_size_s(0.5, 2.0, 1.0, &out, NULL), -ERR_UNSTABLE);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(mg1_solve(bad[i], 1.0, 1.0, &q, NULL), -ERR_ARG);
		assert_int_equal(mg1_solve(0.1, bad[i], 1.0, &q, NULL), -ERR_ARG);
		assert_int_equal(mg1_solve(0.1, 1.0, bad[i], &q, NULL), -ERR_ARG);
		assert_int_equal(mg1_ps_mean_response_s(bad[i], 1.0, &out, NULL), -ERR_ARG);
		assert_int_equal(mg1_ps_mean_response_s(0.1, bad[i], &out, NULL), -ERR_ARG);
		assert_int_equal(mg1_ps_response_of_size_s(0.1, 1.0, bad[i], &out, NULL), -ERR_ARG);
	}
	assert_int_equal(mg1_solve(0.99, 1.0, 1e308, &q, NULL), -ERR_NUMERIC);
	assert_int_equal(mg1_solve(0.5e-300, 1e300, 1e10, &q, NULL), -ERR_NUMERIC);
	assert_int_equal(mg1_ps_response_of_size_s(0.99, 1.0, 1e308, &out, NULL), -ERR_NUMERIC);
	assert_true(q.wait_s == 77.0 && out == 77.0);
}

TEST(test_mg1_agrees_with_the_simulation)
{
	static const struct {
		enum des_law law;
		double scv, load;
	} run[] = { { DES_CONSTANT, 0.0, 0.8 }, { DES_HYPER, 4.0, 0.5 } };

	for (size_t i = 0; i < 2; i++) {
		struct des_station s = { .law = run[i].law, .scv = run[i].scv, .service_s = 2.37 };
		struct des_params p = { .station = &s,
					.n_stations = 1,
					.arrivals_per_s = run[i].load / 2.37,
					.events = 10000000 / des_thrift(),
					.seed = support_seed(3) };
		struct des_result r;
		struct mg1 q;

		assert_int_equal(des_run(&p, &r, NULL), 0);
		assert_int_equal(mg1_solve(p.arrivals_per_s, 2.37, run[i].scv, &q, NULL), 0);
		assert_true(des_agrees(r.response_s, q.response_s, 0.01));
	}
}

/* The mean under processor sharing does not feel the law: first come first served would take 20 s here. */
TEST(test_ps_is_insensitive_in_the_simulation_too)
{
	struct des_station s = { .kind = DES_PS, .law = DES_HYPER, .scv = 9.0, .service_s = 2.37 };
	struct des_params p = { .station = &s,
				.n_stations = 1,
				.arrivals_per_s = 0.6 / 2.37,
				.events = 10000000 / des_thrift(),
				.seed = support_seed(3) };
	struct des_result r;
	double want_s;

	assert_int_equal(des_run(&p, &r, NULL), 0);
	assert_int_equal(mg1_ps_mean_response_s(p.arrivals_per_s, 2.37, &want_s, NULL), 0);
	assert_true(des_agrees(r.response_s, want_s, 0.01));
}
