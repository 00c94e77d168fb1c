/* What the models that know queueing share: features as the roles that a queueing model asks for, the
 * calibrated model (queueing/calibrate.h) on features, and importances of models without splits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/schema.h"
#include "predictors/models/queueing_models.h"

#define HAS_OTHER 0x80000000u /* in the number of categories of a file: a column of other work follows */
#define HAS_DEVICES 0x40000000u /* the same of devices */
#define FAR 1e3 /* values further outside the training range than this factor count as that far */

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
	m.low[ROLE_OTHER] = 0.0; /* a machine without other work is no stranger */
	m.low[ROLE_DEVICES] = 0.0; /* nor is a job without devices */
	if (m.at[ROLE_BATCH] < 0) /* without cpus every job has one */
		return err_fail(
			err, ERR_NODATA,
			"%s: no column of numbers above 0 is the batch; a schema's \"decision\" names it",
			title);
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
	out->processes += role_value(m, x, ROLE_OTHER, 0.0);
	out->devices = role_value(m, x, ROLE_DEVICES, 0.0);
	out->iterations = role_value(m, x, ROLE_SAMPLES, m->samples) / out->batch *
			  role_value(m, x, ROLE_EPOCHS, m->epochs);
	for (size_t k = 0; k < m->n_categories; k++) {
		double v = x[m->category[k]];

		out->category[k] = v >= 0.0 && v <= 1.0 ? v : m->category_mean[k];
	}
}

static void save_role(const struct queue_map *m, int role, struct writer *w)
{
	write_u32(w, (uint32_t)(m->at[role] + 1));
	write_f64(w, m->low[role]);
	write_f64(w, m->high[role]);
	write_f64(w, m->mean[role]);
}

/* A map without a column of other work, or of devices, is written as before there were such columns. */
void queue_map_save(const struct queue_map *m, struct writer *w)
{
	for (int r = 1; r < ROLE_OTHER; r++)
		save_role(m, r, w);
	write_f64(w, m->samples);
	write_f64(w, m->epochs);
	write_u32(w, m->n_categories | (m->at[ROLE_OTHER] >= 0 ? HAS_OTHER : 0) |
			     (m->at[ROLE_DEVICES] >= 0 ? HAS_DEVICES : 0));
	if (m->at[ROLE_OTHER] >= 0)
		save_role(m, ROLE_OTHER, w);
	if (m->at[ROLE_DEVICES] >= 0)
		save_role(m, ROLE_DEVICES, w);
	for (size_t k = 0; k < m->n_categories; k++) {
		write_u32(w, m->category[k]);
		write_f64(w, m->category_mean[k]);
	}
}

static bool load_role(struct reader *r, size_t n_features, int role, struct queue_map *m)
{
	uint32_t at = read_u32(r);

	m->low[role] = read_f64(r);
	m->high[role] = read_f64(r);
	m->mean[role] = read_f64(r);
	m->at[role] = at <= n_features ? (int32_t)at - 1 : -1;
	return at <= n_features && (m->low[role] > 0.0 || (role >= ROLE_OTHER && m->low[role] == 0.0)) &&
	       m->high[role] >= m->low[role] && isfinite(m->high[role]) && m->mean[role] >= m->low[role] &&
	       m->mean[role] <= m->high[role];
}

int queue_map_load(struct reader *r, size_t n_features, struct queue_map *out, struct err *err)
{
	struct queue_map m = { .at = { [0] = -1, [ROLE_OTHER] = -1, [ROLE_DEVICES] = -1 } };
	bool good = true;

	for (int k = 1; k < ROLE_OTHER; k++)
		good &= load_role(r, n_features, k, &m);
	m.samples = read_f64(r);
	m.epochs = read_f64(r);
	m.n_categories = read_u32(r);
	if (m.n_categories & HAS_OTHER) {
		good &= load_role(r, n_features, ROLE_OTHER, &m);
		m.n_categories &= ~HAS_OTHER;
	}
	if (m.n_categories & HAS_DEVICES) {
		good &= load_role(r, n_features, ROLE_DEVICES, &m);
		m.n_categories &= ~HAS_DEVICES;
	}
	good &= m.samples > 0.0 && isfinite(m.samples) && m.epochs > 0.0 && isfinite(m.epochs) &&
		m.n_categories <= CALIBRATE_MAX_CATEGORIES;
	for (size_t k = 0; good && k < m.n_categories; k++) {
		m.category[k] = read_u32(r);
		m.category_mean[k] = read_f64(r);
		good &= m.category[k] < n_features && fabs(m.category_mean[k]) <= 1.0;
	}
	if (r->failed || !good || m.at[ROLE_BATCH] < 0)
		return err_fail(err, ERR_FORMAT,
				"the columns of the queueing model are not columns of this file");
	*out = m;
	return 0;
}

