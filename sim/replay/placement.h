/* On which node of a cluster a job is tried: the least loaded ones first. The load of a node is the cpus of
 * the jobs that run or wait there. */
#ifndef SIM_REPLAY_PLACEMENT_H
#define SIM_REPLAY_PLACEMENT_H

#include "common/tournament.h"

#define PLACEMENT_MOST 16 /* nodes that may be asked for */

struct placement {
	struct tournament load; /* by node */
};
int placement_init(struct placement *p, uint32_t nodes); /* 0, or -1 without memory */
void placement_release(struct placement *p);
void placement_change(struct placement *p, uint32_t node, int64_t cpus); /* as many more; fewer below 0 */
/* The least loaded nodes, in that order, the first of equals first. Returns how many, at most `most`. */
uint32_t placement_least(struct placement *p, uint32_t *out, uint32_t most);

#endif
