/* From outcomes to numbers: six jobs worked by hand, known intervals, and what holds for any outcomes. */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sim/compare/metrics.h"
#include "tests/support/test.h"

#define S INT64_C(1000000000)
#define NEAR 1e-12 /* a handful of roundings on numbers of the size of 100 */

static const struct cluster four_cores = { .cores = 4.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY };

/* ---- six jobs by hand ---- */

#define SIX 6
static char *tenant_name[] = { "anna", "bert" };
static double tenant_weight[] = { 1.0, 1.0 };

static struct trace_job six_jobs[SIX] = {
	{ .id = 1, .arrival_ns = 0, .slo_s = 50.0, .confidence = NAN, .tenant = 0, .type = -1 },
	{ .id = 2, .arrival_ns = 10 * S, .slo_s = 40.0, .confidence = NAN, .tenant = 0, .type = -1 },
	{ .id = 3, .arrival_ns = 20 * S, .slo_s = 30.0, .confidence = NAN, .tenant = 1, .type = -1 },
	{ .id = 4, .arrival_ns = 30 * S, .slo_s = 20.0, .confidence = NAN, .tenant = 1, .type = -1 },
	{ .id = 5, .arrival_ns = 40 * S, .slo_s = NAN, .confidence = NAN, .tenant = 0, .type = -1 },
	{ .id = 6, .arrival_ns = 50 * S, .slo_s = 25.0, .confidence = NAN, .tenant = 1, .type = -1 },
};
static const struct trace six = {
	.job = six_jobs, .n_jobs = SIX, .tenant = tenant_name, .weight = tenant_weight, .n_tenants = 2
};

static struct outcome ran(enum outcome_state state, bool promised, double start_s, double end_s)
{
	return (struct outcome){ .state = (uint8_t)state,
				 .promised = promised,
				 .start_ns = (int64_t)(start_s * 1e9),
				 .end_ns = (int64_t)(end_s * 1e9),
				 .batch = 64.0,
				 .epochs = NAN,
				 .promised_s = NAN,
				 .promised_upper_s = NAN,
				 .run_s = NAN,
				 .run_upper_s = NAN,
				 .predicted_accuracy = NAN,
				 .accuracy = NAN,
				 .processes = 1.0,
				 .njobs = 1.0 };
}

static struct outcome predicted(struct outcome o, double run_s, double upper_s, double guess, double accuracy)
{
	o.run_s = run_s;
	o.run_upper_s = upper_s;
	o.predicted_accuracy = guess;
	o.accuracy = accuracy;
	return o;
}

static void six_outcomes(struct outcome out[SIX])
{
	out[0] = predicted(ran(OUTCOME_MET, true, 0, 40), 38, 45, 0.9, 0.92);
	out[1] = predicted(ran(OUTCOME_MISSED, true, 15, 55), 30, 35, 0.8, 0.85);
	out[2] = ran(OUTCOME_REJECTED, false, 0, 0);
	out[3] = predicted(ran(OUTCOME_FAILED, true, 30, 36), 10, 15, 0.7, NAN);
	out[4] = predicted(ran(OUTCOME_DONE, false, 44, 64), 25, NAN, NAN, 0.7);
	out[5] = predicted(ran(OUTCOME_MET, false, 50, 70), 16, 19, 0.6, 0.64);
}

static void six_of_oracle(struct outcome out[SIX])
{
	out[0] = predicted(ran(OUTCOME_MET, true, 0, 45), NAN, NAN, NAN, 0.95);
	out[1] = predicted(ran(OUTCOME_MET, true, 10, 45), NAN, NAN, NAN, 0.9);
	out[2] = predicted(ran(OUTCOME_MET, true, 20, 45), NAN, NAN, NAN, 0.8);
	out[3] = ran(OUTCOME_REJECTED, false, 0, 0);
	out[4] = predicted(ran(OUTCOME_DONE, false, 40, 60), NAN, NAN, NAN, 0.99);
	out[5] = predicted(ran(OUTCOME_MISSED, false, 50, 80), NAN, NAN, NAN, 0.64);
}

