/* A daemon in this process that trains a model and puts it to use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/training_world.h"
#include "tests/unit/daemon/one_local.h"

/* A daemon without a model, and a table of runs to make one from. */
static void start_with_a_table(void)
{
	static char settings[512];
	const struct world usual = { .speed = 1.0, .noise = 0.05, .seed = 1 };
	char path[160], *table = world_table(&usual, 60, false);

	snprintf(path, sizeof path, "%s/runs.csv", l.dir);
	assert_int_equal(io_write_file(path, table, strlen(table), NULL), 0);
	free(table);
	snprintf(settings, sizeof settings, "\"policy\":\"fixed:128\",\"learning\":{\"table\":\"%s\"},",
		 path);
	start(settings);
}

/* Waits for the thread that trains, and does not turn the loop. */
static void await_file(const char *path)
{
	for (int i = 0; i < 60000 && access(path, F_OK); i++)
		usleep(1000);
	assert_int_equal(access(path, F_OK), 0);
}

static bool has_model(const struct local_daemon *at)
{
	return at->d->setup->slot[0].model != NULL && !at->d->loader;
}

TEST_WITH(test_the_model_in_use_is_the_one_that_was_trained, open_one, close_one)
{
	char path[160], journal[160];
	struct json *v;

	start_with_a_table();
	snprintf(path, sizeof path, "%s/models/0001.model", l.state);
	snprintf(journal, sizeof journal, "%s/models/versions.jsonl", l.state);
	while (store_pending(l.d->store)) /* the question does not wait for the disk */
		local_run(&l, 0.0);
	assert_string_equal(client_error(&c, "{\"op\":\"retrain\"}"), "");
	while (!l.d->asked_first && access(path, F_OK)) /* until the thread has its observations */
		local_run(&l, 0.0);
	await_file(path);
	await_file(journal);
	assert_int_equal(unlink(path), 0); /* from here on nothing can be read from it */
	local_until(&l, has_model);
	v = client_ask(&c, "{\"op\":\"models\"}");
	assert_true(number_at(v, "current") == 1.0);
	assert_string_equal(text_at(v, "model"), l.d->setup->slot[0].name);
	json_free(v);
}

static double models_at(const char *path)
{
	struct json *v = client_ask(&c, "{\"op\":\"models\"}");
	double x = number_at(v, path);

	json_free(v);
	return x;
}

/* Trains until a version is in use. */
static void train_one(void)
{
	start_with_a_table();
	assert_string_equal(client_error(&c, "{\"op\":\"retrain\"}"), "");
	assert_string_equal(client_error(&c, "{\"op\":\"retrain\"}"), "wrong_state"); /* one at a time */
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"version\":0}"), "wrong_state");
	local_until(&l, has_model);
	assert_true(models_at("current") == 1.0);
}

TEST_WITH(test_a_rollback_goes_back_and_forth, open_one, close_one)
{
	struct json *v;

	(void)state;
	train_one();
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\"}"), "bad_field");
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"version\":7}"), "bad_field");
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"version\":0.5}"), "bad_field");
	v = client_ask(&c, "{\"op\":\"rollback\",\"version\":0}");
	assert_true(json_bool(json_get(v, "reloaded"), false));
	json_free(v);
	assert_true(models_at("current") == 0.0);
	assert_null(l.d->setup->slot[0].model);
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"version\":1}"), "");
	assert_true(models_at("current") == 1.0);
	assert_non_null(l.d->setup->slot[0].model);
	v = client_ask(&c, "{\"op\":\"models\"}");
	assert_int_equal(json_size(json_get(v, "models")), 3);
	json_free(v);
	v = client_ask(&c, "{\"op\":\"hello\"}");
	assert_string_equal(text_at(v, "model.kind"), "hybrid");
	json_free(v);
}

TEST_WITH(test_a_restart_uses_the_version_that_was_in_use, open_one, close_one)
{
	(void)state;
	train_one();
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	assert_non_null(l.d->setup->slot[0].model);
	assert_true(models_at("current") == 1.0);
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"version\":0}"), "");
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	assert_null(l.d->setup->slot[0].model);
	assert_true(models_at("current") == 0.0);
}

TEST_WITH(test_a_daemon_that_leaves_stops_a_training, open_one, close_one)
{
	(void)state;
	start_with_a_table();
	assert_string_equal(client_error(&c, "{\"op\":\"retrain\"}"), "");
	local_stop(&l);
}
