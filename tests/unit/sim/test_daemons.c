/* Several daemons on one cluster: whose nodes are whose, that no slot is handed out twice, and what becomes
 * of promises. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "sim/replay/daemons.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/sim/replay_bed.h"

#define DAEMONS 2
#define NODES 4

static struct replay_bed bed;

static int open_bed(void **state)
{
	(void)state;
	replay_bed_open(&bed, "gen:poisson,jobs=600,rate=9,cpus=1|2,slo=lognormal:3:0.6,tenants=a:1|b:1|c:1",
			"fluid", "cores=8,slots=16,nodes=4,place=promise", "postrider,postrider:chance=0.3");
	return 0;
}

static int close_bed(void **state)
{
	(void)state;
	replay_bed_close(&bed);
	return 0;
}

TEST_GROUP(open_bed, close_bed);

static struct replay_result run(const struct replay_bed *b, size_t policy, uint32_t daemons,
				enum daemons_share share)
{
	struct replay_params p = {
		.trace = b->trace,
		.world = b->world,
		.policy = &b->policy[policy],
		.model = sim_models_of(b->models, &b->policy[policy]),
		.seed = 2,
		.settings = { .confidence = 0.9, .adapt = true, .daemons = daemons, .share = share }
	};
	struct replay_result r;
	struct err err = { 0 };

	if (replay_run(&p, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

TEST(test_no_slot_is_handed_out_twice)
{
	static const enum daemons_share share[] = { DAEMONS_PARTS, DAEMONS_ASKED, DAEMONS_SHARED };
	struct replay_bed one = { 0 };
	struct replay_result r;

	for (size_t p = 0; p < 2; p++) {
		for (int i = 0; i < 3; i++) {
			r = run(&bed, p, DAEMONS, share[i]);
			replay_bed_check_slots(&bed, &r, NODES);
			replay_result_release(&r);
		}
	}
	/* and on one machine that all jobs share */
	replay_bed_beside(&one, "gen:poisson,jobs=200,rate=1,cpus=1|2,slo=lognormal:4:0.6", "fluid",
			  "cores=2,slots=4", &bed);
	r = run(&one, 0, 3, DAEMONS_SHARED);
	replay_bed_check_slots(&one, &r, 1);
	replay_result_release(&r);
	replay_bed_close(&one);
}

/* Tenants a and c have the first two nodes, b the others; where others are asked, some of their jobs are
 * there. */
TEST(test_a_part_has_its_own_nodes)
{
	for (int asked = 0; asked < 2; asked++) {
		struct replay_result r = run(&bed, 0, DAEMONS, asked ? DAEMONS_ASKED : DAEMONS_PARTS);
		size_t away = 0, n = 0;

		for (size_t i = 0; i < r.n; i++) {
			const struct outcome *o = &r.outcome[i];

			if (o->state == OUTCOME_REJECTED)
				continue;
			n++;
			away += o->node / (NODES / DAEMONS) != bed.trace->job[i].tenant % DAEMONS;
		}
		assert_true(n > 300);
		assert_int_equal(away > 0, asked);
		replay_result_release(&r);
	}
}

/* One daemon is one daemon, however it shares. */
TEST(test_one_daemon_shares_with_nobody)
{
	struct replay_result a = run(&bed, 0, 0, DAEMONS_PARTS), b = run(&bed, 0, 1, DAEMONS_SHARED);

	for (size_t i = 0; i < a.n; i++)
		assert_true(a.outcome[i].end_ns == b.outcome[i].end_ns &&
			    a.outcome[i].state == b.outcome[i].state &&
			    a.outcome[i].node == b.outcome[i].node);
	replay_result_release(&a);
	replay_result_release(&b);
}

/* Parts keep their promises as one daemon does. Daemons that share nodes do not: neither knows what the other
 * has promised. */
TEST(test_promises_hold_in_parts_and_break_where_nodes_are_shared)
{
	double kept[3];

	for (int i = 0; i < 3; i++) {
		struct replay_result r =
			run(&bed, 0, i ? DAEMONS : 1, i == 2 ? DAEMONS_SHARED : DAEMONS_PARTS);
		size_t promised = 0, met = 0;

		for (size_t k = 0; k < r.n; k++) {
			promised += r.outcome[k].promised;
			met += r.outcome[k].promised && r.outcome[k].state == OUTCOME_MET;
		}
		assert_true(promised > 300);
		kept[i] = (double)met / (double)promised;
		replay_result_release(&r);
	}
	print_message("kept: one %.4f, two parts %.4f, two that share %.4f\n", kept[0], kept[1], kept[2]);
	assert_true(kept[0] > 0.97 && kept[1] > 0.97);
	assert_true(kept[2] < kept[1] - 0.02);
}

TEST(test_too_many_daemons_are_refused)
{
	struct daemons_params p = { .nodes = 4, .daemons = 5 };
	struct daemons *d = NULL;
	struct err err = { 0 };

	assert_int_equal(daemons_new(&p, &d, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "5 daemons on 4 nodes"));
	p = (struct daemons_params){ .nodes = 65536, .daemons = 64, .share = DAEMONS_SHARED };
	assert_int_equal(daemons_new(&p, &d, &err), -ERR_ARG);
	p.daemons = DAEMONS_MOST + 1;
	assert_int_equal(daemons_new(&p, &d, &err), -ERR_ARG);
	assert_null(d);
}

/* Two daemons share one machine, and take these jobs in turns. */
static struct replay_result run_jobs(struct replay_bed *b, const char *text, const char *cluster)
{
	const char *path = support_path(support_temp_dir(), "turns.csv");

	assert_int_equal(io_write_file(path, text, strlen(text), NULL), 0);
	replay_bed_beside(b, path, "fluid", cluster, &bed);
	return run(b, 0, DAEMONS, DAEMONS_SHARED);
}

TEST(test_a_daemon_is_told_that_the_job_of_another_has_gone)
{
	struct replay_bed b = { 0 };
	struct replay_result r =
		run_jobs(&b, "arrival_s,network,cpus\n0,lenet5,2\n0.1,lenet5,2\n", "cores=2,slots=2");

	assert_true(r.outcome[0].end_ns > 500000000 && r.outcome[1].start_ns == r.outcome[0].end_ns);
	replay_result_release(&r);
	replay_bed_close(&b);
}

/* The first has 2 cpus in use and the second 1, so there is room for one more of the first. */
TEST(test_a_daemon_does_not_count_its_own_jobs_twice)
{
	struct replay_bed b = { 0 };
	struct replay_result r = run_jobs(
		&b, "arrival_s,network,cpus\n0,lenet5,2\n0.1,lenet5,1\n0.2,lenet5,1\n", "cores=2,slots=4");

	for (size_t i = 0; i < 3; i++)
		assert_true(r.outcome[i].start_ns == b.trace->job[i].arrival_ns);
	assert_true(r.outcome[0].end_ns > r.outcome[2].start_ns &&
		    r.outcome[1].end_ns > r.outcome[2].start_ns);
	replay_result_release(&r);
	replay_bed_close(&b);
}
