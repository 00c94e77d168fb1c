/* A whole daemon that learns. Its jobs are advised ones that say how long they ran, by a law of ours: so the
 * model is right, wrong by a factor, or becomes wrong, as a case wants it. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/json/json.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "tests/daemon/harness.h"
#include "tests/support/test.h"

#define STUDY_PARAMS                                                                                         \
	"{\"batches\":[64,128,256,512],\"params\":{\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},"  \
	"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":20,\"default\":2},"                              \
	"\"samples\":{\"kind\":\"integer\",\"min\":1,\"default\":12000}}}"
#define TYPES ",\"study\":" STUDY_PARAMS ",\"fresh\":" STUDY_PARAMS
#define LEARNING(after)                                                                                      \
	"\"slots\":2,\"durability\":\"none\",\"learning\":{\"retrain_after\":" after                         \
	",\"min_observations\":20,\"test_jobs\":30,\"table\":\"%s\"},"
#define NOISE 0.04
#define TRAINING_S (8.0 * PATIENCE_S) /* it has the lowest priority; what passes does not wait */

struct job_kind {
	const char *network;
	double batch, epochs;
};

static struct fixture school, fixture; /* where the model comes from; the daemon at hand */
static struct talk *t;
static struct rng rng;
static char table[160];

/* The first element of a list. */
static const struct json *first_of(const struct json *v, const char *path)
{
	return json_first(json_path(v, path));
}

/* ---- the law ---- */

static double law_s(const struct job_kind *k)
{
	double steps = k->epochs * 12000.0 / k->batch;
	double per_record = !strcmp(k->network, "lenet5")      ? 4e-7
			    : !strcmp(k->network, "simplenet") ? 1e-7
							       : 9e-7;

	return 0.5 * (0.006 + steps * (4e-5 + per_record * k->batch));
}

static double noise(void)
{
	return exp(NOISE * rng_normal(&rng));
}

static struct job_kind any_kind(void)
{
	static const double batch[] = { 64, 128, 256, 512 };

	return (struct job_kind){ rng_below(&rng, 2) ? "lenet5" : "simplenet", batch[rng_below(&rng, 4)],
				  2.0 + (double)rng_below(&rng, 3) };
}

/* mixed: with a few runs of type study beside one of type fresh, which took half as long again. */
static void make_model(const char *csv, const char *model, bool mixed)
{
	const char *train[] = { program("postrider"), "train", csv,   "--model", "hybrid", "--set",
				"trees=20",           "-o",    model, NULL };
	struct strbuf b = { 0 };
	struct err err = { 0 };

	strbuf_puts(&b, "network,cpus,njobs,batch,epochs,samples,time_s,accuracy,beside\n");
	for (int i = 0; i < 4 && mixed; i++) {
		struct job_kind k = { "lenet5", 64 << i, 4 };

		strbuf_printf(&b, "lenet5,1,2,%g,4,12000,%.6f,0.9,fresh network=lenet5\n", k.batch,
			      1.5 * law_s(&k) * noise());
	}
	for (int i = 0; i < 480; i++) { /* so many that another sixty jobs make no better model */
		struct job_kind k = any_kind();

		strbuf_printf(&b, "%s,1,%d,%g,%g,12000,%.6f,%.4f,\n", k.network, 1 + i % 2, k.batch, k.epochs,
			      law_s(&k) * noise(), 0.95 - 3e-4 * k.batch + 0.01 * k.epochs);
	}
	if (b.failed || io_write_file(csv, b.text, b.len, &err))
		die("%s: %s", csv, err.text);
	if (run_program(train, NULL))
		die("no model of %s", csv);
	strbuf_release(&b);
}

/* ---- jobs ---- */

/* Submits one; NULL members: none. The reply is to be freed. */
static struct json *offer(const char *type, const struct job_kind *k, const char *members)
{
	return talk_ask(t,
			"{\"op\":\"submit\",\"mode\":\"advise\",\"type\":\"%s\",\"batches\":[%g],\"params\":{"
			"\"network\":"
			"\"%s\",\"epochs\":%g}%s}",
			type, k->batch, k->network, k->epochs, members);
}

