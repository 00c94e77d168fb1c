/* Runs a campaign: cuts it into units, spreads them over threads, and chooses. See automl.h. */
#include "automl/automl.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "automl/journal.h"
#include "automl/select.h"

const char *const automl_set_name[] = { "training", "hp_selection", "validation" };

#define CURVE_HELD 0.2 /* of the rows test the learning curve */

/* ---- units ---- */

struct experiment automl_experiment(const struct automl *a, size_t unit)
{
	size_t fold = unit / a->n_points;
	struct experiment e = { .point = unit % a->n_points,
				.fold = { .hp = fold % a->n_hp,
					  .validation = fold / a->n_hp % a->n_validation,
					  .run = fold / a->n_hp / a->n_validation } };

	while (e.point >= a->c->plan[e.technique].n_points)
		e.point -= a->c->plan[e.technique++].n_points;
	return e;
}

/* Of a fold (automl_fold()), whatever its hp fold. */
static struct fold fold_at(const struct automl *a, size_t fold)
{
	return (struct fold){ .run = fold / a->n_validation, .validation = fold % a->n_validation };
}

static size_t first_point(const struct automl *a, size_t technique)
{
	size_t n = 0;

	for (size_t t = 0; t < technique; t++)
		n += a->c->plan[t].n_points;
	return n;
}

static const struct outcome *experiment_at(const struct automl *a, size_t fold, size_t hp_fold,
					   size_t technique, size_t point)
{
	size_t unit = (fold * a->n_hp + hp_fold) * a->n_points + first_point(a, technique) + point;

	return &a->outcome[STAGE_EXPERIMENT][unit];
}

/* Why no point of a technique could be chosen: the first reason in the folds from..to. */
static const char *why_no_point(const struct automl *a, size_t from, size_t to, size_t technique)
{
	for (size_t fold = from; fold < to; fold++)
		for (size_t h = 0; h < a->n_hp; h++)
			for (size_t g = 0; g < a->c->plan[technique].n_points; g++) {
				const struct outcome *o = experiment_at(a, fold, h, technique, g);

				if (o->failed)
					return o->why;
			}
	return "no MAPE is a finite number";
}

/* Fits of the same rows have the same seed, so that equal settings give equal results. */
uint64_t automl_seed(const struct automl *a, size_t fold, size_t hp_fold)
{
	return rng_mix(a->c->seed + 0x9e3779b97f4a7c15ULL * (fold * 4096 + hp_fold + 1));
}

static struct feature_list features_of_fold(const struct automl *a, size_t fold)
{
	if (a->c->selection == SELECT_XGBOOST && !a->outcome[STAGE_FEATURES][fold].failed)
		return a->outcome[STAGE_FEATURES][fold].features;
	return (struct feature_list){ .column = a->p->x, .n = a->p->n_x };
}

static int unit_features(const struct automl *a, size_t fold, struct fold_keeper *keeper, struct outcome *o,
			 struct err *err)
{
	const struct fold_rows *rows;
	bool all = fold == a->c->runs * a->n_validation; /* for the final models */
	int rc;

	if (all)
		return select_by_weight(a->c, a->p, &a->p->all, automl_seed(a, fold, 0), &o->features, err);
	rc = fold_keeper_rows(keeper, a->c, a->p, fold_at(a, fold), &rows, err);
	return rc ? rc
		  : select_by_weight(a->c, a->p, &rows->both, automl_seed(a, fold, 0), &o->features, err);
}

static int need_features(const struct automl *a, size_t fold, struct err *err)
{
	const struct outcome *f = a->c->selection == SELECT_XGBOOST ? &a->outcome[STAGE_FEATURES][fold]
								    : NULL;

	return f && f->failed ? err_fail(err, ERR_NODATA, "feature selection: %.150s", f->why) : 0;
}

/* Where the searches of a unit are kept while they run. */
struct place {
	struct journal *journal;
	enum automl_stage stage;
	size_t unit;
};

static int save_trials(void *owner, const double *loss, size_t n, struct err *err)
{
	const struct place *at = owner;

	return journal_add_trials(at->journal, at->stage, at->unit, loss, n, err);
}

