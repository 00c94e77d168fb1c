/* The language between postrider-supervisor and the daemon. The supervisor is linked with the C library
 * alone, so this header has constants only. supervisor_record.c writes the records, run_record.c reads them.
 *
 * Two records lie beside the job's folder DIR. The identity of the job is part of their names, DIR.IDENTITY,
 * so that a job never finds the records of another one that had its number before: if the database is lost or
 * restored from a copy, numbers are used again. Jobs older than identities have DIR alone.
 *
 * The records lie in a folder that belongs to the daemon. The job's folder itself belongs to the user of the
 * job: the user could forge records in it and make a daemon that runs as root end the processes of others.
 *
 *   DIR.started   written by exactly one supervisor: it appears complete, by link(2), before the command runs
 *   DIR.exit      how the job ended: it appears complete, by rename(2)
 *
 * Both are lines of a key and its values, each key once and in this order; the last line is "end":
 *
 *   postrider-started 2                      postrider-exit 2
 *   identity HEX | -                         identity HEX | -
 *   boot BOOT_ID                             boot BOOT_ID
 *                                            started REALTIME_NS BOOTTIME_NS     0 0: it never ran
 *   supervisor PID START_TICKS               ended REALTIME_NS BOOTTIME_NS
 *   job PID START_TICKS                      status exit CODE | signal NUMBER | none
 *   started REALTIME_NS BOOTTIME_NS          timed_out 0|1
 *   cpus LIST | -                            stopped 0|1
 *   end                                      max_rss_kb N
 *                                            cpu_us N
 *                                            reason TEXT | -
 *                                            note TEXT | -
 *                                            end
 *
 * "started" is the claim in the first record, which is on the disk before the command runs. In the second it
 * is the moment at which the command began, a few milliseconds later.
 *
 * Version 1 has no identity, and no boot in the exit record; it is still read. "stopped" means that the
 * daemon asked for it: by a SIGTERM that was queued with a value. Other SIGTERMs do not count. START_TICKS is
 * field 22 of /proc/PID/stat. With the id of the boot it identifies a process for good, even if its pid is
 * given to another one later. */
#ifndef SCHEDULER_PROCESS_RECORD_FORMAT_H
#define SCHEDULER_PROCESS_RECORD_FORMAT_H

#define RECORD_STARTED ".started"
#define RECORD_EXIT ".exit"
#define RECORD_ENGINE ".engine" /* the daemon's own: daemon/exec/handover.h */
#define RECORD_REPORT ".report" /* what a supervisor that an engine runs says on its standard output */
#define RECORD_ENGINE_MAGIC "postrider-engine 1"
#define RECORD_STARTED_MAGIC "postrider-started 2"
#define RECORD_EXIT_MAGIC "postrider-exit 2"
#define RECORD_STARTED_MAGIC_1 "postrider-started 1"
#define RECORD_EXIT_MAGIC_1 "postrider-exit 1"
#define RECORD_MAX_IDENTITY 32
#define RECORD_MAX_BYTES 8192
#define RECORD_MAX_TEXT 255  /* bytes of a reason or a note */
#define RECORD_MAX_CPUS 4095 /* bytes of a list of cpus, "0-3,8" */
#define RECORD_BOOT_BYTES 36

/* The note where a SIGTERM came that was not the daemon's: a workload manager may know why. */
#define NOTE_TERMINATED "another program sent it SIGTERM"

/* In the job's folder, as the user of the job. */
#define JOB_STDOUT "stdout"
#define JOB_STDERR "stderr"

/* Exit codes of the supervisor. */
enum {
	SUPERVISOR_DONE = 0,       /* DIR.exit is written */
	SUPERVISOR_USAGE = 2,
	SUPERVISOR_LOST_RACE = 120, /* DIR.started existed already: nothing was changed */
	SUPERVISOR_NOT_STARTED = 121, /* nothing was changed; the report has the reason */
	/* nothing ran, and no record is left: the machine lacks something, for now */
	SUPERVISOR_TRY_AGAIN = 123,
	SUPERVISOR_NO_RECORD = 122, /* the job ended, but DIR.exit cannot be written */
};

/* The report: lines on the supervisor's standard output, which is then closed. */
#define REPORT_GO "go "          /* REALTIME_NS BOOTTIME_NS: when the command began */
#define REPORT_STARTED "started" /* DIR.started says the rest */
#define REPORT_FAILED "failed "  /* and the reason */
#define REPORT_NOTE "note "      /* something did not work, but the job runs */
#define REPORT_MAX_BYTES 1024

#endif
