/* Questions to a tree that parse.c has built. The writer is in write.c. */
#include "common/json/json.h"

#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/json/tree.h"
#include "common/text/text.h"

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
	json_tree_free((cJSON *)root);
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
