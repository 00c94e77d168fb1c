/* Deals the settings of a table into folds of similar size, for tables whose replications cannot be folds.
 *
 * Every fold has settings of every combination of categories, and spans the axes as well as it can: what
 * happens in a fold is interpolated from its own rows. Rows of one setting stay together, and so do the
 * points of a curve with their run: a model must not learn from a copy of what happens. */
#include "sim/measured/measured_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

#define SETTINGS_IN_FOLD 5 /* of a combination of categories, if they suffice */
#define LEAST_FOLDS 3 /* two thirds are learnt from */
#define MOST_FOLDS 5 /* each one is another training */
#define NONE UINT32_MAX

struct unit { /* rows that stay together */
	uint32_t id, combo, setting, rows;
};

struct dealing {
	struct measured_table *t;
	struct unit *unit;
	size_t n_units, n_combos; /* the latter: that have settings */
	uint32_t *unit_of, *fold_of; /* by row, and by id of a unit */
	uint32_t *settings; /* by combination of categories: how many it has */
	uint32_t *own_unit; /* by setting; NONE: none yet */
	size_t all_levels; /* of all axes */
	/* by fold: units of the combination at hand, rows of all of them, and, by level of every axis, units
	 * of the combination at hand that have it */
	size_t *units, *rows, *with_level;
};

static bool is_run(const struct measured_table *t, size_t i)
{
	return !t->curves || t->curves->run[t->row[i].csv_row] == t->row[i].csv_row;
}

static void dealing_release(struct dealing *d)
{
	free(d->unit);
	free(d->unit_of);
	free(d->fold_of);
	free(d->settings);
	free(d->own_unit);
	free(d->units);
	free(d->rows);
	free(d->with_level);
}

static int dealing_init(struct dealing *d, struct measured_table *t, struct err *err)
{
	*d = (struct dealing){ .t = t };
	for (size_t a = 0; a < t->n_axes; a++)
		d->all_levels += t->axis[a].n_levels;
	d->unit = mem_array(t->n_rows, sizeof *d->unit);
	d->unit_of = mem_array(t->n_rows, sizeof *d->unit_of);
	d->fold_of = mem_array(t->n_rows, sizeof *d->fold_of);
	d->settings = mem_calloc(t->n_combos, sizeof *d->settings);
	d->own_unit = mem_array(t->n_settings, sizeof *d->own_unit);
	d->units = mem_calloc(MOST_FOLDS, sizeof *d->units);
	d->rows = mem_calloc(MOST_FOLDS, sizeof *d->rows);
	d->with_level = mem_calloc(MOST_FOLDS * d->all_levels, sizeof *d->with_level);
	if (d->unit && d->unit_of && d->fold_of && d->settings && d->own_unit && d->units && d->rows &&
	    d->with_level)
		return 0;
	return err_nomem(err, "the folds of %s", text_tail(t->csv->name, 150));
}

/* ---- units ---- */

/* Of runs: points of a curve with fewer epochs are settings too, but go where their run goes. */
static void count_settings(struct dealing *d)
{
	struct measured_table *t = d->t;

	for (size_t i = 0; i < t->n_settings; i++)
		d->own_unit[i] = NONE;
	for (size_t i = 0; i < t->n_rows; i++) {
		uint32_t setting = t->row[i].setting, *settings = &d->settings[t->setting[setting].combo];

		if (!is_run(t, i) || d->own_unit[setting] != NONE)
			continue;
		d->own_unit[setting] = 0;
		d->n_combos += !(*settings)++;
	}
}

static size_t fold_count(const struct dealing *d)
{
	size_t settings = 0, n;

	for (size_t i = 0; i < d->t->n_combos; i++)
		settings += d->settings[i];
	n = settings / (SETTINGS_IN_FOLD * d->n_combos);
	n = n > MOST_FOLDS ? MOST_FOLDS : n < LEAST_FOLDS ? LEAST_FOLDS : n;
	return d->t->n_runs < n ? 2 : n;
}

/* Whether a row is the next copy of the run in the row before it. */
static bool is_next_copy(const struct measured_table *t, size_t i, int copy)
{
	double now, before;

	return copy >= 0 && i && t->row[i].setting == t->row[i - 1].setting &&
	       t->row[i].replication == t->row[i - 1].replication &&
	       text_number(csv_cell(t->csv, t->row[i].csv_row, (size_t)copy), &now) &&
	       text_number(csv_cell(t->csv, t->row[i - 1].csv_row, (size_t)copy), &before) && now > before;
}

