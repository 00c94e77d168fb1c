/* The thread that starts supervisors. See exec_local_spawner.h. */
#define _GNU_SOURCE
#include "scheduler/daemon/exec/spawner.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/mem.h"

/* Last in, first out, and only ever emptied as a whole: nobody takes the top off while somebody else looks below it,
 * which is what makes such a list hard to share. */
struct pile {
	_Atomic(struct spawn_order *) top;
};

struct spawner {
	pthread_t thread;
	bool runs;
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

static void ring(int fd)
{
	const uint64_t one = 1;

	/* Cannot fill up: its reader takes the whole count. */
	while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
		;
}

static void carry_out(struct spawner *s, struct spawn_order *o)
{
	enum spawn_state waiting = SPAWN_WAITING;

	if (!atomic_load(&s->leaving) && atomic_compare_exchange_strong(&o->state, &waiting, SPAWN_TAKEN))
		spawn_order_run(o, s->own_table);
	pile_put(&s->returned, o);
	ring(s->returned_fd);
}

/* Woken, a thread may be given the very cpu that its waker runs on, and then the loop waits for its turn all the same.
 * One of the batch class is not; where that cannot be had, the loop is slower at times. */
static void step_back(void)
{
	const struct sched_param none = { 0 };

	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
}

/* A child has all descriptors of the thread that made it until it is another program. Was the daemon killed in that
 * moment, its locks and its socket would live on there, and the next daemon would take it for alive. So this thread has
 * a table of its own, with nothing in it but what it needs. False: a kernel before 5.9. */
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
			drain(s->asked_fd); /* sleeps until it is rung */
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
	sigset_t all, before;
	int error;

	if (!s)
		return err_nomem(err, "the thread that starts jobs");
	s->asked_fd = eventfd(0, EFD_CLOEXEC);
	s->returned_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = s->asked_fd < 0 || s->returned_fd < 0 ? errno : 0;
	if (!error) {
		sigfillset(&all); /* signals are the loop's */
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&s->thread, NULL, run, s);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		s->runs = error == 0;
	}
	if (error) {
		spawner_free(s);
		return err_fail(err, ERR_IO, "cannot have a thread that starts jobs: %s", strerror(error));
	}
	*out = s;
	return 0;
}

void spawner_free(struct spawner *s)
{
	if (!s)
		return;
	if (s->runs) {
		atomic_store(&s->leaving, true);
		ring(s->asked_fd);
		pthread_join(s->thread, NULL);
	}
	list_free(pile_take(&s->asked));
	list_free(pile_take(&s->returned));
	if (s->asked_fd >= 0)
		close(s->asked_fd);
	if (s->returned_fd >= 0)
		close(s->returned_fd);
	free(s);
}

int spawner_fd(const struct spawner *s)
{
	return s->returned_fd;
}

void spawner_add(struct spawner *s, struct spawn_order *o)
{
	pile_put(&s->asked, o);
	ring(s->asked_fd);
}

bool spawner_withdraw(struct spawn_order *o)
{
	enum spawn_state waiting = SPAWN_WAITING;

	return atomic_compare_exchange_strong(&o->state, &waiting, SPAWN_WITHDRAWN);
}

struct spawn_order *spawner_returned(struct spawner *s)
{
	drain(s->returned_fd); /* first: what comes after it rings again */
	return pile_take(&s->returned);
}