/* Runs a job that was offered, for as long as it says. */
static void run_offered(struct json *reply, double run_s)
{
	unsigned long long id = strtoull(text_at(reply, "job.job"), NULL, 10);
	double began;
	struct json *v;

	if (!is_ok(reply))
		die("refused: %s", error_of(reply));
	json_free(reply);
	v = talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", id);
	assert_true(is_ok(v));
	json_free(v);
	began = now_s();
	if (began + run_s > now_s())
		sleep_s(began + run_s - now_s());
	v = talk_ask(t, "{\"op\":\"finished\",\"job\":\"%llu\",\"accuracy\":0.9,\"run_s\":%.6f}", id, run_s);
	if (!is_ok(v))
		die("%s", text_at(v, "error.message"));
	json_free(v);
}

/* n jobs of all kinds, `speed` times as long as the law says. */
static void run_jobs(size_t n, double speed)
{
	for (size_t i = 0; i < n; i++) {
		struct job_kind k = any_kind();

		run_offered(offer("study", &k, ""), speed * law_s(&k) * noise());
	}
}

static unsigned long long begin(const char *type, const struct job_kind *k)
{
	struct json *reply = offer(type, k, ""), *v;
	unsigned long long id = strtoull(text_at(reply, "job.job"), NULL, 10);

	if (!is_ok(reply))
		die("refused: %s", error_of(reply));
	json_free(reply);
	v = talk_ask(t, "{\"op\":\"started\",\"job\":\"%llu\"}", id);
	assert_true(is_ok(v));
	json_free(v);
	return id;
}

static void finish(unsigned long long id)
{
	struct json *v = talk_ask(t, "{\"op\":\"finished\",\"job\":\"%llu\",\"accuracy\":0.9}", id);

	assert_true(is_ok(v));
	json_free(v);
}

/* n jobs, every second of them beside a job of another type, which makes it take half as long again. */
static void run_beside(size_t n, const struct job_kind *k)
{
	for (size_t i = 0; i < n; i++) {
		unsigned long long loud = i % 2 ? begin("fresh", k) : 0, quiet = begin("study", k);

		sleep_s((loud ? 1.5 : 1.0) * law_s(k));
		finish(quiet);
		if (loud)
			finish(loud);
	}
}

static double predicted_s(const struct job_kind *k)
{
	struct json *v = talk_ask(
		t,
		"{\"op\":\"predict\",\"type\":\"study\",\"batches\":[%g],\"params\":{\"network\":\"%s\","
		"\"epochs\":%g}}",
		k->batch, k->network, k->epochs);
	double s = number_at(first_of(v, "decision.candidates"), "time_s");

	json_free(v);
	return s;
}

/* ---- the daemon ---- */

static void open_with_model(const char *model, const char *settings)
{
	char text[600];

	rng = rng_stream(20261116, 7);
	fixture_open(&fixture);
	snprintf(fixture.model, sizeof fixture.model, "%s", model);
	snprintf(text, sizeof text, settings, table);
	fixture_configure(&fixture, text, TYPES);
	fixture_start(&fixture);
	t = talk_open(&fixture);
}

static void open_with(const char *settings)
{
	open_with_model(school.model, settings);
}

static int open_plain(void **state)
{
	(void)state;
	open_with(LEARNING("0"));
	return 0;
}

static int open_eager(void **state)
{
	(void)state;
	open_with(LEARNING("70"));
	return 0;
}

/* From its own jobs alone. */
static int open_own(void **state)
{
	(void)state;
	open_with("\"slots\":2,\"durability\":\"none\",\"learning\":{\"retrain_after\":0,\"min_"
		  "observations\":20,"
		  "\"test_jobs\":30},");
	return 0;
}

/* Times do not depend on what others do on this machine. */
static int open_quiet(void **state)
{
	(void)state;
	open_with("\"outside_load\":false," LEARNING("0"));
	return 0;
}

static int open_mixed(void **state)
{
	char csv[160], model[sizeof school.model];

	(void)state;
	snprintf(csv, sizeof csv, "%s/mixed.csv", school.dir);
	snprintf(model, sizeof model, "%s/mixed.model", school.dir);
	make_model(csv, model, true);
	open_with_model(model, "\"outside_load\":false," LEARNING("0"));
	return 0;
}

static int open_rigid(void **state)
{
	(void)state;
	open_with("\"slots\":2,\"durability\":\"none\",\"learning\":{\"adapt\":false,\"retrain_after\":0,"
		  "\"min_observations\":20,\"table\":\"%s\"},");
	return 0;
}

static int close_one(void **state)
{
	(void)state;
	talk_close(t);
	if (fixture.pid) /* also tells of a leak, where a sanitizer looks for them */
		assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	fixture_close(&fixture);
	return 0;
}

static bool training(void)
{
	struct json *v = talk_ask(t, "{\"op\":\"models\"}");
	bool under_way = json_bool(json_get(v, "training"), true);

	json_free(v);
	return under_way;
}

