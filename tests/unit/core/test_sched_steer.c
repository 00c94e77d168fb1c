/* Jobs whose batch is decided again while they run. The model is that of hand_model.h: 6400 / batch seconds
 * of work, so that with 8 epochs one with 64 takes 12.5 s; what counts for accuracy are the iterations. */
#include <stdio.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/unit/core/sched_bed.h"
#include "tests/unit/core/steer_truth.h"

#define EPOCHS 8

static struct sched_request steers(const struct bed *b, uint64_t id, double slo_s)
{
	struct sched_request r = job(b, id, slo_s);

	r.steer = true;
	return r;
}

/* It has done so many epochs by now. */
static struct steer_answer report(struct bed *b, double now_s, uint32_t epoch)
{
	struct steer_report r = { .epoch = epoch, .epochs = EPOCHS, .accuracy = NAN };
	struct steer_answer a;
	int64_t now_ns = (int64_t)(now_s * 1e9);

	assert_int_equal(sched_progress(b->s, now_ns, 1, (double)epoch / EPOCHS, NULL), 0);
	if (sched_steer(b->s, now_ns, 1, &r, &a, &b->err))
		fail_msg("%s", b->err.text);
	return a;
}

static void start(struct bed *b, const char *policy, double slo_s)
{
	struct sched_request r;

	make(b, policy, 2);
	hand_start = 0.0; /* else the first slow epoch would count as a start-up */
	r = steers(b, 1, slo_s);
	r.rate = (struct steer_rate){ STEER_RATE_LINEAR, 0.1, 64 };
	submit(b, 0, &r);
	assert_int_equal(next(b, 0), 1);
}

TEST(test_a_job_as_expected_keeps_its_batch_until_there_is_time_for_a_better_one)
{
	struct bed b;
	struct steer_answer a;

	start(&b, "postrider", 101); /* 64 takes 100 s, and 120 by its bound; 128 takes 50 */
	a = report(&b, b.d.candidate[b.d.chosen].time_s / EPOCHS, 1);
	assert_true(a.batch < 128);
	assert_int_equal(a.last, EPOCHS);
	assert_true(a.end_s < 101 && a.end_s > 80);
	drop(&b);
}

TEST(test_a_slow_job_goes_faster_in_time_and_its_learning_rate_follows)
{
	struct bed b;
	double at_s = 0.0, batch = 64, largest = 0.0;

	start(&b, "postrider", 125);
	assert_true(b.d.candidate[b.d.chosen].decision == batch);
	for (uint32_t e = 1; e < EPOCHS; e++) {
		struct steer_answer a;

		at_s += 20.0 * 64 / batch; /* with 64 it would take 160 s, and 100 were expected */
		a = report(&b, at_s, e);
		assert_true(a.changed == (a.batch != batch));
		assert_true(a.batch <= batch || a.reason == STEER_FASTER);
		near(a.lr, 0.1 * a.batch / 64);
		batch = a.batch;
		largest = fmax(largest, batch);
	}
	assert_true(largest == 128);
	assert_true(at_s + 20.0 * 64 / batch <= 125);
	drop(&b);
}

TEST(test_a_neighbour_that_comes_makes_a_job_faster)
{
	struct bed b;
	struct steer_answer a = { 0 };

	start(&b, "postrider", 125);
	report(&b, 12.5, 1);
	sched_set_other_load(b.s, 13 * S, 4.0, NULL); /* six processes on two cores: 3 times as long */
	a = report(&b, 50, 2); /* as much as the epoch takes among so many: not the job is slow */
	assert_int_equal(a.reason, STEER_FASTER);
	assert_true(a.batch >= 128 && a.changed);
	drop(&b);
}

TEST(test_a_job_that_is_late_whatever_it_does_goes_as_fast_as_it_can)
{
	struct bed b;
	struct steer_answer a = { 0 };

	start(&b, "postrider", 125);
	for (uint32_t e = 1; e <= 3; e++)
		a = report(&b, 41.0 * e, e);
	assert_int_equal(a.reason, STEER_LATE);
	assert_true(a.batch == 512);
	assert_string_equal(steer_reason_name(a.reason), "late");
	drop(&b);
}

