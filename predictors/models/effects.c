/* Random effects in log time. See effects.h. */
#define _GNU_SOURCE /* qsort_r() */
#include "predictors/models/effects.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"

#define EFFECTS_PRIOR_SD 0.2 /* of the one pseudo-effect of each kind, in log time */
#define PRIOR_REST_SD 0.05 /* of the one pseudo-point */
#define MAX_STEPS 30
#define MAX_POINTS 20000 /* of more, evenly spaced ones are used: a hundred weights need no more */
#define TINY 1e-12

enum kind { KIND_NUMBER, KIND_CATEGORY, KIND_SQUARE, KIND_SLOPE, KIND_PAIR, N_KINDS };
static const char *const kind_name[N_KINDS] = { "numbers", "categories", "squares", "slopes", "pairs" };

struct column {
	uint8_t a, b; /* axes; b is NONE where there is but one */
	uint8_t kind;
};
#define NONE 255

struct effects {
	bool law;
	size_t n_axes, n;
	struct axis axis[EFFECTS_AXES];
	struct column column[EFFECTS_COLUMNS];
	double centre, mean[EFFECTS_COLUMNS], weight[EFFECTS_COLUMNS];
	double variance[N_KINDS], rest; /* of an effect of each kind; of a point */
	double n_points;
	double *root; /* n x n, lower: the inverse of the factor of the weights' precision over `rest` */
	double *root_mean; /* n: root times mean */
};

/* ---- columns ---- */

/* The values of all columns at coordinates z; of a z[NONE] there is room. */
static void fill(const struct effects *e, double *z, double *out)
{
	double in[NONE + 1];

	for (size_t a = 0; a < e->n_axes; a++)
		in[a] = z[a] < e->axis[a].low    ? e->axis[a].low
			: z[a] > e->axis[a].high ? e->axis[a].high
						 : z[a];
	in[NONE] = z[NONE] = 1.0;
	for (size_t j = 0; j < e->n; j++) {
		const struct column *c = &e->column[j];
		const double *of = e->law && c->kind != KIND_SQUARE ? z : in;

		out[j] = of[c->a] * of[c->b];
	}
}

/* A category as 0 or 1 again; what is missing counts as the mean. */
static void locate_axis(const struct effects *e, size_t a, const double *x, double *z)
{
	const struct axis *axis = &e->axis[a];
	double v = axis_at(axis, x[axis->feature]);

	z[a] = isnan(v) ? 0.0 : v;
}

static void locate(const struct effects *e, const double *x, double *z)
{
	for (size_t a = 0; a < e->n_axes; a++)
		locate_axis(e, a, x, z);
}

static void add_kind(struct effects *e, enum kind kind, const struct column *c, size_t n)
{
	if (e->n + n > EFFECTS_COLUMNS)
		return;
	for (size_t i = 0; i < n; i++) {
		e->column[e->n] = c[i];
		e->column[e->n++].kind = (uint8_t)kind;
	}
}

/* Do both categories occur together, in one row at least? */
static bool together(const struct dataset *d, const struct effects *e, size_t a, size_t b)
{
	for (size_t i = 0; i < d->n_rows; i++)
		if (d->x[i * d->n_features + e->axis[a].feature] > 0.5 &&
		    d->x[i * d->n_features + e->axis[b].feature] > 0.5)
			return true;
	return false;
}

static void make_columns(struct effects *e, const struct dataset *d)
{
	struct column list[EFFECTS_COLUMNS + 1];
	size_t n[N_KINDS] = { 0 };

	for (int kind = 0; kind < N_KINDS; kind++) {
		for (size_t a = 0; a < e->n_axes; a++) {
			bool category = e->axis[a].category;
			size_t from = kind == KIND_SQUARE ? a : 0, to = kind == KIND_PAIR ? a : e->n_axes;

			if (kind <= KIND_CATEGORY) {
				if (category == (kind == KIND_CATEGORY) && n[kind] < EFFECTS_COLUMNS)
					list[n[kind]++] = (struct column){ .a = (uint8_t)a, .b = NONE };
				continue;
			}
			for (size_t b = from; b < to && n[kind] <= EFFECTS_COLUMNS; b++) {
				bool fits = kind == KIND_SQUARE ? !category && !e->axis[b].category
					    : kind == KIND_SLOPE
						    ? category && !e->axis[b].category
						    : category && e->axis[b].category && together(d, e, a, b);

				if (fits && n[kind] <= EFFECTS_COLUMNS)
					list[n[kind]++] = (struct column){ .a = (uint8_t)a, .b = (uint8_t)b };
			}
		}
		add_kind(e, (enum kind)kind, list, n[kind]);
	}
}

