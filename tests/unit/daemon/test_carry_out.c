/* scheduler/daemon/{carry_out,restore,estimates,late}.c: what the life of a job asks for really happens. The
 * daemon runs in this process; events that would take long to come about are sent to it by hand. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/daemon/binding.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/local_daemon.h"

static struct local_daemon l;
static struct local_client c;
static uint64_t id; /* of the job that a wait is about */

static int open_one(void **state)
{
	(void)state;
	local_open(&l);
	return 0;
}

static bool all_have_ended(const struct local_daemon *d)
{
	return d->d->jobs.live.n == 0;
}

static int close_one(void **state)
{
	(void)state;
	carry_out_all(l.d, LIFE_CANCEL); /* no process stays behind */
	local_until(&l, all_have_ended);
	client_close(&c);
	local_close(&l);
	return 0;
}

#define CARRY_TEST(name) TEST_WITH(name, open_one, close_one)

static void start(const char *settings, const char *types)
{
	l.settings = settings;
	l.types = types;
	local_start(&l);
	client_open(&c, &l);
}

static struct job *job(uint64_t job_id)
{
	return jobs_find(&l.d->jobs, job_id);
}

static bool has_pid(const struct local_daemon *d)
{
	(void)d;
	return job(id)->pid > 0;
}

static bool has_ended(const struct local_daemon *d)
{
	(void)d;
	return !job_state_live(job(id)->row.state);
}

static bool is_ready(const struct local_daemon *d)
{
	(void)d;
	return job(id)->step == STEP_READY;
}

static void wait_for(uint64_t job_id, bool (*done)(const struct local_daemon *d))
{
	id = job_id;
	local_until(&l, done);
}

static uint64_t submit_sleepy(double seconds, const char *more)
{
	char members[200];

	snprintf(members, sizeof members, ",\"type\":\"sleepy\",\"params\":{\"seconds\":%g}%s", seconds,
		 more);
	return client_submit(&c, members);
}

static const char *waiting_code(uint64_t job_id)
{
	struct job_live live = { 0 };

	estimates_live(l.d, job(job_id), &live);
	return live.waiting_code ? live.waiting_code : "";
}

CARRY_TEST(test_a_job_that_cannot_be_spawned_fails_and_says_why)
{
	start("", ",\"broken\":{\"batches\":[8],\"argv\":[\"/no/such/program\",\"{batch}\"]}");
	wait_for(client_submit(&c, ",\"type\":\"broken\""), has_ended);
	assert_int_equal(job(id)->row.state, JOB_FAILED);
	assert_non_null(strstr(job(id)->row.reason, "/no/such/program"));
}

CARRY_TEST(test_events_come_in_the_order_of_a_life)
{
	struct json *e;

	start("", "");
	json_free(client_ask(&c, "{\"op\":\"watch\"}"));
	client_submit(&c, ",\"type\":\"sleepy\"");
	/* each call drops what comes before the event that it waits for */
	e = client_event(&c, "started");
	assert_string_equal(text_at(e, "job.state"), "running");
	json_free(e);
	e = client_event(&c, "finished");
	assert_string_equal(text_at(e, "job.state"), "done");
	json_free(e);
}

CARRY_TEST(test_starts_tell_how_long_a_start_takes)
{
	double most_s, wait_s;

	start("", "");
	assert_int_equal(l.d->lag.n, 0);
	most_s = carry_lag_s(l.d);
	assert_true(most_s > 0.0); /* a guess */
	wait_for(submit_sleepy(0.0, ""), has_ended);
	assert_int_equal(l.d->lag.n, 1);
	wait_s = (double)(job(id)->row.started_ns - job(id)->row.submitted_ns) / 1e9;
	assert_true(l.d->lag.lag_s[0] > 0.0 && l.d->lag.lag_s[0] <= wait_s);
	assert_true(carry_lag_s(l.d) == most_s); /* one slow start is an accident */
	/* one that is found running tells nothing of this daemon */
	wait_for(submit_sleepy(1000.0, ""), has_pid);
	assert_int_equal(l.d->lag.n, 2);
	assert_true(carry_lag_s(l.d) == fmax(most_s, fmin(l.d->lag.lag_s[0], l.d->lag.lag_s[1])));
	client_close(&c);
	local_restart(&l);
	wait_for(id, has_pid);
	assert_int_equal(l.d->lag.n, 0);
	client_open(&c, &l);
}

