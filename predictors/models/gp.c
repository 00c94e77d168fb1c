/* The model `gp`: the calibrated queueing model times a Gaussian process. See gp.h. */
#define _GNU_SOURCE /* qsort_r() */
#include "predictors/models/gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "predictors/data/features.h"
#include "predictors/models/axes.h"
#include "predictors/models/gp_fit.h"
#include "predictors/models/queueing_models.h"

#define BEYOND 0.5 /* of the training range: further out the process stays as it is there */

struct gp {
	struct queue_model queue;
	size_t n_features, n_axes;
	struct axis axis[GP_AXES];
	struct gp_process process;
	double *importance; /* NULL after loading, and where they are not wanted */
};

static const struct setting_spec gp_spec[] = {
	QUEUE_CORES_SETTING,
	QUEUE_SIZE_SETTINGS,
	{ .name = NULL },
};

static void gp_destroy(void *self)
{
	struct gp *g = self;

	if (!g)
		return;
	gp_process_release(&g->process);
	free(g->importance);
	free(g);
}

/* ---- coordinates ---- */

static double coordinate(const struct axis *a, double v)
{
	v = axis_at(a, v);
	return isnan(v) ? 0.0 : v < a->low ? a->low : v > a->high ? a->high : v;
}

static void locate(const struct gp *g, const double *x, double *z)
{
	for (size_t a = 0; a < g->n_axes; a++)
		z[a] = coordinate(&g->axis[a], x[g->axis[a].feature]);
}

/* ---- fit ---- */

struct points {
	double *z; /* row-major */
	double *residual;
	size_t n_axes;
};

static int compare_points(const void *a_, const void *b_, void *ctx)
{
	const struct points *p = ctx;
	size_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;

	for (size_t k = 0; k < p->n_axes; k++) {
		double x = p->z[a * p->n_axes + k], y = p->z[b * p->n_axes + k];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return (a > b) - (a < b);
}

static bool same_point(const struct points *p, size_t a, size_t b)
{
	return !memcmp(p->z + a * p->n_axes, p->z + b * p->n_axes, p->n_axes * sizeof *p->z);
}

/* Rows of one setting become one point. The points are in random order, and the first GP_POINTS are kept. */
static int collect(struct gp *g, const struct points *p, uint32_t *row, size_t n_rows, uint64_t seed,
		   double *out_within, size_t *out_rows, struct err *err)
{
	struct gp_process *out = &g->process;
	uint32_t *first = mem_array(n_rows + 1, sizeof *first), *order = mem_array(n_rows, sizeof *order);
	struct rng rng = rng_stream(seed, UINT64_MAX - 3);
	size_t n = 0;

	*out_within = 0.0;
	*out_rows = 0;
	for (size_t i = 0; first && order && i < n_rows; i++)
		if (!i || !same_point(p, row[i - 1], row[i])) {
			order[n] = (uint32_t)n;
			first[n++] = (uint32_t)i;
		}
	out->n = n < GP_POINTS ? n : GP_POINTS;
	out->n_axes = g->n_axes;
	out->z = mem_array(out->n * g->n_axes, sizeof *out->z);
	out->target = mem_array(out->n, sizeof *out->target);
	out->weight = mem_array(out->n, sizeof *out->weight);
	if (!first || !order || !out->z || !out->target || !out->weight) {
		free(first);
		free(order);
		return err_nomem(err, "%zu points", n);
	}
	first[n] = (uint32_t)n_rows;
	rng_shuffle(&rng, order, n);
	for (size_t i = 0; i < out->n; i++) {
		size_t from = first[order[i]], to = first[order[i] + 1];
		double mean = 0.0;

		for (size_t k = from; k < to; k++)
			mean += p->residual[row[k]] / (double)(to - from);
		for (size_t k = from; k < to; k++)
			*out_within += (p->residual[row[k]] - mean) * (p->residual[row[k]] - mean);
		for (size_t a = 0; a < g->n_axes; a++)
			out->z[a * out->n + i] = p->z[row[from] * g->n_axes + a];
		out->target[i] = mean;
		out->weight[i] = (double)(to - from);
		*out_rows += to - from;
	}
	free(first);
	free(order);
	return 0;
}

static void make_axes(struct gp *g, const struct dataset *d, struct gp_shape *shape)
{
	size_t categories = SIZE_MAX; /* their length */

	for (size_t f = 0; f < d->n_features && g->n_axes < GP_AXES; f++) {
		struct axis *axis = &g->axis[g->n_axes];
		double beyond;
		bool category;

		if ((d->factor && !d->factor[f]) || !axis_make(d, f, axis))
			continue;
		category = axis->category;
		beyond = BEYOND * (axis->high - axis->low);
		axis->low -= beyond;
		axis->high += beyond;
		if (!category || categories == SIZE_MAX)
			shape->length_of[g->n_axes] = (unsigned char)shape->n_lengths++;
		else
			shape->length_of[g->n_axes] = (unsigned char)categories;
		if (category && categories == SIZE_MAX)
			categories = shape->length_of[g->n_axes];
		g->n_axes++;
	}
}

static int fit_process(struct gp *g, const struct dataset *d, const struct fit_context *ctx, struct err *err)
{
	struct gp_shape shape = { .stop = ctx->stop };
	struct points p = { 0 };
	uint32_t *row = mem_array(d->n_rows, sizeof *row);
	size_t n = 0;
	int rc = 0;

	make_axes(g, d, &shape);
	p.n_axes = g->n_axes;
	p.z = mem_array(d->n_rows * (g->n_axes ? g->n_axes : 1), sizeof *p.z);
	p.residual = mem_array(d->n_rows, sizeof *p.residual);
	if (!row || !p.z || !p.residual) {
		rc = err_nomem(err, "%zu rows", d->n_rows);
		goto out;
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		const double *x = d->x + i * d->n_features;

		p.residual[i] = log(d->y[i]) - log(queue_model_time_s(&g->queue, x));
		locate(g, x, p.z + i * g->n_axes);
		if (isfinite(p.residual[i]))
			row[n++] = (uint32_t)i;
	}
	qsort_r(row, n, sizeof *row, compare_points, &p);
	rc = collect(g, &p, row, n, ctx->seed, &shape.within, &shape.n_rows, err);
	if (!rc)
		rc = gp_search(&g->process, &shape, err);
	if (!rc)
		rc = gp_solve(&g->process, err);
out:
	free(p.z);
	free(p.residual);
	free(row);
	return rc;
}

static void gp_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct gp *g = self;
	double z[GP_AXES];

	for (size_t i = 0; i < n_rows; i++) {
		locate(g, x + i * g->n_features, z);
		out[i] = queue_model_time_s(&g->queue, x + i * g->n_features) *
			 exp(gp_mean(&g->process, z, NULL));
	}
}

