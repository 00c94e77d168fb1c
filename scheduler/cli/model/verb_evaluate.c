/* `postrider evaluate`: how a model does on a table, as scores, and whether its bounds keep their
 * word; for the whole table and, with --by, for each value of a column. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/draw/frame.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"

struct options {
	const char *by, *plot;
	double confidence;
	struct cli_list exclude;
};

/* What is known of some rows of the table. */
struct totals {
	const char *value; /* of the --by column; NULL: the whole table */
	size_t n_rows, n_time, n_accuracy, n_held, n_extrapolated;
	size_t n_unstable; /* rows with a time for which the model has none: in no score, in no bound */
	struct score time, accuracy; /* NaN where n is 0 */
};

struct rows {
	const struct table *table;
	double *x, *time, *accuracy; /* predictions */
	bool *extrapolated;
	bool bounded;
	double confidence;
	double *y, *p; /* scratch: the pairs a score is made of */
};

/* Scores over the n rows listed. */
static void total_rows(const struct model *m, struct rows *r, const uint32_t *row, size_t n,
		       struct totals *out)
{
	const struct table *t = r->table;

	out->n_rows = n;
	out->n_time = out->n_accuracy = out->n_held = out->n_extrapolated = out->n_unstable = 0;
	for (size_t i = 0; i < n; i++) {
		double y = t->time[row[i]], p = r->time[row[i]];

		out->n_extrapolated += r->extrapolated[row[i]];
		out->n_unstable += !isnan(y) && isnan(p);
		if (isnan(y) || isnan(p))
			continue;
		r->y[out->n_time] = y;
		r->p[out->n_time++] = p;
		out->n_held += r->bounded &&
			       y <= belief_bound(model_belief(m, &m->time, r->x + row[i] * m->features->n, p,
							      r->confidence),
						 r->confidence);
	}
	out->time = score_of(r->y, r->p, out->n_time);
	for (size_t i = 0; r->accuracy && i < n; i++) {
		if (isnan(t->accuracy[row[i]]))
			continue;
		r->y[out->n_accuracy] = t->accuracy[row[i]];
		r->p[out->n_accuracy++] = r->accuracy[row[i]];
	}
	out->accuracy = score_of(r->y, r->p, out->n_accuracy);
}

static double share(size_t part, size_t whole)
{
	return whole ? (double)part / (double)whole : NAN;
}

static double coverage(const struct rows *r, const struct totals *t)
{
	return r->bounded ? share(t->n_held, t->n_time) : NAN;
}

/* ---- groups ---- */

struct groups {
	const char *column;
	struct totals *totals;
	size_t n;
};

struct keyed {
	const char *text;
	double number;
	bool is_number;
	uint32_t row;
};

/* Numbers by size, then words by letter; equal ones by row, so that the order is settled. */
static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int order;

	if (x->is_number != y->is_number)
		return x->is_number ? -1 : 1;
	if (x->is_number && x->number != y->number)
		return x->number < y->number ? -1 : 1;
	order = x->is_number ? 0 : strcmp(x->text, y->text);
	return order ? order : (x->row > y->row) - (x->row < y->row);
}

static int group_column(const struct csv *csv, const struct schema *s, const char *name, struct err *err)
{
	int column = csv_column(csv, name), at = schema_find(s, name);
	const char **known;
	char hint[TEXT_HINT];

	if (column < 0 && at >= 0) { /* the schema has another name for the column than the table */
		column = csv_column(csv, s->column[at].name);
		for (size_t i = 0; column < 0 && i < s->column[at].n_aliases; i++)
			column = csv_column(csv, s->column[at].alias[i]);
	}
	if (column >= 0)
		return column;
	known = mem_calloc(csv->n_columns + 1, sizeof *known);
	if (!known)
		return err_nomem(err, NULL);
	for (size_t i = 0; i < csv->n_columns; i++)
		known[i] = csv->header[i];
	text_hint(name, known, hint);
	free(known);
	return err_fail(err, ERR_ARG, "--by %s: %s has no such column%s", name, csv->name, hint);
}

