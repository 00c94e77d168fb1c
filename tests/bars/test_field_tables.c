/* Are bounds right, and no wider than they need be, on tables that nobody here measured? For each table of
 * ../shared/data/field/tables, thirds of its settings and of its contexts are held out in turn, the recipe of
 * policy `postrider` learns from the rest, and the rows held out say how good its bounds are: how many of
 * them are covered, how far bounds lie above the times, and their pinball loss (Koenker and Bassett, 1978)
 * beside that of a plain forest on log time with the quantile of its own held-out errors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "common/strbuf.h"
#include "scheduler/core/policy/recipe.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define CONFIDENCE 0.9
#define MAX_COLUMNS 12
#define MAX_ROWS 1200 /* of a table, drawn at random */
#define FOLDS 3

struct bar {
	const char *held_out; /* the member of the description that names its columns */
	double least_cover, most_cover, most_loss, most_over, most_mape;
};
static const struct bar bars[] = {
	{ "setting", 0.86, 0.95, 0.85, 6.0, 0.55 },
	{ "context", 0.85, 0.97, 0.97, 6.0, 0.80 },
};

struct field {
	struct csv *csv;
	struct json *about;
	uint32_t row[MAX_ROWS];
	size_t n;
	const char *column[MAX_COLUMNS]; /* categories, then numbers, then the time */
	bool number[MAX_COLUMNS];
	size_t n_columns;
};

struct errors {
	double *over; /* log(bound / time) */
	double covered, loss, mape;
	size_t n;
};

static void add_columns(struct field *f, const char *member, bool number)
{
	for (const struct json *v = json_first(json_get(f->about, member)); v; v = json_next(v)) {
		assert_true(f->n_columns < MAX_COLUMNS - 1);
		f->number[f->n_columns] = number;
		f->column[f->n_columns++] = json_string(v, "");
	}
}

static const char *cell(const struct field *f, size_t i, const char *column)
{
	int at = csv_column(f->csv, column);

	assert_true(at >= 0);
	return csv_cell(f->csv, f->row[i], (size_t)at);
}

static bool is_whole(const struct field *f, size_t i)
{
	for (size_t c = 0; c < f->n_columns; c++)
		if (f->number[c] && !*cell(f, i, f->column[c]))
			return false;
	return true;
}

static void field_open(struct field *f, const char *name)
{
	struct rng rng = rng_stream(1, 7);
	struct err err = { 0 };
	char path[64];
	uint32_t *all;
	size_t n;

	memset(f, 0, sizeof *f);
	snprintf(path, sizeof path, "field/tables/%s.json", name);
	if (!support_shared_data(path))
		skip();
	if (json_read_file(support_shared_data(path), 1 << 20, &f->about, &err))
		fail_msg("%s", err.text);
	snprintf(path, sizeof path, "field/tables/%s", json_string(json_get(f->about, "file"), ""));
	if (csv_read_file(support_shared_data(path), &f->csv, &err))
		fail_msg("%s", err.text);
	add_columns(f, "categories", false);
	add_columns(f, "numbers", true);
	f->number[f->n_columns] = true;
	f->column[f->n_columns++] = json_string(json_get(f->about, "time"), "");
	n = f->csv->n_rows;
	all = mem_array(n, sizeof *all);
	assert_non_null(all);
	for (size_t i = 0; i < n; i++)
		all[i] = (uint32_t)i;
	rng_shuffle(&rng, all, n);
	for (size_t i = 0; i < n && f->n < MAX_ROWS; i++) {
		f->row[f->n] = all[i];
		f->n += is_whole(f, f->n);
	}
	free(all);
}

static void field_close(struct field *f)
{
	csv_free(f->csv);
	json_free(f->about);
}

/* What a row has in the columns that are held out together, mixed to a number. */
static uint64_t group_of(const struct field *f, size_t i, const char *held_out)
{
	uint64_t h = 1;

	for (const struct json *v = json_first(json_get(f->about, held_out)); v; v = json_next(v))
		for (const char *s = cell(f, i, json_string(v, "")); h = rng_mix(h + (uint8_t)*s + 1), *s;
		     s++)
			;
	return h;
}

/* The schema, as a user of the table would write it. */
static struct schema *schema_of(const struct field *f)
{
	struct strbuf text = { 0 };
	struct json *v = NULL;
	struct schema *s = NULL;
	struct err err = { 0 };
	const char *comma = "";

	strbuf_printf(&text, "{\"columns\":[");
	for (size_t c = 0; c + 1 < f->n_columns; c++, comma = ",")
		strbuf_printf(&text, "%s{\"name\":\"%s\",\"kind\":\"%s\"}", comma, f->column[c],
			      f->number[c] ? "number" : "category");
	strbuf_printf(&text, "],\"decision\":\"%s\",\"targets\":{\"time\":\"%s\"}",
		      json_string(json_get(f->about, "decision"), ""), f->column[f->n_columns - 1]);
	comma = ",\"roles\":{";
	for (const struct json *r = json_first(json_get(f->about, "roles")); r; r = json_next(r)) {
		strbuf_printf(&text, "%s\"%s\":\"%s\"", comma, json_key(r), json_string(r, ""));
		comma = ",";
	}
	strbuf_printf(&text, json_first(json_get(f->about, "roles")) ? "}}" : "}");
	if (json_parse("schema", text.text, text.len, &v, &err) || schema_from_json("schema", v, &s, &err))
		fail_msg("%s: %s", text.text, err.text);
	json_free(v);
	strbuf_release(&text);
	return s;
}

/* The rows of a fold, or all others. */
static struct csv *rows_of(const struct field *f, const size_t *fold, size_t k, bool in)
{
	struct strbuf text = { 0 };
	struct csv *csv = NULL;
	struct err err = { 0 };

