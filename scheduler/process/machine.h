/* What the machine has, for a configuration that does not say. */
#ifndef SCHEDULER_PROCESS_MACHINE_H
#define SCHEDULER_PROCESS_MACHINE_H

double machine_cores(void);     /* those this process may run on; at least 1 */
double machine_memory_mb(void); /* 90 % of it; infinite where it can not be told: then it limits nobody */

#endif
