/* Reading, defaults, writing, freeing and comparing by a table of keys. See keys.h. */
#include "scheduler/config/keys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/places.h"
#include "scheduler/config/config_parts.h"

static void *place_of(const struct key *k, const void *object)
{
	return (char *)object + k->at;
}

/* A number of any kind as a double: all of them fit. */
static double number_get(const struct key *k, const void *at)
{
	switch (k->kind) {
	case KEY_BOOL: return *(const bool *)at;
	case KEY_SIZE: return (double)*(const size_t *)at;
	case KEY_UINT64: return (double)*(const uint64_t *)at;
	case KEY_UINT32: return *(const uint32_t *)at;
	case KEY_INT:
	case KEY_CHOICE: return *(const int *)at;
	default: return *(const double *)at;
	}
}

static void number_set(const struct key *k, void *at, double v)
{
	switch (k->kind) {
	case KEY_BOOL:
	case KEY_RETIRED: *(bool *)at = v != 0.0; break;
	case KEY_NUMBER: *(double *)at = v; break;
	case KEY_SIZE: *(size_t *)at = (size_t)v; break;
	case KEY_UINT64: *(uint64_t *)at = (uint64_t)v; break;
	case KEY_UINT32: *(uint32_t *)at = (uint32_t)v; break;
	case KEY_INT:
	case KEY_CHOICE: *(int *)at = (int)v; break;
	default: break;
	}
}

void keys_default(const struct key *keys, void *object)
{
	for (const struct key *k = keys; k->name; k++) {
		if (k->kind == KEY_PART)
			keys_default(k->part, place_of(k, object));
		else
			number_set(k, place_of(k, object), k->initial);
	}
}

void keys_names(const struct key *keys, const char **out)
{
	size_t n = 0;

	for (; keys[n].name && n < KEYS_MAX; n++)
		out[n] = keys[n].name;
	out[n] = NULL;
}

/* ---- reading ---- */

static void read_part(struct fields *f, const struct key *k, void *object)
{
	const char *names[KEYS_MAX + 1];
	struct fields part;

	keys_names(k->part, names);
	if (!fields_open_member(&part, f, k->name, names)) {
		if (f->rc)
			return;
		part = (struct fields){ .separator = ".", .err = f->err }; /* not given: defaults alone */
	}
	keys_read(&part, k->part, object);
	if (k->check)
		k->check(&part, object);
	fields_close(&part, f);
}

static void read_int(struct fields *f, const struct key *k, int *at)
{
	double v = *at;

	field_number(f, k->name, k->min, k->max, &v);
	if (v != floor(v))
		fields_fail(f, ERR_FORMAT, k->name, "must be a whole number from %g to %g", k->min, k->max);
	else
		*at = (int)v;
}

static void read_text(struct fields *f, const struct key *k, char **at)
{
	field_text(f, k->name, (size_t)k->max, at);
	if (f->rc || *at || !k->initial_text)
		return;
	*at = mem_strdup(k->initial_text);
	if (!*at)
		fields_nomem(f, k->name);
}

static void read_whole(struct fields *f, const struct key *k, void *at)
{
	uint64_t v = (uint64_t)number_get(k, at);

	field_whole(f, k->name, (uint64_t)k->min, (uint64_t)k->max, &v);
	number_set(k, at, (double)v);
}

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "Linux's ids");

/* One entry of a list of users or groups: a name of this machine, or a number. */
static void read_id(struct fields *f, const char *key, const struct json *v, bool group, uint32_t *out)
{
	double number = json_number(v, NAN);
	struct err why = { 0 };
	char *name = NULL;
	int rc;

	if (json_type(v) == JSON_NUMBER) {
		if (!(number >= 0.0 && number < UINT32_MAX) || number != floor(number))
			fields_fail(f, ERR_FORMAT, key, "is not the number of a %s",
				    group ? "group" : "user");
		else
			*out = (uint32_t)number;
		return;
	}
	field_text_value(f, key, v, CONFIG_MAX_USER_NAME, &name);
	if (!name)
		return;
	rc = group ? place_group(name, out, &why) : place_user(name, out, &why);
	if (rc)
		fields_fail(f, why.code == ERR_NOTFOUND ? ERR_FORMAT : why.code, key, "%s", why.text);
	free(name);
}

static void read_ids(struct fields *f, const struct key *k, struct id_list *out)
{
	const struct json *list = fields_list(f, k->name, 0, (size_t)k->max);
	char key[64];

	if (!list)
		return;
	out->id = mem_calloc(json_size(list), sizeof *out->id);
	if (!out->id)
		fields_nomem(f, k->name);
	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		snprintf(key, sizeof key, "%s[%zu]", k->name, out->n);
		read_id(f, key, e, k->kind == KEY_GROUPS, &out->id[out->n++]);
	}
}

void keys_read(struct fields *f, const struct key *keys, void *object)
{
	for (const struct key *k = keys; k->name && !f->rc; k++) {
		void *at = place_of(k, object);

		if (k->read) {
			k->read(f, k->name, object);
			continue;
		}
		switch (k->kind) {
		case KEY_OTHER: break;
		case KEY_BOOL: field_bool(f, k->name, at); break;
		case KEY_NUMBER: field_number(f, k->name, k->min, k->max, at); break;
		case KEY_SIZE:
		case KEY_UINT64:
		case KEY_UINT32: read_whole(f, k, at); break;
		case KEY_INT: read_int(f, k, at); break;
		case KEY_CHOICE: field_choice(f, k->name, k->choice, at); break;
		case KEY_TEXT: read_text(f, k, at); break;
		case KEY_PATH: field_path(f, k->name, at); break;
		case KEY_USERS:
		case KEY_GROUPS: read_ids(f, k, at); break;
		case KEY_PART: read_part(f, k, at); break;
		case KEY_RETIRED: *(bool *)at = fields_get(f, k->name) != NULL; break;
		}
	}
}

