/* Names and values under a schema. test_features.c has what is read from "name=value" texts. */
#include <math.h>
#include <string.h>

#include "predictors/data/features.h"
#include "tests/support/test.h"

static struct schema *schema;

static int set_up(void **state)
{
	(void)state;
	return schema_default(&schema, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	schema_free(schema);
	return 0;
}

TEST_GROUP(set_up, tear_down);

enum { NETWORK, CPUS, NJOBS, BATCH, EPOCHS, SAMPLES, OTHER, PROCESSES };

TEST(test_names_find_their_columns_and_strangers_are_passed_over)
{
	const char *const name[] = { "cpu", "network", "tenant", "processes", "batch", "njobs" };
	const char *const text[] = { "4", "12", "x", "7.5", NULL, "3" };
	struct job_values v;

	assert_int_equal(job_values_init(&v, schema, NULL), 0);
	assert_int_equal(job_values_bind(&v, schema, name, text, 6, NULL), 0);
	assert_true(v.number[CPUS] == 4.0 && v.number[PROCESSES] == 7.5 && v.number[NJOBS] == 3.0);
	assert_ptr_equal(v.category[NETWORK], text[1]); /* a category, whatever it looks like */
	assert_true(isnan(v.number[NETWORK]) && isnan(v.number[BATCH]));
	assert_true(job_values_given(&v, CPUS) && job_values_given(&v, NETWORK));
	assert_false(job_values_given(&v, BATCH));
	job_values_reset(&v, schema);
	for (size_t i = 0; i <= PROCESSES; i++)
		assert_false(job_values_given(&v, i));
	job_values_release(&v);
}

TEST(test_a_number_that_is_none_is_named)
{
	const char *const name[] = { "network", "cpu" }, *const text[] = { "a", "4 cores" };
	struct err err = { 0 };
	struct job_values v;

	assert_int_equal(job_values_init(&v, schema, NULL), 0);
	assert_int_equal(job_values_bind(&v, schema, name, text, 2, &err), -ERR_ARG);
	assert_string_equal(err.text, "column cpus: '4 cores' is not a number");
	job_values_release(&v);
}

TEST(test_values_are_put_by_source_and_by_role)
{
	struct job_values v;

	assert_int_equal(job_values_init(&v, schema, NULL), 0);
	job_values_put(&v, schema, -1, "x", 1.0);
	for (size_t i = 0; i <= PROCESSES; i++)
		assert_false(job_values_given(&v, i));
	job_values_put(&v, schema, NETWORK, "x", 1.0);
	job_values_put(&v, schema, EPOCHS, "x", 2.0);
	job_values_put(&v, schema, PROCESSES, "x", 3.0);
	assert_string_equal(v.category[NETWORK], "x");
	assert_true(isnan(v.number[NETWORK]) && v.number[EPOCHS] == 2.0 && v.number[PROCESSES] == 3.0);
	assert_null(v.category[EPOCHS]);
	job_values_put_role(&v, schema, ROLE_CPUS, 5.0);
	job_values_put_role(&v, schema, ROLE_BATCH, 6.0);
	job_values_put_role(&v, schema, ROLE_NONE, 7.0);
	assert_true(v.number[CPUS] == 5.0 && v.number[BATCH] == 6.0);
	job_values_release(&v);
}

TEST(test_what_training_never_varied_can_be_filled_in)
{
	static const char text[] = "network,cpus,njobs,batch,epochs,samples,time_s\n"
				   "a,2,1,64,10,,5\na,2,2,64,10,,4\n";
	struct features *f = NULL;
	struct table *t = NULL;
	struct csv *csv = NULL;
	struct job_values v;

	assert_int_equal(csv_parse("t.csv", text, strlen(text), &csv, NULL), 0);
	assert_int_equal(table_read(csv, schema, TABLE_NEEDS_TARGETS, &t, NULL), 0);
	assert_int_equal(features_fit(t, &f, NULL), 0);
	assert_int_equal(job_values_init(&v, schema, NULL), 0);
	assert_true(features_fill_constant(f, NETWORK, &v));
	assert_string_equal(v.category[NETWORK], "a");
	assert_true(isnan(v.number[NETWORK]));
	assert_true(features_fill_constant(f, EPOCHS, &v) && v.number[EPOCHS] == 10.0);
	assert_false(features_fill_constant(f, NJOBS, &v)); /* varied */
	assert_false(features_fill_constant(f, SAMPLES, &v)); /* never given */
	assert_true(isnan(v.number[NJOBS]) && isnan(v.number[SAMPLES]));
	job_values_release(&v);
	features_free(f);
	table_free(t);
	csv_free(csv);
}

TEST(test_a_category_that_varied_is_not_filled_in)
{
	static const char *const text[] = {
		"network,cpus,njobs,batch,time_s\na,2,1,64,5\nb,2,2,64,4\n",
		"network,cpus,njobs,batch,time_s\na,2,1,64,5\nb,2,2,64,4\nc,2,2,64,4\n"
	};

	for (size_t i = 0; i < 2; i++) {
		struct features *f = NULL;
		struct table *t = NULL;
		struct csv *csv = NULL;
		struct job_values v;

		assert_int_equal(csv_parse("t.csv", text[i], strlen(text[i]), &csv, NULL), 0);
		assert_int_equal(table_read(csv, schema, TABLE_NEEDS_TARGETS, &t, NULL), 0);
		assert_int_equal(features_fit(t, &f, NULL), 0);
		assert_int_equal(job_values_init(&v, schema, NULL), 0);
		assert_false(features_fill_constant(f, NETWORK, &v));
		assert_null(v.category[NETWORK]);
		job_values_release(&v);
		features_free(f);
		table_free(t);
		csv_free(csv);
	}
}
