/* `choose` of the policies naive and fixed; listed in policy.c. */
#ifndef SCHEDULER_CORE_POLICY_BASELINE_H
#define SCHEDULER_CORE_POLICY_BASELINE_H

#include "scheduler/core/policy/policy.h"

/* Uniformly among the batches that can run at all. */
int policy_choose_naive(const struct policy_choice *by, const struct decision *d, double noise,
                        struct rng *rng);
/* The batch of the configuration, or the nearest one that the job allows. */
int policy_choose_fixed(const struct policy_choice *by, const struct decision *d, double noise,
                        struct rng *rng);

#endif
