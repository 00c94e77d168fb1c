/* Text tables: cells in rows, columns as wide as their widest cell. See cli.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"

void cli_table_init(struct cli_table *t, const char *align)
{
	*t = (struct cli_table){ .align = align };
}

void cli_table_add(struct cli_table *t, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	void *cells = t->cell;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (t->failed || mem_grow(&cells, &t->cap, t->n_cells + 1, sizeof *t->cell)) {
		t->failed = true;
		return;
	}
	t->cell = cells;
	t->cell[t->n_cells] = mem_strdup(cli_clean(text));
	if (!t->cell[t->n_cells])
		t->failed = true;
	else
		t->n_cells++;
}

void cli_table_head(struct cli_table *t, const char *align, ...)
{
	va_list ap;

	cli_table_init(t, align);
	va_start(ap, align);
	for (size_t i = 0; align[i]; i++)
		cli_table_add(t, "%s", va_arg(ap, const char *));
	va_end(ap);
}

void cli_table_number(struct cli_table *t, double v)
{
	char buf[32];

	cli_table_add(t, "%s", isnan(v) ? "" : cli_number(v, buf));
}

void cli_table_accuracy(struct cli_table *t, double v)
{
	char buf[32];

	cli_table_add(t, "%s", isnan(v) ? "" : text_accuracy(v, buf));
}

void cli_table_seconds(struct cli_table *t, double s)
{
	char buf[32];

	cli_table_add(t, "%s", isnan(s) ? "" : text_seconds(s, buf));
}

void cli_table_percent(struct cli_table *t, double share)
{
	char buf[32];

	cli_table_add(t, "%s", isnan(share) ? "" : cli_percent(share, buf));
}

void cli_table_mark(struct cli_table *t)
{
	void *marks = t->mark;

	if (t->failed || !t->n_cells || mem_grow(&marks, &t->mark_cap, t->n_marks + 1, sizeof *t->mark)) {
		t->failed = true;
		return;
	}
	t->mark = marks;
	t->mark[t->n_marks++] = (t->n_cells - 1) / strlen(t->align);
}

/* Columns on the screen; every code point counts one, which wide scripts do not quite obey. */
static size_t display_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void put_blanks(struct strbuf *out, size_t n)
{
	while (n--)
		strbuf_puts(out, " ");
}

void cli_table_print(const struct cli_table *t, struct strbuf *out, bool colour)
{
	size_t n_columns = strlen(t->align), n_rows = t->n_cells / n_columns;
	size_t width[64] = { 0 };
	bool shown[64] = { false };

	if (t->failed || n_columns > 64 || t->n_cells % n_columns) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t w = display_width(t->cell[i]);

		if (w > width[i % n_columns])
			width[i % n_columns] = w;
		if (i >= n_columns && w > 0)
			shown[i % n_columns] = true;
	}
	for (size_t r = 0; r < n_rows; r++) {
		bool marked = false, begun = false;
		size_t owed = 0; /* blanks that are written once something follows them */

		for (size_t i = 0; i < t->n_marks; i++)
			marked |= t->mark[i] == r;
		if (colour && (r == 0 || marked))
			strbuf_puts(out, r == 0 ? "\033[1m" : "\033[1;32m");
		for (size_t c = 0; c < n_columns; c++) {
			const char *cell = t->cell[r * n_columns + c];
			size_t pad = width[c] - display_width(cell);

			if (!shown[c])
				continue;
			owed += (begun ? 2 : 0) + (t->align[c] == 'r' ? pad : 0);
			begun = true;
			if (cell[strspn(cell, " ")]) {
				put_blanks(out, owed);
				owed = 0;
				strbuf_puts(out, cell);
			} else {
				owed += display_width(cell);
			}
			owed += t->align[c] == 'l' ? pad : 0;
		}
		if (colour && (r == 0 || marked))
			strbuf_puts(out, "\033[0m");
		strbuf_puts(out, "\n");
	}
}

void cli_table_release(struct cli_table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cell[i]);
	free(t->cell);
	free(t->mark);
	*t = (struct cli_table){ 0 };
}
