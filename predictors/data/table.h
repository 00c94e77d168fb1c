/* An observation table under a schema: read from a CSV, or built in memory. Raw values, before they are
 * encoded as features. */
#ifndef PREDICTORS_DATA_TABLE_H
#define PREDICTORS_DATA_TABLE_H

#include <stdint.h>

#include "common/csv.h"
#include "predictors/data/schema.h"
#include "queueing/calibrate.h"

struct table_column {
	enum column_kind kind;
	bool present;           /* false: an optional column this table lacks */
	double *number;         /* n_rows; NaN where missing; for COLUMN_NUMBER and derived columns */
	char **category;        /* n_rows; NULL where missing; owned by the csv or, without one, by the
	                         * table */
};

struct table {
	const struct schema *schema;     /* borrowed: must outlive the table */
	const char *name;                /* what errors call it */
	const struct csv *csv;           /* borrowed; NULL: built in memory */
	size_t n_rows;                   /* rows kept */
	uint32_t *row;                   /* index of each kept row among all, n_rows + n_excluded */
	struct table_column *column;     /* schema->n_columns of them, then schema->n_derived */
	double *time, *accuracy;         /* n_rows, NaN where missing; NULL if the column is absent */
	/* Runs beside jobs of another kind (models/mixed.h): who they were, NULL in other rows. Their times
	 * are in mixed_time and missing in `time`. Both NULL: there are none. */
	char **beside;
	double *mixed_time;
	size_t n_excluded;               /* rows left out by the schema's exclude rules */
	char **ignored; size_t n_ignored;/* csv columns the schema does not know; borrowed from the csv */
	uint64_t fingerprint;            /* of the names and values that are used, in the schema's terms */
	char **owned; size_t n_owned;    /* texts of a table built in memory */
};

enum table_needs {
	TABLE_NEEDS_FACTORS,         /* to predict: every column that is not optional */
	TABLE_NEEDS_TARGETS,         /* to train or evaluate: the time, too */
	TABLE_NEEDS_NOTHING,         /* a part of another table, which may have what this one lacks */
};

/* A column goes by its own name if the table has it, else by the first alias the table has. A derived
 * column that the table holds itself is taken from there; its empty cells are derived.
 * Errors name file, line, column. Times must be > 0 where present, accuracies finite, categories
 * UTF-8, derived values finite. Rows the schema excludes are not looked at. */
int table_read(const struct csv *csv, const struct schema *schema, enum table_needs needs,
               struct table **out, struct err *err);
void table_free(struct table *t);
/* Of each row what `postrider profile` measured beside its time: the cores that it kept busy, by the column
 * `job_cpu_mean` (percent of one core), and its phases, by the columns of common/phases.h, the first three of
 * which must be there. To be freed; NULL: the table has none of these columns, or its schema has them for
 * something else. */
#define TABLE_BESIDE_COLUMN "beside"
#define TABLE_CPU_COLUMN "job_cpu_mean"
int table_seen(const struct table *t, struct calibrate_seen **out, struct err *err);

/* ---- tables made in memory, row by row (table_build.c) ---- */

struct table_value {
	const char *name;            /* a factor, one of its aliases, a derived column or a target */
	const char *text;            /* NULL: the number counts. "", "NA" and "nan" are missing values */
	double number;               /* NaN: missing */
};
struct table_builder;

/* `name` is what errors call the table. The schema is borrowed by the builder and by the table. */
int table_builder_new(const char *name, const struct schema *schema, struct table_builder **out,
                      struct err *err);
void table_builder_free(struct table_builder *b);
/* Adds a row under the rules of table_read(): numbers may be given as text and categories as numbers; of two
 * names of one column its own counts, then the first given; names that the schema does not know are passed
 * over. A column that any row names is present, even if the value is missing. ERR_FORMAT says what cannot be
 * used, "NAME: row 3: column cpus: 'x' is not a number"; the builder is then unchanged. */
int table_builder_row(struct table_builder *b, const struct table_value *value, size_t n, struct err *err);
/* Adds the rows of a table under an equal schema. */
int table_builder_append(struct table_builder *b, const struct table *t, struct err *err);
/* Gives the table; after that the builder can only be freed. A needed column that no row has is ERR_FORMAT;
 * with TABLE_NEEDS_NOTHING it is there, and missing in every row. */
int table_builder_finish(struct table_builder *b, enum table_needs needs, struct table **out,
                         struct err *err);

/* Shared by the two ways to make a table. */
bool table_is_utf8(const char *text);
int table_finish(struct table *t, struct err *err); /* derives what is missing, and the fingerprint */

#endif
