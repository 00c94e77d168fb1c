/* Tuning, feature selection and fitting of one point. See select.h. */
#include "automl/select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "automl/techniques/models.h"
#include "automl/plan.h"
#include "automl/tune.h"

#define TUNE_FOLDS 5

static struct fit_request request(const struct attempt *t, const struct settings *s,
				  const struct feature_list *f)
{
	return (struct fit_request){ .c = t->c,
				     .p = t->p,
				     .technique = t->plan->technique,
				     .settings = s,
				     .rows = t->rows,
				     .features = f,
				     .ctx = { .seed = t->seed } };
}

/* ---- tuning ---- */

/* The loss of a trial: minus the mean R2 of a 5-fold cross-validation; infinite where it cannot be fitted. */
static double trial(const struct attempt *t, const double *tuned)
{
	struct settings s;
	struct fit_request q;
	struct automl_score score;

	if (plan_settings(t->plan, t->point, tuned, &s, NULL))
		return INFINITY;
	q = request(t, &s, t->features);
	return fitted_cross(&q, TUNE_FOLDS, &score, NULL) || !isfinite(score.r2) ? INFINITY : -score.r2;
}

/* Spends the budget. Trials follow from the seed and the losses before, so known ones need no fit. */
static int run_trials(const struct attempt *t, struct tune *search, size_t budget, struct err *err)
{
	size_t every = t->save ? t->c->save_interval : 0, n = 0;
	double *fresh = mem_array(every + 1, sizeof *fresh), value[CAMPAIGN_MAX_AXES];
	int rc = fresh ? 0 : err_nomem(err, "%zu trials", every);

	for (size_t k = 0; k < budget && !rc; k++) {
		double loss;

		tune_ask(search, value);
		loss = k < t->n_losses ? t->loss[k] : trial(t, value);
		tune_tell(search, loss);
		if (!every || k < t->n_losses)
			continue;
		fresh[n++] = loss;
		if (n == every && k + 1 < budget) {
			rc = t->save(t->owner, fresh, n, err);
			n = 0;
		}
	}
	free(fresh);
	return rc;
}

static int tune_point(const struct attempt *t, struct outcome *o, struct err *err)
{
	struct prior prior[CAMPAIGN_MAX_AXES];
	size_t choice[CAMPAIGN_MAX_AXES];
	struct tune_params p = { .prior = prior, .budget = t->c->max_evals, .seed = t->seed };
	struct tune *search;
	double value[CAMPAIGN_MAX_AXES];
	int rc;

	plan_choices(t->plan, t->point, choice);
	for (size_t i = 0; i < t->plan->n_axes; i++) {
		const struct axis *a = &t->plan->axis[i];

		if (a->prior && !isnan(a->prior[choice[i]].high))
			prior[p.n_priors++] = a->prior[choice[i]];
	}
	rc = tune_new(&p, &search, err);
	if (rc)
		return rc;
	rc = run_trials(t, search, p.budget, err);
	o->n_tuned = p.n_priors;
	if (!rc && isinf(tune_best(search, o->tuned))) {
		/* Say why: one trial more is as good as any. */
		struct settings s;
		struct fit_request q;
		struct automl_score score;
		struct err why = { 0 };

		tune_ask(search, value);
		if (!plan_settings(t->plan, t->point, value, &s, &why)) {
			q = request(t, &s, t->features);
			fitted_cross(&q, TUNE_FOLDS, &score, &why);
		}
		rc = err_fail(err, ERR_NODATA, "all %zu trials failed: %.200s", p.budget, why.text);
	}
	tune_free(search);
	return rc;
}

/* ---- forward selection ---- */

struct forward {
	struct fit_request q;
	struct feature_list now;
	bool *used; /* by place in the list of features that may be used */
};

/* Adds the feature that does best beside those there are. */
static int forward_step(struct forward *f, const struct feature_list *may, size_t folds, double *out_mape,
			struct err *err)
{
	size_t best = SIZE_MAX;
	double least = INFINITY;
	struct err last = { 0 };

	f->now.n++;
	for (size_t j = 0; j < may->n; j++) {
		struct automl_score s;

		if (f->used[j])
			continue;
		f->now.column[f->now.n - 1] = may->column[j];
		if (fitted_cross(&f->q, folds, &s, &last))
			continue; /* this one cannot be fitted; if none can, the reason is the last one's */
		if (s.mape < least) {
			least = s.mape;
			best = j;
		}
	}
	if (best == SIZE_MAX)
		return err_fail(err, last.code ? last.code : ERR_NUMERIC,
				"no feature can be selected: %.300s",
				last.code ? last.text : "no score is a number");
	f->used[best] = true;
	f->now.column[f->now.n - 1] = may->column[best];
	*out_mape = least;
	return 0;
}

