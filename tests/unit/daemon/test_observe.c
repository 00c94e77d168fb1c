/* What a daemon in this process learns from jobs that end: shares of promises kept, kinds of jobs, when to
 * train. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json.h"
#include "scheduler/core/learn/later.h"
#include "scheduler/core/sched_internal.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

#define KNOWN ",\"type\":\"advised\",\"mode\":\"advise\",\"slo_s\":1e6"
#define NO_LIMIT ",\"type\":\"advised\",\"mode\":\"advise\""
#define STRANGE KNOWN ",\"params\":{\"network\":\"resnet\"}"
#define RUN_S 150.0 /* the model says 180 s */

static int open_it(void **state)
{
	(void)state;
	local_open(&l);
	l.model = LOCAL_MODEL;
	c.fd = -1;
	return 0;
}

static double stat_at(const char *path)
{
	struct json *v = client_ask(&c, "{\"op\":\"stats\"}");
	double x = number_at(v, path);

	json_free(v);
	return x;
}

/* The daemon's clock goes on, without a test that waits. */
static void time_passes(double s)
{
	l.d->clock_offset_ns += (int64_t)(s * 1e9);
}

/* A job from submit to done, which ran for `run_s`. */
static uint64_t whole_job(const char *members, double run_s)
{
	uint64_t job = client_submit(&c, members);

	assert_true(job > 0);
	assert_string_equal(
		client_error(&c, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job), "");
	time_passes(run_s); /* the daemon's own clock has to agree */
	assert_string_equal(client_error(&c, "{\"op\":\"finished\",\"job\":\"%llu\",\"run_s\":%g}",
					 (unsigned long long)job, run_s),
			    "");
	return job;
}

/* Whether a job is promised something; `out`: why not. */
/* A dry run says the same. */
static bool promised(const char *members, char *out, size_t size)
{
	struct json *dry = client_ask(&c, "{\"op\":\"submit\",\"dry_run\":true%s}", members);
	struct json *v = client_ask(&c, "{\"op\":\"submit\"%s}", members);
	bool is = !strcmp(text_at(v, "verdict"), "promised");

	assert_string_equal(text_at(dry, "verdict"), text_at(v, "verdict"));
	assert_string_equal(text_at(dry, "reason"), text_at(v, "job.reason"));
	json_free(dry);
	snprintf(out, size, "%s", text_at(v, "job.reason"));
	client_error(&c, "{\"op\":\"cancel\",\"job\":\"%s\"}", text_at(v, "job.job"));
	json_free(v);
	return is;
}

TEST_WITH(test_kept_promises_are_counted_by_confidence, open_it, close_one)
{
	struct json *v;
	const struct json *level;

	(void)state;
	start("");
	whole_job(KNOWN, RUN_S);
	whole_job(KNOWN, RUN_S);
	whole_job(KNOWN ",\"confidence\":0.8", RUN_S);
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_int_equal(json_size(json_path(v, "learning.kept")), 2);
	level = json_first(json_path(v, "learning.kept"));
	assert_true(number_at(level, "confidence") == 0.9 && number_at(level, "n") == 2.0);
	assert_true(number_at(level, "kept") == 2.0 && number_at(level, "share") == 1.0);
	assert_true(number_at(level, "recent_share") == 1.0);
	level = json_next(level);
	assert_true(number_at(level, "confidence") == 0.8 && number_at(level, "n") == 1.0);
	level = json_first(json_path(v, "learning.types"));
	assert_string_equal(text_at(level, "type"), "advised");
	assert_true(number_at(level, "observed") == 3.0 && number_at(level, "strangers") == 0.0);
	assert_true(number_at(level, "bias") > 0.0);
	json_free(v);
	assert_true(stat_at("learning.since_training") == 3.0);
}

TEST_WITH(test_a_job_that_failed_teaches_nothing, open_it, close_one)
{
	struct json *v;
	uint64_t job;

	(void)state;
	start("");
	job = client_submit(&c, KNOWN);
	assert_string_equal(
		client_error(&c, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job), "");
	assert_string_equal(
		client_error(&c, "{\"op\":\"finished\",\"job\":\"%llu\",\"exit_code\":1,\"run_s\":1e-3}",
			     (unsigned long long)job),
		"");
	for (int again = 0; again < 2; again++) { /* at its end, and when a restart goes through ended jobs */
		assert_true(stat_at("learning.since_training") == 0.0);
		v = client_ask(&c, "{\"op\":\"stats\"}");
		assert_int_equal(json_size(json_path(v, "learning.kept")), 0);
		assert_int_equal(json_size(json_path(v, "learning.types")), 0);
		json_free(v);
		client_close(&c);
		local_restart(&l);
		client_open(&c, &l);
	}
}

TEST_WITH(test_a_stranger_is_promised_something_after_enough_of_its_kind, open_it, close_one)
{
	char why[256];

	(void)state;
	start("\"learning\":{\"promise_after\":2},");
	assert_true(promised(KNOWN, why, sizeof why));
	assert_false(promised(STRANGE, why, sizeof why));
	assert_non_null(strstr(why, "the model has never seen network 'resnet'"));
	assert_non_null(strstr(why, "0 such jobs have ended and 2 are needed"));
	whole_job(STRANGE, RUN_S);
	assert_false(promised(STRANGE, why, sizeof why));
	assert_non_null(strstr(why, "1 such jobs have ended"));
	whole_job(STRANGE, RUN_S);
	assert_true(promised(STRANGE, why, sizeof why));
}