static int gp_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		  void **out_self, struct err *err)
{
	struct gp *g = mem_calloc(1, sizeof *g);
	struct calibrate_params how = { .stop = ctx->stop, .memo = ctx->memo };
	int rc;

	if (!g)
		return err_nomem(err, "a Gaussian process");
	g->n_features = d->n_features;
	rc = queue_model_fit(gp_ops.title, s, d, QUEUE_CALIBRATED, &how, &g->queue, err);
	if (!rc)
		rc = fit_process(g, d, ctx, err);
	if (!rc && !ctx->no_importances)
		rc = queue_importances(gp_predict, g, d, &g->importance, err);
	if (rc)
		gp_destroy(g);
	else
		*out_self = g;
	return rc;
}

/* ---- the rest ---- */

static double gp_spread(const void *self, const double *x)
{
	const struct gp *g = self;
	double z[GP_AXES], variance;

	locate(g, x, z);
	gp_mean(&g->process, z, &variance);
	return sqrt(variance) * queue_model_spread(&g->queue, x);
}

static void gp_shares(const void *self, const double *x, struct work_shares *out)
{
	queue_model_shares(&((const struct gp *)self)->queue, x, out);
}

static void gp_machine(const void *self, double *out_cores, double *out_disk_saturation)
{
	queue_model_machine(&((const struct gp *)self)->queue, out_cores, out_disk_saturation);
}

static void gp_importances(const void *self, double *out)
{
	const struct gp *g = self;

	for (size_t f = 0; f < g->n_features; f++)
		out[f] = g->importance ? g->importance[f] : 0.0;
}

static void gp_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct gp *g = self;

	queue_model_describe(&g->queue, names, w);
	json_kv_open(w, "process", '{');
	json_kv_int(w, "points", (long long)g->process.n);
	json_kv_number(w, "linear_sd", sqrt(g->process.linear));
	json_kv_number(w, "smooth_sd", sqrt(g->process.smooth));
	json_kv_number(w, "noise_sd", sqrt(g->process.noise));
	json_kv_open(w, "lengths", '{');
	for (size_t a = 0; names && names->name && a < g->n_axes; a++)
		json_kv_number(w, names->name[g->axis[a].feature], 1.0 / g->process.rate[a]);
	json_close(w, '}');
	json_close(w, '}');
}

static void gp_remark(const void *self, const struct dataset *names, char *out, size_t size)
{
	(void)names;
	queue_model_remark(&((const struct gp *)self)->queue, out, size);
}

