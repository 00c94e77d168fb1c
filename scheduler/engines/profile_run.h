/* One run of a campaign on the cluster of an engine: each copy is a job there, run by postrider-supervisor.
 * The copies wait at a gate until all of them have a place, start together, and are measured by the records
 * of their supervisors. The engine's answer counts where there is no record. Used by `postrider profile
 * --executor`. */
#ifndef SCHEDULER_ENGINES_PROFILE_RUN_H
#define SCHEDULER_ENGINES_PROFILE_RUN_H

#include <limits.h>

#include "scheduler/engines/ops.h"
#include "scheduler/profiler/run.h"

struct engine_runner {
	const struct config_engine *config; /* borrowed */
	const struct engine_ops *ops;
	bool at_once; /* copies start when they can, and one that fails leaves the others alone */
	char supervisor[PATH_MAX];
	char waits[ENGINE_MAX_SAID + 64]; /* what the run waits for, for people; "": it runs */
};

/* ERR_NOTFOUND: there is no postrider-supervisor. */
int engine_runner_init(struct engine_runner *r, const struct config_engine *c, struct err *err);
/* Cancels what an earlier command left behind when it was killed; dir: of the campaign. */
void engine_runner_clean(struct engine_runner *r, const char *dir);
/* As profile_run(); `runner` is a struct engine_runner. */
int engine_profile_run(void *runner, const struct profile_run_params *p, struct profile_outcome *out,
                       int *out_signal, struct err *err);

#endif
