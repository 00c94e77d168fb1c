/* common/text/template: one placeholder language; what is wrong is found when the word is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/text/template.h"

static const char *const names[] = { "batch", "cpus", NULL };

static bool put(void *owner, const char *name, struct strbuf *out)
{
	if (owner && !strcmp(name, owner))
		return false;
	strbuf_printf(out, "<%s>", name);
	return true;
}

static void test_placeholders_are_filled_in_and_braces_doubled(void **state)
{
	static const struct {
		const char *word, *text;
	} known[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "{batch}", "<batch>" },
		{ "--b={batch},{cpus}!", "--b=<batch>,<cpus>!" },
		{ "{{batch}", "{batch}" },
		{ "{{{batch}}", "{<batch>}" },
		{ "a}b", "a}b" },
		{ "{{", "{" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct strbuf out = { 0 };

		assert_int_equal(template_check(known[i].word, names, NULL), 0);
		assert_true(template_fill(known[i].word, put, NULL, &out));
		assert_string_equal(strbuf_text(&out), known[i].text);
		strbuf_release(&out);
	}
}

static void test_a_value_that_is_missing_ends_the_filling(void **state)
{
	struct strbuf out = { 0 };

	(void)state;
	assert_false(template_fill("{cpus}-{batch}", put, "batch", &out));
	strbuf_release(&out);
}

static void test_a_stray_brace_and_an_unknown_name_are_errors(void **state)
{
	static const struct {
		const char *word, *message;
	} bad[] = {
		{ "{", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{}", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{batch", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{bat{ch}", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{bacth}", "there is no {bacth}; did you mean {batch}?" },
		{ "{network}", "there is no {network}: it is none of batch, cpus" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { 0 };

		assert_int_equal(template_check(bad[i].word, names, &err), -ERR_FORMAT);
		assert_string_equal(err.text, bad[i].message);
	}
}

static void test_a_word_says_which_placeholders_it_uses(void **state)
{
	(void)state;
	assert_true(template_uses("--b={batch}", "batch"));
	assert_false(template_uses("--b={{batch}", "batch"));
	assert_false(template_uses("--b={batch}", "bat"));
	assert_true(template_uses("--b={batch}", NULL));
	assert_false(template_uses("{{x}", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placeholders_are_filled_in_and_braces_doubled),
		cmocka_unit_test(test_a_value_that_is_missing_ends_the_filling),
		cmocka_unit_test(test_a_stray_brace_and_an_unknown_name_are_errors),
		cmocka_unit_test(test_a_word_says_which_placeholders_it_uses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
