/* predictors/search/train: from a table to a model with bounds and importances. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/search/train.h"
#include "predictors/search/train_internal.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

struct fixture {
	struct strbuf text;
	struct csv *csv;
	struct schema *schema;
	struct table *table;
	struct grid *grid;
	uint32_t *run; /* of each row; NULL: its own */
};

static void make(struct fixture *f, const char *text, const char *grid)
{
	struct json *v = NULL;
	struct err err = { 0 };

	memset(f, 0, sizeof *f);
	if (schema_default(&f->schema, &err) || csv_parse("t.csv", text, strlen(text), &f->csv, &err) ||
	    table_read(f->csv, f->schema, true, &f->table, &err) ||
	    json_parse("g", grid, strlen(grid), &v, &err) || grid_from_json("g", v, &f->grid, &err))
		fail_msg("%s", err.text);
	json_free(v);
}

static void drop(struct fixture *f)
{
	grid_free(f->grid);
	table_free(f->table);
	schema_free(f->schema);
	csv_free(f->csv);
	strbuf_release(&f->text);
}

static void factorial_text(struct strbuf *b, size_t replications, bool accuracy)
{
	struct dataset *d = world_factorial(replications, 0.05, 2);

	strbuf_puts(b, accuracy ? "network,cpus,njobs,batch,time_s,accuracy\n"
				: "network,cpus,njobs,batch,time_s\n");
	for (size_t i = 0; i < d->n_rows; i++) {
		const double *x = d->x + 5 * i;
		strbuf_printf(b, "%s,%g,%g,%g,%.4f", x[0] ? "simplenet" : "lenet5", x[1], x[2], x[3],
			      d->y[i]);
		if (accuracy)
			strbuf_printf(b, ",%.4f", 0.97 - 1e-4 * x[3]);
		strbuf_puts(b, "\n");
	}
	dataset_free(d);
}

static struct model *train(struct fixture *f, const char *const *group, size_t n_groups,
			   struct train_report *report)
{
	struct train_params p = { .table = f->table,
				  .run = f->run,
				  .grid = f->grid,
				  .accuracy_grid = f->grid,
				  .group = group,
				  .n_groups = n_groups,
				  .split = { .kind = SPLIT_KFOLD, .folds = 5, .seed = 1 },
				  .ctx = { .seed = 1 },
				  .data_name = "t.csv" };
	struct model *m = NULL;
	struct err err = { 0 };

	if (train_model(&p, &m, report, &err))
		fail_msg("%s", err.text);
	return m;
}

static bool noticed(const struct train_report *r, const char *what)
{
	for (size_t i = 0; i < r->n_notices; i++)
		if (strstr(r->notice[i], what))
			return true;
	return false;
}

static const char *const setting[] = { "network", "cpus", "njobs", "batch" };
#define GRID "{\"forest\":{\"trees\":[20,60],\"depth\":[2,6]},\"linear\":{}}"

TEST(test_the_better_model_is_chosen_and_fitted_to_all_rows)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_report r;
	struct model *m;

	factorial_text(&text, 3, true);
	make(&f, strbuf_text(&text), GRID);
	m = train(&f, setting, 4, &r);
	assert_int_equal(m->time.n_rows, 288);
	assert_string_equal(m->time.predictor.ops->name, "forest");
	for (size_t i = 0; i < f.grid->n; i++)
		assert_true(r.time_result[r.time_best].score.mean.log_mse <=
			    r.time_result[i].score.mean.log_mse);
	assert_true(m->time.score.mean.mse == r.time_result[r.time_best].score.mean.mse);
	assert_int_equal(m->n_candidates, 4);
	assert_true(m->candidate[0] == 64 && m->candidate[3] == 512);
	assert_int_equal(m->time.conformal.n, 288);
	assert_string_equal(m->time.residuals_by, "10-fold");
	assert_non_null(strstr(m->time.scored_by, "grouped by network,cpus"));
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

TEST(test_the_choice_and_its_reason_are_told)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_report r;
	struct model *m;

	factorial_text(&text, 3, true);
	make(&f, strbuf_text(&text), GRID);
	m = train(&f, setting, 4, &r);
	assert_true(noticed(&r, "model of time: forest (trees="));
	assert_true(noticed(&r, "has the least error on rows held out (5-fold, grouped by network,cpus"));
	assert_true(noticed(&r, " %; linear has "));
	assert_true(noticed(&r, "model of accuracy: linear"));
	assert_false(noticed(&r, "explains little"));
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