TEST(test_only_a_job_that_asks_is_steered_and_only_under_the_layer)
{
	static const char *const policy[] = { "postrider:steer=no", "postrider:without=steer", "courier" };
	struct bed b;
	struct steer_answer a = { 0 };

	for (size_t i = 0; i < 3; i++) {
		start(&b, policy[i], 125);
		for (uint32_t e = 1; e <= 3; e++)
			a = report(&b, 41.0 * e, e);
		assert_int_equal(a.reason, STEER_KEEPS);
		assert_true(!a.changed && a.batch == b.d.candidate[b.d.chosen].decision);
		near(a.lr, 0.1 * a.batch / 64);
		drop(&b);
	}
	make(&b, "postrider", 2);
	submit_batch(&b, 0, 1, &b64, 125);
	next(&b, 0);
	a = report(&b, 41, 1);
	assert_int_equal(a.reason, STEER_KEEPS);
	assert_true(isnan(a.lr));
	drop(&b);
}

TEST(test_wrong_reports_are_refused_and_a_report_told_twice_is_answered_twice)
{
	struct steer_report r = { .epoch = 0, .epochs = EPOCHS, .accuracy = NAN };
	struct steer_answer a, again;
	struct bed b;

	start(&b, "postrider", 125);
	assert_int_equal(sched_steer(b.s, S, 1, &r, &a, NULL), -ERR_ARG);
	assert_int_equal(sched_steer(b.s, S, 9, &r, &a, NULL), -ERR_NOTFOUND);
	a = report(&b, 40, 1);
	assert_true(a.changed);
	again = report(&b, 31, 1);
	assert_memory_equal(&a, &again, sizeof a);
	drop(&b);
}

/* What a job has learnt of itself is kept in work, so a batch that was never run is slower in proportion. */
TEST(test_the_time_of_a_mixed_run_is_told_as_that_of_the_batch_it_began_with)
{
	struct bed b;
	struct steer_answer a = { 0 };
	double at_s = 0.0, batch = 64;

	start(&b, "postrider", 125);
	for (uint32_t e = 1; e < EPOCHS; e++) { /* half as fast again as thought, always */
		at_s += 1.5 * 6400 / batch / EPOCHS;
		a = report(&b, at_s, e);
		batch = a.batch;
	}
	at_s += 1.5 * 6400 / batch / EPOCHS;
	assert_true(at_s <= 125);
	near(sched_as_started_s(b.s, 1, at_s), 150);
	near(sched_as_started_s(b.s, 2, at_s), at_s); /* no such job */
	drop(&b);
}

/* ---- memory and devices ---- */

TEST(test_a_batch_without_room_is_not_taken)
{
	struct sched_params p;
	struct sched_request r;
	struct steer_answer a = { 0 };
	struct bed b;

	make(&b, "postrider", 2);
	p = params(&b, "postrider", 2);
	p.machine.memory_mb = 200;
	remake(&b, &p);
	r = steers(&b, 1, 125);
	r.memory_mb_per_record = 1;
	submit(&b, 0, &r);
	next(&b, 0);
	for (uint32_t e = 1; e <= 3; e++)
		a = report(&b, 41.0 * e, e);
	assert_true(a.batch == 128); /* 256 records need 256 MB */
	drop(&b);
}

/* ---- a restart ---- */

static void restore(struct bed *b, const struct sched_request *r, const struct candidate *c, const char *kept)
{
	struct sched_params p = params(b, "postrider", 2);
	const struct sched_restored back = {
		.request = *r, .promised = true, .running = true, .taken = *c, .steer = kept
	};

	remake(b, &p);
	if (sched_restore(b->s, &back, &b->err))
		fail_msg("%s", b->err.text);
}

TEST(test_a_restart_answers_the_same)
{
	struct steer_answer a, same;
	struct bed b, other;
	char kept[STEER_TEXT];

	for (uint32_t at = 1; at < EPOCHS - 1; at++) {
		struct sched_request r;
		struct candidate c;

		start(&b, "postrider", 125);
		c = b.d.candidate[b.d.chosen];
		for (uint32_t e = 1; e <= at; e++)
			a = report(&b, 14.0 * e, e);
		assert_true(strlen(sched_steer_kept(b.s, 1, kept)) > 100);
		make(&other, "postrider", 2);
		r = steers(&other, 1, 125);
		r.rate = (struct steer_rate){ STEER_RATE_LINEAR, 0.1, 64 };
		restore(&other, &r, &c, kept);
		same = report(&other, 14.0 * at + 1, at); /* the job asks again: it was not told */
		assert_true(same.batch == a.batch && same.last == a.last && same.reason == a.reason);
		for (uint32_t e = at + 1; e < EPOCHS; e++) {
			a = report(&b, 14.0 * e, e);
			same = report(&other, 14.0 * e, e);
			assert_true(same.batch == a.batch && same.last == a.last && same.reason == a.reason);
			near(same.end_s, a.end_s);
			near(same.end_upper_s, a.end_upper_s);
			near(same.accuracy, a.accuracy);
		}
		drop(&b);
		drop(&other);
	}
}

