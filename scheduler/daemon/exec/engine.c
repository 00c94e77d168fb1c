/* The executor of jobs that a workload manager runs: everything that engines have in common. See engine.h.
 *
 * A job goes through
 *
 *   TO_SUBMIT -> SUBMITTING -> THERE          the engine said yes, and its id
 *        ^           |           |
 *        |           v           | gone from the queue, and no supervisor has claimed it
 *        +-------- UNSURE        |
 *        +-----------------------+
 *
 * UNSURE is an answer that is neither yes nor no: a controller that was too slow may still have taken the
 * job. The job is then looked for by its identity, and submitted again only when it is not there. If it turns
 * up later, the second supervisor finds the job claimed and exits.
 *
 * Programs run in a thread for each engine (errand.c). One call asks about all jobs. One timer reads records
 * and output, in pieces, so that the loop is never held up.
 *
 * This file has the list of jobs and the timer. engine_submit.c hands jobs over, engine_poll.c asks how they
 * are, engine_end.c judges how they ended, engine_books.c asks the engine's accounting where there is no
 * record; engine_job.h is what they share. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/engine_job.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/exec/handover.h"

#define TICK_US 200000
#define TURN_US 1500.0 /* of looking at jobs in one turn of the loop */
#define TURN_BYTES (128 << 10) /* of output read in one turn */
#define BACK_OFF_S 2.0 /* after an answer that was no answer; doubled up to the most */
#define BACK_OFF_MOST_S 60.0
#define CANCEL_AGAIN_NS INT64_C(10000000000)

/* ---- telling ---- */

static struct engine_job *find(const struct engines *a, uint64_t id)
{
	for (size_t i = 0; i < a->n_jobs; i++) {
		if (a->job[i]->run->id == id)
			return a->job[i];
	}
	return NULL;
}

void engines_tick(struct engines *a, int us)
{
	const struct timeval t = { .tv_usec = us };

	if (event_add(a->tick, &t))
		log_error("out of memory for the timer of the engines");
}

void engine_tell_waits(struct engine_job *j, const char *fmt, ...)
{
	const struct executor_sink *sink = j->run->sink;
	char why[sizeof j->told];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	if (!strcmp(why, j->told))
		return;
	snprintf(j->told, sizeof j->told, "%s", why);
	sink->waits(sink->owner, j->run->id, why);
}

static void engine_job_free(struct engine_job *j)
{
	if (!j)
		return;
	if (j->errand)
		j->errand->owner = NULL; /* it comes back, and belongs to no job */
	engine_call_release(&j->call);
	local_job_free(j->run);
	free(j);
}

static void take_out(struct engines *a, size_t at)
{
	a->job[at] = a->job[--a->n_jobs];
}

/* ---- is it there? ---- */

void engine_is_away(struct engine *g, const char *why)
{
	double wait_s = fmin(BACK_OFF_MOST_S, g->back_off_s > 0.0 ? 2.0 * g->back_off_s : BACK_OFF_S);

	if (!g->away[0])
		log_warn("engine %s takes no jobs, and those that it should get wait: %s", g->name, why);
	snprintf(g->away, sizeof g->away, "%s", why);
	g->back_off_s = wait_s;
	g->hold_until_ns = clock_monotonic_ns() + (int64_t)(1e9 * wait_s);
}

void engine_is_back(struct engine *g)
{
	if (g->away[0])
		log_info("engine %s takes jobs again", g->name);
	g->away[0] = '\0';
	g->back_off_s = 0.0;
	g->hold_until_ns = 0;
}

/* ---- errands that came back ---- */

struct orders *engine_asks(const struct engine *g)
{
	return errands_orders(g->thread[0].errands);
}

void engine_take_returned(struct engine *g, size_t thread)
{
	struct order *list = orders_returned(errands_orders(g->thread[thread].errands)), *order;

	while ((order = order_next(&list))) {
		struct errand *e = (struct errand *)order;

		if (e->kind == ERRAND_SUBMIT) {
			g->thread[thread].n_submitting--;
			engine_submitted(g, e);
		} else if (e->kind == ERRAND_POLL)
			engine_polled(g, e);
		else if (e->kind == ERRAND_PAST)
			engine_books_read(g, e);
		else if (e->kind >= ERRAND_LOOK)
			engine_look_done(g, e);
		else if (e->err.code || e->exit_code)
			log_warn("engine %s, cancelling a job: %s", g->name,
				 e->err.code ? e->err.text : e->said); /* it is tried again */
		errand_free(e);
	}
}

