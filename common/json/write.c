/* The writer of JSON. Pieces go straight into the buffer where there is room; a piece that does not fit takes
 * the way through strbuf_add, which grows it. */
#include "common/json/json.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/json/utf8.h"
#include "common/text/text.h"

void json_begin(struct json_writer *w, struct strbuf *out, bool pretty)
{
	*w = (struct json_writer){ .out = out, .pretty = pretty };
}

/* Where n bytes may be written at once; NULL: take the slow way. */
static inline char *room_for(struct strbuf *out, size_t n)
{
	return !out->failed && out->cap - out->len > n ? out->text + out->len : NULL;
}

static inline void wrote(struct strbuf *out, const char *end)
{
	out->len = (size_t)(end - out->text);
	out->text[out->len] = '\0';
}

static inline void put_bytes(struct strbuf *out, const char *bytes, size_t n)
{
	char *p = room_for(out, n);

	if (!p) {
		strbuf_add(out, bytes, n);
		return;
	}
	memcpy(p, bytes, n);
	wrote(out, p + n);
}

static inline void put_char(struct strbuf *out, char c)
{
	put_bytes(out, &c, 1);
}

static void new_line(struct json_writer *w)
{
	put_char(w->out, '\n');
	for (int i = 0; i < w->depth; i++)
		put_bytes(w->out, "  ", 2);
}

/* What goes before a key, an element or the value of a key. */
static inline void begin_item(struct json_writer *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (w->need_comma)
		put_char(w->out, ',');
	if (w->pretty && w->depth > 0)
		new_line(w);
}

void json_open(struct json_writer *w, char bracket)
{
	assert(bracket == '{' || bracket == '[');
	begin_item(w);
	put_char(w->out, bracket);
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
	put_char(w->out, bracket);
	w->need_comma = true;
}

/* ---- text ---- */

static inline bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* One character that cannot stand for itself; s[0] is no part of a well-formed one if n is 0. */
static void put_escape(struct strbuf *out, unsigned char c, size_t n)
{
	static const char hex[] = "0123456789abcdef";

	if (n == 0)
		put_bytes(out, "\xef\xbf\xbd", 3);
	else if (c == '"' || c == '\\')
		put_bytes(out, (char[]){ '\\', (char)c }, 2);
	else if (c == '\n')
		put_bytes(out, "\\n", 2);
	else if (c == '\t')
		put_bytes(out, "\\t", 2);
	else if (c == '\r')
		put_bytes(out, "\\r", 2);
	else
		put_bytes(out, (char[]){ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] }, 6);
}

/* The rest of a string, its first quote written, from somewhere on. */
static void put_rest(struct strbuf *out, const unsigned char *s, size_t len)
{
	size_t plain = 0;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_length(s + i, len - i);

		if (n > 1 || (n == 1 && is_plain(s[i]))) {
			i += n;
			continue;
		}
		put_bytes(out, (const char *)s + plain, i - plain);
		put_escape(out, s[i], n);
		plain = ++i;
	}
	put_bytes(out, (const char *)s + plain, len - plain);
	put_char(out, '"');
}

/* Are all eight bytes plain? A byte is not when it has its high bit, or is below 0x20, or equals the quote or
 * the backslash; each of these turns the high bit of its byte on below, and a borrow reaches the next byte
 * only from such a byte. */
static inline bool are_plain(uint64_t v)
{
	const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
	uint64_t quote = v ^ (ones * '"'), backslash = v ^ (ones * '\\');

	return !((v | (v - ones * 0x20) | (quote - ones) | (backslash - ones)) & high);
}

static inline bool copy_eight(char *p, const char *s)
{
	uint64_t v;

	memcpy(&v, s, 8);
	memcpy(p, &v, 8);
	return are_plain(v);
}

/* Copies text from s to p; true: all of it is plain. Eight bytes at a time; the last eight may overlap those
 * before them, which costs less than a loop over the rest. */
static inline bool copy_plain(char *p, const char *s, size_t len)
{
	size_t i = 0;
	uint32_t first, last;

	if (len >= 8) {
		for (; i + 8 <= len; i += 8)
			if (!copy_eight(p + i, s + i))
				return false;
		return i == len || copy_eight(p + len - 8, s + len - 8);
	}
	if (len >= 4) {
		memcpy(&first, s, 4);
		memcpy(&last, s + len - 4, 4);
		memcpy(p, &first, 4);
		memcpy(p + len - 4, &last, 4);
		return are_plain((uint64_t)last << 32 | first);
	}
	for (; i < len && is_plain((unsigned char)s[i]); i++)
		p[i] = s[i];
	return i == len;
}

/* A string in quotes and what follows it, at most two bytes. */
static inline void put_quoted(struct strbuf *out, const char *s, size_t len, const char *tail,
			      size_t tail_len)
{
	char *p = room_for(out, len + 4);

	if (!p || !copy_plain(p + 1, s, len)) { /* nearly all text is plain */
		put_char(out, '"');
		put_rest(out, (const unsigned char *)s, len);
		put_bytes(out, tail, tail_len);
		return;
	}
	*p = '"';
	p += 1 + len;
	*p++ = '"';
	for (size_t i = 0; i < tail_len; i++)
		*p++ = tail[i];
	wrote(out, p);
}

void json_put_key_of(struct json_writer *w, const char *key, size_t len)
{
	assert(!w->after_key);
	begin_item(w);
	put_quoted(w->out, key, len, ": ", w->pretty ? 2 : 1);
	w->after_key = true;
}

/* A value that is ready as text. */
static inline void put_text(struct json_writer *w, const char *text, size_t len)
{
	begin_item(w);
	put_bytes(w->out, text, len);
	w->need_comma = true;
}

void json_put_string(struct json_writer *w, const char *s)
{
	if (!s) {
		json_put_null(w);
		return;
	}
	begin_item(w);
	put_quoted(w->out, s, strlen(s), "", 0);
	w->need_comma = true;
}

void json_put_bool(struct json_writer *w, bool v)
{
	put_text(w, v ? "true" : "false", v ? 4 : 5);
}

void json_put_null(struct json_writer *w)
{
	put_text(w, "null", 4);
}

/* ---- numbers ---- */

static void put_number_text(struct json_writer *w, const char *text)
{
	put_text(w, text, strlen(text));
}

void json_put_int(struct json_writer *w, long long v)
{
	char buf[TEXT_NUMBER];

	put_number_text(w, text_int64(v, buf));
}

void json_put_number(struct json_writer *w, double v)
{
	char buf[TEXT_NUMBER];

	if (isfinite(v))
		put_number_text(w, text_shortest(v, buf));
	else
		json_put_null(w);
}

void json_put_fixed(struct json_writer *w, double v, int decimals)
{
	char buf[TEXT_NUMBER];

	assert(decimals >= 0 && decimals <= 9);
	if (isfinite(v))
		put_text(w, buf, (size_t)(text_fixed_end(v, decimals, buf) - buf));
	else
		json_put_null(w);
}

void json_end_fixed(struct json_writer *w, char *at, double v, int decimals)
{
	_Static_assert(TEXT_NUMBER <= JSON_ROOM, "a number has room");
	assert(!w->after_key && decimals >= 0 && decimals <= 9);
	if (!isfinite(v))
		memcpy(at, "null", 4);
	json_end(w, isfinite(v) ? text_fixed_end(v, decimals, at) : at + 4, false);
}
