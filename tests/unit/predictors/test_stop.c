/* Training that another thread stops: it ends before its next unit of work. */
#include <string.h>

#include "predictors/models/hybrid.h"
#include "predictors/models/queueing_models.h"
#include "predictors/models/widening.h"
#include "predictors/search/train.h"
#include "predictors/trees/boost.h"
#include "predictors/trees/forest.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

/* A model that counts what is asked of it and sets the flag at a given fit or prediction. */
static atomic_bool stop;
static const struct predictor_ops *real;
static size_t n_fits, n_predictions, stop_at_fit, stop_at_prediction;

static int counting_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
			void **out_self, struct err *err)
{
	if (++n_fits == stop_at_fit)
		atomic_store(&stop, true);
	return real->fit(s, d, &(struct fit_context){ .seed = ctx->seed }, out_self, err);
}

static void counting_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	if (++n_predictions == stop_at_prediction)
		atomic_store(&stop, true);
	real->predict(self, x, n_rows, out);
}

static struct predictor_ops counting(const struct predictor_ops *ops, size_t at_fit, size_t at_prediction)
{
	struct predictor_ops counted = *ops;

	real = ops;
	n_fits = n_predictions = 0;
	stop_at_fit = at_fit;
	stop_at_prediction = at_prediction;
	atomic_store(&stop, false);
	counted.fit = counting_fit;
	counted.predict = counting_predict;
	return counted;
}

static struct grid_point point_of(const struct predictor_ops *ops, const char *settings)
{
	struct grid_point point = { .ops = ops };
	struct err err = { 0 };

	settings_init(&point.settings, ops->spec);
	if (settings_parse(&point.settings, settings, &err))
		fail_msg("%s", err.text);
	return point;
}

static const char rows[] =
	"network,cpus,njobs,batch,time_s\n"
	"a,1,1,64,10.5\na,2,1,64,6.1\na,4,1,64,4.4\na,1,2,64,11.2\nb,1,1,64,20.5\nb,2,1,64,11.0\n"
	"a,1,1,128,9.1\na,2,1,128,5.2\na,4,2,128,4.0\na,1,4,128,12.9\nb,1,1,128,18.1\nb,4,1,128,6.2\n"
	"a,1,1,256,8.8\na,2,4,256,6.0\nb,4,1,256,5.5\nb,1,2,256,19.0\n";

static int train(const struct predictor_ops *ops, const char *settings)
{
	struct grid_point point = point_of(ops, settings);
	struct grid grid = { &point, 1 };
	struct train_report report;
	struct schema *schema = NULL;
	struct table *table = NULL;
	struct model *m = NULL;
	struct csv *csv = NULL;
	struct err err = { 0 };
	int rc;

	if (schema_default(&schema, &err) || csv_parse("t.csv", rows, strlen(rows), &csv, &err) ||
	    table_read(csv, schema, true, &table, &err))
		fail_msg("%s", err.text);
	rc = train_model(&(struct train_params){ .table = table,
						 .grid = &grid,
						 .accuracy_grid = &grid,
						 .split = { .kind = SPLIT_KFOLD, .folds = 4, .seed = 1 },
						 .ctx = { .seed = 1, .stop = &stop },
						 .data_name = "t.csv" },
			 &m, &report, &err);
	if (rc)
		assert_null(m);
	assert_int_equal(err.code, -rc);
	model_free(m);
	train_report_release(&report);
	table_free(table);
	csv_free(csv);
	schema_free(schema);
	return rc;
}

/* A hybrid has all kinds of fits: those of the folds, the model itself, those of the residuals and those with
 * one end of a factor held out. */
TEST(test_no_fit_begins_after_the_stop)
{
	struct predictor_ops ops = counting(&hybrid_ops, SIZE_MAX, SIZE_MAX);
	size_t all;

	assert_int_equal(train(&ops, "trees=2"), 0);
	all = n_fits;
	assert_true(all >= 4 + 1 + 10 + 4);
	for (size_t k = 1; k < all; k++) {
		ops = counting(&hybrid_ops, k, SIZE_MAX);
		assert_int_equal(train(&ops, "trees=2"), -ERR_STOPPED);
		assert_int_equal(n_fits, k);
	}
}

TEST(test_no_column_is_shuffled_after_the_stop)
{
	struct predictor_ops ops = counting(&forest_ops, SIZE_MAX, SIZE_MAX);
	size_t all;

	assert_int_equal(train(&ops, "trees=2"), 0);
	all = n_predictions;
	for (size_t k = 4; k < all; k += 3) { /* a column is shuffled five times */
		ops = counting(&forest_ops, SIZE_MAX, k);
		train(&ops, "trees=2");
		assert_in_range(n_predictions, k, k + 5);
	}
}

TEST(test_a_fit_under_way_ends_before_its_next_unit)
{
	const struct predictor_ops *const divisible[] = { &forest_ops,   &tree_ops,   &boost_ops,
							  &queueing_ops, &hybrid_ops, NULL };
	struct dataset *d = world_factorial(1, 0.05, 2);
	struct fit_context ctx = { .seed = 1, .stop = &stop };
	struct grid_point boost = point_of(&boost_ops, "");
	static const uint8_t role[5] = { ROLE_CATEGORY, ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH, ROLE_PROCESSES };
	size_t stage = 3;
	double out[1];

	d->role = role;
	atomic_store(&stop, true);
	for (size_t i = 0; divisible[i]; i++) {
		struct grid_point point = point_of(divisible[i], "");
		struct err err = { 0 };
		void *self = NULL;

		/* not through predictor_fit(), which looks at the flag itself */
		assert_int_equal(divisible[i]->fit(&point.settings, d, &ctx, &self, &err), -ERR_STOPPED);
		assert_int_equal(err.code, ERR_STOPPED);
		assert_non_null(strstr(err.text, "stopped"));
		assert_null(self);
	}
	assert_int_equal(boost_staged(&boost.settings, d, d, &ctx, &stage, 1, out, NULL), -ERR_STOPPED);
	dataset_free(d);
}

TEST(test_a_search_that_is_stopped_has_no_results)
{
	struct grid_point point[] = { point_of(&forest_ops, "trees=3"), point_of(&forest_ops, "trees=5"),
				      point_of(&boost_ops, "trees=3"), point_of(&boost_ops, "trees=5") };
	struct grid grid = { point, 4 };
	struct dataset *d = world_factorial(1, 0.05, 2);
	struct search_result *result = NULL;
	struct split *split = NULL;

	atomic_store(&stop, true);
	assert_int_equal(split_make(d, &(struct split_params){ .kind = SPLIT_KFOLD, .folds = 3, .seed = 1 },
				    &split, NULL),
			 0);
	assert_int_equal(search_run(&(struct search_params){ .data = d,
							     .grid = &grid,
							     .split = split,
							     .ctx = { .seed = 1, .stop = &stop } },
				    &result, NULL),
			 -ERR_STOPPED);
	assert_null(result);
	split_free(split);
	dataset_free(d);
}
