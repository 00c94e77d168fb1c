/* The runs of a comparison: every policy in every replication, through the pool. For compare.c alone. */
#ifndef SIM_COMPARE_COMPARE_RUNS_H
#define SIM_COMPARE_COMPARE_RUNS_H

#include <pthread.h>

#include "sim/compare/compare.h"

/* Wall-clock times of decisions by their logarithm: a quantile of any number of them in a page or two of memory, off by
 * at most 1 %. They are not reproducible, so more would promise too much. */
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
	struct decision_times *times;         /* likewise */

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

#endif
