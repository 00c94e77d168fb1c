/* Tables made in memory: from rows of names and values, and from other tables under the same schema. The
 * daemon turns its observations into a training table this way, without writing and reading text. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/data/table.h"

struct table_builder {
	struct table *t; /* has an array for every column, for the time and for the accuracy */
	const struct schema *schema;
	char *name;
	size_t cap, cap_owned, cap_beside;
	bool time, accuracy; /* named by some row */
};

struct row {
	double number[SCHEMA_MAX_COLUMNS];
	const char *category[SCHEMA_MAX_COLUMNS];
	bool named[SCHEMA_MAX_COLUMNS], own_name[SCHEMA_MAX_COLUMNS];
	char shown[SCHEMA_MAX_COLUMNS][32]; /* categories that were given as numbers */
	double time, accuracy;
	bool has_time, has_accuracy;
};

static size_t n_sources(const struct schema *s)
{
	return s->n_columns + s->n_derived;
}

static int nomem(const struct table_builder *b, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for a table", b->name);
}

static int fail_row(const struct table_builder *b, const char *column, struct err *err, const char *reason)
{
	return err_fail(err, ERR_FORMAT, "%s: row %zu: column %s: %s", b->name,
			b->t->n_rows + b->t->n_excluded + 1, column, reason);
}

/* ---- room ---- */

int table_builder_new(const char *name, const struct schema *schema, struct table_builder **out,
		      struct err *err)
{
	struct table_builder *b = mem_calloc(1, sizeof *b);
	struct table *t = mem_calloc(1, sizeof *t);

	if (b)
		*b = (struct table_builder){ .t = t, .schema = schema, .name = mem_strdup(name) };
	if (b && t) {
		t->schema = schema;
		t->name = b->name;
		t->column = mem_calloc(n_sources(schema), sizeof *t->column);
	}
	if (!b || !t || !b->name || !t->column) {
		if (!b)
			free(t);
		table_builder_free(b);
		return err_fail(err, ERR_NOMEM, "%s: out of memory for a table", name);
	}
	for (size_t i = 0; i < n_sources(schema); i++)
		t->column[i].kind = schema_is_category(schema, i) ? COLUMN_CATEGORY : COLUMN_NUMBER;
	*out = b;
	return 0;
}

void table_builder_free(struct table_builder *b)
{
	if (!b)
		return;
	table_free(b->t);
	free(b->name);
	free(b);
}

static bool resize(void *array, size_t n, size_t size)
{
	void **p = array, *more = mem_resize(*p, n, size);

	if (more)
		*p = more;
	return more;
}

/* Makes room for the names of neighbours. Rows that came before a table with such names have none. */
static bool make_room_beside(struct table_builder *b, size_t cap)
{
	struct table *t = b->t;

	if (!resize(&t->beside, cap, sizeof *t->beside) ||
	    !resize(&t->mixed_time, cap, sizeof *t->mixed_time))
		return false;
	for (; b->cap_beside < cap; b->cap_beside++) {
		t->beside[b->cap_beside] = NULL;
		t->mixed_time[b->cap_beside] = NAN;
	}
	return true;
}

static int make_room(struct table_builder *b, size_t more, struct err *err)
{
	size_t need = b->t->n_rows + more, cap = b->cap ? b->cap : 64;
	struct table *t = b->t;
	bool ok;

	if (t->n_rows + t->n_excluded + more > UINT32_MAX)
		return err_fail(err, ERR_FORMAT, "%s: more rows than can be counted", b->name);
	if (need <= b->cap)
		return 0;
	while (cap < need)
		cap *= 2;
	ok = resize(&t->row, cap, sizeof *t->row) && resize(&t->time, cap, sizeof *t->time) &&
	     resize(&t->accuracy, cap, sizeof *t->accuracy) && (!t->beside || make_room_beside(b, cap));
	for (size_t i = 0; i < n_sources(b->schema) && ok; i++)
		ok = t->column[i].kind == COLUMN_CATEGORY
			     ? resize(&t->column[i].category, cap, sizeof *t->column[i].category)
			     : resize(&t->column[i].number, cap, sizeof *t->column[i].number);
	if (!ok)
		return nomem(b, err);
	b->cap = cap;
	return 0;
}

