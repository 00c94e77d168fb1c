/* The hybrid, its prior and its bounds, on worlds whose truth is known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictors/models/conformal.h"
#include "predictors/trees/forest.h"
#include "predictors/models/hybrid.h"
#include "predictors/models/queueing_models.h"
#include "predictors/data/score.h"
#include "predictors/search/train.h"
#include "predictors/models/widening.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

static const uint8_t role[5] = { ROLE_CATEGORY, ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH, ROLE_PROCESSES };
static const uint8_t factor[5] = { 1, 1, 1, 1, 0 };

/* world_factorial() is a calibrated model itself; `bend` adds what only a forest can learn: batches of 256 on
 * machines shared by three are slower. */
static struct dataset *world(size_t replications, double noise, uint64_t seed, double bend)
{
	struct dataset *d = world_factorial(replications, noise, seed);

	for (size_t i = 0; i < d->n_rows; i++)
		if (d->x[5 * i + 2] == 3 && d->x[5 * i + 3] == 256)
			d->y[i] *= 1.0 + bend;
	d->role = role;
	d->factor = factor;
	return d;
}

static struct predictor fit_with(const struct predictor_ops *ops, const char *text, const struct dataset *d,
				 struct fit_context ctx)
{
	struct settings s;
	struct predictor p = { 0 };
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if ((*text && settings_parse(&s, text, &err)) || predictor_fit(ops, &s, d, &ctx, &p, &err))
		fail_msg("%s: %s", ops->name, err.text);
	return p;
}

static struct score score_on(const struct predictor_ops *ops, const char *text, const struct dataset *train,
			     const struct dataset *test)
{
	struct predictor p = fit_with(ops, text, train, (struct fit_context){ .seed = 1 });
	double *out = malloc(test->n_rows * sizeof *out);
	struct score s;

	predictor_predict(&p, test->x, test->n_rows, out);
	s = score_of(test->y, out, test->n_rows);
	free(out);
	predictor_release(&p);
	return s;
}

/* The prior that the forest corrects is the one that a prediction starts from: a part of it, and the mean of
 * the rest. */
TEST(test_a_part_of_the_prior_predicts_what_it_was_fitted_to)
{
	static const char *const how[] = { "queue=none,effects=yes,prior=0.75", "queue=none,effects=yes",
					   "prior=0.5" };
	struct dataset *d = world(2, 0.02, 1, 0.0);
	double *out = malloc(d->n_rows * sizeof *out);

	for (size_t k = 0; k < 3; k++) {
		struct predictor p = fit_with(&hybrid_ops, how[k], d, (struct fit_context){ .seed = 1 });
		struct score s;

		predictor_predict(&p, d->x, d->n_rows, out);
		s = score_of(d->y, out, d->n_rows);
		printf("%s: MAPE %.2f %%\n", how[k], 100 * s.mape);
		assert_true(s.mape < 0.1);
		predictor_release(&p);
	}
	free(out);
	dataset_free(d);
}

TEST(test_forest_learns_what_the_queue_gets_wrong)
{
	struct dataset *all = world(1, 0.02, 1, 0.3), *train, *test;
	struct score forest, queue, hybrid;
	struct rng rng = rng_stream(1, 1);
	uint32_t row[96];

	for (uint32_t i = 0; i < 96; i++)
		row[i] = i;
	rng_shuffle(&rng, row, 96); /* settings held out, not replications of what was seen */
	assert_int_equal(dataset_subset(all, row, 72, &train, NULL), 0);
	assert_int_equal(dataset_subset(all, row + 72, 24, &test, NULL), 0);
	forest = score_on(&forest_ops, "trees=300", train, test);
	queue = score_on(&queueing_ops, "", train, test);
	hybrid = score_on(&hybrid_ops, "", train, test);
	printf("MAPE: forest %.2f %%, queueing %.2f %%, hybrid %.2f %%\n", 100 * forest.mape,
	       100 * queue.mape, 100 * hybrid.mape);
	assert_true(hybrid.mape < 0.8 * queue.mape && hybrid.mape < 0.6 * forest.mape);
	dataset_free(all);
	dataset_free(train);
	dataset_free(test);
}

