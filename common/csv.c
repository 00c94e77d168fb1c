/* One pass over the text: each cell is trimmed or unquoted where it stands and ended with a NUL in
 * place of its comma or line end, so a table costs one pointer per cell beyond the file itself. */
#include "common/csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"

#define CSV_NAME_SHOWN 200

struct csv_reader {
	struct csv *t;
	char *at, *end; /* *end is a NUL */
	const char *line_start;
	uint32_t line;
	size_t cap_cells, cap_lines, cap_header;
	size_t n_cells;
	struct err *err;
};

enum csv_after { AFTER_COMMA, AFTER_LINE, AFTER_END };

static int csv_fail(const struct csv_reader *r, const char *at, const char *reason)
{
	return err_fail(r->err, ERR_FORMAT, "%s:%u:%zu: %s", text_tail(r->t->name, CSV_NAME_SHOWN), r->line,
			(size_t)(at - r->line_start) + 1, reason);
}

static int csv_nomem(const struct csv_reader *r)
{
	return err_fail(r->err, ERR_NOMEM, "%s:%u: out of memory for the table",
			text_tail(r->t->name, CSV_NAME_SHOWN), r->line);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* What ends a cell at r->at: passes it and says which. */
static int read_separator(struct csv_reader *r, enum csv_after *out_after)
{
	char *p = r->at;

	switch (*p) {
	case ',':
		r->at = p + 1;
		*out_after = AFTER_COMMA;
		return 0;
	case '\r':
		if (p[1] != '\n' && p + 1 != r->end)
			return csv_fail(r, p, "a carriage return without a line feed");
		p += p[1] == '\n';
		break;
	case '\n': break;
	case '\0':
		if (p == r->end) {
			*out_after = AFTER_END;
			return 0;
		}
		return csv_fail(r, p, "a NUL byte: this is not a text file");
	default: return csv_fail(r, p, "text after the closing quote of a cell");
	}
	r->at = p + 1;
	r->line_start = r->at;
	r->line++;
	*out_after = AFTER_LINE;
	return 0;
}

/* Reads a quoted cell whose quote is at r->at; *out_end is where its NUL belongs. */
static int read_quoted(struct csv_reader *r, char **out_end)
{
	const char *open = r->at, *open_line = r->line_start;
	uint32_t line = r->line;
	char *from = r->at + 1, *to = from;

	for (;; from++) {
		if (*from == '"') {
			if (from[1] != '"')
				break;
			from++; /* a doubled quote stands for one */
		} else if (*from == '\n') {
			r->line++;
			r->line_start = from + 1;
		} else if (*from == '\0') {
			if (from != r->end)
				return csv_fail(r, from, "a NUL byte: this is not a text file");
			r->line = line;
			r->line_start = open_line;
			return csv_fail(r, open, "the quoted cell that starts here is not closed");
		}
		*to++ = *from;
	}
	for (from++; is_blank(*from);)
		from++;
	r->at = from;
	*out_end = to;
	return 0;
}

/* Reads one cell and what ends it. */
static int read_cell(struct csv_reader *r, char **out_cell, enum csv_after *out_after)
{
	/* Everything that can end an unquoted cell or must not be in one. */
	static const bool special[256] = {
		['\0'] = true, [','] = true, ['"'] = true, ['\n'] = true, ['\r'] = true
	};
	char *p = r->at, *cell, *last = p;
	int rc;

	while (is_blank(*p))
		p++;
	if (*p == '"') {
		r->at = p;
		cell = p + 1;
		if ((rc = read_quoted(r, &last)))
			return rc;
	} else {
		cell = p;
		while (!special[(unsigned char)*p])
			p++;
		if (*p == '"')
			return csv_fail(
				r, p, "a quote inside an unquoted cell: quote the whole cell and double it");
		r->at = p;
		for (last = p; last > cell && is_blank(last[-1]);)
			last--;
	}
	/* The separator first: the NUL may take its place. */
	if ((rc = read_separator(r, out_after)))
		return rc;
	*last = '\0';
	*out_cell = cell;
	return 0;
}

/* Passes lines with nothing on them; true if there is a row to read. */
static bool skip_blank_lines(struct csv_reader *r)
{
	for (;;) {
		char *p = r->at;

		while (is_blank(*p))
			p++;
		if (*p == '\r' && p[1] == '\n')
			p++;
		if (*p != '\n')
			return p != r->end && !(*p == '\r' && p + 1 == r->end);
		r->at = p + 1;
		r->line_start = r->at;
		r->line++;
	}
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_header(struct csv_reader *r, uint32_t line)
{
	struct csv *t = r->t;
	char **sorted, shown[64];
	int rc = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		if (!t->header[i][0])
			return err_fail(r->err, ERR_FORMAT, "%s:%u:1: column %zu has no name",
					text_tail(t->name, CSV_NAME_SHOWN), line, i + 1);
	if (t->n_columns == 1 && strpbrk(t->header[0], ";\t"))
		return err_fail(r->err, ERR_FORMAT,
				"%s:%u:1: the cells are separated by %s here; they have to be by commas, and "
				"numbers need a decimal point",
				text_tail(t->name, CSV_NAME_SHOWN), line,
				strchr(t->header[0], ';') ? "semicolons" : "tabs");
	sorted = mem_array(t->n_columns, sizeof *sorted);
	if (!sorted)
		return csv_nomem(r);
	memcpy(sorted, t->header, t->n_columns * sizeof *sorted);
	qsort(sorted, t->n_columns, sizeof *sorted, compare_names);
	for (size_t i = 1; i < t->n_columns && !rc; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			rc = err_fail(r->err, ERR_FORMAT, "%s:%u:1: two columns are called '%s'",
				      text_tail(t->name, CSV_NAME_SHOWN), line,
				      text_printable(sorted[i], shown, sizeof shown));
	free(sorted);
	return rc;
}

static int read_header(struct csv_reader *r)
{
	struct csv *t = r->t;
	enum csv_after after = AFTER_COMMA;
	uint32_t line = r->line;
	void *header = NULL;
	int rc;

	while (after == AFTER_COMMA) {
		if (t->n_columns == CSV_MAX_COLUMNS)
			return err_fail(r->err, ERR_FORMAT, "%s:%u:%zu: more than %d columns",
					text_tail(t->name, CSV_NAME_SHOWN), r->line,
					(size_t)(r->at - r->line_start) + 1, CSV_MAX_COLUMNS);
		if (mem_grow(&header, &r->cap_header, t->n_columns + 1, sizeof *t->header))
			return csv_nomem(r);
		t->header = header;
		if ((rc = read_cell(r, &t->header[t->n_columns], &after)))
			return rc;
		t->n_columns++;
	}
	return check_header(r, line);
}

static int read_row(struct csv_reader *r)
{
	struct csv *t = r->t;
	enum csv_after after = AFTER_COMMA;
	uint32_t line = r->line;
	size_t n = 0;
	void *p;
	int rc;

	if (r->n_cells + t->n_columns > CSV_MAX_CELLS)
		return err_fail(r->err, ERR_FORMAT, "%s:%u:1: more than %zu cells",
				text_tail(t->name, CSV_NAME_SHOWN), line, CSV_MAX_CELLS);
	p = t->cell;
	if (mem_grow(&p, &r->cap_cells, r->n_cells + t->n_columns, sizeof *t->cell))
		return csv_nomem(r);
	t->cell = p;
	p = t->line;
	if (mem_grow(&p, &r->cap_lines, t->n_rows + 1, sizeof *t->line))
		return csv_nomem(r);
	t->line = p;

	while (after == AFTER_COMMA) {
		char *cell, *start = r->at;

		if (n == t->n_columns)
			return err_fail(
				r->err, ERR_FORMAT,
				"%s:%u:%zu: more cells in this row than the %zu columns of the header",
				text_tail(t->name, CSV_NAME_SHOWN), r->line,
				(size_t)(start - r->line_start) + 1, t->n_columns);
		if ((rc = read_cell(r, &cell, &after)))
			return rc;
		t->cell[r->n_cells + n++] = cell;
	}
	if (n < t->n_columns)
		return err_fail(r->err, ERR_FORMAT,
				"%s:%u:1: %zu cells in this row, but %zu columns in the header",
				text_tail(t->name, CSV_NAME_SHOWN), line, n, t->n_columns);
	t->line[t->n_rows++] = line;
	r->n_cells += n;
	return 0;
}

/* Takes `text`, of which text[len] is a NUL, also on failure. */
static int parse_owned(const char *name, char *text, size_t len, struct csv **out, struct err *err)
{
	struct csv *t = mem_calloc(1, sizeof *t);
	struct csv_reader r = { .t = t, .at = text, .end = text + len, .line = 1, .err = err };
	int rc;

	if (!t) {
		free(text);
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the table",
				text_tail(name, CSV_NAME_SHOWN));
	}
	t->text = text;
	t->name = mem_strdup(name);
	if (!t->name) {
		rc = err_fail(err, ERR_NOMEM, "%s: out of memory for the table",
			      text_tail(name, CSV_NAME_SHOWN));
		goto fail;
	}
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r.at += 3;
	r.line_start = r.at;
	if (!skip_blank_lines(&r)) {
		rc = csv_fail(&r, r.at, "empty: a header line with the names of the columns is needed");
		goto fail;
	}
	if ((rc = read_header(&r)))
		goto fail;
	while (skip_blank_lines(&r))
		if ((rc = read_row(&r)))
			goto fail;
	*out = t;
	return 0;
fail:
	csv_free(t);
	return rc;
}

int csv_read_file(const char *path, struct csv **out, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	int rc = io_read_file(path, CSV_MAX_BYTES, &text, &len, err);

	if (rc)
		return rc;
	return parse_owned(strcmp(path, "-") == 0 ? "standard input" : path, text, len, out, err);
}

int csv_parse(const char *name, const char *text, size_t len, struct csv **out, struct err *err)
{
	char *copy;

	if (len > CSV_MAX_BYTES)
		return err_fail(err, ERR_FORMAT, "%s is longer than the limit of %zu bytes",
				text_tail(name, CSV_NAME_SHOWN), CSV_MAX_BYTES);
	copy = len ? mem_strndup(text, len) : mem_strdup("");
	if (!copy)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the table",
				text_tail(name, CSV_NAME_SHOWN));
	return parse_owned(name, copy, len, out, err);
}

void csv_free(struct csv *t)
{
	if (!t)
		return;
	free(t->name);
	free(t->header);
	free(t->cell);
	free(t->line);
	free(t->text);
	free(t);
}

int csv_column(const struct csv *t, const char *name)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (strcmp(t->header[i], name) == 0)
			return (int)i;
	return -1;
}

