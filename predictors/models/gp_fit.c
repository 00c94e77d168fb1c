/* A Gaussian process on a few hundred points. See gp.h for the covariance and gp_fit.h for the parts. */
#include "predictors/models/gp_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/models/gp.h"

#define LEVEL 0.25 /* variance of what all residuals have in common */
#define MAX_STEPS 40
#define WIDE 8 /* points looked at together */
#define SEARCH_POINTS 150 /* a few variances and lengths need no more */

/* Where the search looks: logarithms of variances and lengths, their prior means and standard deviations. */
enum { AT_LINEAR, AT_SMOOTH, AT_NOISE, AT_LENGTH, MAX_AT = AT_LENGTH + GP_AXES };
static const double prior_mean[AT_LENGTH + 1] = { -3.2, -3.2, -5.1, 0.9 };
static const double prior_sd[AT_LENGTH + 1] = { 1.2, 1.2, 1.2, 0.7 };

static double mean_of(size_t at)
{
	return prior_mean[at < AT_LENGTH ? at : AT_LENGTH];
}

static double sd_of(size_t at)
{
	return prior_sd[at < AT_LENGTH ? at : AT_LENGTH];
}

/* exp(x) for x <= 0 to nine digits, without a call: predictions are most of what a decision costs. */
static inline double decay(double x)
{
	double y = (x > -700.0 ? x : -700.0) * 1.4426950408889634, cut = (double)(int64_t)y,
	       whole = cut > y ? cut - 1.0 : cut, f = (y - whole) * 0.6931471805599453;
	double p = 1.0 +
		   f * (1.0 + f * (1.0 / 2 +
				   f * (1.0 / 6 +
					f * (1.0 / 24 +
					     f * (1.0 / 120 +
						  f * (1.0 / 720 + f * (1.0 / 5040 + f * (1.0 / 40320))))))));
	union {
		int64_t bits;
		double v;
	} two = { .bits = ((int64_t)whole + 1023) << 52 };

	return p * two.v;
}

/* Several sums at a time, in registers: each has the additions of a plain loop in their order, so it is the
 * same to the bit, and none waits for another. */
#define SEVERAL _Pragma("GCC unroll 8") for (size_t b = 0; b < WIDE; b++)

/* Covariances of z with all points, without noise. */
static void covariances(const struct gp_process *g, const double *z, double *out)
{
	size_t i = 0;

	for (; i + WIDE <= g->n; i += WIDE) {
		double dot[WIDE] = { 0.0 }, far[WIDE] = { 0.0 };

		for (size_t a = 0; a < g->n_axes; a++) {
			const double *point = g->z + a * g->n + i;
			double at = z[a], rate = g->rate[a] * g->rate[a];

			SEVERAL
			{
				double d = point[b] - at;

				dot[b] += point[b] * at;
				far[b] += d * d * rate;
			}
		}
		SEVERAL
		out[i + b] = LEVEL + g->linear * dot[b] + g->smooth * decay(-0.5 * far[b]);
	}
	for (; i < g->n; i++) {
		double dot = 0.0, far = 0.0;

		for (size_t a = 0; a < g->n_axes; a++) {
			double point = g->z[a * g->n + i], d = point - z[a];

			dot += point * z[a];
			far += d * d * (g->rate[a] * g->rate[a]);
		}
		out[i] = LEVEL + g->linear * dot + g->smooth * decay(-0.5 * far);
	}
}

/* The covariance of all points into `out`, n x n. */
static void fill_covariance(const struct gp_process *g, double *out)
{
	double z[GP_AXES];

	for (size_t i = 0; i < g->n; i++) {
		for (size_t a = 0; a < g->n_axes; a++)
			z[a] = g->z[a * g->n + i];
		covariances(g, z, out + i * g->n);
		out[i * g->n + i] += g->noise / g->weight[i] + 1e-10;
	}
}

/* The inverse of a covariance in its place, and the logarithm of its determinant; false: it has none. */
static bool invert(double *k, size_t n, double *out_log_det)
{
	double sum = 0.0;

	if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, k, (lapack_int)n))
		return false;
	for (size_t i = 0; i < n; i++)
		sum += 2.0 * log(k[i * n + i]);
	if (LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, k, (lapack_int)n))
		return false;
	for (size_t i = 0; i < n; i++) /* column i has the rows from i on */
		for (size_t j = i + 1; j < n; j++)
			k[j * n + i] = k[i * n + j];
	*out_log_det = sum;
	return isfinite(sum);
}

