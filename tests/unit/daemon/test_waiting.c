/* Jobs that wait for others, and runs that are repeated, in a daemon with real processes, also over
 * restarts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

/* Fails until its file has so many lines; each run adds one, with its index. */
#define TYPES                                                                                                \
	",\"shaky\":{\"batches\":[8],\"argv\":[\"/bin/sh\",\"-c\",\"echo run $3 >>$1; [ $(wc -l <$1) -gt "   \
	"$2 "                                                                                                \
	"]\",\"sh\",\"%s/"                                                                                   \
	"{name}\",\"{fails}\",\"{index}\",\"{batch}\"],\"params\":{\"name\":{\"kind\":\"word\"},"            \
	"\"fails\":{\"kind\":\"integer\",\"default\":0}}}"

static char types[1024];

static int open_it(void **state)
{
	(void)state;
	local_open(&l);
	snprintf(types, sizeof types, TYPES, l.dir);
	l.types = types;
	l.settings = "\"policy\":\"fixed:8\",";
	local_start(&l);
	client_open(&c, &l);
	return 0;
}

static void restart(void)
{
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
}

static char *told; /* of a job, by now */

static const char *ask(uint64_t job, const char *path)
{
	struct json *v = client_ask(&c, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);

	free(told);
	told = strdup(text_at(v, path));
	json_free(v);
	return told;
}

static double ask_number(uint64_t job, const char *path)
{
	struct json *v = client_ask(&c, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);
	double x = number_at(v, path);

	json_free(v);
	return x;
}

static uint64_t awaited;
static bool has_ended(const struct local_daemon *at)
{
	const struct job *job = jobs_find(&at->d->jobs, awaited);

	return job && !job_state_live(job->row.state);
}

static const char *state_at_end(uint64_t job)
{
	awaited = job;
	local_until(&l, has_ended);
	return ask(job, "job.state");
}

static bool nothing_lives(const struct local_daemon *at)
{
	return at->d->jobs.live.n == 0;
}

static size_t lines_of(const char *name)
{
	char path[200], *text = NULL;
	size_t len = 0, n = 0;

	snprintf(path, sizeof path, "%s/%s", l.dir, name);
	if (io_read_file(path, 1 << 16, &text, &len, NULL))
		return 0;
	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	free(text);
	return n;
}

TEST_WITH(test_a_run_that_fails_is_repeated_and_no_more_often_than_asked, open_it, close_one)
{
	uint64_t good =
		client_submit(&c, ",\"type\":\"shaky\",\"retry\":3,\"params\":{\"name\":\"a\",\"fails\":2}");
	uint64_t bad =
		client_submit(&c, ",\"type\":\"shaky\",\"retry\":1,\"params\":{\"name\":\"b\",\"fails\":9}");
	uint64_t once = client_submit(&c, ",\"type\":\"shaky\",\"params\":{\"name\":\"c\",\"fails\":9}");

	assert_string_equal(state_at_end(good), "done");
	assert_true(ask_number(good, "job.attempt") == 2.0);
	assert_int_equal(lines_of("a"), 3);
	assert_string_equal(state_at_end(bad), "failed");
	assert_int_equal(lines_of("b"), 2);
	assert_string_equal(state_at_end(once), "failed");
	assert_int_equal(lines_of("c"), 1);
	assert_string_equal(client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"retry\":101}"),
			    "bad_field");
	assert_string_equal(
		client_error(&c, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\",\"retry\":1}"),
		"bad_field");
}

TEST_WITH(test_a_job_waits_for_another_and_says_so, open_it, close_one)
{
	uint64_t first = client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":0.3}");
	uint64_t second =
		client_submit(&c, ",\"type\":\"shaky\",\"after\":\"1\",\"params\":{\"name\":\"d\"}");
	char message[100];

	assert_true(first == 1 && second == 2);
	assert_string_equal(ask(second, "job.verdict"), "waiting");
	assert_string_equal(ask(second, "job.waiting.code"), "after");
	snprintf(message, sizeof message, "%s", ask(second, "job.waiting.message"));
	assert_non_null(strstr(message, "job 1 has to end first, and it "));
	assert_int_equal(lines_of("d"), 0);
	assert_string_equal(state_at_end(second), "done");
	assert_string_equal(ask(first, "job.state"), "done");
	assert_true(strcmp(ask(second, "job.started_at"), "") > 0);
	assert_string_equal(ask(second, "job.verdict"), "best_effort");
	/* for one that has ended there is nothing to wait for */
	assert_string_equal(
		state_at_end(client_submit(&c, ",\"type\":\"shaky\",\"after\":\"1\",\"after_ok\":true,"
					       "\"params\":{\"name\":\"d\"}")),
		"done");
}

