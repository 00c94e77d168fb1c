/* A queue of orders to one thread. See orders.h. */
#include "common/orders.h"

/* The list is last in, first out. It is only emptied as a whole, so no thread takes the top off while another
 * one looks below it. That would make such a list hard to share. */
static void put(_Atomic(struct order *) *list, struct order *o)
{
	struct order *top = atomic_load(list);

	do
		o->next = top;
	while (!atomic_compare_exchange_weak(list, &top, o));
}

/* All of it, the oldest first. */
static struct order *take(_Atomic(struct order *) *list)
{
	struct order *o = atomic_exchange(list, NULL), *oldest = NULL;

	while (o) {
		struct order *next = o->next;

		o->next = oldest;
		oldest = o;
		o = next;
	}
	return oldest;
}

struct order *order_next(struct order **list)
{
	struct order *first = *list;

	if (first)
		*list = first->next;
	return first;
}

static void *run(void *self)
{
	struct orders *q = self;

	if (q->work->begin)
		q->work->begin(q);
	while (!orders_leaving(q)) {
		struct order *list = take(&q->asked), *o;

		if (!list)
			bell_clear(q->asked_fd); /* sleeps until it is rung */
		while ((o = order_next(&list))) {
			if (!orders_leaving(q))
				q->work->carry_out(q, o);
			put(&q->returned, o);
			bell_ring(q->returned_fd);
		}
	}
	return NULL;
}

int orders_start(struct orders *q, const struct orders_work *work, const char *what, struct err *err)
{
	int rc;

	*q = (struct orders){ .work = work, .asked_fd = -1, .returned_fd = -1 };
	if (!(rc = bell_new(&q->asked_fd, false, what, err)) &&
	    !(rc = bell_new(&q->returned_fd, true, what, err)))
		rc = worker_start(&q->worker, run, q, what, err);
	if (rc) {
		bell_free(&q->asked_fd);
		bell_free(&q->returned_fd);
	}
	return rc;
}

static void free_all(const struct orders *q, struct order *list)
{
	for (struct order *o; (o = order_next(&list));)
		q->work->free(o);
}

void orders_stop(struct orders *q)
{
	if (!q->worker.runs)
		return;
	atomic_store(&q->leaving, true);
	bell_ring(q->asked_fd);
	worker_join(&q->worker);
	free_all(q, take(&q->asked));
	free_all(q, take(&q->returned));
	bell_free(&q->asked_fd);
	bell_free(&q->returned_fd);
}

void orders_add(struct orders *q, struct order *o)
{
	put(&q->asked, o);
	bell_ring(q->asked_fd);
}

struct order *orders_returned(struct orders *q)
{
	bell_clear(q->returned_fd); /* first: what comes after it rings again */
	return take(&q->returned);
}
