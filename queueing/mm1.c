/* Closed forms of the M/M/1 queue. rho = lambda S; T = S / (1 - rho). */
#include "queueing/mm1.h"

#include <math.h>

#include "queueing/load.h"

int mm1_mean_response_s(double arrivals_per_s, double service_s, double *out_response_s, struct err *err)
{
	double load;
	int rc = load_check(arrivals_per_s, service_s, 1.0, &load, err);

	/* Kleinrock I, section 3.2 */
	return rc ? rc : load_result("the mean response time", service_s / (1.0 - load), out_response_s, err);
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
