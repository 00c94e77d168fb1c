/* predictors/data/schema: columns, kinds and derived features from JSON, and clear errors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "predictors/data/schema.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int read_text(const char *text, struct schema **out, struct err *err)
{
	struct json *v = NULL;
	int rc = json_parse("s.json", text, strlen(text), &v, err);

	if (!rc)
		rc = schema_from_json("s.json", v, out, err);
	json_free(v);
	return rc;
}

static struct schema *must(const char *text)
{
	struct schema *s = NULL;
	struct err err = { 0 };

	if (read_text(text, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* To be freed. */
static char *written(const struct schema *s)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	schema_to_json(s, &w);
	assert_false(out.failed);
	return out.text;
}

static void refuses(const char *text, const char *say)
{
	struct schema *s = NULL;
	struct err err = { 0 };
	int rc = read_text(text, &s, &err);

	if (rc != -ERR_FORMAT || s)
		fail_msg("taken, or code %d: %s", rc, text);
	if (strncmp(err.text, "s.json", 6) || !strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

#define BATCH "{\"name\":\"batch\",\"kind\":\"number\"}"
#define NETWORK "{\"name\":\"network\",\"kind\":\"category\"}"
#define REST "\"decision\":\"batch\",\"targets\":{\"time\":\"time_s\"}"

TEST(test_the_default_is_what_the_design_says)
{
	static const char *const name[] = { "network", "cpus",    "njobs",     "batch",
					    "epochs",  "samples", "other_load" };
	struct schema *s = NULL;

	assert_int_equal(schema_default(&s, NULL), 0);
	assert_int_equal(s->n_columns, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(s->column[i].name, name[i]);
		assert_int_equal(s->column[i].kind, i ? COLUMN_NUMBER : COLUMN_CATEGORY);
		assert_int_equal(s->column[i].optional, i > 3);
	}
	assert_int_equal(schema_find(s, "cpu"), 1);
	assert_int_equal(schema_find(s, "cpus"), 1);
	assert_int_equal(schema_find(s, "lr"), -1);
	assert_int_equal(schema_find(s, "processes"), -1);
	assert_int_equal(schema_find_any(s, "processes"), 7);
	assert_int_equal(schema_find_any(s, "cpu"), 1);
	assert_int_equal(schema_find_any(s, "time_s"), -1);
	assert_string_equal(schema_source_name(s, 7), "processes");
	assert_string_equal(s->decision, "batch");
	assert_string_equal(s->time, "time_s");
	assert_string_equal(s->accuracy, "accuracy");
	assert_int_equal(s->n_candidates, 0);
	schema_free(s);
	schema_free(NULL);
}

TEST(test_the_default_file_says_the_same)
{
	struct schema *built_in = NULL, *file = NULL;
	struct err err = { 0 };
	char *a, *b;

	assert_int_equal(schema_default(&built_in, NULL), 0);
	if (schema_read_file("configs/schemas/default.json", &file, &err))
		fail_msg("%s", err.text);
	a = written(built_in);
	b = written(file);
	assert_string_equal(a, b);
	free(a);
	free(b);
	schema_free(built_in);
	schema_free(file);
}

TEST(test_the_schema_of_the_measurements_reads)
{
	struct schema *s = NULL;
	struct err err = { 0 };

	if (schema_read_file("configs/schemas/courier-bigdl.json", &s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s->n_candidates, 4);
	assert_int_equal(s->n_excludes, 1);
	assert_string_equal(s->exclude[0].column, "suspect");
	assert_string_equal(s->exclude[0].value, "yes");
	schema_free(s);
}

static const char everything[] =
	"{\"columns\":[{\"name\":\"network\",\"kind\":\"category\",\"optional\":true},"
	"{\"name\":\"cpus\",\"kind\":\"number\",\"alias\":[\"cpu\",\"Total, cpus = all\"]}," BATCH "],"
	"\"derived\":[{\"name\":\"processes\",\"product\":[\"cpus\",\"batch\",\"cpus\"]},"
	"{\"name\":\"inverse\",\"inverse\":\"processes\"},{\"name\":\"log\",\"log\":\"inverse\"}],"
	"\"decision\":\"batch\",\"candidates\":[64,0.1,512,128],"
	"\"targets\":{\"time\":\"time_s\",\"accuracy\":\"acc\"},"
	"\"exclude\":{\"suspect\":[\"yes\",\"maybe\"],\"cpu\":\"3\"},\"ignore\":[\"note\",\"lr\"]}";

TEST(test_what_is_written_reads_back_the_same)
{
	struct schema *s = must(everything), *t;
	char *a = written(s), *b;

	t = must(a);
	b = written(t);
	assert_string_equal(a, b);
	assert_int_equal(t->n_columns, 3);
	assert_int_equal(t->column[1].n_aliases, 2);
	assert_true(t->column[0].optional);
	assert_int_equal(t->n_excludes, 3);
	assert_string_equal(t->exclude[1].value, "maybe");
	assert_int_equal(t->n_ignores, 2);
	assert_true(t->candidate[0] == 0.1 && t->candidate[3] == 512.0); /* ascending */
	free(a);
	free(b);
	schema_free(s);
	schema_free(t);
}

TEST(test_roles_go_by_name_or_by_what_the_schema_says)
{
	struct schema *s = must("{\"columns\":[{\"name\":\"executors\",\"kind\":\"number\"},"
				"{\"name\":\"njobs\",\"kind\":\"number\"},"
				"{\"name\":\"samples\",\"kind\":\"category\"}," BATCH "],"
				"\"derived\":[{\"name\":\"load\",\"product\":[\"executors\",\"njobs\"]}],"
				"\"roles\":{\"cpus\":\"executors\",\"processes\":\"load\"}," REST "}"),
		      *t;
	char *a = written(s), *b;

	t = must(a);
	b = written(t);
	assert_string_equal(a, b);
	assert_int_equal(schema_role(t, ROLE_CPUS), 0);
	assert_int_equal(schema_role(t, ROLE_NJOBS), 1);
	assert_int_equal(schema_role(t, ROLE_SAMPLES), -1); /* that column is a category */
	assert_int_equal(schema_role(t, ROLE_EPOCHS), -1);
	assert_int_equal(schema_role(t, ROLE_BATCH), 3); /* the decision */
	assert_int_equal(schema_role(t, ROLE_PROCESSES), 4); /* a derived column */
	assert_int_equal(schema_role(t, ROLE_NONE), -1);
	assert_int_equal(schema_role(t, ROLE_CATEGORY), -1);
	free(a);
	free(b);
	schema_free(s);
	schema_free(t);
	s = must("{\"columns\":[{\"name\":\"hogs\",\"kind\":\"number\"}," BATCH
		 "],\"roles\":{\"other\":\"hogs\"}," REST "}");
	assert_int_equal(schema_role(s, ROLE_OTHER), 0);
	schema_free(s);
	assert_int_equal(schema_default(&s, NULL), 0);
	assert_string_equal(s->column[schema_role(s, ROLE_OTHER)].name, "other_load");
	schema_free(s);
	refuses("{\"columns\":[" BATCH "],\"roles\":{\"cpus\":\"bathc\"}," REST "}", "did you mean 'batch'?");
	refuses("{\"columns\":[" BATCH "],\"roles\":{\"cpu\":\"batch\"}," REST "}", "cpus");
	refuses("{\"columns\":[" BATCH "],\"roles\":{\"batch\":\"batch\"}," REST "}", "roles");
	refuses("{\"columns\":[" BATCH "],\"roles\":{\"cpus\":5}," REST "}", "roles.cpus");
	refuses("{\"columns\":[" BATCH "],\"roles\":[]," REST "}", "roles");
	refuses("{\"columns\":[{\"name\":\"n\",\"kind\":\"category\"}," BATCH
		"],\"roles\":{\"cpus\":\"n\"}," REST "}",
		"category");
}

TEST(test_derived_columns_know_where_their_inputs_are)
{
	struct schema *s = must(everything);
	double number[] = { NAN, 2.5, 4.0, NAN, NAN, NAN };

	assert_int_equal(s->derived[0].source[2], 1);
	assert_int_equal(s->derived[1].source[0], 3);
	assert_int_equal(s->derived[2].source[0], 4);
	number[3] = schema_derive(&s->derived[0], number);
	assert_true(number[3] == 25.0);
	number[4] = schema_derive(&s->derived[1], number);
	assert_true(number[4] == 0.04);
	assert_true(schema_derive(&s->derived[2], number) == log(0.04));
	schema_free(s);
}

TEST(test_deriving_has_an_answer_for_awkward_numbers)
{
	struct schema *s = must(everything);
	double huge[] = { NAN, 1e200, 0.0, 0.0, 0.0, NAN };

	assert_true(schema_derive(&s->derived[0], huge) == 0.0);
	huge[2] = 1e200;
	assert_true(isinf(schema_derive(&s->derived[0], huge)));
	assert_true(isinf(schema_derive(&s->derived[1], huge)));
	assert_true(isinf(schema_derive(&s->derived[2], huge)));
	huge[4] = -2.0;
	assert_true(isinf(schema_derive(&s->derived[2], huge)));
	huge[1] = NAN;
	assert_true(isnan(schema_derive(&s->derived[0], huge)));
	huge[4] = huge[3] = NAN;
	assert_true(isnan(schema_derive(&s->derived[1], huge)));
	assert_true(isnan(schema_derive(&s->derived[2], huge)));
	schema_free(s);

	s = must("{\"columns\":[{\"name\":\"a\",\"kind\":\"number\"},{\"name\":\"b\",\"kind\":\"number\"}"
		 "," BATCH "],\"derived\":[{\"name\":\"p\",\"product\":[\"a\",\"a\",\"b\"]},{\"name\":"
		 "\"one\",\"product\":"
		 "[\"b\"]}]," REST "}");
	double order[] = { 1e200, 0.0, 1.0 };
	assert_true(isinf(schema_derive(&s->derived[0], order))); /* never NaN, which would mean missing */
	order[1] = NAN;
	assert_true(isnan(schema_derive(&s->derived[0], order)));
	assert_true(isnan(schema_derive(&s->derived[1], order)));
	schema_free(s);
}

TEST(test_a_schema_of_one_column_is_enough)
{
	struct schema *s = must("{\"columns\":[" BATCH "]," REST "}");

	assert_int_equal(s->n_columns, 1);
	assert_null(s->accuracy);
	assert_int_equal(s->n_derived + s->n_excludes + s->n_ignores + s->n_candidates, 0);
	schema_free(s);
}

TEST(test_misspelt_keys_name_the_nearest)
{
	refuses("{\"colums\":[" BATCH "]," REST "}", "columns");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kid\":\"number\"}]," REST "}", "kind");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"x\",\"prodct\":[\"batch\"]}]," REST "}",
		"product");
	refuses("{\"columns\":[" BATCH "],\"decision\":\"batch\",\"targets\":{\"tim\":\"t\"}}", "time");
}

TEST(test_wrong_kinds_of_values_are_named)
{
	refuses("[]", "object");
	refuses("{" REST "}", "columns: is not given");
	refuses("{\"columns\":{}," REST "}", "columns");
	refuses("{\"columns\":[3]," REST "}", "columns[0]");
	refuses("{\"columns\":[{\"kind\":\"number\"}]," REST "}", "columns[0].name: must be a string");
	refuses("{\"columns\":[{\"name\":\"\",\"kind\":\"number\"}]," REST "}", "columns[0].name");
	refuses("{\"columns\":[{\"name\":\"a,b\",\"kind\":\"number\"}]," REST "}", "alias");
	refuses("{\"columns\":[{\"name\":\"a=b\",\"kind\":\"number\"}]," REST "}", "alias");
	refuses("{\"columns\":[{\"name\":\"a\\nb\",\"kind\":\"number\"}]," REST "}", "control");
	refuses("{\"columns\":[{\"name\":\" a\",\"kind\":\"number\"}]," REST "}", "blank");
	refuses("{\"columns\":[{\"name\":\"batch\"}]," REST "}", "columns[0].kind");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"text\"}]," REST "}", "columns[0].kind");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"optional\":1}]," REST "}",
		"columns[0].optional");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"alias\":\"b\"}]," REST "}",
		"columns[0].alias");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"alias\":[1]}]," REST "}",
		"columns[0].alias");
	refuses("{\"columns\":[" BATCH "],\"derived\":{}," REST "}", "derived");
	refuses("{\"columns\":[" BATCH "],\"derived\":[1]," REST "}", "derived[0]");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"log\":\"batch\"}]," REST "}", "derived[0].name");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"x\"}]," REST "}", "'x': need product");
	refuses("{\"columns\":[" BATCH
		"],\"derived\":[{\"name\":\"x\",\"log\":\"batch\",\"inverse\":\"batch\"}]," REST "}",
		"'x': both inverse and log");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"x\",\"product\":[]}]," REST "}",
		"product: has 0 entries");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"x\",\"product\":\"batch\"}]," REST "}",
		"product");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"x\",\"log\":[\"batch\"]}]," REST "}",
		"log");
	refuses("{\"columns\":[" BATCH "],\"targets\":{\"time\":\"t\"}}", "decision");
	refuses("{\"columns\":[" BATCH "],\"decision\":\"batch\"}", "targets");
	refuses("{\"columns\":[" BATCH "],\"decision\":\"batch\",\"targets\":{}}", "targets.time");
	refuses("{\"columns\":[" BATCH
		"],\"decision\":\"batch\",\"targets\":{\"time\":\"t\",\"accuracy\":5}}",
		"targets.accuracy");
	refuses("{\"columns\":[" BATCH "],\"candidates\":64," REST "}", "candidates");
	refuses("{\"columns\":[" BATCH "],\"candidates\":[\"64\"]," REST "}", "candidates[0]");
	refuses("{\"columns\":[" BATCH "],\"candidates\":[64,128,64]," REST "}", "64 appears twice");
	refuses("{\"columns\":[" BATCH "],\"exclude\":[\"suspect\"]," REST "}", "exclude");
	refuses("{\"columns\":[" BATCH "],\"exclude\":{\"suspect\":1}," REST "}", "exclude.suspect");
	refuses("{\"columns\":[" BATCH "],\"exclude\":{\"suspect\":[1]}," REST "}", "exclude.suspect");
	refuses("{\"columns\":[" BATCH "],\"exclude\":{\"\":\"x\"}," REST "}", "exclude");
	refuses("{\"columns\":[" BATCH "],\"exclude\":{\"a\":[\"x\",\"x\"]}," REST "}", "twice");
	refuses("{\"columns\":[" BATCH "],\"ignore\":\"note\"," REST "}", "ignore");
}

