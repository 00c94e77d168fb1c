/* common/json: what RFC 8259 allows is read, everything else is refused with its place. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/support/support.h"
#include "tests/support/test.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	io_fail_at(0, 0);
	return 0;
}

static struct json *parse(const char *text)
{
	struct json *v = NULL;
	struct err err = { 0 };

	if (json_parse("t", text, strlen(text), &v, &err))
		fail_msg("%s refused: %s", text, err.text);
	return v;
}

/* The text must be refused with exactly this error. */
static void refuse_bytes(const char *text, size_t len, const char *want)
{
	struct json *v = NULL;
	struct err err = { 0 };
	/* A buffer of exactly this size, so that a sanitizer sees a read past its end. */
	char *exact = malloc(len ? len : 1);

	assert_non_null(exact);
	memcpy(exact, text, len);
	assert_int_equal(json_parse("t", exact, len, &v, &err), -ERR_FORMAT);
	assert_int_equal(err.code, ERR_FORMAT);
	assert_string_equal(err.text, want);
	assert_null(v);
	free(exact);
}

static void refuse(const char *text, const char *want)
{
	refuse_bytes(text, strlen(text), want);
}

/* ---- reading ---- */

TEST_WITH(test_json_reads_every_kind_of_value, NULL, disarm)
{
	struct json *root = parse(" {\"n\": null, \"t\":true,\"f\":false,\n\"x\":-2.37e2,\"s\":\"a "
				  "b\",\"a\":[1,2.5],\"o\":{}}\r\n\t");
	const struct json *v;

	assert_int_equal(json_type(root), JSON_OBJECT);
	assert_int_equal(json_size(root), 7);
	assert_int_equal(json_type(json_get(root, "n")), JSON_NULL);
	assert_true(json_bool(json_get(root, "t"), false));
	assert_false(json_bool(json_get(root, "f"), true));
	assert_true(json_number(json_get(root, "x"), 0.0) == -237.0);
	assert_string_equal(json_string(json_get(root, "s"), ""), "a b");
	v = json_get(root, "a");
	assert_int_equal(json_type(v), JSON_ARRAY);
	assert_int_equal(json_size(v), 2);
	assert_true(json_number(json_at(v, 1), 0.0) == 2.5);
	assert_null(json_at(v, 2));
	assert_int_equal(json_type(json_get(root, "o")), JSON_OBJECT);
	assert_int_equal(json_size(json_get(root, "o")), 0);
	json_free(root);
}

TEST_WITH(test_json_absent_is_allowed_everywhere, NULL, disarm)
{
	struct json *root = parse("{\"a\":1}");

	assert_int_equal(json_type(NULL), JSON_ABSENT);
	assert_null(json_get(NULL, "k"));
	assert_null(json_get(root, "A")); /* case matters */
	assert_null(json_get(json_get(root, "a"), "k"));
	assert_null(json_first(NULL));
	assert_null(json_next(NULL));
	assert_null(json_key(NULL));
	assert_null(json_at(NULL, 0));
	assert_int_equal(json_size(NULL), 0);
	assert_int_equal(json_size(json_get(root, "a")), 0);
	assert_true(json_bool(NULL, true));
	assert_true(json_bool(json_get(root, "a"), true)); /* 1 is no boolean */
	assert_true(json_number(NULL, 4.25) == 4.25);
	assert_true(json_number(root, 4.25) == 4.25);
	assert_string_equal(json_string(json_get(root, "a"), "other"), "other");
	assert_null(json_string(NULL, NULL));
	json_free(root);
	json_free(NULL);
}

TEST_WITH(test_json_walking_visits_members_in_order, NULL, disarm)
{
	struct json *root = parse("{\"z\":1,\"y\":2,\"x\":3,\"\":4}");
	char keys[8] = "";
	double sum = 0.0;

	for (const struct json *v = json_first(root); v; v = json_next(v)) {
		strcat(keys, json_key(v));
		sum = sum * 10.0 + json_number(v, NAN);
	}
	assert_string_equal(keys, "zyx");
	assert_true(sum == 1234.0);
	assert_true(json_number(json_get(root, ""), 0.0) == 4.0);
	assert_string_equal(json_key(json_at(root, 1)), "y");
	json_free(root);
	root = parse("[7]");
	assert_null(json_key(json_first(root)));
	assert_null(json_get(root, "x"));
	json_free(root);
}

