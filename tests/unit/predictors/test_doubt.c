/* predictors/search/doubt.h: wrong times are found, right ones are not, and no model believes the former. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "predictors/search/doubt.h"
#include "predictors/search/train.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

static const uint8_t roles[] = { ROLE_CATEGORY, ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH, ROLE_PROCESSES };

static struct dataset *factorial(double noise)
{
	struct dataset *d = world_factorial(1, noise, 2); /* network, cpus, njobs, batch, processes */

	d->role = roles;
	return d;
}

static size_t doubted(const struct dataset *d, uint8_t *out)
{
	struct fit_context ctx = { .seed = 1 };
	struct err err = { 0 };
	size_t n = 0;

	if (doubt_find(d, &ctx, out, &n, &err))
		fail_msg("%s", err.text);
	return n;
}

TEST(test_far_times_are_found_and_no_others)
{
	static const size_t wrong[] = { 3, 17, 40, 41, 77 };
	struct dataset *d = factorial(0.06);
	uint8_t out[96];

	assert_int_equal(d->n_rows, 96);
	assert_int_equal(doubted(d, out), 0);
	for (size_t i = 0; i < 5; i++)
		d->y[wrong[i]] *= i % 2 ? 3.1 : 1.0 / 3.3;
	assert_int_equal(doubted(d, out), 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(out[wrong[i]], DOUBT_FAR);
	dataset_free(d);
	d = factorial(0.06);
	d->role = NULL; /* a table of other columns: the forest judges */
	d->y[17] *= 20.0;
	assert_int_equal(doubted(d, out), 1);
	assert_int_equal(out[17], DOUBT_FAR);
	dataset_free(d);
}

TEST(test_noise_is_no_mistake)
{
	uint8_t out[96];

	for (int noise = 1; noise <= 3; noise++) {
		struct dataset *d = factorial(0.1 * noise);

		assert_int_equal(doubted(d, out), 0);
		dataset_free(d);
	}
}

/* A third of the rows obeys another law: they are many, and they agree with each other. */
TEST(test_what_many_rows_say_is_believed)
{
	struct dataset *d = factorial(0.05);
	uint8_t out[96];

	for (size_t i = 0; i < d->n_rows; i++)
		if (d->x[i * 5 + 3] == 256.0)
			d->y[i] *= 4.0;
	assert_int_equal(doubted(d, out), 0);
	dataset_free(d);
}

/* One repeat may be chance; three are not. None of them is far from its own time. */
TEST(test_times_that_repeat_another_setting_s_are_found)
{
	struct dataset *d = factorial(0.02);
	uint8_t out[96], used[96] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows && n < 3; i++)
		for (size_t k = 0; k < d->n_rows && !used[i]; k++)
			if (!used[k] && d->y[k] > 1.4 * d->y[i] && d->y[k] < 1.7 * d->y[i]) {
				d->y[i] = d->y[k];
				used[i] = 2; /* the one that is wrong now */
				used[k] = 1;
				n++;
			}
	assert_int_equal(n, 3);
	assert_int_equal(doubted(d, out), 3);
	for (size_t i = 0; i < d->n_rows; i++)
		assert_int_equal(out[i], used[i] == 2 ? DOUBT_REPEATED : DOUBT_NONE);
	dataset_free(d);
}

/* A network that has two names where it runs alone on few cpus: nothing was read twice. */
TEST(test_two_names_of_one_thing_are_believed)
{
	struct dataset *d = factorial(0.02);
	uint8_t out[96];
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++) {
		const double *x = d->x + i * 5;

		if (x[0] == 1.0 && x[1] <= 4.0 && x[2] == 1.0) {
			d->y[i] = d->y[i - 1]; /* the same setting of the other network */
			n++;
		}
	}
	assert_int_equal(n, 12);
	assert_int_equal(doubted(d, out), 0);
	dataset_free(d);
}

/* Times in whole seconds repeat, and that says nothing. */
TEST(test_rounded_times_repeat_by_chance)
{
	static const double step[] = { 1.0, 0.1, 0.01, 10.0 };
	uint8_t out[96];

	for (size_t k = 0; k < 4; k++) {
		struct dataset *d = factorial(0.06);

		for (size_t i = 0; i < d->n_rows; i++)
			d->y[i] = step[k] * fmax(round(d->y[i] / step[k]), 1.0);
		assert_int_equal(doubted(d, out), 0);
		dataset_free(d);
	}
}

TEST(test_small_tables_and_replicates_are_left_alone)
{
	struct dataset *d = factorial(0.06);
	uint8_t out[96];

	d->n_rows = 19;
	d->y[4] *= 10.0;
	assert_int_equal(doubted(d, out), 0);
	d->n_rows = 96;
	d->y[4] /= 10.0;
	memcpy(d->x, d->x + 5 * 60, 5 * sizeof *d->x); /* the same setting measured twice, to the digit */
	d->y[0] = d->y[60];
	assert_int_equal(doubted(d, out), 0);
	dataset_free(d);
}

