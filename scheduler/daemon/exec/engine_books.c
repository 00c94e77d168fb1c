/* Asking the accounting of an engine about a job that is over and whose record is not there: end state, exit
 * code and times, where the engine keeps books. See engine_job.h. */
#include "scheduler/daemon/exec/engine_job.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct past_answer {
	const struct engine_ops *ops;
	bool found;
	struct engine_past past;
};

/* In the thread. The last line counts: the newest of several jobs that had the number. */
static void read_books(struct errand *e)
{
	struct past_answer *a = e->result;
	struct engine_past past;
	char *at = e->output.text;

	if (e->err.code || e->exit_code || !at)
		return;
	for (char *line; (line = strsep(&at, "\n"));) {
		if (!a->ops->past_line(line, &past))
			continue;
		a->past = past;
		a->found = true;
	}
}

bool engine_ask_books(struct engine_job *j)
{
	struct engine *g = j->engine;
	struct engine_call c = { 0 };
	struct past_answer *a;
	struct errand *e = NULL;
	struct err err = { 0 };

	if (j->books != BOOKS_CLOSED)
		return j->books == BOOKS_ASKED;
	j->books = BOOKS_READ; /* whatever fails below: nothing is known */
	if (!g->config || !g->ops->past || !j->id[0])
		return false;
	a = mem_calloc(1, sizeof *a);
	if (a && !g->ops->past(g->config, j->run->id, j->run->identity, j->id, &c, &err))
		e = engine_errand(g, ERRAND_PAST, j, &c);
	if (!e) {
		engine_call_release(&c);
		free(a);
		return false;
	}
	a->ops = g->ops;
	e->result = a;
	e->after = read_books;
	j->errand = e;
	j->books = BOOKS_ASKED;
	orders_add(engine_asks(g), &e->order);
	return true;
}

void engine_books_read(struct engine *g, struct errand *e)
{
	const struct past_answer *a = e->result;
	struct engine_job *j = e->owner;

	if (!j)
		return;
	j->errand = NULL;
	j->books = BOOKS_READ;
	if (a->found)
		j->past = a->past;
	engines_tick(g->all, 0);
}
