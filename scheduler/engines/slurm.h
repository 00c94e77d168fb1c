/* What slurm.c, slurm_cluster.c and slurm_books.c share. */
#ifndef SCHEDULER_ENGINES_SLURM_H
#define SCHEDULER_ENGINES_SLURM_H

#include <inttypes.h>

#include "scheduler/engines/ops.h"

#define SLURM_COMMENT "postrider:" /* and the identity: by it a job is found again */
#define SLURM_NAME "postrider-%" PRIu64 "-%.8s" /* of a job: its number and its identity */

/* slurm.c */
bool slurm_program(const struct config_engine *c, const char *name, struct engine_call *out);

enum engine_word slurm_word(const char *state); /* what a state means */

/* slurm_books.c */
int slurm_past(const struct config_engine *c, uint64_t job, const char *identity, const char *id,
               struct engine_call *out, struct err *err);
bool slurm_past_line(const char *line, struct engine_past *out);

/* slurm_cluster.c */
int slurm_look(const struct config_engine *c, enum cluster_question q, struct engine_call *out,
               struct err *err);
cluster_line_fn slurm_look_line;

#endif