static int search_at(const struct automl *a, enum automl_stage stage, size_t unit, struct attempt *try,
		     struct outcome *o, struct err *err)
{
	const struct outcome *before = &a->outcome[stage][unit];
	struct place at = { a->journal, stage, unit };

	try->loss = before->loss;
	try->n_losses = before->n_losses;
	try->save = save_trials;
	try->owner = &at;
	return attempt_search(try, o, err);
}

static int unit_experiment(const struct automl *a, size_t unit, struct fold_keeper *keeper, struct outcome *o,
			   struct err *err)
{
	struct experiment e = automl_experiment(a, unit);
	size_t fold = automl_fold(a, e.fold.run, e.fold.validation);
	const struct fold_rows *rows;
	struct feature_list features;
	struct fitted f = { 0 };
	struct attempt try;
	int rc;

	rc = need_features(a, fold, err);
	if (!rc)
		rc = fold_keeper_rows(keeper, a->c, a->p, e.fold, &rows, err);
	if (rc)
		return rc;
	features = features_of_fold(a, fold);
	try = (struct attempt){ .c = a->c,
				.p = a->p,
				.plan = &a->c->plan[e.technique],
				.point = e.point,
				.rows = &rows->training,
				.features = &features,
				.seed = automl_seed(a, fold, e.fold.hp),
				.bins = &keeper->bins };
	rc = search_at(a, STAGE_EXPERIMENT, unit, &try, o, err);
	if (!rc)
		rc = attempt_fit(&try, o, &f, err);
	if (!rc)
		rc = fitted_score(&f, a->p, &rows->training, &o->score[SET_TRAINING], err);
	if (!rc)
		rc = fitted_score(&f, a->p, &rows->hp_selection, &o->score[SET_HP_SELECTION], err);
	if (!rc)
		rc = fitted_score(&f, a->p, &rows->validation, &o->score[SET_VALIDATION], err);
	fitted_release(&f);
	return rc;
}

static int unit_validation(const struct automl *a, size_t unit, struct fold_keeper *keeper, struct outcome *o,
			   struct err *err)
{
	size_t fold = unit / a->c->n_plans, t = unit % a->c->n_plans;
	const struct chosen *chosen = &a->chosen[unit];
	struct feature_list features = features_of_fold(a, fold);
	const struct fold_rows *rows;
	struct fitted f = { 0 };
	struct attempt try;
	int rc;

	if (chosen->point == SIZE_MAX)
		return err_fail(err, ERR_NODATA, "every point of the grid failed: %.120s",
				why_no_point(a, fold, fold + 1, t));
	rc = fold_keeper_rows(keeper, a->c, a->p, fold_at(a, fold), &rows, err);
	if (rc)
		return rc;
	try = (struct attempt){ .c = a->c,
				.p = a->p,
				.plan = &a->c->plan[t],
				.point = chosen->point,
				.rows = &rows->both,
				.features = &features,
				.seed = automl_seed(a, fold, AUTOML_VALIDATION_FOLD) };
	rc = search_at(a, STAGE_VALIDATION, unit, &try, o, err);
	if (!rc)
		rc = attempt_fit(&try, o, &f, err);
	if (!rc)
		rc = fitted_score(&f, a->p, &rows->both, &o->score[SET_TRAINING], err);
	if (!rc)
		rc = fitted_score(&f, a->p, &rows->validation, &o->score[SET_VALIDATION], err);
	o->score[SET_HP_SELECTION] = chosen->hp;
	fitted_release(&f);
	return rc;
}

/* What the final model of a technique is fitted with. */
static struct attempt final_attempt(const struct automl *a, size_t t, struct feature_list *features)
{
	*features = features_of_fold(a, a->c->runs * a->n_validation);
	return (struct attempt){ .c = a->c,
				 .p = a->p,
				 .plan = &a->c->plan[t],
				 .point = a->final[t].point,
				 .rows = &a->p->all,
				 .features = features,
				 .seed = rng_mix(a->c->seed ^ 0xf17a1) };
}

