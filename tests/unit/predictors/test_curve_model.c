/* The learning curve as a model: what it finds again in worlds with a known law, how it goes on beyond the
 * epochs it has seen, and beside forests on the measured profile. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/data/curves.h"
#include "predictors/data/features.h"
#include "predictors/models/learning_curve.h"
#include "predictors/data/score.h"
#include "tests/support/test.h"

enum { NET, BATCH, AT_EPOCHS, WIDTH };
static const uint8_t world_role[WIDTH] = { ROLE_CATEGORY, ROLE_BATCH, ROLE_EPOCHS };

/* Two networks, the larger one slower and better in the end; iterations to the power `beta` of the batch
 * count. */
static double truth(double net, double batch, double epochs, double beta)
{
	double work = log(epochs * 12000.0) - beta * log(batch) - log(12000.0) + log(64.0) * beta;

	return 0.1 + (net > 0.0 ? 0.85 : 0.8) / (1.0 + exp(-1.2 * (work - (net > 0.0 ? 1.0 : -0.5))));
}

static struct dataset *world(int most_epochs, double beta, double noise, bool falls)
{
	static const double batch[] = { 32, 64, 128, 256, 512 };
	struct rng rng = rng_stream(11, (uint64_t)most_epochs);
	struct dataset *d = calloc(1, sizeof *d);

	d->n_features = WIDTH;
	d->x = calloc((size_t)(2 * 5 * 3 * most_epochs) * WIDTH, sizeof *d->x);
	d->y = calloc((size_t)(2 * 5 * 3 * most_epochs), sizeof *d->y);
	d->role = world_role;
	for (int net = 0; net < 2; net++)
		for (int b = 0; b < 5; b++)
			for (int e = 1; e <= most_epochs; e++)
				for (int copy = 0; copy < 3; copy++) {
					double *x = d->x + d->n_rows * WIDTH, y;

					x[NET] = net;
					x[BATCH] = batch[b];
					x[AT_EPOCHS] = e;
					y = truth(net, batch[b], e, beta) + noise * rng_normal(&rng);
					d->y[d->n_rows++] = falls ? 1.0 - y : y;
				}
	return d;
}

