/* Bounds that stay true: what share of promises is kept in worlds whose times move, with and without
 * adaptation, and what it costs. The tables printed are the evidence; the claims are the bars. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/models/conformal.h"
#include "scheduler/core/learn/adapt.h"
#include "tests/support/support.h"

#define BY(number) ((struct adapt_who){ .type = (number), .user = 0 }) /* all jobs are of one user */

#define JOBS 5000
#define MIDDLE 2500 /* where things change */
#define RESIDUALS 89 /* as many as the Courier table has rows */
#define SPREAD 0.1 /* of the log times around the prediction */
#define SEEDS 6
#define MAX_DELAY 64

enum course { STEADY, LONGER, BACK_TO_NORMAL, SLOW_DRIFT, SHORTER, WILDER };
enum method { NOTHING, WINDOW, ALL };
static const char *const method_name[] = { "nothing", "window", "bias and window" };

struct world {
	enum course course;
	bool heavy; /* Student's t with 3 degrees of freedom, of the same variance */
	size_t delay; /* jobs started before a job's result is known */
};

struct outcome { /* shares in percent */
	double all, first100, later; /* of all jobs; of 0..100 and 200..1200 after the middle */
	double width_before, width_after; /* mean bound over the model's time */
	double error_before, error_after; /* mean |expected / actual - 1|, in percent */
	bool kept[JOBS];
};

static double noise(const struct world *w, struct rng *r)
{
	double z = rng_normal(r), a, b, c;

	if (!w->heavy)
		return SPREAD * z;
	a = rng_normal(r);
	b = rng_normal(r);
	c = rng_normal(r);
	return SPREAD * z / sqrt(a * a + b * b + c * c); /* t3 / sqrt(3) */
}

static double truth(const struct world *w, size_t i, struct rng *r)
{
	double s = noise(w, r), longer = log(1.2), t = ((double)i - 1500.0) / 1000.0;

	switch (w->course) {
	case STEADY: return s;
	case LONGER: return s + (i >= MIDDLE ? longer : 0.0);
	case BACK_TO_NORMAL: return s + (i >= 1250 && i < MIDDLE ? longer : 0.0);
	case SLOW_DRIFT: return s + longer * fmin(fmax(t, 0.0), 1.0);
	case SHORTER: return s - (i >= MIDDLE ? longer : 0.0);
	case WILDER: return i >= MIDDLE ? 2.0 * s : s;
	}
	return s;
}

/* Residuals of a model: as many draws of its own noise. */
static void model_residuals(const struct world *w, struct rng *r, double *score)
{
	for (size_t i = 0; i < RESIDUALS; i++)
		score[i] = noise(w, r);
	stats_sort(score, RESIDUALS);
}

static double model_quantile(double *score, double confidence)
{
	struct conformal c = { .n = RESIDUALS, .score = score, .base = 1.0, .log = true };
	double q = NAN;

	conformal_set_groups(&c, RESIDUALS);
	assert_int_equal(conformal_quantile(&c, confidence, &q, NULL), 0);
	return q;
}

static struct adapt *new_adapt(enum method m)
{
	struct adapt *a = NULL;

	assert_int_equal(adapt_new(m == WINDOW ? LAYER_BIAS : 0, &a, NULL), 0);
	return a;
}

static double share(const bool *kept, size_t from, size_t to)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		n += kept[i];
	return 100.0 * (double)n / (double)(to - from);
}

