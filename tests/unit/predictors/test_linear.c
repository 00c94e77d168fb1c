/* predictors/linear: parity with exact arithmetic and scikit-learn, the rules for terms, model files. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/rng.h"
#include "predictors/models/linear.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static const struct predictor_ops *const every[] = { &linear_ops, &ridge_ops, &lasso_ops };

static int try_fit(const struct predictor_ops *ops, const char *settings, const struct dataset *d, void **out,
		   struct err *err)
{
	struct settings s;
	struct fit_context ctx = { .seed = 1 };

	settings_init(&s, ops->spec);
	if (*settings)
		assert_int_equal(settings_parse(&s, settings, err), 0);
	return ops->fit(&s, d, &ctx, out, err);
}

static void *fit(const struct predictor_ops *ops, const char *settings, const struct dataset *d)
{
	struct err err = { 0 };
	void *self = NULL;

	if (try_fit(ops, settings, d, &self, &err))
		fail_msg("%s %s: %s", ops->name, settings, err.text);
	return self;
}

static double predict1(const struct predictor_ops *ops, const void *self, const double *x)
{
	double out;

	ops->predict(self, x, 1, &out);
	return out;
}

static void near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

static struct json *describe(const struct predictor_ops *ops, const void *self, const struct dataset *names)
{
	struct strbuf b = { 0 };
	struct json_writer w;
	struct json *v = NULL;
	struct err err = { 0 };

	json_begin(&w, &b, false);
	json_open(&w, '{');
	ops->describe(self, names, &w);
	json_close(&w, '}');
	if (json_parse("describe", strbuf_text(&b), b.len, &v, &err))
		fail_msg("%s", err.text);
	strbuf_release(&b);
	return v;
}

static double coefficient(const struct json *v, const char *term)
{
	const struct json *t = json_first(json_get(v, "terms"));

	for (; t; t = json_next(t))
		if (!strcmp(json_string(json_get(t, "term"), ""), term))
			return json_number(json_get(t, "coefficient"), NAN);
	return NAN;
}

/* ---- the Courier table: cpu, batch, njobs, network (simplenet = 1), processes (derived) ---- */

static const char *const courier_name[] = { "cpu", "batch", "njobs", "network", "processes" };
static const uint8_t courier_factor[] = { 1, 1, 1, 1, 0 };

static bool courier(struct dataset *d)
{
	const char *path = support_shared_data("courier-bigdl/fullfactorial_rep1.csv");
	struct csv *t = NULL;
	struct err err = { 0 };

	if (!path)
		return false;
	if (csv_read_file(path, &t, &err))
		fail_msg("%s", err.text);
	*d = (struct dataset){
		.n_rows = t->n_rows, .n_features = 5, .name = courier_name, .factor = courier_factor
	};
	d->x = malloc(t->n_rows * 5 * sizeof *d->x);
	d->y = malloc(t->n_rows * sizeof *d->y);
	for (size_t i = 0; i < t->n_rows; i++) {
		double *x = d->x + 5 * i;

		for (int j = 0; j < 3; j++)
			assert_int_equal(
				csv_number(t, i, (size_t)csv_column(t, courier_name[j]), &x[j], &err), 0);
		x[3] = !strcmp(csv_cell(t, i, (size_t)csv_column(t, "network")), "simplenet");
		x[4] = x[0] * x[2];
		assert_int_equal(csv_number(t, i, (size_t)csv_column(t, "time_s"), &d->y[i], &err), 0);
	}
	csv_free(t);
	return true;
}

static void release(struct dataset *d)
{
	free(d->x);
	free(d->y);
}

/* The reference is the solution of the normal equations in exact rational arithmetic (Python's fractions) on
 * the 96 rows; scikit-learn's LinearRegression is within 7e-12 of it. */
