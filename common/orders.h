/* A queue of orders to one thread. Orders go to the thread and come back, carried out or not, in the order
 * they were added. Nothing is locked: a thread that the kernel puts to sleep while it holds a lock would hold
 * up the loop as well.
 *
 *	struct letter { struct order order; ... };       an order is the first member of what is to be done
 *	orders_start(&q, &work, "letters", err);         the loop waits for orders_fd(&q)
 *	orders_add(&q, &letter->order);
 *	for (list = orders_returned(&q); (o = order_next(&list));) ...     all of these are the loop's again
 *	orders_stop(&q);
 */
#ifndef COMMON_ORDERS_H
#define COMMON_ORDERS_H

#include <stdatomic.h>

#include "common/worker.h"

struct order {
	struct order *next;      /* the queue's */
};

struct orders {                  /* all zero: there is no thread */
	struct worker worker;
	const struct orders_work *work;
	atomic_bool leaving;
	_Atomic(struct order *) asked, returned; /* the newest first; only ever taken as a whole */
	int asked_fd, returned_fd;
};

struct orders_work {
	void (*begin)(struct orders *q); /* in the thread, before the first order; may be NULL */
	void (*carry_out)(struct orders *q, struct order *o); /* in the thread */
	void (*free)(struct order *o);
};

/* On failure nothing is left to be stopped. `what` is for the error, as in worker.h. */
int orders_start(struct orders *q, const struct orders_work *work, const char *what, struct err *err);
/* The order under way is waited for; of those that wait, none is carried out. All are freed. */
void orders_stop(struct orders *q);
static inline bool orders_leaving(const struct orders *q) /* for the thread: orders_stop() waits for it */
{
	return atomic_load(&q->leaving);
}

static inline int orders_fd(const struct orders *q) /* readable: orders came back */
{
	return q->returned_fd;
}
void orders_add(struct orders *q, struct order *o); /* takes it until it comes back */
struct order *orders_returned(struct orders *q); /* those that came back, the oldest first; to be freed */
struct order *order_next(struct order **list); /* takes the first off; NULL: that was all */

#endif