static void play(const struct world *w, enum method m, double confidence, uint64_t seed, struct outcome *o)
{
	struct rng rng = rng_stream(seed, 7);
	struct adapt *a = new_adapt(m);
	double score[RESIDUALS], model_q, predicted[MAX_DELAY + 1], upper[MAX_DELAY + 1],
		actual[MAX_DELAY + 1];

	memset(o, 0, sizeof *o);
	model_residuals(w, &rng, score);
	model_q = model_quantile(score, confidence);
	for (size_t i = 0; i < JOBS + w->delay; i++) {
		size_t at = i % (w->delay + 1), done = (i + 1) % (w->delay + 1);
		double q = model_q, bias = 1.0;

		if (m != NOTHING) {
			q = adapt_quantile(a, BY(3), confidence, model_q);
			bias = adapt_bias(a, BY(3));
		}
		if (i < JOBS) {
			double wrong;

			predicted[at] = 10.0 + 500.0 * rng_uniform(&rng);
			actual[at] = predicted[at] * exp(truth(w, i, &rng));
			upper[at] = predicted[at] * bias * exp(q);
			o->kept[i] = actual[at] <= upper[at];
			wrong = fabs(predicted[at] * bias / actual[at] - 1.0) * 100.0;
			if (i >= 500 && i < 1250) {
				o->width_before += bias * exp(q) / 750.0;
				o->error_before += wrong / 750.0;
			} else if (i >= MIDDLE + 200) {
				o->width_after += bias * exp(q) / (JOBS - MIDDLE - 200);
				o->error_after += wrong / (JOBS - MIDDLE - 200);
			}
		}
		if (i >= w->delay)
			assert_true(adapt_observe(a, BY(3), predicted[done], actual[done]));
	}
	o->all = share(o->kept, 0, JOBS);
	o->first100 = share(o->kept, MIDDLE, MIDDLE + 100);
	o->later = share(o->kept, MIDDLE + 200, MIDDLE + 1200);
	adapt_free(a);
}

struct summary {
	double all, first100, later, least, most, width_before, width_after, error_before, error_after;
	double single[SEEDS];
};

static struct summary average(const struct world *w, enum method m, double confidence)
{
	struct summary s = { .least = 100.0 };
	static struct outcome o;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		play(w, m, confidence, seed, &o);
		s.all += o.all / SEEDS;
		s.first100 += o.first100 / SEEDS;
		s.later += o.later / SEEDS;
		s.least = fmin(s.least, o.later);
		s.most = fmax(s.most, o.later);
		s.width_before += o.width_before / SEEDS;
		s.width_after += o.width_after / SEEDS;
		s.error_before += o.error_before / SEEDS;
		s.error_after += o.error_after / SEEDS;
		s.single[seed] = o.later;
	}
	return s;
}

static void print_head(const char *what)
{
	printf("\n%s\n%-22s %5s  %6s %8s %9s %13s  %14s %14s\n", what, "", "asked", "kept", "0..100",
	       "200..1200", "single seeds", "bound / time", "error %");
	printf("%-22s %5s  %6s %8s %9s %13s  %6s %7s %6s %7s\n", "", "%", "all", "after", "after",
	       "least  most", "before", "after", "before", "after");
}

static void print_row(const char *name, double confidence, const struct summary *s)
{
	printf("%-22s %5.0f  %6.1f %8.1f %9.1f %6.1f %6.1f  %6.3f %7.3f %6.1f %7.1f\n", name,
	       100.0 * confidence, s->all, s->first100, s->later, s->least, s->most, s->width_before,
	       s->width_after, s->error_before, s->error_after);
}

static const double asked[] = { 0.8, 0.9, 0.95 };

TEST(test_promises_are_kept_as_often_as_asked_when_nothing_changes)
{
	struct world w = { .course = STEADY };

	print_head("times from the model's own noise");
	for (size_t k = 0; k < 3; k++) {
		struct summary without = average(&w, NOTHING, asked[k]), with = average(&w, ALL, asked[k]);

		print_row(method_name[NOTHING], asked[k], &without);
		print_row(method_name[ALL], asked[k], &with);
		assert_true(fabs(with.all - 100.0 * asked[k]) <= 1.0);
		assert_true(fabs(with.least - 100.0 * asked[k]) <= 2.0);
		assert_true(fabs(with.most - 100.0 * asked[k]) <= 2.0);
		/* the price: what a bound from endless residuals would be, and 3 % */
		assert_true(with.width_after <= 1.03 * exp(SPREAD * (k == 0   ? 0.8416
								     : k == 1 ? 1.2816
									      : 1.6449)));
		assert_true(with.error_after <= 1.03 * without.error_after);
	}
}

