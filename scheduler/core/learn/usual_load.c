/* Means of a load over several lengths of time. See usual_load.h. */
#include "scheduler/core/learn/usual_load.h"

#include <math.h>

void usual_load_begin(struct usual_load *u, int64_t now_ns, double load)
{
	for (int k = 0; k < USUAL_LOAD_SCALES; k++)
		u->mean[k] = load;
	u->at_ns = now_ns;
}

void usual_load_pass(struct usual_load *u, int64_t now_ns, double load)
{
	double s = now_ns > u->at_ns ? 1e-9 * (double)(now_ns - u->at_ns) : 0.0;

	for (int k = 0; s > 0.0 && k < USUAL_LOAD_SCALES; k++)
		u->mean[k] += (load - u->mean[k]) * -expm1(-ldexp(s, -k));
	u->at_ns = now_ns;
}

double usual_load_for(const struct usual_load *u, double seconds)
{
	double k = seconds > 1.0 ? ceil(log2(seconds)) : 0.0;

	return u->mean[k < USUAL_LOAD_SCALES ? (int)k : USUAL_LOAD_SCALES - 1];
}
