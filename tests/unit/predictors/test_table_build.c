/* Tables made in memory: they must be what the same rows in a CSV file would have become. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/features.h"
#include "tests/support/test.h"
#include "tests/unit/predictors/data_text.h"

#define NUMBER(n, v)                                                                                         \
	{                                                                                                    \
		.name = n, .number = v                                                                       \
	}
#define TEXT(n, t)                                                                                           \
	{                                                                                                    \
		.name = n, .text = t                                                                         \
	}
#define ADD(b, ...)                                                                                          \
	table_builder_row(b, (const struct table_value[]){ __VA_ARGS__ },                                    \
			  sizeof((const struct table_value[]){ __VA_ARGS__ }) / sizeof(struct table_value),  \
			  &last_error)

static struct schema *schema;
static struct err last_error;

static int set_up(void **state)
{
	(void)state;
	schema = schema_of(
		"{\"columns\":[{\"name\":\"network\",\"kind\":\"category\"},"
		"{\"name\":\"cpus\",\"kind\":\"number\",\"alias\":[\"cpu\",\"cores\"]},"
		"{\"name\":\"batch\",\"kind\":\"number\"},"
		"{\"name\":\"epochs\",\"kind\":\"number\",\"optional\":true}],"
		"\"derived\":[{\"name\":\"work\",\"product\":[\"cpus\",\"batch\"]},"
		"{\"name\":\"share\",\"inverse\":\"cpus\"}],"
		"\"decision\":\"batch\",\"targets\":{\"time\":\"time_s\",\"accuracy\":\"accuracy\"},"
		"\"exclude\":{\"status\":\"bad\",\"cpus\":\"99\"}}");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	schema_free(schema);
	return 0;
}

TEST_GROUP(set_up, tear_down);

static struct table_builder *builder(void)
{
	struct table_builder *b = NULL;

	last_error = (struct err){ 0 };
	assert_int_equal(table_builder_new("observations", schema, &b, &last_error), 0);
	return b;
}

static struct table *finish(struct table_builder *b, enum table_needs needs)
{
	struct table *t = NULL;

	if (table_builder_finish(b, needs, &t, &last_error))
		fail_msg("%s", last_error.text);
	table_builder_free(b);
	return t;
}

static struct table *table_of(const char *text, enum table_needs needs, struct csv **out_csv)
{
	struct table *t = NULL;
	struct err err = { 0 };

	if (csv_parse("t.csv", text, strlen(text), out_csv, &err) ||
	    table_read(*out_csv, schema, needs, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void same_text(const char *a, const char *b)
{
	assert_string_equal(a ? a : "(missing)", b ? b : "(missing)");
}

static void same_number(double a, double b)
{
	assert_true(a == b || (isnan(a) && isnan(b)));
}

static void same_tables(const struct table *a, const struct table *b)
{
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_excluded, b->n_excluded);
	for (size_t i = 0; i < schema->n_columns + schema->n_derived; i++) {
		assert_int_equal(a->column[i].present, b->column[i].present);
		assert_int_equal(a->column[i].kind, b->column[i].kind);
		for (size_t r = 0; r < a->n_rows && a->column[i].present; r++) {
			if (a->column[i].kind == COLUMN_CATEGORY)
				same_text(a->column[i].category[r], b->column[i].category[r]);
			else
				same_number(a->column[i].number[r], b->column[i].number[r]);
		}
	}
	assert_int_equal(!a->time, !b->time);
	assert_int_equal(!a->accuracy, !b->accuracy);
	for (size_t r = 0; r < a->n_rows; r++) {
		assert_int_equal(a->row[r], b->row[r]);
		if (a->time)
			same_number(a->time[r], b->time[r]);
		if (a->accuracy)
			same_number(a->accuracy[r], b->accuracy[r]);
	}
	assert_true(a->fingerprint == b->fingerprint);
}

/* ---- rows ---- */