static void check_loaded(const char *settings)
{
	struct dataset *d = world(1, 0.03, 3, 0.1);
	struct predictor p = fit_with(&hybrid_ops, settings, d, (struct fit_context){ .seed = 5 });
	struct writer w = { 0 };
	struct reader r;
	double a[96], b[96];
	void *again = NULL;

	assert_int_equal(hybrid_ops.save(p.self, &w, NULL), 0);
	r = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(hybrid_ops.load(&r, 5, &again, NULL), 0);
	assert_int_equal(r.at, r.len);
	d->x[3] *= 10; /* outside the table, and a value that is missing */
	d->x[5] = NAN;
	predictor_predict(&p, d->x, 96, a);
	hybrid_ops.predict(again, d->x, 96, b);
	assert_memory_equal(a, b, sizeof a);
	assert_int_equal(hybrid_ops.compile(again, NULL), 0);
	hybrid_ops.predict(again, d->x, 96, b);
	assert_memory_equal(a, b, sizeof a);
	for (size_t i = 0; i < 96; i++) { /* one by one as in one go */
		hybrid_ops.predict(again, d->x + 5 * i, 1, &b[0]);
		assert_memory_equal(&a[i], &b[0], sizeof b[0]);
	}
	hybrid_ops.destroy(again);
	strbuf_release(&w.out);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_loaded_model_gives_identical_bits_compiled_or_not)
{
	check_loaded("trees=40");
	check_loaded("trees=40,queue=closed");
	check_loaded("trees=40,queue=paper");
	check_loaded("trees=40,queue=none");
	check_loaded("trees=40,effects=yes,prior=0.75");
}

/* Whatever part of the prior is taken, what is left goes to the forest, and both come back together. */
TEST(test_a_part_of_the_prior_or_none_still_predicts_times)
{
	static const char *const prior[] = { "queue=none", "queue=none,effects=yes,prior=0.75",
					     "queue=none,effects=yes,prior=0", "prior=0.5" };
	struct dataset *d = world(2, 0.02, 1, 0.0);

	for (size_t i = 0; i < sizeof prior / sizeof *prior; i++) {
		double mape = score_on(&hybrid_ops, prior[i], d, d).mape;

		printf("%s: MAPE %.1f %% on the rows that it was fitted to\n", prior[i], 100 * mape);
		assert_true(mape < 0.05);
	}
	dataset_free(d);
}

/* A fit for predictions alone leaves out what they do not need, and nothing else. */
TEST(test_without_a_queue_nothing_is_calibrated_for_predictions)
{
	struct dataset *d = world(1, 0.03, 3, 0.1);
	const char *settings = "trees=40,queue=none,effects=yes";
	struct predictor whole, bare;
	double a[96], b[96], cores[2], disk;

	d->y[7] = -1.0; /* no time */
	whole = fit_with(&hybrid_ops, settings, d, (struct fit_context){ .seed = 5 });
	bare = fit_with(&hybrid_ops, settings, d, (struct fit_context){ .seed = 5, .no_importances = true });
	predictor_predict(&whole, d->x, 96, a);
	predictor_predict(&bare, d->x, 96, b);
	assert_memory_equal(a, b, sizeof a);
	hybrid_ops.machine(whole.self, &cores[0], &disk);
	hybrid_ops.machine(bare.self, &cores[1], &disk);
	assert_true(cores[0] > 0.0 && cores[1] == 0.0);
	predictor_release(&whole);
	predictor_release(&bare);
	dataset_free(d);
}

