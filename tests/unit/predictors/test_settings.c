/* predictors/data/settings: names, ranges and texts of settings. */
#include <string.h>

#include "predictors/data/settings.h"
#include "tests/support/test.h"

static const char *const criterion_words[] = { "squared", "absolute", NULL };
static const char *const features_words[] = { "all", "sqrt", "log2", NULL };
static const struct setting_spec spec[] = {
	{ .name = "trees", .otherwise = 100, .min = 1, .max = 10000, .integer = true },
	{ .name = "rate", .otherwise = 0.1, .min = 0.001, .max = 1 },
	{ .name = "criterion", .otherwise = 0, .words = criterion_words },
	{ .name = "max_features",
	  .otherwise = -1,
	  .min = 0,
	  .max = 1e6,
	  .words = features_words,
	  .words_or_number = true },
	{ .name = NULL },
};

static struct settings fresh(void)
{
	struct settings s;

	settings_init(&s, spec);
	return s;
}

static void refuses(const char *name, const char *value, const char *say)
{
	struct settings s = fresh(), before = s;
	struct err err = { 0 };

	assert_int_equal(settings_set(&s, name, value, &err), -ERR_ARG);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
	assert_memory_equal(&s, &before, sizeof s);
}

TEST(test_defaults_are_the_specs)
{
	struct settings s = fresh();

	assert_true(settings_get(&s, "trees") == 100);
	assert_true(settings_get(&s, "rate") == 0.1);
	assert_true(settings_get(&s, "criterion") == 0);
	assert_true(settings_get(&s, "max_features") == -1);
}

TEST(test_words_and_numbers_are_stored_as_documented)
{
	struct settings s = fresh();

	assert_int_equal(settings_set(&s, "criterion", "absolute", NULL), 0);
	assert_true(settings_get(&s, "criterion") == 1);
	assert_int_equal(settings_set(&s, "max_features", "log2", NULL), 0);
	assert_true(settings_get(&s, "max_features") == -3);
	assert_int_equal(settings_set(&s, "max_features", "0.33", NULL), 0);
	assert_true(settings_get(&s, "max_features") == 0.33);
	assert_int_equal(settings_set(&s, "trees", "2e3", NULL), 0);
	assert_true(settings_get(&s, "trees") == 2000);
}

TEST(test_both_ends_of_a_range_are_inside)
{
	struct settings s = fresh();

	assert_int_equal(settings_set(&s, "trees", "1", NULL), 0);
	assert_int_equal(settings_set(&s, "trees", "10000", NULL), 0);
	refuses("trees", "0", "a whole number from 1 to 10000");
	refuses("trees", "10001", "a whole number from 1 to 10000");
	refuses("rate", "0.0009", "from 0.001 to 1");
}

TEST(test_refusals_say_what_is_accepted)
{
	refuses("tres", "5", "did you mean 'trees'?");
	refuses("zzzzzzzzzzzz", "5", "known: trees, rate, criterion, max_features");
	refuses("criterion", "gini", "squared, absolute");
	refuses("criterion", "1", "squared, absolute");
	refuses("max_features", "cube", "all, sqrt, log2 or a number from 0 to");
	refuses("max_features", "-1", "all, sqrt, log2");
	refuses("trees", "50.5", "whole number");
	refuses("trees", "fifty", "trees=fifty");
	refuses("trees", "", "need a whole number");
	refuses("rate", "nan", "need a number");
	refuses("rate", "inf", "need a number");
}

TEST(test_text_sets_several)
{
	struct settings s = fresh();
	struct err err = { 0 };

	assert_int_equal(settings_parse(&s, " trees = 50 ,criterion=absolute, max_features=sqrt", &err), 0);
	assert_true(settings_get(&s, "trees") == 50 && settings_get(&s, "criterion") == 1 &&
		    settings_get(&s, "max_features") == -2 && settings_get(&s, "rate") == 0.1);
	assert_int_equal(settings_parse(&s, "", &err), 0);
	assert_int_equal(settings_parse(&s, "  ", &err), 0);
	assert_true(settings_get(&s, "trees") == 50);
}

