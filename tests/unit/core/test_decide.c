/* The choice among candidates: models are made by hand, so that the right answer is known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/data/features.h"
#include "predictors/trees/forest.h"
#include "scheduler/core/decide.h"
#include "tests/support/test.h"

/* A bundle on a table of five batches whose times and accuracies are given; no noise, one full tree each.
 * residual: the scores of the time model's bounds. */
struct fixture {
	struct model *m;
	struct schema *schema;
	struct csv *csv;
	struct table *table;
	struct job_values job;
};

static void fit_target(struct model_target *out, const double *x, const double *y, size_t n, size_t p)
{
	struct dataset d = { .n_rows = n, .n_features = p, .x = (double *)x, .y = (double *)y };
	struct fit_context ctx = { .seed = 1 };
	struct settings s;

	settings_init(&s, tree_ops.spec);
	assert_int_equal(predictor_fit(&tree_ops, &s, &d, &ctx, &out->predictor, NULL), 0);
}

static void make(struct fixture *f, const double *time, const double *accuracy, size_t n_residuals,
		 double residual, double noise)
{
	static const char text[] =
		"network,cpus,njobs,batch,time_s,accuracy\n"
		"a,1,1,32,1,1\na,1,1,64,1,1\na,1,1,128,1,1\na,1,1,256,1,1\na,1,1,512,1,1\n";
	double *x;

	memset(f, 0, sizeof *f);
	assert_int_equal(schema_default(&f->schema, NULL), 0);
	assert_int_equal(csv_parse("t", text, strlen(text), &f->csv, NULL), 0);
	assert_int_equal(table_read(f->csv, f->schema, true, &f->table, NULL), 0);
	f->m = calloc(1, sizeof *f->m);
	assert_int_equal(schema_default(&f->m->schema, NULL), 0);
	assert_int_equal(features_fit(f->table, &f->m->features, NULL), 0);
	f->m->features->schema = f->m->schema;
	assert_int_equal(features_encode_table(f->m->features, f->table, &x, NULL), 0);
	fit_target(&f->m->time, x, time, 5, f->m->features->n);
	if (accuracy)
		fit_target(&f->m->accuracy, x, accuracy, 5, f->m->features->n);
	f->m->time.conformal = (struct conformal){ .n = n_residuals,
						   .base = 1,
						   .score = calloc(n_residuals + 1, sizeof(double)) };
	for (size_t i = 0; i < n_residuals; i++)
		f->m->time.conformal.score[i] = residual;
	conformal_set_groups(&f->m->time.conformal, n_residuals);
	f->m->accuracy.conformal =
		(struct conformal){ .n = 20, .base = 1, .score = calloc(20, sizeof(double)) };
	for (size_t i = 0; i < 20; i++)
		f->m->accuracy.conformal.score[i] = i < 10 ? -noise : noise;
	f->m->n_candidates = 5;
	f->m->candidate = malloc(5 * sizeof(double));
	for (int i = 0; i < 5; i++)
		f->m->candidate[i] = 32 << i;
	assert_int_equal(job_values_init(&f->job, f->m->schema, NULL), 0);
	assert_int_equal(job_values_parse(&f->job, f->m->schema, "network=a,cpus=1,njobs=1", NULL), 0);
	free(x);
}

static void drop(struct fixture *f)
{
	job_values_release(&f->job);
	model_free(f->m);
	table_free(f->table);
	csv_free(f->csv);
	schema_free(f->schema);
}

static struct decision ask(struct fixture *f, double slo, double confidence)
{
	struct decide_params p = { .model = f->m, .job = &f->job, .slo_s = slo, .confidence = confidence };
	struct decision d;
	struct err err = { 0 };

	if (decide(&p, &d, &err))
		fail_msg("%s", err.text);
	return d;
}

static const double times[] = { 500, 400, 300, 200, 100 }, accuracies[] = { .97, .96, .95, .93, .90 };

