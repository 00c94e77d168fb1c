/* scheduler/core/learn/ledger and later: what the latest jobs say, by user and type. */
#include <math.h>

#include "scheduler/core/learn/later.h"
#include "tests/support/test.h"

static const struct adapt_who me = { .type = 1, .user = 1000 };

static void observe(struct ledger *l, uint64_t family, double score)
{
	ledger_add(ledger_claim(l, me, family, (struct ledger_entry){ 0 }), score);
}

TEST(test_a_level_is_the_mean_of_its_own_latest_jobs)
{
	struct ledger *l;

	assert_int_equal(ledger_new(&l, NULL), 0);
	assert_int_equal(ledger_of(l, me, 7).n, 0);
	observe(l, 7, 0.4);
	observe(l, 7, 0.8);
	assert_int_equal(ledger_of(l, me, 7).n, 2);
	assert_true(fabs(ledger_of(l, me, 7).mean - 0.6) <= 1e-12);
	assert_true(fabs(ledger_of(l, me, 7).variance - 0.04) <= 1e-12);
	/* neither another family nor another type nor another user's */
	assert_int_equal(ledger_of(l, me, 9).n, 0);
	assert_int_equal(ledger_of(l, (struct adapt_who){ .type = 2, .user = 1000 }, 7).n, 0);
	assert_int_equal(ledger_of(l, (struct adapt_who){ .type = 1, .user = 1001 }, 7).n, 0);
	for (int i = 0; i < 200; i++) /* a machine that has changed */
		observe(l, 7, -0.5);
	assert_int_equal(ledger_of(l, me, 7).n, LEDGER_RECENT);
	assert_true(fabs(ledger_of(l, me, 7).mean + 0.5) <= 1e-3);
	assert_true(ledger_of(l, me, 7).variance <= 1e-3);
	ledger_free(l);
	ledger_free(NULL);
}

TEST(test_more_families_than_places_forget_the_oldest)
{
	struct ledger *l;
	size_t known = 0;

	assert_int_equal(ledger_new(&l, NULL), 0);
	for (uint64_t f = 1; f <= 20000; f++)
		observe(l, f, (double)f);
	for (uint64_t f = 1; f <= 20000; f++)
		if (ledger_of(l, me, f).n) {
			assert_true(ledger_of(l, me, f).mean == (double)f);
			known++;
		}
	assert_in_range(known, 900, 1024);
	assert_int_equal(ledger_of(l, me, 20000).n, 1);
	ledger_free(l);
}

/* ---- what later arrivals do ---- */

static void end_jobs(struct ledger *l, struct adapt_who who, int n, double actual_s, double upper_s)
{
	for (int i = 0; i < n; i++)
		later_observe(l, who, 0.9, 100.0, upper_s, actual_s);
}

TEST(test_jobs_that_take_longer_than_foreseen_shift_those_to_come)
{
	struct ledger *l;

	assert_int_equal(ledger_new(&l, NULL), 0);
	assert_true(later_of(l, me).shift == 0.0);
	end_jobs(l, me, 60, 130.0, NAN);
	assert_true(fabs(later_of(l, me).shift - log(1.3)) < 0.02);
	assert_true(later_of(l, me).spread == 0.0); /* nothing was told */
	end_jobs(l, me, 60, 70.0, NAN);
	assert_true(later_of(l, me).shift == 0.0); /* early ends make no bound tighter */
	ledger_free(l);
}

/* Before any job has ended it is not known what arrivals do: 0.2, and less with every job that tells. */
TEST(test_what_nobody_knows_yet_is_not_nothing)
{
	struct ledger *l;
	double before = 0.2;

	assert_int_equal(ledger_new(&l, NULL), 0);
	assert_true(fabs(later_of(l, me).spread - before) < 1e-9);
	for (int i = 0; i < 20; i++) {
		end_jobs(l, me, 1, 100.0, 120.0);
		assert_true(later_of(l, me).spread < before);
		before = later_of(l, me).spread;
	}
	assert_true(before == 0.0);
	ledger_free(l);
}

/* Nine within their bounds and one past it leave the spread where it is; more past it raise it, and it has a
 * limit, however long a job took. */
TEST(test_bounds_that_do_not_hold_make_those_to_come_wider)
{
	struct ledger *l;
	double before;

	assert_int_equal(ledger_new(&l, NULL), 0);
	end_jobs(l, me, 4, 130.0, 120.0);
	before = later_of(l, me).spread;
	assert_true(fabs(before - 4 * 0.045) < 1e-9);
	end_jobs(l, me, 1, 130.0, 120.0);
	end_jobs(l, me, 9, 100.0, 120.0);
	assert_true(fabs(later_of(l, me).spread - before) < 1e-9);
	end_jobs(l, me, 1000, 1e9, 120.0);
	assert_true(later_of(l, me).spread == 1.0 && later_of(l, me).shift <= 1.0);
	end_jobs(l, me, 1000, 100.0, 120.0);
	assert_true(later_of(l, me).spread == 0.0);
	ledger_free(l);
}

/* One user's jobs are all late: another who has jobs of his own keeps what he has, and a newcomer begins with
 * what all have. */
TEST(test_later_arrivals_are_learnt_by_user_and_type)
{
	const struct adapt_who other = { .type = 1, .user = 1001 }, newcomer = { .type = 1, .user = 1002 };
	struct ledger *l;

	assert_int_equal(ledger_new(&l, NULL), 0);
	end_jobs(l, other, 20, 100.0, 120.0);
	end_jobs(l, me, 20, 200.0, 120.0);
	assert_true(later_of(l, other).spread == 0.0 && later_of(l, other).shift < 0.01);
	assert_true(later_of(l, me).spread > 0.5 && later_of(l, me).shift > 0.5);
	assert_true(later_of(l, newcomer).spread > 0.1);
	assert_true(later_of(l, (struct adapt_who){ .type = 2, .user = 1000 }).spread ==
		    later_of(l, newcomer).spread);
	ledger_free(l);
}

/* Later jobs may take all that is left to the limit of a job that waits, or 8 times the time to its end. */
TEST(test_a_distant_limit_leaves_no_more_room_than_a_queue_can_fill)
{
	assert_true(waits_room_s(10.0, 25.0) == 15.0);
	assert_true(waits_room_s(10.0, 90.0) == 80.0);
	assert_true(waits_room_s(10.0, 86400.0) == 80.0);
	assert_true(waits_room_s(10.0, INFINITY) == 80.0);
	assert_true(waits_room_s(10.0, 5.0) < 0.0); /* no limit that could be promised */
}
