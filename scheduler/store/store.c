/* The store as the loop sees it: opening, collecting, handing over, hearing of results. Read internal.h for
 * who owns what, then writer.c. */
#define _GNU_SOURCE
#include "scheduler/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/store/internal.h"
#include "scheduler/store/schema.h"

#define PATH_SHOWN 300
#define PENDING_MAX_BYTES ((size_t)128 << 20) /* waiting for a slow disk; beyond that adds are refused */
#define READ_LIMIT_S 5.0

void store_notify(struct store *s)
{
	bell_ring(s->event_fd);
}

/* ---- opening and closing ---- */

/* Who holds the lock, as written in it; 0: it does not say. */
static long lock_owner(int fd)
{
	char text[32] = "";
	ssize_t n = pread(fd, text, sizeof text - 1, 0);

	return n > 0 ? strtol(text, NULL, 10) : 0;
}

/* The folder itself is locked, too: if the lock file is deleted, a second daemon could start. */
static int lock_path(const char *dir, int fd, int owner_fd, struct err *err)
{
	int error;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	error = errno;
	if (error != EWOULDBLOCK)
		return err_fail(err, ERR_IO, "cannot lock %s: %s", text_tail(dir, PATH_SHOWN),
				strerror(error));
	return err_fail(err, ERR_BUSY,
			"another postriderd (pid %ld) uses %s: stop it, or give this one another state_dir",
			lock_owner(owner_fd), text_tail(dir, PATH_SHOWN));
}

static int lock_folder(const char *dir, int *out_fd, int *out_folder_fd, struct err *err)
{
	char path[4096], pid[32];
	int fd, folder, rc, n = snprintf(path, sizeof path, "%s/" STORE_LOCK, dir);

	if (n < 0 || (size_t)n >= sizeof path)
		return err_fail(err, ERR_ARG, "the path of the state folder is too long: ...%s",
				text_tail(dir, PATH_SHOWN));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_fail(err, errno == ELOOP ? ERR_PERM : io_code_of(errno),
				"cannot open the lock of the state folder, %s: %s",
				text_tail(path, PATH_SHOWN), strerror(errno));
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = folder < 0 ? err_fail(err, ERR_IO, "cannot open %s: %s", text_tail(dir, PATH_SHOWN),
				   strerror(errno))
			: lock_path(dir, fd, fd, err);
	if (!rc)
		rc = lock_path(dir, folder, fd, err);
	if (rc) {
		close(fd);
		if (folder >= 0)
			close(folder);
		return rc;
	}
	/* The pid is for people: on a full disk the lock holds without it. */
	n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) != n)
		log_debug("cannot write the pid into %s", path);
	*out_fd = fd;
	*out_folder_fd = folder;
	return 0;
}

static int init_sync(struct store *s, struct err *err)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->writer_wake, &attr);
	pthread_cond_init(&s->reader_wake, &attr);
	pthread_cond_init(&s->reader_closed, &attr);
	pthread_cond_init(&s->checkpoint_wake, &attr);
	pthread_cond_init(&s->checkpoint_done, &attr);
	pthread_condattr_destroy(&attr);
	return bell_new(&s->event_fd, true, "the store", err);
}

static int start_threads(struct store *s, struct err *err)
{
	int rc = worker_start(&s->writer_thread, store_writer_run, s, "writing to the database", err);

	if (!rc)
		rc = worker_start(&s->reader_thread, store_reader_run, s, "reading from the database", err);
	if (!rc)
		rc = worker_start(&s->checkpoint_thread, store_checkpoint_run, s, "checkpoints", err);
	return rc;
}

