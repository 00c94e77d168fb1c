/* Who is who: admins, and the tenants whose jobs share the machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/config_parts.h"
#include "common/places.h"

#define MIN_WEIGHT 0.001
#define MAX_WEIGHT 1e6
#define MAX_CPUS 1000000

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "Linux's ids");

/* ---- users and groups ---- */

/* One entry of a list: a name of this machine, or a number. */
static void read_id(struct fields *f, const char *key, const struct json *v, bool group, uint32_t *out)
{
	double number = json_number(v, NAN);
	struct err why = { 0 };
	char *name = NULL;
	uid_t uid = 0;
	gid_t gid = 0;
	int rc;

	if (json_type(v) == JSON_NUMBER) {
		if (!(number >= 0.0 && number < UINT32_MAX) || number != floor(number))
			fields_fail(f, ERR_FORMAT, key, "is no number of a %s", group ? "group" : "user");
		else
			*out = (uint32_t)number;
		return;
	}
	field_text_value(f, key, v, CONFIG_MAX_USER_NAME, &name);
	if (!name)
		return;
	rc = group ? place_group(name, &gid, &why) : place_user(name, &uid, &why);
	if (rc)
		fields_fail(f, why.code == ERR_NOTFOUND ? ERR_FORMAT : why.code, key, "%s", why.text);
	*out = group ? gid : uid;
	free(name);
}

/* Into id[], which has room for `max`. */
static void read_ids(struct fields *f, const char *name, bool group, size_t max, uint32_t *id, size_t *n)
{
	const struct json *list = fields_list(f, name, 0, max);
	char key[32];

	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		snprintf(key, sizeof key, "%s[%zu]", name, *n);
		read_id(f, key, e, group, &id[*n]);
		++*n;
	}
}

static void put_ids(struct json_writer *w, const char *key, const uint32_t *id, size_t n)
{
	json_put_key(w, key);
	json_open(w, '[');
	for (size_t i = 0; i < n; i++)
		json_put_int(w, id[i]);
	json_close(w, ']');
}

void admins_read(struct fields *f, struct config *c)
{
	static const char *const known[] = { "users", "groups", NULL };
	struct fields a;

	if (!fields_open_member(&a, f, "admins", known))
		return;
	read_ids(&a, "users", false, CONFIG_MAX_ADMINS, c->admin_uid, &c->n_admin_uids);
	read_ids(&a, "groups", true, CONFIG_MAX_ADMINS, c->admin_gid, &c->n_admin_gids);
	fields_close(&a, f);
}

void admins_write(const struct config *c, struct json_writer *w)
{
	json_put_key(w, "admins");
	json_open(w, '{');
	put_ids(w, "users", c->admin_uid, c->n_admin_uids);
	put_ids(w, "groups", c->admin_gid, c->n_admin_gids);
	json_close(w, '}');
}

/* ---- tenants: reading ---- */

void tenants_release(struct config *c)
{
	for (size_t i = 0; i < c->n_tenants; i++) {
		free(c->tenant[i].name);
		free(c->tenant[i].uid);
		free(c->tenant[i].gid);
	}
	free(c->tenant);
}

/* As names of types are; in particular no "uid:1000", which stands for somebody who is in no tenant. */
static bool name_is_good(const char *s)
{
	if (strlen(s) > JOB_TYPE_MAX_NAME || !*s || strchr("_.-", *s))
		return false;
	for (; *s; s++) {
		if (!(*s >= 'a' && *s <= 'z') && !(*s >= '0' && *s <= '9') && !strchr("_.-", *s))
			return false;
	}
	return true;
}

static void read_members(struct fields *f, const char *key, bool group, uint32_t **id, size_t *n)
{
	const struct json *list = fields_list(f, key, 0, CONFIG_MAX_MEMBERS);

	if (!list)
		return;
	*id = mem_calloc(json_size(list), sizeof **id);
	if (!*id)
		fields_nomem(f, key);
	else
		read_ids(f, key, group, CONFIG_MAX_MEMBERS, *id, n);
}

/* t is zeroed and counted, so that a half-read one is freed too. */
static void read_tenant(struct fields *all, const char *name, struct config_tenant *t,
			enum config_on_late otherwise)
{
	static const char *const known[] = { "users",    "groups",  "weight", "max_queued",
					     "max_cpus", "on_late", NULL };
	int on_late = (int)otherwise;
	uint64_t max_cpus = 0;
	struct fields f;

	if (!name_is_good(name)) {
		fields_fail(all, ERR_FORMAT, name,
			    "is no name of a tenant: small letters, digits and _ . -, a letter or digit "
			    "first, at "
			    "most %d",
			    JOB_TYPE_MAX_NAME);
		return;
	}
	t->name = mem_strdup(name);
	if (!t->name) {
		fields_nomem(all, name);
		return;
	}
	if (!fields_open_member(&f, all, name, known)) {
		fields_fail(all, ERR_FORMAT, name, "must be an object { ... }"); /* null */
		return;
	}
	t->weight = 1.0;
	read_members(&f, "users", false, &t->uid, &t->n_uids);
	read_members(&f, "groups", true, &t->gid, &t->n_gids);
	field_number(&f, "weight", MIN_WEIGHT, MAX_WEIGHT, &t->weight);
	field_size(&f, "max_queued", 0, CONFIG_MAX_COUNT, &t->max_queued);
	field_whole(&f, "max_cpus", 0, MAX_CPUS, &max_cpus);
	field_choice(&f, "on_late", on_late_name, &on_late);
	t->max_cpus = (uint32_t)max_cpus;
	t->on_late = (enum config_on_late)on_late;
	fields_close(&f, all);
}

