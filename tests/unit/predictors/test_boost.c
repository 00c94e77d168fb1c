/* predictors/trees/boost: losses, rates, early stopping, and the same model from the same seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "predictors/trees/boost.h"
#include "predictors/trees/ensemble_model.h"
#include "predictors/data/score.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

static struct predictor fit(const char *set, const struct dataset *d)
{
	struct fit_context ctx = { .seed = 5 };
	struct settings s;
	struct predictor p;
	struct err err = { 0 };

	settings_init(&s, boost_ops.spec);
	if (settings_parse(&s, set, &err) || predictor_fit(&boost_ops, &s, d, &ctx, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static struct score score_on(const struct predictor *p, const struct dataset *d)
{
	double *predicted = malloc(d->n_rows * sizeof *predicted);
	struct score s;

	predictor_predict(p, d->x, d->n_rows, predicted);
	s = score_of(d->y, predicted, d->n_rows);
	free(predicted);
	return s;
}

static size_t trees_of(const struct predictor *p)
{
	return ((const struct ensemble_model *)p->self)->ensemble->n_trees;
}

TEST(test_one_stump_at_full_rate_is_worked_by_hand)
{
	double x[] = { 1, 2, 3, 4 }, y[] = { 1, 2, 7, 10 }, out[4];
	struct dataset d = { .n_rows = 4, .n_features = 1, .x = x, .y = y };
	struct predictor squared = fit("trees=1,depth=1,rate=1", &d);
	struct predictor absolute = fit("trees=1,depth=1,rate=1,loss=absolute", &d);

	predictor_predict(&squared, x, 4, out); /* mean 5, then the means of the residuals of each side */
	assert_true(fabs(out[0] - 1.5) < 1e-12 && fabs(out[3] - 8.5) < 1e-12);
	/* Lower median 2, residuals -1 0 5 8; their signs part {1,2} from {3,4}, and the lower medians of
	 * the residuals there are -1 and 5. */
	predictor_predict(&absolute, x, 4, out);
	assert_true(fabs(out[0] - 1.0) < 1e-12 && fabs(out[3] - 7.0) < 1e-12);
	predictor_release(&squared);
	predictor_release(&absolute);
}

