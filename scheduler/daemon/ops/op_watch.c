/* `watch` and `unwatch`, and the events: which clients watch which jobs, and what they get. See daemon.h. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/daemon/http/http.h"
#include "scheduler/daemon/ops/ops.h"

#define JOBS_AT_ONCE 16
#define WATCH_JOBS 200 /* told at once, the oldest first; `list` has them all */

struct watcher {
	struct conn *conn;
	uint64_t job; /* 0: all */
};

int watch_add(struct daemon *d, struct conn *c, uint64_t job, struct err *err)
{
	struct watcher *grown;

	for (size_t i = 0; i < d->n_watchers; i++) {
		if (d->watcher[i].conn != c)
			continue;
		/* A connection follows one job or all of them: one that asks for a second job gets all. */
		if (d->watcher[i].job != job)
			d->watcher[i].job = 0;
		return 0;
	}
	grown = mem_resize(d->watcher, d->n_watchers + 1, sizeof *grown);
	if (!grown)
		return err_nomem(err, "a watch");
	d->watcher = grown;
	d->watcher[d->n_watchers++] = (struct watcher){ .conn = c, .job = job };
	conn_set_watching(c, true);
	return 0;
}

void watch_drop(struct daemon *d, const struct conn *c)
{
	for (size_t i = 0; i < d->n_watchers; i++) {
		if (d->watcher[i].conn == c) {
			d->watcher[i] = d->watcher[--d->n_watchers];
			return;
		}
	}
}

static bool wanted(const struct daemon *d, const struct job *job)
{
	for (size_t i = 0; i < d->n_watchers; i++) {
		if (!job || !d->watcher[i].job || d->watcher[i].job == job->id)
			return true;
	}
	return false;
}

void watch_tell(struct daemon *d, const char *event, const struct job *job)
{
	struct strbuf line = { 0 };
	struct json_writer w;
	struct job_live live;
	char at[40];

	http_changed(d->http);
	if (!wanted(d, job))
		return;
	json_begin(&w, &line, false);
	json_open(&w, '{');
	json_kv_int(&w, "v", 1);
	json_kv_string(&w, "event", event);
	json_kv_string(&w, "at", text_utc(daemon_now_ns(d), at));
	if (job) {
		estimates_live(d, job, &live);
		json_put_key(&w, "job");
		job_json(&w, &job->row, &live);
	}
	json_close(&w, '}');
	strbuf_puts(&line, "\n");
	/* From the back: a push may close a slow connection, and on_close() drops its watcher. */
	for (size_t i = d->n_watchers; !line.failed && i-- > 0;) {
		if (i < d->n_watchers && (!job || !d->watcher[i].job || d->watcher[i].job == job->id))
			conn_push(d->watcher[i].conn, line.text, line.len);
	}
	strbuf_release(&line);
}

/* ---- the ops ---- */

/* The live jobs, the oldest first, in parts. */
struct watch_reply {
	struct daemon *d;
	char id[OPS_MAX_ID * 6 + 8];
	struct json_writer w;
	struct job_cursor cursor;
	uint64_t before; /* jobs that come later are told as events */
	size_t n;
	bool begun;
};

static enum reply_part make_part(void *owner, struct strbuf *out)
{
	struct watch_reply *p = owner;
	const struct job *job = NULL;
	struct job_live live;

	p->w.out = out;
	if (!p->begun) {
		p->begun = true;
		reply_head(&p->w, out, p->id);
		json_kv_bool(&p->w, "watching", true);
		json_kv_open(&p->w, "jobs", '[');
		jobs_cursor_open(&p->d->jobs, &p->cursor, true);
	}
	for (int i = 0; i < JOBS_AT_ONCE; i++) {
		job = jobs_cursor_next(&p->d->jobs, &p->cursor);
		if (job && job->id >= p->before)
			job = NULL;
		if (!job)
			break;
		estimates_live(p->d, job, &live);
		job_json(&p->w, &job->row, &live);
		if (++p->n == WATCH_JOBS)
			break;
	}
	if (job && p->n < WATCH_JOBS)
		return REPLY_MORE;
	json_close(&p->w, ']');
	json_kv_bool(&p->w, "more", job && p->cursor.at && p->cursor.at->id < p->before);
	json_close(&p->w, '}');
	strbuf_puts(out, "\n");
	return REPLY_COMPLETE;
}

static void release(void *owner)
{
	struct watch_reply *p = owner;

	jobs_cursor_close(&p->d->jobs, &p->cursor);
	free(p);
}

static void answer_all(struct request *r)
{
	struct reply_source source = { .make = make_part, .release = release };
	struct watch_reply *p = mem_calloc(1, sizeof *p);
	struct reply *reply = p ? conn_hold(r->conn) : NULL;

	if (!reply) {
		free(p);
		conn_close(r->conn);
		return;
	}
	p->d = r->d;
	p->before = r->d->next_id;
	memcpy(p->id, r->id, sizeof p->id);
	source.owner = p;
	reply_stream(reply, &source);
}

static void answer_watch(struct request *r, const struct job *job)
{
	struct job_live live;

	if (!job) {
		answer_all(r);
		return;
	}
	reply_begin(r);
	json_kv_bool(&r->w, "watching", true);
	json_kv_open(&r->w, "jobs", '[');
	estimates_live(r->d, job, &live);
	job_json(&r->w, &job->row, &live);
	json_close(&r->w, ']');
	json_kv_bool(&r->w, "more", false);
	reply_send(r, 0);
}

void op_watch(struct request *r)
{
	struct job *job = NULL;
	struct err err = { 0 };

	if (fields_get(&r->f, "job")) {
		job = request_job(r, NULL);
		if (!job)
			return;
	}
	if (watch_add(r->d, r->conn, job ? job->id : 0, &err))
		reply_err(r, &err, NULL);
	else
		answer_watch(r, job);
}

void op_unwatch(struct request *r)
{
	watch_drop(r->d, r->conn);
	conn_set_watching(r->conn, false);
	reply_begin(r);
	json_kv_bool(&r->w, "watching", false);
	reply_send(r, 0);
}
