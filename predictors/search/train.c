/* Training: from a table to a model bundle. Read train_bounds.c and train_groups.c next. */
#include "predictors/search/train_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/stats.h"
#include "predictors/data/groups.h"
#include "predictors/search/doubt.h"
#include "queueing/calibrate.h"

#define MAX_OFFERED 64 /* values of the decision that a what-if tries */

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

static void on_search_progress(void *owner, size_t done, size_t total)
{
	struct training *tr = owner;

	if (tr->p->on_progress)
		tr->p->on_progress(tr->p->owner, tr->stage, done, total);
}

void train_release_rows(struct target_rows *r)
{
	dataset_free(r->d);
	free(r->first);
	free(r->copies);
	free(r->replication);
	free(r->at);
	free(r->doubted);
}

/* v[row[0]], v[row[1]], ..., to be freed; NULL if v is. */
static int pick(const uint32_t *v, const uint32_t *row, size_t n, uint32_t **out, struct err *err)
{
	*out = v ? mem_array(n, sizeof **out) : NULL;
	if (v && !*out)
		return err_nomem(err, "%zu rows", n);
	for (size_t i = 0; v && i < n; i++)
		(*out)[i] = v[row[i]];
	return 0;
}

static int pick_rows(const struct target_rows *rows, const uint32_t *row, size_t n, struct target_rows *out,
		     struct err *err)
{
	int status = dataset_subset(rows->d, row, n, &out->d, err);

	if (!status)
		status = pick(rows->first, row, n, &out->first, err);
	if (!status)
		status = pick(rows->copies, row, n, &out->copies, err);
	if (!status)
		status = pick(rows->replication, row, n, &out->replication, err);
	if (!status)
		status = pick(rows->at, row, n, &out->at, err);
	if (status || !rows->doubted)
		return status;
	out->doubted = mem_array(n, 1);
	if (!out->doubted)
		return err_nomem(err, "%zu rows", n);
	for (size_t i = 0; i < n; i++)
		out->doubted[i] = rows->doubted[row[i]];
	return 0;
}

int train_thin_rows(const struct target_rows *rows, size_t n, uint64_t seed, struct target_rows *out,
		    struct err *err)
{
	uint32_t *row = mem_array(rows->d->n_rows, sizeof *row);
	struct rng rng = rng_stream(seed, UINT64_MAX - 4);
	int status;

	*out = (struct target_rows){ .by_groups = rows->by_groups };
	if (!row)
		return err_nomem(err, "%zu rows", rows->d->n_rows);
	for (size_t i = 0; i < rows->d->n_rows; i++)
		row[i] = (uint32_t)i;
	rng_shuffle(&rng, row, rows->d->n_rows);
	status = pick_rows(rows, row, n, out, err);
	free(row);
	return status;
}

/* The rows that have the target. */
static int target_data(const struct training *tr, const double *target, struct target_rows *out,
		       struct err *err)
{
	size_t n_features = tr->model->features->n, n = 0;
	struct dataset all = { .n_rows = tr->p->table->n_rows,
			       .n_features = n_features,
			       .x = tr->x,
			       .y = (double *)target,
			       .group = tr->group,
			       .seen = tr->seen,
			       .name = tr->meaning.name,
			       .factor = tr->meaning.factor,
			       .role = tr->meaning.role,
			       .column = tr->meaning.column };
	uint32_t *row = mem_array(all.n_rows, sizeof *row);
	int status;

	*out = (struct target_rows){ .by_groups = tr->p->n_groups > 0 };
	if (!row)
		return err_nomem(err, "%zu rows", all.n_rows);
	for (size_t i = 0; i < all.n_rows; i++)
		if (!isnan(target[i]))
			row[n++] = (uint32_t)i;
	status = dataset_subset(&all, row, n, &out->d, err);
	if (!status)
		status = pick(tr->first, row, n, &out->first, err);
	if (!status)
		status = pick(tr->copies, row, n, &out->copies, err);
	if (!status)
		status = pick(tr->replication, row, n, &out->replication, err);
	if (!status)
		out->at = row;
	else
		free(row);
	return status;
}

static size_t count_mixed(const struct table *t)
{
	size_t n = 0;

	for (size_t i = 0; t->beside && i < t->n_rows; i++)
		n += t->mixed_time[i] > 0.0;
	return n;
}

