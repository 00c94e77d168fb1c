/* The operator's runs and the daemon's observations as one table. See training_data.h. */
#include "scheduler/daemon/learn/training_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* ---- what the operator gave ---- */

int training_base_read(const char *table, const char *curves, const struct schema *s,
		       struct training_base *out, struct err *err)
{
	int rc = 0;

	*out = (struct training_base){ 0 };
	if (table)
		rc = csv_read_file(table, &out->runs, err);
	if (!rc && table && curves)
		rc = csv_read_file(curves, &out->curve, err);
	if (!rc && out->curve)
		rc = curves_join(out->runs, out->curve, s, &out->joined, err);
	if (rc)
		training_base_release(out);
	return rc;
}

void training_base_release(struct training_base *b)
{
	curves_free(b->joined);
	csv_free(b->curve);
	csv_free(b->runs);
	*b = (struct training_base){ 0 };
}

static const struct csv *base_csv(const struct training_base *b)
{
	return !b ? NULL : b->joined ? b->joined->csv : b->runs;
}

/* ---- the columns of a schema in a file ---- */

/* Where column i of the schema (factors, derived ones, then time, accuracy and what rows are excluded by) is
 * in the file; -1: it has none. */
static int place_of(const struct csv *csv, const struct schema *s, size_t i, const char **out_name)
{
	int at;

	if (i < s->n_columns) {
		*out_name = s->column[i].name;
		at = csv_column(csv, s->column[i].name);
		for (size_t k = 0; at < 0 && k < s->column[i].n_aliases; k++)
			at = csv_column(csv, s->column[i].alias[k]);
		return at;
	}
	i -= s->n_columns;
	if (i < s->n_derived)
		*out_name = s->derived[i].name;
	else if (i == s->n_derived)
		*out_name = s->time;
	else if (i == s->n_derived + 1)
		*out_name = s->accuracy;
	else
		*out_name = s->exclude[i - s->n_derived - 2].column;
	return *out_name ? csv_column(csv, *out_name) : -1;
}

static size_t n_places(const struct schema *s)
{
	return s->n_columns + s->n_derived + 2 + s->n_excludes;
}

/* ---- observations that can be used ---- */

/* number[]: of the sources, NaN where there is none. */
static bool row_numbers(const struct csv *csv, size_t row, const struct schema *s, const int *place,
			double *number)
{
	for (size_t i = 0; i < s->n_columns + s->n_derived; i++) {
		bool is_number = i >= s->n_columns || s->column[i].kind == COLUMN_NUMBER;

		number[i] = NAN;
		if (is_number && place[i] >= 0 && csv_number(csv, row, (size_t)place[i], &number[i], NULL))
			return false;
	}
	for (size_t i = 0; i < s->n_derived; i++) {
		double *v = &number[s->n_columns + i];

		if (isnan(*v))
			*v = schema_derive(&s->derived[i], number);
		if (isinf(*v))
			return false;
	}
	return true;
}

static bool row_usable(const struct csv *csv, size_t row, const struct schema *s, const int *place)
{
	double number[SCHEMA_MAX_COLUMNS], v = NAN;
	size_t time = s->n_columns + s->n_derived;

	if (place[time] < 0 || csv_number(csv, row, (size_t)place[time], &v, NULL) || !(v > 0.0))
		return false;
	if (place[time + 1] >= 0 && csv_number(csv, row, (size_t)place[time + 1], &v, NULL))
		return false;
	return row_numbers(csv, row, s, place, number);
}

int training_usable(const struct csv *observations, const struct schema *s, bool *good, struct err *err)
{
	int *place = mem_array(n_places(s), sizeof *place);
	const char *name;

	if (!place)
		return err_nomem(err, "the table to learn from");
	for (size_t i = 0; i < n_places(s); i++)
		place[i] = place_of(observations, s, i, &name);
	for (size_t i = 0; i < observations->n_rows; i++)
		good[i] = good[i] && row_usable(observations, i, s, place);
	free(place);
	return 0;
}

