/* Asking an engine about all jobs with one call, and noting what it says about each. See engine_job.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/engine_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"

struct poll_lines {
	const struct engine_ops *ops;
	uint64_t number;
	size_t n;
	struct engine_line line[];
};

static int by_identity(const void *a, const void *b)
{
	const struct engine_line *x = a, *y = b;
	int order = strcmp(x->identity, y->identity);

	/* Of two that are one job the one that lives counts, and of two that have ended the later one. */
	if (!order)
		order = (int)(x->word >= ENGINE_ENDED) - (int)(y->word >= ENGINE_ENDED);
	if (!order && strlen(x->id) != strlen(y->id))
		return strlen(x->id) > strlen(y->id) ? -1 : 1;
	return order ? order : strcmp(y->id, x->id);
}

static size_t count_lines(const char *s)
{
	size_t n = 1;

	for (; (s = strchr(s, '\n')); s++)
		n++;
	return n;
}

/* In the thread: a cluster has many jobs. */
static void read_lines(struct errand *e)
{
	struct poll_lines *asked = e->result, *p;
	char *at = e->output.text;

	if (e->err.code || e->exit_code || !at)
		return;
	p = mem_resize(asked, 1, sizeof *p + count_lines(at) * sizeof p->line[0]);
	if (!p) {
		err_nomem(&e->err, "the jobs of an engine");
		return;
	}
	e->result = p;
	for (char *line; (line = strsep(&at, "\n"));)
		p->n += p->ops->line(line, &p->line[p->n]);
	qsort(p->line, p->n, sizeof p->line[0], by_identity);
	for (size_t i = p->n; i-- > 1;) { /* of several with one identity the first stays */
		if (!strcmp(p->line[i].identity, p->line[i - 1].identity))
			memmove(&p->line[i], &p->line[i + 1], (--p->n - i) * sizeof p->line[0]);
	}
}

bool engine_needs_poll(const struct engine *g)
{
	for (size_t i = 0; i < g->all->n_jobs; i++) {
		const struct engine_job *j = g->all->job[i];

		if (j->engine == g && (j->hand == THERE || j->hand == UNSURE) && j->word < ENGINE_ENDED)
			return true;
	}
	return false;
}

void engine_ask(struct engine *g)
{
	struct poll_lines *p = mem_calloc(1, sizeof *p);
	struct engine_call c = { 0 };
	struct errand *e = NULL;
	struct err err = { 0 };

	if (p && !g->ops->poll(g->config, &c, &err))
		e = engine_errand(g, ERRAND_POLL, NULL, &c);
	if (!e) {
		engine_call_release(&c);
		free(p);
		return; /* the next tick tries again */
	}
	p->ops = g->ops;
	p->number = ++g->n_polls;
	e->result = p;
	e->after = read_lines;
	g->polling = true;
	orders_add(engine_asks(g), &e->order);
}

static void judge(struct engine_job *j, const struct poll_lines *p, int64_t now_ns)
{
	struct engine_line key = { .word = ENGINE_UNKNOWN };
	const struct engine_line *l = NULL;
	size_t low = 0, high = p->n;

	if (j->hand != THERE && j->hand != UNSURE)
		return;
	memcpy(key.identity, j->run->identity, sizeof key.identity);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(key.identity, p->line[middle].identity);

		if (!order) {
			l = &p->line[middle];
			break;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (!l) { /* only a poll that began after it was submitted can miss it */
		if (p->number >= j->counts_from)
			j->missing++;
		return;
	}
	j->missing = 0;
	j->hand = THERE;
	snprintf(j->id, sizeof j->id, "%s", l->id);
	snprintf(j->said, sizeof j->said, "%s", l->said);
	j->word = l->word;
	j->placed = l->placed;
	if (l->word < ENGINE_ENDED)
		j->over_ns = 0; /* an engine may take a job up again */
	else if (!j->over_ns)
		j->over_ns = now_ns;
	if (j->word == ENGINE_WAITS && j->run->state != LOCAL_RUNNING)
		engine_tell_waits(j, "waiting for %s: %s", j->engine->name, j->said);
}

void engine_polled(struct engine *g, struct errand *e)
{
	struct engines *a = g->all;
	int64_t now_ns = clock_monotonic_ns();
	char why[sizeof g->away];

	g->polling = false;
	g->poll_at_ns = now_ns + (int64_t)(1e9 * (g->config ? fmax(g->config->poll_s, g->back_off_s) : 1.0));
	if (e->err.code || e->exit_code) {
		snprintf(why, sizeof why, "%.200s",
			 e->err.code  ? e->err.text
			 : e->said[0] ? e->said
				      : "it does not say what jobs it has");
		engine_is_away(g, why);
		g->mute = true;
		return;
	}
	if (g->mute) /* what a submit complained of is for the next submit to find out */
		engine_is_back(g);
	g->mute = false;
	for (size_t i = 0; i < a->n_jobs; i++) {
		if (a->job[i]->engine == g)
			judge(a->job[i], e->result, now_ns);
	}
	engines_tick(a, 0);
}
