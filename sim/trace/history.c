/* The daemon's own history as a trace: the jobs in its database, read by the store (docs/STORE.md). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "scheduler/jobs/life.h"
#include "scheduler/store/store.h"
#include "sim/trace/build.h"
#include "sim/trace/names.h"
#include "sim/trace/row.h"

#define NAME_SHOWN 200
#define MAX_SEEN 65536

struct history {
	const char *path; /* of the database; valid while the store reads it */
	struct trace_build *build;
	struct trace_row row;
	struct strbuf text; /* values of this job, one after the other */
	/* Jobs repeat themselves: kinds by the very text of params, batches and cpus, so that each is parsed
	 * once. */
	struct trace_names seen;
	uint32_t *kind_of;
	size_t cap_kinds;
	struct strbuf key;
	size_t cancelled, no_time, reserved;
	char reserved_name[64];
	struct err *err;
};

static int nomem(const struct history *h)
{
	return err_fail(h->err, ERR_NOMEM, "%s: out of memory for the trace", text_tail(h->path, NAME_SHOWN));
}

/* ---- a job ---- */

static int bad(struct history *h, uint64_t id, const char *field, const char *reason)
{
	char shown[64];

	return err_fail(h->err, ERR_FORMAT, "%s: job %llu: field %s: %s", text_tail(h->path, NAME_SHOWN),
			(unsigned long long)id, text_printable(field, shown, sizeof shown), reason);
}

/* A value as text at the end of h->text; false: it is none. */
static bool put_value(struct strbuf *out, const struct json *v)
{
	char buf[32];

	switch (json_type(v)) {
	case JSON_NULL: break;
	case JSON_BOOL: strbuf_puts(out, json_bool(v, false) ? "true" : "false"); break;
	case JSON_NUMBER: strbuf_puts(out, text_shortest(json_number(v, 0.0), buf)); break;
	case JSON_STRING: strbuf_puts(out, json_string(v, "")); break;
	default: return false;
	}
	strbuf_add(out, "", 1);
	return true;
}

/* Parameters are columns; one with the name of a field of traces is left out, and one notice says so. */
static int read_params(struct history *h, uint64_t id, const struct json *params)
{
	size_t column[TRACE_MAX_COLUMNS], from[TRACE_MAX_COLUMNS], n = 0;
	const char *key[TRACE_MAX_COLUMNS];
	int rc;

	if (json_type(params) != JSON_OBJECT)
		return bad(h, id, "params", "need a JSON object");
	strbuf_reset(&h->text);
	for (const struct json *v = json_first(params); v; v = json_next(v)) {
		enum trace_field f = trace_field_of(json_key(v));

		if (f != TRACE_FIELDS && f != TRACE_EPOCHS) {
			if (!h->reserved++)
				text_printable(json_key(v), h->reserved_name, sizeof h->reserved_name);
			continue;
		}
		if (n == TRACE_MAX_COLUMNS)
			return bad(h, id, "params", "more than 64 parameters");
		if ((rc = trace_build_column(h->build, json_key(v), &column[n], h->err)))
			return rc;
		key[n] = json_key(v);
		from[n++] = h->text.len;
		if (!put_value(&h->text, v))
			return bad(h, id, json_key(v), "need text, a number, true, false or null");
	}
	if (h->text.failed)
		return nomem(h);
	/* Only now: the row must know of columns that are new. */
	trace_row_begin(&h->row, 0);
	for (size_t i = 0; i < n; i++)
		if (trace_row_field(&h->row, trace_field_of(key[i]), column[i], h->text.text + from[i],
				    h->err))
			return err_prefix(h->err, "%s: job %llu: field %s", text_tail(h->path, NAME_SHOWN),
					  (unsigned long long)id, key[i]);
	return 0;
}

static int read_batches(struct history *h, uint64_t id, const struct json *list)
{
	struct strbuf joined = { 0 };
	char buf[32];
	int rc = 0;

	for (const struct json *v = json_first(list); v; v = json_next(v))
		strbuf_printf(&joined, "%s%s", joined.len ? "|" : "",
			      text_shortest(json_number(v, NAN), buf));
	if (joined.failed)
		rc = nomem(h);
	else if (json_type(list) != JSON_ARRAY)
		rc = bad(h, id, "batches", "need a JSON array of numbers");
	else if (trace_row_field(&h->row, TRACE_BATCHES, 0, strbuf_text(&joined), h->err))
		rc = err_prefix(h->err, "%s: job %llu: field batches", text_tail(h->path, NAME_SHOWN),
				(unsigned long long)id);
	strbuf_release(&joined);
	return rc;
}

/* A field with a JSON text, parsed; the error names job and field. */
static int parse_field(struct history *h, const char *text, uint64_t id, const char *field, struct json **out)
{
	struct err found = { 0 };

	if (json_parse(field, text, strlen(text), out, &found) == 0)
		return 0;
	if (found.code == ERR_NOMEM)
		return nomem(h);
	return bad(h, id, field, found.text);
}