static void multiply(const double *k, const double *v, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++) {
		double sum = 0.0;

		for (size_t j = 0; j < n; j++)
			sum += k[i * n + j] * v[j];
		out[i] = sum;
	}
}

int gp_solve(struct gp_process *g, struct err *err)
{
	double log_det;

	g->inverse = mem_array(g->n * g->n, sizeof *g->inverse);
	g->alpha = mem_array(g->n, sizeof *g->alpha);
	if (!g->inverse || !g->alpha)
		return err_nomem(err, "a Gaussian process of %zu points", g->n);
	fill_covariance(g, g->inverse);
	if (!invert(g->inverse, g->n, &log_det))
		return err_fail(err, ERR_NUMERIC, "the covariance of %zu points cannot be inverted", g->n);
	multiply(g->inverse, g->target, g->n, g->alpha);
	return 0;
}

void gp_process_release(struct gp_process *g)
{
	free(g->z);
	free(g->target);
	free(g->weight);
	free(g->alpha);
	free(g->inverse);
}

/* k' A k for a symmetric A. */
static double quadratic(const double *a, const double *k, size_t n)
{
	double all = 0.0;
	size_t i = 0;

	for (; i + WIDE <= n; i += WIDE) {
		double sum[WIDE] = { 0.0 };

		for (size_t j = 0; j < n; j++) {
			const double *row = a + j * n + i;

			SEVERAL
			sum[b] += row[b] * k[j];
		}
		SEVERAL
		all += sum[b] * k[i + b];
	}
	for (; i < n; i++) {
		double sum = 0.0;

		for (size_t j = 0; j < n; j++)
			sum += a[i * n + j] * k[j];
		all += sum * k[i];
	}
	return all;
}

double gp_mean(const struct gp_process *g, const double *z, double *out_variance)
{
	double k[GP_POINTS], mean = 0.0, own = LEVEL + g->smooth + g->noise;

	covariances(g, z, k);
	for (size_t i = 0; i < g->n; i++)
		mean += k[i] * g->alpha[i];
	if (!out_variance)
		return mean;
	for (size_t a = 0; a < g->n_axes; a++)
		own += g->linear * z[a] * z[a];
	*out_variance = fmax(own - quadratic(g->inverse, k, g->n), g->noise);
	return mean;
}

/* ---- the search ---- */

struct search {
	struct gp_process *g; /* its points, or some of them */
	const struct gp_shape *s;
	double *k, *alpha;
	size_t n_at;
};

static void take_place(const struct search *s, const gsl_vector *at)
{
	struct gp_process *g = s->g;

	g->linear = exp(gsl_vector_get(at, AT_LINEAR));
	g->smooth = exp(gsl_vector_get(at, AT_SMOOTH));
	g->noise = exp(gsl_vector_get(at, AT_NOISE));
	for (size_t a = 0; a < g->n_axes; a++)
		g->rate[a] = exp(-gsl_vector_get(at, AT_LENGTH + s->s->length_of[a]));
}

/* d(covariance of i and j) times w into the slopes of what it depends on. */
static void add_slopes(const struct search *s, size_t i, size_t j, double w, double *slope)
{
	const struct gp_process *g = s->g;
	double dot = 0.0, far = 0.0, part[GP_AXES], smooth;

	for (size_t a = 0; a < g->n_axes; a++) {
		double x = g->z[a * g->n + i], y = g->z[a * g->n + j], d = (x - y) * g->rate[a];

		dot += x * y;
		part[a] = d * d;
		far += part[a];
	}
	smooth = w * g->smooth * decay(-0.5 * far);
	slope[AT_LINEAR] += w * g->linear * dot;
	slope[AT_SMOOTH] += smooth;
	for (size_t a = 0; a < g->n_axes; a++)
		slope[AT_LENGTH + s->s->length_of[a]] += smooth * part[a];
}

