/* The scheduler on a machine of two cores, with answers worked out by hand (hand_model.h). */
#include "common/mem.h"
#include "tests/unit/core/sched_bed.h"

TEST(test_a_job_alone_gets_the_most_accurate_batch_in_time)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 2);
	r = job(&b, 1, 130);
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	assert_int_equal(b.d.chosen, 1); /* 100 s, at most 120 s */
	near(b.d.candidate[1].time_s, 100);
	near(b.d.candidate[1].upper_s, 120);
	near(b.d.candidate[1].work_s, 100);
	near(b.d.smallest_slo_s, 15);
	assert_int_equal(b.d.candidate[0].reasons & REASON_SLO_EXCEEDED, REASON_SLO_EXCEEDED);
	assert_int_equal(sched_queued(b.s), 1);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(b.d.chosen, 1);
	assert_int_equal(sched_running(b.s), 1);
	assert_int_equal(sched_slots_used(b.s), 2);
	assert_int_equal(next(&b, 0), 0);
	drop(&b);
}

/* A has 100 s of work and runs on both cores; a second job on them halves its speed. */
TEST(test_two_jobs_share_two_cores)
{
	const double end_of_other[] = { 200, 200, 150, 125, 112.5 };
	const double time[] = { 300, 200, 100, 50, 25 };
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 4);
	submit_batch(&b, 0, 1, &b64, NAN);
	assert_int_equal(next(&b, 0), 1);
	r = job(&b, 2, NAN);
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	for (int i = 0; i < 5; i++) {
		near(b.d.candidate[i].wait_s, 0);
		near(b.d.candidate[i].time_s, time[i]);
		near(b.d.candidate[i].upper_s, 1.2 * time[i]);
		near(b.d.candidate[i].work_s, 6400.0 / b.d.candidate[i].decision);
		near(b.d.candidate[i].delays_s, end_of_other[i] - 100);
	}
	drop(&b);
}

TEST(test_a_job_waits_for_those_before_it)
{
	struct bed b;
	struct sched_request r;
	struct sched_estimate e;

	make(&b, "postrider", 2);
	submit_batch(&b, 0, 1, &b64, NAN);
	assert_int_equal(next(&b, 0), 1);
	submit_batch(&b, 0, 2, &b128, NAN);
	assert_int_equal(next(&b, 0), 0);
	r = job(&b, 3, 134); /* 100 s of wait, 12.5 s at least, and both may take 1.2 times as long */
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
	near(b.d.candidate[4].wait_s, 100); /* the second one has no promise, and does not go first */
	near(b.d.candidate[4].wait_upper_s, 120);
	near(b.d.smallest_slo_s, 135);
	assert_int_equal(b.d.chosen, -1);
	assert_false(sched_lives(b.s, 3));
	r.slo_s = b.d.smallest_slo_s;
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	assert_int_equal(b.d.chosen, 4);
	assert_int_equal(sched_estimate(b.s, 40 * S, 2, &e, NULL), 0);
	near(e.start_s, 72.5);
	assert_int_equal(sched_estimate(b.s, 40 * S, 3, &e, NULL), 0);
	near(e.start_s, 60);
	near(e.end_s, 72.5);
	near(e.end_high_s, 72.5 * 1.2);
	near(e.end_low_s, 72.5 / 1.2);
	assert_false(e.late);
	assert_int_equal(sched_estimate(b.s, 40 * S, 4, &e, NULL), -ERR_NOTFOUND);
	drop(&b);
}

