/* The tree-structured Parzen estimator. See tune.h. */
#include "automl/tune.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define CANDIDATES 24
#define GOOD_MOST 25 /* trials that count as good at most */
#define START_MOST 20

struct tune {
	struct tune_params p;
	size_t n_start; /* trials that are spread over the prior */
	size_t n; /* trials that were told */
	double *z; /* budget x n_priors, latent */
	double *loss;
	uint32_t *order; /* trials by loss */
	double *offset; /* of the even spread, per prior */
	double *centre, *width; /* scratch of one density: budget + 1 */
	struct rng rng;
};

int tune_new(const struct tune_params *p, struct tune **out, struct err *err)
{
	struct tune *t = mem_calloc(1, sizeof *t);
	size_t n = p->budget + 1;

	if (t) {
		*t = (struct tune){ .p = *p, .rng = rng_stream(p->seed, 4711) };
		t->z = mem_calloc(n * (p->n_priors + 1), sizeof *t->z);
		t->loss = mem_calloc(n, sizeof *t->loss);
		t->order = mem_calloc(n, sizeof *t->order);
		t->offset = mem_calloc(p->n_priors + 1, sizeof *t->offset);
		t->centre = mem_calloc(n, sizeof *t->centre);
		t->width = mem_calloc(n, sizeof *t->width);
	}
	if (!t || !t->z || !t->loss || !t->order || !t->offset || !t->centre || !t->width) {
		tune_free(t);
		return err_nomem(err, "%zu trials", p->budget);
	}
	t->n_start = p->budget / 4 < 5 ? 5 : p->budget / 4 > START_MOST ? START_MOST : p->budget / 4;
	for (size_t j = 0; j < p->n_priors; j++)
		t->offset[j] = rng_uniform(&t->rng);
	*out = t;
	return 0;
}

void tune_free(struct tune *t)
{
	if (!t)
		return;
	free(t->z);
	free(t->loss);
	free(t->order);
	free(t->offset);
	free(t->centre);
	free(t->width);
	free(t);
}

/* ---- one density: a mixture of normals, cut at the ends of the prior, with the prior itself among them
 * ---- */

