/* A reload: configuration and model are read in a thread, because a large model takes longer than the loop
 * may be blocked, and swapped in between two turns of the loop; the old ones stay where the new ones are bad,
 * or where a queued job would no longer be valid under them. See daemon.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/worker.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/net/systemd.h"

#define AHEAD 12 /* jobs */
#define REBIND_NS 1000000 /* of parsing jobs anew in one turn of the loop */
#define REST_NS 200000 /* of freeing what they were */

struct rebound { /* live jobs, and what they are under the new configuration and model */
	uint64_t *id;
	const struct job **job; /* where each was: it may have ended since */
	struct binding *binding;
	size_t n, cap;
};

struct loader {
	struct daemon *d;
	struct later *answer; /* NULL: a signal asked */
	struct setup_source from;
	struct worker worker;
	int done_fd; /* readable when the thread has finished */
	struct event *done, *step, *rest;
	struct loader *next_rest; /* the reload before it whose rest is not freed yet */
	struct rebound rebound;
	struct job_cursor next; /* the job that is rebound next */
	/* the thread's until then */
	struct setup *fresh; /* after the swap: the one before, to be freed */
	struct err err;
	int rc;
};

static void *load(void *arg)
{
	struct loader *l = arg;

	l->rc = daemon_read_setup(l->d, l->d->learning, &l->from, &l->fresh, &l->err);
	l->from.model = NULL; /* taken */
	bell_ring(l->done_fd);
	return NULL;
}

/* ---- live jobs under the new configuration and model ---- */

static void rebound_release(struct rebound *r)
{
	for (size_t i = 0; i < r->n; i++)
		binding_release(&r->binding[i]);
	free(r->id);
	free(r->job);
	free(r->binding);
	*r = (struct rebound){ 0 };
}

static int rebound_grow(struct rebound *r, size_t n, struct err *err)
{
	size_t ids = r->cap, jobs = r->cap; /* of all three: they grow in step */

	if (mem_grow((void **)&r->id, &ids, n, sizeof *r->id) ||
	    mem_grow((void **)&r->job, &jobs, n, sizeof *r->job) ||
	    mem_grow((void **)&r->binding, &r->cap, n, sizeof *r->binding))
		return err_nomem(err, "the jobs under the new configuration");
	return 0;
}

/* Running jobs need no type any more; queued ones do. */
static int rebind(const struct setup *fresh, const struct job *job, struct rebound *r, struct err *err)
{
	struct binding *b;
	int rc = rebound_grow(r, r->n + 1, err);

	if (rc)
		return rc;
	b = &r->binding[r->n];
	*b = (struct binding){ 0 };
	rc = binding_of_row(fresh, &job->row, b, err);
	if (rc && job->row.state == JOB_QUEUED)
		return err_prefix(err, "job %llu is queued and would no longer be valid",
				  (unsigned long long)job->id);
	if (rc && (rc = binding_without_type(fresh, &job->row, b, err)) != 0)
		return rc;
	r->job[r->n] = job;
	r->id[r->n++] = job->id;
	return 0;
}

/* The first of those that came after the walk had reached the end; NULL: none did. */
static struct job *late_comer(const struct daemon *d, const struct rebound *r)
{
	uint64_t last = r->n ? r->id[r->n - 1] : 0;
	struct job *job = d->jobs.live.last;

	while (job && job->before && job->before->id > last)
		job = job->before;
	return job && job->id > last ? job : NULL;
}

/* The jobs that are not rebound yet, for as long as a turn of the loop may take; they are listed by id, and
 * new ones have higher ids. *out_all: there were none but late-comers, so there is time for the swap. */
static int rebind_some(struct daemon *d, const struct setup *fresh, struct job_cursor *at, struct rebound *r,
		       bool *out_all, struct err *err)
{
	int64_t until = daemon_now_ns(d) + REBIND_NS;
	struct job *job;
	int rc = 0;

	if (!at->upwards) { /* the first time; room for all, for to move them takes milliseconds */
		rc = rebound_grow(r, d->jobs.live.n + 1, err);
		jobs_cursor_open(&d->jobs, at, true);
	}
	*out_all = !at->at;
	for (size_t n = 1; !rc && at->at; n++) {
		rc = rebind(fresh, jobs_cursor_next(&d->jobs, at), r, err);
		if (n % 64 == 0 && daemon_now_ns(d) > until)
			break;
	}
	for (job = at->at ? NULL : late_comer(d, r); !rc && job; job = job->after)
		rc = rebind(fresh, job, r, err);
	return rc;
}

/* ---- the swap ---- */

