/* The calibrated model as a least-squares problem on log time: what a row costs at a point of the search, its
 * gradient, and one descent by GSL's Levenberg-Marquardt. calibrate.c chooses the starts and what is free. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "queueing/calibrate_internal.h"

static double saturation_of(const struct problem *pr, double u)
{
	return exp(pr->log_low + (pr->log_high - pr->log_low) * calibrate_logistic(u));
}

static double log_cost(const struct solution *s, size_t i, double of_fixed)
{
	switch ((enum hold)s->hold[i]) {
	case HOLD_TIED: return calibrate_clamp(s->u[CALIBRATE_FIXED], -80.0, 80.0) + log(of_fixed);
	case HOLD_ABSENT: return -INFINITY;
	default: return calibrate_clamp(s->u[i], -80.0, 80.0);
	}
}

struct costs calibrate_costs(const struct problem *pr, const struct solution *s)
{
	struct costs c = {
		.fixed = exp(log_cost(s, CALIBRATE_FIXED, 1.0)),
		.record = exp(log_cost(s, CALIBRATE_RECORD, RECORD_OF_FIXED)),
		.disk = exp(log_cost(s, CALIBRATE_DISK, DISK_OF_FIXED)),
		.disk_record = exp(log_cost(s, CALIBRATE_DISK_RECORD, 1.0)),
		.a = s->u[CALIBRATE_EXPONENT],
		.saturation = s->u[CALIBRATE_SATURATION],
	};

	if (s->hold[CALIBRATE_EXPONENT] == HOLD_FREE)
		c.a = calibrate_logistic(c.a);
	if (s->hold[CALIBRATE_SATURATION] == HOLD_FREE)
		c.saturation = saturation_of(pr, c.saturation);
	for (size_t i = N_SHARED; i < MAX_U; i++)
		c.categories |= s->u[i] != 0.0;
	return c;
}

struct terms calibrate_terms(const struct costs *c, const struct solution *s, const struct row *r,
			     size_t n_categories)
{
	double log_fixed = 0.0, log_record = -c->a * r->log_share;
	struct terms t = { .stretch = 1.0 + r->processes / c->saturation, .fixed = r->crowd * c->fixed };

	for (size_t k = 0; c->categories && k < n_categories; k++) {
		log_record += r->category[k] * s->u[U_RECORD_OF(k)];
		log_fixed += r->category[k] * s->u[U_FIXED_OF(k)];
	}
	if (log_fixed != 0.0)
		t.fixed *= exp(log_fixed);
	t.record = r->crowd * c->record * r->batch * exp(log_record);
	t.disk = t.stretch * c->disk;
	t.disk_record = t.stretch * c->disk_record * r->batch;
	t.total = t.fixed + t.record + t.disk + t.disk_record;
	return t;
}

/* d log(total) / du for every coordinate; those that are not free are ignored by the caller. */
void calibrate_gradient(const struct problem *pr, const struct costs *c, const struct solution *s,
			const struct row *r, double *out)
{
	struct terms t = calibrate_terms(c, s, r, pr->n_categories);
	double p = s->hold[CALIBRATE_SATURATION] == HOLD_FREE ? calibrate_logistic(s->u[CALIBRATE_SATURATION])
							      : 0.0;

	out[CALIBRATE_FIXED] = (t.fixed + (s->hold[CALIBRATE_RECORD] == HOLD_TIED ? t.record : 0.0) +
				(s->hold[CALIBRATE_DISK] == HOLD_TIED ? t.disk : 0.0)) /
			       t.total;
	out[CALIBRATE_RECORD] = t.record / t.total;
	out[CALIBRATE_EXPONENT] = -t.record * r->log_share * c->a * (1.0 - c->a) / t.total;
	out[CALIBRATE_DISK] = t.disk / t.total;
	out[CALIBRATE_DISK_RECORD] = t.disk_record / t.total;
	out[CALIBRATE_SATURATION] = -(t.disk + t.disk_record) * (1.0 - 1.0 / t.stretch) *
				    (pr->log_high - pr->log_low) * p * (1.0 - p) / t.total;
	for (size_t k = 0; k < pr->n_categories; k++) {
		out[U_RECORD_OF(k)] = r->category[k] * t.record / t.total;
		out[U_FIXED_OF(k)] = r->category[k] * t.fixed / t.total;
	}
}

/* How far off the logarithm of a point is. */
static double error_of(const struct problem *pr, const struct costs *c, const struct solution *s,
		       const struct point *p)
{
	return log(calibrate_terms(c, s, &pr->row[p->row], pr->n_categories).total) - p->log_t;
}

/* ---- one descent ---- */

struct gsl_view {
	const struct problem *pr;
	struct solution *s; /* scratch: its free coordinates are set from x */
	size_t free[MAX_U];
};

