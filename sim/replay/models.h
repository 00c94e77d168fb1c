/* The models of a simulation: for every policy that predicts, the one it wants, trained from one table with
 * the same folds and the same search budget (the default grid, cut down to its kind of model). Policies that
 * want the same model share it. Models with a number of cores may be given that of the machine. */
#ifndef SIM_REPLAY_MODELS_H
#define SIM_REPLAY_MODELS_H

#include "common/csv.h"
#include "common/pool.h"
#include "predictors/model.h"
#include "scheduler/core/policy/policy.h"
#include "sim/world/cluster.h"
#include "sim/replay/policies.h"

struct sim_models;

struct sim_models_params {
	const struct sim_policy *policy; size_t n_policies; /* that the models are for */
	const struct csv *table;     /* borrowed until sim_models_free() */
	const struct schema *schema; /* NULL: the default one */
	/* columns of replicates; NULL: those of the schema that are there */
	const char *const *group; size_t n_groups;
	/* Measured on, and simulated. Where the cores differ, models are asked as if the load were smaller or
	 * larger by the ratio (scaled_model.h). */
	const struct cluster *given, *cluster;
	uint64_t seed;
	struct pool *pool;
	void (*on_progress)(void *owner, const char *stage, size_t done, size_t total);
	void *owner;
};
int sim_models_train(const struct sim_models_params *p, struct sim_models **out, struct err *err);
void sim_models_free(struct sim_models *m);
/* The same models on another machine from now on; given: that of the training. What sim_models_of() gave is
 * gone. */
int sim_models_rescale(struct sim_models *m, const struct cluster *given, const struct cluster *cluster,
                       struct err *err);
/* NULL: it wants none */
const struct model *sim_models_of(const struct sim_models *m, const struct sim_policy *p);

#endif
