/* The table of users.h: open addressing, at most half full. */
#include "scheduler/jobs/users.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/rng.h"

struct user_entry {
	uid_t uid;
	bool used;
	size_t queued;
};

/* Its entry, or the empty one where it would be. */
static struct user_entry *find(struct user_entry *entry, size_t cap, uid_t uid)
{
	size_t at = (size_t)rng_mix((uint64_t)uid + 1) & (cap - 1);

	while (entry[at].used && entry[at].uid != uid)
		at = (at + 1) & (cap - 1);
	return &entry[at];
}

int users_know(struct users *u, uid_t uid)
{
	struct user_entry *e;

	if (2 * (u->n + 1) > u->cap) {
		size_t cap = u->cap ? 2 * u->cap : 16;
		struct user_entry *grown = mem_calloc(cap, sizeof *grown);

		if (!grown)
			return -1;
		for (size_t i = 0; i < u->cap; i++)
			if (u->entry[i].used)
				*find(grown, cap, u->entry[i].uid) = u->entry[i];
		free(u->entry);
		u->entry = grown;
		u->cap = cap;
	}
	e = find(u->entry, u->cap, uid);
	u->n += !e->used;
	e->used = true;
	e->uid = uid;
	return 0;
}

void users_count(struct users *u, uid_t uid, int by)
{
	struct user_entry *e = u->cap ? find(u->entry, u->cap, uid) : NULL;

	if (e && e->used && (by > 0 || e->queued >= (size_t)-by))
		e->queued += (size_t)by;
}

size_t users_queued(const struct users *u, uid_t uid)
{
	const struct user_entry *e = u->cap ? find(u->entry, u->cap, uid) : NULL;

	return e && e->used ? e->queued : 0;
}

void users_release(struct users *u)
{
	free(u->entry);
	*u = (struct users){ 0 };
}
