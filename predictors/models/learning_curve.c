/* Fits a learning curve by penalised least squares. See learning_curve.h for the law. */
#include "predictors/models/learning_curve.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/mem.h"

#define MAX_U (1 + CURVE_N_SHAPE * (1 + CURVE_MAX_CATEGORIES))
#define MAX_ITERATIONS 100
#define LOG_REACH 6.907755278982137 /* a thousand times */
#define STEEP_LIMIT 4.0 /* of its logarithm, either way: 1/55 to 55 */
/* How strongly a parameter is held to what is stated: being off by one (the whole range of training, a factor
 * e) weighs as much as one row that is off by a tenth of the range. */
#define HOLD 0.1

static double clamp(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

/* ---- where a row is on the curve ---- */

static double input_of(const struct learning_curve *c, int input, const double *x)
{
	double v = c->at[input] < 0 ? NAN : x[c->at[input]];

	if (!(v > 0.0))
		return 0.0;
	return clamp(log(v), c->log_low[input] - LOG_REACH, c->log_high[input] + LOG_REACH) -
	       c->log_mean[input];
}

double learning_curve_position(const struct learning_curve *c, const double *x)
{
	return input_of(c, CURVE_EPOCHS, x) + input_of(c, CURVE_SAMPLES, x) -
	       c->beta * input_of(c, CURVE_BATCH, x);
}

static double category_of(const struct learning_curve *c, size_t k, const double *x)
{
	double v = x[c->category[k]];

	return isnan(v) ? c->category_mean[k] : v;
}

static double logistic(double v)
{
	return 1.0 / (1.0 + exp(-v));
}

static double curve_of(const double *shape, double position)
{
	double steep = exp(clamp(shape[CURVE_STEEP], -STEEP_LIMIT, STEEP_LIMIT));

	return shape[CURVE_LOW] +
	       (shape[CURVE_HIGH] - shape[CURVE_LOW]) * logistic(steep * (position - shape[CURVE_MIDDLE]));
}

double learning_curve_at(const struct learning_curve *c, const double *x, double position)
{
	double shape[CURVE_N_SHAPE];

	if (!(c->range > 0.0))
		return c->base;
	for (int j = 0; j < CURVE_N_SHAPE; j++) {
		shape[j] = c->shape[j];
		for (size_t k = 0; k < c->n_categories; k++)
			shape[j] += c->own[k][j] * category_of(c, k, x);
	}
	return c->base + c->range * curve_of(shape, position);
}

/* ---- fit ---- */

struct row {
	double input[CURVE_N_INPUTS];
	double category[CURVE_MAX_CATEGORIES];
	double z; /* the target, 0 to 1 over training */
};

struct problem {
	struct row *row;
	size_t n, n_categories, n_u;
	const double *stated; /* n_u: where the parameters are held to */
};

/* The coordinates: beta, the shape, what each category adds to it. */
static void shape_of(const struct problem *pr, const gsl_vector *u, const struct row *r, double *out)
{
	for (size_t j = 0; j < CURVE_N_SHAPE; j++) {
		out[j] = gsl_vector_get(u, 1 + j);
		for (size_t k = 0; k < pr->n_categories; k++)
			out[j] += r->category[k] * gsl_vector_get(u, 1 + CURVE_N_SHAPE * (1 + k) + j);
	}
}

static double position_of(const gsl_vector *u, const struct row *r)
{
	return r->input[CURVE_EPOCHS] + r->input[CURVE_SAMPLES] -
	       gsl_vector_get(u, 0) * r->input[CURVE_BATCH];
}

static int residuals(const gsl_vector *u, void *ctx, gsl_vector *f)
{
	const struct problem *pr = ctx;
	double shape[CURVE_N_SHAPE];

	for (size_t i = 0; i < pr->n; i++) {
		shape_of(pr, u, &pr->row[i], shape);
		gsl_vector_set(f, i, curve_of(shape, position_of(u, &pr->row[i])) - pr->row[i].z);
	}
	for (size_t k = 0; k < pr->n_u; k++)
		gsl_vector_set(f, pr->n + k, HOLD * (gsl_vector_get(u, k) - pr->stated[k]));
	return GSL_SUCCESS;
}

static void jacobian_row(const struct problem *pr, const gsl_vector *u, size_t i, gsl_matrix *J)
{
	const struct row *r = &pr->row[i];
	double shape[CURVE_N_SHAPE], g[CURVE_N_SHAPE], steep, off, l, slope;

	shape_of(pr, u, r, shape);
	steep = exp(clamp(shape[CURVE_STEEP], -STEEP_LIMIT, STEEP_LIMIT));
	off = position_of(u, r) - shape[CURVE_MIDDLE];
	l = logistic(steep * off);
	slope = (shape[CURVE_HIGH] - shape[CURVE_LOW]) * l * (1.0 - l) * steep;
	g[CURVE_LOW] = 1.0 - l;
	g[CURVE_HIGH] = l;
	g[CURVE_MIDDLE] = -slope;
	g[CURVE_STEEP] = fabs(shape[CURVE_STEEP]) < STEEP_LIMIT ? slope * off : 0.0;
	gsl_matrix_set(J, i, 0, -slope * r->input[CURVE_BATCH]);
	for (size_t j = 0; j < CURVE_N_SHAPE; j++) {
		gsl_matrix_set(J, i, 1 + j, g[j]);
		for (size_t k = 0; k < pr->n_categories; k++)
			gsl_matrix_set(J, i, 1 + CURVE_N_SHAPE * (1 + k) + j, r->category[k] * g[j]);
	}
}

static int jacobian(const gsl_vector *u, void *ctx, gsl_matrix *J)
{
	const struct problem *pr = ctx;

	gsl_matrix_set_zero(J);
	for (size_t i = 0; i < pr->n; i++)
		jacobian_row(pr, u, i, J);
	for (size_t k = 0; k < pr->n_u; k++)
		gsl_matrix_set(J, pr->n + k, k, HOLD);
	return GSL_SUCCESS;
}

static double cost_of(const gsl_multifit_nlinear_workspace *w)
{
	const gsl_vector *f = gsl_multifit_nlinear_residual(w);
	double sum = 0.0;

	for (size_t i = 0; i < f->size; i++)
		sum += gsl_vector_get(f, i) * gsl_vector_get(f, i);
	return sum;
}

/* From what is stated to the nearest minimum; *out_cost is NaN where there was no way. */
static int descend(struct problem *pr, double *u, double *out_cost, struct err *err)
{
	gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
	gsl_multifit_nlinear_fdf fdf = {
		.f = residuals, .df = jacobian, .n = pr->n + pr->n_u, .p = pr->n_u, .params = pr
	};
	gsl_multifit_nlinear_workspace *w =
		gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, fdf.n, fdf.p);
	gsl_vector *x = gsl_vector_alloc(pr->n_u);
	int why;

	*out_cost = NAN;
	if (!w || !x) {
		gsl_vector_free(x);
		gsl_multifit_nlinear_free(w);
		return err_fail(err, ERR_NOMEM, "out of memory to fit a curve to %zu rows", pr->n);
	}
	for (size_t k = 0; k < pr->n_u; k++)
		gsl_vector_set(x, k, u[k]);
	if (gsl_multifit_nlinear_init(x, &fdf, w) == GSL_SUCCESS) {
		/* Running out of iterations is no failure: the point reached is the best there is. */
		gsl_multifit_nlinear_driver(MAX_ITERATIONS, 1e-8, 1e-8, 0.0, NULL, NULL, &why, w);
		for (size_t k = 0; k < pr->n_u; k++)
			u[k] = gsl_vector_get(gsl_multifit_nlinear_position(w), k);
		*out_cost = cost_of(w);
	}
	gsl_vector_free(x);
	gsl_multifit_nlinear_free(w);
	return 0;
}