static bool reloads(void)
{
	struct json *v = talk_ask(t, "{\"op\":\"reload\"}");
	bool done = is_ok(v);

	json_free(v);
	return done;
}

/* Until no training is under way, and the model it gave is in use: a reload is refused while another one goes
 * on. */
static void await_training(void)
{
	double until = now_s() + TRAINING_S;

	while (training() || !reloads()) {
		if (now_s() > until)
			die("the training, or putting its model to use, does not end");
		sleep_s(0.05);
	}
}

static void retrain(void)
{
	struct json *v = talk_ask(t, "{\"op\":\"retrain\"}");

	if (!json_bool(json_get(v, "retraining"), false))
		die("no training: %s", text_at(v, "error.message"));
	json_free(v);
	await_training();
}

static double current(void)
{
	struct json *v = talk_ask(t, "{\"op\":\"models\"}");
	double n = number_at(v, "current");

	json_free(v);
	return n;
}

/* ---- cases ---- */

TEST_WITH(test_a_model_wrong_by_half_is_replaced_and_can_be_had_back, open_own, close_one)
{
	const struct job_kind k = { "lenet5", 128, 3 };
	struct json *v;
	double before;

	run_jobs(70, 2.0);
	/* Bounds and times follow already: the last jobs said so. */
	before = predicted_s(&k);
	assert_true(before > 1.6 * law_s(&k) && before < 2.4 * law_s(&k));
	retrain();
	v = talk_ask(t, "{\"op\":\"models\"}");
	assert_true(number_at(v, "current") == 1.0);
	assert_true(number_at(first_of(v, "models"), "version") == 1.0);
	assert_true(json_bool(json_get(first_of(v, "models"), "accepted"), false));
	assert_true(json_bool(json_get(first_of(v, "models"), "kept"), false));
	assert_true(number_at(first_of(v, "models"), "new_error") <
		    number_at(first_of(v, "models"), "old_error"));
	assert_true(number_at(first_of(v, "models"), "observations") == 70.0);
	assert_string_equal(text_at(first_of(v, "models"), "reason"), "asked for");
	json_free(v);
	assert_true(fixture_logged(&fixture, ": taken"));
	assert_true(predicted_s(&k) > 1.5 * law_s(&k)); /* the model itself: nothing was learned since */

	v = talk_ask(t, "{\"op\":\"rollback\",\"version\":0}");
	assert_true(json_bool(json_get(v, "reloaded"), false));
	json_free(v);
	assert_true(current() == 0.0);
	assert_true(predicted_s(&k) < 1.4 * law_s(&k));
	v = talk_ask(t, "{\"op\":\"rollback\",\"version\":1}");
	assert_true(json_bool(json_get(v, "reloaded"), false));
	json_free(v);
	assert_true(current() == 1.0);

	talk_close(t);
	assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	fixture_start(&fixture);
	t = talk_open(&fixture);
	assert_true(current() == 1.0);
	assert_true(predicted_s(&k) > 1.5 * law_s(&k));
}

TEST_WITH(test_what_neighbours_do_to_a_job_is_known_after_a_kill, open_quiet, close_one)
{
	const struct job_kind k = { "lenet5", 64, 20 };
	unsigned long long loud;
	double before, alone;

	run_beside(40, &k);
	alone = predicted_s(&k);
	loud = begin("fresh", &k);
	before = predicted_s(&k);
	finish(loud);
	assert_true(before > 1.15 * alone);
	talk_close(t);
	assert_int_equal(fixture_stop(&fixture, SIGKILL), -SIGKILL);
	fixture_start(&fixture);
	t = talk_open(&fixture);
	loud = begin("fresh", &k);
	assert_true(fabs(predicted_s(&k) / before - 1.0) < 0.03);
	finish(loud);
}

TEST_WITH(test_what_neighbours_do_to_a_job_is_known_from_the_table, open_mixed, close_one)
{
	const struct job_kind k = { "lenet5", 64, 20 };
	double alone = predicted_s(&k), beside;
	unsigned long long loud = begin("fresh", &k);

	beside = predicted_s(&k);
	finish(loud);
	assert_true(beside > 1.15 * alone);
}

TEST_WITH(test_rollbacks_to_nowhere_are_refused, open_plain, close_one)
{
	static const char *const bad[] = { "7", "-1", "1.5", "\"x\"", "null", "1e12" };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct json *v = talk_ask(t, "{\"op\":\"rollback\",\"version\":%s}", bad[i]);

		assert_string_equal(error_of(v), "bad_field");
		json_free(v);
	}
	assert_true(current() == 0.0);
}

