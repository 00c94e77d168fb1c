/* The part of `postrider model` that talks to the daemon: it lists the models that the daemon trained, asks
 * for a new one, and goes back to an older one. */
#ifndef SCHEDULER_CLI_CLIENT_MODEL_TALK_H
#define SCHEDULER_CLI_CLIENT_MODEL_TALK_H

#include "scheduler/cli/cli.h"
#include "scheduler/cli/client/client.h"

/* Each returns the exit code of the verb. */
int model_list(const struct cli *c, const struct client_params *at);
/* type: the job type whose own model is meant; NULL: the configuration's. */
int model_retrain(const struct cli *c, const struct client_params *at, const char *type);
/* 0: back to the configuration's model. */
int model_rollback(const struct cli *c, const struct client_params *at, const char *type,
                   const char *version);

#endif
