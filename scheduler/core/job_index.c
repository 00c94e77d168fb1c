/* The hash table of job_index.h. */
#include "scheduler/core/job_index.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"

int job_index_init(struct job_index *x, size_t max_jobs)
{
	size_t cells = 16;

	while (cells / 2 < max_jobs && cells <= SIZE_MAX / 4)
		cells *= 2;
	x->id = mem_calloc(cells, sizeof *x->id);
	x->place = mem_array(cells, sizeof *x->place);
	x->mask = cells - 1;
	return x->id && x->place ? 0 : -1;
}

void job_index_release(struct job_index *x)
{
	if (!x)
		return;
	free(x->id);
	free(x->place);
	*x = (struct job_index){ 0 };
}

/* Its cell, or the empty one where it would be. Ids that count up from 1 would fill neighbouring cells, and
 * those of another series run into them: mixing scatters both. */
static size_t cell_of(const struct job_index *x, uint64_t id)
{
	size_t at = (size_t)rng_mix(id) & x->mask;

	while (x->id[at] && x->id[at] != id)
		at = (at + 1) & x->mask;
	return at;
}

void job_index_put(struct job_index *x, uint64_t id, uint32_t place)
{
	size_t at = cell_of(x, id);

	x->id[at] = id;
	x->place[at] = place;
}

uint32_t job_index_find(const struct job_index *x, uint64_t id)
{
	size_t at = id ? cell_of(x, id) : 0;

	return id && x->id[at] == id ? x->place[at] : JOB_INDEX_NONE;
}

void job_index_remove(struct job_index *x, uint64_t id)
{
	size_t hole = cell_of(x, id);

	if (!id || x->id[hole] != id)
		return;
	/* An entry behind the hole that would be found from before it moves into it, so there are no
	 * tombstones. */
	for (size_t at = (hole + 1) & x->mask; x->id[at]; at = (at + 1) & x->mask) {
		size_t home = (size_t)rng_mix(x->id[at]) & x->mask;

		if (((at - home) & x->mask) >= ((at - hole) & x->mask)) {
			x->id[hole] = x->id[at];
			x->place[hole] = x->place[at];
			hole = at;
		}
	}
	x->id[hole] = 0;
}
