/* Traces: opening by what the name says, freeing, scaling. See trace.h. */
#include "sim/trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "sim/trace/generate.h"
#include "sim/trace/build.h"

#define SPEC_SHOWN 200

static void free_names(char **name, size_t n)
{
	for (size_t i = 0; name && i < n; i++)
		free(name[i]);
	free(name);
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_kinds; i++)
		free(t->kind[i].value); /* one block with batches and texts (trace_kind_copy) */
	free(t->kind);
	free_names(t->column, t->n_columns);
	free_names(t->tenant, t->n_tenants);
	free_names(t->type, t->n_types);
	free_names(t->notice, t->n_notices);
	free(t->weight);
	free(t->job);
	free(t->name);
	free(t->about);
	free(t);
}

/* ---- opening ---- */

static bool ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcasecmp(path + n - m, end) == 0;
}

static int open_file(const struct trace_source *s, struct trace **out, struct err *err)
{
	struct stat st;

	if (ends_in(s->spec, ".csv") || strcmp(s->spec, "-") == 0)
		return trace_read_csv(s->spec, out, err);
	if (ends_in(s->spec, ".jsonl") || ends_in(s->spec, ".ndjson"))
		return trace_read_jsonl(s->spec, out, err);
	if (ends_in(s->spec, ".swf"))
		return trace_read_swf(s->spec, s->map, out, err);
	if (ends_in(s->spec, ".db") || (stat(s->spec, &st) == 0 && S_ISDIR(st.st_mode)))
		return trace_read_history(s->spec, out, err);
	if (stat(s->spec, &st) != 0)
		return err_fail(err, ERR_NOTFOUND,
				"%s: no such trace: need a file, or gen:KIND,key=value,...",
				text_tail(s->spec, SPEC_SHOWN));
	if (ends_in(s->spec, ".gz"))
		return err_fail(err, ERR_ARG, "%s is compressed: unpack it first (gunzip)",
				text_tail(s->spec, SPEC_SHOWN));
	return err_fail(err, ERR_ARG,
			"%s: what kind of trace is it? The name must end in .csv, .jsonl, .swf or .db",
			text_tail(s->spec, SPEC_SHOWN));
}

static int open_source(const struct trace_source *s, struct trace **out, struct err *err)
{
	bool generated = !s->history && strncmp(s->spec, "gen:", 4) == 0;

	if (s->map && (generated || s->history || !ends_in(s->spec, ".swf")))
		return err_fail(err, ERR_ARG, "%s: a mapping is for traces in SWF (.swf) alone",
				text_tail(s->spec, SPEC_SHOWN));
	if (s->history)
		return trace_read_history(s->spec, out, err);
	if (generated)
		return generate_trace(s->spec + 4, s->seed, out, err);
	return open_file(s, out, err);
}

int trace_open(const struct trace_source *s, struct trace **out, struct err *err)
{
	struct trace *t = NULL;
	int rc = open_source(s, &t, err);

	if (!rc && s->resample)
		rc = trace_resample(t, s->resample, s->seed, err);
	if (rc)
		trace_free(t);
	else
		*out = t;
	return rc;
}

/* ---- scaling ---- */

static int scale_jobs(struct trace *t, double slo_scale, double load_scale, struct err *err)
{
	for (size_t i = 0; i < t->n_jobs; i++) {
		struct trace_job *j = &t->job[i];
		double arrival_s = (double)j->arrival_ns / 1e9 / load_scale;

		if (!(arrival_s <= TRACE_MAX_ARRIVAL_S))
			return err_fail(
				err, ERR_ARG,
				"load x %g: job %llu would arrive after %g s, more than a hundred years",
				load_scale, (unsigned long long)j->id, arrival_s);
		/* Unscaled arrivals stay as they are: double seconds do not carry every nanosecond. */
		if (load_scale != 1.0)
			j->arrival_ns = (int64_t)llround(arrival_s * 1e9);
		j->slo_s *= slo_scale;
		if (!isnan(j->slo_s) && !(j->slo_s > 0.0 && j->slo_s <= TRACE_MAX_ARRIVAL_S))
			return err_fail(err, ERR_ARG, "limits x %g: job %llu would have %g s", slo_scale,
					(unsigned long long)j->id, j->slo_s);
	}
	return 0;
}