static int gp_save(const void *self, struct writer *w, struct err *err)
{
	const struct gp *g = self;
	const struct gp_process *p = &g->process;

	(void)err;
	queue_model_save(&g->queue, w);
	write_u32(w, (uint32_t)g->n_axes);
	for (size_t a = 0; a < g->n_axes; a++) {
		const struct axis *axis = &g->axis[a];

		write_u32(w, axis->feature);
		write_u8(w, axis->logarithm);
		write_f64(w, axis->centre);
		write_f64(w, axis->scale);
		write_f64(w, axis->low);
		write_f64(w, axis->high);
		write_f64(w, p->rate[a]);
	}
	write_f64(w, p->linear);
	write_f64(w, p->smooth);
	write_f64(w, p->noise);
	write_u32(w, (uint32_t)p->n);
	for (size_t i = 0; i < p->n; i++) {
		write_f64(w, p->target[i]);
		write_f64(w, p->weight[i]);
		for (size_t a = 0; a < g->n_axes; a++)
			write_f64(w, p->z[a * p->n + i]);
	}
	return 0;
}

static bool load_axes(struct gp *g, struct reader *r, size_t n_features)
{
	g->n_axes = read_u32(r);
	if (r->failed || g->n_axes > GP_AXES)
		return false;
	for (size_t a = 0; a < g->n_axes; a++) {
		struct axis *axis = &g->axis[a];

		axis->feature = read_u32(r);
		axis->logarithm = read_u8(r);
		axis->centre = read_f64(r);
		axis->scale = read_f64(r);
		axis->low = read_f64(r);
		axis->high = read_f64(r);
		g->process.rate[a] = read_f64(r);
		if (axis->feature >= n_features || axis->logarithm > 1 || !isfinite(axis->centre) ||
		    !(axis->scale > 0.0 && isfinite(axis->scale)) || !(fabs(axis->low) < 1e6) ||
		    !(fabs(axis->high) < 1e6) || !(axis->low <= axis->high) ||
		    !(g->process.rate[a] > 0.0 && g->process.rate[a] < 1e10))
			return false;
	}
	return true;
}

static bool variance_is_good(double v)
{
	return v > 0.0 && v < 1e10;
}

static int load_process(struct gp *g, struct reader *r, struct err *err)
{
	struct gp_process *p = &g->process;
	bool good;

	p->n_axes = g->n_axes;
	p->linear = read_f64(r);
	p->smooth = read_f64(r);
	p->noise = read_f64(r);
	p->n = read_u32(r);
	good = !r->failed && p->n <= GP_POINTS && variance_is_good(p->linear) &&
	       variance_is_good(p->smooth) && variance_is_good(p->noise);
	if (!good)
		return err_fail(err, ERR_FORMAT,
				"the variances of the Gaussian process are not numbers above 0");
	p->z = mem_array(p->n * p->n_axes + 1, sizeof *p->z);
	p->target = mem_array(p->n + 1, sizeof *p->target);
	p->weight = mem_array(p->n + 1, sizeof *p->weight);
	if (!p->z || !p->target || !p->weight)
		return err_nomem(err, "%zu points", p->n);
	for (size_t i = 0; i < p->n && good; i++) {
		p->target[i] = read_f64(r);
		p->weight[i] = read_f64(r);
		good = fabs(p->target[i]) < 1e6 && p->weight[i] >= 1.0 && p->weight[i] < 1e15;
		for (size_t a = 0; a < p->n_axes && good; a++) {
			p->z[a * p->n + i] = read_f64(r);
			good = fabs(p->z[a * p->n + i]) < 1e6;
		}
	}
	if (r->failed || !good)
		return err_fail(err, ERR_FORMAT, "the points of the Gaussian process are damaged");
	return gp_solve(p, err);
}

static int gp_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	struct gp *g = mem_calloc(1, sizeof *g);
	int rc;

	if (!g)
		return err_nomem(err, "a Gaussian process");
	g->n_features = n_features;
	rc = queue_model_load(r, n_features, &g->queue, err);
	if (!rc && !load_axes(g, r, n_features))
		rc = err_fail(err, ERR_FORMAT, "the coordinates of the Gaussian process are damaged");
	if (!rc)
		rc = load_process(g, r, err);
	if (rc)
		gp_destroy(g);
	else
		*out_self = g;
	return rc;
}

const struct predictor_ops gp_ops = {
	.name = "gp",
	.title = "calibrated queueing model times a Gaussian process",
	.spec = gp_spec,
	.log_errors = true,
	.fit = gp_fit,
	.predict = gp_predict,
	.spread = gp_spread,
	.shares = gp_shares,
	.machine = gp_machine,
	.importances = gp_importances,
	.describe = gp_describe,
	.remark = gp_remark,
	.save = gp_save,
	.load = gp_load,
	.destroy = gp_destroy,
};
