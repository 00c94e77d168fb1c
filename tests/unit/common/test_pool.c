/* common/pool: every index once, the same results for any number of threads, nothing that a thread
 * sanitizer objects to. Also run by `make tsan`. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pool.h"
#include "common/rng.h"
#include "tests/support/test.h"

#define MAX_TURNS 1000

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

static struct pool *new_pool(size_t n_threads)
{
	struct pool *p = NULL;
	struct err err = { 0 };

	if (pool_new(n_threads, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

/* A turn that draws from the stream of its index and uses the scratch of its worker. */
struct work {
	uint64_t round;
	uint64_t result[MAX_TURNS];
	unsigned char times[MAX_TURNS];
	uint64_t scratch[8]; /* one per worker: a worker number given to two threads shows as a race */
	size_t n_workers;
};

static void draw_turn(void *ctx, size_t i, size_t worker)
{
	struct work *w = ctx;
	struct rng r = rng_stream(w->round, i);

	if (worker >= w->n_workers)
		abort();
	w->scratch[worker] = rng_next(&r);
	for (int k = 0; k < 5; k++)
		w->scratch[worker] ^= rng_next(&r);
	w->result[i] = w->scratch[worker];
	w->times[i]++;
}

TEST(test_pool_results_do_not_depend_on_the_number_of_threads)
{
	static const size_t n_threads[] = { 1, 2, 8 };
	static const size_t n_turns[] = { 2, 3, 7, 64, 997 };
	static struct work alone, shared;

	for (size_t t = 0; t < 3; t++) {
		struct pool *p = new_pool(n_threads[t]);

		assert_int_equal(pool_threads(p), n_threads[t]);
		for (uint64_t round = 0; round < 300; round++) {
			size_t n = n_turns[round % 5];

			memset(&alone, 0, sizeof alone);
			memset(&shared, 0, sizeof shared);
			alone.round = shared.round = round;
			alone.n_workers = 1;
			shared.n_workers = n_threads[t];
			pool_run(NULL, n, draw_turn, &alone);
			pool_run(p, n, draw_turn, &shared);
			assert_memory_equal(alone.result, shared.result, sizeof alone.result);
			for (size_t i = 0; i < MAX_TURNS; i++)
				assert_int_equal(shared.times[i], i < n);
		}
		pool_free(p);
	}
}

TEST(test_pool_runs_nothing_for_no_turns_and_one_for_one)
{
	static struct work w;
	struct pool *p = new_pool(3);

	memset(&w, 0, sizeof w);
	w.n_workers = 3;
	pool_run(p, 0, draw_turn, &w);
	assert_int_equal(w.times[0], 0);
	pool_run(p, 1, draw_turn, &w);
	assert_int_equal(w.times[0], 1);
	assert_int_equal(w.times[1], 0);
	pool_run(NULL, 0, draw_turn, &w);
	pool_run(NULL, 1, draw_turn, &w);
	assert_int_equal(w.times[0], 2);
	pool_free(p);
}

struct nest {
	struct pool *pool;
	atomic_uint inner[13][17];
};

struct inner {
	struct nest *nest;
	size_t outer;
};

static void inner_turn(void *ctx, size_t i, size_t worker)
{
	struct inner *in = ctx;

	(void)worker;
	atomic_fetch_add(&in->nest->inner[in->outer][i], (unsigned)(in->outer * 100 + i));
}

static void outer_turn(void *ctx, size_t i, size_t worker)
{
	struct inner in = { ctx, i };

	(void)worker;
	pool_run(in.nest->pool, 17, inner_turn, &in);
}

TEST(test_pool_a_run_inside_a_turn_runs_inline)
{
	static struct nest nest;

	for (size_t n_threads = 1; n_threads <= 4; n_threads++) {
		memset(&nest, 0, sizeof nest);
		nest.pool = new_pool(n_threads);
		for (int round = 0; round < 50; round++)
			pool_run(nest.pool, 13, outer_turn, &nest);
		for (size_t o = 0; o < 13; o++)
			for (size_t i = 0; i < 17; i++)
				assert_int_equal(atomic_load(&nest.inner[o][i]), 50 * (o * 100 + i));
		pool_free(nest.pool);
	}
}

TEST(test_pool_accepts_null_where_there_is_no_pool)
{
	assert_int_equal(pool_threads(NULL), 1);
	pool_free(NULL);
}

TEST(test_pool_of_default_size_follows_the_environment)
{
	struct pool *p;

	assert_int_equal(setenv("POSTRIDER_THREADS", "3", 1), 0);
	p = new_pool(0);
	assert_int_equal(pool_threads(p), 3);
	pool_free(p);
	/* nonsense falls back to what the process may use */
	assert_int_equal(setenv("POSTRIDER_THREADS", "many", 1), 0);
	p = new_pool(0);
	assert_true(pool_threads(p) >= 1);
	pool_free(p);
	assert_int_equal(unsetenv("POSTRIDER_THREADS"), 0);
}

TEST(test_pool_new_and_free_without_work_in_between)
{
	for (int i = 0; i < 50; i++)
		pool_free(new_pool(4));
}

TEST_WITH(test_pool_new_survives_every_failed_allocation, NULL, disarm)
{
	unsigned long k;

	for (k = 1;; k++) {
		struct pool *p = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = pool_new(4, &p, &err);
		if (!mem_failed()) {
			assert_int_equal(rc, 0);
			pool_free(p);
			break;
		}
		assert_int_equal(rc, -ERR_NOMEM);
		assert_int_equal(err.code, ERR_NOMEM);
		assert_null(p);
	}
	assert_true(k > 3); /* the pool, its threads, an argument for each */
}
