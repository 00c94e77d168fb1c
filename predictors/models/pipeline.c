/* The model `automl`. See pipeline.h; docs/MODEL_FORMAT.md has its bytes. */
#include "predictors/models/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/data/features.h"
#include "predictors/models/campaign_models.h"
#include "predictors/models/gp.h"
#include "predictors/models/hybrid.h"
#include "predictors/models/linear.h"
#include "predictors/models/queueing_models.h"
#include "predictors/trees/forest.h"

void pipeline_free(void *self)
{
	struct pipeline *m = self;

	if (!m)
		return;
	for (size_t i = 0; m->column && i < m->n_columns; i++)
		free(m->column[i].of);
	free(m->column);
	free(m->fill);
	free(m->x);
	free(m->scale);
	predictor_release(&m->inner);
	free(m);
}

double made_value(enum made_by by, const uint32_t *of, size_t n_of, const double *v)
{
	double product = 1.0;

	switch (by) {
	case MADE_INVERSE: return 1.0 / v[of[0]];
	case MADE_LOG: return log(v[of[0]]);
	case MADE_RATIO: return v[of[0]] / v[of[1]];
	case MADE_ROOT_RATIO: return sqrt(v[of[0]] / v[of[1]]);
	case MADE_ROOT_OVER: return sqrt(v[of[0]]) / v[of[1]];
	case MADE_PRODUCT:
		for (size_t i = 0; i < n_of; i++)
			product *= v[of[i]];
		return product;
	default: return NAN;
	}
}

static void prepare_row(const struct pipeline *m, const double *x, double *column)
{
	for (size_t i = 0; i < m->n_columns; i++) {
		const struct pipe_column *c = &m->column[i];

		switch (c->by) {
		case MADE_NUMBER:
			column[i] = isfinite(x[c->feature]) ? x[c->feature] : m->fill[c->feature];
			break;
		case MADE_CLASS:
			column[i] = x[c->feature] == c->equals;
			break; /* an unknown one is in no class */
		default: column[i] = made_value(c->by, c->of, c->n_of, column);
		}
	}
}

static void pipeline_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct pipeline *m = self;
	double column[PREPARE_MAX_COLUMNS], in[DATASET_MAX_FEATURES];

	for (size_t i = 0; i < n_rows; i++) {
		prepare_row(m, x + i * m->n_features, column);
		for (size_t j = 0; j < m->n_x; j++) {
			double v = column[m->x[j]];

			in[j] = m->scale ? (v - m->scale[j].mean) / m->scale[j].scale : v;
			/* 1 / x and log x of a value that training could not have had */
			if (!isfinite(in[j]))
				in[j] = 0.0;
		}
		predictor_predict(&m->inner, in, 1, &out[i]);
		out[i] = out[i] * m->y.scale + m->y.mean;
	}
}

static void pipeline_why_none(const void *self, const double *x, char *out, size_t size)
{
	const struct pipeline *m = self;
	double column[PREPARE_MAX_COLUMNS], in[DATASET_MAX_FEATURES];

	out[0] = '\0';
	if (!m->inner.ops->why_none)
		return;
	prepare_row(m, x, column);
	for (size_t j = 0; j < m->n_x; j++)
		in[j] = column[m->x[j]];
	m->inner.ops->why_none(m->inner.self, in, out, size);
}

static void pipeline_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct pipeline *m = self;

	(void)names;
	json_kv_string(w, "technique", m->technique);
	json_put_key(w, "technique_settings");
	settings_to_json(&m->inner.settings, w);
	json_kv_int(w, "columns", (long long)m->n_x);
	if (m->inner.ops->describe)
		m->inner.ops->describe(m->inner.self, NULL, w);
}

/* ---- file ---- */

static void save_scaling(struct writer *w, const struct scaling *s)
{
	write_f64(w, s->mean);
	write_f64(w, s->scale);
}