static const double six_by_hand[METRICS] = {
	[METRIC_JOBS] = 5,
	[METRIC_PROMISED] = 3,
	[METRIC_MET] = 2,
	[METRIC_REJECTED] = 1,
	[METRIC_FAILED] = 1,
	[METRIC_ATTAINMENT] = 1.0 / 3.0, /* the first of three promised */
	[METRIC_ATTAINMENT_ALL] = 2.0 / 5.0,
	[METRIC_ATTAINMENT_ADMITTED] = 2.0 / 4.0,
	[METRIC_ATTAINMENT_ORACLE] = 1.0 / 3.0, /* the oracle met the first three */
	[METRIC_ACCURACY] = 0.7775, /* (0.92 + 0.85 + 0.7 + 0.64) / 4 */
	[METRIC_ACCURACY_MET] = 0.78,
	[METRIC_ACCURACY_ZERO] = 0.312, /* (0.92 + 0.64) / 5 */
	[METRIC_VALUE_ZERO] = NAN, /* all are worth 1 */
	[METRIC_OF_OPTIMUM] = NAN, /* the comparison knows it */
	[METRIC_REGRET] = 0.218, /* (0.95 + 0.9 + 0.8) / 5 - 0.312 */
	[METRIC_RESPONSE_MEAN] = 27, /* 40 45 6 24 20 */
	[METRIC_RESPONSE_P95] = 45,
	[METRIC_RESPONSE_P99] = 45,
	[METRIC_WAIT_MEAN] = 1.8, /* 0 5 0 4 0 */
	[METRIC_UTILISATION] = 0.55, /* 220 of 4 x 100 */
	[METRIC_FAIRNESS] = 25.0 / 26.0, /* x = 1/2, 1/3: (5/6)^2 / (2 (1/4 + 1/9)) */
	[METRIC_COVERAGE] = 1.0 / 3.0, /* 40 in 45, 40 not in 35, 20 not in 19; what failed does not count */
	[METRIC_MSE] = 36.25, /* (4 + 100 + 25 + 16) / 4 */
	[METRIC_MAPE] = 0.1875, /* (2/40 + 10/40 + 5/20 + 4/20) / 4 */
	[METRIC_ACCURACY_MAE] = 0.11 / 3.0,
	[METRIC_CHANCES] = NAN,
	[METRIC_CHANCES_MET] = NAN,
};

/* What is taken by chance changes no share of promises. */
TEST(test_chances_count_by_themselves)
{
	struct outcome own[SIX];
	struct replay_result run = {
		.outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0, .chances = true
	};
	double out[METRICS];

	six_outcomes(own);
	own[2].state = OUTCOME_DROPPED;
	own[2].by_chance = own[5].by_chance = true;
	assert_int_equal(metrics_of(&six, &four_cores, &run, NULL, out, NULL), 0);
	assert_true(out[METRIC_CHANCES] == 2.0 && out[METRIC_CHANCES_MET] == 1.0);
	assert_true(out[METRIC_PROMISED] == 3.0 && fabs(out[METRIC_ATTAINMENT] - 1.0 / 3.0) < NEAR);
	assert_true(out[METRIC_REJECTED] == 0.0); /* it was taken, and is not in time */
	assert_true(fabs(out[METRIC_ATTAINMENT_ADMITTED] - 2.0 / 5.0) < NEAR);
	assert_true(fabs(out[METRIC_RESPONSE_MEAN] - 27.0) < NEAR); /* it has no time */
}

TEST(test_a_job_counts_by_its_value)
{
	struct trace_job job[SIX];
	struct trace t = six;
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS];

	t.job = memcpy(job, six_jobs, sizeof job);
	job[0].value = 3.0; /* met */
	job[1].value = 0.5; /* missed */
	six_outcomes(own);
	assert_int_equal(metrics_of(&t, &four_cores, &run, NULL, out, NULL), 0);
	assert_true(fabs(out[METRIC_VALUE_ZERO] - (3.0 * 0.92 + 0.64) / 6.5) < NEAR);
	assert_true(fabs(out[METRIC_ACCURACY_ZERO] - 0.312) < NEAR);
}

