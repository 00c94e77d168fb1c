/* What the files of the store share. The loop collects into `open` without a lock and hands batches over
 * under `lock`. Behind it are three threads: the writer (writer.c), the checkpointer (checkpoint.c) and the
 * reader (reader.c). Each SQLite connection belongs to one thread. `lock` is held while pointers are moved,
 * never during I/O. */
#ifndef SCHEDULER_STORE_INTERNAL_H
#define SCHEDULER_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "common/worker.h"
#include "scheduler/store/store.h"
#include "scheduler/store/batch.h"

#define CLOCK_STEP_NS ((int64_t)3600 * 1000000000) /* clocks are set back by less than an hour, we hope */

struct question {
	struct question *next;
	enum store_question kind;
	uint64_t job;
	struct store_filter filter;
	store_answer *fn;
	void *owner;
	uint64_t token;
	struct strbuf text;
	struct err err;
};

struct question_list {
	struct question *first, *last;
};

/* Which thread may use the checkpointer's connection: the checkpointer in CHECKPOINT_RUNS, the writer in all
 * other states. */
enum checkpoint_state {
	CHECKPOINT_IDLE,
	CHECKPOINT_ASKED,
	CHECKPOINT_RUNS,
	CHECKPOINT_DONE,              /* and not looked at by the writer */
};

struct store {
	char *path;                   /* of the database */
	int lock_fd, folder_fd, event_fd; /* -1: not open */
	int durability;
	int64_t interval_ns, read_limit_ns;
	uint64_t base_batch;          /* meta.batch when this process opened the file: ticket 0 */

	/* the loop's own */
	struct batch *open;           /* being filled; NULL: nothing collected */
	uint64_t last_ticket, last_id;
	size_t rows_added, bytes_added;

	pthread_mutex_t lock;
	pthread_cond_t writer_wake, reader_wake, reader_closed, checkpoint_wake, checkpoint_done;
	struct worker writer_thread, reader_thread, checkpoint_thread;

	/* under the lock */
	bool stop, repair;
	struct batch *first, *last;   /* handed over, not durable, by ticket */
	struct batch *spare;          /* emptied, to be used again */
	size_t n_spare;
	struct err why;               /* of `failed` */
	enum checkpoint_state checkpoint;
	struct err checkpoint_why;    /* a checkpoint failed, and the writer does not know yet */
	struct store_stats stats;
	double total_commit_ms;
	bool reader_pause;            /* the writer wants the reader's connection closed */
	bool reader_open;             /* the reader has a connection */
	struct question_list asked, answered;
	size_t n_questions, answered_bytes;

	/* read by the loop without the lock */
	atomic_bool failed;
	atomic_uint_fast64_t durable;
	atomic_size_t rows_done, bytes_done;
	/* read by the reader in the midst of a question */
	atomic_bool reader_abort;

	sqlite3 *db;                  /* the writer's, made by store_open() */
	sqlite3 *checkpoint_db;       /* the checkpointer's, made by store_open() */
};

void store_notify(struct store *s); /* makes store_fd() readable */

void *store_writer_run(void *store);
void *store_reader_run(void *store);
void *store_checkpoint_run(void *store);

/* One checkpoint, as far as it gets without waiting for readers. */
int store_checkpoint(struct store *s, sqlite3 *db, struct err *err);
/* The writer waits until the checkpointer does nothing. */
void store_checkpoint_wait(struct store *s);

/* Answers q into q->text or q->err. Gives up, with -ERR_BUSY, when the
 * connection's progress handler says so. */
void question_answer(sqlite3 *db, struct question *q);
int expired_answer(sqlite3 *db, struct question *q); /* of STORE_EXPIRED: expire.c */
struct question *question_pop(struct question_list *l);
void question_push(struct question_list *l, struct question *q);
void question_push_front(struct question_list *l, struct question *q);
void question_free(struct question *q);

#endif