static void on_returned(evutil_socket_t fd, short what, void *engine)
{
	struct engine *g = engine;

	(void)what;
	for (size_t i = 0; i < g->n_threads; i++) {
		if (orders_fd(errands_orders(g->thread[i].errands)) == fd)
			engine_take_returned(g, i);
	}
}

/* ---- cancelling ---- */

static void cancel(struct engine_job *j, int64_t now_ns)
{
	struct engine *g = j->engine;
	struct engine_call c = { 0 };
	struct errand *e = NULL;
	struct err err = { 0 };

	j->cancel_ns = now_ns + CANCEL_AGAIN_NS;
	if (!g->ops->cancel(g->config, j->run->id, j->run->identity, j->id, &c, &err))
		e = engine_errand(g, ERRAND_CANCEL, NULL, &c);
	engine_call_release(&c);
	if (e)
		orders_add(engine_asks(g), &e->order);
}

/* ---- one job ---- */

/* False: the job is gone. */
static bool visit(struct engines *a, size_t at, size_t *bytes)
{
	struct engine_job *j = a->job[at];
	struct local_job *run = j->run;
	int64_t now_ns = clock_monotonic_ns(), now_boot_ns = clock_boot_ns();
	bool more = false;

	if (j->hand != TO_SUBMIT || j->submits)
		engine_read_records(j);
	if (run->state != LOCAL_ENDED && j->hand == TO_SUBMIT)
		engine_look_to_submit(j, now_ns);
	else if (run->state != LOCAL_ENDED && j->hand != SUBMITTING)
		engine_look_at_word(j, now_ns);
	if (run->state != LOCAL_ENDED && j->hand == UNSURE)
		engine_tell_waits(j, "waiting for %s: %.200s", j->engine->name, j->engine->away);
	if (run->stop_asked && run->state != LOCAL_ENDED && j->hand == THERE && j->engine->config &&
	    j->word < ENGINE_ENDED && now_ns >= j->cancel_ns)
		cancel(j, now_ns);
	if (local_job_has_output(run))
		*bytes += job_output_read(&run->output, a->scratch, run->state == LOCAL_ENDED, &more);
	if (local_job_is_due(run, now_boot_ns))
		local_job_tell_progress(run, now_boot_ns);
	if (run->state == LOCAL_DELAYED) {
		take_out(a, at);
		a->sink.delayed(a->sink.owner, run->id, run->failed);
		engine_job_free(j);
		return false;
	}
	if (run->state == LOCAL_ENDED && !more && engine_settle_end(j, now_ns)) {
		take_out(a, at);
		j->run = NULL;
		local_job_tell_finished(run, now_boot_ns);
		engine_job_free(j);
		return false;
	}
	return true;
}

/* Those that are new, without a look at the files of all the others. */
static void on_hand_over(evutil_socket_t fd, short what, void *self)
{
	struct engines *a = self;
	int64_t now_ns = clock_monotonic_ns();

	(void)fd;
	(void)what;
	for (size_t i = 0; i < a->n_jobs; i++)
		engine_hand_over(a->job[i], now_ns);
	if (a->n_jobs && !event_pending(a->tick, EV_TIMEOUT, NULL))
		engines_tick(a, TICK_US);
}

void engines_hand_over(struct engines *a)
{
	event_active(a->hand_over, EV_TIMEOUT, 0);
}

static void on_tick(evutil_socket_t fd, short what, void *self)
{
	struct engines *a = self;
	double until_us = clock_monotonic_us() + TURN_US;
	size_t bytes = 0, n = a->n_jobs, seen = 0;

	(void)fd;
	(void)what;
	if (a->next >= a->n_jobs)
		a->next = 0;
	for (; seen < n && a->n_jobs; seen++) {
		if (a->next >= a->n_jobs)
			a->next = 0;
		if (visit(a, a->next, &bytes))
			a->next++;
		if (clock_monotonic_us() > until_us || bytes > TURN_BYTES)
			break;
	}
	for (size_t i = 0; i < a->n_engines; i++) {
		struct engine *g = a->engine[i];

		if (g->config && !g->polling && clock_monotonic_ns() >= g->poll_at_ns && engine_needs_poll(g))
			engine_ask(g);
	}
	if (a->n_jobs)
		engines_tick(a, seen < n ? 0 : TICK_US);
}

