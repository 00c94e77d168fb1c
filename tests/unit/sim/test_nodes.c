/* Jobs that stay on one node of a cluster: what nodes share and what they do not, and where a job goes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "sim/replay/placement.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/sim/replay_bed.h"

#define BUSY "gen:poisson,jobs=400,rate=4,cpus=1|2|4,network=lenet5|simplenet,slo=lognormal:5:0.6"

/* Its policies and models serve all tests: nodes of 2 cores, as the built-in world has. */
static struct replay_bed bed;
enum { POSTRIDER, CHANCE, GREEDY, FIXED, NAIVE };

static int open_bed(void **state)
{
	(void)state;
	replay_bed_open(&bed, BUSY, "fluid", "cores=8,slots=16,nodes=4,place=promise",
			"postrider,postrider:chance=0.3,greedy,fixed:128,naive");
	return 0;
}

static int close_bed(void **state)
{
	(void)state;
	replay_bed_close(&bed);
	return 0;
}

TEST_GROUP(open_bed, close_bed);

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void same_outcomes(const struct replay_result *a, const struct replay_result *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		const struct outcome *x = &a->outcome[i], *y = &b->outcome[i];

		assert_true(x->state == y->state && x->promised == y->promised &&
			    x->start_ns == y->start_ns && x->end_ns == y->end_ns &&
			    same(x->batch, y->batch) && same(x->accuracy, y->accuracy) &&
			    same(x->promised_s, y->promised_s) &&
			    same(x->promised_upper_s, y->promised_upper_s));
	}
	assert_true(a->busy_s == b->busy_s && a->events == b->events && a->end_s == b->end_s);
}

TEST(test_one_node_is_the_machine_that_all_share)
{
	static const char *const place[] = { "cores=2,slots=6", "cores=2,slots=6,nodes=1,place=promise",
					     "cores=2,slots=6,nodes=1,place=least-loaded" };
	struct replay_result first = { 0 };

	for (int i = 0; i < 3; i++) {
		struct replay_bed b = { 0 };
		struct replay_result r;

		replay_bed_beside(&b, BUSY, "fluid", place[i], &bed);
		r = replay_bed_run(&b, CHANCE, 2);
		if (i) {
			same_outcomes(&first, &r);
			replay_result_release(&r);
		} else {
			first = r;
		}
		replay_bed_close(&b);
	}
	replay_result_release(&first);
}

/* ---- capacity ---- */

/* Under all policies that place jobs, jobs by chance (which are stopped) among them. */
TEST(test_no_node_has_more_jobs_than_slots)
{
	size_t promised = 0, kept = 0;

	for (size_t p = 0; p < bed.n_policies; p++) {
		struct replay_result r = replay_bed_run(&bed, p, 2);

		assert_int_equal(replay_bed_check_slots(&bed, &r, 4), 4);
		for (size_t i = 0; p <= CHANCE && i < r.n; i++) {
			promised += r.outcome[i].promised;
			kept += r.outcome[i].promised && r.outcome[i].state == OUTCOME_MET;
		}
		replay_result_release(&r);
	}
	print_message("%zu of %zu promises kept\n", kept, promised);
	assert_true(promised > 400 && kept > promised * 95 / 100);
}

/* ---- what nodes do not share ---- */

/* The end of the last of two equal jobs that come together, on this machine. */
static double last_end_s(const char *world, const char *cluster)
{
	const char *path = support_path(support_temp_dir(), "two.csv");
	static const char text[] = "arrival_s,network,cpus\n0,lenet5,2\n0,lenet5,2\n";
	struct replay_bed b = { 0 };
	struct replay_result r;
	double end_s;

	assert_int_equal(io_write_file(path, text, strlen(text), NULL), 0);
	replay_bed_beside(&b, path, world, cluster, &bed);
	r = replay_bed_run(&b, FIXED, 1);
	end_s = 1e-9 * (double)(r.outcome[0].end_ns > r.outcome[1].end_ns ? r.outcome[0].end_ns
									  : r.outcome[1].end_ns);
	assert_true(world_whole(b.world)->place == PLACE_SPREAD || r.outcome[0].node != r.outcome[1].node);
	replay_result_release(&r);
	replay_bed_close(&b);
	return end_s;
}

/* Two jobs of two processes on two cores share them, and take about twice as long; on two nodes of two cores
 * each takes as long as alone, to the bit. In the world of means; in the other one up to chance. */
TEST(test_jobs_on_two_nodes_do_not_slow_each_other)
{
	double alone = last_end_s("fluid", "cores=4,slots=4,nodes=2,place=least-loaded");
	double shared = last_end_s("fluid", "cores=2,slots=4");
	double queueing = last_end_s("queueing", "cores=4,slots=4,nodes=2,place=promise");

	print_message("on two nodes %.4f s, on one %.4f s; iteration by iteration %.4f s\n", alone, shared,
		      queueing);
	assert_true(shared > 1.6 * alone && shared < 2.2 * alone);
	assert_true(fabs(queueing / alone - 1.0) < 0.05);
}

