/* The paper's experiment on a small table whose times follow a known law: what is drawn, what is chosen,
 * what is counted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "sim/compare/paper_experiment.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define JOBS 200

static char table_path[512];
static struct paper_result *result;

/* Two networks, cpus 1, 2 and 4, 1 to 5 jobs, three batches, two replications a little apart. */
static int make_table(void)
{
	static const double batches[] = { 64, 128, 256 }, cpus[] = { 1, 2, 4 }, njobs[] = { 1, 3, 5 };
	struct strbuf text = { 0 };
	int rc;

	strbuf_puts(&text, "network,cpus,njobs,batch,time_s,accuracy,replication\n");
	for (int i = 0; i < 2 * 3 * 3 * 3 * 2; i++) {
		double batch = batches[i % 3], c = cpus[i / 3 % 3], n = njobs[i / 9 % 3];
		int network = i / 27 % 2, replication = i / 54;
		double s = (4.0 + network) * (1.0 + 300.0 / batch) * (1.0 + 0.2 * c * n) *
			   (1.0 + 0.02 * replication);

		strbuf_printf(&text, "%s,%g,%g,%g,%.4f,%.4f,%d\n", network ? "lenet5" : "simplenet", c, n,
			      batch, s, 0.95 - 2e-4 * batch - 0.01 * network, replication + 1);
	}
	snprintf(table_path, sizeof table_path, "%s", support_path(support_temp_dir(), "table.csv"));
	rc = text.failed || io_write_file(table_path, text.text, text.len, NULL);
	strbuf_release(&text);
	return rc;
}

static int run(size_t threads, uint64_t seed, size_t jobs, struct paper_result **out, struct err *err)
{
	static const struct cluster machine = { .cores = 4, .slots = 20, .nodes = 1, .memory_mb = INFINITY };
	char spec[600];
	struct pool *pool = NULL;
	int rc;

	snprintf(spec, sizeof spec, "measured:%s", table_path);
	rc = pool_new(threads, &pool, err);
	if (!rc)
		rc = paper_run(&(struct paper_params){ .world = { .spec = spec, .given = &machine },
						       .jobs = jobs,
						       .seed = seed,
						       .pool = pool },
			       out, err);
	pool_free(pool);
	return rc;
}

