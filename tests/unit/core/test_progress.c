/* What reports of progress say of a job's end: a start-up is not slowness, and a warning is right more
 * often than not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/rng.h"
#include "scheduler/core/learn/progress.h"
#include "tests/unit/core/sched_bed.h"

TEST(test_a_start_up_does_not_move_the_estimate)
{
	/* 3 s to start and 4 epochs of 3 s; 15 s were expected */
	struct progress p;
	double spread, last = 1.0;

	progress_begin(&p, 15.0, 0.2, 0.15);
	near(progress_left_s(&p, &spread), 15.0);
	for (int epoch = 1; epoch <= 3; epoch++) {
		assert_true(progress_report(&p, epoch / 4.0, 3.0 + 3.0 * epoch));
		near(progress_left_s(&p, &spread), 3.0 * (4 - epoch));
		assert_true(spread < last || epoch == 3);
		last = spread;
	}
	assert_false(progress_report(&p, 0.7, 13.0)); /* what is done stays done */
	assert_true(progress_report(&p, 1.0, 15.0));
	near(progress_left_s(&p, &spread), 0.0);
}

TEST(test_a_start_up_nobody_knew_of_is_told_from_slowness_by_the_second_report)
{
	/* 12 s were expected, and there is a start-up of 3 s before them */
	struct progress p;
	double spread, left;

	progress_begin(&p, 12.0, NAN, 0.15);
	progress_report(&p, 0.25, 6.0);
	left = progress_left_s(&p, &spread);
	assert_true(left > 5.5 && left < 9.5); /* by the mean so far it would be 18 */
	progress_report(&p, 0.5, 9.0);
	left = progress_left_s(&p, &spread);
	assert_true(left > 5.5 && left < 6.2);
}

TEST(test_a_job_that_is_slower_than_expected_is_found_out)
{
	struct progress p;
	double spread;

	progress_begin(&p, 10.0, 0.0, 0.15);
	progress_report(&p, 0.1, 2.0);
	assert_true(progress_left_s(&p, &spread) > 11.0); /* 9 s were expected, and 18 s it will be */
	progress_report(&p, 0.2, 4.0);
	progress_report(&p, 0.3, 6.0);
	progress_report(&p, 0.4, 8.0);
	assert_true(progress_left_s(&p, &spread) > 10.5);
	assert_true(spread < 0.15);
}

TEST(test_reports_that_come_all_at_once_are_one)
{
	/* 4 epochs of 3 s: three lines come after 9 s, out of a buffer, and so do the next after a restart */
	struct progress p;
	double spread;

	progress_begin(&p, 12.0, 0.0, 0.15);
	for (int epoch = 1; epoch <= 3; epoch++)
		assert_true(progress_report(&p, epoch / 4.0, 9.0 + 1e-3 * epoch));
	assert_int_equal(p.last.n, 1);
	assert_true(fabs(progress_left_s(&p, &spread) - 3.0) < 0.01);
	progress_begin(&p, 80.0, 0.0, 0.15);
	progress_report(&p, 0.1, 8.0);
	for (int i = 2; i <= 5; i++)
		progress_report(&p, 0.1 * i, 40.0);
	assert_int_equal(p.last.n, 2);
	assert_true(fabs(progress_left_s(&p, &spread) - 40.0) < 0.1);
}

TEST(test_an_epoch_that_is_told_as_it_begins_is_no_sign_of_speed)
{
	/* 4 epochs of 1.5 s, each told at its beginning, where 0.35 s were expected for all of them */
	struct progress p;
	double spread;

	for (int k = 0; k < 4; k++) {
		double first_s = 1e-4 * pow(10.0, k); /* from 0.1 to 100 ms */

		progress_begin(&p, 0.35, NAN, 0.15);
		progress_report(&p, 0.25, first_s);
		assert_true(k > 1 || progress_left_s(&p, &spread) > 0.2); /* after 10 ms it may be quick */
		progress_report(&p, 0.5, 1.5 + first_s);
		progress_report(&p, 0.75, 3.0 + first_s);
		assert_true(progress_left_s(&p, &spread) > 1.0); /* 1.5 s it will be */
	}
}

