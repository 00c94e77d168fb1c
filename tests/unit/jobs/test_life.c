/* scheduler/jobs/life: each event in each state, with the actions worked out by hand. test_life_property.c
 * has what holds for all histories. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/jobs/life.h"
#include "tests/support/test.h"

#define S INT64_C(1000000000)

static struct jobs jobs;
static struct life life;
static struct life_actions actions;
static struct decision decision;

static int set_up(void **state)
{
	(void)state;
	life = (struct life){ .jobs = &jobs, .load_since_ns = 100 * S };
	return jobs_init(&jobs, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	jobs_release(&jobs);
	return 0;
}

#define LIFE_TEST(name) TEST_WITH(name, set_up, tear_down)

/* ---- events in, names of actions out ---- */

static const char *const action_name[] = {
	[LIFE_ADD_ROW] = "add",
	[LIFE_UPDATE_ROW] = "update",
	[LIFE_ADD_DECISION] = "decision",
	[LIFE_ADD_ESTIMATE] = "estimate",
	[LIFE_ADD_OBSERVATION] = "observation",
	[LIFE_AWAIT] = "await",
	[LIFE_SPAWN] = "spawn",
	[LIFE_RETRY] = "retry",
	[LIFE_IDLE] = "idle",
	[LIFE_STOP] = "stop",
	[LIFE_ANSWER] = "answer",
	[LIFE_ADOPT] = "adopt",
	[LIFE_FORGET] = "forget",
	[LIFE_TELL] = "tell",
	[LIFE_NOTIFY] = "notify",
	[LIFE_ESTIMATE] = "ask",
	[LIFE_COUNT_VERDICT] = "verdict",
	[LIFE_COUNT_WAIT] = "wait",
	[LIFE_COUNT_ENDED] = "ended",
	[LIFE_FAILED] = "failed",
	[LIFE_LEARN] = "learn",
	[LIFE_CLOSE] = "close",
};

static void expect(const char *want)
{
	char got[400] = "";

	for (size_t i = 0; i < actions.n; i++) {
		size_t len = strlen(got);
		const struct life_action *a = &actions.item[i];

		snprintf(got + len, sizeof got - len, "%s%s%s%s", len ? " " : "", action_name[a->kind],
			 a->kind == LIFE_TELL ? ":" : "", a->kind == LIFE_TELL ? a->what : "");
	}
	assert_string_equal(got, want);
}

static struct life_event event_of(enum life_event_kind kind, struct job *job, double at_s)
{
	return (struct life_event){ .kind = kind,
				    .job = job,
				    .now_ns = (int64_t)(at_s * 1e9),
				    .foreseen_s = NAN,
				    .advise_timeout_s = 30.0 };
}

static void send(const struct life_event *e)
{
	actions.n = 0;
	assert_int_equal(life_event(&life, e, &actions, NULL), 0);
}

static void simple(enum life_event_kind kind, struct job *job, double at_s)
{
	struct life_event e = event_of(kind, job, at_s);

	send(&e);
}

static const struct life_action *find(enum life_action_kind kind)
{
	for (size_t i = 0; i < actions.n; i++) {
		if (actions.item[i].kind == kind)
			return &actions.item[i];
	}
	return NULL;
}

/* ---- jobs at each station ---- */

static void make_decision(double batch, double wait_s)
{
	decision.candidate[0] = (struct candidate){ .decision = batch,
						    .epochs = NAN,
						    .wait_s = wait_s,
						    .wait_upper_s = wait_s + 1.0,
						    .time_s = 8.0,
						    .guard_s = 9.0,
						    .upper_s = 10.0,
						    .model_s = 7.0,
						    .accuracy = 0.9,
						    .work_s = 6.0,
						    .cpu_share = 0.5,
						    .disk_share = 0.25 };
	decision.n_candidates = 1;
	decision.chosen = 0;
	decision.smallest_slo_s = NAN;
}

static struct job *bare_job(uint64_t id, const char *mode)
{
	struct job_record row;
	struct job *job;

	job_record_init(&row);
	row.id = id;
	row.key = "nightly";
	row.uid = 7;
	row.type = "digits";
	row.mode = mode;
	row.params = "{}";
	row.cpus = 2;
	row.slo_s = 60.0;
	row.confidence = 0.9;
	row.submitted_ns = 100 * S;
	assert_int_equal(job_new(&jobs.names, &row, &job, NULL), 0);
	return job;
}

static struct job *submit(uint64_t id, const char *mode, enum sched_verdict verdict)
{
	struct job *job = bare_job(id, mode);
	struct life_event e = event_of(LIFE_SUBMITTED, job, 100.0);

	make_decision(64.0, 3.0);
	e.verdict = verdict;
	e.decision = &decision;
	e.text = "{\"arrival\":1}";
	send(&e);
	return job;
}

static void turn(struct job *job, double at_s)
{
	struct life_event e = event_of(LIFE_TURN, job, at_s);

	make_decision(128.0, 0.0);
	e.decision = &decision;
	e.text = "{\"start\":1}";
	e.policy = "hybrid";
	e.model = "m-1";
	send(&e);
}

static void started(struct job *job, double at_s, pid_t pid)
{
	struct life_event e = event_of(LIFE_STARTED, job, at_s);

	e.at_ns = (int64_t)(at_s * 1e9);
	e.pid = pid;
	send(&e);
}

static struct job *running(uint64_t id, const char *mode, enum sched_verdict verdict)
{
	struct job *job = submit(id, mode, verdict);

	turn(job, 104.0);
	simple(LIFE_DURABLE, job, 104.1);
	started(job, 105.0, strcmp(mode, "advise") ? 77 : 0);
	assert_int_equal(job->row.state, JOB_RUNNING);
	return job;
}

static void ended(struct job *job, struct exec_outcome o, double at_s)
{
	struct life_event e = event_of(LIFE_ENDED, job, at_s);

	e.outcome = &o;
	e.foreseen_s = 11.5;
	send(&e);
}

static struct exec_outcome outcome(const struct job *job, int exit_code, double from_s, double to_s)
{
	struct exec_outcome o = life_outcome(job->id, false, "");

	o.exit_code = exit_code;
	o.started_ns = (int64_t)(from_s * 1e9);
	o.ended_ns = (int64_t)(to_s * 1e9);
	o.accuracy = 0.95;
	o.max_rss_mb = 12.0;
	o.cpu_s = 3.5;
	return o;
}

