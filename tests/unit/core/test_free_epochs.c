/* What leaving the number of epochs open is worth, in the world of the measured profile
 * (configs/profiles/two-cores). Models are trained on two of its three replications and their curves; what
 * happens to a job is then looked up in the third. By default the third is replication 3; with
 * FREE_EPOCHS=all each is once, which is the table of docs/MEASURED.md, "Free epochs". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/stats.h"
#include "predictors/data/curves.h"
#include "predictors/search/train.h"
#include "scheduler/core/decide.h"
#include "tests/support/test.h"

#define REPLICATIONS 3
#define EPOCHS 4
#define CONFIDENCE 0.9

/* Limits, as multiples of the median time of the job's runs with 4 epochs in the training
 * replications. */
static const double objective[] = { 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.1, 1.4, 2.0 };
#define N_OBJECTIVES (sizeof objective / sizeof *objective)

static const char *const network[] = { "lenet5", "simplenet" };
static const double cpus[] = { 1, 2, 4 }, njobs[] = { 1, 3, 5 };

struct freedom { /* epochs it may choose */
	const char *name;
	int least, most;
};
static const struct freedom freedom[] = {
	{ "4 epochs", 4, 4 },
	{ "2 epochs", 2, 2 },
	{ "1 to 4 epochs", 1, 4 },
};
enum { FREE = 2, N_POLICIES };

struct counts { /* of one policy */
	double jobs, promised, met; /* a job whose copies fared differently counts by shares */
	double accuracy; /* sum over the met */
	double epochs; /* sum over the promised */
};

static struct csv *runs, *curve;
static struct pool *pool;
static bool play_every; /* each replication as the world once */
static struct counts by_objective[N_POLICIES][N_OBJECTIVES], by_network[N_POLICIES][2], all[N_POLICIES];
static struct counts fixed_at[FREE],
	free_at[FREE]; /* the jobs that a fixed number of epochs was promised for */

struct fit { /* of the model to the world, by epochs */
	double rows, covered, time_share, accuracy;
};
static struct fit fit_at[EPOCHS + 1];

/* ---- the profile, in two parts ---- */

struct part { /* of the profile: without one replication, or that one alone */
	struct schema *schema;
	struct curves *curves;
	struct table *table;
};

static void part_open(struct part *p, const char *exclude)
{
	char text[512];
	struct json *v;
	struct err err = { 0 };

	snprintf(text, sizeof text,
		 "{\"columns\":[{\"name\":\"network\",\"kind\":\"category\"},{\"name\":\"cpus\",\"kind\":"
		 "\"number\"},"
		 "{\"name\":\"njobs\",\"kind\":\"number\"},{\"name\":\"batch\",\"kind\":\"number\"},"
		 "{\"name\":\"epochs\",\"kind\":\"number\"},{\"name\":\"samples\",\"kind\":\"number\"}],"
		 "\"derived\":[{\"name\":\"processes\",\"product\":[\"cpus\",\"njobs\"]}],\"decision\":"
		 "\"batch\","
		 "\"targets\":{\"time\":\"time_s\",\"accuracy\":\"accuracy\"},\"exclude\":{\"replication\":%"
		 "s}}",
		 exclude);
	if (json_parse("schema", text, strlen(text), &v, &err) ||
	    schema_from_json("schema", v, &p->schema, &err) ||
	    curves_join(runs, curve, p->schema, &p->curves, &err) ||
	    table_read(p->curves->csv, p->schema, true, &p->table, &err))
		fail_msg("%s", err.text);
	json_free(v);
}

static void part_close(struct part *p)
{
	table_free(p->table);
	curves_free(p->curves);
	schema_free(p->schema);
}

static double number(const struct part *p, const char *column, size_t row)
{
	return p->table->column[schema_find(p->schema, column)].number[row];
}

static bool is_of(const struct part *p, size_t row, size_t net, double c, double n)
{
	return !strcmp(p->table->column[0].category[row], network[net]) && number(p, "cpus", row) == c &&
	       number(p, "njobs", row) == n;
}

static struct model *train_part(const struct part *p)
{
	static const char *const group[] = { "network", "cpus", "njobs", "batch" };
	struct grid_point time = { .ops = predictor_find("hybrid") };
	struct grid_point accuracy = { .ops = predictor_find("curve") };
	struct grid time_grid = { &time, 1 }, accuracy_grid = { &accuracy, 1 };
	struct train_params params = { .table = p->table,
				       .run = p->curves->run,
				       .grid = &time_grid,
				       .accuracy_grid = &accuracy_grid,
				       .group = group,
				       .n_groups = 4,
				       .split = { .kind = SPLIT_KFOLD, .folds = 2, .seed = 1 },
				       .ctx = { .seed = 1, .pool = pool },
				       .data_name = "two-cores" };
	struct train_report report;
	struct model *m = NULL;
	struct err err = { 0 };

