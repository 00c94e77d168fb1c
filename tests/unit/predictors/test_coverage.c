/* Do 90 % bounds hold on new data? Two hundred worlds whose truth is known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "predictors/models/conformal.h"
#include "predictors/trees/forest.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

#define NEW_POINTS 500

/* All of them in `make bars`, a part in `make check`. Over 200 worlds the means are 0.903 to 0.911 and the
 * spread between worlds is 0.02 to 0.03, so the mean of 50 worlds is known to 0.004: the limits of check()
 * are more than four times as far away. */
static uint64_t n_worlds(void)
{
	return getenv("BARS") ? 200 : 50;
}

/* Share of new points at or below the bound, over all worlds. */
static double coverage(bool factorial, bool normalise, double growth)
{
	size_t covered = 0, total = 0;

	for (uint64_t w = 0; w < n_worlds(); w++) {
		struct dataset *d = factorial ? world_factorial(3, 0.08, w)
					      : world_smooth(150, 5, 1.0, growth, w);
		struct dataset *fresh = factorial ? world_factorial(6, 0.08, w + 5000)
						  : world_smooth(NEW_POINTS, 5, 1.0, growth, w + 5000);
		struct fit_context ctx = { .seed = w, .want_oob = true };
		struct settings s;
		struct predictor p;
		struct conformal c = { 0 };
		double *out = malloc(fresh->n_rows * sizeof *out), q;

		settings_init(&s, forest_ops.spec);
		settings_parse(&s, "trees=100,depth=6", NULL);
		assert_int_equal(predictor_fit(&forest_ops, &s, d, &ctx, &p, NULL), 0);
		assert_int_equal(conformal_fit(d->y, p.ops->oob(p.self), d->n_rows, normalise, &c, NULL), 0);
		assert_int_equal(conformal_quantile(&c, 0.9, &q, NULL), 0);
		predictor_predict(&p, fresh->x, fresh->n_rows, out);
		for (size_t i = 0; i < fresh->n_rows; i++)
			covered += fresh->y[i] <= conformal_upper(&c, q, out[i]);
		total += fresh->n_rows;
		conformal_release(&c);
		predictor_release(&p);
		dataset_free(d);
		dataset_free(fresh);
		free(out);
	}
	printf("coverage of 90 %% bounds, %s, %s: %.2f %%\n",
	       factorial    ? "factorial"
	       : growth > 0 ? "growing noise"
			    : "smooth",
	       normalise ? "normalised" : "plain", 100.0 * (double)covered / (double)total);
	return (double)covered / (double)total;
}

static void check(double share)
{
	assert_true(share >= 0.88 && share <= 0.93);
}

TEST(test_bounds_cover_new_points_of_smooth_worlds)
{
	check(coverage(false, false, 0.0));
	check(coverage(false, true, 0.0));
}

TEST(test_bounds_cover_new_points_where_noise_grows)
{
	check(coverage(false, false, 2.0));
	check(coverage(false, true, 2.0));
}

TEST(test_bounds_cover_new_replicates_of_an_experiment)
{
	check(coverage(true, false, 0.0));
	check(coverage(true, true, 0.0));
}