TEST(test_linear_equals_exact_arithmetic_on_the_courier_table)
{
	static const struct {
		const char *term;
		double value;
	} want[] = {
		{ "cpu", -17.085933012791429 },
		{ "batch", -0.65283927700013777 },
		{ "njobs", -7.909684750945174 },
		{ "network", -40.865059443131678 },
		{ "cpu:batch", 0.011081301036842314 },
		{ "cpu:njobs", 14.179204575614365 },
		{ "cpu:network", 5.7265623432892268 },
		{ "batch:njobs", 0.034104778661094029 },
		{ "batch:network", -0.17689157188927618 },
		{ "njobs:network", 6.4910216318525453 },
		{ "cpu:batch:njobs", -0.028710756481273629 },
		{ "cpu:batch:network", 0.022306054522979676 },
		{ "cpu:njobs:network", -2.0246365482041591 },
		{ "batch:njobs:network", 0.020671343030777434 },
		{ "cpu:batch:njobs:network", -0.0012139960559428178 },
	};
	struct dataset d;
	struct json *v;
	void *m;

	if (!courier(&d))
		skip();
	m = fit(&linear_ops, "", &d);
	v = describe(&linear_ops, m, &d);
	assert_int_equal(json_size(json_get(v, "terms")), 15);
	assert_int_equal(json_size(json_get(v, "aliased")), 0);
	near(json_number(json_get(v, "intercept"), NAN), 443.41414542296786, 1e-10);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		near(coefficient(v, want[i].term), want[i].value, 1e-10);
	near(predict1(&linear_ops, m, d.x), 391.87043919270434, 1e-11);
	near(predict1(&linear_ops, m, d.x + 5 * 37), 549.63884483310164, 1e-11);
	near(predict1(&linear_ops, m, d.x + 5 * 95), 30.063879435489184, 1e-11);
	json_free(v);
	linear_ops.destroy(m);
	m = fit(&linear_ops, "log=yes", &d); /* LinearRegression on log(time), predictions through exp */
	near(predict1(&linear_ops, m, d.x), 385.56487034956683, 1e-10);
	near(predict1(&linear_ops, m, d.x + 5 * 95), 111.57431417926104, 1e-10);
	linear_ops.destroy(m);
	release(&d);
}

/* From scikit-learn 1.2: coefficients of cpu batch njobs network processes, intercept, prediction of row
 * 37. */
static void check_shrunk(const struct predictor_ops *ops, const char *settings, const struct dataset *d,
			 const double *want, double tolerance)
{
	void *m = fit(ops, settings, d);
	struct json *v = describe(ops, m, d);

	for (int j = 0; j < 5; j++)
		if (want[j] == 0.0)
			assert_true(coefficient(v, courier_name[j]) == 0.0);
		else
			near(coefficient(v, courier_name[j]), want[j], tolerance);
	near(json_number(json_get(v, "intercept"), NAN), want[5], tolerance);
	near(predict1(ops, m, d->x + 5 * 37), want[6], tolerance);
	json_free(v);
	ops->destroy(m);
}

TEST(test_ridge_equals_scikit_learn_on_the_courier_table)
{
	struct dataset d;

	if (!courier(&d))
		skip();
	/* Ridge(alpha) through Cholesky: good to about 1e-11 itself */
	check_shrunk(&ridge_ops, "", &d,
		     (double[]){ -8.8569463200000875, -0.8544094172124741, 5.9988891658578947,
				 -32.128797580000011, 6.1250816941401256, 466.15565876226071,
				 505.61651365759838 },
		     1e-10);
	check_shrunk(&ridge_ops, "alpha=100", &d,
		     (double[]){ -6.8338912207666667, -0.85437948927305263, 5.2704090760877165,
				 -6.4775801572580658, 5.7765909488674723, 451.84237187693111,
				 496.94036479840486 },
		     1e-10);
	check_shrunk(&ridge_ops, "alpha=10,standardize=yes", &d, /* StandardScaler before, undone after */
		     (double[]){ -2.1541756529797436, -0.77380502900430714, 12.802722322926265,
				 -30.31018639622642, 3.961343852832822, 424.69646124258963,
				 491.41995359924255 },
		     1e-10);
	/* the five features and the six products of two factors; cpu:njobs = processes share one effect */
	check_shrunk(&ridge_ops, "alpha=5,degree=2", &d,
		     (double[]){ 4.9790370492391869, -0.38440084671776664, 19.992079887489187,
				 -17.974686836898197, 3.1831444931148174, 359.32456922985818,
				 541.85952835635442 },
		     1e-10);
	release(&d);
}