/* ---- submitted ---- */

LIFE_TEST(test_life_stores_a_job_then_its_decision_then_tells_of_it)
{
	struct job *job = submit(1, "run", SCHED_PROMISED);
	const struct life_action *a;

	expect("add decision estimate verdict tell:submitted");
	assert_string_equal(find(LIFE_ADD_DECISION)->what, "arrival");
	assert_string_equal(find(LIFE_ADD_DECISION)->text, "{\"arrival\":1}");
	a = find(LIFE_ADD_ESTIMATE);
	assert_string_equal(a->what, "arrival");
	assert_true(a->estimate.start_s == 3.0 && a->estimate.end_s == 11.0 && isnan(a->estimate.end_low_s) &&
		    a->estimate.end_high_s == 14.0);
	assert_int_equal(find(LIFE_COUNT_VERDICT)->verdict, SCHED_PROMISED);
	assert_int_equal(job->row.state, JOB_QUEUED);
	assert_int_equal(job->row.verdict, VERDICT_PROMISED);
	assert_true(job->row.predicted_s == 11.0 && job->row.upper_s == 14.0 && job->row.batch == 64.0);
	assert_ptr_equal(jobs_find(&jobs, 1), job);
	assert_int_equal(jobs_key_find(&jobs, 7, "nightly"), 1);
}

LIFE_TEST(test_life_without_a_prediction_stores_no_estimate)
{
	struct job *job = bare_job(1, "run");
	struct life_event e = event_of(LIFE_SUBMITTED, job, 100.0);

	make_decision(64.0, 3.0);
	decision.candidate[0].time_s = NAN;
	e.verdict = SCHED_BEST_EFFORT;
	e.decision = &decision;
	send(&e);
	expect("add decision verdict tell:submitted");
}

LIFE_TEST(test_life_of_a_rejected_job_is_over_and_says_what_could_be_promised)
{
	static const struct {
		unsigned reasons;
		double smallest_s;
		const char *why;
	} c[] = {
		{ 0, 75.5, "no batch meets 60 s at 90 %; the shortest limit that could be promised: 75.5 s" },
		{ REASON_TOO_WIDE, NAN, "it wants 2 cpus, more than are handed out" },
		{ REASON_MEMORY, NAN, "every batch needs more memory than there is" },
		{ REASON_UNSTABLE, NAN,
		  "the model predicts no time for any batch: its queue would grow for ever" },
		{ REASON_NO_BOUND, NAN, "there are too few observations for a promise at confidence 0.9" },
		{ REASON_BREAKS_PROMISE, NAN, "every batch would break a promise already made (job 42)" },
		{ REASON_PRICE, NAN,
		  "every batch would cost other jobs more than it brings, as busy as the machine is now" },
		{ REASON_SLOWER, NAN, "no batch can be promised at any limit" },
	};

	for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
		struct job *job = bare_job(i + 1, "run");
		struct life_event e = event_of(LIFE_SUBMITTED, job, 100.0);

		make_decision(64.0, 3.0);
		decision.chosen = -1;
		decision.candidate[0].reasons = c[i].reasons | REASON_EXTRAPOLATED;
		decision.candidate[0].breaks = 42;
		decision.candidate[1] = decision.candidate[0];
		decision.candidate[1].reasons = c[i].reasons;
		decision.n_candidates = 2;
		decision.smallest_slo_s = c[i].smallest_s;
		e.verdict = SCHED_REJECTED;
		e.decision = &decision;
		send(&e);
		expect("add decision verdict tell:rejected");
		assert_int_equal(job->row.state, JOB_REJECTED);
		assert_int_equal(job->row.ended_ns, job->row.submitted_ns);
		assert_string_equal(job->row.reason, c[i].why);
		assert_true(isnan(job->row.batch));
	}
	assert_int_equal(jobs.live.n, 0);
	assert_int_equal(jobs.ended.n, 8);
}

LIFE_TEST(test_life_taken_back_leaves_nothing_behind)
{
	struct job *job = submit(5, "run", SCHED_PROMISED);

	assert_int_equal(jobs_key_add(&jobs, 8, "nightly", 4, NULL), 0);
	jobs_key_forget_newest(&jobs, 5); /* it is not the newest */
	assert_int_equal(jobs_key_find(&jobs, 7, "nightly"), 5);
	assert_int_equal(jobs_key_find(&jobs, 8, "nightly"), 4);
	jobs_key_forget_newest(&jobs, 4);
	life_take_back(&life, job);
	assert_null(jobs_find(&jobs, 5));
	assert_int_equal(jobs_key_find(&jobs, 7, "nightly"), 0);
	assert_int_equal(jobs.live.n, 0);
	job_free(job);
}

/* ---- started ---- */

LIFE_TEST(test_life_spawns_only_when_the_start_is_on_disk)
{
	struct job *job = submit(1, "run", SCHED_PROMISED);

	turn(job, 104.0);
	expect("decision update await");
	assert_string_equal(find(LIFE_ADD_DECISION)->what, "start");
	assert_int_equal(job->row.state, JOB_RUNNING);
	assert_int_equal(job->row.started_ns, 104 * S);
	assert_true(job->row.batch == 128.0 && job->row.run_predicted_s == 8.0 && job->row.guard_s == 9.0);
	assert_true(job->row.predicted_s == 11.0); /* the promise stays that of the arrival */
	assert_string_equal(job->row.policy, "hybrid");
	assert_string_equal(job->row.model, "m-1");
	simple(LIFE_DURABLE, job, 104.5);
	expect("spawn");
	simple(LIFE_DURABLE, job, 104.6);
	expect("");
}

LIFE_TEST(test_life_saves_a_start_that_the_store_refused_before_it_spawns)
{
	struct job *job = submit(1, "run", SCHED_PROMISED);

	turn(job, 104.0);
	job->unsaved = true; /* the store failed a moment ago */
	simple(LIFE_DURABLE, job, 104.5);
	expect("update await");
	job->unsaved = false;
	simple(LIFE_DURABLE, job, 104.6);
	expect("spawn");
}

