/* sim/generate: generated traces have the rates, shapes and shares that were asked for, and the same ones
 * for the same seed. Bounds are five standard deviations of what is counted, so that a right generator fails
 * once in a million seeds; the seeds are fixed besides. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "sim/trace/generate.h"
#include "tests/support/test.h"
#include "tests/unit/sim/trace_bed.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

static struct trace *make(const char *spec, uint64_t seed)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	if (generate_trace(spec, seed, &t, &err))
		fail_msg("%s: %s", spec, err.text);
	return t;
}

static void refuse(const char *spec, const char *want)
{
	struct trace *t = NULL;
	struct err err = { 0 };

	assert_int_equal(generate_trace(spec, 1, &t, &err), -ERR_ARG);
	assert_int_equal(err.code, ERR_ARG);
	if (!strstr(err.text, want))
		fail_msg("%s: '%s' is not in '%s'", spec, want, err.text);
	assert_null(t);
}

static double at_s(const struct trace *t, size_t i)
{
	return (double)t->job[i].arrival_ns / 1e9;
}

static double last_s(const struct trace *t)
{
	return at_s(t, t->n_jobs - 1);
}

/* Variance over mean of the arrivals in windows of that length: 1 for a Poisson process. */
static double dispersion(const struct trace *t, double window_s)
{
	size_t n = (size_t)(last_s(t) / window_s), i = 0;
	double sum = 0.0, squares = 0.0, mean;

	for (size_t w = 0; w < n; w++) {
		double count = 0.0;

		while (i < t->n_jobs && at_s(t, i) < (double)(w + 1) * window_s)
			i++, count++;
		sum += count;
		squares += count * count;
	}
	mean = sum / (double)n;
	return (squares / (double)n - mean * mean) / mean;
}

static void assert_near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%g is not %g +- %g", got, want, tolerance);
}

/* ---- arrivals ---- */

TEST(test_poisson_has_its_rate_and_no_bursts)
{
	struct trace *t = make("poisson,jobs=40000,rate=2.37", 3);

	/* The sum of n exponential gaps: sd mean/sqrt(n). */
	assert_near(last_s(t) * 2.37 / 40000.0, 1.0, 5.0 / sqrt(40000.0));
	/* About 3375 windows: sd of the index sqrt(2/n). */
	assert_near(dispersion(t, 5.0), 1.0, 5.0 * sqrt(2.0 / 3375.0));
	trace_free(t);
}

TEST(test_the_load_gives_the_rate)
{
	struct trace *a = make("poisson,jobs=100,load=0.8,work=40,cores=16", 3);
	struct trace *b = make("poisson,jobs=100,rate=0.32", 3), *c = make("poisson,jobs=100,gap=3.125", 3);

	assert_true(a->fingerprint == b->fingerprint);
	assert_true(a->fingerprint == c->fingerprint);
	trace_free(a);
	trace_free(b);
	trace_free(c);
}

TEST(test_bursty_has_its_rate_and_bursts)
{
	struct trace *t = make("bursty,jobs=200000,rate=1,peak=10,share=0.1,burst=20", 5);

	/* About 1000 cycles of calm and burst, some 190 jobs each, of which 105 in an exponential burst. */
	assert_near(last_s(t) / 200000.0, 1.0, 0.15);
	assert_true(dispersion(t, 20.0) > 20.0);
	trace_free(t);
}

TEST(test_daily_follows_the_day)
{
	struct trace *t = make("daily,jobs=48000,gap=18,depth=0.6,peak_at=12h", 7); /* ten days */
	double noon = 0.0, night = 0.0;

	assert_near(last_s(t) / (18.0 * 48000.0), 1.0, 0.03);
	for (size_t i = 0; i < t->n_jobs; i++) {
		double hour = fmod(at_s(t, i), 86400.0) / 3600.0;

		noon += hour >= 9.0 && hour < 15.0;
		night += hour < 3.0 || hour >= 21.0;
	}
	/* A quarter of the day each: 1/4 +- depth x sqrt(2)/(2 pi) of the jobs. */
	assert_near(noon / 48000.0, 0.25 + 0.6 * M_SQRT2 / (2.0 * M_PI), 0.012);
	assert_near(night / 48000.0, 0.25 - 0.6 * M_SQRT2 / (2.0 * M_PI), 0.012);
	trace_free(t);
}