TEST(test_lasso_equals_scikit_learn_on_the_courier_table)
{
	struct dataset d;

	if (!courier(&d))
		skip();
	/* Lasso(alpha, tol=1e-15). Ours stops at a gap of 1e-13 of the variation, so about 1e-6 of a fit */
	check_shrunk(&lasso_ops, "alpha=0.5", &d,
		     (double[]){ -8.7972826147644412, -0.8543927358299368, 5.8384906290762162,
				 -31.467497479166695, 6.1241034801630443, 466.08946680298868,
				 505.52402620289888 },
		     1e-6);
	check_shrunk(&lasso_ops, "alpha=20", &d,
		     (double[]){ -5.0457929989556796, -0.85373037169950172, 0, 0, 5.77795476764706,
				 457.53830951585144, 501.20413615896734 },
		     1e-6);
	check_shrunk(&lasso_ops, "alpha=7,standardize=yes", &d,
		     (double[]){ 0, -0.81361263416507512, 11.815490344052769, -19.467497479166713,
				 3.4371416762037814, 429.60975374766724, 495.47641642215149 },
		     1e-6);
	release(&d);
}

/* ---- small worked examples ---- */

static double cross_x[] = { 0, 0, /**/ 1, 0, /**/ 0, 1, /**/ 1, 1 };
static double cross_y[] = { 2.37, 5.5, 4.25, 11.75 };

TEST(test_linear_reproduces_four_corners_with_their_interaction)
{
	struct dataset d = { .n_rows = 4, .n_features = 2, .x = cross_x, .y = cross_y };
	void *m = fit(&linear_ops, "", &d);
	struct json *v = describe(&linear_ops, m, NULL);

	/* level, two differences to the first corner, and the difference of differences */
	near(json_number(json_get(v, "intercept"), NAN), 2.37, 1e-13);
	near(coefficient(v, "x0"), 3.13, 1e-13);
	near(coefficient(v, "x1"), 1.88, 1e-13);
	near(coefficient(v, "x0:x1"), 11.75 - 5.5 - 4.25 + 2.37, 1e-13);
	json_free(v);
	linear_ops.destroy(m);
	/* without the interaction every corner is off by a quarter of it */
	m = fit(&linear_ops, "degree=1", &d);
	near(predict1(&linear_ops, m, cross_x), 2.37 + 4.37 / -4.0, 1e-13);
	linear_ops.destroy(m);
}

/* y = 1.5 + 2 a - 0.25 a^2 + 0.5 b, with a category that has no square. */
TEST(test_squares_are_terms_and_survive_a_file)
{
	double x[8 * 3], y[8], at[] = { 9.5, 2, 1 };
	const char *const name[] = { "a", "b", "c=x" };
	struct dataset d = { .n_rows = 8, .n_features = 3, .x = x, .y = y, .name = name };
	void *m, *again = NULL;
	struct writer w = { 0 };
	struct reader r;
	struct json *v;

	for (size_t i = 0; i < 8; i++) {
		double a = x[3 * i] = (double)(i % 4) * 1.7, b = x[3 * i + 1] = (double)(i * i % 5);

		x[3 * i + 2] = (double)(i / 4);
		y[i] = 1.5 + 2.0 * a - 0.25 * a * a + 0.5 * b;
	}
	m = fit(&linear_ops, "degree=1,squares=yes", &d);
	v = describe(&linear_ops, m, &d);
	near(coefficient(v, "a"), 2.0, 1e-9);
	near(coefficient(v, "a:a"), -0.25, 1e-9);
	assert_true(fabs(coefficient(v, "b:b")) < 1e-9);
	assert_true(isnan(coefficient(v, "c=x:c=x")));
	near(predict1(&linear_ops, m, at), 1.5 + 19.0 - 0.25 * 90.25 + 1.0, 1e-9);
	assert_int_equal(linear_ops.save(m, &w, NULL), 0);
	r = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(linear_ops.load(&r, 3, &again, NULL), 0);
	assert_true(predict1(&linear_ops, again, at) == predict1(&linear_ops, m, at));
	strbuf_release(&w.out);
	json_free(v);
	linear_ops.destroy(again);
	linear_ops.destroy(m);
}