/* ---- one table ---- */

struct columns { /* of the table that is made */
	const char **name;
	int *base, *observed; /* where each is in the two files; -1: nowhere */
	size_t n;
};

static void columns_release(struct columns *c)
{
	free(c->name);
	free(c->base);
	free(c->observed);
}

static bool has_column(const struct columns *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!strcmp(c->name[i], name))
			return true;
	}
	return false;
}

static int columns_find(const struct csv *base, const struct csv *observed, const struct schema *s,
			struct columns *c, struct err *err)
{
	size_t max = n_places(s);

	*c = (struct columns){ .name = mem_array(max, sizeof *c->name),
			       .base = mem_array(max, sizeof *c->base),
			       .observed = mem_array(max, sizeof *c->observed) };
	if (!c->name || !c->base || !c->observed) {
		columns_release(c);
		return err_nomem(err, "the table to learn from");
	}
	for (size_t i = 0; i < max; i++) {
		const char *name = NULL;
		int in_base = base ? place_of(base, s, i, &name) : -1;
		int in_observed = observed ? place_of(observed, s, i, &name) : -1;
		bool needed = i < s->n_columns && !s->column[i].optional;

		/* A column neither has is left out, so that the schema can say it is missing, unless a table
		 * of observations alone lacks it: then it is unknown of every job. */
		if (!name || (in_base < 0 && in_observed < 0 && (base || !needed)) || has_column(c, name))
			continue;
		c->name[c->n] = name;
		c->base[c->n] = in_base;
		c->observed[c->n++] = in_observed;
	}
	return 0;
}

static void put_row(struct strbuf *out, const struct csv *csv, size_t row, const int *place, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_add(out, ",", 1);
		if (place[i] >= 0)
			csv_put(out, csv_cell(csv, row, (size_t)place[i]));
	}
	strbuf_add(out, "\n", 1);
}

/* The runs of the base's rows, and each observation its own. */
static int runs_make(const struct training_base *base, struct training_table *t, struct err *err)
{
	size_t n_base;

	if (!base || !base->joined)
		return 0;
	n_base = base->joined->csv->n_rows;
	t->run = mem_array(t->csv->n_rows, sizeof *t->run);
	if (!t->run)
		return err_nomem(err, "the table to learn from");
	for (size_t i = 0; i < t->csv->n_rows; i++)
		t->run[i] = i < n_base ? base->joined->run[i] : (uint32_t)i;
	return 0;
}

int training_table_make(const struct training_base *base, const struct csv *observations, const uint32_t *row,
			size_t n, const struct schema *s, struct training_table *out, struct err *err)
{
	const struct csv *first = base_csv(base);
	struct strbuf text = { 0 };
	struct columns c;
	int rc;

	*out = (struct training_table){ 0 };
	rc = columns_find(first, observations, s, &c, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < c.n; i++) {
		if (i)
			strbuf_add(&text, ",", 1);
		csv_put(&text, c.name[i]);
	}
	strbuf_add(&text, "\n", 1);
	for (size_t i = 0; first && i < first->n_rows; i++)
		put_row(&text, first, i, c.base, c.n);
	for (size_t i = 0; i < n; i++)
		put_row(&text, observations, row[i], c.observed, c.n);
	rc = text.failed ? err_nomem(err, "the table to learn from")
			 : csv_parse("runs and observations", text.text, text.len, &out->csv, err);
	strbuf_release(&text);
	columns_release(&c);
	if (!rc)
		rc = table_read(out->csv, s, true, &out->table, err);
	if (!rc)
		rc = runs_make(base, out, err);
	if (rc)
		training_table_release(out);
	return rc;
}

void training_table_release(struct training_table *t)
{
	table_free(t->table);
	csv_free(t->csv);
	free(t->run);
	*t = (struct training_table){ 0 };
}
