/* Traces as CSV. See row.h for the fields. */
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/row.h"

#define NAME_SHOWN 200

struct csv_columns { /* what each column of the file is */
	enum trace_field *field;
	size_t *value; /* its column of values, if it is one */
};

static int read_header(const struct csv *c, struct trace_build *b, struct csv_columns *out, struct err *err)
{
	int rc;

	out->field = mem_array(c->n_columns, sizeof *out->field);
	out->value = mem_calloc(c->n_columns, sizeof *out->value);
	if (!out->field || !out->value)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the trace",
				text_tail(c->name, NAME_SHOWN));
	for (size_t i = 0; i < c->n_columns; i++) {
		enum trace_field f = trace_field_of(c->header[i]);

		out->field[i] = f;
		if (f != TRACE_FIELDS && f != TRACE_EPOCHS)
			continue;
		if ((rc = trace_build_column(b, c->header[i], &out->value[i], err)))
			return rc;
		if (f == TRACE_FIELDS && (rc = trace_row_doubt(b, c->header[i], err)))
			return rc;
	}
	return 0;
}

static int no_arrival(const struct csv *c, struct err *err)
{
	const char **have = mem_array(c->n_columns + 1, sizeof *have);
	int rc;

	if (!have)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the trace",
				text_tail(c->name, NAME_SHOWN));
	for (size_t i = 0; i < c->n_columns; i++)
		have[i] = c->header[i];
	have[c->n_columns] = NULL;
	rc = trace_row_no_arrival(c->name, 1, have, err);
	free(have);
	return rc;
}

static int read_rows(const struct csv *c, struct trace_build *b, const struct csv_columns *columns,
		     struct err *err)
{
	struct trace_row row;
	int rc;

	trace_row_init(&row, b);
	for (size_t r = 0; r < c->n_rows; r++) {
		trace_row_begin(&row, c->line[r]);
		for (size_t i = 0; i < c->n_columns; i++) {
			rc = trace_row_field(&row, columns->field[i], columns->value[i], csv_cell(c, r, i),
					     err);
			if (rc)
				return err ? err_prefix(err, "%s:%u: field %s",
							text_tail(c->name, NAME_SHOWN), c->line[r],
							c->header[i])
					   : rc;
		}
		if ((rc = trace_row_add(&row, c->name, err)))
			return rc;
	}
	return 0;
}

/* Frees the table. */
static int read_table(struct csv *c, struct trace **out, struct err *err)
{
	struct csv_columns columns = { 0 };
	struct trace_build *b = NULL;
	int rc;

	if (csv_column(c, "arrival_s") < 0)
		rc = no_arrival(c, err);
	else
		rc = trace_build_new(c->name, NULL, 0, &b, err);
	if (rc == 0)
		rc = read_header(c, b, &columns, err);
	if (rc == 0)
		rc = read_rows(c, b, &columns, err);
	free(columns.field);
	free(columns.value);
	csv_free(c);
	if (rc == 0)
		rc = trace_build_done(b, NULL, out, err);
	trace_build_free(b);
	return rc;
}

int trace_read_csv(const char *path, struct trace **out, struct err *err)
{
	struct csv *c = NULL;
	int rc = csv_read_file(path, &c, err);

	return rc ? rc : read_table(c, out, err);
}

int trace_parse_csv(const char *name, const char *text, size_t len, struct trace **out, struct err *err)
{
	struct csv *c = NULL;
	int rc = csv_parse(name, text, len, &c, err);

	return rc ? rc : read_table(c, out, err);
}