static int groups_make(const struct model *m, struct rows *r, const char *by, struct groups *out,
		       struct err *err)
{
	const struct table *t = r->table;
	struct keyed *key = NULL;
	uint32_t *row = NULL;
	int column = group_column(t->csv, t->schema, by, err);

	if (column < 0)
		return column;
	out->column = by;
	key = mem_array(t->n_rows, sizeof *key);
	row = mem_array(t->n_rows, sizeof *row);
	out->totals = mem_calloc(t->n_rows, sizeof *out->totals);
	if (!key || !row || !out->totals) {
		free(key);
		free(row);
		return err_nomem(err, NULL);
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		key[i] = (struct keyed){ .text = csv_cell(t->csv, t->row[i], (size_t)column),
					 .row = (uint32_t)i };
		key[i].is_number = text_number(key[i].text, &key[i].number);
	}
	qsort(key, t->n_rows, sizeof *key, by_key);
	for (size_t from = 0, to; from < t->n_rows; from = to) {
		for (to = from; to < t->n_rows; to++) {
			bool same = key[to].is_number == key[from].is_number &&
				    (key[to].is_number ? key[to].number == key[from].number
						       : !strcmp(key[to].text, key[from].text));

			if (!same)
				break;
			row[to - from] = key[to].row;
		}
		out->totals[out->n].value = key[from].text;
		total_rows(m, r, row, to - from, &out->totals[out->n++]);
	}
	free(key);
	free(row);
	return 0;
}

/* ---- the report ---- */

static void json_totals(struct json_writer *w, const struct rows *r, const struct totals *t)
{
	json_kv_int(w, "rows", (long long)t->n_rows);
	json_kv_open(w, "time", '{');
	json_kv_int(w, "rows", (long long)t->n_time);
	cli_json_score(w, "scores", &t->time);
	json_close(w, '}');
	json_put_key(w, "accuracy");
	if (t->n_accuracy) {
		json_open(w, '{');
		json_kv_int(w, "rows", (long long)t->n_accuracy);
		cli_json_score(w, "scores", &t->accuracy);
		json_close(w, '}');
	} else {
		json_put_null(w);
	}
	json_kv_number(w, "coverage", coverage(r, t));
	json_kv_number(w, "extrapolated", share(t->n_extrapolated, t->n_rows));
	json_kv_int(w, "unstable", (long long)t->n_unstable);
}

static void print_json(struct strbuf *out, const struct options *o, const struct rows *r,
		       const struct totals *all, const struct groups *g)
{
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_totals(&w, r, all);
	json_kv_number(&w, "confidence", o->confidence);
	if (g->column) {
		json_kv_open(&w, "by", '{');
		json_kv_string(&w, "column", g->column);
		json_kv_open(&w, "groups", '[');
		for (size_t i = 0; i < g->n; i++) {
			json_open(&w, '{');
			json_kv_string(&w, "value", g->totals[i].value);
			json_totals(&w, r, &g->totals[i]);
			json_close(&w, '}');
		}
		json_close(&w, ']');
		json_close(&w, '}');
	}
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static void add_target(struct cli_table *t, const char *name, size_t n, const struct score *s)
{
	char a[32];

	cli_table_add(t, "%s", name);
	cli_table_add(t, "%zu", n);
	cli_table_add(t, "%s", cli_number(s->mse, a));
	cli_table_add(t, "%s", cli_number(s->r2, a));
	cli_table_add(t, "%s", cli_number(100.0 * s->mape, a));
	cli_table_add(t, "%s", cli_number(s->mae, a));
}

static void print_groups(struct strbuf *out, const struct cli *c, const struct options *o,
			 const struct model *m, const struct rows *r, const struct groups *g)
{
	struct cli_table t;
	char a[32];

	cli_table_init(&t, "lrrrrrrr");
	cli_table_add(&t, "%s", g->column);
	cli_table_add(&t, "rows");
	cli_table_add(&t, "%s MSE", m->schema->time);
	cli_table_add(&t, "MAPE %%");
	cli_table_add(&t, "MAE");
	cli_table_add(&t, "in the %g %% bound", 100.0 * o->confidence);
	cli_table_add(&t, "extrapolated");
	cli_table_add(&t, "%s MAE", m->schema->accuracy ? m->schema->accuracy : "accuracy");
	for (size_t i = 0; i < g->n; i++) {
		const struct totals *k = &g->totals[i];

		cli_table_add(&t, "%s", k->value[0] ? k->value : "(empty)");
		cli_table_add(&t, "%zu", k->n_rows);
		cli_table_add(&t, "%s", cli_number(k->time.mse, a));
		cli_table_add(&t, "%s", cli_number(100.0 * k->time.mape, a));
		cli_table_add(&t, "%s", cli_number(k->time.mae, a));
		cli_table_add(&t, "%s", r->bounded ? cli_percent(coverage(r, k), a) : "");
		cli_table_add(&t, "%s", cli_percent(share(k->n_extrapolated, k->n_rows), a));
		cli_table_add(&t, "%s", r->accuracy ? cli_number(k->accuracy.mae, a) : "");
	}
	strbuf_puts(out, "\n");
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);
}

