/* Splits of the rows of a campaign. See folds.h. */
#include "automl/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/trees/bins.h"
#include "automl/pyrandom.h"

size_t folds_of(const struct campaign *c, enum holdout how)
{
	return how == HOLD_KFOLD ? c->folds : 1;
}

void fold_rows_release(struct fold_rows *f)
{
	free(f->training.row);
	free(f->hp_selection.row);
	free(f->validation.row);
	free(f->both.row);
	*f = (struct fold_rows){ 0 };
}

static int rows_room(struct row_list *l, size_t n, struct err *err)
{
	free(l->row);
	*l = (struct row_list){ .row = mem_array(n ? n : 1, sizeof *l->row) };
	return l->row ? 0 : err_nomem(err, "%zu rows", n);
}

static int rows_copy(const struct row_list *from, struct row_list *to, struct err *err)
{
	int rc = rows_room(to, from->n, err);

	if (!rc) {
		memcpy(to->row, from->row, from->n * sizeof *to->row);
		to->n = from->n;
	}
	return rc;
}

/* Groups among the rows; SIZE_MAX without memory. */
static size_t count_groups(const struct row_list *from, const uint32_t *group)
{
	uint32_t most = 0;
	size_t n = 0;
	uint8_t *seen;

	for (size_t i = 0; i < from->n; i++)
		most = group[from->row[i]] > most ? group[from->row[i]] : most;
	seen = mem_calloc((size_t)most + 1, 1);
	if (!seen)
		return SIZE_MAX;
	for (size_t i = 0; i < from->n; i++) {
		n += !seen[group[from->row[i]]];
		seen[group[from->row[i]]] = 1;
	}
	free(seen);
	return n;
}

/* Labels 0..k-1 of the rows: the part that each belongs to when groups (or rows) are dealt out in random
 * order until the parts are full. want[i]: rows of part i. No part stays empty while there are groups for
 * all: a part is left early when the others would get none. */
static int deal(const struct row_split *s, const size_t *want, size_t parts, struct rng *rng, uint32_t *part,
		struct err *err)
{
	const struct row_list *from = s->from;
	const uint32_t *group = s->group;
	uint32_t *order = mem_array(from->n, sizeof *order);
	size_t at = 0, have = 0, left = group ? count_groups(from, group) : from->n;

	if (!order || left == SIZE_MAX) {
		free(order);
		return err_nomem(err, "%zu rows", from->n);
	}
	for (size_t i = 0; i < from->n; i++) {
		order[i] = (uint32_t)i;
		part[i] = UINT32_MAX;
	}
	rng_shuffle(rng, order, from->n);
	for (size_t i = 0; i < from->n; i++) {
		uint32_t first = order[i];

		if (part[first] != UINT32_MAX) /* its group has come already */
			continue;
		for (; at + 1 < parts && (have >= want[at] || (have && left < parts - at)); at++)
			have = 0;
		left--;
		for (size_t k = group ? 0 : first; k < (group ? from->n : first + 1); k++) {
			if (group && group[from->row[k]] != group[from->row[first]])
				continue;
			part[k] = (uint32_t)at;
			have++;
		}
	}
	free(order);
	return 0;
}

/* The same without groups, with the rows that aMLLibrary draws: part after part is a sample of what is
 * left, and the last one has the rest. What is left is taken in ascending order, as Python's sets of not
 * too few small numbers are. */
static int deal_as_python(size_t n, const size_t *want, size_t parts, struct pyrandom *random, uint32_t *part,
			  struct err *err)
{
	uint32_t *pool = mem_array(2 * n, sizeof *pool), *left = pool + n;
	uint8_t *taken = mem_array(n, 1);
	size_t n_left = n;

	if (!pool || !taken) {
		free(pool);
		free(taken);
		return err_nomem(err, "%zu rows", n);
	}
	for (size_t i = 0; i < n; i++)
		left[i] = (uint32_t)i;
	for (size_t k = 0; k + 1 < parts; k++) {
		size_t kept = 0;

		pyrandom_sample(random, n_left, want[k], pool, taken);
		for (size_t i = 0; i < n_left; i++) {
			if (taken[i])
				part[left[i]] = (uint32_t)k;
			else
				left[kept++] = left[i];
		}
		n_left = kept;
	}
	for (size_t i = 0; i < n_left; i++)
		part[left[i]] = (uint32_t)parts - 1;
	free(pool);
	free(taken);
	return 0;
}

