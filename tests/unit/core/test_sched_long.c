/* Queues longer than a decision looks at one by one: what is said of a job in them agrees with a walk through
 * the whole queue, and one question costs no more than in a short one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "tests/support/test.h"
#include "tests/unit/core/sched_bed.h"
#include "tests/unit/core/whole_order.h"

#define QUEUED 3000
#define TENANTS 7

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
