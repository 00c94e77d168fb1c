/* The writer: takes the batches that wait, applies them in one transaction, says so, and has the log moved
 * into the database (checkpoint.c). While it waits for the disk the loop goes on collecting, so a slow disk
 * makes transactions larger, not the loop slower.
 *
 * After any error the connection is not trusted any more. A failed fsync may have marked pages as clean that
 * never reached the disk, so that a second fsync of the same file succeeds without having written them.
 * Therefore a repair closes every connection, lets SQLite read the log afresh and check its sums, looks in
 * `meta` for which batches arrived, moves the log into the database (pages written again, synced again, the
 * log cut to nothing), and only then writes what is missing. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "common/strbuf.h"
#include "scheduler/store/internal.h"
#include "scheduler/store/rows.h"
#include "scheduler/store/schema.h"

#define TRANSACTION_BYTES ((size_t)8 << 20) /* batches are merged up to this */
#define SPARE_BATCHES 4
/* Frames (pages) of the log: those that were not in it at the last checkpoint and are worth another; all of
 * it when the writer makes the log start from its beginning; and those written beside one checkpoint before
 * the writer waits for its end. */
#define CHECKPOINT_FRAMES 1000
#define CHECKPOINT_LIMIT 4000
#define CHECKPOINT_AHEAD 4000
#define VACUUM_PAGES 256 /* given back at a time */
#define FRAME_BYTES 4120 /* a page and its header in the log */

enum statement {
	BEGIN,
	COMMIT,
	INSERT_JOB,
	UPDATE_JOB,
	CLAIM_KEY,
	INSERT_DECISION,
	INSERT_ESTIMATE,
	INSERT_OBSERVATION,
	CLEAR_VALUES,
	INSERT_VALUE,
	INSERT_INPUT,
	FORGET_JOB,
	FORGET_DECISIONS,
	FORGET_ESTIMATES,
	FORGET_INPUTS,
	FORGET_DOUBT,
	FORGET_OBSERVATION,
	SET_BATCH,
	SET_LAST_ID,
	N_STATEMENTS
};

static const char *const statement_sql[N_STATEMENTS] = {
	[BEGIN] = "BEGIN IMMEDIATE",
	[COMMIT] = "COMMIT",
	/* Keys expire in the daemon, not here: a job that uses one again takes it over. */
	[CLAIM_KEY] = "UPDATE jobs SET key=NULL WHERE uid=?1 AND key=?2 AND id<>?3",
	[INSERT_DECISION] = "INSERT INTO decisions(job,at_ns,moment,json) VALUES(?1,?2,?3,?4)",
	[INSERT_ESTIMATE] =
		"INSERT OR IGNORE INTO estimates(job,n,at_ns,start_s,end_s,end_low_s,end_high_s,why)"
		" VALUES(?1,?2,?3,?4,?5,?6,?7,?8)",
	[INSERT_OBSERVATION] = "INSERT OR REPLACE INTO observations(job,at_ns,type,doubt,time_s,accuracy)"
			       " VALUES(?1,?2,?3,?4,?5,?6)",
	[CLEAR_VALUES] = "DELETE FROM observed_values WHERE job=?1",
	[INSERT_VALUE] = "INSERT INTO observed_values(job,n,name,number,word) VALUES(?1,?2,?3,?4,?5)",
	[INSERT_INPUT] = "INSERT INTO inputs(job,at_ns,what,text,number) VALUES(nullif(?1,0),?2,?3,?4,?5)",
	/* `changes()` of it decides about the rest: a job that lives is left alone */
	[FORGET_JOB] = "DELETE FROM jobs WHERE id=?1 AND state NOT IN ('queued','running')",
	[FORGET_DECISIONS] = "DELETE FROM decisions WHERE job=?1",
	[FORGET_ESTIMATES] = "DELETE FROM estimates WHERE job=?1",
	/* Those from before the oldest job that is left, up to 64 with each job that goes. */
	[FORGET_INPUTS] = "DELETE FROM inputs WHERE n IN (SELECT n FROM inputs ORDER BY n LIMIT 64)"
			  " AND at_ns<(SELECT submitted_ns FROM jobs ORDER BY id LIMIT 1)",
	[FORGET_DOUBT] = "DELETE FROM observations WHERE job=?1 AND doubt IS NOT NULL",
	[FORGET_OBSERVATION] = "DELETE FROM observations WHERE job=?1",
	[SET_BATCH] = "UPDATE meta SET value=?1 WHERE name='batch'",
	[SET_LAST_ID] = "UPDATE meta SET value=max(value,?1) WHERE name='last_id'",
};

