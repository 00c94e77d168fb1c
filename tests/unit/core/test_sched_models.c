/* Several models in one scheduler: each job is asked about with its own, and all share one machine. */
#include "scheduler/core/learn/adapt.h"
#include "tests/unit/core/sched_bed.h"

/* Beside the model of the bed another one, of jobs that take a tenth of the time. */
static void quick_time(const void *self, const double *x, size_t n_rows, double *out)
{
	hand_hybrid.predict(self, x, n_rows, out);
	for (size_t i = 0; i < n_rows; i++)
		out[i] /= 10.0;
}

struct two {
	struct bed b;
	struct predictor_ops quick_ops;
	struct model *quick;
	const struct model *own[2]; /* of number 1 and 2: quick, and none */
	struct sched_params p;
};

static void two_make(struct two *t, uint32_t slots)
{
	make(&t->b, "postrider", slots);
	t->quick_ops = hand_hybrid;
	t->quick_ops.predict = quick_time;
	t->quick = hand_model(&t->quick_ops);
	t->own[0] = t->quick;
	t->own[1] = NULL;
	t->p = params(&t->b, "postrider", slots);
	t->p.own_model = t->own;
	t->p.n_own_models = 2;
	t->p.adapt = true;
	remake(&t->b, &t->p);
}

static void two_drop(struct two *t)
{
	drop(&t->b);
	model_free(t->quick);
}

static struct sched_request job_of(const struct two *t, uint32_t model, uint64_t id, const double *batch,
				   double slo_s)
{
	struct sched_request r = job(&t->b, id, slo_s);

	r.model = model;
	r.batch = batch;
	r.n_batches = 1;
	return r;
}

TEST(test_a_job_is_asked_about_with_its_own_model)
{
	struct two t;
	struct sched_request r;

	two_make(&t, 2);
	r = job_of(&t, 0, 1, &b64, 200);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_PROMISED);
	near(t.b.d.candidate[0].time_s, 100);
	r = job_of(&t, 1, 2, &b64, 200);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_PROMISED);
	near(t.b.d.candidate[0].time_s, 10);
	two_drop(&t);
}

/* The look-ahead knows the work of both: behind 100 s of the first model, 10 s of the second. */
TEST(test_jobs_of_all_models_share_one_look_ahead)
{
	struct two t;
	struct sched_request r;
	struct sched_estimate e;

	two_make(&t, 2);
	r = job_of(&t, 0, 1, &b64, 130);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_PROMISED);
	assert_int_equal(next(&t.b, 0), 1);
	r = job_of(&t, 1, 2, &b64, 100);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_REJECTED); /* the machine is not free before */
	r = job_of(&t, 1, 2, &b64, 150);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_PROMISED);
	assert_int_equal(sched_estimate(t.b.s, 0, 2, &e, NULL), 0);
	near(e.start_s, 100);
	near(e.end_s, 110);
	two_drop(&t);
}

static struct sched_observation seen(uint32_t model, double actual_s)
{
	return (struct sched_observation){ .model = model,
					   .confidence = 0.9,
					   .model_s = 10,
					   .upper_s = 12,
					   .foreseen_s = NAN,
					   .actual_s = actual_s };
}

TEST(test_what_is_learnt_of_one_model_stays_there)
{
	struct two t;
	struct adapt_who who = { .type = 0, .user = 0 };

	two_make(&t, 2);
	for (int i = 0; i < 60; i++) {
		struct sched_observation o = seen(1, 15);

		o.user = (uint32_t)i;
		sched_observe(t.b.s, &o);
	}
	assert_true(adapt_bias(sched_adapt(t.b.s, 1), who) > 1.2);
	near(adapt_bias(sched_adapt(t.b.s, 0), who), 1.0);
	assert_null(sched_adapt(t.b.s, 2)); /* there is no model */
	two_drop(&t);
}

static const struct job_values *values_of(void *owner, uint64_t id, uint32_t *out_model)
{
	*out_model = (uint32_t)id - 1;
	return owner;
}

TEST(test_another_model_of_one_kind_leaves_what_the_others_learnt)
{
	struct two t;
	struct adapt_who who = { .type = 0, .user = 0 };
	struct model *again = NULL;

	two_make(&t, 2);
	for (int i = 0; i < 60; i++)
		for (uint32_t model = 0; model < 2; model++) {
			struct sched_observation o = seen(model, 15);

			o.user = (uint32_t)i;
			sched_observe(t.b.s, &o);
		}
	again = hand_model(&t.quick_ops);
	t.own[0] = again;
	assert_int_equal(sched_use(t.b.s, 0, &t.p, values_of, &t.b.values, NULL), 0);
	near(adapt_bias(sched_adapt(t.b.s, 1), who), 1.0);
	assert_true(adapt_bias(sched_adapt(t.b.s, 0), who) > 1.2);
	/* it follows the model also to another number */
	t.own[1] = t.p.model;
	t.p.model = again;
	t.own[0] = NULL;
	assert_int_equal(sched_use(t.b.s, 0, &t.p, values_of, &t.b.values, NULL), 0);
	assert_true(adapt_bias(sched_adapt(t.b.s, 2), who) > 1.2);
	near(adapt_bias(sched_adapt(t.b.s, 0), who), 1.0);
	sched_free(t.b.s);
	t.b.s = NULL;
	model_free(again);
	two_drop(&t);
}

