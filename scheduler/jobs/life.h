/* The life of a job: a state machine that reads no clock, opens no file and starts no process. Events go in,
 * actions come out; the daemon carries the actions out in their order (daemon/carry_out.c).
 *
 *   SUBMITTED ---> rejected
 *      |
 *      v       TURN              DURABLE: SPAWN     STARTED
 *   queued -----------> starting -----------> running <----- ready     an advised job: its owner starts it
 *      |                   |  ^                |    |          ^
 *      |            DELAYED|  |TRY_AGAIN       |    |ENDED     | TURN
 *      |                   v  |        PROGRESS|    |        queued
 *      |                  delayed              v    |
 *      +- CANCEL, HOPELESS +               stopping |
 *      v                                       |    v
 *   cancelled                                  +--> done, failed, cancelled, lost
 *
 * A job that waits for another one is queued with the verdict `waiting`, and the scheduler does not know it;
 * ADMITTED gives it its verdict. A run that failed and may be repeated (`retry`) does not end the job: it is
 * queued again, with its verdict and with the identity of the next attempt.
 *
 * What is finer than the row is one step (enum job_step), kept in memory: of one that starts, is delayed, is
 * at an engine or stops, the row says running; of a `ready` one it says queued.
 *
 * What always holds, even if something fails or the daemon dies at any point:
 *   1. SPAWN follows DURABLE: the row that says "running" is on disk before anything runs. After a restart a
 *      job is spawned only where ADOPT found that no supervisor ever claimed it.
 *   2. The row alone is enough to continue: state, batch, promise, devices, whether the job was cancelled,
 *      the epoch after which it was asked to stop, what it was told of its next epochs, the attempt.
 *   3. An early STOP follows the row that says so. The record of a supervisor says "stopped" and not why, so
 *      without the row the job would count as cancelled.
 *   4. ANSWER follows the row that says what it tells. So a restarted daemon tells the same.
 *   5. The end of a job is final. Events that come later have no actions.
 *   6. Within the actions of one event the store comes first, then processes, then clients that watch.
 * The caller answers a client when all rows among the actions of the client's event are on disk. */
#ifndef SCHEDULER_JOBS_LIFE_H
#define SCHEDULER_JOBS_LIFE_H

#include "scheduler/config/config.h"
#include "scheduler/core/sched.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/jobs/observation.h"

#define LIFE_CANCELLED "cancelled" /* the reason in the row of a job that runs and was told to stop */
#define LIFE_GAVE_BACK "gave_back" /* of one that was stopped early for the sake of other jobs */
#define LIFE_NO_CHANCE "no_chance" /* the same for one taken by chance that has none any more */

struct exec_outcome {                /* how a run ended */
	uint64_t id;
	bool lost;                   /* how it ended is not known; `reason` says why */
	int exit_code;               /* -1: a signal ended it, or it never started */
	int exit_signal;             /* 0: none */
	bool timed_out;              /* it was stopped because its time was over: max_time_s */
	bool stopped;                /* it was stopped on request of this daemon or an earlier one */
	int64_t started_ns, ended_ns; /* 1970, UTC; started 0: it never ran */
	bool rounded;                /* the times are whole seconds, of which nothing is learnt */
	double run_s;                /* by the monotonic clock; NaN: not known */
	double accuracy;             /* last number at the type's accuracy path; NaN: none */
	double max_rss_mb, cpu_s;    /* NaN: not known */
	char reason[256];            /* for people; empty where it ended well */
};
/* The outcome of a job of which nothing is known but why it ended. */
struct exec_outcome life_outcome(uint64_t id, bool lost, const char *reason);

enum life_event_kind {
	LIFE_SUBMITTED,  /* job is in no list yet; verdict, decision, text; or `waits`: another job has to end
	                    first, and nothing is decided */
	LIFE_ADMITTED,   /* a job that ADMIT asked for is with the scheduler: verdict, decision, text */
	LIFE_TURN,       /* the scheduler starts it now: decision, text, policy, model, devices */
	LIFE_DURABLE,    /* everything up to its AWAIT is on disk */
	LIFE_DELAYED,    /* text: what the machine lacks to start it. Nothing of it ran, and no executor
	                    has it */
	LIFE_TRY_AGAIN,  /* of a delayed one, when the machine may have it */
	LIFE_WAITS,      /* text: its engine has it, or will get it, and has not started it */
	LIFE_STARTED,    /* at_ns, pid: by its executor or its owner */
	LIFE_PROGRESS,   /* progress, stop_after */
	LIFE_STEERED,    /* it reported and asked how to go on: change, kept; changed: it is another batch or
	                    another last epoch */
	LIFE_ESTIMATED,  /* estimate, text (why; NULL: a regular look), on_late */
	LIFE_ENDED,      /* outcome, foreseen_s */
	LIFE_CANCEL,     /* text: why; NULL: a user asked for it */
	LIFE_HOPELESS,   /* taken by chance, and it has no chance any more */
	LIFE_STOP_FAILED, /* gone: it is not there (any more) */
	LIFE_TICK,       /* advise_timeout_s */
	LIFE_REPAIRED,   /* the store takes rows again */
	LIFE_RESTORED,   /* after a restart: job with its row, in no list yet */
	LIFE_RESUMED,    /* all jobs are back; text: why the scheduler did not take this one back, or NULL */
	LIFE_ADOPTED,    /* what ADOPT found: it runs, or its end will be reported */
	LIFE_UNSTARTED,  /* what ADOPT found: it was never started */
};

