/* Workers on several machines that meet over TCP, without MPI: one process a worker, each started on its
 * machine with the same list of all. See comm.h. */
#ifndef WORKLOADS_TCP_H
#define WORKLOADS_TCP_H

#include "workloads/comm.h"

#define TCP_MAX_WORKERS 256u /* each holds a connection to every other */

/* Says who this process is, before tcp_run(). `peers` is "HOST:PORT,HOST:PORT,...", worker 0 first; an IPv6
 * address is written "[::1]:7000". *out_n is their number. */
int tcp_setup(const char *peers, unsigned rank, unsigned *out_n, struct err *err);
void tcp_release(void);

/* Runs `work` in this process once all workers are connected; waits a minute for them. */
comm_run tcp_run;

#endif
