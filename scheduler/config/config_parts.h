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

/* http.c */
extern const struct key http_keys[];
void http_check(struct fields *f, void *config_http);
void http_release(struct config *c);

/* notify.c */
void notify_read(struct fields *f, const char *name, void *config);
void notify_write(const void *config, struct json_writer *w);

#endif
