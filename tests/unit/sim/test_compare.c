/* Policies side by side on small traces in the fluid world: what must hold whatever the numbers are. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "sim/compare/compare.h"
#include "sim/compare/compare_internal.h"
#include "sim/compare/record.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/sim/record_bed.h"

static const struct cluster machine = { .cores = 4.0, .slots = 8, .nodes = 1, .memory_mb = INFINITY };

struct bed {
	struct sim_policy policy[SIM_MAX_POLICIES];
	struct compare_params p;
};

/* Policies without a model need no training: the tests of everything else are quick with them. */
static void bed_init(struct bed *b, const char *policies, size_t replications)
{
	struct err err = { 0 };

	*b = (struct bed){ 0 };
	b->p = (struct compare_params){
		.trace = { .spec = "gen:poisson,jobs=40,rate=0.05,cpus=1|2,network=lenet5|simplenet,"
				   "slo=lognormal:120:0.8,tenants=anna:1|bert:2",
			   .seed = 5 },
		.world = { .spec = "fluid", .given = &machine },
		.policy = b->policy,
		.replications = replications,
		.seed = 5,
		.settings = { .confidence = 0.9, .adapt = true },
		.level = 0.95,
	};
	if (sim_policies_parse(policies, b->policy, SIM_MAX_POLICIES, &b->p.n_policies, &err))
		fail_msg("%s", err.text);
}

