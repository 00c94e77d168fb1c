/* The one typed reader of JSON objects: configurations, world files, schemas, designs, mappings. The
 * first failure stays and the readers after it do nothing, so a caller reads everything and checks `rc`
 * once. A member that is absent or null leaves *out as it was: the default. Errors are "WHERE.KEY:
 * reason", for example "w.json: costs.record_s: is -1; it must be a number from 0 to 1000000".
 *
 *	struct fields f, costs;
 *
 *	fields_open(&f, "w.json", ": ", root, known, err);
 *	fields_need(&f, "costs");
 *	if (fields_open_member(&costs, &f, "costs", known_costs)) {
 *		field_number(&costs, "record_s", 0.0, 1e6, &out->record_s);
 *		fields_close(&costs, &f);
 *	}
 *	return f.rc;
 */
#ifndef COMMON_JSON_FIELDS_H
#define COMMON_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"
#include "common/text/text.h"

#define FIELDS_MAX_WHERE 384
#define FIELDS_MAX_KEY 160
#define FIELDS_FILE_SHOWN 150 /* of a long path its end */
#define FIELDS_MAX_WHOLE ((uint64_t)1 << 53) /* JSON's numbers are doubles */

struct fields {
	const struct json *object;
	char where[FIELDS_MAX_WHERE]; /* "FILE" or "FILE: types.digits" */
	bool numbers_only;            /* no "5m" for seconds: the protocol's numbers are numbers */
	const char *separator;        /* between it and a key: ": " after a file, "." after that */
	struct err *err;
	int rc;
};

/* `known`: the keys there may be, NULL-terminated; NULL: any. */
void fields_open(struct fields *f, const char *where, const char *separator, const struct json *object,
                 const char *const *known, struct err *err);
/* The object `v` inside `parent`, for example the element "columns[2]" of a list: fields_element()
 * makes such a key. */
bool fields_open_value(struct fields *f, struct fields *parent, const char *key, const struct json *v,
                       const char *const *known);
/* The object at a key of `parent`; false: it is not there, or it is wrong and parent->rc says so. */
bool fields_open_member(struct fields *f, struct fields *parent, const char *key, const char *const *known);
/* Hands the failure of a member's reading to the parent. */
void fields_close(const struct fields *f, struct fields *parent);

int fields_fail(struct fields *f, enum err_code code, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int fields_nomem(struct fields *f, const char *key);
/* "KEY[i]"; returns buf, of FIELDS_MAX_KEY bytes. */
char *fields_element(const char *key, size_t i, char *buf);
bool fields_need(struct fields *f, const char *key); /* "is not given" unless it is there */
/* NULL: absent, null, or something failed before. */
const struct json *fields_get(const struct fields *f, const char *key);
/* An array of min to max elements; NULL as above, or because it is none. */
const struct json *fields_list(struct fields *f, const char *key, size_t min, size_t max);

void field_bool(struct fields *f, const char *key, bool *out);
/* Of a key that ends in "_s", also a duration as text: "90s", "5m". */
void field_number(struct fields *f, const char *key, double min, double max, double *out);
/* As field_number(), also for whole numbers. */
void field_within(struct fields *f, const char *key, const struct text_limits *l, double *out);
/* A list of at least one and at most `max` numbers; what *out held is freed. */
void field_numbers(struct fields *f, const char *key, const struct text_limits *l, size_t max, double **out,
                   size_t *out_n);
void field_whole(struct fields *f, const char *key, uint64_t min, uint64_t max, uint64_t *out);
void field_size(struct fields *f, const char *key, size_t min, size_t max, size_t *out);
void field_choice(struct fields *f, const char *key, const char *const *name, int *out); /* its index */
/* 1 to `max` bytes without control characters; what *out held is freed. */
void field_text(struct fields *f, const char *key, size_t max, char **out);
/* The same, but the text stays in the document. */
void field_string(struct fields *f, const char *key, size_t max, const char **out);
/* The same as field_text() for a path, made absolute. */
void field_path(struct fields *f, const char *key, char **out);
/* The same as field_text() for a value that is already at hand; `key` names it: "values[3]". */
void field_text_value(struct fields *f, const char *key, const struct json *v, size_t max, char **out);

#endif