/* Where the paper's queue is unstable there is no time, and the reason is the load. */
TEST(test_the_queue_of_the_hybrid_can_be_chosen)
{
	struct dataset *d = world(1, 0.02, 1, 0.0);
	struct fit_context ctx = { .seed = 1 };
	struct predictor calibrated = fit_with(&hybrid_ops, "trees=40", d, ctx),
			 closed = fit_with(&hybrid_ops, "trees=40,queue=closed", d, ctx),
			 paper = fit_with(&hybrid_ops, "trees=40,queue=paper", d, ctx);
	double a[96], b[96], c[96];
	char why[256];
	size_t unstable = 0;

	predictor_predict(&calibrated, d->x, 96, a);
	predictor_predict(&closed, d->x, 96, b);
	predictor_predict(&paper, d->x, 96, c);
	assert_true(memcmp(a, b, sizeof a) != 0);
	assert_true(score_of(d->y, a, 96).mape < 0.05);
	assert_true(score_of(d->y, b, 96).mape < 0.10);
	for (size_t i = 0; i < 96; i++) {
		hybrid_ops.why_none(paper.self, d->x + 5 * i, why, sizeof why);
		assert_int_equal(isnan(c[i]), why[0] != '\0');
		unstable += isnan(c[i]);
		assert_true(isnan(c[i]) || c[i] > 0.0);
	}
	assert_true(unstable < 96);
	d->x[3] = 1e6; /* far outside */
	d->x[4] = 1e6;
	hybrid_ops.why_none(closed.self, d->x, why, sizeof why);
	assert_true(why[0] == '\0');
	predictor_predict(&closed, d->x, 1, b);
	assert_true(isfinite(b[0]) && b[0] > 0.0);
	predictor_release(&calibrated);
	predictor_release(&closed);
	predictor_release(&paper);
	dataset_free(d);
}

TEST(test_same_model_on_any_number_of_threads)
{
	struct dataset *d = world(1, 0.03, 4, 0.1);
	struct writer w[3] = { 0 };

	for (size_t threads = 1; threads <= 3; threads++) {
		struct pool *pool = NULL;
		struct predictor p;

		assert_int_equal(pool_new(threads, &pool, NULL), 0);
		p = fit_with(&hybrid_ops, "trees=50", d, (struct fit_context){ .seed = 2, .pool = pool });
		assert_int_equal(hybrid_ops.save(p.self, &w[threads - 1], NULL), 0);
		predictor_release(&p);
		pool_free(pool);
	}
	for (int i = 1; i < 3; i++) {
		assert_int_equal(w[0].out.len, w[i].out.len);
		assert_memory_equal(w[0].out.text, w[i].out.text, w[0].out.len);
	}
	for (int i = 0; i < 3; i++)
		strbuf_release(&w[i].out);
	dataset_free(d);
}

TEST(test_far_outside_the_queue_speaks_alone)
{
	struct dataset *d = world(2, 0.02, 6, 0.4);
	struct predictor h = fit_with(&hybrid_ops, "", d, (struct fit_context){ .seed = 1 });
	struct predictor q = fit_with(&queueing_ops, "", d, (struct fit_context){ .seed = 1 });
	double x[5] = { 0, 4, 3, 256, 12 }, a, b, inside, edge;

	predictor_predict(&h, x, 1, &a);
	predictor_predict(&q, x, 1, &b);
	inside = fabs(log(a / b));
	assert_true(inside > 0.1); /* there the forest has something to say */
	x[1] = 8 + 7; /* cpus were 1 to 8: one range outside, so half of it is left; at the nearest point
	           * inside */
	predictor_predict(&h, x, 1, &a);
	predictor_predict(&q, x, 1, &b);
	edge = log(a / b);
	x[1] = 8;
	predictor_predict(&h, x, 1, &a);
	predictor_predict(&q, x, 1, &b);
	assert_true(fabs(edge - 0.5 * log(a / b)) < 1e-9);
	x[1] = 8 + 7 * 99;
	predictor_predict(&h, x, 1, &a);
	predictor_predict(&q, x, 1, &b);
	assert_true(fabs(log(a / b)) < 0.02 * inside + 1e-3);
	predictor_release(&h);
	predictor_release(&q);
	dataset_free(d);
}

