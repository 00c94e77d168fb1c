/* A bed for tests of replays: a generated trace, a world, models trained from it, and one replay by name of
 * policy. */
#ifndef TESTS_UNIT_SIM_REPLAY_BED_H
#define TESTS_UNIT_SIM_REPLAY_BED_H

#include "sim/replay/replay.h"

struct replay_bed {
	struct trace *trace;
	struct world *world;
	struct csv *training;
	struct sim_policy policy[5];
	size_t n_policies;
	struct sim_models *models;
	struct disturbances disturbances;
	bool borrows; /* the models are of another bed */
};

/* disturbances of *b are taken as they are; models are trained only for policies that want some. */
void replay_bed_open(struct replay_bed *b, const char *trace, const char *world, const char *cluster,
                     const char *policies);
/* Other jobs, world or machine with the policies and models of another bed. */
void replay_bed_beside(struct replay_bed *b, const char *trace, const char *world, const char *cluster,
                       const struct replay_bed *other);
void replay_bed_close(struct replay_bed *b);
/* Was the job started? One that was turned away was not. */
bool replay_bed_ran(const struct outcome *o);
/* A replay as the starts and ends of its jobs, in order; ends come before starts of the same moment. To be
 * freed. */
struct moment {
	int64_t at_ns;
	int change; /* +1 a start, -1 an end */
	size_t job;
};
struct moment *replay_bed_moments(const struct replay_result *r, size_t *out_n);
/* No node has more processes than slots at any moment. Returns how many nodes had a job. */
size_t replay_bed_check_slots(const struct replay_bed *b, const struct replay_result *r, uint32_t nodes);
struct replay_result replay_bed_run(const struct replay_bed *b, size_t policy, uint64_t seed);

#endif