TEST(test_rows_are_what_a_file_with_them_would_be)
{
	struct csv *csv = NULL;
	struct table *read = table_of("network,cpu,batch,work,time_s,accuracy,status\n"
				      "lenet5,2.5,64,,10.25,0.9,\n"
				      ",4,128,7,,,ok\n"
				      "3,1,256,,3,0.5,bad\n"
				      "vgg,,32,,8,,\n"
				      "3,99,32,,8,,\n"
				      "12,8,512,,2,0.25,\n",
				      TABLE_NEEDS_TARGETS, &csv);
	struct table_builder *b = builder();
	struct table *built;

	assert_int_equal(ADD(b, TEXT("network", "lenet5"), NUMBER("cpus", 2.5), NUMBER("batch", 64),
			     NUMBER("time_s", 10.25), NUMBER("accuracy", 0.9), NUMBER("unknown", 1)),
			 0);
	assert_int_equal(ADD(b, TEXT("network", ""), TEXT("cpu", "4"), TEXT("batch", "128"),
			     TEXT("work", "7"), TEXT("time_s", "NA"), TEXT("status", "ok")),
			 0);
	assert_int_equal(ADD(b, TEXT("cpus", "no number, and not looked at"), TEXT("status", "bad")), 0);
	assert_int_equal(
		ADD(b, TEXT("network", "vgg"), NUMBER("cpus", NAN), NUMBER("batch", 32), NUMBER("time_s", 8)),
		0);
	assert_int_equal(ADD(b, NUMBER("cpu", 99), NUMBER("time_s", 8)),
			 0); /* excluded by number and alias */
	assert_int_equal(ADD(b, NUMBER("network", 12), NUMBER("cpus", 8), NUMBER("batch", 512),
			     NUMBER("time_s", 2), NUMBER("accuracy", 0.25)),
			 0);
	built = finish(b, TABLE_NEEDS_TARGETS);
	same_tables(built, read);
	assert_int_equal(built->n_rows, 4);
	assert_int_equal(built->n_excluded, 2);
	assert_string_equal(built->column[0].category[3], "12");
	assert_true(built->column[4].number[1] == 7.0); /* given, so not derived */
	assert_true(built->column[4].number[3] == 8.0 * 512.0);
	assert_true(built->column[5].number[0] == 1.0 / 2.5);
	table_free(built);
	table_free(read);
	csv_free(csv);
}

TEST(test_of_two_names_of_a_column_its_own_counts)
{
	struct table_builder *b = builder();
	struct table *t;

	assert_int_equal(ADD(b, NUMBER("cpu", 2), NUMBER("cpus", 3), NUMBER("cores", 4)), 0);
	assert_int_equal(ADD(b, NUMBER("cpus", 5), NUMBER("cpu", 6)), 0);
	assert_int_equal(ADD(b, NUMBER("cores", 7), NUMBER("cpu", 8)), 0);
	t = finish(b, TABLE_NEEDS_NOTHING);
	assert_true(t->column[1].number[0] == 3 && t->column[1].number[1] == 5 &&
		    t->column[1].number[2] == 7);
	assert_null(t->time);
	assert_null(t->accuracy);
	assert_false(t->column[3].present); /* optional, and not named */
	assert_true(t->column[0].present && !t->column[0].category[0]); /* needed, and missing everywhere */
	table_free(t);
}

