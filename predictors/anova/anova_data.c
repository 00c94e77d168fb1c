/* What an analysis of variance looks at: the columns that are factors, the rows that have them all, the
 * levels of each factor, and the target. */
#include "predictors/anova/anova_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "predictors/data/groups.h"

int anova_note(struct anova *a, struct err *err, const char *fmt, ...)
{
	char text[512], **all;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	all = mem_resize(a->note, a->n_notes + 1, sizeof *all);
	if (!all)
		return err_nomem(err, "the analysis of variance");
	a->note = all;
	all[a->n_notes] = mem_strdup(text);
	if (!all[a->n_notes])
		return err_nomem(err, "the analysis of variance");
	a->n_notes++;
	return 0;
}

static void factor_release(struct anova_factor *f)
{
	free(f->name);
	for (size_t i = 0; f->label && i < f->n_levels; i++)
		free(f->label[i]);
	free(f->label);
	free(f->value);
	free(f->at);
	memset(f, 0, sizeof *f);
}

void anova_free(struct anova *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n_factors; i++)
		factor_release(&a->factor[i]);
	for (size_t i = 0; i < a->n_terms; i++)
		free(a->term[i].name);
	for (size_t i = 0; i < a->n_coefficients; i++)
		free(a->coefficient[i].name);
	for (size_t i = 0; i < a->n_notes; i++)
		free(a->note[i]);
	free(a->target);
	free(a->factor);
	free(a->y);
	free(a->fitted);
	free(a->moment);
	free(a->term);
	free(a->coefficient);
	free(a->note);
	free(a);
}

/* ---- columns ---- */

static int csv_at(const struct table *t, const struct schema_column *c)
{
	int at = csv_column(t->csv, c->name);

	for (size_t i = 0; at < 0 && i < c->n_aliases; i++)
		at = csv_column(t->csv, c->alias[i]);
	return at;
}

static int no_such_column(const struct table *t, const char *what, const char *name, struct err *err)
{
	const char **known = mem_calloc(t->csv->n_columns + t->schema->n_columns + t->schema->n_derived + 1,
					sizeof *known);
	const char *near;
	size_t n = 0;

	if (!known)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < t->schema->n_columns; i++)
		if (t->column[i].present)
			known[n++] = t->schema->column[i].name;
	for (size_t i = 0; i < t->schema->n_derived; i++)
		known[n++] = t->schema->derived[i].name;
	for (size_t i = 0; i < t->csv->n_columns; i++)
		known[n++] = t->csv->header[i];
	near = text_nearest(name, known);
	free(known);
	return err_fail(err, ERR_ARG, "%s '%.60s': %.200s has no such column%s%.60s%s", what, name,
			t->csv->name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* A column of the file that the schema says nothing about: numbers if all of it reads as numbers. */
static int read_raw(const struct table *t, size_t column, struct anova_raw *out, struct err *err)
{
	double *number = mem_array(t->n_rows, sizeof *number);
	char **category;

	if (!number)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < t->n_rows; i++)
		if (csv_number(t->csv, t->row[i], column, &number[i], NULL)) {
			free(number);
			number = NULL;
			break;
		}
	if (number) {
		*out = (struct anova_raw){ .number = number, .owned = true };
		return 0;
	}
	category = mem_array(t->n_rows, sizeof *category);
	if (!category)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < t->n_rows; i++) {
		category[i] = t->csv->cell[t->row[i] * t->csv->n_columns + column];
		if (!*category[i])
			category[i] = NULL;
	}
	*out = (struct anova_raw){ .category = category, .owned = true };
	return 0;
}

static void raw_release(struct anova_raw *r)
{
	if (r->owned) {
		free(r->number);
		free(r->category);
	}
	memset(r, 0, sizeof *r);
}

static int add_factor(struct anova_work *w, const char *name, const struct anova_raw *raw, struct err *err)
{
	struct anova *a = w->a;

	if (a->n_factors == ANOVA_MAX_FACTORS)
		return err_fail(err, ERR_ARG, "more than %d factors: choose some", ANOVA_MAX_FACTORS);
	for (size_t i = 0; i < a->n_factors; i++)
		if (!strcmp(a->factor[i].name, name))
			return err_fail(err, ERR_ARG, "factor '%.60s' is given twice", name);
	if (!strcmp(a->target, name))
		return err_fail(err, ERR_ARG, "'%.60s' is the target: it cannot be a factor of itself", name);
	a->factor[a->n_factors].name = mem_strdup(name);
	if (!a->factor[a->n_factors].name)
		return err_nomem(err, "the analysis of variance");
	w->raw[a->n_factors++] = *raw;
	return 0;
}

