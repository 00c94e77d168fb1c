/* Who shares the machine: the tenants of the configuration. A user who belongs to none is a separate tenant.
 * A tenant keeps its number, by which the scheduler counts its usage, for the life of the daemon; a reload
 * changes no number. */
#ifndef SCHEDULER_JOBS_TENANTS_H
#define SCHEDULER_JOBS_TENANTS_H

#include "common/json/json.h"
#include "scheduler/config/config.h"
#include "scheduler/core/sched.h"
#include "scheduler/jobs/names.h"

struct tenants { /* all zero: none yet */
	struct names names; /* a tenant's number is the number of its name */
	struct sched_tenant *tenant; size_t n, cap;
};
void tenants_free(struct tenants *t);

/* The number of the tenant of that name. The scheduler learns of a new one. ERR_NOMEM: there are
 * SCHED_MAX_TENANTS. */
int tenants_named(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns,
                  const char *name, uint32_t *out, struct err *err);
/* After a reload: weights and quotas as they are now. */
int tenants_refresh(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns,
                    struct err *err);
const char *tenants_name(const struct tenants *t, uint32_t number);
/* Writes tenants into the open list: at most `most` from the number `from` on. Returns the number of the
 * next. */
size_t tenants_json(const struct tenants *t, struct sched *s, int64_t now_ns, size_t from, size_t most,
		    struct json_writer *w);

#endif
