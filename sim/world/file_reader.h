/* Reading a world file: the pieces that world_file.c and world_file_categories.c share. Errors are "FILE:
 * key: reason". */
#ifndef SIM_WORLD_FILE_READER_H
#define SIM_WORLD_FILE_READER_H

#include "sim/world/file.h"

#define WORLD_READER_NAME 160 /* bytes of a file's name in an error: of a long path its end */

struct world_reader {
	struct world_file *file;
	const char *name; /* of the file, as errors show it */
	struct err *err;
};

struct world_range {
	double least, most;
	bool whole;
};
extern const struct world_range world_batch_range, world_samples_range, world_epochs_range, world_cpus_range,
	world_njobs_range, world_seconds_range, world_share_range, world_factor_range;

int world_reader_refuse(const struct world_reader *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int world_reader_nomem(const struct world_reader *r);
int world_reader_known_keys(const struct world_reader *r, const char *key, const struct json *object,
                            const char *const *known);
/* A member of the object at `where`; absent: *out stays as it is, and NaN there means that it must be
 * given. */
int world_reader_number(const struct world_reader *r, const char *where, const struct json *object,
                        const char *key, const struct world_range *want, double *out);
int world_reader_check_name(const struct world_reader *r, const char *key, const char *name);
int world_reader_list(const struct world_reader *r, const char *key, const struct json *v, size_t most,
                      const struct world_range *want, struct world_list *out);
/* The same, ascending. */
int world_reader_levels(const struct world_reader *r, const char *key, const struct json *v,
                        const struct world_range *want, struct world_list *out);

/* world_file_categories.c; each accepts an absent part. Factors come first. */
int world_reader_factors(const struct world_reader *r, const struct json *v);
int world_reader_campaign(const struct world_reader *r, const struct json *v);
int world_reader_accuracies(const struct world_reader *r, const struct json *v);

#endif
