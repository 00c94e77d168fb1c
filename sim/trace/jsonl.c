/* Reads traces of JSON lines: one object a line, with the names of the CSV format. See row.h for the
 * fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/io.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "common/text/text.h"
#include "sim/trace/row.h"

#define NAME_SHOWN 200
#define MAX_LINE 65536
#define MAX_MEMBERS 512

struct lines {
	const char *name;
	uint32_t line;
	struct trace_build *build;
	struct trace_row row;
	struct strbuf text; /* values of this line, one after the other */
	struct {
		enum trace_field field;
		size_t column, from;
		const char *key;
	} member[MAX_MEMBERS];
	struct err *err;
};

static int fail(const struct lines *l, const char *key, const char *reason)
{
	char shown[64];

	if (!key)
		return err_fail(l->err, ERR_FORMAT, "%s:%u: %s", text_tail(l->name, NAME_SHOWN), l->line,
				reason);
	return err_fail(l->err, ERR_FORMAT, "%s:%u: field %s: %s", text_tail(l->name, NAME_SHOWN), l->line,
			text_printable(key, shown, sizeof shown), reason);
}

static int nomem(const struct lines *l)
{
	return err_fail(l->err, ERR_NOMEM, "%s:%u: out of memory for the trace",
			text_tail(l->name, NAME_SHOWN), l->line);
}

/* Numbers are read from their shortest text, so that 0.1 s is 0.1 s and not the double next to it. */
static bool put_value(struct strbuf *out, enum trace_field f, const struct json *v)
{
	char buf[32];

	switch (json_type(v)) {
	case JSON_NULL: return true;
	case JSON_BOOL: strbuf_puts(out, json_bool(v, false) ? "true" : "false"); return true;
	case JSON_NUMBER: strbuf_puts(out, text_shortest(json_number(v, 0.0), buf)); return true;
	case JSON_STRING: strbuf_puts(out, json_string(v, "")); return true;
	case JSON_ARRAY:
		if (f != TRACE_BATCHES)
			return false;
		for (const struct json *e = json_first(v); e; e = json_next(e)) {
			if (json_type(e) != JSON_NUMBER)
				return false;
			strbuf_puts(out, e == json_first(v) ? "" : "|");
			strbuf_puts(out, text_shortest(json_number(e, 0.0), buf));
		}
		return true;
	default: return false;
	}
}

/* Names and values first: the buffer of texts moves while it grows. */
static int collect_members(struct lines *l, const struct json *object, size_t *out_n)
{
	size_t n = 0;
	int rc;

	strbuf_reset(&l->text);
	for (const struct json *m = json_first(object); m; m = json_next(m), n++) {
		const char *key = json_key(m);
		enum trace_field f = trace_field_of(key);
		size_t known = trace_build_columns(l->build), column = 0;

		if (n == MAX_MEMBERS)
			return fail(l, NULL, "more than 512 members");
		if (f == TRACE_FIELDS || f == TRACE_EPOCHS) {
			if ((rc = trace_build_column(l->build, key, &column, l->err)))
				return rc;
			if (f == TRACE_FIELDS && trace_build_columns(l->build) > known &&
			    (rc = trace_row_doubt(l->build, key, l->err)))
				return rc;
		}
		l->member[n].field = f;
		l->member[n].column = column;
		l->member[n].from = l->text.len;
		l->member[n].key = key;
		if (!put_value(&l->text, f, m))
			return fail(l, key,
				    f == TRACE_BATCHES ? "need an array of numbers"
						       : "need text, a number, true, false or null");
		strbuf_add(&l->text, "", 1);
	}
	*out_n = n;
	return l->text.failed ? nomem(l) : 0;
}

static int no_arrival(struct lines *l, size_t n)
{
	const char *have[MAX_MEMBERS + 1];

	for (size_t i = 0; i < n; i++)
		have[i] = l->member[i].key;
	have[n] = NULL;
	return trace_row_no_arrival(l->name, l->line, have, l->err);
}

static int read_members(struct lines *l, size_t n)
{
	int rc;

	trace_row_begin(&l->row, l->line);
	for (size_t i = 0; i < n; i++) {
		rc = trace_row_field(&l->row, l->member[i].field, l->member[i].column,
				     l->text.text + l->member[i].from, l->err);
		if (rc)
			return err_prefix(l->err, "%s:%u: field %s", text_tail(l->name, NAME_SHOWN), l->line,
					  trace_field_name[l->member[i].field]);
	}
	if (!l->row.has_arrival)
		return no_arrival(l, n);
	return trace_row_add(&l->row, l->name, l->err);
}

static int read_object(struct lines *l, const struct json *object)
{
	size_t n = 0;
	int rc;

	if (json_type(object) != JSON_OBJECT)
		return fail(l, NULL, "need an object: {\"arrival_s\":0,...}");
	rc = collect_members(l, object, &n);
	return rc ? rc : read_members(l, n);
}

/* The parser counts lines from 1 within the text it sees, which is one line. */
static int parse_failed(struct lines *l, struct err *found)
{
	const char *reason = found->text;

	if (found->code != ERR_FORMAT)
		return nomem(l);
	if (strncmp(reason, "line:1:", 7) == 0)
		reason += 7;
	return err_fail(l->err, ERR_FORMAT, "%s:%u:%s", text_tail(l->name, NAME_SHOWN), l->line, reason);
}

static int read_line(struct lines *l, const char *text, size_t len)
{
	struct json *object = NULL;
	struct err found = { 0 };
	size_t blank = 0;
	int rc;

	while (blank < len && (text[blank] == ' ' || text[blank] == '\t' || text[blank] == '\r'))
		blank++;
	if (blank == len)
		return 0;
	if (len > MAX_LINE)
		return fail(l, NULL, "longer than 65536 bytes");
	if (json_parse("line", text, len, &object, &found))
		return parse_failed(l, &found);
	rc = read_object(l, object);
	json_free(object);
	return rc;
}

static int read_text(const char *name, const char *text, size_t len, struct trace **out, struct err *err)
{
	struct err local = { 0 };
	struct lines l = { .name = name, .err = err ? err : &local };
	const char *end = text + len;
	int rc = trace_build_new(name, NULL, 0, &l.build, l.err);

	if (rc)
		return rc;
	trace_row_init(&l.row, l.build);
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;
	while (text < end && !rc) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		if (!stop)
			stop = end;
		l.line++;
		rc = read_line(&l, text, (size_t)(stop - text));
		text = stop + 1;
	}
	strbuf_release(&l.text);
	if (rc == 0)
		rc = trace_build_done(l.build, NULL, out, l.err);
	trace_build_free(l.build);
	return rc;
}

int trace_parse_jsonl(const char *name, const char *text, size_t len, struct trace **out, struct err *err)
{
	if (len > CSV_MAX_BYTES)
		return err_fail(err, ERR_FORMAT, "%s is longer than the limit of %zu bytes",
				text_tail(name, NAME_SHOWN), CSV_MAX_BYTES);
	return read_text(name, text, len, out, err);
}

int trace_read_jsonl(const char *path, struct trace **out, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	int rc = io_read_file(path, CSV_MAX_BYTES, &text, &len, err);

	if (rc)
		return rc;
	rc = trace_parse_jsonl(strcmp(path, "-") == 0 ? "standard input" : path, text, len, out, err);
	free(text);
	return rc;
}
