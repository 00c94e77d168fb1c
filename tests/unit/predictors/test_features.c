/* predictors/data/features: columns and derived columns as numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/features.h"
#include "tests/support/test.h"
#include "tests/unit/predictors/data_text.h"

TEST_GROUP(open_default_schema, close_default_schema);

/* A table with all that hangs on it. */
struct fixture {
	struct csv *csv;
	struct table *t;
	struct features *f;
};

static struct fixture fit(const char *text, const struct schema *s)
{
	struct fixture x = { 0 };
	struct err err = { 0 };

	if (csv_parse("t.csv", text, strlen(text), &x.csv, &err) || table_read(x.csv, s, false, &x.t, &err) ||
	    features_fit(x.t, &x.f, &err))
		fail_msg("%s", err.text);
	return x;
}

static void drop(struct fixture *x)
{
	features_free(x->f);
	table_free(x->t);
	csv_free(x->csv);
}

static void encode(const struct features *f, const char *job, double *x)
{
	struct job_values v;
	struct err err = { 0 };

	if (job_values_init(&v, f->schema, &err) || job_values_parse(&v, f->schema, job, &err))
		fail_msg("%s", err.text);
	features_encode_job(f, &v, x);
	job_values_release(&v);
}

static bool extrapolated(const struct features *f, const char *job)
{
	double x[FEATURES_MAX];

	encode(f, job, x);
	return features_extrapolated(f, x);
}

static const char two[] = "network,cpus,njobs,batch,time_s\n"
			  "vgg,1,1,64,1\nlenet5,4,3,512,1\nvgg,2,5,128,1\n";
static const char three[] = "network,cpus,njobs,batch,time_s\n"
			    "vgg,1,1,64,1\nlenet5,4,3,512,1\nalexnet,2,5,128,1\n";
static const char one[] = "network,cpus,njobs,batch,time_s\nvgg,1,1,64,1\nvgg,4,1,512,1\n";

