/* The tree of winners against a plain search. */
#include "common/rng.h"
#include "common/tournament.h"
#include "tests/support/test.h"

TEST(test_the_top_is_what_a_search_finds)
{
	struct rng r = rng_stream(7, 1);

	for (uint32_t n = 1; n <= 70; n++) {
		struct tournament t;

		assert_int_equal(tournament_init(&t, n, 100), 0);
		assert_true(tournament_first(&t) == 0 && tournament_least(&t) == 100);
		for (int k = 0; k < 300; k++) {
			uint32_t first = 0;

			tournament_set(&t, (uint32_t)rng_below(&r, n), (int64_t)rng_below(&r, 50) - 25);
			for (uint32_t i = 1; i < n; i++)
				if (t.key[i] < t.key[first])
					first = i; /* the first of equals */
			assert_int_equal(tournament_first(&t), first);
			assert_true(tournament_least(&t) == t.key[first]);
		}
		tournament_release(&t);
	}
}
