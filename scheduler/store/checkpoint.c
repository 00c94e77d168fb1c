/* The checkpointer: moves the log into the database through its own connection, while the writer goes on
 * committing. A checkpoint syncs the log, writes each changed page once and syncs the database; that takes as
 * long as several commits, so no commit should wait for it.
 *
 * The log starts from its beginning only when a transaction starts that finds all of it moved. Commits during
 * a checkpoint prevent that. If it happens over and over, the log grows to CHECKPOINT_LIMIT (writer.c), and
 * the writer itself moves the little that is left. */
#include "common/clock.h"
#include "scheduler/store/internal.h"
#include "scheduler/store/schema.h"

int store_checkpoint(struct store *s, sqlite3 *db, struct err *err)
{
	int64_t started_ns = clock_monotonic_ns();
	int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	double took_ms = (double)(clock_monotonic_ns() - started_ns) / 1e6;

	if (rc && (rc & 0xff) != SQLITE_BUSY) /* busy: another program does it right now */
		return db_fail(db, rc, "move the log into", s->path, err);
	pthread_mutex_lock(&s->lock);
	s->stats.checkpoints++;
	if (took_ms > s->stats.max_checkpoint_ms)
		s->stats.max_checkpoint_ms = took_ms;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void *store_checkpoint_run(void *store)
{
	struct store *s = store;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		struct err err = { 0 };
		int rc;

		if (s->checkpoint != CHECKPOINT_ASKED) {
			pthread_cond_wait(&s->checkpoint_wake, &s->lock);
			continue;
		}
		s->checkpoint = CHECKPOINT_RUNS;
		pthread_mutex_unlock(&s->lock);
		rc = store_checkpoint(s, s->checkpoint_db, &err);
		pthread_mutex_lock(&s->lock);
		s->checkpoint = CHECKPOINT_DONE;
		if (rc && !atomic_load(&s->failed)) { /* else a repair will come to it anyhow */
			s->checkpoint_why = err;
			pthread_cond_signal(&s->writer_wake);
		}
		pthread_cond_signal(&s->checkpoint_done);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void store_checkpoint_wait(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->checkpoint == CHECKPOINT_RUNS)
		pthread_cond_wait(&s->checkpoint_done, &s->lock);
	s->checkpoint = CHECKPOINT_IDLE; /* one that has not begun is not wanted any more */
	pthread_mutex_unlock(&s->lock);
}