LIFE_TEST(test_life_saves_and_tells_when_the_process_is_there)
{
	struct job *job = submit(1, "run", SCHED_PROMISED);

	turn(job, 104.0);
	simple(LIFE_DURABLE, job, 104.1);
	started(job, 105.5, 77);
	expect("update idle wait ask tell:started");
	assert_true(find(LIFE_COUNT_WAIT)->time_s == 5.5);
	assert_string_equal(find(LIFE_ESTIMATE)->what, "start");
	assert_int_equal(job->row.started_ns, 105 * S + S / 2);
	assert_int_equal(job->pid, 77);
}

LIFE_TEST(test_life_asks_the_owner_of_an_advised_job_when_that_is_on_disk)
{
	struct job *job = submit(1, "advise", SCHED_PROMISED);

	turn(job, 104.0);
	expect("decision await");
	assert_int_equal(job->row.state, JOB_QUEUED);
	assert_int_equal(job->step, STEP_READY);
	assert_string_equal(job->decision_text, "{\"start\":1}");
	simple(LIFE_DURABLE, job, 104.1);
	expect("tell:ready");
	started(job, 109.0, 0);
	expect("update idle wait ask tell:started");
	assert_int_equal(job->row.state, JOB_RUNNING);
	assert_int_equal(job->row.started_ns, 109 * S);
	assert_int_equal(job->step, STEP_BEGUN);
	simple(LIFE_DURABLE, job, 110.0); /* nothing waits any more */
	expect("");
}

LIFE_TEST(test_life_of_a_queued_job_is_not_started_by_a_process_that_it_has_not)
{
	struct job *job = submit(1, "run", SCHED_PROMISED);

	started(job, 105.0, 77);
	expect("");
	assert_int_equal(job->row.state, JOB_QUEUED);
}

LIFE_TEST(test_life_gives_up_on_an_owner_who_is_silent_too_long)
{
	struct job *job = submit(1, "advise", SCHED_PROMISED);

	turn(job, 104.0);
	simple(LIFE_TICK, job, 133.9);
	expect("");
	simple(LIFE_TICK, job, 134.0);
	expect("update forget ended tell:finished close");
	assert_int_equal(job->row.state, JOB_LOST);
	assert_string_equal(job->row.reason, "its owner was told to start it 30 s ago and did not");
	assert_int_equal(job->row.started_ns, 0);
	assert_int_equal(job->row.slo_outcome, SLO_MISSED);
	assert_int_equal(life.load_jobs, 0);
}

LIFE_TEST(test_life_never_expires_a_job_that_nobody_was_asked_to_start)
{
	struct job *job = submit(1, "advise", SCHED_PROMISED);

	simple(LIFE_TICK, job, 9999.0);
	expect("");
	job = running(2, "advise", SCHED_PROMISED);
	simple(LIFE_TICK, job, 9999.0);
	expect("");
}

/* ---- without a chance ---- */

LIFE_TEST(test_life_lets_a_waiting_job_go_when_its_chance_has_gone)
{
	struct job *job = submit(1, "run", SCHED_CHANCE);

	assert_int_equal(job->row.verdict, VERDICT_CHANCE);
	simple(LIFE_HOPELESS, job, 120.0);
	expect("update forget ended tell:cancelled close");
	assert_int_equal(job->row.state, JOB_CANCELLED);
	assert_string_equal(job->row.reason, LIFE_NO_CHANCE);
	assert_int_equal(job->row.slo_outcome, SLO_MISSED);
	assert_int_equal(job->row.started_ns, 0);
}

LIFE_TEST(test_life_stops_a_running_job_when_its_chance_has_gone)
{
	struct job *job = running(1, "run", SCHED_CHANCE);
	struct exec_outcome o = outcome(job, -1, 105.0, 121.0);

	simple(LIFE_HOPELESS, job, 120.0);
	expect("tell:stopping update stop");
	assert_string_equal(job->row.reason, LIFE_NO_CHANCE); /* so that the next daemon knows */
	simple(LIFE_HOPELESS, job, 120.5);
	expect("");
	o.stopped = true;
	ended(job, o, 121.0);
	assert_int_equal(job->row.state, JOB_CANCELLED);
	assert_string_equal(job->row.reason, LIFE_NO_CHANCE);
	assert_int_equal(job->row.slo_outcome, SLO_MISSED);
	assert_non_null(find(LIFE_COUNT_ENDED));
}

LIFE_TEST(test_life_keeps_the_result_of_a_job_that_ended_before_it_was_stopped)
{
	struct job *job = running(1, "run", SCHED_CHANCE);

	simple(LIFE_HOPELESS, job, 120.0);
	ended(job, outcome(job, 0, 105.0, 120.1), 121.0);
	assert_int_equal(job->row.state, JOB_DONE);
	assert_null(job->row.reason);
}

LIFE_TEST(test_life_gives_up_neither_promises_nor_what_its_owner_runs)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	simple(LIFE_HOPELESS, job, 120.0);
	expect("");
	job = submit(2, "run", SCHED_BEST_EFFORT);
	simple(LIFE_HOPELESS, job, 120.0);
	expect("");
	job = running(3, "advise", SCHED_CHANCE);
	simple(LIFE_HOPELESS, job, 120.0);
	expect("");
}

LIFE_TEST(test_life_counts_a_cancel_by_request_as_that)
{
	struct job *job = running(1, "run", SCHED_CHANCE);
	struct exec_outcome o = outcome(job, -1, 105.0, 121.0);

	simple(LIFE_HOPELESS, job, 120.0);
	simple(LIFE_CANCEL, job, 120.5);
	o.stopped = true;
	ended(job, o, 121.0);
	assert_int_equal(job->row.state, JOB_CANCELLED);
	assert_int_equal(job->row.slo_outcome, SLO_NONE);
}

/* ---- ended ---- */

/* The columns of the observation, as "cpus=2 njobs=1.2"; valid until the next call. */
static const char *columns(void)
{
	const struct life_action *a = find(LIFE_ADD_OBSERVATION);
	static char text[1000];
	char number[32];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < a->n_values; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", i ? " " : "", a->value[i].name,
				      a->value[i].text ? a->value[i].text
						       : text_shortest(a->value[i].number, number));
	return text;
}