static void put_free(struct gsl_view *v, const gsl_vector *x)
{
	for (size_t i = 0; i < x->size; i++)
		v->s->u[v->free[i]] = gsl_vector_get(x, i);
}

static int residuals(const gsl_vector *x, void *ctx, gsl_vector *f)
{
	struct gsl_view *v = ctx;

	struct costs c;

	put_free(v, x);
	c = calibrate_costs(v->pr, v->s);
	for (size_t i = 0; i < v->pr->n_points; i++)
		gsl_vector_set(f, i, v->pr->point[i].root * error_of(v->pr, &c, v->s, &v->pr->point[i]));
	return GSL_SUCCESS;
}

static int jacobian(const gsl_vector *x, void *ctx, gsl_matrix *J)
{
	struct gsl_view *v = ctx;
	struct costs c;
	double g[MAX_U];

	put_free(v, x);
	c = calibrate_costs(v->pr, v->s);
	for (size_t i = 0; i < v->pr->n_points; i++) {
		const struct point *p = &v->pr->point[i];

		calibrate_gradient(v->pr, &c, v->s, &v->pr->row[p->row], g);
		for (size_t k = 0; k < x->size; k++)
			gsl_matrix_set(J, i, k, p->root * g[v->free[k]]);
	}
	return GSL_SUCCESS;
}

static double rss_of(const struct problem *pr, const struct solution *s)
{
	struct costs c = calibrate_costs(pr, s);
	double sum = pr->within;

	for (size_t i = 0; i < pr->n_points; i++) {
		double e = error_of(pr, &c, s, &pr->point[i]);
		sum += pr->point[i].weight * e * e;
	}
	return sum;
}

/* Akaike's criterion with the correction for small samples; the spread is a parameter too. */
double calibrate_aicc(size_t n, size_t n_free, double rss)
{
	double k = (double)n_free + 1.0, left = (double)n - k - 1.0;

	if (left <= 0.0)
		return INFINITY;
	return (double)n * log(fmax(rss / (double)n, 1e-24)) + 2.0 * k + 2.0 * k * (k + 1.0) / left;
}

/* Moves the free coordinates of `s` to the nearest minimum. */
int calibrate_descend(const struct problem *pr, struct solution *s, size_t max_iterations, struct err *err)
{
	gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
	struct gsl_view view = { .pr = pr, .s = s };
	struct solution start = *s;
	gsl_multifit_nlinear_fdf fdf = { .f = residuals, .df = jacobian, .n = pr->n_points, .params = &view };
	gsl_multifit_nlinear_workspace *w;
	gsl_vector *x;
	gsl_matrix *covariance;
	double before = rss_of(pr, s);
	int why, rc = err_if_stopped(pr->p->stop, err);

	if (rc)
		return rc;
	s->n_free = 0;
	for (size_t i = 0; i < MAX_U; i++)
		if (s->hold[i] == HOLD_FREE)
			view.free[s->n_free++] = i;
	fdf.p = s->n_free;
	x = gsl_vector_alloc(s->n_free);
	covariance = gsl_matrix_alloc(s->n_free, s->n_free);
	w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, pr->n_points, s->n_free);
	if (!x || !covariance || !w) {
		gsl_vector_free(x);
		gsl_matrix_free(covariance);
		gsl_multifit_nlinear_free(w);
		return err_fail(err, ERR_NOMEM, "out of memory to fit %zu rows", pr->n);
	}
	for (size_t i = 0; i < s->n_free; i++)
		gsl_vector_set(x, i, s->u[view.free[i]]);
	if (gsl_multifit_nlinear_init(x, &fdf, w) == GSL_SUCCESS) {
		/* Running out of iterations, or of progress, is no failure: the point reached is the best
		 * there is. */
		gsl_multifit_nlinear_driver(max_iterations, 1e-8, 1e-8, 0.0, NULL, NULL, &why, w);
		put_free(&view, gsl_multifit_nlinear_position(w));
		memset(s->variance, 0, sizeof s->variance);
		if (gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(w), 1e-10, covariance) == GSL_SUCCESS)
			for (size_t i = 0; i < s->n_free; i++)
				s->variance[view.free[i]] = gsl_matrix_get(covariance, i, i);
	}
	s->rss = rss_of(pr, s);
	if (!(s->rss <= before)) { /* also a NaN */
		size_t n_free = s->n_free;
		*s = start;
		s->n_free = n_free;
		s->rss = before;
	}
	s->aicc = calibrate_aicc(pr->n, s->n_free, s->rss);
	s->fitted = true;
	gsl_vector_free(x);
	gsl_matrix_free(covariance);
	gsl_multifit_nlinear_free(w);
	return 0;
}
