/* linear, ridge, lasso: one model, three ways to find its coefficients.
 *
 * A term is a feature or a product of features ("cpus:njobs"). `linear` is the model of the analysis of
 * variance in the Courier paper (section 4.1): the factors and all their interactions. `ridge` and `lasso`
 * take the features as they are and follow scikit-learn's objectives, so that an alpha found there means the
 * same here.
 *
 * Features are brought near one by powers of two before they are multiplied, so products of large values
 * neither overflow nor lose a bit. Coefficients and term means are kept in those units; a prediction is
 * 2^y_exponent * (y_mean + sum coefficient * (term - term_mean)). Called through predictor_all[]; the
 * arithmetic is in lsq.c. */
#include "predictors/models/linear_internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/features.h"
#include "predictors/models/lsq.h"

#define LASSO_GAP 1e-13 /* of the variation: coefficients are then good to about 1e-6 */
#define LASSO_SWEEPS 10000

enum method { METHOD_LEAST_SQUARES, METHOD_RIDGE, METHOD_LASSO };

void linear_destroy(void *self)
{
	struct linear *m = self;

	if (!m)
		return;
	free(m->fill);
	free(m->scale);
	free(m->exponent);
	free(m->term);
	free(m);
}

struct linear *linear_new(size_t n_features, size_t n_terms)
{
	struct linear *m = mem_calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->n_features = n_features;
	m->n_terms = n_terms;
	m->fill = mem_calloc(n_features, sizeof *m->fill);
	m->scale = mem_calloc(n_features, sizeof *m->scale);
	m->exponent = mem_calloc(n_features, sizeof *m->exponent);
	m->term = mem_calloc(n_terms, sizeof *m->term);
	if (!m->fill || !m->scale || !m->exponent || !m->term) {
		linear_destroy(m);
		return NULL;
	}
	return m;
}

/* ---- terms ---- */

struct term_list {
	const struct dataset *d;
	uint16_t group[FEATURES_MAX]; /* columns of one category share a number; they are never multiplied */
	size_t group_size[FEATURES_MAX]; /* factors in it */
	size_t n_groups;
	size_t degree; /* highest order */
	bool derived; /* derived features enter as they are */
	bool squares; /* of the factors that are numbers, too */
	struct term *term;
	size_t n;
};

static bool is_factor(const struct dataset *d, size_t i)
{
	return !d->factor || d->factor[i];
}

static bool same_category(const char *a, const char *b)
{
	const char *end = strchr(a, '=');
	size_t len = end ? (size_t)(end - a) + 1 : 0;

	return len && strncmp(a, b, len) == 0;
}

static void list_groups(struct term_list *l)
{
	const struct dataset *d = l->d;

	for (size_t i = 0; i < d->n_features; i++) {
		size_t g = l->n_groups;

		if (!is_factor(d, i))
			continue;
		for (size_t j = 0; d->name && j < i && g == l->n_groups; j++)
			if (is_factor(d, j) && same_category(d->name[i], d->name[j]))
				g = l->group[j];
		if (g == l->n_groups)
			l->n_groups++;
		l->group[i] = (uint16_t)g;
		l->group_size[g]++;
	}
}

/* The square of a category's column is the column itself. */
static bool has_square(const struct term_list *l, size_t i)
{
	return l->squares && is_factor(l->d, i) && !(l->d->name && strchr(l->d->name[i], '='));
}

/* How many terms have each order: the elementary symmetric polynomials of the group sizes. In double, as
 * they grow without bound; exact where it matters. */
static double count_terms(const struct term_list *l, size_t degree)
{
	double by_order[MAX_ORDER + 2] = { 1.0 }, sum = 0.0;

	for (size_t g = 0; g < l->n_groups; g++)
		for (size_t k = degree; k > 0; k--)
			by_order[k] += by_order[k - 1] * (double)l->group_size[g];
	for (size_t k = 1; k <= degree; k++)
		sum += by_order[k];
	for (size_t i = 0; i < l->d->n_features; i++)
		sum += (l->derived && !is_factor(l->d, i)) + has_square(l, i);
	return sum;
}

static void add_term(struct term_list *l, const uint16_t *index, size_t order)
{
	struct term *t = &l->term[l->n++];

	memcpy(t->index, index, order * sizeof *index);
	t->order = (uint8_t)order;
}

