/* Residual checks of an analysis of variance. See anova.h. */
#include "predictors/anova/anova.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/draw/frame.h"
#include "common/mem.h"

#define LOG_RATIO 3.0 /* values nearer to each other than this have little use for a logarithm */
#define LOG_P 0.01
#define LOG_SPREAD 0.2 /* a correlation below is no reason, however sure */
#define NORMAL_LEAST 0.95
#define MOST_POINTS 2000 /* drawn in one panel */

struct ranked {
	double v;
	uint32_t at;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->v != y->v)
		return x->v < y->v ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Ranks from 1, ties share their mean; work has room for n. */
static void rank(const double *v, size_t n, struct ranked *work, double *out)
{
	for (size_t i = 0; i < n; i++)
		work[i] = (struct ranked){ v[i], (uint32_t)i };
	qsort(work, n, sizeof *work, by_value);
	for (size_t i = 0, to; i < n; i = to) {
		for (to = i; to < n && work[to].v == work[i].v; to++)
			;
		for (size_t k = i; k < to; k++)
			out[work[k].at] = ((double)i + 1.0 + (double)to) / 2.0;
	}
}

static double correlation(const double *x, const double *y, size_t n)
{
	double mx = 0.0, my = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;

	for (size_t i = 0; i < n; i++) {
		mx += x[i] / (double)n;
		my += y[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		yy += (y[i] - my) * (y[i] - my);
		xy += (x[i] - mx) * (y[i] - my);
	}
	return xx > 0.0 && yy > 0.0 ? xy / sqrt(xx * yy) : 0.0;
}

/* What normal residuals of these ranks would be (Blom, 1958). */
static double normal_quantile(double of_rank, size_t n)
{
	return gsl_cdf_ugaussian_Pinv((of_rank - 0.375) / ((double)n + 0.25));
}

struct scratch {
	double *residual, *size, *rank_a, *rank_b; /* n each */
	struct ranked *work;
};

static int scratch_make(struct scratch *s, const struct anova *a, struct err *err)
{
	s->residual = mem_array(a->n, 4 * sizeof *s->residual);
	s->work = mem_array(a->n, sizeof *s->work);
	if (!s->residual || !s->work) {
		free(s->residual);
		free(s->work);
		return err_nomem(err, "the residuals of %zu runs", a->n);
	}
	s->size = s->residual + a->n;
	s->rank_a = s->size + a->n;
	s->rank_b = s->rank_a + a->n;
	for (size_t i = 0; i < a->n; i++) {
		s->residual[i] = a->y[i] - a->fitted[i];
		s->size[i] = fabs(s->residual[i]);
	}
	return 0;
}

static void scratch_release(struct scratch *s)
{
	free(s->residual);
	free(s->work);
}

static double value_ratio(const struct anova *a)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < a->n; i++) {
		low = fmin(low, a->log ? exp(a->y[i]) : a->y[i]);
		high = fmax(high, a->log ? exp(a->y[i]) : a->y[i]);
	}
	return low > 0.0 ? high / low : NAN;
}

int anova_check(const struct anova *a, struct anova_check *out, struct err *err)
{
	struct scratch s;
	double df = (double)a->n - 2.0, t;
	int rc;

	*out = (struct anova_check){ .none = !(a->residual_ss > 0.0), .ratio = value_ratio(a) };
	if (out->none)
		return 0;
	rc = scratch_make(&s, a, err);
	if (rc)
		return rc;
	rank(a->fitted, a->n, s.work, s.rank_a);
	rank(s.size, a->n, s.work, s.rank_b);
	out->spread = correlation(s.rank_a, s.rank_b, a->n);
	t = out->spread * sqrt(df / fmax(1.0 - out->spread * out->spread, 1e-12));
	out->spread_p = df >= 1.0 ? fmin(2.0 * gsl_cdf_tdist_Q(fabs(t), df), 1.0) : 1.0;
	out->wants_log = !a->log && out->spread > LOG_SPREAD && out->spread_p < LOG_P &&
			 out->ratio >= LOG_RATIO;
	rank(s.residual, a->n, s.work, s.rank_a);
	for (size_t i = 0; i < a->n; i++)
		s.rank_a[i] = normal_quantile(s.rank_a[i], a->n);
	out->normal = correlation(s.rank_a, s.residual, a->n);
	for (size_t i = 0; i < a->n; i++)
		s.size[a->moment[i]] = s.residual[i];
	out->after = a->n > 2 ? correlation(s.size, s.size + 1, a->n - 1) : 0.0;
	out->after_limit = 1.96 / sqrt((double)a->n);
	scratch_release(&s);
	return 0;
}

