/* The truth about a job of our own making: how long it takes and what accuracy it reaches. known_job.c runs
 * by it, test_known_jobs.c judges by it. */
#ifndef TESTS_BARS_KNOWN_TRUTH_H
#define TESTS_BARS_KNOWN_TRUTH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define KNOWN_RECORDS 4096.0
#define KNOWN_S_PER_BATCH 0.006
#define KNOWN_S_PER_RECORD 1.5e-4
#define KNOWN_LARGE 1.5        /* the network `large` has this many times the work of `small` */
#define KNOWN_TWO_CPUS 0.55    /* with two cpus each has this share of the work: 90 % efficiency */
#define KNOWN_NOISE 0.02       /* spread of a factor on the work */
#define KNOWN_SEEN 0.03        /* spread of a factor on the busy processes, as they are seen */
#define KNOWN_LEAST_BATCH 16
#define KNOWN_BATCHES 5        /* 16, 32, ... 256 */

struct known_case {
	double startup_s, scale; /* every time but the start-up is at `scale` of what is written above */
	bool spins;              /* on its cpus; false: it waits, as for an accelerator */
	unsigned busy;           /* processes that spin beside it all the time */
};

/* Work of one cpu in one epoch. */
static inline double known_epoch_s(const struct known_case *c, bool large, unsigned cpus, double batch)
{
	double s = KNOWN_RECORDS / batch * KNOWN_S_PER_BATCH + KNOWN_RECORDS * KNOWN_S_PER_RECORD;

	return c->scale * s * (large ? KNOWN_LARGE : 1.0) * (cpus == 2 ? KNOWN_TWO_CPUS : 1.0);
}

/* A whole run on `cores`, `others` processes of other jobs beside it: cores are shared evenly. */
static inline double known_time_s(const struct known_case *c, bool large, unsigned cpus, double batch,
                                  double epochs, double others, double cores)
{
	double processes = cpus + others + c->busy;
	double stretch = c->spins && processes > cores ? processes / cores : 1.0;

	return c->startup_s + epochs * known_epoch_s(c, large, cpus, batch) * stretch;
}

static inline double known_accuracy(bool large, double batch, double epochs)
{
	return (0.95 - 0.06 * log2(batch / KNOWN_LEAST_BATCH)) * (1.0 - 0.6 * exp(-epochs / 2.0)) *
	       (large ? 1.0 : 0.97);
}

#endif
