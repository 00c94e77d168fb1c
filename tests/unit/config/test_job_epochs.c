/* scheduler/config/job_epochs: how long a job may train, fixed or open. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/support/test.h"
#include "tests/unit/config/type_text.h"

#define EPOCHS "\"params\":{\"epochs\":{\"kind\":\"integer\",\"min\":2,\"max\":100}}"

static void has(const struct job_type *t, double from, double to, size_t max, const char *expected)
{
	double out[64];
	char text[512] = "";
	size_t n = job_type_epochs(t, from, to, out, max), used = 0;

	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%g", i ? " " : "", out[i]);
	assert_string_equal(text, expected);
}

TEST(test_counts_are_a_list_or_steps)
{
	struct job_type t = type_must("{" EPOCHS ",\"epochs_choices\":[20,5,10,40]}");

	assert_int_equal(t.n_epochs, 4);
	has(&t, 1, 1000, 64, "5 10 20 40");
	has(&t, 5, 20, 64, "5 10 20");
	has(&t, 6, 39, 64, "10 20");
	has(&t, 6, 9, 64, "");
	has(&t, 1, 100, 2, "5 40");
	has(&t, 1, 100, 3, "5 20 40");
	job_type_release(&t);
	t = type_must("{" EPOCHS ",\"epochs_choices\":{\"min\":5,\"max\":23,\"step\":5}}");
	has(&t, 1, 1000, 64, "5 10 15 20");
	job_type_release(&t);
	t = type_must("{" EPOCHS ",\"epochs_choices\":{\"min\":98,\"max\":100}}");
	has(&t, 1, 1000, 64, "98 99 100");
	job_type_release(&t);
}

TEST(test_without_a_list_any_count_will_do)
{
	struct job_type t = type_must("{" EPOCHS "}");

	has(&t, 3, 6, 64, "3 4 5 6");
	has(&t, 4, 4, 64, "4");
	has(&t, 2.5, 4.5, 64, "3 4");
	has(&t, 6, 3, 64, "");
	has(&t, NAN, 3, 64, "");
	has(&t, 1, NAN, 64, "");
	has(&t, 1, INFINITY, 64, "");
	has(&t, 1, 101, 5, "1 26 51 76 101");
	has(&t, 1, 1e15, 2, "1 1e+15");
	job_type_release(&t);
}

TEST(test_mistakes_have_a_place)
{
	type_refused("{\"epochs_choices\":[1]}", ".epochs_choices", "epochs_param");
	type_refused("{\"early_stop\":true}", ".early_stop", "epochs_param");
	type_refused("{" EPOCHS ",\"early_stop\":1}", ".early_stop", "true or false");
	type_refused("{\"steer\":true}", ".steer", "epochs_param");
	type_refused("{" EPOCHS ",\"steer\":\"yes\"}", ".steer", "true or false");
	type_refused("{" EPOCHS ",\"epochs_choices\":[]}", ".epochs_choices", "1 to 256");
	type_refused("{" EPOCHS ",\"epochs_choices\":3}", ".epochs_choices", "list");
	type_refused("{" EPOCHS ",\"epochs_choices\":[5,0]}", ".epochs_choices[1]", "whole number");
	type_refused("{" EPOCHS ",\"epochs_choices\":[5,2.5]}", ".epochs_choices[1]", "whole number");
	type_refused("{" EPOCHS ",\"epochs_choices\":[5,\"6\"]}", ".epochs_choices[1]", "whole number");
	type_refused("{" EPOCHS ",\"epochs_choices\":[5,101]}", ".epochs_choices",
		     "101 is not within the bounds of the parameter epochs");
	type_refused("{" EPOCHS ",\"epochs_choices\":[5,5]}", ".epochs_choices", "5 appears twice");
	type_refused("{" EPOCHS ",\"epochs_choices\":{\"min\":5}}", ".epochs_choices.max", "needed");
	type_refused("{" EPOCHS ",\"epochs_choices\":{\"max\":5}}", ".epochs_choices.min", "needed");
	type_refused("{" EPOCHS ",\"epochs_choices\":{\"min\":5,\"max\":4}}", ".epochs_choices.max",
		     "below min");
	type_refused("{" EPOCHS ",\"epochs_choices\":{\"min\":5,\"max\":101}}", ".epochs_choices",
		     "101 is not within");
	type_refused("{" EPOCHS ",\"epochs_choices\":{\"min\":1,\"max\":1000000}}", ".epochs_choices.step",
		     "at most 256");
	type_refused("{" EPOCHS ",\"epochs_choices\":{\"min\":5,\"max\":9,\"step\":0}}",
		     ".epochs_choices.step", "from 1");
}

TEST(test_epochs_are_written_as_they_are_read)
{
	struct job_type t = type_must(
		"{" EPOCHS
		",\"early_stop\":true,\"steer\":true,\"epochs_choices\":{\"min\":5,\"max\":15,\"step\":5}}");
	struct strbuf out = { 0 };
	struct json_writer w;
	struct job_type back;

	assert_true(t.early_stop && t.steer);
	json_begin(&w, &out, false);
	job_type_to_json(&t, &w);
	assert_non_null(strstr(out.text, "\"epochs_choices\":[5,10,15],\"early_stop\":true,\"steer\":true"));
	back = type_must(out.text);
	assert_true(back.early_stop && back.steer && back.n_epochs == 3 && back.epochs[2] == 15.0);
	job_type_release(&back);
	job_type_release(&t);
	strbuf_release(&out);
}

/* ---- a job's own ---- */

static int params_of(const struct job_type *t, const char *text, struct job_params *out, struct err *err)
{
	struct json *v = NULL;
	int rc = json_parse("given", text, strlen(text), &v, err);

	if (!rc)
		rc = job_params_read(t, v, NULL, out, NULL, err);
	json_free(v);
	return rc;
}

