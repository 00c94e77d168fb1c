/* The records of a supervisor: whole ones are read, anything else is damage with its place. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "scheduler/process/run_record.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static const char started_text[] = "postrider-started 1\n"
				   "boot 4b4977de-b73c-4ef0-b775-b176a6e3669f\n"
				   "supervisor 752 1220227\n"
				   "job 753 1220229\n"
				   "started 1794801674921316587 12202274026750\n"
				   "cpus 0-1,7\n"
				   "end\n";

static const char exit_text[] = "postrider-exit 1\n"
				"started 1794801674921316587 12202274026750\n"
				"ended 1794801677421990203 12204774700406\n"
				"status signal 9\n"
				"timed_out 1\n"
				"stopped 0\n"
				"max_rss_kb 2560\n"
				"cpu_us 15954\n"
				"reason -\n"
				"note no cgroup\n"
				"end\n";

static int disarm(void **state)
{
	(void)state;
	io_fail_at(0, 0);
	mem_fail_at(0, false);
	return 0;
}

/* From a buffer of exactly this size, so that a sanitizer sees a read past its end. */
static int parse_started(const char *text, size_t len, struct job_started *out, struct err *err)
{
	char *exact = malloc(len ? len : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, text, len);
	rc = job_started_parse("1.started", exact, len, out, err);
	free(exact);
	return rc;
}

static int parse_exit(const char *text, size_t len, struct job_exit *out, struct err *err)
{
	char *exact = malloc(len ? len : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, text, len);
	rc = job_exit_parse("1.exit", exact, len, out, err);
	free(exact);
	return rc;
}

TEST_WITH(test_started_record_is_read, NULL, disarm)
{
	struct job_started s;
	struct err err = { 0 };

	assert_int_equal(parse_started(started_text, strlen(started_text), &s, &err), 0);
	assert_string_equal(s.boot, "4b4977de-b73c-4ef0-b775-b176a6e3669f");
	assert_int_equal(s.supervisor, 752);
	assert_int_equal(s.supervisor_ticks, 1220227);
	assert_int_equal(s.job, 753);
	assert_int_equal(s.job_ticks, 1220229);
	assert_true(s.at_ns == INT64_C(1794801674921316587));
	assert_true(s.at_boot_ns == INT64_C(12202274026750));
	assert_string_equal(s.cpus, "0-1,7");
}

TEST_WITH(test_exit_record_is_read, NULL, disarm)
{
	struct job_exit x;
	struct err err = { 0 };

	assert_int_equal(parse_exit(exit_text, strlen(exit_text), &x, &err), 0);
	assert_true(x.ran);
	assert_int_equal(x.exit_code, -1);
	assert_int_equal(x.exit_signal, 9);
	assert_true(x.timed_out);
	assert_false(x.stopped);
	assert_true(x.started_ns == INT64_C(1794801674921316587));
	assert_true(x.ended_ns == INT64_C(1794801677421990203));
	assert_true(fabs(x.run_s - 2.500673656) < 1e-9);
	assert_true(x.max_rss_mb == 2.5);
	assert_true(fabs(x.cpu_s - 0.015954) < 1e-12);
	assert_string_equal(x.reason, "");
	assert_string_equal(x.note, "no cgroup");
}

TEST_WITH(test_every_truncation_is_damage, NULL, disarm)
{
	struct job_started s = { .supervisor = 42 };
	struct job_exit x = { .exit_code = 42 };

	for (size_t len = 0; len < strlen(started_text); len++) {
		struct err err = { 0 };

		assert_int_equal(parse_started(started_text, len, &s, &err), -ERR_FORMAT);
		assert_memory_equal(err.text, "1.started:", 10);
	}
	for (size_t len = 0; len < strlen(exit_text); len++) {
		struct err err = { 0 };

		assert_int_equal(parse_exit(exit_text, len, &x, &err), -ERR_FORMAT);
		assert_memory_equal(err.text, "1.exit:", 7);
	}
	assert_int_equal(s.supervisor, 42); /* results are written on success only */
	assert_int_equal(x.exit_code, 42);
}

