#include "scheduler/daemon/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/daemon/jobs.h"

void tenants_free(struct tenants *t)
{
	free(t->tenant);
	*t = (struct tenants){ 0 };
}

/* What the configuration says of it; a user of its own has weight 1 and no quota. */
static struct sched_tenant as_configured(const struct config *c, const char *name)
{
	int at = config_tenant_find(c, name);
	struct sched_tenant one = { .name = name, .weight = 1.0 };

	if (at >= 0) {
		one.weight = c->tenant[at].weight;
		one.max_queued = c->tenant[at].max_queued;
		one.max_cpus = c->tenant[at].max_cpus;
	}
	return one;
}

int tenants_named(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns,
		  const char *name, uint32_t *out, struct err *err)
{
	int rc;

	for (size_t i = 0; i < t->n; i++) {
		if (!strcmp(t->tenant[i].name, name)) {
			*out = (uint32_t)i;
			return 0;
		}
	}
	if (t->n == SCHED_MAX_TENANTS || mem_grow((void **)&t->tenant, &t->cap, t->n + 1, sizeof *t->tenant))
		return err_fail(err, ERR_NOMEM, "no room for another tenant");
	t->tenant[t->n] = as_configured(c, name_keep(name));
	rc = sched_set_tenants(s, now_ns, t->tenant, t->n + 1, err);
	if (!rc)
		*out = (uint32_t)t->n++;
	return rc;
}

static bool in_group(void *owner, uid_t uid, gid_t gid)
{
	(void)uid;
	return conn_in_group(owner, gid);
}

int tenants_of(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns,
	       const struct conn *conn, uint32_t *out, struct err *err)
{
	int at = config_tenant_of(c, conn_uid(conn), in_group, (void *)conn);
	char own[32];

	snprintf(own, sizeof own, "uid %u", (unsigned)conn_uid(conn));
	return tenants_named(t, c, s, now_ns, at >= 0 ? c->tenant[at].name : own, out, err);
}

int tenants_refresh(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns,
		    struct err *err)
{
	for (size_t i = 0; i < t->n; i++)
		t->tenant[i] = as_configured(c, t->tenant[i].name);
	return t->n ? sched_set_tenants(s, now_ns, t->tenant, t->n, err) : 0;
}

const char *tenants_name(const struct tenants *t, uint32_t number)
{
	return number < t->n ? t->tenant[number].name : "?";
}

void tenants_json(const struct tenants *t, struct sched *s, int64_t now_ns, struct json_writer *w)
{
	json_put_key(w, "tenants");
	json_open(w, '[');
	for (size_t i = 0; i < t->n; i++) {
		struct sched_share share;

		if (sched_share(s, now_ns, (uint32_t)i, &share, NULL))
			continue;
		json_open(w, '{');
		json_kv_string(w, "tenant", t->tenant[i].name);
		json_kv_number(w, "weight", t->tenant[i].weight);
		json_kv_int(w, "queued", (long long)share.queued);
		json_kv_int(w, "running", (long long)share.running);
		json_kv_int(w, "cpus", (long long)share.cpus);
		json_kv_fixed(w, "usage_cpu_s", share.usage_cpu_s, 3);
		json_kv_fixed(w, "standing", share.standing, 3);
		json_close(w, '}');
	}
	json_close(w, ']');
}
