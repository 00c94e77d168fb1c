/* The schedulers of a cluster, and on which node a job is taken.
 *
 * Each node has a scheduler, so an event costs what the jobs of its node cost. One daemon has all of them, or
 * several daemons share the cluster:
 *
 *   parts    each has its own nodes, and its promises rest on these alone
 *   asked    the same, and a job that its own daemon does not promise anything is offered to the others
 *   shared   all of them use all nodes. A daemon knows its own jobs; of those that another one runs it knows
 *            what an engine reports, as soon as they run: their cpus, and that they end by their bound. What
 *            another has promised, and what waits there, it does not know.
 *
 * What is learnt, and the price of capacity, is each daemon's own. A new job is offered to the least loaded
 * nodes, where a load is the cpus of the jobs that run there or, as far as the daemon knows, wait. */
#ifndef SIM_REPLAY_DAEMONS_H
#define SIM_REPLAY_DAEMONS_H

#include "scheduler/core/sched.h"
#include "sim/replay/replay.h"

#define DAEMONS_TRIES 4 /* nodes of one that are asked for a promise */
#define DAEMONS_MOST_SCHEDS 1000000

struct daemons_params {
	struct sched_params sched;     /* of a node; max_jobs of each node */
	const struct sched_tenant *tenant; size_t n_tenants;
	uint32_t nodes, daemons;       /* at least 1 each */
	enum daemons_share share;
	bool asks;                     /* several nodes are asked for a promise, not the first alone */
};
struct daemons;
int daemons_new(const struct daemons_params *p, struct daemons **out, struct err *err);
void daemons_free(struct daemons *d);

struct daemons_seat { uint32_t daemon, node; }; /* of a job: whose it is, and where */
struct sched *daemons_first(const struct daemons *d, uint32_t daemon); /* that of its first node */
struct sched *daemons_sched(const struct daemons *d, struct daemons_seat at);

/* Offers a job, of which seat->daemon is the first to be asked; afterwards the seat is where it is, or was
 * rejected. As sched_submit(). */
int daemons_submit(struct daemons *d, int64_t now_ns, struct sched_request *r, struct daemons_seat *seat,
		   struct decision *out, enum sched_verdict *out_verdict, struct err *err);
/* The next job that starts on the node of the last event. As sched_next(). */
bool daemons_next(struct daemons *d, int64_t now_ns, uint64_t *out_id, struct decision *out,
		  struct daemons_seat *seat);
/* It has started; others think that it ends by end_ns (SCHED_NEVER: not known). */
int daemons_started(struct daemons *d, int64_t now_ns, struct daemons_seat at, uint64_t id, uint32_t cpus,
		    int64_t end_ns, struct err *err);
/* A job ends, or leaves the queue. */
int daemons_leave(struct daemons *d, int64_t now_ns, struct daemons_seat at, uint64_t id, uint32_t cpus,
		  struct err *err);
/* On the node of the last event. As sched_hopeless(). */
bool daemons_hopeless(struct daemons *d, uint64_t *out_id);
/* On any node. As sched_overtime_ns(). To be asked after every event. */
int64_t daemons_overtime_ns(struct daemons *d, uint64_t *out_id);
size_t daemons_queued(struct daemons *d); /* to be asked after every event */

#endif
