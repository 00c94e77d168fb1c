/* Labels rows that belong together. See groups.h. */
#define _GNU_SOURCE /* qsort_r */
#include "predictors/data/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct group_column {
	const double *number;
	char *const *category;
	int csv; /* a column of the file that is no factor; -1: one of the above */
};

struct group_order {
	const struct table *t;
	const struct group_column *column;
	size_t n;
};

static int compare_rows(const void *a_, const void *b_, void *ctx_)
{
	const struct group_order *ctx = ctx_;
	uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;

	for (size_t k = 0; k < ctx->n; k++) {
		const struct group_column *c = &ctx->column[k];
		int order;

		if (c->number) {
			double x = c->number[a], y = c->number[b];
			order = isnan(x) || isnan(y) ? (int)isnan(x) - (int)isnan(y) : (x > y) - (x < y);
		} else {
			const char *x = c->category ? c->category[a]
						    : csv_cell(ctx->t->csv, ctx->t->row[a], (size_t)c->csv);
			const char *y = c->category ? c->category[b]
						    : csv_cell(ctx->t->csv, ctx->t->row[b], (size_t)c->csv);
			order = strcmp(x ? x : "", y ? y : "");
		}
		if (order)
			return order;
	}
	return 0;
}

static int find_column(const struct table *t, const char *name, struct group_column *out, struct err *err)
{
	int at = schema_find_any(t->schema, name);

	*out = (struct group_column){ .csv = -1 };
	if (at >= 0 && t->column[at].present) {
		out->number = t->column[at].number;
		out->category = t->column[at].category;
		return 0;
	}
	out->csv = t->csv ? csv_column(t->csv, name) : -1;
	if (out->csv < 0)
		return err_fail(err, ERR_ARG, "%s has no column '%s'", t->name, name);
	return 0;
}

/* Per row of the table, to be freed. */
static int label_columns(const struct table *t, const struct group_column *column, size_t n, uint32_t **out,
			 struct err *err)
{
	uint32_t *row = mem_array(t->n_rows, sizeof *row), *label = mem_array(t->n_rows, sizeof *label);
	struct group_order order = { t, column, n };
	uint32_t next = 0;

	if (!row || !label) {
		free(row);
		free(label);
		return err_nomem(err, "groups of %zu rows", t->n_rows);
	}
	for (size_t i = 0; i < t->n_rows; i++)
		row[i] = (uint32_t)i;
	qsort_r(row, t->n_rows, sizeof *row, compare_rows, &order);
	for (size_t i = 0; i < t->n_rows; i++) {
		next += i > 0 && compare_rows(&row[i - 1], &row[i], &order) != 0;
		label[row[i]] = next;
	}
	free(row);
	*out = label;
	return 0;
}

int groups_label(const struct table *t, const char *const *name, size_t n, uint32_t **out, struct err *err)
{
	struct group_column *column = mem_array(n, sizeof *column);
	int status = column ? 0 : err_nomem(err, "groups of %zu rows", t->n_rows);

	for (size_t k = 0; !status && k < n; k++)
		status = find_column(t, name[k], &column[k], err);
	if (!status)
		status = label_columns(t, column, n, out, err);
	free(column);
	return status;
}

/* ---- runs ---- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Numbers the keys 0, 1, ... in the order in which they first come; returns how many there are. */
static int number_keys(const uint64_t *key, size_t n, uint32_t **out, size_t *out_n, struct err *err)
{
	uint64_t *sorted = mem_array(n, sizeof *sorted);
	uint32_t *label = mem_array(n, sizeof *label), *of = mem_calloc(n, sizeof *of); /* label + 1 */
	uint32_t next = 0;
	size_t kept = 0;

	if (!sorted || !label || !of) {
		free(sorted);
		free(label);
		free(of);
		return err_nomem(err, "the runs of %zu rows", n);
	}
	memcpy(sorted, key, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_u64);
	for (size_t i = 0; i < n; i++)
		if (!i || sorted[i] != sorted[kept - 1])
			sorted[kept++] = sorted[i];
	for (size_t i = 0; i < n; i++) {
		const uint64_t *found = bsearch(&key[i], sorted, kept, sizeof *sorted, compare_u64);
		uint32_t *mine = &of[found - sorted];

		if (!*mine)
			*mine = ++next;
		label[i] = *mine - 1;
	}
	free(sorted);
	free(of);
	*out = label;
	*out_n = kept;
	return 0;
}

/* A setting, a replication and how often the copy's number has come before make a run. */
static int label_runs(const struct table *t, const struct group_column *column, size_t n, uint32_t **out,
		      size_t *out_n, struct err *err)
{
	uint64_t *key = mem_array(t->n_rows, sizeof *key);
	uint32_t *met = mem_calloc(t->n_rows, sizeof *met), *setting = NULL, *copy = NULL;
	int status = key && met ? 0 : err_nomem(err, "the runs of %zu rows", t->n_rows);

	if (!status)
		status = label_columns(t, column, n - 1, &setting, err);
	if (!status)
		status = label_columns(t, column, n, &copy, err);
	for (size_t i = 0; !status && i < t->n_rows; i++)
		key[i] = (uint64_t)setting[i] << 32 | met[copy[i]]++;
	if (!status)
		status = number_keys(key, t->n_rows, out, out_n, err);
	free(key);
	free(met);
	free(setting);
	free(copy);
	return status;
}

int groups_runs(const struct table *t, uint32_t **out, size_t *out_n, struct err *err)
{
	struct group_column *column;
	uint32_t *run = NULL;
	size_t n = 0, n_runs = 0;
	int copy = t->csv ? csv_column(t->csv, "copy") : -1, other = schema_role(t->schema, ROLE_OTHER);
	int replication = copy < 0 ? -1 : csv_column(t->csv, "replication"), status;

	*out = NULL;
	*out_n = t->n_rows;
	if (copy < 0 || !t->n_rows || schema_find_any(t->schema, "copy") >= 0)
		return 0; /* nothing says so, or the copy is a factor */
	column = mem_array(t->schema->n_columns + 2, sizeof *column);
	if (!column)
		return err_nomem(err, "the runs of %zu rows", t->n_rows);
	for (size_t k = 0; k < t->schema->n_columns; k++)
		if (t->column[k].present && (int)k != other)
			column[n++] = (struct group_column){ .number = t->column[k].number,
							     .category = t->column[k].category,
							     .csv = -1 };
	if (replication >= 0)
		column[n++] = (struct group_column){ .csv = replication };
	column[n++] = (struct group_column){ .csv = copy };
	status = label_runs(t, column, n, &run, &n_runs, err);
	free(column);
	if (!status && n_runs < t->n_rows) {
		*out = run;
		*out_n = n_runs;
		run = NULL;
	}
	free(run);
	return status;
}