TEST(test_derived_features_stay_out_of_linear_and_in_ridge)
{
	double x[] = { 1, 2, 2, /**/ 3, 1, 3, /**/ 2, 5, 10, /**/ 4, 4, 16 }, y[] = { 1, 2, 4, 3.3 };
	const char *const name[] = { "a", "b", "ab" };
	struct dataset d = {
		.n_rows = 4, .n_features = 3, .x = x, .y = y, .name = name, .factor = (uint8_t[]){ 1, 1, 0 }
	};
	void *m = fit(&linear_ops, "", &d);
	struct json *v = describe(&linear_ops, m, &d);

	assert_int_equal(json_size(json_get(v, "terms")), 3); /* a, b, a:b */
	assert_true(isnan(coefficient(v, "ab")));
	json_free(v);
	linear_ops.destroy(m);
	m = fit(&ridge_ops, "", &d);
	v = describe(&ridge_ops, m, &d);
	assert_int_equal(json_size(json_get(v, "terms")), 3); /* a, b, ab */
	assert_false(isnan(coefficient(v, "ab")));
	json_free(v);
	ridge_ops.destroy(m);
}

TEST(test_columns_of_one_category_are_not_multiplied)
{
	const char *const name[] = { "net=a", "net=b", "net=c", "cpu", "nether" };
	double x[60 * 5], y[60];
	struct dataset d = { .n_rows = 60, .n_features = 5, .x = x, .y = y, .name = name };
	struct rng r = rng_stream(5, 0);
	struct json *v;
	void *m;

	for (int i = 0; i < 60; i++) {
		for (int j = 0; j < 3; j++)
			x[5 * i + j] = i % 3 == j;
		x[5 * i + 3] = 1 + rng_below(&r, 8);
		x[5 * i + 4] = rng_uniform(&r);
		y[i] = rng_normal(&r);
	}
	m = fit(&linear_ops, "", &d);
	v = describe(&linear_ops, m, &d);
	/* groups of 3, 1 and 1: 5 + (3 + 3 + 1) + 3 terms */
	assert_int_equal(json_size(json_get(v, "terms")) + json_size(json_get(v, "aliased")), 15);
	assert_true(isnan(coefficient(v, "net=a:net=b")));
	/* the three columns sum to 1, so the last goes, and with it its products */
	assert_int_equal(json_size(json_get(v, "aliased")), 4);
	assert_string_equal(json_string(json_at(json_get(v, "aliased"), 0), ""), "net=c");
	json_free(v);
	linear_ops.destroy(m);
}

TEST(test_too_many_terms_name_the_degree_that_fits)
{
	double x[14 * 3], y[3] = { 1, 2, 3 };
	struct dataset d = { .n_rows = 3, .n_features = 14, .x = x, .y = y };
	struct err err = { 0 };
	void *m = NULL;

	for (int i = 0; i < 42; i++)
		x[i] = i % 5;
	assert_int_equal(try_fit(&linear_ops, "", &d, &m, &err), -ERR_ARG);
	assert_non_null(
		strstr(err.text, "set degree=4")); /* 14 + 91 + 364 + 1001 = 1470; with 2002 more too many */
	assert_null(m);
	assert_int_equal(try_fit(&linear_ops, "degree=5", &d, &m, &err), -ERR_ARG);
	m = fit(&linear_ops, "degree=4", &d);
	linear_ops.destroy(m);
}

TEST(test_one_row_predicts_its_target)
{
	double x[] = { 3, NAN, 7 }, y[] = { 2.37 }, other[] = { 9, 1, NAN };
	struct dataset d = { .n_rows = 1, .n_features = 3, .x = x, .y = y };

	for (int k = 0; k < 3; k++) {
		void *m = fit(every[k], "", &d);

		assert_true(predict1(every[k], m, other) == 2.37);
		every[k]->destroy(m);
	}
}

