/* Shared by decide.c, bounds.c and lookahead.c only. */
#ifndef SCHEDULER_CORE_DECIDE_INTERNAL_H
#define SCHEDULER_CORE_DECIDE_INTERNAL_H

#include "common/heap.h"
#include "scheduler/core/decide.h"

/* Such a candidate is not taken with any limit. */
#define REASONS_HARD (REASONS_NO_ROOM | REASON_BREAKS_PROMISE | REASON_NOT_TRIED)

struct decide_load {                  /* what a candidate is predicted to meet, itself included */
	double njobs, processes;
	double slow;                  /* factor on its time by who its neighbours are; 1: as its own kind */
};

/* From a candidate and a load to the features of the model: the job's values with some of them replaced. */
struct decide_rows {
	const struct decide_params *p;
	struct job_values job;        /* its numbers are the array below */
	int decision, epochs, njobs, processes, devices; /* columns; -1: the model has none */
	int other;                    /* the column of other work; -1: the model has none */
	bool other_given;             /* the job says its own */
	int load_feature[2];          /* of njobs and processes; -1: none */
	double other_load;            /* processes of others in every load below */
	double bias;                  /* on the model's times, the level of its family included; 1 without
	                                 adaptation */
	double narrow;                /* on the widths of bounds, by runs of its new family; 1 without any */
	double runs;                  /* so many of them */
	bool has_shares;              /* those of all candidates are filled in */
	double asked, q;              /* the confidence whose bound says how wide beliefs are (belief.h), and
	                                 the model's own score of it; NaN: none */
	double spreads_asked, spreads; /* belief_spreads() of it, and of the confidence of the job */
	const struct adapt *adapt;    /* NULL: none */
	double scored, above;         /* the last score that it was asked about, and its answer */
	double number[SCHEMA_MAX_COLUMNS];
};

#define DECIDE_MAX_FEATURES 1024 /* of one pass: rows x features */

/* Time, accuracy and extrapolation of one candidate under a load (NULL: the job's own values); x: its row.
 * Where epochs are open the accuracy stays as it is: it was made to rise with them, and does not depend on
 * the load. */
void decide_predict_one(struct decide_rows *r, const struct decide_load *load, struct candidate *c,
			double *x);
/* All candidates in as few passes as there is room for, with their bounds. load: one for each candidate.
 * With a scene the shares too. Accuracies rise with the epochs of a batch. times_only: times and shares, for
 * a load that will be another one. out_errors: of their rows, without bounds and chances, which come with a
 * play; NULL: there will be none. */
void decide_predict_all(struct decide_rows *r, const struct decide_load *load, struct decision *d,
			bool times_only, struct model_errors *out_errors);
/* The time of one candidate, as the model says it; NaN: none. */
double decide_predict_time(struct decide_rows *r, const struct decide_load *load, const struct candidate *c);

/* Why a feasible candidate is not the chosen one. */
unsigned decide_lost(const struct decision *d, const struct candidate *c);

/* ---- other_work.c ---- */
void decide_other_init(struct decide_rows *r);
/* Puts a load into the numbers of the job, so that the work of others counts once. */
void decide_other_load(struct decide_rows *r, const struct decide_load *load);
/* Takes from a row that was predicted what others alone put outside the training ranges. Bounds and notices
 * are made from the result. */
void decide_other_settle(const struct decide_rows *r, double *x);
/* Fills in other_factor of a decision that is made. */
void decide_other_weigh(struct decide_rows *r, struct decision *d);

/* ---- bounds.c ---- */
void decide_bounds_init(struct decide_rows *r);
struct model_errors decide_errors_at(const struct decide_rows *r, const double *x); /* of this row */
/* Fills in the spread and the guard of a candidate, whose time is the corrected one; e: the errors of its
 * row. */
void decide_bound(struct decide_rows *r, const struct model_errors *e, struct candidate *c);
/* The chance that wait and time of the candidate, whose spread is known, are within the limit. */
double decide_chance(const struct decide_rows *r, const struct candidate *c);

/* Work that takes time_s among `processes`. */
double decide_work_s(const struct decide_scene *s, const struct candidate *c, double time_s,
		     double processes);

/* Wait and time as the policy compares them with a limit. */
double decide_needed_s(const struct decide_params *p, const struct candidate *c);
/* Fills in `feasible` and all reasons but the hard ones, which stay. */
void decide_judge(const struct decide_params *p, struct candidate *c);
/* The feasible one with the best accuracy, ties within the noise of the accuracy model to the fastest; -1:
 * none. */
int decide_best(const struct decide_params *p, const struct decision *d);

struct decide_scratch {
	size_t max_jobs;
	struct fluid_workspace *workspace;
	struct fluid_times *without, *with;
	struct heap ends;
	bool *wanted; /* by seat: what becomes of it with the candidate is to be known */
	bool played[DECIDE_MAX_CANDIDATES];
	/* of each candidate the load that its prediction is for, and the errors of the model there; njobs
	 * NaN: it has times of a play instead */
	struct decide_load load[DECIDE_MAX_CANDIDATES];
	struct model_errors errors[DECIDE_MAX_CANDIDATES];
	bool has_errors[DECIDE_MAX_CANDIDATES];
};

/* lookahead.c: fills in waits, times and effects on others. The candidates have their batches and the hard
 * reasons that need no look. */
int decide_look_ahead(struct decide_rows *r, struct decision *d, struct err *err);

#endif