TEST(test_a_change_gives_live_jobs_their_model_and_refuses_one_that_is_not_there)
{
	struct two t;
	struct sched_request r;
	struct err err = { 0 };

	two_make(&t, 4);
	r = job_of(&t, 0, 1, &b64, NAN);
	submit(&t.b, 0, &r);
	r = job_of(&t, 0, 2, &b64, NAN);
	submit(&t.b, 0, &r);
	assert_int_equal(sched_use(t.b.s, 0, &t.p, values_of, &t.b.values, NULL), 0);
	assert_int_equal(next(&t.b, 0), 1);
	near(t.b.d.candidate[0].time_s, 100);
	assert_int_equal(next(&t.b, 0), 2);
	near(t.b.d.candidate[0].model_s, 20); /* the second is of the quick model now, beside the first */
	t.p.n_own_models = 0;
	assert_int_equal(sched_use(t.b.s, 0, &t.p, values_of, &t.b.values, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "model 1"));
	r = job_of(&t, 9, 3, &b64, NAN);
	assert_int_equal(sched_submit(t.b.s, 0, &r, &t.b.d, &t.b.verdict, &err), -ERR_ARG);
	two_drop(&t);
}

/* ---- jobs without a model, beside others ---- */

TEST(test_a_job_without_a_model_takes_the_middle_batch_and_gets_no_promise)
{
	static const double five[] = { 8, 16, 32, 64, 128 };
	struct two t;
	struct sched_request r;

	two_make(&t, 2);
	r = job_of(&t, 2, 1, five, 1000);
	r.n_batches = 5;
	assert_int_equal(submit(&t.b, 0, &r), SCHED_BEST_EFFORT);
	near(t.b.d.candidate[t.b.d.chosen].decision, 32);
	assert_int_equal(next(&t.b, 0), 1);
	near(t.b.d.candidate[t.b.d.chosen].decision, 32);
	two_drop(&t);
}

TEST(test_a_job_of_unknown_length_does_not_start_where_it_could_break_a_promise)
{
	struct two t;
	struct sched_request r;

	two_make(&t, 4);
	r = job_of(&t, 0, 1, &b64, 130); /* alone 100 s, by its bound 120 s */
	assert_int_equal(submit(&t.b, 0, &r), SCHED_PROMISED);
	assert_int_equal(next(&t.b, 0), 1);
	r = job_of(&t, 2, 2, &b64, NAN);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&t.b, 0), 0); /* beside it the first would take up to 240 s */
	r = job_of(&t, 2, 3, &b64, NAN);
	r.guess_s = 2; /* as far as is known, over before it does harm */
	assert_int_equal(submit(&t.b, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&t.b, 0), 3);
	assert_int_equal(sched_remove(t.b.s, 100 * S, 1, NULL), 0);
	assert_int_equal(next(&t.b, 100), 2);
	two_drop(&t);
}

TEST(test_a_running_job_of_unknown_length_is_not_thought_to_end)
{
	struct two t;
	struct sched_request r;

	two_make(&t, 2);
	r = job_of(&t, 2, 1, &b64, NAN);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&t.b, 0), 1);
	r = job_of(&t, 1, 2, &b64, 1000);
	assert_int_equal(submit(&t.b, 1, &r), SCHED_REJECTED); /* both slots are taken */
	two_drop(&t);
}

TEST(test_a_policy_that_wants_a_model_starts_without_any_only_if_told)
{
	struct two t;
	struct sched_request r;
	struct sched *none = NULL;
	struct err err = { 0 };

	two_make(&t, 2);
	t.p.model = NULL;
	t.own[0] = NULL;
	assert_int_equal(sched_new(&t.p, &none, &err), -ERR_ARG);
	t.p.may_lack = true;
	remake(&t.b, &t.p);
	r = job_of(&t, 1, 1, &b64, 10);
	assert_int_equal(submit(&t.b, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&t.b, 0), 1);
	assert_int_equal(sched_remove(t.b.s, 5 * S, 1, NULL), 0);
	t.own[0] = t.quick; /* trained meanwhile */
	assert_int_equal(sched_use(t.b.s, 5 * S, &t.p, values_of, &t.b.values, NULL), 0);
	r = job_of(&t, 1, 2, &b64, 100);
	assert_int_equal(submit(&t.b, 5, &r), SCHED_PROMISED);
	two_drop(&t);
}
