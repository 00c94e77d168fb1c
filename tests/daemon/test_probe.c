/* A whole daemon that meets a context its model was never trained on: networks and kinds of GPU of which one
 * pair is missing in the table. The jobs are real processes that sleep by a law of ours, in which the missing
 * pair takes twice what the others make one believe. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/io.h"
#include "common/json/json.h"
#include "common/rng.h"
#include "common/strbuf.h"
#include "tests/daemon/harness.h"
#include "tests/support/test.h"

#define SURPRISE 2.0
#define HEAD                                                                                                 \
	"network,gpu,cpus,njobs,batch,epochs,time_s,accuracy,other_load,cpu_mean,job_cpu_mean,max_rss_mb,"   \
	"replication,copy,status,started_at\n"
/* 0.1 s x epochs x network / GPU x (1 + 64 / batch) */
#define TYPES                                                                                                \
	",\"trains\":{\"probe\":\"%s\",\"batches\":[64,128,256],\"params\":{"                                \
	"\"network\":{\"kind\":\"word\",\"required\":true},\"gpu\":{\"kind\":\"word\",\"required\":true},"   \
	"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":20,\"default\":8}},\"epochs_param\":\"epochs\"," \
	"\"argv\":[\"/bin/sh\",\"-c\",\"n=$(echo $0 | tr -d n); g=$(echo $1 | tr -d g); f=1; test $n$g = "   \
	"33 && f=2; exec sleep $(awk "                                                                       \
	"-v n=$n -v g=$g -v f=$f -v b=$2 -v e=$3 'BEGIN {{ print 0.1 * e * n / g * f * (1 + 64 / b) }')\","  \
	"\"{network}\",\"{gpu}\",\"{batch}\",\"{epochs}\"]}"
#define JOB ",\"type\":\"trains\",\"params\":{\"network\":\"n3\",\"gpu\":\"g%d\"},\"slo_s\":%g"

static struct fixture fixture;
static struct talk *t;

static double law_s(int n, int g, double batch, double epochs)
{
	return 0.1 * epochs * n / g * (1.0 + 64.0 / batch);
}

/* Every pair but one, which networks suit by a factor of their own; or two pairs only, too few to say how
 * much of an error all jobs of a pair share. */
static bool is_measured(int n, int g, bool few)
{
	return few ? n + g == 4 && n != g : n + g < 6;
}

static void make_model(const char *table, bool few)
{
	const char *train[] = { program("postrider"), "train", table, "--model", "gp", "-q", "-o",
				fixture.model,        NULL };
	struct rng rng = rng_stream(20261117, 1);
	struct strbuf b = { 0 };
	struct err err = { 0 };

	strbuf_puts(&b, HEAD);
	for (int n = 1; n <= 3; n++)
		for (int g = 1; g <= 3; g++) {
			double suits = exp(0.3 * rng_normal(&rng));

			for (int k = 0; k < 12 && is_measured(n, g, few); k++)
				strbuf_printf(&b, "n%d,g%d,1,1,%d,%d,%.6f,0.8,0,,,,1,1,ok,\n", n, g,
					      64 << k % 3, 1 + k / 3 * 3,
					      law_s(n, g, 64 << k % 3, 1 + k / 3 * 3) * suits *
						      exp(0.03 * rng_normal(&rng)));
		}
	if (b.failed || io_write_file(table, b.text, b.len, &err))
		die("%s: %s", table, err.text);
	strbuf_release(&b);
	if (run_program(train, NULL))
		die("no model of %s", table);
}

static void begin_with(const char *probe, bool few)
{
	static char types[1600];
	char table[160];

	fixture_open(&fixture);
	snprintf(fixture.model, sizeof fixture.model, "%s/runs.model", fixture.dir);
	snprintf(table, sizeof table, "%s/runs.csv", fixture.dir);
	make_model(table, few);
	snprintf(types, sizeof types, TYPES, probe);
	fixture_configure(&fixture, "\"slots\":2,", types);
	fixture_start(&fixture);
	t = talk_open(&fixture);
}

static void begin(const char *probe)
{
	begin_with(probe, false);
}

static int close_one(void **state)
{
	(void)state;
	talk_close(t);
	if (fixture.pid)
		assert_int_equal(fixture_stop(&fixture, SIGTERM), 0);
	fixture_close(&fixture);
	return 0;
}

