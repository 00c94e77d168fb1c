/* Putting a trace together job by job. See build.h; kinds are in kinds.c, what is done at the
 * end in done.c. */
#include "sim/trace/build.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/utf8.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/text/text.h"
#include "sim/trace/build_internal.h"
#include "sim/trace/row.h"

int trace_build_nomem(const struct trace_build *b, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory for the trace",
			text_tail(b->name, TRACE_NAME_SHOWN));
}

int trace_build_new(const char *name, const char *const *column, size_t n_columns, struct trace_build **out,
		    struct err *err)
{
	struct trace_build *b = mem_calloc(1, sizeof *b);
	int rc = 0;

	if (!b || !(b->name = mem_strdup(name))) {
		free(b);
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the trace",
				text_tail(name, TRACE_NAME_SHOWN));
	}
	for (size_t i = 0, at; i < n_columns && !rc; i++)
		rc = trace_build_column(b, column[i], &at, err);
	if (rc) {
		trace_build_free(b);
		return rc;
	}
	*out = b;
	return 0;
}

void trace_build_free(struct trace_build *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_kinds; i++)
		free(b->kind[i].value); /* the block with all of it */
	for (size_t i = 0; i < b->n_notices; i++)
		free(b->notice[i]);
	trace_names_release(&b->column);
	trace_names_release(&b->tenant);
	trace_names_release(&b->type);
	free(b->weight);
	free(b->kind);
	free(b->kind_found);
	free(b->kind_slot);
	free(b->job);
	free(b->id_slot);
	free(b->notice);
	free(b->name);
	free(b);
}

size_t trace_build_columns(const struct trace_build *b)
{
	return b->column.n;
}

size_t trace_build_jobs(const struct trace_build *b)
{
	return b->n_jobs;
}

void trace_build_absolute(struct trace_build *b)
{
	b->absolute = true;
}

/* ---- names ---- */

/* Names and values travel through CSV and JSON: what one of them could not carry is refused here. */
int trace_build_check_text(const struct trace_build *b, const char *what, const char *text, struct err *err)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strlen(text), len;
	char shown[64];

	if (n == 0)
		return err_fail(err, ERR_FORMAT, "%s: %s without a name",
				text_tail(b->name, TRACE_NAME_SHOWN), what);
	if (n > TRACE_MAX_VALUE)
		return err_fail(err, ERR_FORMAT, "%s: %s '%s' is longer than %d bytes",
				text_tail(b->name, TRACE_NAME_SHOWN), what,
				text_printable(text, shown, sizeof shown), TRACE_MAX_VALUE);
	for (; n > 0; s += len, n -= len) {
		len = utf8_length(s, n);
		if (len == 0 || *s < 0x20 || *s == 0x7f)
			return err_fail(err, ERR_FORMAT, "%s: %s '%s' has a %s in it",
					text_tail(b->name, TRACE_NAME_SHOWN), what,
					text_printable(text, shown, sizeof shown),
					len ? "control character" : "byte that is not UTF-8");
	}
	return 0;
}

/* Index of the name in the set; a new one is checked first. */
static int add_name(struct trace_build *b, struct trace_names *set, const char *what, size_t max,
		    const char *name, size_t *out, struct err *err)
{
	int64_t at = trace_names_find(set, name);
	int rc;

	if (at < 0) {
		if ((rc = trace_build_check_text(b, what, name, err)))
			return rc;
		if (set->n >= max)
			return err_fail(err, ERR_FORMAT, "%s: more than %zu %ss",
					text_tail(b->name, TRACE_NAME_SHOWN), max, what);
		at = trace_names_add(set, name);
		if (at < 0)
			return trace_build_nomem(b, err);
	}
	*out = (size_t)at;
	return 0;
}

