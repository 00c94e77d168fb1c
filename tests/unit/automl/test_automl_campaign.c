/* automl: the configuration language. Literals, the .ini dialect, JSON, and errors that name
 * the place. */
#include <math.h>
#include <string.h>

#include "automl/campaign.h"
#include "tests/support/test.h"

static void reads(const char *text, const char *as)
{
	struct literal v;
	struct strbuf out = { 0 };
	struct err err = { 0 };

	if (literal_parse(text, &v, &err))
		fail_msg("%s: %s", text, err.text);
	literal_write(&v, &out);
	assert_string_equal(strbuf_text(&out), as);
	literal_release(&v);
	strbuf_release(&out);
}

static void refuses(const char *text, const char *reason)
{
	struct literal v;
	struct err err = { 0 };

	assert_int_equal(literal_parse(text, &v, &err), -ERR_FORMAT);
	if (!strstr(err.text, reason))
		fail_msg("%s: %s", text, err.text);
}

TEST(test_literals_of_python_are_read)
{
	reads("  0.1 # a comment", "0.1");
	reads("-1e-7", "-1e-07");
	reads("1_000", "1000");
	reads("0x1F", "31");
	reads("0b101", "5");
	reads(".5", "0.5");
	reads("5.", "5.0");
	reads("+3", "3");
	reads("'a' \"b\"", "'ab'");
	reads("'it\\'s'", "\"it's\"");
	reads("r'\\d'", "'\\\\d'");
	reads("'\\x41\\u00e9'", "'A\xc3\xa9'");
	reads("'''two\nlines'''", "'two\\nlines'");
	reads("[1, 'b', [True, None],]", "[1, 'b', [True, None]]");
	reads("(1, 2)", "[1, 2]");
	reads("{'x': 5, 'y': [1.5]}", "{'x': 5, 'y': [1.5]}");
	reads("{}", "{}");
	reads("[ # first\n 1,\n 2 ]", "[1, 2]");
}

TEST(test_what_is_no_literal_is_refused_with_a_reason)
{
	refuses("[1, 2", "',' or the end");
	refuses("'open", "not closed");
	refuses("{'a' 1}", "',' or the end");
	refuses("KFold", "needs quotes");
	refuses("1 2", "something follows");
	refuses("007", "must not begin with 0");
	refuses("1__0", "not a number");
	refuses("[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", "deep");
	refuses("'\\ud800'", "no character");
	refuses("", "ends there");
}

static const char good[] = "# a comment\n"
			   "[General]\n"
			   "run_num = 2\n"
			   "techniques = ['LRRidge',\n"
			   "              'RandomForest']\n"
			   "; another\n"
			   "hp_selection = KFold\n"
			   "validation : HoldOut\n"
			   "folds = 5\n"
			   "hold_out_ratio = 0.2 # share\n"
			   "y = \"t\"\n"
			   "[DataPreparation]\n"
			   "input_path = inputs/a.csv\n"
			   "inverse = [*]\n"
			   "product_max_degree = inf\n"
			   "[LRRidge]\n"
			   "alpha = [0.1, 1]\n"
			   "[RandomForest]\n"
			   "n_estimators = [5, 10]\n"
			   "criterion = ['mae']\n"
			   "max_depth = [3, None]\n";

static struct campaign *campaign(const char *text, bool lenient, struct err *err)
{
	struct campaign *c = NULL;
	struct ini *ini;

	if (ini_parse("c.ini", text, strlen(text), &ini, err))
		return NULL;
	return campaign_of(ini, &(struct campaign_params){ .lenient = lenient }, &c, err) ? NULL : c;
}

