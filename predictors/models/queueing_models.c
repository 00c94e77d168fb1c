#include "predictors/models/queueing_models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "queueing/paper.h"

#define FAR 1e3 /* values further outside the training range than this factor count as that far */

static const char *const role_text[] = { "", "batch", "cpus", "njobs", "processes", "epochs", "samples" };

/* ---- features into jobs ---- */

/* Range and mean of the values above 0; a column without any plays no role. */
static void measure_role(struct queue_map *m, const struct dataset *d, enum feature_role role)
{
	double low = INFINITY, high = 0.0, mean = 0.0;
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows && m->at[role] >= 0; i++) {
		double v = d->x[i * d->n_features + (size_t)m->at[role]];

		if (!(v > 0.0) || !isfinite(v))
			continue;
		low = fmin(low, v);
		high = fmax(high, v);
		mean += (v - mean) / (double)++n;
	}
	if (!n)
		m->at[role] = -1;
	m->low[role] = n ? fmax(low / FAR, 1e-300) : 1.0;
	m->high[role] = n ? fmin(high * FAR, 1e300) : 1.0;
	m->mean[role] = n ? mean : 1.0;
}

static void measure_category(struct queue_map *m, const struct dataset *d, size_t feature)
{
	double mean = 0.0;
	size_t n = 0;

	if (m->n_categories == CALIBRATE_MAX_CATEGORIES)
		return; /* the forest of the hybrid sees the others */
	for (size_t i = 0; i < d->n_rows; i++) {
		double v = d->x[i * d->n_features + feature];

		if (isfinite(v) && fabs(v) <= 1.0)
			mean += (v - mean) / (double)++n;
	}
	m->category_mean[m->n_categories] = mean;
	m->category[m->n_categories++] = (uint32_t)feature;
}

int queue_map_make(const char *title, const struct settings *s, const struct dataset *d,
		   struct queue_map *out, struct err *err)
{
	struct queue_map m = { .samples = settings_get(s, "samples"), .epochs = settings_get(s, "epochs") };

	for (int r = 0; r < N_ROLES; r++)
		m.at[r] = -1;
	for (size_t f = 0; d->role && f < d->n_features; f++) {
		if (d->role[f] == ROLE_CATEGORY)
			measure_category(&m, d, f);
		else if (d->role[f] != ROLE_NONE && m.at[d->role[f]] < 0)
			m.at[d->role[f]] = (int32_t)f;
	}
	for (int r = 1; r < N_ROLES; r++)
		measure_role(&m, d, (enum feature_role)r);
	for (int r = ROLE_BATCH; r <= ROLE_CPUS; r++)
		if (m.at[r] < 0)
			return err_fail(
				err, ERR_NODATA,
				"%s: no column of numbers above 0 is the %s; a schema's \"%s\" names it",
				title, role_text[r], r == ROLE_BATCH ? "decision" : "roles");
	*out = m;
	return 0;
}

static double role_value(const struct queue_map *m, const double *x, enum feature_role role, double otherwise)
{
	double v;

	if (m->at[role] < 0)
		return otherwise;
	v = x[m->at[role]];
	if (isnan(v))
		return m->mean[role];
	return v < m->low[role] ? m->low[role] : v > m->high[role] ? m->high[role] : v;
}

void queue_map_job(const struct queue_map *m, const double *x, struct calibrate_job *out)
{
	double njobs = role_value(m, x, ROLE_NJOBS, 1.0);

	out->batch = role_value(m, x, ROLE_BATCH, 1.0);
	out->cpus = role_value(m, x, ROLE_CPUS, 1.0);
	out->processes = m->at[ROLE_PROCESSES] >= 0 && !isnan(x[m->at[ROLE_PROCESSES]])
				 ? role_value(m, x, ROLE_PROCESSES, 1.0)
				 : out->cpus * njobs;
	out->iterations = role_value(m, x, ROLE_SAMPLES, m->samples) / out->batch *
			  role_value(m, x, ROLE_EPOCHS, m->epochs);
	for (size_t k = 0; k < m->n_categories; k++) {
		double v = x[m->category[k]];

		out->category[k] = v >= 0.0 && v <= 1.0 ? v : m->category_mean[k];
	}
}

static void save_map(const struct queue_map *m, struct writer *w)
{
	for (int r = 1; r < N_ROLES; r++) {
		write_u32(w, (uint32_t)(m->at[r] + 1));
		write_f64(w, m->low[r]);
		write_f64(w, m->high[r]);
		write_f64(w, m->mean[r]);
	}
	write_f64(w, m->samples);
	write_f64(w, m->epochs);
	write_u32(w, m->n_categories);
	for (size_t k = 0; k < m->n_categories; k++) {
		write_u32(w, m->category[k]);
		write_f64(w, m->category_mean[k]);
	}
}