struct writer {
	struct store *s;
	sqlite3_stmt *statement[N_STATEMENTS];
	bool broken; /* something failed: reopen before the next use */
	uint64_t stored; /* meta.batch */
	int wal_frames, wal_frames_seen; /* now, and at the last checkpoint */
	bool forgot; /* rows were deleted: pages may be free */
	int64_t unsynced_since_ns; /* DURABLE_INTERVAL: the oldest commit that was not synced; 0: none */
};

/* ---- the connection ---- */

static int count_frames(void *writer, sqlite3 *db, const char *name, int frames)
{
	struct writer *w = writer;

	(void)db;
	(void)name;
	w->wal_frames = frames;
	return SQLITE_OK;
}

static int prepare(struct writer *w, struct err *err)
{
	struct strbuf insert = { 0 }, update = { 0 };
	int rc = 0;

	job_insert_sql(&insert);
	job_update_sql(&update);
	if (insert.failed || update.failed)
		rc = err_fail(err, ERR_NOMEM, "out of memory to write to the database");
	for (int i = 0; rc == 0 && i < N_STATEMENTS; i++) {
		const char *sql = i == INSERT_JOB   ? insert.text
				  : i == UPDATE_JOB ? update.text
						    : statement_sql[i];

		rc = db_prepare(w->s->db, sql, &w->statement[i], err);
	}
	/* In the place of SQLite's own hook, which makes checkpoints inside of commits. */
	if (rc == 0)
		sqlite3_wal_hook(w->s->db, count_frames, w);
	strbuf_release(&insert);
	strbuf_release(&update);
	return rc;
}

static void finalize(struct writer *w)
{
	for (int i = 0; i < N_STATEMENTS; i++) {
		sqlite3_finalize(w->statement[i]);
		w->statement[i] = NULL;
	}
}

/* Syncs the log by itself: SQLite does it only with a commit or a checkpoint. */
static int sync_log(struct writer *w, struct err *err)
{
	sqlite3_file *log = NULL;
	int rc = sqlite3_file_control(w->s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);

	if (rc == SQLITE_OK && log && log->pMethods)
		rc = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
	if (rc)
		return db_fail(NULL, rc, "sync the log of", w->s->path, err);
	w->unsynced_since_ns = 0;
	return 0;
}

/* ---- repair ---- */

