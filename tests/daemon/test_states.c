/* A job from state to state, end to end: every way into and out of each, and what a client sees of it. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/daemon/one_daemon.h"
#include "tests/support/test.h"

static int open_one(void **state)
{
	(void)state;
	fixture_open(&fixture);
	fixture_configure(&fixture, TWO_SLOTS "\"advise_timeout_s\":1,", "");
	come_back();
	return 0;
}

/* Two jobs that take both slots for a while. */
static void fill_slots(uint64_t out[2])
{
	for (int i = 0; i < 2; i++) {
		out[i] = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":20}");
		json_free(await(t, out[i], "running"));
	}
}

static struct json *cancel(uint64_t job)
{
	return talk_ask(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)job);
}

static const char *name_of(uint64_t job)
{
	static char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)job);
	return text;
}

/* ---- run by the daemon ---- */

TEST_WITH(test_a_job_runs_once_and_is_done, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"name\":\"one\"}");
	struct json *v = await(t, job, "done");

	assert_true(job > 0);
	assert_true(number_at(v, "job.exit_code") == 0.0);
	assert_true(number_at(v, "job.run_s") >= 0.0);
	assert_true(json_type(json_get(json_get(v, "job"), "reason")) == JSON_NULL);
	assert_int_equal(fixture_runs(&fixture, 'B', name_of(job)), 1);
	assert_int_equal(fixture_runs(&fixture, 'E', name_of(job)), 1);
	json_free(v);
}

TEST_WITH(test_cancelling_a_queued_job_is_immediate_and_it_never_runs, open_one, close_one)
{
	uint64_t busy[2], job;
	struct json *v;

	fill_slots(busy);
	job = submit(t, ",\"type\":\"line\"");
	v = cancel(job);
	assert_string_equal(text_at(v, "job.state"), "cancelled");
	assert_true(json_type(json_get(json_get(v, "job"), "started_at")) == JSON_NULL);
	json_free(v);
	for (int i = 0; i < 2; i++) {
		json_free(cancel(busy[i]));
		json_free(await(t, busy[i], "cancelled"));
	}
	json_free(await(t, submit(t, ",\"type\":\"line\""), "done")); /* what was behind it has run by now */
	assert_int_equal(fixture_runs(&fixture, 'B', name_of(job)), 0);
}

TEST_WITH(test_a_cancelled_job_cannot_be_cancelled_again, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":20}");
	struct json *v;

	json_free(await(t, job, "running"));
	json_free(cancel(job));
	json_free(await(t, job, "cancelled"));
	v = cancel(job);
	assert_string_equal(error_of(v), "wrong_state");
	json_free(v);
	v = talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job);
	assert_string_equal(error_of(v), "wrong_state");
	json_free(v);
}

TEST_WITH(test_cancelling_a_running_job_sends_sigterm, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":20}");
	double began;
	struct json *v;

	/* "running" is said when its start is on disk; a job that has no process yet would be withdrawn, not
	 * signalled. */
	v = await(t, job, "running");
	while (isnan(number_at(v, "job.pid"))) {
		json_free(v);
		sleep_s(0.005);
		v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)job);
	}
	json_free(v);
	began = now_s();
	v = cancel(job);
	assert_true(is_ok(v)); /* still running in this reply, or already gone */
	json_free(v);
	v = await(t, job, "cancelled");
	assert_true(number_at(v, "job.signal") == SIGTERM);
	assert_true(now_s() - began < 15.0);
	json_free(v);
	assert_int_equal(fixture_runs(&fixture, 'E', name_of(job)), 0);
}

TEST_WITH(test_a_job_that_ignores_sigterm_is_killed_after_the_grace, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"stubborn\"");
	double began;
	struct json *v;

	json_free(await(t, job, "running"));
	sleep_s(0.3); /* its shell has set the trap by then */
	began = now_s();
	json_free(cancel(job));
	v = await(t, job, "cancelled");
	assert_true(number_at(v, "job.signal") == SIGKILL);
	assert_true(now_s() - began >= 0.9);
	json_free(v);
}

