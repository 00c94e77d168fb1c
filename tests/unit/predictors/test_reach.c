/* How far outside the table a model may carry a promise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/models/reach.h"
#include "predictors/models/widening.h"
#include "predictors/search/train.h"
#include "tests/support/test.h"

struct fixture {
	struct schema *schema;
	struct csv *csv;
	struct table *table;
	struct model m;
};

static void make(struct fixture *f, const char *name)
{
	static const char text[] = "network,cpus,njobs,batch,epochs,time_s\n"
				   "a,1,1,32,4,1\nb,2,1,64,4,2\na,4,2,512,4,3\n";

	memset(f, 0, sizeof *f);
	assert_int_equal(schema_default(&f->schema, NULL), 0);
	assert_int_equal(csv_parse("t", text, strlen(text), &f->csv, NULL), 0);
	assert_int_equal(table_read(f->csv, f->schema, TABLE_NEEDS_NOTHING, &f->table, NULL), 0);
	assert_int_equal(features_fit(f->table, &f->m.features, NULL), 0);
	f->m.schema = f->schema;
	f->m.time.predictor.ops = predictor_find(name);
	assert_non_null(f->m.time.predictor.ops);
}

static void drop(struct fixture *f)
{
	features_free(f->m.features);
	table_free(f->table);
	csv_free(f->csv);
	schema_free(f->schema);
}

static size_t at(const struct fixture *f, const char *name)
{
	for (size_t i = 0; i < f->m.features->n; i++)
		if (!strcmp(f->m.features->feature[i].name, name))
			return i;
	fail_msg("no feature %s", name);
	return 0;
}

/* The first feature beyond, as the job in words has it; "": none. */
static const char *beyond(const struct fixture *f, const char *job)
{
	double x[FEATURES_MAX];
	struct job_values v;
	int i;

	assert_int_equal(job_values_init(&v, f->schema, NULL), 0);
	assert_int_equal(job_values_parse(&v, f->schema, job, NULL), 0);
	features_encode_job(f->m.features, &v, x);
	i = reach_beyond(&f->m, x);
	job_values_release(&v);
	return i < 0 ? "" : f->m.features->feature[i].name;
}

TEST(test_a_model_of_the_table_goes_a_factor_of_two)
{
	struct fixture f;
	double least, most;

	make(&f, "forest");
	assert_true(reach_of(&f.m, at(&f, "batch"), &least, &most));
	assert_true(least == 16 && most == 1024);
	assert_true(reach_of(&f.m, at(&f, "epochs"), &least, &most));
	assert_true(least == 4 && most == 4); /* it never varied */
	assert_false(reach_of(&f.m, at(&f, "network"), &least, &most));
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=1024,epochs=4"), "");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=1025,epochs=4"), "batch");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=5"), "epochs");
	drop(&f);
}

TEST(test_a_model_with_a_law_goes_further_but_not_everywhere)
{
	struct fixture f;
	double least, most;

	make(&f, "hybrid");
	assert_true(reach_of(&f.m, at(&f, "batch"), &least, &most));
	assert_true(least == 8 && most == 2048); /* half of the range, in logarithms */
	/* Less work is a smaller sum of what was measured and more of it a larger one; more iterations of a
	 * small batch are not. */
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=400"), "");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=0.1"), "");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=7,epochs=4"), "batch");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=1000000000000000"),
			    "epochs");
	drop(&f);
}

/* The daemon and `predict` are asked the same question, and answer it alike. */
TEST(test_a_load_has_no_end)
{
	struct fixture f;

	make(&f, "hybrid");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=500,batch=64,epochs=4"), "");
	drop(&f);
}

static bool is_notable(const struct fixture *f, const char *name, double x)
{
	return reach_is_notable(&f->m, &f->m.features->feature[at(f, name)], x);
}

TEST(test_less_load_than_measured_and_hardly_more_are_not_worth_a_word)
{
	struct fixture f;

	make(&f, "hybrid");
	assert_false(is_notable(&f, "njobs", 0.5));
	assert_false(is_notable(&f, "njobs", 1.5));
	assert_false(is_notable(&f, "njobs", 2.1));
	assert_true(is_notable(&f, "njobs", 2.5));
	assert_true(is_notable(&f, "njobs", NAN));
	assert_true(is_notable(&f, "cpus", 4.1)); /* what the job itself says is */
	assert_true(is_notable(&f, "cpus", 0.5));
	drop(&f);
}

TEST(test_a_bound_widens_with_the_way_beyond_the_range)
{
	static const double widening[] = { 2.0 };
	struct feature other = { .min = 0.0, .max = 2.1 };
	struct features f = { .feature = &other, .n = 1 };
	double last = 1.0, names;

	/* a load that was measured down to none; a little more than the most hardly widens */
	for (double v = 2.1; v < 4.0; v += 0.1) {
		double w = widening_at(widening, &f, &v, &names);

		assert_true(w >= last);
		last = w;
	}
	assert_true(last == 2.0);
	last = 2.2;
	assert_true(widening_at(widening, &f, &last, &names) < 1.1);
	last = 2.48;
	assert_true(widening_at(widening, &f, &last, &names) < 1.4);
}