TEST_WITH(test_json_any_value_may_be_the_whole_text, NULL, disarm)
{
	static const char *const good[] = { "0",       "-0",      "\"\"", "true", "false",        "null",
					    "[]",      "{}",      " 1 ",  "1e-7", "[[],{},[{}]]", "\"\x7f\"",
					    "[1 , 2]", "0.10E+01" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		json_free(parse(good[i]));
}

TEST_WITH(test_json_decodes_every_escape, NULL, disarm)
{
	struct json *v = parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"");

	assert_string_equal(json_string(v, ""), "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	json_free(v);
}

TEST_WITH(test_json_numbers_are_exact, NULL, disarm)
{
	struct json *v = parse("[0.1,1e308,-1.7976931348623157e308,5e-324,1e-400,9007199254740993]");

	assert_true(json_number(json_at(v, 0), 0) == 0.1);
	assert_true(json_number(json_at(v, 1), 0) == 1e308);
	assert_true(json_number(json_at(v, 2), 0) == -DBL_MAX);
	assert_true(json_number(json_at(v, 3), 0) == 5e-324);
	assert_true(json_number(json_at(v, 4), 1) == 0.0);
	assert_true(json_number(json_at(v, 5), 0) == 9007199254740992.0); /* doubles end here */
	json_free(v);
}

TEST_WITH(test_json_errors_name_line_and_column, NULL, disarm)
{
	refuse("", "t:1:1: the text ends where a value was expected");
	refuse("  \n ", "t:2:2: the text ends where a value was expected");
	refuse("{\n  \"a\": 1,\n  \"b\": tru\n}", "t:3:8: 't' where a value was expected");
	/* columns count characters: the e with its accent is one */
	refuse("[\"\xc3\xa9\xe2\x82\xac\" x]", "t:1:7: 'x' where ',' or ']' was expected");
	refuse("{\"a\" 1}", "t:1:6: '1' where ':' was expected");
	refuse("{\"a\":1 \"b\":2}", "t:1:8: '\"' where ',' or '}' was expected");
	refuse("{a:1}", "t:1:2: 'a' where a key in quotes was expected");
	refuse("{\"a\":1,}", "t:1:8: '}' where a key in quotes was expected");
	refuse("[1,]", "t:1:4: ']' where a value was expected");
	refuse("[1", "t:1:3: the text ends where ',' or ']' was expected");
	refuse("{\"a\":1", "t:1:7: the text ends where ',' or '}' was expected");
	refuse("{", "t:1:2: the text ends where a key in quotes was expected");
	refuse("1 2", "t:1:3: '2' where the end of the text was expected");
	refuse("{}\n}", "t:2:1: '}' where the end of the text was expected");
	refuse("nul", "t:1:1: 'n' where a value was expected");
	refuse("truex", "t:1:5: 'x' where the end of the text was expected");
	refuse("// no comments\n1", "t:1:1: '/' where a value was expected");
	refuse("['a']", "t:1:2: ''' where a value was expected");
	refuse("\v1", "t:1:1: byte 0x0b where a value was expected");
	refuse("\xef\xbb\xbf{}", "t:1:1: starts with a byte-order mark: save it as UTF-8 without one");
}

TEST_WITH(test_json_refuses_numbers_in_other_notations, NULL, disarm)
{
	refuse("01", "t:1:1: a number must not start with a needless 0");
	refuse("-01", "t:1:1: a number must not start with a needless 0");
	refuse("+1", "t:1:1: '+' where a value was expected");
	refuse(".5", "t:1:1: '.' where a value was expected");
	refuse("5.", "t:1:3: the text ends where a digit was expected");
	refuse("[5.]", "t:1:4: ']' where a digit was expected");
	refuse("-", "t:1:2: the text ends where a digit was expected");
	refuse("1e", "t:1:3: the text ends where a digit was expected");
	refuse("1e+", "t:1:4: the text ends where a digit was expected");
	refuse("0x1", "t:1:2: 'x' where the end of the text was expected");
	refuse("NaN", "t:1:1: 'N' where a value was expected");
	refuse("-Infinity", "t:1:2: 'I' where a digit was expected");
	refuse("1e309", "t:1:1: 1e309 is too large for a double");
	refuse("[-1e999]", "t:1:2: -1e999 is too large for a double");
}

TEST_WITH(test_json_numbers_end_at_63_characters, NULL, disarm)
{
	char text[80];
	struct json *v;

	memset(text, '3', sizeof text);
	text[1] = '.';
	text[63] = '\0';
	v = parse(text);
	assert_true(json_number(v, 0) == strtod(text, NULL));
	json_free(v);
	text[63] = '3';
	text[64] = '\0';
	refuse(text, "t:1:1: a number of 64 characters: at most 63 are allowed");
}

TEST_WITH(test_json_refuses_bad_strings, NULL, disarm)
{
	refuse("\"abc", "t:1:1: the string that starts here is not closed");
	refuse("[\"abc\n", "t:1:6: control character 0x0a inside a string: write it as \\u000a");
	refuse("\"a\tb\"", "t:1:3: control character 0x09 inside a string: write it as \\u0009");
	refuse("\"\\x\"", "t:1:3: 'x' where one of \"\\/bfnrtu after a backslash was expected");
	refuse("\"\\", "t:1:3: the text ends where one of \"\\/bfnrtu after a backslash was expected");
	refuse("\"\\u12", "t:1:6: the text ends where a hexadecimal digit was expected");
	refuse("\"\\u12g4\"", "t:1:6: 'g' where a hexadecimal digit was expected");
	refuse("\"a\\u0000\"", "t:1:3: \\u0000 is not allowed in a string");
	refuse_bytes("\"a\0b\"", 5, "t:1:3: a NUL byte inside a string");
	refuse_bytes("1\0", 2, "t:1:2: a NUL byte where the end of the text was expected");
	refuse_bytes("\"\\\0\"", 4,
		     "t:1:3: a NUL byte where one of \"\\/bfnrtu after a backslash was expected");
}

TEST_WITH(test_json_refuses_lone_surrogates, NULL, disarm)
{
	refuse("\"\\ud83d\"", "t:1:2: \\ud83d is half of a surrogate pair without its second");
	refuse("\"\\ud83d\\u0041\"", "t:1:2: \\ud83d is half of a surrogate pair without its second");
	refuse("\"\\ud83d\\ud83d\"", "t:1:2: \\ud83d is half of a surrogate pair without its second");
	refuse("\"\\ud83dx\"", "t:1:2: \\ud83d is half of a surrogate pair without its second");
	refuse("\"\\ud83d\\n\"", "t:1:2: \\ud83d is half of a surrogate pair without its second");
	refuse("\"\\ude00\"", "t:1:2: \\ude00 is the second half of a surrogate pair without its first");
	refuse("{\"\\udfff\":1}", "t:1:3: \\udfff is the second half of a surrogate pair without its first");
}

TEST_WITH(test_json_refuses_malformed_utf8, NULL, disarm)
{
	static const char *const bad[] = {
		"\x80", /* a tail without a head */
		"\xc3", /* a head without a tail */
		"\xc0\xaf", /* overlong '/' */
		"\xc1\xbf", /* overlong */
		"\xe0\x9f\xbf", /* overlong */
		"\xf0\x8f\xbf\xbf", /* overlong */
		"\xed\xa0\x80", /* U+D800 */
		"\xed\xbf\xbf", /* U+DFFF */
		"\xf4\x90\x80\x80", /* U+110000 */
		"\xf5\x80\x80\x80",
		"\xff",
		"\xe2\x82",
		"\xe2(\xa1",
		"\xf0\x9f\x98",
	};
	char text[16], want[80];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "\"a%s\"", bad[i]);
		snprintf(want, sizeof want, "t:1:3: byte 0x%02x is not valid UTF-8 here",
			 (unsigned char)bad[i][0]);
		refuse(text, want);
		refuse_bytes(text, strlen(text) - 1, want); /* and where the text ends inside it */
	}
}

