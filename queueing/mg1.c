/* Pollaczek-Khinchine, and Kleinrock's processor sharing. */
#include "queueing/mg1.h"

#include "queueing/load.h"

int mg1_solve(double arrivals_per_s, double service_s, double scv, struct mg1 *out, struct err *err)
{
	struct mg1 q;
	int rc = load_check_size("squared coefficient of variation", scv, err);

	if (!rc)
		rc = load_check(arrivals_per_s, service_s, 1.0, &q.load, err);
	if (rc)
		return rc;
	/* Pollaczek-Khinchine (Kleinrock I, section 5.5): W = rho S (1 + C^2) / (2 (1 - rho)) */
	rc = load_result("the mean number waiting", q.load * q.load * (0.5 + 0.5 * scv) / (1.0 - q.load),
			 &q.in_queue, err);
	if (!rc)
		rc = load_result("the mean wait", q.load * (0.5 + 0.5 * scv) / (1.0 - q.load) * service_s,
				 &q.wait_s, err);
	if (!rc)
		rc = load_result("the mean response time", q.wait_s + service_s, &q.response_s, err);
	if (rc)
		return rc;
	q.in_system = q.in_queue + q.load;
	*out = q;
	return 0;
}

int mg1_ps_mean_response_s(double arrivals_per_s, double service_s, double *out_response_s, struct err *err)
{
	return mg1_ps_response_of_size_s(arrivals_per_s, service_s, service_s, out_response_s, err);
}

/* Kleinrock II, section 4.4: T(x) = x / (1 - rho), every job is slowed by the same factor */
int mg1_ps_response_of_size_s(double arrivals_per_s, double service_s, double size_s, double *out_response_s,
			      struct err *err)
{
	double load;
	int rc = load_check_size("size in seconds of service", size_s, err);

	if (!rc)
		rc = load_check(arrivals_per_s, service_s, 1.0, &load, err);
	if (rc)
		return rc;
	return load_result("the mean response time", size_s / (1.0 - load), out_response_s, err);
}
