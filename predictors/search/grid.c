/* Grids: the Cartesian product of the values given for each setting of each model. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/search/search.h"

static int grid_add(struct grid *g, size_t *cap, const struct grid_point *point, const char *name,
		    struct err *err)
{
	if (g->n >= GRID_MAX_POINTS)
		return err_fail(err, ERR_FORMAT, "%s: more than %d settings to try", name, GRID_MAX_POINTS);
	if (mem_grow((void **)&g->point, cap, g->n + 1, sizeof *g->point))
		return err_nomem(err, "a grid of %zu settings", g->n + 1);
	g->point[g->n++] = *point;
	return 0;
}

/* Settings from `member` on, each value in turn; the last one varies fastest. */
static int expand(struct grid *g, size_t *cap, const struct json *member, const struct grid_point *so_far,
		  const char *name, struct err *err)
{
	const struct json *value = member;
	bool list;
	int status = 0;

	if (!member)
		return grid_add(g, cap, so_far, name, err);
	list = json_type(member) == JSON_ARRAY;
	if (list && json_size(member) == 0)
		return err_fail(err, ERR_FORMAT, "%s: %s.%s: an empty list leaves nothing to try", name,
				so_far->ops->name, json_key(member));
	for (value = list ? json_first(member) : member; value && !status;
	     value = list ? json_next(value) : NULL) {
		struct grid_point point = *so_far;

		status = settings_set_json(&point.settings, json_key(member), value, err);
		if (status) {
			if (err)
				err->code = ERR_FORMAT;
			return err_prefix(err, "%s: %s", name, so_far->ops->name);
		}
		status = expand(g, cap, json_next(member), &point, name, err);
	}
	return status;
}

int grid_from_json(const char *name, const struct json *v, struct grid **out, struct err *err)
{
	struct grid *g;
	size_t cap = 0;
	int status = 0;

	if (json_type(v) != JSON_OBJECT || json_size(v) == 0)
		return err_fail(
			err, ERR_FORMAT,
			"%s: a grid is an object of models, e.g. {\"forest\": {\"trees\": [50, 2000]}}",
			name);
	g = mem_calloc(1, sizeof *g);
	if (!g)
		return err_nomem(err, "a grid");
	for (const struct json *m = json_first(v); m && !status; m = json_next(m)) {
		struct grid_point point = { .ops = predictor_find(json_key(m)) };

		if (!point.ops)
			status = err_fail(err, ERR_FORMAT, "%s: no model is called '%s'; there are %s", name,
					  json_key(m), predictor_names());
		else if (json_type(m) != JSON_OBJECT)
			status = err_fail(err, ERR_FORMAT, "%s: %s: must be an object of settings", name,
					  json_key(m));
		if (status)
			break;
		settings_init(&point.settings, point.ops->spec);
		status = expand(g, &cap, json_first(m), &point, name, err);
	}
	if (status) {
		grid_free(g);
		return status;
	}
	*out = g;
	return 0;
}

/* configs/grids/default.json says the same; a test compares them. */
static const char default_grid[] =
	"{\"forest\":{\"trees\":[50,150,500,2000],\"depth\":[4,6,8,10,0],\"max_features\":[\"all\",\"sqrt\"],"
	"\"criterion\":[\"squared\",\"absolute\"]},"
	"\"boost\":{\"trees\":[50,100,200,500],\"depth\":[2,3,4],\"loss\":[\"squared\",\"absolute\","
	"\"huber\"],\"rate\":[0.1]},"
	"\"linear\":{\"degree\":[1,2,0],\"log\":[\"no\",\"yes\"]},"
	"\"ridge\":{\"alpha\":[0.01,0.1,1,10],\"standardize\":[\"yes\"],\"log\":[\"no\",\"yes\"]},"
	"\"lasso\":{\"alpha\":[0.01,0.1,1],\"standardize\":[\"yes\"],\"log\":[\"no\",\"yes\"]},"
	"\"tree\":{\"depth\":[4,6,8,0]},"
	"\"queueing-paper\":{},"
	"\"queueing\":{},"
	"\"gp\":{},"
	"\"hybrid\":{\"trees\":[300],\"min_samples_leaf\":[1,3,10],\"queue\":[\"calibrated\",\"closed\","
	"\"paper\"]},"
	"\"curve\":{\"trees\":[200],\"min_samples_leaf\":[1,10]}}";

int grid_default(struct grid **out, struct err *err)
{
	struct json *v = NULL;
	int status = json_parse("default grid", default_grid, sizeof default_grid - 1, &v, err);

	if (!status)
		status = grid_from_json("default grid", v, out, err);
	json_free(v);
	return status;
}

void grid_free(struct grid *g)
{
	if (!g)
		return;
	free(g->point);
	free(g);
}
