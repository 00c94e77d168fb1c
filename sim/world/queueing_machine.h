/* The machine of the world `queueing`: nodes with a disk and cores, processes that cycle between the two.
 * Every process of a job visits the disk of its node (one server, first come first served), then computes at
 * the node's cores (processor sharing; a process never gets more than one core), and then waits for the
 * devices of its job, if it has any: they are the job's alone. It does so as many times as the job has
 * iterations. Without barrier processes run free and the job ends with its last one; with it, an iteration
 * starts for all of them together.
 *
 * Computations take a constant time. Under processor sharing the law of the service does not matter for the
 * means (Baskett, Chandy, Muntz, Palacios, J. ACM 22, 1975), and equal batches do equal arithmetic.
 *
 * A process at the cores leaves when the service that everyone there has attained reaches what it needs: one
 * clock of attained service a node, and a heap by its final value, so that an event costs O(log n). All
 * draws come from the job's own seed and the process's number: they do not depend on other jobs. */
#ifndef SIM_WORLD_QUEUEING_MACHINE_H
#define SIM_WORLD_QUEUEING_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/heap.h"
#include "sim/world/file.h"

enum qmachine_what {
	QMACHINE_AT_DISK,
	QMACHINE_DISK_DONE,
	QMACHINE_AT_CPU,
	QMACHINE_CPU_DONE,
	QMACHINE_AT_DEVICE,
	QMACHINE_DEVICE_DONE,
};
/* For tests: what happens to a process of a job (its index among the job's, job by id). */
typedef void qmachine_hook(void *owner, double at_s, enum qmachine_what what, uint32_t node, uint64_t job,
                           uint32_t process);

struct qmachine_params {
	double node_cores;        /* > 0 */
	uint32_t nodes;
	bool barrier;
	enum world_disk_law law;
	const double *measured; size_t n_measured; /* mean 1; borrowed */
	double drift, drift_at_s; /* services drawn from this moment on take (1 + drift) times as long */
	qmachine_hook *hook; void *owner; /* NULL: none */
};

struct qmachine_job {
	uint64_t id;
	uint32_t cpus;
	uint64_t cycles;          /* of each process, at least 1 */
	double compute_s, disk_s; /* compute_s > 0; disk_s 0: no visits */
	double device_s;          /* at its devices; 0: it has none */
	uint64_t seed;
	double tag;               /* the owner's */
};

struct qmachine_end {
	uint64_t id;
	double at_s;
	double processes, njobs;  /* means over its run */
	double tag;
};

struct qmachine;
int qmachine_new(const struct qmachine_params *p, struct qmachine **out, struct err *err);
void qmachine_free(struct qmachine *m);
/* Room for what `like` holds, and will hold until another job starts: copying it to m then cannot fail. */
int qmachine_reserve(struct qmachine *m, const struct qmachine *like, struct err *err);
int qmachine_copy(struct qmachine *to, const struct qmachine *from, struct err *err);
/* Moves on to now_s first; jobs that end on the way are kept for qmachine_end(). On failure the job is not
 * there. */
int qmachine_start(struct qmachine *m, double now_s, const struct qmachine_job *j, struct err *err);
/* Moves on to the next end: its moment; INFINITY: nothing runs. */
double qmachine_next_s(struct qmachine *m);
/* The job that ends first; of those that end in the same nanosecond the lowest id. */
bool qmachine_end(struct qmachine *m, struct qmachine_end *out);
double qmachine_busy_s(const struct qmachine *m);  /* core-seconds */
uint64_t qmachine_events(const struct qmachine *m);

#endif
