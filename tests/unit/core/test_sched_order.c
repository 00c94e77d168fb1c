/* Who starts when: deadlines, priorities, jobs that pass others, jobs that are held or due, and why one
 * waits. */
#include "tests/unit/core/sched_bed.h"

static enum sched_verdict submit_as(struct bed *b, int64_t now_s, uint64_t id, const double *batch,
				    uint32_t cpus, double slo_s, int priority)
{
	struct sched_request r = job(b, id, slo_s);

	r.batch = batch;
	r.n_batches = 1;
	r.cpus = cpus;
	r.priority = priority;
	return submit(b, now_s, &r);
}

static struct sched_waiting waiting(struct bed *b, int64_t now_s, uint64_t id)
{
	struct sched_waiting w;

	assert_int_equal(sched_waiting(b->s, now_s * S, id, &w, NULL), 0);
	return w;
}

/* With a window of 100 s. */
static void make_with_window(struct bed *b, const char *policy, uint32_t slots)
{
	struct sched_params p;

	make(b, policy, slots);
	p = params(b, policy, slots);
	p.window_s = 100;
	remake(b, &p);
}

TEST(test_the_earliest_deadline_goes_first_and_promises_before_the_rest)
{
	const uint64_t order[] = { 4, 3, 2, 1 };
	struct bed b;

	make(&b, "postrider", 2);
	submit_as(&b, 0, 9, &b128, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 9);
	assert_int_equal(submit_as(&b, 0, 1, &b128, 2, NAN, 0), SCHED_BEST_EFFORT);
	assert_int_equal(submit_as(&b, 0, 2, &b128, 2, 3000, 0), SCHED_PROMISED);
	assert_int_equal(submit_as(&b, 0, 3, &b128, 2, 2000, 0), SCHED_PROMISED);
	assert_int_equal(submit_as(&b, 0, 4, &b128, 2, 1000, 0), SCHED_PROMISED);
	near(b.d.candidate[0].wait_s, 50); /* its place is the first, not the last */
	near(b.d.candidate[0].delays_s, 50);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(next(&b, 50 * (i + 1)), 0);
		assert_int_equal(waiting(&b, 50 * (i + 1), order[i]).why, SCHED_WAIT_SLOTS);
		sched_remove(b.s, 50 * (i + 1) * S, i ? order[i - 1] : 9, NULL);
		assert_int_equal(next(&b, 50 * (i + 1)), order[i]);
	}
	drop(&b);
}

/* Two promises made: one that would push the second behind its deadline is not. */
TEST(test_a_place_before_others_breaks_no_promise_of_theirs)
{
	struct bed b;

	make(&b, "postrider", 2);
	assert_int_equal(submit_as(&b, 0, 1, &b64, 2, 121, 0), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit_as(&b, 0, 2, &b64, 2, 250, 0), SCHED_PROMISED); /* 200 s, at most 240 */
	assert_int_equal(submit_as(&b, 0, 3, &b128, 2, 200, 0), SCHED_REJECTED);
	near(b.d.smallest_slo_s, 300); /* behind the second */
	assert_int_equal(submit_as(&b, 0, 3, &b128, 2, 300, 0), SCHED_PROMISED);
	drop(&b);
}

TEST(test_a_higher_priority_goes_before_all_but_breaks_no_promise)
{
	struct bed b;

	make(&b, "postrider", 2);
	submit_as(&b, 0, 1, &b128, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 1);
	submit_as(&b, 0, 2, &b128, 2, NAN, -1);
	submit_as(&b, 0, 3, &b128, 2, NAN, 0);
	submit_as(&b, 0, 4, &b128, 2, 1000, 0);
	submit_as(&b, 0, 5, &b128, 2, NAN, 1); /* without a promise, and before the promised one */
	submit_as(&b, 0, 6, &b128, 2, 1000, 2);
	for (uint64_t id = 6; id >= 2; id--) {
		sched_remove(b.s, 0, id == 6 ? 1 : id + 1, NULL);
		assert_int_equal(next(&b, 0), id);
	}
	drop(&b);
	make(&b, "postrider", 2);
	submit_as(&b, 0, 1, &b128, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 1);
	submit_as(&b, 0, 2, &b128, 2, 125, 0); /* 100 s, at most 120 */
	submit_as(&b, 0, 3, &b128, 2, NAN, 9);
	sched_remove(b.s, 50 * S, 1, NULL);
	assert_int_equal(next(&b, 50), 2);
	drop(&b);
}

