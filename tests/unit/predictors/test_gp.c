/* predictors/models/gp: it finds a law from few rows, says where it does not know, and survives a file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "predictors/models/gp.h"
#include "predictors/models/hybrid.h"
#include "tests/support/test.h"

#define FEATURES 3

static const uint8_t role[] = { ROLE_BATCH, ROLE_CPUS, ROLE_NONE };
static const char *const name[] = { "batch", "cpus", "depth" };

/* A law that no queueing model knows: the time grows with a factor called depth. */
static double law(double batch, double cpus, double depth)
{
	return 60000.0 / batch * (0.001 + 1e-5 * batch / pow(cpus, 0.7)) * pow(depth, 0.6);
}

static struct dataset *draw(size_t n, double noise, uint64_t seed)
{
	struct dataset *d = calloc(1, sizeof *d);
	struct rng rng = rng_stream(seed, 1);

	*d = (struct dataset){ .n_rows = n,
			       .n_features = FEATURES,
			       .x = malloc(n * FEATURES * sizeof(double)),
			       .y = malloc(n * sizeof(double)),
			       .name = name,
			       .role = role };
	for (size_t i = 0; i < n; i++) {
		double *x = d->x + i * FEATURES;

		x[0] = 32 << rng_below(&rng, 5);
		x[1] = 1 << rng_below(&rng, 4);
		x[2] = 1.0 + rng_below(&rng, 12);
		d->y[i] = law(x[0], x[1], x[2]) * exp(noise * rng_normal(&rng));
	}
	return d;
}

static struct predictor fit(const struct predictor_ops *ops, const struct dataset *d)
{
	struct fit_context ctx = { .seed = 1 };
	struct settings s;
	struct predictor p;
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if (predictor_fit(ops, &s, d, &ctx, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static double rms_on(const struct predictor *p, const struct dataset *d)
{
	double squares = 0.0;

	for (size_t i = 0; i < d->n_rows; i++) {
		double t;

		predictor_predict(p, d->x + i * FEATURES, 1, &t);
		squares += pow(log(d->y[i] / t), 2.0) / (double)d->n_rows;
	}
	return sqrt(squares);
}

TEST(test_few_rows_teach_it_more_than_the_hybrid)
{
	double ours = 0.0, theirs = 0.0;

	for (uint64_t seed = 0; seed < 6; seed++) {
		struct dataset *d = draw(24, 0.05, seed), *fresh = draw(300, 0.0, seed + 100);
		struct predictor gp = fit(&gp_ops, d), hybrid = fit(&hybrid_ops, d);

		ours += rms_on(&gp, fresh) / 6.0;
		theirs += rms_on(&hybrid, fresh) / 6.0;
		predictor_release(&gp);
		predictor_release(&hybrid);
		dataset_free(d);
		dataset_free(fresh);
	}
	print_message("log error from 24 rows: gp %.3f, hybrid %.3f\n", ours, theirs);
	assert_true(ours < 0.12 && ours < 0.7 * theirs);
}

TEST(test_it_knows_how_far_off_it_is)
{
	struct dataset *d = draw(40, 0.05, 3), *fresh = draw(400, 0.05, 4);
	struct predictor p = fit(&gp_ops, d);
	double squares = 0.0, far[] = { 64, 2, 3 }, at_home;

	for (size_t i = 0; i < fresh->n_rows; i++) {
		double t, e;

		predictor_predict(&p, fresh->x + i * FEATURES, 1, &t);
		e = log(fresh->y[i] / t) / p.ops->spread(p.self, fresh->x + i * FEATURES);
		squares += e * e / (double)fresh->n_rows;
	}
	print_message("squared error over its own variance: %.2f\n", squares);
	assert_true(squares > 0.4 && squares < 2.5);
	memcpy(far, d->x, sizeof far);
	at_home = p.ops->spread(p.self, far);
	far[2] *= 30.0;
	far[0] *= 8.0;
	assert_true(p.ops->spread(p.self, far) > 1.1 * at_home);
	predictor_release(&p);
	dataset_free(d);
	dataset_free(fresh);
}

TEST(test_rows_of_one_setting_count_as_often_as_they_are)
{
	struct dataset *d = draw(30, 0.05, 5);
	struct predictor once, thrice;
	double x[FEATURES], a, b;

	once = fit(&gp_ops, d);
	d->x = realloc(d->x, 90 * FEATURES * sizeof(double));
	d->y = realloc(d->y, 90 * sizeof(double));
	for (size_t i = 30; i < 90; i++) {
		memcpy(d->x + i * FEATURES, d->x + (i - 30) * FEATURES, FEATURES * sizeof(double));
		d->y[i] = d->y[i - 30];
	}
	d->n_rows = 90;
	thrice = fit(&gp_ops, d);
	memcpy(x, d->x, sizeof x);
	predictor_predict(&once, x, 1, &a);
	predictor_predict(&thrice, x, 1, &b);
	assert_true(fabs(log(b / d->y[0])) <=
		    fabs(log(a / d->y[0])) + 1e-6); /* nearer to what it saw thrice */
	assert_true(thrice.ops->spread(thrice.self, x) < once.ops->spread(once.self, x));
	predictor_release(&once);
	predictor_release(&thrice);
	dataset_free(d);
}

TEST(test_a_table_that_never_varies_and_one_of_one_row_have_a_model)
{
	for (size_t n = 1; n <= 8; n += 7) {
		struct dataset *d = draw(n, 0.0, 6);
		struct predictor p;
		double t;

		for (size_t i = 0; i < n; i++) {
			d->x[i * FEATURES] = 64;
			d->x[i * FEATURES + 1] = 2;
			d->x[i * FEATURES + 2] = 5;
			d->y[i] = 10.0;
		}
		p = fit(&gp_ops, d);
		predictor_predict(&p, d->x, 1, &t);
		assert_true(fabs(t - 10.0) < 0.5);
		assert_true(isfinite(p.ops->spread(p.self, d->x)) && p.ops->spread(p.self, d->x) > 0.0);
		predictor_release(&p);
		dataset_free(d);
	}
}

TEST(test_a_file_keeps_every_bit_and_refuses_damage)
{
	struct dataset *d = draw(50, 0.05, 7);
	struct predictor p = fit(&gp_ops, d);
	struct writer w = { 0 };
	struct reader r;
	void *again = NULL;
	double a[50], b[50];

	assert_int_equal(gp_ops.save(p.self, &w, NULL), 0);
	r = (struct reader){ .bytes = (unsigned char *)w.out.text, .len = w.out.len, .version = UINT32_MAX };
	assert_int_equal(gp_ops.load(&r, FEATURES, &again, NULL), 0);
	assert_int_equal(r.at, r.len);
	gp_ops.predict(p.self, d->x, 50, a);
	gp_ops.predict(again, d->x, 50, b);
	assert_memory_equal(a, b, sizeof a);
	assert_true(gp_ops.spread(p.self, d->x) == gp_ops.spread(again, d->x));
	gp_ops.destroy(again);
	for (size_t len = 0; len < w.out.len; len += 7) {
		r = (struct reader){ .bytes = (unsigned char *)w.out.text,
				     .len = len,
				     .version = UINT32_MAX };
		assert_int_equal(gp_ops.load(&r, FEATURES, &again, NULL), -ERR_FORMAT);
	}
	strbuf_release(&w.out);
	predictor_release(&p);
	dataset_free(d);
}
