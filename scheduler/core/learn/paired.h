/* Is a new model better than the old one on the latest jobs? Both predict the same jobs, so the test is
 * paired: the differences of |log error|, by Wilcoxon's signed-rank test (Biometrics Bulletin 1, 1945),
 * one-sided. It asks for no shape of the errors, and one job that went wrong altogether counts no more than
 * its rank. */
#ifndef SCHEDULER_CORE_PAIRED_H
#define SCHEDULER_CORE_PAIRED_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define PAIRED_MAX 100000
#define PAIRED_EXACT 20     /* fewer differences than this: the exact distribution */

struct paired_result {
	size_t n;           /* jobs compared; those with a time that is not finite and above 0 are left out */
	size_t n_different; /* of these, the two models differ: the ranks */
	double statistic;   /* sum of the ranks of jobs on which the new one is better */
	double p;           /* chance of that sum or more if neither were better; 1 without a difference */
	bool exact;         /* p by all 2^n signs, ties included; else by the normal distribution, its
	                       variance corrected for ties and the sum for continuity */
	double old_error, new_error; /* medians of |log error| */
};

struct paired_jobs {        /* borrowed */
	size_t n;
	const double *actual_s, *old_s, *new_s; /* how long each took, and what the two models said */
};
/* work: room for n numbers. ERR_ARG beyond PAIRED_MAX; ERR_NODATA: no job can be compared. */
int paired_compare(const struct paired_jobs *j, double *work, struct paired_result *out, struct err *err);

/* The test alone, of any differences (NaN is left out): fills n, n_different, statistic, p and exact.
 * Reorders them. */
void paired_signed_rank(double *difference, size_t n, struct paired_result *out);

#endif
