/* scheduler/config/job_type: what an operator may say of a job type. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/io.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/config/type_text.h"

/* To be freed. */
static char *written(const struct job_type *t)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	job_type_to_json(t, &w);
	assert_false(out.failed);
	return out.text;
}

static const char everything[] =
	"{\"about\":\"digits\",\"argv\":[\"/bin/"
	"train\",\"--b={batch}\",\"--lr\",\"{lr}\",\"{net}\",\"{{x}\"],"
	"\"params\":{\"net\":{\"kind\":\"word\",\"required\":true,\"values\":[\"lenet5\",\"simplenet\"]},"
	"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":100,\"default\":4},"
	"\"rate\":{\"kind\":\"number\",\"max\":0.5},\"note\":{\"kind\":\"word\",\"default\":\"a+b\"}},"
	"\"cpus\":{\"min\":1,\"max\":4,\"default\":2},\"batches\":[256,64,128],"
	"\"lr\":{\"rule\":\"linear\",\"base\":0.01,\"base_batch\":64},\"memory_mb\":200,"
	"\"memory_mb_per_record\":0.25,\"resources\":{\"gpus\":1,\"max_gpus\":3,\"records_per_gpu\":96,\"gpu_"
	"memory_mb\":900,\"gpu_memory_mb_per_record\":1.5},\"max_time_s\":3600,\"max_output_mb\":7,"
	"\"limits\":{\"file_mb\":10,\"address_mb\":4000,\"open_files\":64,\"nice\":-5},"
	"\"result\":{\"accuracy\":\"metrics.top1\",\"epoch\":\"step\"},\"epochs_param\":\"epochs\","
	"\"work_dir\":\"/srv\",\"env\":{\"A\":\"1\",\"PATH\":\"/bin\"}}";

TEST(test_every_key_reaches_its_place)
{
	struct job_type t = type_must(everything);

	assert_string_equal(t.name, "digits");
	assert_string_equal(t.about, "digits");
	assert_int_equal(t.n_argv, 6);
	assert_string_equal(t.argv[5], "{{x}");
	assert_null(t.argv[6]);
	assert_int_equal(t.n_params, 4);
	assert_int_equal(t.param[0].kind, PARAM_WORD);
	assert_true(t.param[0].required);
	assert_int_equal(t.param[0].n_words, 2);
	assert_string_equal(t.param[1].otherwise, "4");
	assert_true(t.param[1].min == 1.0 && t.param[1].max == 100.0);
	assert_true(isinf(t.param[2].min) && t.param[2].max == 0.5);
	assert_true(t.cpus_min == 1 && t.cpus_max == 4 && t.cpus_default == 2);
	assert_int_equal(t.n_batches, 3);
	assert_true(t.batch[0] == 64.0 && t.batch[1] == 128.0 && t.batch[2] == 256.0);
	assert_int_equal(t.lr_rule, LR_LINEAR);
	assert_true(t.memory_mb == 200.0 && t.memory_mb_per_record == 0.25 && t.max_time_s == 3600.0);
	assert_true(t.gpus == 1 && t.max_gpus == 3 && t.records_per_gpu == 96.0);
	assert_true(t.gpu_memory_mb == 900.0 && t.gpu_memory_mb_per_record == 1.5);
	assert_true(t.max_output_mb == 7.0);
	assert_true(t.max_file_mb == 10 && t.max_address_mb == 4000 && t.max_open_files == 64);
	assert_int_equal(t.nice, -5);
	assert_string_equal(t.result.accuracy, "metrics.top1");
	assert_string_equal(t.result.epoch, "step");
	assert_string_equal(t.epochs_param, "epochs");
	assert_string_equal(t.work_dir, "/srv");
	assert_int_equal(t.n_env, 2);
	assert_string_equal(t.env[1], "PATH=/bin");
	job_type_release(&t);
	assert_null(t.name);
	job_type_release(&t);
	job_type_release(NULL);
}

TEST(test_an_empty_type_has_defaults)
{
	struct job_type t = type_must("{}");

	assert_int_equal(t.n_argv, 0);
	assert_int_equal(t.n_params, 0);
	assert_true(t.cpus_min == 1 && t.cpus_max == 1 && t.cpus_default == 1);
	assert_int_equal(t.n_batches, 0);
	assert_int_equal(t.lr_rule, LR_NONE);
	assert_true(isnan(job_type_lr(&t, 64.0)));
	assert_true(isnan(t.memory_mb) && isnan(t.memory_mb_per_record));
	assert_true(!t.gpus && !t.max_gpus && isnan(t.records_per_gpu));
	assert_true(isnan(t.max_output_mb));
	assert_true(t.max_time_s == 0.0 && t.max_file_mb == 0 && t.nice == 0);
	assert_null(t.result.accuracy);
	assert_null(t.result.epoch);
	assert_null(t.epochs_param);
	assert_null(t.work_dir);
	job_type_release(&t);
}

