/* scheduler/daemon/learn/training: one training with its test, from tables to a version. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/stats.h"
#include "scheduler/daemon/learn/training_thread.h"
#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/training_world.h"

static const struct world usual = { .speed = 1.0, .noise = 0.05, .seed = 1 };

static struct config_learning defaults(void)
{
	return (struct config_learning){ .retrain_after = 200,
					 .min_observations = 30,
					 .test_jobs = 50,
					 .significance = 0.05,
					 .keep_versions = 10 };
}

static const char *fresh_folder(void)
{
	static int n;
	char name[32];

	snprintf(name, sizeof name, "models%d", n++);
	return support_path(support_temp_dir(), name);
}

static struct trainer *trainer_at(const char *folder, const char *policy, const struct config_learning *c)
{
	struct trainer_params p = {
		.learning = c, .folder = folder, .cores = 2, .seed = 1, .program = "test"
	};
	struct trainer *l = NULL;
	struct err err = { 0 };

	if (policy_parse(policy, &p.policy, &err) || trainer_new(&p, &l, &err))
		fail_msg("%s", err.text);
	return l;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct training_result wait_for(struct trainer *l)
{
	struct pollfd p = { .fd = trainer_fd(l), .events = POLLIN };
	struct training_result r = { 0 };

	assert_true(trainer_busy(l));
	assert_int_equal(poll(&p, 1, 400000), 1);
	assert_true(trainer_poll(l, &r));
	assert_false(trainer_busy(l));
	assert_false(trainer_poll(l, &r));
	assert_int_equal(poll(&p, 1, 0), 0); /* nothing more to fetch */
	return r;
}

static struct training_result learn(struct trainer *l, const struct world *w, size_t n, const char *model)
{
	size_t len;
	char *rows = world_observations(w, n, &len);
	struct err err = { 0 };

	if (trainer_start(l, rows, len, model, "a test", &err))
		fail_msg("%s", err.text);
	return wait_for(l);
}

/* A first model from the usual world; its path is to be freed. */
static char *first_model(struct trainer *l, size_t n)
{
	struct training_result r = learn(l, &usual, n, NULL);
	char *path = r.path;

	if (r.err.code)
		fail_msg("%s", r.err.text);
	assert_true(r.accepted && r.model && path);
	r.path = NULL;
	training_result_release(&r);
	return path;
}

TEST(test_without_a_model_the_first_one_is_taken)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "anova", &c);
	struct training_result r = learn(l, &usual, 60, NULL);
	struct model_version v;

	assert_int_equal(r.err.code, 0);
	assert_true(r.accepted && r.model && r.seconds > 0.0);
	assert_string_equal(r.model->time.predictor.ops->name, "linear");
	assert_true(r.model->accuracy.predictor.ops != NULL);
	assert_ptr_equal(r.model->time.predictor.ops, predictor_find("linear"));
	assert_true(r.version.number == 1 && r.version.rows == 60 && r.version.observations == 60);
	assert_true(r.version.tested == 0 && isnan(r.version.p));
	assert_string_equal(r.version.reason, "a test");
	assert_non_null(strstr(r.version.message, "the first model, from 60 rows; the time is by linear"));
	assert_int_equal(access(r.path, R_OK), 0);
	assert_int_equal(trainer_versions(l, &v, 1), 1);
	assert_true(v.number == 1 && v.accepted && v.kept && trainer_current(l) == 1);
	training_result_release(&r);
	trainer_free(l);
	trainer_free(NULL);
}

TEST(test_a_model_that_explains_little_says_so)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "courier", &c);
	struct world noise = { .speed = 1.0, .noise = 2.0, .seed = 4 };
	struct training_result r = learn(l, &noise, 60, NULL);

	assert_int_equal(r.err.code, 0);
	if (!strstr(r.version.message, ", and explains little (R2 "))
		fail_msg("%s", r.version.message);
	training_result_release(&r);
	trainer_free(l);
}

