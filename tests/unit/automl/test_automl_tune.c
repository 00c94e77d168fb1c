/* automl/tune: the Parzen search finds more than random search does with the same budget, on
 * functions and on models of the project's own tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "automl/fitted.h"
#include "automl/tune.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

#define DIMENSIONS 3
#define BUDGET 60
#define SEEDS 40

static double bowl(const double *v)
{
	return pow(v[0] - 1.3, 2) + pow(v[1] + 2.1, 2) + pow(v[2] - 0.4, 2);
}

/* Branin's function, and a third value that does not matter. */
static double branin(const double *v)
{
	double x = v[0] + 2.5, y = v[1] + 7.5, pi = acos(-1.0);

	return pow(y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6, 2) + 10 * (1 - 1 / (8 * pi)) * cos(x) +
	       10;
}

static double valley(const double *v)
{
	return 100 * pow(v[1] / 5 - v[0] * v[0] / 25, 2) + pow(1 - v[0] / 5, 2) + fabs(v[2]);
}

/* A rate that is best near 0.003, depths that are whole, and noise of the third: like hyper-parameters
 * are. */
static double rates(const double *v)
{
	return pow(log10(v[0]) + 2.5, 2) + 0.3 * fabs(v[1] - 7) + 0.1 * pow(log(v[2]) - 1, 2);
}

static double best_of(double (*f)(const double *), const char *const *text, uint64_t seed, bool random)
{
	struct prior prior[DIMENSIONS];
	struct tune_params p = {
		.prior = prior, .n_priors = DIMENSIONS, .budget = BUDGET, .seed = seed, .random = random
	};
	struct tune *t;
	double v[DIMENSIONS], best;

	for (int i = 0; i < DIMENSIONS; i++)
		assert_int_equal(prior_parse(text[i], &prior[i], NULL), 0);
	assert_int_equal(tune_new(&p, &t, NULL), 0);
	for (int i = 0; i < BUDGET; i++) {
		tune_ask(t, v);
		for (int k = 0; k < DIMENSIONS; k++)
			assert_true(v[k] >= prior[k].low - 1e-9 && v[k] <= prior[k].high + 1e-9);
		tune_tell(t, f(v));
	}
	best = tune_best(t, v);
	assert_true(best == f(v)); /* what it gives back is the best trial itself */
	tune_free(t);
	return best;
}

TEST(test_the_search_beats_random_search)
{
	static const char *const box[] = { "uniform(-7.5,7.5)", "uniform(-7.5,7.5)", "uniform(-7.5,7.5)" };
	static const char *const mixed[] = { "loguniform(1e-5,1)", "quniform(1,20,1)", "lognormal(0,1)" };
	static const struct {
		const char *name;
		double (*f)(const double *);
		const char *const *prior;
	} world[] = { { "bowl", bowl, box },
		      { "branin", branin, box },
		      { "valley", valley, box },
		      { "rates", rates, mixed } };

	const uint64_t seeds = effort(SEEDS);
	int total = 0;

	for (size_t k = 0; k < sizeof world / sizeof *world; k++) {
		uint64_t won = 0;

		for (uint64_t seed = 1; seed <= seeds; seed++)
			won += best_of(world[k].f, world[k].prior, seed, false) <
			       best_of(world[k].f, world[k].prior, seed + 1000, true);
		print_message("%s: better than random search for %d of %d seeds\n", world[k].name, (int)won,
			      (int)seeds);
		total += (int)won;
		assert_true(won > seeds / 2 || sanitized());
	}
	/* By chance 104 of 160 or more happen less than once in 10,000 times. */
	assert_true(total >= 104 || sanitized());
}

/* ---- models: the hyper-parameters of a technique on a table, scored as a campaign scores its trials ---- */

#define MODEL_BUDGET 30
#define MODEL_SEEDS 8

struct task {
	struct campaign *c;
	struct prepared *p;
};

static void task_open(struct task *t, const char *general, const char *technique, const char *keys)
{
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct ini *ini;
	char *path;

	strbuf_printf(&text,
		      "[General]\ntechniques = ['%s']\nhp_selection = All\nvalidation = All\n"
		      "hyperparameter_tuning = Hyperopt\nhyperopt_max_evals = %d\n%s\n[%s]\n%s\n",
		      technique, MODEL_BUDGET, general, technique, keys);
	if (ini_parse("c.ini", strbuf_text(&text), text.len, &ini, &err) ||
	    campaign_of(ini, &(struct campaign_params){ 0 }, &t->c, &err) ||
	    prepare_find_input(t->c, &path, &err) || prepare(t->c, path, &t->p, &err))
		fail_msg("%s: %s", technique, err.text);
	free(path);
	strbuf_release(&text);
}