/* No flipped bit may lead to a number outside of what the types promise. */
TEST_WITH(test_flipped_bits_never_give_nonsense, NULL, disarm)
{
	char text[sizeof exit_text];

	for (size_t bit = 0; bit < 8 * strlen(exit_text); bit++) {
		struct job_exit x;

		memcpy(text, exit_text, sizeof text);
		text[bit / 8] ^= (char)(1 << bit % 8);
		if (parse_exit(text, strlen(exit_text), &x, NULL))
			continue;
		assert_in_range(x.exit_code + 1, 0, 256);
		assert_in_range(x.exit_signal, 0, 64);
		assert_true(isfinite(x.run_s) && x.run_s >= 0.0);
		assert_true(x.max_rss_mb >= 0.0 && x.cpu_s >= 0.0);
		assert_true(x.started_ns >= 0 && x.ended_ns >= 0);
	}
	for (size_t bit = 0; bit < 8 * strlen(started_text); bit++) {
		struct job_started s;

		memcpy(text, started_text, sizeof started_text);
		text[bit / 8] ^= (char)(1 << bit % 8);
		if (!parse_started(text, strlen(started_text), &s, NULL))
			assert_true(s.supervisor > 1 && s.job > 1 && s.at_ns >= 0);
	}
}

TEST_WITH(test_noise_is_refused, NULL, disarm)
{
	struct rng r = rng_stream(7, 1);
	char noise[RECORD_MAX_BYTES];

	for (int i = 0; i < 200; i++) {
		size_t len = rng_below(&r, sizeof noise);
		struct job_started s;
		struct job_exit x;

		for (size_t k = 0; k < len; k++)
			noise[k] = (char)rng_below(&r, 256);
		if (i % 2 && len > strlen(RECORD_EXIT_MAGIC) + 1)
			memcpy(noise, RECORD_EXIT_MAGIC "\n", strlen(RECORD_EXIT_MAGIC) + 1);
		assert_int_equal(parse_started(noise, len, &s, NULL), -ERR_FORMAT);
		assert_int_equal(parse_exit(noise, len, &x, NULL), -ERR_FORMAT);
	}
}

/* The whole with one piece of it replaced. */
static void expect_refused(const char *from, const char *to, const char *place)
{
	char text[RECORD_MAX_BYTES];
	const char *whole = strstr(exit_text, from) ? exit_text : started_text, *at = strstr(whole, from);
	struct err err = { 0 };
	struct job_started s;
	struct job_exit x;
	int n;

	assert_non_null(at);
	n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
	assert_int_equal(whole == exit_text ? parse_exit(text, (size_t)n, &x, &err)
					    : parse_started(text, (size_t)n, &s, &err),
			 -ERR_FORMAT);
	if (!strstr(err.text, place))
		fail_msg("'%s' does not say '%s'", err.text, place);
}

TEST_WITH(test_values_out_of_range_are_refused, NULL, disarm)
{
	expect_refused("postrider-exit 1", "postrider-exit 3", "another kind or version");
	expect_refused("status signal 9", "status signal 0", "1.exit:4: damaged: not a status");
	expect_refused("status signal 9", "status signal 65", "not a status");
	expect_refused("status signal 9", "status exit 256", "not a status");
	expect_refused("status signal 9", "status exit -1", "not a status");
	expect_refused("status signal 9", "status none", "it ran, but has no status");
	expect_refused("started 1794801674921316587 12202274026750\nended", "started 0 0\nended",
		       "never ran");
	expect_refused("12204774700406", "12202274026749", "it ended before it started");
	expect_refused("timed_out 1", "timed_out 2", "1.exit:5: ");
	expect_refused("timed_out 1", "timed_out", "1.exit:5: ");
	expect_refused("cpu_us 15954", "cpu_us 99999999999999999999", "1.exit:8: ");
	expect_refused("note no cgroup\nend\n", "note no cgroup\nend\nmore\n", "follows its end");
	expect_refused("supervisor 752", "supervisor 1", "no such process");
	expect_refused("supervisor 752", "supervisor 4194305", "no such process");
	expect_refused("job 753 1220229", "job 753", "1.started:4: ");
	expect_refused("boot 4b", "boot 4b4b4b4b", "too long");
}

