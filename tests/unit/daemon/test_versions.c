/* scheduler/daemon/learn/versions: the journal of trained models, also when it is damaged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "scheduler/daemon/learn/versions.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static const char *fresh_folder(void)
{
	static int n;
	char name[32];

	snprintf(name, sizeof name, "versions%d", n++);
	return support_path(support_temp_dir(), name);
}

static struct versions *open_folder(const char *folder)
{
	struct versions *v = NULL;
	struct err err = { 0 };

	if (versions_open(folder, &v, &err))
		fail_msg("%s", err.text);
	return v;
}

static void add(struct versions *v, uint32_t number, bool accepted, uint32_t back_to)
{
	struct model_version one = { .number = number,
				     .accepted = accepted,
				     .rolled_back_to = back_to,
				     .p = 0.01,
				     .old_error = 0.4,
				     .new_error = NAN,
				     .rows = 123,
				     .observations = 45,
				     .tested = 6,
				     .created = "2026-11-16T10:00:00.000000Z",
				     .reason = "200 jobs",
				     .message = "said \"so\"" };
	char *path = versions_path(v, number);
	struct err err = { 0 };

	if (accepted)
		assert_int_equal(io_write_file(path, "x", 1, NULL), 0);
	free(path);
	if (versions_add(v, &one, &err))
		fail_msg("%s", err.text);
}

static bool has_file(const struct versions *v, uint32_t number)
{
	char *path = versions_path(v, number);
	bool there = !access(path, F_OK);

	free(path);
	return there;
}

TEST(test_an_empty_folder_has_no_version)
{
	struct versions *v = open_folder(fresh_folder());
	struct model_version one;

	assert_int_equal(versions_next(v), 1);
	assert_int_equal(versions_current(v), 0);
	assert_int_equal(versions_list(v, &one, 1), 0);
	versions_free(v);
	versions_free(NULL);
}

TEST(test_what_is_written_is_there_after_a_restart)
{
	const char *folder = fresh_folder();
	struct versions *v = open_folder(folder);
	struct model_version list[4];
	char *path;

	add(v, 1, true, UINT32_MAX);
	add(v, 2, false, UINT32_MAX);
	versions_free(v);
	v = open_folder(folder);
	assert_int_equal(versions_list(v, list, 4), 2);
	assert_true(list[0].number == 1 && list[0].accepted && list[0].kept &&
		    list[0].rolled_back_to == UINT32_MAX);
	assert_true(list[0].rows == 123 && list[0].observations == 45 && list[0].tested == 6);
	assert_true(list[0].p == 0.01 && list[0].old_error == 0.4 && isnan(list[0].new_error));
	assert_string_equal(list[0].created, "2026-11-16T10:00:00.000000Z");
	assert_string_equal(list[0].reason, "200 jobs");
	assert_string_equal(list[0].message, "said \"so\"");
	assert_true(list[1].number == 2 && !list[1].accepted && !list[1].kept);
	assert_int_equal(versions_list(v, list, 1), 1);
	assert_int_equal(list[0].number, 2); /* the latest */
	assert_int_equal(versions_current(v), 1);
	assert_int_equal(versions_next(v), 3);
	path = versions_path(v, 7);
	assert_string_equal(strrchr(path, '/'), "/0007.model");
	free(path);
	versions_free(v);
}

TEST(test_a_rollback_counts_until_the_next_training)
{
	const char *folder = fresh_folder();
	struct versions *v = open_folder(folder);

	add(v, 1, true, UINT32_MAX);
	add(v, 2, true, UINT32_MAX);
	add(v, 3, false, 1);
	assert_int_equal(versions_current(v), 1);
	add(v, 4, false, UINT32_MAX); /* a training that was not taken */
	assert_int_equal(versions_current(v), 1);
	add(v, 5, false, 0);
	assert_int_equal(versions_current(v), 0);
	versions_free(v);
	v = open_folder(folder);
	assert_int_equal(versions_current(v), 0);
	add(v, 6, true, UINT32_MAX);
	assert_int_equal(versions_current(v), 6);
	versions_free(v);
}

TEST(test_old_files_go_but_never_the_one_in_use)
{
	struct versions *v = open_folder(fresh_folder());

	for (uint32_t i = 1; i <= 6; i++)
		add(v, i, true, UINT32_MAX);
	add(v, 7, false, 2);
	versions_prune(v, 2);
	assert_true(!has_file(v, 1) && has_file(v, 2) && !has_file(v, 3) && !has_file(v, 4));
	assert_true(has_file(v, 5) && has_file(v, 6));
	assert_int_equal(versions_current(v), 2);
	add(v, 8, true, UINT32_MAX);
	versions_prune(v, 2);
	assert_true(!has_file(v, 2) && !has_file(v, 5) && has_file(v, 6) && has_file(v, 8));
	versions_free(v);
}

