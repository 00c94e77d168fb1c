/* Closed forms of the M/M/c queue, by way of Erlang's loss formula. */
#include "tests/support/mmc.h"

#include <math.h>

#include "queueing/load.h"

/* Erlang's B for offered load a: B(0) = 1, B(k) = a B(k-1) / (k + a B(k-1)). Every step adds and divides
 * positive numbers, so nothing cancels and nothing overflows; the textbook sum of a^k / k! does both
 * from about 150 servers on. C follows from B (Bolch et al., chapter 6):
 * C = B / (1 - rho (1 - B)), written as a sum of positive terms. */
static double erlang_c(double offered, double load, unsigned servers)
{
	double b = 1.0;

	for (unsigned k = 1; k <= servers; k++)
		b = offered * b / ((double)k + offered * b);
	return b / ((1.0 - load) + load * b);
}

int mmc_solve(double arrivals_per_s, double service_s, unsigned servers, struct mmc *out, struct err *err)
{
	struct mmc q;
	double offered;
	int rc;

	if (servers > MMC_MAX_SERVERS)
		return err_fail(err, ERR_ARG, "%u servers: need 1 to %d", servers, MMC_MAX_SERVERS);
	rc = load_check(arrivals_per_s, service_s, servers, &q.load, err);
	if (rc)
		return rc;
	offered = arrivals_per_s * service_s;
	q.p_wait = erlang_c(offered, q.load, servers);
	q.in_queue = q.p_wait * q.load / (1.0 - q.load);
	q.in_system = q.in_queue + offered;
	q.wait_s = q.p_wait * (service_s / ((double)servers * (1.0 - q.load)));
	rc = load_result("the mean response time", q.wait_s + service_s, &q.response_s, err);
	if (rc)
		return rc;
	*out = q;
	return 0;
}

/* An arrival waits with probability C, and then exponentially with rate (c / S) (1 - rho). */
int mmc_wait_cdf(double arrivals_per_s, double service_s, unsigned servers, double t_s, double *out_p,
		 struct err *err)
{
	struct mmc q;
	int rc = load_check_size("time", t_s, err);

	if (!rc)
		rc = mmc_solve(arrivals_per_s, service_s, servers, &q, err);
	if (rc)
		return rc;
	if (service_s > 0.0)
		*out_p = 1.0 - q.p_wait * exp(-t_s / (service_s / ((double)servers * (1.0 - q.load))));
	else
		*out_p = 1.0;
	return 0;
}

/* At 1 every quantile is infinite. */
static int check_probability(double p, struct err *err)
{
	if (p >= 0.0 && p < 1.0)
		return 0;
	return err_fail(err, ERR_ARG, "probability %g: need at least 0 and less than 1", p);
}

int mmc_wait_quantile_s(double arrivals_per_s, double service_s, unsigned servers, double p, double *out_s,
			struct err *err)
{
	struct mmc q;
	double wait_if_any_s;
	int rc = check_probability(p, err);

	if (!rc)
		rc = mmc_solve(arrivals_per_s, service_s, servers, &q, err);
	if (rc)
		return rc;
	if (1.0 - p >= q.p_wait) {
		*out_s = 0.0;
		return 0;
	}
	wait_if_any_s = service_s / ((double)servers * (1.0 - q.load));
	return load_result("the quantile of the wait", log(q.p_wait / (1.0 - p)) * wait_if_any_s, out_s, err);
}