TEST_WITH(test_text_up_to_the_limit_is_read, NULL, disarm)
{
	char reason[RECORD_MAX_TEXT + 2], text[2000];
	struct job_exit x;

	for (size_t len = RECORD_MAX_TEXT; len <= RECORD_MAX_TEXT + 1; len++) {
		int n;

		memset(reason, 'r', len);
		reason[len] = '\0';
		n = snprintf(text, sizeof text,
			     "postrider-exit 1\nstarted 0 0\nended 5 6\nstatus none\ntimed_out 0\nstopped 1\n"
			     "max_rss_kb 0\ncpu_us 0\nreason %s\nnote -\nend\n",
			     reason);
		assert_int_equal(parse_exit(text, (size_t)n, &x, NULL),
				 len > RECORD_MAX_TEXT ? -ERR_FORMAT : 0);
	}
	assert_int_equal(strlen(x.reason), RECORD_MAX_TEXT);
	assert_false(x.ran);
	assert_true(x.stopped);
	assert_int_equal(x.exit_code, -1);
}

static const char *put_record(const char *name, const char *suffix, const char *text)
{
	const char *dir = support_path(support_temp_dir(), name);
	char path[600];
	struct err err = { 0 };

	snprintf(path, sizeof path, "%s%s", dir, suffix);
	if (io_write_file(path, text, strlen(text), &err))
		fail_msg("%s", err.text);
	return dir;
}

TEST_WITH(test_absent_and_unreadable_are_told_apart, NULL, disarm)
{
	const char *none = support_path(support_temp_dir(), "none"), *dir;
	struct job_started s;
	struct job_exit x;
	struct err err = { 0 };

	assert_int_equal(job_started_read(none, "", &s, &err), -ERR_NOTFOUND);
	assert_int_equal(job_exit_read(none, "", &x, &err), -ERR_NOTFOUND);
	dir = put_record("one", RECORD_EXIT, exit_text);
	assert_int_equal(job_exit_read(dir, "", &x, &err), 0);
	io_fail_at(1, EMFILE);
	assert_int_equal(job_exit_read(dir, "", &x, &err), -ERR_NOMEM); /* descriptors come back */
	io_fail_at(2, EIO);
	assert_int_equal(job_exit_read(dir, "", &x, &err), -ERR_IO);
	io_fail_at(0, 0);
	mem_fail_at(1, false);
	assert_int_equal(job_exit_read(dir, "", &x, &err), -ERR_NOMEM);
	mem_fail_at(0, false);
	dir = put_record("two", RECORD_STARTED, "");
	assert_int_equal(job_started_read(dir, "", &s, &err), -ERR_FORMAT);
}

TEST_WITH(test_record_that_is_too_large_is_refused, NULL, disarm)
{
	char *large = malloc(RECORD_MAX_BYTES + 2);
	struct job_started s;
	struct err err = { 0 };

	assert_non_null(large);
	memset(large, 'x', RECORD_MAX_BYTES + 1);
	large[RECORD_MAX_BYTES + 1] = '\0';
	assert_int_equal(job_started_read(put_record("three", RECORD_STARTED, large), "", &s, &err),
			 -ERR_FORMAT);
	free(large);
}

/* The same records as this version writes them: with the identity of the job and of the boot. */
TEST(test_records_bear_the_identity_of_their_job)
{
	static const char mine[] = "0123456789abcdef0123456789abcdef", other[] = "ffff";
	struct job_started s;
	struct job_exit x;
	struct err err = { 0 };
	char text[2000];
	const char *base;

	snprintf(text, sizeof text, "postrider-started 2\nidentity %s%s", mine, strchr(started_text, '\n'));
	base = put_record("four", RECORD_STARTED, text);
	assert_int_equal(job_started_read(base, mine, &s, &err), 0);
	assert_string_equal(s.identity, mine);
	assert_int_equal(job_started_read(base, other, &s, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "is the record of another job"));
	assert_int_equal(job_started_read(base, "", &s, &err), -ERR_FORMAT);
	snprintf(text, sizeof text, "postrider-exit 2\nidentity %s\nboot abc%s", mine,
		 strchr(exit_text, '\n'));
	base = put_record("five", RECORD_EXIT, text);
	assert_int_equal(job_exit_read(base, mine, &x, &err), 0);
	assert_string_equal(x.boot, "abc");
	assert_true(x.ended_boot_ns >= x.started_boot_ns && x.started_boot_ns > 0);
	assert_int_equal(job_exit_read(base, other, &x, &err), -ERR_FORMAT);
	/* One without an identity, of version 1, belongs to a job that has none. */
	base = put_record("six", RECORD_EXIT, exit_text);
	assert_int_equal(job_exit_read(base, "", &x, &err), 0);
	assert_int_equal(job_exit_read(base, mine, &x, &err), -ERR_FORMAT);
}