static int select_forward(const struct attempt *t, const struct settings *s, struct outcome *o,
			  struct err *err)
{
	size_t most = t->c->max_features < t->features->n ? t->c->max_features : t->features->n;
	size_t from = t->c->min_features < most ? t->c->min_features : most;
	struct forward f = { .q = request(t, s, NULL),
			     .now = { .column = mem_calloc(most, sizeof *f.now.column) },
			     .used = mem_calloc(t->features->n, sizeof *f.used) };
	double least = INFINITY, mape = NAN;
	size_t n = 0;
	int rc = f.now.column && f.used ? 0 : err_nomem(err, "%zu features", t->features->n);

	f.q.features = &f.now;
	for (size_t k = 1; k <= most && !rc; k++) {
		rc = forward_step(&f, t->features, t->c->selection_folds, &mape, err);
		if (!rc && k >= from && mape < least) {
			least = mape;
			n = k;
		}
	}
	free(f.used);
	if (rc) {
		free(f.now.column);
		return rc;
	}
	o->features = (struct feature_list){ .column = f.now.column, .n = n };
	return 0;
}

int attempt_search(const struct attempt *t, struct outcome *o, struct err *err)
{
	struct settings s;
	int rc = 0;

	if (plan_n_priors(t->plan, t->point))
		rc = tune_point(t, o, err);
	if (!rc && t->c->selection == SELECT_SFS && !t->plan->technique->by_meaning) {
		rc = plan_settings(t->plan, t->point, o->tuned, &s, err);
		if (!rc)
			rc = select_forward(t, &s, o, err);
	}
	return rc;
}

int attempt_fit(const struct attempt *t, const struct outcome *o, struct fitted *out, struct err *err)
{
	struct settings s;
	struct fit_request q;
	int rc = plan_settings(t->plan, t->point, o->tuned, &s, err);

	if (rc)
		return rc;
	q = request(t, &s, o->features.n ? &o->features : t->features);
	if (!o->features.n && !t->plan->technique->by_meaning)
		q.ctx.bins = t->bins;
	return fitted_make(&q, out, err);
}

/* ---- by XGBoost's weights ---- */

struct weighed {
	uint32_t column;
	double weight;
};

static int heavier(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->column > y->column) - (x->column < y->column);
}

static int take_heaviest(const struct campaign *c, const struct fitted *f, struct feature_list *out,
			 struct err *err)
{
	size_t n = f->features.n;
	double *share = mem_calloc(n, sizeof *share), sum = 0.0;
	struct weighed *w = mem_array(n, sizeof *w);
	struct feature_list taken = { .column = mem_array(n, sizeof *taken.column) };
	int rc = 0;

	if (!share || !w || !taken.column) {
		rc = err_nomem(err, "%zu features", n);
		goto out;
	}
	f->model.ops->importances(f->model.self, share);
	for (size_t j = 0; j < n; j++)
		w[j] = (struct weighed){ f->features.column[j], share[j] };
	qsort(w, n, sizeof *w, heavier);
	for (size_t j = 0;
	     j < n && sum < c->tolerance - 1e-12 && (!c->max_features || taken.n < c->max_features); j++) {
		if (w[j].weight <= 0.0)
			break;
		sum += w[j].weight;
		taken.column[taken.n++] = w[j].column;
	}
	if (!taken.n)
		rc = err_fail(err, ERR_NODATA, "XGBoost made no split, so that no feature has a weight");
out:
	free(share);
	free(w);
	if (rc)
		free(taken.column);
	else
		*out = taken;
	return rc;
}

int select_by_weight(const struct campaign *c, const struct prepared *p, const struct row_list *rows,
		     uint64_t seed, struct feature_list *out, struct err *err)
{
	struct feature_list all = { .column = p->x, .n = p->n_x };
	struct attempt t = {
		.c = c, .p = p, .plan = &c->selector, .rows = rows, .features = &all, .seed = seed
	};
	struct outcome best = { 0 };
	double least = INFINITY;
	size_t point = SIZE_MAX;
	struct fitted f = { 0 };
	int rc = 0;

	for (t.point = 0; t.point < c->selector.n_points && !rc; t.point++) {
		struct outcome o = { 0 };
		struct settings s;
		struct automl_score score;

		if (plan_n_priors(t.plan, t.point))
			rc = tune_point(&t, &o, err);
		if (!rc)
			rc = plan_settings(t.plan, t.point, o.tuned, &s, err);
		if (!rc) {
			struct fit_request q = request(&t, &s, &all);

			rc = fitted_cross(&q, TUNE_FOLDS, &score, err);
		}
		if (!rc && score.mape < least) {
			least = score.mape;
			point = t.point;
			best = o;
		}
	}
	if (rc)
		return rc;
	t.point = point == SIZE_MAX ? 0 : point;
	rc = attempt_fit(&t, &best, &f, err);
	if (!rc)
		rc = take_heaviest(c, &f, out, err);
	fitted_release(&f);
	return rc;
}
