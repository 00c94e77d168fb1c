/* Jobs of an engine beside the machine: nothing of the machine waits for them. */
#include "tests/unit/core/sched_bed.h"

static struct sched_request apart(const struct bed *b, uint64_t id, double slo_s)
{
	struct sched_request r = job(b, id, slo_s);

	r.apart = true;
	r.batch = &b128;
	r.n_batches = 1;
	return r;
}

/* As many as the machine has slots for twice, and nobody takes them. */
static void fill(struct bed *b, bool promised)
{
	for (uint64_t id = 101; id <= 104; id++) {
		struct sched_request r = apart(b, id, promised ? 5000.0 : NAN);

		assert_int_equal(submit(b, 0, &r), promised ? SCHED_PROMISED : SCHED_BEST_EFFORT);
		assert_int_equal(next(b, 0), id);
		assert_int_equal(sched_set_idle(b->s, 0, id, true, NULL), 0);
	}
}

TEST(test_an_engine_that_is_away_holds_no_slot)
{
	struct bed b, without;

	for (int promised = 0; promised < 2; promised++) {
		make(&b, "postrider", 2);
		make(&without, "postrider", 2);
		fill(&b, promised);
		assert_int_equal(sched_slots_used(b.s), 0);
		assert_int_equal(sched_running(b.s), 4);
		assert_int_equal(submit_batch(&b, 10, 1, &b128, 100), SCHED_PROMISED);
		assert_int_equal(submit_batch(&without, 10, 1, &b128, 100), SCHED_PROMISED);
		near(b.d.candidate[b.d.chosen].time_s, without.d.candidate[without.d.chosen].time_s);
		near(b.d.candidate[b.d.chosen].upper_s, without.d.candidate[without.d.chosen].upper_s);
		near(b.d.candidate[b.d.chosen].wait_s, 0);
		assert_int_equal(next(&b, 10), 1);
		/* a second one waits for the first, and for nobody else */
		assert_int_equal(submit_batch(&b, 10, 2, &b128, 55), SCHED_REJECTED);
		assert_int_equal(submit_batch(&without, 10, 2, &b128, 55), SCHED_REJECTED);
		near(b.d.smallest_slo_s, without.d.smallest_slo_s);
		drop(&b);
		drop(&without);
	}
}

TEST(test_what_an_engine_takes_late_slows_no_job_of_the_machine)
{
	struct sched_estimate e;
	struct bed b;

	make(&b, "postrider", 2);
	fill(&b, true);
	assert_int_equal(submit_batch(&b, 10, 1, &b128, 100), SCHED_PROMISED);
	assert_int_equal(next(&b, 10), 1);
	for (uint64_t id = 101; id <= 104; id++)
		assert_int_equal(sched_set_idle(b.s, 20 * S, id, false, NULL), 0);
	assert_int_equal(sched_estimate(b.s, 20 * S, 1, &e, NULL), 0);
	near(e.end_s, 40);
	assert_int_equal(sched_estimate(b.s, 30 * S, 101, &e, NULL), 0); /* its work began at 20 s */
	near(e.end_s, 40);
	assert_int_equal(sched_remove(b.s, 70 * S, 101, NULL), 0);
	assert_int_equal(sched_running(b.s), 4);
	drop(&b);
}

TEST(test_the_quota_of_a_tenant_counts_everywhere)
{
	const struct sched_tenant tenant = { .name = "a", .weight = 1.0, .max_cpus = 2 };
	struct sched_waiting w;
	struct sched_request r;
	struct bed b;

	make(&b, "postrider", 8);
	assert_int_equal(sched_set_tenants(b.s, 0, &tenant, 1, NULL), 0);
	for (uint64_t id = 1; id <= 2; id++) {
		r = apart(&b, id, NAN);
		assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	}
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(sched_waiting(b.s, 0, 2, &w, NULL), 0);
	assert_int_equal(w.why, SCHED_WAIT_QUOTA);
	assert_int_equal(sched_remove(b.s, 5 * S, 1, NULL), 0);
	assert_int_equal(next(&b, 5), 2);
	drop(&b);
}

TEST(test_they_come_back_after_a_restart)
{
	struct sched_restored back;
	struct sched_params p;
	struct bed b;

	make(&b, "postrider", 2);
	p = params(&b, "postrider", 2);
	remake(&b, &p);
	for (uint64_t id = 1; id <= 2; id++) {
		back = (struct sched_restored){ .request = apart(&b, id, 5000),
						.promised = true,
						.running = id == 1 };
		assert_int_equal(sched_restore(b.s, &back, &b.err), 0);
	}
	assert_int_equal(submit_batch(&b, 10, 3, &b128, 100), SCHED_PROMISED);
	assert_int_equal(next(&b, 10), 2);
	assert_int_equal(next(&b, 10), 3);
	assert_int_equal(sched_use(b.s, 20 * S, &p, NULL, NULL, NULL) != 0, 1); /* they have values */
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(sched_remove(b.s, 100 * S, id, NULL), 0);
	assert_int_equal(sched_running(b.s) + sched_queued(b.s), 0);
	drop(&b);
}
