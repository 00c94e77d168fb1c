/* The world measured: what was measured happens again, and what lies between is interpolated. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/strbuf.h"
#include "common/csv.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/data/curves.h"
#include "predictors/data/table.h"
#include "sim/world/world.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define RUNS "configs/profiles/two-cores/runs.csv"
#define CURVES "configs/profiles/two-cores/curves.csv"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* ---- a trace by hand: a kind for each combination that a test asks for ---- */

enum { MOST_KINDS = 64, COLUMNS = 3 };
static char *column[COLUMNS] = { "network", "epochs", "samples" };

struct by_hand {
	struct trace trace;
	struct trace_kind kind[MOST_KINDS];
	struct trace_job job[MOST_KINDS];
	char *value[MOST_KINDS][COLUMNS];
};

static void hand_init(struct by_hand *h)
{
	memset(h, 0, sizeof *h);
	h->trace.name = "hand.csv";
	h->trace.column = column;
	h->trace.n_columns = COLUMNS;
	h->trace.kind = h->kind;
	h->trace.job = h->job;
}

static uint32_t hand_kind(struct by_hand *h, char *network, uint32_t cpus, char *epochs, char *samples)
{
	uint32_t i = (uint32_t)h->trace.n_kinds++;

	assert_true(i < MOST_KINDS);
	h->value[i][0] = network;
	h->value[i][1] = epochs;
	h->value[i][2] = samples;
	h->kind[i] = (struct trace_kind){
		.value = h->value[i], .cpus = cpus, .epochs_from = NAN, .epochs_to = NAN
	};
	h->job[i] = (struct trace_job){ .id = i + 1, .kind = i, .line = i + 2 };
	h->trace.n_jobs++;
	return i;
}

static const struct cluster two_cores = { .cores = 2.0, .slots = 4, .nodes = 1, .memory_mb = INFINITY };

static struct world *opened(const struct world_params *p)
{
	struct err err = { 0 };
	struct world *w = NULL;

	if (world_open(p, &w, &err))
		fail_msg("%s: %s", p->spec, err.text);
	return w;
}

static struct world *two_core_world(const struct by_hand *h, size_t hold_out)
{
	struct world_params p = {
		.spec = "measured:" RUNS, .given = &two_cores, .trace = &h->trace, .hold_out = hold_out
	};

	return opened(&p);
}

static struct world_run *new_run(const struct world *w, size_t fold)
{
	struct world_run *r = NULL;

	assert_int_equal(world_run_new(w, fold, &r, NULL), 0);
	return r;
}

static struct world_job plain_job(uint64_t id, uint32_t kind, double batch, double time_u)
{
	struct world_job j = { .id = id, .kind = kind, .batch = batch, .epochs = NAN };

	j.draws = (struct draws){ .time_u = time_u, .accuracy_u = 0.5, .slow = 1.0, .fails_at = NAN };
	return j;
}

/* Seconds that n equal jobs take which start together, all with the same draws. */
static double together(const struct world *w, size_t fold, struct world_job j, uint64_t n)
{
	struct world_run *r = new_run(w, fold);
	struct world_end e = { 0 };
	struct err err = { 0 };

	for (uint64_t i = 1; i <= n; i++) {
		j.id = i;
		if (world_run_start(r, 0, &j, &err))
			fail_msg("%s", err.text);
	}
	for (uint64_t i = 1; i <= n; i++) {
		assert_true(world_run_end(r, &e));
		assert_int_equal(e.id, i);
		close_to(e.njobs, (double)n, 1e-9);
	}
	assert_false(world_run_end(r, &e));
	world_run_free(r);
	return 1e-9 * (double)e.at_ns;
}

/* ---- the table, read once more and on its own ---- */

static struct csv *runs;

static int read_runs(void **state)
{
	(void)state;
	return csv_read_file(RUNS, &runs, NULL);
}

static int free_runs(void **state)
{
	(void)state;
	csv_free(runs);
	return 0;
}

TEST_GROUP(read_runs, free_runs);

static double number(const struct csv *t, size_t row, const char *name)
{
	double v = NAN;

	assert_int_equal(csv_number(t, row, (size_t)csv_column(t, name), &v, NULL), 0);
	return v;
}

static const char *text(const struct csv *t, size_t row, const char *name)
{
	return csv_cell(t, row, (size_t)csv_column(t, name));
}

/* The values of a column among the replications [from, to], ascending. njobs 0: of all. */
static size_t measured(const char *what, const char *network, double cpus, double batch, double njobs,
		       double from, double to, double *out)
{
	size_t n = 0;

	for (size_t i = 0; i < runs->n_rows; i++)
		if (!strcmp(text(runs, i, "network"), network) && number(runs, i, "cpus") == cpus &&
		    number(runs, i, "batch") == batch &&
		    (njobs == 0.0 || number(runs, i, "njobs") == njobs) &&
		    number(runs, i, "replication") >= from && number(runs, i, "replication") <= to)
			out[n++] = number(runs, i, what);
	stats_sort(out, n);
	return n;
}