TEST(test_promises_are_kept_again_200_jobs_after_all_times_grew_by_a_fifth)
{
	struct world w = { .course = LONGER };

	print_head("all times 20 % longer from the middle on");
	for (size_t k = 0; k < 3; k++) {
		struct summary without = average(&w, NOTHING, asked[k]), with;

		print_row(method_name[NOTHING], asked[k], &without);
		assert_true(without.later < 100.0 * asked[k] - 20.0);
		for (enum method m = WINDOW; m <= ALL; m++) {
			with = average(&w, m, asked[k]);
			print_row(method_name[m], asked[k], &with);
			if (m != ALL)
				continue;
			for (size_t seed = 0; seed < SEEDS; seed++)
				assert_true(fabs(with.single[seed] - 100.0 * asked[k]) <= 3.0);
			assert_true(fabs(with.later - 100.0 * asked[k]) <= 1.0);
			assert_true(with.all > 100.0 * asked[k] - 1.0);
			/* the expectation follows too */
			assert_true(with.error_after <= 1.1 * with.error_before);
			assert_true(without.error_after > 1.5 * with.error_after);
			printf("  single seeds, 200..1200 after:");
			for (size_t seed = 0; seed < SEEDS; seed++)
				printf(" %.1f", with.single[seed]);
			printf("\n");
		}
	}
}

TEST(test_promises_are_kept_in_other_worlds)
{
	const struct {
		const char *name;
		struct world world;
	} tried[] = {
		{ "heavy tails, longer", { .course = LONGER, .heavy = true } },
		{ "back to normal", { .course = BACK_TO_NORMAL } },
		{ "slow drift", { .course = SLOW_DRIFT } },
		{ "20 % shorter", { .course = SHORTER } },
		{ "twice the noise", { .course = WILDER } },
		{ "longer, 30 in flight", { .course = LONGER, .delay = 30 } },
		{ "steady, 30 in flight", { .course = STEADY, .delay = 30 } },
	};

	print_head("other worlds");
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		for (size_t k = 0; k < 3; k++) {
			struct summary s = average(&tried[i].world, ALL, asked[k]);

			print_row(tried[i].name, asked[k], &s);
			assert_true(fabs(s.all - 100.0 * asked[k]) <= 1.0);
			assert_true(fabs(s.later - 100.0 * asked[k]) <= 2.0);
			assert_true(fabs(s.least - 100.0 * asked[k]) <= 3.0);
			assert_true(fabs(s.most - 100.0 * asked[k]) <= 3.0);
		}
	}
}

/* One adapt, jobs of several types and confidences in turn. */
struct mixed {
	uint64_t n[8], kept[8];
};

/* `ever` counts by level from the first job on, the others when the change is 200 jobs of a type ago. */
static void play_mixed(struct adapt *a, uint64_t seed, size_t jobs, size_t change, int drifting,
		       struct mixed *by_type, struct mixed *by_level, struct mixed *ever)
{
	struct rng rng = rng_stream(seed, 9);
	struct world w = { .course = STEADY };
	double score[RESIDUALS];

	memset(by_type, 0, sizeof *by_type);
	memset(by_level, 0, sizeof *by_level);
	memset(ever, 0, sizeof *ever);
	model_residuals(&w, &rng, score);
	for (size_t i = 0; i < jobs; i++) {
		int type = (int)rng_below(&rng, 4);
		size_t level = rng_below(&rng, 3);
		double q, model_q = model_quantile(score, asked[level]), actual, upper;

		q = adapt_quantile(a, BY(type), asked[level], model_q);
		upper = 100.0 * adapt_bias(a, BY(type)) * exp(q);
		actual = 100.0 * exp(noise(&w, &rng) + (type == drifting && i >= change ? log(1.2) : 0.0));
		ever->n[level]++;
		ever->kept[level] += actual <= upper;
		if (i >= change + 800) { /* 200 of the type */
			by_type->n[type]++;
			by_type->kept[type] += actual <= upper;
			by_level->n[level]++;
			by_level->kept[level] += actual <= upper;
		}
		assert_true(adapt_observe(a, BY(type), 100.0, actual));
	}
}