TEST_WITH(test_json_takes_the_outermost_characters_of_utf8, NULL, disarm)
{
	struct json *v = parse(
		"\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"");

	assert_int_equal(strlen(json_string(v, "")), 2 + 2 + 3 + 3 + 3 + 4 + 4);
	json_free(v);
}

TEST_WITH(test_json_nests_32_deep_and_no_deeper, NULL, disarm)
{
	char text[200];
	struct json *v;
	size_t n = 0;

	memset(text, '[', 32);
	memset(text + 32, ']', 32);
	text[64] = '\0';
	json_free(parse(text));
	memset(text, '[', 33);
	memset(text + 33, ']', 33);
	text[66] = '\0';
	refuse(text, "t:1:33: nested deeper than 32 levels");
	for (int i = 0; i < 32; i++)
		n += (size_t)sprintf(text + n, i < 31 ? "{\"\":" : "{");
	for (int i = 0; i < 32; i++)
		text[n++] = '}';
	text[n] = '\0';
	v = parse(text);
	json_free(v);
	/* beside each other is not inside each other */
	json_free(parse("[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]"
			",[],[],[],[],[],[]]"));
}

TEST_WITH(test_json_refuses_a_million_brackets_quickly, NULL, disarm)
{
	char *text = malloc(1000000);
	struct json *v = NULL;
	struct err err = { 0 };

	assert_non_null(text);
	memset(text, '[', 1000000);
	assert_int_equal(json_parse("t", text, 1000000, &v, &err), -ERR_FORMAT);
	free(text);
}

TEST_WITH(test_json_refuses_duplicate_keys, NULL, disarm)
{
	refuse("{\"a\":1,\"b\":2,\"a\":3}", "t:1:14: key 'a' appears twice");
	refuse("{\"a\":1,\n\"\\u0061\":3}", "t:2:1: key 'a' appears twice"); /* equal once decoded */
	refuse("{\"\":1,\"\":2}", "t:1:7: key '' appears twice");
	refuse("{\"x\":{\"k\":1,\"l\":2,\"k\":3}}", "t:1:19: key 'k' appears twice");
	refuse("{\"k\":{\"k\":1},\"l\":[{\"k\":1}],\"k\":2}", "t:1:28: key 'k' appears twice");
	/* of several, the first that repeats */
	refuse("{\"b\":0,\"a\":0,\"a\":0,\"b\":0,\"a\":0}", "t:1:14: key 'a' appears twice");
	refuse("{\"\\u001b[2J\":1,\"\\u001b[2J\":1}", "t:1:16: key '\\x1b[2J' appears twice");
}

TEST_WITH(test_json_keys_that_only_look_alike_are_different, NULL, disarm)
{
	json_free(parse("{\"a\":1,\"A\":2,\"a \":3,\"\\u00e0\":4,\"aa\":5,\"\":6}"));
	/* the same key in different objects */
	json_free(parse("{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}"));
}

TEST_WITH(test_json_looks_for_duplicates_among_many_keys_without_trouble, NULL, disarm)
{
	enum { N_KEYS = 200000 };
	struct strbuf text = { 0 };
	struct json *v = NULL;
	struct err err = { 0 };
	clock_t start;

	strbuf_puts(&text, "{\"k0\":0");
	for (int i = 1; i < N_KEYS; i++)
		strbuf_printf(&text, ",\"key%07d\":%d", i, i);
	strbuf_puts(&text, "}");
	assert_false(text.failed);
	start = clock();
	assert_int_equal(json_parse("t", text.text, text.len, &v, &err), 0);
	/* all pairs would take minutes; the limit is loose for sanitizers on slow machines */
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10.0);
	assert_int_equal(json_size(v), N_KEYS);
	json_free(v);
	v = NULL;
	text.len--;
	strbuf_puts(&text, ",\"key0000077\":0}");
	assert_int_equal(json_parse("t", text.text, text.len, &v, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "key 'key0000077' appears twice"));
	strbuf_release(&text);
}

