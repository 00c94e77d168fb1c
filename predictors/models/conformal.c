/* Residuals in, bounds out. train.c fits it, decide() reads it, model_write.c stores it. */
#include "predictors/models/conformal.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"

/* Fits spread(p) = base + slope max(p, 0) to the |residuals| by least squares with both >= 0. With
 * two unknowns the constrained optimum is the free one, or lies on one of the two axes. */
static void spread_fit(const double *residual, const double *predicted, size_t n, double *out_base,
		       double *out_slope)
{
	double m_top = 0.0, r_top = 0.0, m_mean = 0.0, r_mean = 0.0, mm = 0.0, mr = 0.0;
	double base, slope, m_squares = 0.0, m_products = 0.0;

	*out_base = 1.0;
	*out_slope = 0.0;
	for (size_t i = 0; i < n; i++) {
		m_top = fmax(m_top, predicted[i]);
		r_top = fmax(r_top, fabs(residual[i]));
	}
	if (!(r_top > 0.0))
		return; /* no residual at all: any positive spread gives the bound U = p */
	if (!(m_top > 0.0))
		m_top = 1.0; /* every m is 0 */

	/* both scaled into 0..1: squares of values such as 1e200 would overflow */
	for (size_t i = 0; i < n; i++) {
		m_mean += fmax(predicted[i], 0.0) / m_top / (double)n;
		r_mean += fabs(residual[i]) / r_top / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		double m = fmax(predicted[i], 0.0) / m_top, r = fabs(residual[i]) / r_top;

		mm += (m - m_mean) * (m - m_mean);
		mr += (m - m_mean) * (r - r_mean);
		m_squares += m * m;
		m_products += m * r;
	}
	slope = mm > 0.0 ? mr / mm : 0.0;
	base = r_mean - slope * m_mean;
	if (slope < 0.0 || base < 0.0) {
		double flat = 0.0, steep = 0.0, k = m_squares > 0.0 ? m_products / m_squares : 0.0;

		for (size_t i = 0; i < n; i++) {
			double m = fmax(predicted[i], 0.0) / m_top, r = fabs(residual[i]) / r_top;
			flat += (r - r_mean) * (r - r_mean);
			steep += (r - k * m) * (r - k * m);
		}
		base = flat <= steep ? r_mean : 0.0;
		slope = flat <= steep ? 0.0 : k;
	}
	/* a prediction near 0 must keep some width, or its score is a division by nothing */
	base = fmax(base, 1e-3 * r_mean) * r_top;
	slope = slope * (r_top / m_top);
	if (base > 0.0 && isfinite(base) && isfinite(slope)) {
		*out_base = base;
		*out_slope = slope;
	}
}

int conformal_fit(const double *y, const double *predicted, size_t n, bool normalise, struct conformal *out,
		  struct err *err)
{
	struct conformal c = { .base = 1.0 };
	double *residual = mem_array(n, sizeof *residual), *p = mem_array(n, sizeof *p);
	int rc = 0;

	if (!residual || !p) {
		rc = err_nomem(err, "%zu residuals", n);
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		if (isnan(predicted[i]))
			continue;
		p[c.n] = predicted[i];
		residual[c.n] = y[i] - predicted[i];
		if (!isfinite(residual[c.n])) {
			rc = err_fail(err, ERR_NUMERIC,
				      "row %zu: observed %g, predicted %g: no finite residual", i, y[i],
				      predicted[i]);
			goto out;
		}
		c.n++;
	}
	if (normalise)
		spread_fit(residual, p, c.n, &c.base, &c.slope);
	for (size_t i = 0; i < c.n; i++) {
		double spread = c.base + c.slope * fmax(p[i], 0.0);

		residual[i] /= spread;
		if (!isfinite(residual[i]) || !isfinite(spread)) {
			rc = err_fail(err, ERR_NUMERIC, "prediction %g has a spread of %g: no finite score",
				      p[i], spread);
			goto out;
		}
	}
	if (c.n) {
		stats_sort(residual, c.n);
		c.score = residual;
		residual = NULL;
	}
	conformal_set_groups(&c, c.n);
	*out = c;
out:
	free(residual);
	free(p);
	return rc;
}

int conformal_take(double *score, size_t n, size_t groups, struct conformal *out, struct err *err)
{
	struct conformal c = { .base = 1.0, .log = true, .score = score, .n = n };

	for (size_t i = 0; i < n; i++)
		if (!isfinite(score[i]))
			return err_fail(err, ERR_NUMERIC, "residual %zu is not finite", i);
	stats_sort(score, n);
	conformal_set_groups(&c, groups);
	*out = c;
	return 0;
}

void conformal_release(struct conformal *c)
{
	if (!c)
		return;
	free(c->score);
	*c = (struct conformal){ .base = 1.0 };
}

/* ceil((n+1) confidence). 10 x 0.9 and 20 x (1 - 0.05) are whole numbers that floating point may put
 * a hair above, which would ask for one residual more than there need be; 1e-12 covers that. */
static double rank_of(size_t n, double confidence)
{
	double r = ceil(((double)n + 1.0) * confidence * (1.0 - 1e-12));

	return r < 1.0 ? 1.0 : r;
}

