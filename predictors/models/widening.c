/* How much wider bounds are outside the training table, from levels that were held out. See widening.h. */
#include "predictors/models/widening.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"

#define MAX_ROWS 2000 /* of the table that is held out from; larger ones are thinned evenly */
#define END_SHARE 0.15 /* of the rows that an end holds at least, if levels are left */
#define FULL_FROM 0.25 /* of the range beyond its end: from there on bounds are wider by the whole factor */

enum side { SIDE_BOTH, SIDE_TRAIN, SIDE_TEST };

struct end { /* one end of one factor */
	size_t feature;
	bool within_groups; /* the factor varies within groups */
	double from, to; /* values held out */
	double squares; /* sum over the rows that got a prediction */
	double largest; /* of the absolute residuals */
	size_t n;
};

struct ends {
	const struct grid_point *model;
	const struct dataset *d;
	const struct spread *spread;
	struct fit_context ctx;
	struct end *end;
	size_t n;
};

static size_t rows_between(const struct dataset *d, size_t feature, double from, double to)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		n += d->x[i * d->n_features + feature] >= from && d->x[i * d->n_features + feature] <= to;
	return n;
}

/* As many levels from the end as make up the share, two being left. */
static struct end end_of(const struct dataset *d, size_t feature, const double *level, size_t n, bool top)
{
	struct end e = { .feature = feature };
	size_t k = 1;

	for (;; k++) {
		e.from = top ? level[n - k] : level[0];
		e.to = top ? level[n - 1] : level[k - 1];
		if (k + 2 >= n ||
		    (double)rows_between(d, feature, e.from, e.to) >= END_SHARE * (double)d->n_rows)
			return e;
	}
}

static bool at_end(const struct dataset *d, const struct end *e, size_t row)
{
	double v = d->x[row * d->n_features + e->feature];

	return v >= e->from && v <= e->to;
}

/* Where a factor takes several values within a group (the epochs of one run), the end of a group must not be
 * predicted by what its other rows have taught: half of the groups teach, the other half is predicted. */
static enum side side_of(const struct dataset *d, const struct end *e, size_t row)
{
	if (!e->within_groups)
		return SIDE_BOTH;
	return rng_mix(d->group[row]) & 1 ? SIDE_TEST : SIDE_TRAIN;
}

/* What cannot be fitted without an end tells nothing about it: n stays 0. */
static void hold_out(void *ctx, size_t index, size_t worker)
{
	struct ends *all = ctx;
	struct end *e = &all->end[index];
	const struct dataset *d = all->d;
	uint32_t *row = mem_array(d->n_rows, sizeof *row);
	struct dataset *train = NULL;
	struct predictor m = { 0 };
	size_t n = 0;

	(void)worker;
	for (size_t i = 0; row && i < d->n_rows; i++)
		if (!at_end(d, e, i) && side_of(d, e, i) != SIDE_TEST)
			row[n++] = (uint32_t)i;
	if (row && n && !dataset_subset(d, row, n, &train, NULL) &&
	    !predictor_fit(all->model->ops, &all->model->settings, train, &all->ctx, &m, NULL)) {
		for (size_t i = 0; i < d->n_rows; i++) {
			const double *x = d->x + i * d->n_features;
			double p, r;

			if (!at_end(d, e, i) || side_of(d, e, i) == SIDE_TRAIN)
				continue;
			predictor_predict(&m, x, 1, &p);
			r = log(d->y[i]) - log(p);
			if (m.ops->spread)
				r /= spread_believed(all->spread, m.ops->spread(m.self, x));
			if (!isfinite(r))
				continue;
			e->squares += r * r;
			e->largest = fmax(e->largest, fabs(r));
			e->n++;
		}
	}
	predictor_release(&m);
	dataset_free(train);
	free(row);
}

/* Does the feature take two values in one group? */
static bool varies_within(const struct dataset *d, size_t feature, const uint32_t *first)
{
	for (size_t i = 0; first && i < d->n_rows; i++) {
		double a = d->x[i * d->n_features + feature];
		double b = d->x[first[i] * d->n_features + feature];

		if (!isnan(a) && !isnan(b) && a != b)
			return true;
	}
	return false;
}

/* The first row of each row's group, to be freed; NULL without groups. */
static int first_rows(const struct dataset *d, uint32_t **out, struct err *err)
{
	uint32_t *first, *seen, most = 0;

	*out = NULL;
	if (!d->group)
		return 0;
	for (size_t i = 0; i < d->n_rows; i++)
		most = d->group[i] > most ? d->group[i] : most;
	first = mem_array(d->n_rows, sizeof *first);
	seen = mem_calloc((size_t)most + 1, sizeof *seen); /* the group's first row + 1 */
	if (!first || !seen) {
		free(first);
		free(seen);
		return err_nomem(err, "the groups of %zu rows", d->n_rows);
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		if (!seen[d->group[i]])
			seen[d->group[i]] = (uint32_t)i + 1;
		first[i] = seen[d->group[i]] - 1;
	}
	free(seen);
	*out = first;
	return 0;
}

