/* Looking at the cluster of an engine: how many cpus it has, and what others run there. One look is a few
 * questions (ops.h), one after the other, in the engine's thread, every look_s. See engine_job.h. */
#define _GNU_SOURCE
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/exec/engine_job.h"

#define SETTLE_S                                                                                             \
	3.0 /* for the first look; a controller that is away must not keep the daemon from starting */

/* ---- what is watched ---- */

static void add_to_scope(struct strbuf *scope, const char *partition)
{
	if (partition && !cluster_in_scope(strbuf_text(scope), partition, false))
		strbuf_printf(scope, "%s,", partition);
}

/* The engine's partition, or its default, and those of the tenants. NULL: out of memory. */
static char *scope_of(const struct config_engine *e, const struct config *c)
{
	struct strbuf scope = { 0 };

	strbuf_puts(&scope, ",");
	add_to_scope(&scope, e->partition ? e->partition : "*");
	for (size_t i = 0; i < c->n_tenants; i++)
		add_to_scope(&scope, c->tenant[i].partition);
	if (scope.failed)
		strbuf_release(&scope);
	return scope.text;
}

static void look_in(struct engine *g, double s)
{
	const struct timeval t = { .tv_sec = (time_t)s, .tv_usec = (suseconds_t)(1e6 * (s - floor(s))) };

	if (event_add(g->look, &t))
		log_error("out of memory for the timer of the look at the cluster");
}

static void tell(struct engine *g, const struct cluster *c, const char *why)
{
	const struct executor_sink *sink = &g->all->sink;

	if (sink->cluster)
		sink->cluster(sink->owner, g->name, c, why);
}

/* ---- a look ---- */

/* In the thread: a cluster has many jobs. e->text is the scope. */
static void read_answer(struct errand *e)
{
	struct cluster *c = e->result;
	char *at = e->output.text;
	enum cluster_question q = (enum cluster_question)(e->kind - ERRAND_LOOK);
	size_t n = 1;

	if (e->err.code || e->exit_code || !at)
		return;
	for (const char *s = at; (s = strchr(s, '\n')); s++)
		n++;
	c = mem_resize(c, 1, sizeof *c + n * sizeof c->guest[0]);
	if (!c) {
		err_nomem(&e->err, "the jobs of others");
		return;
	}
	e->result = c;
	c->cap = n;
	for (char *line; (line = strsep(&at, "\n"));)
		c->line(q, line, e->text, c);
}

/* Takes what was found out so far; NULL: nothing yet. */
static void ask(struct engine *g, enum cluster_question q, struct cluster *so_far)
{
	struct cluster *found = so_far ? so_far : mem_calloc(1, sizeof *found);
	char *scope = mem_strdup(g->scope);
	struct engine_call c = { 0 };
	struct errand *e = NULL;
	struct err err = { 0 };

	if (found && scope && !g->ops->look(g->config, q, &c, &err))
		e = engine_errand(g, ERRAND_LOOK + (int)q, NULL, &c);
	if (!e) {
		engine_call_release(&c);
		free(scope);
		free(found);
		g->looking = false;
		look_in(g, g->config->look_s);
		return;
	}
	found->line = g->ops->look_line;
	e->result = found;
	e->text = scope;
	e->after = read_answer;
	g->looking = true;
	orders_add(engine_asks(g), &e->order);
}

static void on_look(evutil_socket_t fd, short what, void *engine)
{
	struct engine *g = engine;

	(void)fd;
	(void)what;
	if (g->config && g->scope && !g->looking)
		ask(g, CLUSTER_NODES, NULL);
}

void engine_look_done(struct engine *g, struct errand *e)
{
	struct cluster *c = e->result;
	int next = e->kind - ERRAND_LOOK + 1;
	const char *why = e->err.code ? e->err.text : e->said[0] ? e->said : "it does not say what it has";

	g->looking = false;
	if (!g->config || !g->scope || g->ops->look_line != c->line)
		return;
	if (e->err.code || e->exit_code) {
		tell(g, NULL, why);
	} else if (next < CLUSTER_QUESTIONS) {
		e->result = NULL;
		ask(g, (enum cluster_question)next, c);
		return;
	} else if (!c->nodes) {
		tell(g, NULL, "it has no node in the partitions of the configuration");
	} else {
		tell(g, c, NULL);
	}
	g->looked = true;
	look_in(g, fmax(g->config->look_s, g->back_off_s));
}

/* ---- from engine.c ---- */

void engine_look_release(struct engine *g)
{
	if (g->look)
		event_free(g->look);
	free(g->scope);
}

/* Looks at the clock of the wait, not of the loop, which does not run yet. */
void exec_engine_settle(void *self)
{
	struct engines *a = self;
	int64_t until_ns = clock_monotonic_ns() + (int64_t)(1e9 * SETTLE_S);

	for (size_t i = 0; i < a->n_engines; i++) {
		struct engine *g = a->engine[i];
		struct pollfd p = { .fd = orders_fd(engine_asks(g)), .events = POLLIN };

		on_look(-1, 0, g);
		while (g->looking && !g->looked && clock_monotonic_ns() < until_ns) {
			if (poll(&p, 1, 100) > 0)
				engine_take_returned(g, 0);
		}
	}
}

int engine_watch(struct engine *g, const struct config *c, struct err *err)
{
	bool is_watched = g->scope != NULL, watch;
	char *scope = NULL;

	watch = g->config && g->ops->look && g->config->look_s > 0.0 && c->executor &&
		!strcmp(c->executor, g->name);
	if (watch) {
		scope = scope_of(g->config, c);
		if (!g->look)
			g->look = event_new(g->all->base, -1, 0, on_look, g);
		if (!scope || !g->look) {
			free(scope);
			return err_nomem(err, "the look at the cluster of %s", g->name);
		}
	}
	free(g->scope);
	g->scope = scope;
	if (is_watched && !watch)
		tell(g, NULL, NULL);
	if (watch && !g->looking)
		look_in(g, 0.0);
	return 0;
}