TEST(test_a_promise_is_kept_before_others_are_admitted)
{
	struct bed b;
	struct sched_request r;

	make(&b, "greedy", 4);
	/* 100 s of work to be done by 200 s, so at most 166.7 s are expected to pass */
	assert_int_equal(submit_batch(&b, 0, 11, &b64, 200), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 11);
	r = job(&b, 12, 230); /* too little to wait for its end with a better batch */
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	for (int i = 0; i < 2; i++) { /* they would share the cores for too long */
		assert_int_equal(b.d.candidate[i].breaks, 11);
		assert_true(b.d.candidate[i].reasons & REASON_BREAKS_PROMISE);
		assert_false(b.d.candidate[i].feasible);
	}
	assert_int_equal(b.d.chosen, 2);
	assert_int_equal(b.d.candidate[2].breaks, 0);
	assert_int_equal(next(&b, 0), 12);
	assert_int_equal(b.d.chosen, 2); /* and the same at the start */
	drop(&b);
	make(&b, "greedy", 4);
	submit_batch(&b, 0, 11, &b64, 121);
	next(&b, 0);
	r = job(&b, 12, 1000);
	assert_int_equal(submit(&b, 0, &r),
			 SCHED_PROMISED); /* behind the end of the first, which nobody may disturb */
	near(b.d.candidate[0].wait_s, 100);
	near(b.d.candidate[0].time_s, 200);
	assert_int_equal(b.d.chosen, 0);
	assert_int_equal(next(&b, 0), 0);
	sched_remove(b.s, 100 * S, 11, NULL);
	assert_int_equal(next(&b, 100), 12);
	drop(&b);
	make(&b, "greedy", 4);
	submit_batch(&b, 0, 11, &b64, NAN); /* without a promise there is none to break */
	next(&b, 0);
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	assert_int_equal(b.d.chosen, 0);
	drop(&b);
}

TEST(test_best_effort_gets_the_fastest)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 2);
	r = job(&b, 1, 10);
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
	r.best_effort = true;
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(b.d.chosen, 4);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(b.d.chosen, 4);
	drop(&b);
}

TEST(test_the_batch_is_decided_anew_for_the_time_left)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 2);
	submit_batch(&b, 0, 1, &b128, NAN); /* 50 s */
	next(&b, 0);
	r = job(&b, 2, 185); /* (50 + 100) * 1.2 is in time */
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	assert_int_equal(b.d.chosen, 1);
	assert_int_equal(sched_remove(b.s, 90 * S, 1, NULL), 0); /* it took longer: 95 s are left */
	assert_int_equal(next(&b, 90), 2);
	assert_int_equal(b.d.chosen, 2);
	near(b.d.candidate[2].upper_s, 60);
	drop(&b);
	make(&b, "postrider", 2);
	submit_batch(&b, 0, 1, &b128, NAN);
	next(&b, 0);
	submit(&b, 0, &r);
	sched_remove(b.s, 180 * S, 1,
		     NULL); /* none is in time any more: the promise is kept as well as can be */
	assert_int_equal(next(&b, 180), 2);
	assert_int_equal(b.d.chosen, 4);
	assert_false(b.d.candidate[4].feasible);
	drop(&b);
	make(&b, "postrider", 2);
	submit_batch(&b, 0, 1, &b128, NAN);
	next(&b, 0);
	submit(&b, 0, &r);
	sched_remove(b.s, 1 * S, 1, NULL); /* there is more time than was thought */
	assert_int_equal(next(&b, 1), 2);
	assert_int_equal(b.d.chosen, 1); /* 200 s at 1.2 are still too much */
	drop(&b);
}

TEST(test_cancelling_in_the_middle_moves_the_others_up)
{
	struct bed b;
	struct sched_estimate e;

	make(&b, "postrider", 2);
	for (uint64_t id = 1; id <= 4; id++)
		submit_batch(&b, 0, id, &b64, NAN);
	assert_int_equal(next(&b, 0), 1);
	sched_estimate(b.s, 0, 4, &e, NULL);
	near(e.start_s, 300);
	assert_int_equal(sched_remove(b.s, 0, 3, NULL), 0);
	assert_int_equal(sched_remove(b.s, 0, 3, NULL), -ERR_NOTFOUND);
	sched_estimate(b.s, 0, 4, &e, NULL);
	near(e.start_s, 200);
	assert_int_equal(sched_remove(b.s, 0, 1, NULL), 0);
	assert_int_equal(next(&b, 0), 2);
	assert_int_equal(sched_remove(b.s, 0, 2, NULL), 0);
	assert_int_equal(next(&b, 0), 4);
	drop(&b);
}