TEST(test_recurring_jobs_come_at_their_period)
{
	struct trace *t = make("recurring,jobs=4000,series=20,period=1h,jitter=0.1", 11);
	double last[21] = { 0 };
	uint32_t kind[21];

	for (size_t i = 0; i < t->n_jobs; i++) {
		const struct trace_job *j = &t->job[i];

		assert_true(j->recurring >= 1 && j->recurring <= 20);
		if (last[j->recurring] > 0.0) {
			assert_near(at_s(t, i) - last[j->recurring], 3600.0, 360.0 + 1e-6);
			assert_int_equal(j->kind, kind[j->recurring]); /* the same one come again */
		}
		last[j->recurring] = at_s(t, i);
		kind[j->recurring] = j->kind;
	}
	assert_near(last_s(t), 200.0 * 3600.0, 2.0 * 3600.0);
	trace_free(t);
	t = make("recurring,jobs=4000,series=20,rate=0.5", 11);
	assert_near(last_s(t), 8000.0, 100.0);
	trace_free(t);
}

TEST(test_paper_groups_are_equal_and_do_not_meet)
{
	struct trace *t = make("paper,jobs=7000", 13);
	size_t seen[7] = { 0 }, groups = 0;

	assert_int_equal(t->n_jobs, 7000);
	for (size_t i = 0; i < t->n_jobs;) {
		size_t n = 1;

		while (i + n < t->n_jobs && t->job[i + n].arrival_ns == t->job[i].arrival_ns) {
			assert_int_equal(t->job[i + n].kind, t->job[i].kind);
			assert_true(t->job[i + n].slo_s == t->job[i].slo_s);
			n++;
		}
		assert_true(n <= 6);
		assert_near(at_s(t, i), (double)groups * 6000.0, 1e-6); /* 20 x 300 s */
		seen[n]++;
		groups++;
		i += n;
	}
	/* About 2000 groups, a sixth of them each: sd 16.7. */
	for (size_t n = 1; n <= 6; n++)
		assert_near((double)seen[n], (double)groups / 6.0, 85.0);
	assert_int_equal(t->n_kinds, 8); /* four levels of cpus, two networks */
	trace_free(t);
}

/* ---- what jobs are ---- */

static void slo_moments(const struct trace *t, double *out_mean, double *out_sd, double *out_least)
{
	double sum = 0.0, squares = 0.0;

	*out_least = INFINITY;
	for (size_t i = 0; i < t->n_jobs; i++) {
		double v = t->job[i].slo_s;

		sum += v;
		squares += v * v;
		if (v < *out_least)
			*out_least = v;
	}
	*out_mean = sum / (double)t->n_jobs;
	*out_sd = sqrt(squares / (double)t->n_jobs - *out_mean * *out_mean);
}

TEST(test_objectives_follow_their_law)
{
	double mean, sd, least;
	struct trace *t = make("poisson,jobs=40000,slo=normal:300:100", 17);

	slo_moments(t, &mean, &sd, &least);
	/* Truncated at 3 s, 2.97 sd below the mean: mean and sd move by 0.5 and 0.7 s. */
	assert_near(mean, 300.48, 5.0 * 100.0 / sqrt(40000.0));
	assert_near(sd, 99.3, 5.0 * 100.0 / sqrt(2.0 * 40000.0));
	assert_true(least >= 3.0);
	trace_free(t);

	t = make("poisson,jobs=40000,slo=normal:300:100,slo_min=250", 17);
	slo_moments(t, &mean, &sd, &least);
	/* Mean of a normal above a = -0.5 sd: 300 + 100 phi(a) / (1 - Phi(a)). */
	assert_near(mean, 300.0 + 100.0 * 0.35206533 / 0.69146246, 2.0);
	assert_true(least >= 250.0);
	trace_free(t);

	t = make("poisson,jobs=40000,slo=lognormal:10:0.5", 17);
	slo_moments(t, &mean, &sd, &least);
	assert_near(mean, 10.0 * exp(0.125), 5.0 * 6.04 / sqrt(40000.0));
	trace_free(t);

	t = make("poisson,jobs=40000,slo=uniform:2:5", 17);
	slo_moments(t, &mean, &sd, &least);
	assert_near(mean, 3.5, 5.0 * 0.866 / sqrt(40000.0));
	assert_true(least >= 2.0 && least < 2.01);
	trace_free(t);

	t = make("poisson,jobs=3,slo=5m", 17);
	assert_true(t->job[0].slo_s == 300.0 && t->job[2].slo_s == 300.0);
	trace_free(t);
	t = make("poisson,jobs=3,slo=none", 17);
	assert_true(isnan(t->job[0].slo_s));
	trace_free(t);
}

