/* See failing.h. */
#define _GNU_SOURCE
#include "scheduler/core/admit/failing.h"

#include <signal.h>
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
	free(f->well);
	*f = (struct failing_batches){ 0 };
}

static bool speaks_of(const char *reason, const char *const *words)
{
	for (size_t i = 0; reason && words[i]; i++)
		if (strcasestr(reason, words[i]))
			return true;
	return false;
}

static bool speaks_of_memory(const char *reason)
{
	static const char *const words[] = { "out of memory",   "outofmemory",         "memoryerror",
					     "bad_alloc",       "cannot allocate",     "can't allocate",
					     "unable to alloc", "memory limit exceed", NULL };

	return speaks_of(reason, words);
}

bool failing_counts(bool ran, int exit_signal, bool out_of_memory, const char *reason)
{
	static const char *const disk[] = { "no space left on device", "disk quota exceeded", NULL };
	static const int own[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP };
	bool from_outside = exit_signal != 0;

	if (out_of_memory || speaks_of_memory(reason))
		return true;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		from_outside &= exit_signal != own[i];
	return ran && !from_outside && !speaks_of(reason, disk);
}

static struct failing_batch *find(struct failing_batch *item, size_t n, struct failing_who who, double batch)
{
	for (size_t i = 0; i < n; i++) {
		struct failing_batch *b = &item[i];

		if (b->type == who.type && b->user == who.user && b->batch == batch)
			return b;
	}
	return NULL;
}

/* NULL: without memory nothing is remembered. Of too many the oldest makes room. */
static struct failing_batch *make(struct failing_batch **item, size_t *n, size_t *cap, struct failing_who who,
				  double batch)
{
	struct failing_batch *b = find(*item, *n, who, batch);

	if (b)
		return b;
	if (*n < MOST) {
		if (mem_grow((void **)item, cap, *n + 1, sizeof **item))
			return NULL;
		b = &(*item)[(*n)++];
	} else {
		b = *item;
		for (size_t i = 1; i < *n; i++)
			if ((*item)[i].last_ns < b->last_ns)
				b = &(*item)[i];
	}
	*b = (struct failing_batch){
		.type = who.type, .user = who.user, .batch = batch, .command = who.command
	};
	return b;
}

static void forget(struct failing_batch *item, size_t *n, struct failing_who who, double batch)
{
	struct failing_batch *b = find(item, *n, who, batch);

	if (b)
		*b = item[--*n];
}

static bool fails(const struct failing_batch *b, int64_t now_ns)
{
	return (b->memory || b->n >= ANY_KIND) && now_ns - b->last_ns < DAY_NS;
}

void failing_add(struct failing_batches *f, struct failing_who who, double batch, const char *reason,
		 int64_t now_ns)
{
	struct failing_batch *b = batch > 0.0 ? make(&f->item, &f->n, &f->cap, who, batch) : NULL;

	if (!b)
		return;
	if (b->command != who.command || now_ns - b->last_ns >= DAY_NS)
		b->n = 0, b->memory = false;
	b->command = who.command;
	b->last_ns = now_ns;
	b->n++;
	b->memory |= speaks_of_memory(reason);
	if (fails(b, now_ns))
		forget(f->well, &f->n_well, who, batch);
}

void failing_ended_well(struct failing_batches *f, struct failing_who who, double batch, int64_t now_ns)
{
	struct failing_batch *b = batch > 0.0 ? make(&f->well, &f->n_well, &f->well_cap, who, batch) : NULL;

	forget(f->item, &f->n, who, batch);
	if (!b)
		return;
	b->command = who.command;
	b->last_ns = now_ns;
}

bool failing_has(const struct failing_batches *f, struct failing_who who, double batch, int64_t now_ns)
{
	size_t users = 0, well = 0;

	for (size_t i = 0; f && i < f->n; i++) {
		const struct failing_batch *b = &f->item[i];

		if (b->type != who.type || b->batch != batch || b->command != who.command ||
		    !fails(b, now_ns))
			continue;
		if (b->user == who.user)
			return true;
		users++;
	}
	if (users < SEVERAL)
		return false;
	for (size_t i = 0; i < f->n_well; i++) {
		const struct failing_batch *b = &f->well[i];

		if (b->type != who.type || b->batch != batch || b->command != who.command)
			continue;
		if (b->user == who.user)
			return false;
		well++;
	}
	return users > well;
}