TEST(test_too_wide_is_refused_best_effort_or_not)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 2);
	r = job(&b, 1, NAN);
	r.cpus = 3;
	r.best_effort = true;
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
	for (int i = 0; i < 5; i++)
		assert_true(b.d.candidate[i].reasons & REASON_TOO_WIDE);
	assert_true(isnan(b.d.smallest_slo_s));
	drop(&b);
}

TEST(test_memory_refuses_what_never_fits_and_waits_for_what_does_not_fit_yet)
{
	struct bed b;
	struct sched_request r;
	struct sched_params p;

	make(&b, "postrider", 4);
	p = params(&b, "postrider", 4);
	p.machine.memory_mb = 1000;
	remake(&b, &p);
	r = job(&b, 1, NAN);
	r.memory_mb = 100;
	r.memory_mb_per_record = 4; /* 228, 356, 612, 1124, 2148 */
	submit(&b, 0, &r);
	assert_true(b.d.candidate[2].memory_mb == 612);
	assert_false(b.d.candidate[2].reasons & REASON_MEMORY);
	assert_true(b.d.candidate[3].reasons & REASON_MEMORY);
	assert_int_equal(next(&b, 0), 1); /* batch 32: 228 MB */
	r = job(&b, 2, NAN);
	r.memory_mb = 700;
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 2); /* 928 of 1000 MB */
	r.id = 3;
	r.memory_mb = 300;
	r.cpus = 1;
	sched_remove(b.s, 1 * S, 1, NULL);
	assert_int_equal(submit(&b, 1, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&b, 1), 3); /* just fits: 1000 of 1000 */
	assert_false(b.d.candidate[b.d.chosen].reasons & REASON_MEMORY);
	r.id = 4;
	r.memory_mb = 1;
	assert_int_equal(submit(&b, 1, &r), SCHED_BEST_EFFORT); /* a slot is free, memory is not: it waits */
	assert_int_equal(next(&b, 1), 0);
	sched_remove(b.s, 2 * S, 2, NULL);
	assert_int_equal(next(&b, 2), 4);
	r.id = 5;
	r.memory_mb = 1000; /* all there is */
	assert_int_equal(sched_what_if(b.s, 2 * S, &r, &b.d, &b.verdict, NULL), 0);
	assert_int_equal(b.verdict, SCHED_BEST_EFFORT);
	r.memory_mb = 1001;
	r.best_effort = true;
	assert_int_equal(submit(&b, 2, &r), SCHED_REJECTED);
	r.memory_mb = 90;
	r.max_memory_mb = 80; /* its own limit */
	assert_int_equal(submit(&b, 2, &r), SCHED_REJECTED);
	r.memory_mb = -1;
	assert_int_equal(sched_submit(b.s, 2 * S, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	drop(&b);
}

TEST(test_memory_of_the_records_is_taken_while_a_job_runs)
{
	struct bed b;
	struct sched_request r;
	struct sched_params p;

	make(&b, "postrider", 4);
	p = params(&b, "postrider", 4);
	p.machine.memory_mb = 1000;
	remake(&b, &p);
	r = job(&b, 1, NAN);
	r.batch = &b64;
	r.n_batches = 1;
	r.memory_mb_per_record = 5; /* 320 MB */
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 1);
	r = job(&b, 2, NAN);
	r.memory_mb = 681;
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 0);
	r = job(&b, 3, NAN);
	r.memory_mb = 680;
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 3);
	drop(&b);
}

/* At its start a job takes no more memory than there is, even if another batch would be better. */
TEST(test_memory_that_is_taken_limits_the_batch_at_the_start)
{
	const double two[] = { 64, 512 };
	struct bed b;
	struct sched_request r;
	struct sched_params p;

	make(&b, "postrider", 4);
	p = params(&b, "postrider", 4);
	p.machine.memory_mb = 600;
	remake(&b, &p);
	r = job(&b, 1, NAN);
	r.memory_mb = 500;
	submit(&b, 0, &r);
	next(&b, 0);
	r = job(&b, 2, 1000);
	r.batch = two;
	r.n_batches = 2;
	r.memory_mb_per_record = 1;
	submit(&b, 0, &r);
	assert_int_equal(b.d.chosen, 0);
	assert_int_equal(next(&b, 0), 2); /* 64 MB fit beside 500 */
	assert_int_equal(b.d.chosen, 0);
	assert_true(b.d.candidate[1].reasons & REASON_MEMORY); /* 512 MB do not, now */
	drop(&b);
}

