/* One set of claims over every entry of the table of models. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/predictor.h"
#include "tests/support/test.h"
#include "tests/support/worlds.h"

/* Models of how time comes about ask what the features mean; the others do not look. */
static const uint8_t factorial_role[5] = { ROLE_CATEGORY, ROLE_CPUS, ROLE_NJOBS, ROLE_BATCH, ROLE_PROCESSES };
static const uint8_t pair_role[2] = { ROLE_BATCH, ROLE_CPUS };

static struct dataset *factorial(size_t replications, double noise, uint64_t seed)
{
	struct dataset *d = world_factorial(replications, noise, seed);

	d->role = factorial_role;
	return d;
}

static struct predictor fit(const struct predictor_ops *ops, const struct dataset *d, uint64_t seed)
{
	struct fit_context ctx = { .seed = seed };
	struct settings s;
	struct predictor p = { 0 };
	struct err err = { 0 };

	settings_init(&s, ops->spec);
	if (predictor_fit(ops, &s, d, &ctx, &p, &err))
		fail_msg("%s: %s", ops->name, err.text);
	return p;
}

static struct writer saved(const struct predictor *p)
{
	struct writer w = { 0 };

	assert_int_equal(p->ops->save(p->self, &w, NULL), 0);
	return w;
}

static int load(const struct predictor_ops *ops, const void *bytes, size_t len, size_t n_features, void **out)
{
	struct reader r = { .bytes = bytes, .len = len };
	struct err err = { 0 };
	int status = ops->load(&r, n_features, out, &err);

	if (!status && (r.failed || r.at != r.len)) {
		ops->destroy(*out);
		return -1;
	}
	return status;
}

static void for_each_model(void (*claim)(const struct predictor_ops *ops))
{
	for (size_t i = 0; predictor_all[i]; i++)
		claim(predictor_all[i]);
}

static void load_predicts_identical_bits(const struct predictor_ops *ops)
{
	struct dataset *d = factorial(2, 0.05, 1), *other = world_smooth(100, 5, 1, 0, 2);
	struct predictor p = fit(ops, d, 4);
	struct writer w = saved(&p);
	void *again = NULL;
	double a[100], b[100];

	other->x[7] = NAN; /* a missing value must travel the same way */
	assert_int_equal(load(ops, w.out.text, w.out.len, 5, &again), 0);
	predictor_predict(&p, other->x, 100, a);
	ops->predict(again, other->x, 100, b);
	assert_memory_equal(a, b, sizeof a);
	if (ops->compile) {
		assert_int_equal(ops->compile(again, NULL), 0);
		ops->predict(again, other->x, 100, b);
		assert_memory_equal(a, b, sizeof a);
	}
	ops->destroy(again);
	strbuf_release(&w.out);
	predictor_release(&p);
	dataset_free(d);
	dataset_free(other);
}

static void same_seed_same_model(const struct predictor_ops *ops)
{
	struct dataset *d = factorial(1, 0.05, 1);
	struct predictor p = fit(ops, d, 9), q = fit(ops, d, 9);
	struct writer a = saved(&p), b = saved(&q);

	assert_int_equal(a.out.len, b.out.len);
	assert_memory_equal(a.out.text, b.out.text, a.out.len);
	strbuf_release(&a.out);
	strbuf_release(&b.out);
	predictor_release(&p);
	predictor_release(&q);
	dataset_free(d);
}

