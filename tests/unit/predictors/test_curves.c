/* Runs and their curves become one table, and training never tells a run's rows apart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/data/curves.h"
#include "predictors/search/train.h"
#include "tests/support/test.h"
#include "tests/unit/predictors/data_text.h"

static struct csv *parse(const char *name, const char *text)
{
	struct csv *t = NULL;
	struct err err = { 0 };

	if (csv_parse(name, text, strlen(text), &t, &err))
		fail_msg("%s", err.text);
	return t;
}

/* Joins, and checks that it works (or that the error says `why`). */
static struct curves *join(const char *runs, const char *curve, const char *schema, const char *why)
{
	struct csv *a = parse("runs.csv", runs), *b = parse("curves.csv", curve);
	struct schema *s = schema_of(schema);
	struct curves *c = NULL;
	struct err err = { 0 };
	int status = curves_join(a, b, s, &c, &err);

	if (why && (!status || !strstr(err.text, why)))
		fail_msg("expected '%s', got %d '%s'", why, status, err.text);
	if (!why && status)
		fail_msg("%s", err.text);
	if (status)
		assert_null(c);
	schema_free(s);
	csv_free(a);
	csv_free(b);
	return c;
}

static double number(const struct curves *c, size_t row, const char *column)
{
	double v = 0.0;

	assert_int_equal(csv_number(c->csv, row, (size_t)csv_column(c->csv, column), &v, NULL), 0);
	return v;
}

#define RUNS "network,cpus,njobs,batch,epochs,time_s,accuracy,copy,status\n"
#define CURVES "network,cpus,njobs,batch,epochs,copy,status,epoch,elapsed_s,loss,accuracy\n"
#define TWO_RUNS RUNS "a,1,1,64,3,10.5,0.9,1,ok\na,1,1,64,3,8,0.8,2,ok\n"

TEST(test_a_run_becomes_as_many_rows_as_it_has_epochs)
{
	/* not in order, and the second run's clock runs ahead of the one outside */
	struct curves *c = join(TWO_RUNS,
				CURVES "a,1,1,64,3,1,ok,3,10,1,0.9\na,1,1,64,3,2,ok,1,5,2,0.4\n"
				       "a,1,1,64,3,1,ok,1,4,2,0.5\na,1,1,64,3,2,ok,3,10,1,0.8\n"
				       "a,1,1,64,3,1,ok,2,7,2,0.7\n",
				NULL, NULL);

	assert_int_equal(c->csv->n_rows, 5);
	assert_int_equal(c->n_runs, 2);
	assert_int_equal(c->n_added, 3);
	assert_true(number(c, 0, "time_s") == 10.5 && number(c, 0, "epochs") == 3);
	assert_int_equal(c->run[0], 0);
	assert_int_equal(c->run[1], 1);
	for (size_t i = 2; i < 4; i++) { /* start and end cost half a second, however many epochs */
		assert_int_equal(c->run[i], 0);
		assert_true(number(c, i, "epochs") == (double)i - 1.0);
		assert_true(number(c, i, "time_s") == (i == 2 ? 4.5 : 7.5));
		assert_true(number(c, i, "accuracy") == (i == 2 ? 0.5 : 0.7));
		assert_string_equal(csv_cell(c->csv, i, (size_t)csv_column(c->csv, "copy")), "1");
	}
	assert_int_equal(c->run[4], 1);
	assert_true(number(c, 4, "time_s") == 4.0); /* scaled: half of 8 */
	assert_int_equal(c->csv->line[4], 3); /* of the run it is of */
	assert_int_equal(c->n_without + c->n_unfinished + c->n_strangers, 0);
	curves_free(c);
}