TEST(test_work_is_counted_by_the_load)
{
	struct bed b;
	struct sched_estimate e;

	make(&b, "postrider", 4);
	submit_batch(&b, 0, 1, &b64, NAN);
	submit_batch(&b, 0, 2, &b32, NAN);
	next(&b, 0);
	sched_estimate(b.s, 20 * S, 1, &e, NULL);
	assert_int_equal(next(&b, 20), 2); /* 20 of 100 s are done, then at half speed */
	sched_estimate(b.s, 30 * S, 1, &e, NULL);
	near(e.end_s, 150); /* 75 left */
	sched_remove(b.s, 30 * S, 2, NULL);
	sched_estimate(b.s, 40 * S, 1, &e, NULL);
	near(e.end_s, 65);
	sched_estimate(b.s, 10 * S, 1, &e, NULL); /* time does not go backwards */
	near(e.end_s, 65);
	sched_estimate(b.s, 205 * S, 1, &e,
		       NULL); /* 200 s done where 100 were expected: it is not over yet */
	near(e.end_s, 10);
	drop(&b);
}

TEST(test_progress_corrects_the_expected_end)
{
	struct bed b;
	struct sched_estimate e;
	double left_s;

	make(&b, "postrider", 2);
	submit_batch(&b, 0, 1, &b64, 150);
	submit_batch(&b, 0, 2, &b64, NAN);
	next(&b, 0);
	sched_estimate(b.s, 0, 1, &e, NULL);
	assert_true(e.chance > 0.99 && !e.late);
	assert_int_equal(sched_progress(b.s, 25 * S, 1, 0.125, NULL), 0); /* slow, or a start-up of 14 s */
	sched_estimate(b.s, 25 * S, 1, &e, NULL);
	near(e.end_s, 75);
	assert_false(e.late);
	assert_int_equal(sched_progress(b.s, 50 * S, 1, 0.25, NULL), 0); /* so some 200 s in all, not 100 */
	sched_estimate(b.s, 50 * S, 1, &e, NULL);
	left_s = e.end_s;
	assert_true(left_s > 112 && left_s < 150);
	assert_true(e.late && e.chance < 0.25); /* 100 s are left */
	assert_false(e.sure); /* by one report */
	assert_int_equal(sched_progress(b.s, 51 * S, 1, 0.1, NULL), 0); /* what is done stays done */
	sched_estimate(b.s, 51 * S, 1, &e, NULL);
	near(e.end_s, left_s - 1);
	sched_progress(b.s, 75 * S, 1, 0.375, NULL);
	sched_estimate(b.s, 75 * S, 1, &e, NULL);
	assert_true(e.late && e.sure);
	assert_int_equal(sched_progress(b.s, 52 * S, 1, 1.5, NULL), -ERR_ARG);
	assert_int_equal(sched_progress(b.s, 52 * S, 1, NAN, NULL), -ERR_ARG);
	assert_int_equal(sched_progress(b.s, 52 * S, 2, 0.5, NULL), -ERR_ARG);
	assert_int_equal(sched_progress(b.s, 52 * S, 3, 0.5, NULL), -ERR_NOTFOUND);
	assert_int_equal(sched_progress(b.s, 80 * S, 1, 1.0, NULL), 0);
	sched_estimate(b.s, 80 * S, 1, &e, NULL);
	near(e.end_s, 4);
	drop(&b);
}

