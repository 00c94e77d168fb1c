/* From rows and levels to sums of squares: coding them as a design, fitting it with and without each term
 * (lsq.c), and the probabilities (by GSL). See anova.h; anova_data.c chooses the rows. */
#define _GNU_SOURCE /* qsort_r */
#include "predictors/anova/anova_internal.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "predictors/models/lsq.h"

/* ---- the design ---- */

static size_t own_columns(const struct anova_factor *f)
{
	return f->levels && !f->signs ? f->n_levels - 1 : 1;
}

/* Terms and columns of all orders up to `order`; saturates. */
static void count_design(const struct anova *a, size_t order, double *out_terms, double *out_columns)
{
	double terms[ANOVA_MAX_FACTORS + 1] = { 1.0 }, columns[ANOVA_MAX_FACTORS + 1] = { 1.0 };

	for (size_t i = 0; i < a->n_factors; i++)
		for (size_t k = order; k > 0; k--) {
			terms[k] += terms[k - 1];
			columns[k] += columns[k - 1] * (double)own_columns(&a->factor[i]);
		}
	*out_terms = *out_columns = 0.0;
	for (size_t k = 1; k <= order; k++) {
		*out_terms += terms[k];
		*out_columns += columns[k];
	}
}

static double column_value(const struct anova_factor *f, size_t row, size_t which)
{
	if (f->signs)
		return f->at[row] ? 1.0 : -1.0;
	if (f->levels)
		return f->at[row] == which + 1 ? 1.0 : 0.0; /* level 0 is the reference */
	return f->value[f->at[row]];
}

/* Column c of a term, in one row: the last factor's turn fastest. */
static double term_value(const struct anova *a, const struct anova_term *t, size_t c, size_t row)
{
	double v = 1.0;

	for (size_t k = a->n_factors; k-- > 0;)
		if (t->factors >> k & 1) {
			v *= column_value(&a->factor[k], row, c % own_columns(&a->factor[k]));
			c /= own_columns(&a->factor[k]);
		}
	return v;
}

/* Writes the columns of one term. */
static int add_columns(struct anova_work *w, const struct anova_term *t, struct err *err)
{
	const struct anova *a = w->a;

	for (size_t c = 0; c < t->n_columns; c++) {
		double *x = w->design + (t->first + c) * a->n;
		struct strbuf name = { .text = NULL };
		size_t which[ANOVA_MAX_FACTORS] = { 0 }, rest = c;

		for (size_t k = a->n_factors; k-- > 0;)
			if (t->factors >> k & 1) {
				which[k] = rest % own_columns(&a->factor[k]);
				rest /= own_columns(&a->factor[k]);
			}
		for (size_t i = 0; i < a->n; i++) {
			x[i] = term_value(a, t, c, i);
			if (!isfinite(x[i]))
				return err_fail(err, ERR_NUMERIC,
						"the product %.100s is too large for a double", t->name);
		}
		for (size_t k = 0; k < a->n_factors; k++) {
			if (!(t->factors >> k & 1))
				continue;
			strbuf_printf(&name, "%s%s", name.len ? ":" : "", a->factor[k].name);
			if (a->factor[k].levels && !a->factor[k].signs)
				strbuf_printf(&name, "=%s", a->factor[k].label[which[k] + 1]);
		}
		w->column_name[t->first + c] = name.failed ? NULL : mem_strdup(strbuf_text(&name));
		strbuf_release(&name);
		if (!w->column_name[t->first + c])
			return err_nomem(err, "the analysis of variance");
	}
	return 0;
}

static int add_term(struct anova_work *w, uint32_t factors, struct err *err)
{
	struct anova *a = w->a;
	struct anova_term *t = &a->term[a->n_terms];
	struct strbuf name = { .text = NULL };

	*t = (struct anova_term){
		.factors = factors, .first = w->n_columns, .n_columns = 1, .f = NAN, .p = NAN
	};
	for (size_t k = 0; k < a->n_factors; k++)
		if (factors >> k & 1) {
			t->n_columns *= own_columns(&a->factor[k]);
			strbuf_printf(&name, "%s%s", name.len ? ":" : "", a->factor[k].name);
		}
	t->name = name.failed ? NULL : mem_strdup(strbuf_text(&name));
	strbuf_release(&name);
	if (!t->name)
		return err_nomem(err, "the analysis of variance");
	a->n_terms++;
	w->n_columns += t->n_columns;
	return add_columns(w, t, err);
}