TEST_WITH(test_json_errors_stay_readable_for_long_names, NULL, disarm)
{
	char name[1000];
	struct json *v = NULL;
	struct err err = { 0 };

	memset(name, 'n', sizeof name);
	strcpy(name + sizeof name - 12, "/model.json");
	assert_int_equal(json_parse(name, "[", 1, &v, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "/model.json:1:2: the text ends"));
	assert_int_equal(json_parse("t", "[", 1, &v, NULL), -ERR_FORMAT);
}

TEST_WITH(test_json_survives_every_failed_allocation, NULL, disarm)
{
	struct strbuf text = { 0 };
	unsigned long k;

	/* A tree takes blocks that double, and so do the keys of open objects beyond the first few. */
	strbuf_puts(&text, "{\"name\":\"caf\\u00e9\",\"list\":[1,2.5,{\"deep\":null,\"k\\u00e9y\":\"v\"}]");
	for (int i = 0; i < 3000; i++)
		strbuf_printf(&text, ",\"\\u0061 key long enough to fill a buffer %d\":%d", i, i);
	strbuf_puts(&text, "}");
	assert_false(text.failed);
	for (k = 1;; k++) {
		struct json *v = NULL;
		struct err err = { 0 };
		int rc;

		mem_fail_at(k, false);
		rc = json_parse("t", text.text, text.len, &v, &err);
		if (!mem_failed()) {
			assert_int_equal(rc, 0);
			assert_true(json_number(json_get(v, "a key long enough to fill a buffer 77"), 0) ==
				    77);
			json_free(v);
			break;
		}
		assert_int_equal(rc, -ERR_NOMEM);
		assert_int_equal(err.code, ERR_NOMEM);
		assert_null(v);
	}
	assert_true(k > 10);
	strbuf_release(&text);
}

TEST_WITH(test_json_tree_of_a_request_is_one_allocation, NULL, disarm)
{
	static const char text[] =
		"{\"v\":1,\"op\":\"predict\",\"id\":\"7\\n\",\"params\":{\"network\":\"lenet5\","
		"\"epochs\":4},\"batches\":[64,128,[],{},\"\",null],\"\":true}";
	struct json *v = NULL;

	mem_fail_at(2, true);
	assert_int_equal(json_parse("t", text, strlen(text), &v, NULL), 0);
	assert_false(mem_failed());
	assert_string_equal(json_string(json_get(v, "id"), ""), "7\n");
	json_free(v);
}

/* Values of every shape: the estimate of a tree's memory must hold for all of them, or it takes two
 * blocks. */
TEST_WITH(test_json_room_for_a_tree_is_never_too_small, NULL, disarm)
{
	static const char *const piece[] = { "1",
					     "\"\"",
					     "\"a\"",
					     "\"1234567\"",
					     "\"12345678\"",
					     "null",
					     "[]",
					     "{}",
					     "[[[0]]]",
					     "{\"\":\"\"}",
					     "true",
					     "\"\\u0041\"",
					     "{\"abcdefg\":1}",
					     "\"\xe2\x82\xac\"" };
	enum { N_PIECES = sizeof piece / sizeof *piece };
	struct rng r = rng_stream(4711, 0);
	struct strbuf text = { 0 };

	for (int i = 0; i < 2000; i++) {
		size_t n = rng_next(&r) % 40;
		struct json *v = NULL;

		strbuf_reset(&text);
		strbuf_puts(&text, "[0");
		for (size_t j = 0; j < n; j++)
			strbuf_printf(&text, ",%s", piece[rng_next(&r) % N_PIECES]);
		strbuf_puts(&text, "]");
		mem_fail_at(2, true);
		assert_int_equal(json_parse("t", text.text, text.len, &v, NULL), 0);
		assert_int_equal(json_size(v), n + 1);
		json_free(v);
		mem_fail_at(0, false);
	}
	strbuf_release(&text);
}

