/* Copies of the rows a fold or a bag asks for. */
#include "predictors/data/dataset.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"

int dataset_subset(const struct dataset *d, const uint32_t *row, size_t n, struct dataset **out,
		   struct err *err)
{
	struct dataset *s = mem_calloc(1, sizeof *s);
	size_t cells;

	if (!s)
		return err_nomem(err, "%zu rows", n);
	s->n_rows = n;
	s->n_features = d->n_features;
	s->name = d->name;
	s->factor = d->factor;
	s->role = d->role;
	s->column = d->column;
	if (__builtin_mul_overflow(n, d->n_features, &cells))
		goto nomem;
	s->x = mem_array(cells, sizeof *s->x);
	s->y = mem_array(n, sizeof *s->y);
	if (d->group)
		s->group = mem_array(n, sizeof *s->group);
	if (d->seen)
		s->seen = mem_array(n, sizeof *s->seen);
	if (!s->x || !s->y || (d->group && !s->group) || (d->seen && !s->seen))
		goto nomem;
	for (size_t i = 0; i < n; i++) {
		assert(row[i] < d->n_rows);
		if (d->n_features)
			memcpy(s->x + i * d->n_features, d->x + row[i] * d->n_features,
			       d->n_features * sizeof *s->x);
		s->y[i] = d->y[row[i]];
		if (d->group)
			s->group[i] = d->group[row[i]];
		if (d->seen)
			s->seen[i] = d->seen[row[i]];
	}
	*out = s;
	return 0;
nomem:
	dataset_free(s);
	return err_nomem(err, "%zu rows of %zu features", n, d->n_features);
}

#define HAS_ZERO 1
#define HAS_ONE 2

/* Of which of its two values a 0/1 column has a row. */
static uint8_t values_met(const struct dataset *d, size_t f)
{
	uint8_t met = 0;

	for (size_t i = 0; i < d->n_rows && met != (HAS_ZERO | HAS_ONE); i++) {
		double v = d->x[i * d->n_features + f];

		met |= v > 0.5 ? HAS_ONE : v <= 0.5 ? HAS_ZERO : 0;
	}
	return met;
}

/* x: of the `n` 0/1 columns of one category. One column stands for two names, several for one each. */
static bool is_stranger(const double *x, const uint8_t *met, size_t n)
{
	if (n == 1)
		return (x[0] > 0.5 && !(met[0] & HAS_ONE)) || (x[0] <= 0.5 && !(met[0] & HAS_ZERO));
	for (size_t f = 0; f < n; f++)
		if (x[f] > 0.5)
			return !(met[f] & HAS_ONE);
	return false;
}

int dataset_forget_strangers(const struct dataset *train, struct dataset *test, struct err *err)
{
	size_t p = test->n_features, end;
	uint8_t *met;

	if (!test->role || !test->column)
		return 0;
	met = mem_array(p, 1);
	if (!met)
		return err_nomem(err, "%zu features", p);
	for (size_t f = 0; f < p; f++)
		met[f] = test->role[f] == ROLE_CATEGORY ? values_met(train, f) : 0;
	for (size_t f = 0; f < p; f = end) {
		for (end = f + 1; end < p && test->column[end] == test->column[f]; end++)
			;
		if (test->role[f] != ROLE_CATEGORY)
			continue;
		for (size_t i = 0; i < test->n_rows; i++) {
			double *x = test->x + i * p;
			bool stranger = is_stranger(x + f, met + f, end - f);

			for (size_t k = f; stranger && k < end; k++)
				x[k] = NAN;
		}
	}
	free(met);
	return 0;
}

void dataset_free(struct dataset *d)
{
	if (!d)
		return;
	free(d->x);
	free(d->y);
	free(d->group);
	free(d->seen);
	free(d);
}

size_t dataset_levels(const struct dataset *d, size_t feature, double *out)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		if (!isnan(d->x[i * d->n_features + feature]))
			out[n++] = d->x[i * d->n_features + feature];
	stats_sort(out, n);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || out[i] != out[kept - 1])
			out[kept++] = out[i];
	return kept;
}

int dataset_logs(const struct dataset *d, double **out, struct err *err)
{
	double *y = mem_array(d->n_rows, sizeof *y);

	if (!y)
		return err_nomem(err, "%zu targets", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++) {
		if (!(d->y[i] > 0.0)) {
			free(y);
			return err_fail(err, ERR_ARG, "log=yes needs targets above 0; row %zu has %g", i + 1,
					d->y[i]);
		}
		y[i] = log(d->y[i]);
	}
	*out = y;
	return 0;
}