static int add_named_factor(struct anova_work *w, const char *name, struct err *err)
{
	const struct table *t = w->p->table;
	const struct schema *s = t->schema;
	int at = schema_find(s, name), rc;
	struct anova_raw raw = { .number = NULL };
	const char *known = name;

	if (at >= 0 && t->column[at].present) {
		raw = (struct anova_raw){ .number = t->column[at].number,
					  .category = t->column[at].category };
		known = s->column[at].name;
	}
	for (size_t i = 0; i < s->n_derived && !raw.number && !raw.category; i++)
		if (!strcmp(s->derived[i].name, name) && t->column[s->n_columns + i].present)
			raw.number = t->column[s->n_columns + i].number;
	if (!raw.number && !raw.category) {
		at = csv_column(t->csv, name);
		if (at < 0)
			return no_such_column(t, "factor", name, err);
		rc = read_raw(t, (size_t)at, &raw, err);
		if (rc)
			return rc;
	}
	rc = add_factor(w, known, &raw, err);
	if (rc)
		raw_release(&raw);
	return rc;
}

/* Does the column take two values at least, over all rows? */
static bool varies(const struct anova_raw *r, size_t n)
{
	for (size_t i = 0, first = n; i < n; i++) {
		if (r->number ? isnan(r->number[i]) : !r->category[i])
			continue;
		if (first == n)
			first = i;
		if (r->number ? r->number[i] != r->number[first]
			      : strcmp(r->category[i], r->category[first]) != 0)
			return true;
	}
	return false;
}

static int find_factors(struct anova_work *w, struct err *err)
{
	const struct table *t = w->p->table;
	int rc = 0;

	w->a->factor = mem_calloc(ANOVA_MAX_FACTORS, sizeof *w->a->factor);
	if (!w->a->factor)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < w->p->n_factors && !rc; i++)
		rc = add_named_factor(w, w->p->factor[i], err);
	for (size_t i = 0; i < t->schema->n_columns && !rc && !w->p->n_factors; i++) {
		struct anova_raw raw = { .number = t->column[i].number, .category = t->column[i].category };

		/* Other work happened to be there; it is not a factor that was set. The target may be a
		 * column the schema calls a factor. */
		if (t->column[i].present && (int)i != schema_role(t->schema, ROLE_OTHER) &&
		    varies(&raw, t->n_rows) && csv_at(t, &t->schema->column[i]) != (int)w->target_column)
			rc = add_factor(w, t->schema->column[i].name, &raw, err);
	}
	return rc;
}

static int find_target(struct anova_work *w, struct err *err)
{
	const struct table *t = w->p->table;
	const char *name = w->p->target ? w->p->target : "time";
	int at = csv_column(t->csv, name);

	if (at < 0 && !strcmp(name, "time"))
		name = t->schema->time;
	else if (at < 0 && !strcmp(name, "accuracy") && t->schema->accuracy)
		name = t->schema->accuracy;
	at = csv_column(t->csv, name);
	if (at < 0 && schema_find(t->schema, name) >= 0)
		at = csv_at(t, &t->schema->column[schema_find(t->schema, name)]);
	if (at < 0)
		return no_such_column(t, "target", name, err);
	w->target_column = (size_t)at;
	w->a->target = mem_strdup(name);
	w->target = mem_array(t->n_rows, sizeof *w->target);
	if (!w->a->target || !w->target)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < t->n_rows; i++) {
		int rc = csv_number(t->csv, t->row[i], w->target_column, &w->target[i], err);

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- rows and levels ---- */

static bool missing(const struct anova_raw *r, size_t row)
{
	return r->number ? isnan(r->number[row]) : !r->category[row];
}

static int choose_rows(struct anova_work *w, struct err *err)
{
	const struct table *t = w->p->table;
	struct anova *a = w->a;

	w->row = mem_array(t->n_rows, sizeof *w->row);
	if (!w->row)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < t->n_rows; i++) {
		bool whole = true;

		for (size_t k = 0; k < a->n_factors && whole; k++)
			whole = !missing(&w->raw[k], i);
		if (isnan(w->target[i]))
			a->n_no_target++;
		else if (!whole)
			a->n_no_factor++;
		else
			w->row[w->n++] = (uint32_t)i;
	}
	return 0;
}

static void keep_extremes(struct anova_work *w)
{
	double low[ANOVA_MAX_FACTORS], high[ANOVA_MAX_FACTORS];
	size_t kept = 0;

	for (size_t k = 0; k < w->a->n_factors; k++) {
		low[k] = INFINITY;
		high[k] = -INFINITY;
		for (size_t i = 0; w->raw[k].number && i < w->n; i++) {
			low[k] = fmin(low[k], w->raw[k].number[w->row[i]]);
			high[k] = fmax(high[k], w->raw[k].number[w->row[i]]);
		}
	}
	for (size_t i = 0; i < w->n; i++) {
		bool at_end = true;

		for (size_t k = 0; k < w->a->n_factors && at_end; k++) {
			double v = w->raw[k].number ? w->raw[k].number[w->row[i]] : NAN;

			at_end = isnan(v) || v == low[k] || v == high[k];
		}
		if (at_end)
			w->row[kept++] = w->row[i];
	}
	w->a->n_not_extreme = w->n - kept;
	w->n = kept;
}

