/* Binds the kinds of a trace to a model: values under its schema, and the batches and epochs a job may
 * have. */
#include "sim/replay/bound_kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/decide.h"

void bound_kinds_release(struct bound_kinds *b)
{
	if (!b)
		return;
	for (size_t i = 0; b->kind && i < b->n; i++) {
		if (b->has_values)
			job_values_release(&b->kind[i].values);
		free(b->kind[i].epochs);
	}
	free(b->kind);
	*b = (struct bound_kinds){ 0 };
}

static uint32_t first_line(const struct trace *t, size_t kind)
{
	for (size_t i = 0; i < t->n_jobs; i++)
		if (t->job[i].kind == kind)
			return t->job[i].line;
	return 0;
}

static int refuse(const struct trace *t, size_t kind, const char *column, const char *why, struct err *err)
{
	return err_fail(err, ERR_FORMAT, "%s:%u: column %s: %s", t->name, first_line(t, kind), column, why);
}

static bool is_load_or_decision(const struct schema *s, size_t source)
{
	return (int)source == schema_role(s, ROLE_NJOBS) || (int)source == schema_role(s, ROLE_PROCESSES) ||
	       (int)source == schema_role(s, ROLE_OTHER) || (int)source == schema_find(s, s->decision);
}

/* What happens comes from a table whose times have its other work in them. Unless the trace says it, a job is
 * asked about with as little of it as the model knows. */
static void put_other(const struct model *m, struct job_values *v)
{
	const struct feature *f = m->features->other >= 0 ? &m->features->feature[m->features->other] : NULL;

	if (f && isnan(v->number[f->source]))
		v->number[f->source] = f->min;
}

/* A job that does not say how many gpus it has, has none. */
static void put_gpus(const struct model *m, struct job_values *v)
{
	int gpus = schema_role(m->schema, ROLE_DEVICES);

	if (gpus >= 0 && isnan(v->number[gpus]))
		v->number[gpus] = 0.0;
}

static int bind_values(const struct trace *t, size_t kind, const struct model *m, bool open_epochs,
		       struct job_values *v, struct err *err)
{
	int epochs = schema_role(m->schema, ROLE_EPOCHS);

	if (job_values_bind(v, m->schema, (const char *const *)t->column,
			    (const char *const *)t->kind[kind].value, t->n_columns, err)) {
		if (err)
			err->code = ERR_FORMAT;
		return err_prefix(err, "%s:%u", t->name, first_line(t, kind));
	}
	job_values_put_role(v, m->schema, ROLE_CPUS, t->kind[kind].cpus);
	put_other(m, v);
	put_gpus(m, v);
	if (open_epochs && epochs < 0)
		return refuse(t, kind, "epochs", "open, and the model does not know epochs", err);
	for (size_t i = 0; i < m->features->n; i++) {
		size_t source = m->features->feature[i].source;

		if (source >= m->schema->n_columns || job_values_given(v, source) ||
		    is_load_or_decision(m->schema, source) || (open_epochs && (int)source == epochs))
			continue;
		/* A trace need not say what training never varied. */
		if (!features_fill_constant(m->features, source, v))
			return refuse(t, kind, m->schema->column[source].name,
				      "missing, and the model needs it", err);
	}
	return 0;
}

static int bind_epochs(const struct trace *t, size_t kind, struct bound_kind *b, struct err *err)
{
	const struct trace_kind *k = &t->kind[kind];
	double n = k->epochs_to - k->epochs_from + 1.0;

	if (isnan(k->epochs_from))
		return 0;
	if (!(n >= 1.0 && n * (double)(b->n_batches ? b->n_batches : 1) <= DECIDE_MAX_CANDIDATES))
		return refuse(t, kind, "epochs",
			      "more pairs of batch and epochs are open than a decision looks at", err);
	b->n_epochs = (size_t)n;
	b->epochs = mem_array(b->n_epochs, sizeof *b->epochs);
	if (!b->epochs)
		return err_nomem(err, "the kinds of a trace");
	for (size_t i = 0; i < b->n_epochs; i++)
		b->epochs[i] = k->epochs_from + (double)i;
	return 0;
}

int bound_kinds_init(struct bound_kinds *b, const struct trace *t, const struct world *w,
		     const struct model *model, struct err *err)
{
	int status = 0;

	*b = (struct bound_kinds){ .kind = mem_calloc(t->n_kinds, sizeof *b->kind),
				   .has_values = model != NULL };
	if (!b->kind)
		return err_nomem(err, "the kinds of a trace");
	for (size_t i = 0; !status && i < t->n_kinds; i++) {
		struct bound_kind *k = &b->kind[i];

		if (model)
			status = job_values_init(&k->values, model->schema, err);
		if (status)
			break;
		b->n = i + 1;
		k->batch = t->kind[i].batch;
		k->n_batches = t->kind[i].n_batches;
		if (!k->n_batches)
			k->n_batches = world_batches(w, &k->batch);
		if (!k->n_batches)
			k->batch = NULL;
		if (world_cluster(w)->counts_gpus)
			status = trace_kind_gpus(t, i, &k->gpus, err);
		if (!status)
			status = bind_epochs(t, i, k, err);
		if (!status && model)
			status = bind_values(t, i, model, k->n_epochs > 0, &k->values, err);
	}
	if (status)
		bound_kinds_release(b);
	return status;
}
