/* queueing/ps: processor sharing against closed forms and the simulator. */
#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "queueing/mm1.h"
#include "tests/support/mmc.h"
#include "tests/support/ps.h"
#include "tests/support/des.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* ---- at this moment ---- */

TEST(test_share_gives_all_they_can_use_when_there_is_room)
{
	const double processes[] = { 3.0, 0.7, 12.0 };
	double rate[3];

	assert_int_equal(ps_share(processes, NULL, 3, 15.7, rate, NULL), 0);
	assert_memory_equal(rate, processes, sizeof rate);
	assert_int_equal(ps_share(processes, processes, 3, 99.0, rate, NULL), 0);
	assert_memory_equal(rate, processes, sizeof rate);
	assert_int_equal(ps_share(NULL, NULL, 0, 4.0, rate, NULL), 0);
}

TEST(test_share_worked_by_hand)
{
	const double processes[] = { 1.0, 2.5, 8.0, 16.0 };
	const double weight[] = { 1.0, 1.0, 4.0, 1.0 };
	double rate[4];

	/* 10 cores for four jobs: 2.5 each; the first can use 1 only, so 3 for the rest; the second can use
	 * 2.5 only, so 3.25 for the last two */
	assert_int_equal(ps_share(processes, NULL, 4, 10.0, rate, NULL), 0);
	close_to(rate[0], 1.0, 1e-15);
	close_to(rate[1], 2.5, 1e-15);
	close_to(rate[2], 3.25, 1e-15);
	close_to(rate[3], 3.25, 1e-15);
	/* with weights: 1 + 2.5 + 1.3 (4 + 1) is 10, but 1.3 < 2.5: 1 + 9 / 6 (1 + 4 + 1) */
	assert_int_equal(ps_share(processes, weight, 4, 10.0, rate, NULL), 0);
	close_to(rate[0], 1.0, 1e-15);
	close_to(rate[1], 1.5, 1e-15);
	close_to(rate[2], 6.0, 1e-15);
	close_to(rate[3], 1.5, 1e-15);
	/* every process alike: 10 cores for 27.5 processes */
	assert_int_equal(ps_share(processes, processes, 4, 10.0, rate, NULL), 0);
	for (int i = 0; i < 4; i++)
		close_to(rate[i], processes[i] * 10.0 / 27.5, 1e-14);
}

TEST(test_share_is_fair_and_wastes_nothing)
{
	enum { MOST = 300 };
	static double processes[MOST], weight[MOST], rate[MOST];
	struct rng rng = rng_stream(support_seed(11), 0);

	for (int turn = 0; turn < 3000; turn++) {
		size_t n = 1 + rng_below(&rng, MOST);
		double cores = exp(6.0 * rng_uniform(&rng)), total = 0.0, all = 0.0, level = 0.0;
		const double *w = turn % 3 == 0 ? NULL : turn % 3 == 1 ? processes : weight;

		for (size_t i = 0; i < n; i++) {
			processes[i] = rng_below(&rng, 10) ? exp(4.0 * rng_normal(&rng)) : 0.0;
			weight[i] = exp(2.0 * rng_normal(&rng));
			all += processes[i];
		}
		assert_int_equal(ps_share(processes, w, n, cores, rate, NULL), 0);
		for (size_t i = 0; i < n; i++) {
			total += rate[i];
			if (!(rate[i] >= 0.0 && rate[i] <= processes[i]))
				fail_msg("turn %d: rate %g of %g processes", turn, rate[i], processes[i]);
			if (rate[i] < processes[i]) /* all who lack something are at the same level */
				level = fmax(level, rate[i] / (w ? w[i] : 1.0));
		}
		close_to(total, fmin(all, cores), 1e-12);
		for (size_t i = 0; i < n; i++)
			if (rate[i] < processes[i])
				close_to(rate[i] / (w ? w[i] : 1.0), level, 1e-12);
			else if (all > cores && processes[i] > 0.0) /* and nobody else is above it */
				assert_true(rate[i] / (w ? w[i] : 1.0) <= level * (1.0 + 1e-12));
	}
}

