/* What slurm.c and slurm_cluster.c share. */
#ifndef SCHEDULER_DAEMON_EXEC_SLURM_H
#define SCHEDULER_DAEMON_EXEC_SLURM_H

#include "scheduler/daemon/exec/engine.h"

#define SLURM_COMMENT "postrider:" /* and the identity: by it a job is found again */

/* slurm.c */
bool slurm_program(const struct config_engine *c, const char *name, struct engine_call *out);

/* slurm_cluster.c */
int slurm_look(const struct config_engine *c, enum cluster_question q, struct engine_call *out,
               struct err *err);
cluster_line_fn slurm_look_line;

#endif
