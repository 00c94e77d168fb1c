/* Reads and writes the literals of Python. See literal.h. */
#include "automl/literal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"

struct scan {
	const char *start, *at;
	struct err *err;
	int depth;
};

static int scan_value(struct scan *s, struct literal *out);

static int scan_fail(struct scan *s, const char *what)
{
	char shown[24];

	if (!*s->at)
		return err_fail(s->err, ERR_FORMAT, "%s, and the value ends there", what);
	return err_fail(s->err, ERR_FORMAT, "%s at '%s'", what, text_printable(s->at, shown, sizeof shown));
}

/* Blanks, line ends and comments. */
static void skip(struct scan *s)
{
	for (;;) {
		s->at += strspn(s->at, " \t\r\n\f");
		if (*s->at != '#')
			return;
		s->at += strcspn(s->at, "\n");
	}
}

void literal_release(struct literal *v)
{
	for (size_t i = 0; i < v->n; i++)
		literal_release(&v->item[i]);
	free(v->item);
	free(v->text);
	*v = (struct literal){ 0 };
}

/* ---- numbers and words ---- */

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Digits of a base, which single underscores may part. */
static bool whole_in_base(const char *digits, int base, double *out)
{
	double v = 0.0;
	bool digit_before = false;

	if (!*digits)
		return false;
	for (; *digits; digits++) {
		int c = tolower((unsigned char)*digits), d = isdigit(c) ? c - '0' : c - 'a' + 10;

		if (c == '_' && digit_before) {
			digit_before = false;
			continue;
		}
		if (!isalnum(c) || d >= base)
			return false;
		v = v * base + d;
		digit_before = true;
	}
	*out = v;
	return digit_before;
}

/* Python's number at the start of the text: how long it is, 0 if it is none. */
static size_t number_length(const char *s)
{
	size_t n = 0;
	bool hex = s[0] == '0' && strchr("xXoObB", s[1]) && s[1];

	while (word_char(s[n]) || s[n] == '.' ||
	       (!hex && (s[n] == '+' || s[n] == '-') && n && (s[n - 1] == 'e' || s[n - 1] == 'E')))
		n++;
	return n;
}

static int scan_number(struct scan *s, struct literal *out)
{
	double sign = 1.0, v = 0.0;
	char buf[64], plain[64];
	size_t n, used = 0;
	bool ok, whole;

	while (*s->at == '-' || *s->at == '+') {
		sign = *s->at++ == '-' ? -sign : sign;
		skip(s);
	}
	n = number_length(s->at);
	if (n == 0 || n >= sizeof buf || !(isdigit((unsigned char)*s->at) || *s->at == '.'))
		return scan_fail(s, "there should be a number");
	memcpy(buf, s->at, n);
	buf[n] = '\0';
	if (buf[0] == '0' && n > 1 && strchr("xXoObB", buf[1])) {
		int base = tolower((unsigned char)buf[1]) == 'x'   ? 16
			   : tolower((unsigned char)buf[1]) == 'o' ? 8
								   : 2;

		ok = whole_in_base(buf + 2, base, &v);
		whole = true;
	} else {
		whole = !strpbrk(buf, ".eE");
		for (size_t i = 0; i < n; i++) /* 1_000 */
			if (buf[i] != '_' || !i || !isdigit((unsigned char)buf[i - 1]) ||
			    !isdigit((unsigned char)buf[i + 1]))
				plain[used++] = buf[i];
		plain[used] = '\0';
		if (plain[0] == '.') { /* ".5" */
			memmove(plain + 1, plain, used + 1);
			plain[0] = '0';
		}
		for (char *p = strchr(plain, '.'); p && !isdigit((unsigned char)p[1]);
		     p = NULL) { /* "5." and "5.e3" */
			size_t tail = strlen(p + 1) + 1;

			if (strlen(plain) + 2 > sizeof plain)
				return scan_fail(s, "the number is too long");
			memmove(p + 2, p + 1, tail);
			p[1] = '0';
		}
		ok = text_number(plain, &v);
		if (ok && whole && plain[0] == '0' && strspn(plain, "0") != strlen(plain))
			return scan_fail(s, "a whole number must not begin with 0");
	}
	if (!ok)
		return scan_fail(s, "this is not a number");
	s->at += n;
	*out = (struct literal){ .kind = whole ? LITERAL_INT : LITERAL_FLOAT, .number = sign * v };
	return 0;
}