TEST(test_fewer_rows_than_terms_still_fits_the_rows)
{
	double x[] = { 1, 2, 3, 1, /**/ 2, 7, 1, 8, /**/ 3, 1, 4, 1 }, y[] = { 2.37, 9.1, 4.4 }, out[3];
	struct dataset d = { .n_rows = 3, .n_features = 4, .x = x, .y = y };
	void *m = fit(&linear_ops, "", &d);

	linear_ops.predict(m, x, 3, out);
	for (int i = 0; i < 3; i++)
		near(out[i], y[i], 1e-12);
	linear_ops.destroy(m);
}

TEST(test_constant_columns_have_coefficient_zero)
{
	double x[] = { 4.1, 1, /**/ 4.1, 2, /**/ 4.1, 4, /**/ 4.1, 8 }, y[] = { 3, 5, 9, 17 };
	double moved[] = { 99, 4 };
	struct dataset d = { .n_rows = 4, .n_features = 2, .x = x, .y = y };

	for (int k = 0; k < 3; k++) {
		void *m = fit(every[k], k ? "alpha=0" : "degree=1", &d);

		near(predict1(every[k], m, moved), 9.0, 1e-13);
		every[k]->destroy(m);
	}
}

TEST(test_missing_feature_counts_as_its_training_mean)
{
	double x[] = { 1, 5, /**/ 2, NAN, /**/ 4, 2, /**/ 9, 8, /**/ 3, 1 }, y[] = { 3, 5, 1, 17, 2.37 };
	double filled[] = { 1, 5, /**/ 2, 4, /**/ 4, 2, /**/ 9, 8, /**/ 3, 1 };
	double missing[] = { NAN, 3 }, mean[] = { 3.8, 3 }, infinite[] = { INFINITY, 3 };
	struct dataset d = { .n_rows = 5, .n_features = 2, .x = x, .y = y };
	struct dataset whole = { .n_rows = 5, .n_features = 2, .x = filled, .y = y };

	for (int k = 0; k < 3; k++) {
		void *a = fit(every[k], "", &d), *b = fit(every[k], "", &whole);

		near(predict1(every[k], a, missing), predict1(every[k], b, mean), 1e-13);
		assert_true(predict1(every[k], a, infinite) == predict1(every[k], a, missing));
		every[k]->destroy(a);
		every[k]->destroy(b);
	}
}

TEST(test_column_that_is_always_missing_is_ignored)
{
	double x[] = { NAN, 1, /**/ NAN, 2, /**/ NAN, 4 }, y[] = { 1, 2, 4 }, ask[] = { 77, 3 };
	struct dataset d = { .n_rows = 3, .n_features = 2, .x = x, .y = y };
	void *m = fit(&linear_ops, "", &d);

	near(predict1(&linear_ops, m, ask), 3.0, 1e-13);
	linear_ops.destroy(m);
}

TEST(test_huge_values_neither_overflow_nor_lose_the_fit)
{
	double x[] = { 1e250, 1e200, /**/ 2e250, 3e200, /**/ 4e250, 1e200, /**/ 8e250, 5e200 };
	double y[] = { 1e290, 3e290, 2e290, 9e290 }, out[4], far[] = { DBL_MAX, -DBL_MAX }, v;
	struct dataset d = { .n_rows = 4, .n_features = 2, .x = x, .y = y };
	void *m = fit(&linear_ops, "", &d); /* the product of the two would be 1e450 */

	linear_ops.predict(m, x, 4, out);
	for (int i = 0; i < 4; i++)
		near(out[i], y[i], 1e-12);
	linear_ops.predict(m, far, 1, &v);
	assert_true(isfinite(v));
	linear_ops.destroy(m);
	for (int k = 1; k < 3; k++) {
		m = fit(every[k], "degree=0", &d);
		every[k]->predict(m, far, 1, &v);
		assert_true(isfinite(v));
		every[k]->destroy(m);
	}
}

