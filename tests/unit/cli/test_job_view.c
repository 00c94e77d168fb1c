/* scheduler/cli/job_view and decision_view: objects of the protocol in, what people read out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/cli/client/decision_view.h"
#include "scheduler/cli/client/job_view.h"
#include "tests/support/test.h"

#define RUNNING                                                                                              \
	"{\"job\":\"12\",\"state\":\"running\",\"type\":\"digits\",\"mode\":\"run\",\"params\":{"            \
	"\"network\":\"lenet5\","                                                                            \
	"\"epochs\":4},\"cpus\":2,\"tag\":null,\"uid\":54321,\"slo_s\":60,\"confidence\":0.9,\"best_"        \
	"effort\":false,"                                                                                    \
	"\"verdict\":\"promised\",\"batches\":[64,128],\"max_memory_mb\":null,"                              \
	"\"submitted_at\":\"2026-11-16T10:00:00.000000Z\",\"started_at\":\"2026-11-16T10:00:00.200000Z\","   \
	"\"ended_at\":null,\"batch\":128,\"lr\":0.02,\"policy\":\"postrider\",\"model\":\"9f2c\","           \
	"\"predicted_s\":41.2,"                                                                              \
	"\"upper_s\":55.0,\"predicted_accuracy\":0.94,\"estimate\":{\"start_s\":0,\"end_s\":20.1,\"end_low_" \
	"s\":17.0,"                                                                                          \
	"\"end_high_s\":24.5,\"late\":false},\"waiting\":null,\"progress\":{\"epoch\":2,\"epochs\":4,"       \
	"\"accuracy\":0.91},"                                                                                \
	"\"wait_s\":0.2,\"run_s\":null,\"response_s\":null,\"accuracy\":null,\"exit_code\":null,\"signal\":" \
	"null,"                                                                                              \
	"\"max_rss_mb\":null,\"slo_outcome\":null,\"slack_s\":null,\"reason\":null,\"pid\":4711}"

static struct json *parsed(const char *text)
{
	struct json *v = NULL;
	struct err err = { 0 };

	if (json_parse("test", text, strlen(text), &v, &err))
		fail_msg("%s", err.text);
	return v;
}

static double at(const char *moment)
{
	double s = NAN;

	assert_true(job_moment(moment, &s));
	return s;
}

static void has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("'%s' is not in:\n%s", want, text);
}

/* The block, and the line, of a job. */
static void shows(const char *json, const char *const *in_block, const char *line)
{
	struct json *v = parsed(json);
	struct strbuf out = { 0 };
	struct job_view j;

	assert_true(job_view_read(v, &j));
	job_view_block(&j, at("2026-11-16T10:00:35Z"), &out);
	for (size_t i = 0; in_block[i]; i++)
		has(strbuf_text(&out), in_block[i]);
	strbuf_reset(&out);
	job_view_line(&j, 0.0, &out);
	assert_string_equal(strbuf_text(&out), line);
	strbuf_release(&out);
	json_free(v);
}

/* A job that nothing was promised: what it says after_s seconds after it came, `low` to `high` before its
 * end. */
static void foresees(double slo_s, double after_s, int epoch, double low, double high, const char *want)
{
	struct strbuf text = { 0 }, out = { 0 };
	struct job_view j;
	struct json *v;

	strbuf_printf(&text,
		      "{\"job\":\"1\",\"state\":\"running\",\"type\":\"t\",\"verdict\":\"best_effort\","
		      "\"slo_s\":%g,\"confidence\":0.9,\"submitted_at\":\"2026-11-16T10:00:00.000000Z\","
		      "\"estimate\":{\"start_s\":0,\"end_s\":%g,\"end_low_s\":%g,\"end_high_s\":%g,"
		      "\"late\":false},\"progress\":{\"epoch\":%d,\"epochs\":14,\"accuracy\":null}}",
		      slo_s, (low + high) / 2, low, high, epoch);
	v = parsed(strbuf_text(&text));
	assert_true(job_view_read(v, &j));
	job_view_outlook_put(&j, 0.0, at("2026-11-16T10:00:00Z") + after_s, &out);
	assert_string_equal(strbuf_text(&out), want);
	json_free(v);
	strbuf_release(&text);
	strbuf_release(&out);
}

