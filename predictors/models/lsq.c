/* Least squares: preparing, solving, and the two penalised fits. LAPACK and BLAS are named only here. See
 * lsq.h. */
#include "predictors/models/lsq.h"

#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* The matrices are small, and fits run side by side in the pool's threads: a second layer of threads
 * underneath would only get in the way, and could add in another order. */
static void one_blas_thread(void)
{
	openblas_set_num_threads(1);
}

/* ---- LAPACK with our own allocation, so that tests can make it fail ---- */

static int lapack_failed(const char *routine, lapack_int info, struct err *err)
{
	return err_fail(err, ERR_NUMERIC, "LAPACK's %s refused its input (info %d)", routine, (int)info);
}

/* In place: a = Q R, reflectors below the diagonal. With a pivot, columns are exchanged (dgeqp3). */
static int factor_qr(double *a, size_t m, size_t n, lapack_int *pivot, double *tau, struct err *err)
{
	lapack_int rows = (lapack_int)m, columns = (lapack_int)n, size, info;
	double ask = 0.0, *work;

	if (pivot)
		info = LAPACKE_dgeqp3_work(LAPACK_COL_MAJOR, rows, columns, a, rows, pivot, tau, &ask, -1);
	else
		info = LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, rows, columns, a, rows, tau, &ask, -1);
	if (info)
		return lapack_failed("QR", info, err);
	size = (lapack_int)ask;
	work = mem_array((size_t)size, sizeof *work);
	if (!work)
		return err_nomem(err, "a QR factorisation of %zu x %zu", m, n);
	if (pivot)
		info = LAPACKE_dgeqp3_work(LAPACK_COL_MAJOR, rows, columns, a, rows, pivot, tau, work, size);
	else
		info = LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, rows, columns, a, rows, tau, work, size);
	free(work);
	return info ? lapack_failed("QR", info, err) : 0;
}

static int apply_qt(const double *qr, const double *tau, size_t m, size_t k, double *b, struct err *err)
{
	lapack_int rows = (lapack_int)m, size, info;
	double ask = 0.0, *work;

	info = LAPACKE_dormqr_work(LAPACK_COL_MAJOR, 'L', 'T', rows, 1, (lapack_int)k, qr, rows, tau, b, rows,
				   &ask, -1);
	if (info)
		return lapack_failed("dormqr", info, err);
	size = (lapack_int)ask;
	work = mem_array((size_t)size, sizeof *work);
	if (!work)
		return err_nomem(err, "a least-squares fit of %zu rows", m);
	info = LAPACKE_dormqr_work(LAPACK_COL_MAJOR, 'L', 'T', rows, 1, (lapack_int)k, qr, rows, tau, b, rows,
				   work, size);
	free(work);
	return info ? lapack_failed("dormqr", info, err) : 0;
}

static double length(const double *v, size_t n)
{
	return n ? cblas_dnrm2((int)n, v, 1) : 0.0;
}

/* ---- preparing ---- */

/* Brings v near one by a power of two; returns the exponent. 2^-1000 .. 2^1000 keeps the factor itself
 * in range; what is left over at either end is at most 2^74, far from harm. */
static int scale_exactly(double *v, size_t n)
{
	double top = 0.0, factor;
	int e = 0;

	for (size_t i = 0; i < n; i++)
		top = fmax(top, fabs(v[i]));
	if (top == 0.0)
		return 0;
	frexp(top, &e);
	e = e > 1000 ? 1000 : e < -1000 ? -1000 : e;
	factor = ldexp(1.0, -e);
	for (size_t i = 0; i < n; i++)
		v[i] *= factor;
	return e;
}

/* Subtracts the mean and returns it. Differences to the first value are exact where values are close,
 * so a constant column becomes exactly 0. */
static double centre(double *v, size_t n)
{
	double first = v[0], shift = 0.0;

	for (size_t i = 0; i < n; i++) {
		v[i] -= first;
		shift += v[i];
	}
	shift /= (double)n;
	for (size_t i = 0; i < n; i++)
		v[i] -= shift;
	return first + shift;
}

