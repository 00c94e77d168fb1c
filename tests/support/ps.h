/* Processor sharing on m cores, where a job never gets more than its own processes can use: who gets how much
 * at this moment (ps_share), and how long a job takes in the long run (ps_mean_response_s).
 * Sources: Bertsekas, Gallager, Data Networks (2nd ed. 1992), section 6.5.2 (max-min fairness); Kelly,
 * Reversibility and Stochastic Networks (1979), section 3.3 (symmetric queues). Errors as in mm1.h. */
#ifndef TESTS_SUPPORT_PS_H
#define TESTS_SUPPORT_PS_H

#include <stddef.h>

#include "common/err.h"

#define PS_MAX_CORES 1000000

/* The rate of each of n jobs, in cores: rate[i] = min(processes[i], weight[i] * level), with the level at
 * which the rates add up to the cores, or every job at its processes if there is room for all. weight NULL:
 * every job counts the same (a fair share per job). weight = processes: every process counts the same, as
 * under a kernel that schedules processes. Both may be fractions; a weight may be 0 only where the processes
 * are. No allocation; a few passes over the jobs. out_rate may not overlap the inputs. */
int ps_share(const double *processes, const double *weight, size_t n, double cores, double *out_rate,
             struct err *err);

/* Jobs arrive at random, bring `work_s` seconds of one core on average (any law), and each can use up to
 * `processes` cores: the mean response time. With single-process jobs it is that of the M/M/m queue. */
int ps_mean_response_s(double arrivals_per_s, double work_s, unsigned cores, unsigned processes,
                       double *out_response_s, struct err *err);

/* The same for a job known to bring `size_s` seconds of one core. */
int ps_response_of_size_s(double arrivals_per_s, double work_s, unsigned cores, unsigned processes,
                          double size_s, double *out_response_s, struct err *err);

#endif