TEST(test_six_jobs_by_hand)
{
	struct outcome own[SIX], oracle[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS], trials[METRICS];

	six_outcomes(own);
	six_of_oracle(oracle);
	assert_int_equal(metrics_of(&six, &four_cores, &run, oracle, out, NULL), 0);
	for (size_t m = 0; m < METRICS; m++)
		if (!(fabs(out[m] - six_by_hand[m]) <= NEAR || (isnan(out[m]) && isnan(six_by_hand[m]))))
			fail_msg("%s: %.17g, by hand %.17g", metric_info[m].name, out[m], six_by_hand[m]);
	metrics_trials(&six, &run, oracle, trials);
	assert_true(trials[METRIC_ATTAINMENT] == 3 && trials[METRIC_ATTAINMENT_ALL] == 5);
	assert_true(trials[METRIC_ATTAINMENT_ADMITTED] == 4 && trials[METRIC_ATTAINMENT_ORACLE] == 3);
	assert_true(trials[METRIC_COVERAGE] == 3 && isnan(trials[METRIC_ACCURACY]) &&
		    isnan(trials[METRIC_JOBS]));
}

TEST(test_without_the_oracle_nothing_is_said_of_it)
{
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS];

	six_outcomes(own);
	assert_int_equal(metrics_of(&six, &four_cores, &run, NULL, out, NULL), 0);
	for (size_t m = 0; m < METRICS; m++) {
		bool needs_oracle = m == METRIC_REGRET || m == METRIC_ATTAINMENT_ORACLE;

		assert_int_equal(isnan(out[m]) != 0, needs_oracle || metric_info[m].rare);
	}
}

TEST(test_the_oracle_regrets_nothing_against_itself)
{
	struct outcome oracle[SIX];
	struct replay_result run = { .outcome = oracle, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS];

	six_of_oracle(oracle);
	assert_int_equal(metrics_of(&six, &four_cores, &run, oracle, out, NULL), 0);
	assert_true(out[METRIC_REGRET] == 0.0);
	assert_true(out[METRIC_ATTAINMENT_ORACLE] == 1.0);
}

TEST(test_who_promises_nothing_is_judged_by_what_was_taken)
{
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS], trials[METRICS];

	six_outcomes(own);
	for (size_t i = 0; i < SIX; i++)
		own[i].promised = false;
	assert_int_equal(metrics_of(&six, &four_cores, &run, NULL, out, NULL), 0);
	metrics_trials(&six, &run, NULL, trials);
	assert_true(out[METRIC_PROMISED] == 0.0 && out[METRIC_ATTAINMENT] == 0.5);
	assert_true(trials[METRIC_ATTAINMENT] == 4.0);
}

TEST(test_nothing_is_said_where_nothing_can_be)
{
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX };
	double out[METRICS];

	for (size_t i = 0; i < SIX; i++)
		own[i] = ran(i % 2 ? OUTCOME_REJECTED : OUTCOME_REFUSED, false, 0, 0);
	assert_int_equal(metrics_of(&six, &four_cores, &run, own, out, NULL), 0);
	assert_true(out[METRIC_JOBS] == 5.0 && out[METRIC_REJECTED] == 5.0 && out[METRIC_MET] == 0.0);
	assert_true(out[METRIC_ATTAINMENT_ALL] == 0.0); /* met none of five: that can be said */
	assert_true(out[METRIC_ACCURACY_ZERO] == 0.0 && out[METRIC_REGRET] == 0.0);
	assert_true(out[METRIC_FAIRNESS] == 1.0); /* the same for all */
	assert_true(isnan(out[METRIC_ATTAINMENT]) && isnan(out[METRIC_ATTAINMENT_ADMITTED]));
	assert_true(isnan(out[METRIC_ATTAINMENT_ORACLE]) && isnan(out[METRIC_ACCURACY]));
	assert_true(isnan(out[METRIC_ACCURACY_MET]) && isnan(out[METRIC_RESPONSE_MEAN]));
	assert_true(isnan(out[METRIC_RESPONSE_P95]) && isnan(out[METRIC_RESPONSE_P99]));
	assert_true(isnan(out[METRIC_WAIT_MEAN]) && isnan(out[METRIC_UTILISATION]));
	assert_true(isnan(out[METRIC_COVERAGE]) && isnan(out[METRIC_MSE]) && isnan(out[METRIC_MAPE]));
	assert_true(isnan(out[METRIC_ACCURACY_MAE]));
}

