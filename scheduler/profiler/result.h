/* What a copy of the command printed: its accuracy, and the curve over its epochs. Used by profile_run.c. */
#ifndef SCHEDULER_PROFILER_RESULT_H
#define SCHEDULER_PROFILER_RESULT_H

#include "scheduler/profiler/journal.h"

#define PROFILE_LOG_MAX ((size_t)64 << 20) /* bytes of output that are looked at */

/* Lines that are JSON objects are looked into, others passed over. The last number at the path of the accuracy
 * is the result; a line that has a number at the path of the epoch as well is a point of the curve, if its
 * epoch is later than the point before. With a regular expression its last match in a line counts instead, and
 * there is no curve. Fills accuracy and epoch[] of *c; ERR_NOMEM only. */
int profile_result_parse(const struct profile_design *d, const char *text, size_t len, struct profile_copy *c,
                         struct err *err);
int profile_result_read(const struct profile_design *d, const char *path, struct profile_copy *c, struct err *err);

#endif