void anova_check_text(const struct anova *a, const struct anova_check *c, struct strbuf *out)
{
	if (c->none)
		return;
	if (c->wants_log)
		strbuf_printf(out,
			      "The residuals spread more where the values are larger (rank correlation %.2f, "
			      "and the "
			      "largest value is %.3g times the smallest): add --log. ",
			      c->spread, c->ratio);
	else if (c->spread_p < LOG_P && fabs(c->spread) > LOG_SPREAD)
		strbuf_printf(out,
			      "The residuals do not spread alike: %s where the values are larger (rank "
			      "correlation %.2f)%s. ",
			      c->spread > 0.0 ? "more" : "less", c->spread,
			      a->log && c->spread < 0.0 ? "; the logarithm may be too much" : "");
	else
		strbuf_puts(out, "The residuals spread alike at small and large values. ");
	strbuf_printf(out, "They are %snormal (correlation with normal quantiles %.3f)",
		      c->normal >= NORMAL_LEAST ? "nearly " : "not ", c->normal);
	if (fabs(c->after) > c->after_limit)
		strbuf_printf(
			out,
			", and a run resembles the one before it (correlation %.2f; chance stays within "
			"%.2f), so the machine changed while it was measured",
			c->after, c->after_limit);
	else
		strbuf_puts(out, ", and do not depend on the order of the runs");
	strbuf_puts(out, ".\n");
}

/* ---- pictures ---- */

/* Mean and standard deviation of each setting that was run more than once; returns how many. `at` sorts the
 * runs by setting. */
static size_t spread_of_settings(const struct anova *a, struct ranked *at, struct svg_point *out)
{
	size_t n = 0;

	/* the model knows a setting by its fitted value, which is the same for all its runs */
	for (size_t i = 0; i < a->n; i++)
		at[i] = (struct ranked){ a->fitted[i], (uint32_t)i };
	qsort(at, a->n, sizeof *at, by_value);
	for (size_t i = 0, to; i < a->n; i = to) {
		double mean = 0.0, squares = 0.0;

		for (to = i; to < a->n && at[to].v == at[i].v; to++)
			mean += a->y[at[to].at];
		mean /= (double)(to - i);
		for (size_t k = i; k < to; k++)
			squares += (a->y[at[k].at] - mean) * (a->y[at[k].at] - mean);
		if (to - i > 1)
			out[n++] = (struct svg_point){ mean, sqrt(squares / (double)(to - i - 1)) };
	}
	return n;
}

int anova_residual_plot(const struct anova *a, const struct anova_check *c, struct strbuf *out,
			struct err *err)
{
	struct sheet_panel panel[4] = { 0 };
	struct svg_point *point = mem_array(a->n, 4 * sizeof *point), line[2];
	struct strbuf see = { 0 };
	struct scratch s = { 0 };
	char title[320], name[256];
	size_t shown = a->n < MOST_POINTS ? a->n : MOST_POINTS, n_spread;
	int rc = point ? scratch_make(&s, a, err) : err_nomem(err, "a plot");

	if (rc) {
		free(point);
		return rc;
	}
	snprintf(name, sizeof name, "%s%.200s%s", a->log ? "log(" : "", a->target, a->log ? ")" : "");
	snprintf(title, sizeof title, "Residuals of %s", name);
	rank(s.residual, a->n, s.work, s.rank_a);
	for (size_t k = 0; k < shown; k++) {
		size_t i = k * a->n / shown;

		point[k] = (struct svg_point){ a->fitted[i], s.residual[i] };
		point[a->n + k] = (struct svg_point){ normal_quantile(s.rank_a[i], a->n), s.residual[i] };
		point[2 * a->n + k] = (struct svg_point){ a->moment[i] + 1.0, s.residual[i] };
	}
	n_spread = spread_of_settings(a, s.work, point + 3 * a->n);
	for (int i = 0; i < 2; i++) { /* normal residuals with this spread */
		double q = normal_quantile(i ? (double)a->n : 1.0, a->n);

		line[i] = (struct svg_point){ q, q * sqrt(a->residual_ss / (double)a->n) };
	}
	panel[0] = (struct sheet_panel){ .title = "Against the fitted value",
					 .note = "a shape would be something that the model misses",
					 .x_label = "fitted",
					 .y_label = "residual",
					 .point = point,
					 .n = shown,
					 .zero = true };
	panel[1] = (struct sheet_panel){ .title = "Normal quantiles",
					 .note = "points of a normal distribution are on the line",
					 .x_label = "normal quantile",
					 .y_label = "residual",
					 .point = point + a->n,
					 .n = shown,
					 .line = line,
					 .n_line = 2 };
	panel[2] = (struct sheet_panel){ .title = "In the order of the runs",
					 .note = "a trend would be a machine that changed",
					 .x_label = "run",
					 .y_label = "residual",
					 .point = point + 2 * a->n,
					 .n = shown,
					 .zero = true };
	panel[3] = (struct sheet_panel){ .title = "Spread against mean",
					 .note = n_spread ? "rising points ask for a logarithm"
							  : "no setting was run more than once",
					 .x_label = "mean of a setting",
					 .y_label = "standard deviation",
					 .point = point + 3 * a->n,
					 .n = n_spread };
	anova_check_text(a, c, &see);
	while (see.len && see.text[see.len - 1] == '\n')
		see.text[--see.len] = '\0';
	sheet_draw(out, title, strbuf_text(&see), panel, n_spread ? 4 : 3);
	if (out->failed || see.failed)
		rc = err_nomem(err, "a plot");
	strbuf_release(&see);
	scratch_release(&s);
	free(point);
	return rc;
}
