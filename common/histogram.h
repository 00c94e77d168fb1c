/* A histogram with fixed bounds: how many values were at most each bound, and their sum. Adding is a few
 * comparisons and never allocates, so it is cheap enough for every decision. */
#ifndef COMMON_HISTOGRAM_H
#define COMMON_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_MAX 24 /* bounds */

struct histogram {
	const double *bound; size_t n; /* ascending; borrowed for as long as the histogram is used */
	uint64_t count[HISTOGRAM_MAX + 1]; /* of values in (bound[i - 1], bound[i]]; the last: above all */
	uint64_t total;
	double sum;
};

/* Bounds for what takes from 10 microseconds to 10 seconds, and from 100 ms to 28 hours. */
extern const double histogram_short_s[], histogram_long_s[];
extern const size_t histogram_n_short, histogram_n_long;

void histogram_init(struct histogram *h, const double *bound, size_t n); /* n at most HISTOGRAM_MAX */
void histogram_add(struct histogram *h, double v); /* what is not finite is left out; below 0 counts as 0 */

#endif
