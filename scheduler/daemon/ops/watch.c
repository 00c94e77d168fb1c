/* Who watches which jobs, and what they are told: see daemon.h. An event is rendered once, whoever gets it. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/daemon/daemon.h"

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
		/* A connection follows one job or all of them: a second wish for another job widens the first. */
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