/* All products of `order` factors, in dictionary order. */
static int add_terms(struct anova_work *w, uint32_t have, size_t next, size_t order, struct err *err)
{
	int rc = 0;

	if (!order)
		return add_term(w, have, err);
	for (size_t k = next; k + order <= w->a->n_factors && !rc; k++)
		rc = add_terms(w, have | (uint32_t)1 << k, k + 1, order - 1, err);
	return rc;
}

static int build_design(struct anova_work *w, struct err *err)
{
	struct anova *a = w->a;
	double terms, columns;
	size_t asked = w->p->order && w->p->order < a->n_factors ? w->p->order : a->n_factors;
	int rc = 0;

	a->order = asked;
	for (;; a->order--) {
		count_design(a, a->order, &terms, &columns);
		if (terms <= ANOVA_MAX_TERMS && columns <= ANOVA_MAX_COLUMNS)
			break;
		if (a->order == 1)
			return err_fail(err, ERR_NODATA,
					"the factors have %.0f levels in all, more than %d: leave some out "
					"or take them as numbers",
					columns, ANOVA_MAX_COLUMNS);
	}
	if (a->order < asked)
		rc = anova_note(a, err,
				"interactions of order %zu would make more than %d terms or %d columns: "
				"reduced to order %zu",
				asked, ANOVA_MAX_TERMS, ANOVA_MAX_COLUMNS, a->order);
	if (rc)
		return rc;
	if (a->n > LSQ_MAX_CELLS / (size_t)columns)
		return err_fail(err, ERR_NODATA, "%zu rows and %.0f columns are too many: lower the order",
				a->n, columns);
	a->term = mem_calloc((size_t)terms, sizeof *a->term);
	w->column_name = mem_calloc((size_t)columns, sizeof *w->column_name);
	w->design = mem_array(a->n * (size_t)columns, sizeof *w->design);
	if (!a->term || !w->column_name || !w->design)
		return err_nomem(err, "the analysis of variance");
	for (size_t order = 1; order <= a->order && !rc; order++)
		rc = add_terms(w, 0, 0, order, err);
	return rc;
}

/* ---- fitting ---- */

static size_t term_order(const struct anova_term *t)
{
	return (size_t)__builtin_popcount(t->factors);
}

/* Cuts interactions back until the whole model leaves something over; out_fit is the whole model. */
static int fit_whole(struct anova_work *w, const struct lsq_problem *problem, size_t *column,
		     struct lsq_fit *out_fit, struct err *err)
{
	struct anova *a = w->a;
	size_t asked = a->order;
	int rc;

	for (;; a->order--) {
		size_t n = 0;

		while (a->n_terms && term_order(&a->term[a->n_terms - 1]) > a->order)
			free(a->term[--a->n_terms].name);
		n = a->term[a->n_terms - 1].first + a->term[a->n_terms - 1].n_columns;
		for (size_t j = 0; j < n; j++)
			column[j] = j;
		rc = lsq_solve(problem, column, n, out_fit, err);
		if (rc)
			return rc;
		if (out_fit->rank + 1 < a->n)
			break;
		lsq_fit_release(out_fit);
		if (a->order == 1)
			return err_fail(
				err, ERR_NODATA,
				"%zu rows are too few for %zu factors: no residual is left to test against",
				a->n, a->n_factors);
	}
	if (a->order < asked)
		return anova_note(a, err,
				  "interactions above order %zu leave no residual: reduced from order %zu",
				  a->order, asked);
	return 0;
}

/* The columns of all terms that do not contain t, then (with_t) those of t. */
static size_t columns_beside(const struct anova *a, const struct anova_term *t, bool with_t, size_t *column)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_terms; i++)
		for (size_t c = 0;
		     (a->term[i].factors & t->factors) != t->factors && c < a->term[i].n_columns; c++)
			column[n++] = a->term[i].first + c;
	for (size_t c = 0; with_t && c < t->n_columns; c++)
		column[n++] = t->first + c;
	return n;
}

static double f_probability(double f, size_t df, size_t residual_df)
{
	return isnan(f) ? NAN : gsl_cdf_fdist_Q(f, (double)df, (double)residual_df);
}

static int test_term(struct anova_work *w, const struct lsq_problem *problem, struct anova_term *t,
		     size_t *column, struct err *err)
{
	struct anova *a = w->a;
	struct lsq_fit without = { .rank = 0 }, with = { .rank = 0 };
	int rc = lsq_solve(problem, column, columns_beside(a, t, false, column), &without, err);

	if (!rc)
		rc = lsq_solve(problem, column, columns_beside(a, t, true, column), &with, err);
	if (!rc) {
		t->df = with.rank > without.rank ? with.rank - without.rank : 0;
		/* more columns cannot fit worse: what is below 0 is rounding */
		t->ss = t->df ? fmax(without.rss - with.rss, 0.0) : 0.0;
		t->share = t->ss / a->total_ss;
		t->ms = t->df ? t->ss / (double)t->df : 0.0;
		if (t->df && a->residual_ms > 0.0)
			t->f = t->ms / a->residual_ms;
		t->p = f_probability(t->f, t->df, a->residual_df);
	}
	lsq_fit_release(&without);
	lsq_fit_release(&with);
	return rc;
}

