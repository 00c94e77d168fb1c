/* scheduler/daemon/http/token: who has which token, and for how long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "scheduler/daemon/http/token.h"
#include "tests/support/test.h"

static char dir[64], path[96];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/postrider-token.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/tokens", dir);
	return 0;
}

static int drop_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

TEST_WITH(test_a_token_is_its_users_until_it_expires_also_after_a_restart, make_dir, drop_dir)
{
	char one[TOKEN_TEXT], two[TOKEN_TEXT];
	struct tokens t;
	struct token who = { 0 };

	assert_int_equal(tokens_open(&t, dir, NULL), 0);
	assert_int_equal(tokens_make(&t, 1000, 50, 100, one, NULL), 0);
	assert_int_equal(tokens_make(&t, 1001, 50, 200, two, NULL), 0);
	assert_string_not_equal(one, two);
	tokens_close(&t);
	assert_int_equal(tokens_open(&t, dir, NULL), 0);
	assert_true(tokens_find(&t, one, 99, &who));
	assert_int_equal(who.uid, 1000);
	assert_false(tokens_find(&t, one, 100, &who));
	assert_true(tokens_find(&t, two, 100, &who));
	assert_int_equal(who.uid, 1001);
	two[10] ^= 1;
	assert_false(tokens_find(&t, two, 100, &who));
	assert_false(tokens_find(&t, "", 100, &who));
	two[10] ^= 1;
	assert_int_equal(tokens_revoke(&t, 1001, 100, NULL), 0);
	assert_false(tokens_find(&t, two, 100, &who));
	tokens_close(&t);
}

TEST_WITH(test_a_user_has_so_many_and_the_oldest_goes, make_dir, drop_dir)
{
	char first[TOKEN_TEXT], others[TOKEN_TEXT], next[TOKEN_TEXT];
	struct tokens t;
	struct token who;

	assert_int_equal(tokens_open(&t, dir, NULL), 0);
	assert_int_equal(tokens_make(&t, 2000, 1, 100, others, NULL), 0);
	assert_int_equal(tokens_make(&t, 1000, 1, 100, first, NULL), 0);
	for (int i = 0; i < TOKENS_PER_UID; i++)
		assert_int_equal(tokens_make(&t, 1000, 1, 100, next, NULL), 0);
	assert_int_equal(tokens_of(&t, 1000, 1), TOKENS_PER_UID);
	assert_false(tokens_find(&t, first, 1, &who));
	assert_true(tokens_find(&t, next, 1, &who));
	assert_true(tokens_find(&t, others, 1, &who));
	tokens_close(&t);
}

TEST_WITH(test_a_file_that_makes_no_sense_holds_no_token, make_dir, drop_dir)
{
	static const char text[] = "zz 0 99999999999\n\n00ff 12\nnonsense\n";
	struct tokens t;
	struct token who;

	assert_int_equal(io_write_file(path, text, sizeof text - 1, NULL), 0);
	assert_int_equal(tokens_open(&t, dir, NULL), 0);
	assert_int_equal(t.n, 0);
	assert_false(tokens_find(&t, "nonsense", 1, &who));
	tokens_close(&t);
}

TEST_WITH(test_a_token_that_cannot_be_written_is_not_given, make_dir, drop_dir)
{
	char text[TOKEN_TEXT];
	struct tokens t;

	assert_int_equal(tokens_open(&t, dir, NULL), 0);
	io_fail_at(1, 28); /* ENOSPC */
	assert_true(tokens_make(&t, 1000, 1, 100, text, NULL) != 0);
	io_fail_at(0, 0);
	assert_int_equal(t.n, 0);
	tokens_close(&t);
}