static const struct job_values *values_of(void *owner, uint64_t id, uint32_t *out_model)
{
	const struct job *job = jobs_find(owner, id);

	*out_model = job ? job->slot : 0;
	return job ? job_values(job) : NULL;
}

/* The job under the other configuration; done twice it is as before. Its batches stay: they are its own, and
 * the scheduler holds on to them. */
static void exchange(struct job *job, struct binding *b)
{
	const struct job_type *type = job->type;
	struct job_bound *bound = job->bound;
	uint32_t slot = job->slot;

	job->type = b->type;
	job->bound = b->bound;
	job->slot = b->slot;
	b->type = type;
	b->bound = bound;
	b->slot = slot;
}

/* Both are in the order of ids; what has ended since is passed over. All jobs change in one turn of the loop,
 * and most of the time goes into waiting for the memory they lie in: it is asked for ahead. */
static void exchange_all(struct daemon *d, struct rebound *r)
{
	struct job *job = d->jobs.live.first;

	for (size_t i = 0; i < r->n && job; i++) {
		if (i + AHEAD < r->n)
			__builtin_prefetch(r->job[i + AHEAD]);
		while (job && job->id < r->id[i])
			job = job->after;
		if (job && job->id == r->id[i])
			exchange(job, &r->binding[i]);
	}
}

/* The daemon's setup and *setup change places. */
static int swap(struct daemon *d, struct setup **setup, struct rebound *r, struct err *err)
{
	struct setup *fresh = *setup;
	struct server_params limits = { 0 };
	struct err engines = { 0 };
	const struct model *own[SETUP_MAX_SLOTS];
	struct sched_params sched;
	int64_t now_ns = daemon_now_ns(d);
	int rc = daemon_server_limits(fresh->config, &limits, err);

	if (rc)
		return rc;
	rc = learning_prepare(d->learning, fresh, err);
	if (rc)
		return rc;
	rc = daemon_set_devices(d, fresh->config, err);
	if (rc)
		return rc;
	setup_sched_params(fresh, own, &sched);
	exchange_all(d, r);
	rc = sched_use(d->sched, now_ns, &sched, values_of, &d->jobs, err);
	if (rc) {
		exchange_all(d, r);
		if (daemon_set_devices(d, d->setup->config, &engines))
			log_error("%s", engines.text); /* jobs get the others until the next reload */
		return rc;
	}
	if (daemon_configure_engines(d, fresh->config, &engines))
		log_error("%s", engines.text); /* its jobs wait until the next reload */
	inputs_reloaded(d, now_ns, fresh);
	if (d->server)
		server_set_limits(d->server, &limits);
	daemon_use_log(fresh->config);
	*setup = d->setup;
	d->setup = fresh;
	setup_link_model(fresh);
	tenants_refresh(&d->tenants, fresh->config, d->sched, now_ns, NULL);
	learning_model_changed(d->learning);
	return 0;
}

/* ---- under way ---- */

static void loader_free(struct loader *l)
{
	jobs_cursor_close(&l->d->jobs, &l->next);
	rebound_release(&l->rebound);
	if (l->done)
		event_free(l->done);
	if (l->step)
		event_free(l->step);
	if (l->rest)
		event_free(l->rest);
	bell_free(&l->done_fd);
	model_free(l->from.model);
	setup_free(l->fresh);
	free(l);
}

/* What the jobs were before takes as long to free as it took to make: for a while in each turn. */
static void on_rest(evutil_socket_t fd, short what, void *arg)
{
	struct loader *l = arg;
	struct daemon *d = l->d;
	struct daemon_span span = daemon_span_begin();
	struct rebound *r = &l->rebound;
	int64_t until = daemon_now_ns(d) + REST_NS;

	(void)fd;
	(void)what;
	for (size_t n = 1; r->n && (n % 64 || daemon_now_ns(d) < until); n++)
		binding_release(&r->binding[--r->n]);
	/* The C library sorts what was freed when next a large piece is asked for: now, and not all of it at
	 * the end. */
	free(mem_array(1, 4096));
	if (r->n) {
		event_add(l->rest, &(struct timeval){ 0 });
	} else {
		struct loader **at = &d->loader_rest;

		while (*at != l)
			at = &(*at)->next_rest;
		*at = l->next_rest;
		loader_free(l);
	}
	daemon_span_end(d, span);
}

