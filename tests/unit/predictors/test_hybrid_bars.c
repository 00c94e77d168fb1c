/* The hybrid on the published measurements of the Courier paper: how far off it is on rows held out at random
 * and by level, beside the forest alone and the queueing model alone, and whether its bounds hold. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/rng.h"
#include "predictors/trees/forest.h"
#include "predictors/models/hybrid.h"
#include "predictors/models/queueing_models.h"
#include "predictors/search/train.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define SPLITS 20
#define ROWS_MAX 96
#define TOO_FEW 19 /* held-out rows that cannot tell 85 from 97 % */
#define ALL_MAY_HOLD 30 /* rows of which all may lie below their 90 % bounds by chance: 0.95^30 is 0.2 */

static struct csv *csv;
static struct schema *schema;
static struct table *table;
static struct features *features;
static struct dataset data;
static uint8_t factor[16], role[16];

static int load(void **state)
{
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");
	struct err err = { 0 };

	(void)state;
	if (!path)
		return 0;
	if (csv_read_file(path, &csv, &err) ||
	    schema_read_file("configs/schemas/courier-bigdl.json", &schema, &err) ||
	    table_read(csv, schema, true, &table, &err) || features_fit(table, &features, &err) ||
	    features_encode_table(features, table, &data.x, &err)) {
		printf("%s\n", err.text);
		return -1;
	}
	data.n_rows = table->n_rows;
	data.n_features = features->n;
	data.y = table->time;
	data.factor = factor;
	data.role = role;
	for (size_t f = 0; f < features->n; f++) {
		factor[f] = features->feature[f].source < schema->n_columns;
		role[f] = feature_is_category(&features->feature[f]) ? ROLE_CATEGORY : ROLE_NONE;
		for (int r = 1; r < N_ROLES; r++)
			if (schema_role(schema, (enum feature_role)r) == (int)features->feature[f].source)
				role[f] = (uint8_t)r;
	}
	return 0;
}

static int unload(void **state)
{
	(void)state;
	free(data.x);
	features_free(features);
	table_free(table);
	schema_free(schema);
	csv_free(csv);
	return 0;
}

TEST_GROUP(load, unload);

static double value(size_t row, const char *column)
{
	for (size_t f = 0; f < features->n; f++)
		if (!strcmp(features->feature[f].name, column))
			return data.x[row * features->n + f];
	fail_msg("no feature %s", column);
	return NAN;
}

static struct settings settings_of(const struct predictor_ops *ops, const char *text)
{
	struct settings s;
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if (*text && settings_parse(&s, text, &err))
		fail_msg("%s", err.text);
	return s;
}

static struct predictor fit(const struct predictor_ops *ops, const char *text, const struct dataset *d,
			    bool oob)
{
	struct settings s = settings_of(ops, text);
	struct fit_context ctx = { .seed = 1, .want_oob = oob };
	struct predictor p = { 0 };
	struct err err = { 0 };

	if (predictor_fit(ops, &s, d, &ctx, &p, &err))
		fail_msg("%s: %s", ops->name, err.text);
	return p;
}

static struct score held_out(const struct predictor_ops *ops, const char *text, const struct dataset *train,
			     const struct dataset *test)
{
	struct predictor p = fit(ops, text, train, false);
	double out[ROWS_MAX];
	struct score s;

	predictor_predict(&p, test->x, test->n_rows, out);
	s = score_of(test->y, out, test->n_rows);
	predictor_release(&p);
	return s;
}

static const char paper_forest[] = "trees=2000,depth=6,criterion=absolute";

