/* core/learn/pairs: what kinds of jobs do to each other, learnt from scores. */
#include <math.h>

#include "common/rng.h"
#include "scheduler/core/learn/pairs.h"
#include "tests/support/test.h"

enum { QUIET = 11, LOUD = 12, OTHER = 13 };

static struct pairs *fresh(void)
{
	struct pairs *p;

	assert_int_equal(pairs_new(&p, NULL), 0);
	pairs_reset(p, 0.1);
	pairs_set_room(p, 8.0);
	return p;
}

/* n jobs of a kind beside parts of LOUD and OTHER; LOUD slows them by `effect` where it has all of the
 * machine. */
static void teach(struct pairs *p, uint64_t kind, uint32_t user, double effect, int n, uint64_t seed)
{
	struct rng r = rng_stream(5, seed);

	for (int i = 0; i < n; i++) {
		double loud = 0.6 * rng_uniform(&r), other = 0.4 * rng_uniform(&r);
		struct pairs_met met = { .kind = kind,
					 .n = 2,
					 .beside = { { LOUD, loud }, { OTHER, other } } };

		pairs_observe(p, &met, user, effect * loud + 0.1 * rng_normal(&r));
	}
}

TEST(test_the_effect_of_a_kind_is_found)
{
	struct pairs *p = fresh();

	teach(p, QUIET, 1, 0.4, 150, 1);
	assert_true(fabs(pairs_effect(p, QUIET, LOUD) - 0.4) < 0.12);
	assert_true(fabs(pairs_effect(p, QUIET, OTHER)) < 0.12);
	assert_true(pairs_effect(p, LOUD, QUIET) == 0.0); /* no job of LOUD has ended */
	assert_non_null(pairs_learnt(p));
	pairs_reset(p, 0.1);
	assert_null(pairs_learnt(p));
	pairs_free(p);
}

/* Over 20 histories in which kinds do not matter: none is believed to, or by next to nothing. */
TEST(test_where_kinds_do_not_matter_next_to_nothing_is_learnt)
{
	double sum = 0.0;

	for (uint64_t seed = 0; seed < 20; seed++) {
		struct pairs *p = fresh();

		teach(p, QUIET, 1, 0.0, 200, 100 + seed);
		teach(p, OTHER, 1, 0.0, 200, 200 + seed);
		sum += fabs(pairs_effect(p, QUIET, LOUD)) + fabs(pairs_effect(p, OTHER, LOUD));
		pairs_free(p);
	}
	assert_true(sum / 40.0 < 0.03);
}

TEST(test_few_scores_are_drawn_to_the_common_law)
{
	struct pairs *p = fresh();

	teach(p, QUIET, 1, 0.4, 3, 2);
	assert_true(fabs(pairs_effect(p, QUIET, LOUD)) < 0.2);
	pairs_free(p);
}

TEST(test_one_score_moves_little_however_far_off_it_is)
{
	struct pairs *p = fresh();
	const struct pairs_met met = { .kind = QUIET, .n = 1, .beside = { { LOUD, 0.6 } } };
	double before;

	teach(p, QUIET, 1, 0.2, 100, 3);
	before = pairs_effect(p, QUIET, LOUD);
	pairs_observe(p, &met, 1, 50.0);
	assert_true(fabs(pairs_effect(p, QUIET, LOUD) - before) < 0.05);
	pairs_observe(p, &met, 1, NAN);
	pairs_observe(p, &met, 1, -INFINITY);
	assert_true(fabs(pairs_effect(p, QUIET, LOUD) - before) < 0.05);
	teach(p, QUIET, 1, 5.0, 1000, 4);
	assert_true(pairs_effect(p, QUIET, LOUD) <= PAIRS_MOST + 1e-6);
	pairs_free(p);
}

/* What two users say alone is not used for a third; what many say is, and what one has seen oneself. */
TEST(test_a_user_does_not_decide_for_others)
{
	struct pairs *p = fresh();
	uint16_t number;

	teach(p, QUIET, 1, 0.4, 100, 5);
	number = pairs_find(p, QUIET);
	assert_int_equal(pairs_felt(p, number, 1), number);
	assert_int_equal(pairs_felt(p, number, 2), 0);
	teach(p, QUIET, 2, 0.4, 100, 6);
	assert_int_equal(pairs_felt(p, number, 3), 0);
	for (uint32_t user = 3; user < 8; user++)
		teach(p, QUIET, user, 0.4, 100, 7 + user);
	assert_int_equal(pairs_felt(p, number, 99), number);
	assert_int_equal(pairs_felt(p, 0, 99), 0);
	pairs_free(p);
}

TEST(test_what_a_job_met_is_a_mean_over_its_run)
{
	struct pairs *p = fresh();
	struct pairs_clock c = { 0 };
	uint16_t own = pairs_enter(p, QUIET), loud = pairs_enter(p, LOUD);
	struct pairs_start from;
	struct pairs_met met;

	pairs_pass(p, &c, 2.0, 5.0);
	c.held[own] = 2;
	from = pairs_start(p, &c);
	pairs_pass(p, &c, 2.0, 3.0);
	c.held[loud] = 4;
	pairs_pass(p, &c, 6.0, 1.0); /* 4 of 8 */
	c.held[loud] = 14;
	pairs_pass(p, &c, 16.0, 1.0); /* 14 of 16 */
	pairs_meet(p, &c, &from, own, &met);
	assert_true(met.kind == QUIET && met.n == 1 && met.beside[0].kind == LOUD);
	assert_true(fabs(met.beside[0].share - (4.0 / 8 + 14.0 / 16) / 5.0) < 1e-12);
	pairs_free(p);
}

/* A 17th kind has to wait until one has not been seen for long; those that run stay. */
TEST(test_there_are_only_so_many_kinds)
{
	struct pairs *p = fresh();

	for (uint64_t k = 1; k <= PAIRS_KINDS; k++)
		assert_int_equal(pairs_enter(p, k), k);
	assert_int_equal(pairs_enter(p, 99), 0);
	pairs_leave(p, 3);
	assert_int_equal(pairs_enter(p, 99), 0);
	for (int i = 0; i < 500; i++)
		pairs_leave(p, pairs_enter(p, 1));
	assert_int_equal(pairs_enter(p, 99), 3);
	assert_int_equal(pairs_find(p, 3), 0);
	pairs_free(p);
}

TEST(test_slowness_is_in_units_that_add_up_exactly)
{
	struct pairs *p = fresh();
	const struct fluid_kinds *k;
	uint64_t held[1 + PAIRS_KINDS] = { 0 };
	double slow[1 + PAIRS_KINDS];
	uint16_t own, loud;

	teach(p, QUIET, 1, 0.3, 150, 9);
	k = pairs_learnt(p);
	own = pairs_find(p, QUIET);
	loud = pairs_find(p, LOUD);
	for (size_t g = 0; g < k->n; g++)
		for (size_t i = 0; i < k->n; i++) {
			double units = k->slow[g][i] / FLUID_SLOW_UNIT;

			assert_true(units == rint(units));
			assert_true(k->least[i] <= k->slow[g][i] && k->slow[g][i] <= k->most[i]);
		}
	held[loud] = 4;
	pairs_slow(p, held, 6.0, slow);
	assert_true(fabs(slow[own] - (1.0 + 0.5 * expm1(pairs_effect(p, QUIET, LOUD)))) < 1e-9);
	assert_true(slow[0] == 1.0);
	pairs_free(p);
}
