/* Data preparation: loading, renaming, rows and columns, categories, and the rows that are held back. The
 * columns that are computed from others are made in extend.c. See prepare.h. */
#define _GNU_SOURCE /* qsort_r() */
#include "automl/prepare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/stats.h"
#include "common/text/text.h"
#include "predictors/file/bytes.h"

void prepared_free(struct prepared *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_columns; i++) {
		free(p->column[i].name);
		free(p->column[i].class);
		free(p->column[i].of);
		free(p->column[i].value);
	}
	for (size_t i = 0; p->name && i < p->csv->n_columns; i++)
		free(p->name[i]);
	free(p->name);
	free(p->column);
	free(p->x);
	free(p->y);
	free(p->all.row);
	free(p->training.row);
	free(p->validation.row);
	free(p->group);
	strbuf_release(&p->log);
	csv_free(p->csv);
	free(p);
}

void prepare_log(struct prepare *s, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	strbuf_printf(&s->p->log, "%s\n", line);
}

int prepare_fail(const struct prepare *s, const char *section, const char *key, const char *fmt, ...)
{
	const struct ini_section *in = ini_section(s->c->ini, section);
	char reason[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	return ini_fail(s->c->ini, in, ini_key(in, key), s->err, "%s", reason);
}

/* The csv's column of that name, after renaming; SIZE_MAX: there is none. */
static size_t source_of(const struct prepared *p, const char *name)
{
	for (size_t i = 0; i < p->csv->n_columns; i++)
		if (!strcmp(p->name[i], name))
			return i;
	return SIZE_MAX;
}

static int need_source(const struct prepare *s, const char *section, const char *key, const char *name,
		       size_t *out)
{
	char hint[TEXT_HINT];
	const char **all;
	size_t n = s->p->csv->n_columns;
	int rc;

	*out = source_of(s->p, name);
	for (size_t i = 0; *out == SIZE_MAX && i < n; i++) /* a name from before the renaming */
		if (!strcmp(s->p->csv->header[i], name))
			*out = i;
	if (*out != SIZE_MAX)
		return 0;
	all = mem_calloc(n + 1, sizeof *all);
	for (size_t i = 0; all && i < n; i++)
		all[i] = s->p->name[i];
	rc = prepare_fail(s, section, key, "the table has no column '%.60s'%s", name,
			  all ? text_hint(name, all, hint) : "");
	free(all);
	return rc;
}

/* ---- columns of the table as numbers ---- */

static bool boolean_cell(const char *cell, double *out)
{
	bool yes = !strcmp(cell, "True") || !strcmp(cell, "TRUE") || !strcmp(cell, "true");

	if (!yes && strcmp(cell, "False") && strcmp(cell, "FALSE") && strcmp(cell, "false"))
		return false;
	*out = yes;
	return true;
}

/* The column as numbers, NaN where a cell is empty; to be freed. *out_words: a cell is a word, and there
 * are no numbers. */
static int source_numbers(const struct prepare *s, size_t source, double **out, bool *out_boolean,
			  bool *out_words)
{
	const struct csv *csv = s->p->csv;
	double *v = mem_array(csv->n_rows, sizeof *v);
	size_t booleans = 0;
	bool words = false;

	if (!v)
		return err_nomem(s->err, "%zu rows", csv->n_rows);
	for (size_t i = 0; i < csv->n_rows && !words; i++) {
		if (boolean_cell(csv_cell(csv, i, source), &v[i]))
			booleans++;
		else
			words = csv_number(csv, i, source, &v[i], NULL) != 0;
	}
	words |= booleans && booleans < csv->n_rows;
	if (words) {
		free(v);
		v = NULL;
	}
	*out = v;
	*out_words = words;
	*out_boolean = booleans > 0;
	return 0;
}

static int add_source(struct prepare *s, size_t source)
{
	struct made_column col = { .by = MADE_NUMBER, .source = source };
	bool words;
	int rc = source_numbers(s, source, &col.value, &col.boolean, &words);

	if (rc)
		return rc;
	col.name = mem_strdup(s->p->name[source]);
	return prepare_add(s, &col);
}

/* The table's column `source` as numbers: ERR if it has words. */
static int need_numbers(const struct prepare *s, size_t source, const char *section, const char *key,
			double **out)
{
	bool boolean, words;
	int rc = source_numbers(s, source, out, &boolean, &words);

	if (!rc && words)
		return prepare_fail(s, section, key, "column '%.60s' has words, not numbers",
				    s->p->name[source]);
	return rc;
}

/* ---- the steps, in order ---- */

static int step_load(struct prepare *s, const char *path)
{
	struct prepared *p = s->p;
	char *text;
	size_t len;
	int rc = io_read_file(path, CSV_MAX_BYTES, &text, &len, s->err);

	if (rc)
		return rc;
	p->fingerprint = bytes_crc64(text, len);
	rc = csv_parse(path, text, len, &p->csv, s->err);
	free(text);
	if (rc)
		return rc;
	if (!p->csv->n_rows)
		return err_fail(s->err, ERR_NODATA, "%s: there is no row below the header",
				text_tail(path, 150));
	if (p->csv->n_rows > PREPARE_MAX_CELLS / p->csv->n_columns || p->csv->n_rows > UINT32_MAX / 4)
		return err_fail(s->err, ERR_FORMAT, "%s: more than %zu cells", text_tail(path, 150),
				PREPARE_MAX_CELLS);
	p->n_rows = p->csv->n_rows;
	p->name = mem_calloc(p->csv->n_columns, sizeof *p->name);
	p->all.row = mem_array(p->n_rows, sizeof *p->all.row);
	if (!p->name || !p->all.row)
		return err_nomem(s->err, "%zu rows", p->n_rows);
	for (size_t i = 0; i < p->csv->n_columns; i++)
		if (!(p->name[i] = mem_strdup(p->csv->header[i])))
			return err_nomem(s->err, "a name");
	for (size_t i = 0; i < p->n_rows; i++)
		p->all.row[p->all.n++] = (uint32_t)i;
	prepare_log(s, "load: %zu rows, %zu columns from %s", p->n_rows, p->csv->n_columns,
		    text_tail(path, 200));
	return 0;
}

static int step_rename(struct prepare *s)
{
	const struct literal *d = s->c->rename;
	struct prepared *p = s->p;

	for (size_t i = 0; d && i + 1 < d->n; i += 2) {
		const char *from = d->item[i].text, *to = d->item[i + 1].text;
		size_t source = source_of(p, from);
		char *name;

		if (source == SIZE_MAX)
			return prepare_fail(s, "DataPreparation", "rename_columns",
					    "the table has no column '%.60s'", from);
		if (source_of(p, to) != SIZE_MAX)
			return prepare_fail(s, "DataPreparation", "rename_columns",
					    "there is a column '%.60s' already", to);
		name = mem_strdup(to);
		if (!name)
			return err_nomem(s->err, "a name");
		free(p->name[source]);
		p->name[source] = name;
		prepare_log(s, "rename_columns: %s is now %s", from, to);
	}
	return 0;
}

static int step_target(struct prepare *s)
{
	struct prepared *p = s->p;
	int rc = need_source(s, "General", "y", s->c->y, &p->y_source);

	return rc ? rc : need_numbers(s, p->y_source, "General", "y", &p->y);
}

static int step_skip_rows(struct prepare *s)
{
	const struct literal *d = s->c->skip_rows;
	struct row_list *all = &s->p->all;

	for (size_t i = 0; d && i + 1 < d->n; i += 2) {
		size_t source, kept = 0, before = all->n;
		double *v, bound = d->item[i + 1].number;
		int rc = need_source(s, "DataPreparation", "skip_rows", d->item[i].text, &source);

		if (!rc)
			rc = need_numbers(s, source, "DataPreparation", "skip_rows", &v);
		if (rc)
			return rc;
		for (size_t k = 0; k < all->n; k++)
			if (!(v[all->row[k]] > bound))
				all->row[kept++] = all->row[k];
		all->n = kept;
		free(v);
		prepare_log(s, "skip_rows: %zu rows with %s above %g left out", before - kept,
			    d->item[i].text, bound);
	}
	if (!all->n)
		return prepare_fail(s, "DataPreparation", "skip_rows", "no row is left");
	return 0;
}

static bool in_list(const struct literal *list, const char *name)
{
	for (size_t i = 0; list && i < list->n; i++)
		if (literal_is_text(&list->item[i], name))
			return true;
	return false;
}

static int step_columns(struct prepare *s)
{
	const struct literal *use = s->c->use_columns, *skip = s->c->skip_columns;
	struct prepared *p = s->p;
	size_t source;
	int rc = 0;

	for (size_t i = 0; use && i < use->n && !rc; i++) {
		rc = need_source(s, "DataPreparation", "use_columns", use->item[i].text, &source);
		if (!rc && source == p->y_source)
			rc = prepare_fail(s, "DataPreparation", "use_columns", "'%.60s' is the target",
					  use->item[i].text);
		if (!rc)
			rc = add_source(s, source);
	}
	for (size_t i = 0; !use && i < p->csv->n_columns && !rc; i++)
		if (i != p->y_source && !in_list(skip, p->name[i]))
			rc = add_source(s, i);
	for (size_t i = 0; !use && skip && i < skip->n && !rc; i++)
		if (source_of(p, skip->item[i].text) == SIZE_MAX)
			prepare_log(s, "skip_columns: the table has no column %s", skip->item[i].text);
	if (!rc && use)
		prepare_log(s, "use_columns: %zu of %zu columns", p->n_x, p->csv->n_columns - 1);
	else if (!rc && skip)
		prepare_log(s, "skip_columns: %zu of %zu columns stay", p->n_x, p->csv->n_columns - 1);
	if (!rc && !p->n_x)
		rc = prepare_fail(s, "DataPreparation", use ? "use_columns" : "skip_columns",
				  "no column is left");
	return rc;
}

/* ---- categories ---- */

static int compare_words(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	double u, v;

	if (text_number(x, &u) && text_number(y, &v) && u != v)
		return u < v ? -1 : 1;
	return strcmp(x, y);
}

/* Puts a column of 0 and 1 for each value in the place of column x[at]. */
static int encode(struct prepare *s, size_t at)
{
	struct prepared *p = s->p;
	size_t source = p->column[p->x[at]].source, n = 0, first = p->n_columns, before = p->n_x;
	const char **word = mem_array(p->n_rows, sizeof *word);
	uint32_t *order;
	int rc = 0;

	if (!word)
		return err_nomem(s->err, "%zu rows", p->n_rows);
	for (size_t i = 0; i < p->all.n && !rc; i++) {
		word[i] = csv_cell(p->csv, p->all.row[i], source);
		if (!*word[i])
			rc = err_fail(s->err, ERR_FORMAT, "%s:%u: column %.60s: the cell is empty",
				      text_tail(p->csv->name, 150), p->csv->line[p->all.row[i]],
				      p->name[source]);
	}
	if (!rc)
		qsort(word, p->all.n, sizeof *word, compare_words);
	for (size_t i = 0; i < p->all.n && !rc; i++) {
		struct made_column col = { .by = MADE_CLASS, .source = source };
		struct strbuf name = { 0 };

		if (i && !strcmp(word[i], word[i - 1]))
			continue;
		strbuf_printf(&name, "%s_class_%s", p->name[source], word[i]);
		col.name = mem_strdup(strbuf_text(&name));
		col.class = mem_strdup(word[i]);
		col.value = mem_array(p->n_rows, sizeof *col.value);
		strbuf_release(&name);
		for (size_t r = 0; col.value && r < p->n_rows; r++)
			col.value[r] = !strcmp(csv_cell(p->csv, r, source), word[i]);
		rc = prepare_add(s, &col);
		n++;
	}
	free(word);
	if (rc)
		return rc;
	/* They were added at the end: they go to the place of the column they stand for. */
	order = mem_array(p->n_x, sizeof *order);
	if (!order)
		return err_nomem(s->err, "%zu columns", p->n_x);
	memcpy(order, p->x, at * sizeof *order);
	for (size_t i = 0; i < n; i++)
		order[at + i] = (uint32_t)(first + i);
	memcpy(order + at + n, p->x + at + 1, (before - at - 1) * sizeof *order);
	free(p->x);
	p->x = order;
	p->n_x = before - 1 + n;
	prepare_log(s, "one-hot: %s has %zu values", p->name[source], n);
	return 0;
}

static int step_categories(struct prepare *s)
{
	struct prepared *p = s->p;
	int rc = 0;

	for (size_t i = 0; s->c->categorical && i < s->c->categorical->n && !rc; i++) {
		size_t source;

		rc = need_source(s, "DataPreparation", "categorical_columns", s->c->categorical->item[i].text,
				 &source);
	}
	for (size_t at = 0; at < p->n_x && !rc; at++) {
		struct made_column *col = &p->column[p->x[at]];

		if (col->by == MADE_NUMBER && (!col->value || in_list(s->c->categorical, col->name)))
			rc = encode(s, at);
	}
	return rc;
}

/* ---- rows that are held back ---- */

static bool held_by_levels(const struct literal *want, const double *level, size_t n_levels, double v)
{
	if (want->kind == LITERAL_LIST) {
		for (size_t i = 0; i < want->n; i++)
			if (want->item[i].number == v)
				return true;
		return false;
	}
	for (size_t i = 0; i < n_levels; i += (size_t)want->number)
		if (level[i] == v)
			return true;
	return false;
}

/* Marks the rows that one column holds back. */
static int mark_held(struct prepare *s, const char *key, const struct literal *column,
		     const struct literal *want, bool *held)
{
	struct prepared *p = s->p;
	size_t source, n = 0;
	double *v = NULL, *level = NULL;
	int rc = need_source(s, "General", key, column->text, &source);

	if (!rc)
		rc = need_numbers(s, source, "General", key, &v);
	if (!rc && !(level = mem_array(p->all.n, sizeof *level)))
		rc = err_nomem(s->err, "%zu rows", p->all.n);
	for (size_t i = 0; i < p->all.n && !rc; i++)
		level[i] = v[p->all.row[i]];
	if (!rc)
		stats_sort(level, p->all.n);
	for (size_t i = 0; i < p->all.n && !rc; i++)
		if (i == 0 || level[i] != level[n - 1])
			level[n++] = level[i];
	for (size_t i = 0; i < p->all.n && !rc; i++) {
		double at = v[p->all.row[i]];

		held[i] |= s->c->validation == HOLD_EXTRAPOLATION ? at > want->number
								  : held_by_levels(want, level, n, at);
	}
	free(v);
	free(level);
	return rc;
}

static int step_hold_back(struct prepare *s)
{
	bool extrapolate = s->c->validation == HOLD_EXTRAPOLATION;
	const struct literal *d = extrapolate ? s->c->extrapolation : s->c->interpolation;
	const char *key = extrapolate ? "extrapolation_columns" : "interpolation_columns";
	struct prepared *p = s->p;
	bool *held = mem_calloc(p->all.n, sizeof *held);
	int rc = 0;

	p->training.row = mem_array(p->all.n, sizeof *p->training.row);
	p->validation.row = mem_array(p->all.n, sizeof *p->validation.row);
	if (!held || !p->training.row || !p->validation.row) {
		free(held);
		return err_nomem(s->err, "%zu rows", p->all.n);
	}
	if (extrapolate || s->c->validation == HOLD_INTERPOLATION) {
		for (size_t i = 0; i + 1 < d->n && !rc; i += 2)
			rc = mark_held(s, key, &d->item[i], &d->item[i + 1], held);
	}
	for (size_t i = 0; i < p->all.n && !rc; i++) {
		struct row_list *to = held[i] ? &p->validation : &p->training;

		to->row[to->n++] = p->all.row[i];
	}
	free(held);
	if (rc)
		return rc;
	if (extrapolate || s->c->validation == HOLD_INTERPOLATION) {
		prepare_log(s, "%s: %zu rows to train on, %zu to validate on", holdout_name[s->c->validation],
			    p->training.n, p->validation.n);
		if (!p->training.n || !p->validation.n)
			return prepare_fail(s, "General", key, "no row is left to %s",
					    p->training.n ? "validate on" : "train on");
	}
	return 0;
}

#define GROUP_COLUMNS 64

struct group_columns {
	const struct csv *csv;
	size_t source[GROUP_COLUMNS], n;
};

static int compare_groups(const void *a, const void *b, void *ctx)
{
	const struct group_columns *by = ctx;
	int differ = 0;

	for (size_t c = 0; c < by->n && !differ; c++)
		differ = strcmp(csv_cell(by->csv, *(const uint32_t *)a, by->source[c]),
				csv_cell(by->csv, *(const uint32_t *)b, by->source[c]));
	return differ;
}

/* Rows that are equal in these columns get one label. */
static int step_groups(struct prepare *s)
{
	const struct literal *list = s->c->group_columns;
	struct prepared *p = s->p;
	struct group_columns by = { .csv = p->csv };
	size_t labels = 0;
	uint32_t *order;

	if (!list)
		return 0;
	for (size_t i = 0; i < list->n; i++) {
		int rc = i < GROUP_COLUMNS ? need_source(s, "Postrider", "group_columns", list->item[i].text,
							 &by.source[by.n++])
					   : prepare_fail(s, "Postrider", "group_columns",
							  "more than %d columns", GROUP_COLUMNS);

		if (rc)
			return rc;
	}
	p->group = mem_array(p->n_rows, sizeof *p->group);
	order = mem_array(p->n_rows, sizeof *order);
	if (!p->group || !order) {
		free(order);
		return err_nomem(s->err, "%zu rows", p->n_rows);
	}
	for (size_t i = 0; i < p->n_rows; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, p->n_rows, sizeof *order, compare_groups, &by);
	for (size_t i = 0; i < p->n_rows; i++) {
		labels += i && compare_groups(&order[i - 1], &order[i], &by) != 0;
		p->group[order[i]] = (uint32_t)labels;
	}
	free(order);
	labels++;
	prepare_log(s, "group_columns: %zu groups of rows stay together", labels);
	return 0;
}

/* ---- checks ---- */

static int step_check(struct prepare *s)
{
	struct prepared *p = s->p;

	for (size_t i = 0; i < p->all.n; i++) {
		uint32_t r = p->all.row[i];

		if (!isfinite(p->y[r]))
			return err_fail(s->err, ERR_FORMAT,
					"%s:%u: column %.60s: the target is missing or not finite",
					text_tail(p->csv->name, 150), p->csv->line[r], p->name[p->y_source]);
		for (size_t j = 0; j < p->n_x; j++)
			if (!isfinite(p->column[p->x[j]].value[r]))
				return err_fail(s->err, ERR_FORMAT,
						"%s:%u: column %.100s is missing or not finite",
						text_tail(p->csv->name, 150), p->csv->line[r],
						p->column[p->x[j]].name);
	}
	prepare_log(s, "check: %zu rows and %zu features are finite", p->all.n, p->n_x);
	return 0;
}

int prepare(const struct campaign *c, const char *path, struct prepared **out, struct err *err)
{
	struct prepare s = { .c = c, .p = mem_calloc(1, sizeof *s.p), .err = err };
	int rc;

	if (!s.p)
		return err_nomem(err, "a table");
	rc = step_load(&s, path);
	if (!rc)
		rc = step_rename(&s);
	if (!rc)
		rc = step_target(&s);
	if (!rc)
		rc = step_skip_rows(&s);
	if (!rc)
		rc = step_columns(&s);
	if (!rc)
		rc = step_categories(&s);
	if (!rc)
		rc = step_hold_back(&s);
	if (!rc)
		rc = extend_columns(&s);
	if (!rc)
		rc = step_groups(&s);
	if (!rc)
		rc = step_check(&s);
	if (!rc && c->normalization)
		prepare_log(&s,
			    "normalization: features and target, by the training rows of each experiment");
	if (!rc && s.p->log.failed)
		rc = err_nomem(err, "the log");
	if (rc) {
		prepared_free(s.p);
		return rc;
	}
	*out = s.p;
	return 0;
}

int prepare_find_input(const struct campaign *c, char **out_path, struct err *err)
{
	const char *path = c->input_path, *slash = strrchr(c->ini->file, '/'), *base = strrchr(path, '/');
	struct strbuf at = { 0 };
	size_t folder = slash ? (size_t)(slash - c->ini->file) + 1 : 0;

	for (int k = 0; k < 3; k++) {
		strbuf_reset(&at);
		if (k && path[0] == '/')
			break;
		strbuf_add(&at, c->ini->file, k ? folder : 0);
		strbuf_puts(&at, k == 2 && base ? base + 1 : path);
		if (at.failed)
			break;
		if (!access(strbuf_text(&at), F_OK)) {
			*out_path = at.text;
			return 0;
		}
	}
	strbuf_release(&at);
	return err_fail(err, ERR_NOTFOUND,
			"%s: there is no such file, neither from the current folder nor from that of %s",
			text_tail(path, 150), text_tail(c->ini->file, 150));
}

void prepared_write(const struct prepared *p, const struct campaign *c, struct strbuf *out)
{
	for (size_t j = 0; j < p->n_x; j++) {
		csv_put(out, p->column[p->x[j]].name);
		strbuf_puts(out, ",");
	}
	csv_put(out, c->y);
	strbuf_puts(out, "\n");
	for (size_t i = 0; i < p->all.n; i++) {
		for (size_t j = 0; j < p->n_x; j++) {
			csv_put_number(out, p->column[p->x[j]].value[p->all.row[i]]);
			strbuf_puts(out, ",");
		}
		csv_put_number(out, p->y[p->all.row[i]]);
		strbuf_puts(out, "\n");
	}
}
