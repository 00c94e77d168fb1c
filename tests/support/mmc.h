/* The M/M/c queue: Poisson arrivals, exponential service, c servers with one queue.
 * Source: Kleinrock, Queueing Systems, vol. I (1975), section 3.5; Bolch, Greiner, de Meer, Trivedi,
 * Queueing Networks and Markov Chains (2nd ed. 2006), chapter 6. Errors as in mm1.h. */
#ifndef TESTS_SUPPORT_MMC_H
#define TESTS_SUPPORT_MMC_H

#include "common/err.h"

#define MMC_MAX_SERVERS 10000 /* one step of a recursion each */

struct mmc {
	double load;       /* rho, the busy share of the servers */
	double p_wait;     /* Erlang's C: the probability that an arrival finds no free server */
	double wait_s;     /* mean time in the queue */
	double response_s; /* mean wait and service */
	double in_queue;   /* mean number waiting */
	double in_system;  /* mean number waiting or in service */
};
int mmc_solve(double arrivals_per_s, double service_s, unsigned servers, struct mmc *out, struct err *err);

/* P(wait <= t_s), and the wait that a share p of the arrivals stays within: 0 for those who need not wait. */
int mmc_wait_cdf(double arrivals_per_s, double service_s, unsigned servers, double t_s, double *out_p,
                 struct err *err);
int mmc_wait_quantile_s(double arrivals_per_s, double service_s, unsigned servers, double p, double *out_s,
                        struct err *err);

#endif
