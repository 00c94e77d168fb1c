/* The optimum: the exact search against all schedules there are, the bound against the exact search, and
 * what a comparison makes of both. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "sim/compare/compare.h"
#include "sim/replay/optimum.h"
#include "tests/support/test.h"
#include "tests/unit/sim/replay_bed.h"

#define WORLD "fluid:configs/worlds/bigdl.json"
#define KINDS "cpus=1|2|4|8,slo=normal:300:100,samples=60000,epochs=10"
#define JOBS "work=1000,cores=48," KINDS

struct instance {
	struct trace *trace;
	struct world *world;
	struct sim_policy policy;
	struct replay_params p;
	struct optimum_jobs jobs;
};

static void open_instance(struct instance *x, const char *trace, uint64_t seed, uint32_t slots)
{
	struct trace_source source = { .spec = trace, .seed = seed };
	struct cluster machine = { .cores = 48.0, .slots = slots, .nodes = 3, .memory_mb = INFINITY };
	struct world_params w = { .spec = WORLD, .given = &machine };
	struct err err = { 0 };

	if (trace_open(&source, &x->trace, &err))
		fail_msg("%s", err.text);
	w.trace = x->trace;
	if (world_open(&w, &x->world, &err) || sim_policy_parse("optimum", &x->policy, &err))
		fail_msg("%s", err.text);
	x->p = (struct replay_params){
		.trace = x->trace, .world = x->world, .policy = &x->policy, .seed = seed
	};
	if (optimum_jobs_make(&x->p, &x->jobs, &err))
		fail_msg("%s", err.text);
}

static void close_instance(struct instance *x)
{
	optimum_jobs_release(&x->jobs);
	world_free(x->world);
	trace_free(x->trace);
}

/* ---- all schedules ---- */

struct chosen { /* of one job */
	int option; /* -1: away */
	int events; /* that it lets pass after its arrival */
};

/* The value of a schedule; -1: it cannot be, or a job would run in vain. */
static double value_of(const struct instance *x, const struct chosen *chosen)
{
	uint32_t used = 0, slots = world_cluster(x->world)->slots;
	size_t arrived = 0, n = x->jobs.n, left = 0;
	int passed[OPTIMUM_EXACT_JOBS] = { 0 };
	bool done[OPTIMUM_EXACT_JOBS] = { false };
	struct world_run *run;
	double sum = 0.0;

	assert_int_equal(world_run_new(x->world, 0, &run, NULL), 0);
	for (size_t i = 0; i < n; i++)
		left += chosen[i].option >= 0;
	while (left && sum >= 0.0) {
		int64_t at_ns = world_run_next(run);
		struct world_end e;

		if (arrived < x->trace->n_jobs && x->trace->job[arrived].arrival_ns < at_ns)
			at_ns = x->trace->job[arrived].arrival_ns;
		if (at_ns == WORLD_NEVER)
			sum = -1.0; /* it waits for an event that does not come */
		while (sum >= 0.0 && world_run_next(run) == at_ns && world_run_end(run, &e))
			for (size_t i = 0; i < n; i++)
				if (x->jobs.job[i].job == e.id - 1) {
					used -= x->jobs.job[i].cpus;
					left--;
					sum = e.at_ns > x->jobs.job[i].deadline_ns ? -1.0 : sum + e.accuracy;
				}
		while (arrived < x->trace->n_jobs && x->trace->job[arrived].arrival_ns == at_ns)
			arrived++;
		for (size_t i = 0; i < n && sum >= 0.0; i++) {
			const struct optimum_job *j = &x->jobs.job[i];
			struct world_job w;

			if (chosen[i].option < 0 || done[i] || j->job >= arrived ||
			    passed[i]++ < chosen[i].events)
				continue;
			w = optimum_world_job(&x->p, j->job, j->option[chosen[i].option].batch, NAN);
			done[i] = true;
			used += j->cpus;
			assert_int_equal(world_run_start(run, at_ns, &w, NULL), 0);
		}
		if (used > slots)
			sum = -1.0;
	}
	world_run_free(run);
	return sum;
}

static double best_of_all(const struct instance *x)
{
	struct chosen chosen[OPTIMUM_EXACT_JOBS];
	int most = 2 * (int)x->trace->n_jobs;
	double best = 0.0;
	size_t at = 0;

	for (size_t i = 0; i < x->jobs.n; i++)
		chosen[i] = (struct chosen){ -1, 0 };
	while (at < x->jobs.n) { /* counts like an odometer */
		best = fmax(best, value_of(x, chosen));
		for (at = 0; at < x->jobs.n; at++) {
			if (chosen[at].option >= 0 && ++chosen[at].events < most)
				break;
			chosen[at].events = 0;
			if (++chosen[at].option < (int)x->jobs.job[at].n_options)
				break;
			chosen[at].option = -1;
		}
	}
	return best;
}

