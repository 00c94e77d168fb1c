/* automl: the models that campaigns add. Known answers first, then what all of them keep to. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "automl/techniques/models.h"
#include "automl/techniques/technique.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

static struct predictor fit(const struct predictor_ops *ops, const char *set, const struct dataset *d)
{
	struct fit_context ctx = { .seed = 3 };
	struct settings s;
	struct predictor p;
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if (settings_parse(&s, set, &err) || predictor_fit(ops, &s, d, &ctx, &p, &err))
		fail_msg("%s: %s", ops->name, err.text);
	return p;
}

static double r2(const struct predictor *p, const struct dataset *d)
{
	double *out = malloc(d->n_rows * sizeof *out), mean = 0.0, rest = 0.0, all = 0.0;

	predictor_predict(p, d->x, d->n_rows, out);
	for (size_t i = 0; i < d->n_rows; i++)
		mean += d->y[i] / (double)d->n_rows;
	for (size_t i = 0; i < d->n_rows; i++) {
		rest += (out[i] - d->y[i]) * (out[i] - d->y[i]);
		all += (d->y[i] - mean) * (d->y[i] - mean);
	}
	free(out);
	return 1.0 - rest / all;
}

/* The cement of Hald, in Draper and Smith. */
static double hald_x[] = { 7,  26, 6,  60, 1, 29, 15, 52, 11, 56, 8, 20, 11, 31, 8, 47, 7,  52,
			   6,  33, 11, 55, 9, 22, 3,  71, 17, 6,  1, 31, 22, 44, 2, 54, 18, 22,
			   21, 47, 4,  26, 1, 40, 23, 34, 11, 66, 9, 12, 10, 68, 8, 12 };
static double hald_y[] = {
	78.5, 74.3, 104.3, 87.6, 95.9, 109.2, 102.7, 72.5, 93.1, 115.9, 83.8, 113.3, 109.4
};
static struct dataset hald = { .n_rows = 13, .n_features = 4, .x = hald_x, .y = hald_y };

TEST(test_stepwise_finds_what_draper_and_smith_found)
{
	struct predictor p = fit(&stepwise_ops, "", &hald);
	const struct affine *m = p.self;

	/* At 5 % x2 (p = 0.052) stays out: y = 103.10 + 1.440 x1 - 0.614 x4. */
	assert_true(fabs(m->intercept - 103.09738) < 1e-4);
	assert_true(fabs(m->coefficient[0] - 1.43996) < 1e-4);
	assert_true(fabs(m->coefficient[3] + 0.61395) < 1e-4);
	assert_true(m->coefficient[1] == 0.0 && m->coefficient[2] == 0.0);
	predictor_release(&p);
	/* At 10 % the column that goes best with the residual, x3 (p = 0.070), comes in as well. */
	p = fit(&stepwise_ops, "p_to_add=0.1,p_to_remove=0.1", &hald);
	m = p.self;
	assert_true(fabs(m->intercept - 111.68441) < 1e-4);
	assert_true(fabs(m->coefficient[0] - 1.05185) < 1e-4);
	assert_true(fabs(m->coefficient[2] + 0.41004) < 1e-4);
	assert_true(fabs(m->coefficient[3] + 0.64280) < 1e-4);
	assert_true(m->coefficient[1] == 0.0);
	predictor_release(&p);
}

TEST(test_stepwise_with_one_turn_takes_the_most_correlated_column)
{
	struct predictor p = fit(&stepwise_ops, "max_iter=1", &hald);
	const struct affine *m = p.self;

	assert_true(m->coefficient[3] != 0.0 && m->coefficient[0] == 0.0 && m->coefficient[1] == 0.0);
	predictor_release(&p);
}

TEST(test_stepwise_on_noise_is_the_mean)
{
	double x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, y[] = { 1, -1, -1, 1, 1, -1, -1, 1 };
	struct dataset d = { .n_rows = 8, .n_features = 1, .x = x, .y = y };
	struct predictor p = fit(&stepwise_ops, "", &d);
	const struct affine *m = p.self;

	assert_true(m->coefficient[0] == 0.0 && fabs(m->intercept) < 1e-12);
	predictor_release(&p);
}

