/* The workers of a step of Slurm, found in the environment that srun gives each of them: `postrider-train
 * --peers slurm` needs no list. */
#ifndef WORKLOADS_SLURM_PEERS_H
#define WORKLOADS_SLURM_PEERS_H

#include "common/err.h"
#include "common/strbuf.h"

/* "HOST:PORT,..." of all tasks, by rank, from
 *   nodes   "n[1-3,07],m2": SLURM_STEP_NODELIST
 *   tasks   "2(x3),1": SLURM_STEP_TASKS_PER_NODE
 * Ports are counted from `port`. Ranks go through the nodes block by block. *out_node: of `rank`, from 0. */
int slurm_peers_list(const char *nodes, const char *tasks, unsigned port, unsigned rank, struct strbuf *out,
                     unsigned *out_node, struct err *err);
/* The same from the environment; ports depend on the number of the job and of the step. */
int slurm_peers(unsigned rank, struct strbuf *out, struct err *err);

#endif
