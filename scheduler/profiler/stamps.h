/* When each epoch of a copy ended: its log is followed while it runs, and a line that ends an epoch is
 * stamped with the time at which the log was written. One run of 14 epochs so gives 14 times, also of a
 * command that prints none. */
#ifndef SCHEDULER_PROFILER_STAMPS_H
#define SCHEDULER_PROFILER_STAMPS_H

#include "scheduler/profiler/run.h"

struct stamps;
/* Of the copies of a run that begins now. NULL: no memory; the others accept it, and stamp nothing. */
struct stamps *stamps_new(const struct profile_run_params *p, size_t n_copies);
void stamps_free(struct stamps *s);
void stamps_look(struct stamps *s, bool ended); /* at what was written since */
/* To the epochs of the outcome whose time the command did not say. */
void stamps_give(const struct stamps *s, struct profile_outcome *o);

#endif
