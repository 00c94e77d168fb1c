/* Closed forms of the M/M/1 queue. rho = lambda S; T = S / (1 - rho). */
#include "queueing/mm1.h"

#include <math.h>

#include "queueing/load.h"

int mm1_solve(double arrivals_per_s, double service_s, struct mm1 *out, struct err *err)
{
	struct mm1 q;
	int rc = load_check(arrivals_per_s, service_s, 1.0, &q.load, err);

	if (rc)
		return rc;
	/* Kleinrock I, section 3.2; numbers in the system from the load alone, so that Little's law
	 * holds to the last digits however small the arrival rate */
	q.in_system = q.load / (1.0 - q.load);
	q.in_queue = q.load * q.in_system;
	q.wait_s = q.in_system * service_s;
	rc = load_result("the mean response time", service_s / (1.0 - q.load), &q.response_s, err);
	if (rc)
		return rc;
	*out = q;
	return 0;
}

int mm1_mean_wait_s(double arrivals_per_s, double service_s, double *out_wait_s, struct err *err)
{
	struct mm1 q;
	int rc = mm1_solve(arrivals_per_s, service_s, &q, err);

	if (!rc)
		*out_wait_s = q.wait_s;
	return rc;
}

int mm1_mean_response_s(double arrivals_per_s, double service_s, double *out_response_s, struct err *err)
{
	struct mm1 q;
	int rc = mm1_solve(arrivals_per_s, service_s, &q, err);

	if (!rc)
		*out_response_s = q.response_s;
	return rc;
}

/* The response time is exponential with mean T (Kleinrock I, section 5.7). */
int mm1_response_cdf(double arrivals_per_s, double service_s, double t_s, double *out_p, struct err *err)
{
	double mean_s;
	int rc = load_check_size("time", t_s, err);

	if (!rc)
		rc = mm1_mean_response_s(arrivals_per_s, service_s, &mean_s, err);
	if (!rc)
		*out_p = mean_s > 0.0 ? -expm1(-t_s / mean_s) : 1.0; /* no service: all are done at once */
	return rc;
}

int mm1_response_quantile_s(double arrivals_per_s, double service_s, double p, double *out_s, struct err *err)
{
	double mean_s;
	int rc = load_check_probability(p, err);

	if (!rc)
		rc = mm1_mean_response_s(arrivals_per_s, service_s, &mean_s, err);
	if (rc)
		return rc;
	return load_result("the quantile of the response time", -log1p(-p) * mean_s, out_s, err);
}

int mm1_implied_service_s(double arrivals_per_s, double response_s, double *out_service_s, struct err *err)
{
	int rc = load_check_size("arrival rate", arrivals_per_s, err);

	if (rc)
		return rc;
	if (!isfinite(response_s))
		return err_fail(err, ERR_ARG, "response time %g s: need a finite number", response_s);
	if (response_s < 0.0)
		return err_fail(err, ERR_UNSTABLE,
				"a response time of %g s at %g arrivals/s (load %.4g) implies a negative "
				"service time",
				response_s, arrivals_per_s, arrivals_per_s * response_s);
	/* T = S / (1 - lambda S) solved for S, without the product lambda T, which may overflow; the load it
	 * implies is always below 1 */
	*out_service_s = response_s > 0.0 ? 1.0 / (1.0 / response_s + arrivals_per_s) : 0.0;
	return 0;
}