/* One stump at full rate on the logarithms: geometric means of the two sides. */
TEST(test_logarithms_keep_predictions_above_zero)
{
	double x[] = { 1, 2, 3, 4 }, y[] = { 1, 4, 16, 100 }, out[4], staged[4];
	struct dataset d = { .n_rows = 4, .n_features = 1, .x = x, .y = y };
	struct predictor p = fit("trees=1,depth=1,rate=1,log=yes", &d);
	const struct fit_context ctx = { .seed = 5 };
	const size_t stage = 1;

	assert_true(p.log);
	predictor_predict(&p, x, 4, out);
	assert_true(fabs(out[0] - 2.0) < 1e-12 && fabs(out[3] - 40.0) < 1e-11);
	assert_int_equal(boost_staged(&p.settings, &d, &d, &ctx, &stage, 1, staged, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_true(fabs(staged[i] / out[i] - 1.0) < 1e-12);
	assert_true(y[3] == 100.0);
	y[0] = 0.0; /* it has no logarithm */
	assert_int_equal(boost_staged(&p.settings, &d, &d, &ctx, &stage, 1, staged, NULL), -ERR_ARG);
	predictor_release(&p);
}

TEST(test_training_loss_does_not_rise_with_more_rounds)
{
	static const char *const loss[] = { "squared", "absolute" };
	struct dataset *d = world_smooth(200, 5, 1.0, 0.0, 1);

	for (int k = 0; k < 2; k++) {
		double last = INFINITY;
		for (int trees = 1; trees < 120; trees += 13) {
			char set[64];
			struct predictor p;
			struct score s;
			snprintf(set, sizeof set, "trees=%d,loss=%s", trees, loss[k]);
			p = fit(set, d);
			s = score_on(&p, d);
			assert_true((k ? s.mae : s.mse) <= last);
			last = k ? s.mae : s.mse;
			predictor_release(&p);
		}
	}
	dataset_free(d);
}

TEST(test_huber_and_absolute_shrug_off_outliers)
{
	struct dataset *d = world_smooth(400, 5, 0.3, 0.0, 2), *clean = world_smooth(400, 5, 0.3, 0.0, 3);
	struct predictor squared, huber, absolute;

	for (size_t i = 0; i < d->n_rows; i += 20)
		d->y[i] += 500; /* one row in twenty is nonsense */
	squared = fit("trees=200,rate=0.1", d);
	huber = fit("trees=200,rate=0.1,loss=huber", d);
	absolute = fit("trees=200,rate=0.1,loss=absolute", d);
	assert_true(score_on(&huber, clean).mae < score_on(&squared, clean).mae / 3);
	assert_true(score_on(&absolute, clean).mae < score_on(&squared, clean).mae / 3);
	predictor_release(&squared);
	predictor_release(&huber);
	predictor_release(&absolute);
	dataset_free(d);
	dataset_free(clean);
}

TEST(test_early_stopping_stops_on_noise_and_generalises_as_well)
{
	struct dataset *d = world_smooth(300, 6, 4.0, 0.0, 4), *fresh = world_smooth(2000, 6, 4.0, 0.0, 5);
	struct predictor all = fit("trees=1000,depth=4,rate=0.2", d);
	struct predictor stopped = fit("trees=1000,depth=4,rate=0.2,validation=0.2,patience=10", d);

	assert_int_equal(trees_of(&all), 1000);
	assert_true(trees_of(&stopped) < 200);
	assert_true(score_on(&stopped, fresh).mse < score_on(&all, fresh).mse);
	predictor_release(&all);
	predictor_release(&stopped);
	dataset_free(d);
	dataset_free(fresh);
}

/* Where there is nothing to learn, no round after the first few is better on the rows held back. They are
 * dropped, however long the wait for a better one was. */
TEST(test_early_stopping_drops_the_rounds_after_the_best)
{
	struct dataset *d = world_smooth(300, 6, 4.0, 0.0, 4);
	struct predictor hasty, patient;
	struct rng rng = rng_stream(3, 3);

	for (size_t i = 0; i < d->n_rows; i++)
		d->y[i] = rng_normal(&rng);
	hasty = fit("trees=200,depth=4,rate=0.2,validation=0.3,patience=5", d);
	patient = fit("trees=200,depth=4,rate=0.2,validation=0.3,patience=50", d);
	assert_in_range(trees_of(&hasty), 1, 5);
	assert_int_equal(trees_of(&patient), trees_of(&hasty));
	predictor_release(&hasty);
	predictor_release(&patient);
	dataset_free(d);
}

/* Without noise every one of the first rounds is better, so the least patience goes on. */
TEST(test_early_stopping_goes_on_while_rounds_are_better)
{
	struct dataset *d = world_smooth(300, 6, 0.0, 0.0, 4);
	struct predictor p = fit("trees=200,depth=4,rate=0.1,validation=0.3,patience=1", d);

	assert_true(trees_of(&p) > 20);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_subsample_draws_other_rows_each_round)
{
	struct dataset *d = world_smooth(200, 5, 1.0, 0.0, 6);
	struct predictor half = fit("trees=50,subsample=0.5", d), all = fit("trees=50", d);
	double a, b;

	predictor_predict(&half, d->x, 1, &a);
	predictor_predict(&all, d->x, 1, &b);
	assert_true(a != b);
	assert_true(score_on(&half, d).r2 > 0.8);
	predictor_release(&half);
	predictor_release(&all);
	dataset_free(d);
}

TEST(test_stages_of_one_run_are_the_shorter_runs)
{
	struct dataset *d = world_factorial(2, 0.05, 7), *test = world_factorial(1, 0.05, 8);
	size_t stage[] = { 3, 10, 40 };
	double staged[3 * 96], direct[96];
	struct fit_context ctx = { .seed = 5 };
	struct settings s;

	settings_init(&s, boost_ops.spec);
	settings_parse(&s, "loss=huber,subsample=0.7", NULL);
	assert_int_equal(boost_staged(&s, d, test, &ctx, stage, 3, staged, NULL), 0);
	for (int k = 0; k < 3; k++) {
		char set[64];
		struct predictor p;
		snprintf(set, sizeof set, "loss=huber,subsample=0.7,trees=%zu", stage[k]);
		p = fit(set, d);
		predictor_predict(&p, test->x, 96, direct);
		assert_memory_equal(direct, staged + 96 * k, sizeof direct);
		predictor_release(&p);
	}
	dataset_free(d);
	dataset_free(test);
}

TEST(test_running_out_of_memory_anywhere_leaves_nothing_behind)
{
	struct dataset *d = world_factorial(1, 0.05, 9);
	struct fit_context ctx = { .seed = 1 };
	unsigned long k = 1;

	for (;; k++) {
		struct settings s;
		struct predictor p = { 0 };
		struct err err = { 0 };
		int status;

		settings_init(&s, boost_ops.spec);
		settings_parse(&s, "trees=3,loss=huber,validation=0.2", NULL);
		mem_fail_at(k, false);
		status = predictor_fit(&boost_ops, &s, d, &ctx, &p, &err);
		mem_fail_at(0, false);
		predictor_release(&p);
		if (!status)
			break;
		assert_int_equal(err.code, ERR_NOMEM);
	}
	assert_true(k > 20);
	dataset_free(d);
}
