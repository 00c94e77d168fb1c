/* A better batch behind the neighbour whose promise forbids it now, rather than a worse one at once. */
#include "tests/unit/core/sched_bed.h"

/* Accuracies 0.936 and 0.36; 10 s and 1 s alone. Two jobs of two cpus slow each other down by half. */
static const double slow_or_fast[] = { 640, 6400 };
static const double two_s = 3200;

static struct sched_request choice(const struct bed *b, uint64_t id, double slo_s)
{
	struct sched_request r = job(b, id, slo_s);

	r.batch = slow_or_fast;
	r.n_batches = 2;
	return r;
}

/* The neighbour takes 2 s and may take 4 s, by its bound: beside 1 s of work it is done by 3.6 s, beside 10 s
 * of work by 4.8 s. */
static void make_scene(struct bed *b, double slo_s)
{
	struct sched_request r;

	make(b, "postrider", 4);
	assert_int_equal(submit_batch(b, 0, 17, &two_s, 4.0), SCHED_PROMISED);
	assert_int_equal(next(b, 0), 17);
	r = choice(b, 18, slo_s);
	assert_int_equal(submit(b, 0, &r), SCHED_PROMISED);
}

static const struct candidate *chosen(const struct bed *b)
{
	return &b->d.candidate[b->d.chosen];
}

TEST(test_a_short_wait_for_a_better_batch_is_taken)
{
	struct bed b;
	struct sched_waiting w;
	struct sched_estimate e;

	make_scene(&b, 20.0);
	near(chosen(&b)->decision, 640);
	near(chosen(&b)->wait_s, 2.0);
	near(chosen(&b)->time_s, 10.0);
	assert_int_equal(chosen(&b)->behind, 17);
	assert_int_equal(chosen(&b)->breaks, 0);
	assert_true(b.d.candidate[1].reasons & REASON_LOWER_ACCURACY);
	assert_int_equal(next(&b, 0), 0); /* held */
	assert_int_equal(sched_waiting(b.s, 0, 18, &w, NULL), 0);
	assert_int_equal(w.why, SCHED_WAIT_HELD);
	assert_int_equal(w.job, 17);
	assert_int_equal(sched_estimate(b.s, 0, 18, &e, NULL), 0);
	near(e.start_s, 2.0);
	near(e.end_s, 12.0);
	assert_int_equal(next(&b, 1), 18); /* the neighbour is nearly done, and can be slowed down */
	near(chosen(&b)->decision, 640);
	assert_int_equal(chosen(&b)->behind, 0);
	drop(&b);
}

/* Behind the neighbour the job could have 20 s of work as well. Its two cpus cost 0.004 a second: 0.08 for an
 * accuracy of 0.968, and 0.04 for one of 0.936. */
TEST(test_a_more_accurate_batch_behind_the_neighbour_may_lose_by_its_price)
{
	static const double three[] = { 320, 640, 6400 };
	struct bed b;
	struct sched_request r;

	make(&b, "postrider:price=0.002", 4);
	assert_int_equal(submit_batch(&b, 0, 17, &two_s, 4.0), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 17);
	r = job(&b, 18, 400.0);
	r.batch = three;
	r.n_batches = 3;
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	near(chosen(&b)->decision, 640);
	assert_int_equal(chosen(&b)->behind, 17);
	assert_true(b.d.candidate[0].feasible);
	assert_int_equal(b.d.candidate[0].reasons, REASON_PRICE);
	assert_int_equal(b.d.candidate[2].reasons & ~(unsigned)REASON_EXTRAPOLATED, REASON_LOWER_ACCURACY);
	drop(&b);
}

TEST(test_it_starts_sooner_when_the_neighbour_ends_sooner)
{
	struct bed b;

	make_scene(&b, 20.0);
	assert_int_equal(next(&b, 0), 0);
	sched_remove(b.s, 1 * S, 17, NULL);
	assert_int_equal(next(&b, 1), 18);
	near(chosen(&b)->decision, 640);
	drop(&b);
}

TEST(test_it_does_not_wait_when_it_would_be_late)
{
	struct bed b;

	make_scene(&b, 14.0); /* behind the neighbour it needs 14.4 s by its bound */
	near(chosen(&b)->decision, 6400);
	near(chosen(&b)->wait_s, 0.0);
	assert_int_equal(next(&b, 0), 18);
	near(chosen(&b)->decision, 6400);
	drop(&b);
}

/* The neighbour is late, and what was worth waiting for is not in time any more. */
TEST(test_it_stops_waiting_when_its_own_promise_is_at_stake)
{
	struct bed b;

	make_scene(&b, 14.5);
	near(chosen(&b)->decision, 640);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(next(&b, 3), 18); /* 11.5 s are left, and 10 s take 12 s by their bound */
	near(chosen(&b)->decision, 6400);
	drop(&b);
}

TEST(test_a_gain_within_the_noise_is_not_worth_a_wait)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 4);
	b.m->accuracy.conformal =
		(struct conformal){ .n = 9, .base = 1.0, .score = calloc(9, sizeof(double)) };
	for (int i = 0; i < 9; i++)
		b.m->accuracy.conformal.score[i] = 0.3 * (i - 4); /* quartiles 1.2 apart */
	assert_int_equal(submit_batch(&b, 0, 17, &two_s, 4.0), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 17);
	r = choice(&b, 18, 20.0);
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	near(chosen(&b)->decision, 6400);
	assert_int_equal(next(&b, 0), 18);
	drop(&b);
}

/* A due job between the two: nothing may start later for the wait. */
TEST(test_a_wait_delays_no_job_that_is_due)
{
	struct bed b;
	struct sched_params p;
	struct sched_request r;

	make(&b, "postrider", 2);
	p = params(&b, "postrider", 2);
	p.window_s = 5.0;
	remake(&b, &p);
	submit_batch(&b, 0, 1, &b64, NAN); /* 100 s */
	assert_int_equal(next(&b, 0), 1);
	submit_batch(&b, 0, 2, &b512, NAN);
	assert_int_equal(next(&b, 10), 0); /* the second one is due now */
	r = choice(&b, 3, 1000.0);
	assert_int_equal(submit(&b, 10, &r), SCHED_PROMISED);
	sched_remove(b.s, 100 * S, 1, NULL);
	assert_int_equal(next(&b, 100), 2);
	drop(&b);
}

/* More jobs than are played for every candidate: the best of the blocked ones alone is tried. */
TEST(test_a_short_wait_is_found_among_many_jobs)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 2);
	b.m->time.predictor.ops = &hand_hybrid;
	assert_int_equal(submit_batch(&b, 0, 17, &two_s, 2.5), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 17);
	for (uint64_t id = 100; id < 800; id++) /* without a promise, behind all others */
		submit_batch(&b, 0, id, &b32, NAN);
	r = choice(&b, 18, 20.0);
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	near(chosen(&b)->decision, 640);
	near(chosen(&b)->wait_s, 2.0);
	drop(&b);
}
