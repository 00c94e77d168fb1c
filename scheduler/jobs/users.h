/* How many jobs of each user wait, over all tenants. A user who was counted once keeps an entry. */
#ifndef SCHEDULER_JOBS_USERS_H
#define SCHEDULER_JOBS_USERS_H

#include <stddef.h>
#include <sys/types.h>

struct users { /* all zero: none */
	struct user_entry *entry;
	size_t cap, n;
};

int users_know(struct users *u, uid_t uid);           /* makes room to count it; 0, or -1 without memory */
void users_count(struct users *u, uid_t uid, int by); /* one that is not known is not counted */
size_t users_queued(const struct users *u, uid_t uid);
void users_release(struct users *u);

#endif
