/* A model whose questions are asked as if the load were that of the measured machine. */
#include "sim/replay/scaled_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct scaled {
	struct predictor_ops ops; /* the base's, with our own predict, shares and machine */
	const struct predictor *base;
	double measured_cores, cores;
	int cpus, njobs, processes; /* features; -1: none */
	size_t n_features;
};

#define MAX_FEATURES 1024 /* FEATURES_MAX: a row on the stack */

static void scale_row(const struct scaled *s, const double *x, double *out)
{
	double cpus = s->cpus >= 0 ? x[s->cpus] : 1.0;

	memcpy(out, x, s->n_features * sizeof *out);
	if (s->processes >= 0 && !isnan(out[s->processes]))
		out[s->processes] = scaled_processes(out[s->processes], cpus, s->measured_cores, s->cores);
	if (s->njobs >= 0 && !isnan(out[s->njobs]))
		out[s->njobs] = scaled_processes(out[s->njobs], 1.0, s->measured_cores, s->cores);
}

static void scaled_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct scaled *s = self;
	double row[MAX_FEATURES];

	for (size_t i = 0; i < n_rows; i++) {
		scale_row(s, x + i * s->n_features, row);
		predictor_predict(s->base, row, 1, &out[i]);
	}
}

static void scaled_why_none(const void *self, const double *x, char *out, size_t size)
{
	const struct scaled *s = self;
	double row[MAX_FEATURES];

	scale_row(s, x, row);
	s->base->ops->why_none(s->base->self, row, out, size);
}

static void scaled_shares(const void *self, const double *x, struct work_shares *out)
{
	const struct scaled *s = self;
	double row[MAX_FEATURES];

	scale_row(s, x, row);
	s->base->ops->shares(s->base->self, row, out);
}

static double scaled_spread(const void *self, const double *x)
{
	const struct scaled *s = self;
	double row[MAX_FEATURES];

	scale_row(s, x, row);
	return s->base->ops->spread(s->base->self, row);
}

static void scaled_machine(const void *self, double *out_cores, double *out_disk_saturation)
{
	const struct scaled *s = self;

	s->base->ops->machine(s->base->self, out_cores, out_disk_saturation);
	*out_cores *= s->cores / s->measured_cores;
	*out_disk_saturation *= s->cores / s->measured_cores;
}

static int feature_of_role(const struct model *m, enum feature_role role)
{
	int source = schema_role(m->schema, role);

	for (size_t i = 0; source >= 0 && i < m->features->n; i++)
		if (m->features->feature[i].source == (size_t)source &&
		    !feature_is_category(&m->features->feature[i]))
			return (int)i;
	return -1;
}

/* Loads that were measured scale with the machine: they are not outside the table on a larger one. */
static void widen_range(struct feature *f, double ratio)
{
	f->max = fmax(f->max, f->max * ratio);
}

int scaled_model_new(const struct model *base, double measured_cores, double cores, struct model **out,
		     struct err *err)
{
	struct scaled *s = NULL;
	struct features *f = NULL;
	struct model *m = NULL;

	if (base->features->n > MAX_FEATURES)
		return err_fail(err, ERR_ARG, "the model has %zu features, more than %d", base->features->n,
				MAX_FEATURES);
	s = mem_calloc(1, sizeof *s);
	f = mem_calloc(1, sizeof *f);
	m = mem_calloc(1, sizeof *m);
	if (s && f && m)
		f->feature = mem_array(base->features->n, sizeof *f->feature);
	if (!s || !f || !m || !f->feature) {
		free(s);
		free(f);
		free(m);
		return err_nomem(err, "a model of a larger machine");
	}
	*s = (struct scaled){ .ops = *base->time.predictor.ops,
			      .base = &base->time.predictor,
			      .measured_cores = measured_cores,
			      .cores = cores,
			      .cpus = feature_of_role(base, ROLE_CPUS),
			      .njobs = feature_of_role(base, ROLE_NJOBS),
			      .processes = feature_of_role(base, ROLE_PROCESSES),
			      .n_features = base->features->n };
	s->ops.predict = scaled_predict;
	s->ops.why_none = s->ops.why_none ? scaled_why_none : NULL;
	s->ops.shares = s->ops.shares ? scaled_shares : NULL;
	s->ops.spread = s->ops.spread ? scaled_spread : NULL;
	s->ops.machine = s->ops.machine ? scaled_machine : NULL;
	f->schema = base->features->schema;
	f->n = base->features->n;
	f->derives = base->features->derives;
	f->other = base->features->other;
	memcpy(f->feature, base->features->feature, f->n * sizeof *f->feature);
	if (s->njobs >= 0)
		widen_range(&f->feature[s->njobs], cores / measured_cores);
	if (s->processes >= 0)
		widen_range(&f->feature[s->processes], cores / measured_cores);
	*m = *base;
	m->features = f;
	m->time.predictor.ops = &s->ops;
	m->time.predictor.self = s;
	*out = m;
	return 0;
}

void scaled_model_free(struct model *m)
{
	if (!m)
		return;
	free(m->time.predictor.self);
	free(m->features->feature);
	free(m->features);
	free(m);
}