TEST(test_random_splits)
{
	struct score forest = { 0 }, queue = { 0 }, hybrid = { 0 };
	size_t held = 0, n = 0;

	if (!csv)
		skip();
	assert_int_equal(data.n_rows, 89);
	for (uint64_t k = 0; k < SPLITS; k++) {
		struct rng rng = rng_stream(2021, k);
		uint32_t row[ROWS_MAX];
		size_t n_test = (data.n_rows + 2) / 5; /* 18 of 89 */
		struct dataset *train, *test;
		struct conformal c = { 0 };
		struct predictor p;
		struct score s;
		double out[ROWS_MAX], log_y[ROWS_MAX], log_oob[ROWS_MAX], q;

		for (size_t i = 0; i < data.n_rows; i++)
			row[i] = (uint32_t)i;
		rng_shuffle(&rng, row, data.n_rows);
		assert_int_equal(dataset_subset(&data, row, n_test, &test, NULL), 0);
		assert_int_equal(dataset_subset(&data, row + n_test, data.n_rows - n_test, &train, NULL), 0);
		s = held_out(&forest_ops, paper_forest, train, test);
		forest.mse += s.mse / SPLITS;
		forest.mape += s.mape / SPLITS;
		s = held_out(&queueing_ops, "", train, test);
		queue.mse += s.mse / SPLITS;
		queue.mape += s.mape / SPLITS;
		p = fit(&hybrid_ops, "", train, true);
		predictor_predict(&p, test->x, n_test, out);
		s = score_of(test->y, out, n_test);
		hybrid.mse += s.mse / SPLITS;
		hybrid.mape += s.mape / SPLITS;
		for (size_t i = 0; i < train->n_rows; i++) {
			log_y[i] = log(train->y[i]);
			log_oob[i] = log(hybrid_ops.oob(p.self)[i]);
		}
		assert_int_equal(conformal_fit(log_y, log_oob, train->n_rows, false, &c, NULL), 0);
		assert_int_equal(conformal_quantile(&c, 0.9, &q, NULL), 0);
		for (size_t i = 0; i < n_test; i++)
			held += log(test->y[i]) <= conformal_upper(&c, q, log(out[i]));
		n += n_test;
		conformal_release(&c);
		predictor_release(&p);
		dataset_free(train);
		dataset_free(test);
	}
	printf("held out                    forest alone      queueing alone    hybrid            in the 90 "
	       "%% bound\n");
	printf("20 %% at random: MSE / MAPE  %6.0f / %5.2f %%  %6.0f / %5.2f %%  %6.0f / %5.2f %%  %zu of "
	       "%zu (%.1f %%)\n",
	       forest.mse, 100 * forest.mape, queue.mse, 100 * queue.mape, hybrid.mse, 100 * hybrid.mape,
	       held, n, 100.0 * (double)held / (double)n);
	assert_true(hybrid.mse <= 0.30 * forest.mse);
	assert_true(hybrid.mape <= 0.05);
	assert_true((double)held >= 0.85 * (double)n && (double)held <= 0.97 * (double)n);
}

/* The rows chosen, as a table of their own. */
static char *text_of(const bool *in, bool wanted)
{
	struct strbuf b = { 0 };

	for (size_t c = 0; c < csv->n_columns; c++) {
		csv_put(&b, csv->header[c]);
		strbuf_puts(&b, c + 1 < csv->n_columns ? "," : "\n");
	}
	for (size_t r = 0; r < table->n_rows; r++)
		for (size_t c = 0; c < csv->n_columns && in[r] == wanted; c++) {
			csv_put(&b, csv_cell(csv, table->row[r], c));
			strbuf_puts(&b, c + 1 < csv->n_columns ? "," : "\n");
		}
	assert_false(b.failed);
	return b.text;
}

struct opened {
	char *text;
	struct csv *csv;
	struct table *table;
};

static struct opened open_rows(const bool *in, bool wanted, const struct schema *s)
{
	struct opened o = { .text = text_of(in, wanted) };
	struct err err = { 0 };

	if (csv_parse("part", o.text, strlen(o.text), &o.csv, &err) ||
	    table_read(o.csv, s, true, &o.table, &err))
		fail_msg("%s", err.text);
	return o;
}

static void close_rows(struct opened *o)
{
	table_free(o->table);
	csv_free(o->csv);
	free(o->text);
}

