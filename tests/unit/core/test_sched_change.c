/* Restarts, and changes of the model, the policy and the machine. */
#include "tests/unit/core/sched_bed.h"

TEST(test_restored_jobs_go_on_as_if_nothing_had_happened)
{
	struct sched_restored kept[6] = { 0 };
	struct sched_params p;
	struct sched *again;
	struct bed b;
	uint64_t started, first;
	struct decision other;
	enum sched_verdict verdict;
	struct sched_request r;
	size_t n = 0;

	make(&b, "postrider", 6);
	hand_disk = 0.3;
	for (uint64_t id = 1; id <= 6; id++) {
		r = job(&b, id, id % 2 ? 2000.0 : NAN);
		r.cpus = 2;
		assert_int_not_equal(submit(&b, (int64_t)(7 * id), &r), SCHED_REJECTED);
		kept[id - 1] = (struct sched_restored){ .request = r,
							.submitted_ns = (int64_t)(7 * id) * S,
							.promised = b.verdict == SCHED_PROMISED,
							.taken = b.d.candidate[b.d.chosen] };
		if (sched_next(b.s, (int64_t)(7 * id + 1) * S, &started, &b.d)) {
			kept[started - 1].running = true;
			kept[started - 1].started_ns = (int64_t)(7 * id + 1) * S;
			kept[started - 1].taken = b.d.candidate[b.d.chosen];
		}
	}
	assert_int_equal(sched_running(b.s), 3);
	p = params(&b, "postrider", 6);
	assert_int_equal(sched_new(&p, &again, NULL), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(sched_restore(again, &kept[i], NULL), 0);
	assert_int_equal(sched_restore(again, &kept[2], NULL), -ERR_ARG);
	assert_int_equal(sched_slots_used(again), 6);
	for (int64_t t = 60; t < 300; t += 20) {
		n = first = 0;
		for (uint64_t id = 1; id <= 6; id++) {
			struct sched_estimate a, c;

			if (sched_estimate(b.s, t * S, id, &a, NULL)) {
				assert_false(sched_lives(again, id));
				continue;
			}
			assert_int_equal(sched_estimate(again, t * S, id, &c, NULL), 0);
			assert_true(a.start_s == c.start_s && a.end_s == c.end_s);
			assert_true(a.end_high_s == c.end_high_s && a.late == c.late);
			first = !first && a.start_s == 0.0 ? id : first;
			n++;
		}
		r = job(&b, (uint64_t)t, 3000);
		assert_int_equal(sched_what_if(again, t * S, &r, &other, &verdict, NULL), 0);
		assert_int_equal(sched_what_if(b.s, t * S, &r, &b.d, &b.verdict, NULL), 0);
		assert_true(hand_digest(1, &b.d) == hand_digest(1, &other) && verdict == b.verdict);
		if (t % 60 == 0) {
			sched_remove(b.s, t * S, first, NULL);
			sched_remove(again, t * S, first, NULL);
			assert_int_equal(sched_next(b.s, t * S, &started, &b.d),
					 sched_next(again, t * S, &started, &other));
		}
	}
	assert_true(n > 0);
	assert_int_equal(sched_restore(again, &kept[0], NULL), -ERR_ARG); /* too late for that */
	sched_free(again);
	drop(&b);
}

TEST(test_a_restored_job_without_a_decision_is_measured)
{
	struct bed b;
	struct sched_restored r = { 0 };
	struct sched_estimate e;

	make(&b, "postrider", 2);
	r.request = job(&b, 1, NAN);
	r.request.batch = &b128;
	r.request.n_batches = 1;
	assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	assert_int_equal(sched_estimate(b.s, 0, 1, &e, NULL), 0);
	near(e.end_s, 50);
	assert_int_equal(next(&b, 0), 1);
	drop(&b);
}

static const struct job_values *values_of(void *owner, uint64_t id, uint32_t *out_model)
{
	*out_model = 0;
	return id == 99 ? NULL : owner;
}

TEST(test_another_model_before_anything_happened_is_no_event)
{
	struct bed b;
	struct sched_params p;
	struct sched_restored r = { 0 };

	make(&b, "postrider", 2);
	p = params(&b, "postrider", 2);
	assert_int_equal(sched_use(b.s, 10 * S, &p, values_of, &b.values, NULL), 0);
	r.request = job(&b, 1, NAN);
	r.request.batch = &b128;
	r.request.n_batches = 1;
	assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	assert_int_equal(next(&b, 10), 1);
	drop(&b);
}

TEST(test_another_model_is_used_from_now_on)
{
	struct bed b;
	struct sched_params p, q;
	struct sched_request r;
	struct model *other = hand_model(&hand_forest);
	struct sched_estimate e;

	make(&b, "postrider", 2);
	submit_batch(&b, 0, 1, &b64, 300);
	next(&b, 0);
	submit_batch(&b, 0, 2, &b128, NAN);
	p = params(&b, "courier", 4);
	p.model = other;
	assert_int_equal(sched_use(b.s, 10 * S, &p, values_of, &b.values, NULL), 0);
	assert_int_equal(next(&b, 10), 2); /* there are four slots now */
	sched_estimate(b.s, 10 * S, 1, &e, NULL);
	near(e.end_s, 140); /* 90 left of what was decided; the other one 50 */
	q = p;
	q.policy = hand_policy("postrider");
	assert_int_equal(sched_use(b.s, 10 * S, &q, values_of, &b.values, &b.err), -ERR_ARG);
	assert_non_null(strstr(b.err.text, "--policy postrider"));
	assert_int_equal(sched_use(b.s, 10 * S, &p, NULL, NULL, NULL), -ERR_ARG);
	r = job(&b, 99, NAN);
	submit(&b, 10, &r);
	assert_int_equal(sched_use(b.s, 10 * S, &p, values_of, &b.values, NULL), -ERR_ARG);
	sched_remove(b.s, 10 * S, 99, NULL);
	p = params(&b, "naive", 1); /* no model, and too narrow for the two that run */
	p.model = NULL;
	assert_int_equal(sched_use(b.s, 10 * S, &p, NULL, NULL, NULL), 0);
	submit_batch(&b, 10, 5, &b128, NAN);
	assert_int_equal(b.verdict, SCHED_REJECTED);
	r = job(&b, 6, NAN);
	r.cpus = 1;
	r.batch = &b512;
	r.n_batches = 1;
	submit(&b, 10, &r);
	assert_int_equal(next(&b, 11), 0);
	sched_remove(b.s, 12 * S, 1, NULL);
	assert_int_equal(next(&b, 12), 0);
	sched_remove(b.s, 12 * S, 2, NULL);
	assert_int_equal(next(&b, 12), 6);
	p = params(&b, "postrider", 2); /* a model again: what is not known is measured */
	assert_int_equal(sched_use(b.s, 12 * S, &p, values_of, &b.values, NULL), 0);
	sched_estimate(b.s, 12 * S, 6, &e, NULL);
	near(e.end_s, 12.5);
	model_free(other);
	drop(&b);
}

TEST(test_a_job_that_no_longer_fits_does_not_block_the_queue)
{
	struct bed b;
	struct sched_params p;
	struct sched_request r;

	make(&b, "postrider", 4);
	r = job(&b, 1, NAN);
	submit(&b, 0, &r);
	next(&b, 0);
	r.id = 2;
	r.cpus = 4;
	submit(&b, 0, &r);
	r.id = 3;
	r.cpus = 1;
	submit(&b, 0, &r);
	p = params(&b, "postrider", 3);
	assert_int_equal(sched_use(b.s, 0, &p, values_of, &b.values, NULL), 0);
	assert_int_equal(next(&b, 0), 3);
	assert_int_equal(next(&b, 0), 0);
	sched_remove(b.s, 1 * S, 1, NULL);
	sched_remove(b.s, 1 * S, 3, NULL);
	assert_int_equal(next(&b, 1), 0);
	p = params(&b, "postrider", 4);
	assert_int_equal(sched_use(b.s, 1 * S, &p, values_of, &b.values, NULL), 0);
	assert_int_equal(next(&b, 1), 2);
	drop(&b);
}

/* Two jobs of two processes each have half of two cores, and all of what they want of four. */
TEST(test_running_jobs_have_the_speed_of_the_new_machine)
{
	struct sched_estimate e;
	struct sched_params p;
	struct bed b;

	make(&b, "courier", 4);
	submit_batch(&b, 0, 1, &b64, NAN);
	submit_batch(&b, 0, 2, &b64, NAN);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(next(&b, 0), 2);
	p = params(&b, "courier", 4);
	p.machine.cores = 4;
	assert_int_equal(sched_use(b.s, 10 * S, &p, values_of, &b.values, NULL), 0);
	sched_estimate(b.s, 20 * S, 1, &e, NULL);
	near(e.end_s, 100 - 10 / 2.0 - 10);
	drop(&b);
}

/* Of a queue of 900 the last 512 are looked at one by one. The 388 before them are merged by what each takes
 * of the machine, and a quarter of a slot of four counts as idle. All jobs have 12.5 s of work on two cores;
 * one of three cpus takes all of four slots. */
static double wait_behind_900(uint32_t slots, uint32_t cpus, double slo_s, bool change)
{
	struct sched_params p;
	struct sched_request r;
	struct bed b;
	double wait_s;

	make(&b, "postrider", slots);
	r = job(&b, 0, slo_s);
	r.batch = &b512;
	r.n_batches = 1;
	r.cpus = cpus;
	for (r.id = 100; r.id < 1000; r.id++)
		submit(&b, 0, &r);
	p = params(&b, "postrider", 4);
	if (change)
		assert_int_equal(sched_use(b.s, 0, &p, values_of, &b.values, NULL), 0);
	assert_int_equal(sched_what_if(b.s, 0, &r, &b.d, &b.verdict, NULL), 0);
	wait_s = b.d.candidate[0].wait_s;
	drop(&b);
	return wait_s;
}

TEST(test_a_long_queue_is_merged_by_its_weight)
{
	const double expected_s = 388 * 12.5 * (1.0 + 0.25 / 4) + 512 * 12.5;

	near(wait_behind_900(4, 2, 1e6, false), expected_s);
	near(wait_behind_900(4, 3, 1e6, false), expected_s);
	near(wait_behind_900(4, 2, NAN, false), expected_s);
	near(wait_behind_900(2, 2, 1e6, true), expected_s); /* with the weights of the new machine */
}

TEST(test_restored_promises_stand_by_their_deadlines)
{
	struct sched_restored r = { .promised = true };
	struct bed b;

	make(&b, "postrider", 2);
	for (uint64_t id = 1; id <= 3; id++) {
		r.request = job(&b, id, id == 2 ? 200 : 300);
		assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	}
	assert_int_equal(next(&b, 0), 2);
	drop(&b);
}

/* A clock that was set back gives a later job an earlier moment. */
TEST(test_restored_jobs_without_a_promise_wait_in_the_order_of_arrival)
{
	struct sched_restored r = { 0 };
	struct bed b;

	make(&b, "postrider", 2);
	for (uint64_t id = 1; id <= 3; id++) {
		r.request = job(&b, id, NAN);
		r.submitted_ns = (id == 2 ? 10 : 20) * S;
		assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	}
	assert_int_equal(next(&b, 30), 2);
	drop(&b);
}

TEST(test_a_restored_promise_is_kept)
{
	struct sched_restored r = { .promised = true, .running = true };
	struct bed b;

	make(&b, "postrider", 4);
	r.request = job(&b, 1, 121); /* 100 s, at most 120 s: nothing may run beside it */
	r.request.batch = &b64;
	r.request.n_batches = 1;
	assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	submit_batch(&b, 0, 2, &b64, NAN);
	assert_int_equal(next(&b, 0), 0);
	sched_remove(b.s, 50 * S, 1, NULL);
	assert_int_equal(next(&b, 50), 2);
	drop(&b);
}