static void params_refused(const struct job_type *t, const char *text, const char *say)
{
	struct job_params p = { 0 };
	struct err err = { 0 };

	if (params_of(t, text, &p, &err) != -ERR_ARG)
		fail_msg("taken, or another code: %s: %s", text, err.text);
	if (!strstr(err.text, say))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

TEST(test_a_job_may_leave_its_epochs_open)
{
	struct job_type t = type_must("{" EPOCHS ",\"argv\":[\"t\",\"{batch}\",\"--epochs\",\"{epochs}\"]}");
	struct job_argv_values v = { .batch = 64, .lr = NAN, .epochs = 12 };
	struct job_params p = { 0 };
	struct strbuf out = { 0 };
	struct json_writer w;
	struct err err = { 0 };
	char **argv = NULL;

	assert_int_equal(params_of(&t, "{\"epochs\":\"3..20\"}", &p, NULL), 0);
	assert_true(job_params_open(&p) && p.epochs_from == 3.0 && p.epochs_to == 20.0);
	assert_true(isnan(p.number[0]));
	assert_int_equal(job_type_argv(&t, &p, &v, &argv, NULL), 0);
	assert_string_equal(argv[3], "12"); /* what was chosen, never the range */
	argv_free(argv);
	v.epochs = 21;
	assert_int_equal(job_type_argv(&t, &p, &v, &argv, &err), -ERR_ARG);
	v.epochs = NAN;
	assert_int_equal(job_type_argv(&t, &p, &v, &argv, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "epochs are open, from 3 to 20"));
	json_begin(&w, &out, false);
	job_params_to_json(&t, &p, &w);
	assert_string_equal(out.text, "{\"epochs\":\"3..20\"}");
	job_params_release(&p);
	assert_false(job_params_open(&p));
	assert_int_equal(params_of(&t, out.text, &p, NULL), 0); /* a restart reads it back */
	assert_true(p.epochs_to == 20.0);
	job_params_release(&p);
	strbuf_release(&out);
	assert_int_equal(params_of(&t, "{\"epochs\":7}", &p, NULL), 0);
	assert_true(!job_params_open(&p) && p.number[0] == 7.0);
	assert_int_equal(job_type_argv(&t, &p, &v, &argv, NULL), 0);
	assert_string_equal(argv[3], "7");
	argv_free(argv);
	job_params_release(&p);
	job_type_release(&t);
}

/* A job that gives no epochs leaves them open where the default is a range; only epochs can be open. */
TEST(test_the_default_of_epochs_may_be_a_range)
{
	struct job_type t = type_must("{\"params\":{\"epochs\":{\"kind\":\"integer\",\"min\":2,\"max\":100,"
				      "\"default\":\"3..20\"}}}");
	struct job_params p = { 0 };
	struct strbuf out = { 0 };
	struct json_writer w;

	assert_int_equal(params_of(&t, "{}", &p, NULL), 0);
	assert_true(job_params_open(&p) && p.epochs_from == 3.0 && p.epochs_to == 20.0);
	job_params_release(&p);
	assert_int_equal(params_of(&t, "{\"epochs\":7}", &p, NULL), 0);
	assert_true(!job_params_open(&p) && p.number[0] == 7.0);
	job_params_release(&p);
	json_begin(&w, &out, false);
	job_type_to_json(&t, &w);
	assert_non_null(strstr(strbuf_text(&out), "\"default\":\"3..20\""));
	strbuf_release(&out);
	job_type_release(&t);
	type_refused("{\"params\":{\"layers\":{\"kind\":\"integer\",\"default\":\"3..20\"}}}",
		     ".epochs_param", "only epochs may have a range as default, 'layers' has");
}

TEST(test_a_range_must_make_sense)
{
	struct job_type t = type_must("{\"params\":{\"epochs\":{\"kind\":\"integer\",\"min\":2,\"max\":100},"
				      "\"layers\":{\"kind\":\"integer\"}},\"epochs_choices\":[10,20]}");

	params_refused(&t, "{\"epochs\":\"20..3\"}", "is not a range");
	params_refused(&t, "{\"epochs\":\"0..3\"}", "is not a range");
	params_refused(&t, "{\"epochs\":\"1..30\"}", "out of range");
	params_refused(&t, "{\"epochs\":\"3..101\"}", "out of range");
	params_refused(&t, "{\"epochs\":\"11..19\"}", "none of the 2 counts");
	params_refused(&t, "{\"epochs\":\"3..\"}", "is not a whole number");
	params_refused(&t, "{\"epochs\":\"..3\"}", "is not a whole number");
	params_refused(&t, "{\"epochs\":\"3..2e1\"}", "is not a whole number");
	params_refused(&t, "{\"epochs\":\"3...20\"}", "is not a whole number");
	params_refused(&t, "{\"epochs\":\"3..99999999999999999999999\"}", "is not a whole number");
	params_refused(&t, "{\"epochs\":[3,20]}", "is not a whole number");
	params_refused(&t, "{\"layers\":\"3..20\"}", "is not a whole number");
	job_type_release(&t);
}

TEST(test_running_out_of_memory_is_told)
{
	struct job_type t = type_must("{" EPOCHS "}");
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		struct job_params p = { 0 };
		struct json *v = NULL;
		int rc;

		assert_int_equal(json_parse("given", "{\"epochs\":\"3..20\"}", 18, &v, NULL), 0);
		mem_fail_at(k, false);
		rc = job_params_read(&t, v, NULL, &p, NULL, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		job_params_release(&p);
		json_free(v);
	}
	job_type_release(&t);
}
