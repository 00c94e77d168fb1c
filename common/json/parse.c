/* Reads a text in one pass: checks it, and builds the tree of cJSON's nodes while it goes. cJSON's own
 * parser is lenient (control characters in strings, odd numbers, trailing bytes, duplicate keys) and
 * knows no line numbers, so only its nodes and the way it links them are used. */
#define _GNU_SOURCE
#include "common/json/json.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/tree.h"
#include "common/json/utf8.h"
#include "common/mem.h"
#include "common/text/text.h"

#define JSON_NAME_SHOWN 200
#define JSON_MAX_NUMBER 63 /* characters of a number */
#define JSON_KEYS_AT_HAND 32 /* keys of open objects that need no allocation */
#define JSON_FEW_KEYS 16 /* up to here comparing all pairs is quicker than sorting */

/* A key of an object that is still open. */
struct scan_key {
	const char *text; /* in the tree */
	size_t len;
	size_t at; /* where it stands in the text */
};

struct scan {
	struct json_tree tree;
	const char *name;
	const unsigned char *text;
	size_t len, at;
	int depth;
	bool comments; /* "// ..." to the end of a line is a blank */
	struct scan_key *key; /* of all open objects, innermost last; `at_hand` or on the heap */
	struct scan_key *at_hand;
	size_t n_keys, cap_keys;
	struct err *err;
};

static int scan_value(struct scan *s, cJSON **out);

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
	return err_fail(s->err, ERR_NOMEM, "%s: out of memory to read it",
			text_tail(s->name, JSON_NAME_SHOWN));
}

/* The next byte, or -1 at the end. */
static int scan_peek(const struct scan *s)
{
	return s->at < s->len ? s->text[s->at] : -1;
}

static bool scan_comment(struct scan *s)
{
	if (!s->comments || s->at + 1 >= s->len || s->text[s->at] != '/' || s->text[s->at + 1] != '/')
		return false;
	while (s->at < s->len && s->text[s->at] != '\n')
		s->at++;
	return true;
}

