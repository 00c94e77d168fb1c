/* Batches that a user's jobs cannot be run with: too large for the memory, as a rule. One failure that speaks
 * of memory, or two of any kind, and the batch is no candidate for this user's jobs of the type; for others
 * only once several users have found that out. It is tried again after a day, after a change of the type's
 * command, and whenever a user names it. */
#ifndef SCHEDULER_CORE_ADMIT_FAILING_H
#define SCHEDULER_CORE_ADMIT_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failing_batches { struct failing_batch *item; size_t n, cap; }; /* all zero: none fails */
struct failing_who {
	int type;
	uint32_t user;
	uint64_t command;    /* a hash of what the type runs */
};

void failing_release(struct failing_batches *f); /* all zero again */
/* A run has failed, and said why (NULL: it did not say). */
void failing_add(struct failing_batches *f, struct failing_who who, double batch, const char *reason,
                 int64_t now_ns);
/* A run ended well: what failed before is forgotten. */
void failing_forget(struct failing_batches *f, struct failing_who who, double batch);
/* Is the batch no candidate? f may be NULL. */
bool failing_has(const struct failing_batches *f, struct failing_who who, double batch, int64_t now_ns);

#endif