static int read_counters(struct store *s, struct err *err)
{
	int64_t batch = 0, last_id = 0;
	int rc;

	if ((rc = db_number(s->db, "SELECT value FROM meta WHERE name='batch'", &batch, err)) ||
	    (rc = db_number(s->db,
			    "SELECT max((SELECT value FROM meta WHERE name='last_id'),"
			    " ifnull((SELECT max(id) FROM jobs),0))",
			    &last_id, err)))
		return rc;
	s->base_batch = (uint64_t)batch;
	s->last_id = (uint64_t)last_id;
	return 0;
}

static int64_t seconds_ns(double s, double otherwise_s)
{
	if (!(s > 0.0)) /* also NaN */
		s = otherwise_s;
	return s < 1e6 ? (int64_t)(s * 1e9) : (int64_t)1000000 * 1000000000;
}

int store_open(const struct store_params *p, struct store **out, struct err *err)
{
	struct store *s;
	struct strbuf path = { 0 };
	int rc;

	if (p->durability < DURABLE_ALWAYS || p->durability > DURABLE_NONE)
		return err_fail(err, ERR_ARG, "there is no durability %d", p->durability);
	s = mem_calloc(1, sizeof *s);
	if (!s)
		return err_nomem(err, "the store");
	s->lock_fd = s->folder_fd = -1;
	histogram_init(&s->stats.commit_s, histogram_short_s, histogram_n_short);
	s->durability = p->durability;
	s->interval_ns = seconds_ns(p->interval_s, 1.0);
	s->read_limit_ns = seconds_ns(p->read_limit_s, READ_LIMIT_S);
	if ((rc = init_sync(s, err)))
		goto fail;
	strbuf_printf(&path, "%s/" STORE_FILE, p->dir);
	s->path = path.text;
	if (path.failed) {
		rc = err_nomem(err, "the store");
		goto fail;
	}
	if ((rc = lock_folder(p->dir, &s->lock_fd, &s->folder_fd, err)) ||
	    (rc = schema_open(s->path, s->durability, &s->db, err)) || (rc = read_counters(s, err)) ||
	    (rc = schema_reopen(s->path, s->durability, &s->checkpoint_db, err)) ||
	    (rc = start_threads(s, err)))
		goto fail;
	*out = s;
	return 0;
fail:
	store_close(s);
	return rc;
}

static void stop_threads(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	atomic_store(&s->reader_abort, true);
	pthread_cond_broadcast(&s->reader_wake);
	pthread_cond_broadcast(&s->writer_wake);
	pthread_cond_broadcast(&s->checkpoint_wake);
	pthread_cond_broadcast(&s->checkpoint_done);
	pthread_mutex_unlock(&s->lock);
	worker_join(&s->reader_thread);
	worker_join(&s->writer_thread);
	worker_join(&s->checkpoint_thread);
}

/* Every question gets an answer, if only this one. */
static void answer_the_rest(struct store *s)
{
	struct question *q;

	while ((q = question_pop(&s->answered))) {
		q->fn(q->owner, q->token, &q->text, &q->err);
		question_free(q);
	}
	while ((q = question_pop(&s->asked))) {
		strbuf_reset(&q->text);
		err_fail(&q->err, ERR_BUSY, "the daemon is about to stop: ask again later");
		q->fn(q->owner, q->token, &q->text, &q->err);
		question_free(q);
	}
}

static void free_batches(struct batch *b)
{
	while (b) {
		struct batch *next = b->next;

		batch_free(b);
		b = next;
	}
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->writer_thread.runs)
		store_commit(s);
	stop_threads(s);
	answer_the_rest(s);
	if (store_pending(s))
		log_error("%zu rows could not be saved: %s", store_pending(s), s->why.text);
	/* After a failure the log may hold what was never confirmed: leave it to the next start to look at.
	 */
	db_close(s->checkpoint_db, false);
	db_close(s->db, !atomic_load(&s->failed) && !s->checkpoint_why.code);
	free_batches(s->open);
	free_batches(s->first);
	free_batches(s->spare);
	pthread_cond_destroy(&s->checkpoint_done);
	pthread_cond_destroy(&s->checkpoint_wake);
	pthread_cond_destroy(&s->reader_closed);
	pthread_cond_destroy(&s->reader_wake);
	pthread_cond_destroy(&s->writer_wake);
	pthread_mutex_destroy(&s->lock);
	bell_free(&s->event_fd);
	if (s->lock_fd >= 0)
		close(s->lock_fd); /* and with it the lock; the file stays, since removing it would race with
				      another start */
	if (s->folder_fd >= 0)
		close(s->folder_fd);
	free(s->path);
	free(s);
}

