/* The output of a training job: JSON lines for programs, or text for people. */
#ifndef WORKLOADS_REPORT_H
#define WORKLOADS_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "workloads/train.h"

/* Each writes one line and flushes it, so that a reader of a pipe sees it at once. */
void report_epoch(FILE *to, bool json, const struct train_params *p, const struct train_epoch *e);
void report_result(FILE *to, bool json, const struct train_params *p, const struct train_result *r);

#endif