TEST(test_what_is_missing_is_counted_and_left_out)
{
	struct curves *c =
		join(RUNS "a,1,1,64,3,10,0.9,1,ok\na,1,1,64,3,10,0.9,2,ok\na,1,1,64,3,10,0.9,3,ok\n"
			  "a,1,1,64,3,,0.9,4,ok\n",
		     CURVES "a,1,1,64,3,2,ok,1,4,,0.5\na,1,1,64,3,2,ok,2,7,,0.6\n" /* no third epoch */
			    "a,1,1,64,3,3,ok,0,1,,0.1\na,1,1,64,3,3,ok,1,,,0.5\n" /* no clock there */
			    "a,1,1,64,3,3,ok,2,7,,\na,1,1,64,3,3,ok,3,9,,0.9\n"
			    "a,1,1,64,3,4,ok,1,2,,0.5\na,1,1,64,3,4,ok,3,9,,0.9\n"
			    "a,1,1,64,3,9,ok,1,2,,0.5\nb,1,1,64,3,1,ok,1,2,,0.5\n",
		     NULL, NULL);

	assert_int_equal(c->n_without, 1);
	assert_int_equal(c->n_unfinished, 1);
	assert_int_equal(c->n_strangers, 2);
	assert_int_equal(c->n_added, 3); /* the third run's epochs 1 and 2, the fourth's 1; no epoch 0 */
	assert_true(isnan(number(c, 4, "time_s")) && number(c, 4, "accuracy") == 0.5);
	assert_true(number(c, 5, "time_s") == 8.0 && isnan(number(c, 5, "accuracy")));
	assert_true(isnan(number(c, 6, "time_s")) &&
		    number(c, 6, "accuracy") == 0.5); /* its run has no time */
	curves_free(c);
}

TEST(test_columns_that_follow_from_the_epochs_are_derived_again)
{
	static const char schema[] =
		"{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\"},{\"name\":\"passes\",\"kind\":"
		"\"number\","
		"\"alias\":[\"n\"]}],\"derived\":[{\"name\":\"work\",\"product\":[\"batch\",\"passes\"]},"
		"{\"name\":\"more\",\"log\":\"work\"},{\"name\":\"size\",\"log\":\"batch\"}],"
		"\"decision\":\"batch\",\"targets\":{\"time\":\"t\",\"accuracy\":\"q\"},"
		"\"roles\":{\"epochs\":\"passes\"}}";
	struct curves *c = join("batch,n,t,q,work,more,size,id\n10,2,5,.8,20,3,7,x\n",
				"id,epoch,q,elapsed_s\nx,1,.5,2\nx,2,.8,4\n", schema, NULL);
	size_t n = c->csv->n_columns;

	assert_int_equal(c->n_added, 1);
	assert_string_equal(c->csv->cell[n + 1], "1");
	assert_string_equal(c->csv->cell[n + 2], "3");
	assert_string_equal(c->csv->cell[n + 3], ".5");
	assert_string_equal(c->csv->cell[n + 4], "");
	assert_string_equal(c->csv->cell[n + 5], "");
	assert_string_equal(c->csv->cell[n + 6], "7");
	curves_free(c);
}

TEST(test_bad_curves_are_refused_with_file_and_line)
{
	join(TWO_RUNS, "network,epoch,accuracy\na,1,.5\n", NULL, "runs.csv: lines 2 and 3 agree");
	join(TWO_RUNS, CURVES "a,1,1,64,3,1,ok,1,4,2,0.5\na,1,1,64,3,1,ok,1,5,2,0.5\n", NULL,
	     "curves.csv:3: epoch 1");
	join(TWO_RUNS, CURVES "a,1,1,64,3,1,ok,one,4,2,0.5\n", NULL, "curves.csv:2: column epoch: 'one'");
	join(TWO_RUNS, CURVES "a,1,1,64,3,1,ok,-1,4,2,0.5\n", NULL, "curves.csv:2: column epoch: '-1'");
	join(TWO_RUNS, CURVES "a,1,1,64,3,1,ok,,4,2,0.5\n", NULL, "curves.csv:2: column epoch");
	join(TWO_RUNS, CURVES "a,1,1,64,3,1,ok,1,soon,2,0.5\na,1,1,64,3,1,ok,3,9,2,0.5\n", NULL,
	     "curves.csv:2: column elapsed_s: 'soon'");
	join(TWO_RUNS, CURVES "a,1,1,64,3,1,ok,1,4,2,good\na,1,1,64,3,1,ok,3,9,2,0.5\n", NULL,
	     "curves.csv:2: column accuracy: 'good'");
	join(TWO_RUNS, "network,copy,accuracy\na,1,.5\n", NULL, "'epoch'");
	join(TWO_RUNS, "copy,epoch,loss\n1,1,.5\n", NULL, "'elapsed_s'");
	join(TWO_RUNS, "where,epoch,accuracy\nx,1,.5\n", NULL, "which run");
	join("network,cpus,njobs,batch,time_s\na,1,1,64,3\n", "network,epoch,elapsed_s\na,1,1\n", NULL,
	     "no column of epochs");
	join("network,cpus,njobs,batch,epochs\na,1,1,64,3\n", "network,epoch,elapsed_s\na,1,1\n", NULL,
	     "time_s");
}

