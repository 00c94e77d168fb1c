/* Descriptive statistics of small arrays. See stats.h. */
#include "common/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

double stats_mean(const double *v, size_t n)
{
	double sum = 0.0, rest = 0.0, mean;

	if (n == 0)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	mean = sum / (double)n;
	/* The second pass takes back most of what the first one rounded away. */
	for (size_t i = 0; i < n; i++)
		rest += v[i] - mean;
	return isfinite(rest) ? mean + rest / (double)n : mean;
}

double stats_sd(const double *v, size_t n)
{
	double mean, squares = 0.0, rest = 0.0;

	if (n < 2)
		return 0.0;
	mean = stats_mean(v, n);
	for (size_t i = 0; i < n; i++) {
		squares += (v[i] - mean) * (v[i] - mean);
		rest += v[i] - mean;
	}
	/* Two passes, and the correction for the mean's own rounding (Chan, Golub, LeVeque, The American
	 * Statistician 37(3), 1983, eq. 1.7). */
	squares -= rest * rest / (double)n;
	return sqrt((squares > 0.0 || isnan(squares) ? squares : 0.0) / (double)(n - 1));
}

/* NaN goes last, so that the numbers before it are in order whatever else is there. */
static int compare_doubles(const void *a_, const void *b_)
{
	double a = *(const double *)a_, b = *(const double *)b_;

	if (isnan(a) || isnan(b))
		return !!isnan(a) - !!isnan(b);
	return (a > b) - (a < b);
}

/* qsort() asks through a pointer, which is most of the time that a few numbers take. */
#define FEW 48

static void sort_few(double *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		double x = v[i];
		size_t k = i;

		for (; k > 0 && compare_doubles(&x, &v[k - 1]) < 0; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

void stats_sort(double *v, size_t n)
{
	if (n <= FEW)
		sort_few(v, n);
	else
		qsort(v, n, sizeof *v, compare_doubles);
}

/* Puts the one of this rank in its place, and none that is larger before it (Hoare, Communications of the ACM
 * 4, 1961, 321: "Algorithm 65: find"). No NaN. */
static void put_in_place(double *v, size_t n, size_t rank)
{
	ptrdiff_t low = 0, high = (ptrdiff_t)n - 1, k = (ptrdiff_t)rank;

	while (low < high) {
		ptrdiff_t i = low, j = high;
		double pivot = v[k];

		do {
			while (v[i] < pivot)
				i++;
			while (pivot < v[j])
				j--;
			if (i <= j) {
				double x = v[i];

				v[i++] = v[j];
				v[j--] = x;
			}
		} while (i <= j);
		if (j < k)
			low = i;
		if (k < i)
			high = j;
	}
}

double stats_median(double *v, size_t n)
{
	bool missing = false;
	double below;

	if (n == 0)
		return NAN;
	for (size_t i = 0; i < n; i++)
		missing |= isnan(v[i]);
	if (missing) {
		stats_sort(v, n);
		return n % 2 ? v[n / 2] : 0.5 * v[n / 2 - 1] + 0.5 * v[n / 2];
	}
	put_in_place(v, n, n / 2);
	if (n % 2)
		return v[n / 2];
	below = v[0];
	for (size_t i = 1; i < n / 2; i++)
		below = v[i] > below ? v[i] : below;
	return 0.5 * below + 0.5 * v[n / 2]; /* halved before adding: the sum of large numbers may not fit */
}

double stats_percentile(double *v, size_t n, double p)
{
	double rank;

	if (n == 0 || isnan(p))
		return NAN;
	stats_sort(v, n);
	rank = ceil(p * (double)n / 100.0); /* multiplied first: whole percentages stay exact */
	if (!(rank >= 1.0))
		rank = 1.0;
	if (rank > (double)n)
		rank = (double)n;
	return v[(size_t)rank - 1];
}

void stats_rising(double *v, size_t n, size_t *scratch)
{
	size_t pools = 0, at = n;

	for (size_t i = 0; i < n; i++) {
		v[pools] = v[i];
		scratch[pools++] = 1;
		while (pools > 1 && v[pools - 2] > v[pools - 1]) {
			size_t both = scratch[pools - 2] + scratch[pools - 1];

			v[pools - 2] += (v[pools - 1] - v[pools - 2]) *
					((double)scratch[pools - 1] / (double)both);
			scratch[pools - 2] = both;
			pools--;
		}
	}
	while (pools-- > 0) { /* from the end, where no mean is overwritten that is still needed */
		double mean = v[pools];

		for (size_t k = scratch[pools]; k-- > 0;)
			v[--at] = mean;
	}
}
