/* Jobs that take a while to start, and jobs that wait for something that is neither cpu nor disk: how
 * far off the hybrid is on settings it has not seen, and what it says such a job does to its neighbours.
 * And models written before there were such terms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/rng.h"
#include "predictors/data/score.h"
#include "predictors/model.h"
#include "predictors/models/hybrid.h"
#include "predictors/models/queueing_models.h"
#include "tests/support/test.h"

static struct predictor fit(const struct predictor_ops *ops, const struct dataset *d)
{
	struct settings s;
	struct predictor p = { 0 };
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if (settings_parse(&s, "cores=2", &err) ||
	    predictor_fit(ops, &s, d, &(struct fit_context){ .seed = 1 }, &p, &err))
		fail_msg("%s: %s", ops->name, err.text);
	return p;
}

/* Rows of each fifth of the settings predicted from the others; `most` rows teach (0: all). */
static struct score held_out(const struct predictor_ops *ops, const struct dataset *d, size_t most)
{
	double *y = malloc(d->n_rows * sizeof *y), *out = malloc(d->n_rows * sizeof *out);
	uint32_t *row = malloc(2 * d->n_rows * sizeof *row);
	struct score score;
	size_t n = 0;

	for (uint64_t fold = 0; fold < 5; fold++) {
		struct rng shuffle = rng_stream(3, fold);
		struct dataset *train, *test;
		struct predictor p;
		size_t n_train = 0, n_test = 0;

		for (size_t i = 0; i < d->n_rows; i++) {
			uint64_t setting = 17;

			for (size_t f = 0; f < d->n_features; f++)
				setting = setting * 1000003 + (uint64_t)(64.0 * d->x[i * d->n_features + f]);
			if ((setting ^ setting >> 7) % 5 == fold)
				row[d->n_rows + n_test++] = (uint32_t)i;
			else
				row[n_train++] = (uint32_t)i;
		}
		rng_shuffle(&shuffle, row, n_train);
		assert_int_equal(
			dataset_subset(d, row, most && n_train > most ? most : n_train, &train, NULL), 0);
		assert_int_equal(dataset_subset(d, row + d->n_rows, n_test, &test, NULL), 0);
		p = fit(ops, train);
		predictor_predict(&p, test->x, n_test, out + n);
		memcpy(y + n, test->y, n_test * sizeof *y);
		n += n_test;
		predictor_release(&p);
		dataset_free(train);
		dataset_free(test);
	}
	assert_int_equal(n, d->n_rows);
	score = score_of(y, out, n);
	free(y);
	free(out);
	free(row);
	return score;
}

TEST(test_seconds_added_to_every_time_cost_no_precision)
{
	static const double added_s[] = { 0, 0.5, 10 };
	static const size_t most[] = { 96, 0 };
	struct csv *csv;
	struct schema *schema;
	struct table *table;
	struct features *features;
	struct dataset d = { 0 };
	uint8_t role[16] = { 0 };
	struct err err = { 0 };

	if (csv_read_file("configs/profiles/two-cores/runs.csv", &csv, &err) ||
	    schema_read_file("configs/schemas/default.json", &schema, &err) ||
	    table_read(csv, schema, true, &table, &err) || features_fit(table, &features, &err) ||
	    features_encode_table(features, table, &d.x, &err))
		fail_msg("%s", err.text);
	d.n_rows = table->n_rows;
	d.n_features = features->n;
	d.y = table->time;
	d.role = role;
	for (size_t f = 0; f < features->n; f++) {
		role[f] = feature_is_category(&features->feature[f]) ? ROLE_CATEGORY : ROLE_NONE;
		for (int r = 1; r < N_ROLES; r++)
			if (schema_role(schema, (enum feature_role)r) == (int)features->feature[f].source)
				role[f] = (uint8_t)r;
	}
	for (size_t m = 0; m < 2; m++) {
		double before = 0.0, first = 0.0;

		for (size_t k = 0; k < 3; k++) {
			struct score s;

			for (size_t i = 0; i < d.n_rows; i++)
				d.y[i] += added_s[k] - before;
			before = added_s[k];
			s = held_out(&hybrid_ops, &d, most[m]);
			first = k ? first : s.mse;
			printf("%3zu rows, %4.1f s added: MSE %.4f s2, MAPE %.2f %%\n",
			       most[m] ? most[m] : d.n_rows, added_s[k], s.mse, 100 * s.mape);
			assert_true(s.mse < 0.09 && s.mse < 1.15 * first);
		}
		for (size_t i = 0; i < d.n_rows; i++)
			d.y[i] -= before;
	}
	free(d.x);
	features_free(features);
	table_free(table);
	schema_free(schema);
	csv_free(csv);
}

