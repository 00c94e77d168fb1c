/* A tree of winners over the loads of nodes. */
#include "sim/replay/placement.h"

int placement_init(struct placement *p, uint32_t nodes)
{
	return tournament_init(&p->load, nodes, 0);
}

void placement_release(struct placement *p)
{
	tournament_release(&p->load);
}

void placement_change(struct placement *p, uint32_t node, int64_t cpus)
{
	tournament_set(&p->load, node, p->load.key[node] + cpus);
}

/* Those found step aside until all are. */
uint32_t placement_least(struct placement *p, uint32_t *out, uint32_t most)
{
	int64_t was[PLACEMENT_MOST];
	uint32_t n = 0;

	most = most < p->load.n ? most : p->load.n;
	most = most < PLACEMENT_MOST ? most : PLACEMENT_MOST;
	for (; n < most; n++) {
		out[n] = tournament_first(&p->load);
		was[n] = tournament_least(&p->load);
		if (n + 1 < most)
			tournament_set(&p->load, out[n], INT64_MAX);
	}
	for (uint32_t i = 0; i < n; i++)
		tournament_set(&p->load, out[i], was[i]);
	return n;
}
