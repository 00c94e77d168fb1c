/* Model files. Each input is tried as it is, and once more with its checksums put right: random bytes
 * hardly ever have the right ones, and what lies behind them must stand on its own. Whatever loads must
 * predict without harm and come back the same after writing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void store_u64(unsigned char *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (unsigned char)(v >> (8 * i));
}

static void repair(unsigned char *b, size_t len)
{
	if (len < 24)
		return;
	store_u64(b + 16, bytes_crc64(b, 16));
	for (size_t at = 24; len - at >= 20;) {
		struct reader r = { .bytes = b, .len = len, .at = at + 4 };
		uint64_t size = read_u64(&r);

		if (size > len - at - 20)
			return;
		store_u64(b + at + 12, bytes_crc64_more(bytes_crc64(b + at, 12), b + at + 20, (size_t)size));
		at += 20 + (size_t)size;
	}
}

#define N_ROWS 4

/* A few rows: the ends of the ranges, their middle, nothing at all. */
static void predict(const struct model *m, const struct model_target *t, double *out)
{
	double x[FEATURES_MAX];

	for (size_t row = 0; row < N_ROWS; row++) {
		for (size_t i = 0; i < m->features->n; i++) {
			const struct feature *f = &m->features->feature[i];
			double v[N_ROWS] = { f->min, f->max, 0.5 * f->min + 0.5 * f->max, __builtin_nan("") };
			x[i] = v[row];
		}
		features_extrapolated(m->features, x);
		predictor_predict(&t->predictor, x, 1, &out[row]);
	}
}

static void use(struct model *m)
{
	struct job_values v;
	double x[FEATURES_MAX], before[N_ROWS], after[N_ROWS], q;

	if (!job_values_init(&v, m->schema, NULL)) {
		features_encode_job(m->features, &v, x);
		features_extrapolated(m->features, x);
		predictor_predict(&m->time.predictor, x, 1, &q);
		job_values_release(&v);
	}
	if (!conformal_quantile(&m->time.conformal, 0.9, &q, NULL))
		conformal_upper(&m->time.conformal, q, 1.0);
	if (m->accuracy.predictor.ops)
		predict(m, &m->accuracy, before);
	predict(m, &m->time, before);
	if (model_compile(m, NULL))
		return;
	predict(m, &m->time, after);
	if (memcmp(before, after, sizeof before) != 0)
		abort(); /* the look-up table must give the very same bits */
}

static void try_one(const unsigned char *b, size_t len)
{
	struct writer first = { 0 }, second = { 0 };
	struct model *m = NULL, *n = NULL;
	struct err err = { 0 };

	if (model_decode("fuzz", b, len, &m, &err)) {
		if (!err.text[0])
			abort();
		return;
	}
	if (model_encode(m, &first, &err) || model_decode("again", first.out.text, first.out.len, &n, &err) ||
	    model_encode(n, &second, &err))
		abort();
	if (first.out.len != second.out.len || memcmp(first.out.text, second.out.text, first.out.len) != 0)
		abort();
	use(m);
	strbuf_release(&first.out);
	strbuf_release(&second.out);
	model_free(m);
	model_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *copy = calloc(size ? size : 1, 1);

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	try_one(copy, size);
	repair(copy, size);
	try_one(copy, size);
	free(copy);
	return 0;
}
