/* Executors without processes: what a job does is in the records. See replayed.h. */
#include "scheduler/daemon/verify/replayed.h"

static int create(struct event_base *base, const struct executor_sink *sink, void **out_self, struct err *err)
{
	(void)base;
	(void)err;
	*out_self = sink->owner; /* the daemon */
	return 0;
}

static int start(void *self, const struct exec_job *j, struct err *err)
{
	(void)self;
	(void)j;
	(void)err;
	return 0;
}

static int stop(void *self, uint64_t id, double grace_s, struct err *err)
{
	(void)self;
	(void)id;
	(void)grace_s;
	(void)err;
	return 0;
}

static int adopt(void *self, const struct exec_job *j, bool *out_unstarted, struct err *err)
{
	const struct daemon *d = self;
	const struct played *p = d->params.played;

	(void)err;
	*out_unstarted = false;
	for (size_t i = 0; i < p->n_unstarted; i++)
		*out_unstarted |= p->unstarted[i] == j->id;
	return 0;
}

static size_t running(const void *self)
{
	(void)self;
	return 0;
}

static void destroy(void *self)
{
	(void)self;
}

#define PLAYED(NAME)                                                                                         \
	{                                                                                                    \
		.name = NAME, .create = create, .start = start, .stop = stop, .adopt = adopt,                \
		.running = running, .destroy = destroy                                                       \
	}
static const struct executor_ops played_run = PLAYED("run"), played_advise = PLAYED("advise");

const struct executor_ops *const executor_played[] = { &played_run, &played_advise, NULL };
