/* Splits of the rows of a campaign. See folds.h. */
#include "predictors/automl/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

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

/* Labels 0..k-1 of the rows: the part that each belongs to when groups (or rows) are dealt out in random
 * order until the parts are full. want[i]: rows of part i. */
static int deal(const struct row_list *from, const uint32_t *group, const size_t *want, size_t parts,
		struct rng *rng, uint32_t *part, struct err *err)
{
	uint32_t *order = mem_array(from->n, sizeof *order);
	size_t *have = mem_calloc(parts, sizeof *have);
	size_t at = 0;

	if (!order || !have) {
		free(order);
		free(have);
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
		while (at + 1 < parts && have[at] >= want[at])
			at++;
		for (size_t k = 0; k < from->n; k++) {
			if (group ? group[from->row[k]] != group[from->row[first]] : k != first)
				continue;
			part[k] = (uint32_t)at;
			have[at]++;
			if (!group)
				break;
		}
	}
	free(order);
	free(have);
	return 0;
}

static int split_by_part(const struct row_list *from, const uint32_t *part, uint32_t which,
			 struct row_list *held, struct row_list *rest, struct err *err)
{
	int rc = rows_room(held, from->n, err);

	if (!rc)
		rc = rows_room(rest, from->n, err);
	for (size_t i = 0; i < from->n && !rc; i++) {
		struct row_list *to = part[i] == which ? held : rest;

		to->row[to->n++] = from->row[i];
	}
	return rc;
}

/* Without groups a row can be found directly. */
static int deal_rows(const struct row_list *from, const size_t *want, size_t parts, struct rng *rng,
		     uint32_t *part, struct err *err)
{
	uint32_t *order = mem_array(from->n, sizeof *order);
	size_t at = 0, have = 0;

	if (!order)
		return err_nomem(err, "%zu rows", from->n);
	for (size_t i = 0; i < from->n; i++)
		order[i] = (uint32_t)i;
	rng_shuffle(rng, order, from->n);
	for (size_t i = 0; i < from->n; i++) {
		while (at + 1 < parts && have >= want[at]) {
			at++;
			have = 0;
		}
		part[order[i]] = (uint32_t)at;
		have++;
	}
	free(order);
	return 0;
}

static int split_parts(const struct row_list *from, const uint32_t *group, const size_t *want, size_t parts,
		       struct rng *rng, uint32_t which, struct row_list *held, struct row_list *rest,
		       struct err *err)
{
	uint32_t *part = mem_array(from->n, sizeof *part);
	int rc;

	if (!part)
		return err_nomem(err, "%zu rows", from->n);
	rc = group ? deal(from, group, want, parts, rng, part, err)
		   : deal_rows(from, want, parts, rng, part, err);
	if (!rc)
		rc = split_by_part(from, part, which, held, rest, err);
	free(part);
	return rc;
}

int folds_draw(const struct row_list *from, const uint32_t *group, size_t n, struct rng *rng,
	       struct row_list *held, struct row_list *rest, struct err *err)
{
	return split_parts(from, group, (size_t[]){ n, from->n - n }, 2, rng, 0, held, rest, err);
}

/* Folds 0..k-2 have floor(n / k) rows, the last one the rest. */
static int draw_fold(const struct campaign *c, const struct prepared *p, const struct row_list *from,
		     size_t fold, struct rng *rng, struct row_list *held, struct row_list *rest,
		     struct err *err)
{
	size_t *want;
	int rc;

	if (from->n < c->folds)
		return err_fail(err, ERR_NODATA, "%zu rows cannot make %zu folds", from->n, c->folds);
	want = mem_array(c->folds, sizeof *want);
	if (!want)
		return err_nomem(err, "%zu folds", c->folds);
	for (size_t k = 0; k < c->folds; k++)
		want[k] = from->n / c->folds;
	rc = split_parts(from, p->group, want, c->folds, rng, (uint32_t)fold, held, rest, err);
	free(want);
	return rc;
}

static int hold(const struct campaign *c, const struct prepared *p, enum holdout how, size_t fold,
		struct rng *rng, const struct row_list *from, struct row_list *held, struct row_list *rest,
		const char *what, struct err *err)
{
	size_t n = (size_t)floor(c->hold_out_ratio * (double)from->n);
	int rc;

	switch (how) {
	case HOLD_OUT:
		if (n == 0)
			return err_fail(err, ERR_NODATA, "hold_out_ratio %g of %zu rows leaves none for %s",
					c->hold_out_ratio, from->n, what);
		rc = folds_draw(from, p->group, n, rng, held, rest, err);
		break;
	case HOLD_KFOLD: rc = draw_fold(c, p, from, fold, rng, held, rest, err); break;
	case HOLD_INTERPOLATION:
	case HOLD_EXTRAPOLATION:
		rc = rows_copy(&p->validation, held, err);
		if (!rc)
			rc = rows_copy(from, rest, err);
		break;
	default:
		rc = rows_copy(from, held, err);
		if (!rc)
			rc = rows_copy(from, rest, err);
		break;
	}
	if (!rc && (!held->n || !rest->n))
		rc = err_fail(err, ERR_NODATA,
			      "the groups of group_columns are too large: no row is left %s %s",
			      held->n ? "to train beside" : "for", what);
	return rc;
}

int fold_rows_make(const struct campaign *c, const struct prepared *p, size_t run, size_t validation_fold,
		   size_t hp_fold, struct fold_rows *out, struct err *err)
{
	struct rng validation = rng_stream(c->seed, 2 * run + 1);
	struct rng hp = rng_stream(c->seed, rng_mix(2 * run) ^ rng_mix(validation_fold + 1000));
	struct fold_rows f = { 0 };
	int rc = hold(c, p, c->validation, validation_fold, &validation, &p->training, &f.validation, &f.both,
		      "validation", err);

	if (!rc)
		rc = hold(c, p, c->hp_selection, hp_fold, &hp, &f.both, &f.hp_selection, &f.training,
			  "hp_selection", err);
	if (rc) {
		fold_rows_release(&f);
		return rc;
	}
	*out = f;
	return 0;
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