TEST(test_curves_without_rows_change_nothing)
{
	struct curves *c = join(TWO_RUNS, CURVES, NULL, NULL);

	assert_int_equal(c->csv->n_rows, 2);
	assert_int_equal(c->n_without, 2);
	curves_free(c);
	curves_free(NULL);
}

TEST(test_running_out_of_memory_anywhere_leaves_nothing_behind)
{
	struct csv *a = parse("runs.csv", TWO_RUNS);
	struct csv *b = parse("curves.csv", CURVES "a,1,1,64,3,1,ok,1,4,2,0.5\na,1,1,64,3,1,ok,3,9,2,0.5\n");
	struct schema *s = schema_of(NULL);
	unsigned long k = 1;

	for (;; k++) {
		struct curves *c = NULL;
		struct err err = { 0 };
		bool failed;
		int status;

		mem_fail_at(k, k % 2);
		status = curves_join(a, b, s, &c, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		curves_free(c);
		if (!failed)
			break;
		assert_int_equal(status, -ERR_NOMEM);
	}
	assert_true(k > 7);
	schema_free(s);
	csv_free(a);
	csv_free(b);
}

/* ---- the measured profile ---- */

TEST(test_the_measured_profile_has_four_rows_a_run)
{
	struct csv *runs = NULL, *curve = NULL;
	struct schema *s = schema_of(NULL);
	struct curves *c = NULL;
	struct err err = { 0 };

	if (csv_read_file("configs/profiles/two-cores/runs.csv", &runs, &err) ||
	    csv_read_file("configs/profiles/two-cores/curves.csv", &curve, &err) ||
	    curves_join(runs, curve, s, &c, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c->csv->n_rows, 4 * 648);
	assert_int_equal(c->n_without + c->n_unfinished + c->n_strangers, 0);
	for (size_t i = 648; i < c->csv->n_rows; i++) {
		assert_true(number(c, i, "time_s") > 0.0);
		assert_true(number(c, i, "time_s") < number(c, c->run[i], "time_s"));
		if (i > 648 && c->run[i] == c->run[i - 1]) { /* by epochs */
			assert_true(number(c, i, "epochs") == number(c, i - 1, "epochs") + 1.0);
			assert_true(number(c, i, "time_s") > number(c, i - 1, "time_s"));
		}
	}
	curves_free(c);
	schema_free(s);
	csv_free(runs);
	csv_free(curve);
}

/* ---- training ---- */

#define N_RUNS 60
#define N_EPOCHS 4

/* Every run has its own number of cpus and a time and accuracy that nothing predicts, the same at all its
 * epochs: who has seen one row of a run knows the others, and nobody else knows anything. */
static struct curves *unpredictable(uint64_t seed)
{
	struct strbuf runs = { 0 }, curve = { 0 };
	struct rng rng = rng_stream(seed, 0);
	struct curves *c;

	strbuf_puts(&runs, "network,cpus,njobs,batch,epochs,time_s,accuracy\n");
	strbuf_puts(&curve, "cpus,epoch,elapsed_s,accuracy\n");
	for (int i = 0; i < N_RUNS; i++) {
		double t = 1.0 + 9.0 * rng_uniform(&rng), a = rng_uniform(&rng);

		strbuf_printf(&runs, "a,%d,1,64,%d,%.6f,%.6f\n", i + 1, N_EPOCHS, t, a);
		for (int e = 1; e <= N_EPOCHS; e++)
			strbuf_printf(&curve, "%d,%d,%.6f,%.6f\n", i + 1, e, t - 1e-4 * (N_EPOCHS - e), a);
	}
	c = join(strbuf_text(&runs), strbuf_text(&curve), NULL, NULL);
	strbuf_release(&runs);
	strbuf_release(&curve);
	return c;
}

struct trained {
	struct schema *schema;
	struct table *table;
	struct model *model;
	struct train_report report;
};

static void train(struct trained *t, const struct curves *c, const uint32_t *run, const char *model,
		  const char *const *group, size_t n_groups)
{
	struct grid_point point = { .ops = predictor_find(model) };
	struct grid grid = { &point, 1 };
	struct train_params p = { .grid = &grid,
				  .accuracy_grid = &grid,
				  .run = run,
				  .group = group,
				  .n_groups = n_groups,
				  .split = { .kind = SPLIT_KFOLD, .folds = 5, .seed = 3 },
				  .ctx = { .seed = 3, .want_oob = true },
				  .data_name = "runs.csv" };
	struct err err = { 0 };

	*t = (struct trained){ .schema = schema_of(NULL) };
	settings_init(&point.settings, point.ops->spec);
	settings_parse(&point.settings, "trees=20,min_samples_leaf=1", NULL);
	if (table_read(c->csv, t->schema, true, &t->table, &err))
		fail_msg("%s", err.text);
	p.table = t->table;
	if (train_model(&p, &t->model, &t->report, &err))
		fail_msg("%s", err.text);
}

static void drop(struct trained *t)
{
	train_report_release(&t->report);
	model_free(t->model);
	table_free(t->table);
	schema_free(t->schema);
}

TEST(test_rows_of_a_run_are_on_one_side_of_every_split)
{
	static const char *const epochs[] = { "epochs" }; /* a group that would cut every run */
	struct curves *c = unpredictable(5);
	struct trained loose, kept, grouped;

	train(&loose, c, NULL, "forest", NULL, 0);
	train(&kept, c, c->run, "forest", NULL, 0);
	train(&grouped, c, c->run, "curve", epochs, 1);
	assert_true(loose.model->accuracy.score.mean.r2 > 0.5); /* it leaks: the check can tell */
	assert_true(kept.model->accuracy.score.mean.r2 < 0.2);
	assert_true(kept.model->time.score.mean.r2 < 0.2);
	assert_string_equal(kept.model->time.scored_by, "5-fold, grouped by run");
	assert_string_equal(kept.model->time.residuals_by, "10-fold"); /* not out of bag */
	/* all runs end after the same epochs: by their groups they are one, which cannot be split */
	assert_true(isnan(grouped.model->time.score.mean.r2) || grouped.model->time.score.n_folds == 0);
	assert_int_equal(grouped.model->time.conformal.n, 0);
	drop(&loose);
	drop(&kept);
	drop(&grouped);
	curves_free(c);
}

TEST(test_a_run_gives_one_residual)
{
	struct curves *c = unpredictable(6);
	struct trained t;

	train(&t, c, c->run, "forest", NULL, 0);
	assert_int_equal(t.model->time.n_rows, N_RUNS);
	assert_int_equal(t.model->data_rows, N_RUNS * N_EPOCHS);
	assert_int_equal(t.model->time.conformal.n, N_RUNS);
	assert_int_equal(t.model->accuracy.conformal.n, N_RUNS);
	/* as wide as what cannot be predicted, not as what was seen */
	assert_true(t.model->accuracy.conformal.score[N_RUNS - 1] > 0.3);
	drop(&t);
	curves_free(c);
}

/* At one epoch, never the last and not known which, a run is a fifth late and a fifth more accurate. */
TEST(test_bounds_of_time_rest_on_the_worst_row_of_a_run_and_noise_on_any)
{
	struct strbuf runs = { 0 }, curve = { 0 };
	struct rng rng = rng_stream(7, 0);
	struct curves *c;
	struct trained t;

	strbuf_puts(&runs, "network,cpus,njobs,batch,epochs,time_s,accuracy,id\n");
	strbuf_puts(&curve, "id,epoch,elapsed_s,accuracy\n");
	for (int i = 0; i < N_RUNS; i++) {
		int late = 1 + (int)rng_below(&rng, N_EPOCHS - 1);

		strbuf_printf(&runs, "a,1,1,64,%d,%d,0.5,%d\n", N_EPOCHS, N_EPOCHS, i);
		for (int e = 1; e <= N_EPOCHS; e++)
			strbuf_printf(&curve, "%d,%d,%g,%g\n", i, e, e == late ? 1.2 * e : e,
				      e == late ? 0.6 : 0.5);
	}
	c = join(strbuf_text(&runs), strbuf_text(&curve), NULL, NULL);
	train(&t, c, c->run, "forest", NULL, 0);
	assert_true(t.model->time.conformal.score[0] > 0.0);
	assert_true(t.model->accuracy.conformal.score[N_RUNS / 2] < 0.0);
	drop(&t);
	curves_free(c);
	strbuf_release(&runs);
	strbuf_release(&curve);
}
