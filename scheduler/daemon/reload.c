/* A reload: configuration and model are read in a thread, because a large model takes longer than the loop may
 * be blocked, and swapped in between two turns of the loop; the old ones stay where the new ones are bad, or
 * where a queued job would no longer be valid under them. See daemon.h. */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/binding.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/notify.h"

struct loader {
	struct daemon *d;
	struct later *answer; /* NULL: a signal asked */
	pthread_t thread;
	int done_fd; /* readable when the thread has finished */
	struct event *done;
	/* the thread's until then */
	struct setup *fresh;
	struct err err;
	int rc;
};

static void *load(void *arg)
{
	struct loader *l = arg;
	uint64_t one = 1;
	ssize_t ignored;

	l->rc = daemon_read_setup(&l->d->params, &l->fresh, &l->err);
	ignored = write(l->done_fd, &one, sizeof one);
	(void)ignored;
	return NULL;
}

/* ---- the swap ---- */

struct rebound { /* live jobs, and what they are under the new configuration and model */
	struct job **job;
	struct binding *binding;
	size_t n;
};

static void rebound_release(struct rebound *r)
{
	for (size_t i = 0; i < r->n; i++)
		binding_release(&r->binding[i]);
	free(r->job);
	free(r->binding);
}

/* Running jobs need no type any more; queued ones do. */
static int rebind(const struct daemon *d, const struct setup *fresh, struct rebound *out, struct err *err)
{
	size_t n = d->jobs.live.n ? d->jobs.live.n : 1;

	*out = (struct rebound){ .job = mem_array(n, sizeof *out->job), .binding = mem_calloc(n, sizeof *out->binding) };
	if (!out->job || !out->binding)
		return err_fail(err, ERR_NOMEM, "out of memory for the jobs under the new configuration");
	for (struct job *job = d->jobs.live.first; job; job = job->after) {
		struct binding *b = &out->binding[out->n];
		int rc = binding_of_row(fresh, &job->row, b, err);

		if (rc && job->state == JOB_QUEUED)
			return err_prefix(err, "job %llu is queued and would no longer be valid",
					  (unsigned long long)job->id);
		if (rc) {
			rc = setup_values_new(fresh, &b->values, err);
			if (rc)
				return rc;
			setup_values_unknown(fresh, &b->values);
		}
		out->job[out->n++] = job;
	}
	return 0;
}

static const struct job_values *values_of(void *owner, uint64_t id)
{
	const struct job *job = jobs_find(owner, id);

	return job ? &job->values : NULL;
}

/* The job under the other configuration; done twice it is as before. Its batches stay: they are its own, and the
 * scheduler holds on to them. */
static void exchange(struct job *job, struct binding *b)
{
	struct binding was = { .type = job->type, .params = job->params, .values = job->values };

	job->type = b->type;
	job->params = b->params;
	job->values = b->values;
	b->type = was.type;
	b->params = was.params;
	b->values = was.values;
}

static int swap(struct daemon *d, struct setup *fresh, struct err *err)
{
	struct server_params limits = { 0 };
	struct sched_params sched;
	struct rebound r = { 0 };
	int rc = config_reloadable(d->setup->config, fresh->config, err);

	setup_sched_params(fresh, &sched);
	if (!rc)
		rc = daemon_server_limits(fresh->config, &limits, err);
	if (!rc)
		rc = rebind(d, fresh, &r, err);
	if (!rc) {
		for (size_t i = 0; i < r.n; i++)
			exchange(r.job[i], &r.binding[i]);
		rc = sched_use(d->sched, daemon_now_ns(d), &sched, values_of, &d->jobs, err);
		for (size_t i = 0; rc && i < r.n; i++)
			exchange(r.job[i], &r.binding[i]);
	}
	rebound_release(&r);
	if (rc)
		return rc;
	server_set_limits(d->server, &limits);
	log_set_level(fresh->config->log_level);
	log_set_json(fresh->config->log_json);
	setup_free(d->setup);
	d->setup = fresh;
	return 0;
}

/* ---- under way ---- */

static void loader_free(struct loader *l)
{
	if (l->done)
		event_free(l->done);
	if (l->done_fd >= 0)
		close(l->done_fd);
	setup_free(l->fresh);
	free(l);
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct loader *l = arg;
	struct daemon *d = l->d;
	struct err err = { 0 };
	int rc;

	(void)fd;
	(void)what;
	pthread_join(l->thread, NULL);
	rc = l->rc;
	if (!rc) {
		rc = swap(d, l->fresh, &l->err);
		if (!rc)
			l->fresh = NULL; /* the daemon's now */
	}
	if (rc) {
		log_error("the configuration stays as it was: %s", l->err.text);
	} else {
		log_info("reloaded: policy %s, model %s", d->setup->config->policy,
			 d->setup->model_name[0] ? d->setup->model_name : "none");
		watch_tell(d, "reloaded", NULL);
		daemon_changed(d);
	}
	notify_send("READY=1", NULL);
	if (l->answer)
		ops_reload_done(l->answer, rc ? &l->err : NULL);
	d->loader = NULL;
	loader_free(l);
	if (d->reload_again && daemon_reload(d, NULL, &err))
		log_warn("not reloaded: %s", err.text);
}

int daemon_reload(struct daemon *d, struct later *answer, struct err *err)
{
	struct loader *l = mem_calloc(1, sizeof *l);
	int rc;

	if (!l)
		return err_fail(err, ERR_NOMEM, "out of memory for a reload");
	l->d = d;
	l->answer = answer;
	l->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->done = l->done_fd < 0 ? NULL : event_new(d->base, l->done_fd, EV_READ, on_done, l);
	if (!l->done || event_add(l->done, NULL)) {
		loader_free(l);
		return err_fail(err, ERR_IO, "no reload: %s", strerror(errno));
	}
	rc = pthread_create(&l->thread, NULL, load, l);
	if (rc) {
		loader_free(l);
		return err_fail(err, ERR_IO, "no thread for a reload: %s", strerror(rc));
	}
	d->loader = l;
	d->reload_again = false;
	return 0;
}

void daemon_reload_abandon(struct daemon *d)
{
	static const struct err leaving = { .code = ERR_BUSY, .text = "the daemon is leaving" };

	if (!d->loader)
		return;
	pthread_join(d->loader->thread, NULL);
	if (d->loader->answer)
		ops_reload_done(d->loader->answer, &leaving);
	loader_free(d->loader);
	d->loader = NULL;
}

int daemon_server_limits(const struct config *c, struct server_params *out, struct err *err)
{
	out->max_connections = c->max_connections;
	out->max_connections_per_uid = c->max_connections_per_uid;
	out->max_output_bytes = c->max_output_bytes;
	out->idle_timeout_s = c->idle_timeout_s;
	if (c->socket_group) {
		const struct group *g = getgrnam(c->socket_group);

		if (!g)
			return err_fail(err, ERR_FORMAT, "socket_group: there is no group %s", c->socket_group);
		out->group = g->gr_gid;
		out->set_group = true;
	}
	return 0;
}
