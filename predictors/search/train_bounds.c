/* How far off a model may be: residuals of rows that it has not seen, the bounds that follow from them, and
 * how much worse it gets when a column is shuffled. For train.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/models/widening.h"
#include "predictors/search/train_internal.h"

#define PERMUTATIONS 5 /* shuffles of each column and fold */

/* ---- held-out predictions and permutation importances, from one fit per fold ---- */

struct cross_fit {
	const struct dataset *d;
	const struct grid_point *best;
	const struct split *split;
	struct fit_context ctx;
	double *predicted; /* per row; NaN where it was never held out */
	double *rise; /* per fold and feature: rise of the MSE */
	struct err *error; /* per fold */
};

/* `test` has its columns shuffled one after the other, and put back. */
static int permute_columns(const struct cross_fit *c, size_t fold, const struct predictor *m,
			   struct dataset *test, double *predicted, struct err *err)
{
	size_t n = test->n_rows, p = test->n_features;
	double before = score_of(test->y, predicted, n).mse, *rise = c->rise + fold * p;
	double *kept = mem_array(n, sizeof *kept);
	uint32_t *order = mem_array(n, sizeof *order);
	int status = 0;

	if (!kept || !order)
		status = err_fail(err, ERR_NOMEM, "out of memory to shuffle %zu rows", n);
	for (size_t f = 0; !status && f < p; f++) {
		struct rng rng = rng_stream(c->ctx.seed + fold, f);

		for (size_t i = 0; i < n; i++) {
			kept[i] = test->x[i * p + f];
			order[i] = (uint32_t)i;
		}
		rise[f] = 0.0;
		for (int k = 0; k < PERMUTATIONS; k++) {
			rng_shuffle(&rng, order, n);
			for (size_t i = 0; i < n; i++)
				test->x[i * p + f] = kept[order[i]];
			predictor_predict(m, test->x, n, predicted);
			rise[f] += (score_of(test->y, predicted, n).mse - before) / PERMUTATIONS;
		}
		for (size_t i = 0; i < n; i++)
			test->x[i * p + f] = kept[i];
		status = err_if_stopped(c->ctx.stop, err);
	}
	free(kept);
	free(order);
	return status;
}

static void cross_fit_fold(void *ctx, size_t fold, size_t worker)
{
	struct cross_fit *c = ctx;
	const struct fold *rows = &c->split->fold[fold];
	struct fit_context fit = c->ctx;
	struct dataset *train = NULL, *test = NULL;
	struct predictor m = { 0 };
	double *predicted = mem_array(rows->n_test, sizeof *predicted);
	struct err *err = &c->error[fold];
	int status = predicted ? 0 : err_nomem(err, "%zu predictions", rows->n_test);

	(void)worker;
	fit.want_oob = false;
	if (!status)
		status = dataset_subset(c->d, rows->train, rows->n_train, &train, err);
	if (!status)
		status = dataset_subset(c->d, rows->test, rows->n_test, &test, err);
	if (!status)
		status = predictor_fit(c->best->ops, &c->best->settings, train, &fit, &m, err);
	if (!status) {
		predictor_predict(&m, test->x, test->n_rows, predicted);
		for (size_t i = 0; i < rows->n_test; i++)
			c->predicted[rows->test[i]] = predicted[i];
		permute_columns(c, fold, &m, test, predicted, err);
	}
	predictor_release(&m);
	dataset_free(train);
	dataset_free(test);
	free(predicted);
}

static int cross_fit(struct cross_fit *c, double *permutation, struct err *err)
{
	size_t folds = c->split->n_folds, p = c->d->n_features;
	int status = 0;

	c->rise = mem_calloc(folds * p, sizeof *c->rise);
	c->error = mem_calloc(folds, sizeof *c->error);
	if (!c->rise || !c->error)
		status = err_fail(err, ERR_NOMEM, "out of memory to hold out %zu parts", folds);
	for (size_t i = 0; i < c->d->n_rows; i++)
		c->predicted[i] = NAN;
	if (!status)
		pool_run(c->ctx.pool, folds, cross_fit_fold, c);
	for (size_t k = 0; !status && k < folds; k++) {
		if (c->error[k].code)
			status = err_fail(err, c->error[k].code, "%s", c->error[k].text);
		for (size_t f = 0; f < p; f++)
			permutation[f] += c->rise[k * p + f] / (double)folds;
	}
	free(c->rise);
	free(c->error);
	return status;
}

/* Five parts by default; fewer groups than parts make fewer parts. 0: nothing can be held out. */
size_t train_possible_folds(size_t asked, size_t groups)
{
	size_t folds = asked < groups ? asked : groups;

	return folds < 2 ? 0 : folds;
}

enum keep {
	KEEP_ANY, /* a row drawn at random: residuals that are as large as those of all rows */
	KEEP_LATEST, /* the one that takes longest beyond its prediction: a bound that holds for it holds for
	              * all */
	KEEP_LATEST_SHARE, /* the same, as a share of the prediction */
};