TEST(test_out_of_bag_bounds_hold_on_new_rows)
{
	size_t held = 0, n = 0;

	for (uint64_t k = 0; k < 20; k++) {
		struct dataset *train = world(1, 0.05, 100 + k, 0.15), *test = world(2, 0.05, 900 + k, 0.15);
		struct predictor p = fit_with(&hybrid_ops, "trees=100", train,
					      (struct fit_context){ .seed = k, .want_oob = true });
		struct conformal c = { 0 };
		double out[192], log_y[96], log_oob[96], q;

		for (size_t i = 0; i < train->n_rows; i++) {
			log_y[i] = log(train->y[i]);
			log_oob[i] = log(hybrid_ops.oob(p.self)[i]);
		}
		assert_int_equal(conformal_fit(log_y, log_oob, train->n_rows, false, &c, NULL), 0);
		assert_int_equal(c.n, 96);
		assert_int_equal(conformal_quantile(&c, 0.9, &q, NULL), 0);
		predictor_predict(&p, test->x, test->n_rows, out);
		for (size_t i = 0; i < test->n_rows; i++)
			held += log(test->y[i]) <= conformal_upper(&c, q, log(out[i]));
		n += test->n_rows;
		conformal_release(&c);
		predictor_release(&p);
		dataset_free(train);
		dataset_free(test);
	}
	printf("90 %% bounds hold for %.1f %% of new rows\n", 100.0 * (double)held / (double)n);
	assert_true((double)held > 0.87 * (double)n && (double)held < 0.96 * (double)n);
}

/* Fitted to all rows, the queueing part is drawn to each of them. Its residuals are to be those of a model
 * that has not seen the row; here all of these models are fitted. The forest is one leaf and adds nothing. */
TEST(test_out_of_bag_residuals_are_those_of_rows_not_seen)
{
	struct dataset *all = world(1, 0.1, 5, 0.0), *d, *rest;
	double own = 0.0, unseen = 0.0, out;
	uint32_t row[96], other[96];
	struct rng rng = rng_stream(2, 1);
	struct predictor p;

	for (uint32_t i = 0; i < 96; i++)
		row[i] = i;
	rng_shuffle(&rng, row, 96);
	assert_int_equal(dataset_subset(all, row, 32, &d, NULL), 0);
	p = fit_with(&hybrid_ops, "trees=100,min_samples_split=1000", d,
		     (struct fit_context){ .seed = 1, .want_oob = true });
	for (uint32_t i = 0; i < 32; i++) {
		struct predictor without;
		double e = log(d->y[i] / hybrid_ops.oob(p.self)[i]);

		for (uint32_t k = 0; k < 31; k++)
			other[k] = k + (k >= i);
		assert_int_equal(dataset_subset(d, other, 31, &rest, NULL), 0);
		without = fit_with(&queueing_ops, "", rest, (struct fit_context){ .seed = 1 });
		predictor_predict(&without, d->x + i * d->n_features, 1, &out);
		own += e * e;
		unseen += log(d->y[i] / out) * log(d->y[i] / out);
		predictor_release(&without);
		dataset_free(rest);
	}
	printf("residuals: %.4f out of bag, %.4f of rows not seen\n", sqrt(own / 32.0), sqrt(unseen / 32.0));
	assert_true(fabs(own / unseen - 1.0) < 0.1);
	predictor_release(&p);
	dataset_free(d);
	dataset_free(all);
}

/* 50,000 rows are enough to correct a law, whatever the table: a forest of a million would be gigabytes. */
TEST(test_the_forest_of_a_large_table_learns_from_a_part)
{
	struct dataset *d = world(600, 0.05, 9, 0.3); /* 57,600 rows */
	struct predictor p =
		fit_with(&hybrid_ops, "trees=20", d, (struct fit_context){ .seed = 1, .want_oob = true });
	const double *oob = hybrid_ops.oob(p.self);
	double *out = malloc(d->n_rows * sizeof *out);
	size_t n = 0;

	for (size_t i = 0; i < d->n_rows; i++)
		n += !isnan(oob[i]);
	assert_true(d->n_rows > 55000 && n > 49000 && n <= 50000);
	predictor_predict(&p, d->x, d->n_rows, out);
	assert_true(score_of(d->y, out, d->n_rows).mape < 0.05); /* what only the forest can know included */
	free(out);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_no_bag_no_out_of_bag)
{
	struct dataset *d = world(1, 0.05, 1, 0.1);
	struct predictor p = fit_with(&hybrid_ops, "trees=5", d, (struct fit_context){ .seed = 1 });

	assert_null(hybrid_ops.oob(p.self));
	predictor_release(&p);
	p = fit_with(&hybrid_ops, "trees=5,bootstrap=no", d,
		     (struct fit_context){ .seed = 1, .want_oob = true });
	assert_null(hybrid_ops.oob(p.self));
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_rows_without_a_time_above_zero_are_left_out)
{
	struct dataset *d = world(1, 0.02, 8, 0.1);
	struct predictor p;
	const double *oob;

	d->y[10] = 0.0;
	d->y[11] = -5.0;
	p = fit_with(&hybrid_ops, "trees=50", d, (struct fit_context){ .seed = 1, .want_oob = true });
	oob = hybrid_ops.oob(p.self);
	assert_true(isnan(oob[10]) && isnan(oob[11]) && oob[12] > 0.0);
	predictor_release(&p);
	dataset_free(d);
}

