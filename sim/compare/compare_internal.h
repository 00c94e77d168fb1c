/* What the files of a comparison share: compare.c opens and sums up, compare_models.c trains, compare_runs.c
 * runs. */
#ifndef SIM_COMPARE_COMPARE_INTERNAL_H
#define SIM_COMPARE_COMPARE_INTERNAL_H

#include <pthread.h>

#include "sim/compare/compare.h"

/* Wall-clock times of decisions by their logarithm: a quantile of any number of them in a page or two of
 * memory, off by at most 1 %. They are not reproducible, so more would promise too much. */
#define DECISION_BINS 3000
struct decision_times {
	uint64_t bin[DECISION_BINS];
	double sum_s;
	uint64_t n;
};
void decision_times_add(struct decision_times *d, double s);
double decision_times_quantile(const struct decision_times *d, double q); /* NaN: none */

struct compare_shares {              /* of all replications together, for Wilson's interval */
	double part[METRICS], whole[METRICS];
};

struct compare_runs {
	const struct compare_params *p;
	struct compare_result *r;
	size_t folds;
	const struct model *const *model;     /* [fold * n_policies + policy]; NULL: wants none */
	struct compare_shares *shares;        /* by policy, filled in here */
	struct decision_times *times;         /* by policy, filled in here, too */

	pthread_mutex_t lock;                 /* of all below, and of on_progress */
	size_t *left;                         /* by replication: runs that have not ended */
	size_t failed;                        /* the lowest run that did; SIZE_MAX: none */
	struct err err;                       /* its error */
	size_t done, total;                   /* jobs arrived, of all runs */
};
/* Fills run, value, tracked and covered of every policy of x->r, and shares and times. */
int compare_runs_all(struct compare_runs *x, struct err *err);
/* on_progress of the parameters, one call at a time. */
void compare_runs_progress(void *runs, const char *stage, size_t done, size_t total);

/* Sets the batch of fixed:best, if it is among the policies: best_fixed.c. */
int compare_best_fixed(const struct compare_params *p, struct compare_result *r, struct err *err);

/* ---- which model each policy decides with: compare_models.c ---- */
struct compare_models { /* of all folds that are used */
	size_t n;
	struct csv **table;
	struct sim_models **trained; /* borrowed from a cache, or its own */
	bool cached;
	struct model *given_scaled; /* --model on another machine; NULL: as it is */
	const struct model **of; /* [fold * n_policies + policy] */
};

/* Trains what is to be trained: for each fold once, for policies that do not take the model given. Sets
 * x->folds and x->model, which live as long as `m`. Needs the worlds of x->r. To be released, also after an
 * error. */
int compare_models_of(struct compare_runs *x, struct compare_models *m, struct err *err);
void compare_models_release(struct compare_models *m);
/* Those of the first fold, into the policies of x->r. */
int compare_models_importances(struct compare_runs *x, struct err *err);

#endif
