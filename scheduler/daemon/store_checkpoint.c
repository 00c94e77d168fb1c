/* The checkpointer: moves the log into the database through a connection of its own, while the writer goes on
 * committing. A checkpoint syncs the log, writes each changed page once and syncs the database: several commits' worth
 * of waiting that nobody should stand behind.
 *
 * The log begins anew only when a transaction starts that finds all of it moved. Commits that arrive meanwhile prevent
 * that; a few more rounds, each shorter than the one before, mostly find a gap between two commits. Where there is none the
 * log grows to CHECKPOINT_LIMIT, and the writer moves the little that is left itself. */
#include "scheduler/daemon/store_internal.h"
#include "scheduler/daemon/store_schema.h"

#define MAX_ROUNDS 4

int store_checkpoint(struct store *s, sqlite3 *db, int *out_frames, int *out_moved, struct err *err)
{
	int64_t started_ns = store_now_ns();
	int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, out_frames, out_moved);
	double took_ms = (double)(store_now_ns() - started_ns) / 1e6;

	if ((rc & 0xff) == SQLITE_BUSY) { /* another program does it right now */
		*out_frames = *out_moved = -1;
	} else if (rc) {
		return db_fail(db, rc, "move the log into", s->path, err);
	}
	pthread_mutex_lock(&s->lock);
	if (took_ms > s->stats.max_checkpoint_ms)
		s->stats.max_checkpoint_ms = took_ms;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* Is another round worth it? Not if all is moved, nor if somebody still reads what is not. */
static bool more_to_move(struct store *s, int frames, int moved)
{
	bool more;

	pthread_mutex_lock(&s->lock);
	more = !s->stop && moved >= 0 && moved == frames && s->wal_frames > moved;
	pthread_mutex_unlock(&s->lock);
	return more;
}

static int move_all(struct store *s, struct err *err)
{
	int frames = 0, moved = 0, round = 0, rc;

	do {
		rc = store_checkpoint(s, s->checkpoint_db, &frames, &moved, err);
	} while (rc == 0 && ++round < MAX_ROUNDS && more_to_move(s, frames, moved));
	return rc;
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
		rc = move_all(s, &err);
		pthread_mutex_lock(&s->lock);
		s->checkpoint = CHECKPOINT_DONE;
		s->stats.checkpoints++;
		if (rc && !atomic_load(&s->failed)) {
			s->checkpoint_why = err;
			pthread_cond_signal(&s->writer_wake); /* failing is its business */
		}
		pthread_cond_broadcast(&s->checkpoint_done);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void store_checkpoint_wait(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->checkpoint == CHECKPOINT_ASKED) /* not begun: no need to */
		s->checkpoint = CHECKPOINT_IDLE;
	while (s->checkpoint == CHECKPOINT_RUNS)
		pthread_cond_wait(&s->checkpoint_done, &s->lock);
	s->checkpoint = CHECKPOINT_IDLE;
	s->checkpoint_why = (struct err){ 0 };
	pthread_mutex_unlock(&s->lock);
}
