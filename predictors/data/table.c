/* From the cells of a CSV to the raw columns a schema speaks of. Read features.c next. */
#include "predictors/data/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/phases.h"
#include "common/text/text.h"
#include "common/text/hash.h"
#include "predictors/models/mixed.h"

#define NAME_SHOWN 200 /* bytes of a file's name in a message */

static const char *csv_name(const struct csv *csv)
{
	return text_tail(csv->name, NAME_SHOWN);
}

static int nomem(const struct csv *csv, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for %zu rows", csv_name(csv), csv->n_rows);
}

/* The csv column that holds a schema column, by its name or else by an alias; -1: none. */
static int locate(const struct csv *csv, const struct schema_column *c)
{
	int found = csv_column(csv, c->name);

	for (size_t k = 0; k < c->n_aliases && found < 0; k++)
		found = csv_column(csv, c->alias[k]);
	return found;
}

/* "FILE: no column 'cpus' (or 'cpu')..." with the nearest column the file does have. */
static int absent(const struct csv *csv, const struct schema_column *c, const char *name, struct err *err)
{
	const char *near, **known = mem_array(csv->n_columns + 1, sizeof *known);
	char shown[SCHEMA_MAX_NAME + 1], alias[SCHEMA_MAX_NAME + 16] = "", hint[SCHEMA_MAX_NAME + 32] = "";

	if (!known)
		return nomem(csv, err);
	for (size_t i = 0; i < csv->n_columns; i++)
		known[i] = csv->header[i];
	known[csv->n_columns] = NULL;
	if (c && c->n_aliases)
		snprintf(alias, sizeof alias, " (or '%s')", c->alias[0]);
	near = text_nearest(name, known);
	if (near)
		snprintf(hint, sizeof hint, "; is it '%s'?", text_printable(near, shown, sizeof shown));
	free(known);
	return err_fail(err, ERR_FORMAT, "%s: no column '%s'%s, which the schema asks for%s", csv_name(csv),
			name, alias, hint);
}

/* Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool table_is_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		unsigned low = 0x80, high = 0xbf;
		int more;

		if (*s < 0x80)
			more = 0;
		else if (*s >= 0xc2 && *s <= 0xdf)
			more = 1;
		else if (*s >= 0xe0 && *s <= 0xef)
			more = 2;
		else if (*s >= 0xf0 && *s <= 0xf4)
			more = 3;
		else
			return false;
		if (*s == 0xe0)
			low = 0xa0;
		else if (*s == 0xed)
			high = 0x9f;
		else if (*s == 0xf0)
			low = 0x90;
		else if (*s == 0xf4)
			high = 0x8f;
		for (s++; more; more--, s++, low = 0x80, high = 0xbf)
			if (*s < low || *s > high)
				return false;
	}
	return true;
}

/* Which rows the schema leaves out. */
static int keep_rows(struct table *t, struct err *err)
{
	const struct csv *csv = t->csv;
	int *column = mem_array(t->schema->n_excludes, sizeof *column);

	t->row = mem_array(csv->n_rows, sizeof *t->row);
	if (!t->row || !column) {
		free(column);
		return nomem(csv, err);
	}
	for (size_t k = 0; k < t->schema->n_excludes; k++) {
		const char *name = t->schema->exclude[k].column;
		int factor = schema_find(t->schema, name);

		column[k] = factor < 0 ? csv_column(csv, name) : locate(csv, &t->schema->column[factor]);
	}
	for (size_t i = 0; i < csv->n_rows; i++) {
		bool keep = true;

		for (size_t k = 0; k < t->schema->n_excludes && keep; k++)
			keep = column[k] < 0 ||
			       strcmp(csv_cell(csv, i, (size_t)column[k]), t->schema->exclude[k].value) != 0;
		if (keep)
			t->row[t->n_rows++] = (uint32_t)i;
	}
	t->n_excluded = csv->n_rows - t->n_rows;
	free(column);
	return 0;
}