TEST(test_an_owner_starts_an_advised_job_out_of_turn)
{
	struct bed b;

	make(&b, "postrider", 2);
	for (uint64_t id = 1; id <= 3; id++)
		submit_batch(&b, 0, id, &b64, NAN);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(sched_start_now(b.s, 0, 3, &b.d, NULL), 0);
	assert_int_equal(b.d.chosen, 0);
	assert_int_equal(sched_slots_used(b.s), 4); /* more than there are: what runs, runs */
	assert_int_equal(sched_start_now(b.s, 0, 3, &b.d, NULL), -ERR_ARG);
	assert_int_equal(sched_start_now(b.s, 0, 9, &b.d, NULL), -ERR_NOTFOUND);
	sched_remove(b.s, 1 * S, 1, NULL);
	assert_int_equal(next(&b, 1), 0);
	sched_remove(b.s, 1 * S, 3, NULL);
	assert_int_equal(next(&b, 1), 2);
	drop(&b);
}

static void submit_of(struct bed *b, uint64_t id, uint64_t owner, uint32_t cpus)
{
	struct sched_request r = job(b, id, NAN);

	r.owner = owner;
	r.cpus = cpus;
	submit(b, 0, &r);
}

/* Two jobs of the first owner wait for him and hold four slots; the third waits for them, others do not. A
 * wider one that is alone may have all that it wants. */
TEST(test_an_owner_who_does_not_start_his_jobs_holds_so_many_slots)
{
	struct bed b;
	struct sched_params p;
	struct sched_waiting w;

	make(&b, "postrider", 20);
	p = params(&b, "postrider", 20);
	p.max_unstarted_cpus = 4;
	remake(&b, &p);
	for (uint64_t id = 1; id <= 3; id++)
		submit_of(&b, id, 1000, 2);
	submit_of(&b, 4, 1001, 2);
	submit_of(&b, 5, 0, 2); /* the daemon starts it */
	submit_of(&b, 6, 1002, 6);
	submit_of(&b, 7, 1002, 1);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(next(&b, 0), 2);
	assert_int_equal(next(&b, 0), 4);
	assert_int_equal(next(&b, 0), 5);
	assert_int_equal(next(&b, 0), 6);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(sched_waiting(b.s, 0, 3, &w, NULL), 0);
	assert_int_equal(w.why, SCHED_WAIT_UNSTARTED);
	assert_int_equal(sched_owner_started(b.s, 1 * S, 4, NULL), 0); /* another's */
	assert_int_equal(next(&b, 1), 0);
	assert_int_equal(sched_owner_started(b.s, 1 * S, 2, NULL), 0);
	assert_int_equal(next(&b, 1), 3);
	assert_int_equal(sched_remove(b.s, 2 * S, 6, NULL), 0); /* it never began */
	assert_int_equal(next(&b, 2), 7);
	drop(&b);
}

TEST(test_courier_knows_the_jobs_that_run_and_no_waits)
{
	struct bed b;
	struct sched_request r;
	struct sched_estimate e;

	make(&b, "courier", 2);
	submit_batch(&b, 0, 1, &b64, NAN);
	next(&b, 0);
	r = job(&b, 2, 100);
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	assert_int_equal(b.d.chosen, 2); /* 50 s, twice as long beside the other, and no bound */
	near(b.d.candidate[2].time_s, 100);
	near(b.d.candidate[2].wait_s, 0);
	near(b.d.candidate[2].delays_s, 0);
	near(b.d.candidate[2].work_s, 50);
	near(b.d.smallest_slo_s, 25);
	sched_estimate(b.s, 0, 2, &e, NULL); /* what becomes of it is still known */
	near(e.start_s, 100);
	near(e.end_s, 150);
	drop(&b);
}