LIFE_TEST(test_life_ends_well_with_an_observation_and_a_lesson)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	ended(job, outcome(job, 0, 105.0, 115.0), 116.0);
	expect("observation update forget ended learn tell:finished close");
	assert_int_equal(job->row.state, JOB_DONE);
	assert_int_equal(job->row.ended_ns, 115 * S);
	assert_int_equal(job->row.slo_outcome, SLO_MET);
	assert_true(job->row.accuracy == 0.95 && job->row.max_rss_mb == 12.0 && job->row.cpu_s == 3.5);
	assert_true(job->row.foreseen_s == 11.5);
	assert_null(job->row.reason);
	assert_true(find(LIFE_ADD_OBSERVATION)->time_s == 10.0);
	/* alone from its turn at 104 until its end is seen at 116, though it ran for 10 s */
	assert_string_equal(columns(), "cpus=2 njobs=1 batch=128 processes=2 lr=nan other_load=0");
	assert_int_equal(life.load_jobs, 0);
	assert_int_equal(jobs.ended.n, 1);
}

LIFE_TEST(test_life_counts_the_jobs_that_ran_beside)
{
	struct job *a = running(1, "run", SCHED_PROMISED), *b = submit(2, "run", SCHED_PROMISED);

	turn(b, 110.0);
	/* a from 104 to 124 and b from 110 to 124: (6 + 2 x 14) / 20 jobs, twice as many cpus */
	ended(a, outcome(a, 0, 104.0, 124.0), 124.0);
	assert_string_equal(columns(), "cpus=2 njobs=1.7 batch=128 processes=3.4 lr=nan other_load=0");
	assert_int_equal(life.load_jobs, 1);
	assert_int_equal(life.load_processes, 2);
}

static const char *observed_other(struct job *job)
{
	const char *text, *at;

	ended(job, outcome(job, 0, 105.0, 115.0), 116.0);
	text = columns();
	at = strstr(text, "other_load");
	return at ? at : "";
}

LIFE_TEST(test_life_teaches_with_the_work_of_others_beside_the_run)
{
	struct job *job;

	life.other_sum_s = 30.0; /* before it started */
	life.other_span_s = 20.0;
	life.other_load = 4.0;
	job = running(1, "run", SCHED_PROMISED);
	life.other_sum_s += 25.0;
	life.other_span_s += 10.0;
	assert_string_equal(observed_other(job), "other_load=2.5");
	job = running(2, "run", SCHED_PROMISED);
	assert_string_equal(observed_other(job), "other_load=4"); /* nobody looked meanwhile */
	job = running(3, "run", SCHED_PROMISED);
	life.other_sum_s += 1.0;
	life.other_span_s += 10.0;
	assert_string_equal(observed_other(job), "other_load=0"); /* what any system does */
	job = running(4, "run", SCHED_PROMISED);
	life.other_load = NAN; /* outside_load is off */
	assert_string_equal(observed_other(job), "");
	life.other_load = 0.0;
}

LIFE_TEST(test_life_meets_an_objective_to_the_last_nanosecond)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	ended(job, outcome(job, 0, 105.0, 160.0), 161.0);
	assert_int_equal(job->row.slo_outcome, SLO_MET);
	job = running(2, "run", SCHED_PROMISED);
	ended(job, outcome(job, 0, 105.0, 160.001), 161.0);
	assert_int_equal(job->row.slo_outcome, SLO_MISSED);
	job = running(3, "run", SCHED_BEST_EFFORT);
	job->row.slo_s = NAN;
	ended(job, outcome(job, 0, 105.0, 110.0), 161.0);
	assert_int_equal(job->row.slo_outcome, SLO_NONE);
}

LIFE_TEST(test_life_fails_by_exit_code_or_time_and_teaches_nothing)
{
	struct job *job = running(1, "run", SCHED_PROMISED);
	struct exec_outcome o = outcome(job, 3, 105.0, 106.0);

	snprintf(o.reason, sizeof o.reason, "exit code 3");
	ended(job, o, 107.0);
	expect("update forget ended failed tell:finished close");
	assert_int_equal(job->row.state, JOB_FAILED);
	assert_int_equal(job->row.exit_code, 3);
	assert_string_equal(job->row.reason, "exit code 3");
	assert_int_equal(job->row.slo_outcome, SLO_MISSED);
	job = running(2, "run", SCHED_PROMISED);
	o = outcome(job, 0, 105.0, 106.0);
	o.timed_out = true;
	ended(job, o, 107.0);
	assert_int_equal(job->row.state, JOB_FAILED);
}

LIFE_TEST(test_life_of_a_job_that_could_not_be_spawned_has_no_start)
{
	struct job *job = submit(1, "run", SCHED_PROMISED);

	turn(job, 104.0);
	simple(LIFE_DURABLE, job, 104.1);
	ended(job, life_outcome(1, false, "could not be started: no such file"), 104.2);
	expect("update forget ended tell:finished close");
	assert_int_equal(job->row.state, JOB_FAILED);
	assert_int_equal(job->row.started_ns, 0);
	assert_int_equal(job->row.ended_ns, 104 * S + S / 5);
	assert_true(isnan(job->row.foreseen_s));
}

LIFE_TEST(test_life_that_is_over_answers_no_event)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	ended(job, outcome(job, 0, 105.0, 115.0), 116.0);
	for (int kind = LIFE_TURN; kind <= LIFE_UNSTARTED; kind++) {
		if (kind != LIFE_RESTORED) {
			simple((enum life_event_kind)kind, job, 200.0);
			expect("");
		}
	}
	assert_int_equal(job->row.state, JOB_DONE);
}

LIFE_TEST(test_life_saves_again_what_a_failed_store_refused)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	ended(job, outcome(job, 0, 105.0, 115.0), 116.0);
	job->unsaved = true;
	simple(LIFE_REPAIRED, job, 120.0);
	expect("update");
	job->unsaved = false;
	simple(LIFE_REPAIRED, job, 121.0);
	expect("");
}

LIFE_TEST(test_life_of_an_advised_job_ends_when_its_owner_says)
{
	struct job *job = running(1, "advise", SCHED_PROMISED);
	struct exec_outcome o = life_outcome(1, false, "");

	o.exit_code = 0;
	o.ended_ns = 112 * S;
	o.accuracy = 0.5;
	ended(job, o, 112.0);
	assert_int_equal(job->row.state, JOB_DONE);
	assert_int_equal(job->row.started_ns,
			 105 * S); /* the owner did not say, so what he said before counts */
	assert_true(find(LIFE_ADD_OBSERVATION)->time_s == 7.0);
}