TEST(test_tenants_have_their_shares)
{
	struct trace *t = make("poisson,jobs=40000,tenants=lab:6|shop:3|guest", 19);
	double n[3] = { 0 };
	static const char *const name[] = { "lab", "shop", "guest" };
	static const double share[] = { 0.6, 0.3, 0.1 };

	assert_int_equal(t->n_tenants, 3);
	for (size_t i = 0; i < t->n_jobs; i++)
		for (size_t k = 0; k < 3; k++)
			n[k] += strcmp(t->tenant[t->job[i].tenant], name[k]) == 0;
	for (size_t k = 0; k < 3; k++)
		assert_near(n[k] / 40000.0, share[k], 5.0 * sqrt(share[k] * (1.0 - share[k]) / 40000.0));
	for (size_t k = 0; k < 3; k++)
		if (strcmp(t->tenant[k], "lab") == 0)
			assert_true(t->weight[k] == 6.0);
	trace_free(t);
}

TEST(test_values_are_drawn_evenly)
{
	struct trace *t =
		make("poisson,jobs=30000,network=a|b|c,samples=,cpus=1|8,depth_of_net=3,best_effort=0.25,"
		     "batches=64|128,epochs=1..4,confidence=0.95,type=x,priority=-2,value=1|2.5",
		     23);
	double b = 0.0, eight = 0.0, effort = 0.0, dear = 0.0;
	const struct trace_kind *k = &t->kind[0];

	assert_int_equal(t->n_columns, 3);
	assert_string_equal(t->column[0], "network");
	assert_string_equal(t->column[1], "epochs");
	assert_string_equal(t->column[2], "depth_of_net");
	for (size_t i = 0; i < t->n_jobs; i++) {
		b += strcmp(value(t, i, "network"), "b") == 0;
		eight += t->kind[t->job[i].kind].cpus == 8;
		effort += t->job[i].best_effort;
		dear += t->job[i].value == 2.5;
	}
	assert_near(b / 30000.0, 1.0 / 3.0, 5.0 * 0.4714 / sqrt(30000.0));
	assert_near(eight / 30000.0, 0.5, 5.0 * 0.5 / sqrt(30000.0));
	assert_near(dear / 30000.0, 0.5, 5.0 * 0.5 / sqrt(30000.0));
	assert_near(effort / 30000.0, 0.25, 5.0 * 0.433 / sqrt(30000.0));
	assert_int_equal(k->n_batches, 2);
	assert_true(k->epochs_from == 1.0 && k->epochs_to == 4.0);
	assert_true(t->job[0].confidence == 0.95);
	assert_string_equal(t->type[t->job[0].type], "x");
	assert_int_equal(t->job[0].priority, -2);
	trace_free(t);
}

/* ---- reproducible ---- */

TEST(test_the_seed_says_it_all)
{
	static const char *const kinds[] = { "paper", "poisson", "bursty", "daily", "recurring" };

	for (size_t i = 0; i < 5; i++) {
		struct trace *a = make(kinds[i], 1), *b = make(kinds[i], 1), *c = make(kinds[i], 2);

		assert_true(a->fingerprint == b->fingerprint);
		assert_true(a->fingerprint != c->fingerprint);
		assert_int_equal(a->n_jobs, 1000);
		trace_free(a);
		trace_free(b);
		trace_free(c);
	}
}

