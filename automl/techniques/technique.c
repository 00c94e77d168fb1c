/* The table of techniques. See technique.h. */
#include "automl/techniques/technique.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "automl/techniques/models.h"
#include "predictors/models/gp.h"
#include "predictors/models/hybrid.h"
#include "predictors/models/linear.h"
#include "predictors/models/queueing_models.h"
#include "predictors/trees/boost.h"
#include "predictors/trees/forest.h"

static int refuse(const char *what, const struct literal *v, struct err *err)
{
	struct strbuf shown = { 0 };
	int rc;

	literal_write(v, &shown);
	rc = err_fail(err, ERR_ARG, "%.60s: need %s", strbuf_text(&shown), what);
	strbuf_release(&shown);
	return rc;
}

static int set_number(struct settings *s, const char *name, double v, struct err *err)
{
	char number[TEXT_NUMBER];

	return settings_set(s, name, text_shortest(v, number), err);
}

/* scikit-learn's names of the criterion, old and new. For one target, Friedman's improvement orders splits
 * exactly as the squared error does: both are w_l w_r / (w_l + w_r) (mean_l - mean_r)^2 up to a constant. */
static int set_criterion(struct settings *s, const struct literal *v, struct err *err)
{
	if (literal_is_text(v, "mse") || literal_is_text(v, "squared_error") ||
	    literal_is_text(v, "friedman_mse"))
		return settings_set(s, "criterion", "squared", err);
	if (literal_is_text(v, "mae") || literal_is_text(v, "absolute_error"))
		return settings_set(s, "criterion", "absolute", err);
	return refuse("squared_error (mse), friedman_mse or absolute_error (mae)", v, err);
}

static int set_depth(struct settings *s, const struct literal *v, struct err *err)
{
	if (v->kind == LITERAL_NONE)
		return set_number(s, "depth", 0.0, err);
	if (!literal_is_number(v) || v->number != floor(v->number) || v->number < 1.0 || v->number > 10000.0)
		return refuse("a whole number from 1 to 10000, or None", v, err);
	return set_number(s, "depth", v->number, err);
}

/* A whole number counts features, one with a decimal point is a share of them. */
static int set_max_features(struct settings *s, const struct literal *v, struct err *err)
{
	if (v->kind == LITERAL_NONE || literal_is_text(v, "auto"))
		return settings_set(s, "max_features", "all", err);
	if (literal_is_text(v, "sqrt") || literal_is_text(v, "log2"))
		return settings_set(s, "max_features", v->text, err);
	if (v->kind == LITERAL_FLOAT && v->number == 1.0)
		return settings_set(s, "max_features", "all", err);
	if ((v->kind == LITERAL_INT && v->number >= 1.0 && v->number <= DATASET_MAX_FEATURES) ||
	    (v->kind == LITERAL_FLOAT && v->number > 0.0 && v->number < 1.0))
		return set_number(s, "max_features", v->number, err);
	return refuse("'auto', 'sqrt', 'log2', None, a whole number or a share up to 1.0", v, err);
}

static int set_rows(struct settings *s, const char *name, double least, const struct literal *v,
		    struct err *err)
{
	char what[64];

	if (v->kind == LITERAL_FLOAT && v->number > 0.0 && v->number <= 1.0) /* 1.0 is all rows, 1 is one */
		return set_number(s, name, v->number == 1.0 ? nextafter(1.0, 0.0) : v->number, err);
	if (literal_is_number(v) && v->number == floor(v->number) && v->number >= least && v->number <= 1e9)
		return set_number(s, name, v->number, err);
	snprintf(what, sizeof what, "a whole number from %.0f on, or a share up to 1.0", least);
	return refuse(what, v, err);
}

static int set_min_split(struct settings *s, const struct literal *v, struct err *err)
{
	return set_rows(s, "min_samples_split", 2.0, v, err);
}

static int set_min_leaf(struct settings *s, const struct literal *v, struct err *err)
{
	return set_rows(s, "min_samples_leaf", 1.0, v, err);
}

