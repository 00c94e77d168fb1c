/* How sure a number is: intervals over replications, of shares, and of differences pair by pair. */
#include "sim/compare/metrics.h"

#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>

struct moments {
	double mean, sd;
	size_t n;
	bool equal; /* all the same to the bit */
};

/* Of v - minus (or v alone) where that is finite. Two passes, as the numbers may be large and near each
 * other. */
static struct moments moments_of(const double *v, const double *minus, size_t n)
{
	struct moments m = { .mean = NAN, .sd = NAN, .equal = true };
	double sum = 0.0, squares = 0.0, rest = 0.0, first = NAN;

	for (size_t i = 0; i < n; i++) {
		double x = minus ? v[i] - minus[i] : v[i];

		if (!isfinite(x))
			continue;
		if (!m.n)
			first = x;
		m.equal = m.equal && x == first;
		sum += x;
		m.n++;
	}
	if (m.n)
		m.mean = m.equal ? first : sum / (double)m.n;
	for (size_t i = 0; i < n; i++) {
		double x = minus ? v[i] - minus[i] : v[i];

		if (!isfinite(x))
			continue;
		squares += (x - m.mean) * (x - m.mean);
		rest += x - m.mean;
	}
	if (m.n >= 2) {
		m.mean += rest / (double)m.n; /* what the first pass rounded away */
		m.sd = sqrt(fmax(squares - rest * rest / (double)m.n, 0.0) / (double)(m.n - 1));
	}
	return m;
}

/* NaN unless the confidence is one. */
static double student_quantile(double confidence, size_t n)
{
	if (!(confidence > 0.0 && confidence < 1.0) || n < 2)
		return NAN;
	gsl_set_error_handler_off(); /* its own handler aborts */
	return gsl_cdf_tdist_Qinv((1.0 - confidence) / 2.0, (double)(n - 1));
}

struct interval metrics_interval(const double *v, size_t n, double confidence)
{
	struct moments m = moments_of(v, NULL, n);
	double half = student_quantile(confidence, m.n) * m.sd / sqrt((double)m.n);

	return (struct interval){ m.mean, m.mean - half, m.mean + half };
}

/* Wilson, Journal of the American Statistical Association 22(158), 1927: it stays within 0..1 and is no
 * point at the ends, where the usual interval is. */
struct interval metrics_wilson(double met, double n, double confidence)
{
	struct interval w = { NAN, NAN, NAN };
	double z, p, scale, centre, half;

	if (!(n > 0.0) || !(met >= 0.0 && met <= n))
		return w;
	p = w.mean = met / n;
	if (!(confidence > 0.0 && confidence < 1.0))
		return w;
	gsl_set_error_handler_off();
	z = gsl_cdf_ugaussian_Qinv((1.0 - confidence) / 2.0);
	scale = 1.0 + z * z / n;
	centre = (p + z * z / (2.0 * n)) / scale;
	half = z / scale * sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
	w.low = fmin(fmax(centre - half, 0.0), p); /* rounding must not push p out */
	w.high = fmax(fmin(centre + half, 1.0), p);
	if (met == 0.0)
		w.low = 0.0;
	if (met == n)
		w.high = 1.0;
	return w;
}

struct paired_result metrics_paired(const double *a, const double *b, size_t n, double confidence)
{
	struct moments m = moments_of(b, a, n);
	double error = m.sd / sqrt((double)m.n), half = student_quantile(confidence, m.n) * error;
	struct paired_result r = { m.mean, m.mean - half, m.mean + half, NAN, m.n, NAN };

	if (m.n < 2)
		return r;
	if (m.equal || error == 0.0)
		r.p = m.mean == 0.0 ? 1.0 : 0.0;
	else
		r.p = fmin(2.0 * gsl_cdf_tdist_Q(fabs(m.mean) / error, (double)(m.n - 1)), 1.0);
	return r;
}

/* ---- many tests at once ---- */

const enum metric metric_tested[METRICS_TESTED] = {
	METRIC_ATTAINMENT,    METRIC_ATTAINMENT_ALL, METRIC_ACCURACY_ZERO,
	METRIC_RESPONSE_MEAN, METRIC_RESPONSE_P95,   METRIC_FAIRNESS,
};

static int compare_p(const void *a, const void *b)
{
	double x = (*(struct paired_result *const *)a)->p, y = (*(struct paired_result *const *)b)->p;

	return (x > y) - (x < y);
}

/* Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6(2),
 * 1979: the smallest of m p-values counts m times, the next m - 1 times, and none less than one before it. */
void metrics_holm(struct paired_result **test, size_t n)
{
	double least = 0.0;

	qsort(test, n, sizeof *test, compare_p);
	for (size_t i = 0; i < n; i++) {
		least = fmax(least, fmin(test[i]->p * (double)(n - i), 1.0));
		test[i]->p_holm = least;
	}
}

size_t metrics_correct(struct paired_result *const *versus, size_t n_policies)
{
	struct paired_result *test[METRICS_MAX_RIVALS * METRICS_TESTED];
	size_t n = 0;

	for (size_t i = 0; i < n_policies && i < METRICS_MAX_RIVALS; i++) {
		for (size_t m = 0; versus[i] && m < METRICS; m++)
			versus[i][m].p_holm = NAN;
		for (size_t k = 0; versus[i] && k < METRICS_TESTED; k++)
			if (!isnan(versus[i][metric_tested[k]].p))
				test[n++] = &versus[i][metric_tested[k]];
	}
	metrics_holm(test, n);
	return n;
}

enum verdict metrics_verdict(const struct paired_result *v, enum metric m, double level)
{
	if (isnan(v->p_holm) || isnan(v->difference) || !metric_info[m].better)
		return VERDICT_UNKNOWN;
	if (v->difference == 0.0 && v->low == 0.0 && v->high == 0.0)
		return VERDICT_SAME;
	if (!(v->p_holm < 1.0 - level) || v->difference == 0.0)
		return VERDICT_UNCLEAR;
	return v->difference * metric_info[m].better > 0.0 ? VERDICT_BETTER : VERDICT_WORSE;
}
