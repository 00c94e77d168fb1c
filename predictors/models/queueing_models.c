/* The models `queueing`, calibrated on measurements, and `queueing-paper`, as published. queue_model.c has
 * what they share with `hybrid`. */
#include "predictors/models/queueing_models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "queueing/paper.h"

/* ---- `queueing` ---- */

struct queueing {
	struct queue_model m;
	double *importance; /* NULL after loading, and where they are not wanted */
	size_t n_features;
};

static const struct setting_spec queueing_spec[] = {
	QUEUE_CORES_SETTING,
	QUEUE_SIZE_SETTINGS,
	{ .name = NULL },
};

static void queueing_destroy(void *self)
{
	struct queueing *q = self;

	if (!q)
		return;
	free(q->importance);
	free(q);
}

static void queueing_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct queueing *q = self;

	for (size_t i = 0; i < n_rows; i++)
		out[i] = queue_model_time_s(&q->m, x + i * q->n_features);
}

static int queueing_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
			void **out_self, struct err *err)
{
	struct queueing *q = mem_calloc(1, sizeof *q);
	int rc;

	if (!q)
		return err_nomem(err, "a queueing model");
	q->n_features = d->n_features;
	rc = queue_model_fit(queueing_ops.title, s, d, QUEUE_CALIBRATED,
			     &(struct calibrate_params){ .stop = ctx->stop, .memo = ctx->memo }, &q->m, err);
	if (!rc && !ctx->no_importances)
		rc = queue_importances(queueing_predict, q, d, &q->importance, err);
	if (rc)
		queueing_destroy(q);
	else
		*out_self = q;
	return rc;
}

static void queueing_importances(const void *self, double *out)
{
	const struct queueing *q = self;

	for (size_t f = 0; f < q->n_features; f++)
		out[f] = q->importance ? q->importance[f] : 0.0;
}

static void queueing_shares(const void *self, const double *x, struct work_shares *out)
{
	queue_model_shares(&((const struct queueing *)self)->m, x, out);
}

static double queueing_spread(const void *self, const double *x)
{
	return queue_model_spread(&((const struct queueing *)self)->m, x);
}

static void queueing_machine(const void *self, double *out_cores, double *out_disk_saturation)
{
	queue_model_machine(&((const struct queueing *)self)->m, out_cores, out_disk_saturation);
}

static void queueing_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	queue_model_describe(&((const struct queueing *)self)->m, names, w);
}

static void queueing_remark(const void *self, const struct dataset *names, char *out, size_t size)
{
	(void)names;
	queue_model_remark(&((const struct queueing *)self)->m, out, size);
}

static int queueing_save(const void *self, struct writer *w, struct err *err)
{
	queue_model_save(&((const struct queueing *)self)->m, w);
	return w->out.failed ? err_fail(err, ERR_NOMEM, "out of memory to write a queueing model") : 0;
}

static int queueing_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	struct queueing *q = mem_calloc(1, sizeof *q);
	int rc;

	if (!q)
		return err_nomem(err, "a queueing model");
	q->n_features = n_features;
	rc = queue_model_load(r, n_features, &q->m, err);
	if (rc)
		queueing_destroy(q);
	else
		*out_self = q;
	return rc;
}

const struct predictor_ops queueing_ops = {
	.name = "queueing",
	.title = "calibrated queueing model",
	.spec = queueing_spec,
	.log_errors = true,
	.fit = queueing_fit,
	.predict = queueing_predict,
	.shares = queueing_shares,
	.spread = queueing_spread,
	.machine = queueing_machine,
	.importances = queueing_importances,
	.describe = queueing_describe,
	.remark = queueing_remark,
	.save = queueing_save,
	.load = queueing_load,
	.destroy = queueing_destroy,
};

/* ---- `queueing-paper` ---- */

struct queueing_paper {
	struct queue_map map;
	struct paper m;
	size_t n_features;
};

static const struct setting_spec paper_spec[] = {
	{ .name = "cpu_service",
	  .otherwise = PAPER_CPU_SERVICE_S,
	  .min = 0,
	  .max = 1e6,
	  .help = "E[S_cpu] in seconds; 0: estimated" },
	{ .name = "workers", .otherwise = PAPER_WORKERS, .min = 1, .max = 1e6, .help = "machines, N_w" },
	QUEUE_SIZE_SETTINGS,
	{ .name = NULL },
};

static void paper_destroy(void *self)
{
	free(self);
}

static struct paper_job paper_job_of(const struct queue_map *map, const double *x)
{
	struct calibrate_job j;

	queue_map_job(map, x, &j);
	return (struct paper_job){ .iterations = j.iterations, .batch = j.batch, .processes = j.processes };
}