static double quantile(const double *v, size_t n, double u)
{
	double h = u * (double)(n - 1);
	size_t i = (size_t)h;

	return i + 1 < n ? v[i] + (h - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

/* What a job of the profile takes among njobs, of replications [from, to]: never less than with fewer
 * jobs. */
static double expected(const char *network, double cpus, double batch, double njobs, double from, double to,
		       double u)
{
	double v[64], most = 0.0;

	for (double k = 1.0; k <= njobs; k += 2.0)
		most = fmax(most, quantile(v, measured("time_s", network, cpus, batch, k, from, to, v), u));
	return most;
}

static char *const networks[] = { "lenet5", "simplenet" };

/* ---- what happens ---- */

TEST(test_a_job_alone_takes_exactly_a_measured_time)
{
	struct by_hand h;
	struct world *w;
	double v[8];

	hand_init(&h);
	for (int n = 0; n < 2; n++)
		for (uint32_t cpus = 1; cpus <= 4; cpus *= 2)
			hand_kind(&h, networks[n], cpus, "4", "12000");
	w = two_core_world(&h, 0);
	assert_int_equal(world_folds(w), 3);
	for (uint32_t k = 0; k < 6; k++)
		for (double batch = 64.0; batch <= 512.0; batch *= 2.0)
			for (size_t fold = 0; fold < 3; fold++) {
				double r = (double)fold + 1.0;
				double took = together(w, fold, plain_job(1, k, batch, 0.77), 1);

				assert_int_equal(measured("time_s", networks[k / 3], h.kind[k].cpus, batch,
							  1.0, r, r, v),
						 1);
				if (!(took >= v[0] * (1 - 1e-15) && took <= v[0] + 2e-9))
					fail_msg("took %.12f, measured %.12f", took, v[0]);
			}
	world_free(w);
}

TEST(test_draws_draws_the_measured_quantiles_at_every_load)
{
	struct by_hand h;
	struct world *w;

	hand_init(&h);
	hand_kind(&h, "lenet5", 2, "4", "12000");
	hand_kind(&h, "simplenet", 4, "4", "12000");
	w = two_core_world(&h, 2);
	for (uint32_t k = 0; k < 2; k++)
		for (double njobs = 1.0; njobs <= 5.0; njobs += 2.0)
			for (double u = 0.0; u < 1.0;
			     u += 1.0 / 16.0) /* replications 1 and 2 happen in fold 0 */
				close_to(together(w, 0, plain_job(1, k, 128.0, u), (uint64_t)njobs),
					 expected(networks[k], h.kind[k].cpus, 128.0, njobs, 1.0, 2.0, u),
					 1e-8);
	world_free(w);
}

TEST(test_five_jobs_with_their_own_draws_take_about_what_five_took)
{
	struct by_hand h;
	struct world *w;
	double sum = 0.0, worst = 0.0, v[64];
	int n = 0;

	hand_init(&h);
	for (int i = 0; i < 6; i++)
		hand_kind(&h, networks[i / 3], (const uint32_t[]){ 1, 2, 4 }[i % 3], "4", "12000");
	w = two_core_world(&h, 1);
	for (uint32_t k = 0; k < 6; k++)
		for (double batch = 64.0; batch <= 512.0; batch *= 2.0, n++) {
			struct world_run *r = new_run(w, 1);
			double mean = 0.0, ratio;
			struct world_end e;

			for (uint64_t id = 1; id <= 5; id++) {
				struct world_job j = plain_job(id, k, batch, 0.0);

				j.draws = draws_of(NULL, 7, id + 5 * (uint64_t)n);
				assert_int_equal(world_run_start(r, 0, &j, NULL), 0);
			}
			while (world_run_end(r, &e))
				mean += 1e-9 * (double)e.at_ns / 5.0;
			world_run_free(r);
			ratio = mean / stats_mean(v, measured("time_s", networks[k / 3], h.kind[k].cpus,
							      batch, 5.0, 2.0, 2.0, v));
			sum += ratio;
			worst = fmax(worst, fabs(ratio - 1.0));
		}
	printf("five jobs: %.3f of what was measured on average, off by %.2f at most\n", sum / n, worst);
	/* those that are left when the first have ended go faster than the measured ones did: a little below
	 * 1 */
	assert_true(sum / n > 0.9 && sum / n < 1.05);
	assert_true(worst < 0.3);
	world_free(w);
}

TEST(test_accuracies_are_the_measured_ones_whatever_the_load)
{
	struct by_hand h;
	struct world *w;
	double v[64];
	size_t n;

	hand_init(&h);
	hand_kind(&h, "lenet5", 2, "4", "12000");
	w = two_core_world(&h, 1);
	n = measured("accuracy", "lenet5", 2.0, 256.0, 0.0, 3.0, 3.0, v);
	assert_int_equal(n, 9);
	for (size_t i = 0; i < n; i++) {
		struct world_job j = plain_job(1, 0, 256.0, 0.4);
		struct world_run *r = new_run(w, 2);
		struct world_end e;

		j.draws.accuracy_u = (double)i / (double)(n - 1);
		assert_int_equal(world_run_start(r, 0, &j, NULL), 0);
		assert_true(world_run_end(r, &e));
		close_to(e.accuracy, v[i], 1e-12);
		assert_false(e.failed);
		world_run_free(r);
	}
	world_free(w);
}

TEST(test_between_settings_the_logarithm_of_time_is_linear)
{
	struct by_hand h;
	struct world *w;
	double two, four, took, part = log(1.5) / log(2.0);

	hand_init(&h);
	hand_kind(&h, "lenet5", 3, "4", "12000");
	hand_kind(&h, "lenet5", 2, "4", "12000");
	w = two_core_world(&h, 1);
	for (int i = 0; i < 4; i++) {
		double batch = 64.0 * (1 << i);

		two = expected("lenet5", 2.0, batch, 1.0, 1.0, 1.0, 0.5);
		four = expected("lenet5", 4.0, batch, 1.0, 1.0, 1.0, 0.5);
		took = together(w, 0, plain_job(1, 0, batch, 0.5), 1);
		assert_true(took >= fmin(two, four) && took <= fmax(two, four));
		close_to(log(took), log(two) * (1.0 - part) + log(four) * part, 1e-7);
	}
	/* cpus 2 was measured, batch 96 was not; both together: three numbers from four corners */
	took = together(w, 0, plain_job(1, 1, 96.0, 0.5), 1);
	close_to(log(took),
		 log(expected("lenet5", 2.0, 64.0, 1.0, 1.0, 1.0, 0.5)) * (1.0 - part) +
			 log(expected("lenet5", 2.0, 128.0, 1.0, 1.0, 1.0, 0.5)) * part,
		 1e-7);
	took = together(w, 0, plain_job(1, 0, 96.0, 0.5), 1);
	two = together(w, 0, plain_job(1, 0, 64.0, 0.5), 1);
	four = together(w, 0, plain_job(1, 0, 128.0, 0.5), 1);
	close_to(log(took), log(two) * (1.0 - part) + log(four) * part, 1e-7);
	world_free(w);
}

TEST(test_more_jobs_never_make_a_job_faster)
{
	struct by_hand h;
	struct world *w;

	hand_init(&h);
	hand_kind(&h, "lenet5", 1, "4", "12000");
	hand_kind(&h, "simplenet", 3, "4", "12000");
	w = two_core_world(&h, 1);
	for (uint32_t k = 0; k < 2; k++)
		for (double u = 0.0; u < 1.0; u += 0.1) {
			double last = 0.0;

			for (uint64_t n = 1; n <= 12; n++) {
				double took = together(w, 0, plain_job(1, k, 100.0, u), n);

				assert_true(took >= last * (1.0 - 1e-9) && isfinite(took));
				last = took;
			}
		}
	world_free(w);
}

TEST(test_draws_slows_down_and_fails_jobs_and_the_machine_drifts)
{
	struct disturbances drift = { .drift = 0.5, .drift_at_s = 0.1 };
	struct by_hand h;
	struct world_params p = {
		.spec = "measured:" RUNS, .given = &two_cores, .trace = &h.trace, .disturbances = &drift
	};
	struct world_job j = plain_job(1, 0, 64.0, 0.5);
	struct world *w;
	struct world_run *r;
	struct world_end e;
	double alone;

	hand_init(&h);
	hand_kind(&h, "lenet5", 2, "4", "12000");
	w = two_core_world(&h, 1);
	alone = together(w, 0, j, 1);
	j.draws.slow = 2.5;
	close_to(together(w, 0, j, 1), 2.5 * alone, 1e-8);
	j.draws.slow = 1.0;
	j.draws.fails_at = 0.25;
	r = new_run(w, 0);
	assert_int_equal(world_run_start(r, 1000, &j, NULL), 0);
	assert_true(world_run_end(r, &e));
	assert_true(e.failed && isnan(e.accuracy));
	close_to(1e-9 * (double)(e.at_ns - 1000), 0.25 * alone, 1e-8);
	world_run_free(r);
	world_free(w);
	w = opened(&p);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 1), 0.1 + (alone - 0.1) * 1.5, 1e-8);
	world_free(w);
}

