/* The tables that the benches work on, made anew from a fixed seed each time. */
#include "tests/bench/bench.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"

#define SEED 2021
#define FULL_ROWS 288 /* 4 x 4 x 3 x 2 settings, 3 replications */

/* ---- the small table: the levels of the paper, 5 % noise ---- */

struct run {
	int cpus, batch, njobs, deep;
	double time_s, accuracy;
};

/* Time and accuracy in the manner of workloads/synthetic_main.c, which says where the figures come from. */
static void small_runs(struct run run[FULL_ROWS])
{
	static const int cpus[] = { 1, 2, 4, 8 }, batch[] = { 64, 128, 256, 512 }, njobs[] = { 1, 3, 5 };
	struct rng rng = rng_stream(SEED, 0);
	uint32_t order[FULL_ROWS];
	struct run in_order[FULL_ROWS];

	for (int i = 0; i < FULL_ROWS; i++) {
		struct run r = { cpus[i % 4], batch[i / 4 % 4], njobs[i / 16 % 3], i / 48 % 2, 0, 0 };
		double iteration_s = 0.045 + 5.5e-5 * r.batch / r.cpus + 0.0017 * r.cpus * r.njobs +
				     0.006 * r.deep;

		r.time_s = 600000.0 / r.batch * iteration_s * (1.0 + 0.05 * rng_normal(&rng));
		r.accuracy = 0.957 + 0.007 * r.deep - 1.39e-4 * r.batch + 0.0037 * rng_normal(&rng);
		in_order[i] = r;
		order[i] = (uint32_t)i;
	}
	rng_shuffle(&rng, order, FULL_ROWS);
	for (int i = 0; i < FULL_ROWS; i++)
		run[i] = in_order[order[i]];
}

static int dataset_alloc(size_t n, size_t p, struct dataset **out, struct err *err)
{
	struct dataset *d = mem_calloc(1, sizeof *d);

	if (d) {
		d->n_rows = n;
		d->n_features = p;
		d->x = mem_array(n, p * sizeof *d->x);
		d->y = mem_array(n, sizeof *d->y);
	}
	if (!d || !d->x || !d->y) {
		dataset_free(d);
		return err_fail(err, ERR_NOMEM, "no memory for %zu rows", n);
	}
	*out = d;
	return 0;
}

int bench_small(struct dataset **out, struct err *err)
{
	struct run run[FULL_ROWS];
	int status = dataset_alloc(SMALL_ROWS, SMALL_FEATURES, out, err);

	if (status)
		return status;
	small_runs(run);
	for (size_t i = 0; i < SMALL_ROWS; i++) {
		double *x = (*out)->x + i * SMALL_FEATURES;

		x[0] = run[i].batch;
		x[1] = run[i].cpus;
		x[2] = run[i].njobs;
		x[3] = run[i].deep;
		x[4] = run[i].cpus * run[i].njobs;
		(*out)->y[i] = run[i].time_s;
	}
	return 0;
}

int bench_small_write(const char *path, struct err *err)
{
	struct strbuf text = { 0 };
	struct dataset *d = NULL;
	int status = bench_small(&d, err);

	if (status)
		return status;
	strbuf_puts(&text, "batch,cpus,njobs,network,processes,y\n");
	for (size_t i = 0; i < d->n_rows; i++) {
		for (size_t f = 0; f < d->n_features; f++) {
			csv_put_number(&text, d->x[i * d->n_features + f]);
			strbuf_puts(&text, ",");
		}
		csv_put_number(&text, d->y[i]);
		strbuf_puts(&text, "\n");
	}
	status = text.failed ? err_fail(err, ERR_NOMEM, "no memory for a table")
			     : io_write_file(path, text.text, text.len, err);
	strbuf_release(&text);
	dataset_free(d);
	return status;
}

int bench_small_runs(struct strbuf *out)
{
	struct run run[FULL_ROWS];

	small_runs(run);
	strbuf_puts(out, "network,cpus,njobs,batch,time_s,accuracy\n");
	for (size_t i = 0; i < SMALL_ROWS; i++) {
		strbuf_printf(out, "%s,%d,%d,%d,", run[i].deep ? "lenet5" : "simplenet", run[i].cpus,
			      run[i].njobs, run[i].batch);
		csv_put_number(out, run[i].time_s);
		strbuf_puts(out, ",");
		csv_put_number(out, run[i].accuracy);
		strbuf_puts(out, "\n");
	}
	return out->failed ? -1 : 0;
}

/* ---- the large table: Friedman's first function (Annals of Statistics 19(1), 1991) ---- */

/* Ten uniform features of which five matter, and noise of variance 1. */
static void large_row(size_t row, double x[LARGE_FEATURES], double *y)
{
	struct rng rng = rng_stream(SEED + 1, row);

	for (size_t f = 0; f < LARGE_FEATURES; f++)
		x[f] = rng_uniform(&rng);
	*y = 10.0 * sin(M_PI * x[0] * x[1]) + 20.0 * (x[2] - 0.5) * (x[2] - 0.5) + 10.0 * x[3] + 5.0 * x[4] +
	     rng_normal(&rng);
}

int bench_large_new(size_t n, struct dataset **out, struct err *err)
{
	int status = dataset_alloc(n, LARGE_FEATURES, out, err);

	for (size_t i = 0; !status && i < n; i++)
		large_row(i, (*out)->x + i * LARGE_FEATURES, &(*out)->y[i]);
	return status;
}

int bench_large_write(const char *path, size_t n, struct err *err)
{
	FILE *f = fopen(path, "wb");
	bool ok = f != NULL;

	for (size_t i = 0; ok && i < n; i++) {
		double row[LARGE_FEATURES + 1];
		uint64_t raw[LARGE_FEATURES + 1];

		large_row(i, row, &row[LARGE_FEATURES]);
		memcpy(raw, row, sizeof raw);
		for (size_t k = 0; k <= LARGE_FEATURES; k++)
			raw[k] = htole64(raw[k]);
		ok = fwrite(raw, sizeof raw, 1, f) == 1;
	}
	if (f && fclose(f))
		ok = false;
	return ok ? 0 : err_fail(err, ERR_IO, "cannot write %s: %s", path, strerror(errno));
}

/* Row by row: a copy of the file in memory would be counted against the forest. */
int bench_large_read(const char *path, size_t from, size_t n, struct dataset **out, struct err *err)
{
	uint64_t raw[LARGE_FEATURES + 1];
	double row[LARGE_FEATURES + 1];
	struct dataset *d = NULL;
	FILE *f = fopen(path, "rb");
	int status;

	if (!f)
		return err_fail(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
	status = dataset_alloc(n, LARGE_FEATURES, &d, err);
	if (!status && fseeko(f, (off_t)(from * sizeof raw), SEEK_SET))
		status = err_fail(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
	for (size_t i = 0; !status && i < n; i++) {
		if (fread(raw, sizeof raw, 1, f) != 1) {
			status = err_fail(err, ERR_IO, "%s ends after %zu rows", path, from + i);
			break;
		}
		for (size_t k = 0; k <= LARGE_FEATURES; k++)
			raw[k] = le64toh(raw[k]);
		memcpy(row, raw, sizeof row);
		memcpy(d->x + i * LARGE_FEATURES, row, LARGE_FEATURES * sizeof *row);
		d->y[i] = row[LARGE_FEATURES];
	}
	fclose(f);
	if (status) {
		dataset_free(d);
		return status;
	}
	*out = d;
	return 0;
}
