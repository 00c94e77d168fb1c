/* What linear techniques of a campaign end in, y = intercept + sum coefficient * x, and the settings of those
 * that have no file of their own here. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "predictors/models/campaign_models.h"

struct affine *affine_new(size_t n_features)
{
	struct affine *m = n_features <= DATASET_MAX_FEATURES
				   ? mem_calloc(1, sizeof *m + n_features * sizeof m->coefficient[0])
				   : NULL;

	if (m)
		m->n_features = n_features;
	return m;
}

void affine_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct affine *m = self;

	for (size_t i = 0; i < n_rows; i++) {
		double sum = m->intercept;

		for (size_t j = 0; j < m->n_features; j++)
			if (m->coefficient[j] != 0.0)
				sum += m->coefficient[j] * x[i * m->n_features + j];
		out[i] = sum;
	}
}

void affine_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct affine *m = self;

	json_kv_number(w, "intercept", m->intercept);
	json_kv_open(w, "coefficients", '{');
	for (size_t j = 0; j < m->n_features; j++)
		if (m->coefficient[j] != 0.0 && names && names->name)
			json_kv_number(w, names->name[j], m->coefficient[j]);
	json_close(w, '}');
}

int affine_save(const void *self, struct writer *w, struct err *err)
{
	const struct affine *m = self;

	write_u32(w, (uint32_t)m->n_features);
	write_f64(w, m->intercept);
	for (size_t j = 0; j < m->n_features; j++)
		write_f64(w, m->coefficient[j]);
	return w->out.failed ? err_nomem(err, "a linear model") : 0;
}

int affine_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	uint32_t n = read_u32(r);
	struct affine *m;

	if (r->failed || n != n_features || read_left(r) < (n + (size_t)1) * 8)
		return err_fail(err, ERR_FORMAT, "linear model: it ends early, or %u features are not %zu",
				(unsigned)n, n_features);
	m = affine_new(n);
	if (!m)
		return err_nomem(err, "a linear model");
	m->intercept = read_f64(r);
	for (size_t j = 0; j < n; j++) {
		m->coefficient[j] = read_f64(r);
		r->failed |= !isfinite(m->coefficient[j]);
	}
	if (r->failed || !isfinite(m->intercept)) {
		free(m);
		return err_fail(err, ERR_FORMAT, "linear model: a coefficient is not a number");
	}
	*out_self = m;
	return 0;
}

/* ---- settings ---- */

static const char *const no_yes[] = { "no", "yes", NULL };

#define INTERCEPT_SETTING                                                                                    \
	{                                                                                                    \
		.name = "fit_intercept", .otherwise = 1, .max = 1, .words = no_yes,                          \
		.help = "fit an intercept"                                                                   \
	}

const struct setting_spec mean_spec[] = { { .name = NULL } };

static const char *const method_words[] = { "lasso", "lawson-hanson", NULL };

const struct setting_spec nnls_spec[] = {
	{ .name = "method", .max = 1, .words = method_words, .help = "with a penalty, or without one" },
	{ .name = "alpha",
	  .otherwise = 0.001,
	  .max = 1e300,
	  .help = "weight of the lasso's penalty; 0: none" },
	INTERCEPT_SETTING,
	{ .name = NULL },
};

const struct setting_spec stepwise_spec[] = {
	{ .name = "p_to_add",
	  .otherwise = 0.05,
	  .min = 1e-12,
	  .max = 1,
	  .help = "a column comes in below this p" },
	{ .name = "p_to_remove",
	  .otherwise = 0.1,
	  .min = 1e-12,
	  .max = 1,
	  .help = "and goes above this one" },
	{ .name = "max_iter",
	  .otherwise = 100,
	  .min = 1,
	  .max = 1e6,
	  .integer = true,
	  .help = "turns at most" },
	INTERCEPT_SETTING,
	{ .name = NULL },
};

const struct setting_spec xgboost_spec[] = {
	{ .name = "n_estimators",
	  .otherwise = 500,
	  .min = 1,
	  .max = 20000,
	  .integer = true,
	  .help = "trees" },
	{ .name = "max_depth",
	  .otherwise = 100,
	  .max = 10000,
	  .integer = true,
	  .help = "levels; 0: no limit" },
	{ .name = "learning_rate", .otherwise = 0.1, .min = 1e-9, .max = 1, .help = "share of each tree" },
	{ .name = "min_child_weight", .otherwise = 1, .max = 1e9, .help = "rows that a leaf needs" },
	{ .name = "gamma", .otherwise = 0.25, .max = 1e300, .help = "gain that a split needs" },
	{ .name = "lambda", .otherwise = 1, .max = 1e300, .help = "penalty of squared leaves" },
	{ .name = "alpha", .otherwise = 0, .max = 1e300, .help = "penalty of absolute leaves" },
	{ .name = NULL },
};
