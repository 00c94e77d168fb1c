/* The M/G/1 queue, first come first served and with processor sharing: any law of the service time, known
 * by its mean and its squared coefficient of variation (variance / mean^2: 0 constant, 1 exponential).
 * Source: Kleinrock, Queueing Systems, vol. I (1975), section 5.5 (Pollaczek-Khinchine), and vol. II (1976),
 * section 4.4 (processor sharing). Errors as in mm1.h. */
#ifndef QUEUEING_MG1_H
#define QUEUEING_MG1_H

#include "common/err.h"

struct mg1 {
	double load;       /* rho, the share of time the server is busy */
	double wait_s;     /* mean time in the queue */
	double response_s; /* mean wait and service */
	double in_queue;   /* mean number waiting */
	double in_system;  /* mean number waiting or in service */
};
int mg1_solve(double arrivals_per_s, double service_s, double scv, struct mg1 *out, struct err *err);

/* Processor sharing: the mean does not depend on the law of the service time, only on its mean. */
int mg1_ps_mean_response_s(double arrivals_per_s, double service_s, double *out_response_s, struct err *err);

/* The mean response time of a job known to need `size_s` seconds of the whole server. */
int mg1_ps_response_of_size_s(double arrivals_per_s, double service_s, double size_s, double *out_response_s,
                              struct err *err);

#endif