/* A world measured three times at twelve settings, so small that models of it are trained at once. */
static void bed_measured(struct bed *b, const char *policies, size_t replications)
{
	static const struct cluster two = { .cores = 2.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY };
	static char spec[600];
	const char *path = support_path(support_temp_dir(), "table.csv");
	struct strbuf table = { 0 };

	strbuf_puts(&table, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication\n");
	for (int i = 0; i < 3 * 2 * 2 * 3; i++) {
		int replication = i / 12, cpus = 1 + i / 6 % 2, njobs = 1 + i / 3 % 2, batch = 64 << i % 3;

		strbuf_printf(&table, "lenet5,%d,%d,%d,4,12000,%.3f,%.3f,%d\n", cpus, njobs, batch,
			      3.0 * njobs / cpus + 64.0 / batch + 0.1 * replication, 0.9 - 0.0005 * batch,
			      replication + 1);
	}
	assert_int_equal(io_write_file(path, table.text, table.len, NULL), 0);
	strbuf_release(&table);
	snprintf(spec, sizeof spec, "measured:%s", path);
	bed_init(b, policies, replications);
	b->p.trace.spec =
		"gen:poisson,jobs=20,rate=0.1,cpus=1|2,network=lenet5,epochs=4,samples=12000,slo=20";
	b->p.world = (struct world_params){ .spec = spec, .given = &two };
}

static struct compare_result *run_or_fail(const struct compare_params *p)
{
	struct compare_result *r = NULL;
	struct err err = { 0 };

	if (compare_run(p, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void bytes_of(const struct compare_params *p, const struct compare_result *r, struct strbuf *out)
{
	struct record_about about = { "compare", "postrider 0", "postrider compare", p, NULL };

	record_text(r, &about, out);
	assert_int_equal(record_bed_jobs(r, out, NULL), 0);
}

static double value(const struct compare_result *r, size_t policy, size_t replication, enum metric m)
{
	return r->policy[policy].value[replication * METRICS + m];
}

/* ---- reproducible ---- */

TEST(test_threads_do_not_show_in_the_bytes)
{
	struct strbuf text[3] = { 0 };
	struct bed b;

	bed_init(&b, "naive,fixed:128,greedy-oracle,fixed:64", 5);
	b.p.keep_outcomes = true;
	b.p.noise = 0.2;
	b.p.failures = "5%";
	for (size_t i = 0; i < 3; i++) {
		struct compare_result *r;

		assert_int_equal(pool_new(i + 1, &b.p.pool, NULL), 0);
		r = run_or_fail(&b.p);
		bytes_of(&b.p, r, &text[i]);
		compare_free(r);
		pool_free(b.p.pool);
	}
	assert_string_equal(strbuf_text(&text[1]), strbuf_text(&text[0]));
	assert_string_equal(strbuf_text(&text[2]), strbuf_text(&text[0]));
	for (size_t i = 0; i < 3; i++)
		strbuf_release(&text[i]);
}

TEST(test_another_seed_gives_other_numbers)
{
	struct strbuf text[2] = { 0 };
	struct bed b;

	bed_init(&b, "naive", 2);
	b.p.keep_outcomes = true;
	for (size_t i = 0; i < 2; i++) {
		struct compare_result *r;

		b.p.seed = b.p.trace.seed = 5 + 100 * i;
		r = run_or_fail(&b.p);
		assert_int_equal(record_bed_jobs(r, &text[i], NULL), 0);
		compare_free(r);
	}
	assert_string_not_equal(strbuf_text(&text[0]), strbuf_text(&text[1]));
	strbuf_release(&text[0]);
	strbuf_release(&text[1]);
}

/* ---- what the numbers are made of ---- */

TEST(test_numbers_do_not_depend_on_keeping_outcomes)
{
	struct compare_result *kept, *gone;
	struct bed b;

	bed_init(&b, "naive,greedy-oracle", 3);
	gone = run_or_fail(&b.p);
	b.p.keep_outcomes = true;
	kept = run_or_fail(&b.p);
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < 3; k++) {
			double again[METRICS];
			const struct replay_result *run = &kept->policy[i].run[k];

			assert_null(gone->policy[i].run[k].outcome);
			assert_int_equal(metrics_of(kept->trace[k], world_cluster(kept->world[k]), run,
						    kept->policy[1].run[k].outcome, again, NULL),
					 0);
			for (size_t m = 0; m < METRICS; m++) {
				double v = value(gone, i, k, m);

				assert_true(v == value(kept, i, k, m) || isnan(v));
				assert_true(v == again[m] || (isnan(v) && isnan(again[m])));
			}
		}
	}
	compare_free(kept);
	compare_free(gone);
}

TEST(test_the_oracle_is_measured_by_itself)
{
	struct compare_result *r;
	struct bed b;

	bed_init(&b, "fixed:64,greedy-oracle", 3);
	r = run_or_fail(&b.p);
	for (size_t k = 0; k < 3; k++) {
		assert_true(value(r, 1, k, METRIC_REGRET) == 0.0);
		assert_true(value(r, 1, k, METRIC_ATTAINMENT_ORACLE) == 1.0);
		assert_true(value(r, 0, k, METRIC_ATTAINMENT_ORACLE) <= 1.0);
	}
	compare_free(r);
	bed_init(&b, "fixed:64", 2);
	r = run_or_fail(&b.p);
	assert_true(isnan(r->policy[0].metric[METRIC_REGRET].mean));
	compare_free(r);
}

TEST(test_summaries_are_those_of_the_values)
{
	struct compare_result *r;
	struct bed b;

	bed_init(&b, "fixed:64,naive,fixed:256", 4);
	b.p.baseline = 1;
	r = run_or_fail(&b.p);
	for (size_t i = 0; i < 3; i++) {
		double own[4], base[4];
		struct interval v;
		struct paired_result d;

		for (size_t k = 0; k < 4; k++) {
			own[k] = value(r, i, k, METRIC_RESPONSE_MEAN);
			base[k] = value(r, 1, k, METRIC_RESPONSE_MEAN);
		}
		v = metrics_interval(own, 4, 0.95);
		d = metrics_paired(base, own, 4, 0.95);
		assert_memory_equal(&r->policy[i].metric[METRIC_RESPONSE_MEAN], &v, sizeof v);
		if (i == 1)
			assert_true(isnan(r->policy[i].versus[METRIC_RESPONSE_MEAN].difference));
		else
			assert_true(r->policy[i].versus[METRIC_RESPONSE_MEAN].difference == d.difference &&
				    r->policy[i].versus[METRIC_RESPONSE_MEAN].p == d.p);
		for (size_t m = 0; m < METRICS; m++) {
			const struct interval *in = &r->policy[i].metric[m];

			assert_true(!(in->low > in->mean) && !(in->high < in->mean));
			if (!strcmp(metric_info[m].unit, "share"))
				assert_true(!(in->low < 0.0) && !(in->high > 1.0));
		}
		assert_true(r->policy[i].decision_mean_s > 0.0 && r->policy[i].decision_p99_s > 0.0);
	}
	compare_free(r);
}

TEST(test_a_single_replay_has_intervals_of_its_shares)
{
	struct compare_result *r;
	struct interval w;
	struct bed b;

	bed_init(&b, "fixed:64", 1);
	r = run_or_fail(&b.p);
	w = metrics_wilson(value(r, 0, 0, METRIC_MET), value(r, 0, 0, METRIC_JOBS), 0.95);
	assert_true(fabs(r->policy[0].metric[METRIC_ATTAINMENT_ALL].low - w.low) < 1e-15);
	assert_true(fabs(r->policy[0].metric[METRIC_ATTAINMENT_ALL].high - w.high) < 1e-15);
	assert_true(isnan(r->policy[0].metric[METRIC_RESPONSE_MEAN].low));
	assert_true(isnan(r->policy[0].versus[METRIC_MET].p));
	compare_free(r);
}

TEST(test_replications_that_agree_are_not_taken_for_certain)
{
	struct compare_result *r;
	struct bed b;

	bed_init(&b, "fixed:64", 3);
	what_if_set(&b.p.what, WHAT_SLO, 1e6, NULL); /* no job can miss */
	r = run_or_fail(&b.p);
	assert_true(r->policy[0].metric[METRIC_ATTAINMENT_ALL].mean == 1.0);
	/* none of 120 missed: Wilson's lower end is n / (n + z^2) */
	assert_true(fabs(r->policy[0].metric[METRIC_ATTAINMENT_ALL].low -
			 120.0 / (120.0 + 3.841458820694124)) < 1e-9);
	assert_true(r->policy[0].metric[METRIC_ATTAINMENT_ALL].high == 1.0);
	compare_free(r);
}

/* Few jobs miss, and not the same number in each replication: Student's interval goes beyond 1. */
TEST(test_no_interval_of_a_share_goes_beyond_1)
{
	struct compare_result *r;
	struct interval v;
	struct bed b;
	double own[3];

	bed_init(&b, "fixed:64", 3);
	what_if_set(&b.p.what, WHAT_SLO, 0.05, NULL);
	r = run_or_fail(&b.p);
	for (size_t k = 0; k < 3; k++)
		own[k] = value(r, 0, k, METRIC_ATTAINMENT_ALL);
	v = metrics_interval(own, 3, 0.95);
	assert_true(v.mean < 1.0 && v.high > 1.0);
	assert_true(r->policy[0].metric[METRIC_ATTAINMENT_ALL].high == 1.0);
	assert_true(r->policy[0].metric[METRIC_ATTAINMENT_ALL].low == v.low);
	compare_free(r);
}

/* ---- traces and worlds ---- */

TEST(test_a_generated_trace_is_drawn_anew)
{
	struct compare_result *r;
	struct bed b;

	bed_init(&b, "naive", 3);
	r = run_or_fail(&b.p);
	assert_true(r->trace[0]->fingerprint != r->trace[1]->fingerprint);
	for (size_t k = 0; k < 3; k++) {
		struct trace_source again = b.p.trace;
		struct trace *t;

		again.seed += k;
		assert_int_equal(trace_open(&again, &t, NULL), 0);
		assert_true(t->fingerprint == r->trace[k]->fingerprint);
		trace_free(t);
	}
	compare_free(r);
}

TEST(test_a_file_is_opened_once_and_its_draws_differs)
{
	const char *path = support_path(support_temp_dir(), "trace.csv");
	struct strbuf text = { 0 };
	struct compare_result *r;
	struct trace *t;
	struct bed b;

	bed_init(&b, "naive", 3);
	assert_int_equal(trace_open(&b.p.trace, &t, NULL), 0);
	trace_write_csv(t, &text);
	assert_int_equal(io_write_file(path, text.text, text.len, NULL), 0);
	b.p.trace.spec = path;
	b.p.noise = 0.3;
	r = run_or_fail(&b.p);
	assert_ptr_equal(r->trace[0], r->trace[2]);
	assert_ptr_equal(r->world[0], r->world[2]);
	assert_true(r->trace[0]->fingerprint == t->fingerprint);
	assert_true(value(r, 0, 0, METRIC_RESPONSE_MEAN) != value(r, 0, 1, METRIC_RESPONSE_MEAN));
	compare_free(r);
	trace_free(t);
	strbuf_release(&text);
}

TEST(test_scales_and_disturbances_reach_the_runs)
{
	struct compare_result *plain, *scaled;
	const struct disturbances *d;
	double first_s, last_s;
	struct bed b;

	bed_init(&b, "naive", 1);
	plain = run_or_fail(&b.p);
	what_if_set(&b.p.what, WHAT_SLO, 3.0, NULL);
	what_if_set(&b.p.what, WHAT_LOAD, 0.5, NULL);
	b.p.noise = 0.125;
	b.p.drift = "20%@50%";
	b.p.stragglers = "2%x3";
	b.p.failures = "1%";
	scaled = run_or_fail(&b.p);
	assert_true(fabs(scaled->trace[0]->job[0].slo_s - 3.0 * plain->trace[0]->job[0].slo_s) < 1e-6);
	d = world_disturbances(scaled->world[0]);
	first_s = 1e-9 * (double)scaled->trace[0]->job[0].arrival_ns;
	last_s = 1e-9 * (double)scaled->trace[0]->job[39].arrival_ns;
	assert_true(fabs(d->drift_at_s - 0.5 * (first_s + last_s)) < 1e-6);
	assert_true(d->noise == 0.125 && d->drift == 0.2 && d->straggler_factor == 3.0 &&
		    d->failures == 0.01);
	assert_true(last_s > 1.9e-9 * (double)plain->trace[0]->job[39].arrival_ns);
	compare_free(plain);
	compare_free(scaled);
}

/* ---- models ---- */

TEST(test_policies_that_predict_get_models)
{
	size_t tracked = 0, covered = 0;
	double sum = 0.0;
	struct compare_result *r, *again;
	struct strbuf text[2] = { 0 };
	struct bed b;

	bed_measured(&b, "naive,postrider,greedy-oracle", 4);
	b.p.keep_outcomes = true;
	assert_int_equal(pool_new(2, &b.p.pool, NULL), 0);
	r = run_or_fail(&b.p);
	pool_free(b.p.pool);
	b.p.pool = NULL;
	again = run_or_fail(&b.p);
	bytes_of(&b.p, r, &text[0]);
	bytes_of(&b.p, again, &text[1]);
	assert_string_equal(strbuf_text(&text[0]), strbuf_text(&text[1]));
	assert_non_null(r->training);
	assert_true(r->training->n_rows > 10);
	assert_null(r->policy[0].importance);
	assert_true(r->policy[1].n_features > 2);
	for (size_t i = 0; i < r->policy[1].n_features; i++)
		sum += r->policy[1].importance[i];
	assert_true(fabs(sum - 1.0) < 1e-6);
	for (size_t i = 0; i <= 100; i++) {
		tracked += r->policy[1].tracked[i];
		covered += r->policy[1].covered[i];
		assert_true(i == 90 || r->policy[1].tracked[i] == 0);
		assert_int_equal(r->policy[0].tracked[i], 0);
	}
	assert_true(tracked > 0 && covered <= tracked);
	assert_true(r->policy[1].metric[METRIC_MAPE].mean < 1.0);
	compare_free(r);
	compare_free(again);
	strbuf_release(&text[0]);
	strbuf_release(&text[1]);
}

/* The same model from outside gives the same runs, and nothing is trained. */
TEST(test_a_model_given_is_used_instead_of_training)
{
	const struct cluster half = { .cores = 1.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY };
	struct sim_models_params m = { .n_policies = 1 };
	struct compare_result *trained, *given;
	struct sim_models *models = NULL;
	struct strbuf text[2] = { 0 };
	struct bed b;

	bed_measured(&b, "queueing,naive", 1);
	b.p.keep_outcomes = true;
	trained = run_or_fail(&b.p);
	m.policy = b.policy;
	m.table = trained->training;
	m.seed = b.p.seed;
	m.given = b.p.world.given;
	assert_int_equal(sim_models_train(&m, &models, NULL), 0);
	b.p.model = sim_models_of(models, &b.policy[0]);
	given = run_or_fail(&b.p);
	assert_non_null(trained->training);
	assert_null(given->training);
	bytes_of(&b.p, trained, &text[0]);
	bytes_of(&b.p, given, &text[1]);
	assert_string_equal(strbuf_text(&text[0]), strbuf_text(&text[1]));
	compare_free(given);

	/* A policy that wants another one has it trained. On half of the machine all takes longer. */
	bed_measured(&b, "queueing,courier", 1);
	b.p.model = sim_models_of(models, &b.policy[0]);
	b.p.world.cluster = &half;
	given = run_or_fail(&b.p);
	assert_non_null(given->training);
	assert_true(given->policy[1].n_features > 0);
	assert_true(value(given, 0, 0, METRIC_JOBS) == value(trained, 0, 0, METRIC_JOBS));
	assert_true(value(given, 0, 0, METRIC_RESPONSE_MEAN) > value(trained, 0, 0, METRIC_RESPONSE_MEAN));
	compare_free(given);
	compare_free(trained);
	sim_models_free(models);
	strbuf_release(&text[0]);
	strbuf_release(&text[1]);
}

/* Replication 1 of the table happens in the first fold: models must not have seen a row of it. */
TEST(test_models_do_not_learn_from_what_happens)
{
	struct compare_result *r;
	char split[200];
	int column;
	struct bed b;

	bed_measured(&b, "queueing,greedy-oracle", 4);
	r = run_or_fail(&b.p);
	assert_int_equal(world_folds(r->world[0]), 3);
	column = csv_column(r->training, "replication");
	assert_true(column >= 0);
	assert_int_equal(r->training->n_rows, 24);
	for (size_t i = 0; i < r->training->n_rows; i++)
		assert_string_not_equal(csv_cell(r->training, i, (size_t)column), "1");
	world_split_text(r->world[0], 0, split, sizeof split);
	assert_non_null(strstr(split, "replication 1 of 3 happens"));
	for (size_t k = 0; k < 4; k++)
		assert_true(value(r, 1, k, METRIC_ATTAINMENT_ORACLE) == 1.0);
	compare_free(r);
}

/* The short form of tests/bars/test_sim_bars.c, in the world of the committed profile. */
TEST(test_postrider_keeps_promises_and_beats_a_random_choice)
{
	static const struct cluster two = { .cores = 2.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY };
	struct compare_result *r;
	struct bed b;

	if (sanitized())
		skip(); /* it judges numbers; the code is that of the others */
	bed_init(&b, "postrider,naive,greedy-oracle", 2);
	b.p.trace.spec = "gen:poisson,jobs=150,load=0.8,work=1.2,cores=2,cpus=1|2|4,network=lenet5|simplenet,"
			 "slo=normal:2.2:0.73";
	b.p.world.spec = "measured:configs/profiles/two-cores/runs.csv";
	b.p.world.given = &two;
	r = run_or_fail(&b.p);
	assert_true(r->policy[0].metric[METRIC_ATTAINMENT].mean >= 0.8);
	assert_true(r->policy[2].metric[METRIC_ATTAINMENT].mean == 1.0);
	assert_true(r->policy[0].metric[METRIC_ACCURACY_ZERO].mean >
		    r->policy[1].metric[METRIC_ACCURACY_ZERO].mean);
	compare_free(r);
}

/* Else 20 replications of a dozen jobs say the same 20 times. */
TEST(test_a_resampled_trace_is_drawn_anew_in_each_replication)
{
	struct compare_result *r;
	struct bed b;

	bed_init(&b, "naive,fixed:128", 3);
	b.p.trace.spec = "configs/traces/morning.csv";
	r = run_or_fail(&b.p);
	assert_ptr_equal(r->trace[0], r->trace[1]);
	compare_free(r);
	b.p.trace.resample = 30;
	r = run_or_fail(&b.p);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(r->trace[i]->n_jobs, 30);
	assert_true(r->trace[0]->fingerprint != r->trace[1]->fingerprint);
	assert_true(r->trace[1]->fingerprint != r->trace[2]->fingerprint);
	compare_free(r);
}

/* The short form of tests/bars/test_price_bars.c: where a batch trades time for accuracy and the disk binds,
 * a price gets more of an overloaded machine than each job's best batch, and than one batch for all. */
TEST(test_a_price_gets_more_of_a_full_machine)
{
	struct compare_result *r;
	struct bed b;
	double ours;

	if (sanitized())
		skip(); /* it judges numbers; the code is that of the others */
	bed_init(&b, "postrider:chance=0.3,greedy,fixed:512", 2);
	b.p.trace.spec = "gen:poisson,jobs=200,load=1.2,cpus=1|2|4|8,slo=normal:300:100,work=1000,cores=48,"
			 "samples=60000,epochs=10";
	b.p.world.spec = "fluid:configs/worlds/bigdl.json";
	b.p.world.given = NULL;
	r = run_or_fail(&b.p);
	ours = r->policy[0].metric[METRIC_ACCURACY_ZERO].mean;
	for (size_t i = 0; i < 3; i++)
		print_message("# %-20s %.4f, kept %.3f\n", r->policy[i].policy.name,
			      r->policy[i].metric[METRIC_ACCURACY_ZERO].mean,
			      r->policy[i].metric[METRIC_ATTAINMENT].mean);
	assert_true(r->policy[0].metric[METRIC_ATTAINMENT].mean >= 0.88);
	for (size_t i = 1; i < 3; i++)
		assert_true(ours > r->policy[i].metric[METRIC_ACCURACY_ZERO].mean + 0.05);
	compare_free(r);
}

/* ---- errors ---- */

/* Models that were kept, also on another machine than they were kept for, decide like those trained anew. */
TEST(test_models_that_are_kept_are_the_models_that_are_trained)
{
	static const struct cluster larger = { .cores = 6.0, .slots = 12, .nodes = 1, .memory_mb = INFINITY };
	struct strbuf fresh[2] = { 0 }, kept[2] = { 0 };
	struct compare_cache *cache;
	struct bed b;

	bed_measured(&b, "boost-full,naive", 4);
	b.p.keep_outcomes = true; /* bytes_of() has the jobs, too */
	assert_int_equal(compare_cache_new(&cache, NULL), 0);
	for (int round = 0; round < 2; round++) { /* the second one finds everything */
		for (int i = 0; i < 2; i++) {
			struct strbuf *out = round ? &kept[i] : &fresh[i];
			struct compare_result *r;

			b.p.world.cluster = i ? &larger : NULL;
			b.p.cache = round ? cache : NULL;
			r = run_or_fail(&b.p);
			bytes_of(&b.p, r, out);
			compare_free(r);
			if (round) {
				strbuf_release(out);
				*out = (struct strbuf){ 0 };
				r = run_or_fail(&b.p);
				bytes_of(&b.p, r, out);
				compare_free(r);
			}
		}
	}
	for (int i = 0; i < 2; i++) {
		assert_string_equal(strbuf_text(&fresh[i]), strbuf_text(&kept[i]));
		strbuf_release(&fresh[i]);
		strbuf_release(&kept[i]);
	}
	compare_cache_free(cache);
}

TEST(test_bad_parameters_are_refused)
{
	static const struct {
		size_t replications, baseline;
		double level, confidence, noise;
		const char *drift, *trace, *world, *says;
	} bad[] = {
		{ .replications = 0, .level = 0.95, .confidence = 0.9, .says = "replications" },
		{ .replications = 10001, .level = 0.95, .confidence = 0.9, .says = "replications" },
		{ .replications = 1, .baseline = 1, .level = 0.95, .confidence = 0.9, .says = "baseline" },
		{ .replications = 1, .level = 1.0, .confidence = 0.9, .says = "level" },
		{ .replications = 1, .level = 0.95, .confidence = NAN, .says = "confidence" },
		{ .replications = 1, .level = 0.95, .confidence = 0.9, .noise = -1.0, .says = "noise" },
		{ .replications = 1, .level = 0.95, .confidence = 0.9, .drift = "lots", .says = "lots" },
		{ .replications = 3,
		  .level = 0.95,
		  .confidence = 0.9,
		  .trace = "gen:poissn",
		  .says = "poiss" },
		{ .replications = 3,
		  .level = 0.95,
		  .confidence = 0.9,
		  .trace = "/no/such.csv",
		  .says = "such.csv" },
		{ .replications = 3, .level = 0.95, .confidence = 0.9, .world = "flat", .says = "flat" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct compare_result *r = NULL;
		struct err err = { 0 };
		struct bed b;
		int status;

		bed_init(&b, "naive", bad[i].replications);
		b.p.baseline = bad[i].baseline;
		b.p.level = bad[i].level;
		b.p.settings.confidence = bad[i].confidence;
		b.p.noise = bad[i].noise;
		b.p.drift = bad[i].drift;
		b.p.trace.spec = bad[i].trace ? bad[i].trace : b.p.trace.spec;
		b.p.world.spec = bad[i].world ? bad[i].world : b.p.world.spec;
		status = compare_run(&b.p, &r, &err);
		assert_int_equal(status, -(int)err.code);
		assert_true(status < 0);
		if (!strstr(err.text, bad[i].says))
			fail_msg("case %zu says: %s", i, err.text);
		assert_null(r);
	}
}

/* The second and the fourth policy want a model and get none: the lower index is told, whoever was first. */
TEST(test_the_lowest_error_wins)
{
	static const struct model *no_model[4];
	static struct compare_shares shares[4];
	static struct decision_times times[4];

	for (size_t threads = 1; threads <= 3; threads++) {
		struct compare_runs x = { .folds = 1, .model = no_model, .shares = shares, .times = times };
		struct err err = { 0 };
		struct bed b;

		bed_init(&b, "naive,fixed:64,fixed:128,fixed:256", 4);
		x.p = &b.p;
		x.r = run_or_fail(&b.p);
		assert_int_equal(sim_policy_parse("postrider", &b.policy[1], NULL), 0);
		assert_int_equal(sim_policy_parse("courier", &b.policy[3], NULL), 0);
		x.r->policy[1].policy = b.policy[1];
		x.r->policy[3].policy = b.policy[3];
		assert_int_equal(pool_new(threads, &b.p.pool, NULL), 0);
		pthread_mutex_init(&x.lock, NULL);
		assert_true(compare_runs_all(&x, &err) == -(int)ERR_ARG);
		assert_non_null(strstr(err.text, "policy postrider, replication 1"));
		pthread_mutex_destroy(&x.lock);
		pool_free(b.p.pool);
		compare_free(x.r);
	}
}

TEST(test_no_allocation_that_fails_is_overlooked)
{
	bool failed = true;
	struct bed b;

	bed_init(&b, "naive,greedy-oracle", 2);
	b.p.trace.spec = "gen:poisson,jobs=5,rate=0.05,cpus=1,network=lenet5,slo=200";
	for (unsigned long k = 1; failed; k += 1 + k / 50) {
		struct compare_result *r = NULL;
		struct err err = { 0 };
		int status;

		mem_fail_at(k, false);
		status = compare_run(&b.p, &r, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		if (status && status != -ERR_NOMEM)
			fail_msg("allocation %lu: %s", k, err.text);
		assert_true(!status == (r != NULL));
		assert_true(failed || !status);
		compare_free(r);
	}
	compare_free(NULL);
}

/* ---- progress and times ---- */

struct seen {
	atomic_int inside;
	size_t last, total, calls;
};

static void on_progress(void *owner, const char *stage, size_t done, size_t total)
{
	struct seen *s = owner;

	assert_int_equal(atomic_fetch_add(&s->inside, 1), 0);
	if (!strcmp(stage, "replaying")) {
		assert_true(done >= s->last && done <= total);
		s->last = done;
		s->total = total;
		s->calls++;
	}
	atomic_fetch_sub(&s->inside, 1);
}

TEST(test_progress_comes_one_at_a_time_and_to_its_end)
{
	struct seen s = { .last = 0 };
	struct bed b;

	bed_init(&b, "naive,fixed:64", 6);
	b.p.on_progress = on_progress;
	b.p.owner = &s;
	assert_int_equal(pool_new(2, &b.p.pool, NULL), 0);
	compare_free(run_or_fail(&b.p));
	pool_free(b.p.pool);
	assert_int_equal(s.total, 2 * 6 * 40);
	assert_int_equal(s.last, s.total);
}

TEST(test_quantiles_of_decision_times_are_good_to_a_percent)
{
	static struct decision_times d;

	assert_true(isnan(decision_times_quantile(&d, 0.99)));
	for (int i = 1; i <= 1000; i++)
		decision_times_add(&d, 1e-6 * i);
	assert_true(d.n == 1000 && fabs(d.sum_s - 0.5005) < 1e-9);
	assert_true(fabs(decision_times_quantile(&d, 0.99) / 990e-6 - 1.0) < 0.01);
	assert_true(fabs(decision_times_quantile(&d, 0.5) / 500e-6 - 1.0) < 0.01);
	decision_times_add(&d, NAN);
	decision_times_add(&d, 0.0);
	decision_times_add(&d, 1e300);
	assert_true(d.n == 1002);
}