static void pause_reader(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	s->reader_pause = true;
	atomic_store(&s->reader_abort, true);
	pthread_cond_broadcast(&s->reader_wake);
	while (s->reader_open)
		pthread_cond_wait(&s->reader_closed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void resume_reader(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	s->reader_pause = false;
	atomic_store(&s->reader_abort, s->stop);
	pthread_cond_broadcast(&s->reader_wake);
	pthread_mutex_unlock(&s->lock);
}

static int check_stored(struct writer *w, struct err *err)
{
	uint64_t durable = w->s->base_batch + atomic_load(&w->s->durable);
	int64_t stored = 0;
	int rc = db_number(w->s->db, "SELECT value FROM meta WHERE name='batch'", &stored, err);

	if (rc)
		return rc;
	if (w->s->durability == DURABLE_ALWAYS && (uint64_t)stored < durable)
		return err_fail(err, ERR_FORMAT,
				"%s went back from commit %llu to %lld: the disk lost what it had confirmed, "
				"or the file was "
				"replaced; stop the daemon and restore a copy",
				w->s->path, (unsigned long long)durable, (long long)stored);
	w->stored = (uint64_t)stored;
	return 0;
}

static int reopen(struct writer *w, struct err *err)
{
	struct store *s = w->s;
	int rc;

	finalize(w);
	pause_reader(s);
	store_checkpoint_wait(s);
	db_close(s->checkpoint_db, false);
	db_close(s->db, false);
	s->db = s->checkpoint_db = NULL;
	rc = schema_reopen(s->path, s->durability, &s->db, err);
	if (rc == 0)
		rc = check_stored(w, err);
	if (rc == 0) {
		rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
		if (rc)
			rc = db_fail(s->db, rc, "move the log into", s->path, err);
	}
	if (rc == 0 && s->durability != DURABLE_NONE)
		rc = sync_log(w, err); /* that it is empty now */
	if (rc == 0)
		rc = schema_reopen(s->path, s->durability, &s->checkpoint_db, err);
	if (rc == 0)
		rc = prepare(w, err);
	resume_reader(s);
	if (rc)
		return rc;
	w->wal_frames = w->wal_frames_seen = 0;
	w->broken = false;
	return 0;
}

/* What is in the file, not in the connection's memory. */
static int verify(struct writer *w, struct err *err)
{
	uint64_t expected = w->stored;
	int rc;

	sqlite3_db_release_memory(w->s->db);
	rc = check_stored(w, err);
	if (rc == 0 && w->stored != expected)
		rc = err_fail(err, ERR_IO,
			      "%s does not hold what was just written to it: the disk cannot be trusted",
			      w->s->path);
	return rc;
}

/* ---- transactions ---- */

static int run_statement(struct writer *w, enum statement i)
{
	int rc = sqlite3_step(w->statement[i]);

	sqlite3_reset(w->statement[i]);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int run_with_number(struct writer *w, enum statement i, uint64_t v)
{
	sqlite3_bind_int64(w->statement[i], 1, (sqlite3_int64)v);
	return run_statement(w, i);
}

static int insert_job(struct writer *w, const struct job_record *j)
{
	sqlite3_stmt *claim = w->statement[CLAIM_KEY];
	int rc;

	if (j->key) {
		sqlite3_bind_int64(claim, 1, j->uid);
		sqlite3_bind_text(claim, 2, j->key, -1, SQLITE_STATIC);
		sqlite3_bind_int64(claim, 3, (sqlite3_int64)j->id);
		if ((rc = run_statement(w, CLAIM_KEY)))
			return rc;
	}
	if ((rc = job_bind(w->statement[INSERT_JOB], j)))
		return rc;
	return run_statement(w, INSERT_JOB);
}

static int update_job(struct writer *w, const struct job_record *j)
{
	int rc = job_bind(w->statement[UPDATE_JOB], j);

	if (rc || (rc = run_statement(w, UPDATE_JOB)))
		return rc;
	return sqlite3_changes(w->s->db) ? SQLITE_OK : insert_job(w, j);
}

static int bind_values(sqlite3_stmt *st, int at, const double *v, size_t n)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < n; i++)
		rc = sqlite3_bind_double(st, at + (int)i, v[i]);
	return rc;
}

static int insert_values(struct writer *w, const struct row_event *e)
{
	sqlite3_stmt *st = w->statement[INSERT_VALUE];
	struct store_observation o;
	size_t at = 0;
	int rc = run_with_number(w, CLEAR_VALUES, e->job);

	if (rc || !store_observation_next(e->packed, e->packed_len, &at, &o))
		return rc;
	for (size_t i = 0; rc == SQLITE_OK && i < o.n; i++) {
		const struct observed *v = &o.value[i];

		sqlite3_bind_int64(st, 1, (sqlite3_int64)e->job);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)i);
		sqlite3_bind_double(st, 4, v->number); /* not a number: NULL */
		if ((rc = sqlite3_bind_text(st, 3, v->name, -1, SQLITE_STATIC)) == SQLITE_OK &&
		    (rc = sqlite3_bind_text(st, 5, v->text, -1, SQLITE_STATIC)) == SQLITE_OK)
			rc = run_statement(w, INSERT_VALUE);
	}
	return rc;
}

