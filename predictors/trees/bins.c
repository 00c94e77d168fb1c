/* Sorts the values of every feature into bins, once for all trees that are grown on them. */
#include "predictors/trees/bins.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct keyed {
	uint64_t key;
	uint32_t row;
};

/* A double as an unsigned integer of the same order; NaN above everything; -0 and +0 are one value. */
static uint64_t order_key(double v)
{
	uint64_t bits;

	if (isnan(v))
		return UINT64_MAX;
	v += 0.0; /* -0 + 0 = +0 */
	memcpy(&bits, &v, sizeof bits);
	return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

static double key_value(uint64_t key)
{
	uint64_t bits = key >> 63 ? key & ~(1ULL << 63) : ~key;
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

/* Least significant digit first, eight bits a pass; a digit in which all keys agree needs none.
 * Stable, linear, and the same code for 200 rows and for a million. Result in `a`. */
static void sort_keyed(struct keyed *a, struct keyed *spare, size_t n)
{
	struct keyed *from = a, *to = spare;
	uint64_t differ = 0;

	for (size_t i = 1; i < n; i++)
		differ |= a[i].key ^ a[0].key;
	for (int shift = 0; shift < 64; shift += 8) {
		size_t count[256], at = 0;

		if (!(differ >> shift & 255))
			continue;
		memset(count, 0, sizeof count);
		for (size_t i = 0; i < n; i++)
			count[from[i].key >> shift & 255]++;
		for (size_t d = 0; d < 256; d++) {
			size_t c = count[d];
			count[d] = at;
			at += c;
		}
		for (size_t i = 0; i < n; i++)
			to[count[from[i].key >> shift & 255]++] = from[i];
		struct keyed *t = from;
		from = to;
		to = t;
	}
	if (from != a)
		memcpy(a, from, n * sizeof *a);
}

int bins_order(const double *v, size_t n, uint32_t *out, struct err *err)
{
	struct keyed *a = mem_array(n, 2 * sizeof *a);

	if (!a)
		return err_fail(err, ERR_NOMEM, "out of memory to sort %zu values", n);
	for (size_t i = 0; i < n; i++)
		a[i] = (struct keyed){ order_key(v[i]), (uint32_t)i };
	sort_keyed(a, a + n, n);
	for (size_t i = 0; i < n; i++)
		out[i] = a[i].row;
	free(a);
	return 0;
}

static size_t count_distinct(const struct keyed *a, size_t n)
{
	size_t distinct = n > 0;

	for (size_t i = 1; i < n; i++)
		distinct += a[i].key != a[i - 1].key;
	return distinct;
}

struct bin_job {
	struct bins *bins;
	const struct dataset *data;
	struct keyed **scratch; /* one per worker */
	atomic_bool no_memory;
};

static void bin_feature(void *ctx, size_t f, size_t worker)
{
	struct bin_job *job = ctx;
	struct bins *b = job->bins;
	struct bin_feature *feature = &b->feature[f];
	struct keyed *a = job->scratch[worker];
	uint16_t *code = b->code + f * b->n_rows;
	size_t n = b->n_rows, present, distinct, quota, in_level = 0;
	uint32_t level = 0;

	for (size_t i = 0; i < n; i++)
		a[i] = (struct keyed){ order_key(job->data->x[i * b->n_features + f]), (uint32_t)i };
	sort_keyed(a, a + n, n);
	for (present = n; present > 0 && a[present - 1].key == UINT64_MAX;)
		present--;
	distinct = count_distinct(a, present);
	/* A new level begins at each new value, or once the level holds its share of the rows. */
	quota = distinct <= BINS_MAX_LEVELS ? 0 : (present + BINS_QUANTILES - 1) / BINS_QUANTILES;
	feature->low = mem_array(quota ? BINS_QUANTILES + 1 : distinct, sizeof *feature->low);
	feature->high = mem_array(quota ? BINS_QUANTILES + 1 : distinct, sizeof *feature->high);
	if (!feature->low || !feature->high) {
		atomic_store(&job->no_memory, true);
		return;
	}
	for (size_t i = 0; i < present; i++) {
		if (i > 0 && a[i].key != a[i - 1].key && in_level >= quota) {
			level++;
			in_level = 0;
		}
		if (in_level++ == 0)
			feature->low[level] = key_value(a[i].key);
		feature->high[level] = key_value(a[i].key);
		code[a[i].row] = (uint16_t)level;
	}
	feature->n_levels = present ? level + 1 : 0;
	for (size_t i = present; i < n; i++)
		code[a[i].row] = (uint16_t)feature->n_levels;
}

int bins_new(const struct dataset *d, struct pool *pool, struct bins **out, struct err *err)
{
	struct bins *b = mem_calloc(1, sizeof *b);
	struct bin_job job = { .data = d, .bins = b };
	int failed = 0;

	if (b) {
		b->n_rows = d->n_rows;
		b->n_features = d->n_features;
		b->feature = mem_calloc(d->n_features, sizeof *b->feature);
		b->code = mem_array(d->n_rows * d->n_features, sizeof *b->code);
		job.scratch = mem_calloc(pool_threads(pool), sizeof *job.scratch);
	}
	failed = !b || !b->feature || !b->code || !job.scratch;
	for (size_t i = 0; !failed && i < pool_threads(pool); i++) {
		job.scratch[i] = mem_array(d->n_rows, 2 * sizeof **job.scratch);
		failed = !job.scratch[i];
	}
	if (!failed) {
		pool_run(pool, d->n_features, bin_feature, &job);
		failed = atomic_load(&job.no_memory);
	}
	for (size_t i = 0; job.scratch && i < pool_threads(pool); i++)
		free(job.scratch[i]);
	free(job.scratch);
	if (failed) {
		bins_free(b);
		return err_nomem(err, "%zu rows x %zu features", d->n_rows, d->n_features);
	}
	*out = b;
	return 0;
}

void bins_free(struct bins *b)
{
	if (!b)
		return;
	for (size_t f = 0; b->feature && f < b->n_features; f++) {
		free(b->feature[f].low);
		free(b->feature[f].high);
	}
	free(b->feature);
	free(b->code);
	free(b);
}