static void prepare_column(struct lsq_problem *p, size_t j)
{
	double *v = p->a + j * p->n_rows, before, after;

	p->exponent[j] = scale_exactly(v, p->n_rows);
	before = length(v, p->n_rows);
	if (p->centred)
		p->mean[j] = centre(v, p->n_rows);
	after = length(v, p->n_rows);
	/* what is left after centring must rise above the rounding of the values themselves */
	if (after <= 4.0 * DBL_EPSILON * before) {
		memset(v, 0, p->n_rows * sizeof *v);
		return;
	}
	p->norm[j] = after;
	p->noise[j] = 4.0 * DBL_EPSILON * before / after;
	for (size_t i = 0; i < p->n_rows; i++)
		v[i] /= after;
}

/* Turns the rows into a triangle of n_columns + 1 of them: an orthogonal map changes no length and no
 * angle, so every fit on some of the columns stays what it was. */
static int fold(struct lsq_problem *p, struct err *err)
{
	size_t n = p->n_rows, k = p->n_columns, m = k + 1;
	double *tau, *small = NULL;
	int rc;

	if (n <= 2 * m || !k)
		return 0;
	tau = mem_array(k, sizeof *tau);
	small = mem_calloc(m * k, sizeof *small);
	if (!tau || !small)
		rc = err_nomem(err, "a least-squares problem of %zu columns", k);
	else if (!(rc = factor_qr(p->a, n, k, NULL, tau, err)) &&
		 !(rc = apply_qt(p->a, tau, n, k, p->b, err))) {
		for (size_t j = 0; j < k; j++)
			memcpy(small + j * m, p->a + j * n, (j + 1) * sizeof *small);
		p->b[k] = length(p->b + k, n - k);
		p->m = m;
		free(p->a);
		p->a = small;
		small = NULL;
	}
	free(tau);
	free(small);
	return rc;
}

void lsq_problem_release(struct lsq_problem *p)
{
	if (!p)
		return;
	free(p->a);
	free(p->b);
	free(p->mean);
	free(p->norm);
	free(p->exponent);
	free(p->noise);
	memset(p, 0, sizeof *p);
}

static int check_finite(const double *x, const double *y, size_t n, size_t k, struct err *err)
{
	for (size_t j = 0; j < k; j++)
		for (size_t i = 0; i < n; i++)
			if (!isfinite(x[j * n + i]))
				return err_fail(
					err, ERR_ARG,
					"column %zu of the design is %g in row %zu: need finite values", j,
					x[j * n + i], i);
	for (size_t i = 0; i < n; i++)
		if (!isfinite(y[i]))
			return err_fail(err, ERR_ARG, "the target is %g in row %zu: need finite values", y[i],
					i);
	return 0;
}

int lsq_prepare(double *x, const double *y, size_t n_rows, size_t n_columns, bool intercept,
		struct lsq_problem *out, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lsq_problem p = {
		.n_rows = n_rows, .n_columns = n_columns, .m = n_rows, .centred = intercept, .a = x
	};
	double size;
	int rc = 0;

	pthread_once(&once, one_blas_thread);
	if (!n_rows)
		rc = err_fail(err, ERR_NODATA, "no rows to fit to");
	else if (n_rows >= INT_MAX || n_columns >= INT_MAX ||
		 (n_columns && n_rows > LSQ_MAX_CELLS / n_columns))
		rc = err_fail(err, ERR_NUMERIC,
			      "a design of %zu rows and %zu columns is larger than the %zu values allowed",
			      n_rows, n_columns, LSQ_MAX_CELLS);
	else
		rc = check_finite(x, y, n_rows, n_columns, err);
	if (rc)
		goto fail;
	p.b = mem_array(n_rows > n_columns + 1 ? n_rows : n_columns + 1, sizeof *p.b);
	p.mean = mem_calloc(n_columns, sizeof *p.mean);
	p.norm = mem_calloc(n_columns, sizeof *p.norm);
	p.exponent = mem_calloc(n_columns, sizeof *p.exponent);
	p.noise = mem_calloc(n_columns, sizeof *p.noise);
	if (!p.b || !p.mean || !p.norm || !p.exponent || !p.noise) {
		rc = err_nomem(err, "a least-squares problem of %zu rows", n_rows);
		goto fail;
	}
	for (size_t j = 0; j < n_columns; j++)
		prepare_column(&p, j);
	memcpy(p.b, y, n_rows * sizeof *p.b);
	p.y_exponent = scale_exactly(p.b, n_rows);
	if (intercept)
		p.y_mean = centre(p.b, n_rows);
	size = length(p.b, n_rows);
	p.tss = size * size;
	rc = fold(&p, err);
	if (rc)
		goto fail;
	*out = p;
	return 0;
fail:
	lsq_problem_release(&p);
	return rc;
}

