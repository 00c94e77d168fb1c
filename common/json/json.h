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

/* A key of `len` bytes, and a key with its value. The compiler knows the length of a literal, so callers use
 * the functions below these. */
void json_put_key_of(struct json_writer *w, const char *key, size_t len);
void json_kv_string_of(struct json_writer *w, const char *key, size_t len, const char *s);
void json_kv_fixed_of(struct json_writer *w, const char *key, size_t len, double v, int decimals);
void json_kv_bool_of(struct json_writer *w, const char *key, size_t len, bool v);

static inline void json_put_key(struct json_writer *w, const char *key)
{
	json_put_key_of(w, key, strlen(key));
}

static inline void json_kv_open(struct json_writer *w, const char *key, char bracket)
{
	json_put_key(w, key);
	json_open(w, bracket);
}

static inline void json_kv_string(struct json_writer *w, const char *key, const char *s)
{
	json_kv_string_of(w, key, strlen(key), s);
}

static inline void json_kv_number(struct json_writer *w, const char *key, double v)
{
	json_put_key(w, key);
	json_put_number(w, v);
}

static inline void json_kv_fixed(struct json_writer *w, const char *key, double v, int decimals)
{
	json_kv_fixed_of(w, key, strlen(key), v, decimals);
}

static inline void json_kv_int(struct json_writer *w, const char *key, long long v)
{
	json_put_key(w, key);
	json_put_int(w, v);
}

static inline void json_kv_bool(struct json_writer *w, const char *key, bool v)
{
	json_kv_bool_of(w, key, strlen(key), v);
}

#endif
