/* automl: preparation, splits, the rule of selection, and campaigns that go on after a break. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "automl/automl.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static char folder[] = "/tmp/postrider-automl-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}
TEST_GROUP(make_folder, remove_folder);

struct work {
	struct campaign *c;
	struct prepared *p;
	struct automl *a;
};

static void work_release(struct work *w)
{
	automl_free(w->a);
	prepared_free(w->p);
	campaign_free(w->c);
}

static const char *path_of(const char *name)
{
	static char path[4][160];
	static int turn;
	char *at = path[turn++ % 4];

	snprintf(at, sizeof path[0], "%s/%s", folder, name);
	return at;
}

static void write_text(const char *name, const char *text)
{
	assert_int_equal(io_write_file(path_of(name), text, strlen(text), NULL), 0);
}

/* General and preparation, then the sections of techniques; the table is t.csv of the folder. */
static struct campaign *campaign(const char *text, struct err *err)
{
	struct campaign *c = NULL;
	struct ini *ini;

	if (ini_parse(path_of("c.ini"), text, strlen(text), &ini, err) ||
	    campaign_of(ini, &(struct campaign_params){ 0 }, &c, err))
		return NULL;
	return c;
}

static int prepare_text(const char *table, const char *text, struct work *w, struct err *err)
{
	char *path = NULL;
	int rc;

	*w = (struct work){ 0 };
	write_text("t.csv", table);
	w->c = campaign(text, err);
	if (!w->c)
		return -1;
	rc = prepare_find_input(w->c, &path, err);
	if (!rc)
		rc = prepare(w->c, path, &w->p, err);
	free(path);
	return rc;
}

#define HEAD                                                                                                 \
	"[General]\ny = t\ntechniques = ['LRRidge']\nhp_selection = All\nvalidation = "                      \
	"All\n[DataPreparation]\n"                                                                           \
	"input_path = t.csv\n"

static const char small[] = "a,b,kind,t\n1,2,x,3\n2,4,y,5\n4,1,x,7\n3,9,z,8\n";

/* The names of the active columns. */
static void features_are(const struct prepared *p, const char *expected)
{
	struct strbuf names = { 0 };

	for (size_t j = 0; j < p->n_x; j++)
		strbuf_printf(&names, "%s%s", j ? " " : "", p->column[p->x[j]].name);
	assert_string_equal(strbuf_text(&names), expected);
	strbuf_release(&names);
}

static void prepares(const char *more, const char *expected)
{
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct work w;

	strbuf_printf(&text, "%s%s", HEAD, more);
	if (prepare_text(small, strbuf_text(&text), &w, &err))
		fail_msg("%s: %s", more, err.text);
	features_are(w.p, expected);
	work_release(&w);
	strbuf_release(&text);
}

TEST(test_columns_are_made_in_the_specified_order)
{
	prepares("", "a b kind_class_x kind_class_y kind_class_z");
	prepares("use_columns = ['b', 'a']\n", "b a");
	prepares("skip_columns = ['kind', 'nothing']\n", "a b");
	prepares("skip_columns = ['kind']\ninverse = [*]\nlog = [*]\n",
		 "a b inverse_a inverse_b log_a log_b log_inverse_a log_inverse_b");
	prepares("skip_columns = ['kind']\nproduct_max_degree = 2\n", "a b a__a a__b b__b");
	prepares("skip_columns = ['kind']\nproduct_max_degree = 2\nproduct_interactions_only = True\n",
		 "a b a__b");
	/* neither a with its inverse nor two values of one category */
	prepares("skip_columns = ['b']\ninverse = ['a']\nproduct_max_degree = 2\nproduct_interactions_only = "
		 "True\n",
		 "a kind_class_x kind_class_y kind_class_z inverse_a a__kind_class_x a__kind_class_y "
		 "a__kind_class_z "
		 "inverse_a__kind_class_x inverse_a__kind_class_y inverse_a__kind_class_z");
	prepares("skip_columns = ['kind']\nselected_products = ['a a b', 'b b']\n", "a b a__a__b b__b");
	prepares("use_columns = ['a']\ncategorical_columns = ['a']\n",
		 "a_class_1 a_class_2 a_class_3 a_class_4");
	prepares("rename_columns = {'a': 'cores', 'b': 'datasize'}\nernest = True\n",
		 "datasize_over_cores log_cores square_datasize_over_cores squared_datasize_over_cores");
	prepares("rename_columns = {'a': 'q'}\nskip_columns = ['kind']\n", "q b");
}

