/* Data preparation: from the CSV of a campaign to the columns that techniques see, in the order of
 * docs/AUTOML.md. Steps add columns and change the list of those that are active; each writes what it did
 * into the log. */
#ifndef AUTOML_PREPARE_H
#define AUTOML_PREPARE_H

#include "common/csv.h"
#include "automl/campaign.h"
#include "predictors/models/pipeline.h"

#define PREPARE_MAX_CELLS ((size_t)1 << 28)

struct made_column {
	char *name;
	enum made_by by;
	size_t source;   /* NUMBER, CLASS: the column of the csv */
	char *class;     /* CLASS: the value that gives 1 */
	uint32_t *of;    /* the others: columns they are made from */
	size_t n_of;
	bool boolean;    /* NUMBER: True and False */
	double *value;   /* n_rows; NULL for a column of words */
};

struct row_list {
	uint32_t *row;
	size_t n;
};

struct prepared {
	struct csv *csv;
	char **name;             /* of the csv's columns, after renaming */
	size_t n_rows;
	struct made_column *column; size_t n_columns, cap;
	uint32_t *x; size_t n_x; /* the active columns, in order */
	size_t y_source;
	double *y;               /* n_rows */
	struct row_list all;     /* without the rows that skip_rows left out */
	struct row_list training, validation; /* validation: of Interpolation and Extrapolation; else empty */
	uint32_t *group;         /* n_rows: by group_columns; NULL: each row is its own */
	struct strbuf log;       /* a line for each step */
	uint64_t fingerprint;    /* of the csv's text */
};

/* Reads c->input_path: from the current folder, else from the campaign's, else a file of that name beside
 * it. *out_path is where it was found; to be freed. */
int prepare_find_input(const struct campaign *c, char **out_path, struct err *err);
int prepare(const struct campaign *c, const char *path, struct prepared **out, struct err *err);
void prepared_free(struct prepared *p);

/* The prepared table as CSV: the active columns and the target, of all rows that are used. */
void prepared_write(const struct prepared *p, const struct campaign *c, struct strbuf *out);

/* ---- between prepare.c and extend.c, which computes columns from others ---- */
struct prepare { /* what the steps share */
	const struct campaign *c;
	struct prepared *p;
	struct err *err;
};

/* Takes the column's contents, also when it fails, and makes it active. A NULL name is a failed
 * allocation. */
int prepare_add(struct prepare *s, struct made_column *col);
void prepare_log(struct prepare *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "FILE:LINE: [SECTION] KEY: reason" */
int prepare_fail(const struct prepare *s, const char *section, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Inverses, logarithms, products, and the features of Ernest. */
int extend_columns(struct prepare *s);

#endif