LIFE_TEST(test_run_times_are_known_of_runs_only)
{
	struct job *job = running(1, "run", SCHED_PROMISED);
	struct exec_outcome o = outcome(job, 0, 106.0, 115.0);

	assert_true(life_run_s(job, &o, 120 * S) == 9.0);
	o.ended_ns = 0;
	assert_true(life_run_s(job, &o, 120 * S) == 14.0);
	o = life_outcome(1, true, "gone");
	assert_true(isnan(life_run_s(job, &o, 120 * S)));
	job = submit(2, "run", SCHED_PROMISED);
	o = outcome(job, 0, 106.0, 115.0);
	assert_true(isnan(life_run_s(job, &o, 120 * S)));
}

/* ---- cancelled ---- */

LIFE_TEST(test_life_cancels_at_once_what_does_not_run_here)
{
	struct job *queued = submit(1, "run", SCHED_PROMISED), *starting = submit(2, "run", SCHED_PROMISED);
	struct job *ready = submit(3, "advise", SCHED_PROMISED),
		   *advised = running(4, "advise", SCHED_PROMISED);
	struct job *all[] = { queued, starting, ready, advised };

	turn(starting, 104.0);
	turn(ready, 104.0);
	for (size_t i = 0; i < 4; i++) {
		simple(LIFE_CANCEL, all[i], 106.0);
		expect("update forget ended tell:cancelled close");
		assert_int_equal(all[i]->row.state, JOB_CANCELLED);
		assert_string_equal(all[i]->row.reason, "cancelled");
		assert_int_equal(all[i]->row.slo_outcome, SLO_NONE);
	}
	assert_int_equal(starting->row.started_ns, 0);
	assert_int_equal(life.load_jobs, 0);
	simple(LIFE_DURABLE, starting, 107.0);
	expect("");
}

LIFE_TEST(test_life_saves_a_cancel_and_then_stops_the_process)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	simple(LIFE_CANCEL, job, 106.0);
	expect("update stop");
	assert_int_equal(job->row.state, JOB_RUNNING);
	assert_string_equal(job->row.reason, LIFE_CANCELLED);
	ended(job, outcome(job, 0, 105.0, 107.0), 107.0); /* it ended well all the same */
	expect("update forget ended tell:cancelled close");
	assert_int_equal(job->row.state, JOB_CANCELLED);
}

LIFE_TEST(test_life_of_a_cancelled_job_that_is_not_there_is_over)
{
	struct job *job = running(1, "run", SCHED_PROMISED);
	struct life_event e = event_of(LIFE_STOP_FAILED, job, 106.0);

	simple(LIFE_CANCEL, job, 106.0);
	e.gone = true;
	send(&e);
	expect("update forget ended tell:cancelled close");
	assert_int_equal(job->row.state, JOB_CANCELLED);
}

LIFE_TEST(test_life_goes_on_where_a_process_cannot_be_stopped)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	simple(LIFE_CANCEL, job, 106.0);
	simple(LIFE_STOP_FAILED, job, 106.0);
	expect("update");
	assert_null(job->row.reason);
	ended(job, outcome(job, 0, 105.0, 115.0), 116.0);
	assert_int_equal(job->row.state, JOB_DONE);
}

/* ---- under way ---- */

static void progress(struct job *job, double epoch, double epochs, uint32_t stop_after)
{
	struct life_progress p = { .epoch = epoch, .epochs = epochs, .accuracy = 0.6 };
	struct life_event e = event_of(LIFE_PROGRESS, job, 110.0);

	e.progress = &p;
	e.stop_after = stop_after;
	send(&e);
}

LIFE_TEST(test_life_tells_progress_and_asks_for_another_estimate)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	progress(job, 2.0, 5.0, 0);
	expect("ask tell:progress");
	assert_string_equal(find(LIFE_ESTIMATE)->what, "progress");
	assert_true(job->epoch == 2.0 && job->epochs == 5.0 && job->epoch_accuracy == 0.6);
	simple(LIFE_PROGRESS, job, 111.0); /* an owner says how much is done, not which epoch */
	expect("ask tell:progress");
	assert_true(job->epoch == 2.0);
	progress(job, 3.0, NAN, 0);
	expect("");
	assert_true(job->epoch == 3.0);
	progress(job, 6.0, 5.0, 0);
	expect("");
	job = submit(2, "run", SCHED_PROMISED);
	progress(job, 2.0, 5.0, 0);
	expect("");
}

LIFE_TEST(test_life_stops_early_when_that_is_on_disk_and_not_before)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	progress(job, 2.0, 5.0, 2);
	expect("ask tell:progress"); /* it did not ask for that */
	job->row.may_stop = true;
	progress(job, 2.0, 5.0, 3);
	expect("ask tell:progress");
	progress(job, 5.0, 5.0, 5);
	expect("ask tell:progress"); /* it is ready anyway */
	progress(job, 3.0, 5.0, 3);
	expect("ask tell:progress update await tell:stopping");
	assert_true(job->row.stopped_epoch == 3.0);
	simple(LIFE_DURABLE, job, 110.5);
	expect("stop");
	progress(job, 4.0, 5.0, 3);
	expect("ask tell:progress"); /* once */
}

LIFE_TEST(test_life_stopped_early_is_done_if_it_left_a_result)
{
	struct job *job = running(1, "run", SCHED_PROMISED);
	struct exec_outcome o;

	job->row.may_stop = true;
	progress(job, 3.0, 5.0, 3);
	simple(LIFE_DURABLE, job, 110.5);
	o = outcome(job, -1, 105.0, 111.0);
	o.exit_signal = 15;
	o.stopped = true;
	ended(job, o, 111.0);
	expect("update forget ended tell:finished close"); /* a run cut short teaches nothing of whole runs */
	assert_int_equal(job->row.state, JOB_DONE);
	assert_int_equal(job->row.slo_outcome, SLO_MET);
	job = running(2, "run", SCHED_PROMISED);
	job->row.may_stop = true;
	progress(job, 3.0, 5.0, 3);
	o.accuracy = NAN;
	ended(job, o, 111.0);
	assert_int_equal(job->row.state, JOB_FAILED);
}