TEST(test_a_limit_that_nobody_promised_is_judged_by_the_epochs)
{
	foresees(480, 60, 3, 200, 260,
		 "the limit of 8 min 00 s will hold: it takes 4 min 50 s, at most "
		 "5 min 20 s at 90 %");
	foresees(300, 60, 3, 200, 260,
		 "the limit of 5 min 00 s may hold or not: it takes 4 min 50 s, at most "
		 "5 min 20 s at 90 %; 13 epochs would be in time, or --slo 320s for all 14");
	foresees(180, 60, 3, 200, 240,
		 "the limit of 3 min 00 s will not hold: it takes 4 min 40 s, at most "
		 "5 min 00 s at 90 %; 8 epochs would be in time, or --slo 300s for all 14");
	/* A start-up may be in the first epoch. */
	foresees(180, 60, 1, 200, 240,
		 "the limit of 3 min 00 s may hold or not: it takes 4 min 40 s, at most "
		 "5 min 00 s at 90 %; 7 epochs would be in time, or --slo 300s for all 14");
	foresees(50, 60, 3, 200, 1240,
		 "the limit of 50 s will not hold: it takes 13 min 00 s, at most "
		 "21 min 40 s at 90 %; --slo 22m would hold");
}

TEST(test_a_running_job_says_how_long_it_has_left)
{
	struct json *v = parsed(RUNNING);
	struct strbuf out = { 0 };
	struct job_view j;

	assert_true(job_view_read(v, &j));
	job_view_progress(&j, 1.0, &out);
	assert_string_equal(strbuf_text(&out), "epoch 2 of 4, 19.1 s left, at most 23.5 s at 90 %");
	strbuf_reset(&out);
	j.live.epoch = NAN;
	job_view_progress(&j, 1.0, &out);
	assert_string_equal(strbuf_text(&out), "");
	strbuf_release(&out);
	json_free(v);
}

TEST(test_a_running_job_shows_its_promise_and_its_end)
{
	shows(RUNNING,
	      (const char *const[]){ "job 12: running\n",
				     "digits network=lenet5 epochs=4, 2 cpus, of user 54321", ", 35 s ago",
				     "60 s at 90 %: promised", "41.2 s in all, at most 55 s, accuracy 0.9400",
				     "128, learning rate 0.02\n", "waited 200 ms, process 4711",
				     "in 20.1 s (17 s to 24.5 s)\n", "epoch 2 of 4, accuracy 0.9100", NULL },
	      "job 12 running, batch 128, epoch 2 of 4, ends in 20.1 s (17 s to 24.5 s)");
}

TEST(test_a_queued_job_shows_why_it_waits)
{
	shows("{\"job\":\"13\",\"state\":\"queued\",\"batch\":64,\"estimate\":{\"start_s\":12,\"end_s\":40,"
	      "\"end_low_s\":"
	      "null,\"end_high_s\":55,\"late\":true},\"waiting\":{\"code\":\"slots\",\"message\":\"2 of 4 "
	      "cpus are free, it "
	      "wants 4\"}}",
	      (const char *const[]){
		      "job 13: queued\n", "decided again when it starts", "starts      in 12 s\n",
		      "waits       2 of 4 cpus are free, it wants 4\n",
		      "ends        in 40 s (at most 55 s): predicted to miss its limit\n", NULL },
	      "job 13 queued, batch 64, starts in 12 s, ends in 40 s (at most 55 s), predicted to be late");
}

