/* scheduler/jobs/record: the table of fields, empty values, what the scheduler decided, and the job object
 * read back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/core/sched.h"
#include "scheduler/jobs/record.h"
#include "tests/support/test.h"
#include "tests/unit/jobs/plain_job.h"

static const void *member_of(const struct job_record *r, const struct job_field *f)
{
	return (const char *)r + f->offset;
}

TEST(test_an_empty_record_knows_nothing)
{
	struct job_record r;

	memset(&r, 0x55, sizeof r);
	job_record_init(&r);
	for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++) {
		const void *p = member_of(&r, f);

		if (f->home != IN_RECORD || !f->column)
			continue;
		if (f->kind == FIELD_FIXED || f->kind == FIELD_NUMBER)
			assert_true(isnan(*(const double *)p));
		else if (f->kind == FIELD_TEXT || f->kind == FIELD_JSON)
			assert_null(*(const char *const *)p);
		else if (f->kind == FIELD_MOMENT)
			assert_true(*(const int64_t *)p == 0);
	}
	assert_int_equal(r.exit_code, -1);
	assert_int_equal(r.exit_signal, 0);
	assert_int_equal(r.state, JOB_QUEUED);
	assert_int_equal(r.verdict, VERDICT_NONE);
	assert_int_equal(r.slo_outcome, SLO_NONE);
	assert_true(r.uid == (uid_t)-1 && r.cpus == 0 && r.priority == 0 && !r.may_stop);
}

TEST(test_no_two_fields_share_a_column_a_key_or_a_place)
{
	const char *group_a = "", *group_b;

	for (const struct job_field *a = job_field; a < job_field + n_job_fields; a++) {
		group_a = a->kind == FIELD_GROUP ? a->key : a->kind == FIELD_GROUP_END ? "" : group_a;
		group_b = group_a;
		for (const struct job_field *b = a + 1; b < job_field + n_job_fields; b++) {
			group_b = b->kind == FIELD_GROUP ? b->key : b->kind == FIELD_GROUP_END ? "" : group_b;
			if (a->kind == FIELD_GROUP_END || b->kind == FIELD_GROUP_END)
				continue;
			assert_false(a->home == b->home && a->offset == b->offset);
			assert_false(a->column && b->column && !strcmp(a->column, b->column));
			assert_false(a->key && b->key && !strcmp(a->key, b->key) &&
				     !strcmp(group_a, group_b));
		}
	}
}

TEST(test_enums_have_one_name_each_way)
{
	for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++) {
		int n = f->kind == FIELD_STATE     ? N_JOB_STATES
			: f->kind == FIELD_VERDICT ? N_JOB_VERDICTS
			: f->kind == FIELD_OUTCOME ? N_SLO_OUTCOMES
						   : 0;

		for (int i = 0; i < n; i++) {
			const char *name = job_field_text(f, &i);
			int back = -1;

			if (!name) /* none */
				continue;
			assert_true(job_field_named(f, name, &back));
			assert_int_equal(back, i);
		}
		if (n) {
			int wrong = n, back = -1;

			assert_null(job_field_text(f, &wrong));
			wrong = -1;
			assert_null(job_field_text(f, &wrong));
			assert_false(job_field_named(f, "asleep", &back));
			assert_int_equal(back, -1);
		}
	}
	assert_string_equal(job_state_name[JOB_CANCELLED], "cancelled");
	assert_string_equal(slo_outcome_name[SLO_MISSED], "missed");
}

TEST(test_verdicts_are_those_of_the_scheduler)
{
	static const enum sched_verdict all[] = { SCHED_PROMISED, SCHED_BEST_EFFORT, SCHED_REJECTED };

	for (size_t i = 0; i < 3; i++)
		assert_string_equal(job_verdict_name[job_verdict_of(all[i])], sched_verdict_name(all[i]));
	assert_int_equal(job_verdict_of(SCHED_REJECTED), VERDICT_REJECTED);
}

/* ---- the scheduler's decision ---- */

static const struct candidate chosen = {
	.decision = 96,
	.epochs = 7,
	.wait_s = 2.37,
	.wait_upper_s = 3.5,
	.time_s = 11.25,
	.guard_s = 12.5,
	.upper_s = 14.75,
	.model_s = 10.5,
	.accuracy = 0.91,
	.memory_mb = 700,
	.work_s = 9.75,
	.cpu_share = 0.8,
	.disk_share = 0.15,
};

