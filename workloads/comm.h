/* How the workers of one training job communicate: they sum vectors and agree on signals. The transport is
 * shared memory on one machine (allreduce.c), TCP (tcp.c) or MPI (train_mpi_main.c) across machines; train.c
 * does not know which.
 *
 * Every worker makes the same calls in the same order. Each call returns when all workers have made it. It
 * fails in all remaining workers when one has died or given up. */
#ifndef WORKLOADS_COMM_H
#define WORKLOADS_COMM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define COMM_MAX_WORKERS 1024u
#define COMM_MAX_DOUBLES 16

struct comm;

struct comm_ops {
	int (*sum)(struct comm *c, const float **out_sum, struct err *err);
	int (*sum_doubles)(struct comm *c, double *v, size_t n, struct err *err);
};

struct comm {
	unsigned rank, size;
	float *vector; /* what this worker adds: n_floats, and KERNEL_SLACK after them */
	size_t n_floats;
	int stop; /* the signal that all agreed on in the last comm_sum(); 0: continue */
	const struct comm_ops *ops;
	void *self;
};

/* The sum of all vectors. It is the same to the bit for all workers, because the ranks fix the order of
 * summing. Borrowed until the next call. */
static inline int comm_sum(struct comm *c, const float **out_sum, struct err *err)
{
	return c->ops->sum(c, out_sum, err);
}

/* v[i] becomes its sum over all; n <= COMM_MAX_DOUBLES. */
static inline int comm_sum_doubles(struct comm *c, double *v, size_t n, struct err *err)
{
	return c->ops->sum_doubles(c, v, n, err);
}

typedef int comm_work(struct comm *c, void *ctx, struct err *err);
/* Runs `work` in this many workers and returns when all are done: 0, or the first failure. *out_signal is
 * SIGINT or SIGTERM if one came, 0 otherwise; a second one ends the process at once. */
typedef int comm_run(unsigned n_workers, size_t n_floats, comm_work *work, void *ctx, int *out_signal,
                     struct err *err);

/* Forks worker processes on this machine; a single worker is the calling process itself. If the caller wants
 * to read what the workers wrote, ctx must be shared memory. */
comm_run allreduce_run;

#endif
