/* Everything that uses threads: the same bits for 1, 2 and 8 of them. Also run under ThreadSanitizer. */
#include <stdlib.h>
#include <string.h>

#include "predictors/model.h"
#include "predictors/search/train.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

static const size_t threads[] = { 1, 2, 8 };
static const uint8_t role[5] = { ROLE_CATEGORY, ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH, ROLE_PROCESSES };

TEST(test_every_model_is_the_same_for_1_2_and_8_threads)
{
	struct dataset *d = world_factorial(2, 0.05, 1);

	d->role = role;
	for (size_t m = 0; predictor_all[m]; m++) {
		struct writer first = { 0 };

		for (size_t k = 0; k < 3; k++) {
			struct fit_context ctx = { .seed = 77, .want_oob = true };
			struct settings s;
			struct predictor p;
			struct writer w = { 0 };

			assert_int_equal(pool_new(threads[k], &ctx.pool, NULL), 0);
			settings_init(&s, predictor_all[m]->spec);
			assert_int_equal(predictor_fit(predictor_all[m], &s, d, &ctx, &p, NULL), 0);
			assert_int_equal(p.ops->save(p.self, &w, NULL), 0);
			if (k == 0) {
				first = w;
			} else {
				assert_int_equal(w.out.len, first.out.len);
				assert_memory_equal(w.out.text, first.out.text, w.out.len);
				strbuf_release(&w.out);
			}
			predictor_release(&p);
			pool_free(ctx.pool);
		}
		strbuf_release(&first.out);
	}
	dataset_free(d);
}

static struct strbuf table_text(void)
{
	struct dataset *d = world_factorial(2, 0.05, 3);
	struct strbuf b = { 0 };

	strbuf_puts(&b, "network,cpus,njobs,batch,time_s,accuracy\n");
	for (size_t i = 0; i < d->n_rows; i++) {
		const double *x = d->x + 5 * i;
		strbuf_printf(&b, "%s,%g,%g,%g,%.6f,%.6f\n", x[0] ? "simplenet" : "lenet5", x[1], x[2], x[3],
			      d->y[i], 0.97 - 1e-4 * x[3] - 1e-5 * (double)(i % 7));
	}
	dataset_free(d);
	return b;
}

TEST(test_training_a_bundle_is_the_same_for_1_2_and_8_threads)
{
	static const char grid_text[] =
		"{\"forest\":{\"trees\":[5,20],\"depth\":[3,6]},\"boost\":{\"trees\":[5,10]},\"linear\":{}}";
	struct strbuf text = table_text();
	struct csv *csv;
	struct schema *schema;
	struct table *table;
	struct json *v;
	struct grid *grid;
	struct writer first = { 0 };

	assert_int_equal(csv_parse("t.csv", text.text, text.len, &csv, NULL), 0);
	assert_int_equal(schema_default(&schema, NULL), 0);
	assert_int_equal(table_read(csv, schema, true, &table, NULL), 0);
	assert_int_equal(json_parse("g", grid_text, strlen(grid_text), &v, NULL), 0);
	assert_int_equal(grid_from_json("g", v, &grid, NULL), 0);
	for (size_t k = 0; k < 3; k++) {
		struct train_params p = { .table = table,
					  .grid = grid,
					  .accuracy_grid = grid,
					  .data_name = "t.csv",
					  .split = { .kind = SPLIT_KFOLD, .folds = 5, .seed = 1 },
					  .ctx = { .seed = 1 } };
		struct train_report report;
		struct model *m = NULL;
		struct writer w = { 0 };
		struct err err = { 0 };

		assert_int_equal(pool_new(threads[k], &p.ctx.pool, NULL), 0);
		if (train_model(&p, &m, &report, &err))
			fail_msg("%s", err.text);
		assert_int_equal(model_encode(m, &w, NULL), 0);
		if (k == 0) {
			first = w;
		} else {
			assert_int_equal(w.out.len, first.out.len);
			assert_memory_equal(w.out.text, first.out.text, w.out.len);
			strbuf_release(&w.out);
		}
		train_report_release(&report);
		model_free(m);
		pool_free(p.ctx.pool);
	}
	strbuf_release(&first.out);
	grid_free(grid);
	json_free(v);
	table_free(table);
	schema_free(schema);
	csv_free(csv);
	strbuf_release(&text);
}

struct shared_model {
	const struct predictor *p;
	const struct dataset *d;
	const double *want;
	int wrong[64];
};

static void predict_from_a_thread(void *ctx, size_t i, size_t worker)
{
	struct shared_model *s = ctx;
	double *got = malloc(s->d->n_rows * sizeof *got);

	(void)worker;
	predictor_predict(s->p, s->d->x, s->d->n_rows, got);
	s->wrong[i] = memcmp(got, s->want, s->d->n_rows * sizeof *got) != 0;
	free(got);
}

TEST(test_threads_share_one_fitted_model)
{
	struct dataset *d = world_factorial(1, 0.05, 4);
	struct pool *pool;
	double want[96];

	d->role = role;
	assert_int_equal(pool_new(8, &pool, NULL), 0);
	for (size_t m = 0; predictor_all[m]; m++)
		for (int compiled = 0; compiled < 2; compiled++) {
			struct fit_context ctx = { .seed = 1 };
			struct settings s;
			struct predictor p;
			struct shared_model shared = { &p, d, want, { 0 } };

			settings_init(&s, predictor_all[m]->spec);
			assert_int_equal(predictor_fit(predictor_all[m], &s, d, &ctx, &p, NULL), 0);
			if (compiled && p.ops->compile)
				assert_int_equal(p.ops->compile(p.self, NULL), 0);
			predictor_predict(&p, d->x, d->n_rows, want);
			pool_run(pool, 64, predict_from_a_thread, &shared);
			for (int i = 0; i < 64; i++)
				assert_false(shared.wrong[i]);
			predictor_release(&p);
		}
	pool_free(pool);
	dataset_free(d);
}
