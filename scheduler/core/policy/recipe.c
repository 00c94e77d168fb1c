/* The models and settings that training starts from, for each policy. */
#include "scheduler/core/policy/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/mem.h"
#include "predictors/models/queueing_models.h"

#define ANY_POLICY_MODEL "hybrid" /* for a policy that wants no model: what postrider itself uses */
#define ACCURACY_SETTINGS "trees=150,depth=9,criterion=absolute"
#define SEARCH_ROWS 2000 /* a search looks at so many rows at most */

/* What the recipe of a policy tries for time: a forest on what a prior gets wrong. The priors are the
 * calibrated queue, the closed one, the calibrated one with effects in log time, such effects alone, three
 * quarters of them, and none at all. The error on held-out groups decides, so a law that runs away for what
 * was never measured is not taken. A third of the usual trees: on held-out groups of 14 tables the error of
 * 100 and of 300 trees differed by less than 1 in 100, either way. */
#define TREES "trees=100,"
static const char *const hybrid_priors[] = {
	TREES "min_samples_leaf=3",
	TREES "min_samples_leaf=3,queue=closed",
	TREES "effects=yes",
	TREES "queue=none,effects=yes",
	TREES "queue=none,effects=yes,prior=0.75,max_features=0.5",
	TREES "queue=none,max_features=0.5",
};
enum { N_PRIORS = sizeof hybrid_priors / sizeof *hybrid_priors };

/* What the recipe of a policy tries for accuracy. A learning curve fails where the epochs do not vary. */
static const char accuracy_grid[] =
	"{\"forest\":{\"trees\":[150],\"depth\":[9,0],\"criterion\":[\"absolute\",\"squared\"]},"
	"\"curve\":{},\"boost\":{\"trees\":[50,200],\"depth\":[3]},\"tree\":{\"depth\":[6]}}";

static int point_default(const char *name, struct grid_point *out, struct err *err)
{
	out->ops = predictor_find(name);
	if (!out->ops)
		return err_fail(err, ERR_NOTFOUND, "this build has no model '%s'", name);
	settings_init(&out->settings, out->ops->spec);
	return 0;
}

static struct grid_point point_of(const struct predictor *p)
{
	return (struct grid_point){ .ops = p->ops, .settings = p->settings };
}

static int point_make(const char *name, const char *settings, struct grid_point *out, struct err *err)
{
	int rc = point_default(name, out, err);

	return rc || !settings ? rc : settings_parse(&out->settings, settings, err);
}

