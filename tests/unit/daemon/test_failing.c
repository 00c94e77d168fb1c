/* Which failures of real runs leave a batch out, in a daemon with a model: failing.h has the rule, this the
 * road from a process to it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/daemon/admission.h"
#include "scheduler/daemon/learn/learning_internal.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/one_local.h"

/* Runs its parameter `does` with the batch in $1. */
#define TYPES                                                                                                \
	",\"net\":{\"batches\":[64,128,256],\"argv\":[\"/bin/sh\",\"-c\",\"%s\",\"sh\",\"{batch}\"],"        \
	"\"params\":{\"network\":{\"kind\":\"word\",\"default\":\"lenet5\"},"                                \
	"\"epochs\":{\"kind\":\"integer\",\"min\":1,\"max\":20,\"default\":2},"                              \
	"\"samples\":{\"kind\":\"integer\",\"min\":1,\"default\":12000}}}"

#define SLO ",\"slo_s\":1000"

static char types[1024];

static void start_net(const char *does)
{
	snprintf(types, sizeof types, TYPES, does);
	l.types = types;
	l.model = LOCAL_MODEL;
	local_start(&l);
	client_open(&c, &l);
}

static int open_it(void **state)
{
	(void)state;
	local_open(&l);
	return 0;
}

static uint64_t id;

static bool has_ended(const struct local_daemon *at)
{
	const struct job *job = jobs_find(&at->d->jobs, id);

	return job && !job_state_live(job->row.state);
}

static bool has_begun(const struct local_daemon *at)
{
	const struct job *job = jobs_find(&at->d->jobs, id);

	return job && (job->pid > 0 || has_ended(at));
}

static const struct job_record *ended(const char *members)
{
	char text[200];

	snprintf(text, sizeof text, ",\"type\":\"net\"%s", members);
	id = client_submit(&c, text);
	assert_true(id > 0);
	local_until(&l, has_ended);
	return &jobs_find(&l.d->jobs, id)->row;
}

static void begin(void)
{
	id = client_submit(&c, ",\"type\":\"net\"" SLO);
	assert_true(id > 0);
	local_until(&l, has_begun);
}

/* The batches that a dry run chooses from, and how many are left out. */
static size_t left_out(void)
{
	struct json *v =
		client_ask(&c, "{\"op\":\"submit\",\"dry_run\":true,\"type\":\"net\",\"slo_s\":1000}");
	const struct json *d = json_get(v, "decision");
	size_t n = json_size(json_get(d, "failing"));

	assert_int_equal(json_size(json_get(d, "candidates")), 3 - n);
	json_free(v);
	return n;
}

TEST_WITH(test_a_run_that_was_ended_from_outside_says_nothing_of_its_batch, open_it, close_one)
{
	static const int from_outside[] = { SIGTERM, SIGKILL };

	start_net("exec sleep 1000");
	for (int i = 0; i < 2; i++) {
		begin();
		kill(jobs_find(&l.d->jobs, id)->pid, from_outside[i]);
		local_until(&l, has_ended);
		assert_int_equal(jobs_find(&l.d->jobs, id)->row.state, JOB_FAILED);
	}
	assert_int_equal(l.d->learning->failing.n, 0);
	assert_int_equal(left_out(), 0);
}

TEST_WITH(test_a_run_that_crashes_twice_says_it_of_its_batch, open_it, close_one)
{
	start_net("kill -SEGV $$");
	assert_int_equal(ended(SLO)->exit_signal, SIGSEGV);
	assert_int_equal(left_out(), 0);
	ended(SLO);
	assert_int_equal(left_out(), 1);
}

TEST_WITH(test_a_full_disk_says_nothing_of_a_batch, open_it, close_one)
{
	start_net("echo OSError: [Errno 28] No space left on device >&2; exit 1");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ended(SLO)->state, JOB_FAILED);
	assert_int_equal(left_out(), 0);
}

TEST_WITH(test_a_run_that_never_began_says_nothing_of_a_batch, open_it, close_one)
{
	start_net("exit 0");
	snprintf(types, sizeof types, TYPES, "exit 0");
	memcpy(strstr(types, "/bin/sh"), "/bin/no", 7);
	local_restart(&l);
	client_close(&c);
	client_open(&c, &l);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ended(SLO)->state, JOB_FAILED);
	assert_int_equal(left_out(), 0);
}

TEST_WITH(test_a_lost_supervisor_says_nothing_of_a_batch, open_it, close_one)
{
	start_net("exec sleep 1000");
	for (int i = 0; i < 2; i++) {
		pid_t pid;
		char path[64];
		FILE *f;
		int supervisor = 0;

		begin();
		pid = jobs_find(&l.d->jobs, id)->pid;
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		f = fopen(path, "r");
		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d %*s %*c %d", &supervisor), 1);
		fclose(f);
		assert_true(supervisor > 1);
		kill(supervisor, SIGKILL);
		local_until(&l, has_ended);
		kill(pid, SIGKILL);
		assert_int_equal(jobs_find(&l.d->jobs, id)->row.state, JOB_LOST);
	}
	assert_int_equal(left_out(), 0);
}

/* Once is enough; the others are told by a dry run and by the real thing alike, also after a restart. */
TEST_WITH(test_a_batch_that_is_out_of_memory_is_promised_once, open_it, close_one)
{
	const struct job_record *r;
	double first;

	start_net("echo MemoryError >&2; exit 1");
	first = ended(SLO)->batch;
	assert_int_equal(left_out(), 1);
	r = ended(SLO);
	assert_true(r->batch != first);
	assert_int_equal(left_out(), 2);
	local_restart(&l);
	client_close(&c);
	client_open(&c, &l);
	assert_int_equal(left_out(), 2);
}

TEST_WITH(test_a_retry_goes_down_through_the_batches_that_its_user_named, open_it, close_one)
{
	const struct job_record *r;

	start_net("[ $1 = 64 ] && exit 0; echo MemoryError >&2; exit 1");
	r = ended(SLO ",\"retry\":2,\"batches\":[64,128,256]");
	assert_int_equal(r->state, JOB_DONE);
	assert_true(r->batch == 64.0);
}
