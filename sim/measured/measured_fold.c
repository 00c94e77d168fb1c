/* Making a fold: rows to levels and slopes. measured_ask.c asks it. */
#include "sim/measured/measured_fold.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text/text.h"
#include "predictors/models/lsq.h"

#define SAME_LOAD 1e-6 /* processes: a difference that is rounding */

static int nomem(const struct measured_table *t, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for what happens", text_tail(t->csv->name, 150));
}

/* ---- levels ---- */

/* By setting, then by load, then by time. */
static int compare_rows(const void *a, const void *b)
{
	const struct measured_row *x = *(const struct measured_row *const *)a;
	const struct measured_row *y = *(const struct measured_row *const *)b;

	if (x->setting != y->setting)
		return x->setting < y->setting ? -1 : 1;
	if (x->others != y->others)
		return x->others < y->others ? -1 : 1;
	return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static bool same_load(const struct measured_row *a, const struct measured_row *b)
{
	return b->others - a->others <= SAME_LOAD;
}

static size_t count_loads(const struct measured_row *const *row, size_t n)
{
	size_t loads = n > 0;

	for (size_t i = 1; i < n; i++)
		loads += !same_load(row[i - 1], row[i]);
	return loads;
}

/* A table such as a history has another load in every row: neighbours are put together, as many in each
 * level. */
static bool level_ends(const struct measured_row *const *row, size_t i, size_t n, bool few)
{
	if (i + 1 == n)
		return true;
	if (few)
		return !same_load(row[i], row[i + 1]);
	return (i + 1) * MEASURED_MAX_LEVELS / n != i * MEASURED_MAX_LEVELS / n;
}

/* The rows of one setting. */
static void add_setting(struct measured_fold *f, const struct measured_row *const *row, size_t n,
			uint32_t *n_levels, uint32_t *n_times, uint32_t *n_accuracies)
{
	struct measured_happened *h = &f->happened[row[0]->setting];
	bool few = count_loads(row, n) <= MEASURED_MAX_LEVELS;
	struct measured_level level = { .first = *n_times };

	h->level = *n_levels;
	h->accuracy = *n_accuracies;
	for (size_t i = 0; i < n; i++) {
		level.others += row[i]->others;
		f->time[(*n_times)++] = row[i]->time_s;
		if (!isnan(row[i]->accuracy))
			f->accuracy[(*n_accuracies)++] = row[i]->accuracy;
		if (!level_ends(row, i, n, few))
			continue;
		level.n = *n_times - level.first;
		level.others /= level.n;
		stats_sort(f->time + level.first, level.n);
		f->level[(*n_levels)++] = level;
		level = (struct measured_level){ .first = *n_times };
	}
	h->n_levels = *n_levels - h->level;
	h->n_accuracies = *n_accuracies - h->accuracy;
	stats_sort(f->accuracy + h->accuracy, h->n_accuracies);
}

static void add_settings(struct measured_fold *f, const struct measured_row *const *row, size_t n)
{
	uint32_t n_levels = 0, n_times = 0, n_accuracies = 0;

	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && row[to]->setting == row[from]->setting;)
			to++;
		add_setting(f, row + from, to - from, &n_levels, &n_times, &n_accuracies);
	}
}

static void find_accuracies(struct measured_fold *f, const struct measured_row *const *row, size_t n)
{
	f->least_accuracy = INFINITY;
	f->most_accuracy = -INFINITY;
	for (size_t i = 0; i < n; i++) { /* of a number and NaN both give the number */
		f->least_accuracy = fmin(f->least_accuracy, row[i]->accuracy);
		f->most_accuracy = fmax(f->most_accuracy, row[i]->accuracy);
	}
}

/* ---- slopes ---- */

/* How y goes with the logarithms of the axes among these rows, the load kept apart. What cannot be told (an
 * axis of one level, too few rows) is level: 0. */
