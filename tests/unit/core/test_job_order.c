/* The order of jobs against a plain array: every question, on random histories of changes. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/core/job_order.h"
#include "tests/support/test.h"

#define PLACES 400

struct bed {
	struct rng rng;
	struct job_order o;
	uint32_t root;
	uint32_t place[PLACES]; /* in their order */
	size_t n;
	struct order_item item[PLACES]; /* by place */
	bool in[PLACES];
};

static struct order_item draw(struct rng *r)
{
	return (struct order_item){ .turn_ns = rng_below(r, 6) ? rng_below(r, 20) : JOB_ORDER_NEVER,
				    .wake_ns = rng_below(r, 3) ? JOB_ORDER_NEVER : rng_below(r, 30),
				    .slot_ns = UINT64_MAX - rng_below(r, 1000), /* sums need 128 bits */
				    .slot_cpus = rng_below(r, 5),
				    .cpus = 1 + rng_below(r, 8),
				    .devices = rng_below(r, 3),
				    .priority = (int)rng_below(r, 5) - 2,
				    .by_chance = rng_below(r, 2),
				    .unknown = rng_below(r, 9) == 0 };
}

static const struct order_item *at(const struct bed *b, size_t i)
{
	return &b->item[b->place[i]];
}

static void change(struct bed *b)
{
	uint32_t place = rng_below(&b->rng, PLACES);
	size_t i = 0;

	if (!b->in[place]) {
		i = rng_below(&b->rng, (uint32_t)b->n + 1);
		b->item[place] = draw(&b->rng);
		memmove(b->place + i + 1, b->place + i, (b->n++ - i) * sizeof *b->place);
		b->place[i] = place;
		b->in[place] = true;
		job_order_insert(&b->o, &b->root, i, place, &b->item[place]);
		return;
	}
	if (rng_below(&b->rng, 3) == 0) {
		b->item[place] = draw(&b->rng);
		job_order_change(&b->o, place, &b->item[place]);
		return;
	}
	while (b->place[i] != place)
		i++;
	assert_int_equal(job_order_position(&b->o, place), i);
	memmove(b->place + i, b->place + i + 1, (--b->n - i) * sizeof *b->place);
	b->in[place] = false;
	job_order_remove(&b->o, &b->root, place);
}

static void compare_sums(const struct bed *b, size_t n)
{
	struct order_sum sum = job_order_sum(&b->o, b->root, n), expected = { 0 };

	for (size_t i = 0; i < n; i++) {
		expected.slot_ns += at(b, i)->slot_ns;
		expected.slot_cpus += at(b, i)->slot_cpus;
		expected.cpus += at(b, i)->cpus;
		expected.n++;
		expected.n_by_chance += at(b, i)->by_chance;
		expected.n_unknown += at(b, i)->unknown;
	}
	assert_true(sum.slot_ns == expected.slot_ns);
	assert_int_equal(sum.slot_cpus, expected.slot_cpus);
	assert_int_equal(sum.cpus, expected.cpus);
	assert_int_equal(sum.n, expected.n);
	assert_int_equal(sum.n_by_chance, expected.n_by_chance);
	assert_int_equal(sum.n_unknown, expected.n_unknown);
}