TEST(test_a_narrow_job_passes_a_wide_one_until_that_is_due)
{
	struct bed b;

	make_with_window(&b, "postrider", 4);
	submit_as(&b, 0, 1, &b64, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 1);
	submit_as(&b, 0, 2, &b64, 4, NAN, 0);
	assert_int_equal(next(&b, 0), 0);
	submit_as(&b, 10, 3, &b64, 1, NAN, 0);
	assert_int_equal(next(&b, 10), 3); /* passes */
	assert_int_equal(next(&b, 10), 0);
	assert_int_equal(waiting(&b, 10, 2).why, SCHED_WAIT_SLOTS);
	assert_false(waiting(&b, 10, 2).due);
	submit_as(&b, 100, 4, &b64, 1, NAN, 0);
	assert_int_equal(next(&b, 100), 0); /* a slot is free, but the wide one is due */
	assert_true(waiting(&b, 100, 2).due);
	assert_int_equal(waiting(&b, 100, 4).why, SCHED_WAIT_HELD);
	assert_int_equal(waiting(&b, 100, 4).job, 2);
	assert_int_equal(submit_as(&b, 100, 5, &b64, 1, 4000, 0), SCHED_PROMISED);
	assert_int_equal(next(&b, 100), 0); /* nor does a promise made later */
	assert_int_equal(waiting(&b, 100, 5).why, SCHED_WAIT_HELD);
	sched_remove(b.s, 150 * S, 1, NULL);
	assert_int_equal(next(&b, 150), 0);
	sched_remove(b.s, 160 * S, 3, NULL);
	assert_int_equal(next(&b, 160), 2);
	assert_int_equal(next(&b, 160), 0);
	sched_remove(b.s, 260 * S, 2, NULL);
	assert_int_equal(next(&b, 260), 4); /* due by now, and the promise has time */
	assert_int_equal(next(&b, 260), 5);
	drop(&b);
}

TEST(test_a_stream_of_promises_does_not_starve_the_rest)
{
	struct bed b;
	uint64_t started = 0;
	int64_t at_s = 0;

	make_with_window(&b, "postrider", 2);
	submit_as(&b, 0, 1, &b128, 2, 100, 0);
	assert_int_equal(next(&b, 0), 1);
	submit_as(&b, 0, 2, &b128, 2, NAN, 0);
	for (uint64_t id = 3; id < 30 && started != 2; id++) {
		submit_as(&b, at_s, id, &b128, 2, 400, 0); /* one more for each that ends */
		at_s += 50;
		sched_remove(b.s, at_s * S, started ? started : 1, NULL);
		started = next(&b, at_s);
	}
	assert_int_equal(started, 2);
	assert_in_range(at_s, 100, 250);
	drop(&b);
}

/* The first has 100 s of work and a promise that leaves no room; whoever runs beside it would break it. */
TEST(test_a_job_without_a_promise_is_held_not_rejected)
{
	struct bed b;
	struct sched_request r;
	struct sched_estimate e;

	make(&b, "postrider", 4);
	submit_batch(&b, 0, 11, &b64, 121);
	assert_int_equal(next(&b, 0), 11);
	r = job(&b, 12, NAN);
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	r = job(&b, 13, 20);
	r.best_effort = true;
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(b.d.chosen, 4); /* the fastest */
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(waiting(&b, 0, 12).why, SCHED_WAIT_HELD);
	assert_int_equal(waiting(&b, 0, 12).job, 11);
	assert_int_equal(waiting(&b, 0, 13).job, 11);
	sched_estimate(b.s, 0, 12, &e, NULL);
	near(e.start_s, 100); /* when that has ended */
	sched_estimate(b.s, 0, 11, &e, NULL);
	assert_false(e.late);
	assert_int_equal(sched_progress(b.s, 20 * S, 11, 0.5, NULL), 0); /* far ahead of what was thought */
	assert_int_equal(next(&b, 20), 12);
	drop(&b);
}

