/* The machine of a simulation: "cores=16,slots=32" or a JSON file with these keys (configs/clusters/).
 *
 * A machine of several nodes is one of two things. With `place` spread the processes of every job are spread
 * over all nodes, so that all jobs share all of it. Otherwise each job stays on one node, and shares cores,
 * disk, slots and memory with the jobs of that node alone; `place` says how its node is chosen. */
#ifndef SIM_WORLD_CLUSTER_H
#define SIM_WORLD_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json/json.h"

#define CLUSTER_MAX_CORES 1e6
#define CLUSTER_MAX_NODES 65536
#define CLUSTER_MAX_SLOTS 10000000
#define CLUSTER_MAX_GPUS 1000000

enum cluster_place {
	PLACE_SPREAD,       /* processes of a job are spread over all nodes: the default */
	PLACE_LEAST_LOADED, /* a job stays on the node with the fewest cpus of jobs that run or wait there */
	PLACE_PROMISE,      /* the first of the least loaded nodes that promises its limit */
	CLUSTER_PLACES,
};
extern const char *const cluster_place_name[CLUSTER_PLACES + 1]; /* "spread", ...; NULL at the end */

struct cluster {
	double cores;       /* of all nodes together */
	uint32_t slots;     /* cpus handed out to jobs; default: the cores, rounded down, at least 1 */
	uint32_t nodes;     /* equal ones; default 1 */
	double memory_mb;   /* INFINITY: no limit, the default */
	bool counts_gpus;   /* devices, handed out whole; false: not counted, the default */
	uint32_t gpus;
	bool slots_set;     /* by cluster_set(): they stay when the cores change */
	enum cluster_place place;
};

/* What jobs share: the whole, or one node where each job stays on one. */
struct cluster cluster_shared(const struct cluster *c);
/* How many of them there are. */
static inline uint32_t cluster_parts(const struct cluster *c)
{
	return c->place == PLACE_SPREAD ? 1 : c->nodes;
}

/* A text with '=' is read as keys, unless it is the path of a .json file. ERR_ARG (text) or ERR_FORMAT
 * (file) names key and reason; cores must be given. */
int cluster_parse(const char *text_or_file, struct cluster *out, struct err *err);
int cluster_from_json(const char *where, const struct json *v, struct cluster *out, struct err *err);
/* One key ("cores", "slots", "nodes", "memory_mb", "gpus"). Slots that were not set follow the cores by their
 * ratio. Where a job stays on one node, other nodes are more or fewer of the same size. */
int cluster_set(struct cluster *c, const char *key, double value, struct err *err);
/* an object, which reads back as the same */
void cluster_to_json(const struct cluster *c, struct json_writer *w);

#endif
