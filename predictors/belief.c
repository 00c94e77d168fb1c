/* The logistic law of the logarithm of a time. See belief.h. */
#include "predictors/belief.h"

#define DEVIATION 1.8137993642342178 /* pi / sqrt(3), of the logistic law with scale 1 */
#define LEAST_ASKED 0.6
#define ASKED_INSTEAD 0.9

double belief_asks(double confidence)
{
	return confidence < LEAST_ASKED ? ASKED_INSTEAD : confidence;
}

double belief_spreads(double confidence)
{
	return log(confidence / (1.0 - confidence)) / DEVIATION;
}

struct belief belief_of_bound(double time_s, double bound_s, double confidence)
{
	return (struct belief){ time_s, belief_spread(log(bound_s / time_s), belief_spreads(confidence)) };
}

double belief_bound(struct belief b, double confidence)
{
	return belief_bound_at(b, belief_spreads(confidence));
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
	if (shift == 0.0 && spread == 0.0)
		return b;
	return (struct belief){ b.time_s * exp(shift), sqrt(b.spread * b.spread + spread * spread) };
}
