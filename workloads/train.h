/* Synchronous data-parallel training. Each worker fetches the batch, computes the gradient of its share, sums
 * the gradients of all workers, makes a step, and repeats. Called by program.c and by the bench; the workers
 * communicate through comm.h. */
#ifndef WORKLOADS_TRAIN_H
#define WORKLOADS_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/comm.h"
#include "workloads/data.h"
#include "workloads/net.h"

/* Where the time went, in seconds: a mean over the workers. */
struct train_phases {
	double fetch_s;   /* reading records from the file */
	double compute_s; /* gradient and step */
	double sync_s;    /* summing the gradients, waiting for the others included */
	double test_s;
	/* Processor time of the worker's own thread, which other programs hardly change: of fetch,
	 * compute and sync, and of the test. */
	double cpu_s, test_cpu_s;
};

struct train_epoch {
	size_t epoch; /* from 1 */
	double loss;  /* mean over its records, each at the parameters of its step */
	double accuracy; /* share of the test records; NaN: not tested after this epoch */
	double elapsed_s; /* since the job started */
	double max_rss_mb; /* sum of the workers' peaks */
	struct train_phases phases; /* of this epoch */
};

struct train_result {
	size_t epochs; /* whole ones */
	uint64_t steps;
	double loss;   /* of the last epoch, or of the part of one that was reached */
	double accuracy;
	double elapsed_s, max_rss_mb;
	struct train_phases phases; /* of all */
	/* Processor time from the start of the process to that of the job; and of the job: the calling
	 * thread's, and that of a worker (a mean) where workers are other processes. */
	double start_cpu_s, job_cpu_s;
	int stopped_by; /* SIGINT or SIGTERM; 0: ran to its end */
	bool here; /* this process is the one to report it; under MPI one of many is */
};

struct train_params {
	const struct net *net;
	const struct data *train, *test;
	size_t batch, epochs;
	double rate, decay;
	uint64_t seed;
	size_t test_every; /* epochs; the last is always tested. 0: only the last */
	unsigned workers;
	double link_mbit; /* rate of the link over which gradients go to a server and back; 0: none */
	/* Called by worker 0 in its process; may be NULL. */
	void (*on_epoch)(void *ctx, const struct train_epoch *e);
	void (*on_records)(void *ctx, size_t n); /* n more records were used */
	void *ctx;
};

int train_run(const struct train_params *p, comm_run *run, struct train_result *out, struct err *err);

#endif
