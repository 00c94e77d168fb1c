/* The technique SVR: support vector regression, trained by libsvm (Chang and Lin, ACM TIST 2(3), 2011). The
 * fitted model (predictors/models/svr.c) needs no library. */
#include <libsvm/svm.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/mem.h"
#include "automl/techniques/models.h"

#define CACHE_MB 64

static void quiet(const char *text)
{
	(void)text;
}

static void silence(void)
{
	svm_set_print_string_function(quiet);
}

/* scikit-learn's words: 1 / (p Var(x)), and 1 / p. */
static double gamma_of(double setting, const struct dataset *d)
{
	size_t n = d->n_rows * d->n_features;
	double mean = 0.0, squares = 0.0;

	if (setting >= 0.0)
		return setting;
	if (setting == -2)
		return 1.0 / (double)d->n_features;
	for (size_t i = 0; i < n; i++)
		mean += d->x[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (d->x[i] - mean) * (d->x[i] - mean) / (double)n;
	return squares > 0.0 ? 1.0 / ((double)d->n_features * squares) : 1.0;
}

/* Copies what libsvm has found. */
static struct svr *keep(const struct svm_model *f, size_t n_features)
{
	bool linear = f->param.kernel_type == LINEAR;
	struct svr *m = svr_new(n_features, linear ? 1 : (size_t)f->l);

	if (!m)
		return NULL;
	m->kernel = (uint8_t)f->param.kernel_type;
	m->degree = (uint8_t)f->param.degree;
	m->gamma = f->param.gamma;
	m->coef0 = f->param.coef0;
	m->rho = f->rho[0];
	if (linear)
		m->coefficient[0] = 1.0;
	for (int i = 0; i < f->l; i++) {
		if (!linear)
			m->coefficient[i] = f->sv_coef[0][i];
		for (const struct svm_node *v = f->SV[i]; v->index > 0; v++) {
			size_t j = (size_t)v->index - 1;

			if (linear)
				m->vector[j] += f->sv_coef[0][i] * v->value;
			else
				m->vector[(size_t)i * n_features + j] = v->value;
		}
	}
	return m;
}

static int svr_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		   void **out_self, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t stride = d->n_features + 1;
	struct svm_parameter param = { .svm_type = EPSILON_SVR,
				       .kernel_type = (int)settings_get(s, "kernel"),
				       .degree = (int)settings_get(s, "degree"),
				       .gamma = gamma_of(settings_get(s, "gamma"), d),
				       .cache_size = CACHE_MB,
				       .eps = settings_get(s, "tolerance"),
				       .C = settings_get(s, "C"),
				       .p = settings_get(s, "epsilon"),
				       .shrinking = 1 };
	struct svm_node *node = mem_array(d->n_rows * stride, sizeof *node);
	struct svm_node **row = mem_array(d->n_rows, sizeof *row);
	struct svm_problem problem = { .l = (int)d->n_rows, .y = d->y, .x = row };
	struct svm_model *f = NULL;
	struct svr *m = NULL;
	const char *wrong;
	int rc = 0;

	(void)ctx;
	pthread_once(&once, silence);
	if (!node || !row) {
		rc = err_nomem(err, "%zu rows of a support vector machine", d->n_rows);
		goto out;
	}
	for (size_t i = 0; i < d->n_rows; i++) {
		row[i] = node + i * stride;
		for (size_t j = 0; j < d->n_features; j++)
			row[i][j] = (struct svm_node){ (int)j + 1, d->x[i * d->n_features + j] };
		row[i][d->n_features] = (struct svm_node){ -1, 0.0 };
	}
	wrong = svm_check_parameter(&problem, &param);
	if (wrong) {
		rc = err_fail(err, ERR_ARG, "libsvm: %s", wrong);
		goto out;
	}
	f = svm_train(&problem, &param);
	m = f ? keep(f, d->n_features) : NULL;
	if (!m)
		rc = err_nomem(err, "a support vector machine");
	else if (!isfinite(m->rho))
		rc = err_fail(err, ERR_NUMERIC, "the support vector machine found no solution");
out:
	if (f)
		svm_free_and_destroy_model(&f);
	free(node);
	free(row);
	if (rc)
		svr_destroy(m);
	else
		*out_self = m;
	return rc;
}

const struct predictor_ops svr_ops = { SVR_MODEL, .fit = svr_fit };
