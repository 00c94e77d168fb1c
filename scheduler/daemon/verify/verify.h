/* `postriderd --verify DIR`, which is `postrider replay --from-history DIR --verify`: the decisions of a
 * daemon are made again by the daemon's own code, from its records, and compared job by job.
 *
 *   past.c      reads the records
 *   replayed.c  a daemon without a world: its folder, configuration and models; played.c its executors
 *   verify.c    drives it through the records, in the order of time
 *   compare.c   what differs, why, and how it is told
 *
 * Where a decision comes out otherwise, the replay goes on with what was recorded, so that one difference
 * does not make all later ones. */
#ifndef SCHEDULER_DAEMON_VERIFY_VERIFY_H
#define SCHEDULER_DAEMON_VERIFY_VERIFY_H

#include "scheduler/daemon/verify/past.h"

struct verify_params {
	const char *state_dir;       /* or the database itself */
	double least;                /* the share that has to agree; NaN: any */
	bool json;
};
int verify_run(const struct verify_params *p); /* an exit code; prints to standard output */

/* ---- between verify.c and compare.c ---- */

struct again {                       /* what the replay decided about a job */
	enum job_verdict verdict;    /* VERDICT_NONE: nothing */
	struct past_choice *arrival; /* NULL: none */
	struct past_choice *start; size_t n_starts, starts_cap; /* one a run */
	char why[160];               /* something that happened to it in the replay alone; "": nothing */
	size_t n_due;                /* starts in the records so far */
	bool steered_otherwise;      /* while it ran it was told otherwise than in the records */
	bool not_steered;            /* the daemon was restarted while it ran, so that is not judged */
	bool played;                 /* it was in the replay at all */
};

struct gap {                         /* the replay could not go on, until a daemon began again */
	int64_t from_ns, until_ns;
	char why[320];
};

struct outcome {
	const struct past *past;
	struct again *again;         /* as past->job[] */
	int64_t from_ns;             /* the records begin there */
	struct gap *gap; size_t n_gaps, gaps_cap;
};

struct verdicts { size_t jobs, judged, agree, numbers, same; };
/* The text or the JSON of it. */
void outcome_print(const struct outcome *o, bool json, struct strbuf *out, struct verdicts *counts);

#endif