/* All products of `order` factors from different groups, in dictionary order. */
static void add_products(struct term_list *l, uint16_t *index, size_t have, size_t order)
{
	if (have == order) {
		add_term(l, index, order);
		return;
	}
	for (size_t i = have ? (size_t)index[have - 1] + 1 : 0; i < l->d->n_features; i++) {
		bool clash = !is_factor(l->d, i);

		for (size_t j = 0; j < have && !clash; j++)
			clash = l->group[index[j]] == l->group[i];
		if (clash)
			continue;
		index[have] = (uint16_t)i;
		add_products(l, index, have + 1, order);
	}
}

static int list_terms(struct term_list *l, size_t degree, struct err *err)
{
	uint16_t index[MAX_ORDER];
	double n;

	list_groups(l);
	l->degree = degree && degree < l->n_groups ? degree : l->n_groups;
	if (l->degree > MAX_ORDER + 1)
		l->degree = MAX_ORDER + 1; /* too many terms already: counted for the message */
	n = count_terms(l, l->degree);
	if (n > LINEAR_MAX_TERMS) {
		size_t fits = l->degree;

		while (fits > 1 && count_terms(l, fits) > LINEAR_MAX_TERMS)
			fits--;
		return err_fail(err, ERR_ARG,
				"interactions of %zu factors up to order %zu make %.0f terms or more, %d are "
				"allowed: set degree=%zu",
				l->n_groups, l->degree, n, LINEAR_MAX_TERMS, fits);
	}
	l->term = mem_calloc((size_t)n, sizeof *l->term);
	if (!l->term)
		return err_nomem(err, "%.0f terms", n);
	for (size_t i = 0; i < l->d->n_features; i++) {
		uint16_t one = (uint16_t)i;

		if (is_factor(l->d, i) || l->derived)
			add_term(l, &one, 1);
	}
	for (size_t i = 0; i < l->d->n_features; i++)
		if (has_square(l, i))
			add_term(l, (uint16_t[]){ (uint16_t)i, (uint16_t)i }, 2);
	for (size_t order = 2; order <= l->degree; order++)
		add_products(l, index, 0, order);
	return 0;
}

/* ---- from features to columns ---- */

static void scale_features(struct linear *m, const struct dataset *d)
{
	for (size_t j = 0; j < d->n_features; j++) {
		double top = 0.0, sum = 0.0;
		size_t n = 0;
		int e = 0;

		for (size_t i = 0; i < d->n_rows; i++)
			if (isfinite(d->x[i * d->n_features + j]))
				top = fmax(top, fabs(d->x[i * d->n_features + j]));
		if (top > 0.0)
			frexp(top, &e);
		e = e > MAX_EXPONENT ? MAX_EXPONENT : e < -MAX_EXPONENT ? -MAX_EXPONENT : e;
		m->exponent[j] = e;
		m->scale[j] = ldexp(1.0, -e);
		for (size_t i = 0; i < d->n_rows; i++) {
			double v = d->x[i * d->n_features + j];

			if (isfinite(v)) {
				sum += v * m->scale[j];
				n++;
			}
		}
		m->fill[j] = n ? sum / (double)n : 0.0;
	}
}

static void scale_row(const struct linear *m, const double *x, double *out)
{
	for (size_t j = 0; j < m->n_features; j++) {
		double v = x[j];

		if (!isfinite(v))
			v = m->fill[j];
		else
			v *= m->scale[j];
		out[j] = v > MAX_SCALED ? MAX_SCALED : v < -MAX_SCALED ? -MAX_SCALED : v;
	}
}

static double term_value(const struct term *t, const double *scaled)
{
	double v = scaled[t->index[0]];

	for (size_t k = 1; k < t->order; k++)
		v *= scaled[t->index[k]];
	return v;
}

static int build_design(const struct linear *m, const struct dataset *d, double **out, struct err *err)
{
	double scaled[FEATURES_MAX], *x;

	if (m->n_terms && d->n_rows > LSQ_MAX_CELLS / m->n_terms)
		return err_fail(err, ERR_ARG,
				"%zu rows x %zu terms are more than %zu values: lower the degree", d->n_rows,
				m->n_terms, LSQ_MAX_CELLS);
	x = mem_array(d->n_rows * m->n_terms, sizeof *x);
	if (!x)
		return err_nomem(err, "%zu rows of %zu terms", d->n_rows, m->n_terms);
	for (size_t i = 0; i < d->n_rows; i++) {
		scale_row(m, d->x + i * d->n_features, scaled);
		for (size_t j = 0; j < m->n_terms; j++) {
			double v = term_value(&m->term[j], scaled);

			/* far below any other value of its column's features: nothing to learn from */
			x[j * d->n_rows + i] = fabs(v) < 1e-90 ? 0.0 : v;
		}
	}
	*out = x;
	return 0;
}

/* ---- fitting ---- */

