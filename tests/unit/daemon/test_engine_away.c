/* An engine beside this machine that is away, that lies, or that starts nothing: jobs of the machine with a limit
 * arrive meanwhile. In a daemon in this process; the engine is played (played_engine.h). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/support.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"
#include "tests/unit/daemon/played_engine.h"

#define HERE                                                                                                 \
	",\"here\":{\"batches\":[128],\"argv\":[\"/bin/sh\",\"-c\",\"sleep 0.05 # {batch}\"],\"params\":{"   \
	"\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},\"epochs\":{\"kind\":\"integer\","           \
	"\"default\":2},"                                                                                    \
	"\"samples\":{\"kind\":\"integer\",\"default\":12000}}}"
#define LOCAL_JOBS 6

static struct played_engine g;
static char settings[2400], types[2400];

static int close_all(void **state)
{
	played_close(&g);
	return close_one(state);
}

#define AWAY_TEST(name) TEST_WITH(name, open_one, close_all)

/* "work" goes to the engine, "here" stays. */
static void begin(const char *how)
{
	const char *own = "\"executor\":\"q\",\"slots\":20,";

	played_open(&g, &l, false, "");
	assert_ptr_equal(strstr(g.settings, own), g.settings);
	snprintf(settings, sizeof settings, "\"slots\":2,%s", g.settings + strlen(own));
	snprintf(types, sizeof types, ",\"work\":{\"executor\":\"q\",%s%s", g.types + strlen(",\"work\":{"),
		 HERE);
	l.settings = settings;
	l.types = types;
	l.model = LOCAL_MODEL;
	played_put(&g, "how", how);
	local_start(&l);
	client_open(&c, &l);
}

static const struct job *at(uint64_t id)
{
	return jobs_find(&l.d->jobs, id);
}

static uint64_t here[LOCAL_JOBS];

static bool have_ended(const struct local_daemon *d)
{
	(void)d;
	for (size_t i = 0; i < LOCAL_JOBS; i++) {
		if (job_state_live(at(here[i])->row.state))
			return false;
	}
	return true;
}

static bool was_asked(const struct local_daemon *d)
{
	(void)d;
	return played_lines(&g, "submits") > 0;
}

/* Four jobs of two slots that the engine gets and does not take, and then jobs of the machine. */
static void no_promise_is_broken(const char *how)
{
	begin(how);
	for (int i = 0; i < 4; i++)
		assert_true(client_submit(&c, ",\"type\":\"work\",\"params\":{\"gate\":1}") > 0);
	local_until(&l, was_asked);
	for (size_t i = 0; i < LOCAL_JOBS; i++) {
		here[i] = client_submit(&c, ",\"type\":\"here\",\"slo_s\":3000");
		assert_true(here[i] > 0);
		assert_int_equal(at(here[i])->row.verdict, VERDICT_PROMISED);
		local_run(&l, 0.05);
	}
	local_until(&l, have_ended);
	for (size_t i = 0; i < LOCAL_JOBS; i++) {
		const struct job_record *r = &at(here[i])->row;

		assert_int_equal(r->state, JOB_DONE);
		assert_true((double)(r->ended_ns - r->submitted_ns) / 1e9 < 10.0);
	}
	for (uint64_t id = 1; id <= 4; id++) /* and none of the engine's is lost */
		assert_true(job_state_live(at(id)->row.state));
}

AWAY_TEST(test_jobs_of_an_engine_that_is_away_hold_no_slot_of_the_machine)
{
	no_promise_is_broken("later\n");
}

AWAY_TEST(test_jobs_that_an_engine_may_have_taken_hold_none_either)
{
	no_promise_is_broken("deaf\n");
}

AWAY_TEST(test_jobs_that_an_engine_does_not_start_hold_none_either)
{
	no_promise_is_broken("hold\n");
}

/* The engine comes back and takes all of its jobs while those of the machine run. */
AWAY_TEST(test_an_engine_that_returns_breaks_no_promise)
{
	uint64_t first;

	begin("later\n");
	first = client_submit(&c, ",\"type\":\"work\",\"params\":{\"gate\":0}");
	assert_true(first > 0);
	local_until(&l, was_asked);
	for (size_t i = 0; i < LOCAL_JOBS; i++) {
		here[i] = client_submit(&c, ",\"type\":\"here\",\"slo_s\":3000");
		assert_int_equal(at(here[i])->row.verdict, VERDICT_PROMISED);
		if (i == 2)
			played_put(&g, "how", NULL);
	}
	local_until(&l, have_ended);
	for (size_t i = 0; i < LOCAL_JOBS; i++)
		assert_int_equal(at(here[i])->row.state, JOB_DONE);
	here[0] = first;
	local_until(&l, have_ended);
	assert_int_equal(at(first)->row.state, JOB_DONE);
	assert_int_equal(played_lines(&g, "runs"), 1);
}