static int pipeline_save(const void *self, struct writer *w, struct err *err)
{
	const struct pipeline *m = self;
	size_t n_settings = 0, len = strlen(m->technique);

	write_u8(w, (uint8_t)len);
	for (size_t i = 0; i < len; i++)
		write_u8(w, (uint8_t)m->technique[i]);
	write_u32(w, (uint32_t)m->n_features);
	for (size_t i = 0; i < m->n_features; i++)
		write_f64(w, m->fill[i]);
	write_u32(w, (uint32_t)m->n_columns);
	for (size_t i = 0; i < m->n_columns; i++) {
		const struct pipe_column *c = &m->column[i];

		write_u8(w, (uint8_t)c->by);
		write_u32(w, c->feature);
		write_f64(w, c->equals);
		write_u16(w, (uint16_t)c->n_of);
		for (size_t k = 0; k < c->n_of; k++)
			write_u32(w, c->of[k]);
	}
	write_u32(w, (uint32_t)m->n_x);
	for (size_t j = 0; j < m->n_x; j++)
		write_u32(w, m->x[j]);
	write_u8(w, m->scale != NULL);
	for (size_t j = 0; m->scale && j < m->n_x; j++)
		save_scaling(w, &m->scale[j]);
	save_scaling(w, &m->y);
	while (m->inner.ops->spec[n_settings].name)
		n_settings++;
	write_u8(w, (uint8_t)n_settings);
	for (size_t i = 0; i < n_settings; i++)
		write_f64(w, m->inner.settings.value[i]);
	if (w->out.failed)
		return err_nomem(err, "a model");
	return m->inner.ops->save(m->inner.self, w, err);
}

static bool load_scaling(struct reader *r, struct scaling *s)
{
	s->mean = read_f64(r);
	s->scale = read_f64(r);
	return isfinite(s->mean) && isfinite(s->scale) && s->scale != 0.0;
}

static int damaged(struct err *err, const char *what)
{
	return err_fail(err, ERR_FORMAT, "automl model: %s is damaged or out of range", what);
}

static bool load_column(struct reader *r, const struct pipeline *m, size_t at, struct pipe_column *c)
{
	uint8_t by = read_u8(r);
	bool raw;

	c->by = (enum made_by)by;
	c->feature = read_u32(r);
	c->equals = read_f64(r);
	c->n_of = read_u16(r);
	raw = by == MADE_NUMBER || by == MADE_CLASS;
	if (r->failed || by >= N_MADE || (raw ? c->feature >= m->n_features || c->n_of : !c->n_of) ||
	    read_left(r) / 4 < c->n_of || (by >= MADE_RATIO && c->n_of < 2))
		return false;
	c->of = c->n_of ? mem_array(c->n_of, sizeof *c->of) : NULL;
	if (c->n_of && !c->of)
		return false;
	for (size_t k = 0; k < c->n_of; k++) {
		c->of[k] = read_u32(r);
		if (c->of[k] >= at) /* only columns before it */
			return false;
	}
	return !r->failed;
}

static int load_columns(struct reader *r, struct pipeline *m, struct err *err)
{
	uint32_t n = read_u32(r);

	if (r->failed || n == 0 || n > PREPARE_MAX_COLUMNS || read_left(r) / 15 < n)
		return damaged(err, "the number of columns");
	m->column = mem_calloc(n, sizeof *m->column);
	if (!m->column)
		return err_nomem(err, "%u columns", (unsigned)n);
	m->n_columns = n;
	for (size_t i = 0; i < n; i++)
		if (!load_column(r, m, i, &m->column[i]))
			return damaged(err, "a column");
	n = read_u32(r);
	if (r->failed || n == 0 || n > DATASET_MAX_FEATURES || read_left(r) / 4 < n)
		return damaged(err, "the list of features");
	m->x = mem_array(n, sizeof *m->x);
	if (!m->x)
		return err_nomem(err, "%u features", (unsigned)n);
	m->n_x = n;
	for (size_t j = 0; j < n; j++)
		if ((m->x[j] = read_u32(r)) >= m->n_columns)
			return damaged(err, "the list of features");
	return 0;
}

static int load_scalings(struct reader *r, struct pipeline *m, struct err *err)
{
	uint8_t scaled = read_u8(r);

	if (r->failed || scaled > 1 || (scaled && read_left(r) / 16 < m->n_x))
		return damaged(err, "the scaling");
	if (scaled && !(m->scale = mem_array(m->n_x, sizeof *m->scale)))
		return err_nomem(err, "%zu features", m->n_x);
	for (size_t j = 0; scaled && j < m->n_x; j++)
		if (!load_scaling(r, &m->scale[j]))
			return damaged(err, "the scaling");
	return load_scaling(r, &m->y) && !r->failed ? 0 : damaged(err, "the scaling of the target");
}