struct member {
	uint32_t id;
	size_t tenant;
};

static int by_id(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* A user, or a group, that two tenants claim: whose jobs would they be? */
static void refuse_twice(struct fields *all, const struct config *c, bool group)
{
	struct member *m;
	size_t n = 0, filled = 0;

	for (size_t i = 0; i < c->n_tenants; i++)
		n += group ? c->tenant[i].n_gids : c->tenant[i].n_uids;
	m = all->rc ? NULL : mem_array(n, sizeof *m);
	if (!m) {
		fields_nomem(all, group ? "groups" : "users");
		return;
	}
	for (size_t i = 0; i < c->n_tenants; i++) {
		const struct config_tenant *t = &c->tenant[i];

		for (size_t k = 0; k < (group ? t->n_gids : t->n_uids); k++)
			m[filled++] = (struct member){ group ? t->gid[k] : t->uid[k], i };
	}
	qsort(m, n, sizeof *m, by_id);
	for (size_t i = 1; i < n && !all->rc; i++) {
		if (m[i].id == m[i - 1].id)
			fields_fail(all, ERR_FORMAT, c->tenant[m[i].tenant].name,
				    "the %s with the number %u is named twice, here or in the tenant %s",
				    group ? "group" : "user", (unsigned)m[i].id,
				    c->tenant[m[i - 1].tenant].name);
	}
	free(m);
}

static void read_default(struct fields *f, struct config *c)
{
	const char *known[CONFIG_MAX_TENANTS + 1] = { NULL };
	char *name = NULL, shown[64], hint[TEXT_HINT];

	field_text(f, "default_tenant", JOB_TYPE_MAX_NAME, &name);
	if (!name)
		return;
	c->default_tenant = config_tenant_find(c, name);
	if (c->default_tenant < 0) {
		for (size_t i = 0; i < c->n_tenants; i++)
			known[i] = c->tenant[i].name;
		fields_fail(f, ERR_FORMAT, "default_tenant", "there is no tenant '%s'%s",
			    text_printable(name, shown, sizeof shown), text_hint(name, known, hint));
	}
	free(name);
}

void tenants_read(struct fields *f, struct config *c)
{
	size_t n = json_size(fields_get(f, "tenants"));
	struct fields all;

	field_number(f, "fair_window_s", 1.0, CONFIG_MAX_SECONDS, &c->fair_window_s);
	if (n > CONFIG_MAX_TENANTS)
		fields_fail(f, ERR_FORMAT, "tenants", "has %zu tenants; at most %d are allowed", n,
			    CONFIG_MAX_TENANTS);
	if (fields_open_member(&all, f, "tenants", NULL)) {
		c->tenant = mem_calloc(n, sizeof *c->tenant);
		if (!c->tenant)
			fields_nomem(f, "tenants");
		for (const struct json *m = json_first(all.object); m && !all.rc && !f->rc; m = json_next(m))
			read_tenant(&all, json_key(m), &c->tenant[c->n_tenants++], c->on_late);
		refuse_twice(&all, c, false);
		refuse_twice(&all, c, true);
		fields_close(&all, f);
	}
	read_default(f, c);
}

/* ---- tenants: writing and questions ---- */

void tenants_write(const struct config *c, struct json_writer *w)
{
	json_put_key(w, "tenants");
	json_open(w, '{');
	for (size_t i = 0; i < c->n_tenants; i++) {
		const struct config_tenant *t = &c->tenant[i];

		json_put_key(w, t->name);
		json_open(w, '{');
		put_ids(w, "users", t->uid, t->n_uids);
		put_ids(w, "groups", t->gid, t->n_gids);
		json_kv_number(w, "weight", t->weight);
		json_kv_int(w, "max_queued", (long long)t->max_queued);
		json_kv_int(w, "max_cpus", t->max_cpus);
		json_kv_string(w, "on_late", on_late_name[t->on_late]);
		json_close(w, '}');
	}
	json_close(w, '}');
	json_kv_string(w, "default_tenant", c->default_tenant < 0 ? NULL : c->tenant[c->default_tenant].name);
	json_kv_number(w, "fair_window_s", c->fair_window_s);
}

int config_tenant_find(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_tenants; i++) {
		if (!strcmp(c->tenant[i].name, name))
			return (int)i;
	}
	return -1;
}

int config_tenant_of(const struct config *c, uid_t uid, config_in_group *in_group, void *owner)
{
	for (size_t i = 0; i < c->n_tenants; i++) {
		for (size_t k = 0; k < c->tenant[i].n_uids; k++) {
			if (c->tenant[i].uid[k] == uid)
				return (int)i;
		}
	}
	for (size_t i = 0; in_group && i < c->n_tenants; i++) {
		for (size_t k = 0; k < c->tenant[i].n_gids; k++) {
			if (in_group(owner, uid, c->tenant[i].gid[k]))
				return (int)i;
		}
	}
	return c->default_tenant;
}