TEST(test_other_cores_change_the_load_that_counts)
{
	struct cluster eight = two_cores, one = two_cores;
	struct by_hand h;
	struct world_params p = { .spec = "measured:" RUNS, .given = &two_cores, .trace = &h.trace };
	double t1, t3, t5;
	struct world *w;

	eight.cores = 8.0;
	one.cores = 1.0;
	hand_init(&h);
	hand_kind(&h, "simplenet", 1, "4", "12000");
	t1 = expected("simplenet", 1.0, 64.0, 1.0, 1.0, 1.0, 0.5);
	t3 = expected("simplenet", 1.0, 64.0, 3.0, 1.0, 1.0, 0.5);
	t5 = expected("simplenet", 1.0, 64.0, 5.0, 1.0, 1.0, 0.5);
	p.cluster = &eight;
	w = opened(&p);
	assert_true(world_cluster(w)->cores == 8.0 && world_given(w)->cores == 2.0);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 1), t1, 1e-8);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 4), t1, 1e-8);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 10), t1 + 0.75 * (t3 - t1),
		 1e-8); /* like 2.5 processes */
	world_free(w);
	p.cluster = &one;
	w = opened(&p);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 2), t3 + 0.5 * (t5 - t3),
		 1e-8); /* like 4 processes */
	world_free(w);
}

TEST(test_a_copy_goes_on_as_the_original_does)
{
	struct by_hand h;
	struct world *w;
	struct world_run *a, *b;

	hand_init(&h);
	for (int i = 0; i < 6; i++)
		hand_kind(&h, networks[i / 3], (const uint32_t[]){ 1, 2, 4 }[i % 3], "4", "12000");
	w = two_core_world(&h, 1);
	a = new_run(w, 0);
	b = new_run(w, 1); /* the fold goes with the copy */
	for (uint64_t id = 1; id <= 60; id++) {
		struct world_job j = plain_job(id, (uint32_t)(id % 6), 64.0 * (double)(1 << id % 4), 0.0);
		struct world_end x, y;
		int64_t now = 0;

		j.draws = draws_of(NULL, 3, id);
		if (id > 7) {
			assert_int_equal(world_run_next(a), world_run_next(b));
			assert_true(world_run_end(a, &x) && world_run_end(b, &y));
			assert_memory_equal(&x, &y, sizeof x);
			now = x.at_ns;
		}
		assert_int_equal(world_run_start(a, now, &j, NULL), 0);
		if (id <= 20 || id % 10 == 0)
			assert_int_equal(world_run_copy(b, a, NULL), 0);
		else
			assert_int_equal(world_run_start(b, now, &j, NULL), 0);
	}
	assert_true(world_run_busy_s(a) == world_run_busy_s(b) && world_run_events(a) == world_run_events(b));
	world_run_free(a);
	world_run_free(b);
	world_free(w);
}

/* ---- sides ---- */