TEST(test_one_type_drifts_and_the_others_do_not_pay_for_it)
{
	double type_share[4] = { 0 }, level_share[3] = { 0 }, bias[4] = { 0 };

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct adapt *a = new_adapt(ALL);
		struct mixed by_type, by_level, ever;

		play_mixed(a, seed, 10000, 4000, 2, &by_type, &by_level, &ever);
		for (int t = 0; t < 4; t++) {
			type_share[t] += 100.0 * (double)by_type.kept[t] / (double)by_type.n[t] / SEEDS;
			bias[t] += adapt_bias(a, BY(t)) / SEEDS;
		}
		for (int k = 0; k < 3; k++) {
			level_share[k] += 100.0 * (double)by_level.kept[k] / (double)by_level.n[k] / SEEDS;
			assert_true(fabs(100.0 * (double)ever.kept[k] / (double)ever.n[k] -
					 100.0 * asked[k]) <= 2.0);
		}
		adapt_free(a);
	}
	printf("\nfour types, type 2 gets 20 %% longer, confidences 80, 90, 95 %% in turn (mean 88.3)\n");
	for (int t = 0; t < 4; t++) {
		printf("  type %d: kept %.1f %%, bias %.3f\n", t, type_share[t], bias[t]);
		assert_true(fabs(type_share[t] - 88.33) <= 1.5);
		assert_true(fabs(bias[t] - (t == 2 ? 1.2 : 1.0)) <= 0.03);
	}
	for (int k = 0; k < 3; k++) {
		printf("  asked %.0f %%: kept %.1f %%\n", 100.0 * asked[k], level_share[k]);
		assert_true(fabs(level_share[k] - 100.0 * asked[k]) <= 1.5);
	}
}

TEST(test_few_scores_change_little_and_carry_no_confidence_they_cannot)
{
	struct adapt *a = new_adapt(ALL);
	struct rng rng = rng_stream(support_seed(4), 4);
	double q, last = 0.25;

	q = adapt_quantile(a, BY(0), 0.9, 0.25);
	assert_true(q == 0.25);
	assert_true(adapt_bias(a, BY(0)) == 1.0);
	q = adapt_quantile(a, BY(0), 0.9, NAN); /* the model has none either */
	assert_true(isnan(q));
	for (size_t n = 1; n <= 300; n++) {
		double now;

		assert_true(adapt_observe(a, BY(0), 10.0, 10.0 * exp(SPREAD * rng_normal(&rng))));
		assert_int_equal(!isnan(adapt_quantile(a, BY(0), 0.9, NAN)), n >= 9);
		assert_int_equal(!isnan(adapt_quantile(a, BY(0), 0.95, NAN)), n >= 19);
		assert_int_equal(!isnan(adapt_quantile(a, BY(0), 0.99, NAN)), n >= 99);
		assert_true(isnan(adapt_quantile(a, BY(0), 0.999, NAN))); /* no window is as long as that */
		q = adapt_quantile(a, BY(0), 0.999, 0.4);
		assert_true(q == 0.4);
		q = adapt_quantile(a, BY(0), 0.9, 0.25);
		if (n < 9)
			assert_true(q == 0.25);
		now = log(adapt_bias(a, BY(0))) + q;
		/* Nothing jumps: a score moves the bound by about one gap between scores near the 90 % point,
		 * times the weight of the scores. That has a mean of 0.06 spreads and a tail like the
		 * exponential distribution's, so that one of 300 passes 0.8 in 1 of 2,000 tests. Where scores
		 * took the place of the model at once it would be 1.2. */
		assert_true(fabs(now - last) < 0.8 * SPREAD);
		last = now;
	}
	/* four standard errors of the 90 % point of 200 scores, sqrt(0.9 * 0.1 / 200) / 1.755 each */
	assert_true(fabs(q - 0.128) < 4.0 * 0.0121);
	adapt_free(a);
}