TEST_WITH(test_json_long_keys_that_appear_twice_are_cut_in_the_message, NULL, disarm)
{
	struct strbuf text = { 0 };
	struct json *v = NULL;
	struct err err = { 0 };

	strbuf_puts(&text, "{");
	for (int i = 0; i < 2; i++) {
		strbuf_puts(&text, i ? ",\"" : "\"");
		for (int j = 0; j < 300; j++)
			strbuf_puts(&text, "k");
		strbuf_puts(&text, "\":1");
	}
	strbuf_puts(&text, "}");
	assert_int_equal(json_parse("t", text.text, text.len, &v, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "t:1:307: key 'kkkk"));
	assert_non_null(strstr(err.text, "...' appears twice"));
	strbuf_release(&text);
}

/* Up to 16 keys are compared pair by pair, more are sorted: both find the same one. */
TEST_WITH(test_json_duplicates_are_found_at_any_number_of_keys, NULL, disarm)
{
	struct strbuf text = { 0 };

	for (int n = 2; n < 40; n++) {
		for (int again = 0; again < n - 1; again++) {
			struct json *v = NULL;
			struct err err = { 0 };
			char want[64];
			size_t at = 0;

			strbuf_reset(&text);
			for (int i = 0; i < n; i++) {
				strbuf_puts(&text, i ? "," : "{");
				at = text.len;
				strbuf_printf(&text, i % 2 ? "\"k%02d\":1" : "\"\\u006b%02d\":1",
					      i == n - 1 ? again : i);
			}
			strbuf_puts(&text, "}");
			assert_int_equal(json_parse("t", text.text, text.len, &v, &err), -ERR_FORMAT);
			snprintf(want, sizeof want, "t:1:%zu: key 'k%02d' appears twice", at + 1, again);
			assert_string_equal(err.text, want);
		}
	}
	strbuf_release(&text);
}

TEST_WITH(test_json_reads_files_with_a_limit, NULL, disarm)
{
	const char *path = support_path(support_temp_dir(), "value.json");
	struct json *v = NULL;
	struct err err = { 0 };

	assert_int_equal(io_write_file(path, "{\"a\":17}\n", 9, &err), 0);
	assert_int_equal(json_read_file(path, 9, &v, &err), 0);
	assert_true(json_number(json_get(v, "a"), 0) == 17);
	json_free(v);
	v = NULL;
	assert_int_equal(json_read_file(path, 8, &v, &err), -ERR_FORMAT);
	assert_int_equal(json_read_file(support_path(support_temp_dir(), "no.json"), 8, &v, &err),
			 -ERR_NOTFOUND);
	assert_int_equal(io_write_file(path, "{\n\"a\":}", 7, &err), 0);
	assert_int_equal(json_read_file(path, 100, &v, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "value.json:2:5: '}' where a value was expected"));
	assert_null(v);
	unlink(path);
}

TEST_WITH(test_json_known_keys_suggests_what_was_meant, NULL, disarm)
{
	static const char *const known[] = { "trees", "depth", "rate", NULL };
	struct json *good = parse("{\"depth\":3,\"trees\":61}"), *typo = parse("{\"trees\":1,\"dept\":3}");
	struct json *odd = parse("{\"\\u001bzzzzzzzz\":1}"), *list = parse("[]");
	struct err err = { 0 };

	assert_int_equal(json_known_keys(good, "settings", known, &err), 0);
	assert_int_equal(json_known_keys(typo, "settings", known, &err), -ERR_FORMAT);
	assert_string_equal(err.text, "settings: unknown key 'dept'; did you mean 'depth'?");
	assert_int_equal(json_known_keys(odd, "settings", known, &err), -ERR_FORMAT);
	assert_string_equal(err.text, "settings: unknown key '\\x1bzzzzzzzz'");
	assert_int_equal(json_known_keys(list, "settings", known, &err), -ERR_FORMAT);
	assert_int_equal(json_known_keys(NULL, "settings", known, &err), -ERR_FORMAT);
	json_free(good);
	json_free(typo);
	json_free(odd);
	json_free(list);
}

/* ---- writing ---- */

static void write_sample(struct strbuf *out, bool pretty)
{
	struct json_writer w;

	json_begin(&w, out, pretty);
	json_open(&w, '{');
	json_kv_string(&w, "name", "x");
	json_kv_int(&w, "n", LLONG_MIN);
	json_kv_open(&w, "list", '[');
	json_put_number(&w, 2.37);
	json_put_null(&w);
	json_open(&w, '{');
	json_close(&w, '}');
	json_open(&w, '[');
	json_close(&w, ']');
	json_close(&w, ']');
	json_kv_bool(&w, "yes", true);
	json_kv_number(&w, "none", NAN);
	json_close(&w, '}');
}