enum { CPUS, NJOBS, BATCH, EPOCHS, WIDTH };
static const uint8_t wait_role[WIDTH] = { ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH, ROLE_EPOCHS };

/* 36 settings with up to four copies each, of a job that sleeps for every batch. */
static struct dataset *waiting(double start_s, uint64_t seed)
{
	struct rng rng = rng_stream(seed, 5);
	struct dataset *d = calloc(1, sizeof *d);

	d->n_features = WIDTH;
	d->x = calloc(36 * 4 * WIDTH, sizeof *d->x);
	d->y = calloc(36 * 4, sizeof *d->y);
	d->role = wait_role;
	for (size_t s = 0; s < 36; s++) {
		double cpus = 1 + rng_below(&rng, 2), njobs = 1 + rng_below(&rng, 4);
		double batch = 16 << rng_below(&rng, 5), epochs = 1 << rng_below(&rng, 4);

		for (size_t copy = 0; copy < (size_t)njobs; copy++, d->n_rows++) {
			double *x = d->x + d->n_rows * WIDTH;
			double cpu_s = (2e-4 + 5e-6 * batch / cpus) * fmax(1.0, cpus * njobs / 2);

			x[CPUS] = cpus;
			x[NJOBS] = njobs;
			x[BATCH] = batch;
			x[EPOCHS] = epochs;
			d->y[d->n_rows] =
				(start_s + 60000.0 / batch * epochs * (cpu_s + 4e-3 + 1e-4 * batch)) *
				exp(0.03 * rng_normal(&rng));
		}
	}
	return d;
}

TEST(test_a_job_that_waits_elsewhere_is_not_slowed_by_others)
{
	static const double start_s[] = { 0, 5, 30 };

	for (size_t k = 0; k < 3; k++) {
		struct dataset *d = waiting(start_s[k], 1 + k);
		struct score s = held_out(&hybrid_ops, d, 0);
		struct predictor p = fit(&queueing_ops, d);
		double alone[WIDTH] = { 1, 1, 64, 2 }, among[WIDTH] = { 1, 8, 64, 2 }, t[2];
		struct work_shares of;

		printf("%2.0f s to start: MAPE of the hybrid %.2f %%\n", start_s[k], 100 * s.mape);
		assert_true(s.mape < 0.05); /* of noise of 3 % */
		predictor_predict(&p, alone, 1, &t[0]);
		predictor_predict(&p, among, 1, &t[1]);
		assert_true(t[1] < 1.4 * t[0]);
		queueing_ops.shares(p.self, alone, &of);
		assert_true(of.cpu + of.disk < 0.2); /* the rest waits */
		predictor_release(&p);
		dataset_free(d);
	}
}

TEST(test_models_of_version_1_answer_as_they_did)
{
	/* Written by the program that wrote version 1, with cores=2: cpus = 4 are more than those. The
	 * numbers are its predictions. */
	static const struct {
		double cpus, njobs, batch, time_s;
	} was[] = {
		{ 1, 1, 64, 1.440319141475719 },  { 1, 1, 256, 1.460255884837252 },
		{ 4, 1, 64, 1.2211920051134162 }, { 4, 1, 256, 1.1154471988863244 },
		{ 4, 3, 64, 2.5487419018552115 }, { 4, 3, 256, 2.3979385280414895 },
	};
	struct model *m[2];
	struct writer w = { 0 };
	struct err err = { 0 };

	if (model_load("tests/fuzz/corpus/model/v1-hybrid-two-cores.model", &m[0], &err))
		fail_msg("%s", err.text);
	assert_int_equal(model_encode(m[0], &w, NULL), 0); /* as the newest version */
	assert_int_equal(model_decode("again", w.out.text, w.out.len, &m[1], NULL), 0);
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < sizeof was / sizeof *was; i++) {
			struct features *f = m[k]->features;
			double x[16], t;

			for (size_t at = 0; at < f->n; at++) {
				const char *name = f->feature[at].name;

				x[at] = !strcmp(name, "cpus")        ? was[i].cpus
					: !strcmp(name, "njobs")     ? was[i].njobs
					: !strcmp(name, "batch")     ? was[i].batch
					: !strcmp(name, "epochs")    ? 4
					: !strcmp(name, "samples")   ? 12000
					: !strcmp(name, "processes") ? was[i].cpus * was[i].njobs
								     : 0; /* lenet5 */
			}
			predictor_predict(&m[k]->time.predictor, x, 1, &t);
			assert_true(fabs(t / was[i].time_s - 1.0) < 1e-12);
		}
	strbuf_release(&w.out);
	model_free(m[0]);
	model_free(m[1]);
}
