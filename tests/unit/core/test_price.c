/* The price of capacity: none on an idle machine, more where more jobs come, and the same for the same
 * arrivals. The machine: 4 cores that up to 40 jobs share; jobs that take 100 s with an accuracy
 * of 0.95, or 40 s with 0.9. */
#include <math.h>

#include "common/mem.h"
#include "scheduler/core/policy/price.h"
#include "tests/support/test.h"

static const struct fluid_machine four = { .cores = 4.0, .disk_saturation = INFINITY, .slots = 40 };

static struct price_arrival job_at(double at_s, uint32_t cpus)
{
	return (struct price_arrival){ .at_ns = (int64_t)(at_s * 1e9),
				       .cpus = cpus,
				       .slo_s = 150.0,
				       .value = 1.0,
				       .spread = 0.1,
				       .candidate = { { .work_s = 100.0, .cpu_share = 1.0, .accuracy = 0.95 },
						      { .work_s = 40.0, .cpu_share = 1.0, .accuracy = 0.9 } },
				       .n_candidates = 2 };
}

/* Jobs of one cpu, one every gap_s; asked when the next is due. */
static struct price *every(double gap_s, double *out_price, double *out_at_once)
{
	struct price *p;
	struct price_scene s = { .machine = four, .now_ns = (int64_t)(100.0 * gap_s * 1e9) };

	assert_int_equal(price_new(&p, NULL), 0);
	for (int i = 0; i < 100; i++) {
		struct price_arrival a = job_at(i * gap_s, 1);

		price_see(p, &a);
	}
	*out_price = price_find(p, &s);
	*out_at_once = price_at_once(p, &s, *out_price, 4);
	return p;
}

TEST(test_an_idle_machine_has_no_price)
{
	double price, at_once;
	struct price *p = every(3600.0, &price, &at_once);

	assert_true(price == 0.0 && at_once == 0.0);
	assert_int_equal(price_seen(p), PRICE_WINDOW);
	price_free(p);
}

/* A job every 50 s: the cores have time for all with 100 s each. One every 15 s: only with 40 s each. */
TEST(test_the_price_rises_where_demand_exceeds_the_machine)
{
	double calm, busy, at_once;

	price_free(every(50.0, &calm, &at_once));
	assert_true(calm == 0.0);
	price_free(every(15.0, &busy, &at_once));
	assert_true(busy > 0.0);
	/* all of them with 40 s: the more accurate one must cost more than it brings */
	assert_true(busy * 60.0 > 0.05);
	assert_true(at_once > 0.0);
}

TEST(test_a_price_falls_when_none_comes_for_long)
{
	double price, at_once;
	struct price *p = every(15.0, &price, &at_once);
	struct price_scene later = { .machine = four, .now_ns = (int64_t)(1e5 * 1e9) };

	assert_true(price_at_once(p, &later, price, 1) == 0.0);
	price_free(p);
}

TEST(test_a_burst_has_a_price_while_it_lasts)
{
	double price, at_once;
	struct price *p = every(600.0, &price, &at_once);
	struct price_scene s = { .machine = four, .now_ns = (int64_t)((100.0 * 600.0 + 320.0) * 1e9) };

	assert_true(price == 0.0);
	for (int i = 0; i < 32; i++) {
		struct price_arrival a = job_at(100.0 * 600.0 + 10.0 * i, 1);

		price_see(p, &a);
	}
	assert_true(price_find(p, &s) > 0.0);
	price_free(p);
}

/* Running jobs beyond the slots, jobs without an objective, without an accuracy, and too wide: no crash, and
 * a number. */
TEST(test_awkward_jobs_have_a_price_too)
{
	struct price_live live[PRICE_LIVE];
	struct price_scene s = { .machine = { .cores = 2.37, .disk_saturation = 5.1, .slots = 3 },
				 .other_load = 1.7,
				 .live = live,
				 .n_live = PRICE_LIVE };
	struct price *p;
	double found;

	for (size_t i = 0; i < PRICE_LIVE; i++)
		live[i] = (struct price_live){ .is = { .work_s = i % 3 ? 10.0 * (double)i : 0.0,
						       .cpu_share = 0.3,
						       .disk_share = 0.6,
						       .accuracy = i % 2 ? NAN : 0.8 },
					       .cpus = (uint32_t)(1 + i % 4),
					       .left_s = i % 5 ? 50.0 : -1.0,
					       .value = 1.0,
					       .spread = 0.2,
					       .running = i < 7 };
	assert_int_equal(price_new(&p, NULL), 0);
	assert_true(price_find(p, &s) == 0.0);
	for (int i = 0; i < 20; i++) {
		struct price_arrival a = job_at(i, i % 4 ? 1 : 7);

		a.slo_s = i % 3 ? a.slo_s : INFINITY;
		a.candidate[0].accuracy = NAN;
		price_see(p, &a);
	}
	s.now_ns = 20000000000;
	found = price_find(p, &s);
	assert_true(found >= 0.0 && isfinite(found));
	assert_true(price_find(p, &s) == found);
	assert_true(price_at_once(p, &s, found, 7) == 0.0);
	assert_true(price_at_once(p, &s, found, 2) >= 0.0);
	price_free(p);
}

TEST(test_a_price_without_memory_is_an_error)
{
	struct price *p = NULL;

	mem_fail_at(1, false);
	assert_int_equal(price_new(&p, NULL), -ERR_NOMEM);
	mem_fail_at(0, false);
	assert_null(p);
	price_free(NULL);
}
