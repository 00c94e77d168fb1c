/* Entries in sets of a few places by their hash. See ledger.h. */
#include "scheduler/core/learn/ledger.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"

#define PLACES 1024
#define WAYS 4

struct place {
	uint64_t key, used_at; /* by the count of claims; 0: free */
	struct ledger_entry entry;
};

struct ledger {
	uint64_t claims;
	struct place place[PLACES];
};

int ledger_new(struct ledger **out, struct err *err)
{
	*out = mem_calloc(1, sizeof **out);
	return *out ? 0 : err_nomem(err, "what jobs have taught");
}

void ledger_free(struct ledger *l)
{
	free(l);
}

static uint64_t key_of(struct adapt_who who, uint64_t family)
{
	return rng_mix(family ^ rng_mix((uint64_t)(uint32_t)who.type << 32 | who.user));
}

/* The place of the key, or else the one that it would take. */
static const struct place *look_up(const struct ledger *l, uint64_t key)
{
	const struct place *set = &l->place[key % (PLACES / WAYS) * WAYS], *oldest = set;

	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].used_at && set[i].key == key)
			return &set[i];
		if (set[i].used_at < oldest->used_at)
			oldest = &set[i];
	}
	return oldest;
}

struct ledger_entry ledger_of(const struct ledger *l, struct adapt_who who, uint64_t family)
{
	uint64_t key = key_of(who, family);
	const struct place *p = look_up(l, key);

	return p->used_at && p->key == key ? p->entry : (struct ledger_entry){ 0 };
}

struct ledger_entry *ledger_claim(struct ledger *l, struct adapt_who who, uint64_t family,
				  struct ledger_entry fresh)
{
	uint64_t key = key_of(who, family);
	struct place *p = (struct place *)look_up(l, key);

	if (!p->used_at || p->key != key)
		*p = (struct place){ .key = key, .entry = fresh };
	p->used_at = ++l->claims;
	return &p->entry;
}

void ledger_add(struct ledger_entry *e, double score)
{
	double off = score - e->mean;

	e->n += e->n < LEDGER_RECENT;
	e->mean += off / e->n;
	e->variance += (off * (score - e->mean) - e->variance) / e->n;
}
