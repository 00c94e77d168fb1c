/* A fifth of all observations is hostile: users who work together, report whatever moves the bounds of others
 * most, and choose when. The bounds of honest users move by less than the spread of their own times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/rng.h"
#include "predictors/models/conformal.h"
#include "predictors/belief.h"
#include "scheduler/core/learn/adapt.h"
#include "scheduler/core/learn/later.h"
#include "tests/support/test.h"

#define SPREAD 0.1
#define JOBS 2000
#define HONEST 8
#define SEEDS 8

enum plan { STEADY, BURSTS, HALF_AND_HALF, ONE_TYPE, N_PLANS };
static const char *const plan_name[N_PLANS] = { "steady", "bursts", "half of them honest", "one type" };

struct attack {
	enum plan plan;
	size_t users; /* hostile ones */
	double score; /* what they report: the worst that is plausible, up or down */
};

/* z of a normal distribution at 90, 95 and 99 %: the model's own bounds are right. */
static const double confidence[] = { 0.9, 0.95, 0.99 }, z[] = { 1.2816, 1.6449, 2.3263 };

static double bound_of(const struct adapt *a, struct adapt_who who, int k)
{
	double q;

	q = adapt_quantile(a, who, confidence[k], z[k] * SPREAD);
	return log(adapt_bias(a, who)) + q;
}

static void see(struct adapt *a, struct adapt_who who, double score)
{
	adapt_observe(a, who, 10.0, 10.0 * exp(score));
}

/* Is the i-th of all observations hostile? A fifth of them is, whatever the plan. */
static bool is_hostile(const struct attack *x, size_t i)
{
	return x->plan == BURSTS ? i % 200 >= 160 : i % 5 == 4;
}

static double hostile_score(const struct attack *x, size_t i, struct rng *r)
{
	double honest = SPREAD * rng_normal(r);

	return x->plan == HALF_AND_HALF && i % 2 ? honest : x->score;
}

struct moved {
	double most, mean; /* of what honest users are told, in spreads */
	double newcomer; /* of one who has not run a job yet */
};

static struct moved play(const struct attack *x, uint64_t seed)
{
	struct rng r = rng_stream(seed, 1), lies = rng_stream(seed, 2);
	struct adapt *with, *without;
	struct moved m = { 0 };
	size_t n = 0;

	assert_int_equal(adapt_new(0, &with, NULL), 0);
	assert_int_equal(adapt_new(0, &without, NULL), 0);
	adapt_reset(with, SPREAD);
	adapt_reset(without, SPREAD);
	for (size_t i = 0; i < JOBS; i++) {
		struct adapt_who who = { .type = (int)(i % 3), .user = 1 + (uint32_t)rng_below(&r, HONEST) };

		if (is_hostile(x, i)) {
			struct adapt_who hostile = { .type = x->plan == ONE_TYPE ? 7 : who.type,
						     .user = 100 + (uint32_t)(i / 5 % x->users) };

			see(with, hostile, hostile_score(x, i, &lies));
			continue;
		}
		for (int k = 0; k < 3; k++) {
			struct adapt_who new = { .type = x->plan == ONE_TYPE ? 7 : who.type, .user = 55 };
			double away = fabs(bound_of(with, who, k) - bound_of(without, who, k)) / SPREAD;
			double away_new = fabs(bound_of(with, new, k) - bound_of(without, new, k)) / SPREAD;

			m.most = fmax(m.most, away);
			m.mean += away;
			m.newcomer = fmax(m.newcomer, away_new);
			n++;
		}
		{
			double score = SPREAD * rng_normal(&r);

			see(with, who, score);
			see(without, who, score);
		}
	}
	m.mean /= (double)n;
	adapt_free(with);
	adapt_free(without);
	return m;
}

TEST(test_a_hostile_fifth_moves_honest_bounds_by_less_than_their_spread)
{
	printf("hostile fifth     users  reports   mean   most   newcomer   (in spreads of honest times)\n");
	for (int plan = 0; plan < N_PLANS; plan++) {
		for (size_t users = 1; users <= 2; users++) {
			for (int up = 0; up < 2; up++) {
				struct attack x = { .plan = (enum plan)plan,
						    .users = users,
						    .score = up ? log(20.0) : -log(20.0) };
				struct moved worst = { 0 };

				for (uint64_t seed = 1; seed <= SEEDS; seed++) {
					struct moved m = play(&x, seed);

					worst.most = fmax(worst.most, m.most);
					worst.newcomer = fmax(worst.newcomer, m.newcomer);
					worst.mean = fmax(worst.mean, m.mean);
				}
				printf("%-20s %zu   %s  %6.2f %6.2f %6.2f\n", plan_name[plan], users,
				       up ? "  slow" : "  fast", worst.mean, worst.most, worst.newcomer);
				assert_true(worst.most < 1.0);
				assert_true(worst.newcomer < 1.0);
			}
		}
	}
}

/* The attack as it was found: eight lies of one user before anybody else has run a job. */
TEST(test_eight_lies_before_all_others_move_little)
{
	const struct adapt_who liar = { .type = 0, .user = 1000 }, other = { .type = 1, .user = 1001 };
	struct rng r = rng_stream(7, 1);
	struct adapt *a;

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	adapt_reset(a, SPREAD);
	for (int i = 0; i < 8; i++)
		assert_true(adapt_observe(a, liar, 1.0, 0.06));
	assert_true(fabs(bound_of(a, other, 0) - z[0] * SPREAD) < SPREAD);
	for (int i = 0; i < 200; i++)
		assert_true(adapt_observe(a, liar, 1.0, 0.06));
	assert_true(fabs(bound_of(a, other, 0) - z[0] * SPREAD) < SPREAD);
	/* After 30 honest jobs the bound is what the honest jobs say. */
	for (int i = 0; i < 30; i++)
		see(a, other, SPREAD * rng_normal(&r));
	assert_true(fabs(bound_of(a, other, 0) - z[0] * SPREAD) < SPREAD);
	adapt_free(a);
}

