/* scheduler/jobs/record: the job object as docs/PROTOCOL.md writes it. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/text/text.h"
#include "scheduler/jobs/record.h"
#include "tests/support/test.h"
#include "tests/unit/jobs/plain_job.h"

static struct strbuf text;

static const char *rendered(const struct job_record *j, const struct job_live *live)
{
	struct json_writer w;

	strbuf_reset(&text);
	json_begin(&w, &text, false);
	job_json(&w, j, live);
	return strbuf_text(&text);
}

static struct json *parsed(const char *s)
{
	struct json *v = NULL;
	struct err err = { 0 };

	if (json_parse("job", s, strlen(s), &v, &err))
		fail_msg("%s: %s", err.text, s);
	return v;
}

/* The example of the document, with what the row gives it. */
TEST(test_job_object_is_written_in_full)
{
	struct job_record j = plain_job(12);
	struct job_live live = {
		.has_estimate = true,
		.end_s = 20.1,
		.end_low_s = 17,
		.end_high_s = 24.5,
		.waiting_code = "slots",
		.waiting_message = "2 of 4 cpus are free, it wants 4",
		.has_progress = true,
		.epoch = 2,
		.epochs = 4,
		.accuracy = 0.91,
		.final_accuracy = 0.95,
		.pid = 4711,
	};

	j.batches = "[64,128]";
	j.state = JOB_DONE;
	j.started_ns = NOON + 12 + 200000000;
	j.ended_ns = j.started_ns + 40000000400;
	j.accuracy = 0.9312345678;
	j.exit_code = 0;
	j.max_rss_mb = 312.5;
	j.slo_outcome = SLO_MET;
	j.epochs = 6;
	j.priority = -3;
	j.may_stop = true;
	j.stopped_epoch = 4;
	j.steered = "[{\"after\":2,\"batch\":64}]";
	j.steer_kept = "not for others";
	assert_string_equal(
		rendered(&j, &live),
		"{\"job\":\"12\",\"number\":12,\"state\":\"done\",\"type\":\"digits\",\"mode\":\"run\","
		"\"params\":{\"network\":\"lenet5\",\"epochs\":4},\"cpus\":2,\"gpus\":0,\"devices\":null,"
		"\"tag\":null,\"uid\":1000,"
		"\"tenant\":\"lab\",\"priority\":-3,\"slo_s\":60,"
		"\"confidence\":0.9,\"best_effort\":false,\"chance\":null,\"value\":null,\"may_stop\":true,"
		"\"after\":null,\"after_more\":null,"
		"\"after_ok\":"
		"false,\"retry\":0,\"attempt\":0,\"index\":null,\"verdict\":"
		"\"promised\","
		"\"batches\":[64,128],"
		"\"max_memory_mb\":null,\"submitted_at\":\"2026-11-17T10:00:00.123456Z\","
		"\"started_at\":\"2026-11-17T10:00:00.323456Z\",\"ended_at\":\"2026-11-17T10:00:40.323457Z\","
		"\"deadline_at\":\"2026-11-17T10:01:00.123456Z\",\"batch\":128,\"epochs\":6,\"lr\":0.02,"
		"\"steered\":[{\"after\":2,\"batch\":64}],\"policy\":"
		"\"postrider\","
		"\"model\":\"9f2c\",\"predicted_s\":41.2,\"upper_s\":55,\"predicted_accuracy\":0.94,"
		"\"estimate\":{\"start_s\":0,\"end_s\":20.1,\"end_low_s\":17,\"end_high_s\":24.5,\"late\":"
		"false},"
		"\"waiting\":{\"code\":\"slots\",\"message\":\"2 of 4 cpus are free, it wants 4\"},"
		"\"progress\":{\"epoch\":2,\"epochs\":4,\"accuracy\":0.91,\"final_accuracy\":0.95},\"wait_"
		"s\":0.2,\"run_s\":40,"
		"\"response_s\":40.2,\"accuracy\":0.931235,\"stopped_epoch\":4,\"exit_code\":0,\"signal\":"
		"null,\"max_rss_mb\":"
		"312.5,"
		"\"slo_outcome\":\"met\",\"slack_s\":19.8,\"reason\":null,\"pid\":4711}");
}

