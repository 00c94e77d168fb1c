/* One closed cycle of equal processes between the cores (processor sharing), a disk (one server) and a delay:
 * the part of closed.h that a decision asks for, without allocation. The disk is an M/M/1 queue inside the
 * cycle, so its load limits itself and there is no unstable answer. Mean value analysis for up to
 * CYCLE_EXACT_CORES cores (Reiser, Performance Evaluation 1, 1981), whose rounding grows with the cores and
 * stays below one in a hundred for so many; for more cores the shares of a fluid. */
#ifndef QUEUEING_CYCLE_H
#define QUEUEING_CYCLE_H

#include "queueing/calibrate.h"

#define CYCLE_EXACT_CORES 8
#define CYCLE_MOST 4096.0 /* processes; of more the time grows by what the busiest place needs for each */

/* One cycle of a process among `processes` (a fraction lies between its neighbours). cores INFINITY: never
 * exceeded. All demands >= 0 and finite; 0 if all are. */
double cycle_time_s(double cpu_s, double cores, double disk_s, double delay_s, double processes);

/* The calibrated model in which waiting is that of the cycle: its demands are those of `c`, times factors
 * that are fitted again to the same rows. */
struct cycle {
	double cpu, disk, rest; /* factors: of the cpu's demand, of the disk's, and of the part of the disk's
	                         * time that is no queue */
	double sd;              /* of log time, on the rows of the fit */
};
/* job, time_s, n of p count; rows that calibrate_fit() could not use are left out. ERR_NODATA without any. */
int cycle_fit(const struct calibrate_params *p, const struct calibrated *c, struct cycle *out,
              struct err *err);
double cycle_job_s(const struct calibrated *c, const struct cycle *m, const struct calibrate_job *job);

#endif
