/* The file of the worlds `queueing` and `fluid`: a machine, what an iteration costs, how accurate a network
 * gets (configs/worlds/, whose README.md says every key). Without a file the built-in one is taken, which is
 * configs/worlds/two-cores.json. */
#ifndef SIM_WORLD_FILE_H
#define SIM_WORLD_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/json/json.h"
#include "sim/world/cluster.h"

#define WORLD_FILE_MAX_BYTES ((size_t)1 << 20)
#define WORLD_FILE_MAX_CATEGORIES 8
#define WORLD_FILE_MAX_VALUES 256    /* of a category */
#define WORLD_FILE_MAX_LEVELS 64     /* of a list */
#define WORLD_FILE_MAX_MEASURED 10000
#define WORLD_FILE_MAX_SECONDS 1e6   /* of a cost */
#define WORLD_FILE_MAX_SAMPLES 1e9
#define WORLD_FILE_MAX_EPOCHS 1e6
#define WORLD_FILE_MAX_BATCH 1e6
#define WORLD_FILE_MAX_NJOBS 1024
#define WORLD_FILE_MAX_PAIR 10.0     /* a factor, or a tenth */

struct world_accuracy {           /* best * iterations / (iterations + half_iterations) + noise * normal */
	double best, half_iterations, noise; /* best NaN: not known */
};

struct world_value {              /* of a category: "lenet5" */
	char *name;
	double record, fixed, disk; /* factors on the costs */
	struct world_accuracy accuracy;
	bool in_campaign;
};

struct world_category {           /* a column of the trace: "network" */
	char *column;
	struct world_value *value; size_t n_values;
};

struct world_list {
	double *v; size_t n;      /* ascending */
};

enum world_disk_law { WORLD_DISK_EXPONENTIAL, WORLD_DISK_CONSTANT, WORLD_DISK_MEASURED };

struct world_file {
	char *name;               /* what errors call it */
	struct cluster cluster;
	double samples, epochs;   /* of jobs that do not say */
	struct world_list batch;
	struct world_list cpus, njobs, epochs_levels, samples_levels; /* of the campaign */
	struct world_list gpus;   /* the same; {0} where devices cost nothing */
	double fixed_s, record_s, exponent, disk_s, disk_record_s;
	double device_s, device_record_s; /* of jobs with gpus, which compute their records there */
	struct world_category *category; size_t n_categories;
	/* where there are no categories; else those of the first category's values count */
	struct world_accuracy accuracy;
	/* Neighbours by kind: the logarithms of factors, n_values x n_values of category pair_of; NULL:
	 * none. */
	double *log_pair;
	size_t pair_of;
	enum world_disk_law disk_law;
	struct world_list measured; /* service times as they were given, scaled to a mean of 1 */
	bool barrier;
};

/* path NULL: the built-in one. ERR_FORMAT: "FILE: key: reason". */
int world_file_read(const char *path, struct world_file **out, struct err *err);
int world_file_parse(const char *name, const char *text, size_t len, struct world_file **out,
                     struct err *err);
bool world_file_has_devices(const struct world_file *f); /* jobs with gpus take another time */
void world_file_free(struct world_file *f);
/* Members of an open object: the file, costs, laws. */
void world_file_describe(const struct world_file *f, struct json_writer *w);
extern const char world_file_builtin[]; /* its text */

/* ---- jobs ---- */
struct world_work {               /* of one job */
	double iterations;        /* whole, at least 1 */
	/* of one process in one iteration, alone on the machine */
	double compute_s, disk_s, device_s;
};
/* What a job of these values takes: value[k] of category k (NULL where there are none). */
struct world_work world_file_work(const struct world_file *f, const struct world_value *const *value,
                                  double cpus, double gpus, double batch, double samples, double epochs);

#endif