/* ---- the calibrated model ---- */

const char *const queue_words[] = { "calibrated", "paper", "closed", "none", NULL };
/* The byte share_within_cores in a file: above bit 0 the kind (0, as it always was: calibrated), then whether
 * the fixed cost is shared, and whether it is the work that errs. */
#define KIND_SHIFT 1
#define KIND_MASK 3
#define SHARE_FIXED_SHIFT 3
#define WORK_ERRS_SHIFT 4
#define DEVICES_SHIFT 5

static struct paper_job paper_job_of(const struct calibrate_job *j)
{
	return (struct paper_job){ .iterations = j->iterations,
				   .batch = j->batch,
				   .processes = j->processes };
}

static int fit_paper(struct queue_model *m, const struct calibrate_job *job, const struct dataset *d,
		     double *leverage, struct err *err)
{
	struct paper_job *p = mem_array(d->n_rows, sizeof *p);
	double t;
	int rc;

	if (!p)
		return err_nomem(err, "%zu jobs", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		p[i] = paper_job_of(&job[i]);
	/* its 0.045 s are of the paper's cluster: here they are estimated */
	rc = paper_fit(p, d->y, d->n_rows, 0.0, PAPER_WORKERS, &m->paper, err);
	for (size_t i = 0; !rc && leverage && i < d->n_rows; i++)
		if (paper_time_s(&m->paper, &p[i], &t, NULL))
			leverage[i] = NAN; /* no time, no residual */
	free(p);
	return rc;
}

/* devices: they are a station of the model. */
static int jobs_of(const struct queue_map *m, const struct dataset *d, bool devices,
		   struct calibrate_job **out, struct err *err)
{
	struct calibrate_job *job = mem_calloc(d->n_rows, sizeof *job);

	if (!job)
		return err_nomem(err, "%zu jobs", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		queue_map_job(m, d->x + i * d->n_features, &job[i]);
	for (size_t i = 0; d->seen && i < d->n_rows; i++)
		job[i].seen = d->seen[i];
	for (size_t i = 0; !devices && i < d->n_rows; i++)
		job[i].devices = 0.0;
	*out = job;
	return 0;
}

int queue_model_fit(const char *title, const struct settings *s, const struct dataset *d,
		    enum queue_kind kind, const struct calibrate_params *how, struct queue_model *out,
		    struct err *err)
{
	struct queue_model m = { .kind = (uint8_t)kind };
	struct calibrate_job *job = NULL;
	int rc = queue_map_make(title, s, d, &m.map, err);

	if (!rc)
		rc = jobs_of(&m.map, d, kind == QUEUE_CALIBRATED || kind == QUEUE_NONE, &job, err);
	if (!rc) {
		struct calibrate_params p = { .job = job,
					      .n = d->n_rows,
					      .time_s = d->y,
					      .n_categories = m.map.n_categories,
					      .cores = settings_get(s, "cores"),
					      .leverage = how->leverage,
					      .stop = how->stop,
					      .memo = how->memo };

		rc = calibrate_fit(&p, &m.c, err);
		if (!rc && kind == QUEUE_CLOSED)
			rc = cycle_fit(&p, &m.c, &m.cycle, err);
		if (!rc && kind == QUEUE_PAPER)
			rc = fit_paper(&m, job, d, how->leverage, err);
		if (rc)
			err_prefix(err, "%s", title);
	}
	free(job);
	if (!rc)
		*out = m;
	return rc;
}

int queue_model_none(const char *title, const struct settings *s, const struct dataset *d, double *leverage,
		     struct queue_model *out, struct err *err)
{
	struct queue_model m = { .kind = QUEUE_NONE };
	int rc = queue_map_make(title, s, d, &m.map, err);

	for (size_t i = 0; i < d->n_rows; i++)
		leverage[i] = d->y[i] > 0.0 && isfinite(d->y[i]) ? 0.0 : NAN;
	if (!rc)
		*out = m;
	return rc;
}

double queue_model_time_s(const struct queue_model *m, const double *x)
{
	struct calibrate_job j;

	if (m->kind == QUEUE_NONE)
		return 1.0;
	queue_map_job(&m->map, x, &j);
	if (m->kind == QUEUE_CLOSED)
		return cycle_job_s(&m->c, &m->cycle, &j);
	if (m->kind == QUEUE_PAPER) {
		struct paper_job p = paper_job_of(&j);
		double t;

		return paper_time_s(&m->paper, &p, &t, NULL) ? NAN : t;
	}
	return calibrate_time_s(&m->c, &j);
}

void queue_model_why_none(const struct queue_model *m, const double *x, char *out, size_t size)
{
	struct calibrate_job j;
	struct err err = { 0 };
	struct paper_job p;
	double t;

	out[0] = '\0';
	queue_map_job(&m->map, x, &j);
	p = paper_job_of(&j);
	if (m->kind == QUEUE_PAPER && paper_time_s(&m->paper, &p, &t, &err))
		snprintf(out, size, "unstable at batch %g, %g processes: %s", j.batch, j.processes, err.text);
}

void queue_model_shares(const struct queue_model *m, const double *x, struct work_shares *out)
{
	struct calibrate_parts p;
	struct calibrate_job j;
	double all_s;

	queue_map_job(&m->map, x, &j);
	j.processes = j.cpus; /* alone */
	p = calibrate_parts_of(&m->c, &j);
	all_s = p.start_s + p.cpu_s + p.disk_s + p.delay_s;
	/* false too where both are infinite or neither is a number */
	out->disk = p.disk_s / all_s >= 0.0 && p.disk_s / all_s <= 1.0 ? p.disk_s / all_s : 0.0;
	out->cpu = p.cpu_s / all_s >= 0.0 && p.cpu_s / all_s <= 1.0 ? p.cpu_s / all_s : 1.0;
	out->cpu = fmin(out->cpu, 1.0 - out->disk);
	/* that the table shows no start does not mean that there is none */
	out->start = p.start_s > 0.0 ? p.start_s / all_s : NAN;
}

double queue_model_spread(const struct queue_model *m, const double *x)
{
	struct calibrate_job j;

	if (!m->c.work_errs || m->kind == QUEUE_PAPER || m->kind == QUEUE_NONE)
		return 1.0;
	queue_map_job(&m->map, x, &j);
	return calibrate_errs(&m->c, &j);
}

void queue_model_machine(const struct queue_model *m, double *out_cores, double *out_disk_saturation)
{
	*out_cores = m->c.value[CALIBRATE_CORES];
	*out_disk_saturation = m->c.value[CALIBRATE_SATURATION];
}

void queue_map_describe(const struct queue_map *m, struct json_writer *w)
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
	json_kv_string(w, "queue", queue_words[m->kind]);
	queue_map_describe(&m->map, w);
	json_kv_open(w, "parameters", '[');
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

		for (int f = 0; f < CALIBRATE_FACTORS; f++) {
			double factor = exp(c->factor_log[f][k]);

			if (c->factor_log[f][k] == 0.0)
				continue;
			snprintf(text, sizeof text, "%s factor of %.128s", calibrate_factor_name[f],
				 name ? name : "a category");
			json_open(w, '{');
			json_kv_string(w, "name", text);
			json_kv_number(w, "value", factor);
			json_kv_number(w, "se", factor * c->factor_se[f][k]);
			json_kv_string(w, "state", calibrate_state_name[CALIBRATE_FITTED]);
			json_close(w, '}');
		}
	}
	json_close(w, ']');
	json_kv_open(w, "fit", '{');
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
			used += (size_t)snprintf(
				out + used, size - used, "%s %s %.3g",
				used ? "," : "too little data to estimate, so the default is used:",
				calibrate_name[i], m->c.value[i]);
	if (used >= size)
		return;
	if (m->c.state[CALIBRATE_DELAY] == CALIBRATE_STATED && isfinite(m->c.value[CALIBRATE_CORES]))
		snprintf(out + used, size - used,
			 "%stoo few runs had more processes than cores, so waiting elsewhere counts as cpu",
			 used ? "; " : "");
	else if (m->c.state[CALIBRATE_DELAY_RECORD] == CALIBRATE_STATED && m->c.value[CALIBRATE_START] > 0.0)
		snprintf(out + used, size - used,
			 "%sall runs had as many records, so waiting per record counts as start-up",
			 used ? "; " : "");
}