static int load_map(struct reader *r, size_t n_features, struct queue_map *out, struct err *err)
{
	struct queue_map m = { .at = { -1 } };
	bool good = true;

	for (int k = 1; k < N_ROLES; k++) {
		uint32_t at = read_u32(r);

		m.low[k] = read_f64(r);
		m.high[k] = read_f64(r);
		m.mean[k] = read_f64(r);
		good &= at <= n_features && m.low[k] > 0.0 && m.high[k] >= m.low[k] && isfinite(m.high[k]) &&
			m.mean[k] >= m.low[k] && m.mean[k] <= m.high[k];
		m.at[k] = at <= n_features ? (int32_t)at - 1 : -1;
	}
	m.samples = read_f64(r);
	m.epochs = read_f64(r);
	m.n_categories = read_u32(r);
	good &= m.samples > 0.0 && isfinite(m.samples) && m.epochs > 0.0 && isfinite(m.epochs) &&
		m.n_categories <= CALIBRATE_MAX_CATEGORIES;
	for (size_t k = 0; good && k < m.n_categories; k++) {
		m.category[k] = read_u32(r);
		m.category_mean[k] = read_f64(r);
		good &= m.category[k] < n_features && fabs(m.category_mean[k]) <= 1.0;
	}
	if (r->failed || !good || m.at[ROLE_BATCH] < 0 || m.at[ROLE_CPUS] < 0)
		return err_fail(err, ERR_FORMAT,
				"the columns of the queueing model are no columns of this file");
	*out = m;
	return 0;
}

/* ---- the calibrated model ---- */

static int jobs_of(const struct queue_map *m, const struct dataset *d, struct calibrate_job **out,
		   struct err *err)
{
	struct calibrate_job *job = mem_calloc(d->n_rows, sizeof *job);

