/* Queues longer than a decision looks at one by one: what is said of a job in them agrees with a walk through
 * the whole queue, and one question costs no more than in a short one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/rng.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/core/sched_bed.h"
#include "tests/unit/core/whole_order.h"

#define QUEUED 3000
#define TENANTS 7
#define CROWD 10000
#define ROUNDS 15

/* Weights that no two whole numbers of cpus bring together: at the same point the orders may differ. */
static const struct sched_tenant tenant[TENANTS] = {
	{ "a", .weight = 1.000137 }, { "b", .weight = 2.031713 }, { "c", .weight = 0.712937 },
	{ "d", .weight = 3.370319 }, { "e", .weight = 1.130973 }, { "f", .weight = 0.290531 },
	{ "g", .weight = 1.912391 },
};

/* Jobs with and without a promise, above and below priority 0, of tenants with odd weights. */
static void fill(struct bed *b, size_t n)
{
	struct sched_params p = params(b, "postrider", 8);
	struct rng r = rng_stream(5, 1);

	p.max_jobs = n + 100;
	remake(b, &p);
	assert_int_equal(sched_set_tenants(b->s, 0, tenant, TENANTS, NULL), 0);
	for (uint64_t id = 1; id <= n; id++) {
		struct sched_request q = job(b, id, rng_below(&r, 2) ? 1e6 + rng_below(&r, 1000) : NAN);

		q.tenant = rng_below(&r, TENANTS);
		q.cpus = 1 + rng_below(&r, 2);
		q.priority = rng_below(&r, 8) ? 0 : -1 - (int)rng_below(&r, 3);
		assert_int_not_equal(submit(b, 0, &q), SCHED_REJECTED);
		if (id <= 4)
			next(b, 0);
	}
}

TEST(test_positions_in_a_long_queue_are_those_of_the_whole_order)
{
	struct bed b;
	uint64_t id[QUEUED];
	struct sched_estimate *e = calloc(QUEUED, sizeof *e), one;
	size_t n, running;

	make(&b, "postrider", 8);
	fill(&b, QUEUED);
	running = sched_running(b.s);
	n = whole_estimates(b.s, 0, id, e, QUEUED);
	assert_int_equal(n, QUEUED);
	for (size_t i = running; i < n; i++) {
		struct sched_waiting w, listed;

		assert_int_equal(sched_waiting(b.s, 0, id[i], &w, NULL), 0);
		assert_int_equal(w.ahead, i - running);
		assert_int_equal(sched_estimate(b.s, 0, id[i], &one, NULL), 0);
		assert_int_equal(sched_waiting(b.s, 0, id[i], &listed, NULL), 0);
		assert_int_equal(listed.ahead, i - running);
		assert_int_equal(listed.why, w.why);
		/* the streams of sched_scene.c are good to 12 %, and so is what is built on them */
		assert_true(fabs(one.start_s - e[i].start_s) <= 0.12 * e[i].start_s + 1e-6);
		if (i - running < 500) /* the last that are played run beside nobody */
			near(one.end_s, e[i].end_s);
	}
	free(e);
	drop(&b);
}

/* A part that is merged from the middle of the order is that part of the order: estimates of single jobs play
 * what is around them, and must see the same neighbours whatever the way. */
TEST(test_estimates_in_a_long_queue_follow_the_whole_play)
{
	struct bed b;
	uint64_t id[QUEUED];
	struct sched_estimate *e = calloc(QUEUED, sizeof *e), one;
	size_t n;

	make(&b, "postrider", 8);
	fill(&b, QUEUED);
	n = whole_estimates(b.s, 0, id, e, QUEUED);
	for (size_t i = 0; i < n; i += 37) {
		assert_int_equal(sched_estimate(b.s, 0, id[i], &one, NULL), 0);
		assert_true(fabs(one.start_s - e[i].start_s) <= 0.12 * e[i].start_s + 1e-6);
	}
	free(e);
	drop(&b);
}

