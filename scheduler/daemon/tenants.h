/* Who shares the machine: the tenants of the configuration, and users that belong to none, each a tenant of its own. A
 * tenant keeps its number, by which the scheduler counts its usage, for the life of the daemon, whatever a reload
 * changes. */
#ifndef SCHEDULER_DAEMON_TENANTS_H
#define SCHEDULER_DAEMON_TENANTS_H

#include "common/json/json.h"
#include "scheduler/config/config.h"
#include "scheduler/core/sched.h"
#include "scheduler/daemon/net/server.h"

struct tenants { /* all zero: none yet */
	struct sched_tenant *tenant; size_t n, cap; /* names are kept for good (jobs.h: name_keep()) */
};
void tenants_free(struct tenants *t);

/* The number of the tenant that a connection's user belongs to; new ones are told to the scheduler. */
int tenants_of(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns, const struct conn *conn,
               uint32_t *out, struct err *err);
/* The number of the tenant of that name, as a job in the store has it. */
int tenants_named(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns, const char *name,
                  uint32_t *out, struct err *err);
/* After a reload: weights and quotas as they are now. */
int tenants_refresh(struct tenants *t, const struct config *c, struct sched *s, int64_t now_ns, struct err *err);
const char *tenants_name(const struct tenants *t, uint32_t number);
void tenants_json(const struct tenants *t, struct sched *s, int64_t now_ns, struct json_writer *w); /* "tenants" */

#endif
