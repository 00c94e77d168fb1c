/* What a newcomer's first tables are worth: models trained on 16 to 500 rows of real measurements decide for
 * jobs that they have not seen, and the runs that were kept aside say what would have happened.
 *
 * Two ways to be new. "contexts": whole contexts (network, cpus, njobs) are kept aside. "replications": one
 * replication of every setting is kept aside. The table is the two-core profile; Courier's published table
 * has one replication, so there only contexts are. Limits lie where the batch matters. The accuracy of a
 * job that misses its limit or is refused counts as 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "common/strbuf.h"
#include "scheduler/core/decide.h"
#include "scheduler/core/policy/recipe.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define CONFIDENCE 0.9
#define BEYOND 1.3 /* of the range of limits, each way */
#define JOBS_A_CONTEXT 20
#define MAX_ROWS 1024
#define N_BATCHES 4

enum held { CONTEXTS, REPLICATIONS };

struct row {
	char line[160]; /* network,cpus,njobs,batch,replication,time_s,accuracy */
	char context[48];
	double batch, time_s, accuracy;
	int replication, cell; /* cell: context x batch */
};

struct world {
	struct row row[MAX_ROWS];
	size_t n, n_contexts;
	char context[64][48], sample[64][160]; /* by context: its columns as settings "a=b,c=d" */
	double mean_s, cores;
	struct schema *schema;
};

struct result { /* sums over jobs */
	double jobs, courier, today, chance, perfect;
	double promised, kept, taken, taken_met; /* taken: by chance */
	double rows, covered, width; /* of 90 % bounds; width: log(bound / actual) */
};

static double cell_number(const struct csv *c, size_t row, const char *name)
{
	int at = csv_column(c, name);
	double v = NAN;

	if (at >= 0)
		assert_int_equal(csv_number(c, row, (size_t)at, &v, NULL), 0);
	return v;
}

static const char *cell_text(const struct csv *c, size_t row, const char *name)
{
	int at = csv_column(c, name);

	return at < 0 ? "" : csv_cell(c, row, (size_t)at);
}

static bool world_open(struct world *w, const char *path, double cores)
{
	struct csv *c = NULL;
	struct err err = { 0 };

	memset(w, 0, sizeof *w);
	w->cores = cores;
	if (csv_read_file(path, &c, &err))
		fail_msg("%s", err.text);
	assert_int_equal(schema_default(&w->schema, &err), 0);
	for (size_t i = 0; i < c->n_rows; i++) {
		struct row *r = &w->row[w->n];
		const char *cpus = cell_text(c, i, csv_column(c, "cpus") < 0 ? "cpu" : "cpus");
		double replication = cell_number(c, i, "replication");
		size_t k = 0;

		if (!strcmp(cell_text(c, i, "suspect"), "yes"))
			continue;
		r->batch = cell_number(c, i, "batch");
		r->time_s = cell_number(c, i, "time_s");
		r->accuracy = cell_number(c, i, "accuracy");
		if (isnan(r->accuracy)) /* Courier's table: 43 values are known as means over the cpus only */
			r->accuracy = cell_number(c, i, "accuracy_mean_over_cpu");
		r->replication = isnan(replication) ? 1 : (int)replication;
		snprintf(r->context, sizeof r->context, "%s,%s,%s", cell_text(c, i, "network"), cpus,
			 cell_text(c, i, "njobs"));
		snprintf(r->line, sizeof r->line, "%s,%s,%s,%g,%d,%.17g,%.17g\n", cell_text(c, i, "network"),
			 cpus, cell_text(c, i, "njobs"), r->batch, r->replication, r->time_s, r->accuracy);
		while (k < w->n_contexts && strcmp(w->context[k], r->context))
			k++;
		if (k == w->n_contexts) {
			memcpy(w->context[w->n_contexts++], r->context, sizeof *w->context);
			snprintf(w->sample[k], sizeof *w->sample, "network=%s,cpus=%s,njobs=%s",
				 cell_text(c, i, "network"), cpus, cell_text(c, i, "njobs"));
		}
		r->cell = (int)k * N_BATCHES + (int)lround(log2(r->batch / 64.0));
		assert_in_range(r->cell, 0, 64 * N_BATCHES - 1);
		w->mean_s += r->time_s;
		w->n++;
	}
	w->mean_s /= (double)w->n;
	csv_free(c);
	return true;
}

/* ---- training ---- */

