/* SIGINT and SIGTERM ask a job to stop soon. The process that gets the signal writes its number to a page of
 * memory that all processes forked since stop_begin() share. */
#ifndef WORKLOADS_STOP_H
#define WORKLOADS_STOP_H

#include "common/err.h"

int stop_begin(struct err *err);
void stop_end(void);       /* restores the old handlers */
int stop_signal(void);     /* the first signal; 0: none. Works until stop_end() */

#endif