static int read_numbers(const struct table *t, size_t column, double **out, struct err *err)
{
	*out = mem_array(t->n_rows, sizeof **out);
	if (!*out)
		return nomem(t->csv, err);
	for (size_t i = 0; i < t->n_rows; i++) {
		int rc = csv_number(t->csv, t->row[i], column, &(*out)[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_categories(const struct table *t, size_t column, char ***out, struct err *err)
{
	char name[SCHEMA_MAX_NAME + 1], shown[64];

	*out = mem_array(t->n_rows, sizeof **out);
	if (!*out)
		return nomem(t->csv, err);
	for (size_t i = 0; i < t->n_rows; i++) {
		char *cell = t->csv->cell[t->row[i] * t->csv->n_columns + column];

		/* a model file is JSON in part: other bytes would come back as other bytes */
		if (!table_is_utf8(cell))
			return err_fail(err, ERR_FORMAT,
					"%s:%u: column %s: '%s' is not UTF-8: convert the file (iconv)",
					csv_name(t->csv), t->csv->line[t->row[i]],
					text_printable(t->csv->header[column], name, sizeof name),
					text_printable(cell, shown, sizeof shown));
		(*out)[i] = *cell ? cell : NULL;
	}
	return 0;
}

static int read_factors(struct table *t, enum table_needs needs, bool *used, struct err *err)
{
	for (size_t i = 0; i < t->schema->n_columns; i++) {
		const struct schema_column *c = &t->schema->column[i];
		struct table_column *column = &t->column[i];
		int at = locate(t->csv, c), rc;

		column->kind = c->kind;
		if (at < 0 && !c->optional && needs != TABLE_NEEDS_NOTHING)
			return absent(t->csv, c, c->name, err);
		if (at < 0)
			continue;
		column->present = used[at] = true;
		rc = c->kind == COLUMN_NUMBER ? read_numbers(t, (size_t)at, &column->number, err)
					      : read_categories(t, (size_t)at, &column->category, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* "FILE:12" of a row of a file, "NAME: row 3" of one in memory. */
static const char *where_of(const struct table *t, size_t row, char *out, size_t size)
{
	if (t->csv)
		snprintf(out, size, "%s:%u", csv_name(t->csv), t->csv->line[t->row[row]]);
	else
		snprintf(out, size, "%s: row %u", text_tail(t->name, NAME_SHOWN), t->row[row] + 1);
	return out;
}

static int derive_fail(const struct table *t, const struct schema_derived *d, size_t row,
		       const double *number, struct err *err)
{
	static const char *const what[] = { "product of", "inverse of", "logarithm of" };
	char list[160] = "", where[NAME_SHOWN + 32];
	size_t used = 0;

	for (size_t k = 0; k < d->n_of && used < sizeof list; k++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s = %g", k ? ", " : "",
					 d->of[k], number[d->source[k]]);
	return err_fail(err, ERR_FORMAT, "%s: column %s: the %s %s is not a finite number",
			where_of(t, row, where, sizeof where), d->name, what[d->op], list);
}

/* Fills the missing values of one derived column from its inputs. */
static int derive(struct table *t, size_t index, struct err *err)
{
	const struct schema_derived *d = &t->schema->derived[index];
	struct table_column *column = &t->column[t->schema->n_columns + index];
	double number[SCHEMA_MAX_COLUMNS];

	for (size_t k = 0; k < d->n_of; k++)
		if (!t->column[d->source[k]].present)
			return 0;
	if (!column->number) {
		column->present = true;
		column->number = mem_array(t->n_rows, sizeof *column->number);
		if (!column->number)
			return err_fail(err, ERR_NOMEM, "%s: out of memory for %zu rows",
					text_tail(t->name, NAME_SHOWN), t->n_rows);
		for (size_t i = 0; i < t->n_rows; i++)
			column->number[i] = NAN;
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		if (!isnan(column->number[i]))
			continue;
		for (size_t k = 0; k < d->n_of; k++)
			number[d->source[k]] = t->column[d->source[k]].number[i];
		column->number[i] = schema_derive(d, number);
		if (isinf(column->number[i]))
			return derive_fail(t, d, i, number, err);
	}
	return 0;
}

static int read_derived(struct table *t, bool *used, struct err *err)
{
	for (size_t i = 0; i < t->schema->n_derived; i++) {
		struct table_column *column = &t->column[t->schema->n_columns + i];
		int at = csv_column(t->csv, t->schema->derived[i].name), rc = 0;

		column->kind = COLUMN_NUMBER;
		if (at >= 0) {
			column->present = used[at] = true;
			rc = read_numbers(t, (size_t)at, &column->number, err);
		}
		if (rc)
			return rc;
	}
	return 0;
}

static int read_targets(struct table *t, enum table_needs needs, bool *used, struct err *err)
{
	const struct schema *s = t->schema;
	int time = csv_column(t->csv, s->time), accuracy = s->accuracy ? csv_column(t->csv, s->accuracy) : -1;
	int rc = 0;

	if (time < 0 && needs == TABLE_NEEDS_TARGETS)
		return absent(t->csv, NULL, s->time, err);
	if (time >= 0) {
		used[time] = true;
		rc = read_numbers(t, (size_t)time, &t->time, err);
	}
	for (size_t i = 0; i < t->n_rows && !rc && t->time; i++)
		if (t->time[i] <= 0.0)
			rc = err_fail(err, ERR_FORMAT, "%s:%u: column %s: a time of %g: need more than 0",
				      csv_name(t->csv), t->csv->line[t->row[i]], s->time, t->time[i]);
	if (!rc && accuracy >= 0) {
		used[accuracy] = true;
		rc = read_numbers(t, (size_t)accuracy, &t->accuracy, err);
	}
	return rc;
}

/* A run beside jobs of another kind says how long such a job takes there, and nothing about the law of
 * sharing among equal jobs. */
static int read_beside(struct table *t, bool *used, struct err *err)
{
	int at = schema_find_any(t->schema, TABLE_BESIDE_COLUMN) >= 0
			 ? -1
			 : csv_column(t->csv, TABLE_BESIDE_COLUMN);
	char type[MIXED_MAX_TEXT + 1];
	size_t n = 0;

	if (at < 0)
		return 0;
	used[at] = true;
	for (size_t i = 0; i < t->n_rows; i++)
		n += *csv_cell(t->csv, t->row[i], (size_t)at) != '\0';
	if (!n || !t->time)
		return 0;
	t->beside = mem_calloc(t->n_rows, sizeof *t->beside);
	t->mixed_time = mem_array(t->n_rows, sizeof *t->mixed_time);
	if (!t->beside || !t->mixed_time)
		return nomem(t->csv, err);
	for (size_t i = 0; i < t->n_rows; i++) {
		const char *text = csv_cell(t->csv, t->row[i], (size_t)at);

		t->mixed_time[i] = NAN;
		if (!*text)
			continue;
		if (strlen(text) > MIXED_MAX_TEXT || !table_is_utf8(text) ||
		    !mixed_neighbour(text, type, sizeof type))
			return err_fail(err, ERR_FORMAT,
					"%s:%u: column " TABLE_BESIDE_COLUMN
					": '%.60s' names no neighbours: need a job type, "
					"NAME=VALUE,NAME=VALUE, or both with a blank between them",
					csv_name(t->csv), t->csv->line[t->row[i]], text);
		t->beside[i] = (char *)text;
		t->mixed_time[i] = t->time[i];
		t->time[i] = NAN;
	}
	return 0;
}

static int list_ignored(struct table *t, const bool *used, struct err *err)
{
	const struct schema *s = t->schema;

	t->ignored = mem_array(t->csv->n_columns, sizeof *t->ignored);
	if (!t->ignored)
		return nomem(t->csv, err);
	for (size_t i = 0; i < t->csv->n_columns; i++) {
		bool known = used[i];

		for (size_t k = 0; k < s->n_excludes && !known; k++)
			known = !strcmp(s->exclude[k].column, t->csv->header[i]);
		for (size_t k = 0; k < s->n_ignores && !known; k++)
			known = !strcmp(s->ignore[k], t->csv->header[i]);
		known |= phase_find(t->csv->header[i], strlen(t->csv->header[i])) >= 0; /* see table_seen() */
		if (!known)
			t->ignored[t->n_ignored++] = t->csv->header[i];
	}
	return 0;
}

static uint64_t hash_number(uint64_t h, double v)
{
	unsigned char b[8];
	uint64_t bits;

	v = isnan(v) ? NAN : v + 0.0; /* one NaN, and -0 is 0 */
	memcpy(&bits, &v, sizeof bits);
	for (size_t i = 0; i < 8; i++)
		b[i] = (unsigned char)(bits >> (8 * i));
	return hash_bytes(h, b, 8);
}

static uint64_t hash_column(uint64_t h, const char *name, const double *number, char *const *category,
			    size_t n)
{
	h = hash_bytes(h, name, strlen(name) + 1);
	for (size_t i = 0; i < n; i++) {
		const char *text = category && category[i] ? category[i] : "";
		h = category ? hash_bytes(h, text, strlen(text) + 1) : hash_number(h, number[i]);
	}
	return h;
}

/* Over the schema's names and the values as read: `64` and `64.0`, `cpu` and `cpus`, another order of
 * columns or an unused column do not change it. */
static uint64_t fingerprint(const struct table *t)
{
	const struct schema *s = t->schema;
	uint64_t h = HASH_START;

	for (size_t i = 0; i < s->n_columns + s->n_derived; i++)
		if (t->column[i].present)
			h = hash_column(h, schema_source_name(s, i), t->column[i].number,
					t->column[i].category, t->n_rows);
	if (t->time)
		h = hash_column(h, s->time, t->time, NULL, t->n_rows);
	if (t->accuracy)
		h = hash_column(h, s->accuracy, t->accuracy, NULL, t->n_rows);
	if (t->beside) {
		h = hash_column(h, TABLE_BESIDE_COLUMN, NULL, t->beside, t->n_rows);
		h = hash_column(h, s->time, t->mixed_time, NULL, t->n_rows);
	}
	return h;
}

int table_finish(struct table *t, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < t->schema->n_derived && !rc; i++)
		rc = derive(t, i, err);
	if (!rc)
		t->fingerprint = fingerprint(t);
	return rc;
}

int table_read(const struct csv *csv, const struct schema *schema, enum table_needs needs, struct table **out,
	       struct err *err)
{
	struct table *t = mem_calloc(1, sizeof *t);
	bool *used = mem_calloc(csv->n_columns, sizeof *used);
	int rc;

	if (!t || !used) {
		rc = nomem(csv, err);
		goto out;
	}
	t->schema = schema;
	t->csv = csv;
	t->name = csv->name;
	t->column = mem_calloc(schema->n_columns + schema->n_derived, sizeof *t->column);
	rc = t->column ? keep_rows(t, err) : nomem(csv, err);
	if (!rc)
		rc = read_factors(t, needs, used, err);
	if (!rc)
		rc = read_derived(t, used, err);
	if (!rc)
		rc = read_targets(t, needs, used, err);
	if (!rc)
		rc = read_beside(t, used, err);
	if (!rc)
		rc = list_ignored(t, used, err);
	if (!rc)
		rc = table_finish(t, err);
	if (!rc) {
		*out = t;
		t = NULL;
	}
out:
	free(used);
	table_free(t);
	return rc;
}

/* A column beside the schema; -1: there is none. */
static int beside_schema(const struct table *t, const char *name)
{
	return schema_find_any(t->schema, name) >= 0 ? -1 : csv_column(t->csv, name);
}

/* NaN: nothing that could be used. */
static double amount_at(const struct table *t, size_t row, int column)
{
	double v;
	bool is = text_number(csv_cell(t->csv, t->row[row], (size_t)column), &v) && v >= 0.0 && v < INFINITY;

	return is ? v : NAN;
}

int table_seen(const struct table *t, struct calibrate_seen **out, struct err *err)
{
	int cpu, phase[N_PHASES];
	bool told = true;
	struct calibrate_seen *seen;

	*out = NULL;
	if (!t->csv)
		return 0;
	cpu = beside_schema(t, TABLE_CPU_COLUMN);
	for (size_t k = 0; k < N_PHASES; k++) {
		phase[k] = beside_schema(t, phase_name[k]);
		told &= phase[k] >= 0 || k == PHASE_TEST; /* a script may test outside of its time */
	}
	if (cpu < 0 && !told)
		return 0;
	seen = mem_calloc(t->n_rows, sizeof *seen);
	if (!seen)
		return err_nomem(err, "%zu rows", t->n_rows);
	for (size_t i = 0; i < t->n_rows; i++) {
		if (cpu >= 0)
			seen[i].cpu_used = fmax(0.0, amount_at(t, i, cpu) / 100.0); /* of a NaN: 0 */
		for (size_t k = 0; k < N_PHASES && told; k++)
			seen[i].phase_s[k] = phase[k] >= 0 ? amount_at(t, i, phase[k]) : 0.0;
	}
	*out = seen;
	return 0;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->column && i < t->schema->n_columns + t->schema->n_derived; i++) {
		free(t->column[i].number);
		free(t->column[i].category);
	}
	free(t->column);
	free(t->row);
	free(t->time);
	free(t->accuracy);
	free(t->beside);
	free(t->mixed_time);
	free(t->ignored);
	for (size_t i = 0; i < t->n_owned; i++)
		free(t->owned[i]);
	free(t->owned);
	free(t);
}