static struct model *learn(const struct world *w, const uint32_t *row, size_t n, const char *policy,
			   uint64_t seed)
{
	struct train_params p = recipe_params(seed);
	struct policy_choice choice;
	struct recipe recipe;
	struct train_report report;
	struct model *m = NULL;
	struct strbuf text = { 0 };
	struct table *t = NULL;
	struct csv *csv = NULL;
	struct err err = { 0 };
	struct grid *time = NULL, accuracy = { .n = 1 };

	strbuf_printf(&text, "network,cpus,njobs,batch,replication,time_s,accuracy\n");
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&text, "%s", w->row[row[i]].line);
	assert_int_equal(policy_parse(policy, &choice, &err), 0);
	assert_int_equal(recipe_make(choice.policy, NULL, false, &recipe, &err), 0);
	if (choice.policy->or_predictor) /* as `train --policy` does it */
		assert_int_equal(recipe_search_time(choice.policy, w->cores, &time, &err), 0);
	accuracy.point = &recipe.accuracy;
	if (csv_parse("rows", text.text, text.len, &csv, &err) ||
	    table_read(csv, w->schema, TABLE_NEEDS_TARGETS, &t, &err))
		fail_msg("%s", err.text);
	p.table = t;
	p.grid = time ? time : &(struct grid){ &recipe.time, 1 };
	p.accuracy_grid = &accuracy;
	p.data_name = "rows";
	if (train_model(&p, &m, &report, &err))
		fail_msg("%s", err.text);
	train_report_release(&report);
	grid_free(time);
	table_free(t);
	csv_free(csv);
	strbuf_release(&text);
	return m;
}

/* ---- what would have happened ---- */

struct cell {
	uint32_t row[64];
	size_t n;
};

static double gain_of(const struct world *w, const struct cell *cell, double slo_s, struct rng *rng,
		      bool *out_met)
{
	const struct row *r = &w->row[cell->row[rng_below(rng, (uint32_t)cell->n)]];

	*out_met = r->time_s <= slo_s;
	return *out_met ? r->accuracy : 0.0;
}

static double quantile_of(const struct world *w, const struct cell *cell, double share)
{
	double t[64] = { 0 };
	size_t n = cell->n, at;

	for (size_t i = 0; i < n; i++)
		t[i] = w->row[cell->row[i]].time_s;
	stats_sort(t, n);
	at = (size_t)ceil(share * (double)n);
	return t[at ? at - 1 : 0];
}

static double mean_accuracy(const struct world *w, const struct cell *cell)
{
	double sum = 0.0;

	for (size_t i = 0; i < cell->n; i++)
		sum += w->row[cell->row[i]].accuracy;
	return sum / (double)cell->n;
}

static double chance_of(const struct model *m, const struct candidate *c, const double *x, double slo_s)
{
	double best = 0.0;

	for (int percent = 1; percent < 100; percent++) {
		double q;

		if (!conformal_quantile(&m->time.conformal, percent / 100.0, &q, NULL) &&
		    model_upper(m, &m->time, x, q, c->time_s) <= slo_s)
			best = percent / 100.0;
	}
	return best;
}

static void play_job(const struct world *w, const struct model *courier, const struct model *ours, size_t k,
		     const struct cell *cell, double slo_s, struct rng *luck, struct result *out)
{
	static struct decision d;
	double batch[N_BATCHES], best = -1.0, best_accuracy = 0.0;
	struct job_values v;
	struct err err = { 0 };
	struct rng same = *luck;
	bool met;
	int taken = -1;

	for (int b = 0; b < N_BATCHES; b++)
		batch[b] = 64 << b;
	out->jobs++;
	/* courier-like: the expected time */
	assert_int_equal(job_values_init(&v, courier->schema, &err), 0);
	assert_int_equal(job_values_parse(&v, courier->schema, w->sample[k], &err), 0);
	assert_int_equal(decide(&(struct decide_params){ .model = courier,
							 .job = &v,
							 .candidate = batch,
							 .n_candidates = N_BATCHES,
							 .slo_s = NAN,
							 .confidence = CONFIDENCE },
				&d, &err),
			 0);
	for (int b = 0; b < N_BATCHES; b++)
		if (d.candidate[b].time_s <= slo_s && d.candidate[b].accuracy > best) {
			best = d.candidate[b].accuracy;
			taken = b;
		}
	if (taken >= 0)
		out->courier += gain_of(w, &cell[taken], slo_s, &same, &met);
	job_values_release(&v);
	/* ours: a promise, or a chance */
	assert_int_equal(job_values_init(&v, ours->schema, &err), 0);
	assert_int_equal(job_values_parse(&v, ours->schema, w->sample[k], &err), 0);
	assert_int_equal(decide(&(struct decide_params){ .model = ours,
							 .job = &v,
							 .candidate = batch,
							 .n_candidates = N_BATCHES,
							 .slo_s = slo_s,
							 .confidence = CONFIDENCE },
				&d, &err),
			 0);
	same = *luck;
	if (d.chosen >= 0) {
		double gain = gain_of(w, &cell[d.chosen], slo_s, &same, &met);

		out->today += gain;
		out->chance += gain;
		out->promised++;
		out->kept += met;
	} else {
		taken = -1;
		best = 0.0;
		for (int b = 0; b < N_BATCHES; b++) {
			double x[64], value;

			v.number[schema_find(ours->schema, "batch")] = batch[b];
			features_encode_job(ours->features, &v, x);
			value = chance_of(ours, &d.candidate[b], x, slo_s);
			value *= d.candidate[b].accuracy;
			if (value > best) {
				best = value;
				taken = b;
			}
		}
		if (taken >= 0) {
			out->taken++;
			out->chance += gain_of(w, &cell[taken], slo_s, &same, &met);
			out->taken_met += met;
		}
	}
	job_values_release(&v);
	/* a bound that knows the truth, and refuses */
	taken = -1;
	for (int b = 0; b < N_BATCHES; b++)
		if (quantile_of(w, &cell[b], CONFIDENCE) <= slo_s &&
		    mean_accuracy(w, &cell[b]) > best_accuracy) {
			best_accuracy = mean_accuracy(w, &cell[b]);
			taken = b;
		}
	same = *luck;
	if (taken >= 0)
		out->perfect += gain_of(w, &cell[taken], slo_s, &same, &met);
	rng_next(luck);
}

