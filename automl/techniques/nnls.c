/* The technique NNLS: linear models without negative coefficients. With a penalty it is what aMLLibrary calls
 * so, a lasso with non-negative weights (scikit-learn's objective: ||y - Xw||^2 / (2n) + alpha sum w). With
 * alpha 0 it is true non-negative least squares, by the active sets of Lawson and Hanson (Solving Least
 * Squares Problems, 1974, chapter 23). The intercept may have any sign. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "automl/techniques/models.h"
#include "predictors/models/lsq.h"

#define SWEEPS 50000
#define SETTLED 1e-13 /* of the length of the target: no coefficient moves further in a sweep */

/* From the problem's units to those of the table: column = 2^exponent (mean + norm a), y in 2^y_exponent. */
static double unit_of(const struct lsq_problem *p, size_t j)
{
	return p->norm[j] > 0.0 ? ldexp(1.0 / p->norm[j], p->y_exponent - p->exponent[j]) : 0.0;
}

static double dot(const double *a, const double *b, size_t n)
{
	double sum = 0.0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void add_scaled(double *to, const double *a, double by, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += by * a[i];
}

/* Coordinate descent: columns have length 1, so that a step is one scalar product. */
static void descend(const struct lsq_problem *p, double alpha, double *c, double *residual)
{
	double top = sqrt(p->tss);

	memcpy(residual, p->b, p->m * sizeof *residual);
	for (size_t sweep = 0; sweep < SWEEPS; sweep++) {
		double moved = 0.0;

		for (size_t j = 0; j < p->n_columns; j++) {
			const double *a = p->a + j * p->m;
			double weight = (double)p->n_rows * alpha * ldexp(unit_of(p, j), -2 * p->y_exponent);
			double next;

			if (!(p->norm[j] > 0.0))
				continue;
			next = c[j] + dot(a, residual, p->m) - weight;
			next = next > 0.0 ? next : 0.0;
			if (next != c[j]) {
				add_scaled(residual, a, c[j] - next, p->m);
				moved = fmax(moved, fabs(next - c[j]));
				c[j] = next;
			}
		}
		if (moved <= SETTLED * top)
			break;
	}
}

struct active {
	const struct lsq_problem *p;
	double *c, *step, *residual; /* in the problem's units */
	size_t *column; /* those that may be above 0 */
	bool *in;
	size_t n;
};

/* The best coefficients of the columns that are in; an aliased one counts as 0. */
static int solve_active(struct active *s, struct err *err)
{
	struct lsq_fit f = { 0 };
	int rc;

	s->n = 0;
	for (size_t j = 0; j < s->p->n_columns; j++)
		if (s->in[j])
			s->column[s->n++] = j;
	rc = lsq_solve(s->p, s->column, s->n, &f, err);
	for (size_t i = 0; i < s->n && !rc; i++)
		s->step[s->column[i]] = f.coefficient[i] / unit_of(s->p, s->column[i]);
	lsq_fit_release(&f);
	return rc;
}

/* Goes from c towards the step until the first coefficient becomes 0, and takes that one out. */
static bool retreat(struct active *s)
{
	double share = 1.0;
	bool any = false;

	for (size_t i = 0; i < s->n; i++) {
		size_t j = s->column[i];

		if (s->step[j] <= 0.0) {
			double room = s->c[j] - s->step[j];

			share = fmin(share, room > 0.0 ? s->c[j] / room : 0.0);
			any = true;
		}
	}
	for (size_t i = 0; i < s->n; i++) {
		size_t j = s->column[i];

		s->c[j] += share * (s->step[j] - s->c[j]);
		if (any && (s->c[j] <= 0.0 || (s->step[j] <= 0.0 && s->c[j] < 1e-300))) {
			s->c[j] = 0.0;
			s->in[j] = false;
		}
	}
	return any;
}

static int lawson_hanson(struct active *s, struct err *err)
{
	const struct lsq_problem *p = s->p;
	double tolerance = 1e-11 * sqrt(p->tss);
	int rc = 0;

	for (size_t turn = 0; turn < 3 * p->n_columns + 10; turn++) {
		size_t best = SIZE_MAX, tries = 0;
		double most = tolerance;

		memcpy(s->residual, p->b, p->m * sizeof *s->residual);
		for (size_t j = 0; j < p->n_columns; j++)
			if (s->c[j] != 0.0)
				add_scaled(s->residual, p->a + j * p->m, -s->c[j], p->m);
		for (size_t j = 0; j < p->n_columns; j++) {
			double gain = s->in[j] || !(p->norm[j] > 0.0)
					      ? 0.0
					      : dot(p->a + j * p->m, s->residual, p->m);

			if (gain > most) {
				most = gain;
				best = j;
			}
		}
		if (best == SIZE_MAX)
			break;
		s->in[best] = true;
		do {
			rc = solve_active(s, err);
			if (rc)
				return rc;
			if (tries == 0 && s->step[best] <= 0.0) { /* rounding: it gains nothing */
				s->in[best] = false;
				return 0;
			}
		} while (retreat(s) && ++tries < 3 * p->n_columns + 10);
	}
	return 0;
}

static int find(const struct lsq_problem *p, double alpha, double *c, struct err *err)
{
	struct active s = { .p = p,
			    .c = c,
			    .step = mem_calloc(p->n_columns, sizeof *s.step),
			    .residual = mem_array(p->m, sizeof *s.residual),
			    .column = mem_array(p->n_columns, sizeof *s.column),
			    .in = mem_calloc(p->n_columns, sizeof *s.in) };
	int rc = 0;

	if (!s.step || !s.residual || !s.column || !s.in)
		rc = err_nomem(err, "%zu coefficients", p->n_columns);
	else if (alpha > 0.0)
		descend(p, alpha, c, s.residual);
	else
		rc = lawson_hanson(&s, err);
	free(s.step);
	free(s.residual);
	free(s.column);
	free(s.in);
	return rc;
}

static int nnls_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		    void **out_self, struct err *err)
{
	bool intercept = settings_get(s, "fit_intercept") != 0.0;
	struct affine *m = affine_new(d->n_features);
	struct lsq_problem p = { 0 };
	double *x = models_columns(d), *c = mem_calloc(d->n_features, sizeof *c);
	int rc;

	(void)ctx;
	if (!m || !x || !c) {
		free(x);
		rc = err_nomem(err, "%zu coefficients", d->n_features);
		goto out;
	}
	rc = lsq_prepare(x, d->y, d->n_rows, d->n_features, intercept, &p, err);
	if (!rc)
		rc = find(&p, settings_get(s, "method") == 0.0 ? settings_get(s, "alpha") : 0.0, c, err);
	if (rc)
		goto out;
	m->intercept = intercept ? ldexp(p.y_mean, p.y_exponent) : 0.0;
	for (size_t j = 0; j < d->n_features; j++) {
		m->coefficient[j] = c[j] * unit_of(&p, j);
		if (intercept)
			m->intercept -= m->coefficient[j] * ldexp(p.mean[j], p.exponent[j]);
		if (!isfinite(m->coefficient[j]) || !isfinite(m->intercept)) {
			rc = err_fail(err, ERR_NUMERIC, "a coefficient does not fit a number");
			goto out;
		}
	}
	*out_self = m;
	m = NULL;
out:
	lsq_problem_release(&p);
	free(c);
	free(m);
	return rc;
}

const struct predictor_ops nnls_ops = { NNLS_MODEL, .fit = nnls_fit };