/* Do two rows agree in every factor? */
static bool same_factors(const struct anova_work *w, size_t a, size_t b)
{
	for (size_t k = 0; k < w->a->n_factors; k++)
		if (w->raw[k].number ? w->raw[k].number[a] != w->raw[k].number[b]
				     : strcmp(w->raw[k].category[a], w->raw[k].category[b]) != 0)
			return false;
	return true;
}

static int no_logarithm(const struct anova_work *w, size_t row, struct err *err)
{
	const struct table *t = w->p->table;

	return err_fail(err, ERR_NUMERIC, "%.200s:%u: %.60s is %g, which has no logarithm", t->csv->name,
			(unsigned)t->csv->line[t->row[row]], w->a->target, w->target[row]);
}

/* first, count: by run. The first row of each, and how many there are. */
static bool copies_agree(const struct anova_work *w, const uint32_t *run, uint32_t *first, uint32_t *count)
{
	for (size_t i = 0; i < w->n; i++) {
		uint32_t row = w->row[i], r = run[row];

		if (!count[r]++)
			first[r] = row;
		else if (!same_factors(w, first[r], row))
			return false;
	}
	return true;
}

/* The mean of its copies stands for a run, in the place of the first. */
static int average_copies(struct anova_work *w, const uint32_t *run, const uint32_t *first,
			  const uint32_t *count, struct err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++) {
		uint32_t row = w->row[i], of = first[run[row]];
		double share = 1.0 / count[run[row]];

		if (w->p->log && !(w->target[row] > 0.0))
			return no_logarithm(w, row, err);
		if (row == of) {
			w->row[kept++] = row;
			w->target[row] *= share;
		} else {
			w->target[of] += share * w->target[row];
		}
	}
	w->a->n_copies = w->n > kept ? w->n : 0;
	w->n = kept;
	return 0;
}

static int merge_copies(struct anova_work *w, struct err *err)
{
	uint32_t *run = NULL, *first = NULL, *count = NULL;
	size_t n_runs;
	int rc = groups_runs(w->p->table, &run, &n_runs, err);

	if (!rc && run) {
		first = mem_calloc(n_runs, sizeof *first);
		count = mem_calloc(n_runs, sizeof *count);
		if (!first || !count)
			rc = err_nomem(err, "the analysis of variance");
		else if (copies_agree(w, run, first, count))
			rc = average_copies(w, run, first, count, err);
		else
			rc = anova_note(
				w->a, err,
				"copies of one run differ in a factor, so each row counts as a run; they "
				"are not independent, so p is too small");
	}
	free(run);
	free(first);
	free(count);
	return rc;
}

struct keyed {
	double number;
	const char *text;
	uint32_t at;
};

static int by_value(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->text)
		return strcmp(x->text, y->text);
	return (x->number > y->number) - (x->number < y->number);
}

static int find_levels(struct anova_work *w, size_t k, struct err *err)
{
	struct anova_factor *f = &w->a->factor[k];
	const struct anova_raw *raw = &w->raw[k];
	struct keyed *key = mem_array(w->n, sizeof *key);
	char buf[32];
	int rc = 0;

	f->category = !raw->number;
	f->levels = f->category || w->p->coding == ANOVA_LEVELS;
	f->at = mem_array(w->n, sizeof *f->at);
	f->label = mem_calloc(w->n, sizeof *f->label);
	f->value = f->category ? NULL : mem_array(w->n, sizeof *f->value);
	if (!key || !f->at || !f->label || (!f->category && !f->value)) {
		free(key);
		return err_nomem(err, "the analysis of variance");
	}
	for (size_t i = 0; i < w->n; i++)
		key[i] = (struct keyed){ .number = raw->number ? raw->number[w->row[i]] + 0.0 : 0.0,
					 .text = raw->number ? NULL : raw->category[w->row[i]],
					 .at = (uint32_t)i };
	qsort(key, w->n, sizeof *key, by_value);
	for (size_t i = 0; i < w->n && !rc; i++) {
		if (!i || by_value(&key[i - 1], &key[i])) {
			if (f->value)
				f->value[f->n_levels] = key[i].number;
			f->label[f->n_levels] =
				mem_strdup(key[i].text ? key[i].text : text_shortest(key[i].number, buf));
			if (!f->label[f->n_levels])
				rc = err_nomem(err, "the analysis of variance");
			else
				f->n_levels++;
		}
		f->at[key[i].at] = f->n_levels ? (uint32_t)(f->n_levels - 1) : 0;
	}
	free(key);
	return rc;
}