	if (!job)
		return err_nomem(err, "%zu jobs", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		queue_map_job(m, d->x + i * d->n_features, &job[i]);
	*out = job;
	return 0;
}

int queue_model_fit(const char *title, const struct settings *s, const struct dataset *d,
		    const struct calibrate_params *how, struct queue_model *out, struct err *err)
{
	struct queue_model m = { 0 };
	struct calibrate_job *job = NULL;
	int rc = queue_map_make(title, s, d, &m.map, err);

	if (!rc)
		rc = jobs_of(&m.map, d, &job, err);
	if (!rc) {
		struct calibrate_params p = { .job = job,
					      .n = d->n_rows,
					      .time_s = d->y,
					      .n_categories = m.map.n_categories,
					      .cores = settings_get(s, "cores"),
					      .leverage = how->leverage,
					      .stop = how->stop };

		rc = calibrate_fit(&p, &m.c, err);
		if (rc)
			err_prefix(err, "%s", title);
	}
	free(job);
	if (!rc)
		*out = m;
	return rc;
}

double queue_model_time_s(const struct queue_model *m, const double *x)
{
	struct calibrate_job j;

	queue_map_job(&m->map, x, &j);
	return calibrate_time_s(&m->c, &j);
}

void queue_model_shares(const struct queue_model *m, const double *x, double *out_cpu_share,
			double *out_disk_share)
{
	const double *v = m->c.value;
	struct calibrate_job j;
	double all_s, disk_s;

	queue_map_job(&m->map, x, &j);
	j.processes = j.cpus; /* alone */
	all_s = calibrate_time_s(&m->c, &j);
	disk_s = j.iterations * (v[CALIBRATE_DISK] + v[CALIBRATE_DISK_RECORD] * j.batch) *
		 (1.0 + j.processes / v[CALIBRATE_SATURATION]);
	/* false too where both are infinite or neither is a number */
	*out_disk_share = disk_s / all_s >= 0.0 && disk_s / all_s <= 1.0 ? disk_s / all_s : 0.0;
	*out_cpu_share = 1.0 - *out_disk_share;
}

void queue_model_machine(const struct queue_model *m, double *out_cores, double *out_disk_saturation)
{
	*out_cores = m->c.value[CALIBRATE_CORES];
	*out_disk_saturation = m->c.value[CALIBRATE_SATURATION];
}

static void describe_assumed(const struct queue_map *m, struct json_writer *w)
{
	char text[128];
	bool samples = m->at[ROLE_SAMPLES] < 0, epochs = m->at[ROLE_EPOCHS] < 0;

	if (!samples && !epochs)
		return;
	if (samples && epochs)
		snprintf(text, sizeof text, "%g samples and %g epochs in every job: no column says",
			 m->samples, m->epochs);
	else
		snprintf(text, sizeof text, "%g %s in every job: no column says",
			 samples ? m->samples : m->epochs, samples ? "samples" : "epochs");
	json_kv_string(w, "assumes", text);
}

static const char *feature_name(const struct dataset *names, size_t f)
{
	return names && names->name && f < names->n_features ? names->name[f] : NULL;
}

void queue_model_describe(const struct queue_model *m, const struct dataset *names, struct json_writer *w)
{
	const struct calibrated *c = &m->c;
	char text[512];

	json_kv_string(w, "sentence", calibrate_sentence(c, text, sizeof text));
	describe_assumed(&m->map, w);
	json_put_key(w, "parameters");
	json_open(w, '[');
	for (size_t i = 0; i < CALIBRATE_PARAMETERS; i++) {
		json_open(w, '{');
		json_kv_string(w, "name", calibrate_name[i]);
		json_kv_number(w, "value", c->value[i]);
		json_kv_number(w, "se", c->se[i]);
		json_kv_string(w, "state", calibrate_state_name[c->state[i]]);
		json_close(w, '}');
	}
	for (size_t k = 0; k < c->n_categories; k++) {
		const char *name = feature_name(names, m->map.category[k]);
		const double value[2] = { c->record_log[k], c->fixed_log[k] };
		const double se[2] = { c->record_log_se[k], c->fixed_log_se[k] };

		for (int i = 0; i < 2; i++) {
			if (isnan(se[i]))
				continue;
			snprintf(text, sizeof text, "%s factor of %.128s", i ? "fixed" : "record",
				 name ? name : "a category");
			json_open(w, '{');
			json_kv_string(w, "name", text);
			json_kv_number(w, "value", exp(value[i]));
			json_kv_number(w, "se", exp(value[i]) * se[i]);
			json_kv_string(w, "state", calibrate_state_name[CALIBRATE_FITTED]);
			json_close(w, '}');
		}
	}
	json_close(w, ']');
	json_put_key(w, "fit");
	json_open(w, '{');
	json_kv_int(w, "rows", (long long)c->n_rows);
	json_kv_int(w, "left_out", (long long)c->n_skipped);
	json_kv_int(w, "parameters", (long long)c->n_free);
	json_kv_number(w, "r2_log", c->r2);
	json_kv_number(w, "sd_log", c->sd);
	json_kv_number(w, "mape", c->mape);
	json_close(w, '}');
}

void queue_model_remark(const struct queue_model *m, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < CALIBRATE_CORES && used < size; i++)
		if (m->c.state[i] == CALIBRATE_STATED)
			used += (size_t)snprintf(out + used, size - used, "%s %s %.3g",
						 used ? "," : "the table cannot tell, so it is stated:",
						 calibrate_name[i], m->c.value[i]);
}

void queue_model_save(const struct queue_model *m, struct writer *w)
{
	const struct calibrated *c = &m->c;

	save_map(&m->map, w);
	for (size_t i = 0; i < CALIBRATE_PARAMETERS; i++) {
		write_u8(w, c->state[i]);
		write_f64(w, c->value[i]);
		write_f64(w, c->se[i]);
	}
	for (size_t k = 0; k < c->n_categories; k++) {
		write_f64(w, c->record_log[k]);
		write_f64(w, c->record_log_se[k]);
		write_f64(w, c->fixed_log[k]);
		write_f64(w, c->fixed_log_se[k]);
	}
	write_u64(w, c->n_rows);
	write_u64(w, c->n_skipped);
	write_u32(w, (uint32_t)c->n_free);
	write_f64(w, c->r2);
	write_f64(w, c->sd);
	write_f64(w, c->mape);
}

