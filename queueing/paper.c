/* The queueing model as the Courier paper publishes it. See paper.h. */
#include "queueing/paper.h"

#include <math.h>
#include <stdbool.h>

#include "queueing/mm1.h"

#define SHARES 19 /* of the shortest iteration, tried as E[S_cpu]: 0.05, 0.10, ... 0.95 */

static bool usable(const struct paper_job *j, double time_s)
{
	return j->iterations > 0.0 && isfinite(j->iterations) && j->batch > 0.0 && isfinite(j->batch) &&
	       j->processes > 0.0 && isfinite(j->processes) && time_s > 0.0 && isfinite(time_s);
}

static double disk_arrivals_per_s(const struct paper *m, const struct paper_job *j)
{
	return fmax(1.0, j->processes / m->workers) / m->cpu_service_s;
}

/* One inverted observation; false: a negative service time is implied. */
static bool invert(const struct paper *m, const struct paper_job *j, double time_s, double *out_mu)
{
	double disk_s = time_s / j->iterations - m->cpu_service_s, service_s;

	if (!(disk_s > 0.0) || mm1_implied_service_s(disk_arrivals_per_s(m, j), disk_s, &service_s, NULL) ||
	    !(service_s > 0.0))
		return false;
	*out_mu = 1.0 / service_s;
	return isfinite(*out_mu);
}

/* Least squares of a plane by its normal equations, centred and scaled by the largest deviation: two
 * unknowns. A column without variation, or one that follows the other, gets no slope. */
static void fit_plane(struct paper *m, const struct paper_job *job, const double *time_s, size_t n)
{
	double mean[3] = { 0.0 }, top[2] = { 0.0 }, xx = 0.0, xy = 0.0, yy = 0.0, xm = 0.0, ym = 0.0, det, mu;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (!usable(&job[i], time_s[i]) || !invert(m, &job[i], time_s[i], &mu))
			continue;
		k++;
		mean[0] += (mu - mean[0]) / (double)k;
		mean[1] += (job[i].batch - mean[1]) / (double)k;
		mean[2] += (job[i].processes - mean[2]) / (double)k;
	}
	for (size_t i = 0; i < n; i++) {
		if (!usable(&job[i], time_s[i]) || !invert(m, &job[i], time_s[i], &mu))
			continue;
		top[0] = fmax(top[0], fabs(job[i].batch - mean[1]));
		top[1] = fmax(top[1], fabs(job[i].processes - mean[2]));
	}
	for (size_t c = 0; c < 2; c++) /* equal values whose mean is off by a rounding do not vary */
		if (!(top[c] > 1e-12 * fabs(mean[c + 1])))
			top[c] = 0.0;
	for (size_t i = 0; i < n; i++) {
		double x, y;

		if (!usable(&job[i], time_s[i]) || !invert(m, &job[i], time_s[i], &mu))
			continue;
		x = top[0] > 0.0 ? (job[i].batch - mean[1]) / top[0] : 0.0;
		y = top[1] > 0.0 ? (job[i].processes - mean[2]) / top[1] : 0.0;
		xx += x * x;
		yy += y * y;
		xy += x * y;
		xm += x * (mu - mean[0]);
		ym += y * (mu - mean[0]);
	}
	det = xx * yy - xy * xy;
	m->mu[1] = m->mu[2] = 0.0;
	if (det > 1e-9 * xx * yy) {
		m->mu[1] = (xm * yy - ym * xy) / det / top[0];
		m->mu[2] = (ym * xx - xm * xy) / det / top[1];
	} else if (xx > 0.0) {
		m->mu[1] = xm / xx / top[0];
	} else if (yy > 0.0) {
		m->mu[2] = ym / yy / top[1];
	}
	m->mu[0] = mean[0] - m->mu[1] * mean[1] - m->mu[2] * mean[2];
}

static int fit_with(const struct paper_job *job, const double *time_s, size_t n, struct paper *m,
		    struct err *err)
{
	double mu;