TEST(test_a_better_model_is_taken)
{
	static const char *const policy[] = { "anova", "courier", "postrider" };
	struct world moved = { .speed = 1.7, .noise = 0.05, .seed = 2 };

	for (size_t i = 0; i < (sanitized() ? 1 : 3); i++) {
		struct config_learning c = defaults();
		struct trainer *l = trainer_at(fresh_folder(), policy[i], &c);
		char *path = first_model(l, 60);
		struct training_result r = learn(l, &moved, 120, path);

		assert_int_equal(r.err.code, 0);
		if (!r.accepted)
			fail_msg("%s: %s", policy[i], r.version.message);
		assert_true(r.version.tested == 50 && r.version.p < 0.001);
		assert_true(r.version.old_error > 0.3 && r.version.new_error < 0.2);
		assert_true(r.version.number == 2 && trainer_current(l) == 2);
		assert_non_null(strstr(r.version.message, "taken; the time is by "));
		/* a linear model of seconds may say 0 or less, and is not off by a factor then */
		assert_true(!i || strstr(r.version.message, " % on rows held out"));
		assert_string_equal(strrchr(r.path, '/'), "/0002.model");
		/* it is one that can make promises */
		assert_true(r.model->time.conformal.n >= conformal_needed(0.9));
		training_result_release(&r);
		free(path);
		trainer_free(l);
	}
}

TEST(test_an_equal_model_is_not_taken)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "anova", &c);
	char *path = first_model(l, 400);
	struct world same = { .speed = 1.0, .noise = 0.05, .seed = 3 };
	struct training_result r = learn(l, &same, 120, path);
	struct model_version v[4];

	assert_int_equal(r.err.code, 0);
	if (r.accepted || r.model || r.path)
		fail_msg("%s", r.version.message);
	assert_true(r.version.number == 2 && r.version.p >= 0.05 && r.version.tested == 50);
	assert_non_null(strstr(r.version.message, "not taken"));
	/* it is in the journal, without a file */
	assert_int_equal(trainer_versions(l, v, 4), 2);
	assert_true(!v[1].accepted && !v[1].kept && trainer_current(l) == 1);
	training_result_release(&r);
	free(path);
	trainer_free(l);
}

TEST(test_a_worse_model_is_not_taken)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "boost-full", &c);
	char *path = first_model(l, 200), *rows;
	struct world same = { .speed = 1.0, .noise = 0.05, .seed = 4 },
		     mad = { .speed = 1, .nonsense = 1, .seed = 5 };
	struct strbuf both = { 0 };
	struct training_result r;
	size_t len;

	/* what there is to learn from is nonsense, what the test is made of is not */
	world_header(&both, true);
	for (size_t i = 0; i < 60; i++)
		world_row(&both, &mad, i, true);
	for (size_t i = 60; i < 110; i++)
		world_row(&both, &same, i, true);
	rows = packed(both.text, &len);
	strbuf_release(&both);
	assert_int_equal(trainer_start(l, rows, len, path, "a test", NULL), 0);
	r = wait_for(l);
	assert_int_equal(r.err.code, 0);
	assert_true(!r.accepted && r.version.p > 0.9 && r.version.new_error > r.version.old_error);
	training_result_release(&r);
	free(path);
	trainer_free(l);
}

/* Start-up 3 s, epochs of 0.5 s: a single job that told its epochs says what fewer of them take. */
TEST(test_the_epochs_of_a_job_are_learnt_from)
{
	static const char text[] =
		"network,cpus,njobs,batch,epochs,samples,time_s,accuracy,@epochs,lr,job,at\n"
		"lenet5,1,1,64,12,600,9,0.96,1 3.5 0.5;2 4 0.75;6 6 0.92;12 9 0.9;,0.01,1,\n"
		"lenet5,1,1,64,12,600,9.1,0.96,nonsense,0.01,2,\n";
	struct config_learning c = defaults();
	struct trainer *l;
	struct training_result r;
	struct job_values v;
	double x[FEATURES_MAX], few_s;
	size_t len;
	char *rows = packed(text, &len);

	c.min_observations = 1;
	l = trainer_at(fresh_folder(), "postrider", &c);
	assert_int_equal(trainer_start(l, rows, len, NULL, "a test", NULL), 0);
	r = wait_for(l);
	assert_int_equal(r.err.code, 0);
	assert_true(r.accepted && r.version.rows == 5 && r.version.observations == 2); /* 12 is its end */
	assert_int_equal(r.model->time.n_rows, 2); /* runs */
	assert_int_equal(job_values_init(&v, r.model->schema, NULL), 0);
	assert_int_equal(job_values_parse(&v, r.model->schema,
					  "network=lenet5,cpus=1,njobs=1,batch=64,samples=600,epochs=2",
					  NULL),
			 0);
	features_encode_job(r.model->features, &v, x);
	predictor_predict(&r.model->time.predictor, x, 1, &few_s);
	assert_true(few_s > 3.5 && few_s < 4.6);
	job_values_release(&v);
	training_result_release(&r);
	trainer_free(l);
}