TEST(test_where_nobody_has_an_objective_all_jobs_count)
{
	struct trace_job job[SIX];
	struct trace t = six;
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS];

	t.job = memcpy(job, six_jobs, sizeof job);
	for (size_t i = 0; i < SIX; i++) {
		job[i].slo_s = NAN;
		own[i] = predicted(ran(OUTCOME_DONE, false, 60, 70 + (double)i), NAN, NAN, NAN, 0.5);
	}
	own[2] = ran(OUTCOME_REFUSED, false, 0, 0);
	assert_int_equal(metrics_of(&t, &four_cores, &run, own, out, NULL), 0);
	assert_true(out[METRIC_JOBS] == 6.0 && out[METRIC_REJECTED] == 1.0 && out[METRIC_ACCURACY] == 0.5);
	assert_true(isnan(out[METRIC_ATTAINMENT]) && isnan(out[METRIC_ATTAINMENT_ALL]));
	assert_true(isnan(out[METRIC_ATTAINMENT_ADMITTED]) && isnan(out[METRIC_ATTAINMENT_ORACLE]));
	assert_true(isnan(out[METRIC_ACCURACY_ZERO]) && isnan(out[METRIC_REGRET]));
	assert_true(isnan(out[METRIC_FAIRNESS]));
}

TEST(test_a_world_without_accuracies_gives_none)
{
	struct outcome own[SIX], oracle[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS];

	six_outcomes(own);
	six_of_oracle(oracle);
	for (size_t i = 0; i < SIX; i++)
		own[i].accuracy = oracle[i].accuracy = NAN;
	assert_int_equal(metrics_of(&six, &four_cores, &run, oracle, out, NULL), 0);
	assert_true(isnan(out[METRIC_ACCURACY]) && isnan(out[METRIC_ACCURACY_MET]));
	assert_true(isnan(out[METRIC_ACCURACY_ZERO]) && isnan(out[METRIC_REGRET]));
	assert_true(isnan(out[METRIC_ACCURACY_MAE]));
	assert_true(out[METRIC_ATTAINMENT_ALL] == 0.4);
}

/* The accuracy of the second kind is not known, so its jobs are left out: the miss and the failure as
 * well. */
TEST(test_kinds_without_an_accuracy_do_not_count_as_zero)
{
	struct trace_job jobs[SIX];
	struct trace two_kinds = six;
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	double out[METRICS];

	memcpy(jobs, six_jobs, sizeof jobs);
	jobs[2].kind = jobs[3].kind = 1;
	two_kinds.job = jobs;
	two_kinds.n_kinds = 2;
	six_outcomes(own);
	own[2] = ran(OUTCOME_MISSED, true, 30, 80);
	assert_int_equal(metrics_of(&two_kinds, &four_cores, &run, NULL, out, NULL), 0);
	assert_true(fabs(out[METRIC_ACCURACY_ZERO] - (0.92 + 0.64) / 3.0) <= NEAR);
}

TEST(test_outcomes_of_another_trace_are_refused)
{
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX - 1 };
	double out[METRICS];
	struct err err = { 0 };

	six_outcomes(own);
	assert_int_equal(metrics_of(&six, &four_cores, &run, NULL, out, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "5 outcomes of 6 jobs"));
}

