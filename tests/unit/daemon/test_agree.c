/* One question, one answer: in random states of 1 to 50 jobs `predict`, `submit` with dry_run, `submit` and
 * `explain` say the same of a job at the same moment, to the last digit: verdict, every candidate with its
 * bound, chance and reasons, the price, the offer. A replay of the records then says it of every job.
 *
 * The daemon's clock is held, so it is the same moment. Jobs are advised: their owner starts and ends them,
 * and no process runs. AGREE_STATES in the environment asks for more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/rng.h"
#include "scheduler/daemon/admission.h"
#include "scheduler/daemon/learn/learning_internal.h"
#include "scheduler/daemon/verify/verify.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

#define STATES 25
#define TYPES                                                                                                \
	",\"net\":{\"batches\":[64,128,256,512],\"cpus\":{\"min\":1,\"max\":3,\"default\":1},"               \
	"\"params\":{\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},"                                \
	"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":20,\"default\":2},"                              \
	"\"samples\":{\"kind\":\"integer\",\"min\":1,\"default\":12000}}}"
#define MAX_TEXT 32768

static struct rng rng;
static int64_t now_ns;
static unsigned n_verdict[8], n_asked, n_shaped, n_replayed;

static bool chance(double p)
{
	return rng_uniform(&rng) < p;
}

static double between(double least, double most) /* uniform in the logarithm */
{
	return least * exp(rng_uniform(&rng) * log(most / least));
}

static bool quiet(const struct local_daemon *at)
{
	return !at->d->dirty && !store_pending(at->d->store);
}

/* What was said has been done. */
static void settle(void)
{
	do
		local_run(&l, 0.0);
	while (!quiet(&l));
}

/* ---- a job as a user may ask for it ---- */

static void add(char *text, const char *fmt, double v)
{
	size_t len = strlen(text);

	snprintf(text + len, 1000 - len, fmt, v);
}

static void draw_question(char *text)
{
	static const char *const network[] = { "lenet5", "other" };
	bool open = chance(0.3);

	snprintf(text, 1000, "\"type\":\"net\",\"params\":{\"network\":\"%s\"", network[chance(0.1)]);
	if (!open)
		add(text, ",\"epochs\":%.0f", 1 + floor(5 * rng_uniform(&rng)));
	add(text, ",\"samples\":%.0f}", floor(between(2000, 60000)));
	if (open)
		add(text, ",\"epochs\":\"2..%.0f\"", 3 + floor(6 * rng_uniform(&rng)));
	if (chance(0.85))
		add(text, ",\"slo_s\":%.3f", chance(0.7) ? between(80, 800) : between(5, 5000));
	if (chance(0.3))
		add(text, ",\"confidence\":%.2f", chance(0.5) ? 0.5 : 0.8);
	if (chance(0.3))
		add(text, ",\"cpus\":%.0f", 1 + floor(3 * rng_uniform(&rng)));
	if (chance(0.4))
		add(text, ",\"chance\":%.2f", between(0.02, 0.5));
	if (chance(0.2))
		strncat(text, ",\"best_effort\":true", 999 - strlen(text));
	if (chance(0.2))
		add(text, ",\"value\":%.1f", between(0.2, 5));
	if (chance(0.15))
		add(text, ",\"priority\":%.0f", 3);
	if (chance(0.15))
		add(text, ",\"batches\":[64,%.0f]", chance(0.5) ? 128 : 512);
}

/* ---- a state ---- */

static void owner_says(const char *op, uint64_t job, const char *more)
{
	json_free(client_ask(&c, "{\"op\":\"%s\",\"job\":\"%llu\"%s}", op, (unsigned long long)job, more));
}

static void something_happens(void)
{
	struct job *job = l.d->jobs.live.first;
	char more[100];

	for (size_t skip = (size_t)(rng_uniform(&rng) * (double)l.d->jobs.live.n); job && skip; skip--)
		job = job->after;
	now_ns += (int64_t)(1e9 * between(0.01, 100));
	if (!job)
		return;
	if (chance(0.1)) {
		owner_says("cancel", job->id, "");
	} else if (job->step == STEP_READY) {
		owner_says("started", job->id, "");
	} else if (job->row.state == JOB_RUNNING && chance(0.3)) {
		snprintf(more, sizeof more, ",\"done\":%.3f", rng_uniform(&rng));
		owner_says("progress", job->id, more);
	} else if (job->row.state == JOB_RUNNING) {
		snprintf(more, sizeof more, ",\"accuracy\":%.3f,\"exit_code\":%d",
			 0.5 + 0.4 * rng_uniform(&rng), chance(0.1));
		owner_says("finished", job->id, more);
	}
	settle();
}

static void make_state(void)
{
	size_t n = 1 + rng_below(&rng, 50);
	char text[1000];

	for (int tries = 0; l.d->jobs.live.n < n && tries < 400; tries++) {
		now_ns += 1000; /* two jobs never come in one moment: the time is the order of the records */
		draw_question(text);
		json_free(client_ask(&c, "{\"op\":\"submit\",\"mode\":\"advise\",%s}", text));
		settle();
		if (chance(0.4))
			something_happens();
	}
}

/* ---- questions ---- */

