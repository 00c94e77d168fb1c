/* Which rows of a table stay on one side of a split: those that agree in the columns of --group, and those of
 * one run. For train.c. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/search/train_internal.h"

/* ---- groups: rows that agree in the columns of --group ---- */

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

static int find_group_column(const struct table *t, const char *name, struct group_column *out,
			     struct err *err)
{
	int at = schema_find(t->schema, name);

	for (size_t i = 0; at < 0 && i < t->schema->n_derived; i++)
		if (strcmp(t->schema->derived[i].name, name) == 0)
			at = (int)(t->schema->n_columns + i);
	*out = (struct group_column){ .csv = -1 };
	if (at >= 0 && t->column[at].present) {
		out->number = t->column[at].number;
		out->category = t->column[at].category;
		return 0;
	}
	out->csv = t->csv ? csv_column(t->csv, name) : -1;
	if (out->csv < 0)
		return err_fail(err, ERR_ARG, "--group: %s has no column '%s'", t->name, name);
	return 0;
}

/* Labels 0, 1, ... per row of the table, to be freed. */
int train_label_groups(const struct train_params *p, uint32_t **out, struct err *err)
{
	const struct table *t = p->table;
	struct group_column *column = mem_array(p->n_groups, sizeof *column);
	uint32_t *row = mem_array(t->n_rows, sizeof *row), *label = mem_array(t->n_rows, sizeof *label);
	struct group_order order = { t, column, p->n_groups };
	int status = 0;

	if (!column || !row || !label)
		status = err_fail(err, ERR_NOMEM, "out of memory to group %zu rows", t->n_rows);
	for (size_t k = 0; !status && k < p->n_groups; k++)
		status = find_group_column(t, p->group[k], &column[k], err);
	if (!status) {
		uint32_t next = 0;

		for (size_t i = 0; i < t->n_rows; i++)
			row[i] = (uint32_t)i;
		qsort_r(row, t->n_rows, sizeof *row, compare_rows, &order);
		for (size_t i = 0; i < t->n_rows; i++) {
			next += i > 0 && compare_rows(&row[i - 1], &row[i], &order) != 0;
			label[row[i]] = next;
		}
		*out = label;
		label = NULL;
	}
	free(column);
	free(row);
	free(label);
	return status;
}

/* ---- runs: rows that are one run, stopped after different epochs ---- */

/* The first row of the table with the same run, for each row; to be freed. */
int train_first_of_runs(const struct train_params *p, uint32_t **out, struct err *err)
{
	const struct table *t = p->table;
	uint32_t *first = mem_array(t->n_rows, sizeof *first);
	uint32_t *seen = mem_calloc(t->n_rows + t->n_excluded, sizeof *seen); /* its first row + 1 */

	if (!first || !seen) {
		free(first);
		free(seen);
		return err_fail(err, ERR_NOMEM, "out of memory to group %zu rows", t->n_rows);
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		uint32_t *at = &seen[p->run[t->row[i]]];

		if (!*at)
			*at = (uint32_t)i + 1;
		first[i] = *at - 1;
	}
	free(seen);
	*out = first;
	return 0;
}

/* Groups that no run is split by: a row is in that of its run's first row. */
int train_join_runs(const uint32_t *first, size_t n, uint32_t **group, struct err *err)
{
	if (!*group) {
		*group = mem_array(n, sizeof **group);
		if (!*group)
			return err_fail(err, ERR_NOMEM, "out of memory to group %zu rows", n);
		memcpy(*group, first, n * sizeof **group);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		(*group)[i] = (*group)[first[i]]; /* the first row is never after i, and keeps its own */
	return 0;
}

size_t train_count_groups(const struct dataset *d)
{
	uint8_t *seen;
	size_t n = 0, most = 0;

	if (!d->group)
		return d->n_rows;
	for (size_t i = 0; i < d->n_rows; i++)
		most = d->group[i] > most ? d->group[i] : most;
	seen = mem_calloc(most + 1, 1);
	for (size_t i = 0; seen && i < d->n_rows; i++) {
		n += !seen[d->group[i]];
		seen[d->group[i]] = 1;
	}
	free(seen);
	return n;
}