static void finish(struct loader *l, int rc)
{
	struct daemon *d = l->d;
	struct err err = { 0 };
	char models[160];

	if (rc) {
		d->tally.reloads[1]++;
		log_error("the configuration stays as it was: %s", l->err.text);
	} else {
		d->tally.reloads[0]++;
		log_info("reloaded: policy %s, model %s", d->setup->config->policy,
			 models_named(d->setup, models, sizeof models));
		watch_tell(d, "reloaded", NULL);
		daemon_changed(d);
	}
	notify_send("READY=1", NULL);
	if (l->answer)
		ops_reload_done(l->answer, rc ? &l->err : NULL);
	d->loader = NULL;
	l->next_rest = d->loader_rest;
	d->loader_rest = l;
	event_add(l->rest, &(struct timeval){ 0 });
	if (d->reload_again && daemon_reload(d, NULL, NULL, &err))
		log_warn("not reloaded: %s", err.text);
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
	struct loader *l = arg;
	struct timeval soon = { 0 };
	struct daemon_span span = daemon_span_begin();
	struct daemon *d = l->d;
	bool all = false;
	int rc = rebind_some(d, l->fresh, &l->next, &l->rebound, &all, &l->err);

	(void)fd;
	(void)what;
	if (!rc && !all) {
		event_add(l->step, &soon);
		daemon_span_end(d, span);
		return;
	}
	if (!rc)
		rc = swap(l->d, &l->fresh, &l->rebound, &l->err);
	finish(l, rc);
	daemon_span_end(d, span);
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct loader *l = arg;
	int rc;

	worker_join(&l->worker);
	rc = l->rc;
	if (!rc)
		rc = config_reloadable(l->d->setup->config, l->fresh->config, &l->err);
	if (rc)
		finish(l, rc);
	else
		on_step(fd, what, l);
}

int daemon_reload(struct daemon *d, struct later *answer, const struct setup_source *from, struct err *err)
{
	struct loader *l = mem_calloc(1, sizeof *l);
	int rc;

	if (!l) {
		if (from)
			model_free(from->model);
		return err_nomem(err, "a reload");
	}
	l->d = d;
	l->answer = answer;
	if (from)
		l->from = *from;
	l->from.before = d->setup;
	rc = bell_new(&l->done_fd, true, "a reload", err);
	l->done = rc ? NULL : event_new(d->base, l->done_fd, EV_READ, on_done, l);
	l->step = event_new(d->base, -1, 0, on_step, l);
	l->rest = event_new(d->base, -1, 0, on_rest, l);
	if (!rc && (!l->done || !l->step || !l->rest || event_add(l->done, NULL)))
		rc = err_nomem(err, "a reload");
	if (!rc)
		rc = worker_start(&l->worker, load, l, "a reload", err);
	if (rc) {
		loader_free(l);
		return rc;
	}
	d->loader = l;
	d->reload_again = false;
	return 0;
}

int daemon_reload_now(struct daemon *d, struct err *err)
{
	const struct setup_source from = { .before = d->setup };
	struct setup *fresh = NULL;
	struct rebound rebound = { 0 };
	struct job_cursor next = { 0 };
	bool all = false;
	int rc = daemon_read_setup(d, d->learning, &from, &fresh, err);

	if (!rc)
		rc = config_reloadable(d->setup->config, fresh->config, err);
	while (!rc && !all)
		rc = rebind_some(d, fresh, &next, &rebound, &all, err);
	if (!rc)
		rc = swap(d, &fresh, &rebound, err);
	jobs_cursor_close(&d->jobs, &next);
	rebound_release(&rebound);
	setup_free(fresh);
	return rc;
}

void daemon_reload_abandon(struct daemon *d)
{
	static const struct err leaving = { .code = ERR_BUSY, .text = "the daemon is leaving" };

	while (d->loader_rest) {
		struct loader *l = d->loader_rest;

		d->loader_rest = l->next_rest;
		loader_free(l);
	}
	if (!d->loader)
		return;
	worker_join(&d->loader->worker);
	if (d->loader->answer)
		ops_reload_done(d->loader->answer, &leaving);
	loader_free(d->loader);
	d->loader = NULL;
}

int daemon_server_limits(const struct config *c, struct server_params *out, struct err *err)
{
	struct err why = { 0 };

	out->max_connections = c->max_connections;
	out->max_connections_per_uid = c->max_connections_per_uid;
	out->max_output_bytes = c->max_output_bytes;
	out->max_output_bytes_per_uid = c->max_output_bytes_per_uid;
	out->idle_timeout_s = c->idle_timeout_s;
	if (config_socket_group(c, &out->group, &out->set_group, &why))
		return err_fail(err, ERR_FORMAT, "socket_group: %s", why.text);
	return 0;
}
