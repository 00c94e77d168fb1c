/* Which job has which device. The scheduler counts devices (core/sched.h); this says which ones a job gets.
 * The row of a running job names its devices, so after a restart they are held again (devices_hold()). */
#ifndef SCHEDULER_JOBS_DEVICES_H
#define SCHEDULER_JOBS_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/strbuf.h"

struct devices {                     /* all zero: none */
	char **name;
	uint64_t *holder;            /* the job that has it; 0: free */
	uint32_t n;
};

/* These from now on, all free. name NULL: "0", "1", ... After an error nothing has changed. */
int devices_set(struct devices *d, char *const *name, uint32_t n, struct err *err);
void devices_release(struct devices *d);

/* The first free ones, as "0,3". False: fewer are free, and nothing is taken. */
bool devices_take(struct devices *d, uint64_t job, uint32_t wanted, struct strbuf *out);
/* A job that runs has these. Names that are not known (any more) are passed over. */
void devices_hold(struct devices *d, uint64_t job, const char *names);
void devices_give_back(struct devices *d, uint64_t job);
uint32_t devices_free_count(const struct devices *d);

#endif
