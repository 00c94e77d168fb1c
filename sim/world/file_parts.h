/* What the files that read a world file share. */
#ifndef SIM_WORLD_FILE_PARTS_H
#define SIM_WORLD_FILE_PARTS_H

#include "common/json/fields.h"
#include "sim/world/file.h"

#define WORLD_NAME_SHOWN 160 /* bytes of a file's name in an error: of a long path its end */

extern const struct text_limits world_samples, world_epochs;

/* An ascending list. */
void world_levels(struct fields *f, const char *key, const struct text_limits *want, struct world_list *out);

/* Parts of the open file (file_categories.c); each accepts an absent part. Factors come first. */
void world_factors(struct fields *f, struct world_file *file);
void world_campaign(struct fields *f, struct world_file *file);
void world_pairs(struct fields *f, struct world_file *file);
void world_accuracies(struct fields *f, struct world_file *file);

#endif