static int split_by_part(const struct row_split *s, const uint32_t *part, uint32_t which, struct err *err)
{
	int rc = rows_room(s->held, s->from->n, err);

	if (!rc)
		rc = rows_room(s->rest, s->from->n, err);
	for (size_t i = 0; i < s->from->n && !rc; i++) {
		struct row_list *to = part[i] == which ? s->held : s->rest;

		to->row[to->n++] = s->from->row[i];
	}
	return rc;
}

/* A split of a campaign: whole groups in an order of our own, or the draws of aMLLibrary. */
struct draw {
	const struct campaign *c;
	const struct prepared *p;
	struct row_split split;
	struct rng rng;
	struct pyrandom python;
};

static int split_parts(struct draw *d, const size_t *want, size_t parts, uint32_t which, struct err *err)
{
	size_t n = d->split.from->n;
	uint32_t *part = mem_array(n, sizeof *part);
	int rc;

	if (!part)
		return err_nomem(err, "%zu rows", n);
	rc = d->split.group ? deal(&d->split, want, parts, &d->rng, part, err)
			    : deal_as_python(n, want, parts, &d->python, part, err);
	if (!rc)
		rc = split_by_part(&d->split, part, which, err);
	free(part);
	return rc;
}

int folds_draw(const struct row_split *s, size_t n, struct rng *rng, struct err *err)
{
	uint32_t *part = mem_array(s->from->n, sizeof *part);
	int rc;

	if (!part)
		return err_nomem(err, "%zu rows", s->from->n);
	rc = deal(s, (size_t[]){ n, s->from->n - n }, 2, rng, part, err);
	if (!rc)
		rc = split_by_part(s, part, 0, err);
	free(part);
	return rc;
}

/* Folds 0..k-2 have floor(n / k) rows, the last one the rest. */
static int draw_fold(struct draw *d, size_t fold, struct err *err)
{
	size_t n = d->split.from->n, folds = d->c->folds, *want;
	int rc;

	if (n < folds)
		return err_fail(err, ERR_NODATA, "%zu rows cannot make %zu folds", n, folds);
	want = mem_array(folds, sizeof *want);
	if (!want)
		return err_nomem(err, "%zu folds", folds);
	for (size_t k = 0; k < folds; k++)
		want[k] = n / folds;
	rc = split_parts(d, want, folds, (uint32_t)fold, err);
	free(want);
	return rc;
}

static int hold(struct draw *d, enum holdout how, size_t fold, const char *what, struct err *err)
{
	const struct row_split *s = &d->split;
	size_t n = (size_t)floor(d->c->hold_out_ratio * (double)s->from->n);
	int rc;

	switch (how) {
	case HOLD_OUT:
		if (n == 0)
			return err_fail(err, ERR_NODATA, "hold_out_ratio %g of %zu rows leaves none for %s",
					d->c->hold_out_ratio, s->from->n, what);
		d->python = pyrandom_of_float(pyrandom_next(&d->python));
		rc = split_parts(d, (size_t[]){ n, s->from->n - n }, 2, 0, err);
		break;
	case HOLD_KFOLD: rc = draw_fold(d, fold, err); break;
	default:
		rc = rows_copy(how == HOLD_ALL ? s->from : &d->p->validation, s->held, err);
		if (!rc)
			rc = rows_copy(s->from, s->rest, err);
		break;
	}
	if (!rc && (!s->held->n || !s->rest->n))
		rc = err_fail(err, ERR_NODATA,
			      "the groups of group_columns are too large: no row is left %s %s",
			      s->held->n ? "to train beside" : "for", what);
	return rc;
}

/* A generator that is copied seeds the copy with its next number: the n-th copy. */
static struct pyrandom copy_of(struct pyrandom *r, size_t n)
{
	double seed = 0.0;

	for (size_t i = 0; i < n; i++)
		seed = pyrandom_next(r);
	return pyrandom_of_float(seed);
}

