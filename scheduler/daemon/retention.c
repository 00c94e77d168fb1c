/* See retention.h. */
#include "scheduler/daemon/retention.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/worker.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/process/run_remove.h"

#define LOOK_S 60
#define LOOK_AFTER 250 /* jobs that ended */

struct retention {
	struct daemon *d;
	struct event *timer, *done;
	int done_fd; /* readable when the thread has finished */
	struct worker worker;
	bool busy; /* the store is asked, or the thread is at work */
	bool more; /* the last answer was full */
	uint64_t ticket; /* of the last deletions: until it is durable the store would give the same jobs */
	size_t n_ended; /* since the last look */
	size_t jobs, observations; /* forgotten, and not yet in the log */
	struct store_expired *item;
	size_t n;
	char *folder; /* of the jobs' folders, for the thread */
	atomic_bool leaving;
};

/* ---- folders, in a thread ---- */

static void *remove_folders(void *arg)
{
	struct retention *r = arg;

	for (size_t i = 0; i < r->n && !atomic_load(&r->leaving); i++) {
		struct store_expired *e = &r->item[i];
		struct err err = { 0 };
		char dir[4096];

		if (!e->started)
			continue;
		snprintf(dir, sizeof dir, "%s/%llu", r->folder, (unsigned long long)e->job);
		if (run_remove(dir, e->identity, &err) == 0)
			continue;
		log_warn("job %llu is forgotten, but %s", (unsigned long long)e->job, err.text);
		if (err.code == ERR_BUSY)
			e->job = 0; /* next time */
	}
	bell_ring(r->done_fd);
	return NULL;
}

/* ---- rows ---- */

static void forget(struct retention *r, const struct store_expired *e)
{
	struct daemon *d = r->d;
	struct job *job = e->observation ? NULL : jobs_find(&d->jobs, e->job);

	if (!e->job || (job && (job->unsaved || job_state_live(job->row.state))) ||
	    store_forget(d->store, e, NULL))
		return;
	if (e->observation) {
		r->observations++;
		return;
	}
	r->jobs++;
	if (e->key[0])
		jobs_key_void(&d->jobs, e->uid, e->key, e->job);
	if (job) {
		jobs_take_out(&d->jobs, job);
		job_free(job);
	}
}

static void forget_all(struct retention *r)
{
	struct daemon_span span = daemon_span_begin();

	for (size_t i = 0; i < r->n; i++)
		forget(r, &r->item[i]);
	r->more = r->n >= STORE_MAX_EXPIRED;
	free(r->item);
	r->item = NULL;
	r->n = 0;
	r->busy = false;
	r->ticket = daemon_ticket(r->d);
	daemon_changed(r->d);
	daemon_span_end(r->d, span);
}

static void on_removed(evutil_socket_t fd, short what, void *arg)
{
	struct retention *r = arg;

	(void)fd;
	(void)what;
	bell_clear(r->done_fd);
	worker_join(&r->worker);
	forget_all(r);
}

/* ---- looking ---- */

static void on_expired(void *owner, uint64_t token, const struct strbuf *text, const struct err *err)
{
	struct retention *r = owner;
	struct err why = { 0 };
	bool folders = false;

	(void)token;
	free(r->item);
	r->item = NULL;
	r->n = err->code ? 0 : text->len / sizeof *r->item;
	if (err->code && err->code != ERR_BUSY)
		log_warn("cannot look for jobs to forget: %s", err->text);
	if (r->n && !(r->item = mem_array(r->n, sizeof *r->item)))
		r->n = 0; /* without memory: the next time */
	if (!r->n || atomic_load(&r->leaving)) {
		r->busy = r->more = false;
		return;
	}
	memcpy(r->item, text->text, r->n * sizeof *r->item);
	for (size_t i = 0; i < r->n; i++)
		folders |= r->item[i].started;
	if (!folders) {
		forget_all(r);
	} else if (worker_start(&r->worker, remove_folders, r, "removing folders", &why)) {
		log_warn("%s", why.text);
		r->busy = r->more = false;
	}
}

static void look(struct retention *r)
{
	struct store_filter f = { .uid = -1,
				  .keep = r->d->setup->config->keep,
				  .now_ns = daemon_now_ns(r->d) };

	if (r->busy || r->d->store_failed || store_durable(r->d->store) < r->ticket)
		return;
	r->n_ended = 0;
	r->busy = !store_ask(r->d->store, STORE_EXPIRED, 0, &f, on_expired, r, 0, NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct retention *r = arg;

	(void)fd;
	(void)what;
	if (r->jobs + r->observations)
		log_info("%zu jobs and %zu observations were forgotten, as `keep` says", r->jobs,
			 r->observations);
	r->jobs = r->observations = 0;
	look(r);
}

void retention_ended(struct retention *r)
{
	if (r && ++r->n_ended >= LOOK_AFTER)
		look(r);
}

void retention_durable(struct retention *r)
{
	if (r->more || r->n_ended >= LOOK_AFTER)
		look(r);
}

/* ---- set-up ---- */

int retention_new(struct daemon *d, struct retention **out, struct err *err)
{
	struct retention *r = mem_calloc(1, sizeof *r);
	struct timeval every = { .tv_sec = LOOK_S };
	struct strbuf folder = { 0 };
	int rc;

	if (!r)
		return err_nomem(err, "forgetting jobs");
	r->d = d;
	r->done_fd = -1;
	strbuf_printf(&folder, "%s/jobs", d->setup->config->state_dir);
	r->folder = folder.text;
	rc = folder.failed ? err_nomem(err, "forgetting jobs")
			   : bell_new(&r->done_fd, true, "forgetting jobs", err);
	if (!rc) {
		r->done = event_new(d->base, r->done_fd, EV_READ | EV_PERSIST, on_removed, r);
		r->timer = event_new(d->base, -1, EV_PERSIST, on_timer, r);
		if (!r->done || !r->timer || event_add(r->done, NULL) || event_add(r->timer, &every))
			rc = err_nomem(err, "forgetting jobs");
	}
	if (rc) {
		retention_free(r);
		return rc;
	}
	*out = r;
	look(r);
	return 0;
}

void retention_free(struct retention *r)
{
	if (!r)
		return;
	atomic_store(&r->leaving, true);
	worker_join(&r->worker);
	if (r->done)
		event_free(r->done);
	if (r->timer)
		event_free(r->timer);
	bell_free(&r->done_fd);
	free(r->item);
	free(r->folder);
	free(r);
}
