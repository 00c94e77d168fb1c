/* From a job's id to its place in a table: a hash with open addressing and linear probing, at most half full.
 * All its memory is taken at the beginning. */
#ifndef SCHEDULER_CORE_JOB_INDEX_H
#define SCHEDULER_CORE_JOB_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define JOB_INDEX_NONE UINT32_MAX

struct job_index { /* all zero: holds nothing, has room for nothing */
	uint64_t *id; /* 0: an empty cell */
	uint32_t *place;
	size_t mask;
};

int job_index_init(struct job_index *x, size_t max_jobs); /* 0, or -1 without memory */
void job_index_release(struct job_index *x);
void job_index_put(struct job_index *x, uint64_t id, uint32_t place); /* id > 0, not there yet, and room for
                                                                         it */
uint32_t job_index_find(const struct job_index *x, uint64_t id);      /* JOB_INDEX_NONE: not there */
void job_index_remove(struct job_index *x, uint64_t id);

#endif
