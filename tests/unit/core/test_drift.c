/* The drift alarm: how long until a false one, how soon a true one, and what it says. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "scheduler/core/learn/drift.h"
#include "tests/support/support.h"

#define RUNS 40 /* to a false alarm: their mean is known to 16 % */
#define ENDLESS 40000 /* jobs at most; a run that long counts as this */
#define SHIFTS 200
#define RESIDUALS 5000 /* so many that centre and spread are as good as known */

static double normal(struct rng *r)
{
	return rng_normal(r);
}

static double student(struct rng *r) /* t with 3 degrees of freedom, quartiles as the normal distribution's */
{
	double z = rng_normal(r), a = rng_normal(r), b = rng_normal(r), c = rng_normal(r);

	return z / sqrt((a * a + b * b + c * c) / 3.0) * 0.6745 / 0.7649;
}

static double skewed(struct rng *r) /* mean 0, variance 1, a tail upwards */
{
	return rng_exponential(r) - 1.0;
}

static struct drift *new_drift(double centre, double spread)
{
	struct drift *d = NULL;

	assert_int_equal(drift_new(&(struct drift_reference){ centre, spread, 89 }, &d, NULL), 0);
	return d;
}

/* Jobs until an alarm of any kind; types: 0 for the pool alone. */
static size_t run(struct drift *d, double spread, double shift, uint32_t types, double (*noise)(struct rng *),
		  struct rng *r)
{
	for (size_t i = 1; i <= ENDLESS; i++) {
		int type = types ? (int)rng_below(r, types) : -1;

		if (drift_observe(d, type, 10.0, 10.0 * exp(shift + spread * noise(r))))
			return i;
	}
	return ENDLESS;
}

/* residuals: of the model that centre and spread come from; a new one for each run. */
static void false_alarms(const char *name, uint32_t types, double (*noise)(struct rng *), double spread,
			 size_t residuals, double *out_mean, double *out_median)
{
	static double length[RUNS], score[RESIDUALS];
	size_t early = 0;

	for (uint64_t k = 0; k < RUNS; k++) {
		struct rng r = rng_stream(support_seed(11), k);
		struct drift_reference p = { 0 };
		struct drift *d = NULL;

		for (size_t i = 0; i < residuals; i++)
			score[i] = spread * noise(&r);
		assert_int_equal(drift_reference_of(score, residuals, &p, NULL), 0);
		assert_int_equal(drift_new(&p, &d, NULL), 0);
		length[k] = (double)run(d, spread, 0.0, types, noise, &r);
		early += length[k] < 1000.0;
		drift_free(d);
	}
	*out_mean = stats_mean(length, RUNS);
	*out_median = stats_median(length, RUNS);
	printf("  %-44s mean %7.0f  median %7.0f  %2zu of %d below 1,000\n", name, *out_mean, *out_median,
	       early, RUNS);
}

/* Run lengths are about exponential, so that mean and median of RUNS of them have a standard error of mean /
 * sqrt(RUNS) at most. "Not below ten thousand" allows for three of those: a true mean of 10,000 fails once in
 * 1,000 times. */
static void assert_ten_thousand(double measured, double mean)
{
	assert_true(measured + 3.0 * mean / sqrt(RUNS) >= 10000.0);
}

TEST(test_false_alarms_are_ten_thousand_jobs_apart)
{
	double mean, median;

	printf("jobs to a false alarm, of the pool or a type (a run ends at %d)\n", ENDLESS);
	false_alarms("pool alone, spread 0.1", 0, normal, 0.1, RESIDUALS, &mean, &median);
	assert_true(mean >= 20000.0); /* 25,000 stated; scores cut off make it more rather than less */
	false_alarms("pool and 4 types, spread 0.1", 4, normal, 0.1, RESIDUALS, &mean, &median);
	assert_ten_thousand(mean, mean);
	false_alarms("pool and 4 types, spread 0.3", 4, normal, 0.3, RESIDUALS, &mean, &median);
	assert_ten_thousand(mean, mean);
	false_alarms("pool and 4 types, heavy tails, 0.1", 4, student, 0.1, RESIDUALS, &mean, &median);
	assert_ten_thousand(mean, mean);
	false_alarms("pool and 4 types, skewed, 0.1", 4, skewed, 0.1, RESIDUALS, &mean, &median);
	assert_ten_thousand(mean, mean);
	false_alarms("pool and 4 types, 0.1, from 89 residuals", 4, normal, 0.1, 89, &mean, &median);
	assert_ten_thousand(mean, mean);
	assert_ten_thousand(median, mean);
	false_alarms("pool and 4 types, 0.3, from 89 residuals", 4, normal, 0.3, 89, &mean, &median);
	assert_ten_thousand(mean, mean);
	assert_ten_thousand(median, mean);
}

