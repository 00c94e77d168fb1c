/* Traces that are made: from the spec to jobs. See generate.h; generate_spec.c reads the keys,
 * generate_arrivals.c says when jobs come. */
#include "sim/trace/generate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sim/trace/generate_internal.h"

/* Streams under the seed, one a purpose: what a job is does not depend on when it comes. */
enum { STREAM_ARRIVALS, STREAM_JOBS };

#define SLO_TRIES 1000 /* draws below slo_min before it is taken instead */

struct maker {
	const struct generate_spec *s;
	struct trace_build *build;
	uint64_t seed;
	uint32_t tenant[GENERATE_MAX_VALUES];
};

/* What is drawn for a job, or once for all jobs of a group or series. */
struct drawn {
	uint32_t kind, tenant;
	int32_t type;
	double slo_s, value;
	bool best_effort, steer;
};

static double slo_once(const struct generate_spec *s, struct rng *r)
{
	switch (s->slo) {
	case SLO_NONE: return NAN;
	case SLO_FIXED: return s->slo_a;
	case SLO_NORMAL: return s->slo_a + s->slo_b * rng_normal(r);
	case SLO_LOGNORMAL: return s->slo_a * exp(s->slo_b * rng_normal(r));
	case SLO_UNIFORM: return s->slo_a + (s->slo_b - s->slo_a) * rng_uniform(r);
	}
	return NAN;
}

/* Truncated: drawn again until it is not below the least. */
static double draw_slo(const struct generate_spec *s, struct rng *r)
{
	double v = NAN;

	for (int i = 0; i < SLO_TRIES; i++) {
		v = slo_once(s, r);
		/* To the microsecond: more digits are of no use, and this is shorter to write down. */
		if (v >= s->slo_min && v <= TRACE_MAX_ARRIVAL_S && s->slo_min >= 1e-3)
			v = ceil(v * 1e6) / 1e6;
		if (isnan(v) || (v >= s->slo_min && v <= TRACE_MAX_ARRIVAL_S))
			return v;
	}
	return s->slo_min;
}

static uint32_t draw_tenant(const struct maker *m, struct rng *r)
{
	const struct generate_tenants *t = &m->s->tenants;
	double at = rng_uniform(r) * t->total;
	size_t i = 0;

	while (i + 1 < t->n && at >= t->weight[i])
		at -= t->weight[i++];
	return m->tenant[i];
}

static int draw_kind(struct maker *m, struct rng *r, struct drawn *out, struct err *err)
{
	const struct generate_spec *s = m->s;
	const char *value[TRACE_MAX_COLUMNS];
	struct trace_kind_text k = {
		.value = value,
		.cpus = s->cpus[rng_below(r, (uint32_t)s->n_cpus)],
		.batch = s->batch,
		.n_batches = s->n_batches,
		.epochs_from = s->epochs_from,
		.epochs_to = s->epochs_to,
		.memory_mb = NAN,
		.memory_mb_per_record = NAN,
	};

	for (size_t i = 0; i < s->n_columns; i++) {
		const struct generate_values *v = &s->column[i];

		value[i] = v->n ? v->value[rng_below(r, (uint32_t)v->n)] : NULL;
	}
	return trace_build_kind(m->build, &k, &out->kind, err);
}

static int draw_job(struct maker *m, uint64_t stream, struct drawn *out, struct err *err)
{
	struct rng r = rng_stream(rng_mix(m->seed + STREAM_JOBS), stream);
	const struct generate_values *types = &m->s->types;
	int rc = draw_kind(m, &r, out, err);

	if (rc)
		return rc;
	out->slo_s = draw_slo(m->s, &r);
	out->tenant = draw_tenant(m, &r);
	out->best_effort = rng_uniform(&r) < m->s->best_effort;
	rc = trace_build_type(m->build, types->n ? types->value[rng_below(&r, (uint32_t)types->n)] : NULL,
			      &out->type, err);
	out->value = m->s->n_worths ? m->s->worth[rng_below(&r, (uint32_t)m->s->n_worths)] : 0.0;
	out->steer = m->s->steer > 0.0 && rng_uniform(&r) < m->s->steer; /* last: the rest stays as it was */
	return rc;
}

static int add_job(struct maker *m, double at_s, const struct drawn *d, uint64_t recurring, struct err *err)
{
	struct trace_job j = {
		.recurring = recurring,
		.slo_s = d->slo_s,
		.confidence = m->s->confidence,
		.value = d->value,
		.kind = d->kind,
		.tenant = d->tenant,
		.type = d->type,
		.priority = m->s->priority,
		.best_effort = d->best_effort,
		.steer = d->steer,
	};

	if (!(at_s <= TRACE_MAX_ARRIVAL_S))
		return err_fail(
			err, ERR_ARG,
			"gen:%s: job %zu would arrive after %g s, more than a hundred years: fewer jobs or a "
			"higher rate",
			m->s->kind_name, trace_build_jobs(m->build) + 1, at_s);
	j.arrival_ns = (int64_t)llround(at_s * 1e9);
	return trace_build_job(m->build, &j, err);
}

