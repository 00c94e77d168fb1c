/* Histograms with fixed bounds. See histogram.h. */
#include "common/histogram.h"

#include <assert.h>
#include <math.h>

const double histogram_short_s[] = { 1e-5,  2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01,
				     0.025, 0.05,   0.1,  0.25, 0.5,    1.0,  2.5,  5.0,    10.0 };
const size_t histogram_n_short = sizeof histogram_short_s / sizeof *histogram_short_s;
const double histogram_long_s[] = { 0.1,    0.25,   0.5,     1.0,     2.5,     5.0,    10.0,
				    30.0,   60.0,   120.0,   300.0,   600.0,   1200.0, 1800.0,
				    3600.0, 7200.0, 14400.0, 43200.0, 100800.0 };
const size_t histogram_n_long = sizeof histogram_long_s / sizeof *histogram_long_s;

void histogram_init(struct histogram *h, const double *bound, size_t n)
{
	assert(n <= HISTOGRAM_MAX);
	*h = (struct histogram){ .bound = bound, .n = n };
}

void histogram_add(struct histogram *h, double v)
{
	size_t i = 0;

	if (!isfinite(v))
		return;
	v = v < 0.0 ? 0.0 : v; /* clocks that were set back */
	while (i < h->n && v > h->bound[i])
		i++;
	h->count[i]++;
	h->total++;
	h->sum += v;
}
