/* How long an iteration of a job takes among P processes: the law of the world `fluid`, in tables.
 *
 * Processes spread evenly over the nodes. In a node of n processes the cycle between the disk (one server)
 * and the cores is a closed network, whose mean is known exactly for an exponential disk: the same as mean
 * value analysis gives (tests/support/closed.h; a test compares them), by the convolution algorithm of Buzen
 * (CACM 16(9), 1973). It is used here because it gives all populations in one go, O(1) each, and because
 * cores per node may be a fraction.
 *
 * With a barrier, or a disk of another law, there is no such formula, and with devices another one: the
 * machine itself (queueing_machine.h) is played for a few populations, and its mean is taken.
 *
 * All P processes count as equal to the job's own. Where a short job shares the machine with long ones, that
 * is an approximation: shares of the cores are right, and waits at the disk are those among equal jobs. */
#ifndef SIM_WORLD_FLUID_LAWS_H
#define SIM_WORLD_FLUID_LAWS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "sim/world/cluster.h"
#include "sim/world/sharing.h"
#include "sim/world/file.h"

#define FLUID_EXACT 64          /* up to so many processes every number has its place in a table */
/* beyond, a number is this much larger than the one before; interpolated between */
#define FLUID_RATIO 1.05
#define FLUID_MAX_POINTS 4096
#define FLUID_MAX_CELLS ((size_t)1 << 25) /* of all tables, 8 bytes each */
#define FLUID_MAX_PLAYED 512    /* tables from the machine itself: 20 ms each */

struct fluid_laws;
/* most: processes there may be at the same time; beyond them laws go on as straight lines. */
int fluid_laws_new(const struct world_file *f, const struct cluster *c, double most, struct fluid_laws **out,
                   struct err *err);
void fluid_laws_free(struct fluid_laws *l);
/* The index of the law of jobs that compute, read and wait for their devices this long in an iteration, alone
 * on the machine; equal laws are made once. */
int fluid_laws_add(struct fluid_laws *l, uint32_t cpus, const struct world_work *work, uint32_t *out,
                   struct err *err);
/* Of one iteration among P processes, the job's own included. */
double fluid_laws_cycle_s(const struct fluid_laws *l, uint32_t law, double processes);
/* For sharing.h: owner is the laws, the job's tag the law, extra[0] the iterations. */
sharing_law fluid_laws_job_s;

#endif
