/* One job as it is kept: the record that the daemon holds in memory, the store writes as a row, and the
 * protocol sends as a job object. One table names its fields. SQL statements, JSON in both directions and
 * empty values come from that table, so a new field is one line in it (docs/STORE.md says what else it
 * needs). */
#ifndef SCHEDULER_JOBS_RECORD_H
#define SCHEDULER_JOBS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/json/json.h"

struct candidate; /* core/decide.h */

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_DONE, JOB_FAILED, JOB_CANCELLED, JOB_REJECTED, JOB_LOST };
enum { N_JOB_STATES = JOB_LOST + 1 };
/* What the scheduler said when the job arrived. */
enum job_verdict {
	VERDICT_NONE, VERDICT_PROMISED, VERDICT_BEST_EFFORT, VERDICT_REJECTED, VERDICT_CHANCE,
	VERDICT_WAITING              /* nothing yet: another job has to end first */
};
enum { N_JOB_VERDICTS = VERDICT_WAITING + 1 };
/* Whether the job kept its limit. A job without a limit, or one that has not ended, has none. */
enum slo_outcome { SLO_NONE, SLO_MET, SLO_MISSED };
enum { N_SLO_OUTCOMES = SLO_MISSED + 1 };

/* As they are stored and sent; NULL for VERDICT_NONE and SLO_NONE. */
extern const char *const job_state_name[N_JOB_STATES + 1]; /* NULL behind the last */
extern const char *const job_verdict_name[N_JOB_VERDICTS];
extern const char *const slo_outcome_name[N_SLO_OUTCOMES];

static inline bool job_state_live(enum job_state s)
{
	return s == JOB_QUEUED || s == JOB_RUNNING;
}

enum job_verdict job_verdict_of(int sched_verdict); /* enum sched_verdict of core/sched.h */

/* Text is borrowed. A number that is not known is NaN, a text NULL. Times are nanoseconds since 1970, UTC. */
struct job_record {
	uint64_t id;
	const char *key;             /* idempotency key of this uid; NULL: none */
	uid_t uid; gid_t gid;        /* (uid_t)-1: not known */
	const char *type, *mode;     /* "run" or "advise" */
	const char *params;          /* JSON object */
	const char *batches;         /* JSON array of the batches the job allows; NULL: all */
	uint32_t cpus;
	uint32_t gpus_least;         /* asked for, with any batch */
	uint32_t gpus;               /* as started, or as decided so far */
	const char *devices;         /* their names, "0,3"; NULL: none yet, or an engine chooses them */
	double slo_s, confidence, max_memory_mb;
	bool best_effort;
	double chance;               /* taken without a promise if it has this chance; NaN: not asked for */
	double value;                /* what it is worth in time, where 1 is usual; NaN: not stated, so 1 */
	enum job_state state;
	enum job_verdict verdict;
	const char *reason;          /* why failed, lost, rejected */
	int64_t submitted_ns, started_ns, ended_ns; /* 0: not yet */
	double batch, lr;            /* as started, or as decided so far */
	double predicted_s, upper_s; /* response (wait + time) promised at arrival, and its bound */
	double predicted_accuracy;
	double run_predicted_s, run_upper_s; /* run time at the start's decision */
	double work_s, cpu_share, disk_share; /* of the look-ahead */
	double accuracy;             /* measured */
	int exit_code, exit_signal;  /* -1, 0: not known */
	double max_rss_mb, cpu_s;
	const char *policy, *model;  /* that decided */
	enum slo_outcome slo_outcome;
	const char *tag;             /* the submitter's name for the job */
	double epochs;               /* chosen, where the job left them open; NaN: it did not */
	double model_s;              /* the model's own run time at the start's decision: run_predicted_s
	                                without what was learned since the model was trained
	                                (core/learn/adapt.h) */
	const char *tenant;          /* by name; NULL: the job is older than tenants */
	int priority;
	bool may_stop;               /* rather stopped early than late */
	double stopped_epoch;        /* the epoch after which the daemon stopped it early; NaN: it did not */
	double guard_s;              /* bound of the run time under the load foreseen at the start's decision.
	                                The promise rests on it; people see run_upper_s. */
	double foreseen_s;           /* ended: the run time the job would have had under that load
	                                (core/sched.h) */
	const char *identity;        /* 32 hexadecimal digits, drawn once and never again: the supervisor's
	                                records of the job bear it; each further attempt has the next number.
	                                NULL: the job is older than that */
	uint64_t after;              /* the job that had to end first; 0: none */
	const char *after_more;      /* and others, as a JSON array of ids in quotes; NULL: none */
	bool after_ok;               /* and all of them to end well */
	int retry, attempt;          /* how often a failed run is repeated at most, and was so far */
	const char *steered;         /* how its batch changed while it ran: JSON array (jobs.h, struct
	                                job_change); NULL: it did not */
	const char *steer_kept;      /* sched_steer_kept() of core/steer.h; NULL: nothing */
	double array_index;          /* of a job of an array; NaN: it is none */
};