static int scan_word(struct scan *s, struct literal *out)
{
	static const struct {
		const char *word;
		struct literal value;
	} known[] = {
		{ "True", { .kind = LITERAL_BOOL, .number = 1 } },
		{ "False", { .kind = LITERAL_BOOL, .number = 0 } },
		{ "None", { .kind = LITERAL_NONE } },
	};
	size_t n = 0;

	while (word_char(s->at[n]))
		n++;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strlen(known[i].word) == n && !memcmp(known[i].word, s->at, n)) {
			s->at += n;
			*out = known[i].value;
			return 0;
		}
	}
	return scan_fail(s, "a word inside a literal needs quotes");
}

/* ---- strings ---- */

/* A character as UTF-8. */
static void put_character(struct strbuf *b, unsigned long c)
{
	char u[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n == 1) {
		u[0] = (char)c;
	} else {
		for (size_t i = n; i-- > 1; c >>= 6)
			u[i] = (char)(0x80 | (c & 0x3f));
		u[0] = (char)((0xf00 >> n & 0xff) | c);
	}
	strbuf_add(b, u, n);
}

static int scan_hex(struct scan *s, int digits, struct strbuf *b)
{
	unsigned long c = 0;

	for (int i = 0; i < digits; i++, s->at++) {
		if (!isxdigit((unsigned char)*s->at))
			return scan_fail(s, "there should be a hexadecimal digit");
		c = c * 16 + (unsigned long)(isdigit((unsigned char)*s->at)
						     ? *s->at - '0'
						     : tolower((unsigned char)*s->at) - 'a' + 10);
	}
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return scan_fail(s, "this escape is no character");
	put_character(b, c);
	return 0;
}

static int scan_escape(struct scan *s, struct strbuf *b)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	char c = *s->at;
	const char *known = c ? strchr(from, c) : NULL;

	if (!c)
		return scan_fail(s, "a string is not closed");
	s->at++;
	if (known)
		strbuf_add(b, &to[known - from], 1);
	else if (c == '\n')
		; /* the line goes on */
	else if (c == 'x')
		return scan_hex(s, 2, b);
	else if (c == 'u')
		return scan_hex(s, 4, b);
	else if (c == 'U')
		return scan_hex(s, 8, b);
	else
		strbuf_add(b, (char[]){ '\\', c }, 2); /* Python keeps both */
	return 0;
}

/* One piece in quotes, single or triple. */
static int scan_piece(struct scan *s, bool raw, struct strbuf *b)
{
	char quote = *s->at;
	size_t n = s->at[1] == quote && s->at[2] == quote ? 3 : 1;
	int rc = 0;

	s->at += n;
	for (;;) {
		size_t closing = 0;

		while (closing < n && s->at[closing] == quote)
			closing++;
		if (closing == n)
			break;
		if (!*s->at || (n == 1 && *s->at == '\n'))
			return scan_fail(s, "a string is not closed");
		if (*s->at == '\\' && !raw) {
			s->at++;
			rc = scan_escape(s, b);
			if (rc)
				return rc;
		} else {
			if (*s->at == '\\' && s->at[1])
				strbuf_add(b, s->at++, 1);
			strbuf_add(b, s->at++, 1);
		}
	}
	s->at += n;
	return 0;
}

/* 0: no string begins here. */
static size_t string_prefix(const char *s)
{
	size_t n = strchr("rRuU", *s) && *s ? 1 : 0;

	return s[n] == '\'' || s[n] == '"' ? n + 1 : 0;
}

static int scan_string(struct scan *s, struct literal *out)
{
	struct strbuf b = { 0 };
	int rc = 0;

	for (size_t n = string_prefix(s->at); n && !rc; n = string_prefix(s->at)) { /* 'a' 'b' is 'ab' */
		bool raw = n == 2 && tolower((unsigned char)*s->at) == 'r';

		s->at += n - 1;
		rc = scan_piece(s, raw, &b);
		skip(s);
	}
	if (!rc) {
		*out = (struct literal){ .kind = LITERAL_STRING, .text = mem_strdup(strbuf_text(&b)) };
		if (!out->text || b.failed) {
			literal_release(out);
			rc = err_nomem(s->err, "a string");
		}
	}
	strbuf_release(&b);
	return rc;
}

/* ---- lists and dictionaries ---- */