TEST(test_an_ended_job_shows_how_and_whether_in_time)
{
	shows("{\"job\":\"14\",\"state\":\"done\",\"slo_s\":60,\"confidence\":0.9,\"batch\":128,\"ended_at\":"
	      "\"2026-11-16T10:00:30Z\",\"run_s\":40.2,\"response_s\":40.4,\"accuracy\":0.93,\"exit_code\":0,"
	      "\"max_rss_mb\":"
	      "120,\"slo_outcome\":\"met\",\"slack_s\":19.6}",
	      (const char *const[]){ "5 s ago, ran 40.2 s, 40.4 s since it was submitted",
				     "exit code 0, accuracy 0.9300", "memory 120 MB",
				     "limit met, 19.6 s to spare", NULL },
	      "job 14 done, batch 128 after 40.4 s, exit code 0, accuracy 0.9300, limit met, 19.6 s to "
	      "spare");
	shows("{\"job\":\"15\",\"state\":\"failed\",\"signal\":9,\"slo_outcome\":\"missed\",\"slack_s\":-3,"
	      "\"reason\":\"it ran "
	      "longer than 5 s\"}",
	      (const char *const[]){ "ended by signal 9 (Killed)", "missed by 3 s", "it ran longer than 5 s",
				     NULL },
	      "job 15 failed, ended by signal 9 (Killed), limit missed by 3 s: it ran longer than 5 s");
}

TEST(test_tenant_epochs_and_an_early_stop_are_shown)
{
	static const char queued[] =
		"{\"job\":\"3\",\"state\":\"queued\",\"type\":\"digits\",\"params\":{\"epochs\":\"3..20\"},"
		"\"uid\":54321,\"tenant\":\"research\",\"priority\":5,\"may_stop\":true,\"batch\":128,"
		"\"epochs\":12,\"stopped_epoch\":null,\"waiting\":{\"code\":\"quota\",\"message\":\"its "
		"tenant "
		"runs on 2 of 2 cpus\"}}";
	static const char own[] =
		"{\"job\":\"3\",\"state\":\"running\",\"uid\":54321,\"tenant\":\"uid 1000\","
		"\"priority\":0,\"may_stop\":true,\"batch\":128,\"epochs\":null}";
	static const char stopped[] = "{\"job\":\"3\",\"state\":\"done\",\"batch\":128,\"epochs\":12,"
				      "\"stopped_epoch\":9,\"slo_outcome\":\"met\",\"slack_s\":2}";
	static const char gave[] = "{\"job\":\"3\",\"state\":\"done\",\"batch\":128,\"epochs\":12,"
				   "\"stopped_epoch\":9,\"reason\":\"gave_back\"}";
	struct json *v = parsed(own);
	struct strbuf out = { 0 };
	struct cli_table t;
	struct job_view j;

	shows(gave,
	      (const char *const[]){ "stopped     after epoch 9, because its time was worth more to other "
				     "jobs\n",
				     NULL },
	      "job 3 done, batch 128, 12 epochs, stopped after epoch 9 for other jobs");
	shows(queued,
	      (const char *const[]){ "digits epochs=3..20, of user 54321, tenant research, priority 5\n",
				     "batch       128, 12 epochs (decided again when it starts)\n",
				     "waits       its tenant runs on 2 of 2 cpus\n", NULL },
	      "job 3 queued, batch 128, 12 epochs, starts unknown, ends unknown");
	shows(own, (const char *const[]){ ", of user 54321\n", "batch       128, may stop early\n", NULL },
	      "job 3 running, batch 128, ends unknown");
	shows(stopped,
	      (const char *const[]){ "batch       128, 12 epochs\n",
				     "stopped     after epoch 9, to be in time\n", NULL },
	      "job 3 done, batch 128, 12 epochs, stopped after epoch 9, limit met, 2 s to spare");
	/* A user in no tenant is one alone: a column of that would tell nothing. */
	cli_table_init(&t, JOB_VIEW_ALIGN);
	job_view_header(&t);
	assert_true(job_view_read(v, &j));
	job_view_row(&t, &j, 0.0, 0.0);
	assert_int_equal(t.n_cells, 2 * strlen(JOB_VIEW_ALIGN));
	cli_table_print(&t, &out, false);
	assert_null(strstr(strbuf_text(&out), "tenant"));
	assert_null(strstr(strbuf_text(&out), "epochs"));
	cli_table_release(&t);
	strbuf_release(&out);
	json_free(v);
}