TEST(test_a_job_without_njobs_or_processes_is_alone)
{
	/* batch and cpus alone, and the number of samples in the table */
	double x[] = { 64, 1, 1000, 64, 2, 1000, 128, 1, 2000, 128, 2, 2000, 256, 1, 1000, 256, 2, 1000 },
	       y[6], out[6];
	static const uint8_t roles[3] = { ROLE_BATCH, ROLE_CPUS, ROLE_SAMPLES };
	struct dataset d = { .n_rows = 6, .n_features = 3, .x = x, .y = y, .role = roles };
	struct queue_map map;
	struct calibrate_job job;
	struct settings s;
	struct predictor p;

	for (int i = 0; i < 6; i++)
		y[i] = x[3 * i + 2] / x[3 * i] * 10 * (0.03 + 2e-4 * x[3 * i] / x[3 * i + 1]);
	settings_init(&s, queueing_ops.spec);
	assert_int_equal(queue_map_make("t", &s, &d, &map, NULL), 0);
	queue_map_job(&map, x + 3, &job);
	assert_true(job.processes == 2 && job.cpus == 2 && job.batch == 64);
	assert_true(fabs(job.iterations - 1000.0 / 64 * 10) < 1e-9); /* ten epochs are assumed */
	x[0] = NAN;
	queue_map_job(&map, x, &job);
	assert_true(job.batch == (64 + 64 + 128 + 128 + 256 + 256) / 6.0); /* the mean of training */
	x[0] = 64;
	p = fit_with(&queueing_ops, "", &d, (struct fit_context){ .seed = 1 });
	predictor_predict(&p, x, 6, out);
	for (int i = 0; i < 6; i++)
		assert_true(fabs(out[i] / y[i] - 1.0) < 0.25);
	predictor_release(&p);
}

/* ---- bounds outside the table ---- */

/* Ordinary errors of three percent, whatever is known. */
static struct spread *three_percent(const struct dataset *d)
{
	struct spread *s = NULL;

	assert_int_equal(spread_make(d, &s, NULL), 0);
	spread_set(s, (const double[]){ 0.03, 0.03, 0.03, 0.03, 0.03 }, 0.03, 1.0);
	return s;
}

TEST(test_widening_is_larger_where_levels_surprise)
{
	struct dataset *plain = world(2, 0.03, 1, 0.0), *bent = world(2, 0.03, 1, 0.0);
	struct grid_point point = { .ops = &hybrid_ops };
	struct fit_context ctx = { .seed = 1 };
	struct spread *spread = three_percent(plain);
	double a[5], b[5];

	settings_init(&point.settings, hybrid_ops.spec);
	settings_parse(&point.settings, "trees=30", NULL);
	for (size_t i = 0; i < bent->n_rows; i++) /* the largest batch breaks the law */
		bent->y[i] *= bent->x[5 * i + 3] == 512 ? 1.5 : 1.0;
	assert_int_equal(widening_estimate(&point, plain, &ctx, spread, 1.28, a, NULL), 0);
	assert_int_equal(widening_estimate(&point, bent, &ctx, spread, 1.28, b, NULL), 0);
	for (int f = 0; f < 5; f++)
		assert_true(a[f] >= 1.0 && a[f] < 4.0 && b[f] >= 1.0);
	assert_true(a[0] == 1.0 && a[4] == 1.0); /* a category and a derived column have none of their own */
	assert_true(b[3] > 4.0 && b[3] > 2.0 * a[3]);
	spread_free(spread);
	dataset_free(plain);
	dataset_free(bent);
}