static int fit_slopes(const struct measured_table *t, const struct measured_row *const *row, size_t n,
		      bool of_time, double *slope, struct err *err)
{
	size_t columns = t->n_axes + 1;
	double *x = mem_array(n * columns, sizeof *x), *y = mem_array(n, sizeof *y);
	struct lsq_problem p = { 0 };
	struct lsq_fit fit = { 0 };
	int rc;

	if (!x || !y) {
		free(x);
		free(y);
		return nomem(t, err);
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t a = 0; a < t->n_axes; a++)
			x[a * n + i] = t->setting[row[i]->setting].z[a];
		x[t->n_axes * n + i] = log1p(row[i]->others);
		y[i] = of_time ? log(row[i]->time_s) : row[i]->accuracy;
	}
	rc = lsq_prepare(x, y, n, columns, true, &p, err);
	if (!rc)
		rc = lsq_solve(&p, NULL, 0, &fit, err);
	for (size_t a = 0; a < t->n_axes && !rc; a++)
		slope[a] = fit.coefficient[a];
	lsq_fit_release(&fit);
	lsq_problem_release(&p);
	free(y);
	return rc;
}

static int find_slopes(struct measured_fold *f, const struct measured_row **row, size_t n, struct err *err)
{
	const struct measured_table *t = f->table;
	const struct measured_row **known = mem_array(n, sizeof *known);
	int rc = known ? 0 : nomem(t, err);

	/* settings are sorted by their key, so those of one combination are side by side */
	for (size_t from = 0, to; from < n && !rc; from = to) {
		uint32_t combo = t->setting[row[from]->setting].combo;
		size_t n_known = 0;

		for (to = from; to < n && t->setting[row[to]->setting].combo == combo; to++)
			if (!isnan(row[to]->accuracy))
				known[n_known++] = row[to];
		if (to - from > t->n_axes + 2)
			rc = fit_slopes(t, row + from, to - from, true, f->time_slope + combo * t->n_axes,
					err);
		if (!rc && n_known > t->n_axes + 2)
			rc = fit_slopes(t, known, n_known, false, f->accuracy_slope + combo * t->n_axes, err);
	}
	free(known);
	return rc;
}

/* ---- all of it ---- */

/* Rows of the fold, sorted; with `all` those of the other folds too. */
static size_t take_rows(const struct measured_table *t, size_t fold, bool all,
			const struct measured_row **out)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_rows; i++)
		if (all || measured_table_happens(t, fold, &t->row[i]))
			out[n++] = &t->row[i];
	qsort(out, n, sizeof *out, compare_rows);
	return n;
}

int measured_fold_make(const struct measured_table *t, size_t fold, double cores, struct measured_fold *out,
		       struct err *err)
{
	struct measured_fold f = { .table = t, .cores = cores };
	const struct measured_row **row = mem_array(t->n_rows, sizeof *row);
	size_t n = row ? take_rows(t, fold, false, row) : 0;
	int rc;

	f.happened = mem_calloc(t->n_settings, sizeof *f.happened);
	f.level = mem_array(n, sizeof *f.level);
	f.time = mem_array(n, sizeof *f.time);
	f.accuracy = mem_array(n, sizeof *f.accuracy);
	f.time_slope = mem_calloc(t->n_combos * t->n_axes, sizeof *f.time_slope);
	f.accuracy_slope = mem_calloc(t->n_combos * t->n_axes, sizeof *f.accuracy_slope);
	if (!row || !f.happened || !f.level || !f.time || !f.accuracy || !f.time_slope || !f.accuracy_slope) {
		rc = nomem(t, err);
	} else {
		add_settings(&f, row, n);
		/* A fold of a few settings does not determine its slopes. They come from the whole table: a
		 * few numbers, which do not show what single runs took. */
		if (!t->by_replication)
			n = take_rows(t, fold, true, row);
		find_accuracies(&f, row, n);
		rc = find_slopes(&f, row, n, err);
	}
	free(row);
	if (rc)
		measured_fold_release(&f);
	else
		*out = f;
	return rc;
}

bool measured_fold_knows(const struct measured_fold *f, uint32_t combo)
{
	const struct measured_table *t = f->table;
	size_t i = measured_table_first(t, combo);

	while (i < t->n_settings && t->setting[i].combo == combo && !f->happened[i].n_levels)
		i++;
	return i < t->n_settings && t->setting[i].combo == combo;
}

void measured_fold_release(struct measured_fold *f)
{
	if (!f)
		return;
	free(f->happened);
	free(f->level);
	free(f->time);
	free(f->accuracy);
	free(f->time_slope);
	free(f->accuracy_slope);
	*f = (struct measured_fold){ 0 };
}
