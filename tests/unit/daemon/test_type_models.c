/* A daemon in this process whose job types have models of their own: trained from nothing, used, learnt from
 * and rolled back apart from each other and from the configuration's model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "common/io.h"
#include "tests/support/test.h"
#include "scheduler/daemon/learn/learning.h"
#include "tests/unit/daemon/one_local.h"

#define FIRST 12 /* jobs before a first model */
#define TYPES                                                                                                \
	",\"bread\":{\"batches\":[8,16,32],\"first_after\":12,\"params\":{\"flour\":{\"kind\":\"integer\","  \
	"\"min\":1,\"max\":5,\"default\":3}}},"                                                              \
	"\"cake\":{\"batches\":[64,128,256],\"first_after\":12,\"params\":{\"oven\":{\"kind\":\"word\","     \
	"\"values\":[\"gas\",\"wood\"],\"default\":\"gas\"}}}"

static int open_it(void **state)
{
	(void)state;
	local_open(&l);
	l.model = LOCAL_MODEL;
	l.types = TYPES;
	local_start(&l);
	client_open(&c, &l);
	return 0;
}

/* What a job of that batch takes: less with a larger one, and by its parameter. */
static double run_s(const char *type, double batch, double param)
{
	return strcmp(type, "cake") ? 40.0 + 60.0 * param * 8.0 / batch
				    : 200.0 * 64.0 / batch * (1.0 + param);
}

struct outcome {
	double batch;
	char verdict[24], reason[256], model[64];
};

static double fails_with; /* this batch; 0: none */
static double limit_s = 100000;

/* A job from submit to done; `slower` times as long as usual. */
static struct outcome whole_job(const char *type, int param, double slower)
{
	static const char *const oven[] = { "gas", "wood" };
	struct outcome o;
	char params[64], id[32];
	struct json *v;
	double took_s;

	if (strcmp(type, "cake"))
		snprintf(params, sizeof params, "{\"flour\":%d}", param + 1);
	else
		snprintf(params, sizeof params, "{\"oven\":\"%s\"}", oven[param % 2]);
	v = client_ask(&c,
		       "{\"op\":\"submit\",\"type\":\"%s\",\"mode\":\"advise\",\"slo_s\":%g,\"params\":%s}",
		       type, limit_s, params);
	snprintf(id, sizeof id, "%s", text_at(v, "job.job"));
	snprintf(o.verdict, sizeof o.verdict, "%s", text_at(v, "verdict"));
	snprintf(o.reason, sizeof o.reason, "%s", text_at(v, "job.reason"));
	snprintf(o.model, sizeof o.model, "%s", text_at(v, "job.model"));
	json_free(v);
	v = client_ask(&c, "{\"op\":\"started\",\"job\":\"%s\"}", id);
	o.batch = number_at(v, "job.batch");
	json_free(v);
	took_s = slower * run_s(type, o.batch, strcmp(type, "cake") ? param + 1 : param % 2);
	l.d->clock_offset_ns += (int64_t)(took_s * 1e9);
	if (o.batch == fails_with)
		assert_string_equal(
			client_error(&c, "{\"op\":\"finished\",\"job\":\"%s\",\"exit_code\":1}", id), "");
	else
		assert_string_equal(
			client_error(&c, "{\"op\":\"finished\",\"job\":\"%s\",\"run_s\":%g,\"accuracy\":%g}",
				     id, took_s, 1.0 - o.batch / 1000.0),
			"");
	return o;
}

static const struct model *model_of(const char *type)
{
	return l.d->setup->slot[setup_slot_of(l.d->setup, type)].model;
}

static bool bread_is_known(const struct local_daemon *at)
{
	(void)at;
	return model_of("bread") && !l.d->loader;
}

static bool cake_is_known(const struct local_daemon *at)
{
	(void)at;
	return model_of("cake") && !l.d->loader;
}

static void learn(const char *type, bool (*known)(const struct local_daemon *))
{
	for (int i = 0; i < FIRST; i++)
		whole_job(type, i % 5, 1.0);
	local_until(&l, known);
}

/* A member of what `stats` says of a type, or of its model. */
static double learnt(const char *list, const char *type, const char *key)
{
	struct json *v = client_ask(&c, "{\"op\":\"stats\"}");
	double x = NAN;

	for (const struct json *t = json_first(json_get(json_get(v, "learning"), list)); t;
	     t = json_next(t)) {
		if (!strcmp(json_string(json_get(t, "type"), ""), type))
			x = json_number(json_get(t, key), NAN);
	}
	json_free(v);
	return x;
}