TEST(test_the_operators_table_and_curves_are_learnt_from)
{
	struct config_learning c = defaults();
	const char *folder = fresh_folder(), *dir = support_temp_dir();
	struct world other = { .speed = 1.0, .noise = 0.05, .seed = 9 };
	char *table = world_table(&other, 40, false);
	struct strbuf curves = { 0 };
	struct trainer *l;
	struct training_result r;

	c.table = (char *)support_path(dir, "runs.csv");
	assert_int_equal(io_write_file(c.table, table, strlen(table), NULL), 0);
	l = trainer_at(folder, "anova", &c);
	r = learn(l, &usual, 20, NULL);
	assert_int_equal(r.err.code, 0);
	assert_true(r.accepted && r.version.rows == 60 && r.version.observations == 20);
	training_result_release(&r);
	trainer_free(l);
	/* a run that has a curve becomes a row an epoch */
	free(table);
	table = mem_strdup("network,cpus,njobs,batch,epochs,samples,time_s,accuracy,replication\n"
			   "lenet5,1,1,64,3,12000,9,0.9,1\nlenet5,1,1,128,3,12000,8,0.85,1\n");
	strbuf_puts(&curves, "network,cpus,njobs,batch,epochs,samples,replication,epoch,elapsed_s,accuracy\n"
			     "lenet5,1,1,64,3,12000,1,1,2.9,0.5\nlenet5,1,1,64,3,12000,1,2,5.9,0.8\n"
			     "lenet5,1,1,64,3,12000,1,3,8.9,0.9\n");
	c.curves = (char *)support_path(dir, "curves.csv");
	assert_int_equal(io_write_file(c.table, table, strlen(table), NULL), 0);
	assert_int_equal(io_write_file(c.curves, curves.text, curves.len, NULL), 0);
	l = trainer_at(fresh_folder(), "anova", &c);
	r = learn(l, &usual, 40, NULL);
	if (r.err.code)
		fail_msg("%s", r.err.text);
	assert_true(r.accepted && r.version.rows == 44 && r.version.observations == 40);
	assert_string_equal(r.model->accuracy.predictor.ops->name, "curve");
	training_result_release(&r);
	trainer_free(l);
	free(table);
	strbuf_release(&curves);
}

TEST(test_settings_of_the_model_in_use_are_kept)
{
	struct config_learning c = defaults();
	const char *folder = fresh_folder();
	struct trainer *l = trainer_at(folder, "courier", &c);
	char *path = first_model(l, 60);
	struct world moved = { .speed = 2.0, .noise = 0.05, .seed = 6 };
	struct model *m = NULL;
	struct training_result r;

	assert_int_equal(model_load(path, &m, NULL), 0);
	assert_int_equal(settings_set(&m->time.predictor.settings, "trees", "7", NULL), 0);
	assert_int_equal(model_save(m, path, NULL), 0);
	model_free(m);
	r = learn(l, &moved, 120, path);
	assert_true(r.accepted);
	assert_true(settings_get(&r.model->time.predictor.settings, "trees") == 7.0);
	training_result_release(&r);
	free(path);
	trainer_free(l);
}

/* Where the policy has a choice, retraining searches as `train --policy` does, with the cores that are
 * configured. */