TEST(test_a_promise_is_the_candidate_with_its_wait)
{
	struct job_record r;

	job_record_init(&r);
	record_take_promise(&r, &chosen, 0.02);
	assert_true(r.batch == 96 && r.epochs == 7 && r.lr == 0.02);
	assert_true(r.predicted_s == 2.37 + 11.25 && r.upper_s == 3.5 + 14.75 &&
		    r.predicted_accuracy == 0.91);
	assert_true(r.run_predicted_s == 11.25 && r.run_upper_s == 14.75 && r.guard_s == 12.5 &&
		    r.model_s == 10.5);
	assert_true(r.work_s == 9.75 && r.cpu_share == 0.8 && r.disk_share == 0.15);
}

/* What was promised at arrival stays: people compare with it. */
TEST(test_a_start_changes_the_run_and_not_the_promise)
{
	struct job_record r;

	job_record_init(&r);
	r.predicted_s = 41;
	r.upper_s = 55;
	r.predicted_accuracy = 0.94;
	record_take_candidate(&r, &chosen, NAN);
	assert_true(r.predicted_s == 41 && r.upper_s == 55 && r.predicted_accuracy == 0.94);
	assert_true(r.batch == 96 && r.run_predicted_s == 11.25 && isnan(r.lr));
}

TEST(test_the_candidate_comes_back_from_its_record)
{
	struct job_record r;
	struct candidate c;

	job_record_init(&r);
	record_take_promise(&r, &chosen, 0.02);
	c = record_candidate(&r);
	assert_true(c.decision == 96 && c.epochs == 7 && c.time_s == 11.25 && c.guard_s == 12.5 &&
		    c.upper_s == 14.75);
	assert_true(c.model_s == 10.5 && c.accuracy == 0.91 && c.work_s == 9.75);
	assert_true(c.cpu_share == 0.8 && c.disk_share == 0.15);
	assert_true(isnan(c.memory_mb)); /* it is not kept */
	r.guard_s = NAN; /* a row of a version that had none */
	assert_true(record_candidate(&r).guard_s == 14.75);
}

/* ---- times ---- */

TEST(test_times_follow_from_the_moments)
{
	struct job_record r = plain_job(12);
	struct job_times t = job_times(&r);

	assert_true(isnan(t.wait_s) && isnan(t.run_s) && isnan(t.response_s) && isnan(t.slack_s));
	assert_true(t.deadline_ns == r.submitted_ns + INT64_C(60000000000));
	r.started_ns = r.submitted_ns + 500000000;
	r.ended_ns = r.started_ns + 2500000000;
	t = job_times(&r);
	assert_true(t.wait_s == 0.5 && t.run_s == 2.5 && t.response_s == 3.0 && isnan(t.slack_s));
	r.slo_outcome = SLO_MET;
	assert_true(isnan(job_times(&r).slack_s)); /* it is not done */
	r.state = JOB_DONE;
	assert_true(job_times(&r).slack_s == 57.0);
	r.slo_outcome = SLO_NONE;
	assert_true(isnan(job_times(&r).slack_s));
	r.slo_s = 1e300;
	assert_true(job_times(&r).deadline_ns == 0);
	r.slo_s = NAN;
	assert_true(job_times(&r).deadline_ns == 0);
}

/* ---- the job object, there and back ---- */

static struct json *written(const struct job_record *r, const struct job_live *live)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *v = NULL;
	struct err err = { 0 };

	json_begin(&w, &text, false);
	job_json(&w, r, live);
	if (json_parse("job", strbuf_text(&text), text.len, &v, &err))
		fail_msg("%s: %s", err.text, strbuf_text(&text));
	strbuf_release(&text);
	return v;
}

static void assert_same_field(const struct job_field *f, const void *a, const void *b)
{
	bool same = true;

	switch (f->kind) {
	case FIELD_ID: same = *(const uint64_t *)a == *(const uint64_t *)b; break;
	case FIELD_TEXT:
		same = *(const char *const *)a ? !strcmp(*(const char *const *)a, *(const char *const *)b)
					       : !*(const char *const *)b;
		break;
	case FIELD_FIXED:
	case FIELD_NUMBER:
		same = *(const double *)a == *(const double *)b ||
		       (isnan(*(const double *)a) && isnan(*(const double *)b));
		break;
	case FIELD_MOMENT: same = *(const int64_t *)a / 1000 == *(const int64_t *)b / 1000; break;
	case FIELD_BOOL:
	case FIELD_GROUP: same = *(const bool *)a == *(const bool *)b; break;
	case FIELD_JSON:
	case FIELD_GROUP_END: break;
	default: same = *(const int *)a == *(const int *)b; break;
	}
	if (!same)
		fail_msg("%s came back as another", f->key);
}

