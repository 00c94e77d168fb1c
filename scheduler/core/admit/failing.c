/* See failing.h. */
#define _GNU_SOURCE
#include "scheduler/core/admit/failing.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define DAY_NS (86400 * (int64_t)1000000000)
#define ANY_KIND 2 /* failures, whatever they say */
#define SEVERAL 2 /* users */
#define MOST 1024 /* remembered, of all types and users */

struct failing_batch {
	int type;
	uint32_t user;
	double batch;
	uint64_t command; /* of the type, when they failed */
	unsigned n; /* failures since one ended well */
	bool memory; /* one spoke of a lack of memory */
	int64_t last_ns;
};

void failing_release(struct failing_batches *f)
{
	free(f->item);
	*f = (struct failing_batches){ 0 };
}

static bool speaks_of_memory(const char *reason)
{
	static const char *const words[] = { "out of memory",   "outofmemory",         "memoryerror",
					     "bad_alloc",       "cannot allocate",     "can't allocate",
					     "unable to alloc", "memory limit exceed", NULL };

	for (size_t i = 0; reason && words[i]; i++)
		if (strcasestr(reason, words[i]))
			return true;
	return false;
}

static struct failing_batch *find(const struct failing_batches *f, struct failing_who who, double batch)
{
	for (size_t i = 0; i < f->n; i++) {
		struct failing_batch *b = &f->item[i];

		if (b->type == who.type && b->user == who.user && b->batch == batch)
			return b;
	}
	return NULL;
}

/* NULL: without memory nothing is remembered. Of too many the one that failed longest ago makes room. */
static struct failing_batch *make(struct failing_batches *f, struct failing_who who, double batch)
{
	struct failing_batch *b = find(f, who, batch);

	if (b)
		return b;
	if (f->n < MOST) {
		if (mem_grow((void **)&f->item, &f->cap, f->n + 1, sizeof *f->item))
			return NULL;
		b = &f->item[f->n++];
	} else {
		b = f->item;
		for (size_t i = 1; i < f->n; i++)
			if (f->item[i].last_ns < b->last_ns)
				b = &f->item[i];
	}
	*b = (struct failing_batch){ .type = who.type, .user = who.user, .batch = batch };
	return b;
}

void failing_add(struct failing_batches *f, struct failing_who who, double batch, const char *reason,
		 int64_t now_ns)
{
	struct failing_batch *b = batch > 0.0 ? make(f, who, batch) : NULL;

	if (!b)
		return;
	if (b->command != who.command || now_ns - b->last_ns >= DAY_NS)
		b->n = 0, b->memory = false;
	b->command = who.command;
	b->last_ns = now_ns;
	b->n++;
	b->memory |= speaks_of_memory(reason);
}

void failing_forget(struct failing_batches *f, struct failing_who who, double batch)
{
	struct failing_batch *b = find(f, who, batch);

	if (b)
		*b = f->item[--f->n];
}

bool failing_has(const struct failing_batches *f, struct failing_who who, double batch, int64_t now_ns)
{
	size_t users = 0;

	for (size_t i = 0; f && i < f->n; i++) {
		const struct failing_batch *b = &f->item[i];

		if (b->type != who.type || b->batch != batch || b->command != who.command ||
		    now_ns - b->last_ns >= DAY_NS || !(b->memory || b->n >= ANY_KIND))
			continue;
		if (b->user == who.user)
			return true;
		users++;
	}
	return users >= SEVERAL;
}