/* ---- the table's functions ---- */

static void engine_free(struct engine *g)
{
	if (!g)
		return;
	engine_look_release(g);
	for (size_t i = 0; i < sizeof g->thread / sizeof g->thread[0]; i++) {
		if (g->thread[i].returned)
			event_free(
				g->thread[i].returned); /* before the thread, whose descriptor it watches */
		errands_free(g->thread[i].errands);
	}
	free(g->name);
	free(g);
}

static void engines_destroy(void *self)
{
	struct engines *a = self;

	if (!a)
		return;
	for (size_t i = 0; i < a->n_jobs; i++)
		engine_job_free(a->job[i]);
	for (size_t i = 0; i < a->n_engines; i++)
		engine_free(a->engine[i]);
	if (a->tick)
		event_free(a->tick);
	if (a->hand_over)
		event_free(a->hand_over);
	free(a->engine);
	free(a->job);
	spawn_program_release(&a->program);
	free(a);
}

static int engines_create(struct event_base *base, const struct executor_sink *sink, void **out_self,
			  struct err *err)
{
	struct engines *a = mem_calloc(1, sizeof *a);
	int rc = 0;

	if (a) {
		a->base = base;
		a->sink = *sink;
		a->tick = event_new(base, -1, 0, on_tick, a);
		a->hand_over = event_new(base, -1, 0, on_hand_over, a);
	}
	if (!a || !a->tick || !a->hand_over)
		rc = err_nomem(err, "the engines");
	else if (!proc_boot_id(a->boot))
		rc = err_fail(err, ERR_IO, "cannot read /proc/sys/kernel/random/boot_id: is /proc mounted?");
	else
		rc = spawn_program_init(&a->program, err);
	if (rc) {
		engines_destroy(a);
		return rc;
	}
	*out_self = a;
	return 0;
}

static struct engine *engine_named(const struct engines *a, const char *name)
{
	for (size_t i = 0; i < a->n_engines; i++) {
		if (!strcmp(a->engine[i]->name, name))
			return a->engine[i];
	}
	return NULL;
}

static int add_thread(struct engine *g, struct err *err)
{
	struct engine_thread *t = &g->thread[g->n_threads];
	int rc = errands_new(g->all->program.environment.word, &t->errands, err);

	if (rc)
		return rc;
	t->returned = event_new(g->all->base, orders_fd(errands_orders(t->errands)), EV_READ | EV_PERSIST,
				on_returned, g);
	if (!t->returned || event_add(t->returned, NULL))
		return err_nomem(err, "engine %s", g->name);
	g->n_threads++;
	return 0;
}

/* Without a configuration as yet, and without hands. */
static int engine_new(struct engines *a, const char *name, struct engine **out, struct err *err)
{
	struct engine *g = mem_calloc(1, sizeof *g), **more;
	int rc = 0;

	if (g) {
		g->all = a;
		g->name = mem_strdup(name);
		rc = g->name ? add_thread(g, err) : 0;
	}
	more = !rc && g && g->name ? mem_resize(a->engine, a->n_engines + 1, sizeof *more) : NULL;
	if (!more) {
		engine_free(g);
		return rc ? rc : err_nomem(err, "engine %s", name);
	}
	a->engine = more;
	a->engine[a->n_engines++] = *out = g;
	return 0;
}

int exec_engine_configure(void *self, const struct config *c, struct err *err)
{
	struct engines *a = self;
	int rc = 0;

	for (size_t i = 0; i < a->n_engines; i++)
		a->engine[i]->config = NULL;
	for (size_t i = 0; i < c->n_engines && !rc; i++) {
		struct engine *g = engine_named(a, c->engine[i].name);

		if (!g)
			rc = engine_new(a, c->engine[i].name, &g, err);
		if (!rc)
			g->ops = engine_ops_of(c->engine[i].kind);
		while (!rc && g->n_threads < 1 + g->ops->hands)
			rc = add_thread(g, err);
		if (!rc)
			g->config = &c->engine[i];
	}
	for (size_t i = 0; i < a->n_engines && !rc; i++)
		rc = engine_watch(a->engine[i], c, err);
	return rc;
}