static int unit_model(const struct automl *a, size_t t, struct fold_keeper *keeper, struct outcome *o,
		      struct err *err)
{
	struct feature_list features;
	struct attempt try = final_attempt(a, t, &features);
	struct fitted f = { 0 };
	int rc = need_features(a, a->c->runs * a->n_validation, err);

	(void)keeper;
	if (!rc && try.point == SIZE_MAX)
		rc = err_fail(err, ERR_NODATA, "every point of the grid failed: %.120s",
			      why_no_point(a, 0, a->c->runs * a->n_validation, t));
	if (!rc)
		rc = search_at(a, STAGE_MODEL, t, &try, o, err);
	if (!rc)
		rc = attempt_fit(&try, o, &f, err);
	if (!rc)
		rc = fitted_score(&f, a->p, try.rows, &o->score[SET_TRAINING], err);
	fitted_release(&f);
	return rc;
}

/* The first so many of the rows that are left when a fifth is held back; the larger numbers contain the
 * smaller. */
static int unit_curve(const struct automl *a, size_t unit, struct fold_keeper *keeper, struct outcome *o,
		      struct err *err)
{
	size_t repeat = unit % CURVE_REPEATS, size = unit / CURVE_REPEATS % CURVE_SIZES;
	size_t t = unit / CURVE_REPEATS / CURVE_SIZES;
	struct rng rng = rng_stream(a->c->seed, 900000 + repeat);
	struct row_list held = { 0 }, rest = { 0 };
	struct feature_list features;
	struct attempt try = final_attempt(a, t, &features);
	struct fitted f = { 0 };
	int rc = a->outcome[STAGE_MODEL][t].failed ? err_fail(err, ERR_NODATA, "there is no model") : 0;

	(void)keeper;
	if (!rc)
		rc = folds_draw(&(struct row_split){ &a->p->all, a->p->group, &held, &rest },
				(size_t)(CURVE_HELD * (double)a->p->all.n), &rng, err);
	if (!rc) {
		rng_shuffle(&rng, rest.row, rest.n);
		rest.n = a->curve_rows[size] < rest.n ? a->curve_rows[size] : rest.n;
		try.rows = &rest;
		rc = attempt_fit(&try, &a->outcome[STAGE_MODEL][t], &f, err);
	}
	if (!rc)
		rc = fitted_score(&f, a->p, &held, &o->score[SET_VALIDATION], err);
	fitted_release(&f);
	free(held.row);
	free(rest.row);
	return rc;
}

/* ---- spreading them ---- */

struct stage_job {
	struct automl *a;
	enum automl_stage stage;
	size_t *unit; /* those that are not done */
	struct fold_keeper *keeper; /* of each worker */
	pthread_mutex_t lock;
	struct err err; /* of the journal */
	int rc;
	size_t total;
};

static void run_unit(void *ctx, size_t i, size_t worker)
{
	static int (*const work[N_STAGES])(
		const struct automl *, size_t, struct fold_keeper *, struct outcome *,
		struct err *) = { unit_features, unit_experiment, unit_validation, unit_model, unit_curve };
	struct stage_job *job = ctx;
	struct outcome o = { 0 };
	struct err why = { 0 }, err = { 0 };
	bool stop, no_result;
	int rc;

	pthread_mutex_lock(&job->lock);
	stop = job->rc != 0;
	pthread_mutex_unlock(&job->lock);
	if (stop)
		return;
	for (size_t s = 0; s < N_SETS; s++)
		o.score[s] = (struct automl_score){ NAN, NAN, NAN };
	rc = work[job->stage](job->a, job->unit[i], &job->keeper[worker], &o, &why);
	o.failed = rc != 0;
	if (rc)
		snprintf(o.why, sizeof o.why, "%.*s", (int)sizeof o.why - 1, why.text);
	/* Running out of memory, or a journal that cannot be written, says nothing about the experiment. */
	no_result = why.code == ERR_NOMEM || why.code == ERR_IO;
	rc = no_result ? -(int)why.code : journal_add(job->a->journal, job->stage, job->unit[i], &o, &err);
	pthread_mutex_lock(&job->lock);
	if (rc && !job->rc) {
		job->rc = rc;
		job->err = no_result ? why : err;
	}
	o.done = !rc;
	free(job->a->outcome[job->stage][job->unit[i]].loss);
	job->a->outcome[job->stage][job->unit[i]] = o;
	job->a->n_done++;
	if (job->a->on_progress)
		job->a->on_progress(job->a->owner, job->a->n_done, job->total);
	pthread_mutex_unlock(&job->lock);
}

