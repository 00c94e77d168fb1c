/* Questions to a tree that parse.c has built. The writer is in write.c. */
#include "common/json/json.h"

#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/json/tree.h"
#include "common/text/text.h"

typedef int parser(const char *name, const char *text, size_t len, struct json **out, struct err *err);

static int read_file(const char *path, size_t max, parser *parse, struct json **out, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	int rc = io_read_file(path, max, &text, &len, err);

	if (rc)
		return rc;
	rc = parse(strcmp(path, "-") == 0 ? "standard input" : path, text, len, out, err);
	free(text);
	return rc;
}

int json_read_file(const char *path, size_t max, struct json **out, struct err *err)
{
	return read_file(path, max, json_parse, out, err);
}

int json_read_settings(const char *path, size_t max, struct json **out, struct err *err)
{
	return read_file(path, max, json_parse_settings, out, err);
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
	const cJSON *v = json_type(object) == JSON_OBJECT ? inside(object)->child : NULL;

	/* most keys differ in their first byte, which costs less to see than a call */
	while (v && (v->string[0] != key[0] || strcmp(v->string, key) != 0))
		v = v->next;
	return (const struct json *)v;
}

const struct json *json_path(const struct json *v, const char *path)
{
	char name[JSON_PATH_MAX_NAME + 1];
	const struct json *whole = json_get(v, path);

	while (!whole && v && *path) {
		size_t len = strcspn(path, ".");

		if (len > JSON_PATH_MAX_NAME)
			return NULL;
		memcpy(name, path, len);
		name[len] = '\0';
		v = json_get(v, name);
		path += len + (path[len] == '.');
	}
	return whole ? whole : v;
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
	char shown[64], hint[TEXT_HINT];

	if (json_type(object) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: must be an object { ... }", where);
	for (const struct json *v = json_first(object); v; v = json_next(v)) {
		const char *const *k = known;

		while (*k && strcmp(*k, json_key(v)) != 0)
			k++;
		if (*k)
			continue;
		text_printable(json_key(v), shown, sizeof shown);
		return err_fail(err, ERR_FORMAT, "%s: unknown key '%s'%s", where, shown,
				text_hint(json_key(v), known, hint));
	}
	return 0;
}