static void measure_bounds(const struct model *m, const struct row *r, double weight, struct result *out)
{
	struct job_values v;
	struct err err = { 0 };
	char text[200];
	double x[64], p, q, upper;
	char network[32], cpus[16], njobs[16];

	assert_int_equal(sscanf(r->context, "%31[^,],%15[^,],%15s", network, cpus, njobs), 3);
	snprintf(text, sizeof text, "network=%s,cpus=%s,njobs=%s,batch=%g", network, cpus, njobs, r->batch);
	assert_int_equal(job_values_init(&v, m->schema, &err), 0);
	assert_int_equal(job_values_parse(&v, m->schema, text, &err), 0);
	features_encode_job(m->features, &v, x);
	job_values_release(&v);
	out->rows += weight;
	predictor_predict(&m->time.predictor, x, 1, &p);
	if (conformal_quantile(&m->time.conformal, CONFIDENCE, &q, NULL))
		return;
	upper = model_upper(m, &m->time, x, q, p);
	out->covered += r->time_s <= upper ? weight : 0.0;
	out->width += weight * log(upper / r->time_s);
}

/* Where the batch matters: between the mean times of the fastest and the slowest candidate of the context,
 * and a little beyond, evenly in the logarithm. */
static double objective_s(const struct world *w, const struct cell *cell, struct rng *rng)
{
	double low = INFINITY, high = 0.0;

	for (int b = 0; b < N_BATCHES; b++) {
		low = fmin(low, quantile_of(w, &cell[b], 0.5));
		high = fmax(high, quantile_of(w, &cell[b], 0.5));
	}
	low = log(low / BEYOND);
	high = log(high * BEYOND);
	return exp(low + (high - low) * rng_uniform(rng));
}

static void play(const struct world *w, enum held held, size_t n, uint64_t draw, struct result *out)
{
	static struct cell cell[64 * N_BATCHES];
	struct rng rng = rng_stream(support_seed(1), draw);
	struct rng once =
		rng_stream(support_seed(1) + 1, draw / 3); /* each context is aside in one of three draws */
	uint32_t row[MAX_ROWS], order[64];
	struct model *courier, *ours;
	size_t n_rows = 0;
	bool aside[64] = { false };

	memset(cell, 0, sizeof cell);
	for (size_t k = 0; k < w->n_contexts; k++)
		order[k] = (uint32_t)k;
	rng_shuffle(&once, order, w->n_contexts);
	for (size_t k = draw % 3; held == CONTEXTS && k < w->n_contexts; k += 3)
		aside[order[k]] = true;
	for (size_t i = 0; i < w->n; i++) {
		const struct row *r = &w->row[i];
		bool test = held == CONTEXTS ? aside[r->cell / N_BATCHES]
					     : r->replication == (int)(draw % 3) + 1;

		if (test)
			cell[r->cell].row[cell[r->cell].n++] = (uint32_t)i;
		else
			row[n_rows++] = (uint32_t)i;
	}
	rng_shuffle(&rng, row, n_rows);
	if (n > n_rows)
		n = n_rows;
	courier = learn(w, row, n, "courier", draw + 1);
	ours = learn(w, row, n, "postrider", draw + 1);
	for (size_t k = 0; k < w->n_contexts; k++) {
		bool whole = true;

		for (int b = 0; b < N_BATCHES; b++)
			whole = whole && cell[k * N_BATCHES + (size_t)b].n > 0;
		for (int j = 0; whole && j < JOBS_A_CONTEXT; j++) {
			double slo_s = objective_s(w, &cell[k * N_BATCHES], &rng);

			play_job(w, courier, ours, k, &cell[k * N_BATCHES], slo_s, &rng, out);
		}
		for (int b = 0; b < N_BATCHES; b++)
			for (size_t i = 0; i < cell[k * N_BATCHES + (size_t)b].n; i++)
				measure_bounds(ours, &w->row[cell[k * N_BATCHES + (size_t)b].row[i]],
					       1.0 / (double)cell[k * N_BATCHES + (size_t)b].n, out);
	}
	model_free(courier);
	model_free(ours);
}

