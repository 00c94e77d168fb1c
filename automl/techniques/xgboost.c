/* The technique XGBoost: trees boosted by Debian's libxgboost through its C interface (Chen and Guestrin, KDD
 * 2016). The library is opened when the first model is fitted, so that programs that never do that neither
 * need it nor pay for loading it. The fitted trees become an ensemble (trees/ensemble.h): predicting needs no
 * library, and the model files are the same with and without it.
 *
 * XGBoost compares single-precision numbers, x < cut. Here x <= t is compared in double precision, where t is
 * the largest double that rounds to a float below the cut. Leaves are added in double precision, so
 * predictions agree to about 1e-7 of their size. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "automl/techniques/models.h"
#include "predictors/trees/boost.h"
#include "predictors/trees/ensemble_model.h"

/* The functions of xgboost/c_api.h that are used; they have not changed since version 1.6. */
struct library {
	int (*matrix_from_floats)(const float *data, uint64_t n_rows, uint64_t n_columns, float missing,
				  void **out);
	int (*matrix_set)(void *matrix, const char *field, const float *values, uint64_t n);
	int (*matrix_free)(void *matrix);
	int (*booster_new)(void *const matrices[], uint64_t n, void **out);
	int (*booster_set)(void *booster, const char *name, const char *value);
	int (*booster_update)(void *booster, int round, void *matrix);
	int (*booster_save)(void *booster, const char *config, uint64_t *out_len, const char **out);
	int (*booster_free)(void *booster);
	const char *(*last_error)(void);
	bool there;
};

static struct library xgb;

static void open_library(void)
{
	static const char *const file[] = { "libxgboost.so.0", "libxgboost.so" };
	void *so = NULL;
	struct {
		const char *name;
		void *out;
	} want[] = {
		{ "XGDMatrixCreateFromMat", &xgb.matrix_from_floats },
		{ "XGDMatrixSetFloatInfo", &xgb.matrix_set },
		{ "XGDMatrixFree", &xgb.matrix_free },
		{ "XGBoosterCreate", &xgb.booster_new },
		{ "XGBoosterSetParam", &xgb.booster_set },
		{ "XGBoosterUpdateOneIter", &xgb.booster_update },
		{ "XGBoosterSaveModelToBuffer", &xgb.booster_save },
		{ "XGBoosterFree", &xgb.booster_free },
		{ "XGBGetLastError", &xgb.last_error },
	};

	if (getenv("POSTRIDER_NO_XGBOOST"))
		return;
	for (size_t i = 0; i < sizeof file / sizeof *file && !so; i++)
		so = dlopen(file[i], RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		void *f = dlsym(so, want[i].name);

		if (!f)
			return;
		memcpy(want[i].out, &f, sizeof f); /* ISO C has no cast from an object to a function */
	}
	xgb.there = true;
}

bool xgboost_available(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_library);
	return xgb.there;
}

/* ---- from its trees to ours ---- */

/* The largest double that rounds to a float below the cut. */
static double largest_below(float cut)
{
	float below = nextafterf(cut, -INFINITY);
	double middle = 0.5 * ((double)below + (double)cut);

	/* A tie goes to the float with an even last bit. */
	return (float)middle < cut ? middle : nextafter(middle, -INFINITY);
}

struct arrays { /* of one tree */
	const struct json *left, *right, *feature, *cut, *missing_left, *weight;
};

static size_t whole(const struct json *v)
{
	double d = json_type(v) == JSON_BOOL ? json_bool(v, false) : json_number(v, -1.0);

	return d >= 0.0 && d < 1e9 ? (size_t)d : SIZE_MAX;
}

/* The elements of a list, walked once. */
static int elements(const struct json *list, size_t n, const struct json **out)
{
	size_t i = 0;

	for (const struct json *v = json_first(list); v && i < n; v = json_next(v))
		out[i++] = v;
	return i == n && json_size(list) == n ? 0 : -1;
}

