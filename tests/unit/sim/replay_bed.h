/* A bed for tests of replays: a generated trace, a world, models trained from it, and one replay by name of policy. */
#ifndef TESTS_UNIT_SIM_REPLAY_BED_H
#define TESTS_UNIT_SIM_REPLAY_BED_H

#include <stdio.h>

#include "sim/replay/replay.h"
#include "tests/support/test.h"

struct bed {
	struct trace *trace;
	struct world *world;
	struct csv *training;
	struct sim_policy policy[4];
	size_t n_policies;
	struct sim_models *models;
	struct disturbances disturbances;
};

static inline void bed_close(struct bed *b)
{
	sim_models_free(b->models);
	csv_free(b->training);
	world_free(b->world);
	trace_free(b->trace);
}

/* disturbances of *b are taken as they are; models are trained only for policies that want some. */
static inline void bed_open(struct bed *b, const char *trace, const char *world, const char *cluster,
                            const char *policies)
{
	struct trace_source source = { .spec = trace, .seed = 11 };
	struct cluster machine;
	struct world_params w = { .spec = world, .given = cluster ? &machine : NULL, .disturbances = &b->disturbances };
	struct sim_models_params m = { 0 };
	struct err err = { 0 };

	if (cluster && cluster_parse(cluster, &machine, &err))
		fail_msg("%s", err.text);
	if (trace_open(&source, &b->trace, &err))
		fail_msg("%s", err.text);
	w.trace = b->trace;
	if (world_open(&w, &b->world, &err) ||
	    sim_policies_parse(policies, b->policy, 4, &b->n_policies, &err) ||
	    world_training(b->world, 0, 5, &b->training, &err))
		fail_msg("%s", err.text);
	m = (struct sim_models_params){ .policy = b->policy, .n_policies = b->n_policies, .table = b->training,
	                                .given = world_given(b->world), .cluster = world_cluster(b->world), .seed = 3 };
	if (sim_models_train(&m, &b->models, &err))
		fail_msg("%s", err.text);
}

static inline struct replay_result bed_replay(const struct bed *b, size_t policy, uint64_t seed)
{
	struct replay_params p = {
		.trace = b->trace,
		.world = b->world,
		.policy = &b->policy[policy],
		.model = sim_models_of(b->models, &b->policy[policy]),
		.seed = seed,
		.settings = { .confidence = 0.9, .adapt = true },
	};
	struct replay_result r;
	struct err err = { 0 };

	if (replay_run(&p, &r, &err))
		fail_msg("%s: %s", b->policy[policy].name, err.text);
	return r;
}

#endif