TEST(test_what_is_written_reads_back_the_same)
{
	static const char *const text[] = { everything, "{}", "{\"params\":{\"n\":{\"kind\":\"number\"}}}" };

	for (size_t i = 0; i < 3; i++) {
		struct job_type t = type_must(text[i]), u;
		char *a = written(&t), *b;

		u = type_must(a);
		b = written(&u);
		assert_string_equal(a, b);
		free(a);
		free(b);
		job_type_release(&t);
		job_type_release(&u);
	}
}

TEST(test_null_is_the_default)
{
	struct job_type t =
		type_must("{\"about\":null,\"argv\":null,\"params\":null,\"cpus\":null,\"batches\":null,"
			  "\"lr\":{\"rule\":null,\"base\":null},\"memory_mb\":null,\"env\":null}");

	assert_int_equal(t.n_argv, 0);
	assert_true(isnan(t.memory_mb));
	job_type_release(&t);
}

TEST(test_a_lone_end_of_the_cpus_gives_the_others)
{
	struct job_type t = type_must("{\"cpus\":{\"max\":8}}");

	assert_true(t.cpus_min == 1 && t.cpus_max == 8 && t.cpus_default == 1);
	job_type_release(&t);
	t = type_must("{\"cpus\":{\"min\":3}}");
	assert_true(t.cpus_min == 3 && t.cpus_max == 3 && t.cpus_default == 3);
	job_type_release(&t);
	t = type_must("{\"cpus\":{\"default\":5}}");
	assert_true(t.cpus_min == 1 && t.cpus_max == 5 && t.cpus_default == 5);
	job_type_release(&t);
}

TEST(test_a_parameter_called_epochs_is_the_number_of_epochs)
{
	struct job_type t = type_must("{\"params\":{\"epochs\":{\"kind\":\"integer\"}}}");

	assert_string_equal(t.epochs_param, "epochs");
	job_type_release(&t);
	t = type_must("{\"params\":{\"epochs\":{\"kind\":\"word\"}}}");
	assert_null(t.epochs_param);
	job_type_release(&t);
}

TEST(test_the_learning_rate_follows_its_rule)
{
	struct job_type t = { .lr_rule = LR_LINEAR, .lr_base = 0.01, .lr_base_batch = 64.0 };

	assert_true(job_type_lr(&t, 64.0) == 0.01);
	assert_float_equal(job_type_lr(&t, 237.0), 0.01 * 237.0 / 64.0, 1e-15);
	t.lr_rule = LR_SQRT;
	assert_float_equal(job_type_lr(&t, 256.0), 0.02, 1e-15);
	t.lr_rule = LR_NONE;
	assert_true(job_type_lr(&t, 512.0) == 0.01);
	assert_string_equal(lr_rule_name(LR_NONE), "none");
	assert_string_equal(lr_rule_name(LR_LINEAR), "linear");
	assert_string_equal(lr_rule_name(LR_SQRT), "sqrt");
}

TEST(test_relative_paths_start_from_here)
{
	struct job_type t =
		type_must("{\"argv\":[\"build/train\",\"{batch}\",\"data/x\"],\"work_dir\":\".\"}");
	char here[4096], expected[4200];

	assert_non_null(getcwd(here, sizeof here));
	snprintf(expected, sizeof expected, "%s/build/train", here);
	assert_string_equal(t.argv[0], expected);
	assert_string_equal(t.argv[2], "data/x"); /* the job's own business */
	assert_string_equal(t.work_dir, here);
	job_type_release(&t);
	t = type_must("{\"argv\":[\"train\",\"{batch}\"]}");
	assert_string_equal(t.argv[0], "train"); /* from the PATH */
	job_type_release(&t);
}

