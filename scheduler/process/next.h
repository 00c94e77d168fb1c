/* How a job is to run its next epochs, as one line: "batch=64 lr=0.01 last=12". It stands in the environment
 * of a job, in its folder (record_format.h), and is what `postrider next` prints. What is not known is left
 * out: a type may have no rule for the learning rate, a command no epochs. */
#ifndef SCHEDULER_PROCESS_NEXT_H
#define SCHEDULER_PROCESS_NEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "scheduler/process/record_format.h"

struct next {                    /* NaN: not known */
	double batch, lr;
	double last;             /* the epoch to end after */
	double after;            /* the report of which epoch it answers; NaN: it is as given at the start */
};

char *next_line(const struct next *n, char out[JOB_NEXT_MAX + 1]); /* without a newline; returns out */
/* False: no such line, or no batch in it. `after` is read from the line behind it. */
bool next_read(const char *text, struct next *out);

#endif