static void print_people(struct strbuf *out, const struct cli *c, const struct options *o,
			 const struct model *m, const struct rows *r, const struct totals *all,
			 const struct groups *g)
{
	struct cli_table t;
	char a[32];

	cli_table_head(&t, "lrrrrr", "target", "rows", "MSE", "R2", "MAPE %", "MAE");
	add_target(&t, m->schema->time, all->n_time, &all->time);
	if (all->n_accuracy)
		add_target(&t, m->schema->accuracy, all->n_accuracy, &all->accuracy);
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);

	strbuf_puts(out, "\n");
	if (r->bounded)
		strbuf_printf(out, "%g %% upper bound holds for %zu of %zu rows (%s)\n",
			      100.0 * o->confidence, all->n_held, all->n_time,
			      cli_percent(coverage(r, all), a));
	strbuf_printf(out, "outside the training table: %zu of %zu rows (%s)\n", all->n_extrapolated,
		      all->n_rows, cli_percent(share(all->n_extrapolated, all->n_rows), a));
	if (g->column)
		print_groups(out, c, o, m, r, g);
}

/* ---- the verb ---- */

static int rows_predict(const struct model *m, const struct table *t, struct rows *r, struct err *err)
{
	int rc;

	r->table = t;
	rc = features_encode_table(m->features, t, &r->x, err);
	if (rc)
		return rc;
	r->time = mem_array(t->n_rows, sizeof *r->time);
	r->extrapolated = mem_array(t->n_rows, sizeof *r->extrapolated);
	r->y = mem_array(t->n_rows, sizeof *r->y);
	r->p = mem_array(t->n_rows, sizeof *r->p);
	if (m->accuracy.predictor.ops && t->accuracy)
		r->accuracy = mem_array(t->n_rows, sizeof *r->accuracy);
	if (!r->time || !r->extrapolated || !r->y || !r->p ||
	    (m->accuracy.predictor.ops && t->accuracy && !r->accuracy))
		return err_nomem(err, "the predictions of %zu rows", t->n_rows);
	predictor_predict(&m->time.predictor, r->x, t->n_rows, r->time);
	if (r->accuracy)
		predictor_predict(&m->accuracy.predictor, r->x, t->n_rows, r->accuracy);
	for (size_t i = 0; i < t->n_rows; i++)
		r->extrapolated[i] = features_extrapolated(m->features, r->x + i * m->features->n);
	return 0;
}

static void rows_release(struct rows *r)
{
	free(r->x);
	free(r->time);
	free(r->accuracy);
	free(r->extrapolated);
	free(r->y);
	free(r->p);
}

/* ---- the picture ---- */