TEST(test_values_of_made_columns_are_right)
{
	struct err err = { 0 };
	struct work w;
	double expected[] = { 4, 2, 0.25, 1, 0, 0, 0, 0 };

	assert_int_equal(prepare_text(small, HEAD "inverse = ['b']\nskip_rows = {'b': 5}\n", &w, &err), 0);
	assert_int_equal(w.p->all.n, 3); /* the row with b = 9 is left out */
	(void)expected;
	for (size_t j = 0; j < w.p->n_x; j++) {
		const struct made_column *c = &w.p->column[w.p->x[j]];

		if (!strcmp(c->name, "inverse_b"))
			assert_true(c->value[1] == 0.25);
		if (!strcmp(c->name, "kind_class_x"))
			assert_true(c->value[0] == 1 && c->value[1] == 0 && c->value[2] == 1);
		assert_true(strcmp(c->name, "kind_class_z") != 0); /* only the row that is left out had it */
	}
	work_release(&w);
	assert_int_equal(prepare_text("cores,datasize,t\n2,8,1\n4,9,2\n", HEAD "ernest = True\n", &w, &err),
			 0);
	assert_true(w.p->column[w.p->x[0]].value[0] == 4.0);
	assert_true(fabs(w.p->column[w.p->x[1]].value[0] - log(2.0)) < 1e-15);
	assert_true(w.p->column[w.p->x[2]].value[0] == 2.0);
	assert_true(fabs(w.p->column[w.p->x[3]].value[1] - 0.75) < 1e-15);
	work_release(&w);
}

static void fails(const char *table, const char *more, const char *reason)
{
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct work w;

	strbuf_printf(&text, "%s%s", HEAD, more);
	if (!prepare_text(table, strbuf_text(&text), &w, &err))
		fail_msg("accepted: %s", more);
	if (!strstr(err.text, reason))
		fail_msg("%s: %s", more, err.text);
	work_release(&w);
	strbuf_release(&text);
}

TEST(test_bad_tables_and_columns_are_named)
{
	fails(small, "use_columns = ['aa']\n",
	      "[DataPreparation] use_columns: the table has no column 'aa'; did you mean 'a'");
	fails(small, "use_columns = ['t']\n", "is the target");
	fails("a,t\n0,1\n1,2\n", "inverse = ['a']\n", "column 'a' is 0 in line 2");
	fails("a,t\n-1,1\n1,2\n", "log = [*]\n", "column 'a' is -1 in line 2");
	fails("a,t\n,1\n1,2\n", "", "t.csv:2: column a is missing");
	fails("a,t\n1,\n1,2\n", "", "t.csv:2: column t: the target is missing");
	fails("a,t\n1,x\n1,y\n", "", "has words");
	fails("a,t\n", "", "no row below");
	fails(small, "skip_rows = {'a': 0}\n", "no row is left");
	fails(small, "ernest = True\n", "no feature 'datasize'");
	fails(small,
	      "product_max_degree = inf\nuse_columns = ['a','b']\ninverse=[*]\nlog=[*]\nselected_products = "
	      "['a']\n",
	      "two names or more");
}

/* ---- splits ---- */

static const char *const method[] = { "All", "HoldOut", "KFold", "Interpolation", "Extrapolation" };

static char *table_of(size_t n)
{
	struct strbuf b = { 0 };
	struct rng rng = rng_stream(11, n);

	strbuf_puts(&b, "a,b,g,t\n");
	for (size_t i = 0; i < n; i++) {
		double a = 1 + rng_below(&rng, 6), c = 1 + 4 * rng_uniform(&rng);

		strbuf_printf(&b, "%g,%.3f,%zu,%.4f\n", a, c, i / 4, 2 + 3 * a / c + 0.05 * rng_normal(&rng));
	}
	return b.text;
}