void queue_model_save(const struct queue_model *m, struct writer *w)
{
	const struct calibrated *c = &m->c;

	queue_map_save(&m->map, w);
	for (size_t i = 0; i < CALIBRATE_PARAMETERS; i++) {
		write_u8(w, c->state[i]);
		write_f64(w, c->value[i]);
		write_f64(w, c->se[i]);
	}
	write_u8(w, (uint8_t)(c->share_within_cores | m->kind << KIND_SHIFT |
			      c->share_fixed << SHARE_FIXED_SHIFT | c->work_errs << WORK_ERRS_SHIFT |
			      c->uses_devices << DEVICES_SHIFT));
	for (size_t k = 0; k < c->n_categories; k++)
		for (size_t f = 0; f < CALIBRATE_FACTORS; f++) {
			write_f64(w, c->factor_log[f][k]);
			write_f64(w, c->factor_se[f][k]);
		}
	write_u64(w, c->n_rows);
	write_u64(w, c->n_skipped);
	write_u32(w, (uint32_t)c->n_free);
	write_f64(w, c->r2);
	write_f64(w, c->sd);
	write_f64(w, c->mape);
	if (m->kind == QUEUE_CLOSED) {
		write_f64(w, m->cycle.cpu);
		write_f64(w, m->cycle.disk);
		write_f64(w, m->cycle.rest);
		write_f64(w, m->cycle.sd);
	}
	if (m->kind == QUEUE_PAPER) {
		write_f64(w, m->paper.cpu_service_s);
		write_f64(w, m->paper.workers);
		for (int i = 0; i < 3; i++)
			write_f64(w, m->paper.mu[i]);
	}
}