/* ---- points ---- */

struct points {
	const struct effects *e;
	double *z;
	size_t n_axes;
};

static int compare_points(const void *a, const void *b, void *ctx)
{
	const struct points *p = ctx;

	for (size_t k = 0; k < p->n_axes; k++) {
		double x = p->z[*(const uint32_t *)a * p->n_axes + k],
		       y = p->z[*(const uint32_t *)b * p->n_axes + k];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* Rows of one setting become one point: columns[n][e->n] and their mean y. Returns how many there are; 0: out
 * of memory, or no row has a y. */
static size_t collect(struct effects *e, const struct dataset *d, const double *y, double **out_x,
		      double **out_y)
{
	struct points p = { .e = e, .n_axes = e->n_axes };
	uint32_t *row = mem_array(d->n_rows, sizeof *row);
	size_t n = 0, n_points = 0, step = d->n_rows / MAX_POINTS + 1;

	p.z = mem_array(d->n_rows * (e->n_axes + 1), sizeof *p.z);
	*out_x = mem_array((d->n_rows / step + 1) * (e->n + 1), sizeof **out_x);
	*out_y = mem_array(d->n_rows, sizeof **out_y);
	for (size_t i = 0; row && p.z && i < d->n_rows; i += step) {
		if (isnan(y[i]))
			continue;
		locate(e, d->x + i * d->n_features, p.z + i * e->n_axes);
		row[n++] = (uint32_t)i;
	}
	if (row && p.z && *out_x && *out_y)
		qsort_r(row, n, sizeof *row, compare_points, &p);
	else
		n = 0;
	for (size_t from = 0, to; from < n; from = to) {
		double sum = 0.0, z[NONE + 1];

		for (to = from; to < n && !compare_points(&row[from], &row[to], &p); to++)
			sum += y[row[to]];
		memcpy(z, p.z + row[from] * e->n_axes, e->n_axes * sizeof *z);
		fill(e, z, *out_x + n_points * e->n);
		(*out_y)[n_points++] = sum / (double)(to - from);
	}
	free(row);
	free(p.z);
	return n_points;
}

/* ---- variances and weights ---- */

struct evidence {
	size_t n, n_points;
	double *gram, *right; /* X'X, X'y */
	double *factor; /* of gram + rest / variance; then its inverse */
	double squares; /* y'y */
};

/* Weights under the present variances; false: the matrix has no factor. */
static bool solve(struct effects *e, const struct evidence *v)
{
	size_t n = v->n;

	memcpy(v->factor, v->gram, n * n * sizeof *v->factor);
	for (size_t j = 0; j < n; j++)
		v->factor[j * n + j] += e->rest / e->variance[e->column[j].kind] + TINY;
	if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, v->factor, (lapack_int)n) ||
	    LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'L', 'N', (lapack_int)n, v->factor, (lapack_int)n))
		return false;
	/* the inverse of the factor R: weights are R' R b */
	memcpy(e->weight, v->right, n * sizeof *e->weight);
	cblas_dtrmv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, v->factor, (int)n,
		    e->weight, 1);
	cblas_dtrmv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, (int)n, v->factor, (int)n, e->weight,
		    1);
	return true;
}