static int run_stage(struct automl *a, enum automl_stage stage, struct err *err)
{
	struct stage_job job = { .a = a,
				 .stage = stage,
				 .unit = mem_array(a->n[stage] + 1, sizeof *job.unit),
				 .keeper = mem_calloc(pool_threads(a->pool), sizeof *job.keeper) };
	size_t n = 0;

	if (!job.unit || !job.keeper) {
		free(job.unit);
		free(job.keeper);
		return err_nomem(err, "%zu units", a->n[stage]);
	}
	for (size_t s = 0; s < N_STAGES; s++)
		job.total += a->n[s];
	for (size_t i = 0; i < a->n[stage]; i++) {
		if (a->outcome[stage][i].done)
			a->n_done++;
		else if (stage != STAGE_EXPERIMENT || !a->n_parts || i % a->n_parts == a->part - 1)
			job.unit[n++] = i;
	}
	pthread_mutex_init(&job.lock, NULL);
	pool_run(a->pool, n, run_unit, &job);
	pthread_mutex_destroy(&job.lock);
	for (size_t w = 0; w < pool_threads(a->pool); w++)
		fold_keeper_release(&job.keeper[w]);
	free(job.keeper);
	free(job.unit);
	if (job.rc && err)
		*err = job.err;
	return job.rc;
}

/* ---- choosing ---- */

/* The mean over the hp folds; false if the point failed in one of them. */
static bool point_hp(const struct automl *a, size_t fold, size_t technique, size_t point,
		     struct automl_score *out)
{
	struct automl_score sum = { 0 };
	double n = (double)a->n_hp;

	for (size_t h = 0; h < a->n_hp; h++) {
		const struct outcome *o = experiment_at(a, fold, h, technique, point);
		const struct automl_score *s = &o->score[SET_HP_SELECTION];

		if (o->failed || !isfinite(s->mape))
			return false;
		sum.mape += s->mape / n;
		sum.rmse += s->rmse / n;
		sum.r2 += s->r2 / n;
	}
	*out = sum;
	return true;
}

static void choose(struct automl *a)
{
	size_t folds = a->c->runs * a->n_validation;

	for (size_t t = 0; t < a->c->n_plans; t++) {
		a->final[t] = (struct chosen){ .point = SIZE_MAX, .hp_mape = INFINITY };
		for (size_t f = 0; f < folds; f++)
			a->chosen[f * a->c->n_plans + t] =
				(struct chosen){ .point = SIZE_MAX, .hp_mape = INFINITY };
		for (size_t g = 0; g < a->c->plan[t].n_points; g++) {
			double sum = 0.0;
			bool whole = true;

			for (size_t f = 0; f < folds; f++) {
				struct chosen *c = &a->chosen[f * a->c->n_plans + t];
				struct automl_score s;

				if (!point_hp(a, f, t, g, &s)) {
					whole = false;
					continue;
				}
				sum += s.mape / (double)folds;
				if (s.mape < c->hp_mape)
					*c = (struct chosen){ .point = g, .hp_mape = s.mape, .hp = s };
			}
			if (whole && sum < a->final[t].hp_mape)
				a->final[t] = (struct chosen){ .point = g, .hp_mape = sum };
		}
	}
}

static double run_hp_mape(const struct automl *a, size_t run, size_t t)
{
	double sum = 0.0;

	for (size_t v = 0; v < a->n_validation; v++) {
		size_t at = automl_fold(a, run, v) * a->c->n_plans + t;

		sum += a->outcome[STAGE_VALIDATION][at].failed ? INFINITY : a->chosen[at].hp_mape;
	}
	return sum / (double)a->n_validation;
}

