/* CSV with a header line (RFC 4180: quotes, doubled quotes, CR LF, newlines inside quotes; a UTF-8
 * byte-order mark is skipped; blank lines are skipped). Every error says FILE:LINE:COLUMN, columns
 * counted in bytes. Blank around unquoted cells is trimmed. Every row must have as many cells as the
 * header. NUL bytes, quotes inside unquoted cells and carriage returns without a line feed are
 * errors. */
#ifndef COMMON_CSV_H
#define COMMON_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/strbuf.h"

#define CSV_MAX_BYTES ((size_t)2 << 30)
#define CSV_MAX_COLUMNS 4096
#define CSV_MAX_CELLS ((size_t)1 << 28) /* 2 GiB of pointers */

struct csv {
	char *name;        /* what errors call it */
	size_t n_columns, n_rows;
	char **header;     /* n_columns; all different, none empty */
	char **cell;       /* row-major, n_rows * n_columns, NUL-terminated, inside `text` */
	uint32_t *line;    /* the line in the file on which each row starts */
	char *text;
};

int csv_read_file(const char *path, struct csv **out, struct err *err); /* "-": standard input */
int csv_parse(const char *name, const char *text, size_t len, struct csv **out, struct err *err);
void csv_free(struct csv *t);
int csv_column(const struct csv *t, const char *name); /* -1: no such column */

static inline const char *csv_cell(const struct csv *t, size_t row, size_t column)
{
	return t->cell[row * t->n_columns + column];
}

/* The cell as a finite number; an empty cell, "NA" or "nan" (in any case) gives NaN and 0. Anything
 * else that is not a number as a whole: "FILE:LINE: column NAME: 'text' is not a number" (ERR_FORMAT). */
int csv_number(const struct csv *t, size_t row, size_t column, double *out, struct err *err);

/* Appends a cell, quoted where it must be; the caller writes commas and line ends. */
void csv_put(struct strbuf *out, const char *cell);
void csv_put_number(struct strbuf *out, double v); /* NaN: empty; else shortest round-trip text */

#endif