CARRY_TEST(test_a_cancel_reaches_the_process_and_the_disk)
{
	uint64_t sleeping;

	start("", "");
	sleeping = submit_sleepy(1000.0, "");
	wait_for(sleeping, has_pid);
	assert_string_equal(
		client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)sleeping), "");
	wait_for(sleeping, has_ended);
	assert_int_equal(job(sleeping)->row.state, JOB_CANCELLED);
	client_close(&c);
	local_restart(&l);
	assert_int_equal(job(sleeping)->row.state, JOB_CANCELLED);
}

CARRY_TEST(test_an_early_stop_ends_the_process)
{
	struct life_progress p = { .epoch = 2.0, .epochs = 5.0, .accuracy = NAN };
	struct life_event e;

	start("", "");
	wait_for(submit_sleepy(1000.0, ",\"may_stop\":true"), has_pid);
	e = carry_event(l.d, LIFE_PROGRESS, job(id));
	e.progress = &p;
	e.stop_after = 2;
	assert_int_equal(carry_out(l.d, &e, NULL), 0);
	assert_int_equal(job(id)->step, STEP_EARLY_AWAITS);
	wait_for(id, has_ended);
	assert_true(job(id)->row.stopped_epoch == 2.0);
	assert_int_equal(job(id)->row.state, JOB_FAILED); /* it left no result */
}

/* ---- late ---- */

static void say_late(uint64_t job_id, bool sure)
{
	struct life_event e = carry_event(l.d, LIFE_ESTIMATED, job(job_id));

	e.estimate = (struct sched_estimate){
		.end_s = 99.0, .end_low_s = NAN, .end_high_s = NAN, .late = true, .sure = sure
	};
	e.on_late = late_rule(l.d->setup->config, job(job_id));
	assert_int_equal(carry_out(l.d, &e, NULL), 0);
}

static char told_path[200];

static bool told_of_it(const struct local_daemon *d)
{
	(void)d;
	return access(told_path, R_OK) == 0;
}

CARRY_TEST(test_the_operators_command_is_run_once_for_a_job_that_will_be_late)
{
	char settings[400];

	snprintf(told_path, sizeof told_path, "%s/told", l.dir);
	snprintf(settings, sizeof settings,
		 "\"on_late\":\"notify\",\"notify\":[\"/bin/sh\",\"-c\",\"echo $1 >>%s\",\"sh\",\"{job}\"],",
		 told_path);
	start(settings, "");
	wait_for(submit_sleepy(1000.0, ""), has_pid);
	say_late(id, false);
	say_late(id, false);
	local_until(&l, told_of_it);
	assert_true(job(id)->late_told);
}

CARRY_TEST(test_a_job_without_a_promise_makes_room_for_one_that_will_be_late)
{
	uint64_t late, other;

	start("\"on_late\":\"stop_best_effort\",", "");
	late = submit_sleepy(1000.0, "");
	other = submit_sleepy(1000.0, "");
	wait_for(late, has_pid);
	wait_for(other, has_pid);
	job(late)->row.verdict = VERDICT_PROMISED; /* without a model nothing is promised */
	say_late(late, false); /* nobody is stopped on an alarm that may be false */
	assert_false(life_stops(job(other)));
	say_late(late, true);
	wait_for(other, has_ended);
	assert_int_equal(job(other)->row.state, JOB_CANCELLED);
	assert_int_equal(job(late)->row.state, JOB_RUNNING);
}

/* ---- why jobs wait ---- */

CARRY_TEST(test_a_job_that_waits_says_why)
{
	struct job_live live;
	uint64_t waits, advised;

	start("", "");
	wait_for(submit_sleepy(1000.0, ""), has_pid);
	wait_for(submit_sleepy(1000.0, ""), has_pid);
	waits = submit_sleepy(0.0, "");
	local_run(&l, 0.05);
	assert_string_equal(waiting_code(waits), "slots");
	l.d->draining = true;
	assert_string_equal(waiting_code(waits), "draining");
	l.d->draining = false;
	l.d->store_failed = true;
	assert_string_equal(waiting_code(waits), "storage");
	l.d->store_failed = false;
	client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)id);
	advised = client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	wait_for(advised, is_ready);
	assert_string_equal(waiting_code(advised), "owner");
	estimates_live(l.d, job(1), &live);
	assert_false(live.has_estimate); /* no model */
	assert_null(live.waiting_code);
	assert_int_equal(live.pid, job(1)->pid);
}

