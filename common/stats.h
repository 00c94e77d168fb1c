/* Descriptive statistics of small arrays. */
#ifndef COMMON_STATS_H
#define COMMON_STATS_H

#include <stddef.h>

double stats_mean(const double *v, size_t n);            /* NaN for n = 0 */
double stats_sd(const double *v, size_t n);              /* n-1 in the denominator; 0 for n < 2 */
double stats_median(double *v, size_t n);                /* reorders v; NaN for n = 0 */
double stats_percentile(double *v, size_t n, double p);  /* nearest rank, p in 0..100; reorders v */
void stats_sort(double *v, size_t n);                    /* ascending */

/* The sequence that never falls and is nearest to v in squares: isotonic regression by pooling adjacent
 * violators (Ayer and others, 1955). scratch: n of them. */
void stats_rising(double *v, size_t n, size_t *scratch);

#endif