/* A value that the setting's own list allows: words are printed by their index. */
static bool setting_fits(const struct setting_spec *spec, double v)
{
	size_t words = 0;

	while (spec->words && spec->words[words])
		words++;
	if (spec->words_or_number && v < 0.0)
		return -v <= (double)words && v == floor(v);
	if (spec->words && !spec->words_or_number)
		return v >= 0.0 && v < (double)words && v == floor(v);
	return v >= spec->min && v <= spec->max;
}

/* The techniques of a campaign, by the names that automl/techniques/technique.c gives them. */
static const struct predictor_ops *ops_of(const char *technique)
{
	static const struct predictor_ops mean = { MEAN_MODEL }, nnls = { NNLS_MODEL },
					  stepwise = { STEPWISE_MODEL }, svr = { SVR_MODEL },
					  xgboost = { XGBOOST_MODEL }, network = { NETWORK_MODEL };
	static const struct {
		const char *technique;
		const struct predictor_ops *ops;
	} known[] = {
		{ "LRRidge", &ridge_ops },
		{ "NNLS", &nnls },
		{ "SVR", &svr },
		{ "DecisionTree", &tree_ops },
		{ "RandomForest", &forest_ops },
		{ "XGBoost", &xgboost },
		{ "Stepwise", &stepwise },
		{ "NeuralNetwork", &network },
		{ "Dummy", &mean },
		{ "Hybrid", &hybrid_ops },
		{ "Queueing", &queueing_ops },
		{ "GaussianProcess", &gp_ops },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].technique, technique))
			return known[i].ops;
	return NULL;
}

static int load_inner(struct reader *r, struct pipeline *m, struct err *err)
{
	const struct predictor_ops *ops = ops_of(m->technique);
	size_t n = 0;
	int rc;

	if (!ops)
		return err_fail(err, ERR_FORMAT, "automl model: this program has no such technique");
	while (ops->spec[n].name)
		n++;
	if (read_u8(r) != n)
		return damaged(err, "the list of settings");
	settings_init(&m->inner.settings, ops->spec);
	for (size_t i = 0; i < n; i++) {
		m->inner.settings.value[i] = read_f64(r);
		if (!setting_fits(&ops->spec[i], m->inner.settings.value[i]))
			return damaged(err, "a setting");
	}
	m->inner.n_features = m->n_x;
	rc = ops->load(r, m->n_x, &m->inner.self, err);
	if (!rc)
		m->inner.ops = ops;
	return rc;
}

static int pipeline_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	struct pipeline *m = mem_calloc(1, sizeof *m);
	uint8_t len = read_u8(r);
	uint32_t n;
	int rc = 0;

	if (!m)
		return err_nomem(err, "a model");
	if (r->failed || len >= sizeof m->technique)
		rc = damaged(err, "the name of the technique");
	for (size_t i = 0; i < len && !rc; i++)
		m->technique[i] = (char)read_u8(r);
	n = rc ? 0 : read_u32(r);
	if (!rc && (r->failed || n != n_features || n > FEATURES_MAX || read_left(r) / 8 < n))
		rc = damaged(err, "the number of features");
	if (!rc && !(m->fill = mem_array(n ? n : 1, sizeof *m->fill)))
		rc = err_nomem(err, "%u features", (unsigned)n);
	m->n_features = n;
	for (size_t i = 0; i < n && !rc; i++)
		if (!isfinite(m->fill[i] = read_f64(r)))
			rc = damaged(err, "a mean");
	if (!rc)
		rc = load_columns(r, m, err);
	if (!rc)
		rc = load_scalings(r, m, err);
	if (!rc)
		rc = load_inner(r, m, err);
	if (rc) {
		pipeline_free(m);
		return rc;
	}
	*out_self = m;
	return 0;
}

static const struct setting_spec no_settings[] = { { .name = NULL } };

const struct predictor_ops automl_ops = {
	.name = "automl",
	.title = "winner of a campaign",
	.spec = no_settings,
	.predict = pipeline_predict,
	.why_none = pipeline_why_none,
	.describe = pipeline_describe,
	.save = pipeline_save,
	.load = pipeline_load,
	.destroy = pipeline_free,
};