TEST(test_search_finds_the_best_of_all_schedules)
{
	static const struct {
		const char *trace;
		uint32_t slots;
		int n;
	} scene[] = {
		{ "gen:poisson,jobs=3,load=0.9," JOBS, 48, 8 },
		{ "gen:poisson,jobs=3,load=4," JOBS, 8, 8 }, /* few slots: waiting is worth something */
		{ "gen:bursty,jobs=4,load=6,batches=128|512," JOBS, 12, 6 },
	};
	int away = 0, waits = 0;

	for (size_t k = 0; k < sizeof scene / sizeof *scene; k++)
		for (int seed = 1; seed <= scene[k].n; seed++) {
			struct optimum_plan plan;
			struct instance x;

			open_instance(&x, scene[k].trace, (uint64_t)seed, scene[k].slots);
			assert_int_equal(optimum_exact(&x.jobs, OPTIMUM_MAX_STEPS, &plan, NULL), 0);
			assert_true(plan.exact && x.jobs.monotone);
			assert_float_equal(plan.value, best_of_all(&x), 1e-9);
			for (size_t i = 0; i < x.jobs.n; i++) {
				away += plan.start[i].option < 0;
				waits += plan.start[i].option >= 0 &&
					 plan.start[i].at_ns > x.jobs.job[i].arrival_ns;
			}
			free(plan.start);
			close_instance(&x);
		}
	assert_true(away > 0 && waits > 0); /* else the instances would be too easy to prove anything */
}

TEST(test_search_without_the_short_cut_of_monotone_laws_finds_the_same)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct optimum_plan with, without;
		struct instance x;

		open_instance(&x, "gen:poisson,jobs=4,load=3," JOBS, seed, 12);
		assert_int_equal(optimum_exact(&x.jobs, OPTIMUM_MAX_STEPS, &with, NULL), 0);
		x.jobs.monotone = false;
		assert_int_equal(optimum_exact(&x.jobs, OPTIMUM_MAX_STEPS, &without, NULL), 0);
		assert_float_equal(with.value, without.value, 1e-12);
		assert_true(with.steps <= without.steps);
		free(with.start);
		free(without.start);
		close_instance(&x);
	}
}

TEST(test_search_says_that_its_steps_did_not_suffice)
{
	struct optimum_plan plan;
	struct instance x;

	open_instance(&x, "gen:poisson,jobs=8,load=0.9," JOBS, 1, 48);
	assert_int_equal(optimum_exact(&x.jobs, 10, &plan, NULL), 0);
	assert_false(plan.exact);
	free(plan.start);
	close_instance(&x);
}

/* ---- the bound ---- */

TEST(test_no_schedule_exceeds_the_bound)
{
	double nearest = 0.0;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct optimum_plan plan;
		struct instance x;
		double bound;

		open_instance(&x,
			      seed % 2 ? "gen:poisson,jobs=6,load=5," JOBS : "gen:bursty,jobs=6,load=1," JOBS,
			      seed, seed % 3 ? 48 : 10);
		assert_int_equal(optimum_exact(&x.jobs, OPTIMUM_MAX_STEPS, &plan, NULL), 0);
		assert_int_equal(optimum_bound(&x.jobs, &bound, NULL), 0);
		assert_true(plan.exact && bound >= plan.value);
		nearest = fmax(nearest, plan.value / bound);
		free(plan.start);
		close_instance(&x);
	}
	assert_true(nearest > 0.98);
}

/* Two hundred equal jobs at once with the same deadline: the machine hands out one second a second, and
 * each takes share_s of them, so that deadline / share_s of them end in time. */
TEST(test_bound_of_a_full_machine_is_its_capacity)
{
	struct instance x;
	double bound, capacity, mean = 0.0;

	open_instance(&x,
		      "gen:poisson,jobs=200,gap=1e-6,cpus=4,network=lenet5,batches=512,slo=300,samples="
		      "60000,epochs=10",
		      1, 48);
	assert_int_equal(optimum_bound(&x.jobs, &bound, NULL), 0);
	capacity = 300.0 / x.jobs.job[0].option[0].share_s;
	assert_true(capacity < 100.0);
	for (size_t i = 0; i < x.jobs.n; i++)
		mean += x.jobs.job[i].option[0].accuracy / (double)x.jobs.n;
	/* the most accurate of many are a little better than the mean */
	assert_true(bound > 0.999 * capacity * mean && bound < 1.02 * capacity * mean);
	close_instance(&x);
}