TEST(test_the_start_up_is_known_after_a_restart)
{
	struct bed b;
	struct sched_restored r = { .promised = true, .running = true };
	struct sched_estimate e;

	make(&b, "postrider", 2);
	hand_start = 0.25;
	r.request = job(&b, 1, 150);
	r.request.batch = &b64;
	r.request.n_batches = 1;
	r.taken = (struct candidate){ .decision = 64,
				      .epochs = NAN,
				      .time_s = 100,
				      .guard_s = 120,
				      .upper_s = 120,
				      .model_s = 100,
				      .accuracy = NAN,
				      .memory_mb = NAN,
				      .work_s = 100,
				      .cpu_share = 1,
				      .start_share = NAN };
	assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	assert_int_equal(sched_progress(b.s, 40 * S, 1, 0.2, NULL), 0); /* 25 s of them to start */
	sched_estimate(b.s, 40 * S, 1, &e, NULL);
	near(e.end_s, 60);
	hand_start = NAN;
	drop(&b);
}

/* 90 % of such jobs take at most 1.2 times what is expected: that is all a record says of its errors. */
TEST(test_a_restored_job_is_as_uncertain_as_its_bound_says)
{
	struct bed b;
	struct sched_restored r = { .promised = true, .running = true };
	struct sched_estimate e;

	make(&b, "postrider", 2);
	r.request = job(&b, 1, 110);
	r.request.batch = &b64;
	r.request.n_batches = 1;
	r.taken = (struct candidate){ .decision = 64,
				      .epochs = NAN,
				      .time_s = 100,
				      .spread = NAN,
				      .guard_s = 120,
				      .upper_s = 120,
				      .model_s = 100,
				      .accuracy = NAN,
				      .memory_mb = NAN,
				      .work_s = 100,
				      .cpu_share = 1,
				      .start_share = NAN };
	assert_int_equal(sched_restore(b.s, &r, NULL), 0);
	assert_int_equal(sched_estimate(b.s, 0, 1, &e, NULL), 0);
	near(e.chance, belief_chance(belief_of_bound(100, 120, 0.9), 110));
	drop(&b);
}

TEST(test_the_rate_follows_a_load_that_has_changed)
{
	struct progress p;
	double spread;

	progress_begin(&p, 20.0, 0.0, 0.15);
	for (int i = 1; i <= 5; i++)
		progress_report(&p, i / 20.0, i);
	for (int i = 1; i <= 8; i++) /* and half as fast from then on */
		progress_report(&p, (5 + i) / 20.0, 5.0 + 2.0 * i);
	assert_true(progress_left_s(&p, &spread) > 1.5 * 7);
}

/* ---- a job of which nothing was expected ---- */

struct own { /* what came of the remaining times that were told */
	double *error;
	size_t n, held;
};