static void show(const char *what, size_t n, const struct result *r)
{
	printf("%-22s %4zu rows: courier-like %.3f, promise or refuse %.3f, with chances %.3f (x%.2f), "
	       "perfect bound %.3f; promised %.0f %%, kept %.1f %%, by chance %.0f %%; bounds cover %.1f %%, "
	       "width x%.2f\n",
	       what, n, r->courier / r->jobs, r->today / r->jobs, r->chance / r->jobs, r->chance / r->courier,
	       r->perfect / r->jobs, 100.0 * r->promised / r->jobs, 100.0 * r->kept / r->promised,
	       100.0 * r->taken / r->jobs, 100.0 * r->covered / r->rows, exp(r->width / r->rows));
	fflush(stdout);
}

/* The bars; returns how many do not hold. Coverage is judged where the issue of small tables is: up to 192
 * rows. */
static int check(const char *what, size_t n, const struct result *r)
{
	double cover = r->covered / r->rows, kept = r->kept / r->promised;
	int broken = 0;

	if (!(r->chance >= 1.10 * r->courier)) {
		printf("%s, %zu rows: %.3f with chances, courier-like %.3f\n", what, n, r->chance / r->jobs,
		       r->courier / r->jobs);
		broken++;
	}
	if (!(kept >= CONFIDENCE - 0.02)) {
		printf("%s, %zu rows: %.1f %% of the promises were kept\n", what, n, 100.0 * kept);
		broken++;
	}
	if (n <= 192 && !(cover >= 0.87 && cover <= 0.95)) {
		printf("%s, %zu rows: bounds hold for %.1f %%\n", what, n, 100.0 * cover);
		broken++;
	}
	return broken;
}

/* The smaller the table, the more one draw differs from the next: with 24 draws of 16 rows the coverage was
 * 91.7, 92.3, 93.3 and 95.4 % under four seeds. */
static uint64_t draws(size_t n)
{
	const char *given = getenv("DRAWS");

	return given ? strtoull(given, NULL, 10) : n <= 24 ? 72 : 24;
}

static void judge(struct world *w, const char *what, enum held held, const size_t *n)
{
	int broken = 0;

	for (; *n; n++) {
		struct result r = { 0 };

		for (uint64_t draw = 0; draw < draws(*n); draw++)
			play(w, held, *n, draw, &r);
		show(what, *n, &r);
		broken += check(what, *n, &r);
	}
	assert_int_equal(broken, 0);
}

static struct world world;

TEST(test_new_contexts_on_the_two_core_profile)
{
	static const size_t n[] = { 16, 24, 48, 96, 192, 500, 0 };

	world_open(&world, "configs/profiles/two-cores/runs.csv", 2.0);
	judge(&world, "two cores, contexts", CONTEXTS, n);
	schema_free(world.schema);
}

TEST(test_new_replications_on_the_two_core_profile)
{
	static const size_t n[] = { 16, 24, 48, 96, 192, 0 };

	world_open(&world, "configs/profiles/two-cores/runs.csv", 2.0);
	judge(&world, "two cores, replications", REPLICATIONS, n);
	schema_free(world.schema);
}

TEST(test_new_contexts_on_the_published_table)
{
	static const size_t n[] = { 16, 24, 48, 0 };
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");

	if (!path)
		skip();
	world_open(&world, path, 0.0);
	judge(&world, "published, contexts", CONTEXTS, n);
	schema_free(world.schema);
}
