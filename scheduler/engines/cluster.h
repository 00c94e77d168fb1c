/* What an engine says about its cluster and about the jobs of others there: filled in line by line by the
 * engine (slurm_cluster.c), asked for by engine_look.c, used by daemon/cluster.c. */
#ifndef SCHEDULER_ENGINES_CLUSTER_H
#define SCHEDULER_ENGINES_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster_guest {           /* a running job of others */
	uint32_t cpus;
	int64_t end_s;           /* when the engine expects its end, since 1970; 0: not known */
};

enum cluster_question { CLUSTER_NODES, CLUSTER_JOBS, CLUSTER_QUESTIONS }; /* asked one after the other */

struct cluster;
/* Takes a line of an answer. */
typedef void cluster_line_fn(enum cluster_question q, const char *line, const char *scope,
                             struct cluster *out);

struct cluster {
	size_t nodes, nodes_away; /* in our partitions; of them drained, down or reserved */
	uint64_t cpus;           /* that are usable, free or not */
	uint64_t cpus_leaving;   /* taken, and gone when what runs there has ended */
	uint64_t gpus, gpus_taken;
	size_t others, others_waiting; /* jobs of others that run, that wait */
	uint64_t others_cpus, others_waiting_cpus; /* what those run on, or wait for */
	uint64_t own_cpus;       /* what ours run on */
	/* while it is read */
	cluster_line_fn *line;
	char home[128], last[128]; /* the default partition, the last node */
	size_t n_guests, cap;
	struct cluster_guest guest[]; /* those of `others` */
};

/* Whose nodes count: ",near,far,", with * for the partition that is the engine's default. */
bool cluster_in_scope(const char *scope, const char *partition, bool is_default);

#endif