/* Targets that grow with the work, and targets that fall (an error rate): the better of the two starts. */
static int best_of_starts(struct problem *pr, double *best, bool *out_found, struct err *err)
{
	double least = INFINITY;

	*out_found = false;
	for (int falls = 0; falls < 2; falls++) {
		double u[MAX_U] = { 0 }, stated[MAX_U] = { 0 }, cost;
		bool finite = true;
		int rc;

		u[0] = 1.0;
		u[1 + CURVE_LOW] = falls ? 1.0 : 0.0;
		u[1 + CURVE_HIGH] = falls ? 0.0 : 1.0;
		for (size_t k = 0; k < pr->n_u; k++)
			stated[k] = u[k];
		pr->stated = stated;
		rc = descend(pr, u, &cost, err);
		if (rc)
			return rc;
		for (size_t k = 0; k < pr->n_u; k++)
			finite &= isfinite(u[k]);
		if (finite && cost < least) {
			least = cost;
			*out_found = true;
			for (size_t k = 0; k < pr->n_u; k++)
				best[k] = u[k];
		}
	}
	return 0;
}

static void take(struct learning_curve *c, const double *u)
{
	c->beta = u[0];
	for (size_t j = 0; j < CURVE_N_SHAPE; j++) {
		c->shape[j] = u[1 + j];
		for (size_t k = 0; k < c->n_categories; k++)
			c->own[k][j] = u[1 + CURVE_N_SHAPE * (1 + k) + j];
	}
}

