/* See whole_order.c. */
#ifndef TESTS_UNIT_CORE_WHOLE_ORDER_H
#define TESTS_UNIT_CORE_WHOLE_ORDER_H

#include "scheduler/core/sched.h"

/* Starts and ends of all live jobs: those that run, then the queue in the order of starts. */
size_t whole_estimates(struct sched *s, int64_t now_ns, uint64_t *id, struct sched_estimate *out, size_t max);

#endif
