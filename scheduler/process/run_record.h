/* Reads the records that a job's supervisor wrote beside the job's folder. record_format.h has the format and
 * says why the records lie beside the folder. Used by the daemon's executor. */
#ifndef SCHEDULER_PROCESS_RUN_RECORD_H
#define SCHEDULER_PROCESS_RUN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "scheduler/process/record_format.h"

struct job_started { /* DIR.started: a supervisor runs the job */
	char identity[RECORD_MAX_IDENTITY + 1]; /* "": it has none */
	char boot[RECORD_BOOT_BYTES + 1];
	pid_t supervisor, job;
	uint64_t supervisor_ticks, job_ticks; /* when they were started: field 22 of /proc/PID/stat */
	int64_t at_ns;                        /* 1970, UTC */
	int64_t at_boot_ns;                   /* CLOCK_BOOTTIME */
	char cpus[RECORD_MAX_CPUS + 1];       /* "": any */
};

struct job_exit { /* DIR.exit: how the job ended */
	char identity[RECORD_MAX_IDENTITY + 1]; /* "": it has none */
	bool ran;                       /* false: `reason` says why not */
	int exit_code;                  /* -1: a signal ended it, or it never ran */
	int exit_signal;                /* 0: none */
	bool timed_out, stopped;        /* the supervisor ended it: its time was over, or the daemon asked */
	char boot[RECORD_BOOT_BYTES + 1]; /* "": not known, in version 1 */
	int64_t started_ns, ended_ns;   /* 1970, UTC; started 0: it never ran */
	int64_t started_boot_ns, ended_boot_ns; /* CLOCK_BOOTTIME */
	double run_s;                   /* by CLOCK_BOOTTIME; 0: it never ran */
	double max_rss_mb, cpu_s;       /* of the largest process; of all of them */
	char reason[RECORD_MAX_TEXT + 1], note[RECORD_MAX_TEXT + 1]; /* "": none */
};

/* base: the path without its suffix. ERR_NOTFOUND: there is no record. ERR_FORMAT: it is damaged, or of a job
 * with another identity, and the text says so. Otherwise the system's reason. */
int job_started_read(const char *base, const char *identity, struct job_started *out, struct err *err);
int job_exit_read(const char *base, const char *identity, struct job_exit *out, struct err *err);

/* The same from text; errors call it `name`. */
int job_started_parse(const char *name, const char *text, size_t len, struct job_started *out,
                      struct err *err);
int job_exit_parse(const char *name, const char *text, size_t len, struct job_exit *out, struct err *err);

#endif
