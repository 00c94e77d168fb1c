/* Users: admins, and the tenants whose jobs share the machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/config_parts.h"

const struct key admin_keys[] = {
	{ "users", KEY_USERS, .at = offsetof(struct config, admin_users), .max = CONFIG_MAX_ADMINS },
	{ "groups", KEY_GROUPS, .at = offsetof(struct config, admin_groups), .max = CONFIG_MAX_ADMINS },
	{ 0 },
};

#define AT(member) .at = offsetof(struct config_tenant, member)
const struct key tenant_keys[] = {
	{ "users", KEY_USERS, AT(users), .max = CONFIG_MAX_MEMBERS },
	{ "groups", KEY_GROUPS, AT(groups), .max = CONFIG_MAX_MEMBERS },
	{ "weight", KEY_NUMBER, AT(weight), 0.001, 1e6, 1.0 },
	{ "max_queued", KEY_SIZE, AT(max_queued), 0, CONFIG_MAX_COUNT, 0 },
	{ "max_cpus", KEY_UINT32, AT(max_cpus), 0, 1000000, 0 },
	{ "max_gpus", KEY_UINT32, AT(max_gpus), 0, JOB_TYPE_MAX_GPUS, 0 },
	{ "on_late", KEY_CHOICE, AT(on_late), .choice = on_late_name },
	{ "chance", KEY_NUMBER, AT(chance), 0.0, 0.9999, .initial = NAN },
	{ "value_budget", KEY_NUMBER, AT(value_budget), 0.0, 1e6, 0.0 },
	{ "account", KEY_TEXT, AT(account), .read = tenant_account_read },
	{ "partition", KEY_TEXT, AT(partition), .read = tenant_partition_read },
	{ 0 },
};
#undef AT

void tenants_release(struct config *c)
{
	for (size_t i = 0; i < c->n_tenants; i++) {
		free(c->tenant[i].name);
		keys_release(tenant_keys, &c->tenant[i]);
	}
	free(c->tenant);
}

/* In particular no tenant is called "uid:1000", which stands for a user who is in none. */
static void read_tenant(struct fields *all, const char *name, void *one, void *owner)
{
	const struct config *c = owner;
	struct config_tenant *t = one;
	const char *known[KEYS_MAX + 1];
	struct fields f;

	if (!name_is_good(name)) {
		fields_fail(all, ERR_FORMAT, name, "is not a name of a tenant: " NAME_RULE " %d",
			    JOB_TYPE_MAX_NAME);
		return;
	}
	t->name = mem_strdup(name);
	if (!t->name) {
		fields_nomem(all, name);
		return;
	}
	keys_names(tenant_keys, known);
	if (!fields_open_member(&f, all, name, known)) {
		fields_fail(all, ERR_FORMAT, name, "must be an object { ... }"); /* null */
		return;
	}
	keys_default(tenant_keys, t);
	t->on_late = c->on_late;
	t->chance = c->chance;
	keys_read(&f, tenant_keys, t);
	fields_close(&f, all);
}

/* ---- all tenants ---- */

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
static void refuse_twice(struct fields *f, const char *key, const struct config *c, bool group)
{
	struct member *m;
	char where[JOB_TYPE_MAX_NAME + 32];
	size_t n = 0, filled = 0;

	for (size_t i = 0; i < c->n_tenants; i++)
		n += group ? c->tenant[i].groups.n : c->tenant[i].users.n;
	m = f->rc ? NULL : mem_array(n, sizeof *m);
	if (!m) {
		fields_nomem(f, key);
		return;
	}
	for (size_t i = 0; i < c->n_tenants; i++) {
		const struct id_list *ids = group ? &c->tenant[i].groups : &c->tenant[i].users;

		for (size_t k = 0; k < ids->n; k++)
			m[filled++] = (struct member){ ids->id[k], i };
	}
	qsort(m, n, sizeof *m, by_id);
	for (size_t i = 1; i < n && !f->rc; i++) {
		snprintf(where, sizeof where, "%s.%s", key, c->tenant[m[i].tenant].name);
		if (m[i].id == m[i - 1].id)
			fields_fail(f, ERR_FORMAT, where,
				    "the %s with the number %u is named twice, here or in the tenant %s",
				    group ? "group" : "user", (unsigned)m[i].id,
				    c->tenant[m[i - 1].tenant].name);
	}
	free(m);
}

void tenants_read(struct fields *f, const char *name, void *object)
{
	static const struct named_list tenants = { "tenants", CONFIG_MAX_TENANTS,
						   sizeof(struct config_tenant), read_tenant };
	struct config *c = object;

	named_read(f, name, &tenants, c, (void **)&c->tenant, &c->n_tenants);
	refuse_twice(f, name, c, false);
	refuse_twice(f, name, c, true);
}

void tenants_write(const void *object, struct json_writer *w)
{
	const struct config *c = object;

	json_open(w, '{');
	for (size_t i = 0; i < c->n_tenants; i++) {
		json_kv_open(w, c->tenant[i].name, '{');
		keys_write(tenant_keys, &c->tenant[i], w);
		json_close(w, '}');
	}
	json_close(w, '}');
}

void default_tenant_read(struct fields *f, const char *key, void *object)
{
	const char *known[CONFIG_MAX_TENANTS + 1] = { NULL }, *near;
	struct config *c = object;
	char *name = NULL, shown[64];

	field_text(f, key, JOB_TYPE_MAX_NAME, &name);
	if (!name)
		return;
	c->default_tenant = config_tenant_find(c, name);
	if (c->default_tenant < 0) {
		for (size_t i = 0; i < c->n_tenants; i++)
			known[i] = c->tenant[i].name;
		near = text_nearest(name, known);
		fields_fail(f, ERR_FORMAT, key, "there is no tenant '%s'%s%s%s",
			    text_printable(name, shown, sizeof shown), near ? "; did you mean '" : "",
			    near ? near : "", near ? "'?" : "");
	}
	free(name);
}

void default_tenant_write(const void *object, struct json_writer *w)
{
	const struct config *c = object;

	json_put_string(w, c->default_tenant < 0 ? NULL : c->tenant[c->default_tenant].name);
}

/* ---- questions ---- */

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
		for (size_t k = 0; k < c->tenant[i].users.n; k++) {
			if (c->tenant[i].users.id[k] == uid)
				return (int)i;
		}
	}
	for (size_t i = 0; in_group && i < c->n_tenants; i++) {
		for (size_t k = 0; k < c->tenant[i].groups.n; k++) {
			if (in_group(owner, uid, c->tenant[i].groups.id[k]))
				return (int)i;
		}
	}
	return c->default_tenant;
}