/* The decision of the latest line, as it was written, without the time that it took. */
static void take_decision(const char *before, char *out)
{
	const char *line = c.in.text, *at, *took;
	size_t n = 0;
	int depth = 0;

	for (const char *p = line; p < c.in.text + c.read - 1; p++)
		if (p[-(p > line)] == '\n')
			line = p;
	at = strstr(line, before);
	assert_non_null(at);
	at += strlen(before);
	took = strstr(at, "\"took_us\":");
	do {
		depth += *at == '{';
		depth -= *at == '}';
		if (at == took)
			at += strcspn(at, ",");
		assert_true(n < MAX_TEXT - 1);
		out[n++] = *at++;
	} while (depth);
	out[n] = '\0';
}

static void ask(const char *how, const char *question, const char *before, char *out, char *verdict)
{
	struct json *v = client_ask(&c, "{%s%s}", how, question);

	if (json_get(v, "error"))
		fail_msg("%s%s: %s", how, question, text_at(v, "error.message"));
	snprintf(verdict, 32, "%s", text_at(v, "verdict"));
	take_decision(before, out);
	json_free(v);
}

static void same(unsigned seed, const char *question, const char *who, const char *a, const char *b)
{
	size_t at = 0;

	if (!strcmp(a, b))
		return;
	while (a[at] == b[at])
		at++;
	at = at > 60 ? at - 60 : 0;
	fail_msg("seed %u, %zu jobs, %s: predict and %s differ:\n...%.160s\n...%.160s", seed,
		 l.d->jobs.live.n, question, who, a + at, b + at);
}

static void check_state(unsigned seed)
{
	static char predicted[MAX_TEXT], tried[MAX_TEXT], taken[MAX_TEXT], explained[MAX_TEXT];
	char question[1000], id[48], verdict[4][32];

	now_ns += (int64_t)(1e9 * between(0.001, 10));
	draw_question(question);
	json_free(
		client_ask(&c, "{\"op\":\"predict\",%s}", question)); /* what was due by now happens first */
	settle();
	ask("\"op\":\"predict\",", question, "\"decision\":", predicted, verdict[0]);
	ask("\"op\":\"submit\",\"mode\":\"advise\",\"dry_run\":true,", question, "\"decision\":", tried,
	    verdict[1]);
	ask("\"op\":\"submit\",\"mode\":\"advise\",", question, "\"decision\":", taken, verdict[2]);
	settle();
	snprintf(id, sizeof id, "\"job\":\"%llu\"", (unsigned long long)l.d->next_id - 1);
	ask("\"op\":\"explain\",", id, "\"decisions\":[", explained, verdict[3]);
	same(seed, question, "the dry run", predicted, tried);
	same(seed, question, "submit", predicted, taken);
	same(seed, question, "explain", predicted, explained);
	same(seed, question, "the verdict of the dry run", verdict[0], verdict[1]);
	same(seed, question, "the verdict of submit", verdict[0], verdict[2]);
	n_asked++;
	for (int v = 0; v < 4; v++)
		n_verdict[v] += !strcmp(verdict[0], sched_verdict_name((enum sched_verdict)v));
	n_shaped += strstr(predicted, "\"failing\"") != NULL;
}

/* Two users found out about a batch, or this one did. False: no batch fails. */
static bool let_batches_fail(void)
{
	static const double batch[] = { 64, 128, 256, 512 };
	const struct job *job = l.d->jobs.live.first;
	struct failing_who who;

	if (!job || chance(0.5))
		return false;
	who = (struct failing_who){ job->type_number, job->row.uid, learning_command(l.d->learning, job) };
	failing_add(&l.d->learning->failing, who, batch[rng_below(&rng, 4)], "MemoryError", now_ns);
	return true;
}

/* What was put into the daemon behind its records' back cannot be replayed. */
static void check_replay(unsigned seed)
{
	if (verify_run(&(struct verify_params){ .state_dir = l.state, .least = 1.0 }))
		fail_msg("seed %u: a replay of its records decides otherwise", seed);
	n_replayed++;
}

TEST_WITH(test_predict_dry_run_submit_and_explain_agree_in_every_state, open_one, close_one)
{
	const char *more = getenv("AGREE_STATES");
	unsigned n = more ? (unsigned)strtoul(more, NULL, 10) : STATES;
	bool recorded;

	for (unsigned seed = 1; seed <= n; seed++) {
		rng = rng_stream(seed, 1);
		local_open(&l);
		l.model = LOCAL_MODEL;
		l.settings = "\"slots\":6,\"max_queued\":200,";
		l.types = TYPES;
		local_start(&l);
		now_ns = daemon_now_ns(l.d);
		l.d->params.now_ns = &now_ns;
		client_open(&c, &l);
		make_state();
		recorded = !let_batches_fail();
		for (int i = 0; i < 5; i++) {
			check_state(seed);
			something_happens();
		}
		client_close(&c);
		local_stop(&l);
		if (recorded)
			check_replay(seed);
	}
	printf("%u questions: %u promised, %u best effort, %u rejected, %u by chance; %u with batches left "
	       "out\n",
	       n_asked, n_verdict[SCHED_PROMISED], n_verdict[SCHED_BEST_EFFORT], n_verdict[SCHED_REJECTED],
	       n_verdict[SCHED_CHANCE], n_shaped);
	assert_true(n < STATES || (n_verdict[SCHED_PROMISED] > n / 2 && n_verdict[SCHED_BEST_EFFORT] > n &&
				   n_verdict[SCHED_REJECTED] > n && n_shaped > n / 2 && n_replayed > n / 4));
}