static double version_of(const char *type)
{
	struct json *v = client_ask(&c, "{\"op\":\"models\"}");
	double x = NAN;

	for (const struct json *t = json_first(json_get(v, "types")); t; t = json_next(t)) {
		if (!strcmp(text_at(t, "type"), type))
			x = number_at(t, "current");
	}
	json_free(v);
	return x;
}

TEST_WITH(test_a_type_without_a_model_tries_its_batches_and_says_why_nothing_is_promised, open_it, close_one)
{
	const double wanted[] = { 16, 8, 32, 16, 8, 32 }; /* the middle first, then those least tried */

	for (size_t i = 0; i < 6; i++) {
		struct outcome o = whole_job("bread", 1, 1.0);
		char ended[64];

		assert_true(o.batch == wanted[i] || (i % 3 && fabs(o.batch - wanted[i]) == 24.0));
		assert_string_equal(o.verdict, "best_effort");
		snprintf(ended, sizeof ended, "after 12 of them, and %zu have ended", i);
		assert_non_null(strstr(o.reason, ended));
	}
	assert_string_equal(client_error(&c, "{\"op\":\"predict\",\"type\":\"bread\"}"), "no_model");
	assert_null(model_of("bread"));
}

static bool third_is_in(const struct local_daemon *at)
{
	return jobs_find(&at->d->jobs, 3)->row.verdict != VERDICT_WAITING;
}

/* Jobs that waited for another come in by the same rules: each takes the batch that is least tried, and says
 * why nothing is promised. */
TEST_WITH(test_jobs_that_waited_are_admitted_as_those_that_arrive, open_it, close_one)
{
	double batch[3];
	struct json *v;

	v = client_ask(&c, "{\"op\":\"submit\",\"type\":\"bread\",\"mode\":\"advise\"}");
	json_free(v);
	for (int i = 0; i < 2; i++) {
		v = client_ask(&c, "{\"op\":\"submit\",\"type\":\"bread\",\"mode\":\"advise\",\"after\":"
				   "\"1\",\"slo_s\":1000}");
		assert_string_equal(text_at(v, "verdict"), "waiting");
		json_free(v);
	}
	v = client_ask(&c, "{\"op\":\"started\",\"job\":\"1\"}");
	batch[0] = number_at(v, "job.batch");
	json_free(v);
	l.d->clock_offset_ns += (int64_t)50e9;
	assert_string_equal(client_error(&c, "{\"op\":\"finished\",\"job\":\"1\",\"run_s\":50}"), "");
	local_until(&l, third_is_in);
	for (int i = 1; i < 3; i++) {
		v = client_ask(&c, "{\"op\":\"status\",\"job\":\"%d\"}", i + 1);
		assert_string_equal(text_at(v, "job.verdict"), "best_effort");
		assert_non_null(strstr(text_at(v, "job.reason"), "there is no model of such jobs yet"));
		batch[i] = number_at(v, "job.batch");
		json_free(v);
	}
	assert_true(batch[0] != batch[1] && batch[1] != batch[2] && batch[0] != batch[2]);
}

/* The candidates of a job that could have any batch. */
static size_t candidates_of_bread(void)
{
	struct json *v =
		client_ask(&c, "{\"op\":\"submit\",\"type\":\"bread\",\"mode\":\"advise\",\"slo_s\":100000,"
			       "\"params\":{\"flour\":2}}");
	size_t n = json_size(json_path(v, "decision.candidates"));

	json_free(v);
	return n;
}

TEST_WITH(test_a_batch_that_jobs_only_fail_with_is_left_alone, open_it, close_one)
{
	size_t failed = 0, ended = 0;

	fails_with = 16.0;
	for (int i = 0; ended < FIRST; i++) {
		bool well = whole_job("bread", i % 5, 1.0).batch != fails_with;

		ended += well;
		failed += !well;
		assert_true(i < 2 * FIRST);
	}
	fails_with = 0.0;
	/* the first job had it, and it is tried again when the other two are known as well as by four jobs */
	assert_in_range(failed, 1, 3);
	local_until(&l, bread_is_known);
	assert_int_equal(candidates_of_bread(), 2);
}