TEST(test_naive_draws_once_and_needs_no_model)
{
	const double batch[] = { 16, 32, 64, 128 };
	struct bed b;
	struct sched_params p;
	struct sched_request r;
	struct sched_estimate e;
	int seen[4] = { 0 };

	make(&b, "postrider", 2);
	p = params(&b, "naive", 2);
	p.model = NULL;
	remake(&b, &p);
	for (uint64_t id = 1; id <= 400; id++) {
		double drawn;

		r = job(&b, id, 1);
		r.values = NULL;
		r.batch = batch;
		r.n_batches = 4;
		assert_int_equal(submit(&b, (int64_t)id, &r), SCHED_BEST_EFFORT); /* nothing is predicted */
		assert_in_range(b.d.chosen, 0, 3);
		seen[b.d.chosen]++;
		drawn = b.d.candidate[b.d.chosen].decision;
		assert_true(isnan(b.d.candidate[0].time_s) && isnan(b.d.candidate[0].accuracy));
		assert_int_equal(b.d.candidate[!b.d.chosen].reasons, REASON_NOT_PICKED);
		assert_int_equal(next(&b, (int64_t)id), id);
		assert_true(b.d.candidate[b.d.chosen].decision == drawn);
		assert_int_equal(b.d.candidate[b.d.chosen].reasons, 0);
		assert_int_equal(sched_estimate(b.s, (int64_t)id * S, id, &e, NULL), 0);
		assert_true(e.start_s == 0 && isnan(e.end_s) && isnan(e.end_high_s) && !e.late);
		sched_remove(b.s, (int64_t)id * S, id, NULL);
	}
	for (int i = 0; i < 4; i++) /* 100 expected, standard deviation 8.7 */
		assert_in_range(seen[i], 65, 135);
	r.id = 500;
	r.batch = NULL;
	assert_int_equal(sched_submit(b.s, 500 * S, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	drop(&b);
}

/* At the start the largest batch does not fit any more. What was drawn on arrival stays. */
TEST(test_naive_does_not_draw_again_at_the_start)
{
	const double batch[] = { 16, 32, 64, 512 };
	struct bed b;
	struct sched_params p;
	struct sched_request r;
	size_t started = 0;

	make(&b, "naive", 4);
	p = params(&b, "naive", 4);
	p.machine.memory_mb = 600;
	remake(&b, &p);
	r = job(&b, 1, NAN);
	r.memory_mb = 500;
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 1);
	r = job(&b, 2, NAN);
	r.batch = batch;
	r.n_batches = 4;
	r.memory_mb_per_record = 1;
	for (; r.id < 50; r.id++) {
		double drawn;

		assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
		drawn = b.d.candidate[b.d.chosen].decision;
		if (next(&b, 0)) {
			started++;
			assert_true(b.d.candidate[b.d.chosen].decision == drawn);
		} else {
			assert_true(drawn == 512);
		}
		assert_int_equal(sched_remove(b.s, 0, r.id, NULL), 0);
	}
	assert_in_range(started, 1, 47);
	drop(&b);
}

TEST(test_fixed_takes_the_nearest_batch_that_a_job_allows)
{
	const double some[] = { 32, 512 };
	struct bed b;
	struct sched_request r;

	make(&b, "fixed:128", 2);
	r = job(&b, 1, 1);
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT); /* it is too late, and said */
	assert_int_equal(b.d.chosen, 2);
	assert_true(b.d.candidate[2].reasons & REASON_SLO_EXCEEDED);
	r.id = 2;
	r.slo_s = 1000;
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	r.id = 3;
	r.batch = some;
	r.n_batches = 2;
	submit(&b, 0, &r);
	assert_int_equal(b.d.chosen, 0);
	drop(&b);
	make(&b, "fixed:96", 2);
	r = job(&b, 1, NAN);
	submit(&b, 0, &r);
	assert_int_equal(b.d.chosen, 1); /* of 64 and 128, which are as near, the smaller */
	drop(&b);
}

