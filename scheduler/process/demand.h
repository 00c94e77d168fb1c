/* What programs of ours want of the cpus: the time that they and their descendants ran, and the time that
 * they waited for a cpu. Others' load is the demand of the whole machine (other_load.h) less this. A count of
 * the cpus that a job asked for would not do: a job that waits for an accelerator wants none, and the load of
 * others would look smaller while it runs. */
#ifndef SCHEDULER_PROCESS_DEMAND_H
#define SCHEDULER_PROCESS_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "scheduler/process/other_load.h"

#define DEMAND_MAX_TASKS 4096 /* threads of ours; beyond that the cpus that were asked for count */

struct demand_program {
	pid_t pid;      /* its first process; 0: not known, so its cpus count */
	double cpus;    /* that it asked for: what it is taken to want where the kernel does not tell */
};

struct demand_task {
	pid_t root, id;
	uint64_t waited_ns;
};
struct demand_root {
	pid_t pid;
	double cpu_s;   /* it and its descendants, those that ended included */
	double waited_s; /* for a cpu, as far as it was seen */
	size_t threads; /* most in one process */
	bool late;      /* we got to know it in this reading, and it had run for long */
};

struct demand {                         /* all zero: nothing was read yet */
	struct other_load other;
	struct demand_task *task; size_t n_tasks, tasks_cap;
	struct demand_root *root; size_t n_roots, roots_cap;
	double at_s;                    /* of the last reading */
	double ours_s;                  /* seconds that our programs wanted since the first reading */
	double owed_s, owed_ran_s;      /* seconds that programs wanted which have left, and those that they
	                                   ran: not yet taken off */
};
void demand_release(struct demand *d);

/* Reads the kernel's counts at now_s (a monotonic clock) and returns the estimate of others' load, as
 * other_load_sample() does. The first call only sets the marks. */
double demand_look(struct demand *d, const struct demand_program *program, size_t n, double now_s);
/* Most threads that were seen in one process of a program or its descendants; 0: not known. */
size_t demand_threads(const struct demand *d, pid_t pid);
/* A program has ended and is about to be collected: its last moments are ours, too. */
void demand_leaves(struct demand *d, pid_t pid);
/* The same of one that was collected already, from the cpu time that it took in all. */
void demand_left(struct demand *d, pid_t pid, double cpu_s);

#endif
