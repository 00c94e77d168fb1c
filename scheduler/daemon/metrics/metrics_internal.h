/* What metrics.c (counting) and scrape.c (writing) share. */
#ifndef SCHEDULER_DAEMON_METRICS_METRICS_INTERNAL_H
#define SCHEDULER_DAEMON_METRICS_METRICS_INTERNAL_H

#include "scheduler/daemon/metrics/metrics.h"
#include "scheduler/jobs/life.h"

extern const char *const metrics_error_code[]; /* NULL after the last */

#endif
