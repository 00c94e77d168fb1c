/* Joins the curves of runs to the table of runs: see curves.h for what a run stopped early would have
 * taken. */
#define _GNU_SOURCE
#include "predictors/data/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

#define KEY_MAX 256 /* columns two tables are matched by */

struct join {
	const struct csv *runs, *curve;
	const struct schema *schema;
	size_t n_keys;
	size_t run_key[KEY_MAX], curve_key[KEY_MAX]; /* where the columns both have are in each */
	int run_epochs, run_time, run_accuracy; /* columns of the runs; accuracy -1: none */
	int epoch, elapsed, accuracy; /* columns of the curves; -1: none */
	uint32_t *run; /* rows of the runs, by key */
	uint32_t *point; /* rows of the curves, by key */
	double *epoch_of; /* per row of the curves */
	bool *stale; /* per column of the runs: to be derived again, it depends on the epochs */
	struct strbuf text; /* the joined table */
	struct curves *out;
};

static const char *file_of(const struct csv *t)
{
	return text_tail(t->name, 100);
}

/* ---- columns ---- */

/* As table_read() finds it: its own name, else the first alias the table has. */
static int locate(const struct csv *t, const struct schema_column *c)
{
	int at = csv_column(t, c->name);

	for (size_t i = 0; at < 0 && i < c->n_aliases; i++)
		at = csv_column(t, c->alias[i]);
	return at;
}

static bool is_measured(const struct join *j, const char *column)
{
	return !strcmp(column, "epoch") || !strcmp(column, "elapsed_s") || !strcmp(column, "loss") ||
	       !strcmp(column, j->schema->time) ||
	       (j->schema->accuracy && !strcmp(column, j->schema->accuracy));
}

static int find_columns(struct join *j, struct err *err)
{
	int epochs = schema_role(j->schema, ROLE_EPOCHS);
	bool factor = epochs >= 0 && (size_t)epochs < j->schema->n_columns;

	j->run_epochs = factor ? locate(j->runs, &j->schema->column[epochs]) : -1;
	j->run_time = csv_column(j->runs, j->schema->time);
	j->run_accuracy = j->schema->accuracy ? csv_column(j->runs, j->schema->accuracy) : -1;
	j->epoch = csv_column(j->curve, "epoch");
	j->elapsed = csv_column(j->curve, "elapsed_s");
	j->accuracy = j->run_accuracy >= 0 ? csv_column(j->curve, j->schema->accuracy) : -1;
	if (j->run_epochs < 0)
		return err_fail(err, ERR_FORMAT,
				"%s: no column of epochs, so curves cannot be told to end before it",
				file_of(j->runs));
	if (j->run_time < 0)
		return err_fail(err, ERR_FORMAT, "%s: no column '%.60s'", file_of(j->runs), j->schema->time);
	if (j->epoch < 0 || (j->elapsed < 0 && j->accuracy < 0))
		return err_fail(err, ERR_FORMAT,
				"%s: curves have a column 'epoch' and one of 'elapsed_s' and the accuracy",
				file_of(j->curve));
	for (size_t i = 0; i < j->curve->n_columns; i++) {
		int at = is_measured(j, j->curve->header[i]) ? -1 : csv_column(j->runs, j->curve->header[i]);

		if (at < 0 || j->n_keys == KEY_MAX)
			continue;
		j->curve_key[j->n_keys] = i;
		j->run_key[j->n_keys++] = (size_t)at;
	}
	if (!j->n_keys)
		return err_fail(err, ERR_FORMAT,
				"%s has no column of %s that says to which run a row belongs",
				file_of(j->curve), file_of(j->runs));
	return 0;
}

/* Derived columns that the runs hold themselves and that follow from the epochs. */
static void find_stale(struct join *j)
{
	const struct schema *s = j->schema;
	bool follows[SCHEMA_MAX_COLUMNS] = { false };

	follows[schema_role(s, ROLE_EPOCHS)] = true;
	for (size_t i = 0; i < s->n_derived; i++) {
		int at = csv_column(j->runs, s->derived[i].name);

		for (size_t k = 0; k < s->derived[i].n_of; k++)
			follows[s->n_columns + i] |= follows[s->derived[i].source[k]];
		if (at >= 0 && follows[s->n_columns + i])
			j->stale[at] = true;
	}
}

/* ---- which run a row is of ---- */

static int compare_keys(const struct csv *a, const size_t *a_key, uint32_t a_row, const struct csv *b,
			const size_t *b_key, uint32_t b_row, size_t n)
{
	int order = 0;

	for (size_t k = 0; k < n && !order; k++)
		order = strcmp(csv_cell(a, a_row, a_key[k]), csv_cell(b, b_row, b_key[k]));
	return order;
}