TEST(test_two_levels_take_the_worst_of_the_others)
{
	struct dataset *d = world(2, 0.03, 1, 0.0), *two;
	struct grid_point point = { .ops = &queueing_ops };
	struct fit_context ctx = { .seed = 1 };
	uint32_t row[192];
	struct spread *spread = three_percent(d);
	size_t n = 0;
	double w[5];

	settings_init(&point.settings, queueing_ops.spec);
	for (size_t i = 0; i < d->n_rows; i++)
		if (d->x[5 * i + 2] != 3)
			row[n++] = (uint32_t)i;
	assert_int_equal(dataset_subset(d, row, n, &two, NULL), 0);
	assert_int_equal(widening_estimate(&point, two, &ctx, spread, 1.28, w, NULL), 0);
	assert_true(w[2] >= w[1] && w[2] >= w[3] && w[2] > 1.0);
	/* one row: nothing can be held out, and a stated factor is all there is */
	two->n_rows = 1;
	assert_int_equal(widening_estimate(&point, two, &ctx, spread, 1.28, w, NULL), 0);
	assert_true(w[1] == WIDENING_UNKNOWN && w[0] == 1.0);
	spread_free(spread);
	dataset_free(two);
	dataset_free(d);
}

/* What happens to jobs without devices says nothing of more jobs at a time than were measured. */
TEST(test_jobs_without_devices_are_no_end)
{
	struct grid_point point = { .ops = &forest_ops };
	struct fit_context ctx = { .seed = 1 };
	uint8_t roles[5], factors[5];
	double w[2][5];

	settings_init(&point.settings, forest_ops.spec);
	settings_parse(&point.settings, "trees=30", NULL);
	memcpy(roles, role, sizeof roles);
	memcpy(factors, factor, sizeof factors);
	factors[4] = 1;
	for (int k = 0; k < 2; k++) {
		struct dataset *d = world(2, 0.03, 1, 0.0), *two;
		struct spread *spread = three_percent(d);
		uint32_t row[192];
		size_t n = 0;

		roles[4] = k ? ROLE_DEVICES : ROLE_NONE;
		d->role = roles;
		d->factor = factors;
		for (size_t i = 0; i < d->n_rows; i++) {
			d->x[5 * i + 4] = (double)(i % 3);
			d->y[i] *= i % 3 ? 1.0 : 50.0;
			if (d->x[5 * i + 2] != 3)
				row[n++] = (uint32_t)i;
		}
		assert_int_equal(dataset_subset(d, row, n, &two, NULL), 0);
		assert_int_equal(widening_estimate(&point, two, &ctx, spread, 1.28, w[k], NULL), 0);
		spread_free(spread);
		dataset_free(two);
		dataset_free(d);
	}
	assert_true(w[1][2] < 0.5 * w[0][2]); /* of two levels, so the worst of the others */
	assert_true(w[1][4] < 0.5 * w[0][4]);
}

