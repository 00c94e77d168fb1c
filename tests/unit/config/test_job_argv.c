/* scheduler/config/job_argv: the command of a job from its template and values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/config/job_type.h"
#include "tests/support/test.h"

#define PARAMS                                                                                               \
	"\"params\":{\"net\":{\"kind\":\"word\"},\"epochs\":{\"kind\":\"integer\"},\"a.b-c\":{\"kind\":"     \
	"\"word\"}}"

static int read_type(const char *argv, struct job_type *out, struct err *err)
{
	struct strbuf text = { 0 };
	struct json *v = NULL;
	int rc;

	strbuf_printf(&text, "{" PARAMS ",\"argv\":%s}", argv);
	assert_int_equal(json_parse("c", text.text, text.len, &v, NULL), 0);
	rc = job_type_from_json("c: types.t", "t", v, out, err);
	json_free(v);
	strbuf_release(&text);
	return rc;
}

static void refuses(const char *argv, const char *place, const char *say)
{
	struct job_type t;
	struct err err = { 0 };
	char expected[64];

	if (read_type(argv, &t, &err) != -ERR_FORMAT)
		fail_msg("taken: %s", argv);
	snprintf(expected, sizeof expected, "c: types.t.%s: ", place);
	if (strncmp(err.text, expected, strlen(expected)) || !strstr(err.text, say))
		fail_msg("'%s' is not '%s...%s'", err.text, expected, say);
}

static const struct job_argv_values usual = {
	.job = "12", .dir = "/d", .batch = 128, .lr = 0.02, .cpus = 3, .seed = UINT64_MAX
};

/* The command of a job with these parameters, words joined by '|'. */
static void becomes(const char *argv, const char *params, const struct job_argv_values *values,
		    const char *expected)
{
	struct strbuf joined = { 0 };
	struct job_type t;
	struct job_params p;
	struct json *v = NULL;
	struct err err = { 0 };
	char **out = NULL;

	if (read_type(argv, &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(json_parse("p", params, strlen(params), &v, NULL), 0);
	assert_int_equal(job_params_read(&t, v, NULL, &p, NULL, NULL), 0);
	assert_int_equal(job_type_argv(&t, &p, values, &out, &err), 0);
	for (size_t i = 0; out[i]; i++)
		strbuf_printf(&joined, "%s%s", i ? "|" : "", out[i]);
	assert_string_equal(strbuf_text(&joined), expected);
	strbuf_release(&joined);
	argv_free(out);
	job_params_release(&p);
	job_type_release(&t);
	json_free(v);
}

TEST(test_placeholders_are_filled_in)
{
	becomes("[\"run\",\"-b{batch}\",\"{cpus}/"
		"{lr}\",\"{job}{dir}\",\"{seed}\",\"{net}-{epochs}.{a.b-c}\"]",
		"{\"net\":\"lenet5\",\"epochs\":4,\"a.b-c\":\"z\"}", &usual,
		"run|-b128|3/0.02|12/d|18446744073709551615|lenet5-4.z");
}

TEST(test_two_braces_are_one)
{
	becomes("[\"run\",\"{{\\\"b\\\":{batch}}\",\"{{batch}\",\"}x}\",\"{{{batch}}\",\"\"]", "{}", &usual,
		"run|{\"b\":128}|{batch}|}x}|{128}|");
}

TEST(test_a_word_without_a_value_is_left_out_with_its_flag)
{
	becomes("[\"run\",\"--batch\",\"{batch}\",\"--net\",\"{net}\",\"--json\"]", "{}", &usual,
		"run|--batch|128|--json");
	becomes("[\"run\",\"{batch}\",\"-n\",\"{epochs}\",\"-m\",\"{net}\"]", "{}", &usual, "run|128");
	becomes("[\"run\",\"{batch}\",\"-n\",\"{epochs}\",\"-m\",\"{net}\"]", "{\"net\":\"x\"}", &usual,
		"run|128|-m|x");
}

TEST(test_a_flag_that_is_whole_stays)
{
	becomes("[\"run\",\"{batch}\",\"--json\",\"--net={net}\"]", "{}", &usual, "run|128|--json");
	becomes("[\"run\",\"{batch}\",\"--\",\"{net}\"]", "{}", &usual, "run|128|--");
	becomes("[\"run\",\"{batch}\",\"-\",\"{net}\"]", "{}", &usual, "run|128|-");
	becomes("[\"run\",\"{batch}\",\"--a=1\",\"{net}\"]", "{}", &usual, "run|128|--a=1");
	becomes("[\"run\",\"--flag\",\"{net}\",\"{epochs}\",\"{batch}\"]", "{}", &usual, "run|128");
	becomes("[\"-run\",\"{net}\",\"{batch}\"]", "{}", &usual, "-run|128");
}

TEST(test_no_rate_means_no_word_for_it)
{
	struct job_argv_values v = usual;

	v.lr = NAN;
	v.dir = NULL;
	becomes("[\"run\",\"--lr\",\"{lr}\",\"--dir\",\"{dir}\",\"{batch}\"]", "{}", &v, "run|128");
}

TEST(test_unknown_placeholders_name_the_nearest)
{
	refuses("[\"run\",\"{bacth}\"]", "argv[1]", "did you mean {batch}?");
	refuses("[\"run\",\"{batch}\",\"{epoch}\"]", "argv[2]", "did you mean {epochs}?");
	refuses("[\"run\",\"{batch}\",\"{Batch}\"]", "argv[2]", "did you mean {batch}?");
	refuses("[\"run\",\"{batch}\",\"{something}\"]", "argv[2]", "there is no {something}");
}

TEST(test_bad_templates_are_refused)
{
	refuses("[\"run\",\"{batch\"]", "argv[1]", "write {{");
	refuses("[\"run\",\"{}\"]", "argv[1]", "write {{");
	refuses("[\"run\",\"{a{batch}\"]", "argv[1]", "write {{");
	refuses("[\"run\",\"{\"]", "argv[1]", "write {{");
	refuses("[\"run\",\"{batch}{\"]", "argv[1]", "write {{");
	refuses("[\"run\",\"x\"]", "argv", "has no {batch}");
	refuses("[\"run\",\"{{batch}\"]", "argv", "has no {batch}");
	refuses("[\"{net}\",\"{batch}\"]", "argv[0]", "which one is run");
	refuses("[\"\",\"{batch}\"]", "argv[0]", "empty");
	refuses("[\"run\",5]", "argv[1]", "string");
	refuses("\"run {batch}\"", "argv", "list");
}

TEST(test_placeholders_that_are_used_are_known)
{
	struct job_type t;

	assert_int_equal(read_type("[\"run\",\"{{cpus}\",\"x{batch}\"]", &t, NULL), 0);
	assert_true(job_type_uses(&t, "batch"));
	assert_false(job_type_uses(&t, "cpus"));
	assert_false(job_type_uses(&t, "bat"));
	job_type_release(&t);
}

TEST(test_a_word_has_a_length)
{
	struct strbuf text = { 0 };
	struct job_type t;
	struct job_params p = { 0 };
	struct err err = { 0 };
	char **out = NULL;

	strbuf_puts(&text, "[\"run\",\"{batch}");
	for (size_t i = 0; i < JOB_TYPE_MAX_ARG - strlen("{batch}"); i++)
		strbuf_puts(&text, "a");
	strbuf_puts(&text, "\"]");
	assert_int_equal(read_type(text.text, &t, &err), 0);
	assert_int_equal(job_type_argv(&t, &p, &usual, &out, &err), 0); /* "128" is shorter than "{batch}" */
	argv_free(out);
	job_type_release(&t);
	strbuf_reset(&text);
	strbuf_puts(&text, "[\"run\",\"{batch}{seed}");
	for (size_t i = 0; i < JOB_TYPE_MAX_ARG - strlen("{batch}{seed}"); i++)
		strbuf_puts(&text, "a");
	strbuf_puts(&text, "\"]");
	assert_int_equal(read_type(text.text, &t, &err), 0);
	assert_int_equal(job_type_argv(&t, &p, &usual, &out, &err), -ERR_ARG); /* a seed of twenty digits */
	assert_non_null(strstr(err.text, "at most 4096"));
	job_type_release(&t);
	strbuf_reset(&text);
	strbuf_puts(&text, "[\"run\",\"{batch}");
	for (size_t i = 0; i < JOB_TYPE_MAX_ARG; i++)
		strbuf_puts(&text, "a");
	strbuf_puts(&text, "\"]");
	refuses(text.text, "argv[1]", "at most 4096");
	strbuf_release(&text);
}

TEST(test_running_out_of_memory_is_told)
{
	struct job_params p = { 0 };
	struct job_type t;
	bool failed = true;

	assert_int_equal(read_type("[\"run\",\"--b\",\"{batch}\",\"--n\",\"{net}\",\"x\"]", &t, NULL), 0);
	for (unsigned long k = 1; failed; k++) {
		char **out = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = job_type_argv(&t, &p, &usual, &out, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		argv_free(out);
	}
	job_type_release(&t);
}
