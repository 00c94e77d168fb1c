/* The technique Stepwise: regression that adds and drops one column at a time (Draper and Smith, Applied
 * Regression Analysis, 1966). Each turn takes the unused column with the largest correlation with the
 * residual and keeps it if its t-test is significant at p_to_add; then it drops the weakest column if that is
 * not significant at p_to_remove. It ends when nothing changes. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "automl/techniques/models.h"
#include "predictors/models/lsq.h"

struct steps {
	const struct dataset *d;
	struct lsq_problem p;
	struct lsq_fit fit; /* of column[0..n) */
	size_t *column;
	size_t n;
	double *residual;
	bool intercept;
	double p_to_add, p_to_remove;
};

/* Degrees of freedom that are left beside k columns. */
static double freedom(const struct steps *s, size_t k)
{
	return (double)s->d->n_rows - (double)k - (s->intercept ? 1.0 : 0.0);
}

static int refit(struct steps *s, struct err *err)
{
	lsq_fit_release(&s->fit);
	s->fit = (struct lsq_fit){ 0 };
	return lsq_solve(&s->p, s->column, s->n, &s->fit, err);
}

/* |t| of the i-th chosen column. */
static double t_of(const struct steps *s, size_t i)
{
	double left = freedom(s, s->n), variance;

	if (s->fit.aliased[i] || left <= 0.0)
		return 0.0;
	variance = s->fit.variance[i] * s->fit.rss / left;
	if (!(variance > 0.0))
		return s->fit.coefficient[i] != 0.0 ? INFINITY : 0.0;
	return fabs(s->fit.coefficient[i]) / sqrt(variance);
}

static double limit(double p, double left)
{
	return left > 0.0 ? gsl_cdf_tdist_Qinv(p / 2.0, left) : INFINITY;
}

static void residuals(struct steps *s)
{
	const struct dataset *d = s->d;

	for (size_t i = 0; i < d->n_rows; i++) {
		double v = d->y[i] - (s->n && s->intercept ? s->fit.intercept : 0.0);

		for (size_t k = 0; k < s->n; k++)
			v -= s->fit.coefficient[k] * d->x[i * d->n_features + s->column[k]];
		s->residual[i] = v;
	}
}

/* The absolute correlation of column j with the residual; -1 for a column that does not vary. */
static double correlation(const struct steps *s, size_t j)
{
	const struct dataset *d = s->d;
	double mean_x = 0.0, mean_r = 0.0, xx = 0.0, rr = 0.0, xr = 0.0, n = (double)d->n_rows;

	for (size_t i = 0; i < d->n_rows; i++) {
		mean_x += d->x[i * d->n_features + j] / n;
		mean_r += s->residual[i] / n;
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		double x = d->x[i * d->n_features + j] - mean_x, r = s->residual[i] - mean_r;

		xx += x * x;
		rr += r * r;
		xr += x * r;
	}
	return xx > 0.0 && rr > 0.0 ? fabs(xr) / sqrt(xx * rr) : -1.0;
}

static bool varies(const struct dataset *d, size_t j)
{
	for (size_t i = 1; i < d->n_rows; i++)
		if (d->x[i * d->n_features + j] != d->x[j])
			return true;
	return false;
}

/* Returns whether a column came in. */
static bool add_one(struct steps *s, int *rc, struct err *err)
{
	size_t best = SIZE_MAX;
	double most = 0.0;

	residuals(s);
	for (size_t j = 0; j < s->d->n_features; j++) {
		bool used = !varies(s->d, j);
		double r;

		for (size_t k = 0; k < s->n && !used; k++)
			used = s->column[k] == j;
		r = used ? -1.0 : correlation(s, j);
		if (r > most) {
			most = r;
			best = j;
		}
	}
	if (best == SIZE_MAX || freedom(s, s->n + 1) <= 0.0)
		return false;
	s->column[s->n++] = best;
	*rc = refit(s, err);
	if (*rc)
		return false;
	if (t_of(s, s->n - 1) > limit(s->p_to_add, freedom(s, s->n)))
		return true;
	s->n--;
	*rc = refit(s, err);
	return false;
}

/* The weakest column goes if |b| over the half width of its p_to_add interval is below the ratio of the two
 * limits, which is to say |t| is below the limit of p_to_remove. */
static bool drop_one(struct steps *s, int *rc, struct err *err)
{
	size_t weakest = 0;

	if (!s->n)
		return false;
	for (size_t k = 1; k < s->n; k++)
		if (t_of(s, k) < t_of(s, weakest))
			weakest = k;
	if (!(t_of(s, weakest) < limit(s->p_to_remove, freedom(s, s->n))))
		return false;
	memmove(s->column + weakest, s->column + weakest + 1, (s->n - weakest - 1) * sizeof *s->column);
	s->n--;
	*rc = refit(s, err);
	return true;
}

static int stepwise_fit(const struct settings *set, const struct dataset *d, const struct fit_context *ctx,
			void **out_self, struct err *err)
{
	struct steps s = { .d = d,
			   .intercept = settings_get(set, "fit_intercept") != 0.0,
			   .p_to_add = settings_get(set, "p_to_add"),
			   .p_to_remove = settings_get(set, "p_to_remove"),
			   .column = mem_array(d->n_features + 1, sizeof *s.column),
			   .residual = mem_array(d->n_rows, sizeof *s.residual) };
	struct affine *m = affine_new(d->n_features);
	double *x = models_columns(d), turns = settings_get(set, "max_iter");
	int rc = 0;

	if (!m || !x || !s.column || !s.residual) {
		free(x);
		rc = err_nomem(err, "stepwise regression");
	} else {
		rc = lsq_prepare(x, d->y, d->n_rows, d->n_features, s.intercept, &s.p, err);
	}
	if (!rc)
		rc = refit(&s, err);
	for (double turn = 0.0; !rc && turn < turns; turn++) {
		bool changed = add_one(&s, &rc, err);

		if (!rc)
			changed |= drop_one(&s, &rc, err);
		if (!rc)
			rc = err_if_stopped(ctx->stop, err);
		if (!changed)
			break;
	}
	if (!rc) {
		if (s.intercept)
			m->intercept = s.fit.intercept;
		for (size_t k = 0; k < s.n; k++)
			m->coefficient[s.column[k]] = s.fit.coefficient[k];
		*out_self = m;
		m = NULL;
	}
	lsq_fit_release(&s.fit);
	lsq_problem_release(&s.p);
	free(s.column);
	free(s.residual);
	free(m);
	return rc;
}

const struct predictor_ops stepwise_ops = { STEPWISE_MODEL, .fit = stepwise_fit };