static char *text_of(const char *hp, const char *validation, const char *techniques, const char *more)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b,
		      "[General]\nrun_num = 2\ny = t\ntechniques = %s\nhp_selection = %s\nvalidation = %s\n"
		      "hold_out_ratio = 0.2\nfolds = 4\ninterpolation_columns = {'a': [2, 4]}\n"
		      "extrapolation_columns = {'a': 5}\n[DataPreparation]\ninput_path = t.csv\nskip_columns "
		      "= ['g']\n"
		      "inverse = ['b']\nproduct_max_degree = 2\n[LRRidge]\nalpha = [0.01, 1]\n%s",
		      techniques, hp, validation, more);
	return b.text;
}

static bool holds(const struct row_list *l, uint32_t row)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->row[i] == row)
			return true;
	return false;
}

TEST(test_all_fifteen_pairs_split_as_specified)
{
	char *table = table_of(32);

	for (size_t h = 0; h < 3; h++)
		for (size_t v = 0; v < 5; v++) {
			char *text = text_of(method[h], method[v], "['LRRidge']", "");
			struct fold_rows f;
			struct err err = { 0 };
			struct work w;
			size_t n, left;

			if (prepare_text(table, text, &w, &err) ||
			    fold_rows_make(w.c, w.p, (struct fold){ 1, 0, 0 }, &f, &err))
				fail_msg("%s/%s: %s", method[h], method[v], err.text);
			n = w.p->training.n;
			if (v == 1)
				assert_int_equal(f.validation.n, 6); /* floor(0.2 x 32) */
			if (v == 2)
				assert_int_equal(f.validation.n, 8);
			if (v == 0)
				assert_int_equal(f.validation.n, 32);
			left = v == 0 || v > 2 ? n : n - f.validation.n;
			assert_int_equal(f.both.n, left);
			assert_int_equal(f.hp_selection.n, h == 0 ? left : h == 1 ? left / 5 : left / 4);
			assert_int_equal(f.training.n, h == 0 ? left : left - f.hp_selection.n);
			if (v == 1 && h == 1) /* 32 rows at 0.2: 6, 5, 21 */
				assert_true(f.hp_selection.n == 5 && f.training.n == 21);
			for (size_t i = 0; v && i < f.validation.n; i++)
				assert_false(holds(&f.both, f.validation.row[i]));
			for (size_t i = 0; h && i < f.hp_selection.n; i++)
				assert_false(holds(&f.training, f.hp_selection.row[i]));
			fold_rows_release(&f);
			work_release(&w);
			free(text);
		}
	free(table);
}

TEST(test_folds_cover_every_row_once_and_the_last_has_the_rest)
{
	char *table = table_of(31), *text = text_of("KFold", "KFold", "['LRRidge']", "");
	struct err err = { 0 };
	struct work w;
	size_t seen[31] = { 0 };

	assert_int_equal(prepare_text(table, text, &w, &err), 0);
	for (size_t v = 0; v < 4; v++) {
		struct fold_rows f;

		assert_int_equal(fold_rows_make(w.c, w.p, (struct fold){ 0, v, 0 }, &f, &err), 0);
		assert_int_equal(f.validation.n, v < 3 ? 7 : 10);
		for (size_t i = 0; i < f.validation.n; i++)
			seen[f.validation.row[i]]++;
		fold_rows_release(&f);
	}
	for (size_t i = 0; i < 31; i++)
		assert_int_equal(seen[i], 1);
	work_release(&w);
	free(table);
	free(text);
}

TEST(test_groups_stay_on_one_side)
{
	char *table = table_of(40);

	for (size_t v = 1; v < 3; v++) {
		char *text =
			text_of("KFold", method[v], "['LRRidge']", "[Postrider]\ngroup_columns = ['g']\n");
		struct err err = { 0 };
		struct fold_rows f;
		struct work w;

		assert_int_equal(prepare_text(table, text, &w, &err), 0);
		if (fold_rows_make(w.c, w.p, (struct fold){ 0, 1 * (v == 2), 2 }, &f, &err))
			fail_msg("%s", err.text);
		for (size_t i = 0; i < f.validation.n; i++)
			for (size_t k = 0; k < f.both.n; k++)
				assert_true(w.p->group[f.validation.row[i]] != w.p->group[f.both.row[k]]);
		for (size_t i = 0; i < f.hp_selection.n; i++)
			for (size_t k = 0; k < f.training.n; k++)
				assert_true(w.p->group[f.hp_selection.row[i]] !=
					    w.p->group[f.training.row[k]]);
		fold_rows_release(&f);
		work_release(&w);
		free(text);
	}
	free(table);
}