/* The conditions of Karush, Kuhn and Tucker: the gradient is 0 where a weight is above 0, and not
 * negative where it is 0. alpha: of the penalty, over the rows. */
static void is_optimal(const struct affine *m, const struct dataset *d, double alpha, double tolerance)
{
	for (size_t j = 0; j < d->n_features; j++) {
		double gradient = alpha, length = 0.0;

		for (size_t i = 0; i < d->n_rows; i++) {
			double e = m->intercept - d->y[i];

			for (size_t k = 0; k < d->n_features; k++)
				e += m->coefficient[k] * d->x[i * d->n_features + k];
			gradient += e * d->x[i * d->n_features + j] / (double)d->n_rows;
			length += d->x[i * d->n_features + j] * d->x[i * d->n_features + j];
		}
		assert_true(m->coefficient[j] >= 0.0);
		if (m->coefficient[j] > 0.0 ? fabs(gradient) > tolerance * sqrt(length)
					    : gradient < -tolerance * sqrt(length))
			fail_msg("column %zu: weight %g, gradient %g", j, m->coefficient[j], gradient);
	}
}

TEST(test_both_kinds_of_nnls_are_optimal)
{
	struct dataset *d = world_smooth(60, 6, 1, 0.1, 5);
	static const char *const set[] = { "method=lawson-hanson", "method=lawson-hanson,fit_intercept=no",
					   "alpha=0.001", "alpha=0.5", "alpha=0.01,fit_intercept=no" };
	static const double alpha[] = { 0, 0, 0.001, 0.5, 0.01 };

	for (size_t i = 0; i < d->n_rows; i++) /* some weights want to be negative */
		d->y[i] = 3 * d->x[i * 6] - 2 * d->x[i * 6 + 1] + 0.5 * d->x[i * 6 + 2] + d->y[i] * 0.01;
	for (size_t k = 0; k < 5; k++) {
		struct predictor p = fit(&nnls_ops, set[k], d);

		is_optimal(p.self, d, alpha[k], 1e-9);
		predictor_release(&p);
	}
	dataset_free(d);
}

TEST(test_lawson_hanson_on_hald_is_least_squares_where_weights_are_positive)
{
	struct predictor p = fit(&nnls_ops, "method=lawson-hanson", &hald);
	const struct affine *m = p.self;

	is_optimal(m, &hald, 0.0, 1e-9);
	assert_true(m->coefficient[0] > 1.0 && m->coefficient[1] > 0.3);
	predictor_release(&p);
}

TEST(test_support_vectors_of_a_line_are_a_line)
{
	double x[20], y[20];
	struct dataset d = { .n_rows = 20, .n_features = 1, .x = x, .y = y };
	struct predictor p;
	double ask = 2.37, out;

	for (int i = 0; i < 20; i++) {
		x[i] = 0.1 * i;
		y[i] = 4.0 + 3.0 * x[i];
	}
	p = fit(&svr_ops, "C=1000,epsilon=0.01,tolerance=1e-6", &d);
	predictor_predict(&p, &ask, 1, &out);
	assert_true(fabs(out - 11.11) < 0.05); /* the tube of 0.01, extended from 1.9 to 2.37 */
	predictor_release(&p);
}

TEST(test_kernels_follow_a_curve)
{
	double x[50], y[50];
	struct dataset d = { .n_rows = 50, .n_features = 1, .x = x, .y = y };

	for (int i = 0; i < 50; i++) {
		x[i] = 0.1 * i - 2.5;
		y[i] = sin(2.0 * x[i]);
	}
	for (size_t k = 0; k < 2; k++) {
		struct predictor p = fit(&svr_ops,
					 k ? "C=100,epsilon=0.01,kernel=rbf,gamma=scale"
					   : "C=100,epsilon=0.01,kernel=rbf,gamma=1",
					 &d);

		assert_true(r2(&p, &d) > 0.98);
		predictor_release(&p);
	}
}

