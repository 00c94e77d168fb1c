/* The queueing model of the Courier paper, as printed but for one sign: a baseline to measure against.
 * Albo Martinez, Bobde, Motyka, Chen, "Courier", ICPE 2021, section 4.2.
 *
 *   E[T] = N_T (E[S_cpu] + E[T_D]),   E[T_D] = 1 / (mu_D - lambda_D)
 *   lambda_D = max(1, N_cpu N_jobs / N_w) mu_cpu,   mu_cpu = 1 / E[S_cpu]
 *
 * The paper prints 1 / (lambda_D - mu_D), which is negative for every stable disk; the formula it inverts
 * the observations with has the sign used here. mu_D is a plane in batch and processes, fitted to the
 * inverted observations mu_D = 1 / (T / N_T - S_cpu) + lambda_D, and nothing keeps that plane above
 * lambda_D: where it is not, the answer is ERR_UNSTABLE. calibrate.h is the model that does not have
 * this problem. */
#ifndef QUEUEING_PAPER_H
#define QUEUEING_PAPER_H

#include <stddef.h>

#include "common/err.h"

#define PAPER_CPU_SERVICE_S 0.045 /* Table 5 and the text below it */
#define PAPER_WORKERS 3.0         /* of the paper's cluster */

struct paper_job {
	double iterations; /* N_T = samples / batch * epochs */
	double batch;
	double processes;  /* N_cpu N_jobs */
};

struct paper {
	double cpu_service_s; /* E[S_cpu] */
	double workers;       /* N_w */
	double mu[3];         /* mu_D = mu[0] + mu[1] batch + mu[2] processes, per second */
	size_t n_used, n_negative; /* observations; those with T / N_T <= S_cpu, a negative service, left
	                            * out */
};

/* cpu_service_s 0: the one of a few shares of the shortest iteration that explains the times best.
 * ERR_NODATA without a single usable row, ERR_UNSTABLE where all of them imply a negative service. */
int paper_fit(const struct paper_job *job, const double *time_s, size_t n, double cpu_service_s,
              double workers, struct paper *out, struct err *err);

/* ERR_UNSTABLE with the load of the disk in the text where mu_D <= lambda_D. */
int paper_time_s(const struct paper *m, const struct paper_job *job, double *out_s, struct err *err);

#endif
