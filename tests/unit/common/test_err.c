/* common/err: the code travels, the text reads as a sentence, long texts are cut and not overrun. */
#include <string.h>

#include "common/err.h"
#include "tests/support/test.h"

TEST(test_err_fail_returns_the_negative_code)
{
	struct err err = { 0 };

	assert_int_equal(err_fail(&err, ERR_UNSTABLE, "load %.3f leaves no steady state", 1.037),
			 -ERR_UNSTABLE);
	assert_int_equal(err.code, ERR_UNSTABLE);
	assert_string_equal(err.text, "load 1.037 leaves no steady state");
}

TEST(test_err_fail_works_for_a_caller_who_does_not_listen)
{
	assert_int_equal(err_fail(NULL, ERR_IO, "nobody reads this: %d", 7), -ERR_IO);
}

TEST(test_err_nomem_says_what_the_memory_was_for)
{
	struct err err = { 0 };

	assert_int_equal(err_nomem(&err, "%d rows", 7), -ERR_NOMEM);
	assert_string_equal(err.text, "out of memory for 7 rows");
	assert_int_equal(err_nomem(&err, NULL), -ERR_NOMEM);
	assert_string_equal(err.text, "out of memory");
	assert_int_equal(err_nomem(NULL, "nothing"), -ERR_NOMEM);
}

TEST(test_err_fail_cuts_a_text_that_does_not_fit)
{
	struct err err = { 0 };
	char much[2000];

	memset(much, 'x', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	err_fail(&err, ERR_FORMAT, "%s", much);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

TEST(test_err_prefix_goes_before_the_text)
{
	struct err err = { 0 };

	err_fail(&err, ERR_FORMAT, "column 3 has no name");
	assert_int_equal(err_prefix(&err, "table %d", 17), -ERR_FORMAT);
	assert_string_equal(err.text, "table 17: column 3 has no name");
	assert_int_equal(err.code, ERR_FORMAT);
	assert_int_equal(err_prefix(NULL, "nobody"), -ERR_ARG);
}

TEST(test_err_prefix_never_overruns)
{
	struct err err = { 0 };
	char much[600];

	memset(much, 'y', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	err_fail(&err, ERR_IO, "%s", much);
	err_prefix(&err, "%s", much);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	err_fail(&err, ERR_IO, "short");
	/* one byte left: room for the colon, not for its blank */
	err_prefix(&err, "%.*s", (int)sizeof err.text - 2, much);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

TEST(test_err_exit_codes_tell_kinds_apart)
{
	assert_int_equal(err_exit_code(ERR_NONE), 0);
	assert_int_equal(err_exit_code(ERR_ARG), 2);
	assert_int_equal(err_exit_code(ERR_NOTFOUND), 4);
	assert_int_equal(err_exit_code(ERR_FORMAT), 6);
	assert_int_equal(err_exit_code(ERR_PERM), 7);
	assert_int_equal(err_exit_code(ERR_BUSY), 8);
	assert_int_equal(err_exit_code(ERR_NOMEM), 1);
	assert_int_equal(err_exit_code(ERR_IO), 1);
	assert_int_equal(err_exit_code(ERR_NODATA), 1);
	assert_int_equal(err_exit_code((enum err_code)99), 1);
}
