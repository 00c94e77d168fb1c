/* Telling processes apart for good: a pid is given again and again, a pid with its start time and the boot's id is
 * not. Used by exec_local.c. */
#ifndef SCHEDULER_PROCESS_IDENTITY_H
#define SCHEDULER_PROCESS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "scheduler/process/record_format.h"

bool proc_boot_id(char out[RECORD_BOOT_BYTES + 1]);

/* Is there a process with this pid that was started then (field 22 of /proc/PID/stat)? */
bool proc_lives(pid_t pid, uint64_t start_ticks);

/* SIGKILL to what is left of a session whose leader was this process. Processes of a namesake, of another time, are
 * left alone; as a session is known by its number only, and long after its end somebody else may have that, `mark` can
 * be asked for: a word "NAME=value" of their environment. NULL: any. */
void proc_kill_session(pid_t leader, uint64_t start_ticks, const char *mark);

#endif
