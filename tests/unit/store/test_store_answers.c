/* scheduler/store/reader, answers: what the store answers about old jobs, and in which form. */
#define _GNU_SOURCE
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#include "common/csv.h"
#include "common/json/json.h"

TEST(test_unknown_job_is_an_empty_answer)
{
	struct store *s = open_store(fresh_dir());

	assert_string_equal(ask(s, STORE_JOB, 5, NULL), "");
	assert_string_equal(ask(s, STORE_EXPLAIN, 5, NULL), "");
	assert_string_equal(ask(s, STORE_LIST, 0, NULL), "");
	assert_string_equal(ask(s, STORE_OBSERVATIONS, 0, NULL), "");
	store_close(s);
}

TEST(test_explain_gives_job_decisions_and_estimates)
{
	struct store *s = open_store(fresh_dir());
	struct job_record j = plain_job(12);
	struct err err = { 0 };
	const char *text;
	struct json *v = NULL;

	assert_int_equal(store_add_job(s, &j, &err), 0);
	assert_int_equal(
		store_add_decision(s, 12, NOON, "arrival", "{\"when\":\"arrival\",\"x\":1e-7}", &err), 0);
	assert_int_equal(store_add_decision(s, 12, NOON + 5, "start", "{\"when\":\"start\"}", &err), 0);
	assert_int_equal(store_add_decision(s, 13, NOON, "arrival", "{\"other\":true}", &err), 0);
	assert_int_equal(store_add_estimate(s, 12, NOON, 0, 20.12345678, NAN, 24.5, "submitted", &err), 0);
	assert_int_equal(store_add_estimate(s, 12, NOON, 1, 21, 17, 25, "finished", &err),
			 0); /* same moment: both stay */
	commit_all(s);
	text = ask(s, STORE_EXPLAIN, 12, NULL);
	if (json_parse("explain", text, strlen(text), &v, &err))
		fail_msg("%s", err.text);
	assert_int_equal(json_size(v), 3);
	assert_string_equal(json_string(json_get(json_get(v, "job"), "job"), ""), "12");
	json_free(v);
	assert_non_null(strstr(
		text,
		",\"decisions\":[{\"when\":\"arrival\",\"x\":1e-7},{\"when\":\"start\"}],\"estimates\":["
		"{\"at\":\"2026-11-17T10:00:00.123456Z\",\"start_s\":0,\"end_s\":20.123457,"
		"\"end_low_s\":null,\"end_high_s\":24.5,\"why\":\"submitted\"},{"));
	text = ask(s, STORE_JOB, 12, NULL);
	assert_true(strstr(text, "{\"job\":\"12\",\"number\":12,\"state\":\"queued\",") == text);
	assert_non_null(strstr(text, "\"estimate\":null,\"waiting\":null,\"progress\":null"));
	store_close(s);
}

/* The ids of a list, as text "9 7 5 ". */
static const char *listed(struct store *s, struct store_filter f)
{
	static char out[256];
	const char *text = ask(s, STORE_LIST, 0, &f);

	out[0] = '\0';
	while (*text) {
		const char *end = strchr(text, '\n');
		size_t n = strlen(out);
		unsigned long id;

		assert_non_null(end);
		assert_int_equal(sscanf(text, "{\"job\":\"%lu\"", &id), 1);
		snprintf(out + n, sizeof out - n, "%lu ", id);
		text = end + 1;
	}
	return out;
}

