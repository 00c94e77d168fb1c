/* SIGINT and SIGTERM as a wish to stop soon, known to all processes of a job: whichever of them gets the signal,
 * the number goes to a page that those forked since stop_begin() share. */
#ifndef WORKLOADS_STOP_H
#define WORKLOADS_STOP_H

#include "common/err.h"

int stop_begin(struct err *err);
void stop_end(void);       /* handlers as they were before */
int stop_signal(void);     /* the first that came; 0: none. Works until stop_end() */

#endif