TEST(test_models_are_searched_where_the_policy_has_a_choice)
{
	struct config_learning c = defaults();
	struct trainer *l;
	struct world moved = { .speed = 2.0, .noise = 0.05, .seed = 6 };
	struct training_result first, r;
	const char *accuracy;
	double cores;

	c.test_jobs = 20;
	l = trainer_at(fresh_folder(), "postrider", &c);
	first = learn(l, &usual, 30, NULL);
	if (first.err.code)
		fail_msg("%s", first.err.text);
	accuracy = first.model->accuracy.predictor.ops->name;
	assert_true(strcmp(accuracy, "forest") ||
		    settings_get(&first.model->accuracy.predictor.settings, "depth") != 9.0);
	r = learn(l, &moved, 50, first.path);
	assert_true(r.accepted);
	cores = settings_get(&r.model->time.predictor.settings, "cores");
	assert_true(cores == 0.0 || cores == 2.0);
	training_result_release(&first);
	training_result_release(&r);
	trainer_free(l);
}

static void expect_error(struct trainer *l, const char *text, const char *model, enum err_code code,
			 const char *say)
{
	struct training_result r;
	size_t len;
	char *rows = packed(text, &len);

	assert_int_equal(trainer_start(l, rows, len, model, "a test", NULL), 0);
	r = wait_for(l);
	if ((code && r.err.code != code) || !r.err.code || !strstr(r.err.text, say))
		fail_msg("code %d, %s", r.err.code, r.err.text);
	assert_true(!r.accepted && !r.model && !r.path && r.version.number == 0);
	training_result_release(&r);
}

TEST(test_too_few_observations_are_told)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "anova", &c);
	char *few = world_table(&usual, 29, true), *path;

	expect_error(l, few, NULL, ERR_NODATA, "29 runs and observations to learn from; 30 are needed");
	expect_error(l, "", NULL, ERR_NODATA, "0 runs");
	expect_error(l, "network,cpus,time_s\n", NULL, ERR_NODATA, "0 runs");
	path = first_model(l, 60);
	trainer_free(l);
	c.min_observations = 5;
	l = trainer_at(fresh_folder(), "anova", &c);
	free(few);
	few = world_table(&usual, 8, true); /* four of them held back: 1/16 at best */
	expect_error(l, few, path, ERR_NODATA, "too few to tell");
	free(few);
	free(path);
	trainer_free(l);
}

TEST(test_observations_that_make_no_sense_are_left_out)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "anova", &c);
	char *good = world_table(&usual, 60, true), *rows;
	struct strbuf text = { 0 };
	struct training_result r;
	size_t len;

	/* single rows that can not be used do not stop the others */
	strbuf_puts(&text, good);
	strbuf_puts(&text, "lenet5,1,1,64,2,12000,0,0.5,0.01,61,x\n");
	strbuf_puts(&text, "lenet5,1,1,64,2,12000,-3,0.5,0.01,62,x\n");
	strbuf_puts(&text, "lenet5,1,1,64,2,12000,,0.5,0.01,63,x\n");
	strbuf_puts(&text, "lenet5,one,1,64,2,12000,3,0.5,0.01,64,x\n");
	strbuf_puts(&text, "lenet5,1,1,64,2,12000,3,good,0.01,65,x\n");
	rows = packed(text.text, &len);
	strbuf_release(&text);
	assert_int_equal(trainer_start(l, rows, len, NULL, "a test", NULL), 0);
	r = wait_for(l);
	if (r.err.code)
		fail_msg("%s", r.err.text);
	assert_true(r.accepted && r.version.rows == 60);
	assert_non_null(strstr(r.version.message, "5 observations could not be used"));
	training_result_release(&r);
	free(good);
	trainer_free(l);
}

TEST(test_files_that_are_not_there_are_told)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "anova", &c);
	char *text = world_table(&usual, 60, true);

	expect_error(l, text, "/nowhere/x.model", ERR_NOTFOUND, "x.model");
	trainer_free(l);
	c.table = "/nowhere/runs.csv";
	l = trainer_at(fresh_folder(), "anova", &c);
	expect_error(l, text, NULL, ERR_NOTFOUND, "runs.csv");
	trainer_free(l);
	c.table = NULL;
	c.schema = "/nowhere/schema.json";
	l = trainer_at(fresh_folder(), "anova", &c);
	expect_error(l, text, NULL, ERR_NOTFOUND, "schema.json");
	trainer_free(l);
	free(text);
}