TEST(test_policies_without_a_look_ahead_start_strictly_in_order)
{
	struct bed b;

	make_with_window(&b, "courier", 4);
	submit_as(&b, 0, 1, &b64, 2, NAN, 0);
	submit_as(&b, 0, 2, &b64, 4, NAN, 0);
	submit_as(&b, 0, 3, &b64, 1, NAN, 0);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(waiting(&b, 0, 2).why, SCHED_WAIT_SLOTS);
	assert_int_equal(waiting(&b, 0, 3).why, SCHED_WAIT_TURN);
	assert_int_equal(waiting(&b, 0, 3).ahead, 1);
	submit_as(&b, 1, 4, &b64, 1, 1000, 0);
	assert_int_equal(next(&b, 1), 4); /* its deadline puts it first */
	sched_remove(b.s, 101 * S, 1, NULL);
	assert_int_equal(submit_as(&b, 101, 5, &b64, 1, 1000, 0), SCHED_PROMISED);
	assert_int_equal(next(&b, 101), 0); /* the wide one is due, and before it */
	sched_remove(b.s, 102 * S, 4, NULL);
	assert_int_equal(next(&b, 102), 2);
	drop(&b);
}

TEST(test_reasons_for_waiting_are_told)
{
	struct bed b;
	struct sched_request r;
	struct sched_params p;
	struct sched_waiting w;

	make(&b, "postrider", 4);
	p = params(&b, "postrider", 4);
	p.machine.memory_mb = 1000;
	remake(&b, &p);
	r = job(&b, 1, NAN);
	r.memory_mb = 900;
	submit(&b, 0, &r);
	assert_int_equal(waiting(&b, 0, 1).why, SCHED_WAIT_NOT);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(waiting(&b, 0, 1).why, SCHED_WAIT_NOT);
	r.id = 2;
	r.memory_mb = 200;
	submit(&b, 0, &r);
	r.id = 3;
	r.cpus = 3;
	r.memory_mb = NAN;
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 0);
	w = waiting(&b, 0, 2);
	assert_int_equal(w.why, SCHED_WAIT_MEMORY);
	near(w.needed, 200);
	near(w.available, 100);
	w = waiting(&b, 0, 3);
	assert_int_equal(w.why, SCHED_WAIT_TURN);
	assert_int_equal(w.ahead, 1);
	near(w.needed, 3);
	near(w.available, 2);
	assert_int_equal(sched_waiting(b.s, 0, 4, &w, NULL), -ERR_NOTFOUND);
	for (int i = SCHED_WAIT_NOT; i <= SCHED_WAIT_QUOTA; i++)
		for (int k = SCHED_WAIT_NOT; k < i; k++)
			assert_string_not_equal(sched_wait_name((enum sched_wait)i),
						sched_wait_name((enum sched_wait)k));
	drop(&b);
}

