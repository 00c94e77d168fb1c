/* queueing/mmc: Erlang C against closed forms and the simulator. */
#include <math.h>
#include <string.h>

#include "queueing/mm1.h"
#include "tests/support/mmc.h"
#include "tests/support/des.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

TEST(test_mmc_known_answers)
{
	struct mmc q;

	/* two Erlangs offered to three servers: C = 4/9, as in any table */
	assert_int_equal(mmc_solve(0.8, 2.5, 3, &q, NULL), 0);
	close_to(q.p_wait, 4.0 / 9.0, 1e-14);
	close_to(q.load, 2.0 / 3.0, 1e-15);
	close_to(q.in_queue, 8.0 / 9.0, 1e-14);
	close_to(q.in_system, 26.0 / 9.0, 1e-14);
	close_to(q.wait_s, 10.0 / 9.0, 1e-14);
	close_to(q.response_s, 2.5 + 10.0 / 9.0, 1e-14);
	/* two servers: C = 2 rho^2 / (1 + rho), W = S rho^2 / (1 - rho^2) */
	for (double rho = 0.05; rho < 1.0; rho += 0.0937) {
		assert_int_equal(mmc_solve(2.0 * rho / 2.37, 2.37, 2, &q, NULL), 0);
		close_to(q.p_wait, 2.0 * rho * rho / (1.0 + rho), 1e-13);
		close_to(q.wait_s, 2.37 * rho * rho / (1.0 - rho * rho), 1e-12);
	}
}

TEST(test_mmc_with_one_server_is_mm1)
{
	static const double loads[] = { 0.0, 0.05, 0.31, 0.5, 0.77, 0.95, 0.99 };

	for (size_t i = 0; i < 7; i++) {
		double rate = loads[i] / 0.37, response_s;
		struct mmc c;

		assert_int_equal(mmc_solve(rate, 0.37, 1, &c, NULL), 0);
		assert_int_equal(mm1_mean_response_s(rate, 0.37, &response_s, NULL), 0);
		close_to(c.p_wait, loads[i], 1e-14);
		close_to(c.wait_s, loads[i] * response_s, 1e-13);
		close_to(c.response_s, response_s, 1e-13);
		close_to(c.in_queue, rate * loads[i] * response_s, 1e-13);
		close_to(c.in_system, rate * response_s, 1e-13);
	}
}

/* Erlang's C as it is defined, in long double; good to about 40 servers. */
static double erlang_c_by_sum(double a, unsigned c)
{
	long double term = 1.0L, sum = 0.0L, rho = a / c;

	for (unsigned k = 0; k < c; k++) {
		sum += term;
		term *= (long double)a / (k + 1);
	}
	term /= 1.0L - rho;
	return (double)(term / (sum + term));
}

TEST(test_mmc_matches_the_textbook_sum)
{
	for (unsigned c = 1; c <= 40; c++) {
		for (double rho = 0.03; rho < 1.0; rho += 0.06) {
			struct mmc q;

			assert_int_equal(mmc_solve(c * rho / 1.7, 1.7, c, &q, NULL), 0);
			close_to(q.p_wait, erlang_c_by_sum(c * rho, c), 1e-12);
		}
	}
}

TEST(test_mmc_obeys_littles_law_up_to_ten_thousand_servers)
{
	static const unsigned servers[] = { 1, 2, 7, 64, 150, 171, 1000, 10000 };
	static const double loads[] = { 0.05, 0.4, 0.8, 0.95, 0.99, 0.999999 };

	for (size_t i = 0; i < 8; i++) {
		double before = -1.0;

		for (size_t j = 0; j < 6; j++) {
			double rate = servers[i] * loads[j] / 0.83;
			struct mmc q;

			assert_int_equal(mmc_solve(rate, 0.83, servers[i], &q, NULL), 0);
			assert_true(q.p_wait >= 0.0 && q.p_wait <= 1.0 && q.p_wait >= before);
			if (q.in_queue > 1e-290)
				close_to(q.in_queue, rate * q.wait_s, 1e-12);
			close_to(q.in_system, rate * q.response_s, 1e-12);
			before = q.p_wait;
		}
	}
}

/* With many servers and load 1 - beta / sqrt(c), C tends to 1 / (1 + beta Phi(beta) / phi(beta))
 * (Halfin, Whitt, Operations Research 29, 1981); the error shrinks as 1 / sqrt(c). */
TEST(test_mmc_meets_the_halfin_whitt_limit)
{
	for (double beta = 0.25; beta <= 2.0; beta += 0.25) {
		double phi = exp(-0.5 * beta * beta) / sqrt(2.0 * M_PI), cum = 0.5 * erfc(-beta / sqrt(2.0));
		struct mmc q;

		assert_int_equal(mmc_solve(10000.0 * (1.0 - beta / 100.0) / 0.9, 0.9, 10000, &q, NULL), 0);
		close_to(q.p_wait, 1.0 / (1.0 + beta * cum / phi), 0.03);
	}
}

