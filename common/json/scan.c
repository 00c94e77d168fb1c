/* Reads the whole text and is the only judge of what is valid. Allocates only for keys of open objects
 * beyond the first few, and for keys with escapes. */
#define _GNU_SOURCE
#include "common/json/scan.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/json/utf8.h"
#include "common/mem.h"
#include "common/text/text.h"

#define JSON_NAME_SHOWN 200
#define JSON_KEYS_AT_HAND 32 /* keys of open objects that need no allocation */
#define JSON_FEW_KEYS 16 /* up to here comparing all pairs is quicker than sorting */

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

/* A key of an object that is still open. */
struct scan_key {
	size_t start, len; /* its bytes: in the text, or, if it has escapes, in scan.decoded */
	size_t at; /* where it stands in the text */
	bool escaped;
};

struct scan {
	const char *name;
	const unsigned char *text;
	size_t len, at;
	int depth;
	struct strbuf decoded; /* keys with escapes of all open objects, innermost last */
	struct scan_key *key; /* of all open objects, innermost last; `at_hand` or on the heap */
	struct scan_key *at_hand;
	size_t n_keys, cap_keys;
	struct json_extent extent;
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
	return json_nomem(s->name, s->err);
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

/* What may follow in a string without a closer look: ASCII but quote, backslash and control characters. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* A string; s->at stands on its quote. Where it has escapes, *out_escaped is set and, unless NULL, `decoded`
 * gets all its bytes. */
static int scan_string(struct scan *s, struct strbuf *decoded, bool *out_escaped)
{
	size_t start = s->at++, piece = s->at;

	*out_escaped = false;
	for (;;) {
		int c, rc;
		char bytes[4];
		size_t len = 0;

		while (s->at < s->len && is_plain(s->text[s->at]))
			s->at++;
		c = scan_peek(s);
		if (c == '"') {
			if (decoded && *out_escaped)
				strbuf_add(decoded, s->text + piece, s->at - piece);
			s->at++;
			s->extent.n_strings++;
			s->extent.string_bytes += s->at - start;
			return 0;
		}
		if (c == '\\') {
			*out_escaped = true;
			if (decoded)
				strbuf_add(decoded, s->text + piece, s->at - piece);
			if ((rc = scan_escape(s, bytes, &len)))
				return rc;
			if (decoded)
				strbuf_add(decoded, bytes, len);
			piece = s->at;
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
	size_t start = s->at, exponent = 0, len;
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
		exponent = s->at;
		if ((rc = scan_digits(s)))
			return rc;
		exponent = s->at - exponent;
	}
	len = s->at - start;
	if (len > JSON_MAX_NUMBER)
		return scan_fail(s, start, "a number of %zu characters: at most %d are allowed", len,
				 JSON_MAX_NUMBER);
	if (exponent < 3) /* at most 63 digits and e99: finite */
		return 0;
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

static const char *key_bytes(const struct scan *s, const struct scan_key *key)
{
	return (key->escaped ? s->decoded.text : (const char *)s->text) + key->start;
}

static bool keys_equal(const struct scan *s, const struct scan_key *a, const struct scan_key *b)
{
	return a->len == b->len && memcmp(key_bytes(s, a), key_bytes(s, b), a->len) == 0;
}

/* Equal keys become neighbours, the earlier one first. */
static int compare_keys(const void *a_, const void *b_, void *scan)
{
	const struct scan_key *a = a_, *b = b_;
	int order;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	order = memcmp(key_bytes(scan, a), key_bytes(scan, b), a->len);
	if (order)
		return order;
	return (a->at > b->at) - (a->at < b->at);
}

/* The first of n keys that was there before, or NULL. Sorting takes n log n even for keys somebody chose
 * with malice, which a hash table would have to be defended against. */
static const struct scan_key *find_duplicate(struct scan *s, struct scan_key *key, size_t n)
{
	const struct scan_key *twice = NULL;

	if (n <= JSON_FEW_KEYS) {
		for (size_t i = 1; i < n; i++)
			for (size_t j = 0; j < i; j++)
				if (keys_equal(s, &key[i], &key[j]))
					return &key[i];
		return NULL;
	}
	qsort_r(key, n, sizeof *key, compare_keys, s);
	for (size_t i = 1; i < n; i++)
		if (keys_equal(s, &key[i], &key[i - 1]) && (!twice || key[i].at < twice->at))
			twice = &key[i];
	return twice;
}

/* Looks for equal keys among those from `first` on, and forgets them. */
static int scan_duplicates(struct scan *s, size_t first, size_t first_decoded)
{
	const struct scan_key *twice = find_duplicate(s, s->key + first, s->n_keys - first);
	char name[128], shown[64];

	if (twice) {
		snprintf(name, sizeof name, "%.*s",
			 (int)(twice->len < sizeof name ? twice->len : sizeof name), key_bytes(s, twice));
		return scan_fail(s, twice->at, "key '%s' appears twice",
				 text_printable(name, shown, sizeof shown));
	}
	s->n_keys = first;
	s->decoded.len = first_decoded;
	return 0;
}

static int key_grow(struct scan *s)
{
	void *p = s->key == s->at_hand ? NULL : s->key;
	size_t cap = p ? s->cap_keys : 0;

	if (mem_grow(&p, &cap, s->n_keys + 1, sizeof *s->key))
		return scan_nomem(s);
	if (s->key == s->at_hand)
		memcpy(p, s->key, s->n_keys * sizeof *s->key);
	s->key = p;
	s->cap_keys = cap;
	return 0;
}

static int scan_key(struct scan *s)
{
	struct scan_key key = { .start = s->at + 1, .at = s->at };
	size_t decoded = s->decoded.len;
	int rc = scan_string(s, &s->decoded, &key.escaped);

	if (rc)
		return rc;
	if (s->decoded.failed)
		return scan_nomem(s);
	if (key.escaped)
		key.start = decoded;
	key.len = (key.escaped ? s->decoded.len : s->at - 1) - key.start;
	if (s->n_keys == s->cap_keys && (rc = key_grow(s)))
		return rc;
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
	bool escaped;
	int c, rc;

	scan_blank(s);
	s->extent.n_values++;
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
	case '"': return scan_string(s, NULL, &escaped);
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

int json_scan(const char *name, const char *text, size_t len, struct json_extent *out, struct err *err)
{
	struct scan_key at_hand[JSON_KEYS_AT_HAND];
	struct scan s = { .name = name,
			  .text = (const unsigned char *)text,
			  .len = len,
			  .key = at_hand,
			  .at_hand = at_hand,
			  .cap_keys = JSON_KEYS_AT_HAND,
			  .err = err };
	int rc = scan_text(&s);

	strbuf_release(&s.decoded);
	if (s.key != at_hand)
		free(s.key);
	if (!rc)
		*out = s.extent;
	return rc;
}

int json_nomem(const char *name, struct err *err)
{
	return err_fail(err, ERR_NOMEM, "%s: out of memory to read it", text_tail(name, JSON_NAME_SHOWN));
}
