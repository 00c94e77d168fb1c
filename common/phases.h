/* The phases of a training run, by the names that a script prints them under and that tables have as columns:
 * seconds of its time, a mean over its workers. */
#ifndef COMMON_PHASES_H
#define COMMON_PHASES_H

#include <stddef.h>

enum phase {
	PHASE_FETCH,   /* reading records: the disk, or the link to where they are */
	PHASE_COMPUTE, /* gradients and steps */
	PHASE_SYNC,    /* waiting for other workers, or for anything else */
	PHASE_TEST,    /* computing too */
	N_PHASES,
};
extern const char *const phase_name[N_PHASES]; /* "fetch_s", ... */

int phase_find(const char *name, size_t len); /* -1: no phase is called so */

#endif