TEST(test_others_on_the_machine_slow_jobs_down)
{
	struct bed b;
	struct sched_estimate e;

	make(&b, "postrider", 4);
	assert_int_equal(sched_set_other_load(b.s, 0, 2.0, NULL), 0);
	submit_batch(&b, 0, 1, &b64, NAN);
	near(b.d.candidate[0].time_s, 200); /* four processes on two cores */
	near(b.d.candidate[0].work_s, 100);
	assert_int_equal(next(&b, 0), 1);
	sched_estimate(b.s, 50 * S, 1, &e, NULL);
	near(e.end_s, 150);
	assert_int_equal(sched_set_other_load(b.s, 50 * S, 0.0, NULL), 0); /* a quarter is done */
	sched_estimate(b.s, 50 * S, 1, &e, NULL);
	near(e.end_s, 75);
	assert_int_equal(sched_slots_used(b.s), 2); /* they take no slots */
	assert_int_equal(sched_set_other_load(b.s, 50 * S, -1.0, NULL), -ERR_ARG);
	assert_int_equal(sched_set_other_load(b.s, 50 * S, NAN, NULL), -ERR_ARG);
	drop(&b);
	make(&b, "courier", 4);
	assert_int_equal(sched_set_other_load(b.s, 0, 2.0, NULL), 0);
	submit_batch(&b, 0, 1, &b64, NAN);
	near(b.d.candidate[0].time_s, 200);
	drop(&b);
}

TEST(test_a_late_job_that_allows_it_is_stopped_in_time)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 2);
	r = job(&b, 1, 130);
	r.batch = &b64;
	r.n_batches = 1;
	r.may_stop = true;
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED); /* 100 s in 10 epochs */
	assert_int_equal(sched_should_stop(b.s, 0, 1, 1, 10), 0); /* it does not run */
	next(&b, 0);
	assert_int_equal(sched_should_stop(b.s, 10 * S, 1, 0, 10), 0);
	assert_int_equal(sched_should_stop(b.s, 10 * S, 1, 1, 10), 0);
	sched_progress(b.s, 20 * S, 1, 0.1, NULL); /* slow, or a start-up: it is not stopped for that */
	assert_int_equal(sched_should_stop(b.s, 20 * S, 1, 1, 10), 0);
	sched_progress(b.s, 40 * S, 1, 0.2, NULL);
	sched_progress(b.s, 60 * S, 1, 0.3, NULL); /* 20 s each: in the 70 s that are left there are 3 more */
	assert_int_equal(sched_should_stop(b.s, 60 * S, 1, 3, 10), 6);
	for (int epoch = 4; epoch <= 6; epoch++)
		sched_progress(b.s, 20 * epoch * S, 1, 0.1 * epoch, NULL);
	assert_int_equal(sched_should_stop(b.s, 120 * S, 1, 6, 10), 6); /* not one more */
	assert_int_equal(sched_should_stop(b.s, 140 * S, 1, 6, 10), 6);
	assert_int_equal(sched_should_stop(b.s, 140 * S, 1, 10, 10), 0);
	assert_int_equal(sched_should_stop(b.s, 140 * S, 2, 5, 10), 0); /* nobody */
	r.id = 2;
	r.may_stop = false;
	sched_remove(b.s, 150 * S, 1, NULL);
	submit(&b, 150, &r);
	next(&b, 150);
	sched_progress(b.s, 210 * S, 2, 0.3, NULL);
	assert_int_equal(sched_should_stop(b.s, 210 * S, 2, 3, 10), 0);
	drop(&b);
}

/* A deadline that the clock cannot hold is later than any other. */
TEST(test_a_very_late_deadline_goes_last)
{
	struct bed b;

	make(&b, "postrider", 2);
	submit_as(&b, 0, 9, &b128, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 9);
	assert_int_equal(submit_as(&b, 0, 1, &b128, 2, 1e12, 0), SCHED_PROMISED);
	assert_int_equal(submit_as(&b, 0, 2, &b128, 2, 1000, 0), SCHED_PROMISED);
	sched_remove(b.s, 0, 9, NULL);
	assert_int_equal(next(&b, 0), 2);
	drop(&b);
}

/* Due after 100 s, so before a deadline at 190 s: when the first job ends, 62.5 s of work are left, at most
 * 75 s. */
TEST(test_a_job_is_due_after_one_window)
{
	struct bed b;

	make_with_window(&b, "postrider", 2);
	submit_as(&b, 0, 1, &b64, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 1);
	submit_as(&b, 0, 2, &b128, 2, NAN, 0);
	assert_int_equal(submit_as(&b, 50, 3, &b512, 2, 140, 0), SCHED_PROMISED);
	assert_int_equal(next(&b, 100), 0);
	assert_true(waiting(&b, 100, 2).due);
	sched_remove(b.s, 101 * S, 1, NULL);
	assert_int_equal(next(&b, 101), 2);
	drop(&b);
}