/* ---- what the table has ---- */

static void measure_input(struct learning_curve *c, int input, const struct dataset *d)
{
	size_t n = 0;

	c->log_low[input] = c->log_high[input] = c->log_mean[input] = 0.0;
	if (c->at[input] < 0)
		return;
	for (size_t i = 0; i < d->n_rows; i++) {
		double v = d->x[i * d->n_features + (size_t)c->at[input]], l;

		if (!(v > 0.0))
			continue;
		l = log(v);
		c->log_low[input] = n ? fmin(c->log_low[input], l) : l;
		c->log_high[input] = n ? fmax(c->log_high[input], l) : l;
		c->log_mean[input] += l;
		n++;
	}
	if (n)
		c->log_mean[input] /= (double)n;
	else
		c->at[input] = -1;
}

static void find_inputs(struct learning_curve *c, const struct dataset *d)
{
	static const uint8_t role[CURVE_N_INPUTS] = { ROLE_EPOCHS, ROLE_SAMPLES, ROLE_BATCH };

	for (int input = 0; input < CURVE_N_INPUTS; input++) {
		c->at[input] = -1;
		for (size_t f = 0; d->role && f < d->n_features && c->at[input] < 0; f++)
			if (d->role[f] == role[input])
				c->at[input] = (int32_t)f;
		measure_input(c, input, d);
	}
	for (size_t f = 0; d->role && f < d->n_features && c->n_categories < CURVE_MAX_CATEGORIES; f++) {
		double sum = 0.0, n = 0.0;

		if (d->role[f] != ROLE_CATEGORY)
			continue;
		for (size_t i = 0; i < d->n_rows; i++)
			if (!isnan(d->x[i * d->n_features + f])) {
				sum += d->x[i * d->n_features + f];
				n += 1.0;
			}
		c->category[c->n_categories] = (uint32_t)f;
		c->category_mean[c->n_categories++] = n > 0.0 ? sum / n : 0.0;
	}
}

static bool varies(const struct learning_curve *c)
{
	bool any = false;

	for (int input = 0; input < CURVE_N_INPUTS; input++)
		any |= c->log_high[input] > c->log_low[input];
	return any;
}

static int problem_make(const struct learning_curve *c, const struct dataset *d, struct problem *out,
			struct err *err)
{
	size_t n = d->n_rows < CURVE_MAX_ROWS ? d->n_rows : CURVE_MAX_ROWS;

	*out = (struct problem){ .n = n,
				 .n_categories = c->n_categories,
				 .n_u = 1 + CURVE_N_SHAPE * (1 + c->n_categories) };
	out->row = mem_calloc(n, sizeof *out->row);
	if (!out->row)
		return err_fail(err, ERR_NOMEM, "out of memory to fit a curve to %zu rows", n);
	for (size_t i = 0; i < n; i++) {
		size_t from = i * d->n_rows / n;
		const double *x = d->x + from * d->n_features;
		struct row *r = &out->row[i];

		for (int input = 0; input < CURVE_N_INPUTS; input++)
			r->input[input] = input_of(c, input, x);
		for (size_t k = 0; k < c->n_categories; k++)
			r->category[k] = category_of(c, k, x);
		r->z = (d->y[from] - c->base) / c->range;
	}
	return 0;
}