int trace_build_column(struct trace_build *b, const char *name, size_t *out, struct err *err)
{
	enum trace_field f = trace_field_of(name);

	if (f != TRACE_FIELDS && f != TRACE_EPOCHS)
		return err_fail(err, ERR_FORMAT, "%s: '%s' is a field of the job, not a column of values",
				text_tail(b->name, TRACE_NAME_SHOWN), name);
	return add_name(b, &b->column, "column", TRACE_MAX_COLUMNS, name, out, err);
}

int trace_build_tenant(struct trace_build *b, const char *name, double weight, uint32_t *out, struct err *err)
{
	size_t before = b->tenant.n, at = 0;
	void *weights = b->weight;
	int rc;

	if (!isnan(weight) && !(weight > 0.0 && weight <= TRACE_MAX_WEIGHT))
		return err_fail(err, ERR_FORMAT, "%s: tenant's weight %g is not above 0 and at most %g",
				text_tail(b->name, TRACE_NAME_SHOWN), weight, TRACE_MAX_WEIGHT);
	if (mem_grow(&weights, &b->cap_weights, b->tenant.n + 1, sizeof *b->weight))
		return trace_build_nomem(b, err);
	b->weight = weights;
	rc = add_name(b, &b->tenant, "tenant", TRACE_MAX_TENANTS, name ? name : "default", &at, err);
	if (rc)
		return rc;
	if (b->tenant.n > before)
		b->weight[at] = NAN;
	if (isnan(b->weight[at]))
		b->weight[at] = weight;
	else if (!isnan(weight) && weight != b->weight[at])
		return err_fail(err, ERR_FORMAT, "%s: tenant '%s' has weight %g, but had %g before",
				text_tail(b->name, TRACE_NAME_SHOWN), b->tenant.name[at], weight,
				b->weight[at]);
	*out = (uint32_t)at;
	return 0;
}

int trace_build_type(struct trace_build *b, const char *name, int32_t *out, struct err *err)
{
	size_t at = 0;
	int rc = 0;

	if (!name)
		*out = -1;
	else if ((rc = add_name(b, &b->type, "type", TRACE_MAX_TYPES, name, &at, err)) == 0)
		*out = (int32_t)at;
	return rc;
}

/* ---- jobs ---- */

/* Where a job comes from: "FILE:LINE", or "FILE: job ID" for one without a line. */
#define PLACE_SIZE (TRACE_NAME_SHOWN + 64)
static const char *place_of(const struct trace_build *b, const struct trace_job *j, char *out)
{
	if (j->line)
		snprintf(out, PLACE_SIZE, "%s:%u", text_tail(b->name, TRACE_NAME_SHOWN), j->line);
	else
		snprintf(out, PLACE_SIZE, "%s: job %llu", text_tail(b->name, TRACE_NAME_SHOWN),
			 (unsigned long long)j->id);
	return out;
}

static bool id_insert(struct trace_build *b, uint64_t id) /* false: it was there */
{
	size_t at = (size_t)rng_mix(id) & (b->n_id_slots - 1);

	for (; b->id_slot[at]; at = (at + 1) & (b->n_id_slots - 1))
		if (b->id_slot[at] == id)
			return false;
	b->id_slot[at] = id;
	return true;
}

/* Ids mostly ascend, and then none can be there twice; the table of them is made for the first that does
 * not. */
static int note_id(struct trace_build *b, const struct trace_job *j, struct err *err)
{
	char place[PLACE_SIZE];

	if (!b->id_slot && j->id > b->highest_id)
		return 0;
	if (!b->id_slot || 2 * (b->n_jobs + 1) > b->n_id_slots) {
		size_t n = 64;

		while (n < 4 * (b->n_jobs + 1))
			n *= 2;
		free(b->id_slot);
		b->id_slot = mem_calloc(n, sizeof *b->id_slot);
		if (!b->id_slot)
			return trace_build_nomem(b, err);
		b->n_id_slots = n;
		for (size_t i = 0; i < b->n_jobs; i++)
			id_insert(b, b->job[i].id);
	}
	if (id_insert(b, j->id))
		return 0;
	return err_fail(err, ERR_FORMAT, "%s: field id: %llu was there before; ids must differ",
			place_of(b, j, place), (unsigned long long)j->id);
}

