/* common/heap: the smallest key first, equal keys in the order of their arrival. */
#include <stdlib.h>
#include <string.h>

#include "common/heap.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/support/test.h"

TEST(test_the_smallest_comes_out_first)
{
	static const double key[] = { 2.37, -1.5, 1e300, 0.0, 2.36, -1e300, 7.0 };
	struct heap h = { 0 };
	struct heap_entry e;
	double last = -1e301;

	assert_null(heap_top(&h));
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(heap_push(&h, key[i], i), 0);
	for (size_t left = 7; left > 0; left--) {
		assert_int_equal(h.n, left);
		assert_true(heap_top(&h)->key > last);
		assert_true(heap_pop(&h, &e));
		assert_true(e.key == key[e.payload] && e.key > last);
		last = e.key;
	}
	assert_false(heap_pop(&h, &e));
	heap_release(&h);
}

TEST(test_equal_keys_keep_their_order)
{
	struct heap h = { 0 };
	struct heap_entry e;

	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(heap_push(&h, (double)(i % 3), i), 0);
	for (uint32_t k = 0; k < 3; k++) {
		for (uint32_t i = k; i < 1000; i += 3) {
			assert_true(heap_pop(&h, &e));
			assert_int_equal(e.payload, i);
		}
	}
	heap_release(&h);
}

TEST(test_order_holds_when_the_counter_wraps)
{
	struct heap h = { .pushes = UINT32_MAX - 4 };
	struct heap_entry e;

	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(heap_push(&h, 2.37, i), 0);
	for (uint32_t i = 0; i < 10; i++) {
		assert_true(heap_pop(&h, &e));
		assert_int_equal(e.payload, i);
	}
	heap_release(&h);
}

/* What is in the heap, as a plain list searched from end to end. */
struct list {
	double key[600];
	uint32_t payload[600];
	size_t n;
};

static void list_take(struct list *l, double *key, uint32_t *payload)
{
	size_t least = 0;

	for (size_t i = 1; i < l->n; i++)
		if (l->key[i] < l->key[least])
			least = i;
	*key = l->key[least];
	*payload = l->payload[least];
	l->n--;
	memmove(&l->key[least], &l->key[least + 1], (l->n - least) * sizeof l->key[0]);
	memmove(&l->payload[least], &l->payload[least + 1], (l->n - least) * sizeof l->payload[0]);
}

TEST(test_any_mixture_of_calls_matches_a_plain_list)
{
	struct rng rng = rng_stream(3, 0);
	struct list *l = calloc(1, sizeof *l);
	struct heap h = { 0 };

	assert_non_null(l);
	for (uint32_t i = 0; i < 60000; i++) {
		double key = (double)rng_below(&rng, 40), want_key; /* few values: many ties */
		uint32_t what = rng_below(&rng, 100), want;
		struct heap_entry e;

		if (l->n < 600 && (what < 45 || !l->n)) {
			assert_int_equal(heap_push(&h, key, i), 0);
		} else if (what < 75) {
			list_take(l, &want_key, &want);
			assert_true(heap_pop(&h, &e));
			assert_true(e.key == want_key && e.payload == want);
			continue;
		} else {
			list_take(l, &want_key, &want);
			assert_true(heap_top(&h)->payload == want);
			heap_replace(&h, key, i);
		}
		l->key[l->n] = key;
		l->payload[l->n++] = i;
		if (i % 20000 == 19999) {
			heap_reset(&h);
			l->n = 0;
		}
		assert_int_equal(h.n, l->n);
	}
	heap_release(&h);
	free(l);
}

TEST(test_replacing_the_only_entry)
{
	struct heap h = { 0 };

	assert_int_equal(heap_push(&h, 1.0, 4), 0);
	heap_replace(&h, 9.5, 5);
	assert_int_equal(h.n, 1);
	assert_true(heap_top(&h)->key == 9.5 && heap_top(&h)->payload == 5);
	heap_release(&h);
}

TEST(test_reserved_room_needs_no_memory)
{
	struct heap h = { 0 };

	assert_int_equal(heap_reserve(&h, 100), 0);
	mem_fail_at(1, true);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(heap_push(&h, 100.0 - i, i), 0);
	assert_false(mem_failed());
	mem_fail_at(0, false);
	heap_release(&h);
}

TEST(test_a_failed_push_leaves_the_heap_as_it_was)
{
	struct heap h = { 0 };
	uint32_t n = 0;

	mem_fail_at(1, false);
	assert_int_equal(heap_push(&h, 1.0, 0), -1);
	assert_int_equal(h.n, 0);
	while (h.n < h.cap || !h.n)
		assert_int_equal(heap_push(&h, (double)n, n), 0), n++;
	mem_fail_at(1, false);
	assert_int_equal(heap_push(&h, -1.0, 77), -1);
	mem_fail_at(0, false);
	assert_int_equal(h.n, n);
	assert_int_equal(heap_top(&h)->payload, 0);
	assert_int_equal(heap_reserve(&h, SIZE_MAX / 8), -1);
	assert_int_equal(h.n, n);
	heap_release(&h);
	heap_release(&h);
	heap_release(NULL);
}