/* [20, 10]: cells of each hidden layer. */
static int set_layers(struct settings *s, const struct literal *v, struct err *err)
{
	const struct literal *item = v->kind == LITERAL_LIST ? v->item : v;
	size_t n = v->kind == LITERAL_LIST ? v->n : 1;
	char name[16];
	int rc = 0;

	for (size_t k = 0; k < n && k < 4; k++)
		if (!literal_is_number(&item[k]) || item[k].number < 1.0)
			n = 0;
	if (n < 1 || n > 4)
		return refuse("a list of one to four layers, each with 1 to 1024 cells", v, err);
	for (size_t k = 0; k < 4 && !rc; k++) {
		snprintf(name, sizeof name, "layer%zu", k + 1);
		rc = set_number(s, name, k < n ? item[k].number : 0.0, err);
	}
	return rc;
}

static int set_dropouts(struct settings *s, const struct literal *v, struct err *err)
{
	bool list = v->kind == LITERAL_LIST;
	char name[16];
	int rc = 0;

	if (list ? v->n < 1 || v->n > 4 : !literal_is_number(v))
		return refuse("a share, or a list of one for each layer", v, err);
	for (size_t k = 0; k < 4 && !rc; k++) {
		const struct literal *one = list ? (k < v->n ? &v->item[k] : NULL) : v;

		snprintf(name, sizeof name, "dropout%zu", k + 1);
		if (one && !literal_is_number(one))
			return refuse("shares", v, err);
		rc = set_number(s, name, one ? one->number : 0.0, err);
	}
	return rc;
}

static int set_loss(struct settings *s, const struct literal *v, struct err *err)
{
	if (literal_is_text(v, "mse") || literal_is_text(v, "mean_squared_error"))
		return settings_set(s, "loss", "mse", err);
	if (literal_is_text(v, "mae") || literal_is_text(v, "mean_absolute_error"))
		return settings_set(s, "loss", "mae", err);
	return refuse("'mse' or 'mae'", v, err);
}

static int set_optimizer(struct settings *s, const struct literal *v, struct err *err)
{
	if (literal_is_text(v, "Adam") || literal_is_text(v, "adam"))
		return settings_set(s, "optimizer", "adam", err);
	if (literal_is_text(v, "SGD") || literal_is_text(v, "sgd"))
		return settings_set(s, "optimizer", "sgd", err);
	return refuse("'adam' or 'sgd'", v, err);
}

static int set_xgb_depth(struct settings *s, const struct literal *v, struct err *err)
{
	if (v->kind == LITERAL_NONE)
		return set_number(s, "max_depth", 0.0, err);
	return literal_is_number(v) ? set_number(s, "max_depth", v->number, err)
				    : refuse("a whole number, or None", v, err);
}

#define SAME(NAME, OTHERWISE)                                                                                \
	{                                                                                                    \
		.name = NAME, .otherwise = (OTHERWISE), .setting = NAME                                      \
	}
#define TREE_KEYS(SPLIT, LEAF)                                                                               \
	{ .name = "criterion", .otherwise = "'mse'", .set = set_criterion },                                 \
		{ .name = "max_depth", .otherwise = "3", .set = set_depth },                                 \
		{ .name = "max_features", .otherwise = "'auto'", .set = set_max_features },                  \
		{ .name = "min_samples_split", .otherwise = SPLIT, .set = set_min_split },                   \
	{                                                                                                    \
		.name = "min_samples_leaf", .otherwise = LEAF, .set = set_min_leaf                           \
	}

static const struct technique_key no_keys[] = { { .name = NULL } };
static const struct technique_key ridge_keys[] = { SAME("alpha", "0.1"), { .name = NULL } };
static const struct technique_key nnls_keys[] = {
	SAME("fit_intercept", "True"), SAME("alpha", "0.001"), SAME("method", "'lasso'"), { .name = NULL }
};
static const struct technique_key svr_keys[] = { SAME("C", "0.001"),    SAME("epsilon", "0.05"),
						 SAME("gamma", "1e-7"), SAME("kernel", "'linear'"),
						 SAME("degree", "2"),   SAME("tolerance", "0.001"),
						 { .name = NULL } };
