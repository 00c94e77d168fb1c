/* The scanner below reads the whole text first and is the only judge of what is valid; cJSON then
 * builds the tree of a text that is known to be good, so its own leniency (control characters in strings,
 * odd numbers, trailing bytes, duplicate keys) never shows. */
#define _GNU_SOURCE
#include "common/json.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text.h"

#define JSON_MAX_NUMBER 63 /* cJSON copies a number into 64 bytes and would cut the rest off */
#define JSON_NAME_SHOWN 200

/* ---- UTF-8 ---- */

/* The length of the well-formed character at s (Unicode 15, table 3-7), or 0. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	size_t len;

	if (n == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4) /* c0, c1: overlong; f5 and up: beyond U+10FFFF */
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90))
		return 0; /* overlong */
	if ((s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0; /* surrogates; beyond U+10FFFF */
	return len;
}

static size_t utf8_encode(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* ---- scanner ---- */

/* A key of an object that is still open. */
struct scan_key {
	size_t start, len; /* decoded bytes, in scan.decoded */
	size_t at; /* where it stands in the text */
};

struct scan {
	const char *name;
	const unsigned char *text;
	size_t len, at;
	int depth;
	struct strbuf decoded; /* keys of all open objects, innermost last */
	struct scan_key *key;
	size_t n_keys, cap_keys;
	struct err *err;
};

static int scan_value(struct scan *s);

__attribute__((format(printf, 3, 4))) static int scan_fail(struct scan *s, size_t at, const char *fmt, ...)
{
	size_t line = 1, column = 1;
	char reason[256];
	va_list ap;

	for (size_t i = 0; i < at && i < s->len; i++) {
		if (s->text[i] == '\n') {
			line++;
			column = 1;
		} else if ((s->text[i] & 0xc0) != 0x80) { /* columns count characters, as editors do */
			column++;
		}
	}
	va_start(ap, fmt);
	vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	return err_fail(s->err, ERR_FORMAT, "%s:%zu:%zu: %s", text_tail(s->name, JSON_NAME_SHOWN), line,
			column, reason);
}

static int scan_nomem(struct scan *s)
{
	return err_fail(s->err, ERR_NOMEM, "%s: no memory to read it", text_tail(s->name, JSON_NAME_SHOWN));
}

/* The next byte, or -1 at the end. */
static int scan_peek(const struct scan *s)
{
	return s->at < s->len ? s->text[s->at] : -1;
}

static void scan_blank(struct scan *s)
{
	while (s->at < s->len && (s->text[s->at] == ' ' || s->text[s->at] == '\t' || s->text[s->at] == '\n' ||
				  s->text[s->at] == '\r'))
		s->at++;
}

/* "expected X, found Y" at the current place. */
static int scan_unexpected(struct scan *s, const char *expected)
{
	int c = scan_peek(s);

	if (c < 0)
		return scan_fail(s, s->at, "the text ends where %s was expected", expected);
	if (c == 0)
		return scan_fail(s, s->at, "a NUL byte where %s was expected", expected);
	if (c < 0x20 || c >= 0x7f)
		return scan_fail(s, s->at, "byte 0x%02x where %s was expected", (unsigned)c, expected);
	return scan_fail(s, s->at, "'%c' where %s was expected", c, expected);
}

static int hex_value(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The four digits after "\u"; s->at stands on the first. */
static int scan_hex4(struct scan *s, uint32_t *out)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++, s->at++) {
		int digit = hex_value(scan_peek(s));

		if (digit < 0)
			return scan_unexpected(s, "a hexadecimal digit");
		v = v << 4 | (uint32_t)digit;
	}
	*out = v;
	return 0;
}

/* An escape; s->at stands on the backslash. Its UTF-8 goes to out[4]. */
static int scan_escape(struct scan *s, char *out, size_t *out_len)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	size_t start = s->at++;
	int c = scan_peek(s), rc;
	const char *simple = c > 0 ? strchr(from, c) : NULL;
	uint32_t high, low;

	if (simple) {
		s->at++;
		out[0] = to[simple - from];
		*out_len = 1;
		return 0;
	}
	if (c != 'u')
		return scan_unexpected(s, "one of \"\\/bfnrtu after a backslash");
	s->at++;
	if ((rc = scan_hex4(s, &high)))
		return rc;
	if (high == 0)
		return scan_fail(s, start, "\\u0000 is not allowed in a string");
	if (high >= 0xdc00 && high <= 0xdfff)
		return scan_fail(s, start, "\\u%04x is the second half of a surrogate pair without its first",
				 high);
	if (high >= 0xd800 && high <= 0xdbff) {
		low = 0;
		if (s->len - s->at >= 2 && s->text[s->at] == '\\' && s->text[s->at + 1] == 'u') {
			s->at += 2;
			if ((rc = scan_hex4(s, &low)))
				return rc;
		}
		if (low < 0xdc00 || low > 0xdfff)
			return scan_fail(s, start, "\\u%04x is half of a surrogate pair without its second",
					 high);
		high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	}
	*out_len = utf8_encode(high, out);
	return 0;
}