TEST(test_a_version_whose_file_is_gone_is_not_in_use)
{
	struct versions *v = open_folder(fresh_folder());
	char *path;

	add(v, 1, true, UINT32_MAX);
	add(v, 2, true, UINT32_MAX);
	path = versions_path(v, 2);
	unlink(path);
	free(path);
	assert_int_equal(versions_current(v), 1);
	versions_free(v);
}

TEST(test_lines_that_make_no_sense_are_left_out)
{
	static const char text[] = "{\"version\":1,\"accepted\":false}\n"
				   "\n"
				   "{\"version\":2,\"accepted\":fal\n"
				   "[1,2]\n"
				   "{\"version\":-3}\n"
				   "{\"version\":1e30}\n"
				   "{\"version\":1,\"reason\":\"again\"}\n"
				   "{\"version\":4,\"rolled_back_to\":\"x\"}\n"
				   "{\"version\":5,\"rows\":-1,\"p\":\"x\",\"reason\":7}\n"
				   "{\"version\":6,\"acce";
	const char *folder = fresh_folder();
	struct versions *v = open_folder(folder);
	struct model_version list[8];

	versions_free(v);
	assert_int_equal(io_write_file(support_path(folder, "versions.jsonl"), text, strlen(text), NULL), 0);
	log_set_level(LOG_ERROR);
	v = open_folder(folder);
	log_set_level(LOG_INFO);
	assert_int_equal(versions_list(v, list, 8), 2);
	assert_true(list[0].number == 1 && list[1].number == 5 && list[1].rows == 0 && isnan(list[1].p));
	versions_free(v);
}

TEST(test_a_lost_journal_costs_no_model)
{
	const char *folder = fresh_folder();
	struct versions *v = open_folder(folder);

	add(v, 1, true, UINT32_MAX);
	add(v, 2, true, UINT32_MAX);
	versions_free(v);
	unlink(support_path(folder, "versions.jsonl"));
	v = open_folder(folder);
	assert_int_equal(versions_next(v), 3);
	versions_free(v);
}

TEST(test_the_journal_is_bounded_and_keeps_what_counts)
{
	const char *folder = fresh_folder();
	struct model_version *list = mem_array(VERSIONS_MAX + 10, sizeof *list);
	struct strbuf text = { 0 };
	struct versions *v = open_folder(folder);

	add(v, 1, true, UINT32_MAX);
	versions_free(v);
	strbuf_puts(&text, "{\"version\":1,\"accepted\":true}\n");
	for (int i = 2; i <= VERSIONS_MAX + 5; i++)
		strbuf_printf(&text, "{\"version\":%d,\"accepted\":false}\n", i);
	assert_int_equal(io_write_file(support_path(folder, "versions.jsonl"), text.text, text.len, NULL), 0);
	v = open_folder(folder);
	add(v, VERSIONS_MAX + 6, false, UINT32_MAX);
	assert_int_equal(versions_current(v), 1); /* a thousand attempts later */
	assert_int_equal(versions_list(v, list, VERSIONS_MAX + 10), VERSIONS_MAX);
	assert_true(list[0].number == 1 && list[VERSIONS_MAX - 1].number == VERSIONS_MAX + 6);
	versions_free(v);
	v = open_folder(folder);
	assert_int_equal(versions_list(v, list, VERSIONS_MAX + 10), VERSIONS_MAX);
	assert_int_equal(versions_current(v), 1);
	versions_free(v);
	strbuf_release(&text);
	free(list);
}

TEST(test_failures_are_told_and_change_nothing)
{
	const char *folder = fresh_folder();
	struct versions *v = open_folder(folder);
	struct model_version one = { .number = 2, .rolled_back_to = UINT32_MAX }, list[4];
	bool failed = true;

	add(v, 1, true, UINT32_MAX);
	for (unsigned long k = 1; failed; k++) {
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = versions_add(v, &one, &err);
		failed = mem_failed();
		mem_fail_at(0, false);
		if (rc)
			assert_int_equal(versions_list(v, list, 4), 1);
		one.number += !rc;
	}
	for (unsigned long k = 1; k <= 4; k++) { /* the folder, the file, write, fsync */
		struct err err = { 0 };

		io_fail_at(k, 28 /* ENOSPC */);
		assert_int_equal(versions_add(v, &one, &err), -ERR_IO);
		io_fail_at(0, 0);
		assert_true(err.text[0]);
	}
	assert_int_equal(versions_list(v, list, 4), 2);
	versions_free(v);
	failed = true;
	for (unsigned long k = 1; failed; k++) {
		int rc;

		mem_fail_at(k, false);
		v = NULL;
		rc = versions_open(folder, &v, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		versions_free(v);
	}
	assert_int_equal(versions_open("/proc/nowhere/models", &v, NULL), -ERR_IO);
}