static const struct technique_key tree_keys[] = { TREE_KEYS("0.01", "0.01"), { .name = NULL } };
static const struct technique_key forest_keys[] = {
	{ .name = "n_estimators", .otherwise = "5", .setting = "trees" },
	TREE_KEYS("0.1", "1"),
	{ .name = NULL }
};
static const struct technique_key xgboost_keys[] = {
	SAME("min_child_weight", "1"),
	SAME("gamma", "0.25"),
	SAME("n_estimators", "500"),
	SAME("learning_rate", "0.1"),
	{ .name = "max_depth", .otherwise = "100", .set = set_xgb_depth },
	SAME("lambda", "1"),
	SAME("alpha", "0"),
	{ .name = NULL }
};
static const struct technique_key stepwise_keys[] = { SAME("p_to_add", "0.05"),
						      SAME("p_to_remove", "0.1"),
						      SAME("max_iter", "100"),
						      SAME("fit_intercept", "True"),
						      { .name = NULL } };
static const struct technique_key network_keys[] = {
	{ .name = "n_features", .otherwise = "[20, 10]", .set = set_layers },
	{ .name = "dropouts", .otherwise = "[0.2, 0.2]", .set = set_dropouts },
	SAME("activation", "'relu'"),
	{ .name = "optimizer", .otherwise = "'adam'", .set = set_optimizer },
	SAME("learning_rate", "0.001"),
	{ .name = "loss", .otherwise = "'mse'", .set = set_loss },
	SAME("batch_size", "10"),
	SAME("epochs", "5"),
	SAME("patience", "0"),
	{ .name = NULL }
};
static const struct technique_key hybrid_keys[] = {
	{ .name = "n_estimators", .otherwise = "300", .setting = "trees" },
	{ .name = "max_depth", .otherwise = "None", .set = set_depth },
	SAME("cores", "0"),
	{ .name = NULL }
};
static const struct technique_key queue_keys[] = { SAME("cores", "0"), { .name = NULL } };

const struct technique technique_all[] = {
	{ "LRRidge", &ridge_ops, ridge_keys, false },
	{ "NNLS", &nnls_ops, nnls_keys, false },
	{ "SVR", &svr_ops, svr_keys, false },
	{ "DecisionTree", &tree_ops, tree_keys, false },
	{ "RandomForest", &forest_ops, forest_keys, false },
	{ "XGBoost", &xgboost_ops, xgboost_keys, false },
	{ "Stepwise", &stepwise_ops, stepwise_keys, false },
	{ "NeuralNetwork", &network_ops, network_keys, false },
	{ "Dummy", &mean_ops, no_keys, false },
	{ "Hybrid", &hybrid_ops, hybrid_keys, true },
	{ "Queueing", &queueing_ops, queue_keys, true },
	{ "GaussianProcess", &gp_ops, queue_keys, true },
	{ NULL, NULL, NULL, false },
};

const struct technique *technique_find(const char *name)
{
	for (const struct technique *t = technique_all; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

const struct technique_key *technique_key(const struct technique *t, const char *name)
{
	for (const struct technique_key *k = t->key; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

const char *technique_names(void)
{
	static char text[256];
	size_t used = 0;

	/* Always the same text, so that two threads writing it at once do no harm. */
	for (const struct technique *t = technique_all; t->name; t++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", t->name);
	return text;
}

int technique_set(const struct technique_key *key, const struct literal *v, struct settings *s,
		  struct err *err)
{
	if (key->set)
		return key->set(s, v, err);
	switch (v->kind) {
	case LITERAL_INT:
	case LITERAL_FLOAT: return set_number(s, key->setting, v->number, err);
	case LITERAL_BOOL: return settings_set(s, key->setting, v->number != 0.0 ? "yes" : "no", err);
	case LITERAL_STRING: return settings_set(s, key->setting, v->text, err);
	default: return refuse("a number or a word", v, err);
	}
}
