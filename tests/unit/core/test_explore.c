/* Exploration: a share of the jobs that can afford it, the same ones every time. */
#include <math.h>

#include "scheduler/core/learn/explore.h"
#include "tests/support/test.h"

static struct decision four(void)
{
	const double accuracy[] = { 0.95, 0.93, 0.94, 0.90 };
	struct decision d = { .n_candidates = 4, .chosen = 0 };

	for (size_t i = 0; i < 4; i++)
		d.candidate[i] = (struct candidate){ .decision = 32.0 * (double)(1 << i),
						     .wait_upper_s = 5.0,
						     .time_s = 40.0 - 5.0 * (double)i,
						     .guard_s = 45.0 - 5.0 * (double)i,
						     .accuracy = accuracy[i],
						     .feasible = true };
	return d;
}

TEST(test_nobody_explores_by_default)
{
	const struct explore_params none = { 0 }, odd = { .share = NAN };
	struct decision d = four();

	for (uint64_t id = 1; id < 1000; id++) {
		assert_int_equal(explore_pick(&none, &d, id, 1000.0), 0);
		assert_int_equal(explore_pick(&odd, &d, id, 1000.0), 0);
	}
}

TEST(test_the_share_explores_the_second_best_and_always_the_same_jobs)
{
	const struct explore_params p = { .share = 0.1, .seed = 5 }, q = { .share = 0.1, .seed = 6 };
	struct decision d = four();
	int explored = 0, differ = 0;

	for (uint64_t id = 1; id <= 10000; id++) {
		int pick = explore_pick(&p, &d, id, 100.0);

		assert_true(pick == 0 || pick == 2);
		assert_int_equal(explore_pick(&p, &d, id, 100.0), pick);
		explored += pick != 0;
		differ += explore_pick(&q, &d, id, 100.0) != pick;
	}
	assert_in_range(explored, 880, 1120); /* 1,000 within four standard deviations */
	assert_in_range(differ, 1600, 2000); /* 2 x 0.1 x 0.9 of them */
}

TEST(test_only_jobs_with_headroom_explore)
{
	const struct explore_params all = { .share = 1.0 }, most = { .share = 1.0, .headroom = 0.9 };
	struct decision d = four();

	assert_int_equal(explore_pick(&all, &d, 1, 100.0), 2); /* 50 of 100 s */
	assert_int_equal(explore_pick(&all, &d, 1, 99.0), 0);
	assert_int_equal(explore_pick(&most, &d, 1, 99.0), 2);
	assert_int_equal(explore_pick(&all, &d, 1, NAN), 0); /* no objective */
	d.candidate[2].guard_s = 90.0; /* feasible, but without headroom: the next one */
	assert_int_equal(explore_pick(&all, &d, 1, 100.0), 1);
	d.candidate[1].feasible = false;
	assert_int_equal(explore_pick(&all, &d, 1, 100.0), 3);
	d.candidate[3].delays_s = NAN; /* not played */
	assert_int_equal(explore_pick(&all, &d, 1, 100.0), 0);
	d.candidate[0].guard_s = NAN;
	assert_int_equal(explore_pick(&all, &d, 1, 100.0), 0);
	d.chosen = -1;
	assert_int_equal(explore_pick(&all, &d, 1, 100.0), -1);
}

TEST(test_without_accuracies_the_faster_comes_second)
{
	const struct explore_params all = { .share = 1.0 };
	struct decision d = four();

	for (size_t i = 0; i < 4; i++)
		d.candidate[i].accuracy = NAN;
	d.chosen = 3;
	assert_int_equal(explore_pick(&all, &d, 1, 200.0), 2);
}