/* ---- collecting ---- */

static struct batch *take_spare(struct store *s)
{
	struct batch *b;

	pthread_mutex_lock(&s->lock);
	b = s->spare;
	if (b) {
		s->spare = b->next;
		s->n_spare--;
		b->next = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	return b ? b : batch_new();
}

/* Refuses, or makes sure that there is a batch to add to. */
static int begin_add(struct store *s, struct err *err)
{
	if (atomic_load(&s->failed)) {
		struct err why;

		if (store_failed(s, &why)) {
			err_fail(err, ERR_BUSY, "%s", why.text);
			err_prefix(err, "the storage has failed");
			return -ERR_BUSY;
		}
	}
	if (s->bytes_added - atomic_load(&s->bytes_done) > PENDING_MAX_BYTES)
		return err_fail(err, ERR_BUSY,
				"more than %zu MiB wait for the disk: it is too slow, or hangs",
				PENDING_MAX_BYTES >> 20);
	if (!s->open && !(s->open = take_spare(s)))
		return err_fail(err, ERR_NOMEM, "out of memory to collect rows for the database");
	return 0;
}

static int add_job(struct store *s, enum row_kind kind, const struct job_record *j, struct err *err)
{
	int rc = begin_add(s, err);

	if (rc || (rc = batch_add_job(s->open, kind, j, err)))
		return rc;
	if (j->id > s->last_id)
		s->last_id = j->id;
	return 0;
}

int store_add_job(struct store *s, const struct job_record *j, struct err *err)
{
	return add_job(s, ROW_ADD_JOB, j, err);
}

int store_update_job(struct store *s, const struct job_record *j, struct err *err)
{
	return add_job(s, ROW_UPDATE_JOB, j, err);
}

static int add_event(struct store *s, enum row_kind kind, const struct row_event *e, struct err *err)
{
	int rc = begin_add(s, err);

	return rc ? rc : batch_add_event(s->open, kind, e, err);
}

int store_add_decision(struct store *s, uint64_t job, int64_t at_ns, const char *when, const char *json,
		       struct err *err)
{
	struct row_event e = { .job = job, .at_ns = at_ns, .text = { when, json } };

