/* --executor and --config of verbs that run their work on a cluster. */
#ifndef SCHEDULER_CLI_PROFILE_ENGINE_OPTION_H
#define SCHEDULER_CLI_PROFILE_ENGINE_OPTION_H

#include "scheduler/config/config.h"

/* The engine of that name, of the configuration at `path` (NULL: none is read); slurm is there without being
 * configured. *out owns it: config_free(), also after failure. */
int cli_engine(const char *name, const char *path, struct config **out,
               const struct config_engine **out_engine, struct err *err);

#endif