struct belief { /* about a job of 8 epochs with batch 128 */
	double time_s, upper_s;
};

static struct belief belief(int gpu)
{
	struct json *v = talk_ask(t, "{\"op\":\"predict\",\"batches\":[128]" JOB "}", gpu, 100.0);
	const struct json *c = json_first(json_path(v, "decision.candidates"));
	struct belief b = { number_at(c, "time_s"), number_at(c, "upper_s") };

	assert_true(b.time_s > 0.0 && b.upper_s > b.time_s);
	json_free(v);
	return b;
}

static double width(struct belief b)
{
	return log(b.upper_s / b.time_s);
}

TEST_WITH(test_a_probe_tells_the_level_of_a_new_context, NULL, close_one)
{
	struct belief before, after, other, again;
	double truth = SURPRISE * law_s(3, 3, 128, 8);
	struct json *v;

	(void)state;
	begin("auto");
	before = belief(3);
	other = belief(2);
	/* rejected, and found out about all the same */
	v = talk_ask(t, "{\"op\":\"submit\"" JOB "}", 3, 0.4);
	assert_string_equal(text_at(v, "verdict"), "rejected");
	assert_string_equal(text_at(v, "probe"), "2");
	json_free(v);
	v = talk_ask(t, "{\"op\":\"submit\"" JOB "}", 3, 0.4); /* one is enough */
	assert_string_equal(text_at(v, "probe"), "");
	json_free(v);
	v = talk_ask(t, "{\"op\":\"submit\"" JOB "}", 2, 0.4); /* a context that is known */
	assert_string_equal(text_at(v, "probe"), "");
	json_free(v);
	v = await(t, 2, "done");
	assert_string_equal(text_at(v, "job.verdict"), "best_effort");
	assert_string_equal(text_at(v, "job.tag"), "probe");
	assert_true(number_at(v, "job.batch") == 128.0);
	assert_true(number_at(v, "job.params.epochs") == 1.0);
	json_free(v);
	assert_true(stat_of(t, "learning.probes") == 1.0);
	after = belief(3);
	/* nearer to the truth, and surer of it */
	assert_true(fabs(log(after.time_s / truth)) < 0.7 * fabs(log(before.time_s / truth)));
	assert_true(width(after) < 0.85 * width(before));
	assert_true(after.upper_s > truth);
	/* what others know stays */
	again = belief(2);
	assert_true(again.time_s == other.time_s && again.upper_s <= other.upper_s);
	/* a restart forgets nothing */
	talk_close(t);
	assert_int_equal(fixture_stop(&fixture, SIGKILL), -SIGKILL);
	fixture_start(&fixture);
	t = talk_open(&fixture);
	again = belief(3);
	assert_true(fabs(log(again.time_s / after.time_s)) < 1e-9);
	v = talk_ask(t, "{\"op\":\"submit\"" JOB "}", 3, 0.4);
	assert_string_equal(text_at(v, "probe"), "");
	json_free(v);
}

/* A small table has one family or two. The first runs of another one are then all there is to learn from. */
TEST_WITH(test_a_table_of_two_contexts_learns_of_a_third_from_its_first_run, NULL, close_one)
{
	double truth = SURPRISE * law_s(3, 3, 128, 8);
	struct belief before, after;
	struct json *v;

	(void)state;
	begin_with("auto", true);
	before = belief(3);
	v = talk_ask(t, "{\"op\":\"submit\"" JOB "}", 3, 0.4);
	assert_string_equal(text_at(v, "probe"), "2");
	json_free(v);
	json_free(await(t, 2, "done"));
	after = belief(3);
	assert_true(fabs(log(after.time_s / truth)) < 0.5 * fabs(log(before.time_s / truth)));
	assert_true(after.upper_s > truth);
}

TEST_WITH(test_no_probe_unless_the_type_allows_it, NULL, close_one)
{
	struct json *v;

	(void)state;
	begin("default");
	v = talk_ask(t, "{\"op\":\"submit\"" JOB "}", 3, 0.4);
	assert_string_equal(text_at(v, "verdict"), "rejected");
	assert_string_equal(text_at(v, "probe"), "");
	json_free(v);
	assert_true(stat_of(t, "learning.probes") == 0.0);
	await_idle(t, PATIENCE_S);
}