TEST_WITH(test_a_failed_job_has_its_exit_code_and_a_reason, open_one, close_one)
{
	struct json *v = await(t, submit(t, ",\"type\":\"fails\""), "failed");

	assert_true(number_at(v, "job.exit_code") == 3.0);
	assert_string_not_equal(text_at(v, "job.reason"), "");
	json_free(v);
}

TEST_WITH(test_a_missing_program_fails_the_job_and_says_so, open_one, close_one)
{
	struct json *v = await(t, submit(t, ",\"type\":\"missing\""), "failed");

	assert_non_null(strstr(text_at(v, "job.reason"), "/nowhere/there-is-no-such-program"));
	json_free(v);
}

TEST_WITH(test_a_job_that_takes_too_long_is_stopped, open_one, close_one)
{
	struct json *v = await(t, submit(t, ",\"type\":\"hasty\""), "failed");

	assert_true(number_at(v, "job.run_s") >= 0.9 && number_at(v, "job.run_s") < 20.0);
	assert_non_null(strstr(text_at(v, "job.reason"), "longer"));
	json_free(v);
}

TEST_WITH(test_a_lost_supervisor_makes_a_lost_job_with_a_reason, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":20}");
	char text[512] = "";
	int supervisor = 0;
	struct json *v;
	FILE *f;

	await_pid(job);
	f = fopen(fixture_record(&fixture, job, ".started"), "r");
	assert_non_null(f);
	while (fgets(text, sizeof text, f)) {
		if (sscanf(text, "supervisor %d", &supervisor) == 1)
			break;
	}
	fclose(f);
	assert_true(supervisor > 1);
	assert_int_equal(kill(supervisor, SIGKILL), 0);
	v = await(t, job, "lost");
	assert_string_not_equal(text_at(v, "job.reason"), "");
	json_free(v);
	json_free(await(t, submit(t, ",\"type\":\"line\""), "done")); /* and the others go on */
}

/* ---- run by its owner ---- */

static const char *event_of(struct json *v)
{
	return text_at(v, "event");
}

TEST_WITH(test_an_advised_job_goes_from_ready_to_started_to_finished, open_one, close_one)
{
	struct json *v =
		talk_ask(t, "{\"op\":\"submit\",\"type\":\"advised\",\"mode\":\"advise\",\"watch\":true}");
	unsigned long long job = strtoull(text_at(v, "job.job"), NULL, 10);
	struct talk *other = talk_open(&fixture);

	assert_string_equal(text_at(v, "job.state"), "queued");
	json_free(v);
	v = talk_hear_json(t, PATIENCE_S);
	assert_non_null(v);
	assert_string_equal(event_of(v), "ready");
	assert_string_equal(text_at(v, "job.state"), "queued");
	assert_true(json_type(json_get(json_get(v, "job"), "started_at")) == JSON_NULL);
	assert_string_equal(text_at(v, "job.waiting.code"), "owner");
	json_free(v);

	v = talk_ask(other, "{\"op\":\"finished\",\"job\":\"%llu\"}", job);
	assert_string_equal(error_of(v), "wrong_state"); /* it was never started */
	json_free(v);
	v = talk_ask(other, "{\"op\":\"started\",\"job\":\"%llu\"}", job);
	assert_string_equal(text_at(v, "job.state"), "running");
	assert_string_equal(text_at(v, "decision.when"), "start");
	assert_true(number_at(v, "job.batch") == 64.0);
	json_free(v);
	v = talk_ask(other, "{\"op\":\"started\",\"job\":\"%llu\"}", job);
	assert_string_equal(error_of(v), "wrong_state");
	json_free(v);
	v = talk_ask(other, "{\"op\":\"progress\",\"job\":\"%llu\",\"done\":0.5}", job);
	assert_true(is_ok(v));
	json_free(v);
	v = talk_ask(other, "{\"op\":\"finished\",\"job\":\"%llu\",\"exit_code\":0,\"accuracy\":0.93}", job);
	assert_string_equal(text_at(v, "job.state"), "done");
	assert_true(number_at(v, "job.accuracy") == 0.93);
	json_free(v);
	for (int i = 0; i < 3; i++) {
		static const char *const in_order[] = { "started", "progress", "finished" };

		v = talk_hear_json(t, PATIENCE_S);
		assert_non_null(v);
		assert_string_equal(event_of(v), in_order[i]);
		json_free(v);
	}
	talk_close(other);
}

