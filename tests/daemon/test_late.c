/* A promise about to break: the operator's command is run, and jobs that were promised nothing make room, the
 * youngest first. The model says half a second, the job sleeps for a minute. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/strbuf.h"
#include "tests/daemon/one_daemon.h"
#include "tests/support/test.h"

#define SLOW_TYPE                                                                                            \
	",\"slow\":{\"argv\":[\"/bin/sh\",\"-c\",\"sleep 60 # {batch}\"],\"batches\":[64,128,256,512],"      \
	"\"params\":{\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},"                                \
	"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":20,\"default\":2},"                              \
	"\"samples\":{\"kind\":\"integer\",\"min\":1,\"default\":12000}}}"

static void make_model(void)
{
	struct strbuf b = { 0 };

	for (int i = 0; i < 96; i++)
		strbuf_printf(&b, "%s,1,%d,%d,2,12000,%.4f,%.3f\n", i % 2 ? "lenet5" : "simplenet",
			      1 + i / 2 % 2, 64 << (i / 4 % 4), 0.5 + 0.01 * (i % 7),
			      0.9 - 0.05 * (i / 4 % 4));
	fixture_learn(&fixture, &b);
	strbuf_release(&b);
}

static int set_up(void **state)
{
	char settings[400];

	(void)state;
	fixture_open(&fixture);
	make_model();
	snprintf(settings, sizeof settings,
		 "\"slots\":4,\"durability\":\"none\",\"outside_load\":false,\"on_late\":\"stop_"
		 "best_effort\","
		 "\"notify\":[\"/bin/sh\",\"-c\",\"echo {job} {event} {type} >>%s/notices\"],",
		 fixture.dir);
	fixture_configure(&fixture, settings, SLOW_TYPE);
	come_back();
	return 0;
}

TEST_WITH(test_late_job_is_told_of_and_gets_room, set_up, close_one)
{
	uint64_t older = submit(t, ",\"type\":\"slow\""), younger = submit(t, ",\"type\":\"slow\""), promised;
	char path[160], want[64], *told = NULL;
	size_t len = 0;
	struct json *v;

	json_free(await(t, older, "running"));
	json_free(await(t, younger, "running"));
	promised = submit(t, ",\"type\":\"slow\",\"slo_s\":4");
	v = await(t, promised, "running");
	assert_string_equal(text_at(v, "job.verdict"), "promised");
	json_free(v);

	v = await(t, younger, "cancelled"); /* first the one that came last */
	json_free(v);
	json_free(await(t, older, "cancelled"));
	v = talk_ask(t, "{\"op\":\"status\",\"job\":\"%llu\"}", (unsigned long long)promised);
	assert_string_equal(text_at(v, "job.state"), "running"); /* a promise is not stopped for a promise */
	json_free(v);
	assert_true(fixture_logged(&fixture, "is predicted to miss its limit"));

	snprintf(path, sizeof path, "%s/notices", fixture.dir);
	for (double until = now_s() + PATIENCE_S; now_s() < until; sleep_s(0.05)) {
		free(told);
		told = NULL;
		if (io_read_file(path, 4096, &told, &len, NULL) == 0 && len > 0)
			break;
	}
	snprintf(want, sizeof want, "%llu late slow\n", (unsigned long long)promised);
	assert_non_null(told);
	assert_string_equal(told, want); /* once */
	free(told);
}