static int insert_event(struct writer *w, const struct row_event *e, uint64_t order)
{
	static const enum statement statement_of[] = {
		[ROW_DECISION] = INSERT_DECISION,
		[ROW_ESTIMATE] = INSERT_ESTIMATE,
		[ROW_OBSERVATION] = INSERT_OBSERVATION,
		[ROW_INPUT] = INSERT_INPUT,
	};
	enum statement i = statement_of[e->head.kind];
	sqlite3_stmt *st = w->statement[i];
	int rc;

	sqlite3_bind_int64(st, 1, (sqlite3_int64)e->job);
	if (i == INSERT_ESTIMATE) {
		sqlite3_bind_int64(st, 2, (sqlite3_int64)order);
		sqlite3_bind_int64(st, 3, e->at_ns);
		if ((rc = bind_values(st, 4, e->value, 4)) ||
		    (rc = sqlite3_bind_text(st, 8, e->text[0], -1, SQLITE_STATIC)))
			return rc;
		return run_statement(w, i);
	}
	sqlite3_bind_int64(st, 2, e->at_ns);
	if ((rc = sqlite3_bind_text(st, 3, e->text[0], -1, SQLITE_STATIC)) ||
	    (rc = sqlite3_bind_text(st, 4, e->text[1], -1, SQLITE_STATIC)) ||
	    (i == INSERT_OBSERVATION && (rc = bind_values(st, 5, e->value, 2))) ||
	    (i == INSERT_INPUT && (rc = bind_values(st, 5, e->value, 1))))
		return rc;
	rc = run_statement(w, i);
	return rc || i != INSERT_OBSERVATION ? rc : insert_values(w, e);
}

static int forget(struct writer *w, const struct row_event *e)
{
	bool job = e->head.kind == ROW_FORGET_JOB;
	int rc;

	w->forgot = true;
	if (job) {
		if ((rc = run_with_number(w, FORGET_JOB, e->job)) || !sqlite3_changes(w->s->db) ||
		    (rc = run_with_number(w, FORGET_DECISIONS, e->job)) ||
		    (rc = run_with_number(w, FORGET_ESTIMATES, e->job)) ||
		    (rc = run_statement(w, FORGET_INPUTS)))
			return rc;
	}
	rc = run_with_number(w, job ? FORGET_DOUBT : FORGET_OBSERVATION, e->job);
	return rc || !sqlite3_changes(w->s->db) ? rc : run_with_number(w, CLEAR_VALUES, e->job);
}

static int apply_batch(struct writer *w, struct batch *b, uint64_t number, uint64_t *max_id)
{
	uint64_t order = number << 24; /* unique and ascending over all batches: a batch has far fewer rows */
	size_t at = 0;
	struct row *row;
	int rc = SQLITE_OK;

	while (rc == SQLITE_OK && (row = batch_next(b, &at))) {
		if (row->kind == ROW_ADD_JOB || row->kind == ROW_UPDATE_JOB) {
			const struct job_record *j = &((struct row_job *)row)->job;

			rc = row->kind == ROW_ADD_JOB ? insert_job(w, j) : update_job(w, j);
			if (j->id > *max_id)
				*max_id = j->id;
		} else if (row->kind == ROW_FORGET_JOB || row->kind == ROW_FORGET_OBSERVATION) {
			rc = forget(w, (struct row_event *)row);
		} else {
			rc = insert_event(w, (struct row_event *)row, order++);
		}
	}
	return rc;
}

/* The batches from first to last in one transaction, without those that an earlier attempt brought into the
 * file. */
static int apply(struct writer *w, struct batch *first, struct batch *last, struct err *err)
{
	uint64_t base = w->s->base_batch, max_id = 0;
	struct batch *b = first;
	int rc;

	while (base + b->ticket <= w->stored) {
		if (b == last)
			return 0;
		b = b->next;
	}
	rc = run_statement(w, BEGIN);
	for (; rc == SQLITE_OK; b = b->next) {
		rc = apply_batch(w, b, base + b->ticket, &max_id);
		if (b == last) /* its `next` belongs to the loop */
			break;
	}
	if (rc == SQLITE_OK && max_id)
		rc = run_with_number(w, SET_LAST_ID, max_id);
	if (rc == SQLITE_OK)
		rc = run_with_number(w, SET_BATCH, base + last->ticket);
	if (rc == SQLITE_OK)
		rc = run_statement(w, COMMIT);
	if (rc) {
		rc = db_fail(w->s->db, rc, "write to", w->s->path, err);
		sqlite3_exec(w->s->db, "ROLLBACK", NULL, NULL, NULL);
		return rc;
	}
	w->stored = base + last->ticket;
	if (w->s->durability == DURABLE_INTERVAL && !w->unsynced_since_ns)
		w->unsynced_since_ns = clock_monotonic_ns();
	return 0;
}

/* ---- the log ---- */