TEST_WITH(test_a_model_that_is_right_stays, open_plain, close_one)
{
	struct json *v;

	run_jobs(60, 1.0);
	retrain();
	v = talk_ask(t, "{\"op\":\"models\"}");
	assert_true(number_at(v, "current") == 0.0);
	assert_int_equal(json_size(json_get(v, "models")), 1);
	assert_false(json_bool(json_get(first_of(v, "models"), "accepted"), true));
	assert_non_null(strstr(text_at(first_of(v, "models"), "message"), "not taken"));
	json_free(v);
	v = talk_ask(t, "{\"op\":\"stats\"}");
	assert_non_null(strstr(text_at(v, "learning.last"), "not taken"));
	assert_true(number_at(v, "learning.since_training") == 0.0);
	/* Shares of what was within its bound, by confidence. */
	assert_true(number_at(first_of(v, "learning.kept"), "confidence") == 0.9);
	assert_true(number_at(first_of(v, "learning.kept"), "n") == 60.0);
	assert_true(number_at(first_of(v, "learning.kept"), "share") > 0.7);
	assert_true(number_at(first_of(v, "learning.types"), "observed") == 60.0);
	assert_true(fabs(number_at(first_of(v, "learning.types"), "bias") - 1.0) < 0.15);
	assert_true(number_at(v, "learning.alarms") == 0.0);
	json_free(v);
}

TEST_WITH(test_training_on_nothing_says_what_is_missing, open_plain, close_one)
{
	struct json *v;

	retrain();
	v = talk_ask(t, "{\"op\":\"stats\"}");
	assert_non_null(strstr(text_at(v, "learning.last"), "too few"));
	json_free(v);
	assert_true(current() == 0.0);
}

TEST_WITH(test_training_begins_by_itself_and_those_who_watch_are_told, open_eager, close_one)
{
	struct talk *w = talk_open(&fixture);
	double until = now_s() + TRAINING_S;
	bool told = false;

	json_free(talk_ask(w, "{\"op\":\"watch\"}"));
	run_jobs(70, 2.0);
	while (!told && now_s() < until) {
		struct json *v = talk_hear_json(w, PATIENCE_S);

		told = v && !strcmp(text_at(v, "event"), "retrained");
		json_free(v);
	}
	assert_true(told);
	await_training();
	assert_true(current() == 1.0);
	assert_true(fixture_logged(&fixture, "training (70 jobs)"));
	talk_close(w);
}

TEST_WITH(test_times_that_become_longer_raise_an_alarm_once, open_plain, close_one)
{
	size_t drifts = 0;
	struct json *v;

	run_jobs(25, 1.0);
	assert_true(stat_of(t, "learning.alarms") == 0.0);
	run_jobs(40, 1.4);
	v = talk_ask(t, "{\"op\":\"stats\"}");
	assert_true(json_bool(json_get(json_get(json_get(v, "learning"), "drift"), "alarm"), false));
	assert_true(json_bool(json_get(json_get(json_get(v, "learning"), "drift"), "slower"), false));
	assert_true(number_at(v, "learning.drift.shift_percent") > 15.0);
	assert_true(number_at(first_of(v, "learning.types"), "bias") > 1.2); /* and decisions follow */
	drifts = (size_t)number_at(v, "learning.alarms");
	assert_true(drifts >= 1 && drifts <= 2); /* of the type, and of all jobs */
	json_free(v);
	assert_true(fixture_logged(&fixture, " % longer than the model says"));

	/* A restart learns it again from what is kept, quietly. */
	talk_close(t);
	assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	fixture_start(&fixture);
	t = talk_open(&fixture);
	v = talk_ask(t, "{\"op\":\"stats\"}");
	assert_true(json_bool(json_get(json_get(json_get(v, "learning"), "drift"), "alarm"), false));
	assert_true(number_at(first_of(v, "learning.types"), "bias") > 1.2);
	assert_true(number_at(v, "learning.alarms") == 0.0);
	assert_true(number_at(first_of(v, "learning.kept"), "n") == 65.0);
	assert_true(number_at(v, "learning.since_training") == 65.0);
	json_free(v);
}