/* ---- campaigns ---- */

static int run(const char *table, const char *text, const char *dir, size_t threads, struct work *w,
	       struct err *err)
{
	struct pool *pool = NULL;
	int rc = prepare_text(table, text, w, err);

	if (rc)
		return rc;
	assert_int_equal(pool_new(threads, &pool, NULL), 0);
	if (access(path_of(dir), F_OK)) {
		char command[256];

		snprintf(command, sizeof command, "mkdir '%s'", path_of(dir));
		assert_int_equal(system(command), 0);
	}
	rc = automl_run(&(struct automl_params){ .c = w->c,
						 .p = w->p,
						 .pool = pool,
						 .dir = path_of(dir),
						 .program = "test",
						 .created = "2026-01-01T00:00:00Z" },
			&w->a, err);
	pool_free(pool);
	return rc;
}

static struct strbuf results(const struct work *w)
{
	struct strbuf out = { 0 };
	struct writer model = { 0 };

	automl_results_json(w->a, &out);
	for (size_t t = 0; t < w->c->n_plans; t++)
		if (w->a->model[t])
			assert_int_equal(model_encode(w->a->model[t], &model, NULL), 0);
	strbuf_add(&out, model.out.text, model.out.len);
	strbuf_release(&model.out);
	return out;
}

TEST(test_all_fifteen_pairs_run)
{
	char *table = table_of(40), dir[32];

	for (size_t h = 0; h < 3; h++)
		for (size_t v = 0; v < 5; v++) {
			char *text = text_of(method[h], method[v], "['LRRidge', 'DecisionTree']",
					     "[DecisionTree]\nmax_depth = [3, 6]\nmin_samples_leaf = [1]\n"
					     "[Postrider]\nlearning_curve = False\n");
			struct err err = { 0 };
			struct work w;

			snprintf(dir, sizeof dir, "pair-%zu-%zu", h, v);
			if (run(table, text, dir, 1, &w, &err))
				fail_msg("%s/%s: %s", method[h], method[v], err.text);
			assert_int_equal(w.a->n[STAGE_EXPERIMENT],
					 2 * (v == 2 ? 4 : 1) * (h == 2 ? 4 : 1) * 4);
			for (size_t r = 0; r < 2; r++) {
				struct run_scores s = automl_run_scores(w.a, r, 0);

				assert_true(isfinite(s.mean[SET_VALIDATION].mape) &&
					    s.mean[SET_VALIDATION].mape < 0.5);
				assert_true(automl_best_of_run(w.a, r) < 2);
			}
			work_release(&w);
			free(text);
		}
	free(table);
}

static const char everything[] =
	"['LRRidge', 'NNLS', 'SVR', 'DecisionTree', 'RandomForest', 'Stepwise', 'Dummy', "
	"'NeuralNetwork']";

TEST(test_threads_do_not_change_the_result)
{
	char *table = table_of(40), *text = text_of("KFold", "HoldOut", everything, "");
	struct err err = { 0 };
	struct work one, two;
	struct strbuf a, b;

	if (run(table, text, "one", 1, &one, &err) || run(table, text, "two", 2, &two, &err))
		fail_msg("%s", err.text);
	a = results(&one);
	b = results(&two);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.text, b.text, a.len);
	/* The mean is the technique to beat. */
	assert_true(one.a->best != 6);
	strbuf_release(&a);
	strbuf_release(&b);
	work_release(&one);
	work_release(&two);
	free(table);
	free(text);
}

