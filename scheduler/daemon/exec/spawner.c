/* The thread that starts supervisors. See spawner.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/spawner.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"

struct spawner {
	struct orders orders; /* first */
	bool own_table; /* the thread's: of descriptors */
};

/* A thread that is woken may get the cpu on which the loop runs, and then the loop has to wait for it. A
 * thread of the batch class does not get it; where that class is not available, the loop is slower at
 * times. */
static void step_back(void)
{
	const struct sched_param none = { 0 };

	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
}

/* A child has all descriptors of the thread that made it until it becomes another program. If the daemon were
 * killed in that moment, its locks and its socket would live on there, and the next daemon would think that
 * it is alive. So this thread has its own table of descriptors, with only those that it needs. False: a
 * kernel before 5.9. */
static bool leave_table(const struct orders *q)
{
	unsigned low = (unsigned)q->asked_fd, high = (unsigned)q->returned_fd;

	if (low > high) {
		low = high;
		high = (unsigned)q->asked_fd;
	}
	if (close_range(high + 1, UINT_MAX, CLOSE_RANGE_UNSHARE))
		return false;
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, low - 1, 0);
	return true;
}

static void begin(struct orders *q)
{
	step_back();
	((struct spawner *)q)->own_table = leave_table(q);
}

static void carry_out(struct orders *q, struct order *order)
{
	struct spawn_order *o = (struct spawn_order *)order;
	enum spawn_state waiting = SPAWN_WAITING;

	if (atomic_compare_exchange_strong(&o->state, &waiting, SPAWN_TAKEN))
		spawn_order_run(o, ((struct spawner *)q)->own_table);
}

static void free_order(struct order *o)
{
	spawn_order_free((struct spawn_order *)o);
}

int spawner_new(struct spawner **out, struct err *err)
{
	static const struct orders_work work = { begin, carry_out, free_order };
	struct spawner *s = mem_calloc(1, sizeof *s);
	int rc = s ? orders_start(&s->orders, &work, "starting jobs", err)
		   : err_nomem(err, "the thread that starts jobs");

	if (rc) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void spawner_free(struct spawner *s)
{
	if (s)
		orders_stop(&s->orders);
	free(s);
}

struct orders *spawner_orders(struct spawner *s)
{
	return &s->orders;
}

bool spawner_withdraw(struct spawn_order *o)
{
	enum spawn_state waiting = SPAWN_WAITING;

	return atomic_compare_exchange_strong(&o->state, &waiting, SPAWN_WITHDRAWN);
}
