/* The technique SVR: support vector regression, trained by libsvm (Chang and Lin, ACM TIST 2(3), 2011). The
 * fitted model is kept as its support vectors, or as weights where the kernel is linear, so that predicting
 * needs no library. */
#include <libsvm/svm.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/techniques/models.h"
#include "predictors/data/features.h"

#define CACHE_MB 64
#define MAX_VECTORS 10000000

struct svr {
	size_t n_features, n_vectors;
	uint8_t kernel; /* LINEAR, POLY, RBF, SIGMOID */
	uint8_t degree;
	double gamma, coef0, rho;
	double *vector; /* n_vectors x n_features; of a linear kernel one: the weights */
	double *coefficient;
};

static const char *const kernel_words[] = { "linear", "poly", "rbf", "sigmoid", NULL };
static const char *const gamma_words[] = { "scale", "auto", NULL };

static void svr_destroy(void *self)
{
	struct svr *m = self;

	if (!m)
		return;
	free(m->vector);
	free(m->coefficient);
	free(m);
}

static struct svr *svr_new(size_t n_features, size_t n_vectors)
{
	struct svr *m = mem_calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->n_features = n_features;
	m->n_vectors = n_vectors;
	m->vector = mem_calloc(n_vectors * n_features + 1, sizeof *m->vector);
	m->coefficient = mem_calloc(n_vectors + 1, sizeof *m->coefficient);
	if (!m->vector || !m->coefficient) {
		svr_destroy(m);
		return NULL;
	}
	return m;
}

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

static double power(double base, unsigned n)
{
	double v = 1.0;

	for (; n; n /= 2, base *= base)
		if (n % 2)
			v *= base;
	return v;
}

static double kernel(const struct svr *m, const double *a, const double *b)
{
	double sum = 0.0;

	for (size_t j = 0; j < m->n_features; j++)
		sum += m->kernel == RBF ? (a[j] - b[j]) * (a[j] - b[j]) : a[j] * b[j];
	switch (m->kernel) {
	case POLY: return power(m->gamma * sum + m->coef0, m->degree);
	case RBF: return exp(-m->gamma * sum);
	case SIGMOID: return tanh(m->gamma * sum + m->coef0);
	default: return sum;
	}
}

static void svr_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct svr *m = self;

	for (size_t i = 0; i < n_rows; i++) {
		double sum = -m->rho;

		for (size_t v = 0; v < m->n_vectors; v++)
			sum += m->coefficient[v] *
			       kernel(m, m->vector + v * m->n_features, x + i * m->n_features);
		out[i] = sum;
	}
}

static void svr_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct svr *m = self;

	(void)names;
	json_kv_string(w, "kernel", kernel_words[m->kernel]);
	if (m->kernel != LINEAR)
		json_kv_int(w, "support_vectors", (long long)m->n_vectors);
}

static int svr_save(const void *self, struct writer *w, struct err *err)
{
	const struct svr *m = self;

	write_u32(w, (uint32_t)m->n_features);
	write_u32(w, (uint32_t)m->n_vectors);
	write_u8(w, m->kernel);
	write_u8(w, m->degree);
	write_f64(w, m->gamma);
	write_f64(w, m->coef0);
	write_f64(w, m->rho);
	for (size_t v = 0; v < m->n_vectors; v++)
		write_f64(w, m->coefficient[v]);
	for (size_t v = 0; v < m->n_vectors * m->n_features; v++)
		write_f64(w, m->vector[v]);
	return w->out.failed ? err_nomem(err, "a support vector machine") : 0;
}

static int svr_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	uint32_t n = read_u32(r), vectors = read_u32(r);
	struct svr *m;
	bool ok;

	if (r->failed || n != n_features || n > FEATURES_MAX || vectors > MAX_VECTORS ||
	    read_left(r) / 8 < (size_t)vectors * (n + 1))
		return err_fail(err, ERR_FORMAT,
				"support vector machine: it ends early, or %u features are not %zu",
				(unsigned)n, n_features);
	m = svr_new(n, vectors);
	if (!m)
		return err_nomem(err, "a support vector machine");
	m->kernel = read_u8(r);
	m->degree = read_u8(r);
	m->gamma = read_f64(r);
	m->coef0 = read_f64(r);
	m->rho = read_f64(r);
	ok = m->kernel <= SIGMOID && isfinite(m->gamma) && isfinite(m->coef0) && isfinite(m->rho);
	for (size_t v = 0; v < vectors; v++)
		ok &= isfinite(m->coefficient[v] = read_f64(r));
	for (size_t v = 0; v < (size_t)vectors * n; v++)
		ok &= isfinite(m->vector[v] = read_f64(r));
	if (!ok || r->failed) {
		svr_destroy(m);
		return err_fail(err, ERR_FORMAT, "support vector machine: a number is out of range");
	}
	*out_self = m;
	return 0;
}

static const struct setting_spec svr_spec[] = {
	{ .name = "C", .otherwise = 0.001, .min = 1e-300, .max = 1e300, .help = "price of an error" },
	{ .name = "epsilon", .otherwise = 0.05, .max = 1e300, .help = "errors up to this are free" },
	{ .name = "gamma",
	  .otherwise = 1e-7,
	  .max = 1e300,
	  .words = gamma_words,
	  .words_or_number = true,
	  .help = "of the kernel; scale, auto or a number" },
	{ .name = "kernel", .max = 3, .words = kernel_words, .help = "linear, poly, rbf or sigmoid" },
	{ .name = "degree", .otherwise = 2, .min = 0, .max = 100, .integer = true, .help = "of kernel poly" },
	{ .name = "tolerance", .otherwise = 1e-3, .min = 1e-12, .max = 1, .help = "where the search stops" },
	{ .name = NULL },
};

const struct predictor_ops svr_ops = {
	.name = "svr",
	.title = "support vector regression",
	.spec = svr_spec,
	.fit = svr_fit,
	.predict = svr_predict,
	.describe = svr_describe,
	.save = svr_save,
	.load = svr_load,
	.destroy = svr_destroy,
};