/* Half the width of a 95 % interval, in standard errors. */
static double t_quantile(size_t df)
{
	return gsl_cdf_tdist_Pinv(0.975, (double)df);
}

static struct anova_coefficient test_coefficient(const struct anova *a, double estimate, double variance)
{
	struct anova_coefficient c = { .estimate = estimate, .se = sqrt(variance * a->residual_ms) };
	double reach = t_quantile(a->residual_df) * c.se;

	c.low = estimate - reach;
	c.high = estimate + reach;
	c.t = c.se > 0.0 ? estimate / c.se : NAN;
	c.p = isnan(c.t) ? NAN : fmin(2.0 * gsl_cdf_tdist_Q(fabs(c.t), (double)a->residual_df), 1.0);
	return c;
}

static int list_coefficients(struct anova_work *w, const struct lsq_fit *f, struct err *err)
{
	struct anova *a = w->a;
	struct strbuf aliased = { .text = NULL };
	size_t n_aliased = 0;
	int rc = 0;

	a->coefficient = mem_calloc(f->n_columns + 1, sizeof *a->coefficient);
	if (!a->coefficient)
		return err_nomem(err, "the analysis of variance");
	for (size_t j = 0; j <= f->n_columns && !rc; j++) {
		struct anova_coefficient *c = &a->coefficient[a->n_coefficients];

		if (j && f->aliased[j - 1]) {
			if (n_aliased++ < 8)
				strbuf_printf(&aliased, "%s%s", aliased.len ? ", " : "",
					      w->column_name[j - 1]);
			continue;
		}
		*c = j ? test_coefficient(a, f->coefficient[j - 1], f->variance[j - 1])
		       : test_coefficient(a, f->intercept, f->intercept_variance);
		c->name = mem_strdup(j ? w->column_name[j - 1] : "(intercept)");
		if (!c->name)
			rc = err_nomem(err, "the analysis of variance");
		else
			a->n_coefficients++;
	}
	if (!rc && n_aliased)
		rc = anova_note(
			a, err,
			"%zu column%s of the design can be made from the others and %s left out: %.300s%s",
			n_aliased, n_aliased == 1 ? "" : "s", n_aliased == 1 ? "is" : "are",
			strbuf_text(&aliased), n_aliased > 8 ? ", ..." : "");
	strbuf_release(&aliased);
	return rc;
}

static int summarise(struct anova_work *w, const struct lsq_problem *problem, const struct lsq_fit *f,
		     struct err *err)
{
	struct anova *a = w->a;
	double size = 0.0;

	a->total_ss = ldexp(problem->tss, 2 * problem->y_exponent);
	a->residual_ss = f->rss;
	for (size_t i = 0; i < a->n; i++)
		size += a->y[i] * a->y[i];
	if (!isfinite(size) || !(a->total_ss > 0.0))
		return err_fail(err, ERR_NUMERIC, "the squares of %.60s do not fit a double: change its unit",
				a->target);
	a->model_df = f->rank;
	a->residual_df = a->n - 1 - f->rank;
	/* what rounding alone leaves of the target: no residual at all */
	if (a->residual_ss <= 1e-26 * size) {
		int rc = anova_note(a, err,
				    "the model fits every row exactly: there is no residual to test against");

		if (rc)
			return rc;
		a->residual_ss = 0.0;
	}
	a->residual_ss = fmin(a->residual_ss, a->total_ss);
	a->residual_ms = a->residual_ss / (double)a->residual_df;
	a->residual_sd = sqrt(a->residual_ms);
	a->r2 = 1.0 - a->residual_ss / a->total_ss;
	a->adjusted_r2 = 1.0 - a->residual_ms / (a->total_ss / (double)(a->n - 1));
	a->f = a->residual_ms > 0.0 && a->model_df
		       ? (a->total_ss - a->residual_ss) / (double)a->model_df / a->residual_ms
		       : NAN;
	a->p = f_probability(a->f, a->model_df, a->residual_df);
	return 0;
}