	settings_init(&time.settings, time.ops->spec);
	settings_init(&accuracy.settings, accuracy.ops->spec);
	if (!play_every) { /* quick: fewer trees than a model for use would have */
		settings_parse(&time.settings, "trees=20", NULL);
		settings_parse(&accuracy.settings, "trees=20", NULL);
	}
	if (train_model(&params, &m, &report, &err))
		fail_msg("%s", err.text);
	train_report_release(&report);
	assert_int_equal(model_compile(m, NULL), 0);
	return m;
}

/* ---- one job under one policy ---- */

struct choice {
	double batch, epochs; /* NaN: rejected */
};

static struct choice choose(const struct model *m, const struct freedom *by, const char *job, double slo_s)
{
	static const double epochs[EPOCHS] = { 1, 2, 3, 4 };
	struct choice choice = { NAN, NAN };
	struct job_values v;
	struct decision d;
	struct err err = { 0 };
	char text[128];

	snprintf(text, sizeof text, "%s,samples=12000", job);
	assert_int_equal(job_values_init(&v, m->schema, NULL), 0);
	if (job_values_parse(&v, m->schema, text, &err) ||
	    decide(&(struct decide_params){ .model = m,
					    .job = &v,
					    .epochs = epochs + by->least - 1,
					    .n_epochs = (size_t)(by->most - by->least + 1),
					    .slo_s = slo_s,
					    .confidence = CONFIDENCE },
		   &d, &err))
		fail_msg("%s: %s", text, err.text);
	if (d.chosen >= 0)
		choice = (struct choice){ d.candidate[d.chosen].decision, d.candidate[d.chosen].epochs };
	job_values_release(&v);
	return choice;
}

/* What the copies of that setting met in the world. */
static void look_up(const struct part *world, size_t net, double c, double n, struct choice by, double slo_s,
		    struct counts *out)
{
	double copies = 0.0, met = 0.0, accuracy = 0.0;

	*out = (struct counts){ .jobs = 1.0 };
	if (isnan(by.batch))
		return;
	for (size_t i = 0; i < world->table->n_rows; i++) {
		if (!is_of(world, i, net, c, n) || number(world, "batch", i) != by.batch ||
		    number(world, "epochs", i) != by.epochs)
			continue;
		copies += 1.0;
		if (world->table->time[i] <= slo_s) {
			met += 1.0;
			accuracy += world->table->accuracy[i];
		}
	}
	assert_true(copies > 0.0);
	out->promised = 1.0;
	out->epochs = by.epochs;
	out->met = met / copies;
	out->accuracy = accuracy / copies;
}

static void add(struct counts *to, const struct counts *t)
{
	to->jobs += t->jobs;
	to->promised += t->promised;
	to->met += t->met;
	to->accuracy += t->accuracy;
	to->epochs += t->epochs;
}

static double median_time(const struct part *p, size_t net, double c, double n)
{
	double v[512];
	size_t k = 0;

	for (size_t i = 0; i < p->table->n_rows; i++)
		if (is_of(p, i, net, c, n) && number(p, "epochs", i) == EPOCHS) {
			assert_true(k < 512);
			v[k++] = p->table->time[i];
		}
	return stats_median(v, k);
}

static void play(const struct model *m, const struct part *train, const struct part *world, size_t net,
		 double c, double n)
{
	double unit_s = median_time(train, net, c, n);
	char job[96];

	snprintf(job, sizeof job, "network=%s,cpus=%g,njobs=%g", network[net], c, n);
	for (size_t o = 0; o < N_OBJECTIVES; o++) {
		double slo_s = objective[o] * unit_s;
		struct counts t[N_POLICIES];

		for (size_t p = 0; p < N_POLICIES; p++) {
			look_up(world, net, c, n, choose(m, &freedom[p], job, slo_s), slo_s, &t[p]);
			add(&by_objective[p][o], &t[p]);
			add(&by_network[p][net], &t[p]);
			add(&all[p], &t[p]);
		}
		for (size_t p = 0; p < FREE; p++)
			if (t[p].promised > 0.0) {
				add(&fixed_at[p], &t[p]);
				add(&free_at[p], &t[FREE]);
			}
	}
}

/* How well the model knows the world, at each number of epochs. */
static void judge(const struct model *m, const struct part *world)
{
	double *x, q;

	assert_int_equal(features_encode_table(m->features, world->table, &x, NULL), 0);
	assert_int_equal(conformal_quantile(&m->time.conformal, CONFIDENCE, &q, NULL), 0);
	for (size_t i = 0; i < world->table->n_rows; i++) {
		const double *at = x + i * m->features->n;
		struct fit *f = &fit_at[(int)number(world, "epochs", i)];
		double time, accuracy;

		predictor_predict(&m->time.predictor, at, 1, &time);
		predictor_predict(&m->accuracy.predictor, at, 1, &accuracy);
		f->rows += 1.0;
		f->covered += world->table->time[i] <= model_upper(m, &m->time, at, q, time);
		f->time_share += fabs(time / world->table->time[i] - 1.0);
		f->accuracy += fabs(accuracy - world->table->accuracy[i]);
	}
	free(x);
}

/* ---- the claims ---- */

