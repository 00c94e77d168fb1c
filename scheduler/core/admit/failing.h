/* Batches that a user's jobs cannot be run with: too large for the memory, as a rule. One failure that speaks
 * of memory, or two of any kind, and the batch is no candidate for this user's jobs of the type; for others
 * only once several users have found that out, more than ran it well, and never for those who did. It is
 * tried again after a day, after a change of the type's command, and whenever a user names it. */
#ifndef SCHEDULER_CORE_ADMIT_FAILING_H
#define SCHEDULER_CORE_ADMIT_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failing_batches { /* all zero: none fails */
	struct failing_batch *item; size_t n, cap;
	struct failing_batch *well; size_t n_well, well_cap; /* that ended well, and did not fail since */
};
struct failing_who {
	int type;
	uint32_t user;
	uint64_t command;    /* a hash of what the type runs */
};

void failing_release(struct failing_batches *f); /* all zero again */
/* Does a failure say anything about the batch? Not if the run never began, if it was ended from outside
 * (out_of_memory: by the kernel, which had none left), or if a disk was full. reason may be NULL. */
bool failing_counts(bool ran, int exit_signal, bool out_of_memory, const char *reason);
/* A run has failed, and said why (NULL: it did not say). */
void failing_add(struct failing_batches *f, struct failing_who who, double batch, const char *reason,
                 int64_t now_ns);
/* A run ended well: what failed before is forgotten. */
void failing_ended_well(struct failing_batches *f, struct failing_who who, double batch, int64_t now_ns);
/* Is the batch no candidate? f may be NULL. */
bool failing_has(const struct failing_batches *f, struct failing_who who, double batch, int64_t now_ns);

#endif
