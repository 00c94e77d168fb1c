/* predictors/models/effects: what is known of a new combination adds up, what is not known widens the spread,
 * and a file keeps it all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "predictors/models/effects.h"
#include "tests/support/test.h"

#define NETWORKS 5
#define GPUS 3
#define FEATURES (2 + NETWORKS + GPUS)

static uint8_t role[FEATURES];

/* Effects of a network and of a gpu add up; every network has its own slope in the batch. */
static double law(size_t network, size_t gpu, double batch)
{
	return 2.0 + 0.7 * (double)network - 0.9 * (double)gpu -
	       (0.5 + 0.05 * (double)network) * log(batch / 64.0);
}

static void place(double *x, size_t network, size_t gpu, double batch, double workers)
{
	memset(x, 0, FEATURES * sizeof *x);
	x[0] = batch;
	x[1] = workers;
	x[2 + network] = 1.0;
	x[2 + NETWORKS + gpu] = 1.0;
}

/* All pairs but network 4 on gpu 2. */
static struct effects *fit(bool as_law)
{
	static double x[NETWORKS * GPUS * 10 * FEATURES], y[NETWORKS * GPUS * 10];
	struct dataset d = { .n_features = FEATURES, .x = x, .role = role };
	struct rng rng = rng_stream(7, 1);
	struct effects *e;
	struct err err = { 0 };

	memset(role, ROLE_CATEGORY, sizeof role);
	role[0] = ROLE_BATCH;
	role[1] = ROLE_CPUS;
	for (size_t k = 0; k < NETWORKS; k++)
		for (size_t g = 0; g < GPUS; g++)
			for (size_t i = 0; i < 10 && !(k == 4 && g == 2); i++) {
				double batch = 16 << i % 5, workers = 1 + (double)(i / 5);

				place(x + d.n_rows * FEATURES, k, g, batch, workers);
				y[d.n_rows++] = law(k, g, batch) - 0.8 * log(workers) +
						0.03 * rng_normal(&rng);
			}
	if (effects_fit(&d, y, as_law, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

TEST(test_a_pair_never_measured_gets_the_sum_of_what_is_known)
{
	struct effects *e = fit(true);
	double x[FEATURES];

	place(x, 4, 2, 64.0, 1.0);
	assert_true(fabs(effects_at(e, x) - law(4, 2, 64.0)) < 0.15);
	place(x, 1, 1, 32.0, 2.0);
	assert_true(fabs(effects_at(e, x) - (law(1, 1, 32.0) - 0.8 * log(2.0))) < 0.05);
	effects_free(e);
}

TEST(test_a_spread_grows_with_what_is_not_known)
{
	struct effects *e = fit(true);
	double known[FEATURES], pair[FEATURES], stranger[FEATURES];

	place(known, 1, 1, 64.0, 1.0);
	place(pair, 4, 2, 64.0, 1.0);
	place(stranger, 0, 1, 64.0, 1.0);
	for (size_t f = 2; f < 2 + NETWORKS; f++)
		stranger[f] = NAN;
	assert_true(effects_spread(e, known) > 0.02 && effects_spread(e, known) < 0.08);
	assert_true(effects_spread(e, pair) > 1.1 * effects_spread(e, known));
	assert_true(effects_spread(e, stranger) > 3.0 * effects_spread(e, pair));
	effects_free(e);
}

TEST(test_a_law_goes_on_outside_the_table_and_a_correction_does_not)
{
	struct effects *as_law = fit(true), *correction = fit(false);
	double inside[FEATURES], outside[FEATURES];

	place(inside, 0, 0, 256.0, 1.0);
	place(outside, 0, 0, 1024.0, 1.0);
	assert_true(effects_at(as_law, inside) - effects_at(as_law, outside) > 0.4); /* 0.5 log 4 = 0.69 */
	assert_true(effects_at(correction, inside) == effects_at(correction, outside));
	effects_free(as_law);
	effects_free(correction);
}

TEST(test_effects_survive_a_file_and_damage_is_seen)
{
	struct effects *e = fit(true), *again = NULL;
	struct writer w = { 0 };
	struct reader r;
	double x[FEATURES];

	effects_save(e, &w);
	r = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(effects_load(&r, FEATURES, &again, NULL), 0);
	place(x, 3, 2, 100.0, 2.0);
	assert_true(effects_at(e, x) == effects_at(again, x));
	assert_true(effects_spread(e, x) == effects_spread(again, x));
	effects_free(again);
	for (size_t len = 0; len < w.out.len; len += 41) {
		r = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = len };
		assert_int_equal(effects_load(&r, FEATURES, &again, NULL), -ERR_FORMAT);
	}
	r = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(effects_load(&r, 3, &again, NULL), -ERR_FORMAT);
	strbuf_release(&w.out);
	effects_free(e);
}
