/* The latest starts, of which the slowest few do not count. See start_lag.h. */
#include "scheduler/core/learn/start_lag.h"

#include <string.h>

#include "common/stats.h"

void start_lag_add(struct start_lag *l, double lag_s)
{
	if (lag_s >= 0.0)
		l->lag_s[l->n++ % START_LAG_LATEST] = lag_s;
}

double start_lag_most_s(const struct start_lag *l, double percent, double guess_s)
{
	double sorted[START_LAG_LATEST];
	size_t n = l->n < START_LAG_LATEST ? l->n : START_LAG_LATEST;

	memcpy(sorted, l->lag_s, n * sizeof *sorted);
	while ((double)n * (100.0 - percent) < 100.0 && n < START_LAG_LATEST)
		sorted[n++] = guess_s;
	return stats_percentile(sorted, n, percent);
}
