/* Jobs without a promise that are taken for their chance: who is taken, with what, and when it is let go. */
#include "tests/unit/core/sched_bed.h"

/* 99 scores evenly between -0.5 and 0.5 in log time: the bound at 90 % is exp(0.4) = 1.49 times as long, and
 * the chance is one half where the time is just what is predicted. */
static void make_spread(struct bed *b, uint32_t slots)
{
	struct conformal *c;

	make(b, "postrider", slots);
	c = &b->m->time.conformal;
	free(c->score);
	c->score = calloc(99, sizeof *c->score);
	c->n = 99;
	for (int i = 0; i < 99; i++)
		c->score[i] = (i + 1) / 100.0 - 0.5;
	conformal_set_groups(c, c->n);
}

static enum sched_verdict submit_chance(struct bed *b, int64_t now_s, uint64_t id, double slo_s,
					double chance)
{
	struct sched_request r = job(b, id, slo_s);

	r.chance = chance;
	return submit(b, now_s, &r);
}

static double chosen_batch(const struct bed *b)
{
	return b->d.candidate[b->d.chosen].decision;
}

/* Alone, batch 512 takes 12.5 s, and 90 % of such jobs at most exp(0.4) times that: 14 s, 1.12 times as
 * much, has a chance of 1 / (1 + 9 to the power of -log(1.12) / 0.4). */
static const double near_s = 14.0, near_chance = 0.650791791416507;

TEST(test_a_refusal_has_an_offer)
{
	struct bed b;

	make_spread(&b, 2);
	assert_int_equal(submit_chance(&b, 0, 1, near_s, 0.0), SCHED_REJECTED);
	assert_int_equal(b.d.chosen, -1);
	assert_true(b.d.smallest_slo_s > near_s);
	near(b.d.offer.decision, 512);
	near(b.d.offer.chance, near_chance);
	near(b.d.offer.time_s, 12.5);
	assert_false(sched_lives(b.s, 1));
	/* nothing has a chance, and nothing is offered */
	assert_int_equal(submit_chance(&b, 0, 2, 1.0, 0.0), SCHED_REJECTED);
	assert_true(isnan(b.d.offer.chance));
	drop(&b);
}

TEST(test_a_chance_that_suffices_is_taken_without_a_promise)
{
	struct bed b;

	make_spread(&b, 2);
	assert_int_equal(submit_chance(&b, 0, 1, near_s, 0.66), SCHED_REJECTED);
	near(b.d.offer.chance, near_chance);
	assert_int_equal(submit_chance(&b, 0, 2, near_s, 0.65), SCHED_CHANCE);
	near(chosen_batch(&b), 512);
	assert_true(b.d.smallest_slo_s > near_s);
	assert_int_equal(next(&b, 0), 2);
	near(chosen_batch(&b), 512);
	drop(&b);
}

TEST(test_the_largest_chance_times_accuracy_is_taken_among_those_with_the_chance)
{
	struct bed b;
	struct sched_request r;
	const double two[] = { 480, 512 }; /* 13.33 s and 12.5 s, accuracies 0.952 and 0.9488 */

	make_spread(&b, 2);
	r = job(&b, 1, near_s);
	r.batch = two;
	r.n_batches = 2;
	r.chance = 0.3;
	assert_int_equal(submit(&b, 0, &r), SCHED_CHANCE); /* chances 0.549 and 0.613 */
	near(chosen_batch(&b), 512);
	assert_int_equal(next(&b, 0), 1);
	drop(&b);
}

TEST(test_a_promise_goes_before_a_chance_and_a_chance_before_best_effort)
{
	struct bed b;
	struct sched_request r;

	make_spread(&b, 2);
	assert_int_equal(submit_chance(&b, 0, 1, 20.0, 0.1), SCHED_PROMISED);
	r = job(&b, 2, 50.0);
	r.chance = 0.3;
	r.best_effort = true;
	sched_remove(b.s, 0, 1, NULL);
	r.slo_s = near_s;
	assert_int_equal(submit(&b, 0, &r), SCHED_CHANCE);
	sched_remove(b.s, 0, 2, NULL);
	r.id = 3;
	r.chance = 0.9;
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	r.id = 4;
	r.slo_s = NAN; /* without a limit there is nothing to have a chance of */
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	drop(&b);
}