static int add_item(struct scan *s, struct literal *list, size_t *cap)
{
	struct literal v = { 0 };
	int rc;

	if (list->n >= LITERAL_MAX_ITEMS)
		return err_fail(s->err, ERR_FORMAT, "more than %d items", LITERAL_MAX_ITEMS);
	rc = scan_value(s, &v);
	if (!rc && mem_grow((void **)&list->item, cap, list->n + 1, sizeof v)) {
		literal_release(&v);
		rc = err_nomem(s->err, "a list");
	}
	if (!rc)
		list->item[list->n++] = v;
	return rc;
}

static int scan_items(struct scan *s, char closing, struct literal *out)
{
	struct literal list = { .kind = LITERAL_LIST };
	size_t cap = 0;
	int rc = 0;

	if (++s->depth > LITERAL_MAX_DEPTH)
		return err_fail(s->err, ERR_FORMAT, "lists inside lists, more than %d deep",
				LITERAL_MAX_DEPTH);
	s->at++;
	skip(s);
	if (closing == '}' && *s->at == '}')
		list.kind = LITERAL_DICT;
	while (!rc && *s->at != closing) {
		rc = add_item(s, &list, &cap);
		skip(s);
		if (!rc && closing == '}' && list.n == 1 && *s->at == ':')
			list.kind = LITERAL_DICT;
		if (!rc && list.kind == LITERAL_DICT) {
			if (*s->at != ':') {
				rc = scan_fail(s, "there should be ':' and a value");
				break;
			}
			s->at++;
			rc = add_item(s, &list, &cap);
			skip(s);
		}
		if (!rc && *s->at == ',') {
			s->at++;
			skip(s);
		} else if (!rc && *s->at != closing) {
			rc = scan_fail(s, "there should be ',' or the end of the list");
		}
	}
	s->depth--;
	if (rc) {
		literal_release(&list);
		return rc;
	}
	s->at++;
	*out = list;
	return 0;
}

static int scan_value(struct scan *s, struct literal *out)
{
	skip(s);
	if (*s->at == '[')
		return scan_items(s, ']', out);
	if (*s->at == '(')
		return scan_items(s, ')', out);
	if (*s->at == '{')
		return scan_items(s, '}', out);
	if (string_prefix(s->at))
		return scan_string(s, out);
	if (isdigit((unsigned char)*s->at) || (*s->at && strchr("+-.", *s->at)))
		return scan_number(s, out);
	return scan_word(s, out);
}

int literal_parse(const char *text, struct literal *out, struct err *err)
{
	struct scan s = { .start = text, .at = text, .err = err };
	struct literal v = { 0 };
	int rc = scan_value(&s, &v);

	skip(&s);
	if (!rc && *s.at)
		rc = scan_fail(&s, "something follows the value,");
	if (rc) {
		literal_release(&v);
		return rc;
	}
	*out = v;
	return 0;
}

int literal_string(const char *text, struct literal *out, struct err *err)
{
	struct literal v = { .kind = LITERAL_STRING, .text = mem_strdup(text) };

	if (!v.text)
		return err_nomem(err, "a string");
	*out = v;
	return 0;
}

int literal_parse_or_word(const char *text, struct literal *out, struct err *err)
{
	int rc = literal_parse(text, out, err);
	size_t n;

	if (rc != -ERR_FORMAT)
		return rc;
	text += strspn(text, " \t\r\n\f");
	n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	*out = (struct literal){ .kind = LITERAL_STRING, .bare = true, .text = mem_strndup(text, n) };
	return out->text ? 0 : err_nomem(err, "a string");
}

/* ---- JSON ---- */

static int children_from_json(const struct json *v, bool dict, struct literal *out, struct err *err)
{
	size_t cap = json_size(v) * (dict ? 2 : 1);
	int rc = 0;

	if (cap > LITERAL_MAX_ITEMS)
		return err_fail(err, ERR_FORMAT, "more than %d items", LITERAL_MAX_ITEMS);
	out->item = mem_calloc(cap ? cap : 1, sizeof *out->item);
	if (!out->item)
		return err_nomem(err, "a list");
	for (const struct json *c = json_first(v); c && !rc; c = json_next(c)) {
		if (dict)
			rc = literal_string(json_key(c), &out->item[out->n], err);
		if (dict && !rc)
			out->n++;
		if (!rc)
			rc = literal_from_json(c, &out->item[out->n], err);
		if (!rc)
			out->n++;
	}
	return rc;
}