	m->n_used = m->n_negative = 0;
	for (size_t i = 0; i < n; i++) {
		if (!usable(&job[i], time_s[i]))
			continue;
		if (invert(m, &job[i], time_s[i], &mu))
			m->n_used++;
		else
			m->n_negative++;
	}
	if (!m->n_used)
		return err_fail(
			err, ERR_UNSTABLE,
			"all %zu observations take at most %g s per iteration, the service of the CPU "
			"alone: the disk's would be negative",
			m->n_negative, m->cpu_service_s);
	fit_plane(m, job, time_s, n);
	if (!isfinite(m->mu[0]) || !isfinite(m->mu[1]) || !isfinite(m->mu[2]))
		return err_fail(err, ERR_NUMERIC, "the disk's service rate is not a finite plane");
	return 0;
}

/* Mean squared error in log time over the rows that get an answer, plus a heavy price for those that do not:
 * only for comparing shares. */
static double misfit(const struct paper *m, const struct paper_job *job, const double *time_s, size_t n)
{
	double sum = 0.0, t;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (!usable(&job[i], time_s[i]))
			continue;
		k++;
		if (paper_time_s(m, &job[i], &t, NULL))
			sum += 100.0;
		else
			sum += (log(t) - log(time_s[i])) * (log(t) - log(time_s[i]));
	}
	return k ? sum / (double)k : INFINITY;
}

int paper_fit(const struct paper_job *job, const double *time_s, size_t n, double cpu_service_s,
	      double workers, struct paper *out, struct err *err)
{
	struct paper best = { .cpu_service_s = cpu_service_s, .workers = workers };
	double shortest_s = INFINITY, least = INFINITY;
	int rc;

	if (!(cpu_service_s >= 0.0 && isfinite(cpu_service_s) && workers > 0.0 && isfinite(workers)))
		return err_fail(err, ERR_ARG, "CPU service %g s, %g workers: need >= 0 and > 0",
				cpu_service_s, workers);
	for (size_t i = 0; i < n; i++)
		if (usable(&job[i], time_s[i]))
			shortest_s = fmin(shortest_s, time_s[i] / job[i].iterations);
	if (!(shortest_s > 0.0 && isfinite(shortest_s)))
		return err_fail(err, ERR_NODATA, "none of %zu rows has a batch, processes and a time above 0",
				n);
	if (cpu_service_s > 0.0) {
		rc = fit_with(job, time_s, n, &best, err);
		if (!rc)
			*out = best;
		return rc;
	}
	for (int k = 1; k <= SHARES; k++) {
		struct paper m = { .cpu_service_s = shortest_s * k / (SHARES + 1), .workers = workers };
		double e;

		if (fit_with(job, time_s, n, &m, err))
			continue;
		e = misfit(&m, job, time_s, n);
		if (e < least) {
			least = e;
			best = m;
		}
	}
	if (!(least < INFINITY))
		return err_fail(err, ERR_NUMERIC, "no service time of the CPU explains the times");
	*out = best;
	return 0;
}

int paper_time_s(const struct paper *m, const struct paper_job *job, double *out_s, struct err *err)
{
	double lambda, mu, disk_s;
	int rc;

	if (!usable(job, 1.0))
		return err_fail(err, ERR_ARG, "%g iterations of batch %g, %g processes: need numbers above 0",
				job->iterations, job->batch, job->processes);
	lambda = disk_arrivals_per_s(m, job);
	mu = m->mu[0] + m->mu[1] * job->batch + m->mu[2] * job->processes;
	if (!(mu > 0.0)) /* no disk at all: any load is too much for it */
		return err_fail(err, ERR_UNSTABLE,
				"the disk's service rate is %.4g/s at %.4g requests/s: a load "
				"without bound",
				mu, lambda);
	rc = mm1_mean_response_s(lambda, 1.0 / mu, &disk_s, err);
	if (rc)
		return rc;
	disk_s = job->iterations * (m->cpu_service_s + disk_s);
	if (!isfinite(disk_s))
		return err_fail(err, ERR_NUMERIC, "the response time is too large for a number");
	*out_s = disk_s;
	return 0;
}
