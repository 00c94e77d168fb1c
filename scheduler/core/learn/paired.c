/* The signed-rank test of paired.h. */
#include "scheduler/core/learn/paired.h"

#include <math.h>
#include <stdlib.h>

#include "common/stats.h"

static int by_size(const void *a, const void *b)
{
	double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

	return (x > y) - (x < y);
}

/* Twice the ranks are whole numbers, ties or not, and so are their sums: count[s] of the 2^n signs give the
 * sum s. */
static double exact_p(const unsigned *twice, size_t n, unsigned sum)
{
	double count[PAIRED_EXACT * (PAIRED_EXACT + 1) + 1] = { 1.0 }, tail = 0.0;
	unsigned most = 0;

	for (size_t i = 0; i < n; i++) {
		for (unsigned s = most + 1; s-- > 0;)
			count[s + twice[i]] += count[s];
		most += twice[i];
	}
	for (unsigned s = sum; s <= most; s++)
		tail += count[s];
	return ldexp(tail, -(int)n);
}

static double normal_p(double n, double statistic, double ties)
{
	double mean = n * (n + 1.0) / 4.0, variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;

	return 0.5 * erfc((statistic - mean - 0.5) / sqrt(2.0 * variance));
}

/* Moves those that are numbers and not 0 to the front; returns how many. */
static size_t keep_different(double *v, size_t n, size_t *out_numbers)
{
	size_t kept = 0, numbers = 0;

	for (size_t i = 0; i < n; i++) {
		numbers += !isnan(v[i]);
		if (!isnan(v[i]) && v[i] != 0.0)
			v[kept++] = v[i];
	}
	*out_numbers = numbers;
	return kept;
}

void paired_signed_rank(double *difference, size_t n, struct paired_result *out)
{
	unsigned twice[PAIRED_EXACT], sum = 0;
	double ties = 0.0;
	size_t end;

	out->statistic = 0.0;
	out->n_different = n = keep_different(difference, n, &out->n);
	out->exact = n < PAIRED_EXACT;
	if (n > 1)
		qsort(difference, n, sizeof *difference, by_size);
	for (size_t i = 0; i < n; i = end) {
		double rank, t;

		for (end = i + 1; end < n && fabs(difference[end]) == fabs(difference[i]); end++)
			;
		t = (double)(end - i);
		rank = ((double)i + 1.0 + (double)end) / 2.0; /* the mean of i+1 .. end */
		ties += t * t * t - t;
		for (size_t k = i; k < end; k++) {
			if (difference[k] > 0.0)
				out->statistic += rank;
			if (!out->exact)
				continue;
			twice[k] = (unsigned)(i + 1 + end);
			sum += difference[k] > 0.0 ? twice[k] : 0;
		}
	}
	out->p = n == 0       ? 1.0
		 : out->exact ? exact_p(twice, n, sum)
			      : normal_p((double)n, out->statistic, ties);
}

static bool is_time(double v)
{
	return v > 0.0 && isfinite(v);
}

/* With the errors of both (sign of each -1, 0 or 1), of the jobs that can be compared; returns how many. */
static size_t fill(const struct paired_jobs *j, double old_sign, double new_sign, double *out)
{
	size_t m = 0;

	for (size_t i = 0; i < j->n; i++)
		if (is_time(j->actual_s[i]) && is_time(j->old_s[i]) && is_time(j->new_s[i]))
			out[m++] = old_sign * fabs(log(j->actual_s[i]) - log(j->old_s[i])) +
				   new_sign * fabs(log(j->actual_s[i]) - log(j->new_s[i]));
	return m;
}

int paired_compare(const struct paired_jobs *j, double *work, struct paired_result *out, struct err *err)
{
	struct paired_result r = { 0 };
	size_t m;

	if (j->n > PAIRED_MAX)
		return err_fail(err, ERR_ARG, "%zu jobs; a comparison takes at most %d", j->n, PAIRED_MAX);
	m = fill(j, 1.0, 0.0, work);
	if (m == 0)
		return err_fail(err, ERR_NODATA, "none of %zu jobs has a time and two predictions to compare",
				j->n);
	r.old_error = stats_median(work, m);
	fill(j, 0.0, 1.0, work);
	r.new_error = stats_median(work, m);
	fill(j, 1.0, -1.0, work);
	paired_signed_rank(work, m, &r);
	*out = r;
	return 0;
}