/* The journal cut at any byte: the rest is done again, and the end is the same. */
TEST(test_a_cut_journal_ends_with_the_same_result)
{
	char *table = table_of(40), *text = text_of("KFold", "KFold", "['LRRidge', 'Stepwise']", "");
	struct err err = { 0 };
	struct work w;
	struct strbuf whole;
	char *journal;
	size_t len;

	if (run(table, text, "cut", 1, &w, &err))
		fail_msg("%s", err.text);
	whole = results(&w);
	work_release(&w);
	assert_int_equal(io_read_file(path_of("cut/journal.jsonl"), 1 << 24, &journal, &len, NULL), 0);
	for (size_t cut = 0; cut < len; cut += 1 + len / 23) {
		struct strbuf again;

		assert_int_equal(io_write_file(path_of("cut/journal.jsonl"), journal, cut, NULL), 0);
		if (run(table, text, "cut", 2, &w, &err))
			fail_msg("cut at %zu of %zu: %s", cut, len, err.text);
		assert_true(cut < len / 2 || w.a->n_resumed > 0);
		again = results(&w);
		assert_int_equal(again.len, whole.len);
		assert_memory_equal(again.text, whole.text, whole.len);
		strbuf_release(&again);
		work_release(&w);
	}
	free(journal);
	strbuf_release(&whole);
	free(table);
	free(text);
}

/* A search that was cut off goes on: its trials stand in the journal, and the end is the same. A wrong
 * loss in the journal must show in the result, or nothing of it was read. */
TEST(test_a_search_goes_on_from_its_last_saved_trial)
{
	char *table = table_of(40), *journal, *first, *last,
	     *text = text_of("All", "HoldOut",
			     "['DecisionTree']\nhyperparameter_tuning = Hyperopt\nhyperopt_max_evals = 20\n"
			     "hyperopt_save_interval = 5",
			     "[DecisionTree]\nmax_depth = ['quniform(1,9,1)']\nmin_samples_leaf = "
			     "['uniform(0.01,0.4)']\n");
	struct err err = { 0 };
	struct strbuf whole, again;
	struct work w;
	size_t len, kept, lines = 0;

	if (run(table, text, "trials", 1, &w, &err))
		fail_msg("%s", err.text);
	whole = results(&w);
	work_release(&w);
	assert_int_equal(io_read_file(path_of("trials/journal.jsonl"), 1 << 24, &journal, &len, NULL), 0);
	for (const char *at = journal; (at = strstr(at, "\"trials\":[")); at++)
		lines++;
	assert_int_equal(
		lines,
		3 * (2 + 2 + 1)); /* at 5, 10 and 15 of each search: 2 experiments, 2 validations, 1 model */
	/* Cut behind the second line of trials. */
	first = strstr(journal, "\"trials\":[");
	last = strchr(strstr(first + 1, "\"trials\":["), '\n');
	kept = (size_t)(last + 1 - journal);
	for (int turn = 0; turn < 2; turn++) {
		if (turn) /* as if the second trial had been as good as nothing is */
			memcpy(strchr(first, ',') + 1, "-9", 2);
		assert_int_equal(io_write_file(path_of("trials/journal.jsonl"), journal, kept, NULL), 0);
		if (run(table, text, "trials", 1, &w, &err))
			fail_msg("%s", err.text);
		again = results(&w);
		assert_int_equal(turn == 0,
				 again.len == whole.len && !memcmp(again.text, whole.text, whole.len));
		strbuf_release(&again);
		work_release(&w);
	}
	free(journal);
	strbuf_release(&whole);
	free(table);
	free(text);
}

TEST(test_another_campaign_or_table_is_refused_by_name)
{
	char *table = table_of(40), *other = table_of(41),
	     *text = text_of("All", "HoldOut", "['LRRidge']", "");
	char *changed = text_of("All", "KFold", "['LRRidge']", "");
	struct err err = { 0 };
	struct work w;

	assert_int_equal(run(table, text, "refuse", 1, &w, &err), 0);
	work_release(&w);
	assert_int_equal(run(table, changed, "refuse", 1, &w, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "[General] validation was 'HoldOut' and is now 'KFold'"));
	work_release(&w);
	assert_int_equal(run(other, text, "refuse", 1, &w, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "t.csv has changed"));
	work_release(&w);
	/* a byte changed inside a line, not the last */
	{
		char *journal;
		size_t len;

		assert_int_equal(io_read_file(path_of("refuse/journal.jsonl"), 1 << 24, &journal, &len, NULL),
				 0);
		*strchr(strchr(journal, '\n') + 1, '"') = '!';
		assert_int_equal(io_write_file(path_of("refuse/journal.jsonl"), journal, len, NULL), 0);
		free(journal);
	}
	assert_int_equal(run(table, text, "refuse", 1, &w, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "journal.jsonl:2: the line is damaged"));
	work_release(&w);
	free(table);
	free(other);
	free(text);
	free(changed);
}

