/* How a steered job goes on, by hand: three batches whose epochs take 10, 20 and 40 seconds and have 1, 2
 * and 3 effective iterations. 10 epochs of the slow one reach 0.9, of the fast one 0.6. */
#include <math.h>

#include "scheduler/core/steer_plan.h"
#include "tests/support/test.h"

enum { FAST, MIDDLE, SLOW, N };

struct bench {
	struct steer_pace pace[N];
	struct mixed_run_curve curve;
	struct steer_case c;
	struct steer_plan p;
};

static void set(struct bench *b, unsigned epochs_left, double left_s)
{
	*b = (struct bench){ .pace = { { 10, 1, true }, { 20, 2, true }, { 40, 3, true } } };
	mixed_run_add(&b->curve, 10, 0.6);
	mixed_run_add(&b->curve, 20, 0.8);
	mixed_run_add(&b->curve, 30, 0.9);
	mixed_run_settle(&b->curve);
	b->c = (struct steer_case){ .pace = b->pace,
				    .n = N,
				    .now = MIDDLE,
				    .epochs_left = epochs_left,
				    .left_s = left_s,
				    .spread = 0.0,
				    .confidence = 0.9,
				    .curve = &b->curve,
				    .value = 1.0 };
}

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9))
		fail_msg("%.12g is not %.12g", a, b);
}

TEST(test_a_batch_that_fits_is_kept)
{
	struct bench b;

	set(&b, 10, 200);
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.reason, STEER_KEEPS);
	assert_int_equal(b.p.first, MIDDLE);
	near(b.p.end_s, 200);
	near(b.p.accuracy, 0.8);
}

/* 260 s for 10 epochs: 3 slow ones and 7 middle ones take 120 + 140. */
TEST(test_time_to_spare_goes_to_slower_epochs_while_the_batch_is_in_the_plan)
{
	struct bench b;

	set(&b, 10, 260);
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.first, MIDDLE); /* it is one of the two, and any order is as good */
	assert_int_equal(b.p.then, SLOW);
	assert_int_equal(b.p.n_first, 7);
	near(b.p.end_s, 260);
	b.c.now = FAST;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.reason, STEER_ACCURATE);
	assert_int_equal(b.p.first, SLOW); /* the smaller batch goes first */
	assert_int_equal(b.p.n_first, 3);
	near(b.p.accuracy, 0.8 + 0.1 * log(23.0 / 20.0) / log(1.5));
}

TEST(test_a_job_that_would_be_late_goes_faster)
{
	struct bench b;

	set(&b, 10, 150);
	b.c.now = SLOW;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.reason, STEER_FASTER);
	assert_int_equal(b.p.first, MIDDLE);
	assert_int_equal(b.p.n_first, 5);
	assert_int_equal(b.p.then, FAST);
	b.c.left_s = 80;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.reason, STEER_LATE);
	assert_int_equal(b.p.first, FAST);
}

/* One slow epoch and 9 fast ones take 130 s. With a spread of 0.1 the bound at 90 % is higher by
 * 0.1 x log(9) x sqrt(3) / pi in logarithms, so 146.7 s; a middle one and 9 fast ones take 110 s, 124.2 s by
 * their bound. */
TEST(test_the_next_epoch_leaves_a_way_to_keep_the_promise)
{
	struct bench b;

	set(&b, 10, 146);
	b.c.spread = 0.1;
	b.c.now = SLOW;
	b.pace[MIDDLE].effort = 1.1; /* so that the hull goes from fast to slow */
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.first, FAST);
	assert_int_equal(b.p.reason, STEER_FASTER);
	b.c.left_s = 147;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.first, SLOW);
	b.pace[SLOW].seen = false; /* nobody has seen this job run so */
	b.c.unseen = 0.2;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.first, FAST);
}

TEST(test_a_change_that_is_hardly_worth_it_is_not_made)
{
	struct bench b;

	set(&b, 10, 220); /* 1 slow and 9 middle: 0.8 + 0.1 x log(21/20) / log(1.5) = 0.812 */
	b.c.least_gain = 0.013;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.then, MIDDLE);
	assert_int_equal(b.p.reason, STEER_KEEPS);
	b.c.least_gain = 0.011;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.then, SLOW);
	b.c.change_s = 1.0; /* and there is no time for it, with the change */
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.then, MIDDLE);
}

/* From middle to fast 100 s are saved, and 0.2 of accuracy lost: worth it above 0.002 a second. */
TEST(test_a_price_gives_time_back)
{
	struct bench b;

	set(&b, 10, 200);
	b.c.cost_per_s = 0.0015;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.reason, STEER_KEEPS);
	assert_int_equal(b.p.first, MIDDLE);
	b.c.cost_per_s = 0.005;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.reason, STEER_GIVES_BACK);
	assert_int_equal(b.p.first, FAST);
}

TEST(test_a_batch_that_may_not_be_taken_is_in_no_plan)
{
	struct bench b;

	set(&b, 10, INFINITY);
	b.pace[SLOW].epoch_s = NAN;
	b.c.now = FAST;
	assert_true(steer_plan(&b.c, &b.p));
	assert_int_equal(b.p.first, MIDDLE);
	for (int i = 0; i < N; i++)
		b.pace[i].epoch_s = NAN;
	assert_false(steer_plan(&b.c, &b.p));
}
