/* How far outside the table a model may carry a promise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/models/reach.h"
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
static const char *beyond(const struct fixture *f, const char *job, bool load)
{
	double x[FEATURES_MAX];
	struct job_values v;
	int i;

	assert_int_equal(job_values_init(&v, f->schema, NULL), 0);
	assert_int_equal(job_values_parse(&v, f->schema, job, NULL), 0);
	features_encode_job(f->m.features, &v, x);
	i = reach_beyond(&f->m, x, load);
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
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=1024,epochs=4", true), "");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=1025,epochs=4", true), "batch");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=5", true), "epochs");
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
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=400", true), "");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=0.1", true), "");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=7,epochs=4", true), "batch");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=1,batch=64,epochs=1000000000000000", true),
			    "epochs");
	drop(&f);
}

TEST(test_the_load_counts_only_where_the_job_says_it)
{
	struct fixture f;

	make(&f, "hybrid");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=500,batch=64,epochs=4", true), "njobs");
	assert_string_equal(beyond(&f, "network=a,cpus=2,njobs=500,batch=64,epochs=4", false), "");
	drop(&f);
}