TEST(test_of_equal_deadlines_the_earlier_arrival_goes_first)
{
	struct bed b;

	make(&b, "postrider", 2);
	submit_as(&b, 0, 9, &b128, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 9);
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(submit_as(&b, 0, id, &b128, 2, 1000, 0), SCHED_PROMISED);
	for (uint64_t id = 1; id <= 3; id++) {
		sched_remove(b.s, 0, id == 1 ? 9 : id - 1, NULL);
		assert_int_equal(next(&b, 0), id);
	}
	drop(&b);
}

/* The first is slower than it seemed: after 10 s it expects to take another 160 s, at most 192 s of the 240
 * s left. Beside the second it would take 210 s, at most 252 s. The second, of 50 s, has 130 s left: it
 * cannot wait for the end of the first, so it starts. With 300 s left it waits. */
TEST(test_a_promised_job_waits_for_another_only_if_it_is_in_time_then)
{
	for (int later = 0; later < 2; later++) {
		struct bed b;

		make(&b, "postrider", 4);
		assert_int_equal(submit_as(&b, 0, 1, &b64, 2, 250, 0), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 1);
		assert_int_equal(submit_as(&b, 0, 2, &b128, 2, later ? 310 : 140, 0), SCHED_PROMISED);
		assert_int_equal(sched_progress(b.s, 5 * S, 1, 0.01, NULL), 0);
		assert_int_equal(sched_progress(b.s, 10 * S, 1, 0.036, NULL), 0);
		assert_int_equal(next(&b, 10), later ? 0 : 2);
		drop(&b);
	}
}

/* 64 jobs and more are played once and remembered. The first should have ended after 100 s and runs on, so
 * after 150 s another 7.5 s of it are expected, and all others move back by that. */
TEST(test_a_plan_is_not_used_beyond_its_first_event)
{
	struct sched_request r;
	struct bed b;

	make(&b, "postrider", 2);
	submit_as(&b, 0, 1, &b64, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 1);
	for (uint64_t id = 2; id <= 65; id++)
		assert_int_equal(submit_as(&b, 0, id, &b512, 2, 1e5, 0), SCHED_PROMISED);
	r = job(&b, 70, 2e5); /* behind all of them: nobody is delayed */
	assert_int_equal(sched_what_if(b.s, 150 * S, &r, &b.d, &b.verdict, NULL), 0);
	near(b.d.candidate[0].wait_s, 7.5 + 64 * 12.5);
	near(b.d.candidate[0].delays_s, 0);
	drop(&b);
}

/* Works of 10, 20, ... 50 s side by side end after 50, 90, 120, 140 and 150 s, and their bounds are just in
 * time. A job that starts behind the end of one of them harms the next. After four such steps it gets the
 * seat behind all. */
TEST(test_the_safest_seat_is_behind_the_last_promise)
{
	const double batch[] = { 640, 320, 640 / 3.0, 160, 128 }, end_s[] = { 50, 90, 120, 140, 150 };
	struct bed b;

	make(&b, "postrider", 12);
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(submit_as(&b, 0, i + 1, &batch[i], 2, 1.2 * end_s[i] + 0.5, 0),
				 SCHED_PROMISED);
		assert_int_equal(next(&b, 0), i + 1);
	}
	assert_int_equal(submit_as(&b, 0, 9, &b512, 2, 300, 0), SCHED_PROMISED);
	near(b.d.candidate[0].wait_s, 150);
	near(b.d.candidate[0].time_s, 12.5);
	drop(&b);
}

/* As above, the first needs 160 s more and leaves no room beside the second, which has time enough to wait
 * for it. The third stands behind the second, of a higher priority. Its 12.5 s end after 125 s if the second
 * starts now, at most 150 s of the 190 s left; if the second waits, not before 172.5 s, at most 207 s. */