size_t conformal_needed(double confidence)
{
	double c = confidence * (1.0 - 1e-12);
	size_t n;

	if (!(confidence > 0.0 && confidence < 1.0))
		return SIZE_MAX;
	n = (size_t)(c / (1.0 - c)); /* rank <= n is n >= c / (1 - c) */
	n = n > 1 ? n - 1 : 1;
	while (rank_of(n, confidence) > (double)n)
		n++;
	return n;
}

size_t conformal_least(double confidence)
{
	size_t needed = conformal_needed(confidence);

	return needed == SIZE_MAX ? needed : needed / 3 > 3 ? needed / 3 : 3;
}

/* ---- quantiles ---- */

/* The score of the rank, which is one among the groups: (g + 1) c of g, as a share of all residuals. */
static double by_rank(const struct conformal *c, double confidence)
{
	double share = rank_of(c->groups, confidence) / (double)c->groups;
	size_t at = (size_t)ceil(share * (double)c->n * (1.0 - 1e-12));

	return c->score[at ? at - 1 : 0];
}

static double by_student(const struct conformal *c, double confidence)
{
	double g = (double)c->groups;

	return c->mean + gsl_cdf_tdist_Pinv(confidence, g - 1.0) * c->sd * sqrt(1.0 + 1.0 / g);
}

static double quantile_of(const struct conformal *c, double confidence)
{
	double weight = ((double)c->groups - CONFORMAL_FEW) / (CONFORMAL_MANY - CONFORMAL_FEW);

	if (c->groups < conformal_least(confidence))
		return NAN;
	weight = weight < 0.0 || c->groups < conformal_needed(confidence) ? 0.0 : fmin(weight, 1.0);
	return (weight > 0.0 ? weight * by_rank(c, confidence) : 0.0) +
	       (weight < 1.0 ? (1.0 - weight) * by_student(c, confidence) : 0.0);
}

static double grid_confidence(size_t i)
{
	return i < 99 ? (double)(i + 1) / 100.0 : i == 99 ? 0.995 : 0.999;
}

void conformal_set_groups(struct conformal *c, size_t groups)
{
	double mean = 0.0, squares = 0.0;

	c->groups = groups < c->n ? groups : c->n;
	for (size_t i = 0; i < c->n; i++) { /* Welford: exact where all are equal */
		double e = c->score[i] - mean;

		mean += e / (double)(i + 1);
		squares += e * (c->score[i] - mean);
	}
	c->mean = mean;
	c->sd = c->n > 1 ? sqrt(squares / ((double)c->n - 1.0)) : 0.0;
	for (size_t i = 0; i < CONFORMAL_GRID; i++) {
		c->at[i] = quantile_of(c, grid_confidence(i));
		/* where ranks give way to t, the larger confidence must not get the smaller bound */
		if (i && c->at[i] < c->at[i - 1])
			c->at[i] = c->at[i - 1];
	}
}

int conformal_quantile(const struct conformal *c, double confidence, double *out_q, struct err *err)
{
	double percent = confidence * 100.0, q;

	if (!(confidence > 0.0 && confidence < 1.0))
		return err_fail(err, ERR_ARG, "confidence %g: need more than 0 and less than 1", confidence);
	if (!c->n) /* nothing was held out, and the grid was never filled */
		q = NAN;
	else if (percent >= 1.0 && percent <= 99.0 && fabs(percent - round(percent)) < 1e-9)
		q = c->at[(size_t)round(percent) - 1];
	else
		q = quantile_of(c, confidence);
	if (isnan(q))
		return err_fail(err, ERR_NODATA,
				"%zu independent residuals cannot carry a confidence of %g: %zu are needed",
				c->groups, confidence, conformal_least(confidence));
	*out_q = q;
	return 0;
}

int conformal_save(const struct conformal *c, struct writer *w)
{
	write_u64(w, c->n);
	write_f64(w, c->base);
	write_f64(w, c->slope);
	for (size_t i = 0; i < c->n; i++)
		write_f64(w, c->score[i]);
	return w->out.failed ? -ERR_NOMEM : 0;
}

int conformal_load(struct reader *r, struct conformal *out, struct err *err)
{
	struct conformal c = { 0 };
	uint64_t n = read_u64(r);

	c.base = read_f64(r);
	c.slope = read_f64(r);
	if (r->failed)
		return err_fail(err, ERR_FORMAT, "residuals end at offset %zu, before their count and spread",
				r->at);
	if (n > read_left(r) / 8) /* also the limit on what is allocated: the bytes are there */
		return err_fail(err, ERR_FORMAT, "%llu residuals announced, %zu bytes left for them",
				(unsigned long long)n, read_left(r));
	if (!(c.base > 0.0 && c.slope >= 0.0 && isfinite(c.base) && isfinite(c.slope)))
		return err_fail(err, ERR_FORMAT, "spread %g + %g p: need base > 0 and slope >= 0", c.base,
				c.slope);
	c.n = (size_t)n;
	if (c.n) {
		c.score = mem_array(c.n, sizeof *c.score);
		if (!c.score)
			return err_nomem(err, "%zu residuals", c.n);
	}
	for (size_t i = 0; i < c.n; i++) {
		c.score[i] = read_f64(r);
		if (!isfinite(c.score[i]) || (i && c.score[i] < c.score[i - 1])) {
			free(c.score);
			return err_fail(err, ERR_FORMAT, "residual %zu is not finite and ascending", i);
		}
	}
	conformal_set_groups(&c, c.n);
	*out = c;
	return 0;
}
