/* The entries of the table in executor.c. */
#ifndef SCHEDULER_DAEMON_EXEC_LOCAL_H
#define SCHEDULER_DAEMON_EXEC_LOCAL_H

#include "scheduler/daemon/exec/executor.h"

extern const struct executor_ops exec_local_ops;
extern const struct executor_ops exec_advise_ops; /* advise.c */

#endif