/* One step of MacKay's fixed point. Returns the largest relative change. */
static double improve(struct effects *e, const struct evidence *v)
{
	double well[N_KINDS] = { 0.0 }, squares[N_KINDS] = { 0.0 }, all = 0.0, change = 0.0,
	       error = v->squares;
	size_t n = v->n, count[N_KINDS] = { 0 };
	double rest = e->rest;

	for (size_t j = 0; j < n; j++) {
		int kind = e->column[j].kind;
		double inverse = cblas_dnrm2((int)(n - j), v->factor + j * n + j, 1); /* column j of R */

		inverse *= inverse;
		well[kind] += 1.0 - fmin(inverse * e->rest / e->variance[kind], 1.0);
		squares[kind] += e->weight[j] * e->weight[j];
		count[kind]++;
	}
	for (size_t j = 0; j < n; j++) { /* |y - Xw|^2 = y'y - 2 w'b + w'Gw */
		error += e->weight[j] *
			 (cblas_ddot((int)n, v->gram + j * n, 1, e->weight, 1) - 2.0 * v->right[j]);
	}
	for (int k = 0; k < N_KINDS; k++) {
		double before = e->variance[k];

		if (!count[k]) {
			e->variance[k] = TINY;
			continue;
		}
		all += well[k];
		e->variance[k] = (squares[k] + EFFECTS_PRIOR_SD * EFFECTS_PRIOR_SD) / (well[k] + 1.0);
		change = fmax(change, fabs(log(e->variance[k] / before)));
	}
	e->rest = (fmax(error, 0.0) + PRIOR_REST_SD * PRIOR_REST_SD) /
		  fmax((double)v->n_points - 1.0 - all + 1.0, 1.0);
	return fmax(change, fabs(log(e->rest / rest)));
}

static int find_weights(struct effects *e, double *x, double *y, size_t n_points, struct err *err)
{
	size_t n = e->n;
	struct evidence v = { .n = n, .n_points = n_points };
	int rc = 0;

	e->n_points = (double)n_points;
	for (size_t i = 0; i < n_points; i++)
		e->centre += y[i] / (double)n_points;
	for (size_t i = 0; i < n_points; i++) {
		y[i] -= e->centre;
		v.squares += y[i] * y[i];
		for (size_t j = 0; j < n; j++)
			e->mean[j] += x[i * n + j] / (double)n_points;
	}
	for (size_t i = 0; i < n_points; i++)
		for (size_t j = 0; j < n; j++)
			x[i * n + j] -= e->mean[j];
	e->rest = fmax(0.1 * v.squares / (double)n_points, PRIOR_REST_SD * PRIOR_REST_SD);
	for (int k = 0; k < N_KINDS; k++)
		e->variance[k] = k <= KIND_CATEGORY ? 1.0 : 0.1;
	v.gram = mem_calloc(n * n + 1, sizeof *v.gram);
	v.right = mem_calloc(n + 1, sizeof *v.right);
	v.factor = mem_calloc(n * n + 1, sizeof *v.factor);
	if (!v.gram || !v.right || !v.factor) {
		rc = err_nomem(err, "%zu effects", n);
		goto out;
	}
	if (n) {
		cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)n, (int)n_points, 1.0, x, (int)n,
			    0.0, v.gram, (int)n);
		for (size_t j = 0; j < n; j++)
			for (size_t i = j + 1; i < n; i++)
				v.gram[i * n + j] = v.gram[j * n + i];
		cblas_dgemv(CblasColMajor, CblasNoTrans, (int)n, (int)n_points, 1.0, x, (int)n, y, 1, 0.0,
			    v.right, 1);
	}
	for (int step = 0; step < MAX_STEPS; step++) {
		if (n && !solve(e, &v)) {
			rc = err_fail(err, ERR_NUMERIC, "the effects in log time cannot be told apart");
			goto out;
		}
		if (improve(e, &v) < 0.02)
			break;
	}
	if (n && !solve(e, &v))
		rc = err_fail(err, ERR_NUMERIC, "the effects in log time cannot be told apart");
	for (size_t j = 0; !rc && j < n; j++)
		for (size_t i = 0; i < j; i++)
			v.factor[j * n + i] = 0.0; /* above the diagonal */
	if (!rc) {
		e->root = v.factor;
		v.factor = NULL;
	}
out:
	free(v.gram);
	free(v.right);
	free(v.factor);
	return rc;
}

/* For effects_spread(). */
static int multiply_mean(struct effects *e, struct err *err)
{
	e->root_mean = mem_calloc(e->n + 1, sizeof *e->root_mean);
	if (!e->root_mean)
		return err_nomem(err, "the spread of effects");
	for (size_t j = 0; j < e->n; j++)
		for (size_t i = j; i < e->n; i++)
			e->root_mean[i] += e->root[j * e->n + i] * e->mean[j];
	return 0;
}

