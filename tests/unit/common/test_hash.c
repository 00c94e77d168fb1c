/* common/text/hash. Known answers are those of the authors' test suite. */
#include "common/text/hash.h"
#include "tests/support/test.h"

TEST(test_hashes_are_those_of_fnv_1a)
{
	assert_true(hash_text(HASH_START, "") == 0xcbf29ce484222325ULL);
	assert_true(hash_text(HASH_START, "a") == 0xaf63dc4c8601ec8cULL);
	assert_true(hash_text(HASH_START, "foobar") == 0x85944171f73967e8ULL);
	assert_true(hash_bytes(hash_text(HASH_START, "foo"), "bar", 3) == 0x85944171f73967e8ULL);
}

TEST(test_the_end_of_a_word_counts)
{
	char *one[] = { "ab", "c" }, *two[] = { "a", "bc" };

	assert_true(hash_words(HASH_START, one, 2) != hash_words(HASH_START, two, 2));
	assert_true(hash_words(HASH_START, one, 0) == HASH_START);
}