/* Every member the document shows is there, in its order, and no other: a change of either is a change of
 * both. */
TEST(test_job_object_has_the_members_of_the_document)
{
	struct job_record j = plain_job(12);
	struct json *v = parsed(rendered(&j, NULL)), *example;
	const struct json *a, *b;
	char *doc = NULL, *from, *to, *dots;
	struct err err = { 0 };
	size_t len;

	if (io_read_file("docs/PROTOCOL.md", 1 << 20, &doc, &len, &err))
		fail_msg("%s", err.text);
	from = strstr(doc, "## The job object");
	assert_non_null(from);
	from = strchr(from, '{');
	to = strstr(from, "```");
	assert_non_null(to);
	*to = '\0';
	dots = strstr(from, "...\"}"); /* none is expected at the end */
	assert_null(dots);
	example = parsed(from);
	for (a = json_first(v), b = json_first(example); a && b; a = json_next(a), b = json_next(b))
		assert_string_equal(json_key(a), json_key(b));
	assert_null(a);
	assert_null(b);
	json_free(v);
	json_free(example);
	free(doc);
}

TEST(test_job_without_anything_known_is_null_throughout)
{
	struct job_record j = plain_job(7);
	struct json *v;
	static const char *const null[] = { "slo_s",    "started_at",   "ended_at", "deadline_at",
					    "batch",    "lr",           "estimate", "waiting",
					    "progress", "wait_s",       "run_s",    "response_s",
					    "accuracy", "exit_code",    "signal",   "slo_outcome",
					    "slack_s",  "reason",       "pid",      "tenant",
					    "epochs",   "stopped_epoch" };

	j.slo_s = j.batch = j.lr = NAN;
	j.tenant = NULL;
	v = parsed(rendered(&j, NULL));
	for (size_t i = 0; i < sizeof null / sizeof *null; i++)
		if (json_type(json_get(v, null[i])) != JSON_NULL)
			fail_msg("%s is not null", null[i]);
	json_free(v);
}

TEST(test_awkward_text_and_numbers_stay_one_line_of_json)
{
	struct job_record j = plain_job(UINT64_C(9223372036854775807));
	const char *line;
	struct json *v;

	j.tag = "a \"quoted\" \\ tag\nwith a line end, \xc3\xa9 and \xff";
	j.params = "{\n \"a\":\t1,\r\n \"b\": [1,\n2]\n}";
	j.slo_s = 1e300; /* no calendar has that day */
	j.upper_s = INFINITY;
	j.predicted_s = -1e-9;
	j.lr = 1.25e-9;
	line = rendered(&j, NULL);
	assert_null(strchr(line, '\n'));
	assert_null(strchr(line, '\r'));
	assert_null(strstr(line, "-0,"));
	v = parsed(line);
	assert_string_equal(json_string(json_get(v, "job"), ""), "9223372036854775807");
	assert_string_equal(json_string(json_get(v, "tag"), ""),
			    "a \"quoted\" \\ tag\nwith a line end, \xc3\xa9 and \xef\xbf\xbd");
	assert_int_equal(json_size(json_get(json_get(v, "params"), "b")), 2);
	assert_int_equal(json_type(json_get(v, "deadline_at")), JSON_NULL);
	assert_int_equal(json_type(json_get(v, "upper_s")), JSON_NULL);
	assert_true(json_number(json_get(v, "lr"), 0) == 1.25e-9);
	json_free(v);
}

TEST(test_moments_before_1970_and_at_the_ends_are_written)
{
	char buf[40];

	assert_string_equal(text_utc(-1, buf), "1969-12-31T23:59:59.999999Z");
	assert_string_equal(text_utc(1000, buf), "1970-01-01T00:00:00.000001Z");
	assert_string_equal(text_utc(INT64_MAX, buf), "2262-04-11T23:47:16.854775Z");
	assert_string_equal(text_utc(INT64_MIN, buf), "1677-09-21T00:12:43.145224Z");
}

static int release(void **state)
{
	(void)state;
	strbuf_release(&text);
	return 0;
}

TEST_GROUP(NULL, release);
