/* The recipe of a model: what a policy wants, what is kept of the model in use, and what a search tries. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/core/policy/recipe.h"
#include "tests/unit/core/hand_model.h"

static void assert_point(const struct grid_point *p, const char *name, const char *settings)
{
	char text[256];

	assert_string_equal(p->ops->name, name);
	settings_describe(&p->settings, text, sizeof text);
	assert_string_equal(text, settings);
}

TEST(test_a_recipe_has_the_time_model_that_the_policy_wants)
{
	for (size_t i = 0; policy_all[i]; i++) {
		const char *wanted = policy_all[i]->predictor;
		struct recipe r;

		assert_int_equal(recipe_make(policy_all[i], NULL, false, &r, NULL), 0);
		assert_string_equal(r.time.ops->name, wanted ? wanted : "hybrid");
		if (!policy_all[i]->settings)
			assert_point(&r.time, wanted ? wanted : "hybrid",
				     wanted && !strcmp(wanted, "boost") ? "log=yes" : "");
		if (policy_all[i]->accuracy)
			continue;
		assert_point(&r.accuracy, "forest", "trees=150 depth=9 criterion=absolute");
		assert_int_equal(recipe_make(policy_all[i], NULL, true, &r, NULL), 0);
		assert_point(&r.accuracy, "curve", "");
	}
}

/* Of those that have the setting: how many fit the logarithm of the target, or do not. */
static size_t points_with_log(const struct grid *g, bool log)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		const char *name = g->point[i].ops->name;

		if (!strcmp(name, "boost") || !strcmp(name, "linear") || !strcmp(name, "ridge") ||
		    !strcmp(name, "lasso"))
			n += (settings_get(&g->point[i].settings, "log") != 0.0) == log;
	}
	return n;
}

/* Tables 7 and 10 of the paper; "lad" and "mae" are the absolute loss, "ls" is the squared one. */
TEST(test_the_policies_of_the_paper_have_its_settings)
{
	struct policy_choice courier = hand_policy("courier"), boost = hand_policy("boost"),
			     tuned = hand_policy("courier-tuned");
	struct recipe r;
	struct grid *g;

	assert_int_equal(recipe_make(courier.policy, NULL, false, &r, NULL), 0);
	assert_point(&r.time, "forest", "trees=2000 depth=6 criterion=absolute");
	assert_point(&r.accuracy, "forest", "trees=150 depth=9 criterion=absolute");
	assert_int_equal(recipe_make(boost.policy, NULL, true, &r, NULL), 0);
	assert_point(&r.time, "boost", "trees=50 loss=absolute");
	assert_point(&r.accuracy, "boost", "trees=50");
	assert_int_equal(recipe_search_time(boost.policy, 4.0, &g, NULL), 0);
	assert_int_equal(g->n, 1);
	assert_point(&g->point[0], "boost", "trees=50 loss=absolute");
	assert_int_equal(points_with_log(g, true), 0); /* as the paper has it; a time below 0 is no answer */
	grid_free(g);
	/* ours fits the logarithm */
	assert_int_equal(recipe_search_time(hand_policy("boost-full").policy, 4.0, &g, NULL), 0);
	assert_true(g->n > 1);
	assert_int_equal(points_with_log(g, true), g->n);
	grid_free(g);
	assert_false(recipe_same(courier.policy, tuned.policy));
	assert_false(recipe_same(boost.policy, hand_policy("boost-full").policy));
	assert_true(recipe_same(hand_policy("postrider").policy, hand_policy("postrider:chance=0.5").policy));
}

static struct predictor with_settings(const char *name, const char *settings)
{
	struct predictor p = { .ops = predictor_find(name) };

	settings_init(&p.settings, p.ops->spec);
	assert_int_equal(settings_parse(&p.settings, settings, NULL), 0);
	return p;
}

