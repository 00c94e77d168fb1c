/* A model of one machine on a larger or a smaller one, for what-ifs ("twice the cores"). The new machine is
 * taken to be like the measured one but for its cores, so a job among P processes on m cores fares as one
 * among P m0 / m processes on the measured m0, though never as if its own processes were fewer. The worlds
 * stretch the load by the same rule. */
#ifndef SIM_REPLAY_SCALED_MODEL_H
#define SIM_REPLAY_SCALED_MODEL_H

#include "predictors/model.h"

/* The load that counts on the measured machine. */
static inline double scaled_processes(double processes, double cpus, double measured_cores, double cores)
{
	double scaled = processes * (measured_cores / cores);

	return scaled > cpus ? scaled : cpus;
}

/* `base` is borrowed while the scaled one lives; to be freed with scaled_model_free(), not model_free(). */
int scaled_model_new(const struct model *base, double measured_cores, double cores, struct model **out,
                     struct err *err);
void scaled_model_free(struct model *m);

#endif