/* Breadth first, with both children of a node side by side, as grow.h wants it. */
static int copy_tree(const struct json *t, size_t n_features, struct tree *out, struct err *err)
{
	static const char *const field[] = { "left_children",    "right_children", "split_indices",
					     "split_conditions", "default_left",   "base_weights" };
	size_t n = json_size(json_get(t, field[0])), used = 1;
	const struct json **v = mem_array(6 * n, sizeof *v);
	uint32_t *from = mem_array(n, sizeof *from);
	int rc = 0;

	out->node = mem_calloc(n, sizeof *out->node);
	out->value = mem_calloc(n, sizeof *out->value);
	out->importance = mem_calloc(n_features, sizeof *out->importance);
	if (!v || !from || !out->node || !out->value || !out->importance)
		rc = err_nomem(err, "a tree");
	for (size_t k = 0; k < 6 && !rc; k++)
		if (n == 0 || elements(json_get(t, field[k]), n, v + k * n))
			rc = err_fail(err, ERR_FORMAT, "XGBoost: its model has a tree without %s", field[k]);
	if (!rc)
		from[0] = 0;
	for (size_t i = 0; i < used && !rc; i++) {
		size_t at = from[i], left = whole(v[at]), right = whole(v[n + at]), f = whole(v[2 * n + at]);
		float cut = (float)json_number(v[3 * n + at], NAN);

		if (left == SIZE_MAX) { /* a leaf: its value is where the condition would be */
			out->value[i] = cut;
			rc = isfinite(cut) ? 0
					   : err_fail(err, ERR_NUMERIC, "XGBoost: a leaf is not a number");
			continue;
		}
		if (left >= n || right >= n || f >= n_features || used + 2 > n || !isfinite(cut)) {
			rc = err_fail(err, ERR_FORMAT, "XGBoost: a node of its model is out of range");
			continue;
		}
		out->value[i] = json_number(v[5 * n + at], 0.0);
		out->node[i] = (struct tree_node){ .threshold = largest_below(cut),
						   .left = (uint32_t)used,
						   .feature = (uint16_t)f,
						   .missing_left = whole(v[4 * n + at]) == 1,
						   .depth = out->node[i].depth };
		out->importance[f] += 1.0; /* splits: what the reference's feature selection goes by */
		for (size_t c = 0; c < 2; c++) {
			out->node[used + c].depth =
				out->node[i].depth == 255 ? 255 : (uint8_t)(out->node[i].depth + 1);
			from[used + c] = (uint32_t)(c ? right : left);
		}
		used += 2;
	}
	out->n_nodes = out->cap = used;
	free(v);
	free(from);
	return rc;
}

/* Shares of all splits, by feature. */
static void count_splits(const struct tree *tree, size_t n_trees, struct ensemble_model *m)
{
	size_t p = m->ensemble->n_features;
	double sum = 0.0;

	memset(m->importance, 0, p * sizeof *m->importance);
	for (size_t t = 0; t < n_trees; t++)
		for (size_t f = 0; f < p; f++) {
			m->importance[f] += tree[t].importance[f];
			sum += tree[t].importance[f];
		}
	for (size_t f = 0; f < p && sum > 0.0; f++)
		m->importance[f] /= sum;
}

static int copy_model(const char *text, size_t len, size_t n_features, struct ensemble_model **out,
		      struct err *err)
{
	struct json *root;
	const struct json *learner, *trees;
	struct tree *tree = NULL;
	const char *base_text;
	size_t n, k = 0;
	double base;
	int rc = json_parse("XGBoost", text, len, &root, err);

	if (rc)
		return rc;
	learner = json_get(root, "learner");
	base_text = json_string(json_path(learner, "learner_model_param.base_score"), "");
	base = (float)strtod(base_text, NULL);
	trees = json_path(learner, "gradient_booster.model.trees");
	n = json_size(trees);
	if (!*base_text || !isfinite(base) || json_type(trees) != JSON_ARRAY || n > ENSEMBLE_MAX_TREES)
		rc = err_fail(err, ERR_FORMAT, "XGBoost: this version writes models that are not understood");
	if (!rc && !(tree = mem_calloc(n + 1, sizeof *tree)))
		rc = err_nomem(err, "%zu trees", n);
	for (const struct json *t = json_first(trees); t && !rc; t = json_next(t))
		rc = copy_tree(t, n_features, &tree[k++], err);
	if (!rc)
		rc = ensemble_model_new(tree, n, n_features, base, 1.0, out, err);
	if (!rc)
		rc = leaf_masks_build((*out)->ensemble, err);
	if (!rc)
		count_splits(tree, n, *out);
	for (size_t i = 0; tree && i < n; i++)
		tree_release(&tree[i]);
	free(tree);
	json_free(root);
	return rc;
}