/* ---- times that look wrong ---- */

static int list_doubted(struct training *tr, const struct target_rows *rows, size_t n, struct err *err)
{
	const struct table *t = tr->p->table;
	struct train_report *r = tr->report;

	r->doubted = mem_array(n, sizeof *r->doubted);
	if (!r->doubted)
		return err_nomem(err, "%zu rows", n);
	for (size_t i = 0; i < rows->d->n_rows; i++)
		if (rows->doubted[i])
			r->doubted[r->n_doubted++] =
				(struct train_doubt){ .line = t->csv ? t->csv->line[t->row[rows->at[i]]]
								     : rows->at[i] + 1,
						      .why = rows->doubted[i] };
	return 0;
}

/* Marks the rows whose times look wrong; out: the others, or an empty one if all are believed. */
static int doubt_rows(struct training *tr, struct target_rows *rows, struct target_rows *out, struct err *err)
{
	const char *stage = tr->stage;
	uint32_t *row = NULL;
	size_t n_doubted = 0, n = 0;
	int status;

	*out = (struct target_rows){ .by_groups = rows->by_groups };
	rows->doubted = mem_array(rows->d->n_rows, 1);
	if (!rows->doubted)
		return err_nomem(err, "%zu rows", rows->d->n_rows);
	tr->stage = "rows that look wrong";
	on_search_progress(tr, 0, 1); /* it fits models of its own, which may take long */
	status = doubt_find(rows->d, &tr->p->ctx, rows->doubted, &n_doubted, err);
	tr->stage = stage;
	if (!status && n_doubted) {
		row = mem_array(rows->d->n_rows, sizeof *row);
		status = row ? list_doubted(tr, rows, n_doubted, err) : err_nomem(err, "%zu rows", n);
		for (size_t i = 0; !status && i < rows->d->n_rows; i++)
			if (!rows->doubted[i])
				row[n++] = (uint32_t)i;
		if (!status)
			status = pick_rows(rows, row, n, out, err);
	} else {
		free(rows->doubted);
		rows->doubted = NULL;
	}
	free(row);
	return status;
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
	case SPLIT_INTERPOLATE:
		used = snprintf(out, size, "interpolating %s", tr->meaning.name[s->feature]);
		break;
	case SPLIT_EXTRAPOLATE:
		used = snprintf(out, size, "extrapolating %s", tr->meaning.name[s->feature]);
		break;
	}
	for (size_t k = 0; k < p->n_groups && used > 0 && (size_t)used < size; k++)
		used += snprintf(out + used, size - (size_t)used, "%s%s", k ? "," : ", grouped by ",
				 p->group[k]);
	if (tr->group && !p->run && !p->n_groups && used > 0 && (size_t)used < size)
		snprintf(out + used, size - (size_t)used, ", grouped by setting");
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

/* ---- one target ---- */

/* The error that the search went by, for people: squares as their root, of logarithms as a share. */
static void error_text(const struct search_result *r, enum search_by by, char *out, size_t size)
{
	double e = search_measure(r, by);

	if (by == SEARCH_BY_LOG && isfinite(r->score.mean.log_mse))
		snprintf(out, size, "%.3g %%", 100.0 * expm1(sqrt(e)));
	else if (by == SEARCH_BY_MAPE && isfinite(r->score.mean.mape))
		snprintf(out, size, "%.3g %%", 100.0 * e);
	else if (by == SEARCH_BY_MAE || by == SEARCH_BY_R2)
		snprintf(out, size, "%.3g", e);
	else
		snprintf(out, size, "%.3g", sqrt(e));
}

/* R2 over the rows of all folds. The mean of the folds' own would not do: a fold of two or three rows has
 * hardly a spread of its own, and a good model of a small table looked worse than none. */
static double r2_of_all(const struct dataset *d, const struct score_summary *s)
{
	double mean = 0.0, squares = 0.0;

	if (s->n_folds < 2)
		return s->mean.r2;
	for (size_t i = 0; i < d->n_rows; i++) {
		double e = d->y[i] - mean;

		mean += e / (double)(i + 1);
		squares += e * (d->y[i] - mean);
	}
	return squares > 0.0 ? 1.0 - s->mean.mse * (double)d->n_rows / squares : NAN;
}