/* A string; s->at stands on its quote. Decoded bytes are appended to `decoded` unless NULL. */
static int scan_string(struct scan *s, struct strbuf *decoded)
{
	size_t start = s->at++, plain = s->at;

	for (;;) {
		int c = scan_peek(s), rc;
		char bytes[4];
		size_t len = 0;

		if (c == '"' || c == '\\') {
			if (decoded)
				strbuf_add(decoded, s->text + plain, s->at - plain);
			if (c == '"') {
				s->at++;
				return 0;
			}
			if ((rc = scan_escape(s, bytes, &len)))
				return rc;
			if (decoded)
				strbuf_add(decoded, bytes, len);
			plain = s->at;
			continue;
		}
		if (c < 0)
			return scan_fail(s, start, "the string that starts here is not closed");
		if (c == 0)
			return scan_fail(s, s->at, "a NUL byte inside a string");
		if (c < 0x20)
			return scan_fail(s, s->at,
					 "control character 0x%02x inside a string: write it as \\u%04x",
					 (unsigned)c, (unsigned)c);
		len = utf8_length(s->text + s->at, s->len - s->at);
		if (len == 0)
			return scan_fail(s, s->at, "byte 0x%02x is not valid UTF-8 here", (unsigned)c);
		s->at += len;
	}
}

static int scan_digits(struct scan *s)
{
	if (scan_peek(s) < '0' || scan_peek(s) > '9')
		return scan_unexpected(s, "a digit");
	while (scan_peek(s) >= '0' && scan_peek(s) <= '9')
		s->at++;
	return 0;
}

static int scan_number(struct scan *s)
{
	char copy[JSON_MAX_NUMBER + 1];
	size_t start = s->at, len;
	int rc;

	if (scan_peek(s) == '-')
		s->at++;
	if (scan_peek(s) == '0') {
		s->at++;
		if (scan_peek(s) >= '0' && scan_peek(s) <= '9')
			return scan_fail(s, start, "a number must not start with a needless 0");
	} else if ((rc = scan_digits(s))) {
		return rc;
	}
	if (scan_peek(s) == '.') {
		s->at++;
		if ((rc = scan_digits(s)))
			return rc;
	}
	if (scan_peek(s) == 'e' || scan_peek(s) == 'E') {
		s->at++;
		if (scan_peek(s) == '+' || scan_peek(s) == '-')
			s->at++;
		if ((rc = scan_digits(s)))
			return rc;
	}
	len = s->at - start;
	if (len > JSON_MAX_NUMBER)
		return scan_fail(s, start, "a number of %zu characters: at most %d are allowed", len,
				 JSON_MAX_NUMBER);
	memcpy(copy, s->text + start, len);
	copy[len] = '\0';
	if (!isfinite(strtod(copy, NULL)))
		return scan_fail(s, start, "%s is too large for a double", copy);
	return 0;
}

static int scan_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if (s->len - s->at < len || memcmp(s->text + s->at, word, len) != 0)
		return scan_unexpected(s, "a value");
	s->at += len;
	return 0;
}

static int scan_array(struct scan *s)
{
	int rc;

	s->at++;
	scan_blank(s);
	if (scan_peek(s) == ']') {
		s->at++;
		return 0;
	}
	for (;;) {
		if ((rc = scan_value(s)))
			return rc;
		scan_blank(s);
		if (scan_peek(s) == ']') {
			s->at++;
			return 0;
		}
		if (scan_peek(s) != ',')
			return scan_unexpected(s, "',' or ']'");
		s->at++;
	}
}