TEST(test_training_and_world_have_no_row_in_common_and_all_together)
{
	struct by_hand h;
	struct world *w;
	char said[512];

	hand_init(&h);
	hand_kind(&h, "lenet5", 1, "4", "12000");
	for (size_t hold_out = 1; hold_out <= 2; hold_out++) {
		int *learnt = calloc(runs->n_rows + 2, sizeof *learnt);

		w = two_core_world(&h, hold_out);
		for (size_t fold = 0; fold < world_folds(w); fold++) {
			struct csv *t = NULL;

			assert_int_equal(world_training(w, fold, 1, &t, NULL), 0);
			assert_int_equal(t->n_columns, runs->n_columns);
			assert_int_equal(t->n_rows, 216 * (3 - hold_out));
			for (size_t i = 0; i < t->n_rows; i++) {
				/* held out are the replications fold + 1, ... around the circle */
				size_t away = ((size_t)number(t, i, "replication") + 2 - fold) % 3,
				       row = t->line[i] - 2;

				assert_true(away >= hold_out);
				for (size_t c = 0; c < t->n_columns; c++)
					assert_string_equal(csv_cell(t, i, c), csv_cell(runs, row, c));
				learnt[row]++;
			}
			csv_free(t);
		}
		for (size_t i = 0; i < runs->n_rows; i++)
			assert_int_equal(learnt[i], 3 - hold_out);
		free(learnt);
		world_split_text(w, 2, said, sizeof said);
		assert_string_equal(
			said,
			hold_out == 1
				? "replication 3 of 3 happens (216 rows), 1, 2 are learnt from (432 rows)"
				: "replications 1, 3 of 3 happen (432 rows), 2 is learnt from (216 rows)");
		world_free(w);
	}
}

TEST(test_the_world_describes_itself)
{
	struct by_hand h;
	struct world *w;
	struct strbuf out = { 0 };
	struct json_writer j;
	const double *batch;

	hand_init(&h);
	hand_kind(&h, "lenet5", 1, "4", "12000");
	w = two_core_world(&h, 1);
	assert_string_equal(world_name(w), "measured");
	assert_int_equal(world_batches(w, &batch), 4);
	assert_true(batch[0] == 64.0 && batch[3] == 512.0);
	json_begin(&j, &out, false);
	json_open(&j, '{');
	world_describe(w, &j);
	json_close(&j, '}');
	assert_string_equal(
		strbuf_text(&out),
		"{\"title\":\"what happened in an observation table happens again\",\"table\":\"" RUNS
		"\",\"curves\":false,"
		"\"rows\":648,\"rows_left_out\":0,\"settings\":24,\"replications\":3,\"split\":"
		"\"replications\",\"folds\":3,"
		"\"levels\":{\"cpus\":[1,2,4],\"batch\":[64,128,256,512],\"epochs\":[4],\"samples\":[12000]},"
		"\"measured_on\":{\"cores\":2,\"slots\":4,\"nodes\":1}}");
	strbuf_release(&out);
	world_free(w);
}

/* `profile` may have measured some settings beside jobs of another width, too. */
TEST(test_mixed_rows_do_not_happen)
{
	char path[400], spec[500], *table;
	struct world_params p = { .spec = spec, .given = &two_cores };
	struct world *plain, *mixed;
	struct strbuf more = { 0 };
	struct by_hand h;
	size_t len;

	hand_init(&h);
	hand_kind(&h, "lenet5", 2, "4", "12000");
	p.trace = &h.trace;
	assert_int_equal(io_read_file(RUNS, 1 << 22, &table, &len, NULL), 0);
	strbuf_add(&more, table, len);
	for (int i = 0; i < 3; i++) /* a job with 2 cpus beside one with 1: 3 processes */
		strbuf_printf(&more,
			      "lenet5,2,2,64,4,12000,%d,0.9,3,90,0,90,,6,%d,1,ok,2026-11-16T03:08:42Z\n",
			      50 + i, i + 1);
	snprintf(path, sizeof path, "%s", support_path(support_temp_dir(), "mixed.csv"));
	assert_int_equal(io_write_file(path, more.text, more.len, NULL), 0);
	snprintf(spec, sizeof spec, "measured:%s", path);
	mixed = opened(&p);
	plain = two_core_world(&h, 0);
	for (size_t fold = 0; fold < 3; fold++)
		for (uint64_t n = 1; n <= 2; n++)
			assert_true(together(mixed, fold, plain_job(1, 0, 64.0, 0.7), n) ==
				    together(plain, fold, plain_job(1, 0, 64.0, 0.7), n));
	world_free(mixed);
	world_free(plain);
	strbuf_release(&more);
	free(table);
}

/* ---- curves ---- */

TEST(test_with_curves_fewer_epochs_are_known_too)
{
	struct by_hand h;
	struct world_params p = { .spec = "measured:" RUNS "+" CURVES,
				  .given = &two_cores,
				  .trace = &h.trace };
	struct world_job j = plain_job(1, 0, 128.0, 0.5);
	struct csv *t = NULL;
	struct world *w;
	double last = 0.0;

	hand_init(&h);
	hand_kind(&h, "lenet5", 2, NULL, "12000");
	h.kind[0].epochs_from = 1.0;
	h.kind[0].epochs_to = 4.0;
	hand_kind(&h, "lenet5", 2, "2", "12000");
	w = opened(&p);
	for (j.epochs = 1.0; j.epochs <= 4.0; j.epochs += 1.0) {
		double took = together(w, 0, j, 1);

		assert_true(took > last);
		last = took;
	}
	close_to(last, expected("lenet5", 2.0, 128.0, 1.0, 1.0, 1.0, 0.5), 1e-8);
	j.epochs = 2.0;
	last = together(w, 0, j, 1);
	j.epochs = NAN;
	j.kind = 1;
	close_to(together(w, 0, j, 1), last, 1e-12);
	assert_int_equal(world_training(w, 0, 1, &t, NULL), 0);
	assert_int_equal(t->n_rows, 4 * 432);
	for (size_t i = 0; i < t->n_rows; i++) {
		size_t run = (size_t)number(t, i, "run_of");

		assert_true(run < t->n_rows && number(t, run, "epochs") == 4.0 &&
			    number(t, run, "run_of") == (double)run);
		for (int c = 0; c < 6; c++) {
			static const char *const same[] = { "network", "cpus",        "njobs",
							    "batch",   "replication", "copy" };

			assert_string_equal(text(t, i, same[c]), text(t, run, same[c]));
		}
		assert_true(number(t, i, "replication") != 1.0);
	}
	csv_free(t);
	world_free(w);
}