/* Minus the logarithm of the posterior density, and its slopes (NULL: not wanted). */
static double cost(const struct search *s, const gsl_vector *at, double *slope)
{
	struct gp_process *g = s->g;
	double log_det, spare = (double)s->s->n_rows - (double)g->n, sum = 0.0;

	for (size_t k = 0; k < s->n_at; k++)
		if (!(fabs(gsl_vector_get(at, k)) < 20.0))
			return GSL_POSINF;
	take_place(s, at);
	fill_covariance(g, s->k);
	if (!invert(s->k, g->n, &log_det))
		return GSL_POSINF;
	multiply(s->k, g->target, g->n, s->alpha);
	for (size_t i = 0; i < g->n; i++)
		sum += g->target[i] * s->alpha[i];
	sum += log_det + spare * log(g->noise) + s->s->within / g->noise;
	for (size_t k = 0; k < s->n_at; k++) {
		double d = (gsl_vector_get(at, k) - mean_of(k)) / sd_of(k);

		sum += d * d;
		if (slope)
			slope[k] = 2.0 * d / sd_of(k);
	}
	if (!slope)
		return sum / 2.0;
	for (size_t i = 0; i < g->n; i++) {
		double w = s->k[i * g->n + i] - s->alpha[i] * s->alpha[i];

		add_slopes(s, i, i, w, slope);
		slope[AT_NOISE] += w * g->noise / g->weight[i];
		for (size_t j = 0; j < i; j++)
			add_slopes(s, i, j, 2.0 * (s->k[i * g->n + j] - s->alpha[i] * s->alpha[j]), slope);
	}
	slope[AT_NOISE] += spare - s->s->within / g->noise;
	for (size_t k = 0; k < s->n_at; k++)
		slope[k] /= 2.0;
	return sum / 2.0;
}

static double only_cost(const gsl_vector *at, void *s)
{
	return cost(s, at, NULL);
}

static void both(const gsl_vector *at, void *s, double *out, gsl_vector *out_slope)
{
	double slope[MAX_AT] = { 0 };

	*out = cost(s, at, slope);
	for (size_t k = 0; k < ((struct search *)s)->n_at; k++)
		gsl_vector_set(out_slope, k, slope[k]);
}

static void only_slope(const gsl_vector *at, void *s, gsl_vector *out)
{
	double unused;

	both(at, s, &unused, out);
}

/* The first points of g, which are in random order. */
static int part_of(const struct gp_process *g, struct gp_process *out, struct err *err)
{
	*out = *g;
	out->n = g->n < SEARCH_POINTS ? g->n : SEARCH_POINTS;
	out->alpha = out->inverse = NULL;
	out->z = mem_array(out->n * g->n_axes, sizeof *out->z);
	if (!out->z)
		return err_nomem(err, "%zu points", out->n);
	for (size_t a = 0; a < g->n_axes; a++)
		memcpy(out->z + a * out->n, g->z + a * g->n, out->n * sizeof *out->z);
	return 0;
}

int gp_search(struct gp_process *g, const struct gp_shape *shape, struct err *err)
{
	struct gp_process part;
	struct gp_shape of_part = *shape;
	struct search s = { .g = &part, .s = &of_part, .n_at = AT_LENGTH + shape->n_lengths };
	gsl_multimin_function_fdf f = { only_cost, only_slope, both, s.n_at, &s };
	gsl_multimin_fdfminimizer *m = NULL;
	gsl_vector *from = NULL;
	int rc = part_of(g, &part, err);

	if (rc)
		return rc;
	if (part.n < g->n) { /* the noise of the points that are left out goes with them */
		double runs = 0.0;

		for (size_t i = 0; i < part.n; i++)
			runs += part.weight[i];
		of_part.within *=
			shape->n_rows > g->n ? (runs - (double)part.n) / (double)(shape->n_rows - g->n) : 0.0;
		of_part.n_rows = (size_t)runs;
	}
	s.k = mem_array(part.n * part.n, sizeof *s.k);
	s.alpha = mem_array(part.n, sizeof *s.alpha);
	m = gsl_multimin_fdfminimizer_alloc(gsl_multimin_fdfminimizer_vector_bfgs2, s.n_at);
	from = gsl_vector_alloc(s.n_at);
	if (!s.k || !s.alpha || !m || !from) {
		rc = err_nomem(err, "a Gaussian process of %zu points", part.n);
		goto out;
	}
	for (size_t k = 0; k < s.n_at; k++)
		gsl_vector_set(from, k, mean_of(k));
	gsl_multimin_fdfminimizer_set(m, &f, from, 0.3, 0.1);
	for (int step = 0; step < MAX_STEPS && !rc; step++) {
		rc = err_if_stopped(shape->stop, err);
		if (rc || gsl_multimin_fdfminimizer_iterate(m) ||
		    gsl_multimin_test_gradient(gsl_multimin_fdfminimizer_gradient(m), 0.05) == GSL_SUCCESS)
			break;
	}
	s.g = g;
	take_place(&s, gsl_multimin_fdfminimizer_x(m));
out:
	if (m)
		gsl_multimin_fdfminimizer_free(m);
	if (from)
		gsl_vector_free(from);
	free(s.k);
	free(s.alpha);
	free(part.z);
	return rc;
}