static int check_job(const struct trace_build *b, const struct trace_job *j, struct err *err)
{
	char place[PLACE_SIZE];

	if (j->arrival_ns < 0 || (!b->absolute && (double)j->arrival_ns > TRACE_MAX_ARRIVAL_S * 1e9))
		return err_fail(err, ERR_FORMAT, "%s: field arrival_s: %g is not between 0 and %g s",
				place_of(b, j, place), (double)j->arrival_ns / 1e9, TRACE_MAX_ARRIVAL_S);
	if (!isnan(j->slo_s) && !(j->slo_s > 0.0 && j->slo_s <= TRACE_MAX_ARRIVAL_S))
		return err_fail(err, ERR_FORMAT, "%s: field slo_s: %g is not above 0 and at most %g s",
				place_of(b, j, place), j->slo_s, TRACE_MAX_ARRIVAL_S);
	if (!isnan(j->confidence) && !(j->confidence > 0.0 && j->confidence < 1.0))
		return err_fail(err, ERR_FORMAT, "%s: field confidence: %g is not between 0 and 1",
				place_of(b, j, place), j->confidence);
	if (!(j->chance >= 0.0 && j->chance <= TRACE_MAX_CHANCE))
		return err_fail(err, ERR_FORMAT, "%s: field chance: %g is not between 0 and %g",
				place_of(b, j, place), j->chance, TRACE_MAX_CHANCE);
	if (j->value != 0.0 && !(j->value >= TRACE_MIN_VALUE && j->value <= TRACE_MAX_WORTH))
		return err_fail(err, ERR_FORMAT, "%s: field value: %g is not between %g and %g",
				place_of(b, j, place), j->value, TRACE_MIN_VALUE, TRACE_MAX_WORTH);
	if (j->kind >= b->n_kinds || j->tenant >= b->tenant.n || j->type < -1 ||
	    (j->type >= 0 && (size_t)j->type >= b->type.n))
		return err_fail(err, ERR_ARG, "%s: a kind, tenant or type that was not made before",
				place_of(b, j, place));
	if (b->n_jobs >= TRACE_MAX_JOBS)
		return err_fail(err, ERR_FORMAT, "%s: more than %d jobs", place_of(b, j, place),
				TRACE_MAX_JOBS);
	return 0;
}

int trace_build_job(struct trace_build *b, const struct trace_job *j, struct err *err)
{
	struct trace_job job = *j;
	void *jobs = b->job;
	uint32_t unused;
	int rc;

	if (job.id == 0)
		job.id = b->n_jobs + 1;
	if (b->tenant.n == 0 && (rc = trace_build_tenant(b, NULL, NAN, &unused, err)))
		return rc;
	if ((rc = check_job(b, &job, err)) || (rc = note_id(b, &job, err)))
		return rc;
	if (mem_grow(&jobs, &b->cap_jobs, b->n_jobs + 1, sizeof *b->job))
		return trace_build_nomem(b, err);
	b->job = jobs;
	b->job[b->n_jobs++] = job;
	if (job.id > b->highest_id)
		b->highest_id = job.id;
	return 0;
}

int trace_build_notice(struct trace_build *b, struct err *err, const char *fmt, ...)
{
	void *notices = b->notice;
	char text[512];
	va_list ap;

	if (b->n_notices >= TRACE_MAX_NOTICES)
		return 0;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (mem_grow(&notices, &b->cap_notices, b->n_notices + 1, sizeof *b->notice))
		return trace_build_nomem(b, err);
	b->notice = notices;
	b->notice[b->n_notices] = mem_strdup(text);
	if (!b->notice[b->n_notices])
		return trace_build_nomem(b, err);
	b->n_notices++;
	return 0;
}