TEST(test_mmc_quantile_of_the_wait_undoes_its_distribution)
{
	double t, p;

	/* C = 4/9 wait; half of those for less than ln 2 mean waits of 2.5 s */
	assert_int_equal(mmc_wait_quantile_s(0.8, 2.5, 3, 7.0 / 9.0, &t, NULL), 0);
	close_to(t, 2.5 * log(2.0), 1e-13);
	assert_int_equal(mmc_wait_quantile_s(0.8, 2.5, 3, 0.55, &t, NULL), 0);
	assert_true(t == 0.0); /* 5/9 do not wait at all */
	assert_int_equal(mmc_wait_cdf(0.8, 2.5, 3, 0.0, &p, NULL), 0);
	close_to(p, 5.0 / 9.0, 1e-14);
	for (double want = 0.56; want < 1.0; want += 0.0173) {
		assert_int_equal(mmc_wait_quantile_s(0.8, 2.5, 3, want, &t, NULL), 0);
		assert_int_equal(mmc_wait_cdf(0.8, 2.5, 3, t, &p, NULL), 0);
		close_to(p, want, 1e-13);
	}
	assert_int_equal(mmc_wait_quantile_s(0.8, 0.0, 3, 0.99, &t, NULL), 0);
	assert_true(t == 0.0);
	assert_int_equal(mmc_wait_cdf(0.8, 0.0, 3, 0.0, &p, NULL), 0);
	assert_true(p == 1.0);
	assert_int_equal(mmc_wait_cdf(0.0, 2.5, 3, 0.0, &p, NULL), 0);
	assert_true(p == 1.0);
}

TEST(test_mmc_refuses_overload_and_nonsense)
{
	static const double bad[] = { NAN, -0.1, INFINITY };
	struct mmc q = { .wait_s = 77.0 };
	struct err err = { 0 };
	double out = 77.0;

	assert_int_equal(mmc_solve(3.0, 1.0, 3, &q, NULL), -ERR_UNSTABLE);
	assert_int_equal(mmc_solve(4.5, 1.0, 3, &q, &err), -ERR_UNSTABLE);
	assert_non_null(strstr(err.text, "load 1.5"));
	assert_int_equal(mmc_wait_quantile_s(4.5, 1.0, 3, 0.9, &out, NULL), -ERR_UNSTABLE);
	assert_int_equal(mmc_wait_cdf(4.5, 1.0, 3, 0.9, &out, NULL), -ERR_UNSTABLE);
	assert_int_equal(mmc_solve(0.1, 1.0, 0, &q, NULL), -ERR_ARG);
	assert_int_equal(mmc_solve(0.1, 1.0, MMC_MAX_SERVERS + 1, &q, NULL), -ERR_ARG);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(mmc_solve(bad[i], 1.0, 3, &q, NULL), -ERR_ARG);
		assert_int_equal(mmc_solve(1.0, bad[i], 3, &q, NULL), -ERR_ARG);
		assert_int_equal(mmc_wait_cdf(1.0, 1.0, 3, bad[i], &out, NULL), -ERR_ARG);
		assert_int_equal(mmc_wait_quantile_s(1.0, 1.0, 3, bad[i], &out, NULL), -ERR_ARG);
	}
	assert_int_equal(mmc_wait_quantile_s(1.0, 1.0, 3, 1.0, &out, NULL), -ERR_ARG);
	assert_int_equal(mmc_solve(0.99e-308, 1.7e308, 2, &q, NULL),
			 -ERR_NUMERIC); /* the sum leaves the range */
	assert_true(q.wait_s == 77.0 && out == 77.0);
}

TEST(test_mmc_agrees_with_the_simulation)
{
	static const struct {
		unsigned servers;
		double load;
	} run[] = { { 3, 0.6 }, { 16, 0.85 } };

	for (size_t i = 0; i < 2; i++) {
		struct des_station s = { .servers = run[i].servers, .service_s = 2.37 };
		struct des_params p = { .station = &s,
					.n_stations = 1,
					.within_s = 0.41,
					.seed = support_seed(7),
					.arrivals_per_s = run[i].load * run[i].servers / 2.37,
					.events = 8000000 / des_thrift() };
		struct des_result r;
		struct mmc q;
		double share;

		assert_int_equal(des_run(&p, &r, NULL), 0);
		assert_int_equal(mmc_solve(p.arrivals_per_s, 2.37, s.servers, &q, NULL), 0);
		assert_int_equal(mmc_wait_cdf(p.arrivals_per_s, 2.37, s.servers, 0.41, &share, NULL), 0);
		assert_true(des_agrees(r.response_s, q.response_s, 0.01));
		assert_true(des_agrees(r.wait_within, share, 0.01));
		close_to(r.busy[0], q.load * s.servers, 0.01 * sqrt(des_thrift()));
	}
}
