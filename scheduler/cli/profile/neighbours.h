/* The other jobs that may run beside one that is measured: those of a configuration whose descriptions can be
 * read. `profile` measures a few runs beside them. */
#ifndef SCHEDULER_CLI_PROFILE_NEIGHBOURS_H
#define SCHEDULER_CLI_PROFILE_NEIGHBOURS_H

#include "scheduler/profiler/design.h"

struct neighbours {
	struct profile_neighbour of[PROFILE_MAX_NEIGHBOURS];
	struct profile_design design[PROFILE_MAX_NEIGHBOURS];
	size_t n;
};

/* config: a file; NULL: that of the user's own daemon, which need not exist. own: the description that is
 * measured, which is no neighbour of itself; NULL: it is in no folder. Of more than there is room for, those
 * described last are taken. A description that cannot be read is passed over. */
int neighbours_find(struct neighbours *n, const char *config, const char *own, struct err *err);
void neighbours_release(struct neighbours *n);

#endif
