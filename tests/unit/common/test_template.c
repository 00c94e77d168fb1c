/* common/text/template: one placeholder language; what is wrong is found when the word is read. */
#include <string.h>

#include "common/mem.h"
#include "common/text/template.h"
#include "tests/support/test.h"

static const char *const names[] = { "batch", "cpus", NULL };

static bool put(const void *owner, const char *name, struct strbuf *out)
{
	if (owner && !strcmp(name, owner))
		return false;
	strbuf_printf(out, "<%s>", name);
	return true;
}

TEST(test_placeholders_are_filled_in_and_braces_doubled)
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

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct strbuf out = { 0 };

		assert_int_equal(template_check(known[i].word, names, NULL), 0);
		assert_true(template_fill(known[i].word, put, NULL, &out));
		assert_string_equal(strbuf_text(&out), known[i].text);
		strbuf_release(&out);
	}
}

TEST(test_a_value_that_is_missing_ends_the_filling)
{
	struct strbuf out = { 0 };

	assert_false(template_fill("{cpus}-{batch}", put, "batch", &out));
	strbuf_release(&out);
}

TEST(test_a_stray_brace_and_an_unknown_name_are_errors)
{
	static const struct {
		const char *word, *message;
	} bad[] = {
		{ "{", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{}", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{batch", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{bat{ch}", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{print $1}", "has a '{' that opens no placeholder; write {{ for the brace itself" },
		{ "{bacth}", "there is no {bacth}; did you mean {batch}?" },
		{ "{network}", "there is no {network}: it is none of batch, cpus" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err err = { 0 };

		assert_int_equal(template_check(bad[i].word, names, &err), -ERR_FORMAT);
		assert_string_equal(err.text, bad[i].message);
	}
}

TEST(test_a_word_says_which_placeholders_it_uses)
{
	assert_true(template_uses("--b={batch}", "batch"));
	assert_false(template_uses("--b={{batch}", "batch"));
	assert_false(template_uses("--b={batch}", "bat"));
	assert_true(template_uses("--b={batch}", NULL));
	assert_false(template_uses("{{x}", NULL));
}

TEST(test_a_command_leaves_out_what_has_no_value)
{
	static char *const word[] = { "run", "--cpus", "{cpus}", "--batch", "{batch}", "--x={batch}", "end" };
	struct err err = { 0 };
	char **argv = NULL;

	assert_int_equal(template_argv(word, 7, put, "batch", 100, &argv, &err), 0);
	assert_string_equal(argv[0], "run");
	assert_string_equal(argv[1], "--cpus");
	assert_string_equal(argv[2], "<cpus>");
	assert_string_equal(argv[3], "end");
	assert_null(argv[4]);
	argv_free(argv);
	assert_int_equal(template_argv(word, 7, put, NULL, 8, &argv, &err), -ERR_ARG);
	assert_string_equal(err.text, "word 5 of the command has 11 bytes; at most 8 are allowed");
	argv_free(NULL);
}

TEST(test_every_failed_allocation_of_a_command_is_reported)
{
	static char *const word[] = { "run", "{cpus}", "{{" };
	bool failed = true;
	unsigned long k;

	for (k = 1; failed; k++) {
		char **argv = NULL;
		int rc;

		mem_fail_at(k, false);
		rc = template_argv(word, 3, put, NULL, 100, &argv, NULL);
		failed = mem_failed();
		mem_fail_at(0, false);
		assert_int_equal(rc, failed ? -ERR_NOMEM : 0);
		argv_free(argv);
	}
	assert_true(k > 4);
}
