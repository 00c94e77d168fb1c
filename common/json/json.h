/* JSON: a strict reader (parse.c) that reports every error with its line and column (depth at most 32,
 * no duplicate keys, valid UTF-8, no \u0000, numbers finite, nothing after the value), and a writer
 * (write.c) that never writes NaN or infinity (null instead). The tree is made of cJSON's nodes, which
 * are not visible outside this folder. */
#ifndef COMMON_JSON_JSON_H
#define COMMON_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/err.h"
#include "common/strbuf.h"

#define JSON_MAX_DEPTH 32
#define JSON_PATH_MAX_NAME 128 /* bytes of one name in a path */

struct json; /* a value inside a parsed document; NULL stands for "absent" everywhere below */

/* `name` is what errors call the text, e.g. a file name. Errors: "NAME:LINE:COLUMN: reason". */
int json_parse(const char *name, const char *text, size_t len, struct json **out, struct err *err);
int json_read_file(const char *path, size_t max, struct json **out, struct err *err);
/* The same for what people write by hand (configurations, designs, schemas): "// ..." is a comment. */
int json_parse_settings(const char *name, const char *text, size_t len, struct json **out, struct err *err);
int json_read_settings(const char *path, size_t max, struct json **out, struct err *err);
void json_free(struct json *root);

enum json_type { JSON_ABSENT, JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum json_type json_type(const struct json *v);
const struct json *json_get(const struct json *object, const char *key); /* case-sensitive */
/* "a.b.c": members inside members. A member whose own name is the whole path goes first. NULL: there is
 * none. */
const struct json *json_path(const struct json *v, const char *path);
size_t json_size(const struct json *v);                        /* members or elements */
const struct json *json_at(const struct json *v, size_t i); /* i-th of them, found by walking */
const struct json *json_first(const struct json *v);           /* walking: first, next */
const struct json *json_next(const struct json *v);
const char *json_key(const struct json *member);               /* name of an object's member */
bool json_bool(const struct json *v, bool otherwise);
double json_number(const struct json *v, double otherwise);
const char *json_string(const struct json *v, const char *otherwise); /* borrowed until json_free */

/* Every key of `object` must be in the NULL-terminated list; the error names the nearest one. */
int json_known_keys(const struct json *object, const char *where, const char *const *known,
                    struct err *err);

/* Writer (write.c): it adds commas and quotes. Numbers are the shortest text that reads back the same, or
 * rounded to a number of decimals. */
struct json_writer {
	struct strbuf *out;
	bool need_comma;
	bool after_key;
	bool pretty; /* two-space indentation */
	int depth;
};
void json_begin(struct json_writer *w, struct strbuf *out, bool pretty);
void json_open(struct json_writer *w, char bracket);  /* '{' or '[' */
void json_close(struct json_writer *w, char bracket); /* '}' or ']' */
void json_put_string(struct json_writer *w, const char *s); /* NULL: null; bad UTF-8 becomes U+FFFD */
void json_put_number(struct json_writer *w, double v);      /* NaN, infinity: null */
/* Rounded to at most `decimals` (0 to 9) decimals as printf rounds, zeros at the end cut off: 2.5,
 * -0.1, 3; what rounds to zero is 0. NaN, infinity: null. From 1e9 on the shortest text, as
 * json_put_number. */
void json_put_fixed(struct json_writer *w, double v, int decimals);
void json_put_int(struct json_writer *w, long long v);
void json_put_bool(struct json_writer *w, bool v);
void json_put_null(struct json_writer *w);

/* A key, and a key with its value. A reply of the daemon is a thousand bytes in some hundred pieces, and most
 * keys are literals: the compiler knows their bytes, and writes them straight into the buffer where there is
 * room. Nothing in it is escaped: a key with quotes or control characters is no literal. */
#define JSON_ROOM 40 /* bytes of any number */
void json_put_key_of(struct json_writer *w, const char *key, size_t len); /* any text of so many bytes */
void json_end_fixed(struct json_writer *w, char *at, double v, int decimals); /* as json_put_fixed() */

/* Writes a literal and what goes before and after it; returns where a value of JSON_ROOM bytes may come.
 * NULL: nothing is written, take the long way. */
static inline __attribute__((always_inline)) char *json_begin_literal(struct json_writer *w, const char *key,
								      size_t len)
{
	struct strbuf *out = w->out;
	char *p = out->text + out->len;

	if (!__builtin_constant_p(len) || w->pretty || out->failed ||
	    out->cap - out->len <= len + 4 + JSON_ROOM)
		return NULL;
	*p = ',';
	p += w->need_comma;
	*p++ = '"';
	memcpy(p, key, len);
	memcpy(p + len, "\":", 2);
	return p + len + 2;
}

/* The value, or the key, ends at p. */
static inline void json_end(struct json_writer *w, char *p, bool after_key)
{
	*p = '\0';
	w->out->len = (size_t)(p - w->out->text);
	w->need_comma = true;
	w->after_key = after_key;
}

static inline void json_put_key(struct json_writer *w, const char *key)
{
	char *p = json_begin_literal(w, key, strlen(key));

	if (p)
		json_end(w, p, true);
	else
		json_put_key_of(w, key, strlen(key));
}

static inline void json_kv_open(struct json_writer *w, const char *key, char bracket)
{
	json_put_key(w, key);
	json_open(w, bracket);
}

static inline void json_kv_string(struct json_writer *w, const char *key, const char *s)
{
	json_put_key(w, key);
	json_put_string(w, s);
}

static inline void json_kv_number(struct json_writer *w, const char *key, double v)
{
	json_put_key(w, key);
	json_put_number(w, v);
}

static inline void json_kv_fixed(struct json_writer *w, const char *key, double v, int decimals)
{
	char *p = json_begin_literal(w, key, strlen(key));

	if (p) {
		json_end_fixed(w, p, v, decimals);
	} else {
		json_put_key_of(w, key, strlen(key));
		json_put_fixed(w, v, decimals);
	}
}

static inline void json_kv_int(struct json_writer *w, const char *key, long long v)
{
	json_put_key(w, key);
	json_put_int(w, v);
}

static inline void json_kv_bool(struct json_writer *w, const char *key, bool v)
{
	char *p = json_begin_literal(w, key, strlen(key));

	if (p) {
		memcpy(p, v ? "true" : "false", 5); /* of "true" the end, too */
		json_end(w, p + (v ? 4 : 5), false);
	} else {
		json_put_key_of(w, key, strlen(key));
		json_put_bool(w, v);
	}
}

#endif
