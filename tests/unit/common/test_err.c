/* common/err: the code travels, the text reads as a sentence, long texts are cut and not overrun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/err.h"

static void test_err_fail_returns_the_negative_code(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_fail(&err, ERR_UNSTABLE, "load %.3f leaves no steady state", 1.037),
			 -ERR_UNSTABLE);
	assert_int_equal(err.code, ERR_UNSTABLE);
	assert_string_equal(err.text, "load 1.037 leaves no steady state");
}

static void test_err_fail_works_for_a_caller_who_does_not_listen(void **state)
{
	(void)state;
	assert_int_equal(err_fail(NULL, ERR_IO, "nobody reads this: %d", 7), -ERR_IO);
}

static void test_err_nomem_says_what_the_memory_was_for(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_nomem(&err, "%d rows", 7), -ERR_NOMEM);
	assert_string_equal(err.text, "out of memory for 7 rows");
	assert_int_equal(err_nomem(&err, NULL), -ERR_NOMEM);
	assert_string_equal(err.text, "out of memory");
	assert_int_equal(err_nomem(NULL, "nothing"), -ERR_NOMEM);
}

static void test_err_fail_cuts_a_text_that_does_not_fit(void **state)
{
	struct err err = { 0 };
	char much[2000];

	(void)state;
	memset(much, 'x', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	err_fail(&err, ERR_FORMAT, "%s", much);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void test_err_prefix_goes_before_the_text(void **state)
{
	struct err err = { 0 };

	(void)state;
	err_fail(&err, ERR_FORMAT, "column 3 has no name");
	assert_int_equal(err_prefix(&err, "table %d", 17), -ERR_FORMAT);
	assert_string_equal(err.text, "table 17: column 3 has no name");
	assert_int_equal(err.code, ERR_FORMAT);
	assert_int_equal(err_prefix(NULL, "nobody"), -ERR_ARG);
}

static void test_err_prefix_never_overruns(void **state)
{
	struct err err = { 0 };
	char much[600];

	(void)state;
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

static void test_err_exit_codes_tell_kinds_apart(void **state)
{
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_fail_returns_the_negative_code),
		cmocka_unit_test(test_err_fail_works_for_a_caller_who_does_not_listen),
		cmocka_unit_test(test_err_nomem_says_what_the_memory_was_for),
		cmocka_unit_test(test_err_fail_cuts_a_text_that_does_not_fit),
		cmocka_unit_test(test_err_prefix_goes_before_the_text),
		cmocka_unit_test(test_err_prefix_never_overruns),
		cmocka_unit_test(test_err_exit_codes_tell_kinds_apart),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