static double lateness(enum keep how, double y, double predicted)
{
	return how == KEEP_LATEST_SHARE && predicted > 0.0 ? y / predicted - 1.0 : y - predicted;
}

/* Leaves the prediction of one row a run; NaN for the others. */
static int keep_one_a_run(const struct training *tr, const struct dataset *d, const uint32_t *first,
			  enum keep how, double *predicted, struct err *err)
{
	struct rng rng = rng_stream(tr->p->ctx.seed, UINT64_MAX - 2);
	size_t n_rows = tr->p->table->n_rows;
	uint32_t *kept = mem_array(n_rows, sizeof *kept), *seen = mem_calloc(n_rows, sizeof *seen);

	if (!kept || !seen) {
		free(kept);
		free(seen);
		return err_nomem(err, "the residuals of %zu rows", d->n_rows);
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		uint32_t *k = &kept[first[i]], *n = &seen[first[i]];
		bool take;

		if (isnan(predicted[i]))
			continue;
		if (++*n == 1)
			take = true;
		else if (how == KEEP_ANY)
			take = rng_below(&rng, *n) == 0; /* each of n with the same chance */
		else
			take = lateness(how, d->y[i], predicted[i]) > lateness(how, d->y[*k], predicted[*k]);
		if (take && *n > 1)
			predicted[*k] = NAN;
		if (take)
			*k = (uint32_t)i;
		else
			predicted[i] = NAN;
	}
	free(kept);
	free(seen);
	return 0;
}

/* Scores of the residuals; for a model that errs by a factor in log time, and with them how much wider bounds
 * are outside the table. */
static int score_residuals(struct training *tr, const struct dataset *d, const struct grid_point *best,
			   bool is_time, const double *predicted, struct model_target *out, struct err *err)
{
	double squares = 0.0;
	int status;

	if (!is_time || !best->ops->log_errors || tr->p->plain_bounds)
		return conformal_fit(d->y, predicted, d->n_rows, is_time && !tr->p->plain_bounds,
				     &out->conformal, err);
	status = conformal_fit_log(d->y, predicted, d->n_rows, &out->conformal, err);
	if (status || !out->conformal.n)
		return status;
	out->widening = mem_array(d->n_features, sizeof *out->widening);
	if (!out->widening)
		return err_nomem(err, "%zu features", d->n_features);
	for (size_t i = 0; i < out->conformal.n; i++)
		squares += out->conformal.score[i] * out->conformal.score[i];
	return widening_estimate(best, d, &tr->p->ctx, sqrt(squares / (double)out->conformal.n),
				 out->widening, err);
}

/* Residuals of rows a model has not seen: out of bag where there is a bag and no groups to keep apart,
 * otherwise from a grouped k-fold, one a run. More parts for small tables, whose models suffer most from what
 * is held out. */
int train_find_bounds(struct training *tr, const struct dataset *d, const uint32_t *first,
		      const struct grid_point *best, bool is_time, struct model_target *out, struct err *err)
{
	size_t asked = d->n_rows <= 2000 ? 10 : d->n_rows <= 50000 ? 5 : 2;
	struct split_params params = { .kind = SPLIT_KFOLD,
				       .folds = train_possible_folds(asked, train_count_groups(d)),
				       .seed = tr->p->ctx.seed };
	struct cross_fit c = { .d = d, .best = best, .ctx = tr->p->ctx };
	const double *oob = out->predictor.ops->oob ? out->predictor.ops->oob(out->predictor.self) : NULL;
	struct split *split = NULL;
	int status;

	out->permutation = mem_calloc(d->n_features, sizeof *out->permutation);
	c.predicted = mem_array(d->n_rows, sizeof *c.predicted);
	if (!out->permutation || !c.predicted) {
		status = err_nomem(err, "the residuals of %zu rows", d->n_rows);
		goto out;
	}
	status = split_make(d, &params, &split, err);
	if (status)
		goto out;
	c.split = split;
	status = cross_fit(&c, out->permutation, err);
	if (status)
		goto out;
	if (first)
		status = keep_one_a_run(tr, d, first,
					!is_time              ? KEEP_ANY
					: tr->p->plain_bounds ? KEEP_LATEST
							      : KEEP_LATEST_SHARE,
					c.predicted, err);
	if (status)
		goto out;
	if (oob && !d->group) {
		snprintf(out->residuals_by, sizeof out->residuals_by, "out-of-bag");
		status = score_residuals(tr, d, best, is_time, oob, out, err);
	} else {
		snprintf(out->residuals_by, sizeof out->residuals_by, "%zu-fold", split->n_folds);
		status = score_residuals(tr, d, best, is_time, c.predicted, out, err);
	}
out:
	split_free(split);
	free(c.predicted);
	return status;
}
