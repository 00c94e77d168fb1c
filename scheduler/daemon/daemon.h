/* The daemon as a whole: what its parts share, and who does what.
 *
 *   daemon.c      set-up, restoring after a restart, the turn of the loop, timers, leaving
 *   ops/          one request line in, one reply out
 *   binding.c     a job's type, parameters and values under the present configuration and model
 *   restore.c     jobs come back from the store after a restart
 *   carry_out.c   carries out what the life of a job (jobs/life.h) asks for
 *   carry_events.c  tells that life what happens
 *   watch_other_work.c  what other programs want of the cpus
 *   inputs.c      what decisions are made from, for verify/
 *   estimates.c   when live jobs will start and end, and why they wait
 *   waiting.c     jobs that are not with the scheduler: they wait for another one, or are to run once more
 *   late.c        the operator's command for jobs that will be late, are lost or have ended
 *   learn/        what is learned from jobs that end: bounds, drift, new models
 *   tally.c       what happened, counted once: `stats`, metrics, the page and learning read it
 *   metrics/      what a monitoring system reads
 *   http/         the page and the metrics over HTTP
 *   retention.c   forgets jobs that ended long ago
 *   setup.c       configuration and model together: loading, checking, swapping
 *
 * Everything here runs in the loop's thread. */
#ifndef SCHEDULER_DAEMON_DAEMON_H
#define SCHEDULER_DAEMON_DAEMON_H

#include <event2/event.h>

#include "common/json/json.h"
#include "common/strbuf.h"
#include "scheduler/config/config.h"
#include "scheduler/core/learn/start_lag.h"
#include "scheduler/core/sched.h"
#include "scheduler/daemon/exec/executor.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/jobs/life.h"
#include "scheduler/jobs/record.h"
#include "scheduler/daemon/learn/learning.h"
#include "scheduler/process/demand.h"
#include "scheduler/daemon/inputs.h"
#include "scheduler/daemon/metrics/metrics.h"
#include "scheduler/daemon/net/server.h"
#include "scheduler/daemon/setup.h"
#include "scheduler/store/store.h"
#include "scheduler/daemon/tally.h"
#include "scheduler/jobs/devices.h"
#include "scheduler/jobs/tenants.h"

#define DAEMON_MAX_EXECUTORS 8

/* A daemon without a world: its time is what it is told, its jobs start and end when it is told. */
struct played {
	const struct executor_ops *const *executor; /* as executor_all[] */
	/* A decision was made; `moment` as in the store, which does not get it. */
	void (*decided)(void *owner, const struct job *job, const char *moment, const char *json);
	void *owner;
	double lag_s; /* of starts at a cluster; NaN, 0: there is none */
	const uint64_t *unstarted; size_t n_unstarted; /* after a restart: jobs of which nothing had run */
};

struct pending_start { uint64_t ticket, job; };
struct start_list { struct pending_start *item; size_t n, cap; };

struct daemon_params {
	const char *config_path;        /* NULL: config_find() */
	const char *socket, *state_dir, *policy, *model; /* flags that win over the file; NULL: not given */
	bool force;                     /* start on a state folder that others may write to */
	const int64_t *now_ns;          /* the time, held by its owner; NULL: it passes */
	const struct played *played;    /* it is played again from its records (verify/); NULL: it is real */
};

struct daemon_events {
	struct event *turn;             /* activated where something changed outside a request */
	struct event *store, *signal[4];
	struct event *repair, *estimates, *advise, *watchdog, *other_work, *delayed; /* timers */
};

struct daemon {
	struct daemon_params params;    /* a reload reads the same file, and the flags win again */
	struct event_base *base;
	struct setup *setup;            /* configuration, model and what is derived from them; never NULL */
	struct sched *sched;
	struct pairs_met met;         /* of the job that is ending: what it ran beside; kind 0: not known */
	struct store *store;
	struct server *server;
	const struct executor_ops *const *executors; /* executor_all, unless it is played */
	void *executor[DAEMON_MAX_EXECUTORS]; /* as executors[] */
	struct jobs jobs;
	struct life life;
	struct tenants tenants;
	struct devices devices;         /* which job has which */
	struct learning *learning;
	struct demand demand;           /* watch_other_work.c: what other programs want of the cpus */
	struct tally tally;
	struct retention *retention;
	struct textfile *textfile;      /* NULL: none */
	struct http *http;              /* NULL: none */
	struct outputs *outputs;        /* ops/op_output.c; NULL: nobody has asked yet */
	struct inputs inputs;
	uint64_t next_id;
	int64_t clock_offset_ns;        /* daemon_now_ns() less the time since the boot: daemon_clock.c */
	int64_t started_ns;