static void gsl_returns_errors(void)
{
	gsl_set_error_handler_off(); /* its own handler aborts */
}

int learning_curve_fit(const struct dataset *d, struct learning_curve *out, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct learning_curve c = { .beta = 1.0 };
	struct problem pr = { 0 };
	double low = INFINITY, high = -INFINITY, mean = 0.0, u[MAX_U];
	bool found = false;
	int rc = 0;

	pthread_once(&once, gsl_returns_errors);
	find_inputs(&c, d);
	for (size_t i = 0; i < d->n_rows; i++) {
		low = fmin(low, d->y[i]);
		high = fmax(high, d->y[i]);
		mean += d->y[i] / (double)d->n_rows;
	}
	c.base = low;
	c.range = high - low;
	if (c.range > 0.0 && isfinite(c.range) && varies(&c)) {
		rc = problem_make(&c, d, &pr, err);
		if (!rc)
			rc = best_of_starts(&pr, u, &found, err);
		free(pr.row);
	}
	if (rc)
		return rc;
	if (found) {
		take(&c, u);
	} else {
		c.base = clamp(mean, low, high);
		c.range = 0.0;
	}
	*out = c;
	return 0;
}

/* ---- bytes ---- */

void learning_curve_save(const struct learning_curve *c, struct writer *w)
{
	for (int input = 0; input < CURVE_N_INPUTS; input++) {
		write_u32(w, (uint32_t)(c->at[input] + 1));
		write_f64(w, c->log_mean[input]);
		write_f64(w, c->log_low[input]);
		write_f64(w, c->log_high[input]);
	}
	write_f64(w, c->base);
	write_f64(w, c->range);
	write_f64(w, c->beta);
	for (size_t j = 0; j < CURVE_N_SHAPE; j++)
		write_f64(w, c->shape[j]);
	write_u32(w, c->n_categories);
	for (size_t k = 0; k < c->n_categories; k++) {
		write_u32(w, c->category[k]);
		write_f64(w, c->category_mean[k]);
		for (size_t j = 0; j < CURVE_N_SHAPE; j++)
			write_f64(w, c->own[k][j]);
	}
}

static double read_finite(struct reader *r)
{
	double v = read_f64(r);

	if (!isfinite(v))
		r->failed = true;
	return v;
}

int learning_curve_load(struct reader *r, size_t n_features, struct learning_curve *out, struct err *err)
{
	struct learning_curve c = { 0 };

	for (int input = 0; input < CURVE_N_INPUTS; input++) {
		uint32_t at = read_u32(r);

		c.log_mean[input] = read_finite(r);
		c.log_low[input] = read_finite(r);
		c.log_high[input] = read_finite(r);
		if (at > n_features || c.log_low[input] > c.log_high[input])
			return err_fail(err, ERR_FORMAT,
					"input %d of the curve is not a feature with a range", input);
		c.at[input] = (int32_t)at - 1;
	}
	c.base = read_finite(r);
	c.range = read_finite(r);
	c.beta = read_finite(r);
	for (size_t j = 0; j < CURVE_N_SHAPE; j++)
		c.shape[j] = read_finite(r);
	c.n_categories = read_u32(r);
	if (r->failed || c.range < 0.0 || c.n_categories > CURVE_MAX_CATEGORIES)
		return err_fail(err, ERR_FORMAT, "offset %zu: no curve with at most %d categories", r->at,
				CURVE_MAX_CATEGORIES);
	for (size_t k = 0; k < c.n_categories; k++) {
		c.category[k] = read_u32(r);
		c.category_mean[k] = read_finite(r);
		for (size_t j = 0; j < CURVE_N_SHAPE; j++)
			c.own[k][j] = read_finite(r);
		if (r->failed || c.category[k] >= n_features)
			return err_fail(err, ERR_FORMAT, "category %zu of the curve is not a feature", k);
	}
	*out = c;
	return 0;
}
