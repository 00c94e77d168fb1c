/* The schema of a table that comes without one: the default schema, without the columns that the table does
 * not have, and with the gpus of the jobs, if it has such a column. In a table that `postrider profile`
 * wrote, every column before the time is a factor. */
#include "predictors/data/schema.h"

#include <string.h>

#include "common/text/text.h"

/* Columns that profile writes behind the time; a table with all of them is one of its tables. */
static const char *const measured[] = { "other_load", "cpu_mean", "job_cpu_mean", "max_rss_mb", "replication",
					"copy",       "status",   "started_at",   NULL };

static bool is_profile(const struct csv *csv)
{
	for (size_t i = 0; measured[i]; i++) {
		if (csv_column(csv, measured[i]) < 0)
			return false;
	}
	return csv_column(csv, "time_s") >= 0;
}

bool schema_is_measured(const struct csv *csv)
{
	return csv_column(csv, "job_cpu_mean") >= 0 && csv_column(csv, "started_at") >= 0;
}

static bool all_numbers(const struct csv *csv, size_t column)
{
	bool any = false;

	for (size_t i = 0; i < csv->n_rows; i++) {
		const char *cell = csv_cell(csv, i, column);
		double v;

		if (*cell && !text_number(cell, &v))
			return false;
		any |= *cell != '\0';
	}
	return any;
}

static bool has_column(const struct csv *csv, const struct schema_column *c)
{
	bool has = csv_column(csv, c->name) >= 0;

	for (size_t i = 0; i < c->n_aliases; i++)
		has |= csv_column(csv, c->alias[i]) >= 0;
	return has;
}

/* "netwrk" is a slip, and not a table without networks. */
static bool is_misspelt(const struct csv *csv, const char *name)
{
	const char *one[2] = { name, NULL };

	for (size_t i = 0; i < csv->n_columns; i++) {
		if (text_nearest(csv->header[i], one))
			return true;
	}
	return false;
}

static bool may_be_absent(const struct csv *csv, const struct schema_column *c)
{
	return (!strcmp(c->name, "network") || !strcmp(c->name, "cpus")) && !has_column(csv, c) &&
	       !is_misspelt(csv, c->name);
}

static bool is_ignored(const struct schema *s, const char *name)
{
	for (size_t i = 0; i < s->n_ignores; i++) {
		if (!strcmp(s->ignore[i], name))
			return true;
	}
	return false;
}

static int add_factors(struct schema *s, const struct csv *csv, struct err *err)
{
	int rc = 0;

	for (int i = 0, time = csv_column(csv, s->time); i < time && !rc; i++) {
		if (schema_find_any(s, csv->header[i]) < 0 && !is_ignored(s, csv->header[i]))
			rc = schema_add(s, csv->header[i],
					all_numbers(csv, (size_t)i) ? COLUMN_NUMBER : COLUMN_CATEGORY, err);
	}
	return rc;
}

int schema_for_table(const struct csv *csv, struct schema **out, struct err *err)
{
	struct schema *s = NULL;
	int rc = schema_default(&s, err);

	for (size_t i = 0; !rc && i < s->n_columns;) {
		if (may_be_absent(csv, &s->column[i]))
			rc = schema_drop(s, i, false, err);
		else
			i++;
	}
	if (!rc && csv_column(csv, SCHEMA_GPUS_COLUMN) >= 0 &&
	    all_numbers(csv, (size_t)csv_column(csv, SCHEMA_GPUS_COLUMN)))
		rc = schema_add(s, SCHEMA_GPUS_COLUMN, COLUMN_NUMBER, err);
	if (!rc && is_profile(csv))
		rc = add_factors(s, csv, err);
	if (rc)
		schema_free(s);
	else
		*out = s;
	return rc;
}