size_t automl_best_of_run(const struct automl *a, size_t run)
{
	size_t best = SIZE_MAX;
	double least = INFINITY;

	for (size_t t = 0; t < a->c->n_plans; t++) {
		double mape = run_hp_mape(a, run, t);

		if (mape < least) {
			least = mape;
			best = t;
		}
	}
	return best;
}

static void choose_best(struct automl *a)
{
	double least = INFINITY;

	a->best = SIZE_MAX;
	for (size_t t = 0; t < a->c->n_plans; t++) {
		double mean = 0.0;

		for (size_t r = 0; r < a->c->runs; r++)
			mean += run_hp_mape(a, r, t) / (double)a->c->runs;
		if (!a->outcome[STAGE_MODEL][t].failed && mean < least) {
			least = mean;
			a->best = t;
		}
	}
}

/* One measure of a set over the folds of a run. */
static void summarise(const double *v, size_t n, double *mean, double *sd)
{
	double squares = 0.0;

	*mean = 0.0;
	for (size_t i = 0; i < n; i++)
		*mean += v[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (v[i] - *mean) * (v[i] - *mean);
	*sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0.0;
	if (!n)
		*mean = *sd = NAN;
}

struct run_scores automl_run_scores(const struct automl *a, size_t run, size_t technique)
{
	struct run_scores r = { 0 };
	double v[3][CAMPAIGN_MAX_FOLDS];

	for (size_t s = 0; s < N_SETS; s++) {
		size_t n = 0;

		for (size_t f = 0; f < a->n_validation; f++) {
			const struct outcome *o =
				&a->outcome[STAGE_VALIDATION]
					   [automl_fold(a, run, f) * a->c->n_plans + technique];

			if (o->failed) {
				r.why = r.why ? r.why : o->why;
				continue;
			}
			v[0][n] = o->score[s].mape;
			v[1][n] = o->score[s].rmse;
			v[2][n++] = o->score[s].r2;
		}
		if (r.why)
			n = 0; /* folds that are left would not be the whole answer */
		summarise(v[0], n, &r.mean[s].mape, &r.sd[s].mape);
		summarise(v[1], n, &r.mean[s].rmse, &r.sd[s].rmse);
		summarise(v[2], n, &r.mean[s].r2, &r.sd[s].r2);
		r.n = n;
	}
	return r;
}

/* ---- models ---- */

static int make_models(struct automl *a, const char *program, const char *created, struct err *err)
{
	int rc = 0;

	for (size_t t = 0; t < a->c->n_plans && !rc; t++) {
		struct feature_list features;
		struct attempt try = final_attempt(a, t, &features);
		struct fitted f = { 0 };

		if (a->outcome[STAGE_MODEL][t].failed)
			continue;
		rc = attempt_fit(&try, &a->outcome[STAGE_MODEL][t], &f, err);
		if (!rc)
			rc = bundle_make(a, t, &try, &f, &a->model[t], err);
		if (!rc) {
			snprintf(a->model[t]->created, sizeof a->model[t]->created, "%s", created);
			snprintf(a->model[t]->program, sizeof a->model[t]->program, "%s", program);
		}
		fitted_release(&f);
	}
	return rc;
}

/* ---- the whole ---- */

void automl_free(struct automl *a)
{
	if (!a)
		return;
	for (size_t s = 0; s < N_STAGES; s++) {
		for (size_t i = 0; a->outcome[s] && i < a->n[s]; i++) {
			free(a->outcome[s][i].features.column);
			free(a->outcome[s][i].loss);
		}
		free(a->outcome[s]);
	}
	for (size_t t = 0; a->model && t < a->c->n_plans; t++)
		model_free(a->model[t]);
	free(a->model);
	free(a->chosen);
	free(a->final);
	journal_close(a->journal);
	free(a);
}

static int make_room(struct automl *a, struct err *err)
{
	const struct campaign *c = a->c;
	size_t folds, least;
	double units;

	a->n_validation = folds_of(c, c->validation);
	a->n_hp = folds_of(c, c->hp_selection);
	folds = c->runs * a->n_validation;
	for (size_t t = 0; t < c->n_plans; t++)
		a->n_points += c->plan[t].n_points;
	units = (double)folds * (double)a->n_hp * (double)a->n_points;
	if (units > AUTOML_MAX_UNITS)
		return err_fail(err, ERR_ARG, "%s: the campaign has %.0f experiments; at most %d are run",
				c->ini->file, units, AUTOML_MAX_UNITS);
	a->n[STAGE_FEATURES] = c->selection == SELECT_XGBOOST ? folds + 1 : 0;
	a->n[STAGE_EXPERIMENT] = folds * a->n_hp * a->n_points;
	a->n[STAGE_VALIDATION] = folds * c->n_plans;
	a->n[STAGE_MODEL] = c->n_plans;
	a->n[STAGE_CURVE] = c->learning_curve && a->p->all.n >= 10 ? c->n_plans * CURVE_SIZES * CURVE_REPEATS
								   : 0;
	least = a->p->all.n / 10 > 5 ? a->p->all.n / 10 : 5;
	for (size_t k = 0; k < CURVE_SIZES; k++) { /* in equal factors up to four fifths of the rows */
		double most = (double)a->p->all.n - floor(CURVE_HELD * (double)a->p->all.n);

		a->curve_rows[k] = (size_t)lround((double)least *
						  pow(most / (double)least, (double)k / (CURVE_SIZES - 1)));
	}
	for (size_t s = 0; s < N_STAGES; s++)
		if (!(a->outcome[s] = mem_calloc(a->n[s] + 1, sizeof *a->outcome[s])))
			return err_nomem(err, "%zu experiments", a->n[s]);
	a->chosen = mem_calloc(folds * c->n_plans, sizeof *a->chosen);
	a->final = mem_calloc(c->n_plans, sizeof *a->final);
	a->model = mem_calloc(c->n_plans, sizeof *a->model);
	return a->chosen && a->final && a->model ? 0 : err_nomem(err, "the results");
}

static const char *first_reason(const struct automl *a)
{
	static const enum automl_stage stage[] = { STAGE_VALIDATION, STAGE_MODEL };

	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < a->n[stage[s]]; i++)
			if (a->outcome[stage[s]][i].failed)
				return a->outcome[stage[s]][i].why;
	return "no MAPE is a finite number";
}