/* ---- the kinds ---- */

static int make_independent(struct maker *m, struct err *err)
{
	struct arrivals a;
	struct drawn d;
	int rc = 0;

	arrivals_init(&a, m->s, rng_stream(m->seed, STREAM_ARRIVALS));
	for (size_t i = 0; i < m->s->jobs && !rc; i++) {
		double at_s = arrivals_next(&a);

		if ((rc = draw_job(m, i, &d, err)) == 0)
			rc = add_job(m, at_s, &d, 0, err);
	}
	return rc;
}

/* Groups of equal jobs that arrive together; the last is cut where the jobs are enough. */
static int make_groups(struct maker *m, struct err *err)
{
	struct rng r = rng_stream(m->seed, STREAM_ARRIVALS);
	size_t left = m->s->jobs;
	double at_s = 0.0;
	int rc = 0;

	for (uint64_t group = 0; left > 0 && !rc; group++) {
		size_t n = m->s->njobs[rng_below(&r, (uint32_t)m->s->n_njobs)];
		struct drawn d;

		if (n > left)
			n = left;
		left -= n;
		rc = draw_job(m, group, &d, err);
		for (; n > 0 && !rc; n--)
			rc = add_job(m, at_s, &d, 0, err);
		at_s += m->s->gap_s;
	}
	return rc;
}

/* Every series comes at its phase and then at its period, each time a little off. All series go on to the
 * same moment. */
static int make_series(struct maker *m, struct err *err)
{
	const struct generate_spec *s = m->s;
	struct drawn *d = mem_array(s->series, sizeof *d);
	struct series *series = d ? series_new(s, rng_mix(m->seed + STREAM_ARRIVALS)) : NULL;
	int rc = 0;

	if (!series)
		rc = err_fail(err, ERR_NOMEM, "gen:%s: out of memory for the trace", s->kind_name);
	for (size_t i = 0; i < s->series && !rc; i++)
		rc = draw_job(m, i, &d[i], err);
	for (size_t i = 0; i < s->jobs && !rc; i++) {
		size_t which = 0;
		double at_s = series_next(series, &which);

		rc = add_job(m, at_s, &d[which], which + 1, err);
	}
	series_free(series);
	free(d);
	return rc;
}

static int make_jobs(struct maker *m, struct err *err)
{
	switch (m->s->kind) {
	case GENERATE_PAPER: return make_groups(m, err);
	case GENERATE_RECURRING: return make_series(m, err);
	default: return make_independent(m, err);
	}
}

/* ---- all of it ---- */

static int make_tenants(struct maker *m, struct err *err)
{
	const struct generate_tenants *t = &m->s->tenants;
	int rc = 0;

	for (size_t i = 0; i < t->n && !rc; i++)
		rc = trace_build_tenant(m->build, t->name[i], t->weight[i], &m->tenant[i], err);
	return rc;
}

static int make_columns(struct maker *m, struct err *err)
{
	size_t at;
	int rc = 0;

	for (size_t i = 0; i < m->s->n_columns && !rc; i++)
		rc = trace_build_column(m->build, m->s->column[i].name, &at, err);
	return rc;
}

int generate_trace(const char *spec, uint64_t seed, struct trace **out, struct err *err)
{
	struct generate_spec *s = NULL;
	struct maker m = { .seed = seed };
	char name[512], about[600];
	int rc = generate_spec_parse(spec, &s, err);

	if (rc)
		return rc;
	m.s = s;
	snprintf(name, sizeof name, "gen:%.400s", spec);
	snprintf(about, sizeof about, "generated: %.400s (seed %llu)", spec, (unsigned long long)seed);
	if ((rc = trace_build_new(name, NULL, 0, &m.build, err)) == 0 && (rc = make_columns(&m, err)) == 0 &&
	    (rc = make_tenants(&m, err)) == 0 && (rc = make_jobs(&m, err)) == 0)
		rc = trace_build_done(m.build, about, out, err);
	/* Whatever is wrong with values of the spec is the caller's mistake, not a file's. */
	if (rc == -ERR_FORMAT) {
		rc = -ERR_ARG;
		if (err)
			err->code = ERR_ARG;
	}
	trace_build_free(m.build);
	generate_spec_free(s);
	return rc;
}