/* The last notice is one for all readers. */
static void mark_choice(struct train_report *r)
{
	r->choices |= 1u << (r->n_notices - 1);
}

/* A word if even the best model explains little. */
static void say_little(struct training *tr, const char *what, double r2)
{
	static const char help[] = "more runs, or columns for what makes the jobs differ, would help";

	if (!(r2 < TRAIN_LITTLE_R2))
		return;
	if (r2 < 0.0)
		notice(tr->report,
		       "warning: on rows held out the model of %s is worse than the mean of the table (R2 "
		       "%.2f); do not rely on it; %s",
		       what, r2, help);
	else
		notice(tr->report,
		       "warning: the model of %s explains little of what was measured (R2 %.2f on rows held "
		       "out): expect poor decisions; %s",
		       what, r2, help);
	mark_choice(tr->report);
}

/* Which model the search chose, and why. */
static void say_choice(struct training *tr, const struct grid *grid, const struct search_result *result,
		       size_t best, bool is_time, enum search_by by, const char *scored_by)
{
	const char *what = is_time ? "time" : "accuracy";
	const struct grid_point *chosen = &grid->point[best];
	const struct search_result *next = NULL;
	char settings[96] = "", others[96] = "", error[32], other[32];
	size_t runner_up = 0;

	/* the best of another kind; where all are of one kind, the next best */
	for (int same = 0; same < 2 && !next; same++)
		for (size_t i = 0; i < grid->n; i++) {
			if (result[i].failed || i == best || (!same && grid->point[i].ops == chosen->ops))
				continue;
			if (!next || search_measure(&result[i], by) < search_measure(next, by)) {
				next = &result[i];
				runner_up = i;
			}
		}
	if (!next)
		return;
	settings_describe(&chosen->settings, settings, sizeof settings);
	if (grid->point[runner_up].ops == chosen->ops)
		settings_describe(&grid->point[runner_up].settings, others, sizeof others);
	error_text(&result[best], by, error, sizeof error);
	error_text(next, by, other, sizeof other);
	notice(tr->report,
	       "model of %s: %s%s%s%s has the least error on rows held out (%s): %s; %s%s%s%s has %s", what,
	       chosen->ops->name, settings[0] ? " (" : "", settings, settings[0] ? ")" : "", scored_by, error,
	       grid->point[runner_up].ops->name, others[0] ? " (" : "", others, others[0] ? ")" : "", other);
	mark_choice(tr->report);
}

static int score_grid(struct training *tr, const struct dataset *d, const struct grid *grid, bool is_time,
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
		params.folds = train_possible_folds(params.folds, train_count_groups(search.data));
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
		enum search_by by = tr->p->select ? *tr->p->select : is_time ? SEARCH_BY_LOG : SEARCH_BY_MSE;
		double r2;

		*(is_time ? &tr->report->time_by : &tr->report->accuracy_by) = by;
		*out_best = search_best(*out_result, grid->n, by);
		if (*out_best ==
		    SIZE_MAX) { /* all of them are unstable somewhere: still what was asked for */
			*out_best = 0;
			notice(tr->report, "%s; the scores count only the rows with an answer",
			       (*out_result)[0].why);
		}
		out->score = (*out_result)[*out_best].score;
		r2 = r2_of_all(search.data, &out->score);
		if (is_time)
			tr->report->time_r2 = r2;
		say_little(tr, is_time ? "time" : "accuracy", r2);
		say_choice(tr, grid, *out_result, *out_best, is_time, by, out->scored_by);
	}
	split_free(split);
	dataset_free(part);
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

/* Rows of one run, stopped after different epochs, are one. */
static size_t count_runs(const struct target_rows *rows)
{
	const struct dataset of_runs = { .n_rows = rows->d->n_rows, .group = rows->first };

	return train_count_groups(&of_runs);
}