void job_record_init(struct job_record *out); /* nothing is known; JOB_QUEUED */

#define JOB_IDENTITY 32 /* hexadecimal digits */
/* An identity that no job had before and none will have: 128 bits from the system. */
int job_identity_draw(char out[JOB_IDENTITY + 1], struct err *err);
void job_identity_next(char *identity); /* of the next attempt */

/* ---- the scheduler's decision ---- */
/* At the start: the candidate that was chosen, with its learning rate. */
void record_take_candidate(struct job_record *r, const struct candidate *c, double lr);
/* At arrival: the same, and what is promised. */
void record_take_promise(struct job_record *r, const struct candidate *c, double lr);
/* The candidate that was taken last, as far as the record knows it; for sched_restore(). */
struct candidate record_candidate(const struct job_record *r);

/* ---- what follows from a record ---- */
struct job_times { /* NaN, 0: has not happened yet */
	int64_t deadline_ns;         /* 0 also where no calendar can name it */
	double wait_s, run_s, response_s;
	double slack_s;              /* only of jobs that are done and had a limit */
};
struct job_times job_times(const struct job_record *r);

/* ---- the job object of docs/PROTOCOL.md ---- */
/* What only the running daemon knows of a job; all zero: nothing. */
struct job_live {
	bool has_estimate;
	double start_s, end_s, end_low_s, end_high_s; /* from now; NaN: not known */
	bool late;
	bool has_waiting;            /* set by reading; writing looks at waiting_code */
	const char *waiting_code;    /* NULL: it does not wait */
	const char *waiting_message;
	bool has_progress;
	double epoch, epochs, accuracy; /* NaN: not said */
	double final_accuracy;       /* expected after the last epoch, by its own curve; NaN: not known */
	pid_t pid;                   /* 0: none */
};

/* live may be NULL. */
void job_json(struct json_writer *w, const struct job_record *r, const struct job_live *live);
/* Reads such an object back; false: it is none. What it does not say, or says in a wrong type, is as
 * job_record_init() leaves it. Text is borrowed from v. `params` and `batches` are not read: they stay in
 * v. */
bool job_json_read(const struct json *v, struct job_record *out, struct job_times *out_times,
                   struct job_live *out_live);

/* The pieces it is made of, for other objects of the protocol. */
void json_kv_moment(struct json_writer *w, const char *key, int64_t at_ns); /* 0: null */
/* A value that is JSON already (NULL: null); its line ends become blanks, so that an object stays on its
 * line. */
void json_put_raw(struct json_writer *w, const char *text);

/* ---- the table ---- */
enum field_kind {
	FIELD_ID,       /* uint64_t; text in JSON, whose numbers are doubles */
	FIELD_REF,      /* the same of another job; 0: none */
	FIELD_TEXT,     /* const char *; NULL: not known */
	FIELD_JSON,     /* const char * that is JSON already; NULL: not known */
	FIELD_FIXED,    /* double with six decimals in JSON; NaN: not known */
	FIELD_NUMBER,   /* double with as many digits as it needs; NaN: not known */
	FIELD_MOMENT,   /* int64_t nanoseconds; 0: not yet */
	FIELD_UNSIGNED, /* uint32_t, uid_t, gid_t */
	FIELD_BOOL,
	FIELD_INT,
	FIELD_EXIT,     /* int; -1: not known */
	FIELD_SIGNAL,   /* int; 0: not known */
	FIELD_STATE,    /* enum job_state */
	FIELD_VERDICT,  /* enum job_verdict */
	FIELD_OUTCOME,  /* enum slo_outcome */
	FIELD_GROUP,    /* JSON only: begins an object inside the object; bool: there is one */
	FIELD_GROUP_END,
};
enum field_home { IN_RECORD, IN_TIMES, IN_LIVE };

struct job_field {
	const char *column;          /* in SQL; NULL: it has none */
	const char *key;             /* in JSON; NULL: it is not in the object */
	enum field_kind kind;
	bool needed;                 /* never NULL in SQL */
	bool once;                   /* written with a new row, and left alone by updates */
	int since;                   /* the version of the store that brought the column */
	enum field_home home;        /* the structure the offset counts in */
	size_t offset;
};
extern const struct job_field job_field[];
extern const size_t n_job_fields;

/* The text of a field that is kept as text, a name of an enum included; NULL: none. */
const char *job_field_text(const struct job_field *f, const void *member);
/* An enum's value by its name, false: no such name. */
bool job_field_named(const struct job_field *f, const char *name, void *out_member);

#endif
