/* What a training job says on standard output: JSON lines for programs, or lines for people. */
#ifndef WORKLOADS_REPORT_H
#define WORKLOADS_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "workloads/train.h"

/* Each writes one line and flushes it: whoever watches a pipe sees it at once. */
void report_epoch(FILE *to, bool json, const struct train_params *p, const struct train_epoch *e);
void report_result(FILE *to, bool json, const struct train_params *p, const struct train_result *r);

#endif