TEST(test_bad_requests_change_nothing)
{
	const double down[] = { 64, 32 }, bad[] = { NAN };
	struct bed b;
	struct sched_request good, r;
	struct sched_params p;
	struct sched *none = NULL;

	make(&b, "postrider", 2);
	good = job(&b, 1, NAN);
	r = good;
	r.id = 0;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r = good;
	r.cpus = 0;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r = good;
	r.confidence = 1;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r = good;
	r.batch = down;
	r.n_batches = 2;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r.batch = bad;
	r.n_batches = 1;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	r = good;
	r.values = NULL;
	assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), -ERR_ARG);
	assert_int_equal(sched_queued(b.s), 0);
	assert_int_equal(sched_what_if(b.s, 0, &good, &b.d, &b.verdict, NULL), 0);
	assert_int_equal(sched_queued(b.s), 0);
	assert_int_equal(submit(&b, 0, &good), SCHED_BEST_EFFORT);
	assert_int_equal(sched_submit(b.s, 0, &good, &b.d, &b.verdict, NULL), -ERR_ARG); /* there already */
	for (good.slo_s = -1e300; good.slo_s < 1e301; good.slo_s += 1e300) { /* far deadlines do no harm */
		good.id++;
		submit(&b, 0, &good);
		next(&b, 0);
		sched_remove(b.s, 0, good.id, NULL);
	}
	p = params(&b, "postrider", 2);
	p.max_jobs = 2;
	remake(&b, &p);
	for (uint64_t id = 1; id <= 3; id++) {
		r = job(&b, id, NAN);
		assert_int_equal(sched_submit(b.s, 0, &r, &b.d, &b.verdict, NULL), id < 3 ? 0 : -ERR_BUSY);
	}
	p.max_jobs = 0;
	assert_int_equal(sched_new(&p, &none, NULL), -ERR_ARG);
	p = params(&b, "postrider", 0);
	assert_int_equal(sched_new(&p, &none, NULL), -ERR_ARG);
	p = params(&b, "postrider", 2);
	p.machine.cores = NAN;
	assert_int_equal(sched_new(&p, &none, NULL), -ERR_ARG);
	p = params(&b, "courier", 2);
	assert_int_equal(sched_new(&p, &none, NULL), -ERR_ARG); /* the model is not what it wants */
	assert_null(none);
	drop(&b);
}

TEST(test_too_few_residuals_make_no_promise)
{
	struct bed b;
	struct sched_request r;
	struct sched_estimate e;

	make(&b, "postrider", 2);
	r = job(&b, 1, 1e6);
	r.confidence = 0.99;
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
	assert_true(b.d.candidate[0].reasons & REASON_NO_BOUND);
	assert_true(isnan(b.d.smallest_slo_s));
	r.best_effort = true;
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	next(&b, 0);
	sched_estimate(b.s, 0, 1, &e, NULL);
	near(e.end_s, 12.5);
	assert_true(isnan(e.end_high_s) && isnan(e.end_low_s));
	drop(&b);
}

TEST(test_every_failed_allocation_is_an_error)
{
	struct bed b;
	struct sched_params p;
	struct sched *s;

	make(&b, "postrider", 4);
	p = params(&b, "postrider", 4);
	for (unsigned long k = 1;; k++) {
		int rc;

		mem_fail_at(k, false);
		rc = sched_new(&p, &s, NULL);
		mem_fail_at(0, false);
		if (!rc)
			break;
		assert_int_equal(rc, -ERR_NOMEM);
	}
	sched_free(s);
	sched_free(NULL);
	drop(&b);
}

/* 6400 / 70 * 1.2 s is no whole number of nanoseconds. The job needs exactly that, on arrival and at its
 * start. */
TEST(test_a_deadline_is_not_earlier_than_the_objective)
{
	const double b70 = 70;
	struct bed b;

	make(&b, "postrider", 2);
	assert_int_equal(submit_batch(&b, 0, 1, &b70, 1), SCHED_REJECTED);
	assert_int_equal(submit_batch(&b, 0, 1, &b70, b.d.smallest_slo_s), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 1);
	assert_true(b.d.candidate[0].feasible);
	drop(&b);
}

TEST(test_a_job_without_an_objective_is_rejected_only_if_it_does_not_fit)
{
	double many[40];
	struct sched_request r;
	struct bed b;

	make(&b, "postrider", 4);
	for (uint64_t id = 1; id <= 39; id++)
		submit_batch(&b, 0, id, &b64, NAN);
	for (int i = 0; i < 40; i++)
		many[i] = 32 + i;
	r = job(&b, 51, NAN);
	r.cpus = 1;
	r.batch = many;
	r.n_batches = 40;
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	r.id = 52;
	r.cpus = 5;
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
	drop(&b);
}
