/* Which rows happen and which are learnt from, fold by fold: replications, where they are of similar size;
 * else settings, which measured_deal.c deals into folds. Over all folds every row happens and is learnt
 * from. */
#include "sim/measured/measured_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

#define NOWHERE UINT32_MAX
#define SIMILAR 2 /* the largest replication has at most so many times the rows of the smallest */

static const char *file_of(const struct measured_table *t)
{
	return text_tail(t->csv->name, 150);
}

static int nomem(const struct measured_table *t, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for the sides of the table", file_of(t));
}

/* 2 comes before 10. */
static int compare_replications(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	double u, v;

	if (text_number(x, &u) && text_number(y, &v) && u != v)
		return u < v ? -1 : 1;
	return strcmp(x, y);
}

static int find_replications(struct measured_table *t, struct err *err)
{
	int column = csv_column(t->csv, "replication");
	size_t n = 0;

	t->replication = mem_array(t->n_rows, sizeof *t->replication);
	if (!t->replication)
		return nomem(t, err);
	for (size_t i = 0; i < t->n_rows; i++)
		t->replication[i] = column < 0 ? "" : csv_cell(t->csv, t->row[i].csv_row, (size_t)column);
	qsort(t->replication, t->n_rows, sizeof *t->replication, compare_replications);
	for (size_t i = 0; i < t->n_rows; i++)
		if (!n || strcmp(t->replication[n - 1], t->replication[i]))
			t->replication[n++] = t->replication[i];
	t->n_replications = n;
	if (n > MEASURED_MAX_REPLICATIONS)
		return err_fail(err, ERR_FORMAT, "%s: column replication: more than %d values", file_of(t),
				MEASURED_MAX_REPLICATIONS);
	for (size_t i = 0; i < t->n_rows && n > 1; i++) {
		const char *own = csv_cell(t->csv, t->row[i].csv_row, (size_t)column);
		const char **at = bsearch(&own, t->replication, n, sizeof own, compare_replications);

		t->row[i].replication = (uint32_t)(at - t->replication);
	}
	if (n > 1 && t->hold_out >= n)
		return err_fail(
			err, ERR_ARG,
			"%s: %zu of its %zu replications cannot be held out: at least one is to learn "
			"from",
			file_of(t), t->hold_out, n);
	return 0;
}

/* 71 rows and 2 are no folds. */
static int find_similar(struct measured_table *t, struct err *err)
{
	size_t *rows = mem_calloc(t->n_replications, sizeof *rows), least = SIZE_MAX, most = 0;

	if (!rows)
		return nomem(t, err);
	for (size_t i = 0; i < t->n_rows; i++) {
		rows[t->row[i].replication]++;
		t->n_runs += !t->curves || t->curves->run[t->row[i].csv_row] == t->row[i].csv_row;
	}
	for (size_t i = 0; i < t->n_replications; i++) {
		least = rows[i] < least ? rows[i] : least;
		most = rows[i] > most ? rows[i] : most;
	}
	free(rows);
	t->by_replication = t->n_replications > 1 && most <= SIMILAR * least;
	return 0;
}

bool measured_table_happens(const struct measured_table *t, size_t fold, const struct measured_row *r)
{
	size_t n = t->n_replications;

	if (!t->by_replication)
		return r->fold == fold;
	return (r->replication + n - fold) % n < t->hold_out;
}

static int check_sides(const struct measured_table *t, struct err *err)
{
	for (size_t f = 0; f < t->n_folds; f++) {
		size_t happens = 0;

		for (size_t i = 0; i < t->n_rows; i++)
			happens += measured_table_happens(t, f, &t->row[i]);
		if (!happens || happens == t->n_rows)
			return err_fail(err, ERR_NODATA,
					"%s: too few runs to part them into what happens and what is learnt "
					"from: measure every setting twice at least",
					file_of(t));
	}
	return 0;
}

int measured_table_part(struct measured_table *t, struct err *err)
{
	int rc = find_replications(t, err);

	if (!rc)
		rc = find_similar(t, err);
	if (!rc && t->by_replication)
		t->n_folds = t->n_replications;
	else if (!rc)
		rc = measured_table_deal(t, err);
	return rc ? rc : check_sides(t, err);
}