/* Fits the point that was chosen to all rows, and finds its bounds. */
static int fit_target(const struct bounds_job *b, struct err *err)
{
	struct training *tr = b->tr;
	struct train_report *r = tr->report;
	const struct grid_point *point = b->best;
	const struct dataset *d = b->believed;
	struct model_target *out = b->out;
	struct fit_context ctx = tr->p->ctx;
	const char *what = b->is_time ? "time" : "accuracy";
	int status;

	tr->stage = b->is_time ? "fit of time" : "fit of accuracy";
	on_search_progress(tr, 0, 1);
	ctx.want_oob = !d->group;
	status = predictor_fit(point->ops, &point->settings, d, &ctx, &out->predictor, err);
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
	on_search_progress(tr, 1, 1);
	tr->stage = b->is_time ? "bounds of time" : "noise of accuracy";
	on_search_progress(tr, 0, 1);
	if (!status)
		status = train_find_bounds(b, err);
	if (!status && strstr(out->residuals_by, "assumed"))
		notice(r,
		       "few settings were measured: bounds of time are wide, because how far off it is was "
		       "assumed in part");
	else if (!status && b->is_time && out->conformal.groups < conformal_least(0.9))
		notice(r, "%zu independent residuals of %s cannot carry a 90 %% bound; %zu are needed",
		       out->conformal.groups, what, conformal_least(0.9));
	return status;
}

static int train_target(struct training *tr, const double *target, const struct grid *grid, bool is_time,
			struct model_target *out, struct err *err)
{
	struct train_report *r = tr->report;
	struct grid **report_grid = is_time ? &r->time_grid : &r->accuracy_grid;
	struct search_result **result = is_time ? &r->time_result : &r->accuracy_result;
	size_t *best = is_time ? &r->time_best : &r->accuracy_best;
	const char *what = is_time ? "time" : "accuracy";
	struct target_rows rows, believed = { 0 };
	bool can_hold_out;
	int status = target_data(tr, target, &rows, err);
	const struct dataset *d = rows.d;

	tr->stage = is_time ? "time models" : "accuracy models";
	if (!status && d->n_rows == 0)
		status = err_fail(err, ERR_NODATA, "%s: no row has a %s", tr->p->data_name, what);
	if (!status)
		status = copy_grid(grid, report_grid, err);
	if (status)
		goto out;
	if (d->n_rows + (is_time ? count_mixed(tr->p->table) : 0) < tr->p->table->n_rows)
		notice(r, "%zu of %zu rows have no %s: the model of %s learns from the others",
		       tr->p->table->n_rows - d->n_rows, tr->p->table->n_rows, what, what);
	if (is_time && count_mixed(tr->p->table))
		notice(r,
		       "%zu runs beside jobs of another kind: the model of time does not learn from them; "
		       "they "
		       "tell what such neighbours do",
		       count_mixed(tr->p->table));
	if (is_time && !tr->p->believe_all)
		status = doubt_rows(tr, &rows, &believed, err);
	if (status)
		goto out;
	if (believed.d)
		d = believed.d;
	can_hold_out = train_count_groups(d) >= 2;
	if (can_hold_out) {
		status = score_grid(tr, d, grid, is_time, out, result, best, err);
	} else {
		notice(r, "one row (or group) cannot be split: the model of %s has no scores", what);
		*best = 0;
		*result = mem_calloc(grid->n, sizeof **result);
		if (!*result)
			status = err_nomem(err, "%zu results", grid->n);
	}
	if (!status) {
		out->n_rows = count_runs(believed.d ? &believed : &rows);
		status = fit_target(&(struct bounds_job){ tr, &rows, d, &grid->point[*best], is_time, out },
				    err);
	}
out:
	train_release_rows(&rows);
	train_release_rows(&believed);
	return status;
}

/* ---- the bundle ---- */

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
	size_t n_runs;
	int status = schema_clone(p->table->schema, &m->schema, err);

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
	status = features_meaning(m->features, &tr->meaning, err);
	if (!status)
		status = features_encode_table(m->features, p->table, &tr->x, err);
	if (!status && p->n_groups)
		status = train_label_groups(p, &tr->group, err);
	else if (!status)
		status = train_label_settings(&(struct dataset){ .n_rows = p->table->n_rows,
								 .n_features = m->features->n,
								 .x = tr->x,
								 .factor = tr->meaning.factor,
								 .role = tr->meaning.role,
								 .column = tr->meaning.column },
					      &tr->group, err);
	if (!status)
		status = groups_runs(p->table, &tr->copies, &n_runs, err);
	if (!status)
		status = table_seen(p->table, &tr->seen, err);
	if (!status)
		status = train_label_replications(p->table, &tr->replication, err);
	if (!status && p->run)
		status = train_first_of_runs(p, &tr->first, err);
	if (!status && p->run)
		status = train_join_runs(tr->first, p->table->n_rows, &tr->group, err);
	if (!status && p->run && !p->n_groups &&
	    train_count_groups(&(struct dataset){ .n_rows = p->table->n_rows, .group = tr->group }) < 2)
		memcpy(tr->group, tr->first, p->table->n_rows * sizeof *tr->group); /* runs of one setting */
	if (!status)
		status = offer_candidates(tr, err);
	return status;
}

