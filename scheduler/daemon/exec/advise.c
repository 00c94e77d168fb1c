/* The executor of advised jobs: its owner runs it, and says when it started and finished. Nothing
 * to do here but to know which there are. See executor.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>

#include "common/mem.h"
#include "scheduler/daemon/exec/local.h"

struct advised {
	uint64_t id;
	bool stopped; /* the end will be told */
};

struct advise {
	struct executor_sink sink;
	struct event *turn; /* tells ends from the loop */
	struct advised *job;
	size_t n_jobs, cap;
};

static struct advised *find(struct advise *a, uint64_t id)
{
	for (size_t i = 0; i < a->n_jobs; i++) {
		if (a->job[i].id == id)
			return &a->job[i];
	}
	return NULL;
}

static void tell_end(struct advise *a, uint64_t id)
{
	struct exec_outcome o = {
		.id = id, .exit_code = -1, .run_s = NAN, .accuracy = NAN, .max_rss_mb = NAN, .cpu_s = NAN
	};

	o.ended_ns = executor_now_ns(&a->sink);
	snprintf(o.reason, sizeof o.reason, "stopped on request; its owner runs it and has to end it");
	a->sink.finished(a->sink.owner, &o);
}

static void on_turn(evutil_socket_t fd, short what, void *self)
{
	struct advise *a = self;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < a->n_jobs;) {
		uint64_t id = a->job[i].id;

		if (!a->job[i].stopped) {
			i++;
			continue;
		}
		a->job[i] = a->job[--a->n_jobs]; /* before the sink is called: it may call back */
		tell_end(a, id);
		i = 0;
	}
}

static void advise_destroy(void *self)
{
	struct advise *a = self;

	if (!a)
		return;
	if (a->turn)
		event_free(a->turn);
	free(a->job);
	free(a);
}

static int advise_create(struct event_base *base, const struct executor_sink *sink, void **out_self,
			 struct err *err)
{
	struct advise *a = mem_calloc(1, sizeof *a);

	if (a) {
		a->sink = *sink;
		a->turn = event_new(base, -1, 0, on_turn, a);
	}
	if (!a || !a->turn) {
		advise_destroy(a);
		return err_nomem(err, "the advised jobs");
	}
	*out_self = a;
	return 0;
}

static int advise_start(void *self, const struct exec_job *j, struct err *err)
{
	struct advise *a = self;
	void *list = a->job;

	if (find(a, j->id))
		return err_fail(err, ERR_BUSY, "job %" PRIu64 " is already known", j->id);
	if (mem_grow(&list, &a->cap, a->n_jobs + 1, sizeof *a->job))
		return err_nomem(err, "job %" PRIu64, j->id);
	a->job = list;
	a->job[a->n_jobs++] = (struct advised){ .id = j->id };
	return 0;
}

static int advise_stop(void *self, uint64_t id, double grace_s, struct err *err)
{
	static const struct timeval at_once = { 0 };
	struct advise *a = self;
	struct advised *job = find(a, id);

	(void)grace_s;
	if (!job)
		return err_fail(err, ERR_NOTFOUND, "job %" PRIu64 " is not advised", id);
	if (event_add(a->turn, &at_once))
		return err_nomem(err, "the end of job %" PRIu64, id);
	job->stopped = true;
	return 0;
}

static int advise_adopt(void *self, const struct exec_job *j, bool *out_unstarted, struct err *err)
{
	int rc = advise_start(self, j, err);

	if (!rc)
		*out_unstarted = false; /* only its owner knows; there is nothing of ours to start */
	return rc;
}

static void advise_forget(void *self, uint64_t id)
{
	struct advise *a = self;
	struct advised *job = find(a, id);

	if (job)
		*job = a->job[--a->n_jobs];
}

static size_t advise_running(const void *self)
{
	return ((const struct advise *)self)->n_jobs;
}

const struct executor_ops exec_advise_ops = {
	.name = "advise",
	.create = advise_create,
	.start = advise_start,
	.stop = advise_stop,
	.adopt = advise_adopt,
	.forget = advise_forget,
	.running = advise_running,
	.destroy = advise_destroy,
};