/* Equal keys become neighbours, the earlier one first. */
static int compare_keys(const void *a_, const void *b_, void *decoded)
{
	const struct scan_key *a = a_, *b = b_;
	const char *text = decoded;
	int order;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	order = memcmp(text + a->start, text + b->start, a->len);
	if (order)
		return order;
	return (a->at > b->at) - (a->at < b->at);
}

/* Looks for equal keys among those from `first` on, and forgets them. Sorting takes n log n even for
 * keys somebody chose with malice, which a hash table would have to be defended against. */
static int scan_duplicates(struct scan *s, size_t first, size_t first_decoded)
{
	struct scan_key *key = s->key ? s->key + first : NULL;
	size_t n = s->n_keys - first;
	const struct scan_key *twice = NULL;
	char shown[64];

	if (n > 1)
		qsort_r(key, n, sizeof *key, compare_keys, s->decoded.text);
	for (size_t i = 1; i < n; i++) {
		const char *last = s->decoded.text + key[i - 1].start, *now = s->decoded.text + key[i].start;

		if (key[i].len == key[i - 1].len && memcmp(now, last, key[i].len) == 0 &&
		    (!twice || key[i].at < twice->at))
			twice = &key[i];
	}
	if (twice)
		return scan_fail(s, twice->at, "key '%s' appears twice",
				 text_printable(s->decoded.text + twice->start, shown, sizeof shown));
	s->n_keys = first;
	s->decoded.len = first_decoded;
	return 0;
}

static int scan_key(struct scan *s)
{
	struct scan_key key = { s->decoded.len, 0, s->at };
	void *p = s->key;
	int rc = scan_string(s, &s->decoded);

	if (rc)
		return rc;
	key.len = s->decoded.len - key.start;
	strbuf_add(&s->decoded, "", 1); /* each ends in a NUL, for messages */
	if (s->decoded.failed || mem_grow(&p, &s->cap_keys, s->n_keys + 1, sizeof *s->key))
		return scan_nomem(s);
	s->key = p;
	s->key[s->n_keys++] = key;
	return 0;
}

static int scan_object(struct scan *s)
{
	size_t first = s->n_keys, first_decoded = s->decoded.len;
	int rc;

	s->at++;
	scan_blank(s);
	if (scan_peek(s) == '}') {
		s->at++;
		return 0;
	}
	for (;;) {
		scan_blank(s);
		if (scan_peek(s) != '"')
			return scan_unexpected(s, "a key in quotes");
		if ((rc = scan_key(s)))
			return rc;
		scan_blank(s);
		if (scan_peek(s) != ':')
			return scan_unexpected(s, "':'");
		s->at++;
		if ((rc = scan_value(s)))
			return rc;
		scan_blank(s);
		if (scan_peek(s) == '}') {
			s->at++;
			return scan_duplicates(s, first, first_decoded);
		}
		if (scan_peek(s) != ',')
			return scan_unexpected(s, "',' or '}'");
		s->at++;
	}
}

static int scan_value(struct scan *s)
{
	int c, rc;

	scan_blank(s);
	c = scan_peek(s);
	switch (c) {
	case '{':
	case '[':
		if (s->depth == JSON_MAX_DEPTH)
			return scan_fail(s, s->at, "nested deeper than %d levels", JSON_MAX_DEPTH);
		s->depth++;
		rc = c == '{' ? scan_object(s) : scan_array(s);
		s->depth--;
		return rc;
	case '"': return scan_string(s, NULL);
	case 't': return scan_word(s, "true");
	case 'f': return scan_word(s, "false");
	case 'n': return scan_word(s, "null");
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return scan_number(s);
		return scan_unexpected(s, "a value");
	}
}

