/* Which rows of a table stay on one side of a split: those that agree in the columns of --group, and those of
 * one run. For train.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/groups.h"
#include "predictors/search/train_internal.h"

/* Labels 0, 1, ... per row of the table, to be freed. */
int train_label_groups(const struct train_params *p, uint32_t **out, struct err *err)
{
	int status = groups_label(p->table, p->group, p->n_groups, out, err);

	return status ? err_prefix(err, "--group") : 0;
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

static size_t most_label(const uint32_t *label, size_t n)
{
	size_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = label[i] > most ? label[i] : most;
	return most;
}

size_t train_count_groups(const struct dataset *d)
{
	uint8_t *seen;
	size_t n = 0;

	if (!d->group)
		return d->n_rows;
	seen = mem_calloc(most_label(d->group, d->n_rows) + 1, 1);
	for (size_t i = 0; seen && i < d->n_rows; i++) {
		n += !seen[d->group[i]];
		seen[d->group[i]] = 1;
	}
	free(seen);
	return n;
}

/* ---- groups that no option names: settings that rows repeat, replications, contexts ---- */

/* The same groups as 0, 1, ...; returns how many there are. */
static size_t make_dense(uint32_t *label, size_t n)
{
	uint32_t *dense = mem_calloc(most_label(label, n) + 1, sizeof *dense), next = 0;

	for (size_t i = 0; dense && i < n; i++) {
		if (!dense[label[i]])
			dense[label[i]] = ++next;
		label[i] = dense[label[i]] - 1;
	}
	free(dense);
	return next;
}

int train_label_settings(const struct dataset *d, uint32_t **out, struct err *err)
{
	uint32_t *label = mem_array(d->n_rows, sizeof *label);
	struct spread *s = NULL;
	int status = label ? spread_make(d, &s, err) : err_nomem(err, "%zu rows", d->n_rows);
	size_t n = status ? 0 : spread_label(s, d, KNOWS_CONTEXT, label);

	*out = NULL;
	if (n > 1 && n < d->n_rows) {
		*out = label;
		label = NULL;
	}
	spread_free(s);
	free(label);
	return status;
}

int train_label_replications(const struct table *t, uint32_t **out, struct err *err)
{
	const char *const column[] = { "replication" };

	*out = NULL;
	if (!t->csv || csv_column(t->csv, column[0]) < 0)
		return 0;
	return groups_label(t, column, 1, out, err);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The label of a pair of labels. */
static size_t pair_labels(uint32_t *label, const uint32_t *other, size_t n)
{
	uint64_t *pair = mem_array(n, sizeof *pair);
	size_t kept = 0;

	for (size_t i = 0; pair && i < n; i++)
		pair[i] = (uint64_t)label[i] << 32 | other[i];
	if (pair)
		qsort(pair, n, sizeof *pair, compare_u64);
	for (size_t i = 0; pair && i < n; i++)
		if (!i || pair[i] != pair[kept - 1])
			pair[kept++] = pair[i];
	for (size_t i = 0; pair && i < n; i++) {
		uint64_t key = (uint64_t)label[i] << 32 | other[i];

		label[i] = (uint32_t)((uint64_t *)bsearch(&key, pair, kept, sizeof key, compare_u64) - pair);
	}
	free(pair);
	return kept;
}

/* Does every group lie in one context? */
static bool groups_are_within(const uint32_t *group, const uint32_t *context, size_t n, size_t n_groups)
{
	uint32_t *of = mem_calloc(n_groups, sizeof *of); /* its context + 1 */
	bool within = of;

	for (size_t i = 0; within && i < n; i++) {
		within = !of[group[i]] || of[group[i]] == context[i] + 1;
		of[group[i]] = context[i] + 1;
	}
	free(of);
	return within;
}

/* A row gets the label of the first row of its run. */
static size_t join_labels(uint32_t *label, const uint32_t *first, size_t n)
{
	uint32_t *of = mem_calloc(most_label(first, n) + 1, sizeof *of); /* its label + 1 */

	if (!of)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!of[first[i]])
			of[first[i]] = label[i] + 1;
		label[i] = of[first[i]] - 1;
	}
	free(of);
	return make_dense(label, n);
}

size_t train_name_label(const struct target_rows *rows, size_t f, size_t *out_end, uint32_t *out)
{
	const struct dataset *d = rows->d;
	size_t n_groups;

	*out_end = f + 1;
	if (!d->role || !d->column || d->role[f] != ROLE_CATEGORY)
		return 0;
	while (*out_end < d->n_features && d->column[*out_end] == d->column[f])
		++*out_end;
	if (*out_end < f + 3)
		return 0;
	for (size_t i = 0; i < d->n_rows; i++) {
		size_t at = f;

		while (at < *out_end && !(d->x[i * d->n_features + at] > 0.5))
			at++;
		out[i] = (uint32_t)(at - f);
	}
	n_groups = make_dense(out, d->n_rows);
	if (rows->by_groups &&
	    !groups_are_within(d->group, out, d->n_rows, most_label(d->group, d->n_rows) + 1))
		return 0;
	return n_groups && rows->first ? join_labels(out, rows->first, d->n_rows) : n_groups;
}

size_t train_hold_out_label(const struct target_rows *rows, const struct spread *s, enum familiarity knows,
			    uint32_t *out)
{
	const struct dataset *d = rows->d;
	size_t n = d->n_rows, n_groups;

	if (rows->by_groups && knows == KNOWS_CONTEXT) {
		memcpy(out, d->group, n * sizeof *out);
		return make_dense(out, n);
	}
	if (knows == KNOWS_SETTING) {
		if (rows->by_groups || !rows->replication)
			return 0; /* rows of a group are never on both sides; runs are not known apart */
		spread_label(s, d, KNOWS_CONTEXT, out);
		n_groups = pair_labels(out, rows->replication, n);
	} else {
		n_groups = spread_label(s, d, knows, out);
	}
	if (rows->by_groups && !groups_are_within(d->group, out, n, most_label(d->group, n) + 1))
		return 0;
	return n_groups && rows->first ? join_labels(out, rows->first, n) : n_groups;
}