/* What the kind has beyond the calibrated model. */
static bool load_kind(struct reader *r, struct queue_model *m)
{
	bool good = m->kind < N_QUEUES;

	if (m->kind == QUEUE_CLOSED) {
		m->cycle.cpu = read_f64(r);
		m->cycle.disk = read_f64(r);
		m->cycle.rest = read_f64(r);
		m->cycle.sd = read_f64(r);
		good &= m->cycle.cpu > 0.0 && m->cycle.cpu < 1e40 && m->cycle.disk >= 0.0 &&
			m->cycle.disk < 1e40 && m->cycle.rest >= 0.0 && m->cycle.rest < 1e40;
	}
	if (m->kind == QUEUE_PAPER) {
		m->paper.cpu_service_s = read_f64(r);
		m->paper.workers = read_f64(r);
		good &= m->paper.cpu_service_s > 0.0 && isfinite(m->paper.cpu_service_s) &&
			m->paper.workers > 0.0 && isfinite(m->paper.workers);
		for (int i = 0; i < 3; i++) {
			m->paper.mu[i] = read_f64(r);
			good &= isfinite(m->paper.mu[i]);
		}
	}
	return good;
}

int queue_model_load(struct reader *r, size_t n_features, struct queue_model *out, struct err *err)
{
	struct queue_model m = { 0 };
	struct calibrated *c = &m.c;
	bool good = true, v1 = r->version == 1;
	uint8_t how;
	size_t n_parameters = v1 ? CALIBRATE_PARAMETERS_V1 : CALIBRATE_PARAMETERS;
	size_t n_factors = v1 ? CALIBRATE_FACTORS_V1 : CALIBRATE_FACTORS;
	int rc = queue_map_load(r, n_features, &m.map, err);

	if (rc)
		return rc;
	for (size_t i = n_parameters; i < CALIBRATE_PARAMETERS; i++) {
		c->state[i] = CALIBRATE_ABSENT;
		c->se[i] = NAN;
	}
	for (size_t i = 0; i < n_parameters; i++) {
		c->state[i] = read_u8(r);
		c->value[i] = read_f64(r);
		c->se[i] = read_f64(r);
		good &= c->state[i] <= CALIBRATE_ABSENT && c->value[i] >= 0.0 &&
			(c->value[i] < 1e40 || (i == CALIBRATE_CORES && c->value[i] == INFINITY));
	}
	good &= c->value[CALIBRATE_EXPONENT] <= 1.0 && c->value[CALIBRATE_SATURATION] > 0.0 &&
		c->value[CALIBRATE_CORES] > 0.0;
	c->n_categories = m.map.n_categories;
	how = v1 ? 1 : read_u8(r);
	c->share_within_cores = how & 1;
	m.kind = how >> KIND_SHIFT & KIND_MASK;
	c->share_fixed = how >> SHARE_FIXED_SHIFT & 1;
	c->work_errs = how >> WORK_ERRS_SHIFT & 1;
	c->uses_devices = how >> DEVICES_SHIFT & 1;
	good &= how >> DEVICES_SHIFT <= 1;
	for (size_t k = 0; k < c->n_categories; k++)
		for (size_t f = 0; f < n_factors; f++) {
			c->factor_log[f][k] = read_f64(r);
			c->factor_se[f][k] = read_f64(r);
			good &= fabs(c->factor_log[f][k]) <= CALIBRATE_MAX_LOG;
		}
	c->n_rows = (size_t)read_u64(r);
	c->n_skipped = (size_t)read_u64(r);
	c->n_free = read_u32(r);
	c->r2 = read_f64(r);
	c->sd = read_f64(r);
	c->mape = read_f64(r);
	good = load_kind(r, &m) && good;
	if (r->failed || !good)
		return err_fail(err, ERR_FORMAT, "the parameters of the queueing model are not costs");
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