/* Asks for a checkpoint when one is due; true: one has just ended and left little, without which the log
 * starts from its beginning. While a reader is at work, a checkpoint goes only as far as what the reader may
 * still need, and the log grows. Frames are counted from the last attempt, so that this does not mean a
 * checkpoint with every commit. */
static bool look_after_log(struct writer *w)
{
	struct store *s = w->s;
	int fresh;

	if (w->wal_frames < w->wal_frames_seen)
		w->wal_frames_seen = 0; /* the log began anew */
	fresh = w->wal_frames - w->wal_frames_seen;
	while (fresh >= CHECKPOINT_AHEAD && !s->stop &&
	       (s->checkpoint == CHECKPOINT_ASKED || s->checkpoint == CHECKPOINT_RUNS))
		pthread_cond_wait(&s->checkpoint_done, &s->lock); /* it does not keep up */
	if (s->checkpoint_why.code)
		return false; /* nothing is done on top of a failure */
	if (s->checkpoint == CHECKPOINT_DONE) {
		s->checkpoint = CHECKPOINT_IDLE;
		if (w->wal_frames >= CHECKPOINT_LIMIT) {
			w->wal_frames_seen = w->wal_frames;
			return true;
		}
	}
	if (s->checkpoint == CHECKPOINT_IDLE && fresh >= CHECKPOINT_FRAMES) {
		w->wal_frames_seen = w->wal_frames;
		s->checkpoint = CHECKPOINT_ASKED;
		pthread_cond_signal(&s->checkpoint_wake);
	}
	return false;
}