TEST(test_bounds_are_wider_outside_the_table)
{
	struct feature f[3] = { { .name = "a", .min = 1, .max = 8 },
				{ .name = "b", .min = 64, .max = 512 },
				{ .name = "c", .min = 0, .max = 1 } };
	struct features features = { .feature = f, .n = 3 };
	double widening[3] = { 2.5, 1.5, 1.0 };
	struct model m = { .features = &features,
			   .time = { .widening = widening, .conformal = { .log = true } } };
	double inside[] = { 4, 128, 0 }, high_b[] = { 4, 1024, 0 }, both[] = { 16, 32, 0 },
	       missing[] = { 4, NAN, 0 };

	assert_true(fabs(model_upper(&m, &m.time, inside, 0.1, 200) - 200 * exp(0.1)) < 1e-9);
	assert_true(fabs(model_upper(&m, &m.time, high_b, 0.1, 200) - 200 * exp(0.15)) < 1e-9);
	assert_true(fabs(model_upper(&m, &m.time, both, 0.1, 200) - 200 * exp(0.25)) < 1e-9);
	assert_true(fabs(model_upper(&m, &m.time, missing, 0.1, 200) - 200 * exp(0.25)) < 1e-9);
	/* a negative score (a low confidence) is never made lower */
	assert_true(model_upper(&m, &m.time, high_b, -0.1, 200) >
		    model_upper(&m, &m.time, inside, -0.1, 200));
	m.time.widening = NULL;
	assert_true(model_upper(&m, &m.time, both, 0.1, 200) == model_upper(&m, &m.time, inside, 0.1, 200));
}

/* ---- the whole way ---- */

/* What people are told of the width of bounds is what bounds are: at a row of the table, and at rows that are
 * outside it or new to it. This model does not speak of its own errors. */
static void check_factors(const struct model *m, const double *known)
{
	const struct features *f = m->features;
	double x[5], p, far = 100.0, familiar = model_bound_factor(m, &m->time, KNOWS_SETTING, 0.9);
	size_t batch = 3;

	assert_int_equal(f->n, 5);
	assert_string_equal(f->feature[batch].name, "batch");
	memcpy(x, known, sizeof x);
	predictor_predict(&m->time.predictor, x, 1, &p);
	assert_float_equal(belief_bound(model_belief(m, &m->time, x, p, 0.9), 0.9) / p, familiar, 1e-9);
	x[batch] *= far;
	predictor_predict(&m->time.predictor, x, 1, &p);
	assert_float_equal(belief_bound(model_belief(m, &m->time, x, p, 0.9), 0.9) / p,
			   model_outside_factor(m, &m->time, batch, 0.9), 1e-9);
	x[batch] = known[batch];
	x[2] = 4.0; /* jobs: between levels, so as known as the nearest one */
	x[4] = x[1] * x[2];
	predictor_predict(&m->time.predictor, x, 1, &p);
	assert_float_equal(belief_bound(model_belief(m, &m->time, x, p, 0.9), 0.9) / p,
			   model_bound_factor(m, &m->time, spread_knows(m->time.spread, x), 0.9), 1e-9);
	assert_true(familiar > 1.0 && model_bound_factor(m, &m->time, KNOWS_NOTHING, 0.9) >= familiar);
}

TEST(test_train_stores_log_bounds_and_widening)
{
	struct dataset *d = world(1, 0.05, 2, 0.2);
	struct strbuf text = { 0 };
	struct grid_point point = { .ops = &hybrid_ops };
	struct grid grid = { &point, 1 };
	struct schema *schema = NULL;
	struct csv *csv = NULL;
	struct table *table = NULL;
	struct model *m = NULL, *again = NULL;
	struct writer w = { 0 };
	struct train_report report;
	struct err err = { 0 };

	strbuf_puts(&text, "network,cpus,njobs,batch,time_s\n");
	for (size_t i = 0; i < d->n_rows; i++)
		strbuf_printf(&text, "%s,%g,%g,%g,%.6f\n", d->x[5 * i] ? "b" : "a", d->x[5 * i + 1],
			      d->x[5 * i + 2], d->x[5 * i + 3], d->y[i]);
	settings_init(&point.settings, hybrid_ops.spec);
	settings_parse(&point.settings, "trees=30", NULL);
	if (schema_default(&schema, &err) || csv_parse("t.csv", text.text, text.len, &csv, &err) ||
	    table_read(csv, schema, true, &table, &err))
		fail_msg("%s", err.text);
	for (int plain = 0; plain < 2; plain++) {
		struct train_params p = { .table = table,
					  .grid = &grid,
					  .accuracy_grid = &grid,
					  .split = { .kind = SPLIT_KFOLD, .folds = 2, .seed = 1 },
					  .ctx = { .seed = 1, .want_oob = true },
					  .plain_bounds = plain,
					  .data_name = "t.csv" };

		if (train_model(&p, &m, &report, &err) || model_encode(m, &w, &err) ||
		    model_decode("m", w.out.text, w.out.len, &again, &err))
			fail_msg("%s", err.text);
		assert_int_equal(again->time.conformal.log, !plain);
		assert_int_equal(again->time.conformal.n, m->time.conformal.n);
		assert_int_equal(again->time.conformal.groups, m->time.conformal.groups);
		assert_true(m->time.conformal.n >= 96);
		if (plain) {
			assert_null(again->time.widening);
		} else {
			assert_memory_equal(again->time.widening, m->time.widening,
					    m->features->n * sizeof *m->time.widening);
			assert_string_equal(m->time.residuals_by, "10-fold");
			check_factors(again, d->x);
			assert_non_null(again->time.spread);
		}
		train_report_release(&report);
		model_free(m);
		model_free(again);
		strbuf_reset(&w.out);
	}
	strbuf_release(&w.out);
	table_free(table);
	schema_free(schema);
	csv_free(csv);
	strbuf_release(&text);
	dataset_free(d);
}