TEST(test_most_accurate_in_time_is_chosen)
{
	struct fixture f;
	struct decision d;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	d = ask(&f, 330, 0.9); /* bounds 525 425 325 225 125 */
	assert_int_equal(d.chosen, 2);
	assert_true(d.candidate[2].upper_s == 325 && d.candidate[2].time_s == 300);
	assert_int_equal(d.candidate[0].reasons, REASON_SLO_EXCEEDED);
	assert_int_equal(d.candidate[1].reasons, REASON_SLO_EXCEEDED);
	assert_int_equal(d.candidate[3].reasons, REASON_LOWER_ACCURACY);
	assert_true(d.candidate[3].feasible && !d.candidate[1].feasible);
	drop(&f);
}

/* The table has one number of cpus and batches from 32 to 512. A tree knows no more than that. */
TEST(test_no_promise_far_outside_the_table)
{
	static const double batch[] = { 8, 17, 64, 1000, 1e15 };
	struct fixture f;
	struct decision d;
	struct decide_params p;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	p = (struct decide_params){ .model = f.m,
				    .job = &f.job,
				    .slo_s = 1e6,
				    .confidence = 0.9,
				    .candidate = batch,
				    .n_candidates = 5 };
	assert_int_equal(decide(&p, &d, NULL), 0);
	for (int i = 0; i < 5; i++) {
		bool beyond = i == 0 || i == 4; /* more than a factor of 2 outside */

		assert_true(d.candidate[i].feasible == !beyond);
		assert_true(!(d.candidate[i].reasons & REASON_BEYOND_MODEL) == !beyond);
		assert_true(isnan(d.candidate[i].guard_s) == beyond &&
			    isnan(d.candidate[i].chance) == beyond);
	}
	assert_null(d.beyond);
	/* Without a limit it may run all the same. */
	p.slo_s = NAN;
	assert_int_equal(decide(&p, &d, NULL), 0);
	assert_true(d.candidate[4].feasible && !(d.candidate[4].reasons & REASON_BEYOND_MODEL));
	drop(&f);
}

TEST(test_the_column_out_of_reach_is_named)
{
	struct fixture f;
	struct decision d;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	assert_int_equal(job_values_parse(&f.job, f.m->schema, "network=a,cpus=1000,njobs=1", NULL), 0);
	d = ask(&f, 1e6, 0.9);
	assert_int_equal(d.chosen, -1);
	assert_true(isnan(d.smallest_slo_s) && isnan(d.offer.chance));
	assert_string_equal(d.beyond, "cpus");
	assert_true(d.beyond_value == 1000 && d.beyond_least == 1 && d.beyond_most == 1);
	assert_string_equal(decide_reason_text(REASON_BEYOND_MODEL), "beyond_model");
	drop(&f);
}

/* Batches beyond the reach of 16 to 1024: the one that is nearest to it is named, wherever it stands. */
TEST(test_the_batch_out_of_reach_that_is_nearest_is_named)
{
	static const double above[] = { 3000, 2100, 9000 }, around[] = { 5, 9, 5000 };
	struct fixture f;
	struct decision d;
	struct decide_params p;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	p = (struct decide_params){ .model = f.m,
				    .job = &f.job,
				    .slo_s = 1e6,
				    .confidence = 0.9,
				    .candidate = above,
				    .n_candidates = 3 };
	assert_int_equal(decide(&p, &d, NULL), 0);
	assert_string_equal(d.beyond, "batch");
	assert_true(d.beyond_value == 2100 && d.beyond_least == 16 && d.beyond_most == 1024);
	p.candidate = around;
	assert_int_equal(decide(&p, &d, NULL), 0);
	assert_true(d.beyond_value == 9);
	drop(&f);
}