/* What the model cannot have meant is not learnt from. */
TEST(test_implausible_times)
{
	struct adapt *a;

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	assert_true(adapt_plausible(a, 1.0, 1.0, true));
	assert_true(adapt_plausible(a, 1.0, 19.0, true) && adapt_plausible(a, 1.0, 1.0 / 19.0, true));
	assert_false(adapt_plausible(a, 1.0, 21.0, true) || adapt_plausible(a, 1.0, 1.0 / 21.0, true));
	assert_false(adapt_plausible(a, 1.0, 1e-9, true) || adapt_plausible(a, 1.0, 1e-9, false));
	assert_true(adapt_plausible(a, 1.0, 500.0, false)); /* the model knows nothing of such jobs */
	assert_false(adapt_plausible(a, 1.0, 0.0, true) || adapt_plausible(a, 1.0, -1.0, true));
	assert_false(adapt_plausible(a, 1.0, NAN, true) || adapt_plausible(a, 1.0, INFINITY, false));
	assert_false(adapt_plausible(a, NAN, 1.0, true));
	adapt_reset(a, 1.0); /* a model that errs by a factor of 2.7 as a rule */
	assert_true(adapt_plausible(a, 1.0, 2000.0, true));
	adapt_free(a);
}

/* Several honest users share what they learn: after the machine has changed, a newcomer is told so. */
TEST(test_many_users_teach_a_newcomer)
{
	const struct adapt_who new = { .type = 0, .user = 99 };
	struct rng r = rng_stream(3, 1);
	struct adapt *a;

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	adapt_reset(a, SPREAD);
	for (uint32_t i = 0; i < 100; i++)
		see(a, (struct adapt_who){ .type = 0, .user = 1 + i % 6 },
		    log(1.5) + SPREAD * rng_normal(&r));
	assert_true(fabs(adapt_bias(a, new) - 1.5) < 0.1);
	adapt_free(a);
}

/* A user alone learns as before: nobody can mislead him. */
TEST(test_a_user_learns_from_his_own_jobs_whatever_others_say)
{
	const struct adapt_who own = { .type = 0, .user = 1 };
	struct rng r = rng_stream(4, 1);
	struct adapt *a;

	assert_int_equal(adapt_new(0, &a, NULL), 0);
	adapt_reset(a, SPREAD);
	for (uint32_t i = 0; i < 150; i++) {
		see(a, (struct adapt_who){ .type = 0, .user = 2 }, SPREAD * rng_normal(&r));
		if (i % 3 == 0)
			see(a, own, log(2.0) + SPREAD * rng_normal(&r));
	}
	assert_true(fabs(adapt_bias(a, own) - 2.0) < 0.2);
	assert_true(fabs(adapt_bias(a, (struct adapt_who){ .type = 0, .user = 2 }) - 1.0) < 0.1);
	adapt_free(a);
}

/* Eight honest users, and times that grow by a fifth: promises are kept as they were meant. Errors that
 * double are the price of trusting others little: each user finds out alone, and a training comes sooner. */
/* What a user is told at 90 %, in log time over 10 s. */
static double told_bound(const struct adapt *a, const struct ledger *later, struct adapt_who who)
{
	struct later_effect e = later_of(later, who);
	double bias = adapt_bias(a, who);
	struct belief b = belief_of_bound(bias, exp(bound_of(a, who, 0)), 0.9);

	return log(belief_bound(belief_with(b, e.shift, e.spread), 0.9));
}

TEST(test_bounds_follow_the_machine_with_many_users)
{

	for (int wilder = 0; wilder < 2; wilder++) {
		size_t n = 0, kept = 0, first = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct rng r = rng_stream(seed, 5);
			struct ledger *later;
			struct adapt *a;

			assert_int_equal(adapt_new(0, &a, NULL), 0);
			assert_int_equal(ledger_new(&later, NULL), 0);
			adapt_reset(a, SPREAD);
			for (size_t i = 0; i < 3000; i++) {
				struct adapt_who who = { .type = (int)(i % 3),
							 .user = 1 + (uint32_t)rng_below(&r, HONEST) };
				double score = SPREAD * rng_normal(&r), bound = told_bound(a, later, who);

				if (i >= 1000)
					score = wilder ? 2.0 * score : score + log(1.2);
				if (i >= 1000 && i < 1100)
					first += score <= bound;
				if (i >= 1400) {
					n++;
					kept += score <= bound;
				}
				adapt_observe(a, who, 10.0, 10.0 * exp(score));
				later_observe(later, who, 0.9, exp(score), exp(bound), exp(score));
			}
			ledger_free(later);
			adapt_free(a);
		}
		printf("%s: %.1f %% of the first 100 kept, %.1f %% later\n", wilder ? "wilder" : "slower",
		       (double)first / SEEDS, 100.0 * (double)kept / (double)n);
		assert_true((double)kept / (double)n > (wilder ? 0.8 : 0.87));
		assert_true((double)kept / (double)n < 0.94);
	}
}
