/* What linear techniques end in, y = intercept + sum coefficient * x, and the simplest of them: `mean`, the
 * technique Dummy, that all others have to beat. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"
#include "predictors/techniques/models.h"
#include "predictors/data/features.h"

const char *const models_no_yes[] = { "no", "yes", NULL };

struct affine *affine_new(size_t n_features)
{
	struct affine *m = n_features <= FEATURES_MAX
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

double *models_columns(const struct dataset *d)
{
	double *x = mem_array(d->n_rows * d->n_features, sizeof *x);

	for (size_t i = 0; x && i < d->n_rows; i++)
		for (size_t j = 0; j < d->n_features; j++)
			x[j * d->n_rows + i] = d->x[i * d->n_features + j];
	return x;
}

static int mean_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		    void **out_self, struct err *err)
{
	struct affine *m = affine_new(d->n_features);

	(void)s;
	(void)ctx;
	if (!m)
		return err_nomem(err, "a mean");
	m->intercept = stats_mean(d->y, d->n_rows);
	*out_self = m;
	return 0;
}

static const struct setting_spec mean_spec[] = { { .name = NULL } };

const struct predictor_ops mean_ops = {
	.name = "mean", .title = "the mean", .spec = mean_spec, .fit = mean_fit, AFFINE_OPS
};