static int tidy(struct writer *w, struct err *err)
{
	struct store *s = w->s;
	bool finish;
	int rc = 0;

	if (w->unsynced_since_ns && clock_monotonic_ns() - w->unsynced_since_ns >= s->interval_ns)
		rc = sync_log(w, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	finish = look_after_log(w);
	pthread_mutex_unlock(&s->lock);
	return finish ? store_checkpoint(s, s->db, err) : 0;
}

/* ---- free pages ---- */

static bool batch_waits(struct store *s)
{
	bool waits;

	pthread_mutex_lock(&s->lock);
	waits = s->first || s->stop;
	pthread_mutex_unlock(&s->lock);
	return waits;
}

/* Gives free pages back to the file system, a few milliseconds at a time and while nothing else is to be
 * written. An eighth of the file stays free, because the next rows need pages, too. */
static int give_back(struct writer *w, struct err *err)
{
	int64_t n = 0, unused = 0, before;
	char sql[64];
	int rc = db_number(w->s->db, "PRAGMA page_count", &n, err);

	if (rc == 0)
		rc = db_number(w->s->db, "PRAGMA freelist_count", &unused, err);
	while (rc == 0 && unused > VACUUM_PAGES && unused > n / 8 && !batch_waits(w->s)) {
		snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
		before = unused;
		if ((rc = db_exec(w->s->db, sql, "give free pages of", err)) ||
		    (rc = db_number(w->s->db, "PRAGMA freelist_count", &unused, err)) ||
		    (rc = tidy(w, err)) || unused >= before) /* an old file that cannot */
			return rc;
		n -= before - unused;
	}
	w->forgot = unused > VACUUM_PAGES && unused > n / 8; /* go on after the next commit */
	return rc;
}

/* ---- the thread; what follows holds the lock where it touches the store's shared part ---- */

static void wait_for_work(struct writer *w)
{
	struct store *s = w->s;

	while (!s->stop && !s->repair && !s->checkpoint_why.code && (atomic_load(&s->failed) || !s->first)) {
		if (w->unsynced_since_ns && !atomic_load(&s->failed)) {
			int64_t due_ns = w->unsynced_since_ns + s->interval_ns;
			struct timespec due = { due_ns / 1000000000, due_ns % 1000000000 };

			if (pthread_cond_timedwait(&s->writer_wake, &s->lock, &due) == ETIMEDOUT)
				return;
		} else {
			pthread_cond_wait(&s->writer_wake, &s->lock);
		}
	}
}

/* The last batch of the next transaction; NULL: nothing waits. */
static struct batch *end_of_run(const struct store *s)
{
	struct batch *last = s->first;
	size_t bytes = last ? last->len : 0;

	while (last && last->next && bytes + last->next->len <= TRANSACTION_BYTES) {
		last = last->next;
		bytes += last->len;
	}
	return last;
}

static void recycle(struct store *s, struct batch *b)
{
	if (s->n_spare >= SPARE_BATCHES) {
		batch_free(b);
		return;
	}
	batch_reset(b);
	b->next = s->spare;
	s->spare = b;
	s->n_spare++;
}

static void finish_run(struct writer *w, uint64_t last_ticket, double took_ms)
{
	struct store *s = w->s;
	size_t rows = 0, bytes = 0;

	while (s->first && s->first->ticket <= last_ticket) {
		struct batch *b = s->first;

		s->first = b->next;
		if (!s->first)
			s->last = NULL;
		rows += b->n_rows;
		bytes += b->len;
		recycle(s, b);
	}
	atomic_fetch_add(&s->rows_done, rows);
	atomic_fetch_add(&s->bytes_done, bytes);
	atomic_store(&s->durable, last_ticket);
	s->stats.commits++;
	s->stats.rows += rows;
	s->stats.wal_bytes = (uint64_t)w->wal_frames * FRAME_BYTES;
	s->total_commit_ms += took_ms;
	histogram_add(&s->stats.commit_s, took_ms / 1e3);
	if (took_ms > s->stats.max_commit_ms)
		s->stats.max_commit_ms = took_ms;
}

static void fail(struct writer *w, const struct err *why)
{
	w->broken = true;
	w->s->why = *why;
	w->s->checkpoint_why = (struct err){ 0 };
	atomic_store(&w->s->failed, true);
	store_notify(w->s);
}

/* A file that was removed takes what is written to it, and nobody finds it there after a restart. */
static int still_there(struct writer *w, struct err *err)
{
	int moved = 0;

	if (sqlite3_file_control(w->s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) || !moved)
		return 0;
	return err_fail(
		err, ERR_IO,
		"%s was removed, renamed or replaced while it is in use; put it back, or stop the daemon "
		"and restore a copy",
		w->s->path);
}

static int work(struct writer *w, struct batch *first, struct batch *last, struct err *err)
{
	bool repairing = w->broken;
	int rc = 0;

	if (repairing)
		rc = reopen(w, err);
	if (rc == 0 && first)
		rc = apply(w, first, last, err);
	if (rc == 0 && repairing)
		rc = verify(w, err);
	if (rc == 0)
		rc = still_there(w, err);
	return rc;
}

/* One turn; false: it was the last. */
static bool turn(struct writer *w)
{
	struct store *s = w->s;
	struct batch *first = s->first, *last = end_of_run(s);
	bool closing = s->stop, told;
	struct err err = { 0 };
	int64_t started_ns;
	double took_ms;
	int rc;

	if (closing && !first && !w->broken)
		return false;
	if (s->checkpoint_why.code) {
		err = s->checkpoint_why;
		fail(w, &err);
		return true;
	}
	s->repair = false;
	pthread_mutex_unlock(&s->lock);
	started_ns = clock_monotonic_ns();
	rc = work(w, first, last, &err);
	took_ms = (double)(clock_monotonic_ns() - started_ns) / 1e6;
	pthread_mutex_lock(&s->lock);
	if (rc) {
		fail(w, &err);
		return !closing;
	}
	if (first)
		finish_run(w, last->ticket, took_ms);
	told = first || atomic_load(&s->failed);
	atomic_store(&s->failed, false);
	pthread_mutex_unlock(&s->lock);
	if (told) /* without the lock: it is what the loop takes first */
		store_notify(s);
	rc = closing ? 0 : tidy(w, &err);
	if (!rc && !closing && w->forgot)
		rc = give_back(w, &err);
	pthread_mutex_lock(&s->lock);
	if (rc)
		fail(w, &err);
	return true;
}

void *store_writer_run(void *store)
{
	struct store *s = store;
	struct writer w = { .s = s, .stored = s->base_batch };
	struct err err = { 0 };
	int rc = prepare(&w, &err);

	pthread_mutex_lock(&s->lock);
	if (rc)
		fail(&w, &err);
	do {
		wait_for_work(&w);
	} while (turn(&w));
	pthread_mutex_unlock(&s->lock);
	finalize(&w);
	/* The hook must not outlive what it points at. */
	if (s->db)
		sqlite3_wal_hook(s->db, NULL, NULL);
	return NULL;
}