LIFE_TEST(test_life_that_cannot_be_stopped_early_runs_to_its_end)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	job->row.may_stop = true;
	progress(job, 3.0, 5.0, 3);
	simple(LIFE_DURABLE, job, 110.5);
	simple(LIFE_STOP_FAILED, job, 110.6);
	expect("update");
	assert_true(isnan(job->row.stopped_epoch));
	progress(job, 3.0, 5.0, 3); /* and it is tried again */
	expect("ask tell:progress update await tell:stopping");
	job->unsaved = true;
	simple(LIFE_DURABLE, job, 111.0);
	expect("update await");
}

static void give_back(struct job *job, double epoch)
{
	struct life_progress p = { .epoch = epoch, .epochs = 5.0, .accuracy = 0.6 };
	struct life_event e = event_of(LIFE_PROGRESS, job, 110.0);

	e.progress = &p;
	e.stop_after = 3;
	e.gives_back = true;
	send(&e);
}

/* ---- steered ---- */

static const struct job_type asking = { .name = (char[]){ "digits" }, .steer = true, .lr_base = NAN };

static struct job *steering(uint64_t id)
{
	struct job *job = running(id, "run", SCHED_PROMISED);

	job->type = &asking;
	return job;
}

/* After an epoch; the batch it has: nothing changes. */
static void steer(struct job *job, double after, double batch, const char *why)
{
	struct job_change c = { .end_s = 12.5, .end_upper_s = 14.0, .accuracy = NAN };
	struct life_event e = event_of(LIFE_STEERED, job, 110.0);

	job_next(job, &c.next);
	e.changed = batch != c.next.batch;
	c.next.after = after;
	c.next.batch = batch;
	c.next.last = 5.0;
	snprintf(c.why, sizeof c.why, "%s", why);
	e.change = &c;
	e.kept = "what it knew";
	send(&e);
}

LIFE_TEST(test_life_tells_a_job_how_to_go_on_when_that_is_on_disk_and_not_before)
{
	struct job *job = steering(1);
	double start = job->row.batch;

	steer(job, 1.0, start, "keeps");
	expect("update answer"); /* it says nothing new */
	assert_null(job->row.steered);
	assert_string_equal(job->row.steer_kept, "what it knew");
	steer(job, 2.0, 512.0, "faster");
	expect("update await ask tell:steered");
	assert_true(job->row.batch == start); /* with which it started */
	assert_non_null(strstr(job->row.steered, "{\"after\":2,\"batch\":512,"));
	steer(job, 3.0, 512.0, "keeps"); /* before the disk has it */
	expect("update");
	simple(LIFE_DURABLE, job, 110.5);
	expect("answer");
	assert_true(job->steering.told.batch == 512.0 && job->steering.told.after == 3.0);
	steer(job, 4.0, 64.0, "accurate");
	job->unsaved = true; /* the store refused it */
	simple(LIFE_DURABLE, job, 111.0);
	expect("update await");
	job->unsaved = false;
	simple(LIFE_DURABLE, job, 111.5);
	expect("answer");
	assert_non_null(strstr(job->row.steered, "},{\"after\":4,\"batch\":64,"));
}

/* The first of two rows is on disk: that says nothing of the second. */
LIFE_TEST(test_life_does_not_take_one_row_for_another)
{
	struct job *job = steering(1);

	job->row.may_stop = true;
	steer(job, 2.0, 512.0, "faster");
	progress(job, 3.0, 5.0, 3);
	expect("ask tell:progress update await tell:stopping");
	simple(LIFE_DURABLE, job, 110.5);
	expect("");
	simple(LIFE_DURABLE, job, 110.6);
	expect("stop answer");
	steer(job, 3.0, 64.0, "accurate"); /* it is to stop */
	expect("");
}

LIFE_TEST(test_life_of_a_steered_run_is_no_observation_and_begins_anew_when_it_is_repeated)
{
	struct job *job = steering(1);

	steer(job, 2.0, 512.0, "faster");
	simple(LIFE_DURABLE, job, 110.5);
	ended(job, outcome(job, 0, 105.0, 115.0), 116.0);
	expect("update forget ended tell:finished close");
	assert_int_equal(job->row.state, JOB_DONE);
	job = steering(2);
	job->row.retry = 1;
	steer(job, 2.0, 512.0, "faster");
	ended(job, outcome(job, 1, 105.0, 115.0), 116.0);
	assert_int_equal(job->row.state, JOB_QUEUED);
	assert_true(!job->row.steered && !job->row.steer_kept && isnan(job->steering.told.batch));
}

LIFE_TEST(test_life_lets_a_job_go_that_does_not_follow_and_one_that_changed_too_often)
{
	struct job *job = steering(1);

	assert_true(life_steers(job));
	assert_false(job_steer_deaf(job, job->row.batch) || job_steer_deaf(job, NAN));
	steer(job, 2.0, 512.0, "faster");
	assert_false(job_steer_deaf(job, 64.0) || job_steer_deaf(job, 64.0));
	assert_false(job_steer_deaf(job, 512.0)); /* it has taken it up */
	assert_false(job_steer_deaf(job, 64.0) || job_steer_deaf(job, 64.0));
	assert_true(job_steer_deaf(job, 64.0));
	steer(job, 5.0, 64.0, JOB_NOT_FOLLOWED);
	assert_false(life_steers(job));
	steer(job, 6.0, 128.0, "faster");
	expect("");
	steer(job, 6.0, 64.0, "keeps"); /* it is still answered */
	expect("update");
	job = steering(2);
	for (int i = 0; i < JOB_STEERED_MOST; i++)
		steer(job, i + 1.0, 100.0 + i, "faster");
	expect("update await ask tell:steered");
	assert_false(life_steers(job));
	steer(job, 99.0, 64.0, "faster");
	expect("");
}

LIFE_TEST(test_life_of_another_type_is_not_steered)
{
	static char name[] = "digits";
	static const struct job_type plain = { .name = name, .lr_base = NAN };
	struct job *job = running(1, "run", SCHED_PROMISED);

	steer(job, 2.0, 512.0, "faster");
	expect("");
	job->type = &plain;
	assert_false(life_steers(job));
	steer(job, 2.0, 512.0, "faster");
	expect("");
	job->type = NULL;
}

