/* A table of names by hash. See names.h. */
#include "scheduler/jobs/names.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/text/hash.h"

#define FIRST_SLOTS 64

void names_release(struct names *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->name[i]);
	free(t->name);
	free(t->slot);
	*t = (struct names){ 0 };
}

static uint64_t hash(const char *name)
{
	return rng_mix(hash_text(1, name));
}

/* The slot that holds `name`, or the free one where it belongs. */
static uint32_t *slot_of(const struct names *t, const char *name)
{
	size_t i = hash(name) & (t->n_slots - 1);

	while (t->slot[i] && strcmp(t->name[t->slot[i] - 1], name) != 0)
		i = (i + 1) & (t->n_slots - 1);
	return &t->slot[i];
}

/* Half of the slots stay free, so that a search ends soon. */
static int grow(struct names *t)
{
	size_t n = t->n_slots ? 2 * t->n_slots : FIRST_SLOTS;
	uint32_t *slot;

	if (2 * (t->n + 1) <= t->n_slots)
		return 0;
	slot = mem_calloc(n, sizeof *slot);
	if (!slot)
		return -1;
	free(t->slot);
	t->slot = slot;
	t->n_slots = n;
	for (size_t i = 0; i < t->n; i++)
		*slot_of(t, t->name[i]) = (uint32_t)i + 1;
	return 0;
}

int names_number(struct names *t, const char *name)
{
	uint32_t *slot;
	char *copy;

	if (!name)
		return -1;
	if (t->n_slots && *(slot = slot_of(t, name)))
		return (int)*slot - 1;
	if (t->n == NAMES_MAX || grow(t) || mem_grow((void **)&t->name, &t->cap, t->n + 1, sizeof *t->name) ||
	    !(copy = mem_strdup(name)))
		return -1;
	t->name[t->n++] = copy;
	*slot_of(t, name) = (uint32_t)t->n;
	return (int)t->n - 1;
}

const char *names_keep(struct names *t, const char *name)
{
	int i = names_number(t, name);

	return i < 0 ? NULL : t->name[i];
}