static void refuses(struct table_builder *b, struct table_value v, const char *say)
{
	struct err err = { 0 };
	const struct table_value value[] = { NUMBER("batch", 1), NUMBER("epochs", 1), v };

	assert_int_equal(table_builder_row(b, value, 3, &err), -ERR_FORMAT);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

TEST(test_a_row_that_cannot_be_used_says_why_and_changes_nothing)
{
	struct table_builder *b = builder();
	struct table *t;

	assert_int_equal(ADD(b, TEXT("network", "a"), NUMBER("cpus", 1), NUMBER("batch", 2)), 0);
	refuses(b, (struct table_value)TEXT("cpus", "many"),
		"observations: row 2: column cpus: 'many' is not a number");
	refuses(b, (struct table_value)NUMBER("cpus", INFINITY), "column cpus: 'inf' is not a number");
	refuses(b, (struct table_value)TEXT("time_s", "x"), "column time_s: 'x' is not a number");
	refuses(b, (struct table_value)TEXT("accuracy", "1e999"), "column accuracy: '1e999' is not a number");
	refuses(b, (struct table_value)NUMBER("time_s", 0.0), "column time_s: a time must be more than 0");
	refuses(b, (struct table_value)NUMBER("time_s", -1.0), "more than 0");
	refuses(b, (struct table_value)NUMBER("cpus", 0.0),
		"column share: the derived value is not a finite number");
	refuses(b, (struct table_value)TEXT("network", "\xff"), "column network: the text is not UTF-8");
	t = finish(b, TABLE_NEEDS_FACTORS);
	assert_int_equal(t->n_rows, 1);
	assert_int_equal(t->n_excluded, 0);
	assert_false(t->column[3].present); /* epochs were named by refused rows alone */
	assert_null(t->time);
	table_free(t);
}

TEST(test_a_column_that_is_needed_and_absent_is_an_error)
{
	struct table_builder *b = builder();
	struct table *t = NULL;

	assert_int_equal(ADD(b, TEXT("network", "a"), NUMBER("batch", 2)), 0);
	assert_int_equal(table_builder_finish(b, TABLE_NEEDS_FACTORS, &t, &last_error), -ERR_FORMAT);
	assert_string_equal(last_error.text, "observations: no column 'cpus', which the schema asks for");
	assert_int_equal(ADD(b, NUMBER("cpus", NAN)), 0); /* named, if only as missing */
	assert_int_equal(table_builder_finish(b, TABLE_NEEDS_TARGETS, &t, &last_error), -ERR_FORMAT);
	assert_string_equal(last_error.text, "observations: no column 'time_s', which the schema asks for");
	assert_null(t);
	t = finish(b, TABLE_NEEDS_FACTORS);
	assert_int_equal(t->n_rows, 2);
	table_free(t);
}

/* ---- tables ---- */

TEST(test_appended_tables_are_what_one_file_would_be)
{
	struct csv *part_csv = NULL, *all_csv = NULL;
	struct table *part = table_of("network,batch,epochs,time_s,status\n"
				      "a,64,3,10,\nb,128,4,11,bad\nb,256,5,12,\n",
				      TABLE_NEEDS_NOTHING, &part_csv);
	struct table *all = table_of("network,cpus,batch,epochs,time_s,accuracy,status\n"
				     "c,2,32,,1.5,0.5,\n"
				     "a,,64,3,10,,\nb,,128,4,11,,bad\nb,,256,5,12,,\n"
				     ",4,16,,2.5,,\n"
				     "a,,64,3,10,,\nb,,128,4,11,,bad\nb,,256,5,12,,\n",
				     TABLE_NEEDS_TARGETS, &all_csv);
	struct table_builder *b = builder();
	struct table *built;

	assert_int_equal(ADD(b, TEXT("network", "c"), NUMBER("cpus", 2), NUMBER("batch", 32),
			     NUMBER("time_s", 1.5), NUMBER("accuracy", 0.5)),
			 0);
	assert_int_equal(table_builder_append(b, part, NULL), 0);
	assert_int_equal(ADD(b, NUMBER("cpus", 4), NUMBER("batch", 16), NUMBER("time_s", 2.5)), 0);
	assert_int_equal(table_builder_append(b, part, NULL), 0);
	table_free(part); /* nothing of it is borrowed */
	csv_free(part_csv);
	built = finish(b, TABLE_NEEDS_TARGETS);
	same_tables(built, all);
	table_free(built);
	table_free(all);
	csv_free(all_csv);
}

TEST(test_thousands_of_rows_and_features_of_them)
{
	struct table_builder *b = builder();
	struct features *f = NULL;
	struct table *t;

	for (size_t i = 0; i < 3000; i++)
		assert_int_equal(ADD(b, TEXT("network", i % 3 ? i % 3 == 1 ? "a" : "b" : "c"),
				     NUMBER("cpus", (double)(1 + i % 8)), NUMBER("batch", (double)i),
				     NUMBER("time_s", 1.0 + (double)i)),
				 0);
	t = finish(b, TABLE_NEEDS_TARGETS);
	assert_int_equal(t->n_rows, 3000);
	assert_int_equal(t->n_owned, 4); /* three networks and the name */
	assert_true(t->time[2999] == 3000.0 && t->column[2].number[2999] == 2999.0);
	assert_int_equal(features_fit(t, &f, NULL), 0);
	assert_int_equal(f->n, 3 + 2 + 2);
	features_free(f);
	table_free(t);
}

TEST(test_an_empty_table_has_no_rows_to_learn_from)
{
	struct table *t = finish(builder(), TABLE_NEEDS_NOTHING);
	struct features *f = NULL;
	struct err err = { 0 };

	assert_int_equal(features_fit(t, &f, &err), -ERR_NODATA);
	assert_non_null(strstr(err.text, "observations: no rows"));
	table_free(t);
}

TEST(test_running_out_of_memory_is_an_error_and_leaks_nothing)
{
	struct csv *csv = NULL;
	struct table *part =
		table_of("network,cpus,batch,time_s\na,1,64,10\nb,2,128,11\n", TABLE_NEEDS_TARGETS, &csv);
	bool more = true;

	for (unsigned long k = 1; more; k++) {
		struct table_builder *b = NULL;
		struct table *t = NULL;
		int rc;

		mem_fail_at(k, k % 2);
		rc = table_builder_new("observations", schema, &b, NULL);
		for (size_t i = 0; i < 70 && !rc; i++)
			rc = ADD(b, TEXT("network", i % 2 ? "x" : "y"), NUMBER("cpus", 1),
				 NUMBER("time_s", 1));
		if (!rc)
			rc = table_builder_append(b, part, NULL);
		if (!rc)
			rc = table_builder_finish(b, TABLE_NEEDS_TARGETS, &t, NULL);
		more = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, more ? -ERR_NOMEM : 0);
		table_builder_free(b);
		table_free(t);
		assert_true(k < 1000);
	}
	table_free(part);
	csv_free(csv);
	table_builder_free(NULL);
}
