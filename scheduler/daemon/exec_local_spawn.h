/* Starting the supervisor of a job. Used by exec_local.c; the other side is supervisor_main.c. */
#ifndef SCHEDULER_DAEMON_EXEC_LOCAL_SPAWN_H
#define SCHEDULER_DAEMON_EXEC_LOCAL_SPAWN_H

#include <sys/types.h>

#include "scheduler/daemon/executor.h"

/* Where postrider-supervisor is: $POSTRIDER_SUPERVISOR, beside this program, in ../libexec/postrider from there,
 * or in LIBEXEC. To be freed. */
int spawn_find_supervisor(char **out, struct err *err);

/* Does not wait for anything but the kernel. *out_report_fd: non-blocking, the lines of exec_local_record.h; to be
 * closed. `cpus`: a list, or NULL for any. */
int spawn_supervisor(const char *program, const struct exec_job *j, const char *cpus, pid_t *out_pid,
                     int *out_report_fd, struct err *err);

#endif
