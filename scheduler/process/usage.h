/* How busy the machine and a job were, from /proc. Percentages: of all cores for the machine, of one core for a
 * job, so that a job that keeps two cores busy has 200. Used by profile_run.c. */
#ifndef SCHEDULER_PROCESS_USAGE_H
#define SCHEDULER_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct profile_load { /* ticks since boot, all cores together */
	uint64_t busy, iowait, total;
	bool known;
};

bool profile_load_parse(const char *stat_text, struct profile_load *out); /* of /proc/stat */
void profile_load_read(struct profile_load *out);                         /* now */
/* Between two readings; NaN where one of them is not known or no tick passed. */
void profile_load_mean(const struct profile_load *from, const struct profile_load *to, double *out_cpu,
                       double *out_iowait);

/* Seconds a process, which may be a zombie, waited for a disk: field 42 of /proc/PID/stat. NaN where the kernel
 * does not count it (sysctl kernel.task_delayacct). */
double profile_load_blocked_s(pid_t pid);
bool profile_load_blocked_ticks(const char *stat_text, uint64_t *out); /* of the text of that file */

#endif
