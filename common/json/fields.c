/* Typed reading of members, with the place in every message. See fields.h. */
#include "common/json/fields.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "common/places.h"

void fields_open(struct fields *f, const char *where, const char *separator, const struct json *object,
		 const char *const *known, struct err *err)
{
	*f = (struct fields){ .object = object, .separator = separator, .err = err };
	snprintf(f->where, sizeof f->where, "%s", where);
	if (json_type(object) != JSON_OBJECT)
		f->rc = err_fail(err, ERR_FORMAT, "%s: must be an object { ... }", f->where);
	else if (known)
		f->rc = json_known_keys(object, f->where, known, err);
}

bool fields_open_member(struct fields *f, struct fields *parent, const char *key, const char *const *known)
{
	const struct json *v = fields_get(parent, key);
	char where[FIELDS_MAX_WHERE + 128];

	if (!v)
		return false;
	snprintf(where, sizeof where, "%s%s%s", parent->where, parent->separator, key);
	fields_open(f, where, ".", v, known, parent->err);
	fields_close(f, parent);
	return !f->rc;
}

void fields_close(const struct fields *f, struct fields *parent)
{
	if (!parent->rc)
		parent->rc = f->rc;
}

int fields_fail(struct fields *f, enum err_code code, const char *key, const char *fmt, ...)
{
	char reason[512], shown[96];
	va_list ap;

	if (f->rc)
		return f->rc;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	f->rc = err_fail(f->err, code, "%s%s%s: %s", f->where, f->separator,
			 text_printable(key, shown, sizeof shown), reason);
	return f->rc;
}

int fields_nomem(struct fields *f, const char *key)
{
	return fields_fail(f, ERR_NOMEM, key, "out of memory");
}

const struct json *fields_get(const struct fields *f, const char *key)
{
	const struct json *v = f->rc ? NULL : json_get(f->object, key);

	return json_type(v) == JSON_NULL ? NULL : v;
}

const struct json *fields_list(struct fields *f, const char *key, size_t min, size_t max)
{
	const struct json *v = fields_get(f, key);
	size_t n = json_size(v);

	if (!v)
		return NULL;
	if (json_type(v) != JSON_ARRAY)
		fields_fail(f, ERR_FORMAT, key, "must be a list [ ... ]");
	else if (n < min || n > max)
		fields_fail(f, ERR_FORMAT, key, "has %zu entries; it needs %zu to %zu", n, min, max);
	return f->rc ? NULL : v;
}

void field_bool(struct fields *f, const char *key, bool *out)
{
	const struct json *v = fields_get(f, key);

	if (v && json_type(v) != JSON_BOOL)
		fields_fail(f, ERR_FORMAT, key, "must be true or false");
	else if (v)
		*out = json_bool(v, *out);
}

void field_number(struct fields *f, const char *key, double min, double max, double *out)
{
	const struct json *v = fields_get(f, key);
	char low[32], high[32], given[32];
	double number = json_number(v, NAN);

	if (!v)
		return;
	text_shortest(min, low);
	text_shortest(max, high);
	if (json_type(v) != JSON_NUMBER)
		fields_fail(f, ERR_FORMAT, key, "must be a number from %s to %s", low, high);
	else if (number < min || number > max)
		fields_fail(f, ERR_FORMAT, key, "is %s; it must be from %s to %s",
			    text_shortest(number, given), low, high);
	else
		*out = number + 0.0; /* "-0" becomes 0 */
}

void field_whole(struct fields *f, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
	const struct json *v = fields_get(f, key);
	double number = json_number(v, NAN);
	char given[32];

	if (!v)
		return;
	if (json_type(v) != JSON_NUMBER)
		fields_fail(f, ERR_FORMAT, key, "must be a whole number from %llu to %llu",
			    (unsigned long long)min, (unsigned long long)max);
	else if (!(number >= (double)min && number <= (double)max) || number != floor(number))
		fields_fail(f, ERR_FORMAT, key, "is %s; it must be a whole number from %llu to %llu",
			    text_shortest(number, given), (unsigned long long)min, (unsigned long long)max);
	else
		*out = (uint64_t)number;
}

void field_size(struct fields *f, const char *key, size_t min, size_t max, size_t *out)
{
	uint64_t v = *out;

	field_whole(f, key, min, max, &v);
	*out = (size_t)v;
}

/* "a, b, c" */
static void join(const char *const *name, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (; *name && used < size; name++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", *name);
}

void field_choice(struct fields *f, const char *key, const char *const *name, int *out)
{
	const struct json *v = fields_get(f, key);
	const char *s = json_string(v, NULL);
	const char *near;
	char all[160], shown[64];

	if (!v)
		return;
	for (int i = 0; s && name[i]; i++) {
		if (!strcmp(name[i], s)) {
			*out = i;
			return;
		}
	}
	join(name, all, sizeof all);
	near = s ? text_nearest(s, name) : NULL;
	if (!s)
		fields_fail(f, ERR_FORMAT, key, "must be one of the words %s", all);
	else if (near)
		fields_fail(f, ERR_FORMAT, key, "'%s' is none of %s; did you mean '%s'?",
			    text_printable(s, shown, sizeof shown), all, near);
	else
		fields_fail(f, ERR_FORMAT, key, "'%s' is none of %s", text_printable(s, shown, sizeof shown),
			    all);
}

void field_text_value(struct fields *f, const char *key, const struct json *v, size_t max, char **out)
{
	const char *s = json_string(v, NULL);
	char *copy;

	if (f->rc)
		return;
	if (!s) {
		fields_fail(f, ERR_FORMAT, key, "must be a string");
		return;
	}
	if (!*s || strlen(s) > max) {
		fields_fail(f, ERR_FORMAT, key, "has %zu bytes; it needs 1 to %zu", strlen(s), max);
		return;
	}
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		if (*p < 0x20 || *p == 0x7f) {
			fields_fail(f, ERR_FORMAT, key, "has a control character (0x%02x) in it", *p);
			return;
		}
	}
	copy = mem_strdup(s);
	if (!copy) {
		fields_nomem(f, key);
		return;
	}
	free(*out);
	*out = copy;
}

void field_text(struct fields *f, const char *key, size_t max, char **out)
{
	const struct json *v = fields_get(f, key);

	if (v)
		field_text_value(f, key, v, max, out);
}

void field_path(struct fields *f, const char *key, char **out)
{
	char *given = NULL, *whole = NULL;
	struct err why = { 0 };

	field_text(f, key, PATH_MAX - 1, &given);
	if (given && !f->rc && place_absolute(given, &whole, &why))
		fields_fail(f, why.code, key, "%s", why.text);
	free(given);
	if (!whole)
		return;
	free(*out);
	*out = whole;
}
