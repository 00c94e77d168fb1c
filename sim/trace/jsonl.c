/* Traces as JSON lines: an object a line, with the names of the CSV format. See trace_row.h for the fields.
 *
 * Lines of a trace are alike. So a line is first read by a small scanner that knows the names met so far and takes plain
 * objects of plain values; whatever it does not take (a new name, an escape, a mistake) goes to the parser of JSON, which
 * is the judge. A million lines take a second instead of eight. */
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

struct known_key { /* a name met before */
	char *key;
	size_t len;
	enum trace_field field;
	size_t column;
	uint32_t line; /* it was last seen on */
};

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
	struct known_key known[MAX_MEMBERS];
	size_t n_known;
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

/* So that the scanner knows the name next time. One that does not fit is parsed each time. */
static int remember(struct lines *l, const char *key, enum trace_field f, size_t column)
{
	size_t len = strlen(key);
	struct known_key *k = &l->known[l->n_known];

	for (size_t i = 0; i < l->n_known; i++)
		if (l->known[i].len == len && memcmp(l->known[i].key, key, len) == 0)
			return 0;
	if (l->n_known == MAX_MEMBERS)
		return 0;
	*k = (struct known_key){ .key = mem_strdup(key), .len = len, .field = f, .column = column };
	if (!k->key)
		return nomem(l);
	l->n_known++;
	return 0;
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
		if ((rc = remember(l, key, f, column)))
			return rc;
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

/* ---- the scanner; `s` ends in a NUL or a line end, so nothing runs past it ---- */

static const char *skip_blank(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

/* Behind a string of printable ASCII without escapes whose opening quote is at s; NULL: it is another. */
static const char *plain_string(const char *s)
{
	for (s++; *s != '"'; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f || *s == '\\')
			return NULL;
	return s + 1;
}

/* Behind a number as JSON writes it. *out_same: its text is what text_shortest() would make of it. */
static const char *plain_number(const char *s, bool *out_same)
{
	const char *from = s, *digits, *point;

	s += *s == '-';
	digits = s;
	while (*s >= '0' && *s <= '9')
		s++;
	if (s == digits || (*digits == '0' && s > digits + 1))
		return NULL;
	*out_same = s - digits <= 15 && (*digits != '0' || s == from + 1);
	if (*s == '.') {
		point = s++;
		while (*s >= '0' && *s <= '9')
			s++;
		if (s == point + 1)
			return NULL;
		/* 0.00012 may be written with an exponent, 0.10 loses its zero. */
		*out_same = s - digits <= 16 && s[-1] != '0' && *digits != '0';
	}
	if (*s == 'e' || *s == 'E')
		return NULL;
	return s - from > 60 ? NULL : s;
}

static bool put_number(struct lines *l, const char *from, const char *end, bool same)
{
	char text[64], shortest[32];
	double v;

	if (same) {
		strbuf_add(&l->text, from, (size_t)(end - from));
		return true;
	}
	memcpy(text, from, (size_t)(end - from));
	text[end - from] = '\0';
	if (!text_number(text, &v))
		return false;
	strbuf_puts(&l->text, text_shortest(v, shortest));
	return true;
}

/* "[64, 128]" at s. */
static const char *scan_list(struct lines *l, const char *s)
{
	const char *end;
	bool same = false;

	do {
		s = skip_blank(s + 1);
		if (!(end = plain_number(s, &same)) || !put_number(l, s, end, same))
			return NULL;
		s = skip_blank(end);
		strbuf_puts(&l->text, *s == ',' ? "|" : "");
	} while (*s == ',');
	return *s == ']' ? s + 1 : NULL;
}

/* The value at s into the text of the line; where it ends, or NULL. */
static const char *scan_value(struct lines *l, enum trace_field f, const char *s)
{
	static const struct {
		const char *word;
		size_t len;
		const char *text;
	} words[] = { { "true", 4, "true" }, { "false", 5, "false" }, { "null", 4, "" } };
	const char *end;
	bool same = false;

	if (*s == '"') {
		if (!(end = plain_string(s)))
			return NULL;
		strbuf_add(&l->text, s + 1, (size_t)(end - s) - 2);
		return end;
	}
	if (*s == '[' && f == TRACE_BATCHES)
		return scan_list(l, s);
	for (size_t i = 0; i < 3; i++)
		if (strncmp(s, words[i].word, words[i].len) == 0) {
			strbuf_puts(&l->text, words[i].text);
			return s + words[i].len;
		}
	if (!(end = plain_number(s, &same)))
		return NULL;
	/* These two are read as doubles anyhow, from whatever text. */
	same |= f == TRACE_SLO || f == TRACE_CONFIDENCE;
	return put_number(l, s, end, same) ? end : NULL;
}

/* The name that is at s, looked for from where lines like the last would have it; NULL: not met before, or twice here. */
static struct known_key *scan_key(struct lines *l, const char *s, size_t len, size_t hint)
{
	for (size_t i = 0; i < l->n_known; i++) {
		struct known_key *k = &l->known[(hint + i) % l->n_known];

		if (k->len == len && memcmp(k->key, s, len) == 0)
			return k->line == l->line ? NULL : k;
	}
	return NULL;
}

/* The members of the line; false: let the parser look at it. */
static bool scan_line(struct lines *l, const char *s, const char *end, size_t *out_n)
{
	size_t n = 0, hint = 0;

	strbuf_reset(&l->text);
	s = skip_blank(s);
	if (*s++ != '{')
		return false;
	do {
		const char *key = skip_blank(s);
		struct known_key *k;

		if (*key != '"' || !(s = plain_string(key)) || n == MAX_MEMBERS)
			return false;
		k = scan_key(l, key + 1, (size_t)(s - key) - 2, hint);
		s = skip_blank(s);
		if (!k || *s++ != ':')
			return false;
		k->line = l->line;
		hint = (size_t)(k - l->known) + 1;
		l->member[n].field = k->field;
		l->member[n].column = k->column;
		l->member[n].key = k->key;
		l->member[n++].from = l->text.len;
		if (!(s = scan_value(l, k->field, skip_blank(s))))
			return false;
		strbuf_add(&l->text, "", 1);
		s = skip_blank(s);
	} while (*s == ',' && s++);
	if (*s++ != '}')
		return false;
	s = skip_blank(s);
	s += *s == '\r';
	*out_n = n;
	return s == end && !l->text.failed;
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
	size_t blank = 0, n = 0;
	int rc;

	while (blank < len && (text[blank] == ' ' || text[blank] == '\t' || text[blank] == '\r'))
		blank++;
	if (blank == len)
		return 0;
	if (len > MAX_LINE)
		return fail(l, NULL, "longer than 65536 bytes");
	if (scan_line(l, text, text + len, &n))
		return read_members(l, n);
	if (json_parse("line", text, len, &object, &found))
		return parse_failed(l, &found);
	rc = read_object(l, object);
	json_free(object);
	return rc;
}

/* text[len] is a NUL. */
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
	for (size_t i = 0; i < l.n_known; i++)
		free(l.known[i].key);
	strbuf_release(&l.text);
	if (rc == 0)
		rc = trace_build_done(l.build, NULL, out, l.err);
	trace_build_free(l.build);
	return rc;
}

int trace_parse_jsonl(const char *name, const char *text, size_t len, struct trace **out, struct err *err)
{
	char *copy;
	int rc;

	if (len > CSV_MAX_BYTES)
		return err_fail(err, ERR_FORMAT, "%s is longer than the limit of %zu bytes",
				text_tail(name, NAME_SHOWN), CSV_MAX_BYTES);
	copy = mem_alloc(len + 1);
	if (!copy)
		return err_fail(err, ERR_NOMEM, "%s: out of memory for the trace",
				text_tail(name, NAME_SHOWN));
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	rc = read_text(name, copy, len, out, err);
	free(copy);
	return rc;
}

int trace_read_jsonl(const char *path, struct trace **out, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	int rc = io_read_file(path, CSV_MAX_BYTES, &text, &len, err);

	if (rc)
		return rc;
	rc = read_text(strcmp(path, "-") == 0 ? "standard input" : path, text, len, out, err);
	free(text);
	return rc;
}