/* A copy of the table with the rows of replication 1 alone. */
static void first_replication(const char *from, const char *name, char *out, size_t size)
{
	struct strbuf copy = { 0 };
	struct csv *t = NULL;

	assert_int_equal(csv_read_file(from, &t, NULL), 0);
	for (size_t c = 0; c < t->n_columns; c++)
		strbuf_printf(&copy, "%s%s", c ? "," : "", t->header[c]);
	strbuf_puts(&copy, "\n");
	for (size_t i = 0; i < t->n_rows; i++) {
		if (strcmp(text(t, i, "replication"), "1"))
			continue;
		for (size_t c = 0; c < t->n_columns; c++)
			strbuf_printf(&copy, "%s%s", c ? "," : "", csv_cell(t, i, c));
		strbuf_puts(&copy, "\n");
	}
	snprintf(out, size, "%s", support_path(support_temp_dir(), name));
	assert_int_equal(io_write_file(out, copy.text, copy.len, NULL), 0);
	strbuf_release(&copy);
	csv_free(t);
}

/* With one replication settings are dealt into folds, and fewer epochs are another setting. */
TEST(test_rows_of_a_curve_stay_on_the_side_of_their_run)
{
	char run_file[400], curve_file[400], spec[900];
	struct world_params p = { .spec = spec, .given = &two_cores };
	struct world *w;

	first_replication(RUNS, "runs.csv", run_file, sizeof run_file);
	first_replication(CURVES, "curves.csv", curve_file, sizeof curve_file);
	snprintf(spec, sizeof spec, "measured:%s+%s", run_file, curve_file);
	w = opened(&p);
	assert_true(world_folds(w) >= 3);
	for (size_t fold = 0; fold < world_folds(w); fold++) {
		struct csv *t = NULL;

		assert_int_equal(world_training(w, fold, 1, &t, NULL), 0);
		for (size_t i = 0; i < t->n_rows; i++)
			assert_true(number(t, (size_t)number(t, i, "run_of"), "epochs") == 4.0);
		csv_free(t);
	}
	world_free(w);
}

/* ---- refusals ---- */

static void refused(const struct world_params *p, int code, const char *why)
{
	struct err err = { 0 };
	struct world *w = NULL;
	int rc = world_open(p, &w, &err);

	if (rc != -code || !strstr(err.text, why))
		fail_msg("%s: %d, '%s' does not say '%s'", p->spec, rc, err.text, why);
}

TEST(test_kinds_that_were_not_measured_are_refused_by_line_and_column)
{
	struct by_hand h;
	struct world_params p = { .spec = "measured:" RUNS, .given = &two_cores, .trace = &h.trace };
	static const struct {
		char *network, *epochs, *samples;
		uint32_t cpus;
		const char *why;
	} bad[] = {
		{ "lenet5", "4", "12000", 8,
		  "hand.csv:3: column cpus: 8 is not within what " RUNS " measured, 1 to 4" },
		{ "resnet", "4", "12000", 2,
		  "hand.csv:3: column network: 'resnet' was not measured; " RUNS " has lenet5, simplenet" },
		{ NULL, "4", "12000", 2, "hand.csv:3: column network: not given" },
		{ "lenet5", "7", "12000", 2, "hand.csv:3: column epochs: 7, but " RUNS " measured 4 alone" },
		{ "lenet5", "x", "12000", 2, "hand.csv:3: column epochs: 'x' is not a number" },
		{ "lenet5", "4", "60000", 2, "hand.csv:3: column samples: 60000, but" },
		{ "lenet5", "0", "12000", 2, "hand.csv:3: column epochs: 0, but" },
	};
	double batches[] = { 64.0, 1024.0 };
	struct world *w;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		hand_init(&h);
		hand_kind(&h, "lenet5", 1, NULL, NULL); /* what the table has one value of need not be said */
		hand_kind(&h, bad[i].network, bad[i].cpus, bad[i].epochs, bad[i].samples);
		refused(&p, ERR_FORMAT, bad[i].why);
	}
	hand_init(&h);
	hand_kind(&h, "lenet5", 1, NULL, NULL);
	w = two_core_world(&h, 1);
	world_free(w);
	h.kind[0].batch = batches;
	h.kind[0].n_batches = 2;
	refused(&p, ERR_FORMAT, "hand.csv:2: column batch: 1024 is not within");
	h.kind[0].n_batches = 1;
	h.kind[0].epochs_from = 1.0;
	h.kind[0].epochs_to = 4.0;
	refused(&p, ERR_FORMAT, "with curves");
	h.kind[0].epochs_from = NAN;
	h.kind[0].cpus = 5;
	h.job[0].line = 0;
	refused(&p, ERR_FORMAT, "hand.csv: job 1: column cpus: 5");
}

TEST(test_a_world_without_table_or_machine_is_refused)
{
	struct world_params p = { .given = &two_cores };

	p.spec = "measured";
	refused(&p, ERR_ARG, "write measured:TABLE.csv");
	p.spec = "measured:";
	refused(&p, ERR_ARG, "write measured:TABLE.csv");
	p.spec = "measured:no/such.csv";
	refused(&p, ERR_NOTFOUND, "no/such.csv");
	p.spec = "measured:" RUNS "+no/such.csv";
	refused(&p, ERR_NOTFOUND, "no/such.csv");
	p.spec = "measured:" RUNS;
	p.hold_out = 3;
	refused(&p, ERR_ARG, "3 of its 3 replications");
	p.given = NULL;
	refused(&p, ERR_ARG, "measured on");
}

