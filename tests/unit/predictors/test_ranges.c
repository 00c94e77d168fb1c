/* Training ranges: which rows are pulled in, how far off they were, and what a file may hold. */
#include <math.h>
#include <string.h>

#include "predictors/data/ranges.h"
#include "tests/support/test.h"

TEST(test_rows_outside_are_pulled_to_the_nearest_end)
{
	double x[] = { 1.0, 5.0, NAN, 3.0, 5.0, NAN }, out[3];
	struct dataset d = { .n_rows = 2, .n_features = 3, .x = x };
	struct ranges r;

	assert_int_equal(ranges_find(&d, &r, NULL), 0);
	assert_true(ranges_pull_in(&r, (double[]){ 2.0, 5.0, 7.0 }, out) == 0.0);
	assert_true(out[0] == 2.0 && out[1] == 5.0 && out[2] == 7.0); /* no range: as it is */
	assert_true(ranges_pull_in(&r, (double[]){ 8.0, 5.0, NAN }, out) == 2.5); /* five of a range of two */
	assert_true(out[0] == 3.0);
	assert_true(ranges_pull_in(&r, (double[]){ 0.0, 4.0, NAN }, out) ==
		    1.0); /* one that never varied: one */
	assert_true(out[0] == 1.0 && out[1] == 5.0);
	ranges_release(&r);
}

TEST(test_a_range_upside_down_is_refused)
{
	static const double good[] = { 1.0, 3.0, NAN, NAN },
			    bad[][2] = { { 3.0, 1.0 }, { NAN, 1.0 }, { 1.0, NAN } };
	struct ranges r;

	for (size_t i = 0; i < 4; i++) {
		struct writer w = { 0 };
		struct reader in;

		for (size_t k = 0; k < 4; k++)
			write_f64(&w, k < 2 || i == 3 ? good[k] : bad[i][k - 2]);
		in = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = w.out.len };
		assert_int_equal(ranges_load(&in, 2, &r, NULL), i == 3 ? 0 : -ERR_FORMAT);
		if (i == 3)
			ranges_release(&r);
		strbuf_release(&w.out);
	}
}