/* signal: what the cpus explain, beside noise. */
static void assert_warned(double signal, const char *what)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct rng rng = rng_stream(5, 0);
	struct train_report r;
	struct model *m;

	strbuf_puts(&text, "network,cpus,njobs,batch,time_s\n");
	for (int i = 0; i < 80; i++) {
		unsigned cpus = 1 + rng_below(&rng, 8);

		strbuf_printf(&text, "a,%u,1,%u,%g\n", cpus, 32u << rng_below(&rng, 5),
			      1.0 + signal * cpus + 9.0 * rng_uniform(&rng));
	}
	make(&f, strbuf_text(&text), "{\"forest\":{\"trees\":[60],\"min_samples_leaf\":[5]}}");
	m = train(&f, NULL, 0, &r);
	if (!noticed(&r, what))
		fail_msg("signal %g: R2 %g", signal, m->time.score.mean.r2);
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

TEST(test_a_model_that_explains_little_is_told)
{
	assert_warned(0.0, "the model of time is worse than the mean of the table (R2 -");
	assert_warned(0.6, "the model of time explains little of what was measured (R2 0.");
}

/* Eight runs of a law, 0.5 s + epochs x (8 s / batch + 0.05 s) x (1 or 1.7), in folds of one and two rows:
 * what two rows vary by says nothing of the whole table. */
TEST(test_a_good_model_of_a_small_table_is_not_warned_of)
{
	static const char text[] = "network,cpus,njobs,batch,epochs,time_s\n"
				   "a,1,1,64,1,0.6746\n"
				   "a,1,2,128,4,0.9373\n"
				   "a,1,2,16,1,1.1024\n"
				   "a,1,2,128,4,0.9276\n"
				   "b,1,2,16,2,2.4971\n"
				   "b,1,1,64,4,1.8036\n"
				   "a,1,2,64,4,1.2805\n"
				   "b,1,1,128,2,0.8984\n";
	struct fixture f;
	struct train_report r;
	struct model *m;

	make(&f, text, "{\"gp\":{}}");
	m = train(&f, NULL, 0, &r);
	assert_true(m->time.score.mean.r2 < 0.3); /* of the folds */
	assert_false(noticed(&r, "warning"));
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

TEST(test_a_choice_alone_is_that_of_the_training)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_report r;
	struct model *m;
	struct grid_point time = { 0 }, accuracy = { 0 };

	factorial_text(&text, 2, true);
	make(&f, strbuf_text(&text), GRID);
	m = train(&f, NULL, 0, &r);
	assert_int_equal(
		train_choose(&(struct train_params){ .table = f.table,
						     .grid = f.grid,
						     .accuracy_grid = f.grid,
						     .split = { .kind = SPLIT_KFOLD, .folds = 5, .seed = 1 },
						     .ctx = { .seed = 1 },
						     .data_name = "t.csv" },
			     &time, &accuracy, NULL),
		0);
	assert_ptr_equal(time.ops, m->time.predictor.ops);
	assert_memory_equal(&time.settings.value, &m->time.predictor.settings.value,
			    sizeof time.settings.value);
	assert_ptr_equal(accuracy.ops, m->accuracy.predictor.ops);
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

TEST(test_rows_that_repeat_a_setting_stay_together_without_being_told)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_report alone, honest;
	struct model *a, *b;

	factorial_text(&text, 3, true);
	make(&f, strbuf_text(&text), GRID);
	a = train(&f, NULL, 0, &alone);
	b = train(&f, setting, 4, &honest);
	assert_false(alone.leaks);
	assert_false(honest.leaks);
	assert_non_null(strstr(a->time.scored_by, "grouped by setting"));
	assert_true(a->time.score.mean.mse > 0.5 * b->time.score.mean.mse);
	assert_string_equal(a->time.residuals_by, b->time.residuals_by);
	model_free(a);
	model_free(b);
	train_report_release(&alone);
	train_report_release(&honest);
	drop(&f);
	strbuf_release(&text);
}

TEST(test_permutation_finds_the_batch_to_matter_most)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_report r;
	struct model *m;
	size_t batch = 0;

	factorial_text(&text, 2, true);
	make(&f, strbuf_text(&text), GRID);
	m = train(&f, setting, 4, &r);
	while (strcmp(m->features->feature[batch].name, "batch"))
		batch++;
	for (size_t i = 0; i < m->features->n; i++) {
		assert_true(m->time.permutation[i] <= m->time.permutation[batch]);
		assert_true(m->time.importance[i] <= m->time.importance[batch]);
	}
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