TEST(test_a_start_that_was_not_measured_is_refused)
{
	struct by_hand h;
	struct world_job j = plain_job(17, 0, 1024.0, 0.5);
	struct world_run *r;
	struct world *w;
	struct err err = { 0 };

	hand_init(&h);
	hand_kind(&h, "lenet5", 2, "4", "12000");
	w = two_core_world(&h, 1);
	r = new_run(w, 0);
	assert_int_equal(world_run_start(r, 0, &j, &err), -ERR_ARG);
	assert_string_equal(err.text, "job 17: batch: 1024 is not within what " RUNS " measured, 64 to 512");
	j.batch = 64.0;
	j.epochs = 2.0;
	assert_int_equal(world_run_start(r, 0, &j, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "job 17: epochs: 2, but"));
	assert_int_equal(world_run_next(r), WORLD_NEVER);
	world_run_free(r);
	world_free(w);
}

/* ---- small tables ---- */

static const char *file_with(const char *contents)
{
	static char spec[600];
	const char *path = support_path(support_temp_dir(), "table.csv");

	assert_int_equal(io_write_file(path, contents, strlen(contents), NULL), 0);
	snprintf(spec, sizeof spec, "measured:%s", path);
	return spec;
}

TEST(test_rows_that_did_not_end_well_are_left_out)
{
	struct by_hand h;
	struct world_params p = { .given = &two_cores, .trace = &h.trace };
	struct csv *t = NULL;
	struct world *w;

	hand_init(&h);
	hand_kind(&h, "a", 1, NULL, NULL);
	p.spec = file_with("network,cpus,njobs,batch,time_s,replication,status\n"
			   "a,1,1,64,3.5,1,ok\n"
			   "a,1,1,64,99,1,failed\n"
			   "a,1,1,64,,1,ok\n"
			   "a,1,1,0,2,1,ok\n"
			   "a,1,1,64,4.5,2,ok\n"
			   "a,1,1,64,77,2,timeout\n");
	w = opened(&p);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.9), 1), 3.5, 1e-8);
	close_to(together(w, 1, plain_job(1, 0, 64.0, 0.9), 1), 4.5, 1e-8);
	assert_int_equal(world_training(w, 0, 1, &t, NULL), 0);
	assert_int_equal(t->n_rows, 1);
	assert_int_equal(t->line[0], 6);
	csv_free(t);
	world_free(w);
	p.spec = file_with("network,cpus,njobs,batch,time_s\na,1,1,64,\n");
	refused(&p, ERR_NODATA, "none of its 1 rows");
	p.spec = file_with("network,cpus,njobs,batch,time_s\na,1,1,64,3\n");
	refused(&p, ERR_NODATA, "too few runs");
}

TEST(test_without_accuracies_there_are_none)
{
	struct by_hand h;
	struct world_params p = { .given = &two_cores, .trace = &h.trace };
	struct world_job j = plain_job(1, 0, 64.0, 0.5);
	struct world_run *r;
	struct world_end e;
	struct world *w;

	hand_init(&h);
	hand_kind(&h, "a", 1, NULL, NULL);
	p.spec = file_with("network,cpus,njobs,batch,time_s,replication\na,1,1,64,3.5,1\na,1,1,64,4.5,2\n");
	w = opened(&p);
	r = new_run(w, 0);
	assert_int_equal(world_run_start(r, 0, &j, NULL), 0);
	assert_true(world_run_end(r, &e));
	assert_true(isnan(e.accuracy) && !e.failed);
	world_run_free(r);
	/* measured at one load alone: beyond the cores, processes share */
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 2), 3.5, 1e-8);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 6), 3.5 * 3.0, 1e-8);
	world_free(w);
}

TEST(test_a_time_that_falls_with_the_load_is_noise)
{
	struct by_hand h;
	struct world_params p = { .given = &two_cores, .trace = &h.trace };
	struct world *w;

	hand_init(&h);
	hand_kind(&h, "a", 1, NULL, NULL);
	p.spec = file_with(
		"network,cpus,njobs,batch,time_s,replication\n"
		"a,1,1,64,3.5,1\na,1,2,64,3.25,1\na,1,4,64,5.5,1\na,1,1,64,4.5,2\na,1,2,64,4.5,2\n");
	w = opened(&p);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 2), 3.5, 1e-8);
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 3), 4.5, 1e-8); /* half way from 3.5 to 5.5 */
	close_to(together(w, 0, plain_job(1, 0, 64.0, 0.5), 5), 6.5, 1e-8); /* and on along that line */
	world_free(w);
}

TEST(test_a_history_has_its_loads_put_together)
{
	struct by_hand h;
	struct world_params p = { .given = &two_cores, .trace = &h.trace };
	struct strbuf out = { 0 };
	struct world *w;
	double last = 0.0;

	hand_init(&h);
	hand_kind(&h, "a", 1, NULL, NULL);
	strbuf_puts(&out, "network,cpus,njobs,batch,time_s,processes,replication\n");
	for (int i = 0; i < 400; i++)
		strbuf_printf(&out, "a,1,1,64,%g,%g,%d\n", 2.0 + 0.01 * i, 1.0 + 0.01 * i, 1 + i % 2);
	p.spec = file_with(strbuf_text(&out));
	strbuf_release(&out);
	w = opened(&p);
	for (uint64_t n = 1; n <= 6; n++) {
		double took = together(w, 0, plain_job(1, 0, 64.0, 0.5), n);

		/* 1 + P, within half a level of the 16; below the first level it is constant */
		assert_true(fabs(took - (1.0 + (double)n)) < 0.15 && took > last);
		last = took;
	}
	world_free(w);
}

/* ---- one replication: the paper's table ---- */

