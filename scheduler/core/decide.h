/* The decision: among the candidate values of one job, the best predicted accuracy that will meet
 * the objective. Pure: no clock, file, socket, thread or allocation. Called by the command line now,
 * by the daemon and the simulator later. */
#ifndef SCHEDULER_CORE_DECIDE_H
#define SCHEDULER_CORE_DECIDE_H

#include "predictors/model.h"

#define DECIDE_MAX_CANDIDATES 64

/* Reason bits: why a candidate is not feasible, or lost against the chosen one. */
enum decide_reason {
	REASON_SLO_EXCEEDED = 1,      /* upper bound above the objective */
	REASON_NO_BOUND = 2,          /* too few residuals for the confidence: no promise possible */
	REASON_EXTRAPOLATED = 4,      /* outside the training ranges: a notice, not a refusal */
	REASON_LOWER_ACCURACY = 8,    /* feasible, but another one is predicted more accurate */
	REASON_SLOWER = 16,           /* equal accuracy, another one is faster */
	REASON_UNSTABLE = 32,         /* the model has no time for it: a queue without a steady state */
};
const char *decide_reason_text(enum decide_reason one); /* stable code, e.g. "slo_exceeded" */

struct candidate {
	double decision;              /* the batch */
	double time_s, upper_s;       /* upper_s NaN when there is no bound, both NaN when unstable */
	double accuracy;              /* NaN without an accuracy model */
	bool extrapolated, feasible;
	unsigned reasons;             /* enum decide_reason, or-ed */
};

struct decision {
	struct candidate candidate[DECIDE_MAX_CANDIDATES];
	size_t n_candidates;
	int chosen;                   /* index, -1: none feasible */
	double smallest_slo_s;        /* the smallest objective that could have been promised; NaN: none */
	double confidence;
};

struct decide_params {
	const struct model *model;
	const struct job_values *job; /* the decision column in it is ignored */
	const double *candidate; size_t n_candidates; /* NULL: the model's own */
	double slo_s;                 /* NaN: no objective, every candidate that is stable is feasible */
	double confidence;            /* e.g. 0.9 */
};

int decide(const struct decide_params *p, struct decision *out, struct err *err);

#endif