/* ---- solving ---- */

struct solution { /* for the k columns asked for, in the problem's units */
	double *c, *variance; /* variance may be NULL: not wanted */
	bool *aliased;
	size_t rank;
	double rss, mean_variance; /* mean_variance: u' (a'a)^-1 u with u = mean / norm */
};

struct workspace {
	double *q, *tau, *rhs;
	lapack_int *pivot;
	size_t *kept;
};

static void workspace_release(struct workspace *w)
{
	free(w->q);
	free(w->tau);
	free(w->rhs);
	free(w->pivot);
	free(w->kept);
}

static void gather(const struct lsq_problem *p, const size_t *kept, size_t k, double *q)
{
	for (size_t j = 0; j < k; j++)
		memcpy(q + j * p->m, p->a + kept[j] * p->m, p->m * sizeof *q);
}

/* Gram-Schmidt in the order given, each column twice ("twice is enough": Giraud, Langou, Rozloznik,
 * Comput. Math. Appl. 50, 2005): keeps a column if enough of it lies outside the span of those kept before.
 * Compacts kept[] and returns its new length. */
static size_t keep_independent(const struct lsq_problem *p, struct workspace *w, size_t k)
{
	size_t m = p->m, rank = 0;
	double *projection = w->rhs; /* m or more numbers; rank never exceeds m */

	for (size_t j = 0; j < k && rank < m; j++) {
		size_t column = w->kept[j];
		double *v = w->q + rank * m, left;

		memcpy(v, p->a + column * m, m * sizeof *v);
		for (int pass = 0; pass < 2 && rank; pass++) {
			cblas_dgemv(CblasColMajor, CblasTrans, (int)m, (int)rank, 1.0, w->q, (int)m, v, 1,
				    0.0, projection, 1);
			cblas_dgemv(CblasColMajor, CblasNoTrans, (int)m, (int)rank, -1.0, w->q, (int)m,
				    projection, 1, 1.0, v, 1);
		}
		left = length(v, m);
		if (left <= fmax(LSQ_TOLERANCE, p->noise[column]))
			continue;
		cblas_dscal((int)m, 1.0 / left, v, 1);
		w->kept[rank++] = column;
	}
	return rank;
}

/* Factors the columns of kept[], after taking out those that are aliased; *k becomes their number. */
static int factor_independent(const struct lsq_problem *p, struct workspace *w, size_t *k, struct err *err)
{
	double tolerance = LSQ_TOLERANCE;
	size_t n = *k;
	int rc;

	for (size_t j = 0; j < n; j++)
		tolerance = fmax(tolerance, p->noise[w->kept[j]]);
	if (n <= p->m) {
		gather(p, w->kept, n, w->q);
		memset(w->pivot, 0, n * sizeof *w->pivot);
		rc = factor_qr(w->q, p->m, n, w->pivot, w->tau, err);
		if (rc)
			return rc;
		/* pivoting puts the smallest last: if that one is large enough, all are independent */
		if (fabs(w->q[(n - 1) * p->m + n - 1]) > tolerance)
			return 0;
	}
	*k = n = keep_independent(p, w, n);
	if (!n)
		return 0;
	gather(p, w->kept, n, w->q);
	memset(w->pivot, 0, n * sizeof *w->pivot);
	return factor_qr(w->q, p->m, n, w->pivot, w->tau, err);
}