TEST(test_one_at_a_time)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "anova", &c);
	size_t len;
	char *rows = world_observations(&usual, 60, &len);
	struct err err = { 0 };
	struct training_result r;

	assert_int_equal(trainer_start(l, rows, len, NULL, "first", NULL), 0);
	assert_int_equal(trainer_start(l, mem_strdup("x"), 1, NULL, "second", &err), -ERR_BUSY);
	assert_int_equal(trainer_rollback(l, 0, "third", &err), -ERR_BUSY);
	r = wait_for(l);
	assert_true(r.accepted);
	training_result_release(&r);
	trainer_free(l);
}

TEST(test_versions_are_pruned_and_rolled_back_to)
{
	struct config_learning c = defaults();
	const char *folder = fresh_folder();
	struct trainer *l;
	struct model_version v[16];
	struct training_result r;
	char *path;
	size_t n;

	c.keep_versions = 2;
	l = trainer_at(folder, "anova", &c);
	for (int i = 0; i < 4; i++) {
		struct world w = { .speed = 1.0 + i, .noise = 0.05, .seed = (uint64_t)i };

		r = learn(l, &w, 60, NULL);
		assert_true(r.accepted);
		training_result_release(&r);
	}
	n = trainer_versions(l, v, 16);
	assert_int_equal(n, 4);
	assert_true(!v[0].kept && !v[1].kept && v[2].kept && v[3].kept);
	assert_int_equal(trainer_rollback(l, 1, "x", NULL), -ERR_NOTFOUND);
	assert_int_equal(trainer_rollback(l, 77, "x", NULL), -ERR_NOTFOUND);
	assert_int_equal(trainer_rollback(l, 3, "it was better", NULL), 0);
	r = wait_for(l);
	assert_int_equal(r.err.code, 0);
	assert_true(r.accepted && r.model && r.version.rolled_back_to == 3);
	path = trainer_path(l, 3);
	assert_string_equal(r.path, path);
	free(path);
	training_result_release(&r);
	assert_int_equal(trainer_current(l), 3);
	trainer_free(l);
	l = trainer_at(folder, "anova", &c); /* a restart */
	assert_int_equal(trainer_current(l), 3);
	assert_int_equal(trainer_rollback(l, 0, "x", NULL), 0);
	r = wait_for(l);
	assert_true(r.accepted && !r.model && !r.path);
	training_result_release(&r);
	assert_int_equal(trainer_current(l), 0);
	trainer_free(l);
	/* a policy that wants another kind of model does not get this one */
	l = trainer_at(folder, "courier", &c);
	assert_int_equal(trainer_rollback(l, 3, "x", NULL), 0);
	r = wait_for(l);
	assert_true(!r.accepted && r.err.code == ERR_ARG && r.version.number == 0);
	training_result_release(&r);
	trainer_free(l);
}

TEST(test_a_damaged_version_is_not_rolled_back_to)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "anova", &c);
	char *path = first_model(l, 60);
	struct training_result r;

	assert_int_equal(io_write_file(path, "rubbish", 7, NULL), 0);
	assert_int_equal(trainer_rollback(l, 1, "x", NULL), 0);
	r = wait_for(l);
	assert_true(!r.accepted && r.err.code == ERR_FORMAT);
	training_result_release(&r);
	free(path);
	trainer_free(l);
}

TEST(test_leaving_stops_a_training)
{
	struct config_learning c = defaults();
	struct trainer *l = trainer_at(fresh_folder(), "postrider", &c);
	struct timespec a_moment = { 0, 30000000 };
	size_t len;
	char *rows = world_observations(&usual, 1000, &len);
	double from, took;

	assert_int_equal(trainer_start(l, rows, len, NULL, "a test", NULL), 0);
	nanosleep(&a_moment, NULL);
	from = now_s();
	trainer_free(l);
	took = now_s() - from;
	printf("stopped after %.2f s\n", took);
	assert_true(took <
		    60.0); /* one fit, at a low priority on a machine that may be busy; the whole takes much
		          longer */
	assert_int_equal(access(support_path(support_temp_dir(), "models999"), F_OK), -1);
}
