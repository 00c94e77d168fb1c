#include "sim/replay/bound_kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
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

static int refuse(const struct trace *t, size_t kind, const char *column, struct err *err, const char *why,
		  const char *text)
{
	char shown[64];

	return err_fail(err, ERR_FORMAT, "%s:%u: field %s: %s%s%s%s", t->name, first_line(t, kind), column,
			text ? "'" : "", text ? text_printable(text, shown, sizeof shown) : "",
			text ? "' " : "", why);
}

static int set_value(const struct trace *t, size_t kind, size_t column, const struct schema *s,
		     struct job_values *v, struct err *err)
{
	const char *text = t->kind[kind].value[column];
	int at = schema_find_any(s, t->column[column]);

	if (!text || at < 0)
		return 0;
	if ((size_t)at < s->n_columns && s->column[at].kind == COLUMN_CATEGORY)
		v->category[at] = text;
	else if (!text_number(text, &v->number[at]))
		return refuse(t, kind, t->column[column], err, "is not a number", text);
	return 0;
}

/* What the training table never varied, a trace need not say. */
static int fill_constant(const struct trace *t, size_t kind, const struct model *m, const struct feature *f,
			 struct job_values *v, struct err *err)
{
	const struct schema *s = m->schema;
	const char *name;

	if (f->source >= s->n_columns) /* derived */
		return 0;
	name = s->column[f->source].name;
	if (feature_is_category(f)) {
		if (v->category[f->source])
			return 0;
		if (f->category || !f->category_zero)
			return refuse(t, kind, name, err, "is missing, and the model needs it", NULL);
		v->category[f->source] = f->category_zero;
		return 0;
	}
	if (!isnan(v->number[f->source]))
		return 0;
	if (!(f->min == f->max))
		return refuse(t, kind, name, err, "is missing, and the model needs it", NULL);
	v->number[f->source] = f->min;
	return 0;
}

static bool is_load_or_decision(const struct schema *s, size_t source)
{
	return (int)source == schema_role(s, ROLE_NJOBS) || (int)source == schema_role(s, ROLE_PROCESSES) ||
	       (int)source == schema_find(s, s->decision);
}

static int bind_values(const struct trace *t, size_t kind, const struct model *m, bool open_epochs,
		       struct job_values *v, struct err *err)
{
	int cpus = schema_role(m->schema, ROLE_CPUS), epochs = schema_role(m->schema, ROLE_EPOCHS);
	int status = 0;

	for (size_t i = 0; !status && i < t->n_columns; i++)
		status = set_value(t, kind, i, m->schema, v, err);
	if (cpus >= 0)
		v->number[cpus] = t->kind[kind].cpus;
	if (!status && open_epochs && epochs < 0)
		status = refuse(t, kind, "epochs", err, "are open, and the model does not know epochs", NULL);
	for (size_t i = 0; !status && i < m->features->n; i++) {
		const struct feature *f = &m->features->feature[i];

		if (!is_load_or_decision(m->schema, f->source) && !(open_epochs && (int)f->source == epochs))
			status = fill_constant(t, kind, m, f, v, err);
	}
	return status;
}

static int bind_epochs(const struct trace *t, size_t kind, struct bound_kind *b, struct err *err)
{
	const struct trace_kind *k = &t->kind[kind];
	double n = k->epochs_to - k->epochs_from + 1.0;

	if (isnan(k->epochs_from))
		return 0;
	if (!(n >= 1.0 && n * (double)(b->n_batches ? b->n_batches : 1) <= DECIDE_MAX_CANDIDATES))
		return refuse(t, kind, "epochs", err,
			      "leave more pairs of batch and epochs open than a "
			      "decision looks at",
			      NULL);
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
		status = bind_epochs(t, i, k, err);
		if (!status && model)
			status = bind_values(t, i, model, k->n_epochs > 0, &k->values, err);
	}
	if (status)
		bound_kinds_release(b);
	return status;
}