TEST(test_a_damaged_text_is_refused)
{
	struct bed b;
	struct err err = { 0 };
	char kept[STEER_TEXT];
	size_t n;

	start(&b, "postrider", 125);
	assert_string_equal(sched_steer_kept(b.s, 1, kept), "");
	assert_string_equal(sched_steer_kept(b.s, 7, kept), "");
	report(&b, 14, 1);
	n = strlen(sched_steer_kept(b.s, 1, kept));
	assert_int_equal(steer_check(kept, NULL), 0);
	assert_int_equal(steer_check("", NULL), 0);
	assert_int_equal(steer_check(NULL, NULL), 0);
	kept[n] = ' ';
	kept[n + 1] = '\0';
	assert_int_equal(steer_check(kept, &err), -ERR_FORMAT);
	while (n-- > 1) {
		bool digit = kept[n - 1] != ' ' && kept[n] != ' ' && kept[n] != '\0';

		kept[n] = '\0';
		if (!digit) /* a number that was cut short is still a number */
			assert_int_equal(steer_check(kept, &err), -ERR_FORMAT);
	}
	assert_non_null(strstr(err.text, "steered"));
	drop(&b);
}

/* ---- known truth ---- */

/* The bars of the full form (tests/bars/test_steer_bars.c), with fewer jobs and so less sharp. */
TEST(test_steered_jobs_are_nearly_as_accurate_as_the_best_batch_known_in_advance)
{
	static const struct {
		double spread, joins, least;
	} row[] = { { 0.05, 0, 0.95 }, { 0.15, 0, 0.95 }, { 0.3, 0, 0.92 }, { 0.15, 0.4, 0.9 } };

	for (size_t i = 0; i < 4; i++) {
		struct steer_truth t = {
			.spread = row[i].spread, .joins = row[i].joins, .jobs = 300, .seed = 3
		};
		struct steer_score with, without;

		t.policy = "postrider";
		with = steer_truth_play(&t);
		t.policy = "postrider:steer=no";
		without = steer_truth_play(&t);
		printf("spread %.2f, neighbour in %.0f %%: %.3f steered, %.3f not, of %.3f; kept %.3f and "
		       "%.3f\n",
		       t.spread, 100 * t.joins, with.accuracy, without.accuracy, with.best, with.kept,
		       without.kept);
		assert_true(with.accuracy > 1.05 * without.accuracy);
		assert_true(with.accuracy > row[i].least * with.best);
		assert_true(with.kept >= 0.9);
		assert_true(without.changes == 0.0 && with.changes > 0.0);
	}
}

/* ---- speed ---- */

TEST(test_an_answer_takes_less_than_a_millisecond_among_a_thousand_jobs)
{
	enum { N = 1000, ASKED = 50 };
	struct sched_params p;
	struct steer_answer a;
	struct bed b;
	clock_t spent;

	make(&b, "postrider", 2);
	p = params(&b, "postrider", 4 * N);
	p.max_jobs = N + 1;
	remake(&b, &p);
	for (uint64_t id = 1; id <= N; id++) {
		struct sched_request r = steers(&b, id, 4e5 + (double)id);

		assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), id);
	}
	spent = clock();
	for (uint32_t id = 1; id <= ASKED; id++) {
		struct steer_report r = { .epoch = 1, .epochs = EPOCHS, .accuracy = NAN };
		int64_t now_ns = (int64_t)(30 + id) * S;

		assert_int_equal(sched_progress(b.s, now_ns, id, 1.0 / EPOCHS, NULL), 0);
		assert_int_equal(sched_steer(b.s, now_ns, id, &r, &a, NULL), 0);
	}
	spent = clock() - spent;
	printf("%.3f ms an answer\n", 1e3 * (double)spent / CLOCKS_PER_SEC / ASKED);
	if (!sanitized())
		assert_true((double)spent / CLOCKS_PER_SEC < 1e-3 * ASKED);
	drop(&b);
}
