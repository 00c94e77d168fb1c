/* scheduler/daemon/metrics: the text format, and what counts as what, worked out by hand. */
#include <math.h>
#include <string.h>

#include "scheduler/daemon/metrics/exposition.h"
#include "scheduler/daemon/metrics/metrics.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/local_daemon.h"

TEST(test_a_histogram_is_told_as_running_sums)
{
	static const double bounds[] = { 0.5, 2.0 };
	struct strbuf out = { 0 };
	struct histogram h;

	histogram_init(&h, bounds, 2);
	histogram_add(&h, 0.25);
	histogram_add(&h, 1.0);
	histogram_add(&h, 1.5);
	histogram_add(&h, 64.0);
	exposition_histogram(&out, "x", &h);
	assert_string_equal(strbuf_text(&out), "x_bucket{le=\"0.5\"} 1\nx_bucket{le=\"2\"} 3\n"
					       "x_bucket{le=\"+Inf\"} 4\nx_sum 66.75\nx_count 4\n");
	strbuf_release(&out);
}

TEST(test_a_label_cannot_leave_its_quotes)
{
	struct strbuf out = { 0 };

	exposition_labelled(&out, "x", "name", "a\"} 1\ny\\", 2.0);
	assert_string_equal(strbuf_text(&out), "x{name=\"a\\\"} 1\\ny\\\\\"} 2\n");
	strbuf_release(&out);
}

TEST(test_a_number_that_is_none_has_no_sample)
{
	struct strbuf out = { 0 };

	exposition_sample(&out, "x", "", NAN);
	exposition_labelled(&out, "x", "a", "b", INFINITY);
	assert_string_equal(strbuf_text(&out), "");
	strbuf_release(&out);
}

static struct tally m;

static struct job_record ended(enum job_state state, enum job_verdict verdict, enum slo_outcome outcome,
			       double run_s)
{
	return (struct job_record){
		.type = "digits",
		.state = state,
		.verdict = verdict,
		.slo_outcome = outcome,
		.confidence = 0.9,
		.slo_s = 100.0,
		.submitted_ns = 1000000000,
		.started_ns = 2000000000,
		.ended_ns = 2000000000 + (int64_t)(run_s * 1e9),
		.run_predicted_s = 8.0,
		.run_upper_s = 10.0,
	};
}

TEST(test_ends_count_as_outcome_h_says)
{
	struct job_record kept = ended(JOB_DONE, VERDICT_PROMISED, SLO_MET, 10.0);
	struct job_record over = ended(JOB_DONE, VERDICT_PROMISED, SLO_MISSED, 10.5);
	struct job_record broke = ended(JOB_FAILED, VERDICT_PROMISED, SLO_MISSED, 1.0);
	struct job_record lucky = ended(JOB_DONE, VERDICT_CHANCE, SLO_MET, 5.0);

	tally_init(&m);
	tally_ended(&m, &kept, 0);
	tally_ended(&m, &over, 0);
	tally_ended(&m, &broke, 0);
	tally_ended(&m, &lucky, 0);
	assert_int_equal(m.here.slo[0], 1);
	assert_int_equal(m.here.slo[1], 2);
	assert_int_equal(m.here.chances[0], 1);
	assert_int_equal(m.here.levels.item[0].n, 3); /* a job that failed had no run time to bound */
	assert_int_equal(m.here.levels.item[0].inside, 2);
	assert_int_equal(m.run_h.total, 3);
	assert_true(fabs(m.response_h.sum - 28.5) < 1e-9); /* a second of waiting each */
	assert_int_equal(m.error_ratio_h.total, 3);
	assert_true(fabs(m.error_ratio_h.sum - (2.0 / 10.0 + 2.5 / 10.5 + 3.0 / 5.0)) < 1e-9);
}

TEST(test_a_rejection_has_the_reason_that_all_candidates_share)
{
	static struct decision d;

	tally_init(&m);
	d = (struct decision){ .n_candidates = 2, .chosen = -1, .smallest_slo_s = NAN };
	d.candidate[0].reasons = REASON_MEMORY | REASON_SLO_EXCEEDED;
	d.candidate[1].reasons = REASON_MEMORY;
	tally_verdict(&m, SCHED_REJECTED, &d);
	d.candidate[0].reasons = d.candidate[1].reasons = REASON_PRICE;
	tally_verdict(&m, SCHED_REJECTED, &d);
	d.candidate[0].reasons = REASON_MEMORY;
	d.candidate[1].reasons = REASON_NO_BOUND;
	tally_verdict(&m, SCHED_REJECTED, &d);
	d.smallest_slo_s = 3.0;
	tally_verdict(&m, SCHED_REJECTED, &d);
	tally_verdict(&m, SCHED_PROMISED, &d);
	assert_int_equal(m.rejected[__builtin_ctz(REASON_MEMORY)], 1);
	assert_int_equal(m.rejected[TALLY_CODES - 1], 1);
	assert_int_equal(m.rejected[__builtin_ctz(REASON_SLO_EXCEEDED)], 1);
	assert_int_equal(m.rejected[__builtin_ctz(REASON_PRICE)], 1);
	assert_int_equal(m.verdict[SCHED_REJECTED], 4);
	assert_int_equal(m.verdict[SCHED_PROMISED], 1);
}

/* The numbers of stats and of the metrics come from the same jobs. */
TEST(test_users_without_a_tenant_are_counted_together)
{
	struct strbuf text = { 0 };
	struct local_daemon l;
	struct local_client c;

	local_open(&l);
	l.settings = "\"tenants\":{\"research\":{\"users\":[0]}},";
	local_start(&l);
	client_open(&c, &l);
	assert_true(client_submit(&c, ",\"type\":\"advised\",\"mode\":\"advise\"") > 0);
	metrics_text(l.d, &text);
	assert_false(text.failed);
	assert_non_null(strstr(text.text, "postrider_tenant_queued{tenant=\"\"}"));
	assert_null(strstr(text.text, "uid "));
	client_close(&c);
	local_close(&l);
	strbuf_release(&text);
}