TEST(test_a_network_learns_and_stops_early)
{
	double *x = malloc(200 * 2 * sizeof *x), *y = malloc(200 * sizeof *y);
	struct dataset d = { .n_rows = 200, .n_features = 2, .x = x, .y = y };
	static const char *const set[] = {
		"dropout1=0,dropout2=0,epochs=300,learning_rate=0.01",
		"dropout1=0,dropout2=0,epochs=300,learning_rate=0.01,activation=tanh,loss=mae",
		"layer1=30,layer2=0,dropout1=0,epochs=400,optimizer=sgd,learning_rate=0.02,activation="
		"sigmoid",
		"dropout1=0.1,dropout2=0.1,epochs=2000,learning_rate=0.01,patience=20",
	};
	struct rng rng = rng_stream(1, 2);

	for (int i = 0; i < 200; i++) {
		x[2 * i] = rng_normal(&rng);
		x[2 * i + 1] = rng_normal(&rng);
		y[i] = x[2 * i] * (x[2 * i + 1] > 0 ? 1.0 : -0.5) + 0.05 * rng_normal(&rng);
	}
	for (size_t k = 0; k < 4; k++) {
		struct predictor p = fit(&network_ops, set[k], &d);
		double got = r2(&p, &d), least = k == 2 ? 0.7 : 0.85; /* plain descent is slower */

		if (!(got > least))
			fail_msg("%s: R2 %g", set[k], got);
		predictor_release(&p);
	}
	free(x);
	free(y);
}

/* The gradient that training uses against a difference: one step of plain descent on one batch of all
 * rows. */
TEST(test_the_step_of_a_network_is_the_gradient)
{
	double x[] = { 0.3, -0.7, 0.9, 0.1, -0.4, 0.6 }, y[] = { 0.5, -0.2, 0.8 };
	struct dataset d = { .n_rows = 3, .n_features = 2, .x = x, .y = y };
	const char *slow =
		"layer1=3,layer2=2,dropout1=0,dropout2=0,activation=tanh,optimizer=sgd,batch_size=3,epochs=1,"
		"learning_rate=1e-9";
	const char *step =
		"layer1=3,layer2=2,dropout1=0,dropout2=0,activation=tanh,optimizer=sgd,batch_size=3,epochs=1,"
		"learning_rate=1e-3";
	struct predictor a = fit(&network_ops, slow, &d), b = fit(&network_ops, step, &d);
	struct writer w = { 0 }, v = { 0 };
	double before = 0.0, after = 0.0, expected = 0.0, out[3];
	size_t head = 4 + 1 + 1 + 2 * 4, n;

	predictor_predict(&a, x, 3, out);
	for (int i = 0; i < 3; i++)
		before += (out[i] - y[i]) * (out[i] - y[i]) / 3;
	predictor_predict(&b, x, 3, out);
	for (int i = 0; i < 3; i++)
		after += (out[i] - y[i]) * (out[i] - y[i]) / 3;
	assert_int_equal(network_ops.save(a.self, &w, NULL), 0);
	assert_int_equal(network_ops.save(b.self, &v, NULL), 0);
	n = (w.out.len - head) / 8;
	for (size_t i = 0; i < n;
	     i++) { /* a step of rate r lowers the loss by |step|^2 / r, to first order */
		double p, q;

		memcpy(&p, w.out.text + head + 8 * i, 8);
		memcpy(&q, v.out.text + head + 8 * i, 8);
		expected += (p - q) * (p - q) / 1e-3;
	}
	assert_true(expected > 1e-6);
	assert_true(fabs((before - after) / expected - 1.0) < 0.01); /* second order: the rate is 0.001 */
	strbuf_release(&w.out);
	strbuf_release(&v.out);
	predictor_release(&a);
	predictor_release(&b);
}

TEST(test_xgboost_fits_a_step_with_one_split)
{
	double x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, y[] = { 10, 10, 10, 10, 20, 20, 20, 20 }, out[8];
	struct dataset d = { .n_rows = 8, .n_features = 1, .x = x, .y = y };
	struct predictor p;

	if (!xgboost_available()) {
		print_message("skipped: libxgboost is not installed\n");
		return;
	}
	p = fit(&xgboost_ops, "n_estimators=1,learning_rate=1,max_depth=1,lambda=0,gamma=0", &d);
	predictor_predict(&p, x, 8, out);
	for (int i = 0; i < 8; i++)
		assert_true(fabs(out[i] - y[i]) < 1e-5); /* single precision inside */
	predictor_release(&p);
	p = fit(&xgboost_ops, "n_estimators=1,learning_rate=1,max_depth=1,lambda=1,gamma=0", &d);
	predictor_predict(&p, x, 8, out);
	/* a leaf is G / (H + lambda): 4 rows of residual 9.5 give 0.5 + 38 / 5 */
	assert_true(fabs(out[0] - 8.1) < 1e-5 && fabs(out[7] - 16.1) < 1e-5);
	predictor_release(&p);
}