static int fit_rows(struct anova_work *w, const struct lsq_fit *f, struct err *err)
{
	struct anova *a = w->a;

	a->fitted = mem_array(a->n, sizeof *a->fitted);
	if (!a->fitted)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < a->n; i++) {
		a->fitted[i] = f->intercept;
		for (size_t t = 0; t < a->n_terms; t++)
			for (size_t c = 0; c < a->term[t].n_columns; c++) {
				double b = f->coefficient[a->term[t].first + c];

				if (b != 0.0)
					a->fitted[i] += b * term_value(a, &a->term[t], c, i);
			}
	}
	return 0;
}

double anova_interval(const struct anova *a, size_t n)
{
	return n ? t_quantile(a->residual_df) * a->residual_sd / sqrt((double)n) : NAN;
}

/* ---- replications ---- */

static int compare_settings(const struct anova *a, uint32_t x, uint32_t y)
{
	for (size_t k = 0; k < a->n_factors; k++)
		if (a->factor[k].at[x] != a->factor[k].at[y])
			return a->factor[k].at[x] < a->factor[k].at[y] ? -1 : 1;
	return 0;
}

static int by_setting(const void *x, const void *y, void *anova)
{
	uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
	int d = compare_settings(anova, i, j);

	return d ? d : (i > j) - (i < j);
}

static void test_lack_of_fit(struct anova *a)
{
	a->pure_df = a->n - a->n_settings;
	/* a model of s-1 columns passes through the mean of each of the s settings */
	if (!a->pure_df || a->residual_df <= a->pure_df || !(a->pure_ss > 0.0))
		return;
	a->has_lack_of_fit = true;
	a->lack_df = a->residual_df - a->pure_df;
	a->lack_ss = fmax(a->residual_ss - a->pure_ss, 0.0);
	a->lack_f = a->lack_ss / (double)a->lack_df / (a->pure_ss / (double)a->pure_df);
	a->lack_p = f_probability(a->lack_f, a->lack_df, a->pure_df);
}

static int count_replications(struct anova *a, struct err *err)
{
	uint32_t *row = mem_array(a->n, sizeof *row);

	if (!row)
		return err_nomem(err, "the analysis of variance");
	for (size_t i = 0; i < a->n; i++)
		row[i] = (uint32_t)i;
	qsort_r(row, a->n, sizeof *row, by_setting, a);
	a->min_replications = a->n;
	for (size_t from = 0, to; from < a->n; from = to) {
		double mean = 0.0;

		for (to = from; to < a->n && !compare_settings(a, row[from], row[to]); to++)
			mean += (a->y[row[to]] - mean) / (double)(to - from + 1);
		for (size_t i = from; i < to; i++)
			a->pure_ss += (a->y[row[i]] - mean) * (a->y[row[i]] - mean);
		a->n_settings++;
		if (to - from < a->min_replications)
			a->min_replications = to - from;
		if (to - from > a->max_replications)
			a->max_replications = to - from;
	}
	free(row);
	test_lack_of_fit(a);
	return 0;
}

static int analyse(struct anova_work *w, struct err *err)
{
	struct lsq_problem problem = { .n_rows = 0 };
	struct lsq_fit whole = { .rank = 0 };
	struct anova *a = w->a;
	size_t *column = mem_array(w->n_columns, sizeof *column);
	double *design = w->design;
	int rc;

	if (!column)
		return err_nomem(err, "the analysis of variance");
	w->design = NULL;
	rc = lsq_prepare(design, a->y, a->n, w->n_columns, true, &problem, err);
	if (!rc)
		rc = fit_whole(w, &problem, column, &whole, err);
	if (!rc)
		rc = summarise(w, &problem, &whole, err);
	if (!rc)
		rc = list_coefficients(w, &whole, err);
	if (!rc)
		rc = fit_rows(w, &whole, err);
	for (size_t i = 0; i < a->n_terms && !rc; i++)
		rc = test_term(w, &problem, &a->term[i], column, err);
	if (!rc)
		rc = count_replications(a, err);
	lsq_fit_release(&whole);
	lsq_problem_release(&problem);
	free(column);
	return rc;
}

static void gsl_returns_errors(void)
{
	gsl_set_error_handler_off(); /* its own handler aborts */
}

int anova_run(const struct anova_params *p, struct anova **out, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct anova_work w = { .p = p, .a = mem_calloc(1, sizeof *w.a) };
	int rc;

	pthread_once(&once, gsl_returns_errors);
	if (!w.a)
		return err_nomem(err, "the analysis of variance");
	rc = anova_read(&w, err);
	if (!rc)
		rc = build_design(&w, err);
	if (!rc)
		rc = analyse(&w, err);
	anova_work_release(&w);
	if (rc)
		anova_free(w.a);
	else
		*out = w.a;
	return rc;
}