TEST(test_a_time_that_is_not_above_zero_is_no_answer)
{
	static const double some[] = { -500, 0, 300, 200, 100 };
	struct fixture f;
	struct decision d;

	make(&f, some, accuracies, 9, 25.0, 0.0);
	d = ask(&f, 1e6, 0.9);
	assert_int_equal(d.chosen, 2); /* the first two would be more accurate */
	for (int i = 0; i < 2; i++) {
		assert_true(isnan(d.candidate[i].time_s) && isnan(d.candidate[i].upper_s));
		assert_true(d.candidate[i].reasons & REASON_UNSTABLE && !d.candidate[i].feasible);
	}
	assert_int_equal(ask(&f, NAN, 0.9).chosen, 2);
	drop(&f);
	/* Bounds below the time by more than the time: of errors that are differences. */
	make(&f, times, accuracies, 9, -250.0, 0.0);
	d = ask(&f, 1e6, 0.9);
	for (size_t i = 0; i < d.n_candidates; i++)
		assert_true(isnan(d.candidate[i].guard_s) ? !d.candidate[i].feasible
							  : d.candidate[i].guard_s > 0.0);
	assert_true(isnan(d.candidate[4].guard_s) && d.candidate[4].reasons & REASON_NO_BOUND);
	drop(&f);
}

TEST(test_bound_not_the_expectation_decides)
{
	struct fixture f;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	assert_int_equal(ask(&f, 325, 0.9).chosen, 2);
	assert_int_equal(ask(&f, nextafter(325, 0), 0.9).chosen, 3); /* the time, 300, would still fit */
	drop(&f);
}

TEST(test_none_in_time_says_the_smallest_objective)
{
	struct fixture f;
	struct decision d;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	d = ask(&f, 60, 0.9);
	assert_int_equal(d.chosen, -1);
	assert_true(d.smallest_slo_s == 125);
	assert_int_equal(ask(&f, d.smallest_slo_s, 0.9).chosen, 4); /* and that one is kept */
	drop(&f);
}

TEST(test_too_few_residuals_promise_nothing)
{
	struct fixture f;
	struct decision d;

	make(&f, times, accuracies, 5, 25.0, 0.0);
	d = ask(&f, 1e6, 0.95);
	assert_int_equal(d.chosen, -1);
	assert_true(isnan(d.candidate[0].upper_s) && isnan(d.smallest_slo_s));
	assert_true(d.candidate[0].reasons & REASON_NO_BOUND);
	assert_int_equal(ask(&f, 1e6, 0.5).chosen, 0); /* five are enough for less confidence */
	assert_int_equal(ask(&f, NAN, 0.9).chosen, 0); /* and without a limit nothing is promised */
	drop(&f);
}

TEST(test_tie_within_the_noise_goes_to_the_faster)
{
	static const double close[] = { .9700, .9695, .9500, .93, .90 };
	struct fixture f;
	struct decision d;

	make(&f, times, close, 9, 25.0, 0.001);
	d = ask(&f, 1000, 0.9);
	assert_int_equal(d.chosen, 1);
	assert_int_equal(d.candidate[0].reasons, REASON_SLOWER);
	drop(&f);
	make(&f, times, close, 9, 25.0, 0.0003); /* less than the 0.0005 between the first two */
	assert_int_equal(ask(&f, 1000, 0.9).chosen, 0);
	drop(&f);
}

/* Section 5 of the paper: the highest accuracy in time, and nothing about noise. */
TEST(test_the_paper_s_policies_know_no_tie_within_the_noise)
{
	static const double close[] = { .9700, .9695, .9500, .93, .90 };
	static const struct {
		const char *policy;
		int chosen;
	} want[] = { { "courier", 0 }, { "courier-tuned", 0 }, { "boost", 0 }, { "boost-full", 1 } };
	struct fixture f;

	make(&f, times, close, 9, 25.0, 0.001);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct policy_choice by;
		struct decide_scene scene = { .policy = &by,
					      .machine = decide_machine(f.m, 2.0, 2),
					      .cpus = 1,
					      .most_cpus = 2,
					      .starting = true,
					      .memory_mb = NAN,
					      .memory_mb_per_record = NAN,
					      .memory_limit_mb = INFINITY,
					      .who = { .type = -1 } };
		struct decide_params p = {
			.model = f.m, .job = &f.job, .slo_s = 1000, .confidence = 0.9, .scene = &scene
		};
		struct decision d;

		assert_int_equal(policy_parse(want[i].policy, &by, NULL), 0);
		assert_int_equal(decide(&p, &d, NULL), 0);
		assert_int_equal(d.chosen, want[i].chosen);
	}
	drop(&f);
}