static double best_trial(const struct task *t, uint64_t seed, bool random)
{
	const struct plan *plan = t->c->plan;
	struct feature_list features = { .column = t->p->x, .n = t->p->n_x };
	struct prior prior[CAMPAIGN_MAX_AXES];
	struct tune_params p = { .prior = prior, .budget = MODEL_BUDGET, .seed = seed, .random = random };
	double v[CAMPAIGN_MAX_AXES], best;
	struct tune *search;

	for (size_t i = 0; i < plan->n_axes; i++)
		if (plan->axis[i].prior && !isnan(plan->axis[i].prior[0].high))
			prior[p.n_priors++] = plan->axis[i].prior[0];
	assert_int_equal(p.n_priors, plan_n_priors(plan, 0));
	assert_int_equal(tune_new(&p, &search, NULL), 0);
	for (size_t k = 0; k < MODEL_BUDGET; k++) {
		struct settings s;
		struct automl_score score;
		struct fit_request q = { .c = t->c,
					 .p = t->p,
					 .technique = plan->technique,
					 .settings = &s,
					 .rows = &t->p->all,
					 .features = &features,
					 .ctx = { .seed = 1 } };

		tune_ask(search, v);
		assert_int_equal(plan_settings(plan, 0, v, &s, NULL), 0);
		tune_tell(search, fitted_cross(&q, 5, &score, NULL) ? INFINITY : -score.r2);
	}
	best = tune_best(search, v);
	tune_free(search);
	return best;
}

#define RAY                                                                                                  \
	"y = 'train'\n[DataPreparation]\ninput_path = 'configs/profiles/ray/fastest.csv'\n"                  \
	"use_columns = ['n', 'j', 'num_images', 'b']\nnormalization = True"
#define TWO_CORES                                                                                            \
	"y = 'time_s'\n[DataPreparation]\ninput_path = 'configs/profiles/two-cores/runs.csv'\n"              \
	"use_columns = ['network', 'cpus', 'njobs', 'batch']\nskip_rows = {'replication': "                  \
	"1}\nnormalization = True"

TEST(test_the_search_beats_random_search_on_models)
{
	static const struct {
		const char *name, *general, *technique, *keys;
	} task[] = {
		{ "SVR, ray", RAY, "SVR",
		  "kernel = ['rbf']\nC = ['loguniform(0.001,1000)']\ngamma = ['loguniform(1e-5,100)']\n"
		  "epsilon = ['loguniform(1e-4,1)']" },
		{ "SVR, two cores", TWO_CORES, "SVR",
		  "kernel = ['rbf']\nC = ['loguniform(0.001,10)']\ngamma = ['loguniform(1e-5,100)']\n"
		  "epsilon = ['loguniform(1e-3,1)']" },
		{ "boosting, ray", RAY, "XGBoost",
		  "n_estimators = [20]\nlearning_rate = ['loguniform(0.001,1)']\nmax_depth = "
		  "['quniform(1,12,1)']\n"
		  "min_child_weight = ['uniform(0,20)']\ngamma = ['loguniform(1e-4,10)']" },
		{ "ridge, ray", RAY "\ninverse = ['n']\nlog = ['n', 'num_images']\nproduct_max_degree = 2",
		  "LRRidge", "alpha = ['loguniform(1e-8,1e8)']" },
		{ "ridge, two cores", TWO_CORES "\ninverse = ['cpus', 'batch']\nproduct_max_degree = 2",
		  "LRRidge", "alpha = ['loguniform(1e-8,1e8)']" },
		{ "forest, two cores", TWO_CORES, "RandomForest",
		  "n_estimators = [10]\nmax_depth = ['quniform(1,20,1)']\nmin_samples_leaf = "
		  "['quniform(1,40,1)']\n"
		  "min_samples_split = ['uniform(0.001,0.5)']\nmax_features = ['uniform(0.1,1)']" },
	};
	const uint64_t seeds =
		effort(MODEL_SEEDS); /* a sanitizer looks at memory, and one search shows it all */
	int total = 0;

	for (size_t k = 0; k < sizeof task / sizeof *task; k++) {
		struct task t = { 0 };
		int won = 0, lost = 0;

		task_open(&t, task[k].general, task[k].technique, task[k].keys);
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			double ours = best_trial(&t, seed, false), theirs = best_trial(&t, seed + 1000, true);

			won += ours < theirs;
			lost += ours > theirs;
		}
		print_message("%s: better than random search for %d, worse for %d of %d seeds\n",
			      task[k].name, won, lost, (int)seeds);
		assert_true(won >= lost || sanitized());
		total += won;
		prepared_free(t.p);
		campaign_free(t.c);
	}
	/* By chance 38 of 48 or more happen less than once in 10,000 times. */
	assert_true(total >= 38 || sanitized());
}

TEST(test_the_search_repeats_and_survives_failures)
{
	struct prior prior[1];
	struct tune_params p = { .prior = prior, .n_priors = 1, .budget = 30, .seed = 5 };
	double first[30], v;

	assert_int_equal(prior_parse("uniform(0,1)", prior, NULL), 0);
	for (int turn = 0; turn < 2; turn++) {
		struct tune *t;

		assert_int_equal(tune_new(&p, &t, NULL), 0);
		assert_true(isinf(tune_best(t, &v)));
		for (int i = 0; i < 30; i++) {
			tune_ask(t, &v);
			assert_true(turn == 0 || first[i] == v);
			first[i] = v;
			tune_tell(t, v < 0.3 ? INFINITY : i % 7 == 0 ? NAN : v);
		}
		assert_true(tune_best(t, &v) >= 0.3);
		assert_true(v < 0.4);
		tune_free(t);
	}
}