static int thinned(const struct dataset *d, struct dataset **out, struct err *err)
{
	size_t n = d->n_rows < MAX_ROWS ? d->n_rows : MAX_ROWS;
	uint32_t *row = mem_array(n, sizeof *row);
	int rc;

	if (!row)
		return err_nomem(err, "%zu rows", n);
	for (size_t i = 0; i < n; i++)
		row[i] = (uint32_t)(i * d->n_rows / n);
	rc = dataset_subset(d, row, n, out, err);
	free(row);
	return rc;
}

static bool is_factor(const struct dataset *d, size_t f)
{
	return (!d->factor || d->factor[f]) && !(d->role && d->role[f] == ROLE_CATEGORY);
}

/* A job without devices computes elsewhere. So 0 is no level of theirs from which the others could tell, and
 * none lies below it. */
static bool is_without(const struct dataset *d, size_t f, double level)
{
	return d->role && d->role[f] == ROLE_DEVICES && level == 0.0;
}

int widening_estimate(const struct grid_point *model, const struct dataset *d, const struct fit_context *ctx,
		      const struct spread *spread, double q90, double *out, struct err *err)
{
	struct ends all = { .model = model, .ctx = *ctx, .spread = spread };
	struct dataset *part = NULL;
	double *level = NULL, worst = 0.0;
	uint32_t *first = NULL;
	int rc = thinned(d, &part, err);

	if (!rc)
		rc = first_rows(part, &first, err);
	if (rc)
		goto out;
	all.ctx.want_oob = false;
	all.ctx.no_importances = true;
	all.d = part;
	all.end = mem_calloc(2 * d->n_features, sizeof *all.end);
	level = mem_array(part->n_rows, sizeof *level);
	if (!all.end || !level) {
		rc = err_fail(err, ERR_NOMEM, "out of memory to hold out levels of %zu features",
			      d->n_features);
		goto out;
	}
	for (size_t f = 0; f < d->n_features; f++) {
		size_t n = is_factor(part, f) ? dataset_levels(part, f, level) : 0;

		for (int top = 0; n >= WIDENING_LEVELS && top < 2; top++) {
			if (!top && is_without(part, f, level[0]))
				continue;
			all.end[all.n] = end_of(part, f, level, n, top);
			all.end[all.n++].within_groups = varies_within(part, f, first);
		}
	}
	pool_run(ctx->pool, all.n, hold_out, &all);
	rc = err_if_stopped(ctx->stop, err);
	if (rc)
		goto out;
	for (size_t k = 0; k < all.n; k++)
		worst = fmax(worst, all.end[k].largest);
	for (size_t f = 0; f < d->n_features; f++) {
		bool choice = d->role && (d->role[f] == ROLE_BATCH || d->role[f] == ROLE_EPOCHS);
		double squares = 0.0, rms = spread_scale(spread, choice ? KNOWS_CONTEXT : KNOWS_NEITHER);
		size_t n = 0;

		for (size_t k = 0; k < all.n; k++)
			if (all.end[k].feature == f) {
				squares += all.end[k].squares;
				n += all.end[k].n;
			}
		out[f] = 1.0;
		if (is_factor(part, f))
			out[f] = !(rms > 0.0) || worst == 0.0 ? WIDENING_UNKNOWN
				 : n                          ? sqrt(squares / (double)n) / rms
							      : worst / (q90 * rms);
		if (!(out[f] >= 1.0))
			out[f] = 1.0;
	}
out:
	free(first);
	free(all.end);
	free(level);
	dataset_free(part);
	return rc;
}

/* Where a value lies in its range: by the logarithm, or by that of one more where the range begins at 0
 * (other work beside a job that is one process itself). */
static double place_of(const struct feature *f, double v)
{
	if (f->min > 0.0 && v > 0.0)
		return log(v / f->min);
	return f->min >= 0.0 && v >= 0.0 ? log1p(v) - log1p(f->min) : v - f->min;
}

/* The share of the way to where a factor holds in full. The ends that were held out lay some way from what
 * was left, and a value that is hardly outside is hardly new. */
static double way_out(const struct feature *f, double v)
{
	double at = place_of(f, v), end = v < f->min ? place_of(f, f->min) : place_of(f, f->max);
	double full = FULL_FROM * place_of(f, f->max);

	return full > 0.0 ? fmin(fabs(at - end) / full, 1.0) : 1.0;
}

static double worst_of(const double *widening, const struct features *f)
{
	double worst = 1.0;

	for (size_t i = 0; i < f->n; i++)
		worst = fmax(worst, widening[i]);
	return worst;
}

void widening_of_names(double *widening, const struct features *f)
{
	double worst = worst_of(widening, f);

	for (size_t i = 0; i < f->n; i++)
		if (feature_is_category(&f->feature[i]))
			widening[i] = worst;
}

double widening_at(const double *widening, const struct features *f, const double *x, double *out_names)
{
	double most = 1.0;

	*out_names = 1.0;
	for (size_t i = 0; widening && i < f->n; i++) {
		bool amiss = isnan(x[i]) != isnan(f->feature[i].min);

		if (amiss && feature_is_category(&f->feature[i]))
			*out_names = fmax(*out_names, widening[i]);
		else if (amiss)
			most = fmax(most, worst_of(widening, f));
		else if (x[i] < f->feature[i].min || x[i] > f->feature[i].max)
			most = fmax(most, pow(widening[i], way_out(&f->feature[i], x[i])));
	}
	return most;
}