TEST_WITH(test_a_job_whose_condition_fails_is_cancelled_with_the_reason_and_so_are_those_behind_it, open_it,
	  close_one)
{
	uint64_t bad = client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":60}");
	uint64_t next = client_submit(
		&c, ",\"type\":\"shaky\",\"after\":\"1\",\"after_ok\":true,\"params\":{\"name\":\"e\"}");
	uint64_t last = client_submit(
		&c, ",\"type\":\"shaky\",\"after\":\"2\",\"after_ok\":true,\"params\":{\"name\":\"e\"}");
	uint64_t any = client_submit(&c, ",\"type\":\"shaky\",\"after\":\"1\",\"params\":{\"name\":\"f\"}");

	assert_string_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)bad),
			    "");
	local_until(&l, nothing_lives);
	assert_string_equal(ask(next, "job.state"), "cancelled");
	assert_string_equal(ask(next, "job.reason"), "job 1 had to end well first, and it is cancelled");
	assert_string_equal(ask(last, "job.reason"), "job 2 had to end well first, and it is cancelled");
	assert_string_equal(ask(any, "job.state"), "done");
	assert_int_equal(lines_of("e"), 0);
	assert_string_equal(client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"after\":\"99\"}"),
			    "unknown_job");
	assert_string_equal(
		client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"after\":\"1\",\"after_ok\":true}"),
		"bad_field");
	assert_string_equal(client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"after_ok\":true}"),
			    "bad_field");
	assert_string_equal(client_error(&c,
					 "{\"op\":\"submit\",\"type\":\"shaky\",\"after\":\"1\",\"deadline\":"
					 "\"2999-01-01T00:00:00Z\"}"),
			    "bad_field");
}

TEST_WITH(test_a_job_waits_for_several_also_over_a_restart, open_it, close_one)
{
	uint64_t quick = client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":0}");
	uint64_t slow = client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":60}");
	uint64_t both =
		client_submit(&c, ",\"type\":\"shaky\",\"after\":[\"1\",\"2\"],\"params\":{\"name\":\"j\"}");
	uint64_t well = client_submit(&c, ",\"type\":\"shaky\",\"after\":[\"2\",\"1\"],\"after_ok\":true,"
					  "\"params\":{\"name\":\"k\"}");
	struct json *v;

	assert_string_equal(state_at_end(quick), "done");
	assert_non_null(strstr(ask(both, "job.waiting.message"), "job 2 has to end first, and it "));
	restart();
	assert_string_equal(ask(both, "job.after"), "1");
	v = client_ask(&c, "{\"op\":\"status\",\"job\":\"3\"}");
	assert_string_equal(json_string(json_at(json_path(v, "job.after_more"), 0), ""), "2");
	json_free(v);
	assert_string_equal(ask(both, "job.verdict"), "waiting");
	assert_string_equal(ask(well, "job.verdict"), "waiting");
	assert_int_equal(lines_of("j"), 0);
	assert_string_equal(
		client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)slow), "");
	assert_string_equal(state_at_end(both), "done");
	assert_string_equal(state_at_end(well), "cancelled");
	assert_string_equal(ask(well, "job.reason"), "job 2 had to end well first, and it is cancelled");
	assert_int_equal(lines_of("k"), 0);
}

TEST_WITH(test_one_of_several_that_fails_is_enough, open_it, close_one)
{
	uint64_t slow = client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":60}");
	uint64_t bad = client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":60}");
	uint64_t well = client_submit(&c, ",\"type\":\"shaky\",\"after\":[\"1\",\"2\"],\"after_ok\":true,"
					  "\"params\":{\"name\":\"m\"}");

	assert_non_null(strstr(ask(well, "job.waiting.message"), "; so has 1 more"));
	assert_string_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)bad),
			    "");
	assert_string_equal(state_at_end(well), "cancelled"); /* while the other runs */
	assert_string_equal(ask(slow, "job.ended_at"), "");
	assert_string_equal(
		client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)slow), "");
	assert_string_equal(client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"after\":[]}"),
			    "bad_field");
	assert_string_equal(
		client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"after\":[\"1\",\"x\"]}"),
		"bad_field");
	assert_string_equal(
		client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"after\":[\"1\",\"99\"]}"),
		"unknown_job");
	assert_string_equal(client_error(&c, "{\"op\":\"submit\",\"type\":\"shaky\",\"after\":[\"3\",\"2\"],"
					     "\"after_ok\":true}"),
			    "bad_field");
}