/* A copy that the table owns; the same text is kept once. */
static int own(struct table_builder *b, const char *text, char **out, struct err *err)
{
	struct table *t = b->t;

	*out = NULL;
	if (!text)
		return 0;
	for (size_t i = t->n_owned; i > 0; i--)
		if (!strcmp(t->owned[i - 1], text)) {
			*out = t->owned[i - 1];
			return 0;
		}
	if (mem_grow((void **)&t->owned, &b->cap_owned, t->n_owned + 1, sizeof *t->owned) ||
	    !(*out = mem_strdup(text)))
		return nomem(b, err);
	t->owned[t->n_owned++] = *out;
	return 0;
}

/* ---- a row ---- */

static bool is_missing(const char *text)
{
	return !*text || !strcasecmp(text, "na") || !strcasecmp(text, "nan");
}

static const char *text_of(const struct table_value *v, char *buf)
{
	return v->text ? v->text : isnan(v->number) ? "" : text_shortest(v->number, buf);
}

static bool is_excluded(const struct schema *s, const struct table_value *value, size_t n)
{
	char buf[32];

	for (size_t k = 0; k < s->n_excludes; k++) {
		int factor = schema_find(s, s->exclude[k].column);

		for (size_t i = 0; i < n; i++) {
			bool same = factor < 0 ? !strcmp(value[i].name, s->exclude[k].column)
					       : schema_find(s, value[i].name) == factor;

			if (same && !strcmp(text_of(&value[i], buf), s->exclude[k].value))
				return true;
		}
	}
	return false;
}

static int read_number(const struct table_builder *b, const struct table_value *v, double *out,
		       struct err *err)
{
	char reason[128], shown[64];

	*out = v->number;
	if (v->text && is_missing(v->text))
		*out = NAN;
	else if (v->text ? !text_number(v->text, out) : isinf(v->number)) {
		snprintf(reason, sizeof reason, "'%s' is not a number",
			 v->text ? text_printable(v->text, shown, sizeof shown) : "inf");
		return fail_row(b, v->name, err, reason);
	}
	return 0;
}

static int read_value(const struct table_builder *b, const struct table_value *v, struct row *r,
		      struct err *err)
{
	const struct schema *s = b->schema;
	int at = schema_find_any(s, v->name);
	const char *text;
	bool own_name;

	if (!strcmp(v->name, s->time)) {
		r->has_time = true;
		return read_number(b, v, &r->time, err);
	}
	if (s->accuracy && !strcmp(v->name, s->accuracy)) {
		r->has_accuracy = true;
		return read_number(b, v, &r->accuracy, err);
	}
	own_name = at >= 0 && !strcmp(v->name, schema_source_name(s, (size_t)at));
	if (at < 0 || (r->named[at] && (r->own_name[at] || !own_name)))
		return 0;
	r->named[at] = true;
	r->own_name[at] = own_name;
	if (!schema_is_category(s, (size_t)at))
		return read_number(b, v, &r->number[at], err);
	text = text_of(v, r->shown[at]);
	if (!table_is_utf8(text))
		return fail_row(b, v->name, err, "the text is not UTF-8");
	r->category[at] = *text ? text : NULL;
	return 0;
}

static int check_row(const struct table_builder *b, const struct row *r, struct err *err)
{
	const struct schema *s = b->schema;
	double number[SCHEMA_MAX_COLUMNS];

	if (r->time <= 0.0)
		return fail_row(b, s->time, err, "a time must be more than 0");
	memcpy(number, r->number, n_sources(s) * sizeof *number);
	for (size_t i = 0; i < s->n_derived; i++) {
		double *v = &number[s->n_columns + i];

		if (isnan(*v))
			*v = schema_derive(&s->derived[i], number);
		if (isinf(*v))
			return fail_row(b, s->derived[i].name, err,
					"the derived value is not a finite number");
	}
	return 0;
}

static int store(struct table_builder *b, const struct row *r, struct err *err)
{
	struct table *t = b->t;
	size_t at = t->n_rows;
	int rc = make_room(b, 1, err);

	for (size_t i = 0; i < n_sources(b->schema) && !rc; i++) {
		if (t->column[i].kind == COLUMN_CATEGORY)
			rc = own(b, r->category[i], &t->column[i].category[at], err);
		else
			t->column[i].number[at] = r->number[i];
	}
	if (rc)
		return rc;
	for (size_t i = 0; i < n_sources(b->schema); i++)
		t->column[i].present |= r->named[i];
	b->time |= r->has_time;
	b->accuracy |= r->has_accuracy;
	t->time[at] = r->time;
	t->accuracy[at] = r->accuracy;
	t->row[at] = (uint32_t)(at + t->n_excluded);
	t->n_rows++;
	return 0;
}