static int scan_text(struct scan *s)
{
	int rc;

	if (s->len >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
		return scan_fail(s, 0, "starts with a byte-order mark: save it as UTF-8 without one");
	if ((rc = scan_value(s)))
		return rc;
	scan_blank(s);
	if (s->at < s->len)
		return scan_unexpected(s, "the end of the text");
	return 0;
}

/* ---- reading ---- */

/* cJSON's hooks and its last-error variable are global; the lock makes parsing safe from any thread. */
static pthread_mutex_t cjson_lock = PTHREAD_MUTEX_INITIALIZER;

static cJSON *build_tree(const char *text, size_t len)
{
	static bool hooked;
	cJSON *tree;

	pthread_mutex_lock(&cjson_lock);
	if (!hooked) {
		cJSON_InitHooks(&(cJSON_Hooks){ mem_alloc, free });
		hooked = true;
	}
	tree = cJSON_ParseWithLengthOpts(text, len, NULL, 0);
	pthread_mutex_unlock(&cjson_lock);
	return tree;
}

int json_parse(const char *name, const char *text, size_t len, struct json **out, struct err *err)
{
	struct scan s = { .name = name, .text = (const unsigned char *)text, .len = len, .err = err };
	int rc = scan_text(&s);
	cJSON *tree;

	strbuf_release(&s.decoded);
	free(s.key);
	if (rc)
		return rc;
	tree = build_tree(text, len);
	if (!tree) /* the text is valid, so this is the only reason left */
		return scan_nomem(&s);
	*out = (struct json *)tree;
	return 0;
}

int json_read_file(const char *path, size_t max, struct json **out, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	int rc = io_read_file(path, max, &text, &len, err);

	if (rc)
		return rc;
	rc = json_parse(strcmp(path, "-") == 0 ? "standard input" : path, text, len, out, err);
	free(text);
	return rc;
}

void json_free(struct json *root)
{
	cJSON_Delete((cJSON *)root);
}

static const cJSON *inside(const struct json *v)
{
	return (const cJSON *)v;
}

enum json_type json_type(const struct json *v)
{
	if (!v)
		return JSON_ABSENT;
	switch (inside(v)->type & 0xff) { /* the bits above are cJSON's own flags */
	case cJSON_False:
	case cJSON_True: return JSON_BOOL;
	case cJSON_NULL: return JSON_NULL;
	case cJSON_Number: return JSON_NUMBER;
	case cJSON_String: return JSON_STRING;
	case cJSON_Array: return JSON_ARRAY;
	case cJSON_Object: return JSON_OBJECT;
	default: return JSON_ABSENT;
	}
}

const struct json *json_first(const struct json *v)
{
	enum json_type type = json_type(v);

	if (type != JSON_ARRAY && type != JSON_OBJECT)
		return NULL;
	return (const struct json *)inside(v)->child;
}

const struct json *json_next(const struct json *v)
{
	return v ? (const struct json *)inside(v)->next : NULL;
}

const char *json_key(const struct json *member)
{
	return member ? inside(member)->string : NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
	const struct json *v = json_type(object) == JSON_OBJECT ? json_first(object) : NULL;

	while (v && strcmp(json_key(v), key) != 0)
		v = json_next(v);
	return v;
}

size_t json_size(const struct json *v)
{
	size_t n = 0;

	for (v = json_first(v); v; v = json_next(v))
		n++;
	return n;
}

const struct json *json_at(const struct json *v, size_t i)
{
	for (v = json_first(v); v && i > 0; i--)
		v = json_next(v);
	return v;
}

bool json_bool(const struct json *v, bool otherwise)
{
	return json_type(v) == JSON_BOOL ? (inside(v)->type & 0xff) == cJSON_True : otherwise;
}

double json_number(const struct json *v, double otherwise)
{
	return json_type(v) == JSON_NUMBER ? inside(v)->valuedouble : otherwise;
}

const char *json_string(const struct json *v, const char *otherwise)
{
	return json_type(v) == JSON_STRING ? inside(v)->valuestring : otherwise;
}

int json_known_keys(const struct json *object, const char *where, const char *const *known, struct err *err)
{
	char shown[64];

	if (json_type(object) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: must be an object { ... }", where);
	for (const struct json *v = json_first(object); v; v = json_next(v)) {
		const char *const *k = known;
		const char *near;

		while (*k && strcmp(*k, json_key(v)) != 0)
			k++;
		if (*k)
			continue;
		text_printable(json_key(v), shown, sizeof shown);
		near = text_nearest(json_key(v), known);
		if (near)
			return err_fail(err, ERR_FORMAT, "%s: unknown key '%s'; did you mean '%s'?", where,
					shown, near);
		return err_fail(err, ERR_FORMAT, "%s: unknown key '%s'", where, shown);
	}
	return 0;
}

/* ---- writing ---- */

void json_begin(struct json_writer *w, struct strbuf *out, bool pretty)
{
	*w = (struct json_writer){ .out = out, .pretty = pretty };
}

static void new_line(struct json_writer *w)
{
	strbuf_add(w->out, "\n", 1);
	for (int i = 0; i < w->depth; i++)
		strbuf_add(w->out, "  ", 2);
}

/* What goes before a key, an element or the value of a key. */
static void begin_item(struct json_writer *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (w->need_comma)
		strbuf_add(w->out, ",", 1);
	if (w->pretty && w->depth > 0)
		new_line(w);
}

void json_open(struct json_writer *w, char bracket)
{
	assert(bracket == '{' || bracket == '[');
	begin_item(w);
	strbuf_add(w->out, &bracket, 1);
	w->depth++;
	w->need_comma = false;
}

void json_close(struct json_writer *w, char bracket)
{
	assert(bracket == '}' || bracket == ']');
	assert(w->depth > 0 && !w->after_key);
	w->depth--;
	if (w->pretty && w->need_comma) /* an empty one stays on its line */
		new_line(w);
	strbuf_add(w->out, &bracket, 1);
	w->need_comma = true;
}

static void put_quoted(struct strbuf *out, const char *s_)
{
	const unsigned char *s = (const unsigned char *)s_;
	size_t len = strlen(s_), plain = 0;

	strbuf_add(out, "\"", 1);
	for (size_t i = 0; i < len;) {
		size_t n = utf8_length(s + i, len - i);

		if (n && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\') {
			i += n;
			continue;
		}
		strbuf_add(out, s + plain, i - plain);
		if (n == 0)
			strbuf_add(out, "\xef\xbf\xbd", 3);
		else if (s[i] == '"' || s[i] == '\\')
			strbuf_add(out, (char[]){ '\\', (char)s[i] }, 2);
		else if (s[i] == '\n')
			strbuf_add(out, "\\n", 2);
		else if (s[i] == '\t')
			strbuf_add(out, "\\t", 2);
		else if (s[i] == '\r')
			strbuf_add(out, "\\r", 2);
		else
			strbuf_printf(out, "\\u%04x", s[i]);
		plain = ++i;
	}
	strbuf_add(out, s + plain, len - plain);
	strbuf_add(out, "\"", 1);
}

void json_put_key(struct json_writer *w, const char *key)
{
	assert(!w->after_key);
	begin_item(w);
	put_quoted(w->out, key);
	strbuf_puts(w->out, w->pretty ? ": " : ":");
	w->after_key = true;
}

/* A value that is ready as text. */
static void put_text(struct json_writer *w, const char *text)
{
	begin_item(w);
	strbuf_puts(w->out, text);
	w->need_comma = true;
}

void json_put_string(struct json_writer *w, const char *s)
{
	if (!s) {
		put_text(w, "null");
		return;
	}
	begin_item(w);
	put_quoted(w->out, s);
	w->need_comma = true;
}

void json_put_number(struct json_writer *w, double v)
{
	char buf[32];

	put_text(w, isfinite(v) ? text_shortest(v, buf) : "null");
}

void json_put_int(struct json_writer *w, long long v)
{
	begin_item(w);
	strbuf_printf(w->out, "%lld", v);
	w->need_comma = true;
}

void json_put_bool(struct json_writer *w, bool v)
{
	put_text(w, v ? "true" : "false");
}

void json_put_null(struct json_writer *w)
{
	put_text(w, "null");
}

void json_kv_string(struct json_writer *w, const char *key, const char *s)
{
	json_put_key(w, key);
	json_put_string(w, s);
}

void json_kv_number(struct json_writer *w, const char *key, double v)
{
	json_put_key(w, key);
	json_put_number(w, v);
}

void json_kv_int(struct json_writer *w, const char *key, long long v)
{
	json_put_key(w, key);
	json_put_int(w, v);
}

void json_kv_bool(struct json_writer *w, const char *key, bool v)
{
	json_put_key(w, key);
	json_put_bool(w, v);
}