/* ---- every technique ---- */

static struct writer saved(const struct predictor *p)
{
	struct writer w = { 0 };

	assert_int_equal(p->ops->save(p->self, &w, NULL), 0);
	return w;
}

static const struct predictor_ops *const own[] = { &mean_ops, &nnls_ops,    &stepwise_ops,
						   &svr_ops,  &xgboost_ops, &network_ops };
#define N_OWN (sizeof own / sizeof *own)

TEST(test_models_survive_a_file_and_repeat)
{
	for (size_t k = 0; k < N_OWN; k++) {
		const char *set = own[k] == &xgboost_ops ? "n_estimators=5"
				  : own[k] == &svr_ops   ? "kernel=rbf,gamma=scale"
							 : "";
		struct predictor p = fit(own[k], set, &hald), q = fit(own[k], set, &hald);
		struct writer a = saved(&p), b = saved(&q);
		struct reader r = { .bytes = (unsigned char *)a.out.text, .len = a.out.len };
		double one[13], two[13];
		void *again;

		assert_int_equal(a.out.len, b.out.len);
		assert_memory_equal(a.out.text, b.out.text, a.out.len);
		assert_int_equal(own[k]->load(&r, 4, &again, NULL), 0);
		assert_true(!r.failed && r.at == r.len);
		predictor_predict(&p, hald_x, 13, one);
		own[k]->predict(again, hald_x, 13, two);
		assert_memory_equal(one, two, sizeof one);
		own[k]->destroy(again);
		for (size_t len = 0; len < a.out.len; len += 1 + len / 50) {
			struct reader cut = { .bytes = (unsigned char *)a.out.text, .len = len };

			if (own[k]->load(&cut, 4, &again, NULL) == 0) {
				assert_true(cut.failed || cut.at > len);
				own[k]->destroy(again);
			}
		}
		strbuf_release(&a.out);
		strbuf_release(&b.out);
		predictor_release(&p);
		predictor_release(&q);
	}
}

TEST(test_damaged_files_never_crash)
{
	struct rng rng = rng_stream(3, 3);

	for (size_t k = 0; k < N_OWN; k++) {
		const char *set = own[k] == &xgboost_ops ? "n_estimators=3"
				  : own[k] == &svr_ops   ? "kernel=rbf,gamma=scale"
							 : "";
		struct predictor p = fit(own[k], set, &hald);
		struct writer w = saved(&p);

		for (int turn = 0; turn < 2000; turn++) {
			unsigned char *copy = malloc(w.out.len);
			struct reader r = { .bytes = copy, .len = w.out.len };
			double out[13];
			void *self;

			memcpy(copy, w.out.text, w.out.len);
			copy[rng_below(&rng, (uint32_t)w.out.len)] ^=
				(unsigned char)(1 << rng_below(&rng, 8));
			if (own[k]->load(&r, 4, &self, NULL) == 0) {
				own[k]->predict(self, hald_x, 13, out);
				own[k]->destroy(self);
			}
			free(copy);
		}
		strbuf_release(&w.out);
		predictor_release(&p);
	}
}

TEST(test_every_default_of_every_technique_is_a_valid_setting)
{
	for (const struct technique *t = technique_all; t->name; t++) {
		struct settings s;

		settings_init(&s, t->ops->spec);
		for (const struct technique_key *k = t->key; k->name; k++) {
			struct literal v;
			struct err err = { 0 };

			assert_int_equal(literal_parse(k->otherwise, &v, &err), 0);
			if (technique_set(k, &v, &s, &err))
				fail_msg("%s %s: %s", t->name, k->name, err.text);
			literal_release(&v);
		}
	}
}