TEST(test_log_of_a_target_at_zero_is_refused)
{
	double x[] = { 1, 2 }, y[] = { 3, 0 };
	struct dataset d = { .n_rows = 2, .n_features = 1, .x = x, .y = y };
	struct err err = { 0 };
	void *m = NULL;

	assert_int_equal(try_fit(&linear_ops, "log=yes", &d, &m, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "row 2 has 0"));
	d.n_rows = 0;
	assert_int_equal(try_fit(&linear_ops, "", &d, &m, &err), -ERR_NODATA);
}

/* Relations that hold for any data: a larger alpha never makes the penalised length grow, and at an alpha
 * beyond max |x'y| / n the lasso is the mean. */
TEST(test_penalty_shrinks)
{
	enum { N = 40, K = 4 };
	double x[N * K], y[N], at_zero[K] = { 0 };
	struct dataset d = { .n_rows = N, .n_features = K, .x = x, .y = y };
	struct rng r = rng_stream(9, 2);
	double mean = 0.0, last[3] = { INFINITY, INFINITY, INFINITY };

	for (int i = 0; i < N; i++) {
		y[i] = 10.0;
		for (int j = 0; j < K; j++) {
			x[i * K + j] = rng_normal(&r);
			y[i] += (j + 1) * x[i * K + j];
		}
		y[i] += rng_normal(&r);
		mean += y[i] / N;
	}
	for (double alpha = 0.001; alpha < 200.0; alpha *= 3.0) {
		char text[64];

		snprintf(text, sizeof text, "alpha=%g", alpha);
		for (int k = 1; k < 3; k++) {
			void *m = fit(every[k], text, &d);
			double size = 0.0, base = predict1(every[k], m, at_zero);

			for (int j = 0; j < K; j++) {
				double probe[K] = { 0 }, b;

				probe[j] = 1.0;
				b = predict1(every[k], m, probe) - base;
				size += k == 1 ? b * b : fabs(b);
			}
			assert_true(size <= last[k] * (1.0 + 1e-9));
			last[k] = size;
			if (k == 2 && alpha > 100.0)
				near(base, mean, 1e-12);
			every[k]->destroy(m);
		}
	}
}

TEST(test_importances_sum_to_one_and_follow_the_effects)
{
	struct dataset d = { .n_rows = 4, .n_features = 2, .x = cross_x, .y = cross_y };
	void *m = fit(&linear_ops, "degree=1", &d);
	double importance[2], sum = 7.5 + 3.13 + 6.25 + 1.88;

	linear_ops.importances(m, importance);
	/* equal spreads, so as the mean differences: (3.13 + 7.5) / 2 to (1.88 + 6.25) / 2 */
	near(importance[0], (3.13 + 7.5) / sum, 1e-12);
	near(importance[1], (1.88 + 6.25) / sum, 1e-12);
	linear_ops.destroy(m);
	m = fit(&lasso_ops, "alpha=1000", &d);
	lasso_ops.importances(m, importance);
	assert_true(importance[0] == 0.0 && importance[1] == 0.0);
	lasso_ops.destroy(m);
}

/* ---- model files ---- */

static void random_rows(double *x, double *y, size_t n, size_t k, uint64_t seed)
{
	struct rng r = rng_stream(seed, 0);

	for (size_t i = 0; i < n; i++) {
		y[i] = exp(rng_normal(&r));
		for (size_t j = 0; j < k; j++)
			x[i * k + j] = rng_uniform(&r) < 0.1 ? NAN : ldexp(rng_normal(&r), (int)(j * 9));
	}
}