TEST(test_no_allocation_that_fails_is_overlooked)
{
	struct outcome own[SIX];
	struct replay_result run = { .outcome = own, .n = SIX, .end_s = 100.0, .busy_s = 220.0 };
	unsigned long k = 0;

	six_outcomes(own);
	for (bool failed = true; failed;) {
		double out[METRICS] = { -1.0 };
		int status;

		mem_fail_at(++k, false);
		status = metrics_of(&six, &four_cores, &run, NULL, out, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(status, failed ? -ERR_NOMEM : 0);
		assert_true(out[0] == (failed ? -1.0 : 5.0));
	}
	assert_true(k > 1);
}

/* ---- any outcomes ---- */

#define RANDOM_JOBS 200

static struct outcome random_outcome(struct rng *r, const struct trace_job *j)
{
	double start_s = 1e-9 * (double)j->arrival_ns + 10.0 * rng_uniform(r),
	       run_s = 30.0 * rng_exponential(r);
	struct outcome o = ran(OUTCOME_FAILED, rng_below(r, 2), start_s, start_s + run_s);

	o = predicted(o, run_s * (0.5 + rng_uniform(r)), run_s * (0.6 + rng_uniform(r)), rng_uniform(r),
		      rng_uniform(r));
	if (rng_below(r, 4) == 0)
		o.run_upper_s = o.predicted_accuracy = NAN;
	switch (rng_below(r, 8)) {
	case 0: return ran(rng_below(r, 2) ? OUTCOME_REJECTED : OUTCOME_REFUSED, false, 0, 0);
	case 1: o.accuracy = NAN; return o;
	}
	if (isnan(j->slo_s))
		o.state = OUTCOME_DONE;
	else
		o.state = 1e-9 * (double)(o.end_ns - j->arrival_ns) <= j->slo_s ? OUTCOME_MET
										: OUTCOME_MISSED;
	return o;
}

static void check_random(uint64_t seed)
{
	static struct trace_job job[RANDOM_JOBS];
	static struct outcome own[RANDOM_JOBS], oracle[RANDOM_JOBS];
	struct rng r = rng_stream(20261116, seed);
	size_t n = 1 + rng_below(&r, RANDOM_JOBS);
	struct trace t = {
		.job = job, .n_jobs = n, .tenant = tenant_name, .weight = tenant_weight, .n_tenants = 2
	};
	struct replay_result run = {
		.outcome = own, .n = n, .end_s = 1000.0, .busy_s = 4000.0 * rng_uniform(&r)
	};
	double out[METRICS], missed = 0.0;

	for (size_t i = 0; i < n; i++) {
		job[i] = (struct trace_job){ .id = i + 1,
					     .arrival_ns = (int64_t)i * S,
					     .slo_s = rng_below(&r, 5) ? 40.0 * rng_uniform(&r) : NAN,
					     .confidence = NAN,
					     .tenant = rng_below(&r, 2),
					     .type = -1 };
		own[i] = random_outcome(&r, &job[i]);
		oracle[i] = random_outcome(&r, &job[i]);
		missed += own[i].state == OUTCOME_MISSED;
	}
	assert_int_equal(metrics_of(&t, &four_cores, &run, oracle, out, NULL), 0);
	for (size_t m = 0; m < METRICS; m++)
		if (!strcmp(metric_info[m].unit, "share") && !isnan(out[m]))
			assert_true(out[m] >= 0.0 && out[m] <= 1.0);
	if (!isnan(out[METRIC_ATTAINMENT_ALL])) { /* every job with a limit is exactly one of these */
		assert_true(out[METRIC_JOBS] ==
			    out[METRIC_MET] + missed + out[METRIC_REJECTED] + out[METRIC_FAILED]);
		assert_true(fabs(out[METRIC_REGRET]) <= 1.0);
	}
	assert_true(!(out[METRIC_RESPONSE_P95] > out[METRIC_RESPONSE_P99]));
	assert_true(!(out[METRIC_WAIT_MEAN] > out[METRIC_RESPONSE_MEAN]));
	assert_true(!(out[METRIC_ATTAINMENT_ALL] > out[METRIC_ATTAINMENT_ADMITTED]));
	assert_true(!(out[METRIC_MSE] < 0.0) && !(out[METRIC_MAPE] < 0.0));
}

TEST(test_shares_are_shares_and_counts_add_up)
{
	for (uint64_t seed = 0; seed < 500; seed++)
		check_random(seed);
}

/* ---- intervals ---- */

TEST(test_students_interval_has_the_printed_quantile)
{
	const double v[] = { 1.0, NAN, 2.0, 3.0, 4.0, NAN, 5.0 };
	/* t(0.975, 4) = 2.776445105 as in any table; sd = sqrt(2.5) */
	double half = 2.776445105 * sqrt(2.5 / 5.0);
	struct interval i = metrics_interval(v, 7, 0.95);

	assert_true(i.mean == 3.0);
	assert_true(fabs(i.low - (3.0 - half)) < 1e-8 && fabs(i.high - (3.0 + half)) < 1e-8);
	/* t(0.95, 1) = 6.313751515, the widest of all */
	i = metrics_interval((const double[]){ 2.37, 4.37 }, 2, 0.9);
	assert_true(fabs(i.high - i.low - 2.0 * 6.313751515) < 1e-8);
}

TEST(test_one_replication_has_no_interval_of_its_own)
{
	struct interval i = metrics_interval((const double[]){ 2.37 }, 1, 0.95);

	assert_true(i.mean == 2.37 && isnan(i.low) && isnan(i.high));
	i = metrics_interval((const double[]){ NAN, NAN }, 2, 0.95);
	assert_true(isnan(i.mean) && isnan(i.low) && isnan(i.high));
	i = metrics_interval(NULL, 0, 0.95);
	assert_true(isnan(i.mean));
	i = metrics_interval((const double[]){ 0.1, 0.1, 0.1 }, 3, 0.95);
	assert_true(i.low == 0.1 && i.high == 0.1);
	i = metrics_interval((const double[]){ 1, 2 }, 2, 1.0);
	assert_true(i.mean == 1.5 && isnan(i.low));
}

TEST(test_wilson_has_its_known_values)
{
	static const struct {
		double met, n, low, high;
	} known[] = {
		{ 8, 10, 0.49016247, 0.94331782 }, /* roots of (p - x)^2 = z^2 x (1 - x) / n */
		{ 5, 5, 0.56551754, 1.0 }, /* no miss in five jobs: up to 43 % of misses */
		{ 0, 5, 0.0, 0.43448246 },
		{ 81, 263, 0.25528852,
		  0.36620958 }, /* Newcombe, Statistics in Medicine 17, 1998: 0.2553, 0.3662 */
	};

	for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
		struct interval i = metrics_wilson(known[k].met, known[k].n, 0.95);

		assert_true(i.mean == known[k].met / known[k].n);
		if (!(fabs(i.low - known[k].low) < 1e-7 && fabs(i.high - known[k].high) < 1e-7))
			fail_msg("%g of %g: %.8f to %.8f", known[k].met, known[k].n, i.low, i.high);
	}
	assert_true(isnan(metrics_wilson(0, 0, 0.95).mean));
	assert_true(isnan(metrics_wilson(3, 2, 0.95).low) && isnan(metrics_wilson(-1, 2, 0.95).low));
}

