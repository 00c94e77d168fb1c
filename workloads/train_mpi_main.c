/* postrider-train-mpi: the reference training job across machines, its workers started by mpirun or srun. All
 * that knows of MPI is here: comm.h's sums as MPI's all-reduce. Every rank reads the data from a folder it
 * can see; the digits of the cache are the same everywhere. Built where mpicc is installed.
 *
 * A rank that fails or dies takes the others along: MPI_Abort, or the launcher, ends them. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "workloads/kernel.h"
#include "workloads/program.h"
#include "workloads/stop.h"

/* The vector has one place more than the network has parameters: ranks that got a signal put 1 there, so that
 * agreeing when to stop needs no extra message. */
static int mpi_sum(struct comm *c, const float **out_sum, struct err *err)
{
	float *sum = c->self;
	int signal_here = stop_signal();

	c->vector[c->n_floats] = signal_here ? 1.0f : 0.0f;
	if (MPI_Allreduce(c->vector, sum, (int)c->n_floats + 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD))
		return err_fail(err, ERR_IO, "MPI could not sum the gradients");
	if (sum[c->n_floats] > 0.0f)
		c->stop = signal_here ? signal_here : SIGTERM;
	*out_sum = sum;
	return 0;
}

static int mpi_sum_doubles(struct comm *c, double *v, size_t n, struct err *err)
{
	double mine[COMM_MAX_DOUBLES];

	(void)c;
	memcpy(mine, v, n * sizeof *v);
	if (MPI_Allreduce(mine, v, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD))
		return err_fail(err, ERR_IO, "MPI could not sum %zu numbers", n);
	return 0;
}

static int mpi_run(unsigned n_workers, size_t n_floats, comm_work *work, void *ctx, int *out_signal,
		   struct err *err)
{
	static const struct comm_ops ops = { mpi_sum, mpi_sum_doubles };
	struct comm c = { .size = n_workers, .n_floats = n_floats, .ops = &ops };
	int rank, rc = stop_begin(err);

	if (rc)
		return rc;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	c.rank = (unsigned)rank;
	c.vector = mem_calloc(n_floats + KERNEL_SLACK, sizeof(float));
	c.self = mem_calloc(n_floats + KERNEL_SLACK, sizeof(float));
	if (!c.vector || !c.self)
		rc = err_nomem(err, "a gradient of %zu numbers", n_floats);
	else
		rc = work(&c, ctx, err);
	*out_signal = stop_signal();
	stop_end();
	free(c.vector);
	free(c.self);
	return rc;
}

int main(int argc, char **argv)
{
	struct program p = { .name = "postrider-train-mpi", .run = mpi_run };
	int size, rank, code;

	if (MPI_Init(&argc, &argv))
		return 1;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	p.workers = (unsigned)size;
	p.silent = rank != 0;
	code = program_main(&p, argc, argv);
	/* The others may be inside a sum, waiting for this one. */
	if (code && code < 128)
		MPI_Abort(MPI_COMM_WORLD, code);
	MPI_Finalize();
	return code;
}