/* The penalty's weight in the units lsq works in: scikit-learn's objective with b = c 2^(ey - e) / norm,
 * divided by 2^(2 ey). A standardised column has norm sqrt(n). */
static void penalty_weights(const struct linear *m, const struct lsq_problem *p, enum method how,
			    double alpha, bool standardize, double *weight)
{
	double n = (double)p->n_rows;

	for (size_t j = 0; j < p->n_columns; j++) {
		int e = p->exponent[j];

		for (size_t k = 0; k < m->term[j].order; k++)
			e += m->exponent[m->term[j].index[k]];
		weight[j] = how == METHOD_RIDGE ? sqrt(alpha) : n * alpha;
		if (!(p->norm[j] > 0.0))
			weight[j] = 0.0;
		else if (standardize)
			weight[j] /= sqrt(n);
		else
			weight[j] = ldexp(weight[j] / p->norm[j], -e);
		if (how == METHOD_LASSO)
			weight[j] = ldexp(weight[j], -p->y_exponent);
	}
}

static int find_coefficients(struct linear *m, const struct lsq_problem *p, enum method how,
			     const struct settings *s, double *c, struct err *err)
{
	double alpha = how == METHOD_LEAST_SQUARES ? 0.0 : settings_get(s, "alpha"), *weight;
	bool *aliased;
	int rc;

	m->converged = true;
	if (alpha == 0.0) {
		aliased = mem_array(p->n_columns, sizeof *aliased);
		if (!aliased)
			return err_nomem(err, "%zu terms", p->n_columns);
		rc = lsq_solve_scaled(p, c, aliased, err);
		for (size_t j = 0; j < p->n_columns && !rc; j++)
			m->term[j].aliased = aliased[j];
		free(aliased);
		return rc;
	}
	weight = mem_array(p->n_columns, sizeof *weight);
	if (!weight)
		return err_nomem(err, "%zu terms", p->n_columns);
	penalty_weights(m, p, how, alpha, settings_get(s, "standardize") != 0.0, weight);
	for (size_t j = 0; j < p->n_columns; j++)
		m->term[j].aliased = !(p->norm[j] > 0.0);
	if (how == METHOD_RIDGE)
		rc = lsq_ridge_scaled(p, weight, c, err);
	else
		rc = lsq_lasso_scaled(p, weight, LASSO_GAP, LASSO_SWEEPS, c, &m->converged, err);
	free(weight);
	return rc;
}

static int store_coefficients(struct linear *m, const struct lsq_problem *p, const double *c, struct err *err)
{
	for (size_t j = 0; j < m->n_terms; j++) {
		struct term *t = &m->term[j];

		t->mean = ldexp(p->mean[j], p->exponent[j]);
		t->sd = ldexp(p->norm[j] / sqrt((double)p->n_rows), p->exponent[j]);
		if (t->aliased || !(p->norm[j] > 0.0))
			continue;
		t->coefficient = ldexp(c[j] / p->norm[j], -p->exponent[j]);
		if (!(fabs(t->coefficient) <= MAX_COEFFICIENT))
			return err_fail(err, ERR_NUMERIC,
					"term %zu of the model would need a coefficient of %g", j,
					t->coefficient);
	}
	m->y_mean = p->y_mean;
	m->y_exponent = p->y_exponent;
	return 0;
}

static int fit(enum method how, const struct settings *s, const struct dataset *d, void **out_self,
	       struct err *err)
{
	struct term_list list = { .d = d,
				  .derived = how != METHOD_LEAST_SQUARES,
				  .squares = settings_get(s, "squares") != 0.0 };
	struct lsq_problem problem = { .n_rows = 0 };
	struct linear *m = NULL;
	double *x = NULL, *y = NULL, *c = NULL;
	int rc;

	if (!d->n_rows)
		return err_fail(err, ERR_NODATA, "no rows to fit to");
	if (d->n_features > FEATURES_MAX)
		return err_fail(err, ERR_ARG, "%zu features, at most %d", d->n_features, FEATURES_MAX);
	rc = list_terms(&list, (size_t)settings_get(s, "degree"), err);
	if (rc)
		return rc;
	m = linear_new(d->n_features, 0);
	c = mem_array(list.n, sizeof *c);
	if (!m || !c) {
		rc = err_nomem(err, "a linear model of %zu terms", list.n);
		goto out;
	}
	free(m->term);
	m->term = list.term;
	m->n_terms = list.n;
	list.term = NULL;
	m->log = settings_get(s, "log") != 0.0;
	scale_features(m, d);
	if ((m->log && (rc = dataset_logs(d, &y, err))) || (rc = build_design(m, d, &x, err)))
		goto out;
	rc = lsq_prepare(x, m->log ? y : d->y, d->n_rows, m->n_terms, true, &problem, err);
	if (!rc)
		rc = find_coefficients(m, &problem, how, s, c, err);
	if (!rc)
		rc = store_coefficients(m, &problem, c, err);
out:
	lsq_problem_release(&problem);
	free(list.term);
	free(c);
	free(y);
	if (rc)
		linear_destroy(m);
	else
		*out_self = m;
	return rc;
}