	for (size_t c = 0; c < f->n_columns; c++)
		strbuf_printf(&text, "%s%s", c ? "," : "", f->column[c]);
	for (size_t i = 0; i < f->n; i++)
		for (size_t c = 0; c < f->n_columns && (fold[i] == k) == in; c++)
			strbuf_printf(&text, "%s%s", c ? "," : "\n", cell(f, i, f->column[c]));
	strbuf_printf(&text, "\n");
	if (csv_parse("rows", text.text, text.len, &csv, &err))
		fail_msg("%s", err.text);
	strbuf_release(&text);
	return csv;
}

static struct model *learn(const struct field *f, const struct table *t, const char *held_out, bool plain)
{
	struct train_params p = recipe_params(1);
	struct policy_choice choice;
	struct grid_point forest;
	struct grid *time = NULL, one = { &forest, 1 };
	struct train_report report;
	struct model *m = NULL;
	struct err err = { 0 };
	const char *group[MAX_COLUMNS];

	for (const struct json *v = json_first(json_get(f->about, held_out)); v; v = json_next(v))
		group[p.n_groups++] = json_string(v, "");
	p.group = group;
	forest.ops = predictor_find("hybrid");
	settings_init(&forest.settings, forest.ops->spec);
	assert_int_equal(settings_parse(&forest.settings, "queue=none", &err), 0);
	assert_int_equal(policy_parse("postrider", &choice, &err), 0);
	assert_int_equal(recipe_search_time(choice.policy, 0.0, &time, &err), 0);
	p.table = t;
	p.grid = plain ? &one : time;
	p.accuracy_grid = &one;
	p.data_name = "field";
	if (train_model(&p, &m, &report, &err))
		fail_msg("%s", err.text);
	train_report_release(&report);
	grid_free(time);
	return m;
}

/* How the model does on the rows of `t`. */
static void judge(const struct model *m, const struct table *t, struct errors *e)
{
	double *x = NULL, *said = mem_array(t->n_rows, sizeof *said), q;

	assert_non_null(said);
	assert_int_equal(features_encode_table(m->features, t, &x, NULL), 0);
	predictor_predict(&m->time.predictor, x, t->n_rows, said);
	assert_int_equal(conformal_quantile(&m->time.conformal, CONFIDENCE, &q, NULL), 0);
	for (size_t i = 0; i < t->n_rows; i++) {
		double upper = model_upper(m, &m->time, x + i * m->features->n, q, said[i]);
		double over = log(upper / t->time[i]);

		assert_true(isfinite(over));
		e->covered += over >= 0.0;
		e->loss += over >= 0.0 ? (1.0 - CONFIDENCE) * over : -CONFIDENCE * over;
		e->mape += fabs(said[i] / t->time[i] - 1.0);
		e->over[e->n++] = over;
	}
	free(said);
	free(x);
}

static void hold_out(const struct field *f, const char *name, const struct bar *bar)
{
	struct errors ours = { .over = mem_array(f->n, sizeof(double)) },
		      plain = { .over = mem_array(f->n, sizeof(double)) };
	size_t *fold = mem_array(f->n, sizeof *fold);
	struct schema *schema = schema_of(f);
	double n, loss;

	assert_true(ours.over && plain.over && fold);
	for (size_t i = 0; i < f->n; i++)
		fold[i] = (size_t)(group_of(f, i, bar->held_out) % FOLDS);
	for (size_t k = 0; k < FOLDS; k++) {
		struct csv *in = rows_of(f, fold, k, false), *out = rows_of(f, fold, k, true);
		struct table *train = NULL, *test = NULL;
		struct err err = { 0 };
		struct model *m;

		if (table_read(in, schema, TABLE_NEEDS_TARGETS, &train, &err))
			fail_msg("%s", err.text);
		for (int p = 0; p < 2; p++) {
			m = learn(f, train, bar->held_out, p);
			if (table_read(out, m->schema, TABLE_NEEDS_TARGETS, &test, &err))
				fail_msg("%s", err.text);
			judge(m, test, p ? &plain : &ours);
			table_free(test);
			model_free(m);
		}
		table_free(train);
		csv_free(in);
		csv_free(out);
	}
	n = (double)ours.n;
	loss = ours.loss / plain.loss;
	stats_sort(ours.over, ours.n);
	printf("%-8s %-8s %5zu rows: covered %.3f, bound / time %.2f, p90 %.2f; loss %.4f, %.2f of a plain "
	       "forest's (which covers %.3f); expected times off by %.1f %% (%.1f %%)\n",
	       name, bar->held_out, ours.n, ours.covered / n, exp(ours.over[ours.n / 2]),
	       exp(ours.over[ours.n * 9 / 10]), ours.loss / n, loss, plain.covered / n, 100 * ours.mape / n,
	       100 * plain.mape / n);
	assert_true(ours.covered >= bar->least_cover * n && ours.covered <= bar->most_cover * n);
	assert_true(loss <= bar->most_loss);
	assert_true(exp(ours.over[ours.n * 9 / 10]) <= bar->most_over);
	assert_true(ours.mape <= bar->most_mape * n);
	schema_free(schema);
	free(ours.over);
	free(plain.over);
	free(fold);
}

static void judge_table(const char *name)
{
	struct field f;

	field_open(&f, name);
	for (size_t b = 0; b < sizeof bars / sizeof *bars; b++)
		hold_out(&f, name, &bars[b]);
	field_close(&f);
}

TEST(test_networks_on_kinds_of_gpu)
{
	judge_table("gavel");
}

TEST(test_benchmarks_on_numbers_of_accelerators)
{
	judge_table("mlperf");
}