/* Trains a whole bundle without the rows, as `postrider train --model hybrid` would, and asks it for them. */
static void hold_out(const char *name, const bool *out_of_training, double most_mape)
{
	struct grid_point point = { &hybrid_ops, settings_of(&hybrid_ops, "") };
	struct grid grid = { &point, 1 };
	struct opened train = open_rows(out_of_training, false, schema), test;
	struct train_params params = { .table = train.table,
				       .grid = &grid,
				       .accuracy_grid = &grid,
				       .split = { .kind = SPLIT_KFOLD, .folds = 2, .seed = 1 },
				       .ctx = { .seed = 1, .want_oob = true },
				       .data_name = "part" };
	struct train_report report;
	struct dataset *a, *b;
	struct model *m = NULL;
	struct err err = { 0 };
	uint32_t in[ROWS_MAX], held[ROWS_MAX];
	size_t n_in = 0, n_held = 0, covered = 0, extrapolated = 0;
	double *x, p[ROWS_MAX], q, widest = 1.0;
	struct score hybrid;

	for (size_t i = 0; i < data.n_rows; i++)
		*(out_of_training[i] ? &held[n_held++] : &in[n_in++]) = (uint32_t)i;
	free(train.table->accuracy); /* time alone: the accuracy of these rows is not the question */
	train.table->accuracy = NULL;
	if (train_model(&params, &m, &report, &err))
		fail_msg("%s", err.text);
	test = open_rows(out_of_training, true, m->schema);
	assert_int_equal(test.table->n_rows, n_held);
	assert_int_equal(features_encode_table(m->features, test.table, &x, NULL), 0);
	predictor_predict(&m->time.predictor, x, n_held, p);
	hybrid = score_of(test.table->time, p, n_held);
	assert_true(m->time.conformal.log && m->time.widening);
	assert_int_equal(conformal_quantile(&m->time.conformal, 0.9, &q, NULL), 0);
	for (size_t i = 0; i < n_held; i++) {
		double upper = model_upper(m, &m->time, x + i * m->features->n, q, p[i]);

		covered += test.table->time[i] <= upper;
		widest = fmax(widest, log(upper / p[i]) / q);
		extrapolated += features_extrapolated(m->features, x + i * m->features->n);
	}
	assert_int_equal(dataset_subset(&data, in, n_in, &a, NULL), 0);
	assert_int_equal(dataset_subset(&data, held, n_held, &b, NULL), 0);
	printf("%-20s MAPE   %17.2f %% %17.2f %% %17.2f %%  %zu of %zu (%.1f %%)  %zu extrapolated, up to "
	       "%.2f x wider "
	       "than %.4f\n",
	       name, 100 * held_out(&forest_ops, paper_forest, a, b).mape,
	       100 * held_out(&queueing_ops, "", a, b).mape, 100 * hybrid.mape, covered, n_held,
	       100.0 * (double)covered / (double)n_held, extrapolated, widest, q);
	assert_true(hybrid.mape <= most_mape);
	if (n_held >= TOO_FEW)
		assert_true((double)covered >= 0.85 * (double)n_held &&
			    ((double)covered <= 0.97 * (double)n_held || n_held < ALL_MAY_HOLD));
	free(x);
	dataset_free(a);
	dataset_free(b);
	close_rows(&test);
	train_report_release(&report);
	model_free(m);
	close_rows(&train);
}

TEST(test_busier_than_seen)
{
	bool out[ROWS_MAX];

	if (!csv)
		skip();
	for (size_t i = 0; i < data.n_rows; i++)
		out[i] = value(i, "processes") > 15;
	hold_out("processes > 15", out, 0.10);
}

TEST(test_more_jobs_than_seen)
{
	bool out[ROWS_MAX];

	if (!csv)
		skip();
	for (size_t i = 0; i < data.n_rows; i++)
		out[i] = value(i, "njobs") == 5;
	hold_out("njobs = 5", out, 0.12);
}

TEST(test_larger_batch_than_seen)
{
	bool out[ROWS_MAX];

	if (!csv)
		skip();
	for (size_t i = 0; i < data.n_rows; i++)
		out[i] = value(i, "batch") == 512;
	hold_out("batch = 512", out, 0.08);
}

TEST(test_batch_between_those_seen)
{
	bool out[ROWS_MAX];

	if (!csv)
		skip();
	for (size_t i = 0; i < data.n_rows; i++)
		out[i] = value(i, "batch") == 256;
	hold_out("batch = 256", out, 0.05);
}