int effects_fit(const struct dataset *d, const double *y, bool law, struct effects **out, struct err *err)
{
	struct effects *e = mem_calloc(1, sizeof *e);
	double *x = NULL, *mean = NULL;
	size_t n_points;
	int rc = 0;

	if (!e)
		return err_nomem(err, "effects");
	e->law = law;
	for (size_t f = 0; f < d->n_features && e->n_axes < EFFECTS_AXES; f++) {
		struct axis *a = &e->axis[e->n_axes];

		if ((d->factor && !d->factor[f]) || !axis_make(d, f, a))
			continue;
		if (a->category) { /* 0 or 1 */
			a->low = 0.0;
			a->high = 1.0;
			a->centre = 0.0;
		}
		e->n_axes++;
	}
	make_columns(e, d);
	n_points = collect(e, d, y, &x, &mean);
	rc = n_points ? find_weights(e, x, mean, n_points, err) : err_nomem(err, "%zu effects", e->n);
	if (!rc)
		rc = multiply_mean(e, err);
	free(x);
	free(mean);
	if (rc)
		effects_free(e);
	else
		*out = e;
	return rc;
}

void effects_free(struct effects *e)
{
	if (!e)
		return;
	free(e->root);
	free(e->root_mean);
	free(e);
}

/* ---- what they say ---- */

static double sum_at(const struct effects *e, double *z)
{
	double v[EFFECTS_COLUMNS], sum = e->centre;

	fill(e, z, v);
	for (size_t j = 0; j < e->n; j++)
		sum += (v[j] - e->mean[j]) * e->weight[j];
	return sum;
}

double effects_at(const struct effects *e, const double *x)
{
	double z[NONE + 1];

	locate(e, x, z);
	return sum_at(e, z);
}

void effects_at_rows(const struct effects *e, const double *x, size_t n_rows, size_t n_features, double *out)
{
	double z[NONE + 1];

	for (size_t i = 0; i < n_rows; i++, x += n_features) {
		if (!i)
			locate(e, x, z);
		for (size_t a = 0; i && a < e->n_axes; a++) /* most are as in the row before */
			if (!(x[e->axis[a].feature] == (x - n_features)[e->axis[a].feature]))
				locate_axis(e, a, x, z);
		out[i] = sum_at(e, z);
	}
}

/* The variance of effects that no row has shown: of a category never seen, of a pair never seen together. */
static double not_met(const struct effects *e, const double *x, const double *z)
{
	size_t present = 0, pairs = 0;
	bool missing = false;

	for (size_t a = 0; a < e->n_axes; a++) {
		present += e->axis[a].category && z[a] > 0.5;
		missing |= e->axis[a].category && isnan(x[e->axis[a].feature]);
	}
	for (size_t j = e->n; j-- > 0 && e->column[j].kind == KIND_PAIR;) /* the last kind */
		pairs += z[e->column[j].a] * z[e->column[j].b] > 0.5;
	return (missing ? e->variance[KIND_CATEGORY] : 0.0) +
	       e->variance[KIND_PAIR] * (double)(present * (present - !!present) / 2 - pairs + missing);
}

double effects_spread(const struct effects *e, const double *x)
{
	double z[NONE + 1], v[EFFECTS_COLUMNS], of[EFFECTS_COLUMNS], sum = 0.0;
	size_t n = e->n;

	locate(e, x, z);
	fill(e, z, v);
	/* root (v - mean), by columns: of the categories most are 0, and so are their slopes and pairs */
	for (size_t i = 0; i < n; i++)
		of[i] = -e->root_mean[i];
	for (size_t j = 0; j < n; j++) {
		const double *column = e->root + j * n;

		if (v[j] == 0.0)
			continue;
		for (size_t i = j; i < n; i++)
			of[i] += v[j] * column[i];
	}
	for (size_t i = 0; i < n; i++)
		sum += of[i] * of[i];
	return sqrt(e->rest * (1.0 + 1.0 / e->n_points + sum) + not_met(e, x, z));
}

void effects_describe(const struct effects *e, struct json_writer *w)
{
	size_t count[N_KINDS] = { 0 };

	for (size_t j = 0; j < e->n; j++)
		count[e->column[j].kind]++;
	json_kv_open(w, "effects", '{');
	for (int k = 0; k < N_KINDS; k++) {
		if (!count[k])
			continue;
		json_kv_open(w, kind_name[k], '{');
		json_kv_int(w, "count", (long long)count[k]);
		json_kv_number(w, "sd", sqrt(e->variance[k]));
		json_close(w, '}');
	}
	json_kv_number(w, "rest_sd", sqrt(e->rest));
	json_close(w, '}');
}

/* ---- in a model file ---- */