TEST(test_two_valued_categories_become_one_column)
{
	static const char *const name[] = { "network", "cpus", "njobs", "batch", "processes" };
	static const double want[] = { 1, 1, 1, 64, 1, 0, 4, 3, 512, 12, 1, 2, 5, 128, 10 };
	struct fixture x = fit(two, default_schema);
	double *m = NULL;

	assert_int_equal(x.f->n, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(x.f->feature[i].name, name[i]);
	assert_string_equal(x.f->feature[0].category_zero, "lenet5"); /* alphabetically first */
	assert_string_equal(x.f->feature[0].category, "vgg");
	assert_int_equal(x.f->feature[4].source, 7);
	assert_int_equal(features_encode_table(x.f, x.t, &m, NULL), 0);
	assert_memory_equal(m, want, sizeof want);
	free(m);
	drop(&x);
	features_free(NULL);
}

TEST(test_more_values_become_a_column_each)
{
	static const char *const name[] = { "network=alexnet", "network=lenet5", "network=vgg", "cpus" };
	struct fixture x = fit(three, default_schema);
	double v[7];

	assert_int_equal(x.f->n, 7);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(x.f->feature[i].name, name[i]);
	assert_null(x.f->feature[0].category_zero);
	encode(x.f, "network=lenet5,cpus=2,njobs=3,batch=100", v);
	assert_true(v[0] == 0.0 && v[1] == 1.0 && v[2] == 0.0 && v[3] == 2.0 && v[6] == 6.0);
	encode(x.f, "network=resnet,cpus=2,njobs=3,batch=100", v);
	assert_true(isnan(v[0]) && isnan(v[1]) && isnan(v[2]) && v[3] == 2.0);
	encode(x.f, "cpus=2,njobs=3,batch=100", v);
	assert_true(isnan(v[0]) && isnan(v[1]) && isnan(v[2]));
	drop(&x);
}

TEST(test_a_single_value_stays_recognisable)
{
	struct fixture x = fit(one, default_schema);
	double v[5];

	assert_int_equal(x.f->n, 5);
	assert_string_equal(x.f->feature[0].name, "network");
	assert_string_equal(x.f->feature[0].category_zero, "vgg");
	assert_null(x.f->feature[0].category);
	assert_true(feature_is_category(&x.f->feature[0]));
	assert_false(feature_is_category(&x.f->feature[1]));
	encode(x.f, "network=vgg,cpus=1,njobs=1,batch=64", v);
	assert_true(v[0] == 0.0);
	assert_false(features_extrapolated(x.f, v));
	assert_true(extrapolated(x.f, "network=lenet5,cpus=1,njobs=1,batch=64"));
	drop(&x);
}

TEST(test_missing_values_are_nan_and_ranges_ignore_them)
{
	struct fixture x =
		fit("network,cpus,njobs,batch\n,1,1,64\nvgg,,1,512\nlenet5,3,1,128\n", default_schema);
	double *m = NULL;

	assert_int_equal(features_encode_table(x.f, x.t, &m, NULL), 0);
	assert_true(isnan(m[0]) && isnan(m[5 + 1]) &&
		    isnan(m[5 + 4])); /* network, cpus and what derives from it */
	assert_true(x.f->feature[1].min == 1.0 && x.f->feature[1].max == 3.0);
	free(m);
	drop(&x);
}

TEST(test_columns_without_any_value)
{
	struct fixture x = fit("network,cpus,njobs,batch\n,,1,64\n,,1,512\n", default_schema);

	assert_int_equal(x.f->n, 4); /* no feature for the category, one for the number */
	assert_string_equal(x.f->feature[0].name, "cpus");
	assert_true(isnan(x.f->feature[0].min) && isnan(x.f->feature[0].max));
	assert_false(extrapolated(x.f, "njobs=1,batch=100"));
	assert_true(extrapolated(x.f, "cpus=1,njobs=1,batch=100")); /* training never saw one */
	drop(&x);
}

TEST(test_constant_columns_and_one_row)
{
	struct fixture x = fit("network,cpus,njobs,batch\nvgg,2,1,64\n", default_schema);

	assert_int_equal(x.f->n, 5);
	assert_true(x.f->feature[3].min == 64.0 && x.f->feature[3].max == 64.0);
	assert_false(extrapolated(x.f, "network=vgg,cpus=2,njobs=1,batch=64"));
	assert_true(extrapolated(x.f, "network=vgg,cpus=2,njobs=1,batch=65"));
	drop(&x);
}

TEST(test_optional_columns_become_features_where_they_are)
{
	struct fixture x =
		fit("network,cpus,njobs,batch,samples\nvgg,2,1,64,60000\nvgg,2,1,64,1000\n", default_schema);

	assert_int_equal(x.f->n, 6);
	assert_string_equal(x.f->feature[4].name, "samples");
	assert_string_equal(x.f->feature[5].name, "processes");
	drop(&x);
}

TEST(test_extrapolation_has_sharp_edges)
{
	struct fixture x = fit(two, default_schema);

	assert_false(extrapolated(x.f, "network=vgg,cpus=1,njobs=1,batch=64"));
	assert_false(extrapolated(x.f, "network=lenet5,cpus=4,njobs=3,batch=512"));
	assert_true(extrapolated(x.f, "network=lenet5,cpus=4,njobs=3,batch=512.0000001"));
	assert_true(extrapolated(x.f, "network=lenet5,cpus=4,njobs=3,batch=63.9"));
	assert_true(extrapolated(x.f, "network=lenet5,cpus=4,njobs=5,batch=64")); /* 20 processes, 12 seen */
	assert_true(extrapolated(x.f, "network=resnet,cpus=1,njobs=1,batch=64"));
	assert_true(extrapolated(x.f, "cpus=1,njobs=1,batch=64"));
	assert_true(extrapolated(x.f, "network=vgg,njobs=1,batch=64"));
	assert_true(extrapolated(x.f, "network=vgg,cpus=1e308,njobs=1e308,batch=64"));
	drop(&x);
}

TEST(test_a_job_encodes_as_its_row_does)
{
	static const char *const text[] = { two, three, one };
	static const char *const job[][3] = {
		{ "network=vgg,cpus=1,njobs=1,batch=64", "network=lenet5,cpu=4,njobs=3,batch=512",
		  "batch=128,njobs=5,cpus=2,network=vgg" },
		{ "network=vgg,cpus=1,njobs=1,batch=64", "network=lenet5,cpu=4,njobs=3,batch=512",
		  "batch=128,njobs=5,cpus=2,network=alexnet" },
		{ "network=vgg,cpus=1,njobs=1,batch=64", "network=vgg,cpus=4,njobs=1,batch=512", NULL },
	};

	for (size_t k = 0; k < 3; k++) {
		struct fixture x = fit(text[k], default_schema);
		double *m = NULL, v[FEATURES_MAX];

		assert_int_equal(features_encode_table(x.f, x.t, &m, NULL), 0);
		for (size_t r = 0; r < x.t->n_rows; r++) {
			encode(x.f, job[k][r], v);
			assert_memory_equal(v, &m[r * x.f->n], x.f->n * sizeof *v);
			assert_false(features_extrapolated(x.f, v));
		}
		free(m);
		drop(&x);
	}
}

TEST(test_derived_values_are_computed_unless_given)
{
	static const char text[] = "{\"columns\":[{\"name\":\"a\",\"kind\":\"number\"}],\"derived\":["
				   "{\"name\":\"ia\",\"inverse\":\"a\"},{\"name\":\"lia\",\"log\":\"ia\"}],"
				   "\"decision\":\"a\",\"targets\":{\"time\":\"t\"}}";
	struct json *v = NULL;
	struct schema *s = NULL;
	struct fixture x;
	double e[3];

	assert_int_equal(json_parse("s", text, strlen(text), &v, NULL), 0);
	assert_int_equal(schema_from_json("s", v, &s, NULL), 0);
	x = fit("a,t\n1,1\n4,1\n", s);
	encode(x.f, "a=2", e);
	assert_true(e[0] == 2.0 && e[1] == 0.5 && e[2] == log(0.5));
	encode(x.f, "a=2,ia=0.25", e);
	assert_true(e[1] == 0.25 && e[2] == log(0.25));
	encode(x.f, "a=0", e); /* no finite value: missing, and so extrapolated */
	assert_true(e[0] == 0.0 && isnan(e[1]) && isnan(e[2]));
	encode(x.f, "a=-4", e);
	assert_true(e[1] == -0.25 && isnan(e[2]));
	drop(&x);
	schema_free(s);
	json_free(v);
}

TEST(test_a_table_with_fewer_columns_encodes_as_missing)
{
	struct fixture x =
		fit("network,cpus,njobs,batch,epochs\nvgg,2,1,64,10\nvgg,2,1,64,20\n", default_schema);
	struct fixture y = fit(one, default_schema);
	double *m = NULL;

	assert_int_equal(features_encode_table(x.f, y.t, &m, NULL), 0);
	assert_true(m[3] == 64.0 && isnan(m[4]));
	free(m);
	drop(&x);
	drop(&y);
}

TEST(test_no_rows_are_no_data)
{
	const char *text = "network,cpus,njobs,batch\n";
	struct csv *csv = NULL;
	struct table *t = NULL;
	struct features *f = NULL;
	struct err err = { 0 };

	assert_int_equal(csv_parse("t.csv", text, strlen(text), &csv, NULL), 0);
	assert_int_equal(table_read(csv, default_schema, false, &t, NULL), 0);
	assert_int_equal(features_fit(t, &f, &err), -ERR_NODATA);
	assert_non_null(strstr(err.text, "t.csv"));
	table_free(t);
	csv_free(csv);
}

TEST(test_the_limit_on_features_holds_on_both_sides)
{
	for (int n = FEATURES_MAX - 4; n <= FEATURES_MAX - 3; n++) { /* four other features */
		struct strbuf b = { 0 };
		struct csv *csv = NULL;
		struct table *t = NULL;
		struct features *f = NULL;
		struct err err = { 0 };
		int rc;

		strbuf_puts(&b, "network,cpus,njobs,batch\n");
		for (int i = 0; i < n; i++)
			strbuf_printf(&b, "net%d,1,1,64\n", i);
		assert_int_equal(csv_parse("t.csv", strbuf_text(&b), b.len, &csv, NULL), 0);
		assert_int_equal(table_read(csv, default_schema, false, &t, NULL), 0);
		rc = features_fit(t, &f, &err);
		if (n + 4 <= FEATURES_MAX) {
			assert_int_equal(rc, 0);
			assert_int_equal(f->n, FEATURES_MAX);
		} else {
			assert_int_equal(rc, -ERR_FORMAT);
			assert_non_null(strstr(err.text, "1024 features"));
		}
		features_free(f);
		table_free(t);
		csv_free(csv);
		strbuf_release(&b);
	}
	/* a single category that alone is too much */
	struct strbuf b = { 0 };
	struct csv *csv = NULL;
	struct table *t = NULL;
	struct features *f = NULL;
	struct err err = { 0 };

	strbuf_puts(&b, "network,cpus,njobs,batch\n");
	for (int i = 0; i < 3000; i++)
		strbuf_printf(&b, "net%d,1,1,64\n", i);
	assert_int_equal(csv_parse("t.csv", strbuf_text(&b), b.len, &csv, NULL), 0);
	assert_int_equal(table_read(csv, default_schema, false, &t, NULL), 0);
	assert_int_equal(features_fit(t, &f, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "'network' has 3000 different values"));
	table_free(t);
	csv_free(csv);
	strbuf_release(&b);
}

static int from_text(const char *text, struct features **out, struct err *err)
{
	struct json *v = NULL;
	int rc = json_parse("m", text, strlen(text), &v, err);

	if (!rc)
		rc = features_from_json("m", v, default_schema, out, err);
	json_free(v);
	return rc;
}

TEST(test_what_is_written_reads_back_the_same)
{
	static const char *const text[] = {
		two, three, one, "network,cpus,njobs,batch\nvgg,0.1,,1e308\nlenet5,1e-308,,-1e308\n"
	};

	for (size_t k = 0; k < 4; k++) {
		struct fixture x = fit(text[k], default_schema);
		struct strbuf a = { 0 }, b = { 0 };
		struct json_writer w;
		struct features *f = NULL;
		struct err err = { 0 };

		json_begin(&w, &a, false);
		assert_int_equal(features_to_json(x.f, &w), 0);
		if (from_text(strbuf_text(&a), &f, &err))
			fail_msg("%s", err.text);
		json_begin(&w, &b, false);
		assert_int_equal(features_to_json(f, &w), 0);
		assert_string_equal(strbuf_text(&a), strbuf_text(&b));
		assert_int_equal(f->n, x.f->n);
		assert_int_equal(f->derives, x.f->derives);
		for (size_t i = 0; i < f->n; i++) {
			assert_int_equal(f->feature[i].source, x.f->feature[i].source);
			assert_true(f->feature[i].min == x.f->feature[i].min || isnan(x.f->feature[i].min));
			assert_true(f->feature[i].max == x.f->feature[i].max || isnan(x.f->feature[i].max));
			assert_int_equal(isnan(f->feature[i].min), isnan(x.f->feature[i].min));
		}
		features_free(f);
		strbuf_release(&a);
		strbuf_release(&b);
		drop(&x);
	}
}

TEST(test_reading_refuses_what_fitting_never_makes)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"[1]",
		"[{\"source\":\"batch\",\"min\":1,\"max\":2}]",
		"[{\"name\":\"batch\",\"min\":1,\"max\":2}]",
		"[{\"name\":\"batch\",\"source\":\"batch\",\"max\":2}]",
		"[{\"name\":\"batch\",\"source\":\"batch\",\"min\":\"1\",\"max\":2}]",
		"[{\"name\":\"batch\",\"source\":\"batch\",\"min\":3,\"max\":2}]",
		"[{\"name\":\"batch\",\"source\":\"batch\",\"min\":null,\"max\":2}]",
		"[{\"name\":5,\"source\":\"batch\",\"min\":1,\"max\":2}]",
		"[{\"name\":\"batch\",\"source\":\"btch\",\"min\":1,\"max\":2}]",
		"[{\"name\":\"cpus\",\"source\":\"cpu\",\"min\":1,\"max\":2}]", /* an alias */
		"[{\"name\":\"batch\",\"source\":\"batch\",\"min\":1,\"max\":2,\"extra\":1}]",
		"[{\"name\":\"batch\",\"source\":\"batch\",\"one\":\"x\",\"min\":1,\"max\":2}]",
		"[{\"name\":\"network\",\"source\":\"network\",\"min\":0,\"max\":1}]",
		"[{\"name\":\"network\",\"source\":\"network\",\"one\":\"\",\"zero\":\"x\",\"min\":0,\"max\":"
		"1}]",
		"[{\"name\":\"batch\",\"source\":\"batch\",\"min\":1,\"max\":2},"
		"{\"name\":\"cpus\",\"source\":\"cpus\",\"min\":1,\"max\":2}]",
		"[{\"name\":\"batch\",\"source\":\"batch\",\"min\":1,\"max\":2},"
		"{\"name\":\"batch\",\"source\":\"batch\",\"min\":1,\"max\":2}]",
		"[{\"name\":\"a\",\"source\":\"network\",\"one\":\"b\",\"min\":0,\"max\":1},"
		"{\"name\":\"b\",\"source\":\"network\",\"one\":\"a\",\"min\":0,\"max\":1}]",
		"[{\"name\":\"a\",\"source\":\"network\",\"one\":\"a\",\"min\":0,\"max\":1},"
		"{\"name\":\"b\",\"source\":\"network\",\"one\":\"a\",\"min\":0,\"max\":1}]",
		"[{\"name\":\"a\",\"source\":\"network\",\"one\":\"a\",\"zero\":\"b\",\"min\":0,\"max\":1},"
		"{\"name\":\"b\",\"source\":\"network\",\"one\":\"b\",\"min\":0,\"max\":1}]",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct features *f = NULL;
		struct err err = { 0 };

		if (from_text(bad[i], &f, &err) != -ERR_FORMAT || f)
			fail_msg("taken: %s", bad[i]);
		if (strncmp(err.text, "m: ", 3))
			fail_msg("'%s' does not say where", err.text);
	}
}