TEST(test_list_filters_and_pages)
{
	struct store *s = open_store(fresh_dir());
	struct err err = { 0 };

	for (uint64_t i = 1; i <= 10; i++) {
		struct job_record j = plain_job(i);

		j.state = i % 2 ? JOB_DONE : JOB_FAILED;
		j.uid = i % 3 ? 1000 : 0;
		j.type = i <= 5 ? "digits" : "other";
		j.submitted_ns = NOON + (int64_t)i * INT64_C(7200000000000);
		assert_int_equal(store_add_job(s, &j, &err), 0);
	}
	commit_all(s);
	assert_string_equal(listed(s, (struct store_filter){ .uid = -1 }), "10 9 8 7 6 5 4 3 2 1 ");
	assert_string_equal(listed(s, (struct store_filter){ .uid = -1, .limit = 3 }), "10 9 8 ");
	assert_string_equal(listed(s, (struct store_filter){ .uid = -1, .limit = 3, .before_id = 8 }),
			    "7 6 5 ");
	assert_string_equal(listed(s, (struct store_filter){ .uid = 0 }), "9 6 3 ");
	assert_string_equal(listed(s, (struct store_filter){ .uid = -1, .state = "failed" }), "10 8 6 4 2 ");
	assert_string_equal(listed(s, (struct store_filter){ .uid = -1, .state = "done", .type = "other" }),
			    "9 7 ");
	assert_string_equal(
		listed(s, (struct store_filter){ .uid = 1000, .state = "failed", .type = "digits" }), "4 2 ");
	assert_string_equal(listed(s, (struct store_filter){ .uid = -1, .type = "none" }), "");
	assert_string_equal(
		listed(s, (struct store_filter){ .uid = -1, .since_ns = NOON + 8 * INT64_C(7200000000000) }),
		"10 9 8 ");
	/* Job 7 came half an hour before: within what a clock may be set back, and all the same too early. */
	assert_string_equal(
		listed(s, (struct store_filter){ .uid = -1,
						 .since_ns = NOON + INT64_C(52200000000000) /* 14.5 h */ }),
		"10 9 8 ");
	assert_string_equal(
		listed(s, (struct store_filter){ .uid = -1, .before_id = UINT64_MAX, .limit = 1 }), "10 ");
	assert_int_equal(store_ask(s, STORE_LIST, 0, &(struct store_filter){ .limit = 10001 }, keep_answer,
				   NULL, 0, &err),
			 -ERR_ARG);
	store_close(s);
}

TEST(test_observations_come_as_rows_of_names_and_values)
{
	static const char first[] = "1: network='le\"net,5' cpus=2 time_s=40.5 accuracy=0.93\n";
	static const char second[] = "2: cpus=4 batch=64 nothing=nan time_s=12.5 accuracy=nan\n";
	struct store *s = open_store(fresh_dir());
	struct err err = { 0 };
	char both[200];

	assert_int_equal(add_seen(s, 1, NOON, "digits", 40.5, 0.93,
				  OBSERVED({ "network", "le\"net,5", NAN }, { "cpus", NULL, 2 }), &err),
			 0);
	assert_int_equal(add_seen(s, 2, NOON + 5, "other", 12.25, NAN, OBSERVED({ "cpus", NULL, 7 }), &err),
			 0);
	/* Added twice: the later one counts. A parameter cannot hide what the job did. */
	assert_int_equal(add_seen(s, 2, NOON + 5, "other", 12.5, NAN,
				  OBSERVED({ "cpus", NULL, 4 }, { "time_s", NULL, 7 }, { "batch", NULL, 64 },
					   { "job", NULL, 9 }, { "nothing", NULL, NAN }),
				  &err),
			 0);
	commit_all(s);
	snprintf(both, sizeof both, "%s%s", first, second);
	assert_string_equal(observed(s, NULL), both);
	assert_string_equal(observed(s, &(struct store_filter){ .uid = -1, .limit = 1 }), second);
	assert_string_equal(observed(s, &(struct store_filter){ .uid = -1, .limit = 5000 }), both);
	assert_string_equal(observed(s, &(struct store_filter){ .uid = -1, .type = "digits" }), first);
	assert_string_equal(observed(s, &(struct store_filter){ .uid = -1, .since_ns = NOON + 1 }), second);
	store_close(s);
}