TEST_WITH(test_json_writer_puts_commas_and_brackets, NULL, disarm)
{
	struct strbuf out = { 0 };

	write_sample(&out, false);
	assert_string_equal(out.text, "{\"name\":\"x\",\"n\":-9223372036854775808,\"list\":[2.37,null,{},[]],"
				      "\"yes\":true,\"none\":null}");
	strbuf_release(&out);
}

TEST_WITH(test_json_writer_indents_by_two, NULL, disarm)
{
	struct strbuf out = { 0 };

	write_sample(&out, true);
	assert_string_equal(out.text, "{\n"
				      "  \"name\": \"x\",\n"
				      "  \"n\": -9223372036854775808,\n"
				      "  \"list\": [\n"
				      "    2.37,\n"
				      "    null,\n"
				      "    {},\n"
				      "    []\n"
				      "  ],\n"
				      "  \"yes\": true,\n"
				      "  \"none\": null\n"
				      "}");
	json_free(parse(out.text));
	strbuf_release(&out);
}

TEST_WITH(test_json_writer_writes_lone_values, NULL, disarm)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, true);
	json_put_bool(&w, false);
	assert_string_equal(out.text, "false");
	strbuf_reset(&out);
	json_begin(&w, &out, true);
	json_put_string(&w, NULL);
	assert_string_equal(out.text, "null");
	strbuf_release(&out);
}

TEST_WITH(test_json_writer_never_writes_nan_or_infinity, NULL, disarm)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY };
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	json_open(&w, '[');
	for (int i = 0; i < 3; i++)
		json_put_number(&w, odd[i]);
	json_close(&w, ']');
	assert_string_equal(out.text, "[null,null,null]");
	strbuf_release(&out);
}

TEST_WITH(test_json_writer_escapes_what_must_be, NULL, disarm)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	const char *volatile key = "q\"\\"; /* no literal to the compiler: those are not escaped */

	json_begin(&w, &out, false);
	json_open(&w, '{');
	json_kv_string(&w, key, "\n\r\t\x01\x1f\x7f/\xe2\x82\xac");
	json_close(&w, '}');
	assert_string_equal(out.text, "{\"q\\\"\\\\\":\"\\n\\r\\t\\u0001\\u001f\x7f/\xe2\x82\xac\"}");
	strbuf_release(&out);
}

/* A string, a number and a truth, each under a key of its own; as pairs, or as keys and values. */
static void write_pairs(struct strbuf *out, bool pretty, bool pairs, const char *key, const char *s, double v)
{
	struct json_writer w;
	char name[3][40];

	for (int i = 0; i < 3; i++)
		snprintf(name[i], sizeof name[i], "%s%.*s", key, i, "-+");
	json_begin(&w, out, pretty);
	json_open(&w, '{');
	if (pairs) {
		json_kv_string(&w, name[0], s);
		json_kv_fixed(&w, name[1], v, 3);
		json_kv_bool(&w, name[2], s);
	} else {
		json_put_key(&w, name[0]);
		json_put_string(&w, s);
		json_put_key(&w, name[1]);
		json_put_fixed(&w, v, 3);
		json_put_key(&w, name[2]);
		json_put_bool(&w, s);
	}
	json_close(&w, '}');
	assert_int_equal(out->len, strlen(out->text));
}

/* Keys that the compiler knows are written at once where there is room: the same text as by pieces, in a
 * buffer with any number of bytes left. */
TEST_WITH(test_json_literal_keys_are_as_others, NULL, disarm)
{
	static const char want[] =
		"{\"name\":\"x\",\"none\":null,\"n\":-7,\"at\":{\"time_s\":1.191167,"
		"\"nan\":null,\"big\":12345678901.5},\"list\":[],\"yes\":true,\"no\":false}";

	for (size_t room = 1; room <= sizeof want + 64; room++) {
		struct strbuf out = { 0 };
		struct json_writer w;
		char blank[256] = "";

		memset(blank, ' ', sizeof blank - 1);
		strbuf_add(&out, blank, sizeof blank - 1);
		while (out.cap - out.len > room)
			strbuf_puts(&out, " ");
		json_begin(&w, &out, false);
		json_open(&w, '{');
		json_kv_string(&w, "name", "x");
		json_kv_string(&w, "none", NULL);
		json_kv_int(&w, "n", -7);
		json_kv_open(&w, "at", '{');
		json_kv_fixed(&w, "time_s", 1.1911671, 6);
		json_kv_fixed(&w, "nan", NAN, 6);
		json_kv_fixed(&w, "big", 12345678901.5, 6);
		json_close(&w, '}');
		json_kv_open(&w, "list", '[');
		json_close(&w, ']');
		json_kv_bool(&w, "yes", true);
		json_kv_bool(&w, "no", false);
		json_close(&w, '}');
		assert_string_equal(out.text + strspn(out.text, " "), want);
		assert_int_equal(out.len, strlen(out.text));
		strbuf_release(&out);
	}
}

/* Text is copied eight bytes at a time: a byte that needs an escape at every place of every length, in a key
 * and in a value, in a buffer that is empty, long enough, or ends on the way. */
