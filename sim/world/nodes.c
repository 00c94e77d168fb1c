/* One run of the world for each node; the next end of all is the least of theirs. */
#include "sim/world/nodes.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/tournament.h"

struct world_nodes {
	struct world_run **run;
	struct tournament next; /* the moment of the next end, by node */
	uint32_t n;
	size_t running;
};

int world_nodes_new(const struct world *w, size_t fold, struct world_nodes **out, struct err *err)
{
	uint32_t count = cluster_parts(world_whole(w));
	struct world_nodes *n = mem_calloc(1, sizeof *n);
	int rc = 0;

	if (n)
		n->run = mem_calloc(count, sizeof *n->run);
	if (!n || !n->run || tournament_init(&n->next, count, WORLD_NEVER))
		rc = err_nomem(err, "%u nodes", count);
	for (uint32_t i = 0; !rc && i < count; i++, n->n = i)
		rc = world_run_new(w, fold, &n->run[i], err);
	if (rc)
		world_nodes_free(n);
	else
		*out = n;
	return rc;
}

void world_nodes_free(struct world_nodes *n)
{
	if (!n)
		return;
	for (uint32_t i = 0; i < n->n; i++)
		world_run_free(n->run[i]);
	free(n->run);
	tournament_release(&n->next);
	free(n);
}

uint32_t world_nodes_count(const struct world_nodes *n)
{
	return n->n;
}

struct world_run *world_nodes_run(struct world_nodes *n, uint32_t node)
{
	return n->run[node];
}

static void note(struct world_nodes *n, uint32_t node)
{
	tournament_set(&n->next, node, world_run_next(n->run[node]));
}

int world_nodes_start(struct world_nodes *n, uint32_t node, int64_t now_ns, const struct world_job *j,
		      struct err *err)
{
	int rc = world_run_start(n->run[node], now_ns, j, err);

	if (rc)
		return rc;
	n->running++;
	if (n->n > 1)
		note(n, node);
	return 0;
}

/* A run may work its way to its next end, so one alone is asked only when that is asked for. */
int64_t world_nodes_next(struct world_nodes *n)
{
	return n->n == 1 ? world_run_next(n->run[0]) : tournament_least(&n->next);
}

bool world_nodes_end(struct world_nodes *n, struct world_end *out)
{
	uint32_t node = n->n == 1 ? 0 : tournament_first(&n->next);

	if (!world_run_end(n->run[node], out))
		return false;
	n->running--;
	if (n->n > 1)
		note(n, node);
	return true;
}

int world_nodes_stop(struct world_nodes *n, uint32_t node, int64_t now_ns, uint64_t id, struct world_end *out,
		     struct err *err)
{
	int rc = world_run_stop(n->run[node], now_ns, id, out, err);

	if (rc)
		return rc;
	n->running--;
	if (n->n > 1)
		note(n, node);
	return 0;
}

size_t world_nodes_running(const struct world_nodes *n)
{
	return n->running;
}

double world_nodes_busy_s(const struct world_nodes *n)
{
	double sum = 0.0;

	for (uint32_t i = 0; i < n->n; i++)
		sum += world_run_busy_s(n->run[i]);
	return sum;
}

uint64_t world_nodes_events(const struct world_nodes *n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n->n; i++)
		sum += world_run_events(n->run[i]);
	return sum;
}
