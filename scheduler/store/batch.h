/* What one turn of the loop collects: rows, one behind the other in a single block of memory that is used
 * again for later turns, so that collecting costs a copy and no allocation. The loop fills a batch; from the
 * commit on it belongs to the writer. */
#ifndef SCHEDULER_STORE_BATCH_H
#define SCHEDULER_STORE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "scheduler/store/store.h"

#define ROW_MAX_TEXT ((size_t)16 << 20) /* bytes of all the text of a row */
#define ROW_MAX_TEXTS 32                /* texts of a row */

enum row_kind {
	ROW_ADD_JOB, ROW_UPDATE_JOB, ROW_DECISION, ROW_ESTIMATE, ROW_OBSERVATION, ROW_INPUT,
	ROW_FORGET_JOB, ROW_FORGET_OBSERVATION,
};

struct row {
	uint32_t size; /* bytes to the next row; its texts follow the structure, each with its NUL */
	enum row_kind kind;
};

struct row_job { /* ROW_ADD_JOB, ROW_UPDATE_JOB */
	struct row head;
	struct job_record job; /* its texts follow, too */
};

#define EVENT_VALUES 4
#define EVENT_TEXTS 2
struct row_event {
	struct row head;
	uint64_t job;
	int64_t at_ns;
	double value[EVENT_VALUES];    /* estimate: start, end, end low, end high; observation: time,
					  accuracy; input: its number */
	const char *text[EVENT_TEXTS]; /* decision: moment, json; estimate: why; observation: type, doubt
					  (may be NULL); input: what, text (may be NULL) */
	const char *packed;            /* observation: its values, as store_observation_next() reads them */
	size_t packed_len;
};

struct batch {
	struct batch *next;
	uint64_t ticket;
	char *bytes;
	size_t len, cap, n_rows;
};

struct batch *batch_new(void); /* NULL: no memory */
void batch_free(struct batch *b);
void batch_reset(struct batch *b); /* empty; a block grown very large is given back */

int batch_add_job(struct batch *b, enum row_kind kind, const struct job_record *j, struct err *err);
int batch_add_event(struct batch *b, enum row_kind kind, const struct row_event *e, struct err *err);

/* The row at *at, its texts in place, and *at moved behind it; NULL at the end. Not before the batch is full:
 * the block moves while it grows. */
struct row *batch_next(struct batch *b, size_t *at);

#endif
