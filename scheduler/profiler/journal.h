/* The journal of a campaign: JSON lines, the design first and then one line for each finished measurement.
 * Each line is written and synced before anything else happens, so what was measured survives if the program
 * is killed (common/json/lines.h).
 *
 * If there are several lines about one run, the last one counts: an unstable run is measured again. */
#ifndef SCHEDULER_PROFILER_JOURNAL_H
#define SCHEDULER_PROFILER_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json/lines.h"
#include "scheduler/profiler/plan.h"

#define PROFILE_JOURNAL_VERSION 1
#define PROFILE_JOURNAL_MAX ((size_t)1 << 30)
#define PROFILE_MAX_EPOCHS 100000 /* of the curve of one copy */

enum profile_status { PROFILE_OK, PROFILE_FAILED, PROFILE_TIMEOUT, PROFILE_UNSTABLE };
const char *profile_status_name(enum profile_status s);

struct profile_epoch {
	double epoch, accuracy, loss, elapsed_s; /* NaN where the command did not say */
};

struct profile_copy {
	double time_s;          /* from spawn to exit */
	double accuracy;        /* a share of 1; NaN: none was found */
	bool percent;           /* it was printed as a number above 1 */
	char found[OUTPUT_FOUND]; /* where it was; not kept in the journal */
	double max_rss_mb;      /* of its largest process */
	size_t threads;         /* most in one of its processes; 0: not seen. Not in the journal */
	double job_cpu_mean;    /* % of one core, over its own time, children included */
	/* % of its time its first process waited for a disk; NaN: the kernel does not count */
	double job_iowait_mean;
	struct output_phases phases; /* as it told */
	int exit_code, signal;  /* 0 and 0: it went well */
	double cut_epochs;      /* it was ended after so many epochs, which its time is of; 0: it was not */
	struct profile_epoch *epoch; size_t n_epochs;
};

struct profile_outcome {
	bool done;
	/* never PROFILE_UNSTABLE: that depends on the bound, and is decided later */
	enum profile_status status;
	size_t tries;               /* measurements so far, this one included */
	char started_at[32];        /* RFC 3339, UTC */
	double cpu_mean, iowait_mean; /* % of the machine, from the first spawn to the last exit */
	/* processes of others that wanted a cpu, as a mean over the run; NaN: an older version measured it */
	double other_load;
	struct profile_copy *copy; size_t n_copies;
	char why[256];              /* what failed; empty if nothing did */
	bool dropped;               /* it was ended before it told anything: no outcome */
};
void profile_outcome_release(struct profile_outcome *o);
bool profile_outcome_cut(const struct profile_outcome *o); /* a copy was ended early, its epochs are fewer */
double profile_outcome_time(const struct profile_outcome *o);   /* mean of its copies */
/* (longest - shortest) / mean; 0 for one copy */
double profile_outcome_spread(const struct profile_outcome *o);

struct profile_journal {
	const struct profile_design *design; /* both borrowed since it was opened */
	const struct profile_plan *plan;
	struct json_lines file;
	struct profile_outcome *run;  /* one for each run of the plan */
	size_t n_done;
	size_t n_cut;                 /* bytes of a torn last line */
	bool existed;
};

enum profile_open {
	PROFILE_RESUME,  /* go on where it was, or begin */
	PROFILE_RESTART, /* keep the old journal as journal.jsonl.old, and begin */
	PROFILE_LOOK,    /* read what is there, change nothing */
};

/* DIR/journal.jsonl. A journal of another design is ERR_FORMAT and the text says what differs; one that
 * another process writes is ERR_BUSY. Close after failure too. */
int profile_journal_open(struct profile_journal *j, const char *dir, const struct profile_design *d,
                         const struct profile_plan *plan, enum profile_open how, struct err *err);
/* Takes the contents of *o, on disk when it returns 0. After a failure the file is as it was. */
int profile_journal_append(struct profile_journal *j, size_t run, struct profile_outcome *o, struct err *err);
void profile_journal_close(struct profile_journal *j);

#endif
