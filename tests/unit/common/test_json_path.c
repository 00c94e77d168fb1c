/* common/json_path: the value a path of names leads to, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/json/path.h"

/* The number at a path of a document; NaN: none is there. */
static double number_at(const char *text, const char *path)
{
	struct json *v;
	struct err err = { 0 };
	double found;

	if (json_parse("t", text, strlen(text), &v, &err))
		fail_msg("%s", err.text);
	found = json_number(json_path(v, path), NAN);
	json_free(v);
	return found;
}

static void test_path_leads_into_members(void **state)
{
	(void)state;
	assert_true(number_at("{\"accuracy\":0.91}", "accuracy") == 0.91);
	assert_true(number_at("{\"test\":{\"top\":{\"1\":0.37}}}", "test.top.1") == 0.37);
}

static void test_member_with_dots_in_its_name_goes_first(void **state)
{
	(void)state;
	assert_true(number_at("{\"a\":{\"b\":2.5},\"a.b\":7.5}", "a.b") == 7.5);
}

static void test_path_that_leads_nowhere_gives_nothing(void **state)
{
	(void)state;
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a.c")));
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a.b.c")));
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a")));
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a..b")));
	assert_true(isnan(number_at("[1,2]", "a")));
	assert_true(isnan(number_at("3", "a")));
	assert_null(json_path(NULL, "a.b"));
}

static void test_name_longer_than_the_limit_gives_nothing(void **state)
{
	char text[JSON_PATH_MAX_NAME + 32], path[JSON_PATH_MAX_NAME + 8];

	(void)state;
	for (size_t len = JSON_PATH_MAX_NAME; len <= JSON_PATH_MAX_NAME + 1; len++) {
		memset(path, 'n', len);
		path[len] = '\0';
		strcpy(text, "{\"");
		strcat(text, path);
		strcat(text, "\":{\"x\":1.5}}");
		strcpy(path + len, ".x");
		assert_int_equal(isnan(number_at(text, path)), len > JSON_PATH_MAX_NAME);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path_leads_into_members),
		cmocka_unit_test(test_member_with_dots_in_its_name_goes_first),
		cmocka_unit_test(test_path_that_leads_nowhere_gives_nothing),
		cmocka_unit_test(test_name_longer_than_the_limit_gives_nothing),
	};

	return cmocka_run_group_tests_name("json_path", tests, NULL, NULL);
}