TEST(test_reference_is_that_of_the_scores)
{
	static double score[RESIDUALS];
	struct drift_reference ref;
	struct rng r = rng_stream(16, 1);
	struct err err = { 0 };

	for (size_t i = 0; i < RESIDUALS; i++)
		score[i] = 0.03 + 0.1 * rng_normal(&r);
	assert_int_equal(drift_reference_of(score, RESIDUALS, &ref, &err), 0);
	assert_true(fabs(ref.centre - 0.03) < 0.005); /* 0.0014 a standard error */
	assert_true(fabs(ref.spread - 0.1) < 0.005);
	for (size_t i = 0; i < 50; i++)
		score[i] = 1e6; /* one in a hundred has gone wrong altogether */
	assert_int_equal(drift_reference_of(score, RESIDUALS, &ref, &err), 0);
	assert_true(fabs(ref.centre - 0.03) < 0.01);
	assert_true(fabs(ref.spread - 0.1) < 0.01);
	assert_int_equal(drift_reference_of(score, 7, &ref, &err), -ERR_NODATA);
	assert_int_equal(drift_reference_of(score, 40, &ref, &err), -ERR_NUMERIC); /* all alike */
	score[60] = NAN;
	assert_int_equal(drift_reference_of(score, RESIDUALS, &ref, &err), -ERR_NUMERIC);
}

TEST(test_a_shift_of_a_fifth_is_found_soon_and_measured)
{
	static const double spread[] = { 0.05, 0.1, 0.2, 0.3 };

	printf("a shift after 300 jobs, reference from 89 residuals: jobs until the alarm, and what it says "
	       "then\n");
	for (size_t s = 0; s < 8; s++) {
		double shift = s < 4 ? log(1.2) : -log(1.2), wide = spread[s % 4], percent = 0.0, since = 0.0;
		static double delay[SHIFTS];
		struct drift_evidence e;

		for (uint64_t k = 0; k < SHIFTS; k++) {
			struct rng r = rng_stream(13, k);
			struct drift *d = new_drift(0.0, wide);

			for (int i = 0; i < 300; i++)
				drift_observe(d, -1, 10.0, 10.0 * exp(wide * normal(&r)));
			drift_acknowledge(d, DRIFT_POOLED);
			delay[k] = (double)run(d, wide, shift, 0, normal, &r);
			assert_true(drift_evidence(d, DRIFT_POOLED, &e));
			assert_true(e.alarm);
			assert_int_equal(e.slower, shift > 0.0);
			assert_true(e.statistic > e.threshold);
			percent += e.shift_percent / SHIFTS;
			since += ((double)e.since - delay[k]) / SHIFTS;
			drift_free(d);
		}
		printf("  spread %.2f, times %+3.0f %%: mean %5.1f, 95 %% point %3.0f; says %+5.1f %%, begun "
		       "%+.1f "
		       "jobs off\n",
		       wide, 100.0 * expm1(shift), stats_mean(delay, SHIFTS),
		       stats_percentile(delay, SHIFTS, 95.0), percent, since);
		assert_true(stats_mean(delay, SHIFTS) <= (wide <= 0.1 ? 12.0 : wide <= 0.2 ? 40.0 : 80.0));
		assert_true(fabs(percent - 100.0 * expm1(shift)) <= 8.0);
	}
}