static int compare_runs(const void *a, const void *b, void *ctx)
{
	const struct join *j = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = compare_keys(j->runs, j->run_key, x, j->runs, j->run_key, y, j->n_keys);

	return order ? order : (x > y) - (x < y);
}

/* By run, then by epoch. */
static int compare_points(const void *a, const void *b, void *ctx)
{
	const struct join *j = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = compare_keys(j->curve, j->curve_key, x, j->curve, j->curve_key, y, j->n_keys);

	if (!order)
		order = (j->epoch_of[x] > j->epoch_of[y]) - (j->epoch_of[x] < j->epoch_of[y]);
	return order ? order : (x > y) - (x < y);
}

static bool same_run(const struct join *j, uint32_t point, uint32_t other)
{
	return !compare_keys(j->curve, j->curve_key, point, j->curve, j->curve_key, other, j->n_keys);
}

static int sort_rows(struct join *j, struct err *err)
{
	for (size_t i = 0; i < j->curve->n_rows; i++) {
		int rc = csv_number(j->curve, i, (size_t)j->epoch, &j->epoch_of[i], err);

		if (rc)
			return rc;
		if (!(j->epoch_of[i] >= 0.0))
			return err_fail(err, ERR_FORMAT, "%s:%u: column epoch: '%.40s' is not an epoch",
					file_of(j->curve), j->curve->line[i],
					csv_cell(j->curve, i, (size_t)j->epoch));
		j->point[i] = (uint32_t)i;
	}
	qsort_r(j->point, j->curve->n_rows, sizeof *j->point, compare_points, j);
	for (size_t i = 0; i < j->runs->n_rows; i++)
		j->run[i] = (uint32_t)i;
	qsort_r(j->run, j->runs->n_rows, sizeof *j->run, compare_runs, j);
	for (size_t i = 1; i < j->runs->n_rows; i++)
		if (!compare_keys(j->runs, j->run_key, j->run[i - 1], j->runs, j->run_key, j->run[i],
				  j->n_keys))
			return err_fail(
				err, ERR_FORMAT,
				"%s: lines %u and %u agree in every column of %s, so a curve cannot be "
				"told to be of one of them",
				file_of(j->runs), j->runs->line[j->run[i - 1]], j->runs->line[j->run[i]],
				file_of(j->curve));
	return 0;
}

/* ---- rows ---- */

static void put_row(struct join *j, uint32_t run, const char *epochs, const double *time,
		    const char *accuracy)
{
	for (size_t i = 0; i < j->runs->n_columns; i++) {
		if (i)
			strbuf_puts(&j->text, ",");
		if (epochs && (int)i == j->run_epochs)
			csv_put(&j->text, epochs);
		else if (epochs && (int)i == j->run_time)
			csv_put_number(&j->text, *time);
		else if (epochs && (int)i == j->run_accuracy)
			csv_put(&j->text, accuracy);
		else if (!epochs || !j->stale[i])
			csv_put(&j->text, csv_cell(j->runs, run, i));
	}
	strbuf_puts(&j->text, "\n");
}

static int number_at(const struct csv *t, size_t row, int column, double *out, struct err *err)
{
	*out = NAN;
	return column < 0 ? 0 : csv_number(t, row, (size_t)column, out, err);
}

/* The time of a run stopped at `elapsed` (curves.h says why); NaN where it cannot be known. */
static double time_stopped(double elapsed, double last, double time)
{
	double t = time >= last ? elapsed + (time - last) : elapsed * (time / last);

	return elapsed > 0.0 && elapsed <= last && t > 0.0 && isfinite(t) ? t : NAN;
}