TEST_WITH(test_an_advised_job_that_reports_failure_has_failed, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");
	struct json *v;

	json_free(talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job));
	v = talk_ask(t, "{\"op\":\"finished\",\"job\":\"%llu\",\"exit_code\":9}", (unsigned long long)job);
	assert_string_equal(text_at(v, "job.state"), "failed");
	assert_true(number_at(v, "job.exit_code") == 9.0);
	json_free(v);
}

TEST_WITH(test_a_running_advised_job_can_be_cancelled, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");
	struct json *v;

	json_free(talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job));
	v = cancel(job);
	assert_string_equal(text_at(v, "job.state"), "cancelled");
	json_free(v);
	v = talk_ask(t, "{\"op\":\"finished\",\"job\":\"%llu\"}", (unsigned long long)job);
	assert_string_equal(error_of(v), "wrong_state");
	json_free(v);
}

TEST_WITH(test_an_advised_job_that_is_never_started_is_lost_after_the_timeout, open_one, close_one)
{
	struct json *v = await(t, submit(t, ",\"type\":\"advised\",\"mode\":\"advise\""), "lost");

	assert_string_not_equal(text_at(v, "job.reason"), "");
	assert_true(json_type(json_get(json_get(v, "job"), "started_at")) == JSON_NULL);
	json_free(v);
	assert_true(stat_of(t, "queue.slots_used") == 0.0);
}

TEST_WITH(test_what_the_daemon_runs_cannot_be_reported_by_its_owner, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":20}");
	static const char *const op[] = { "started", "finished", "progress" };

	for (int i = 0; i < 3; i++) {
		struct json *v =
			talk_ask(t, "{\"op\":\"%s\",\"job\":\"%llu\"}", op[i], (unsigned long long)job);

		assert_string_equal(error_of(v), "wrong_state");
		json_free(v);
	}
}

TEST_WITH(test_nonsense_about_an_advised_job_is_refused, open_one, close_one)
{
	static const char *const nonsense[] = {
		"\"op\":\"finished\",\"exit_code\":-1",
		"\"op\":\"finished\",\"exit_code\":256",
		"\"op\":\"finished\",\"exit_code\":1e300",
		"\"op\":\"finished\",\"exit_code\":\"0\"",
		"\"op\":\"finished\",\"exit_code\":1.5",
		"\"op\":\"finished\",\"run_s\":-1",
		"\"op\":\"progress\",\"done\":1.01",
		"\"op\":\"progress\",\"done\":\"all\"",
		"\"op\":\"progress\"",
	};
	uint64_t job = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");

	json_free(talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job));
	for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
		struct json *v = talk_ask(t, "{%s,\"job\":\"%llu\"}", nonsense[i], (unsigned long long)job);

		if (strcmp(error_of(v), "bad_field"))
			fail_msg("%s: '%s'", nonsense[i], error_of(v));
		json_free(v);
	}
	json_free(await(t, job, "running"));
}

/* ---- what is told of it ---- */

TEST_WITH(test_watching_a_submitted_job_tells_reply_started_progress_finished_in_order, open_one, close_one)
{
	struct json *v = talk_ask(t, "{\"op\":\"submit\",\"id\":5,\"type\":\"epochs\",\"watch\":true}");
	double epoch = 0.0, last = 0.0;
	bool started = false, finished = false;

	assert_true(number_at(v, "id") == 5.0); /* the reply comes before any event */
	json_free(v);
	while (!finished) {
		v = talk_hear_json(t, PATIENCE_S);
		assert_non_null(v);
		if (!strcmp(event_of(v), "started")) {
			assert_false(started);
			assert_true(number_at(v, "job.pid") > 1.0);
			started = true;
		} else if (!strcmp(event_of(v), "progress")) {
			assert_true(started);
			epoch = number_at(v, "job.progress.epoch");
			assert_true(epoch > last && epoch <= 3.0);
			assert_true(number_at(v, "job.progress.epochs") == 3.0);
			last = epoch;
		} else {
			assert_string_equal(event_of(v), "finished");
			assert_string_equal(text_at(v, "job.state"), "done");
			assert_true(number_at(v, "job.accuracy") == 0.3);
			finished = true;
		}
		json_free(v);
	}
	assert_true(last == 3.0);
}