TEST(test_one_type_drifts_and_its_alarm_says_so)
{
	struct drift *d = new_drift(0.02, 0.1);
	struct rng r = rng_stream(14, 1);
	struct drift_evidence e;

	for (int i = 0; i < 800; i++)
		assert_false(drift_observe(d, i % 4, 7.0, 7.0 * exp(0.02 + 0.1 * rng_normal(&r))));
	assert_true(drift_evidence(d, 1, &e));
	assert_false(e.alarm);
	assert_int_equal(e.jobs, 200);
	for (int i = 0; i < 200; i++)
		drift_observe(d, i % 4, 7.0,
			      7.0 * exp(0.02 + 0.1 * rng_normal(&r) + (i % 4 == 2 ? log(1.2) : 0.0)));
	for (int type = 0; type < 4; type++) {
		assert_true(drift_evidence(d, type, &e));
		assert_int_equal(e.alarm, type == 2);
	}
	assert_true(drift_evidence(d, 2, &e));
	assert_in_range(e.since, 40, 65);
	assert_true(fabs(e.shift_percent - 20.0) < 5.0);
	assert_true(e.slower);
	drift_acknowledge(d, 2);
	assert_true(drift_evidence(d, 2, &e));
	assert_false(e.alarm);
	assert_int_equal(e.since, 0);
	assert_true(e.statistic == 0.0 && isnan(e.shift_percent));
	/* it goes on: the alarm comes again */
	for (int i = 0; i < 40; i++)
		drift_observe(d, 2, 7.0, 7.0 * exp(0.02 + 0.1 * rng_normal(&r) + log(1.2)));
	assert_true(drift_evidence(d, 2, &e) && e.alarm);
	/* back to normal: latched, but the statistic falls */
	for (int i = 0; i < 100; i++)
		drift_observe(d, 2, 7.0, 7.0 * exp(0.02 + 0.1 * rng_normal(&r)));
	assert_true(drift_evidence(d, 2, &e) && e.alarm && e.statistic < e.threshold);
	drift_free(d);
}

TEST(test_alarms_of_types_are_bounded_and_nonsense_is_left_out)
{
	static const double odd[] = { NAN, INFINITY, 0.0, -1.0, 5e-324, 1e308, 2.37 };
	struct drift *d = NULL;
	struct drift_evidence e;
	struct rng r = rng_stream(15, 1);

	assert_int_equal(drift_new(&(struct drift_reference){ 0.0, 0.1, 89 }, &d, NULL), 0);
	assert_false(drift_observe(d, 0, NAN, 1.0));
	assert_false(drift_evidence(d, DRIFT_POOLED, &e));
	drift_observe(d, 5, 1.0, 1.0);
	drift_observe(d, 6, 1.0, 1.0);
	drift_observe(d, 5, 1.0, 1.0);
	for (int type = 7; type <= 69; type++) /* the last in the place of 6 */
		drift_observe(d, type, 1.0, 1.0);
	assert_true(drift_evidence(d, 5, &e));
	assert_false(drift_evidence(d, 6, &e));
	assert_true(drift_evidence(d, 7, &e));
	drift_acknowledge(d, 6);
	for (int i = 0; i < 10000; i++) {
		drift_observe(d, (int)rng_below(&r, 9) - 2, odd[rng_below(&r, 7)], odd[rng_below(&r, 7)]);
		if (drift_evidence(d, (int)rng_below(&r, 9) - 2, &e))
			assert_true(e.statistic >= 0.0 && e.statistic <= 2.0 * e.threshold);
	}
	drift_free(d);
	drift_free(NULL);
}

TEST(test_bad_settings_and_missing_memory_are_said)
{
	const struct drift_reference bad[] = {
		{ 0.0, 0.0, 89 }, { 0.0, NAN, 89 }, { 0.0, INFINITY, 89 }, { NAN, 0.1, 89 }, { 0.0, 0.1, 7 },
	};
	struct drift *d = NULL;
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(drift_new(&bad[i], &d, &err), -ERR_ARG);
	mem_fail_at(1, false);
	assert_int_equal(drift_new(&(struct drift_reference){ 0.0, 0.1, 89 }, &d, &err), -ERR_NOMEM);
	mem_fail_at(0, false);
	assert_null(d);
}