#define CHANGE(after, batch, why)                                                                            \
	"{\"after\":" #after ",\"batch\":" #batch ",\"lr\":0.5,\"last\":9,\"why\":\"" why                    \
	"\",\"end_s\":12.5,\"end_upper_s\":14,\"accuracy\":0.91}"

TEST(test_batches_of_a_job_that_was_steered_are_shown_in_their_order)
{
	static const char two[] =
		"{\"job\":\"3\",\"state\":\"running\",\"batch\":32,\"epochs\":9,\"steered\":[" CHANGE(
			2, 64, "faster") "," CHANGE(4, 64, "accurate") "," CHANGE(5, 32, "late") "]}";
	static const char many[] = "{\"job\":\"3\",\"state\":\"done\",\"batch\":32,\"steered\":[" CHANGE(
		1, 64, "faster") "," CHANGE(2, 32,
					    "accurate") "," CHANGE(3, 64,
								   "faster") "," CHANGE(4, 128,
											"\\u001b[1m") "]}";
	struct json *v = parsed(two);
	struct strbuf out = { 0 };
	struct job_view j;

	shows(two, (const char *const[]){ "batch       32>64>32, 9 epochs\n", NULL },
	      "job 3 running, batch 32>64>32, 9 epochs, ends unknown");
	shows(many, (const char *const[]){ "batch       32>..>128\n", NULL },
	      "job 3 done, batch 32>..>128, no accuracy found in its output");
	assert_true(job_view_read(v, &j));
	job_view_steered(&j, &out);
	assert_non_null(strstr(out.text,
			       "steered while it ran, from batch 32 on\n"
			       "  after epoch 2  batch 64, learning rate 0.5, to end after epoch 9: "
			       "faster to keep the promise; end in 12.5 s, at most 14 s, accuracy "
			       "0.9100\n"));
	strbuf_reset(&out);
	json_free(v);
	v = parsed(many);
	assert_true(job_view_read(v, &j));
	job_view_steered(&j, &out);
	assert_null(strchr(out.text, '\033'));
	strbuf_release(&out);
	json_free(v);
}

TEST(test_words_in_a_job_are_cleaned)
{
	struct json *v = parsed("{\"job\":\"16\",\"state\":\"queued\",\"type\":\"a\\u001b[2J\",\"tag\":"
				"\"b\\u0007\",\"params\":{"
				"\"k\\u001b\":\"v\\u009b\"},\"waiting\":{\"message\":\"w\\u001b\"},"
				"\"submitted_at\":\"\\u001b\"}");
	struct strbuf out = { 0 };
	struct cli_table t;
	struct job_view j;

	assert_true(job_view_read(v, &j));
	job_view_block(&j, 0.0, &out);
	job_view_line(&j, 0.0, &out);
	cli_table_init(&t, JOB_VIEW_ALIGN);
	job_view_header(&t);
	job_view_row(&t, &j, 0.0, 0.0);
	cli_table_print(&t, &out, false);
	assert_false(out.failed);
	assert_null(strchr(strbuf_text(&out), '\033'));
	assert_null(strchr(strbuf_text(&out), '\a'));
	assert_null(strstr(strbuf_text(&out), "\xc2\x9b"));
	cli_table_release(&t);
	strbuf_release(&out);
	json_free(v);
}

TEST(test_what_is_no_job_is_refused)
{
	static const char *const bad[] = { "null",
					   "[]",
					   "{}",
					   "{\"job\":12,\"state\":\"done\"}",
					   "{\"job\":\"\",\"state\":\"done\"}",
					   "{\"job\":\"1x\",\"state\":\"done\"}",
					   "{\"job\":\"123456789012345678901\",\"state\":\"done\"}",
					   "{\"job\":\"12\"}",
					   "{\"job\":\"12\",\"state\":\"asleep\"}" };
	struct job_view j;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct json *v = parsed(bad[i]);

		if (job_view_read(v, &j))
			fail_msg("accepted: %s", bad[i]);
		json_free(v);
	}
	assert_false(job_view_read(NULL, &j));
}