/* ---- fitting ---- */

static int complain(struct err *err)
{
	const char *text = xgb.last_error();
	const char *line = strstr(text, "] "); /* after the time stamp */
	char shown[200];

	return err_fail(err, ERR_NUMERIC, "XGBoost: %s",
			text_printable(line ? line + 2 : text, shown, sizeof shown));
}

static int set_params(void *booster, const struct settings *s, uint64_t seed, struct err *err)
{
	static const char *const pass[] = { "min_child_weight", "gamma",  "learning_rate",
					    "max_depth",        "lambda", "alpha" };
	char number[TEXT_NUMBER];

	for (size_t i = 0; i < sizeof pass / sizeof *pass; i++)
		if (xgb.booster_set(booster, pass[i], text_shortest(settings_get(s, pass[i]), number)))
			return complain(err);
	snprintf(number, sizeof number, "%u", (unsigned)(seed & 0x7fffffff));
	if (xgb.booster_set(booster, "seed", number) || xgb.booster_set(booster, "nthread", "1") ||
	    xgb.booster_set(booster, "verbosity", "0") || xgb.booster_set(booster, "tree_method", "hist") ||
	    xgb.booster_set(booster, "objective", "reg:squarederror"))
		return complain(err);
	return 0;
}

/* x: the features, and behind them the target. */
static int train(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		 const float *x, struct ensemble_model **out, struct err *err)
{
	const float *y = x + d->n_rows * d->n_features;
	void *matrix = NULL, *booster = NULL;
	const char *text;
	uint64_t len;
	int rounds = (int)settings_get(s, "n_estimators"), rc = 0;

	if (xgb.matrix_from_floats(x, d->n_rows, d->n_features, NAN, &matrix) ||
	    xgb.matrix_set(matrix, "label", y, d->n_rows) ||
	    xgb.booster_new((void *const[]){ matrix }, 1, &booster))
		rc = complain(err);
	if (!rc)
		rc = set_params(booster, s, ctx->seed, err);
	for (int i = 0; i < rounds && !rc; i++) {
		rc = err_if_stopped(ctx->stop, err);
		if (!rc && xgb.booster_update(booster, i, matrix))
			rc = complain(err);
	}
	if (!rc && xgb.booster_save(booster, "{\"format\": \"json\"}", &len, &text))
		rc = complain(err);
	if (!rc)
		rc = copy_model(text, len, d->n_features, out, err);
	if (booster)
		xgb.booster_free(booster);
	if (matrix)
		xgb.matrix_free(matrix);
	return rc;
}

/* Our own boosting, as near as its settings come. */
static int fit_without_library(const struct settings *s, const struct dataset *d,
			       const struct fit_context *ctx, void **out_self, struct err *err)
{
	double depth = settings_get(s, "max_depth");
	struct settings own;
	char text[128], rate[TEXT_NUMBER];

	settings_init(&own, boost_ops.spec);
	snprintf(text, sizeof text, "trees=%.0f,depth=%.0f,loss=squared,rate=%s",
		 settings_get(s, "n_estimators"), depth == 0.0 || depth > 30.0 ? 30.0 : depth,
		 text_shortest(settings_get(s, "learning_rate"), rate));
	if (settings_parse(&own, text, err))
		return -ERR_ARG;
	return boost_ops.fit(&own, d, ctx, out_self, err);
}

static int xgboost_fit(const struct settings *s, const struct dataset *d, const struct fit_context *ctx,
		       void **out_self, struct err *err)
{
	size_t n = d->n_rows * d->n_features;
	struct ensemble_model *m = NULL;
	float *x;
	int rc;

	if (!xgboost_available())
		return fit_without_library(s, d, ctx, out_self, err);
	x = mem_array(n + d->n_rows, sizeof *x);
	if (!x) {
		rc = err_nomem(err, "%zu rows for XGBoost", d->n_rows);
	} else {
		for (size_t i = 0; i < n; i++)
			x[i] = (float)d->x[i];
		for (size_t i = 0; i < d->n_rows; i++)
			x[n + i] = (float)d->y[i];
		rc = train(s, d, ctx, x, &m, err);
	}
	free(x);
	if (!rc)
		*out_self = m;
	return rc;
}

const struct predictor_ops xgboost_ops = { XGBOOST_MODEL, .fit = xgboost_fit };