TEST(test_share_of_no_cores_is_nothing)
{
	const double processes[] = { 3.0, 0.0, 2.0 };
	double rate[3] = { 7.0, 7.0, 7.0 };

	assert_int_equal(ps_share(processes, NULL, 3, 0.0, rate, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_true(rate[i] == 0.0);
}

TEST(test_share_refuses_numbers_that_make_no_sense)
{
	static const double bad[] = { NAN, -0.5, INFINITY };
	const double good[] = { 1.0, 2.0 }, huge[] = { 1.7e308, 1.7e308 };
	double rate[2] = { 77.0, 77.0 };

	for (int i = 0; i < 3; i++) {
		double v[] = { 1.0, bad[i] };

		assert_int_equal(ps_share(v, NULL, 2, 4.0, rate, NULL), -ERR_ARG);
		assert_int_equal(ps_share(good, v, 2, 4.0, rate, NULL), -ERR_ARG);
		assert_int_equal(ps_share(good, NULL, 2, bad[i], rate, NULL), -ERR_ARG);
	}
	assert_int_equal(ps_share(good, (const double[]){ 1.0, 0.0 }, 2, 1.0, rate, NULL), -ERR_ARG);
	assert_int_equal(ps_share(huge, NULL, 2, 4.0, rate, NULL), -ERR_ARG);
	assert_true(rate[0] == 77.0 && rate[1] == 77.0);
}

/* ---- in the long run ---- */

TEST(test_ps_of_single_processes_is_mmm)
{
	static const unsigned cores[] = { 1, 2, 3, 16, 64, 1000, 10000 };
	static const double loads[] = { 0.05, 0.37, 0.8, 0.95, 0.99 };

	for (size_t i = 0; i < 7; i++) {
		for (size_t j = 0; j < 5; j++) {
			double rate = loads[j] * cores[i] / 2.37, response_s;
			struct mmc q;

			assert_int_equal(ps_mean_response_s(rate, 2.37, cores[i], 1, &response_s, NULL), 0);
			assert_int_equal(mmc_solve(rate, 2.37, cores[i], &q, NULL), 0);
			close_to(response_s, q.response_s, 1e-11);
		}
	}
}

TEST(test_ps_of_jobs_that_use_all_cores_is_mm1)
{
	static const unsigned processes[] = { 8, 9, 1000000000 };

	for (size_t i = 0; i < 3; i++) {
		for (double load = 0.05; load < 1.0; load += 0.047) {
			double response_s, want_s;

			assert_int_equal(ps_mean_response_s(load * 8.0 / 2.37, 2.37, 8, processes[i],
							    &response_s, NULL),
					 0);
			assert_int_equal(mm1_mean_response_s(load * 8.0 / 2.37, 2.37 / 8.0, &want_s, NULL),
					 0);
			close_to(response_s, want_s, 1e-12);
		}
	}
}

TEST(test_ps_job_alone_runs_at_its_processes)
{
	double response_s;

	assert_int_equal(ps_mean_response_s(0.0, 2.37, 8, 3, &response_s, NULL), 0);
	close_to(response_s, 2.37 / 3.0, 1e-15);
	assert_int_equal(ps_mean_response_s(1e-30, 2.37, 8, 3, &response_s, NULL), 0);
	close_to(response_s, 2.37 / 3.0, 1e-15);
	assert_int_equal(ps_mean_response_s(1e-12, 2.37, 8, 3, &response_s, NULL), 0);
	close_to(response_s, 2.37 / 3.0, 1e-11);
	assert_int_equal(ps_mean_response_s(1.0, 0.0, 8, 3, &response_s, NULL), 0);
	assert_true(response_s == 0.0);
}

/* The chain itself, summed until nothing is left to add. */
/* More processes than cores are as good as the cores, also where rounding leaves no other job to meet. */
TEST(test_ps_job_uses_no_more_than_the_cores)
{
	double t;

	assert_int_equal(ps_mean_response_s(1e-30, 2.37, 4, 9, &t, NULL), 0);
	close_to(t, 2.37 / 4.0, 1e-12);
}

static double response_by_chain_s(double rate, double work_s, double cores, double processes)
{
	double p = 1.0, sum = 1.0, number = 0.0;

	for (int n = 1; n < 20000; n++) {
		p *= rate * work_s / fmin(n * processes, cores);
		sum += p;
		number += n * p;
	}
	return number / sum / rate;
}

TEST(test_ps_matches_its_birth_death_chain)
{
	for (unsigned cores = 1; cores <= 24; cores++) {
		for (unsigned processes = 1; processes <= 9; processes++) {
			double rate = 0.83 * cores / 1.9, response_s, longer_s;

			assert_int_equal(ps_mean_response_s(rate, 1.9, cores, processes, &response_s, NULL),
					 0);
			close_to(response_s, response_by_chain_s(rate, 1.9, cores, processes), 1e-11);
			assert_int_equal(
				ps_response_of_size_s(rate, 1.9, cores, processes, 5.7, &longer_s, NULL), 0);
			close_to(longer_s, 3.0 * response_s, 1e-12);
		}
	}
}

TEST(test_ps_refuses_overload_and_nonsense)
{
	static const double bad[] = { NAN, -0.1, INFINITY };
	struct err err = { 0 };
	double out = 77.0;

	assert_int_equal(ps_mean_response_s(4.0, 2.0, 8, 3, &out, NULL), -ERR_UNSTABLE);
	assert_int_equal(ps_mean_response_s(5.0, 2.0, 8, 3, &out, &err), -ERR_UNSTABLE);
	assert_non_null(strstr(err.text, "load 1.25"));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ps_mean_response_s(bad[i], 1.0, 8, 3, &out, NULL), -ERR_ARG);
		assert_int_equal(ps_mean_response_s(0.1, bad[i], 8, 3, &out, NULL), -ERR_ARG);
		assert_int_equal(ps_response_of_size_s(0.1, 1.0, 8, 3, bad[i], &out, NULL), -ERR_ARG);
	}
	assert_int_equal(ps_mean_response_s(0.1, 1.0, 0, 3, &out, NULL), -ERR_ARG);
	assert_int_equal(ps_mean_response_s(0.1, 1.0, 8, 0, &out, NULL), -ERR_ARG);
	assert_int_equal(ps_mean_response_s(0.1, 1.0, PS_MAX_CORES + 1, 1, &out, NULL), -ERR_ARG);
	assert_int_equal(ps_response_of_size_s(0.99, 1.0, 1, 1, 1e308, &out, NULL), -ERR_NUMERIC);
	assert_true(out == 77.0);
}