/* w->q holds the triangle R (r columns in pivoted order): coefficients, and variances if wanted. */
static int solve_triangle(const struct lsq_problem *p, struct workspace *w, size_t r, double *c,
			  double *variance, double *out_mean_variance, struct err *err)
{
	size_t m = p->m;
	double *u = w->rhs + m; /* r numbers of room */

	for (size_t i = 0; i < r; i++)
		if (w->q[i * m + i] == 0.0)
			return err_fail(err, ERR_NUMERIC, "the design lost its rank in rounding");
	cblas_dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, (int)r, w->q, (int)m, w->rhs, 1);
	for (size_t i = 0; i < r; i++)
		c[w->pivot[i] - 1] = w->rhs[i];
	if (!variance)
		return 0;
	for (size_t i = 0; i < r; i++) {
		size_t column = w->kept[w->pivot[i] - 1];
		u[i] = p->mean[column] / p->norm[column];
	}
	cblas_dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (int)r, w->q, (int)m, u, 1);
	*out_mean_variance = length(u, r) * length(u, r);
	if (LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'U', 'N', (lapack_int)r, w->q, (lapack_int)m))
		return err_fail(err, ERR_NUMERIC, "the design lost its rank in rounding");
	for (size_t i = 0; i < r; i++) {
		double s = cblas_dnrm2((int)(r - i), w->q + i * m + i, (int)m);
		variance[w->pivot[i] - 1] = s * s;
	}
	return 0;
}

static int solve(const struct lsq_problem *p, const size_t *column, size_t k, struct solution *out,
		 struct err *err)
{
	size_t m = p->m, r = 0, room = k < m ? k : m;
	struct workspace w = { .q = NULL };
	double *c = NULL, *variance = NULL, rest;
	int rc;

	for (size_t j = 0; j < k; j++) {
		out->c[j] = 0.0;
		out->aliased[j] = true;
		if (out->variance)
			out->variance[j] = 0.0;
	}
	out->rank = 0;
	out->rss = p->tss;
	out->mean_variance = 0.0;
	w.kept = mem_array(k + 1, sizeof *w.kept);
	if (!w.kept)
		return err_nomem(err, "a least-squares fit of %zu columns", k);
	for (size_t j = 0; j < k; j++)
		if (p->norm[column ? column[j] : j] > 0.0)
			w.kept[r++] = column ? column[j] : j;
	if (!r) {
		free(w.kept);
		return 0;
	}
	w.q = mem_array(m, room * sizeof *w.q); /* room * 8 cannot overflow: k columns exist already */
	w.tau = mem_array(room, sizeof *w.tau);
	w.rhs = mem_array(m + room, sizeof *w.rhs);
	w.pivot = mem_array(k, sizeof *w.pivot);
	c = mem_array(k, sizeof *c);
	variance = mem_array(k, sizeof *variance);
	if (!w.q || !w.tau || !w.rhs || !w.pivot || !c || !variance) {
		rc = err_nomem(err, "a least-squares fit of %zu columns", k);
		goto out;
	}
	rc = factor_independent(p, &w, &r, err);
	if (rc || !r)
		goto out;
	memcpy(w.rhs, p->b, m * sizeof *w.rhs);
	rc = apply_qt(w.q, w.tau, m, r, w.rhs, err);
	if (rc)
		goto out;
	rest = length(w.rhs + r, m - r);
	rc = solve_triangle(p, &w, r, c, out->variance ? variance : NULL, &out->mean_variance, err);
	if (rc)
		goto out;
	out->rank = r;
	out->rss = rest * rest;
	for (size_t j = 0, i = 0; i < r; j++) { /* kept[] follows the order of column[] */
		if ((column ? column[j] : j) != w.kept[i])
			continue;
		out->aliased[j] = false;
		out->c[j] = c[i];
		if (out->variance)
			out->variance[j] = variance[i];
		i++;
	}
out:
	free(c);
	free(variance);
	workspace_release(&w);
	return rc;
}

