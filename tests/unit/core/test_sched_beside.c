/* Schedulers of several machines that share what they learn: what is common, and what is not. */
#include "tests/unit/core/sched_bed.h"

static void two(struct bed *a, struct bed *b, uint32_t slots)
{
	struct sched_params p;

	make(a, "postrider", slots);
	p = params(a, "postrider", slots);
	p.adapt = true;
	remake(a, &p);
	*b = *a;
	b->s = NULL;
	assert_int_equal(sched_new_beside(a->s, &p, &b->s, &a->err), 0);
}

static void drop_two(struct bed *a, struct bed *b)
{
	sched_free(b->s);
	drop(a);
}

TEST(test_machines_are_separate)
{
	struct bed a, b;
	struct sched_request r;

	two(&a, &b, 2);
	r = job(&a, 1, NAN);
	assert_int_equal(submit(&a, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&a, 0), 1);
	r = job(&a, 2, NAN);
	assert_int_equal(submit(&a, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&a, 0), 0); /* full */
	r = job(&b, 2, NAN); /* the same id: jobs are the machine's own */
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	assert_true(b.d.candidate[0].wait_s == 0.0);
	assert_int_equal(next(&b, 0), 2);
	assert_true(sched_queued(a.s) == 1 && sched_queued(b.s) == 0 && sched_running(b.s) == 1);
	drop_two(&a, &b);
}

/* The same question to both, before and after one has seen that all takes 1.5 times as long. */
TEST(test_what_one_learns_the_other_knows)
{
	struct bed a, b;
	struct sched_request r;
	double before_s, after_s;

	two(&a, &b, 4);
	r = job(&b, 99, 1000.0);
	submit(&b, 0, &r);
	before_s = b.d.candidate[0].time_s;
	sched_remove(b.s, 0, 99, NULL);
	for (uint64_t i = 1; i <= 60; i++) {
		struct sched_observation o = { .confidence = 0.9,
					       .model_s = 10.0,
					       .upper_s = 12.0,
					       .foreseen_s = 15.0,
					       .actual_s = 15.0 };

		sched_observe(a.s, &o);
	}
	submit(&b, 100, &r);
	after_s = b.d.candidate[0].time_s;
	assert_true(sched_adapt(a.s, 0) == sched_adapt(b.s, 0));
	print_message("%.3f s before, %.3f s after\n", before_s, after_s);
	assert_true(after_s > 1.3 * before_s && after_s < 1.6 * before_s);
	drop_two(&a, &b);
}

TEST(test_what_is_shared_does_not_change)
{
	struct bed a, b;
	struct sched_params p;
	struct sched *more = NULL;
	struct err err = { 0 };

	two(&a, &b, 2);
	p = params(&a, "postrider", 2);
	assert_int_equal(sched_use(a.s, 0, &p, NULL, NULL, &err), -ERR_ARG);
	assert_int_equal(sched_use(b.s, 0, &p, NULL, NULL, &err), -ERR_ARG);
	p.max_jobs *= 2;
	assert_int_equal(sched_new_beside(a.s, &p, &more, &err), -ERR_ARG);
	p.max_jobs = 1;
	assert_int_equal(sched_new_beside(b.s, &p, &more, &err), -ERR_ARG); /* what is lent is not lent on */
	assert_null(more);
	sched_free(b.s);
	assert_int_equal(sched_use(a.s, 0, &p, NULL, NULL, &err), 0);
	drop(&a);
}
