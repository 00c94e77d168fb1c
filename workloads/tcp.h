/* Workers on several machines that meet over TCP, without MPI: one process a worker, each started on its
 * machine with the same list of all. See comm.h. */
#ifndef WORKLOADS_TCP_H
#define WORKLOADS_TCP_H

#include "common/err.h"
#include "common/strbuf.h"
#include "workloads/comm.h"

#define TCP_MAX_WORKERS 256u /* each holds a connection to every other */

/* Says who this process is, before tcp_run(). `peers` is "HOST:PORT,HOST:PORT,...", worker 0 first; an IPv6
 * address is written "[::1]:7000". *out_n is their number. */
int tcp_setup(const char *peers, unsigned rank, unsigned *out_n, struct err *err);
void tcp_release(void);

/* Runs `work` in this process once all workers are connected; waits a minute for them. */
comm_run tcp_run;

/* ---- slurm_peers.c: the workers of a step of Slurm, found in the environment that srun gives each ---- */
/* "HOST:PORT,..." of all tasks, by rank, from
 *   nodes   "n[1-3,07],m2": SLURM_STEP_NODELIST
 *   tasks   "2(x3),1": SLURM_STEP_TASKS_PER_NODE
 * Ports are counted from `port`. Ranks go through the nodes block by block. *out_node: of `rank`, from 0. */
int slurm_peers_list(const char *nodes, const char *tasks, unsigned port, unsigned rank, struct strbuf *out,
                     unsigned *out_node, struct err *err);
/* The same from the environment; ports depend on the number of the job and of the step. */
int slurm_peers(unsigned rank, struct strbuf *out, struct err *err);

#endif
