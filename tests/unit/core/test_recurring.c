/* Hysteresis: a job that comes again keeps its batch unless another is clearly better; and the table stays
 * bounded. */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/core/learn/recurring.h"
#include "tests/support/test.h"

static struct decision three(double a, double b, double c) /* batches 32, 64, 128 of these accuracies */
{
	const double accuracy[] = { a, b, c };
	struct decision d = { .n_candidates = 3, .chosen = 0 };

	for (size_t i = 0; i < 3; i++) {
		d.candidate[i] = (struct candidate){ .decision = 32.0 * (double)(1 << i),
						     .time_s = 40.0 - 10.0 * (double)i,
						     .accuracy = accuracy[i],
						     .epochs = NAN,
						     .feasible = true };
		if (accuracy[i] > accuracy[d.chosen])
			d.chosen = (int)i;
	}
	return d;
}

static struct recurring *table(size_t n)
{
	struct recurring *r = NULL;

	assert_int_equal(recurring_new(n, &r, NULL), 0);
	return r;
}

TEST(test_a_job_keeps_its_batch_until_the_gain_passes_the_threshold)
{
	struct recurring *r = table(10);
	struct decision d = three(0.93, 0.90, 0.80);

	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 0); /* never seen */
	recurring_remember(r, 7, 64.0, NAN);
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 1); /* 3.3 % */
	assert_int_equal(recurring_keep(r, 7, &d, 0.03), 0);
	assert_int_equal(recurring_keep(r, 8, &d, RECURRING_THRESHOLD), 0);
	d = three(0.95, 0.90, 0.80);
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 0); /* 5.6 % */
	d = three(0.80, 0.90, 0.85);
	assert_int_equal(recurring_keep(r, 7, &d, 0.0), 1); /* it is the best */
	d = three(0.5625, 0.5, 0.4); /* an eighth of what it has */
	assert_int_equal(recurring_keep(r, 7, &d, 0.125), 1);
	assert_int_equal(recurring_keep(r, 7, &d, 0.12), 0);
	recurring_free(r);
}

TEST(test_a_batch_that_is_not_feasible_any_more_is_left)
{
	struct recurring *r = table(10);
	struct decision d = three(0.91, 0.90, 0.80);

	recurring_remember(r, 7, 64.0, NAN);
	d.candidate[1].feasible = false;
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 0);
	recurring_remember(r, 7, 256.0, NAN); /* not among the candidates */
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 0);
	d.chosen = -1;
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), -1);
	recurring_free(r);
}

TEST(test_without_accuracies_time_counts)
{
	struct recurring *r = table(10);
	struct decision d = three(NAN, NAN, NAN);

	d.chosen = 2; /* 20 s against 30 and 40 */
	recurring_remember(r, 7, 64.0, NAN);
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 2);
	d.candidate[1].time_s = 20.5;
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 1);
	d = three(0.1, 0.0, 0.05); /* nothing is relative to an accuracy of 0 */
	assert_int_equal(recurring_keep(r, 7, &d, 1e9), 0);
	recurring_free(r);
}

TEST(test_epochs_are_part_of_what_is_kept)
{
	struct recurring *r = table(10);
	struct decision d = three(0.91, 0.90, 0.905);

	d.candidate[2].decision = 64.0; /* 32x5, 64x5, 64x10 */
	d.candidate[0].epochs = d.candidate[1].epochs = 5.0;
	d.candidate[2].epochs = 10.0;
	recurring_remember(r, 7, 64.0, 10.0);
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 2);
	recurring_remember(r, 7, 64.0, 5.0);
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 1);
	recurring_remember(r, 7, 64.0, 20.0);
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 0);
	recurring_remember(r, 7, 64.0, NAN); /* they were not open then */
	assert_int_equal(recurring_keep(r, 7, &d, RECURRING_THRESHOLD), 1);
	recurring_free(r);
}

/* Predictions that wobble by 2 %: without memory the batch flaps, with it never. */
TEST(test_small_changes_do_not_make_it_flap)
{
	struct recurring *r = table(10);
	struct rng rng = rng_stream(31, 1);
	int flaps = 0, without = 0, last = -1, last_best = -1;

	for (int i = 0; i < 200; i++) {
		struct decision d = three(0.90 * (1.0 + 0.02 * rng_uniform(&rng)),
					  0.90 * (1.0 + 0.02 * rng_uniform(&rng)), 0.7);
		int pick = recurring_keep(r, 9, &d, RECURRING_THRESHOLD);

		flaps += last >= 0 && pick != last;
		without += last_best >= 0 && d.chosen != last_best;
		last = pick;
		last_best = d.chosen;
		recurring_remember(r, 9, d.candidate[pick].decision, NAN);
	}
	assert_int_equal(flaps, 0);
	assert_true(without > 50);
	recurring_free(r);
}

#define KEYS 40
#define ROOM 16

TEST(test_the_table_agrees_with_a_plain_one)
{
	struct recurring *r = table(ROOM);
	struct rng rng = rng_stream(32, 1);
	uint64_t used[KEYS] = { 0 }; /* when; 0: not there */
	double batch[KEYS], b, e;

	for (uint64_t i = 1; i <= 50000; i++) {
		uint64_t key = rng_below(&rng, KEYS); /* 0 shares the place of 1: 1 is never used */
		size_t n = 0, oldest = KEYS;

		key = key == 1 ? 2 : key;
		for (size_t k = 0; k < KEYS; k++) {
			n += used[k] > 0;
			if (used[k] && (oldest == KEYS || used[k] < used[oldest]))
				oldest = k;
		}
		if (!used[key] && n == ROOM)
			used[oldest] = 0;
		batch[key] = (double)rng_below(&rng, 1000);
		recurring_remember(r, key, batch[key], 3.0);
		used[key] = i;
		key = rng_below(&rng, KEYS);
		key = key == 1 ? 2 : key;
		assert_int_equal(recurring_recall(r, key, &b, &e), used[key] > 0);
		if (used[key])
			assert_true(b == batch[key] && e == 3.0);
	}
	recurring_free(r);
	recurring_free(NULL);
}

TEST(test_bad_sizes_and_missing_memory_are_said)
{
	struct recurring *r = NULL;
	struct err err = { 0 };

	assert_int_equal(recurring_new(0, &r, &err), -ERR_ARG);
	assert_int_equal(recurring_new(SIZE_MAX, &r, &err), -ERR_ARG);
	for (unsigned long k = 1; k <= 4; k++) {
		mem_fail_at(k, false);
		assert_int_equal(recurring_new(10, &r, &err), -ERR_NOMEM);
		mem_fail_at(0, false);
	}
	assert_null(r);
}
