/* common/json/fields: typed reading with the place in every message; the first failure stays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/fields.h"
#include "common/mem.h"
#include "tests/support/test.h"

struct document {
	struct json *root;
	struct fields f;
	struct err err;
};

static void document_open(struct document *d, const char *text, const char *const *known)
{
	*d = (struct document){ 0 };
	assert_int_equal(json_parse("t", text, strlen(text), &d->root, NULL), 0);
	fields_open(&d->f, "t.json", ": ", d->root, known, &d->err);
}

static void document_says(struct document *d, const char *want)
{
	assert_int_equal(d->f.rc, -ERR_FORMAT);
	assert_string_equal(d->err.text, want);
	json_free(d->root);
}

TEST(test_members_that_are_absent_or_null_keep_their_default)
{
	struct document d;
	const char *text = "kept";
	bool flag = true;
	double v = 2.5;
	size_t n = 7;

	document_open(&d, "{\"v\":null}", NULL);
	field_number(&d.f, "v", 0.0, 1.0, &v);
	field_size(&d.f, "n", 0, 9, &n);
	field_bool(&d.f, "flag", &flag);
	field_string(&d.f, "text", 9, &text);
	assert_int_equal(d.f.rc, 0);
	assert_true(v == 2.5 && n == 7 && flag);
	assert_string_equal(text, "kept");
	json_free(d.root);
}

TEST(test_values_are_read)
{
	static const struct text_limits small = { .min = 0.0, .max = 10.0, .whole = true };
	double v = NAN, *list = NULL;
	const char *text = NULL;
	struct document d;
	size_t n = 0;

	document_open(&d, "{\"v\":3,\"list\":[1,2,10],\"text\":\"abc\"}", NULL);
	field_within(&d.f, "v", &small, &v);
	field_numbers(&d.f, "list", &small, 3, &list, &n);
	field_string(&d.f, "text", 3, &text);
	assert_int_equal(d.f.rc, 0);
	assert_true(v == 3.0);
	assert_int_equal(n, 3);
	assert_true(list[0] == 1.0 && list[2] == 10.0);
	assert_string_equal(text, "abc");
	free(list);
	json_free(d.root);
}

TEST(test_errors_name_the_place_and_what_was_expected)
{
	static const struct text_limits small = { .min = 0.0, .max = 10.0, .whole = true };
	static const struct text_limits any = { .min = -INFINITY, .max = INFINITY };
	static const char *const words[] = { "forest", "boost", NULL }, *const known[] = { "costs", NULL };
	double v = NAN, *list = NULL;
	const char *text = NULL;
	struct fields costs;
	struct document d;
	char place[FIELDS_MAX_KEY];
	size_t n = 0;
	int choice = 0;

	document_open(&d, "[]", NULL);
	document_says(&d, "t.json: must be an object { ... }");
	document_open(&d, "{\"cost\":1}", known);
	document_says(&d, "t.json: unknown key 'cost'; did you mean 'costs'?");
	document_open(&d, "{}", NULL);
	assert_false(fields_need(&d.f, "v"));
	document_says(&d, "t.json: v: is not given");
	document_open(&d, "{\"v\":11}", NULL);
	field_within(&d.f, "v", &small, &v);
	field_within(&d.f, "none", &small, &v); /* what comes later does not hide the first failure */
	fields_need(&d.f, "none");
	document_says(&d, "t.json: v: is 11; it must be a whole number from 0 to 10");
	document_open(&d, "{\"v\":\"x\"}", NULL);
	field_within(&d.f, "v", &any, &v);
	document_says(&d, "t.json: v: must be a number");
	document_open(&d, "{\"list\":[1,2.5]}", NULL);
	field_numbers(&d.f, "list", &small, 3, &list, &n);
	document_says(&d, "t.json: list[1]: is 2.5; it must be a whole number from 0 to 10");
	document_open(&d, "{\"list\":[1,2,3,4]}", NULL);
	field_numbers(&d.f, "list", &small, 3, &list, &n);
	document_says(&d, "t.json: list: has 4 entries; it needs 1 to 3");
	document_open(&d, "{\"text\":\"abcd\"}", NULL);
	field_string(&d.f, "text", 3, &text);
	document_says(&d, "t.json: text: has 4 bytes; it needs 1 to 3");
	document_open(&d, "{\"word\":\"forset\"}", NULL);
	field_choice(&d.f, "word", words, &choice);
	document_says(&d, "t.json: word: 'forset' is none of forest, boost; did you mean 'forest'?");
	document_open(&d, "{\"costs\":{\"a\":{\"v\":true}}}", known);
	assert_true(fields_open_member(&costs, &d.f, "costs", NULL));
	assert_true(fields_open_value(&d.f, &costs, fields_element("a", 2, place),
				      json_get(costs.object, "a"), NULL));
	field_within(&d.f, "v", &small, &v);
	document_says(&d, "t.json: costs.a[2].v: must be a whole number from 0 to 10");
	assert_true(isnan(v));
	assert_null(list);
	assert_null(text);
}

TEST(test_a_list_that_finds_no_memory_says_so)
{
	static const struct text_limits any = { .min = -INFINITY, .max = INFINITY };
	struct document d;
	double *list = NULL;
	size_t n = 0;

	document_open(&d, "{\"list\":[1]}", NULL);
	mem_fail_at(1, false);
	field_numbers(&d.f, "list", &any, 3, &list, &n);
	mem_fail_at(0, false);
	assert_int_equal(d.f.rc, -ERR_NOMEM);
	assert_null(list);
	json_free(d.root);
}

TEST(test_seconds_may_be_a_text)
{
	struct document d;
	double v = NAN;

	document_open(&d, "{\"max_time_s\":\"5m\"}", NULL);
	field_number(&d.f, "max_time_s", 0.0, 1000.0, &v);
	assert_true(d.f.rc == 0 && v == 300.0);
	json_free(d.root);
	document_open(&d, "{\"max_time_s\":\"1h\"}", NULL);
	field_number(&d.f, "max_time_s", 0.0, 1000.0, &v);
	document_says(&d, "t.json: max_time_s: is 3600; it must be a number from 0 to 1000");
	document_open(&d, "{\"max_time_s\":\"soon\"}", NULL);
	field_number(&d.f, "max_time_s", 0.0, 1000.0, &v);
	assert_int_equal(d.f.rc, -ERR_FORMAT);
	json_free(d.root);
	document_open(&d, "{\"cores\":\"5m\"}", NULL);
	field_number(&d.f, "cores", 0.0, 1000.0, &v);
	document_says(&d, "t.json: cores: must be a number from 0 to 1000");
	assert_true(v == 300.0);
}
