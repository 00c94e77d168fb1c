/* What a machine consists of: for queueing_machine.c (what happens) and queueing_room.c
 * (memory). */
#ifndef SIM_WORLD_QUEUEING_MACHINE_INTERNAL_H
#define SIM_WORLD_QUEUEING_MACHINE_INTERNAL_H

#include "common/rng.h"
#include "sim/world/queueing_machine.h"

#define QMACHINE_NONE UINT32_MAX

struct qmachine_process {
	uint32_t job, node;
	uint32_t behind; /* who stands behind it at the disk */
	uint32_t sibling; /* the next one of its job; of a free slot the next free one */
	uint64_t left; /* cycles to go */
	struct rng rng;
};

struct qmachine_task {
	uint64_t id;
	uint32_t cpus, running, at_barrier; /* processes */
	uint32_t first; /* process; of a free slot the next free one */
	double compute_s, disk_s, device_s;
	double start_s, processes_s, jobs_s; /* the moment it started, and the integrals then */
	double tag;
};

struct qmachine_node {
	double next_s; /* the soonest of the next three */
	double disk_done_s, cpu_done_s, device_done_s; /* INFINITY: empty */
	uint32_t disk_first, disk_last; /* who is served, and the end of the line */
	uint32_t n_processes; /* placed here and not yet done */
	double clock_s; /* up to here the next three are */
	double attained_s; /* service that every process at the cores has got since they were last idle */
	double busy_s; /* core-seconds worked */
	double rate, cores_busy; /* of each process there, and of all together */
	struct heap device; /* processes whose job's devices work, by the moment they are done */
	struct heap cpu; /* processes at the cores by the attained service at which they are done */
};

struct qmachine {
	struct qmachine_params params;
	double now_s;
	struct qmachine_node *node;
	uint32_t *tree; /* tournament: tree[1] is the node whose event is next; leaves from n_leaves on */
	uint32_t n_leaves;
	struct qmachine_process *process;
	size_t n_slots, process_cap;
	uint32_t free_process;
	struct qmachine_task *job;
	size_t n_job_slots, job_cap;
	uint32_t free_job;
	struct qmachine_end *ended; /* not taken yet, by time */
	size_t n_ended, ended_cap;
	size_t n_jobs; /* that run */
	uint64_t n_processes; /* the sum of their cpus */
	double changed_s, processes_s, jobs_s; /* integrals over time, up to changed_s */
	uint64_t events;
};

int qmachine_reserve_slots(struct qmachine *m, size_t processes, size_t jobs, size_t ended, struct err *err);

#endif
