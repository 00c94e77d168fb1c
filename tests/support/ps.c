/* Sharing cores. fluid.h plays a machine forward with such rates; closed.h has the same station inside a
 * closed network. */
#include "tests/support/ps.h"

#include <math.h>

#include "queueing/load.h"

/* ---- at this moment ---- */

static int check_jobs(const double *processes, const double *weight, size_t n, double cores, double *out_all,
		      struct err *err)
{
	double all = 0.0, weights = 0.0;
	int rc = load_check_size("cores", cores, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++) {
		double w = weight ? weight[i] : 1.0;

		if (!(processes[i] >= 0.0))
			return err_fail(err, ERR_ARG, "job %zu has %g processes: need at least 0", i,
					processes[i]);
		if (!(w > 0.0 || (w >= 0.0 && processes[i] <= 0.0)))
			return err_fail(err, ERR_ARG, "job %zu has the weight %g: need more than 0", i, w);
		all += processes[i];
		weights += w;
	}
	if (!isfinite(all) || !isfinite(weights))
		return err_fail(err, ERR_ARG,
				"%zu jobs add up to %g processes of weight %g: need finite sums", n, all,
				weights);
	*out_all = all;
	return 0;
}

int ps_share(const double *processes, const double *weight, size_t n, double cores, double *out_rate,
	     struct err *err)
{
	double all = 0.0, level = 0.0, before, left, weights;
	int rc = check_jobs(processes, weight, n, cores, &all, err);

	if (rc)
		return rc;
	if (all <= cores) { /* decided by the sum: a job alone gets its processes to the last bit */
		for (size_t i = 0; i < n; i++)
			out_rate[i] = processes[i];
		return 0;
	}
	/* Water-filling: share what is left among the jobs not yet at their processes, until no further job
	 * reaches its own. The level only rises, so a job once settled stays settled: at most n passes, and
	 * few in practice, as this is Newton's method on the concave sum of min(processes, weight *
	 * level). */
	do {
		before = level;
		left = cores;
		weights = 0.0;
		for (size_t i = 0; i < n; i++) {
			double w = weight ? weight[i] : 1.0;

			if (processes[i] <= w * before)
				left -= processes[i];
			else
				weights += w;
		}
		level = weights > 0.0 ? left / weights : before; /* none unsettled: by rounding only */
	} while (level > before);
	for (size_t i = 0; i < n; i++)
		out_rate[i] = fmin(processes[i], (weight ? weight[i] : 1.0) * level);
	return 0;
}

/* ---- in the long run ---- */

/* The number in the system is a birth-death process with arrival rate lambda and departure rate
 * min(n k, m) / E[work] in state n, whatever the law of the work (Kelly, section 3.3). With a = lambda
 * E[work]: p(n) = p(n-1) a / min(n k, m), a geometric tail of ratio rho = a / m once n k > m. The recursion
 * keeps b = p(n) / (p(0) + ... + p(n)) and the mean number given at most n, as Erlang's B does: all terms are
 * positive and at most n, for any number of cores. */
static double mean_number(double a, double load, unsigned cores, unsigned processes)
{
	unsigned full = cores / processes; /* states 0..full leave every job all its processes */
	double b = 1.0, number = 0.0, idle = 1.0 - load;

	for (unsigned i = 1; i <= full; i++) {
		b = a * b / ((double)i * processes + a * b);
		number += b * ((double)i - number);
	}
	/* the tail beyond `full`, relative to the states so far */
	return (number + b * (load / idle) * ((double)full + 1.0 / idle)) / (1.0 + b * load / idle);
}

int ps_response_of_size_s(double arrivals_per_s, double work_s, unsigned cores, unsigned processes,
			  double size_s, double *out_response_s, struct err *err)
{
	double load = 0.0, a, slowdown;
	int rc = load_check_size("size in seconds of one core", size_s, err);

	if (rc)
		return rc;
	if (cores < 1 || cores > PS_MAX_CORES || processes < 1)
		return err_fail(err, ERR_ARG,
				"%u cores, jobs of %u processes: need 1 to %d cores and at least one process",
				cores, processes, PS_MAX_CORES);
	rc = load_check(arrivals_per_s, work_s, cores, &load, err);
	if (rc)
		return rc;
	if (processes > cores)
		processes = cores;
	/* Little: E[T] = E[N] / lambda, and T(x) is proportional to x: seconds per second of one core are
	 * E[N] / a. For small a, jobs that meet another one are lost in rounding. */
	a = arrivals_per_s * work_s;
	slowdown = a > 1e-20 ? mean_number(a, load, cores, processes) / a : 1.0 / processes;
	return load_result("the mean response time", size_s * slowdown, out_response_s, err);
}

int ps_mean_response_s(double arrivals_per_s, double work_s, unsigned cores, unsigned processes,
		       double *out_response_s, struct err *err)
{
	return ps_response_of_size_s(arrivals_per_s, work_s, cores, processes, work_s, out_response_s, err);
}