static int by_size(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* A job of so many epochs that differ by `noise` (of their logarithm), the first of them `slow` times as
 * long, all from `joins` on slower by 1.4. What it says from epoch `from` on is held against what came. */
static void run_own(struct rng *rng, int epochs, double noise, double slow, int joins, int from,
		    struct own *o)
{
	double took[64], each_s = exp(3.0 * rng_normal(rng)), at_s = 0.0, left_s, spread, all_s = 0.0;
	struct progress p;

	for (int i = 0; i < epochs; i++) {
		took[i] = each_s * exp(noise * rng_normal(rng)) * (i ? 1.0 : slow) * (i >= joins ? 1.4 : 1.0);
		all_s += took[i];
	}
	progress_begin(&p, NAN, NAN, NAN);
	for (int i = 0; i + 1 < epochs; i++) {
		at_s += took[i];
		assert_true(progress_report(&p, (i + 1.0) / epochs, at_s));
		if (i + 1 < from)
			continue;
		left_s = progress_left_s(&p, &spread);
		o->error[o->n++] = fabs(left_s / (all_s - at_s) - 1.0);
		o->held += belief_bound((struct belief){ left_s, spread }, 0.9) >= all_s - at_s;
	}
}

TEST(test_a_job_that_nobody_knows_tells_its_own_end)
{
	static const double noise[] = { 0.01, 0.03, 0.1 };
	static const char *const name[] = { "even", "slow first epoch", "neighbour half way" };
	struct own all = { .error = malloc(4000000 * sizeof *all.error) };

	assert_non_null(all.error);
	for (int kind = 0; kind < 3; kind++) {
		size_t n_before = all.n, held_before = all.held;
		double within;

		for (size_t k = 0; k < 3; k++) {
			struct rng rng = rng_stream(11, 3 * (size_t)kind + k);
			struct own o = { .error = all.error + all.n };

			for (int i = 0; i < 3000; i++) {
				int epochs = 4 + (int)rng_below(&rng, 37);

				run_own(&rng, epochs, noise[k],
					kind == 1 ? 1.0 + 2.0 * rng_uniform(&rng) : 1.0,
					kind == 2 ? epochs / 2 : epochs, kind == 2 ? epochs / 2 + 2 : 2, &o);
			}
			all.n += o.n;
			all.held += o.held;
			qsort(o.error, o.n, sizeof *o.error, by_size);
			printf("%s, epochs differ by %g %%: median error %.1f %%, %.1f %% within the bound "
			       "of 90 %%\n",
			       name[kind], 100.0 * noise[k], 100.0 * o.error[o.n / 2],
			       100.0 * (double)o.held / (double)o.n);
			assert_true(kind == 2 || o.error[o.n / 2] < 0.05);
		}
		within = (double)(all.held - held_before) / (double)(all.n - n_before);
		assert_true(kind == 2 || (within > 0.87 && within < 0.95)); /* alone */
	}
	qsort(all.error, all.n, sizeof *all.error, by_size);
	printf("in all: median error %.1f %%, %.1f %% within\n", 100.0 * all.error[all.n / 2],
	       100.0 * (double)all.held / (double)all.n);
	assert_true(all.held > 0.87 * (double)all.n && all.held < 0.95 * (double)all.n);
	free(all.error);
}

/* ---- warnings ---- */

#define EPOCH_SD 0.08 /* of the logarithm of an epoch's time */

struct counts {
	int jobs, late, warned, warned_late, sure, sure_late, stopped, stopped_late;
	int knowable; /* late: an observer who knows the job's rate is as sure at one of its reports */
};

/* A job of 12.5 s in so many epochs, start_s of it start-up; the truth differs from the model by as much
 * as its bounds say, epochs from each other, and the load of others comes and goes. */
static void run_one(struct bed *b, struct rng *rng, double start_s, bool known, struct counts *t)
{
	int epochs = 2 + (int)rng_below(rng, 7);
	double factor = exp(0.142 * rng_normal(rng)), slower = exp(0.05 * rng_normal(rng));
	double slo_s = 15.0 * (1.0 + 0.15 * rng_uniform(rng));
	bool crowd = rng_uniform(rng) < 0.4, warned = false, sure = false, stopped = false, knowable = false;
	double from_s = crowd ? 12.0 * rng_uniform(rng) : INFINITY;
	double until_s = from_s + 6.0 * rng_uniform(rng), load = crowd ? 0.5 + 1.5 * rng_uniform(rng) : 0.0;
	double now_s = 0.0, look_s = 0.5, left_s = start_s * exp(0.2 * rng_normal(rng)), step;
	struct sched_request r = job(b, 1, slo_s);
	struct sched_estimate e;

	hand_start = known ? start_s / 12.5 : NAN;
	r.batch = &b512;
	r.n_batches = 1;
	r.may_stop = true;
	assert_int_equal(submit(b, 0, &r), SCHED_PROMISED);
	assert_int_equal(next(b, 0), 1);
	for (int epoch = 0; epoch <= epochs; epoch++) { /* the start-up is epoch 0 */
		if (epoch)
			left_s = factor * (12.5 - start_s) / epochs * exp(EPOCH_SD * rng_normal(rng));
		while (left_s > 1e-9) {
			bool busy = now_s >= from_s && now_s < until_s;
			double stretch = busy ? slower * (2.0 + load) / 2.0 : 1.0;
			double until = now_s < from_s ? from_s : busy ? until_s : INFINITY;

			step = fmin(fmin(left_s * stretch, until - now_s), look_s - now_s);
			now_s += step;
			left_s -= step / stretch;
			if (now_s >= from_s && now_s < until_s)
				sched_set_other_load(b->s, (int64_t)(now_s * S), load, NULL);
			else if (crowd)
				sched_set_other_load(b->s, (int64_t)(now_s * S), 0.0, NULL);
			if (now_s >= look_s) { /* as the daemon does */
				look_s += 0.5;
				sched_estimate(b->s, (int64_t)(now_s * S), 1, &e, NULL);
				warned |= e.late && now_s < slo_s;
				sure |= e.sure && now_s < slo_s;
			}
		}
		if (epoch && epoch < epochs) {
			double each_s = factor * (12.5 - start_s) / epochs, m = epochs - epoch;
			uint32_t stop;

			/* 1 in 2,000 is 3.29 standard deviations */
			knowable |= now_s < slo_s &&
				    now_s + m * each_s - 3.29 * EPOCH_SD * each_s * sqrt(m) > slo_s;
			assert_int_equal(
				sched_progress(b->s, (int64_t)(now_s * S), 1, (double)epoch / epochs, NULL),
				0);
			sched_estimate(b->s, (int64_t)(now_s * S), 1, &e, NULL);
			warned |= e.late && now_s < slo_s;
			sure |= e.sure && now_s < slo_s;
			stop = sched_should_stop(b->s, (int64_t)(now_s * S), 1, (uint32_t)epoch,
						 (uint32_t)epochs);
			stopped |= stop == (uint32_t)epoch && now_s < slo_s;
		}
	}
	sched_remove(b->s, (int64_t)(now_s * S), 1, NULL);
	t->jobs++;
	t->late += now_s > slo_s;
	t->warned += warned;
	t->warned_late += warned && now_s > slo_s;
	t->sure += sure;
	t->knowable += knowable;
	t->sure_late += sure && now_s > slo_s;
	t->stopped += stopped;
	t->stopped_late += stopped && now_s > slo_s;
}

TEST(test_false_alarms_are_fewer_than_true_ones)
{
	static const double start_s[] = { 0, 0.5, 3 };
	struct counts all = { 0 };

	for (int known = 0; known < 2; known++)
		for (size_t k = 0; k < 3; k++) {
			struct counts t = { 0 };
			struct rng rng = rng_stream(7, 2 * k + (size_t)known);

			for (int i = 0; i < 250; i++) {
				struct bed b;

				make(&b, "postrider", 2);
				run_one(&b, &rng, start_s[k], known, &t);
				drop(&b);
			}
			printf("%3.1f s to start, %s: of %d jobs %d late; %d warned of, %d of these late; "
			       "sure of %d, "
			       "%d late; %d would be stopped, %d late\n",
			       start_s[k], known ? "known" : "not known", t.jobs, t.late, t.warned,
			       t.warned_late, t.sure, t.sure_late, t.stopped, t.stopped_late);
			assert_true(2 * t.warned_late >= t.warned);
			all.late += t.late;
			all.knowable += t.knowable;
			all.warned += t.warned;
			all.warned_late += t.warned_late;
			all.sure += t.sure;
			all.sure_late += t.sure_late;
			all.stopped += t.stopped;
			all.stopped_late += t.stopped_late;
		}
	printf("in all %d late: %d warned of, %d of these late; sure of %d, %d late (who knows the rates: "
	       "%d); %d would be stopped, %d late\n",
	       all.late, all.warned, all.warned_late, all.sure, all.sure_late, all.knowable, all.stopped,
	       all.stopped_late);
	assert_true(all.warned_late > 0.9 * all.late); /* and nearly all late ones are warned of */
	/* Nobody is stopped wrongly. Most jobs are late by less than an epoch may vary, and of those nobody
	 * can be sure; of the others we are. */
	assert_true(all.sure == all.sure_late && all.sure_late >= all.knowable);
	assert_true(all.stopped == all.stopped_late && all.stopped > 0.2 * all.late);
	hand_start = NAN;
}
