/* Levels of new families, in sets of a few places by their hash. See levels.h. */
#include "scheduler/core/learn/levels.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

#define PLACES 1024
#define WAYS 4

struct level {
	uint64_t key, used_at; /* by the count of observations; 0: free */
	struct levels_runs runs;
};

struct levels {
	uint64_t observed;
	struct level place[PLACES];
};

int levels_new(struct levels **out, struct err *err)
{
	struct levels *l = mem_calloc(1, sizeof *l);

	if (!l)
		return err_nomem(err, "the levels of new families");
	*out = l;
	return 0;
}

void levels_free(struct levels *l)
{
	free(l);
}

static uint64_t key_of(struct adapt_who who, uint64_t family)
{
	return rng_mix(family ^ rng_mix((uint64_t)(uint32_t)who.type << 32 | who.user));
}

/* The level itself, or else the place that a new one would take. */
static const struct level *look_up(const struct levels *l, uint64_t key)
{
	const struct level *set = &l->place[key % (PLACES / WAYS) * WAYS], *oldest = set;

	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].used_at && set[i].key == key)
			return &set[i];
		if (set[i].used_at < oldest->used_at)
			oldest = &set[i];
	}
	return oldest;
}

void levels_observe(struct levels *l, struct adapt_who who, uint64_t family, double score)
{
	uint64_t key = key_of(who, family);
	struct level *v = (struct level *)look_up(l, key);
	double off;

	if (!v->used_at || v->key != key)
		*v = (struct level){ .key = key };
	v->used_at = ++l->observed;
	v->runs.n += v->runs.n < LEVELS_RECENT;
	off = score - v->runs.mean;
	v->runs.mean += off / v->runs.n;
	v->runs.variance += (off * (score - v->runs.mean) - v->runs.variance) / v->runs.n;
}

struct levels_runs levels_of(const struct levels *l, struct adapt_who who, uint64_t family)
{
	uint64_t key = key_of(who, family);
	const struct level *v = look_up(l, key);

	return v->used_at && v->key == key ? v->runs : (struct levels_runs){ 0 };
}