TEST(test_without_accuracy_the_fastest_is_chosen)
{
	struct fixture f;

	make(&f, times, NULL, 9, 25.0, 0.0);
	assert_int_equal(ask(&f, 330, 0.9).chosen, 4);
	drop(&f);
}

static void says_outside(const struct decision *d, const char *want)
{
	struct decide_out_of_range o = decide_out_of_range(d, &d->candidate[2]);
	struct strbuf out = { 0 };

	decide_out_of_range_text(&o, &out);
	assert_string_equal(strbuf_text(&out), want);
	strbuf_release(&out);
}

TEST(test_outside_the_training_range_is_said)
{
	struct fixture f;
	struct decision d;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	assert_false(ask(&f, 330, 0.9).candidate[0].extrapolated);
	f.m->features->feature[1].max = 40; /* as if the table had gone from 1 to 40 cpus */
	assert_string_equal(f.m->features->feature[1].name, "cpus");
	assert_int_equal(job_values_parse(&f.job, f.m->schema, "cpus=64", NULL), 0);
	d = ask(&f, 330, 0.9);
	assert_true(d.candidate[2].extrapolated && (d.candidate[2].reasons & REASON_EXTRAPOLATED));
	assert_true(d.candidate[2].feasible); /* said, not refused */
	says_outside(&d, "cpus 64 is outside 1 to 40 of the training table");
	assert_int_equal(job_values_parse(&f.job, f.m->schema, "cpus=1,network=unknown", NULL), 0);
	d = ask(&f, 330, 0.9);
	assert_true(d.candidate[2].extrapolated);
	says_outside(&d, "its network is not in the training table");
	job_values_release(&f.job);
	assert_int_equal(job_values_init(&f.job, f.m->schema, NULL), 0);
	assert_int_equal(job_values_parse(&f.job, f.m->schema, "network=a,njobs=1", NULL), 0);
	d = ask(&f, 330, 0.9);
	says_outside(&d, "cpus is not given; the training table has 1 to 40");
	f.m->features->feature[1].min = f.m->features->feature[1].max = NAN;
	assert_int_equal(job_values_parse(&f.job, f.m->schema, "cpus=2", NULL), 0);
	d = ask(&f, 330, 0.9);
	says_outside(&d, "the training table has no cpus");
	drop(&f);
}

TEST(test_own_candidates_and_bad_asks)
{
	double own[] = { 100, 300 }, many[DECIDE_MAX_CANDIDATES + 1] = { 0 };
	struct fixture f;
	struct decision d;
	struct decide_params p;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	p = (struct decide_params){ .model = f.m,
				    .job = &f.job,
				    .slo_s = 1000,
				    .confidence = 0.9,
				    .candidate = own,
				    .n_candidates = 2 };
	assert_int_equal(decide(&p, &d, NULL), 0);
	assert_int_equal(d.n_candidates, 2);
	assert_int_equal(d.chosen, 0);
	p.candidate = many;
	p.n_candidates = DECIDE_MAX_CANDIDATES + 1;
	assert_int_equal(decide(&p, &d, NULL), -ERR_ARG);
	p.n_candidates = 0;
	assert_int_equal(decide(&p, &d, NULL), -ERR_ARG);
	p.n_candidates = DECIDE_MAX_CANDIDATES;
	assert_int_equal(decide(&p, &d, NULL), 0);
	p.confidence = 1.0;
	assert_int_equal(decide(&p, &d, NULL), -ERR_ARG);
	p.confidence = NAN;
	assert_int_equal(decide(&p, &d, NULL), -ERR_ARG);
	drop(&f);
}

