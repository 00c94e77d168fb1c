/* The random numbers of jobs: what they depend on, and how they are distributed. */
#include <math.h>
#include <string.h>

#include "common/stats.h"
#include "sim/world/draws.h"
#include "tests/support/test.h"

enum { JOBS = 40000 };

static void near(double got, double want, double within)
{
	if (!(fabs(got - want) <= within))
		fail_msg("got %.17g, want %.17g within %g", got, want, within);
}

TEST(test_draws_depends_on_seed_and_job_alone)
{
	struct disturbances d = { .noise = 0.2, .stragglers = 0.5, .straggler_factor = 3.0, .failures = 0.5 };
	struct draws a = draws_of(&d, 5, 77), b = draws_of(&d, 5, 77), c = draws_of(&d, 6, 77),
		     e = draws_of(&d, 5, 78);

	assert_memory_equal(&a, &b, sizeof a);
	assert_true(a.time_u != c.time_u && a.time_u != e.time_u && a.seed != c.seed && a.seed != e.seed);
	assert_true(a.time_u != a.accuracy_u);
}

TEST(test_a_straggler_keeps_its_noise)
{
	struct disturbances noise = { .noise = 0.3 },
			    both = { .noise = 0.3, .stragglers = 1.0, .straggler_factor = 3.0 };

	for (uint64_t job = 1; job <= 20; job++)
		near(draws_of(&both, 5, job).slow, 3.0 * draws_of(&noise, 5, job).slow, 1e-12);
	assert_true(draws_of(&both, 5, 1).slow != draws_of(&both, 5, 2).slow);
}

TEST(test_without_disturbances_a_job_is_as_it_is)
{
	struct disturbances none = { 0 };

	for (uint64_t i = 1; i < 1000; i++) {
		struct draws a = draws_of(&none, 1, i), b = draws_of(NULL, 1, i);

		assert_true(a.slow == 1.0 && isnan(a.fails_at));
		assert_true(b.slow == 1.0 && isnan(b.fails_at) && a.time_u == b.time_u);
	}
}

TEST(test_one_disturbance_leaves_the_others_as_they_were)
{
	struct disturbances some = { .failures = 0.3 },
			    more = { .failures = 0.3, .noise = 0.5, .stragglers = 0.2 };

	more.straggler_factor = 2.0;
	for (uint64_t i = 1; i < 1000; i++) {
		struct draws a = draws_of(&some, 9, i), b = draws_of(&more, 9, i);

		assert_memory_equal(&a.fails_at, &b.fails_at, sizeof a.fails_at);
		assert_true(a.time_u == b.time_u && a.accuracy_u == b.accuracy_u && a.seed == b.seed);
	}
}

/* Tolerances are 4 standard errors. */
TEST(test_shares_and_spread_are_as_asked)
{
	static double logs[JOBS], points[JOBS], times[JOBS];
	struct disturbances noisy = { .noise = 0.3 },
			    rest = { .stragglers = 0.1, .straggler_factor = 2.5, .failures = 0.2 };
	double slow = 0.0, product = 0.0;
	size_t failed = 0;

	for (uint64_t i = 0; i < JOBS; i++) {
		struct draws a = draws_of(&noisy, 4, i + 1), b = draws_of(&rest, 4, i + 1);

		logs[i] = log(a.slow);
		times[i] = a.time_u;
		product += (a.time_u - 0.5) * (a.accuracy_u - 0.5) / JOBS;
		assert_true(a.time_u >= 0.0 && a.time_u < 1.0 && a.accuracy_u >= 0.0 && a.accuracy_u < 1.0);
		assert_true(b.slow == 1.0 || b.slow == 2.5);
		slow += b.slow == 2.5;
		if (!isnan(b.fails_at))
			points[failed++] = b.fails_at;
	}
	near(stats_mean(logs, JOBS), 0.0, 4.0 * 0.3 / sqrt(JOBS)); /* so the median of the factor is 1 */
	near(stats_sd(logs, JOBS), 0.3, 4.0 * 0.3 / sqrt(2.0 * JOBS));
	near(stats_mean(times, JOBS), 0.5, 4.0 * sqrt(1.0 / 12.0 / JOBS));
	near(product, 0.0,
	     4.0 / 12.0 / sqrt(JOBS)); /* time and accuracy have nothing to do with each other */
	near(slow / JOBS, 0.1, 4.0 * sqrt(0.09 / JOBS));
	near((double)failed / JOBS, 0.2, 4.0 * sqrt(0.16 / JOBS));
	near(stats_mean(points, failed), 0.5, 4.0 * sqrt(1.0 / 12.0 / (double)failed));
}

TEST(test_texts_are_read)
{
	struct disturbances d = { 0 };

	assert_int_equal(disturbances_drift("20%@3600", 100.0, &d, NULL), 0);
	near(d.drift, 0.2, 1e-15);
	near(d.drift_at_s, 3600.0, 0.0);
	assert_int_equal(disturbances_drift("-12.5%@25%", 840.0, &d, NULL), 0);
	near(d.drift, -0.125, 1e-15);
	near(d.drift_at_s, 210.0, 1e-12);
	assert_int_equal(disturbances_drift("20%@1.5h", 100.0, &d, NULL), 0);
	near(d.drift_at_s, 5400.0, 1e-9);
	assert_int_equal(disturbances_stragglers("2%x3.5", &d, NULL), 0);
	near(d.stragglers, 0.02, 1e-15);
	near(d.straggler_factor, 3.5, 0.0);
	assert_int_equal(disturbances_failures("1%", &d, NULL), 0);
	near(d.failures, 0.01, 1e-15);
}

TEST(test_bad_texts_are_refused_and_change_nothing)
{
	static const char *const drift[] = { "",       "20%",   "20@3600",   "%@3600",
					     "20%@",   "20%@x", "20%@-3",    "20%@101%",
					     "-91%@3", "x%@3",  "100001%@3", "20%@3600@1" };
	static const char *const stragglers[] = { "",       "2%",    "2x3",  "2%x",   "2%x0",
						  "101%x3", "-1%x3", "2%xa", "2%x1e7" };
	static const char *const failures[] = { "", "%", "1", "0.01", "101%", "-1%", "x%", "nan%" };
	struct disturbances d = { .noise = 0.1 }, before = d;
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof drift / sizeof *drift; i++)
		assert_int_equal(disturbances_drift(drift[i], 10.0, &d, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "'20%@3600@1'"));
	assert_non_null(strstr(err.text, "write it like"));
	for (size_t i = 0; i < sizeof stragglers / sizeof *stragglers; i++)
		assert_int_equal(disturbances_stragglers(stragglers[i], &d, &err), -ERR_ARG);
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
		assert_int_equal(disturbances_failures(failures[i], &d, &err), -ERR_ARG);
	assert_memory_equal(&d, &before, sizeof d);
}

TEST(test_json_says_all)
{
	struct disturbances d = { 0.1, 0.2, 30.0, 0.4, 5.0, 0.6 };
	struct strbuf text = { 0 };
	struct json_writer w;

	json_begin(&w, &text, false);
	disturbances_to_json(&d, &w);
	assert_string_equal(strbuf_text(&text),
			    "{\"noise\":0.1,\"drift\":0.2,\"drift_at_s\":30,\"stragglers\":0.4,"
			    "\"straggler_factor\":5,\"failures\":0.6}");
	strbuf_release(&text);
}