/* A table in which no run had other work beside it makes the model that a table without the column makes. */
static int forget_other(struct training *tr, struct err *err)
{
	int at = schema_role(tr->p->table->schema, ROLE_OTHER);

	return features_forget_other(tr->model->features, tr->model->schema,
				     at >= 0 && tr->p->table->column[at].present, err);
}

static void training_release(struct training *tr)
{
	free(tr->x);
	free(tr->group);
	free(tr->seen);
	free(tr->replication);
	free(tr->copies);
	free(tr->first);
	feature_meaning_release(&tr->meaning);
}

int train_model(const struct train_params *p, struct model **out, struct train_report *report,
		struct err *err)
{
	struct train_params with_memo = *p;
	struct training tr = { .p = &with_memo, .report = report, .model = mem_calloc(1, sizeof *tr.model) };
	const struct table *t = p->table;
	bool any_accuracy = false;
	int status;

	*report = (struct train_report){ .time_r2 = NAN };
	if (!tr.model)
		return err_nomem(err, "a model");
	if (!t->time || t->n_rows == 0) {
		model_free(tr.model);
		return err_fail(err, ERR_NODATA, "%s: no row to learn from", p->data_name);
	}
	status = calibrate_memo_new(&with_memo.ctx.memo, err);
	if (!status)
		status = begin_training(&tr, err);
	if (!status)
		status = train_target(&tr, t->time, p->grid, true, &tr.model->time, err);
	for (size_t i = 0; t->accuracy && i < t->n_rows; i++)
		any_accuracy |= !isnan(t->accuracy[i]);
	if (!status && any_accuracy)
		status = train_target(&tr, t->accuracy, p->accuracy_grid, false, &tr.model->accuracy, err);
	if (!status)
		status = train_mixed(&tr, err);
	if (!status)
		status = forget_other(&tr, err);
	training_release(&tr);
	calibrate_memo_free(with_memo.ctx.memo);
	if (status) {
		model_free(tr.model);
		train_report_release(report);
		return status;
	}
	*out = tr.model;
	return 0;
}

static int choose_target(struct training *tr, const double *target, const struct grid *grid, bool is_time,
			 struct grid_point *out, struct err *err)
{
	struct target_rows rows;
	struct model_target unused = { 0 };
	struct search_result *result = NULL;
	size_t best = 0;
	int status = target_data(tr, target, &rows, err);

	if (!status && rows.d->n_rows && train_count_groups(rows.d) >= 2) {
		status = score_grid(tr, rows.d, grid, is_time, &unused, &result, &best, err);
		if (!status)
			*out = grid->point[best];
	}
	free(result);
	train_release_rows(&rows);
	return status;
}

int train_choose(const struct train_params *p, struct grid_point *time, struct grid_point *accuracy,
		 struct err *err)
{
	struct train_report report = { 0 };
	struct training tr = { .p = p, .report = &report, .model = mem_calloc(1, sizeof *tr.model) };
	int status = tr.model ? begin_training(&tr, err) : err_nomem(err, "a model");

	if (!status && p->table->time)
		status = choose_target(&tr, p->table->time, p->grid, true, time, err);
	if (!status && p->table->accuracy)
		status = choose_target(&tr, p->table->accuracy, p->accuracy_grid, false, accuracy, err);
	training_release(&tr);
	model_free(tr.model);
	train_report_release(&report);
	return status;
}

void train_report_release(struct train_report *r)
{
	grid_free(r->time_grid);
	grid_free(r->accuracy_grid);
	free(r->doubted);
	free(r->time_result);
	free(r->accuracy_result);
	*r = (struct train_report){ 0 };
}
