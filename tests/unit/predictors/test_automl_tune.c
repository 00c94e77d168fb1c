/* predictors/automl/tune: the Parzen search finds more than random search does with the same budget. */
#include <math.h>

#include "predictors/automl/tune.h"
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

	int total = 0;

	for (size_t k = 0; k < sizeof world / sizeof *world; k++) {
		int won = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			won += best_of(world[k].f, world[k].prior, seed, false) <
			       best_of(world[k].f, world[k].prior, seed + 1000, true);
		print_message("%s: better than random search for %d of %d seeds\n", world[k].name, won,
			      SEEDS);
		total += won;
		assert_true(won > SEEDS / 2);
	}
	/* By chance 104 of 160 or more happen less than once in 10,000 times. */
	assert_true(total >= 104);
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
