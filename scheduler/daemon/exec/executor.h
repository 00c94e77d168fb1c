/* The table of executors: how a job is run. `local` starts it here through a supervisor; `advise` leaves that
 * to the caller; `engine` hands it over to a workload manager, where the configuration of its type says so.
 * A job names its executor by its mode ("run", "advise"); the table finds it by that name.
 *
 * Called from the loop; the sink is called from the loop too, never from inside start() or stop(). */
#ifndef SCHEDULER_DAEMON_EXEC_EXECUTOR_H
#define SCHEDULER_DAEMON_EXEC_EXECUTOR_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "scheduler/config/config.h"
#include "scheduler/jobs/life.h"

struct cluster;
struct exec_job {                    /* what start() needs; borrowed for the call */
	uint64_t id;
	const struct job_type *type;
	char *const *argv;           /* filled in; NULL after the last */
	const char *dir;             /* the job's folder; the supervisor makes it */
	const char *identity;        /* its records bear it; NULL: the job is older than identities */
	uid_t uid; gid_t gid;        /* the submitter's */
	uint32_t cpus;
	double epochs;               /* to come; NaN: progress is not known */
	double kill_grace_s, max_time_s;
	uint64_t max_output_mb;      /* 0: any */
	bool pin; const char *cgroup;
	const char *device_variable; /* that names its devices in its environment; NULL: none does */
	const char *devices;         /* NULL: none */
	uint32_t gpus;
	/* for engines */
	const struct config_engine *engine; /* NULL: none */
	const char *tenant, *account, *partition; /* may be NULL */
	const char *const *keep_env; /* variables that the engine sets for the job; NULL after the last */
	bool pass_code;              /* the supervisor leaves with the exit code of the job */
	double bound_s, memory_mb;   /* of the run time, of memory; NaN: not known */
};

struct exec_progress {
	uint64_t id;
	double epoch, epochs;        /* of how many */
	double accuracy;             /* NaN: not said */
	double elapsed_s;            /* since the start, when the line was seen */
};

struct executor_sink {
	void *owner;
	void (*started)(void *owner, uint64_t id, int64_t at_ns, pid_t pid);
	/* It could not be started, because the machine lacks something for now. Nothing of it ran, and it
	 * is not the executor's any more: start() it again later. */
	void (*delayed)(void *owner, uint64_t id, const char *why);
	/* An engine has it, or will get it, and has not started it: why. */
	void (*waits)(void *owner, uint64_t id, const char *why);
	void (*progress)(void *owner, const struct exec_progress *p);
	void (*finished)(void *owner, const struct exec_outcome *o);
	/* What the cluster of the engine `name` is like now. NULL: that is not known; `why` says so, or is
	 * NULL where it is no longer asked. May be NULL. */
	void (*cluster)(void *owner, const char *name, const struct cluster *c, const char *why);
	/* A moment of CLOCK_BOOTTIME on the owner's time line, which does not jump when the clock is set.
	 * NULL: the wall clock's word is taken. */
	int64_t (*moment)(void *owner, int64_t boot_ns);
};

struct executor_ops {
	const char *name;            /* "run", "advise"; "engine": of jobs of mode "run" whose type says so */
	bool no_mode;                /* jobs can not ask for it by name */
	int (*create)(struct event_base *base, const struct executor_sink *sink, void **out_self,
	              struct err *err);
	/* 0: under way; `started`, `finished` or `delayed` will be called. ERR_BUSY, ERR_NOMEM: delayed,
	 * too. */
	int (*start)(void *self, const struct exec_job *j, struct err *err);
	/* SIGTERM to the whole group, SIGKILL after the grace; `finished` will be called. ERR_NOTFOUND: not
	 * ours. */
	int (*stop)(void *self, uint64_t id, double grace_s, struct err *err);
	/* After a restart: a job that was being started or ran. It is watched again, its outcome read, or it
	 * is found lost; the sink is called from the loop. *out_unstarted: nothing was ever started, so
	 * start() may be called; a supervisor that is late will find that it lost the race. */
	int (*adopt)(void *self, const struct exec_job *j, bool *out_unstarted, struct err *err);
	/* Optional: the owner of an advised job has reported its end; nothing more will be called for it. */
	void (*forget)(void *self, uint64_t id);
	size_t (*running)(const void *self);
	void (*destroy)(void *self); /* jobs stay as they are */
};
int64_t executor_now_ns(const struct executor_sink *s); /* on the owner's time line */
extern const struct executor_ops *const executor_all[]; /* NULL-terminated */
const struct executor_ops *executor_find(const char *name);

#endif