int trace_scale(struct trace *t, double slo_scale, double load_scale, struct err *err)
{
	char source[128], *about;
	int rc;

	if (!(slo_scale > 0.0) || !(load_scale > 0.0) || isinf(slo_scale) || isinf(load_scale))
		return err_fail(err, ERR_ARG, "scales of limits %g and load %g: need both above 0", slo_scale,
				load_scale);
	if ((rc = scale_jobs(t, slo_scale, load_scale, err)))
		return rc;
	snprintf(source, sizeof source, "limits x %g, load x %g", slo_scale, load_scale);
	about = trace_about(t, source);
	if (!about)
		return err_nomem(err, "a scaled trace");
	free(t->about);
	t->about = about;
	t->fingerprint = trace_fingerprint(t);
	return 0;
}

/* ---- leaving jobs out ---- */

static int say_left_out(struct trace *t, size_t all, const char *reason, struct err *err)
{
	struct strbuf about = { 0 }, notice = { 0 };
	char **grown = mem_resize(t->notice, t->n_notices + 1, sizeof *grown);

	if (!grown)
		return err_nomem(err, "a notice");
	t->notice = grown;
	strbuf_printf(&about, "%s; %zu of %zu jobs left out", t->about, t->n_left_out, all);
	strbuf_printf(&notice, "%zu of %zu jobs left out (--strict refuses them): %s", t->n_left_out, all,
		      reason);
	if (about.failed || notice.failed) {
		strbuf_release(&about);
		strbuf_release(&notice);
		return err_nomem(err, "a notice");
	}
	t->notice[t->n_notices++] = notice.text;
	free(t->about);
	t->about = about.text;
	return 0;
}

int trace_leave_out(struct trace *t, const bool *kind, const char *reason, struct err *err)
{
	size_t n = 0, all = t->n_jobs;
	uint32_t *number;

	for (size_t i = 0; i < all; i++)
		n += !kind[t->job[i].kind];
	if (n == all)
		return 0;
	if (!n)
		return err_fail(err, ERR_FORMAT, "none of the %zu jobs can be run: %s", all, reason);
	number = mem_array(t->n_kinds, sizeof *number);
	if (!number)
		return err_nomem(err, "%zu kinds of jobs", t->n_kinds);
	n = 0;
	for (size_t i = 0; i < t->n_kinds; i++) {
		number[i] = (uint32_t)n;
		if (kind[i])
			free(t->kind[i].value);
		else
			t->kind[n++] = t->kind[i];
	}
	t->n_jobs = 0;
	for (size_t i = 0; i < all; i++) {
		struct trace_job j = t->job[i];

		if (kind[j.kind])
			continue;
		j.kind = number[j.kind];
		t->job[t->n_jobs++] = j;
	}
	free(number);
	t->n_kinds = n;
	t->n_left_out += all - t->n_jobs;
	t->fingerprint = trace_fingerprint(t);
	return say_left_out(t, all, reason, err);
}

/* ---- devices ---- */

int trace_kind_gpus(const struct trace *t, size_t kind, uint32_t *out, struct err *err)
{
	const char *text = NULL;
	char shown[64];
	double v = 0.0;

	for (size_t i = 0; i < t->n_columns; i++)
		if (!strcmp(t->column[i], TRACE_GPUS))
			text = t->kind[kind].value[i];
	*out = 0;
	if (!text)
		return 0;
	if (text_number(text, &v) && v >= 0.0 && v <= TRACE_MAX_CPUS && v == floor(v)) {
		*out = (uint32_t)v;
		return 0;
	}
	for (size_t i = 0; i < t->n_jobs; i++)
		if (t->job[i].kind == kind)
			return err_fail(err, ERR_FORMAT,
					"%s:%u: field gpus: '%s': need a whole number from 0 to %d", t->name,
					t->job[i].line, text_printable(text, shown, sizeof shown),
					TRACE_MAX_CPUS);
	return err_fail(err, ERR_FORMAT, "%s: field gpus: need a whole number", t->name);
}