LIFE_TEST(test_life_that_gave_time_back_says_so)
{
	struct job *job = running(1, "run", SCHED_PROMISED);
	struct exec_outcome o;

	job->row.may_stop = true;
	give_back(job, 2.0);
	assert_null(job->row.reason); /* not yet */
	give_back(job, 3.0);
	expect("ask tell:progress update await tell:stopping");
	assert_string_equal(job->row.reason, LIFE_GAVE_BACK);
	simple(LIFE_STOP_FAILED, job, 110.6);
	assert_null(job->row.reason); /* it runs on */
	give_back(job, 3.0);
	simple(LIFE_DURABLE, job, 111.0);
	o = outcome(job, -1, 105.0, 112.0);
	snprintf(o.reason, sizeof o.reason, "ended by signal 15");
	o.stopped = true;
	ended(job, o, 112.0);
	assert_int_equal(job->row.state, JOB_DONE);
	assert_int_equal(job->row.slo_outcome, SLO_MET);
	assert_string_equal(job->row.reason, LIFE_GAVE_BACK);
	job = running(2, "run", SCHED_PROMISED);
	job->row.may_stop = true;
	give_back(job, 3.0);
	o.accuracy = NAN; /* it failed, and that is what its owner has to know */
	ended(job, o, 112.0);
	assert_string_equal(job->row.reason, "ended by signal 15");
}

/* ---- late ---- */

static void estimated(struct job *job, double end_s, bool late, const char *why, enum config_on_late rule)
{
	struct life_event e = event_of(LIFE_ESTIMATED, job, 110.0);

	e.estimate = (struct sched_estimate){ .end_s = end_s, .late = late, .sure = late };
	e.text = why;
	e.on_late = rule;
	send(&e);
}

LIFE_TEST(test_life_keeps_estimates_that_are_asked_for_or_have_moved)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	estimated(job, 40.0, false, "start", ON_LATE_NOTHING);
	expect("estimate");
	assert_string_equal(find(LIFE_ADD_ESTIMATE)->what, "start");
	estimated(job, 41.0, false, NULL, ON_LATE_NOTHING); /* by a second, which is not more than one */
	expect("");
	estimated(job, 41.9, false, NULL, ON_LATE_NOTHING); /* less than 5 % of what is left */
	expect("");
	estimated(job, 43.0, false, NULL, ON_LATE_NOTHING);
	expect("estimate");
	assert_string_equal(find(LIFE_ADD_ESTIMATE)->what, "moved");
	estimated(job, 43.5, false, "progress", ON_LATE_NOTHING);
	expect("estimate");
}

LIFE_TEST(test_life_says_once_that_a_job_will_be_late)
{
	struct job *job = running(1, "run", SCHED_PROMISED);

	estimated(job, 70.0, true, "start", ON_LATE_NOTIFY);
	expect("estimate tell:late notify");
	assert_true(fabs(find(LIFE_NOTIFY)->time_s - 20.0) <
		    1e-9); /* 60 s from 100 on; at 110 there are 50 left */
	estimated(job, 70.0, true, NULL, ON_LATE_NOTIFY);
	expect("");
	job = running(2, "run", SCHED_PROMISED);
	estimated(job, 70.0, true, "start", ON_LATE_NOTHING);
	expect("estimate tell:late");
}

LIFE_TEST(test_life_stops_the_youngest_job_without_a_promise_for_one_that_is_late)
{
	struct job *late = running(1, "run", SCHED_PROMISED), *old = running(2, "run", SCHED_BEST_EFFORT);
	struct job *young = running(3, "run", SCHED_BEST_EFFORT),
		   *urgent = running(4, "run", SCHED_BEST_EFFORT);

	running(5, "run", SCHED_PROMISED);
	submit(6, "run", SCHED_BEST_EFFORT);
	urgent->row.priority = 1;
	estimated(late, 70.0, true, "start", ON_LATE_STOP_BEST_EFFORT);
	expect("estimate tell:late notify tell:stopping update stop");
	assert_ptr_equal(find(LIFE_STOP)->job, young);
	estimated(late, 70.0, true, NULL, ON_LATE_STOP_BEST_EFFORT); /* one at a look, and it is still late */
	expect("tell:stopping update stop");
	assert_ptr_equal(find(LIFE_STOP)->job, old);
	estimated(late, 70.0, true, NULL, ON_LATE_STOP_BEST_EFFORT);
	expect("");
}

/* ---- after a restart ---- */

static struct job *restored(uint64_t id, const char *mode, enum job_state state, const char *reason)
{
	struct job *job = bare_job(id, mode);

	job->row.state = state;
	job->row.verdict = VERDICT_PROMISED;
	job->row.batch = 128.0;
	job->row.started_ns = state == JOB_QUEUED ? 0 : 104 * S;
	job_set_reason(job, reason);
	simple(LIFE_RESTORED, job, 200.0);
	return job;
}

LIFE_TEST(test_life_counts_the_ended_again_and_asks_nothing_of_the_others)
{
	static const enum job_state all[] = { JOB_DONE,     JOB_FAILED, JOB_LOST,   JOB_CANCELLED,
					      JOB_REJECTED, JOB_QUEUED, JOB_RUNNING };

	for (size_t i = 0; i < 7; i++) {
		restored(i + 1, "run", all[i], NULL);
		expect(i < 4 ? "ended" : "");
	}
	assert_int_equal(jobs.live.n, 2);
	assert_int_equal(jobs.ended.n, 5);
	restored(8, "run", JOB_CANCELLED, LIFE_NO_CHANCE); /* its limit was missed */
	expect("ended");
	assert_true(restored(9, "run", JOB_RUNNING, LIFE_NO_CHANCE)->step == STEP_GIVEN_UP);
}

LIFE_TEST(test_life_comes_back_with_its_promise_and_its_batch)
{
	struct job *job = restored(1, "run", JOB_RUNNING, NULL);
	struct sched_restored back;

	life_back(job, &back);
	assert_true(back.promised && back.running);
	assert_int_equal(back.submitted_ns, 100 * S);
	assert_int_equal(back.started_ns, 104 * S);
	assert_true(back.taken.decision == 128.0);
	job = restored(2, "run", JOB_QUEUED, NULL);
	job->row.verdict = VERDICT_BEST_EFFORT;
	life_back(job, &back);
	assert_false(back.promised || back.running || back.by_chance);
	job->row.verdict = VERDICT_CHANCE;
	life_back(job, &back);
	assert_true(back.by_chance && !back.promised);
}