TEST_WITH(test_json_pairs_are_keys_and_values, NULL, disarm)
{
	static const char odd[] = "x\"\\\n\x1f\x7f\xc3";
	struct strbuf one = { 0 }, two = { 0 };

	for (size_t len = 0; len <= 20; len++)
		for (size_t at = 0; at <= len; at++)
			for (const char *c = odd; *c; c++) {
				char text[32] = "", key[32];
				struct json *v;

				memset(text, 'a', len);
				if (at < len)
					text[at] = *c;
				strcpy(key, text);
				if (at % 2) /* a plain key beside it */
					memset(key, 'k', len);
				if (len % 4 == at % 4)
					strbuf_release(&one);
				strbuf_reset(&one);
				strbuf_reset(&two);
				write_pairs(&one, at % 3 == 1, true, key, at % 5 == 4 ? NULL : text,
					    at % 7 == 6 ? NAN : 2.375 * (double)len);
				write_pairs(&two, at % 3 == 1, false, key, at % 5 == 4 ? NULL : text,
					    at % 7 == 6 ? NAN : 2.375 * (double)len);
				assert_string_equal(one.text, two.text);
				v = parse(one.text);
				if (*c != '\xc3' && at % 5 != 4)
					assert_string_equal(json_string(json_first(v), NULL), text);
				if (*c != '\xc3')
					assert_string_equal(json_key(json_first(v)), key);
				json_free(v);
			}
	strbuf_release(&one);
	strbuf_release(&two);
}

TEST_WITH(test_json_writer_replaces_bad_utf8, NULL, disarm)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	json_begin(&w, &out, false);
	json_put_string(&w, "a\xff\xc3(\xed\xa0\x80z\xe2\x82");
	assert_string_equal(out.text, "\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"
				      "\xef\xbf\xbd\xef\xbf\xbd\"");
	json_free(parse(out.text));
	strbuf_release(&out);
}

TEST_WITH(test_json_numbers_survive_writing_and_reading, NULL, disarm)
{
	struct rng r = rng_stream(8259, 0);
	struct strbuf out = { 0 };
	struct json_writer w;

	for (int i = 0; i < 20000; i++) {
		uint64_t bits = rng_next(&r);
		struct json *v;
		double x, back;

		memcpy(&x, &bits, sizeof x);
		if (!isfinite(x))
			continue;
		strbuf_reset(&out);
		json_begin(&w, &out, false);
		json_put_number(&w, x);
		v = parse(out.text);
		back = json_number(v, NAN);
		assert_memory_equal(&x, &back, sizeof x);
		json_free(v);
	}
	strbuf_release(&out);
}

static const char *fixed(double v, int decimals)
{
	static struct strbuf out;
	struct json_writer w;

	if (decimals < 0) { /* the end of it */
		strbuf_release(&out);
		return NULL;
	}
	strbuf_reset(&out);
	json_begin(&w, &out, false);
	json_put_fixed(&w, v, decimals);
	assert_false(out.failed);
	return out.text;
}

TEST_WITH(test_json_fixed_numbers_are_short, NULL, disarm)
{
	assert_string_equal(fixed(2.5, 6), "2.5");
	assert_string_equal(fixed(64, 6), "64");
	assert_string_equal(fixed(100, 0), "100");
	assert_string_equal(fixed(0.0, 6), "0");
	assert_string_equal(fixed(-0.0, 6), "0");
	assert_string_equal(fixed(-4e-7, 6), "0");
	assert_string_equal(fixed(-6e-7, 6), "-0.000001");
	assert_string_equal(fixed(0.1 + 0.2, 6), "0.3");
	assert_string_equal(fixed(-28.000001, 6), "-28.000001");
	assert_string_equal(fixed(0.9999996, 6), "1");
	assert_string_equal(fixed(999999999.9999999, 6), "1000000000");
	assert_string_equal(fixed(0.5, 0), "0"); /* halves go to the even one, as with printf */
	assert_string_equal(fixed(1.5, 0), "2");
	assert_string_equal(fixed(2.5, 0), "2");
	assert_string_equal(fixed(5e-324, 9), "0");
	assert_string_equal(fixed(1e9, 6), "1000000000");
	assert_string_equal(fixed(1234567890.1234567, 6), "1234567890.1234567");
	assert_string_equal(fixed(1234567890.1234567, 2), "1234567890.1234567");
	assert_string_equal(fixed(-1e300, 6), "-1e+300");
	assert_string_equal(fixed(NAN, 6), "null");
	assert_string_equal(fixed(INFINITY, 6), "null");
	assert_string_equal(fixed(-INFINITY, 6), "null");
	fixed(0, -1);
}

/* What printf writes, its zeros and a sign without a value taken off. */
static void check_against_printf(double v, int decimals)
{
	char want[64];
	size_t len = (size_t)snprintf(want, sizeof want, "%.*f", decimals, v);

	if (strchr(want, '.')) {
		while (want[len - 1] == '0')
			len--;
		if (want[len - 1] == '.')
			len--;
		want[len] = '\0';
	}
	assert_string_equal(fixed(v, decimals), strcmp(want, "-0") == 0 ? "0" : want);
}

