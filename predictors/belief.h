/* What is believed of a time: its logarithm has a logistic distribution around that of the expected time.
 * It is the only law of probability here. Bounds, chances, prices and the giving up of a job all ask it,
 * so that two answers about one job cannot contradict each other.
 *
 * The law has two numbers, heavier tails than the normal one, as the errors of models have, and a bound
 * and a chance that are inverses of each other, one power each. How wide it is comes from residuals
 * (conformal.h) and from jobs that have ended (scheduler/core/learn): at the confidence that was asked for
 * the bound is the one that these say, and the law carries it from there to any other limit. Everything
 * that makes a time longer or less certain shifts it or widens it. */
#ifndef PREDICTORS_BELIEF_H
#define PREDICTORS_BELIEF_H

#include <math.h>

struct belief {
	double time_s; /* expected: as often longer as shorter; NaN: nothing is believed */
	double spread; /* standard deviation of its logarithm; NaN: there is no bound */
};

#define BELIEF_USUAL 0.3 /* a spread of times, where nothing tells */

/* The confidence whose bound says how wide a belief is that is asked for this one: near one half a bound
 * lies beside the expected time whatever the spread. */
double belief_asks(double confidence);
/* With this bound at a confidence that belief_asks(); NaN: there is none. */
struct belief belief_of_bound(double time_s, double bound_s, double confidence);
/* Not exceeded with this confidence; NaN: there is none. */
double belief_bound(struct belief b, double confidence);
/* The same in two steps, for several times and one confidence: how many spreads of the logarithm the bound
 * lies above the expected time, and the bound. */
double belief_spreads(double confidence);
static inline double belief_bound_at(struct belief b, double spreads)
{
	return b.time_s * exp(b.spread * spreads);
}
/* The spread of one whose bound is so many spreads above, by this much in logarithms. 0 or less: no error was
 * ever seen on this side; NaN: there is no bound. */
static inline double belief_spread(double above, double spreads)
{
	return above < 0.0 ? 0.0 : above / spreads;
}
/* That the time is at most limit_s, in 0..1; NaN: not known. */
double belief_chance(struct belief b, double limit_s);
/* Longer by the exponential of `shift`, and less certain by an independent error of that spread. */
struct belief belief_with(struct belief b, double shift, double spread);

#endif