TEST(test_contradictions_say_which_names)
{
	refuses("{\"columns\":[" BATCH "," BATCH "]," REST "}", "column 'batch'");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"alias\":[\"batch\"]}]," REST "}",
		"alias 'batch'");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"alias\":[\"b\",\"b\"]}]," REST "}",
		"alias 'b'");
	refuses("{\"columns\":[" BATCH ",{\"name\":\"n\",\"kind\":\"number\",\"alias\":[\"batch\"]}]," REST
		"}",
		"alias 'batch'");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"alias\":[\"n\"]},"
		"{\"name\":\"n\",\"kind\":\"number\"}]," REST "}",
		"column 'n': there is an alias");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"batch\",\"log\":\"batch\"}]," REST "}",
		"derived column 'batch'");
	refuses("{\"columns\":[" BATCH
		"],\"derived\":[{\"name\":\"x\",\"log\":\"batch\"},{\"name\":\"x\",\"log\":"
		"\"batch\"}]," REST "}",
		"derived column 'x'");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"x\",\"log\":\"bacth\"}]," REST "}",
		"did you mean 'batch'?");
	refuses("{\"columns\":[" BATCH
		"],\"derived\":[{\"name\":\"x\",\"log\":\"y\"},{\"name\":\"y\",\"log\":\"batch\"}]," REST "}",
		"not a column before it");
	refuses("{\"columns\":[" BATCH "],\"derived\":[{\"name\":\"x\",\"log\":\"x\"}]," REST "}",
		"not a column before it");
	refuses("{\"columns\":[" NETWORK "," BATCH
		"],\"derived\":[{\"name\":\"x\",\"product\":[\"batch\",\"network\"]}]," REST "}",
		"product of 'network', which is a category");
	refuses("{\"columns\":[" BATCH "],\"decision\":\"bach\",\"targets\":{\"time\":\"t\"}}",
		"did you mean 'batch'?");
	refuses("{\"columns\":[" NETWORK "],\"decision\":\"network\",\"targets\":{\"time\":\"t\"}}",
		"is a category");
	refuses("{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"optional\":true}]," REST "}",
		"is optional");
	refuses("{\"columns\":[" BATCH
		"],\"derived\":[{\"name\":\"x\",\"log\":\"batch\"}],\"decision\":\"x\","
		"\"targets\":{\"time\":\"t\"}}",
		"decision 'x'");
	refuses("{\"columns\":[" BATCH "],\"decision\":\"batch\",\"targets\":{\"time\":\"batch\"}}",
		"targets.time: 'batch'");
	refuses("{\"columns\":[" BATCH
		"],\"decision\":\"batch\",\"targets\":{\"time\":\"t\",\"accuracy\":\"batch\"}}",
		"targets.accuracy: 'batch'");
	refuses("{\"columns\":[" BATCH
		"],\"decision\":\"batch\",\"targets\":{\"time\":\"t\",\"accuracy\":\"t\"}}",
		"both time and accuracy");
	refuses("{\"columns\":[" BATCH "],\"ignore\":[\"batch\"]," REST "}", "ignore: 'batch' is a column");
	refuses("{\"columns\":[" BATCH "],\"ignore\":[\"time_s\"]," REST "}", "ignore: 'time_s' is a target");
	refuses("{\"columns\":[" BATCH "],\"ignore\":[\"a\",\"a\"]," REST "}", "ignore: 'a'");
}