static struct predictor fit(const struct predictor_ops *ops, const char *set, const struct dataset *d)
{
	struct fit_context ctx = { .seed = 1 };
	struct predictor p = { 0 };
	struct settings s;
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if ((*set && settings_parse(&s, set, &err)) || predictor_fit(ops, &s, d, &ctx, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static double at(const struct predictor *p, double net, double batch, double epochs)
{
	double x[WIDTH] = { net, batch, epochs }, out;

	predictor_predict(p, x, 1, &out);
	return out;
}

TEST(test_the_law_of_a_world_is_found_again)
{
	static const double beta[] = { 0.0, 0.5, 1.0 };

	for (size_t k = 0; k < 3; k++) {
		struct dataset *d = world(6, beta[k], 0.01, false);
		struct learning_curve c;

		assert_int_equal(learning_curve_fit(d, &c, NULL), 0);
		assert_true(fabs(c.beta - beta[k]) < 0.05);
		for (size_t i = 0; i < d->n_rows; i += 7) {
			const double *x = d->x + i * WIDTH;
			double position = learning_curve_position(&c, x);

			assert_true(fabs(learning_curve_at(&c, x, position) -
					 truth(x[NET], x[BATCH], x[AT_EPOCHS], beta[k])) < 0.02);
		}
		dataset_free(d);
	}
}

TEST(test_twice_the_epochs_seen_are_predicted_and_a_forest_cannot)
{
	struct dataset *d = world(4, 1.0, 0.02, false);
	struct predictor curve = fit(&curve_ops, "", d);
	struct predictor forest = fit(predictor_find("forest"), "", d);
	double curve_off = 0.0, forest_off = 0.0;

	for (int net = 0; net < 2; net++)
		for (double batch = 32; batch <= 512; batch *= 2) {
			double y = truth(net, batch, 8, 1.0);

			curve_off = fmax(curve_off, fabs(at(&curve, net, batch, 8) - y));
			forest_off = fmax(forest_off, fabs(at(&forest, net, batch, 8) - y));
		}
	assert_true(curve_off < 0.05);
	assert_true(forest_off > 0.1);
	predictor_release(&curve);
	predictor_release(&forest);
	dataset_free(d);
}

TEST(test_more_epochs_are_never_much_worse_and_answers_stay_shares)
{
	struct dataset *d = world(4, 1.0, 0.05, false);
	struct predictor p;

	for (size_t i = 0; i < d->n_rows; i++)
		d->y[i] = fmin(fmax(d->y[i], 0.0), 1.0);
	p = fit(&curve_ops, "", d);
	for (int net = 0; net < 2; net++)
		for (double batch = 16; batch <= 2048; batch *= 2) {
			double most = 0.0;

			for (double e = 1; e <= 4096; e *= 1.5) {
				double y = at(&p, net, batch, e);

				assert_true(y >= 0.0 && y <= 1.0);
				assert_true(y > most - 0.05); /* the noise of one run */
				most = fmax(most, y);
			}
			assert_true(most > 0.75);
		}
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_what_falls_with_training_is_followed_too)
{
	struct dataset *d = world(4, 1.0, 0.01, true);
	struct predictor p = fit(&curve_ops, "", d);

	assert_true(fabs(at(&p, 1, 128, 8) - (1.0 - truth(1, 128, 8, 1.0))) < 0.05);
	assert_true(at(&p, 0, 64, 1) > at(&p, 0, 64, 4));
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_percentages_are_as_good_as_shares)
{
	struct dataset *d = world(4, 1.0, 0.01, false);
	struct predictor p;

	for (size_t i = 0; i < d->n_rows; i++)
		d->y[i] *= 100.0;
	p = fit(&curve_ops, "", d);
	assert_true(fabs(at(&p, 1, 256, 6) - 100.0 * truth(1, 256, 6, 1.0)) < 5.0);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_without_meaning_it_is_a_forest)
{
	struct dataset *d = world(4, 1.0, 0.01, false);
	struct predictor p;
	struct learning_curve c;
	double *out = calloc(d->n_rows, sizeof *out);

	d->role = NULL;
	assert_int_equal(learning_curve_fit(d, &c, NULL), 0);
	assert_true(c.range == 0.0);
	p = fit(&curve_ops, "min_samples_leaf=1", d);
	predictor_predict(&p, d->x, d->n_rows, out);
	assert_true(score_of(d->y, out, d->n_rows).r2 > 0.99);
	predictor_release(&p);
	free(out);
	dataset_free(d);
}

/* ---- the measured profile: the table of docs/MEASURED.md ---- */

struct profile {
	struct csv *runs, *curve;
	struct schema *schema;
	struct curves *curves;
	struct table *table;
	struct features *features;
	struct dataset data;
	uint8_t role[16];
	size_t network, batch, epochs, cpus, njobs; /* features */
};

static size_t feature_at(const struct profile *p, const char *name)
{
	for (size_t f = 0; f < p->features->n; f++)
		if (!strcmp(p->features->feature[f].name, name))
			return f;
	fail_msg("no feature %s", name);
	return 0;
}

static void profile_open(struct profile *p)
{
	struct err err = { 0 };

	memset(p, 0, sizeof *p);
	if (csv_read_file("configs/profiles/two-cores/runs.csv", &p->runs, &err) ||
	    csv_read_file("configs/profiles/two-cores/curves.csv", &p->curve, &err) ||
	    schema_default(&p->schema, &err) || curves_join(p->runs, p->curve, p->schema, &p->curves, &err) ||
	    table_read(p->curves->csv, p->schema, true, &p->table, &err) ||
	    features_fit(p->table, &p->features, &err) ||
	    features_encode_table(p->features, p->table, &p->data.x, &err))
		fail_msg("%s", err.text);
	p->data.n_rows = p->table->n_rows;
	p->data.n_features = p->features->n;
	p->data.role = p->role;
	for (size_t f = 0; f < p->features->n; f++) {
		p->role[f] = feature_is_category(&p->features->feature[f]) ? ROLE_CATEGORY : ROLE_NONE;
		for (int r = 1; r < N_ROLES; r++)
			if (schema_role(p->schema, (enum feature_role)r) ==
			    (int)p->features->feature[f].source)
				p->role[f] = (uint8_t)r;
	}
	p->network = feature_at(p, "network");
	p->batch = feature_at(p, "batch");
	p->epochs = feature_at(p, "epochs");
	p->cpus = feature_at(p, "cpus");
	p->njobs = feature_at(p, "njobs");
}

static void profile_close(struct profile *p)
{
	free(p->data.x);
	features_free(p->features);
	table_free(p->table);
	curves_free(p->curves);
	schema_free(p->schema);
	csv_free(p->runs);
	csv_free(p->curve);
}

enum hold { HOLD_SETTINGS, HOLD_NETWORK_AND_BATCH, HOLD_LATE_EPOCHS, HOLD_BOTH, N_HOLDS };
static const char *const hold_name[N_HOLDS] = { "settings", "a network's batch", "epochs 3 and 4",
						"settings, epochs 3 and 4" };
static const int hold_folds[N_HOLDS] = { 5, 8, 1, 5 };

/* Bit 0: the row is for training; bit 1: for testing. */
static int side_of(const struct profile *p, enum hold how, int fold, size_t row)
{
	const double *x = p->data.x + row * p->data.n_features;
	int pair = 4 * (int)x[p->network] + (int)lround(log2(x[p->batch])) - 6; /* 0 to 7 */
	uint64_t setting = rng_mix((uint64_t)(pair * 100 + (int)x[p->cpus] * 10 + (int)x[p->njobs]));
	bool late = x[p->epochs] >= 3, held = setting % 5 == (uint64_t)fold;

	switch (how) {
	case HOLD_SETTINGS: return held ? 2 : 1;
	case HOLD_NETWORK_AND_BATCH: return pair == fold ? 2 : 1;
	case HOLD_LATE_EPOCHS: return late ? 2 : 1;
	default: return late && held ? 2 : !late && !held ? 1 : 0;
	}
}

struct errors {
	double squares[5], size[5], share[5], n[5];
};

/* late: NULL or room for a value per row, log(measured / predicted) where it was held out. */
static void hold_out(const struct profile *p, enum hold how, const char *model, const char *set,
		     struct errors *out, double *late)
{
	uint32_t *row[2] = { calloc(p->data.n_rows, sizeof **row), calloc(p->data.n_rows, sizeof **row) };

	memset(out, 0, sizeof *out);
	for (int fold = 0; fold < hold_folds[how]; fold++) {
		size_t n[2] = { 0 };
		struct dataset *train, *test;
		struct predictor m;
		double *predicted;

		for (size_t i = 0; i < p->data.n_rows; i++)
			for (int k = 0; k < 2; k++)
				if (side_of(p, how, fold, i) >> k & 1)
					row[k][n[k]++] = (uint32_t)i;
		assert_int_equal(dataset_subset(&p->data, row[0], n[0], &train, NULL), 0);
		assert_int_equal(dataset_subset(&p->data, row[1], n[1], &test, NULL), 0);
		m = fit(predictor_find(model), set, train);
		predicted = calloc(n[1], sizeof *predicted);
		predictor_predict(&m, test->x, n[1], predicted);
		for (size_t i = 0; i < n[1]; i++) {
			int e = (int)test->x[i * test->n_features + p->epochs];
			double off = predicted[i] - test->y[i];

			if (late)
				late[row[1][i]] = log(test->y[i] / predicted[i]);
			out->squares[e] += off * off;
			out->size[e] += fabs(off);
			out->share[e] += fabs(off) / test->y[i];
			out->n[e] += 1.0;
		}
		free(predicted);
		predictor_release(&m);
		dataset_free(train);
		dataset_free(test);
	}
	free(row[0]);
	free(row[1]);
}

static double rmse(const struct errors *e)
{
	double squares = 0.0, n = 0.0;

	for (int k = 1; k < 5; k++) {
		squares += e->squares[k];
		n += e->n[k];
	}
	return sqrt(squares / n);
}

static void print_by_epoch(const double *sum, const double *n, const char *format, double scale)
{
	for (int e = 1; e < 5; e++) {
		printf(" | ");
		if (n[e] > 0.0)
			printf(format, scale * sum[e] / n[e]);
	}
}

TEST(test_the_curve_knows_batches_and_epochs_nobody_ran)
{
	static const char *const model[3][2] = { { "forest", "trees=50,min_samples_leaf=10" },
						 { "boost", "trees=100" },
						 { "curve", "trees=50" } };
	struct profile p;

	profile_open(&p);
	p.data.y = p.table->accuracy;
	printf("| held out | model | RMSE | MAE at 1 epoch | 2 | 3 | 4 |\n|---|---|---|---|---|---|---|\n");
	for (int how = 0; how < N_HOLDS; how++) {
		double found[3];

		for (int k = 0; k < 3; k++) {
			struct errors e;

			hold_out(&p, (enum hold)how, model[k][0], model[k][1], &e, NULL);
			found[k] = rmse(&e);
			printf("| %s | %s | %.4f", hold_name[how], model[k][0], found[k]);
			print_by_epoch(e.size, e.n, "%.4f", 1.0);
			printf(" |\n");
		}
		if (how == HOLD_SETTINGS) /* nothing to gain: the same network and batch are in the table */
			assert_true(found[2] < 1.02 * fmin(found[0], found[1]));
		else
			assert_true(found[2] < 0.5 * fmin(found[0], found[1]));
	}
	profile_close(&p);
}

TEST(test_the_hybrid_knows_the_time_of_any_number_of_epochs)
{
	struct profile p;

	profile_open(&p);
	p.data.y = p.table->time;
	printf("| held out | model | MAPE at 1 epoch | 2 | 3 | 4 |\n|---|---|---|---|---|---|\n");
	for (int how = 0; how < N_HOLDS; how++) {
		struct errors forest, hybrid;

		if (how == HOLD_NETWORK_AND_BATCH)
			continue;
		hold_out(&p, (enum hold)how, "forest", "trees=50", &forest, NULL);
		hold_out(&p, (enum hold)how, "hybrid", "trees=50", &hybrid, NULL);
		printf("| %s | forest", hold_name[how]);
		print_by_epoch(forest.share, forest.n, "%.1f %%", 100.0);
		printf(" |\n| %s | hybrid", hold_name[how]);
		print_by_epoch(hybrid.share, hybrid.n, "%.1f %%", 100.0);
		printf(" |\n");
		for (int e = 1; e < 5; e++)
			assert_true(hybrid.share[e] <= forest.share[e]);
		assert_true(hybrid.share[4] / hybrid.n[4] < 0.2);
	}
	profile_close(&p);
}

/* The 90 % point of the lateness of a run's last epoch, of one of its epochs at random, and of its worst; and
 * how many rows of each epoch are no later than that. Why train.c takes the worst. */
TEST(test_a_bound_from_last_epochs_fails_for_first_ones_and_one_from_the_worst_holds)
{
	static const char *const from[] = { "the last epoch", "one at random", "the worst epoch" };
	struct rng rng = rng_stream(1, 1);
	struct profile p;
	struct errors e;
	double *late, *score[3], covered[3][5] = { { 0 } };
	size_t n;

	profile_open(&p);
	p.data.y = p.table->time;
	n = p.curves->n_runs;
	late = calloc(p.data.n_rows, sizeof *late);
	for (int k = 0; k < 3; k++)
		score[k] = calloc(n, sizeof *score[k]);
	hold_out(&p, HOLD_SETTINGS, "hybrid", "trees=50", &e, late);
	for (size_t run = 0; run < n; run++) {
		uint32_t any = rng_below(&rng, 4), seen = 0;

		score[0][run] = score[2][run] = late[run]; /* the runs come first, and end with their last */
		for (size_t i = 0; i < p.data.n_rows; i++)
			if (p.curves->run[p.table->row[i]] == run) {
				score[2][run] = fmax(score[2][run], late[i]);
				if (seen++ == any)
					score[1][run] = late[i];
			}
		assert_int_equal(seen, 4);
	}
	printf("| bound from | covers after 1 epoch | 2 | 3 | 4 |\n|---|---|---|---|---|\n");
	for (int k = 0; k < 3; k++) {
		double q = stats_percentile(score[k], n, 90);

		for (size_t i = 0; i < p.data.n_rows; i++)
			covered[k][(int)p.data.x[i * p.data.n_features + p.epochs]] += late[i] <= q;
		printf("| %s", from[k]);
		print_by_epoch(covered[k], e.n, "%.1f %%", 100.0);
		printf(" |\n");
		free(score[k]);
	}
	assert_true(covered[0][1] / e.n[1] < 0.8);
	for (int k = 1; k < 5; k++)
		assert_true(covered[2][k] / e.n[k] >= 0.9);
	free(late);
	profile_close(&p);
}
