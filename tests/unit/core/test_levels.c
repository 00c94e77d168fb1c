/* scheduler/core/learn/levels: what is off about new families, by user and type. */
#include <math.h>

#include "scheduler/core/learn/levels.h"
#include "tests/support/test.h"

static const struct adapt_who me = { .type = 1, .user = 1000 };

TEST(test_a_level_is_the_mean_of_its_own_latest_jobs)
{
	struct levels *l;

	assert_int_equal(levels_new(&l, NULL), 0);
	assert_int_equal(levels_of(l, me, 7).n, 0);
	levels_observe(l, me, 7, 0.4);
	levels_observe(l, me, 7, 0.8);
	assert_int_equal(levels_of(l, me, 7).n, 2);
	assert_true(fabs(levels_of(l, me, 7).mean - 0.6) <= 1e-12);
	assert_true(fabs(levels_of(l, me, 7).variance - 0.04) <= 1e-12);
	/* neither another family nor another type nor another user's */
	assert_int_equal(levels_of(l, me, 9).n, 0);
	assert_int_equal(levels_of(l, (struct adapt_who){ .type = 2, .user = 1000 }, 7).n, 0);
	assert_int_equal(levels_of(l, (struct adapt_who){ .type = 1, .user = 1001 }, 7).n, 0);
	for (int i = 0; i < 200; i++) /* a machine that has changed */
		levels_observe(l, me, 7, -0.5);
	assert_int_equal(levels_of(l, me, 7).n, LEVELS_RECENT);
	assert_true(fabs(levels_of(l, me, 7).mean + 0.5) <= 1e-3);
	assert_true(levels_of(l, me, 7).variance <= 1e-3);
	levels_free(l);
	levels_free(NULL);
}

TEST(test_more_families_than_places_forget_the_oldest)
{
	struct levels *l;
	size_t known = 0;

	assert_int_equal(levels_new(&l, NULL), 0);
	for (uint64_t f = 1; f <= 20000; f++)
		levels_observe(l, me, f, (double)f);
	for (uint64_t f = 1; f <= 20000; f++)
		if (levels_of(l, me, f).n) {
			assert_true(levels_of(l, me, f).mean == (double)f);
			known++;
		}
	assert_in_range(known, 900, 1024);
	assert_int_equal(levels_of(l, me, 20000).n, 1);
	levels_free(l);
}
