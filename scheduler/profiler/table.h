/* From the journal to results: which runs can be trusted, the table of runs, the table of curves, and how
 * long the rest will take. Pure functions of a journal; called after each run. */
#ifndef SCHEDULER_PROFILER_TABLE_H
#define SCHEDULER_PROFILER_TABLE_H

#include "scheduler/profiler/journal.h"

struct profile_verdict {
	enum profile_status *status; /* of each run of the plan; of one that is not done it says nothing */
	/* unstable, and the replication farthest from the middle: the one to repeat */
	bool *apart;
	size_t n_ok, n_failed, n_timeout, n_unstable;
	/* coefficients of variation of settings with two good replications or more */
	double *cv; size_t n_cv;
};
/* A run is unstable where its copies spread more than the bound, or where the replications of its setting
 * do. Replications beside different amounts of other work are not compared. */
int profile_judge(const struct profile_journal *j, struct profile_verdict *out, struct err *err);
void profile_verdict_release(struct profile_verdict *v);
/* An unstable run that may be measured once more; SIZE_MAX: none. */
size_t profile_repeat(const struct profile_journal *j, const struct profile_verdict *v);

/* One row for each copy of each run that is done. Only runs that are ok have a time, and failed ones no
 * accuracy either, so that they are not used by accident; the journal keeps what was
 * measured. */
void profile_put_table(const struct profile_journal *j, const struct profile_verdict *v, struct strbuf *out);
void profile_put_curves(const struct profile_journal *j, const struct profile_verdict *v, struct strbuf *out);

/* What a run will take, from those that are done: main effects of the factors on log time, each drawn towards
 * none as long as it rests on few runs. */
struct profile_estimate {
	size_t n;         /* runs it rests on; 0: none */
	double mean_log;
	double effect[PROFILE_MAX_FACTORS][PROFILE_MAX_LEVELS];
};
void profile_estimate_make(const struct profile_journal *j, struct profile_estimate *out);
double profile_estimate_run_s(const struct profile_estimate *e, const struct profile_design *d,
                              const struct profile_point *p); /* NaN: not known */
double profile_estimate_left_s(const struct profile_estimate *e, const struct profile_journal *j);

#endif