/* A daemon of another mind: every member of the wrong type, and numbers out of any range. */
TEST(test_wrong_types_and_wild_numbers_are_shown_without_harm)
{
	static const char *const odd[] = {
		"{\"job\":\"1\",\"state\":\"done\",\"type\":1,\"params\":[1,{}],\"estimate\":3,\"waiting\":[]"
		",\"progress\":\"x\","
		"\"exit_code\":\"0\",\"submitted_at\":5,\"slo_s\":\"60\",\"reason\":{}}",
		"{\"job\":\"1\",\"state\":\"running\",\"estimate\":{\"start_s\":-1e300,\"end_s\":1e300,\"end_"
		"low_s\":-5,"
		"\"end_high_s\":1e308},\"batch\":-1e308,\"cpus\":1e308,\"uid\":-1e300,\"pid\":1e300,"
		"\"started_at\":"
		"\"9999-99-99T00:00:00Z\",\"progress\":{\"epoch\":1e300,\"epochs\":-1e300}}",
		"{\"job\":\"1\",\"state\":\"failed\",\"exit_code\":1e300,\"signal\":-1e300,\"slack_s\":1e300,"
		"\"slo_outcome\":\"\"}",
		"{\"job\":\"1\",\"state\":\"failed\",\"exit_code\":0.5,\"signal\":127,\"ended_at\":\"\"}",
	};

	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		struct json *v = parsed(odd[i]);
		struct strbuf out = { 0 };
		struct job_view j;
		int code;

		assert_true(job_view_read(v, &j));
		job_view_block(&j, 1e9, &out);
		job_view_line(&j, 1e9, &out);
		code = job_view_exit_code(&j);
		assert_true(code >= 0 && code < 256);
		assert_true(out.len > 0);
		strbuf_release(&out);
		json_free(v);
	}
}

static void exits(const char *json, int want)
{
	struct json *v = parsed(json);
	struct job_view j;

	assert_true(job_view_read(v, &j));
	assert_int_equal(job_view_exit_code(&j), want);
	json_free(v);
}

TEST(test_exit_codes_of_jobs)
{
	exits("{\"job\":\"1\",\"state\":\"done\",\"exit_code\":0}", 0);
	exits("{\"job\":\"1\",\"state\":\"done\",\"exit_code\":null}", 0);
	exits("{\"job\":\"1\",\"state\":\"failed\",\"exit_code\":7}", 7);
	exits("{\"job\":\"1\",\"state\":\"failed\",\"exit_code\":0}", 1);
	exits("{\"job\":\"1\",\"state\":\"failed\",\"exit_code\":null,\"signal\":9}", 1);
	exits("{\"job\":\"1\",\"state\":\"cancelled\",\"exit_code\":0}", 1);
	exits("{\"job\":\"1\",\"state\":\"lost\"}", 1);
	exits("{\"job\":\"1\",\"state\":\"rejected\"}", 3);
}

TEST(test_estimates_come_nearer_with_age)
{
	struct json *v = parsed(RUNNING);
	char buf[JOB_VIEW_SPAN];
	struct job_view j;

	assert_true(job_view_read(v, &j));
	assert_string_equal(job_view_end(&j, 10.1, buf), "in 10 s (6.9 s to 14.4 s)");
	assert_string_equal(job_view_end(&j, 1000.0, buf), "any moment");
	json_free(v);
}

/* ---- decisions ---- */