/* ---- after a restart ---- */

CARRY_TEST(test_a_running_job_is_found_again_and_a_queued_one_starts_later)
{
	uint64_t runs, other, waits;
	pid_t pid;

	start("", "");
	runs = submit_sleepy(1000.0, "");
	other = submit_sleepy(1000.0, "");
	waits = submit_sleepy(0.0, "");
	wait_for(runs, has_pid);
	wait_for(other, has_pid);
	pid = job(runs)->pid;
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	assert_int_equal(l.d->life.load_jobs, 2);
	assert_int_equal(job(waits)->row.state, JOB_QUEUED);
	assert_int_equal(kill(pid, 0), 0);
	client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)runs);
	wait_for(runs, has_ended);
	assert_int_equal(job(runs)->row.state, JOB_CANCELLED);
	wait_for(waits, has_ended);
	assert_int_equal(job(waits)->row.state, JOB_DONE);
	client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)other);
	wait_for(other, has_ended);
	assert_int_equal(l.d->life.load_jobs, 0);
}

CARRY_TEST(test_a_queued_job_whose_type_has_gone_fails_and_a_running_one_goes_on)
{
	uint64_t runs, other, waits;

	start("", ",\"extra\":{\"batches\":[8],\"argv\":[\"/bin/sh\",\"-c\",\"sleep 1000 # {batch}\"]}");
	runs = client_submit(&c, ",\"type\":\"extra\"");
	other = client_submit(&c, ",\"type\":\"extra\"");
	waits = client_submit(&c, ",\"type\":\"extra\"");
	wait_for(runs, has_pid);
	wait_for(other, has_pid);
	client_close(&c);
	local_stop(&l);
	l.types = "";
	local_start(&l);
	client_open(&c, &l);
	assert_int_equal(job(waits)->row.state, JOB_FAILED);
	assert_string_equal(job(waits)->row.reason, "there is no job type extra");
	assert_int_equal(job(runs)->row.state, JOB_RUNNING);
	for (uint64_t i = runs; i <= other; i++) {
		client_error(&c, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)i);
		wait_for(i, has_ended);
		assert_int_equal(job(i)->row.state, JOB_CANCELLED);
	}
}

CARRY_TEST(test_a_silent_owner_loses_his_turn)
{
	start("\"advise_timeout_s\":1,", "");
	wait_for(client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\""), is_ready);
	job(id)->ready_ns -= INT64_C(2000000000);
	carry_out_all(l.d, LIFE_TICK);
	assert_int_equal(job(id)->row.state, JOB_LOST);
}

CARRY_TEST(test_what_the_store_refused_is_saved_when_it_is_repaired)
{
	start("", "");
	wait_for(client_submit(&c, ",\"type\":\"sleepy\""), has_ended);
	job(id)->unsaved = true;
	carry_out_all(l.d, LIFE_REPAIRED);
	assert_false(job(id)->unsaved);
	assert_int_equal(store_pending(l.d->store) > 0, 1);
}

/* ---- answers ---- */

CARRY_TEST(test_an_answer_that_speaks_of_an_end_waits_until_the_end_is_on_disk)
{
	struct local_client other;
	uint64_t job_id, ticket;
	struct json *answer;

	start("", "");
	job_id = client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"");
	wait_for(job_id, is_ready);
	json_free(client_ask(&c, "{\"op\":\"started\",\"job\":\"%llu\"}", (unsigned long long)job_id));
	client_open(&other, &l);
	client_say(&c, "{\"op\":\"finished\",\"job\":\"%llu\"}", (unsigned long long)job_id);
	wait_for(job_id, has_ended);
	ticket = store_ticket(l.d->store);
	answer = client_ask(&other, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)job_id);
	assert_string_equal(text_at(answer, "error.code"), "wrong_state");
	assert_true(store_durable(l.d->store) >= ticket);
	json_free(answer);
	client_close(&other);
}