TEST(test_card_is_the_paper_s_forests_on_its_open_queue)
{
	static const char literal[] = "trees=2000 depth=6 criterion=absolute queue=paper";
	struct policy_choice card = hand_policy("card"), other = hand_policy("card:model=hybrid");
	struct model m = { .time.predictor = with_settings("hybrid", "trees=77") };
	struct err err = { 0 };
	struct recipe r;
	struct grid *g;

	assert_int_equal(recipe_search_time(card.policy, 4.0, &g, NULL), 0); /* cores are no part of it */
	assert_int_equal(g->n, 1);
	assert_point(&g->point[0], "hybrid", literal);
	grid_free(g);
	assert_int_equal(recipe_search_accuracy(card.policy, true, &g, NULL), 0);
	assert_int_equal(g->n, 1);
	assert_point(&g->point[0], "forest", "trees=150 depth=9 criterion=absolute");
	grid_free(g);
	/* a hybrid on another queue is neither taken nor trained again */
	assert_int_equal(policy_accepts(&card, &m, &err), -ERR_ARG);
	assert_non_null(strstr(err.text, "--policy card"));
	assert_int_equal(recipe_make(card.policy, &m, false, &r, NULL), 0);
	assert_point(&r.time, "hybrid", literal);
	m.time.predictor = with_settings("hybrid", "trees=77,queue=closed");
	assert_int_equal(policy_accepts(&card, &m, NULL), -ERR_ARG);
	assert_int_equal(policy_accepts(&other, &m, NULL), 0); /* asked for by name */
	m.time.predictor = with_settings("hybrid", "trees=77,queue=paper");
	assert_int_equal(policy_accepts(&card, &m, NULL), 0);
	assert_int_equal(recipe_make(card.policy, &m, false, &r, NULL), 0);
	assert_point(&r.time, "hybrid", "trees=77 queue=paper");
}

TEST(test_a_recipe_keeps_the_settings_of_a_model_of_the_same_kind)
{
	struct policy_choice postrider = hand_policy("postrider"), courier = hand_policy("courier"),
			     naive = hand_policy("naive");
	struct model current = { .time.predictor = with_settings("hybrid", "trees=77"),
				 .accuracy.predictor = with_settings("tree", "depth=3") };
	struct recipe r;

	assert_int_equal(recipe_make(postrider.policy, &current, true, &r, NULL), 0);
	assert_point(&r.time, "hybrid", "trees=77");
	assert_point(&r.accuracy, "tree", "depth=3");
	assert_int_equal(recipe_make(courier.policy, &current, true, &r, NULL), 0);
	assert_point(&r.time, "forest", "trees=2000 depth=6 criterion=absolute");
	assert_point(&r.accuracy, "tree", "depth=3");
	current.time.predictor = with_settings("ridge", "alpha=0.5");
	current.accuracy.predictor.ops = NULL;
	assert_int_equal(recipe_make(naive.policy, &current, true, &r, NULL), 0);
	assert_point(&r.time, "ridge", "alpha=0.5");
	assert_point(&r.accuracy, "curve", "");
}

TEST(test_a_search_for_a_policy_tries_the_given_cores_as_well)
{
	struct policy_choice postrider = hand_policy("postrider"), tuned = hand_policy("courier-tuned");
	struct grid *g;

	assert_int_equal(recipe_search_time(postrider.policy, 0.0, &g, NULL), 0);
	assert_int_equal(g->n, 6);
	assert_point(&g->point[0], "hybrid", "trees=100 min_samples_leaf=3");
	assert_point(&g->point[1], "hybrid", "trees=100 min_samples_leaf=3 queue=closed");
	assert_point(&g->point[2], "hybrid", "trees=100 effects=yes");
	assert_point(&g->point[3], "hybrid", "trees=100 queue=none effects=yes");
	assert_point(&g->point[4], "hybrid", "trees=100 max_features=0.5 queue=none effects=yes prior=0.75");
	assert_point(&g->point[5], "hybrid", "trees=100 max_features=0.5 queue=none");
	grid_free(g);
	assert_int_equal(recipe_search_time(postrider.policy, 2.5, &g, NULL), 0);
	assert_int_equal(g->n, 9); /* without a queue there are no cores */
	assert_point(&g->point[6], "hybrid", "trees=100 min_samples_leaf=3 cores=2.5");
	assert_point(&g->point[8], "hybrid", "trees=100 cores=2.5 effects=yes");
	grid_free(g);
	assert_int_equal(recipe_search_time(tuned.policy, 2.5, &g, NULL), 0); /* a forest knows no cores */
	for (size_t i = 0; i < g->n; i++)
		assert_string_equal(g->point[i].ops->name, "forest");
	assert_true(g->n > 4);
	grid_free(g);
}