TEST(test_a_policy_without_chances_takes_no_job_by_chance)
{
	struct sched_params p;
	struct bed b;

	make_spread(&b, 2);
	p = params(&b, "postrider:chance=no", 2);
	remake(&b, &p);
	assert_int_equal(submit_chance(&b, 0, 1, near_s, 0.3), SCHED_REJECTED);
	near(b.d.offer.chance, near_chance); /* what it could have had is still said */
	drop(&b);
}

TEST(test_a_chance_out_of_range_is_an_error)
{
	struct bed b;
	struct sched_request r;
	enum sched_verdict verdict;

	make_spread(&b, 2);
	r = job(&b, 1, 10.0);
	for (int i = 0; i < 3; i++) {
		r.chance = i == 0 ? -0.1 : i == 1 ? 1.0 : NAN;
		assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &verdict, &b.err), -ERR_ARG);
		assert_non_null(strstr(b.err.text, "chance"));
	}
	drop(&b);
}

/* On 4 slots and 2 cores, two jobs slow each other down by half. */
TEST(test_a_chance_breaks_no_promise)
{
	struct bed b;

	make_spread(&b, 4);
	assert_int_equal(submit_batch(&b, 0, 1, &b128, 80.0), SCHED_PROMISED); /* 50 s, bound 74.6 s */
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit_chance(&b, 0, 2, 25.0, 0.3),
			 SCHED_CHANCE); /* 12.5 s, 25 s beside the other */
	assert_int_equal(next(&b, 0), 0);
	sched_remove(b.s, 5 * S, 1, NULL);
	assert_int_equal(next(&b, 5), 2);
	drop(&b);
}

TEST(test_promises_made_later_go_before_it)
{
	struct bed b;

	make_spread(&b, 2);
	submit_batch(&b, 0, 1, &b512, NAN);
	assert_int_equal(next(&b, 0), 1); /* 12.5 s */
	assert_int_equal(submit_chance(&b, 0, 2, 26.0, 0.3), SCHED_CHANCE);
	assert_int_equal(submit_batch(&b, 0, 3, &b512, 50.0), SCHED_PROMISED);
	sched_remove(b.s, 12 * S, 1, NULL);
	assert_int_equal(next(&b, 12), 3);
	drop(&b);
}

TEST(test_it_is_bound_at_its_start_for_the_time_that_is_left)
{
	struct bed b;

	make_spread(&b, 2);
	submit_batch(&b, 0, 1, &b32, NAN);
	assert_int_equal(next(&b, 0), 1); /* 200 s */
	assert_int_equal(submit_chance(&b, 0, 2, 230.0, 0.1), SCHED_CHANCE);
	near(chosen_batch(&b), 512);
	sched_remove(b.s, 100 * S, 1, NULL); /* sooner than was thought */
	assert_int_equal(next(&b, 100), 2);
	near(chosen_batch(&b), 128); /* 130 s are left for 50 s */
	assert_true(b.d.candidate[b.d.chosen].feasible);
	drop(&b);
}

TEST(test_one_without_a_chance_is_let_go)
{
	struct bed b;
	uint64_t id = 0;

	make_spread(&b, 2);
	submit_batch(&b, 0, 1, &b512, NAN);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit_chance(&b, 0, 2, 27.0, 0.3), SCHED_CHANCE);
	assert_int_equal(next(&b, 10), 0);
	assert_false(sched_hopeless(b.s, &id));
	/* 6 s are left, and the fastest takes 12.5 s: a chance of 1.7 % */
	assert_int_equal(next(&b, 21), 0);
	assert_true(sched_hopeless(b.s, &id));
	assert_int_equal(id, 2);
	sched_remove(b.s, 21 * S, 2, NULL);
	assert_false(sched_hopeless(b.s, &id));
	assert_int_equal(sched_queued(b.s), 0);
	drop(&b);
}

TEST(test_one_without_a_chance_does_not_start_in_a_free_slot)
{
	struct bed b;
	uint64_t id = 0;

	make_spread(&b, 2);
	submit_batch(&b, 0, 1, &b512, NAN);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit_chance(&b, 0, 2, 27.0, 0.3), SCHED_CHANCE);
	sched_remove(b.s, 21 * S, 1, NULL);
	assert_int_equal(next(&b, 21), 0);
	assert_true(sched_hopeless(b.s, &id));
	assert_int_equal(id, 2);
	drop(&b);
}