	struct watcher *watcher;        /* ops/op_watch.c */
	size_t n_watchers;
	size_t n_notices;               /* late.c: commands of `notify` under way */
	struct start_list starts;       /* jobs that wait for a row to be on disk, by ticket */
	struct start_list delayed;      /* jobs that wait for what the machine lacks */

	struct waiting *waiting;        /* waiting.c; NULL: no job has waited yet */
	bool draining, stopping, stop_when_idle, store_failed, dirty;
	bool delay_told;                /* the log says that jobs cannot be started */
	bool leaving;                   /* a signal said so: no more connections are accepted */
	struct loader *loader;          /* a reload under way; NULL: none */
	struct loader *loader_rest;     /* those that are over, and what they leave to be freed */
	bool reload_again;              /* asked for meanwhile: the files may have changed again */
	struct asked *asked_first, *asked_last; size_t n_asked; /* questions that wait for the disk */
	struct daemon_events event;     /* of daemon.c */
	int64_t idle_since_ns;          /* neither jobs nor clients nor a training since then; 0: not idle */
	int64_t lag_due_ns;             /* when a timer should come next, monotonic; 0: not known */

	struct cluster_view *cluster;   /* cluster.c; NULL: none is watched */
	struct start_lag lag;           /* of jobs on this machine */
	/* scratch of one request or event */
	struct strbuf out, text;
	int64_t turn_began_ns, turn_cpu_ns; /* of the server's turn under way */
	int64_t turn_cpu_at_ns;             /* when turn_cpu_ns was read: then, or shortly before */
	struct job_cursor tick;         /* carry_ticks() */
	struct job_cursor look;         /* estimates_look() */
	int64_t look_ns;                /* estimates.c: the moment of the estimates shown to users */
};

/* ---- daemon.c ---- */
int daemon_new(const struct daemon_params *p, struct daemon **out, struct err *err);
int daemon_run(struct daemon *d);       /* until told to leave; an exit code */
void daemon_free(struct daemon *d);
int64_t daemon_now_ns(const struct daemon *d); /* since 1970; never jumps */
/* ---- daemon_clock.c ---- */
void daemon_clock_begin(struct daemon *d);  /* before anything asks for the time */
void daemon_clock_settle(struct daemon *d); /* when the jobs are back */
/* From now on, and until the next one, the engines are those of `c`. */
int daemon_configure_engines(struct daemon *d, const struct config *c, struct err *err);
void daemon_changed(struct daemon *d);  /* a turn is due: start what can start, commit what was collected */
void daemon_later(struct daemon *d);    /* the same, after the loop has looked at everything else */
void daemon_turn(struct daemon *d);
uint64_t daemon_ticket(struct daemon *d); /* what is collected now will be durable with this one */
void daemon_drain(struct daemon *d, bool on, bool stop);
void daemon_decided(struct daemon *d, double took_us); /* counts a decision */
/* How long the loop was busy with one thing: by the clock, and without the time in which the machine let
 * other programs run. */
struct daemon_span {
	int64_t began_ns, cpu_ns;
};
struct daemon_span daemon_span_begin(void);
void daemon_span_end(struct daemon *d, struct daemon_span s);

/* ---- reload.c ---- */
struct later; /* ops.h */
/* Of daemon.c. The versions that `learning` (may be NULL) has trained win over what the file names. Takes
 * from->model, also on failure. */
int daemon_read_setup(const struct daemon *d, const struct learning *learning,
                      const struct setup_source *from, struct setup **out, struct err *err);
/* Of daemon.c. Level and format of the log, and a warning for each retired key that the file still has. */
void daemon_use_log(const struct config *c);
int daemon_server_limits(const struct config *c, struct server_params *out, struct err *err);
void daemon_reload_abandon(struct daemon *d);
int daemon_reload_now(struct daemon *d, struct err *err); /* without a thread: all in this call */
/* In a thread. answer may be NULL. Takes from->model, also on failure; its text is borrowed until the end.
 * from NULL: all is read. */
int daemon_reload(struct daemon *d, struct later *answer, const struct setup_source *from, struct err *err);

/* ---- carry_out.c ---- */
/* An event in the life of a job (jobs/life.h): its actions are carried out, and the events that follow from
 * them. An error: SUBMITTED was not stored, and the job is the caller's; or a job could not be stopped. */
int carry_out(struct daemon *d, const struct life_event *e, struct err *err);
struct life_event carry_event(const struct daemon *d, enum life_event_kind kind, struct job *job); /* now */
const char *carry_executor(const struct config *c, const struct job *job); /* the name of what runs it */

