/* Opens a trace and a world, trains models, and replays. */
#include "tests/unit/sim/replay_bed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

void replay_bed_close(struct replay_bed *b)
{
	if (!b->borrows)
		sim_models_free(b->models);
	csv_free(b->training);
	world_free(b->world);
	trace_free(b->trace);
}

static void open_world(struct replay_bed *b, const char *trace, const char *world, const char *cluster)
{
	struct trace_source source = { .spec = trace, .seed = 11 };
	struct cluster machine;
	struct world_params w = { .spec = world,
				  .given = cluster ? &machine : NULL,
				  .disturbances = &b->disturbances };
	struct err err = { 0 };

	if (cluster && cluster_parse(cluster, &machine, &err))
		fail_msg("%s", err.text);
	if (trace_open(&source, &b->trace, &err))
		fail_msg("%s", err.text);
	w.trace = b->trace;
	if (world_open(&w, &b->world, &err))
		fail_msg("%s", err.text);
}

void replay_bed_open(struct replay_bed *b, const char *trace, const char *world, const char *cluster,
		     const char *policies)
{
	struct sim_models_params m = { 0 };
	struct err err = { 0 };

	open_world(b, trace, world, cluster);
	if (sim_policies_parse(policies, b->policy, 5, &b->n_policies, &err) ||
	    world_training(b->world, 0, 5, &b->training, &err))
		fail_msg("%s", err.text);
	m = (struct sim_models_params){ .policy = b->policy,
					.n_policies = b->n_policies,
					.table = b->training,
					.given = world_given(b->world),
					.cluster = world_cluster(b->world),
					.seed = 3 };
	if (sim_models_train(&m, &b->models, &err))
		fail_msg("%s", err.text);
}

void replay_bed_beside(struct replay_bed *b, const char *trace, const char *world, const char *cluster,
		       const struct replay_bed *other)
{
	open_world(b, trace, world, cluster);
	memcpy(b->policy, other->policy, sizeof b->policy);
	b->n_policies = other->n_policies;
	b->models = other->models;
	b->borrows = true;
}

struct replay_result replay_bed_run(const struct replay_bed *b, size_t policy, uint64_t seed)
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

bool replay_bed_ran(const struct outcome *o)
{
	return o->state != OUTCOME_REJECTED && o->state != OUTCOME_REFUSED && !isnan(o->batch);
}

static int by_time(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->change - y->change; /* ends first */
}

struct moment *replay_bed_moments(const struct replay_result *r, size_t *out_n)
{
	struct moment *m = malloc(2 * r->n * sizeof *m);
	size_t n = 0;

	assert_non_null(m);
	for (size_t i = 0; i < r->n; i++) {
		if (!replay_bed_ran(&r->outcome[i]))
			continue;
		m[n++] = (struct moment){ r->outcome[i].start_ns, 1, i };
		m[n++] = (struct moment){ r->outcome[i].end_ns, -1, i };
	}
	qsort(m, n, sizeof *m, by_time);
	*out_n = n;
	return m;
}

size_t replay_bed_check_slots(const struct replay_bed *b, const struct replay_result *r, uint32_t nodes)
{
	long slots = world_cluster(b->world)->slots;
	long *used = calloc(nodes, sizeof *used);
	bool *had = calloc(nodes, sizeof *had);
	size_t n, with = 0;
	struct moment *m = replay_bed_moments(r, &n);

	assert_true(used && had);
	for (size_t i = 0; i < n; i++) {
		uint32_t node = r->outcome[m[i].job].node;

		assert_in_range(node, 0, nodes - 1);
		had[node] = true;
		used[node] += m[i].change * (long)b->trace->kind[b->trace->job[m[i].job].kind].cpus;
		assert_in_range(used[node], 0, slots);
	}
	for (uint32_t i = 0; i < nodes; i++)
		with += had[i];
	free(m);
	free(used);
	free(had);
	return with;
}
