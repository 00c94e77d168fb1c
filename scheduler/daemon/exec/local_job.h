/* One job that a supervisor runs, from its start to its end: how its end is found out, and how it is reported
 * to the owner of the executor. local.c has jobs whose supervisor is a process of this machine. engine.c has
 * jobs that a workload manager runs; for these only the records, the output and the reports are used. */
#ifndef SCHEDULER_DAEMON_EXEC_LOCAL_JOB_H
#define SCHEDULER_DAEMON_EXEC_LOCAL_JOB_H

#include <sched.h>

#include "scheduler/daemon/exec/executor.h"
#include "scheduler/process/record_format.h"
#include "scheduler/daemon/exec/spawn.h"
#include "scheduler/process/output.h"

enum local_state {
	LOCAL_ORDERED,   /* its supervisor is being started, or waits for that: spawner.h */
	LOCAL_STARTING,  /* there is a supervisor, and it has not reported yet */
	LOCAL_RUNNING,
	LOCAL_UNSETTLED, /* the supervisor is gone, or not known; its records could not be read yet */
	LOCAL_DELAYED,   /* nothing ran: `failed` says what the machine lacks */
	LOCAL_ENDED,     /* `outcome` says how */
};

struct local; /* the executor, in local.c */

struct local_job {
	const struct executor_sink *sink; /* borrowed from the executor */
	const char *boot;           /* the id of this boot; the same */
	struct local *local;        /* NULL: it is an engine's */
	uint64_t id;
	char *dir;
	char *record;               /* its records are this with a suffix: the folder and the identity */
	char identity[RECORD_MAX_IDENTITY + 1]; /* "": the job is older than identities */
	double epochs, max_time_s;
	bool steer;                 /* its reports may ask how to go on */
	enum local_state state;
	bool adopted;               /* by a daemon that did not start it: the start of one that ended is not
	                               news */
	bool told_started;
	bool stop_asked;            /* kept for a supervisor that is not known yet */
	double stop_grace_s;        /* the shortest that was asked for */

	struct spawn_order *order;  /* the spawner's; NULL: it came back */
	pid_t supervisor;
	int pidfd;                  /* of the supervisor; -1: none yet, or it is gone */
	struct event *gone;         /* pidfd is readable: it ended. NULL: not watched yet */
	int report_fd;              /* -1: closed */
	struct event *report;
	char said[REPORT_MAX_BYTES]; /* start of a line of the report that is not whole yet */
	size_t n_said;
	bool said_started;
	long long go_ns, go_boot_ns; /* when its command began, by the report; 0: not in it */
	char failed[RECORD_MAX_TEXT + 1]; /* why it could not be started, says the report */
	bool seen_gone;             /* we watched it end; else it was found gone */
	int supervisor_code;        /* its exit code; -1: a signal ended it, or it was not our child */
	unsigned tries;             /* to read its record */

	bool pinned;
	cpu_set_t cpus;
	pid_t pid;                  /* the job's own; 0: not known */
	uint64_t pid_ticks;
	int64_t started_ns, started_boot_ns; /* 0: not known */
	struct job_output output;
	int64_t progress_boot_ns;   /* when progress was last told */
	bool terminated;            /* a SIGTERM came that was not ours */
	struct exec_outcome outcome;
};

int local_job_new(const struct exec_job *j, const struct executor_sink *sink, const char *boot,
                  struct local_job **out, struct err *err);
void local_job_free(struct local_job *j); /* the processes stay as they are */

/* What the supervisor says of the start: said_started and failed. */
void local_job_take_report(struct local_job *j);
void local_job_close_report(struct local_job *j);

/* The stop that was asked for, to the supervisor that the job has. */
int local_job_send_stop(const struct local_job *j, struct err *err);

/* How the owner of the executor calls a moment of a boot; `real_ns` is the wall clock's word. */
int64_t local_job_moment(const struct local_job *j, const char *boot, int64_t real_ns, int64_t boot_ns);

int64_t local_job_now_ns(const struct local_job *j);

/* The record DIR.started, once it is there. */
int local_job_learn_start(struct local_job *j, struct err *err);
/* The record DIR.exit, once it is there: LOCAL_ENDED. ERR_NOTFOUND: there is none. */
int local_job_learn_end(struct local_job *j, struct err *err);

/* Telling the owner. The last one frees the job: take it out of your table first, as the sink may start the
 * next one. */
void local_job_tell_started(struct local_job *j);
void local_job_tell_progress(struct local_job *j, int64_t now_boot_ns);
/* There is news, and the last word about it is long ago; or it waits for an answer. */
bool local_job_is_due(const struct local_job *j, int64_t now_boot_ns);
void local_job_tell_finished(struct local_job *j, int64_t now_boot_ns);
bool local_job_has_output(const struct local_job *j); /* what never ran may have an old log in its folder */

/* The supervisor is gone. 0: state is now LOCAL_ENDED or LOCAL_DELAYED. ERR_BUSY: it lost a race, and another
 * supervisor has the job: local_job_examine(). Else the record cannot be read right now. */
int local_job_settle(struct local_job *j, struct err *err);

/* What the records beside the folder say of a job whose supervisor is not known: LOCAL_RUNNING with the pidfd
 * of its supervisor open, or LOCAL_ENDED; *out_unstarted: there is no record. */
int local_job_examine(struct local_job *j, const char *boot, bool *out_unstarted, struct err *err);

/* It ends here, and nothing of it has run. */
void local_job_never_ran(struct local_job *j, bool stopped, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void local_job_lost(struct local_job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
