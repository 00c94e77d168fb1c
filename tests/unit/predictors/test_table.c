/* predictors/data/table: a CSV under a schema, row by row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/table.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/predictors/data_text.h"

TEST_GROUP(open_default_schema, close_default_schema);

/* The csv belongs to the table here. */
static struct table *must(const char *text, const struct schema *s, bool need_targets)
{
	struct table *t = NULL;
	struct err err = { 0 };

	if (table_read(csv_of(text), s, need_targets, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void drop(struct table *t)
{
	csv_free((struct csv *)t->csv);
	table_free(t);
}

static void refuses(const char *text, const struct schema *s, const char *say)
{
	struct csv *csv = csv_of(text);
	struct table *t = NULL;
	struct err err = { 0 };

	assert_int_equal(table_read(csv, s, true, &t, &err), -ERR_FORMAT);
	assert_null(t);
	if (strncmp(err.text, "t.csv:", 6) || !strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
	csv_free(csv);
}

TEST(test_columns_are_found_in_any_order_and_by_alias)
{
	struct table *t = must("time_s,batch,cpu,network,njobs\n12.5,64,4,lenet5,3\n7,128,2,vgg,1\n",
			       default_schema, true);

	assert_int_equal(t->n_rows, 2);
	assert_string_equal(t->column[0].category[0], "lenet5");
	assert_string_equal(t->column[0].category[1], "vgg");
	assert_true(t->column[1].number[0] == 4.0);
	assert_true(t->column[2].number[0] == 3.0);
	assert_true(t->column[3].number[1] == 128.0);
	assert_false(t->column[4].present); /* epochs */
	assert_false(t->column[5].present);
	assert_true(t->column[7].present); /* processes = cpus x njobs */
	assert_true(t->column[7].number[0] == 12.0 && t->column[7].number[1] == 2.0);
	assert_true(t->time[0] == 12.5);
	assert_null(t->accuracy);
	assert_int_equal(t->n_ignored, 0);
	assert_int_equal(t->n_excluded, 0);
	drop(t);
	table_free(NULL);
}

TEST(test_known_columns_cause_no_notice_and_unknown_ones_do)
{
	struct table *t =
		must("network,cpus,cpu,njobs,batch,time_s,accuracy,lr,cpu_mean,iowait_mean,max_rss_mb,"
		     "replication,started_at,colour\nx,1,9,1,64,5,0.9,0.1,1,1,1,1,2024,red\n",
		     default_schema, true);

	assert_int_equal(t->n_ignored, 2);
	assert_string_equal(t->ignored[0], "cpu"); /* its own name wins over an alias */
	assert_string_equal(t->ignored[1], "colour");
	assert_true(t->column[1].number[0] == 1.0);
	assert_true(t->accuracy[0] == 0.9);
	drop(t);
}

TEST(test_a_table_may_say_its_own_processes)
{
	struct table *t = must("network,cpus,njobs,batch,time_s,processes\nx,4,3,64,5,10\nx,4,3,64,5,\n",
			       default_schema, true);

	assert_true(t->column[7].number[0] == 10.0);
	assert_true(t->column[7].number[1] == 12.0); /* derived where the cell is empty */
	assert_int_equal(t->n_ignored, 0);
	drop(t);
}

TEST(test_the_cores_that_were_busy_are_read_beside_the_schema)
{
	struct table *t = must("network,cpus,njobs,batch,time_s,job_cpu_mean\nx,4,3,64,5,237\nx,4,3,64,5,\n"
			       "x,4,3,64,5,-1\nx,4,3,64,5,much\n",
			       default_schema, true);
	struct calibrate_seen *seen;

	assert_int_equal(table_seen(t, &seen, NULL), 0);
	assert_true(fabs(seen[0].cpu_used - 2.37) < 1e-12);
	assert_true(seen[1].cpu_used == 0.0 && seen[2].cpu_used == 0.0 && seen[3].cpu_used == 0.0);
	assert_true(seen[0].phase_s[PHASE_COMPUTE] == 0.0);
	free(seen);
	drop(t);
	t = must("network,cpus,njobs,batch,time_s\nx,4,3,64,5\n", default_schema, true);
	assert_int_equal(table_seen(t, &seen, NULL), 0);
	assert_null(seen);
	drop(t);
}

TEST(test_phases_are_read_beside_the_schema)
{
	struct table *t =
		must("network,cpus,njobs,batch,time_s,fetch_s,compute_s,sync_s\nx,4,3,64,5,1,2.37,0\n"
		     "x,4,3,64,5,,2,1\nx,4,3,64,5,1,-2,1\n",
		     default_schema, true);
	struct calibrate_seen *seen;

	assert_int_equal(t->n_ignored, 0);
	assert_int_equal(table_seen(t, &seen, NULL), 0);
	assert_true(seen[0].phase_s[PHASE_FETCH] == 1.0 && seen[0].phase_s[PHASE_COMPUTE] == 2.37);
	assert_true(seen[0].phase_s[PHASE_SYNC] == 0.0 && seen[0].phase_s[PHASE_TEST] == 0.0);
	assert_true(isnan(seen[1].phase_s[PHASE_FETCH]) && isnan(seen[2].phase_s[PHASE_COMPUTE]));
	assert_true(seen[0].cpu_used == 0.0);
	free(seen);
	drop(t);
	/* two of them say nothing of what is left */
	t = must("network,cpus,njobs,batch,time_s,fetch_s,compute_s\nx,4,3,64,5,1,2\n", default_schema, true);
	assert_int_equal(table_seen(t, &seen, NULL), 0);
	assert_null(seen);
	drop(t);
}

TEST(test_missing_cells_are_nan_and_null)
{
	struct table *t = must("network,cpus,njobs,batch,time_s,accuracy\n,,3,64,,NA\nx,4,nan,64,5,0.5\n",
			       default_schema, true);

	assert_null(t->column[0].category[0]);
	assert_true(isnan(t->column[1].number[0]));
	assert_true(isnan(t->column[7].number[0])); /* derived from what is missing */
	assert_true(isnan(t->time[0]) && isnan(t->accuracy[0]));
	assert_true(isnan(t->column[2].number[1]));
	drop(t);
}

TEST(test_targets_are_needed_for_training_only)
{
	struct table *t = must("network,cpus,njobs,batch\nx,4,3,64\n", default_schema, false);

	assert_null(t->time);
	drop(t);
	refuses("network,cpus,njobs,batch,times\nx,4,3,64,1\n", default_schema, "no column 'time_s'");
	t = must("network,cpus,njobs,batch,time_s\n", default_schema, true);
	assert_int_equal(t->n_rows, 0);
	drop(t);
}

TEST(test_an_absent_column_is_named_with_the_nearest)
{
	refuses("network,cpux,njobs,batch,time_s\nx,4,3,64,1\n", default_schema,
		"no column 'cpus' (or 'cpu')");
	refuses("network,cpux,njobs,batch,time_s\nx,4,3,64,1\n", default_schema, "is it 'cpux'?");
	refuses("a\n1\n", default_schema, "no column 'network'");
}

TEST(test_bad_cells_are_named_by_line_and_column)
{
	refuses("network,cpus,njobs,batch,time_s\nx,4,3,64,1\n\nx,four,3,64,1\n", default_schema,
		"t.csv:4: column cpus: 'four' is not a number");
	refuses("network,cpus,njobs,batch,time_s\nx,4,3,64,1\nx,4,3,64,0\n", default_schema,
		"t.csv:3: column time_s: a time of 0");
	refuses("network,cpus,njobs,batch,time_s\nx,4,3,64,-2.5\n", default_schema,
		"t.csv:2: column time_s: a time of -2.5");
	refuses("network,cpus,njobs,batch,time_s,accuracy\nx,4,3,64,1,inf\n", default_schema,
		"t.csv:2: column accuracy");
	refuses("network,cpus,njobs,batch,time_s\ncaf\xe9,4,3,64,1\n", default_schema,
		"t.csv:2: column network");
	refuses("network,cpus,njobs,batch,time_s\n\xed\xa0\x80,4,3,64,1\n", default_schema,
		"not UTF-8"); /* a surrogate */
	refuses("network,cpus,njobs,batch,time_s\n\xc0\xaf,4,3,64,1\n", default_schema,
		"not UTF-8"); /* overlong */
	refuses("network,cpus,njobs,batch,time_s\n\xf4\x90\x80\x80,4,3,64,1\n", default_schema, "not UTF-8");
	refuses("network,cpus,njobs,batch,time_s\n\xe2\x82,4,3,64,1\n", default_schema,
		"not UTF-8"); /* cut */
}

TEST(test_unicode_categories_are_kept)
{
	struct table *t = must("network,cpus,njobs,batch,time_s\ncaf\xc3\xa9 \xf0\x9f\x90\x8e,4,3,64,1\n",
			       default_schema, true);

	assert_string_equal(t->column[0].category[0], "caf\xc3\xa9 \xf0\x9f\x90\x8e");
	drop(t);
}

TEST(test_huge_values_are_kept_and_overflow_is_named)
{
	struct table *t =
		must("network,cpus,njobs,batch,time_s\nx,1e308,1,1e308,1e308\n", default_schema, true);

	assert_true(t->column[1].number[0] == 1e308 && t->time[0] == 1e308 &&
		    t->column[7].number[0] == 1e308);
	drop(t);
	refuses("network,cpus,njobs,batch,time_s\nx,1,1,1,1\nx,1e308,10,64,1\n", default_schema,
		"t.csv:3: column processes: the product of cpus = 1e+308, njobs = 10");
	refuses("network,cpus,njobs,batch,time_s\nx,1e999,1,64,1\n", default_schema, "t.csv:2: column cpus");
}

static const char chain[] =
	"{\"columns\":[{\"name\":\"a\",\"kind\":\"number\",\"optional\":true},"
	"{\"name\":\"b\",\"kind\":\"number\"}],"
	"\"derived\":[{\"name\":\"ia\",\"inverse\":\"a\"},{\"name\":\"lia\",\"log\":\"ia\"},"
	"{\"name\":\"lb\",\"log\":\"b\"}],"
	"\"decision\":\"b\",\"targets\":{\"time\":\"t\"}}";

TEST(test_derived_columns_build_on_each_other)
{
	struct schema *s = schema_of(chain);
	struct table *t = must("a,b,t\n4,2.37,1\n,1,1\n", s, true);

	assert_true(t->column[2].number[0] == 0.25);
	assert_true(t->column[3].number[0] == log(0.25));
	assert_true(t->column[4].number[0] == log(2.37));
	assert_true(isnan(t->column[2].number[1]) && isnan(t->column[3].number[1]));
	drop(t);
	t = must("b,t\n2,1\n", s, true); /* without a: nothing that comes from it */
	assert_false(t->column[0].present || t->column[2].present || t->column[3].present);
	assert_true(t->column[4].present);
	drop(t);
	t = must("b,ia,t\n2,0.5,1\n2,,1\n", s, true); /* unless the table says it */
	assert_false(t->column[0].present);
	assert_true(t->column[2].number[0] == 0.5 && t->column[3].number[0] == log(0.5));
	assert_true(isnan(t->column[2].number[1]) && isnan(t->column[3].number[1]));
	drop(t);
	refuses("a,b,t\n1,1,1\n0,2,1\n", s, "t.csv:3: column ia: the inverse of a = 0");
	refuses("a,b,t\n1,0,1\n", s, "t.csv:2: column lb: the logarithm of b = 0");
	refuses("a,b,t\n1,-3,1\n", s, "t.csv:2: column lb: the logarithm of b = -3");
	refuses("a,b,t\n-1,3,1\n", s, "t.csv:2: column lia: the logarithm of ia = -1");
	refuses("a,b,t\n1e-310,3,1\n", s, "t.csv:2: column ia");
	schema_free(s);
}

TEST(test_excluded_rows_are_not_looked_at)
{
	struct schema *s =
		schema_of("{\"columns\":[{\"name\":\"net\",\"kind\":\"category\",\"alias\":[\"network\"]},"
			  "{\"name\":\"b\",\"kind\":\"number\"}],\"decision\":\"b\","
			  "\"targets\":{\"time\":\"t\"},"
			  "\"exclude\":{\"suspect\":[\"yes\",\"maybe\"],\"net\":\"vgg\",\"absent\":\"x\"}}");
	struct table *t =
		must("network,b,t,suspect\nlenet,1,1,no\nlenet,junk,0,yes\nvgg,2,2,no\nlenet,3,3,maybe\n"
		     "lenet,4,4,Yes\n",
		     s, true);

	assert_int_equal(t->n_rows, 2);
	assert_int_equal(t->n_excluded, 3);
	assert_int_equal(t->row[0], 0);
	assert_int_equal(t->row[1], 4);
	assert_true(t->column[1].number[1] == 4.0 && t->time[1] == 4.0);
	assert_int_equal(t->n_ignored, 0);
	drop(t);
	schema_free(s);
}

static uint64_t fingerprint(const char *text, const struct schema *s)
{
	struct table *t = must(text, s, true);
	uint64_t h = t->fingerprint;

	drop(t);
	return h;
}

TEST(test_fingerprint_follows_the_data_and_nothing_else)
{
	const char *base = "network,cpus,njobs,batch,time_s\nx,4,3,64,1\ny,2,1,128,2\n";
	uint64_t h = fingerprint(base, default_schema);

	assert_true(h == fingerprint("network,cpu,njobs,batch,time_s\nx,4,3,64.0,1\ny,2,1,1.28e2,2\n",
				     default_schema));
	assert_true(h == fingerprint("time_s,network,cpus,njobs,batch,z\n1,x,4,3,64,?\n2,y,2,1,128,?\n",
				     default_schema));
	assert_true(fingerprint("network,cpus,njobs,batch,time_s\nx,0,3,64,1\n", default_schema) ==
		    fingerprint("network,cpus,njobs,batch,time_s\nx,-0,3,64,1\n", default_schema));
	assert_true(h != fingerprint("network,cpus,njobs,batch,time_s\nx,4,3,64,1\ny,2,1,128,2.0000000001\n",
				     default_schema));
	assert_true(h != fingerprint("network,cpus,njobs,batch,time_s\ny,2,1,128,2\nx,4,3,64,1\n",
				     default_schema));
	assert_true(h != fingerprint("network,cpus,njobs,batch,time_s\nx,4,3,64,1\n", default_schema));
	assert_true(h != fingerprint("network,cpus,njobs,batch,time_s\nxy,4,3,64,1\n,2,1,128,2\n",
				     default_schema));
	assert_true(h != fingerprint("network,cpus,njobs,batch,time_s,epochs\nx,4,3,64,1,\ny,2,1,128,2,\n",
				     default_schema));
}

TEST(test_the_real_measurements_read)
{
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");
	struct schema *s = NULL;
	struct csv *csv = NULL;
	struct table *t = NULL;
	struct err err = { 0 };

	if (!path)
		skip();
	if (schema_read_file("configs/schemas/courier-bigdl.json", &s, &err) ||
	    csv_read_file(path, &csv, &err) || table_read(csv, s, true, &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(t->n_rows, 89);
	assert_int_equal(t->n_excluded, 7);
	assert_int_equal(t->n_ignored, 0);
	assert_non_null(t->accuracy);
	table_free(t);
	csv_free(csv);
	schema_free(s);
}

TEST(test_running_out_of_memory_is_an_error_and_leaks_nothing)
{
	struct csv *csv =
		csv_of("network,cpus,njobs,batch,time_s,accuracy,processes,odd\nx,4,3,64,1,0.5,,1\n");
	struct csv *wrong = csv_of("network\nx\n");
	bool more = true;

	for (unsigned long k = 1; more; k++) {
		struct table *t = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = table_read(csv, default_schema, true, &t, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		assert_true(more == !t);
		table_free(t);
	}
	more = true;
	for (unsigned long k = 1; more; k++) { /* on the way to an error, too */
		struct table *t = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = table_read(wrong, default_schema, true, &t, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : -ERR_FORMAT);
	}
	csv_free(csv);
	csv_free(wrong);
}
