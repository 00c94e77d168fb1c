/* Jobs that live while the daemon does not: each is found again, once, and is still what it was. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/daemon/one_daemon.h"
#include "tests/support/test.h"

static size_t runs(char mark, uint64_t job)
{
	char name[24];

	snprintf(name, sizeof name, "%llu", (unsigned long long)job);
	return fixture_runs(&fixture, mark, name);
}

TEST_WITH(test_a_running_job_is_found_again_as_the_same_process, open_two_slots, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":1.5}");
	double pid = await_pid(job);
	struct json *v;

	leave(SIGKILL);
	come_back();
	assert_true(await_pid(job) == pid);
	assert_true(stat_of(t, "queue.slots_used") == 1.0);
	v = await(t, job, "done");
	assert_true(number_at(v, "job.run_s") >= 1.4); /* all of it, not what this daemon saw */
	json_free(v);
	assert_int_equal(runs('B', job), 1);
	assert_int_equal(runs('E', job), 1);
}

TEST_WITH(test_a_job_that_ended_while_nobody_watched_is_done, open_two_slots, close_one)
{
	uint64_t good = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":0.5}");
	uint64_t late = submit(t, ",\"type\":\"hasty\"");
	struct json *v;

	await_pid(good);
	await_pid(late);
	leave(SIGTERM);
	sleep_s(1.5); /* its time limit is kept without the daemon, too */
	come_back();
	v = await(t, good, "done");
	assert_true(number_at(v, "job.exit_code") == 0.0);
	json_free(v);
	v = await(t, late, "failed");
	assert_true(number_at(v, "job.run_s") < 10.0);
	assert_non_null(strstr(text_at(v, "job.reason"), "longer"));
	json_free(v);
}

TEST_WITH(test_an_adopted_job_can_be_cancelled, open_two_slots, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":30}");
	struct json *v;

	await_pid(job);
	leave(SIGKILL);
	come_back();
	json_free(talk_ask(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)job));
	v = await(t, job, "cancelled");
	assert_true(number_at(v, "job.signal") == SIGTERM);
	json_free(v);
	assert_int_equal(runs('E', job), 0);
}

/* It was acknowledged, so it is a cancellation, whoever is there to see the end. */
TEST_WITH(test_a_cancellation_survives_the_daemon, open_two_slots, close_one)
{
	uint64_t job = submit(t, ",\"type\":\"stubborn\"");

	await_pid(job);
	sleep_s(0.3); /* its shell has set the trap by then */
	json_free(talk_ask(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)job));
	leave(SIGKILL);
	come_back();
	json_free(await(t, job, "cancelled"));
}

TEST_WITH(test_the_queue_keeps_its_order, open_two_slots, close_one)
{
	uint64_t busy[2], queued[5];
	unsigned long long id;
	char line[160];
	size_t n = 0;
	FILE *f;

	for (int i = 0; i < 2; i++)
		busy[i] = submit(t, ",\"type\":\"line\",\"params\":{\"seconds\":30}");
	for (int i = 0; i < 5; i++)
		queued[i] = submit(t, ",\"type\":\"line\"");
	await_pid(busy[0]);
	await_pid(busy[1]);
	leave(SIGKILL);
	come_back();
	json_free(talk_ask(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)busy[0]));
	json_free(await(t, queued[4], "done"));
	f = fopen(fixture.runs, "r"); /* one slot: one after the other */
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "E %llu", &id) == 1)
			assert_true(n < 5 && id == queued[n++]);
	}
	fclose(f);
	assert_int_equal(n, 5);
}

TEST_WITH(test_an_advised_job_is_what_it_was, open_two_slots, close_one)
{
	uint64_t running = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");
	uint64_t ready = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");
	uint64_t queued = submit(t, ",\"type\":\"advised\",\"mode\":\"advise\"");
	struct json *v;

	json_free(talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)running));
	leave(SIGKILL);
	come_back();
	v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)ready);
	assert_string_equal(text_at(v, "job.state"), "queued");
	assert_string_equal(text_at(v, "job.waiting.code"), "owner");
	json_free(v);
	v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)queued);
	assert_string_not_equal(text_at(v, "job.waiting.code"), "owner"); /* both slots are taken */
	json_free(v);
	v = talk_ask(t, "{\"op\":\"finished\",\"job\":\"%llu\",\"accuracy\":0.5}",
		     (unsigned long long)running);
	assert_string_equal(text_at(v, "job.state"), "done");
	assert_true(number_at(v, "job.run_s") > 0.0);
	json_free(v);
	for (int i = 0; i < 2; i++) {
		uint64_t job = i ? queued : ready;

		v = talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job);
		assert_string_equal(text_at(v, "job.state"), "running");
		json_free(v);
	}
}