TEST(test_bound_of_an_idle_machine_is_the_best_option_of_every_job)
{
	struct instance x;
	double bound, sum = 0.0;

	open_instance(&x, "gen:poisson,jobs=50,gap=100000," KINDS, 3, 48);
	assert_int_equal(optimum_bound(&x.jobs, &bound, NULL), 0);
	for (size_t i = 0; i < x.jobs.n; i++)
		sum += x.jobs.job[i].option[0].accuracy;
	assert_float_equal(bound, sum, 1e-6);
	close_instance(&x);
}

/* ---- in a comparison ---- */

static struct compare_result *compare(const char *trace, const char *world, const char *policies,
				      size_t replications, struct err *err)
{
	struct sim_policy policy[SIM_MAX_POLICIES];
	struct compare_params p = {
		.trace = { .spec = trace, .seed = 1 },
		.world = { .spec = world },
		.policy = policy,
		.replications = replications,
		.seed = 1,
		.settings = { .confidence = 0.9, .adapt = true },
		.level = 0.95,
	};
	struct compare_result *r = NULL;

	assert_int_equal(sim_policies_parse(policies, policy, SIM_MAX_POLICIES, &p.n_policies, NULL), 0);
	assert_int_equal(pool_new(0, &p.pool, NULL), 0);
	compare_run(&p, &r, err);
	pool_free(p.pool);
	return r;
}

TEST(test_comparison_says_how_much_of_the_optimum_a_policy_gets)
{
	struct err err = { 0 };
	struct compare_result *r = compare("gen:bursty,jobs=6,load=1," JOBS, WORLD,
					   "fixed:512,greedy-oracle,naive,optimum", 12, &err);

	assert_non_null(r);
	for (size_t k = 0; k < r->replications; k++) {
		const double *best = &r->policy[3].value[k * METRICS];

		assert_false(r->policy[3].run[k].is_bound);
		assert_float_equal(best[METRIC_ATTAINMENT], 1.0, 0.0);
		assert_float_equal(best[METRIC_OF_OPTIMUM], 1.0, 0.0);
		for (size_t i = 0; i < 3; i++) {
			const double *v = &r->policy[i].value[k * METRICS];

			assert_true(v[METRIC_OF_OPTIMUM] <= 1.0 + 1e-12);
			assert_float_equal(v[METRIC_OF_OPTIMUM],
					   v[METRIC_ACCURACY_ZERO] / best[METRIC_ACCURACY_ZERO], 1e-12);
		}
	}
	assert_true(r->policy[2].metric[METRIC_OF_OPTIMUM].mean < 0.95);
	compare_free(r);
}

TEST(test_optimum_of_many_jobs_is_a_bound_and_plays_nothing)
{
	struct err err = { 0 };
	struct compare_result *r =
		compare("gen:poisson,jobs=60,load=0.9," JOBS, WORLD, "fixed:512,optimum", 2, &err);

	assert_non_null(r);
	for (size_t k = 0; k < r->replications; k++) {
		const double *v = &r->policy[1].value[k * METRICS];

		assert_true(v[METRIC_ACCURACY_ZERO] >=
			    r->policy[0].value[k * METRICS + METRIC_ACCURACY_ZERO]);
		assert_true(v[METRIC_JOBS] == 60.0 && v[METRIC_ACCURACY_ZERO] <= 1.0);
		assert_true(isnan(v[METRIC_MET]) && isnan(v[METRIC_RESPONSE_MEAN]));
		assert_true(r->policy[0].value[k * METRICS + METRIC_OF_OPTIMUM] < 1.0);
	}
	compare_free(r);
}

TEST(test_world_without_a_law_of_sharing_has_no_optimum)
{
	struct err err = { 0 };

	assert_null(compare("gen:poisson,jobs=3,gap=100," KINDS, "queueing:configs/worlds/bigdl.json",
			    "fixed:512,optimum", 1, &err));
	assert_non_null(strstr(err.text, "no law by which jobs share"));
}

TEST(test_optimum_survives_every_failing_allocation)
{
	struct optimum_plan plan = { 0 };
	struct instance x;
	int status = -1;

	open_instance(&x, "gen:poisson,jobs=3,load=2," JOBS, 1, 16);
	for (unsigned long k = 1; status; k++) {
		struct optimum_jobs jobs = { 0 };
		double bound;

		assert_true(k < 10000);
		mem_fail_at(k, false);
		status = optimum_jobs_make(&x.p, &jobs, NULL);
		if (!status)
			status = optimum_exact(&jobs, OPTIMUM_MAX_STEPS, &plan, NULL);
		if (!status) {
			free(plan.start);
			status = optimum_bound(&jobs, &bound, NULL);
		}
		if (!mem_failed())
			assert_int_equal(status, 0);
		mem_fail_at(0, false);
		optimum_jobs_release(&jobs);
	}
	close_instance(&x);
}
