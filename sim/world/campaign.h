/* The designed experiment in a world of costs (`queueing`, `fluid`): what models are trained from. A full
 * factorial over the levels of the world's file, `replications` times: njobs equal jobs start together on an
 * empty machine, one row a copy, as `postrider profile` measures a real one. The machine is the given one,
 * without drift, stragglers and failures; the noise of jobs stays. Its random numbers come from seeds that
 * no replay draws from. */
#ifndef SIM_WORLD_CAMPAIGN_H
#define SIM_WORLD_CAMPAIGN_H

#include <stddef.h>
#include <stdint.h>

#include "common/csv.h"
#include "common/err.h"
#include "sim/world/cluster.h"
#include "sim/world/draws.h"
#include "sim/world/file.h"
#include "sim/world/queueing_kinds.h"

#define CAMPAIGN_REPLICATIONS 3
#define CAMPAIGN_MAX_ROWS 1000000
/* of the queueing machine, about 3 s; beyond them jobs are cut short (below) */
#define CAMPAIGN_MAX_EVENTS 3e7
#define CAMPAIGN_LEAST_ITERATIONS 100.0 /* of a job that is cut short */

struct campaign_setting {
	struct qkind kind;
	double batch;
	size_t njobs;
	/* of the iterations that are played; the times are stretched to the whole */
	double share;
};

struct campaign_params;
/* Starts s->njobs equal jobs at 0, job i with draws[i]; out_time_s[i] is when it ends. */
typedef int campaign_play(const struct campaign_params *p, const struct campaign_setting *s,
                          const struct draws *draws, double *out_time_s, struct err *err);

struct campaign_params {
	const struct world_file *file;
	const struct cluster *cluster;
	double noise;             /* draws.h */
	size_t replications;
	uint64_t seed;
	campaign_play *play;
};
/* Columns: the categories, gpus where the world has devices, then
 * cpus,njobs,batch,epochs,samples,time_s,accuracy,processes,replication. */
int campaign_run(const struct campaign_params *p, struct csv **out, struct err *err);

/* Iteration by iteration. The built-in world takes a million events, bigdl.json 28 million. In a world that
 * would take longer all jobs are cut to the same share of their iterations. Means stay what they are;
 * replications differ more than whole jobs do, by 1 / sqrt(share), which makes bounds careful, not bold. */
campaign_play campaign_play_queueing;

#endif
