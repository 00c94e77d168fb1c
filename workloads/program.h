/* The command line of the reference training job, shared by postrider-train and postrider-train-mpi. */
#ifndef WORKLOADS_PROGRAM_H
#define WORKLOADS_PROGRAM_H

#include "workloads/comm.h"

struct program {
	const char *name;
	comm_run *run;
	unsigned workers; /* set by mpirun; 0: --workers decides */
	bool silent; /* another process of the job prints */
};

int program_main(const struct program *p, int argc, char **argv); /* returns the exit code */

#endif