struct density {
	const struct prior *prior;
	size_t n;
	const double *centre, *width;
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double prior_centre(const struct prior *p)
{
	return p->shape == PRIOR_NORMAL ? p->a : 0.5 * (p->a + p->b);
}

static double prior_width(const struct prior *p)
{
	return p->shape == PRIOR_NORMAL ? p->b : p->b - p->a;
}

/* The trials order[from..to) of prior j. A normal is as wide as the larger distance to its neighbours, within
 * limits; the prior's own is as wide as the prior. */
static struct density density_of(struct tune *t, size_t j, size_t from, size_t to)
{
	const struct prior *p = &t->p.prior[j];
	double all = prior_width(p), least;
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		t->centre[n++] = t->z[t->order[i] * t->p.n_priors + j];
	t->centre[n++] = prior_centre(p);
	qsort(t->centre, n, sizeof *t->centre, ascending);
	least = all / fmin(100.0, 1.0 + (double)n);
	for (size_t i = 0; i < n; i++) {
		double below = i ? t->centre[i] - t->centre[i - 1] : 0.0;
		double above = i + 1 < n ? t->centre[i + 1] - t->centre[i] : 0.0;
		double w = fmax(below, above);

		t->width[i] = t->centre[i] == prior_centre(p) ? all : fmin(fmax(w, least), all);
	}
	return (struct density){ p, n, t->centre, t->width };
}

static double draw_from(const struct density *d, struct rng *rng)
{
	size_t k = rng_below(rng, (uint32_t)d->n);

	for (int tries = 0; tries < 100; tries++) {
		double z = d->centre[k] + d->width[k] * rng_normal(rng);

		if (d->prior->shape == PRIOR_NORMAL || (z >= d->prior->a && z <= d->prior->b))
			return z;
	}
	return d->centre[k];
}

/* The mixture's mass in [low, high], or its density where they are equal. */
static double mass(const struct density *d, double low, double high)
{
	const struct prior *p = d->prior;
	double sum = 0.0;

	for (size_t k = 0; k < d->n; k++) {
		double c = d->centre[k], w = d->width[k];
		double inside = p->shape == PRIOR_NORMAL ? 1.0
							 : gsl_cdf_ugaussian_P((p->b - c) / w) -
								   gsl_cdf_ugaussian_P((p->a - c) / w);
		double at = low == high ? exp(-0.5 * (low - c) * (low - c) / (w * w)) / w
					: gsl_cdf_ugaussian_P((high - c) / w) -
						  gsl_cdf_ugaussian_P((low - c) / w);

		sum += inside > 0.0 ? at / inside : 0.0;
	}
	return log(sum / (double)d->n + 1e-300);
}

/* The latent values that round to the same value as z does. */
static void bounds_of(const struct prior *p, double z, double *low, double *high)
{
	double v = prior_value(p, z), half = 0.5 * p->quantum;

	*low = *high = z;
	if (p->quantum <= 0.0)
		return;
	*low = p->log ? (v - half > 0.0 ? log(v - half) : -1e3) : v - half;
	*high = p->log ? log(v + half) : v + half;
	if (p->shape == PRIOR_UNIFORM) {
		*low = fmax(*low, p->a);
		*high = fmin(*high, p->b);
	}
	if (!(*low < *high))
		*low = *high = z;
}

/* ---- trials ---- */

static double start_value(const struct tune *t, size_t j)
{
	/* Korobov's lattice with a random shift: even in each hyper-parameter and in pairs of them. */
	double step = j == 0 ? 1.0 / (double)t->n_start : fmod(pow(0.7548776662466927, (double)j), 1.0);
	double u = fmod((double)t->n * step + t->offset[j], 1.0);

	return prior_at(&t->p.prior[j], fmin(fmax(u, 1e-6), 1.0 - 1e-6));
}

static void sort_trials(struct tune *t)
{
	for (size_t i = t->n - 1; i > 0 && t->loss[t->order[i]] < t->loss[t->order[i - 1]]; i--) {
		uint32_t o = t->order[i];

		t->order[i] = t->order[i - 1];
		t->order[i - 1] = o;
	}
}

static double best_candidate(struct tune *t, size_t j, size_t good)
{
	const struct prior *p = &t->p.prior[j];
	double z[CANDIDATES], gain[CANDIDATES], low, high;
	struct density d = density_of(t, j, 0, good);
	size_t best = 0;

	for (size_t c = 0; c < CANDIDATES; c++) {
		z[c] = draw_from(&d, &t->rng);
		bounds_of(p, z[c], &low, &high);
		gain[c] = mass(&d, low, high);
	}
	d = density_of(t, j, good, t->n);
	for (size_t c = 0; c < CANDIDATES; c++) {
		bounds_of(p, z[c], &low, &high);
		gain[c] -= mass(&d, low, high);
		if (gain[c] > gain[best])
			best = c;
	}
	return z[best];
}

void tune_ask(struct tune *t, double *out_value)
{
	double *z = t->z + t->n * t->p.n_priors;
	size_t good = (size_t)ceil(0.25 * sqrt((double)t->n) + 0.1 * (double)t->n);

	good = good > GOOD_MOST ? GOOD_MOST : good < 1 ? 1 : good;
	for (size_t j = 0; j < t->p.n_priors; j++) {
		if (t->p.random)
			z[j] = prior_draw(&t->p.prior[j], &t->rng);
		else if (t->n < t->n_start)
			z[j] = start_value(t, j);
		else
			z[j] = best_candidate(t, j, good);
		out_value[j] = prior_value(&t->p.prior[j], z[j]);
	}
}

void tune_tell(struct tune *t, double loss)
{
	if (t->n == t->p.budget)
		return;
	t->loss[t->n] = isnan(loss) ? INFINITY : loss;
	t->order[t->n] = (uint32_t)t->n;
	t->n++;
	sort_trials(t);
}

double tune_best(const struct tune *t, double *out_value)
{
	if (!t->n || isinf(t->loss[t->order[0]]))
		return INFINITY;
	for (size_t j = 0; j < t->p.n_priors; j++)
		out_value[j] = prior_value(&t->p.prior[j], t->z[t->order[0] * t->p.n_priors + j]);
	return t->loss[t->order[0]];
}
