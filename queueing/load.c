/* Checks that all queueing formulas share: arguments, the load, and results that are numbers. */
#include "queueing/load.h"

#include <math.h>

int load_check(double arrivals_per_s, double service_s, double servers, double *out_load, struct err *err)
{
	double load;

	if (!(arrivals_per_s >= 0.0 && isfinite(arrivals_per_s) && service_s >= 0.0 && isfinite(service_s)))
		return err_fail(err, ERR_ARG,
				"arrival rate %g/s, service time %g s: need finite numbers >= 0",
				arrivals_per_s, service_s);
	if (!(servers > 0.0 && isfinite(servers)))
		return err_fail(err, ERR_ARG, "%g servers: need at least one", servers);
	load = arrivals_per_s * service_s / servers;
	if (!(load < 1.0))
		return err_fail(err, ERR_UNSTABLE, "load %.4g: a queue at or above 1 has no steady state",
				load);
	*out_load = load;
	return 0;
}

int load_check_size(const char *what, double value, struct err *err)
{
	if (value >= 0.0 && isfinite(value))
		return 0;
	return err_fail(err, ERR_ARG, "%s %g: need a finite number >= 0", what, value);
}

int load_result(const char *what, double value, double *out, struct err *err)
{
	if (!(value >= 0.0 && isfinite(value)))
		return err_fail(err, ERR_NUMERIC, "%s is too large for a number", what);
	*out = value;
	return 0;
}