/* A model that has no time for some batches, as a queue without a steady state has none. */
static const struct predictor_ops *stable_ops;

static double no_time; /* what the model below says instead of a time */

static void unstable_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	stable_ops->predict(self, x, n_rows, out);
	for (size_t i = 0; i < n_rows; i++)
		if (out[i] > 350.0)
			out[i] = no_time;
}

TEST(test_unstable_candidates_are_never_chosen)
{
	struct predictor_ops unstable;
	struct fixture f;
	struct decision d;

	make(&f, times, accuracies, 9, 25.0, 0.0);
	stable_ops = f.m->time.predictor.ops;
	unstable = *stable_ops;
	unstable.predict = unstable_predict;
	f.m->time.predictor.ops = &unstable;
	for (int k = 0; k < 9; k++) {
		int slo = k % 3; /* without one, one that some meet, one that none meets */

		no_time = k < 3 ? NAN : k < 6 ? 0.0 : -3.5; /* boosting may say the last */
		d = ask(&f, slo == 0 ? NAN : slo == 1 ? 1000 : 1, 0.9);
		assert_int_equal(d.chosen, slo < 2 ? 2 : -1); /* the most accurate two have no time */
		for (int i = 0; i < 2; i++) {
			assert_int_equal(d.candidate[i].reasons, REASON_UNSTABLE);
			assert_false(d.candidate[i].feasible);
			assert_true(isnan(d.candidate[i].time_s) && isnan(d.candidate[i].upper_s));
		}
		assert_true(d.smallest_slo_s == 125); /* of those that have one */
	}
	assert_int_equal(ask(&f, 1000, 0.99).candidate[0].reasons,
			 REASON_UNSTABLE); /* nor is it for want of residuals */
	f.m->time.predictor.ops = stable_ops;
	drop(&f);
}

TEST(test_bounds_in_log_time_are_wider_outside_the_table)
{
	double own[] = { 256, 1024 };
	struct fixture f;
	struct decision d;
	struct decide_params p;

	make(&f, times, accuracies, 9, 0.1, 0.0);
	f.m->time.conformal.log = true;
	f.m->time.widening = malloc(f.m->features->n * sizeof(double));
	for (size_t i = 0; i < f.m->features->n; i++)
		f.m->time.widening[i] = 3.0;
	p = (struct decide_params){ .model = f.m,
				    .job = &f.job,
				    .slo_s = 1000,
				    .confidence = 0.9,
				    .candidate = own,
				    .n_candidates = 2 };
	assert_int_equal(decide(&p, &d, NULL), 0);
	assert_true(fabs(d.candidate[0].upper_s - 200 * exp(0.1)) < 1e-9);
	assert_true(fabs(d.candidate[1].upper_s - 100 * exp(0.3)) <
		    1e-9); /* the tree stays at its last leaf */
	assert_int_equal(d.candidate[1].reasons & REASON_EXTRAPOLATED, REASON_EXTRAPOLATED);
	drop(&f);
}

TEST(test_every_reason_has_its_own_code)
{
	for (unsigned a = 1; a <= REASON_NOT_TRIED; a <<= 1)
		for (unsigned b = 1; b < a; b <<= 1)
			assert_string_not_equal(decide_reason_text((enum decide_reason)a),
						decide_reason_text((enum decide_reason)b));
}

/* Half of the work on two cores, half at a disk that four processes saturate. */
TEST(test_a_job_is_stretched_by_cpus_and_disk)
{
	const struct fluid_machine m = { .cores = 2, .disk_saturation = 4, .slots = 8 };
	const struct fluid_job j = { .work_s = 1, .cpu_share = 0.5, .disk_share = 0.5, .cpus = 2 };

	assert_true(decide_stretch(&m, &j, 2) == 1.0);
	assert_true(fabs(decide_stretch(&m, &j, 6) - (0.5 * 6.0 / 2.0 + 0.5 * 10.0 / 6.0)) < 1e-12);
}