TEST(test_a_failing_point_is_reported_and_never_chosen)
{
	/* A rate of 100 diverges; the other point works. */
	char *table = table_of(40);
	char *text =
		text_of("KFold", "HoldOut", "['NeuralNetwork', 'LRRidge']",
			"[NeuralNetwork]\nlearning_rate = [100, 0.01]\noptimizer = ['sgd']\nepochs = [60]\n"
			"n_features = [[4]]\ndropouts = [0]\n");
	struct err err = { 0 };
	struct strbuf log = { 0 };
	struct work w;
	size_t failed = 0;

	if (run(table, text, "failing", 1, &w, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < w.a->n[STAGE_EXPERIMENT]; i++)
		failed += w.a->outcome[STAGE_EXPERIMENT][i].failed;
	assert_true(failed > 0);
	assert_int_equal(w.a->final[0].point, 1);
	automl_log(w.a, &log);
	assert_non_null(strstr(strbuf_text(&log), "failed: NeuralNetwork learning_rate=100"));
	assert_non_null(strstr(strbuf_text(&log), "training diverged"));
	strbuf_release(&log);
	work_release(&w);
	free(table);
	free(text);
}

TEST(test_a_campaign_without_a_result_says_why)
{
	/* three groups for four folds: the last one is empty, not the first */
	char *table = table_of(12),
	     *text = text_of("All", "KFold", "['LRRidge', 'Dummy']", "[Postrider]\ngroup_columns = ['g']\n");
	struct err err = { 0 };
	struct work w;

	assert_int_equal(run(table, text, "no-result", 1, &w, &err), -ERR_NODATA);
	assert_non_null(strstr(err.text, "every technique failed"));
	assert_non_null(strstr(err.text, "the groups of group_columns are too large"));
	work_release(&w);
	free(table);
	free(text);
}

TEST(test_selection_of_features_finds_the_ones_that_matter)
{
	/* t depends on a and the inverse of b; sums of both methods agree on that. */
	char *table = table_of(60);
	static const char *const how[] = {
		"[FeatureSelection]\nmethod = SFS\nmax_features = 3\nfolds = 4\n",
		"[FeatureSelection]\nmethod = XGBoost\nXGBoost_tolerance = 0.8\n"
	};

	for (size_t k = 0; k < 2; k++) {
		char *text = text_of("HoldOut", "HoldOut", "['LRRidge']", how[k]), dir[16];
		struct err err = { 0 };
		struct work w;
		const struct feature_list *f;
		struct strbuf results = { 0 };
		bool found = false;

		snprintf(dir, sizeof dir, "select-%zu", k);
		if (run(table, text, dir, 1, &w, &err))
			fail_msg("%s", err.text);
		f = k ? &w.a->outcome[STAGE_FEATURES][0].features : &w.a->outcome[STAGE_MODEL][0].features;
		assert_true(f->n >= 1 && f->n < w.p->n_x);
		for (size_t i = 0; i < f->n; i++)
			found |= !strcmp(w.p->column[f->column[i]].name, "a__inverse_b");
		assert_true(found);
		/* The results name them, for the run and for the final model. */
		automl_results_json(w.a, &results);
		found = strstr(strbuf_text(&results), "\"features\": [") != NULL;
		assert_true(found &&
			    strstr(strstr(strbuf_text(&results), "\"features\": [") + 1, "\"features\": ["));
		strbuf_release(&results);
		assert_true(automl_run_scores(w.a, 0, 0).mean[SET_VALIDATION].mape < 0.1);
		work_release(&w);
		free(text);
	}
	free(table);
}

TEST(test_tuning_scores_the_best_trial)
{
	char *table = table_of(60);
	struct strbuf text = { 0 };
	struct err err = { 0 };
	struct work w;

	strbuf_puts(&text,
		    "[General]\ny = t\ntechniques = ['LRRidge', 'DecisionTree']\nhp_selection = KFold\nfolds "
		    "= 3\n"
		    "validation = HoldOut\nhold_out_ratio = 0.2\nhyperparameter_tuning = hyperopt\n"
		    "hyperopt_max_evals = 15\n[DataPreparation]\ninput_path = t.csv\nskip_columns = ['g']\n"
		    "inverse = ['b']\nproduct_max_degree = 2\n[LRRidge]\nalpha = ['loguniform(1e-4,1000)']\n"
		    "[DecisionTree]\nmax_depth = ['quniform(1,10,1)']\n"
		    "min_samples_leaf = ['loguniform(0.01,0.5)']\n");
	if (run(table, strbuf_text(&text), "tuned", 1, &w, &err))
		fail_msg("%s", err.text);
	assert_int_equal(w.a->outcome[STAGE_MODEL][1].n_tuned, 2);
	assert_true(w.a->outcome[STAGE_MODEL][1].tuned[0] == floor(w.a->outcome[STAGE_MODEL][1].tuned[0]));
	assert_true(w.a->outcome[STAGE_MODEL][0].tuned[0] < 10.0); /* strong penalties fit badly */
	assert_true(automl_run_scores(w.a, 0, 0).mean[SET_VALIDATION].mape < 0.1);
	work_release(&w);
	strbuf_release(&text);
	free(table);
}

/* ---- model files ---- */

TEST(test_a_bundle_predicts_what_the_campaign_fitted)
{
	char *table = table_of(60);

	for (const struct technique *each = technique_all; each->name; each++) {
		struct strbuf text = { 0 };
		struct writer file = { 0 };
		struct model *m;
		struct err err = { 0 };
		struct work w;
		double out;

		strbuf_printf(
			&text,
			"[General]\ny = t\ntechniques = ['%s']\nhp_selection = All\nvalidation = All\n"
			"[DataPreparation]\ninput_path = t.csv\ncategorical_columns = ['a']\ninverse = "
			"['b']\n"
			"product_max_degree = 2\nnormalization = True\n[Postrider]\nlearning_curve = False\n"
			"roles = {'b': 'batch', 'g': 'cpus'}\n",
			each->name);
		if (run(table, strbuf_text(&text), each->name, 1, &w, &err) ||
		    model_encode(w.a->model[0], &file, &err) ||
		    model_decode("bundle", file.out.text, file.out.len, &m, &err))
			fail_msg("%s: %s", each->name, err.text);
		assert_string_equal(m->time.predictor.ops->name, "automl");
		assert_true(m->features->n > 3);
		{
			double *features = calloc(m->features->n, sizeof *features);
			struct job_values v;

			assert_int_equal(job_values_init(&v, m->schema, NULL), 0);
			assert_int_equal(job_values_parse(&v, m->schema, "a=3,b=2.5,g=4", &err), 0);
			features_encode_job(m->features, &v, features);
			predictor_predict(&m->time.predictor, features, 1, &out);
			assert_true(isfinite(out));
			if (!strcmp(each->name, "LRRidge"))
				assert_true(fabs(out - (2 + 3 * 3 / 2.5)) < 0.5);
			job_values_release(&v);
			features[1] = NAN; /* a missing value counts as its mean */
			predictor_predict(&m->time.predictor, features, 1, &out);
			assert_true(isfinite(out));
			free(features);
		}
		assert_true(m->time.conformal.n > 0);
		/* Cut and damaged files are refused or read; they never crash. */
		for (size_t len = 0; len < file.out.len; len += 1 + file.out.len / 200) {
			struct model *none;

			assert_true(model_decode("cut", file.out.text, len, &none, NULL) != 0);
		}
		model_free(m);
		strbuf_release(&file.out);
		strbuf_release(&text);
		work_release(&w);
	}
	free(table);
}
