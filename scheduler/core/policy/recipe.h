/* The recipe of a model: which model of time, which model of accuracy, with which settings, and how both are
 * scored. `postrider train --policy`, the daemon's learner and the simulator all take it from here, so that a
 * policy gets the same model from each of them.
 *
 * A recipe has one point for each target (`train --policy`, the learner) or a grid to search (`train` without
 * a model, the simulator). The schema of the model is policy_schema() of policy.h. */
#ifndef SCHEDULER_CORE_RECIPE_H
#define SCHEDULER_CORE_RECIPE_H

#include "predictors/search/train.h"
#include "scheduler/core/policy/policy.h"

struct recipe {
	struct grid_point time, accuracy;
};

/* Time: the model that the policy wants, with the settings of the model in use (`current`, may be NULL) if
 * that is of a kind that the policy wants, else with those the policy fixes or its defaults. A policy that
 * wants no model gets the kind in use, or a hybrid. Accuracy: the model in use, else recipe_accuracy(). */
int recipe_make(const struct policy *p, const struct model *current, bool curves, struct recipe *out,
		struct err *err);

/* The model of accuracy: the policy's own (`boost`, as in the paper); else, and for NULL, a learning curve if
 * the table has the epochs of each run (`curves`), or a forest. It is taken where nothing is searched. */
int recipe_accuracy(const struct policy *p, bool curves, struct grid_point *out, struct err *err);
/* Do both policies want the same models, trained in the same way? */
bool recipe_same(const struct policy *a, const struct policy *b);

/* What a search tries for time: the part of grid_default() with the models that the policy wants, or with all
 * models of time (NULL). A policy that fixes the settings leaves nothing to search: one point. A model of
 * queues may estimate the number of cores or be given it: with `cores` above 0 both are tried. */
int recipe_search_time(const struct policy *p, double cores, struct grid **out, struct err *err);
/* What a search tries for accuracy: for NULL the part of grid_default() that is not about queues. For a
 * policy a few models: forests with and without a limit of their depth, boosting, a tree, and a learning
 * curve, which can be fitted where the epochs vary. A policy whose models are exactly the paper's leaves
 * nothing to search: recipe_accuracy(). */
int recipe_search_accuracy(const struct policy *p, bool curves, struct grid **out, struct err *err);
/* Puts a point in front, so that it wins ties. */
int recipe_prefer(struct grid *g, const struct grid_point *first, struct err *err);

/* How models are scored and fitted: five folds, out-of-bag residuals, everything random from this seed, at
 * most 2,000 rows for a search. The caller adds table, grids and names. */
struct train_params recipe_params(uint64_t seed);

/* Boosting and linear models predict times at or below 0 unless they fit the logarithm: lets such a model do
 * so. */
int recipe_log_time(struct grid_point *g, struct err *err);

#endif