/* A unit is a setting. In a combination of categories with fewer settings than folds it is a run, so that
 * the combination is in every fold. */
static void find_units(struct dealing *d)
{
	const struct measured_table *t = d->t;
	int copy = csv_column(t->csv, "copy");

	for (size_t i = 0; i < t->n_settings; i++)
		d->own_unit[i] = NONE;
	for (size_t i = 0; i < t->n_rows; i++) {
		uint32_t setting = t->row[i].setting, combo = t->setting[setting].combo, id;

		if (!is_run(t, i))
			continue;
		id = d->own_unit[setting];
		if (id == NONE || (d->settings[combo] < t->n_folds && !is_next_copy(t, i, copy))) {
			id = (uint32_t)d->n_units++;
			d->unit[id] = (struct unit){ .id = id, .combo = combo, .setting = setting };
			d->own_unit[setting] = id;
		}
		d->unit_of[i] = id;
		d->unit[id].rows++;
	}
}

/* By combination, and the largest first: what is dealt in one round is of similar size then. */
static int compare_units(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	if (x->combo != y->combo)
		return x->combo < y->combo ? -1 : 1;
	if (x->rows != y->rows)
		return x->rows > y->rows ? -1 : 1;
	if (x->setting != y->setting)
		return x->setting < y->setting ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

/* ---- dealing ---- */

static size_t *with_level(const struct dealing *d, size_t fold, const struct measured_setting *s, size_t axis)
{
	size_t at = fold * d->all_levels + s->level[axis];

	for (size_t a = 0; a < axis; a++)
		at += d->t->axis[a].n_levels;
	return &d->with_level[at];
}

/* The fold with the fewest units of this combination; of these the one that has the fewest of this unit's
 * levels, and then the one with the fewest rows. */
static size_t choose_fold(const struct dealing *d, const struct measured_setting *s)
{
	size_t best = 0, best_shared = 0;

	for (size_t f = 0; f < d->t->n_folds; f++) {
		size_t shared = 0;

		for (size_t a = 0; a < d->t->n_axes; a++)
			shared += *with_level(d, f, s, a);
		if (!f || d->units[f] < d->units[best] ||
		    (d->units[f] == d->units[best] &&
		     (shared < best_shared || (shared == best_shared && d->rows[f] < d->rows[best])))) {
			best = f;
			best_shared = shared;
		}
	}
	return best;
}

static void deal_units(struct dealing *d)
{
	const struct measured_table *t = d->t;

	qsort(d->unit, d->n_units, sizeof *d->unit, compare_units);
	for (size_t i = 0; i < d->n_units; i++) {
		const struct unit *u = &d->unit[i];
		const struct measured_setting *s = &t->setting[u->setting];
		size_t fold;

		if (i && u->combo != d->unit[i - 1].combo) {
			memset(d->units, 0, MOST_FOLDS * sizeof *d->units);
			memset(d->with_level, 0, MOST_FOLDS * d->all_levels * sizeof *d->with_level);
		}
		fold = choose_fold(d, s);
		d->units[fold]++;
		d->rows[fold] += u->rows;
		for (size_t a = 0; a < t->n_axes; a++)
			++*with_level(d, fold, s, a);
		d->fold_of[u->id] = (uint32_t)fold;
	}
}

/* Points of a curve go where their run goes; those of a run that cannot be used go to the first fold. */
static int follow_runs(struct measured_table *t, struct err *err)
{
	uint32_t *fold;

	if (!t->curves)
		return 0;
	fold = mem_calloc(t->csv->n_rows, sizeof *fold);
	if (!fold)
		return err_nomem(err, "the folds of %s", text_tail(t->csv->name, 150));
	for (size_t i = 0; i < t->n_rows; i++)
		if (is_run(t, i))
			fold[t->row[i].csv_row] = t->row[i].fold;
	for (size_t i = 0; i < t->n_rows; i++)
		t->row[i].fold = fold[t->curves->run[t->row[i].csv_row]];
	free(fold);
	return 0;
}

int measured_table_deal(struct measured_table *t, struct err *err)
{
	struct dealing d;
	int rc = dealing_init(&d, t, err);

	if (!rc) {
		count_settings(&d);
		t->n_folds = d.n_combos ? fold_count(&d) : 2;
		find_units(&d);
		deal_units(&d);
		for (size_t i = 0; i < t->n_rows; i++)
			if (is_run(t, i))
				t->row[i].fold = d.fold_of[d.unit_of[i]];
		rc = follow_runs(t, err);
	}
	dealing_release(&d);
	return rc;
}