/* Pairs of predicted and actual; a row outside the training table has a mark of another kind. */
static size_t plot_points(const struct rows *r, const double *actual, const double *predicted,
			  struct svg_point *point, uint8_t *series)
{
	size_t n = 0;

	for (size_t i = 0; i < r->table->n_rows; i++) {
		if (!isfinite(actual[i]) || !isfinite(predicted[i]))
			continue;
		series[n] = r->extrapolated[i] ? 1 : 0;
		point[n++] = (struct svg_point){ predicted[i], actual[i] };
	}
	return n;
}

static int write_plot(const struct options *o, const struct model *m, const struct rows *r,
		      const struct totals *all, struct err *err)
{
	size_t rows = r->table->n_rows;
	struct svg_point *point = mem_array(rows, 2 * sizeof *point);
	uint8_t *series = mem_array(rows, 2);
	struct sheet_panel panel[2];
	struct strbuf svg = { 0 };
	char note[3][160], a[32], b[32];
	int rc = point && series ? 0 : err_nomem(err, "a picture of %zu rows", rows);

	if (rc)
		goto out;
	snprintf(note[0], sizeof note[0], "MAPE %s %%, R2 %s, %zu rows",
		 cli_number(100.0 * all->time.mape, a), cli_number(all->time.r2, b), all->n_time);
	panel[0] = (struct sheet_panel){ .title = m->schema->time,
					 .note = note[0],
					 .x_label = "predicted",
					 .y_label = "actual",
					 .point = point,
					 .series = series,
					 .log_x = true,
					 .log_y = true,
					 .diagonal = true };
	panel[0].n = plot_points(r, r->table->time, r->time, point, series);
	for (size_t i = 0; i < panel[0].n; i++) /* a linear model may answer with less than nothing */
		panel[0].log_x = panel[0].log_y = panel[0].log_x && point[i].x > 0.0;
	if (all->n_accuracy) {
		snprintf(note[1], sizeof note[1], "MAE %s, R2 %s, %zu rows", cli_number(all->accuracy.mae, a),
			 cli_number(all->accuracy.r2, b), all->n_accuracy);
		panel[1] = (struct sheet_panel){ .title = m->schema->accuracy,
						 .note = note[1],
						 .x_label = "predicted",
						 .y_label = "actual",
						 .point = point + rows,
						 .series = series + rows,
						 .diagonal = true };
		panel[1].n = plot_points(r, r->table->accuracy, r->accuracy, point + rows, series + rows);
	}
	snprintf(note[2], sizeof note[2],
		 "On the diagonal the prediction is right; above it what was measured is larger.%s",
		 all->n_extrapolated ? " Squares: outside the training table." : "");
	sheet_draw(&svg, "Actual against predicted", note[2], panel, all->n_accuracy ? 2 : 1);
	rc = svg.failed ? err_nomem(err, "a picture") : cli_write(o->plot, &svg, err);
out:
	strbuf_release(&svg);
	free(point);
	free(series);
	return rc;
}

static int evaluate(const struct cli *c, const struct options *o, const struct model *m,
		    const struct table *t, struct strbuf *out, struct err *err)
{
	struct err no_bound = { 0 };
	struct groups groups = { 0 };
	struct totals all = { 0 };
	struct rows r = { 0 };
	double q;
	uint32_t *every = mem_array(t->n_rows, sizeof *every);
	int rc = every ? rows_predict(m, t, &r, err) : err_nomem(err, NULL);

	if (rc)
		goto out;
	r.confidence = o->confidence;
	r.bounded = !conformal_quantile(&m->time.conformal, belief_asks(o->confidence), &q, &no_bound);
	if (!r.bounded)
		cli_notice(c, "no upper bound to check: %s", no_bound.text);
	if (m->accuracy.predictor.ops && !t->accuracy)
		cli_notice(c, "%s has no accuracy column; only time is scored", c->arg[1]);
	if (!m->accuracy.predictor.ops)
		cli_notice(c, "%s has no model of accuracy; only time is scored", c->arg[0]);
	for (size_t i = 0; i < t->n_rows; i++)
		every[i] = (uint32_t)i;
	total_rows(m, &r, every, t->n_rows, &all);
	if (all.n_unstable)
		cli_notice(c,
			   "the model has no time for %zu of %zu rows, because its queue is unstable there; "
			   "they are not scored",
			   all.n_unstable, all.n_rows);
	if (all.n_time == 0) {
		rc = err_fail(err, ERR_FORMAT, "%s: no row has a time to compare with", c->arg[1]);
		goto out;
	}
	if (o->by)
		rc = groups_make(m, &r, o->by, &groups, err);
	if (!rc && c->json)
		print_json(out, o, &r, &all, &groups);
	else if (!rc)
		print_people(out, c, o, m, &r, &all, &groups);
	if (!rc && o->plot)
		rc = write_plot(o, m, &r, &all, err);
out:
	free(groups.totals);
	rows_release(&r);
	free(every);
	return rc;
}

