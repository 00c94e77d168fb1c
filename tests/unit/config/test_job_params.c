/* scheduler/config/job_params: kinds and ranges of parameters, and what breaks them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/config/job_type.h"
#include "tests/support/test.h"

static struct job_type type;

static int set_up(void **state)
{
	static const char text[] =
		"{\"params\":{\"net\":{\"kind\":\"word\",\"required\":true,\"values\":[\"lenet5\","
		"\"simplenet\"]},"
		"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":100,\"default\":4},"
		"\"rate\":{\"kind\":\"number\",\"min\":0,\"max\":0.5},\"note\":{\"kind\":\"word\"},"
		"\"big\":{\"kind\":\"integer\"}}}";
	struct json *v = NULL;
	int rc;

	(void)state;
	if (json_parse("t", text, strlen(text), &v, NULL))
		return -1;
	rc = job_type_from_json("t", "t", v, &type, NULL);
	json_free(v);
	return rc;
}

static int tear_down(void **state)
{
	(void)state;
	job_type_release(&type);
	return 0;
}

TEST_GROUP(set_up, tear_down);

static int read_text(const char *text, struct job_params *out, char *field, struct err *err)
{
	struct json *v = NULL;
	const char *name = "";
	int rc;

	assert_int_equal(json_parse("p", text, strlen(text), &v, NULL), 0);
	rc = job_params_read(&type, v, NULL, out, &name, err);
	snprintf(field, 64, "%s", rc ? name : ""); /* borrowed from v */
	json_free(v);
	return rc;
}

/* The values as the daemon would write them, to be freed. */
static char *taken(const char *text)
{
	struct job_params p;
	struct err err = { 0 };
	struct strbuf out = { 0 };
	struct json_writer w;
	char field[64];

	if (read_text(text, &p, field, &err))
		fail_msg("%s: %s", text, err.text);
	json_begin(&w, &out, false);
	job_params_to_json(&type, &p, &w);
	job_params_release(&p);
	return out.text;
}

static void takes(const char *text, const char *as)
{
	char *got = taken(text);

	assert_string_equal(got, as);
	free(got);
}

static void refuses(const char *text, const char *field, const char *say)
{
	struct job_params p = { 0 };
	struct err err = { 0 };
	char got[64];

	if (read_text(text, &p, got, &err) != -ERR_ARG)
		fail_msg("taken, or another code: %s: %s", text, err.text);
	assert_string_equal(got, field);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
	assert_null(p.value[0]);
}

TEST(test_values_and_defaults_are_filled_in)
{
	takes("{\"net\":\"lenet5\"}", "{\"net\":\"lenet5\",\"epochs\":4}");
	takes("{\"net\":\"simplenet\",\"epochs\":7,\"rate\":0.125,\"note\":\"a_B-9.+\"}",
	      "{\"net\":\"simplenet\",\"epochs\":7,\"rate\":0.125,\"note\":\"a_B-9.+\"}");
}

TEST(test_numbers_may_come_as_text)
{
	takes("{\"net\":\"lenet5\",\"epochs\":\"7\",\"rate\":\"1e-1\"}",
	      "{\"net\":\"lenet5\",\"epochs\":7,\"rate\":0.1}");
}

TEST(test_numbers_are_beside_their_text)
{
	struct job_params p;
	char field[64];

	assert_int_equal(read_text("{\"net\":\"lenet5\",\"epochs\":1e1,\"rate\":-0.0}", &p, field, NULL), 0);
	assert_string_equal(p.value[1], "10");
	assert_true(p.number[1] == 10.0);
	assert_string_equal(p.value[2], "0");
	assert_true(isnan(p.number[0]) && isnan(p.number[3]));
	assert_null(p.value[3]);
	job_params_release(&p);
	assert_null(p.value[1]);
	job_params_release(&p);
	job_params_release(NULL);
}