static struct schema *bigdl_schema(void)
{
	struct schema *s = NULL;

	assert_int_equal(schema_read_file("configs/schemas/courier-bigdl.json", &s, NULL), 0);
	return s;
}

TEST(test_one_replication_is_dealt_into_folds_of_settings)
{
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");
	struct cluster machine = { .cores = 48.0, .slots = 48, .nodes = 3, .memory_mb = INFINITY };
	struct by_hand h;
	char spec[600], said[512];
	struct schema *s;
	struct world *w;
	double error[256];
	size_t n = 0, rows = 0;

	if (!path)
		skip();
	s = bigdl_schema();
	snprintf(spec, sizeof spec, "measured:%s", path);
	hand_init(&h);
	for (int i = 0; i < 8; i++)
		hand_kind(&h, networks[i / 4 ? 1 : 0], 1u << i % 4, NULL, NULL);
	w = opened(&(struct world_params){ .spec = spec, .schema = s, .given = &machine, .trace = &h.trace });
	assert_int_equal(world_folds(w), 3);
	world_split_text(w, 1, said, sizeof said);
	assert_non_null(strstr(said, "dealt into 3 folds: the settings of fold 2 happen"));
	printf("%s\n", said);
	for (size_t fold = 0; fold < 3; fold++) {
		struct csv *t = NULL;

		assert_int_equal(world_training(w, fold, 1, &t, NULL), 0);
		rows += t->n_rows;
		/* what is learnt from did not happen: there the world answers from its neighbours, and
		 * should not be far off */
		for (size_t i = 0; i < t->n_rows; i++) {
			uint32_t kind = strcmp(text(t, i, "network"), "lenet5") ? 4 : 0;

			if (number(t, i, "njobs") != 1.0)
				continue;
			while ((double)h.kind[kind].cpus != number(t, i, "cpu"))
				kind++;
			error[n++] =
				fabs(together(w, fold, plain_job(1, kind, number(t, i, "batch"), 0.5), 1) /
					     number(t, i, "time_s") -
				     1.0);
		}
		csv_free(t);
	}
	assert_int_equal(rows, 2 * 89); /* 89 of 96: those that are not suspect */
	stats_sort(error, n);
	printf("%zu settings answered by their neighbours: off by %.3f (median), %.3f at most\n", n,
	       error[n / 2], error[n - 1]);
	assert_true(n > 20 && error[n / 2] < 0.1 && error[n - 1] < 0.5);
	world_free(w);
	schema_free(s);
}

/* Replication 1 has 71 rows and replication 2 has 2: the settings are dealt instead. */
TEST(test_folds_are_of_similar_size_and_every_row_happens_once)
{
	static const size_t copies[] = { 1, 2, 4 };
	struct world_params p = { .given = &two_cores };
	struct strbuf out = { 0 };
	size_t rows = 0, learnt[400] = { 0 };
	char said[512];
	struct world *w;

	strbuf_puts(&out, "network,cpus,njobs,batch,time_s,copy,replication\n");
	for (size_t i = 0; i < 32; i++)
		for (size_t copy = 1; copy <= copies[i % 3] && rows < 73; copy++, rows++)
			strbuf_printf(&out, "%s,%zu,%zu,%zu,%g,%zu,%d\n", i % 2 ? "a" : "b", 1 + i / 2 % 2,
				      copies[i % 3], (size_t)16 << i / 4, 2.0 + 0.01 * (double)i, copy,
				      1 + (rows >= 71));
	assert_int_equal(rows, 73);
	p.spec = file_with(strbuf_text(&out));
	strbuf_release(&out);
	w = opened(&p);
	assert_int_equal(world_folds(w), 3);
	for (size_t fold = 0; fold < 3; fold++) {
		struct csv *t = NULL;

		world_split_text(w, fold, said, sizeof said);
		printf("%s\n", said);
		assert_non_null(strstr(said, "replications of unlike size"));
		assert_int_equal(world_training(w, fold, 1, &t, NULL), 0);
		assert_in_range(t->n_rows, 73 - 28, 73 - 21);
		for (size_t i = 0; i < t->n_rows; i++)
			learnt[t->line[i]]++;
		csv_free(t);
	}
	for (size_t i = 0; i < rows; i++)
		assert_int_equal(learnt[i + 2], 2);
	world_free(w);
}

/* Of the second network there is one setting: its runs are dealt, so that it is in every fold. */
TEST(test_a_lone_setting_is_in_every_fold)
{
	struct by_hand h;
	struct world_params p = { .given = &two_cores, .trace = &h.trace };
	struct strbuf out = { 0 };
	struct world *w;

	hand_init(&h);
	hand_kind(&h, "a", 1, NULL, NULL);
	hand_kind(&h, "b", 1, NULL, NULL);
	strbuf_puts(&out, "network,cpus,njobs,batch,time_s\n");
	for (int i = 0; i < 30; i++)
		strbuf_printf(&out, "a,1,1,%d,%g\nb,1,1,64,%g\n", 32 << i % 6, 2.0 + 0.01 * i,
			      3.0 + 0.01 * i);
	p.spec = file_with(strbuf_text(&out));
	strbuf_release(&out);
	w = opened(&p);
	for (size_t fold = 0; fold < world_folds(w); fold++) {
		double took = together(w, fold, plain_job(1, 1, 64.0, 0.5), 1);

		assert_true(took > 3.1 && took < 3.2);
	}
	world_free(w);
}

/* ---- any table ---- */

