/* What the daemon remembers: keys, lists, decisions of jobs long gone, and what it must not remember. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/daemon/one_daemon.h"
#include "tests/support/test.h"

#define MANY 2500
#define KEPT 100 /* of them in memory */

/* The daemon of one_daemon.h has a fixed batch; the wise one has a model. */
static struct fixture wise;
static struct talk *w;

static int open_both(void **state)
{
	(void)state;
	fixture_open(&fixture);
	fixture_configure(&fixture, "\"slots\":4,\"max_finished\":100,", "");
	come_back();
	fixture_open(&wise);
	fixture_train(&wise);
	fixture_configure(&wise, "\"slots\":4,", "");
	fixture_start(&wise);
	w = talk_open(&wise);
	return 0;
}

static int close_both(void **state)
{
	talk_close(w);
	fixture_close(&wise);
	return close_one(state);
}

TEST_GROUP(open_both, close_both);

static void restart(int signal)
{
	leave(signal);
	come_back();
}

/* ---- keys ---- */

TEST(test_a_key_makes_one_job_however_often_it_is_sent)
{
	static const char again[] =
		"{\"op\":\"submit\",\"type\":\"line\",\"key\":\"nightly\",\"params\":{\"name\":\"n\"}}";
	struct json *v = talk_ask(t, again);
	unsigned long long first = strtoull(text_at(v, "job.job"), NULL, 10), second;

	assert_true(first > 0);
	assert_true(json_type(json_get(v, "duplicate")) == JSON_ABSENT);
	json_free(v);
	for (int i = 0; i < 4; i++) {
		v = talk_ask(t, again);
		assert_true(json_bool(json_get(v, "duplicate"), false));
		assert_true(strtoull(text_at(v, "job.job"), NULL, 10) == first);
		assert_string_equal(text_at(v, "verdict"), "best_effort");
		json_free(v);
		if (i == 1) {
			json_free(await(t, first, "done"));
			restart(SIGKILL);
		} else if (i == 2) {
			restart(SIGTERM);
		}
	}
	second = submit(t, ",\"type\":\"line\",\"key\":\"nightly-2\"");
	assert_true(second == first + 1); /* the retries used up no number */
	json_free(await(t, second, "done"));
	assert_int_equal(fixture_runs(&fixture, 'B', "1"), 1);
}

/* Several at once, before the first is on disk. */
TEST(test_a_key_sent_twice_at_once_makes_one_job)
{
	uint64_t first = 0;

	for (int i = 0; i < 10; i++)
		talk_say(t, "{\"op\":\"submit\",\"type\":\"line\",\"key\":\"burst\"}");
	for (int i = 0; i < 10; i++) {
		struct json *v = talk_hear_json(t, PATIENCE_S);

		assert_non_null(v);
		assert_true(json_bool(json_get(v, "duplicate"), false) == (i > 0));
		if (i == 0)
			first = strtoull(text_at(v, "job.job"), NULL, 10);
		assert_true(strtoull(text_at(v, "job.job"), NULL, 10) == first);
		json_free(v);
	}
	json_free(await(t, first, "done"));
}

/* ---- lists ---- */

/* Advised ones: as quick as the socket. */
static void make_many(unsigned n)
{
	for (unsigned done = 0; done < n; done += 50) {
		uint64_t first = 0;

		for (int i = 0; i < 50; i++)
			talk_say(t, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\"%s}",
				 done + (unsigned)i == 0 ? ",\"key\":\"the-first\"" : "");
		for (int i = 0; i < 50; i++) {
			struct json *v = talk_hear_json(t, PATIENCE_S);

			assert_non_null(v);
			assert_true(is_ok(v));
			if (i == 0)
				first = strtoull(text_at(v, "job.job"), NULL, 10);
			json_free(v);
		}
		for (unsigned i = 0; i < 50; i++)
			talk_say(t,
				 "{\"op\":\"started\",\"job\":\"%llu\"}\n{\"op\":\"finished\",\"job\":\"%"
				 "llu\",\"exit_code\":%d}",
				 (unsigned long long)(first + i), (unsigned long long)(first + i),
				 i % 10 == 0);
		for (int i = 0; i < 100; i++) {
			struct json *v = talk_hear_json(t, PATIENCE_S);

			assert_non_null(v);
			assert_true(is_ok(v));
			json_free(v);
		}
	}
}

/* Walks a listing to its end: each id once, falling. */
static unsigned walk(const char *members, unsigned limit, const char *state)
{
	unsigned long long before = ~0ull;
	unsigned n = 0;
	bool more = true;

	while (more) {
		char from[64] = "";
		struct json *v;
		unsigned page = 0;

		if (before != ~0ull)
			snprintf(from, sizeof from, ",\"before\":\"%llu\"", before);
		v = talk_ask(t, "{\"op\":\"list\",\"limit\":%u%s%s}", limit, members, from);
		assert_true(is_ok(v));
		for (const struct json *job = json_first(json_get(v, "jobs")); job; job = json_next(job)) {
			unsigned long long id = strtoull(text_at(job, "job"), NULL, 10);

			assert_true(id < before);
			if (state)
				assert_string_equal(text_at(job, "state"), state);
			before = id;
			page++;
		}
		more = json_bool(json_get(v, "more"), false);
		assert_true(page <= limit && (!more || page == limit));
		n += page;
		json_free(v);
	}
	return n;
}

