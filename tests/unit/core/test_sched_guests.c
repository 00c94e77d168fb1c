/* A cluster that others use as well: its slots, their jobs, and jobs that wait with whoever runs them. */
#include "tests/unit/core/sched_bed.h"
#include "tests/unit/core/whole_order.h"

static int set(struct bed *b, int64_t now_s, uint32_t slots, const struct sched_guest *guest, size_t n)
{
	return sched_set_cluster(b->s, now_s * S, slots, guest, n, &b->err);
}

static struct sched_estimate estimate(struct bed *b, int64_t now_s, uint64_t id)
{
	struct sched_estimate e = { 0 };

	assert_int_equal(sched_estimate(b->s, now_s * S, id, &e, NULL), 0);
	return e;
}

TEST(test_a_job_waits_for_the_end_of_a_guest)
{
	const struct sched_guest guest = { .cpus = 3, .end_ns = 100 * S };
	struct sched_estimate e, all, cast;
	struct sched_waiting w;
	struct bed b;
	uint64_t id;

	make(&b, "postrider", 4);
	assert_int_equal(set(&b, 0, 4, &guest, 1), 0);
	assert_int_equal(sched_guest_cpus(b.s), 3);
	assert_int_equal(sched_slots_used(b.s), 0);
	assert_int_equal(submit_batch(&b, 10, 1, &b128, NAN), SCHED_BEST_EFFORT);
	assert_int_equal(next(&b, 10), 0);
	e = estimate(&b, 10, 1);
	near(e.start_s, 90);
	near(e.end_s, 140);
	assert_int_equal(whole_estimates(b.s, 10 * S, &id, &all, 1), 1);
	near(all.start_s, 90);
	assert_int_equal(sched_estimate(b.s, 10 * S, 1, &cast, NULL), 0);
	assert_int_equal(sched_waiting(b.s, 10 * S, 1, &w, NULL), 0);
	near(cast.start_s, 90);
	assert_int_equal(w.why, SCHED_WAIT_SLOTS);
	near(w.available, 1);
	near(estimate(&b, 99, 1).start_s, 5); /* it is about to end, and past its end it still is */
	near(estimate(&b, 400, 1).start_s, 5);
	assert_int_equal(next(&b, 400), 0);
	assert_int_equal(set(&b, 401, 4, NULL, 0), 0);
	assert_int_equal(next(&b, 401), 1);
	near(estimate(&b, 411, 1).end_s, 40);
	drop(&b);
}

TEST(test_a_promise_knows_when_guests_end)
{
	const struct sched_guest guest[] = { { 1, 50 * S }, { 2, 200 * S } };
	struct bed b;

	make(&b, "postrider", 4);
	assert_int_equal(set(&b, 0, 4, guest, 2), 0);
	assert_int_equal(submit_batch(&b, 0, 1, &b128, 95),
			 SCHED_REJECTED); /* 50 s of wait and 50 s of work */
	assert_true(b.d.smallest_slo_s > 100.0);
	assert_int_equal(submit_batch(&b, 0, 2, &b128, 300), SCHED_PROMISED);
	assert_int_equal(set(&b, 1, 4, &guest[1], 1), 0); /* one ended early */
	assert_int_equal(next(&b, 1), 2);
	drop(&b);
}

TEST(test_slots_come_and_go_with_the_nodes)
{
	struct sched_params p;
	struct bed b;

	make(&b, "postrider", 4);
	assert_int_equal(submit_batch(&b, 0, 1, &b128, NAN), SCHED_BEST_EFFORT);
	assert_int_equal(submit_batch(&b, 0, 2, &b128, NAN), SCHED_BEST_EFFORT);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(set(&b, 1, 1, NULL, 0), 0); /* a node is drained; what runs there runs on */
	assert_int_equal(sched_slots(b.s), 1);
	assert_int_equal(next(&b, 1), 0);
	near(estimate(&b, 1, 1).end_s, 49);
	p = params(&b, "postrider", 4);
	assert_int_equal(sched_use(b.s, 2 * S, &p, NULL, NULL, NULL), -ERR_ARG); /* values are missing */
	assert_int_equal(sched_slots(b.s), 1);
	assert_int_equal(set(&b, 3, 100, NULL, 0), 0); /* never more than the configuration says */
	assert_int_equal(sched_slots(b.s), 4);
	assert_int_equal(next(&b, 3), 2);
	drop(&b);
}

