/* Typed reading of the members of one JSON object, for the files of this folder. The first failure stays and
 * the readers after it do nothing, so that a caller reads everything and checks `rc` once. A member that is
 * absent or null leaves *out as it was: the default. Errors are "WHERE.KEY: reason". */
#ifndef COMMON_JSON_FIELDS_H
#define COMMON_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"

#define FIELDS_MAX_WHERE 384
#define FIELDS_FILE_SHOWN 150 /* of a long path its end */
#define FIELDS_MAX_WHOLE ((uint64_t)1 << 53) /* JSON's numbers are doubles */

struct fields {
	const struct json *object;
	char where[FIELDS_MAX_WHERE]; /* "FILE" or "FILE: types.digits" */
	const char *separator;        /* between it and a key: ": " after a file, "." after that */
	struct err *err;
	int rc;
};

/* `known`: the keys there may be, NULL-terminated; NULL: any. */
void fields_open(struct fields *f, const char *where, const char *separator, const struct json *object,
                 const char *const *known, struct err *err);
/* The object at a key of `parent`; false: it is not there, or it is wrong and parent->rc says so. */
bool fields_open_member(struct fields *f, struct fields *parent, const char *key, const char *const *known);
/* Hands the failure of a member's reading to the parent. */
void fields_close(const struct fields *f, struct fields *parent);

int fields_fail(struct fields *f, enum err_code code, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int fields_nomem(struct fields *f, const char *key);
/* NULL: absent, null, or something failed before. */
const struct json *fields_get(const struct fields *f, const char *key);
/* An array of min to max elements; NULL as above, or because it is none. */
const struct json *fields_list(struct fields *f, const char *key, size_t min, size_t max);

void field_bool(struct fields *f, const char *key, bool *out);
void field_number(struct fields *f, const char *key, double min, double max, double *out);
void field_whole(struct fields *f, const char *key, uint64_t min, uint64_t max, uint64_t *out);
void field_size(struct fields *f, const char *key, size_t min, size_t max, size_t *out);
void field_choice(struct fields *f, const char *key, const char *const *name, int *out); /* its index */
/* 1 to `max` bytes without control characters; what *out held is freed. */
void field_text(struct fields *f, const char *key, size_t max, char **out);
/* The same for a path, made absolute. */
void field_path(struct fields *f, const char *key, char **out);
/* The same for a value that is already at hand; `key` names it: "values[3]". */
void field_text_value(struct fields *f, const char *key, const struct json *v, size_t max, char **out);

#endif