/* Numbers are kept to the last bit: they never become text. */
TEST(test_observations_keep_every_bit)
{
	struct store *s = open_store(fresh_dir());
	static struct store_observation o;
	struct answered a = { 0 };
	struct err err = { 0 };
	size_t at = 0;

	assert_int_equal(
		add_seen(s, 5, NOON, "digits", 0.1 + 0.2, 5e-324, OBSERVED({ "lr", NULL, 1.0 / 3.0 }), &err),
		0);
	commit_all(s);
	assert_int_equal(store_ask(s, STORE_OBSERVATIONS, 0, NULL, keep_answer, &a, 1, &err), 0);
	wait_answer(s, &a, 1);
	assert_true(store_observation_next(a.text.text, a.text.len, &at, &o));
	assert_int_equal(o.n, 3);
	assert_true(o.value[0].number == 1.0 / 3.0 && o.value[1].number == 0.1 + 0.2);
	assert_true(o.value[2].number == 5e-324);
	strbuf_release(&a.text);
	store_close(s);
}

TEST(test_an_observation_in_doubt_is_kept_and_not_given_out)
{
	const char *dir = fresh_dir();
	struct store *s = open_store(dir);
	struct err err = { 0 };

	assert_int_equal(add_seen(s, 1, NOON, "digits", 40.5, 0.93, OBSERVED({ "cpus", NULL, 2 }), &err), 0);
	assert_int_equal(store_add_observation(s,
					       &(struct store_seen){ .job = 2,
								     .at_ns = NOON,
								     .type = "digits",
								     .time_s = 1e-9,
								     .accuracy = NAN,
								     .doubt = "time" },
					       &err),
			 0);
	commit_all(s);
	assert_string_equal(observed(s, NULL), "1: cpus=2 time_s=40.5 accuracy=0.93\n");
	store_close(s);
	assert_int_equal(sql_number(dir, "SELECT count(*) FROM observations WHERE doubt='time' AND job=2"),
			 1);
}

TEST(test_observation_with_too_many_values_is_an_error)
{
	struct store *s = open_store(fresh_dir());
	struct observed value[OBSERVED_MAX];
	struct err err = { 0 };

	for (int i = 0; i < OBSERVED_MAX; i++)
		value[i] = (struct observed){ "c", NULL, i };
	assert_int_equal(add_seen(s, 31, NOON, "digits", 1, 1, value, OBSERVED_MAX - 1, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "job 31"));
	assert_int_equal(add_seen(s, 31, NOON, "digits", 1, 1, value, OBSERVED_MAX - 2, &err), 0);
	commit_all(s);
	store_close(s);
}

TEST(test_too_many_questions_are_refused_and_all_others_answered)
{
	struct store *s = open_store(fresh_dir());
	struct answered a = { 0 };
	struct err err = { 0 };
	int taken = 0;

	/* Nothing is dispatched meanwhile, so the number that is taken is exact. */
	while (store_ask(s, STORE_JOB, 1, NULL, keep_answer, &a, 1, &err) == 0)
		taken++;
	assert_int_equal(taken, STORE_MAX_QUESTIONS);
	assert_int_equal(err.code, ERR_BUSY);
	wait_answer(s, &a, 10);
	store_close(s); /* the rest is answered here at the latest */
	assert_int_equal(a.times, STORE_MAX_QUESTIONS);
	strbuf_release(&a.text);
}

TEST(test_long_question_is_given_up)
{
	struct store_params p = { .dir = fresh_dir(), .read_limit_s = 1e-6 };
	struct answered a = { 0 };
	struct store *s = NULL;
	struct err err = { 0 };

	assert_int_equal(store_open(&p, &s, &err), 0);
	for (uint64_t i = 1; i <= 2000; i++) {
		struct job_record j = plain_job(i);

		assert_int_equal(store_add_job(s, &j, &err), 0);
	}
	commit_all(s);
	assert_int_equal(store_ask(s, STORE_LIST, 0, &(struct store_filter){ .uid = -1, .limit = 10000 },
				   keep_answer, &a, 1, &err),
			 0);
	wait_answer(s, &a, 1);
	assert_int_equal(a.err.code, ERR_BUSY);
	assert_non_null(strstr(a.err.text, "took longer"));
	assert_string_equal(strbuf_text(&a.text), "");
	strbuf_release(&a.text);
	store_close(s);
}
