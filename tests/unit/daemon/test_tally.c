/* scheduler/daemon/tally: what `stats` and the metrics say of ended jobs, worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/strbuf.h"
#include "scheduler/daemon/tally.h"
#include "tests/support/test.h"

static struct tally stats;

static struct job_record ended(enum job_state state, enum slo_outcome outcome, double run_s)
{
	return (struct job_record){
		.type = "digits",
		.state = state,
		.verdict = VERDICT_PROMISED,
		.slo_outcome = outcome,
		.confidence = 0.9,
		.submitted_ns = 1000000000,
		.started_ns = 2000000000,
		.ended_ns = 2000000000 + (int64_t)(run_s * 1e9),
		.upper_s = 99.0, /* of the response: coverage is about run times */
		.run_predicted_s = 8.0,
		.run_upper_s = 10.0,
		.accuracy = 0.5,
	};
}

static const struct json *told(struct json **root)
{
	struct strbuf text = { 0 };
	struct json_writer w;

	json_begin(&w, &text, false);
	json_open(&w, '{');
	tally_sums_json(&stats, &w);
	tally_types_json(&stats, &w);
	json_close(&w, '}');
	assert_int_equal(json_parse("stats", text.text, text.len, root, NULL), 0);
	strbuf_release(&text);
	return *root;
}

TEST(test_tally_counts_promises_coverage_and_errors)
{
	struct job_record row = ended(JOB_DONE, SLO_MET, 10.0); /* just inside the bound */
	const struct json *v, *type, *level;
	struct json *root;

	tally_init(&stats);
	tally_ended(&stats, &row, row.ended_ns);
	row = ended(JOB_DONE, SLO_MISSED, 12.0);
	tally_ended(&stats, &row, row.ended_ns);
	row = ended(JOB_FAILED, SLO_MISSED, 1.0); /* missed its promise, but says nothing of times */
	tally_ended(&stats, &row, row.ended_ns);
	v = told(&root);
	assert_int_equal(json_number(json_get(json_get(v, "slo"), "promised"), 0), 3);
	assert_int_equal(json_number(json_get(json_get(v, "slo"), "met"), 0), 1);
	level = json_at(json_get(v, "coverage"), 0);
	assert_int_equal(json_number(json_get(level, "n"), 0), 2);
	assert_int_equal(json_number(json_get(level, "inside"), 0), 1);
	type = json_at(json_get(v, "types"), 0);
	assert_int_equal(json_number(json_get(type, "n"), 0), 3);
	/* |8 - 10| / 10 = 1/5 and |8 - 12| / 12 = 1/3 */
	assert_true(fabs(json_number(json_get(type, "mape"), 0) - (1.0 / 5.0 + 1.0 / 3.0) / 2.0) < 1e-12);
	assert_true(fabs(json_number(json_get(type, "bias"), 0) - (sqrt(1.25 * 1.5) - 1.0)) < 1e-12);
	json_free(root);
}

TEST(test_tally_says_null_where_nothing_is_known)
{
	struct json *root;

	tally_init(&stats);
	assert_int_equal(json_type(json_get(json_get(told(&root), "slo"), "attainment")), JSON_NULL);
	assert_int_equal(json_type(json_get(json_get(root, "decision"), "p99_us")), JSON_NULL);
	json_free(root);
}

TEST(test_tally_quantiles_are_of_the_latest)
{
	struct json *root;
	const struct json *v;

	tally_init(&stats);
	for (int i = 0; i < TALLY_RING; i++)
		tally_decision(&stats, 1e6); /* all pushed out by what follows */
	for (int i = 0; i < TALLY_RING; i++)
		tally_decision(&stats, i);
	v = json_get(told(&root), "decision");
	assert_int_equal(json_number(json_get(v, "n"), 0), 2 * TALLY_RING);
	assert_true(fabs(json_number(json_get(v, "p99_us"), 0) - 0.99 * TALLY_RING) < 2.0);
	json_free(root);
}

TEST(test_tally_keeps_to_its_room)
{
	char name[16];

	tally_init(&stats);
	for (int i = 0; i < CONFIG_MAX_TYPES + 10; i++) {
		struct job_record row = ended(JOB_DONE, SLO_MET, 1.0);

		snprintf(name, sizeof name, "type%d", i);
		row.type = name;
		row.confidence = 0.01 * (i % 90 + 1);
		tally_ended(&stats, &row, row.ended_ns);
	}
	assert_int_equal(stats.ever.n_types, CONFIG_MAX_TYPES);
	assert_int_equal(stats.ever.levels.n, TALLY_LEVELS);
}

/* Counters of a monitoring system begin at 0 with every start, and what `stats` says goes on. */
TEST(test_a_restart_counts_the_jobs_before_it_for_stats_alone)
{
	struct job_record row = ended(JOB_DONE, SLO_MET, 10.0);

	tally_init(&stats);
	tally_ended(&stats, &row, row.ended_ns);
	tally_begins(&stats);
	row.slo_outcome = SLO_MISSED;
	tally_ended(&stats, &row, row.ended_ns);
	assert_int_equal(stats.ever.slo[0] + stats.ever.slo[1], 2);
	assert_int_equal(stats.here.slo[0] + stats.here.slo[1], 1);
	assert_int_equal(stats.ever.levels.item[0].n, 2);
	assert_int_equal(stats.here.type[0].bounded, 1);
	assert_int_equal(stats.run_h.total, 1);
}

TEST(test_a_job_cancelled_by_request_is_no_outcome)
{
	struct job_record row = ended(JOB_CANCELLED, SLO_NONE, 1.0), given_up = row;

	tally_init(&stats);
	tally_ended(&stats, &row, row.ended_ns);
	assert_int_equal(stats.ever.n_types, 0);
	assert_int_equal(stats.here.ended[JOB_CANCELLED], 1);
	given_up.verdict = VERDICT_CHANCE;
	given_up.slo_outcome = SLO_MISSED;
	tally_ended(&stats, &given_up, row.ended_ns);
	assert_int_equal(stats.ever.type[0].ended, 1);
	assert_int_equal(stats.ever.chances[1], 1);
}
