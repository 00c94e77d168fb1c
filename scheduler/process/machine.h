/* The cores and the memory of this machine, for a configuration that does not set them. */
#ifndef SCHEDULER_PROCESS_MACHINE_H
#define SCHEDULER_PROCESS_MACHINE_H

#include <stdint.h>

double machine_cores(void);     /* the cpus this process may run on; at least 1 */
double machine_memory_mb(void); /* 90 % of the memory; infinite, so no limit, if it is not known */
double machine_resident_mb(void); /* of this process; 0 if it is not known */

uint64_t machine_oom_kills(void); /* processes that the kernel ended for want of memory; 0: not known */

#endif