void lsq_fit_release(struct lsq_fit *f)
{
	if (!f)
		return;
	free(f->aliased);
	free(f->coefficient);
	free(f->variance);
	memset(f, 0, sizeof *f);
}

int lsq_solve(const struct lsq_problem *p, const size_t *column, size_t n, struct lsq_fit *out,
	      struct err *err)
{
	struct lsq_fit f = { .n_columns = column ? n : p->n_columns };
	struct solution s = { .c = NULL };
	double level = p->y_mean;
	int rc;

	f.aliased = mem_array(f.n_columns, sizeof *f.aliased);
	f.coefficient = mem_array(f.n_columns, sizeof *f.coefficient);
	f.variance = mem_array(f.n_columns, sizeof *f.variance);
	if (!f.aliased || !f.coefficient || !f.variance) {
		rc = err_nomem(err, "a least-squares fit of %zu columns", f.n_columns);
		goto fail;
	}
	s = (struct solution){ .c = f.coefficient, .variance = f.variance, .aliased = f.aliased };
	rc = solve(p, column, f.n_columns, &s, err);
	if (rc)
		goto fail;
	for (size_t j = 0; j < f.n_columns; j++) {
		size_t i = column ? column[j] : j;

		if (f.aliased[j])
			continue;
		f.coefficient[j] /= p->norm[i];
		level -= f.coefficient[j] * p->mean[i];
		f.coefficient[j] = ldexp(f.coefficient[j], p->y_exponent - p->exponent[i]);
		f.variance[j] = ldexp(f.variance[j] / p->norm[i] / p->norm[i], -2 * p->exponent[i]);
		if (!isfinite(f.coefficient[j])) {
			rc = err_fail(err, ERR_NUMERIC,
				      "coefficient %zu does not fit a double: bring the columns closer to 1",
				      j);
			goto fail;
		}
	}
	f.rank = s.rank;
	f.rss = ldexp(s.rss, 2 * p->y_exponent);
	if (p->centred) {
		f.intercept = ldexp(level, p->y_exponent);
		f.intercept_variance = 1.0 / (double)p->n_rows + s.mean_variance;
	}
	if (!isfinite(f.intercept)) {
		rc = err_fail(err, ERR_NUMERIC,
			      "the intercept does not fit a double: bring the columns closer to 1");
		goto fail;
	}
	*out = f;
	return 0;
fail:
	lsq_fit_release(&f);
	return rc;
}

int lsq_solve_scaled(const struct lsq_problem *p, double *out, bool *out_aliased, struct err *err)
{
	struct solution s = { .c = out, .aliased = out_aliased };

	return solve(p, NULL, p->n_columns, &s, err);
}

int lsq_ridge_scaled(const struct lsq_problem *p, const double *weight, double *out, struct err *err)
{
	size_t k = p->n_columns, m = p->m + k;
	struct lsq_problem wide = { .n_rows = 0 };
	double *x = NULL, *y = NULL;
	bool *aliased = NULL;
	int rc;

	if (k && m > LSQ_MAX_CELLS / k)
		return err_fail(err, ERR_NUMERIC, "a ridge fit of %zu rows and %zu columns is too large",
				p->m, k);
	/* the penalty as k more rows, weight_j in row j and 0 as target: no squared condition number */
	x = mem_calloc(m * k, sizeof *x);
	y = mem_calloc(m, sizeof *y);
	aliased = mem_array(k, sizeof *aliased);
	if (!x || !y || !aliased) {
		free(x);
		rc = err_nomem(err, "a ridge fit of %zu columns", k);
		goto out;
	}
	memcpy(y, p->b, p->m * sizeof *y);
	for (size_t j = 0; j < k; j++) {
		if (!isfinite(weight[j]))
			continue; /* punished without end: stays out, as an all-zero column does */
		memcpy(x + j * m, p->a + j * p->m, p->m * sizeof *x);
		x[j * m + p->m + j] = p->norm[j] > 0.0 ? weight[j] : 0.0;
	}
	rc = lsq_prepare(x, y, m, k, false, &wide, err);
	if (rc)
		goto out;
	rc = lsq_solve_scaled(&wide, out, aliased, err);
	for (size_t j = 0; j < k && !rc; j++)
		if (!aliased[j])
			out[j] = ldexp(out[j] / wide.norm[j], wide.y_exponent - wide.exponent[j]);
out:
	lsq_problem_release(&wide);
	free(y);
	free(aliased);
	return rc;
}

