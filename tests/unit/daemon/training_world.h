/* A made-up machine for the tests of learning: jobs whose time follows a law, and tables of them. */
#ifndef TESTS_UNIT_DAEMON_TRAINING_WORLD_H
#define TESTS_UNIT_DAEMON_TRAINING_WORLD_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "scheduler/store/store.h"

struct world {
	double speed; /* times of all jobs are multiplied by it */
	double noise; /* standard deviation of the logarithm */
	double nonsense; /* share of jobs whose time has nothing to do with anything */
	uint64_t seed;
};

static inline void world_header(struct strbuf *out, bool of_daemon)
{
	strbuf_puts(out, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy");
	strbuf_puts(out, of_daemon ? ",lr,job,at\n" : "\n");
}

static inline void world_row(struct strbuf *out, const struct world *w, size_t i, bool of_daemon)
{
	static const double batches[] = { 64, 128, 256, 512 };
	struct rng r = rng_stream(w->seed, i);
	bool big = rng_below(&r, 2);
	double cpus = 1 + rng_below(&r, 2), njobs = 1 + rng_below(&r, 3), batch = batches[rng_below(&r, 4)];
	double epochs = 2 + rng_below(&r, 3);
	double steps = epochs * 12000.0 / batch;
	double time = 0.3 +
		      steps * (0.002 + (big ? 4e-5 : 1e-5) * batch / cpus) * (1.0 + 0.3 * (njobs - 1.0));

	time *= w->speed * exp(w->noise * rng_normal(&r));
	if (rng_uniform(&r) < w->nonsense)
		time = exp(6.0 * rng_uniform(&r) - 2.0);
	strbuf_printf(out, "%s,%g,%g,%g,%g,12000,%.6f,%.4f", big ? "lenet5" : "simplenet", cpus, njobs, batch,
		      epochs, time, 0.95 - 3e-4 * batch + 0.01 * epochs);
	if (of_daemon)
		strbuf_printf(out, ",0.01,%zu,2026-11-16T10:00:00Z", i + 1);
	strbuf_puts(out, "\n");
}

/* A table as text, as the store would answer it: for trainer_start(), which frees it. */
static inline char *packed(const char *csv, size_t *out_len)
{
	size_t row;
	struct strbuf out = { 0 };
	struct csv *t = NULL;

	strbuf_puts(&out, "");
	if (*csv && csv_parse("observations", csv, strlen(csv), &t, NULL))
		abort();
	for (size_t i = 0; t && i < t->n_rows; i++) {
		row = store_observation_put(&out, i + 1, 0, -1);
		for (size_t k = 0; k < t->n_columns; k++) {
			const char *cell = csv_cell(t, i, k);
			struct observed v = { .name = t->header[k], .number = NAN };

			if (!text_number(cell, &v.number))
				v.text = cell;
			if (*cell) /* the store leaves out what is not there */
				store_observation_put_value(&out, row, &v);
		}
	}
	csv_free(t);
	*out_len = out.len;
	return out.text;
}

/* n jobs, to be freed. */
static inline char *world_table(const struct world *w, size_t n, bool of_daemon)
{
	struct strbuf out = { 0 };

	world_header(&out, of_daemon);
	for (size_t i = 0; i < n; i++)
		world_row(&out, w, i, of_daemon);
	return out.text;
}

/* The same as the store would answer it. */
static inline char *world_observations(const struct world *w, size_t n, size_t *out_len)
{
	char *csv = world_table(w, n, true), *rows = packed(csv, out_len);

	free(csv);
	return rows;
}

#endif