TEST_WITH(test_two_types_get_models_by_themselves_are_promised_and_learn_apart, open_it, close_one)
{
	struct outcome o;
	struct json *v;
	char bread[64];

	learn("bread", bread_is_known);
	assert_null(model_of("cake")); /* it is another type's */
	o = whole_job("bread", 2, 1.0);
	assert_string_equal(o.verdict, "promised");
	snprintf(bread, sizeof bread, "%s", o.model);
	learn("cake", cake_is_known);
	o = whole_job("cake", 1, 1.0);
	assert_string_equal(o.verdict, "promised");
	assert_true(schema_find(model_of("cake")->schema, "oven") >= 0);
	assert_true(schema_find(model_of("cake")->schema, "flour") < 0);
	assert_true(schema_find(model_of("bread")->schema, "flour") >= 0);
	assert_string_not_equal(o.model, bread);
	assert_string_not_equal(o.model, l.d->setup->slot[0].name);

	/* the bounds of one follow its jobs, those of the other do not */
	for (int i = 0; i < 25; i++)
		whole_job("bread", i % 5, 1.6);
	assert_true(learnt("types", "bread", "bias") > 1.15);
	whole_job("cake", 0, 1.0);
	assert_true(fabs(learnt("types", "cake", "bias") - 1.0) < 0.12);
	assert_true(learnt("models", "bread", "since_training") == 26.0);
	assert_true(learnt("models", "cake", "since_training") == 2.0);

	v = client_ask(&c, "{\"op\":\"hello\"}");
	assert_int_equal(json_size(json_get(v, "types")), 4);
	for (const struct json *t = json_first(json_get(v, "types")); t; t = json_next(t)) {
		bool own = !strcmp(text_at(t, "name"), "bread") || !strcmp(text_at(t, "name"), "cake");

		assert_int_equal(json_type(json_get(t, "own_model")), own ? JSON_OBJECT : JSON_ABSENT);
	}
	json_free(v);
}

TEST_WITH(test_versions_of_types_survive_a_restart_and_are_rolled_back_apart, open_it, close_one)
{
	struct stat st;
	char path[200];

	learn("bread", bread_is_known);
	learn("cake", cake_is_known);
	snprintf(path, sizeof path, "%s/models/type-cake/0001.model", l.state);
	assert_int_equal(stat(path, &st), 0);
	assert_true(version_of("bread") == 1.0 && version_of("cake") == 1.0);
	client_close(&c);
	local_restart(&l);
	client_open(&c, &l);
	assert_non_null(model_of("bread"));
	assert_non_null(model_of("cake"));
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"version\":1}"),
			    "bad_field"); /* of which? */
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"type\":\"advised\",\"version\":0}"),
			    "bad_field");
	assert_string_equal(client_error(&c, "{\"op\":\"retrain\",\"type\":\"pie\"}"), "bad_field");
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"type\":\"cake\",\"version\":0}"), "");
	assert_null(model_of("cake"));
	assert_non_null(model_of("bread"));
	assert_string_equal(whole_job("bread", 1, 1.0).verdict, "promised");
	assert_string_equal(whole_job("cake", 1, 1.0).verdict, "best_effort");
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"type\":\"cake\",\"version\":1}"), "");
	assert_string_equal(whole_job("cake", 1, 1.0).verdict, "promised");
}

static bool reloaded_twice(const struct local_daemon *at)
{
	(void)at;
	return l.d->tally.reloads[0] >= 2 && !l.d->loader;
}

/* A type that comes with a reload shifts the numbers of the others; one that comes again has its version. */
TEST_WITH(test_types_come_and_go_with_reloads, open_it, close_one)
{
	double bias;

	learn("cake", cake_is_known);
	for (int i = 0; i < 25; i++)
		whole_job("cake", i % 2, 1.6);
	bias = learnt("types", "cake", "bias");
	assert_true(bias > 1.15);
	l.types = TYPES ",\"apple\":{\"batches\":[1,2],\"first_after\":5}";
	local_write_config(&l);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	assert_string_equal(whole_job("cake", 1, 1.6).verdict, "promised");
	assert_true(learnt("types", "cake", "bias") >
		    1.15); /* its model is the same: what was learnt holds */
	l.types = "";
	local_write_config(&l);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	assert_true(isnan(version_of("cake")));
	l.types = TYPES;
	local_write_config(&l);
	l.d->tally.reloads[0] = 0;
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	local_until(&l, reloaded_twice); /* the second brings its version */
	assert_true(version_of("cake") == 1.0);
	assert_string_equal(whole_job("cake", 1, 1.6).verdict, "promised");
}