TEST(test_ps_agrees_with_the_simulation)
{
	static const struct {
		unsigned cores, processes;
		enum des_law law;
		double load;
	} run[] = {
		{ 1, 1, DES_EXPONENTIAL, 0.7 }, /* M/M/1-PS */
		{ 4, 1, DES_EXPONENTIAL, 0.8 },
		{ 8, 3, DES_EXPONENTIAL, 0.75 }, /* the third job gets two cores of three it could use */
		{ 8, 3, DES_HYPER, 0.6 },
	};

	for (size_t i = 0; i < 4; i++) {
		struct des_station s = { .kind = DES_PS,
					 .servers = run[i].cores,
					 .processes = run[i].processes,
					 .law = run[i].law,
					 .scv = 5.0,
					 .service_s = 2.37 };
		struct des_params p = { .station = &s,
					.n_stations = 1,
					.seed = support_seed(19),
					.arrivals_per_s = run[i].load * run[i].cores / 2.37,
					.events = 10000000 / des_thrift() };
		struct des_result r;
		double want_s;

		assert_int_equal(des_run(&p, &r, NULL), 0);
		assert_int_equal(
			ps_mean_response_s(p.arrivals_per_s, 2.37, s.servers, s.processes, &want_s, NULL), 0);
		assert_true(des_agrees(r.response_s, want_s, 0.01));
		close_to(r.busy[0], run[i].load * run[i].cores, 0.01 * sqrt(des_thrift()));
		close_to(r.number[0], r.throughput_per_s.mean * r.response_s.mean,
			 0.002 * sqrt(des_thrift()));
	}
}
