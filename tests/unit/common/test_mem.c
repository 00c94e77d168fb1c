/* common/mem: sizes are checked, failures come when asked for. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/support/test.h"

static int disarm(void **state)
{
	(void)state;
	mem_fail_at(0, false);
	return 0;
}

TEST_WITH(test_mem_nothing_is_still_a_pointer, NULL, disarm)
{
	void *a = mem_alloc(0), *b = mem_calloc(0, 0), *c = mem_array(0, 8), *d = mem_resize(NULL, 0, 8);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_non_null(d);
	free(a);
	free(b);
	free(c);
	free(d);
}

TEST_WITH(test_mem_refuses_sizes_whose_product_wraps, NULL, disarm)
{
	/* volatile: the compiler would see the impossible size and warn */
	volatile size_t half = SIZE_MAX / 2 + 2;
	void *p;

	assert_null(mem_array(half, 2)); /* wraps to 2 bytes */
	assert_null(mem_calloc(half, 2));
	p = mem_alloc(13);
	assert_non_null(p);
	memset(p, 'k', 13);
	assert_null(mem_resize(p, half, 2));
	assert_int_equal(((char *)p)[12], 'k');
	free(p);
}

TEST_WITH(test_mem_calloc_is_zeroed, NULL, disarm)
{
	unsigned char *p = mem_calloc(37, 3);

	assert_non_null(p);
	for (int i = 0; i < 37 * 3; i++)
		assert_int_equal(p[i], 0);
	free(p);
}

TEST_WITH(test_mem_strings_are_copied, NULL, disarm)
{
	char *whole = mem_strdup("batch"), *part = mem_strndup("batch", 3), *none = mem_strndup("batch", 0);

	assert_string_equal(whole, "batch");
	assert_string_equal(part, "bat");
	assert_string_equal(none, "");
	free(whole);
	free(part);
	free(none);
}

TEST_WITH(test_mem_grow_doubles_and_keeps_the_contents, NULL, disarm)
{
	void *p = NULL;
	size_t cap = 0, n_moves = 0;

	for (size_t n = 1; n <= 1000; n++) {
		size_t before = cap;

		assert_int_equal(mem_grow(&p, &cap, n, sizeof(uint32_t)), 0);
		assert_true(cap >= n);
		n_moves += cap != before;
		((uint32_t *)p)[n - 1] = (uint32_t)(n * 7);
	}
	assert_true(n_moves <= 7); /* 16, 32, ... 1024 */
	for (size_t n = 1; n <= 1000; n++)
		assert_int_equal(((uint32_t *)p)[n - 1], n * 7);
	free(p);
}

TEST_WITH(test_mem_grow_failure_changes_nothing, NULL, disarm)
{
	void *p = NULL, *before;
	size_t cap = 0, cap_before;

	assert_int_equal(mem_grow(&p, &cap, 5, 4), 0);
	before = p;
	cap_before = cap;
	mem_fail_at(1, false);
	assert_int_equal(mem_grow(&p, &cap, 5000, 4), -1);
	assert_ptr_equal(p, before);
	assert_int_equal(cap, cap_before);
	assert_int_equal(mem_grow(&p, &cap, SIZE_MAX, 4), -1);
	assert_int_equal(mem_grow(&p, &cap, SIZE_MAX / 2 + 1, 4), -1);
	assert_ptr_equal(p, before);
	assert_int_equal(mem_grow(&p, &cap, 3, 4), 0); /* enough already: no call at all */
	assert_int_equal(cap, cap_before);
	free(p);
}

TEST_WITH(test_mem_fails_at_exactly_the_kth_call, NULL, disarm)
{
	void *p;

	mem_fail_at(3, false);
	for (int i = 1; i <= 5; i++) {
		p = i == 2 ? mem_calloc(2, 3) : mem_alloc(5);
		assert_int_equal(p == NULL, i == 3);
		assert_int_equal(mem_failed(), i >= 3);
		free(p);
	}
}

TEST_WITH(test_mem_fails_forever_when_asked_to, NULL, disarm)
{
	void *p;

	mem_fail_at(2, true);
	p = mem_alloc(5);
	assert_non_null(p);
	free(p);
	for (int i = 0; i < 4; i++) {
		assert_null(mem_alloc(5));
		assert_null(mem_calloc(5, 1));
		assert_null(mem_array(5, 1));
		assert_null(mem_resize(NULL, 5, 1));
		assert_null(mem_strdup("five"));
	}
	mem_fail_at(0, false);
	assert_false(mem_failed());
	p = mem_alloc(5);
	assert_non_null(p);
	free(p);
}