/* ---- where a job goes ---- */

TEST(test_the_least_loaded_nodes_come_first)
{
	struct placement p;
	uint32_t node[PLACEMENT_MOST];

	assert_int_equal(placement_init(&p, 5), 0);
	for (uint32_t i = 0; i < 5; i++)
		placement_change(&p, i, i == 3 ? 0 : 4 - (int64_t)i % 2);
	/* loads 4 3 4 0 4 */
	assert_int_equal(placement_least(&p, node, 4), 4);
	assert_true(node[0] == 3 && node[1] == 1 && node[2] == 0 && node[3] == 2);
	placement_change(&p, 3, 7);
	placement_change(&p, 4, -2);
	assert_int_equal(placement_least(&p, node, 2), 2);
	assert_true(node[0] == 4 && node[1] == 1);
	placement_release(&p);
	assert_int_equal(placement_init(&p, 2), 0);
	assert_int_equal(placement_least(&p, node, PLACEMENT_MOST), 2);
	placement_release(&p);
}

static size_t met(const struct replay_result *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->outcome[i].state == OUTCOME_MET;
	return n;
}

/* Where several nodes are asked, more jobs are promised their limit than where one is. */
TEST(test_asking_for_promises_meets_more_objectives)
{
	size_t n[2];

	for (int i = 0; i < 2; i++) {
		struct replay_bed b = { 0 };
		struct replay_result r;

		replay_bed_beside(&b, "gen:poisson,jobs=800,rate=7,cpus=1|2|4,slo=lognormal:3:0.6", "fluid",
				  i ? "cores=8,slots=16,nodes=4,place=promise"
				    : "cores=8,slots=16,nodes=4,place=least-loaded",
				  &bed);
		r = replay_bed_run(&b, GREEDY, 1);
		n[i] = met(&r);
		replay_result_release(&r);
		replay_bed_close(&b);
	}
	print_message("met on the least loaded node %zu, where it is promised %zu\n", n[0], n[1]);
	assert_true(n[1] > n[0]);
}

/* ---- what is refused ---- */

TEST(test_a_job_wider_than_a_node_is_rejected)
{
	struct replay_bed b = { 0 };
	struct replay_result r;

	replay_bed_beside(&b, "gen:poisson,jobs=40,cpus=2|4,slo=30", "fluid",
			  "cores=8,slots=12,nodes=4,place=promise", &bed);
	r = replay_bed_run(&b, POSTRIDER, 1);
	for (size_t i = 0; i < r.n; i++)
		assert_int_equal(r.outcome[i].state == OUTCOME_REJECTED,
				 b.trace->kind[b.trace->job[i].kind].cpus == 4);
	replay_result_release(&r);
	replay_bed_close(&b);
}

TEST(test_policies_that_know_one_machine_are_refused)
{
	static const char *const name[] = { "greedy-oracle", "optimum", "fifo" };

	for (int i = 0; i < 3; i++) {
		struct replay_result r;
		struct err err = { 0 };
		struct sim_policy policy;
		struct replay_params p = { .trace = bed.trace, .world = bed.world, .policy = &policy };

		assert_int_equal(sim_policy_parse(name[i], &policy, NULL), 0);
		assert_int_equal(replay_run(&p, &r, &err), -ERR_ARG);
		assert_non_null(strstr(err.text, "each job stays on one of 4 nodes"));
	}
}

TEST(test_a_policy_says_why_it_cannot_run_on_a_cluster)
{
	const struct cluster plain = { .cores = 8, .slots = 16, .nodes = 4, .memory_mb = INFINITY };
	struct cluster parts = plain, devices = plain;
	const struct {
		const struct cluster *cluster;
		uint32_t daemons;
		const char *says; /* NULL: it can */
	} c[] = { { &plain, 0, NULL },
		  { &plain, 1, NULL },
		  { &parts, 0, "each job stays on one of 4 nodes" },
		  { &plain, 2, "2 daemons share this one" },
		  { &devices, 0, "knows no gpus" } };
	struct sim_policy oracle, postrider;

	parts.place = PLACE_PROMISE;
	devices.counts_gpus = true;
	assert_int_equal(sim_policy_parse("greedy-oracle", &oracle, NULL), 0);
	assert_int_equal(sim_policy_parse("postrider", &postrider, NULL), 0);
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		const struct replay_settings how = { .daemons = c[i].daemons };
		struct err err = { 0 };

		assert_int_equal(replay_check(&oracle, c[i].cluster, &how, &err), c[i].says ? -ERR_ARG : 0);
		if (c[i].says && !strstr(err.text, c[i].says))
			fail_msg("'%s' does not say '%s'", err.text, c[i].says);
		assert_int_equal(replay_check(&postrider, c[i].cluster, &how, NULL), 0);
	}
}