static bool pie_is_known(const struct local_daemon *at)
{
	(void)at;
	return model_of("pie") && !l.d->loader && !learning_training(l.d->learning);
}

/* A limit of twice the first run's time is promised from the second run on; batches that were never tried are
 * tried where even they can be promised. */
TEST_WITH(test_a_young_type_is_promised_from_its_second_run_on, open_it, close_one)
{
	static const double noise[] = { 1.0, 1.06, 0.93, 1.1, 0.97, 1.04 };
	double tight_s = 2.0 * run_s("bread", 16, 3);
	struct outcome o;
	unsigned tried = 0;

	l.types = TYPES ",\"pie\":{\"batches\":[8,16,32],\"first_after\":1,\"params\":{\"flour\":"
			"{\"kind\":\"integer\",\"min\":1,\"max\":5,\"default\":3}}}";
	local_write_config(&l);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	limit_s = tight_s;
	o = whole_job("pie", 2, 1.0);
	assert_string_equal(o.verdict, "best_effort");
	assert_true(o.batch == 16.0);
	for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
		local_until(&l, pie_is_known);
		o = whole_job("pie", 2, noise[i]);
		assert_string_equal(o.verdict, "promised");
		assert_true(noise[i] * run_s("bread", o.batch, 3) <= limit_s);
		tried |= (unsigned)o.batch;
	}
	limit_s = 100000;
	for (int i = 0; i < 3; i++) {
		local_until(&l, pie_is_known);
		tried |= (unsigned)whole_job("pie", 2, 1.0).batch;
	}
	assert_true(tried == (8 | 16 | 32));
	assert_true(learnt("models", "pie", "retrain_after") == 1.0);
}

TEST_WITH(test_a_daemon_whose_types_all_have_models_needs_no_other, open_it, close_one)
{
	struct err err = { 0 };

	client_close(&c);
	local_stop(&l);
	l.model = NULL;
	l.settings = "\"policy\":\"postrider\",";
	local_write_config(&l); /* "advised" has none */
	assert_int_equal(local_try_start(&l, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "model"));
	l.settings = "\"policy\":\"fixed:128\",";
	local_start(&l);
	client_open(&c, &l);
}

/* Somebody measured the job and put a model where the configuration names one: it is meant to be used. */
TEST_WITH(test_a_model_that_came_after_a_version_is_used_by_a_reload, open_it, close_one)
{
	char types[1024], named[160], version[200], *text = NULL;
	size_t len;

	client_close(&c);
	local_stop(&l);
	snprintf(named, sizeof named, "%s/bread.model", l.dir);
	snprintf(
		types, sizeof types,
		",\"bread\":{\"batches\":[8,16,32],\"model\":\"%s\",\"first_after\":12,\"params\":{\"flour\":"
		"{\"kind\":\"integer\",\"min\":1,\"max\":5,\"default\":3}}}",
		named);
	l.types = types;
	local_start(&l); /* the file is not there yet */
	client_open(&c, &l);
	learn("bread", bread_is_known);
	assert_true(version_of("bread") == 1.0);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	assert_true(version_of("bread") == 1.0);
	snprintf(version, sizeof version, "%s/models/type-bread/0001.model", l.state);
	assert_int_equal(io_read_file(version, 1 << 24, &text, &len, NULL), 0);
	usleep(20000); /* the kernel's times of files lag behind the clock by some milliseconds */
	assert_int_equal(io_write_file(named, text, len, NULL), 0);
	free(text);
	assert_string_equal(client_error(&c, "{\"op\":\"reload\"}"), "");
	assert_true(version_of("bread") == 0.0);
	assert_string_equal(l.d->setup->slot[setup_slot_of(l.d->setup, "bread")].path, named);
	assert_string_equal(whole_job("bread", 1, 1.0).verdict, "promised");
	assert_string_equal(client_error(&c, "{\"op\":\"rollback\",\"type\":\"bread\",\"version\":1}"), "");
	assert_true(version_of("bread") == 1.0);
}