int literal_from_json(const struct json *v, struct literal *out, struct err *err)
{
	struct literal r = { 0 };
	int rc = 0;

	switch (json_type(v)) {
	case JSON_ABSENT:
	case JSON_NULL: break;
	case JSON_BOOL: r = (struct literal){ .kind = LITERAL_BOOL, .number = json_bool(v, false) }; break;
	case JSON_NUMBER:
		/* JSON does not tell 1 from 1.0: a whole number is an integer. */
		r.number = json_number(v, NAN);
		r.kind = r.number == floor(r.number) ? LITERAL_INT : LITERAL_FLOAT;
		break;
	case JSON_STRING: rc = literal_string(json_string(v, ""), &r, err); break;
	case JSON_ARRAY:
		r.kind = LITERAL_LIST;
		rc = children_from_json(v, false, &r, err);
		break;
	case JSON_OBJECT:
		r.kind = LITERAL_DICT;
		rc = children_from_json(v, true, &r, err);
		break;
	}
	if (rc) {
		literal_release(&r);
		return rc;
	}
	*out = r;
	return 0;
}

/* ---- writing ---- */

static void write_string(const char *text, struct strbuf *out)
{
	char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';

	strbuf_add(out, &quote, 1);
	for (; *text; text++) {
		if (*text == quote || *text == '\\')
			strbuf_add(out, (char[]){ '\\', *text }, 2);
		else if (*text == '\n')
			strbuf_puts(out, "\\n");
		else if ((unsigned char)*text < 32)
			strbuf_printf(out, "\\x%02x", (unsigned char)*text);
		else
			strbuf_add(out, text, 1);
	}
	strbuf_add(out, &quote, 1);
}

void literal_write(const struct literal *v, struct strbuf *out)
{
	char number[TEXT_NUMBER];

	switch (v->kind) {
	case LITERAL_NONE: strbuf_puts(out, "None"); return;
	case LITERAL_BOOL: strbuf_puts(out, v->number != 0.0 ? "True" : "False"); return;
	case LITERAL_INT: strbuf_puts(out, text_shortest(v->number, number)); return;
	case LITERAL_FLOAT:
		text_shortest(v->number, number);
		strbuf_printf(out, "%s%s", number, strpbrk(number, ".en") ? "" : ".0");
		return;
	case LITERAL_STRING: write_string(v->text, out); return;
	case LITERAL_LIST:
	case LITERAL_DICT: break;
	}
	strbuf_puts(out, v->kind == LITERAL_DICT ? "{" : "[");
	for (size_t i = 0; i < v->n; i++) {
		if (i)
			strbuf_puts(out, v->kind == LITERAL_DICT && i % 2 ? ": " : ", ");
		literal_write(&v->item[i], out);
	}
	strbuf_puts(out, v->kind == LITERAL_DICT ? "}" : "]");
}

void literal_to_json(const struct literal *v, struct json_writer *w)
{
	struct strbuf key = { 0 };

	switch (v->kind) {
	case LITERAL_NONE: json_put_null(w); return;
	case LITERAL_BOOL: json_put_bool(w, v->number != 0.0); return;
	case LITERAL_INT:
	case LITERAL_FLOAT: json_put_number(w, v->number); return;
	case LITERAL_STRING: json_put_string(w, v->text); return;
	case LITERAL_LIST:
		json_open(w, '[');
		for (size_t i = 0; i < v->n; i++)
			literal_to_json(&v->item[i], w);
		json_close(w, ']');
		return;
	case LITERAL_DICT: break;
	}
	json_open(w, '{');
	for (size_t i = 0; i + 1 < v->n; i += 2) {
		strbuf_reset(&key);
		if (v->item[i].kind == LITERAL_STRING)
			strbuf_puts(&key, v->item[i].text);
		else
			literal_write(&v->item[i], &key);
		json_put_key(w, strbuf_text(&key));
		literal_to_json(&v->item[i + 1], w);
	}
	json_close(w, '}');
	strbuf_release(&key);
}

/* ---- looking ---- */

bool literal_is_text(const struct literal *v, const char *text)
{
	return v->kind == LITERAL_STRING && !strcmp(v->text, text);
}

const struct literal *literal_get(const struct literal *dict, const char *key)
{
	for (size_t i = 0; dict->kind == LITERAL_DICT && i + 1 < dict->n; i += 2)
		if (literal_is_text(&dict->item[i], key))
			return &dict->item[i + 1];
	return NULL;
}

const char *literal_kind_name(const struct literal *v)
{
	static const char *const name[] = { "None",     "True or False", "a whole number", "a number",
					    "a string", "a list",        "a dictionary" };

	return name[v->kind];
}
