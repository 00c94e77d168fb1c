/* Least squares through LAPACK: what the linear models and the analysis of variance stand on.
 *
 * A problem is prepared once (columns centred, scaled to length one, and folded into a triangle where there
 * are many more rows than columns) and solved for any subset of its columns. Nothing overflows on the
 * way: columns and target are first brought near one by powers of two, which is exact.
 *
 * A column that the columns before it already span (to within its rounding) is *aliased*: its coefficient
 * is 0, and the earlier columns speak for it. Read linear.c and anova.c next. */
#ifndef PREDICTORS_MODELS_LSQ_H
#define PREDICTORS_MODELS_LSQ_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define LSQ_MAX_CELLS ((size_t)1 << 28) /* rows x columns of a design: 2 GiB */
#define LSQ_TOLERANCE 1e-9 /* a unit column that keeps less than this beside those before it is aliased */

struct lsq_problem {
	size_t n_rows, n_columns;
	size_t m;                 /* rows of `a`: n_rows, or n_columns + 1 after folding */
	bool centred;             /* there is an intercept */
	double *a;                /* column-major m x n_columns; every column of length 1, or all 0 */
	double *b;                /* m: the target, centred, in units of 2^y_exponent */
	double *mean, *norm;      /* per column: column = 2^exponent * (mean + norm * a), before folding */
	int *exponent;
	double *noise;            /* rounding error of a column of `a` from centring it */
	double y_mean;
	int y_exponent;
	double tss;               /* sum of b squared */
};

struct lsq_fit {
	size_t n_columns, rank;   /* rank: columns that are not aliased; the intercept is not counted */
	bool *aliased;
	double *coefficient;      /* 0 where aliased */
	double *variance;         /* diagonal of the inverse of X'X, to be multiplied by sigma^2; 0 where
	                           * aliased */
	double intercept, intercept_variance;
	double rss;               /* residual sum of squares; infinite if too large for a double */
};

/* Fills `out` from a column-major n_rows x n_columns design, which it takes (also when it fails) and
 * overwrites, and a target, which is only read. Everything must be finite (ERR_ARG otherwise).
 * Without an intercept nothing is centred. */
int lsq_prepare(double *x, const double *y, size_t n_rows, size_t n_columns, bool intercept,
                struct lsq_problem *out, struct err *err);
void lsq_problem_release(struct lsq_problem *p); /* accepts an all-zero one */

/* The best coefficients for the columns listed (NULL: all of them; then n is ignored), in that order:
 * out->coefficient[i] belongs to column[i]. ERR_NUMERIC if a coefficient does not fit a double. */
int lsq_solve(const struct lsq_problem *p, const size_t *column, size_t n, struct lsq_fit *out,
              struct err *err);
void lsq_fit_release(struct lsq_fit *f);

/* The same in the problem's own units: `out` has n_columns coefficients of the columns of `a`. */
int lsq_solve_scaled(const struct lsq_problem *p, double *out, bool *out_aliased, struct err *err);

/* Minimises ||b - a c||^2 + sum (weight_j c_j)^2 in the problem's own units. */
int lsq_ridge_scaled(const struct lsq_problem *p, const double *weight, double *out, struct err *err);

/* Minimises ||b - a c||^2 / 2 + sum weight_j |c_j| by coordinate descent (Friedman, Hastie, Tibshirani,
 * J. Stat. Softw. 33(1), 2010), in the problem's own units, until the duality gap is at most
 * `tolerance` of ||b||^2. *out_converged tells whether max_sweeps were enough. */
int lsq_lasso_scaled(const struct lsq_problem *p, const double *weight, double tolerance, size_t max_sweeps,
                     double *out, bool *out_converged, struct err *err);

#endif