/* ---- the published table, with its seven stale times ---- */

struct published {
	struct csv *csv;
	struct schema *schema;
	struct table *table;
};

static bool published_open(struct published *p, bool raw)
{
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");
	struct err err = { 0 };

	memset(p, 0, sizeof *p);
	if (!path)
		return false;
	if (csv_read_file(path, &p->csv, &err) ||
	    schema_read_file("configs/schemas/courier-bigdl.json", &p->schema, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; raw && i < p->schema->n_excludes; i++) {
		free(p->schema->exclude[i].column);
		free(p->schema->exclude[i].value);
	}
	p->schema->n_excludes = raw ? 0 : p->schema->n_excludes;
	if (table_read(p->csv, p->schema, TABLE_NEEDS_TARGETS, &p->table, &err))
		fail_msg("%s", err.text);
	return true;
}

static void published_close(struct published *p)
{
	table_free(p->table);
	schema_free(p->schema);
	csv_free(p->csv);
}

static struct model *train(const struct published *p, const char *model, bool believe_all,
			   struct train_report *report)
{
	struct grid_point time = { .ops = predictor_find(model) }, tree = { .ops = predictor_find("tree") };
	struct grid grid = { &time, 1 }, accuracy = { &tree, 1 };
	struct train_params t = { .table = p->table,
				  .grid = &grid,
				  .accuracy_grid = &accuracy,
				  .split = { .kind = SPLIT_KFOLD, .folds = 5, .seed = 1 },
				  .ctx = { .seed = 1 },
				  .believe_all = believe_all,
				  .data_name = "published" };
	struct model *m = NULL;
	struct err err = { 0 };

	settings_init(&time.settings, time.ops->spec);
	settings_init(&tree.settings, tree.ops->spec);
	if (train_model(&t, &m, report, &err))
		fail_msg("%s", err.text);
	return m;
}

TEST(test_the_stale_times_of_the_published_table_are_found)
{
	static const uint32_t lines[] = { 48, 54, 61, 69, 72, 81, 84 };
	static const char *const model[] = { "hybrid", "queueing", "forest" };
	struct published raw, clean;

	if (!published_open(&raw, true))
		skip();
	assert_true(published_open(&clean, false));
	for (size_t k = sanitized() ? 2 : 0; k < 3; k++) { /* under a sanitizer the forest will do */
		struct train_report of_raw, of_clean;
		struct model *a = train(&raw, model[k], false, &of_raw),
			     *b = train(&clean, model[k], false, &of_clean);
		double *x, p[96], q[96];

		assert_int_equal(of_raw.n_doubted, 7);
		for (size_t i = 0; i < 7; i++)
			assert_int_equal(of_raw.doubted[i].line, lines[i]);
		assert_int_equal(of_clean.n_doubted, 0);
		/* the model is that of the table from which somebody took them out by hand, to the bit */
		assert_int_equal(features_encode_table(a->features, raw.table, &x, NULL), 0);
		predictor_predict(&a->time.predictor, x, 96, p);
		predictor_predict(&b->time.predictor, x, 96, q);
		assert_memory_equal(p, q, sizeof p);
		assert_true(of_raw.time_result[0].score.mean.mape == of_clean.time_result[0].score.mean.mape);
		printf("%s: MAPE %.2f %%\n", model[k], 100 * of_raw.time_result[0].score.mean.mape);
		free(x);
		model_free(a);
		model_free(b);
		train_report_release(&of_raw);
		train_report_release(&of_clean);
		a = train(&raw, model[k], true, &of_raw);
		assert_int_equal(of_raw.n_doubted, 0);
		assert_int_equal(a->time.n_rows, 96);
		model_free(a);
		train_report_release(&of_raw);
	}
	published_close(&raw);
	published_close(&clean);
}

TEST(test_no_memory_is_reported_at_every_allocation)
{
	struct dataset *d = factorial(0.06);
	struct fit_context ctx = { .seed = 1 };
	uint8_t out[96];
	size_t n;
	int rc = -ERR_NOMEM;

	d->y[17] *= 5.0;
	d->y[10] = d->y[50];
	for (unsigned long k = 1; rc; k += 1 + k / (sanitized() ? 3 : 8)) {
		mem_fail_at(k, false);
		rc = doubt_find(d, &ctx, out, &n, NULL);
		mem_fail_at(0, false);
		if (rc)
			assert_int_equal(rc, -ERR_NOMEM);
	}
	dataset_free(d);
}