/* ---- writing, freeing, comparing ---- */

static void put_ids(struct json_writer *w, const struct id_list *ids)
{
	json_open(w, '[');
	for (size_t i = 0; i < ids->n; i++)
		json_put_int(w, ids->id[i]);
	json_close(w, ']');
}

void keys_write(const struct key *keys, const void *object, struct json_writer *w)
{
	for (const struct key *k = keys; k->name; k++) {
		const void *at = place_of(k, object);

		if (k->kind == KEY_RETIRED)
			continue;
		json_put_key(w, k->name);
		if (k->write) {
			k->write(object, w);
			continue;
		}
		switch (k->kind) {
		case KEY_OTHER: json_put_null(w); break;
		case KEY_BOOL: json_put_bool(w, *(const bool *)at); break;
		case KEY_NUMBER: json_put_number(w, *(const double *)at); break;
		case KEY_SIZE:
		case KEY_UINT64:
		case KEY_UINT32:
		case KEY_INT: json_put_int(w, (long long)number_get(k, at)); break;
		case KEY_CHOICE: json_put_string(w, k->choice[*(const int *)at]); break;
		case KEY_TEXT:
		case KEY_PATH: json_put_string(w, *(char *const *)at); break;
		case KEY_USERS:
		case KEY_GROUPS: put_ids(w, at); break;
		case KEY_PART:
			json_open(w, '{');
			keys_write(k->part, at, w);
			json_close(w, '}');
			break;
		case KEY_RETIRED: break;
		}
	}
}

void keys_release(const struct key *keys, void *object)
{
	for (const struct key *k = keys; k->name; k++) {
		if (k->kind == KEY_TEXT || k->kind == KEY_PATH)
			free(*(char **)place_of(k, object));
		else if (k->kind == KEY_USERS || k->kind == KEY_GROUPS)
			free(((struct id_list *)place_of(k, object))->id);
		else if (k->kind == KEY_PART)
			keys_release(k->part, place_of(k, object));
	}
}

const char *keys_that_differ(const struct key *keys, const void *a, const void *b)
{
	for (const struct key *k = keys; k->name; k++) {
		const void *x = place_of(k, a), *y = place_of(k, b);

		if (k->kind == KEY_PART) {
			const char *inside = keys_that_differ(k->part, x, y);

			if (inside)
				return inside;
			continue;
		}
		if (!k->restart)
			continue;
		if (k->kind == KEY_TEXT || k->kind == KEY_PATH) {
			const char *s = *(char *const *)x, *t = *(char *const *)y;

			if (s && t ? strcmp(s, t) != 0 : s != t)
				return k->name;
		} else if (number_get(k, x) != number_get(k, y)) {
			return k->name;
		}
	}
	return NULL;
}

static void retired_in(const struct key *keys, const void *object, const char *prefix, keys_tell *tell,
		       void *owner)
{
	for (const struct key *k = keys; k->name; k++) {
		char name[FIELDS_MAX_KEY];

		snprintf(name, sizeof name, "%s%s%s", prefix, k->name, k->kind == KEY_PART ? "." : "");
		if (k->kind == KEY_PART)
			retired_in(k->part, place_of(k, object), name, tell, owner);
		else if (k->kind == KEY_RETIRED && *(const bool *)place_of(k, object))
			tell(owner, name);
	}
}

void keys_retired(const struct key *keys, const void *object, keys_tell *tell, void *owner)
{
	retired_in(keys, object, "", tell, owner);
}

/* ---- objects of named things, and lists ---- */

bool name_is_good(const char *s)
{
	if (strlen(s) > JOB_TYPE_MAX_NAME || !*s || strchr("_.-", *s))
		return false;
	for (; *s; s++) {
		if (!(*s >= 'a' && *s <= 'z') && !(*s >= '0' && *s <= '9') && !strchr("_.-", *s))
			return false;
	}
	return true;
}

void named_read(struct fields *f, const char *key, const struct named_list *l, void *owner, void **out,
		size_t *out_n)
{
	size_t n = json_size(fields_get(f, key));
	struct fields all;

	if (!fields_open_member(&all, f, key, NULL))
		return;
	if (n > l->max) {
		fields_fail(f, ERR_FORMAT, key, "has %zu %s; at most %zu are allowed", n, l->plural, l->max);
		return;
	}
	*out = mem_calloc(n, l->size);
	if (!*out) {
		fields_nomem(f, key);
		return;
	}
	for (const struct json *m = json_first(all.object); m && !all.rc; m = json_next(m))
		l->read(&all, json_key(m), (char *)*out + (*out_n)++ * l->size, owner);
	fields_close(&all, f);
}

void put_strings(struct json_writer *w, char *const *s, size_t n)
{
	if (!n) {
		json_put_null(w);
		return;
	}
	json_open(w, '[');
	for (size_t i = 0; i < n; i++)
		json_put_string(w, s[i]);
	json_close(w, ']');
}

void put_numbers(struct json_writer *w, const double *v, size_t n)
{
	if (!n) {
		json_put_null(w);
		return;
	}
	json_open(w, '[');
	for (size_t i = 0; i < n; i++)
		json_put_number(w, v[i]);
	json_close(w, ']');
}
