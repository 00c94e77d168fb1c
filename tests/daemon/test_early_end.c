/* Jobs that the daemon ends before they are done, for the sake of others: one that left its epochs open gives
 * time back to a job that would miss its limit, and one that was taken by chance is stopped at its
 * deadline. The model says 0.4 s an epoch, give or take a fifth, and an accuracy that rises with the
 * epochs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/io.h"
#include "common/strbuf.h"
#include "tests/daemon/one_daemon.h"
#include "tests/support/test.h"

#define EPOCHS                                                                                               \
	"\"params\":{\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},"                                \
	"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":20,\"default\":2},"                              \
	"\"samples\":{\"kind\":\"integer\",\"min\":1,\"default\":12000}},\"batches\":[64],"                  \
	"\"epochs_param\":\"epochs\""
#define TYPES                                                                                                \
	",\"trains\":{\"argv\":[\"/bin/sh\",\"-c\",\"e=0; while [ $e -lt $1 ]; do sleep 0.4; "               \
	"e=$((e+1)); echo '{{\\\"epoch\\\":'$e',\\\"accuracy\\\":0.9}'; done\",\"sh\",\"{epochs}\","         \
	"\"{batch}\"]," EPOCHS ",\"early_stop\":true},"                                                      \
	"\"silent\":{\"argv\":[\"/bin/sh\",\"-c\",\"exec sleep "                                             \
	"60\",\"sh\",\"{epochs}\",\"{batch}\"]," EPOCHS "}"

static void make_model(void)
{
	struct strbuf b = { 0 };

	for (int i = 0; i < 120; i++) {
		int epochs = 1 + i % 20;

		strbuf_printf(&b, "lenet5,1,1,64,%d,12000,%.4f,%.4f\n", epochs,
			      0.4 * epochs * (0.8 + 0.1 * (i / 20 * 7 % 5)), 0.95 - 0.3 / epochs);
	}
	fixture_learn(&fixture, &b);
	strbuf_release(&b);
}

static int set_up(void **state)
{
	(void)state;
	fixture_open(&fixture);
	make_model();
	fixture_configure(&fixture, "\"slots\":1,\"durability\":\"none\",\"kill_grace_s\":1,", TYPES);
	come_back();
	return 0;
}

TEST_WITH(test_a_job_with_open_epochs_makes_room_for_one_that_would_miss, set_up, close_one)
{
	uint64_t gives = submit(t, ",\"type\":\"trains\",\"epochs\":\"1..20\",\"may_stop\":true"), gets;
	struct json *v;

	v = await(t, gives, "running");
	assert_true(number_at(v, "job.epochs") > 10.0);
	json_free(v);
	gets = submit(t, ",\"type\":\"trains\",\"epochs\":2,\"slo_s\":6,\"best_effort\":true");
	v = await(t, gives, "done");
	assert_true(number_at(v, "job.stopped_epoch") >= 1.0 && number_at(v, "job.stopped_epoch") < 13.0);
	assert_string_equal(text_at(v, "job.reason"), "gave_back");
	assert_true(number_at(v, "job.accuracy") == 0.9);
	json_free(v);
	v = await(t, gets, "done");
	assert_true(isnan(number_at(v, "job.stopped_epoch"))); /* it did not ask for that */
	json_free(v);
}

TEST_WITH(test_a_job_taken_by_chance_ends_at_its_deadline, set_up, close_one)
{
	uint64_t id = submit(t, ",\"type\":\"silent\",\"epochs\":5,\"slo_s\":2,\"chance\":0.05");
	struct json *v = await(t, id, "running");

	assert_string_equal(text_at(v, "job.verdict"), "chance");
	json_free(v);
	v = await(t, id, "cancelled");
	assert_string_equal(text_at(v, "job.reason"), "no_chance");
	assert_string_equal(text_at(v, "job.slo_outcome"), "missed");
	assert_true(number_at(v, "job.response_s") >= 2.0); /* not before: it says nothing of itself */
	json_free(v);
}