struct life_progress {               /* NaN: not known */
	double epoch, epochs, accuracy;
	double run_s;                /* since the start */
	double batch;                /* that it says it ran the epoch with */
	bool asks;                   /* how to go on */
};

struct life_event {
	enum life_event_kind kind;
	struct job *job;
	int64_t now_ns;
	enum sched_verdict verdict;
	const struct decision *decision;
	const char *text;
	const char *policy, *model;     /* that decided; kept by jobs->names */
	const char *devices;            /* that it gets; NULL: none, or its engine chooses them */
	int64_t at_ns;
	pid_t pid;
	const struct life_progress *progress;
	uint32_t stop_after;            /* the epoch that sched_should_stop() or sched_gives_back() names;
	                                   0: let it run */
	bool gives_back;                /* the latter */
	const struct job_change *change; /* what it is told */
	const char *kept;               /* sched_steer_kept() */
	bool changed;
	struct sched_estimate estimate;
	enum config_on_late on_late;
	const struct exec_outcome *outcome;
	double foreseen_s, advise_timeout_s;
	bool gone, waits;
};

enum life_action_kind {
	/* the store */
	LIFE_ADD_ROW, LIFE_UPDATE_ROW,
	LIFE_ADD_DECISION,      /* text, what: "arrival" or "start" */
	LIFE_ADD_ESTIMATE,      /* estimate, what: why */
	LIFE_ADD_OBSERVATION,   /* value, n_values: its columns; time_s */
	LIFE_AWAIT,             /* send DURABLE when everything before this is on disk */
	/* processes */
	LIFE_SPAWN,             /* ENDED where that fails, DELAYED where it can not be done now */
	LIFE_RETRY,             /* TRY_AGAIN is to come */
	LIFE_IDLE,              /* idle: the scheduler hears whether work is done */
	LIFE_STOP,              /* STOP_FAILED where that fails */
	LIFE_ANSWER,            /* it is told what job_next() says */
	LIFE_ADOPT,             /* ADOPTED, UNSTARTED or ENDED */
	LIFE_FORGET,            /* the scheduler and the executor forget it */
	LIFE_ADMIT,             /* the scheduler is to get it when it may: ADMITTED, or CANCEL */
	/* people, and what is learnt */
	LIFE_TELL,              /* what: the event that watchers get */
	LIFE_NOTIFY,            /* the operator's command; time_s: by how much it will be late */
	LIFE_ESTIMATE,          /* send ESTIMATED with `what` as its text */
	LIFE_COUNT_VERDICT,     /* verdict */
	LIFE_COUNT_WAIT,        /* time_s */
	LIFE_COUNT_ENDED,
	LIFE_FAILED,            /* outcome: a run of it, which may be repeated */
	LIFE_LEARN,
	LIFE_CLOSE,             /* life_close(): the last action of a job that ended */
};

struct life_action {
	enum life_action_kind kind;
	struct job *job;
	const char *what, *text;        /* valid until the next event */
	const struct observed *value; size_t n_values; /* the same */
	struct sched_estimate estimate;
	double time_s;
	bool idle;
	const struct exec_outcome *outcome; /* the event's */
	enum sched_verdict verdict;
	const struct decision *decision; /* behind the verdict; NULL: none; valid as the texts */
};

#define LIFE_MAX_ACTIONS 24
struct life_actions { struct life_action item[LIFE_MAX_ACTIONS]; size_t n; };

struct life {
	struct jobs *jobs;              /* borrowed */
	struct observed value[OBSERVED_MAX]; /* of an action */
	/* The load that jobs meet: integrals over time of the running jobs and of their cpus. */
	double jobs_integral_s, processes_integral_s;
	int64_t load_since_ns; size_t load_jobs; uint64_t load_processes;
	/* The work of others: what is seen now (NaN: it is not measured), added up over the time that was
	 * seen, and that time. The caller keeps them up to date. */
	double other_load, other_sum_s, other_span_s;
};

/* Appends what is to be done. ERR_NOMEM: SUBMITTED or RESTORED could not keep the job, which is still the
 * caller's. */
int life_event(struct life *l, const struct life_event *e, struct life_actions *out, struct err *err);
/* The store has refused ADD_ROW: as if the job had never come. It is the caller's again. */
void life_take_back(struct life *l, struct job *job);
/* How long a run took whose outcome is `o`; NaN: it never ran. For sched_foreseen_s(), before ENDED. */
double life_run_s(const struct job *job, const struct exec_outcome *o, int64_t now_ns);
/* What a live job had in memory is freed, and the oldest ended jobs beyond max_ended are forgotten. */
void life_close(struct life *l, struct job *job, size_t max_ended);
/* After RESTORED: what the scheduler gets to know again of a live job; `request` is the caller's part. */
void life_back(const struct job *job, struct sched_restored *out);
bool life_advised(const struct job *job);
bool life_stops(const struct job *job); /* it runs, and is to stop */
/* It is worth asking sched_should_stop() and sched_gives_back(). */
bool life_may_stop_early(const struct job *job);
/* A report that asks how to go on may be answered otherwise than before. */
bool life_steers(const struct job *job);

/* Why a decision promises nothing: the reason (enum decide_reason) that all its candidates share;
 * REASON_SLO_EXCEEDED where a longer limit could be promised; 0: another reason. */
unsigned life_rejected_by(const struct decision *d);
/* The same for people. The candidates say it in detail. */
void life_why_rejected(const struct job_record *row, const struct decision *d, char *text, size_t size);

#endif