TEST(test_an_unknown_type_follows_the_others)
{
	double q, mean_q = 0.0, mean_bias = 0.0, before;

	for (uint64_t seed = 0; seed < 10; seed++) {
		struct adapt *a = new_adapt(ALL);
		struct rng rng = rng_stream(5, seed);

		for (int i = 0; i < 1000; i++)
			assert_true(adapt_observe(a, BY(i % 5), 10.0, 12.0 * exp(SPREAD * rng_normal(&rng))));
		q = adapt_quantile(a, BY(77), 0.9, 0.5);
		assert_true(adapt_bias(a, BY(-1)) == adapt_bias(a, BY(77)));
		mean_q += q / 10.0;
		mean_bias += (before = adapt_bias(a, BY(77))) / 10.0;
		/* one far score of it is not a shift: a tenth of it at most is believed */
		assert_true(adapt_observe(a, BY(77), 10.0, 1200.0));
		assert_true(log(adapt_bias(a, BY(77)) / before) < 0.1 * log(120.0));
		adapt_free(a);
	}
	assert_true(fabs(mean_q - 1.2816 * SPREAD) < 0.015); /* a mean of ten 90 % points of 200 scores */
	assert_true(fabs(mean_bias - 1.2) < 0.03);
}

/* All take 1.2 times as long, one of another type as well: it says nothing new, so its bias is that of
 * all. */
TEST(test_a_type_of_few_scores_follows_the_others)
{
	struct adapt *a = new_adapt(ALL);

	for (int i = 0; i < 400; i++)
		assert_true(adapt_observe(a, BY(i % 5), 10.0, 12.0 * exp(i % 2 ? 0.05 : -0.05)));
	assert_true(fabs(adapt_bias(a, BY(-1)) - 1.2) < 0.02);
	assert_true(adapt_observe(a, BY(77), 10.0, 10.0 * adapt_bias(a, BY(-1))));
	assert_true(adapt_bias(a, BY(77)) == adapt_bias(a, BY(-1)));
	adapt_free(a);
}

/* The same of a family among those of its type. */
TEST(test_a_family_of_few_scores_follows_its_type)
{
	const struct adapt_who new = { .type = 0, .family = 9 };
	struct adapt *a = new_adapt(ALL);

	for (int i = 0; i < 400; i++)
		assert_true(adapt_observe(a, (struct adapt_who){ .type = 0, .family = 1 + (uint64_t)i % 5 },
					  10.0, 12.0 * exp(i % 2 ? 0.05 : -0.05)));
	assert_true(fabs(adapt_bias(a, BY(0)) - 1.2) < 0.02);
	assert_true(adapt_observe(a, new, 10.0, 10.0 * adapt_bias(a, BY(0))));
	assert_true(adapt_bias(a, new) == adapt_bias(a, BY(0)));
	adapt_free(a);
}

/* Scores 0.01, 0.02, ... 1.99: the 90 % point of 199 is the one of rank ceil(0.9 * 200) = 180. */
TEST(test_a_quantile_has_its_rank_among_the_scores)
{
	struct adapt *a = NULL;
	double q;

	assert_int_equal(adapt_new(LAYER_BIAS, &a, NULL), 0);
	for (int i = 0; i < 199; i++) /* in any order: 50 and 199 have no common divisor */
		assert_true(adapt_observe(a, BY(0), 1.0, exp(0.01 * (1 + i * 50 % 199))));
	q = adapt_quantile(a, BY(0), 0.9, 7.0);
	assert_true(fabs(q - 1.80) < 1e-12);
	adapt_free(a);
}

