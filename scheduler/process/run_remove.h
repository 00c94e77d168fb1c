/* Removes what a run has left behind: the job's folder with everything in it, and the records beside it. */
#ifndef SCHEDULER_PROCESS_RUN_REMOVE_H
#define SCHEDULER_PROCESS_RUN_REMOVE_H

#include "common/err.h"

/* dir: the job's folder, whose parent belongs to the daemon. identity "": the job is older than
 * identities. What does not exist counts as removed. Links are not followed, and nothing outside the
 * folder is touched, even if the job's owner changes it meanwhile. ERR_BUSY: the system has no descriptors
 * or memory right now. */
int run_remove(const char *dir, const char *identity, struct err *err);

#endif
