/* common/orders: every order comes back once, in the order they were added; those that wait when the queue
 * stops are not carried out, and all are freed. Also run by `make tsan`. */
#include "common/orders.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/support/test.h"

#define N 2000

struct letter {
	struct order order; /* first */
	int number, answer;
	bool hold; /* carrying it out takes until the queue is stopped */
};

struct post {
	struct orders orders; /* first */
	pthread_t by;
	int n_begun, n_carried;
};

static int n_freed;

static void begin(struct orders *q)
{
	struct post *p = (struct post *)q;

	p->by = pthread_self();
	p->n_begun++;
}

static void carry_out(struct orders *q, struct order *o)
{
	struct post *p = (struct post *)q;
	struct letter *l = (struct letter *)o;

	while (l->hold && !orders_leaving(q))
		usleep(1000);
	l->answer = p->n_begun && pthread_equal(p->by, pthread_self()) ? 3 * l->number : -1;
	p->n_carried++;
}

static void free_letter(struct order *o)
{
	n_freed++;
	free(o);
}

static const struct orders_work work = { begin, carry_out, free_letter };

static struct letter *letter_new(int number)
{
	struct letter *l = mem_calloc(1, sizeof *l);

	assert_non_null(l);
	l->number = number;
	return l;
}

TEST(test_orders_come_back_once_in_the_order_they_were_added)
{
	struct post p = { .n_begun = 0 };
	struct pollfd wait = { .events = POLLIN };
	int added = 0, back = 0;

	assert_int_equal(orders_start(&p.orders, &work, "a test", NULL), 0);
	wait.fd = orders_fd(&p.orders);
	while (back < N) {
		struct order *list, *o;

		for (int burst = 0; burst < 37 && added < N; burst++)
			orders_add(&p.orders, &letter_new(added++)->order);
		assert_int_equal(poll(&wait, 1, 60000), 1);
		for (list = orders_returned(&p.orders); (o = order_next(&list));) {
			const struct letter *l = (const struct letter *)o;

			assert_int_equal(l->number, back);
			assert_int_equal(l->answer, 3 * back);
			back++;
			free(o);
		}
	}
	assert_null(orders_returned(&p.orders));
	assert_int_equal(poll(&wait, 1, 0), 0);
	n_freed = 0;
	orders_stop(&p.orders);
	assert_int_equal(n_freed, 0);
	assert_int_equal(p.n_begun, 1);
	assert_int_equal(p.n_carried, N);
}

TEST(test_orders_that_wait_at_the_stop_are_freed_and_not_carried_out)
{
	struct post p = { .n_begun = 0 };
	struct letter *first = letter_new(1);

	first->hold = true;
	n_freed = 0;
	assert_int_equal(orders_start(&p.orders, &work, "a test", NULL), 0);
	orders_add(&p.orders, &first->order);
	for (int i = 0; i < 20; i++)
		orders_add(&p.orders, &letter_new(i)->order);
	orders_stop(&p.orders);
	assert_true(p.n_carried <= 1); /* none, where the thread had not got to the first */
	assert_int_equal(n_freed, 21);
	orders_stop(&p.orders); /* there is none any more */
	assert_int_equal(n_freed, 21);
}

TEST(test_orders_that_cannot_start_leave_nothing_behind)
{
	struct post p = { .n_begun = 0 };
	struct rlimit before, few;
	struct err err = { 0 };
	int lowest = dup(STDERR_FILENO);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int room = 0; room < 2; room++) { /* for none of the two bells, for the first alone */
		few = (struct rlimit){ .rlim_cur = (rlim_t)(lowest + room), .rlim_max = before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(orders_start(&p.orders, &work, "a test", &err), -ERR_IO);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_non_null(strstr(err.text, "a test"));
		assert_int_equal(dup(STDERR_FILENO), lowest);
		close(lowest);
		orders_stop(&p.orders);
	}
	assert_int_equal(p.n_begun, 0);
}
