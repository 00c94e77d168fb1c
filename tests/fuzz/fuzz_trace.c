/* Any bytes into the readers of traces. The first byte says which: 's' and 'm' for SWF (with the built-in
 * mapping, or with the bytes up to a NUL as the mapping), 'g' for a generator's text, '{' for JSON lines,
 * anything else for CSV. No reader may crash or leak; what is refused is refused with its place; an accepted
 * trace keeps its promises, and written in either of our formats it reads back as the same one. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/trace/generate.h"
#include "sim/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_trace: %s\n", what);
	abort();
}

static void check_job(const struct trace *t, size_t i)
{
	const struct trace_job *j = &t->job[i];

	must(j->id > 0 && j->arrival_ns >= 0 && (i == 0 || j->arrival_ns >= t->job[i - 1].arrival_ns),
	     "a job without id or out of order");
	must(isnan(j->slo_s) || (j->slo_s > 0.0 && j->slo_s <= TRACE_MAX_ARRIVAL_S),
	     "an objective out of range");
	must(isnan(j->confidence) || (j->confidence > 0.0 && j->confidence < 1.0),
	     "a confidence out of range");
	must(j->kind < t->n_kinds && j->tenant < t->n_tenants &&
		     (j->type == -1 || (size_t)j->type < t->n_types),
	     "a job of no kind, tenant or type");
}

static void check_trace(const struct trace *t)
{
	must(t->n_jobs > 0 && t->n_tenants > 0 && t->name && t->about,
	     "a trace without jobs, tenants or names");
	for (size_t i = 0; i < t->n_jobs; i++)
		check_job(t, i);
	for (size_t i = 0; i < t->n_kinds; i++) {
		const struct trace_kind *k = &t->kind[i];

		must(k->cpus >= 1 && k->cpus <= TRACE_MAX_CPUS, "cpus out of range");
		for (size_t b = 0; b < k->n_batches; b++)
			must(k->batch[b] > 0.0 && (b == 0 || k->batch[b] > k->batch[b - 1]),
			     "batches out of order");
		for (size_t c = 0; c < t->n_columns; c++)
			must(!k->value[c] || (*k->value[c] && strlen(k->value[c]) <= TRACE_MAX_VALUE),
			     "an empty or long value");
		must(isnan(k->epochs_from) || k->epochs_from <= k->epochs_to, "epochs out of order");
	}
}

static void write_and_read(const struct trace *t)
{
	struct strbuf csv = { 0 }, jsonl = { 0 };
	struct trace *again = NULL, *lines = NULL;
	struct err err = { 0 };

	trace_write_csv(t, &csv);
	if (trace_parse_csv("csv", csv.text, csv.len, &again, &err)) {
		fprintf(stderr, "%s\n%s\n", err.text, csv.text);
		must(false, "what was written as CSV is refused");
	}
	must(again->fingerprint == t->fingerprint, "another trace after CSV");
	trace_write_jsonl(t, &jsonl);
	if (trace_parse_jsonl("jsonl", jsonl.text, jsonl.len, &lines, &err)) {
		fprintf(stderr, "%s\n%s\n", err.text, jsonl.text);
		must(false, "what was written as JSON lines is refused");
	}
	must(lines->fingerprint == t->fingerprint, "another trace after JSON lines");
	trace_free(again);
	trace_free(lines);
	strbuf_release(&csv);
	strbuf_release(&jsonl);
}

#define MOST_JOBS 50 /* long traces are for other tests: they are slow, and show no other code */

/* A text without a number of jobs gets a small one: by itself it would mean 1,000. */
static int generate(const char *text, size_t size, struct trace **out, struct err *err)
{
	char spec[512];
	int n = snprintf(spec, sizeof spec, "%.*s", (int)(size < 480 ? size : 480), text);
	const char *at = strstr(spec, "jobs=");

	if (!at)
		snprintf(spec + n, sizeof spec - (size_t)n, ",jobs=%d", MOST_JOBS);
	return (at && !(strtod(at + 5, NULL) <= MOST_JOBS)) || strstr(spec, "series=")
		       ? -ERR_ARG
		       : generate_trace(spec, 1, out, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct trace *t = NULL;
	struct err err = { 0 };
	size_t n;
	int rc;

	if (size && *text == 's') {
		rc = trace_parse_swf("fuzz", text + 1, size - 1, NULL, NULL, 0, &t, &err);
	} else if (size && *text == 'm') {
		n = strnlen(text + 1, size - 1);
		rc = trace_parse_swf("fuzz", text + 1 + n, size - 1 - n, "fuzz", text + 1, n, &t, &err);
	} else if (size && *text == 'g') {
		rc = generate(text + 1, size - 1, &t, &err);
	} else if (size && *text == '{') {
		rc = trace_parse_jsonl("fuzz", text, size, &t, &err);
	} else {
		rc = trace_parse_csv("fuzz", text, size, &t, &err);
	}
	if (rc) {
		must(!t, "a trace and an error");
		must(!err.code || err.code == ERR_ARG ||
			     (err.code == ERR_FORMAT && strncmp(err.text, "fuzz", 4) == 0),
		     "an error without its place");
		return 0;
	}
	check_trace(t);
	write_and_read(t);
	trace_free(t);
	return 0;
}