int csv_number(const struct csv *t, size_t row, size_t column, double *out, struct err *err)
{
	const char *cell = csv_cell(t, row, column);
	char shown[64], name[64];

	if (text_number(cell, out))
		return 0;
	if (!cell[0] || strcasecmp(cell, "na") == 0 || strcasecmp(cell, "nan") == 0) {
		*out = NAN;
		return 0;
	}
	return err_fail(err, ERR_FORMAT, "%s:%u: column %s: '%s' is not a number",
			text_tail(t->name, CSV_NAME_SHOWN), t->line[row],
			text_printable(t->header[column], name, sizeof name),
			text_printable(cell, shown, sizeof shown));
}

void csv_put(struct strbuf *out, const char *cell)
{
	size_t len = strlen(cell);
	const char *quote;

	if (len == 0 || (!strpbrk(cell, ",\"\r\n") && !is_blank(cell[0]) && !is_blank(cell[len - 1]))) {
		strbuf_add(out, cell, len);
		return;
	}
	strbuf_add(out, "\"", 1);
	while ((quote = strchr(cell, '"'))) {
		strbuf_add(out, cell, (size_t)(quote - cell) + 1);
		strbuf_add(out, "\"", 1);
		cell = quote + 1;
	}
	strbuf_puts(out, cell);
	strbuf_add(out, "\"", 1);
}

void csv_put_number(struct strbuf *out, double v)
{
	char buf[32];

	if (!isnan(v))
		strbuf_puts(out, text_shortest(v, buf));
}