TEST(test_unknown_keys_name_the_nearest)
{
	type_refused("{\"batchs\":[1]}", "", "did you mean 'batches'?");
	type_refused("{\"cpus\":{\"mim\":1}}", ".cpus", "did you mean 'min'?");
	type_refused("{\"lr\":{\"rul\":\"none\"}}", ".lr", "did you mean 'rule'?");
	type_refused("{\"limits\":{\"open_file\":1}}", ".limits", "did you mean 'open_files'?");
	type_refused("{\"result\":{\"acuracy\":\"x\"}}", ".result", "did you mean 'accuracy'?");
	type_refused("{\"params\":{\"epochs\":{\"kind\":\"integer\",\"mni\":1}}}", ".params.epochs", "'min'");
}

TEST(test_ranges_are_checked_on_both_sides)
{
	struct job_type t =
		type_must("{\"cpus\":{\"max\":4096},\"limits\":{\"nice\":19},\"batches\":[1,1e9]}");

	job_type_release(&t);
	type_refused("{\"cpus\":{\"max\":4097}}", ".cpus.max", "from 1 to 4096");
	type_refused("{\"cpus\":{\"min\":0}}", ".cpus.min", "from 1 to 4096");
	type_refused("{\"cpus\":{\"min\":1.5}}", ".cpus.min", "whole number");
	type_refused("{\"cpus\":{\"min\":4,\"max\":2}}", ".cpus.max", "below min");
	type_refused("{\"cpus\":{\"max\":2,\"default\":3}}", ".cpus.default", "not from min to max");
	type_refused("{\"cpus\":2}", ".cpus", "object");
	type_refused("{\"batches\":[]}", ".batches", "1 to 64");
	type_refused("{\"batches\":[64,64]}", ".batches", "twice");
	type_refused("{\"batches\":[0]}", ".batches[0]", "whole number");
	type_refused("{\"batches\":[64,\"128\"]}", ".batches[1]", "whole number");
	type_refused("{\"batches\":[1000000001]}", ".batches[0]", "whole number");
	type_refused("{\"batches\":64}", ".batches", "list");
	type_refused("{\"lr\":{\"rule\":\"cubic\"}}", ".lr.rule", "none, linear, sqrt");
	type_refused("{\"lr\":{\"rule\":\"linear\",\"base_batch\":64}}", ".lr.base", "is needed");
	type_refused("{\"lr\":{\"rule\":\"sqrt\",\"base\":1}}", ".lr.base_batch", "is needed");
	type_refused("{\"lr\":{\"base\":0}}", ".lr.base", "from 1e-12");
	type_refused("{\"limits\":{\"nice\":20}}", ".limits.nice", "from -20 to 19");
	type_refused("{\"limits\":{\"nice\":0.5}}", ".limits.nice", "whole");
	type_refused("{\"memory_mb\":-1}", ".memory_mb", "from 0 to");
	type_refused("{\"max_time_s\":\"soon\"}", ".max_time_s", "soon");
	type_refused("{\"about\":\"a\\nb\"}", ".about", "control character");
	type_refused("{\"about\":\"\"}", ".about", "1 to 512");
	type_refused("[]", "", "object");
}

TEST(test_parameters_are_checked)
{
	type_refused("{\"params\":{\"x\":{}}}", ".params.x.kind", "is needed");
	type_refused("{\"params\":{\"x\":null}}", ".params.x", "object");
	type_refused("{\"params\":{\"x\":{\"kind\":\"float\"}}}", ".params.x.kind", "integer, number, word");
	type_refused("{\"params\":{\"1x\":{\"kind\":\"word\"}}}", ".params.1x", "name of a parameter");
	type_refused("{\"params\":{\"a b\":{\"kind\":\"word\"}}}", ".params.a b", "name of a parameter");
	type_refused("{\"params\":{\"\":{\"kind\":\"word\"}}}", ".params.", "name of a parameter");
	type_refused("{\"params\":{\"batch\":{\"kind\":\"integer\"}}}", ".params.batch",
		     "filled in by Postrider");
	type_refused("{\"params\":{\"njobs\":{\"kind\":\"integer\"}}}", ".params.njobs",
		     "filled in by Postrider");
	type_refused("{\"params\":{\"x\":{\"kind\":\"integer\",\"min\":2,\"max\":1}}}", ".params.x.min",
		     "above max");
	type_refused("{\"params\":{\"x\":{\"kind\":\"integer\",\"min\":0.5}}}", ".params.x.min", "whole");
	type_refused("{\"params\":{\"x\":{\"kind\":\"integer\",\"values\":[\"a\"]}}}", ".params.x.values",
		     "words");
	type_refused("{\"params\":{\"x\":{\"kind\":\"word\",\"max\":1}}}", ".params.x.max", "numbers");
	type_refused("{\"params\":{\"x\":{\"kind\":\"word\",\"values\":[]}}}", ".params.x.values",
		     "1 to 1024");
	type_refused("{\"params\":{\"x\":{\"kind\":\"word\",\"values\":[\"a\",\"a\"]}}}",
		     ".params.x.values[1]", "twice");
	type_refused("{\"params\":{\"x\":{\"kind\":\"word\",\"values\":[\"\"]}}}", ".params.x.values[0]",
		     "1 to 128");
	type_refused("{\"params\":{\"x\":{\"kind\":\"word\",\"values\":[\"a\\u0007b\"]}}}",
		     ".params.x.values[0]", "control character");
	type_refused("{\"params\":{\"x\":{\"kind\":\"integer\",\"max\":9,\"default\":10}}}",
		     ".params.x.default", "range");
	type_refused("{\"params\":{\"x\":{\"kind\":\"integer\",\"default\":\"ten\"}}}", ".params.x.default",
		     "whole number");
	type_refused("{\"params\":{\"x\":{\"kind\":\"word\",\"values\":[\"a\"],\"default\":\"b\"}}}",
		     ".params.x.default", "not among");
	type_refused("{\"params\":{\"x\":{\"kind\":\"integer\",\"required\":true,\"default\":1}}}",
		     ".params.x.default", "required");
	type_refused("{\"epochs_param\":\"x\"}", ".epochs_param", "no parameter 'x'");
	type_refused("{\"params\":{\"x\":{\"kind\":\"word\"}},\"epochs_param\":\"x\"}", ".epochs_param",
		     "a word");
}