TEST_WITH(test_a_stranger_among_other_jobs_of_its_type_waits_for_a_training, open_it, close_one)
{
	char why[256];

	(void)state;
	start("\"learning\":{\"promise_after\":1},");
	whole_job(KNOWN, RUN_S);
	whole_job(STRANGE, RUN_S);
	assert_false(promised(STRANGE, why,
			      sizeof why)); /* bounds follow the type, and most of it is not like this job */
	assert_non_null(strstr(why, "until a model is trained on such jobs"));
}

TEST_WITH(test_without_adaptation_a_stranger_waits_for_a_training, open_it, close_one)
{
	char why[256];

	(void)state;
	start("\"learning\":{\"promise_after\":1,\"adapt\":false},");
	whole_job(STRANGE, RUN_S);
	assert_false(promised(STRANGE, why, sizeof why));
	assert_non_null(strstr(why, "until a model is trained on such jobs"));
}

TEST_WITH(test_what_was_learned_is_there_after_a_restart, open_it, close_one)
{
	char why[256];
	struct json *v;

	(void)state;
	start("\"learning\":{\"promise_after\":2},");
	whole_job(STRANGE, RUN_S);
	whole_job(STRANGE, RUN_S);
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_true(number_at(json_first(json_path(v, "learning.types")), "strangers") == 2.0);
	json_free(v);
	assert_true(stat_at("learning.since_training") == 2.0);
	assert_true(promised(STRANGE, why, sizeof why));
}

TEST_WITH(test_enough_jobs_start_a_training, open_it, close_one)
{
	struct json *v;

	(void)state;
	start("\"learning\":{\"retrain_after\":3},");
	assert_string_equal(client_error(&c, "{\"op\":\"watch\"}"), "");
	whole_job(KNOWN, RUN_S);
	whole_job(KNOWN, RUN_S);
	assert_true(stat_at("learning.since_training") == 2.0);
	whole_job(KNOWN, RUN_S);
	json_free(client_event(&c, "retrained"));
	assert_true(stat_at("learning.since_training") == 0.0);
	v = client_ask(&c, "{\"op\":\"stats\"}");
	assert_non_null(
		strstr(text_at(v, "learning.last"), "3 runs and observations to learn from; 30 are needed"));
	assert_false(json_bool(json_path(v, "learning.training"), true));
	json_free(v);
}

/* The attack as it was found: times that no machine has, and an accuracy that no schema means. Such jobs are
 * stored, counted and not learnt from, and what others are promised stays as it was. */
TEST_WITH(test_what_cannot_be_is_not_learnt_from, open_it, close_one)
{
	double before, after;
	struct json *v;

	(void)state;
	start("");
	v = client_ask(&c, "{\"op\":\"submit\",\"dry_run\":true%s}", KNOWN);
	before = number_at(json_first(json_path(v, "decision.candidates")), "upper_s");
	json_free(v);
	assert_true(before > 0.0);
	for (int i = 0; i < 8; i++)
		whole_job(KNOWN, 1e-9);
	assert_true(stat_at("learning.implausible") == 8.0);
	assert_true(stat_at("learning.since_training") == 0.0);
	v = client_ask(&c, "{\"op\":\"submit\",\"dry_run\":true%s}", KNOWN);
	after = number_at(json_first(json_path(v, "decision.candidates")), "upper_s");
	json_free(v);
	assert_true(after == before);
	for (int i = 0; i < 2; i++) {
		uint64_t job = client_submit(&c, KNOWN);

		client_error(&c, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job);
		time_passes(RUN_S);
		assert_string_equal(client_error(&c, "{\"op\":\"finished\",\"job\":\"%llu\",\"accuracy\":%s}",
						 (unsigned long long)job, i ? "1e308" : "0.7"),
				    "");
	}
	assert_true(stat_at("learning.implausible") == 9.0);
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	assert_true(stat_at("learning.implausible") == 9.0); /* and after a restart it is the same */
}

/* The share that jobs which came in later took of the time left to the limits of jobs that waited. */
static double share_taken(void)
{
	const struct sched *s = l.d->sched;

	return waits_share(s->learnt[0].waits, (struct adapt_who){ -1, getuid(), 0 }, 0.9);
}

static bool one_is_ready(const struct local_daemon *at)
{
	return at->d->jobs.live.n == 1 && at->d->jobs.live.first->step == STEP_READY;
}

/* It comes in while another holds the only slot, and runs when that one has ended. */
static void job_that_waits(int attempt)
{
	uint64_t first = client_submit(&c, NO_LIMIT), behind = client_submit(&c, KNOWN);

	assert_string_equal(
		client_error(&c, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)first), "");
	time_passes(3.0 * RUN_S);
	assert_string_equal(client_error(&c, "{\"op\":\"finished\",\"job\":\"%llu\",\"run_s\":%g}",
					 (unsigned long long)first, 3.0 * RUN_S),
			    "");
	local_until(&l, one_is_ready);
	l.d->jobs.live.first->row.attempt = attempt;
	assert_string_equal(
		client_error(&c, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)behind), "");
	time_passes(RUN_S);
	assert_string_equal(client_error(&c, "{\"op\":\"finished\",\"job\":\"%llu\",\"run_s\":%g}",
					 (unsigned long long)behind, RUN_S),
			    "");
}

TEST_WITH(test_a_repeated_run_was_not_overtaken, open_it, close_one)
{
	(void)state;
	start("\"slots\":1,");
	job_that_waits(1);
	assert_true(share_taken() == 0.0);
	job_that_waits(0);
	assert_true(share_taken() > 0.0);
}
