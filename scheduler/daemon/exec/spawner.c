/* The thread that starts supervisors. See exec_local_spawner.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/spawner.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/worker.h"

/* Last in, first out, and only ever emptied as a whole: nobody takes the top off while somebody else looks
 * below it, which is what makes such a list hard to share. */
struct pile {
	_Atomic(struct spawn_order *) top;
};

struct spawner {
	struct worker worker;
	atomic_bool leaving;
	struct pile asked, returned;
	int asked_fd, returned_fd; /* eventfds: there is something on the pile */
	bool own_table; /* the thread's: of descriptors */
};

/* ---- piles ---- */

static void pile_put(struct pile *p, struct spawn_order *o)
{
	struct spawn_order *top = atomic_load(&p->top);

	do {
		o->next = top;
	} while (!atomic_compare_exchange_weak(&p->top, &top, o));
}

/* All of it, the oldest first. */
static struct spawn_order *pile_take(struct pile *p)
{
	struct spawn_order *o = atomic_exchange(&p->top, NULL), *oldest = NULL;

	while (o) {
		struct spawn_order *next = o->next;

		o->next = oldest;
		oldest = o;
		o = next;
	}
	return oldest;
}

static void list_free(struct spawn_order *o)
{
	while (o) {
		struct spawn_order *next = o->next;

		spawn_order_free(o);
		o = next;
	}
}

/* ---- the thread ---- */

static void carry_out(struct spawner *s, struct spawn_order *o)
{
	enum spawn_state waiting = SPAWN_WAITING;

	if (!atomic_load(&s->leaving) && atomic_compare_exchange_strong(&o->state, &waiting, SPAWN_TAKEN))
		spawn_order_run(o, s->own_table);
	pile_put(&s->returned, o);
	bell_ring(s->returned_fd);
}

/* Woken, a thread may be given the very cpu that its waker runs on, and then the loop waits for its turn all
 * the same. One of the batch class is not; where that cannot be had, the loop is slower at times. */
static void step_back(void)
{
	const struct sched_param none = { 0 };

	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
}

/* A child has all descriptors of the thread that made it until it is another program. Was the daemon killed
 * in that moment, its locks and its socket would live on there, and the next daemon would take it for alive.
 * So this thread has a table of its own, with nothing in it but what it needs. False: a kernel before 5.9. */
static bool leave_table(const struct spawner *s)
{
	unsigned low = (unsigned)s->asked_fd, high = (unsigned)s->returned_fd;

	if (low > high) {
		low = high;
		high = (unsigned)s->asked_fd;
	}
	if (close_range(high + 1, UINT_MAX, CLOSE_RANGE_UNSHARE))
		return false;
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, low - 1, 0);
	return true;
}

static void *run(void *self)
{
	struct spawner *s = self;

	step_back();
	s->own_table = leave_table(s);
	while (!atomic_load(&s->leaving)) {
		struct spawn_order *o = pile_take(&s->asked);

		if (!o)
			bell_clear(s->asked_fd); /* sleeps until it is rung */
		while (o) {
			struct spawn_order *next = o->next; /* once returned, it is not ours */

			carry_out(s, o);
			o = next;
		}
	}
	return NULL;
}

/* ---- the loop's side ---- */

int spawner_new(struct spawner **out, struct err *err)
{
	struct spawner *s = mem_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return err_nomem(err, "the thread that starts jobs");
	s->asked_fd = s->returned_fd = -1;
	if ((rc = bell_new(&s->asked_fd, false, "starting jobs", err)) ||
	    (rc = bell_new(&s->returned_fd, true, "starting jobs", err)) ||
	    (rc = worker_start(&s->worker, run, s, "starting jobs", err))) {
		spawner_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void spawner_free(struct spawner *s)
{
	if (!s)
		return;
	atomic_store(&s->leaving, true);
	if (s->worker.runs)
		bell_ring(s->asked_fd);
	worker_join(&s->worker);
	list_free(pile_take(&s->asked));
	list_free(pile_take(&s->returned));
	bell_free(&s->asked_fd);
	bell_free(&s->returned_fd);
	free(s);
}

int spawner_fd(const struct spawner *s)
{
	return s->returned_fd;
}

void spawner_add(struct spawner *s, struct spawn_order *o)
{
	pile_put(&s->asked, o);
	bell_ring(s->asked_fd);
}

bool spawner_withdraw(struct spawn_order *o)
{
	enum spawn_state waiting = SPAWN_WAITING;

	return atomic_compare_exchange_strong(&o->state, &waiting, SPAWN_WITHDRAWN);
}

struct spawn_order *spawner_returned(struct spawner *s)
{
	bell_clear(s->returned_fd); /* first: what comes after it rings again */
	return pile_take(&s->returned);
}
