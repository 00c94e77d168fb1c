/* tests/support/des: the simulator itself, against closed forms. */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "tests/support/des.h"
#include "tests/support/test.h"

/* The simulator is the yardstick of the other tests here; these are the claims about the yardstick. */

TEST(test_same_seed_same_result)
{
	const struct des_station s[] = { { .kind = DES_PS, .servers = 4, .service_s = 0.51 },
					 { .service_s = 0.083 } };
	struct des_params p = { .station = s, .n_stations = 2, .population = 9, .events = 50000, .seed = 5 };
	struct des_result a, b;

	memset(&a, 0, sizeof a);
	memset(&b, 0, sizeof b);
	assert_int_equal(des_run(&p, &a, NULL), 0);
	assert_int_equal(des_run(&p, &b, NULL), 0);
	assert_memory_equal(&a, &b, sizeof a);
	p.seed = 6;
	assert_int_equal(des_run(&p, &b, NULL), 0);
	assert_true(a.response_s.mean != b.response_s.mean);
	assert_in_range(a.events, 49000, 51000);
}

/* Of 400 intervals 4 should miss; more than 12 happen once in a thousand times. The runs are long enough
 * for batches to be nearly independent. */
TEST(test_the_interval_holds_as_often_as_it_says)
{
	struct des_station s = { .service_s = 2.37 };
	struct des_params p = {
		.station = &s, .n_stations = 1, .arrivals_per_s = 0.5 / 2.37, .events = 60000
	};
	unsigned missed = 0;

	for (p.seed = 0; p.seed < 400; p.seed++) {
		struct des_result r;

		assert_int_equal(des_run(&p, &r, NULL), 0);
		missed += fabs(r.response_s.mean - 4.74) > r.response_s.half;
	}
	assert_in_range(missed, 0, 12);
}

TEST(test_constant_service_without_a_queue_is_exact)
{
	/* one customer, one constant second and a half, no thinking: nothing is left to chance */
	const struct des_station s[] = {
		{ .law = DES_CONSTANT, .service_s = 1.5 },
		{ .kind = DES_PS, .servers = 3, .processes = 2, .law = DES_CONSTANT, .service_s = 0.5 }
	};
	struct des_params p = {
		.station = s, .n_stations = 2, .population = 1, .events = 3000, .within_s = 1.7
	};
	struct des_result r;

	assert_int_equal(des_run(&p, &r, NULL), 0);
	assert_true(fabs(r.response_s.mean - 1.75) < 1e-9 && r.response_s.half < 1e-9);
	assert_true(fabs(r.number[0] - 1.5 / 1.75) < 1e-9 && fabs(r.busy[1] - 2.0 * 0.25 / 1.75) < 1e-9);
	assert_true(r.within.mean == 0.0 && r.wait_within.mean == 1.0);
}

TEST(test_nonsense_is_refused)
{
	struct des_station s = { .service_s = 1.0 };
	const struct des_params good = {
		.station = &s, .n_stations = 1, .arrivals_per_s = 0.5, .events = 100
	};
	struct des_params p = good;
	struct des_result r;

	p.n_stations = 0;
	assert_int_equal(des_run(&p, &r, NULL), -ERR_ARG);
	p.n_stations = DES_MAX_STATIONS + 1;
	assert_int_equal(des_run(&p, &r, NULL), -ERR_ARG);
	p = good;
	p.arrivals_per_s = NAN;
	assert_int_equal(des_run(&p, &r, NULL), -ERR_ARG);
	p.arrivals_per_s = 0.0; /* and no population either */
	assert_int_equal(des_run(&p, &r, NULL), -ERR_ARG);
	p = good;
	s.service_s = 0.0;
	assert_int_equal(des_run(&p, &r, NULL), -ERR_ARG);
	s = (struct des_station){ .service_s = 1.0, .law = DES_HYPER, .scv = 0.7 };
	assert_int_equal(des_run(&p, &r, NULL), -ERR_ARG);
}

TEST(test_running_out_of_memory_is_said)
{
	const struct des_station s = { .kind = DES_PS, .service_s = 1.0 };
	struct des_params p = { .station = &s, .n_stations = 1, .arrivals_per_s = 0.9, .events = 2000 };
	struct des_result r;
	bool met = true;

	for (unsigned long k = 1; met; k++) {
		int rc;

		mem_fail_at(k, false);
		rc = des_run(&p, &r, NULL);
		met = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, met ? -ERR_NOMEM : 0);
	}
}
