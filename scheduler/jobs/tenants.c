/* Tenants by number and by name. See tenants.h. */
#include "scheduler/jobs/tenants.h"

#include <stdlib.h>

#include "common/mem.h"

void tenants_free(struct tenants *t)
{
	names_release(&t->names);
	free(t->tenant);
	*t = (struct tenants){ 0 };
}

/* What the configuration says of a tenant. A user who belongs to none has weight 1 and no quota. */
static struct sched_tenant as_configured(const struct config *c, const char *name)
{
	int at = config_tenant_find(c, name);
	struct sched_tenant one = { .name = name, .weight = 1.0 };

	if (at >= 0) {
		one.weight = c->tenant[at].weight;
		one.max_queued = c->tenant[at].max_queued;
		one.max_cpus = c->tenant[at].max_cpus;
		one.max_devices = c->tenant[at].max_gpus;
	}
	return one;
}

int tenants_named(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns,
		  const char *name, uint32_t *out, struct err *err)
{
	int number = names_number(&t->names, name), rc;

	if (number < 0 || number >= SCHED_MAX_TENANTS ||
	    mem_grow((void **)&t->tenant, &t->cap, t->names.n, sizeof *t->tenant))
		return err_fail(err, ERR_NOMEM, "no room for another tenant");
	if ((size_t)number >= t->n) {
		/* More than one name may be new: the scheduler may have refused an earlier one. */
		for (size_t i = t->n; i <= (size_t)number; i++)
			t->tenant[i] = as_configured(c, t->names.name[i]);
		rc = sched_set_tenants(s, now_ns, t->tenant, (size_t)number + 1, err);
		if (rc)
			return rc;
		t->n = (size_t)number + 1;
	}
	*out = (uint32_t)number;
	return 0;
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

size_t tenants_json(const struct tenants *t, struct sched *s, int64_t now_ns, size_t from, size_t most,
		    struct json_writer *w)
{
	size_t i = from;

	for (; i < t->n && i - from < most; i++) {
		struct sched_share share;

		if (sched_share(s, now_ns, (uint32_t)i, &share, NULL))
			continue;
		json_open(w, '{');
		json_kv_string(w, "tenant", t->tenant[i].name);
		json_kv_number(w, "weight", t->tenant[i].weight);
		json_kv_int(w, "queued", (long long)share.queued);
		json_kv_int(w, "running", (long long)share.running);
		json_kv_int(w, "cpus", (long long)share.cpus);
		json_kv_int(w, "gpus", (long long)share.devices);
		json_kv_fixed(w, "usage_cpu_s", share.usage_cpu_s, 3);
		json_kv_fixed(w, "standing", share.standing, 3);
		json_close(w, '}');
	}
	return i;
}