TEST(test_jobs_stay_the_same_at_another_rate)
{
	struct trace *a = make("poisson,jobs=500,rate=1", 29), *b = make("bursty,jobs=500,rate=3", 29);

	for (size_t i = 0; i < a->n_jobs; i++) {
		assert_true(a->job[i].slo_s == b->job[i].slo_s);
		assert_string_equal(value(a, i, "network"), value(b, i, "network"));
	}
	trace_free(a);
	trace_free(b);
}

/* ---- refusals ---- */

TEST(test_bad_specs_are_refused_by_key)
{
	static const struct {
		const char *spec, *want;
	} cases[] = {
		{ "", "no such generator" },
		{ "poison", "did you mean 'poisson'?" },
		{ "poisson,jobs", "'jobs' is not key=value" },
		{ "poisson,jobs=0", "jobs='0': need a whole number from 1 to 20000000" },
		{ "poisson,jobs=1.5", "jobs='1.5'" },
		{ "poisson,jobs=20000001", "jobs='20000001'" },
		{ "poisson,jbos=10", "there is no key 'jbos'; did you mean 'jobs'?" },
		{ "poisson,cpu=10", "there is no key 'cpu'; did you mean 'cpus'?" },
		{ "poisson,arrival_s=10", "'arrival_s' is not a key of a generator" },
		{ "poisson,value=1|0", "value='1|0': need numbers from 0.001 to 1000: 1|5" },
		{ "poisson,jobs=10,jobs=10", "need it only once" },
		{ "poisson,network=a,network=b", "need it only once" },
		{ "poisson,network=a||b", "none empty" },
		{ "poisson,rate=1,gap=2", "give one of them" },
		{ "poisson,load=0.5", "go together" },
		{ "poisson,work=0.5", "go together" },
		{ "poisson,rate=0", "rate='0'" },
		{ "poisson,cpus=0", "cpus='0'" },
		{ "poisson,cpus=1|x", "cpus='1|x'" },
		{ "poisson,slo=normal:300", "slo='normal:300'" },
		{ "poisson,slo=uniform:5:2", "slo='uniform:5:2'" },
		{ "poisson,slo=5,slo_min=6", "above every limit" },
		{ "poisson,confidence=1", "confidence='1'" },
		{ "poisson,tenants=a:0", "tenants='a:0'" },
		{ "poisson,tenants=a|a", "tenants='a|a'" },
		{ "poisson,batches=128|64", "batches='128|64'" },
		{ "poisson,epochs=4..1", "a range of whole epochs" },
		{ "poisson,epochs=x", "whole numbers of epochs" },
		{ "poisson,peak=2", "the key 'peak' belongs to another generator" },
		{ "bursty,burst=1,gap=1000", "below a hundredth of the mean gap" },
		{ "recurring,period=1h,rate=1", "give one of them" },
		{ "poisson,jobs=1000,gap=3.2e9", "more than a hundred years" },
		{ "poisson,network=\x01", "control character" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		refuse(cases[i].spec, cases[i].want);
}

TEST_WITH(test_no_allocation_that_fails_does_harm, NULL, disarm)
{
	static const char *const specs[] = { "poisson,jobs=40,tenants=a|b,type=x|y", "recurring,jobs=40" };

	for (size_t i = 0; i < 2; i++)
		for (unsigned long k = 1;; k++) {
			struct trace *t = NULL;
			struct err err = { 0 };
			int rc;

			mem_fail_at(k, k % 2);
			rc = generate_trace(specs[i], 1, &t, &err);
			if (!mem_failed()) {
				mem_fail_at(0, false);
				assert_int_equal(rc, 0);
				assert_true(k > 10);
				trace_free(t);
				break;
			}
			mem_fail_at(0, false);
			assert_int_equal(rc, -ERR_NOMEM);
			assert_null(t);
		}
}