static int enlist(struct engines *a, const struct exec_job *from, struct engine *g, struct engine_job **out,
		  struct err *err)
{
	struct engine_job *j;
	void *list = a->job;
	int rc;

	if (find(a, from->id))
		return err_fail(err, ERR_ARG, "job %" PRIu64 " is already at an engine", from->id);
	if (!from->identity || !from->dir || from->dir[0] != '/')
		return err_fail(err, ERR_ARG, "job %" PRIu64 ": an engine needs its identity and its folder",
				from->id);
	if (mem_grow(&list, &a->cap, a->n_jobs + 1, sizeof *a->job))
		return err_nomem(err, "job %" PRIu64, from->id);
	a->job = list;
	j = mem_calloc(1, sizeof *j);
	if (!j)
		return err_nomem(err, "job %" PRIu64, from->id);
	j->engine = g;
	rc = local_job_new(from, &a->sink, a->boot, &j->run, err);
	if (rc) {
		free(j);
		return rc;
	}
	*out = j;
	return 0;
}

static int engines_start(void *self, const struct exec_job *from, struct err *err)
{
	struct engines *a = self;
	struct engine *g = from->engine ? engine_named(a, from->engine->name) : NULL;
	struct engine_job *j;
	int rc;

	if (!g || !g->config)
		return err_fail(err, ERR_NOTFOUND, "its engine is not configured");
	if (geteuid() != 0 && from->uid != geteuid())
		return err_fail(err, ERR_PERM, "jobs run as the daemon's own user only (%u, not %u)",
				(unsigned)geteuid(), (unsigned)from->uid);
	rc = enlist(a, from, g, &j, err);
	if (rc)
		return rc;
	rc = engine_make_call(a, g, from, j->run, &j->call, err);
	if (rc) {
		engine_job_free(j);
		return rc;
	}
	a->job[a->n_jobs++] = j;
	engines_hand_over(a);
	return 0;
}

void exec_engine_withdraw(const char *dir, const char *identity)
{
	struct strbuf path = { 0 };

	strbuf_printf(&path, "%s.%s" RECORD_ENGINE, dir, identity);
	if (!path.failed)
		unlink(path.text);
	strbuf_release(&path);
}

bool exec_engine_knows(void *self, uint64_t id, const char *dir, const char *identity)
{
	struct strbuf path = { 0 };
	bool there = find(self, id) != NULL;

	if (!there && dir && identity) {
		strbuf_printf(&path, "%s.%s" RECORD_ENGINE, dir, identity);
		there = !path.failed && !access(path.text, F_OK);
		strbuf_release(&path);
	}
	return there;
}

static int engines_adopt(void *self, const struct exec_job *from, bool *out_unstarted, struct err *err)
{
	struct engines *a = self;
	struct engine_job *j;
	struct handover h;
	struct engine *g;
	int rc = enlist(a, from, NULL, &j, err);

	*out_unstarted = false;
	if (rc)
		return rc;
	rc = handover_read(j->run->record, j->run->identity, &h, err);
	g = rc ? NULL : engine_named(a, h.engine);
	if (!rc && !g)
		rc = engine_new(a, h.engine, &g, err);
	if (rc) {
		engine_job_free(j);
		return rc;
	}
	j->engine = g;
	j->run->adopted = true;
	j->hand = h.id[0] ? THERE : UNSURE;
	j->submits = 1;
	snprintf(j->id, sizeof j->id, "%s", h.id);
	a->job[a->n_jobs++] = j;
	engines_tick(a, 0);
	return 0;
}

static int engines_stop(void *self, uint64_t id, double grace_s, struct err *err)
{
	struct engines *a = self;
	struct engine_job *j = find(a, id);

	if (!j)
		return err_fail(err, ERR_NOTFOUND, "job %" PRIu64 " is at no engine", id);
	j->run->stop_asked = true;
	j->run->stop_grace_s = grace_s;
	engines_tick(a, 0);
	return 0;
}

static size_t engines_running(const void *self)
{
	return ((const struct engines *)self)->n_jobs;
}

const struct executor_ops exec_engine_ops = {
	.name = "engine",
	.no_mode = true,
	.create = engines_create,
	.start = engines_start,
	.stop = engines_stop,
	.adopt = engines_adopt,
	.running = engines_running,
	.destroy = engines_destroy,
};