static int linear_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		      void **out_self, struct err *err)
{
	(void)ctx;
	return fit(METHOD_LEAST_SQUARES, s, d, out_self, err);
}

static int ridge_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		     void **out_self, struct err *err)
{
	(void)ctx;
	return fit(METHOD_RIDGE, s, d, out_self, err);
}

static int lasso_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		     void **out_self, struct err *err)
{
	(void)ctx;
	return fit(METHOD_LASSO, s, d, out_self, err);
}

/* ---- using ---- */

static void linear_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct linear *m = self;
	double scaled[FEATURES_MAX];

	for (size_t i = 0; i < n_rows; i++) {
		double sum = 0.0, v;

		scale_row(m, x + i * m->n_features, scaled);
		for (size_t j = 0; j < m->n_terms; j++) {
			const struct term *t = &m->term[j];

			if (t->coefficient != 0.0)
				sum += t->coefficient * (term_value(t, scaled) - t->mean);
		}
		v = ldexp(m->y_mean + sum, m->y_exponent);
		if (m->log)
			v = exp(v);
		out[i] = v > DBL_MAX ? DBL_MAX : v < -DBL_MAX ? -DBL_MAX : v;
	}
}

static void linear_importances(const void *self, double *out)
{
	const struct linear *m = self;
	double sum = 0.0;

	for (size_t j = 0; j < m->n_features; j++)
		out[j] = 0.0;
	for (size_t j = 0; j < m->n_terms; j++) {
		const struct term *t = &m->term[j];
		double weight = fabs(t->coefficient) * t->sd;

		sum += weight;
		for (size_t k = 0; k < t->order; k++)
			out[t->index[k]] += weight / t->order;
	}
	for (size_t j = 0; j < m->n_features; j++)
		out[j] = sum > 0.0 ? out[j] / sum : 0.0;
}

/* ---- the table ---- */

static const char *const no_yes[] = { "no", "yes", NULL };
static const char degree_help[] = "highest order of interactions; 0: all";
static const char squares_help[] = "squares of the factors that are numbers, beside the interactions";
static const char log_help[] = "fit the logarithm of the target";

static const struct setting_spec linear_spec[] = {
	{ .name = "degree", .otherwise = 0, .max = MAX_ORDER, .integer = true, .help = degree_help },
	{ .name = "log", .max = 1, .integer = true, .words = no_yes, .help = log_help },
	{ .name = "squares", .max = 1, .integer = true, .words = no_yes, .help = squares_help },
	{ .name = NULL },
};

static const struct setting_spec shrunk_spec[] = {
	{ .name = "alpha",
	  .otherwise = 1,
	  .max = 1e300,
	  .help = "strength of the penalty, as in scikit-learn" },
	{ .name = "degree", .otherwise = 1, .max = MAX_ORDER, .integer = true, .help = degree_help },
	{ .name = "standardize",
	  .max = 1,
	  .integer = true,
	  .words = no_yes,
	  .help = "divide every column by its standard deviation before penalising it" },
	{ .name = "log", .max = 1, .integer = true, .words = no_yes, .help = log_help },
	{ .name = "squares", .max = 1, .integer = true, .words = no_yes, .help = squares_help },
	{ .name = NULL },
};

#define SHARED_OPS                                                                                           \
	.predict = linear_predict, .importances = linear_importances, .describe = linear_describe,           \
	.remark = linear_remark, .save = linear_save, .load = linear_load, .destroy = linear_destroy

const struct predictor_ops linear_ops = {
	.name = "linear",
	.title = "linear model with interactions",
	.spec = linear_spec,
	.fit = linear_fit,
	SHARED_OPS,
};

const struct predictor_ops ridge_ops = {
	.name = "ridge",
	.title = "ridge regression",
	.spec = shrunk_spec,
	.fit = ridge_fit,
	SHARED_OPS,
};

const struct predictor_ops lasso_ops = {
	.name = "lasso",
	.title = "lasso",
	.spec = shrunk_spec,
	.fit = lasso_fit,
	SHARED_OPS,
};
