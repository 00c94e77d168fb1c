/* The two-core profile, held out at random and by level: how far off the hybrid is beside the paper's forest,
 * boosting and the queueing model alone. docs/MEASURED.md has the table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/search/train.h"
#include "tests/support/test.h"

enum { FOREST, BOOST, QUEUEING, HYBRID, N_MODELS };

static struct csv *csv;
static struct schema *schema;
static struct table *table;

static int load(void **state)
{
	struct err err = { 0 };

	(void)state;
	if (schema_default(&schema, &err) ||
	    csv_read_file("configs/profiles/two-cores/runs.csv", &csv, &err) ||
	    table_read(csv, schema, TABLE_NEEDS_TARGETS, &table, &err)) {
		printf("%s\n", err.text);
		return -1;
	}
	free(table->accuracy); /* time is the question */
	table->accuracy = NULL;
	printf("held out        forest     boost  queueing    hybrid   (MAPE)\n");
	return 0;
}

static int unload(void **state)
{
	(void)state;
	table_free(table);
	csv_free(csv);
	schema_free(schema);
	return 0;
}

TEST_GROUP(load, unload);

static size_t feature(const char *name)
{
	struct features *f = NULL;
	size_t at = SIZE_MAX;

	assert_int_equal(features_fit(table, &f, NULL), 0);
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->feature[i].name, name))
			at = i;
	features_free(f);
	assert_true(at != SIZE_MAX);
	return at;
}

/* The hybrid's MAPE on what the split holds out. */
static double mape_of(const char *what, struct split_params split)
{
	static const struct {
		const char *model, *settings;
	} tried[N_MODELS] = { [FOREST] = { "forest", "trees=2000,depth=6,criterion=absolute" },
			      [BOOST] = { "boost", "" },
			      [QUEUEING] = { "queueing", "" },
			      [HYBRID] = { "hybrid", "" } };
	struct grid_point point[N_MODELS];
	struct grid grid = { point, N_MODELS };
	struct train_params p = { .table = table,
				  .grid = &grid,
				  .accuracy_grid = &grid,
				  .split = split,
				  .ctx = { .seed = 1 },
				  .data_name = "two-cores" };
	struct train_report report = { 0 };
	struct model *m = NULL;
	struct err err = { 0 };
	double mape;

	for (size_t i = 0; i < N_MODELS; i++) {
		point[i].ops = predictor_find(tried[i].model);
		settings_init(&point[i].settings, point[i].ops->spec);
		if (*tried[i].settings)
			assert_int_equal(settings_parse(&point[i].settings, tried[i].settings, NULL), 0);
	}
	if (train_model(&p, &m, &report, &err))
		fail_msg("%s", err.text);
	assert_int_equal(report.n_doubted, 0); /* a clean table: nothing in it looks wrong */
	printf("%-14s", what);
	for (size_t i = 0; i < N_MODELS; i++)
		printf("  %6.1f %%", 100.0 * report.time_result[i].score.mean.mape);
	printf("\n");
	mape = report.time_result[HYBRID].score.mean.mape;
	model_free(m);
	train_report_release(&report);
	return mape;
}

static double mape_beyond(const char *what, const char *column)
{
	return mape_of(what, (struct split_params){
				     .kind = SPLIT_EXTRAPOLATE, .feature = feature(column), .bound = NAN });
}

TEST(test_settings_held_out)
{
	assert_true(mape_of("5-fold", (struct split_params){ .kind = SPLIT_KFOLD, .folds = 5, .seed = 1 }) <=
		    0.08);
}

TEST(test_more_cpus_than_seen)
{
	assert_true(mape_beyond("cpus = 4", "cpus") <= 0.20);
}

TEST(test_more_jobs_than_seen)
{
	assert_true(mape_beyond("njobs = 5", "njobs") <= 0.10);
}

TEST(test_larger_batch_than_seen)
{
	assert_true(mape_beyond("batch = 512", "batch") <= 0.10);
}