#define DECISION                                                                                             \
	"{\"at\":\"2026-11-16T10:00:00Z\",\"when\":\"arrival\",\"policy\":\"naive\",\"confidence\":0.9,"     \
	"\"slo_s\":60,"                                                                                      \
	"\"chosen\":1,\"smallest_slo_s\":37.5,\"took_us\":12.4,\"candidates\":["                             \
	"{\"batch\":64,\"wait_s\":0,\"wait_upper_s\":0,\"time_s\":70.1,\"upper_s\":88,\"accuracy\":0.95,"    \
	"\"breaks\":\"7\","                                                                                  \
	"\"memory_mb\":4000,\"headroom_s\":-28,\"feasible\":false,\"reasons\":[\"slo_exceeded\",\"breaks_"   \
	"promise\"]},"                                                                                       \
	"{\"batch\":128,\"lr\":0.02,\"wait_s\":0,\"time_s\":41.2,\"upper_s\":55,\"accuracy\":0.94,"          \
	"\"headroom_s\":5,"                                                                                  \
	"\"feasible\":true,\"reasons\":[]},"                                                                 \
	"{\"batch\":256,\"wait_upper_s\":9,\"time_s\":30,\"upper_s\":58,\"accuracy\":0.9,\"feasible\":true," \
	"\"reasons\":"                                                                                       \
	"[\"lower_accuracy\"]}]}"

TEST(test_a_decision_says_why_each_candidate_lost)
{
	struct json *v = parsed(DECISION);
	struct strbuf out = { 0 };
	struct decision_view d;

	assert_true(decision_view_read(v, &d));
	assert_int_equal(d.chosen, 1);
	assert_true(d.taken.batch == 128.0);
	decision_view_table(&d, &out, false, false);
	has(strbuf_text(&out), "bound (90 %)");
	has(strbuf_text(&out), "bound 88 s is over the limit of 60 s; job 7 would miss its promise");
	has(strbuf_text(&out), "*    128");
	has(strbuf_text(&out), "chosen");
	has(strbuf_text(&out), "accuracy 0.9000 is below the 0.9400 of batch 128");
	strbuf_release(&out);
	json_free(v);
}

TEST(test_the_column_outside_the_training_table_is_named)
{
	struct json *v =
		parsed("{\"batch\":64,\"extrapolated\":true,\"outside\":{\"column\":\"cpus\\u001b[m\","
		       "\"category\":false,\"value\":8,\"least\":1,\"most\":4}}");
	struct strbuf out = { 0 };
	struct candidate_view k;

	assert_true(candidate_view_read(v, &k));
	decision_out_of_range(&k, &out);
	assert_null(strchr(strbuf_text(&out), '\033')); /* a daemon cannot write to the terminal */
	has(strbuf_text(&out), " 8 is outside 1 to 4 of the training table");
	strbuf_release(&out);
	json_free(v);
}

TEST(test_every_reason_has_a_phrase)
{
	static const char *const phrase[][2] = {
		{ "slo_exceeded", "waits up to 9 s and takes up to 58 s: over the limit of 60 s" },
		{ "no_bound", "too few past runs for a bound at 90 %" },
		{ "extrapolated", "outside the data the model was trained on" },
		{ "lower_accuracy", "accuracy 0.9000 is below the 0.9400 of batch 128" },
		{ "slower", "within the model's error of batch 128, which takes 41.2 s instead of 30 s" },
		{ "unstable", "the model predicts no time above 0, or a queue without a steady state" },
		{ "memory", "needs more memory than allowed" },
		{ "breaks_promise", "another job would miss its promise" },
		{ "too_wide", "needs more cpus than the machine has for jobs" },
		{ "not_picked", "policy naive chooses by another rule" },
		{ "not_tried", "not tried: about as much work as one that was too slow" },
		{ "made_up", "made_up" },
	};
	struct json *v = parsed(DECISION);
	struct decision_view d;
	struct candidate_view k;

	assert_true(decision_view_read(v, &d));
	assert_true(candidate_view_read(json_at(d.candidates, 2), &k));
	for (size_t i = 0; i < sizeof phrase / sizeof phrase[0]; i++) {
		struct strbuf out = { 0 };

		decision_reason(&d, &k, phrase[i][0], &out);
		assert_string_equal(strbuf_text(&out), phrase[i][1]);
		strbuf_release(&out);
	}
	json_free(v);
}

