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
	memcpy(f->where, where, strnlen(where, sizeof f->where - 1)); /* the rest is zero */
	if (json_type(object) != JSON_OBJECT)
		f->rc = err_fail(err, ERR_FORMAT, "%s: must be an object { ... }", f->where);
	else if (known)
		f->rc = json_known_keys(object, f->where, known, err);
}

bool fields_open_value(struct fields *f, struct fields *parent, const char *key, const struct json *v,
		       const char *const *known)
{
	char where[FIELDS_MAX_WHERE + FIELDS_MAX_KEY], shown[FIELDS_MAX_KEY];

	if (!v || parent->rc)
		return false;
	snprintf(where, sizeof where, "%s%s%s", parent->where, parent->separator,
		 text_printable(key, shown, sizeof shown));
	fields_open(f, where, ".", v, known, parent->err);
	fields_close(f, parent);
	return !f->rc;
}

bool fields_open_member(struct fields *f, struct fields *parent, const char *key, const char *const *known)
{
	return fields_open_value(f, parent, key, fields_get(parent, key), known);
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

char *fields_element(const char *key, size_t i, char *buf)
{
	snprintf(buf, FIELDS_MAX_KEY, "%.128s[%zu]", key, i);
	return buf;
}

bool fields_need(struct fields *f, const char *key)
{
	if (!f->rc && !fields_get(f, key))
		fields_fail(f, ERR_FORMAT, key, "is not given");
	return !f->rc;
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
	else if (n > max && min == 0)
		fields_fail(f, ERR_FORMAT, key, "has %zu entries; at most %zu are allowed", n, max);
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

static bool is_seconds(const struct fields *f, const char *key)
{
	size_t len = strlen(key);

	return !f->numbers_only && len > 2 && !strcmp(key + len - 2, "_s");
}

/* "5m" where seconds are asked for; NaN: something else, and the failure says so. */
static double duration_value(struct fields *f, const char *key, const char *text)
{
	struct err why = { 0 };
	double s = NAN;

	if (text_duration(text, &s, &why))
		fields_fail(f, ERR_FORMAT, key, "%s", why.text);
	return s;
}

/* A number that is already at hand; `key` names it. */
static void number_value(struct fields *f, const char *key, const struct json *v, const struct text_limits *l,
			 double *out)
{
	bool seconds = json_type(v) == JSON_STRING && is_seconds(f, key);
	double number = seconds ? duration_value(f, key, json_string(v, "")) : json_number(v, NAN);
	char given[TEXT_NUMBER], want[TEXT_LIMITS];

	if (json_type(v) != JSON_NUMBER && !seconds)
		fields_fail(f, ERR_FORMAT, key, "must be %s%s", text_limits(l, want),
			    is_seconds(f, key) ? ", or a text such as \"5m\"" : "");
	else if (isnan(number))
		return;
	else if (!text_within(number, l))
		fields_fail(f, ERR_FORMAT, key, "is %s; it must be %s", text_shortest(number, given),
			    text_limits(l, want));
	else
		*out = number + 0.0; /* "-0" becomes 0 */
}

void field_within(struct fields *f, const char *key, const struct text_limits *l, double *out)
{
	const struct json *v = fields_get(f, key);

	if (v)
		number_value(f, key, v, l, out);
}

void field_number(struct fields *f, const char *key, double min, double max, double *out)
{
	field_within(f, key, &(struct text_limits){ .min = min, .max = max }, out);
}

void field_whole(struct fields *f, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
	double v = NAN;

	field_within(f, key, &(struct text_limits){ .min = (double)min, .max = (double)max, .whole = true },
		     &v);
	if (!isnan(v))
		*out = (uint64_t)v;
}

void field_numbers(struct fields *f, const char *key, const struct text_limits *l, size_t max, double **out,
		   size_t *out_n)
{
	const struct json *list = fields_list(f, key, 1, max);
	char place[FIELDS_MAX_KEY];
	double *v;
	size_t n = 0;

	if (!list)
		return;
	v = mem_array(json_size(list), sizeof *v);
	if (!v) {
		fields_nomem(f, key);
		return;
	}
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		number_value(f, fields_element(key, n, place), e, l, &v[n]);
		n++;
	}
	if (f->rc) {
		free(v);
		return;
	}
	free(*out);
	*out = v;
	*out_n = n;
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
	char all[160], shown[64], hint[TEXT_HINT];

	if (!v)
		return;
	for (int i = 0; s && name[i]; i++) {
		if (!strcmp(name[i], s)) {
			*out = i;
			return;
		}
	}
	join(name, all, sizeof all);
	if (!s)
		fields_fail(f, ERR_FORMAT, key, "must be one of the words %s", all);
	else
		fields_fail(f, ERR_FORMAT, key, "'%s' is none of %s%s",
			    text_printable(s, shown, sizeof shown), all, text_hint(s, name, hint));
}

/* The text of a value, after its checks; NULL: it failed. */
static const char *checked_text(struct fields *f, const char *key, const struct json *v, size_t max)
{
	const char *s = json_string(v, NULL);

	if (f->rc)
		return NULL;
	if (!s)
		return fields_fail(f, ERR_FORMAT, key, "must be a string"), NULL;
	if (!*s || strlen(s) > max)
		return fields_fail(f, ERR_FORMAT, key, "has %zu bytes; it needs 1 to %zu", strlen(s), max),
		       NULL;
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			return fields_fail(f, ERR_FORMAT, key, "has a control character (0x%02x) in it", *p),
			       NULL;
	}
	return s;
}

void field_text_value(struct fields *f, const char *key, const struct json *v, size_t max, char **out)
{
	const char *s = checked_text(f, key, v, max);
	char *copy = s ? mem_strdup(s) : NULL;

	if (!copy) {
		fields_nomem(f, key); /* unless it failed before */
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

void field_string(struct fields *f, const char *key, size_t max, const char **out)
{
	const struct json *v = fields_get(f, key);
	const char *s = v ? checked_text(f, key, v, max) : NULL;

	if (s)
		*out = s;
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