static void compare_searches(struct bed *b)
{
	size_t from = rng_below(&b->rng, (uint32_t)b->n + 2), later, narrow, below, plain, bare, woken;
	int priority = (int)rng_below(&b->rng, 7) - 3;
	int64_t ns = rng_below(&b->rng, 32);
	uint32_t cpus = rng_below(&b->rng, 9);

	for (later = from; later < b->n; later++)
		if (at(b, later)->priority < priority ||
		    (at(b, later)->priority == priority && at(b, later)->turn_ns > ns))
			break;
	for (narrow = from; narrow < b->n && at(b, narrow)->cpus > cpus;)
		narrow++;
	for (bare = from; bare < b->n && (at(b, bare)->cpus > cpus || at(b, bare)->devices);)
		bare++;
	for (woken = from; woken < b->n && at(b, woken)->wake_ns > ns;)
		woken++;
	for (below = 0; below < b->n && at(b, below)->priority >= 0;)
		below++;
	for (plain = 0; plain < b->n && at(b, plain)->by_chance;)
		plain++;
	assert_int_equal(job_order_later(&b->o, b->root, from, priority, ns), later < b->n ? later : b->n);
	assert_int_equal(job_order_narrow(&b->o, b->root, from, cpus, false), narrow < b->n ? narrow : b->n);
	assert_int_equal(job_order_narrow(&b->o, b->root, from, cpus, true), bare < b->n ? bare : b->n);
	assert_int_equal(job_order_woken(&b->o, b->root, from, ns), woken < b->n ? woken : b->n);
	assert_int_equal(job_order_below(&b->o, b->root), below);
	assert_int_equal(job_order_not_by_chance(&b->o, b->root), plain);
}

static void compare_scale(struct bed *b)
{
	const struct order_scale scale = { .start = 2.5, .step = 1.25 };
	size_t from = rng_below(&b->rng, (uint32_t)b->n + 1);
	size_t to = from + rng_below(&b->rng, (uint32_t)(b->n - from) + 1), n = 0;
	double point = 2.5 + 1.25 * rng_below(&b->rng, 200), own = scale.start;
	bool including = rng_below(&b->rng, 2);

	for (size_t i = from; i < to && (own < point || (including && own == point)); i++, n++)
		own += scale.step * at(b, i)->cpus; /* exact: the numbers are small */
	assert_int_equal(job_order_until(&b->o, b->root, from, to, &scale, point, including), n);
}

TEST(test_order_agrees_with_a_plain_array)
{
	struct bed b = { .rng = rng_stream(1, 3), .root = JOB_ORDER_NONE };

	assert_int_equal(job_order_init(&b.o, PLACES), 0);
	for (int round = 0; round < 20000; round++) {
		change(&b);
		assert_int_equal(job_order_size(&b.o, b.root), b.n);
		compare_sums(&b, rng_below(&b.rng, (uint32_t)b.n + 1));
		compare_searches(&b);
		compare_scale(&b);
		if (b.n) {
			size_t i = rng_below(&b.rng, (uint32_t)b.n);

			assert_int_equal(job_order_at(&b.o, b.root, i), b.place[i]);
			assert_int_equal(job_order_position(&b.o, b.place[i]), i);
		}
	}
	assert_int_equal(job_order_at(&b.o, b.root, b.n), JOB_ORDER_NONE);
	job_order_release(&b.o);
}

/* Jobs that come at the end, leave at the front, or stand in one direction must not make a list of it. */
TEST(test_order_stays_shallow)
{
	struct job_order o;
	uint32_t root = JOB_ORDER_NONE;
	const struct order_item item = { .cpus = 1 };
	enum { N = 1 << 17 };
	struct rng r = rng_stream(4, 0);

	assert_int_equal(job_order_init(&o, N), 0);
	for (uint32_t i = 0; i < N; i++)
		job_order_insert(&o, &root, i, i, &item);
	/* a walk to each job costs its depth: a list of so many would take minutes */
	for (int i = 0; i < 200000; i++) {
		uint32_t place = rng_below(&r, N);

		assert_int_equal(job_order_position(&o, place), place);
	}
	for (uint32_t i = 0; i < N - 1; i++)
		job_order_remove(&o, &root, i);
	assert_int_equal(job_order_at(&o, root, 0), N - 1);
	job_order_release(&o);
}

TEST(test_order_says_that_there_is_no_memory)
{
	struct job_order o;

	mem_fail_at(1, false);
	assert_int_equal(job_order_init(&o, 10), -1);
	mem_fail_at(0, false);
	job_order_release(&o);
}