TEST(test_a_promised_job_does_not_wait_if_that_breaks_the_promise_of_a_third)
{
	for (int third = 0; third < 2; third++) {
		struct bed b;

		make(&b, "postrider", 4);
		assert_int_equal(submit_as(&b, 0, 1, &b64, 2, 250, 0), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 1);
		assert_int_equal(submit_as(&b, 0, 2, &b128, 2, 400, 1), SCHED_PROMISED);
		if (third)
			assert_int_equal(submit_as(&b, 0, 3, &b512, 2, 200, 0), SCHED_PROMISED);
		assert_int_equal(sched_progress(b.s, 5 * S, 1, 0.01, NULL), 0);
		assert_int_equal(sched_progress(b.s, 10 * S, 1, 0.036, NULL), 0);
		assert_int_equal(next(&b, 10), third ? 2 : 0);
		drop(&b);
	}
}

/* The first job has 50 s left. Four of 50 s wait behind it whose deadlines, at 61, 121, 181 and 241 s, are
 * lost, and one that has time. A job of 12.5 s needs 75 s before them all, which puts it behind the first
 * deadline, where it needs 135 s, and so on: 195, 255, 315 s. The turn of the last one ends that. */
TEST(test_an_offer_behind_lost_promises_is_the_last_turn)
{
	struct sched_restored r = { .promised = true };
	struct bed b;

	make(&b, "postrider", 2);
	for (uint64_t id = 1; id <= 6; id++) {
		r.request = job(&b, id, id == 1 ? 1e6 : id == 6 ? 1000 : 60 * (double)(id - 1) + 1);
		r.request.batch = &b128;
		r.request.n_batches = 1;
		r.running = id == 1;
		assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	}
	assert_int_equal(submit_as(&b, 0, 9, &b512, 2, 20, 0), SCHED_REJECTED);
	near(b.d.smallest_slo_s, 1000);
	assert_int_equal(submit_as(&b, 0, 9, &b512, 2, b.d.smallest_slo_s, 0), SCHED_PROMISED);
	drop(&b);
}

/* Two wide jobs wait for a window, and the first of them is due: it is to start when job 1 ends. Before that
 * the promised job 2 reports little progress. After 160 s it has 221 s left, at most 265 s of 340 s; beside
 * the wide job 321 s, at most 385 s. So the wide job gets a later seat. It is still the one that is due, and
 * the other one is not. */
TEST(test_a_due_job_that_gets_a_later_seat_stays_the_only_one_of_its_tenant)
{
	struct bed b;

	make_with_window(&b, "postrider", 5);
	submit_as(&b, 0, 1, &b32, 2, NAN, 0);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit_as(&b, 0, 2, &b64, 2, 500, 0), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 2);
	submit_as(&b, 0, 3, &b64, 3, NAN, 0);
	submit_as(&b, 0, 4, &b64, 3, NAN, 0);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(next(&b, 100), 0);
	assert_true(waiting(&b, 100, 3).due);
	assert_false(waiting(&b, 100, 4).due);
	assert_int_equal(sched_progress(b.s, 100 * S, 2, 0.1, NULL), 0);
	assert_int_equal(sched_progress(b.s, 150 * S, 2, 0.18, NULL), 0);
	assert_int_equal(sched_remove(b.s, 160 * S, 1, NULL), 0);
	assert_int_equal(next(&b, 160), 0);
	assert_int_equal(waiting(&b, 160, 3).why, SCHED_WAIT_HELD);
	assert_int_equal(waiting(&b, 160, 3).job, 2);
	assert_int_equal(next(&b, 170), 0);
	assert_true(waiting(&b, 170, 3).due);
	assert_false(waiting(&b, 170, 4).due);
	assert_int_equal(sched_remove(b.s, 180 * S, 2, NULL), 0);
	assert_int_equal(next(&b, 180), 3);
	drop(&b);
}