static int paper_fit_op(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
			void **out_self, struct err *err)
{
	struct queueing_paper *q = mem_calloc(1, sizeof *q);
	struct paper_job *job = mem_array(d->n_rows, sizeof *job);
	int rc;

	(void)ctx;
	if (!q || !job) {
		rc = err_nomem(err, "%zu jobs", d->n_rows);
		goto out;
	}
	q->n_features = d->n_features;
	rc = queue_map_make(queueing_paper_ops.title, s, d, &q->map, err);
	if (rc)
		goto out;
	for (size_t i = 0; i < d->n_rows; i++)
		job[i] = paper_job_of(&q->map, d->x + i * d->n_features);
	rc = paper_fit(job, d->y, d->n_rows, settings_get(s, "cpu_service"), settings_get(s, "workers"),
		       &q->m, err);
	if (rc) {
		err_prefix(err, "%s", queueing_paper_ops.title);
		goto out;
	}
	*out_self = q;
	q = NULL;
out:
	free(job);
	paper_destroy(q);
	return rc;
}

static void paper_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct queueing_paper *q = self;

	for (size_t i = 0; i < n_rows; i++) {
		struct paper_job j = paper_job_of(&q->map, x + i * q->n_features);

		if (paper_time_s(&q->m, &j, &out[i], NULL))
			out[i] = NAN;
	}
}

static void paper_why_none(const void *self, const double *x, char *out, size_t size)
{
	const struct queueing_paper *q = self;
	struct paper_job j = paper_job_of(&q->map, x);
	struct err err = { 0 };
	double t;

	if (paper_time_s(&q->m, &j, &t, &err))
		snprintf(out, size, "unstable at batch %g, %g processes: %s", j.batch, j.processes, err.text);
	else
		out[0] = '\0';
}

static void paper_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct queueing_paper *q = self;
	char text[256];

	(void)names;
	snprintf(text, sizeof text,
		 "%.3g s of CPU per iteration; the disk serves %.4g %+.4g batch %+.4g processes requests per "
		 "second",
		 q->m.cpu_service_s, q->m.mu[0], q->m.mu[1], q->m.mu[2]);
	json_kv_string(w, "sentence", text);
	queue_map_describe(&q->map, w);
	json_kv_number(w, "cpu_service_s", q->m.cpu_service_s);
	json_kv_number(w, "workers", q->m.workers);
	json_kv_open(w, "disk_rate_per_s", '{');
	json_kv_number(w, "intercept", q->m.mu[0]);
	json_kv_number(w, "batch", q->m.mu[1]);
	json_kv_number(w, "processes", q->m.mu[2]);
	json_close(w, '}');
	json_kv_int(w, "rows", (long long)q->m.n_used);
	json_kv_int(w, "negative_service", (long long)q->m.n_negative);
}

static void paper_remark(const void *self, const struct dataset *names, char *out, size_t size)
{
	const struct queueing_paper *q = self;

	(void)names;
	out[0] = '\0';
	if (q->m.n_negative)
		snprintf(out, size, "%zu of %zu rows imply a negative service of the disk and were left out",
			 q->m.n_negative, q->m.n_used + q->m.n_negative);
}

static int paper_save(const void *self, struct writer *w, struct err *err)
{
	const struct queueing_paper *q = self;

	queue_map_save(&q->map, w);
	write_f64(w, q->m.cpu_service_s);
	write_f64(w, q->m.workers);
	for (int i = 0; i < 3; i++)
		write_f64(w, q->m.mu[i]);
	write_u64(w, q->m.n_used);
	write_u64(w, q->m.n_negative);
	return w->out.failed ? err_fail(err, ERR_NOMEM, "out of memory to write a queueing model") : 0;
}

static int paper_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	struct queueing_paper *q = mem_calloc(1, sizeof *q);
	int rc;

	if (!q)
		return err_nomem(err, "a queueing model");
	q->n_features = n_features;
	rc = queue_map_load(r, n_features, &q->map, err);
	q->m.cpu_service_s = read_f64(r);
	q->m.workers = read_f64(r);
	for (int i = 0; i < 3; i++)
		q->m.mu[i] = read_f64(r);
	q->m.n_used = (size_t)read_u64(r);
	q->m.n_negative = (size_t)read_u64(r);
	if (!rc && (r->failed || !(q->m.cpu_service_s > 0.0 && isfinite(q->m.cpu_service_s)) ||
		    !(q->m.workers > 0.0 && isfinite(q->m.workers)) || !isfinite(q->m.mu[0]) ||
		    !isfinite(q->m.mu[1]) || !isfinite(q->m.mu[2])))
		rc = err_fail(err, ERR_FORMAT, "the parameters of the paper's model are not rates");
	if (rc)
		paper_destroy(q);
	else
		*out_self = q;
	return rc;
}

const struct predictor_ops queueing_paper_ops = {
	.name = "queueing-paper",
	.title = "queueing model of the Courier paper",
	.spec = paper_spec,
	.log_errors = true,
	.fit = paper_fit_op,
	.predict = paper_predict,
	.why_none = paper_why_none,
	.describe = paper_describe,
	.remark = paper_remark,
	.save = paper_save,
	.load = paper_load,
	.destroy = paper_destroy,
};