TEST(test_table_without_accuracy_trains_time_alone)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_report r;
	struct model *m;

	factorial_text(&text, 1, false);
	make(&f, strbuf_text(&text), GRID);
	m = train(&f, NULL, 0, &r);
	assert_null(m->accuracy.predictor.ops);
	assert_null(r.accuracy_grid);
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

TEST(test_one_row_trains_without_scores_and_says_so)
{
	struct fixture f;
	struct train_report r;
	struct model *m;
	double x[8], out;

	make(&f, "network,cpus,njobs,batch,time_s\nlenet5,1,1,64,123.5\n", GRID);
	m = train(&f, NULL, 0, &r);
	assert_int_equal(m->time.conformal.n, 0);
	assert_true(noticed(&r, "no scores"));
	for (int i = 0; i < 8; i++)
		x[i] = 1;
	predictor_predict(&m->time.predictor, x, 1, &out);
	assert_true(out == 123.5);
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

TEST(test_few_rows_make_fewer_folds_and_no_promise)
{
	struct fixture f;
	struct train_report r;
	struct model *m;
	double q;

	make(&f, "network,cpus,njobs,batch,time_s\na,1,1,64,10\na,1,1,128,6\n", GRID);
	m = train(&f, NULL, 0, &r);
	assert_non_null(strstr(m->time.scored_by, "2-fold"));
	assert_int_equal(conformal_quantile(&m->time.conformal, 0.9, &q, NULL), -ERR_NODATA);
	assert_true(noticed(&r, "cannot carry"));
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

/* From the first run on. What was never run is promised far less than a run again. */
TEST(test_a_law_of_one_to_three_runs_has_wide_bounds)
{
	static const char *const rows[] = { "a,1,1,64,10\n", "a,1,1,64,10\na,1,1,64,10.2\na,1,1,64,9.9\n",
					    "a,1,1,64,10\na,1,1,128,7\n" };
	struct strbuf text = { 0 };
	struct fixture f;
	struct train_report r;
	struct model *m;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double again, other;

		strbuf_reset(&text);
		strbuf_puts(&text, "network,cpus,njobs,batch,time_s\n");
		strbuf_puts(&text, rows[i]);
		make(&f, strbuf_text(&text), "{\"hybrid\":{\"trees\":[10]}}");
		m = train(&f, NULL, 0, &r);
		again = model_bound_factor(m, &m->time, KNOWS_SETTING, 0.9);
		other = model_bound_factor(m, &m->time, KNOWS_CONTEXT, 0.9);
		assert_true(again > 1.2 && again < 2.0);
		assert_true(other >= again);
		assert_non_null(strstr(m->time.residuals_by, "assumed"));
		assert_true(isnan(model_bound_factor(m, &m->time, KNOWS_SETTING, 0.99)));
		model_free(m);
		train_report_release(&r);
		drop(&f);
	}
	strbuf_release(&text);
}

/* Three batches, one epoch each: no run says what more epochs take, so a model without a queue takes each for
 * as long as the first. */
TEST(test_epochs_that_never_varied_are_taken_as_linear)
{
	static const char *const grid[] = {
		"{\"hybrid\":{\"trees\":[10],\"queue\":[\"none\"],\"effects\":[\"yes\"]}}",
		"{\"hybrid\":{\"trees\":[10],\"queue\":[\"none\"]}}"
	};
	struct fixture f;
	struct train_report r;
	struct model *m;

	for (size_t i = 0; i < 2; i++) {
		struct job_values v;
		double x[FEATURES_MAX], one, ten, thousand;

		make(&f,
		     "network,cpus,njobs,batch,epochs,time_s\na,1,1,64,2,10\na,1,1,128,2,7\na,1,1,16,2,20\n",
		     grid[i]);
		m = train(&f, NULL, 0, &r);
		assert_int_equal(job_values_init(&v, f.schema, NULL), 0);
		assert_int_equal(
			job_values_parse(&v, f.schema, "network=a,cpus=1,njobs=1,batch=64,epochs=2", NULL),
			0);
		features_encode_job(m->features, &v, x);
		predictor_predict(&m->time.predictor, x, 1, &one);
		job_values_parse(&v, f.schema, "network=a,cpus=1,njobs=1,batch=64,epochs=20", NULL);
		features_encode_job(m->features, &v, x);
		predictor_predict(&m->time.predictor, x, 1, &ten);
		job_values_parse(&v, f.schema, "network=a,cpus=1,njobs=1,batch=64,epochs=2000", NULL);
		features_encode_job(m->features, &v, x);
		predictor_predict(&m->time.predictor, x, 1, &thousand);
		assert_true(fabs(ten / one - 10.0) < 1e-9 && fabs(thousand / one - 1000.0) < 1e-6);
		job_values_release(&v);
		model_free(m);
		train_report_release(&r);
		drop(&f);
	}
}

/* A start-up of 3 s, epochs of 0.1 s: a line through the logarithms of 1, 2 and 14 epochs is no law. */
TEST(test_epochs_far_beyond_a_table_are_linear_without_a_queue)
{
	struct fixture f;
	struct train_report r;
	struct model *m;
	struct job_values v;
	double x[FEATURES_MAX], time_s;

	make(&f,
	     "network,cpus,njobs,batch,epochs,time_s\na,1,1,64,1,3.1\na,1,1,64,2,3.2\na,1,1,64,14,4.4\n"
	     "a,1,1,128,1,3.05\na,1,1,128,2,3.1\na,1,1,128,14,3.7\na,1,1,32,1,3.2\na,1,1,32,2,3.4\n"
	     "a,1,1,32,14,5.8\n",
	     "{\"hybrid\":{\"trees\":[100],\"queue\":[\"none\"],\"effects\":[\"yes\"]}}");
	m = train(&f, NULL, 0, &r);
	assert_int_equal(job_values_init(&v, f.schema, NULL), 0);
	job_values_parse(&v, f.schema, "network=a,cpus=1,njobs=1,batch=64,epochs=400", NULL);
	features_encode_job(m->features, &v, x);
	predictor_predict(&m->time.predictor, x, 1, &time_s);
	assert_true(fabs(time_s / 43.0 - 1.0) < 0.35);
	job_values_release(&v);
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

/* In logarithms, how much longer 4 times the epochs take, from 56 on and from 224 on. */
static void steps_beyond(const char *rows, double *first, double *second)
{
	struct fixture f;
	struct train_report r;
	struct model *m;
	struct job_values v;
	double x[FEATURES_MAX], time_s[3];

	make(&f, rows, "{\"hybrid\":{\"trees\":[100],\"queue\":[\"none\"],\"effects\":[\"yes\"]}}");
	m = train(&f, NULL, 0, &r);
	assert_int_equal(job_values_init(&v, f.schema, NULL), 0);
	for (int k = 0; k < 3; k++) {
		char job[64];

		snprintf(job, sizeof job, "network=a,cpus=1,njobs=1,batch=64,epochs=%d", 56 << 2 * k);
		job_values_parse(&v, f.schema, job, NULL);
		features_encode_job(m->features, &v, x);
		predictor_predict(&m->time.predictor, x, 1, &time_s[k]);
	}
	*first = log(time_s[1] / time_s[0]);
	*second = log(time_s[2] / time_s[1]);
	job_values_release(&v);
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

/* Epochs that go with the batch say nothing of runs that differ in epochs alone: effects go on as lines in
 * logarithms. Epochs that vary alone make a straight line with a start-up, so each step is larger. */
TEST(test_only_epochs_that_vary_alone_tell_a_line)
{
	double first, second;

	steps_beyond(
		"network,cpus,njobs,batch,epochs,time_s\na,1,1,32,14,5.8\na,1,1,64,5,3.6\na,1,1,128,2,3.1\n"
		"a,1,1,256,1,3.05\na,1,1,32,14,5.9\na,1,1,64,5,3.5\na,1,1,128,2,3.2\na,1,1,256,1,3.0\n",
		&first, &second);
	assert_true(fabs(first - second) < 0.02);
	/* one row that happens to differ in epochs alone makes no design of it */
	steps_beyond(
		"network,cpus,njobs,batch,epochs,time_s\na,1,1,32,14,5.8\na,1,1,64,5,3.6\na,1,1,128,2,3.1\n"
		"a,1,1,256,1,3.05\na,1,1,32,14,5.9\na,1,1,64,14,4.4\na,1,1,128,2,3.2\na,1,1,256,1,3.0\n",
		&first, &second);
	assert_true(fabs(first - second) < 0.02);
	steps_beyond(
		"network,cpus,njobs,batch,epochs,time_s\na,1,1,64,1,3.1\na,1,1,64,2,3.2\na,1,1,64,14,4.4\n"
		"a,1,1,128,1,3.05\na,1,1,128,2,3.1\na,1,1,128,14,3.7\na,1,1,32,1,3.2\na,1,1,32,2,3.4\n"
		"a,1,1,32,14,5.8\n",
		&first, &second);
	assert_true(second > first + 0.1);
}

/* Times of 5 s that hardly differ between 1 and 2 epochs: 14 epochs may take 3 times as long or as before. */
TEST(test_epochs_beyond_those_of_a_long_start_are_wide)
{
	struct fixture f;
	struct train_report r;
	struct job_values v;
	struct model *m;
	double x[FEATURES_MAX], q, factor[2];
	static const char *const job[] = { "network=a,cpus=1,njobs=1,batch=64,epochs=2",
					   "network=a,cpus=1,njobs=1,batch=64,epochs=14" };

	make(&f,
	     "network,cpus,njobs,batch,epochs,time_s\na,1,1,64,1,5.0\na,1,1,64,2,5.2\na,1,1,64,1,5.5\n"
	     "a,1,1,64,2,5.1\na,1,1,128,1,5.1\na,1,1,128,2,5.5\na,1,1,32,1,5.3\na,1,1,32,2,5.7\n",
	     "{\"hybrid\":{\"trees\":[10]}}");
	m = train(&f, NULL, 0, &r);
	assert_int_equal(conformal_quantile(&m->time.conformal, 0.9, &q, NULL), 0);
	assert_int_equal(job_values_init(&v, f.schema, NULL), 0);
	for (int i = 0; i < 2; i++) {
		double time_s;

		assert_int_equal(job_values_parse(&v, f.schema, job[i], NULL), 0);
		features_encode_job(m->features, &v, x);
		predictor_predict(&m->time.predictor, x, 1, &time_s);
		factor[i] = model_upper(m, &m->time, x, q, time_s) / time_s;
	}
	assert_true(factor[0] < 1.3 && factor[1] > 1.5 && factor[1] < 14 * 1.3);
	job_values_release(&v);
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

/* Two epochs and one: work is linear, so 14 epochs take hardly more than seven times the bound of 2. */
TEST(test_epochs_of_a_single_run_are_bounded_by_their_work)
{
	struct fixture f;
	struct train_report r;
	struct job_values v;
	struct model *m;
	double x[FEATURES_MAX], q, bound_s[2];
	static const char *const job[] = { "network=a,cpus=1,njobs=1,batch=64,epochs=2",
					   "network=a,cpus=1,njobs=1,batch=64,epochs=14" };

	make(&f, "network,cpus,njobs,batch,epochs,time_s\na,1,1,64,1,13.3\na,1,1,64,2,26.4\n",
	     "{\"hybrid\":{\"trees\":[10]}}");
	m = train(&f, NULL, 0, &r);
	assert_int_equal(conformal_quantile(&m->time.conformal, 0.9, &q, NULL), 0);
	assert_int_equal(job_values_init(&v, f.schema, NULL), 0);
	for (int i = 0; i < 2; i++) {
		double time_s;

		assert_int_equal(job_values_parse(&v, f.schema, job[i], NULL), 0);
		features_encode_job(m->features, &v, x);
		predictor_predict(&m->time.predictor, x, 1, &time_s);
		bound_s[i] = model_upper(m, &m->time, x, q, time_s);
	}
	assert_true(bound_s[0] > 1.3 * 26.4 && bound_s[1] > 1.3 * 184.0);
	assert_true(bound_s[1] < 1.25 * 7.0 * bound_s[0]);
	job_values_release(&v);
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

/* Three runs of two batches: with one held out nothing says what a batch does, and its error says nothing. */
TEST(test_three_runs_of_two_batches_carry_a_bound_of_some_use)
{
	struct fixture f;
	struct train_report r;
	struct job_values v;
	struct model *m;
	double x[FEATURES_MAX], q, time_s;

	make(&f,
	     "network,cpus,njobs,batch,epochs,replication,time_s\na,1,1,64,2,1,41.2\na,1,1,64,1,1,22.7\na,1,"
	     "1,256,1,1,14.6\n"
	     "a,1,1,64,2,2,41.9\na,1,1,64,1,2,23.3\n",
	     "{\"hybrid\":{\"trees\":[10]}}");
	f.run = (uint32_t[]){ 0, 0, 2, 3, 3 };
	m = train(&f, NULL, 0, &r);
	assert_int_equal(conformal_quantile(&m->time.conformal, 0.9, &q, NULL), 0);
	assert_int_equal(job_values_init(&v, f.schema, NULL), 0);
	job_values_parse(&v, f.schema, "network=a,cpus=1,njobs=1,batch=64,epochs=14", NULL);
	features_encode_job(m->features, &v, x);
	predictor_predict(&m->time.predictor, x, 1, &time_s);
	assert_true(model_upper(m, &m->time, x, q, time_s) < 3.0 * 263.0);
	job_values_release(&v);
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

TEST(test_rows_without_accuracy_are_left_out_of_that_model_only)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_report r;
	struct model *m;

	factorial_text(&text, 1, true);
	strbuf_puts(&text, "lenet5,1,1,64,500,\nlenet5,2,1,64,480,NA\n");
	make(&f, strbuf_text(&text), GRID);
	m = train(&f, NULL, 0, &r);
	assert_int_equal(m->time.n_rows, 98);
	assert_int_equal(m->accuracy.n_rows, 96);
	assert_true(noticed(&r, "2 of 98 rows have no accuracy"));
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

TEST(test_unknown_group_column_is_refused)
{
	static const char *const bad[] = { "nettwork" };
	struct fixture f;
	struct train_params p = { .group = bad,
				  .n_groups = 1,
				  .data_name = "t.csv",
				  .split = { .kind = SPLIT_KFOLD, .folds = 5 } };
	struct train_report r;
	struct model *m = NULL;
	struct err err = { 0 };

	make(&f, "network,cpus,njobs,batch,time_s\na,1,1,64,10\na,1,1,128,6\n", GRID);
	p.table = f.table;
	p.grid = p.accuracy_grid = f.grid;
	assert_int_equal(train_model(&p, &m, &r, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "nettwork"));
	drop(&f);
}

TEST(test_rows_without_a_value_are_a_group)
{
	static const char *const by[] = { "epochs" };
	const uint32_t same_as[] = { 0, 1, 2, 1, 0, 2, 1 };
	struct train_params p = { .group = by, .n_groups = 1 };
	uint32_t *label = NULL;
	struct fixture f;

	make(&f,
	     "network,cpus,njobs,batch,epochs,time_s\n"
	     "a,1,1,64,3,10\na,1,1,64,,10\na,1,1,64,5,10\na,1,1,64,,10\n"
	     "a,1,1,64,3,10\na,1,1,64,5,10\na,1,1,64,,10\n",
	     GRID);
	p.table = f.table;
	assert_int_equal(train_label_groups(&p, &label, NULL), 0);
	for (size_t i = 0; i < 7; i++)
		for (size_t k = 0; k < 7; k++)
			assert_int_equal(label[i] == label[k], same_as[i] == same_as[k]);
	free(label);
	drop(&f);
}

TEST(test_aliased_terms_of_a_linear_model_are_named)
{
	struct fixture f;
	struct train_report r;
	struct model *m;

	make(&f,
	     "network,cpus,njobs,batch,epochs,time_s\na,1,1,64,10,10\na,2,1,128,10,6\na,4,1,256,10,4\na,1,1,"
	     "512,10,3\n",
	     "{\"linear\":{\"degree\":[1]}}");
	m = train(&f, NULL, 0, &r);
	assert_true(noticed(&r, "aliased"));
	assert_true(noticed(&r, "njobs, epochs"));
	assert_false(noticed(&r, "batch"));
	model_free(m);
	train_report_release(&r);
	drop(&f);
}

TEST(test_a_search_may_look_at_part_of_a_large_table)
{
	struct fixture f;
	struct strbuf text = { 0 };
	struct train_params p = { .search_rows = 60,
				  .data_name = "t.csv",
				  .split = { .kind = SPLIT_KFOLD, .folds = 5 } };
	struct train_report r;
	struct model *m = NULL;

	factorial_text(&text, 3, true);
	make(&f, strbuf_text(&text), GRID);
	p.table = f.table;
	p.grid = p.accuracy_grid = f.grid;
	assert_int_equal(train_model(&p, &m, &r, NULL), 0);
	assert_true(noticed(&r, "60 of 288"));
	assert_int_equal(m->time.n_rows, 288);
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
}

/* Runs of a job that waits for 3 ms of every 3.2 ms, alone on two cores, with or without the cores that they
 * kept busy; what the model then says of eight processes, over two. */
static double stretch_by_neighbours(bool busy)
{
	static const char alone_and_among[] = "network,cpus,njobs,batch,epochs,samples,time_s\n"
					      "a,2,1,64,4,6400,1\na,2,4,64,4,6400,1\n";
	struct fixture f;
	struct table *ask;
	struct csv *csv;
	struct strbuf text = { 0 };
	struct train_report r;
	struct model *m;
	double *x, out[2];

	strbuf_printf(&text, "network,cpus,njobs,batch,epochs,samples,time_s%s\n",
		      busy ? ",job_cpu_mean" : "");
	for (int i = 0; i < 72; i++) {
		int cpus = 1 + i % 2, batch = 32 << (i / 2 % 3), epochs = 1 << (i / 6 % 4);
		double iterations = 6400.0 * epochs / batch, compute_s = 2e-4 * iterations;
		double time_s = compute_s + 3e-3 * iterations;

		strbuf_printf(&text, "a,%d,1,%d,%d,6400,%.6f", cpus, batch, epochs,
			      time_s * (1.0 + 0.02 * (i * 7 % 5 - 2)));
		if (busy)
			strbuf_printf(&text, ",%.3f", i == 5 ? 0.0 : 100.0 * cpus * compute_s / time_s);
		strbuf_puts(&text, "\n");
	}
	make(&f, strbuf_text(&text), "{\"queueing\":{\"cores\":[2]}}");
	m = train(&f, NULL, 0, &r);
	assert_int_equal(csv_parse("ask.csv", alone_and_among, strlen(alone_and_among), &csv, NULL), 0);
	assert_int_equal(table_read(csv, m->schema, true, &ask, NULL), 0);
	assert_int_equal(features_encode_table(m->features, ask, &x, NULL), 0);
	predictor_predict(&m->time.predictor, x, 2, out);
	free(x);
	table_free(ask);
	csv_free(csv);
	model_free(m);
	train_report_release(&r);
	drop(&f);
	strbuf_release(&text);
	return out[1] / out[0];
}

TEST(test_cores_that_were_busy_tell_what_neighbours_do)
{
	double known = stretch_by_neighbours(true), blind = stretch_by_neighbours(false);

	print_message("eight processes over two: %.2f, by times alone %.2f\n", known, blind);
	assert_true(known < 1.4); /* 1.19: four times as long for 6 % of it */
	assert_true(blind > 2.0);
}

TEST(test_running_out_of_memory_anywhere_leaves_nothing_behind)
{
	struct fixture f;
	unsigned long k = 1;

	make(&f, "network,cpus,njobs,batch,time_s,accuracy\na,1,1,64,10,.9\na,1,1,128,6,.8\nb,1,1,256,4,.7\n",
	     "{\"forest\":{\"trees\":[2]}}");
	for (;; k++) {
		struct train_params p = { .table = f.table,
					  .grid = f.grid,
					  .accuracy_grid = f.grid,
					  .group = setting,
					  .n_groups = 4,
					  .data_name = "t.csv",
					  .split = { .kind = SPLIT_KFOLD, .folds = 5 } };
		struct train_report r;
		struct model *m = NULL;
		bool failed;
		int status;

		mem_fail_at(k, k % 2);
		status = train_model(&p, &m, &r, NULL);
		failed = mem_failed(); /* before it is disarmed, which forgets it */
		mem_fail_at(0, false);
		if (status)
			assert_null(m);
		model_free(m);
		train_report_release(&r);
		if (!status && !failed)
			break;
	}
	assert_true(k > 100);
	drop(&f);
}

/* ---- other work on the machine ---- */

/* Two cores; the time is that of the processes in all, those of others included. */
static void beside_others(struct strbuf *b, bool column, bool busy)
{
	struct rng r = rng_stream(7, 0);

	strbuf_printf(b, "network,cpus,njobs,batch%s,time_s\n", column ? ",other_load" : "");
	for (int i = 0; i < 120; i++) {
		double cpus = 1 + i % 2, njobs = 1 + i / 2 % 3, batch = 32 << i / 6 % 4;
		double other = busy ? (double)rng_below(&r, 5) : 0.0, p = cpus * njobs + other;
		double noise = 1.0 + 0.02 * (rng_uniform(&r) - 0.5);

		strbuf_printf(b, "n,%g,%g,%g", cpus, njobs, batch);
		if (column)
			strbuf_printf(b, ",%g", other);
		strbuf_printf(b, ",%.9g\n",
			      noise * 60000.0 / batch * (0.002 + 1e-4 * batch / cpus) * fmax(2.0, p) /
				      fmax(2.0, cpus));
	}
}

static struct model *train_beside(bool column, bool busy, struct train_report *report)
{
	struct strbuf text = { 0 };
	struct fixture f;
	struct model *m;

	beside_others(&text, column, busy);
	make(&f, strbuf_text(&text), "{\"hybrid\":{\"trees\":[20]}}");
	m = train(&f, NULL, 0, report);
	drop(&f);
	strbuf_release(&text);
	return m;
}

static double time_of(const struct model *m, const char *job)
{
	double x[16], y;
	struct job_values v;

	assert_int_equal(job_values_init(&v, m->schema, NULL), 0);
	assert_int_equal(job_values_parse(&v, m->schema, job, NULL), 0);
	features_encode_job(m->features, &v, x);
	predictor_predict(&m->time.predictor, x, 1, &y);
	job_values_release(&v);
	return y;
}

TEST(test_a_model_learns_with_the_work_of_others)
{
	struct train_report with_report, without_report;
	struct model *with = train_beside(true, true, &with_report);
	struct model *without = train_beside(false, true, &without_report), *again = NULL;
	double quiet = time_of(with, "network=n,cpus=1,njobs=1,batch=64"), share;
	struct writer w = { 0 };
	struct err err = { 0 };

	assert_true(with->time.score.mean.mape < 0.05);
	assert_true(without->time.score.mean.mape > 0.2);
	/* one process and three others on two cores */
	share = time_of(with, "network=n,cpus=1,njobs=1,batch=64,other_load=3") / quiet;
	assert_true(fabs(share - 2.0) < 0.1);
	/* jobs of ours and others count alike */
	assert_true(fabs(time_of(with, "network=n,cpus=1,njobs=3,batch=64,other_load=1") / quiet - 2.0) <
		    0.1);
	assert_int_equal(model_encode(with, &w, &err), 0);
	assert_int_equal(model_decode("again", w.out.text, w.out.len, &again, &err), 0);
	assert_int_equal(again->features->other, with->features->other);
	assert_true(time_of(again, "network=n,cpus=2,njobs=2,batch=64,other_load=3.5") ==
		    time_of(with, "network=n,cpus=2,njobs=2,batch=64,other_load=3.5"));
	strbuf_release(&w.out);
	model_free(with);
	model_free(without);
	model_free(again);
	train_report_release(&with_report);
	train_report_release(&without_report);
}

TEST(test_a_quiet_machine_makes_the_model_of_a_table_without_the_column)
{
	struct train_report report[2];
	struct model *m[2];
	struct writer w[2] = { { { 0 } } };

	for (int i = 0; i < 2; i++) {
		m[i] = train_beside(i, false, &report[i]);
		m[i]->data_fingerprint = 0; /* the tables differ */
		assert_int_equal(schema_role(m[i]->schema, ROLE_OTHER), -1);
		assert_int_equal(m[i]->schema->n_ignores, 10 + i);
		if (i) {
			free(m[i]->schema->ignore[--m[i]->schema->n_ignores]);
			m[i]->schema->ignore[m[i]->schema->n_ignores] = NULL;
		}
		assert_int_equal(model_encode(m[i], &w[i], NULL), 0);
	}
	assert_int_equal(w[0].out.len, w[1].out.len);
	assert_memory_equal(w[0].out.text, w[1].out.text, w[0].out.len);
	for (int i = 0; i < 2; i++) {
		strbuf_release(&w[i].out);
		model_free(m[i]);
		train_report_release(&report[i]);
	}
}

/* ---- copies of one run ---- */

/* One run of each setting, `copies` rows each, which agree to the last digit. */
static struct model *train_copies(size_t copies, const char *grid, struct train_report *report)
{
	struct dataset *d = world_factorial(1, 0.05, 2);
	struct strbuf text = { 0 };
	struct fixture f;
	struct model *m;

	strbuf_puts(&text, "network,cpus,njobs,batch,copy,time_s,accuracy\n");
	for (size_t i = 0; i < d->n_rows; i++)
		for (size_t k = 1; k <= copies; k++) {
			const double *x = d->x + 5 * i;

			strbuf_printf(&text, "%s,%g,%g,%g,%zu,%.4f,%.4f\n", x[0] ? "simplenet" : "lenet5",
				      x[1], x[2], x[3], k, d->y[i], 0.97 - 1e-4 * x[3]);
		}
	make(&f, strbuf_text(&text), grid);
	m = train(&f, NULL, 0, report);
	drop(&f);
	strbuf_release(&text);
	dataset_free(d);
	return m;
}

TEST(test_copies_of_a_run_are_one_residual)
{
	static const char *const grid[] = { "{\"hybrid\":{\"trees\":[20]}}", "{\"boost\":{\"trees\":[20]}}" };

	for (size_t i = 0; i < 2; i++) {
		struct train_report one, three;
		struct model *a = train_copies(1, grid[i], &one), *b = train_copies(3, grid[i], &three);

		assert_int_equal(b->data_rows, 3 * a->data_rows);
		assert_true(a->time.conformal.n > 50);
		assert_int_equal(b->time.conformal.n, a->time.conformal.n);
		assert_int_equal(b->time.conformal.groups, a->time.conformal.groups);
		assert_int_equal(b->accuracy.conformal.groups, a->data_rows);
		model_free(a);
		model_free(b);
		train_report_release(&one);
		train_report_release(&three);
	}
}