static void list_replications(const struct measured_table *t, size_t fold, bool happens, struct strbuf *out)
{
	const char *comma = "";
	char shown[32];

	for (size_t i = 0; i < t->n_replications; i++) {
		struct measured_row r = { .replication = (uint32_t)i };

		if (measured_table_happens(t, fold, &r) != happens)
			continue;
		strbuf_printf(out, "%s%s", comma, text_printable(t->replication[i], shown, sizeof shown));
		comma = ", ";
	}
}

void measured_table_split_text(const struct measured_table *t, size_t fold, char *out, size_t size)
{
	struct strbuf text = { 0 };
	size_t happens = 0;

	for (size_t i = 0; i < t->n_rows; i++)
		happens += measured_table_happens(t, fold, &t->row[i]);
	if (t->by_replication) {
		strbuf_puts(&text, t->hold_out > 1 ? "replications " : "replication ");
		list_replications(t, fold, true, &text);
		strbuf_printf(&text, " of %zu happen%s (%zu rows), ", t->n_replications,
			      t->hold_out > 1 ? "" : "s", happens);
		list_replications(t, fold, false, &text);
		strbuf_printf(&text, " %s learnt from (%zu rows)",
			      t->n_replications - t->hold_out > 1 ? "are" : "is", t->n_rows - happens);
	} else {
		strbuf_printf(&text,
			      "the table has %s, so its settings are dealt into %zu folds: the settings of "
			      "fold %zu happen (%zu rows, what lies between is interpolated), the others are "
			      "learnt from (%zu rows)",
			      t->n_replications > 1 ? "replications of unlike size" : "one replication",
			      t->n_folds, fold + 1, happens, t->n_rows - happens);
	}
	snprintf(out, size, "%s", strbuf_text(&text));
	strbuf_release(&text);
}

/* ---- what is learnt from ---- */

static void put_header(const struct measured_table *t, struct strbuf *out)
{
	for (size_t i = 0; i < t->csv->n_columns; i++) {
		strbuf_puts(out, i ? "," : "");
		csv_put(out, t->csv->header[i]);
	}
	strbuf_puts(out, t->curves ? ",run_of\n" : "\n");
}

/* of: by row of the csv, where it came to stand. */
static void put_row(const struct measured_table *t, uint32_t csv_row, uint32_t at, uint32_t *of,
		    struct strbuf *out)
{
	for (size_t i = 0; i < t->csv->n_columns; i++) {
		strbuf_puts(out, i ? "," : "");
		csv_put(out, csv_cell(t->csv, csv_row, i));
	}
	of[csv_row] = at;
	if (t->curves) {
		uint32_t run = of[t->curves->run[csv_row]];

		strbuf_printf(out, ",%u", run == NOWHERE ? at : run);
	}
	strbuf_puts(out, "\n");
}

int measured_table_training(const struct measured_table *t, size_t fold, struct csv **out, struct err *err)
{
	uint32_t *of = mem_array(t->csv->n_rows, sizeof *of), *line = mem_array(t->n_rows, sizeof *line),
		 n = 0;
	struct strbuf text = { 0 };
	int rc;

	if (!of || !line) {
		rc = nomem(t, err);
		goto out;
	}
	for (size_t i = 0; i < t->csv->n_rows; i++)
		of[i] = NOWHERE;
	put_header(t, &text);
	for (size_t i = 0; i < t->n_rows; i++) {
		if (measured_table_happens(t, fold, &t->row[i]))
			continue;
		line[n] = t->csv->line[t->row[i].csv_row];
		put_row(t, t->row[i].csv_row, n++, of, &text);
	}
	rc = text.failed ? nomem(t, err) : csv_parse(t->csv->name, text.text, text.len, out, err);
	for (uint32_t i = 0; i < n && !rc; i++)
		(*out)->line[i] = line[i]; /* what is wrong is wrong there */
out:
	strbuf_release(&text);
	free(of);
	free(line);
	return rc;
}