/* Two families of one type, of which one is ten times as uncertain: each has the score of rank 180 of its
 * own, and a family of the same number in another type has nothing of it. */
TEST(test_a_family_has_the_quantile_of_its_own_scores)
{
	const struct adapt_who wide = { .type = 0, .family = 7 }, narrow = { .type = 0, .family = 8 };
	const struct adapt_who other_type = { .type = 1, .family = 7 };
	struct adapt *a = NULL;
	double q;

	assert_int_equal(adapt_new(LAYER_BIAS, &a, NULL), 0);
	for (int i = 0; i < 199; i++) {
		double score = 0.01 * (1 + i * 50 % 199);

		assert_true(adapt_observe(a, wide, 1.0, exp(score)));
		assert_true(adapt_observe(a, narrow, 1.0, exp(0.1 * score)));
	}
	q = adapt_quantile(a, wide, 0.9, 7.0);
	assert_true(fabs(q - 1.80) < 1e-12);
	q = adapt_quantile(a, narrow, 0.9, 7.0);
	assert_true(fabs(q - 0.18) < 1e-12);
	q = adapt_quantile(a, other_type, 0.9, 7.0);
	adapt_free(a);
}

/* Two families of one type, one of which takes twice the time: each gets its own bias, the bounds of both are
 * narrow once the scores from before the biases were known have left the window, and a family without a score
 * follows its type. */
TEST(test_families_of_a_type_are_off_each_by_its_own)
{
	const struct adapt_who slow = { .type = 0, .family = 7 }, plain = { .type = 0, .family = 8 };
	const struct adapt_who new = { .type = 0, .family = 9 };
	struct rng r = rng_stream(3, 1);
	struct adapt *a;
	double q[2];

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	for (int i = 0; i < 600; i++) {
		double noise = exp(0.03 * rng_normal(&r));

		adapt_observe(a, slow, 10.0, 20.0 * noise);
		adapt_observe(a, plain, 10.0, 10.0 * noise);
	}
	assert_true(fabs(adapt_bias(a, slow) - 2.0) < 0.1 && fabs(adapt_bias(a, plain) - 1.0) < 0.05);
	assert_true(adapt_bias(a, new) == adapt_bias(a, BY(0)));
	q[0] = adapt_quantile(a, slow, 0.9, log(1.5));
	q[1] = adapt_quantile(a, plain, 0.9, log(1.5));
	assert_true(q[0] > 0.0 && q[0] < 0.1 && q[1] > 0.0 && q[1] < 0.1);
	adapt_reset(a, NAN);
	assert_true(adapt_bias(a, slow) == 1.0);
	adapt_free(a);
}

/* Of more families than are remembered the one unused for longest is forgotten. */
TEST(test_the_family_unused_for_longest_makes_room)
{
	struct adapt *a;

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	for (uint64_t f = 1; f <= 65; f++)
		for (int i = 0; i < 30; i++)
			adapt_observe(a, (struct adapt_who){ .type = -1, .family = f }, 10.0,
				      (f == 1 || f == 65 ? 30.0 : 10.0) * (1.0 + 0.001 * (i % 7)));
	assert_true(adapt_bias(a, (struct adapt_who){ .type = -1, .family = 65 }) > 2.5);
	assert_true(adapt_bias(a, (struct adapt_who){ .type = -1, .family = 64 }) < 1.2);
	assert_true(adapt_bias(a, (struct adapt_who){ .type = -1, .family = 1 }) ==
		    adapt_bias(a, (struct adapt_who){ .type = -1 }));
	adapt_free(a);
}