int queue_model_load(struct reader *r, size_t n_features, struct queue_model *out, struct err *err)
{
	struct queue_model m = { 0 };
	struct calibrated *c = &m.c;
	bool good = true;
	int rc = load_map(r, n_features, &m.map, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < CALIBRATE_PARAMETERS; i++) {
		c->state[i] = read_u8(r);
		c->value[i] = read_f64(r);
		c->se[i] = read_f64(r);
		good &= c->state[i] <= CALIBRATE_ABSENT && c->value[i] >= 0.0 &&
			(c->value[i] < 1e40 || (i == CALIBRATE_CORES && c->value[i] == INFINITY));
	}
	good &= c->value[CALIBRATE_EXPONENT] <= 1.0 && c->value[CALIBRATE_SATURATION] > 0.0 &&
		c->value[CALIBRATE_CORES] > 0.0;
	c->n_categories = m.map.n_categories;
	for (size_t k = 0; k < c->n_categories; k++) {
		c->record_log[k] = read_f64(r);
		c->record_log_se[k] = read_f64(r);
		c->fixed_log[k] = read_f64(r);
		c->fixed_log_se[k] = read_f64(r);
		good &= fabs(c->record_log[k]) <= CALIBRATE_MAX_LOG &&
			fabs(c->fixed_log[k]) <= CALIBRATE_MAX_LOG;
		c->category_record |= !isnan(c->record_log_se[k]);
		c->category_fixed |= !isnan(c->fixed_log_se[k]);
	}
	c->n_rows = (size_t)read_u64(r);
	c->n_skipped = (size_t)read_u64(r);
	c->n_free = read_u32(r);
	c->r2 = read_f64(r);
	c->sd = read_f64(r);
	c->mape = read_f64(r);
	if (r->failed || !good)
		return err_fail(err, ERR_FORMAT, "the parameters of the queueing model are no costs");
	*out = m;
	return 0;
}

/* ---- importances ---- */

#define EFFECT_ROWS 32
#define EFFECT_LEVELS 5

int queue_importances(void (*predict)(const void *self, const double *x, size_t n_rows, double *out),
		      const void *self, const struct dataset *d, double **out, struct err *err)
{
	size_t rows = d->n_rows < EFFECT_ROWS ? d->n_rows : EFFECT_ROWS, p = d->n_features;
	double *share = mem_calloc(p, sizeof *share), *x = mem_array(p, sizeof *x), total = 0.0;

	if (!share || !x) {
		free(share);
		free(x);
		return err_nomem(err, "%zu importances", p);
	}
	for (size_t i = 0; i < rows; i++) {
		const double *row = d->x + i * d->n_rows / rows * p;

		memcpy(x, row, p * sizeof *x);
		for (size_t f = 0; f < p; f++) {
			double mean = 0.0, squares = 0.0;
			size_t n = 0;

			for (size_t k = 0; k < EFFECT_LEVELS; k++) {
				/* values of other rows, a different part of the table for every k */
				size_t from = (i + k * d->n_rows / EFFECT_LEVELS + k) % d->n_rows;
				double t, e;

				x[f] = d->x[from * p + f];
				predict(self, x, 1, &t);
				if (!(t > 0.0) || !isfinite(t))
					continue;
				e = log(t) - mean;
				mean += e / (double)++n;
				squares += e * (log(t) - mean);
			}
			x[f] = row[f];
			share[f] += n > 1 ? squares / (double)n : 0.0;
		}
	}
	for (size_t f = 0; f < p; f++)
		total += share[f];
	for (size_t f = 0; f < p && total > 0.0; f++)
		share[f] /= total;
	free(x);
	*out = share;
	return 0;
}

/* ---- `queueing` ---- */

struct queueing {
	struct queue_model m;
	double *importance; /* NULL after loading */
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
	rc = queue_model_fit(queueing_ops.title, s, d, &(struct calibrate_params){ .stop = ctx->stop }, &q->m,
			     err);
	if (!rc)
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

static void queueing_shares(const void *self, const double *x, double *out_cpu_share, double *out_disk_share)
{
	queue_model_shares(&((const struct queueing *)self)->m, x, out_cpu_share, out_disk_share);
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
	describe_assumed(&q->map, w);
	json_kv_number(w, "cpu_service_s", q->m.cpu_service_s);
	json_kv_number(w, "workers", q->m.workers);
	json_put_key(w, "disk_rate_per_s");
	json_open(w, '{');
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

	save_map(&q->map, w);
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
	rc = load_map(r, n_features, &q->map, err);
	q->m.cpu_service_s = read_f64(r);
	q->m.workers = read_f64(r);
	for (int i = 0; i < 3; i++)
		q->m.mu[i] = read_f64(r);
	q->m.n_used = (size_t)read_u64(r);
	q->m.n_negative = (size_t)read_u64(r);
	if (!rc && (r->failed || !(q->m.cpu_service_s > 0.0 && isfinite(q->m.cpu_service_s)) ||
		    !(q->m.workers > 0.0 && isfinite(q->m.workers)) || !isfinite(q->m.mu[0]) ||
		    !isfinite(q->m.mu[1]) || !isfinite(q->m.mu[2])))
		rc = err_fail(err, ERR_FORMAT, "the parameters of the paper's model are no rates");
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
