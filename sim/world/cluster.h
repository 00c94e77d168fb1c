/* The machine of a simulation: "cores=16,slots=32" or a JSON file with these keys (configs/clusters/). */
#ifndef SIM_WORLD_CLUSTER_H
#define SIM_WORLD_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"

#define CLUSTER_MAX_CORES 1e6
#define CLUSTER_MAX_NODES 65536
#define CLUSTER_MAX_SLOTS 10000000

struct cluster {
	double cores;       /* of all nodes together */
	uint32_t slots;     /* cpus handed out to jobs; default: the cores, rounded down, at least 1 */
	uint32_t nodes;     /* equal ones; default 1 */
	double memory_mb;   /* INFINITY: no limit, the default */
	bool slots_set;     /* by cluster_set(): they stay when the cores change */
};

/* A text with '=' is read as keys, unless it is the path of a .json file. ERR_ARG (text) or ERR_FORMAT
 * (file) names key and reason; cores must be given. */
int cluster_parse(const char *text_or_file, struct cluster *out, struct err *err);
int cluster_from_json(const char *where, const struct json *v, struct cluster *out, struct err *err);
/* One key ("cores", "slots", "nodes", "memory_mb"). Slots that were not set follow the cores by their
 * ratio. */
int cluster_set(struct cluster *c, const char *key, double value, struct err *err);
/* an object, which reads back as the same */
void cluster_to_json(const struct cluster *c, struct json_writer *w);

#endif