TEST(test_the_type_unused_for_longest_makes_room)
{
	struct adapt *a = NULL;

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	for (int type = 0; type < 65; type++)
		for (int i = 0; i < 30; i++)
			adapt_observe(a, BY(type), 10.0,
				      (type == 0 || type == 64 ? 30.0 : 10.0) * (1.0 + 0.001 * (i % 7)));
	assert_true(adapt_bias(a, BY(64)) > 2.5);
	assert_true(adapt_bias(a, BY(63)) < 1.2);
	assert_true(adapt_bias(a, BY(0)) == adapt_bias(a, BY(-1)));
	adapt_reset(a, NAN);
	assert_true(adapt_bias(a, BY(64)) == 1.0);
	adapt_free(a);
}

TEST(test_the_same_observations_give_the_same_state)
{
	struct adapt *a = new_adapt(ALL), *b = new_adapt(ALL);
	struct mixed by_type, by_level, ever;

	play_mixed(a, 3, 2000, 500, 1, &by_type, &by_level, &ever);
	play_mixed(b, 3, 2000, 500, 1, &by_type, &by_level, &ever);
	for (int t = -1; t < 5; t++) {
		double p, q;

		assert_true(adapt_bias(a, BY(t)) == adapt_bias(b, BY(t)));
		for (size_t k = 0; k < 3; k++) {
			p = adapt_quantile(a, BY(t), asked[k], 0.2);
			q = adapt_quantile(b, BY(t), asked[k], 0.2);
			assert_true(p == q);
		}
	}
	adapt_free(a);
	adapt_free(b);
}

TEST(test_nonsense_is_left_out_and_nothing_is_ever_not_finite)
{
	static const double odd[] = { NAN,    INFINITY, -INFINITY, 0.0, -0.0,  -3.0, 5e-324,
				      1e-300, 1e308,    2.37,      0.9, 0.995, 1.0 };
	const size_t n = sizeof odd / sizeof *odd;
	struct adapt *a = new_adapt(ALL);
	struct rng rng = rng_stream(6, 6);

	assert_false(adapt_observe(a, BY(0), NAN, 1.0));
	assert_false(adapt_observe(a, BY(0), 1.0, 0.0));
	assert_false(adapt_observe(a, BY(0), INFINITY, 1.0));
	assert_true(adapt_is_empty(a));
	for (int i = 0; i < 20000; i++) {
		double confidence = odd[rng_below(&rng, n)];

		adapt_observe(a, BY((int)rng_below(&rng, 200) - 3), odd[rng_below(&rng, n)],
			      odd[rng_below(&rng, n)]);
		assert_true(adapt_bias(a, BY(i % 50)) > 0.0 || adapt_bias(a, BY(i % 50)) == 0.0);
		if (confidence > 0.0 && confidence < 1.0)
			assert_true(isfinite(adapt_quantile(a, BY(i % 50), confidence, 0.3)));
	}
	adapt_free(a);
	adapt_free(NULL);
}

/* All but one of the scores are one user's: his 90 % point is that of rank 180 among his 199. */
TEST(test_a_user_among_others_has_the_quantile_of_his_own_scores)
{
	const struct adapt_who me = { .type = 0, .user = 1 }, other = { .type = 0, .user = 2 };
	struct adapt *a = NULL;

	assert_int_equal(adapt_new(LAYER_BIAS, &a, NULL), 0);
	assert_true(adapt_observe(a, other, 1.0, 1.0));
	for (int i = 0; i < 199; i++) /* in any order: 50 and 199 have no common divisor */
		assert_true(adapt_observe(a, me, 1.0, exp(0.01 * (1 + i * 50 % 199))));
	assert_true(fabs(adapt_quantile(a, me, 0.9, 7.0) - 1.80) < 1e-12);
	adapt_free(a);
}

TEST(test_missing_memory_is_said)
{
	struct adapt *a = NULL;
	struct err err = { 0 };

	mem_fail_at(1, false);
	assert_int_equal(adapt_new(0, &a, &err), -ERR_NOMEM);
	mem_fail_at(0, false);
	assert_null(a);
}