static void refuses_job(const char *text, const char *say)
{
	struct job_values v;
	struct err err = { 0 };

	assert_int_equal(job_values_init(&v, default_schema, NULL), 0);
	if (job_values_parse(&v, default_schema, text, &err) != -ERR_ARG)
		fail_msg("taken: %s", text);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
	for (size_t i = 0; i < 7; i++)
		assert_true(isnan(v.number[i]) && !v.category[i]);
	job_values_release(&v);
}

TEST(test_jobs_are_read_as_pairs)
{
	struct job_values v;

	assert_int_equal(job_values_init(&v, default_schema, NULL), 0);
	assert_int_equal(job_values_parse(&v, default_schema, "", NULL), 0);
	assert_int_equal(
		job_values_parse(&v, default_schema, " network = le net5 , cpu=4 ,\tprocesses=1.5e1 ", NULL),
		0);
	assert_string_equal(v.category[0], "le net5");
	assert_true(v.number[1] == 4.0 && v.number[7] == 15.0 && isnan(v.number[2]));
	assert_int_equal(job_values_parse(&v, default_schema, "cpus=8,batch=64", NULL),
			 0); /* adds, and wins */
	assert_string_equal(v.category[0], "le net5");
	assert_true(v.number[1] == 8.0 && v.number[3] == 64.0);
	assert_int_equal(job_values_parse(&v, default_schema, "network=a=b", NULL), 0);
	assert_string_equal(v.category[0], "a=b");
	job_values_release(&v);
	job_values_release(&v);
	job_values_release(NULL);
}

