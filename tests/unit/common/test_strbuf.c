/* common/strbuf: appends of all kinds, and a failure that stays noticed. */
#include <string.h>

#include "common/mem.h"
#include "common/strbuf.h"
#include "tests/support/test.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

TEST_WITH(test_strbuf_empty_gives_an_empty_text, NULL, disarm)
{
	struct strbuf b = { 0 };

	assert_string_equal(strbuf_text(&b), "");
	strbuf_add(&b, NULL, 0);
	assert_string_equal(strbuf_text(&b), "");
	assert_false(b.failed);
	strbuf_release(&b);
	strbuf_release(&b); /* twice does no harm */
	strbuf_release(NULL);
}

TEST_WITH(test_strbuf_joins_pieces_in_order, NULL, disarm)
{
	struct strbuf b = { 0 };

	strbuf_puts(&b, "batch ");
	strbuf_printf(&b, "%d of %s", 37, "61");
	strbuf_add(&b, ", done", 2);
	assert_string_equal(b.text, "batch 37 of 61, ");
	assert_int_equal(b.len, strlen("batch 37 of 61, "));
	strbuf_release(&b);
}

TEST_WITH(test_strbuf_keeps_nul_bytes, NULL, disarm)
{
	struct strbuf b = { 0 };

	strbuf_add(&b, "a\0b", 3);
	strbuf_puts(&b, "c");
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.text, "a\0bc", 5);
	strbuf_release(&b);
}

TEST_WITH(test_strbuf_printf_of_every_length_around_the_capacity, NULL, disarm)
{
	for (int len = 0; len < 140; len++) {
		struct strbuf b = { 0 };

		strbuf_puts(&b, "0123456789");
		strbuf_printf(&b, "%0*d", len, 0); /* width 0 still prints one digit */
		assert_int_equal(b.len, 10 + (len ? len : 1));
		assert_int_equal(strlen(b.text), b.len);
		assert_true(b.len < b.cap);
		strbuf_release(&b);
	}
}

TEST_WITH(test_strbuf_grows_to_a_megabyte, NULL, disarm)
{
	struct strbuf b = { 0 };

	for (int i = 0; i < 100000; i++)
		strbuf_printf(&b, "%010d,", i);
	assert_false(b.failed);
	assert_int_equal(b.len, 1100000);
	assert_memory_equal(b.text + 11 * 77777, "0000077777,", 11);
	strbuf_release(&b);
}

TEST_WITH(test_strbuf_failure_stays_and_keeps_what_was_there, NULL, disarm)
{
	struct strbuf b = { 0 };
	char long_piece[300];

	memset(long_piece, 'l', sizeof long_piece - 1);
	long_piece[sizeof long_piece - 1] = '\0';
	strbuf_puts(&b, "kept");
	mem_fail_at(1, false);
	strbuf_puts(&b, long_piece);
	assert_true(b.failed);
	strbuf_puts(&b, "more"); /* would have memory again, but the text has a hole by now */
	assert_true(b.failed);
	assert_string_equal(strbuf_text(&b), "kept");
	strbuf_reset(&b);
	assert_false(b.failed);
	strbuf_puts(&b, "again");
	assert_string_equal(strbuf_text(&b), "again");

	mem_fail_at(1, false);
	strbuf_printf(&b, "%s", long_piece);
	assert_true(b.failed);
	assert_string_equal(strbuf_text(&b), "again"); /* not even a part of the long piece */
	strbuf_release(&b);
}

TEST_WITH(test_strbuf_refuses_a_length_that_wraps, NULL, disarm)
{
	struct strbuf b = { 0 };
	volatile size_t huge = SIZE_MAX - 3;

	strbuf_puts(&b, "seven..");
	strbuf_add(&b, "x", huge);
	assert_true(b.failed);
	assert_string_equal(b.text, "seven..");
	strbuf_release(&b);
}