/* The submission waits for the disk, the cancellation does not: the reply must not be overtaken. */
TEST_WITH(test_events_do_not_overtake_the_reply_of_a_submission, open_one, close_one)
{
	uint64_t next = submit(t, ",\"type\":\"line\"") + 1;

	for (int i = 0; i < 20; i++, next++) {
		struct json *v;

		talk_say(t,
			 "{\"op\":\"submit\",\"id\":1,\"type\":\"line\",\"watch\":true}\n{\"op\":\"cancel\","
			 "\"id\":2,"
			 "\"job\":\"%llu\"}\n{\"op\":\"unwatch\",\"id\":3}",
			 (unsigned long long)next);
		v = talk_hear_json(t, PATIENCE_S);
		assert_non_null(v);
		if (number_at(v, "id") != 1.0)
			fail_msg("'%s' came before the reply of the submission", event_of(v));
		assert_true(strtoull(text_at(v, "job.job"), NULL, 10) == next);
		while (number_at(v, "id") != 3.0) {
			json_free(v);
			v = talk_hear_json(t, PATIENCE_S);
			assert_non_null(v);
		}
		json_free(v);
	}
}

TEST_WITH(test_unknown_and_malformed_ids_have_their_own_errors, open_one, close_one)
{
	static const char *const op[] = { "status",   "explain",  "cancel", "started",
					  "finished", "progress", "watch" };

	for (size_t i = 0; i < sizeof op / sizeof op[0]; i++) {
		static const char *const id[] = { "\"999\"", "\"18446744073709551615\"",
						  "\"-1\"",  "\"0\"",
						  "\"1x\"",  "1.5",
						  "true",    "[]" };

		for (size_t k = 0; k < sizeof id / sizeof id[0]; k++) {
			struct json *v = talk_ask(t, "{\"op\":\"%s\",\"job\":%s}", op[i], id[k]);

			if (strcmp(error_of(v), k < 2 ? "unknown_job" : "bad_field"))
				fail_msg("%s %s: '%s'", op[i], id[k], error_of(v));
			json_free(v);
		}
	}
}

TEST_WITH(test_a_dry_run_and_a_prediction_without_a_model_say_so, open_one, close_one)
{
	struct json *v = talk_ask(t, "{\"op\":\"submit\",\"type\":\"line\",\"dry_run\":true}");

	assert_string_equal(error_of(v), "no_model");
	json_free(v);
	v = talk_ask(t, "{\"op\":\"predict\",\"type\":\"line\"}");
	assert_string_equal(error_of(v), "no_model");
	json_free(v);
}

TEST_WITH(test_a_draining_daemon_takes_no_jobs_until_told_to, open_one, close_one)
{
	uint64_t busy[2], queued;
	struct json *v;
	char was[16];

	fill_slots(busy);
	queued = submit(t, ",\"type\":\"line\"");
	v = talk_ask(t, "{\"op\":\"drain\",\"off\":\"true\"}");
	assert_string_equal(error_of(v), "bad_field");
	json_free(v);
	json_free(talk_ask(t, "{\"op\":\"drain\"}"));
	v = talk_ask(t, "{\"op\":\"submit\",\"type\":\"line\"}");
	assert_string_equal(error_of(v), "draining");
	json_free(v);
	for (int i = 0; i < 2; i++) {
		json_free(cancel(busy[i]));
		json_free(await(t, busy[i], "cancelled"));
	}
	sleep_s(0.3);
	state_of(t, queued, was);
	assert_string_equal(was, "queued");
	json_free(talk_ask(t, "{\"op\":\"drain\",\"off\":true}"));
	json_free(await(t, queued, "done"));
}

TEST_WITH(test_drain_and_stop_leaves_when_the_last_job_has_ended, open_one, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":1}");

	json_free(await(t, job, "running"));
	json_free(talk_ask(t, "{\"op\":\"drain\",\"stop\":true}"));
	assert_int_equal(fixture_wait(&fixture), 0);
	assert_int_equal(fixture_runs(&fixture, 'E', name_of(job)), 1);
}
