/* A campaign: a designed experiment from its plan to its tables. This is the engine behind `postrider
 * profile`; it prints nothing and reports through the callbacks below. The order of use: fill in `design`,
 * then profile_campaign_plan(), profile_campaign_open(), profile_campaign_run(), profile_summary_make(). */
#ifndef SCHEDULER_PROFILER_CAMPAIGN_H
#define SCHEDULER_PROFILER_CAMPAIGN_H

#include <limits.h>

#include "scheduler/profiler/run.h"
#include "scheduler/profiler/table.h"

struct anova;
struct model;

struct profile_campaign {
	struct profile_design design;
	struct profile_plan plan;
	struct profile_journal journal;
	struct profile_verdict verdict;
	struct profile_estimate estimate;
	double left_s;                 /* how long the remaining runs will take; NaN: not known yet */
	const char *table, *curves;    /* files that are written after each run; curves NULL: none */
	char dir[PATH_MAX];            /* journal and logs */
	size_t n_resumed;              /* runs that the journal had at the start */
	double budget_s;               /* that measuring may take; 0: as long as the plan takes */
	bool by_value;                 /* without a budget, too, the runs that tell most come first */
	double begun_s;                /* on the monotonic clock */
	bool spent;                    /* it was not enough for the plan */
	/* instead of profile_run(): where the copies run; NULL: on this machine */
	int (*run)(void *runner, const struct profile_run_params *p, struct profile_outcome *out,
	           int *out_signal, struct err *err);
	void *runner;
	struct profile_signals signals;/* the caller holds them while the campaign runs */
	int signal;                    /* the one that stopped us; 0: none */

	size_t at;                     /* the run that is measured; SIZE_MAX: none, or the warm-up */
	char shown[256];               /* its setting in words */
	bool told_none, told_percent;  /* what on_note has said about accuracies */
	void *owner;
	/* about once a second while a run goes on; may be NULL */
	void (*on_tick)(void *owner, double elapsed_s);
	/* a run is in the journal and in the tables; may be NULL */
	void (*on_run)(void *owner, size_t run);
	void (*on_note)(void *owner, const char *text);      /* something the user should know; may be NULL */
};

void profile_campaign_init(struct profile_campaign *k);
void profile_campaign_release(struct profile_campaign *k);

/* checks the design and makes the plan */
int profile_campaign_plan(struct profile_campaign *k, struct err *err);
/* Opens the journal in `dir` and judges what it holds. retry: runs that failed or were unstable count as not
 * measured. A table without a journal beside it is not ours and is not overwritten: ERR_ARG, unless `how` is
 * PROFILE_RESTART. */
int profile_campaign_open(struct profile_campaign *k, enum profile_open how, bool retry, struct err *err);
/* Measures what is left, then repeats unstable runs. Each run is in the journal and the tables before the
 * next one starts. Returns 0 also if a signal stopped it: see `signal`. */
int profile_campaign_run(struct profile_campaign *k, struct err *err);

/* With a budget of which left_s is left: the run that comes next (budget.c). SIZE_MAX: none that is worth
 * beginning. */
size_t profile_budget_next(const struct profile_campaign *k, double left_s);

/* One job, the middle of everything, the most epochs: what a user asks for first. */
struct profile_point profile_plain_case(const struct profile_design *d);

/* ---- what a campaign says (summary.c) ---- */
/* What can be promised of the plain case with the most epochs, alone, by a model of what was measured. */
struct profile_outlook {
	struct profile_point point;
	double time_s, upper_s;  /* expected; bound at 90 % */
	double narrow_s;         /* what the bound would be about, had this very setting been measured */
};
int profile_outlook(const struct profile_campaign *k, const struct model *m, struct profile_outlook *out,
                    struct err *err);
struct profile_suggestion {
	size_t setting;        /* in the full grid */
	double time_s;         /* predicted */
	double uncertainty;    /* as a share of the time */
	size_t replications;   /* good ones measured so far */
	bool extrapolated;     /* outside the data of the model; only with a model */
	double value;          /* with a model: what a run takes off the bounds of all, in log time */
	uint64_t family;       /* that the model has never seen (predictors/models/spread.h); 0: it has */
	size_t tells;          /* other settings of that family, of which the run tells, too */
};

struct profile_summary {
	struct anova *time, *accuracy;   /* which factors matter; NULL: not known */
	struct err no_time, no_accuracy; /* why not; without a text: there was nothing to analyse */
	struct profile_suggestion *suggestion; size_t n_suggestions;
	bool by_model;                   /* the suggestions are those of a model */
	double median_cv, max_cv;        /* of the time between replications; NaN without replications */
	double other_mean, other_min, other_max; /* others' load beside the runs; NaN: not measured */
};
/* n_suggest: how many settings to suggest, those first whose time is least certain. Without a model, 64 trees
 * are grown on bootstrap samples of the table, and the uncertainty is the standard deviation of their
 * predictions of log time. With a model it is (upper bound - time) / time at 90 %. Settings outside the
 * model's data come first, then those whose run is worth most for each second that it takes: it narrows its
 * own bound to that of a setting that was measured, and in a family that the model has never seen those of
 * all others of the family, a second run less than the first. Among equals the setting that was measured
 * less often comes first. */
int profile_summary_make(const struct profile_campaign *k, const struct model *m, size_t n_suggest,
                         struct profile_summary *out, struct err *err);
void profile_summary_release(struct profile_summary *s);

#endif
