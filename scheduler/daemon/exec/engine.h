/* The executor of jobs that an engine runs: engine.c, and the parts that engine_job.h names.
 * scheduler/engines/ops.h says what an engine is; docs/ENGINES.md is for the operator. */
#ifndef SCHEDULER_DAEMON_EXEC_ENGINE_H
#define SCHEDULER_DAEMON_EXEC_ENGINE_H

#include "scheduler/daemon/exec/executor.h"
#include "scheduler/engines/ops.h"

/* The table entry of executor.c, and what it has beside it. */
extern const struct executor_ops exec_engine_ops;
/* After create() and after every reload, before the old configuration goes: its engines are used from now on.
 * */
int exec_engine_configure(void *self, const struct config *c, struct err *err);
/* Waits for the first look at the cluster, so that no job is promised what others have; not for long. */
void exec_engine_settle(void *self);
/* Has an engine this job? With its folder (else NULL): or did an earlier daemon hand it over? */
bool exec_engine_knows(void *self, uint64_t id, const char *dir, const char *identity);
/* Before it is started elsewhere: a later daemon must not think that the engine has it. If the engine does
 * have it, one of the two supervisors finds it claimed. */
void exec_engine_withdraw(const char *dir, const char *identity);

#endif
