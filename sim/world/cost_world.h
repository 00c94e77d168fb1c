/* What the worlds `queueing` and `fluid` have in common: a world file, the machines, the kinds of the trace,
 * and that models learn from a designed experiment. Each of them begins with a struct cost_world, so that
 * these serve as members of its ops. */
#ifndef SIM_WORLD_COST_WORLD_H
#define SIM_WORLD_COST_WORLD_H

#include "sim/world/campaign.h"
#include "sim/world/ops.h"
#include "sim/world/queueing_kinds.h"

struct cost_world {
	struct world_file *file;
	struct cluster given, cluster; /* what jobs share (cluster_shared()) */
	struct disturbances disturbances;
	const struct trace *trace; /* NULL: none */
	struct qkind *kind;        /* by kind of the trace */
};

/* Zeroed beforehand; to be released after an error, too. */
int cost_world_init(struct cost_world *w, const struct world_open *o, struct world_machines *out,
                    struct err *err);
void cost_world_release(struct cost_world *w);

int cost_world_training(const struct cost_world *w, campaign_play *play, uint64_t seed, struct csv **out,
                        struct err *err);
void cost_world_split_text(const void *self, size_t fold, char *out, size_t size);
void cost_world_describe(const void *self, struct json_writer *j);
size_t cost_world_batches(const void *self, const double **out);

#endif