/* What other programs leave in the caches of a busy machine: nothing. */
static void empty_caches(void)
{
	static volatile char other[64 << 20];

	for (size_t i = 0; i < sizeof other; i += 64)
		other[i]++;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One slot, which job 1 has, and a job that waits of each of so many tenants. */
static void crowd(struct bed *b)
{
	struct sched_tenant *all = calloc(CROWD, sizeof *all);
	struct sched_params p;

	make(b, "postrider", 1);
	p = params(b, "postrider", 1);
	p.max_jobs = 2 * CROWD;
	remake(b, &p);
	for (size_t i = 0; i < CROWD; i++)
		all[i] = (struct sched_tenant){ .weight = 1.0 };
	assert_int_equal(sched_set_tenants(b->s, 0, all, CROWD, NULL), 0);
	free(all);
	for (uint64_t id = 1; id <= CROWD; id++) {
		struct sched_request q = job(b, id, NAN);

		q.tenant = (uint32_t)id - 1;
		q.cpus = 1;
		q.batch = &b128;
		q.n_batches = 1;
		assert_int_equal(submit(b, 0, &q), SCHED_BEST_EFFORT);
	}
	assert_int_equal(next(b, 0), 1);
}

/* With a job each, of 10,000 tenants, and caches that other programs have filled. */
TEST(test_ten_thousand_tenants_delay_no_event)
{
	struct bed b;
	double took_ms[4][ROUNDS];

	crowd(&b);
	for (int64_t k = 0; k < ROUNDS; k++) {
		struct sched_request q = job(&b, CROWD + 1 + (uint64_t)k, NAN);
		struct sched_estimate e;

		q.tenant = (uint32_t)(k * 499 % CROWD);
		q.cpus = 1;
		empty_caches();
		took_ms[0][k] = -1e-6 * (double)clock_thread_ns();
		submit(&b, k + 1, &q);
		took_ms[0][k] += 1e-6 * (double)clock_thread_ns();
		empty_caches();
		took_ms[1][k] = -1e-6 * (double)clock_thread_ns();
		assert_int_equal(next(&b, k + 1), 0);
		took_ms[1][k] += 1e-6 * (double)clock_thread_ns();
		empty_caches();
		took_ms[2][k] = -1e-6 * (double)clock_thread_ns();
		assert_int_equal(sched_estimate(b.s, (k + 1) * S, 9000, &e, NULL), 0);
		took_ms[2][k] += 1e-6 * (double)clock_thread_ns();
		empty_caches();
		took_ms[3][k] = -1e-6 * (double)clock_thread_ns();
		assert_int_equal(sched_remove(b.s, (k + 1) * S, 1 + (uint64_t)k, NULL), 0);
		assert_int_not_equal(next(&b, k + 1), 0); /* the next one starts */
		took_ms[3][k] += 1e-6 * (double)clock_thread_ns();
	}
	for (int i = 0; i < 4; i++) {
		qsort(took_ms[i], ROUNDS, sizeof(double), by_size);
		assert_true(took_ms[i][ROUNDS / 2] < 5.0);
	}
	drop(&b);
}

/* All of them have waited for a window: each gets its seat in the plan, a few at an event. */
TEST(test_ten_thousand_jobs_that_are_due_at_once_get_their_seats_in_small_parts)
{
	struct bed b;
	struct sched_request q;
	double longest_ms = 0.0;
	size_t n = 0;

	crowd(&b);
	q = job(&b, 2 * CROWD, 1e9);
	q.cpus = 1;
	assert_int_equal(submit(&b, 0, &q), SCHED_PROMISED); /* that others might harm */
	for (int64_t k = 0; k < ROUNDS; k++) {
		double took_ms = -1e-6 * (double)clock_thread_ns();

		assert_int_equal(next(&b, 4000 + k), 0);
		took_ms += 1e-6 * (double)clock_thread_ns();
		longest_ms = fmax(took_ms, longest_ms);
		assert_true(sched_looked(b.s) && sched_unfinished(b.s));
	}
	for (uint64_t id = 2; id <= CROWD; id++) {
		struct sched_waiting w;

		if (!sched_waiting(b.s, (4000 + ROUNDS) * S, id, &w, NULL))
			n += w.due;
	}
	assert_true(n > ROUNDS && n < CROWD);
	assert_true(longest_ms < 20.0 || sanitized());
	drop(&b);
}

/* In a queue as short as a decision sees it whole, the forecast is the estimate, to the bit. */
TEST(test_the_forecast_of_a_short_queue_is_the_estimate)
{
	struct bed b;
	uint64_t id[500];
	struct sched_estimate e[500], one;
	struct sched_waiting w, listed;
	size_t n;

	make(&b, "postrider", 8);
	fill(&b, 500);
	n = whole_estimates(b.s, 2 * S, id, e, 500);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sched_estimate(b.s, 2 * S, id[i], &one, NULL), 0);
		assert_int_equal(sched_waiting(b.s, 2 * S, id[i], &listed, NULL), 0);
		assert_memory_equal(&one.start_s, &e[i].start_s, sizeof one.start_s);
		assert_memory_equal(&one.end_s, &e[i].end_s, sizeof one.end_s);
		assert_int_equal(sched_waiting(b.s, 2 * S, id[i], &w, NULL), 0);
		assert_int_equal(listed.ahead, w.ahead);
	}
	assert_int_equal(sched_estimate(b.s, 2 * S, 9999, &one, NULL), -ERR_NOTFOUND);
	drop(&b);
}

/* What changed since is seen: no old play is handed out. */
TEST(test_the_forecast_follows_changes)
{
	struct bed b;
	struct sched_estimate before, after;
	struct sched_waiting w;

	make(&b, "postrider", 8);
	fill(&b, 1000);
	assert_int_equal(sched_estimate(b.s, 0, 1000, &before, NULL), 0);
	assert_int_equal(sched_waiting(b.s, 0, 1000, &w, NULL), 0);
	for (uint64_t id = 1; id <= 900; id++)
		sched_remove(b.s, 0, id, NULL);
	assert_int_equal(sched_estimate(b.s, 0, 1000, &after, NULL), 0);
	assert_int_equal(sched_waiting(b.s, 0, 1000, &w, NULL), 0);
	assert_true(after.end_s < before.end_s / 2.0);
	assert_true(w.ahead < 100);
	drop(&b);
}