TEST(test_a_refused_text_changes_nothing)
{
	static const char *const bad[] = {
		"trees=50,",         "trees=50,,rate=1",  "trees=50,rate",  "trees=50,rate=2",
		"trees=50,tree=2",   "trees=50,trees=60", "trees=50,=3",    ",",
		"trees=50 rate=0.5", "trees==5",          "trees=50;rate=1"
	};
	char longer[300] = "trees=50,";

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct settings s = fresh(), before = s;
		struct err err = { 0 };

		if (settings_parse(&s, bad[i], &err) != -ERR_ARG)
			fail_msg("'%s' was taken", bad[i]);
		assert_true(err.text[0]);
		assert_memory_equal(&s, &before, sizeof s);
	}
	memset(longer + 9, 'x', 280);
	longer[289] = '\0';
	struct settings s = fresh();
	assert_int_equal(settings_parse(&s, longer, NULL), -ERR_ARG);
	longer[200] = '=';
	assert_int_equal(settings_parse(&s, longer, NULL), -ERR_ARG);
}

static int set_json(struct settings *s, const char *text, struct err *err)
{
	struct json *v = NULL;
	int rc = 0;

	assert_int_equal(json_parse("test", text, strlen(text), &v, err), 0);
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m))
		rc = settings_set_json(s, json_key(m), m, err);
	json_free(v);
	return rc;
}

TEST(test_json_has_words_and_numbers)
{
	struct settings s = fresh();

	assert_int_equal(set_json(&s, "{\"trees\":7,\"criterion\":\"absolute\",\"max_features\":0.5}", NULL),
			 0);
	assert_true(settings_get(&s, "trees") == 7 && settings_get(&s, "criterion") == 1 &&
		    settings_get(&s, "max_features") == 0.5);
	assert_int_equal(set_json(&s, "{\"max_features\":\"all\"}", NULL), 0);
	assert_true(settings_get(&s, "max_features") == -1);
}

TEST(test_json_of_another_kind_is_refused)
{
	static const char *const bad[] = { "{\"trees\":\"50\"}",    "{\"trees\":0.5}",
					   "{\"trees\":true}",      "{\"trees\":null}",
					   "{\"trees\":[5]}",       "{\"trees\":{}}",
					   "{\"criterion\":1}",     "{\"criterion\":\"x\"}",
					   "{\"max_features\":-1}", "{\"max_features\":\"1\"}",
					   "{\"Trees\":5}" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct settings s = fresh(), before = s;

		if (set_json(&s, bad[i], &(struct err){ 0 }) != -ERR_ARG)
			fail_msg("'%s' was taken", bad[i]);
		assert_memory_equal(&s, &before, sizeof s);
	}
}

TEST(test_what_is_written_reads_back)
{
	struct settings s = fresh(), t = fresh();
	struct strbuf out = { 0 };
	struct json_writer w;

	assert_int_equal(settings_parse(&s, "trees=42,rate=0.3,criterion=absolute,max_features=log2", NULL),
			 0);
	json_begin(&w, &out, false);
	settings_to_json(&s, &w);
	assert_string_equal(
		strbuf_text(&out),
		"{\"trees\":42,\"rate\":0.3,\"criterion\":\"absolute\",\"max_features\":\"log2\"}");
	assert_int_equal(set_json(&t, strbuf_text(&out), NULL), 0);
	assert_memory_equal(s.value, t.value, sizeof s.value);
	strbuf_release(&out);
}

TEST(test_description_has_what_differs)
{
	struct settings s = fresh();
	char buf[64], small[9];

	assert_string_equal(settings_describe(&s, buf, sizeof buf), "");
	assert_int_equal(settings_parse(&s, "trees=2000,max_features=sqrt,rate=0.25", NULL), 0);
	assert_string_equal(settings_describe(&s, buf, sizeof buf), "trees=2000 rate=0.25 max_features=sqrt");
	assert_string_equal(settings_describe(&s, small, sizeof small), "trees=20");
	small[0] = 'x';
	settings_describe(&s, small, 0);
	assert_int_equal(small[0], 'x');
}

TEST(test_a_model_without_settings_is_fine)
{
	struct settings s;
	struct err err = { 0 };
	char buf[8];

	settings_init(&s, NULL);
	assert_int_equal(settings_parse(&s, "", &err), 0);
	assert_string_equal(settings_describe(&s, buf, sizeof buf), "");
	assert_int_equal(settings_set(&s, "trees", "5", &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "known: none"));
}