/* The points [from, to) are of one run, in ascending order of epochs. */
static int add_run(struct join *j, uint32_t run, size_t from, size_t to, struct err *err)
{
	double epochs, time, last = NAN;
	bool finished = false;
	int rc = number_at(j->runs, run, j->run_epochs, &epochs, err);

	if (!rc)
		rc = number_at(j->runs, run, j->run_time, &time, err);
	for (size_t i = from; i < to && !rc; i++) {
		uint32_t p = j->point[i];

		if (i > from && j->epoch_of[p] == j->epoch_of[j->point[i - 1]])
			return err_fail(err, ERR_FORMAT, "%s:%u: epoch %g of a run that has one in line %u",
					file_of(j->curve), j->curve->line[p], j->epoch_of[p],
					j->curve->line[j->point[i - 1]]);
		if (j->epoch_of[p] != epochs)
			continue;
		finished = true;
		rc = number_at(j->curve, p, j->elapsed, &last, err);
	}
	if (!rc && !finished)
		j->out->n_unfinished++;
	for (size_t i = from; i < to && !rc && finished; i++) {
		uint32_t p = j->point[i];
		double elapsed, stopped, accuracy;

		if (!(j->epoch_of[p] > 0.0 && j->epoch_of[p] < epochs))
			continue;
		rc = number_at(j->curve, p, j->elapsed, &elapsed, err);
		if (!rc) /* said with the file it is in, not with the joined table */
			rc = number_at(j->curve, p, j->accuracy, &accuracy, err);
		if (rc)
			break;
		stopped = time_stopped(elapsed, last, time);
		put_row(j, run, csv_cell(j->curve, p, (size_t)j->epoch), &stopped,
			j->accuracy >= 0 ? csv_cell(j->curve, p, (size_t)j->accuracy) : "");
		j->out->run[j->runs->n_rows + j->out->n_added++] = run;
	}
	return rc;
}

/* Both lists are in the order of the keys: one walk over each. */
static int add_rows(struct join *j, struct err *err)
{
	size_t at = 0, n = j->curve->n_rows;
	int rc = 0;

	for (size_t from = 0, to; from < n && !rc; from = to) {
		int order = -1;

		for (to = from + 1; to < n && same_run(j, j->point[from], j->point[to]);)
			to++;
		while (at < j->runs->n_rows &&
		       (order = compare_keys(j->runs, j->run_key, j->run[at], j->curve, j->curve_key,
					     j->point[from], j->n_keys)) < 0) {
			j->out->n_without++;
			at++;
		}
		if (at < j->runs->n_rows && order == 0)
			rc = add_run(j, j->run[at++], from, to, err);
		else
			j->out->n_strangers += to - from;
	}
	j->out->n_without += j->runs->n_rows - at;
	return rc;
}

static int parse_joined(struct join *j, struct err *err)
{
	int rc;

	if (j->text.failed)
		return err_nomem(err, "the rows of %s", file_of(j->curve));
	rc = csv_parse(j->runs->name, strbuf_text(&j->text), j->text.len, &j->out->csv, err);
	for (size_t i = 0; !rc && i < j->out->csv->n_rows; i++)
		j->out->csv->line[i] = j->runs->line[j->out->run[i]]; /* what is wrong is wrong there */
	return rc;
}

int curves_join(const struct csv *runs, const struct csv *curve, const struct schema *schema,
		struct curves **out, struct err *err)
{
	struct join j = { .runs = runs, .curve = curve, .schema = schema };
	int rc = find_columns(&j, err);

	if (rc)
		return rc;
	j.out = mem_calloc(1, sizeof *j.out);
	j.run = mem_array(runs->n_rows, sizeof *j.run);
	j.point = mem_array(curve->n_rows, sizeof *j.point);
	j.epoch_of = mem_array(curve->n_rows, sizeof *j.epoch_of);
	j.stale = mem_calloc(runs->n_columns, sizeof *j.stale);
	if (j.out)
		j.out->run = mem_array(runs->n_rows + curve->n_rows, sizeof *j.out->run);
	if (!j.out || !j.out->run || !j.run || !j.point || !j.epoch_of || !j.stale) {
		rc = err_fail(err, ERR_NOMEM, "out of memory to join %zu runs and %zu rows of curves",
			      runs->n_rows, curve->n_rows);
		goto out;
	}
	find_stale(&j);
	j.out->n_runs = runs->n_rows;
	for (size_t i = 0; i < runs->n_columns; i++) {
		strbuf_puts(&j.text, i ? "," : "");
		csv_put(&j.text, runs->header[i]);
	}
	strbuf_puts(&j.text, "\n");
	for (size_t i = 0; i < runs->n_rows; i++) {
		put_row(&j, (uint32_t)i, NULL, NULL, NULL);
		j.out->run[i] = (uint32_t)i;
	}
	rc = sort_rows(&j, err);
	if (!rc)
		rc = add_rows(&j, err);
	if (!rc)
		rc = parse_joined(&j, err);
out:
	free(j.run);
	free(j.point);
	free(j.epoch_of);
	free(j.stale);
	strbuf_release(&j.text);
	if (rc)
		curves_free(j.out);
	else
		*out = j.out;
	return rc;
}

void curves_free(struct curves *c)
{
	if (!c)
		return;
	csv_free(c->csv);
	free(c->run);
	free(c);
}