/* aMLLibrary's chain of seeds. A generator is seeded by the one above it; which numbers are used for what
 * follows from the order in which it builds them: techniques (where each is wrapped), all techniques,
 * normalisation, hp_selection, XGBoost's selection, validation. Runs and validation folds have copies, all
 * made before the first draw. */
static void seed_splits(const struct campaign *c, size_t run, size_t validation_fold,
			struct pyrandom *validation, struct pyrandom *hp)
{
	struct pyrandom r = pyrandom_of_int(c->seed);
	size_t skipped = 1 + c->normalization + (c->tune || c->selection == SELECT_SFS ? c->n_plans : 0);

	for (int level = 0; level < 2; level++)
		r = pyrandom_of_float(pyrandom_next(&r));
	*hp = copy_of(&r, skipped + 1);
	*validation = copy_of(&r, 1 + (c->selection == SELECT_XGBOOST));
	if (c->validation == HOLD_KFOLD) {
		struct pyrandom first = copy_of(hp, 1); /* run 0, fold 0: later runs are copies of it */

		if (run)
			*hp = copy_of(&first, (run - 1) * c->folds + validation_fold + 1);
		else if (validation_fold)
			*hp = copy_of(hp, validation_fold);
		else
			for (size_t i = (c->runs - 1) * c->folds; i > 0; i--)
				pyrandom_next(&first);
		if (!run && !validation_fold)
			*hp = first;
	} else if (run) {
		*hp = copy_of(hp, run);
	} else {
		for (size_t i = 1; i < c->runs; i++)
			pyrandom_next(hp);
	}
	if (run)
		*validation = copy_of(validation, run);
	else
		for (size_t i = 1; i < c->runs; i++)
			pyrandom_next(validation);
}

int fold_rows_make(const struct campaign *c, const struct prepared *p, struct fold at, struct fold_rows *out,
		   struct err *err)
{
	struct fold_rows f = { 0 };
	struct draw validation = { .c = c,
				   .p = p,
				   .split = { &p->training, p->group, &f.validation, &f.both },
				   .rng = rng_stream(c->seed, 2 * at.run + 1) };
	struct draw hp = { .c = c,
			   .p = p,
			   .split = { &f.both, p->group, &f.hp_selection, &f.training },
			   .rng = rng_stream(c->seed, rng_mix(2 * at.run) ^ rng_mix(at.validation + 1000)) };
	int rc;

	seed_splits(c, at.run, at.validation, &validation.python, &hp.python);
	rc = hold(&validation, c->validation, at.validation, "validation", err);
	if (!rc)
		rc = hold(&hp, c->hp_selection, at.hp, "hp_selection", err);
	if (rc) {
		fold_rows_release(&f);
		return rc;
	}
	*out = f;
	return 0;
}

int fold_keeper_rows(struct fold_keeper *k, const struct campaign *c, const struct prepared *p,
		     struct fold at, const struct fold_rows **out, struct err *err)
{
	int rc;

	if (!k->has || k->at.run != at.run || k->at.validation != at.validation || k->at.hp != at.hp) {
		fold_keeper_release(k);
		rc = fold_rows_make(c, p, at, &k->rows, err);
		if (rc)
			return rc;
		k->has = true;
		k->at = at;
	}
	*out = &k->rows;
	return 0;
}

void fold_keeper_release(struct fold_keeper *k)
{
	fold_rows_release(&k->rows);
	bins_free(k->bins);
	*k = (struct fold_keeper){ 0 };
}

int folds_contiguous(const struct row_list *from, size_t k, size_t n, struct row_list *held,
		     struct row_list *rest, struct err *err)
{
	size_t size = from->n / n, more = from->n % n;
	size_t start = k * size + (k < more ? k : more), end = start + size + (k < more);
	int rc = rows_room(held, from->n, err);

	if (!rc)
		rc = rows_room(rest, from->n, err);
	for (size_t i = 0; i < from->n && !rc; i++) {
		struct row_list *to = i >= start && i < end ? held : rest;

		to->row[to->n++] = from->row[i];
	}
	return rc;
}
