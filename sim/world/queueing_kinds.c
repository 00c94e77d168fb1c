/* Finds each kind of a trace in a world file, and works out what its jobs take. */
#include "sim/world/queueing_kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "common/text/text.h"

#define ACCURACY_STREAM 0x616363 /* of a job's seed */

/* ---- binding ---- */

struct binding {
	const struct world_file *file;
	const struct trace *trace;
	int *category; /* column of the trace of each category; -1: it has none */
	int samples, epochs; /* columns of the trace, too */
};

static int column_of(const struct trace *t, const char *name)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (!strcmp(t->column[i], name))
			return (int)i;
	return -1;
}

static const char *value_of(const struct trace *t, size_t kind, int column)
{
	return column < 0 ? NULL : t->kind[kind].value[column];
}

/* "FILE:LINE: " of the kind's first job, or its number where the trace was made. */
static void where_of(const struct trace *t, size_t kind, char *out, size_t size)
{
	const char *name = text_tail(t->name, 160);

	snprintf(out, size, "%s", name);
	for (size_t i = 0; i < t->n_jobs; i++) {
		if (t->job[i].kind != kind)
			continue;
		if (t->job[i].line)
			snprintf(out, size, "%s:%u", name, t->job[i].line);
		else
			snprintf(out, size, "%s: job %llu", name, (unsigned long long)t->job[i].id);
		return;
	}
}

static int refuse_value(const struct binding *b, size_t kind, const struct world_category *c,
			const char *given, struct err *err)
{
	struct strbuf names = { 0 };
	char where[224], shown[64];
	int rc;

	where_of(b->trace, kind, where, sizeof where);
	for (size_t i = 0; i < c->n_values && names.len < 120; i++)
		strbuf_printf(&names, "%s%s", i ? ", " : "", c->value[i].name);
	if (given)
		rc = err_fail(err, ERR_FORMAT, "%s: %s: '%s' is not known to the world, which has %.150s",
			      where, c->column, text_printable(given, shown, sizeof shown),
			      strbuf_text(&names));
	else
		rc = err_fail(err, ERR_FORMAT, "%s: %s: is not given; the world has %.150s", where, c->column,
			      strbuf_text(&names));
	strbuf_release(&names);
	return rc;
}

static int bind_category(const struct binding *b, size_t kind, size_t k, struct qkind *out, struct err *err)
{
	const struct world_category *c = &b->file->category[k];
	const char *given = value_of(b->trace, kind, b->category[k]);

	if (!given && c->n_values == 1) { /* there is no choice */
		out->value[k] = &c->value[0];
		return 0;
	}
	for (size_t i = 0; given && i < c->n_values; i++)
		if (!strcmp(c->value[i].name, given)) {
			out->value[k] = &c->value[i];
			return 0;
		}
	return refuse_value(b, kind, c, given, err);
}

static int bind_number(const struct binding *b, size_t kind, int column, double most, double *io,
		       struct err *err)
{
	const char *given = value_of(b->trace, kind, column);
	char where[224], shown[64];

	if (!given)
		return 0;
	if (text_number(given, io) && *io >= 1.0 && *io <= most)
		return 0;
	where_of(b->trace, kind, where, sizeof where);
	return err_fail(err, ERR_FORMAT, "%s: %s: '%s': need a number from 1 to %g", where,
			b->trace->column[column], text_printable(given, shown, sizeof shown), most);
}

static int bind_kind(const struct binding *b, size_t kind, struct qkind *out, struct err *err)
{
	const struct trace_kind *k = &b->trace->kind[kind];
	bool own = k->n_batches > 0;
	int rc = 0;

	*out = (struct qkind){
		.cpus = k->cpus,
		.samples = b->file->samples,
		.epochs = isnan(k->epochs_to) ? b->file->epochs : k->epochs_to,
		.batch = own ? k->batch : b->file->batch.v,
		.n_batches = own ? k->n_batches : b->file->batch.n,
	};
	for (size_t i = 0; i < b->file->n_categories && !rc; i++)
		rc = bind_category(b, kind, i, out, err);
	if (!rc && world_file_has_devices(b->file))
		rc = trace_kind_gpus(b->trace, kind, &out->gpus, err);
	if (!rc)
		rc = bind_number(b, kind, b->samples, WORLD_FILE_MAX_SAMPLES, &out->samples, err);
	if (!rc)
		rc = bind_number(b, kind, b->epochs, WORLD_FILE_MAX_EPOCHS, &out->epochs, err);
	for (size_t i = 0; i < out->n_batches && !rc; i++) {
		char where[224];

		if (out->batch[i] >= 1.0 && out->batch[i] <= WORLD_FILE_MAX_BATCH)
			continue;
		where_of(b->trace, kind, where, sizeof where);
		rc = err_fail(err, ERR_FORMAT, "%s: a batch of %g: this world has 1 to %g", where,
			      out->batch[i], WORLD_FILE_MAX_BATCH);
	}
	return rc;
}

int qkinds_bind(const struct world_file *f, const struct trace *t, struct qkind **out, struct err *err)
{
	int category[WORLD_FILE_MAX_CATEGORIES];
	struct binding b = { .file = f,
			     .trace = t,
			     .category = category,
			     .samples = column_of(t, "samples"),
			     .epochs = column_of(t, "epochs") };
	struct qkind *kind = mem_calloc(t->n_kinds ? t->n_kinds : 1, sizeof *kind);
	int rc = kind ? 0 : err_nomem(err, "%zu kinds of jobs", t->n_kinds);

	for (size_t k = 0; k < f->n_categories; k++)
		category[k] = column_of(t, f->category[k].column);
	for (size_t i = 0; i < t->n_kinds && !rc; i++)
		rc = bind_kind(&b, i, &kind[i], err);
	if (rc)
		free(kind);
	else
		*out = kind;
	return rc;
}

/* ---- a job ---- */

static bool has(const double *v, size_t n, double x)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == x)
			return true;
	return false;
}

int qkind_check_batch(const struct world_file *f, const struct qkind *k, double batch, struct err *err)
{
	struct strbuf names = { 0 };
	int rc;

	if (has(k->batch, k->n_batches, batch) || has(f->batch.v, f->batch.n, batch))
		return 0;
	for (size_t i = 0; i < f->batch.n; i++)
		strbuf_printf(&names, "%s%g", i ? ", " : "", f->batch.v[i]);
	rc = err_fail(err, ERR_ARG,
		      "a batch of %g: neither the job nor the world has it; the world has %.200s", batch,
		      strbuf_text(&names));
	strbuf_release(&names);
	return rc;
}

struct world_work qkind_work(const struct world_file *f, const struct qkind *k, double batch, double epochs)
{
	return world_file_work(f, k->value, k->cpus, k->gpus, batch, k->samples,
			       isnan(epochs) ? k->epochs : epochs);
}

double qkind_accuracy(const struct world_file *f, const struct qkind *k, double iterations,
		      const struct draws *draws)
{
	const struct world_accuracy *a = f->n_categories ? &k->value[0]->accuracy : &f->accuracy;
	struct rng rng = rng_stream(draws->seed, ACCURACY_STREAM);
	double v;

	if (isnan(a->best))
		return NAN;
	v = a->best * iterations / (iterations + a->half_iterations) + a->noise * rng_normal(&rng);
	return v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v;
}