/* A schema of `columns` columns c0, c1, ..., the first the decision, and `derived` derived ones. */
static char *of_size(size_t columns, size_t derived)
{
	struct strbuf b = { 0 };

	strbuf_puts(&b, "{\"columns\":[");
	for (size_t i = 0; i < columns; i++)
		strbuf_printf(&b, "%s{\"name\":\"c%zu\",\"kind\":\"number\"}", i ? "," : "", i);
	strbuf_puts(&b, "],\"derived\":[");
	for (size_t i = 0; i < derived; i++)
		strbuf_printf(&b, "%s{\"name\":\"d%zu\",\"log\":\"c0\"}", i ? "," : "", i);
	strbuf_puts(&b, "],\"decision\":\"c0\",\"targets\":{\"time\":\"t\"}}");
	return b.text;
}

TEST(test_limits_hold_on_both_sides)
{
	static const size_t fits[][2] = { { 256, 0 }, { 255, 1 }, { 1, 255 } };
	static const size_t not [][2] = { { 257, 0 }, { 255, 2 }, { 1, 257 } };
	struct strbuf b = { 0 };
	char *text;

	for (size_t i = 0; i < 3; i++) {
		text = of_size(fits[i][0], fits[i][1]);
		schema_free(must(text));
		free(text);
		text = of_size(not [i][0], not [i][1]);
		refuses(text, "at most 256");
		free(text);
	}
	for (int n = 128; n <= 129; n++) { /* a name's bytes */
		strbuf_reset(&b);
		strbuf_printf(&b,
			      "{\"columns\":[{\"name\":\"%0*d\",\"kind\":\"number\"}],\"decision\":\"%0*d\","
			      "\"targets\":{\"time\":\"t\"}}",
			      n, 1, n, 1);
		if (n == 128)
			schema_free(must(strbuf_text(&b)));
		else
			refuses(strbuf_text(&b), "1 to 128 bytes");
	}
	for (int n = 64; n <= 65; n++) { /* candidates */
		strbuf_reset(&b);
		strbuf_puts(&b, "{\"columns\":[" BATCH "]," REST ",\"candidates\":[");
		for (int i = 0; i < n; i++)
			strbuf_printf(&b, "%s%d", i ? "," : "", i);
		strbuf_puts(&b, "]}");
		if (n == 64)
			schema_free(must(strbuf_text(&b)));
		else
			refuses(strbuf_text(&b), "1 to 64");
	}
	for (int n = 16; n <= 17; n++) { /* aliases */
		strbuf_reset(&b);
		strbuf_puts(&b, "{\"columns\":[{\"name\":\"batch\",\"kind\":\"number\",\"alias\":[");
		for (int i = 0; i < n; i++)
			strbuf_printf(&b, "%s\"a%d\"", i ? "," : "", i);
		strbuf_puts(&b, "]}]," REST "}");
		if (n == 16)
			schema_free(must(strbuf_text(&b)));
		else
			refuses(strbuf_text(&b), "at most 16");
	}
	for (int n = 1024; n <= 1025; n++) { /* ignored columns */
		strbuf_reset(&b);
		strbuf_puts(&b, "{\"columns\":[" BATCH "]," REST ",\"ignore\":[");
		for (int i = 0; i < n; i++)
			strbuf_printf(&b, "%s\"i%d\"", i ? "," : "", i);
		strbuf_puts(&b, "]}");
		if (n == 1024)
			schema_free(must(strbuf_text(&b)));
		else
			refuses(strbuf_text(&b), "at most 1024");
	}
	strbuf_release(&b);
}