TEST(test_wilson_holds_its_share)
{
	for (double n = 1.0; n < 200.0; n += 7.0) {
		for (double met = 0.0; met <= n; met++) {
			struct interval i = metrics_wilson(met, n, 0.95), wide = metrics_wilson(met, n, 0.99);

			assert_true(0.0 <= i.low && i.low <= i.mean && i.mean <= i.high && i.high <= 1.0);
			assert_true(i.low < i.high && wide.low <= i.low && i.high <= wide.high);
		}
	}
}

TEST(test_student_s_own_example_of_pairs)
{
	/* Extra sleep under two drugs (Student, Biometrika 6, 1908): t = 4.0621 on 9 degrees, p =
	 * 0.002833. */
	const double a[] = { 0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0 };
	const double b[] = { 1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4 };
	struct paired_result r = metrics_paired(a, b, 10, 0.95), back = metrics_paired(b, a, 10, 0.95);

	assert_int_equal(r.n, 10);
	assert_true(fabs(r.difference - 1.58) < 1e-12);
	assert_true(fabs(r.low - 0.7001142) < 1e-6 && fabs(r.high - 2.4598858) < 1e-6);
	assert_true(fabs(r.p - 0.00283289) < 1e-7);
	assert_true(back.difference == -r.difference && back.p == r.p);
}

