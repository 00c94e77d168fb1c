/* common/json_path: the value a path of names leads to, or none. */
#include <math.h>
#include <string.h>

#include "common/json/path.h"
#include "tests/support/test.h"

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

TEST(test_path_leads_into_members)
{
	assert_true(number_at("{\"accuracy\":0.91}", "accuracy") == 0.91);
	assert_true(number_at("{\"test\":{\"top\":{\"1\":0.37}}}", "test.top.1") == 0.37);
}

TEST(test_member_with_dots_in_its_name_goes_first)
{
	assert_true(number_at("{\"a\":{\"b\":2.5},\"a.b\":7.5}", "a.b") == 7.5);
}

TEST(test_path_that_leads_nowhere_gives_nothing)
{
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a.c")));
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a.b.c")));
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a")));
	assert_true(isnan(number_at("{\"a\":{\"b\":2.5}}", "a..b")));
	assert_true(isnan(number_at("[1,2]", "a")));
	assert_true(isnan(number_at("3", "a")));
	assert_null(json_path(NULL, "a.b"));
}

TEST(test_name_longer_than_the_limit_gives_nothing)
{
	char text[JSON_PATH_MAX_NAME + 32], path[JSON_PATH_MAX_NAME + 8];

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