TEST(test_a_large_integer_has_no_exponent)
{
	struct job_params p;
	char field[64];

	assert_int_equal(read_text("{\"net\":\"lenet5\",\"big\":9007199254740992}", &p, field, NULL), 0);
	assert_string_equal(p.value[4], "9007199254740992");
	job_params_release(&p);
	refuses("{\"net\":\"lenet5\",\"big\":9007199254740994}", "big", "out of range");
}

TEST(test_what_is_wrong_is_named)
{
	refuses("{}", "net", "is needed");
	refuses("{\"net\":\"lenet6\"}", "net", "did you mean 'lenet5'?");
	refuses("{\"net\":\"vgg\"}", "net", "not among its values: lenet5, simplenet");
	refuses("{\"net\":5}", "net", "string");
	refuses("{\"net\":null}", "net", "string");
	refuses("{\"net\":\"lenet5\",\"epoch\":3}", "epoch", "did you mean 'epochs'?");
	refuses("{\"net\":\"lenet5\",\"\":3}", "", "no parameter ''");
	refuses("{\"net\":\"lenet5\",\"epochs\":0}", "epochs", "from 1 to 100");
	refuses("{\"net\":\"lenet5\",\"epochs\":101}", "epochs", "from 1 to 100");
	refuses("{\"net\":\"lenet5\",\"epochs\":1.5}", "epochs", "whole number");
	refuses("{\"net\":\"lenet5\",\"epochs\":\"\"}", "epochs", "whole number");
	refuses("{\"net\":\"lenet5\",\"epochs\":\"0x4\"}", "epochs", "whole number");
	refuses("{\"net\":\"lenet5\",\"epochs\":true}", "epochs", "whole number");
	refuses("{\"net\":\"lenet5\",\"epochs\":[4]}", "epochs", "whole number");
	refuses("{\"net\":\"lenet5\",\"rate\":0.6}", "rate", "from 0 to 0.5");
	refuses("{\"net\":\"lenet5\",\"rate\":\"nan\"}", "rate", "number");
	refuses("[1]", "params", "object");
}

TEST(test_no_word_can_be_an_option_or_a_path)
{
	static const char *const bad[] = { "",        "-x",   "--seed=1", ".",   "..",    ".x",
					   "a/b",     "/etc", "a b",      "a;b", "$HOME", "a\\u000ab",
					   "\\u00e4", "a=b",  "{batch}",  "`x`" };
	char text[128];

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(text, sizeof text, "{\"net\":\"lenet5\",\"note\":\"%s\"}", bad[i]);
		refuses(text, "note", "not a word");
	}
}

TEST(test_words_have_a_length)
{
	char word[JOB_TYPE_MAX_VALUE + 2], text[256];

	memset(word, 'a', sizeof word);
	word[JOB_TYPE_MAX_VALUE + 1] = '\0';
	snprintf(text, sizeof text, "{\"net\":\"lenet5\",\"note\":\"%s\"}", word);
	refuses(text, "note", "1 to 128");
	word[JOB_TYPE_MAX_VALUE] = '\0';
	snprintf(text, sizeof text, "{\"net\":\"lenet5\",\"note\":\"%s\"}", word);
	free(taken(text));
}

TEST(test_nothing_given_is_an_empty_object)
{
	struct job_params p;
	struct job_type none = { .name = (char[]){ "none" } };

	assert_int_equal(job_params_read(&type, NULL, NULL, &p, NULL, NULL), -ERR_ARG); /* net */
	assert_int_equal(job_params_read(&none, NULL, NULL, &p, NULL, NULL), 0);
	job_params_release(&p);
}

TEST(test_running_out_of_memory_is_told)
{
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		static const char text[] = "{\"net\":\"lenet5\",\"rate\":0.25,\"note\":\"x\"}";
		struct job_params p = { 0 };
		struct json *v = NULL;
		int rc;

		assert_int_equal(json_parse("p", text, strlen(text), &v, NULL), 0);
		mem_fail_at(k, false);
		rc = job_params_read(&type, v, NULL, &p, NULL, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		job_params_release(&p);
		json_free(v);
	}
}
