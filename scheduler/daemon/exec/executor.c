/* The table of executors. See executor.h; an entry is added here and in its own file. */
#include "scheduler/daemon/exec/executor.h"

#include "common/clock.h"

#include <string.h>

#include "scheduler/daemon/exec/engine.h"
#include "scheduler/daemon/exec/local.h"

const struct executor_ops *const executor_all[] = { &exec_local_ops, &exec_advise_ops, &exec_engine_ops,
						    NULL };

const struct executor_ops *executor_find(const char *name)
{
	for (size_t i = 0; executor_all[i]; i++) {
		if (!executor_all[i]->no_mode && strcmp(executor_all[i]->name, name) == 0)
			return executor_all[i];
	}
	return NULL;
}

int64_t executor_now_ns(const struct executor_sink *s)
{
	return s->moment ? s->moment(s->owner, clock_boot_ns()) : clock_wall_ns();
}
