/* Names that many jobs share: of tenants, types, policies, models. Each is kept once, has a number, and
 * stays until the table is released, so a job holds a pointer instead of a copy. Numbers count from 0 in the
 * order of arrival. */
#ifndef SCHEDULER_JOBS_NAMES_H
#define SCHEDULER_JOBS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NAMES_MAX (1u << 20) /* different names; a job that brings one more is refused */

struct names { /* all zero: empty */
	char **name;
	size_t n, cap;
	uint32_t *slot; /* open addressing: number + 1; 0: free */
	size_t n_slots; /* a power of two */
};
void names_release(struct names *t);

/* The number of `name`, which is added if it is new. -1: `name` is NULL, there is no memory, or the table is
 * full. */
int names_number(struct names *t, const char *name);
/* The copy that stays. NULL in the same cases. */
const char *names_keep(struct names *t, const char *name);

#endif