int automl_run(const struct automl_params *p, struct automl **out, struct err *err)
{
	struct automl *a = mem_calloc(1, sizeof *a);
	char created[32] = "";
	int rc;

	if (!a)
		return err_nomem(err, "a campaign");
	*a = (struct automl){ .c = p->c,
			      .p = p->p,
			      .pool = p->pool,
			      .on_progress = p->on_progress,
			      .owner = p->owner,
			      .part = p->part,
			      .n_parts = p->n_parts,
			      .best = SIZE_MAX };
	rc = make_room(a, err);
	if (!rc)
		rc = journal_open(p, a, created, &a->journal, err);
	for (size_t k = 1; k <= p->from_parts && !rc; k++)
		rc = journal_take_part(a->journal, p, a, k, err);
	if (!rc)
		rc = run_stage(a, STAGE_FEATURES, err);
	if (!rc)
		rc = run_stage(a, STAGE_EXPERIMENT, err);
	if (!rc && p->n_parts) {
		*out = a;
		return 0;
	}
	if (!rc) {
		choose(a);
		rc = run_stage(a, STAGE_VALIDATION, err);
	}
	if (!rc)
		rc = run_stage(a, STAGE_MODEL, err);
	if (!rc) {
		choose_best(a);
		rc = run_stage(a, STAGE_CURVE, err);
	}
	if (!rc && a->best == SIZE_MAX)
		rc = err_fail(err, ERR_NODATA, "every technique failed; the first reason: %.200s",
			      first_reason(a));
	if (!rc)
		rc = make_models(a, p->program, created, err);
	if (rc) {
		automl_free(a);
		return rc;
	}
	*out = a;
	return 0;
}
