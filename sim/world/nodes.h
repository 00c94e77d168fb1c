/* The nodes of a cluster in which each job stays on one of them: a run of the world for each, and which of
 * them has the next end. An event costs what it costs on its node, and the depth of a tree over the nodes.
 * A machine that all jobs share is the case of one. */
#ifndef SIM_WORLD_NODES_H
#define SIM_WORLD_NODES_H

#include "sim/world/world.h"

struct world_nodes;
int world_nodes_new(const struct world *w, size_t fold, struct world_nodes **out, struct err *err);
void world_nodes_free(struct world_nodes *n);
uint32_t world_nodes_count(const struct world_nodes *n);
struct world_run *world_nodes_run(struct world_nodes *n, uint32_t node); /* of one, to look at */

/* As those of a run (world.h), each on one node. */
int world_nodes_start(struct world_nodes *n, uint32_t node, int64_t now_ns, const struct world_job *j,
                      struct err *err);
int64_t world_nodes_next(struct world_nodes *n);
/* Of jobs that end at the same moment on different nodes the first node's comes first. */
bool world_nodes_end(struct world_nodes *n, struct world_end *out);
int world_nodes_stop(struct world_nodes *n, uint32_t node, int64_t now_ns, uint64_t id, struct world_end *out,
                     struct err *err);
size_t world_nodes_running(const struct world_nodes *n);
double world_nodes_busy_s(const struct world_nodes *n); /* of all together, and so are the events */
uint64_t world_nodes_events(const struct world_nodes *n);

#endif