static size_t points_of(const struct grid *g, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++)
		n += !strcmp(g->point[i].ops->name, name);
	return n;
}

TEST(test_a_search_tries_the_models_that_suit_the_target)
{
	struct grid *all, *time, *accuracy;

	assert_int_equal(grid_default(&all, NULL), 0);
	assert_int_equal(recipe_search_time(NULL, 0.0, &time, NULL), 0);
	assert_int_equal(recipe_search_accuracy(NULL, false, &accuracy, NULL), 0);
	/* a model that may fall below 0 fits the logarithm of the time; linear ones are tried once */
	assert_int_equal(time->n, all->n - points_of(all, "curve") - points_with_log(all, true));
	assert_int_equal(points_with_log(time, false), 0);
	assert_int_equal(points_of(time, "boost"), points_of(all, "boost"));
	assert_int_equal(points_of(time, "curve"), 0);
	assert_int_equal(accuracy->n, all->n - points_of(all, "queueing") - points_of(all, "queueing-paper") -
					      points_of(all, "hybrid") - points_of(all, "gp"));
	assert_int_equal(points_of(accuracy, "curve"), 2);
	assert_int_equal(points_of(accuracy, "queueing-paper") + points_of(accuracy, "hybrid"), 0);
	grid_free(all);
	grid_free(time);
	grid_free(accuracy);
}

TEST(test_the_accuracy_of_a_policy_is_searched_but_not_the_papers)
{
	struct policy_choice courier = hand_policy("courier"), boost = hand_policy("boost");
	struct policy_choice postrider = hand_policy("postrider");
	struct grid *g;
	size_t unlimited = 0;

	assert_int_equal(recipe_search_accuracy(postrider.policy, false, &g, NULL), 0);
	for (size_t i = 0; i < g->n; i++)
		unlimited += !strcmp(g->point[i].ops->name, "forest") &&
			     settings_get(&g->point[i].settings, "depth") == 0.0;
	assert_true(unlimited > 0 && points_of(g, "forest") > unlimited);
	assert_true(points_of(g, "curve") && points_of(g, "boost") && points_of(g, "tree"));
	assert_int_equal(recipe_prefer(g, &g->point[g->n - 1], NULL), 0);
	assert_ptr_equal(g->point[0].ops, g->point[g->n - 1].ops);
	assert_string_equal(g->point[1].ops->name, "forest");
	grid_free(g);
	assert_int_equal(recipe_search_accuracy(courier.policy, true, &g, NULL), 0);
	assert_int_equal(g->n, 1);
	assert_string_equal(g->point[0].ops->name, "curve");
	grid_free(g);
	assert_int_equal(recipe_search_accuracy(boost.policy, true, &g, NULL), 0);
	assert_int_equal(g->n, 1);
	assert_string_equal(g->point[0].ops->name, "boost");
	grid_free(g);
}

TEST(test_training_is_scored_on_five_folds_from_one_seed)
{
	struct train_params p = recipe_params(41);

	assert_int_equal(p.split.kind, SPLIT_KFOLD);
	assert_int_equal(p.split.folds, 5);
	assert_int_equal(p.split.seed, 41);
	assert_int_equal(p.ctx.seed, 41);
	assert_true(p.ctx.want_oob);
}

TEST(test_a_search_survives_lack_of_memory)
{
	struct policy_choice postrider = hand_policy("postrider");
	int status = -ERR_NOMEM;

	for (unsigned long k = 1; status; k++) {
		struct grid *g;

		assert_true(k < 10000);
		mem_fail_at(k, false);
		status = recipe_search_time(postrider.policy, 2.0, &g, NULL);
		mem_fail_at(0, false);
		if (!status)
			grid_free(g);
		else
			assert_int_equal(status, -ERR_NOMEM);
	}
}
