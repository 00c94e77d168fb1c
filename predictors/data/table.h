/* An observation table: a CSV read under a schema. Raw values, before they are encoded as features. */
#ifndef PREDICTORS_DATA_TABLE_H
#define PREDICTORS_DATA_TABLE_H

#include <stdint.h>

#include "common/csv.h"
#include "predictors/data/schema.h"

struct table_column {
	enum column_kind kind;
	bool present;           /* false: an optional column this table lacks */
	double *number;         /* n_rows; NaN where missing; for COLUMN_NUMBER and derived columns */
	char **category;        /* n_rows; NULL where missing; borrowed from the csv */
};

struct table {
	const struct schema *schema;     /* borrowed: must outlive the table */
	const struct csv *csv;           /* borrowed */
	size_t n_rows;                   /* rows kept */
	uint32_t *row;                   /* index of each kept row in the csv */
	struct table_column *column;     /* schema->n_columns of them, then schema->n_derived */
	double *time, *accuracy;         /* n_rows, NaN where missing; NULL if the column is absent */
	size_t n_excluded;               /* rows left out by the schema's exclude rules */
	char **ignored; size_t n_ignored;/* csv columns the schema does not know; borrowed from the csv */
	uint64_t fingerprint;            /* of the names and values that are used, in the schema's terms */
};

/* A column goes by its own name if the table has it, else by the first alias the table has. A derived
 * column that the table holds itself is taken from there; its empty cells are derived.
 * need_targets: a table for training or evaluation must have the time column; one to predict need
 * not. Errors name file, line, column. Times must be > 0 where present, accuracies finite, categories
 * UTF-8, derived values finite. Rows the schema excludes are not looked at. */
int table_read(const struct csv *csv, const struct schema *schema, bool need_targets,
               struct table **out, struct err *err);
void table_free(struct table *t);

#endif
