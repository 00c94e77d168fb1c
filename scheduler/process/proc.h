/* The one reader of /proc: the cpu time of the whole machine (/proc/stat) and the state of one process
 * (/proc/PID/stat). The fields are those of proc(5). Used by other_load.c, demand.c,
 * identity.c and the profiler. */
#ifndef SCHEDULER_PROCESS_PROC_H
#define SCHEDULER_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the start of a file, at most size - 1 bytes, and ends it with a NUL. Returns the bytes read, -1 on
 * failure. */
ssize_t proc_read(const char *path, char *out, size_t size);

/* ---- the machine ---- */
struct proc_cpu {              /* ticks of all cpus together since the machine was booted */
	double user, nice, system, idle, iowait, irq, softirq, steal;
	double total;          /* of all eight */
	size_t cpus;           /* lines of single cpus */
	/* processes that run or wait for a cpu, the reader included; NaN: there is no such line */
	double running;
};
/* Returns false if the text has no line of all cpus. Old kernels have fewer columns: the missing ones are
 * 0. */
bool proc_cpu_parse(const char *stat_text, struct proc_cpu *out);
bool proc_cpu_read(struct proc_cpu *out); /* now; false: it cannot be read */
/* How busy the cpus were between two readings and how much they waited for a disk, in % of all cpus. NaN if
 * no tick passed. */
void proc_cpu_mean(const struct proc_cpu *from, const struct proc_cpu *to, double *out_busy,
                   double *out_iowait);

/* ---- one process ---- */
struct proc_process {
	char state;             /* 'Z' or 'X': it is dead, and its parent has not collected it yet */
	int session;
	uint64_t start_ticks;   /* field 22: when it was started, since boot */
	uint64_t cpu_ticks;     /* fields 14 to 17: on a cpu, children that it has waited for included */
	/* field 42: how long it waited for a disk; 0 where the kernel does not count it */
	uint64_t blocked_ticks;
};
bool proc_process_parse(const char *stat_text, struct proc_process *out);
bool proc_process_read(pid_t pid, struct proc_process *out);
/* Seconds that a process, which may be a zombie, waited for a disk. NaN if the kernel does not count them
 * (sysctl kernel.task_delayacct). */
double proc_blocked_s(pid_t pid);

#endif