static void assert_comes_back(const struct job_record *r, const struct job_live *live)
{
	struct json *v = written(r, live);
	struct job_record back;
	struct job_times times, before = job_times(r);
	struct job_live live_back;
	const void *const a[] = { [IN_RECORD] = r, [IN_TIMES] = &before, [IN_LIVE] = live };
	const void *const b[] = { [IN_RECORD] = &back, [IN_TIMES] = &times, [IN_LIVE] = &live_back };

	assert_true(job_json_read(v, &back, &times, &live_back));
	for (const struct job_field *f = job_field; f < job_field + n_job_fields; f++) {
		if (f->key)
			assert_same_field(f, (const char *)a[f->home] + f->offset,
					  (const char *)b[f->home] + f->offset);
	}
	json_free(v);
}

TEST(test_a_job_object_reads_back_as_it_was_written)
{
	struct job_record r = plain_job(12);
	struct job_live live = {
		.has_estimate = true,
		.start_s = 1.5,
		.end_s = 20.25,
		.end_low_s = 17,
		.end_high_s = 24.5,
		.late = true,
		.has_waiting = true,
		.waiting_code = "slots",
		.waiting_message = "2 of 4 cpus are free",
		.has_progress = true,
		.epoch = 2,
		.epochs = 4,
		.accuracy = 0.75,
		.final_accuracy = 0.8,
		.pid = 4711,
	};

	assert_comes_back(&r, &live);
	r.state = JOB_DONE;
	r.verdict = VERDICT_BEST_EFFORT;
	r.slo_outcome = SLO_MISSED;
	r.started_ns = r.submitted_ns + 2000000000;
	r.ended_ns = r.started_ns + 3000000000;
	r.best_effort = r.may_stop = true;
	r.max_memory_mb = 512;
	r.epochs = 6;
	r.stopped_epoch = 4;
	r.accuracy = 0.5;
	r.exit_code = 3;
	r.exit_signal = 9;
	r.max_rss_mb = 312.5;
	r.priority = -3;
	r.tag = "a \"tag\"";
	r.reason = "because";
	assert_comes_back(&r, &live);
	live = (struct job_live){ .start_s = NAN,
				  .end_s = NAN,
				  .end_low_s = NAN,
				  .end_high_s = NAN,
				  .epoch = NAN,
				  .epochs = NAN,
				  .final_accuracy = NAN,
				  .accuracy = NAN };
	assert_comes_back(&r, &live);
}

TEST(test_what_is_not_a_job_object_is_refused)
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
	struct job_record r;
	struct job_times t;
	struct job_live l;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct json *v = NULL;

		assert_int_equal(json_parse("test", bad[i], strlen(bad[i]), &v, NULL), 0);
		if (job_json_read(v, &r, &t, &l))
			fail_msg("taken for a job: %s", bad[i]);
		json_free(v);
	}
	assert_false(job_json_read(NULL, &r, &t, &l));
}

TEST(test_members_of_a_wrong_type_or_range_are_not_known)
{
	static const char text[] =
		"{\"job\":\"1\",\"state\":\"done\",\"type\":1,\"estimate\":3,\"waiting\":[],\"progress\":"
		"\"x\","
		"\"exit_code\":\"0\",\"submitted_at\":5,\"started_at\":\"yesterday\",\"slo_s\":\"60\","
		"\"reason\":{},"
		"\"cpus\":-1,\"uid\":4294967296,\"signal\":0.5,\"priority\":1e300,\"verdict\":\"perhaps\","
		"\"slo_outcome\":7,\"may_stop\":1,\"pid\":1e12}";
	struct json *v = NULL;
	struct job_record r;
	struct job_times t;
	struct job_live l;

	assert_int_equal(json_parse("test", text, strlen(text), &v, NULL), 0);
	assert_true(job_json_read(v, &r, &t, &l));
	assert_true(r.id == 1 && r.state == JOB_DONE);
	assert_null(r.type);
	assert_null(r.reason);
	assert_true(isnan(r.slo_s) && isnan(t.wait_s) && isnan(l.end_s) && isnan(l.epoch));
	assert_false(l.has_estimate || l.has_waiting || l.has_progress || r.may_stop);
	assert_true(r.submitted_ns == 0 && r.started_ns == 0 && t.deadline_ns == 0);
	assert_int_equal(r.exit_code, -1);
	assert_int_equal(r.exit_signal, 0);
	assert_int_equal(r.priority, 0);
	assert_int_equal(l.pid, 0);
	assert_true(r.cpus == 0 && r.uid == (uid_t)-1);
	assert_int_equal(r.verdict, VERDICT_NONE);
	assert_int_equal(r.slo_outcome, SLO_NONE);
	json_free(v);
}