TEST(test_the_environment_is_checked)
{
	type_refused("{\"env\":{\"A=B\":\"1\"}}", ".env.A=B", "name of a variable");
	type_refused("{\"env\":{\"1A\":\"1\"}}", ".env.1A", "name of a variable");
	type_refused("{\"env\":{\"A\":1}}", ".env.A", "string");
	type_refused("{\"env\":{\"POSTRIDER_JOB\":\"1\"}}", ".env.POSTRIDER_JOB", "set by Postrider");
}

TEST(test_names_of_types_are_checked)
{
	static const char *const bad[] = { "", "Digits", "-x", ".x", "a b", "a/b", "\xc3\xa4" };
	char longest[JOB_TYPE_MAX_NAME + 2];
	struct job_type t = { 0 };
	struct json *v = NULL;

	assert_int_equal(json_parse("c", "{}", 2, &v, NULL), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(job_type_from_json("c", bad[i], v, &t, NULL), -ERR_FORMAT);
	memset(longest, 'a', sizeof longest);
	longest[JOB_TYPE_MAX_NAME + 1] = '\0';
	assert_int_equal(job_type_from_json("c", longest, v, &t, NULL), -ERR_FORMAT);
	longest[JOB_TYPE_MAX_NAME] = '\0';
	assert_int_equal(job_type_from_json("c", longest, v, &t, NULL), 0);
	job_type_release(&t);
	json_free(v);
}

TEST(test_counts_are_limited)
{
	struct strbuf text = { 0 };
	struct job_type t = { 0 };

	for (int n = JOB_TYPE_MAX_PARAMS; n <= JOB_TYPE_MAX_PARAMS + 1; n++) {
		strbuf_reset(&text);
		strbuf_puts(&text, "{\"params\":{");
		for (int i = 0; i < n; i++)
			strbuf_printf(&text, "%s\"p%d\":{\"kind\":\"word\"}", i ? "," : "", i);
		strbuf_puts(&text, "}}");
		if (n == JOB_TYPE_MAX_PARAMS) {
			t = type_must(text.text);
			job_type_release(&t);
		} else {
			type_refused(text.text, ".params", "at most 32");
		}
	}
	for (int n = JOB_TYPE_MAX_ARGS; n <= JOB_TYPE_MAX_ARGS + 1; n++) {
		strbuf_reset(&text);
		strbuf_puts(&text, "{\"argv\":[\"x\"");
		for (int i = 1; i < n; i++)
			strbuf_puts(&text, ",\"{batch}\"");
		strbuf_puts(&text, "]}");
		if (n == JOB_TYPE_MAX_ARGS) {
			t = type_must(text.text);
			job_type_release(&t);
		} else {
			type_refused(text.text, ".argv", "at most 256");
		}
	}
	strbuf_release(&text);
}

TEST(test_running_out_of_memory_is_told)
{
	bool failed = true;

	for (unsigned long k = 1; failed; k++) {
		struct job_type t = { 0 };
		struct json *v = NULL;
		struct err err = { 0 };
		int rc;

		assert_int_equal(json_parse("c", everything, strlen(everything), &v, NULL), 0);
		mem_fail_at(k, false);
		rc = job_type_from_json(TYPE_WHERE, "digits", v, &t, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		if (failed)
			assert_non_null(strstr(err.text, "memory"));
		job_type_release(&t);
		json_free(v);
	}
}

/* ---- a type from the description of its job ---- */

static void from_job(const char *design, const char *type, struct job_type *out, int want, struct err *err)
{
	char path[400], text[600];
	struct json *v = NULL;

	snprintf(path, sizeof path, "%s/job.json", support_temp_dir());
	assert_int_equal(io_write_file(path, design, strlen(design), NULL), 0);
	snprintf(text, sizeof text, "{\"job\":\"%s\"%s}", path, type);
	assert_int_equal(json_parse("t", text, strlen(text), &v, NULL), 0);
	assert_int_equal(job_type_from_json("c.json: types.x", "x", v, out, err), want);
	json_free(v);
}

#define JOB                                                                                                  \
	"// "                                                                                                \
	"mine\n{\"command\":[\"./t.py\",\"{batch}\",\"{epochs}\",\"{net}\",\"{rate}\"],\"work_dir\":\"/w\"," \
	"\"factors\":{\"batch\":[64,16],\"epochs\":[4,2,8],\"net\":[\"b\",\"a\"],\"njobs\":[1,2]},"          \
	"\"fixed\":{\"cpus\":2,\"rate\":0.5,\"lr\":0.1},\"result\":{\"regex\":\"x(.)\",\"scale\":"           \
	"\"percent\"}}"

TEST(test_a_type_is_the_design_its_job_was_measured_by)
{
	struct job_type t;
	struct err err = { 0 };

	from_job(JOB, ",\"max_time_s\":\"2m\"", &t, 0, &err);
	assert_string_equal(t.argv[0], "/w/t.py");
	assert_string_equal(t.work_dir, "/w");
	assert_true(t.n_argv == 5 && t.n_batches == 2 && t.batch[0] == 16 && t.batch[1] == 64);
	assert_true(t.cpus_min == 2 && t.cpus_max == 2 && t.cpus_default == 2);
	assert_int_equal(t.n_params, 3);
	assert_string_equal(t.param[0].name, "epochs");
	assert_true(t.param[0].kind == PARAM_INTEGER && t.param[0].min == 1 && t.param[0].max == EPOCHS_MAX);
	assert_string_equal(t.param[0].otherwise, "2..8"); /* the levels are what may be chosen */
	assert_string_equal(t.param[1].name, "net");
	assert_true(t.param[1].kind == PARAM_WORD && t.param[1].n_words == 2);
	assert_string_equal(t.param[1].otherwise, "b");
	assert_string_equal(t.param[2].name, "rate");
	assert_true(t.param[2].kind == PARAM_NUMBER && t.param[2].min == 0.5 && t.param[2].max == 0.5);
	assert_true(t.lr_base == 0.1 && t.max_time_s == 120);
	assert_string_equal(t.result.regex, "x(.)");
	assert_int_equal(t.result.scale, OUTPUT_PERCENT);
	assert_string_equal(t.epochs_param, "epochs");
	job_type_release(&t);
	from_job("{\"epochs\":14,\"command\":[\"t\",\"{batch}\",\"{epochs}\"],"
		 "\"factors\":{\"batch\":[64,16],\"epochs\":[4,2,8]}}",
		 "", &t, 0, &err);
	assert_string_equal(t.param[0].otherwise, "14"); /* what the user typed once */
	job_type_release(&t);
	from_job(JOB, ",\"batches\":[32]", &t, 0, &err); /* other keys win */
	assert_true(t.n_batches == 1 && t.batch[0] == 32);
	job_type_release(&t);
}

#define RATES                                                                                                \
	"{\"command\":[\"./t.py\",\"{batch}\",\"{lr}\"],\"work_dir\":\"/w\",\"factors\":{\"batch\":[16,64]," \
	"\"lr\":[0.1,0.001,0.01]}}"

static void expect_rate(const struct job_type *t, const char *params, const char *want)
{
	struct job_argv_values v = { .batch = 64, .lr = job_type_lr(t, 64), .cpus = 1, .job = "1" };
	struct job_params p = { 0 };
	struct json *j = NULL;
	struct err err = { 0 };
	char **argv = NULL;

	assert_int_equal(json_parse("p", params, strlen(params), &j, NULL), 0);
	if (job_params_read(t, j, NULL, &p, NULL, &err) || job_type_argv(t, &p, &v, &argv, &err))
		fail_msg("%s", err.text);
	assert_string_equal(argv[2], want);
	argv_free(argv);
	job_params_release(&p);
	json_free(j);
}

TEST(test_a_learning_rate_that_was_measured_at_several_values_is_a_parameter)
{
	struct job_type t;
	struct err err = { 0 };

	from_job(RATES, "", &t, 0, &err);
	assert_int_equal(t.n_params, 1);
	assert_string_equal(t.param[0].name, "lr");
	assert_true(t.param[0].kind == PARAM_NUMBER && t.param[0].min == 0.001 && t.param[0].max == 0.1);
	assert_true(isnan(t.lr_base));
	expect_rate(&t, "{}", "0.01");
	expect_rate(&t, "{\"lr\":0.05}", "0.05");
	job_type_release(&t);
	from_job(RATES, ",\"lr\":{\"rule\":\"linear\",\"base\":0.1,\"base_batch\":32}", &t, 0, &err);
	expect_rate(&t, "{}", "0.2"); /* other keys win */
	job_type_release(&t);
}

TEST(test_a_description_that_is_no_type_is_refused_by_name)
{
	struct job_type t;
	struct err err = { 0 };

	from_job(JOB, ",\"params\":{}", &t, -ERR_FORMAT, &err);
	assert_non_null(strstr(err.text, "types.x.params: is in the file"));
	from_job("{\"command\":[\"t\",\"{batch}\",\"{copy}\"],\"factors\":{\"batch\":[1,2]}}", "", &t,
		 -ERR_FORMAT, &err);
	assert_non_null(strstr(err.text, "{copy}"));
	from_job("{\"command\":[\"t\",\"{x}\"],\"factors\":{\"x\":[1,2]}}", "", &t, -ERR_FORMAT, &err);
	assert_non_null(strstr(err.text, "no {batch}"));
	from_job("{\"command\":[\"t\",\"{batch}\"],\"factors\":{\"batch\":[0.5,2]}}", "", &t, -ERR_FORMAT,
		 &err);
	assert_non_null(strstr(err.text, "whole number"));
	from_job("{\"command\":[", "", &t, -ERR_FORMAT, &err);
	assert_non_null(strstr(err.text, "job.json:1"));
}

TEST(test_paths_and_options_are_words_of_a_description)
{
	struct job_type t;
	struct err err = { 0 };

	from_job("{\"command\":[\"t\",\"{batch}\",\"{n}\"],\"factors\":{\"batch\":[1,2],\"n\":[\"/data/a "
		 "b\",\"-x\"]}"
		 "}",
		 "", &t, 0, &err);
	assert_int_equal(t.n_params, 1);
	assert_int_equal(t.param[0].kind, PARAM_WORD);
	assert_string_equal(t.param[0].word[0], "/data/a b");
	assert_string_equal(t.param[0].word[1], "-x");
	job_type_release(&t);
}

TEST(test_a_free_value_may_be_any_other)
{
	static const char text[] = "{\"seed_of\":\"runs/18 b\"}", bad[] = "{\"seed_of\":\"a\\nb\"}";
	struct job_params p;
	struct job_type t;
	struct err err = { 0 };
	struct json *v = NULL;

	from_job("{\"command\":[\"t\",\"{batch}\",\"{seed_of}\"],\"factors\":{\"batch\":[1,2]},"
		 "\"free\":{\"seed_of\":\"017\"}}",
		 "", &t, 0, &err);
	assert_int_equal(t.n_params, 1);
	assert_true(t.param[0].free);
	assert_string_equal(t.param[0].otherwise, "017"); /* as it was typed */
	assert_int_equal(json_parse("p", text, sizeof text - 1, &v, NULL), 0);
	assert_int_equal(job_params_read(&t, v, NULL, &p, NULL, &err), 0);
	assert_string_equal(p.value[0], "runs/18 b");
	job_params_release(&p);
	json_free(v);
	assert_int_equal(json_parse("p", bad, sizeof bad - 1, &v, NULL), 0);
	assert_int_equal(job_params_read(&t, v, NULL, &p, NULL, &err), -ERR_ARG);
	json_free(v);
	job_type_release(&t);
}