TEST(test_pairs_that_say_too_little)
{
	const double a[] = { 1.0, 2.0, NAN }, b[] = { 2.5, NAN, 4.0 }, up[] = { 2.0, 3.0, 4.0 };
	const double from[] = { 1.0, 2.0, 3.0 };
	struct paired_result r = metrics_paired(a, b, 3, 0.95);

	assert_true(r.n == 1 && r.difference == 1.5 && isnan(r.low) && isnan(r.p));
	r = metrics_paired(from, from, 3, 0.95);
	assert_true(r.n == 3 && r.difference == 0.0 && r.p == 1.0 && r.low == 0.0 && r.high == 0.0);
	r = metrics_paired(from, up, 3, 0.95);
	assert_true(r.difference == 1.0 && r.p == 0.0);
	r = metrics_paired(NULL, NULL, 0, 0.95);
	assert_true(r.n == 0 && isnan(r.difference) && isnan(r.p));
}

/* The p of the paper's scheme: 0.01 counts four times, 0.02 three times, 0.03 twice, and none less than the
 * one before it. */
TEST(test_holm_corrects_for_the_number_of_tests)
{
	struct paired_result test[4] = { { .p = 0.02 }, { .p = 0.01 }, { .p = 0.03 }, { .p = 0.9 } };
	struct paired_result *by_p[4] = { &test[0], &test[1], &test[2], &test[3] };

	metrics_holm(by_p, 4);
	assert_true(fabs(test[1].p_holm - 0.04) < 1e-15);
	assert_true(fabs(test[0].p_holm - 0.06) < 1e-15);
	assert_true(fabs(test[2].p_holm - 0.06) < 1e-15);
	assert_true(fabs(test[3].p_holm - 0.9) < 1e-15);
	metrics_holm(by_p, 0);
}

/* 0.01 in one of 3 x 6 tests is no verdict at 95 %, alone it is. */
TEST(test_a_verdict_counts_all_tests_of_the_comparison)
{
	struct paired_result versus[3][METRICS];
	struct paired_result *policy[4] = { versus[0], NULL, versus[1], versus[2] };

	for (size_t i = 0; i < 3 * METRICS; i++)
		(&versus[0][0])[i] = (struct paired_result){ 0.1, 0.01, 0.2, 0.5, 20, 0.0 };
	versus[0][METRIC_ATTAINMENT].p = 0.01;
	versus[2][METRIC_ATTAINMENT].p = NAN;
	versus[1][METRIC_MSE].p = 1e-9;
	assert_int_equal(metrics_correct(policy, 4), 3 * METRICS_TESTED - 1);
	assert_true(fabs(versus[0][METRIC_ATTAINMENT].p_holm - 0.17) < 1e-12);
	assert_int_equal(metrics_verdict(&versus[0][METRIC_ATTAINMENT], METRIC_ATTAINMENT, 0.95),
			 VERDICT_UNCLEAR);
	assert_int_equal(metrics_verdict(&versus[2][METRIC_ATTAINMENT], METRIC_ATTAINMENT, 0.95),
			 VERDICT_UNKNOWN);
	assert_int_equal(metrics_verdict(&versus[1][METRIC_MSE], METRIC_MSE, 0.95), VERDICT_UNKNOWN);
	for (size_t i = 0; i < METRICS; i++)
		versus[1][i].p = versus[2][i].p = NAN;
	for (size_t k = 1; k < METRICS_TESTED; k++)
		versus[0][metric_tested[k]].p = NAN;
	assert_int_equal(metrics_correct(policy, 4), 1);
	assert_int_equal(metrics_verdict(&versus[0][METRIC_ATTAINMENT], METRIC_ATTAINMENT, 0.95),
			 VERDICT_BETTER);
}

TEST(test_every_metric_has_a_name_of_its_own)
{
	for (size_t m = 0; m < METRICS; m++) {
		assert_true(metric_info[m].name && *metric_info[m].name && *metric_info[m].title);
		assert_non_null(metric_info[m].unit);
		assert_true(metric_info[m].better >= -1 && metric_info[m].better <= 1);
		for (size_t k = 0; k < m; k++)
			assert_string_not_equal(metric_info[m].name, metric_info[k].name);
	}
	for (size_t i = 0; i < OUTCOME_STATES; i++)
		assert_true(outcome_state_name[i] && *outcome_state_name[i]);
}