/* P - D for the residual r = b - a c, given a'r; Kim, Koh, Lustig, Boyd, Gorinevsky, IEEE J. Sel. Top. Signal
 * Process. 1(4), 2007: the dual point is r, shrunk until no column exceeds its weight. */
static double duality_gap(const struct lsq_problem *p, const double *weight, const double *ab,
			  const double *ar, const double *c)
{
	double fit = 0.0, rest, penalty = 0.0, shrink = 1.0, br;

	for (size_t j = 0; j < p->n_columns; j++) {
		if (!(p->norm[j] > 0.0) || !isfinite(weight[j]))
			continue;
		fit += c[j] * (ab[j] + ar[j]); /* c'a'b + c'a'r = 2 c'a'b - c'a'a c */
		penalty += weight[j] * fabs(c[j]);
		if (fabs(ar[j]) > weight[j])
			shrink = fmin(shrink, weight[j] / fabs(ar[j]));
	}
	rest = fmax(p->tss - fit, 0.0); /* r'r */
	br = p->tss - cblas_ddot((int)p->n_columns, c, 1, ab, 1);
	return 0.5 * rest + penalty - shrink * br + 0.5 * shrink * shrink * rest;
}

int lsq_lasso_scaled(const struct lsq_problem *p, const double *weight, double tolerance, size_t max_sweeps,
		     double *out, bool *out_converged, struct err *err)
{
	size_t k = p->n_columns;
	double *gram, *ab, *ar;
	bool converged = false;

	gram = k && k > LSQ_MAX_CELLS / k ? NULL : mem_calloc(k * k, sizeof *gram);
	ab = mem_calloc(k, sizeof *ab);
	ar = mem_calloc(k, sizeof *ar);
	if (!gram || !ab || !ar) {
		free(gram);
		free(ab);
		free(ar);
		return err_nomem(err, "a lasso fit of %zu columns", k);
	}
	if (k) {
		cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, (int)k, (int)p->m, 1.0, p->a, (int)p->m,
			    0.0, gram, (int)k);
		cblas_dgemv(CblasColMajor, CblasTrans, (int)p->m, (int)k, 1.0, p->a, (int)p->m, p->b, 1, 0.0,
			    ab, 1);
	}
	for (size_t j = 0; j < k; j++) {
		out[j] = 0.0;
		ar[j] = ab[j];
		for (size_t i = 0; i < j; i++)
			gram[i * k + j] = gram[j * k + i];
	}
	for (size_t sweep = 0; sweep < max_sweeps && !converged; sweep++) {
		double step = 0.0; /* columns have length 1: the most that any of them moved the fit */

		for (size_t j = 0; j < k; j++) {
			double diagonal = gram[j * k + j], pull = ar[j] + diagonal * out[j], next = 0.0;

			if (diagonal <= 0.0)
				continue;
			if (fabs(pull) > weight[j])
				next = (pull - copysign(weight[j], pull)) / diagonal;
			if (next == out[j])
				continue;
			cblas_daxpy((int)k, out[j] - next, gram + j * k, 1, ar, 1);
			step = fmax(step, fabs(out[j] - next));
			out[j] = next;
		}
		converged = duality_gap(p, weight, ab, ar, out) <= tolerance * p->tss ||
			    step <= 4.0 * DBL_EPSILON * sqrt(p->tss);
	}
	*out_converged = converged;
	free(gram);
	free(ab);
	free(ar);
	return 0;
}