LIFE_TEST(test_life_looks_for_what_ran_and_leaves_the_queue_to_the_scheduler)
{
	struct job *job = restored(1, "run", JOB_RUNNING, NULL),
		   *queued = restored(2, "run", JOB_QUEUED, NULL);

	simple(LIFE_RESUMED, queued, 200.0);
	expect("");
	simple(LIFE_RESUMED, job, 200.0);
	expect("adopt");
	assert_int_equal(life.load_jobs, 1);
	simple(LIFE_ADOPTED, job, 200.0);
	expect("");
	ended(job, outcome(job, 0, 105.0, 150.0), 201.0);
	assert_int_equal(job->row.state, JOB_DONE);
	assert_int_equal(life.load_jobs, 0);
}

LIFE_TEST(test_life_starts_what_was_never_started)
{
	struct job *job = restored(1, "run", JOB_RUNNING, NULL);

	simple(LIFE_RESUMED, job, 200.0);
	simple(LIFE_UNSTARTED, job, 200.0);
	expect("spawn");
}

LIFE_TEST(test_life_does_not_start_what_was_cancelled_and_stops_it_where_it_runs)
{
	struct job *unstarted = restored(1, "run", JOB_RUNNING, LIFE_CANCELLED);
	struct job *runs = restored(2, "run", JOB_RUNNING, LIFE_CANCELLED);

	simple(LIFE_RESUMED, unstarted, 200.0);
	simple(LIFE_UNSTARTED, unstarted, 200.0);
	expect("update forget ended tell:cancelled close");
	simple(LIFE_RESUMED, runs, 200.0);
	simple(LIFE_ADOPTED, runs, 200.0);
	expect("stop");
	ended(runs, outcome(runs, 0, 105.0, 150.0), 201.0);
	assert_int_equal(runs->row.state, JOB_CANCELLED);
}

LIFE_TEST(test_life_of_a_queued_job_with_a_reason_is_not_cancelled)
{
	struct job *job = restored(1, "run", JOB_QUEUED, LIFE_CANCELLED); /* whatever the reason says */

	assert_int_equal(job->step, STEP_NONE);
}

LIFE_TEST(test_life_repeats_an_early_stop_that_may_not_have_been_sent)
{
	struct job *job = bare_job(1, "run");
	struct exec_outcome o;

	job->row.state = JOB_RUNNING;
	job->row.stopped_epoch = 3.0;
	simple(LIFE_RESTORED, job, 200.0);
	simple(LIFE_RESUMED, job, 200.0);
	simple(LIFE_ADOPTED, job, 200.0);
	expect("stop");
	o = outcome(job, -1, 105.0, 150.0);
	o.stopped = true;
	ended(job, o, 201.0);
	assert_int_equal(job->row.state, JOB_DONE);
}

LIFE_TEST(test_life_tells_a_job_again_what_it_may_not_have_heard)
{
	struct job *job = restored(1, "run", JOB_RUNNING, NULL), *other = bare_job(2, "run");
	struct job_record row = other->row;
	struct sched_restored back;

	simple(LIFE_RESUMED, job, 200.0);
	simple(LIFE_ADOPTED, job, 200.0);
	expect(""); /* it was told nothing */
	row.state = JOB_RUNNING;
	row.started_ns = 105 * S;
	row.batch = 32.0;
	row.steered = "[{\"after\":2,\"batch\":64,\"lr\":0.5,\"last\":9,\"why\":\"faster\"},"
		      "{\"after\":4,\"batch\":128,\"lr\":1,\"last\":8,\"why\":\"late\"}]";
	row.steer_kept = "it knows";
	assert_int_equal(job_new(&jobs.names, &row, &job, NULL), 0);
	job_free(other); /* its texts are those of the row */
	simple(LIFE_RESTORED, job, 200.0);
	life_back(job, &back);
	assert_string_equal(back.steer, "it knows");
	simple(LIFE_RESUMED, job, 200.0);
	simple(LIFE_ADOPTED, job, 200.0);
	expect("answer");
	assert_true(job->steering.told.batch == 128.0 && job->steering.told.last == 8.0);
	assert_true(job->steering.told.lr == 1.0 && job->steering.told.after == 4.0);
	assert_false(job->steering.deaf);
}

LIFE_TEST(test_life_takes_a_stop_of_an_earlier_daemon_for_a_cancel)
{
	struct job *job = restored(1, "run", JOB_RUNNING, NULL);
	struct exec_outcome o = outcome(job, -1, 105.0, 150.0);

	simple(LIFE_RESUMED, job, 200.0);
	simple(LIFE_ADOPTED, job, 200.0);
	o.stopped = true; /* it died before it could write that down */
	ended(job, o, 201.0);
	assert_int_equal(job->row.state, JOB_CANCELLED);
}

LIFE_TEST(test_life_without_a_trace_is_lost)
{
	struct job *job = restored(1, "run", JOB_RUNNING, NULL);

	simple(LIFE_RESUMED, job, 200.0);
	ended(job, life_outcome(1, true, "the machine was restarted"), 200.0);
	assert_int_equal(job->row.state, JOB_LOST);
	assert_string_equal(job->row.reason, "the machine was restarted");
	assert_int_equal(job->row.started_ns, 0);
}

LIFE_TEST(test_life_ends_where_the_scheduler_does_not_take_a_job_back)
{
	struct job *queued = restored(1, "run", JOB_QUEUED, NULL),
		   *ran = restored(2, "run", JOB_RUNNING, NULL);
	struct life_event e = event_of(LIFE_RESUMED, queued, 200.0);

	e.text = "its type is no longer configured";
	send(&e);
	expect("update forget ended tell:finished close");
	assert_int_equal(queued->row.state, JOB_FAILED);
	assert_string_equal(queued->row.reason, "its type is no longer configured");
	e.job = ran;
	send(&e);
	assert_int_equal(ran->row.state, JOB_LOST);
	assert_int_equal(life.load_jobs, 0);
}

LIFE_TEST(test_life_leaves_an_advised_job_to_its_owner)
{
	struct job *job = restored(1, "advise", JOB_RUNNING, NULL);

	simple(LIFE_RESUMED, job, 200.0);
	expect("adopt");
	simple(LIFE_ADOPTED, job, 200.0);
	expect("");
}
