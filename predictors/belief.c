/* The logistic law of the logarithm of a time. See belief.h. */
#include "predictors/belief.h"

#include <math.h>

#define DEVIATION 1.8137993642342178 /* pi / sqrt(3), of the logistic law with scale 1 */
#define LEAST_ASKED 0.6
#define ASKED_INSTEAD 0.9

double belief_asks(double confidence)
{
	return confidence < LEAST_ASKED ? ASKED_INSTEAD : confidence;
}

static double logit(double share)
{
	return log(share / (1.0 - share));
}

struct belief belief_of_bound(double time_s, double bound_s, double confidence)
{
	double above = log(bound_s / time_s); /* 0 or less: no error was ever seen on this side */

	return (struct belief){ time_s,
				isnan(above) ? NAN : fmax(above, 0.0) * DEVIATION / logit(confidence) };
}

double belief_bound(struct belief b, double confidence)
{
	return b.time_s * exp(b.spread * logit(confidence) / DEVIATION);
}

double belief_chance(struct belief b, double limit_s)
{
	double above;

	if (!(b.time_s >= 0.0) || isnan(limit_s) || isnan(b.spread))
		return NAN;
	if (!(limit_s > 0.0))
		return 0.0;
	above = log(limit_s / b.time_s);
	if (!(b.spread > 0.0) || isinf(above))
		return above >= 0.0 ? 1.0 : 0.0;
	return 1.0 / (1.0 + exp(-DEVIATION * above / b.spread));
}

struct belief belief_with(struct belief b, double shift, double spread)
{
	return (struct belief){ b.time_s * exp(shift), sqrt(b.spread * b.spread + spread * spread) };
}
