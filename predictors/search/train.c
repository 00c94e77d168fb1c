#define _GNU_SOURCE
#include "predictors/search/train.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/models/widening.h"

#define MAX_OFFERED 64 /* values of the decision a what-if tries; decide.h has as much room */
#define PERMUTATIONS 5 /* shuffles of each column and fold */

static void notice(struct train_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void notice(struct train_report *r, const char *fmt, ...)
{
	size_t room = sizeof r->notice / sizeof *r->notice;
	va_list ap;

	if (r->n_notices == room)
		return;
	va_start(ap, fmt);
	vsnprintf(r->notice[r->n_notices++], sizeof *r->notice, fmt, ap);
	va_end(ap);
}

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
static int label_groups(const struct train_params *p, uint32_t **out, struct err *err)
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
static int first_of_runs(const struct train_params *p, uint32_t **out, struct err *err)
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
static int join_runs(const uint32_t *first, size_t n, uint32_t **group, struct err *err)
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

/* ---- what every target shares ---- */

struct training {
	const struct train_params *p;
	struct train_report *report;
	struct model *model;
	double *x; /* the whole table as features */
	uint32_t *group; /* NULL without --group and runs */
	uint32_t *first; /* per row of the table: the first of its run; NULL: each is its own */
	const char **name; /* of the features */
	uint8_t *factor, *role;
	const char *stage; /* what progress is about */
};

static void on_search_progress(void *owner, size_t done, size_t total)
{
	struct training *tr = owner;

	if (tr->p->on_progress)
		tr->p->on_progress(tr->p->owner, tr->stage, done, total);
}

/* The rows that have the target, and (to be freed) the first row of the run of each, NULL without runs. */
static int target_data(const struct training *tr, const double *target, struct dataset **out,
		       uint32_t **out_first, struct err *err)
{
	size_t n_features = tr->model->features->n, n = 0;
	struct dataset all = { .n_rows = tr->p->table->n_rows,
			       .n_features = n_features,
			       .x = tr->x,
			       .y = (double *)target,
			       .group = tr->group,
			       .name = tr->name,
			       .factor = tr->factor,
			       .role = tr->role };
	uint32_t *row = mem_array(all.n_rows, sizeof *row);
	int status;

	if (!row)
		return err_nomem(err, "%zu rows", all.n_rows);
	for (size_t i = 0; i < all.n_rows; i++)
		if (!isnan(target[i]))
			row[n++] = (uint32_t)i;
	status = dataset_subset(&all, row, n, out, err);
	for (size_t i = 0; !status && tr->first && i < n; i++)
		row[i] = tr->first[row[i]];
	*out_first = tr->first ? row : NULL;
	if (!tr->first)
		free(row);
	return status;
}

static size_t count_groups(const struct dataset *d)
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

static void describe_split(const struct training *tr, const struct split_params *s, size_t n_folds, char *out,
			   size_t size)
{
	const struct train_params *p = tr->p;
	int used = 0;

	switch (s->kind) {
	case SPLIT_KFOLD: used = snprintf(out, size, "%zu-fold", n_folds); break;
	case SPLIT_HOLDOUT:
		used = snprintf(out, size, "%zu x %.0f %% held out", n_folds, 100 * s->share);
		break;
	case SPLIT_LEAVE_GROUP: used = snprintf(out, size, "leave one group out"); break;
	case SPLIT_INTERPOLATE: used = snprintf(out, size, "interpolating %s", tr->name[s->feature]); break;
	case SPLIT_EXTRAPOLATE: used = snprintf(out, size, "extrapolating %s", tr->name[s->feature]); break;
	}
	for (size_t k = 0; k < p->n_groups && used > 0 && (size_t)used < size; k++)
		used += snprintf(out + used, size - (size_t)used, "%s%s", k ? "," : ", grouped by ",
				 p->group[k]);
	if (p->run && !p->n_groups && used > 0 && (size_t)used < size)
		snprintf(out + used, size - (size_t)used, ", grouped by run");
}

/* A table drawn from d: the search of a large table looks at a part of it. */
static int thin(const struct dataset *d, size_t rows, uint64_t seed, struct dataset **out, struct err *err)
{
	uint32_t *row = mem_array(d->n_rows, sizeof *row);
	struct rng rng = rng_stream(seed, UINT64_MAX - 1);
	int status;

	if (!row)
		return err_nomem(err, "%zu rows", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		row[i] = (uint32_t)i;
	rng_shuffle(&rng, row, d->n_rows);
	status = dataset_subset(d, row, rows, out, err);
	free(row);
	return status;
}

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

/* ---- one target ---- */

/* Five parts by default; fewer groups than parts make fewer parts. 0: nothing can be held out. */
static size_t possible_folds(size_t asked, size_t groups)
{
	size_t folds = asked < groups ? asked : groups;

	return folds < 2 ? 0 : folds;
}

static int score_grid(struct training *tr, const struct dataset *d, const struct grid *grid,
		      struct model_target *out, struct search_result **out_result, size_t *out_best,
		      struct err *err)
{
	struct search_params search = {
		.grid = grid, .ctx = tr->p->ctx, .on_progress = on_search_progress, .owner = tr
	};
	struct split_params params = tr->p->split;
	struct dataset *part = NULL;
	struct split *split = NULL;
	int status = 0;

	search.data = d;
	search.ctx.want_oob = false;
	if (tr->p->search_rows && grid->n > 1 && d->n_rows > tr->p->search_rows) {
		status = thin(d, tr->p->search_rows, tr->p->ctx.seed, &part, err);
		search.data = part;
		notice(tr->report,
		       "the search for the best settings looked at %zu of %zu rows, drawn at random; the "
		       "chosen model is fitted to all",
		       tr->p->search_rows, d->n_rows);
	}
	if (!status && params.kind == SPLIT_KFOLD)
		params.folds = possible_folds(params.folds, count_groups(search.data));
	if (!status)
		status = split_make(search.data, &params, &split, err);
	if (!status) {
		search.split = split;
		if ((params.kind == SPLIT_KFOLD || params.kind == SPLIT_HOLDOUT) && !tr->report->leaks)
			tr->report->leaks = split_leaks(search.data, split);
		describe_split(tr, &params, split->n_folds, out->scored_by, sizeof out->scored_by);
		status = search_run(&search, out_result, err);
	}
	if (!status) {
		*out_best = search_best(*out_result, grid->n);
		if (*out_best ==
		    SIZE_MAX) { /* all of them are unstable somewhere: still what was asked for */
			*out_best = 0;
			notice(tr->report, "%s; the scores are of the rows that got an answer",
			       (*out_result)[0].why);
		}
		out->score = (*out_result)[*out_best].score;
	}
	split_free(split);
	dataset_free(part);
	return status;
}

enum keep {
	KEEP_ANY, /* a row drawn at random: residuals that are as large as those of all rows */
	KEEP_LATEST, /* the one that takes longest beyond its prediction: a bound that holds for it holds for all */
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
static int find_bounds(struct training *tr, const struct dataset *d, const uint32_t *first,
		       const struct grid_point *best, bool is_time, struct model_target *out, struct err *err)
{
	size_t asked = d->n_rows <= 2000 ? 10 : d->n_rows <= 50000 ? 5 : 2;
	struct split_params params = { .kind = SPLIT_KFOLD,
				       .folds = possible_folds(asked, count_groups(d)),
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

static int copy_grid(const struct grid *g, struct grid **out, struct err *err)
{
	struct grid *copy = mem_calloc(1, sizeof *copy);

	if (copy)
		copy->point = mem_array(g->n, sizeof *copy->point);
	if (!copy || !copy->point) {
		grid_free(copy);
		return err_nomem(err, "a grid of %zu settings", g->n);
	}
	memcpy(copy->point, g->point, g->n * sizeof *copy->point);
	copy->n = g->n;
	*out = copy;
	return 0;
}

static int train_target(struct training *tr, const double *target, const struct grid *grid, bool is_time,
			struct model_target *out, struct err *err)
{
	struct train_report *r = tr->report;
	struct grid **report_grid = is_time ? &r->time_grid : &r->accuracy_grid;
	struct search_result **result = is_time ? &r->time_result : &r->accuracy_result;
	size_t *best = is_time ? &r->time_best : &r->accuracy_best;
	const char *what = is_time ? "time" : "accuracy";
	struct dataset *d = NULL;
	uint32_t *first = NULL;
	bool can_hold_out;
	int status = target_data(tr, target, &d, &first, err);

	tr->stage = is_time ? "time models" : "accuracy models";
	if (!status && d->n_rows == 0)
		status = err_fail(err, ERR_NODATA, "%s: no row has a %s", tr->p->data_name, what);
	if (!status)
		status = copy_grid(grid, report_grid, err);
	if (status)
		goto out;
	if (d->n_rows < tr->p->table->n_rows)
		notice(r, "%zu of %zu rows have no %s: the model of %s learns from the others",
		       tr->p->table->n_rows - d->n_rows, tr->p->table->n_rows, what, what);
	can_hold_out = count_groups(d) >= 2;
	if (can_hold_out) {
		status = score_grid(tr, d, grid, out, result, best, err);
	} else {
		notice(r, "one row (or group) cannot be split: the model of %s has no scores and no bounds",
		       what);
		*best = 0;
		*result = mem_calloc(grid->n, sizeof **result);
		if (!*result)
			status = err_nomem(err, "%zu results", grid->n);
	}
	if (!status) {
		const struct grid_point *point = &grid->point[*best];
		struct fit_context ctx = tr->p->ctx;

		ctx.want_oob = !d->group;
		status = predictor_fit(point->ops, &point->settings, d, &ctx, &out->predictor, err);
		out->n_rows = d->n_rows;
		if (!status && point->ops->remark) {
			char remark[sizeof *r->notice - 32] = "";

			point->ops->remark(out->predictor.self, d, remark, sizeof remark);
			if (remark[0])
				notice(r, "model of %s: %s", what, remark);
		}
		if (!status && point->ops->importances) {
			out->importance = mem_calloc(d->n_features, sizeof *out->importance);
			if (out->importance)
				point->ops->importances(out->predictor.self, out->importance);
			else
				status = err_nomem(err, "%zu importances", d->n_features);
		}
		if (!status && can_hold_out)
			status = find_bounds(tr, d, first, point, is_time, out, err);
	}
	if (!status && can_hold_out && out->conformal.n < conformal_needed(0.9))
		notice(r, "%zu residuals of %s cannot carry a 90 %% bound; %zu are needed", out->conformal.n,
		       what, conformal_needed(0.9));
out:
	dataset_free(d);
	free(first);
	return status;
}

/* ---- the bundle ---- */

static int clone_schema(const struct schema *s, struct schema **out, struct err *err)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *v = NULL;
	int status;

	json_begin(&w, &text, false);
	schema_to_json(s, &w);
	status = text.failed ? err_nomem(err, "a schema")
			     : json_parse("schema", strbuf_text(&text), text.len, &v, err);
	if (!status)
		status = schema_from_json("schema", v, out, err);
	json_free(v);
	strbuf_release(&text);
	return status;
}

/* The schema's candidates, or every value the decision took in training. */
static int offer_candidates(struct training *tr, struct err *err)
{
	const struct schema *s = tr->model->schema;
	const struct table *t = tr->p->table;
	int at = schema_find(s, s->decision);
	const double *seen = at >= 0 && t->column[at].present ? t->column[at].number : NULL;
	size_t n = s->n_candidates ? s->n_candidates : t->n_rows, kept = 0;
	double *v = mem_array(n, sizeof *v);

	if (!v)
		return err_nomem(err, "the candidates");
	for (size_t i = 0; i < n; i++) {
		double c = s->n_candidates ? s->candidate[i] : seen ? seen[i] : NAN;
		if (!isnan(c))
			v[kept++] = c;
	}
	stats_sort(v, kept);
	n = kept;
	kept = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || v[i] != v[kept - 1])
			v[kept++] = v[i];
	if (kept > MAX_OFFERED) {
		notice(tr->report,
		       "%s took %zu values: a what-if tries %d of them, evenly spread; the schema's "
		       "\"candidates\" can name others",
		       s->decision, kept, MAX_OFFERED);
		for (size_t i = 0; i < MAX_OFFERED; i++)
			v[i] = v[i * (kept - 1) / (MAX_OFFERED - 1)];
		kept = MAX_OFFERED;
	}
	if (kept == 0) {
		free(v);
		return err_fail(err, ERR_NODATA, "%s: the decision column '%s' has no value",
				tr->p->data_name, s->decision);
	}
	tr->model->candidate = v;
	tr->model->n_candidates = kept;
	return 0;
}

static int begin_training(struct training *tr, struct err *err)
{
	const struct train_params *p = tr->p;
	struct model *m = tr->model;
	int status = clone_schema(p->table->schema, &m->schema, err);

	if (!status)
		status = features_fit(p->table, &m->features, err);
	if (status)
		return status;
	m->features->schema = m->schema; /* equal to the table's, and lives as long as the model */
	m->seed = p->ctx.seed;
	m->data_fingerprint = p->table->fingerprint;
	m->data_rows = p->table->n_rows;
	snprintf(m->data_name, sizeof m->data_name, "%s", p->data_name ? p->data_name : "");
	snprintf(m->created, sizeof m->created, "%s", p->created ? p->created : "");
	snprintf(m->program, sizeof m->program, "%s", p->program ? p->program : "");
	tr->name = mem_array(m->features->n, sizeof *tr->name);
	tr->factor = mem_array(m->features->n, sizeof *tr->factor);
	tr->role = mem_calloc(m->features->n, sizeof *tr->role);
	if (!tr->name || !tr->factor || !tr->role)
		return err_nomem(err, "%zu features", m->features->n);
	for (size_t f = 0; f < m->features->n; f++) {
		tr->name[f] = m->features->feature[f].name;
		tr->factor[f] = m->features->feature[f].source < m->schema->n_columns;
		if (feature_is_category(&m->features->feature[f]))
			tr->role[f] = ROLE_CATEGORY;
		for (int r = 1; r < N_ROLES && !tr->role[f]; r++)
			if (schema_role(m->schema, (enum feature_role)r) ==
			    (int)m->features->feature[f].source)
				tr->role[f] = (uint8_t)r;
	}
	status = features_encode_table(m->features, p->table, &tr->x, err);
	if (!status && p->n_groups)
		status = label_groups(p, &tr->group, err);
	if (!status && p->run)
		status = first_of_runs(p, &tr->first, err);
	if (!status && p->run)
		status = join_runs(tr->first, p->table->n_rows, &tr->group, err);
	if (!status)
		status = offer_candidates(tr, err);
	return status;
}

int train_model(const struct train_params *p, struct model **out, struct train_report *report,
		struct err *err)
{
	struct training tr = { .p = p, .report = report, .model = mem_calloc(1, sizeof *tr.model) };
	const struct table *t = p->table;
	bool any_accuracy = false;
	int status;

	*report = (struct train_report){ 0 };
	if (!tr.model)
		return err_nomem(err, "a model");
	if (!t->time || t->n_rows == 0) {
		model_free(tr.model);
		return err_fail(err, ERR_NODATA, "%s: no row to learn from", p->data_name);
	}
	status = begin_training(&tr, err);
	if (!status)
		status = train_target(&tr, t->time, p->grid, true, &tr.model->time, err);
	for (size_t i = 0; t->accuracy && i < t->n_rows; i++)
		any_accuracy |= !isnan(t->accuracy[i]);
	if (!status && any_accuracy)
		status = train_target(&tr, t->accuracy, p->accuracy_grid, false, &tr.model->accuracy, err);
	free(tr.x);
	free(tr.group);
	free(tr.first);
	free(tr.name);
	free(tr.factor);
	free(tr.role);
	if (status) {
		model_free(tr.model);
		train_report_release(report);
		return status;
	}
	*out = tr.model;
	return 0;
}

void train_report_release(struct train_report *r)
{
	grid_free(r->time_grid);
	grid_free(r->accuracy_grid);
	free(r->time_result);
	free(r->accuracy_result);
	*r = (struct train_report){ 0 };
}