/* Reads what the job trains, and keeps the kind under its text while there are not too many. */
static int read_kind(struct history *h, const struct job_record *r, uint32_t *out)
{
	struct json *params = NULL, *batches = NULL;
	void *kinds = h->kind_of;
	int64_t at;
	int rc = parse_field(h, r->params, r->id, "params", &params);

	if (rc == 0)
		rc = read_params(h, r->id, params);
	if (rc == 0 && r->batches) {
		rc = parse_field(h, r->batches, r->id, "batches", &batches);
		if (rc == 0)
			rc = read_batches(h, r->id, batches);
	}
	if (rc == 0 && (r->cpus < 1 || r->cpus > TRACE_MAX_CPUS))
		rc = bad(h, r->id, "cpus", "need 1 to 65536");
	if (rc == 0) {
		h->row.kind.cpus = r->cpus;
		rc = trace_build_kind(h->build, &h->row.kind, out, h->err);
		if (rc)
			err_prefix(h->err, "job %llu", (unsigned long long)r->id);
	}
	json_free(params);
	json_free(batches);
	if (rc || h->seen.n >= MAX_SEEN)
		return rc;
	at = trace_names_add(&h->seen, strbuf_text(&h->key));
	if (at < 0 || mem_grow(&kinds, &h->cap_kinds, (size_t)at + 1, sizeof *h->kind_of))
		return nomem(h);
	h->kind_of = kinds;
	h->kind_of[at] = *out;
	return 0;
}

static int kind_of(struct history *h, const struct job_record *r, uint32_t *out)
{
	int64_t at;

	strbuf_reset(&h->key);
	strbuf_printf(&h->key, "%u %s\n%s", r->cpus, r->batches ? r->batches : "", r->params);
	if (h->key.failed)
		return nomem(h);
	at = trace_names_find(&h->seen, strbuf_text(&h->key));
	if (at < 0)
		return read_kind(h, r, out);
	*out = h->kind_of[at];
	return 0;
}

static int add_job(struct history *h, const struct job_record *r)
{
	struct trace_job j = {
		.id = r->id,
		.arrival_ns = r->submitted_ns,
		.slo_s = r->slo_s,
		.confidence = r->confidence,
		.chance = isnan(r->chance) ? 0.0 : r->chance,
		.value = isnan(r->value) ? 0.0 : r->value,
		.best_effort = r->best_effort,
		.may_stop = r->may_stop,
		.priority = r->priority,
	};
	char uid[40];
	int rc;

	snprintf(uid, sizeof uid, "uid-%u", (unsigned)r->uid);
	if ((rc = kind_of(h, r, &j.kind)) ||
	    (rc = trace_build_tenant(h->build, r->tenant ? r->tenant : uid, NAN, &j.tenant, h->err)) ||
	    (rc = trace_build_type(h->build, r->type, &j.type, h->err)))
		return rc;
	return trace_build_job(h->build, &j, h->err);
}

/* The scheduler let go of it, not its owner: under another policy it might have been in time. */
static bool given_up(const struct job_record *r)
{
	return r->reason && !strcmp(r->reason, LIFE_NO_CHANCE);
}

static int read_job(void *owner, const struct job_record *r, struct err *err)
{
	struct history *h = owner;

	(void)err; /* h->err */
	if (r->id < 1 || r->id > INT64_MAX)
		return bad(h, 0, "id", "need a number above 0");
	if (r->state == JOB_CANCELLED && !given_up(r)) {
		h->cancelled++;
		return 0;
	}
	if (!r->submitted_ns) {
		h->no_time++;
		return 0;
	}
	return add_job(h, r);
}

/* ---- the whole ---- */

static int add_notices(struct history *h)
{
	int rc = 0;

	if (h->cancelled)
		rc = trace_build_notice(h->build, h->err, "%zu cancelled job%s left out", h->cancelled,
					h->cancelled == 1 ? " is" : "s are");
	if (rc == 0 && h->no_time)
		rc = trace_build_notice(h->build, h->err, "%zu job%s without a time of submission left out",
					h->no_time, h->no_time == 1 ? " is" : "s are");
	if (rc == 0 && h->reserved)
		rc = trace_build_notice(h->build, h->err,
					"parameter '%s' has the name of a field of traces: left out",
					h->reserved_name);
	return rc;
}

static int begin(void *owner, const char *path, struct err *err)
{
	struct history *h = owner;
	int rc;

	trace_build_free(h->build);
	h->build = NULL;
	trace_names_release(&h->seen);
	h->cancelled = h->no_time = h->reserved = 0;
	h->path = path;
	rc = trace_build_new(path, NULL, 0, &h->build, err);
	if (rc)
		return rc;
	trace_build_absolute(h->build);
	trace_row_init(&h->row, h->build);
	return 0;
}

int trace_read_history(const char *path, struct trace **out, struct err *err)
{
	struct err local = { 0 };
	struct history h = { .err = err ? err : &local };
	struct store_visitor v = { .begin = begin, .job = read_job, .owner = &h };
	int rc = store_visit(path, &v, h.err);

	if (rc == 0)
		rc = add_notices(&h);
	if (rc == 0)
		rc = trace_build_done(h.build, "from a daemon's history", out, h.err);
	trace_build_free(h.build);
	trace_names_release(&h.seen);
	strbuf_release(&h.text);
	strbuf_release(&h.key);
	free(h.kind_of);
	return rc;
}