TEST(test_unstable_rows_fail_a_model_in_the_search_with_the_load)
{
	struct dataset *d = world(1, 0.02, 1, 0.0);
	struct grid_point point[2] = { { .ops = &queueing_paper_ops }, { .ops = &queueing_ops } };
	struct grid both = { point, 2 }, alone = { point, 1 };
	struct split_params how = { .kind = SPLIT_KFOLD, .folds = 4, .seed = 1 };
	struct search_params p = { .data = d, .grid = &both, .ctx = { .seed = 1 } };
	struct search_result *r = NULL;
	struct split *split = NULL;

	settings_init(&point[0].settings, queueing_paper_ops.spec);
	settings_init(&point[1].settings, queueing_ops.spec);
	/* one worker and a slow CPU: the arrivals overtake the plane that the disk's rate is */
	assert_int_equal(settings_parse(&point[0].settings, "workers=3,cpu_service=0.05", NULL), 0);
	assert_int_equal(split_make(d, &how, &split, NULL), 0);
	p.split = split;
	assert_int_equal(search_run(&p, &r, NULL), 0);
	assert_true(r[0].failed && !r[1].failed);
	assert_non_null(strstr(r[0].why, "unstable"));
	assert_non_null(strstr(r[0].why, "load"));
	assert_int_equal(search_best(r, 2, false), 1);
	free(r);
	p.grid = &alone; /* asked for by name it is still an answer, for the rows that have one */
	assert_int_equal(search_run(&p, &r, NULL), 0);
	assert_true(r[0].failed && isfinite(r[0].score.mean.mse));
	assert_true(search_best(r, 1, false) == SIZE_MAX);
	free(r);
	split_free(split);
	dataset_free(d);
}

TEST(test_description_names_what_could_not_be_told)
{
	struct dataset *d = world(1, 0.02, 1, 0.0), *few;
	struct predictor p;
	struct strbuf out = { 0 };
	struct json_writer w;
	char remark[256];
	uint32_t row[8] = { 0, 1, 24, 25, 48, 49, 72, 73 }; /* one cpu, one job, every batch, both networks */

	assert_int_equal(dataset_subset(d, row, 8, &few, NULL), 0);
	p = fit_with(&hybrid_ops, "trees=5", few, (struct fit_context){ .seed = 1 });
	json_begin(&w, &out, false);
	json_open(&w, '{');
	hybrid_ops.describe(p.self, few, &w);
	json_close(&w, '}');
	assert_non_null(strstr(strbuf_text(&out), "per iteration fixed"));
	assert_non_null(strstr(strbuf_text(&out), "60000 samples and 10 epochs"));
	assert_non_null(strstr(strbuf_text(&out), "\"stated\""));
	hybrid_ops.remark(p.self, few, remark, sizeof remark);
	assert_non_null(strstr(remark, "saturation"));
	assert_non_null(strstr(remark, "exponent"));
	strbuf_release(&out);
	predictor_release(&p);
	dataset_free(few);
	dataset_free(d);
}