static void awkward_tables_give_finite_predictions(const struct predictor_ops *ops)
{
	double one_x[] = { 1, 2 }, one_y[] = { 42.5 };
	double constant_x[] = { 7, 1, 7, 2, 7, 3, 7, 4 }, constant_y[] = { 5, 5, 5, 5 };
	double twin_x[] = { 1, 2, 1, 2, 1, 2 }, twin_y[] = { 10, 20, 30 };
	double huge_x[] = { 1e300, -1e300, 1e150, 3, -1e300, 1e300 }, huge_y[] = { 1e100, 2e100, 3e100 };
	double hole_x[] = { NAN, 1, 2, NAN, 3, 4, NAN, NAN }, hole_y[] = { 1, 2, 3, 4 };
	struct dataset d[] = {
		{ .n_rows = 1, .n_features = 2, .x = one_x, .y = one_y },
		{ .n_rows = 4, .n_features = 2, .x = constant_x, .y = constant_y },
		{ .n_rows = 3, .n_features = 2, .x = twin_x, .y = twin_y },
		{ .n_rows = 3, .n_features = 2, .x = huge_x, .y = huge_y },
		{ .n_rows = 4, .n_features = 2, .x = hole_x, .y = hole_y },
	};
	double ask[] = { 1, 2, 7, 3, NAN, NAN, 1e300, 1e300, -1e300, 0 }, out[5];

	for (size_t k = 0; k < sizeof d / sizeof *d; k++) {
		struct fit_context ctx = { .seed = 1 };
		struct settings s;
		struct predictor p = { 0 };
		struct err err = { 0 };
		bool may_refuse = ops->log_errors; /* it needs values above 0, or a queue that can be */

		settings_init(&s, ops->spec);
		d[k].role = pair_role;
		if (predictor_fit(ops, &s, &d[k], &ctx, &p, &err)) {
			if (!may_refuse ||
			    (err.code != ERR_NODATA && err.code != ERR_UNSTABLE && err.code != ERR_NUMERIC))
				fail_msg("%s, table %zu: %s", ops->name, k, err.text);
			continue;
		}
		predictor_predict(&p, ask, 5, out);
		for (int i = 0; i < 5; i++) {
			char why[256] = "";

			if (isnan(out[i]) && ops->why_none)
				ops->why_none(p.self, ask + 2 * i, why, sizeof why);
			if (!isfinite(out[i]) && !strstr(why, "unstable") && (i < 3 || may_refuse))
				fail_msg("%s, table %zu, row %d: %g", ops->name, k, i, out[i]);
		}
		if (may_refuse) { /* times are a law of the batch and the cpus there, not whatever the labels
		                   * are */
			predictor_release(&p);
			continue;
		}
		if (k == 0)
			assert_true(fabs(out[0] - 42.5) < 1e-9);
		if (k == 1)
			assert_true(fabs(out[1] - 5.0) < 1e-9);
		if (k == 2) /* equal rows: something between their labels */
			assert_true(out[0] >= 10 - 1e-9 && out[0] <= 30 + 1e-9);
		predictor_release(&p);
	}
}

static void truncated_payloads_are_refused(const struct predictor_ops *ops)
{
	struct dataset *d = factorial(1, 0.05, 1);
	struct fit_context ctx = { .seed = 1 };
	struct settings s;
	struct predictor p;
	struct writer w = { 0 };

	settings_init(&s, ops->spec);
	settings_parse(&s, "trees=3", NULL); /* where there are trees, few will do */
	assert_int_equal(predictor_fit(ops, &s, d, &ctx, &p, NULL), 0);
	w = saved(&p);
	for (size_t len = 0; len < w.out.len; len++) {
		void *self = NULL;
		unsigned char *copy =
			malloc(len + 1); /* its own allocation, so that a read past its end shows */
		memcpy(copy, w.out.text, len);
		assert_true(load(ops, copy, len, 5, &self) != 0);
		free(copy);
	}
	strbuf_release(&w.out);
	predictor_release(&p);
	dataset_free(d);
}

static void damaged_payloads_never_crash(const struct predictor_ops *ops)
{
	struct dataset *d = factorial(1, 0.05, 1);
	struct fit_context ctx = { .seed = 1 };
	struct rng rng = rng_stream(3, 3);
	struct settings s;
	struct predictor p;
	struct writer w;

	settings_init(&s, ops->spec);
	settings_parse(&s, "trees=2", NULL);
	assert_int_equal(predictor_fit(ops, &s, d, &ctx, &p, NULL), 0);
	w = saved(&p);
	for (int k = 0; k < 3000; k++) {
		unsigned char *copy = malloc(w.out.len);
		double out[4];
		void *self = NULL;

		memcpy(copy, w.out.text, w.out.len);
		for (uint32_t f = 0; f <= rng_below(&rng, 3); f++)
			copy[rng_below(&rng, (uint32_t)w.out.len)] ^=
				(unsigned char)(1 << rng_below(&rng, 8));
		if (load(ops, copy, w.out.len, 5, &self) ==
		    0) { /* a flip in a value can make another valid model */
			ops->predict(self, d->x, 4, out);
			if (ops->compile)
				ops->compile(self, NULL);
			ops->predict(self, d->x, 4, out);
			ops->destroy(self);
		}
		free(copy);
	}
	strbuf_release(&w.out);
	predictor_release(&p);
	dataset_free(d);
}