static int set_up(void **state)
{
	struct err err = { 0 };

	(void)state;
	if (make_table())
		return -1;
	if (run(2, 7, JOBS, &result, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	paper_free(result);
	return 0;
}

TEST_GROUP(set_up, tear_down);

static const struct paper_outcome *of(const struct paper_set *s, int policy, size_t job)
{
	return &s->outcome[(size_t)policy * s->n + job];
}

/* ---- intervals ---- */

TEST(test_no_misses_in_five_bound_the_rate_below_45_percent)
{
	assert_true(fabs(paper_rate_bound(0, 5, 0.95) - (1.0 - pow(0.05, 1.0 / 5.0))) < 1e-12);
	assert_true(fabs(paper_rate_bound(0, 5, 0.95) - 0.4507) < 1e-4);
}

TEST(test_rate_bounds_are_those_of_closed_forms)
{
	/* all but one missed: 1 - p^n = 0.05; one of two: (1-p)^2 + 2p(1-p) = 1 - p^2 */
	assert_true(fabs(paper_rate_bound(6, 7, 0.95) - pow(0.95, 1.0 / 7.0)) < 1e-12);
	assert_true(fabs(paper_rate_bound(1, 2, 0.9) - sqrt(0.9)) < 1e-12);
	assert_true(paper_rate_bound(5, 5, 0.95) == 1.0);
	assert_true(fabs(paper_rate_bound(0, 1000000, 0.95) - (1.0 - pow(0.05, 1e-6))) < 1e-12);
	for (size_t k = 0; k < 100; k++) {
		assert_true(paper_rate_bound(k, 100, 0.95) < paper_rate_bound(k + 1, 100, 0.95));
		assert_true(paper_rate_bound(k, 100, 0.95) > (double)k / 100.0);
	}
}

TEST(test_rate_bounds_without_a_meaning_are_not_numbers)
{
	assert_true(isnan(paper_rate_bound(0, 0, 0.95)));
	assert_true(isnan(paper_rate_bound(3, 2, 0.95)));
	assert_true(isnan(paper_rate_bound(0, 5, 1.0)));
	assert_true(isnan(paper_rate_bound(0, 5, NAN)));
}

/* ---- jobs ---- */

TEST(test_the_five_jobs_are_those_of_table_9_scaled)
{
	const struct paper_set *five = &result->set[0];

	assert_int_equal(five->n, 5);
	assert_false(result->own_table);
	assert_true(fabs(result->scale - result->table_mean_s / PAPER_TABLE_MEAN_S) < 1e-15);
	for (size_t i = 0; i < 5; i++) {
		const struct trace_kind *k = &result->trace->kind[five->job[i].kind];
		double cpus = paper_table9[i].cpus < 8 ? paper_table9[i].cpus : 4;

		assert_true(k->cpus == cpus);
		assert_string_equal(k->value[0], "lenet5");
		assert_true(five->job[i].njobs == paper_table9[i].njobs);
		assert_true(five->job[i].slo_s == paper_table9[i].slo_s * result->scale);
	}
	assert_true(result->cpus_moved); /* there are no 8 cpus in this table */
}

TEST(test_many_jobs_are_drawn_from_all_levels)
{
	const struct paper_set *many = &result->set[1];
	size_t njobs[7] = { 0 }, kinds[6] = { 0 };
	double sum = 0.0, squares = 0.0;

	assert_int_equal(many->n, JOBS);
	assert_int_equal(result->trace->n_kinds, 6);
	for (size_t i = 0; i < many->n; i++) {
		double slo_s = many->job[i].slo_s / result->scale;

		assert_true(many->job[i].njobs >= 1 && many->job[i].njobs <= 6);
		njobs[(int)many->job[i].njobs]++;
		kinds[many->job[i].kind]++;
		assert_true(slo_s >= 10.0);
		sum += slo_s;
		squares += slo_s * slo_s;
	}
	/* 200 draws over 6 values: each 33 expected, sd 5.3; four of those are 21 */
	for (int k = 0; k < 6; k++)
		assert_true(njobs[k + 1] > 12 && kinds[k] > 12);
	/* the mean of 200 draws has sd 7.1, their sd has sd 5 */
	assert_true(fabs(sum / JOBS - 300.0) < 28.0);
	assert_true(fabs(sqrt(squares / JOBS - sum / JOBS * sum / JOBS) - 100.0) < 20.0);
}

/* ---- choices ---- */

TEST(test_promises_are_kept_to_the_rule_of_each_policy)
{
	for (int s = 0; s < 2; s++) {
		const struct paper_set *set = &result->set[s];

		for (size_t i = 0; i < set->n; i++) {
			double slo_s = set->job[i].slo_s;

			assert_true(of(set, PAPER_COURIER, i)->promised ==
				    (of(set, PAPER_COURIER, i)->predicted_s <= slo_s));
			assert_true(of(set, PAPER_BOOST, i)->promised ==
				    (of(set, PAPER_BOOST, i)->predicted_s <= slo_s));
			if (of(set, PAPER_POSTRIDER, i)->promised)
				assert_true(of(set, PAPER_POSTRIDER, i)->upper_s <= slo_s);
			assert_false(of(set, PAPER_NAIVE, i)->promised);
			assert_true(isnan(of(set, PAPER_NAIVE, i)->predicted_s));
		}
	}
}

TEST(test_the_oracle_meets_whatever_can_be_met_and_as_accurately)
{
	const struct paper_set *many = &result->set[1];

	for (size_t i = 0; i < many->n; i++) {
		const struct paper_outcome *oracle = of(many, PAPER_ORACLE, i);

		for (int k = 0; k < PAPER_POLICIES; k++) {
			const struct paper_outcome *o = of(many, k, i);

			assert_true(o->met == (o->time_s <= many->job[i].slo_s));
			if (!o->met)
				continue;
			assert_true(oracle->met);
			assert_true(oracle->accuracy >= o->accuracy);
		}
	}
}

TEST(test_equal_choices_have_equal_outcomes)
{
	const struct paper_set *many = &result->set[1];

	for (size_t i = 0; i < many->n; i++)
		for (int k = 1; k < PAPER_POLICIES; k++)
			if (of(many, k, i)->batch == of(many, 0, i)->batch)
				assert_true(of(many, k, i)->time_s == of(many, 0, i)->time_s &&
					    of(many, k, i)->accuracy == of(many, 0, i)->accuracy);
}

/* In this table the world has as many folds as replications, so a third of the jobs is a group. */
TEST(test_best_fixed_batch_is_one_for_each_group_and_promises_nothing)
{
	const struct paper_set *many = &result->set[1];
	size_t groups = world_folds(result->world) > 1 ? world_folds(result->world) : 2;

	for (size_t i = 0; i < many->n; i++) {
		assert_true(of(many, PAPER_FIXED, i)->batch == of(many, PAPER_FIXED, i % groups)->batch);
		assert_false(of(many, PAPER_FIXED, i)->promised);
	}
	/* chosen without the jobs it is judged by, and still better than a batch drawn at random */
	assert_true(many->summary[PAPER_FIXED].accuracy_zero.mean >
		    many->summary[PAPER_NAIVE].accuracy_zero.mean);
}

TEST(test_every_batch_for_all_jobs_is_summed_up)
{
	const struct paper_set *many = &result->set[1];
	const double *batch;
	double best = 0.0;

	assert_int_equal(many->n_fixed, world_batches(result->world, &batch));
	for (size_t b = 0; b < many->n_fixed; b++) {
		const struct paper_fixed *f = &many->fixed[b];
		size_t met = f->met, of_naive = 0, n = 0;

		/* naive with this batch is this batch */
		for (size_t i = 0; i < many->n; i++) {
			const struct paper_outcome *o = of(many, PAPER_NAIVE, i);

			if (o->batch != f->batch)
				continue;
			n++;
			of_naive += o->met;
		}
		assert_true(f->batch == batch[b]);
		assert_true(n > 0 && met >= of_naive && many->n - met >= n - of_naive);
		assert_true(f->met_share.mean == (double)met / (double)many->n);
		assert_true(f->accuracy_zero.low < f->accuracy_zero.mean &&
			    f->accuracy_zero.mean < f->accuracy_zero.high);
		best = fmax(best, f->accuracy_zero.mean);
	}
	assert_true(best >= many->summary[PAPER_NAIVE].accuracy_zero.mean);
	assert_true(best <= many->summary[PAPER_ORACLE].accuracy_zero.mean);
}

TEST(test_naive_draws_every_batch)
{
	const struct paper_set *many = &result->set[1];
	size_t n64 = 0, n128 = 0, n256 = 0;

	for (size_t i = 0; i < many->n; i++) {
		n64 += of(many, PAPER_NAIVE, i)->batch == 64;
		n128 += of(many, PAPER_NAIVE, i)->batch == 128;
		n256 += of(many, PAPER_NAIVE, i)->batch == 256;
	}
	assert_int_equal(n64 + n128 + n256, JOBS);
	assert_true(n64 > 40 && n128 > 40 && n256 > 40); /* 67 expected, sd 6.7 */
}

/* ---- summaries ---- */

TEST(test_summaries_count_what_the_outcomes_say)
{
	const struct paper_set *many = &result->set[1];

	for (int k = 0; k < PAPER_POLICIES; k++) {
		const struct paper_summary *s = &many->summary[k];
		size_t met = 0, kept = 0, promised = 0;
		double zero = 0.0;

		for (size_t i = 0; i < many->n; i++) {
			met += of(many, k, i)->met;
			promised += of(many, k, i)->promised;
			kept += of(many, k, i)->promised && of(many, k, i)->met;
			zero += of(many, k, i)->met ? of(many, k, i)->accuracy : 0.0;
		}
		assert_true(s->met == met && s->kept == kept && s->promised == promised && s->jobs == JOBS);
		assert_true(fabs(s->accuracy_zero.mean - zero / JOBS) < 1e-12);
		assert_true(fabs(s->met_share.mean - (double)met / JOBS) < 1e-12);
		assert_true(s->met_share.low <= s->met_share.mean && s->met_share.mean <= s->met_share.high);
		assert_true(s->regret >= 0.0);
		assert_int_equal(s->met + s->losses, many->summary[PAPER_COURIER].met + s->wins);
	}
	assert_true(many->summary[PAPER_ORACLE].regret == 0.0);
	assert_true(isnan(many->summary[PAPER_NAIVE].mape));
}

TEST(test_boosting_without_the_load_predicts_worse_than_with_it)
{
	const struct paper_score *without = NULL, *with = NULL;

	for (size_t i = 0; i < result->n_scores; i++) {
		if (!strcmp(result->score[i].policy->name, "boost"))
			without = &result->score[i];
		if (!strcmp(result->score[i].policy->name, "boost-full"))
			with = &result->score[i];
	}
	assert_non_null(without);
	assert_non_null(with);
	assert_true(without->time.mse > with->time.mse);
}

/* ---- the same bytes ---- */

static void text_of(const struct paper_result *r, struct strbuf *out)
{
	struct json_writer w;

	json_begin(&w, out, true);
	paper_json(r, "test", "test", &w);
	paper_jobs_csv(r, out);
	assert_false(out->failed);
}

TEST(test_the_result_does_not_depend_on_the_threads)
{
	struct strbuf a = { 0 }, b = { 0 };
	struct paper_result *again;
	struct err err = { 0 };

	if (run(1, 7, JOBS, &again, &err))
		fail_msg("%s", err.text);
	text_of(result, &a);
	text_of(again, &b);
	assert_string_equal(a.text, b.text);
	strbuf_release(&a);
	strbuf_release(&b);
	paper_free(again);
}

/* ---- what can go wrong ---- */

TEST(test_too_many_jobs_and_missing_tables_are_refused)
{
	const struct cluster machine = { .cores = 4, .slots = 20, .nodes = 1, .memory_mb = INFINITY };
	struct paper_params p = { .world = { .spec = "measured:/nowhere/at/all.csv", .given = &machine } };
	struct paper_result *r = NULL;
	struct err err = { 0 };

	assert_int_equal(run(1, 1, PAPER_MAX_JOBS + 1, &r, &err), -ERR_ARG);
	assert_int_equal(paper_run(&p, &r, &err), -ERR_NOTFOUND);
	assert_null(r);
}

TEST(test_running_out_of_memory_is_an_error_and_leaks_nothing)
{
	/* Ever later calls: reading, the trace, the world; training has tests of its own. */
	for (unsigned long k = 1; k < 300; k += 1 + k / 5) {
		struct paper_result *r = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = run(1, 7, 3, &r, &err);
		assert_true(mem_failed());
		mem_fail_at(0, false);
		if (rc)
			assert_true(err.text[0] && !r);
		paper_free(r);
	}
}
