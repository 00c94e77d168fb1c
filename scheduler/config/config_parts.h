/* What the files behind config.h share: config.c (reading, writing, questions), config_people.c (admins and tenants),
 * config_late.c (notify, on_late), config_learning.c. */
#ifndef SCHEDULER_CONFIG_CONFIG_PARTS_H
#define SCHEDULER_CONFIG_CONFIG_PARTS_H

#include "scheduler/config/config.h"
#include "common/json/fields.h"

#define CONFIG_MAX_SECONDS 1e7
#define CONFIG_MAX_COUNT 1000000 /* jobs, connections */
#define CONFIG_MAX_USER_NAME 256 /* of users and groups */

extern const char *const on_late_name[]; /* enum config_on_late, NULL after the last */

/* Each reads its keys of the open file, and writes them as members of the open object. */
void admins_read(struct fields *f, struct config *c);
void admins_write(const struct config *c, struct json_writer *w);
void tenants_read(struct fields *f, struct config *c); /* after late_read(): on_late is inherited */
void tenants_write(const struct config *c, struct json_writer *w);
void tenants_release(struct config *c);
void late_read(struct fields *f, struct config *c);
void late_write(const struct config *c, struct json_writer *w);
void late_release(struct config *c);
void learning_default(struct config_learning *l);
void learning_read(struct fields *f, struct config_learning *l);
void learning_write(const struct config_learning *l, struct json_writer *w);
void learning_release(struct config_learning *l);

#endif