static void importances_are_shares(const struct predictor_ops *ops)
{
	struct dataset *d = factorial(2, 0.02, 1);
	struct predictor p = fit(ops, d, 4);
	double share[5], sum = 0.0;

	if (ops->importances) {
		ops->importances(p.self, share);
		for (int f = 0; f < 5; f++) {
			assert_true(share[f] >= 0.0);
			sum += share[f];
		}
		assert_true(fabs(sum - 1.0) < 1e-9);
	}
	predictor_release(&p);
	dataset_free(d);
}

static void memory_failures_are_survived(const struct predictor_ops *ops)
{
	struct dataset *d = factorial(1, 0.05, 1);
	unsigned long k = 1;

	for (;; k++) {
		struct fit_context ctx = { .seed = 1 };
		struct settings s;
		struct predictor p = { 0 };
		struct writer w = { 0 };
		void *self = NULL;
		bool failed;
		int status;

		settings_init(&s, ops->spec);
		settings_parse(&s, "trees=2", NULL);
		mem_fail_at(k, k % 2);
		status = predictor_fit(ops, &s, d, &ctx, &p, NULL);
		if (!status)
			status = ops->save(p.self, &w, NULL);
		if (!status)
			status = load(ops, w.out.text, w.out.len, 5, &self);
		failed = mem_failed(); /* before it is disarmed, which forgets it */
		mem_fail_at(0, false);
		if (!status)
			ops->destroy(self);
		strbuf_release(&w.out);
		predictor_release(&p);
		if (!status && !failed)
			break;
	}
	assert_true(k > 5);
	dataset_free(d);
}

#define CLAIM(name)                                                                                          \
	TEST(test_##name)                                                                                    \
	{                                                                                                    \
		for_each_model(name);                                                                        \
	}
CLAIM(load_predicts_identical_bits)
CLAIM(same_seed_same_model)
CLAIM(awkward_tables_give_finite_predictions)
CLAIM(truncated_payloads_are_refused)
CLAIM(damaged_payloads_never_crash)
CLAIM(importances_are_shares)
CLAIM(memory_failures_are_survived)

TEST(test_models_of_queues_refuse_features_without_meaning)
{
	struct dataset *d = world_factorial(1, 0.05, 1);
	struct fit_context ctx = { .seed = 1 };
	struct predictor p;

	for (size_t i = 0; predictor_all[i]; i++) {
		struct settings s;
		struct err err = { 0 };

		if (!predictor_all[i]->log_errors)
			continue;
		settings_init(&s, predictor_all[i]->spec);
		assert_int_equal(predictor_fit(predictor_all[i], &s, d, &ctx, &p, &err), -ERR_NODATA);
		assert_non_null(strstr(err.text, "batch"));
	}
	dataset_free(d);
}

TEST(test_no_rows_and_no_features_are_refused)
{
	double y[] = { 1 };
	struct dataset none = { .n_features = 2 }, empty = { .n_rows = 1, .y = y };
	struct fit_context ctx = { .seed = 1 };
	struct predictor p;

	for (size_t i = 0; predictor_all[i]; i++) {
		struct settings s;
		settings_init(&s, predictor_all[i]->spec);
		assert_int_equal(predictor_fit(predictor_all[i], &s, &none, &ctx, &p, NULL), -ERR_NODATA);
		assert_int_equal(predictor_fit(predictor_all[i], &s, &empty, &ctx, &p, NULL), -ERR_NODATA);
	}
}

TEST(test_names_are_unique_and_found)
{
	for (size_t i = 0; predictor_all[i]; i++) {
		assert_ptr_equal(predictor_find(predictor_all[i]->name), predictor_all[i]);
		assert_non_null(strstr(predictor_names(), predictor_all[i]->name));
		assert_true(predictor_all[i]->spec && predictor_all[i]->title);
	}
	assert_null(predictor_find("no such model"));
}
