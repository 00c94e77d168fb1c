/* The reader: takes questions one by one, answers them (answers.c) through its own connection, which cannot
 * write, and hands the answers back for store_dispatch(). The connection sees a snapshot of the moment each
 * question began; the writer never waits for it. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "scheduler/store/internal.h"
#include "scheduler/store/schema.h"

#define LIST_LIMIT 100
#define LIST_MAX 10000
#define ANSWERED_MAX_BYTES                                                                                   \
	((size_t)64 << 20) /* undelivered answers; beyond that the reader waits for the loop */
#define PROGRESS_STEPS 2000 /* of SQLite's machine between looks at the clock: well below 1 ms */

/* ---- lists of questions ---- */

struct question *question_pop(struct question_list *l)
{
	struct question *q = l->first;

	if (!q)
		return NULL;
	l->first = q->next;
	if (!l->first)
		l->last = NULL;
	q->next = NULL;
	return q;
}

void question_push(struct question_list *l, struct question *q)
{
	q->next = NULL;
	if (l->last)
		l->last->next = q;
	else
		l->first = q;
	l->last = q;
}

void question_push_front(struct question_list *l, struct question *q)
{
	q->next = l->first;
	l->first = q;
	if (!l->last)
		l->last = q;
}

void question_free(struct question *q)
{
	if (!q)
		return;
	strbuf_release(&q->text);
	free(q);
}

/* ---- asking, from the loop ---- */

static int check_filter(enum store_question kind, const struct store_filter *f, struct store_filter *out,
			struct err *err)
{
	*out = f ? *f : (struct store_filter){ .uid = -1 };
	if (memchr(out->state, '\0', sizeof out->state) == NULL ||
	    memchr(out->type, '\0', sizeof out->type) == NULL)
		return err_fail(err, ERR_ARG, "a state or a type to list is longer than any there is");
	if (kind == STORE_LIST && out->limit > LIST_MAX)
		return err_fail(err, ERR_ARG, "a list of %zu jobs: at most %d at a time", out->limit,
				LIST_MAX);
	if (kind == STORE_LIST && out->limit == 0)
		out->limit = LIST_LIMIT;
	return 0;
}

int store_ask(struct store *s, enum store_question kind, uint64_t job, const struct store_filter *f,
	      store_answer *fn, void *owner, uint64_t token, struct err *err)
{
	struct store_filter filter;
	struct question *q;
	bool taken;
	int rc = check_filter(kind, f, &filter, err);

	if (rc)
		return rc;
	q = mem_calloc(1, sizeof *q);
	if (!q)
		return err_nomem(err, "a question to the database");
	q->kind = kind;
	q->job = job;
	q->filter = filter;
	q->fn = fn;
	q->owner = owner;
	q->token = token;
	pthread_mutex_lock(&s->lock);
	taken = s->n_questions < STORE_MAX_QUESTIONS;
	if (taken) {
		s->n_questions++;
		question_push(&s->asked, q);
		pthread_cond_signal(&s->reader_wake);
	}
	pthread_mutex_unlock(&s->lock);
	if (taken)
		return 0;
	question_free(q);
	return err_fail(err, ERR_BUSY, "%d questions already wait for the database: ask again later",
			STORE_MAX_QUESTIONS);
}

/* ---- the thread ---- */

struct reader {
	struct store *s;
	sqlite3 *db; /* NULL: not open */
	int64_t deadline_ns;
};

/* Not 0: give the question up. */
static int look_up(void *reader)
{
	struct reader *r = reader;

	return atomic_load(&r->s->reader_abort) || clock_monotonic_ns() > r->deadline_ns;
}

static void answer(struct reader *r, struct question *q)
{
	int rc = 0;

	r->deadline_ns = clock_monotonic_ns() + r->s->read_limit_ns;
	if (!r->db) {
		rc = db_open(r->s->path, DB_READ, &r->db, &q->err);
		if (rc)
			return;
		sqlite3_progress_handler(r->db, PROGRESS_STEPS, look_up, r);
	}
	question_answer(r->db, q);
	if (q->err.code == ERR_BUSY && clock_monotonic_ns() > r->deadline_ns)
		err_fail(&q->err, ERR_BUSY,
			 "the database took longer than %g s to answer: ask for less at a time",
			 (double)r->s->read_limit_ns / 1e9);
	if (q->err.code)
		strbuf_reset(&q->text);
}

/* Holding the lock; gives it up meanwhile. */
static void close_connection(struct reader *r)
{
	struct store *s = r->s;

	if (s->reader_open) {
		pthread_mutex_unlock(&s->lock);
		db_close(r->db, false);
		r->db = NULL;
		pthread_mutex_lock(&s->lock);
		s->reader_open = false;
	}
	pthread_cond_broadcast(&s->reader_closed);
}

static void answer_one(struct reader *r)
{
	struct store *s = r->s;
	struct question *q = question_pop(&s->asked);

	s->reader_open = true; /* before it is: from here on a repair has to wait */
	pthread_mutex_unlock(&s->lock);
	answer(r, q);
	pthread_mutex_lock(&s->lock);
	if (q->err.code && atomic_load(&s->reader_abort)) { /* not its fault: later, or at the close */
		q->err = (struct err){ 0 };
		question_push_front(&s->asked, q);
		return;
	}
	s->answered_bytes += q->text.len;
	question_push(&s->answered, q);
	store_notify(s);
}

void *store_reader_run(void *store)
{
	struct store *s = store;
	struct reader r = { .s = s };

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		if (s->reader_pause)
			close_connection(&r);
		if (s->reader_pause || !s->asked.first || s->answered_bytes > ANSWERED_MAX_BYTES)
			pthread_cond_wait(&s->reader_wake, &s->lock);
		else
			answer_one(&r);
	}
	close_connection(&r);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