TEST(test_a_campaign_is_read_with_its_grids)
{
	struct err err = { 0 };
	struct campaign *c = campaign(good, false, &err);
	struct settings s;
	struct strbuf text = { 0 };

	if (!c)
		fail_msg("%s", err.text);
	assert_int_equal(c->runs, 2);
	assert_int_equal(c->hp_selection, HOLD_KFOLD);
	assert_int_equal(c->validation, HOLD_OUT);
	assert_true(c->hold_out_ratio == 0.2);
	assert_string_equal(c->y, "t");
	assert_string_equal(c->input_path, "inputs/a.csv");
	assert_true(c->product_max_degree == SIZE_MAX);
	assert_int_equal(c->n_plans, 2);
	assert_int_equal(c->plan[1].n_points, 4);
	/* The first key varies slowest: point 2 is the first of n_estimators 10. */
	assert_int_equal(plan_settings(&c->plan[1], 2, NULL, &s, &err), 0);
	assert_true(settings_get(&s, "trees") == 10 && settings_get(&s, "depth") == 3);
	assert_true(settings_get(&s, "criterion") == 1 && settings_get(&s, "min_samples_split") == 0.1);
	plan_point_text(&c->plan[1], 3, NULL, &text);
	assert_string_equal(strbuf_text(&text), "n_estimators=10 criterion=mae max_depth=None");
	strbuf_release(&text);
	campaign_free(c);
}

TEST(test_the_same_campaign_in_json_is_the_same)
{
	static const char json[] =
		"{\"General\":{\"techniques\":[\"LRRidge\"],\"hp_selection\":\"All\",\"validation\":"
		"\"Extrapolation\",\"extrapolation_columns\":{\"x\":3},\"y\":\"t\"},"
		"\"DataPreparation\":{\"input_path\":\"a.csv\"},\"LRRidge\":{\"alpha\":[0.1,2]}}";
	struct err err = { 0 };
	struct campaign *c = campaign(json, false, &err);

	if (!c)
		fail_msg("%s", err.text);
	assert_int_equal(c->plan[0].n_points, 2);
	assert_true(literal_get(c->extrapolation, "x")->number == 3);
	campaign_free(c);
}

/* `good` with one line in the place of another. */
static void fails_with(const char *from, const char *to, const char *reason)
{
	struct strbuf text = { 0 };
	const char *at = strstr(good, from);
	struct err err = { 0 };
	struct campaign *c;

	strbuf_add(&text, good, (size_t)(at - good));
	strbuf_puts(&text, to);
	strbuf_puts(&text, at + strlen(from));
	c = campaign(strbuf_text(&text), false, &err);
	if (c)
		fail_msg("accepted: %s", to);
	if (!strstr(err.text, reason))
		fail_msg("%s: %s", to, err.text);
	assert_int_equal(err.code, ERR_FORMAT);
	strbuf_release(&text);
}

TEST(test_errors_name_file_line_section_key_and_reason)
{
	fails_with("run_num = 2", "run_num = 0",
		   "c.ini:3: [General] run_num: is 0; it must be a whole number");
	fails_with("run_num = 2", "runnum = 2", "did you mean 'run_num'");
	fails_with("[LRRidge]", "[LRidge]",
		   "c.ini:16: [LRidge]: there is no such section; did you mean 'LRRidge'");
	fails_with("hp_selection = KFold", "hp_selection = Extrapolation", "validation alone");
	fails_with("validation : HoldOut", "validation = Holdout", "did you mean 'HoldOut'");
	fails_with("folds = 5\n", "", "'folds' is not given, which KFold needs");
	fails_with("'RandomForest'", "'RandomForrest'", "did you mean 'RandomForest'");
	fails_with("'RandomForest'", "'LRRidge'", "LRRidge appears twice");
	fails_with("alpha = [0.1, 1]", "alpha = [0.1, 1", "not a Python literal");
	fails_with("alpha = [0.1, 1]", "alpha = []", "empty");
	fails_with("alpha = [0.1, 1]", "alpha = [-1]", "[LRRidge] alpha: alpha=-1");
	fails_with("alpha = [0.1, 1]", "alpha = ['loguniform(0.1,1)']", "hyperparameter_tuning = Hyperopt");
	fails_with("criterion = ['mae']", "criterion = ['poisson']", "absolute_error");
	fails_with("alpha = [0.1, 1]", "alpha = [1]\nalpha = [2]", "was there before, in line 17");
	fails_with("y = \"t\"\n", "", "'y' is not given");
	fails_with("run_num = 2", "run_num 2", "c.ini:3: there should be '[section]' or 'key = value'");
	fails_with("run_num = 2", "run_num = %(x)s", "'%' refers");
	fails_with("inverse = [*]", "ernest = True\ninverse = [*]", "cannot go with it");
}