TEST(test_loaded_model_predicts_the_same_bits)
{
	enum { N = 50, K = 4 };
	double x[N * K], y[N], before[N], after[N];
	const char *const settings[] = { "log=yes", "alpha=0.3,degree=2", "alpha=0.01,standardize=yes" };
	struct dataset d = { .n_rows = N, .n_features = K, .x = x, .y = y };

	random_rows(x, y, N, K, 21);
	for (int k = 0; k < 3; k++) {
		void *m = fit(every[k], settings[k], &d), *copy = NULL;
		struct writer w = { .out = { 0 } }, again = { .out = { 0 } };
		struct err err = { 0 };
		struct reader r;

		every[k]->predict(m, x, N, before);
		assert_int_equal(every[k]->save(m, &w, &err), 0);
		r = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = w.out.len };
		assert_int_equal(every[k]->load(&r, K, &copy, &err), 0);
		assert_int_equal(read_left(&r), 0);
		every[k]->predict(copy, x, N, after);
		assert_memory_equal(before, after, sizeof before);
		assert_int_equal(every[k]->save(copy, &again, &err), 0);
		assert_int_equal(again.out.len, w.out.len);
		assert_memory_equal(again.out.text, w.out.text, w.out.len);
		every[k]->destroy(m);
		every[k]->destroy(copy);
		strbuf_release(&w.out);
		strbuf_release(&again.out);
	}
}

/* Every truncation and every changed byte is refused, or loads to a model that predicts finite numbers. */
TEST(test_damaged_model_never_harms)
{
	double x[20 * 3], y[20];
	struct dataset d = { .n_rows = 20, .n_features = 3, .x = x, .y = y };
	struct writer w = { .out = { 0 } };
	struct err err = { 0 };
	unsigned char *bytes;
	void *m;

	random_rows(x, y, 20, 3, 4);
	m = fit(&linear_ops, "", &d);
	assert_int_equal(linear_ops.save(m, &w, &err), 0);
	linear_ops.destroy(m);
	bytes = malloc(w.out.len);
	for (size_t cut = 0; cut < w.out.len; cut++) {
		struct reader r = { .bytes = bytes, .len = cut };

		memcpy(bytes, w.out.text, cut);
		m = NULL;
		assert_int_equal(linear_ops.load(&r, 3, &m, &err), -ERR_FORMAT);
		assert_null(m);
	}
	for (size_t at = 0; at < w.out.len; at++)
		for (int bit = 0; bit < 9; bit++) {
			struct reader r = { .bytes = bytes, .len = w.out.len };
			double out[20], importance[3];

			memcpy(bytes, w.out.text, w.out.len);
			bytes[at] = bit < 8 ? bytes[at] ^ (1u << bit) : 0xff;
			m = NULL;
			if (linear_ops.load(&r, 3, &m, &err)) {
				assert_null(m);
				continue;
			}
			linear_ops.predict(m, x, 20, out);
			for (int i = 0; i < 20; i++)
				assert_true(isfinite(out[i]));
			linear_ops.importances(m, importance);
			json_free(describe(&linear_ops, m, NULL));
			linear_ops.destroy(m);
		}
	free(bytes);
	strbuf_release(&w.out);
}

TEST(test_file_for_other_features_is_refused)
{
	struct dataset d = { .n_rows = 4, .n_features = 2, .x = cross_x, .y = cross_y };
	struct writer w = { .out = { 0 } };
	struct err err = { 0 };
	struct reader r;
	void *m = fit(&linear_ops, "", &d), *other = NULL;

	assert_int_equal(linear_ops.save(m, &w, &err), 0);
	r = (struct reader){ .bytes = (const unsigned char *)w.out.text, .len = w.out.len };
	assert_int_equal(linear_ops.load(&r, 3, &other, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "2 features where 3"));
	linear_ops.destroy(m);
	strbuf_release(&w.out);
}

TEST(test_no_memory_is_reported_at_every_allocation)
{
	double x[20 * 3], y[20];
	struct dataset d = { .n_rows = 20, .n_features = 3, .x = x, .y = y };

	random_rows(x, y, 20, 3, 8);
	for (int k = 0; k < 3; k++) {
		bool met = true;

		for (unsigned long at = 1; met; at++) {
			struct err err = { 0 };
			struct settings s;
			void *m = NULL;
			int rc;

			settings_init(&s, every[k]->spec);
			assert_int_equal(settings_parse(&s, "log=yes", &err), 0);
			mem_fail_at(at, false);
			rc = every[k]->fit(&s, &d, &(struct fit_context){ .seed = 1 }, &m, &err);
			met = mem_failed();
			mem_fail_at(0, false);
			assert_int_equal(rc, met ? -ERR_NOMEM : 0);
			every[k]->destroy(m);
		}
	}
}