TEST_WITH(test_what_waits_and_what_is_repeated_survives_a_restart, open_it, close_one)
{
	uint64_t first = client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":0.6}");
	uint64_t waits = client_submit(
		&c, ",\"type\":\"shaky\",\"after\":\"1\",\"after_ok\":true,\"retry\":2,\"params\":"
		    "{\"name\":\"g\",\"fails\":1}");
	uint64_t gone = client_submit(&c, ",\"type\":\"shaky\",\"after\":\"1\",\"params\":{\"name\":\"h\"}");

	assert_string_equal(
		client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)gone), "");
	restart();
	assert_string_equal(ask(waits, "job.verdict"), "waiting");
	assert_true(ask_number(waits, "job.retry") == 2.0);
	assert_string_equal(state_at_end(first), "done");
	restart(); /* perhaps before the second began, perhaps between its runs */
	assert_string_equal(state_at_end(waits), "done");
	assert_int_equal(lines_of("g"), 2);
	assert_true(ask_number(waits, "job.attempt") == 1.0);
	assert_int_equal(lines_of("h"), 0);
}

/* 0.1 s, 0.2 s, 0.4 s, ... */
TEST_WITH(test_a_run_that_fails_at_once_is_repeated_after_pauses_that_grow, open_it, close_one)
{
	size_t n;
	uint64_t job = client_submit(
		&c, ",\"type\":\"shaky\",\"retry\":100,\"params\":{\"name\":\"p\",\"fails\":999}");

	local_run(&l, 2.0);
	n = lines_of("p");
	assert_true(n >= 2 && n <= 5);
	assert_string_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)job),
			    "");
	assert_string_equal(state_at_end(job), "cancelled");
	assert_int_equal(lines_of("p"), n);
}

/* What a request takes counts until its turn of the loop is over. */
TEST_WITH(test_cancelling_the_head_of_a_long_chain_holds_nobody_up, open_it, close_one)
{
	size_t n = 4000;

	client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":60}");
	for (size_t i = 1; i < n; i++) {
		char members[160];

		snprintf(
			members, sizeof members,
			",\"type\":\"shaky\",\"after\":\"%zu\",\"after_ok\":true,\"params\":{\"name\":\"n\"}",
			i);
		assert_int_equal(client_submit(&c, members), i + 1);
	}
	assert_int_equal(waiting_count(l.d), n - 1);
	l.d->tally.max_busy_ms = 0.0;
	assert_string_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"1\"}"), "");
	local_until(&l, nothing_lives);
	assert_int_equal(waiting_count(l.d), 0);
	assert_string_equal(ask(n, "job.state"), "cancelled");
	assert_true(l.d->tally.max_busy_ms < 5.0 || sanitized());
}

/* One that many wait for. */
TEST_WITH(test_a_job_that_thousands_wait_for_holds_nobody_up, open_it, close_one)
{
	size_t n = 4000;

	client_submit(&c, ",\"type\":\"sleepy\",\"params\":{\"seconds\":60}");
	for (size_t i = 1; i < n; i++)
		client_submit(
			&c,
			",\"type\":\"shaky\",\"after\":\"1\",\"after_ok\":true,\"params\":{\"name\":\"o\"}");
	l.d->tally.max_busy_ms = 0.0;
	assert_string_equal(client_error(&c, "{\"op\":\"cancel\",\"job\":\"1\"}"), "");
	local_until(&l, nothing_lives);
	assert_string_equal(ask(n, "job.reason"), "job 1 had to end well first, and it is cancelled");
	assert_true(l.d->tally.max_busy_ms < 5.0 || sanitized());
}

TEST_WITH(test_the_number_in_an_array_reaches_the_command, open_it, close_one)
{
	char path[200], *text = NULL;
	size_t len;
	uint64_t job = client_submit(&c, ",\"type\":\"shaky\",\"index\":17,\"params\":{\"name\":\"i\"}");

	assert_string_equal(state_at_end(job), "done");
	assert_true(ask_number(job, "job.index") == 17.0);
	snprintf(path, sizeof path, "%s/i", l.dir);
	assert_int_equal(io_read_file(path, 1 << 10, &text, &len, NULL), 0);
	assert_string_equal(text, "run 17\n");
	free(text);
	free(told);
	told = NULL;
}