TEST(test_bad_jobs_change_nothing_and_say_why)
{
	refuses_job("cpus=4,ntework=x", "did you mean 'network'?");
	refuses_job("cpus=4,qqqqqqqqqq=1", "known: network, cpus, njobs, batch");
	refuses_job("cpus=4,batch=big", "column batch: 'big' is not a number");
	refuses_job("cpus=4,batch=inf", "is not a number");
	refuses_job("cpus=4,batch=nan", "is not a number");
	refuses_job("cpus=4,batch=1e999", "is not a number");
	refuses_job("cpus=4,cpus=5", "cpus is given twice");
	refuses_job("cpus=4,cpu=4", "cpus is given twice");
	refuses_job("cpus=4,network=", "network=: need a value");
	refuses_job("cpus=4,batch= ", "batch=: need a value");
	refuses_job("cpus=4,", "need name=value");
	refuses_job(",cpus=4", "need name=value");
	refuses_job("cpus", "'cpus': need name=value");
	refuses_job("=4", "no column ''");
	refuses_job("time_s=4", "no column 'time_s'");
}

TEST(test_running_out_of_memory_is_an_error_and_leaks_nothing)
{
	static const char *const text[] = { two, three, one };
	bool more;

	for (size_t i = 0; i < 3; i++) {
		struct fixture x = fit(text[i], default_schema);
		struct strbuf json = { 0 };
		struct json_writer w;
		struct json *v = NULL;

		more = true;
		for (unsigned long k = 1; more; k++) {
			struct features *f = NULL;
			int rc;

			mem_fail_at(k, false);
			rc = features_fit(x.t, &f, NULL);
			more = mem_failed();
			mem_fail_at(0, false);
			assert_int_equal(rc, more ? -ERR_NOMEM : 0);
			features_free(f);
		}
		json_begin(&w, &json, false);
		features_to_json(x.f, &w);
		assert_int_equal(json_parse("m", strbuf_text(&json), json.len, &v, NULL), 0);
		more = true;
		for (unsigned long k = 1; more; k++) {
			struct features *f = NULL;
			int rc;

			mem_fail_at(k, false);
			rc = features_from_json("m", v, default_schema, &f, NULL);
			more = mem_failed();
			mem_fail_at(0, false);
			assert_int_equal(rc, more ? -ERR_NOMEM : 0);
			features_free(f);
		}
		json_free(v);
		strbuf_release(&json);
		drop(&x);
	}
	more = true;
	for (unsigned long k = 1; more; k++) {
		struct job_values v = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = job_values_init(&v, default_schema, NULL);
		if (!rc)
			rc = job_values_parse(&v, default_schema, "network=x,cpus=4", NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		job_values_release(&v);
	}
}

TEST(test_encoding_a_job_does_not_allocate)
{
	struct fixture x = fit(three, default_schema);
	struct job_values v;
	double e[7];

	assert_int_equal(job_values_init(&v, default_schema, NULL), 0);
	assert_int_equal(job_values_parse(&v, default_schema, "network=vgg,cpus=2,njobs=2,batch=64", NULL),
			 0);
	mem_fail_at(1, true);
	features_encode_job(x.f, &v, e);
	assert_false(features_extrapolated(x.f, e));
	assert_false(mem_failed());
	mem_fail_at(0, false);
	job_values_release(&v);
	drop(&x);
}

/* ---- other work on the machine ---- */

TEST(test_other_work_that_no_row_says_is_none)
{
	struct fixture x = fit("network,cpus,njobs,batch,other_load,time_s\na,1,1,64,2.1,1\na,2,3,64,,1\n",
			       default_schema);
	double v[6], *m = NULL;

	assert_int_equal(x.f->n, 6);
	assert_int_equal(x.f->other, 4);
	assert_true(x.f->feature[4].min == 0.0 && x.f->feature[4].max == 2.1);
	assert_int_equal(features_encode_table(x.f, x.t, &m, NULL), 0);
	assert_true(m[4] == 2.1 && m[6 + 4] == 0.0);
	encode(x.f, "network=a,cpus=1,njobs=1,batch=64", v);
	assert_true(v[4] == 0.0 && !features_extrapolated(x.f, v));
	encode(x.f, "network=a,cpus=1,njobs=1,batch=64,other_load=3", v);
	assert_true(v[4] == 3.0 && v[5] == 1.0 && features_extrapolated(x.f, v));
	free(m);
	drop(&x);
}

TEST(test_a_table_without_other_work_has_no_feature_of_it)
{
	static const char *const text[] = {
		"network,cpus,njobs,batch,time_s\na,1,1,64,1\na,2,3,64,1\n",
		"network,cpus,njobs,batch,other_load,time_s\na,1,1,64,0,1\na,2,3,64,0,1\n",
		"network,cpus,njobs,batch,other_load,time_s\na,1,1,64,,1\na,2,3,64,,1\n",
	};

	for (int i = 0; i < 3; i++) {
		struct fixture x = fit(text[i], default_schema);
		struct schema *s = NULL;
		double v[5];

		assert_int_equal(x.f->n, 5);
		assert_int_equal(x.f->other, -1);
		assert_int_equal(schema_clone(default_schema, &s, NULL), 0);
		x.f->schema = s;
		assert_int_equal(features_forget_other(x.f, s, i > 0, NULL), 0);
		assert_int_equal(schema_find_any(s, "other_load"), -1);
		assert_int_equal(s->n_columns, default_schema->n_columns - 1);
		assert_int_equal(s->n_ignores, default_schema->n_ignores + (i > 0));
		assert_int_equal(x.f->feature[4].source, schema_find_any(s, "processes"));
		encode(x.f, "network=a,cpus=2,njobs=3,batch=64", v);
		assert_true(v[4] == 6.0); /* derived columns find their sources */
		drop(&x);
		schema_free(s);
	}
}
