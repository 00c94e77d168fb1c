/* The command line of the reference training job, shared by postrider-train and postrider-train-mpi. */
#ifndef WORKLOADS_PROGRAM_H
#define WORKLOADS_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>

#include "workloads/comm.h"
#include "workloads/train.h"

struct program {
	const char *name;
	comm_run *run;
	unsigned workers; /* set by mpirun; 0: --workers decides */
	bool silent; /* another process of the job prints */
};

int program_main(const struct program *p, int argc, char **argv); /* returns the exit code */

/* ---- report.c: the output of a training job, as JSON lines for programs or text for people ---- */
/* Each writes one line and flushes it, so that a reader of a pipe sees it at once. */
void report_epoch(FILE *to, bool json, const struct train_params *p, const struct train_epoch *e);
void report_result(FILE *to, bool json, const struct train_params *p, const struct train_result *r);

#endif