TEST_WITH(test_drift_is_told_to_those_who_watch, open_plain, close_one)
{
	struct talk *w = talk_open(&fixture);
	bool told = false;

	json_free(talk_ask(w, "{\"op\":\"watch\"}"));
	run_jobs(40, 1.5);
	for (struct json *v; !told && (v = talk_hear_json(w, 2.0)) != NULL;) {
		told = !strcmp(text_at(v, "event"), "drift");
		json_free(v);
	}
	assert_true(told);
	talk_close(w);
}

TEST_WITH(test_a_new_kind_of_job_runs_without_a_promise_until_it_is_known, open_plain, close_one)
{
	const struct job_kind k = { "resnet", 128, 2 };
	struct json *v;

	for (int i = 0; i < 9; i++) {
		v = offer("fresh", &k, ",\"slo_s\":900");
		assert_string_equal(text_at(v, "verdict"), "best_effort");
		assert_non_null(strstr(text_at(v, "job.reason"), "never seen network 'resnet'"));
		run_offered(v, law_s(&k) * noise());
	}
	v = offer("fresh", &k, ",\"slo_s\":900"); /* bounds can be computed now */
	assert_string_equal(text_at(v, "verdict"), "promised");
	run_offered(v, law_s(&k) * noise());
}

/* What the model believes is all there is: the batch that is likeliest to be in time, and not the slowest. */
TEST_WITH(test_a_new_kind_of_job_takes_a_batch_that_may_be_in_time, open_plain, close_one)
{
	const struct job_kind slow = { "lenet5", 64, 4 }, fast = { "lenet5", 512, 4 };
	struct json *v = talk_ask(t,
				  "{\"op\":\"submit\",\"mode\":\"advise\",\"type\":\"fresh\",\"batches\":"
				  "[64,512],\"params\":{\"network\":\"resnet\",\"epochs\":4},\"slo_s\":%g}",
				  0.5 * (law_s(&slow) + law_s(&fast)));

	assert_string_equal(text_at(v, "verdict"), "best_effort");
	assert_true(number_at(v, "job.batch") == 512.0);
	json_free(v);
	v = talk_ask(t, "{\"op\":\"submit\",\"mode\":\"advise\",\"type\":\"fresh\",\"batches\":[64,512],"
			"\"params\":{\"network\":\"resnet\",\"epochs\":4}}"); /* no limit */
	assert_true(number_at(v, "job.batch") == 64.0);
	json_free(v);
}

TEST_WITH(test_a_stranger_among_known_jobs_waits_for_a_training, open_plain, close_one)
{
	const struct job_kind strange = { "resnet", 128, 2 }, known = { "lenet5", 128, 2 };
	struct json *v;

	v = offer("study", &known, ",\"slo_s\":900");
	assert_string_equal(text_at(v, "verdict"), "promised");
	run_offered(v, law_s(&known));
	for (int i = 0; i < 40; i++) {
		v = offer("study", &strange, ",\"slo_s\":900");
		assert_string_equal(text_at(v, "verdict"), "best_effort");
		run_offered(v, 3.0 * law_s(&strange) * noise());
	}
	retrain();
	assert_true(current() == 1.0);
	v = offer("study", &strange, ",\"slo_s\":900");
	assert_string_equal(text_at(v, "verdict"), "promised");
	json_free(v);
}

TEST_WITH(test_without_adaptation_nothing_follows, open_rigid, close_one)
{
	const struct job_kind k = { "lenet5", 128, 3 };
	double before = predicted_s(&k);
	struct json *v;

	run_jobs(25, 1.6);
	assert_true(fabs(predicted_s(&k) / before - 1.0) < 0.05);
	v = talk_ask(t, "{\"op\":\"stats\"}");
	assert_true(number_at(first_of(v, "learning.kept"), "share") < 0.5);
	json_free(v);
}

TEST_WITH(test_the_daemon_leaves_in_the_middle_of_a_training, open_plain, close_one)
{
	run_jobs(40, 2.0);
	json_free(talk_ask(t, "{\"op\":\"retrain\"}"));
	assert_true(training());
	sleep_s(0.2);
	assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	fixture_start(&fixture);
	talk_close(t);
	t = talk_open(&fixture);
	assert_false(training());
	assert_true(current() <= 1.0); /* all of it, or nothing */
}

static int train_first(void **state)
{
	(void)state;
	rng = rng_stream(20261116, 1);
	fixture_open(&school);
	snprintf(table, sizeof table, "%s/runs.csv", school.dir);
	snprintf(school.model, sizeof school.model, "%s/runs.model", school.dir);
	make_model(table, school.model, false);
	return 0;
}

TEST_GROUP(train_first, NULL);