static int play_all(void **state)
{
	const char *asked = getenv("FREE_EPOCHS");
	struct err err = { 0 };

	(void)state;
	play_every = asked && !strcmp(asked, "all");
	if (pool_new(2, &pool, &err) || csv_read_file("configs/profiles/two-cores/runs.csv", &runs, &err) ||
	    csv_read_file("configs/profiles/two-cores/curves.csv", &curve, &err)) {
		printf("%s\n", err.text);
		return -1;
	}
	for (int r = play_every ? 0 : REPLICATIONS - 1; r < REPLICATIONS; r++) {
		static const char *const others[] = { "[\"2\",\"3\"]", "[\"1\",\"3\"]", "[\"1\",\"2\"]" };
		struct part train, world;
		struct model *m;
		char held_out[16];

		snprintf(held_out, sizeof held_out, "\"%d\"", r + 1);
		part_open(&train, held_out);
		part_open(&world, others[r]);
		m = train_part(&train);
		judge(m, &world);
		for (size_t net = 0; net < 2; net++)
			for (size_t c = 0; c < 3; c++)
				for (size_t n = 0; n < 3; n++)
					play(m, &train, &world, net, cpus[c], njobs[n]);
		model_free(m);
		part_close(&train);
		part_close(&world);
	}
	return 0;
}

static int forget_all(void **state)
{
	(void)state;
	csv_free(runs);
	csv_free(curve);
	pool_free(pool);
	return 0;
}

TEST_GROUP(play_all, forget_all);

static double attainment(const struct counts *t)
{
	return t->met / t->promised; /* NaN: nothing was promised */
}

static void print_row(const char *what, const char *by, const struct counts *t)
{
	char kept[16] = "-", epochs[16] = "-", accuracy[16] = "-";

	if (t->promised > 0.0) {
		snprintf(kept, sizeof kept, "%.1f %%", 100 * attainment(t));
		snprintf(epochs, sizeof epochs, "%.1f", t->epochs / t->promised);
	}
	if (t->met > 0.0)
		snprintf(accuracy, sizeof accuracy, "%.3f", t->accuracy / t->met);
	printf("| %s | %s | %.0f | %.1f %% | %s | %s | %s | %.3f |\n", what, by, t->jobs,
	       100 * t->promised / t->jobs, kept, epochs, accuracy, t->accuracy / t->jobs);
}

static void print_head(void)
{
	printf("| jobs | epochs | number | promised | attainment | mean epochs | accuracy of the met | the "
	       "same, others "
	       "0 |\n|---|---|---|---|---|---|---|---|\n");
}

TEST(test_free_epochs_raise_accuracy_at_the_same_objectives)
{
	print_head();
	for (size_t p = 0; p < N_POLICIES; p++)
		print_row("all", freedom[p].name, &all[p]);
	for (size_t net = 0; net < 2; net++)
		for (size_t p = 0; p < N_POLICIES; p++)
			print_row(network[net], freedom[p].name, &by_network[p][net]);
	for (size_t o = 0; o < N_OBJECTIVES; o++)
		for (size_t p = 0; p < N_POLICIES; p++) {
			char what[32];

			snprintf(what, sizeof what, "%g x", objective[o]);
			print_row(what, freedom[p].name, &by_objective[p][o]);
		}
	for (size_t p = 0; p < FREE; p++) {
		assert_true(all[FREE].accuracy > 1.2 * all[p].accuracy);
		assert_true(all[FREE].met > 1.2 * all[p].met); /* of the same jobs */
	}
	assert_true(attainment(&all[FREE]) >= CONFIDENCE);
}

/* A policy that promises less has the easier promises; these are the same ones. */
TEST(test_where_fixed_epochs_are_promised_free_ones_are_no_worse)
{
	print_head();
	for (size_t p = 0; p < FREE; p++) {
		char what[32];

		snprintf(what, sizeof what, "promised at %d", freedom[p].most);
		print_row(what, freedom[p].name, &fixed_at[p]);
		print_row(what, freedom[FREE].name, &free_at[p]);
		assert_true(free_at[p].promised == fixed_at[p].promised);
		/* free ones use up the time there is: one of a hundred promises more may be late by chance */
		assert_true(free_at[p].met >= fixed_at[p].met - 0.01 * fixed_at[p].promised);
		assert_true(attainment(&free_at[p]) >= CONFIDENCE);
		assert_true(free_at[p].accuracy > fixed_at[p].accuracy);
	}
}

TEST(test_bounds_hold_at_every_number_of_epochs)
{
	printf("| epochs | rows | MAPE of the time | covered at 90 %% | MAE of the accuracy "
	       "|\n|---|---|---|---|---|\n");
	for (int e = 1; e <= EPOCHS; e++) {
		const struct fit *f = &fit_at[e];

		printf("| %d | %.0f | %.1f %% | %.1f %% | %.4f |\n", e, f->rows,
		       100 * f->time_share / f->rows, 100 * f->covered / f->rows, f->accuracy / f->rows);
		assert_true(f->covered / f->rows >= CONFIDENCE - 0.02); /* one replication is one draw */
		assert_true(f->accuracy / f->rows < 0.03);
	}
}
