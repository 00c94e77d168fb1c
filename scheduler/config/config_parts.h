/* What the files behind config.h share: config.c (the table, reading, writing, questions), tenants.c (admins
 * and tenants), notify.c. */
#ifndef SCHEDULER_CONFIG_CONFIG_PARTS_H
#define SCHEDULER_CONFIG_CONFIG_PARTS_H

#include "scheduler/config/config.h"
#include "scheduler/config/keys.h"

#define CONFIG_MAX_USER_NAME 256 /* of users and groups */
#define CONFIG_MAX_POLICY 64
#define CONFIG_MAX_COUNT 1000000 /* jobs, connections */

/* config.c */
extern const struct key config_keys[];
extern const char *const on_late_name[]; /* enum config_on_late, NULL after the last */

/* tenants.c */
extern const struct key admin_keys[], tenant_keys[];
void tenants_read(struct fields *f, const char *name, void *config);
void tenants_write(const void *config, struct json_writer *w);
void default_tenant_read(struct fields *f, const char *name, void *config);
void default_tenant_write(const void *config, struct json_writer *w);
void tenants_release(struct config *c);

/* engines.c */
#define ENGINE_MAX_WORD 128 /* bytes of an account or a partition */
extern const struct key engine_keys[];
void engines_read(struct fields *f, const char *name, void *config);
void engines_write(const void *config, struct json_writer *w);
void engines_release(struct config *c);
/* Every executor that is named is there; after everything was read. */
void executors_resolve(struct fields *f, struct config *c);
void engine_account_read(struct fields *f, const char *name, void *engine);
void engine_partition_read(struct fields *f, const char *name, void *engine);
void tenant_account_read(struct fields *f, const char *name, void *tenant);
void tenant_partition_read(struct fields *f, const char *name, void *tenant);

/* http.c */
extern const struct key http_keys[];
void http_check(struct fields *f, void *config_http);
void http_release(struct config *c);

/* resources.c */
extern const struct key resources_keys[];
void resources_check(struct fields *f, void *config_resources);
void resources_release(struct config *c);

/* notify.c */
void notify_read(struct fields *f, const char *name, void *config);
void notify_write(const void *config, struct json_writer *w);

#endif