static int find_all_levels(struct anova_work *w, struct err *err)
{
	struct anova *a = w->a;
	size_t kept = 0;
	int rc = 0;

	for (size_t k = 0; k < a->n_factors && !rc; k++)
		rc = find_levels(w, k, err);
	for (size_t k = 0; k < a->n_factors && !rc; k++) {
		struct anova_factor f = a->factor[k];
		struct anova_raw raw = w->raw[k];

		if (f.n_levels < 2) {
			rc = anova_note(a, err, "%.60s is %.60s in all rows: left out", f.name,
					f.n_levels ? f.label[0] : "missing");
			continue;
		}
		a->factor[k] = a->factor[kept];
		w->raw[k] = w->raw[kept];
		a->factor[kept] = f;
		w->raw[kept++] = raw;
	}
	if (rc)
		return rc;
	for (size_t k = kept; k < a->n_factors; k++) {
		factor_release(&a->factor[k]);
		raw_release(&w->raw[k]);
	}
	a->n_factors = kept;
	a->signs = w->p->extremes;
	for (size_t k = 0; k < kept; k++) {
		a->factor[k].signs = w->p->extremes && a->factor[k].n_levels == 2;
		a->signs = a->signs && a->factor[k].signs;
	}
	if (!kept)
		return err_fail(err, ERR_NODATA, "no factor takes more than one value in the %zu rows left",
				w->n);
	return 0;
}

static int take_target(struct anova_work *w, struct err *err)
{
	struct anova *a = w->a;
	bool constant = true;

	a->n = w->n;
	a->log = w->p->log;
	a->y = mem_array(w->n, sizeof *a->y);
	if (!a->y)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < w->n; i++) {
		double v = w->target[w->row[i]];

		if (a->log && !(v > 0.0))
			return no_logarithm(w, w->row[i], err);
		a->y[i] = a->log ? log(v) : v;
		constant = constant && a->y[i] == a->y[0];
	}
	if (constant)
		return err_fail(err, ERR_NODATA,
				"%.60s is %g in all %zu rows: there is no variation to explain", a->target,
				w->target[w->row[0]], w->n);
	return 0;
}

static int note_rows(struct anova *a, struct err *err)
{
	int rc = 0;

	if (a->n_no_target)
		rc = anova_note(a, err, "%zu row%s without %.60s: left out", a->n_no_target,
				a->n_no_target == 1 ? "" : "s", a->target);
	if (!rc && a->n_no_factor)
		rc = anova_note(a, err, "%zu row%s in which a factor is missing: left out", a->n_no_factor,
				a->n_no_factor == 1 ? "" : "s");
	return rc;
}

struct moment {
	const char *started; /* NULL: not known */
	uint32_t row, at;
};

static int by_moment(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	int order = x->started && y->started ? strcmp(x->started, y->started) : 0;

	return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* ISO times sort as text. */
static int find_moments(struct anova_work *w, struct err *err)
{
	const struct table *t = w->p->table;
	int column = csv_column(t->csv, "started_at");
	struct moment *m = mem_array(w->n, sizeof *m);

	w->a->moment = mem_array(w->n, sizeof *w->a->moment);
	if (!m || !w->a->moment) {
		free(m);
		return err_nomem(err, "the analysis of variance");
	}
	for (size_t i = 0; i < w->n; i++)
		m[i] = (struct moment){ column < 0 ? NULL
						   : csv_cell(t->csv, t->row[w->row[i]], (size_t)column),
					w->row[i], (uint32_t)i };
	qsort(m, w->n, sizeof *m, by_moment);
	for (size_t i = 0; i < w->n; i++)
		w->a->moment[m[i].at] = (uint32_t)i;
	free(m);
	return 0;
}

int anova_read(struct anova_work *w, struct err *err)
{
	int rc = find_target(w, err);

	if (!rc)
		rc = find_factors(w, err);
	if (!rc)
		rc = choose_rows(w, err);
	if (rc)
		return rc;
	if (w->p->extremes)
		keep_extremes(w);
	if (!w->n)
		return err_fail(err, ERR_NODATA, "no row has %.60s and every factor", w->a->target);
	rc = merge_copies(w, err);
	if (!rc)
		rc = note_rows(w->a, err);
	if (!rc)
		rc = find_all_levels(w, err);
	if (!rc)
		rc = find_moments(w, err);
	return rc ? rc : take_target(w, err);
}

void anova_work_release(struct anova_work *w)
{
	for (size_t k = 0; k < ANOVA_MAX_FACTORS; k++)
		raw_release(&w->raw[k]);
	for (size_t j = 0; w->column_name && j < w->n_columns; j++)
		free(w->column_name[j]);
	free(w->column_name);
	free(w->design);
	free(w->target);
	free(w->row);
}
