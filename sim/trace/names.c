/* Names found again by their text. See names.h. */
#include "sim/trace/names.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

uint64_t trace_hash(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t word;

	for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
		memcpy(&word, p, sizeof word);
		h = rng_mix(h ^ word) + 0x9e3779b97f4a7c15ULL;
	}
	word = 0;
	if (n)
		memcpy(&word, p, n);
	/* The length too: else "a" and "a\0" would be the same. */
	return rng_mix(h ^ word) + 0x9e3779b97f4a7c15ULL * (n + 1);
}

/* The slot of the name, or the free one where it belongs. */
static size_t slot_of(const struct trace_names *s, const char *name)
{
	size_t at = (size_t)trace_hash(0, name, strlen(name)) & (s->n_slots - 1);

	while (s->slot[at] && strcmp(s->name[s->slot[at] - 1], name) != 0)
		at = (at + 1) & (s->n_slots - 1);
	return at;
}

int64_t trace_names_find(const struct trace_names *s, const char *name)
{
	return s->n_slots ? (int64_t)s->slot[slot_of(s, name)] - 1 : -1;
}

/* Twice as many slots as names at least, so that searches end soon. */
static int grow_slots(struct trace_names *s)
{
	struct trace_names larger = *s;

	larger.n_slots = s->n_slots ? 2 * s->n_slots : 16;
	larger.slot = mem_calloc(larger.n_slots, sizeof *larger.slot);
	if (!larger.slot)
		return -1;
	for (size_t i = 0; i < s->n; i++)
		larger.slot[slot_of(&larger, s->name[i])] = (uint32_t)i + 1;
	free(s->slot);
	*s = larger;
	return 0;
}

int64_t trace_names_add(struct trace_names *s, const char *name)
{
	int64_t found = trace_names_find(s, name);
	void *names = s->name;

	if (found >= 0)
		return found;
	if (2 * (s->n + 1) > s->n_slots && grow_slots(s))
		return -1;
	if (mem_grow(&names, &s->cap, s->n + 1, sizeof *s->name))
		return -1;
	s->name = names;
	s->name[s->n] = mem_strdup(name);
	if (!s->name[s->n])
		return -1;
	s->slot[slot_of(s, name)] = (uint32_t)++s->n;
	return (int64_t)s->n - 1;
}

void trace_names_release(struct trace_names *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->name[i]);
	free(s->name);
	free(s->slot);
	*s = (struct trace_names){ 0 };
}
