/* What identifies a process for ever. The system uses a pid again and again, but never the same pid with the
 * same start time in the same boot. Used by the daemon's executor. */
#ifndef SCHEDULER_PROCESS_IDENTITY_H
#define SCHEDULER_PROCESS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "scheduler/process/record_format.h"

bool proc_boot_id(char out[RECORD_BOOT_BYTES + 1]);

/* Does a process with this pid live that was started at this time (field 22 of /proc/PID/stat)? */
bool proc_lives(pid_t pid, uint64_t start_ticks);

/* Sends SIGKILL to the remaining members of the session that this process led. Members that started before
 * the leader are left alone. A session is known by its number only, and long after its end another session
 * may have that number. `mark` guards against this: only processes with this word ("NAME=value") in their
 * environment are killed. NULL: all. */
void proc_kill_session(pid_t leader, uint64_t start_ticks, const char *mark);

#endif
