/* The model `curve`: a learning curve as the prior and a forest on what it gets wrong. See
 * learning_curve.h. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/trees/ensemble_model.h"
#include "predictors/data/features.h"
#include "predictors/trees/forest.h"
#include "predictors/models/learning_curve.h"
#include "predictors/data/ranges.h"

#define PASS_CELLS 2048 /* the rows predicted at a time live on the stack: 16 KiB */

struct curve {
	struct learning_curve prior;
	struct ensemble_model *forest;
	size_t n_features;
	struct ranges ranges; /* of what the forest sees */
	bool shares; /* all of training lay within 0 and 1 */
};

static const struct setting_spec curve_spec[] = {
	FOREST_SETTINGS(200, 10, "number of trees on what the curve gets wrong"),
	{ .name = NULL },
};

static void curve_destroy(void *self)
{
	struct curve *c = self;

	if (!c)
		return;
	ensemble_model_free(c->forest);
	ranges_release(&c->ranges);
	free(c);
}

/* What the forest sees of x: the place on the curve stands where the epochs were. */
static void place(const struct curve *c, const double *x, double position, double *out)
{
	memcpy(out, x, c->n_features * sizeof *out);
	if (c->prior.range > 0.0 && c->prior.at[CURVE_EPOCHS] >= 0)
		out[c->prior.at[CURVE_EPOCHS]] = position;
}

static void curve_predict(const void *self, const double *x, size_t n_rows, double *out)
{
	const struct curve *c = self;
	double inside[PASS_CELLS], prior[PASS_CELLS], shrink[PASS_CELLS];
	size_t width = c->n_features;
	size_t per_pass = PASS_CELLS / width; /* FEATURES_MAX leaves room for two */

	for (size_t done = 0; done < n_rows; done += per_pass) {
		size_t n = n_rows - done < per_pass ? n_rows - done : per_pass;

		for (size_t i = 0; i < n; i++) {
			const double *at = x + (done + i) * c->n_features;
			double position = learning_curve_position(&c->prior, at), *seen = inside + i * width;

			prior[i] = learning_curve_at(&c->prior, at, position);
			place(c, at, position, seen);
			shrink[i] = 1.0 / (1.0 + ranges_pull_in(&c->ranges, seen, seen));
		}
		ensemble_predict(c->forest->ensemble, inside, n, out + done);
		for (size_t i = 0; i < n; i++) {
			double *o = &out[done + i];

			*o = prior[i] + shrink[i] * *o;
			if (c->shares)
				*o = fmin(fmax(*o, 0.0), 1.0);
		}
	}
}

/* ---- fit ---- */

/* What the curve leaves, as the forest is to learn it. */
static int leftover(const struct curve *c, const struct dataset *d, struct dataset **out, struct err *err)
{
	uint32_t *row = mem_array(d->n_rows, sizeof *row);
	struct dataset *rest = NULL;
	int rc;

	if (!row)
		return err_nomem(err, "%zu rows", d->n_rows);
	for (size_t i = 0; i < d->n_rows; i++)
		row[i] = (uint32_t)i;
	rc = dataset_subset(d, row, d->n_rows, &rest, err);
	free(row);
	for (size_t i = 0; !rc && i < d->n_rows; i++) {
		const double *x = d->x + i * d->n_features;
		double position = learning_curve_position(&c->prior, x);

		place(c, x, position, rest->x + i * d->n_features);
		rest->y[i] = d->y[i] - learning_curve_at(&c->prior, x, position);
	}
	if (!rc)
		*out = rest;
	return rc;
}

static int curve_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		     void **out_self, struct err *err)
{
	struct fit_context plain = *ctx;
	struct curve *c = mem_calloc(1, sizeof *c);
	struct dataset *rest = NULL;
	void *forest = NULL;
	int rc;

	if (!c)
		return err_nomem(err, "a curve");
	plain.want_oob = false;
	c->n_features = d->n_features;
	c->shares = true;
	for (size_t i = 0; i < d->n_rows; i++)
		c->shares &= d->y[i] >= 0.0 && d->y[i] <= 1.0;
	rc = learning_curve_fit(d, &c->prior, err);
	if (!rc)
		rc = leftover(c, d, &rest, err);
	if (!rc)
		rc = ranges_find(rest, &c->ranges, err);
	if (!rc)
		rc = forest_ops.fit(s, rest, &plain, &forest, err);
	c->forest = forest;
	dataset_free(rest);
	if (rc)
		curve_destroy(c);
	else
		*out_self = c;
	return rc;
}

/* ---- the rest ---- */

static int curve_compile(void *self, struct err *err)
{
	return ensemble_compile(((struct curve *)self)->forest->ensemble, err);
}

static void curve_describe(const void *self, const struct dataset *names, struct json_writer *w)
{
	static const char *const shape[CURVE_N_SHAPE] = { "low", "high", "middle", "log_steep" };
	const struct curve *c = self;

	json_kv_open(w, "curve", '{');
	json_kv_bool(w, "constant", !(c->prior.range > 0.0));
	json_kv_number(w, "base", c->prior.base);
	json_kv_number(w, "range", c->prior.range);
	json_kv_number(w, "beta", c->prior.beta);
	for (size_t j = 0; j < CURVE_N_SHAPE; j++)
		json_kv_number(w, shape[j], c->prior.shape[j]);
	json_kv_open(w, "categories", '{');
	for (size_t k = 0; k < c->prior.n_categories; k++) {
		json_kv_open(w, names && names->name ? names->name[c->prior.category[k]] : "", '{');
		for (size_t j = 0; j < CURVE_N_SHAPE; j++)
			json_kv_number(w, shape[j], c->prior.own[k][j]);
		json_close(w, '}');
	}
	json_close(w, '}');
	json_close(w, '}');
}

static int curve_save(const void *self, struct writer *w, struct err *err)
{
	const struct curve *c = self;

	write_u8(w, c->shares);
	learning_curve_save(&c->prior, w);
	ranges_save(&c->ranges, w);
	return ensemble_model_save(c->forest, w, err);
}

static int curve_load(struct reader *r, size_t n_features, void **out_self, struct err *err)
{
	struct curve *c = mem_calloc(1, sizeof *c);
	void *forest = NULL;
	uint8_t shares;
	int rc;

	if (!c)
		return err_nomem(err, "a curve");
	c->n_features = n_features;
	shares = read_u8(r);
	c->shares = shares == 1;
	if (n_features == 0 || n_features > FEATURES_MAX)
		rc = err_fail(err, ERR_FORMAT, "%zu features; need 1 to %d", n_features, FEATURES_MAX);
	else if (shares > 1)
		rc = err_fail(err, ERR_FORMAT, "a curve that begins with %d; need 0 or 1", shares);
	else
		rc = learning_curve_load(r, n_features, &c->prior, err);
	if (!rc)
		rc = ranges_load(r, n_features, &c->ranges, err);
	if (!rc)
		rc = ensemble_model_load(r, n_features, &forest, err);
	c->forest = forest;
	if (rc)
		curve_destroy(c);
	else
		*out_self = c;
	return rc;
}

const struct predictor_ops curve_ops = {
	.name = "curve",
	.title = "learning curve and a forest",
	.spec = curve_spec,
	.fit = curve_fit,
	.predict = curve_predict,
	.compile = curve_compile,
	.describe = curve_describe,
	.save = curve_save,
	.load = curve_load,
	.destroy = curve_destroy,
};
