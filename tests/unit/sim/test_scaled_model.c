/* A model of two cores asked about four. */
#include <math.h>
#include <stdio.h>

#include "sim/replay/models.h"
#include "sim/replay/scaled_model.h"
#include "tests/support/test.h"

static struct csv *table;
static struct sim_policy policy;
static struct sim_models *models;
static const struct model *base;

static int train(void **state)
{
	struct sim_models_params p = { .policy = &policy, .n_policies = 1, .seed = 1 };
	struct err err = { 0 };

	(void)state;
	if (csv_read_file("configs/profiles/two-cores/runs.csv", &table, &err) ||
	    sim_policy_parse("postrider", &policy, &err))
		fail_msg("%s", err.text);
	p.table = table;
	if (sim_models_train(&p, &models, &err))
		fail_msg("%s", err.text);
	base = sim_models_of(models, &policy);
	return 0;
}

static int release(void **state)
{
	(void)state;
	sim_models_free(models);
	csv_free(table);
	return 0;
}

TEST_GROUP(train, release);

static double time_s(const struct model *m, double njobs, double processes)
{
	struct job_values v;
	struct err err = { 0 };
	double x[FEATURES_MAX], out;
	char text[160];

	snprintf(text, sizeof text,
		 "network=lenet5,cpus=2,epochs=4,samples=12000,batch=128,njobs=%g,processes=%g", njobs,
		 processes);
	assert_int_equal(job_values_init(&v, m->schema, &err), 0);
	assert_int_equal(job_values_parse(&v, m->schema, text, &err), 0);
	features_encode_job(m->features, &v, x);
	predictor_predict(&m->time.predictor, x, 1, &out);
	job_values_release(&v);
	return out;
}

TEST(test_twice_the_cores_carry_twice_the_load)
{
	struct model *twice;
	struct err err = { 0 };

	assert_int_equal(scaled_model_new(base, 2.0, 4.0, &twice, &err), 0);
	assert_true(time_s(twice, 6.0, 12.0) == time_s(base, 3.0, 6.0));
	assert_true(time_s(twice, 10.0, 20.0) == time_s(base, 5.0, 10.0));
	assert_true(time_s(twice, 5.0, 10.0) < time_s(base, 5.0, 10.0));
	scaled_model_free(twice);
}

TEST(test_a_job_alone_is_as_fast_as_measured)
{
	struct model *more, *less;
	struct err err = { 0 };

	assert_int_equal(scaled_model_new(base, 2.0, 64.0, &more, &err), 0);
	assert_int_equal(scaled_model_new(base, 2.0, 1.0, &less, &err), 0);
	assert_true(time_s(more, 1.0, 2.0) == time_s(base, 1.0, 2.0));
	assert_true(time_s(less, 1.0, 2.0) > time_s(base, 1.0, 2.0)); /* its two processes share one core */
	scaled_model_free(more);
	scaled_model_free(less);
}

TEST(test_the_machine_of_the_look_ahead_grows_with_it)
{
	double cores, saturation, more_cores, more_saturation;
	struct model *more;
	struct err err = { 0 };

	assert_int_equal(scaled_model_new(base, 2.0, 6.0, &more, &err), 0);
	base->time.predictor.ops->machine(base->time.predictor.self, &cores, &saturation);
	more->time.predictor.ops->machine(more->time.predictor.self, &more_cores, &more_saturation);
	assert_true(fabs(more_cores / cores - 3.0) < 1e-12 || (isinf(cores) && isinf(more_cores)));
	assert_true(fabs(more_saturation / saturation - 3.0) < 1e-12 ||
		    (isinf(saturation) && isinf(more_saturation)));
	assert_string_equal(more->time.predictor.ops->name, base->time.predictor.ops->name);
	scaled_model_free(more);
}

/* 30 processes on 6 cores are as crowded as 10 on 2, which were measured: no reason to widen a bound. */
TEST(test_a_load_that_was_measured_in_proportion_is_not_extrapolated)
{
	struct job_values v;
	double x[FEATURES_MAX];
	struct model *more;
	struct err err = { 0 };

	assert_int_equal(scaled_model_new(base, 2.0, 6.0, &more, &err), 0);
	assert_int_equal(job_values_init(&v, base->schema, &err), 0);
	assert_int_equal(
		job_values_parse(
			&v, base->schema,
			"network=lenet5,cpus=2,epochs=4,samples=12000,batch=128,njobs=15,processes=30", &err),
		0);
	features_encode_job(base->features, &v, x);
	assert_true(features_extrapolated(base->features, x));
	assert_false(features_extrapolated(more->features, x));
	job_values_release(&v);
	scaled_model_free(more);
}