static void random_table(struct rng *draw, struct strbuf *out)
{
	unsigned replications = rng_below(draw, 4);
	double holes = 0.6 * rng_uniform(draw);

	strbuf_puts(out, "network,cpus,njobs,batch,time_s,accuracy,replication\n");
	for (int i = 0; i < 2 * 3 * 3 * 3 * 3; i++) {
		int njobs = 1 + i / 6 % 3, cpus = 1 << i / 18 % 3;

		if (rng_uniform(draw) < holes)
			continue;
		strbuf_printf(out, "%s,%d,%d,%d,%g,%.4f,%d\n", networks[i % 2], cpus, njobs,
			      32 << 2 * (i / 2 % 3), exp(3.0 * rng_normal(draw)), rng_uniform(draw),
			      replications ? i / 54 % (int)replications : 0);
	}
}

TEST(test_whatever_the_table_times_are_numbers_that_grow_with_the_load)
{
	struct rng draw = rng_stream(2026, 7);
	int opened_ones = 0, asked = 0;

	for (int round = 0; round < 150; round++) {
		struct by_hand h;
		struct world_params p = { .given = &two_cores, .trace = &h.trace };
		struct strbuf table = { 0 };
		struct world *w = NULL;
		struct err err = { 0 };
		const double *batch;
		size_t n;
		int rc;

		random_table(&draw, &table);
		p.spec = file_with(strbuf_text(&table));
		strbuf_release(&table);
		hand_init(&h);
		hand_kind(&h, networks[rng_below(&draw, 2)], 1 + rng_below(&draw, 4), NULL, NULL);
		rc = world_open(&p, &w, &err);
		if (rc) {
			assert_true(rc == -ERR_FORMAT || rc == -ERR_NODATA);
			continue;
		}
		opened_ones++;
		n = world_batches(w, &batch);
		for (int k = 0; k < 10; k++, asked++) {
			double b = batch[0] * pow(batch[n - 1] / batch[0], rng_uniform(&draw)), last = 0.0;
			struct world_job j = plain_job(1, 0, fmin(b, batch[n - 1]), rng_uniform(&draw));
			size_t fold = rng_below(&draw, (uint32_t)world_folds(w));

			for (uint64_t jobs = 1; jobs <= 40; jobs += 3) {
				double took = together(w, fold, j, jobs);

				assert_true(took > 0.0 && took < 1e9 && took >= last * (1.0 - 1e-9));
				last = took;
			}
		}
		world_free(w);
	}
	printf("%d random tables, %d questions\n", opened_ones, asked);
	assert_true(opened_ones > 80);
}

TEST(test_files_that_cannot_be_read_are_said)
{
	struct world_params p = { .spec = "measured:" RUNS "+" CURVES, .given = &two_cores };
	struct world *w = NULL;
	unsigned long k = 1;

	for (; k < 1000; k++) {
		struct err err = { 0 };
		int rc;

		io_fail_at(k, 5);
		rc = world_open(&p, &w, &err);
		if (!io_failed())
			break;
		io_fail_at(0, 0);
		assert_int_equal(rc, -ERR_IO);
	}
	io_fail_at(0, 0);
	assert_true(k > 2);
	world_free(w);
}

/* ---- without memory ---- */

static int everything(const struct world_params *p, struct err *err)
{
	struct world_job j = plain_job(1, 0, 96.0, 0.5);
	struct world *w = NULL;
	struct world_run *a = NULL, *b = NULL;
	struct csv *t = NULL;
	int rc = world_open(p, &w, err);

	if (!rc)
		rc = world_training(w, 0, 1, &t, err);
	if (!rc)
		rc = world_run_new(w, 0, &a, err);
	if (!rc)
		rc = world_run_new(w, 0, &b, err);
	if (!rc)
		rc = world_run_start(a, 0, &j, err);
	if (!rc)
		rc = world_run_copy(b, a, err);
	csv_free(t);
	world_run_free(a);
	world_run_free(b);
	world_free(w);
	return rc;
}

TEST(test_without_memory_it_says_so_and_leaks_nothing)
{
	struct by_hand h;
	struct world_params p = { .given = &two_cores, .trace = &h.trace };
	struct err err = { 0 };
	unsigned long k = 0;
	int rc = -1;

	hand_init(&h);
	hand_kind(&h, "a", 1, NULL, NULL);
	p.spec = file_with("network,cpus,njobs,batch,time_s,replication\n"
			   "a,1,1,64,3.5,1\na,1,1,128,3.0,1\na,1,2,64,4.5,1\na,1,1,64,4.5,2\na,1,1,128,3.1,"
			   "2\na,1,2,64,5.5,2\n"
			   "a,1,1,256,2.5,1\na,1,1,256,2.4,2\n");
	for (bool forever = false; k < 100000; forever = !forever) {
		k += !forever;
		mem_fail_at(k, forever);
		rc = everything(&p, &err);
		if (!mem_failed())
			break;
		mem_fail_at(0, false);
		assert_int_equal(rc, -ERR_NOMEM);
	}
	mem_fail_at(0, false);
	assert_int_equal(rc, 0);
	assert_true(k > 50);
}

TEST(test_speed)
{
	struct by_hand h;
	struct world *w;
	struct world_run *r;
	struct timespec from, to;
	struct world_end e = { 0 };
	uint64_t n = 200000;

	hand_init(&h);
	for (int i = 0; i < 6; i++)
		hand_kind(&h, networks[i / 3], (const uint32_t[]){ 1, 3, 4 }[i % 3], "4", "12000");
	w = two_core_world(&h, 1);
	r = new_run(w, 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (uint64_t id = 1; id <= n; id++) {
		struct world_job j = plain_job(id, (uint32_t)(id % 6), 64.0 * (double)(1 << id % 4), 0.0);
		int64_t now = e.at_ns;

		j.draws = draws_of(NULL, 3, id);
		if (id > 8) {
			assert_true(world_run_end(r, &e));
			assert_true(e.at_ns >= now);
			now = e.at_ns;
		}
		assert_int_equal(world_run_start(r, now, &j, NULL), 0);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	printf("%.0f jobs per second, 8 at a time\n",
	       (double)n / ((double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec)));
	world_run_free(r);
	world_free(w);
}