static void scan_blank(struct scan *s)
{
	do {
		while (s->at < s->len && (s->text[s->at] == ' ' || s->text[s->at] == '\t' ||
					  s->text[s->at] == '\n' || s->text[s->at] == '\r'))
			s->at++;
	} while (scan_comment(s));
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

/* Passes over a string; s->at stands on its quote. Has it escapes? */
static int string_end(struct scan *s, bool *out_escaped)
{
	size_t start = s->at++;

	*out_escaped = false;
	for (;;) {
		const unsigned char *p = s->text + s->at, *end = s->text + s->len;
		char bytes[4];
		size_t len;
		int c, rc;

		while (p < end && is_plain(*p))
			p++;
		s->at = (size_t)(p - s->text);
		c = scan_peek(s);
		if (c == '"') {
			s->at++;
			return 0;
		}
		if (c == '\\') {
			*out_escaped = true;
			if ((rc = scan_escape(s, bytes, &len)))
				return rc;
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

/* A string, as its bytes in the tree; s->at stands on its quote. */
static int scan_string(struct scan *s, const char **out, size_t *out_len)
{
	size_t start = s->at + 1, end;
	bool escaped;
	int rc = string_end(s, &escaped);
	char *text, *p;

	if (rc)
		return rc;
	end = s->at - 1;
	/* An escape is longer than what it stands for. */
	p = text = json_tree_bytes(&s->tree, end - start + 1);
	if (!text)
		return scan_nomem(s);
	for (s->at = start; escaped && s->at < end;) {
		size_t len;

		if (s->text[s->at] != '\\') {
			*p++ = (char)s->text[s->at++];
			continue;
		}
		scan_escape(s, p, &len); /* it did not fail before */
		p += len;
	}
	if (!escaped) {
		memcpy(text, s->text + start, end - start);
		p += end - start;
	}
	*p = '\0';
	s->at = end + 1;
	*out = text;
	*out_len = (size_t)(p - text);
	return 0;
}

static int scan_digits(struct scan *s)
{
	if (scan_peek(s) < '0' || scan_peek(s) > '9')
		return scan_unexpected(s, "a digit");
	while (scan_peek(s) >= '0' && scan_peek(s) <= '9')
		s->at++;
	return 0;
}

static int scan_number(struct scan *s, cJSON **out)
{
	char copy[JSON_MAX_NUMBER + 1];
	size_t start = s->at, len;
	double v;
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
	if (!text_number(copy, &v))
		return scan_fail(s, start, "%s is too large for a double", copy);
	*out = json_tree_node(&s->tree, cJSON_Number);
	if (*out)
		(*out)->valuedouble = v;
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

static int scan_array(struct scan *s, cJSON *array)
{
	cJSON *element;
	int rc;

	s->at++;
	scan_blank(s);
	if (scan_peek(s) == ']') {
		s->at++;
		return 0;
	}
	for (;;) {
		if ((rc = scan_value(s, &element)))
			return rc;
		cJSON_AddItemToArray(array, element);
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

static bool keys_equal(const struct scan_key *a, const struct scan_key *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Equal keys become neighbours, the earlier one first. */
static int compare_keys(const void *a_, const void *b_)
{
	const struct scan_key *a = a_, *b = b_;
	int order;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	order = memcmp(a->text, b->text, a->len);
	if (order)
		return order;
	return (a->at > b->at) - (a->at < b->at);
}

/* The first of n keys that was there before, or NULL. Sorting takes n log n even for keys that were
 * chosen with malice, which a hash table would have to be defended against. */
static const struct scan_key *find_duplicate(struct scan_key *key, size_t n)
{
	const struct scan_key *twice = NULL;

	if (n <= JSON_FEW_KEYS) {
		for (size_t i = 1; i < n; i++)
			for (size_t j = 0; j < i; j++)
				if (keys_equal(&key[i], &key[j]))
					return &key[i];
		return NULL;
	}
	qsort(key, n, sizeof *key, compare_keys);
	for (size_t i = 1; i < n; i++)
		if (keys_equal(&key[i], &key[i - 1]) && (!twice || key[i].at < twice->at))
			twice = &key[i];
	return twice;
}

/* Looks for equal keys among those from `first` on, and forgets them. */
static int scan_duplicates(struct scan *s, size_t first)
{
	const struct scan_key *twice = find_duplicate(s->key + first, s->n_keys - first);
	char shown[64];

	if (twice)
		return scan_fail(s, twice->at, "key '%s' appears twice",
				 text_printable(twice->text, shown, sizeof shown));
	s->n_keys = first;
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

static int scan_key(struct scan *s, const char **out)
{
	struct scan_key key = { .at = s->at };
	int rc = scan_string(s, &key.text, &key.len);

	if (!rc && s->n_keys == s->cap_keys)
		rc = key_grow(s);
	if (rc)
		return rc;
	s->key[s->n_keys++] = key;
	*out = key.text;
	return 0;
}

static int scan_object(struct scan *s, cJSON *object)
{
	size_t first = s->n_keys;
	const char *key;
	cJSON *member;
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
		if ((rc = scan_key(s, &key)))
			return rc;
		scan_blank(s);
		if (scan_peek(s) != ':')
			return scan_unexpected(s, "':'");
		s->at++;
		if ((rc = scan_value(s, &member)))
			return rc;
		cJSON_AddItemToObjectCS(object, key, member);
		scan_blank(s);
		if (scan_peek(s) == '}') {
			s->at++;
			return scan_duplicates(s, first);
		}
		if (scan_peek(s) != ',')
			return scan_unexpected(s, "',' or '}'");
		s->at++;
	}
}

/* An array or an object; s->at stands on its bracket. */
static int scan_inside(struct scan *s, int bracket, cJSON **out)
{
	int rc;

	if (s->depth == JSON_MAX_DEPTH)
		return scan_fail(s, s->at, "nested deeper than %d levels", JSON_MAX_DEPTH);
	*out = json_tree_node(&s->tree, bracket == '{' ? cJSON_Object : cJSON_Array);
	if (!*out)
		return 0; /* scan_value() says why */
	s->depth++;
	rc = bracket == '{' ? scan_object(s, *out) : scan_array(s, *out);
	s->depth--;
	return rc;
}

static int scan_value(struct scan *s, cJSON **out)
{
	const char *text;
	size_t len;
	int c, rc;

	scan_blank(s);
	c = scan_peek(s);
	*out = NULL;
	switch (c) {
	case '{':
	case '[': rc = scan_inside(s, c, out); break;
	case '"':
		if (!(rc = scan_string(s, &text, &len)) && (*out = json_tree_node(&s->tree, cJSON_String)))
			(*out)->valuestring = (char *)text;
		break;
	case 't':
		if (!(rc = scan_word(s, "true")))
			*out = json_tree_node(&s->tree, cJSON_True);
		break;
	case 'f':
		if (!(rc = scan_word(s, "false")))
			*out = json_tree_node(&s->tree, cJSON_False);
		break;
	case 'n':
		if (!(rc = scan_word(s, "null")))
			*out = json_tree_node(&s->tree, cJSON_NULL);
		break;
	default:
		if (c != '-' && !(c >= '0' && c <= '9'))
			return scan_unexpected(s, "a value");
		rc = scan_number(s, out);
	}
	return rc || *out ? rc : scan_nomem(s);
}

static int scan_text(struct scan *s, cJSON **out)
{
	int rc;

	if (s->len >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
		return scan_fail(s, 0, "starts with a byte-order mark: save it as UTF-8 without one");
	if (!json_tree_begin(&s->tree, s->len))
		return scan_nomem(s);
	rc = scan_value(s, out);
	if (!rc) {
		scan_blank(s);
		if (s->at < s->len)
			rc = scan_unexpected(s, "the end of the text");
	}
	json_tree_end(&s->tree, rc ? NULL : *out);
	return rc;
}

static int parse(const char *name, const char *text, size_t len, bool comments, struct json **out,
		 struct err *err)
{
	struct scan_key at_hand[JSON_KEYS_AT_HAND];
	struct scan s = { .name = name,
			  .text = (const unsigned char *)text,
			  .len = len,
			  .comments = comments,
			  .key = at_hand,
			  .at_hand = at_hand,
			  .cap_keys = JSON_KEYS_AT_HAND,
			  .err = err };
	cJSON *root = NULL;
	int rc = scan_text(&s, &root);

	if (s.key != at_hand)
		free(s.key);
	if (!rc)
		*out = (struct json *)root;
	return rc;
}

int json_parse(const char *name, const char *text, size_t len, struct json **out, struct err *err)
{
	return parse(name, text, len, false, out, err);
}

int json_parse_settings(const char *name, const char *text, size_t len, struct json **out, struct err *err)
{
	return parse(name, text, len, true, out, err);
}