TEST(test_files_that_are_not_there_or_not_json)
{
	const char *path = support_path(support_temp_dir(), "bad.json");
	struct schema *s = NULL;
	struct err err = { 0 };

	assert_int_equal(schema_read_file(support_path(support_temp_dir(), "none.json"), &s, &err),
			 -ERR_NOTFOUND);
	assert_int_equal(io_write_file(path, "{\"columns\":\n[}", 13, &err), 0);
	assert_int_equal(schema_read_file(path, &s, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "bad.json:2:2"));
	assert_null(s);
}

TEST(test_running_out_of_memory_is_an_error_and_leaks_nothing)
{
	const char *path = support_path(support_temp_dir(), "all.json");
	bool more = true;

	assert_int_equal(io_write_file(path, everything, strlen(everything), NULL), 0);
	for (unsigned long k = 1; more; k++) {
		struct schema *s = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = schema_read_file(path, &s, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		assert_true(more == !s);
		schema_free(s);
	}
}

/* ---- a table without a schema ---- */

static struct schema *of_table(const char *text)
{
	struct schema *s = NULL;
	struct csv *csv = NULL;
	struct err err = { 0 };

	if (csv_parse("t.csv", text, strlen(text), &csv, &err) || schema_for_table(csv, &s, &err))
		fail_msg("%s", err.text);
	csv_free(csv);
	return s;
}

#define MEASURED                                                                                             \
	"time_s,accuracy,other_load,cpu_mean,iowait_mean,job_cpu_mean,job_iowait_mean,max_rss_mb,"           \
	"replication,copy,status,started_at\n"
#define MEASURED_ROW "1,0.5,0,0,0,0,0,9,1,1,ok,now\n"

TEST(test_columns_of_a_profiled_table_are_factors)
{
	struct schema *s = of_table("njobs,batch,hidden,optimizer," MEASURED "1,64,32,adam," MEASURED_ROW
				    "1,64,,7," MEASURED_ROW);

	assert_true(schema_find(s, "network") < 0 && schema_find(s, "cpus") < 0 && s->n_derived == 0);
	assert_true(schema_find(s, "hidden") >= 0 && schema_find(s, "optimizer") >= 0);
	assert_int_equal(s->column[schema_find(s, "hidden")].kind, COLUMN_NUMBER);
	assert_int_equal(s->column[schema_find(s, "optimizer")].kind, COLUMN_CATEGORY);
	assert_true(schema_find_any(s, "max_rss_mb") < 0);
	schema_free(s);
	s = of_table("network,cpus,njobs,batch,wide," MEASURED "x,2,1,64,3," MEASURED_ROW);
	assert_int_equal(schema_find_any(s, "processes"), (int)s->n_columns);
	assert_int_equal(s->derived[0].source[0], schema_find(s, "cpus"));
	assert_int_equal(s->derived[0].source[1], schema_find(s, "njobs"));
	schema_free(s);
}

TEST(test_columns_of_other_tables_are_ignored_as_before)
{
	struct schema *s = of_table("njobs,batch,hidden,time_s\n1,64,32,5\n");

	assert_true(schema_find(s, "hidden") < 0 && schema_find(s, "network") < 0);
	schema_free(s);
	s = of_table("netwrk,cpux,njobs,batch,time_s\nx,1,1,64,5\n"); /* slips, which reading will name */
	assert_true(schema_find(s, "network") >= 0 && schema_find(s, "cpus") >= 0);
	schema_free(s);
	s = of_table("network,cpu,njobs,batch,time_s\nx,1,1,64,5\n");
	assert_true(schema_find(s, "network") >= 0 && schema_find(s, "cpus") >= 0);
	schema_free(s);
}