/* As aMLLibrary's example stereomatch_itr_100.ini has it. */
TEST(test_a_key_in_the_wrong_section_has_no_effect_and_a_note)
{
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct campaign *c;

	strbuf_printf(&text, "[General]\nnormalization = True\nalpha = [1]\n%s",
		      strstr(good, "[General]") + strlen("[General]\n"));
	c = campaign(strbuf_text(&text), false, &err);
	if (!c)
		fail_msg("%s", err.text);
	assert_int_equal(c->n_notices, 2);
	assert_string_equal(c->notice[0], "c.ini:2: [General] normalization: this key belongs in "
					  "[DataPreparation]; passed over");
	assert_non_null(strstr(c->notice[1], "belongs in [LRRidge]"));
	assert_false(c->normalization);
	campaign_free(c);
	strbuf_release(&text);
}

TEST(test_a_lenient_reader_passes_over_unknown_keys_with_a_note)
{
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct campaign *c;

	strbuf_puts(&text, good);
	strbuf_puts(&text, "alpa = [1]\n[Nonsense]\nx = 1\n");
	c = campaign(strbuf_text(&text), true, &err);
	if (!c)
		fail_msg("%s", err.text);
	assert_int_equal(c->n_notices, 2);
	assert_non_null(strstr(c->notice[0], "there is no such key"));
	campaign_free(c);
	strbuf_release(&text);
}

/* ---- priors ---- */

static struct prior prior(const char *text)
{
	struct prior p;
	struct err err = { 0 };

	if (prior_parse(text, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

TEST(test_priors_have_the_right_support_and_quanta)
{
	static const struct {
		const char *text;
		double low, high, quantum;
	} known[] = { { "uniform(2,3)", 2, 3, 0 },           { "quniform(3,6,1)", 3, 6, 1 },
		      { "uniformint(2,5)", 2, 5, 1 },        { "randint(4)", 0, 3, 1 },
		      { "randint(2,4)", 2, 3, 1 },           { "loguniform(0.01,1)", 0.01, 1, 0 },
		      { "qloguniform(1,100,1)", 1, 100, 1 }, { "qloguniform(11,100,20)", 20, 100, 20 } };

	for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
		struct prior p = prior(known[k].text);
		struct rng rng = rng_stream(1, k);
		double least = INFINITY, most = -INFINITY;

		for (int i = 0; i < 20000; i++) {
			double v = prior_value(&p, prior_draw(&p, &rng));

			least = fmin(least, v);
			most = fmax(most, v);
			if (known[k].quantum > 0.0)
				assert_true(fabs(remainder(v, known[k].quantum)) < 1e-9);
		}
		/* 20,000 draws come within 1 % of the ends */
		if (!(least >= known[k].low - 1e-9 && most <= known[k].high + 1e-9 &&
		      least <= known[k].low + 0.01 * (known[k].high - known[k].low) &&
		      most >= known[k].high - 0.01 * (known[k].high - known[k].low)))
			fail_msg("%s: %g to %g", known[k].text, least, most);
	}
}

TEST(test_lognormal_is_that_of_its_parameters)
{
	struct prior p = prior("lognormal(0.3,0.5)");
	struct rng rng = rng_stream(7, 7);
	double sum = 0.0, squares = 0.0, n = 100000;

	for (int i = 0; i < (int)n; i++) {
		double z = log(prior_value(&p, prior_draw(&p, &rng)));

		sum += z / n;
		squares += z * z / n;
	}
	assert_true(fabs(sum - 0.3) < 5 * 0.5 / sqrt(n)); /* five standard errors */
	assert_true(fabs(sqrt(squares - sum * sum) - 0.5) < 5 * 0.5 / sqrt(2 * n));
}

TEST(test_bad_priors_are_refused)
{
	static const struct {
		const char *text, *reason;
	} bad[] = { { "loguniform(0,1)", "above 0" },
		    { "uniform(2,1)", "below the upper" },
		    { "quniform(1,2)", "takes 3 numbers" },
		    { "normal(1,0)", "above 0" },
		    { "logunifrom(1,2)", "did you mean 'loguniform'" },
		    { "uniform(a,2)", "not a number" },
		    { "quniform(1,2,0)", "quantum" } };

	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		struct prior p;
		struct err err = { 0 };

		assert_int_equal(prior_parse(bad[k].text, &p, &err), -ERR_ARG);
		if (!strstr(err.text, bad[k].reason))
			fail_msg("%s: %s", bad[k].text, err.text);
	}
}