TEST(test_guests_that_matter)
{
	struct sched_guest few[] = { { 4, 30 }, { 2, 10 }, { 8, SCHED_NEVER } };
	struct sched_guest many[1000];
	uint64_t sum = 0;
	size_t n;

	/* 14 cpus of others, 9 of them beyond our slots: those that stay longest are there. */
	assert_int_equal(sched_fit_guests(few, 3, 9), 2);
	assert_true(few[0].cpus == 2 && few[0].end_ns == 10 && few[1].cpus == 3 && few[1].end_ns == 30);
	assert_int_equal(sched_fit_guests(few, 2, 5), 0);
	for (size_t i = 0; i < 1000; i++)
		many[i] = (struct sched_guest){ 1 + i % 3, (int64_t)((i * 37) % 1000) };
	n = sched_fit_guests(many, 1000, 0);
	assert_true(n > 0 && n <= SCHED_MAX_GUESTS);
	for (size_t i = 0; i < n; i++) {
		sum += many[i].cpus;
		assert_true(!i || many[i].end_ns > many[i - 1].end_ns);
	}
	assert_int_equal(sum, 334 + 2 * 333 + 3 * 333);
	assert_int_equal(many[n - 1].end_ns, 999);
}

TEST(test_a_job_that_waits_elsewhere_does_no_work)
{
	struct bed b;

	make(&b, "postrider", 4);
	assert_int_equal(submit_batch(&b, 0, 1, &b128, NAN), SCHED_BEST_EFFORT);
	assert_int_equal(sched_set_idle(b.s, 0, 1, true, NULL), -ERR_ARG);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(sched_set_idle(b.s, 2 * S, 1, true, NULL), 0);
	near(estimate(&b, 30, 1).end_s, 50);
	assert_int_equal(sched_slots_used(b.s), 2);
	assert_int_equal(sched_set_idle(b.s, 40 * S, 1, false, NULL), 0);
	near(estimate(&b, 50, 1).end_s, 40);
	assert_int_equal(sched_set_idle(b.s, 0, 7, true, NULL), -ERR_NOTFOUND);
	drop(&b);
}

TEST(test_objectives_allow_for_a_slow_start)
{
	struct bed b;
	double alone_s;

	make(&b, "postrider", 4);
	assert_int_equal(submit_batch(&b, 0, 1, &b128, 10), SCHED_REJECTED);
	alone_s = b.d.smallest_slo_s;
	assert_int_equal(sched_set_lag(b.s, 7.0, NULL), 0);
	assert_int_equal(submit_batch(&b, 0, 2, &b128, 10), SCHED_REJECTED);
	near(b.d.smallest_slo_s, alone_s + 7.0);
	assert_int_equal(submit_batch(&b, 0, 3, &b128, alone_s + 6.9), SCHED_REJECTED);
	assert_int_equal(submit_batch(&b, 0, 4, &b128, alone_s + 7.1), SCHED_PROMISED);
	/* what is told of its end allows for it, too */
	near(b.d.candidate[0].wait_s, 0.0);
	near(b.d.candidate[0].wait_upper_s, 7.0);
	assert_true(7.0 + b.d.candidate[0].upper_s <= alone_s + 7.1);
	assert_int_equal(next(&b, 0), 4);
	near(b.d.candidate[0].wait_upper_s, 7.0);
	assert_int_equal(sched_set_lag(b.s, -1.0, NULL), -ERR_ARG);
	assert_int_equal(sched_set_lag(b.s, NAN, NULL), -ERR_ARG);
	drop(&b);
}

/* 50 s of work, 60 s by its bound, in 70 s, of which a start may take 7. It waits at the executor for 18. */
TEST(test_a_job_that_has_begun_has_all_of_its_objective)
{
	struct bed b;
	struct sched_estimate e;

	make(&b, "postrider", 4);
	assert_int_equal(sched_set_lag(b.s, 7.0, NULL), 0);
	assert_int_equal(submit_batch(&b, 0, 1, &b128, 70.0), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(sched_set_idle(b.s, 0, 1, true, NULL), 0);
	assert_int_equal(sched_set_idle(b.s, 18 * S, 1, false, NULL), 0);
	assert_int_equal(sched_estimate(b.s, 18 * S, 1, &e, NULL), 0);
	near(e.end_s, 50.0);
	assert_false(e.late); /* it has 52 s, and not 45 */
	assert_int_equal(sched_remove(b.s, 18 * S, 1, NULL), 0);
	drop(&b);
}

TEST(test_bad_clusters_are_refused)
{
	const struct sched_guest none = { .cpus = 0, .end_ns = S };
	struct bed b;

	make(&b, "postrider", 4);
	assert_int_equal(set(&b, 0, 0, NULL, 0), -ERR_ARG);
	assert_int_equal(set(&b, 0, 4, &none, 1), -ERR_ARG);
	assert_int_equal(sched_slots(b.s), 4);
	assert_int_equal(sched_guest_cpus(b.s), 0);
	drop(&b);
}
