/* The daemon of a job's folder, started when it is needed. */
#ifndef SCHEDULER_CLI_JOB_OWN_DAEMON_H
#define SCHEDULER_CLI_JOB_OWN_DAEMON_H

#include "scheduler/cli/client/client.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/job/job_folder.h"

#define OWN_DAEMON_START_S 15.0 /* for it to listen */

/* Connects to the daemon of the folder, and starts it first if it does not run. One that was started
 * before the job was measured is told to read its configuration again. */
int own_daemon_open(const struct cli *c, const struct job_folder *folder, const struct client_params *at,
                    struct client **out, struct client_fault *f);

#endif