/* ---- carry_events.c ---- */
void carry_out_all(struct daemon *d, enum life_event_kind kind); /* of every job */
bool carry_ticks(struct daemon *d); /* TICK of live jobs, for as long as a turn may take; true: of all */
bool carry_next(struct daemon *d, uint64_t *out_id); /* one of them; 0: one that has no chance left */
/* A job whose turn has not come, all the same. */
int carry_now(struct daemon *d, struct job *job, int64_t now_ns, struct err *err);
void carry_turns(struct daemon *d); /* starts the jobs that may start */
void carry_durable(struct daemon *d, uint64_t ticket); /* DURABLE of the jobs that waited for it */
void carry_delayed(struct daemon *d);           /* tries again to start the jobs that are delayed */
void carry_ended(struct daemon *d, struct job *job, const struct exec_outcome *o);
/* What was decided for the start is in job->decision_text. */
int carry_started_by_owner(struct daemon *d, struct job *job, struct err *err);
/* `done` of its work (0 to 1), and what is known of its epochs; NULL: nothing. */
void carry_progress(struct daemon *d, struct job *job, double done, const struct life_progress *p);
/* What most jobs take from their turn until their command runs; carry_lag() tells the scheduler. */
double carry_lag_s(const struct daemon *d);
void carry_lag(struct daemon *d);
extern const struct executor_sink carry_sink; /* owner is the daemon: copied by daemon.c */

/* ---- waiting.c ---- */
#define WAITING_MAX 64 /* jobs that one job waits for; a bit of job->after_ended each */
#define WAITING_MAX_TEXT (24 * WAITING_MAX) /* bytes of row.after_more */
/* The scheduler gets the job when nothing is in its way. */
void waiting_add(struct daemon *d, struct job *job);
void waiting_ended(struct daemon *d, struct job *job); /* those that wait for it may go on */
void waiting_turn(struct daemon *d);    /* hands over those whose time has come */
void waiting_until(struct daemon *d, uint64_t id); /* the same, up to this one, however long that takes */
size_t waiting_count(const struct daemon *d); /* jobs that are not with the scheduler */
void waiting_release(struct daemon *d); /* before the jobs */
/* Why a job that is not with the scheduler waits; false: it is. */
bool waiting_why(const struct daemon *d, const struct job *job, char *out, size_t size);

/* ---- restore.c ---- */
int daemon_restore(struct daemon *d, struct err *err);
/* The devices of the configuration; those that live jobs have are theirs. */
int daemon_set_devices(struct daemon *d, const struct config *c, struct err *err);

/* ---- estimates.c ---- */
void estimates_live(struct daemon *d, const struct job *job, struct job_live *out); /* what is known of it */
void estimates_look(struct daemon *d); /* ESTIMATED of every live job */

/* ---- watch_other_work.c ---- */
void other_work_look(struct daemon *d);   /* at the work of other programs; about once a second */
void other_work_settle(struct daemon *d); /* the same before the socket opens: waits until there is an
                                          estimate */

/* ---- cluster.c ---- */
/* Of the executors' sink. */
void cluster_told(void *daemon, const char *engine, const struct cluster *c, const char *why);
void cluster_began(struct daemon *d, double lag_s); /* a job, so long after its turn */
double cluster_lag_s(const struct daemon *d); /* what most jobs take for that; there is a cluster */
void cluster_settle(struct daemon *d);  /* waits for the first look, but not for long */
/* The cluster tells what there is, so that this machine's own load does not matter. */
bool cluster_known(const struct daemon *d);
void cluster_json(const struct daemon *d, struct json_writer *w); /* a member "cluster", if one is watched */
/* " (3 are taken by others of slurm, ...)": beside how many cpus are free. "": no others. */
const char *cluster_words(const struct daemon *d, char *out, size_t size);

/* ---- late.c ---- */
enum config_on_late late_rule(const struct config *c, const struct job *job);
/* These run the operator's command, as the job's user. */
void late_notify(struct daemon *d, const struct job *job, double late_s);
void late_notify_ended(struct daemon *d, const struct job *job); /* or lost, if the configuration says so */

/* ---- ops/op_watch.c ---- */
int watch_add(struct daemon *d, struct conn *c, uint64_t job, struct err *err); /* 0: all jobs */
void watch_drop(struct daemon *d, const struct conn *c);
/* job NULL: an event of the daemon itself. */
void watch_tell(struct daemon *d, const char *event, const struct job *job);

/* ---- ops.c ---- */
void ops_line(void *owner, struct conn *c, char *line, size_t len);
const char *ops_greeting(void *owner, struct conn *c, size_t *out_len);
const char *ops_refusal(void *owner, const char *code, const char *message, size_t *out_len);
void ops_reload_done(struct later *answer, const struct err *err); /* err NULL: it worked */
void ops_ask_due(struct daemon *d);     /* asks what waited for the disk, or for the store to fail */
void ops_ask_abandon(struct daemon *d); /* the daemon is leaving */

#endif