int recipe_accuracy(const struct policy *p, bool curves, struct grid_point *out, struct err *err)
{
	if (p && p->accuracy)
		return point_make(p->accuracy, p->accuracy_settings, out, err);
	return curves ? point_default("curve", out, err) : point_make("forest", ACCURACY_SETTINGS, out, err);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool recipe_same(const struct policy *a, const struct policy *b)
{
	return same_text(a->predictor, b->predictor) && same_text(a->or_predictor, b->or_predictor) &&
	       same_text(a->settings, b->settings) && same_text(a->accuracy, b->accuracy) &&
	       same_text(a->accuracy_settings, b->accuracy_settings) && a->without_load == b->without_load;
}

int recipe_make(const struct policy *p, const struct model *current, bool curves, struct recipe *out,
		struct err *err)
{
	const struct predictor *time = current ? &current->time.predictor : NULL;
	int rc = 0;

	if (time && time->ops && policy_wants_with(p, time)) {
		out->time = point_of(time);
	} else {
		rc = point_make(p->predictor ? p->predictor : ANY_POLICY_MODEL, p->settings, &out->time, err);
		if (!rc && !p->settings)
			rc = recipe_log_time(&out->time, err);
	}
	if (rc)
		return rc;
	if (current && current->accuracy.predictor.ops)
		out->accuracy = point_of(&current->accuracy.predictor);
	else
		rc = recipe_accuracy(p, curves, &out->accuracy, err);
	return rc;
}

/* ---- searches ---- */

static bool has_setting(const struct predictor_ops *ops, const char *name)
{
	for (const struct setting_spec *spec = ops->spec; spec && spec->name; spec++)
		if (!strcmp(spec->name, name))
			return true;
	return false;
}

/* Cores say nothing to it. */
static bool has_no_queue(const struct grid_point *g)
{
	return has_setting(g->ops, "queue") && settings_get(&g->settings, "queue") == QUEUE_NONE;
}

int recipe_log_time(struct grid_point *g, struct err *err)
{
	return has_setting(g->ops, "log") ? settings_parse(&g->settings, "log=yes", err) : 0;
}

static bool suits_time(const struct grid_point *g, const struct policy *p)
{
	/* without a policy: those that could predict a time below 0 fit its logarithm */
	if (!p && strcmp(g->ops->name, "boost") && has_setting(g->ops, "log") &&
	    settings_get(&g->settings, "log") == 0.0)
		return false;
	return p && p->predictor ? !strcmp(p->predictor, g->ops->name) : strcmp(g->ops->name, "curve") != 0;
}

/* Models of queues say nothing about accuracy. */
static bool suits_accuracy(const struct grid_point *g, const struct policy *unused)
{
	(void)unused;
	return strncmp(g->ops->name, "queueing", 8) && strcmp(g->ops->name, "hybrid") &&
	       strcmp(g->ops->name, "gp");
}

/* grid_default() without the models that do not suit; out_room: points it has memory for. */
static int search_make(bool (*suits)(const struct grid_point *g, const struct policy *p),
		       const struct policy *p, struct grid **out, size_t *out_room, struct err *err)
{
	struct grid *g;
	size_t kept = 0;
	int rc = grid_default(&g, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < g->n; i++)
		if (suits(&g->point[i], p))
			g->point[kept++] = g->point[i];
	*out_room = g->n;
	g->n = kept;
	*out = g;
	return 0;
}

static int grid_of_one(const struct grid_point *point, struct grid **out, struct err *err)
{
	struct grid *g = mem_calloc(1, sizeof *g);

	if (g)
		g->point = mem_array(1, sizeof *g->point);
	if (!g || !g->point) {
		grid_free(g);
		return err_nomem(err, "a grid");
	}
	g->point[0] = *point;
	g->n = 1;
	*out = g;
	return 0;
}

int recipe_search_accuracy(const struct policy *p, bool curves, struct grid **out, struct err *err)
{
	struct grid_point fixed;
	struct json *v = NULL;
	size_t room;
	int rc;

	if (!p)
		return search_make(suits_accuracy, NULL, out, &room, err);
	if (p->exact || p->accuracy) {
		rc = recipe_accuracy(p, curves, &fixed, err);
		return rc ? rc : grid_of_one(&fixed, out, err);
	}
	rc = json_parse("accuracy grid", accuracy_grid, sizeof accuracy_grid - 1, &v, err);
	if (!rc)
		rc = grid_from_json("accuracy grid", v, out, err);
	json_free(v);
	return rc;
}

int recipe_prefer(struct grid *g, const struct grid_point *first, struct err *err)
{
	struct grid_point *point = mem_array(g->n + 1, sizeof *point);

	if (!point)
		return err_nomem(err, "a grid");
	memcpy(point + 1, g->point, g->n * sizeof *point);
	point[0] = *first;
	free(g->point);
	g->point = point;
	g->n++;
	return 0;
}

int recipe_search_time(const struct policy *p, double cores, struct grid **out, struct err *err)
{
	struct grid *g = NULL;
	size_t room = 0, estimated;
	char given[64];
	bool priors = p && p->or_predictor && !p->settings;
	int rc = search_make(suits_time, p, &g, &room, err);

	for (size_t i = 0; !rc && priors && i < N_PRIORS && i < room; i++) {
		g->n = i + 1;
		rc = point_make(p->predictor, hybrid_priors[i], &g->point[i], err);
	}

	if (!rc && p && p->settings) {
		g->n = 1;
		rc = point_make(p->predictor, p->settings, &g->point[0], err);
	}
	for (size_t i = 0; !rc && !(p && p->settings) && i < g->n; i++) /* stated ones are the paper's */
		rc = recipe_log_time(&g->point[i], err);
	estimated = rc ? 0 : g->n;
	snprintf(given, sizeof given, "cores=%.17g", cores);
	for (size_t i = 0; !rc && i < estimated && cores > 0.0 && !(p && p->settings) && g->n < room; i++) {
		if (!has_setting(g->point[i].ops, "cores") || has_no_queue(&g->point[i]))
			continue;
		g->point[g->n] = g->point[i];
		rc = settings_parse(&g->point[g->n++].settings, given, err);
	}
	if (rc)
		grid_free(g);
	else
		*out = g;
	return rc;
}

struct train_params recipe_params(uint64_t seed)
{
	return (struct train_params){
		.split = { .kind = SPLIT_KFOLD, .folds = 5, .seed = seed },
		.ctx = { .seed = seed, .want_oob = true },
		.search_rows = SEARCH_ROWS,
	};
}