int table_builder_row(struct table_builder *b, const struct table_value *value, size_t n, struct err *err)
{
	struct row r;
	int rc = 0;

	if (is_excluded(b->schema, value, n)) {
		b->t->n_excluded++;
		return 0;
	}
	r.time = r.accuracy = NAN;
	r.has_time = r.has_accuracy = false;
	for (size_t i = 0; i < n_sources(b->schema); i++) {
		r.number[i] = NAN;
		r.category[i] = NULL;
		r.named[i] = r.own_name[i] = false;
	}
	for (size_t i = 0; i < n && !rc; i++)
		rc = read_value(b, &value[i], &r, err);
	if (!rc)
		rc = check_row(b, &r, err);
	if (!rc)
		rc = store(b, &r, err);
	return rc;
}

/* ---- another table ---- */

static void append_numbers(double *to, const double *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from ? from[i] : NAN;
}

static int append_beside(struct table_builder *b, const struct table *from, size_t at, struct err *err)
{
	int rc = !from->beside || b->t->beside || make_room_beside(b, b->cap) ? 0 : nomem(b, err);

	for (size_t k = 0; k < from->n_rows && !rc && from->beside; k++) {
		rc = own(b, from->beside[k], &b->t->beside[at + k], err);
		b->t->mixed_time[at + k] = from->mixed_time[k];
	}
	return rc;
}

int table_builder_append(struct table_builder *b, const struct table *from, struct err *err)
{
	size_t n = from->n_rows, at = b->t->n_rows, before = at + b->t->n_excluded;
	struct table *t = b->t;
	int rc = make_room(b, n, err);

	assert(from->schema->n_columns == b->schema->n_columns &&
	       from->schema->n_derived == b->schema->n_derived);
	for (size_t i = 0; i < n_sources(b->schema) && !rc; i++) {
		const struct table_column *c = &from->column[i];

		if (c->kind == COLUMN_CATEGORY)
			for (size_t k = 0; k < n && !rc; k++)
				rc = own(b, c->present ? c->category[k] : NULL,
					 &t->column[i].category[at + k], err);
		else
			append_numbers(t->column[i].number + at, c->number, n);
	}
	if (!rc)
		rc = append_beside(b, from, at, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < n_sources(b->schema); i++)
		t->column[i].present |= from->column[i].present;
	b->time |= from->time != NULL;
	b->accuracy |= from->accuracy != NULL;
	append_numbers(t->time + at, from->time, n);
	append_numbers(t->accuracy + at, from->accuracy, n);
	for (size_t k = 0; k < n; k++)
		t->row[at + k] = (uint32_t)(before + from->row[k]);
	t->n_rows += n;
	t->n_excluded += from->n_excluded;
	return 0;
}

/* ---- the table ---- */

static void drop(double **array)
{
	free(*array);
	*array = NULL;
}

int table_builder_finish(struct table_builder *b, enum table_needs needs, struct table **out, struct err *err)
{
	const struct schema *s = b->schema;
	struct table *t = b->t;
	char *name = NULL;
	int rc = make_room(b, 0, err);

	for (size_t i = 0; i < s->n_columns && !rc; i++) {
		if (t->column[i].present || s->column[i].optional)
			continue;
		if (needs != TABLE_NEEDS_NOTHING)
			return err_fail(err, ERR_FORMAT, "%s: no column '%s', which the schema asks for",
					b->name, s->column[i].name);
		t->column[i].present = true;
	}
	if (!rc && !b->time && needs == TABLE_NEEDS_TARGETS)
		return err_fail(err, ERR_FORMAT, "%s: no column '%s', which the schema asks for", b->name,
				s->time);
	if (!rc)
		rc = own(b, b->name, &name, err); /* the table outlives the builder */
	if (rc)
		return rc;
	for (size_t i = 0; i < n_sources(s); i++) {
		if (t->column[i].present)
			continue;
		drop(&t->column[i].number);
		free(t->column[i].category);
		t->column[i].category = NULL;
	}
	if (!b->time)
		drop(&t->time);
	if (!b->accuracy)
		drop(&t->accuracy);
	t->name = name;
	rc = table_finish(t, err);
	if (rc)
		return rc;
	*out = t;
	b->t = NULL;
	return 0;
}