void effects_save(const struct effects *e, struct writer *w)
{
	write_u8(w, e->law);
	write_u32(w, (uint32_t)e->n_axes);
	for (size_t a = 0; a < e->n_axes; a++) {
		write_u32(w, e->axis[a].feature);
		write_u8(w, (uint8_t)(e->axis[a].logarithm | e->axis[a].category << 1));
		write_f64(w, e->axis[a].centre);
		write_f64(w, e->axis[a].scale);
		write_f64(w, e->axis[a].low);
		write_f64(w, e->axis[a].high);
	}
	write_u32(w, (uint32_t)e->n);
	for (size_t j = 0; j < e->n; j++) {
		write_u8(w, e->column[j].a);
		write_u8(w, e->column[j].b);
		write_u8(w, e->column[j].kind);
		write_f64(w, e->mean[j]);
		write_f64(w, e->weight[j]);
	}
	for (int k = 0; k < N_KINDS; k++)
		write_f64(w, e->variance[k]);
	write_f64(w, e->rest);
	write_f64(w, e->centre);
	write_f64(w, e->n_points);
	for (size_t j = 0; j < e->n; j++)
		for (size_t i = j; i < e->n; i++)
			write_f64(w, e->root[j * e->n + i]);
}

static bool is_number(double v)
{
	return fabs(v) < 1e9;
}

static bool load_axes(struct effects *e, struct reader *r, size_t n_features)
{
	bool good = true;

	e->law = read_u8(r);
	e->n_axes = read_u32(r);
	if (r->failed || e->n_axes > EFFECTS_AXES)
		return false;
	for (size_t a = 0; a < e->n_axes; a++) {
		struct axis *axis = &e->axis[a];
		uint8_t how;

		axis->feature = read_u32(r);
		how = read_u8(r);
		axis->logarithm = how & 1;
		axis->category = how >> 1 & 1;
		axis->centre = read_f64(r);
		axis->scale = read_f64(r);
		axis->low = read_f64(r);
		axis->high = read_f64(r);
		good = good && axis->feature < n_features && how <= 3 && isfinite(axis->centre) &&
		       axis->scale > 0.0 && isfinite(axis->scale) && is_number(axis->low) &&
		       is_number(axis->high) && axis->low <= axis->high;
	}
	return good;
}

static bool load_weights(struct effects *e, struct reader *r)
{
	bool good = true;

	e->n = read_u32(r);
	if (r->failed || e->n > EFFECTS_COLUMNS)
		return false;
	for (size_t j = 0; j < e->n; j++) {
		struct column *c = &e->column[j];

		c->a = read_u8(r);
		c->b = read_u8(r);
		c->kind = read_u8(r);
		e->mean[j] = read_f64(r);
		e->weight[j] = read_f64(r);
		good = good && c->a < e->n_axes && (c->b == NONE || c->b < e->n_axes) && c->kind < N_KINDS &&
		       is_number(e->mean[j]) && is_number(e->weight[j]);
	}
	for (int k = 0; k < N_KINDS; k++) {
		e->variance[k] = read_f64(r);
		good = good && e->variance[k] > 0.0 && is_number(e->variance[k]);
	}
	e->rest = read_f64(r);
	e->centre = read_f64(r);
	e->n_points = read_f64(r);
	return good && e->rest > 0.0 && is_number(e->rest) && is_number(e->centre) && e->n_points >= 1.0;
}

int effects_load(struct reader *r, size_t n_features, struct effects **out, struct err *err)
{
	struct effects *e = mem_calloc(1, sizeof *e);
	bool good = e && load_axes(e, r, n_features) && load_weights(e, r);

	if (!e)
		return err_nomem(err, "effects");
	if (good) {
		e->root = mem_calloc(e->n * e->n + 1, sizeof *e->root);
		if (!e->root) {
			effects_free(e);
			return err_nomem(err, "the spread of effects");
		}
	}
	for (size_t j = 0; good && j < e->n; j++)
		for (size_t i = j; i < e->n; i++) {
			e->root[j * e->n + i] = read_f64(r);
			good = good && isfinite(e->root[j * e->n + i]);
		}
	if (!good || r->failed) {
		effects_free(e);
		return err_fail(err, ERR_FORMAT, "the effects in log time are damaged");
	}
	if (multiply_mean(e, err)) {
		effects_free(e);
		return -ERR_NOMEM;
	}
	*out = e;
	return 0;
}