	return add_event(s, ROW_DECISION, &e, err);
}

int store_add_estimate(struct store *s, uint64_t job, int64_t at_ns, double start_s, double end_s,
		       double end_low_s, double end_high_s, const char *why, struct err *err)
{
	struct row_event e = { .job = job,
			       .at_ns = at_ns,
			       .value = { start_s, end_s, end_low_s, end_high_s },
			       .text = { why } };

	return add_event(s, ROW_ESTIMATE, &e, err);
}

int store_add_observation(struct store *s, const struct store_seen *o, struct err *err)
{
	struct row_event e = { .job = o->job,
			       .at_ns = o->at_ns,
			       .value = { o->time_s, o->accuracy },
			       .text = { o->type, o->doubt } };
	struct strbuf packed = { 0 };
	size_t row;
	int rc;

	if (o->n_values > OBSERVED_MAX - 2)
		return err_fail(err, ERR_ARG, "the observation of job %llu has more than %d values",
				(unsigned long long)o->job, OBSERVED_MAX - 2);
	row = store_observation_put(&packed, o->job, o->at_ns, -1); /* its row has it */
	for (size_t i = 0; i < o->n_values; i++)
		store_observation_put_value(&packed, row, &o->value[i]);
	e.packed = packed.text;
	e.packed_len = packed.len;
	rc = packed.failed ? err_nomem(err, "an observation") : add_event(s, ROW_OBSERVATION, &e, err);
	strbuf_release(&packed);
	return rc;
}

int store_add_input(struct store *s, const struct store_input *in, struct err *err)
{
	struct row_event e = {
		.job = in->job, .at_ns = in->at_ns, .value = { in->number }, .text = { in->what, in->text }
	};

	return add_event(s, ROW_INPUT, &e, err);
}

int store_forget(struct store *s, const struct store_expired *e, struct err *err)
{
	struct row_event row = { .job = e->job, .text = { "" } };

	return add_event(s, e->observation ? ROW_FORGET_OBSERVATION : ROW_FORGET_JOB, &row, err);
}

uint64_t store_commit(struct store *s)
{
	struct batch *b = s->open;

	if (!b || b->n_rows == 0)
		return s->last_ticket;
	s->open = NULL;
	b->ticket = ++s->last_ticket;
	b->next = NULL;
	s->rows_added += b->n_rows;
	s->bytes_added += b->len;
	pthread_mutex_lock(&s->lock);
	if (s->last)
		s->last->next = b;
	else
		s->first = b;
	s->last = b;
	pthread_mutex_unlock(&s->lock);
	pthread_cond_signal(&s->writer_wake); /* with the lock held it would wake up only to wait for that */
	return s->last_ticket;
}

bool store_collected(const struct store *s)
{
	return s->open && s->open->n_rows > 0;
}

uint64_t store_ticket(const struct store *s)
{
	return s->last_ticket + store_collected(s);
}

/* ---- results ---- */

uint64_t store_durable(const struct store *s)
{
	return atomic_load(&s->durable);
}

size_t store_pending(const struct store *s)
{
	return s->rows_added - atomic_load(&s->rows_done) + (s->open ? s->open->n_rows : 0);
}

bool store_failed(const struct store *s_, struct err *out_why)
{
	struct store *s = (struct store *)s_; /* `const` promises nothing about the lock */
	bool failed;

	if (!out_why)
		return atomic_load(&s->failed);
	pthread_mutex_lock(&s->lock);
	failed = atomic_load(&s->failed);
	if (failed)
		*out_why = s->why;
	pthread_mutex_unlock(&s->lock);
	return failed;
}

void store_repair(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	if (atomic_load(&s->failed)) {
		s->repair = true;
		pthread_cond_signal(&s->writer_wake);
	}
	pthread_mutex_unlock(&s->lock);
}

void store_stats(const struct store *s_, struct store_stats *out)
{
	struct store *s = (struct store *)s_;

	pthread_mutex_lock(&s->lock);
	*out = s->stats;
	out->mean_commit_ms = s->stats.commits ? s->total_commit_ms / (double)s->stats.commits : 0.0;
	pthread_mutex_unlock(&s->lock);
	out->pending = store_pending(s);
}

uint64_t store_last_id(struct store *s)
{
	return s->last_id;
}

int store_fd(const struct store *s)
{
	return s->event_fd;
}

void store_dispatch(struct store *s)
{
	struct question_list done;
	struct question *q;

	bell_clear(s->event_fd);
	pthread_mutex_lock(&s->lock);
	done = s->answered;
	s->answered = (struct question_list){ 0 };
	s->answered_bytes = 0;
	if (done.first) /* it may wait for room; else leave it asleep: this is called with every commit */
		pthread_cond_signal(&s->reader_wake);
	pthread_mutex_unlock(&s->lock);
	while ((q = question_pop(&done))) {
		pthread_mutex_lock(&s->lock);
		s->n_questions--;
		pthread_mutex_unlock(&s->lock);
		q->fn(q->owner, q->token, &q->text, &q->err);
		question_free(q);
	}
}