TEST(test_lists_page_through_all_jobs_without_gaps)
{
	unsigned earlier;

	earlier = walk("", 1000, NULL);
	make_many(MANY);
	assert_int_equal(walk("", 1000, NULL), earlier + MANY);
	assert_int_equal(walk("", 7, NULL), earlier + MANY);
	assert_int_equal(walk(",\"state\":\"failed\"", 100, "failed"), MANY / 10);
	assert_int_equal(
		walk(",\"state\":[\"done\",\"failed\"],\"type\":\"advised\",\"mine\":true", 333, NULL), MANY);
	assert_int_equal(walk(",\"type\":\"no-such-type\"", 100, NULL), 0);
	assert_int_equal(walk(",\"state\":\"queued\"", 100, "queued"), 0);
	restart(SIGKILL);
	assert_int_equal(walk("", 250, NULL), earlier + MANY);
}

TEST(test_nonsense_in_a_list_is_refused)
{
	static const char *const nonsense[] = { "\"limit\":0",     "\"limit\":1001",     "\"limit\":2.5",
						"\"limit\":\"5\"", "\"state\":\"dead\"", "\"state\":[1]",
						"\"before\":true", "\"before\":\"x\"",   "\"mine\":\"yes\"",
						"\"type\":5" };

	for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
		struct json *v = talk_ask(t, "{\"op\":\"list\",%s}", nonsense[i]);

		if (strcmp(error_of(v), "bad_field"))
			fail_msg("%s: '%s'", nonsense[i], error_of(v));
		json_free(v);
	}
}

/* After test_lists...: far more jobs than are kept in memory. */
TEST(test_a_job_long_gone_is_explained_from_the_database)
{
	struct json *v = talk_ask(t, "{\"op\":\"explain\",\"job\":\"3\"}");

	assert_true(stat_of(t, "jobs.done") + stat_of(t, "jobs.failed") <= KEPT);
	assert_true(is_ok(v));
	assert_string_equal(text_at(v, "job.job"), "3");
	assert_true(json_size(json_get(v, "decisions")) >= 2); /* at its arrival, and at its start */
	json_free(v);
	v = talk_ask(t, "{\"op\":\"status\",\"job\":\"3\"}");
	assert_string_equal(text_at(v, "job.state"), "done");
	json_free(v);
	v = talk_ask(t, "{\"op\":\"cancel\",\"job\":\"3\"}");
	assert_string_equal(error_of(v), "wrong_state");
	json_free(v);
}

TEST(test_a_key_of_a_job_long_gone_still_finds_it)
{
	struct json *v = talk_ask(
		t, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\",\"key\":\"the-first\"}");

	assert_true(is_ok(v));
	assert_true(json_bool(json_get(v, "duplicate"), false));
	assert_string_equal(text_at(v, "verdict"), "best_effort");
	json_free(v);
}

/* ---- with a model ---- */

TEST(test_a_dry_run_stores_nothing)
{
	char *before, *after;
	struct json *v;
	uint64_t first = submit(w, ",\"type\":\"line\"");

	before = ask_database(&wise, "SELECT count(*) FROM jobs");
	for (int i = 0; i < 5; i++) {
		v = talk_ask(w, "{\"op\":\"submit\",\"type\":\"line\",\"slo_s\":100000,\"key\":\"dry\",\"dry_"
				"run\":true}");
		assert_string_equal(text_at(v, "verdict"), "promised");
		assert_true(json_type(json_get(v, "job")) == JSON_NULL);
		assert_true(json_size(json_get(json_get(v, "decision"), "candidates")) ==
			    2); /* batches 64 and 128 */
		json_free(v);
	}
	json_free(talk_ask(w, "{\"op\":\"predict\",\"type\":\"line\",\"slo_s\":100000}"));
	json_free(await(w, first, "done"));
	after = ask_database(&wise, "SELECT count(*) FROM jobs");
	assert_string_equal(before, after);
	assert_true(submit(w, ",\"type\":\"line\",\"key\":\"dry\"") == first + 1); /* its key is free */
	free(before);
	free(after);
}

TEST(test_a_rejected_job_is_kept_and_explained)
{
	struct json *v = talk_ask(w, "{\"op\":\"submit\",\"type\":\"line\",\"slo_s\":0.001}");
	unsigned long long job = strtoull(text_at(v, "job.job"), NULL, 10);

	assert_true(is_ok(v));
	assert_string_equal(text_at(v, "verdict"), "rejected");
	assert_string_equal(text_at(v, "job.state"), "rejected");
	assert_true(number_at(v, "decision.smallest_slo_s") > 0.001);
	json_free(v);
	v = talk_ask(w, "{\"op\":\"explain\",\"job\":\"%llu\"}", job);
	assert_int_equal(json_size(json_get(v, "decisions")), 1);
	assert_string_not_equal(text_at(v, "job.reason"), "");
	json_free(v);
}

TEST(test_a_promised_job_has_an_estimate_and_an_outcome)
{
	struct json *v = talk_ask(
		w, "{\"op\":\"submit\",\"type\":\"line\",\"slo_s\":100000,\"params\":{\"seconds\":0.5}}");
	uint64_t job = strtoull(text_at(v, "job.job"), NULL, 10);

	assert_string_equal(text_at(v, "verdict"), "promised");
	assert_true(number_at(v, "job.upper_s") <= 100000.0);
	assert_true(number_at(v, "job.estimate.end_s") > 0.0);
	json_free(v);
	v = await(w, job, "done");
	assert_string_equal(text_at(v, "job.slo_outcome"), "met");
	assert_true(number_at(v, "job.slack_s") > 0.0);
	json_free(v);
}
