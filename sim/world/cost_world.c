/* What the worlds queueing and fluid have in common. */
#include "sim/world/cost_world.h"

#include <stdio.h>
#include <stdlib.h>

int cost_world_init(struct cost_world *w, const struct world_open *o, struct world_machines *out,
		    struct err *err)
{
	int rc = world_file_read(o->argument, &w->file, err);

	if (rc)
		return rc;
	rc = world_machines(o, &w->file->cluster, out, err);
	if (rc)
		return rc;
	w->given = cluster_shared(&out->given);
	w->cluster = cluster_shared(&out->cluster);
	w->disturbances = o->disturbances;
	w->trace = o->trace;
	return w->trace ? qkinds_bind(w->file, w->trace, &w->kind, err) : 0;
}

void cost_world_release(struct cost_world *w)
{
	world_file_free(w->file);
	free(w->kind);
}

int cost_world_training(const struct cost_world *w, campaign_play *play, uint64_t seed, struct csv **out,
			struct err *err)
{
	struct campaign_params p = {
		.file = w->file,
		.cluster = &w->given,
		.noise = w->disturbances.noise,
		.replications = CAMPAIGN_REPLICATIONS,
		.seed = seed,
		.play = play,
	};

	return campaign_run(&p, out, err);
}

void cost_world_split_text(const void *self, size_t fold, char *out, size_t size)
{
	(void)self;
	(void)fold;
	snprintf(out, size,
		 "models learn from a designed experiment in the same world, with other random numbers");
}

void cost_world_describe(const void *self, struct json_writer *j)
{
	const struct cost_world *w = self;

	world_file_describe(w->file, j);
}

size_t cost_world_batches(const void *self, const double **out)
{
	const struct cost_world *w = self;

	*out = w->file->batch.v;
	return w->file->batch.n;
}