/* Batches 64 and 128 with 1 to 20 epochs each; 64 is feasible up to 7 of them, 128 up to 15, which is
 * chosen. */
static struct json *pairs(void)
{
	struct strbuf text = { 0 };
	struct json *v;

	strbuf_puts(&text, "{\"confidence\":0.9,\"slo_s\":60,\"chosen\":34,\"candidates\":[");
	for (int i = 0; i < 40; i++) {
		int batch = i < 20 ? 64 : 128, epochs = i % 20 + 1;
		bool feasible = epochs <= (i < 20 ? 7 : 15);

		strbuf_printf(&text,
			      "%s{\"batch\":%d,\"epochs\":%d,\"time_s\":%d,\"upper_s\":%d,\"accuracy\":%g,"
			      "\"feasible\":%s,\"reasons\":[%s]}",
			      i ? "," : "", batch, epochs, 2 * epochs, 3 * epochs, 0.5 + 0.02 * epochs,
			      feasible ? "true" : "false",
			      i == 34    ? ""
			      : feasible ? "\"lower_accuracy\""
					 : "\"slo_exceeded\"");
	}
	strbuf_puts(&text, "]}");
	v = parsed(strbuf_text(&text));
	strbuf_release(&text);
	return v;
}

static size_t lines_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

TEST(test_of_many_pairs_those_that_tell_something_are_shown)
{
	struct json *v = pairs();
	struct strbuf out = { 0 };
	struct decision_view d;

	assert_true(decision_view_read(v, &d));
	assert_true(d.taken.epochs == 15.0);
	decision_view_table(&d, &out, false, true);
	assert_int_equal(lines_of(strbuf_text(&out)), 41);
	strbuf_reset(&out);
	/* The ends of both batches, both sides of what is feasible, and 14 epochs beside the chosen 15. */
	decision_view_table(&d, &out, false, false);
	assert_int_equal(lines_of(strbuf_text(&out)), 1 + 9 + 1);
	has(strbuf_text(&out), "(31 candidates in between left out; -v shows all)\n");
	has(strbuf_text(&out), "*    128      15");
	has(strbuf_text(&out), "     128      16");
	has(strbuf_text(&out), "      64       7");
	has(strbuf_text(&out), "is below the 0.8000 of batch 128 with 15 epochs");
	strbuf_release(&out);
	json_free(v);
}

TEST(test_what_is_no_decision_is_refused)
{
	static const char *const bad[] = { "null",
					   "{}",
					   "{\"candidates\":3}",
					   "{\"candidates\":[3]}",
					   "{\"candidates\":[{\"batch\":\"64\"}]}",
					   "{\"chosen\":1,\"candidates\":[{\"batch\":64}]}",
					   "{\"chosen\":-2,\"candidates\":[{\"batch\":64}]}",
					   "{\"chosen\":0.5,\"candidates\":[{\"batch\":64}]}" };
	struct decision_view d;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct json *v = parsed(bad[i]);

		if (decision_view_read(v, &d))
			fail_msg("accepted: %s", bad[i]);
		json_free(v);
	}
}

TEST(test_seconds_to_type_back_are_rounded_up)
{
	static const double s[] = { 37.5,   37.50001, 0.1234567, 0.999999, 9.999, 118.99, 119.1,
				    1234.2, 99999.99, 172790.0,  3e6,      1e-9,  0.0 };
	char buf[32];
	double back;

	for (size_t i = 0; i < sizeof s / sizeof s[0]; i++) {
		assert_int_equal(text_duration(text_seconds_up(s[i], buf), &back, NULL), 0);
		if (!(back >= s[i] && back <= 1.04 * s[i]))
			fail_msg("%.9g s became %s", s[i], buf);
	}
	assert_string_equal(text_seconds_up(37.50001, buf), "37.6 s");
	assert_string_equal(text_seconds_up(0.473810, buf), "0.474 s");
}