TEST(test_a_running_one_is_given_up_by_its_progress_alone)
{
	struct bed b;

	make_spread(&b, 2);
	assert_int_equal(submit_chance(&b, 0, 1, near_s, 0.3), SCHED_CHANCE);
	assert_int_equal(next(&b, 0), 1);
	assert_false(sched_chance_gone(b.s, 13 * S, 1)); /* it says nothing of itself */
	assert_int_equal(sched_progress(b.s, 6 * S, 1, 0.4, NULL), 0);
	assert_false(sched_chance_gone(b.s, 6 * S, 1)); /* 9 s for 8 s */
	assert_int_equal(sched_progress(b.s, 13 * S, 1, 0.5, NULL), 0);
	assert_true(sched_chance_gone(b.s, 13 * S, 1)); /* 13 s more, and 1 s is left */
	drop(&b);
}

TEST(test_a_promise_is_not_given_up)
{
	struct bed b;

	make_spread(&b, 2);
	assert_int_equal(submit_batch(&b, 0, 1, &b512, 20.0), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 1);
	sched_progress(b.s, 19 * S, 1, 0.2, NULL);
	assert_false(sched_chance_gone(b.s, 19 * S, 1));
	drop(&b);
}

TEST(test_it_is_never_due)
{
	struct bed b;
	struct sched_params p;
	struct sched_waiting w;

	make_spread(&b, 2);
	p = params(&b, "postrider", 2);
	p.window_s = 10.0;
	remake(&b, &p);
	submit_batch(&b, 0, 1, &b32, NAN);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit_chance(&b, 0, 2, 230.0, 0.1), SCHED_CHANCE);
	submit_batch(&b, 0, 3, &b512, NAN);
	assert_int_equal(next(&b, 50), 0);
	assert_int_equal(sched_waiting(b.s, 50 * S, 2, &w, NULL), 0);
	assert_false(w.due);
	assert_int_equal(sched_waiting(b.s, 50 * S, 3, &w, NULL), 0);
	assert_true(w.due); /* the one behind it is */
	drop(&b);
}

TEST(test_after_a_restart_it_is_still_one)
{
	struct bed b;
	struct sched_params p;
	struct sched_restored r = { .by_chance = true };
	uint64_t id = 0;

	make_spread(&b, 2);
	p = params(&b, "postrider", 2);
	remake(&b, &p);
	r.request = job(&b, 1, near_s);
	r.request.chance = 0.5;
	assert_int_equal(sched_restore(b.s, &r, &b.err), 0);
	assert_int_equal(next(&b, 8), 0);
	assert_true(sched_hopeless(b.s, &id));
	assert_int_equal(id, 1);
	drop(&b);
}

/* One that runs and says nothing of its progress has its chance until its deadline, and none from then on. */
TEST(test_its_time_ends_with_its_deadline)
{
	struct bed b;
	uint64_t id = 0;

	make_spread(&b, 2);
	assert_true(sched_overtime_ns(b.s, &id) == SCHED_NEVER);
	assert_int_equal(submit_chance(&b, 0, 1, near_s, 0.5), SCHED_CHANCE);
	assert_true(sched_overtime_ns(b.s, &id) == SCHED_NEVER); /* it waits */
	assert_int_equal(next(&b, 0), 1);
	assert_true(llabs(sched_overtime_ns(b.s, &id) - 14 * S) <= 1);
	assert_int_equal(id, 1);
	assert_false(sched_chance_gone(b.s, 13 * S, 1));
	assert_true(sched_chance_gone(b.s, 14 * S + 2, 1));
	assert_int_equal(sched_remove(b.s, 15 * S, 1, NULL), 0);
	/* what a start may take is kept from what is promised, and not taken from the job once it runs */
	assert_int_equal(sched_set_lag(b.s, 1.0, NULL), 0);
	assert_int_equal(submit_chance(&b, 15, 3, near_s, 0.3), SCHED_CHANCE);
	assert_int_equal(next(&b, 15), 3);
	assert_true(llabs(sched_overtime_ns(b.s, &id) - 29 * S) <= 1);
	assert_false(sched_chance_gone(b.s, 28 * S + S / 2, 3));
	assert_true(sched_chance_gone(b.s, 29 * S + 2, 3));
	assert_int_equal(sched_remove(b.s, 30 * S, 3, NULL), 0);
	assert_int_equal(submit_batch(&b, 30, 2, &b512, 100), SCHED_PROMISED);
	assert_int_equal(next(&b, 30), 2);
	assert_true(sched_overtime_ns(b.s, &id) == SCHED_NEVER); /* a promise is kept, if late */
	assert_false(sched_chance_gone(b.s, 200 * S, 2));
	drop(&b);
}
