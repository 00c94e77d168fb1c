/* predictors/search/learning: the error falls with the runs, and the words say by how much. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/strbuf.h"
#include "predictors/search/train.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

struct fixture {
	struct schema *schema;
	struct csv *csv;
	struct table *table;
};

/* Runs of the factorial experiment, each as so many copies. */
static void make(struct fixture *f, size_t replications, size_t copies, size_t settings)
{
	struct dataset *d = world_factorial(replications, 0.05, 2);
	struct strbuf text = { 0 };
	struct err err = { 0 };

	strbuf_puts(&text, "network,cpus,njobs,batch,replication,copy,time_s\n");
	for (size_t i = 0; i < d->n_rows && i < settings * replications; i++)
		for (size_t k = 1; k <= copies; k++) {
			const double *x = d->x + 5 * i;

			strbuf_printf(&text, "%s,%g,%g,%g,%zu,%zu,%.4f\n", x[0] ? "simplenet" : "lenet5",
				      x[1], x[2], x[3], i % replications, k,
				      d->y[i] * (1.0 + 1e-3 * (double)k));
		}
	memset(f, 0, sizeof *f);
	if (schema_default(&f->schema, &err) ||
	    csv_parse("t.csv", strbuf_text(&text), text.len, &f->csv, &err) ||
	    table_read(f->csv, f->schema, TABLE_NEEDS_TARGETS, &f->table, &err))
		fail_msg("%s", err.text);
	strbuf_release(&text);
	dataset_free(d);
}

static void drop(struct fixture *f)
{
	table_free(f->table);
	csv_free(f->csv);
	schema_free(f->schema);
}

static int curve(struct fixture *f, const char *model, struct learning *out, struct err *err)
{
	struct grid_point point = { .ops = predictor_find(model) };
	struct train_params p = { .table = f->table, .ctx = { .seed = 1 }, .data_name = "t.csv" };

	settings_init(&point.settings, point.ops->spec);
	return learning_run(&p, &point, out, err);
}

TEST(test_the_error_of_a_forest_falls_with_the_runs)
{
	struct fixture f;
	struct learning l;
	struct strbuf text = { 0 };

	make(&f, 2, 1, 96);
	assert_int_equal(curve(&f, "boost", &l, NULL), 0);
	assert_int_equal(l.runs, 192);
	assert_true(l.n >= 6);
	assert_int_equal(l.point[l.n - 1].runs, 153); /* four fifths */
	for (size_t i = 0; i < l.n; i++) {
		assert_int_equal(l.point[i].n, LEARNING_REPEATS);
		assert_true(l.point[i].half > 0.0);
		assert_true(!i || l.point[i].runs > l.point[i - 1].runs);
	}
	assert_true(l.point[0].mape > 1.5 * l.point[l.n - 1].mape);
	assert_true(l.last_gain > 0.0);
	learning_text(&l, &text);
	assert_non_null(strstr(strbuf_text(&text), "With 153 of 192 runs the error on new settings is "));
	strbuf_release(&text);
	drop(&f);
}

TEST(test_copies_are_no_runs)
{
	struct fixture f;
	struct learning l;

	make(&f, 1, 3, 96);
	assert_int_equal(f.table->n_rows, 288);
	assert_int_equal(curve(&f, "tree", &l, NULL), 0);
	assert_int_equal(l.runs, 96);
	assert_int_equal(l.point[l.n - 1].runs, 76);
	drop(&f);
}

TEST(test_the_words_follow_the_curve)
{
	struct learning l = { .n = 5,
			      .runs = 100,
			      .last_gain = 0.02,
			      .next = 0.07,
			      .point = { { 20, 0.2, 0.01, 10 },
					 { 28, 0.16, 0.01, 10 },
					 { 40, 0.14, 0.01, 10 },
					 { 57, 0.1, 0.01, 10 },
					 { 80, 0.08, 0.001, 10 } } };
	struct strbuf text = { 0 };

	learning_text(&l, &text);
	assert_non_null(strstr(strbuf_text(&text), "is 8.0 %; 40 runs gave 14.0 %. Twice as many"));
	assert_non_null(strstr(strbuf_text(&text), "about 7.0 %"));
	strbuf_release(&text);
	text = (struct strbuf){ 0 };
	l.last_gain = 0.001;
	learning_text(&l, &text);
	assert_non_null(strstr(strbuf_text(&text), "will hardly help"));
	strbuf_release(&text);
}

TEST(test_few_runs_are_refused)
{
	struct fixture f;
	struct learning l;
	struct err err = { 0 };

	make(&f, 1, 1, 19);
	assert_int_equal(curve(&f, "tree", &l, &err), -ERR_NODATA);
	assert_non_null(strstr(err.text, "t.csv has 19 runs"));
	drop(&f);
}

TEST(test_no_memory_is_reported)
{
	struct fixture f;
	struct learning l;
	int rc = -ERR_NOMEM;

	make(&f, 1, 1, 30);
	for (unsigned long k = 1; rc; k += 1 + k / 8) {
		mem_fail_at(k, false);
		rc = curve(&f, "tree", &l, NULL);
		mem_fail_at(0, false);
		if (rc)
			assert_int_equal(rc, -ERR_NOMEM);
	}
	drop(&f);
}