#define AT(member) CLI_AT(struct options, member)
static const struct cli_option option[] = {
	{ 0, "confidence", CLI_CONFIDENCE, "C", "confidence of the upper bound (default: 0.9 or 90%)",
	  AT(confidence) },
	{ 0, "by", CLI_TEXT, "COLUMN", "also print the scores for each value of this column", AT(by) },
	{ 0, "plot", CLI_TEXT, "FILE.svg", "draw actual against predicted values", AT(plot) },
	{ 0, "exclude", CLI_LIST, "COL=VALUE", "leave these rows out; may be repeated", AT(exclude) },
	{ 0 },
};

static const struct cli_usage usage = {
	.verb = "evaluate",
	.synopsis = "MODEL DATA.csv [--confidence C] [--by COLUMN] [--plot FILE.svg] [--json]",
	.what = "Tests a model on a table of runs. Prints the mean squared error, R2, the mean absolute\n"
		"percentage error, the mean absolute error, and how many rows stay within the upper bound.\n"
		"Use a table that the model was not trained on: on its own table a model looks too good.\n"
		"Rows that the model's schema excludes are left out.",
	.option = option,
	.json = true,
	.output = "write the report here instead of standard output",
	.min_args = 2,
	.max_args = 2,
	.examples = "  postrider evaluate runs.model later.csv\n"
		    "  postrider evaluate runs.model later.csv --by network --confidence 95%\n",
};

int verb_evaluate(int argc, char **argv)
{
	struct options o = { .confidence = 0.9 };
	struct cli_input in = { 0 };
	struct strbuf out = { 0 };
	struct model *m = NULL;
	struct err err = { 0 };
	struct cli c;
	int code, rc;

	if (!cli_parse_into(&c, &usage, &o, argc, argv, &code))
		return code;
	if (o.plot && !strcmp(o.plot, "-"))
		return cli_usage_error(&c, "--plot - : name a file");
	rc = cli_check_output(c.output, &err);
	if (!rc)
		rc = cli_check_output(o.plot, &err);
	if (!rc)
		rc = cli_model_open(c.arg[0], &m, &err);
	if (!rc)
		rc = cli_input_open(&in, &c,
				    &(struct cli_input_params){ .path = c.arg[1],
								.schema = m->schema,
								.exclude = &o.exclude,
								.need_targets = true },
				    &err);
	if (!rc && in.table->fingerprint == m->data_fingerprint)
		cli_notice(&c,
			   "%s is the table that the model was trained on, so the scores are too good; those "
			   "of 'model show' come from rows that were held out",
			   cli_clean(c.arg[1]));
	if (!rc && in.table->n_rows > 1000)
		rc = model_compile(m, &err);
	if (!rc)
		rc = evaluate(&c, &o, m, in.table, &out, &err);
	if (!rc)
		rc = cli_write(c.output, &out, &err);
	code = rc ? cli_fail(&err) : 0;
	cli_input_release(&in);
	strbuf_release(&out);
	model_free(m);
	return code;
}
