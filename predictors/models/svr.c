/* A fitted support vector machine: its support vectors, or weights where the kernel is linear.
 * automl/techniques/svr.c fits it. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "predictors/models/campaign_models.h"

#define MAX_VECTORS 10000000

static const char *const kernel_words[] = { "linear", "poly", "rbf", "sigmoid", NULL };
static const char *const gamma_words[] = { "scale", "auto", NULL };

void svr_destroy(void *self)
{
	struct svr *m = self;

	if (!m)
		return;
	free(m->vector);
	free(m->coefficient);
	free(m);
}

struct svr *svr_new(size_t n_features, size_t n_vectors)
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
		sum += m->kernel == KERNEL_RBF ? (a[j] - b[j]) * (a[j] - b[j]) : a[j] * b[j];
	switch (m->kernel) {
	case KERNEL_POLY: return power(m->gamma * sum + m->coef0, m->degree);
	case KERNEL_RBF: return exp(-m->gamma * sum);
	case KERNEL_SIGMOID: return tanh(m->gamma * sum + m->coef0);
	default: return sum;
	}
}

void svr_predict(const void *self, const double *x, size_t n_rows, double *out)
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

void svr_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	const struct svr *m = self;

	(void)names;
	json_kv_string(w, "kernel", kernel_words[m->kernel]);
	if (m->kernel != KERNEL_LINEAR)
		json_kv_int(w, "support_vectors", (long long)m->n_vectors);
}

int svr_save(const void *self, struct writer *w, struct err *err)
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

int svr_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	uint32_t n = read_u32(r), vectors = read_u32(r);
	struct svr *m;
	bool ok;

	if (r->failed || n != n_features || n > DATASET_MAX_FEATURES || vectors > MAX_VECTORS ||
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
	ok = m->kernel <= KERNEL_SIGMOID && isfinite(m->gamma) && isfinite(m->coef0) && isfinite(m->rho);
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

const struct setting_spec svr_spec[] = {
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