TEST_WITH(test_json_fixed_rounds_as_printf_does, NULL, disarm)
{
	struct rng r = rng_stream(1306, 0);

	for (int i = 0; i < 200000; i++) {
		int decimals = i % 10;
		/* a whole number over a power of two: exact halves of the last decimal are among them */
		double v = (double)(int64_t)(rng_next(&r) >> 35) / (double)(1 << (i % 24));

		v = i % 3 ? v : nextafter(v, i % 2 ? INFINITY : -INFINITY);
		check_against_printf(v, decimals);
		/* any size from 2^-60 to 2^29 */
		v = ldexp((double)rng_next(&r), -124 + (int)(rng_next(&r) % 90));
		check_against_printf(i % 2 ? v : -v, decimals);
		/* beside a decimal number, where errors of a product would show */
		v = (double)(rng_next(&r) % 1000000000) / 1e6 + 5e-7;
		check_against_printf(v, 6);
	}
	fixed(0, -1);
}

TEST_WITH(test_json_writer_writes_whole_numbers_as_before, NULL, disarm)
{
	static const double whole[] = { 0,    -0.0, 1,    -1, 64, 999999999999999.0, -999999999999999.0,
					1e15, 1e21, -7e14 };
	struct strbuf out = { 0 };
	struct json_writer w;
	char want[32];

	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		strbuf_reset(&out);
		json_begin(&w, &out, false);
		json_put_number(&w, whole[i]);
		snprintf(want, sizeof want, "%.15g", whole[i]);
		assert_string_equal(out.text, want);
	}
	for (int shift = 0; shift < 64; shift++)
		for (int sign = 0; sign < 2; sign++) {
			long long v = (long long)(~(uint64_t)0 >> shift);

			v = sign ? (v > 0 ? -v : v) : v;
			strbuf_reset(&out);
			json_begin(&w, &out, false);
			json_put_int(&w, v);
			snprintf(want, sizeof want, "%lld", v);
			assert_string_equal(out.text, want);
		}
	strbuf_release(&out);
}

/* Every byte at every place of a string of every length around eight: whatever is copied eight at a time is
 * right. */
TEST_WITH(test_json_writer_escapes_at_every_place, NULL, disarm)
{
	struct strbuf out = { 0 };
	struct json_writer w;

	for (size_t len = 1; len < 20; len++)
		for (size_t at = 0; at < len; at++)
			for (int c = 1; c < 128; c++) {
				char s[20];
				struct json *v;

				memset(s, 'z', len);
				s[at] = (char)c;
				s[len] = '\0';
				strbuf_reset(&out);
				json_begin(&w, &out, false);
				json_put_string(&w, s);
				v = parse(out.text);
				assert_string_equal(json_string(v, ""), s);
				json_free(v);
			}
	strbuf_release(&out);
}

TEST_WITH(test_json_writer_fills_buffers_of_any_size, NULL, disarm)
{
	struct strbuf whole = { 0 };

	write_sample(&whole, true);
	for (size_t before = 0; before < 300; before++) {
		struct strbuf out = { 0 };

		for (size_t i = 0; i < before; i++)
			strbuf_add(&out, " ", 1);
		write_sample(&out, true);
		assert_int_equal(out.len, before + whole.len);
		assert_string_equal(out.text + before, whole.text);
		strbuf_release(&out);
	}
	strbuf_release(&whole);
}

TEST_WITH(test_json_writer_failure_is_seen_at_the_end, NULL, disarm)
{
	unsigned long k;

	for (k = 1;; k++) {
		struct strbuf out = { 0 };
		bool failed;

		mem_fail_at(k, false);
		write_sample(&out, true);
		failed = out.failed;
		strbuf_release(&out);
		assert_int_equal(failed, mem_failed());
		if (!failed)
			break;
	}
	assert_true(k > 2);
}

TEST_WITH(test_comments_are_for_files_that_people_write, NULL, disarm)
{
	static const char text[] = "// first\n{ // second\n\"a\": \"// none\", // third\n\"b\": 2 }\n// last";
	struct json *root = NULL;
	struct err err = { 0 };

	assert_int_equal(json_parse_settings("c", text, strlen(text), &root, NULL), 0);
	assert_string_equal(json_string(json_get(root, "a"), ""), "// none");
	assert_true(json_number(json_get(root, "b"), 0) == 2);
	json_free(root);
	assert_int_equal(json_parse("c", text, strlen(text), &root, &err), -ERR_FORMAT);
	assert_int_equal(json_parse_settings("c", "{} / x", 6, &root, &err), -ERR_FORMAT);
	assert_int_equal(json_parse_settings("c", "// alone", 8, &root, &err), -ERR_FORMAT);
	assert_int_equal(json_parse_settings("c", "{}\n//\n\n}", 9, &root, &err), -ERR_FORMAT);
	assert_non_null(strstr(err.text, "c:4:1"));
}
