/* The M/M/1 queue: Poisson arrivals, exponential service, one server, first come first served. The disk of
 * the paper's model. Rates in, times out; nothing is allocated, nothing is kept.
 * Source: Kleinrock, Queueing Systems, vol. I (1975), section 3.2.
 *
 * Everywhere in queueing/: NaN, infinite or negative arguments are ERR_ARG, a load of 1 or more is
 * ERR_UNSTABLE with the load in the text, and a result is written only if it is a finite number >= 0. */
#ifndef QUEUEING_MM1_H
#define QUEUEING_MM1_H

#include "common/err.h"

/* Mean wait and service. */
int mm1_mean_response_s(double arrivals_per_s, double service_s, double *out_response_s, struct err *err);

/* The other way round: the mean service time that explains an observed mean response time. What is observed
 * is often a difference (a cycle less its known parts), so a negative one is expected: ERR_UNSTABLE, no
 * queue with this arrival rate answers that fast. */
int mm1_implied_service_s(double arrivals_per_s, double response_s, double *out_service_s, struct err *err);

#endif
